/* memory_report.c: from the collector to a report: owners put together as groups, growth judged.
 *
 * A leak is told from a cache by its curve. Both hold memory at the end; but a cache has filled up at some
 * time and a leak is still growing. So what a group holds is looked at in equal parts of its life, from its
 * first allocation to the end: it grows when, after the first quarter, most parts hold more than the one
 * before and few hold less, and a good part of what is held came in the second half. (What just goes up and
 * down ends above its beginning half of the time, but does not climb.) The clock of this life are the
 * allocations of the program and not the time: while it waits, or frees everything at its end, nothing can
 * leak.
 */
#include "analyse/memory_core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Less is what every program leaves behind: its locale alone are more than a hundred small blocks. */
enum { LEAST_LEAKED_BLOCKS = 4, MANY_LEAKED_BLOCKS = 500, LEAST_LEAKED_BYTES = 64 << 10 };

static uint32_t group_index(const uint32_t *group_of, size_t owner)
{
    return group_of ? group_of[owner] : (uint32_t)owner;
}

static void add(struct td_memory_amount *sum, struct td_memory_amount more)
{
    sum->bytes += more.bytes;
    sum->blocks += more.blocks;
}

static struct td_memory_amount held_then(const struct td_memory *m, size_t owner, int which)
{
    static const struct td_memory_amount nothing = {0};
    const struct td_owner *o = &m->owners[owner];
    const char *name = m->want[which];
    if (name && strcmp(name, "peak") == 0)
        return td_owner_at(o, &m->moments[TD_MOMENT_PEAK], TD_MOMENT_PEAK);
    if (name && strcmp(name, "end") == 0)
        return o->live;
    const struct td_holdings *h = &m->holdings[which];
    return h->taken && owner < h->count ? h->amounts[owner] : nothing;
}

static uint64_t most_of(const struct td_owner *o, const struct td_memory *m)
{
    uint64_t peak = td_owner_at(o, &m->moments[TD_MOMENT_PEAK], TD_MOMENT_PEAK).bytes;
    return peak > o->live.bytes ? peak : o->live.bytes;
}

uint64_t td_memory_weight(const struct td_memory *m, size_t owner)
{
    return most_of(&m->owners[owner], m);
}

static void fold_owner(const struct td_memory *m, size_t i, struct td_memory_group *g, uint64_t *example)
{
    const struct td_owner *o = &m->owners[i];
    if (o->asked.blocks == 0)
        return;
    if (g->asked.blocks == 0 || o->first_ns < g->first_ns)
        g->first_ns = o->first_ns;
    if (g->asked.blocks == 0 || o->last_ns > g->last_ns)
        g->last_ns = o->last_ns;
    if (g->asked.blocks == 0 || most_of(o, m) > *example) {
        g->owner = (uint32_t)i;
        *example = most_of(o, m);
    }
    add(&g->asked, o->asked);
    for (int k = 0; k < MOVING_MOMENTS; k++)
        add(&g->at[k], td_owner_at(o, &m->moments[k], k));
    add(&g->at[TD_MOMENT_END], o->live);
    add(&g->from, held_then(m, i, 0));
    add(&g->to, held_then(m, i, 1));
}

/* The i-th of n equal parts of (from, to] ends there. */
static int64_t part_end(int64_t from, int64_t to, int i, int n)
{
    return from + (int64_t)((double)(to - from) * (i + 1) / n);
}

static bool is_much(struct td_memory_amount held)
{
    return held.blocks >= MANY_LEAKED_BLOCKS ||
           (held.blocks >= LEAST_LEAKED_BLOCKS && held.bytes >= LEAST_LEAKED_BYTES);
}

