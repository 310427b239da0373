/* evidence.c: see evidence.h. The surest first:
 *
 *     a recorded run               was there
 *     a sidecar                    lists the calls; a number in the names ("dump_index=17") is as good
 *     the list of one file         unless somebody sorted it: one step back in the alphabet shows that he did
 *                                  not. A format whose writers sort needs that proof; in one that keeps the
 *                                  order of its writer, a few names may be in alphabetical order by chance
 *     the times of the files       where all differ, are not in alphabetical order (as copies are), and do
 *                                  not contradict the numbers, layers and roles in the names
 *
 * Weights are stored, not computed: an order of theirs is none of execution.
 */
#include "compare/name/evidence.h"

#include "compare/name/name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool td_names_backward(const char *name)
{
    struct td_word word;
    size_t length = strlen(name);
    for (size_t at = 0; td_word_next(name, length, &at, false, &word);)
        if (td_word_is(&word, "backward") || td_word_is(&word, "grad") || td_word_is(&word, "gradient") ||
            td_word_is(&word, "grads") || td_word_is(&word, "gradients"))
            return true;
    return false;
}

static const struct td_sequence *sequence_of(const struct td_item *item)
{
    return &item->parts[0]->sequence;
}

static bool was_recorded(const struct td_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (!side->items[i].parts[0]->executed)
            return false;
    return side->count > 0;
}

static bool all_parameters(const struct td_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (!side->items[i].parameter)
            return false;
    return true;
}

/* --- sidecars ------------------------------------------------------------------------------------------- */

/* "step=0___rank=0___dump_index=17___name=q.pt": 18; else 0. */
static uint64_t dump_index(const char *name)
{
    static const char key[] = "dump_index=";
    enum { MOST_DIGITS = 12 };
    const char *at = strstr(name, key);
    uint64_t value = 0;
    if (!at || !isdigit((unsigned char)at[sizeof key - 1]))
        return 0;
    at += sizeof key - 1;
    for (int i = 0; i < MOST_DIGITS && isdigit((unsigned char)at[i]); i++)
        value = value * 10 + (uint64_t)(at[i] - '0');
    return value + 1;
}

/* A file that the sidecar does not know stays behind the one before it in the list; there are few. */
static bool rank_by_sidecar(const struct td_side *side, uint64_t *rank)
{
    size_t known = 0;
    for (size_t i = 0; i < side->count; i++) {
        rank[i] = sequence_of(&side->items[i])->noted;
        if (!rank[i])
            rank[i] = dump_index(side->items[i].name);
        known += rank[i] > 0;
        if (!rank[i] && i > 0)
            rank[i] = rank[i - 1];
    }
    return side->count > 0 && known >= side->count - side->count / 10;
}

/* --- lists ---------------------------------------------------------------------------------------------- */

enum step { STEP_BACK, STEP_NUMBER, STEP_TEXT };

/* Names that differ in a number first may be listed as text or by the number. */
static enum step step_between(const char *before, const char *after)
{
    while (*before && *before == *after) {
        before++;
        after++;
    }
    if (isdigit((unsigned char)*before) && isdigit((unsigned char)*after))
        return STEP_NUMBER;
    return (unsigned char)*before <= (unsigned char)*after ? STEP_TEXT : STEP_BACK;
}

/* The writer of safetensors sorts by the type first. Within the layers, if there are any. */
static bool count_steps(const struct td_side *side, bool layered, size_t *text)
{
    *text = 0;
    for (size_t i = 1; i < side->count; i++) {
        const struct td_item *a = &side->items[i - 1], *b = &side->items[i];
        if (a->layer != b->layer || (layered && a->layer < 0) || a->parts[0]->dtype != b->parts[0]->dtype)
            continue;
        enum step step = step_between(a->name, b->name);
        if (step == STEP_BACK)
            return false;
        *text += step == STEP_TEXT;
    }
    return true;
}

static bool rank_by_list(const struct td_side *side, uint64_t *rank)
{
    enum { BY_CHANCE = 4 }; /* five names are in alphabetical order by chance once in 120 */
    size_t text;
    bool kept = true, layered = false;
    for (size_t i = 0; i < side->count; i++) {
        const struct td_sequence *s = sequence_of(&side->items[i]);
        if (s->list != sequence_of(&side->items[0])->list)
            return false;
        kept = kept && s->kept;
        layered = layered || side->items[i].layer >= 0;
        rank[i] = s->list ? s->at : i;
    }
    if (side->count < 2 || !count_steps(side, layered, &text))
        return side->count >= 2;
    return kept && !layered && text < BY_CHANCE;
}

