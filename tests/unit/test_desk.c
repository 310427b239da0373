/* test_desk.c: many threads at one desk: what is lent stays open, what is removed is gone, nobody is left
 * waiting. What comparisons say is tested over HTTP (tests/server/test_comparisons.py). */
#include "test_support.h"

#include "serve/desk.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { INPUTS = 12, VALUES = 600 };

struct fixture {
    char folder[64], input[INPUTS][96];
    struct td_store *store;
    struct td_desk *desk;
};

static void write_npy(const char *path, float first)
{
    char header[128];
    float values[VALUES];
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    snprintf(header + 10, 118, "%-117s", "{'descr': '<f4', 'fortran_order': False, 'shape': (20, 30), }");
    header[127] = '\n';
    for (int i = 0; i < VALUES; i++)
        values[i] = first + (float)(i % 37) / 8;
    FILE *file = fopen(path, "wb");
    fwrite(header, sizeof header, 1, file);
    fwrite(values, sizeof values, 1, file);
    fclose(file);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    char path[96];
    strcpy(f->folder, "/tmp/tdbg-desk-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    for (int i = 0; i < INPUTS; i++) {
        snprintf(f->input[i], sizeof f->input[i], "%s/%d.npy", f->folder, i);
        write_npy(f->input[i], (float)i);
    }
    snprintf(path, sizeof path, "%s/tdbg.db", f->folder);
    *state = f;
    return td_store_open(&f->store, path, NULL) == TDBG_OK &&
                   td_desk_open(&f->desk, f->store, NULL, NULL, NULL) == TDBG_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[96];
    td_desk_close(&f->desk);
    td_store_close(&f->store);
    snprintf(command, sizeof command, "rm -r %s", f->folder);
    int status = system(command);
    free(f);
    return status;
}

static tdbg_status start(struct fixture *f, int a, int b, const char *session, char id[TD_ID_LENGTH + 1])
{
    struct td_order order = {
        .a = {"a", f->input[a], NULL}, .b = {"b", f->input[b], NULL}, .session = session};
    return td_desk_start(f->desk, &order, id, NULL);
}

/* The first value of side B of the only pair. */
static tdbg_status first_value(struct td_desk *desk, const char *id, double *out)
{
    const struct td_open_comparison *opened;
    const struct td_subject *subject;
    struct td_slice slice;
    TD_TRY(td_desk_borrow(desk, id, &opened, NULL));
    tdbg_status status = td_desk_subject(desk, opened, 0, &subject, NULL);
    if (status == TDBG_OK)
        status = td_slice_parse(&slice, "0,0", &subject->shape, NULL);
    if (status == TDBG_OK)
        status = td_subject_values(subject, 1, &slice, out, NULL);
    td_desk_return(desk, &opened);
    return status;
}

static void the_latest_of_a_browser(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    char id[TD_ID_LENGTH + 1], mine[TD_ID_LENGTH + 1], other[TD_ID_LENGTH + 1];
    assert_fails(td_desk_latest(f->desk, "me", id, &error), TDBG_NOTFOUND, "nothing has been compared yet");
    assert_ok(start(f, 0, 1, "me", mine));
    assert_ok(start(f, 0, 2, "you", other));
    assert_ok(td_desk_latest(f->desk, "me", id, &error));
    assert_string_equal(id, mine);
    assert_ok(td_desk_latest(f->desk, "a stranger", id, &error));
    assert_string_equal(id, other);
    assert_ok(td_desk_remove(f->desk, mine, &error));
    assert_ok(td_desk_latest(f->desk, "me", id, &error));
    assert_string_equal(id, other);
}

