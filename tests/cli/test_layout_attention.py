"""Layouts of queries, keys, values and what fuses them, in a decoder that computes with them (decoder.py): a port that
keeps them otherwise is right and nothing is said; one that uses them otherwise is wrong in every layer, although its
tensors equal the reference's in some layout, and the first divergence is where it goes wrong."""
import json

import numpy as np
import pytest

from decoder import Config, interleave, run, weights

LAYOUTS = {"[T,C]": lambda x: x.reshape(len(x), -1), "[T,H,d]": lambda x: x, "[H,T,d]": lambda x: x.transpose(1, 0, 2),
           "[1,H,T,d]": lambda x: x.transpose(1, 0, 2)[None], "[T,1,C]": lambda x: x.reshape(len(x), 1, -1)}  # fmt: skip

MODELS = {
    "plain": dict(heads=4, groups=4, size=16, tokens=12),
    "as many tokens as channels of a head": dict(heads=4, groups=4, size=16, tokens=16),
    "as many tokens as channels": dict(heads=4, groups=4, size=16, tokens=64),
    "as many heads as tokens": dict(heads=12, groups=12, size=16, tokens=12),
    "heads as wide as the stream": dict(heads=4, groups=4, size=64, tokens=10, hidden=64),
    "an unusual size of heads": dict(heads=3, groups=3, size=24, tokens=9),
    "tokens that could be heads": dict(heads=4, groups=4, size=10, tokens=40),
    "groups": dict(heads=8, groups=2, size=16, tokens=12),
    "groups, all of one size": dict(heads=8, groups=2, size=8, tokens=8),
}


def compare(tdbg, tmp_path, rows):
    """Rows of (name in A, array, name in B, array, part of A)."""
    pairs = []
    for folder in "ab":
        (tmp_path / folder).mkdir()
    for name_a, a, name_b, b, *part in rows:
        for folder, name, x in ("a", name_a, a), ("b", name_b, b):
            np.save(tmp_path / folder / f"{name}.npy", np.ascontiguousarray(x).astype(np.float32))
        pairs.append({"a": f"{name_a}.npy", "b": f"{name_b}.npy"} | ({"a_part": part[0]} if part else {}))
    (tmp_path / "pairs.json").write_text(json.dumps({"version": 1, "pairs": pairs}))
    done = tdbg.run("diff", "--json", "--match", "exact", "--pairs", tmp_path / "pairs.json", tmp_path / "a", tmp_path / "b")
    return json.loads(done.stdout)


def first(answer):
    found = answer["first_divergence"]
    return found and found["name"].removesuffix(".npy")


def rest_of_layer(n, x, y):
    """What follows q, k and v, under the names of Hugging Face and of llama.cpp's callback."""
    block = f"model.layers.{n}."
    return [(f"{block}attention.dense.output", x["o"][None], f"attn_out-{n}", y["o"]),
            (f"{block}post_attention_layernorm.output", x["norm2"][None], f"ffn_norm-{n}", y["norm2"]),
            (f"{block}mlp.dense_4h_to_h.output", x["down"][None], f"ffn_out-{n}", y["down"]),
            (f"{block}output", x["out"][None], f"l_out-{n}", y["out"])]  # fmt: skip


def fused_against_parts(c, lay, seed=1, **port):
    w, rows = weights(c, seed), []
    for n, (x, y) in enumerate(zip(run(c, w), run(c, w, np.float64, **port))):
        fused = f"model.layers.{n}.attention.query_key_value.output"
        rows += [(fused, x["qkv"][None], f"{p.upper()}cur-{n}", lay(y[p]), [i, 3]) for i, p in enumerate("qkv")]
        rows += rest_of_layer(n, x, y)
    return rows


def apart(c, lay, ropes=True, a_permuted=False, seed=1, **port):
    w, rows = weights(c, seed), []
    for n, (x, y) in enumerate(zip(run(c, w, permuted=a_permuted), run(c, w, np.float64, **port))):
        block = f"model.layers.{n}.self_attn."
        for p in "qkv":
            rows.append((f"{block}{p}_proj.output", x[p].reshape(1, c.tokens, -1), f"{p.upper()}cur-{n}", lay(y[p])))
            if ropes and p != "v":
                rows.append((f"{block}{p}_rope", x[p + "_rope"].transpose(1, 0, 2)[None], f"{p}_rope-{n}", lay(y[p + "_rope"])))
        rows += rest_of_layer(n, x, y)
    return rows


# --- a fused tensor against its parts --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fuse", ["block", "group"])
def test_a_right_split_is_silent(tdbg, tmp_path, model, fuse):
    lay = LAYOUTS[["[T,C]", "[H,T,d]"][len(model) % 2]]
    answer = compare(tdbg, tmp_path, fused_against_parts(Config(fuse=fuse, **MODELS[model]), lay))
    assert answer["first_divergence"] is None, first(answer)


