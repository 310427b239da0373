/* test_archive.c: archives written by libarchive, whole and cut at every place, patched and lying. */
#include "test_support.h"

#include "io/source.h"
#include "io/zip.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>

static struct tdbg_error error;

/* --- writing -------------------------------------------------------------------------------------------- */

enum { ROOM = 1 << 20, LONG = 100000 };

struct packed {
    uint8_t *data;
    size_t size;
    struct archive *archive;
};

static uint8_t long_text[LONG]; /* compresses, but not to nothing */

static int make_text(void **state)
{
    (void)state;
    uint32_t x = 1;
    for (size_t i = 0; i < LONG; i++) {
        x = x * 1664525 + 1013904223;
        long_text[i] = (uint8_t)("tensor debugger"[(x >> 24) % 15]);
    }
    return 0;
}

static struct packed start(int (*format)(struct archive *), int (*filter)(struct archive *),
                           const char *options)
{
    struct packed p = {.data = malloc(ROOM), .archive = archive_write_new()};
    assert_int_equal(format(p.archive), ARCHIVE_OK);
    assert_int_equal(filter(p.archive), ARCHIVE_OK);
    assert_int_equal(archive_write_set_options(p.archive, options), ARCHIVE_OK);
    archive_write_set_bytes_in_last_block(p.archive, 1);
    return p;
}

static void begin(struct packed *p)
{
    assert_int_equal(archive_write_open_memory(p->archive, p->data, ROOM, &p->size), ARCHIVE_OK);
}

static void add(struct packed *p, const char *name, const void *data, size_t size)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)size);
    assert_int_equal(archive_write_header(p->archive, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(p->archive, data, size), size);
    archive_entry_free(entry);
}

static void add_link(struct packed *p, const char *name, const char *hard, const char *soft)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, soft ? AE_IFLNK : AE_IFREG);
    archive_entry_set_hardlink(entry, hard);
    if (soft)
        archive_entry_set_symlink(entry, soft);
    assert_int_equal(archive_write_header(p->archive, entry), ARCHIVE_OK);
    archive_entry_free(entry);
}

static void finish(struct packed *p)
{
    assert_int_equal(archive_write_close(p->archive), ARCHIVE_OK);
    archive_write_free(p->archive);
}

