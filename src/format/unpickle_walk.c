/* unpickle_walk.c: through the graph of a pickle, from the root to every tensor and scalar, naming them.
 *
 * A name is the keys on the way, joined with '.': dict keys, attributes of objects, places in lists. An
 * nn.Module is listed as its state_dict() would be, and within it only tensors count: its hyper-parameters
 * are nobody's activations.
 *
 * The graph may share (tied weights have several names) and may contain itself. Depth is capped, a value that
 * is among its own ancestors is not entered again, and the visits are bounded by the size of the pickle:
 * lists that share their elements ten levels deep have more paths than bytes, and end in an error.
 */
#include "format/unpickle.h"

#include "base/buffer.h"

#include <string.h>

/* Visits, and bytes to go through, that any pickle gets: a fraction of a second. */
enum { FREE_VISITS = 1 << 16, FREE_BYTES = 1 << 24 };

struct walk {
    struct td_unpickle *u;
    struct td_buffer path;
    const struct td_pickle_value *above[TD_MAX_DEPTH]; /* the containers we are in */
    int depth;
    uint64_t visits; /* left */
    uint64_t values; /* of Python, met so far */
    bool tensors_only;
    struct tdbg_error *error;
};

static tdbg_status visit(struct walk *w, const struct td_pickle_value *value);

/* --- Names --- */

static void print_value(struct td_buffer *out, const struct td_pickle_value *value, int depth);

static void print_items(struct td_buffer *out, const struct td_pickle_value *value, int depth)
{
    td_buffer_puts(out, "(");
    for (size_t i = 0; i < value->count && !out->failed; i++) {
        td_buffer_puts(out, i ? ", " : "");
        print_value(out, value->items[i], depth + 1);
    }
    td_buffer_puts(out, ")");
}

/* A key as a person would write it. */
static void print_value(struct td_buffer *out, const struct td_pickle_value *value, int depth)
{
    switch ((enum td_pickle_kind)value->kind) {
    case TD_PICKLE_STR:
    case TD_PICKLE_BYTES:
    case TD_PICKLE_GLOBAL:
        td_buffer_append(out, value->text, value->count);
        break;
    case TD_PICKLE_INT:
        td_buffer_printf(out, "%lld", (long long)value->integer);
        break;
    case TD_PICKLE_BOOL:
        td_buffer_puts(out, value->integer ? "True" : "False");
        break;
    case TD_PICKLE_FLOAT:
        td_buffer_printf(out, "%.15g", value->real);
        break;
    case TD_PICKLE_TUPLE:
        if (depth < 4) {
            print_items(out, value, depth);
            break;
        } /* fall through */
    default:
        td_buffer_puts(out, td_pickle_kind_name(value->kind));
    }
}

/* What an object is an object of. */
static const struct td_pickle_value *class_of(const struct td_pickle_object *object)
{
    const struct td_pickle_value *callable = object->callable;
    if (td_rebuild_find(callable)->role == TD_ROLE_INSTANCE && object->args->count > 0)
        callable = object->args->items[0];
    /* Legacy torch files write the class of a module as ('module', class, file, source). */
    if (callable->kind == TD_PICKLE_PERSID && td_unpickle_item(callable->id, 1))
        callable = callable->id->items[1];
    return callable;
}

/* Is the value here one to list? Counts it. */
static bool is_listed(struct walk *w)
{
    return !w->tensors_only && w->values++ < TD_MAX_PYTHON_VALUES;
}

static tdbg_status report_object(struct walk *w, const struct td_pickle_object *object)
{
    if (w->values++ >= TD_MAX_PYTHON_VALUES)
        return TDBG_OK;
    const struct td_pickle_value *class = class_of(object);
    const char *name = td_buffer_text(&w->path);
    if (class->kind == TD_PICKLE_GLOBAL)
        return td_catalog_skip(w->u->catalog, name, w->error, "object of class %.*s",
                               td_unpickle_width(class), class->text);
    if (class->kind == TD_PICKLE_EXT)
        return td_catalog_skip(w->u->catalog, name, w->error, "object of extension class %lld",
                               (long long)class->integer);
    return td_catalog_skip(w->u->catalog, name, w->error, "object of a class that is %s itself",
                           class->kind == TD_PICKLE_OBJECT ? "an object" : td_pickle_kind_name(class->kind));
}

static tdbg_status report(struct walk *w, const char *what)
{
    if (!is_listed(w))
        return TDBG_OK;
    return td_catalog_skip(w->u->catalog, td_buffer_text(&w->path), w->error, "%s", what);
}

