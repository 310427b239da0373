/* follow.h: a run as a dashboard shows it, kept up to date while it grows.
 *
 * Opened once, refreshed many times: a refresh reads only the rows that are new, in one read transaction, and
 * says in `serial` what it touched. Who shows it remembers the serial he has seen and takes what is newer.
 * Memory is bounded however long the run: series are trails, names have caps (what is beyond is counted).
 */
#ifndef TD_ANALYSE_FOLLOW_H
#define TD_ANALYSE_FOLLOW_H

#include "analyse/rules.h"
#include "analyse/trail.h"

enum { TD_FOLLOW_SCALARS = 128, TD_FOLLOW_GRADIENTS = 512, TD_FOLLOW_SCOPES = 1 << 14, TD_FOLLOW_NOTES = 64 };

/* A scalar by the step that came with it, or the size of a gradient by the ordinal of the step. */
struct td_track {
    char *name;
    struct td_trail trail;
    double last;
    int64_t last_step;
    uint64_t count, serial;
};

struct td_tracks {
    struct td_track **items;          /* in the order they were first seen */
    size_t count, room, most, points; /* the most of them, and the points of each */
    uint64_t left_out;                /* rows of names beyond the cap */
    void *by_name;
};

/* A scope by the way it was reached. */
struct td_layer {
    char *name;
    uint32_t parent; /* 0: none; else the scope of that id, which is items[id - 1] */
    uint64_t calls;
    int64_t total_ns, children_ns;
};

struct td_layers {
    struct td_layer *items;
    size_t count, room;
    uint64_t calls, left_out, serial;
};

struct td_followed_note {
    int64_t id, step, time_ns;
    char kind[16], text[240];
};

struct td_follow {
    struct td_run_store *store;
    struct td_run_facts facts;
    const char *state; /* see td_run_state */
    uint64_t serial;   /* of the last refresh that found anything */
    uint64_t facts_serial, steps_serial, alerts_serial, notes_serial;
    struct td_run_step last; /* the last step that is over */
    uint64_t steps, tensors, scalar_rows;
    int64_t last_ns;                 /* time of the newest row */
    struct td_trail seconds, memory; /* of the steps, by number */
    struct td_tracks scalars, gradients;
    struct td_layers layers;
    struct td_checker *checker;
    uint64_t offences;                              /* rows that broke a rule */
    struct td_followed_note notes[TD_FOLLOW_NOTES]; /* a ring */
    uint64_t note_count;
    int64_t after_step, after_scope, after_spans, after_tensor, after_scalar, after_note;
    bool nomem;
};

TD_CHECK tdbg_status td_follow_open(struct td_follow **out, const char *dir, struct tdbg_error *error);
void td_follow_close(struct td_follow **follow);

/* Takes in what is new; the serial grows when there was anything. */
TD_CHECK tdbg_status td_follow_refresh(struct td_follow *follow, struct tdbg_error *error);

/* The time of a scope that none of its children explains. */
int64_t td_layer_self_ns(const struct td_layer *layer);

#endif
