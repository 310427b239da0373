/* onnx.c: the tensors of an ONNX model, and of a tensor that ONNX wrote to a file of its own.
 *
 *     ModelProto                                    model.onnx
 *       ir_version, opset_import, ...
 *       graph
 *         initializer         TensorProto           "name"
 *         sparse_initializer  SparseTensorProto     "name" of its values
 *         node
 *           attribute         TensorProto           "node/attribute"; of a Constant: the name of its output
 *           attribute         GraphProto            "node/attribute/..." (bodies of If, Loop, Scan)
 *       functions             FunctionProto         "function/..."
 *       training_info         two GraphProto        "training_info.0/initialization/..."
 *
 *     TensorProto                                   input_0.pb, as in ONNX's test data
 *
 * A list of tensors or graphs in one attribute has ".0", ".1" and so on behind the attribute's name. A tensor
 * that cannot be read is skipped with its reason; only a file whose messages are damaged fails as a whole.
 * The messages come from onnx_model.c, which has bounded their depth: the recursion here needs no bound of
 * its own.
 */
#include "format/onnx_model.h"
#include "format/onnx_probe.h"
#include "format/onnx_tensor.h"
#include "format/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct reading {
    const struct td_source *source;
    struct td_onnx_file file;
    struct td_catalog *catalog;
    struct tdbg_error *error;
    size_t depth;               /* bytes of `path` that are the folders we are in */
    char path[TD_MAX_NAME + 1]; /* "node/attribute/", then the name at hand */
};

/* --- Names --------------------------------------------------------------------------------------------- */

static tdbg_status name_too_long(struct reading *r)
{
    return td_fail(r->error, TDBG_LIMIT, "a name of more than %d bytes", TD_MAX_NAME);
}

/* The name at hand, within the folders we are in. */
static tdbg_status put_name(struct reading *r, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length > TD_MAX_NAME - r->depth)
        return name_too_long(r);
    memcpy(r->path + r->depth, name ? name : "", length + 1);
    return TDBG_OK;
}

/* The same for item `index` of a list. */
static tdbg_status put_item_name(struct reading *r, const char *list, size_t index)
{
    size_t room = TD_MAX_NAME + 1 - r->depth;
    int length = snprintf(r->path + r->depth, room, "%s.%zu", list ? list : "", index);
    return length < 0 || (size_t)length >= room ? name_too_long(r) : TDBG_OK;
}

/* Makes the name at hand a folder, until the depth is set back to what it was. */
static tdbg_status enter(struct reading *r)
{
    size_t end = r->depth + strlen(r->path + r->depth);
    if (end == TD_MAX_NAME)
        return name_too_long(r);
    r->path[end] = '/';
    r->path[end + 1] = 0;
    r->depth = end + 1;
    return TDBG_OK;
}

/* --- Tensors ------------------------------------------------------------------------------------------- */

/* What is added has the name at hand, r->path. What is wrong with one tensor is a skip; what is wrong with
 * the machine is not. */
static tdbg_status skip(struct reading *r, tdbg_status status, const struct tdbg_error *why)
{
    if (status == TDBG_NOMEM)
        return td_fail_nomem(r->error);
    return td_catalog_skip(r->catalog, r->path, r->error, "%s", why->message);
}

static tdbg_status add_tensor(struct reading *r, const Onnx__TensorProto *tensor)
{
    struct td_view view;
    struct tdbg_error why;
    tdbg_status status = td_onnx_view(r->source, &r->file, tensor, &view, &why);
    if (status != TDBG_OK)
        return skip(r, status, &why);
    return td_catalog_add_view(r->catalog, r->path, td_reader_onnx.name, &view, r->error);
}

/* Positions in the row-major order of `shape`, taken apart into coordinates: [axes, nnz] in scratch space. */
static tdbg_status unravel(struct reading *r, const struct td_view *positions, const struct td_shape *shape,
                           int64_t count, struct td_view *out, struct tdbg_error *error)
{
    struct td_shape table = {.ndim = 2, .size = {shape->ndim, positions->count}};
    uint64_t bytes;
    void *scratch = NULL;
    TD_TRY(td_packed_bytes(TD_I64, &table, &bytes, error));
    if (bytes)
        TD_TRY(td_bundle_scratch(r->source->bundle, bytes, &scratch, error));
    int64_t *coordinates = scratch;
    for (int64_t i = 0; i < positions->count; i++) {
        int64_t rest;
        memcpy(&rest, positions->data + i * (int64_t)sizeof rest, sizeof rest);
        if (rest < 0 || rest >= count)
            return td_fail(error, TDBG_CORRUPT, "sparse position %" PRId64 " of %" PRId64, rest, count);
        for (int axis = shape->ndim - 1; axis >= 0; axis--) {
            coordinates[axis * positions->count + i] = rest % shape->size[axis];
            rest /= shape->size[axis];
        }
    }
    return td_view_packed(out, coordinates, bytes, TD_I64, &table, error);
}

