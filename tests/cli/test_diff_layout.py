"""Layouts are found by value: every row of the table holds real data in two layouts, and the pair must come out
within (or identical), through the steps named. `count` copies with other values stand for the layers."""
import json

import numpy as np
import pytest

from tensorfiles import Gguf

RNG = np.random.default_rng(7)


def values(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def write(folder, arrays):
    for name, array in arrays.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)


def compare(tdbg, tmp_path, a, b, *options):
    write(tmp_path / "a", a)
    write(tmp_path / "b", b)
    done = tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b", *options)
    return json.loads(done.stdout)


def only(answer):
    pairs = [p for p in answer["pairs"]]
    assert len(pairs) == 1, pairs
    return pairs[0]


def test_leading_rank_axis(tdbg, tmp_path):
    one = values(6, 76, 8)
    stacked = np.stack([one] + [values(6, 76, 8) for _ in range(7)])
    pair = only(compare(tdbg, tmp_path, {"0_query.npy": stacked}, {"0_query.npy": one[None]}))
    assert pair["verdict"] == "identical"
    assert pair["layout"]["shape"] == [6, 76, 8]
    assert "a: take 0 of axis 0" in pair["layout"]["steps"]


def test_leading_rank_axis_of_partial_sums(tdbg, tmp_path):
    parts = values(4, 6, 16)
    pair = only(compare(tdbg, tmp_path, {"0_x.npy": parts}, {"0_x.npy": parts.astype(np.float64).sum(0)}))
    assert pair["verdict"] in ("identical", "within")
    assert pair["layout"]["steps"] == ["a: sum axis 0"] and pair["layout"]["by_value"]


def test_heads_first(tdbg, tmp_path):
    x = values(76, 8, 16)
    pair = only(compare(tdbg, tmp_path, {"0_query.npy": x}, {"0_query.npy": x.transpose(1, 0, 2)[None].copy()}))
    assert pair["verdict"] == "identical"
    assert pair["layout"] == {"shape": [76, 8, 16], "steps": ["b: squeeze 0", "b: permute 1,0,2"], "by_value": True}


def test_heads_first_in_name_only(tdbg, tmp_path):
    """The shape says heads first, the values say the tensor was only reshaped."""
    x = values(76, 8, 16)
    pair = only(compare(tdbg, tmp_path, {"0_query.npy": x}, {"0_query.npy": x.reshape(1, 8, 76, 16)}))
    assert pair["verdict"] == "identical"
    assert pair["layout"]["steps"] == ["b: squeeze 0", "b: reshape 76,8,16"] and pair["layout"]["by_value"]


def test_batch_axis(tdbg, tmp_path):
    x = values(76, 288)
    pair = only(compare(tdbg, tmp_path, {"0_x.npy": x}, {"0_x.npy": x[None]}))
    assert pair["verdict"] == "identical" and pair["layout"]["steps"] == ["b: squeeze 0"]


def test_heads_merged(tdbg, tmp_path):
    x = values(8, 76, 16)
    pair = only(compare(tdbg, tmp_path, {"0_x.npy": x}, {"0_x.npy": x.transpose(1, 0, 2).reshape(76, 128)}))
    assert pair["verdict"] == "identical"
    assert pair["layout"]["steps"] == ["a: permute 1,0,2", "b: reshape 76,8,16"]


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("kind", ["columns", "rows", "sums", "copies"])
def test_shards(tdbg, tmp_path, ranks, kind):
    x = values(24, 32)
    parts = {"columns": np.split(x, ranks, 1), "rows": np.split(x, ranks, 0), "copies": [x] * ranks}.get(kind)
    if kind == "sums":
        parts = [values(24, 32) for _ in range(ranks)]
        x = np.sum(np.stack(parts).astype(np.float64), 0).astype(np.float32)
    b = {f"rank{r}/0_x.npy": part for r, part in enumerate(parts)}
    pair = only(compare(tdbg, tmp_path, {"0_x.npy": x}, b))
    assert pair["verdict"] in ("identical", "within"), pair
    step = {"columns": "b: concatenate shards on axis 1", "rows": "b: concatenate shards on axis 0",
            "sums": "b: sum shards", "copies": "b: first of replicated shards"}[kind]
    assert step in pair["layout"]["steps"]


