"""safetensors: every dtype, the order of the file, what is skipped, files cut short."""
import json

import numpy as np
import pytest

from tensorfiles import safetensors, safetensors_raw, same, values

RANDOM = np.random.default_rng(7)
DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]


def random_array(dtype, shape):
    return np.frombuffer(RANDOM.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values(tdbg, tmp_path, dtype):
    array = random_array(dtype, (3, 5))
    tensors = {"x": array, "scalar": np.array(array[1, 1]), "none": array[:0, 0]}
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors(tensors))
    for name, expected in tensors.items():
        shown = tdbg.json("show", f"{path}:{name}")
        assert shown["dtype"] == dtype and shown["shape"] == list(expected.shape)
        assert same(values(tdbg, path, name), expected)


def test_bool_and_complex(tdbg, tmp_path):
    truth, complex_ = np.array([True, False, True]), np.array([1 + 2j, -3.5j], np.complex64)
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({"b": truth, "c": complex_}))
    assert values(tdbg, path, "b") == [True, False, True]
    assert values(tdbg, path, "c") == [[1.0, 2.0], [0.0, -3.5]]


def test_pairs_that_a_note_calls_complex(tdbg, tmp_path):
    """As recorded runs hold complex128; a note on anything but float64 with a last axis of two says nothing."""
    path = tmp_path / "a.safetensors"
    pairs = RANDOM.standard_normal((3, 2))
    tensors = {"z": pairs, "one": pairs[0], "plain": pairs, "three": np.zeros(3), "scalar": np.zeros(()), "single": np.zeros((2, 2), "float32")}
    path.write_bytes(safetensors(tensors, {f"complex128:{name}": "" for name in (*tensors, "nowhere") if name != "plain"}))
    assert [(t["dtype"], t["shape"]) for t in tdbg.json("ls", path)["tensors"]] == [
        ("complex128", [3]), ("complex128", []), ("float64", [3, 2]), ("float64", [3]), ("float64", []), ("float32", [2, 2])]
    assert same(values(tdbg, path, "z"), pairs) and same(values(tdbg, path, "one"), pairs[0])


def test_small_floats(tdbg, tmp_path):
    """bfloat16 is the upper half of a float32; of the float8 kinds the conformance tests check all values."""
    upper = np.array([0x3F80, 0xC049, 0x7F80, 0x7FC0, 0x0001], np.uint16)
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({
        "bf16": ("BF16", [5], upper.tobytes()),
        "e4m3": ("F8_E4M3", [4], bytes([0x38, 0xB8, 0x7E, 0x7F])),
        "e5m2": ("F8_E5M2", [4], bytes([0x3C, 0xBC, 0x7C, 0x7E])),
        "e4m3fnuz": ("F8_E4M3FNUZ", [3], bytes([0x40, 0x80, 0x7F])),
        "e5m2fnuz": ("F8_E5M2FNUZ", [3], bytes([0x40, 0x80, 0x7F])),
    }))  # fmt: skip
    assert same(values(tdbg, path, "bf16"), (upper.astype(np.uint32) << 16).view(np.float32))
    assert same(values(tdbg, path, "e4m3"), np.array([1, -1, 448, np.nan], np.float32))
    assert same(values(tdbg, path, "e5m2"), np.array([1, -1, np.inf, np.nan], np.float32))
    assert same(values(tdbg, path, "e4m3fnuz"), np.array([1, np.nan, 240], np.float32))
    assert same(values(tdbg, path, "e5m2fnuz"), np.array([1, np.nan, 57344], np.float32))
    names = {t["name"]: t["dtype"] for t in tdbg.json("ls", path)["tensors"]}
    assert names == {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
                     "e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz"}  # fmt: skip


def test_file_order(tdbg, tmp_path):
    """The bytes' order counts, not the header's."""
    tensors = {name: np.full(2, i, np.int16) for i, name in enumerate(["zeta", "alpha", "mid"])}
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors(tensors, {"format": "pt"}, order=["mid", "zeta", "alpha"]))
    listed = tdbg.json("ls", path)["tensors"]
    assert [t["name"] for t in listed] == ["mid", "zeta", "alpha"]
    assert [t["bytes"] for t in listed] == [4, 4, 4]
    assert {t["format"] for t in listed} == {"safetensors"}


def test_skipped(tdbg, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({
        "packed": ("F4", [4], b"\x12\x34"),
        "scale": ("F8_E8M0", [2], b"\x7f\x7f"),
        "new": ("F128", [1], bytes(16)),
        "deep": ("F32", [1] * 33, bytes(4)),
        "x": np.arange(3, dtype=np.int8),
    }))  # fmt: skip
    answer = tdbg.json("ls", path)
    assert [t["name"] for t in answer["tensors"]] == ["x"]
    assert {s["name"]: s["reason"] for s in answer["skipped"]} == {
        "packed": "dtype F4 is not supported",
        "scale": "dtype F8_E8M0 is not supported",
        "new": "dtype F128 is not supported",
        "deep": "33 dimensions, 32 at most",
    }
    assert values(tdbg, path, "x") == [0, 1, 2]


def test_empty_file(tdbg, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors_raw(json.dumps({"__metadata__": {"a": "b"}})))
    assert tdbg.json("ls", path)["tensors"] == []


def test_found_by_content(tdbg, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(safetensors({"x": np.arange(3, dtype=np.float32)}))
    assert values(tdbg, path, "x") == [0.0, 1.0, 2.0]


def test_cut_short(tdbg, tmp_path):
    whole = safetensors({f"layer.{i}.weight": random_array("float32", (8, 9)) for i in range(4)})
    path = tmp_path / "a.safetensors"
    for size in range(0, len(whole), 64):
        path.write_bytes(whole[:size])
        tdbg.fails("ls", path)


@pytest.mark.slow
def test_many_tensors(tdbg, tmp_path):
    """10^5 tensors, as a large mixture of experts has."""
    count = 100_000
    header = {f"model.layers.{i // 1000}.experts.{i % 1000}.w": {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
              for i in range(count)}  # fmt: skip
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors_raw(json.dumps(header), bytes(count)))
    assert len(tdbg.json("ls", path, timeout=10)["tensors"]) == count
