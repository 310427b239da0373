"""A transformer in numpy: what side B of every case computes.

One block with switches covers the architectures of archs.py, which say which switches they need and under which names
transformers keeps the weights. Nothing here is taken from transformers: generate.py holds every port to 1e-4 of it.

Each value that someone might dump is handed to `put(stage, layer, value)` as it is computed, always in one layout:
tokens as [batch, tokens, channels], heads as [batch, tokens, heads, size], maps of attention as
[batch, heads, tokens, tokens]. styles.py makes other layouts and names of that.

`spec` is a namespace for each layer (and `top` one for what is outside of the layers), so that bugs.py can plant a
mistake in one layer by changing a switch or a weight there.
"""
import math

import numpy as np


def to_bf16(x):
    """x rounded to bfloat16 (to the nearest, ties to even), as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def erf(x):
    """Error function to 1e-7 and better: a series near 0, a continued fraction beyond."""
    x = np.asarray(x, np.float64)
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


ACTIVATIONS = {
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: (0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(x.dtype),
    "gelu_tanh": gelu_tanh,
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "relu": lambda x: np.maximum(x, 0),
    "none": lambda x: x,
}


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def softcap(x, cap):
    return cap * np.tanh(x / cap) if cap else x


def normalised(x, kind, eps, axis=-1):
    """x without weight and bias of its norm."""
    if kind == "layer":
        x = x - x.mean(axis, keepdims=True)
    return x / np.sqrt((x * x).mean(axis, keepdims=True) + eps)


def rope(x, spec, positions):
    """Rotary embedding of [batch, tokens, heads, size]; only the first `rope_dim` channels of a head turn."""
    n = spec.rope_dim
    inverse = spec.rope_theta ** (-np.arange(0, n, 2) / n)
    angle = positions[:, None] * inverse
    cos, sin = (f(angle)[None, :, None, :].astype(x.dtype) for f in (np.cos, np.sin))
    if spec.rope_low:
        cos, sin = to_bf16(cos), to_bf16(sin)
    turned, rest = x[..., :n], x[..., n:]
    if spec.rope_style == "interleaved":
        a, b = turned[..., 0::2], turned[..., 1::2]
        turned = np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(turned.shape)
    else:
        a, b = turned[..., :n // 2], turned[..., n // 2:]
        turned = np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
    return np.concatenate([turned, rest], -1)


def alibi_slopes(heads):
    """2^(-8/n), its square … for a power of two; else those, and every second of the next power of two."""
    base = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / base) for i in range(base)]
    slopes += [2 ** (-4 * (2 * i + 1) / base) for i in range(heads - base)]
    return np.array(slopes)


def seen(spec, tokens):
    """[query, key]: which keys a query sees."""
    ahead = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]
    mask = np.ones((tokens, tokens), bool) if not spec.causal else ahead <= spec.mask_ahead
    if spec.window:
        mask &= ahead > -spec.window
    if spec.mask_drops_last:
        mask[:, -1] = tokens == 1
        mask[-1, -1] = True
    return mask


class Model:
    """`specs`: one namespace for each layer; `weights`: one dict for each layer; `top`, `outer`: the rest."""

    def __init__(self, specs, weights, top, outer, low_precision=False):
        self.specs, self.weights, self.top, self.outer = specs, weights, top, outer
        self.round = to_bf16 if low_precision else lambda x: np.asarray(x, np.float32)
        self.stages = {}

    def put(self, stage, layer, value):
        value = self.round(value)
        self.stages[stage, layer] = value
        return value

    def linear(self, x, w, name):
        y = x @ w[name + ".w"].T
        bias = w.get(name + ".b")
        return y if bias is None else self.round(y) + bias if self.round is to_bf16 else y + bias

    def norm(self, x, w, name, spec, kind=None, put=None):
        """`put` is (stage, layer): the value before weight and bias is dumped as stage + `_hat`."""
        y = normalised(x, kind or spec.norm, spec.eps)
        if put:
            self.put(put[0] + "_hat", put[1], y)
        y = y * (w[name + ".w"] + spec.norm_plus)
        if name + ".b" in w:
            y = y + w[name + ".b"]
        return self.put(*put, y) if put else self.round(y)

    def attention(self, h, w, spec, layer):
        batch, tokens, _ = h.shape
        heads, kv, size = spec.heads, spec.kv_heads, spec.head_dim
        q, k, v = (self.linear(h, w, name) for name in "qkv")
        if spec.qk_norm == "whole":  # over all heads at once
            self.put("q", layer, q.reshape(batch, tokens, heads, size))
            self.put("k", layer, k.reshape(batch, tokens, kv, size))
            q, k = self.norm(q, w, "q_norm", spec), self.norm(k, w, "k_norm", spec)
        q, k, v = (x.reshape(batch, tokens, -1, size) for x in (q, k, v))
        if spec.qk_norm != "whole":
            q, k = self.put("q", layer, q), self.put("k", layer, k)
        v = self.put("v", layer, v)
        if spec.qk_norm == "head":
            q, k = self.norm(q, w, "q_norm", spec), self.norm(k, w, "k_norm", spec)
        if spec.qk_norm:  # also where it is "skipped"
            q, k = self.put("q_normed", layer, q), self.put("k_normed", layer, k)
        if spec.rope_theta:
            positions = np.arange(tokens) + 0.0
            q = self.put("q_rope", layer, rope(q, spec, positions + spec.rope_offset))
            k = self.put("k_rope", layer, rope(k, spec, positions) if spec.rope_keys else k)
        group = heads // kv
        spread = (lambda x: np.tile(x, (1, 1, group, 1))) if spec.kv_tiled else (lambda x: np.repeat(x, group, 2))
        scores = np.einsum("bthd,bshd->bhts", q, spread(k))
        self.put("scores_raw", layer, scores)
        scores = softcap(self.round(scores * spec.attn_scale), spec.attn_softcap)
        if spec.alibi is not None:
            scores = scores + spec.alibi[:, None, None] * np.arange(tokens)
        scores = np.where(seen(spec, tokens), scores, -1e30).astype(np.float32)
        self.put("scores", layer, scores)
        probs = self.put("probs", layer, softmax(scores, spec.softmax_axis))
        context = np.einsum("bhts,bshd->bthd", probs, spread(v)) * spec.head_gain[:, None]
        context = self.put("context", layer, context.reshape(batch, tokens, -1))
        return self.put("o", layer, self.linear(context, w, "o"))

    def gated(self, h, w, spec, names, layer=None):
        put = (lambda stage, x: self.put(stage, layer, x)) if layer is not None else (lambda stage, x: self.round(x))
        up = put("up", self.linear(h, w, names["up"]))
        if not spec.gated:
            return put("down", self.linear(put("act", ACTIVATIONS[spec.act](up)), w, names["down"]))
        gate = put("gate", self.linear(h, w, names["gate"]))
        if spec.swap_gate_up:
            gate, up = up, gate
        act = put("act", ACTIVATIONS[spec.act](gate))
        product = act * up
        if spec.dropout:
            kept = np.random.default_rng(5).random(product.shape) >= spec.dropout
            product = product * kept / (1 - spec.dropout)
        return put("down", self.linear(put("product", product), w, names["down"]))

    def experts(self, h, w, spec, layer):
        """Mixture: softmax over all experts, the best k, renormalised."""
        logits = self.put("router", layer, self.linear(h, w, "router"))
        p = softmax(logits, spec.router_axis) if spec.router_gate == "softmax" else sigmoid(logits)
        best = np.argsort(-p, -1, kind="stable")[..., :spec.top_k]
        chosen = np.take_along_axis(p, best, -1)
        if spec.renorm:
            chosen = chosen / chosen.sum(-1, keepdims=True)
        self.put("router_weights", layer, chosen)
        out = np.zeros_like(h)
        for e in range(spec.experts):
            share = (chosen * (best == e)).sum(-1, keepdims=True)
            names = {part: f"expert{e}.{part}" for part in ("gate", "up", "down")}
            out = out + self.gated(h, w, spec, names) * share
        return self.put("down", layer, out)

    def mlp(self, h, w, spec, layer):
        if spec.experts:
            return self.experts(h, w, spec, layer)
        return self.gated(h, w, spec, {part: part for part in ("gate", "up", "down")}, layer)

    def block(self, x, layer):
        """One layer. `norms` says where they are: pre, sandwich, post (of the branches) or sums (behind the sums)."""
        spec, w = self.specs[layer], self.weights[layer]
        self.put("stream_in", layer, x)
        before, behind = spec.norms in ("pre", "sandwich"), spec.norms in ("sandwich", "post")
        h = self.norm(x, w, "norm1", spec, put=("norm1", layer)) if before else x
        o = self.attention(h, w, spec, layer)
        if behind:
            o = self.norm(o, w, "attn_post", spec, put=("attn_post", layer))
        if spec.parallel:
            h = self.norm(x, w, "norm2", spec, put=("norm2", layer)) if spec.parallel == "two norms" else h
            return self.put("stream_out", layer, x + self.round(o + self.mlp(h, w, spec, layer)))
        start, x = x, spec.keep_attn * (h if spec.residual_normed else x)
        x = self.put("stream_mid", layer, x + spec.branch * o)
        if spec.norms == "sums":
            x = self.norm(x, w, "norm1", spec, put=("sum1", layer))
        h = self.norm(start if spec.norm2_early else x, w, "norm2", spec, put=("norm2", layer)) if before else x
        m = self.mlp(h, w, spec, layer)
        if behind:
            m = self.norm(m, w, "mlp_post", spec, put=("mlp_post", layer))
        x = self.put("stream_out", layer, spec.keep_mlp * x + spec.branch * m)
        return self.norm(x, w, "norm2", spec, put=("sum2", layer)) if spec.norms == "sums" else x

    def looked_up(self, tokens):
        """Rows of the table of embeddings; for images (real numbers) the patches times the kernel."""
        kernel = self.outer["embed"]
        if tokens.ndim == 2:
            self.put_integers("tokens", tokens)
            return self.put("embed", None, kernel[tokens])
        batch, colours, high, wide = tokens.shape
        p = kernel.shape[-1]
        patches = tokens.reshape(batch, colours, high // p, p, wide // p, p).transpose(0, 2, 4, 1, 3, 5)
        x = patches.reshape(batch, -1, colours * p * p) @ kernel.reshape(len(kernel), -1).T + self.outer["embed.b"]
        x = self.put("embed", None, x)
        return np.concatenate([np.broadcast_to(self.outer["cls"], (batch, 1, x.shape[-1])), x], 1)

    def put_integers(self, stage, value):
        self.stages[stage, None] = value

    def embedded(self, tokens):
        """The stream before layer 0."""
        top, w = self.top, self.outer
        x = self.looked_up(tokens)
        if top.scaled_embed:
            x = self.put("embed_scaled", None, x * top.embed_scale)
        if "types" in w:
            x = x + self.put("types", None, np.broadcast_to(w["types"][top.token_type], x.shape))
        if "positions" in w:
            at = np.arange(x.shape[1]) + top.position_offset
            x = x + self.put("position", None, np.broadcast_to(w["positions"][at], x.shape))
        if "embed_norm.w" in w:
            x = self.norm(self.put("embed_sum", None, x), w, "embed_norm", top)
        return self.put("stream0", None, x)

    def run(self, tokens):
        """All stages, in the order in which they were computed."""
        top, w = self.top, self.outer
        with np.errstate(over="ignore"):
            x = self.embedded(tokens)
            for layer in range(len(self.specs)):
                x = self.block(x, layer)
            if "final_norm.w" in w:
                x = self.norm(x, w, "final_norm", top, put=("final_norm", None)) if top.final_norm else \
                    self.put("final_norm", None, x)
            if "head.w" in w:
                x = self.put("head", None, self.linear(x[:, 0] if top.pooled else x, w, "head"))
            if top.scaled_logits:
                self.put("logits", None, softcap(x * top.logit_scale, top.logit_softcap))
        return self.stages
