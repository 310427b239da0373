"""ONNX files for tests and fuzz seeds, written by the onnx package; the bad ones are good ones bent by hand."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {name: number for name, number in TensorProto.DataType.items() if name not in ("UNDEFINED", "STRING")}
FLOAT8 = {17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz"}


def sample(kind, shape=(2, 3)):
    """An array of the numpy type that stands for an element type, with its edge values in it."""
    dtype = onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[TYPES[kind]]
    random = np.random.RandomState(TYPES[kind])
    array = random.standard_normal(shape) * 50
    if dtype.kind == "c":
        array = array + 1j * random.standard_normal(shape)
    array = (array > 0 if dtype.kind == "b" else abs(array) if dtype.kind == "u" else array).astype(dtype)
    if dtype.kind in "iu":
        array.flat[0], array.flat[1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    elif dtype.kind == "f" and kind != "BFLOAT16":
        array.flat[0], array.flat[1] = -0.0, np.finfo(dtype).tiny / 4
    return array


def typed(name, kind, array):
    """The array in the field of its type: float_data, int32_data and so on."""
    return helper.make_tensor(name, TYPES[kind], array.shape, array.flatten().tolist())


def raw(name, array):
    return numpy_helper.from_array(array, name)


def float8(name, number, raw_data):
    bits = list(range(256))
    if raw_data:
        return TensorProto(name=name, data_type=number, dims=[256], raw_data=bytes(bits))
    return TensorProto(name=name, data_type=number, dims=[256], int32_data=bits)


def sparse(name, values, indices, shape):
    indices = np.asarray(indices, np.int64)
    return helper.make_sparse_tensor(raw(name, np.asarray(values, np.float32)), raw("", indices), list(shape))


def model(initializers=(), nodes=(), sparse_initializers=(), **more):
    graph = helper.make_graph(list(nodes), "graph", [], [], list(initializers),
                              sparse_initializer=list(sparse_initializers))  # fmt: skip
    return helper.make_model(graph, **more)


def typed_and_raw():
    """Every element type, in the field of its type and raw."""
    tensors = [typed(f"typed.{kind}", kind, sample(kind)) for kind in TYPES]
    # numpy has no bfloat16: the onnx package cannot write it raw.
    tensors += [raw(f"raw.{kind}", sample(kind)) for kind in TYPES if kind != "BFLOAT16"]
    return tensors


def nested():
    """Constants, subgraphs two deep, lists, a function: all the places a tensor can be."""

    def body(weight, nodes=()):
        return helper.make_graph(list(nodes), "body", [], [], [raw("w", np.full(2, weight, np.float32))])

    inner = helper.make_node("If", ["x"], ["z"], then_branch=body(3), else_branch=body(4))
    nodes = [
        helper.make_node("If", ["x"], ["y"], name="choose", then_branch=body(1, [inner]), else_branch=body(2)),
        helper.make_node("Constant", [], ["k"], value=raw("ignored", np.arange(3))),
        helper.make_node("Constant", [], ["k.float"], value_float=2.5),
        helper.make_node("Constant", [], ["k.int"], value_int=-7),
        helper.make_node("Constant", [], ["k.floats"], value_floats=[0.5, -1.5]),
        helper.make_node("Constant", [], ["k.ints"], value_ints=[1, 2**40]),
        helper.make_node("Constant", [], ["k.sparse"], sparse_value=sparse("", [5.0], [2], [4])),
        helper.make_node("ConstantOfShape", ["k"], ["filled"], value=raw("", np.ones(1, np.float32))),
        helper.make_node("Custom", [], [], tables=[raw("", np.zeros(1)), raw("", np.ones(1))]),
    ]
    constant = helper.make_node("Constant", [], ["c"], value=raw("", np.arange(2.0)))
    function = helper.make_function("domain", "scale", ["x"], ["c"], [constant], [helper.make_opsetid("", 15)])
    return model([raw("top", np.zeros(1))], nodes, functions=[function])


# --- Bytes as protobuf writes them, for what the onnx package refuses to write ---------------------------


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of the wire type that fits the value: an int as a varint, bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def model_of(graph):
    """A model of exactly these bytes as its graph. The graph's content begins at byte 4 or later."""
    return field(1, 8) + field(7, graph)


def model_of_tensor(tensor):
    return model_of(field(5, tensor))


def deep(levels):
    """A subgraph in a subgraph, `levels` times: GraphProto.node.attribute.g"""
    graph = b""
    for _ in range(levels):
        graph = field(1, field(5, field(6, graph)))
    return graph


FLOATS = field(1, 2) + field(2, 1)  # dims [2] and data_type FLOAT

