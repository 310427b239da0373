/* condition.h: what a breakpoint waits for, and what a watch shows: text that people type.
 *
 *     break:   PATTERN [if CONDITION]
 *     CONDITION:  TEST [or TEST]…
 *     TEST:    nan | inf | STATISTIC < X | STATISTIC > X | diverges-from RUN
 *     watch:   STATISTIC(NAME) | STATISTIC(NAME[slice])
 *
 * The statistics are those of `tdbg stats`. A pattern is a shell's: * ? [abc]; a name that reads the same as
 * the pattern fits as well, brackets and all.
 */
#ifndef TD_LIVE_CONDITION_H
#define TD_LIVE_CONDITION_H

#include "base/json.h"
#include "base/status.h"

enum td_test_kind { TD_TEST_LESS, TD_TEST_GREATER, TD_TEST_DIVERGES };

struct td_test {
    enum td_test_kind kind;
    int statistic; /* TD_TEST_LESS, TD_TEST_GREATER: its place in the table */
    double limit;
    char *reference; /* TD_TEST_DIVERGES: the folder of the run; owned */
};

enum { TD_MOST_TESTS = 8 };

/* None at all: always true. */
struct td_condition {
    int count;
    struct td_test tests[TD_MOST_TESTS];
};

TD_CHECK tdbg_status td_condition_init(struct td_condition *out, const char *text, struct tdbg_error *error);
void td_condition_release(struct td_condition *c);

/* The first test that the statistics pass, or NULL; TD_TEST_DIVERGES is not looked at. */
const struct td_test *td_condition_meet(const struct td_condition *c, const struct tdbg_stats *stats);

bool td_condition_needs_stats(const struct td_condition *c);

/* "PATTERN if CONDITION" in two; both are the caller's to free, and the condition may be "". */
TD_CHECK tdbg_status td_break_split(const char *text, char **pattern, char **condition,
                                    struct tdbg_error *error);

struct td_watch {
    char *text;         /* as it was typed */
    int statistic;      /* its place in the table */
    char *inside;       /* the parentheses: some names end in brackets themselves */
    char *name, *slice; /* a pattern, and a slice without brackets or "" */
};

TD_CHECK tdbg_status td_watch_init(struct td_watch *out, const char *text, struct tdbg_error *error);
void td_watch_release(struct td_watch *w);

/* Whether a tensor of that name is meant, and the slice of it, "" for all. */
bool td_watch_fits(const struct td_watch *w, const char *name, const char **slice);

/* The table of statistics: names, and values as numbers. */
const char *td_statistic_name(int statistic);
double td_statistic_value(int statistic, const struct tdbg_stats *stats);

/* The object {"count": …, "norm": …}. */
void td_statistics_json(struct td_json *j, const struct tdbg_stats *stats);

#endif
