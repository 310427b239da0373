"""Files that contradict their format, each named after its defect, with the exact text of the error.

    BAD["safetensors/header-cut-short.safetensors"] = (bytes, "header of 72 bytes in a file of 40 (at byte 0)")

tests/cli/test_bad_files.py writes each and runs tdbg on it; tests/fuzz/seeds.py hands them to the fuzzers.
"""
import io
import json
import pickle
import struct
import tarfile

import numpy as np

from tensorfiles import Gguf, npy_raw, safetensors, safetensors_raw
from torchfiles import floats, legacy_file, v2, zip_file

BAD = {}


def bad(name, data, error):
    BAD[name] = (data, error)


# --- safetensors ---

good = safetensors({"w": np.arange(6, dtype=np.float32).reshape(2, 3)})
body = bytes(24)


def header(body=body, **entries):
    return safetensors_raw(json.dumps(entries), body)


def entry(dtype="F32", shape=(2, 3), offsets=(0, 24)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


bad("safetensors/header-cut-short.safetensors", good[:40], "header of 72 bytes in a file of 40 (at byte 0)")
bad("safetensors/header-beyond-100-mib.safetensors", safetensors_raw("{}", length=1 << 40),
    "header of 1099511627776 bytes, 104857600 at most (at byte 0)")  # fmt: skip
bad("safetensors/data-cut-short.safetensors", good[:-1], "w: ends at byte 24 of the data, which has 23")
bad("safetensors/data-too-long.safetensors", good + b"x", "the tensors end at byte 24 of the data, which has 25")
bad("safetensors/header-not-json.safetensors", safetensors_raw("{nonsense}"),
    "header is not valid JSON: string or '}' expected near 'nonsense' (at byte 17)")  # fmt: skip
bad("safetensors/header-two-objects.safetensors", safetensors_raw("{}{}"),
    "header is not valid JSON: end of file expected near '{' (at byte 11)")  # fmt: skip
bad("safetensors/name-twice.safetensors",
    safetensors_raw('{"w":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"w":{}}', bytes(4)),
    "header is not valid JSON: duplicate object key near '\"w\"' (at byte 64)")  # fmt: skip
bad("safetensors/nests-too-deep.safetensors", safetensors_raw('{"w":' + "[" * 100 + "]" * 100 + "}"),
    "header nests deeper than 64 (at byte 76)")  # fmt: skip
bad("safetensors/metadata-not-strings.safetensors", header(b"", __metadata__={"a": 1}),
    "__metadata__ is not a map of strings")  # fmt: skip
bad("safetensors/no-dtype.safetensors", header(w={"shape": [], "data_offsets": [0, 24]}), "w: has no dtype")
bad("safetensors/no-shape.safetensors", header(w={"dtype": "F32", "data_offsets": [0, 24]}), "w: has no shape")
bad("safetensors/entry-not-an-object.safetensors", header(w=3), "w: has no dtype")
bad("safetensors/offsets-not-two.safetensors", header(w=entry(offsets=[24])), "w: data_offsets are not two offsets")
bad("safetensors/offsets-negative.safetensors", header(w=entry(offsets=[-1, 23])),
    "w: data_offsets are not two offsets")  # fmt: skip
bad("safetensors/offsets-backwards.safetensors", header(w=entry(offsets=[24, 0])),
    "w: data_offsets run backwards, from 24 to 0")  # fmt: skip
bad("safetensors/overlap.safetensors", header(a=entry(shape=[4], offsets=[0, 16]), b=entry(shape=[4], offsets=[8, 24])),
    "b: begins at byte 8 of the data, within a")  # fmt: skip
bad("safetensors/hole.safetensors", header(a=entry(shape=[2], offsets=[0, 8]), b=entry(shape=[2], offsets=[16, 24])),
    "b: begins at byte 16 of the data, not at 8")  # fmt: skip
bad("safetensors/size-not-of-shape.safetensors", header(w=entry(shape=[2, 4])),
    "w: F32 needs 32 bytes for its shape, has 24")  # fmt: skip
bad("safetensors/shape-negative.safetensors", header(w=entry(shape=[-2, -3])), "w: negative size -2 of axis 0")
bad("safetensors/shape-fractional.safetensors", header(w=entry(shape=[2.5])), "w: size of axis 0 is not an integer")
bad("safetensors/integer-beyond-64-bits.safetensors",
    safetensors_raw('{"w":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,0]}}'),
    "header is not valid JSON: too big integer near '99999999999999999999' (at byte 57)")  # fmt: skip

# --- npy ---

DICT = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"

bad("npy/data-cut-short.npy", npy_raw(DICT, bytes(23)), "needs 24 bytes of data, has 23 (at byte 70)")
bad("npy/header-cut-short.npy", npy_raw(DICT)[:40], "npy header is cut short (at byte 10)")
bad("npy/version-4.npy", npy_raw(DICT, bytes(24), (4, 0)), "npy version 4.0 is not supported (at byte 6)")
bad("npy/header-too-long.npy", b"\x93NUMPY\2\0" + struct.pack("<I", 1 << 31) + b"{}",
    "npy header of 2147483648 bytes, 1048576 at most (at byte 12)")  # fmt: skip


def bad_header(name, text, error, data=bytes(24)):
    bad(f"npy/{name}.npy", npy_raw(text, data), error)


bad_header("not-a-dict", "[1, 2]", "npy header: expected '{' (at byte 10)")
bad_header("key-missing", "{'descr': '<f4', 'shape': ()}", "npy header: descr, fortran_order or shape is missing (at byte 39)")
bad_header("key-unknown", "{'order': 1}", "npy header: a key that is not descr, fortran_order or shape (at byte 18)")
bad_header("key-twice", "{'shape': (), 'shape': ()}", "npy header: a key that occurs twice (at byte 31)")
bad_header("after-the-dict", DICT + "x", "npy header: something follows the dict (at byte 70)")
bad_header("code-in-header", "{'descr': __import__('os'), }", "npy header: expected a string (at byte 20)")
bad_header("type-unknown", DICT.replace("<f4", "<q9"), "npy header: '<q9' is no numpy type (at byte 25)")
bad_header("shape-negative", DICT.replace("(2, 3)", "(-2, 3)"), "npy header: expected a size (at byte 61)")
bad_header("shape-not-a-tuple", DICT.replace("(2, 3)", "(2)"), "npy header: a shape is not a tuple (at byte 62)")
bad_header("shape-huge", DICT.replace("(2, 3)", "(4294967296, 4294967296)"), "more than 2^48 elements")
bad_header("shape-beyond-64-bits", DICT.replace("(2, 3)", "(99999999999999999999,)"),
           "npy header: a size beyond 64 bits (at byte 79)")  # fmt: skip
bad_header("dimensions-33", DICT.replace("(2, 3)", f"({'1, ' * 33})"), "more than 32 dimensions")
bad_header("string-without-end", "{'descr: <f4}", "npy header: a string does not end (at byte 23)")
bad_header("order-not-a-bool", DICT.replace("False", "0"), "npy header: expected True or False (at byte 44)")
bad_header("record-beyond-64-bits", DICT.replace("'<f4'", "[('a', '|V18446744073709551615'), ('b', '<f4')]"),
           "npy header: a record beyond 64 bits (at byte 66)")  # fmt: skip
bad_header("records-nest-too-deep", DICT.replace("'<f4'", "[('a', " * 80 + "'<f4'" + ")]" * 80),
           "npy header nests deeper than 64")  # fmt: skip

# --- gguf ---

w = np.arange(6, dtype=np.float32).tobytes()


def gguf(**options):
    return Gguf(**options)


bad("gguf/version-1.gguf", gguf(version=1).file(), "gguf version 1 is not supported (at byte 4)")
bad("gguf/version-4.gguf", gguf(version=4).file(), "gguf version 4 is not supported (at byte 4)")
bad("gguf/first-fields-cut-short.gguf", gguf().file()[:20], "the file ends within its first fields (at byte 16)")
bad("gguf/more-pairs-than-bytes.gguf", gguf().file(pairs=1 << 60), "the file ends within its metadata (at byte 24)")
bad("gguf/more-tensors-than-bytes.gguf", gguf().file(tensors=1 << 60),
    "the file ends within its table of tensors (at byte 24)")  # fmt: skip
bad("gguf/key-longer-than-file.gguf", gguf().raw_pair(struct.pack("<Q", 1 << 50) + bytes(8)).file(),
    "the file ends within its metadata (at byte 32)")  # fmt: skip
bad("gguf/array-longer-than-file.gguf", gguf().raw_pair(struct.pack("<QIIQ", 0, 9, 10, 1 << 61) + bytes(8)).file(),
    "the file ends within its metadata (at byte 48)")  # fmt: skip
bad("gguf/value-of-unknown-type.gguf", gguf().raw_pair(struct.pack("<QI", 0, 13) + bytes(8)).file(),
    "metadata of unknown type 13 (at byte 36)")  # fmt: skip
bad("gguf/arrays-nest-too-deep.gguf",
    gguf().raw_pair(struct.pack("<QI", 0, 9) + struct.pack("<IQ", 9, 1) * 70 + bytes(16)).file(),
    "metadata nests deeper than 64 (at byte 816)")  # fmt: skip
bad("gguf/alignment-not-a-power-of-two.gguf", gguf().pair("general.alignment", "u32", 33).file(),
    "an alignment of 33, not a power of two (at byte 53)")  # fmt: skip
bad("gguf/alignment-zero.gguf", gguf().pair("general.alignment", "u32", 0).file(),
    "an alignment of 0, not a power of two (at byte 53)")  # fmt: skip
bad("gguf/alignment-a-string.gguf", gguf().pair("general.alignment", "string", "32").file(),
    "general.alignment is not a u32 (at byte 53)")  # fmt: skip
bad("gguf/offset-not-aligned.gguf", gguf().tensor("w", "f32", [2, 3], w + bytes(32), offset=4).file(),
    "w: offset 4 is no multiple of 32")  # fmt: skip
bad("gguf/data-cut-short.gguf", gguf().tensor("w", "f32", [2, 3], w).file()[:-1],
    "w: 24 bytes at offset 0 reach beyond the data, which has 23")  # fmt: skip
bad("gguf/offset-beyond-64-bits.gguf", gguf().tensor("w", "f32", [2, 3], w, offset=(1 << 64) - 32).file(),
    "w: 24 bytes at offset 18446744073709551584 reach beyond the data, which has 24")  # fmt: skip
bad("gguf/row-not-whole-blocks.gguf", gguf().tensor("w", "q4_0", [2, 33], bytes(72)).file(),
    "w: rows of 33 elements in blocks of 32")  # fmt: skip
bad("gguf/dimensions-33.gguf", gguf().tensor("w", "f32", [1] * 33, bytes(4)).file(),
    "a tensor of 33 dimensions, 32 at most (at byte 24)")  # fmt: skip
bad("gguf/shape-huge.gguf", gguf().tensor("w", "f32", [1 << 40, 1 << 40], w).file(), "w: more than 2^48 elements")
bad("gguf/name-twice.gguf", gguf().tensor("w", "f32", [1], bytes(4)).tensor("w", "f32", [1], bytes(4)).file(),
    "two tensors are named w")  # fmt: skip
bad("gguf/name-too-long.gguf", gguf().tensor("w" * 5000, "f32", [1], bytes(4)).file(),
    "a name of 5000 bytes, 4096 at most")  # fmt: skip

# --- index ---

bad("index/weight-map-not-a-map.safetensors.index.json", b'{"weight_map": [1]}', "weight_map is not a map")
bad("index/place-not-a-name.safetensors.index.json", b'{"weight_map": {"w": 1}}',
    "w: its place in weight_map is not a file name")  # fmt: skip
bad("index/not-json.safetensors.index.json", b'{"weight_map": {"w" "x"}}',
    "index is not valid JSON: ':' expected near '\"x\"' (at byte 23)")  # fmt: skip

# --- pickles ---

bad("pickle_file/no-stop.pkl", b"\x80\x04K\x01", "pickle: ends without a STOP (at byte 4)")
bad("pickle_file/text-cut-short.pkl", b"\x80\x04\x8c\x09abc.", "pickle: ends in the middle of SHORT_BINUNICODE (at byte 2)")
bad("pickle_file/opcode-unknown.pkl", b"\x80\x04N\xfe.", "pickle: unknown opcode 0xfe (at byte 3)")
bad("pickle_file/memo-entry-4-billion.pkl", b"\x80\x02Nr\xff\xff\xff\xff.",
    "pickle: memo entry 4294967295 after only 8 bytes (at byte 3)")  # fmt: skip
bad("pickle_file/memo-entry-missing.pkl", b"\x80\x02Nq\x01h\x00.", "pickle: memo entry 0 was never stored (at byte 5)")
bad("pickle_file/frame-beyond-the-end.pkl", b"\x80\x04\x95\xff\0\0\0\0\0\0\0N.",
    "pickle: a frame of 255 bytes with 2 left (at byte 2)")  # fmt: skip
bad("pickle_file/text-not-utf8.pkl", b"\x80\x02X\x01\0\0\0\xff.",
    "pickle: BINUNICODE of text that is not UTF-8 (at byte 2)")  # fmt: skip
bad("pickle_file/stack-empty.pkl", b"\x80\x02Na\x85.", "pickle: APPEND finds too little on the stack (at byte 3)")
bad("pickle_file/dict-of-odd-length.pkl", b"\x80\x02}(Nu.", "pickle: SETITEMS of a key without a value (at byte 5)")
bad("pickle_file/name-too-long.pkl", pickle.dumps({"a" * 5000: 1}), "a name of more than 4096 bytes")

# --- torch ---

bomb = [1]
for _ in range(40):
    bomb = [bomb, bomb]
one = v2(floats(), (4,), (1,))

bad("torch/pickle-cut-short.pth", zip_file(b"\x80\x02}X\x09\0\0\0key"),
    "data.pkl: pickle: ends in the middle of BINUNICODE (at byte 49)")  # fmt: skip
bad("torch/pickle-empty.pth", zip_file(b""), "data.pkl: pickle: ends without a STOP (at byte 46)")
middle = zip_file(one, {"0": bytes(16)}, byteorder="middle")
bad("torch/byteorder-neither.pth", middle,
    f"a byte order that is neither little nor big (at byte {middle.index(b'middle')})")  # fmt: skip
bad("torch/lists-that-share-2-to-the-40.pth", zip_file(bomb), "more ways to its values than it has bytes")

legacy = legacy_file(one, {"0": (4, bytes(16))})
keys, storage_type = legacy.index(b"\x80\x02]"), legacy.index(b"ctorch\nFloat")

bad("torch_legacy/version-of-the-future.pth", legacy_file(one, version=1002),
    "version 1002 of torch's legacy format, 1001 is known")  # fmt: skip
bad("torch_legacy/object-cut-short.pth", legacy[:200],
    f"pickle: ends in the middle of GLOBAL (at byte {storage_type})")  # fmt: skip
bad("torch_legacy/keys-not-a-list.pth", legacy_file(one, keys=7), "int where the keys of the storages belong")
bad("torch_legacy/keys-missing.pth", legacy[:keys], f"pickle: ends without a STOP (at byte {keys})")
bad("torch_legacy/version-not-a-number.pth", legacy_file(one, version="new"),
    "protocol version is str where an int belongs")  # fmt: skip


def tar(*names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return out.getvalue()


bad("torch_legacy/tar-of-before-0.1.10.pth", tar("sys_info", "pickle", "tensors", "storages"),
    "torch's tar format of before version 0.1.10: load and save it with a newer torch")  # fmt: skip
