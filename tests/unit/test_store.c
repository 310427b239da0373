/* test_store.c: what a server remembers comes back, whole or not at all, and bad files are refused. */
#include "test_support.h"

#include "store/store.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char folder[64], path[96];
    struct td_store *store;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/tdbg-store-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/tdbg.db", f->folder);
    *state = f;
    return td_store_open(&f->store, f->path, NULL) == TDBG_OK ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[96];
    td_store_close(&f->store);
    snprintf(command, sizeof command, "rm -r %s", f->folder);
    int status = system(command);
    free(f);
    return status;
}

static void reopen(struct fixture *f)
{
    struct tdbg_error error;
    td_store_close(&f->store);
    assert_ok(td_store_open(&f->store, f->path, &error));
}

/* Everything that visitors see, as text to compare. */
struct seen {
    struct td_buffer text;
};

static void see_upload(void *context, const struct td_upload_row *row)
{
    struct seen *s = context;
    td_buffer_printf(&s->text, "%s %s %s %llu %lld\n", row->id, row->name, row->sha256,
                     (unsigned long long)row->bytes, (long long)row->created);
}

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static void see_comparison(void *context, const struct td_comparison_row *row)
{
    struct seen *s = context;
    td_buffer_printf(&s->text, "%s|%s|%s|%s|%s|%s|%s|%lld", row->id, row->title, row->session, row->status,
                     or_dash(row->error), row->settings, or_dash(row->summary), (long long)row->created);
    const struct td_source_row *sides[] = {&row->a, &row->b};
    for (int i = 0; i < 2; i++)
        td_buffer_printf(&s->text, "|%s,%s,%s,%s", or_dash(sides[i]->name), or_dash(sides[i]->path),
                         or_dash(sides[i]->upload), or_dash(sides[i]->stamp));
    td_buffer_puts(&s->text, "\n");
}

static void assert_uploads(struct fixture *f, const char *expected)
{
    struct tdbg_error error;
    struct seen seen;
    td_buffer_init(&seen.text, 1 << 16);
    assert_ok(td_store_each_upload(f->store, see_upload, &seen, &error));
    assert_string_equal(td_buffer_text(&seen.text), expected);
    td_buffer_release(&seen.text);
}

static void assert_comparisons(struct fixture *f, const char *expected)
{
    struct tdbg_error error;
    struct seen seen;
    td_buffer_init(&seen.text, 1 << 16);
    assert_ok(td_store_each_comparison(f->store, see_comparison, &seen, &error));
    assert_string_equal(td_buffer_text(&seen.text), expected);
    td_buffer_release(&seen.text);
}

static const struct td_upload_row upload = {"u1", "a b.zip", "0123", UINT64_C(5) << 32, 1700000000};

static const struct td_comparison_row explored = {.id = "c1",
                                                  .title = "one",
                                                  .session = "",
                                                  .status = "queued",
                                                  .settings = "{}",
                                                  .a = {"a", "/m/a", NULL, ""},
                                                  .created = 7};

static const struct td_comparison_row compared = {.id = "c2",
                                                  .title = "two",
                                                  .session = "s",
                                                  .status = "done",
                                                  .settings = "{\"top\":1}",
                                                  .summary = "{\"x\":1}",
                                                  .a = {"a", "/m/a", NULL, "1:2"},
                                                  .b = {"a b.zip", "/d/u1/a b.zip", "u1", "3:4"},
                                                  .created = 7};

static void rows_come_back(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    struct td_buffer result;
    assert_ok(td_store_add_upload(f->store, &upload, &error));
    assert_ok(td_store_put_comparison(f->store, &explored, &error));
    assert_ok(td_store_finish_comparison(f->store, &compared, "{\"pairs\":[]}", 12, NULL, &error));
    reopen(f);
    assert_uploads(f, "u1 a b.zip 0123 21474836480 1700000000\n");
    assert_comparisons(f,
                       "c2|two|s|done|-|{\"top\":1}|{\"x\":1}|7|a,/m/a,-,1:2|a b.zip,/d/u1/a b.zip,u1,3:4\n"
                       "c1|one||queued|-|{}|-|7|a,/m/a,-,|-,-,-,-\n");
    td_buffer_init(&result, 1 << 16);
    assert_ok(td_store_result(f->store, "c2", &result, &error));
    assert_string_equal(td_buffer_text(&result), "{\"pairs\":[]}");
    assert_fails(td_store_result(f->store, "c1", &result, &error), TDBG_NOTFOUND, "no such result");
    td_buffer_release(&result);
}

static void a_row_is_replaced_and_keeps_its_place(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    struct td_comparison_row row = explored;
    struct td_buffer note;
    assert_ok(td_store_put_comparison(f->store, &row, &error));
    row.id = "c9";
    assert_ok(td_store_put_comparison(f->store, &row, &error));
    assert_ok(td_store_put_state(f->store, "c1", "{\"order\":[1]}", 13, &error));
    row.id = "c1";
    row.status = "failed";
    row.error = "a.zip: broken";
    assert_ok(td_store_put_comparison(f->store, &row, &error));
    assert_comparisons(f, "c9|one||queued|-|{}|-|7|a,/m/a,-,|-,-,-,-\n"
                          "c1|one||failed|a.zip: broken|{}|-|7|a,/m/a,-,|-,-,-,-\n");
    td_buffer_init(&note, 1 << 16);
    assert_ok(td_store_state(f->store, "c1", &note, &error));
    assert_string_equal(td_buffer_text(&note), "{\"order\":[1]}");
    td_buffer_release(&note);
}