@pytest.mark.parametrize("lay", LAYOUTS)
@pytest.mark.parametrize("fuse", ["block", "group"])
def test_a_right_split_into_any_layout(tdbg, tmp_path, fuse, lay):
    answer = compare(tdbg, tmp_path, fused_against_parts(Config(fuse=fuse), LAYOUTS[lay]))
    assert answer["first_divergence"] is None, first(answer)
    cuts = {s for p in answer["pairs"] if p["name"].startswith("model.layers.1.attention.query") for s in p["layout"]["steps"] if "slice" in s}
    assert cuts == ({"a: slice 0:64 of axis 2", "a: slice 64:128 of axis 2", "a: slice 128:192 of axis 2"} if fuse == "block" else
                    {"a: slice 0:1 of axis 3", "a: slice 1:2 of axis 3", "a: slice 2:3 of axis 3"})  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fuse, how", [("block", "group"), ("group", "block")])
def test_a_wrong_split_of_every_layer(tdbg, tmp_path, model, fuse, how):
    """Its parts equal the reference's when that is split wrongly, too; the output of attention tells."""
    answer = compare(tdbg, tmp_path, fused_against_parts(Config(fuse=fuse, **MODELS[model]), LAYOUTS["[T,C]"], how=how))
    assert first(answer) == "model.layers.0.attention.query_key_value.output"
    best = answer["first_divergence"]["diagnosis"][0]
    assert best["kind"] == "permutation" and "another split of the fused tensor" in best["detail"]


@pytest.mark.parametrize("fuse", ["block", "group"])
def test_a_wrong_split_where_nothing_follows(tdbg, tmp_path, fuse):
    """Nobody can tell: the layers' vote stands."""
    rows = [r for r in fused_against_parts(Config(fuse=fuse), LAYOUTS["[T,C]"]) if "query_key_value" in r[0]]
    assert compare(tdbg, tmp_path, rows)["first_divergence"] is None


@pytest.mark.parametrize("fuse", ["block", "group"])
@pytest.mark.parametrize("bug, where", [("scale", "attention.dense"), ("theta", "attention.dense"),
                                        ("o bias", "attention.dense"), ("act", "mlp.dense_4h_to_h")])  # fmt: skip
@pytest.mark.parametrize("layers", ["one", "all"])
def test_another_mistake_does_not_make_a_right_split_look_wrong(tdbg, tmp_path, fuse, bug, where, layers):
    rows = fused_against_parts(Config(fuse=fuse), LAYOUTS["[T,H,d]"], wrong=lambda n: bug if layers == "all" or n == 1 else None)
    answer = compare(tdbg, tmp_path, rows)
    assert first(answer) == f"model.layers.{0 if layers == 'all' else 1}.{where}.output"


@pytest.mark.parametrize("part", range(3))
def test_one_wrong_part_does_not_change_how_the_others_are_cut(tdbg, tmp_path, part):
    rows = fused_against_parts(Config(fuse="group"), LAYOUTS["[T,C]"])
    noise = np.random.default_rng(5)
    rows = [r[:3] + (noise.standard_normal(r[3].shape),) + r[4:] if len(r) > 4 and r[4][0] == part else r for r in rows]
    answer = compare(tdbg, tmp_path, rows)
    assert answer["summary"]["diverged"] == 3
    assert {s for p in answer["pairs"] for s in p["layout"]["steps"] if "slice" in s} == {f"a: slice {i}:{i + 1} of axis 3" for i in range(3)}


@pytest.mark.parametrize("order", ["block", "interleaved"])
@pytest.mark.parametrize("wrong", [False, True])
def test_gate_and_up(tdbg, tmp_path, order, wrong):
    c = Config()
    w, rows = weights(c), []
    for n, (x, y) in enumerate(zip(run(c, w), run(c, w, np.float64))):
        fused = x["gate_up"] if order == "block" else np.stack((x["gate"], x["up"]), 2).reshape(c.tokens, -1)
        down = y["down"] if not wrong else np.random.default_rng(n).standard_normal(y["down"].shape)
        rows += [(f"model.layers.{n}.mlp.gate_up_proj.output", fused[None], f"ffn_{part}-{n}", y[part], [i, 2]) for i, part in enumerate(("gate", "up"))]
        rows.append((f"model.layers.{n}.mlp.down_proj.output", x["down"][None], f"ffn_out-{n}", down))
    found = first(compare(tdbg, tmp_path, rows))
    assert found == ("model.layers.0.mlp.gate_up_proj.output" if wrong else None)