static void judge(struct td_memory_group *g, const uint64_t *curve, int n)
{
    int quarter = n / 4, rises = 0, drops = 0;
    uint64_t held = g->at[TD_MOMENT_END].bytes, early = 0;
    for (int i = 0; i < n / 2; i++)
        early = curve[i] > early ? curve[i] : early;
    for (int i = quarter; i < n; i++) {
        rises += curve[i] > curve[i - 1];
        drops += curve[i] < curve[i - 1];
    }
    bool steady = rises * 2 >= n - quarter && drops * 5 <= n - quarter;
    double seconds = 1e-9 * (double)(g->last_ns - g->first_ns);
    /* Everything at one moment: a state without a history, which tells no growth. */
    g->grows =
        seconds > 0 && steady && held - early / 4 > early && held > early && is_much(g->at[TD_MOMENT_END]);
    g->rate = g->grows ? (double)held / seconds : 0;
}

enum { PARTS = GROWTH_SLOTS / 2 }; /* an owner's series may be this coarse */

/* Where a group's own life begins, its curve begins: all of its owners by one clock. */
static void add_owner(const struct td_memory *m, const struct td_owner *o, int64_t first,
                      const struct td_memory_report *r, struct td_memory_group *g, uint64_t *curve)
{
    for (int k = 0; k < PARTS; k++)
        curve[k] += td_series_level(&o->by_number, o->numbers,
                                    part_end(first, (int64_t)m->allocations, k, PARTS), o->live.bytes);
    for (int k = 0; k < TD_MEMORY_CURVE; k++)
        g->curve[k] += td_series_level(&o->by_time, o->times,
                                       part_end(r->begin_ns, r->end_ns, k, TD_MEMORY_CURVE), o->live.bytes);
}

static tdbg_status judge_groups(const struct td_memory *m, const uint32_t *group_of,
                                struct td_memory_report *r, struct tdbg_error *error)
{
    uint64_t(*curves)[PARTS] = calloc(r->group_count + 1, sizeof *curves);
    int64_t *first = calloc(r->group_count + 1, sizeof *first); /* 0: nothing yet, numbers begin at 1 */
    tdbg_status status = curves && first ? TDBG_OK : td_fail_nomem(error);
    for (size_t i = 0; status == TDBG_OK && i < m->owner_count; i++) {
        int64_t *of_group = &first[group_index(group_of, i)];
        if (m->owners[i].first && (*of_group == 0 || m->owners[i].first < *of_group))
            *of_group = m->owners[i].first;
    }
    for (size_t i = 0; status == TDBG_OK && i < m->owner_count; i++) {
        uint32_t index = group_index(group_of, i);
        add_owner(m, &m->owners[i], first[index], r, &r->groups[index], curves[index]);
    }
    for (size_t i = 0; status == TDBG_OK && i < r->group_count; i++) {
        if (r->groups[i].at[TD_MOMENT_END].blocks)
            judge(&r->groups[i], curves[i], PARTS);
        r->leaks += r->groups[i].grows;
    }
    free(first);
    free(curves);
    return status;
}

static tdbg_status make_groups(const struct td_memory *m, const uint32_t *group_of,
                               struct td_memory_report *r, struct tdbg_error *error)
{
    uint64_t *examples = calloc(r->group_count + 1, sizeof *examples);
    r->groups = calloc(r->group_count + 1, sizeof *r->groups);
    if (!examples || !r->groups) {
        free(examples);
        return td_fail_nomem(error);
    }
    for (size_t i = 0; i < m->owner_count; i++) {
        uint32_t index = group_index(group_of, i);
        fold_owner(m, i, &r->groups[index], &examples[index]);
    }
    free(examples);
    return judge_groups(m, group_of, r, error);
}