static struct packed dumps(int (*format)(struct archive *), int (*filter)(struct archive *),
                           const char *options)
{
    struct packed p = start(format, filter, options);
    begin(&p);
    add(&p, "dumps/0_query.bin", long_text, LONG);
    add(&p, "dumps/.hidden", "h", 1);
    add(&p, "__MACOSX/x", "m", 1);
    add(&p, "/dumps/1_key.bin", "key", 3);
    add(&p, "empty", "", 0);
    add(&p, "../outside", "x", 1);
    finish(&p);
    return p;
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct opened {
    struct td_bundle *outer, *bundle;
    const struct td_source *source;
};

static tdbg_status open_bytes(struct opened *o, const char *name, const void *data, size_t size,
                              struct td_job *job)
{
    *o = (struct opened){0};
    assert_ok(td_bundle_open_memory(&o->outer, name, data, size, &error));
    assert_ok(td_bundle_source(o->outer, 0, &o->source, &error));
    return td_bundle_open_archive(&o->bundle, o->source, job, &error);
}

static void close_bytes(struct opened *o)
{
    td_bundle_close(&o->bundle);
    td_bundle_close(&o->outer);
}

static void expect(struct opened *o, size_t index, const char *name, const void *data, size_t size)
{
    const struct td_source *source;
    assert_string_equal(td_bundle_name(o->bundle, index), name);
    assert_ok(td_bundle_source(o->bundle, index, &source, &error));
    assert_int_equal(source->size, size);
    if (size)
        assert_memory_equal(source->data, data, size);
}

static void expect_bad(struct opened *o, size_t index, const char *name, tdbg_status status, const char *text)
{
    const struct td_source *source;
    assert_string_equal(td_bundle_name(o->bundle, index), name);
    assert_fails(td_bundle_source(o->bundle, index, &source, &error), status, text);
}

static void expect_dumps(struct packed p)
{
    struct opened o;
    struct td_job job = {0};
    assert_ok(open_bytes(&o, "a", p.data, p.size, &job));
    assert_true(td_bundle_probe(o.source));
    assert_int_equal(td_bundle_count(o.bundle), 4);
    expect(&o, 0, "dumps/0_query.bin", long_text, LONG);
    expect(&o, 1, "dumps/1_key.bin", "key", 3);
    expect(&o, 2, "empty", "", 0);
    expect_bad(&o, 3, "../outside", TDBG_UNSUPPORTED, "its name leads out of the archive");
    assert_int_equal(job.done, job.total);
    close_bytes(&o);
    free(p.data);
}

static void every_container_is_read(void **state)
{
    (void)state;
    expect_dumps(dumps(archive_write_set_format_zip, archive_write_add_filter_none, "compression=store"));
    expect_dumps(dumps(archive_write_set_format_zip, archive_write_add_filter_none, "compression=deflate"));
    expect_dumps(dumps(archive_write_set_format_zip, archive_write_add_filter_none, "zip64"));
    expect_dumps(dumps(archive_write_set_format_ustar, archive_write_add_filter_none, ""));
    expect_dumps(dumps(archive_write_set_format_pax, archive_write_add_filter_none, ""));
    expect_dumps(dumps(archive_write_set_format_gnutar, archive_write_add_filter_none, ""));
    expect_dumps(dumps(archive_write_set_format_v7tar, archive_write_add_filter_none, ""));
    expect_dumps(dumps(archive_write_set_format_ustar, archive_write_add_filter_gzip, ""));
    expect_dumps(dumps(archive_write_set_format_ustar, archive_write_add_filter_xz, ""));
    expect_dumps(dumps(archive_write_set_format_ustar, archive_write_add_filter_zstd, ""));
    expect_dumps(dumps(archive_write_set_format_ustar, archive_write_add_filter_bzip2, ""));
}

static void stored_members_are_in_place(void **state)
{
    (void)state;
    struct packed files[] = {
        dumps(archive_write_set_format_zip, archive_write_add_filter_none, "compression=store"),
        dumps(archive_write_set_format_pax, archive_write_add_filter_none, ""),
    };
    for (size_t i = 0; i < 2; i++) {
        struct opened o;
        const struct td_source *source;
        assert_ok(open_bytes(&o, "a", files[i].data, files[i].size, NULL));
        assert_ok(td_bundle_source(o.bundle, 0, &source, &error));
        assert_true(source->data > files[i].data && source->data + LONG < files[i].data + files[i].size);
        close_bytes(&o);
        free(files[i].data);
    }
}

/* Two gzip files one after the other, of one file that is no tar, with rubbish behind them. */
static void one_packed_file_is_a_member(void **state)
{
    (void)state;
    struct packed p = start(archive_write_set_format_raw, archive_write_add_filter_gzip, "");
    begin(&p);
    add(&p, "x", long_text, LONG);
    finish(&p);
    uint8_t *twice = malloc(2 * p.size + 7), *joined = malloc(2 * LONG);
    memcpy(twice, p.data, p.size);
    memcpy(twice + p.size, p.data, p.size);
    memcpy(twice + 2 * p.size, "rubbish", 7);
    memcpy(joined, long_text, LONG);
    memcpy(joined + LONG, long_text, LONG);
    struct opened o;
    assert_ok(open_bytes(&o, "run/3_query.npy.gz", twice, 2 * p.size + 7, NULL));
    assert_int_equal(td_bundle_count(o.bundle), 1);
    expect(&o, 0, "3_query.npy", joined, 2 * LONG);
    close_bytes(&o);

    assert_ok(open_bytes(&o, "a.GZ", p.data, p.size - 1, NULL));
    expect_bad(&o, 0, "a", TDBG_CORRUPT, "the compressed stream is cut short");
    close_bytes(&o);

    p.data[p.size - 6] ^= 1; /* the CRC */
    assert_fails(open_bytes(&o, "a.gz", p.data, p.size, NULL), TDBG_CORRUPT,
                 "gzip: the checksum is wrong: the content is damaged");
    close_bytes(&o);
    free(joined);
    free(twice);
    free(p.data);
}

/* --- cut short ------------------------------------------------------------------------------------------ */

/* Whatever is listed reads as it was written or says why not; a loss is always told. */
static void check_cut(const struct packed *p, size_t size)
{
    struct opened o;
    uint8_t *cut = malloc(size + 1); /* of its own, so that ASan sees a read past it */
    memcpy(cut, p->data, size);
    if (open_bytes(&o, "a", cut, size, NULL) == TDBG_OK) {
        bool told = false;
        for (size_t i = 0; i < td_bundle_count(o.bundle); i++) {
            const struct td_source *source;
            if (td_bundle_source(o.bundle, i, &source, &error) != TDBG_OK)
                told = true;
            else if (strcmp(source->name, "dumps/0_query.bin") == 0)
                assert_true(source->size == LONG && !memcmp(source->data, long_text, LONG));
            else if (strcmp(source->name, "dumps/1_key.bin") == 0)
                assert_true(source->size == 3 && !memcmp(source->data, "key", 3));
            else
                assert_int_equal(source->size, 0);
        }
        assert_true(told);
    }
    close_bytes(&o);
    free(cut);
}

static void cut_at_every_64th_byte(void **state)
{
    (void)state;
    struct packed files[] = {
        dumps(archive_write_set_format_zip, archive_write_add_filter_none, "compression=store"),
        dumps(archive_write_set_format_zip, archive_write_add_filter_none, "compression=deflate"),
        dumps(archive_write_set_format_pax, archive_write_add_filter_none, ""),
        dumps(archive_write_set_format_ustar, archive_write_add_filter_gzip, ""),
        dumps(archive_write_set_format_ustar, archive_write_add_filter_xz, ""),
        dumps(archive_write_set_format_ustar, archive_write_add_filter_zstd, ""),
        dumps(archive_write_set_format_ustar, archive_write_add_filter_bzip2, ""),
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        /* The two zero blocks that end a tar may be cut in half: nothing is lost by that. */
        size_t whole = i == 2 ? files[i].size - 1024 : files[i].size - 1;
        for (size_t size = 0; size < whole; size += quick() ? 509 : 64)
            check_cut(&files[i], size);
        free(files[i].data);
    }
}

static void what_is_whole_before_the_cut_is_kept(void **state)
{
    (void)state;
    struct packed p = start(archive_write_set_format_ustar, archive_write_add_filter_gzip, "");
    begin(&p);
    add(&p, "first", long_text, LONG);
    add(&p, "second", long_text, LONG);
    finish(&p);
    struct opened o;
    assert_ok(open_bytes(&o, "a", p.data, p.size - p.size / 4, NULL));
    assert_int_equal(td_bundle_count(o.bundle), 3);
    expect(&o, 0, "first", long_text, LONG);
    expect_bad(&o, 1, "second", TDBG_CORRUPT, "tar: cut short in the middle of this file");
    expect_bad(&o, 2, "(end of archive)", TDBG_CORRUPT,
               "the archive is cut short or damaged: what came after is missing");
    close_bytes(&o);
    free(p.data);
}

/* --- tar ------------------------------------------------------------------------------------------------ */

static void links_and_doubles_in_a_tar(void **state)
{
    (void)state;
    struct packed p = start(archive_write_set_format_pax, archive_write_add_filter_none, "");
    begin(&p);
    add(&p, "d/a", "old", 3);
    add_link(&p, "d/hard", "d/a", NULL);
    add_link(&p, "d/soft", NULL, "a");
    add_link(&p, "d/out", NULL, "/etc/passwd");
    add_link(&p, "d/up", NULL, "../d/a");
    add_link(&p, "d/none", "d/nothing", NULL);
    add_link(&p, "d/self", NULL, "self");
    add(&p, "d/a", "newer", 5);
    finish(&p);
    struct opened o;
    const char *nowhere = "a link to something that is no file of the archive";
    assert_ok(open_bytes(&o, "a", p.data, p.size, NULL));
    assert_int_equal(td_bundle_count(o.bundle), 8);
    expect_bad(&o, 0, "d/a", TDBG_UNSUPPORTED, "replaced by a later member of the same name");
    expect(&o, 1, "d/hard", "newer", 5);
    expect(&o, 2, "d/soft", "newer", 5);
    expect_bad(&o, 3, "d/out", TDBG_UNSUPPORTED, nowhere);
    expect_bad(&o, 4, "d/up", TDBG_UNSUPPORTED, nowhere);
    expect_bad(&o, 5, "d/none", TDBG_UNSUPPORTED, nowhere);
    expect_bad(&o, 6, "d/self", TDBG_UNSUPPORTED, nowhere);
    expect(&o, 7, "d/a", "newer", 5);

    const struct td_source *soft, *sibling;
    assert_ok(td_bundle_source(o.bundle, 2, &soft, &error));
    assert_ok(td_source_sibling(soft, "a", &sibling, &error));
    assert_memory_equal(sibling->data, "newer", 5);
    close_bytes(&o);
    free(p.data);
}

/* --- zip ------------------------------------------------------------------------------------------------ */

/* Finds a member's record in the central directory. */
static uint8_t *directory_record(struct packed *p, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i + 46 + length <= p->size; i++)
        if (!memcmp(p->data + i, "PK\1\2", 4) && !memcmp(p->data + i + 46, name, length))
            return p->data + i;
    fail();
    return NULL;
}

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static struct packed two_members(const char *compression)
{
    struct packed p = start(archive_write_set_format_zip, archive_write_add_filter_none, compression);
    begin(&p);
    add(&p, "a", long_text, LONG);
    add(&p, "b", long_text, LONG / 2);
    finish(&p);
    return p;
}