# What is wrong with the messages is wrong with the file: name -> bytes, message.
BAD_FILES = {
    "graph-cut-short": (model_of_tensor(FLOATS)[:-1], "graph of ModelProto is cut short or damaged (at byte 2)"),
    "tensor-beyond-graph": (model_of(field(5, FLOATS)[:-1]),
                            "initializer of GraphProto is cut short or damaged (at byte 4)"),
    "tag-zero": (model_of(b"\0\0"), "a field of GraphProto is cut short or damaged (at byte 4)"),
    "varint-of-eleven-bytes": (model_of(b"\x0a" + b"\xff" * 10 + b"\1"),
                               "node of GraphProto is cut short or damaged (at byte 4)"),
    "group": (model_of(b"\x0b\x0c"), "node of GraphProto is cut short or damaged (at byte 4)"),
    "name-as-varint": (model_of(field(2, 5)), "name of GraphProto has the wrong wire type (at byte 4)"),
    "two-graphs": (model_of(b"") + field(7, b""), "graph of ModelProto is given twice (at byte 4)"),
    "two-raw-data": (model_of_tensor(FLOATS + 2 * field(9, b"12345678")),
                     "raw_data of TensorProto is given twice (at byte 20)"),
    "nested-without-end": (model_of(deep(100)), "messages nested more than 64 deep"),
    "dims-packed-badly": (model_of_tensor(field(1, b"\xff") + field(2, 1)),
                          "not a valid ModelProto: a packed field or a varint is damaged"),
    "name-of-5000-bytes": (model_of_tensor(FLOATS + field(8, b"n" * 5000)), "a name of more than 4096 bytes"),
}  # fmt: skip


def entry(key, value):
    return field(13, field(1, key) + field(2, value))


EXTERNAL = FLOATS + field(14, 1)

# What is wrong with a tensor concerns that tensor: name -> TensorProto, reason.
BAD_TENSORS = {
    "no-type": (field(1, 2), "no element type"),
    "unknown-type": (field(1, 2) + field(2, 99), "elements of unknown type 99"),
    "string": (field(1, 1) + field(2, 8) + field(6, b"text"), "elements of type string are not read"),
    "int4": (field(1, 2) + field(2, 22) + field(9, b"1"), "elements of type int4 are not read"),
    "segment": (FLOATS + field(3, field(1, 0)) + field(9, b"12345678"), "a segment of a larger tensor"),
    "raw-too-short": (FLOATS + field(9, b"1234567"), "needs 8 bytes of data, has 7"),
    "raw-too-long": (FLOATS + field(9, b"123456789"), "needs 8 bytes of data, has 9"),
    "floats-too-short": (FLOATS + field(4, b"1234"), "needs 8 bytes of data, has 4"),
    "no-data": (FLOATS, "needs 2 values, has 0 bytes of them"),
    "varints-too-few": (field(1, 3) + field(2, 7) + field(7, b"\x81\x01\x05"), "not the 3 values its shape asks for"),
    "varints-too-many": (field(1, 1) + field(2, 7) + field(7, b"\1\2"), "not the 1 values its shape asks for"),
    "varint-cut-short": (field(1, 2) + field(2, 7) + field(7, b"\1\x80"), "not the 2 values its shape asks for"),
    "values-of-nothing": (field(1, 0) + field(2, 7) + field(7, b"\1"), "needs 0 values, has 1 bytes of them"),
    "billion-values": (field(1, 10**9) + field(2, 6) + field(5, b"\1"),
                       "needs 1000000000 values, has 1 bytes of them"),
    "floats-of-int64": (field(1, 1) + field(2, 7) + field(4, b"1234"),
                        "elements of type int64 in a field for another type"),
    "raw-and-typed": (FLOATS + field(9, b"12345678") + field(4, b"12345678"), "data in more than one field"),
    "negative-dim": (field(1, 2**64 - 1) + field(2, 1), "negative size -1 of axis 0"),
    "overflowing-dims": (field(1, 2**40) * 2 + field(2, 1), "more than 2^48 elements"),
    "33-dims": (field(1, 1) * 33 + field(2, 1) + field(9, b"1234"), "33 dimensions, 32 at most"),
    "external-nowhere": (EXTERNAL, "external data without a location"),
    "external-both": (EXTERNAL + field(9, b"12345678"), "data both here and in another file"),
    "external-length": (EXTERNAL + entry(b"location", b"w.bin") + entry(b"length", b"9"),
                        "9 bytes of external data, needs 8"),
    "external-beyond": (EXTERNAL + entry(b"location", b"w.bin") + entry(b"offset", b"9"),
                        "external data at bytes 9 to 17 of 'w.bin', which has 16"),
    "external-offset": (EXTERNAL + entry(b"location", b"w.bin") + entry(b"offset", b"-1"),
                        "external data with offset '-1'"),
    "external-overflow": (EXTERNAL + entry(b"location", b"w.bin") + entry(b"offset", b"99999999999999999999"),
                          "external data with offset '99999999999999999999'"),
}  # fmt: skip