@pytest.mark.parametrize("marker", ["tp_rank_{:02}/0_x.npy", "mp_rank_{:02}/0_x.npy", "0_x_rank{}.npy"])
def test_shard_markers(tdbg, tmp_path, marker):
    x = values(24, 32)
    b = {marker.format(r): part for r, part in enumerate(np.split(x, 4, 1))}
    assert only(compare(tdbg, tmp_path, {"0_x.npy": x}, b))["verdict"] == "identical"


def test_sharded_heads_against_whole(tdbg, tmp_path):
    """Each rank holds some heads, heads first; the other side has tokens first."""
    x = values(20, 8, 16)
    b = {f"rank{r}/0_query.npy": part.transpose(1, 0, 2)[None].copy() for r, part in enumerate(np.split(x, 4, 1))}
    pair = only(compare(tdbg, tmp_path, {"0_query.npy": x}, b))
    assert pair["verdict"] == "identical", pair


@pytest.mark.parametrize("kv", [8, 2])
def test_fused_qkv(tdbg, tmp_path, kv):
    q, k, v = values(20, 8 * 16), values(20, kv * 16), values(20, kv * 16)
    answer = compare(tdbg, tmp_path, {"0_query.npy": q, "0_key.npy": k, "0_value.npy": v},
                     {"0_qkv.npy": np.concatenate((q, k, v), 1)})
    assert [p["verdict"] for p in answer["pairs"]] == ["identical"] * 3, answer["pairs"]
    assert {p["strategy"] for p in answer["pairs"]} == {"fused"}


@pytest.mark.parametrize("how", ["repeat", "tile"])
def test_grouped_heads(tdbg, tmp_path, how):
    x = values(20, 2, 16)
    y = np.repeat(x, 4, 1) if how == "repeat" else np.tile(x, (1, 4, 1))
    pair = only(compare(tdbg, tmp_path, {"0_key.npy": x}, {"0_key.npy": y}))
    assert pair["verdict"] == "identical" and pair["layout"]["by_value"], pair


def test_transposed_weight(tdbg, tmp_path):
    x = values(48, 32)
    pair = only(compare(tdbg, tmp_path, {"w.npy": x}, {"w.npy": x.T.copy()}))
    assert pair["verdict"] == "identical" and pair["layout"]["steps"] == ["b: permute 1,0"]


def test_square_weights_transposed_in_every_layer_are_a_convention(tdbg, tmp_path):
    weights = {f"layers.{n}.q.weight.npy": values(32, 32) for n in range(4)}
    answer = compare(tdbg, tmp_path, weights, {name: w.T.copy() for name, w in weights.items()})
    assert answer["first_divergence"] is None
    assert all(p["layout"]["steps"] == ["b: permute 1,0"] and p["layout"]["by_value"] for p in answer["pairs"])


def test_one_square_weight_transposed_is_a_mistake(tdbg, tmp_path):
    weights = {f"layers.{n}.q.weight.npy": values(32, 32) for n in range(4)}
    other = {name: w.T.copy() if ".2." in name else w for name, w in weights.items()}
    first = compare(tdbg, tmp_path, weights, other)["first_divergence"]
    assert first["layer"] == 2 and first["diagnosis"][0]["kind"] == "transpose"


