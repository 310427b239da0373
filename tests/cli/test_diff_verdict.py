"""The rules of `tdbg diff`: the noise floor and what it takes into account, strict and given tolerances, a reference."""
import re

import numpy as np
import pytest

from difftools import Typed, compare, dump, one, single


def test_policies(tdbg, tmp_path):
    x = np.random.default_rng(3).standard_normal((20, 40)).astype(np.float32)
    y = x + np.float32(4e-5)
    kinds = {}
    for options in (), ("--policy", "noise"), ("--policy", "strict"), ("--rtol", "0", "--atol", "1e-4"), ("--atol", "1e-6"):
        pair = single(tdbg, tmp_path, x, y, *options)
        kinds[options] = pair["verdict"]
    assert list(kinds.values()) == ["diverged", "diverged", "diverged", "within", "diverged"]
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", "--rtol", "0.5")
    assert answer["policy"] == {"kind": "tolerance", "rtol": 0.5, "atol": 0.0, "reference": None}
    assert compare(tdbg, tmp_path / "a", tmp_path / "b", "--policy", "strict")["policy"]["kind"] == "strict"


def test_strict_knows_no_depth(tdbg, tmp_path):
    """The noise floor grows with the layers; the tolerance of a type does not."""
    x = np.random.default_rng(3).standard_normal((20, 40)).astype(np.float16)
    y = (x.astype(np.float64) * (1 + 2e-3 * np.random.default_rng(4).choice([-1, 1], x.shape))).astype(np.float16)
    for layer, noise in (0, "diverged"), (30, "within"):
        dump(tmp_path / f"a{layer}", {f"{layer}_query": x})
        dump(tmp_path / f"b{layer}", {f"{layer}_query": y})
        sides = tmp_path / f"a{layer}", tmp_path / f"b{layer}"
        assert one(compare(tdbg, *sides))["verdict"] == noise
        assert one(compare(tdbg, *sides, "--policy", "strict"))["verdict"] == "diverged"


def bfloat16(x):
    return Typed("bfloat16", x).values.astype(np.float32)


@pytest.mark.parametrize("grid", [bfloat16, lambda x: x.astype(np.float16).astype(np.float32)])
def test_a_narrow_type_stored_as_float32(tdbg, tmp_path, grid):
    """All of B was computed in the narrow type: that is its noise, and the one real mistake is seen."""
    rng = np.random.default_rng(8)
    a = {f"{n}_{s}": rng.standard_normal((16, 32)).astype(np.float32) for n in range(4) for s in ("query", "key", "post_mlp")}
    a["0_scaling"] = np.float32(0.2)
    b = {name: grid(x) if x.ndim else x for name, x in a.items()}
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=0)
    assert answer["summary"]["within"] == 12
    assert answer["pairs"][0]["reason"].endswith("of the type that the values were rounded to")
    dump(tmp_path / "b", {"2_key": -b["2_key"]})
    first = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]
    assert (first["layer"], first["stage"], first["diagnosis"][0]["kind"]) == (2, "key", "sign")
    dump(tmp_path / "b", {"2_key": b["2_key"] * np.float32(1.7)})  # off the grid, and alone in that
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert answer["summary"]["diverged"] == 1 and answer["first_divergence"]["diagnosis"][0]["kind"] == "scale"
    dump(tmp_path / "b", {"2_key": np.where(np.arange(32) == np.where(np.arange(16) == 5, 7, -1)[:, None], b["2_key"] + 3, b["2_key"])})
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    kinds = [d["kind"] for d in answer["first_divergence"]["diagnosis"]]
    assert answer["summary"]["diverged"] == 1 and kinds[0] == "partial", kinds  # one element; the others are rounded, and right


@pytest.mark.parametrize("name, rounded", [("{}_query", [1]), ("layers.{}.weight", [0, 1, 2])])
def test_what_is_rounded_alone_is_found(tdbg, tmp_path, name, rounded):
    """A single stage in a narrow type, or weights that should be copies."""
    rng = np.random.default_rng(8)
    a = {name.format(n): rng.standard_normal((16, 32)).astype(np.float32) for n in range(3)}
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", a | {name.format(n): bfloat16(a[name.format(n)]) for n in rounded})
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert answer["summary"]["diverged"] == len(rounded)
    assert answer["first_divergence"]["diagnosis"][0]["kind"] == "precision"


def test_reference(tdbg, tmp_path):
    """A and B both round to bfloat16 in their own way; the float64 run says who is further off than rounding."""
    rng = np.random.default_rng(6)
    truth = rng.standard_normal((30, 64))
    a = bfloat16(truth)
    fair = bfloat16(truth * (1 + 2.0**-9 * rng.uniform(-1, 1, truth.shape)))
    poor = bfloat16(truth * 1.03)
    for name, x in ("truth", truth), ("a", a), ("fair", fair), ("poor", poor):
        dump(tmp_path / name, {"0_query": x})
    run = lambda b: compare(tdbg, tmp_path / "a", tmp_path / b, "--reference", tmp_path / "truth")
    answer = run("fair")
    assert answer["policy"] == {"kind": "reference", "rtol": None, "atol": None, "reference": str(tmp_path / "truth")}
    assert one(answer)["verdict"] == "within"
    pair = one(run("poor"))
    assert pair["verdict"] == "diverged" and pair["metrics"]["beyond"] >= 0 and len(pair["worst"]) == 5
    match = re.fullmatch(r"error against the reference: A (\S+), B (\S+) \(ratio (\S+), allowed 3\)", pair["reason"])
    norm = np.linalg.norm
    assert float(match[1]) == pytest.approx(norm(a - truth) / norm(truth), rel=1e-2)
    assert float(match[2]) == pytest.approx(norm(poor - truth) / norm(truth), rel=1e-2)
    assert float(match[3]) == pytest.approx(norm(poor - truth) / norm(a - truth), rel=1e-2)


