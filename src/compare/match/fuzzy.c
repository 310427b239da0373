/* fuzzy.c: names of one tensor in different families, else names with most of their words in common.
 *
 * First by what the names mean (families.h): one tensor on each side with the same layer, role and kind. What
 * the table does not know goes by its words: the share of words two names have in common (of all words of
 * both), best first, each tensor once, until nothing above the threshold is left. Names can only be alike
 * within a bucket: the same layer, kind and stack, the same numbers, and not q here and k there. Buckets keep
 * the work small; within one, candidates are found through the words they share, rare ones only, so that a
 * bucket of thousands costs thousands and not millions.
 */
#include "compare/match/strategy.h"
#include "compare/match/words.h"

#include "compare/name/name.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SHARERS = 256, /* a word that more tensors of a bucket have finds nobody */
    MAX_CHOICES = 16   /* remembered for one tensor of A */
};

/* How sure names alone are: of one role; of words that are all the same. */
static const double SURE_BY_ROLE = 0.97, SURE_BY_WORDS = 0.95;

static void pair_by_names(struct td_matching *m, size_t a, size_t b, double sure)
{
    td_pair(m, a, b, TD_MATCH_FUZZY);
    m->pairs[m->count - 1].sure = sure;
}

/* --- by role ------------------------------------------------------------------------------------------- */

struct known {
    struct td_identity id;
    int64_t layer; /* in A's numbers */
    size_t index;
};

static int compare_identities(const struct known *a, const struct known *b)
{
    int order = td_compare_numbers(a->layer, b->layer);
    if (order == 0)
        order = td_compare_numbers(a->id.stack, b->id.stack);
    if (order == 0)
        order = td_compare_numbers(a->id.role, b->id.role);
    if (order == 0)
        order = td_compare_numbers(a->id.expert, b->id.expert);
    if (order == 0)
        order = td_compare_numbers(a->id.kind * 4 + a->id.gradient * 2 + a->id.cross,
                                   b->id.kind * 4 + b->id.gradient * 2 + b->id.cross);
    return order;
}

