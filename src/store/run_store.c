/* run_store.c: opening the index of a run, and writing it; run_rows.c reads it.
 *
 * WAL with synchronous=NORMAL: a commit survives the death of the process without waiting for the disk, which
 * a model that runs must never do. The lock is the ordinary one, so that others read while it grows.
 *
 * A reader opens read-only. Where even the shared-memory file of the WAL cannot be made (a read-only medium),
 * the file is read as one that nobody changes, provided that it has no WAL.
 */
#include "store/run_connection.h"
#include "base/limits.h"
#include "store/run_schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "tdru" in ASCII: tells a run from other files of ours. */
enum { APPLICATION = 0x74647275, VERSION = 1 };

/* A writer holds the file for the length of a commit. */
enum { PATIENCE_MS = 5000 };

static const char *const queries[TD_RUN_QUERIES] = {
    [TD_RUN_ADD_FACT] = "INSERT OR REPLACE INTO fact VALUES (?1, ?2)",
    [TD_RUN_ADD_STEP] = "INSERT INTO step VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [TD_RUN_ADD_SCOPE] = "INSERT INTO scope VALUES (?1, ?2, ?3)",
    [TD_RUN_ADD_SPANS] = "INSERT INTO span_block (step, count, data) VALUES (?1, ?2, ?3)",
    [TD_RUN_ADD_TENSOR] =
        "INSERT INTO tensor VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"
        " ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
    [TD_RUN_ADD_SCALAR] = "INSERT INTO scalar (name, step, time_ns, value) VALUES (?1, ?2, ?3, ?4)",
    [TD_RUN_ADD_BLOCKS] = "INSERT INTO memory_block (step, count, data) VALUES (?1, ?2, ?3)",
    [TD_RUN_ADD_SNAPSHOT] = "INSERT INTO snapshot (name, step, time_ns) VALUES (?1, ?2, ?3)",
    [TD_RUN_ADD_NOTE] = "INSERT INTO note (time_ns, step, kind, text) VALUES (?1, ?2, ?3, ?4)",
    [TD_RUN_FACTS] = "SELECT name, value FROM fact",
    [TD_RUN_STEPS] = "SELECT ordinal, number, begin_ns, end_ns, cpu_ns, rss FROM step WHERE ordinal > ?1"
                     " ORDER BY ordinal",
    [TD_RUN_SCOPES] = "SELECT id, parent, name FROM scope WHERE id > ?1 ORDER BY id",
    [TD_RUN_SPANS] = "SELECT id, step, count, data FROM span_block WHERE id > ?1 ORDER BY id",
    [TD_RUN_TENSORS] =
        "SELECT id, step, name, scope, thread, time_ns, dtype, shape, kind, file, count, finite, nan, inf,"
        " zeros, mean, std, min, max, absmax, norm, bins FROM tensor WHERE id > ?1 ORDER BY id",
    [TD_RUN_SCALARS] = "SELECT id, name, step, time_ns, value FROM scalar WHERE id > ?1 ORDER BY id",
    [TD_RUN_BLOCKS] = "SELECT id, step, count, data FROM memory_block WHERE id > ?1 ORDER BY id",
    [TD_RUN_SNAPSHOTS] = "SELECT id, name, step, time_ns FROM snapshot WHERE id > ?1 ORDER BY id",
    [TD_RUN_NOTES] = "SELECT id, time_ns, step, kind, text FROM note WHERE id > ?1 ORDER BY id",
};