/* libarchive leaves sizes to the data descriptor, so that the directory is believed: patch it there. */
static void lies_in_a_zip_directory(void **state)
{
    (void)state;
    struct opened o;
    struct packed p = two_members("compression=deflate");
    put32(directory_record(&p, "a") + 24, LONG - 1);
    put32(directory_record(&p, "b") + 24, LONG / 2 + 1);
    assert_ok(open_bytes(&o, "z", p.data, p.size, NULL));
    expect_bad(&o, 0, "a", TDBG_CORRUPT, "zip: the member unpacks to more than its size");
    expect_bad(&o, 1, "b", TDBG_CORRUPT, "zip: the member unpacks to less than its size");
    close_bytes(&o);

    put32(directory_record(&p, "a") + 24, UINT32_MAX - 1);
    put32(directory_record(&p, "b") + 24, LONG / 2);
    directory_record(&p, "b")[16] ^= 1;
    assert_ok(open_bytes(&o, "z", p.data, p.size, NULL));
    const struct td_source *source;
    assert_int_equal(td_bundle_source(o.bundle, 0, &source, &error), TDBG_LIMIT);
    assert_non_null(strstr(error.message, "zip: claims 4294967294 bytes from "));
    expect_bad(&o, 1, "b", TDBG_CORRUPT, "zip: the member's CRC is wrong");
    close_bytes(&o);

    directory_record(&p, "a")[10] = 12;
    directory_record(&p, "b")[8] |= 1;
    assert_ok(open_bytes(&o, "z", p.data, p.size, NULL));
    expect_bad(&o, 0, "a", TDBG_UNSUPPORTED,
               "zip: packed by a method tdbg does not read (neither stored nor deflated)");
    expect_bad(&o, 1, "b", TDBG_UNSUPPORTED, "zip: encrypted");
    close_bytes(&o);
    free(p.data);

    p = two_members("compression=store");
    put32(directory_record(&p, "a") + 20, 0x7fffffff);
    put32(directory_record(&p, "a") + 24, 0x7fffffff);
    put32(directory_record(&p, "b") + 24, 5);
    assert_ok(open_bytes(&o, "z", p.data, p.size, NULL));
    expect_bad(&o, 0, "a", TDBG_CORRUPT, "zip: its data runs into the directory");
    expect_bad(&o, 1, "b", TDBG_CORRUPT, "zip: stored, yet of two sizes");
    close_bytes(&o);
    free(p.data);
}

