/* memory_text.c: see memory_text.h. */
#include "cli/memory_text.h"

#include "cli/memory_chart.h"
#include "cli/table.h"
#include "cli/text.h"
#include "report/memory_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static double seconds(const struct td_memory_report *r, int64_t time_ns)
{
    return 1e-9 * (double)(time_ns - r->begin_ns);
}

static void heading(const struct memory_text *t, const char *text)
{
    fprintf(t->term->file, "%s%s%s", term_style(t->term, STYLE_BOLD), text, term_style(t->term, STYLE_PLAIN));
}

static void cell_size(struct table *table, uint64_t bytes)
{
    char size[SIZE_TEXT];
    table_cell(table, text_size(size, bytes));
}

static void cell_count(struct table *table, uint64_t count)
{
    table_cellf(table, "%" PRIu64, count);
}

/* The frames of a call, indented; the innermost is in the line above already. */
static void put_stack(const struct memory_text *t, const char *stack)
{
    while (stack && *stack) {
        size_t length = strcspn(stack, "\n");
        char frame[600];
        snprintf(frame, sizeof frame, "%.*s", (int)length, stack);
        fputs("      at ", t->term->file);
        term_put_elided(t->term, frame, t->term->width > 20 ? (size_t)t->term->width - 9 : 100);
        fputc('\n', t->term->file);
        stack += length + (stack[length] == '\n');
    }
}

/* --- Peak ----------------------------------------------------------------------------------------------- */

static void put_peak(const struct memory_text *t, const struct td_memory_story *s)
{
    static const struct column columns[] = {{"held", true, false, 0},
                                            {"share", true, false, 0},
                                            {"blocks", true, false, 0},
                                            {"by", false, true, 0}};
    const struct td_memory_view *peak = &s->report.views[TD_MOMENT_PEAK];
    struct table table;
    char size[SIZE_TEXT], reserved[SIZE_TEXT];
    size_t count = 0;
    uint32_t *list = td_memory_largest(&s->report, td_memory_by_peak, t->top, &count);
    fputc('\n', t->term->file);
    heading(t, "peak: ");
    fprintf(t->term->file, "%s in %" PRIu64 " block%s after %.3g s", text_size(size, peak->live.bytes),
            peak->live.blocks, text_plural(peak->live.blocks), seconds(&s->report, peak->time_ns));
    if (peak->reserved)
        fprintf(t->term->file, ", %s reserved", text_size(reserved, peak->reserved));
    fputc('\n', t->term->file);
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; list && i < count; i++) {
        const struct td_memory_group *g = &s->report.groups[list[i]];
        cell_size(&table, g->at[TD_MOMENT_PEAK].bytes);
        table_cellf(&table, "%.1f %%", 100 * (double)g->at[TD_MOMENT_PEAK].bytes / (double)peak->live.bytes);
        cell_count(&table, g->at[TD_MOMENT_PEAK].blocks);
        table_cell(&table, s->labels[list[i]].name);
    }
    if (count)
        table_print(&table, t->term, 0);
    table_release(&table);
    free(list);
}

/* --- What is still held --------------------------------------------------------------------------------- */

static void put_growth(struct table *table, const struct td_memory_group *g, const struct td_memory_report *r)
{
    char rate[SIZE_TEXT], text[64];
    if (!g->grows) {
        snprintf(text, sizeof text, "since %.3g s", seconds(r, g->last_ns));
        table_cell_styled(table, STYLE_DIM, text);
        return;
    }
    snprintf(text, sizeof text, "grows %s/s", text_size(rate, g->rate < 1e18 ? (uint64_t)g->rate : 0));
    table_cell_styled(table, STYLE_RED, text);
}

static void put_held_rows(const struct memory_text *t, const struct td_memory_story *s, const uint32_t *list,
                          size_t count)
{
    static const struct column columns[] = {{"held", true, false, 0},
                                            {"blocks", true, false, 0},
                                            {"of", true, false, 1},
                                            {"growth", false, false, 0},
                                            {"allocated by", false, true, 0}};
    struct table table;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++) {
        const struct td_memory_group *g = &s->report.groups[list[i]];
        cell_size(&table, g->at[TD_MOMENT_END].bytes);
        cell_count(&table, g->at[TD_MOMENT_END].blocks);
        cell_count(&table, g->asked.blocks);
        put_growth(&table, g, &s->report);
        table_cell(&table, s->labels[list[i]].name);
    }
    if (count)
        table_print(&table, t->term, 0);
    table_release(&table);
}

