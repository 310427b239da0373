/* cmd_memory.c: `tdbg memory`: who holds memory, when, and what is never given back.
 *
 * A program after "--" is started with the allocator shim in front; it keeps its output and its exit status.
 * The shim lies beside the binary in a build tree and in the library folder of an installation.
 */
#include "cli/cli.h"

#include "cli/memory_text.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "report/memory_json.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHIM "libtdbg-malloc.so"

struct memory_options {
    struct option_list snapshots;
    const char *output;
    int64_t top;
};

/* --- The report ----------------------------------------------------------------------------------------- */

static void write_json(const struct td_memory_book *book, size_t top, FILE *file)
{
    struct td_json json, *j = &json;
    td_json_to_file(j, file);
    td_json_begin_object(j);
    td_json_field_int(j, "version", 1);
    td_memory_book_json(j, book, top);
    td_json_end_object(j);
    td_json_newline(j);
    (void)td_json_finish(j); /* the stream remembers */
}

static void print_book(const struct cli *cli, const struct td_memory_book *book,
                       const struct memory_options *wanted, const struct term *term)
{
    struct memory_text text = {.term = term, .top = (size_t)wanted->top, .quiet = cli->quiet};
    if (cli->json) {
        write_json(book, (size_t)wanted->top, term->file);
        return;
    }
    size_t told = cli->verbose ? book->count : 1;
    for (size_t i = 0; i < told && i < book->count; i++) {
        if (i)
            fputc('\n', term->file);
        memory_text_print(&text, &book->stories[i]);
    }
    if (!cli->quiet && told < book->count)
        memory_text_others(&text, book);
}

static int report(const struct cli *cli, const struct td_memory_book *book,
                  const struct memory_options *wanted)
{
    struct outfile out;
    struct tdbg_error error;
    if (!wanted->output) {
        print_book(cli, book, wanted, &cli->out);
        return EXIT_FINE;
    }
    if (outfile_open(&out, wanted->output, &error) != TDBG_OK)
        return cli_fail(wanted->output, &error);
    struct term term = term_open(out.file);
    print_book(cli, book, wanted, &term);
    if (outfile_commit(&out, &error) != TDBG_OK)
        return cli_fail(wanted->output, &error);
    return EXIT_FINE;
}

static int findings(const struct td_memory_book *book)
{
    for (size_t i = 0; i < book->count; i++)
        if (td_memory_story_found(&book->stories[i]))
            return EXIT_FINDINGS;
    return EXIT_FINE;
}

/* --- A program ------------------------------------------------------------------------------------------ */

/* Beside the binary, in a build tree, or in the library folder that belongs to its bin. */
static bool find_shim(char out[PATH_MAX])
{
    char folder[PATH_MAX / 2];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0)
        return false;
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = 0;
    const char *const places[] = {"", "../" TDBG_LIBDIR "/"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(out, PATH_MAX, "%s/%s" SHIM, folder, places[i]);
        if (access(out, R_OK) == 0)
            return true;
    }
    return false;
}

/* A program that failed says so itself; one that ended well may still have lost memory. */
static int status_of(const struct td_memory_book *book)
{
    if (WIFSIGNALED(book->status))
        return 128 + WTERMSIG(book->status);
    return WEXITSTATUS(book->status) ? WEXITSTATUS(book->status) : findings(book);
}

static int watch(struct cli *cli, char **program, const struct memory_options *wanted,
                 const struct td_memory_wish *wish)
{
    struct td_memory_book book = {0};
    struct tdbg_error error;
    char shim[PATH_MAX];
    if (!find_shim(shim)) {
        (void)td_fail(&error, TDBG_IO, "not found beside tdbg nor in its library folder");
        return cli_fail(SHIM, &error);
    }
    fflush(stdout);
    if (td_memory_watch(&book, program, shim, wish, &error) != TDBG_OK) {
        td_memory_book_release(&book);
        return cli_fail(NULL, &error);
    }
    int status = status_of(&book);
    if (book.count == 0) {
        (void)td_fail(&error, TDBG_UNSUPPORTED,
                      "told nothing of its memory: linked statically, or with other rights than yours?");
        (void)cli_fail(program[0], &error);
        status = status ? status : EXIT_TROUBLE;
    } else if (report(cli, &book, wanted) != EXIT_FINE) {
        status = EXIT_TROUBLE;
    }
    td_memory_book_release(&book);
    return status;
}