static void what_is_lent_outlives_its_removal(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    char id[TD_ID_LENGTH + 1];
    const struct td_open_comparison *opened;
    const struct td_subject *subject, *again;
    assert_ok(start(f, 0, 3, "", id));
    assert_ok(td_desk_wait(f->desk, id, &error));
    assert_true(td_desk_borrow_now(f->desk, id, &opened));
    assert_ok(td_desk_remove(f->desk, id, &error));
    assert_ok(td_desk_subject(f->desk, opened, 0, &subject, &error));
    assert_ok(td_desk_subject(f->desk, opened, 0, &again, &error));
    assert_ptr_equal(subject, again);
    assert_fails(td_desk_subject(f->desk, opened, 1, &again, &error), TDBG_NOTFOUND,
                 "no pair 1; there are 1");
    td_desk_return(f->desk, &opened);
    assert_null(opened);
    assert_int_equal(td_desk_borrow(f->desk, id, &opened, &error), TDBG_NOTFOUND);
    assert_false(td_desk_borrow_now(f->desk, id, &opened));
}

static void stopping_lets_everybody_go(void **state)
{
    struct fixture *f = *state;
    char id[TD_ID_LENGTH + 1];
    td_desk_stop(f->desk);
    assert_ok(start(f, 0, 1, "", id));
    assert_int_equal(td_desk_wait(f->desk, id, NULL), TDBG_CANCELLED);
}

/* --- many at once --------------------------------------------------------------------------------------- */

struct crowd {
    struct fixture *f;
    char id[INPUTS][TD_ID_LENGTH + 1];
    atomic_int wrong, turn;
};

/* More than may lie open, each asked for by several. */
static void *look_around(void *context)
{
    struct crowd *c = context;
    unsigned place = (unsigned)atomic_fetch_add(&c->turn, 5);
    for (int i = 0; i < 200; i++) {
        double value;
        place = (place * 5 + 7) % INPUTS;
        if (first_value(c->f->desk, c->id[place], &value) != TDBG_OK || value != (double)place)
            atomic_fetch_add(&c->wrong, 1);
    }
    return NULL;
}

/* Comparisons that come, are configured, listed and go, at any moment of each other. */
static void *come_and_go(void *context)
{
    struct crowd *c = context;
    struct td_desk *desk = c->f->desk;
    for (int i = 0; i < 30; i++) {
        char id[TD_ID_LENGTH + 1];
        double value;
        struct td_buffer text;
        struct td_news seen = {0};
        bool more;
        td_buffer_init(&text, 1 << 20);
        bool good = start(c->f, i % INPUTS, 4, "crowd", id) == TDBG_OK;
        good = good && td_desk_news(desk, id, &seen, &text, &more, NULL) == TDBG_OK;
        if (i % 3 == 0)
            good = good && td_desk_cancel(desk, id, NULL) == TDBG_OK &&
                   td_desk_configure(desk, id, "{\"top\":2}", NULL) == TDBG_OK;
        if (i % 3 == 1)
            good = good && td_desk_wait(desk, id, NULL) == TDBG_OK &&
                   first_value(desk, id, &value) == TDBG_OK && value == 4;
        good = good && td_desk_list(desk, &text, NULL) == TDBG_OK;
        good = good && td_desk_remove(desk, id, NULL) == TDBG_OK;
        td_buffer_release(&text);
        if (!good)
            atomic_fetch_add(&c->wrong, 1);
    }
    return NULL;
}

static void a_crowd(void **state)
{
    enum { THREADS = 8 };
    struct crowd c = {.f = *state};
    struct tdbg_error error;
    pthread_t threads[THREADS];
    for (int i = 0; i < INPUTS; i++) {
        assert_ok(start(c.f, 0, i, "", c.id[i]));
        assert_ok(td_desk_wait(c.f->desk, c.id[i], &error));
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? come_and_go : look_around, &c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c.wrong, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_latest_of_a_browser),
        TEST(what_is_lent_outlives_its_removal),
        TEST(stopping_lets_everybody_go),
        TEST(a_crowd),
    };
    return cmocka_run_group_tests_name("desk", tests, NULL, NULL);
}
