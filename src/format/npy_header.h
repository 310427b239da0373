/* npy_header.h: what the header of a .npy array says, checked for form but not yet against the data. */
#ifndef TD_FORMAT_NPY_HEADER_H
#define TD_FORMAT_NPY_HEADER_H

#include "base/arena.h"
#include "tensor/view.h"

/* A numpy type string ("<f4", ">i8", "|b1", "f4"). */
struct td_npy_type {
    uint64_t size; /* bytes of one element */
    enum td_dtype dtype;
    bool swapped;
    bool pickled;       /* Python objects: a pickle follows the header, not elements */
    const char *reason; /* why tdbg does not show this type; NULL when it does and dtype holds */
};

/* False when the text is no numpy type. */
bool td_npy_type_parse(struct td_npy_type *out, const char *text);

/* One field of a structured type, or the whole element of a plain one (name ""). */
struct td_npy_field {
    struct td_npy_field *next;
    const char *name;
    struct td_npy_type type;
    struct td_shape shape; /* of the subarray within the record; usually 0-d */
    uint64_t offset;       /* within the record */
};

struct td_npy_header {
    struct td_npy_field *fields;
    uint64_t record; /* bytes of one element with all its fields */
    bool structured, fortran_order;
    struct td_shape shape;
    size_t size; /* of magic, version and header: where the data begins */
};

bool td_npy_probe(const uint8_t *data, size_t size);

/* Fields live in the arena. */
TD_CHECK tdbg_status td_npy_header_parse(struct td_npy_header *out, const uint8_t *data, size_t size,
                                         struct td_arena *arena, struct tdbg_error *error);

#endif
