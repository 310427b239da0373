"""Side B: the names and layouts in which engines dump. handmade.py has those of ports by hand.

A style takes a Source (the stages of one run) and a random.Random, and gives (name, array, stages) in the order of a
dump; `stages` are what the array holds: one (stage, layer), or the parts of a fused tensor. Names may repeat, as they do
in llama.cpp's callback. A style that does not fit a model gives nothing.

Most are tables of rows (stage or stages, name, layout); a row whose stage the model does not have is left out.
"""
import numpy as np

import handmade
from port import fused


class Source:
    def __init__(self, stages, port):
        self.stages, self.port, self.layers, self.spec = stages, port, len(port.specs), port.specs[0]
        self.batch = self.get("embed").shape[0]
        self.gated = self.has("gate", 0)
        self.logits = "logits" if self.has("logits") else "head"  # the answer, after scale and cap
        self.embed = "embed_scaled" if self.has("embed_scaled") else "embed"
        self.out = "sum2" if self.has("sum2", 0) else "stream_out"  # what a layer gives
        self.o = "attn_post" if self.has("attn_post", 0) else "o"  # what attention adds to the stream
        self.down = "mlp_post" if self.has("mlp_post", 0) else "down"

    def has(self, stage, layer=None):
        return (stage, layer) in self.stages

    def get(self, stage, layer=None):
        return self.stages[stage, layer]


def as_is(x):
    return x


def flat(x):
    """[B,T,…] as [B*T, C]."""
    return x.reshape(x.shape[0] * x.shape[1], -1) if x.ndim > 2 else x


def rows(x):
    """[B,T,…] as [B,T,C]."""
    return x.reshape(*x.shape[:2], -1) if x.ndim > 2 else x


def heads(x):
    """[B,T,H,d] as [B*T,H,d]."""
    return x.reshape(-1, *x.shape[2:]) if x.ndim == 4 else flat(x)


def sequence_first(x):
    return rows(x).transpose(1, 0, 2) if x.ndim > 2 else x


def one_map(x):
    """A map of attention without the batch's axis where there is one batch."""
    return x[0] if len(x) == 1 else x


def listed(source, outer, layer, tail):
    def one(entry, i):
        stages, name, layout = entry
        stages = stages if isinstance(stages, tuple) else (stages,)
        if all(source.has(s, i) for s in stages):
            parts = [layout(source.get(s, i)) for s in stages]
            value = parts[0] if len(parts) == 1 else np.concatenate(parts, -1)
            yield name.format(i=i), value, [(s, i) for s in stages]
    for entry in outer:
        yield from one(entry, None)
    for i in range(source.layers):
        for entry in layer(i):
            yield from one(entry, i)
    for entry in tail:
        yield from one(entry, None)


def llama_cpp(s, rng):
    """ggml's callback: the layer is the end of the name, Qcur comes up to three times, post-norms have no layer."""
    act = ("ffn_geglu-{i}" if s.spec.act.startswith("gelu") else "ffn_swiglu-{i}") if s.gated else \
        "ffn_relu-{i}" if s.spec.act == "relu" else "ffn_gelu-{i}"
    last_row = rng.random() < 0.3 and s.batch == 1 and s.spec.causal and not s.spec.parallel
    maps = [("scores_raw", "kq-{i}", one_map), ("probs", "kq_soft_max-{i}", one_map)] if rng.random() < 0.5 else []

    def layer(i):
        cut = (lambda x: flat(x)[-1:]) if last_row and i == s.layers - 1 else flat
        return [("norm1_hat", "norm-{i}", flat), ("norm1", "attn_norm-{i}", flat),
                ("q", "Qcur-{i}", flat), ("q", "Qcur-{i}", heads), ("k", "Kcur-{i}", flat), ("k", "Kcur-{i}", heads),
                ("v", "Vcur-{i}", heads), ("q_normed", "Qcur_normed-{i}", heads), ("k_normed", "Kcur_normed-{i}", heads),
                ("q_rope", "Qcur-{i}", heads), ("k_rope", "Kcur-{i}", heads), *maps, ("context", "kqv_out-{i}", flat),
                ("o", "attn_out-{i}", flat), ("attn_post", "attn_post_norm-{i}", flat), ("stream_mid", "ffn_inp-{i}", cut),
                ("sum1", "attn_out_norm-{i}", cut), ("norm2", "ffn_norm-{i}", cut), ("gate", "ffn_gate-{i}", cut),
                ("up", "ffn_up-{i}", cut), ("product" if s.gated else "act", act, cut),
                ("router", "ffn_moe_logits-{i}", cut), ("router_weights", "ffn_moe_weights_norm-{i}", cut),
                ("down", "ffn_moe_out-{i}" if s.has("router", 0) else "ffn_out-{i}", cut), ("mlp_post", "ffn_post_norm", cut),
                ("stream_out", "l_out-{i}", cut), ("sum2", "layer_out_norm-{i}", cut)]
    end = (lambda x: flat(x)[-1:]) if last_row else flat
    return listed(s, [("embed", "inp_embd", flat), ("embed_scaled", "inp_scaled", flat), ("position", "pos_embd", flat),
                      *([("stream0", "inpL", flat)] if s.has("position") else [])],
                  layer, [("final_norm", "result_norm", end), (s.logits, "result_output", end)])


