"""Side B: names and layouts of ports by hand. Four are written out; `invented` draws its words, separators, layouts and
what is left out at random, so that another seed gives names that nobody has seen; `opaque` draws syllables for words.
"""
import numpy as np

WORDS = {
    "stream_in": ["x", "inp", "block_in", "hidden_in", "resid_pre"],
    "norm1": ["ln1", "in_norm", "attn_ln", "norm_a", "pre_attn_norm", "rms1", "x_normed"],
    "q": ["q", "query", "xq", "q_lin", "Q", "wq_out", "qproj"],
    "k": ["k", "key", "xk", "k_lin", "K", "wk_out", "kproj"],
    "v": ["v", "value", "xv", "v_lin", "V", "wv_out", "vproj"],
    "q_normed": ["q_n", "query_normed", "xq_norm", "qn"], "k_normed": ["k_n", "key_normed", "xk_norm", "kn"],
    "q_rope": ["q_rot", "query_rope", "xq_rope", "q_pe", "roped_q"],
    "k_rope": ["k_rot", "key_rope", "xk_rope", "k_pe", "roped_k"],
    "scores": ["scores", "qk", "logits_attn", "masked_scores"], "probs": ["probs", "att", "softmax", "weights"],
    "context": ["ctx", "attn_y", "z", "av", "heads_out", "attn_mix"],
    "o": ["attn_out", "proj", "wo", "attn_proj", "y_attn", "o_lin"],
    "attn_post": ["attn_out_norm", "ln1_post", "attn_normed"],
    "stream_mid": ["resid1", "h", "x_mid", "after_attn", "resid_a"],
    "sum1": ["ln_a", "norm_attn", "ln_after_attn"],
    "norm2": ["ln2", "ffn_in", "mlp_ln", "norm_b", "pre_mlp_norm", "rms2", "ff_norm"],
    "router": ["router", "gate_logits", "moe_logits"],
    "gate": ["g", "w1", "ff_gate", "mlp_gate", "gate"], "up": ["u", "w3", "ff_up", "mlp_h", "fc1", "up"],
    "act": ["act", "ff_act", "g_act", "mlp_a"], "product": ["gu", "ff_hidden", "mlp_inner", "swiglu", "hid"],
    "down": ["ff_out", "w2", "mlp_out", "fc2", "dn", "ffn_y"],
    "mlp_post": ["mlp_out_norm", "ln2_post", "ff_normed"],
    "stream_out": ["out", "y", "block_out", "resid2", "x_out"], "sum2": ["ln_f", "norm_out", "ln_after_mlp"],
}
OUTER = {"tokens": ["tokens", "ids", "input_ids"], "embed": ["tok_emb", "emb", "wte", "x_embed"],
         "embed_scaled": ["emb_scaled", "x0_scaled"], "position": ["pos_emb", "wpe", "pos"],
         "stream0": ["x0", "inp_sum", "h0"], "final_norm": ["ln_f", "final_norm", "xf", "norm_out"],
         "head": ["lm_logits", "head_out", "vocab"], "logits": ["logits", "final", "out_logits"]}
FORMS = ["layer{n:02d}_{w}", "L{n}.{w}", "blk{n}.{w}", "dbg/{n:02d}/{w}", "{n}_{w}", "h{n}/{w}", "block_{n}.{w}",
         "dec.layers.{n}.{w}", "{w}-{n}", "{w}_l{n}", "{w}.{n}", "stage{n:03d}-{w}", "enc.{n}.{w}", "net/block{n}/{w}"]
GROUPS = {"attn": ("q", "k", "v", "q_normed", "k_normed", "q_rope", "k_rope", "scores", "probs", "context", "o"),
          "mlp": ("gate", "up", "act", "product", "down", "router")}
TOKENS = {"flat": lambda x: x.reshape(-1, x.shape[-1]), "batch": lambda x: x, "sequence first": lambda x: x.swapaxes(0, 1)}
HEADS = {"apart": lambda x: x, "first": lambda x: x.transpose(0, 2, 1, 3),
         "merged": lambda x: x.reshape(*x.shape[:2], -1), "no batch": lambda x: x.reshape(-1, *x.shape[2:]),
         "first, no batch": lambda x: x.transpose(0, 2, 1, 3)[0] if len(x) == 1 else x.transpose(0, 2, 1, 3)}


def junk(s, rng):
    """What ports dump beside activations: tables and masks that A does not have."""
    n = s.get("stream0").shape[1]
    if s.spec.rope_theta:
        angle = np.arange(n)[:, None] * s.spec.rope_theta ** (-np.arange(0, s.spec.rope_dim, 2) / s.spec.rope_dim)
        yield rng.choice(["cos", "rope_cos", "freqs_cos"]), np.cos(angle).astype(np.float32), []
        yield rng.choice(["sin", "rope_sin", "freqs_sin"]), np.sin(angle).astype(np.float32), []
    if s.spec.causal and rng.random() < 0.5:
        yield rng.choice(["mask", "causal_mask"]), np.triu(np.full((n, n), -1e9, np.float32), 1), []


