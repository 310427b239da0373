"""GGUF: plain types, block formats against values of the gguf package, both byte orders, what is skipped."""
import numpy as np
import pytest

from tensorfiles import Gguf, same, values

RANDOM = np.random.default_rng(13)
PLAIN = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1"}
NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16",
         "i8": "int8"}  # fmt: skip
BLOCKS = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs"]


def random_array(dtype, shape):
    dtype = np.dtype(dtype)
    return np.frombuffer(RANDOM.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def with_metadata(gguf):
    """One pair of every type, arrays of all kinds."""
    gguf.pair("general.architecture", "string", "llama").pair("f", "f32", 0.5).pair("b", "bool", True)
    for kind in ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f64"):
        gguf.pair(f"n.{kind}", kind, 1).pair(f"a.{kind}", "array", (kind, [1, 2, 3]))
    gguf.pair("tokens", "array", ("string", ["<s>", "", "▁the"]))
    gguf.pair("nested", "array", ("array", [("string", ["x"]), ("u16", [1, 2])]))
    return gguf.pair("empty", "array", ("u32", []))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", PLAIN)
def test_plain_types(tdbg, tmp_path, kind, version):
    array = random_array(PLAIN[kind], (2, 3, 4))
    path = tmp_path / "a.gguf"
    path.write_bytes(with_metadata(Gguf(version)).tensor("one", "i8", [3], b"abc").tensor("x", kind, [2, 3, 4], array.tobytes()).file())
    assert tdbg.json("ls", path)["tensors"][1] == {
        "name": "x", "path": str(path), "dtype": NAMES[kind], "shape": [2, 3, 4], "bytes": array.nbytes,
        "format": "gguf"}  # fmt: skip
    assert same(values(tdbg, path, "x"), array)


def test_bfloat16(tdbg, tmp_path):
    upper = np.array([0x3F80, 0xC049, 0x7F80], np.uint16)
    path = tmp_path / "a.gguf"
    path.write_bytes(Gguf().tensor("x", "bf16", [3], upper.tobytes()).file())
    assert same(values(tdbg, path, "x"), (upper.astype(np.uint32) << 16).view(np.float32))


@pytest.mark.parametrize("kind", BLOCKS)
def test_block_formats(tdbg, tmp_path, data, kind):
    """tests/data/make_gguf_golden.py stores random blocks and what the gguf package makes of them."""
    golden = np.load(data / "gguf_golden.npz")
    blocks, expected = golden[f"{kind}.blocks"], golden[f"{kind}.values"]
    path = tmp_path / "a.gguf"
    path.write_bytes(Gguf().tensor("x", kind, list(expected.shape), blocks.tobytes()).file())
    listed = tdbg.json("ls", path)["tensors"]
    assert listed[0]["dtype"] == kind and listed[0]["bytes"] == blocks.nbytes
    assert same(values(tdbg, path, "x"), expected)


def test_part_of_a_block(tdbg, tmp_path, data):
    golden = np.load(data / "gguf_golden.npz")
    blocks, expected = golden["q5_k.blocks"], golden["q5_k.values"]
    path = tmp_path / "a.gguf"
    path.write_bytes(Gguf().tensor("x", "q5_k", list(expected.shape), blocks.tobytes()).file())
    assert same(tdbg.json("show", f"{path}:x[1,30:70]")["values"], expected[1, 30:70])


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_alignment(tdbg, tmp_path, alignment):
    gguf = Gguf(alignment=alignment).pair("general.alignment", "u32", alignment)
    gguf.tensor("a", "i8", [3], b"abc").tensor("b", "i8", [2], b"de")
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf.file())
    assert values(tdbg, path, "a") == [97, 98, 99] and values(tdbg, path, "b") == [100, 101]


def test_big_endian(tdbg, tmp_path):
    array = random_array(">f4", (2, 3))
    gguf = with_metadata(Gguf(order=">")).tensor("x", "f32", [2, 3], array.tobytes())
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf.tensor("q", "q8_0", [32], bytes(34)).file())
    answer = tdbg.json("ls", path)
    assert [t["name"] for t in answer["tensors"]] == ["x"]
    assert answer["skipped"][0]["reason"] == "block format q8_0 in a big-endian file is not supported"
    assert same(values(tdbg, path, "x"), array.astype("<f4"))


def test_skipped(tdbg, tmp_path):
    gguf = Gguf().tensor("a", "iq2_xxs", [256], bytes(66)).tensor("b", "tq1_0", [256], bytes(54))
    gguf.tensor("c", "mxfp4", [32], bytes(17)).tensor("d", 99, [1], bytes(4)).tensor("x", "i8", [1], b"\7")
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf.file())
    answer = tdbg.json("ls", path)
    assert {s["name"]: s["reason"] for s in answer["skipped"]} == {
        "a": "block format iq2_xxs is not supported",
        "b": "block format tq1_0 is not supported",
        "c": "block format mxfp4 is not supported",
        "d": "unknown type 99",
    }
    assert values(tdbg, path, "x") == [7]


def test_without_tensors(tdbg, tmp_path):
    """A vocabulary file: metadata only."""
    path = tmp_path / "a.gguf"
    path.write_bytes(with_metadata(Gguf()).file())
    assert tdbg.json("ls", path)["tensors"] == []


def test_cut_short(tdbg, tmp_path):
    gguf = with_metadata(Gguf())
    for i in range(4):
        gguf.tensor(f"blk.{i}.weight", "f32", [8, 9], random_array("<f4", (8, 9)).tobytes())
    whole = gguf.file()
    path = tmp_path / "a.gguf"
    for size in range(0, len(whole), 64):
        path.write_bytes(whole[:size])
        tdbg.fails("ls", path)
