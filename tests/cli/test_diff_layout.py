"""Layouts are found by value: every row of the table holds real data in two layouts, and the pair must come out
within (or identical), through the steps named. `count` copies with other values stand for the layers."""
import json

import numpy as np
import pytest

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