def worded(s, words, outer, form, tokens, heads, start=0, prefix=None):
    """Rows of all stages that have a word, in the order of computation."""
    def layout(stage, x):
        if stage in ("scores", "probs"):
            return x[0] if len(x) == 1 else x
        if x.ndim == 4:
            return heads(x)
        return tokens(x) if x.ndim == 3 else x
    for (stage, layer), value in s.stages.items():
        word = (outer if layer is None else words).get(stage)
        if word is None:
            continue
        if layer is None:
            yield word, layout(stage, value), [(stage, None)]
        else:
            group = next((g + "." for g, members in GROUPS.items() if prefix and stage in members), "")
            yield form.format(n=layer + start, w=group + word), layout(stage, value), [(stage, layer)]


def invented(s, rng):
    kept = {stage for stage in [*WORDS, *OUTER] if rng.random() < 0.75} | {"o", "down", s.logits}
    if rng.random() < 0.7:
        kept -= {"scores", "probs"}
    words = {stage: rng.choice(WORDS[stage]) for stage in WORDS}
    outer = {stage: rng.choice(OUTER[stage]) for stage in OUTER}
    form, tokens, heads = rng.choice(FORMS), TOKENS[rng.choice(list(TOKENS))], HEADS[rng.choice(list(HEADS))]
    start, prefix, extra = rng.choice([0, 0, 0, 1]), rng.random() < 0.3, rng.random() < 0.5
    if s.has("logits"):
        kept.discard("head")
    if extra:
        yield from junk(s, rng)
    yield from worded(s, {k: v for k, v in words.items() if k in kept}, {k: v for k, v in outer.items() if k in kept},
                      form, tokens, heads, start, prefix)


def opaque(s, rng):
    """Names that mean nothing: what pairs here pairs by values, shapes and the pattern of names alone."""
    syllables = [a + b for a in "bdfghjklmnprstvz" for b in "aeiou"]
    def word():
        return "".join(rng.sample(syllables, 3))
    words, outer = {stage: word() for stage in WORDS if rng.random() < 0.8}, {stage: word() for stage in OUTER}
    form = rng.choice(FORMS)
    yield from worded(s, words, outer, form, TOKENS[rng.choice(list(TOKENS))], HEADS[rng.choice(list(HEADS))])


def chosen(words, outer, form, tokens, heads):
    def style(s, rng):
        out = {"head" if k == "out" and not s.has("logits") else "logits" if k == "out" else k: v for k, v in outer.items()}
        return worded(s, words, out, form, TOKENS[tokens], HEADS[heads])
    return style


STYLES = {
    "invented": invented, "opaque": opaque,
    "hand layer00_q": chosen(
        {"norm1": "in_norm", "q": "q", "k": "k", "v": "v", "q_normed": "q_normed", "k_normed": "k_normed", "q_rope": "q_rot",
         "k_rope": "k_rot", "context": "attn_ctx", "o": "attn_proj", "attn_post": "attn_normed", "stream_mid": "resid1",
         "sum1": "ln1", "norm2": "ffn_in", "gate": "ffn_g", "up": "ffn_u", "act": "ffn_act", "product": "ffn_h",
         "down": "ffn_o", "mlp_post": "ffn_normed", "stream_out": "out", "sum2": "ln2"},
        {"stream0": "x0", "final_norm": "xf", "out": "logits"}, "layer{n:02d}_{w}", "batch", "merged"),
    "hand L0.attn.q": chosen(
        {"stream_in": "x", "norm1": "attn.ln", "q": "attn.q", "k": "attn.k", "v": "attn.v", "q_rope": "attn.q_rope",
         "k_rope": "attn.k_rope", "probs": "attn.w", "context": "attn.y", "o": "attn.out", "sum1": "ln1", "norm2": "mlp.ln",
         "gate": "mlp.g", "up": "mlp.h", "act": "mlp.a", "down": "mlp.out", "stream_out": "y", "sum2": "ln2"},
        {"embed": "tok", "position": "pos", "final_norm": "ln_f", "out": "y_logits"}, "L{n}.{w}", "flat", "first, no batch"),
    "hand dbg/00/": chosen(
        {"norm1": "ln1", "q": "xq", "k": "xk", "v": "xv", "q_rope": "xq_rope", "k_rope": "xk_rope", "o": "attn",
         "stream_mid": "h1", "norm2": "ln2", "up": "mlp_h", "down": "mlp", "stream_out": "h2"},
        {"stream0": "emb", "final_norm": "norm", "out": "logits"}, "dbg/{n:02d}/{w}", "flat", "no batch"),
    "hand 0_query": chosen(
        {"norm1": "post_ln_pre_attn", "q": "query", "q_rope": "query_final", "k": "key", "k_rope": "key_final", "v": "value",
         "context": "post_attn", "o": "post_attn_pre_resid", "norm2": "pre_mlp", "down": "post_mlp"},
        {"out": "logits"}, "{n}_{w}", "batch", "apart"),
    "hand enc.0": chosen(
        {"q": "attn.q", "k": "attn.k", "v": "attn.v", "probs": "attn.p", "context": "attn.ctx", "o": "attn.o", "norm1": "ln1",
         "sum1": "ln1", "norm2": "ln2", "up": "ff.h", "act": "ff.a", "gate": "ff.g", "down": "ff.o", "stream_out": "out",
         "sum2": "ln2"},
        {"embed": "emb.tok", "position": "emb.pos", "types": "emb.type", "stream0": "emb", "final_norm": "ln", "out": "scores_out"},
        "enc.{n}.{w}", "sequence first", "first"),
}
