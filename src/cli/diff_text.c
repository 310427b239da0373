/* diff_text.c: see diff_text.h. Summary, error by layer, the pairs that matter, the doctor's notes, and a
 * closing paragraph. */
#include "cli/diff_text.h"

#include "cli/diff_chart.h"
#include "cli/skips.h"
#include "cli/table.h"
#include "cli/text.h"
#include "compare/name/name.h"
#include "report/diff_words.h"

#include <math.h>

/* Rows shown without -v; the first divergence and what follows at once are among them. */
enum { ROWS = 20 };

static void print_side(const struct cli *cli, char letter, const struct td_input *input)
{
    size_t n = td_input_count(input);
    printf("%s%c%s  %s  %s(%zu %s)%s\n", term_style(&cli->out, STYLE_BOLD), letter,
           term_style(&cli->out, STYLE_PLAIN), td_input_path(input), term_style(&cli->out, STYLE_DIM), n,
           n == 1 ? "tensor" : "tensors", term_style(&cli->out, STYLE_PLAIN));
}

static enum style verdict_style(const struct td_pair *p)
{
    switch (p->outcome.ruling.verdict) {
    case TD_DIVERGED:
        return STYLE_RED;
    case TD_ERROR:
        return STYLE_YELLOW;
    case TD_IDENTICAL:
    case TD_WITHIN:
        return STYLE_GREEN;
    default:
        return STYLE_DIM;
    }
}

/* Columns that are not in every table. */
enum { LAYER = 1, STAGE = 2, IN_B = 3 };

/* What the table has to tell: only what is in sight counts. */
struct told {
    bool layered; /* some pairs have a layer */
    bool renamed; /* some have another name in B */
};

static const char *verdict_words(enum td_verdict verdict)
{
    return verdict == TD_ONLY_A ? "only in A" : verdict == TD_ONLY_B ? "only in B" : td_verdict_name(verdict);
}

/* Without the kind of its file, which would take the room of what tells it apart. */
static void add_name(struct table *table, const char *name)
{
    struct td_name parts = td_name_split(name);
    struct td_buffer text;
    td_buffer_init(&text, 1 << 20);
    td_buffer_append(&text, parts.file, parts.stem);
    if (parts.key)
        td_buffer_printf(&text, ":%s", parts.key);
    table_cell(table, text.failed ? name : td_buffer_text(&text));
    td_buffer_release(&text);
}

static void add_row(struct table *table, const struct told *told, const struct td_diff *diff,
                    const struct td_pair *p)
{
    char shape[SHAPE_TEXT];
    const struct td_item *item = p->a ? p->a : p->b;
    bool measured = td_pair_measured(p);
    table_cell_styled(table, STYLE_BOLD, p == diff->result.first ? ">" : "");
    if (p->layer >= 0)
        table_cellf(table, "%lld", (long long)p->layer);
    else
        table_cell(table, "");
    /* What only B has stands under B's names, where these have a column. */
    table_cell(table, told->renamed && !p->a ? "" : p->layer >= 0 ? p->stage : p->name);
    if (told->renamed && (!p->a || td_pair_renamed(p)))
        add_name(table, p->b->name);
    else
        table_cell(table, "");
    table_cell(table, text_shape(shape, measured ? &p->layout->shape : &item->parts[0]->shape));
    if (measured &&
        p->outcome.metrics.paired > 0) { /* else no two values are both finite, and zeros would mislead */
        table_cellf(table, "%.3g", p->outcome.metrics.rel_l2);
        if (p->outcome.ruling.floor > 0)
            table_cellf(table, "%.2g", p->outcome.ruling.floor);
        else
            table_cell(table, "");
        table_cellf(table, "%.3g", p->outcome.metrics.max_abs);
        table_cellf(table, "%.4f", p->outcome.metrics.cosine);
    } else {
        for (int i = 0; i < 4; i++)
            table_cell(table, "");
    }
    table_cell_styled(table, verdict_style(p), verdict_words(p->outcome.ruling.verdict));
    const char *why = p->outcome.diagnosis ? td_mistake_name(p->outcome.diagnosis->list[0].kind)
                      : p->outcome.origin == TD_INHERITED ? "inherited"
                                                          : "";
    table_cell(table, why);
}

