"""The metrics of every pair of types, layouts and odd values, against numpy in long double."""
import json

import numpy as np
import pytest

from difftools import TYPES, Typed, check_metrics, compare, dump, expected, number, one, single

# What the kernels do not do yet.

SHAPE = (3, 37, 41)  # more than one block of the kernels, and no multiple of any vector


def near(rng, dtype, values):
    """`values` with an error on some of them, as the type can hold it."""
    error = rng.standard_normal(values.shape) * 0.05 * (rng.random(values.shape) < 0.7)
    return Typed(dtype, storable(dtype, values + error * (20 if dtype.startswith(("int", "uint")) else 1)))


def storable(dtype, values):
    if dtype.startswith("complex"):
        return values + 1j * np.roll(values, 1)
    if dtype.startswith(("int", "uint")):
        return np.abs(np.round(values * 10)) if dtype.startswith("uint") else np.round(values * 10)
    return values > 0 if dtype == "bool" else values


@pytest.fixture(scope="module")
def every_pair(tmp_path_factory):
    """Two folders with a tensor for every ordered pair of types, and the pairs file."""
    folder, rng, pairs, sides = tmp_path_factory.mktemp("pairs"), np.random.default_rng(3), [], {}
    for s in TYPES:
        for t in TYPES:
            values = rng.standard_normal(SHAPE) * 2
            a, b = Typed(s, storable(s, values)), near(rng, t, values)
            stem = f"{s}_and_{t}"
            pairs.append({"a": a.save(folder / "a", stem), "b": b.save(folder / "b", stem)})
            sides[pairs[-1]["a"]] = a, b
    (folder / "pairs.json").write_text(json.dumps({"version": 1, "pairs": pairs}))
    return folder, sides


def run_every_pair(tdbg, folder, **env):
    done = tdbg.run("diff", "--json", "a", "b", "--pairs", "pairs.json", cwd=folder, env=env)
    assert done.returncode == 1 and done.stderr == ""
    return done.stdout


def test_every_pair_of_types(tdbg, every_pair):
    folder, sides = every_pair
    answer = json.loads(run_every_pair(tdbg, folder))
    assert answer["summary"]["pairs"] == len(TYPES) ** 2 and answer["summary"]["errors"] == 0
    for pair in answer["pairs"]:
        a, b = sides[pair["a"]["name"]]
        assert (pair["a"]["dtype"], pair["b"]["dtype"]) == (a.dtype, b.dtype)
        assert pair["layout"] == {"shape": list(SHAPE), "steps": [], "by_value": False}
        check_metrics(pair["metrics"], a, b, pair["name"])


def test_side_statistics(tdbg, every_pair):
    """What a pair says of each side is what `tdbg stats` says of it."""
    folder, sides = every_pair
    answer = json.loads(run_every_pair(tdbg, folder))
    for letter in "ab":
        stats = {t["name"]: t for t in tdbg.json("stats", folder / letter)["tensors"]}
        for pair in answer["pairs"]:
            if len({pair[side]["dtype"].startswith("complex") for side in "ab"}) == 2:
                continue  # beside a complex number a real one counts by its modulus, too
            alone, here = stats[pair[letter]["name"]], pair["metrics"][letter]
            for key, value in here.items():
                if isinstance(value, float):
                    assert value == pytest.approx(alone[key], rel=1e-12, abs=1e-15), (pair["name"], letter, key)
                else:
                    assert value == alone[key], (pair["name"], letter, key)


@pytest.mark.parametrize("env", [{"TDBG_THREADS": "1"}, {"TDBG_THREADS": "2"}, {"TDBG_CPU": "scalar"},
                                 {"TDBG_CPU": "scalar", "TDBG_THREADS": "3"}])  # fmt: skip
def test_same_bits_everywhere(tdbg, every_pair, env):
    assert run_every_pair(tdbg, every_pair[0], **env) == run_every_pair(tdbg, every_pair[0])