def engine_tuples(s, leaves):
    """vLLM and SGLang: fused projections, the gated product as act_fn, (hidden, residual) tuples, [tokens, channels]."""
    if s.spec.norms not in ("pre", "sandwich") or s.spec.parallel or not s.gated and not s.has("router", 0):
        return iter(())
    post = s.has("attn_post", 0)
    linear = "" if leaves else ".0"  # SGLang's dumper stores a tuple with one tensor bare
    norm2 = "pre_feedforward_layernorm" if post else "post_attention_layernorm"

    def layer(i):
        p = "model.layers.{i}."
        first = [("norm1", p + "input_layernorm", flat)] if i == 0 else \
            [("norm1", p + "input_layernorm.0", flat), ("stream_in", p + "input_layernorm.1", flat)]
        containers = [] if leaves else [("o", p + "self_attn", flat)]
        return [*first, (("q", "k", "v"), p + "self_attn.qkv_proj" + linear, flat),
                ("q_normed", p + "self_attn.q_norm", flat), ("k_normed", p + "self_attn.k_norm", flat),
                ("q_rope", p + "self_attn.rotary_emb.0", flat), ("k_rope", p + "self_attn.rotary_emb.1", flat),
                ("context", p + "self_attn.attn", flat), ("o", p + "self_attn.o_proj" + linear, flat), *containers,
                ("attn_post", p + "post_attention_layernorm", flat), ("norm2", p + norm2 + ".0", flat),
                ("stream_mid", p + norm2 + ".1", flat), ("router", p + "mlp.gate" + linear, flat),
                (("gate", "up"), p + "mlp.gate_up_proj" + linear, flat), ("product", p + "mlp.act_fn", flat),
                ("down", p + ("mlp.experts" if s.has("router", 0) else "mlp.down_proj" + linear), flat),
                *([] if leaves else [("down", p + "mlp", flat)]), ("mlp_post", p + "post_feedforward_layernorm", flat),
                *([] if leaves else [(s.down, p[:-1] + ".0", flat), ("stream_mid", p[:-1] + ".1", flat)])]
    return listed(s, [("embed", "model.embed_tokens", flat)], layer,
                  [("final_norm", "model.norm.0", flat), ("final_norm", "model", flat), (s.logits, "logits_processor", flat)])


def vllm(s, rng):
    return engine_tuples(s, leaves=False)


def sglang(s, rng):
    return engine_tuples(s, leaves=True)


