/* cmd_serve.c: `tdbg serve`: the server in the foreground, until a signal ends it.
 *
 * Everything that can be wrong is found before anything is begun: the port is bound, the data folder locked
 * and the inputs found before a comparison starts. Signals are blocked in every thread and waited for here.
 */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/data_folder.h"
#include "serve/desk.h"
#include "serve/guard.h"
#include "serve/roots.h"
#include "serve/server.h"
#include "serve/uploads.h"
#include "session/target.h"
#include "store/run_folders.h"
#include "store/run_store.h"
#include "store/store.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Uploads of this many times the largest one fill the data folder. */
enum { UPLOADS = 20, TOKEN_DIGITS = 32 };

struct serve_options {
    const char *host, *token, *database, *data, *root, *upload_limit;
    int64_t port;
};

static const struct option options[] = {
    {"host", 0, OPTION_TEXT, offsetof(struct serve_options, host), "HOST", "listen here (127.0.0.1)"},
    {"port", 0, OPTION_COUNT, offsetof(struct serve_options, port), "N", "and at this port (5000; 0: any)"},
    {"token", 0, OPTION_TEXT, offsetof(struct serve_options, token), "TEXT",
     "who comes must know it (beyond loopback one is made)"},
    {"data", 0, OPTION_TEXT, offsetof(struct serve_options, data), "DIR",
     "keep comparisons and uploads here (~/.local/share/tdbg)"},
    {"db", 0, OPTION_TEXT, offsetof(struct serve_options, database), "FILE",
     "keep comparisons in this file, uploads beside it"},
    {"root", 0, OPTION_TEXT, offsetof(struct serve_options, root), "DIR",
     "open only paths under it (the current folder)"},
    {"limit-upload", 0, OPTION_TEXT, offsetof(struct serve_options, upload_limit), "BYTES",
     "largest upload, as in 500MB (the default)"},
    {0},
};

struct service {
    struct data_folder folder;
    struct td_store *store;
    struct td_uploads *uploads;
    struct td_roots *roots;
    struct td_desk *desk;
    struct td_server *server;
    char start[TD_ID_LENGTH + 1]; /* the comparison of the command line; "" none */
    char *run;                    /* the recorded run of the command line, or the folder of its ranks; NULL */
    bool ranks;
    char made_token[TOKEN_DIGITS + 1];
};

static void stop(struct service *s)
{
    if (s->desk)
        td_desk_stop(s->desk);
    td_server_close(&s->server);
    td_desk_close(&s->desk);
    td_roots_close(&s->roots);
    free(s->run);
    td_uploads_close(&s->uploads);
    td_store_close(&s->store);
    data_folder_release(&s->folder);
}

/* "1500", "500MB", "2GiB": powers of ten, or of two. */
static bool parse_size(const char *text, uint64_t *out)
{
    static const char prefixes[] = "kmgt";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || errno)
        return false;
    const char *prefix = *end ? strchr(prefixes, tolower((unsigned char)*end)) : NULL;
    bool binary = prefix && tolower((unsigned char)end[1]) == 'i';
    const char *unit = end + (prefix != NULL) + binary;
    if (*unit && strcasecmp(unit, "b") != 0)
        return false;
    for (ptrdiff_t i = prefix ? prefix - prefixes : -1; i >= 0; i--)
        if (__builtin_mul_overflow(value, binary ? 1024ULL : 1000ULL, &value))
            return false;
    *out = value;
    return value > 0;
}

/* --- Starting ------------------------------------------------------------------------------------------- */

static tdbg_status add_roots(struct service *s, const struct serve_options *values, const struct args *args,
                             const char **what, struct tdbg_error *error)
{
    TD_TRY(td_roots_open(&s->roots, error));
    *what = values->root ? values->root : ".";
    TD_TRY(td_roots_add(s->roots, *what, error));
    for (int i = 0; i < args->count; i++) {
        struct td_target target;
        *what = args->operands[i];
        TD_TRY(td_target_init(&target, args->operands[i], error));
        tdbg_status status = td_roots_add_input(s->roots, target.path, error);
        td_target_release(&target);
        TD_TRY(status);
    }
    *what = NULL;
    return TDBG_OK;
}

