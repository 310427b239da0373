"""ONNX files through the binary: values bit for bit as the onnx package reads them, and every defect by name."""
import os
import subprocess

import numpy as np
import onnx
import onnxfiles
import pytest
from onnx import numpy_helper

from tensorfiles import same, values


def save(path, model):
    path.write_bytes(model.SerializeToString())
    return path


def expected(tensor):
    """The values of a TensorProto as numpy_helper has them; by hand where it does not."""
    if tensor.data_type == onnx.TensorProto.BFLOAT16:
        bits = np.array(tensor.int32_data, np.uint32) << 16
        return bits.view(np.float32).reshape(tensor.dims)
    if tensor.data_type in (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128):
        part = np.float32 if tensor.data_type == onnx.TensorProto.COMPLEX64 else np.float64
        typed = tensor.float_data or tensor.double_data
        parts = np.array(typed, part) if typed else numpy_helper.to_array(tensor).view(part)
        return parts.reshape([*tensor.dims, 2])
    return numpy_helper.to_array(tensor)


def names(listing):
    return [tensor["name"] for tensor in listing["tensors"]]


def dtype_name(tensor):
    kind = onnx.TensorProto.DataType.Name(tensor.data_type)
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(kind, kind.lower())


def assert_reads(tdbg, path, tensors):
    listing = {tensor["name"]: tensor for tensor in tdbg.json("ls", path)["tensors"]}
    for tensor in tensors:
        listed = listing[tensor.name]
        assert (listed["format"], listed["dtype"]) == ("onnx", dtype_name(tensor))
        assert listed["shape"] == list(tensor.dims)
        assert same(values(tdbg, path, tensor.name), expected(tensor)), tensor.name


def test_every_type_typed_and_raw(tdbg, tmp_path):
    tensors = onnxfiles.typed_and_raw()
    path = save(tmp_path / "m.onnx", onnxfiles.model(tensors))
    assert names(tdbg.json("ls", path)) == [tensor.name for tensor in tensors]
    assert_reads(tdbg, path, tensors)