static tdbg_status report_kind(struct walk *w, const struct td_pickle_value *value)
{
    if (!is_listed(w))
        return TDBG_OK;
    const char *name = td_buffer_text(&w->path);
    if (value->kind == TD_PICKLE_GLOBAL)
        return td_catalog_skip(w->u->catalog, name, w->error, "%.*s, not a tensor", td_unpickle_width(value),
                               value->text);
    return td_catalog_skip(w->u->catalog, name, w->error, "%s, not a tensor",
                           td_pickle_kind_name(value->kind));
}

/* --- Leaves --- */

/* A tensor, or why not. What is wrong with one tensor does not stop the others. */
static tdbg_status add_tensor(struct walk *w, tdbg_status status, const struct td_tensor *tensor,
                              const struct tdbg_error *why)
{
    const char *name = td_buffer_text(&w->path);
    switch (status) {
    case TDBG_OK:
        return td_catalog_add(w->u->catalog, name, *tensor, w->error);
    case TDBG_CORRUPT:
    case TDBG_UNSUPPORTED:
    case TDBG_LIMIT:
    case TDBG_NOTFOUND:
        return td_catalog_skip(w->u->catalog, name, w->error, "%s", why->message);
    default:
        if (w->error)
            *w->error = *why;
        return status;
    }
}

static tdbg_status visit_scalar(struct walk *w, enum td_dtype dtype, const void *value)
{
    if (!is_listed(w))
        return TDBG_OK;
    struct td_tensor tensor;
    TD_TRY(td_unpickle_scalar(w->u, dtype, value, &tensor, w->error));
    return td_catalog_add(w->u->catalog, td_buffer_text(&w->path), tensor, w->error);
}

static tdbg_status visit_persid(struct walk *w, const struct td_pickle_value *value)
{
    if (td_pickle_is(td_unpickle_item(value->id, 0), TD_PICKLE_STR, "module"))
        return report(w, "class of a module, not a tensor");
    struct td_tensor tensor;
    struct tdbg_error why;
    tdbg_status status = td_rebuild_storage(w->u, value, &tensor, &why);
    return add_tensor(w, status, &tensor, &why);
}

/* --- Containers --- */

static void cut_path(struct walk *w, size_t size)
{
    w->path.size = size;
    if (w->path.data)
        w->path.data[size] = 0;
}

static tdbg_status visit_child(struct walk *w, size_t path, const struct td_pickle_value *value)
{
    if (w->path.failed)
        return td_fail(w->error, TDBG_LIMIT, "a name of more than %d bytes", TD_MAX_NAME);
    TD_TRY(visit(w, value));
    cut_path(w, path);
    return TDBG_OK;
}

static tdbg_status visit_key(struct walk *w, const struct td_pickle_value *key,
                             const struct td_pickle_value *value)
{
    size_t path = w->path.size;
    td_buffer_puts(&w->path, path ? "." : "");
    print_value(&w->path, key, 0);
    return visit_child(w, path, value);
}

static tdbg_status visit_index(struct walk *w, size_t index, const struct td_pickle_value *value)
{
    size_t path = w->path.size;
    td_buffer_printf(&w->path, path ? ".%zu" : "%zu", index);
    return visit_child(w, path, value);
}

static tdbg_status visit_named(struct walk *w, const char *name, const struct td_pickle_value *value)
{
    size_t path = w->path.size;
    td_buffer_printf(&w->path, path ? ".%s" : "%s", name);
    return visit_child(w, path, value);
}

static tdbg_status visit_items(struct walk *w, const struct td_pickle_value *items)
{
    for (size_t i = 0; i < items->count; i++)
        TD_TRY(visit_index(w, i, items->items[i]));
    return TDBG_OK;
}

static tdbg_status visit_pairs(struct walk *w, const struct td_pickle_value *dict)
{
    for (size_t i = 0; i + 1 < dict->count; i += 2)
        TD_TRY(visit_key(w, dict->items[i], dict->items[i + 1]));
    return TDBG_OK;
}

/* The attributes of an object: a dict, or (dict, dict of slots), or whatever its class made of itself. */
static tdbg_status visit_state(struct walk *w, const struct td_pickle_value *state)
{
    if (!state || state->kind == TD_PICKLE_NONE)
        return TDBG_OK;
    if (state->kind == TD_PICKLE_DICT)
        return visit_pairs(w, state);
    const struct td_pickle_value *slots = td_unpickle_item(state, 1);
    if (state->kind == TD_PICKLE_TUPLE && state->count == 2 && slots->kind == TD_PICKLE_DICT) {
        TD_TRY(visit_state(w, state->items[0]->kind == TD_PICKLE_DICT ? state->items[0] : NULL));
        return visit_pairs(w, slots);
    }
    return visit_named(w, "state", state);
}

