/* store.c: see store.h. Each function is one transaction under the lock of the connection. */
#include "store/connection.h"

#include <string.h>

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC); /* NULL binds NULL */
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

/* --- shapes of questions, all under the lock ------------------------------------------------------------ */

/* A change of what `id` names; `bytes` may be NULL. */
static tdbg_status change(struct td_store *store, enum td_query query, const char *id, const void *bytes,
                          size_t size, const char *what, struct tdbg_error *error)
{
    sqlite3_stmt *statement;
    TD_TRY(td_statement(store, query, &statement, error));
    bind_text(statement, 1, id);
    if (bytes)
        sqlite3_bind_blob64(statement, 2, bytes, size, SQLITE_STATIC);
    TD_TRY(td_sqlite_execute(statement, error));
    return sqlite3_changes(store->db) ? TDBG_OK : td_fail(error, TDBG_NOTFOUND, "no such %s", what);
}

/* The one document of what `id` names. */
static tdbg_status fetch(struct td_store *store, enum td_query query, const char *id, const char *what,
                         struct td_buffer *out, struct tdbg_error *error)
{
    sqlite3_stmt *statement;
    tdbg_status status = TDBG_OK;
    TD_TRY(td_statement(store, query, &statement, error));
    bind_text(statement, 1, id);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        td_buffer_append(out, sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0));
    else
        status = code == SQLITE_DONE ? td_fail(error, TDBG_NOTFOUND, "no such %s", what)
                                     : td_sqlite_fail(store->db, code, error);
    td_sqlite_end(statement);
    return status == TDBG_OK && out->failed ? td_fail_nomem(error) : status;
}

static tdbg_status each(struct td_store *store, enum td_query query,
                        void (*visit)(void *context, sqlite3_stmt *row), void *context,
                        struct tdbg_error *error)
{
    sqlite3_stmt *statement;
    int code;
    TD_TRY(td_statement(store, query, &statement, error));
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        visit(context, statement);
    tdbg_status status = code == SQLITE_DONE ? TDBG_OK : td_sqlite_fail(store->db, code, error);
    td_sqlite_end(statement);
    return status;
}

static tdbg_status run(struct td_store *store, enum td_query query, struct tdbg_error *error)
{
    sqlite3_stmt *statement;
    TD_TRY(td_statement(store, query, &statement, error));
    return td_sqlite_execute(statement, error);
}

#define LOCKED(store, call)               \
    pthread_mutex_lock(&(store)->lock);   \
    tdbg_status locked_status_ = (call);  \
    pthread_mutex_unlock(&(store)->lock); \
    return locked_status_

/* --- uploads -------------------------------------------------------------------------------------------- */

static tdbg_status add_upload(struct td_store *store, const struct td_upload_row *row,
                              struct tdbg_error *error)
{
    sqlite3_stmt *statement;
    TD_TRY(td_statement(store, TD_QUERY_ADD_UPLOAD, &statement, error));
    bind_text(statement, 1, row->id);
    bind_text(statement, 2, row->name);
    bind_text(statement, 3, row->sha256);
    sqlite3_bind_int64(statement, 4, (int64_t)row->bytes);
    sqlite3_bind_int64(statement, 5, row->created);
    return td_sqlite_execute(statement, error);
}

tdbg_status td_store_add_upload(struct td_store *store, const struct td_upload_row *row,
                                struct tdbg_error *error)
{
    LOCKED(store, add_upload(store, row, error));
}

tdbg_status td_store_remove_upload(struct td_store *store, const char *id, struct tdbg_error *error)
{
    LOCKED(store, change(store, TD_QUERY_REMOVE_UPLOAD, id, NULL, 0, "upload", error));
}

struct upload_visit {
    void (*visit)(void *context, const struct td_upload_row *row);
    void *context;
};

static void show_upload(void *context, sqlite3_stmt *row)
{
    const struct upload_visit *v = context;
    v->visit(v->context, &(struct td_upload_row){.id = text_of(row, 0),
                                                 .name = text_of(row, 1),
                                                 .sha256 = text_of(row, 2),
                                                 .bytes = (uint64_t)sqlite3_column_int64(row, 3),
                                                 .created = sqlite3_column_int64(row, 4)});
}

tdbg_status td_store_each_upload(struct td_store *store,
                                 void (*visit)(void *context, const struct td_upload_row *row), void *context,
                                 struct tdbg_error *error)
{
    struct upload_visit v = {visit, context};
    LOCKED(store, each(store, TD_QUERY_UPLOADS, show_upload, &v, error));
}

/* --- comparisons ---------------------------------------------------------------------------------------- */

enum { SOURCE_COLUMNS = 4, A_COLUMN = 8, B_COLUMN = A_COLUMN + SOURCE_COLUMNS };