static bool matters(const struct td_pair *p)
{
    return p->outcome.ruling.verdict == TD_DIVERGED || p->outcome.ruling.verdict == TD_ERROR;
}

/* A pair is a row if it is asked for; without -v only the first ROWS of them. */
static bool is_listed(const struct cli *cli, const struct td_pair *p, td_pair_filter *filter)
{
    return filter ? filter(p) : cli->verbose || matters(p);
}

static struct told what_is_told(const struct cli *cli, const struct td_diff *diff, td_pair_filter *filter)
{
    struct told told = {0};
    size_t shown = 0;
    for (size_t i = 0; i < diff->result.count && (cli->verbose || shown < ROWS); i++) {
        const struct td_pair *p = &diff->result.pairs[i];
        if (!is_listed(cli, p, filter))
            continue;
        told.layered = told.layered || p->layer >= 0;
        told.renamed = told.renamed || td_pair_renamed(p);
        shown++;
    }
    return told;
}

static bool print_pairs(const struct cli *cli, const struct td_diff *diff, td_pair_filter *filter)
{
    static const struct column columns[] = {
        {.title = ""},
        [LAYER] = {.title = "layer", .right = true},
        [STAGE] = {.title = "stage", .elastic = true},
        [IN_B] = {.title = "in B", .elastic = true},
        {.title = "shape", .drop = 3},
        {.title = "rel error", .right = true},
        {.title = "floor", .right = true, .drop = 2},
        {.title = "max abs", .right = true, .drop = 4},
        {.title = "cosine", .right = true, .drop = 5},
        {.title = "verdict"},
        {.title = "why", .drop = 1},
    };
    struct table table;
    size_t shown = 0, left = 0;
    const struct told told = what_is_told(cli, diff, filter);
    table_init(&table, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < diff->result.count; i++) {
        const struct td_pair *p = &diff->result.pairs[i];
        if (!is_listed(cli, p, filter))
            continue;
        if (!cli->verbose && shown == ROWS) {
            left++;
            continue;
        }
        add_row(&table, &told, diff, p);
        shown++;
    }
    bool ok = true;
    if (shown) {
        putchar('\n');
        ok = table_print(&table, &cli->out,
                         (told.layered ? 0 : 1u << LAYER) | (told.renamed ? 0 : 1u << IN_B));
        if (left)
            printf("%sand %zu more; -v shows all%s\n", term_style(&cli->out, STYLE_DIM), left,
                   term_style(&cli->out, STYLE_PLAIN));
    }
    table_release(&table);
    return ok;
}

static void say_names(struct td_buffer *out, char side, const struct td_aliases *names)
{
    if (!names->items || names->count < 2)
        return;
    td_buffer_printf(out, "%s", out->size ? "; " : "");
    td_buffer_printf(out, "%c also: ", side);
    for (size_t i = 1; i < names->count; i++)
        td_buffer_printf(out, "%s%s", i > 1 ? ", " : "", names->items[i]->name);
}

/* How pairs were found where that is in doubt, and the other names of what is in them: a line each, for who
 * asks for all. */
static void print_pairing(const struct cli *cli, const struct td_diff *diff, td_pair_filter *filter)
{
    bool any = false;
    for (size_t i = 0; cli->verbose && i < diff->result.count; i++) {
        const struct td_pair *p = &diff->result.pairs[i];
        struct td_buffer text, line;
        if ((filter && !filter(p)) || !p->match)
            continue;
        td_buffer_init(&text, 1 << 20);
        td_buffer_init(&line, 1 << 20);
        if (td_pair_doubt(&text, p->match) && p->match->evidence)
            td_buffer_printf(&text, " (%s)", p->match->evidence);
        say_names(&text, 'A', &p->match->aliases_a);
        say_names(&text, 'B', &p->match->aliases_b);
        if (text.size) {
            td_buffer_printf(&line, "%s%s%s: %s", p->name, p->a && p->b ? " with " : "",
                             p->a && p->b ? p->b->name : "", td_buffer_text(&text));
            if (!any)
                putchar('\n');
            term_put_wrapped(&cli->out, td_buffer_text(&line), 0, 2);
            any = true;
        }
        td_buffer_release(&line);
        td_buffer_release(&text);
    }
}

