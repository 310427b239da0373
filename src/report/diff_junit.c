/* diff_junit.c: see diff_junit.h. Diverged pairs are failures, pairs that could not be compared are errors,
 * tensors without a partner and what could not be read are skipped. Where too
 * little is paired to say anything, that is a failure of its own. */
#include "report/diff_junit.h"

#include "report/diff_words.h"
#include "report/markup.h"

void td_junit_findings(FILE *out, const struct td_diagnosis *diagnosis)
{
    for (int i = 0; i < diagnosis->count; i++) {
        const struct td_finding *f = &diagnosis->list[i];
        fputs(td_mistake_name(f->kind), out);
        if (f->kind != TD_IS_UNKNOWN)
            fprintf(out, " (%.2f)", f->confidence);
        fputs(": ", out);
        td_markup_text(out, f->detail);
        putc('\n', out);
    }
}

static void put_property(FILE *out, const char *name, const char *value)
{
    fprintf(out, "<property name=\"%s\" value=\"", name);
    td_markup_text(out, value);
    fputs("\"/>", out);
}

/* Which tensors the case is about, where its own name does not say it, and how sure that is. */
static void put_pairing(FILE *out, const struct td_pair *p)
{
    struct td_buffer doubt;
    td_buffer_init(&doubt, 1 << 12);
    bool doubtful = td_pair_doubt(&doubt, p->match);
    if (doubtful || td_pair_renamed(p)) {
        fputs("<properties>", out);
        put_property(out, "a", p->a->name);
        put_property(out, "b", p->b->name);
        if (doubtful)
            put_property(out, "doubt", td_buffer_text(&doubt));
        if (p->match && p->match->evidence)
            put_property(out, "evidence", p->match->evidence);
        fputs("</properties>", out);
    }
    td_buffer_release(&doubt);
}

static void put_case(FILE *out, const struct td_pair *p)
{
    char class[32] = "tensors";
    if (p->layer >= 0)
        snprintf(class, sizeof class, "layer %lld", (long long)p->layer);
    fputs("  <testcase classname=\"", out);
    td_markup_text(out, class);
    fputs("\" name=\"", out);
    td_markup_text(out, p->stage);
    fputs("\">", out);
    put_pairing(out, p);
    static const char *const elements[] = {
        [TD_DIVERGED] = "failure", [TD_ERROR] = "error", [TD_ONLY_A] = "skipped", [TD_ONLY_B] = "skipped"};
    const char *element = elements[p->outcome.ruling.verdict];
    if (element) {
        fprintf(out, "<%s message=\"", element);
        td_markup_text(out, p->outcome.ruling.reason);
        fputs("\">", out);
        if (p->outcome.diagnosis)
            td_junit_findings(out, p->outcome.diagnosis);
        fprintf(out, "</%s>", element);
    }
    fputs("</testcase>\n", out);
}

static void put_unread(FILE *out, const struct td_input *input)
{
    for (size_t i = 0; i < td_input_skips(input); i++) {
        fputs("  <testcase classname=\"unreadable\" name=\"", out);
        td_markup_text(out, td_input_skip(input, i)->name);
        fputs("\"><skipped message=\"", out);
        td_markup_text(out, td_input_skip(input, i)->reason);
        fputs("\"></skipped></testcase>\n", out);
    }
}

/* Too little is paired to tell: no pair can say so. */
static void put_coverage(FILE *out, const struct td_diff *diff)
{
    struct td_buffer text;
    if (diff->result.summary.enough)
        return;
    td_buffer_init(&text, 1 << 16);
    td_diff_cover(&text, &diff->result.summary);
    fputs("  <testcase classname=\"comparison\" name=\"coverage\">"
          "<failure message=\"not enough paired to say: ",
          out);
    td_markup_text(out, td_buffer_text(&text));
    fputs("\"></failure></testcase>\n", out);
    td_buffer_release(&text);
}

void td_diff_junit(FILE *out, const struct td_diff *diff)
{
    const struct td_summary *s = &diff->result.summary;
    size_t unread = td_input_skips(diff->a) + td_input_skips(diff->b);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"tdbg diff ", out);
    td_markup_text(out, td_input_path(diff->a));
    putc(' ', out);
    td_markup_text(out, td_input_path(diff->b));
    fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n",
            diff->result.count + unread + !s->enough, s->diverged + !s->enough, s->errors,
            s->only_a + s->only_b + unread);
    put_coverage(out, diff);
    for (size_t i = 0; i < diff->result.count; i++)
        put_case(out, &diff->result.pairs[i]);
    put_unread(out, diff->a);
    put_unread(out, diff->b);
    struct td_buffer text;
    td_buffer_init(&text, 1 << 16);
    td_diff_conclude(&text, diff);
    fputs("  <system-out>", out);
    td_markup_text(out, td_buffer_text(&text));
    fputs("</system-out>\n</testsuite>\n</testsuites>\n", out);
    td_buffer_release(&text);
}
