"""The architectures: a small configuration of transformers' model, and how the numpy engine reads its weights.

`load(name, seed)` gives the model with weights drawn by us (transformers' own are so small that nothing shows), and
`port(model, name)` its counterpart as `Port`: switches and weights for engine.Model. `qkv` and `gate_up` of a port say
in which order transformers' fused tensors hold their parts, so that generate.py can tell which tensor of A that is.
"""
import copy
import math
import types

import numpy as np
import torch
import transformers

import engine

VOCAB = 157
LAYER = dict(heads=4, kv_heads=4, head_dim=16, norm="rms", eps=1e-6, norm_plus=0.0, norms="pre", parallel=None,
             qk_norm=None, rope_theta=10000.0, rope_dim=16, rope_style="half", rope_offset=0, attn_scale=0.25,
             attn_softcap=None, alibi=None, causal=True, mask_ahead=0, mask_drops_last=False, window=None,
             kv_tiled=False, softmax_axis=-1, gated=True, act="silu", swap_gate_up=False, experts=0, top_k=2,
             renorm=True, keep_attn=1.0, keep_mlp=1.0)
TOP = dict(norm="rms", eps=1e-6, norm_plus=0.0, embed_scale=1.0, position_offset=0, final_norm=True, logit_scale=1.0,
           logit_softcap=None)


class Port:
    """Switches and weights of one model, ready to be changed by bugs.py."""

    def __init__(self, layers, **switches):
        unknown = set(switches) - set(LAYER) - set(TOP)
        assert not unknown, unknown
        spec = {**LAYER, **{k: v for k, v in switches.items() if k in LAYER}}
        spec["head_gain"] = np.ones(spec["heads"], np.float32)
        self.specs = [types.SimpleNamespace(**copy.deepcopy(spec)) for _ in range(layers)]
        self.top = types.SimpleNamespace(**{**TOP, **{k: v for k, v in switches.items() if k in TOP}})
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
    """Splits the rows of a fused weight and bias into parts: {"q": n, "k": n, …}."""
    start = 0
    for part, size in sizes.items():
        for kind in ("w", "b"):
            if f"{name}.{kind}" in into:
                into[f"{part}.{kind}"] = into[f"{name}.{kind}"][start:start + size]
        start += size
    into.pop(name + ".w"), into.pop(name + ".b", None)


def common(c):
    """Switches that Llama and its relatives name alike."""
    head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    theta = c.rope_parameters["rope_theta"]
    return dict(heads=c.num_attention_heads, kv_heads=c.num_key_value_heads, head_dim=head, rope_dim=head,
                rope_theta=theta, attn_scale=head ** -0.5)


LLAMA = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
         "norm1": "input_layernorm", "norm2": "post_attention_layernorm"}
GLU = {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}


def llama_like(model, names, **switches):
    c, w = model.config, state(model)
    port = Port(c.num_hidden_layers, **{**common(c), **switches})
    for i, into in enumerate(port.weights):
        linears(into, w, f"model.layers.{i}.", names)
    port.outer["embed"] = w["model.embed_tokens.weight"]
    linears(port.outer, w, "", {"final_norm": "model.norm", "head": "lm_head"})
    return port


def llama(model):
    eps = model.config.rms_norm_eps
    return llama_like(model, {**LLAMA, **GLU}, eps=eps)


def qwen3(model):
    norms = {"q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm"}
    return llama_like(model, {**LLAMA, **GLU, **norms}, eps=model.config.rms_norm_eps, qk_norm="head")


def mistral(model):
    return llama_like(model, {**LLAMA, **GLU}, eps=model.config.rms_norm_eps, window=model.config.sliding_window)


def gemma2(model):
    c = model.config
    names = {**LLAMA, **GLU, "attn_post": "post_attention_layernorm", "norm2": "pre_feedforward_layernorm",
             "mlp_post": "post_feedforward_layernorm"}
    port = llama_like(model, names, eps=c.rms_norm_eps, norm_plus=1.0, norms="sandwich", act="gelu_tanh",
                      attn_scale=c.query_pre_attn_scalar ** -0.5, attn_softcap=c.attn_logit_softcapping,
                      logit_softcap=c.final_logit_softcapping, embed_scale=math.sqrt(c.hidden_size))
    for kind, spec in zip(c.layer_types, port.specs):
        spec.window = c.sliding_window if kind == "sliding_attention" else None
    return port


def phi3(model):
    c = model.config
    names = {"qkv": "self_attn.qkv_proj", "o": "self_attn.o_proj", "norm1": "input_layernorm",
             "norm2": "post_attention_layernorm", "gate_up": "mlp.gate_up_proj", "down": "mlp.down_proj"}
    port = llama_like(model, names, eps=c.rms_norm_eps, **switches_of_rope(c))
    head = port.specs[0].head_dim
    for into in port.weights:
        cut(into, "qkv", {"q": c.num_attention_heads * head, "k": c.num_key_value_heads * head,
                          "v": c.num_key_value_heads * head})
        cut(into, "gate_up", {"gate": c.intermediate_size, "up": c.intermediate_size})
    port.qkv, port.gate_up = "blocks", "blocks"
    return port


def switches_of_rope(c):
    share = c.rope_parameters.get("partial_rotary_factor", 1.0)
    head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    return dict(rope_dim=int(head * share))


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


T = transformers
SMALL = dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64)
GQA = dict(SMALL, num_key_value_heads=2, intermediate_size=112)
ARCHS = {
    "llama": (T.LlamaForCausalLM, lambda: T.LlamaConfig(**GQA, rms_norm_eps=1e-5), llama),
    "qwen2": (T.Qwen2ForCausalLM, lambda: T.Qwen2Config(**{**GQA, "hidden_size": 80, "num_hidden_layers": 4}), llama),
    "qwen3": (T.Qwen3ForCausalLM, lambda: T.Qwen3Config(**GQA, head_dim=24), qwen3),
    "mistral": (T.MistralForCausalLM, lambda: T.MistralConfig(**{**GQA, "hidden_size": 96}, sliding_window=6), mistral),
    "gemma2": (T.Gemma2ForCausalLM, lambda: T.Gemma2Config(
        **GQA, head_dim=16, sliding_window=7, query_pre_attn_scalar=24, attn_logit_softcapping=5.0,
        final_logit_softcapping=4.0), gemma2),
    "phi3": (T.Phi3ForCausalLM, lambda: T.Phi3Config(**GQA, pad_token_id=0, bos_token_id=1, eos_token_id=2), phi3),
    "gpt2": (T.GPT2LMHeadModel, lambda: T.GPT2Config(vocab_size=VOCAB, n_embd=72, n_layer=4, n_head=4, n_positions=64), gpt2),
}


def load(name, seed, low_precision=False):
    """The model in float32; in `low_precision` its weights are bfloat16's, and rotary tables stay float32's."""
    kind, config, _ = ARCHS[name]
    torch.manual_seed(seed)
    config = config()
    config._attn_implementation = "eager"
    model = kind(config).eval()
    for path, p in model.named_parameters():
        with torch.no_grad():
            if p.dim() >= 2:
                p.normal_(0, 1 / math.sqrt(p.shape[-1]))
            elif path.endswith("bias"):
                p.normal_(0, 0.3)
            else:
                p.add_(0.2 * torch.randn_like(p))
            if low_precision:
                p.copy_(p.to(torch.bfloat16).float())
    return model


def port(model, name):
    return ARCHS[name][2](model)
