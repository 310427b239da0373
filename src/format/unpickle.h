/* unpickle.h: what the readers of pickles share: a graph of inert values becomes named tensors.
 *
 *     pickle/pickle.h --> value graph --> td_unpickle_walk --> catalogue
 *                                             |  asks of each object: what is it?  (unpickle_table.c)
 *                                             |  a tensor: build its descriptor    (torch_rebuild.c,
 * unpickle_numpy.c) \  where are a storage's bytes?      (the reader: find_storage)
 *
 * Objects are interpreted by the name of what would have made them, from one closed table; nothing is called
 * on behalf of a file. What the table does not know is reported as skipped, and searched for tensors inside.
 */
#ifndef TD_FORMAT_UNPICKLE_H
#define TD_FORMAT_UNPICKLE_H

#include "io/source.h"
#include "pickle/pickle.h"
#include "tensor/tensor.h"

/* The bytes behind one or more tensors. */
struct td_storage {
    const uint8_t *data;
    uint64_t bytes;
    enum td_dtype dtype;
    bool swapped;
};

struct td_unpickle {
    const char *format; /* of the tensors found */
    struct td_catalog *catalog;
    struct td_bundle *bundle; /* scratch space for what must be decoded */

    /* The pickle itself. What the graph borrows from it outlives the graph, what was decoded does not. */
    const uint8_t *data;
    size_t size;

    /* Bytes that may still be gone through to make something of a value; the walk sets it. In an honest
     * pickle each is once or twice; in one that shares a megabyte a million times it is not. */
    uint64_t budget;

    /* The storage a persistent id stands for; NULL where a pickle has no business with them. */
    tdbg_status (*find_storage)(const struct td_unpickle *u, const struct td_pickle_value *id,
                                struct td_storage *out, struct tdbg_error *error);
    const void *storages; /* find_storage's own */
};

/* Fills the catalogue from the graph; names begin with `prefix` ("" for none). */
TD_CHECK tdbg_status td_unpickle_walk(struct td_unpickle *u, const struct td_pickle_value *root,
                                      const char *prefix, struct tdbg_error *error);

/* --- What objects mean (unpickle_table.c) --- */

enum td_role {
    TD_ROLE_UNKNOWN,
    TD_ROLE_TENSOR,   /* build makes it */
    TD_ROLE_MAPPING,  /* a kind of dict */
    TD_ROLE_SEQUENCE, /* a kind of list: items from its first argument, then those appended */
    TD_ROLE_WRAPPER,  /* stands for its first argument */
    TD_ROLE_INSTANCE, /* copyreg's way to make an object of the class in its first argument */
    TD_ROLE_FACT      /* known, and no tensor: bytes, a device, a layout */
};

typedef tdbg_status td_build(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                             struct td_tensor *out, struct tdbg_error *error);

struct td_rebuild {
    const char *name;
    enum td_role role;
    td_build *build;
    int attributes; /* TENSOR: the argument with the attributes of its Python object; 0: none */
};

/* What the callable is known to make; never NULL. */
const struct td_rebuild *td_rebuild_find(const struct td_pickle_value *callable);

/* A value that must be a tensor: what holds indices, scales, a parameter's data. */
TD_CHECK tdbg_status td_rebuild_tensor(struct td_unpickle *u, const struct td_pickle_value *value, int depth,
                                       struct td_tensor *out, struct tdbg_error *error);

/* A PERSID by itself: the whole storage. */
TD_CHECK tdbg_status td_rebuild_storage(struct td_unpickle *u, const struct td_pickle_value *persid,
                                        struct td_tensor *out, struct tdbg_error *error);

td_build td_build_torch, td_build_torch_v3, td_build_inner, td_build_from_type, td_build_quantized,
    td_build_sparse, td_build_meta, td_build_wrapper, td_build_storage;
td_build td_build_numpy, td_build_numpy_buffer, td_build_numpy_scalar, td_build_complex;

/* The values of a numpy array of Python objects, or NULL when it is none. */
const struct td_pickle_value *td_numpy_objects(const struct td_pickle_object *object);

/* --- Reading values (unpickle_value.c) --- */

/* Argument `index` of an object, or NULL. */
static inline struct td_pickle_value *td_unpickle_arg(const struct td_pickle_object *object, size_t index)
{
    return index < object->args->count ? object->args->items[index] : NULL;
}

/* Entry `index` of a tuple or list, or NULL. */
struct td_pickle_value *td_unpickle_item(const struct td_pickle_value *value, size_t index);

/* An object made by calling the global `name`. */
bool td_unpickle_is_call(const struct td_pickle_value *value, const char *name);

TD_CHECK tdbg_status td_unpickle_int(const struct td_pickle_value *value, const char *what, int64_t *out,
                                     struct tdbg_error *error);

/* How much of a value's text a message shows: the precision of %.*s. */
static inline int td_unpickle_width(const struct td_pickle_value *value)
{
    return value->count < 160 ? (int)value->count : 160;
}

/* A tuple, list or torch.Size of integers. */
TD_CHECK tdbg_status td_unpickle_shape(const struct td_pickle_value *value, const char *what,
                                       struct td_shape *out, struct tdbg_error *error);

/* Takes `bytes` from the budget. */
TD_CHECK tdbg_status td_unpickle_spend(struct td_unpickle *u, uint64_t bytes, struct tdbg_error *error);

/* Something that stands for bytes: the pickles before protocol 3 have no opcode for them. */
bool td_unpickle_makes_bytes(const struct td_pickle_value *callable);

/* Bytes, in whatever disguise, where they outlive the graph. Only what the pickle does not hold as it is goes
 * to scratch space, and it goes there once: the value is changed to refer to it. */
TD_CHECK tdbg_status td_unpickle_bytes(struct td_unpickle *u, struct td_pickle_value *value,
                                       const uint8_t **data, size_t *size, struct tdbg_error *error);

/* A 0-d tensor of a value copied into the catalogue. */
TD_CHECK tdbg_status td_unpickle_scalar(struct td_unpickle *u, enum td_dtype dtype, const void *value,
                                        struct td_tensor *out, struct tdbg_error *error);

/* A tensor that is nothing but a view. */
struct td_tensor td_unpickle_dense(const struct td_unpickle *u, const struct td_view *view);

/* --- PyTorch's storages (torch_storage.c) --- */

/* What a persistent id of torch says:
 * ('storage', torch.FloatStorage, key, location, elements[, (view key, offset, elements)]) */
struct td_storage_id {
    const struct td_pickle_value *key;
    enum td_dtype dtype;
    uint64_t bytes;       /* of the whole */
    uint64_t view_offset; /* bytes; the part of the whole that is meant */
    uint64_t view_bytes;
};

TD_CHECK tdbg_status td_storage_id_parse(const struct td_pickle_value *id, struct td_storage_id *out,
                                         struct tdbg_error *error);

/* The element type that a global names ("torch.bfloat16"). */
TD_CHECK tdbg_status td_torch_dtype(const struct td_pickle_value *value, enum td_dtype *out,
                                    struct tdbg_error *error);

/* The storage that is all there is in a legacy torch file held in memory (torch_legacy.c). */
TD_CHECK tdbg_status td_torch_legacy_storage(const uint8_t *data, size_t size, struct td_storage *out,
                                             struct tdbg_error *error);

#endif
