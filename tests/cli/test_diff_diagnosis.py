"""What kind of mistake a divergence looks like: the example model with each of its bugs, every kind on tensors made
for it, and what the dump doctor has to say."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from built import BINARY, ROOT
from difftools import Typed, compare, dump

EXAMPLE = BINARY.parent / "examples" / "tiny_transformer"
TOKENS, HEADS, SIZE = 24, 8, 16


def first_of(answer):
    first = answer["first_divergence"]
    return first and (first["layer"], first["stage"], first["diagnosis"][0]["kind"])


# --- a whole model -----------------------------------------------------------------------------------------------------

# bug: stage, kinds that name it, first layer that has it (when the bug starts at layer 1)
BUGS = {
    "missing-query-bias": ("query", {"bias"}, 1),
    "wrong-scale": ("post_attn", {"scale"}, 1),
    "swapped-kv": ("key", {"swap"}, 1),
    "rope-interleaved": ("query_final", {"rope"}, 1),
    "mask-off-by-one": ("post_attn", {"mask"}, 1),
    "token-shift": ("key_final", {"shift"}, 1),
    "kv-tiled": ("post_attn", {"permutation"}, 1),
    "window-ignored": ("post_attn", {"mask"}, 2),  # layer 1 has no window
    "stale-weights": ("post_ln_pre_attn", {"channel_scale", "stale", "unknown"}, 1),
    "gate-up-swapped": ("post_mlp", {"unknown"}, 1),
}


def example(tmp_path, *options):
    if not EXAMPLE.is_file():
        pytest.skip(f"{EXAMPLE} is not built")
    subprocess.run([EXAMPLE, tmp_path, *map(str, options)], check=True, stdout=subprocess.DEVNULL)
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.parametrize("seed, layers", [(1, 4), (2, 6), (77, 3)])
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_the_example(tdbg, tmp_path, bug, seed, layers):
    stage, kinds, layer = BUGS[bug]
    answer = compare(tdbg, *example(tmp_path, "--bug", bug, "--seed", seed, "--layers", layers), status=1)
    where = first_of(answer)
    assert where[:2] == (layer, stage) and where[2] in kinds, answer["first_divergence"]
    assert all(p["verdict"] != "diverged" for p in answer["pairs"][: answer["first_divergence"]["index"]])
    assert answer["notes"] == []


@pytest.mark.parametrize("bug", ["missing-query-bias", "token-shift"])
def test_a_bug_that_begins_late(tdbg, tmp_path, bug):
    answer = compare(tdbg, *example(tmp_path, "--bug", bug, "--layers", "8", "--from", "6"), status=1)
    assert first_of(answer)[:2] == (6, BUGS[bug][0]) and first_of(answer)[2] in BUGS[bug][1]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("layers", [1, 4, 24])
def test_a_faithful_port(tdbg, tmp_path, seed, layers):
    answer = compare(tdbg, *example(tmp_path, "--bug", "none", "--seed", seed, "--layers", layers), status=0)
    assert answer["first_divergence"] is None and answer["notes"] == []
    assert answer["summary"]["diverged"] == answer["summary"]["errors"] == 0
    assert answer["summary"]["pairs"] == layers * 13


# --- every kind by itself ------------------------------------------------------------------------------------------------


def run_of(layers=3, seed=1):
    """Unrelated tensors in the places of a model's stages: what matters is how B's differ from A's."""
    rng = np.random.default_rng(seed)
    heads = lambda: rng.standard_normal((TOKENS, HEADS, SIZE)).astype(np.float32)
    run = {}
    for n in range(layers):
        run[f"{n}_post_ln_pre_attn"] = rng.standard_normal((TOKENS, HEADS * SIZE)).astype(np.float32)
        for stage in "query", "key", "value":
            run[f"{n}_{stage}"] = heads()
        run[f"{n}_post_mlp"] = rng.standard_normal((TOKENS, HEADS * SIZE)).astype(np.float32)
    return run


def diagnose(tdbg, tmp_path, change, stage="query", b_type=None, options=()):
    """Layer 1's `stage` of B is change(A's); the rest is the same."""
    a = run_of()
    b = dict(a)
    b[f"1_{stage}"] = np.asarray(change(a[f"1_{stage}"])).astype(b_type or np.float32)
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", *options, status=1)
    assert first_of(answer)[:2] == (1, stage)
    return answer["first_divergence"]["diagnosis"]


