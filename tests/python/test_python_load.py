"""tdbg.load: what it gives is what the file's own library gives, bit for bit, and nothing is run on the way."""
import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import tdbg

DTYPES = [torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
          torch.bool, torch.complex64, torch.complex128]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_as_numpy_has_it(tmp_path, dtype):
    value = (torch.randn(3, 5, 7) * 10).to(dtype)
    torch.save({"x": value}, tmp_path / "x.pth")
    loaded = tdbg.load(tmp_path / "x.pth")["x"]
    assert loaded.dtype == value.numpy().dtype
    assert loaded.tobytes() == value.numpy().tobytes()


def test_mapped_values_are_not_copied_and_outlive_the_mapping(tmp_path):
    torch.save({"x": torch.arange(1 << 16)}, tmp_path / "x.pth")
    tensors = tdbg.load(tmp_path / "x.pth")
    first, second = tensors["x"], tensors["x"]
    assert first.ctypes.data == second.ctypes.data
    assert not first.flags.writeable
    del tensors, second
    gc.collect()
    assert (first == np.arange(1 << 16)).all()


def test_views_are_laid_out_row_by_row(tmp_path):
    base = torch.randn(6, 8)
    views = {"transposed": base.t(), "expanded": base[0].expand(4, 8), "stepped": base[::2, 1::3], "scalar": base[2, 3]}
    torch.save(views, tmp_path / "x.pth")
    tensors = tdbg.load(tmp_path / "x.pth")
    assert list(tensors) == list(views)
    for name, value in views.items():
        assert tensors.shape(name) == tuple(value.shape)
        assert tensors[name].tobytes() == value.contiguous().numpy().tobytes()


def test_bfloat16_without_a_type_of_its_own_is_widened(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    tdbg.loading.narrow_type.cache_clear()
    value = torch.randn(1000).to(torch.bfloat16)
    torch.save({"x": value}, tmp_path / "x.pth")
    tensors = tdbg.load(tmp_path / "x.pth")
    assert tensors.dtype("x") == "bfloat16"
    assert tensors["x"].tobytes() == value.float().numpy().tobytes()
    assert tensors.raw("x").tobytes() == value.view(torch.int16).numpy().tobytes()
    tdbg.loading.narrow_type.cache_clear()


def test_empty_and_archived(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", empty=np.zeros((0, 3)), full=np.arange(12.).reshape(3, 4))
    tensors = tdbg.load(tmp_path / "x.npz")
    assert tensors["empty"].shape == (0, 3)
    assert (tensors["full"] == np.arange(12.).reshape(3, 4)).all()


def test_a_pickle_is_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return subprocess.check_call, (["touch", str(tmp_path / "ran")],)

    with open(tmp_path / "x.pkl", "wb") as file:
        pickle.dump({"bomb": Bomb(), "x": np.ones(3)}, file)
    tensors = tdbg.load(tmp_path / "x.pkl")
    assert list(tensors) == ["x"] and "bomb" in tensors.skipped
    assert not (tmp_path / "ran").exists()


def test_mapping_and_errors(tmp_path):
    torch.save({"layers.0.weight": torch.ones(2), "x": torch.ones(3)}, tmp_path / "x.pth")
    tensors = tdbg.load(str(tmp_path / "x.pth"))
    assert len(tensors) == 2 and "x" in tensors and "y" not in tensors
    assert {name: array.shape for name, array in tensors.items()} == {"layers.0.weight": (2,), "x": (3,)}
    with pytest.raises(KeyError, match="no tensor named 'y'"):
        tensors["y"]
    with pytest.raises(tdbg.Error, match="nowhere: cannot open: No such file or directory") as failure:
        tdbg.load("nowhere")
    assert failure.value.status == "IO"
    with pytest.raises(TypeError, match="not NoneType"):
        tdbg.load(None)
    (tmp_path / "cut.safetensors").write_bytes(b"\xff\0\0\0\0\0\0\0{")
    with pytest.raises(tdbg.Error) as failure:
        tdbg.load(tmp_path / "cut.safetensors")
    assert failure.value.status == "CORRUPT"
