/* sqlite.h: what both kinds of database share: how SQLite is asked, and how it fails. Inside store/ only. */
#ifndef TD_STORE_SQLITE_H
#define TD_STORE_SQLITE_H

#include "base/status.h"

#include <sqlite3.h>

/* What SQLite just said, as one of ours. `db` may be NULL. */
TD_CHECK tdbg_status td_sqlite_fail(sqlite3 *db, int code, struct tdbg_error *error);

/* Statements that answer nothing, and one that answers a number. */
TD_CHECK tdbg_status td_sqlite_run(sqlite3 *db, const char *sql, struct tdbg_error *error);
TD_CHECK tdbg_status td_sqlite_number(sqlite3 *db, const char *sql, int64_t *out, struct tdbg_error *error);

/* Prepares `sql` into *kept unless it is there already. */
TD_CHECK tdbg_status td_sqlite_prepare(sqlite3 *db, sqlite3_stmt **kept, const char *sql,
                                       struct tdbg_error *error);

/* Runs a prepared statement that answers nothing, and makes it ready for the next time. */
TD_CHECK tdbg_status td_sqlite_execute(sqlite3_stmt *statement, struct tdbg_error *error);
void td_sqlite_end(sqlite3_stmt *statement);

/* In one transaction: a new database of ours, of this schema and version. */
TD_CHECK tdbg_status td_sqlite_create(sqlite3 *db, const char *schema, int application, int version,
                                      struct tdbg_error *error);

/* A database of ours, of a version not above `version`. */
TD_CHECK tdbg_status td_sqlite_recognise(sqlite3 *db, int application, int version, struct tdbg_error *error);

#endif
