"""Weights of one model in two formats: paired under any names, in any layout; and two checkpoints of one
architecture, which differ everywhere and nowhere by mistake."""
import numpy as np
import pytest

import tensorfiles

LAYERS, WIDTH, HEADS, GROUPS, HEAD, HIDDEN = 4, 64, 8, 2, 8, 160
PARTS = {
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
    "up": "mlp.fc1", "down": "mlp.fc2", "n1": "input_layernorm", "n2": "post_attention_layernorm",
}  # fmt: skip
ROWS = {"q": HEADS * HEAD, "k": GROUPS * HEAD, "v": GROUPS * HEAD, "o": WIDTH, "up": HIDDEN, "down": WIDTH}
COLUMNS = {"o": HEADS * HEAD, "down": HIDDEN}


def model(seed=0, zero_biases=False):
    """{(layer or None, part, weight or bias): array}"""
    rng = np.random.default_rng(seed)

    def vector(size, bias):
        plain = 0 if bias else 1
        return np.full(size, plain, np.float32) if zero_biases and bias else plain + 0.1 * rng.standard_normal(size)

    tensors = {(None, "embed", "weight"): 0.05 * rng.standard_normal((300, WIDTH)),
               (None, "last", "weight"): vector(WIDTH, False)}  # fmt: skip
    for layer in range(LAYERS):
        for part in PARTS:
            if part in ROWS:
                tensors[layer, part, "weight"] = 0.05 * rng.standard_normal((ROWS[part], COLUMNS.get(part, WIDTH)))
            else:
                tensors[layer, part, "weight"] = vector(WIDTH, False)
            tensors[layer, part, "bias"] = vector(ROWS.get(part, WIDTH), True)
    return {key: np.asarray(value, np.float32) for key, value in tensors.items()}


def hugging_face(key):
    layer, part, kind = key
    if layer is None:
        return {"embed": "model.embed_tokens.weight", "last": "model.norm.weight"}[part]
    return f"model.layers.{layer}.{PARTS[part]}.{kind}"


def invented(key):
    """Words that mean nothing to anybody."""
    layer, part, kind = key
    words = {"q": "mix/a", "k": "mix/b", "v": "mix/c", "o": "mix/d", "up": "grow", "down": "shrink", "n1": "calm1",
             "n2": "calm2", "embed": "lookup", "last": "finish", "qkv": "mix/abc"}  # fmt: skip
    where = "" if layer is None else f"rung{layer}/"
    return f"{where}{words[part]}/{'mat' if kind == 'weight' else 'add'}"


def flax(key):
    layer, part, kind = key
    words = {"q": "attention/query", "k": "attention/key", "v": "attention/value", "o": "attention/out",
             "up": "Dense_0", "down": "Dense_1", "n1": "LayerNorm_0", "n2": "LayerNorm_1", "embed": "Embed_0",
             "last": "LayerNorm_0"}  # fmt: skip
    where = "params/" if layer is None else f"params/layers_{layer}/"
    kinds = {"weight": "embedding" if part == "embed" else "kernel" if part in ROWS else "scale", "bias": "bias"}
    return f"{where}{words[part]}/{kinds[kind]}"


def timm(key):
    layer, part, kind = key
    words = {"qkv": "attn.qkv", "o": "attn.proj", "up": "mlp.fc1", "down": "mlp.fc2", "n1": "norm1", "n2": "norm2",
             "embed": "tok_embed", "last": "norm"}  # fmt: skip
    return f"{'' if layer is None else f'blocks.{layer}.'}{words[part]}.{kind}"


def megatron(key):
    layer, part, kind = key
    words = {"qkv": "self_attention.linear_qkv", "o": "self_attention.linear_proj", "up": "mlp.linear_fc1",
             "down": "mlp.linear_fc2", "n1": "input_layernorm", "n2": "pre_mlp_layernorm"}  # fmt: skip
    if layer is None:
        return {"embed": "embedding.word_embeddings.weight", "last": "decoder.final_layernorm.weight"}[part]
    return f"decoder.layers.{layer}.{words[part]}.{kind}"


def numbered(keys):
    """Names without layers, in no order."""
    order = np.random.default_rng(3).permutation(len(keys))
    return {key: f"p{order[i]:03d}" for i, key in enumerate(keys)}.get


