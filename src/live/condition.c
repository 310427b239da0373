/* condition.c: see condition.h. */
#include "live/condition.h"

#include "base/pattern.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- the table of statistics ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool whole; /* a count, else a double */
    size_t offset;
} statistics[] = {
    {"count", true, offsetof(struct tdbg_stats, count)},
    {"finite", true, offsetof(struct tdbg_stats, finite)},
    {"nan", true, offsetof(struct tdbg_stats, nan)},
    {"inf", true, offsetof(struct tdbg_stats, inf)},
    {"zeros", true, offsetof(struct tdbg_stats, zeros)},
    {"mean", false, offsetof(struct tdbg_stats, mean)},
    {"std", false, offsetof(struct tdbg_stats, std)},
    {"min", false, offsetof(struct tdbg_stats, min)},
    {"max", false, offsetof(struct tdbg_stats, max)},
    {"absmax", false, offsetof(struct tdbg_stats, absmax)},
    {"norm", false, offsetof(struct tdbg_stats, norm)},
};

enum { STATISTICS = sizeof statistics / sizeof *statistics };

const char *td_statistic_name(int statistic)
{
    return statistics[statistic].name;
}

static uint64_t whole_value(int statistic, const struct tdbg_stats *stats)
{
    uint64_t value;
    memcpy(&value, (const char *)stats + statistics[statistic].offset, sizeof value);
    return value;
}

double td_statistic_value(int statistic, const struct tdbg_stats *stats)
{
    double value;
    if (statistics[statistic].whole)
        return (double)whole_value(statistic, stats);
    memcpy(&value, (const char *)stats + statistics[statistic].offset, sizeof value);
    return value;
}

void td_statistics_json(struct td_json *j, const struct tdbg_stats *stats)
{
    td_json_begin_object(j);
    for (int i = 0; i < STATISTICS; i++)
        if (statistics[i].whole)
            td_json_field_uint(j, statistics[i].name, whole_value(i, stats));
        else
            td_json_field_number(j, statistics[i].name, td_statistic_value(i, stats));
    td_json_end_object(j);
}

static int find_statistic(const char *text, size_t length)
{
    for (int i = 0; i < STATISTICS; i++)
        if (strlen(statistics[i].name) == length && memcmp(statistics[i].name, text, length) == 0)
            return i;
    return -1;
}

static tdbg_status no_statistic(const char *text, size_t length, struct tdbg_error *error)
{
    return td_fail(
        error, TDBG_MISUSE,
        "no statistic '%.*s': they are mean, std, min, max, absmax, norm, nan, inf, zeros, finite and "
        "count",
        (int)(length < 60 ? length : 60), text);
}

/* --- conditions ----------------------------------------------------------------------------------------- */

static const char *skip_space(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static size_t word_length(const char *text)
{
    return strcspn(text, " \t<>()");
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* The folder: up to " or ", or the end. */
static tdbg_status parse_reference(struct td_test *test, const char **at, struct tdbg_error *error)
{
    const char *begin = skip_space(*at), *end = strstr(begin, " or ");
    size_t length = end ? (size_t)(end - begin) : strlen(begin);
    while (length > 0 && isspace((unsigned char)begin[length - 1]))
        length--;
    if (length == 0)
        return td_fail(error, TDBG_MISUSE, "diverges-from takes the folder of an earlier run");
    test->kind = TD_TEST_DIVERGES;
    test->reference = strndup(begin, length);
    *at = begin + length;
    return test->reference ? TDBG_OK : td_fail_nomem(error);
}

static tdbg_status parse_comparison(struct td_test *test, const char *text, size_t length, const char **at,
                                    struct tdbg_error *error)
{
    char *end;
    test->statistic = find_statistic(text, length);
    if (test->statistic < 0)
        return no_statistic(text, length, error);
    const char *sign = skip_space(*at);
    if (*sign != '<' && *sign != '>') {
        if (!is_word(text, length, "nan") && !is_word(text, length, "inf"))
            return td_fail(error, TDBG_MISUSE, "'%.*s' is compared with < or > and a number", (int)length,
                           text);
        test->kind = TD_TEST_GREATER; /* any at all */
        return TDBG_OK;
    }
    test->kind = *sign == '<' ? TD_TEST_LESS : TD_TEST_GREATER;
    test->limit = strtod(sign + 1, &end);
    if (end == sign + 1)
        return td_fail(error, TDBG_MISUSE, "a number is missing after '%.*s %c'", (int)length, text, *sign);
    *at = end;
    return TDBG_OK;
}

static tdbg_status parse_test(struct td_test *test, const char **at, struct tdbg_error *error)
{
    const char *word = skip_space(*at);
    size_t length = word_length(word);
    *at = word + length;
    if (length == 0)
        return td_fail(error, TDBG_MISUSE, "a condition is missing");
    if (is_word(word, length, "diverges-from"))
        return parse_reference(test, at, error);
    return parse_comparison(test, word, length, at, error);
}

static tdbg_status parse_condition(struct td_condition *c, const char *text, struct tdbg_error *error)
{
    const char *at = skip_space(text);
    while (*at) {
        if (c->count == TD_MOST_TESTS)
            return td_fail(error, TDBG_LIMIT, "more than %d tests in a condition", TD_MOST_TESTS);
        TD_TRY(parse_test(&c->tests[c->count++], &at, error));
        at = skip_space(at);
        if (!*at)
            return TDBG_OK;
        size_t length = word_length(at);
        if (!is_word(at, length, "or"))
            return td_fail(error, TDBG_MISUSE, "'%.60s' is not understood: tests are joined by 'or'", at);
        at = skip_space(at + length);
        if (!*at)
            return td_fail(error, TDBG_MISUSE, "a test is missing after 'or'");
    }
    return TDBG_OK;
}

tdbg_status td_condition_init(struct td_condition *out, const char *text, struct tdbg_error *error)
{
    struct td_condition c = {0};
    tdbg_status status = parse_condition(&c, text, error);
    if (status == TDBG_OK)
        *out = c;
    else
        td_condition_release(&c);
    return status;
}

void td_condition_release(struct td_condition *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->tests[i].reference);
    *c = (struct td_condition){0};
}

const struct td_test *td_condition_meet(const struct td_condition *c, const struct tdbg_stats *stats)
{
    for (int i = 0; i < c->count; i++) {
        const struct td_test *t = &c->tests[i];
        if (t->kind == TD_TEST_DIVERGES)
            continue;
        double value = td_statistic_value(t->statistic, stats);
        if (t->kind == TD_TEST_LESS ? value < t->limit : value > t->limit)
            return t;
    }
    return NULL;
}

bool td_condition_needs_stats(const struct td_condition *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->tests[i].kind != TD_TEST_DIVERGES)
            return true;
    return false;
}