/* state_dict() keeps the versions of modules in an attribute of the dict itself. */
static tdbg_status visit_mapping(struct walk *w, const struct td_pickle_object *object)
{
    /* Before protocol 2, an OrderedDict is called with a list of [key, value]; a Counter with a dict. */
    const struct td_pickle_value *first = td_unpickle_arg(object, 0);
    if (first && first->kind == TD_PICKLE_DICT)
        TD_TRY(visit_pairs(w, first));
    for (size_t i = 0; first && first->kind == TD_PICKLE_LIST && i < first->count; i++) {
        const struct td_pickle_value *key = td_unpickle_item(first->items[i], 0);
        const struct td_pickle_value *value = td_unpickle_item(first->items[i], 1);
        if (key && value)
            TD_TRY(visit_key(w, key, value));
    }
    TD_TRY(visit_pairs(w, &object->set));
    if (td_pickle_get(object->state, "_metadata"))
        return TDBG_OK;
    return visit_state(w, object->state);
}

static tdbg_status visit_sequence(struct walk *w, const struct td_pickle_object *object)
{
    const struct td_pickle_value *first = td_unpickle_arg(object, 0);
    bool items = first && (first->kind == TD_PICKLE_LIST || first->kind == TD_PICKLE_TUPLE ||
                           first->kind == TD_PICKLE_SET);
    if (items)
        TD_TRY(visit_items(w, first));
    return visit_items(w, &object->appended);
}

/* --- Modules --- */

static bool is_module(const struct td_pickle_object *object)
{
    return td_pickle_get(object->state, "_parameters") && td_pickle_get(object->state, "_buffers") &&
           td_pickle_get(object->state, "_modules");
}

/* A module compiled by TorchScript: its tensors and submodules are plain attributes. */
static bool is_script_module(const struct td_pickle_object *object)
{
    static const char prefix[] = "__torch__.";
    const struct td_pickle_value *class = object->callable;
    return class->kind == TD_PICKLE_GLOBAL && class->count >= sizeof prefix - 1 &&
           memcmp(class->text, prefix, sizeof prefix - 1) == 0;
}

static tdbg_status visit_module(struct walk *w, const struct td_pickle_object *object)
{
    static const char *const parts[] = {"_parameters", "_buffers", "_modules"};
    const struct td_pickle_value *state = object->state;
    for (size_t i = 0; i + 1 < state->count; i += 2) {
        const struct td_pickle_value *key = state->items[i], *value = state->items[i + 1];
        bool part = false;
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            part |= td_pickle_is(key, TD_PICKLE_STR, parts[k]);
        if (part)
            TD_TRY(visit(w, value)); /* a dict whose keys go right under the module's name */
        else if (!td_pickle_is(key, TD_PICKLE_STR,
                               "_flat_weights")) /* a recurrent layer's parameters again */
            TD_TRY(visit_key(w, key, value));
    }
    return TDBG_OK;
}

/* --- Objects --- */

static tdbg_status visit_tensor(struct walk *w, const struct td_rebuild *rebuild,
                                const struct td_pickle_object *object)
{
    struct td_tensor tensor;
    struct tdbg_error why;
    tdbg_status status = rebuild->build(w->u, object, 0, &tensor, &why);
    TD_TRY(add_tensor(w, status, &tensor, &why));
    if (status != TDBG_OK) {
        const struct td_pickle_value *objects = td_numpy_objects(object);
        return objects ? visit_items(w, objects) : TDBG_OK;
    }
    bool before = w->tensors_only;
    w->tensors_only = true;
    TD_TRY(visit_state(w, rebuild->attributes ? td_unpickle_arg(object, (size_t)rebuild->attributes) : NULL));
    w->tensors_only = before;
    return TDBG_OK;
}

/* copyreg's helpers take the class, then perhaps a base class and what the base would be made of. */
static tdbg_status visit_instance_args(struct walk *w, const struct td_pickle_value *args)
{
    for (size_t i = 1; i < args->count; i++) {
        const struct td_pickle_value *arg = args->items[i];
        if (arg->kind == TD_PICKLE_DICT)
            TD_TRY(visit_pairs(w, arg));
        else if (arg->kind == TD_PICKLE_LIST || arg->kind == TD_PICKLE_TUPLE)
            TD_TRY(visit_items(w, arg));
        else if (arg->kind != TD_PICKLE_GLOBAL && arg->kind != TD_PICKLE_NONE)
            TD_TRY(visit_index(w, i - 1, arg));
    }
    return TDBG_OK;
}

/* An object of a class nobody here knows: say so, and list what it holds. */
static tdbg_status visit_unknown(struct walk *w, const struct td_pickle_object *object, bool instance)
{
    TD_TRY(report_object(w, object));
    if (instance)
        TD_TRY(visit_instance_args(w, object->args));
    else if (object->appended.count == 0)
        TD_TRY(visit_items(w, object->args));
    else if (object->args->count)
        TD_TRY(visit_named(w, "args", object->args));
    if (object->kwargs)
        TD_TRY(visit_pairs(w, object->kwargs));
    TD_TRY(visit_items(w, &object->appended));
    TD_TRY(visit_pairs(w, &object->set));
    return visit_state(w, object->state);
}

