/* diff_html.c: see diff_html.h.
 *
 * page/report.html with its {{slots}} filled in: the words a person reads first are in the page as text, the
 * whole comparison and the values around the worst element as JSON, which page/report.js draws. Names come
 * from files and may be anything: they are escaped here, the script uses them as text only, and the page's
 * policy lets no other script run.
 */
#include "report/diff_html.h"

#include "report/diff_json.h"
#include "report/diff_values.h"
#include "report/diff_words.h"
#include "report/markup.h"
#include "report/page.h"

#include <string.h>

typedef void slot(FILE *out, const struct td_diff *diff);

static void put_words(FILE *out, const struct td_diff *diff,
                      void (*say)(struct td_buffer *, const struct td_diff *))
{
    struct td_buffer text;
    td_buffer_init(&text, 1 << 16);
    say(&text, diff);
    td_markup_text(out, td_buffer_text(&text));
    td_buffer_release(&text);
}

static void put_count(FILE *out, const struct td_input *input)
{
    size_t n = td_input_count(input);
    fprintf(out, "%zu %s", n, n == 1 ? "tensor" : "tensors");
}

static void put_css(FILE *out, const struct td_diff *diff)
{
    (void)diff;
    fputs(td_page_css, out);
}

static void put_css_sha256(FILE *out, const struct td_diff *diff)
{
    (void)diff;
    fputs(td_page_css_sha256, out);
}

static void put_js(FILE *out, const struct td_diff *diff)
{
    (void)diff;
    fputs(td_page_js, out);
}

static void put_js_sha256(FILE *out, const struct td_diff *diff)
{
    (void)diff;
    fputs(td_page_js_sha256, out);
}

static void put_version(FILE *out, const struct td_diff *diff)
{
    (void)diff;
    fputs(TDBG_VERSION, out);
}

static void put_title(FILE *out, const struct td_diff *diff)
{
    td_markup_text(out, td_input_path(diff->a));
    fputs(" against ", out);
    td_markup_text(out, td_input_path(diff->b));
    fputs(" - tdbg diff", out);
}

static void put_outcome(FILE *out, const struct td_diff *diff)
{
    const struct td_summary *s = &diff->result.summary;
    fputs(diff->result.first ? "diverged" : s->errors || !s->enough ? "error" : "same", out);
}

static void put_outcome_words(FILE *out, const struct td_diff *diff)
{
    fputs(diff->result.first             ? "They differ"
          : !diff->result.summary.enough ? "Not enough is paired to say"
          : diff->result.summary.errors  ? "Not all could be compared"
                                         : "They agree",
          out);
}

static void put_first_title(FILE *out, const struct td_diff *diff)
{
    fputs(diff->side_a.order == TD_ORDER_UNKNOWN ? "Largest divergence" : "First divergence", out);
}

static void put_path_a(FILE *out, const struct td_diff *diff)
{
    td_markup_text(out, td_input_path(diff->a));
}

static void put_path_b(FILE *out, const struct td_diff *diff)
{
    td_markup_text(out, td_input_path(diff->b));
}

static void put_count_a(FILE *out, const struct td_diff *diff)
{
    put_count(out, diff->a);
}

static void put_count_b(FILE *out, const struct td_diff *diff)
{
    put_count(out, diff->b);
}

static void put_rule(FILE *out, const struct td_diff *diff)
{
    const struct td_tolerance *t = &diff->policy.tolerance;
    switch (diff->policy.kind) {
    case TD_POLICY_NOISE:
        fputs("what rounding explains, given the types and the depth (noise)", out);
        break;
    case TD_POLICY_STRICT:
        fputs("tolerances of each type (strict)", out);
        break;
    case TD_POLICY_TOLERANCE:
        fprintf(out, "rtol %g, atol %g", t->rtol, t->atol);
        break;
    case TD_POLICY_REFERENCE:
        fputs("B may be 3 times as far from the reference as A: ", out);
        td_markup_text(out, diff->reference);
        break;
    }
}

static void put_conclusion(FILE *out, const struct td_diff *diff)
{
    put_words(out, diff, td_diff_conclude);
}

static void put_summary(FILE *out, const struct td_diff *diff)
{
    put_words(out, diff, td_diff_summarise);
}

static void put_note_list(FILE *out, const char *const *notes, size_t count)
{
    fputs("<ul class=\"notes\">", out);
    for (size_t i = 0; i < count; i++) {
        fputs("<li>", out);
        td_markup_text(out, notes[i]);
        fputs("</li>", out);
    }
    fputs("</ul>", out);
}

/* A few in sight; a dump that is wrong throughout has dozens. */
static void put_notes(FILE *out, const struct td_diff *diff)
{
    enum { IN_SIGHT = 3 };
    const char *const *notes = (const char *const *)diff->result.notes;
    size_t shown = diff->result.note_count < IN_SIGHT ? diff->result.note_count : IN_SIGHT,
           left = diff->result.note_count - shown;
    if (shown == 0)
        return;
    put_note_list(out, notes, shown);
    if (left == 0)
        return;
    fprintf(out, "<details><summary>%zu more %s about the dumps</summary>", left,
            left == 1 ? "note" : "notes");
    put_note_list(out, notes + shown, left);
    fputs("</details>", out);
}

static void put_diff(FILE *out, const struct td_diff *diff)
{
    struct td_json json;
    td_json_to_html(&json, out);
    td_diff_json(&json, diff, NULL);
    (void)td_json_finish(&json); /* the file remembers */
}

static void put_values(FILE *out, const struct td_diff *diff)
{
    struct td_json json;
    td_json_to_html(&json, out);
    td_values_json(&json, diff->result.first);
    (void)td_json_finish(&json);
}

static slot *find_slot(const char *name, size_t length)
{
    static const struct {
        const char *name;
        slot *put;
    } slots[] = {
        {"css", put_css},
        {"css_sha256", put_css_sha256},
        {"js", put_js},
        {"js_sha256", put_js_sha256},
        {"version", put_version},
        {"title", put_title},
        {"outcome", put_outcome},
        {"outcome_words", put_outcome_words},
        {"path_a", put_path_a},
        {"path_b", put_path_b},
        {"count_a", put_count_a},
        {"count_b", put_count_b},
        {"rule", put_rule},
        {"conclusion", put_conclusion},
        {"summary", put_summary},
        {"notes", put_notes},
        {"first_title", put_first_title},
        {"diff", put_diff},
        {"values", put_values},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (strlen(slots[i].name) == length && memcmp(slots[i].name, name, length) == 0)
            return slots[i].put;
    return NULL;
}

void td_diff_html(FILE *out, const struct td_diff *diff)
{
    const char *at = td_page_html;
    for (const char *open; (open = strstr(at, "{{")); at = strstr(open, "}}") + 2) {
        const char *name = open + 2;
        slot *put = find_slot(name, (size_t)(strstr(name, "}}") - name));
        fwrite(at, 1, (size_t)(open - at), out);
        if (put)
            put(out, diff);
    }
    fputs(at, out);
}
