"""The real-port suite: `tdbg diff` on dumps of transformers' models against ports of ours, which dump under other names.

    pytest -c tests/pytest.ini -s tests/ports       (needs torch, transformers and safetensors; tools/test.py conformance has them)

First what the suite itself stands on: every port is transformers' model to 1e-4, the names that truth.py finds by value
are those that one knows, every mistake has a place, and the scorer tells right from wrong answers. Then the figures.
"""
import json
import pathlib
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import archs  # noqa: E402
import bugs  # noqa: E402
import generate  # noqa: E402
import score  # noqa: E402
import styles  # noqa: E402
import truth  # noqa: E402
from built import BINARY  # noqa: E402

SEED, BUGS, CLEAN = 1, 66, 60
# What holds today, so that no change loses it. The aim: right 0.95, wrong 0.002, first 0.95, alarms 2, unseen 0.
BARS = {"right": 0.95, "wrong": 0.008, "first": 0.83, "alarms": 5, "unseen": 0}
BARS_HANDED_OVER = {"first": 0.9, "alarms": 2, "unseen": 0}

# What a stage of layer 1 is called in transformers, by the names one knows.
KNOWN = {
    "llama": {"q": "model.layers.1.self_attn.q_proj.output", "norm2": "model.layers.1.post_attention_layernorm.output",
              "product": "model.layers.1.mlp.down_proj.input", "stream_out": "model.layers.1.output"},
    "qwen3": {"q_normed": "model.layers.1.self_attn.q_norm.output", "k": "model.layers.1.self_attn.k_proj.output"},
    "gemma2": {"attn_post": "model.layers.1.post_attention_layernorm.output",
               "mlp_post": "model.layers.1.post_feedforward_layernorm.output", "act": "model.layers.1.mlp.act_fn.output"},
    "phi3": {"qkv": "model.layers.1.self_attn.qkv_proj.output", "gate_up": "model.layers.1.mlp.gate_up_proj.output"},
    "mixtral": {"router": "model.layers.1.mlp.gate.output.0", "down": "model.layers.1.mlp.experts.output"},
    "olmo2": {"q_normed": "model.layers.1.self_attn.q_norm.output", "attn_post": "model.layers.1.post_attention_layernorm.output"},
    "gpt2": {"qkv": "transformer.h.1.attn.c_attn.output", "up": "transformer.h.1.mlp.c_fc.output"},
    "gpt_neox": {"qkv": "gpt_neox.layers.1.attention.query_key_value.output", "stream_out": "gpt_neox.layers.1.output"},
    "falcon": {"qkv": "transformer.h.1.self_attention.query_key_value.output", "norm2": "transformer.h.1.ln_mlp.output"},
    "bloom": {"qkv": "transformer.h.1.self_attention.query_key_value.output"},
    "bert": {"sum1": "encoder.layer.1.attention.output.LayerNorm.output", "v": "encoder.layer.1.attention.self.value.output"},
    "vit": {"norm1": "vit.layers.1.layernorm_before.output", "k": "vit.layers.1.attention.k_proj.output"},
}


@pytest.mark.parametrize("arch", archs.names())
def test_a_port_is_the_model_and_its_tensors_have_their_names(arch):
    side = generate.Side(arch, 5, "io", low=False, batch=2, tokens=19)  # asserts the port's answer
    for stage, name in KNOWN.get(arch, {}).items():
        assert name in side.found[stage, 1], (stage, side.found.get((stage, 1)))
    for stage in ("context", "o", "down", "stream_out"):
        layer_names = side.found.get((stage, 1), [])
        assert layer_names or (stage == "stream_out" and ("sum2", 1) in side.found) or \
            (stage == "context" and arch in ("bloom", "falcon")), stage
    taken = [n for names in side.found.values() for n in names]
    assert len(set(taken)) >= 0.8 * sum(t.is_floating_point() for t in side.dump.values())


