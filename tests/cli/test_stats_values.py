"""The numbers of `tdbg stats` against numpy in float64: every dtype, layout, tier and number of threads."""
import math

import numpy as np
import pytest

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
          "bool", "complex64", "complex128"]
FIELDS = ["mean", "std", "min", "max", "absmax", "norm"]


def number(value):
    return float(value)  # "nan", "inf" and "-inf" are strings in the document


def expected(array):
    """What the contract says, by numpy in float64 (the sums in longdouble, so that numpy's own rounding is not ours)."""
    x = np.abs(array.astype(np.complex128)) if array.dtype.kind == "c" else array.astype(np.float64)
    x = x.ravel()
    finite = x[np.isfinite(x)]
    wide = finite.astype(np.longdouble)
    n = len(finite)
    around = wide - wide[0] if n else wide
    mean = wide[0] + around.mean() if n else math.nan
    return {
        "count": x.size,
        "finite": n,
        "nan": int(np.isnan(x).sum()),
        "inf": int(np.isinf(x).sum()),
        "zeros": int((finite == 0).sum()),
        "mean": float(mean),
        "std": float(np.sqrt(((around - around.mean()) ** 2).sum() / (n - 1))) if n > 1 else math.nan,
        "min": float(finite.min()) if n else math.nan,
        "max": float(finite.max()) if n else math.nan,
        "absmax": float(np.abs(finite).max()) if n else math.nan,
        "norm": float(np.sqrt((wide ** 2).sum())),
    }


def check(got, array):
    want = expected(array)
    for field in ("count", "finite", "nan", "inf", "zeros"):
        assert got[field] == want[field], field
    for field in FIELDS:
        value = number(got[field])
        if math.isnan(want[field]):
            assert math.isnan(value), field
        else:
            # The mean of values that cancel is only as good as the values are large.
            scale = max(abs(want[field]), want["norm"] / max(1, want["finite"]) if field == "mean" else 0)
            assert abs(value - want[field]) <= 1e-12 * scale, (field, value, want[field])


def make(dtype, shape, seed=0):
    r = np.random.default_rng(seed)
    if dtype == "bool":
        return r.random(shape) < 0.3
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return r.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    x = r.standard_normal(shape) * 3 + 1
    if dtype.startswith("complex"):
        return (x + 1j * r.standard_normal(shape)).astype(dtype)
    x = x.astype(dtype)
    x.ravel()[::17] = 0
    return x


def stats(tdbg, path, *args, **options):
    return tdbg.json("stats", path, *args, **options)["tensors"][0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(tdbg, tmp_path, dtype):
    array = make(dtype, (123, 457))
    np.save(tmp_path / "a.npy", array)
    check(stats(tdbg, tmp_path / "a.npy"), array)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex64"])
def test_not_finite(tdbg, tmp_path, dtype):
    array = make(dtype, 30000)
    array[::7] = np.nan
    array[::11] = np.inf
    array[9000:20000] = -np.inf
    np.save(tmp_path / "a.npy", array)
    check(stats(tdbg, tmp_path / "a.npy"), array)


@pytest.mark.parametrize("values", [[], [3.5], [np.nan], [np.inf, np.nan], [-0.0], [0.0, -0.0, 0.0]])
def test_few(tdbg, tmp_path, values):
    array = np.array(values)
    np.save(tmp_path / "a.npy", array)
    check(stats(tdbg, tmp_path / "a.npy"), array)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int16", "complex128"])
def test_layouts_and_threads_and_tiers_change_no_bit(tdbg, tmp_path, dtype):
    array = make(dtype, (700, 900))
    np.save(tmp_path / "c.npy", array)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(array))
    np.save(tmp_path / "swapped.npy", array.astype(array.dtype.newbyteorder(">")))
    answers = set()
    for name in ("c", "fortran", "swapped"):
        for env in ({}, {"TDBG_THREADS": "1"}, {"TDBG_THREADS": "3"}, {"TDBG_CPU": "scalar"}, {"TDBG_CPU": "vector"}):
            got = stats(tdbg, tmp_path / f"{name}.npy", env=env)
            answers.add(tuple((field, got[field]) for field in FIELDS))
    assert len(answers) == 1, answers


@pytest.mark.parametrize("offset", [1e8, -1e12, 1e15])
def test_a_large_mean_leaves_the_spread_intact(tdbg, tmp_path, offset):
    array = offset + np.random.default_rng(1).standard_normal(300_000)
    np.save(tmp_path / "a.npy", array)
    check(stats(tdbg, tmp_path / "a.npy"), array)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_squares_beyond_the_range_of_doubles(tdbg, tmp_path, scale):
    array = np.random.default_rng(1).standard_normal(10_000) * scale
    np.save(tmp_path / "a.npy", array)
    got = stats(tdbg, tmp_path / "a.npy")
    power = 2.0 ** -900 if scale > 1 else 2.0 ** 900
    want = expected(array * power)
    for field in FIELDS:
        assert abs(number(got[field]) * power - want[field]) <= 1e-12 * want["absmax" if field == "mean" else "norm"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "uint8", "int64"])
@pytest.mark.parametrize("bins", [1, 2, 7, 64, 999])
def test_histogram(tdbg, tmp_path, dtype, bins):
    array = make(dtype, 50_000)
    if dtype == "int64":
        array //= 2**11  # exact as doubles, and no overflow in numpy's own subtraction
    if dtype.startswith("float"):
        array[5] = np.nan
        array[6] = np.inf
    np.save(tmp_path / "a.npy", array)
    finite = array[np.isfinite(array)]
    want, _ = np.histogram(finite, bins, (float(finite.min()), float(finite.max())))
    got = stats(tdbg, tmp_path / "a.npy", "--hist", bins)["hist"]
    assert got["counts"] == want.tolist()


def test_histogram_on_the_edges(tdbg, tmp_path):
    """Values that are edges themselves: where a careless division puts them one bin off."""
    for dtype in ("float32", "float64"):
        for bins in (3, 10, 49, 100):
            array = np.linspace(-0.7, 1.3, bins + 1).astype(dtype)
            array = np.concatenate([array, np.nextafter(array[1:], array.dtype.type(-9))])
            np.save(tmp_path / "a.npy", array)
            want, _ = np.histogram(array, bins, (float(array.min()), float(array.max())))
            assert stats(tdbg, tmp_path / "a.npy", "--hist", bins)["hist"]["counts"] == want.tolist()


def test_histogram_of_a_constant(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.full(10, 2.5))
    want, _ = np.histogram(np.full(10, 2.5), 4)
    assert stats(tdbg, tmp_path / "a.npy", "--hist", 4)["hist"]["counts"] == want.tolist()


def test_unknown_tier(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    error = tdbg.fails("stats", tmp_path / "a.npy", env={"TDBG_CPU": "abacus"})
    assert "TDBG_CPU=abacus: this machine has " in error and "scalar" in error
