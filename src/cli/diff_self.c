/* diff_self.c: see diff_self.h. Nothing is kept but the counts: the columns' widths follow from the names,
 * which are known beforehand, not from the rows. */
#include "cli/diff_self.h"

#include "cli/text.h"
#include "report/self_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Pairs shown on a terminal when nobody says how many. */
enum { PAGE = 50 };

enum { SHAPE_COLUMNS = 20, NUMBER_COLUMNS = 10, VERDICT_COLUMNS = 9, LEAST_NAME = 12, MOST_NAME = 56 };

struct listing {
    const struct cli *cli;
    struct td_self *self;
    struct td_json *json; /* NULL: a table */
    size_t name_columns;
    struct td_summary summary; /* of what was listed */
    bool complete;
};

/* --- rows ----------------------------------------------------------------------------------------------- */

static size_t name_columns(const struct cli *cli, const struct td_side *side)
{
    const size_t rest = 2 + 2 + SHAPE_COLUMNS + 3 * (NUMBER_COLUMNS + 2) + 2 + VERDICT_COLUMNS;
    size_t width = LEAST_NAME;
    for (size_t i = 0; i < side->count; i++) {
        size_t columns = term_columns(side->items[i].name);
        width = columns > width ? columns : width;
    }
    size_t room = cli->out.width ? (size_t)cli->out.width : rest + 2 * MOST_NAME;
    size_t most = room > rest ? (room - rest) / 2 : 0;
    width = width > most ? most : width;
    return width < LEAST_NAME ? LEAST_NAME : width > MOST_NAME ? MOST_NAME : width;
}

static void put_cell(const struct listing *l, const char *text, size_t columns)
{
    size_t used = term_put_elided(&l->cli->out, text, columns);
    printf("%*s", (int)(columns - used + 2), "");
}

static void print_heads(const struct listing *l)
{
    const struct term *out = &l->cli->out;
    fputs(term_style(out, STYLE_BOLD), stdout);
    put_cell(l, "tensor", l->name_columns);
    put_cell(l, "against", l->name_columns);
    put_cell(l, "shape", SHAPE_COLUMNS);
    printf("%*s  %*s  %*s  verdict%s\n", NUMBER_COLUMNS, "rel error", NUMBER_COLUMNS, "max abs",
           NUMBER_COLUMNS, "cosine", term_style(out, STYLE_PLAIN));
}

static enum style verdict_style(enum td_verdict verdict)
{
    return verdict == TD_ERROR ? STYLE_YELLOW : verdict <= TD_WITHIN ? STYLE_GREEN : STYLE_PLAIN;
}

static void print_row(const struct listing *l, const struct td_pair *p)
{
    const struct term *out = &l->cli->out;
    char shape[SHAPE_TEXT];
    bool measured = td_pair_measured(p);
    put_cell(l, p->a->name, l->name_columns);
    put_cell(l, p->b->name, l->name_columns);
    put_cell(l, text_shape(shape, measured ? &p->layout->shape : &p->a->parts[0]->shape), SHAPE_COLUMNS);
    if (measured && p->outcome.metrics.paired > 0)
        printf("%*.3g  %*.3g  %*.4f", NUMBER_COLUMNS, p->outcome.metrics.rel_l2, NUMBER_COLUMNS,
               p->outcome.metrics.max_abs, NUMBER_COLUMNS, p->outcome.metrics.cosine);
    else
        printf("%*s", 3 * NUMBER_COLUMNS + 4, "");
    printf("  %s%s%s%s%s\n", term_style(out, verdict_style(p->outcome.ruling.verdict)),
           td_verdict_name(p->outcome.ruling.verdict), term_style(out, STYLE_PLAIN), measured ? "" : ": ",
           measured ? "" : p->outcome.ruling.reason);
}

static void print_counts(const struct listing *l)
{
    const struct td_summary *s = &l->summary;
    uint64_t total = td_self_total(l->self), unlike = td_self_unlike(l->self);
    printf("\n%zu of %" PRIu64 " pairs listed: %zu identical, %zu within, %zu diverged", s->pairs, total,
           s->identical, s->within, s->diverged);
    if (s->errors)
        printf(", %zu %s", s->errors, s->errors == 1 ? "error" : "errors");
    if (unlike)
        printf("; %" PRIu64 " passed over, their shapes do not line up", unlike);
    putchar('\n');
    if (!l->complete)
        printf("%sThere are more: --top K lists the first K, --only identical finds copies.%s\n",
               term_style(&l->cli->out, STYLE_DIM), term_style(&l->cli->out, STYLE_PLAIN));
}

/* --- the listing ---------------------------------------------------------------------------------------- */

static tdbg_status list(struct listing *l, int64_t most, td_pair_filter *filter, struct tdbg_error *error)
{
    const struct td_self_pair *p = NULL;
    while (most < 0 || l->summary.pairs < (uint64_t)most) {
        TD_TRY(td_self_next(l->self, &p, error));
        if (!p || ferror(stdout))
            break;
        if (filter && !filter(&p->pair))
            continue;
        td_summary_add(&l->summary, &p->pair);
        if (l->json)
            td_pair_json(l->json, &p->pair, p->index);
        else
            print_row(l, &p->pair);
    }
    l->complete = most < 0 || l->summary.pairs < (uint64_t)most ||
                  l->summary.pairs + td_self_unlike(l->self) == td_self_total(l->self);
    return TDBG_OK;
}

static tdbg_status list_json(struct listing *l, int64_t most, td_pair_filter *filter,
                             struct tdbg_error *error)
{
    struct td_json json;
    td_json_to_file(&json, stdout);
    l->json = &json;
    td_self_json_begin(&json, l->self);
    TD_TRY(list(l, most, filter, error));
    td_self_json_end(&json, l->self, &l->summary, l->complete);
    td_json_newline(&json);
    (void)td_json_finish(&json); /* stdout remembers */
    return TDBG_OK;
}

static tdbg_status list_table(struct listing *l, int64_t most, td_pair_filter *filter,
                              struct tdbg_error *error)
{
    if (most < 0 && l->cli->out.tty)
        most = PAGE;
    l->name_columns = name_columns(l->cli, td_self_side(l->self));
    print_heads(l);
    TD_TRY(list(l, most, filter, error));
    if (!l->cli->quiet)
        print_counts(l);
    return TDBG_OK;
}

int diff_self(struct cli *cli, const char *path, const struct td_diff_setup *setup, int64_t most,
              td_pair_filter *filter)
{
    struct listing l = {.cli = cli};
    struct td_policy policy;
    struct tdbg_error error;
    struct td_pool *pool = cli_pool(cli);
    if (!pool)
        return EXIT_TROUBLE;
    if (td_diff_setup_policy(&policy, setup, &error) != TDBG_OK)
        return cli_fail(NULL, &error);
    if (td_self_open(&l.self, path, &policy, &(struct td_work){pool, cli->job, NULL}, &error) != TDBG_OK)
        return cli_fail(path, &error);
    tdbg_status status =
        cli->json ? list_json(&l, most, filter, &error) : list_table(&l, most, filter, &error);
    td_self_close(&l.self);
    if (status != TDBG_OK)
        return cli_fail(path, &error);
    return l.summary.diverged ? EXIT_FINDINGS : l.summary.errors ? EXIT_TROUBLE : EXIT_FINE;
}