# --- rotary order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lay", LAYOUTS)
@pytest.mark.parametrize("share", [1, 2, 4])
@pytest.mark.parametrize("in_a", [False, True])
def test_rotary_order_of_every_layer_with_what_follows_right(tdbg, tmp_path, lay, share, in_a):
    c = Config(rotary=16 // share)
    answer = compare(tdbg, tmp_path, apart(c, LAYOUTS[lay], a_permuted=in_a, permuted=not in_a))
    assert answer["first_divergence"] is None, first(answer)


@pytest.mark.parametrize("model", MODELS)
def test_rotary_order_in_any_model(tdbg, tmp_path, model):
    answer = compare(tdbg, tmp_path, apart(Config(**MODELS[model]), LAYOUTS["[T,H,d]"], permuted=True))
    assert answer["first_divergence"] is None, first(answer)


@pytest.mark.parametrize("lay", ["[T,H,d]", "[T,C]"])
@pytest.mark.parametrize("ropes", [True, False])
@pytest.mark.parametrize("in_a", [False, True])
def test_rotary_order_that_the_embedding_does_not_expect(tdbg, tmp_path, lay, ropes, in_a):
    """A converter that permutes queries and keys for an engine that does not want it, in every layer."""
    answer = compare(tdbg, tmp_path, apart(Config(), LAYOUTS[lay], ropes, a_permuted=in_a, permuted=not in_a, pairs=in_a))
    assert first(answer) == "model.layers.0.self_attn.q_proj.output"
    assert answer["first_divergence"]["diagnosis"][0]["kind"] == "rope"


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_rotary_order_of_every_layer_with_a_mistake_in_one(tdbg, tmp_path, wrong):
    rows = apart(Config(), LAYOUTS["[T,H,d]"], permuted=True, wrong=lambda n: "scale" if n == wrong else None)
    assert first(compare(tdbg, tmp_path, rows)) == f"model.layers.{wrong}.attention.dense.output"


def test_queries_of_one_layer_in_rotary_order(tdbg, tmp_path):
    rows = apart(Config(), LAYOUTS["[T,H,d]"], ropes=False)
    rows = [r[:3] + (interleave(r[3]),) if r[2] == "Qcur-1" else r for r in rows]
    noise = np.random.default_rng(2).standard_normal((12, 64))
    rows = [r[:3] + (noise,) if r[2] == "attn_out-1" else r for r in rows]
    answer = compare(tdbg, tmp_path, rows)
    assert first(answer) == "model.layers.1.self_attn.q_proj.output"
    assert answer["first_divergence"]["diagnosis"][0]["kind"] == "rope"


# --- layouts of any tensor ---------------------------------------------------------------------------------------------

T, H, D = 12, 4, 16
ANY = {"[T,C]": lambda x: x.reshape(T, -1), "[1,T,C]": lambda x: x.reshape(1, T, -1), "[T,1,C]": lambda x: x.reshape(T, 1, -1),
       "[T,H,d]": lambda x: x, "[H,T,d]": lambda x: x.transpose(1, 0, 2), "[1,H,T,d]": lambda x: x.transpose(1, 0, 2)[None],
       "[C,T]": lambda x: x.reshape(T, -1).T, "padded": lambda x: np.concatenate((x.reshape(T, -1), np.zeros((4, 64)))),
       "padded heads": lambda x: np.concatenate((x, np.zeros((4, H, D)))).transpose(1, 0, 2)[None],
       "last row": lambda x: x.reshape(T, -1)[-1:], "last vector": lambda x: x.reshape(-1)[-64:]}  # fmt: skip


@pytest.mark.parametrize("of_a", [name for name in ANY if "[" in name])
@pytest.mark.parametrize("of_b", ANY)
def test_any_layout_against_any(tdbg, tmp_path, of_a, of_b):
    rng = np.random.default_rng(3)
    values = [rng.standard_normal((T, H, D)) for _ in range(3)]
    rows = [(f"layers.{n}.something", ANY[of_a](x), f"other-{n}", ANY[of_b](x)) for n, x in enumerate(values)]
    rows += [(f"layers.{n}.tokens", x[:, 0], f"t-{n}", x[:, 0]) for n, x in enumerate(values)]
    verdicts = {p["verdict"] for p in compare(tdbg, tmp_path, rows)["pairs"]}
    assert verdicts == {"identical"}


@pytest.mark.parametrize("a, b", [((12, 40), (40, 12)), ((12, 40), (20, 24)), ((1, 12, 40), (40, 12))], ids=str)
@pytest.mark.parametrize("layers", [1, 3])
def test_matrices_that_have_nothing_in_common_are_no_transposes(tdbg, tmp_path, a, b, layers):
    rng = np.random.default_rng(1)
    answer = compare(tdbg, tmp_path, [(f"layers.{n}.x", rng.standard_normal(a), f"x-{n}", rng.standard_normal(b)) for n in range(layers)])
    for pair in answer["pairs"]:
        assert pair["verdict"] == "diverged" and not pair["layout"]["by_value"]
        assert not any("permute" in s for s in pair["layout"]["steps"])