def rng():
    return np.random.default_rng(99)


def zero_some(x):
    y = x.copy()
    y[5:9] = 0
    return y


def spoil_heads(x):
    y = x.copy()
    y[:, [2, 5]] = rng().standard_normal((TOKENS, 2, SIZE))
    return y


def put(value):
    def change(x):
        y = x.copy()
        y[3, 2, 1] = value
        return y

    return change


def interleave(x):
    return x.reshape(TOKENS, HEADS, 2, SIZE // 2).swapaxes(2, 3).reshape(x.shape)


def lose_the_start(x):
    y = np.zeros_like(x)
    y[1:] = x[:-1]
    return y


KINDS = {
    "scale": (lambda x: x * 0.25, "scale", "100.0 % explained by x 0.25 = 1/sqrt(16)"),
    "scale by a number": (lambda x: x * 1.7, "scale", "100.0 % explained by x 1.7"),
    "sign": (lambda x: -x, "sign", "100.0 % explained by the opposite sign"),
    "offset": (lambda x: x + 0.5, "bias", "100.0 % explained by adding 0.5 everywhere"),
    "bias": (lambda x: x + 0.5 * rng().standard_normal((HEADS, SIZE)), "bias",
             "100.0 % explained by an offset the same for every token (axis 0)"),
    "channel scale": (lambda x: x * rng().uniform(0.5, 2, SIZE), "channel_scale", "per channel (axis 2)"),
    "head scale": (lambda x: x * rng().uniform(0.5, 2, (HEADS, 1)), "channel_scale", "per head (axis 1)"),
    "rolled tokens": (lambda x: np.roll(x, 3, 0), "shift", "100.0 % explained by axis 0 (tokens) rolled by 3"),
    "late by one": (lose_the_start, "shift", "axis 0 (tokens) shifted by 1"),
    "exchanged heads": (lambda x: x[:, [0, 6, 2, 3, 4, 5, 1, 7]], "permutation", "axis 1 (heads) 1 and 6 exchanged"),
    "reversed heads": (lambda x: x[:, ::-1], "permutation", "axis 1 (heads) in reverse order"),
    "shuffled channels": (lambda x: x[..., rng().permutation(SIZE)], "permutation", "axis 2 (channels)"),
    "scrambled": (lambda x: x.transpose(1, 0, 2).reshape(x.shape), "transpose",
                  "a reshape where axes 0 and 1 should have been exchanged"),
    "clamped": (lambda x: np.clip(x, -1, 1), "clamp", "limiting A to [-1, 1]"),
    "clamped above": (lambda x: np.minimum(x, 0.75), "clamp", "limiting A from above at 0.75"),
    "zeroed": (zero_some, "zeroed", "values are zero in B and not in A: token 5-8 of axis 0"),
    "all zero": (np.zeros_like, "zeroed", "3072 values are zero in B and not in A"),
    "two heads": (spoil_heads, "partial", "only head 2, 5 of axis 1 (2 of 8) differ"),
    "coarse": (lambda x: Typed("bfloat16", x).values, "precision", "100.0 % of B's values are bfloat16 numbers stored as float32"),
    "coarse half": (lambda x: x.astype(np.float16), "precision", "100.0 % of B's values are float16 numbers stored as float32"),
    "nan": (put(np.nan), "nan", "1 value is NaN in B and finite in A"),
    "infinity": (put(np.inf), "inf", "1 value is infinite in B and finite in A"),
    "unrelated": (lambda x: rng().standard_normal(x.shape), "unknown", "no simple rule relates the two"),
}  # fmt: skip


def test_another_order_that_what_follows_does_not_notice_is_how_b_stores_it(tdbg, tmp_path):
    a = run_of()
    a["1_query_final"] = a["1_query"]
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", {**a, "1_query": interleave(a["1_query"])})
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=0)
    (pair,) = [p for p in answer["pairs"] if p["name"].startswith("1_query.")]
    assert pair["verdict"] == "identical" and pair["layout"]["by_value"]
    assert any("permute" in step for step in pair["layout"]["steps"])


def test_another_order_that_spoils_what_follows_is_a_mistake(tdbg, tmp_path):
    a = run_of()
    a["1_query_final"] = a["1_query"]
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", {**a, "1_query": interleave(a["1_query"]), "1_query_final": 2 * a["1_query"]})
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert first_of(answer)[:2] == (1, "query")
    assert answer["first_divergence"]["diagnosis"][0]["kind"] == "rope"


