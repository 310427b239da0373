/* cmd_export.c: `tdbg export KIND …`: runs and tensors in the files of other programs. Each kind is a row of
 * a table, with the operands it takes. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/operand.h"
#include "cli/outfile.h"
#include "cli/text.h"
#include "report/safetensors_file.h"
#include "report/tensorboard.h"
#include "store/run_folders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct kind {
    const char *name;
    const char *usage; /* its operands */
    int operands;
    int (*run)(struct cli *cli, char **operands, struct td_json *files); /* NULL without --json */
};

/* --- TensorBoard ---------------------------------------------------------------------------------------- */

static tdbg_status make_folder(const char *path, struct tdbg_error *error)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return TDBG_OK;
    return td_fail_errno(error, "cannot create");
}

static tdbg_status write_events(struct cli *cli, struct td_run_store *store, const char *run,
                                const char *path, struct td_tensorboard_counts *counts,
                                struct tdbg_error *error)
{
    struct outfile out;
    struct td_pool *pool = cli_pool(cli);
    if (!pool)
        return td_fail_nomem(error);
    TD_TRY(outfile_open(&out, path, error));
    tdbg_status status = td_tensorboard_write(store, run, out.file, pool, cli->job, counts, error);
    if (status == TDBG_OK)
        return outfile_commit(&out, error);
    outfile_discard(&out);
    return status;
}

/* An event file of `run` in `dir`; `path` gets its path, to be freed. A failure says what it is about. */
static tdbg_status export_run(struct cli *cli, const char *run, const char *dir, char **path,
                              struct td_tensorboard_counts *counts, struct tdbg_error *error)
{
    struct td_run_store *store = NULL;
    struct td_run_facts facts;
    char name[512], *made = NULL;
    const char *about = dir;
    tdbg_status status = make_folder(dir, error);
    if (status == TDBG_OK) {
        about = run;
        status = td_run_store_open(&store, run, error);
    }
    if (status == TDBG_OK)
        status = td_run_facts(store, &facts, error);
    if (status == TDBG_OK &&
        asprintf(&made, "%s/%s", dir, td_tensorboard_name(&facts, name, sizeof name)) < 0) {
        made = NULL;
        status = td_fail_nomem(error);
    }
    if (status == TDBG_OK) {
        about = made;
        status = write_events(cli, store, run, made, counts, error);
    }
    if (status == TDBG_OK) {
        *path = made;
    } else {
        td_error_prefix(error, about);
        free(made);
    }
    td_run_store_close(&store);
    return status;
}

static void put_events(struct td_json *j, const char *path, const struct td_tensorboard_counts *c)
{
    td_json_begin_object(j);
    td_json_field_string(j, "path", path);
    td_json_field_uint(j, "scalars", c->scalars);
    td_json_field_uint(j, "histograms", c->histograms);
    td_json_field_uint(j, "without_histogram", c->bare);
    td_json_field_uint(j, "left_out", c->lost);
    td_json_end_object(j);
}

static void tell(const struct cli *cli, const char *path, const struct td_tensorboard_counts *c,
                 struct td_json *files)
{
    if (c->lost)
        fprintf(stderr, "tdbg: %" PRIu64 " tensor%s left out: %s\n", c->lost, text_plural(c->lost),
                c->why_lost.message);
    if (files)
        put_events(files, path, c);
    if (files || cli->quiet)
        return;
    printf("%s: %" PRIu64 " scalar%s, %" PRIu64 " histogram%s\n", path, c->scalars, text_plural(c->scalars),
           c->histograms, text_plural(c->histograms));
    if (c->bare)
        printf("%s%" PRIu64
               " tensor%s without a histogram: statistics alone were kept, or no value was finite%s\n",
               term_style(&cli->out, STYLE_DIM), c->bare, text_plural(c->bare),
               term_style(&cli->out, STYLE_PLAIN));
}

