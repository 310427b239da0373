"""Mixtures of experts: one tensor for each expert on one side, all experts of a layer in one tensor on the other."""
import json

import numpy as np
import pytest

from tensorfiles import Gguf

E, FF, D, LAYERS = 6, 64, 32, 2


def model(seed=3):
    rng = np.random.default_rng(seed)
    shapes = {"gate": (E, FF, D), "up": (E, FF, D), "down": (E, D, FF)}
    return [{part: rng.standard_normal(shape).astype(np.float32) for part, shape in shapes.items()}
            for _ in range(LAYERS)]


def one_by_one(layers, names=("gate_proj", "up_proj", "down_proj"), module="mlp"):
    return {f"model.layers.{n}.{module}.experts.{e}.{name}.weight": layer[part][e]
            for n, layer in enumerate(layers) for part, name in zip(("gate", "up", "down"), names) for e in range(E)}


def llama_cpp(layers):
    return {f"blk.{n}.ffn_{part}_exps.weight": layer[part] for n, layer in enumerate(layers) for part in layer}


def fused(layers, transposed=False):
    """As Hugging Face stacks them: gate and up in one, without a word for what they are."""
    turn = (lambda x: np.ascontiguousarray(x.swapaxes(1, 2))) if transposed else (lambda x: x)
    out = {}
    for n, layer in enumerate(layers):
        out[f"model.layers.{n}.mlp.experts.gate_up_proj"] = turn(np.concatenate([layer["gate"], layer["up"]], 1))
        out[f"model.layers.{n}.mlp.experts.down_proj"] = turn(layer["down"])
    return out


def vllm(layers):
    out = {}
    for n, layer in enumerate(layers):
        out[f"model.layers.{n}.mlp.experts.w13_weight"] = np.concatenate([layer["gate"], layer["up"]], 1)
        out[f"model.layers.{n}.mlp.experts.w2_weight"] = layer["down"]
    return out


def q8_0(array):
    """Blocks of 32: one scale of 16 bits and as many bytes."""
    blocks = array.reshape(-1, 32)
    scales = (np.abs(blocks).max(1) / 127).astype(np.float16)
    rounded = np.rint(blocks / scales.astype(np.float32)[:, None]).clip(-127, 127).astype(np.int8)
    return b"".join(s.tobytes() + q.tobytes() for s, q in zip(scales, rounded))


