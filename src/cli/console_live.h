/* console_live.h: the console's side of a live run: its state, and what is shown of it. */
#ifndef TD_CLI_CONSOLE_LIVE_H
#define TD_CLI_CONSOLE_LIVE_H

#include "cli/console.h"
#include "live/control_client.h"

struct live {
    struct td_client *client;
    char *dir;
    json_t *stop;            /* where it is stopped; NULL: it runs */
    json_t *seen;            /* the tensors of the step so far, asked for once per stop; NULL: not yet */
    struct td_input *memory; /* the stopped tensor, fetched; NULL: not yet */
    char *slice;             /* what of it was fetched: "" is all */
    int file;                /* that `memory` is mapped from */
};

/* Asks; an error was printed when it is not EXIT_FINE. `answer` may be NULL. A process that is gone ends the
 * attachment. */
int live_ask(struct console *c, const char *verb, const struct td_parameter *parameters, json_t **answer);

/* After an answer that tells where the run is stopped now (NULL: it runs): what came before it is over, and
 * of others' stops nothing is said. */
void live_pass(struct console *c, json_t *stop);

/* Waits until the run stops, ends, or somebody presses Ctrl-C; says what happens. */
int live_wait(struct console *c);

/* The table of the tensors of the step so far; `pattern` NULL: all. */
int live_list(struct console *c, const char *pattern);

void live_print_stop(const struct console *c);

#endif
