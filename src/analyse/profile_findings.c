/* profile_findings.c: the rules, one function each, in a table. A rule looks at the finished profile and adds
 * what it finds, at most a few each: a report that complains of everything says nothing.
 */
#include "analyse/profile_findings.h"

#include "analyse/order.h"
#include "analyse/profile_words.h"
#include "analyse/shift.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 3, PATH_ROOM = 96 }; /* findings of one rule */

struct judge {
    const struct td_profile *p;
    struct td_findings *out;
    double *work, *more; /* room for a value per kept step, each */
};

__attribute__((format(printf, 7, 8))) static void found(struct judge *j, const char *kind, uint32_t node,
                                                        double value, double reference, const char *advice,
                                                        const char *format, ...)
{
    if (j->out->count == TD_FINDINGS)
        return;
    struct td_finding *f = &j->out->items[j->out->count++];
    *f = (struct td_finding){
        .kind = kind, .node = node, .value = value, .reference = reference, .advice = advice};
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

/* The end of the path, as many names as fit. */
static const char *path_of(const struct judge *j, uint32_t node, char *out)
{
    char whole[8192];
    td_profile_path(j->p, node, whole, sizeof whole);
    size_t length = strlen(whole);
    const char *from = whole;
    if (length >= PATH_ROOM) {
        from = whole + length - (PATH_ROOM - 5);
        const char *name = strchr(from, '/');
        from = name && name[1] ? name + 1 : from;
        while (((uint8_t)*from & 0xc0) == 0x80)
            from++; /* not within a character */
    }
    snprintf(out, PATH_ROOM, "%s%.91s", from == whole ? "" : ".../", from);
    return out;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* --- Where the time goes -------------------------------------------------------------------------------- */

/* A group of scopes whose names differ in their first number only: layers.0.mlp, layers.1.mlp. */
struct group {
    uint64_t hash;
    uint32_t node; /* its heaviest */
    size_t count;
    int64_t self_ns;
    uint64_t calls;
};

static uint64_t hash_of(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    bool numbered = false;
    for (; *name; name++) {
        if (!numbered && *name >= '0' && *name <= '9') {
            name += strspn(name, "0123456789") - 1;
            numbered = true;
            h = (h ^ '#') * UINT64_C(0x100000001b3);
        } else {
            h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
        }
    }
    return h;
}

static int by_hash(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    return a->hash != b->hash ? (a->hash > b->hash) - (a->hash < b->hash)
                              : (a->node > b->node) - (a->node < b->node);
}

static int by_self(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    return a->self_ns != b->self_ns ? (a->self_ns < b->self_ns) - (a->self_ns > b->self_ns) : by_hash(a, b);
}

/* The scopes of the host as groups, the heaviest first. */
static size_t make_groups(const struct td_profile *p, struct group *groups)
{
    size_t found = 0, kept = 0;
    for (uint32_t i = 1; i < p->node_count; i++)
        if (!p->nodes[i].device)
            groups[found++] = (struct group){hash_of(td_profile_name_of(p, i)), i, 1, p->nodes[i].self_ns,
                                             p->nodes[i].calls};
    qsort(groups, found, sizeof *groups, by_hash);
    for (size_t i = 1; i < found; i++) {
        struct group *last = &groups[kept];
        if (groups[i].hash != last->hash) {
            groups[++kept] = groups[i];
            continue;
        }
        last->count++;
        last->self_ns += groups[i].self_ns;
        last->calls += groups[i].calls;
        if (groups[i].self_ns > p->nodes[last->node].self_ns)
            last->node = groups[i].node;
    }
    found = found ? kept + 1 : 0;
    qsort(groups, found, sizeof *groups, by_self);
    return found;
}

/* The scopes with the most time of their own, while they matter: 10 % each group. */
static void find_hot(struct judge *j)
{
    struct group *groups = malloc(j->p->node_count * sizeof *groups);
    size_t count = groups ? make_groups(j->p, groups) : 0;
    for (size_t i = 0; i < count && i < EACH; i++) {
        const struct group *g = &groups[i];
        double share = percent((double)g->self_ns, (double)j->p->host_ns);
        const char *advice = i == 0 ? "Begin here." : "Then here.";
        char path[PATH_ROOM], self[TD_WORDS], whole[TD_WORDS];
        if (share < 10)
            break;
        path_of(j, g->node, path);
        td_words_time(self, (double)g->self_ns);
        td_words_time(whole, (double)j->p->host_ns);
        if (g->count == 1)
            found(j, "hot", g->node, share, 10, advice,
                  "%s itself takes %.1f %% of the time: %s of %s in %" PRIu64 " call%s.", path, share, self,
                  whole, g->calls, g->calls == 1 ? "" : "s");
        else
            found(j, "hot", g->node, share, 10, advice,
                  "%zu scopes like %s themselves take %.1f %% of the time: %s of %s in %" PRIu64 " calls.",
                  g->count, path, share, self, whole, g->calls);
    }
    free(groups);
}

/* Calls so short that what surrounds them costs as much: under 5 us, 20 % of the time together. */
static void find_tiny(struct judge *j)
{
    int64_t time = 0;
    uint64_t calls = 0;
    uint32_t worst = 0;
    for (uint32_t i = 1; i < j->p->node_count; i++) {
        const struct td_profile_node *n = &j->p->nodes[i];
        if (n->device || n->first || n->calls < 1000 || (double)n->total_ns / (double)n->calls >= 5000)
            continue;
        time += n->self_ns;
        calls += n->calls;
        if (!worst || n->calls > j->p->nodes[worst].calls)
            worst = i;
    }
    double share = percent((double)time, (double)j->p->host_ns);
    if (share < 20)
        return;
    char path[PATH_ROOM], mean[TD_WORDS];
    found(j, "tiny", worst, share, 20, "Fuse or batch them, or record fewer of them.",
          "%" PRIu64 " calls of less than 5 us are %.1f %% of the time; most often %s, %" PRIu64
          " calls of %s.",
          calls, share, path_of(j, worst, path), j->p->nodes[worst].calls,
          td_words_time(mean, (double)j->p->nodes[worst].total_ns / (double)j->p->nodes[worst].calls));
}

/* --- Siblings ------------------------------------------------------------------------------------------- */

/* Names that differ in their numbers only are of one family: layers.0, layers.1. */
static bool same_family(const char *a, const char *b)
{
    for (;;) {
        bool digits = *a >= '0' && *a <= '9';
        if (digits != (*b >= '0' && *b <= '9'))
            return false;
        if (digits) {
            while (*a >= '0' && *a <= '9')
                a++;
            while (*b >= '0' && *b <= '9')
                b++;
            continue;
        }
        if (*a != *b)
            return false;
        if (!*a)
            return true;
        a++;
        b++;
    }
}

static double per_call(const struct td_profile_node *n)
{
    return n->calls ? (double)n->total_ns / (double)n->calls : (double)n->total_ns;
}

enum { SIBLINGS = 512 }; /* among more there are no layers to compare */

/* Of the family of `first` under its parent: how many they are, and their median time a call. */
static size_t family_of(const struct td_profile *p, uint32_t first, double *median)
{
    double times[SIBLINGS];
    size_t count = 0;
    const char *name = td_profile_name_of(p, first);
    for (uint32_t i = first; i && count < SIBLINGS; i = p->nodes[i].next)
        if (same_family(td_profile_name_of(p, i), name))
            times[count++] = per_call(&p->nodes[i]);
    *median = td_order_median(times, count);
    return count;
}

static void judge_member(struct judge *j, uint32_t node, size_t family, double median)
{
    const struct td_profile_node *n = &j->p->nodes[node];
    double excess = ((per_call(n) - median) * (double)n->calls), times = per_call(n) / median;
    char path[PATH_ROOM], own[TD_WORDS], others[TD_WORDS];
    if (times < 1.5 || percent(excess, (double)j->p->host_ns) < 1)
        return;
    found(j, "outlier", node, times, 1.5,
          "See what it does that they do not: its shapes, type, place in memory.",
          "%s takes %s a call, %.1f times the median of its kind (%s, %zu scopes).", path_of(j, node, path),
          td_words_time(own, per_call(n)), times, td_words_time(others, median), family);
}

static bool is_first_of_family(const struct td_profile *p, uint32_t node)
{
    const char *name = td_profile_name_of(p, node);
    for (uint32_t i = p->nodes[p->nodes[node].parent].first; i != node; i = p->nodes[i].next)
        if (same_family(td_profile_name_of(p, i), name))
            return false;
    return true;
}

static bool has_few_siblings(const struct td_profile *p, uint32_t node)
{
    size_t count = 0;
    for (uint32_t i = p->nodes[p->nodes[node].parent].first; i && count <= SIBLINGS; i = p->nodes[i].next)
        count++;
    return count <= SIBLINGS;
}

/* A layer slower than those like it: 1.5 times the median, and 1 % of the time lost to it. */
static void find_outliers(struct judge *j)
{
    const struct td_profile *p = j->p;
    size_t most = j->out->count + EACH;
    for (uint32_t first = 1; first < p->node_count && j->out->count < most; first++) {
        double median;
        if (!p->nodes[first].next || p->nodes[first].device || !has_few_siblings(p, first) ||
            !is_first_of_family(p, first))
            continue;
        size_t family = family_of(p, first, &median);
        if (family < 3 || median <= 0)
            continue;
        for (uint32_t i = first; i && j->out->count < most; i = p->nodes[i].next)
            if (same_family(td_profile_name_of(p, i), td_profile_name_of(p, first)))
                judge_member(j, i, family, median);
    }
}

/* --- Work ----------------------------------------------------------------------------------------------- */

static double rate_of(const struct td_profile_node *n)
{
    return n->total_ns > 0 ? n->flops / ((double)n->total_ns * 1e-9) : 0;
}

/* A scope that computes far more slowly than this machine did elsewhere in the run: a quarter, at 10 % of the
 * time. What it moves tells why: under 10 FLOPs a byte a processor waits for its memory. */
static void find_slow_work(struct judge *j)
{
    const struct td_profile *p = j->p;
    uint32_t best = 0;
    int told = 0;
    for (uint32_t i = 1; i < p->node_count; i++)
        if (p->nodes[i].own_flops > 0 && td_profile_share(p, i) > 0.01 &&
            (!best || rate_of(&p->nodes[i]) > rate_of(&p->nodes[best])))
            best = i;
    for (uint32_t i = 1; best && i < p->node_count && told < EACH; i++) {
        const struct td_profile_node *n = &p->nodes[i];
        if (n->own_flops <= 0 || td_profile_share(p, i) < 0.1 || rate_of(n) * 4 > rate_of(&p->nodes[best]))
            continue;
        char path[PATH_ROOM], fast[PATH_ROOM], rate[TD_WORDS], most[TD_WORDS], moved[80] = "";
        double intensity = n->bytes > 0 ? n->flops / n->bytes : INFINITY;
        if (n->bytes > 0)
            snprintf(moved, sizeof moved, " It does %.3g FLOPs for each byte it moves.", intensity);
        found(j, "slow_work", i, rate_of(n), rate_of(&p->nodes[best]),
              intensity < 10 ? "Memory bounds it: move less (fuse, smaller types), not compute faster."
                             : "Look at its shapes, threads and vector code.",
              "%s runs at %s, %s at %s.%s", path_of(j, i, path), td_words_rate(rate, rate_of(n), "FLOP/s"),
              path_of(j, best, fast), td_words_rate(most, rate_of(&p->nodes[best]), "FLOP/s"), moved);
        told++;
    }
}

/* --- Steps ---------------------------------------------------------------------------------------------- */

static double step_ns(const struct td_profile *p, size_t i)
{
    return (double)p->steps[i].end_ns - (double)p->steps[i].begin_ns;
}

static void find_warmup(struct judge *j)
{
    const struct td_profile *p = j->p;
    char first[TD_WORDS], median[TD_WORDS];
    if (p->kept < 5 || step_ns(p, 0) < 3 * p->step_spread.p50)
        return;
    found(j, "warmup", TD_PROFILE_NONE, step_ns(p, 0), p->step_spread.p50,
          "Warm up before you measure; medians already leave it out.",
          "The first step takes %s, %.1f times the median (%s).", td_words_time(first, step_ns(p, 0)),
          step_ns(p, 0) / p->step_spread.p50, td_words_time(median, p->step_spread.p50));
}

/* Which scope explains why some steps are longer than others: the deepest one whose excess is at least half
 * of theirs. `later` picks the steps. */
static uint32_t explains(const struct judge *j, const bool *picked, double excess)
{
    uint32_t best = TD_PROFILE_NONE;
    for (uint32_t i = 1; i < j->p->node_count; i++) {
        const float *series = td_profile_series(j->p, i);
        double in = 0, out = 0;
        size_t count_in = 0, count_out = 0;
        for (size_t k = 0; series && k < j->p->kept; k++) {
            double value = isnan(series[k]) ? 0 : (double)series[k];
            if (picked[k]) {
                in += value;
                count_in++;
            } else {
                out += value;
                count_out++;
            }
        }
        if (count_in && count_out && in / (double)count_in - out / (double)count_out >= excess / 2 &&
            (best == TD_PROFILE_NONE || j->p->nodes[i].depth >= j->p->nodes[best].depth))
            best = i;
    }
    return best;
}

static void find_jitter(struct judge *j)
{
    const struct td_profile *p = j->p;
    const struct td_spread *s = &p->step_spread;
    if (p->kept < 20 || s->p50 <= 0 || s->p99 < 1.5 * s->p50)
        return;
    bool picked[TD_PROFILE_STEPS];
    for (size_t i = 0; i < p->kept; i++)
        picked[i] = step_ns(p, i) > (s->p50 + s->p99) / 2;
    uint32_t node = explains(j, picked, (s->p99 - s->p50) / 2);
    char path[PATH_ROOM], slow[TD_WORDS], usual[TD_WORDS], where[PATH_ROOM + 32] = "";
    if (node != TD_PROFILE_NONE)
        snprintf(where, sizeof where, " Most of it is in %s.", path_of(j, node, path));
    found(j, "jitter", node, s->p99 / s->p50, 1.5,
          "Look for what happens now and then: garbage collection, input, saving, other programs.",
          "Steps are uneven: p99 %s is %.1f times p50 %s.%s", td_words_time(slow, s->p99), s->p99 / s->p50,
          td_words_time(usual, s->p50), where);
}

/* The last quarter of the steps against the first, without the warm-up. */
static void find_drift(struct judge *j)
{
    const struct td_profile *p = j->p;
    size_t quarter = p->kept / 4, skip = p->kept >= 12 ? 2 : 0;
    struct td_shift shift;
    if (quarter < TD_SHIFT_LEAST + 2)
        return;
    for (size_t i = 0; i < quarter - skip; i++)
        j->work[i] = step_ns(p, skip + i);
    for (size_t i = 0; i < quarter; i++)
        j->more[i] = step_ns(p, p->kept - quarter + i);
    if (!td_shift_measure(&shift, j->work, quarter - skip, j->more, quarter) || shift.p > 0.01 ||
        shift.median_b < 1.15 * shift.median_a)
        return;
    bool picked[TD_PROFILE_STEPS];
    for (size_t i = 0; i < p->kept; i++)
        picked[i] = i >= p->kept - quarter;
    uint32_t node = explains(j, picked, shift.shift / 2);
    char path[PATH_ROOM], first[TD_WORDS], last[TD_WORDS], where[PATH_ROOM + 32] = "";
    if (node != TD_PROFILE_NONE)
        snprintf(where, sizeof where, " Most of it is in %s.", path_of(j, node, path));
    found(j, "drift", node, shift.median_b / shift.median_a, 1.15,
          "Look for what grows: a list, a cache, a sequence, fragmented memory.",
          "Steps become slower: the median goes from %s in the first quarter to %s in the last.%s",
          td_words_time(first, shift.median_a), td_words_time(last, shift.median_b), where);
}

/* --- The machine ---------------------------------------------------------------------------------------- */

static void find_idle(struct judge *j)
{
    const struct td_profile *p = j->p;
    double cpu = 0, wall = 0;
    for (size_t i = 0; i < p->kept; i++)
        if (p->steps[i].cpu_ns >= 0) {
            cpu += (double)p->steps[i].cpu_ns;
            wall += step_ns(p, i);
        }
    if (wall < 1e6 || cpu > 0.7 * wall)
        return;
    char used[TD_WORDS], whole[TD_WORDS];
    found(j, "idle", TD_PROFILE_NONE, cpu / wall, 0.7,
          "The program waits: for input, a lock, another rank or a device.",
          "The CPU works for %.0f %% of the time of the steps: %s of %s.", percent(cpu, wall),
          td_words_time(used, cpu), td_words_time(whole, wall));
}

/* How much of the steps lies in scopes of any thread. */
static void find_unscoped(struct judge *j)
{
    const struct td_profile *p = j->p;
    double inside = 0, wall = 0;
    for (size_t i = 0; i < p->kept; i++) {
        inside += (double)td_intervals_within(&p->host, p->steps[i].begin_ns, p->steps[i].end_ns);
        wall += step_ns(p, i);
    }
    if (wall <= 0 || !p->calls || inside > 0.8 * wall)
        return;
    char in[TD_WORDS], whole[TD_WORDS];
    found(j, "unscoped", TD_PROFILE_NONE, inside / wall, 0.8, "Put scopes around the rest of a step.",
          "Scopes explain %.0f %% of the time of the steps: %s of %s.", percent(inside, wall),
          td_words_time(in, inside), td_words_time(whole, wall));
}

static void find_idle_device(struct judge *j)
{
    const struct td_profile *p = j->p;
    double span = (double)p->last_ns - (double)p->first_ns;
    char busy[TD_WORDS], whole[TD_WORDS];
    if (p->device_wall_ns > 0 && (double)p->device_wall_ns < 0.7 * span)
        found(j, "gpu_idle", TD_PROFILE_NONE, (double)p->device_wall_ns / span, 0.7,
              "The host does not feed it fast enough: larger batches, fewer and larger kernels, graphs.",
              "The GPU works for %.0f %% of the time: %s of %s.", percent((double)p->device_wall_ns, span),
              td_words_time(busy, (double)p->device_wall_ns), td_words_time(whole, span));
    for (size_t i = 0; i < p->gauge_count; i++) {
        const struct td_profile_gauge *g = &p->gauges[i];
        double mean = g->count ? g->sum / (double)g->count : 0;
        if (strstr(g->name, ".utilisation") && mean < 60)
            found(j, "gpu_idle", TD_PROFILE_NONE, mean, 60,
                  "The host does not feed it fast enough: larger batches, fewer and larger kernels, graphs.",
                  "%s is %.0f %% on average (%" PRIu64 " samples).", g->name, mean, g->count);
    }
}

static void (*const rules[])(struct judge *j) = {
    find_hot,    find_outliers, find_tiny, find_slow_work, find_warmup,
    find_jitter, find_drift,    find_idle, find_unscoped,  find_idle_device,
};

tdbg_status td_profile_find_findings(const struct td_profile *profile, struct td_findings *out,
                                     struct tdbg_error *error)
{
    struct judge j = {.p = profile, .out = out};
    out->count = 0;
    j.work = calloc(2 * (profile->kept + 1), sizeof *j.work);
    if (!j.work)
        return td_fail_nomem(error);
    j.more = j.work + profile->kept + 1;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        rules[i](&j);
    free(j.work);
    return TDBG_OK;
}