/* Why pairs could not be compared, a line each: reasons are too long for the table. */
static void print_errors(const struct cli *cli, const struct td_diff *diff)
{
    enum { LINES = 5 };
    size_t shown = 0;
    for (size_t i = 0; i < diff->result.count; i++) {
        const struct td_pair *p = &diff->result.pairs[i];
        if (p->outcome.ruling.verdict != TD_ERROR || (!cli->verbose && shown == LINES))
            continue;
        struct td_buffer text;
        td_buffer_init(&text, 1 << 16);
        td_buffer_printf(&text, "%s: %s", p->name, p->outcome.ruling.reason);
        if (shown++ == 0)
            putchar('\n');
        term_put_wrapped(&cli->out, td_buffer_text(&text), 0, 2);
        td_buffer_release(&text);
    }
    if (diff->result.summary.errors > shown)
        printf("and %zu more; -v shows all\n", diff->result.summary.errors - shown);
}

/* Tensors without a partner, by name, a few of each side. */
static void print_unpaired(const struct cli *cli, const struct td_diff *diff)
{
    enum { NAMES = 5 };
    for (int side = 0; side < 2; side++) {
        enum td_verdict verdict = side ? TD_ONLY_B : TD_ONLY_A;
        size_t total = side ? diff->result.summary.only_b : diff->result.summary.only_a, shown = 0;
        if (total == 0 || cli->verbose)
            continue;
        struct td_buffer text;
        td_buffer_init(&text, 1 << 20);
        td_buffer_printf(&text, "only in %c:", side ? 'B' : 'A');
        for (size_t i = 0; i < diff->result.count && shown < NAMES; i++)
            if (diff->result.pairs[i].outcome.ruling.verdict == verdict)
                td_buffer_printf(&text, "%s %s", shown++ ? "," : "", diff->result.pairs[i].name);
        if (total > shown)
            td_buffer_printf(&text, " and %zu more", total - shown);
        putchar('\n');
        term_put_wrapped(&cli->out, td_buffer_text(&text), 0, 2);
        td_buffer_release(&text);
    }
}

static void print_text(const struct cli *cli, void (*say)(struct td_buffer *, const struct td_diff *),
                       const struct td_diff *diff)
{
    struct td_buffer text;
    td_buffer_init(&text, 1 << 16);
    say(&text, diff);
    term_put_wrapped(&cli->out, td_buffer_text(&text), 0, 0);
    td_buffer_release(&text);
}

bool diff_text(const struct cli *cli, const struct td_diff *diff, td_pair_filter *filter)
{
    if (!cli->quiet) {
        print_side(cli, 'A', diff->a);
        print_side(cli, 'B', diff->b);
        print_text(cli, td_diff_summarise, diff);
        diff_chart(cli, diff);
        if (!print_pairs(cli, diff, filter))
            return false;
        print_pairing(cli, diff, filter);
        print_errors(cli, diff);
        print_unpaired(cli, diff);
        for (size_t i = 0; i < diff->result.note_count; i++) {
            putchar('\n');
            term_put_wrapped(&cli->out, diff->result.notes[i], 0, 0);
        }
        putchar('\n');
    }
    print_text(cli, td_diff_conclude, diff);
    struct operand sides[] = {{.input = diff->a}, {.input = diff->b}};
    skips_print(cli, &(struct operands){.items = sides, .count = 2});
    return true;
}