static void put_leak(const struct memory_text *t, const struct td_memory_story *s, uint32_t index)
{
    char size[SIZE_TEXT];
    const struct td_memory_group *g = &s->report.groups[index];
    const struct td_memory_label *label = &s->labels[index];
    fprintf(t->term->file, "%sleak:%s %s in %" PRIu64 " blocks, growing to the end, from%s%s\n",
            term_style(t->term, STYLE_RED), term_style(t->term, STYLE_PLAIN),
            text_size(size, g->at[TD_MOMENT_END].bytes), g->at[TD_MOMENT_END].blocks, label->stack ? "" : " ",
            label->stack ? "" : label->name);
    put_stack(t, label->stack);
}

static void put_held(const struct memory_text *t, const struct td_memory_story *s)
{
    const struct td_memory_view *end = &s->report.views[TD_MOMENT_END];
    char size[SIZE_TEXT];
    size_t count = 0;
    uint32_t *list = td_memory_largest(&s->report, td_memory_by_end, t->top, &count);
    if (!t->quiet) {
        fputc('\n', t->term->file);
        heading(t, "still held at the end: ");
        fprintf(t->term->file, "%s in %" PRIu64 " block%s\n", text_size(size, end->live.bytes),
                end->live.blocks, text_plural(end->live.blocks));
        if (list)
            put_held_rows(t, s, list, count);
    }
    for (size_t i = 0; list && i < count; i++)
        if (s->judged && s->report.groups[list[i]].grows)
            put_leak(t, s, list[i]);
    free(list);
}

/* --- Fragmentation -------------------------------------------------------------------------------------- */

static void put_views(const struct memory_text *t, const struct td_memory_report *r)
{
    static const struct column columns[] = {
        {"moment", false, false, 0},    {"after", true, false, 2},    {"live", true, false, 0},
        {"pages", true, false, 1},      {"reserved", true, false, 0}, {"span", true, false, 0},
        {"free in it", true, false, 0}, {"holes", true, false, 0},    {"largest", true, false, 0}};
    enum { RESERVED = 4 };
    struct table table;
    bool reserved = false;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (int k = 0; k < TD_MOMENTS; k++) {
        const struct td_memory_view *v = &r->views[k];
        table_cell_styled(&table, v->fragmented ? STYLE_RED : STYLE_PLAIN, td_memory_moment_names[k]);
        table_cellf(&table, "%.3g s", seconds(r, v->time_ns));
        cell_size(&table, v->live.bytes);
        cell_size(&table, v->pinned);
        cell_size(&table, v->reserved);
        cell_size(&table, v->span);
        cell_size(&table, v->free);
        cell_count(&table, v->holes);
        cell_size(&table, v->largest);
        reserved |= v->reserved > 0;
    }
    table_print(&table, t->term, reserved ? 0 : UINT64_C(1) << RESERVED);
    table_release(&table);
}

static void put_pins(const struct memory_text *t, const struct td_memory_story *s, int moment)
{
    const struct td_memory_view *v = &s->report.views[moment];
    char free_size[SIZE_TEXT], span[SIZE_TEXT], largest[SIZE_TEXT], pinned[SIZE_TEXT];
    size_t count = 0;
    uint32_t *list = td_memory_largest(&s->report, td_memory_pins[moment], 3, &count);
    fprintf(t->term->file,
            "%sfragmented%s at %.3g s: %s of %s lie in %" PRIu64 " holes, the largest %s; kept by\n",
            term_style(t->term, STYLE_RED), term_style(t->term, STYLE_PLAIN), seconds(&s->report, v->time_ns),
            text_size(free_size, v->free), text_size(span, v->span), v->holes,
            text_size(largest, v->largest));
    for (size_t i = 0; list && i < count; i++) {
        const struct td_memory_group *g = &s->report.groups[list[i]];
        if (i && g->pins[moment] < v->free / 20)
            break; /* a bystander */
        const struct td_memory_label *label = &s->labels[list[i]];
        fprintf(t->term->file, "  %" PRIu64 " block%s, %s in holes next to %s, from%s%s\n",
                g->at[moment].blocks, text_plural(g->at[moment].blocks), text_size(pinned, g->pins[moment]),
                g->at[moment].blocks == 1 ? "it" : "them", label->stack ? "" : " ",
                label->stack ? "" : label->name);
        put_stack(t, label->stack);
    }
    free(list);
}

static void put_fragmentation(const struct memory_text *t, const struct td_memory_story *s)
{
    if (!t->quiet) {
        fputc('\n', t->term->file);
        heading(t, "address space\n");
        put_views(t, &s->report);
    }
    static const int order[] = {TD_MOMENT_WORST, TD_MOMENT_PEAK, TD_MOMENT_END};
    for (int k = 0; k < TD_MOMENTS; k++) {
        if (!s->report.views[order[k]].fragmented)
            continue;
        put_pins(t, s, order[k]);
        break; /* the worst says it all */
    }
}

