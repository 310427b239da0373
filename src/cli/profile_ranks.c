/* profile_ranks.c: see profile_ranks.h. Ranks that wait for each other have equal steps, so what counts is
 * each scope for itself: the straggler is slow in one, the others wait in another. */
#include "cli/profile_ranks.h"

#include "analyse/profile_compare.h"
#include "analyse/profile_words.h"
#include "cli/profile_rows.h"
#include "report/profile_compare_json.h"

#include <inttypes.h>
#include <stdlib.h>

struct ranks {
    const char *path;
    const int *numbers;
    size_t count;
    struct td_profile_source *sources;
    const struct td_profile **profiles;
    struct td_straggler stragglers[TD_STRAGGLERS];
    size_t straggler_count;
};

/* --- JSON ----------------------------------------------------------------------------------------------- */

static bool write_json(const struct ranks *r, const struct profile_view *view)
{
    struct td_json json, *j = &json;
    struct td_findings findings;
    bool good = true;
    td_json_to_file(j, stdout);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_field_string(j, "path", r->path);
    td_profile_stragglers_json(j, r->profiles, r->numbers, r->stragglers, r->straggler_count);
    td_json_key(j, "ranks");
    td_json_begin_array(j);
    for (size_t i = 0; i < r->count && good; i++) {
        good = td_profile_find_findings(r->profiles[i], &findings, NULL) == TDBG_OK;
        td_json_begin_object(j);
        good = good && profile_write(j, &r->sources[i], &findings, view);
        td_json_end_object(j);
    }
    td_json_end_array(j);
    td_json_end_object(j);
    td_json_newline(j);
    return td_json_finish(j) && good;
}

/* --- Text ----------------------------------------------------------------------------------------------- */

static const struct column rank_columns[] = {
    {"rank", true, false, 0},      {"host", false, true, 0}, {"steps", true, false, 0},
    {"p50/step", true, false, 0},  {"p90", true, false, 2},  {"p99", true, false, 3},
    {"in scopes", true, false, 0}, {"CPU", true, false, 1},
};

static void add_rank(struct table *t, int number, const struct td_profile_source *source)
{
    const struct td_profile *p = &source->profile;
    char text[TD_WORDS];
    double cpu = 0, wall = 0;
    for (size_t i = 0; i < p->kept; i++) {
        cpu += (double)p->steps[i].cpu_ns;
        wall += (double)p->steps[i].end_ns - (double)p->steps[i].begin_ns;
    }
    table_cellf(t, "%d", number);
    table_cell(t, source->run.host);
    table_cellf(t, "%" PRId64, p->step_count);
    table_cell(t, td_words_time(text, p->step_spread.p50));
    table_cell(t, td_words_time(text, p->step_spread.p90));
    table_cell(t, td_words_time(text, p->step_spread.p99));
    table_cell(t, td_words_time(text, (double)p->wall_ns));
    table_cellf(t, "%.2f x", wall > 0 ? cpu / wall : 0);
}

static bool print_ranks(const struct cli *cli, const struct ranks *r)
{
    struct table table;
    table_init(&table, rank_columns, sizeof rank_columns / sizeof *rank_columns);
    for (size_t i = 0; i < r->count; i++)
        add_rank(&table, r->numbers[i], &r->sources[i]);
    bool good = table_print(&table, &cli->out, 0);
    table_release(&table);
    return good;
}

enum { SHOWN = 62 }; /* ranks beside each other: table.h hides columns by the bits of 64 */

/* The node of `profile` with the path that `node` has in the first profile. */
static uint32_t counterpart(const struct ranks *r, uint32_t node, size_t rank, const uint32_t *above)
{
    uint32_t parent = r->profiles[0]->nodes[node].parent;
    uint32_t there = above[parent * r->count + rank];
    if (there == TD_PROFILE_NONE)
        return TD_PROFILE_NONE;
    return td_profile_find(r->profiles[rank], there, td_profile_name_of(r->profiles[0], node));
}

