/* test_pairs.c: pairs files in and out, and the user's program, well-behaved and not. */
#include "match_support.h"

#include "session/match_program.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct fixture {
    char folder[64];
    struct test_side a, b;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/tdbg-pairs-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    side_of_names(&f->a, NAMES("0_query", "0_key", "0_value", "ü \"x\"", "left"));
    side_of_names(&f->b, NAMES("0_qkv", "ü \"x\"", "right"));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", f->folder);
    side_free(&f->a);
    side_free(&f->b);
    int status = system(command);
    free(f);
    return status;
}

static void path_in(const struct fixture *f, char *out, const char *name)
{
    snprintf(out, 128, "%s/%s", f->folder, name);
}

static void what_is_saved_comes_back(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    struct td_matches matches, again;
    struct td_pairs pairs;
    char path[128];
    path_in(f, path, "pairs.json");
    assert_ok(td_match_sides(&matches, &f->a.side, &f->b.side,
                             &(struct td_match_options){.strategy = "exact,fused"}, NULL, &error));
    assert_ok(td_pairs_write(&matches, path, &error));
    assert_ok(td_pairs_read(&pairs, path, &error));
    assert_int_equal(pairs.count, 4);
    struct td_match_options options = {
        .strategy = "manual", .manual = pairs.list, .manual_count = pairs.count};
    assert_ok(td_match_sides(&again, &f->a.side, &f->b.side, &options, NULL, &error));
    assert_int_equal(again.count, matches.count);
    for (size_t i = 0; i < matches.count; i++) {
        assert_ptr_equal(again.pairs[i].a, matches.pairs[i].a);
        assert_ptr_equal(again.pairs[i].b, matches.pairs[i].b);
        assert_memory_equal(&again.pairs[i].fused_b, &matches.pairs[i].fused_b, sizeof(struct td_fusion));
    }
    td_matches_release(&matches);
    td_matches_release(&again);
    td_pairs_release(&pairs);
}

static void files_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    struct td_pairs pairs;
    struct td_matches none = {0};
    char path[128], expected[256];
    path_in(f, path, "missing/pairs.json");
    snprintf(expected, sizeof expected, "%s: cannot open: No such file or directory", path);
    assert_fails(td_pairs_read(&pairs, path, &error), TDBG_IO, expected);
    snprintf(expected, sizeof expected, "%s: cannot create: No such file or directory", path);
    assert_fails(td_pairs_write(&none, path, &error), TDBG_IO, expected);
    path_in(f, path, "folder");
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(expected, sizeof expected, "%s: cannot create: Is a directory", path);
    assert_fails(td_pairs_write(&none, path, &error), TDBG_IO, expected);
}

static void assert_bad(const char *text, tdbg_status status, const char *message)
{
    struct td_pairs pairs;
    struct tdbg_error error;
    assert_fails(td_pairs_parse(&pairs, "list", text, strlen(text), false, &error), status, message);
}

static void bad_lists(void **state)
{
    (void)state;
    assert_bad("{}", TDBG_CORRUPT, "list: no array \"pairs\"");
    assert_bad("[]", TDBG_CORRUPT, "list is not a JSON object");
    assert_bad("{\"version\":2,\"pairs\":[]}", TDBG_UNSUPPORTED, "list: \"version\" is not 1");
    assert_bad("{\"pairs\":[{\"a\":\"x\",\"b\":\"y\"},{\"a\":1,\"b\":\"y\"}]}", TDBG_CORRUPT,
               "list: pair 1 has no \"a\" and \"b\" that are names");
    assert_bad("{\"pairs\":[3]}", TDBG_CORRUPT, "list: pair 0 has no \"a\" and \"b\" that are names");
    assert_bad("{\"pairs\":[{\"a\":\"x\",\"b\":\"y\",\"b_part\":[3,3]}]}", TDBG_CORRUPT,
               "list: pair 0: \"b_part\" is not [which, of how many]");
}