/* Extra data that says it goes on beyond its own end is not looked into; the member does not need it. */
static void extra_data_that_does_not_end(void **state)
{
    (void)state;
    struct opened o;
    struct packed p = two_members("compression=deflate");
    uint8_t *a = directory_record(&p, "a");
    assert_true(a[30] | a[31]); /* libarchive writes times there */
    a[46 + 1 + 2] = a[46 + 1 + 3] = 0xff;
    assert_ok(open_bytes(&o, "z", p.data, p.size, NULL));
    expect(&o, 0, "a", long_text, LONG);
    close_bytes(&o);
    free(p.data);
}

/* A bomb's trick: members that share packed bytes. */
static void overlapping_members_are_refused(void **state)
{
    (void)state;
    struct opened o;
    struct packed p = two_members("compression=deflate");
    uint8_t *a = directory_record(&p, "a");
    put32(a + 20, get32(a + 20) + 200); /* beyond the header of b */
    assert_ok(open_bytes(&o, "z", p.data, p.size, NULL));
    expect(&o, 0, "a", long_text, LONG);
    expect_bad(&o, 1, "b", TDBG_CORRUPT, "zip: its data overlaps that of another member");
    close_bytes(&o);
    free(p.data);
}

static void second_members_of_a_name_are_refused(void **state)
{
    (void)state;
    struct packed p = start(archive_write_set_format_zip, archive_write_add_filter_none, "");
    begin(&p);
    add(&p, "a", "first", 5);
    add(&p, "b", "bee", 3);
    add(&p, "a", "second", 6);
    finish(&p);
    struct opened o;
    assert_ok(open_bytes(&o, "z", p.data, p.size, NULL));
    expect(&o, 0, "a", "first", 5);
    expect_bad(&o, 2, "a", TDBG_CORRUPT, "zip: a second member of that name");
    close_bytes(&o);

    struct td_zip zip;
    assert_ok(td_zip_open(&zip, p.data, p.size, &error));
    assert_ptr_equal(td_zip_find(&zip, "a"), &zip.members[0]);
    assert_ptr_equal(td_zip_find(&zip, "b"), &zip.members[1]);
    assert_null(td_zip_find(&zip, "c"));
    assert_null(td_zip_find(&zip, ""));
    td_zip_release(&zip);
    free(p.data);
}

