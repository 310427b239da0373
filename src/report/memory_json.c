/* memory_json.c: see memory_json.h. */
#include "report/memory_json.h"

#include <stdlib.h>
#include <string.h>

/* --- Lists ---------------------------------------------------------------------------------------------- */

uint64_t td_memory_by_peak(const struct td_memory_group *g)
{
    return g->at[TD_MOMENT_PEAK].bytes;
}

/* What grows comes before what is just held. */
uint64_t td_memory_by_end(const struct td_memory_group *g)
{
    uint64_t held = g->at[TD_MOMENT_END].bytes;
    return g->grows ? held | UINT64_C(1) << 63 : held;
}

uint64_t td_memory_by_change(const struct td_memory_group *g)
{
    return g->to.bytes > g->from.bytes ? g->to.bytes - g->from.bytes : g->from.bytes - g->to.bytes;
}

static uint64_t by_pins_peak(const struct td_memory_group *g)
{
    return g->pins[TD_MOMENT_PEAK];
}

static uint64_t by_pins_worst(const struct td_memory_group *g)
{
    return g->pins[TD_MOMENT_WORST];
}

static uint64_t by_pins_end(const struct td_memory_group *g)
{
    return g->pins[TD_MOMENT_END];
}

const char *const td_memory_moment_names[TD_MOMENTS] = {"peak", "worst", "end"};
td_memory_key *const td_memory_pins[TD_MOMENTS] = {by_pins_peak, by_pins_worst, by_pins_end};

