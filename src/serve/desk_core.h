/* desk_core.h: what the files of the desk share: its registry, and the rule by which it is locked.
 *
 *     by_id[hash] ──► entry ──► entry          every comparison, in three orders
 *     by_session[hash] ──► entry
 *     newest ◄──► … ◄──► oldest
 *     open[0 … TD_MOST_OPEN)  ──► opened ◄──► entry      those whose inputs are mapped
 *
 * One lock guards all of it and is held for moments only. Who needs time (comparing, the store, the file
 * system) marks the entry busy and lets go of the lock: a busy entry is neither removed nor changed by
 * anybody else, and its texts may be read without the lock. `changed` is signalled whenever an entry is no
 * longer busy or got into another phase.
 */
#ifndef TD_SERVE_DESK_CORE_H
#define TD_SERVE_DESK_CORE_H

#include "base/job.h"
#include "serve/desk.h"
#include "serve/ranking.h"
#include "serve/stamp.h"
#include "session/gallery.h"
#include "session/side.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* Each may hold a spill file as large as its inputs unpacked. A person looks at two or three. */
enum { TD_MOST_OPEN = 8 };

/* One is compared at a time: whoever comes behind so many would wait for long. */
enum { TD_MOST_WAITING = 64 };

enum { TD_BUCKETS = 256 };

enum td_phase { TD_PHASE_QUEUED, TD_PHASE_RUNNING, TD_PHASE_DONE, TD_PHASE_FAILED, TD_PHASE_CANCELLED };

const char *td_phase_name(enum td_phase phase);

/* At rest: nothing happens unless somebody asks. */
static inline bool td_phase_rests(enum td_phase phase)
{
    return phase >= TD_PHASE_DONE;
}

/* An input of a comparison. */
struct td_part {
    char *name, *path, *upload; /* path NULL: there is none */
    char stamp[TD_STAMP_SIZE];  /* when it was compared; "" before */
    bool changed, missing;
};

struct td_entry {
    char id[TD_ID_LENGTH + 1];
    char *title, *session, *settings;
    char *error, *summary, *first; /* the last two are JSON; NULL: none */
    tdbg_status failure;           /* of a failed one */
    int64_t created;
    enum td_phase phase;
    struct td_part part[2];
    struct td_job job;
    bool busy;
    uint64_t revision;        /* counts what happened to it */
    uint64_t generation;      /* of its result: another number, another result; 0: none since long */
    int64_t look_cost;        /* what looking at its inputs took the last time (nanoseconds) */
    int64_t next_look;        /* when its inputs may be looked at again (nanoseconds) */
    struct td_opened *opened; /* NULL: its inputs are not mapped */
    struct td_entry *newer, *older;
    struct td_entry *next_by_id, *next_by_session; /* newest first */
};

/* Lies open: belongs to an entry, or to nobody and then is closed by the last who returns it. */
struct td_opened {
    struct td_open_comparison view; /* first: what borrowers hold */
    struct td_entry *entry;
    char id[TD_ID_LENGTH + 1];
    unsigned users;
    uint64_t used; /* desk->clock when it was last borrowed */
    struct td_diff *diff;
    struct td_choice choice;                /* when a single input is explored */
    _Atomic(struct td_subject *) *subjects; /* one for each pair, made when first asked for */
    struct td_ranking ranking;              /* of the pairs; empty: not read since the state was written */
    uint64_t notes;                         /* how often it was */
};

struct td_desk {
    struct td_store *store;
    struct td_uploads *uploads;
    const struct td_bound *bound;
    struct td_pool *pool;
    struct td_gallery *gallery; /* of all subjects that lie open */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t worker;
    bool works;    /* there is a worker to be stopped; whoever opens and closes the desk knows */
    bool stopping; /* under the lock */
    struct td_entry *newest, *oldest, *by_id[TD_BUCKETS], *by_session[TD_BUCKETS];
    size_t waiting; /* queued, or about to be */
    struct td_opened *open[TD_MOST_OPEN];
    uint64_t clock;          /* counts borrowings */
    pthread_mutex_t writing; /* notes are read to be written; never taken while `lock` is held */
};

/* --- desk_entry.c: entries and where they hang; all under the lock -------------------------------------- */

/* NULL for no memory. Takes nothing over. */
struct td_entry *td_entry_make(const struct td_comparison_row *row);
void td_entry_free(struct td_entry *entry);
struct td_comparison_row td_entry_row(const struct td_entry *entry, enum td_phase phase);

void td_entry_link(struct td_desk *desk, struct td_entry *entry); /* as the newest */
void td_entry_unlink(struct td_desk *desk, struct td_entry *entry);
struct td_entry *td_entry_find(const struct td_desk *desk, const char *id);
struct td_entry *td_entry_latest(const struct td_desk *desk, const char *session);

/* Finds it and waits until nobody is busy with it. */
TD_CHECK tdbg_status td_entry_await(struct td_desk *desk, const char *id, struct td_entry **out,
                                    struct tdbg_error *error);

/* Marks it busy and lets go of the lock; takes the lock again and says that something changed. */
void td_entry_leave(struct td_desk *desk, struct td_entry *entry);
void td_entry_enter(struct td_desk *desk, struct td_entry *entry);

/* Notes whether the inputs are still what was compared, unless that was just done. Lets go of the lock. */
void td_entry_look(struct td_desk *desk, struct td_entry *entry);

/* Looking is due and would take a while. */
bool td_entry_is_large(const struct td_entry *entry);

/* --- desk_work.c ---------------------------------------------------------------------------------------- */

void *td_desk_work(void *desk); /* the worker thread */

/* Opens the inputs of a finished one again. The entry is busy; not under the lock. */
TD_CHECK tdbg_status td_desk_compare_again(struct td_desk *desk, struct td_entry *entry,
                                           struct td_opened **out, struct tdbg_error *error);

/* --- desk_open.c ---------------------------------------------------------------------------------------- */

struct td_opened *td_opened_make(const char *id); /* NULL for no memory */
TD_CHECK tdbg_status td_opened_ready(struct td_opened *opened, struct tdbg_error *error);
void td_opened_close(struct td_opened *opened);

/* Both under the lock. They return what nobody holds any more, to be closed without it; NULL: nothing. */
struct td_opened *td_desk_attach(struct td_desk *desk, struct td_entry *entry, struct td_opened *opened);
struct td_opened *td_desk_detach(struct td_desk *desk, struct td_entry *entry);

/* --- desk_pairs.c --------------------------------------------------------------------------------------- */

/* MISUSE when a pair made by hand names a tensor that is not there. The inputs are opened for it: the entry
 * is busy, or known to nobody yet; not under the lock. */
TD_CHECK tdbg_status td_desk_check_pairs(const struct td_desk *desk, const struct td_entry *entry,
                                         const struct td_diff_setup *setup, struct tdbg_error *error);

/* The same for one at rest that nobody is busy with; takes what lies open. Lets go of the lock meanwhile. */
TD_CHECK tdbg_status td_desk_recheck_pairs(struct td_desk *desk, struct td_entry *entry,
                                           const struct td_diff_setup *setup, struct tdbg_error *error);

/* --- desk_notes.c --------------------------------------------------------------------------------------- */

/* Puts a finished one into the store, with its notes carried over to the new result. Not under the lock. */
TD_CHECK tdbg_status td_desk_finish(struct td_desk *desk, const struct td_comparison_row *row,
                                    struct td_buffer *result, struct tdbg_error *error);

/* --- desk_order.c --------------------------------------------------------------------------------------- */

/* The state was written. */
void td_desk_forget_ranking(struct td_desk *desk, const char *id);

#endif