def test_a_reference_and_a_coarser_b(tdbg, tmp_path):
    """Deep in the model the noise of bfloat16 is many roundings, of which a float32 A knows nothing."""
    rng = np.random.default_rng(4)
    r = {f"{n}_query": rng.standard_normal((16, 32)).astype(np.float32) for n in range(8)}
    noise = {name: rng.standard_normal(x.shape).astype(np.float32) for name, x in r.items()}
    off = lambda u: {name: x * (1 + 4 * np.float32(u) * noise[name]) for name, x in r.items()}
    for side, run in ("r", r), ("a", off(2**-24)):
        dump(tmp_path / side, run)
    options = "--reference", tmp_path / "r"
    for name, x in off(2**-8).items():
        Typed("bfloat16", x).save(tmp_path / "b", name)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", *options, status=1)
    verdicts = [p["verdict"] for p in answer["pairs"]]
    assert verdicts == sorted(verdicts) and verdicts.count("within") >= 4  # what is too much at first is noise later
    for name, x in off(2**-6).items():
        Typed("bfloat16", x).save(tmp_path / "b", name)
    assert compare(tdbg, tmp_path / "a", tmp_path / "b", *options, status=1)["summary"]["diverged"] == 8


@pytest.mark.parametrize("size, verdict", [(1e-9, "within"), (1e-3, "diverged")])
def test_a_gradient_that_is_zero_but_for_rounding(tdbg, tmp_path, size, verdict):
    rng = np.random.default_rng(4)
    for side in "ab":
        weight = np.random.default_rng(5).standard_normal((16, 16)).astype(np.float32)
        bias = (size * rng.standard_normal(16)).astype(np.float32)
        dump(tmp_path / side, {"layers.0.k.weight.grad": weight, "layers.0.k.bias.grad": bias})
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1 if verdict == "diverged" else 0)
    assert {p["stage"]: p["verdict"] for p in answer["pairs"]} == {"k.weight.grad": "identical", "k.bias.grad": verdict}


def test_a_bias_gradient_is_held_against_the_weight_of_its_own_module(tdbg, tmp_path):
    """Of many modules, those with a small weight gradient have no noise that would excuse their bias."""
    rng = np.random.default_rng(6)
    for side in "ab":
        weights = np.random.default_rng(7)
        tensors = {}
        for n in range(40):
            size = 1 if n % 3 else 1e-6
            tensors[f"layers.{n}.k.weight.grad"] = (size * weights.standard_normal((16, 16))).astype(np.float32)
            tensors[f"layers.{n}.k.bias.grad"] = (1e-9 * rng.standard_normal(16)).astype(np.float32)
        dump(tmp_path / side, tensors)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert [p["layer"] for p in answer["pairs"] if p["verdict"] == "diverged"] == list(range(0, 40, 3))


@pytest.mark.parametrize("fill", [-1e9, float(np.finfo(np.float32).min), -65504.0])
def test_masked_scores_are_judged_beside_the_mask(tdbg, tmp_path, fill):
    """The norm of the fill would hide that all others are twice too large."""
    r = np.random.default_rng(3)
    scores = r.standard_normal((4, 24, 24)).astype(np.float32)
    mask = np.triu(np.ones((24, 24), bool), 1)
    masked = lambda x: np.where(mask, np.float32(fill), x).astype(np.float32)
    rounded = scores * (1 + 1e-7 * r.standard_normal(scores.shape).astype(np.float32))
    for other, verdict in (scores * 2, "diverged"), (rounded, "within"):
        dump(tmp_path / "a", {"0_scores": masked(scores)})
        dump(tmp_path / "b", {"0_scores": masked(other)})
        answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=int(verdict == "diverged"))
        assert answer["pairs"][0]["verdict"] == verdict and "beside the value" in answer["pairs"][0]["reason"]


@pytest.mark.parametrize("change, verdict", [
    (lambda scores, mask: None, "within"),
    (lambda scores, mask: scores.__imul__(2), "diverged"),
    (lambda scores, mask: scores.__setitem__((2, 20, 3), scores[2, 20, 3] + 0.01), "diverged"),  # one element
    (lambda scores, mask: mask.__setitem__((5, 4), True), "diverged"),  # one place more is masked
    (lambda scores, mask: mask.__setitem__((5, 9), False), "diverged"),  # one less
])  # fmt: skip
@pytest.mark.parametrize("fill_b", [-1e9, -1e4])
def test_masks_of_different_values(tdbg, tmp_path, change, verdict, fill_b):
    """What is masked is nothing to the softmax, whichever huge number says so: it must be the same places."""
    scores = np.random.default_rng(3).standard_normal((4, 24, 24)).astype(np.float32)
    mask = np.triu(np.ones((24, 24), bool), 1)
    dump(tmp_path / "a", {"0_scores": np.where(mask, np.finfo(np.float32).min, scores).astype(np.float32)})
    scores *= 1 + 1e-7 * np.random.default_rng(4).standard_normal(scores.shape).astype(np.float32)
    change(scores, mask)
    dump(tmp_path / "b", {"0_scores": np.where(mask, np.float32(fill_b), scores).astype(np.float32)})
    pair = compare(tdbg, tmp_path / "a", tmp_path / "b", status=int(verdict == "diverged"))["pairs"][0]
    assert pair["verdict"] == verdict, pair["reason"]
    if verdict == "within":
        assert f"beside the value -3.4e+38, which is {fill_b:.3g} in B" in pair["reason"]