def megatron(s, rng):
    """Megatron core: [sequence, batch, channels], qkv fused group by group; with Transformer Engine the norms are fused
    into the linears and give the stream under the norm's name."""
    if s.spec.norms != "pre" or s.spec.parallel or any(n + ".b" in s.port.weights[0] for n in ("o", "down")):
        return iter(())
    te = rng.random() < 0.4

    def qkv(i):
        return fused([s.get(x, i) for x in "qkv"], "groups", s.port.specs[i]).transpose(1, 0, 2)

    def rows_of(i):
        p = f"decoder.layers.{i}."
        a, m = p + "self_attention.", p + "mlp."
        plain = lambda stage, name: (name, sequence_first(s.get(stage, i)), [(stage, i)])
        yield plain("stream_in" if te else "norm1", p + "input_layernorm")
        yield a + "linear_qkv.0", qkv(i), [("q", i), ("k", i), ("v", i)]
        if s.has("q_normed", i):
            for x in "qk":
                yield a + f"{x}_layernorm", s.get(f"{x}_normed", i).transpose(1, 0, 2, 3), [(f"{x}_normed", i)]
        yield plain("context", a + "core_attention")
        yield plain("o", a + "linear_proj.0")
        yield plain("o", a[:-1] + ".0")
        yield plain("stream_mid" if te else "norm2", p + "pre_mlp_layernorm")
        if s.gated:
            yield (m + "linear_fc1.0", np.concatenate([sequence_first(s.get(x, i)) for x in ("gate", "up")], -1),
                   [("gate", i), ("up", i)])
        if s.has("router", i):
            yield m + "router", flat(s.get("router", i)), [("router", i)]
        yield plain("down", m + ("experts.0" if s.has("router", i) else "linear_fc2.0"))
        yield plain("down", p + "mlp.0")
        yield plain("stream_out", p[:-1] + ".0")
    yield "embedding.word_embeddings", rows(s.get("embed")), [("embed", None)]
    yield "embedding", sequence_first(s.get("stream0")), [("stream0", None)]
    for i in range(s.layers):
        yield from rows_of(i)
    yield "decoder.final_layernorm", sequence_first(s.get("final_norm")), [("final_norm", None)]
    yield "output_layer.0", sequence_first(s.get("head")), [("head", None)]


def transformer_lens(s, rng):
    per_head = lambda x: x.reshape(*x.shape[:2], s.spec.heads, -1)
    gated = [("gate", "mlp.hook_pre"), ("up", "mlp.hook_pre_linear"), ("product", "mlp.hook_post")]
    plain = [("up", "mlp.hook_pre"), ("act", "mlp.hook_post")]

    def layer(i):
        table = [("stream_in", "hook_resid_pre"), ("norm1_hat", "ln1.hook_normalized"), ("q", "attn.hook_q"),
                 ("k", "attn.hook_k"), ("v", "attn.hook_v"), ("q_rope", "attn.hook_rot_q"), ("k_rope", "attn.hook_rot_k"),
                 ("scores", "attn.hook_attn_scores"), ("probs", "attn.hook_pattern"), ("context", "attn.hook_z"),
                 (s.o, "hook_attn_out"), ("stream_mid", "hook_resid_mid"), ("norm2_hat", "ln2.hook_normalized"),
                 *(gated if s.gated else plain), ("router", "mlp.hook_gate"), (s.down, "hook_mlp_out"),
                 (s.out, "hook_resid_post")]
        return [(stage, "blocks.{i}." + name, per_head if stage == "context" else as_is) for stage, name in table]
    return listed(s, [(s.embed, "hook_embed", as_is), ("position", "hook_pos_embed", as_is)], layer,
                  [("final_norm_hat", "ln_final.hook_normalized", as_is), ("head", "unembed", as_is)])


def meta(s, rng):
    if not s.gated or s.spec.parallel:
        return iter(())

    def layer(i):
        table = [("norm1", "attention_norm"), ("q", "attention.wq"), ("k", "attention.wk"), ("v", "attention.wv"),
                 ("o", "attention.wo"), ("o", "attention"), ("attn_post", "attention_post_norm"), ("norm2", "ffn_norm"),
                 ("gate", "feed_forward.w1"), ("up", "feed_forward.w3"), ("down", "feed_forward.w2"),
                 ("down", "feed_forward"), ("mlp_post", "ffn_post_norm"), ("stream_out", "")]
        return [(stage, ("layers.{i}." + name).rstrip("."), rows) for stage, name in table]
    return listed(s, [("embed", "tok_embeddings", rows)], layer, [("final_norm", "norm", rows), (s.logits, "output", rows)])