static void notes(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    struct td_buffer note;
    td_buffer_init(&note, 1 << 16);
    assert_fails(td_store_state(f->store, "c1", &note, &error), TDBG_NOTFOUND, "no such comparison");
    assert_fails(td_store_put_state(f->store, "c1", "{}", 2, &error), TDBG_NOTFOUND, "no such comparison");
    assert_ok(td_store_put_comparison(f->store, &explored, &error));
    assert_ok(td_store_state(f->store, "c1", &note, &error));
    assert_string_equal(td_buffer_text(&note), "{}");
    td_buffer_release(&note);
}

static void what_is_used_stays(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    struct td_buffer result;
    assert_int_equal(td_store_put_comparison(f->store, &compared, &error), TDBG_MISMATCH);
    assert_ok(td_store_add_upload(f->store, &upload, &error));
    assert_ok(td_store_finish_comparison(f->store, &compared, "{}", 2, NULL, &error));
    assert_fails(td_store_remove_upload(f->store, "u1", &error), TDBG_MISMATCH,
                 "contradicts what is stored: FOREIGN KEY constraint failed");
    assert_ok(td_store_remove_comparison(f->store, "c2", &error));
    assert_ok(td_store_remove_upload(f->store, "u1", &error));
    assert_fails(td_store_remove_upload(f->store, "u1", &error), TDBG_NOTFOUND, "no such upload");
    assert_fails(td_store_remove_comparison(f->store, "c2", &error), TDBG_NOTFOUND, "no such comparison");
    td_buffer_init(&result, 1 << 16);
    assert_int_equal(td_store_result(f->store, "c2", &result, &error), TDBG_NOTFOUND);
    td_buffer_release(&result);
}

/* The first half of the transaction stands alone as little as the second. */
static void finishing_is_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    assert_int_equal(td_store_finish_comparison(f->store, &compared, "{}", 2, NULL, &error), TDBG_MISMATCH);
    assert_comparisons(f, "");
    assert_ok(td_store_put_comparison(f->store, &explored, &error)); /* no transaction was left open */
}

static void a_killed_process_loses_nothing(void **state)
{
    struct fixture *f = *state;
    td_store_close(&f->store);
    pid_t child = fork();
    if (child == 0) {
        struct td_store *store = NULL;
        bool saved = td_store_open(&store, f->path, NULL) == TDBG_OK &&
                     td_store_finish_comparison(store, &explored, "{}", 2, NULL, NULL) == TDBG_OK;
        _exit(saved ? 7 : 1); /* nothing is closed */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
    reopen(f);
    assert_comparisons(f, "c1|one||queued|-|{}|-|7|a,/m/a,-,|-,-,-,-\n");
}

/* --- files that are refused ----------------------------------------------------------------------------- */

static void assert_refused(struct fixture *f, tdbg_status status, const char *why)
{
    struct tdbg_error error;
    struct td_store *store = NULL;
    char expected[256];
    snprintf(expected, sizeof expected, "%s: %s", f->path, why);
    assert_fails(td_store_open(&store, f->path, &error), status, expected);
}

static void run_sql(struct fixture *f, const char *sql)
{
    sqlite3 *db;
    td_store_close(&f->store);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void a_newer_one_is_refused(void **state)
{
    struct fixture *f = *state;
    run_sql(f, "PRAGMA user_version = 9");
    assert_refused(f, TDBG_UNSUPPORTED, "made by a newer tdbg: version 9, this one knows 1");
}

static void another_program_s_is_refused(void **state)
{
    struct fixture *f = *state;
    run_sql(f, "PRAGMA application_id = 5");
    assert_refused(f, TDBG_CORRUPT, "a database of another program");
}

static void no_database_is_refused(void **state)
{
    struct fixture *f = *state;
    td_store_close(&f->store);
    FILE *file = fopen(f->path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("no database at all", file);
    fclose(file);
    assert_refused(f, TDBG_CORRUPT, "not a file of tdbg's");
}

static void a_damaged_one_is_refused(void **state)
{
    struct fixture *f = *state;
    td_store_close(&f->store);
    FILE *file = fopen(f->path, "r+");
    fseek(file, 100, SEEK_SET); /* behind the header: the root of the schema */
    for (int i = 0; i < 2000; i++)
        fputc(0xee, file);
    fclose(file);
    assert_refused(f, TDBG_CORRUPT, "damaged: database disk image is malformed");
}

static void one_at_a_time(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, TDBG_IO, "in use by another tdbg");
}

static void a_folder_that_is_not_there(void **state)
{
    struct fixture *f = *state;
    td_store_close(&f->store);
    strcat(f->path, "/nowhere/tdbg.db");
    assert_refused(f, TDBG_IO, "unable to open database file: Not a directory");
    snprintf(f->path, sizeof f->path, "%s/tdbg.db", f->folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_come_back),
        TEST(a_row_is_replaced_and_keeps_its_place),
        TEST(notes),
        TEST(what_is_used_stays),
        TEST(finishing_is_all_or_nothing),
        TEST(a_killed_process_loses_nothing),
        TEST(a_newer_one_is_refused),
        TEST(another_program_s_is_refused),
        TEST(no_database_is_refused),
        TEST(a_damaged_one_is_refused),
        TEST(one_at_a_time),
        TEST(a_folder_that_is_not_there),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
