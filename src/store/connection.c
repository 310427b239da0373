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

tdbg_status td_statement(struct td_store *store, enum td_query query, sqlite3_stmt **out,
                         struct tdbg_error *error)
{
    TD_TRY(td_sqlite_prepare(store->db, &store->statements[query], queries[query], error));
    *out = store->statements[query];
    return TDBG_OK;
}

/* A file of ours, of a version we know, or a new one. */
static tdbg_status adopt(struct td_store *store, struct tdbg_error *error)
{
    int64_t application, version, tables;
    TD_TRY(td_sqlite_number(store->db, "PRAGMA application_id", &application, error));
    TD_TRY(td_sqlite_number(store->db, "PRAGMA user_version", &version, error));
    TD_TRY(td_sqlite_number(store->db, "SELECT count(*) FROM sqlite_schema", &tables, error));
    if (application == 0 && version == 0 && tables == 0)
        return td_sqlite_create(store->db, td_store_schema, APPLICATION, VERSION, error);
    return td_sqlite_recognise(store->db, APPLICATION, VERSION, error);
}

static tdbg_status open_database(struct td_store *store, const char *path, struct tdbg_error *error)
{
    int code = sqlite3_open_v2(
        path, &store->db,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return td_sqlite_fail(store->db, code, error);
    sqlite3_busy_timeout(store->db, PATIENCE_MS);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    TD_TRY(
        td_sqlite_run(store->db,
                      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                      "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY",
                      error));
    TD_TRY(adopt(store, error));
    /* Takes the lock now, where a busy file is a clear refusal to start. */
    TD_TRY(td_sqlite_run(store->db, "BEGIN IMMEDIATE", error));
    return td_sqlite_run(store->db, "COMMIT", error);
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