def timm(s, rng):
    """A vision transformer, or any port written like one."""
    if s.gated or s.spec.norms != "pre" or s.spec.parallel:
        return iter(())

    def layer(i):
        table = [("norm1", "norm1"), (("q", "k", "v"), "attn.qkv"), ("o", "attn.proj"), ("o", "attn"), ("norm2", "norm2"),
                 ("up", "mlp.fc1"), ("act", "mlp.act"), ("down", "mlp.fc2"), ("down", "mlp"), ("stream_out", "")]
        return [(stage, ("blocks.{i}." + name).rstrip("."), rows) for stage, name in table]
    return listed(s, [("embed", "patch_embed" if s.port.top.pooled else "tok_embed", rows), ("stream0", "norm_pre", rows)],
                  layer, [("final_norm", "norm", rows), (s.logits, "head", rows)])


def flax(s, rng):
    """Intermediates captured by Flax: paths with slashes that end in __call__/0."""
    if s.gated:
        names = {"norm1": "input_layernorm", "q": "self_attn/q_proj", "k": "self_attn/k_proj", "v": "self_attn/v_proj",
                 "q_normed": "self_attn/q_norm", "k_normed": "self_attn/k_norm", "o": "self_attn/o_proj",
                 "attn_post": "post_attn_norm", "norm2": "post_attention_layernorm", "gate": "mlp/gate_proj",
                 "up": "mlp/up_proj", "down": "mlp/down_proj", "mlp_post": "post_ffw_norm"}
        outer, stack, tail = "model/embed_tokens", "model/layers/{i}", ("model/norm", "lm_head")
    else:
        names = {"norm1": "ln_1", "q": "attn/query", "k": "attn/key", "v": "attn/value", "o": "attn/out", "norm2": "ln_2",
                 "sum1": "ln_1", "up": "mlp/fc_in", "down": "mlp/fc_out", "sum2": "ln_2"}
        outer, stack, tail = "transformer/wte", "transformer/h_{i}", ("transformer/ln_f", "head")
    containers = {"o": names["o"].split("/")[0], "down": "mlp", s.out: ""}

    def layer(i):
        table = [(stage, f"{stack}/{name}/__call__/0", rows) for stage, name in names.items()]
        ends = [(stage, f"{stack}/{name}".rstrip("/") + "/__call__/0", rows) for stage, name in containers.items()]
        return table + ends
    return listed(s, [("embed", outer + "/__call__/0", rows)], layer,
                  [("final_norm", tail[0] + "/__call__/0", rows), ("head", tail[1] + "/__call__/0", rows),
                   ("logits", "__call__/0", rows)])


def mlx(s, rng):
    """MLX: names of transformers, but heads apart."""
    if not s.gated or s.spec.norms not in ("pre", "sandwich") or s.spec.parallel:
        return iter(())
    post = s.has("attn_post", 0)

    def layer(i):
        table = [("norm1", "input_layernorm"), ("q", "self_attn.q_proj"), ("k", "self_attn.k_proj"), ("v", "self_attn.v_proj"),
                 ("q_normed", "self_attn.q_norm"), ("k_normed", "self_attn.k_norm"), ("q_rope", "self_attn.rope.0"),
                 ("k_rope", "self_attn.rope.1"), ("o", "self_attn.o_proj"), ("o", "self_attn"),
                 ("attn_post", "post_attention_layernorm"),
                 ("norm2", "pre_feedforward_layernorm" if post else "post_attention_layernorm"), ("gate", "mlp.gate_proj"),
                 ("up", "mlp.up_proj"), ("down", "mlp.down_proj"), ("down", "mlp"), ("mlp_post", "post_feedforward_layernorm"),
                 ("stream_out", "")]
        apart = ("q_normed", "k_normed", "q_rope", "k_rope")
        return [(stage, ("model.layers.{i}." + name).rstrip("."),
                 (lambda x: x.transpose(0, 2, 1, 3)) if stage in apart else rows) for stage, name in table]
    return listed(s, [("embed", "model.embed_tokens", rows)], layer,
                  [("final_norm", "model.norm", rows), ("head", "lm_head", rows), ("logits", "logits", rows)])


STYLES = {"llama.cpp": llama_cpp, "vllm": vllm, "sglang": sglang, "megatron": megatron, "tlens": transformer_lens,
          "meta": meta, "timm": timm, "flax": flax, "mlx": mlx, **handmade.STYLES}
