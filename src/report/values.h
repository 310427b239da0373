/* values.h: elements one by one, each as what it is: a float, an integer, a truth value or
 * a complex number. Loaded in chunks, so that any size streams. */
#ifndef TD_REPORT_VALUES_H
#define TD_REPORT_VALUES_H

#include "base/json.h"
#include "session/elements.h"

enum { TD_VALUES_CHUNK = 4096 };

enum td_value_kind { TD_VALUE_FLOAT, TD_VALUE_INT, TD_VALUE_UINT, TD_VALUE_BOOL, TD_VALUE_COMPLEX };

struct td_value {
    enum td_value_kind kind;
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

struct td_values {
    struct td_elements elements;
    enum td_dtype dtype;              /* of an element as it is read */
    enum td_value_kind kind;          /* of every element */
    const struct td_float_kind *own;  /* the float type itself: fewest digits, for people */
    const struct td_float_kind *wide; /* at least float32: for programs, which know no smaller one */
    int64_t at, count;                /* what is loaded */
    _Alignas(16) char raw[TD_VALUES_CHUNK * 16]; /* as `dtype` */
    double real[TD_VALUES_CHUNK];                /* the same as doubles, floats only */
};

void td_values_init(struct td_values *v, struct td_elements elements);

/* Loads elements [at, at + count), at most TD_VALUES_CHUNK. */
TD_CHECK tdbg_status td_values_load(struct td_values *v, int64_t at, int64_t count, struct tdbg_error *error);

/* Element `i`; loads the chunk around it when needed. */
TD_CHECK tdbg_status td_values_get(struct td_values *v, int64_t i, struct td_value *out,
                                   struct tdbg_error *error);

/* One value as JSON: floats so that they read back to the same bits, complex as [re, im]. */
void td_values_write(struct td_json *j, const struct td_values *v, const struct td_value *value);

#endif
