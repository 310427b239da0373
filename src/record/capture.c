/* capture.c: see capture.h. */
#include "record/capture.h"

#include "base/pattern.h"
#include "tensor/slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *trim(char *text)
{
    while (strchr(" \t\n", *text) && *text)
        text++;
    for (size_t n = strlen(text); n && strchr(" \t\n", text[n - 1]); n--)
        text[n - 1] = 0;
    return text;
}

/* A number that ends at `*end`; false when there is none. */
static bool read_number(const char *text, const char **end, int64_t *out)
{
    char *stop;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    if (stop == text || errno || value < 0)
        return false;
    *end = stop;
    *out = value;
    return true;
}

/* "every:N", "N", "FIRST:LAST:STRIDE" with any part missing. */
static bool read_steps(struct td_rule *rule, const char *text)
{
    int64_t *parts[] = {&rule->first, &rule->last, &rule->stride};
    if (strncmp(text, "every:", 6) == 0)
        return read_number(text + 6, &text, &rule->stride) && !*text && rule->stride > 0;
    if (!strchr(text, ':')) {
        bool good = read_number(text, &text, &rule->first) && !*text;
        rule->last = rule->first;
        return good;
    }
    for (int i = 0; i < 3; i++) {
        if (*text && *text != ':' && !read_number(text, &text, parts[i]))
            return false;
        if (!*text)
            return rule->stride > 0;
        if (*text++ != ':')
            return false;
    }
    return false;
}

static bool read_kind(struct td_rule *rule, char *text)
{
    static const struct {
        const char *name;
        enum td_keep keep;
    } kinds[] = {
        {"full", TD_KEEP_FULL}, {"stats", TD_KEEP_STATS}, {"sketch", TD_KEEP_SKETCH}, {"none", TD_KEEP_NONE}};
    if (strncmp(text, "slice:", 6) == 0) {
        rule->keep = TD_KEEP_SLICE;
        rule->slice = text + 6;
        return *rule->slice != 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(text, kinds[i].name) == 0) {
            rule->keep = kinds[i].keep;
            return true;
        }
    return false;
}

/* A slice that no tensor can have would leave every one without values, and nobody would know why. */
static tdbg_status check_slice(const struct td_rule *rule, struct tdbg_error *error)
{
    struct tdbg_error why;
    tdbg_status status = td_slice_check(rule->slice, &why);
    return status == TDBG_OK
               ? status
               : td_fail(error, status, "capture rule for \"%s\": %s", rule->pattern, why.message);
}

static tdbg_status read_rule(struct td_rule *rule, char *text, struct tdbg_error *error)
{
    *rule = (struct td_rule){.first = INT64_MIN, .last = INT64_MAX, .stride = 1};
    char *kind = strchr(text, '='); /* a slice may hold no "=", a pattern cannot either */
    if (!kind || kind == text)
        return td_fail(error, TDBG_MISUSE, "capture rule \"%s\": expected PATTERN[@STEPS]=KIND", text);
    *kind++ = 0;
    char *steps = strrchr(text, '@');
    if (steps)
        *steps++ = 0;
    rule->pattern = trim(text);
    if (!read_kind(rule, trim(kind)))
        return td_fail(
            error, TDBG_MISUSE,
            "capture rule for \"%s\": kind \"%s\" is none of full, stats, sketch, slice:EXPR, none",
            rule->pattern, kind);
    if (rule->keep == TD_KEEP_SLICE)
        TD_TRY(check_slice(rule, error));
    if (steps && !read_steps(rule, trim(steps)))
        return td_fail(error, TDBG_MISUSE,
                       "capture rule for \"%s\": steps \"%s\" are neither FIRST:LAST:STRIDE nor every:N",
                       rule->pattern, steps);
    return TDBG_OK;
}

static tdbg_status read_rules(struct td_capture *c, struct tdbg_error *error)
{
    for (char *rest = c->pieces, *piece; (piece = strsep(&rest, ";\n"));) {
        piece = trim(piece);
        if (!*piece)
            continue;
        if (c->count == TD_MAX_RULES)
            return td_fail(error, TDBG_LIMIT, "more than %d capture rules", TD_MAX_RULES);
        TD_TRY(read_rule(&c->rules[c->count], piece, error));
        c->count++;
    }
    return TDBG_OK;
}

tdbg_status td_capture_parse(struct td_capture **out, const char *text, struct td_capture *older,
                             struct tdbg_error *error)
{
    struct td_capture *c = calloc(1, sizeof *c);
    if (!c)
        return td_fail_nomem(error);
    c->generation = older ? older->generation + 1 : 1;
    c->text = strdup(text);
    c->pieces = strdup(text);
    tdbg_status status = c->text && c->pieces ? read_rules(c, error) : td_fail_nomem(error);
    if (status != TDBG_OK) {
        td_capture_free(c);
        return status;
    }
    c->older = older;
    *out = c;
    return TDBG_OK;
}

void td_capture_free(struct td_capture *capture)
{
    while (capture) {
        struct td_capture *older = capture->older;
        free(capture->text);
        free(capture->pieces);
        free(capture);
        capture = older;
    }
}

const struct td_rule *td_capture_rule(const struct td_capture *capture, struct td_node *name, int64_t step)
{
    if (name->generation != capture->generation) {
        name->generation = capture->generation;
        name->rules = 0;
        for (int i = 0; i < capture->count; i++)
            if (td_pattern_fits(capture->rules[i].pattern, name->name))
                name->rules |= UINT64_C(1) << i;
    }
    for (uint64_t left = name->rules; left; left &= left - 1) {
        const struct td_rule *rule = &capture->rules[__builtin_ctzll(left)];
        int64_t from = rule->first == INT64_MIN ? 0 : rule->first; /* strides count from 0 without it */
        if (step >= rule->first && step <= rule->last && (step - from) % rule->stride == 0)
            return rule;
    }
    return NULL;
}