/* --- Snapshots ------------------------------------------------------------------------------------------ */

static const char *signed_size(char out[SIZE_TEXT + 1], uint64_t from, uint64_t to)
{
    out[0] = to >= from ? '+' : '-';
    text_size(out + 1, to >= from ? to - from : from - to);
    return out;
}

static void put_difference(const struct memory_text *t, const struct td_memory_story *s)
{
    static const struct column columns[] = {{"change", true, false, 0},
                                            {"blocks", true, false, 0},
                                            {"before", true, false, 1},
                                            {"after", true, false, 1},
                                            {"by", false, true, 0}};
    const struct td_memory_report *r = &s->report;
    struct table table;
    size_t count = 0;
    uint32_t *list = td_memory_largest(r, td_memory_by_change, t->top, &count);
    fputc('\n', t->term->file);
    heading(t, "difference: ");
    fprintf(t->term->file, "from '%s' to '%s'%s\n", r->from, r->to, count ? "" : ": none");
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; list && i < count; i++) {
        const struct td_memory_group *g = &r->groups[list[i]];
        char change[SIZE_TEXT + 1];
        table_cell(&table, signed_size(change, g->from.bytes, g->to.bytes));
        table_cellf(&table, "%+" PRId64, (int64_t)(g->to.blocks - g->from.blocks));
        cell_size(&table, g->from.bytes);
        cell_size(&table, g->to.bytes);
        table_cell(&table, s->labels[list[i]].name);
    }
    if (count)
        table_print(&table, t->term, 0);
    table_release(&table);
    free(list);
}

static void put_snapshots(const struct memory_text *t, const struct td_memory_story *s)
{
    static const struct column columns[] = {{"snapshot", false, true, 0},
                                            {"after", true, false, 0},
                                            {"held", true, false, 0},
                                            {"blocks", true, false, 0}};
    const struct td_memory_report *r = &s->report;
    struct table table;
    if (r->mark_count) {
        fputc('\n', t->term->file);
        table_init(&table, columns, sizeof columns / sizeof *columns);
        for (size_t i = 0; i < r->mark_count; i++) {
            table_cell(&table, r->marks[i].name);
            table_cellf(&table, "%.3g s", seconds(r, r->marks[i].time_ns));
            cell_size(&table, r->marks[i].live.bytes);
            cell_count(&table, r->marks[i].live.blocks);
        }
        table_print(&table, t->term, 0);
        table_release(&table);
    }
    if (*r->from)
        put_difference(t, s);
}

/* --- All of it ------------------------------------------------------------------------------------------ */

void memory_text_print(const struct memory_text *t, const struct td_memory_story *s)
{
    const struct td_memory_report *r = &s->report;
    char size[SIZE_TEXT];
    heading(t, s->title);
    fprintf(t->term->file, ": %" PRIu64 " allocation%s of %s in all, %" PRIu64 " release%s, %.3g s\n",
            r->allocations, text_plural(r->allocations), text_size(size, r->bytes), r->releases,
            text_plural(r->releases), seconds(r, r->end_ns));
    if (s->note)
        fprintf(t->term->file, "%s\n", s->note);
    if (!t->quiet && r->allocations) {
        put_peak(t, s);
        fputc('\n', t->term->file);
        memory_chart(t->term, r);
    }
    put_held(t, s);
    put_fragmentation(t, s);
    if (!t->quiet)
        put_snapshots(t, s);
}

void memory_text_others(const struct memory_text *t, const struct td_memory_book *book)
{
    static const struct column columns[] = {{"also", false, true, 0},
                                            {"peak", true, false, 0},
                                            {"held at the end", true, false, 0},
                                            {"allocations", true, false, 0}};
    struct table table;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 1; i < book->count; i++) {
        const struct td_memory_story *s = &book->stories[i];
        table_cell(&table, s->title);
        cell_size(&table, s->report.views[TD_MOMENT_PEAK].live.bytes);
        cell_size(&table, s->report.views[TD_MOMENT_END].live.bytes);
        cell_count(&table, s->report.allocations);
    }
    if (book->count > 1) {
        fputc('\n', t->term->file);
        table_print(&table, t->term, 0);
    }
    table_release(&table);
    if (book->others)
        fprintf(t->term->file, "and %" PRIu64 " smaller or unseen processes\n", book->others);
}