/* Of several ranks each becomes a run of its own in TensorBoard: a folder with the rank's name. */
static int tensorboard(struct cli *cli, char **operands, struct td_json *files)
{
    const char *run = operands[0], *dir = operands[1];
    struct td_run_folders folders = {0};
    struct tdbg_error error = {0};
    int status = EXIT_FINE;
    if (td_run_folders_init(&folders, run, &error) != TDBG_OK)
        return cli_fail(run, &error);
    if (folders.count == 0) {
        td_fail(&error, TDBG_MISUSE, "no recorded run: there is no " TD_RUN_INDEX " in it");
        status = cli_fail(run, &error);
    } else if (make_folder(dir, &error) != TDBG_OK) {
        status = cli_fail(dir, &error);
    }
    for (size_t i = 0; status == EXIT_FINE && i < folders.count; i++) {
        struct td_tensorboard_counts counts = {0};
        char *into = NULL, *path = NULL;
        const char *rank = strlen(folders.paths[i]) > strlen(run) ? strrchr(folders.paths[i], '/') : "";
        if (asprintf(&into, "%s%s", dir, rank) < 0)
            into = NULL;
        if (!into || export_run(cli, folders.paths[i], into, &path, &counts, &error) != TDBG_OK)
            status = into ? cli_fail(NULL, &error) : EXIT_TROUBLE;
        else
            tell(cli, path, &counts, files);
        free(into);
        free(path);
    }
    td_run_folders_release(&folders);
    return status;
}

/* --- safetensors ---------------------------------------------------------------------------------------- */

static const struct td_tensor *operand_at(const void *operand, size_t i)
{
    const struct operand *o = operand;
    return o->named ? &o->selection.part : operand_tensor(o, i);
}

static tdbg_status verify_all(const struct operand *o, struct tdbg_error *error)
{
    for (size_t i = 0; i < operand_count(o); i++)
        TD_TRY(td_input_verify(operand_tensor(o, i), error));
    return TDBG_OK;
}

/* `where` becomes the file at fault, should there be one. */
static tdbg_status write_safetensors(struct cli *cli, const struct operand *o, const char *path,
                                     struct td_safetensors_counts *counts, const char **where,
                                     struct tdbg_error *error)
{
    struct outfile out;
    *where = o->target.path;
    if (o->named && !o->selection.whole)
        return td_fail(error, TDBG_UNSUPPORTED, "a slice of a %s tensor cannot be written",
                       o->selection.tensor->sparse ? "sparse" : td_dtype_name(o->selection.tensor->dtype));
    *where = path;
    TD_TRY(outfile_open(&out, path, error));
    tdbg_status status =
        td_safetensors_write(o, operand_at, operand_count(o), out.file, cli->job, counts, error);
    if (status == TDBG_OK && (status = verify_all(o, error)) != TDBG_OK)
        *where = o->target.path;
    if (status == TDBG_OK)
        return outfile_commit(&out, error);
    outfile_discard(&out);
    return status;
}

static void tell_written(const struct cli *cli, const char *path, const struct td_safetensors_counts *c,
                         struct td_json *files)
{
    char size[SIZE_TEXT];
    if (c->left_out)
        fprintf(stderr, "tdbg: %" PRIu64 " tensor%s left out: safetensors cannot hold %s of %d axes\n",
                c->left_out, text_plural(c->left_out), c->why, TDBG_MAX_DIMS);
    if (files) {
        td_json_begin_object(files);
        td_json_field_string(files, "path", path);
        td_json_field_uint(files, "tensors", c->written);
        td_json_field_uint(files, "bytes", c->bytes);
        td_json_field_uint(files, "left_out", c->left_out);
        td_json_end_object(files);
    } else if (!cli->quiet && strcmp(path, "-") != 0) {
        printf("%s: %" PRIu64 " tensor%s, %s\n", path, c->written, text_plural(c->written),
               text_size(size, c->bytes));
    }
}

