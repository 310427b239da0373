/* console_look.c: the commands of the console that look at tensors, in files or in the memory of a live run.
 * They print what ls, stats, show and diff print. */
#include "cli/console_live.h"

#include "cli/plot_png.h"
#include "cli/plot_text.h"
#include "cli/text.h"
#include "cli/views.h"
#include "session/selection.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_BINS = 20 };

/* A live run that stopped elsewhere: the values are of a step that is over. */
static void say_where_from(const struct console *c)
{
    if (c->on_disk && !c->cli->quiet && !c->cli->json)
        printf("%sthe run did not stop there: as recorded in the last finished step%s\n",
               term_style(&c->cli->out, STYLE_DIM), term_style(&c->cli->out, STYLE_PLAIN));
}

/* The one operand of a command, found. */
static int find_one(struct console *c, const char *name, const struct args *args, struct operands *out)
{
    struct tdbg_error error;
    if (args->count != 1)
        return console_fail_usage(name, args->count ? "one TENSOR at a time" : "no TENSOR given");
    if (console_find(c, args->operands[0], true, out, &error) != TDBG_OK)
        return cli_fail(args->operands[0], &error);
    say_where_from(c);
    return EXIT_FINE;
}

/* Those of all words, or all that is open where there are none; `print` gets them word by word. */
static int each_found(struct console *c, const struct args *args, int bins,
                      int (*print)(struct console *c, const struct operands *operands, int bins))
{
    struct operands operands = {0};
    struct tdbg_error error;
    int status = EXIT_FINE;
    for (int i = 0; i < args->count || i == 0; i++) {
        const char *text = i < args->count ? args->operands[i] : NULL;
        tdbg_status found =
            text ? console_find(c, text, false, &operands, &error) : console_find_all(c, &operands, &error);
        say_where_from(c);
        int printed = found == TDBG_OK ? print(c, &operands, bins) : cli_fail(text, &error);
        if (printed != EXIT_FINE)
            status = printed;
        operands_release(&operands);
        if (status != EXIT_FINE)
            break;
    }
    return status;
}

static const struct option no_options[] = {{0}};

/* --- ls, stats, hist ------------------------------------------------------------------------------------ */

static int print_list(struct console *c, const struct operands *operands, int bins)
{
    (void)bins;
    return ls_print(c->cli, operands);
}

static int run_ls(struct console *c, int argc, char **argv)
{
    struct args args;
    if (!console_parse("ls", no_options, NULL, argc, argv, &args))
        return EXIT_TROUBLE;
    if (c->live && !c->inputs[0] && args.count <= 1)
        return live_list(c, args.count ? args.operands[0] : NULL);
    return each_found(c, &args, 0, print_list);
}

static int print_stats(struct console *c, const struct operands *operands, int bins)
{
    return stats_print(c->cli, operands, bins);
}

static int run_stats(struct console *c, int argc, char **argv)
{
    struct args args;
    if (!console_parse("stats", no_options, NULL, argc, argv, &args))
        return EXIT_TROUBLE;
    return each_found(c, &args, 0, print_stats);
}

struct hist_options {
    int64_t bins;
};

static int run_hist(struct console *c, int argc, char **argv)
{
    static const struct option options[] = {
        {"bins", 'b', OPTION_COUNT, offsetof(struct hist_options, bins), "N", "bins from min to max"}, {0}};
    struct hist_options wanted = {.bins = USUAL_BINS};
    struct operands operands;
    struct args args;
    if (!console_parse("hist", options, &wanted, argc, argv, &args))
        return EXIT_TROUBLE;
    if (wanted.bins < 1 || wanted.bins > TD_MAX_BINS)
        return console_fail_usage("hist", "-b takes 1 to %d bins", TD_MAX_BINS);
    int status = find_one(c, "hist", &args, &operands);
    if (status != EXIT_FINE)
        return status;
    status = stats_print(c->cli, &operands, (int)wanted.bins);
    operands_release(&operands);
    return status;
}

/* --- inspect, slice ------------------------------------------------------------------------------------- */

