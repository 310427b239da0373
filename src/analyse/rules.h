/* rules.h: what goes wrong in training, as a table of rules over the rows of a recorded run.
 *
 * A rule measures one number of a tensor or a scalar at one moment, and says which side of a threshold is
 * bad. Thresholds, and for how many rows in a row it must be bad, are settings; rules themselves are
 * constant. A checker is fed rows in the order of the run, all at once or as they come, and keeps one finding
 * for each rule and name: where it was broken first, by how much, how often since.
 *
 *     struct td_rule_setting settings[TD_RULES];
 *     td_rules_default(settings);
 *     td_checker_open(&checker, settings, error) …
 *     td_checker_read(checker, store, error) …           again and again while the run goes on
 *     for (size_t i = 0; i < td_checker_count(checker); i++)
 *         use(td_checker_finding(checker, i));           in the order of the run
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
    int64_t ordinal; /* of that step in the run; -1 for a scalar, and where there are no steps */
    int64_t time_ns;
    double number, threshold;
    double worst;   /* the number furthest beyond the threshold */
    uint64_t times; /* rows that broke it */
};

struct td_checker;

TD_CHECK tdbg_status td_checker_open(struct td_checker **out, const struct td_rule_setting settings[TD_RULES],
                                     struct tdbg_error *error);
void td_checker_close(struct td_checker **checker);

/* One row at a time, in the order of the run. False when memory ran out. */
bool td_checker_step(struct td_checker *checker, const struct td_run_step *row);
bool td_checker_tensor(struct td_checker *checker, const struct td_run_tensor *row);
bool td_checker_scalar(struct td_checker *checker, const struct td_run_scalar *row);

/* Feeds the rows of the store that were not there the last time. */
TD_CHECK tdbg_status td_checker_read(struct td_checker *checker, struct td_run_store *store,
                                     struct tdbg_error *error);

/* Rows seen so far. */
uint64_t td_checker_steps(const struct td_checker *checker);
uint64_t td_checker_tensors(const struct td_checker *checker);
uint64_t td_checker_scalars(const struct td_checker *checker);

size_t td_checker_count(const struct td_checker *checker);

/* By the time of the first offence. Borrowed until the checker is fed again. */
const struct td_finding *td_checker_finding(struct td_checker *checker, size_t index);

#endif
