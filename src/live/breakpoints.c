/* breakpoints.c: the list of breakpoints of a control, from clients and from the environment. */
#include "live/control_core.h"

#include <stdlib.h>
#include <string.h>

static void destroy(struct breakpoint *b)
{
    free(b->pattern);
    free(b->text);
    td_condition_release(&b->condition);
    free(b);
}

static tdbg_status fill(struct td_control *c, struct breakpoint *b, const char *pattern, const char *when,
                        struct tdbg_error *error)
{
    b->pattern = strdup(pattern);
    b->text = strdup(when ? when : "");
    if (!b->pattern || !b->text)
        return td_fail_nomem(error);
    TD_TRY(td_condition_init(&b->condition, b->text, error));
    for (int i = 0; i < b->condition.count; i++)
        if (b->condition.tests[i].kind == TD_TEST_DIVERGES)
            TD_TRY(td_earlier_runs_find(&c->earlier, b->condition.tests[i].reference, &b->earlier[i], error));
    return TDBG_OK;
}

tdbg_status breakpoint_add(struct td_control *c, const char *pattern, const char *when, bool once,
                           bool always, int *number, struct tdbg_error *error)
{
    if (c->breakpoint_count == MOST_BREAKPOINTS)
        return td_fail(error, TDBG_LIMIT, "there are %d breakpoints already", MOST_BREAKPOINTS);
    struct breakpoint *b = calloc(1, sizeof *b);
    if (!b)
        return td_fail_nomem(error);
    tdbg_status status = fill(c, b, pattern, when, error);
    if (status != TDBG_OK) {
        destroy(b);
        return status;
    }
    b->number = ++c->breakpoint_number;
    b->enabled = true;
    b->once = once;
    b->always = always;
    c->breakpoints[c->breakpoint_count++] = b;
    *number = b->number;
    return TDBG_OK;
}

void breakpoint_remove(struct td_control *c, int index)
{
    destroy(c->breakpoints[index]);
    c->breakpoint_count--;
    memmove(&c->breakpoints[index], &c->breakpoints[index + 1],
            (size_t)(c->breakpoint_count - index) * sizeof *c->breakpoints);
}

void breakpoints_clear(struct td_control *c)
{
    while (c->breakpoint_count > 0)
        breakpoint_remove(c, c->breakpoint_count - 1);
}

void breakpoint_json(struct td_json *j, const struct breakpoint *b)
{
    td_json_begin_object(j);
    td_json_field_int(j, "number", b->number);
    td_json_field_string(j, "pattern", b->pattern);
    td_json_field_string(j, "when", b->text);
    td_json_field_bool(j, "enabled", b->enabled);
    td_json_field_bool(j, "once", b->once);
    td_json_field_string(j, "hold", b->always ? "always" : "attached");
    td_json_field_uint(j, "hits", b->hits);
    td_json_end_object(j);
}

static tdbg_status add_text(struct td_control *c, const char *text, struct tdbg_error *error)
{
    char *pattern, *condition;
    int number;
    TD_TRY(td_break_split(text, &pattern, &condition, error));
    tdbg_status status = breakpoint_add(c, pattern, condition, false, true, &number, error);
    free(pattern);
    free(condition);
    return status;
}

static tdbg_status add_all(struct td_control *c, const char *texts, struct tdbg_error *error)
{
    while (*texts) {
        size_t length = strcspn(texts, ";");
        char *text = strndup(texts, length);
        tdbg_status status = text ? TDBG_OK : td_fail_nomem(error);
        if (status == TDBG_OK && text[strspn(text, " \t")])
            status = add_text(c, text, error);
        free(text);
        TD_TRY(status);
        texts += length + (texts[length] == ';');
    }
    return TDBG_OK;
}

tdbg_status breakpoints_from_environment(struct td_control *c, struct tdbg_error *error)
{
    const char *wait = getenv("TDBG_WAIT"), *texts = getenv("TDBG_BREAK");
    if (wait && *wait && strcmp(wait, "0") != 0)
        c->plan = (struct plan){.kind = PLAN_STEP, .any_thread = true, .always = true};
    if (texts && add_all(c, texts, error) != TDBG_OK) {
        td_error_prefix(error, "TDBG_BREAK");
        return error ? error->status : TDBG_MISUSE;
    }
    return TDBG_OK;
}