def halves_interleaved(x):
    """q and k as conversions to GGUF store them."""
    return x.reshape(-1, 2, HEAD // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def by_group(q, k, v):
    parts = [x.reshape(GROUPS, -1, *x.shape[1:]) for x in (q, k, v)]
    return np.concatenate(parts, 1).reshape(-1, *q.shape[1:])


def as_stored(tensors, name, fuse=None, turned=False, permuted=False):
    """The tensors under other names, and which of the keys each of them holds."""
    out, holds = {}, {}
    for key, x in tensors.items():
        layer, part, kind = key
        if fuse and part in ("k", "v"):
            continue
        keys = [key]
        if fuse and part == "q":
            keys = [(layer, p, kind) for p in "qkv"]
            x, key = fuse(*(tensors[k] for k in keys)), (layer, "qkv", kind)
        if permuted and part in ("q", "k"):
            x = halves_interleaved(x)
        if turned and x.ndim == 2 and layer is not None:
            x = x.T
        out[name(key)] = np.ascontiguousarray(x)
        holds[name(key)] = keys
    return out, holds


STYLES = {
    "invented": dict(name=invented),
    "invented, turned": dict(name=invented, turned=True),
    "invented, q and k permuted": dict(name=invented, permuted=True),
    "invented, fused": dict(name=invented, fuse=lambda q, k, v: np.concatenate([q, k, v])),
    "invented, fused by group": dict(name=invented, fuse=by_group),
    "flax": dict(name=flax, turned=True),
    "timm": dict(name=timm, fuse=lambda q, k, v: np.concatenate([q, k, v])),
    "megatron": dict(name=megatron, fuse=by_group),
    "numbered": dict(name=None),
}


def write(path, tensors):
    path.write_bytes(tensorfiles.safetensors(tensors))
    return path


def key_of(name):
    return name.split("safetensors:")[-1]


def held(answer):
    """The pairs by name, and the diverged ones of B."""
    pairs = [p for p in answer["pairs"] if p["a"] and p["b"]]
    return ({(key_of(p["a"]["name"]), key_of(p["b"]["name"])) for p in pairs},
            {key_of(p["b"]["name"]) for p in pairs if p["verdict"] == "diverged"})  # fmt: skip


def expected(holds):
    return {(hugging_face(key), name) for name, keys in holds.items() for key in keys}


def diff(tdbg, tmp_path, a, b, *options, status):
    return tdbg.json("diff", *options, write(tmp_path / "a.safetensors", a), write(tmp_path / "b.safetensors", b),
                     status=status)  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_every_tensor_finds_its_partner(tdbg, tmp_path, style):
    """And the one with a mistake in it, too, whichever side has the unknown names."""
    tensors = model()
    how = dict(STYLES[style])
    how["name"] = how["name"] or numbered(list(tensors))
    a, _ = as_stored(tensors, hugging_face)
    b, holds = as_stored(tensors, **how)
    pairs, diverged = held(diff(tdbg, tmp_path, a, b, status=0))
    assert pairs == expected(holds) and not diverged
    wrong = how["name"]((2, "down", "weight"))
    b[wrong] = b[wrong].copy()
    b[wrong][3] *= -1.5
    pairs, diverged = held(diff(tdbg, tmp_path, a, b, status=1))
    assert pairs == expected(holds) and diverged == {wrong}
    pairs, _ = held(diff(tdbg, tmp_path, b, a, status=1))
    assert pairs == {(y, x) for x, y in expected(holds)}


@pytest.mark.parametrize("style", ["invented", "invented, turned", "flax", "timm"])
def test_rounded_to_half(tdbg, tmp_path, style):
    a, _ = as_stored(model(), hugging_face)
    b, holds = as_stored(model(), **STYLES[style])
    pairs, diverged = held(diff(tdbg, tmp_path, a, {n: x.astype(np.float16) for n, x in b.items()}, status=0))
    assert pairs == expected(holds) and not diverged


def test_a_bias_of_zeros_goes_with_its_weight(tdbg, tmp_path):
    tensors = model(zero_biases=True)
    a, _ = as_stored(tensors, hugging_face)
    b, holds = as_stored(tensors, invented)
    pairs, _ = held(diff(tdbg, tmp_path, a, b, status=0))
    assert pairs == expected(holds)


def test_names_that_all_know_beat_values(tdbg, tmp_path):
    """B's key is A's value: that is the mistake, and no reason to pair the two."""
    tensors = model()
    a, _ = as_stored(tensors, hugging_face)
    for kind in "weight", "bias":
        k, v = (1, "k", kind), (1, "v", kind)
        tensors[k], tensors[v] = tensors[v], tensors[k]
    words = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "up": "ffn_up", "down": "ffn_down",
             "n1": "attn_norm", "n2": "ffn_norm", "embed": "token_embd", "last": "output_norm"}  # fmt: skip
    b, holds = as_stored(tensors, lambda k: f"{'' if k[0] is None else f'blk.{k[0]}.'}{words[k[1]]}.{k[2]}")
    pairs, diverged = held(diff(tdbg, tmp_path, a, b, status=1))
    assert pairs == expected(holds)
    assert diverged == {f"blk.1.attn_{part}.{kind}" for part in "kv" for kind in ("weight", "bias")}


