/* pickle.h: a Python pickle as data: a graph of values, and nothing ever runs.
 *
 * A pickle is a program for a small stack machine; Python's runs it and calls whatever it names. This one
 * knows every opcode of protocols 0 to 5 and calls nothing: where Python would import or call, it builds a
 * value that says so. What such an object means (a tensor, a dict with an order) is for readers to decide.
 *
 *     Python                             here
 *     collections.OrderedDict            GLOBAL "collections.OrderedDict"
 *     os.system("true")                  OBJECT {callable GLOBAL "os.system", args TUPLE ["true"]}
 *     torch's reference to a storage     PERSID of the id
 *
 * A value takes 16 bytes; text and bytes are borrowed from the pickle wherever it holds them as they are, so
 * the pickle must outlive the graph. The graph can share and contain itself (lists, dicts and objects do,
 * through the memo): whoever walks it must cap depth and visits.
 */
#ifndef TD_PICKLE_PICKLE_H
#define TD_PICKLE_PICKLE_H

#include "base/arena.h"
#include "base/status.h"

enum td_pickle_kind {
    TD_PICKLE_NONE,
    TD_PICKLE_BOOL,   /* integer */
    TD_PICKLE_INT,    /* integer */
    TD_PICKLE_BIGINT, /* beyond int64; text: two's complement little-endian, or decimal (`decimal`) */
    TD_PICKLE_FLOAT,  /* real */
    TD_PICKLE_STR,    /* text: UTF-8, surrogates let through as Python does */
    TD_PICKLE_BYTES,  /* text: bytes, bytearray, and Python 2 strings that are not UTF-8 */
    TD_PICKLE_LIST,   /* items */
    TD_PICKLE_TUPLE,  /* items */
    TD_PICKLE_SET,    /* items; frozenset too */
    TD_PICKLE_DICT,   /* items: key, value, key, value ... */
    TD_PICKLE_GLOBAL, /* text: "module.name" */
    TD_PICKLE_EXT,    /* integer: a code of copyreg's extension registry, a class only the writer knows */
    TD_PICKLE_OBJECT, /* object */
    TD_PICKLE_PERSID, /* id */
    TD_PICKLE_BUFFER  /* a buffer that was sent beside the pickle and is not in it */
};

#define TD_PICKLE_MAX_COUNT ((UINT64_C(1) << 48) - 1)

struct td_pickle_value {
    uint64_t kind : 8;
    uint64_t decimal : 1; /* BIGINT: as decimal digits */
    uint64_t python2 : 1; /* STR: bytes that happened to be UTF-8 */
    uint64_t moved : 1;   /* BYTES: a reader has put them where they outlive the graph */
    uint64_t tight : 1;   /* items have no room for more */
    uint64_t shared : 1;  /* items may be those of another list too */
    uint64_t count : 48;  /* bytes of text, or entries of items */
    union {
        int64_t integer;
        double real;
        const char *text; /* not NUL-terminated */
        struct td_pickle_value **items;
        struct td_pickle_object *object;
        struct td_pickle_value *id;
    };
};

/* Whatever came of calling something: args are what it was called with, the rest is what was done to the
 * result. */
struct td_pickle_object {
    struct td_pickle_value *callable;     /* never NULL */
    struct td_pickle_value *args;         /* a tuple; of INST, OBJ and NEWOBJ without the class itself */
    struct td_pickle_value *kwargs;       /* NEWOBJ_EX only, else NULL */
    struct td_pickle_value *state;        /* of BUILD; NULL when there was none */
    struct td_pickle_value appended, set; /* a LIST and a DICT: items of list and dict subclasses */
};

/* Somebody who takes dicts out of lists while the pickle is read, so that a long list need not be in memory
 * as a whole: true when it wants no more of the dict. That is left out of the list and empty from then on,
 * and the numbers it held are gone. What the dict holds else, and what the list has got before, stays. */
struct td_pickle_taker {
    void *context;
    bool (*take)(void *context, const struct td_pickle_value *list, const struct td_pickle_value *dict);
};

/* Zero means the default, which honest pickles of many GiB stay below. */
struct td_pickle_limits {
    size_t stack;                        /* values on the stack at once */
    size_t memo;                         /* values that may be referred to again */
    const struct td_pickle_taker *taker; /* NULL: nobody */
};

struct td_pickle {
    struct td_pickle_value *root;
    size_t consumed;                  /* bytes up to and with the STOP opcode; more may follow */
    struct td_pickle_value **persids; /* every PERSID made, in the order of the file */
    size_t persid_count;
};

/* Everything made lives in the arena, whose limit is the cap on memory. Offsets in errors count from `data`.
 */
TD_CHECK tdbg_status td_pickle_parse(const void *data, size_t size, const struct td_pickle_limits *limits,
                                     struct td_arena *arena, struct td_pickle *out, struct tdbg_error *error);

/* A STR, BYTES or GLOBAL of exactly this text. */
bool td_pickle_is(const struct td_pickle_value *value, enum td_pickle_kind kind, const char *text);

/* The value of the last entry of a DICT with this STR key (a later one replaces an earlier), or NULL. */
struct td_pickle_value *td_pickle_get(const struct td_pickle_value *dict, const char *key);

const char *td_pickle_kind_name(enum td_pickle_kind kind);

#endif
