/* connection.h: the one SQLite connection behind a store: how it is opened, asked and how it fails.
 *
 * Inside store/ only. A statement is prepared when it is first needed and kept. Whoever uses one holds the
 * lock from td_statement to td_sqlite_end.
 */
#ifndef TD_STORE_CONNECTION_H
#define TD_STORE_CONNECTION_H

#include "store/sqlite.h"
#include "store/store.h"

#include <pthread.h>

enum td_query {
    TD_QUERY_BEGIN,
    TD_QUERY_COMMIT,
    TD_QUERY_ROLLBACK,
    TD_QUERY_ADD_UPLOAD,
    TD_QUERY_REMOVE_UPLOAD,
    TD_QUERY_UPLOADS,
    TD_QUERY_PUT_COMPARISON,
    TD_QUERY_PUT_RESULT,
    TD_QUERY_REMOVE_COMPARISON,
    TD_QUERY_COMPARISONS,
    TD_QUERY_RESULT,
    TD_QUERY_NOTE,
    TD_QUERY_PUT_NOTE,
    TD_QUERIES
};

struct td_store {
    sqlite3 *db;
    pthread_mutex_t lock;
    sqlite3_stmt *statements[TD_QUERIES];
};

/* Ready to be bound. */
TD_CHECK tdbg_status td_statement(struct td_store *store, enum td_query query, sqlite3_stmt **out,
                                  struct tdbg_error *error);

#endif