/* --- times ---------------------------------------------------------------------------------------------- */

struct stamp {
    int64_t written;
    size_t index;
};

static int compare_stamps(const void *x, const void *y)
{
    const struct stamp *a = x, *b = y;
    if (a->written != b->written)
        return a->written < b->written ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* The parts of a block that run one after the other in every model; 0: not known. */
static int third_of(enum td_role role)
{
    if (role >= TD_ROLE_NORM_ATTN && role <= TD_ROLE_ATTN_K_NORM)
        return 1;
    return role == TD_ROLE_ATTN_O || role == TD_ROLE_ATTN  ? 2
           : role >= TD_ROLE_ROUTER && role <= TD_ROLE_MLP ? 3
                                                           : 0;
}

/* Whether times that go from `a` to `b` go forwards by the names: 1, -1, or 0 where these tell nothing. */
static int direction(const struct td_item *a, const struct td_item *b)
{
    if (td_names_backward(a->name) || td_names_backward(b->name))
        return 0;
    if (a->layer >= 0 && b->layer >= 0 && a->layer != b->layer)
        return a->layer < b->layer ? 1 : -1;
    int x = third_of(a->role), y = third_of(b->role);
    return a->layer >= 0 && x && y && x != y ? x < y ? 1 : -1 : 0;
}

/* A copied folder has times as well, in whatever order the files were copied. */
static bool contradicts(const struct td_side *side, const struct stamp *stamps, const uint64_t *rank)
{
    size_t forwards = 0, backwards = 0;
    for (size_t i = 1; i < side->count; i++) {
        const struct td_item *a = &side->items[i - 1], *b = &side->items[i];
        int by_time = direction(&side->items[stamps[i - 1].index], &side->items[stamps[i].index]);
        int by_number = a->layer < 0 && b->layer < 0 && !td_names_backward(a->name) &&
                                step_between(a->name, b->name) == STEP_NUMBER
                            ? rank[i - 1] < rank[i] ? 1 : -1
                            : 0;
        forwards += (size_t)((by_time > 0) + (by_number > 0));
        backwards += (size_t)((by_time < 0) + (by_number < 0));
    }
    return 5 * backwards > forwards + backwards;
}

static bool rank_by_times(const struct td_side *side, uint64_t *rank, bool *known)
{
    enum { LEAST = 3 };
    *known = false;
    if (side->count < LEAST)
        return true;
    struct stamp *stamps = calloc(side->count, sizeof *stamps);
    if (!stamps)
        return false;
    bool distinct = true, as_listed = true;
    for (size_t i = 0; i < side->count; i++) {
        stamps[i] = (struct stamp){sequence_of(&side->items[i])->written, i};
        distinct = distinct && stamps[i].written > 0;
    }
    qsort(stamps, side->count, sizeof *stamps, compare_stamps);
    for (size_t i = 0; i < side->count; i++) {
        distinct = distinct && (i == 0 || stamps[i].written != stamps[i - 1].written);
        as_listed = as_listed && stamps[i].index == i;
        rank[stamps[i].index] = i;
    }
    *known = distinct && !as_listed && !contradicts(side, stamps, rank);
    free(stamps);
    return true;
}

bool td_evidence_find(const struct td_side *side, uint64_t *rank, enum td_order_evidence *out)
{
    bool by_times = false;
    *out = TD_ORDER_UNKNOWN;
    if (was_recorded(side)) {
        for (size_t i = 0; i < side->count; i++)
            rank[i] = i;
        *out = TD_ORDER_RECORDED;
    } else if (rank_by_sidecar(side, rank)) {
        *out = TD_ORDER_SIDECAR;
    } else if (rank_by_list(side, rank)) {
        *out = TD_ORDER_FILE;
    } else if (!all_parameters(side) && !rank_by_times(side, rank, &by_times)) {
        return false;
    } else if (by_times) {
        *out = TD_ORDER_TIMES;
    }
    if (*out == TD_ORDER_UNKNOWN && side->count)
        memset(rank, 0, side->count * sizeof *rank);
    return true;
}