tdbg_status td_break_split(const char *text, char **pattern, char **condition, struct tdbg_error *error)
{
    const char *begin = skip_space(text), *rest;
    bool quoted = *begin == '"' || *begin == '\''; /* names may have blanks in them */
    char end[] = {quoted ? *begin++ : ' ', quoted ? 0 : '\t', 0};
    size_t length = strcspn(begin, end);
    if (length == 0)
        return td_fail(error, TDBG_MISUSE, "a pattern of tensor or scope names is missing");
    if (quoted && !begin[length])
        return td_fail(error, TDBG_MISUSE, "a quote is not closed");
    rest = skip_space(begin + length + quoted);
    if (*rest) {
        if (strncmp(rest, "if", 2) != 0 || !isspace((unsigned char)rest[2]))
            return td_fail(error, TDBG_MISUSE, "'if' and a condition may follow the pattern, not '%.60s'",
                           rest);
        rest = skip_space(rest + 2);
    }
    *pattern = strndup(begin, length);
    *condition = strdup(rest);
    if (*pattern && *condition)
        return TDBG_OK;
    free(*pattern);
    free(*condition);
    return td_fail_nomem(error);
}

/* --- watches -------------------------------------------------------------------------------------------- */

static tdbg_status split_watch(struct td_watch *w, const char *inside, size_t length)
{
    const char *bracket = length > 2 && inside[length - 1] == ']' ? memrchr(inside, '[', length) : NULL;
    size_t name = bracket && bracket > inside ? (size_t)(bracket - inside) : length;
    w->inside = strndup(inside, length);
    w->name = strndup(inside, name);
    w->slice = name < length ? strndup(bracket + 1, length - name - 2) : strdup("");
    return w->inside && w->name && w->slice ? TDBG_OK : TDBG_NOMEM;
}

tdbg_status td_watch_init(struct td_watch *out, const char *text, struct tdbg_error *error)
{
    struct td_watch w = {0};
    const char *word = skip_space(text);
    size_t length = word_length(word), total = strlen(word);
    while (total > 0 && isspace((unsigned char)word[total - 1]))
        total--;
    if (total < length + 3 || word[length] != '(' || word[total - 1] != ')')
        return td_fail(error, TDBG_MISUSE, "a watch looks like absmax(layers.3.output)");
    w.statistic = find_statistic(word, length);
    if (w.statistic < 0)
        return no_statistic(word, length, error);
    w.text = strndup(word, total);
    if (!w.text || split_watch(&w, word + length + 1, total - length - 2) != TDBG_OK) {
        td_watch_release(&w);
        return td_fail_nomem(error);
    }
    *out = w;
    return TDBG_OK;
}

void td_watch_release(struct td_watch *w)
{
    free(w->text);
    free(w->inside);
    free(w->name);
    free(w->slice);
    *w = (struct td_watch){0};
}

bool td_watch_fits(const struct td_watch *w, const char *name, const char **slice)
{
    bool exactly = strcmp(w->inside, name) == 0;
    *slice = exactly ? "" : w->slice;
    return exactly || td_pattern_fits(w->name, name);
}