@pytest.mark.parametrize("case", KINDS)
def test_kinds(tdbg, tmp_path, case):
    change, kind, detail = KINDS[case]
    diagnosis = diagnose(tdbg, tmp_path, change)
    assert diagnosis[0]["kind"] == kind, diagnosis
    assert detail in diagnosis[0]["detail"]
    assert diagnosis[-1]["kind"] == "unknown"
    if kind != "unknown":
        sure = 0.7 if kind == "partial" else 0.9  # a place is less of an explanation than a rule
        assert diagnosis[0]["confidence"] >= sure > 0.5 > diagnosis[-1]["confidence"]


@pytest.mark.parametrize("case", ["scale", "sign", "bias", "rolled tokens", "exchanged heads", "zeroed"])
@pytest.mark.parametrize("options", [("--policy", "strict"), ("--rtol", "1e-3")])
def test_the_rule_does_not_change_the_diagnosis(tdbg, tmp_path, case, options):
    change, kind, detail = KINDS[case]
    diagnosis = diagnose(tdbg, tmp_path, change, b_type=np.float16, options=options)
    assert diagnosis[0]["kind"] == kind and diagnosis[0]["confidence"] >= 0.9, diagnosis


@pytest.mark.parametrize("case", ["scale", "sign", "bias", "rolled tokens", "exchanged heads", "clamped", "zeroed"])
def test_kinds_under_rounding(tdbg, tmp_path, case):
    """Half precision on top of the mistake: still named, still complete."""
    change, kind, _ = KINDS[case]
    assert diagnose(tdbg, tmp_path, change, b_type=np.float16)[0]["kind"] == kind


def test_one_square_transposed(tdbg, tmp_path):
    r = np.random.default_rng(4)
    a = {f"layers.{n}.proj.weight": r.standard_normal((40, 40)) for n in range(3)}
    b = {n: x.T.copy() if ".1." in n else x for n, x in a.items()}
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert first_of(answer)[0] == 1 and first_of(answer)[2] == "transpose"


def change_run(tdbg, tmp_path, change, **options):
    a = run_of(**options)
    b = dict(a)
    change(a, b)
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    return compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)


def test_swap(tdbg, tmp_path):
    def change(a, b):
        b["1_key"], b["1_value"] = a["1_value"], a["1_key"]

    answer = change_run(tdbg, tmp_path, change)
    assert first_of(answer) == (1, "key", "swap")
    assert answer["first_divergence"]["diagnosis"][0]["detail"] == "B's key is A's value"


def test_stale(tdbg, tmp_path):
    def change(a, b):
        b["2_value"] = a["1_value"]

    answer = change_run(tdbg, tmp_path, change)
    assert first_of(answer) == (2, "value", "stale")
    assert answer["first_divergence"]["diagnosis"][0]["detail"] == "B's value of layer 2 is A's of layer 1"


