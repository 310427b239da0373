"""A small decoder in numpy that dumps what it computes, as the reference and as a port of it with other layouts and mistakes.

`fuse` says how the columns of the fused projection lie: "block" (GPT-2: q | k | v), "head" (GPT-NeoX, Bloom: q k v of each
head), "group" (Falcon, Megatron: the queries of a group, its key, its value). A port may split them in another way, which
is a mistake of every layer."""
import numpy as np


class Config:
    def __init__(self, heads=4, groups=4, size=16, tokens=12, layers=3, fuse="block", rotary=None, causal=True, hidden=None):
        self.heads, self.groups, self.size, self.tokens, self.layers = heads, groups, size, tokens, layers
        self.fuse, self.causal, self.hidden = fuse, causal, hidden or heads * size
        self.rotary = size if rotary is None else rotary  # how many channels of each head are turned


def weights(c, seed=0):
    rng = np.random.default_rng(seed)

    def matrix(rows, columns):
        return rng.standard_normal((rows, columns)) / np.sqrt(rows)

    width = (c.heads + 2 * c.groups) * c.size
    blocks = [{"qkv": matrix(c.hidden, width), "qkv_bias": 0.3 * rng.standard_normal(width),
               "o": matrix(c.heads * c.size, c.hidden), "gate_up": matrix(c.hidden, 4 * c.hidden),
               "down": matrix(2 * c.hidden, c.hidden)} for _ in range(c.layers)]  # fmt: skip
    return {"embedding": rng.standard_normal((c.tokens, c.hidden)), "blocks": blocks}


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def split(x, c, how):
    """The columns of the fused projection as q [T, H, d], k and v [T, G, d]."""
    t, per = len(x), c.heads // c.groups
    if how == "block":
        q, k, v = np.split(x, [c.heads * c.size, (c.heads + c.groups) * c.size], 1)
        return q.reshape(t, c.heads, c.size), k.reshape(t, c.groups, c.size), v.reshape(t, c.groups, c.size)
    x = x.reshape(t, c.groups, per + 2, c.size)
    return x[:, :, :per].reshape(t, c.heads, c.size), x[:, :, per], x[:, :, per + 1]


def interleave(x, n=None):
    """Channels of each head, halves first, as pairs that stand side by side; the first n of them."""
    n = n or x.shape[-1]
    turned = x[..., :n].reshape(*x.shape[:-1], 2, n // 2).swapaxes(-1, -2).reshape(*x.shape[:-1], n)
    return np.concatenate((turned, x[..., n:]), -1)


def rope(x, n, pairs=False, theta=10000.0):
    t = np.arange(len(x))[:, None] * theta ** (-np.arange(0, n, 2) / n)
    cos, sin = np.cos(t)[:, None].astype(x.dtype), np.sin(t)[:, None].astype(x.dtype)
    out = x.copy()
    if pairs:
        a, b = x[..., 0:n:2], x[..., 1:n:2]
        out[..., 0:n:2], out[..., 1:n:2] = a * cos - b * sin, a * sin + b * cos
    else:
        a, b = x[..., : n // 2], x[..., n // 2 : n]
        out[..., : n // 2], out[..., n // 2 : n] = a * cos - b * sin, a * sin + b * cos
    return out


def run(c, w, dtype=np.float32, how=None, permuted=False, pairs=None, wrong=lambda layer: None):
    """All stages of all layers. `how`: how the fused projection is split; `permuted`: q and k are kept in pairs, as llama.cpp
    has them, and turned as `pairs` says; `wrong(layer)`: the mistake of that layer."""
    layers, stream = [], w["embedding"].astype(dtype)
    for layer, block in enumerate(w["blocks"]):
        b, bug = {name: x.astype(dtype) for name, x in block.items()}, wrong(layer)
        s = {"norm1": norm(stream)}
        s["qkv"] = s["norm1"] @ b["qkv"] + b["qkv_bias"]
        s["q"], s["k"], s["v"] = split(s["qkv"], c, how or c.fuse)
        n = c.rotary
        if permuted:
            s["q"], s["k"] = interleave(s["q"], n), interleave(s["k"], n)
        theta = 100.0 if bug == "theta" else 10000.0
        in_pairs = permuted if pairs is None else pairs
        s["q_rope"], s["k_rope"] = (rope(s[x], n, in_pairs, theta) for x in "qk")
        k, v = (np.repeat(x, c.heads // c.groups, 1) for x in (s["k_rope"], s["v"]))
        scores = np.einsum("thd,shd->hts", s["q_rope"], k) * dtype(1 if bug == "scale" else c.size**-0.5)
        if c.causal:
            scores = np.where(np.tri(c.tokens, dtype=bool), scores, dtype(-1e9))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        s["scores"] = scores / scores.sum(-1, keepdims=True)
        s["context"] = np.einsum("hts,shd->thd", s["scores"], v).reshape(c.tokens, -1)
        s["o"] = s["context"] @ b["o"]
        if bug == "o bias":
            s["o"] = s["o"] + dtype(0.2)
        stream = stream + s["o"]
        s["norm2"] = norm(stream)
        s["gate_up"] = s["norm2"] @ b["gate_up"]
        s["gate"], s["up"] = np.split(s["gate_up"], 2, 1)
        act = s["gate"] / (1 + np.exp(-s["gate"]))
        if bug == "act":
            act = np.maximum(s["gate"], 0)
        s["down"] = (act * s["up"]) @ b["down"]
        stream = stream + s["down"]
        s["out"] = stream
        layers.append(s)
    return layers
