"""What a newer numpy, and ml_dtypes, put into .npy files."""
import ml_dtypes
import numpy as np

from tensorfiles import same, values


def test_written_by_this_numpy(tdbg, tmp_path):
    path = tmp_path / "a.npz"
    arrays = {"f": np.arange(6, dtype=np.float32).reshape(2, 3), "i": np.arange(4, dtype=">i8"), "b": np.array([True])}
    np.savez_compressed(path, **arrays)
    for name, array in arrays.items():
        assert same(values(tdbg, path, name), array.astype(array.dtype.newbyteorder("="))), name


def test_ml_dtypes_are_raw_bytes(tdbg, tmp_path):
    """numpy writes bfloat16 as '<V2', which could be anything of two bytes: skipped, not guessed."""
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        np.savez(tmp_path / "a.npz", x=np.ones(3, dtype), y=np.ones(3))
        answer = tdbg.json("ls", tmp_path / "a.npz")
        assert [t["name"] for t in answer["tensors"]] == ["y"]
        assert answer["skipped"][0]["reason"].startswith("raw bytes: the file does not say their type")