def attention(q, k, v, scale, window=0, ahead=0):
    n = len(q)
    scores = np.einsum("thd,shd->hts", q, k) * scale
    t, s = np.indices((n, n))
    seen = s <= t + ahead
    if window:
        seen &= t - s < window
    weights = np.exp(np.where(seen, scores, -np.inf) - scores.max())
    return np.einsum("hts,shd->thd", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("wrong, kind, detail", [
    ({"ahead": 1}, "mask", "each token seeing one later token"),
    ({"ahead": TOKENS}, "mask", "no causal mask"),
    ({"window": 5}, "mask", "a sliding window of 5"),
    ({"scale": 1 / SIZE}, "scale", "a scale of 1/size"),
    ({"scale": 1}, "scale", "a scale of 1 "),
])  # fmt: skip
def test_attention_is_replayed(tdbg, tmp_path, wrong, kind, detail):
    r = np.random.default_rng(5)
    q, k, v = r.standard_normal((3, TOKENS, HEADS, SIZE))
    right = {"scale": SIZE**-0.5}
    for side, how in ("a", right), ("b", {**right, **wrong}):
        dump(tmp_path / side, {"0_query_final": q, "0_key_final": k, "0_value_final": v,
                               "0_post_attn": attention(q, k, v, **how)})  # fmt: skip
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert first_of(answer) == (0, "post_attn", kind), answer["first_divergence"]
    assert detail in answer["first_divergence"]["diagnosis"][0]["detail"]


@pytest.mark.parametrize("heads", [HEADS, 1])
@pytest.mark.parametrize("how", ["left out", "late", "backwards", "interleaved"])
def test_rotary_embedding(tdbg, tmp_path, how, heads):
    r = np.random.default_rng(6)
    x = r.standard_normal((TOKENS, heads, SIZE))

    def rope(start=0, sense=1, neighbours=False):
        angle = sense * (np.arange(TOKENS)[:, None] + start) * 10000.0 ** (-np.arange(SIZE // 2) * 2 / SIZE)
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
        u, v = (x[..., 0::2], x[..., 1::2]) if neighbours else (x[..., : SIZE // 2], x[..., SIZE // 2 :])
        y = np.stack((c * u - s * v, s * u + c * v), -1 if neighbours else -2)
        return y.reshape(x.shape)

    wrong = {"left out": lambda: x, "late": lambda: rope(start=1), "backwards": lambda: rope(sense=-1),
             "interleaved": lambda: rope(neighbours=True)}[how]()  # fmt: skip
    size_of_heads = {"0_value": r.standard_normal((TOKENS, 2, SIZE))}
    dump(tmp_path / "a", {"0_query": x, "0_query_final": rope(), **size_of_heads})
    dump(tmp_path / "b", {"0_query": x, "0_query_final": wrong, **size_of_heads})
    assert first_of(compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)) == (0, "query_final", "rope")


@pytest.mark.parametrize("token", [0, 3, TOKENS - 2])
def test_an_outlier_is_no_shift(tdbg, tmp_path, token):
    """A shift leaves the tokens at one end out: an error that sits there alone says nothing for it."""

    def change(x):
        y = x.copy()
        y[token, 2, 1] = 1000
        return y

    found = diagnose(tdbg, tmp_path, change)
    assert found[0]["kind"] == "partial" and "shift" not in [f["kind"] for f in found], found


def test_heads_shared_out_over_ranks(tdbg, tmp_path):
    """B has [ranks, heads of one, tokens, size]: heads that moved from rank to rank are in another order all the same."""
    a = run_of()
    ranks = lambda x: np.ascontiguousarray(x.reshape(TOKENS, 2, HEADS // 2, -1).transpose(1, 2, 0, 3))
    later = {name: 2 * x for name, x in a.items() if name.startswith("2_")}  # what follows agrees no more
    wrong = a | {"1_query": a["1_query"][:, [5, 2, 1, 3, 4, 7, 0, 6]]} | later
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", {name: ranks(x) for name, x in wrong.items()})
    assert first_of(compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)) == (1, "query", "permutation")


FLAT = {
    "heads merged too early": (lambda x: x.transpose(1, 0, 2).reshape(TOKENS, -1), "transpose"),
    "interleaved": (lambda x: x.reshape(TOKENS, HEADS, 2, -1).swapaxes(2, 3).reshape(TOKENS, -1), "rope"),
    "heads exchanged": (lambda x: x[:, [0, 2, 1, 3, 4, 5, 7, 6]].reshape(TOKENS, -1), "permutation"),
    "channels rolled": (lambda x: np.roll(x.reshape(TOKENS, -1), 32, 1), "shift"),
}


@pytest.mark.parametrize("mistake", FLAT)
def test_heads_where_both_sides_are_flat(tdbg, tmp_path, mistake):
    change, kind = FLAT[mistake]
    flat = lambda x: x.reshape(TOKENS, -1)
    a = {name: flat(x) for name, x in run_of().items()}
    dump(tmp_path / "a", a)
    later = {name: 2 * x for name, x in a.items() if name.startswith("2_")}  # what follows agrees no more
    dump(tmp_path / "b", a | {"1_query": change(run_of()["1_query"])} | later)
    assert first_of(compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)) == (1, "query", kind)


def test_a_weight_has_no_mask(tdbg, tmp_path):
    a = {f"layers.{n}.self_attn.q_proj.weight": rng().standard_normal((16, 24)).astype(np.float32) for n in range(3)}
    b = {name: x.copy() for name, x in a.items()}
    b["layers.1.self_attn.q_proj.weight"][10:] = np.random.default_rng(1).standard_normal((6, 24))
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    found = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]["diagnosis"]
    assert "mask" not in [f["kind"] for f in found] and found[0]["kind"] == "partial", found


# --- when the dumps are at fault -------------------------------------------------------------------------------------------


def test_a_stage_dumped_twice(tdbg, tmp_path):
    def change(a, b):
        b["1_key"] = a["1_query"]

    notes = change_run(tdbg, tmp_path, change)["notes"]
    assert any("hold the same values: one stage was dumped twice" in n and "1_key.npy" in n for n in notes), notes


def test_a_buffer_overwritten_after_use(tdbg, tmp_path):
    """query differs, query_final, which is computed from it, agrees."""
    r = np.random.default_rng(7)
    a = {f"{n}_{s}": r.standard_normal((TOKENS, HEADS, SIZE)) for n in range(3) for s in ("query", "query_final", "post_attn")}
    b = {**a, "1_query": r.standard_normal((TOKENS, HEADS, SIZE))}
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    notes = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["notes"]
    assert len(notes) == 1 and notes[0].startswith("1_query.npy differs, yet 1_query_final.npy, which is computed from it, agrees")


def test_other_inputs(tdbg, tmp_path):
    dump(tmp_path / "a", run_of(seed=1))
    dump(tmp_path / "b", run_of(seed=2))
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert any("were both given the same tokens?" in n for n in answer["notes"]), answer["notes"]
    text = tdbg.text("diff", tmp_path / "a", tmp_path / "b", status=1)
    assert "were both given the same tokens?" in " ".join(text.split())


def test_padding(tdbg, tmp_path):
    a = run_of()
    b = {n: np.concatenate((x, np.zeros((8,) + x.shape[1:], x.dtype))) for n, x in a.items()}
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=0)
    assert answer["notes"] == ["15 pairs differ in length (2_post_mlp.npy: only 24 of axis 0 are on both sides): padding rows "
                               "were left out of the comparison"]  # fmt: skip


def test_a_clean_run_gets_no_notes(tdbg, tmp_path):
    dump(tmp_path / "a", run_of())
    dump(tmp_path / "b", run_of())
    assert compare(tdbg, tmp_path / "a", tmp_path / "b", status=0)["notes"] == []


# --- batches -----------------------------------------------------------------------------------------------------------------

BATCHES = {
    "4-d": (lambda rng: rng.standard_normal((3, 8, 24, 16)), "axis 0 (sequences)"),
    "3-d": (lambda rng: rng.standard_normal((3, 24, 64)), "axis 0 (sequences)"),
    "3-d, heads": (lambda rng: rng.standard_normal((24, 8, 16)), "axis 0 (tokens)"),
}


@pytest.mark.parametrize("case", BATCHES)
def test_the_axis_of_a_batch_has_its_name(tdbg, tmp_path, case):
    make, words = BATCHES[case]
    rng = np.random.default_rng(8)
    a = {f"{n}_{s}": make(rng).astype(np.float32) for n in range(2) for s in ("key_final", "value_final")}
    b = dict(a)
    b["0_key_final"] = b["0_key_final"][[1, 0] + list(range(2, len(b["0_key_final"])))]
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    first = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]
    assert first["diagnosis"][0]["kind"] == "permutation"
    assert f"{words} 0 and 1 exchanged" in first["diagnosis"][0]["detail"]


# --- what no rule can be told of ---------------------------------------------------------------------------------------------


def diagnosis_of(tdbg, tmp_path, a, b):
    dump(tmp_path / "a", {"0_query": a})
    dump(tmp_path / "b", {"0_query": b})
    return compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]["diagnosis"]