@pytest.mark.slow
def test_same_bits_for_a_tensor_that_is_split(tdbg, tmp_path):
    """From two million elements on a pair is shared by the threads."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1301, 1709)).astype(np.float32)
    y = (x + 1e-3 * rng.standard_normal(x.shape)).astype(np.float32)
    x[77, 5], y[900, 1] = np.nan, np.inf
    dump(tmp_path / "a", {"x": x})
    dump(tmp_path / "b", {"x": y})
    run = lambda **env: tdbg.text("diff", "--json", tmp_path / "a", tmp_path / "b", "--top", "9", status=1, env=env)
    plain = run()
    assert run(TDBG_THREADS="1") == run(TDBG_THREADS="2") == run(TDBG_THREADS="5") == plain
    assert run(TDBG_CPU="scalar") == plain
    check_metrics(json.loads(plain)["pairs"][0]["metrics"], Typed("float32", x), Typed("float32", y))


# --- layouts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("types", [("float32", "float32"), ("float32", "bfloat16"), ("float16", "float64"),
                                   ("bfloat16", "bfloat16"), ("int8", "int8"),
                                   ("complex64", "complex64")])  # fmt: skip
def test_heads_first(tdbg, tmp_path, types):
    rng = np.random.default_rng(5)
    values = rng.standard_normal((76, 8, 64)) * 3
    a = Typed(types[0], storable(types[0], values))
    b = Typed(types[1], storable(types[1], values + 1e-3 * rng.standard_normal(values.shape)))
    stored = Typed(types[1], np.zeros(1))
    stored.bits = np.ascontiguousarray(b.bits.transpose(1, 0, 2))[None]
    names = a.save(tmp_path / "a", "0_query"), stored.save(tmp_path / "b", "0_query")
    (tmp_path / "pairs.json").write_text(json.dumps({"version": 1, "pairs": [{"a": names[0], "b": names[1]}]}))
    pair = one(compare(tdbg, tmp_path / "a", tmp_path / "b", "--pairs", tmp_path / "pairs.json"))
    assert pair["layout"]["steps"] == ["b: squeeze 0", "b: permute 1,0,2"]
    check_metrics(pair["metrics"], a, b)


@pytest.mark.parametrize("order", ["CC", "CF", "FC", "FF"])
def test_fortran_order(tdbg, tmp_path, order):
    rng = np.random.default_rng(6)
    x = rng.standard_normal((33, 17, 65))
    y = x + 1e-3 * rng.standard_normal(x.shape)
    pair = single(tdbg, tmp_path, np.array(x, order=order[0]), np.array(y, order=order[1]))
    check_metrics(pair["metrics"], Typed("float64", x), Typed("float64", y))


def test_transposed_weight(tdbg, tmp_path):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((130, 71)).astype(np.float32)
    y = (x + 1e-7 * rng.standard_normal(x.shape)).astype(np.float32)
    pair = single(tdbg, tmp_path, x, y.T.copy())
    assert pair["layout"]["steps"] == ["b: permute 1,0"]
    check_metrics(pair["metrics"], Typed("float32", x), Typed("float32", y))


VIEWS = {
    "every other": lambda t: t[::2, 1:, ::3],
    "transposed": lambda t: t.transpose(0, 2),
    "offset": lambda t: t[5:, :, 7:],
    "expanded": lambda t: t[:, :1, :].expand(-1, 9, -1),
    "heads": lambda t: t.reshape(16, 20, 2, 22).permute(0, 2, 1, 3).select(1, 1),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int16"])
def test_strided_torch(tdbg, tmp_path, view, dtype):
    """torch.save keeps the strides of a view; the other side is contiguous."""
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(8)
    x = (torch.randn(16, 20, 44, generator=generator) * 50).to(getattr(torch, dtype))
    a = VIEWS[view](x)
    b = (a.double() * (1 + 1e-3 * torch.randn(a.shape, generator=generator))).to(a.dtype).contiguous()
    for side, tensor in ("a", a), ("b", b):
        (tmp_path / side).mkdir()
        torch.save(tensor, tmp_path / side / "x.pth")
    assert not a.is_contiguous()
    numpy = lambda t: Typed(dtype, t.float().numpy() if dtype == "bfloat16" else t.numpy())
    pair = one(compare(tdbg, tmp_path / "a", tmp_path / "b"))
    assert pair["layout"]["steps"] == []
    check_metrics(pair["metrics"], numpy(a), numpy(b))


# --- NaN and infinities ----------------------------------------------------------------------------------------


def base(n=64):
    return np.random.default_rng(9).standard_normal((4, n)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("policy", [(), ("--policy", "strict"), ("--rtol", "1e9", "--atol", "1e9")])
@pytest.mark.parametrize("side", "ab")
def test_a_nan_on_one_side_is_a_divergence(tdbg, tmp_path, dtype, policy, side):
    a, b = Typed(dtype, base()), Typed(dtype, base())
    spoiled = a if side == "a" else b
    spoiled.bits[2, 3] = {"bfloat16": 0x7FC0, "float8_e4m3fn": 0x7F, "float8_e5m2": 0x7F}.get(dtype, np.nan)
    spoiled.values[2, 3] = np.nan
    a.save(tmp_path / "a", "x")
    b.save(tmp_path / "b", "x")
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", *policy, status=1)
    pair = one(answer)
    assert pair["verdict"] == "diverged"
    assert pair["reason"] == ("NaN where the other side has none: " + ("1 in A, 0 in B" if side == "a" else "0 in A, 1 in B"))
    assert pair["metrics"]["beyond"] == 1
    assert pair["worst"][0]["index"] == [2, 3] and pair["worst"][0][side] == "nan"
    assert answer["first_divergence"]["diagnosis"][0]["kind"] == "nan"
    check_metrics(pair["metrics"], a, b)


def test_where_nothing_is_finite_on_both_sides_no_zero_is_shown(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", base())
    np.save(tmp_path / "b.npy", np.full_like(base(), np.nan))
    text = tdbg.text("diff", tmp_path / "a.npy", tmp_path / "b.npy", status=1)
    row = next(line for line in text.splitlines() if line.startswith(">"))
    assert row.split()[-2:] == ["diverged", "nan"] and "1.0000" not in row and " 0 " not in row
    answer = compare(tdbg, tmp_path / "a.npy", tmp_path / "b.npy", status=1)
    assert [finding["detail"] for finding in answer["first_divergence"]["diagnosis"]] == [
        "256 values are NaN in B and finite in A", "no two values at one place are both finite"]


def test_nan_at_the_same_place_coincides(tdbg, tmp_path):
    x = base()
    x[1, 5] = np.nan
    pair = single(tdbg, tmp_path, x, x.copy())
    assert pair["verdict"] == "identical" and (pair["metrics"]["nan_a"], pair["metrics"]["nan_b"]) == (1, 1)
    y = x.copy()
    y[0, 0] *= 1 + 1e-7
    pair = single(tdbg, tmp_path, x, y)
    assert pair["verdict"] == "within"
    check_metrics(pair["metrics"], Typed("float32", x), Typed("float32", y))


def test_nan_at_other_places_does_not(tdbg, tmp_path):
    x, y = base(), base()
    x[1, 5], y[1, 6] = np.nan, np.nan
    pair = single(tdbg, tmp_path, x, y)
    assert pair["verdict"] == "diverged" and pair["metrics"]["beyond"] == 2
    assert pair["reason"] == "NaN where the other side has none: 1 in A, 1 in B"


@pytest.mark.parametrize("pair_of", [(np.inf, 1.0), (1.0, -np.inf), (np.inf, -np.inf), (np.inf, np.nan)])
def test_an_infinity_on_one_side_is_a_divergence(tdbg, tmp_path, pair_of):
    x, y = base(), base()
    x[3, 1], y[3, 1] = pair_of
    pair = single(tdbg, tmp_path, x, y, "--rtol", "10", "--atol", "10")
    assert pair["verdict"] == "diverged" and pair["metrics"]["beyond"] == 1
    assert [w["index"] for w in pair["worst"]] == [[3, 1]]
    check_metrics(pair["metrics"], Typed("float32", x), Typed("float32", y))


def test_the_same_infinity_agrees(tdbg, tmp_path):
    x = base()
    x[3, 1], x[0, 0] = np.inf, -np.inf
    pair = single(tdbg, tmp_path, x, x.copy())
    assert pair["verdict"] == "identical" and pair["metrics"]["inf_a"] == pair["metrics"]["inf_b"] == 2


def test_nothing_finite(tdbg, tmp_path):
    x = np.full((3, 4), np.nan, np.float32)
    pair = single(tdbg, tmp_path, x, base(4)[:3])
    assert pair["verdict"] == "diverged" and pair["metrics"]["argmax"] is None
    check_metrics(pair["metrics"], Typed("float32", x), Typed("float32", base(4)[:3]))
    text = tdbg.text("diff", tmp_path / "a", tmp_path / "b", status=1)
    assert "No element is finite on both sides." in text


def test_rounding_beside_a_nan_is_not_beyond(tdbg, tmp_path):
    """`beyond` counts what the tolerance does not cover, also where a NaN decided."""
    x = base()
    y = (x * (1 + 1e-7)).astype(np.float32)
    y[2, 2] = np.nan
    assert single(tdbg, tmp_path, x, y)["metrics"]["beyond"] == 1
    assert single(tdbg, tmp_path, x, y, "--policy", "strict")["metrics"]["beyond"] == 1


# --- odd values ------------------------------------------------------------------------------------------------


def test_zero_vectors(tdbg, tmp_path):
    zero, x = np.zeros((4, 64), np.float32), base()
    pair = single(tdbg, tmp_path, zero, zero)
    assert pair["verdict"] == "identical" and pair["metrics"]["cosine"] == 1 and pair["metrics"]["snr_db"] == "inf"
    pair = single(tdbg, tmp_path, zero, -zero)
    assert pair["verdict"] == "identical" and pair["metrics"]["max_ulp"] == 0
    for a, b in (zero, x), (x, zero):
        pair = single(tdbg, tmp_path, a, b)
        assert pair["verdict"] == "diverged" and pair["metrics"]["cosine"] == 0
        check_metrics(pair["metrics"], Typed("float32", a), Typed("float32", b))
    assert single(tdbg, tmp_path, zero, x)["metrics"]["rel_l2"] == "inf"


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5, 2)])
def test_empty(tdbg, tmp_path, shape):
    pair = single(tdbg, tmp_path, np.zeros(shape, np.float32), np.zeros(shape, np.float32))
    assert pair["verdict"] == "identical" and pair["layout"]["shape"] == list(shape)
    check_metrics(pair["metrics"], Typed("float32", np.zeros(shape)), Typed("float32", np.zeros(shape)))


def test_a_loss_is_computed_from_the_layers(tdbg, tmp_path):
    """Beside layers a scalar without one has their noise; a constant of a layer is exact."""
    for side, by in ("a", 1), ("b", 1 + 4e-7):
        (tmp_path / side).mkdir()
        for name, value in {"11_post_mlp": np.ones((4, 8)), "11_scaling": 0.125, "loss": 2.3456}.items():
            np.save(tmp_path / side / f"{name}.npy", np.float32(value) * np.float32(by if name != "11_post_mlp" else 1))
    answer = json.loads(tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b").stdout)
    assert {p["stage"]: p["verdict"] for p in answer["pairs"]} == {
        "post_mlp": "identical", "scaling": "diverged", "loss.npy": "within"}


def test_scalars(tdbg, tmp_path):
    pair = single(tdbg, tmp_path, np.float64(0.125), np.float64(0.125))
    assert pair["verdict"] == "identical" and pair["metrics"]["argmax"] == [] and pair["layout"]["shape"] == []
    pair = single(tdbg, tmp_path, np.float64(0.1), np.float32(0.1))
    assert pair["verdict"] == "within" and pair["reason"] == "a scalar, the same but for the rounding of the coarser type"
    pair = single(tdbg, tmp_path, np.float64(0.125), np.float64(0.25))
    assert pair["verdict"] == "diverged" and pair["reason"] == "scalars are exact: 0.125 against 0.25"
    assert pair["metrics"]["beyond"] == 1
    check_metrics(pair["metrics"], Typed("float64", np.float64(0.125)), Typed("float64", np.float64(0.25)))
    pair = single(tdbg, tmp_path, np.int64(128), np.int64(127))
    assert pair["verdict"] == "diverged"


@pytest.mark.parametrize("size", [1e300, 1e-200])
def test_squares_that_leave_the_range(tdbg, tmp_path, size):
    """|a| is in range where a.a is not: norms are still right, and a wrong tensor is still wrong."""
    rng = np.random.default_rng(11)
    x = size * rng.uniform(0.1, 0.4, (8, 40))
    y = x * rng.uniform(0.5, 1.5, x.shape)
    pair = single(tdbg, tmp_path, x, y)
    assert pair["verdict"] == "diverged"
    want, metrics = expected(Typed("float64", x), Typed("float64", y)), pair["metrics"]
    for key in "max_abs", "mean_abs", "max_rel", "mean_rel", "rmse", "cosine", "rel_l2", "snr_db":
        assert number(metrics[key]) == pytest.approx(float(want[key]), rel=1e-12), key
    assert number(metrics["mse"]) == pytest.approx(float(np.float64(want["mse"])), rel=1e-12)


def test_far_out_values_never_pass(tdbg, tmp_path):
    x = np.array([[1e300, -2e300, 1e300]])
    assert single(tdbg, tmp_path, x, x * [1, 1, 2])["verdict"] == "diverged"


def test_same_far_out_values(tdbg, tmp_path):
    x = np.full((3, 5), 1e300)
    pair = single(tdbg, tmp_path, x, x)
    assert pair["verdict"] == "identical" and pair["metrics"]["cosine"] == pytest.approx(1, abs=1e-12)


def test_difference_beyond_the_range(tdbg, tmp_path):
    x = np.array([1.7e308, 1.0])
    pair = single(tdbg, tmp_path, x, -x)
    assert pair["verdict"] == "diverged" and pair["metrics"]["max_abs"] == "inf" and pair["metrics"]["argmax"] == [0]
    assert pair["metrics"]["cosine"] == pytest.approx(-1, abs=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_subnormals(tdbg, tmp_path, dtype):
    least = {"float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}[dtype]
    rng = np.random.default_rng(12)
    x, y = least * rng.integers(-60, 60, (6, 50)), least * rng.integers(-60, 60, (6, 50))
    a, b = Typed(dtype, x), Typed(dtype, y)
    assert np.array_equal(a.values, x)
    names = a.save(tmp_path / "a", "x"), b.save(tmp_path / "b", "x")
    pair = one(compare(tdbg, tmp_path / "a", tmp_path / "b"))
    assert names and pair["verdict"] == "diverged"
    check_metrics(pair["metrics"], a, b)


def test_mean_of_many_large_and_one_small(tdbg, tmp_path):
    """A plain running sum in double loses the small ones."""
    x = np.full(1_000_003, 1e8)
    y = x + 1
    y[5] = x[5] + 1e9
    pair = single(tdbg, tmp_path, x, y)
    check_metrics(pair["metrics"], Typed("float64", x), Typed("float64", y))


def test_identical_has_an_infinite_snr(tdbg, tmp_path):
    pair = single(tdbg, tmp_path, base(), base())
    assert pair["metrics"]["snr_db"] == "inf" and pair["metrics"]["rel_l2"] == 0


# --- integers and complex ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_large_integers_are_compared_as_integers(tdbg, tmp_path, dtype):
    """2^60 and 2^60 + 1 are one double and two integers."""
    x = np.arange(100, dtype=dtype) + 2**60
    y = x.copy()
    y[37] += y.dtype.type(1)
    pair = single(tdbg, tmp_path, x, y)
    assert pair["verdict"] == "diverged" and pair["reason"] == "integers are exact: 1 of 100 differ"
    assert [(w["index"], w["difference"]) for w in pair["worst"]] == [([37], 1)]
    assert single(tdbg, tmp_path, x, x)["verdict"] == "identical"


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16", "bool"])
def test_integers_are_exact(tdbg, tmp_path, dtype):
    x = (np.arange(60) % 2).astype(dtype).reshape(3, 20)
    y = x.copy()
    y[1, 4] = 1 - y[1, 4]
    y[2, 7] = 1 - y[2, 7]
    pair = single(tdbg, tmp_path, x, y)
    assert pair["verdict"] == "diverged" and pair["reason"] == "integers are exact: 2 of 60 differ"
    assert pair["metrics"]["beyond"] == 2 and [w["index"] for w in pair["worst"]] == [[1, 4], [2, 7]]
    assert single(tdbg, tmp_path, x, y, "--atol", "1")["verdict"] == "within"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_differ_by_the_modulus_of_the_difference(tdbg, tmp_path, dtype):
    x = np.array([[1 + 1j, 2], [3j, -1]], dtype)
    y = np.array([[1 - 1j, 2], [3, 1]], dtype)
    pair = single(tdbg, tmp_path, x, y)
    assert pair["verdict"] == "diverged"
    check_metrics(pair["metrics"], Typed(dtype, x), Typed(dtype, y))
    assert pair["metrics"]["argmax"] == [1, 0]
    assert pair["worst"][0]["difference"] == pytest.approx(abs(3 - 3j)) and pair["worst"][0]["a"] == pair["worst"][0]["b"] == 3


def test_complex_conjugate_of_a_large_tensor(tdbg, tmp_path):
    rng = np.random.default_rng(13)
    x = (rng.standard_normal((70, 90)) + 1j * rng.standard_normal((70, 90))).astype(np.complex64)
    pair = single(tdbg, tmp_path, x, x.conj())
    assert pair["verdict"] == "diverged"
    check_metrics(pair["metrics"], Typed("complex64", x), Typed("complex64", x.conj()))


def test_complex_with_a_nan_part(tdbg, tmp_path):
    x = (np.arange(12) + 1j).astype(np.complex64)
    y = x.copy()
    y[4] = complex(1, np.nan)
    pair = single(tdbg, tmp_path, x, y)
    assert pair["verdict"] == "diverged" and pair["metrics"]["nan_b"] == 1 and pair["metrics"]["nan_a"] == 0


# --- the worst elements, and how many are beyond -------------------------------------------------------------------


@pytest.mark.parametrize("top", [0, 1, 5, 40])
def test_worst_elements(tdbg, tmp_path, top):
    rng = np.random.default_rng(14)
    x = rng.standard_normal((9, 11, 13)).astype(np.float32)
    y = (x + rng.integers(-3, 4, x.shape)).astype(np.float32)  # many ties, after rounding most of them exact
    pair = single(tdbg, tmp_path, x, y, "--top", top)
    d = np.abs(x.astype(np.float64) - y)
    order = np.lexsort((np.arange(d.size), -d.reshape(-1)))[:top]
    assert [tuple(w["index"]) for w in pair.get("worst", [])] == [tuple(int(i) for i in np.unravel_index(k, x.shape)) for k in order]
    for w in pair.get("worst", []):
        at = tuple(w["index"])
        assert w["a"] == x[at] and w["b"] == y[at] and w["difference"] == y[at].astype(np.float64) - x[at]


def test_worst_elements_across_blocks(tdbg, tmp_path):
    x = np.zeros(3_000_000, np.float32) + 1
    y = x.copy()
    places = [0, 4095, 4096, 1_048_576, 2_097_151, 2_999_999]
    for rank, place in enumerate(places):
        y[place] += 2.0 ** (rank % 3 + 1)
    y[17] = np.inf
    want = [17] + sorted(places, key=lambda p: (-y[p], p))
    pair = single(tdbg, tmp_path, x, y, "--top", "10")
    assert [w["index"][0] for w in pair["worst"]] == want
    assert pair["metrics"]["argmax"] == [4096]


def test_ties_of_the_largest_go_to_the_first(tdbg, tmp_path):
    x = np.ones((130, 70), np.float32)
    y = x.copy()
    for place in (100, 3), (41, 69), (41, 7), (2, 68):
        y[place] = 3
    pair = single(tdbg, tmp_path, x, y)
    assert pair["metrics"]["argmax"] == [2, 68]
    assert [w["index"] for w in pair["worst"]] == [[2, 68], [41, 7], [41, 69], [100, 3]]
    assert single(tdbg, tmp_path, x, x)["metrics"]["argmax"] == [0, 0]


@pytest.mark.parametrize("rtol, atol", [(0, 0.05), (0.05, 0), (0.03, 0.02), (0, 0), (10, 10)])
def test_beyond(tdbg, tmp_path, rtol, atol):
    rng = np.random.default_rng(15)
    x = rng.standard_normal((50, 130)).astype(np.float32)
    y = (x + 0.05 * rng.standard_normal(x.shape)).astype(np.float32)
    p, q = x.astype(np.float64), y.astype(np.float64)
    want = int((np.abs(p - q) > atol + rtol * np.abs(p)).sum())
    pair = single(tdbg, tmp_path, x, y, "--rtol", rtol, "--atol", atol)
    assert pair["metrics"]["beyond"] == want
    assert pair["verdict"] == ("diverged" if want else "within")
    if want:
        assert pair["reason"] == f"{want} of 6500 elements beyond rtol {rtol:.3g}, atol {atol:.3g}"
    else:
        assert pair["reason"] == f"within rtol {rtol:g}, atol {atol:g}"


def test_beyond_eight_floors(tdbg, tmp_path):
    """One element far off in a tensor whose error as a whole is small."""
    rng = np.random.default_rng(16)
    x = rng.standard_normal((1000, 1000)).astype(np.float32)
    y = x.copy()
    y[700, 12] += 1e-4
    pair = single(tdbg, tmp_path, x, y)
    rms = np.sqrt((x.astype(np.float64) ** 2).mean())
    assert pair["metrics"]["rel_l2"] < pair["floor"]
    assert 1e-4 > 8 * pair["floor"] * (rms + abs(x[700, 12]))
    assert pair["verdict"] == "diverged" and pair["metrics"]["beyond"] == 1
    assert pair["reason"].endswith("(8 noise floors)") and pair["reason"].startswith("1 of 1000000 elements beyond")
    assert [w["index"] for w in pair["worst"]] == [[700, 12]]


@pytest.mark.parametrize("dtype, tolerance", [("float64", (1e-7, 1e-7)), ("float32", (1.3e-6, 1e-5)), ("float16", (1e-3, 1e-5)),
                                              ("bfloat16", (1.6e-2, 1e-5))])  # fmt: skip
def test_strict_tolerances(tdbg, tmp_path, dtype, tolerance):
    rng = np.random.default_rng(17)
    rtol, atol = tolerance
    x = rng.standard_normal((40, 60))
    a = Typed(dtype, x)
    b = Typed("float64", a.values + (atol + rtol * np.abs(a.values)) * rng.uniform(0, 1.2, x.shape))
    a.save(tmp_path / "a", "x")
    b.save(tmp_path / "b", "x")
    pair = one(compare(tdbg, tmp_path / "a", tmp_path / "b", "--policy", "strict", "--match", "fuzzy,shape"))
    d = np.abs(a.values - b.values)
    assert pair["metrics"]["beyond"] == int((d > atol + rtol * np.abs(a.values)).sum()) > 0
    assert pair["verdict"] == "diverged"


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_units_in_the_last_place(tdbg, tmp_path, dtype):
    rng = np.random.default_rng(18)
    a = Typed(dtype, rng.standard_normal((20, 30)))
    b = Typed(dtype, a.values)
    step = rng.integers(0, 4, b.bits.shape).astype(np.uint8)
    kind = {"float64": np.uint64, "float32": np.uint32}.get(dtype, np.uint16)
    b.bits = (b.bits.view(kind) + step.astype(kind)).astype(kind).view(b.bits.dtype)
    b.values = Typed(dtype, (b.bits.astype(np.uint32) << 16).view(np.float32)).values if dtype == "bfloat16" else b.bits.astype(np.float64)
    a.save(tmp_path / "a", "x")
    b.save(tmp_path / "b", "x")
    assert one(compare(tdbg, tmp_path / "a", tmp_path / "b"))["metrics"]["max_ulp"] == 3


@pytest.mark.parametrize("shape", [(7, 5, 300), (300, 1100), (4097,)])
def test_profile_says_where_the_error_sits(tdbg, tmp_path, shape):
    rng = np.random.default_rng(4)
    a = rng.standard_normal(shape).astype(np.float32)
    b = (a + rng.standard_normal(shape) * np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))).astype(np.float32)
    b.flat[17] = np.nan
    for side, array in (("a", a), ("b", b)):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "0_x.npy", array)
    runs = [tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b", env={"TDBG_THREADS": n}).stdout for n in "12"]
    assert runs[0] == runs[1]
    profile = json.loads(runs[0])["pairs"][0]["profile"]
    square = np.nan_to_num((a.astype(np.float64) - b.astype(np.float64)) ** 2)
    assert len(profile) == len(shape)
    for axis, shares in enumerate(profile):
        expected = square.sum(tuple(i for i in range(len(shape)) if i != axis))
        np.testing.assert_allclose(shares, expected / expected.sum(), rtol=1e-12)


def test_infinities_of_opposite_signs(tdbg, tmp_path):
    x = np.random.default_rng(2).standard_normal((6, 8)).astype(np.float32)
    a, b = x.copy(), x.copy()
    a[2, 2], b[2, 2] = np.inf, -np.inf
    pair = single(tdbg, tmp_path, a, b)
    assert pair["reason"] == "infinity that the other side does not share: 1 in A, 1 in B"
    assert pair["diagnosis"][0]["detail"].startswith("1 value is infinite in B and infinite with the other sign in A")


def test_a_nan_against_an_infinity(tdbg, tmp_path):
    x = np.random.default_rng(2).standard_normal((6, 8)).astype(np.float32)
    a, b = x.copy(), x.copy()
    a[2, 2], b[2, 2] = np.nan, np.inf
    pair = single(tdbg, tmp_path, a, b)
    assert pair["reason"] == "NaN that the other side does not share: 1 in A, 0 in B"
    assert pair["diagnosis"][0]["detail"].startswith("1 value is NaN in A and infinite in B")
    assert pair["diagnosis"][1]["detail"].startswith("1 value is infinite in B and not in A")


def test_a_nan_that_both_have_is_not_where_one_has_it_alone(tdbg, tmp_path):
    x = np.random.default_rng(2).standard_normal((6, 8)).astype(np.float32)
    x[1, 2], x[4, 5] = np.nan, np.inf
    b = x.copy()
    b[3, 7] = np.nan
    pair = single(tdbg, tmp_path, x, b)
    assert pair["diagnosis"][0]["detail"] == "1 value is NaN in B and finite in A, at channel 7 of axis 1"


def test_no_cosine_passes_one(tdbg, tmp_path):
    x = np.random.default_rng(1).standard_normal((8, 8))
    sides = [x * (n + 1) for n in range(64)]
    np.savez(tmp_path / "a.npz", **{f"{n}_query": y for n, y in enumerate(sides)})
    np.savez(tmp_path / "b.npz", **{f"{n}_query": -3 * y if n % 2 else 3 * y for n, y in enumerate(sides)})
    answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=1)
    assert all(-1 <= p["metrics"]["cosine"] <= 1 for p in answer["pairs"])
