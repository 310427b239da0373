/* connection.c: see connection.h.
 *
 * WAL with synchronous=FULL: each commit is synced. NORMAL would survive a killed process as well, but may
 * forget the last commits when the machine loses power, and what we reported as saved must be there. There
 * are a few commits for each comparison, so the price is milliseconds.
 *
 * The lock on the file is exclusive: two servers in one data folder would sweep away each other's uploads.
 * It also keeps the index of the WAL in memory, where a full disk cannot hurt it.
 */
#include "store/connection.h"

#include "store/schema.h"

#include <errno.h>
#include <stdlib.h>

/* "tdbg" in ASCII: tells our files from those of other programs. */
enum { APPLICATION = 0x74646267, VERSION = 1 };

/* A server that was just told to stop may still hold the file for a moment. */
enum { PATIENCE_MS = 2000 };

static const char *const queries[TD_QUERIES] = {
    [TD_QUERY_BEGIN] = "BEGIN IMMEDIATE",
    [TD_QUERY_COMMIT] = "COMMIT",
    [TD_QUERY_ROLLBACK] = "ROLLBACK",
    [TD_QUERY_ADD_UPLOAD] =
        "INSERT INTO upload (id, name, sha256, bytes, created) VALUES (?1, ?2, ?3, ?4, ?5)",
    [TD_QUERY_REMOVE_UPLOAD] = "DELETE FROM upload WHERE id = ?1",
    [TD_QUERY_UPLOADS] = "SELECT id, name, sha256, bytes, created FROM upload ORDER BY created, id",
    [TD_QUERY_PUT_COMPARISON] =
        "INSERT INTO comparison (id, title, session, status, error, settings, summary, created,"
        " a_name, a_path, a_upload, a_stamp, b_name, b_path, b_upload, b_stamp)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
        " ON CONFLICT (id) DO UPDATE SET title = excluded.title, session = excluded.session,"
        " status = excluded.status, error = excluded.error, settings = excluded.settings,"
        " summary = excluded.summary, created = excluded.created,"
        " a_name = excluded.a_name, a_path = excluded.a_path, a_upload = excluded.a_upload,"
        " a_stamp = excluded.a_stamp, b_name = excluded.b_name, b_path = excluded.b_path,"
        " b_upload = excluded.b_upload, b_stamp = excluded.b_stamp",
    [TD_QUERY_PUT_RESULT] = "INSERT OR REPLACE INTO result (comparison, document)"
                            " SELECT number, ?2 FROM comparison WHERE id = ?1",
    [TD_QUERY_REMOVE_COMPARISON] = "DELETE FROM comparison WHERE id = ?1",
    [TD_QUERY_COMPARISONS] = "SELECT id, title, session, status, error, settings, summary, created,"
                             " a_name, a_path, a_upload, a_stamp, b_name, b_path, b_upload, b_stamp"
                             " FROM comparison ORDER BY number DESC",
    [TD_QUERY_RESULT] = "SELECT document FROM result JOIN comparison ON comparison = number WHERE id = ?1",
    [TD_QUERY_NOTE] = "SELECT coalesce(document, x'7b7d') FROM comparison"
                      " LEFT JOIN note ON comparison = number WHERE id = ?1",
    [TD_QUERY_PUT_NOTE] = "INSERT OR REPLACE INTO note (comparison, document)"
                          " SELECT number, ?2 FROM comparison WHERE id = ?1",
};

tdbg_status td_store_fail(struct td_store *store, int code, struct tdbg_error *error)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return td_fail_nomem(error);
    case SQLITE_FULL:
        return td_fail(error, TDBG_IO, "no space left");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return td_fail(error, TDBG_IO, "in use by another tdbg");
    case SQLITE_NOTADB:
        return td_fail(error, TDBG_CORRUPT, "not a file of tdbg's");
    case SQLITE_CORRUPT:
        return td_fail(error, TDBG_CORRUPT, "damaged: %s", sqlite3_errmsg(store->db));
    case SQLITE_CONSTRAINT:
        return td_fail(error, TDBG_MISMATCH, "contradicts what is stored: %s", sqlite3_errmsg(store->db));
    case SQLITE_TOOBIG:
        return td_fail(error, TDBG_LIMIT, "too large to be stored");
    default:
        break;
    }
    int number = store->db ? sqlite3_system_errno(store->db) : 0;
    if (number == ENOSPC || number == EDQUOT)
        return td_fail(error, TDBG_IO, "no space left");
    errno = number;
    return number ? td_fail_errno(error, sqlite3_errstr(code & 0xff))
                  : td_fail(error, TDBG_IO, "%s", sqlite3_errstr(code));
}