/* `what` is what a failure is about. */
static tdbg_status prepare(struct service *s, const struct serve_options *values, const struct args *args,
                           uint64_t upload_limit, const char **what, struct tdbg_error *error)
{
    uint64_t all;
    if (__builtin_mul_overflow(upload_limit, (uint64_t)UPLOADS, &all))
        all = UINT64_MAX;
    TD_TRY(add_roots(s, values, args, what, error));
    TD_TRY(data_folder_init(&s->folder, values->data, values->database, error));
    TD_TRY(td_store_open(&s->store, s->folder.database, error));
    *what = s->folder.uploads;
    TD_TRY(td_uploads_open(&s->uploads, s->folder.uploads, s->store, upload_limit, all, error));
    *what = NULL;
    TD_TRY(td_desk_open(&s->desk, s->store, s->uploads, td_roots_bound(s->roots), error));
    const char *token = values->token;
    if (!token && !td_server_is_loopback(values->host)) {
        if (!td_guard_random(s->made_token, TOKEN_DIGITS))
            return td_fail(error, TDBG_IO, "the system has no random numbers for a token");
        token = s->made_token;
    }
    const struct td_server_options how = {.host = values->host,
                                          .port = (int)values->port,
                                          .token = token,
                                          .roots = s->roots,
                                          .uploads = s->uploads,
                                          .upload_limit = upload_limit,
                                          .desk = s->desk};
    return td_server_open(&s->server, &how, error);
}

/* The inputs of the command line, by where they really are: the current folder may be another one next time.
 */
static tdbg_status start_comparison(struct service *s, const struct args *args, struct tdbg_error *error)
{
    struct td_order order = {.session = ""};
    struct td_order_side *const sides[] = {&order.a, &order.b};
    char *paths[2] = {NULL, NULL};
    tdbg_status status = TDBG_OK;
    for (int i = 0; i < args->count && status == TDBG_OK; i++) {
        status = td_roots_find_target(s->roots, args->operands[i], &paths[i], error);
        *sides[i] = (struct td_order_side){.name = args->operands[i], .path = paths[i]};
    }
    if (status == TDBG_OK && args->count > 0)
        status = td_desk_start(s->desk, &order, s->start, error);
    free(paths[0]);
    free(paths[1]);
    return status;
}

/* One recorded run, or a folder of its ranks, is for the dashboard and not for comparing. */
static tdbg_status find_run(struct service *s, const struct args *args, struct tdbg_error *error)
{
    struct td_run_folders folders;
    char *real = NULL;
    if (args->count != 1)
        return TDBG_OK;
    TD_TRY(td_roots_find_target(s->roots, args->operands[0], &real, error));
    tdbg_status status = td_run_folders_init(&folders, real, error);
    if (status == TDBG_OK && folders.count > 0) {
        s->ranks = !td_run_is(real);
        s->run = real;
        real = NULL;
    }
    if (status == TDBG_OK)
        td_run_folders_release(&folders);
    free(real);
    return status;
}

static tdbg_status start(struct service *s, const struct args *args, struct tdbg_error *error)
{
    TD_TRY(find_run(s, args, error));
    if (!s->run)
        TD_TRY(start_comparison(s, args, error));
    return td_server_start(s->server, s->start[0] ? s->start : NULL, s->run, error);
}

/* --- Saying where --------------------------------------------------------------------------------------- */

/* For the query of an address. */
static void put_encoded(struct td_buffer *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        td_buffer_printf(out, isalnum(*c) || strchr("/-._~", *c) ? "%c" : "%%%02X", *c);
}

