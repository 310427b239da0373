/* profile_compare.c: see profile_compare.h. Of many scopes those that changed are shown, then the heaviest;
 * what they are part of comes along. */
#include "cli/profile_compare.h"

#include "analyse/profile_words.h"
#include "cli/profile_rows.h"
#include "cli/text.h"
#include "report/profile_compare_json.h"

#include <math.h>
#include <stdlib.h>

struct side {
    const char *path;
    const struct td_profile *profile;
};

static bool write_json(const struct side *a, const struct side *b, const struct td_profile_comparison *c)
{
    struct td_json json, *j = &json;
    td_json_to_file(j, stdout);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_field_string(j, "path", b->path);
    td_json_field_string(j, "other", a->path);
    td_profile_comparison_json(j, c, a->profile, b->profile);
    td_json_end_object(j);
    td_json_newline(j);
    return td_json_finish(j);
}

/* --- Which rows ----------------------------------------------------------------------------------------- */

static bool has_changed(const struct td_profile_pair *pair)
{
    return pair->change != TD_CHANGE_NONE && pair->change != TD_CHANGE_UNKNOWN;
}

static double weight(const struct td_profile_pair *pair)
{
    double a = isnan(pair->shift.median_a) ? 0 : pair->shift.median_a;
    return fmax(a, isnan(pair->shift.median_b) ? 0 : pair->shift.median_b);
}

static int by_interest(const void *left, const void *right, void *context)
{
    const struct td_profile_pair *pairs = context;
    const struct td_profile_pair *a = &pairs[*(const size_t *)left], *b = &pairs[*(const size_t *)right];
    if (has_changed(a) != has_changed(b))
        return has_changed(a) ? -1 : 1;
    if (weight(a) != weight(b))
        return weight(a) > weight(b) ? -1 : 1;
    return (a > b) - (a < b);
}

/* Marks the rows to show; the first is the whole step. */
static bool choose(const struct td_profile_comparison *c, const struct profile_view *view, bool *chosen)
{
    size_t *order = malloc(c->count * sizeof *order), found = 0, shown = 0;
    if (!order)
        return false;
    for (size_t i = 1; i < c->count; i++)
        if (view->depth < 0 || c->pairs[i].depth < view->depth)
            order[found++] = i;
    qsort_r(order, found, sizeof *order, by_interest, c->pairs);
    chosen[0] = true;
    for (size_t i = 0; i < found && (!view->top || shown < (size_t)view->top); i++) {
        uint32_t depth = UINT32_MAX;
        for (size_t k = order[i]; k > 0 && depth > 0; k--) {
            if (c->pairs[k].depth >= depth)
                continue;
            depth = c->pairs[k].depth;
            shown += !chosen[k];
            chosen[k] = true;
        }
    }
    free(order);
    return true;
}

/* --- Table ---------------------------------------------------------------------------------------------- */

enum { SCOPE, BEFORE, NOW, CHANGE, SHIFT, INTERVAL, VERDICT, COLUMNS };

static const struct column columns[COLUMNS] = {
    [SCOPE] = {"scope", false, true, 0},      [BEFORE] = {"other p50", true, false, 0},
    [NOW] = {"p50/step", true, false, 0},     [CHANGE] = {"change", true, false, 0},
    [SHIFT] = {"shift", true, false, 2},      [INTERVAL] = {"95 % interval", true, false, 1},
    [VERDICT] = {"verdict", false, false, 0},
};

static void add_time(struct table *t, double ns)
{
    char text[TD_WORDS];
    table_cell(t, isnan(ns) || ns == 0 ? "" : td_words_time(text, ns));
}

