/* rules.h: what goes wrong in training, as a table of rules over the rows of a recorded run.
 *
 * A rule measures one number of a tensor or a scalar at one moment, and says which side of a threshold is
 * bad. Thresholds, and for how many rows in a row it must be bad, are settings; rules themselves are
 * constant. A watch is fed rows in the order of the run, all at once or as they come, and keeps one finding
 * for each rule and name: where it was broken first, by how much, how often since.
 *
 *     struct td_rule_setting settings[TD_RULES];
 *     td_rules_default(settings);
 *     td_watch_open(&watch, settings, error) …
 *     td_watch_read(watch, store, error) …           again and again while the run goes on
 *     for (size_t i = 0; i < td_watch_count(watch); i++)
 *         use(td_watch_finding(watch, i));           in the order of the run
 */
#ifndef TD_ANALYSE_RULES_H
#define TD_ANALYSE_RULES_H

#include "base/status.h"
#include "store/run_store.h"

enum { TD_RULES = 13 };

/* The most rows a rule can look back over. */
enum { TD_RULE_WINDOW = 256 };

struct td_moment; /* see analyse/series.h */

struct td_rule {
    const char *name, *what;
    const char *measure; /* what the number is */
    double threshold;
    bool below;    /* a number below the threshold is bad; else one above */
    bool window;   /* the measure looks back over `steps` rows by itself */
    int64_t steps; /* bad for so many rows in a row before it is a finding */
    unsigned roles;
    double (*look)(const struct td_moment *m); /* NaN: nothing to say */
};

extern const struct td_rule td_rules[TD_RULES];

struct td_rule_setting {
    double threshold;
    int64_t steps;
    bool disabled;
};

void td_rules_default(struct td_rule_setting settings[TD_RULES]);

/* "RULE=VALUE" sets the threshold, "RULE.steps=N" how many rows it takes. */
TD_CHECK tdbg_status td_rules_set(struct td_rule_setting settings[TD_RULES], const char *text,
                                  struct tdbg_error *error);
TD_CHECK tdbg_status td_rules_disable(struct td_rule_setting settings[TD_RULES], const char *name,
                                      struct tdbg_error *error);

struct td_finding {
    const struct td_rule *rule;
    const char *name; /* of the tensor or scalar */
    bool scalar;
    bool under_way;  /* the step is not over (or never was): its number is not known */
    int64_t step;    /* where it was broken first, as the program counts */
    int64_t ordinal; /* of that step in the run; -1 for a scalar */
    int64_t time_ns;
    double number, threshold;
    double worst;   /* the number furthest beyond the threshold */
    uint64_t times; /* rows that broke it */
};

struct td_watch;

TD_CHECK tdbg_status td_watch_open(struct td_watch **out, const struct td_rule_setting settings[TD_RULES],
                                   struct tdbg_error *error);
void td_watch_close(struct td_watch **watch);

/* One row at a time, in the order of the run. False when memory ran out. */
bool td_watch_step(struct td_watch *watch, const struct td_run_step *row);
bool td_watch_tensor(struct td_watch *watch, const struct td_run_tensor *row);
bool td_watch_scalar(struct td_watch *watch, const struct td_run_scalar *row);

/* Feeds the rows of the store that were not there the last time. */
TD_CHECK tdbg_status td_watch_read(struct td_watch *watch, struct td_run_store *store,
                                   struct tdbg_error *error);

/* Rows seen so far. */
uint64_t td_watch_steps(const struct td_watch *watch);
uint64_t td_watch_tensors(const struct td_watch *watch);
uint64_t td_watch_scalars(const struct td_watch *watch);

size_t td_watch_count(const struct td_watch *watch);

/* By the time of the first offence. Borrowed until the watch is fed again. */
const struct td_finding *td_watch_finding(struct td_watch *watch, size_t index);

#endif
