"""Side B: the names and layouts under which ports dump.

A style is a function of the stages of engine.Model and gives (name, array, stages) in the order of a dump; `stages` are
the ones that the array holds: one, or the parts of a fused tensor. Names repeat where the engine in question repeats
them; write.py keeps the last or numbers them (`name#2`).
"""
import numpy as np


class Source:
    """What the styles read: the stages of one run, and small makers of layouts."""

    def __init__(self, stages, port):
        self.stages, self.port, self.layers = stages, port, len(port.specs)

    def has(self, stage, layer=None):
        return (stage, layer) in self.stages

    def get(self, stage, layer=None):
        return self.stages[stage, layer]


def flat(x):
    """[B,T,...] as [B*T, C]."""
    return x.reshape(x.shape[0] * x.shape[1], -1)


def one_batch(x):
    return x.reshape(*x.shape[:2], -1)


def heads(x):
    """[B,T,H,d] as [B*T,H,d]."""
    return x.reshape(-1, *x.shape[2:]) if x.ndim == 4 else flat(x)


def heads_first(x):
    """[B,T,H,d] as [H,T,d] (one batch) or [B,H,T,d]."""
    y = x.transpose(0, 2, 1, 3)
    return y[0] if len(y) == 1 else y


def as_is(x):
    return x


def sequence_first(x):
    return one_batch(x).transpose(1, 0, 2)


def listed(source, outer, layer, tail):
    """(name, array, stages) by tables of (stage or stages, name, layout); names hold {i}."""
    def one(entry, i):
        stages, name, layout = entry
        stages = stages if isinstance(stages, tuple) else (stages,)
        at = i if i is not None else None
        if all(source.has(s, at) for s in stages):
            parts = [layout(source.get(s, at)) for s in stages]
            value = parts[0] if len(parts) == 1 else np.concatenate(parts, -1)
            yield name.format(i=i, n=source.layers), value, [(s, at) for s in stages]
    for entry in outer:
        yield from one(entry, None)
    for i in range(source.layers):
        for entry in layer(i):
            yield from one(entry, i)
    for entry in tail:
        yield from one(entry, None)


def llama_cpp(s):
    """ggml's callback: Qcur comes three times; names end in the layer."""
    sandwich = s.has("mlp_post", 0)
    gated = s.has("gate", 0)
    act = "ffn_geglu-{i}" if s.port.specs[0].act.startswith("gelu") else "ffn_swiglu-{i}"

    def layer(i):
        return [("norm1_hat", "norm-{i}", flat), ("norm1", "attn_norm-{i}", flat),
                ("q", "Qcur-{i}", flat), ("q", "Qcur-{i}", heads), ("k", "Kcur-{i}", flat), ("k", "Kcur-{i}", heads),
                ("v", "Vcur-{i}", heads), ("q_normed", "Qcur_normed-{i}", heads), ("k_normed", "Kcur_normed-{i}", heads),
                ("q_rope", "Qcur-{i}", heads), ("k_rope", "Kcur-{i}", heads), ("scores_raw", "kq-{i}", lambda x: x[0]),
                ("probs", "kq_soft_max-{i}", lambda x: x[0]), ("context", "kqv_out-{i}", flat), ("o", "attn_out-{i}", flat),
                ("attn_post", "attn_post_norm-{i}", flat), ("stream_mid", "ffn_inp-{i}", flat),
                ("norm2", "ffn_norm-{i}", flat), ("gate", "ffn_gate-{i}", flat), ("up", "ffn_up-{i}", flat),
                *([("product", act, flat)] if gated else [("act", "ffn_gelu-{i}", flat)]),
                ("router", "ffn_moe_logits-{i}", flat), ("router_weights", "ffn_moe_weights_norm-{i}", flat),
                ("down", "ffn_moe_out-{i}" if s.has("router", 0) else "ffn_out-{i}", flat),
                *([("mlp_post", "ffn_post_norm", flat)] if sandwich else []), ("stream_out", "l_out-{i}", flat)]
    return listed(s, [("embed", "inp_embd", flat), ("embed_scaled", "inp_scaled", flat), ("position", "pos_embd", flat),
                      *([("stream0", "inpL", flat)] if s.has("position") else [])],
                  layer, [("final_norm", "result_norm", flat),
                          *([("logits", "result_output", flat)] if s.has("logits") else [("head", "result_output", flat)])])