static void bind_source(sqlite3_stmt *statement, int column, const struct td_source_row *s)
{
    bind_text(statement, column + 1, s->name);
    bind_text(statement, column + 2, s->path);
    bind_text(statement, column + 3, s->upload);
    bind_text(statement, column + 4, s->stamp);
}

static struct td_source_row source_of(sqlite3_stmt *row, int column)
{
    return (struct td_source_row){.name = text_of(row, column),
                                  .path = text_of(row, column + 1),
                                  .upload = text_of(row, column + 2),
                                  .stamp = text_of(row, column + 3)};
}

static tdbg_status put_comparison(struct td_store *store, const struct td_comparison_row *row,
                                  struct tdbg_error *error)
{
    sqlite3_stmt *statement;
    TD_TRY(td_statement(store, TD_QUERY_PUT_COMPARISON, &statement, error));
    const char *texts[] = {row->id,    row->title,    row->session, row->status,
                           row->error, row->settings, row->summary};
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++)
        bind_text(statement, i + 1, texts[i]);
    sqlite3_bind_int64(statement, A_COLUMN, row->created);
    bind_source(statement, A_COLUMN, &row->a);
    bind_source(statement, B_COLUMN, &row->b);
    return td_sqlite_execute(statement, error);
}

tdbg_status td_store_put_comparison(struct td_store *store, const struct td_comparison_row *row,
                                    struct tdbg_error *error)
{
    LOCKED(store, put_comparison(store, row, error));
}

static tdbg_status finish_comparison(struct td_store *store, const struct td_comparison_row *row,
                                     const char *result, size_t size, const char *state,
                                     struct tdbg_error *error)
{
    TD_TRY(run(store, TD_QUERY_BEGIN, error));
    tdbg_status status = put_comparison(store, row, error);
    if (status == TDBG_OK)
        status = change(store, TD_QUERY_PUT_RESULT, row->id, result, size, "comparison", error);
    if (status == TDBG_OK && state)
        status = change(store, TD_QUERY_PUT_NOTE, row->id, state, strlen(state), "comparison", error);
    if (status == TDBG_OK)
        status = run(store, TD_QUERY_COMMIT, error);
    if (status != TDBG_OK && !sqlite3_get_autocommit(store->db))
        (void)!run(store, TD_QUERY_ROLLBACK, NULL); /* a full disk may have rolled back by itself */
    return status;
}

tdbg_status td_store_finish_comparison(struct td_store *store, const struct td_comparison_row *row,
                                       const char *result, size_t size, const char *state,
                                       struct tdbg_error *error)
{
    LOCKED(store, finish_comparison(store, row, result, size, state, error));
}

tdbg_status td_store_remove_comparison(struct td_store *store, const char *id, struct tdbg_error *error)
{
    LOCKED(store, change(store, TD_QUERY_REMOVE_COMPARISON, id, NULL, 0, "comparison", error));
}

struct comparison_visit {
    void (*visit)(void *context, const struct td_comparison_row *row);
    void *context;
};

static void show_comparison(void *context, sqlite3_stmt *row)
{
    const struct comparison_visit *v = context;
    v->visit(v->context, &(struct td_comparison_row){.id = text_of(row, 0),
                                                     .title = text_of(row, 1),
                                                     .session = text_of(row, 2),
                                                     .status = text_of(row, 3),
                                                     .error = text_of(row, 4),
                                                     .settings = text_of(row, 5),
                                                     .summary = text_of(row, 6),
                                                     .created = sqlite3_column_int64(row, 7),
                                                     .a = source_of(row, A_COLUMN),
                                                     .b = source_of(row, B_COLUMN)});
}

tdbg_status td_store_each_comparison(struct td_store *store,
                                     void (*visit)(void *context, const struct td_comparison_row *row),
                                     void *context, struct tdbg_error *error)
{
    struct comparison_visit v = {visit, context};
    LOCKED(store, each(store, TD_QUERY_COMPARISONS, show_comparison, &v, error));
}

tdbg_status td_store_result(struct td_store *store, const char *id, struct td_buffer *out,
                            struct tdbg_error *error)
{
    LOCKED(store, fetch(store, TD_QUERY_RESULT, id, "result", out, error));
}

tdbg_status td_store_state(struct td_store *store, const char *id, struct td_buffer *out,
                           struct tdbg_error *error)
{
    LOCKED(store, fetch(store, TD_QUERY_NOTE, id, "comparison", out, error));
}

tdbg_status td_store_put_state(struct td_store *store, const char *id, const char *state, size_t size,
                               struct tdbg_error *error)
{
    LOCKED(store, change(store, TD_QUERY_PUT_NOTE, id, state, size, "comparison", error));
}
