/* profile_text.c: see profile_text.h.
 *
 * Of a large tree only the heaviest scopes are shown. A parent takes at least the time of its child, so the
 * heaviest by total time are a tree again; by self time or calls, the parents of what is shown come along.
 */
#include "cli/profile_text.h"

#include "analyse/profile_words.h"
#include "cli/profile_rows.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- Head ----------------------------------------------------------------------------------------------- */

static void print_steps(const struct td_profile *p)
{
    char p50[TD_WORDS], p90[TD_WORDS], p99[TD_WORDS], rate[TD_WORDS];
    const struct td_spread *s = &p->step_spread;
    if (!s->count)
        return;
    printf("%" PRId64 " step%s: p50 %s, p90 %s, p99 %s", p->step_count, text_plural((uint64_t)p->step_count),
           td_words_time(p50, s->p50), td_words_time(p90, s->p90), td_words_time(p99, s->p99));
    double tokens = p->nodes[TD_PROFILE_ROOT].tokens;
    if (tokens > 0 && p->wall_ns > 0)
        printf(", %s", td_words_rate(rate, tokens / ((double)p->wall_ns * 1e-9), "tokens/s"));
    if (p->stride > 1)
        printf(" (every %" PRId64 "th step counted)", p->stride);
    putchar('\n');
}

static void print_machine(const struct td_profile *p)
{
    double cpu = 0, wall = 0;
    char text[TD_WORDS], most[TD_WORDS];
    for (size_t i = 0; i < p->kept; i++)
        if (p->steps[i].cpu_ns >= 0) {
            cpu += (double)p->steps[i].cpu_ns;
            wall += (double)p->steps[i].end_ns - (double)p->steps[i].begin_ns;
        }
    if (wall > 0)
        printf("CPU time of all threads: %.2f x the time of the steps\n", cpu / wall);
    if (p->peak_bytes > 0)
        printf("memory: %s held at most\n", td_words_bytes(text, (double)p->peak_bytes));
    for (size_t i = 0; i < p->gauge_count; i++) {
        const struct td_profile_gauge *g = &p->gauges[i];
        bool bytes = strstr(g->name, ".memory") != NULL;
        double mean = g->sum / (double)g->count;
        if (bytes)
            printf("%s: mean %s, max %s\n", g->name, td_words_bytes(text, mean),
                   td_words_bytes(most, g->most));
        else
            printf("%s: mean %.0f %%, max %.0f %%\n", g->name, mean, g->most);
    }
}

void profile_print_head(const struct cli *cli, const char *path, const struct td_profile_source *source)
{
    const struct td_profile *p = &source->profile;
    char wall[TD_WORDS], whole[TD_WORDS];
    size_t threads = 0, streams = 0;
    for (size_t i = 0; i < p->thread_count; i++) {
        threads += p->threads[i].calls && !p->threads[i].device;
        streams += p->threads[i].calls && p->threads[i].device;
    }
    printf("%s%s%s: %s of wall time in scopes", term_style(&cli->out, STYLE_BOLD), path,
           term_style(&cli->out, STYLE_PLAIN), td_words_time(wall, (double)p->wall_ns));
    if (threads > 1)
        printf(", %s of thread time in %zu threads", td_words_time(whole, (double)p->host_ns), threads);
    if (streams)
        printf(", %s of GPU time in %zu stream%s", td_words_time(whole, (double)p->device_wall_ns), streams,
               text_plural((uint64_t)streams));
    putchar('\n');
    print_steps(p);
    print_machine(p);
    if (source->is_run && !source->run.ended_ns)
        printf("the run has not ended: it goes on, or was killed\n");
    if (!source->is_run && source->trace.cut)
        printf("the trace stops within an event at byte %" PRIu64 "; what was before it counts\n",
               source->trace.cut_at);
    if (p->folded)
        printf("%" PRIu64 " calls of scopes beyond the first %d count for their parents\n", p->folded,
               TD_PROFILE_NODES);
}

/* --- Tree ----------------------------------------------------------------------------------------------- */

enum { SCOPE, CALLS, TOTAL, SELF, SHARE, P50, P90, P99, FLOPS, TOKENS, MOVED, MEMORY, COLUMNS };

static const struct column columns[COLUMNS] = {
    [SCOPE] = {"scope", false, true, 0},   [CALLS] = {"calls", true, false, 0},
    [TOTAL] = {"total", true, false, 0},   [SELF] = {"self", true, false, 0},
    [SHARE] = {"share", true, false, 0},   [P50] = {"p50/step", true, false, 1},
    [P90] = {"p90", true, false, 5},       [P99] = {"p99", true, false, 4},
    [FLOPS] = {"FLOP/s", true, false, 2},  [TOKENS] = {"tokens/s", true, false, 3},
    [MOVED] = {"bytes/s", true, false, 7}, [MEMORY] = {"memory", true, false, 6},
};

static void add_rate(struct table *t, double amount, int64_t ns)
{
    char text[TD_WORDS];
    table_cell(t, amount > 0 && ns > 0 ? td_words_count(text, amount / ((double)ns * 1e-9)) : "");
}

static void add_time(struct table *t, double ns, bool known)
{
    char text[TD_WORDS];
    table_cell(t, known ? td_words_time(text, ns) : "");
}

