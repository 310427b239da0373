"""Port: the switches and weights that make engine.Model one architecture, and how they are read from transformers'.

A Port is plain data, so that bugs.py can copy it and change one switch or weight. `qkv` and `gate_up` say in which
order transformers' fused tensors hold their parts (None: they are not fused), for generate.py to know them again.
"""
import copy
import types

import numpy as np

import engine

LAYER = dict(heads=4, kv_heads=4, head_dim=16, norm="rms", eps=1e-6, norm_plus=0.0, norms="pre", parallel=None,
             qk_norm=None, rope_theta=10000.0, rope_dim=16, rope_style="half", rope_offset=0, rope_low=False,
             rope_keys=True, attn_scale=0.25, attn_softcap=None, alibi=None, causal=True, mask_ahead=0,
             mask_drops_last=False, window=None, kv_tiled=False, softmax_axis=-1, gated=True, act="silu",
             swap_gate_up=False, dropout=0.0, experts=0, top_k=2, renorm=True, router_gate="softmax", router_axis=-1,
             keep_attn=1.0, keep_mlp=1.0, branch=1.0, residual_normed=False, norm2_early=False)
TOP = dict(norm="rms", eps=1e-6, norm_plus=0.0, embed_scale=1.0, position_offset=0, token_type=0, final_norm=True,
           pooled=False, logit_scale=1.0, logit_softcap=None)


class Port:
    def __init__(self, layers, **switches):
        unknown = set(switches) - set(LAYER) - set(TOP)
        assert not unknown, unknown
        spec = {**LAYER, **{k: v for k, v in switches.items() if k in LAYER}}
        spec["head_gain"] = np.ones(spec["heads"], np.float32)
        self.specs = [types.SimpleNamespace(**copy.deepcopy(spec)) for _ in range(layers)]
        self.top = types.SimpleNamespace(**{**TOP, **{k: v for k, v in switches.items() if k in TOP}})
        self.top.scaled_embed = self.top.embed_scale != 1
        self.top.scaled_logits = self.top.logit_scale != 1 or self.top.logit_softcap is not None
        self.weights = [{} for _ in range(layers)]
        self.outer = {}
        self.qkv = self.gate_up = None

    def copy(self):
        return copy.deepcopy(self)

    def run(self, tokens, low_precision=False):
        return engine.Model(self.specs, self.weights, self.top, self.outer, low_precision).run(tokens)


def state(model):
    return {k: v.detach().float().numpy() for k, v in model.state_dict().items()}


def linears(into, weights, prefix, names, transposed=False):
    """Copies `prefix + theirs`.weight and .bias to `ours`.w and .b."""
    for ours, theirs in names.items():
        w = weights[prefix + theirs + ".weight"]
        into[ours + ".w"] = np.ascontiguousarray(w.T) if transposed else w
        if prefix + theirs + ".bias" in weights:
            into[ours + ".b"] = weights[prefix + theirs + ".bias"]


def cut(into, name, sizes):
    """Splits the rows of a fused weight and bias into parts one after another: {"q": n, "k": n, …}."""
    start = 0
    for part, size in sizes.items():
        for kind in ("w", "b"):
            if f"{name}.{kind}" in into:
                into[f"{part}.{kind}"] = into[f"{name}.{kind}"][start:start + size]
        start += size
    into.pop(name + ".w"), into.pop(name + ".b", None)


def cut_groups(into, name, spec):
    """Splits a fused weight and bias whose rows are, group by group, the q of a group, its k, its v."""
    group = spec.heads // spec.kv_heads
    for kind in ("w", "b"):
        x = into.pop(f"{name}.{kind}", None)
        if x is not None:
            x = x.reshape(spec.kv_heads, group + 2, spec.head_dim, *x.shape[1:])
            for part, rows in (("q", slice(0, group)), ("k", slice(group, group + 1)), ("v", slice(group + 1, None))):
                into[f"{part}.{kind}"] = np.ascontiguousarray(x[:, rows]).reshape(-1, *x.shape[3:])


def fused(parts, order, spec):
    """q, k and v [batch, tokens, heads, size] as one fused tensor: `blocks` or `groups` (a head each without groups)."""
    batch, tokens = parts[0].shape[:2]
    if order == "groups":
        grouped = [p.reshape(batch, tokens, spec.kv_heads, -1, spec.head_dim) for p in parts]
        return np.concatenate(grouped, 3).reshape(batch, tokens, -1)
    return np.concatenate([p.reshape(batch, tokens, -1) for p in parts], -1)
