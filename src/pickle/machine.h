/* machine.h: the parts the opcodes share; private to src/pickle.
 *
 * The stack is an array of values; marks are positions in it, kept beside it. Nothing below the last mark
 * may be touched until the mark is gone: `floor` says where that is, as in CPython.
 */
#ifndef TD_PICKLE_MACHINE_H
#define TD_PICKLE_MACHINE_H

#include "base/cursor.h"
#include "pickle/pickle.h"

#include <locale.h>

/* A list of values that grows on the heap while the machine runs. */
struct value_list {
    struct td_pickle_value **values;
    size_t count, capacity, limit;
};

/* An array that several lists may share. */
struct td_shared_array {
    struct td_pickle_value **items;
    size_t count;
};

enum { TD_REUSED_ROOM = 64, TD_SHARED_ARRAYS = 1 << 14 };

struct td_machine {
    struct td_cursor in;
    size_t at; /* where the current opcode stands */
    const char *opcode;
    struct td_arena *arena;
    struct tdbg_error *error;

    struct value_list stack, memo, persids;
    size_t *marks;
    size_t mark_count, mark_capacity;
    size_t floor;
    bool stopped;
    struct td_pickle_value *none, *yes, *no, *empty_tuple; /* made once, shared */
    locale_t c_locale;                                     /* for strtod, made when first needed */

    /* For a taker (take.c); free values are linked by their id, free arrays of a room by their first entry.
     */
    const struct td_pickle_taker *taker;
    struct td_pickle_value *free_values;
    struct td_pickle_value **free_arrays[TD_REUSED_ROOM + 1];
    struct td_shared_array *shared; /* TD_SHARED_ARRAYS of them, by hash; NULL without a taker */
};

/* Fails at the current opcode. */
tdbg_status td_machine_fail(struct td_machine *m, tdbg_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
TD_CHECK tdbg_status td_machine_truncated(struct td_machine *m);

TD_CHECK tdbg_status td_machine_mark(struct td_machine *m);
TD_CHECK tdbg_status td_machine_push(struct td_machine *m, struct td_pickle_value *value);
TD_CHECK tdbg_status td_machine_pop(struct td_machine *m, struct td_pickle_value **value);
TD_CHECK tdbg_status td_machine_top(struct td_machine *m, struct td_pickle_value **value);

/* Takes everything above the last mark, and the mark. The values stay valid until the next push. */
TD_CHECK tdbg_status td_machine_pop_mark(struct td_machine *m, struct td_pickle_value ***values,
                                         size_t *count);

TD_CHECK tdbg_status td_machine_new(struct td_machine *m, enum td_pickle_kind kind,
                                    struct td_pickle_value **out);
TD_CHECK tdbg_status td_machine_push_new(struct td_machine *m, enum td_pickle_kind kind);
TD_CHECK tdbg_status td_machine_push_text(struct td_machine *m, enum td_pickle_kind kind, const void *text,
                                          size_t size);

/* A string of Python 2: text when it is UTF-8, else bytes. */
TD_CHECK tdbg_status td_machine_push_python2(struct td_machine *m, const char *text, size_t size);
TD_CHECK tdbg_status td_machine_push_integer(struct td_machine *m, enum td_pickle_kind kind, int64_t value);
TD_CHECK tdbg_status td_machine_push_items(struct td_machine *m, enum td_pickle_kind kind,
                                           struct td_pickle_value *const *values, size_t count);

/* Appends to a list, set, dict or tuple under construction; its array doubles in the arena. */
TD_CHECK tdbg_status td_machine_extend(struct td_machine *m, struct td_pickle_value *container,
                                       struct td_pickle_value *const *values, size_t count);

/* Offers dicts to the taker before they are appended; how many of the values are left. */
size_t td_machine_take(struct td_machine *m, const struct td_pickle_value *list,
                       struct td_pickle_value **values, size_t count);

/* A value, or an array with exactly this room, that was taken before; NULL when there is none. */
struct td_pickle_value *td_machine_reuse(struct td_machine *m);
struct td_pickle_value **td_machine_reuse_array(struct td_machine *m, size_t room);

/* Memory for decoded text; NULL after failing. */
char *td_machine_text(struct td_machine *m, size_t size);

/* The next line without its end. */
TD_CHECK tdbg_status td_machine_line(struct td_machine *m, const char **text, size_t *size);

TD_CHECK tdbg_status td_machine_remember(struct td_machine *m, uint64_t index);
TD_CHECK tdbg_status td_machine_memoize(struct td_machine *m);
TD_CHECK tdbg_status td_machine_recall(struct td_machine *m, uint64_t index);

/* Text is UTF-8, or would be but for surrogates, which Python's pickles may hold. */
bool td_machine_text_valid(const char *text, size_t size);

/* The opcodes. opcodes.c: building values; opcodes_text.c: those of protocol 0, written as text. */
typedef tdbg_status opcode_run(struct td_machine *m);

struct opcode {
    const char *name;
    opcode_run *run;
};

extern const struct opcode td_pickle_opcodes[256];

opcode_run td_op_int, td_op_long, td_op_float, td_op_string, td_op_unicode, td_op_persid, td_op_get,
    td_op_put, td_op_global, td_op_inst;

/* Makes an OBJECT; args is a TUPLE. */
TD_CHECK tdbg_status td_machine_push_object(struct td_machine *m, struct td_pickle_value *callable,
                                            struct td_pickle_value *args, struct td_pickle_value *kwargs);
TD_CHECK tdbg_status td_machine_push_global(struct td_machine *m, const char *module, size_t module_size,
                                            const char *name, size_t name_size);
TD_CHECK tdbg_status td_machine_push_persid(struct td_machine *m, struct td_pickle_value *id);

#endif