static void add_row(struct table *t, const struct side *a, const struct side *b,
                    const struct td_profile_pair *pair)
{
    static const char *const words[] = {"", "slower", "faster", "too few steps", "only other", "new"};
    static const enum style styles[] = {STYLE_PLAIN, STYLE_RED, STYLE_GREEN, STYLE_DIM, STYLE_DIM, STYLE_DIM};
    const struct td_shift *s = &pair->shift;
    char low[TD_WORDS], high[TD_WORDS];
    const char *name = pair->a == TD_PROFILE_ROOT   ? "step"
                       : pair->a != TD_PROFILE_NONE ? td_profile_name_of(a->profile, pair->a)
                                                    : td_profile_name_of(b->profile, pair->b);
    profile_name_cell(t, name, pair->depth);
    add_time(t, s->median_a);
    add_time(t, s->median_b);
    if (s->median_a > 0 && !isnan(s->median_b))
        table_cellf(t, "%+.1f %%", 100 * (s->median_b / s->median_a - 1));
    else
        table_cell(t, "");
    bool known = s->count_a >= TD_SHIFT_LEAST && s->count_b >= TD_SHIFT_LEAST;
    add_time(t, known ? s->shift : 0);
    if (known)
        table_cellf(t, "%s .. %s", td_words_time(low, s->low), td_words_time(high, s->high));
    else
        table_cell(t, "");
    table_cell_styled(t, styles[pair->change], words[pair->change]);
}

static void print_summary(const struct cli *cli, const struct side *a, const struct side *b,
                          const struct td_profile_comparison *c)
{
    if (c->tested == 0)
        printf("Fewer than %d steps on a side: noise and change cannot be told apart.\n", TD_SHIFT_LEAST);
    else if (c->slower + c->faster == 0)
        printf("No scope differs beyond the noise of the steps.\n");
    else
        printf("%zu scope%s slower, %zu faster in %s than in %s, beyond the noise of the steps.\n", c->slower,
               text_plural((uint64_t)c->slower), c->faster, b->path, a->path);
    if (c->tested && !cli->quiet)
        printf("%sMann-Whitney test over the steps, corrected for %zu scopes (Benjamini-Hochberg, 5 %%).\n"
               "shift: Hodges-Lehmann estimate. A shift under 2 %% counts as none.%s\n",
               term_style(&cli->out, STYLE_DIM), c->tested, term_style(&cli->out, STYLE_PLAIN));
}

static bool print(const struct cli *cli, const struct side *a, const struct side *b,
                  const struct td_profile_comparison *c, const struct profile_view *view)
{
    bool *chosen = calloc(c->count, sizeof *chosen);
    if (!chosen || !choose(c, view, chosen)) {
        free(chosen);
        return false;
    }
    struct table table;
    table_init(&table, columns, COLUMNS);
    size_t shown = 0;
    for (size_t i = 0; i < c->count; i++)
        if (chosen[i]) {
            add_row(&table, a, b, &c->pairs[i]);
            shown++;
        }
    printf("%s%s%s (%lld steps) against %s (%lld steps)\n", term_style(&cli->out, STYLE_BOLD), b->path,
           term_style(&cli->out, STYLE_PLAIN), (long long)b->profile->step_count, a->path,
           (long long)a->profile->step_count);
    bool good = table_print(&table, &cli->out, 0);
    if (shown < c->count && !cli->quiet)
        printf("%s%zu more scopes (--top 0 and no --depth show all)%s\n", term_style(&cli->out, STYLE_DIM),
               c->count - shown, term_style(&cli->out, STYLE_PLAIN));
    print_summary(cli, a, b, c);
    table_release(&table);
    free(chosen);
    return good;
}

int profile_report_comparison(struct cli *cli, const char *path_a, const struct td_profile *a,
                              const char *path_b, const struct td_profile *b, const struct profile_view *view)
{
    struct td_profile_comparison comparison;
    struct tdbg_error error;
    struct side left = {path_a, a}, right = {path_b, b};
    if (td_profile_compare(&comparison, a, b, &error) != TDBG_OK)
        return cli_fail(NULL, &error);
    bool good =
        cli->json ? write_json(&left, &right, &comparison) : print(cli, &left, &right, &comparison, view);
    int status = !good ? EXIT_TROUBLE : comparison.slower ? EXIT_FINDINGS : EXIT_FINE;
    td_profile_comparison_release(&comparison);
    return status;
}