def interleave(weight, head):
    """[heads * 2 * half, width] in half-split order as interleaved rows, as some exporters store q and k."""
    rows, width = weight.shape
    return weight.reshape(rows // head, 2, head // 2, width).swapaxes(1, 2).reshape(rows, width).copy()


def test_rotary_order_of_every_layer_is_a_convention(tdbg, tmp_path):
    weights = {f"layers.{n}.q.weight.npy": values(256, 40) for n in range(3)}
    answer = compare(tdbg, tmp_path, weights, {name: interleave(w, 64) for name, w in weights.items()})
    assert answer["first_divergence"] is None
    assert all(p["layout"]["shape"] == [4, 2, 32, 40] and p["layout"]["by_value"] for p in answer["pairs"])


def test_rotary_order_of_one_layer_is_a_mistake(tdbg, tmp_path):
    weights = {f"layers.{n}.q.weight.npy": values(256, 40) for n in range(3)}
    other = {name: interleave(w, 64) if ".1." in name else w for name, w in weights.items()}
    first = compare(tdbg, tmp_path, weights, other)["first_divergence"]
    assert first["layer"] == 1 and first["diagnosis"][0]["kind"] == "rope", first


def q8_0(weight):
    blocks = weight.reshape(-1, 32)
    scale = (np.abs(blocks).max(1, keepdims=True) / 127).astype(np.float16)
    return b"".join(d.tobytes() + q.tobytes() for d, q in zip(scale, np.round(blocks / scale.astype(np.float32)).astype(np.int8)))


@pytest.mark.parametrize("name, turned", [("attn_q", lambda w: interleave(w, 64)), ("ffn_up", lambda w: w.T.copy())], ids=["rotary", "transposed"])
def test_another_order_of_a_quantised_side(tdbg, tmp_path, name, turned):
    """Blocks can be read in their order only: it is the other side that is turned."""
    weights = {f"blk.{n}.{name}.weight": values(256, 96) for n in range(3)}
    write(tmp_path / "a", {f"{n}.npy": w for n, w in weights.items()})
    gguf = Gguf()
    for n, w in weights.items():
        gguf.tensor(n, "q8_0", list(turned(w).shape), q8_0(turned(w)))
    (tmp_path / "b.gguf").write_bytes(gguf.file())
    for a, b in (tmp_path / "a", tmp_path / "b.gguf"), (tmp_path / "b.gguf", tmp_path / "a"):
        answer = tdbg.json("diff", a, b)
        assert answer["summary"]["within"] == 3 and any("permute" in s for s in answer["pairs"][0]["layout"]["steps"])


def by_heads(parts, heads):
    """q, k and v of each head side by side, as GPT-NeoX has them."""
    return np.stack([p.reshape(heads, -1, *p.shape[1:]) for p in parts], 1).reshape(-1, *parts[0].shape[1:])


@pytest.mark.parametrize("fuse", [np.concatenate, lambda parts: by_heads(parts, 4)], ids=["whole", "by head"])
@pytest.mark.parametrize("fused_name", ["blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"])
def test_fused_weight_and_bias_of_gguf(tdbg, tmp_path, fuse, fused_name):
    """Rows of a block format are blocks too: q, k and v can be cut out of it. Biases are stored in full."""
    apart, fused = Gguf(), Gguf()
    for n in range(2):
        weights, biases = [values(128, 64) for _ in "qkv"], [values(128) for _ in "qkv"]
        for name, w, b in zip("qkv", weights, biases):
            apart.tensor(f"blk.{n}.attn_{name}.weight", "q8_0", [128, 64], q8_0(w))
            apart.tensor(f"blk.{n}.attn_{name}.bias", "f32", [128], b.tobytes())
        fused.tensor(f"{fused_name.format(n)}.weight", "q8_0", [384, 64], q8_0(fuse(weights)))
        fused.tensor(f"{fused_name.format(n)}.bias", "f32", [384], fuse(biases).tobytes())
    paths = tmp_path / "a.gguf", tmp_path / "b.gguf"
    for path, file in zip(paths, (apart, fused)):
        path.write_bytes(file.file())
    for a, b in paths, paths[::-1]:
        answer = tdbg.json("diff", a, b)
        assert answer["summary"]["identical"] == 12 and {p["strategy"] for p in answer["pairs"]} == {"fused"}


def test_wrong_part_of_a_fused_block_format(tdbg, tmp_path):
    weights = {name: values(128, 64) for name in "qkv"}
    write(tmp_path / "a", {f"blk.0.attn_{name}.weight.npy": w for name, w in weights.items()})
    weights["k"][32:64] *= -1
    fused = Gguf().tensor("blk.0.attn_qkv.weight", "q8_0", [384, 64], q8_0(np.concatenate(list(weights.values()))))
    (tmp_path / "b.gguf").write_bytes(fused.file())
    answer = json.loads(tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b.gguf").stdout)
    assert [p["verdict"] for p in answer["pairs"]] == ["within", "diverged", "within"]
    assert answer["first_divergence"]["name"] == "blk.0.attn_k.weight.npy"


def test_an_outlier_does_not_choose_the_layout(tdbg, tmp_path):
    """Values fifty times as large correlate with each other by chance, in the wrong order too, when few are looked at."""
    weights = {f"layers.{n}.q.weight.npy": values(256, 40) * np.where(np.arange(40) == 1, 50, 1).astype(np.float32) for n in range(24)}
    answer = compare(tdbg, tmp_path, weights, {name: interleave(w, 64) for name, w in weights.items()})
    assert all(p["verdict"] == "identical" and p["layout"]["shape"] == [4, 2, 32, 40] for p in answer["pairs"])


HEADS = [3, 0, 2, 1]


def heads_moved(weight, head):
    return weight.reshape(len(HEADS), head, -1)[HEADS].reshape(weight.shape).copy()


def test_heads_of_every_layer_in_another_order_are_a_convention(tdbg, tmp_path):
    """The head size is known from the activations; the weights have it merged into their rows."""
    a = {f"layers.{n}.q.weight.npy": values(256, 40) for n in range(3)} | {"9_query.npy": values(20, 4, 64)}
    b = {name: heads_moved(x, 64) if "weight" in name else x for name, x in a.items()}
    answer = compare(tdbg, tmp_path, a, b)
    assert answer["first_divergence"] is None
    weights = [p for p in answer["pairs"] if "weight" in p["name"]]
    back = ",".join(str(HEADS.index(i)) for i in range(4))
    assert [p["layout"]["steps"][-1] for p in weights] == [f"b: reorder axis 0: {back}"] * 3
    assert all(p["layout"]["by_value"] and p["layout"]["shape"] == [4, 64, 40] for p in weights)


def test_heads_of_one_layer_in_another_order_are_a_mistake(tdbg, tmp_path):
    a = {f"layers.{n}.q.weight.npy": values(256, 40) for n in range(3)} | {"9_query.npy": values(20, 4, 64)}
    b = {name: heads_moved(x, 64) if ".1." in name else x for name, x in a.items()}
    first = compare(tdbg, tmp_path, a, b)["first_divergence"]
    assert first["layer"] == 1 and first["diagnosis"][0]["kind"] == "permutation", first


@pytest.mark.parametrize("merged", [False, True])
def test_heads_in_another_order_are_how_they_are_stored_when_what_follows_agrees(tdbg, tmp_path, merged):
    def stored(x):
        return x[:, HEADS].reshape(20, -1) if merged else x[:, HEADS]

    a = {f"{n}_{stage}.npy": values(20, 4, 16) for n in range(2) for stage in ("query", "query_final")}
    b = {name: stored(x) for name, x in a.items()}
    after = {f"{n}_post_attn.npy": values(20, 64) for n in range(2)}
    answer = compare(tdbg, tmp_path, a | after, b | after)
    assert answer["first_divergence"] is None and answer["summary"]["identical"] == 6
    assert all("b: reorder axis 1" in p["layout"]["steps"][-1] for p in answer["pairs"] if "query" in p["name"])


def test_heads_in_another_order_are_a_mistake_when_what_follows_differs(tdbg, tmp_path):
    a = {f"{n}_{stage}.npy": values(20, 4, 16) for n in range(2) for stage in ("query", "query_final")}
    b = {name: x[:, HEADS] for name, x in a.items()}
    after = [{f"{n}_post_attn.npy": values(20, 64) for n in range(2)} for _ in "ab"]
    first = compare(tdbg, tmp_path, a | after[0], b | after[1])["first_divergence"]
    assert first["name"] == "0_query.npy" and first["diagnosis"][0]["kind"] == "permutation"


def test_scalar_against_one_element(tdbg, tmp_path):
    pair = only(compare(tdbg, tmp_path, {"0_scaling.npy": np.float64(0.125)},
                        {"0_scaling.npy": np.array([[0.125]], np.float32)}))
    assert pair["verdict"] == "identical"


def test_sizes_that_do_not_fit(tdbg, tmp_path):
    pair = only(compare(tdbg, tmp_path, {"0_x.npy": values(12, 7)}, {"0_x.npy": values(5, 11)}))
    assert pair["verdict"] == "error" and pair["metrics"] is None
    assert pair["reason"] == "shapes [12, 7] and [5, 11] do not line up (84 and 55 elements)"


@pytest.mark.parametrize("a, b", [((10, 16), (20, 16)), ((24, 16), (12, 16)), ((16,), (32,)), ((4, 6, 8), (6, 8))], ids=str)
def test_sizes_that_differ_by_a_factor_prove_nothing(tdbg, tmp_path, a, b):
    """A repeat, or ranks of which one is meant, would fit the shapes; the values of no layer say so."""
    sides = [{f"{n}_x.npy": values(*shape) for n in range(2)} for shape in (a, b)]
    for pair in compare(tdbg, tmp_path, *sides)["pairs"]:
        assert pair["verdict"] == "error" and "do not line up" in pair["reason"], pair
    grown = {f"{n}_x.npy": np.concatenate([x, x]) for n, x in enumerate(sides[0].values())}
    sides[0]["1_x.npy"] = 3 * values(*a)  # one layer fits, the other is wrong
    verdicts = [p["verdict"] for p in compare(tdbg, tmp_path, sides[0], grown)["pairs"]]
    assert verdicts == ["identical", "diverged"]


def test_padding_is_cut_only_when_the_rest_agrees(tdbg, tmp_path):
    x = values(12, 16)
    padded = np.concatenate((x, np.zeros((4, 16), np.float32)))
    answer = compare(tdbg, tmp_path, {"0_x.npy": x}, {"0_x.npy": padded})
    assert only(answer)["verdict"] == "identical" and "padding" in answer["notes"][0]
    unrelated = compare(tdbg, tmp_path, {"0_x.npy": x}, {"0_x.npy": values(16, 16)})
    assert only(unrelated)["verdict"] == "error"


def test_layout_by_hand(tdbg, tmp_path):
    x = values(12, 12, 16)
    pair = only(compare(tdbg, tmp_path, {"0_x.npy": x}, {"0_x.npy": x.transpose(1, 0, 2)[None].copy()},
                        "--layout", "b h t d -> t h d"))
    assert pair["verdict"] == "identical"
    merged = only(compare(tdbg, tmp_path, {"0_x.npy": x.reshape(12, 192)},
                          {"0_x.npy": x.transpose(1, 0, 2)[None].copy()}, "--layout", "b h t d -> t (h d)"))
    assert merged["verdict"] == "identical"


def test_one_tensor_of_each_side_sliced_by_its_own_indices(tdbg, tmp_path):
    x = values(3, 20, 8, 16)
    write(tmp_path, {"a.npy": x, "b/other.npy": x[1].transpose(1, 0, 2)[None].copy()})
    done = tdbg.run("diff", "--json", f"{tmp_path}/a.npy[1, 2:12]", f"{tmp_path}/b:other.npy[0, :, 2:12]")
    pair = only(json.loads(done.stdout))
    assert done.returncode == 0 and pair["verdict"] == "identical"
    assert pair["a"]["shape"] == [10, 8, 16] and pair["b"]["shape"] == [8, 10, 16]


def test_one_tensor_that_is_not_there(tdbg, tmp_path):
    write(tmp_path, {"a.npy": values(3), "b/x.npy": values(3)})
    assert tdbg.fails("diff", tmp_path / "a.npy", f"{tmp_path}/b:y") == (
        f"tdbg: {tmp_path}/b: no tensor named 'y'; there are 1: x.npy")


# --- copies of one tensor on several ranks -----------------------------------------------------------------------------------


def copies(tdbg, tmp_path, x, parts):
    return compare(tdbg, tmp_path, {"0_pre_mlp.npy": x}, {f"rank{r}/0_pre_mlp.npy": p for r, p in enumerate(parts)})


@pytest.mark.parametrize("kind", ["scale", "unknown"])
def test_a_rank_with_a_wrong_copy(tdbg, tmp_path, kind):
    x = values(24, 32)
    pair = only(copies(tdbg, tmp_path, x, [x, x, 3 * x if kind == "scale" else values(24, 32), x]))
    assert pair["verdict"] == "diverged" and pair["layout"]["steps"] == ["b: shard 2 of replicated shards"]
    assert pair["diagnosis"][0]["kind"] == kind


def test_a_copy_that_differs_by_rounding(tdbg, tmp_path):
    x = values(24, 32)
    answer = copies(tdbg, tmp_path, x, [x, x * np.float32(1 + 1e-7)])
    assert only(answer)["layout"]["steps"] == ["b: first of replicated shards"] and answer["notes"] == []


def test_a_side_with_the_part_of_one_rank(tdbg, tmp_path):
    """The others are no copies: nothing diverges, and it is said that they were not compared."""
    x = values(24, 32)
    answer = copies(tdbg, tmp_path, x, [x, values(24, 32), values(24, 32)])
    assert only(answer)["verdict"] == "identical" and "2 other shards are no copies" in answer["notes"][0]


@pytest.mark.parametrize("wrong", [np.zeros_like, lambda x: np.roll(x, 1, 0), lambda x: values(*x.shape)],
                         ids=["zeros", "shifted", "noise"])
def test_a_mistake_of_the_second_rank_where_both_sides_have_all_ranks(tdbg, tmp_path, wrong):
    """The first ranks agree; they must not stand for the others."""
    parts = {f"rank{r}/{n}_query.npy": values(24, 32) for n in range(3) for r in range(2)}
    answer = compare(tdbg, tmp_path, parts, {n: wrong(x) if "rank1" in n else x for n, x in parts.items()})
    assert [p["verdict"] for p in answer["pairs"]] == ["diverged"] * 3
    assert all("concatenate" in s for p in answer["pairs"] for s in p["layout"]["steps"])


def test_ranks_exchanged(tdbg, tmp_path):
    """Their sum is the same, which is no proof that they are partial sums."""
    parts = {f"rank{r}/{n}_query.npy": values(24, 32) for n in range(3) for r in range(2)}
    answer = compare(tdbg, tmp_path, parts, {f"rank{1 - int(n[4])}{n[5:]}": x for n, x in parts.items()})
    assert [p["verdict"] for p in answer["pairs"]] == ["diverged"] * 3


def test_sums_that_are_shared_out_otherwise(tdbg, tmp_path):
    whole, a, b = values(3, 24, 32), values(3, 24, 32), values(3, 24, 32)
    sides = [{f"rank{r}/{n}_query.npy": (x[n], whole[n] - x[n])[r] for n in range(3) for r in range(2)} for x in (a, b)]
    assert {p["verdict"] for p in compare(tdbg, tmp_path, *sides)["pairs"]} == {"within"}


@pytest.mark.parametrize("wrong", [None, 90])
def test_a_padded_vocabulary_in_shards(tdbg, tmp_path, wrong):
    """All rows are compared, those of the second rank too."""
    x = values(101, 16)
    padded = np.concatenate((x, np.zeros((27, 16), np.float32)))
    if wrong:
        padded[wrong] = values(16)
    shards = {f"rank{r}/embed_tokens.weight.npy": part for r, part in enumerate(np.split(padded, 2))}
    pair = only(compare(tdbg, tmp_path, {"embed_tokens.weight.npy": x}, shards))
    assert pair["verdict"] == ("diverged" if wrong else "identical") and pair["metrics"]["count"] == x.size
    assert pair["layout"]["steps"] == ["b: concatenate shards on axis 0", "b: slice 0:101 of axis 0"]


# --- one side is longer ------------------------------------------------------------------------------------------------------


def layers(change=lambda x: x):
    rng = np.random.default_rng(4)
    return {f"{n}_query.npy": change(rng.standard_normal((12, 8, 16)).astype(np.float32)) for n in range(3)}


LACKING = {"tokens": (lambda x: x[:9], "9 of 12 of axis 0"), "half the tokens": (lambda x: x[:6], "6 of 12 of axis 0"),
           "heads": (lambda x: x[:, :6], "6 of 8 of axis 1"), "channels": (lambda x: x[..., :12], "12 of 16 of axis 2")}


@pytest.mark.parametrize("what", LACKING)
@pytest.mark.parametrize("in_b", [False, True])
def test_what_is_missing_is_no_agreement(tdbg, tmp_path, what, in_b):
    change, words = LACKING[what]
    sides = [layers(), layers(change)] if in_b else [layers(change), layers()]
    answer = compare(tdbg, tmp_path, *sides)
    assert [p["verdict"] for p in answer["pairs"]] == ["diverged"] * 3 and answer["notes"] == []
    assert answer["pairs"][0]["reason"].startswith(f"{'B' if in_b else 'A'} has only {words}")
    assert answer["first_divergence"]["diagnosis"][0]["kind"] == "partial"


@pytest.mark.parametrize("how", ["constant", "nan", "edge", "one row", "one edge row"])
def test_padding_of_any_kind(tdbg, tmp_path, how):
    def pad(x):
        rows = {"constant": np.full((4, 8, 16), 0.5), "nan": np.full((4, 8, 16), np.nan), "edge": [x[-1]] * 4,
                "one row": [x[3]] * 4, "one edge row": [x[-1]]}[how]  # fmt: skip
        return np.concatenate((x, np.asarray(rows, np.float32)))

    answer = compare(tdbg, tmp_path, layers(), layers(pad))
    assert {p["verdict"] for p in answer["pairs"]} == {"identical"} and "padding rows" in answer["notes"][0]


def test_the_part_of_one_rank(tdbg, tmp_path):
    answer = compare(tdbg, tmp_path, layers(), layers(lambda x: x[:, :2]))
    assert {p["verdict"] for p in answer["pairs"]} == {"identical"} and "as one rank holds" in answer["notes"][0]


def test_a_rank_that_left_no_shards(tdbg, tmp_path):
    b = {f"rank{r}/{n}": x[:, 2 * r : 2 * r + 2].copy() for n, x in layers().items() for r in (0, 1, 3)}
    answer = compare(tdbg, tmp_path, layers(), b)
    assert answer["first_divergence"]["layer"] == 0 and answer["summary"]["diverged"] == 3


def test_the_unused_rows_of_a_vocabulary(tdbg, tmp_path):
    x = values(40, 16)
    answer = compare(tdbg, tmp_path, {"model.embed_tokens.weight.npy": x},
                     {"model.embed_tokens.weight.npy": np.concatenate((x, values(24, 16)))})  # fmt: skip
    assert only(answer)["verdict"] == "identical" and "padding rows" in answer["notes"][0]


# --- heads in a flat checkpoint ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups, queries", [(8, 1), (4, 2)])
def test_fused_by_groups_where_nothing_tells_the_head_size(tdbg, tmp_path, groups, queries):
    """Megatron's order: the queries of a group, its key, its value, and the next group."""
    a, b, size, width = {}, {}, 16, 48
    for n in range(3):
        q, k, v = values(groups, queries, size, width), values(groups, 1, size, width), values(groups, 1, size, width)
        for letter, x in ("q", q), ("k", k), ("v", v):
            a[f"model.layers.{n}.self_attn.{letter}_proj.weight.npy"] = x.reshape(-1, width)
        b[f"decoder.layers.{n}.self_attention.linear_qkv.weight.npy"] = np.concatenate((q, k, v), 1).reshape(-1, width)
    answer = compare(tdbg, tmp_path, a, b)
    assert answer["summary"]["identical"] == 9, [(p["name"], p["verdict"]) for p in answer["pairs"]]


@pytest.mark.parametrize("parts_too", [False, True], ids=["parts whole", "parts in shards"])
def test_fused_on_each_rank(tdbg, tmp_path, parts_too):
    """vLLM and Megatron join gate and up, or q, k and v, of each rank: g0 u0 | g1 u1."""
    ranks, width, a, b = 2, 48, {}, {}
    for n in range(3):
        block = f"layers.{n}."
        for fused, sizes in {"self_attn.qkv_proj": {"self_attn.q_proj": 160, "self_attn.k_proj": 40, "self_attn.v_proj": 40},
                             "mlp.gate_up_proj": {"mlp.gate_proj": 88, "mlp.up_proj": 88}}.items():
            parts = {part: np.split(values(size, width), ranks) for part, size in sizes.items()}
            for part, shards in parts.items():
                for r, x in enumerate(shards if parts_too else [np.concatenate(shards)]):
                    a[f"rank{r}/{block}{part}.weight.npy" if parts_too else f"{block}{part}.weight.npy"] = x
            for r in range(ranks):
                b[f"rank{r}/{block}{fused}.weight.npy"] = np.concatenate([shards[r] for shards in parts.values()])
    answer = compare(tdbg, tmp_path, a, b)
    assert answer["summary"]["identical"] == 15, [(p["name"], p["verdict"]) for p in answer["pairs"]]


def fused_outputs(ranks, heads=8, groups=2, size=16, wide=96):
    """What vLLM's qkv_proj and gate_up_proj put out in four layers: whole, and on each of the ranks."""
    whole, shards = {}, {}
    for n in range(4):
        for name, sizes in ("self_attn.qkv_proj", (heads * size, groups * size, groups * size)), ("mlp.gate_up_proj", (wide, wide)):
            parts = [values(24, s) for s in sizes]
            whole[f"model.layers.{n}.{name}.npy"] = np.concatenate(parts, 1)
            for r in range(ranks):
                share = [np.split(part, ranks, 1)[r] for part in parts]
                shards[f"rank{r}/model.layers.{n}.{name}.npy"] = np.concatenate(share, 1)
    return whole, shards


@pytest.mark.parametrize("whole_first", [True, False])
def test_fused_whole_and_fused_on_each_rank(tdbg, tmp_path, whole_first):
    """q k v against q0 k0 v0 | q1 k1 v1: another order, in which each rank keeps to that of the whole."""
    sides = fused_outputs(2)
    answer = compare(tdbg, tmp_path, *(sides if whole_first else sides[::-1]))
    assert answer["summary"]["identical"] == 8, [(p["name"], p["verdict"]) for p in answer["pairs"]]


def test_heads_exchanged_on_one_rank_are_a_mistake(tdbg, tmp_path):
    whole, shards = fused_outputs(2)
    for name, x in shards.items():
        if name.startswith("rank1") and "qkv" in name:
            shards[name] = np.concatenate((x[:, 16:32], x[:, :16], x[:, 32:]), 1)
    answer = compare(tdbg, tmp_path, whole, shards)
    assert [p["verdict"] for p in answer["pairs"] if "qkv" in p["name"]] == ["diverged"] * 4
    assert answer["first_divergence"]["diagnosis"][0]["kind"] == "permutation"


@pytest.mark.parametrize("size", [8, 16])
def test_fused_in_two_ways(tdbg, tmp_path, size):
    """vLLM's q k v against Megatron's groups of them. Two heads at a time fit nearly, and must not be taken for it."""
    a, b, width = {}, {}, 64
    for n in range(12):
        q, k, v = values(2, 4, size, width), values(2, 1, size, width), values(2, 1, size, width)
        a[f"model.layers.{n}.self_attn.qkv_proj.weight.npy"] = np.concatenate([x.reshape(-1, width) for x in (q, k, v)])
        b[f"decoder.layers.{n}.self_attention.linear_qkv.weight.npy"] = np.concatenate((q, k, v), 1).reshape(-1, width)
    answer = compare(tdbg, tmp_path, a, b)
    assert answer["summary"]["identical"] == 12, [(p["name"], p["verdict"]) for p in answer["pairs"]]


# --- what one side has more of -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("front", [False, True])
@pytest.mark.parametrize("row", ["zeros", "one row"])
def test_padding_on_either_side(tdbg, tmp_path, front, row):
    a = {f"{n}_{s}.npy": values(24, 32) for n in range(2) for s in ("query", "post_mlp")}
    fill = np.zeros((8, 32), np.float32) if row == "zeros" else np.repeat(values(1, 32), 8, 0)
    b = {n: np.concatenate((fill, x) if front else (x, fill)) for n, x in a.items()}
    answer = compare(tdbg, tmp_path, a, b)
    assert answer["summary"]["identical"] == 4
    assert answer["pairs"][0]["layout"]["steps"] == [f"b: slice {'8:32' if front else '0:24'} of axis 0"]
    where = "only 24 of axis 0 are on both sides" + (", the last ones" if front else "")
    assert len(answer["notes"]) == 1 and where in answer["notes"][0]


def test_tokens_in_front_that_are_no_padding(tdbg, tmp_path):
    a = {f"{n}_query.npy": values(24, 32) for n in range(2)}
    answer = compare(tdbg, tmp_path, a, {n: np.concatenate((values(8, 32), x)) for n, x in a.items()})
    assert answer["summary"]["diverged"] == 2
    assert answer["pairs"][0]["reason"] == "A has only 24 of 32 of axis 0; they agree, but what is missing is no padding"


@pytest.mark.parametrize("last", [lambda x: x[-1:], lambda x: x[-1]], ids=["row", "vector"])
def test_the_last_token_alone(tdbg, tmp_path, last):
    logits = values(24, 500)
    answer = compare(tdbg, tmp_path, {"logits.npy": logits}, {"logits.npy": last(logits)})
    assert only(answer)["verdict"] == "identical" and "a: take 23 of axis 0" in only(answer)["layout"]["steps"]
    assert answer["notes"] == ["logits.npy: B has no more than the last of axis 0, which was compared"]


@pytest.mark.parametrize("kind", ["weight", "output"])
def test_gate_and_up_channel_by_channel(tdbg, tmp_path, kind):
    """As gpt-oss has them: gate in the even channels, up in the odd ones."""
    a, b = {}, {}
    for n in range(2):
        gate, up = values(64, 24), values(64, 24)
        if kind == "output":
            gate, up = gate.T.copy(), up.T.copy()
        a |= {f"layers.{n}.mlp.gate_proj.{kind}.npy": gate, f"layers.{n}.mlp.up_proj.{kind}.npy": up}
        axis = 0 if kind == "weight" else 1
        both = np.stack((gate, up), axis + 1)
        b[f"layers.{n}.mlp.gate_up_proj.{kind}.npy"] = both.reshape((128, 24) if kind == "weight" else (24, 128))
    answer = compare(tdbg, tmp_path, a, b)
    assert answer["summary"]["identical"] == 4, answer["pairs"][0]