def test_tied_embeddings_are_one_tensor_with_two_names(tdbg, tmp_path):
    a, _ = as_stored(model(), hugging_face)
    a["lm_head.weight"] = a["model.embed_tokens.weight"]
    b, _ = as_stored(model(), invented)
    answer = diff(tdbg, tmp_path, a, b, status=0)
    names = [[key_of(n) for n in p["aliases"]["a"]] for p in answer["pairs"] if p["aliases"]["a"]]
    assert [sorted(n) for n in names] == [["lm_head.weight", "model.embed_tokens.weight"]]
    assert answer["summary"]["coverage"] == {"a": 1, "b": 1}


# --- other weights -------------------------------------------------------------------------------------------------

SENTENCE = "the same architecture, other weights"


def trained(tensors, seed=9):
    rng = np.random.default_rng(seed)
    return {n: (x + 0.3 * x.std() * rng.standard_normal(x.shape)).astype(np.float32) for n, x in tensors.items()}


@pytest.mark.parametrize("style", ["same", "invented", "invented, fused", "flax", "timm"])
def test_a_model_trained_further(tdbg, tmp_path, style):
    a, _ = as_stored(model(), hugging_face)
    b, holds = as_stored(trained(model()), **STYLES.get(style, dict(name=hugging_face)))
    answer = diff(tdbg, tmp_path, a, b, status=1)
    assert held(answer)[0] == expected(holds)
    assert [n for n in answer["notes"] if SENTENCE in n and "trained further" in n]
    text = " ".join(tdbg.text("diff", "-q", tmp_path / "a.safetensors", tmp_path / "b.safetensors", status=1).split())
    assert text.startswith("The same architecture, other weights") and "None stands out" in text


def test_a_mistake_besides_the_training_is_named(tdbg, tmp_path):
    a, _ = as_stored(model(), hugging_face)
    b = trained(a)
    wrong = "model.layers.2.mlp.fc1.weight"
    b[wrong] = b[wrong][::-1].copy()
    notes = diff(tdbg, tmp_path, a, b, status=1)["notes"]
    assert [n for n in notes if SENTENCE in n] and [n for n in notes if n.startswith(f"{wrong} correlates far less")]


def test_trained_from_another_start(tdbg, tmp_path):
    a, b = (as_stored(model(seed), hugging_face)[0] for seed in (0, 1))
    notes = diff(tdbg, tmp_path, a, b, status=1)["notes"]
    assert [n for n in notes if SENTENCE in n and "nothing in common" in n]


@pytest.mark.parametrize("mistake", ["factor", "some", "activations"])
def test_what_is_no_training(tdbg, tmp_path, mistake):
    a, _ = as_stored(model(), hugging_face)
    b = dict(a)
    if mistake == "factor":
        b = {n: x * np.float32(1.5) for n, x in a.items()}
    elif mistake == "some":
        b.update({n: x for n, x in trained(a).items() if "mlp" in n})
    else:
        rng = np.random.default_rng(4)
        a = {f"{n // 4}_{s}": rng.standard_normal((40, 32)).astype(np.float32)
             for n in range(12) for s in ("query", "key", "value")}  # fmt: skip
        b = trained(a)
    assert not [n for n in diff(tdbg, tmp_path, a, b, status=1)["notes"] if SENTENCE in n]
