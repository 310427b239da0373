/* shard.c: the mark that tensor-parallel ranks leave in the names of their dumps.
 *
 *     rank3/0_query.pth  tp3/…  tp_rank_03/…           a folder
 *     0_query_rank3.pth  0_query.rank3.pth             within the name of a file or a key
 *     mp_rank_03_model_states.pt                       in front of it
 *     0_query/rank3.pth                                the file of a folder that is named like the tensor
 *     model-00003-of-00008.safetensors                 counted from one, and from how many
 *
 * The mark goes with one separator, so that all ranks are left with the same name. A name may carry its
 * rank twice (rank3/mp_rank_03_….pt): all marks of the same rank go. Ranks of data, pipeline and expert
 * parallelism do not mark parts of one tensor and stay.
 */
#include "compare/name/item.h"

#include <string.h>
#include <strings.h>

enum { MAX_RANK_DIGITS = 6 };

struct mark {
    size_t begin, end;
    struct td_shard shard;
};

static bool is_separator(char c)
{
    return c == '_' || c == '-' || c == '.';
}

/* A mark begins and ends where a word does: "frank3" and "rank3rd" have none. */
static bool is_edge(char c)
{
    return c == '\0' || c == '/' || c == ':' || is_separator(c);
}

static size_t read_number(const char *text, int64_t *out)
{
    size_t digits = 0;
    int64_t value = 0;
    while (text[digits] >= '0' && text[digits] <= '9') {
        if (++digits > MAX_RANK_DIGITS)
            return 0;
        value = value * 10 + (text[digits - 1] - '0');
    }
    *out = value;
    return digits;
}

/* The word that ends with the separator before `at`, as far as it is one of `words`. */
static size_t word_before(const char *name, size_t at, const char *const *words)
{
    if (at == 0 || !(name[at - 1] == '_' || name[at - 1] == '-'))
        return 0;
    for (; *words; words++) {
        size_t n = strlen(*words);
        if (at > n && strncasecmp(name + at - 1 - n, *words, n) == 0 &&
            (at == n + 1 || is_edge(name[at - n - 2])))
            return n + 1;
    }
    return 0;
}

/* rank3, rank_03, tp_rank-3 at `at`, where a word begins. */
static bool read_rank(const char *name, size_t at, struct mark *out)
{
    static const char *const tensor_parallel[] = {"tp",    "mp",    "tensor", "model",
                                                  "local", "world", "global", NULL};
    static const char *const others[] = {"dp", "pp", "ep", "data", "pipeline", "expert", NULL};
    if (strncasecmp(name + at, "rank", 4) != 0 || word_before(name, at, others))
        return false;
    size_t digits_at = at + 4 + (name[at + 4] == '_' || name[at + 4] == '-');
    size_t digits = read_number(name + digits_at, &out->shard.rank);
    if (digits == 0 || !is_edge(name[digits_at + digits]))
        return false;
    out->begin = at - word_before(name, at, tensor_parallel);
    out->end = digits_at + digits;
    out->shard.of = 0;
    return true;
}

/* tp3/ or tp_3/, a folder and nothing else: "tp3" in a longer name may be anything. */
static bool read_folder(const char *name, size_t at, struct mark *out)
{
    if ((at > 0 && name[at - 1] != '/') || strncasecmp(name + at, "tp", 2) != 0)
        return false;
    size_t digits_at = at + 2 + (name[at + 2] == '_' || name[at + 2] == '-');
    size_t digits = read_number(name + digits_at, &out->shard.rank);
    *out = (struct mark){at, digits_at + digits, {out->shard.rank, 0}};
    return digits > 0 && name[out->end] == '/';
}

/* 00003-of-00008 */
static bool read_count(const char *name, size_t at, struct mark *out)
{
    int64_t which = 0, of = 0;
    size_t digits = read_number(name + at, &which), more = 0;
    if (digits && strncasecmp(name + at + digits, "-of-", 4) == 0)
        more = read_number(name + at + digits + 4, &of);
    *out = (struct mark){at, at + digits + 4 + more, {which - 1, of}};
    return more > 0 && which >= 1 && which <= of && is_edge(name[out->end]);
}

static bool next_mark(const char *name, size_t from, struct mark *out)
{
    for (size_t at = from; name[at]; at++) {
        if (at > 0 && !is_edge(name[at - 1]))
            continue;
        if (read_rank(name, at, out) || read_folder(name, at, out) || read_count(name, at, out))
            return true;
    }
    return false;
}

/* What goes with the mark; true when nothing but an extension would be left of the name. */
static bool widen(const char *name, struct mark *mark)
{
    char before = mark->begin ? name[mark->begin - 1] : '\0', after = name[mark->end];
    if (is_separator(before) || (before == ':' && after == '\0'))
        mark->begin--;
    else if (after == '/' || after == '_' || after == '-')
        mark->end++;
    else if (before == '/')
        mark->begin--;
    else if (before == ':' && after == '.')
        mark->end++;
    else
        return true;
    return false;
}

bool td_shard_name(const char *name, char *out, struct td_shard *shard)
{
    struct mark mark;
    size_t copied = 0, length = 0, from = 0;
    bool found = false;
    while (next_mark(name, from, &mark)) {
        from = mark.end;
        if (found && (mark.shard.rank != shard->rank || mark.shard.of != shard->of))
            continue;
        *shard = mark.shard;
        found = true;
        bool alone = widen(name, &mark);
        if (mark.begin < copied)
            mark.begin = copied;
        memcpy(out + length, name + copied, mark.begin - copied);
        length += mark.begin - copied;
        if (alone) {
            memcpy(out + length, "rank", 4);
            length += 4;
        }
        copied = mark.end;
        from = from < copied ? copied : from;
    }
    if (found)
        strcpy(out + length, name + copied);
    return found;
}
