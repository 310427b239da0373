/* run_connection.h: the connection behind an index of a run; inside store/ only. */
#ifndef TD_STORE_RUN_CONNECTION_H
#define TD_STORE_RUN_CONNECTION_H

#include "store/run_store.h"
#include "store/sqlite.h"

enum td_run_query {
    TD_RUN_ADD_FACT,
    TD_RUN_ADD_STEP,
    TD_RUN_ADD_SCOPE,
    TD_RUN_ADD_SPANS,
    TD_RUN_ADD_TENSOR,
    TD_RUN_ADD_SCALAR,
    TD_RUN_ADD_BLOCKS,
    TD_RUN_ADD_SNAPSHOT,
    TD_RUN_ADD_NOTE,
    TD_RUN_FACTS,
    TD_RUN_STEPS,
    TD_RUN_SCOPES,
    TD_RUN_SPANS,
    TD_RUN_TENSORS,
    TD_RUN_SCALARS,
    TD_RUN_BLOCKS,
    TD_RUN_SNAPSHOTS,
    TD_RUN_NOTES,
    TD_RUN_QUERIES
};

struct td_run_store {
    sqlite3 *db;
    sqlite3_stmt *statements[TD_RUN_QUERIES];
    void *scratch; /* records of a block, aligned; grows */
    size_t scratch_size;
};

/* Ready to be bound. */
TD_CHECK tdbg_status td_run_statement(struct td_run_store *store, enum td_run_query query, sqlite3_stmt **out,
                                      struct tdbg_error *error);

#endif
