/* batch_report.c: see batch_report.h. */
#include "report/batch_report.h"

#include "report/diff_json.h"
#include "report/diff_junit.h"
#include "report/markup.h"

struct td_batch_summary td_batch_summarise(const struct td_batch *batch)
{
    struct td_batch_summary s = {0};
    for (size_t i = 0; i < batch->count; i++) {
        const struct td_batch_entry *c = &batch->list[i];
        s.same += c->outcome == TD_SAME;
        s.diverged += c->outcome == TD_DIFFERENT;
        s.errors += c->outcome == TD_FAILED;
        s.unexpected += c->outcome != TD_FAILED && !td_batch_as_expected(c);
    }
    return s;
}

static void put_first(struct td_json *j, const struct td_first *first)
{
    td_json_key(j, "first_divergence");
    if (!first) {
        td_json_null(j);
        return;
    }
    td_json_begin_object(j);
    td_json_field_uint(j, "index", first->index);
    td_json_key(j, "layer");
    first->layer >= 0 ? td_json_int(j, first->layer) : td_json_null(j);
    td_json_field_string(j, "stage", first->stage);
    td_json_field_string(j, "name", first->name);
    td_diagnosis_json(j, &first->diagnosis);
    td_json_end_object(j);
}

static void put_comparison(struct td_json *j, const struct td_batch_entry *c)
{
    td_json_begin_object(j);
    td_json_field_string(j, "name", c->name);
    td_json_field_string(j, "a", c->a);
    td_json_field_string(j, "b", c->b);
    td_json_field_string(j, "status", td_batch_outcome_name(c->outcome));
    td_json_field_string(j, "expected", td_batch_outcome_name(c->expected));
    td_json_field_bool(j, "ok", td_batch_as_expected(c));
    char why[sizeof c->error.message + 32];
    if (c->outcome == TD_FAILED)
        td_json_field_string(j, "error", td_error_text(&c->error, why, sizeof why));
    put_first(j, c->first);
    td_summary_json(j, &c->summary);
    td_json_end_object(j);
}

void td_batch_json(struct td_json *j, const struct td_batch *batch)
{
    struct td_batch_summary s = td_batch_summarise(batch);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_key(j, "comparisons");
    td_json_begin_array(j);
    for (size_t i = 0; i < batch->count; i++)
        put_comparison(j, &batch->list[i]);
    td_json_end_array(j);
    td_json_key(j, "summary");
    td_json_begin_object(j);
    td_json_field_uint(j, "comparisons", batch->count);
    td_json_field_uint(j, "same", s.same);
    td_json_field_uint(j, "diverged", s.diverged);
    td_json_field_uint(j, "errors", s.errors);
    td_json_field_uint(j, "unexpected", s.unexpected);
    td_json_end_object(j);
    td_json_end_object(j);
}

static void put_case(FILE *out, const struct td_batch_entry *c)
{
    char why[sizeof c->error.message + 32];
    fputs("  <testcase classname=\"batch\" name=\"", out);
    td_markup_text(out, c->name);
    fputs("\">", out);
    if (c->outcome == TD_FAILED) {
        fputs("<error message=\"", out);
        td_markup_text(out, td_error_text(&c->error, why, sizeof why));
        fputs("\"/>", out);
    } else if (!td_batch_as_expected(c)) {
        fprintf(out, "<failure message=\"%s, expected %s", td_batch_outcome_name(c->outcome),
                td_batch_outcome_name(c->expected));
        if (c->first) {
            fputs("; first ", out);
            td_markup_text(out, c->first->place);
        }
        fputs("\">", out);
        if (c->first)
            td_junit_findings(out, &c->first->diagnosis);
        fputs("</failure>", out);
    }
    fputs("</testcase>\n", out);
}

void td_batch_junit(FILE *out, const char *name, const struct td_batch *batch)
{
    struct td_batch_summary s = td_batch_summarise(batch);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"tdbg batch ", out);
    td_markup_text(out, name);
    fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\">\n", batch->count,
            s.unexpected, s.errors);
    for (size_t i = 0; i < batch->count; i++)
        put_case(out, &batch->list[i]);
    fputs("</testsuite>\n</testsuites>\n", out);
}
