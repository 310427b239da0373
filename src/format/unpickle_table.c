/* unpickle_table.c: everything tdbg knows to make of a pickled object, by the name of what would make it.
 *
 * Closed: a name that is not here makes nothing. Names that modules had in older versions are here too.
 */
#include "format/unpickle.h"

#include <string.h>

static const struct td_rebuild unknown = {"", TD_ROLE_UNKNOWN, NULL, 0};

static const struct td_rebuild table[] = {
    {"torch._utils._rebuild_tensor_v2", TD_ROLE_TENSOR, td_build_torch, 0},
    {"torch._utils._rebuild_tensor_v3", TD_ROLE_TENSOR, td_build_torch_v3, 0},
    {"torch._utils._rebuild_tensor", TD_ROLE_TENSOR, td_build_torch, 0},
    {"torch._utils._rebuild_parameter", TD_ROLE_TENSOR, td_build_inner, 0},
    {"torch._utils._rebuild_parameter_with_state", TD_ROLE_TENSOR, td_build_inner, 3},
    {"torch._utils._rebuild_qtensor", TD_ROLE_TENSOR, td_build_quantized, 0},
    {"torch._utils._rebuild_sparse_tensor", TD_ROLE_TENSOR, td_build_sparse, 0},
    {"torch._utils._rebuild_sparse_csr_tensor", TD_ROLE_TENSOR, td_build_sparse, 0},
    {"torch._utils._rebuild_device_tensor_from_numpy", TD_ROLE_TENSOR, td_build_inner, 0},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", TD_ROLE_TENSOR, td_build_inner, 0},
    {"torch._utils._rebuild_xla_tensor", TD_ROLE_TENSOR, td_build_inner, 0},
    {"torch._utils._rebuild_meta_tensor_no_storage", TD_ROLE_TENSOR, td_build_meta, 0},
    {"torch._utils._rebuild_wrapper_subclass", TD_ROLE_TENSOR, td_build_wrapper, 0},
    {"torch._tensor._rebuild_from_type_v2", TD_ROLE_TENSOR, td_build_from_type, 3},
    {"torch._tensor._rebuild_from_type", TD_ROLE_TENSOR, td_build_from_type, 3},
    {"torch.tensor._rebuild_from_type", TD_ROLE_TENSOR, td_build_from_type, 3},
    {"torch.storage._load_from_bytes", TD_ROLE_TENSOR, td_build_storage, 0},

    {"numpy.core.multiarray._reconstruct", TD_ROLE_TENSOR, td_build_numpy, 0},
    {"numpy._core.multiarray._reconstruct", TD_ROLE_TENSOR, td_build_numpy, 0},
    {"numpy.core.multiarray.scalar", TD_ROLE_TENSOR, td_build_numpy_scalar, 0},
    {"numpy._core.multiarray.scalar", TD_ROLE_TENSOR, td_build_numpy_scalar, 0},
    {"numpy.core.numeric._frombuffer", TD_ROLE_TENSOR, td_build_numpy_buffer, 0},
    {"numpy._core.numeric._frombuffer", TD_ROLE_TENSOR, td_build_numpy_buffer, 0},
    {"builtins.complex", TD_ROLE_TENSOR, td_build_complex, 0},
    {"__builtin__.complex", TD_ROLE_TENSOR, td_build_complex, 0},

    {"collections.OrderedDict", TD_ROLE_MAPPING, NULL, 0},
    {"collections.defaultdict", TD_ROLE_MAPPING, NULL, 0},
    {"collections.Counter", TD_ROLE_MAPPING, NULL, 0},
    {"builtins.dict", TD_ROLE_MAPPING, NULL, 0},
    {"__builtin__.dict", TD_ROLE_MAPPING, NULL, 0},
    {"builtins.set", TD_ROLE_SEQUENCE, NULL, 0},
    {"builtins.frozenset", TD_ROLE_SEQUENCE, NULL, 0},
    {"__builtin__.set", TD_ROLE_SEQUENCE, NULL, 0},
    {"__builtin__.frozenset", TD_ROLE_SEQUENCE, NULL, 0},
    {"collections.deque", TD_ROLE_SEQUENCE, NULL, 0},
    {"torch.Size", TD_ROLE_SEQUENCE, NULL, 0},
    {"torch.jit._pickle.build_intlist", TD_ROLE_WRAPPER, NULL, 0},
    {"torch.jit._pickle.build_doublelist", TD_ROLE_WRAPPER, NULL, 0},
    {"torch.jit._pickle.build_boollist", TD_ROLE_WRAPPER, NULL, 0},
    {"torch.jit._pickle.build_tensorlist", TD_ROLE_WRAPPER, NULL, 0},
    {"torch.jit._pickle.restore_type_tag", TD_ROLE_WRAPPER, NULL, 0},

    {"copyreg._reconstructor", TD_ROLE_INSTANCE, NULL, 0},
    {"copy_reg._reconstructor", TD_ROLE_INSTANCE, NULL, 0},
    {"copyreg.__newobj__", TD_ROLE_INSTANCE, NULL, 0},
    {"copy_reg.__newobj__", TD_ROLE_INSTANCE, NULL, 0},

    {"torch.device", TD_ROLE_FACT, NULL, 0},
    {"torch.serialization._get_layout", TD_ROLE_FACT, NULL, 0},
    {"numpy.dtype", TD_ROLE_FACT, NULL, 0},
    {"_codecs.encode", TD_ROLE_FACT, NULL, 0},
    {"builtins.bytes", TD_ROLE_FACT, NULL, 0},
    {"builtins.bytearray", TD_ROLE_FACT, NULL, 0},
    {"__builtin__.bytes", TD_ROLE_FACT, NULL, 0},
    {"__builtin__.bytearray", TD_ROLE_FACT, NULL, 0},
};

const struct td_rebuild *td_rebuild_find(const struct td_pickle_value *callable)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (td_pickle_is(callable, TD_PICKLE_GLOBAL, table[i].name))
            return &table[i];
    return &unknown;
}

tdbg_status td_rebuild_tensor(struct td_unpickle *u, const struct td_pickle_value *value, int depth,
                              struct td_tensor *out, struct tdbg_error *error)
{
    if (depth > TD_MAX_DEPTH)
        return td_fail(error, TDBG_LIMIT, "a tensor wrapped more than %d times", TD_MAX_DEPTH);
    const struct td_rebuild *rebuild =
        value && value->kind == TD_PICKLE_OBJECT ? td_rebuild_find(value->object->callable) : &unknown;
    if (rebuild->role != TD_ROLE_TENSOR)
        return td_fail(error, TDBG_CORRUPT, "%s where a tensor belongs",
                       value ? td_pickle_kind_name(value->kind) : "nothing");
    return rebuild->build(u, value->object, depth, out, error);
}

tdbg_status td_build_complex(struct td_unpickle *u, const struct td_pickle_object *object, int depth,
                             struct td_tensor *out, struct tdbg_error *error)
{
    (void)depth;
    double parts[2];
    for (size_t i = 0; i < 2; i++) {
        const struct td_pickle_value *part = td_unpickle_arg(object, i);
        if (!part || part->kind != TD_PICKLE_FLOAT)
            return td_fail(error, TDBG_CORRUPT, "a complex number without its parts");
        parts[i] = part->real;
    }
    return td_unpickle_scalar(u, TD_C128, parts, out, error);
}
