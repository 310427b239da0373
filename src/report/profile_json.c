/* profile_json.c: see profile_json.h. */
#include "report/profile_json.h"

#include <math.h>
#include <stdlib.h>

/* {"count", "p50_ns", …}, or null without values. */
static void put_spread(struct td_json *j, const char *key, const struct td_spread *s)
{
    td_json_key(j, key);
    if (!s->count) {
        td_json_null(j);
        return;
    }
    td_json_begin_object(j);
    td_json_field_uint(j, "count", s->count);
    td_json_field_number(j, "p50_ns", s->p50);
    td_json_field_number(j, "p90_ns", s->p90);
    td_json_field_number(j, "p99_ns", s->p99);
    td_json_field_number(j, "min_ns", s->least);
    td_json_field_number(j, "max_ns", s->most);
    td_json_end_object(j);
}

static double per_second(double amount, int64_t ns)
{
    return ns > 0 ? amount / ((double)ns * 1e-9) : 0;
}

/* Work nobody told of is left out. */
static void write_work(struct td_json *j, const struct td_profile_node *n)
{
    if (n->flops > 0) {
        td_json_field_number(j, "flops", n->flops);
        td_json_field_number(j, "flops_per_s", per_second(n->flops, n->total_ns));
    }
    if (n->bytes > 0) {
        td_json_field_number(j, "bytes", n->bytes);
        td_json_field_number(j, "bytes_per_s", per_second(n->bytes, n->total_ns));
    }
    if (n->tokens > 0) {
        td_json_field_number(j, "tokens", n->tokens);
        td_json_field_number(j, "tokens_per_s", per_second(n->tokens, n->total_ns));
    }
    if (n->allocated_bytes > 0)
        td_json_field_int(j, "allocated_bytes", n->allocated_bytes);
    if (n->peak_bytes > 0) {
        td_json_field_int(j, "peak_bytes", n->peak_bytes);
        td_json_field_int(j, "held_bytes", n->held_bytes);
    }
}

/* Steps that did not call the scope are null. */
static void write_series(struct td_json *j, const struct td_profile *p, uint32_t node)
{
    const float *series = td_profile_series(p, node);
    td_json_key(j, "steps_ns");
    td_json_begin_array(j);
    for (size_t i = 0; series && i < p->kept; i++)
        if (isnan(series[i]))
            td_json_null(j);
        else
            td_json_int(j, (int64_t)series[i]);
    td_json_end_array(j);
}

static void write_node(struct td_json *j, const struct td_profile *p, uint32_t node, double *work,
                       bool series)
{
    const struct td_profile_node *n = &p->nodes[node];
    char path[8192];
    struct td_spread spread = td_profile_spread(p, node, work);
    td_json_begin_object(j);
    td_json_field_string(j, "path", td_profile_path(p, node, path, sizeof path));
    td_json_field_string(j, "name", td_profile_name_of(p, node));
    td_json_field_uint(j, "depth", n->depth);
    td_json_field_bool(j, "device", n->device);
    td_json_field_uint(j, "calls", n->calls);
    td_json_field_int(j, "total_ns", n->total_ns);
    td_json_field_int(j, "self_ns", n->self_ns);
    td_json_field_number(j, "share", td_profile_share(p, node));
    td_json_field_int(j, "max_ns", n->most_ns);
    write_work(j, n);
    put_spread(j, "per_step", &spread);
    if (series)
        write_series(j, p, node);
    td_json_end_object(j);
}

/* Depth first: a parent before its children. */
static void write_tree(struct td_json *j, const struct td_profile *p, double *work, bool series)
{
    uint32_t node = p->nodes[TD_PROFILE_ROOT].first;
    while (node) {
        write_node(j, p, node, work, series);
        if (p->nodes[node].first) {
            node = p->nodes[node].first;
            continue;
        }
        while (node && !p->nodes[node].next)
            node = p->nodes[node].parent;
        node = node ? p->nodes[node].next : 0;
    }
}