static void format_url(struct td_buffer *out, const struct service *s, const char *host)
{
    char machine[256];
    bool everywhere = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    if (everywhere && gethostname(machine, sizeof machine) == 0) {
        machine[sizeof machine - 1] = 0;
        host = machine;
    }
    bool six = strchr(host, ':') != NULL;
    td_buffer_printf(out, "http://%s%s%s:%d/", six ? "[" : "", host, six ? "]" : "",
                     td_server_port(s->server));
    if (s->start[0])
        td_buffer_printf(out, "c/%s", s->start);
    if (s->run) {
        td_buffer_puts(out, s->ranks ? "runs?path=" : "run?path=");
        put_encoded(out, s->run);
    }
    if (s->made_token[0])
        td_buffer_printf(out, "%ctoken=%s", s->run ? '&' : '?', s->made_token);
}

static void announce(const struct cli *cli, const struct service *s, const char *host)
{
    struct td_buffer url;
    td_buffer_init(&url, 4096);
    format_url(&url, s, host);
    if (cli->json) {
        struct td_json json, *j = &json;
        td_json_to_file(j, stdout);
        td_json_begin_object(j);
        td_json_field_int(j, "version", 1);
        td_json_field_string(j, "url", td_buffer_text(&url));
        td_json_field_string(j, "comparison", s->start[0] ? s->start : NULL);
        td_json_field_string(j, "run", s->run);
        td_json_end_object(j);
        td_json_newline(j);
        (void)td_json_finish(j); /* stdout remembers */
    } else {
        printf("%s\n", td_buffer_text(&url));
    }
    fflush(stdout);
    td_buffer_release(&url);
}

/* --- The command ---------------------------------------------------------------------------------------- */

/* Before any thread starts, so that every thread leaves them to this one. */
static void block_signals(sigset_t *ending)
{
    sigemptyset(ending);
    sigaddset(ending, SIGINT);
    sigaddset(ending, SIGTERM);
    sigaddset(ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ending, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct serve_options values = {.host = "127.0.0.1", .port = 5000, .upload_limit = "500MB"};
    struct args args;
    uint64_t upload_limit;
    int status;
    if (!cli_parse(cli, &cmd_serve, argc, argv, &values, &args, &status))
        return status;
    if (args.count > 2)
        return cli_fail_usage(&cmd_serve, "two inputs to compare or one to explore, not %d", args.count);
    if (values.port > 65535)
        return cli_fail_usage(&cmd_serve, "there is no port %" PRId64, values.port);
    if (!parse_size(values.upload_limit, &upload_limit))
        return cli_fail_usage(&cmd_serve, "--limit-upload is '%s', not a size like 500MB",
                              values.upload_limit);
    sigset_t ending;
    block_signals(&ending);

    struct service service = {0};
    struct tdbg_error error;
    const char *what = NULL;
    if (prepare(&service, &values, &args, upload_limit, &what, &error) != TDBG_OK ||
        start(&service, &args, &error) != TDBG_OK) {
        status = cli_fail(what, &error);
        stop(&service);
        return status;
    }
    announce(cli, &service, values.host);
    int number;
    sigwait(&ending, &number);
    stop(&service);
    return EXIT_FINE;
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "Compare and look around in a browser; follow a live run.",
    .usage = "[A B | PATH | RUN]",
    .options = options,
    .run = run,
    .help =
        "Prints the address to open: with A and B that of their comparison, with PATH that of exploring it,\n"
        "with the folder of a recorded run that of its dashboard, which follows the run while it goes on.\n"
        "Ctrl-C ends it. Comparisons and uploads are kept, and are there again at the next start.\n"
        "\n"
        "Listens on this machine only. Elsewhere (--host) a token is asked for, which the address holds.\n"
        "\n"
        "Examples:\n"
        "  tdbg serve dumps_a/ dumps_b.zip\n"
        "  tdbg serve runs/a\n"
        "  tdbg serve --port 8080 --root /models\n"
        "  tdbg serve --host 0.0.0.0 --data /srv/tdbg\n",
};
