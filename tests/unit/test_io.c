/* test_io.c: mappings that shrink, folders with everything in them, siblings, the spill. */
#include "test_support.h"

#include "base/limits.h"
#include "io/map.h"
#include "io/path.h"
#include "io/source.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tdbg_error error;

/* --- a folder of the test's own ------------------------------------------------------------------------- */

static int make_folder(void **state)
{
    char *folder = strdup("/tmp/tdbg-test-XXXXXX");
    *state = folder;
    return folder && mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    free(*state);
    return system(command);
}

static const char *path_in(void **state, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
    return path;
}

static void write_file(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

static void write_text(void **state, const char *name, const char *text)
{
    write_file(path_in(state, name), text, strlen(text));
}

/* --- map ------------------------------------------------------------------------------------------------ */

static void shrinking_file_reads_as_zeros(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 16 * page;
    uint8_t *bytes = malloc(size);
    memset(bytes, 7, size);
    char path[512];
    snprintf(path, sizeof path, "%s", path_in(state, "shrinks"));
    write_file(path, bytes, size);
    write_file(path_in(state, "stays"), bytes, size);
    free(bytes);

    struct td_map map, other;
    assert_ok(td_map_open(&map, path, &error));
    assert_ok(td_map_open(&other, path_in(state, "stays"), &error));
    assert_int_equal(map.data[size - 1], 7);
    assert_int_equal(truncate(path, (off_t)(4 * page)), 0);
    assert_false(td_map_shrunk(map.data));
    assert_int_equal(map.data[3 * page], 7);
    assert_int_equal(map.data[4 * page], 0);
    assert_int_equal(map.data[size - 1], 0);
    assert_true(td_map_shrunk(map.data));
    assert_true(td_map_shrunk(map.data + size - 1));
    assert_false(td_map_shrunk(other.data));
    td_map_close(&map);

    /* The slot is clean for whoever comes next. */
    assert_ok(td_map_open(&map, path, &error));
    assert_false(td_map_shrunk(map.data));
    td_map_close(&map);
    td_map_close(&other);
}

/* In a program of its own (see main), for cmocka has a SIGBUS handler too. */
static void foreign_faults_go_to_the_previous_handler(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_io", "--foreign-fault", NULL);
        _exit(3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void exit_42(int number)
{
    (void)number;
    _exit(42);
}

static int foreign_fault(void)
{
    signal(SIGBUS, exit_42);
    struct td_map map; /* installs the guard */
    if (td_map_open(&map, "/proc/self/exe", &error) != TDBG_OK)
        return 4;
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    volatile char *alien = mmap(NULL, 1 << 16, PROT_READ, MAP_SHARED, fd, 0);
    return alien[0] ? 5 : 6;
}

static void many_mappings(void **state)
{
    enum { COUNT = 5000 };
    write_text(state, "small", "hello");
    struct td_map *maps = calloc(COUNT, sizeof *maps);
    for (size_t i = 0; i < COUNT; i++)
        assert_ok(td_map_open(&maps[i], path_in(state, "small"), &error));
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(maps[i].data[4], 'o');
        td_map_close(&maps[i]);
    }
    free(maps);
}

static void only_regular_files_are_mapped(void **state)
{
    struct td_map map;
    assert_fails(td_map_open(&map, path_in(state, "none"), &error), TDBG_IO,
                 "cannot open: No such file or directory");
    assert_fails(td_map_open(&map, "/dev/zero", &error), TDBG_IO, "not a regular file");
    assert_int_equal(mkfifo(path_in(state, "fifo"), 0600), 0);
    assert_fails(td_map_open(&map, path_in(state, "fifo"), &error), TDBG_IO, "not a regular file");
    write_text(state, "empty", "");
    assert_ok(td_map_open(&map, path_in(state, "empty"), &error));
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    td_map_close(&map);
}

/* --- names ---------------------------------------------------------------------------------------------- */

static void names_sort_naturally(void **state)
{
    (void)state;
    static const char *const sorted[] = {"",       "0_key", "2_a", "02_b", "10_a", "10_a1", "10_a01",
                                         "10_a02", "a",     "a/b", "b9",   "b10",  "b010"};
    const size_t count = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            int order = td_path_compare(sorted[i], sorted[j]);
            /* Equal numbers of different lengths: only that the order is total matters. */
            if (strstr("10_a01 b010", sorted[i]) || strstr("10_a01 b010", sorted[j]))
                assert_int_equal(order > 0, td_path_compare(sorted[j], sorted[i]) < 0);
            else
                assert_int_equal(order < 0 ? -1 : order > 0, i < j ? -1 : i > j);
        }
}

static void names_are_cleaned(void **state)
{
    (void)state;
    struct td_arena arena;
    td_arena_init(&arena, 1 << 20);
    assert_string_equal(td_path_clean(&arena, "/etc/passwd", 11), "etc/passwd");
    assert_string_equal(td_path_clean(&arena, "././a", 5), "a");
    assert_string_equal(td_path_clean(&arena, "w\\x\0y", 5), "w/x?y");
    assert_string_equal(td_path_clean(&arena, "a\n\xff", 3), "a??");
    assert_true(td_path_hidden("a/.b/c"));
    assert_true(td_path_hidden("__MACOSX/c"));
    assert_false(td_path_hidden("../a/b.c"));
    assert_false(td_path_is_inner("../x"));
    assert_false(td_path_is_inner("a/../x"));
    assert_false(td_path_is_inner("/x"));
    assert_false(td_path_is_inner(""));
    assert_true(td_path_is_inner("a/..b"));
    assert_string_equal(td_path_beside(&arena, "d/e/f", "./g/h"), "d/e/g/h");
    assert_string_equal(td_path_beside(&arena, "f", "g"), "g");
    td_arena_release(&arena);
}

/* --- folders -------------------------------------------------------------------------------------------- */

static void fill_folder(void **state)
{
    mkdir(path_in(state, "sub"), 0700);
    mkdir(path_in(state, ".git"), 0700);
    mkdir(path_in(state, "__MACOSX"), 0700);
    write_text(state, ".git/x", "hidden");
    write_text(state, "__MACOSX/y", "hidden");
    write_text(state, ".DS_Store", "hidden");
    write_text(state, "10_a", "ten");
    write_text(state, "2_a", "two");
    write_text(state, "sub/b", "bee");
    write_text(state, "bad\xff", "latin");
    assert_int_equal(mkfifo(path_in(state, "pipe"), 0600), 0);
    assert_int_equal(symlink("..", path_in(state, "sub/up")), 0);
    assert_int_equal(symlink("nowhere", path_in(state, "dangling")), 0);
    assert_int_equal(symlink("2_a", path_in(state, "link")), 0);
}

static void folders_list_what_is_in_them(void **state)
{
    fill_folder(state);
    static const struct {
        const char *name, *text, *reason;
    } expected[] = {
        {"2_a", "two", NULL},    {"10_a", "ten", NULL},
        {"bad?", "latin", NULL}, {"dangling", NULL, "a link to nothing"},
        {"link", "two", NULL},   {"pipe", NULL, "a FIFO, not a file"},
        {"sub/b", "bee", NULL},  {"sub/up", NULL, "a link back to a folder it is in"},
    };
    struct td_bundle *bundle;
    assert_ok(td_bundle_open(&bundle, path_in(state, "/"), NULL, &error));
    assert_false(td_bundle_is_plain_file(bundle));
    assert_int_equal(td_bundle_count(bundle), sizeof expected / sizeof *expected);
    for (size_t i = 0; i < td_bundle_count(bundle); i++) {
        const struct td_source *source, *again;
        assert_string_equal(td_bundle_name(bundle, i), expected[i].name);
        if (expected[i].reason) {
            assert_fails(td_bundle_source(bundle, i, &source, &error), TDBG_IO, expected[i].reason);
            continue;
        }
        assert_ok(td_bundle_source(bundle, i, &source, &error));
        assert_int_equal(source->size, strlen(expected[i].text));
        assert_memory_equal(source->data, expected[i].text, source->size);
        assert_string_equal(source->name, expected[i].name);
        assert_ok(td_bundle_source(bundle, i, &again, &error));
        assert_ptr_equal(source, again);
    }
    td_bundle_close(&bundle);
    assert_null(bundle);
}

static void a_file_removed_after_listing_is_an_error_of_its_own(void **state)
{
    write_text(state, "a", "a");
    write_text(state, "b", "b");
    struct td_bundle *bundle;
    const struct td_source *source;
    assert_ok(td_bundle_open(&bundle, *state, NULL, &error));
    unlink(path_in(state, "a"));
    assert_fails(td_bundle_source(bundle, 0, &source, &error), TDBG_IO,
                 "cannot open: No such file or directory");
    assert_ok(td_bundle_source(bundle, 1, &source, &error));
    td_bundle_close(&bundle);
}

static void folders_nested_too_deep_are_reported(void **state)
{
    char path[1024];
    size_t at = (size_t)snprintf(path, sizeof path, "%s", (const char *)*state);
    for (int i = 0; i < TD_MAX_FOLDER_DEPTH + 2; i++) {
        at += (size_t)snprintf(path + at, sizeof path - at, "/d");
        assert_int_equal(mkdir(path, 0700), 0);
    }
    struct td_bundle *bundle;
    const struct td_source *source;
    assert_ok(td_bundle_open(&bundle, *state, NULL, &error));
    assert_int_equal(td_bundle_count(bundle), 1);
    assert_fails(td_bundle_source(bundle, 0, &source, &error), TDBG_IO, "nested too deep");
    td_bundle_close(&bundle);
}

static void cancelled_before_it_began(void **state)
{
    struct td_bundle *bundle = NULL;
    struct td_job job = {.cancelled = true};
    assert_fails(td_bundle_open(&bundle, *state, &job, &error), TDBG_CANCELLED, "cancelled");
    assert_null(bundle);
}

static void siblings_are_found_beside(void **state)
{
    mkdir(path_in(state, "sub"), 0700);
    write_text(state, "index", "index");
    write_text(state, "sub/index", "inner");
    write_text(state, "shard", "outer shard");
    write_text(state, "sub/shard", "inner shard");
    struct td_bundle *plain, *folder;
    const struct td_source *index, *shard, *again;

    assert_ok(td_bundle_open(&plain, path_in(state, "index"), NULL, &error));
    assert_true(td_bundle_is_plain_file(plain));
    assert_ok(td_bundle_source(plain, 0, &index, &error));
    assert_string_equal(index->name, "index");
    assert_ok(td_source_sibling(index, "shard", &shard, &error));
    assert_memory_equal(shard->data, "outer shard", shard->size);
    assert_ok(td_source_sibling(index, "./shard", &again, &error));
    assert_ptr_equal(shard, again);
    assert_ok(td_source_sibling(index, "sub/shard", &shard, &error));
    assert_memory_equal(shard->data, "inner shard", shard->size);
    assert_int_equal(td_bundle_count(plain), 1);
    assert_fails(td_source_sibling(index, "../index", &shard, &error), TDBG_UNSUPPORTED,
                 "refers to a file outside its folder");
    assert_fails(td_source_sibling(index, "/etc/passwd", &shard, &error), TDBG_UNSUPPORTED,
                 "refers to a file outside its folder");
    assert_fails(td_source_sibling(index, "none", &shard, &error), TDBG_IO,
                 "cannot open: No such file or directory");
    td_bundle_close(&plain);

    assert_ok(td_bundle_open(&folder, *state, NULL, &error));
    assert_string_equal(td_bundle_name(folder, 2), "sub/index");
    assert_ok(td_bundle_source(folder, 2, &index, &error));
    assert_ok(td_source_sibling(index, "shard", &shard, &error));
    assert_string_equal(shard->name, "sub/shard");
    assert_fails(td_source_sibling(index, "none", &shard, &error), TDBG_NOTFOUND, "not there");
    td_bundle_close(&folder);
}

/* --- scratch -------------------------------------------------------------------------------------------- */

static void scratch_is_zeroed_aligned_and_writable(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1 << 20, 3 << 20, 7, 100000};
    struct td_bundle *bundle;
    assert_ok(td_bundle_open_memory(&bundle, "m", "x", 1, &error));
    uint8_t *blocks[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block;
        assert_ok(td_bundle_scratch(bundle, sizes[i], &block, &error));
        blocks[i] = block;
        assert_int_equal((uintptr_t)block % 64, 0);
        assert_true(sizes[i] < 2 || (blocks[i][0] == 0 && !memcmp(block, blocks[i] + 1, sizes[i] - 1)));
        if (sizes[i])
            memset(block, (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i]) {
            assert_int_equal(blocks[i][0], i + 1);
            assert_int_equal(blocks[i][sizes[i] - 1], i + 1);
        }
    td_bundle_close(&bundle);
}

static void scratch_has_a_budget(void **state)
{
    (void)state;
    struct td_bundle *bundle;
    void *block;
    setenv("TDBG_MAX_UNPACK", "1000000", 1);
    assert_ok(td_bundle_open_memory(&bundle, "m", "x", 1, &error));
    unsetenv("TDBG_MAX_UNPACK");
    assert_ok(td_bundle_scratch(bundle, 600000, &block, &error));
    const char *text = "unpacks to more than 1000000 bytes (TDBG_MAX_UNPACK sets the limit)";
    assert_fails(td_bundle_scratch(bundle, 600000, &block, &error), TDBG_LIMIT, text);
    assert_fails(td_bundle_scratch(bundle, SIZE_MAX - 64, &block, &error), TDBG_LIMIT, text);
    assert_ok(td_bundle_scratch(bundle, 300000, &block, &error));
    td_bundle_close(&bundle);
}

static void no_place_to_unpack_is_said(void **state)
{
    (void)state;
    struct td_bundle *bundle;
    void *block;
    struct rlimit before, small = {.rlim_cur = 8 << 20}; /* stands in for a small disk */
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    setenv("TMPDIR", "/tmp", 1);
    assert_ok(td_bundle_open_memory(&bundle, "m", "x", 1, &error));
    tdbg_status status = td_bundle_scratch(bundle, 9 << 20, &block, &error);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_fails(status, TDBG_IO, "no space for unpacking in /tmp: set TMPDIR to a larger place");
    assert_ok(td_bundle_scratch(bundle, 9 << 20, &block, &error));
    td_bundle_close(&bundle);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--foreign-fault") == 0)
        return foreign_fault();
#define TEST_IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        /* First: the guard must be installed after cmocka's own handlers. */
        TEST_IN_FOLDER(shrinking_file_reads_as_zeros),
        cmocka_unit_test(foreign_faults_go_to_the_previous_handler),
        TEST_IN_FOLDER(many_mappings),
        TEST_IN_FOLDER(only_regular_files_are_mapped),
        cmocka_unit_test(names_sort_naturally),
        cmocka_unit_test(names_are_cleaned),
        TEST_IN_FOLDER(folders_list_what_is_in_them),
        TEST_IN_FOLDER(a_file_removed_after_listing_is_an_error_of_its_own),
        TEST_IN_FOLDER(folders_nested_too_deep_are_reported),
        TEST_IN_FOLDER(cancelled_before_it_began),
        TEST_IN_FOLDER(siblings_are_found_beside),
        cmocka_unit_test(scratch_is_zeroed_aligned_and_writable),
        cmocka_unit_test(scratch_has_a_budget),
        cmocka_unit_test(no_place_to_unpack_is_said),
    };
    return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