def vllm(s):
    """vLLM's module paths: fused qkv and gate_up, the gated product as act_fn, (hidden, residual) tuples, [T, C]."""
    if not s.has("norm1", 0) or s.port.specs[0].parallel:
        return iter(())
    post = s.has("attn_post", 0)

    def layer(i):
        p = "model.layers.{i}."
        first = [("norm1", p + "input_layernorm", flat)] if i == 0 else \
            [("norm1", p + "input_layernorm.0", flat), ("stream_in", p + "input_layernorm.1", flat)]
        mlp = [(("gate", "up"), p + "mlp.gate_up_proj.0", flat), ("product", p + "mlp.act_fn", flat)] \
            if s.has("gate", 0) else [("up", p + "mlp.fc1.0", flat), ("act", p + "mlp.act", flat)]
        norm2 = "pre_feedforward_layernorm" if post else "post_attention_layernorm"
        return first + [
            (("q", "k", "v"), p + "self_attn.qkv_proj.0", flat), ("q_normed", p + "self_attn.q_norm", flat),
            ("k_normed", p + "self_attn.k_norm", flat), ("q_rope", p + "self_attn.rotary_emb.0", flat),
            ("k_rope", p + "self_attn.rotary_emb.1", flat), ("context", p + "self_attn.attn", flat),
            ("o", p + "self_attn.o_proj.0", flat), ("o", p + "self_attn", flat),
            ("attn_post", p + "post_attention_layernorm", flat), ("norm2", p + norm2 + ".0", flat),
            ("stream_mid", p + norm2 + ".1", flat), ("router", p + "mlp.gate.0", flat), *mlp,
            ("down", p + "mlp.down_proj.0", flat), ("down", p + "mlp", flat),
            ("mlp_post", p + "post_feedforward_layernorm", flat),
            ("mlp_post" if post else "down", p[:-1] + ".0", flat), ("stream_mid", p[:-1] + ".1", flat)]
    return listed(s, [("embed", "model.embed_tokens", flat)], layer,
                  [("final_norm", "model.norm.0", flat), ("final_norm", "model", flat),
                   ("logits" if s.has("logits") else "head", "logits_processor", flat)])


def transformer_lens(s):
    def layer(i):
        p = "blocks.{i}."
        return [("stream_in", p + "hook_resid_pre", as_is), ("norm1_hat", p + "ln1.hook_normalized", as_is),
                ("q", p + "attn.hook_q", as_is), ("k", p + "attn.hook_k", as_is), ("v", p + "attn.hook_v", as_is),
                ("q_rope", p + "attn.hook_rot_q", as_is), ("k_rope", p + "attn.hook_rot_k", as_is),
                ("scores", p + "attn.hook_attn_scores", as_is), ("probs", p + "attn.hook_pattern", as_is),
                ("context", p + "attn.hook_z", lambda x: x.reshape(*x.shape[:2], s.port.specs[i].heads, -1)),
                ("attn_post" if s.has("attn_post", 0) else "o", p + "hook_attn_out", as_is),
                ("stream_mid", p + "hook_resid_mid", as_is), ("norm2_hat", p + "ln2.hook_normalized", as_is),
                *([("gate", p + "mlp.hook_pre", as_is), ("up", p + "mlp.hook_pre_linear", as_is),
                   ("product", p + "mlp.hook_post", as_is)] if s.has("gate", 0) else
                  [("up", p + "mlp.hook_pre", as_is), ("act", p + "mlp.hook_post", as_is)]),
                ("router", p + "mlp.hook_gate", as_is),
                ("mlp_post" if s.has("mlp_post", 0) else "down", p + "hook_mlp_out", as_is),
                ("stream_out", p + "hook_resid_post", as_is)]
    return listed(s, [("embed_scaled" if s.has("embed_scaled") else "embed", "hook_embed", as_is),
                      ("position", "hook_pos_embed", as_is)], layer,
                  [("final_norm_hat", "ln_final.hook_normalized", as_is),
                   ("logits" if s.has("logits") else "head", "unembed", as_is)])


