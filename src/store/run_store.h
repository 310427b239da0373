/* run_store.h: the index of a recorded run, run.db; all its SQL is here and in run_schema.sql.
 *
 * One thread of the recorded process writes; anybody reads, also while the run goes on and after it was
 * killed. A reader never waits for the writer (WAL). Rows are delivered in the order of their ids, and
 * `after` asks only for those beyond an id, so a live view polls for what is new.
 *
 * What a visit gets is borrowed until it returns. A visit that returns false ends the walk.
 */
#ifndef TD_STORE_RUN_STORE_H
#define TD_STORE_RUN_STORE_H

#include "base/status.h"
#include "tdbg.h"

#include <stdbool.h>
#include <stdint.h>

#define TD_RUN_INDEX "run.db"

/* What is kept of a tensor. */
enum td_keep { TD_KEEP_NONE, TD_KEEP_FULL, TD_KEEP_STATS, TD_KEEP_SKETCH, TD_KEEP_SLICE };

enum { TD_SKETCH_BINS = 64 };

struct td_run_facts {
    int64_t started;  /* seconds since 1970 */
    int64_t ended_ns; /* 0: under way, or killed */
    int64_t pid;
    int rank, world; /* 0 of 1 unless distributed */
    char program[256], host[256], capture[1024];
};

/* Sets one of the texts above; what is too long for it is cut. */
void td_run_fact_set(char *out, size_t size, const char *value);

struct td_run_step {
    int64_t ordinal, number, begin_ns, end_ns, cpu_ns, rss;
};

struct td_run_scope {
    uint32_t id, parent; /* parents come before their children */
    const char *name;
};

/* One call of a scope; as stored. */
struct td_run_span {
    int64_t begin_ns, end_ns;
    uint32_t scope, thread;
    double flops, bytes, tokens; /* 0 where nobody said */
};

struct td_run_tensor {
    int64_t id, step, time_ns; /* step: ordinal */
    const char *name, *dtype, *file;
    uint32_t scope, thread;
    enum td_keep kind;
    int ndim;
    int64_t shape[TDBG_MAX_DIMS];
    struct tdbg_stats stats;
    const uint64_t *bins; /* TD_SKETCH_BINS of them, or NULL */
};

struct td_run_scalar {
    int64_t id, step, time_ns; /* step: the number that came with it */
    const char *name;
    double value;
};

/* Memory asked for (bytes > 0) or given back (bytes 0); as stored. */
struct td_run_block {
    int64_t time_ns;
    uint64_t address, bytes;
    uint32_t scope, thread;
};

struct td_run_snapshot {
    const char *name;
    int64_t step, time_ns;
};

struct td_run_note {
    int64_t id, step, time_ns;
    const char *kind, *text; /* kind: "break", "capture", "control", "trouble" */
};

struct td_run_store;

/* A folder that holds the index of a run. */
bool td_run_is(const char *dir);

/* --- reading ------------------------------------------------------------------------------------------- */

TD_CHECK tdbg_status td_run_store_open(struct td_run_store **out, const char *dir, struct tdbg_error *error);

/* The same from the bytes of a run.db that lies in an archive; they are copied. What the run had in its log
 * beside it (run.db-wal: it was killed) is not seen. */
TD_CHECK tdbg_status td_run_store_open_bytes(struct td_run_store **out, const void *data, size_t size,
                                             struct tdbg_error *error);
void td_run_store_close(struct td_run_store **store);

TD_CHECK tdbg_status td_run_facts(struct td_run_store *store, struct td_run_facts *out,
                                  struct tdbg_error *error);

#define TD_RUN_EACH(noun, type)                                                                           \
    TD_CHECK tdbg_status td_run_each_##noun(struct td_run_store *store, int64_t after,                    \
                                            bool (*visit)(void *context, const type *row), void *context, \
                                            struct tdbg_error *error)
/* after: -1 for all. Snapshots are numbered from 1 in their order. */
TD_RUN_EACH(step, struct td_run_step);
TD_RUN_EACH(scope, struct td_run_scope);
TD_RUN_EACH(tensor, struct td_run_tensor);
TD_RUN_EACH(scalar, struct td_run_scalar);
TD_RUN_EACH(snapshot, struct td_run_snapshot);
TD_RUN_EACH(note, struct td_run_note);
#undef TD_RUN_EACH

/* Many at once: the records of one row of the index, all of one step. */
TD_CHECK tdbg_status td_run_each_spans(struct td_run_store *store, int64_t after,
                                       bool (*visit)(void *context, int64_t id, int64_t step,
                                                     const struct td_run_span *spans, size_t count),
                                       void *context, struct tdbg_error *error);
TD_CHECK tdbg_status td_run_each_blocks(struct td_run_store *store, int64_t after,
                                        bool (*visit)(void *context, int64_t id, int64_t step,
                                                      const struct td_run_block *blocks, size_t count),
                                        void *context, struct tdbg_error *error);

/* Reads between begin and commit see one moment of a run that grows. */
TD_CHECK tdbg_status td_run_begin(struct td_run_store *store, struct tdbg_error *error);
TD_CHECK tdbg_status td_run_commit(struct td_run_store *store, struct tdbg_error *error);

/* --- writing, from one thread --------------------------------------------------------------------------- */

/* Makes the index in an existing folder; one that is there already is an error. */
TD_CHECK tdbg_status td_run_store_create(struct td_run_store **out, const char *dir,
                                         const struct td_run_facts *facts, struct tdbg_error *error);

/* Rows come between begin and commit; a commit makes them visible and safe from the death of the process. */

TD_CHECK tdbg_status td_run_add_step(struct td_run_store *store, const struct td_run_step *row,
                                     struct tdbg_error *error);
TD_CHECK tdbg_status td_run_add_scope(struct td_run_store *store, const struct td_run_scope *row,
                                      struct tdbg_error *error);
TD_CHECK tdbg_status td_run_add_tensor(struct td_run_store *store, const struct td_run_tensor *row,
                                       struct tdbg_error *error);
TD_CHECK tdbg_status td_run_add_scalar(struct td_run_store *store, const struct td_run_scalar *row,
                                       struct tdbg_error *error);
TD_CHECK tdbg_status td_run_add_snapshot(struct td_run_store *store, const struct td_run_snapshot *row,
                                         struct tdbg_error *error);
TD_CHECK tdbg_status td_run_add_note(struct td_run_store *store, const struct td_run_note *row,
                                     struct tdbg_error *error);
TD_CHECK tdbg_status td_run_add_spans(struct td_run_store *store, int64_t step,
                                      const struct td_run_span *spans, size_t count,
                                      struct tdbg_error *error);
TD_CHECK tdbg_status td_run_add_blocks(struct td_run_store *store, int64_t step,
                                       const struct td_run_block *blocks, size_t count,
                                       struct tdbg_error *error);
TD_CHECK tdbg_status td_run_set_ended(struct td_run_store *store, int64_t ended_ns, struct tdbg_error *error);

/* Nothing more is written: readers need no log beside the index, and leave none there. Where one is reading
 * right now it stays as it is. */
void td_run_settle(struct td_run_store *store);

#endif