static int safetensors(struct cli *cli, char **operands, struct td_json *files)
{
    struct td_safetensors_counts counts = {0};
    struct tdbg_error error;
    struct operand o;
    const char *where, *path = operands[1];
    if (files && strcmp(path, "-") == 0)
        return cli_fail_usage(&cmd_export, "--json and FILE cannot both be standard output");
    int status = operand_open(cli, operands[0], false, &o);
    if (status != EXIT_FINE)
        return status;
    if (write_safetensors(cli, &o, path, &counts, &where, &error) != TDBG_OK)
        status = cli_fail(where, &error);
    operand_release(&o);
    if (status == EXIT_FINE)
        tell_written(cli, path, &counts, files);
    return status;
}

/* --- The command ---------------------------------------------------------------------------------------- */

static const struct kind kinds[] = {
    {"tensorboard", "RUN DIR", 2, tensorboard},
    {"safetensors", "PATH FILE", 2, safetensors},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *kind_name(const void *context, size_t i)
{
    (void)context;
    return i < KINDS ? kinds[i].name : NULL;
}

/* {"version":1,"files":[…]}, once all of them are written. */
static int run_json(struct cli *cli, const struct kind *kind, char **operands)
{
    struct td_buffer text;
    struct td_json json, *j = &json;
    struct tdbg_error error;
    td_buffer_init(&text, SIZE_MAX);
    td_json_to_buffer(j, &text);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_json_key(j, "files");
    td_json_begin_array(j);
    int status = kind->run(cli, operands, j);
    td_json_end_array(j);
    td_json_end_object(j);
    td_json_newline(j);
    if (status == EXIT_FINE && td_json_finish(j)) {
        fputs(td_buffer_text(&text), stdout);
    } else if (status == EXIT_FINE) {
        td_fail_nomem(&error);
        status = cli_fail(NULL, &error);
    }
    td_buffer_release(&text);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_export, argc, argv, NULL, &args, &status))
        return status;
    if (args.count == 0)
        return cli_fail_usage(&cmd_export, "no kind given");
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(kinds[i].name, args.operands[0]) != 0)
            continue;
        if (args.count - 1 != kinds[i].operands)
            return cli_fail_usage(&cmd_export, "%s takes %s", kinds[i].name, kinds[i].usage);
        return cli->json ? run_json(cli, &kinds[i], args.operands + 1)
                         : kinds[i].run(cli, args.operands + 1, NULL);
    }
    const char *near = args_nearest(args.operands[0], kind_name, NULL);
    return near ? cli_fail_usage(&cmd_export, "no kind '%s'; did you mean '%s'?", args.operands[0], near)
                : cli_fail_usage(&cmd_export, "no kind '%s'", args.operands[0]);
}

static const struct option options[] = {{0}};

const struct command cmd_export = {
    .name = "export",
    .summary = "Write for other programs: a run for TensorBoard, tensors as safetensors.",
    .usage = "KIND ...",
    .options = options,
    .run = run,
    .help =
        "Kinds:\n"
        "  tensorboard RUN DIR    an event file: scalars as recorded, a histogram of each tensor of which a\n"
        "                         sketch or the values were kept; each rank in a folder of its own. The\n"
        "                         same run makes the same file name, so exporting again replaces it.\n"
        "  safetensors PATH FILE  all tensors of PATH, or PATH:NAME[slice], in one .safetensors file; '-' "
        "is\n"
        "                         standard output. Block-quantised values become float32.\n"
        "\n"
        "--json prints {\"version\":1,\"files\":[{\"path\",…}]}, with the counts of each file.\n"
        "\n"
        "Examples:\n"
        "  tdbg export tensorboard runs/a logs/a && tensorboard --logdir logs\n"
        "  tdbg export safetensors model.gguf model.safetensors\n"
        "  tdbg export safetensors 'dumps.zip:3_query.pth[0, :16]' part.safetensors\n"
        "\n"
        "Single tensors: 'tdbg show PATH:NAME --npy FILE' or '--csv FILE'.\n",
};
