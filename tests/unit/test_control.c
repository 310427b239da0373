/* Breakpoints from inside: conditions as text, threads that are held, and a run that ends while they are. */
#include "test_support.h"

#include "base/pattern.h"
#include "live/condition.h"
#include "live/control_client.h"
#include "session/input.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 3, LAYERS = 4, PATIENCE_MS = 60000 };

/* --- text ----------------------------------------------------------------------------------------------- */

static const struct tdbg_stats sample = {
    .count = 10, .finite = 8, .nan = 2, .mean = 0.5, .std = 2, .min = -1, .max = 4, .absmax = 4, .norm = 6};

static void test_conditions(void **state)
{
    static const struct {
        const char *text;
        bool met;
    } cases[] = {
        {"nan", true},
        {"inf", false},
        {"absmax > 3.5", true},
        {"absmax>3.5", true},
        {"absmax > 4", false},
        {"std < 1e-7", false},
        {"std < 2.5", true},
        {"inf or mean > 0.4", true},
        {"zeros > 0", false},
        {"count > 9", true},
        {"  min <  -0.5 ", true},
        {"max < nan", false},
        {"finite < 10", true},
        {"norm > 6 or inf", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct td_condition c;
        assert_ok(td_condition_init(&c, cases[i].text, NULL));
        assert_int_equal(td_condition_meet(&c, &sample) != NULL, cases[i].met);
        td_condition_release(&c);
    }
}

static void test_a_condition_of_nothing(void **state)
{
    struct tdbg_stats nothing = {.mean = NAN, .std = NAN, .min = NAN, .max = NAN, .absmax = NAN};
    struct td_condition c;
    (void)state;
    assert_ok(td_condition_init(&c, "std < 1 or absmax > -1", NULL));
    assert_null(td_condition_meet(&c, &nothing)); /* a NaN is neither */
    td_condition_release(&c);
}

static void test_breaks_as_text(void **state)
{
    struct tdbg_error error;
    char *pattern, *condition;
    (void)state;
    assert_ok(td_break_split("  layers.*   if nan or inf", &pattern, &condition, NULL));
    assert_string_equal(pattern, "layers.*");
    assert_string_equal(condition, "nan or inf");
    free(pattern);
    free(condition);
    assert_ok(td_break_split(" 'a b' if nan", &pattern, &condition, NULL));
    assert_string_equal(pattern, "a b");
    assert_string_equal(condition, "nan");
    free(pattern);
    free(condition);
    assert_fails(td_break_split("\"a b if nan", &pattern, &condition, &error), TDBG_MISUSE,
                 "a quote is not closed");
    assert_fails(td_break_split("x when nan", &pattern, &condition, &error), TDBG_MISUSE,
                 "'if' and a condition may follow the pattern, not 'when nan'");
    assert_fails(td_break_split(" ", &pattern, &condition, &error), TDBG_MISUSE,
                 "a pattern of tensor or scope names is missing");
    assert_true(td_pattern_fits("m.output[0]", "m.output[0]"));
    assert_true(td_pattern_fits("m.*", "m.a.b"));
    assert_false(td_pattern_fits("m.?", "m.ab"));
}

static void test_watches(void **state)
{
    struct tdbg_error error;
    struct td_watch w;
    const char *slice;
    (void)state;
    assert_ok(td_watch_init(&w, "mean(x.output[0, 3])", NULL));
    assert_true(td_watch_fits(&w, "x.output", &slice));
    assert_string_equal(slice, "0, 3");
    assert_true(td_watch_fits(&w, "x.output[0, 3]", &slice)); /* some names look like slices */
    assert_string_equal(slice, "");
    assert_false(td_watch_fits(&w, "x", &slice));
    td_watch_release(&w);
    assert_fails(td_watch_init(&w, "x.output", &error), TDBG_MISUSE,
                 "a watch looks like absmax(layers.3.output)");
    assert_int_equal(td_watch_init(&w, "median(x)", &error), TDBG_MISUSE);
}

/* --- threads -------------------------------------------------------------------------------------------- */

struct bench {
    char dir[64];
    tdbg_run *run;
};

static void set_up(struct bench *b)
{
    strcpy(b->dir, "/tmp/tdbg-control-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    assert_ok(tdbg_run_open(&b->run, b->dir, &(struct tdbg_run_options){.capture = "*=stats"}));
}

static void tear_down(struct bench *b)
{
    char command[128];
    assert_ok(tdbg_run_close(&b->run));
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    assert_int_equal(system(command), 0);
}

/* A model of one thread: each layer is a scope with a tensor in it. */
static void *model(void *context)
{
    struct bench *b = context;
    for (int64_t step = 0; step < STEPS; step++) {
        tdbg_step(b->run, step);
        for (int layer = 0; layer < LAYERS; layer++) {
            float values[] = {(float)layer, 1, 2, (float)step};
            char name[32];
            snprintf(name, sizeof name, "layers.%d", layer);
            tdbg_scope_begin(b->run, name);
            snprintf(name, sizeof name, "layers.%d.output", layer);
            tdbg_tensor(b->run, name,
                        &(struct tdbg_tensor){
                            .data = values, .dtype = "float32", .ndim = 2, .shape = (int64_t[]){2, 2}});
            tdbg_scope_end(b->run);
        }
    }
    return NULL;
}

static json_t *ask(struct td_client *client, const char *verb, const char *key, const char *text)
{
    json_t *answer = NULL;
    struct tdbg_error error;
    const struct td_parameter parameters[] = {{key, text}, {0}};
    if (td_client_ask(client, verb, parameters, &answer, &error) != TDBG_OK)
        fail_msg("%s: %s", verb, error.message);
    return answer;
}

static void tell(struct td_client *client, const char *verb, const char *key, const char *text)
{
    json_decref(ask(client, verb, key, text));
}

/* Waits for the next stop; the caller's. */
static json_t *next_stop(struct td_client *client)
{
    for (;;) {
        json_t *event = NULL;
        assert_ok(td_client_event(client, PATIENCE_MS, &event, NULL));
        assert_non_null(event);
        if (strcmp(json_string_value(json_object_get(event, "event")), "stop") == 0)
            return event;
        json_decref(event);
    }
}

static void assert_stops_at(struct td_client *client, const char *name, int64_t step)
{
    json_t *stop = next_stop(client);
    assert_string_equal(json_string_value(json_object_get(stop, "name")), name);
    assert_int_equal(json_integer_value(json_object_get(stop, "step")), step);
    json_decref(stop);
}

static struct td_client *attach(const struct bench *b)
{
    struct td_client *client = NULL;
    assert_ok(td_client_open(&client, b->dir, PATIENCE_MS, NULL));
    tell(client, "attach", NULL, NULL);
    return client;
}

static void test_stop_and_go(void **state)
{
    struct bench b;
    pthread_t thread;
    (void)state;
    set_up(&b);
    struct td_client *client = attach(&b);
    tell(client, "break", "pattern", "layers.2.output");
    tell(client, "watch", "watch", "max(layers.0.output[1])");
    pthread_create(&thread, NULL, model, &b);
    assert_stops_at(client, "layers.2.output", 0);
    tell(client, "step", NULL, NULL);
    assert_stops_at(client, "layers.3.output", 0);
    tell(client, "next", NULL, NULL);
    assert_stops_at(client, "layers.0", 1); /* a scope, no deeper than where it was */
    tell(client, "continue", NULL, NULL);
    assert_stops_at(client, "layers.2.output", 1);
    tell(client, "capture", "rules", "*=none");
    tell(client, "detach", "clear", "yes");
    pthread_join(thread, NULL);
    td_client_close(&client);
    tear_down(&b);
}

static void test_fetch(void **state)
{
    struct bench b;
    pthread_t thread;
    struct td_input *input = NULL;
    char path[64];
    (void)state;
    set_up(&b);
    struct td_client *client = attach(&b);
    tell(client, "break", "pattern", "layers.3.output");
    pthread_create(&thread, NULL, model, &b);
    assert_stops_at(client, "layers.3.output", 0);
    tell(client, "fetch", "slice", "0");
    int file = td_client_take_file(client);
    assert_true(file >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    assert_ok(td_input_open(&input, path, NULL, NULL));
    const struct td_tensor *t = td_input_tensor(input, 0);
    assert_string_equal(t->name, "layers.3.output");
    assert_int_equal(t->count, 2);
    assert_memory_equal(t->view.data, ((float[]){3, 1}), 2 * sizeof(float));
    td_input_close(&input);
    close(file);
    td_client_close(&client); /* nobody is left: the model goes on */
    pthread_join(thread, NULL);
    tear_down(&b);
}

/* Both meet the same breakpoint: they are held in turns. */
static void test_two_threads(void **state)
{
    struct bench b;
    pthread_t threads[2];
    (void)state;
    set_up(&b);
    struct td_client *client = attach(&b);
    tell(client, "break", "pattern", "layers.1.output");
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, model, &b);
    for (int i = 0; i < 2 * STEPS; i++) {
        json_decref(next_stop(client));
        tell(client, "continue", NULL, NULL);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    json_t *answer = ask(client, "breakpoints", NULL, NULL);
    const json_t *first = json_array_get(json_object_get(answer, "breakpoints"), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "hits")), 2 * STEPS);
    json_decref(answer);
    td_client_close(&client);
    tear_down(&b);
}

static void test_nobody_there(void **state)
{
    struct td_client *client = NULL;
    struct tdbg_error error;
    (void)state;
    assert_fails(td_client_open(&client, "/tmp", 100, &error), TDBG_NOTFOUND, "no process records this run");
    assert_int_equal(td_client_open(&client, "/nowhere at all", 100, &error), TDBG_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),     cmocka_unit_test(test_a_condition_of_nothing),
        cmocka_unit_test(test_breaks_as_text), cmocka_unit_test(test_watches),
        cmocka_unit_test(test_stop_and_go),    cmocka_unit_test(test_fetch),
        cmocka_unit_test(test_two_threads),    cmocka_unit_test(test_nobody_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