static void add_row(struct table *t, const struct td_profile *p, uint32_t node, double *work)
{
    const struct td_profile_node *n = &p->nodes[node];
    struct td_spread s = td_profile_spread(p, node, work);
    double share = 100 * td_profile_share(p, node);
    char text[TD_WORDS];
    int64_t memory = n->peak_bytes ? n->peak_bytes : n->allocated_bytes;
    profile_name_cell(t, td_profile_name_of(p, node), n->depth);
    table_cellf(t, "%" PRIu64, n->calls);
    add_time(t, (double)n->total_ns, true);
    add_time(t, (double)n->self_ns, true);
    snprintf(text, sizeof text, "%.1f %%", share);
    table_cell_styled(t, share >= 30 && !n->first ? STYLE_YELLOW : STYLE_PLAIN, text);
    add_time(t, s.p50, s.count > 0);
    add_time(t, s.p90, s.count > 0);
    add_time(t, s.p99, s.count > 0);
    add_rate(t, n->flops, n->total_ns);
    add_rate(t, n->tokens, n->total_ns);
    add_rate(t, n->bytes, n->total_ns);
    table_cell(t, memory > 0 ? td_words_bytes(text, (double)memory) : "");
}

/* Columns nobody filled. */
static uint64_t needless(const struct td_profile *p)
{
    const struct td_profile_node *root = &p->nodes[TD_PROFILE_ROOT];
    uint64_t hidden = 0;
    if (p->kept < 2)
        hidden |= UINT64_C(1) << P50 | UINT64_C(1) << P90 | UINT64_C(1) << P99;
    hidden |= root->flops > 0 ? 0 : UINT64_C(1) << FLOPS;
    hidden |= root->bytes > 0 ? 0 : UINT64_C(1) << MOVED;
    hidden |= root->tokens > 0 ? 0 : UINT64_C(1) << TOKENS;
    hidden |= root->peak_bytes || root->allocated_bytes ? 0 : UINT64_C(1) << MEMORY;
    return hidden;
}

static bool print_tree(const struct cli *cli, const struct td_profile *p, const struct profile_view *view)
{
    struct profile_rows rows;
    double *work = malloc((p->kept + 1) * sizeof *work);
    if (!work || !profile_rows_init(&rows, p, view)) {
        free(work);
        return false;
    }
    struct table table;
    table_init(&table, columns, COLUMNS);
    for (size_t i = 0; i < rows.count; i++)
        add_row(&table, p, rows.nodes[i], work);
    bool printed = !rows.count || table_print(&table, &cli->out, needless(p));
    if (rows.left_out && !cli->quiet)
        printf("%s%zu more scopes (--top 0 and no --depth show all)%s\n", term_style(&cli->out, STYLE_DIM),
               rows.left_out, term_style(&cli->out, STYLE_PLAIN));
    table_release(&table);
    profile_rows_release(&rows);
    free(work);
    return printed;
}

/* --- Flat ----------------------------------------------------------------------------------------------- */

static const struct column flat_columns[] = {
    {"name", false, true, 0},  {"calls", true, false, 0},     {"self", true, false, 0},
    {"share", true, false, 0}, {"self/call", true, false, 1}, {"places", true, false, 2},
};

static bool print_flat(const struct cli *cli, const struct td_profile *p, const struct profile_view *view)
{
    struct profile_name *names;
    size_t count, shown;
    if (!profile_names(p, view->sort, &names, &count))
        return false;
    struct table table;
    table_init(&table, flat_columns, sizeof flat_columns / sizeof *flat_columns);
    shown = view->top && (size_t)view->top < count ? (size_t)view->top : count;
    for (size_t i = 0; i < shown; i++) {
        double whole = (double)(names[i].device ? p->device_ns : p->host_ns);
        table_cell(&table, p->names[names[i].name]);
        table_cellf(&table, "%" PRIu64, names[i].calls);
        add_time(&table, (double)names[i].self_ns, true);
        table_cellf(&table, "%.1f %%", whole > 0 ? 100 * (double)names[i].self_ns / whole : 0);
        add_time(&table, names[i].calls ? (double)names[i].self_ns / (double)names[i].calls : 0, true);
        table_cellf(&table, "%" PRIu64, names[i].places);
    }
    bool printed = !shown || table_print(&table, &cli->out, 0);
    if (shown < count && !cli->quiet)
        printf("%s%zu more names (--top 0 shows all)%s\n", term_style(&cli->out, STYLE_DIM), count - shown,
               term_style(&cli->out, STYLE_PLAIN));
    table_release(&table);
    free(names);
    return printed;
}

bool profile_print_table(const struct cli *cli, const struct td_profile *profile,
                         const struct profile_view *view)
{
    return view->flat ? print_flat(cli, profile, view) : print_tree(cli, profile, view);
}

/* --- Findings ------------------------------------------------------------------------------------------- */

void profile_print_findings(const struct cli *cli, const struct td_findings *findings)
{
    if (!findings->count || cli->quiet)
        return;
    putchar('\n');
    for (size_t i = 0; i < findings->count; i++) {
        char both[700];
        snprintf(both, sizeof both, "%s %s", findings->items[i].text, findings->items[i].advice);
        printf("- ");
        term_put_wrapped(&cli->out, both, 2, 2);
    }
}
