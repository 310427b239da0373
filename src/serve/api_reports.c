/* api_reports.c: the reports of `tdbg diff` as downloads; see docs/api.md.
 *
 * A report is made from the comparison itself, which is held while it is written. The document of the result
 * is the exception: it lies in the store as it was first made.
 */
#include "report/diff_csv.h"
#include "report/diff_html.h"
#include "report/diff_junit.h"
#include "serve/desk.h"
#include "serve/request.h"
#include "session/pairs_file.h"

#include <stdlib.h>

struct report {
    struct td_desk *desk;
    const struct td_open_comparison *opened;
    void (*print)(FILE *out, const struct td_diff *diff);
};

static tdbg_status write_report(void *context, FILE *out)
{
    const struct report *r = context;
    r->print(out, r->opened->diff);
    return TDBG_OK; /* the stream remembers what could not be written */
}

static void release_report(void *context)
{
    struct report *r = context;
    td_desk_return(r->desk, &r->opened);
    free(r);
}

static void answer_report(struct td_exchange *x, const char *type, const char *file_name,
                          void (*print)(FILE *out, const struct td_diff *diff))
{
    struct tdbg_error error;
    if (!td_may_wait(x))
        return;
    struct report *r = calloc(1, sizeof *r);
    if (!r) {
        td_answer_error(x, 503, "out of memory");
        return;
    }
    *r = (struct report){.desk = x->desk, .print = print};
    if (td_desk_borrow(x->desk, x->parameter[0], &r->opened, &error) != TDBG_OK) {
        td_answer_failure(x, &error);
        release_report(r);
    } else if (!r->opened->diff) {
        td_answer_error(x, 409, "a single input is explored: there is no comparison to report");
        release_report(r);
    } else {
        td_answer_file(x, type, file_name, &(struct td_producer){r, write_report, release_report});
    }
}

static void html(struct td_exchange *x)
{
    answer_report(x, "text/html; charset=utf-8", "report.html", td_diff_html);
}

static void csv(struct td_exchange *x)
{
    answer_report(x, "text/csv; charset=utf-8", "report.csv", td_diff_csv);
}

static void junit(struct td_exchange *x)
{
    answer_report(x, "application/xml", "report.xml", td_diff_junit);
}

static void print_pairs(FILE *out, const struct td_diff *diff)
{
    (void)!td_pairs_print(&diff->result.matches, out, NULL); /* the stream remembers */
}

static void pairs(struct td_exchange *x)
{
    answer_report(x, "application/json", "pairs.json", print_pairs);
}

static void json(struct td_exchange *x)
{
    struct td_buffer body;
    struct tdbg_error error;
    if (!td_may_wait(x))
        return;
    td_buffer_init(&body, TD_MAX_METADATA);
    if (td_desk_result(x->desk, x->parameter[0], &body, &error) == TDBG_OK) {
        td_answer_header(x, "Content-Disposition", "attachment; filename=\"report.json\"");
        td_answer_json(x, 200, &body);
    } else {
        td_answer_failure(x, &error);
    }
    td_buffer_release(&body);
}

const struct td_route td_routes_reports[] = {
    {"GET", "/api/v1/comparisons/{}/report.html", TD_BODY_NONE, html},
    {"GET", "/api/v1/comparisons/{}/report.csv", TD_BODY_NONE, csv},
    {"GET", "/api/v1/comparisons/{}/report.xml", TD_BODY_NONE, junit},
    {"GET", "/api/v1/comparisons/{}/report.json", TD_BODY_NONE, json},
    {"GET", "/api/v1/comparisons/{}/pairs.json", TD_BODY_NONE, pairs},
    {0},
};
