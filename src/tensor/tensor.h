/* tensor.h: what a reader found out about one tensor, and the catalogue it fills.
 *
 * A tensor is a shape and a type plus where its bytes are. Most are dense: a view. Three are not, and stay as
 * they are stored until somebody reads values (kernel/load.h turns any of them into plain elements):
 *
 *     dense     view
 *     blocks    view, packed, of a block type: de-quantised when read
 *     affine    view of integers; value = scale * (q - zero), per tensor or per index of one axis
 *     sparse    index and value views; everything not named is zero, what is named twice adds up
 *
 * Everything here is borrowed: names and side tables live in the catalogue's arena, bytes in the source.
 */
#ifndef TD_TENSOR_TENSOR_H
#define TD_TENSOR_TENSOR_H

#include "base/arena.h"
#include "base/status.h"
#include "tensor/view.h"

/* scale and zero are 0-d or one per index of `axis`; any plain real type. */
struct td_affine {
    struct td_view scale, zero;
    int axis; /* -1: one scale for all */
};

enum td_sparse_kind {
    TD_COO, /* rows: [sparse axes, nnz] coordinates */
    TD_CSR, /* rows: [.., rows+1] offsets into columns; batches in front allowed */
    TD_CSC  /* columns compressed */
};

/* The values have shape [nnz, dense axes...] (COO) or [batch..., nnz] (CSR, CSC). */
struct td_sparse {
    enum td_sparse_kind kind;
    struct td_view indices; /* COO: [sparse_dim, nnz]; CSR: column indices; CSC: row indices */
    struct td_view offsets; /* CSR, CSC: the compressed axis */
    struct td_view values;
    struct td_shape shape; /* dense shape */
};

/* What the place of a tensor in its list says of when it was computed. All zero: nothing. */
struct td_sequence {
    uint32_t list;   /* the file it is in, counted from 1 */
    bool kept;       /* whose format keeps the order in which it was written */
    size_t at;       /* place in it */
    uint64_t noted;  /* the place that a sidecar of the dump notes for it, from 1 */
    int64_t written; /* when its file on disk was last written, in ns */
};

struct td_tensor {
    const char *name; /* key within its file, "" for a file's only unnamed tensor */
    const char *format;
    enum td_dtype dtype;
    struct td_shape shape;
    int64_t count;
    bool executed; /* recorded: its place in the list is its place in the execution */
    struct td_sequence sequence;
    uint64_t bytes;                 /* logical size: count * element size; blocks and sparse: as stored */
    struct td_view view;            /* unused when sparse */
    const struct td_affine *affine; /* NULL unless the type is affine */
    const struct td_sparse *sparse; /* NULL unless sparse */
};

struct td_skip {
    const char *name, *reason;
};

/* What one input holds. */
struct td_catalog {
    struct td_arena arena;
    struct td_tensor *tensors;
    size_t count, capacity;
    struct td_skip *skips;
    size_t skip_count, skip_capacity;
};

void td_catalog_init(struct td_catalog *c);
void td_catalog_release(struct td_catalog *c);

/* Adds a tensor; the name is copied (NULL counts as ""), non-UTF-8 bytes in it replaced, the rest is taken as
 * it is. `bytes` 0 is filled in. */
TD_CHECK tdbg_status td_catalog_add(struct td_catalog *c, const char *name, struct td_tensor tensor,
                                    struct tdbg_error *error);

/* The usual case: a dense or block tensor that is nothing but a view. */
TD_CHECK tdbg_status td_catalog_add_view(struct td_catalog *c, const char *name, const char *format,
                                         const struct td_view *view, struct tdbg_error *error);

/* Reports something that cannot be read; reason may be a printf format. */
TD_CHECK tdbg_status td_catalog_skip(struct td_catalog *c, const char *name, struct tdbg_error *error,
                                     const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
