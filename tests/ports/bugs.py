"""The mistakes: each changes a copy of a Port as someone who wrote the port could have.

A bug is (what the port must have, change, span, accept): `change(layer's switches, layer's weights, port, i)` is called
for one layer drawn by chance or for all; `top(port)` changes what is outside of the layers. A bug that a port cannot
have (no softcap, no bias) says so by returning False. `accept` are the kinds of diagnosis that name it.
"""
import numpy as np


def without(*names):
    def change(spec, w, port, i):
        return all([w.pop(n, None) is not None for n in names])
    return change


def switch(name, value, fits=lambda spec: True):
    def change(spec, w, port, i):
        if not fits(spec):
            return False
        new = value(spec) if callable(value) else value
        if getattr(spec, name) is None and new is None or np.array_equal(getattr(spec, name), new):
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


def heads_rolled(spec, w, port, i):
    """o reads the heads in another order."""
    x = w["o.w"]
    w["o.w"] = np.ascontiguousarray(np.roll(x.reshape(len(x), spec.heads, -1), 1, 1)).reshape(x.shape)
    return True


def wrong_split(spec, w, port, i):
    """A fused qkv cut head by head where it holds blocks, or the other way round."""
    if not port.qkv or spec.heads != spec.kv_heads:
        return False
    for kind in (".w", ".b"):
        if "q" + kind in w:
            x = np.stack([w[n + kind].reshape(spec.heads, spec.head_dim, -1) for n in "qkv"])
            shape = w["q" + kind].shape
            if port.qkv == "blocks":  # read as if by head
                x = x.reshape(spec.heads, 3, *x.shape[2:]).swapaxes(0, 1)
            else:
                x = x.swapaxes(0, 1).reshape(3, spec.heads, *x.shape[2:])
            for n, part in zip("qkv", x):
                w[n + kind] = np.ascontiguousarray(part).reshape(shape)
    return True


def same_norm(spec, w, port, i):
    """The norm before the MLP has the weights of the one before attention."""
    if "norm1.w" not in w or "norm2.w" not in w or spec.norms == "sums":
        return False
    for kind in (".w", ".b"):
        if "norm1" + kind in w:
            w["norm2" + kind] = w["norm1" + kind]
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
OTHER_GELU = {"gelu": "gelu_tanh", "gelu_tanh": "gelu"}
OTHER_ROPE = {"half": "interleaved", "interleaved": "half"}


def rotary(spec):
    return spec.rope_theta is not None


def plain_mlp(spec):
    return not spec.experts


def in_order(spec):
    return not spec.parallel


