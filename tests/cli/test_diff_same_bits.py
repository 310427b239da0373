"""`tdbg diff --json` prints the same bytes whatever the tier and the number of threads, in bounded memory."""
import itertools

import numpy as np
import pytest

from test_memory import BAR, MIB, npy_header, peak_anonymous

RUNS = [{"TDBG_CPU": cpu, "TDBG_THREADS": threads} for cpu, threads in itertools.product(
    ["scalar", "vector", "best"], ["1", "2"])]


def write(folder, rng):
    """Pairs of every fate: small and large, permuted, of two types, broken, and diverged."""
    a, b = folder / "a", folder / "b"
    a.mkdir()
    b.mkdir()

    def pair(name, x, y):
        np.save(a / f"{name}.npy", x)
        np.save(b / f"{name}.npy", y)

    x = rng.standard_normal((4, 700, 1000), dtype=np.float32)
    pair("0_large", x, x + np.float32(1e-7) * rng.standard_normal(x.shape, dtype=np.float32))
    pair("0_permuted", x[:, :300], np.ascontiguousarray((x[:, :300] * np.float32(1.001)).transpose(1, 0, 2)))
    x = rng.standard_normal((33, 77))
    pair("1_types", x.astype(np.float32), x.astype(np.float16))
    pair("1_double", x, x * (1 + 1e-15))
    pair("1_huge", x * 1e200, x * 1e200 * (1 + 1e-9))
    y = x.copy()
    y[3, 5:40] = np.nan
    y[9, 9] = np.inf
    pair("2_broken", x, y)
    pair("2_integers", np.arange(5000) * 2**40, np.arange(5000) * 2**40 + (np.arange(5000) == 77))
    pair("2_complex", x + 1j * x[::-1], x - 1j * x[::-1])


@pytest.mark.slow
def test_tiers_and_threads(tdbg, tmp_path):
    write(tmp_path, np.random.default_rng(3))
    first = None
    for options in ([], ["--policy", "strict"]):
        for env in RUNS:
            out = tdbg.run("diff", "--json", *options, tmp_path / "a", tmp_path / "b", env=env, text=False).stdout
            assert len(out) > 2000
            first = first or out
            assert out == first, env
        first = None


@pytest.mark.slow
@pytest.mark.native
def test_memory_of_two_big_tensors(tdbg, tmp_path):
    size = 4096 * MIB
    header = npy_header((size // 4 // 4096, 4096), "float32")
    for name, value in (("a.npy", 1), ("b.npy", 2)):
        with open(tmp_path / name, "wb") as file:
            file.write(header)
            file.truncate(len(header) + size)  # a hole: reads as zeros, takes no disk
            file.seek(len(header) + size // 2)
            file.write(np.full(1, value, "float32").tobytes())
    peak, out = peak_anonymous([tdbg.binary, "diff", "--json", tmp_path / "a.npy", tmp_path / "b.npy"], status=1)
    assert b'"differing":1,' in out or b'"argmax":[131072,0]' in out
    assert 0 < peak < BAR, f"{peak / MIB:.1f} MiB"
