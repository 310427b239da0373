/* console_live.c: see console_live.h. */
#include "cli/console_live.h"

#include "base/pattern.h"
#include "cli/table.h"
#include "cli/text.h"
#include "live/condition.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, LOOK_MS = 100 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* --- what is known of the run --------------------------------------------------------------------------- */

static void forget_memory(struct live *live)
{
    td_input_close(&live->memory);
    free(live->slice);
    live->slice = NULL;
    if (live->file >= 0)
        close(live->file);
    live->file = -1;
}

/* It goes on: nothing that was known of the stop is true any more. */
static void forget_stop(struct live *live)
{
    forget_memory(live);
    json_decref(live->stop);
    json_decref(live->seen);
    live->stop = live->seen = NULL;
}

void console_detach(struct console *c)
{
    struct live *live = c->live;
    if (!live)
        return;
    forget_stop(live);
    td_client_close(&live->client);
    free(live->dir);
    free(live);
    c->live = NULL;
}

/* The run is over; its folder stays. */
static void leave_to_files(struct console *c)
{
    free(c->left);
    c->left = strdup(c->live->dir);
    console_detach(c);
}

static int lost(struct console *c, const struct tdbg_error *error)
{
    if (error->status == TDBG_IO)
        leave_to_files(c);
    return cli_fail(NULL, error);
}

int live_ask(struct console *c, const char *verb, const struct td_parameter *parameters, json_t **answer)
{
    struct tdbg_error error;
    json_t *given = NULL;
    if (!c->live) {
        (void)td_fail(&error, TDBG_MISUSE, "no live run ('attach RUN' finds one)");
        return cli_fail(NULL, &error);
    }
    if (td_client_ask(c->live->client, verb, parameters, &given, &error) != TDBG_OK)
        return lost(c, &error);
    if (answer)
        *answer = given;
    else
        json_decref(given);
    return EXIT_FINE;
}

tdbg_status console_attach(struct console *c, const char *dir, struct tdbg_error *error)
{
    struct live *live = calloc(1, sizeof *live);
    json_t *state = NULL;
    if (!live)
        return td_fail_nomem(error);
    live->file = -1;
    live->dir = strdup(dir);
    tdbg_status status =
        live->dir ? td_client_open(&live->client, dir, PATIENCE_MS, error) : td_fail_nomem(error);
    if (status == TDBG_OK)
        status = td_client_ask(live->client, "attach", NULL, &state, error);
    struct live *before = c->live;
    c->live = live;
    if (status != TDBG_OK) {
        console_detach(c);
        c->live = before;
        return status;
    }
    if (before) {
        c->live = before;
        console_detach(c);
        c->live = live;
    }
    free(c->left);
    c->left = NULL;
    live->stop = json_incref(json_object_get(state, "stop"));
    printf("attached to %s (process %lld, %s)\n", dir,
           (long long)json_integer_value(json_object_get(state, "pid")), text_of(state, "state"));
    json_decref(state);
    if (live->stop)
        live_print_stop(c);
    return TDBG_OK;
}

/* --- what happens --------------------------------------------------------------------------------------- */

static double number_of(const json_t *value)
{
    const char *text = json_string_value(value); /* "nan", "inf", "-inf" */
    return text ? strtod(text, NULL) : json_number_value(value);
}

static void print_shape(const json_t *shape)
{
    size_t i;
    const json_t *size;
    putchar('[');
    json_array_foreach(shape, i, size) printf("%s%lld", i ? ", " : "", (long long)json_integer_value(size));
    putchar(']');
}