static int compare_known(const void *x, const void *y)
{
    const struct known *a = x, *b = y;
    int order = compare_identities(a, b);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Megatron has one name for the first matrix of a gated and of a plain mlp. It is gate_up where the other
 * side has a gate anywhere, else up. */
static enum td_role settled(enum td_role role, bool gated)
{
    return role == TD_ROLE_MLP_GATE_UP && !gated ? TD_ROLE_MLP_UP : role;
}

static bool has_gate(const struct td_matching *m, enum td_which which)
{
    for (size_t i = 0; i < m->side[which]->count; i++)
        if (m->identity[which][i].role == TD_ROLE_MLP_GATE)
            return true;
    return false;
}

static bool fuses_gate(const struct td_matching *m, enum td_which which)
{
    for (size_t i = 0; i < m->side[which]->count; i++)
        if (m->identity[which][i].role == TD_ROLE_MLP_UP)
            return false;
    return true;
}

static struct known *known_init(struct td_matching *m, enum td_which which, size_t *count)
{
    const struct td_side *side = m->side[which];
    struct known *list = td_arena_array(&m->scratch, side->count + 1, sizeof *list);
    bool gated = has_gate(m, !which) || fuses_gate(m, !which);
    *count = 0;
    for (size_t i = 0; list && i < side->count; i++) {
        if (!td_is_free(m, which, i) || m->identity[which][i].role == TD_ROLE_NONE)
            continue;
        struct known *k = &list[(*count)++];
        *k = (struct known){m->identity[which][i], side->items[i].layer, i};
        k->id.role = settled(k->id.role, gated);
        if (which == TD_SIDE_B && k->layer >= 0)
            k->layer -= m->layer_offset;
    }
    if (list)
        qsort(list, *count, sizeof *list, compare_known);
    return list;
}

static size_t run_length(const struct known *list, size_t count, size_t from)
{
    size_t n = 1;
    while (from + n < count && compare_identities(&list[from], &list[from + n]) == 0)
        n++;
    return n;
}

static tdbg_status pair_known(struct td_matching *m, struct tdbg_error *error)
{
    size_t a_count, b_count;
    const struct known *a = known_init(m, TD_SIDE_A, &a_count), *b = known_init(m, TD_SIDE_B, &b_count);
    if (!a || !b)
        return td_fail_nomem(error);
    for (size_t i = 0, j = 0; i < a_count && j < b_count;) {
        int order = compare_identities(&a[i], &b[j]);
        size_t na = order <= 0 ? run_length(a, a_count, i) : 0,
               nb = order >= 0 ? run_length(b, b_count, j) : 0;
        if (order == 0 && na == 1 && nb == 1)
            pair_by_names(m, a[i].index, b[j].index, SURE_BY_ROLE);
        i += na;
        j += nb;
    }
    return TDBG_OK;
}

/* --- by words ------------------------------------------------------------------------------------------ */

struct entry {
    uint64_t bucket;
    size_t index, order;
    struct td_word_bag bag;
};

/* Tensors that differ in one of these are different tensors, however alike the rest of their names. */
static bool tells_apart(uint64_t hash)
{
    static const char *const words[] = {"q", "k", "v", "qkv", "gate", "up", "down"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hash == td_word_hash_text(words[i]))
            return true;
    return false;
}

/* The words of the stage (of the bare name where there is no layer), and the bucket: layer, kind, stack, all
 * numbers, all words that tell apart. */
static bool read_words(struct td_matching *m, enum td_which which, size_t index, struct entry *out)
{
    const struct td_item *item = &m->side[which]->items[index];
    const struct td_identity *id = &m->identity[which][index];
    *out = (struct entry){.index = index, .order = item->order};
    int64_t layer = item->layer - (item->layer >= 0 && which == TD_SIDE_B ? m->layer_offset : 0);
    int64_t facts[] = {layer, id->kind, id->gradient, id->stack};
    out->bucket = td_hash_more(TD_HASH_START, facts, sizeof facts);
    const char *name = item->layer >= 0 ? item->stage : td_bare_name(m, which, index);
    uint64_t apart = 0;
    struct td_word word;
    for (size_t at = 0, length = name ? strlen(name) : 0; td_word_next(name, length, &at, false, &word);) {
        uint64_t hash = td_word_hash(&word);
        if (word.number)
            out->bucket = td_hash_more(out->bucket, word.text, word.length);
        else
            td_word_bag_add(&out->bag, hash);
        if (tells_apart(hash))
            apart += hash;
    }
    out->bucket += apart;
    return name != NULL;
}

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static struct entry *entries_init(struct td_matching *m, enum td_which which, size_t *count)
{
    struct entry *list = td_arena_array(&m->scratch, m->side[which]->count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; list && i < m->side[which]->count; i++) {
        if (!td_is_free(m, which, i))
            continue;
        if (!read_words(m, which, i, &list[*count]))
            return NULL;
        (*count)++;
    }
    if (list)
        qsort(list, *count, sizeof *list, compare_entries);
    return list;
}

struct choice {
    double score;
    bool same_size; /* as many elements: between two names equally alike, the likelier */
    const struct entry *a, *b;
};

static int compare_choices(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->same_size != b->same_size)
        return a->same_size ? -1 : 1;
    if (a->a->order != b->a->order)
        return a->a->order < b->a->order ? -1 : 1;
    return (a->b->order > b->b->order) - (a->b->order < b->b->order);
}

struct posting {
    uint64_t word;
    uint32_t entry;
};

static int compare_postings(const void *x, const void *y)
{
    const struct posting *a = x, *b = y;
    if (a->word != b->word)
        return a->word < b->word ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

struct bucket {
    const struct entry *a, *b;
    size_t na, nb;
    struct posting *postings; /* the words of B */
    size_t posting_count;
    uint32_t *seen; /* for each of B: the last entry of A, plus one, that met it */
};

static int64_t elements(const struct td_item *item)
{
    int64_t total = 0;
    for (int i = 0; i < item->part_count; i++)
        total += item->parts[i]->count;
    return total;
}

/* The first posting of the word; the number of them. */
static size_t find_postings(const struct bucket *k, uint64_t word, size_t *first)
{
    size_t low = 0, high = k->posting_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->postings[middle].word < word)
            low = middle + 1;
        else
            high = middle;
    }
    size_t n = 0;
    while (low + n < k->posting_count && k->postings[low + n].word == word && n <= MAX_SHARERS)
        n++;
    *first = low;
    return n;
}

/* Both are known, as different things. */
static bool roles_clash(const struct td_matching *m, size_t a, size_t b)
{
    enum td_role x = m->identity[TD_SIDE_A][a].role, y = m->identity[TD_SIDE_B][b].role;
    return x != TD_ROLE_NONE && y != TD_ROLE_NONE && x != y;
}