static tdbg_status view_sparse(struct reading *r, const Onnx__SparseTensorProto *proto, struct td_sparse *out,
                               int64_t *count, struct tdbg_error *error)
{
    struct td_sparse sparse = {.kind = TD_COO};
    struct td_view indices;
    if (!proto->values || !proto->indices)
        return td_fail(error, TDBG_CORRUPT, "a sparse tensor without values or indices");
    TD_TRY(td_onnx_shape(proto->n_dims, proto->dims, &sparse.shape, error));
    TD_TRY(td_shape_count(&sparse.shape, count, error));
    TD_TRY(td_onnx_view(r->source, &r->file, proto->values, &sparse.values, error));
    TD_TRY(td_onnx_view(r->source, &r->file, proto->indices, &indices, error));
    int64_t nnz = sparse.values.count, rank = sparse.shape.ndim;
    const struct td_shape *given = &indices.shape;
    bool linear = given->ndim == 1 && given->size[0] == nnz;
    bool pairs = given->ndim == 2 && given->size[0] == nnz && given->size[1] == rank;
    if (rank == 0 || sparse.values.shape.ndim != 1 || indices.dtype != TD_I64 || (!linear && !pairs))
        return td_fail(error, TDBG_CORRUPT, "sparse indices that fit neither the values nor the shape");
    if (linear) {
        TD_TRY(unravel(r, &indices, &sparse.shape, *count, &sparse.indices, error));
    } else {
        struct td_shape turned = {.ndim = 2, .size = {rank, nnz}};
        int64_t strides[] = {1, rank};
        TD_TRY(td_view_strided(&sparse.indices, indices.data, (uint64_t)indices.count * sizeof(int64_t),
                               TD_I64, 0, &turned, strides, error));
    }
    *out = sparse;
    return TDBG_OK;
}

static tdbg_status add_sparse(struct reading *r, const Onnx__SparseTensorProto *proto)
{
    struct td_sparse *sparse = td_arena_alloc(&r->catalog->arena, sizeof *sparse);
    if (!sparse)
        return td_fail_nomem(r->error);
    int64_t count;
    struct tdbg_error why;
    tdbg_status status = view_sparse(r, proto, sparse, &count, &why);
    if (status != TDBG_OK)
        return skip(r, status, &why);
    uint64_t element = td_dtype_size(sparse->values.dtype);
    struct td_tensor tensor = {
        .format = td_reader_onnx.name,
        .dtype = sparse->values.dtype,
        .shape = sparse->shape,
        .count = count,
        .bytes = (uint64_t)sparse->values.count * element + (uint64_t)sparse->indices.count * sizeof(int64_t),
        .sparse = sparse,
    };
    return td_catalog_add(r->catalog, r->path, tensor, r->error);
}

/* The numbers an attribute holds itself; a scalar when `ndim` is 0. */
static tdbg_status add_numbers(struct reading *r, enum td_dtype dtype, const void *numbers, size_t count,
                               int ndim)
{
    size_t bytes = count * td_dtype_size(dtype); /* as unpacked in memory: no overflow */
    void *copy = td_arena_alloc(&r->catalog->arena, bytes);
    if (!copy)
        return td_fail_nomem(r->error);
    if (bytes)
        memcpy(copy, numbers, bytes);
    struct td_shape shape = {.ndim = ndim, .size = {(int64_t)count}};
    struct td_view view;
    TD_TRY(td_view_packed(&view, copy, bytes, dtype, &shape, r->error));
    return td_catalog_add_view(r->catalog, r->path, td_reader_onnx.name, &view, r->error);
}

/* --- Graphs -------------------------------------------------------------------------------------------- */

static tdbg_status add_graph(struct reading *r, const Onnx__GraphProto *graph);

/* A graph whose tensors are to have the name at hand as their folder. */
static tdbg_status add_inner_graph(struct reading *r, const Onnx__GraphProto *graph)
{
    size_t depth = r->depth;
    TD_TRY(enter(r));
    TD_TRY(add_graph(r, graph));
    r->depth = depth;
    return TDBG_OK;
}

static bool is(const char *text, const char *expected)
{
    return text && strcmp(text, expected) == 0;
}

/* A Constant goes by the name of its output: that is what the rest of the graph calls the value. */
static tdbg_status add_constant(struct reading *r, const Onnx__NodeProto *node)
{
    TD_TRY(put_name(r, node->n_output ? node->output[0] : NULL));
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        if (a->t)
            TD_TRY(add_tensor(r, a->t));
        else if (a->sparse_tensor)
            TD_TRY(add_sparse(r, a->sparse_tensor));
        else if (is(a->name, "value_float"))
            TD_TRY(add_numbers(r, TD_F32, &a->f, 1, 0));
        else if (is(a->name, "value_int"))
            TD_TRY(add_numbers(r, TD_I64, &a->i, 1, 0));
        else if (is(a->name, "value_floats"))
            TD_TRY(add_numbers(r, TD_F32, a->floats, a->n_floats, 1));
        else if (is(a->name, "value_ints"))
            TD_TRY(add_numbers(r, TD_I64, a->ints, a->n_ints, 1));
    }
    return TDBG_OK;
}