static tdbg_status make_views(const struct td_memory *m, const uint32_t *group_of, struct td_memory_report *r,
                              struct tdbg_error *error)
{
    uint64_t *pins = malloc((m->owner_count + 1) * sizeof *pins);
    if (!pins)
        return td_fail_nomem(error);
    tdbg_status status = TDBG_OK;
    for (int k = 0; k < TD_MOMENTS && status == TDBG_OK; k++) {
        struct td_memory_view *view = &r->views[k];
        if (k == TD_MOMENT_END)
            *view = (struct td_memory_view){.time_ns = r->end_ns, .live = m->live, .reserved = m->reserved};
        else
            *view = (struct td_memory_view){.time_ns = m->moments[k].time_ns,
                                            .live = m->moments[k].live,
                                            .reserved = m->moments[k].reserved};
        memset(pins, 0, (m->owner_count + 1) * sizeof *pins);
        status = td_memory_view_make(m, (enum td_memory_moment)k, view, pins, error);
        for (size_t i = 0; i < m->owner_count && status == TDBG_OK; i++)
            r->groups[group_index(group_of, i)].pins[k] += pins[i];
    }
    free(pins);
    return status;
}

static tdbg_status make_points(struct td_memory *m, struct td_memory_report *r, struct tdbg_error *error)
{
    td_series_put(&m->timeline, m->most, TIMELINE_SLOTS, r->end_ns, m->live.bytes, m->live.bytes);
    r->points = calloc((size_t)m->timeline.used + 1, sizeof *r->points);
    if (!r->points)
        return td_fail_nomem(error);
    for (int i = 0; i < m->timeline.used; i++) {
        r->points[i].time_ns = m->timeline.start + (int64_t)((uint64_t)i << m->timeline.shift);
        r->points[i].most = m->most[i];
    }
    r->point_count = (size_t)m->timeline.used;
    return TDBG_OK;
}

static tdbg_status make_marks(const struct td_memory *m, struct td_memory_report *r, struct tdbg_error *error)
{
    r->marks = calloc(m->mark_count + 1, sizeof *r->marks);
    if (!r->marks)
        return td_fail_nomem(error);
    if (m->mark_count)
        memcpy(r->marks, m->marks, m->mark_count * sizeof *r->marks);
    r->mark_count = m->mark_count;
    return TDBG_OK;
}

static tdbg_status name_snapshots(const struct td_memory *m, struct td_memory_report *r,
                                  struct tdbg_error *error)
{
    char *const names[] = {r->from, r->to};
    bool asked = m->want[0] || m->want[1];
    if (!asked && !m->holdings[1].taken)
        return TDBG_OK; /* nothing to compare, and nobody wants to */
    for (int i = 0; i < 2; i++) {
        const char *name = asked ? m->want[i] : m->holdings[i].name;
        bool always = strcmp(name, "peak") == 0 || strcmp(name, "end") == 0;
        if (asked && !always && !m->holdings[i].taken)
            return td_fail(error, TDBG_NOTFOUND, "no memory snapshot '%s'", name);
        snprintf(names[i], sizeof r->from, "%s", name);
    }
    return TDBG_OK;
}

tdbg_status td_memory_report_make(struct td_memory *m, const uint32_t *group_of, size_t group_count,
                                  int64_t end_ns, struct td_memory_report *out, struct tdbg_error *error)
{
    struct td_memory_report r = {
        .begin_ns = m->begin_ns,
        .end_ns = end_ns > m->now_ns ? end_ns : m->now_ns,
        .allocations = m->allocations,
        .releases = m->releases,
        .bytes = m->asked.bytes,
        .unknown = m->unknown,
        .group_count = group_of ? group_count : m->owner_count,
    };
    tdbg_status status = td_memory_take_wanted(m, r.end_ns, error); /* nothing changed after the last event */
    if (status == TDBG_OK)
        status = name_snapshots(m, &r, error);
    if (status == TDBG_OK)
        status = make_groups(m, group_of, &r, error);
    if (status == TDBG_OK)
        status = make_views(m, group_of, &r, error);
    if (status == TDBG_OK)
        status = make_points(m, &r, error);
    if (status == TDBG_OK)
        status = make_marks(m, &r, error);
    if (status != TDBG_OK) {
        td_memory_report_release(&r);
        return status;
    }
    *out = r;
    return TDBG_OK;
}

void td_memory_report_release(struct td_memory_report *r)
{
    free(r->groups);
    free(r->points);
    free(r->marks);
    *r = (struct td_memory_report){0};
}
