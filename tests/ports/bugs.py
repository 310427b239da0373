"""The mistakes: each changes a copy of a Port as someone who wrote the port could have.

A bug is (what the port must have, change, span, accept): `change(layer's switches, layer's weights, port, i)` is called
for one layer drawn by chance or for all; `top(port)` changes what is outside of the layers. A bug that a port cannot
have (no softcap, no bias) says so by returning False. `accept` are the kinds of diagnosis that name it.
"""
import numpy as np

import engine


def without(*names):
    def change(spec, w, port, i):
        return all([w.pop(n, None) is not None for n in names])
    return change


def switch(name, value, fits=lambda spec: True):
    def change(spec, w, port, i):
        if not fits(spec):
            return False
        new = value(spec) if callable(value) else value
        if getattr(spec, name) == new:
            return False
        setattr(spec, name, new)
        return True
    return change


def swapped(a, b):
    def change(spec, w, port, i):
        if a + ".w" not in w or b + ".w" not in w or w[a + ".w"].shape != w[b + ".w"].shape:
            return False
        for kind in (".w", ".b"):
            if a + kind in w:
                w[a + kind], w[b + kind] = w[b + kind], w[a + kind]
        return True
    return change


def transposed(name):
    def change(spec, w, port, i):
        m = w.get(name + ".w")
        if m is None or m.shape[0] != m.shape[1]:
            return False
        w[name + ".w"] = np.ascontiguousarray(m.T)
        return True
    return change


def stale(spec, w, port, i):
    """Layer i runs with a weight of the one before."""
    names = [n for n in ("o.w", "down.w") if n in w]
    if i == 0 or not names:
        return False
    w[names[-1]] = port.weights[i - 1][names[-1]]
    return True


def head_zeroed(spec, w, port, i):
    spec.head_gain = spec.head_gain.copy()
    spec.head_gain[1] = 0
    return True


def wrong_alibi(spec, w, port, i):
    if spec.alibi is None:
        return False
    spec.alibi = 2.0 ** (-4 * (np.arange(spec.heads) + 1) / spec.heads)
    return True


def top_switch(name, value):
    def change(port):
        if getattr(port.top, name) == value:
            return False
        setattr(port.top, name, value)
        return True
    return change


OTHER_ACT = {"silu": "gelu", "gelu": "silu", "gelu_tanh": "quick_gelu", "relu": "silu"}
rotary = lambda s: s.rope_theta is not None

LAYER_BUGS = {
    "attn_scale_missing": (switch("attn_scale", 1.0), ["attn_scale"]),
    "attn_scale_wrong": (switch("attn_scale", lambda s: 1 / s.head_dim), ["attn_scale"]),
    "attn_softcap_missing": (switch("attn_softcap", None), ["softcap"]),
    "activation": (switch("act", lambda s: OTHER_ACT[s.act]), ["activation"]),
    "norm_eps": (switch("eps", 0.05), ["norm"]),
    "norm_plus_one_missing": (switch("norm_plus", 0.0), ["norm", "channel_scale"]),
    "rms_for_layer_norm": (switch("norm", "rms", lambda s: s.norm == "layer"), ["norm"]),
    "layer_for_rms_norm": (switch("norm", "layer", lambda s: s.norm == "rms"), ["norm"]),
    "q_bias_missing": (without("q.b"), ["bias"]),
    "v_bias_missing": (without("v.b"), ["bias"]),
    "o_bias_missing": (without("o.b"), ["bias"]),
    "mlp_bias_missing": (without("down.b"), ["bias"]),
    "rope_theta": (switch("rope_theta", 500.0, rotary), ["rope"]),
    "rope_interleaved": (switch("rope_style", "interleaved", rotary), ["rope"]),
    "rope_offset": (switch("rope_offset", 1, rotary), ["rope"]),
    "rope_dim": (switch("rope_dim", lambda s: s.rope_dim // 2, rotary), ["rope"]),
    "gqa_tiled": (switch("kv_tiled", True, lambda s: 1 < s.kv_heads < s.heads), ["permutation"]),
    "mask_ahead": (switch("mask_ahead", 1, lambda s: s.causal), ["mask"]),
    "mask_none": (switch("causal", False, lambda s: s.causal), ["mask"]),
    "window_missing": (switch("window", None), ["mask"]),
    "o_transposed": (transposed("o"), ["transpose", "operator"]),
    "gate_up_swapped": (switch("swap_gate_up", True, lambda s: s.gated), ["swap"]),
    "gate_up_weights": (swapped("gate", "up"), ["swap"]),
    "kv_weights": (swapped("k", "v"), ["swap"]),
    "attn_residual_dropped": (switch("keep_attn", 0.0, lambda s: not s.parallel), ["combination"]),
    "mlp_residual_doubled": (switch("keep_mlp", 2.0, lambda s: not s.parallel), ["combination"]),
    "stale_weight": (stale, []),
    "renorm_missing": (switch("renorm", False, lambda s: s.experts), ["router"]),
    "softmax_axis": (switch("softmax_axis", -2), []),
    "alibi_slopes": (wrong_alibi, ["alibi"]),
    "head_zeroed": (head_zeroed, ["zeroed", "partial"]),
    "last_token_masked": (switch("mask_drops_last", True, lambda s: not s.causal), ["mask"]),
}
TOP_BUGS = {
    "embed_scale_missing": (top_switch("embed_scale", 1.0), ["scale"]),
    "position_offset": (lambda port: "positions" in port.outer and top_switch("position_offset", 1)(port), ["shift"]),
    "final_norm_missing": (top_switch("final_norm", False), ["norm"]),
    "logit_softcap_missing": (top_switch("logit_softcap", None), ["softcap"]),
    "logit_scale_missing": (top_switch("logit_scale", 1.0), ["scale"]),
}


def plant(port, kind, layer=None):
    """A copy of `port` with the mistake `kind` in one layer (or all: None), or None where it has no place."""
    port = port.copy()
    if kind in TOP_BUGS:
        return port if TOP_BUGS[kind][0](port) else None
    change = LAYER_BUGS[kind][0]
    at = range(len(port.specs)) if layer is None else [layer]
    return port if any([change(port.specs[i], port.weights[i], port, i) for i in at]) else None


def accepted(kind):
    return {**LAYER_BUGS, **TOP_BUGS}[kind][1]
