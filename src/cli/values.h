/* values.h: the elements of a selection one by one, each as what it is: a float, an integer, a truth value or
 * a complex number. Loaded in chunks, so that any size streams. */
#ifndef TD_CLI_VALUES_H
#define TD_CLI_VALUES_H

#include "base/json.h"
#include "session/selection.h"

enum { VALUES_CHUNK = 4096 };

enum value_kind { VALUE_FLOAT, VALUE_INT, VALUE_UINT, VALUE_BOOL, VALUE_COMPLEX };

struct value {
    enum value_kind kind;
    union {
        double real;
        int64_t integer;
        uint64_t natural;
        bool truth;
        struct {
            double re, im;
        } complex;
    };
};

struct values {
    const struct td_selection *selection;
    enum td_dtype dtype;                      /* of an element as it is read */
    enum value_kind kind;                     /* of every element */
    const struct td_float_kind *own;          /* the float type itself: fewest digits, for people */
    const struct td_float_kind *wide;         /* at least float32: for programs, which know no smaller one */
    int64_t at, count;                        /* what is loaded */
    _Alignas(16) char raw[VALUES_CHUNK * 16]; /* as `dtype` */
    double real[VALUES_CHUNK];                /* the same as doubles, floats only */
};

void values_init(struct values *v, const struct td_selection *selection);

/* Loads elements [at, at + count) of the selection, at most VALUES_CHUNK. */
TD_CHECK tdbg_status values_load(struct values *v, int64_t at, int64_t count, struct tdbg_error *error);

/* Element `i` of the selection; loads the chunk around it when needed. */
TD_CHECK tdbg_status values_get(struct values *v, int64_t i, struct value *out, struct tdbg_error *error);

/* One value as JSON: floats so that they read back to the same bits, complex as [re, im]. */
void values_write(struct td_json *j, const struct values *v, const struct value *value);

#endif