def meta(s):
    def layer(i):
        p = "layers.{i}."
        return [("norm1", p + "attention_norm", one_batch), ("q", p + "attention.wq", one_batch),
                ("k", p + "attention.wk", one_batch), ("v", p + "attention.wv", one_batch),
                ("o", p + "attention.wo", one_batch), ("o", p + "attention", one_batch), ("norm2", p + "ffn_norm", one_batch),
                ("gate", p + "feed_forward.w1", one_batch), ("up", p + "feed_forward.w3", one_batch),
                ("down", p + "feed_forward.w2", one_batch), ("down", p + "feed_forward", one_batch),
                ("stream_out", p[:-1], one_batch)]
    return listed(s, [("embed", "tok_embeddings", one_batch)], layer,
                  [("final_norm", "norm", one_batch), ("logits" if s.has("logits") else "head", "output", one_batch)])


def hand1(s):
    """A port's own names, [1,T,C], rope'd q and k apart."""
    def layer(i):
        p = f"layer{i:02d}_"
        return [("norm1", p + "in_norm", one_batch), ("q", p + "q", one_batch), ("k", p + "k", one_batch),
                ("v", p + "v", one_batch), ("q_normed", p + "q_normed", one_batch), ("k_normed", p + "k_normed", one_batch),
                ("q_rope", p + "q_rot", one_batch), ("k_rope", p + "k_rot", one_batch),
                ("context", p + "attn_ctx", one_batch), ("o", p + "attn_proj", one_batch),
                ("attn_post", p + "attn_normed", one_batch), ("stream_mid", p + "resid1", one_batch),
                ("norm2", p + "ffn_in", one_batch), ("gate", p + "ffn_g", one_batch), ("up", p + "ffn_u", one_batch),
                ("product", p + "ffn_h", one_batch), ("down", p + "ffn_o", one_batch),
                ("mlp_post", p + "ffn_normed", one_batch), ("stream_out", p + "out", one_batch)]
    return listed(s, [("stream0", "x0", one_batch)], layer,
                  [("final_norm", "xf", one_batch), ("logits" if s.has("logits") else "head", "logits", one_batch)])


def hand2(s):
    """Heads first, a dot for everything."""
    def layer(i):
        p = "L{i}."
        return [("stream_in", p + "x", flat), ("norm1", p + "attn.ln", flat), ("q", p + "attn.q", heads_first),
                ("k", p + "attn.k", heads_first), ("v", p + "attn.v", heads_first), ("q_rope", p + "attn.q_rope", heads_first),
                ("k_rope", p + "attn.k_rope", heads_first), ("probs", p + "attn.w", lambda x: x[0] if len(x) == 1 else x),
                ("context", p + "attn.y", flat), ("o", p + "attn.out", flat), ("norm2", p + "mlp.ln", flat),
                ("gate", p + "mlp.g", flat), ("up", p + "mlp.h", flat), ("act", p + "mlp.a", flat),
                ("down", p + "mlp.out", flat), ("stream_out", p + "y", flat)]
    return listed(s, [("embed", "tok", flat), ("position", "pos", flat)], layer,
                  [("final_norm", "ln_f", flat), ("logits" if s.has("logits") else "head", "probs_in", flat)])


STYLES = {"llama.cpp": llama_cpp, "vllm": vllm, "tlens": transformer_lens, "meta": meta, "hand1": hand1, "hand2": hand2}