void live_print_stop(const struct console *c)
{
    const json_t *stop = c->live->stop, *stats = json_object_get(stop, "stats");
    printf("stopped at %s%s%s%s", strcmp(text_of(stop, "kind"), "scope") == 0 ? "scope " : "",
           term_style(&c->cli->out, STYLE_BOLD), text_of(stop, "name"),
           term_style(&c->cli->out, STYLE_PLAIN));
    if (json_object_get(stop, "shape")) {
        printf("  %s ", text_of(stop, "dtype"));
        print_shape(json_object_get(stop, "shape"));
    }
    printf("  step %lld: %s\n", (long long)json_integer_value(json_object_get(stop, "step")),
           text_of(stop, "reason"));
    if (!stats)
        return;
    static const char *const shown[] = {"mean", "std", "min", "max"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        printf("  %s %.5g", shown[i], number_of(json_object_get(stats, shown[i])));
    if (json_integer_value(json_object_get(stats, "nan")) ||
        json_integer_value(json_object_get(stats, "inf")))
        printf("  %lld NaN, %lld Inf", (long long)json_integer_value(json_object_get(stats, "nan")),
               (long long)json_integer_value(json_object_get(stats, "inf")));
    putchar('\n');
}

/* True: the run stopped or ended, and nothing more is to be waited for. */
static bool take_event(struct console *c, const json_t *event)
{
    const char *kind = text_of(event, "event");
    if (strcmp(kind, "stop") == 0) {
        forget_stop(c->live);
        c->live->stop = json_deep_copy(event);
        live_print_stop(c);
        return true;
    }
    if (strcmp(kind, "resume") == 0)
        forget_stop(c->live);
    if (strcmp(kind, "watch") == 0)
        printf("step %lld  %s = %.7g  (%s)\n", (long long)json_integer_value(json_object_get(event, "step")),
               text_of(event, "watch"), number_of(json_object_get(event, "value")), text_of(event, "name"));
    if (strcmp(kind, "end") != 0)
        return false;
    printf("the run has ended\n");
    leave_to_files(c);
    return true;
}

/* *done: see take_event. */
static int listen_for(struct console *c, int timeout_ms, bool *done, bool *quiet)
{
    struct tdbg_error error;
    json_t *event = NULL;
    *done = false;
    if (td_client_event(c->live->client, timeout_ms, &event, &error) != TDBG_OK)
        return lost(c, &error);
    *quiet = !event;
    if (event)
        *done = take_event(c, event);
    json_decref(event);
    fflush(stdout);
    return EXIT_FINE;
}

void console_live_listen(struct console *c)
{
    bool done = false, quiet = false;
    while (c->live && !quiet)
        if (listen_for(c, 0, &done, &quiet) != EXIT_FINE)
            return;
}

void live_pass(struct console *c, json_t *stop)
{
    json_t *event;
    while (c->live && (event = td_client_past_event(c->live->client))) {
        if (strcmp(text_of(event, "event"), "stop") != 0)
            (void)take_event(c, event);
        json_decref(event);
    }
    if (!c->live)
        return;
    forget_stop(c->live);
    c->live->stop = json_incref(stop);
}

int live_wait(struct console *c)
{
    bool done = false, quiet;
    while (c->live && !done) {
        int status = listen_for(c, LOOK_MS, &done, &quiet);
        if (status != EXIT_FINE)
            return status;
        if (!done && td_job_cancelled(c->cli->job)) {
            printf("the model runs on; 'step' stops it at its next tensor\n");
            return EXIT_INTERRUPTED;
        }
    }
    return EXIT_FINE;
}

/* --- the stopped tensor --------------------------------------------------------------------------------- */

bool console_live_means(const struct console *c, const char *text, const char **slice)
{
    const char *name = c->live && c->live->stop ? text_of(c->live->stop, "name") : NULL;
    if (!name)
        return false;
    bool here = text[0] == '.' && (!text[1] || text[1] == '[');
    size_t length = here ? 1 : strlen(name);
    if (!here && strncmp(text, name, length) != 0)
        return false;
    *slice = text + length;
    return !**slice || (**slice == '[' && text[strlen(text) - 1] == ']');
}

static tdbg_status fetch(struct live *live, const char *slice, struct tdbg_error *error)
{
    json_t *answer = NULL;
    char path[64];
    forget_memory(live);
    TD_TRY(
        td_client_ask(live->client, "fetch", (struct td_parameter[]){{"slice", slice}, {0}}, &answer, error));
    json_decref(answer);
    live->file = td_client_take_file(live->client);
    live->slice = strdup(slice);
    if (live->file < 0)
        return td_fail(error, TDBG_IO, "no values came from the run");
    if (!live->slice)
        return td_fail_nomem(error);
    snprintf(path, sizeof path, "/proc/self/fd/%d", live->file);
    return td_input_open(&live->memory, path, NULL, error);
}

tdbg_status console_live_memory(struct console *c, const char **slice, struct td_input **out,
                                struct tdbg_error *error)
{
    struct live *live = c->live;
    if (!live->memory || *live->slice) {
        tdbg_status status = fetch(live, "", error);
        size_t length = strlen(*slice);
        if (status == TDBG_MISUSE && length > 2) { /* too large as a whole */
            char *inside = strndup(*slice + 1, length - 2);
            status = inside ? fetch(live, inside, error) : td_fail_nomem(error);
            free(inside);
            *slice = "";
        }
        TD_TRY(status);
    }
    *out = live->memory;
    return TDBG_OK;
}

const char *console_live_dir(const struct console *c)
{
    return c->live->dir;
}

/* --- the step so far ------------------------------------------------------------------------------------ */

static const json_t *seen(struct console *c)
{
    struct live *live = c->live;
    if (!live)
        return NULL;
    if (!live->stop || !live->seen) {
        struct tdbg_error error;
        json_t *answer = NULL;
        if (td_client_ask(live->client, "seen", NULL, &answer, &error) != TDBG_OK)
            return NULL;
        json_decref(live->seen);
        live->seen = answer;
    }
    return json_object_get(live->seen, "tensors");
}

const char *console_live_name(struct console *c, size_t i)
{
    return json_string_value(json_object_get(json_array_get(seen(c), i), "name"));
}

static void add_seen(struct table *table, const json_t *row)
{
    static const char *const shown[] = {"mean", "std", "min", "max", "nan", "inf"};
    const json_t *stats = json_object_get(row, "stats"), *shape = json_object_get(row, "shape");
    struct td_buffer text;
    td_buffer_init(&text, 1 << 12);
    td_buffer_puts(&text, "[");
    for (size_t i = 0; i < json_array_size(shape); i++)
        td_buffer_printf(&text, "%s%lld", i ? ", " : "",
                         (long long)json_integer_value(json_array_get(shape, i)));
    td_buffer_puts(&text, "]");
    table_cell(table, text_of(row, "name"));
    table_cell(table, text_of(row, "dtype"));
    table_cell(table, td_buffer_text(&text));
    td_buffer_release(&text);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (stats)
            table_cellf(table, "%.5g", number_of(json_object_get(stats, shown[i])));
        else
            table_cell(table, "");
}

int live_list(struct console *c, const char *pattern)
{
    static const struct column columns[] = {
        {.title = "name", .elastic = true},
        {.title = "dtype", .drop = 2},
        {.title = "shape", .drop = 1},
        {.title = "mean", .right = true},
        {.title = "std", .right = true},
        {.title = "min", .right = true},
        {.title = "max", .right = true},
        {.title = "nan", .right = true, .drop = 3},
        {.title = "inf", .right = true, .drop = 3},
    };
    const json_t *tensors = seen(c);
    struct table table;
    size_t i, count = 0;
    const json_t *row;
    table_init(&table, columns, sizeof columns / sizeof *columns);
    json_array_foreach(tensors, i, row)
    {
        if (pattern && !td_pattern_fits(pattern, text_of(row, "name")))
            continue;
        add_seen(&table, row);
        count++;
    }
    if (count)
        table_print(&table, &c->cli->out, 0);
    table_release(&table);
    printf("%zu tensor%s of step %lld so far\n", count, text_plural(count),
           c->live ? (long long)json_integer_value(json_object_get(c->live->seen, "step")) : 0);
    return EXIT_FINE;
}