static tdbg_status visit_object(struct walk *w, const struct td_pickle_object *object)
{
    const struct td_rebuild *rebuild = td_rebuild_find(object->callable);
    bool before = w->tensors_only, module = is_module(object);
    if (module || is_script_module(object)) {
        w->tensors_only = true;
        TD_TRY(module ? visit_module(w, object) : visit_state(w, object->state));
        w->tensors_only = before;
        return TDBG_OK;
    }
    switch (rebuild->role) {
    case TD_ROLE_TENSOR:
        return visit_tensor(w, rebuild, object);
    case TD_ROLE_MAPPING:
        return visit_mapping(w, object);
    case TD_ROLE_SEQUENCE:
        return visit_sequence(w, object);
    case TD_ROLE_WRAPPER:
        return object->args->count ? visit(w, object->args->items[0]) : TDBG_OK;
    case TD_ROLE_FACT:
        return td_unpickle_makes_bytes(object->callable) ? report(w, "bytes, not a tensor")
                                                         : report_kind(w, object->callable);
    case TD_ROLE_INSTANCE:
    case TD_ROLE_UNKNOWN:
        break;
    }
    return visit_unknown(w, object, rebuild->role == TD_ROLE_INSTANCE);
}

/* --- The walk --- */

static tdbg_status visit_inside(struct walk *w, const struct td_pickle_value *value)
{
    const char *name = td_buffer_text(&w->path);
    for (int i = 0; i < w->depth; i++)
        if (w->above[i] == value)
            return td_catalog_skip(w->u->catalog, name, w->error, "refers back to itself");
    if (w->depth == TD_MAX_DEPTH)
        return td_catalog_skip(w->u->catalog, name, w->error, "nested more than %d deep", TD_MAX_DEPTH);
    w->above[w->depth++] = value;
    if (value->kind == TD_PICKLE_DICT)
        TD_TRY(visit_pairs(w, value));
    else if (value->kind == TD_PICKLE_OBJECT)
        TD_TRY(visit_object(w, value->object));
    else
        TD_TRY(visit_items(w, value));
    w->depth--;
    return TDBG_OK;
}

static tdbg_status visit(struct walk *w, const struct td_pickle_value *value)
{
    if (w->visits-- == 0)
        return td_fail(w->error, TDBG_LIMIT, "more ways to its values than it has bytes");
    const uint8_t truth = value->kind == TD_PICKLE_BOOL && value->integer;
    switch ((enum td_pickle_kind)value->kind) {
    case TD_PICKLE_BOOL:
        return visit_scalar(w, TD_BOOL, &truth);
    case TD_PICKLE_INT:
        return visit_scalar(w, TD_I64, &value->integer);
    case TD_PICKLE_FLOAT:
        return visit_scalar(w, TD_F64, &value->real);
    case TD_PICKLE_BIGINT:
        return report(w, "int beyond 64 bits");
    case TD_PICKLE_BUFFER:
        return report(w, "buffer kept outside the pickle");
    case TD_PICKLE_PERSID:
        return visit_persid(w, value);
    case TD_PICKLE_LIST:
    case TD_PICKLE_TUPLE:
    case TD_PICKLE_SET:
    case TD_PICKLE_DICT:
    case TD_PICKLE_OBJECT:
        return visit_inside(w, value);
    case TD_PICKLE_NONE:
    case TD_PICKLE_STR:
    case TD_PICKLE_BYTES:
    case TD_PICKLE_GLOBAL:
    case TD_PICKLE_EXT:
        break;
    }
    return report_kind(w, value);
}

tdbg_status td_unpickle_walk(struct td_unpickle *u, const struct td_pickle_value *root, const char *prefix,
                             struct tdbg_error *error)
{
    struct walk w = {.u = u, .visits = (uint64_t)u->size + FREE_VISITS, .error = error};
    u->budget = (uint64_t)u->size * 4 + FREE_BYTES;
    td_buffer_init(&w.path, TD_MAX_NAME);
    td_buffer_puts(&w.path, prefix);
    tdbg_status status = visit(&w, root);
    if (status == TDBG_OK && w.values > TD_MAX_PYTHON_VALUES)
        status = td_catalog_skip(u->catalog, prefix, error, "%llu more Python values are not listed",
                                 (unsigned long long)(w.values - TD_MAX_PYTHON_VALUES));
    td_buffer_release(&w.path);
    return status;
}