tdbg_status td_statement(struct td_store *store, enum td_query query, sqlite3_stmt **out,
                         struct tdbg_error *error)
{
    sqlite3_stmt **kept = &store->statements[query];
    int code = *kept
                   ? SQLITE_OK
                   : sqlite3_prepare_v3(store->db, queries[query], -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
    if (code != SQLITE_OK)
        return td_store_fail(store, code, error);
    *out = *kept;
    return TDBG_OK;
}

void td_statement_end(sqlite3_stmt *statement)
{
    sqlite3_reset(statement); /* repeats the error that the step gave */
    sqlite3_clear_bindings(statement);
}

tdbg_status td_statement_run(struct td_store *store, sqlite3_stmt *statement, struct tdbg_error *error)
{
    int code = sqlite3_step(statement);
    tdbg_status status = code == SQLITE_DONE ? TDBG_OK : td_store_fail(store, code, error);
    td_statement_end(statement);
    return status;
}

static tdbg_status run_text(struct td_store *store, const char *sql, struct tdbg_error *error)
{
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? TDBG_OK : td_store_fail(store, code, error);
}

static tdbg_status ask_number(struct td_store *store, const char *sql, int64_t *out, struct tdbg_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    tdbg_status status = code == SQLITE_ROW ? TDBG_OK : td_store_fail(store, code, error);
    sqlite3_finalize(statement);
    return status;
}

static tdbg_status create(struct td_store *store, struct tdbg_error *error)
{
    char stamp[96];
    sqlite3_snprintf(sizeof stamp, stamp, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION,
                     VERSION);
    TD_TRY(run_text(store, "BEGIN IMMEDIATE", error));
    tdbg_status status = run_text(store, td_store_schema, error);
    if (status == TDBG_OK)
        status = run_text(store, stamp, error);
    if (status == TDBG_OK)
        return run_text(store, "COMMIT", error);
    (void)!run_text(store, "ROLLBACK", NULL);
    return status;
}

/* A file of ours, of a version we know, or a new one. */
static tdbg_status adopt(struct td_store *store, struct tdbg_error *error)
{
    int64_t application, version, tables;
    TD_TRY(ask_number(store, "PRAGMA application_id", &application, error));
    TD_TRY(ask_number(store, "PRAGMA user_version", &version, error));
    TD_TRY(ask_number(store, "SELECT count(*) FROM sqlite_schema", &tables, error));
    if (application == 0 && version == 0 && tables == 0)
        return create(store, error);
    if (application != APPLICATION)
        return td_fail(error, TDBG_CORRUPT, "a database of another program");
    if (version > VERSION)
        return td_fail(error, TDBG_UNSUPPORTED, "made by a newer tdbg: version %lld, this one knows %d",
                       (long long)version, VERSION);
    return TDBG_OK;
}

static tdbg_status open_database(struct td_store *store, const char *path, struct tdbg_error *error)
{
    int code = sqlite3_open_v2(
        path, &store->db,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return td_store_fail(store, code, error);
    sqlite3_busy_timeout(store->db, PATIENCE_MS);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    TD_TRY(run_text(store,
                    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                    "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY",
                    error));
    TD_TRY(adopt(store, error));
    /* Takes the lock now, where a busy file is a clear refusal to start. */
    TD_TRY(run_text(store, "BEGIN IMMEDIATE", error));
    return run_text(store, "COMMIT", error);
}

tdbg_status td_store_open(struct td_store **out, const char *path, struct tdbg_error *error)
{
    struct td_store *store = calloc(1, sizeof *store);
    if (!store)
        return td_fail_nomem(error);
    pthread_mutex_init(&store->lock, NULL);
    tdbg_status status = open_database(store, path, error);
    if (status == TDBG_OK) {
        *out = store;
    } else {
        td_error_prefix(error, path);
        td_store_close(&store);
    }
    return status;
}

void td_store_close(struct td_store **store)
{
    if (!*store)
        return;
    for (int i = 0; i < TD_QUERIES; i++)
        sqlite3_finalize((*store)->statements[i]);
    sqlite3_close((*store)->db);
    pthread_mutex_destroy(&(*store)->lock);
    free(*store);
    *store = NULL;
}