static void add_scope(struct table *t, const struct ranks *r, uint32_t node, uint32_t *places, double *work,
                      size_t shown)
{
    char text[TD_WORDS];
    profile_name_cell(t, td_profile_name_of(r->profiles[0], node), r->profiles[0]->nodes[node].depth);
    for (size_t i = 0; i < r->count; i++) {
        uint32_t there = counterpart(r, node, i, places);
        places[node * r->count + i] = there;
        if (i >= shown)
            continue;
        struct td_spread s = {0};
        if (there != TD_PROFILE_NONE)
            s = td_profile_spread(r->profiles[i], there, work);
        bool slow = false;
        for (size_t k = 0; k < r->straggler_count; k++)
            slow = slow || (r->stragglers[k].rank == i && r->stragglers[k].node == there);
        table_cell_styled(t, slow ? STYLE_RED : STYLE_PLAIN, s.count ? td_words_time(text, s.p50) : "");
    }
}

/* The scopes of the first rank, and the median a step of every rank in each. */
static bool print_scopes(const struct cli *cli, const struct ranks *r, const struct profile_view *view)
{
    size_t shown = r->count < SHOWN ? r->count : SHOWN, kept = 1;
    struct column *columns = calloc(shown + 1, sizeof *columns);
    char(*titles)[24] = calloc(shown + 1, sizeof *titles);
    uint32_t *places = calloc(r->profiles[0]->node_count * r->count, sizeof *places);
    struct profile_rows rows = {0};
    for (size_t i = 0; i < r->count; i++)
        kept = r->profiles[i]->kept > kept ? r->profiles[i]->kept : kept;
    double *work = malloc(kept * sizeof *work);
    bool good = columns && titles && places && work && profile_rows_init(&rows, r->profiles[0], view);
    if (good) {
        struct table table;
        columns[0] = (struct column){"p50/step", false, true, 0};
        for (size_t i = 0; i < shown; i++) {
            snprintf(titles[i], sizeof *titles, "rank %d", r->numbers[i]);
            columns[i + 1] = (struct column){titles[i], true, false, i < 4 ? 0 : (int)i};
        }
        table_init(&table, columns, shown + 1);
        for (size_t i = 0; i < rows.count; i++)
            add_scope(&table, r, rows.nodes[i], places, work, shown);
        good = !rows.count || table_print(&table, &cli->out, 0);
        table_release(&table);
    }
    profile_rows_release(&rows);
    free(columns);
    free(titles);
    free(places);
    free(work);
    return good;
}

static void print_stragglers(const struct ranks *r)
{
    char path[1024], own[TD_WORDS], others[TD_WORDS];
    if (!r->straggler_count)
        printf("\nNo rank is slower than the others by 10 %% in any scope.\n");
    else
        putchar('\n');
    for (size_t i = 0; i < r->straggler_count; i++) {
        const struct td_straggler *s = &r->stragglers[i];
        printf("- Rank %d takes %s a step in %s, the others %s (median): %.2f times.\n", r->numbers[s->rank],
               td_words_time(own, s->own),
               s->node == TD_PROFILE_ROOT ? "the whole step"
                                          : td_profile_path(r->profiles[s->rank], s->node, path, sizeof path),
               td_words_time(others, s->others), s->own / s->others);
    }
}

/* --- The report ----------------------------------------------------------------------------------------- */

static int load(struct cli *cli, struct ranks *r)
{
    struct tdbg_error error;
    for (size_t i = 0; i < r->count; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/rank-%d", r->path, r->numbers[i]);
        if (td_profile_source_open(&r->sources[i], inner, cli->job, &error) != TDBG_OK)
            return cli_fail(inner, &error);
        r->profiles[i] = &r->sources[i].profile;
    }
    if (td_profile_stragglers(r->profiles, r->count, r->stragglers, &r->straggler_count, &error) != TDBG_OK)
        return cli_fail(r->path, &error);
    return EXIT_FINE;
}

int profile_report_ranks(struct cli *cli, const char *path, const int *ranks, size_t count,
                         const struct profile_view *view)
{
    struct ranks r = {.path = path,
                      .numbers = ranks,
                      .count = count,
                      .sources = calloc(count, sizeof *r.sources),
                      .profiles = calloc(count, sizeof *r.profiles)};
    bool good = r.sources && r.profiles;
    int status = good ? load(cli, &r) : EXIT_TROUBLE;
    if (good && status == EXIT_FINE) {
        if (cli->json)
            good = write_json(&r, view);
        else if ((good = print_ranks(cli, &r) && (putchar('\n'), print_scopes(cli, &r, view))))
            print_stragglers(&r);
    }
    for (size_t i = 0; r.sources && i < count; i++)
        td_profile_source_close(&r.sources[i]);
    free(r.sources);
    free(r.profiles);
    return good ? status : EXIT_TROUBLE;
}
