"""ONNX files of today's onnx package: element types and fields that the schema of libonnx 1.12 does not have."""
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tensorfiles import same, values

FLOATS = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "bfloat16": ml_dtypes.bfloat16, "float16": np.float16,
}  # fmt: skip


def model(*initializers, **more):
    return helper.make_model(helper.make_graph([], "graph", [], [], list(initializers), **more))


@pytest.mark.parametrize("dtype", FLOATS)
def test_small_floats_raw_and_typed(tdbg, tmp_path, dtype):
    """Every bit pattern, as ml_dtypes reads it."""
    kind = np.dtype(FLOATS[dtype])
    bits = np.arange(1 << 8 * kind.itemsize, dtype=f"u{kind.itemsize}")[:: 1 if kind.itemsize == 1 else 17]
    number = getattr(onnx.TensorProto, dtype.replace("_", "").upper())
    raw = onnx.TensorProto(name="raw", data_type=number, dims=bits.shape, raw_data=bits.tobytes())
    typed = onnx.TensorProto(name="typed", data_type=number, dims=bits.shape, int32_data=bits.tolist())
    path = tmp_path / "m.onnx"
    onnx.save(model(raw, typed), path)
    assert [tensor["dtype"] for tensor in tdbg.json("ls", path)["tensors"]] == [dtype, dtype]
    for name in "raw", "typed":
        assert same(values(tdbg, path, name), bits.view(kind).astype(np.float32))


def test_external_data_and_newer_fields(tdbg, tmp_path):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensor = numpy_helper.from_array(array, "w")
    tensor.metadata_props.add(key="k", value="v")
    whole = model(tensor)
    whole.graph.metadata_props.add(key="k", value="v")
    path = tmp_path / "m.onnx"
    onnx.save(whole, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert same(values(tdbg, path, "w"), array)
    assert tdbg.json("ls", tmp_path)["skipped"] == []


def test_types_that_are_not_read_are_named(tdbg, tmp_path):
    nibbles = [helper.make_tensor(name, getattr(onnx.TensorProto, name.upper()), [2], [1, 2])
               for name in ("uint4", "int4", "float4e2m1")]  # fmt: skip
    path = tmp_path / "m.onnx"
    onnx.save(model(*nibbles, helper.make_tensor("string", onnx.TensorProto.STRING, [1], [b"x"])), path)
    listing = tdbg.json("ls", path)
    assert listing["tensors"] == []
    assert [(skip["name"], skip["reason"]) for skip in listing["skipped"]] == [
        (name, f"elements of type {name} are not read") for name in ("uint4", "int4", "float4e2m1", "string")
    ]