@pytest.mark.parametrize("count", [4, 3072])
@pytest.mark.parametrize("a, b, detail", [
    (2, 3, "A is 2 everywhere and B is 3: one value fits every rule"),
    (2, -2, "A is 2 everywhere and B is -2: one value fits every rule"),
    (None, 0.5, "B is 0.5 everywhere and A is not"),
])  # fmt: skip
def test_one_value_everywhere_tells_no_rule(tdbg, tmp_path, a, b, detail, count):
    a = rng().standard_normal(count) if a is None else np.full(count, a)
    found = diagnosis_of(tdbg, tmp_path, a.astype(np.float32), np.full(count, b, np.float32))
    assert [(f["kind"], f["detail"]) for f in found] == [("unknown", detail)]


def test_nothing_but_zeros_is_told_as_zeros(tdbg, tmp_path):
    a = rng().standard_normal((64, 48)).astype(np.float32)
    found = diagnosis_of(tdbg, tmp_path, a, np.zeros_like(a))
    assert [f["kind"] for f in found] == ["zeroed", "unknown"]


@pytest.mark.parametrize("type_a, type_b", [(bool, bool), ("int32", "int32"), ("uint8", "uint8"), ("int64", "float32"), (bool, "float32")])
def test_whole_numbers_are_no_coarse_floats(tdbg, tmp_path, type_a, type_b):
    a = rng().integers(0, 2 if type_a is bool else 200, (64, 48))
    b = a.copy()
    b[rng().random(a.shape) < 0.3] += 1
    b = b % 2 if type_a is bool else b
    found = diagnosis_of(tdbg, tmp_path, a.astype(type_a), b.astype(type_b))
    assert "precision" not in [f["kind"] for f in found]