LAYER_BUGS = {
    "attn_scale_missing": (switch("attn_scale", 1.0), ["attn_scale"]),
    "attn_scale_wrong": (switch("attn_scale", lambda s: 1 / s.head_dim), ["attn_scale"]),
    "attn_softcap_missing": (switch("attn_softcap", None), ["softcap"]),
    "activation": (switch("act", lambda s: OTHER_ACT[s.act]), ["activation", "elementwise"]),
    "gelu_kind": (switch("act", lambda s: OTHER_GELU[s.act], lambda s: s.act in OTHER_GELU), ["activation"]),
    "norm_eps": (switch("eps", 0.05), ["norm", "channel_scale"]),
    "norm_plus_one_missing": (switch("norm_plus", 0.0), ["norm", "channel_scale"]),
    "rms_for_layer_norm": (switch("norm", "rms", lambda s: s.norm == "layer"), ["norm", "bias"]),
    "layer_for_rms_norm": (switch("norm", "layer", lambda s: s.norm == "rms"), ["norm", "bias"]),
    "norm_weight_wrong": (same_norm, ["channel_scale", "norm"]),
    "norm2_too_early": (switch("norm2_early", True, lambda s: in_order(s) and s.norms in ("pre", "sandwich")), []),
    "residual_of_norm": (switch("residual_normed", True, lambda s: in_order(s) and s.norms == "pre"), ["combination"]),
    "q_norm_skipped": (switch("qk_norm", "skipped", lambda s: s.qk_norm), ["norm", "channel_scale"]),
    "q_bias_missing": (without("q.b"), ["bias"]),
    "v_bias_missing": (without("v.b"), ["bias"]),
    "o_bias_missing": (without("o.b"), ["bias"]),
    "mlp_bias_missing": (without("down.b"), ["bias"]),
    "rope_theta": (switch("rope_theta", 500.0, rotary), ["rope"]),
    "rope_pairing": (switch("rope_style", lambda s: OTHER_ROPE[s.rope_style], rotary), ["rope"]),
    "rope_offset": (switch("rope_offset", 1, rotary), ["rope"]),
    "rope_dim": (switch("rope_dim", lambda s: s.rope_dim // 2, rotary), ["rope"]),
    "rope_keys_missing": (switch("rope_keys", False, rotary), ["rope"]),
    "gqa_tiled": (switch("kv_tiled", True, lambda s: 1 < s.kv_heads < s.heads), ["permutation"]),
    "mask_ahead": (switch("mask_ahead", 1, lambda s: s.causal), ["mask"]),
    "mask_none": (switch("causal", False, lambda s: s.causal), ["mask"]),
    "mask_causal": (switch("causal", True, lambda s: not s.causal), ["mask"]),
    "window_missing": (switch("window", None), ["mask"]),
    "window_off_by_one": (switch("window", lambda s: s.window + 1, lambda s: s.window), ["mask"]),
    "last_token_masked": (switch("mask_drops_last", True, lambda s: not s.causal), ["mask"]),
    "o_transposed": (transposed("o"), ["transpose", "operator"]),
    "gate_up_swapped": (switch("swap_gate_up", True, lambda s: s.gated and plain_mlp(s)), ["swap", "activation"]),
    "gate_up_weights": (swapped("gate", "up"), ["swap"]),
    "qk_weights": (swapped("q", "k"), ["swap"]),
    "kv_weights": (swapped("k", "v"), ["swap"]),
    "qkv_split": (wrong_split, ["permutation", "swap"]),
    "heads_rolled": (heads_rolled, ["permutation"]),
    "head_zeroed": (head_zeroed, ["zeroed", "partial"]),
    "dropout_on": (switch("dropout", 0.1, lambda s: s.gated and plain_mlp(s)), ["zeroed", "partial"]),
    "attn_residual_dropped": (switch("keep_attn", 0.0, in_order), ["combination"]),
    "mlp_residual_doubled": (switch("keep_mlp", 2.0, in_order), ["combination"]),
    "branch_scale_missing": (switch("branch", 1.0), ["combination"]),
    "stale_weight": (stale, ["stale"]),
    "renorm_missing": (switch("renorm", False, lambda s: s.experts), ["router", "channel_scale"]),
    "router_sigmoid": (switch("router_gate", "sigmoid", lambda s: s.experts), ["router"]),
    "router_axis": (switch("router_axis", -2, lambda s: s.experts), ["router"]),
    "experts_swapped": (swapped("expert0.down", "expert1.down"), ["partial", "permutation"]),
    "softmax_axis": (switch("softmax_axis", -2), []),
    "alibi_slopes": (wrong_alibi, ["alibi"]),
    "alibi_missing": (switch("alibi", None), ["alibi"]),
}


def tied_head(port):
    """The logits by the table of embeddings where the head has weights of its own."""
    head, embed = port.outer.get("head.w"), port.outer["embed"]
    if head is None or head.shape != embed.shape or np.array_equal(head, embed):
        return False
    port.outer["head.w"] = embed
    return True


TOP_BUGS = {
    "embed_scale_missing": (top_switch("embed_scale", 1.0), ["scale"]),
    "position_offset": (lambda port: "positions" in port.outer and not port.top.pooled and
                        top_switch("position_offset", 1)(port), ["shift"]),
    "token_type_wrong": (lambda port: "types" in port.outer and top_switch("token_type", 1)(port), ["bias"]),
    "final_norm_missing": (lambda port: "final_norm.w" in port.outer and top_switch("final_norm", False)(port), ["norm"]),
    "logit_softcap_missing": (top_switch("logit_softcap", None), ["softcap"]),
    "logit_scale_missing": (top_switch("logit_scale", 1.0), ["scale"]),
    "head_tied": (tied_head, ["untied"]),
}
KINDS = [*LAYER_BUGS, *TOP_BUGS]
# B's tensor has the values of another one of A: only its name says which it is.
ONLY_BY_NAME = {"qk_weights", "kv_weights", "gate_up_weights", "q_norm_skipped", "final_norm_missing", "embed_scale_missing",
                "logit_softcap_missing", "logit_scale_missing"}


def plant(port, kind, layer=None):
    """A copy of `port` with the mistake `kind` in one layer (or all: None), or None where it has no place."""
    port = port.copy()
    if kind in TOP_BUGS:
        return port if TOP_BUGS[kind][0](port) else None
    change = LAYER_BUGS[kind][0]
    at = reversed(range(len(port.specs))) if layer is None else [layer]  # backwards: a stale weight is the right one before
    return port if any([change(port.specs[i], port.weights[i], port, i) for i in at]) else None


def accepted(kind):
    """Kinds of diagnosis that name the mistake; also ones that tdbg may learn yet."""
    return {**LAYER_BUGS, **TOP_BUGS}[kind][1]