static tdbg_status add_attribute(struct reading *r, const Onnx__AttributeProto *a)
{
    TD_TRY(put_name(r, a->name));
    if (a->t)
        TD_TRY(add_tensor(r, a->t));
    if (a->sparse_tensor)
        TD_TRY(add_sparse(r, a->sparse_tensor));
    if (a->g)
        TD_TRY(add_inner_graph(r, a->g));
    for (size_t i = 0; i < a->n_tensors; i++) {
        TD_TRY(put_item_name(r, a->name, i));
        TD_TRY(add_tensor(r, a->tensors[i]));
    }
    for (size_t i = 0; i < a->n_sparse_tensors; i++) {
        TD_TRY(put_item_name(r, a->name, i));
        TD_TRY(add_sparse(r, a->sparse_tensors[i]));
    }
    for (size_t i = 0; i < a->n_graphs; i++) {
        TD_TRY(put_item_name(r, a->name, i));
        TD_TRY(add_inner_graph(r, a->graphs[i]));
    }
    return TDBG_OK;
}

/* By its own name, else by its first output's, else by its kind and place. */
static tdbg_status put_node_name(struct reading *r, const Onnx__NodeProto *node, size_t index)
{
    if (node->name && *node->name)
        return put_name(r, node->name);
    if (node->n_output && *node->output[0])
        return put_name(r, node->output[0]);
    return put_item_name(r, node->op_type, index);
}

static tdbg_status add_nodes(struct reading *r, Onnx__NodeProto *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is(nodes[i]->op_type, "Constant")) {
            TD_TRY(add_constant(r, nodes[i]));
            continue;
        }
        size_t depth = r->depth;
        TD_TRY(put_node_name(r, nodes[i], i));
        TD_TRY(enter(r));
        for (size_t j = 0; j < nodes[i]->n_attribute; j++)
            TD_TRY(add_attribute(r, nodes[i]->attribute[j]));
        r->depth = depth;
    }
    return TDBG_OK;
}

static tdbg_status add_graph(struct reading *r, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        TD_TRY(put_name(r, graph->initializer[i]->name));
        TD_TRY(add_tensor(r, graph->initializer[i]));
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sparse = graph->sparse_initializer[i];
        TD_TRY(put_name(r, sparse->values ? sparse->values->name : NULL));
        TD_TRY(add_sparse(r, sparse));
    }
    return add_nodes(r, graph->node, graph->n_node);
}

static tdbg_status add_training(struct reading *r, const Onnx__TrainingInfoProto *training)
{
    TD_TRY(enter(r));
    if (training->initialization) {
        TD_TRY(put_name(r, "initialization"));
        TD_TRY(add_inner_graph(r, training->initialization));
    }
    if (training->algorithm) {
        TD_TRY(put_name(r, "algorithm"));
        TD_TRY(add_inner_graph(r, training->algorithm));
    }
    r->depth = 0;
    return TDBG_OK;
}

static tdbg_status add_model(struct reading *r, const Onnx__ModelProto *model)
{
    TD_TRY(add_graph(r, model->graph));
    for (size_t i = 0; i < model->n_training_info; i++) {
        TD_TRY(put_item_name(r, "training_info", i));
        TD_TRY(add_training(r, model->training_info[i]));
    }
    for (size_t i = 0; i < model->n_functions; i++) {
        TD_TRY(put_name(r, model->functions[i]->name));
        TD_TRY(enter(r));
        TD_TRY(add_nodes(r, model->functions[i]->node, model->functions[i]->n_node));
        r->depth = 0;
    }
    return TDBG_OK;
}

/* --- The reader ---------------------------------------------------------------------------------------- */

static bool probe(const struct td_source *source)
{
    return td_onnx_probe_model(source) || td_onnx_probe_tensor(source);
}

static tdbg_status open_model(struct reading *r)
{
    TD_TRY(td_onnx_init_model(&r->file, r->source->data, r->source->size, r->error));
    tdbg_status status = add_model(r, r->file.model);
    td_onnx_release(&r->file);
    return status;
}

/* Here the tensor is the file, and what is wrong with it is wrong with the file. */
static tdbg_status open_tensor(struct reading *r)
{
    TD_TRY(td_onnx_init_tensor(&r->file, r->source->data, r->source->size, r->error));
    struct td_view view;
    tdbg_status status = td_onnx_view(r->source, &r->file, r->file.tensor, &view, r->error);
    if (status == TDBG_OK)
        status = td_catalog_add_view(r->catalog, r->file.tensor->name, td_reader_onnx.name, &view, r->error);
    td_onnx_release(&r->file);
    return status;
}

static tdbg_status open_onnx(const struct td_source *source, struct td_catalog *out, struct tdbg_error *error)
{
    struct reading r = {.source = source, .catalog = out, .error = error};
    return td_onnx_probe_model(source) ? open_model(&r) : open_tensor(&r);
}

const struct td_reader td_reader_onnx = {
    .name = "onnx", .probe = probe, .open = open_onnx, .covers = td_onnx_covers, .keeps_order = true};