/* --- The command ---------------------------------------------------------------------------------------- */

static int read_path(struct cli *cli, const char *path, const struct memory_options *wanted,
                     const struct td_memory_wish *wish)
{
    struct td_memory_book book = {0};
    struct tdbg_error error;
    struct progress *progress = progress_start(cli, "memory", 0);
    tdbg_status done = td_memory_read(&book, path, wish, cli->job, &error);
    progress_stop(&progress);
    if (done != TDBG_OK) {
        td_memory_book_release(&book);
        return cli_fail(path, &error);
    }
    int status = findings(&book);
    if (report(cli, &book, wanted) != EXIT_FINE)
        status = EXIT_TROUBLE;
    td_memory_book_release(&book);
    return status;
}

/* What follows "--" is the program's. */
static char **split(int *argc, char **argv)
{
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--") != 0)
            continue;
        *argc = i;
        return argv + i + 1;
    }
    return NULL;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct memory_options wanted = {.top = 10};
    struct args args;
    int status;
    char **program = split(&argc, argv);
    if (!cli_parse(cli, &cmd_memory, argc, argv, &wanted, &args, &status))
        return status;
    if (wanted.snapshots.count != 0 && wanted.snapshots.count != 2)
        return cli_fail_usage(&cmd_memory, "--snapshot is given twice, for the two to compare");
    struct td_memory_wish wish = {wanted.snapshots.items[0], wanted.snapshots.items[1]};
    if (program && (args.count || !*program))
        return cli_fail_usage(&cmd_memory,
                              *program ? "a PATH and a program are too much" : "no program after --");
    if (!program && args.count != 1)
        return cli_fail_usage(&cmd_memory,
                              args.count ? "one PATH at a time" : "no PATH and no program given");
    return program ? watch(cli, program, &wanted, &wish) : read_path(cli, args.operands[0], &wanted, &wish);
}

static const struct option options[] = {
    {"top", 0, OPTION_COUNT, offsetof(struct memory_options, top), "N", "rows of each list (10)"},
    {"snapshot", 0, OPTION_LIST, offsetof(struct memory_options, snapshots), "NAME",
     "given twice: compare these two moments; peak, end and 1.5s are always there"},
    {"output", 'o', OPTION_TEXT, offsetof(struct memory_options, output), "FILE", "write the report there"},
    {0},
};

const struct command cmd_memory = {
    .name = "memory",
    .summary = "Who holds memory: peak, timeline, leaks, fragmentation.",
    .usage = "RUN | SNAPSHOT.pickle | -- PROGRAM [ARGUMENT]...",
    .options = options,
    .run = run,
    .help =
        "Of a program, started here: every malloc and free by the call stack it came from. Of a recorded\n"
        "RUN: what the program told by tdbg_alloc and tdbg_free, by scope. Of a file that\n"
        "torch.cuda.memory._dump_snapshot wrote: the GPU's allocator, by Python stack.\n"
        "\n"
        "What still grows at the end is called a leak; what is merely held is listed. Fragmentation is free\n"
        "memory between live blocks. Exit status 1 when there is either. A program's own exit status is\n"
        "passed on when it is not 0; a signal N gives 128 + N. The program's output is left alone, the "
        "report\n"
        "follows it, or goes to the file of -o. A program may name a moment by calling\n"
        "tdbg_malloc_snapshot(\"name\"), which the shim defines.\n"
        "\n"
        "Examples:\n"
        "  tdbg memory -- ./engine --prompt hello\n"
        "  tdbg memory -o report.json --json -- python3 train.py\n"
        "  tdbg memory --snapshot 1s --snapshot end -- ./engine\n"
        "  tdbg memory runs/a --snapshot 'step 1' --snapshot 'step 9'\n"
        "  tdbg memory snapshot.pickle\n",
};
