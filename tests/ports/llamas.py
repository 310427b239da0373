"""Ports of Llama and of the models that name their weights as it does."""
import math

from port import Port, cut, linears, state

NAMES = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
         "norm1": "input_layernorm", "norm2": "post_attention_layernorm"}
GLU = {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}
QK_NORMS = {"q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm"}


def build(model, names, **switches):
    c, w = model.config, state(model)
    head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    given = dict(heads=c.num_attention_heads, kv_heads=c.num_key_value_heads, head_dim=head,
                 eps=getattr(c, "rms_norm_eps", None) or c.layer_norm_eps,
                 rope_dim=int(head * c.rope_parameters.get("partial_rotary_factor", 1.0)),
                 rope_theta=c.rope_parameters["rope_theta"], attn_scale=head ** -0.5)
    port = Port(c.num_hidden_layers, **{**given, **switches})
    for i, into in enumerate(port.weights):
        linears(into, w, f"model.layers.{i}.", names)
    port.outer["embed"] = w["model.embed_tokens.weight"]
    linears(port.outer, w, "", {"final_norm": "model.norm", "head": "lm_head"})
    return port


def llama(model):
    return build(model, {**NAMES, **GLU}, window=getattr(model.config, "sliding_window", None))


def qwen3(model):
    return build(model, {**NAMES, **GLU, **QK_NORMS}, qk_norm="head")


def gemma2(model):
    c = model.config
    names = {**NAMES, **GLU, "attn_post": "post_attention_layernorm", "norm2": "pre_feedforward_layernorm",
             "mlp_post": "post_feedforward_layernorm"}
    port = build(model, names, norm_plus=1.0, norms="sandwich", act="gelu_tanh",
                 attn_scale=c.query_pre_attn_scalar ** -0.5, attn_softcap=c.attn_logit_softcapping,
                 logit_softcap=c.final_logit_softcapping, embed_scale=math.sqrt(c.hidden_size))
    for kind, spec in zip(c.layer_types, port.specs):
        spec.window = c.sliding_window if kind == "sliding_attention" else None
    return port


def phi3(model):
    c = model.config
    names = {"qkv": "self_attn.qkv_proj", "gate_up": "mlp.gate_up_proj", "down": "mlp.down_proj",
             **{k: NAMES[k] for k in ("o", "norm1", "norm2")}}
    port = build(model, names)
    head = port.specs[0].head_dim
    for into in port.weights:
        cut(into, "qkv", {"q": c.num_attention_heads * head, "k": c.num_key_value_heads * head,
                          "v": c.num_key_value_heads * head})
        cut(into, "gate_up", {"gate": c.intermediate_size, "up": c.intermediate_size})
    port.qkv = port.gate_up = "blocks"
    return port


def mixtral(model):
    c, w = model.config, state(model)
    port = build(model, {**NAMES, "router": "mlp.gate"}, experts=c.num_local_experts, top_k=c.num_experts_per_tok)
    for i, into in enumerate(port.weights):
        for e in range(c.num_local_experts):
            name = f"expert{e}."
            into[name + "gate_up.w"] = w[f"model.layers.{i}.mlp.experts.gate_up_proj"][e]
            cut(into, name + "gate_up", {name + "gate": c.intermediate_size, name + "up": c.intermediate_size})
            into[name + "down.w"] = w[f"model.layers.{i}.mlp.experts.down_proj"][e]
    return port


def olmo2(model):
    names = {k: v for k, v in {**NAMES, **GLU, **QK_NORMS}.items() if k not in ("norm1", "norm2")}
    names.update(attn_post="post_attention_layernorm", mlp_post="post_feedforward_layernorm")
    return build(model, names, norms="post", qk_norm="whole")


def stablelm(model):
    return build(model, {**NAMES, **GLU}, norm="layer")


def cohere(model):
    names = {k: v for k, v in {**NAMES, **GLU}.items() if k != "norm2"}
    return build(model, names, norm="layer", parallel="one norm", rope_style="interleaved",
                 logit_scale=model.config.logit_scale)


def granite(model):
    c = model.config
    return build(model, {**NAMES, **GLU}, attn_scale=c.attention_multiplier, branch=c.residual_multiplier,
                 embed_scale=c.embedding_multiplier, logit_scale=1 / c.logits_scaling)
