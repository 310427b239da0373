/* regex.c: the user's rule, FROM=>TO: what FROM matches in a name of A is replaced by TO, and that is
 * the name in B. Captures are \1 or $1. A rule written the other way round, from B's names to A's, is
 * understood when it fits no name of A.
 *
 * PCRE2 does the work, with its limits set: a rule that backtracks without end fails, it does not hang.
 */
#include "compare/match/strategy.h"

#include "base/buffer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

enum { MATCH_LIMIT = 1000000, DEPTH_LIMIT = 10000, MAX_RESULT = 4 * TD_MAX_NAME };

struct rule {
    pcre2_code *code;
    pcre2_match_context *context;
    struct td_buffer replacement; /* in PCRE2's notation */
};

static void rule_release(struct rule *rule)
{
    pcre2_code_free(rule->code);
    pcre2_match_context_free(rule->context);
    td_buffer_release(&rule->replacement);
}

/* \1 and $1 become ${1}; any other \x is x itself. */
static void translate(struct td_buffer *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        bool escape = *p == '\\' && p[1];
        size_t digits = strspn(p + 1, "0123456789");
        if ((*p == '\\' || *p == '$') && digits) {
            td_buffer_printf(out, "${%.*s}", (int)digits, p + 1);
            p += digits;
        } else if (*p == '$' && p[1] == '{') {
            td_buffer_append(out, p, 1);
        } else {
            p += escape;
            td_buffer_append(out, *p == '$' ? "$$" : p, *p == '$' ? 2 : 1);
        }
    }
}

static tdbg_status rule_init(struct rule *rule, const char *text, struct tdbg_error *error)
{
    *rule = (struct rule){0};
    td_buffer_init(&rule->replacement, MAX_RESULT);
    const char *arrow = strstr(text, "=>");
    if (!arrow)
        return td_fail(error, TDBG_MISUSE, "rule '%s' is not regex:FROM=>TO", text);
    int code;
    PCRE2_SIZE at;
    rule->code = pcre2_compile((PCRE2_SPTR)text, (PCRE2_SIZE)(arrow - text),
                               PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (!rule->code) {
        PCRE2_UCHAR why[160];
        pcre2_get_error_message(code, why, sizeof why);
        return td_fail(error, TDBG_MISUSE, "regular expression '%.*s': %s (at character %zu)",
                       (int)(arrow - text), text, (const char *)why, (size_t)at);
    }
    rule->context = pcre2_match_context_create(NULL);
    translate(&rule->replacement, arrow + 2);
    if (!rule->context || rule->replacement.failed)
        return td_fail_nomem(error);
    pcre2_set_match_limit(rule->context, MATCH_LIMIT);
    pcre2_set_depth_limit(rule->context, DEPTH_LIMIT);
    return TDBG_OK;
}

/* The name that the rule makes of `name`; *out is NULL when it does not fit. */
static tdbg_status apply(struct rule *rule, struct td_arena *arena, const char *name, const char **out,
                         struct tdbg_error *error)
{
    PCRE2_UCHAR result[MAX_RESULT];
    PCRE2_SIZE length = sizeof result;
    int n = pcre2_substitute(rule->code, (PCRE2_SPTR)name, PCRE2_ZERO_TERMINATED, 0, 0, NULL, rule->context,
                             (PCRE2_SPTR)td_buffer_text(&rule->replacement), rule->replacement.size, result,
                             &length);
    *out = NULL;
    if (n < 0) {
        PCRE2_UCHAR why[160];
        pcre2_get_error_message(n, why, sizeof why);
        return td_fail(error, TDBG_MISUSE, "rule on '%s': %s", name, (const char *)why);
    }
    if (n > 0 && !(*out = td_arena_strndup(arena, (const char *)result, length)))
        return td_fail_nomem(error);
    return TDBG_OK;
}

static const char *full_name(struct td_matching *m, enum td_which which, size_t index)
{
    return m->side[which]->items[index].name;
}

/* Pairs the names of `from` with what the rule makes of them: a full name, else the bare name of only one. */
static tdbg_status apply_to_side(struct td_matching *m, struct rule *rule, enum td_which from,
                                 struct tdbg_error *error)
{
    struct td_keys full, bare;
    TD_TRY(td_keys_init(&full, m, !from, full_name, error));
    TD_TRY(td_keys_init(&bare, m, !from, td_bare_name, error));
    for (size_t i = 0; i < m->side[from]->count; i++) {
        const char *wanted = NULL;
        size_t first;
        if (m->paired[from][i])
            continue;
        TD_TRY(apply(rule, &m->scratch, m->side[from]->items[i].name, &wanted, error));
        if (!wanted)
            continue;
        const struct td_keys *keys = &full;
        if (td_keys_find(keys, wanted, &first) == 0) {
            keys = &bare;
            if (td_keys_find(keys, wanted, &first) != 1)
                continue;
        }
        size_t partner = keys->list[first].index;
        if (!m->paired[!from][partner])
            td_pair(m, from == TD_SIDE_A ? i : partner, from == TD_SIDE_A ? partner : i, TD_MATCH_REGEX);
    }
    return TDBG_OK;
}

tdbg_status td_match_regex(struct td_matching *m, const char *argument, struct tdbg_error *error)
{
    struct rule rule;
    size_t before = m->count;
    tdbg_status status = rule_init(&rule, argument, error);
    if (status == TDBG_OK)
        status = apply_to_side(m, &rule, TD_SIDE_A, error);
    if (status == TDBG_OK && m->count == before)
        status = apply_to_side(m, &rule, TD_SIDE_B, error);
    rule_release(&rule);
    return status;
}
