/* memory_report.c: from the collector to a report: owners put together as groups, growth judged.
 *
 * A leak is told from a cache by its curve. Both hold memory at the end; but a cache has filled up at some
 * time and a leak is still growing. So what a group holds is looked at in equal parts of the time from its
 * first allocation to the end: it grows when, after the first quarter, most parts hold more than the one
 * before, and much of what is held came after that quarter.
 */
#include "analyse/memory_core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_LEAKED_BLOCKS = 4 };

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

/* The i-th of n equally spaced times in (from, to]. */
static int64_t part_end(int64_t from, int64_t to, int i, int n)
{
    return from + (int64_t)((double)(to - from) * (i + 1) / n);
}

static void judge(struct td_memory_group *g, const uint64_t *curve, int n, int64_t end_ns)
{
    int quarter = n / 4, rises = 0;
    uint64_t held = g->at[TD_MOMENT_END].bytes;
    for (int i = quarter; i < n; i++)
        rises += curve[i] > curve[i - 1];
    bool late = held > curve[quarter - 1] && held - curve[quarter - 1] >= held / 4;
    g->grows = rises * 2 >= n - quarter && late && g->at[TD_MOMENT_END].blocks >= LEAST_LEAKED_BLOCKS;
    double seconds = 1e-9 * (double)(end_ns - part_end(g->first_ns, end_ns, quarter - 1, n));
    g->rate = g->grows && seconds > 0 ? (double)(held - curve[quarter - 1]) / seconds : 0;
}

/* Where a group's own time begins, its curve is needed anew: owners keep theirs by their own clock. */
static tdbg_status judge_groups(const struct td_memory *m, const uint32_t *group_of,
                                struct td_memory_report *r, struct tdbg_error *error)
{
    enum { PARTS = SERIES_SLOTS / 2 }; /* an owner's series may be this coarse */
    uint64_t(*curves)[PARTS] = calloc(r->group_count + 1, sizeof *curves);
    if (!curves)
        return td_fail_nomem(error);
    for (size_t i = 0; i < m->owner_count; i++) {
        uint32_t index = group_index(group_of, i);
        struct td_memory_group *g = &r->groups[index];
        for (int k = 0; k < PARTS; k++)
            curves[index][k] += td_owner_level(&m->owners[i], part_end(g->first_ns, r->end_ns, k, PARTS));
        for (int k = 0; k < TD_MEMORY_CURVE; k++)
            g->curve[k] +=
                td_owner_level(&m->owners[i], part_end(r->begin_ns, r->end_ns, k, TD_MEMORY_CURVE));
    }
    for (size_t i = 0; i < r->group_count; i++) {
        if (r->groups[i].at[TD_MOMENT_END].blocks)
            judge(&r->groups[i], curves[i], PARTS, r->end_ns);
        r->leaks += r->groups[i].grows;
    }
    free(curves);
    return TDBG_OK;
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
        r->points[i].time_ns = m->timeline.start_ns + (int64_t)((uint64_t)i << m->timeline.shift);
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
    tdbg_status status = name_snapshots(m, &r, error);
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
