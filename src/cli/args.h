/* args.h: options before or after operands, --opt value and --opt=value, -x, and -- to end them. */
#ifndef TD_CLI_ARGS_H
#define TD_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_FLAG,  /* bool */
    OPTION_TEXT,  /* const char * */
    OPTION_COUNT, /* int64_t, 0 or more */
    OPTION_REAL,  /* double, 0 or more */
    OPTION_LIST,  /* struct option_list: may be given again and again */
};

enum { OPTION_LIST_MOST = 64 };

struct option_list {
    const char *items[OPTION_LIST_MOST];
    int count;
};

/* One row of a command's table; a row without a name ends it. `offset` is the place in the command's struct
 * of values that the option fills. */
struct option {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    size_t offset;
    const char *value; /* what the help calls the value: "N", "FILE" */
    const char *help;
};

struct args {
    char **operands;
    int count;
};

/* Splits argv into options and operands; operands gather at the front of argv. False: `message` says what is
 * wrong. */
bool args_parse(const struct option *const *tables, void *const *values, int argc, char **argv,
                struct args *out, char *message, size_t size);

/* The candidate nearest to `word` in spelling, or NULL when none is near. `next` gives the i-th or NULL. */
const char *args_nearest(const char *word, const char *(*next)(const void *context, size_t i),
                         const void *context);

#endif