@pytest.fixture(scope="module")
def ports():
    return {arch: archs.port(archs.load(arch, 5), arch) for arch in archs.ARCHS}


@pytest.mark.parametrize("kind", bugs.KINDS)
def test_a_mistake_has_a_place_and_changes_the_answer(kind, ports):
    rng = np.random.default_rng(5)
    for arch, port in ports.items():
        wrong = bugs.plant(port, kind)
        if wrong:
            inputs = rng.standard_normal((1, 3, 20, 20)) if arch == "vit" else rng.integers(3, archs.VOCAB, (1, 21))
            right, other = port.run(inputs), wrong.run(inputs)
            last = next(reversed(right))
            if truth.relative(other[last], right[last]) > truth.NOTICED:
                return
    pytest.fail("no port can have it")


def test_every_style_dumps_some_model(ports):
    import random
    for name, style in styles.STYLES.items():
        sizes = [len(list(style(styles.Source(port.run(np.arange(3, 24)[None]), port), random.Random(1))))
                 for arch, port in ports.items() if arch in ("llama", "gpt2")]
        assert max(sizes) >= 20, name


def answer(pairs, first):
    return {"pairs": [{"index": i, "verdict": "within", "strategy": "x", "a": {"name": a}, "b": {"name": b}, "aliases": aliases}
                      for i, (a, b, aliases) in enumerate(pairs)],
            "first_divergence": None if first is None else {"index": first, "name": "?", "diagnosis": []}}


@pytest.mark.parametrize("pairs, first, status, wanted", [
    ([("m.q", "q", {}), ("m.k", "k", {})], 0, 1, {"right": 2, "localised": True}),
    ([("m.q", "q", {}), ("m.k", "k", {})], 1, 1, {"right": 2, "localised": False, "cause": "its pair agrees"}),
    ([("m.x", "q", {"a": ["m.q"]}), ("m.k", "y", {"b": ["k"]})], 0, 1, {"right": 2, "localised": True, "ghosts paired": 1}),
    ([("m.k", "q", {}), ("m.q", "k", {})], None, 0, {"wrong": 2, "unseen": True, "localised": False}),
    ([], None, 1, {"missing": 2, "unseen": False, "localised": False, "cause": "its pair missing"}),
])
def test_the_scorer(pairs, first, status, wanted, tmp_path):
    (tmp_path / "expect.json").write_text(json.dumps({
        "a": "a.pt", "b": "b.pt", "arch": "", "style": "", "way": "", "bug": "x", "types": [], "parts": {}, "part_of": {},
        "pairs": {"q": ["m.q"], "k": ["m.k"]}, "ghosts": ["y"], "first": ["q", "m.q"], "accept": []}))
    fake = tmp_path / "tdbg"
    fake.write_text(f"#!/bin/sh\ncat <<'EOF'\n{json.dumps(answer(pairs, first))}\nEOF\nexit {status}\n")
    fake.chmod(0o755)
    got = score.judge(tmp_path, str(fake), hand_over=False)
    assert {k: got.get(k) for k in wanted} == wanted


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ports")
    assert generate.build(folder, SEED, CLEAN, False) == CLEAN
    assert generate.build(folder, SEED, BUGS, True) == BUGS
    return folder


@pytest.mark.slow
def test_figures(cases, capsys):
    rows, trouble = score.judged(BINARY, cases)
    assert not trouble
    with capsys.disabled():
        print()
        score.table(rows)
    missed = score.below(score.figures(rows), BARS)
    assert not missed, [m for r in rows for m in r["misses"] if not m.startswith("missing")][:40]


@pytest.mark.slow
def test_figures_with_the_true_pairs(cases):
    """Pairing aside: nothing may be unseen, and what is not found is for layouts, order and verdicts to answer for."""
    rows, trouble = score.judged(BINARY, cases, hand_over=True)
    assert not trouble
    missed = score.below(score.figures(rows), BARS_HANDED_OVER)
    assert not missed, [m for r in rows for m in r["misses"] if not m.startswith("missing")][:40]
