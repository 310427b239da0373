/* args.c: see args.h. */
#include "cli/args.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An option as found in one of the tables, with the struct its value goes to. */
struct match {
    const struct option *option;
    char *values;
};

static struct match find_long(const struct option *const *tables, void *const *values, const char *name,
                              size_t length)
{
    for (size_t t = 0; tables[t]; t++)
        for (const struct option *o = tables[t]; o->name; o++)
            if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
                return (struct match){o, values[t]};
    return (struct match){0};
}

static struct match find_short(const struct option *const *tables, void *const *values, char letter)
{
    for (size_t t = 0; tables[t]; t++)
        for (const struct option *o = tables[t]; o->name; o++)
            if (o->letter && o->letter == letter)
                return (struct match){o, values[t]};
    return (struct match){0};
}

static bool set_count(int64_t *out, const struct option *o, const char *text, char *message, size_t size)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < 0) {
        snprintf(message, size, "--%s takes a number, not '%s'", o->name, text);
        return false;
    }
    *out = value;
    return true;
}

static bool set_real(double *out, const struct option *o, const char *text, char *message, size_t size)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0) || value > 1e300) {
        snprintf(message, size, "--%s takes a number of 0 or more, not '%s'", o->name, text);
        return false;
    }
    *out = value;
    return true;
}

static bool add(struct option_list *list, const struct option *o, const char *text, char *message,
                size_t size)
{
    if (list->count == OPTION_LIST_MOST) {
        snprintf(message, size, "--%s may be given %d times", o->name, OPTION_LIST_MOST);
        return false;
    }
    list->items[list->count++] = text;
    return true;
}

static bool set(struct match m, const char *text, char *message, size_t size)
{
    void *at = m.values + m.option->offset;
    switch (m.option->kind) {
    case OPTION_FLAG:
        *(bool *)at = true;
        return true;
    case OPTION_TEXT:
        *(const char **)at = text;
        return true;
    case OPTION_COUNT:
        return set_count(at, m.option, text, message, size);
    case OPTION_REAL:
        return set_real(at, m.option, text, message, size);
    case OPTION_LIST:
        return add(at, m.option, text, message, size);
    }
    return false;
}

/* Names of all the tables, for suggestions. */
static const char *option_name(const void *context, size_t i)
{
    for (const struct option *const *t = context; *t; t++)
        for (const struct option *o = *t; o->name; o++)
            if (i-- == 0)
                return o->name;
    return NULL;
}

static bool parse_long(const struct option *const *tables, void *const *values, char **argv, int *i, int argc,
                       char *message, size_t size)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    struct match m = find_long(tables, values, name, length);
    if (!m.option) {
        char *word = strndup(name, length);
        const char *near = word ? args_nearest(word, option_name, tables) : NULL;
        snprintf(message, size,
                 near ? "unknown option '--%.*s'; did you mean --%s?" : "unknown option '--%.*s'",
                 (int)length, name, near);
        free(word);
        return false;
    }
    if (m.option->kind == OPTION_FLAG) {
        if (equals)
            snprintf(message, size, "--%s takes no value", m.option->name);
        return !equals && set(m, NULL, message, size);
    }
    if (!equals && *i + 1 >= argc) {
        snprintf(message, size, "--%s needs a value (%s)", m.option->name, m.option->value);
        return false;
    }
    return set(m, equals ? equals + 1 : argv[++*i], message, size);
}

/* -v, -qv, -o FILE, -oFILE. */
static bool parse_short(const struct option *const *tables, void *const *values, char **argv, int *i,
                        int argc, char *message, size_t size)
{
    for (const char *at = argv[*i] + 1; *at; at++) {
        struct match m = find_short(tables, values, *at);
        if (!m.option) {
            snprintf(message, size, "unknown option '-%c'", *at);
            return false;
        }
        if (m.option->kind == OPTION_FLAG) {
            if (!set(m, NULL, message, size))
                return false;
            continue;
        }
        if (!at[1] && *i + 1 >= argc) {
            snprintf(message, size, "-%c needs a value (%s)", *at, m.option->value);
            return false;
        }
        return set(m, at[1] ? at + 1 : argv[++*i], message, size);
    }
    return true;
}

bool args_parse(const struct option *const *tables, void *const *values, int argc, char **argv,
                struct args *out, char *message, size_t size)
{
    bool options = true;
    *out = (struct args){.operands = argv};
    for (int i = 0; i < argc; i++) {
        char *arg = argv[i];
        if (!options || arg[0] != '-' || !arg[1]) {
            out->operands[out->count++] = arg;
        } else if (strcmp(arg, "--") == 0) {
            options = false;
        } else if (!(arg[1] == '-' ? parse_long : parse_short)(tables, values, argv, &i, argc, message,
                                                               size)) {
            return false;
        }
    }
    return true;
}

/* Edits (insert, delete, replace, swap of neighbours) between two short words; capped at `most` + 1. */
static size_t distance(const char *a, const char *b, size_t most)
{
    enum { LONGEST = 31 };
    size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST || n > LONGEST)
        return most + 1;
    size_t row[3][LONGEST + 1];
    for (size_t j = 0; j <= n; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[m % 3][n];
}

const char *args_nearest(const char *word, const char *(*next)(const void *context, size_t i),
                         const void *context)
{
    const size_t most = 2;
    const char *best = NULL, *candidate;
    size_t best_distance = most + 1;
    for (size_t i = 0; (candidate = next(context, i)); i++) {
        size_t d = distance(word, candidate, most);
        if (d < best_distance && d < strlen(candidate)) {
            best = candidate;
            best_distance = d;
        }
    }
    return best;
}