def write(folder, arrays):
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def compare(tdbg, tmp_path, a, b, *options):
    write(tmp_path / "a", a)
    write(tmp_path / "b", b)
    return json.loads(tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b", *options).stdout)


STACKED = {
    "llama.cpp": llama_cpp,
    "Hugging Face": fused,
    "Hugging Face, transposed": lambda layers: fused(layers, transposed=True),
    "vLLM": vllm,
}


@pytest.mark.parametrize("stacked", STACKED)
@pytest.mark.parametrize("swapped", [False, True])
def test_same_values(tdbg, tmp_path, stacked, swapped):
    sides = [one_by_one(model()), STACKED[stacked](model())]
    answer = compare(tdbg, tmp_path, *(sides[::-1] if swapped else sides))
    assert [p["verdict"] for p in answer["pairs"]] == ["identical"] * 3 * LAYERS
    assert all(p["strategy"] == "fused" for p in answer["pairs"])
    apart = "b" if swapped else "a"
    assert all("experts.*." in p[apart]["name"] and p[apart]["experts"] == E for p in answer["pairs"])
    assert f"{apart}: concatenate experts on axis 0" in answer["pairs"][0]["layout"]["steps"]


def test_mixtral_names(tdbg, tmp_path):
    apart = one_by_one(model(), ("w1", "w3", "w2"), "block_sparse_moe")
    answer = compare(tdbg, tmp_path, apart, llama_cpp(model()))
    assert [p["verdict"] for p in answer["pairs"]] == ["identical"] * 3 * LAYERS


@pytest.mark.parametrize("name", ["blk.{}.ffn_{}.{}.weight", "decoder.layers.{}.mlp.experts.linear_{}.weight{}"])
def test_numbers_at_the_end(tdbg, tmp_path, name):
    """Older files of llama.cpp, and Megatron with Transformer Engine, which has gate and up in fc1."""
    apart = {}
    for n, layer in enumerate(model()):
        parts = layer if "ffn" in name else {"fc1": np.concatenate([layer["gate"], layer["up"]], 1), "fc2": layer["down"]}
        apart |= {name.format(n, part, e): x[e] for part, x in parts.items() for e in range(E)}
    answer = compare(tdbg, tmp_path, apart, llama_cpp(model()))
    assert [p["verdict"] for p in answer["pairs"]] == ["identical"] * 3 * LAYERS


@pytest.mark.parametrize("stacked", STACKED)
def test_one_wrong_expert(tdbg, tmp_path, stacked):
    wrong = model()
    wrong[1]["up"][4] = np.random.default_rng(9).standard_normal((FF, D))
    answer = compare(tdbg, tmp_path, one_by_one(model()), STACKED[stacked](wrong))
    assert answer["summary"]["diverged"] == 1 and answer["summary"]["identical"] == 3 * LAYERS - 1
    first = answer["first_divergence"]
    assert first["layer"] == 1 and first["name"] == "model.layers.1.mlp.experts.*.up_proj.weight.npy"
    assert first["diagnosis"][0]["kind"] == "partial"
    assert first["diagnosis"][0]["detail"].startswith("only expert 4 of axis 0 (1 of 6)")


def test_experts_in_another_order(tdbg, tmp_path):
    """In one layer only: a mistake, and which expert is which is said."""
    wrong = model()
    wrong[0]["gate"] = wrong[0]["gate"][[0, 2, 1, 3, 4, 5]]
    first = compare(tdbg, tmp_path, one_by_one(model()), llama_cpp(wrong))["first_divergence"]
    assert first["layer"] == 0 and first["diagnosis"][0]["kind"] == "permutation"
    assert "expert" in first["diagnosis"][0]["detail"]


def test_an_expert_is_missing(tdbg, tmp_path):
    """What is no whole set is not joined, and nothing is guessed."""
    apart = one_by_one(model())
    del apart["model.layers.0.mlp.experts.3.gate_proj.weight"]
    answer = compare(tdbg, tmp_path, apart, llama_cpp(model()))
    assert answer["summary"]["identical"] == 3 * LAYERS - 1
    assert answer["summary"]["only_a"] == E - 1 and answer["summary"]["only_b"] == 1


def test_shared_expert_stays_itself(tdbg, tmp_path):
    shared = np.random.default_rng(1).standard_normal((FF, D)).astype(np.float32)
    a = one_by_one(model()) | {"model.layers.0.mlp.shared_expert.gate_proj.weight": shared}
    b = llama_cpp(model()) | {"blk.0.ffn_gate_shexp.weight": shared}
    answer = compare(tdbg, tmp_path, a, b)
    assert answer["summary"]["identical"] == 3 * LAYERS + 1


def test_quantised(tdbg, tmp_path):
    """llama.cpp's own file: what is stacked there is rounded, too."""
    layers = model()
    write(tmp_path / "a", one_by_one(layers))
    for layer in layers:
        layer["gate"][2] *= 1.5
    gguf = Gguf()
    for name, array in llama_cpp(layers).items():
        gguf.tensor(name, "q8_0", list(array.shape), q8_0(array))
    (tmp_path / "b.gguf").write_bytes(gguf.file())
    answer = json.loads(tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b.gguf").stdout)
    assert answer["summary"]["within"] == 2 * LAYERS and answer["summary"]["diverged"] == LAYERS
    assert "expert 2" in answer["first_divergence"]["diagnosis"][0]["detail"]


def test_pairs_that_were_saved(tdbg, tmp_path):
    answer = compare(tdbg, tmp_path, one_by_one(model()), fused(model()), "--save-pairs", tmp_path / "pairs.json")
    again = json.loads(tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b", "--pairs", tmp_path / "pairs.json").stdout)
    assert [p["strategy"] for p in again["pairs"]] == ["manual"] * 3 * LAYERS
    assert again["summary"] == answer["summary"]


def test_pairs_by_hand_come_first(tdbg, tmp_path):
    """An expert that a person paired with something else is in no set."""
    a = one_by_one(model())
    b = llama_cpp(model()) | {"mine": a["model.layers.0.mlp.experts.3.gate_proj.weight"]}
    pairs = tmp_path / "pairs.json"
    pairs.write_text(json.dumps({"pairs": [{"a": "model.layers.0.mlp.experts.3.gate_proj.weight.npy", "b": "mine.npy"}]}))
    answer = compare(tdbg, tmp_path, a, b, "--pairs", pairs)
    assert answer["summary"]["identical"] == 3 * LAYERS and answer["summary"]["only_b"] == 1
