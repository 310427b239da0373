/* sqlite.c: see sqlite.h. */
#include "store/sqlite.h"

#include <errno.h>

tdbg_status td_sqlite_fail(sqlite3 *db, int code, struct tdbg_error *error)
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
    case SQLITE_CONSTRAINT:
        return td_fail(error, TDBG_MISMATCH, "contradicts what is stored: %s", sqlite3_errmsg(db));
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* our own statements are right: the file is not what they are for */
        return td_fail(error, TDBG_CORRUPT, "damaged: %s", sqlite3_errmsg(db));
    case SQLITE_TOOBIG:
        return td_fail(error, TDBG_LIMIT, "too large to be stored");
    default:
        break;
    }
    int number = db ? sqlite3_system_errno(db) : 0;
    if (number == ENOSPC || number == EDQUOT)
        return td_fail(error, TDBG_IO, "no space left");
    errno = number;
    return number ? td_fail_errno(error, sqlite3_errstr(code & 0xff))
                  : td_fail(error, TDBG_IO, "%s", sqlite3_errstr(code));
}

tdbg_status td_sqlite_run(sqlite3 *db, const char *sql, struct tdbg_error *error)
{
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? TDBG_OK : td_sqlite_fail(db, code, error);
}

tdbg_status td_sqlite_number(sqlite3 *db, const char *sql, int64_t *out, struct tdbg_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    tdbg_status status = code == SQLITE_ROW ? TDBG_OK : td_sqlite_fail(db, code, error);
    sqlite3_finalize(statement);
    return status;
}

tdbg_status td_sqlite_prepare(sqlite3 *db, sqlite3_stmt **kept, const char *sql, struct tdbg_error *error)
{
    int code = *kept ? SQLITE_OK : sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
    return code == SQLITE_OK ? TDBG_OK : td_sqlite_fail(db, code, error);
}

void td_sqlite_end(sqlite3_stmt *statement)
{
    sqlite3_reset(statement); /* repeats the error that the step gave */
    sqlite3_clear_bindings(statement);
}

tdbg_status td_sqlite_execute(sqlite3_stmt *statement, struct tdbg_error *error)
{
    int code = sqlite3_step(statement);
    tdbg_status status =
        code == SQLITE_DONE ? TDBG_OK : td_sqlite_fail(sqlite3_db_handle(statement), code, error);
    td_sqlite_end(statement);
    return status;
}

tdbg_status td_sqlite_create(sqlite3 *db, const char *schema, int application, int version,
                             struct tdbg_error *error)
{
    char stamp[96];
    sqlite3_snprintf(sizeof stamp, stamp, "PRAGMA application_id = %d; PRAGMA user_version = %d", application,
                     version);
    TD_TRY(td_sqlite_run(db, "BEGIN IMMEDIATE", error));
    tdbg_status status = td_sqlite_run(db, schema, error);
    if (status == TDBG_OK)
        status = td_sqlite_run(db, stamp, error);
    if (status == TDBG_OK)
        return td_sqlite_run(db, "COMMIT", error);
    (void)!td_sqlite_run(db, "ROLLBACK", NULL);
    return status;
}

tdbg_status td_sqlite_recognise(sqlite3 *db, int application, int version, struct tdbg_error *error)
{
    int64_t made_by, form;
    TD_TRY(td_sqlite_number(db, "PRAGMA application_id", &made_by, error));
    TD_TRY(td_sqlite_number(db, "PRAGMA user_version", &form, error));
    if (made_by != application)
        return td_fail(error, TDBG_CORRUPT, "a database of another program");
    if (form > version)
        return td_fail(error, TDBG_UNSUPPORTED, "made by a newer tdbg: version %lld, this one knows %d",
                       (long long)form, version);
    return TDBG_OK;
}
