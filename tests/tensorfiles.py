"""Writers of tensor files, by hand from the formats' descriptions, for tests and fuzz seeds.

They write what they are told, so that a test can also tell them to lie. Peers that write the same formats for
real (the packages safetensors and gguf) are used under tests/conformance.
"""
import json
import struct

import numpy as np

SAFETENSORS_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
    "complex64": "C64",
}  # fmt: skip


def safetensors(tensors, metadata=None, order=None):
    """{name: array, or (dtype, shape, bytes)} as a safetensors file. `order` is that of the bytes."""
    entries, header = {}, {}
    for name, tensor in tensors.items():
        if isinstance(tensor, np.ndarray):
            tensor = (SAFETENSORS_DTYPES[tensor.dtype.name], list(tensor.shape), tensor.tobytes())
        entries[name] = tensor
    if metadata is not None:
        header["__metadata__"] = metadata
    body = b""
    for name in order or entries:
        dtype, shape, data = entries[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    return safetensors_raw(json.dumps(header), body)


def safetensors_raw(header, body=b"", length=None):
    """A file of exactly this header text, padded to eight bytes as the format's library does."""
    text = header.encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def npy_raw(header, data=b"", version=(1, 0)):
    """A .npy file of exactly this header text."""
    text = header.encode("utf-8" if version[0] > 2 else "latin-1")
    size = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + data


GGUF_TYPES = {
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q8_1": 9, "q2_k": 10,
    "q3_k": 11, "q4_k": 12, "q5_k": 13, "q6_k": 14, "iq2_xxs": 16, "iq4_nl": 20, "iq4_xs": 23, "i8": 24,
    "i16": 25, "i32": 26, "i64": 27, "f64": 28, "bf16": 30, "tq1_0": 34, "mxfp4": 39,
}  # fmt: skip

GGUF_VALUES = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
               "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}  # fmt: skip


class Gguf:
    """A GGUF file in the making.

    pair("general.alignment", "u32", 64); tensor("blk.0.w", "f32", [2, 3], bytes); file() -> bytes
    Shapes are row-major, as numpy has them.
    """

    def __init__(self, version=3, order="<", alignment=32):
        self.version, self.order, self.alignment = version, order, alignment
        self.pairs, self.tensors, self.data = [], [], b""

    def pack(self, code, *values):
        return struct.pack(self.order + code, *values)

    def string(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        return self.pack("Q", len(data)) + data

    def value(self, kind, value):
        """Type number and bytes of a metadata value; ("array", ("u32", [1, 2])) for an array."""
        if kind == "string":
            return 8, self.string(value)
        if kind == "array":
            element, items = value
            packed = [self.value(element, item) for item in items]
            number = packed[0][0] if packed else GGUF_VALUES[element][0]
            return 9, self.pack("IQ", number, len(items)) + b"".join(data for _, data in packed)
        number, code = GGUF_VALUES[kind]
        return number, self.pack(code, value)

    def pair(self, key, kind, value):
        number, data = self.value(kind, value)
        self.pairs.append(self.string(key) + self.pack("I", number) + data)
        return self

    def raw_pair(self, data):
        self.pairs.append(data)
        return self

    def tensor(self, name, kind, shape, data, offset=None):
        number = GGUF_TYPES[kind] if isinstance(kind, str) else kind
        self.data += b"\0" * (-len(self.data) % self.alignment)
        axes = b"".join(self.pack("Q", size) for size in reversed(shape))
        place = len(self.data) if offset is None else offset
        self.tensors.append(self.string(name) + self.pack("I", len(shape)) + axes + self.pack("IQ", number, place))
        self.data += data
        return self

    def file(self, tensors=None, pairs=None):
        head = b"GGUF" + self.pack("I", self.version)
        head += self.pack("QQ", len(self.tensors) if tensors is None else tensors,
                          len(self.pairs) if pairs is None else pairs)  # fmt: skip
        head += b"".join(self.pairs) + b"".join(self.tensors)
        return head + b"\0" * (-len(head) % self.alignment) + self.data


def values(tdbg, path, name=None):
    """The values of a tensor as `tdbg show` prints them: nested lists of int, float and bool."""
    return numbers(tdbg.json("show", path if name is None else f"{path}:{name}")["values"])


def numbers(item):
    """NaN and the infinities are strings in JSON."""
    if isinstance(item, list):
        return [numbers(i) for i in item]
    return float(item) if isinstance(item, str) else item


def same(shown, expected):
    """The shown values are those of the numpy array: equal shapes and bits (any NaN equals any other)."""
    if expected.dtype.kind != "f" or expected.size == 0:
        return shown == expected.tolist()
    with np.errstate(all="ignore"):
        shown = np.array(shown, np.float64).astype(expected.dtype)
    bits = f"u{expected.dtype.itemsize}"
    equal = np.ascontiguousarray(shown).view(bits) == np.ascontiguousarray(expected).view(bits)
    return shown.shape == expected.shape and bool(np.all(equal | (np.isnan(shown) & np.isnan(expected))))