def test_the_unknown_has_no_number_in_reports(tdbg, tmp_path):
    a = rng().standard_normal((64, 48)).astype(np.float32)
    for name, b in (("other", np.random.default_rng(5).standard_normal((64, 48))), ("scale", a * 1.5)):
        dump(tmp_path / name / "a", {"0_query": a})
        dump(tmp_path / name / "b", {"0_query": b.astype(np.float32)})
        tdbg.run("diff", tmp_path / name / "a", tmp_path / name / "b", "--junit", tmp_path / f"{name}.xml")
    assert ">unknown: no simple rule" in (tmp_path / "other.xml").read_text()
    assert "scale (0.99): " in (tmp_path / "scale.xml").read_text() and "\nunknown: " in (tmp_path / "scale.xml").read_text()


# --- larger than is looked at whole ------------------------------------------------------------------------------------------

# change of B: the kind, and what is said
LARGE = {
    "a block": (lambda b: b.__setitem__(np.s_[1500:1700, 900:1300], b[1500:1700, 900:1300] + 0.5), "partial",
                "only index 1500-1699 of axis 0 (200 of 2048) and channel 900-1299 of axis 1 (400 of 2048) differ, there by an "
                "offset of 0.5"),
    "a block to scale": (lambda b: b.__setitem__(np.s_[1500:1700, 900:1300], b[1500:1700, 900:1300] * 1.5), "partial",
                         "channel 900-1299 of axis 1 (400 of 2048) differ, there by a factor of 1.5"),
    "a row": (lambda b: b.__setitem__(1999, b[5]), "partial", "only index 1999 of axis 0 (1 of 2048) differ"),
    "rows": (lambda b: b.__setitem__(np.s_[1600:1620], 0), "zeroed", "index 1600-1619 of axis 0"),
    "rows exchanged": (lambda b: b.__setitem__([1900, 1901], b[[1901, 1900]]), "permutation", "axis 0 (indices) 1900 and 1901 exchanged"),
    "a NaN": (lambda b: b.__setitem__((2000, 7), np.nan), "nan", "1 value is NaN in B and finite in A, at index 2000 of axis 0"),
    "everything": (lambda b: b.__imul__(np.float32(2048**-0.5)), "scale", "= 1/sqrt(2048)"),
}  # fmt: skip


@pytest.mark.parametrize("case", LARGE)
def test_large_weights(tdbg, tmp_path, case):
    """Only some rows are loaded for a diagnosis: those where the mistake is, wherever that is."""
    change, kind, detail = LARGE[case]
    a = np.random.default_rng(3).standard_normal((2048, 2048), dtype=np.float32)
    b = a.copy()
    change(b)
    dump(tmp_path / "a", {"w.weight": a})
    dump(tmp_path / "b", {"w.weight": b})
    first = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]
    assert first["diagnosis"][0]["kind"] == kind, first
    assert detail in first["diagnosis"][0]["detail"]


def test_rows_of_a_large_vocabulary(tdbg, tmp_path):
    a = np.random.default_rng(3).standard_normal((150_000, 32), dtype=np.float32)
    b = a.copy()
    b[149_000:149_010] = 1
    dump(tmp_path / "a", {"embed_tokens.weight": a})
    dump(tmp_path / "b", {"embed_tokens.weight": b})
    first = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]
    assert "only index 149000-149009 of axis 0 (10 of 150000)" in first["diagnosis"][0]["detail"]


def test_one_transposed_weight_among_large_ones(tdbg, tmp_path):
    rng = np.random.default_rng(3)
    a = {f"layers.{n}.self_attn.o_proj.weight": rng.standard_normal((1536, 1536), dtype=np.float32) for n in range(3)}
    b = dict(a)
    b["layers.1.self_attn.o_proj.weight"] = np.ascontiguousarray(b["layers.1.self_attn.o_proj.weight"].T)
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert first_of(answer) == (1, "self_attn.o_proj.weight", "transpose")


