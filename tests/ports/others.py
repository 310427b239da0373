"""Ports of the models that have names and shapes of their own."""
import math

import engine
from port import Port, cut, cut_groups, linears, state


def gpt2(model):
    c, w = model.config, state(model)
    head = c.n_embd // c.n_head
    port = Port(c.n_layer, heads=c.n_head, kv_heads=c.n_head, head_dim=head, norm="layer", eps=c.layer_norm_epsilon,
                rope_theta=None, attn_scale=head ** -0.5, gated=False, act="gelu_tanh")
    for i, into in enumerate(port.weights):
        prefix = f"transformer.h.{i}."
        linears(into, w, prefix, {"qkv": "attn.c_attn", "o": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}, True)
        linears(into, w, prefix, {"norm1": "ln_1", "norm2": "ln_2"})
        cut(into, "qkv", {"q": c.n_embd, "k": c.n_embd, "v": c.n_embd})
    port.outer.update(embed=w["transformer.wte.weight"], positions=w["transformer.wpe.weight"])
    linears(port.outer, w, "", {"final_norm": "transformer.ln_f", "head": "lm_head"})
    port.qkv = "blocks"
    return port


def gpt_neox(model):
    c, w = model.config, state(model)
    head = c.hidden_size // c.num_attention_heads
    port = Port(c.num_hidden_layers, heads=c.num_attention_heads, kv_heads=c.num_attention_heads, head_dim=head,
                norm="layer", eps=c.layer_norm_eps, rope_theta=c.rope_parameters["rope_theta"],
                rope_dim=int(head * c.rope_parameters["partial_rotary_factor"]), attn_scale=head ** -0.5,
                parallel="two norms", gated=False, act="gelu")
    for i, into in enumerate(port.weights):
        linears(into, w, f"gpt_neox.layers.{i}.", {
            "qkv": "attention.query_key_value", "o": "attention.dense", "norm1": "input_layernorm",
            "norm2": "post_attention_layernorm", "up": "mlp.dense_h_to_4h", "down": "mlp.dense_4h_to_h"})
        cut_groups(into, "qkv", port.specs[i])
    port.outer["embed"] = w["gpt_neox.embed_in.weight"]
    linears(port.outer, w, "", {"final_norm": "gpt_neox.final_layer_norm", "head": "lm_head"})
    port.qkv = "groups"
    return port


def falcon(model):
    c, w = model.config, state(model)
    head = c.hidden_size // c.num_attention_heads
    port = Port(c.num_hidden_layers, heads=c.num_attention_heads, kv_heads=c.num_kv_heads, head_dim=head, norm="layer",
                eps=c.layer_norm_epsilon, rope_dim=head, attn_scale=head ** -0.5, parallel="two norms", gated=False,
                act="gelu")
    for i, into in enumerate(port.weights):
        linears(into, w, f"transformer.h.{i}.", {
            "qkv": "self_attention.query_key_value", "o": "self_attention.dense", "norm1": "ln_attn", "norm2": "ln_mlp",
            "up": "mlp.dense_h_to_4h", "down": "mlp.dense_4h_to_h"})
        cut_groups(into, "qkv", port.specs[i])
    port.outer["embed"] = w["transformer.word_embeddings.weight"]
    linears(port.outer, w, "", {"final_norm": "transformer.ln_f", "head": "lm_head"})
    port.qkv = "groups"
    return port


def bloom(model):
    c, w = model.config, state(model)
    head = c.hidden_size // c.n_head
    port = Port(c.n_layer, heads=c.n_head, kv_heads=c.n_head, head_dim=head, norm="layer", eps=c.layer_norm_epsilon,
                rope_theta=None, alibi=engine.alibi_slopes(c.n_head), attn_scale=head ** -0.5, gated=False,
                act="gelu_tanh")
    for i, into in enumerate(port.weights):
        linears(into, w, f"transformer.h.{i}.", {
            "qkv": "self_attention.query_key_value", "o": "self_attention.dense", "norm1": "input_layernorm",
            "norm2": "post_attention_layernorm", "up": "mlp.dense_h_to_4h", "down": "mlp.dense_4h_to_h"})
        cut_groups(into, "qkv", port.specs[i])
    port.outer["embed"] = w["transformer.word_embeddings.weight"]
    linears(port.outer, w, "", {"embed_norm": "transformer.word_embeddings_layernorm",
                                "final_norm": "transformer.ln_f", "head": "lm_head"})
    port.qkv = "groups"
    return port


def opt(model):
    c, w = model.config, state(model)
    head = c.hidden_size // c.num_attention_heads
    port = Port(c.num_hidden_layers, heads=c.num_attention_heads, kv_heads=c.num_attention_heads, head_dim=head,
                norm="layer", eps=1e-5, rope_theta=None, attn_scale=head ** -0.5, gated=False, act="relu",
                position_offset=2)
    for i, into in enumerate(port.weights):
        linears(into, w, f"model.decoder.layers.{i}.", {
            "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.out_proj",
            "norm1": "self_attn_layer_norm", "norm2": "final_layer_norm", "up": "fc1", "down": "fc2"})
    port.outer.update(embed=w["model.decoder.embed_tokens.weight"], positions=w["model.decoder.embed_positions.weight"])
    linears(port.outer, w, "", {"final_norm": "model.decoder.final_layer_norm", "head": "lm_head"})
    return port


def bert(model):
    c, w = model.config, state(model)
    head = c.hidden_size // c.num_attention_heads
    port = Port(c.num_hidden_layers, heads=c.num_attention_heads, kv_heads=c.num_attention_heads, head_dim=head,
                norm="layer", eps=c.layer_norm_eps, rope_theta=None, attn_scale=head ** -0.5, causal=False,
                norms="sums", gated=False, act="gelu")
    for i, into in enumerate(port.weights):
        linears(into, w, f"encoder.layer.{i}.", {
            "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
            "o": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense",
            "down": "output.dense", "norm2": "output.LayerNorm"})
    names = {"embed": "word", "positions": "position", "types": "token_type"}
    port.outer.update({ours: w[f"embeddings.{theirs}_embeddings.weight"] for ours, theirs in names.items()})
    linears(port.outer, w, "", {"embed_norm": "embeddings.LayerNorm"})
    return port


def vit(model):
    c, w = model.config, state(model)
    head = c.hidden_size // c.num_attention_heads
    port = Port(c.num_hidden_layers, heads=c.num_attention_heads, kv_heads=c.num_attention_heads, head_dim=head,
                norm="layer", eps=c.layer_norm_eps, rope_theta=None, attn_scale=1 / math.sqrt(head), causal=False,
                gated=False, act="gelu", pooled=True)
    for i, into in enumerate(port.weights):
        linears(into, w, f"vit.layers.{i}.", {
            "q": "attention.q_proj", "k": "attention.k_proj", "v": "attention.v_proj", "o": "attention.o_proj",
            "norm1": "layernorm_before", "norm2": "layernorm_after", "up": "mlp.fc1", "down": "mlp.fc2"})
    port.outer.update(embed=w["vit.embeddings.patch_embeddings.projection.weight"], cls=w["vit.embeddings.cls_token"],
                      positions=w["vit.embeddings.position_embeddings"][0])
    port.outer["embed.b"] = w["vit.embeddings.patch_embeddings.projection.bias"]
    linears(port.outer, w, "", {"final_norm": "vit.layernorm", "head": "classifier"})
    return port
