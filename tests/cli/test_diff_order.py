"""The order of execution that `tdbg diff` finds where names have no stages: by the roles of modules; and who inherits."""
import numpy as np
import pytest

import tensorfiles
from difftools import compare, dump

MODULES = ["input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.softmax",
           "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.act_fn", "mlp.down_proj"]  # fmt: skip


def chain(names, spoilt=None):
    """Unrelated tensors; from `spoilt` on, B's are twice A's."""
    rng = np.random.default_rng(3)
    a = {name: rng.standard_normal((6, 8)).astype(np.float32) for name in names}
    return a, {name: 2 * x if spoilt and names.index(name) >= names.index(spoilt) else x for name, x in a.items()}


@pytest.mark.parametrize("module", ["self_attn.q_proj", "self_attn.v_proj", "post_attention_layernorm", "mlp.gate_proj"])
@pytest.mark.parametrize("separator", [".", "/"])
def test_a_folder_of_modules_is_in_the_order_of_execution(tdbg, tmp_path, module, separator):
    layers = [f"model.layers.{n}.{m}" for n in range(3) for m in MODULES]
    in_order = [name.replace(".", separator) for name in ["model.embed_tokens", *layers, "model.norm", "lm_head"]]
    spoilt = f"model.layers.1.{module}".replace(".", separator)
    for side, arrays in zip("ab", chain(in_order, spoilt)):
        dump(tmp_path / side, arrays)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert answer["first_divergence"]["name"] == f"{spoilt}.npy"
    listed = [p["name"].removesuffix(".npy") for p in answer["pairs"]]
    acting = [name for name in listed if not name.endswith(("softmax", "act_fn", "gate_proj"))]
    assert acting == [name for name in in_order if name in acting]
    for inner, closing in ("self_attn.softmax", "self_attn.o_proj"), ("mlp.act_fn", "mlp.down_proj"):
        place = lambda m: listed.index(f"model.layers.0.{m}".replace(".", separator))
        assert place(inner) < place(closing)


def test_an_encoder_runs_before_its_decoder(tdbg, tmp_path):
    encoder = ["layer.0.layer_norm", "layer.0.SelfAttention", "layer.1.DenseReluDense"]
    decoder = ["layer.0.SelfAttention", "layer.1.EncDecAttention", "layer.2.DenseReluDense"]
    in_order = [f"encoder.block.{n}.{m}" for n in range(2) for m in encoder] + ["encoder.final_layer_norm"]
    in_order += [f"decoder.block.{n}.{m}" for n in range(2) for m in decoder] + ["decoder.final_layer_norm"]
    for spoilt in "encoder.block.1.layer.1.DenseReluDense", "decoder.block.0.layer.1.EncDecAttention":
        for side, arrays in zip("ab", chain(in_order, spoilt)):
            dump(tmp_path / side, arrays)
        answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
        assert [p["name"].removesuffix(".npy") for p in answer["pairs"]] == in_order
        assert answer["first_divergence"]["name"] == f"{spoilt}.npy" and answer["notes"] == []


def test_a_list_that_somebody_wrote_as_it_ran_keeps_its_order(tdbg, tmp_path):
    in_order = [f"layers.{n}.{m}" for n in range(2) for m in ("mlp.down_proj", "self_attn.q_proj", "a", "mlp")]
    a, b = chain(in_order, "layers.1.self_attn.q_proj")
    np.savez(tmp_path / "a.npz", **a)
    np.savez(tmp_path / "b.npz", **b)
    answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=1)
    assert [p["name"].split(":")[-1] for p in answer["pairs"]] == in_order


def test_branches_of_a_layer_do_not_feed_each_other(tdbg, tmp_path):
    in_order = [f"model.layers.{n}.{m}" for n in range(2) for m in MODULES]
    a, b = chain(in_order)
    for branch in "q_proj", "v_proj":
        b[f"model.layers.1.self_attn.{branch}"] = 2 * b[f"model.layers.1.self_attn.{branch}"]
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert [p["origin"] for p in answer["pairs"] if p["verdict"] == "diverged"] == ["born", "born"]


@pytest.mark.parametrize("key", ["tensor", "data", "arr_0", "weight", "output"])
def test_a_file_for_each_tensor_with_a_key_of_no_meaning(tdbg, tmp_path, key):
    """The file names layer and stage; the key only fills a place, or says which part of the stage it is."""
    names = {"self_attention.q_proj": "attn_q", "self_attention.k_proj": "attn_k", "mlp.linear_fc2": "ffn_down"}
    a, b = {}, tmp_path / "b"
    b.mkdir()
    rng = np.random.default_rng(5)
    for n in range(3):
        for module, short in names.items():
            x = rng.standard_normal((6, 8)).astype(np.float32)
            a[f"decoder.layers.{n}.{module}" + (f".{key}" if key in ("weight", "output") else "")] = x
            y = -x if (n, short) == (1, "attn_k") else x
            entry = {key: ("F32", list(y.shape), y.tobytes())}
            (b / f"blk.{n}.{short}.safetensors").write_bytes(tensorfiles.safetensors(entry))
    np.savez(tmp_path / "a.npz", **a)
    answer = compare(tdbg, tmp_path / "a.npz", b, status=1)
    assert answer["summary"]["pairs"] == 9 and answer["summary"]["only_a"] == 0
    assert answer["first_divergence"]["name"].startswith("decoder.layers.1.self_attention.k_proj")


@pytest.mark.slow
@pytest.mark.native
def test_a_long_run_that_went_wrong(tdbg, tmp_path):
    """Each tensor of each step diverged, and is asked after by every other: squared, that would take minutes."""
    rng = np.random.default_rng(8)
    names = [f"step-{s}/layers.{n}.{part}.output" for s in range(400) for n in range(12)
             for part in ("ln1", "attn.q", "attn.k", "attn.o", "mlp.up", "mlp.down")]  # fmt: skip
    values = {name: rng.standard_normal((2, 9)).astype(np.float32) for name in names}
    (tmp_path / "a.safetensors").write_bytes(tensorfiles.safetensors(values))
    (tmp_path / "b.safetensors").write_bytes(tensorfiles.safetensors({n: x * np.float32(1.1) for n, x in values.items()}))
    text = tdbg.text("diff", "-q", tmp_path / "a.safetensors", tmp_path / "b.safetensors", status=1)
    assert "28799 later tensors inherit the error" in " ".join(text.split())