static int run_inspect(struct console *c, int argc, char **argv)
{
    const struct show_options edges = {.count = -1};
    struct operands operands;
    struct args args;
    if (!console_parse("inspect", no_options, NULL, argc, argv, &args))
        return EXIT_TROUBLE;
    int status = find_one(c, "inspect", &args, &operands);
    if (status != EXIT_FINE)
        return status;
    status = show_print(c->cli, &operands.items[0], &edges);
    if (status == EXIT_FINE && !c->cli->json && operands.items[0].selection.whole)
        status = stats_print(c->cli, &operands, 0);
    operands_release(&operands);
    return status;
}

struct slice_options {
    struct show_options show;
    const char *file;
};

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int run_slice(struct console *c, int argc, char **argv)
{
    static const struct option options[] = {
        {"count", 'n', OPTION_COUNT, offsetof(struct slice_options, show.count), "N", "the first N values"},
        {"all", 'a', OPTION_FLAG, offsetof(struct slice_options, show.all), NULL, "every value"},
        {"output", 'o', OPTION_TEXT, offsetof(struct slice_options, file), "FILE", "write .npy or .csv"},
        {0}};
    struct slice_options wanted = {.show.count = -1};
    struct operands operands;
    struct args args;
    if (!console_parse("slice", options, &wanted, argc, argv, &args))
        return EXIT_TROUBLE;
    if (wanted.file && !ends_in(wanted.file, ".npy") && !ends_in(wanted.file, ".csv"))
        return console_fail_usage("slice", "-o takes a .npy or a .csv file");
    if (wanted.file && ends_in(wanted.file, ".npy"))
        wanted.show.npy = wanted.file;
    else
        wanted.show.csv = wanted.file;
    int status = find_one(c, "slice", &args, &operands);
    if (status != EXIT_FINE)
        return status;
    status = show_print(c->cli, &operands.items[0], &wanted.show);
    operands_release(&operands);
    return status;
}

/* --- plot ----------------------------------------------------------------------------------------------- */

static tdbg_status plot_operand(struct console *c, const struct operand *o, const char *file,
                                struct tdbg_error *error)
{
    const struct td_shape *shape = &o->selection.slice.shape;
    struct td_elements elements = td_selection_elements(&o->selection);
    bool line = shape->ndim == 0 || elements.count == shape->size[shape->ndim - 1];
    struct td_raster raster;
    int rows = PLOT_PNG_ROWS, columns = PLOT_PNG_COLUMNS;
    char text[SHAPE_TEXT], title[TD_MAX_NAME + SHAPE_TEXT];
    if (!file)
        plot_text_room(&c->cli->out, line, &rows, &columns);
    TD_TRY(td_raster_init(&raster, &elements, shape, rows, columns, c->cli->job, error));
    tdbg_status status = td_input_verify(o->selection.tensor, error);
    snprintf(title, sizeof title, "%s%s%s%s  %s %s", o->selection.tensor->name, *o->slice ? "[" : "",
             o->slice, *o->slice ? "]" : "", td_dtype_name(o->selection.tensor->dtype),
             text_shape(text, shape));
    if (status == TDBG_OK && file)
        status = plot_png(file, title, &raster, error);
    else if (status == TDBG_OK) {
        printf("%s\n", title);
        plot_text(&c->cli->out, &raster);
    }
    td_raster_release(&raster);
    return status;
}

struct plot_options {
    const char *file;
};

static int run_plot(struct console *c, int argc, char **argv)
{
    static const struct option options[] = {
        {"output", 'o', OPTION_TEXT, offsetof(struct plot_options, file), "FILE", "write a .png file"}, {0}};
    struct plot_options wanted = {0};
    struct tdbg_error error;
    struct operands operands;
    struct args args;
    if (!console_parse("plot", options, &wanted, argc, argv, &args))
        return EXIT_TROUBLE;
    if (wanted.file && !ends_in(wanted.file, ".png"))
        return console_fail_usage("plot", "-o takes a .png file");
    int status = find_one(c, "plot", &args, &operands);
    if (status != EXIT_FINE)
        return status;
    if (plot_operand(c, &operands.items[0], wanted.file, &error) != TDBG_OK)
        status = cli_fail(wanted.file ? wanted.file : args.operands[0], &error);
    else if (wanted.file && !c->cli->quiet)
        printf("wrote %s\n", wanted.file);
    operands_release(&operands);
    return status;
}

/* --- diff ----------------------------------------------------------------------------------------------- */