/* --- bombs and stops ------------------------------------------------------------------------------------ */

static struct packed zeros(int (*filter)(struct archive *), size_t size)
{
    struct packed p = start(archive_write_set_format_raw, filter, "");
    begin(&p);
    void *data = calloc(1, size);
    add(&p, "x", data, size);
    free(data);
    finish(&p);
    return p;
}

static void bombs_stop_at_the_budget(void **state)
{
    (void)state;
    int (*filters[])(struct archive *) = {archive_write_add_filter_gzip, archive_write_add_filter_xz,
                                          archive_write_add_filter_zstd, archive_write_add_filter_bzip2};
    for (size_t i = 0; i < 4; i++) {
        struct packed p = zeros(filters[i], 20 << 20);
        struct opened o;
        setenv("TDBG_MAX_UNPACK", "10000000", 1);
        assert_fails(open_bytes(&o, "a", p.data, p.size, NULL), TDBG_LIMIT,
                     "unpacks to more than 10000000 bytes (TDBG_MAX_UNPACK sets the limit)");
        unsetenv("TDBG_MAX_UNPACK");
        close_bytes(&o);
        free(p.data);
    }
}

/* The budget is one for the whole nest: two inner archives of 6 MB do not fit into 10 MB. */
static void nested_archives_share_the_budget(void **state)
{
    (void)state;
    struct packed inner = zeros(archive_write_add_filter_gzip, 6000000);
    struct packed p = start(archive_write_set_format_ustar, archive_write_add_filter_none, "");
    begin(&p);
    add(&p, "1.gz", inner.data, inner.size);
    add(&p, "2.gz", inner.data, inner.size);
    finish(&p);
    struct opened o;
    struct td_bundle *first, *second = NULL;
    const struct td_source *source;
    setenv("TDBG_MAX_UNPACK", "10000000", 1);
    assert_ok(open_bytes(&o, "a", p.data, p.size, NULL));
    unsetenv("TDBG_MAX_UNPACK");
    assert_ok(td_bundle_source(o.bundle, 0, &source, &error));
    assert_ok(td_bundle_open_archive(&first, source, NULL, &error));
    assert_ok(td_bundle_source(o.bundle, 1, &source, &error));
    assert_int_equal(td_bundle_open_archive(&second, source, NULL, &error), TDBG_LIMIT);
    td_bundle_close(&first); /* what it used comes back */
    assert_ok(td_bundle_open_archive(&second, source, NULL, &error));
    td_bundle_close(&second);
    close_bytes(&o);
    free(inner.data);
    free(p.data);
}

