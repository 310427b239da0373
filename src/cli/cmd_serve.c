/* cmd_serve.c: `tdbg serve`: the server in the foreground, until a signal ends it. */
#include "cli/cli.h"

#include "serve/server.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

struct serve_options {
    const char *host;
    int64_t port;
    const char *token;
};

static const struct option options[] = {
    {"host", 0, OPTION_TEXT, offsetof(struct serve_options, host), "HOST", "listen here (127.0.0.1)"},
    {"port", 0, OPTION_COUNT, offsetof(struct serve_options, port), "N", "and at this port (5000; 0: any)"},
    {"token", 0, OPTION_TEXT, offsetof(struct serve_options, token), "TEXT",
     "who knows it may come in (made and printed beyond loopback)"},
    {0},
};

/* Blocked before any thread starts, so that every thread leaves them to this one. */
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
    struct serve_options values = {.host = "127.0.0.1", .port = 5000};
    struct args args;
    int status;
    if (!cli_parse(cli, &cmd_serve, argc, argv, &values, &args, &status))
        return status;
    if (values.port > 65535)
        return cli_fail_usage(&cmd_serve, "no port %lld", (long long)values.port);
    sigset_t ending;
    block_signals(&ending);

    struct td_server *server;
    struct tdbg_error error;
    const struct td_server_options how = {
        .host = values.host, .port = (int)values.port, .token = values.token};
    if (td_server_open(&server, &how, &error) != TDBG_OK)
        return cli_fail(NULL, &error);
    printf("http://%s:%d/\n", values.host, td_server_port(server));
    fflush(stdout);
    int signal_number;
    sigwait(&ending, &signal_number);
    td_server_close(&server);
    return EXIT_FINE;
}

const struct command cmd_serve = {
    "serve",        "compare and look around in a browser",
    "[A B | PATH]", "  tdbg serve                      then open http://127.0.0.1:5000/\n",
    options,        run,
};