/* A word as `tdbg diff` understands it: letters and names become PATH and PATH:NAME[slice]. What means
 * nothing here (an option and its value) stays as it is. */
static char *spell_out(struct console *c, const char *word)
{
    struct operands operands;
    char *text = NULL;
    if (word[0] == '-' || console_find(c, word, false, &operands, NULL) != TDBG_OK)
        return strdup(word);
    const struct operand *o = &operands.items[0];
    int written;
    if (operands.count != 1)
        written = asprintf(&text, "%s", word);
    else if (!o->named)
        written = asprintf(&text, "%s", o->target.path);
    else
        written = asprintf(&text, "%s:%s%s%s%s", o->target.path, o->selection.tensor->name,
                           *o->slice ? "[" : "", o->slice, *o->slice ? "]" : "");
    operands_release(&operands);
    return written < 0 ? NULL : text;
}

/* Without operands the first two inputs are meant. */
static bool only_options(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (argv[i][0] != '-')
            return false;
    return true;
}

static int run_diff(struct console *c, int argc, char **argv)
{
    char *owned[MOST_WORDS + 2], *words[MOST_WORDS + 2];
    int status = EXIT_TROUBLE, count = 0;
    bool json = c->cli->json, quiet = c->cli->quiet, verbose = c->cli->verbose, whole = true;
    if (only_options(argc, argv) && c->inputs[0] && c->inputs[1])
        for (; count < 2; count++)
            owned[count] = strdup(td_input_path(c->inputs[count]));
    for (int i = 0; i < argc; i++)
        owned[count++] = spell_out(c, argv[i]);
    for (int i = 0; i < count; i++) {
        words[i] = owned[i];
        whole = whole && owned[i];
    }
    if (whole)
        status = cmd_diff.run(c->cli, count, words); /* which reorders what it is given */
    for (int i = 0; i < count; i++)
        free(owned[i]);
    c->cli->json = json; /* its own options end with it */
    c->cli->quiet = quiet;
    c->cli->verbose = verbose;
    return status == EXIT_FINDINGS ? EXIT_FINE : status;
}

const struct console_command console_look_commands[] = {
    {"ls", "[PATTERN]...", "list tensors: name, dtype, shape, size",
     "  ls                    all that is open\n"
     "  ls layers.0.*         those that fit\n"
     "  ls b                  those of input b\n"
     "Of a live run, with nothing else open: the tensors of the step so far, as 'seen' lists them.\n",
     COMPLETE_TENSORS, run_ls},
    {"inspect", "TENSOR[slice]", "what it is, its values by their edges, its statistics",
     "  inspect layers.0.weight\n"
     "  inspect 3_query.pth[0, :4]\n"
     "  inspect .             the tensor a live run stopped at\n",
     COMPLETE_TENSORS, run_inspect},
    {"slice", "TENSOR[slice] [-n N] [-a] [-o FILE]", "values of a part, on the screen or into a file",
     "  slice x[5, 12, 0:16]\n"
     "  slice x -n 10         the first ten values\n"
     "  slice x[0] -o x0.npy  or .csv\n",
     COMPLETE_TENSORS, run_slice},
    {"stats", "[TENSOR|PATTERN]...", "mean, std, min, max, NaN and Inf",
     "  stats layers.0.weight\n"
     "  stats *.bias\n"
     "  stats x[:, 0]\n",
     COMPLETE_TENSORS, run_stats},
    {"hist", "TENSOR [-b BINS]", "a histogram",
     "  hist layers.0.weight\n"
     "  hist x[0] -b 40\n",
     COMPLETE_TENSORS, run_hist},
    {"plot", "TENSOR [-o FILE.png]", "a heatmap, or a line where there is one axis",
     "  plot attention[0, 3]\n"
     "  plot loss\n"
     "  plot layers.0.weight -o w.png\n"
     "The last axis runs from left to right, everything before it from top to bottom.\n",
     COMPLETE_TENSORS, run_plot},
    {"diff", "[A B] [OPTION]...", "compare two inputs or two tensors; options as of 'tdbg diff'",
     "  diff                  the inputs a and b\n"
     "  diff a b --policy strict\n"
     "  diff a:x b:x[:, 0]\n"
     "  diff . runs/earlier/step-00000003.safetensors:layers.0.output\n",
     COMPLETE_TENSORS, run_diff},
    {0},
};