static void write_steps(struct td_json *j, const struct td_profile *p)
{
    td_json_key(j, "steps");
    td_json_begin_object(j);
    td_json_field_int(j, "count", p->step_count);
    td_json_field_int(j, "stride", p->stride);
    put_spread(j, "time", &p->step_spread);
    td_json_key(j, "kept");
    td_json_begin_array(j);
    for (size_t i = 0; i < p->kept; i++) {
        const struct td_profile_step *s = &p->steps[i];
        td_json_begin_object(j);
        td_json_field_int(j, "number", s->number);
        td_json_field_int(j, "begin_ns", s->begin_ns);
        td_json_field_int(j, "end_ns", s->end_ns);
        if (s->cpu_ns >= 0)
            td_json_field_int(j, "cpu_ns", s->cpu_ns);
        if (s->rss >= 0)
            td_json_field_int(j, "rss", s->rss);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    td_json_end_object(j);
}

static void write_threads(struct td_json *j, const struct td_profile *p)
{
    td_json_key(j, "threads");
    td_json_begin_array(j);
    for (size_t i = 0; i < p->thread_count; i++) {
        const struct td_profile_thread *t = &p->threads[i];
        if (!t->calls)
            continue;
        td_json_begin_object(j);
        td_json_field_string(j, "name", t->name);
        td_json_field_bool(j, "device", t->device);
        td_json_field_uint(j, "calls", t->calls);
        td_json_field_int(j, "busy_ns", t->busy_ns);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    td_json_key(j, "gauges");
    td_json_begin_array(j);
    for (size_t i = 0; i < p->gauge_count; i++) {
        const struct td_profile_gauge *g = &p->gauges[i];
        td_json_begin_object(j);
        td_json_field_string(j, "name", g->name);
        td_json_field_uint(j, "samples", g->count);
        td_json_field_number(j, "mean", g->count ? g->sum / (double)g->count : 0);
        td_json_field_number(j, "max", g->most);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

static void write_findings(struct td_json *j, const struct td_profile *p, const struct td_findings *findings)
{
    char path[8192];
    td_json_key(j, "findings");
    td_json_begin_array(j);
    for (size_t i = 0; i < findings->count; i++) {
        const struct td_finding *f = &findings->items[i];
        td_json_begin_object(j);
        td_json_field_string(j, "kind", f->kind);
        td_json_field_string(
            j, "scope", f->node == TD_PROFILE_NONE ? NULL : td_profile_path(p, f->node, path, sizeof path));
        td_json_field_number(j, "value", f->value);
        td_json_field_number(j, "reference", f->reference);
        td_json_field_string(j, "text", f->text);
        td_json_field_string(j, "advice", f->advice);
        td_json_end_object(j);
    }
    td_json_end_array(j);
}

static void write_source(struct td_json *j, const struct td_profile_source *s)
{
    td_json_field_string(j, "kind", s->is_run ? "run" : "trace");
    if (s->is_run) {
        td_json_field_string(j, "program", s->run.program);
        td_json_field_string(j, "host", s->run.host);
        td_json_field_int(j, "rank", s->run.rank);
        td_json_field_int(j, "world", s->run.world);
        td_json_field_bool(j, "ended", s->run.ended_ns > 0);
        return;
    }
    td_json_field_uint(j, "events", s->trace.events);
    td_json_field_uint(j, "skipped_events", s->trace.skipped);
    td_json_field_bool(j, "cut", s->trace.cut);
}

bool td_profile_json(struct td_json *j, const struct td_profile_source *source,
                     const struct td_findings *findings, enum td_profile_scopes scopes)
{
    const struct td_profile *p = &source->profile;
    double *work = malloc((p->kept + 1) * sizeof *work);
    if (!work)
        return false;
    write_source(j, source);
    td_json_field_int(j, "wall_ns", p->wall_ns);
    td_json_field_int(j, "thread_ns", p->host_ns);
    td_json_field_int(j, "device_wall_ns", p->device_wall_ns);
    td_json_field_int(j, "device_ns", p->device_ns);
    td_json_field_uint(j, "calls", p->calls);
    td_json_field_uint(j, "folded", p->folded);
    td_json_field_int(j, "peak_bytes", p->peak_bytes);
    write_steps(j, p);
    write_threads(j, p);
    if (scopes != TD_PROFILE_NO_SCOPES) {
        td_json_key(j, "scopes");
        td_json_begin_array(j);
        write_tree(j, p, work, scopes == TD_PROFILE_SERIES);
        td_json_end_array(j);
    }
    write_findings(j, p, findings);
    free(work);
    return true;
}
