"""Pairs by values, names and shapes at once: dumps of one small model under the names of two engines."""
import json

import numpy as np
import pytest

from difftools import compare

TOKENS, HEADS, SIZE, LAYERS = 13, 4, 8, 4
WIDTH = HEADS * SIZE


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def model(change=lambda layer, stage, x: x, seed=1):
    """{(layer, stage): values} of a small transformer; `change` may plant a mistake, which goes on from there."""
    rng = np.random.default_rng(seed)
    out = {}

    def keep(layer, stage, x):
        out[layer, stage] = change(layer, stage, x)
        return out[layer, stage]

    x = keep(-1, "embed", rng.standard_normal((TOKENS, WIDTH)))
    for layer in range(LAYERS):
        w = {k: rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH) for k in ("q", "k", "v", "o", "gate", "up", "down")}
        g = 1 + 0.3 * rng.standard_normal((2, WIDTH))
        h = keep(layer, "norm1", norm(x, g[0]))
        q, k, v = (keep(layer, s, h @ w[s]).reshape(TOKENS, HEADS, SIZE) for s in "qkv")
        scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(SIZE) + np.triu(np.full((TOKENS, TOKENS), -1e9), 1)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        context = keep(layer, "context", np.einsum("hts,shd->thd", p / p.sum(-1, keepdims=True), v).reshape(TOKENS, WIDTH))
        mid = keep(layer, "mid", x + keep(layer, "o", context @ w["o"]))
        h = keep(layer, "norm2", norm(mid, g[1]))
        gate, up = keep(layer, "gate", h @ w["gate"]), keep(layer, "up", h @ w["up"])
        product = keep(layer, "product", gate / (1 + np.exp(-gate)) * up)
        x = keep(layer, "out", mid + keep(layer, "down", product @ w["down"]))
    h = keep(-1, "final", norm(x, 1 + 0.3 * rng.standard_normal(WIDTH)))
    keep(-1, "logits", h @ rng.standard_normal((WIDTH, 50)))
    return out


HOOKS = {"embed": "model.embed_tokens", "norm1": "model.layers.{}.input_layernorm", "q": "model.layers.{}.self_attn.q_proj",
         "k": "model.layers.{}.self_attn.k_proj", "v": "model.layers.{}.self_attn.v_proj", "o": "model.layers.{}.self_attn.o_proj",
         "norm2": "model.layers.{}.post_attention_layernorm", "gate": "model.layers.{}.mlp.gate_proj",
         "up": "model.layers.{}.mlp.up_proj", "down": "model.layers.{}.mlp.down_proj", "out": "model.layers.{}",
         "final": "model.norm", "logits": "lm_head"}  # fmt: skip
CALLBACK = {"embed": "inp_embd", "norm1": "attn_norm-{}", "q": "Qcur-{}", "k": "Kcur-{}", "v": "Vcur-{}", "context": "kqv_out-{}",
            "o": "attn_out-{}", "mid": "ffn_inp-{}", "norm2": "ffn_norm-{}", "gate": "ffn_gate-{}", "up": "ffn_up-{}",
            "down": "ffn_out-{}", "out": "l_out-{}", "final": "result_norm", "logits": "result_output"}  # fmt: skip
OPAQUE = {stage: f"{'' if stage in ('embed', 'final', 'logits') else 'L{}.'}{word}" for stage, word in zip(
    CALLBACK, "tavo kemi luso nori pela quba rixo sega tufe vima woda yuke zari bemo cidu".split())}  # fmt: skip


def dump(path, values, names, shape=lambda stage, x: x):
    np.savez(path, **{names[s].format(n): shape(s, x).astype(np.float32) for (n, s), x in values.items() if s in names})
    return path


def truth(answer, a_names, b_names):
    """Pairs that join two stages, and stages of both sides that were not joined; by template, aliases counted."""
    stage_a = {a_names[s].format(n): (n, s) for s in a_names for n in range(-1, LAYERS)}
    stage_b = {b_names[s].format(n): (n, s) for s in b_names for n in range(-1, LAYERS)}
    wrong, right = [], set()
    for pair in answer["pairs"]:
        if pair["a"] and pair["b"]:
            a, b = stage_a[pair["a"]["name"]], stage_b[pair["b"]["name"]]
            right.add(b[1]) if a[1] == b[1] else wrong.append((pair["a"]["name"], pair["b"]["name"]))
    return wrong, (set(a_names) & set(b_names)) - right


@pytest.mark.parametrize("names", [CALLBACK, OPAQUE], ids=["llama.cpp", "opaque"])
@pytest.mark.parametrize("heads", [False, True], ids=["merged", "heads"])
def test_other_names_pair_whole(tdbg, tmp_path, names, heads):
    shape = lambda stage, x: x.reshape(TOKENS, HEADS, SIZE) if heads and stage in "qkv" else x
    a = dump(tmp_path / "a.npz", model(), HOOKS, lambda s, x: x[None])
    answer = compare(tdbg, a, dump(tmp_path / "b.npz", model(), names, shape), status=0)
    assert truth(answer, HOOKS, names) == ([], set())
    assert answer["summary"]["coverage"]["a"] == 1 and answer["first_divergence"] is None


