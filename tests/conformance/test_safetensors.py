"""Files of the safetensors package read bit for bit; where the package refuses, so does tdbg."""
import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from bad_files import BAD
from tensorfiles import same, safetensors as write_by_hand, values

RANDOM = np.random.default_rng(19)
DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]
SMALL = {"bfloat16": ("BF16", ml_dtypes.bfloat16), "float8_e4m3fn": ("F8_E4M3", ml_dtypes.float8_e4m3fn),
         "float8_e5m2": ("F8_E5M2", ml_dtypes.float8_e5m2), "float8_e4m3fnuz": ("F8_E4M3FNUZ", ml_dtypes.float8_e4m3fnuz),
         "float8_e5m2fnuz": ("F8_E5M2FNUZ", ml_dtypes.float8_e5m2fnuz)}  # fmt: skip


def random_array(dtype, shape):
    dtype = np.dtype(dtype)
    return np.frombuffer(RANDOM.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def test_written_by_the_package(tdbg, tmp_path):
    arrays = {f"layers.{i}.{d}": random_array(d, (3, i, 4)) for i, d in enumerate(DTYPES)}
    arrays["bool"] = np.array([[True], [False]])
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file(arrays, path, {"format": "np"})
    listed = {t["name"]: (t["dtype"], t["shape"]) for t in tdbg.json("ls", path)["tensors"]}
    assert listed == {name: (a.dtype.name, list(a.shape)) for name, a in arrays.items()}
    for name, array in arrays.items():
        assert same(values(tdbg, path, name), array), name


@pytest.mark.parametrize("name", SMALL)
def test_all_values_of_small_floats(tdbg, tmp_path, name):
    label, dtype = SMALL[name]
    bits = np.arange(256, dtype=np.uint8) if np.dtype(dtype).itemsize == 1 else np.arange(65536, dtype=np.uint16)
    path = tmp_path / "a.safetensors"
    path.write_bytes(write_by_hand({"x": (label, [len(bits)], bits.tobytes())}))
    assert tdbg.json("ls", path)["tensors"][0]["dtype"] == name
    assert same(values(tdbg, path, "x"), bits.view(dtype).astype(np.float32))


@pytest.mark.parametrize("name", [n for n in BAD if n.startswith("safetensors/")])
def test_bad_files_are_bad(tmp_path, name):
    path = tmp_path / "a.safetensors"
    path.write_bytes(BAD[name][0])
    with pytest.raises(safetensors.SafetensorError):
        safetensors.numpy.load_file(path)