def test_one_expert_of_many(tdbg, tmp_path):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((48, 256, 256), dtype=np.float32)
    b = a.copy()
    b[40] *= 0.5
    dump(tmp_path / "a", {f"layers.0.mlp.experts.{e}.up_proj.weight": x for e, x in enumerate(a)})
    dump(tmp_path / "b", {"blk.0.ffn_up_exps.weight": b})
    first = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]
    assert first["diagnosis"][0]["kind"] == "channel_scale"
    assert first["diagnosis"][0]["detail"].endswith("factors 0.5 to 1 per expert (axis 0), only expert 40")


def test_late_tokens_of_a_long_sequence(tdbg, tmp_path):
    rng = np.random.default_rng(3)
    a = {f"{n}_{s}": rng.standard_normal((2048, 1536), dtype=np.float32) for n in range(2) for s in ("query", "post_attn")}
    b = {n: x.copy() for n, x in a.items()}
    b["1_post_attn"][1500:] = rng.standard_normal((548, 1536))
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    first = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["first_divergence"]
    assert first["diagnosis"][0]["kind"] == "mask"
    assert first["diagnosis"][0]["detail"] == "tokens agree up to 1499 and differ from 1500 on: the reach into the past differs"


@pytest.mark.parametrize("rows", [300, 2000])
@pytest.mark.parametrize("moved", ["two", "two among wrong ones", "all", "none"])
def test_rows_in_another_order_under_rounding(tdbg, tmp_path, rows, moved):
    """A look at a few rows tells most orders that are none; it must not dismiss those that are."""
    a = rng().standard_normal((rows, 512), dtype=np.float32)
    order = rng().permutation(rows) if moved == "all" else np.arange(rows)
    if moved.startswith("two"):
        order[[rows // 3, rows // 2]] = order[[rows // 2, rows // 3]]
    b = a[order] * (1 + 1e-6 * rng().standard_normal(a.shape)).astype(np.float32)
    if moved == "two among wrong ones":
        b[40:90] += 0.02 * rng().standard_normal((50, 512)).astype(np.float32)
    if moved == "none":
        b = np.random.default_rng(7).standard_normal((rows, 512), dtype=np.float32)
    found = diagnosis_of(tdbg, tmp_path, a, b)
    if moved == "none":
        assert found[0]["kind"] == "unknown"
    else:
        details = [f["detail"] for f in found if f["kind"] == "permutation"]
        assert details and (moved == "all" or f"{rows // 3} and {rows // 2} exchanged" in details[0])


@pytest.mark.slow
@pytest.mark.parametrize("b_type", ["float32", "float16"])
def test_the_diagnosis_is_the_same_on_any_number_of_threads(tdbg, tmp_path, b_type):
    a = rng().standard_normal((4, 1024, 1100), dtype=np.float32)
    for name, b in {"noise": a + 0.01 * rng().standard_normal(a.shape), "order": a[:, ::-1], "scale": a * 1.5,
                    "channels": a * rng().uniform(0.5, 2, 1100), "other": rng().standard_normal(a.shape)}.items():  # fmt: skip
        dump(tmp_path / name / "a", {"0_query": a})
        dump(tmp_path / name / "b", {"0_query": b.astype(b_type)})
        runs = {tdbg.text("diff", "--json", tmp_path / name / "a", tmp_path / name / "b", status=1, env=env)
                for env in ({"TDBG_THREADS": "1"}, {"TDBG_THREADS": "2"}, {"TDBG_THREADS": "5", "TDBG_CPU": "scalar"})}  # fmt: skip
        assert len(runs) == 1, name


# --- the bug zoo -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bug_zoo(tdbg, tmp_path):
    zoo = next((p for p in (ROOT.parent / "shared" / "bugzoo", pathlib.Path("../shared/bugzoo")) if p.is_dir()), None)
    if zoo is None:
        pytest.skip("no ../shared/bugzoo beside the checkout")
    pytest.importorskip("torch")
    subprocess.run([sys.executable, zoo / "zoo.py", tmp_path / "zoo", "--seed", "1"], check=True, capture_output=True)
    done = subprocess.run([sys.executable, zoo / "score.py", tdbg.binary, tmp_path / "zoo", "--localised", "0.98",
                           "--diagnosed", "0.90"], capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