@pytest.mark.parametrize("names", [CALLBACK, OPAQUE], ids=["llama.cpp", "opaque"])
@pytest.mark.parametrize("stage, layer", [("norm1", 2), ("v", 1), ("o", 0), ("down", 3), ("logits", -1)])
def test_a_mistake_is_found_where_it_is(tdbg, tmp_path, names, stage, layer):
    if names is OPAQUE and layer == 0:
        pytest.skip("nothing agrees behind it, and no name tells anything")
    wrong = model(lambda n, s, x: x * 1.5 + 0.2 if (n, s) == (layer, stage) else x)
    answer = compare(tdbg, dump(tmp_path / "a.npz", model(), HOOKS), dump(tmp_path / "b.npz", wrong, names), status=1)
    assert truth(answer, HOOKS, names)[0] == []
    assert answer["first_divergence"]["name"] == HOOKS[stage].format(layer)


def test_layers_that_count_from_one(tdbg, tmp_path):
    a = dump(tmp_path / "a.npz", model(), HOOKS)
    np.savez(tmp_path / "b.npz", **{CALLBACK[s].format(n + 1): x.astype(np.float32) for (n, s), x in model().items() if s in CALLBACK})
    answer = compare(tdbg, a, tmp_path / "b.npz", status=0)
    pairs = {p["a"]["name"]: p["b"]["name"] for p in answer["pairs"] if p["a"] and p["b"]}
    assert pairs["model.layers.0.mlp.up_proj"] == "ffn_up-1" and pairs["model.layers.3"] == "l_out-4"
    alone = [p for p in answer["pairs"] if p["b"] and not p["a"]]
    assert {p["layer"] for p in alone} == {0, 1, 2, 3}  # in A's counting


@pytest.mark.parametrize("fused", ["qkv", "gate_up"])
@pytest.mark.parametrize("name", ["fused", "opaque"])
def test_one_fused_tensor_and_its_parts(tdbg, tmp_path, fused, name):
    parts = {"qkv": ["q", "k", "v"], "gate_up": ["gate", "up"]}[fused]
    values, b = model(), {}
    for (n, s), x in values.items():
        if s in CALLBACK and s not in parts:
            b[CALLBACK[s].format(n)] = x.astype(np.float32)
    word = {"qkv": "wqkv-{}", "gate_up": "ffn_gate_up-{}"}[fused] if name == "fused" else "womo-{}"
    for n in range(LAYERS):
        b[word.format(n)] = np.concatenate([values[n, s] for s in parts], -1).astype(np.float32)
    np.savez(tmp_path / "b.npz", **b)
    answer = compare(tdbg, dump(tmp_path / "a.npz", values, HOOKS), tmp_path / "b.npz", status=0)
    found = [p for p in answer["pairs"] if p["strategy"] == "fused"]
    assert [(p["a"]["name"], p["b"]["name"]) for p in found if p["layer"] == 1] == [
        (HOOKS[s].format(1), word.format(1)) for s in parts]  # fmt: skip
    assert all(p["verdict"] in ("identical", "within") for p in found)


def test_one_tensor_under_several_names(tdbg, tmp_path):
    values = model()
    more = {f"model.layers.{n}.self_attn": values[n, "o"] for n in range(LAYERS)}
    more |= {f"model.layers.{n + 1}.input_layernorm.input": values[n, "out"] for n in range(LAYERS - 1)}
    more["model.layers.0.input_layernorm.input"] = values[-1, "embed"]
    names = {HOOKS[s].format(n): x for (n, s), x in values.items() if s in HOOKS}
    np.savez(tmp_path / "a.npz", **{k: x.astype(np.float32) for k, x in (names | more).items()})
    answer = compare(tdbg, tmp_path / "a.npz", dump(tmp_path / "b.npz", values, CALLBACK), status=0)
    assert answer["summary"]["only_a"] == 0 and answer["summary"]["coverage"]["a"] == 1
    by_b = {p["b"]["name"]: p for p in answer["pairs"] if p["b"] and p["a"]}
    assert set(by_b["attn_out-2"]["aliases"]["a"]) == {"model.layers.2.self_attn.o_proj", "model.layers.2.self_attn"}
    assert set(by_b["l_out-0"]["aliases"]["a"]) == {"model.layers.0", "model.layers.1.input_layernorm.input"}
    assert by_b["ffn_up-0"]["aliases"] == {"a": [], "b": []}


def test_an_equality_of_b_may_be_the_mistake(tdbg, tmp_path):
    """B leaves its second norm out: what it dumps as that is the stream, under another name."""
    seen = {}

    def leave_out(layer, stage, x):
        seen[stage] = x
        return seen["mid"] if stage == "norm2" else x

    b = dump(tmp_path / "b.npz", model(leave_out), CALLBACK)
    answer = compare(tdbg, dump(tmp_path / "a.npz", model(), HOOKS), b, status=1)
    assert answer["first_divergence"]["name"] == "model.layers.0.post_attention_layernorm"


