"""Pipeline parallelism: every rank numbers its layers from 0, the other side has the whole model."""
import json

import numpy as np
import pytest
import torch

PARTS = ["self_attn.q_proj.weight", "self_attn.o_proj.weight", "mlp.down_proj.weight", "input_layernorm.weight"]
LAYERS = 9


def whole(seed=4):
    rng = np.random.default_rng(seed)
    model = {"model.embed_tokens.weight": rng.standard_normal((64, 32)).astype(np.float32)}
    for n in range(LAYERS):
        for part in PARTS:
            model[f"model.layers.{n}.{part}"] = rng.standard_normal(32 if "norm" in part else (32, 32)).astype(np.float32)
    return model | {"model.norm.weight": rng.standard_normal(32).astype(np.float32)}


def ranks(model, shares, local=True):
    """One dict of tensors for each rank."""
    out, first = [], 0
    for share in shares:
        mine = {f"model.layers.{n if local else first + n}.{part}": model[f"model.layers.{first + n}.{part}"]
                for n in range(share) for part in PARTS}  # fmt: skip
        out.append(mine)
        first += share
    out[0]["model.embed_tokens.weight"] = model["model.embed_tokens.weight"]
    out[-1]["model.norm.weight"] = model["model.norm.weight"]
    return out


def save(path, arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({n: torch.from_numpy(x) for n, x in arrays.items()}, path)


def compare(tdbg, a, b):
    return json.loads(tdbg.run("diff", "--json", a, b).stdout)


@pytest.mark.parametrize("name", ["pp_rank_{:02}/model.pt", "pp{}/model.pt", "pipeline_stage_{}/model.pt", "pp_rank_{}.pt", "stage{}/m.pt",
                                  "iter_0000100/mp_rank_00_{:03}/model_optim_rng.pt"])  # fmt: skip
@pytest.mark.parametrize("shares", [(3, 3, 3), (4, 5), (5, 3, 1)])
def test_local_numbers(tdbg, tmp_path, name, shares):
    save(tmp_path / "a" / "model.pt", whole())
    for r, arrays in enumerate(ranks(whole(), shares)):
        save(tmp_path / "b" / name.format(r), arrays)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b")
    assert answer["summary"]["identical"] == answer["summary"]["pairs"] == 4 * LAYERS + 2
    assert answer["notes"] == [f"B has {len(shares)} pipeline ranks that number their layers from 0: layer 0 of rank 1 is taken for "
                               f"layer {shares[0]}"]  # fmt: skip
    assert [p["layer"] for p in answer["pairs"] if p["layer"] is not None] == [n for n in range(LAYERS) for _ in PARTS]


def test_a_mistake_has_the_number_of_the_whole(tdbg, tmp_path):
    wrong = whole()
    wrong["model.layers.7.mlp.down_proj.weight"] *= 2
    save(tmp_path / "a" / "model.pt", whole())
    for r, arrays in enumerate(ranks(wrong, (4, 5))):
        save(tmp_path / "b" / f"pp_rank_{r:02}" / "model.pt", arrays)
    for a, b in (("a", "b"), ("b", "a")):
        answer = compare(tdbg, tmp_path / a, tmp_path / b)
        assert answer["summary"]["diverged"] == 1
        assert answer["first_divergence"]["layer"] == 7 and answer["first_divergence"]["diagnosis"][0]["kind"] == "scale"


def test_numbers_of_the_whole_stay(tdbg, tmp_path):
    save(tmp_path / "a" / "model.pt", whole())
    for r, arrays in enumerate(ranks(whole(), (4, 5), local=False)):
        save(tmp_path / "b" / f"pp_rank_{r:02}" / "model.pt", arrays)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b")
    assert answer["summary"]["identical"] == answer["summary"]["pairs"] == 4 * LAYERS + 2 and answer["notes"] == []


def test_with_tensor_parallel_ranks(tdbg, tmp_path):
    """Megatron's mp_rank_TT_PPP: columns of q and rows of o are on the ranks in front, norms on all of them."""
    save(tmp_path / "a" / "model.pt", whole())
    for p, arrays in enumerate(ranks(whole(), (4, 5))):
        for t in range(2):
            cut = {n: x if x.ndim == 1 else np.array_split(x, 2, 0 if "q_proj" in n or "embed" in n else 1)[t].copy()
                   for n, x in arrays.items()}  # fmt: skip
            save(tmp_path / "b" / f"mp_rank_{t:02}_{p:03}" / "model_optim_rng.pt", cut)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b")
    assert answer["summary"]["identical"] == answer["summary"]["pairs"] == 4 * LAYERS + 2


def test_dumps_by_stage(tdbg, tmp_path):
    rng = np.random.default_rng(2)
    values = {(n, s): rng.standard_normal((12, 32)).astype(np.float32) for n in range(6) for s in ("query", "post_mlp")}
    for (n, stage), x in values.items():
        for path in tmp_path / "a" / f"{n}_{stage}.npy", tmp_path / "b" / f"pp_rank_{n // 3}" / f"{n % 3}_{stage}.npy":
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, x)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b")
    assert answer["summary"]["identical"] == answer["summary"]["pairs"] == 12