def test_external_data(tdbg, tmp_path):
    tensors = onnxfiles.typed_and_raw()
    path = tmp_path / "m.onnx"
    model = onnx.ModelProto.FromString(onnxfiles.model(tensors).SerializeToString())
    onnx.save_model(model, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").stat().st_size > 0
    assert_reads(tdbg, path, tensors)


def test_external_data_is_part_of_its_model_in_a_folder(tdbg, tmp_path):
    model = onnxfiles.model([onnxfiles.raw("w", np.arange(4.0))])
    onnx.save_model(model, str(tmp_path / "m.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "notes.txt").write_text("notes")
    listing = tdbg.json("ls", tmp_path)
    assert names(listing) == ["m.onnx:w"]
    assert [skip["name"] for skip in listing["skipped"]] == ["notes.txt"]


def test_missing_external_data_is_a_skip(tdbg, tmp_path):
    model = onnxfiles.model([onnxfiles.raw("a", np.arange(4.0)), onnxfiles.raw("b", np.arange(2.0))])
    path = tmp_path / "m.onnx"
    onnx.save_model(model, str(path), save_as_external_data=True, all_tensors_to_one_file=False, size_threshold=0)
    os.remove(tmp_path / "a")
    listing = tdbg.json("ls", path)
    assert names(listing) == ["b"]
    (skip,) = listing["skipped"]
    assert skip["name"] == "a"
    assert skip["reason"].startswith("external data: a: ")


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "inner/../../secret.bin"])
def test_external_data_stays_beside_the_model(tdbg, tmp_path, location):
    (tmp_path / "secret.bin").write_bytes(b"12345678")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    tensor = onnxfiles.EXTERNAL + onnxfiles.field(8, b"w") + onnxfiles.entry(b"location", location.encode())
    path = tmp_path / "folder" / "m.onnx"
    path.write_bytes(onnxfiles.model_of_tensor(tensor))
    listing = tdbg.json("ls", path)
    assert listing["tensors"] == []
    assert listing["skipped"][0]["reason"].startswith(f"external data: {location}: ")


@pytest.mark.parametrize("number", onnxfiles.FLOAT8)
def test_float8(tdbg, tmp_path, number):
    path = save(tmp_path / "m.onnx", onnxfiles.model([onnxfiles.float8("raw", number, True),
                                                      onnxfiles.float8("typed", number, False)]))  # fmt: skip
    listing = tdbg.json("ls", path)["tensors"]
    assert [tensor["dtype"] for tensor in listing] == [onnxfiles.FLOAT8[number]] * 2
    shown = [tdbg.json("show", f"{path}:{name}")["values"] for name in ("raw", "typed")]
    assert shown[0] == shown[1]
    smallest = 2.0 ** {17: -9, 18: -10, 19: -16, 20: -17}[number]
    assert np.array_equal(np.float32(shown[0][:2]), np.float32([0, smallest]))


def test_scalars_and_empty_tensors(tdbg, tmp_path):
    tensors = [onnxfiles.raw("scalar", np.array(3.5)), onnxfiles.raw("empty", np.zeros((0, 3), np.float32)),
               onnxfiles.typed("typed", "INT64", np.zeros(0, np.int64))]  # fmt: skip
    assert_reads(tdbg, save(tmp_path / "m.onnx", onnxfiles.model(tensors)), tensors)


@pytest.mark.parametrize("packed_first", [False, True])
def test_typed_data_in_pieces(tdbg, tmp_path, packed_first):
    """The elements of a repeated field may come in any number of packed runs and single fields."""
    array = np.array([1.5, -2.25, 3.0], np.float32)
    floats = [array[i : i + 1].tobytes() for i in range(3)]
    one = onnxfiles.field(4, floats[0]) if packed_first else b"\x25" + floats[0]
    tensor = onnxfiles.field(1, 3) + onnxfiles.field(2, 1) + one + b"\x25" + floats[1] + b"\x25" + floats[2]
    integers = onnxfiles.field(1, b"\3") + onnxfiles.field(2, 3) + onnxfiles.field(5, b"\1" + b"\xff" * 9 + b"\1")
    integers += onnxfiles.field(5, 0x7F)
    graph = onnxfiles.field(5, tensor + onnxfiles.field(8, b"f")) + onnxfiles.field(5, integers + onnxfiles.field(8, b"i"))
    path = tmp_path / "m.onnx"
    path.write_bytes(onnxfiles.model_of(graph))
    assert same(values(tdbg, path, "f"), array)
    assert values(tdbg, path, "i") == [1, -1, 127]


def test_sparse(tdbg, tmp_path):
    pairs = onnxfiles.sparse("pairs", [1, 2, 3], [[0, 1], [1, 0], [1, 2]], [2, 3])
    linear = onnxfiles.sparse("linear", [1, 2, 3], [1, 3, 5], [2, 3])
    outside = onnxfiles.sparse("outside", [1.0], [6], [2, 3])
    path = save(tmp_path / "m.onnx", onnxfiles.model(sparse_initializers=[pairs, linear, outside]))
    listing = tdbg.json("ls", path)
    assert names(listing) == ["pairs", "linear"]
    assert listing["skipped"] == [{"name": "outside", "reason": "sparse position 6 of 6", "path": str(path)}]
    for name in "pairs", "linear":
        assert values(tdbg, path, name) == [[0, 1, 0], [2, 0, 3]]


def test_tensors_of_subgraphs_constants_and_functions(tdbg, tmp_path):
    path = save(tmp_path / "m.onnx", onnxfiles.nested())
    assert names(tdbg.json("ls", path)) == [
        "top",
        "choose/else_branch/w",
        "choose/then_branch/w",
        "choose/then_branch/z/else_branch/w",
        "choose/then_branch/z/then_branch/w",
        "k",
        "k.float",
        "k.int",
        "k.floats",
        "k.ints",
        "k.sparse",
        "filled/value",
        "Custom.8/tables.0",
        "Custom.8/tables.1",
        "scale/c",
    ]
    for branch, weight in ("else_branch", 2), ("then_branch", 1), ("then_branch/z/else_branch", 4):
        assert values(tdbg, path, f"choose/{branch}/w") == [weight, weight]
    for name, value in ("k", [0, 1, 2]), ("k.float", 2.5), ("k.int", -7), ("k.floats", [0.5, -1.5]):
        assert values(tdbg, path, name) == value
    assert values(tdbg, path, "k.ints") == [1, 2**40]
    assert values(tdbg, path, "k.sparse") == [0, 0, 5, 0]
    assert values(tdbg, path, "scale/c") == [0, 1]


def test_a_tensor_in_a_file_of_its_own(tdbg, tmp_path):
    array = onnxfiles.sample("FLOAT", (4, 5))
    path = save(tmp_path / "input_0.pb", onnxfiles.raw("", array))
    assert names(tdbg.json("ls", path)) == ["input_0.pb"]
    assert same(values(tdbg, path), array)
    named = save(tmp_path / "input_1.pb", onnxfiles.raw("x", array))
    assert names(tdbg.json("ls", named)) == ["x"]
    short = tmp_path / "input_2.pb"
    short.write_bytes(onnxfiles.FLOATS + onnxfiles.field(9, b"1234"))
    assert tdbg.fails("ls", short) == f"tdbg: {short}: needs 8 bytes of data, has 4"


def test_the_content_decides_not_the_name(tdbg, tmp_path):
    path = save(tmp_path / "model.bin", onnxfiles.model([onnxfiles.raw("w", np.arange(3.0))]))
    assert tdbg.json("ls", path)["tensors"][0]["format"] == "onnx"
    random = np.random.RandomState(0)
    for i in range(1, 40):
        for name, content in ("noise.onnx", random.bytes(i * 7)), ("text.onnx", b"graph: {}\n" * i):
            (tmp_path / name).write_bytes(content)
            assert tdbg.fails("ls", tmp_path / name) == f"tdbg: {tmp_path / name}: not a tensor file tdbg knows"


@pytest.mark.parametrize("defect", onnxfiles.BAD_FILES)
def test_bad_file(tdbg, tmp_path, defect):
    content, message = onnxfiles.BAD_FILES[defect]
    path = tmp_path / f"{defect}.onnx"
    path.write_bytes(content)
    assert tdbg.fails("ls", path) == f"tdbg: {path}: {message}"


@pytest.mark.parametrize("defect", onnxfiles.BAD_TENSORS)
def test_bad_tensor(tdbg, tmp_path, defect):
    """The tensor is skipped with its reason, and the one after it is read."""
    tensor, reason = onnxfiles.BAD_TENSORS[defect]
    good = onnxfiles.raw("good", np.arange(3.0)).SerializeToString()
    (tmp_path / "w.bin").write_bytes(bytes(16))
    path = tmp_path / "m.onnx"
    path.write_bytes(onnxfiles.model_of(onnxfiles.field(5, tensor + onnxfiles.field(8, b"bad")) + onnxfiles.field(5, good)))
    listing = tdbg.json("ls", path)
    assert [(skip["name"], skip["reason"]) for skip in listing["skipped"]] == [("bad", reason)]
    assert names(listing) == ["good"]
    assert values(tdbg, path, "good") == [0, 1, 2]


def test_truncated_anywhere(tdbg, tmp_path):
    """The graph says how long it is, so a file cut anywhere in it is an error."""
    whole = onnxfiles.model(onnxfiles.typed_and_raw()).SerializeToString()
    path = tmp_path / "cut.onnx"
    for size in range(64, len(whole), 64):
        path.write_bytes(whole[:size])
        assert tdbg.fails("ls", path) == f"tdbg: {path}: graph of ModelProto is cut short or damaged (at byte 2)"


@pytest.mark.slow
@pytest.mark.native
def test_memory_does_not_grow_with_the_tensors(tdbg, tmp_path):
    array = np.ones(75 << 20, np.float32)
    path = save(tmp_path / "big.onnx", onnxfiles.model([onnxfiles.raw("w", array)]))
    assert path.stat().st_size > 300 << 20
    script = f"ulimit -d {64 << 10}; exec {tdbg.binary} stats --json {path}"  # KiB of anonymous memory
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert '"mean":1' in done.stdout.replace(" ", "")