struct ranked {
    uint64_t key;
    uint32_t index;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

uint32_t *td_memory_largest(const struct td_memory_report *r, td_memory_key *key, size_t top, size_t *count)
{
    struct ranked *all = malloc((r->group_count + 1) * sizeof *all);
    uint32_t *list = NULL;
    size_t n = 0;
    if (!all)
        return NULL;
    for (size_t i = 0; i < r->group_count; i++)
        if (key(&r->groups[i]))
            all[n++] = (struct ranked){key(&r->groups[i]), (uint32_t)i};
    qsort(all, n, sizeof *all, by_rank);
    n = n < top ? n : top;
    list = malloc((n + 1) * sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        list[i] = all[i].index;
    free(all);
    *count = n;
    return list;
}

/* --- JSON ----------------------------------------------------------------------------------------------- */

static double seconds(const struct td_memory_report *r, int64_t time_ns)
{
    return 1e-9 * (double)(time_ns - r->begin_ns);
}

static void put_label(struct td_json *j, const struct td_memory_label *label)
{
    td_json_field_string(j, "owner", label->name);
    if (!label->stack)
        return;
    td_json_key(j, "stack");
    td_json_begin_array(j);
    const char *line = label->stack;
    while (*line) {
        char frame[600];
        size_t length = strcspn(line, "\n"), kept = length < sizeof frame ? length : sizeof frame - 1;
        memcpy(frame, line, kept);
        frame[kept] = 0;
        td_json_string(j, frame);
        line += length + (line[length] == '\n');
    }
    td_json_end_array(j);
}

static void put_amount(struct td_json *j, struct td_memory_amount amount)
{
    td_json_field_uint(j, "bytes", amount.bytes);
    td_json_field_uint(j, "blocks", amount.blocks);
}

typedef void put_row(struct td_json *j, const struct td_memory_story *s, const struct td_memory_group *g);

static void put_list(struct td_json *j, const char *name, const struct td_memory_story *s, td_memory_key *key,
                     size_t top, put_row *put)
{
    size_t count = 0;
    uint32_t *list = td_memory_largest(&s->report, key, top, &count);
    td_json_key(j, name);
    td_json_begin_array(j);
    for (size_t i = 0; list && i < count; i++) {
        td_json_begin_object(j);
        put_label(j, &s->labels[list[i]]);
        put(j, s, &s->report.groups[list[i]]);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    free(list);
}

static void put_peak_row(struct td_json *j, const struct td_memory_story *s, const struct td_memory_group *g)
{
    (void)s;
    put_amount(j, g->at[TD_MOMENT_PEAK]);
    td_json_key(j, "curve");
    td_json_begin_array(j);
    for (int i = 0; i < TD_MEMORY_CURVE; i++)
        td_json_uint(j, g->curve[i]);
    td_json_end_array(j);
}

static void put_held_row(struct td_json *j, const struct td_memory_story *s, const struct td_memory_group *g)
{
    put_amount(j, g->at[TD_MOMENT_END]);
    td_json_field_bool(j, "grows", g->grows);
    td_json_field_number(j, "bytes_per_second", g->rate);
    td_json_field_uint(j, "allocations", g->asked.blocks);
    td_json_field_number(j, "first", seconds(&s->report, g->first_ns));
    td_json_field_number(j, "last", seconds(&s->report, g->last_ns));
}

static void put_change_row(struct td_json *j, const struct td_memory_story *s,
                           const struct td_memory_group *g)
{
    (void)s;
    td_json_field_int(j, "bytes", (int64_t)(g->to.bytes - g->from.bytes));
    td_json_field_int(j, "blocks", (int64_t)(g->to.blocks - g->from.blocks));
    td_json_field_uint(j, "from_bytes", g->from.bytes);
    td_json_field_uint(j, "to_bytes", g->to.bytes);
}

static void put_pins(struct td_json *j, const struct td_memory_story *s, int moment, size_t top)
{
    size_t count = 0;
    uint32_t *list = td_memory_largest(&s->report, td_memory_pins[moment], top, &count);
    td_json_key(j, "pinned_by");
    td_json_begin_array(j);
    for (size_t i = 0; list && i < count; i++) {
        td_json_begin_object(j);
        put_label(j, &s->labels[list[i]]);
        td_json_field_uint(j, "bytes", s->report.groups[list[i]].pins[moment]);
        td_json_field_uint(j, "blocks", s->report.groups[list[i]].at[moment].blocks);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    free(list);
}

static void put_view(struct td_json *j, const struct td_memory_story *s, int moment, size_t top)
{
    const struct td_memory_view *v = &s->report.views[moment];
    td_json_begin_object(j);
    td_json_field_string(j, "moment", td_memory_moment_names[moment]);
    td_json_field_number(j, "time", seconds(&s->report, v->time_ns));
    put_amount(j, v->live);
    if (v->reserved)
        td_json_field_uint(j, "reserved", v->reserved);
    td_json_field_uint(j, "span", v->span);
    td_json_field_uint(j, "pages", v->pinned);
    td_json_field_uint(j, "free", v->free);
    td_json_field_uint(j, "holes", v->holes);
    td_json_field_uint(j, "largest_hole", v->largest);
    td_json_field_bool(j, "fragmented", v->fragmented);
    put_pins(j, s, moment, top);
    td_json_end_object(j);
}

static void put_timeline(struct td_json *j, const struct td_memory_report *r)
{
    td_json_key(j, "timeline");
    td_json_begin_array(j);
    for (size_t i = 0; i < r->point_count; i++) {
        td_json_begin_object(j);
        td_json_field_number(j, "time", seconds(r, r->points[i].time_ns));
        td_json_field_uint(j, "bytes", r->points[i].most);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

static void put_snapshots(struct td_json *j, const struct td_memory_story *s, size_t top)
{
    const struct td_memory_report *r = &s->report;
    td_json_key(j, "snapshots");
    td_json_begin_array(j);
    for (size_t i = 0; i < r->mark_count; i++) {
        td_json_begin_object(j);
        td_json_field_string(j, "name", r->marks[i].name);
        td_json_field_number(j, "time", seconds(r, r->marks[i].time_ns));
        put_amount(j, r->marks[i].live);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    td_json_key(j, "difference");
    if (!*r->from) {
        td_json_null(j);
        return;
    }
    td_json_begin_object(j);
    td_json_field_string(j, "from", r->from);
    td_json_field_string(j, "to", r->to);
    put_list(j, "owners", s, td_memory_by_change, top, put_change_row);
    td_json_end_object(j);
}

static void put_story(struct td_json *j, const struct td_memory_story *s, size_t top)
{
    const struct td_memory_report *r = &s->report;
    const struct td_memory_view *peak = &r->views[TD_MOMENT_PEAK];
    td_json_begin_object(j);
    td_json_field_string(j, "title", s->title);
    td_json_field_string(j, "note", s->note);
    td_json_field_number(j, "seconds", seconds(r, r->end_ns));
    td_json_field_uint(j, "allocations", r->allocations);
    td_json_field_uint(j, "releases", r->releases);
    td_json_field_uint(j, "unknown_releases", r->unknown);
    td_json_field_uint(j, "allocated_bytes", r->bytes);
    td_json_key(j, "peak");
    td_json_begin_object(j);
    td_json_field_number(j, "time", seconds(r, peak->time_ns));
    put_amount(j, peak->live);
    put_list(j, "owners", s, td_memory_by_peak, top, put_peak_row);
    td_json_end_object(j);
    put_timeline(j, r);
    td_json_key(j, "held");
    td_json_begin_object(j);
    put_amount(j, r->views[TD_MOMENT_END].live);
    td_json_field_uint(j, "leaks", s->judged ? r->leaks : 0);
    put_list(j, "owners", s, td_memory_by_end, top, put_held_row);
    td_json_end_object(j);
    td_json_key(j, "fragmentation");
    td_json_begin_array(j);
    for (int k = 0; k < TD_MOMENTS; k++)
        put_view(j, s, k, top);
    td_json_end_array(j);
    put_snapshots(j, s, top);
    td_json_end_object(j);
}

void td_memory_book_json(struct td_json *j, const struct td_memory_book *book, size_t top)
{
    td_json_key(j, "memory");
    td_json_begin_array(j);
    for (size_t i = 0; i < book->count; i++)
        put_story(j, &book->stories[i], top);
    td_json_end_array(j);
    td_json_field_uint(j, "others", book->others);
}
