/* profile.h: where the time goes: a tree of scopes with calls, times, work and memory.
 *
 * Pure: it is fed calls, one pass in any order, by whoever reads a recorded run or a trace. A node stands for
 * a scope by the way it was reached, so threads that do the same merge by path. After td_profile_finish
 *
 *     total(node) = self(node) + sum of total(children)
 *
 * holds for every node, and so the self times add up to the time of the roots. That is the time of threads;
 * `wall` beside it counts a moment once however many threads were busy.
 *
 *     root --+-- step --+-- layers.0 --+-- attn      one node for all calls of this path
 *            |          +-- layers.1   +-- mlp       self: the part of a node that no child explains
 *            +-- load
 *
 * Memory is bounded whatever is fed: nodes, names, kept steps and series have caps. Calls of scopes beyond
 * the cap count for their parent (`folded` says how many); of many steps every stride-th is kept.
 */
#ifndef TD_ANALYSE_PROFILE_H
#define TD_ANALYSE_PROFILE_H

#include "analyse/intervals.h"
#include "base/arena.h"
#include "base/status.h"

enum {
    TD_PROFILE_ROOT = 0,
    TD_PROFILE_STEPS = 4096,    /* steps kept */
    TD_PROFILE_NODES = 1 << 16, /* 9 MiB of nodes */
    TD_PROFILE_GAUGES = 64,
    TD_PROFILE_THREADS = 1 << 14, /* told apart; more are an error */
};

#define TD_PROFILE_NONE UINT32_MAX

/* Percentiles over steps, nanoseconds; count 0: not known. */
struct td_spread {
    size_t count;
    double p50, p90, p99, least, most;
};

struct td_profile_node {
    uint32_t name, parent, first, last, next; /* children in the order they were first seen */
    uint32_t depth;                           /* of a child of the root: 0 */
    uint32_t series;                          /* slot of its time per step, or TD_PROFILE_NONE */
    bool device;                              /* runs on a GPU: its time is not the host's */
    uint64_t calls;
    int64_t total_ns, self_ns, most_ns; /* most: the longest call */
    double own_flops, own_bytes, own_tokens;
    double flops, bytes, tokens; /* with the children; tokens pass through, they do not add up */
    int64_t allocated_bytes, held_bytes,
        peak_bytes; /* asked for here or below; held of it, at the end and at most */
};

/* One call of a scope. */
struct td_profile_call {
    int64_t begin_ns, end_ns;
    int64_t step; /* its place in the order of steps; -1: outside of all */
    double flops, bytes, tokens;
};

struct td_profile_step {
    int64_t number, begin_ns, end_ns;
    int64_t cpu_ns, rss; /* -1: not known */
};

struct td_profile_thread {
    const char *name;
    bool device;
    uint64_t calls;
    int64_t busy_ns; /* in scopes */
};

/* A value that was sampled: the load of a GPU. */
struct td_profile_gauge {
    const char *name;
    uint64_t count;
    double sum, most;
};

struct td_profile {
    struct td_arena arena; /* names */
    struct td_profile_node *nodes;
    size_t node_count, node_room;
    const char **names;
    size_t name_count, name_room;
    uint32_t *name_slots, *node_slots; /* open addressing; TD_PROFILE_NONE: free */
    size_t name_slot_count, node_slot_count;

    int64_t step_count, stride;
    struct td_profile_step *steps; /* every stride-th */
    size_t kept;
    float *series; /* series_count rows of `kept`; NaN: not called in that step */
    size_t series_count, series_room;

    struct td_profile_thread *threads;
    size_t thread_count, thread_room;
    struct td_intervals host, device;
    struct td_profile_gauge gauges[TD_PROFILE_GAUGES];
    size_t gauge_count;

    uint64_t calls, folded;
    int64_t first_ns, last_ns;
    int64_t peak_bytes; /* of memory held by all; 0: nobody said */
    bool finished;

    /* After td_profile_finish. */
    int64_t host_ns, device_ns;      /* sums of self times */
    int64_t wall_ns, device_wall_ns; /* a moment counts once */
    struct td_spread step_spread;    /* of the steps' own wall times */
};

TD_CHECK tdbg_status td_profile_init(struct td_profile *p, struct tdbg_error *error);
void td_profile_release(struct td_profile *p);

/* How many steps there are; before the first call. Then each of them in order. */
TD_CHECK tdbg_status td_profile_set_steps(struct td_profile *p, int64_t count, struct tdbg_error *error);
void td_profile_step(struct td_profile *p, int64_t index, const struct td_profile_step *step);

/* The thread numbered next; the name is copied. */
TD_CHECK tdbg_status td_profile_add_thread(struct td_profile *p, const char *name, bool device,
                                           struct tdbg_error *error);

/* The number of a name. Names beyond the cap share one: "(other names)". */
TD_CHECK tdbg_status td_profile_name(struct td_profile *p, const char *text, size_t length, uint32_t *out,
                                     struct tdbg_error *error);

/* The child of `parent`, made when it is new; TD_PROFILE_NONE when there are too many nodes. */
TD_CHECK tdbg_status td_profile_child(struct td_profile *p, uint32_t parent, uint32_t name, uint32_t *out,
                                      struct tdbg_error *error);

/* The child of that name, or TD_PROFILE_NONE. */
uint32_t td_profile_find(const struct td_profile *p, uint32_t parent, const char *name);

/* A call of `node` by a thread. `outermost`: no other call of this thread is around it. */
TD_CHECK tdbg_status td_profile_add(struct td_profile *p, uint32_t node, uint32_t thread, bool outermost,
                                    const struct td_profile_call *call, struct tdbg_error *error);

/* Memory asked for within `node`, and what it holds: more (positive) or less from now on. */
void td_profile_allocated(struct td_profile *p, uint32_t node, int64_t bytes);
void td_profile_hold(struct td_profile *p, uint32_t node, int64_t bytes);
void td_profile_gauge(struct td_profile *p, const char *name, double value);

/* Nothing is added afterwards. */
TD_CHECK tdbg_status td_profile_finish(struct td_profile *p, struct tdbg_error *error);

static inline const char *td_profile_name_of(const struct td_profile *p, uint32_t node)
{
    return p->names[p->nodes[node].name];
}

/* The names from the root, with '/' between them, into `out`; cut at `size`. Returns `out`. */
const char *td_profile_path(const struct td_profile *p, uint32_t node, char *out, size_t size);

/* Of the time of its kind (host or device), 0 to 1. */
double td_profile_share(const struct td_profile *p, uint32_t node);

/* Per kept step, `kept` of them, or NULL. */
const float *td_profile_series(const struct td_profile *p, uint32_t node);

/* Over the steps that called it. `work` has room for `kept` values. */
struct td_spread td_profile_spread(const struct td_profile *p, uint32_t node, double *work);

#endif