static void cancelled_while_unpacking(void **state)
{
    (void)state;
    struct packed p = zeros(archive_write_add_filter_gzip, 20 << 20);
    struct opened o;
    struct td_job job = {.cancelled = true};
    assert_fails(open_bytes(&o, "a", p.data, p.size, &job), TDBG_CANCELLED, "cancelled");
    close_bytes(&o);
    free(p.data);
}

static void what_is_no_archive(void **state)
{
    (void)state;
    static const uint8_t zero[2048];
    struct opened o;
    assert_fails(open_bytes(&o, "a", zero, sizeof zero, NULL), TDBG_UNSUPPORTED, "not an archive");
    assert_false(td_bundle_probe(o.source));
    close_bytes(&o);
    assert_fails(open_bytes(&o, "a", NULL, 0, NULL), TDBG_UNSUPPORTED, "not an archive");
    close_bytes(&o);
    assert_fails(open_bytes(&o, "a", "PK\3\4 and nothing else but text", 31, NULL), TDBG_CORRUPT,
                 "zip: no directory at the end: cut short or not a zip");
    close_bytes(&o);
    assert_fails(open_bytes(&o, "a", "\x1f\x8b\x08\0\0\0\0\0\0\3\7 rubbish", 19, NULL), TDBG_CORRUPT,
                 "gzip: the stream is damaged");
    close_bytes(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_container_is_read),
        cmocka_unit_test(stored_members_are_in_place),
        cmocka_unit_test(one_packed_file_is_a_member),
        cmocka_unit_test(cut_at_every_64th_byte),
        cmocka_unit_test(what_is_whole_before_the_cut_is_kept),
        cmocka_unit_test(links_and_doubles_in_a_tar),
        cmocka_unit_test(lies_in_a_zip_directory),
        cmocka_unit_test(extra_data_that_does_not_end),
        cmocka_unit_test(overlapping_members_are_refused),
        cmocka_unit_test(second_members_of_a_name_are_refused),
        cmocka_unit_test(bombs_stop_at_the_budget),
        cmocka_unit_test(nested_archives_share_the_budget),
        cmocka_unit_test(cancelled_while_unpacking),
        cmocka_unit_test(what_is_no_archive),
    };
    return cmocka_run_group_tests_name("archive", tests, make_text, NULL);
}