def test_a_name_beats_a_value(tdbg, tmp_path):
    """q and k are exchanged in every layer: by value B's q is A's k, and all would agree."""
    swap = {"q": "k", "k": "q"}
    wrong = {(n, swap.get(s, s)): x for (n, s), x in model().items()}
    answer = compare(tdbg, dump(tmp_path / "a.npz", model(), HOOKS), dump(tmp_path / "b.npz", wrong, HOOKS), status=1)
    assert answer["first_divergence"]["name"] == "model.layers.0.self_attn.q_proj"
    assert [f["kind"] for f in answer["first_divergence"]["diagnosis"]][0] == "swap"


def test_what_differs_in_layers_that_are_right_is_no_pair(tdbg, tmp_path):
    """One engine's act_fn is the activation, the other's the gated product: the name is one, the tensor is not."""
    values = model()
    a = {HOOKS[s].format(n): x for (n, s), x in values.items() if s in HOOKS}
    b = dict(a)
    for n in range(LAYERS):
        gate = values[n, "gate"]
        a[f"model.layers.{n}.mlp.act_fn"] = gate / (1 + np.exp(-gate))
        b[f"model.layers.{n}.mlp.act_fn"] = values[n, "product"]
        b[f"model.layers.{n}.mlp.gate_up_proj"] = np.concatenate([b.pop(HOOKS[s].format(n)) for s in ("gate", "up")], -1)
    for side, arrays in (("a", a), ("b", b)):
        np.savez(tmp_path / f"{side}.npz", **{k: x.astype(np.float32) for k, x in arrays.items()})
    answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=0)
    assert not [p for p in answer["pairs"] if p["a"] and p["b"] and "act_fn" in p["a"]["name"]]


def test_names_of_ones_own(tdbg, tmp_path):
    """Unrelated values under unknown names: only who wrote them knows which is which."""
    rng = np.random.default_rng(4)
    a, b = ({f"{word}_{n}": rng.standard_normal((9, 16)).astype(np.float32) for n in range(3) for word in words}
            for words in (("one", "two", "three"), ("uno", "due", "tre")))  # fmt: skip
    np.savez(tmp_path / "a.npz", **a)
    np.savez(tmp_path / "b.npz", **b)
    (tmp_path / "names").write_text("# of our engine\nuno_{L} = two_{L}\ndue_{L} = three_{L}\n")
    answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", "--names", tmp_path / "names", status=1)
    pairs = {p["a"]["name"]: p["b"]["name"] for p in answer["pairs"] if p["a"] and p["b"]}
    assert {a: b for a, b in pairs.items() if not a.startswith("one")} == {
        f"{a}_{n}": f"{b}_{n}" for n in range(3) for a, b in (("two", "uno"), ("three", "due"))}  # fmt: skip


def test_batches_and_last_rows(tdbg, tmp_path):
    values = model()
    both = {k: np.stack([x, np.random.default_rng(7).standard_normal(x.shape)]) for k, x in values.items()}
    a = dump(tmp_path / "a.npz", both, HOOKS)
    b = dump(tmp_path / "b.npz", both, CALLBACK, lambda s, x: x.reshape(-1, x.shape[-1]))
    answer = compare(tdbg, a, b, status=0)
    assert truth(answer, HOOKS, CALLBACK) == ([], set())
    last = dump(tmp_path / "last.npz", values, CALLBACK, lambda s, x: x[-1:] if s == "logits" else x)
    answer = compare(tdbg, dump(tmp_path / "one.npz", values, HOOKS), last, status=0)
    assert truth(answer, HOOKS, CALLBACK) == ([], set())


def test_the_same_pairs_on_any_number_of_threads(tdbg, tmp_path, monkeypatch):
    wrong = model(lambda n, s, x: x + 0.3 if (n, s) == (1, "o") else x)
    a, b = dump(tmp_path / "a.npz", model(), HOOKS), dump(tmp_path / "b.npz", wrong, OPAQUE)
    answers = []
    for threads in "1", "2", "5":
        monkeypatch.setenv("TDBG_THREADS", threads)
        answers.append(json.dumps(compare(tdbg, a, b, status=1)))
    assert len(set(answers)) == 1


def test_nan_and_constants_pair_by_name_alone(tdbg, tmp_path):
    a = {f"h.{n}.{k}": np.full((6, 8), v, np.float32) for n in range(3) for k, v in (("zero", 0), ("nan", np.nan), ("one", 1))}
    for side in "ab":
        np.savez(tmp_path / f"{side}.npz", **a)
    answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=0)
    assert all(p["a"]["name"] == p["b"]["name"] for p in answer["pairs"]) and answer["summary"]["pairs"] == 9
