"""`tdbg stats` as a command: JSON fields, the table, histograms, slices. The numbers themselves are the
kernels' tests' business."""
import math

import numpy as np
import pytest


def test_json_is_as_the_contract_says(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1.0, -3.0, 0.0], [np.nan, np.inf, 2.0]]))
    document = tdbg.json("stats", tmp_path / "a.npy")
    assert document["version"] == 1
    (row,) = document["tensors"]
    finite = np.array([1.0, -3.0, 0.0, 2.0])
    expected = {
        "name": "a.npy", "dtype": "float64", "shape": [2, 3], "count": 6, "finite": 4, "nan": 1, "inf": 1,
        "zeros": 1, "mean": 0.0, "std": float(finite.std(ddof=1)), "min": -3.0, "max": 2.0, "absmax": 3.0,
        "norm": float(np.linalg.norm(finite)),
    }  # fmt: skip
    assert {key: row[key] for key in expected} == pytest.approx(expected, rel=1e-15)


def test_no_finite_value(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.full(3, np.nan))
    np.save(tmp_path / "e.npy", np.zeros(0))
    for row in tdbg.json("stats", tmp_path)["tensors"]:
        assert (row["mean"], row["min"], row["max"], row["norm"]) == ("nan", "nan", "nan", 0.0)


def test_many_tensors_come_in_order(tdbg, tmp_path):
    arrays = {f"t{i}": np.full(i % 20 * 20000 + 1, i, np.float32) for i in range(60)}
    np.savez(tmp_path / "a.npz", **arrays)
    rows = tdbg.json("stats", tmp_path / "a.npz")["tensors"]
    assert [row["name"] for row in rows] == list(arrays)
    assert [row["mean"] for row in rows] == [float(i) for i in range(60)]
    assert rows == tdbg.json("stats", tmp_path / "a.npz", env={"TDBG_THREADS": "1"})["tensors"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bins", [1, 7, 100])
def test_histogram_is_numpys(tdbg, tmp_path, bins, dtype):
    array = np.random.default_rng(3).standard_normal(5000).astype(dtype)
    array[:5] = [np.nan, np.inf, -np.inf, 0, 0]
    np.save(tmp_path / "a.npy", array)
    (row,) = tdbg.json("stats", "--hist", str(bins), tmp_path / "a.npy")["tensors"]
    counts, edges = np.histogram(array[np.isfinite(array)], bins)
    assert row["hist"]["counts"] == counts.tolist()
    assert row["hist"]["edges"] == edges.tolist()


def test_histogram_of_one_value_and_of_none(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.full(4, 2.0))
    (row,) = tdbg.json("stats", "--hist", "2", tmp_path / "a.npy")["tensors"]
    assert row["hist"] == {"edges": [1.5, 2.0, 2.5], "counts": [0, 4]}
    np.save(tmp_path / "a.npy", np.full(4, np.nan))
    (row,) = tdbg.json("stats", "--hist", "2", tmp_path / "a.npy")["tensors"]
    assert row["hist"]["counts"] == [0, 0]


def test_table(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([1.0, 2.0, 3.0]))
    np.save(tmp_path / "b.npy", np.array([[0.5, np.nan]], np.float32))
    assert tdbg.text("stats", tmp_path).splitlines() == [
        "name   dtype    shape   mean  std  min  max  absmax    norm  zeros  nan",
        "a.npy  float64  [3]        2    1    1    3       3  3.7417      0    0",
        "b.npy  float32  [1, 2]   0.5  nan  0.5  0.5     0.5     0.5      0    1",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_table_fits_the_width(tdbg, tmp_path, width):
    rng = np.random.default_rng(0)
    names = [f"model.layers.{i}.self_attn.rotary_embedding.q_proj.weight" for i in (3, 17)]
    np.savez(tmp_path / "a.npz", **{n: rng.standard_normal((64, 128)).astype(np.float32) for n in names})
    lines = tdbg.text("stats", tmp_path / "a.npz", "--hist", "16", env={"COLUMNS": str(width)}).splitlines()
    assert max(map(len, lines)) <= width
    assert "mean" in lines[0] and "max" in lines[0]
    assert ("norm" in lines[0]) == (width == 200)
    assert ("histogram" in lines[0]) == ("█" in lines[1]) == (width >= 80)


def test_text_histogram(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([0.0, 1, 1, 2, 2, 2, 2]))
    lines = tdbg.text("stats", "--hist", "3", tmp_path / "a.npy").splitlines()[2:]
    assert [line.split()[3] for line in lines] == ["1", "2", "4"]
    assert [line.count("█") for line in lines] == [15, 30, 60]
    plain = tdbg.text("stats", "--hist", "3", tmp_path / "a.npy", env={"LC_ALL": "C"})
    assert plain.isascii() and "####" in plain


def test_slices(tdbg, tmp_path):
    array = np.random.default_rng(0).standard_normal((10, 20))
    np.save(tmp_path / "a.npy", array)
    (row,) = tdbg.json("stats", f"{tmp_path}/a.npy[::3, 5]")["tensors"]
    assert (row["slice"], row["shape"], row["count"]) == ("::3, 5", [4], 4)
    assert math.isclose(row["mean"], array[::3, 5].mean())


def test_bins_are_checked(tdbg, tmp_path):
    for bins in ("0", "65537"):
        assert tdbg.fails("stats", "--hist", bins, tmp_path) == (
            "tdbg: stats: --hist takes 1 to 65536 bins (see 'tdbg stats --help')"
        )