tdbg_status td_run_statement(struct td_run_store *store, enum td_run_query query, sqlite3_stmt **out,
                             struct tdbg_error *error)
{
    TD_TRY(td_sqlite_prepare(store->db, &store->statements[query], queries[query], error));
    *out = store->statements[query];
    return TDBG_OK;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static bool index_path(char *out, size_t size, const char *dir, const char *tail)
{
    int n = snprintf(out, size, "%s/" TD_RUN_INDEX "%s", dir, tail);
    return n >= 0 && (size_t)n < size;
}

bool td_run_is(const char *dir)
{
    char path[4096];
    struct stat st;
    return index_path(path, sizeof path, dir, "") && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static tdbg_status connect_to(sqlite3 **db, const char *path, int flags, struct tdbg_error *error)
{
    int code = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return td_sqlite_fail(*db, code, error);
    sqlite3_busy_timeout(*db, PATIENCE_MS);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return td_sqlite_run(
        *db, "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON", error);
}

/* Characters that mean something in a file: address are written as their number. */
static tdbg_status connect_unchanging(sqlite3 **db, const char *path, struct tdbg_error *error)
{
    char uri[3 * 4096 + 32], *at = uri + snprintf(uri, sizeof uri, "file:");
    for (const char *c = path; *c && at < uri + sizeof uri - 32; c++) {
        if (strchr("%?#", *c))
            at += snprintf(at, 4, "%%%02X", (unsigned)(unsigned char)*c);
        else
            *at++ = *c;
    }
    snprintf(at, 32, "?immutable=1");
    return connect_to(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, error);
}

static tdbg_status open_reading(struct td_run_store *store, const char *dir, struct tdbg_error *error)
{
    char path[4096], wal[4096];
    struct stat st;
    if (!index_path(path, sizeof path, dir, "") || !index_path(wal, sizeof wal, dir, "-wal"))
        return td_fail(error, TDBG_LIMIT, "path too long");
    if (stat(path, &st) != 0)
        return td_fail_errno(error, "no recorded run");
    if (st.st_size == 0)
        return td_fail(error, TDBG_IO, "nothing is recorded yet: the run has only begun");
    tdbg_status status = connect_to(&store->db, path, SQLITE_OPEN_READONLY, error);
    if (status == TDBG_OK)
        status = td_sqlite_recognise(store->db, APPLICATION, VERSION, error);
    if (status != TDBG_IO || (stat(wal, &st) == 0 && st.st_size > 0))
        return status;
    sqlite3_close(store->db);
    store->db = NULL;
    TD_TRY(connect_unchanging(&store->db, path, error));
    return td_sqlite_recognise(store->db, APPLICATION, VERSION, error);
}

static tdbg_status open_copy(struct td_run_store *store, const void *data, size_t size,
                             struct tdbg_error *error)
{
    enum { HEADER = 100, WRITE_VERSION = 18, READ_VERSION = 19 };
    if (size < HEADER || size > TD_MAX_METADATA)
        return td_fail(error, TDBG_UNSUPPORTED, "an index of %zu bytes", size);
    TD_TRY(connect_to(&store->db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, error));
    unsigned char *copy = sqlite3_malloc64(size);
    if (!copy)
        return td_fail_nomem(error);
    memcpy(copy, data, size);
    copy[WRITE_VERSION] = copy[READ_VERSION] = 1; /* a database in memory has no log: do not look for one */
    int code = sqlite3_deserialize(store->db, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                                   SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
    if (code != SQLITE_OK) /* the copy is gone, too */
        return td_sqlite_fail(store->db, code, error);
    return td_sqlite_recognise(store->db, APPLICATION, VERSION, error);
}

static tdbg_status set_fact(struct td_run_store *store, const char *name, const char *text, int64_t number,
                            struct tdbg_error *error)
{
    sqlite3_stmt *s;
    TD_TRY(td_run_statement(store, TD_RUN_ADD_FACT, &s, error));
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    if (text)
        sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(s, 2, number);
    return td_sqlite_execute(s, error);
}

/* An empty index that nobody else made: of two programs that begin at once, one gets the folder. */
static tdbg_status claim(const char *dir, struct tdbg_error *error)
{
    char path[4096];
    if (!index_path(path, sizeof path, dir, ""))
        return td_fail(error, TDBG_LIMIT, "path too long");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno == EEXIST ? td_fail(error, TDBG_MISUSE, "holds a run already")
                               : td_fail_errno(error, "cannot make the index of a run");
    close(fd);
    return TDBG_OK;
}

static void remove_index(const char *dir)
{
    static const char *const tails[] = {"-wal", "-shm", "-journal", ""};
    char path[4096];
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (index_path(path, sizeof path, dir, tails[i]))
            unlink(path);
}

/* Not in WAL before it is whole: until then the file is empty, or locked, and no reader takes it for
 * something else. Nor is the disk waited for. */
static tdbg_status create(struct td_run_store *store, const char *dir, const struct td_run_facts *facts,
                          struct tdbg_error *error)
{
    char path[4096];
    if (!index_path(path, sizeof path, dir, ""))
        return td_fail(error, TDBG_LIMIT, "path too long");
    TD_TRY(connect_to(&store->db, path, SQLITE_OPEN_READWRITE, error));
    TD_TRY(td_sqlite_run(store->db, "PRAGMA synchronous = OFF", error));
    TD_TRY(td_sqlite_create(store->db, td_run_schema, APPLICATION, VERSION, error));
    TD_TRY(td_run_begin(store, error));
    TD_TRY(set_fact(store, "program", facts->program, 0, error));
    TD_TRY(set_fact(store, "host", facts->host, 0, error));
    TD_TRY(set_fact(store, "capture", facts->capture, 0, error));
    TD_TRY(set_fact(store, "started", NULL, facts->started, error));
    TD_TRY(set_fact(store, "pid", NULL, facts->pid, error));
    TD_TRY(set_fact(store, "rank", NULL, facts->rank, error));
    TD_TRY(set_fact(store, "world", NULL, facts->world, error));
    TD_TRY(td_run_commit(store, error));
    return td_sqlite_run(store->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", error);
}

/* facts: NULL to read. */
static tdbg_status open_store(struct td_run_store **out, const char *dir, const struct td_run_facts *facts,
                              struct tdbg_error *error)
{
    struct td_run_store *store = calloc(1, sizeof *store);
    if (!store)
        return td_fail_nomem(error);
    tdbg_status status = facts ? create(store, dir, facts, error) : open_reading(store, dir, error);
    if (status != TDBG_OK) {
        td_run_store_close(&store);
        return status;
    }
    *out = store;
    return TDBG_OK;
}

tdbg_status td_run_store_open(struct td_run_store **out, const char *dir, struct tdbg_error *error)
{
    return open_store(out, dir, NULL, error);
}

tdbg_status td_run_store_open_bytes(struct td_run_store **out, const void *data, size_t size,
                                    struct tdbg_error *error)
{
    struct td_run_store *store = calloc(1, sizeof *store);
    if (!store)
        return td_fail_nomem(error);
    tdbg_status status = open_copy(store, data, size, error);
    if (status == TDBG_OK)
        *out = store;
    else
        td_run_store_close(&store);
    return status;
}

tdbg_status td_run_store_create(struct td_run_store **out, const char *dir, const struct td_run_facts *facts,
                                struct tdbg_error *error)
{
    TD_TRY(claim(dir, error));
    tdbg_status status = open_store(out, dir, facts, error);
    if (status != TDBG_OK)
        remove_index(dir); /* half an index would be taken for a run */
    return status;
}

void td_run_store_close(struct td_run_store **store)
{
    if (!*store)
        return;
    for (int i = 0; i < TD_RUN_QUERIES; i++)
        sqlite3_finalize((*store)->statements[i]);
    sqlite3_close((*store)->db);
    free((*store)->scratch);
    free(*store);
    *store = NULL;
}

/* --- writing -------------------------------------------------------------------------------------------- */

tdbg_status td_run_begin(struct td_run_store *store, struct tdbg_error *error)
{
    return td_sqlite_run(store->db, "BEGIN", error);
}

tdbg_status td_run_commit(struct td_run_store *store, struct tdbg_error *error)
{
    return td_sqlite_run(store->db, "COMMIT", error);
}

static void bind_numbers(sqlite3_stmt *s, int at, const int64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(s, at + i, values[i]);
}

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC); /* NULL binds NULL */
}

tdbg_status td_run_add_step(struct td_run_store *store, const struct td_run_step *row,
                            struct tdbg_error *error)
{
    sqlite3_stmt *s;
    TD_TRY(td_run_statement(store, TD_RUN_ADD_STEP, &s, error));
    bind_numbers(
        s, 1, (int64_t[]){row->ordinal, row->number, row->begin_ns, row->end_ns, row->cpu_ns, row->rss}, 6);
    return td_sqlite_execute(s, error);
}

tdbg_status td_run_add_scope(struct td_run_store *store, const struct td_run_scope *row,
                             struct tdbg_error *error)
{
    sqlite3_stmt *s;
    TD_TRY(td_run_statement(store, TD_RUN_ADD_SCOPE, &s, error));
    bind_numbers(s, 1, (int64_t[]){row->id, row->parent}, 2);
    bind_text(s, 3, row->name);
    return td_sqlite_execute(s, error);
}

/* "2,3". It is made for every tensor of every step, and printf took an eighth of the writer's time. */
static void print_shape(char *out, int ndim, const int64_t *shape)
{
    for (int i = 0; i < ndim; i++) {
        char digits[20];
        int count = 0;
        uint64_t left = (uint64_t)shape[i];
        do
            digits[count++] = (char)('0' + left % 10);
        while (left /= 10);
        if (i)
            *out++ = ',';
        while (count)
            *out++ = digits[--count];
    }
    *out = 0;
}

tdbg_status td_run_add_tensor(struct td_run_store *store, const struct td_run_tensor *row,
                              struct tdbg_error *error)
{
    const struct tdbg_stats *t = &row->stats;
    char shape[TDBG_MAX_DIMS * 21 + 1];
    sqlite3_stmt *s;
    TD_TRY(td_run_statement(store, TD_RUN_ADD_TENSOR, &s, error));
    print_shape(shape, row->ndim, row->shape);
    bind_numbers(s, 1, (int64_t[]){row->id, row->step}, 2);
    bind_text(s, 3, row->name);
    bind_numbers(s, 4, (int64_t[]){row->scope, row->thread, row->time_ns}, 3);
    bind_text(s, 7, row->dtype);
    bind_text(s, 8, shape);
    sqlite3_bind_int(s, 9, (int)row->kind);
    bind_text(s, 10, row->file);
    bind_numbers(s, 11,
                 (int64_t[]){(int64_t)t->count, (int64_t)t->finite, (int64_t)t->nan, (int64_t)t->inf,
                             (int64_t)t->zeros},
                 5);
    const double values[] = {t->mean, t->std, t->min, t->max, t->absmax, t->norm};
    for (int i = 0; i < 6; i++)
        sqlite3_bind_double(s, 16 + i, values[i]); /* NaN becomes NULL */
    if (row->bins)
        sqlite3_bind_blob(s, 22, row->bins, TD_SKETCH_BINS * sizeof *row->bins, SQLITE_STATIC);
    return td_sqlite_execute(s, error);
}

tdbg_status td_run_add_scalar(struct td_run_store *store, const struct td_run_scalar *row,
                              struct tdbg_error *error)
{
    sqlite3_stmt *s;
    TD_TRY(td_run_statement(store, TD_RUN_ADD_SCALAR, &s, error));
    bind_text(s, 1, row->name);
    bind_numbers(s, 2, (int64_t[]){row->step, row->time_ns}, 2);
    sqlite3_bind_double(s, 4, row->value);
    return td_sqlite_execute(s, error);
}

tdbg_status td_run_add_snapshot(struct td_run_store *store, const struct td_run_snapshot *row,
                                struct tdbg_error *error)
{
    sqlite3_stmt *s;
    TD_TRY(td_run_statement(store, TD_RUN_ADD_SNAPSHOT, &s, error));
    bind_text(s, 1, row->name);
    bind_numbers(s, 2, (int64_t[]){row->step, row->time_ns}, 2);
    return td_sqlite_execute(s, error);
}

tdbg_status td_run_add_note(struct td_run_store *store, const struct td_run_note *row,
                            struct tdbg_error *error)
{
    sqlite3_stmt *s;
    TD_TRY(td_run_statement(store, TD_RUN_ADD_NOTE, &s, error));
    bind_numbers(s, 1, (int64_t[]){row->time_ns, row->step}, 2);
    bind_text(s, 3, row->kind);
    bind_text(s, 4, row->text);
    return td_sqlite_execute(s, error);
}

static tdbg_status add_records(struct td_run_store *store, enum td_run_query query, int64_t step,
                               const void *records, size_t count, size_t size, struct tdbg_error *error)
{
    sqlite3_stmt *s;
    if (!count)
        return TDBG_OK;
    TD_TRY(td_run_statement(store, query, &s, error));
    bind_numbers(s, 1, (int64_t[]){step, (int64_t)count}, 2);
    sqlite3_bind_blob64(s, 3, records, count * size, SQLITE_STATIC);
    return td_sqlite_execute(s, error);
}

tdbg_status td_run_add_spans(struct td_run_store *store, int64_t step, const struct td_run_span *spans,
                             size_t count, struct tdbg_error *error)
{
    return add_records(store, TD_RUN_ADD_SPANS, step, spans, count, sizeof *spans, error);
}

tdbg_status td_run_add_blocks(struct td_run_store *store, int64_t step, const struct td_run_block *blocks,
                              size_t count, struct tdbg_error *error)
{
    return add_records(store, TD_RUN_ADD_BLOCKS, step, blocks, count, sizeof *blocks, error);
}

tdbg_status td_run_set_ended(struct td_run_store *store, int64_t ended_ns, struct tdbg_error *error)
{
    return set_fact(store, "ended_ns", NULL, ended_ns, error);
}

void td_run_settle(struct td_run_store *store)
{
    sqlite3_busy_timeout(store->db, 0);
    (void)!td_sqlite_run(store->db, "PRAGMA journal_mode = DELETE", NULL);
}