/* The best choices of entry `i` of A, best first. */
static int find_choices(const struct td_matching *m, struct bucket *k, size_t i, struct choice *out)
{
    const struct entry *a = &k->a[i];
    int count = 0;
    for (int w = 0; w < a->bag.count; w++) {
        size_t first, n = find_postings(k, a->bag.words[w], &first);
        for (size_t p = first; n <= MAX_SHARERS && p < first + n; p++) {
            uint32_t j = k->postings[p].entry;
            if (k->seen[j] == i + 1)
                continue;
            k->seen[j] = (uint32_t)i + 1;
            struct choice c = {td_word_bag_likeness(&a->bag, &k->b[j].bag), false, a, &k->b[j]};
            if (c.score < m->threshold || roles_clash(m, a->index, k->b[j].index))
                continue;
            c.same_size = elements(&m->side[TD_SIDE_A]->items[a->index]) ==
                          elements(&m->side[TD_SIDE_B]->items[k->b[j].index]);
            int at = count;
            while (at > 0 && compare_choices(&c, &out[at - 1]) < 0)
                at--;
            if (at == MAX_CHOICES)
                continue;
            count += count < MAX_CHOICES;
            memmove(out + at + 1, out + at, (size_t)(count - 1 - at) * sizeof *out);
            out[at] = c;
        }
    }
    return count;
}

static tdbg_status pair_bucket(struct td_matching *m, struct bucket *k, struct tdbg_error *error)
{
    size_t words = 0, count = 0;
    for (size_t j = 0; j < k->nb; j++)
        words += (size_t)k->b[j].bag.count;
    struct choice *choices = calloc(k->na * MAX_CHOICES + 1, sizeof *choices);
    k->postings = calloc(words + 1, sizeof *k->postings);
    k->seen = calloc(k->nb + 1, sizeof *k->seen);
    tdbg_status status = choices && k->postings && k->seen ? TDBG_OK : td_fail_nomem(error);
    if (status == TDBG_OK) {
        k->posting_count = 0;
        for (size_t j = 0; j < k->nb; j++)
            for (int w = 0; w < k->b[j].bag.count; w++)
                k->postings[k->posting_count++] = (struct posting){k->b[j].bag.words[w], (uint32_t)j};
        qsort(k->postings, k->posting_count, sizeof *k->postings, compare_postings);
        for (size_t i = 0; i < k->na; i++)
            count += (size_t)find_choices(m, k, i, choices + count);
        qsort(choices, count, sizeof *choices, compare_choices);
        for (size_t i = 0; i < count; i++)
            if (!m->paired[TD_SIDE_A][choices[i].a->index] && !m->paired[TD_SIDE_B][choices[i].b->index])
                pair_by_names(m, choices[i].a->index, choices[i].b->index, SURE_BY_WORDS * choices[i].score);
    }
    free(k->seen);
    free(k->postings);
    free(choices);
    return status;
}

static size_t bucket_length(const struct entry *list, size_t count, size_t from)
{
    size_t n = 1;
    while (from + n < count && list[from].bucket == list[from + n].bucket)
        n++;
    return n;
}

static tdbg_status pair_alike(struct td_matching *m, struct tdbg_error *error)
{
    size_t a_count, b_count;
    const struct entry *a = entries_init(m, TD_SIDE_A, &a_count), *b = entries_init(m, TD_SIDE_B, &b_count);
    if (!a || !b)
        return td_fail_nomem(error);
    for (size_t i = 0, j = 0; i < a_count && j < b_count;) {
        int order = (a[i].bucket > b[j].bucket) - (a[i].bucket < b[j].bucket);
        size_t na = order <= 0 ? bucket_length(a, a_count, i) : 0,
               nb = order >= 0 ? bucket_length(b, b_count, j) : 0;
        if (order == 0)
            TD_TRY(pair_bucket(m, &(struct bucket){.a = a + i, .b = b + j, .na = na, .nb = nb}, error));
        i += na;
        j += nb;
    }
    return TDBG_OK;
}

tdbg_status td_match_fuzzy(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    (void)argument;
    if (m->count == 0 && m->layer_offset == 0)
        TD_TRY(td_match_find_offset(m, error));
    TD_TRY(pair_known(m, error));
    return pair_alike(m, error);
}