static void a_program_answers(void **state)
{
    struct fixture *f = *state;
    struct tdbg_error error;
    struct td_pairs pairs;
    struct td_matches matches;
    /* The question is what the documentation says: an answer is made from it. */
    const char *chain =
        "program:python3 -c 'import json,sys; q=json.load(sys.stdin); print(json.dumps({\"pairs\":"
        "[{\"a\":x[\"name\"],\"b\":\"right\"} for x in q[\"a\"] if x[\"name\"]==\"left\" and "
        "x[\"shape\"]==[2,3] and x[\"dtype\"]==\"float32\" and len(q[\"b\"])==3]}))',exact";
    assert_ok(td_match_chain_program(&pairs, chain, &f->a.side, &f->b.side, &error));
    assert_int_equal(pairs.count, 1);
    struct td_match_options options = {.strategy = chain, .manual = pairs.list, .manual_count = pairs.count};
    assert_ok(td_match_sides(&matches, &f->a.side, &f->b.side, &options, NULL, &error));
    size_t program = 0, exact = 0;
    for (size_t i = 0; i < matches.count; i++) {
        program += matches.pairs[i].strategy == TD_MATCH_PROGRAM;
        exact += matches.pairs[i].strategy == TD_MATCH_EXACT;
    }
    assert_int_equal(program, 1);
    assert_int_equal(exact, 1);
    td_matches_release(&matches);
    td_pairs_release(&pairs);
    assert_ok(td_match_chain_program(&pairs, "stage,exact", &f->a.side, &f->b.side, &error));
    assert_int_equal(pairs.count, 0);
}

static void assert_program_fails(struct fixture *f, const char *command, double seconds, tdbg_status status,
                                 const char *message)
{
    struct td_pairs pairs;
    struct tdbg_error error;
    assert_fails(td_match_program(&pairs, command, &f->a.side, &f->b.side, seconds, &error), status, message);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left behind */
}

static void programs_misbehave(void **state)
{
    struct fixture *f = *state;
    assert_program_fails(f, "exit 3", 5, TDBG_IO, "matching program: exit 3: exit status 3");
    assert_program_fails(f, "kill -9 $$", 5, TDBG_IO, "matching program: kill -9 $$: killed by signal 9");
    assert_program_fails(f, "cat", 5, TDBG_CORRUPT, "matching program: cat: its answer: no array \"pairs\"");
    assert_program_fails(f, "exec >&-; sleep 60", 0.2, TDBG_LIMIT,
                         "matching program: exec >&-; sleep 60: no answer after 0.2 seconds");
    assert_program_fails(f, "sleep 60 & sleep 60", 0.2, TDBG_LIMIT,
                         "matching program: sleep 60 & sleep 60: no answer after 0.2 seconds");
    assert_program_fails(f, "yes", 30, TDBG_LIMIT, "matching program: yes: an answer of more than 64 MiB");
    assert_program_fails(
        f, "echo '{\"pairs\":'", 5, TDBG_CORRUPT,
        "matching program: echo '{\"pairs\":': its answer is not valid JSON: unexpected token near "
        "end of file");
}

/* More of a question than any pipe holds: to a program that echoes as it reads, and to one that never reads.
 */
static void long_questions(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static char names[COUNT][64];
    struct td_tensor *tensors = calloc(COUNT, sizeof *tensors);
    struct test_side s;
    struct td_pairs pairs;
    struct tdbg_error error;
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "a.rather.long.name.so.that.it.fills.the.pipe.%d", i);
        tensors[i] = float_tensor(names[i], SHAPE(2, 2, 3), NULL);
    }
    side_of_tensors(&s, tensors, COUNT);
    assert_fails(td_match_program(&pairs, "cat", &s.side, &s.side, 30, &error), TDBG_CORRUPT,
                 "matching program: cat: its answer: no array \"pairs\"");
    assert_ok(td_match_program(&pairs, "exec <&-; echo '{\"pairs\":[]}'", &s.side, &s.side, 30, &error));
    td_pairs_release(&pairs);
    side_free(&s);
    free(tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_saved_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_cannot_be, setup, teardown),
        cmocka_unit_test(bad_lists),
        cmocka_unit_test_setup_teardown(a_program_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(programs_misbehave, setup, teardown),
        cmocka_unit_test(long_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
