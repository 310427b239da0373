"""The order of execution that `tdbg diff` finds where names have no stages: by the roles of modules; and who inherits."""
import json
import os

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


# --- what tells the order -----------------------------------------------------------------------------------------


def msprobe(folder, spoil=0.0, sidecar=True):
    """A step as msprobe dumps it: two linear layers with a GELU between them, forward and backward."""
    torch = pytest.importorskip("torch")
    tensors, data = folder / "step0" / "rank0" / "dump_tensor_data", {}
    tensors.mkdir(parents=True)
    torch.manual_seed(0)
    x, first, second = torch.randn(8, 16), torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
    with torch.no_grad():
        first.weight[3, 4] += spoil

    def save(name, tensor):
        torch.save(tensor.detach(), tensors / f"{name}.pt")
        return {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape), "data_name": f"{name}.pt"}

    def call(key, x, y, module=None):
        data[key] = {"input_args": [save(f"{key}.input.0", x)], "input_kwargs": {}, "output": [save(f"{key}.output.0", y)]}
        if module:
            data[key]["parameters"] = {k: save(f"{key}.parameters.{k}", v) for k, v in module.named_parameters()}

    h = first(x)
    call("Module.linear.0.Linear.forward.0", x, h, first)
    g = torch.nn.functional.gelu(h)
    call("Functional.gelu.0.forward", h, g)
    y = second(g)
    call("Module.linear.1.Linear.forward.0", g, y, second)
    dg, dh = torch.autograd.grad((y**2).sum(), [g, h])
    call("Module.linear.1.Linear.backward.0", 2 * y, dg)
    call("Functional.gelu.0.backward", dg, dh)
    if sidecar:
        document = {"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": str(tensors), "data": data}
        (tensors.parent / "dump.json").write_text(json.dumps(document))
        (tensors.parent / "stack.json").write_text("{}")
    for file in tensors.iterdir():
        os.utime(file, ns=(10**18, 10**18))  # as copied
    return folder


def base(pair):
    return pair["name"].rsplit("/", 1)[-1].removesuffix(".pt").removesuffix(".npy")


WEIGHT = "Module.linear.0.Linear.forward.0.parameters.weight"


@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, True)])
def test_a_sidecar_lists_the_calls(tdbg, tmp_path, sides):
    a, b = msprobe(tmp_path / "a", 0, sides[0]), msprobe(tmp_path / "b", 0.7, sides[1])
    answer = compare(tdbg, a, b, status=1)
    assert answer["order"] == "sidecar" and base(answer["first_divergence"]) == WEIGHT
    assert {base(p): p["origin"] for p in answer["pairs"] if p.get("origin") == "born"} == {WEIGHT: "born"}
    listed = [base(p) for p in answer["pairs"]]
    assert listed.index("Functional.gelu.0.forward.input.0") > listed.index("Module.linear.0.Linear.forward.0.output.0")
    assert listed.index("Functional.gelu.0.backward.input.0") > listed.index("Module.linear.1.Linear.backward.0.output.0")
    assert answer["skipped"] == []
    assert [base(p) for p in compare(tdbg, a, b, "--only", "born", status=1)["pairs"]] == [WEIGHT]


def test_without_an_order_nothing_is_first_or_inherited(tdbg, tmp_path):
    a, b = msprobe(tmp_path / "a", 0, False), msprobe(tmp_path / "b", 0.7, False)
    answer = compare(tdbg, a, b, status=1)
    assert answer["order"] == "unknown"
    wrong = [p for p in answer["pairs"] if p["verdict"] == "diverged"]
    assert all(p.get("origin") != "inherited" for p in wrong)
    forward = [p for p in wrong if ".forward" in p["name"]]
    largest = max(forward, key=lambda p: float(p["metrics"]["rel_l2"]) / float(p["floor"]))
    assert answer["first_divergence"]["index"] == largest["index"]
    text = " ".join(tdbg.text("diff", "-q", a, b, status=1).split())
    assert text.startswith("Largest divergence: ") and "First" not in text and "inherit" not in text
    listed = [".backward" in p["name"] for p in answer["pairs"]]
    assert listed == sorted(listed)  # forward first


def test_a_number_in_the_names_is_as_good(tdbg, tmp_path):
    names = ["embed", "zeta", "alpha", "head"]
    a, b = chain(names, "zeta")
    for folder, arrays in ("a", a), ("b", b):
        dump(tmp_path / folder, {f"step=0___rank=0___dump_index={i + 9}___name={n}": x for i, (n, x) in enumerate(arrays.items())})
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert answer["order"] == "sidecar" and answer["first_divergence"]["name"].endswith("zeta.npy")


def timed(folder, arrays, order):
    dump(folder, arrays)
    for i, name in enumerate(order):
        os.utime(folder / f"{name}.npy", ns=(10**18 + i * 1000, 10**18 + i * 1000))


def test_the_times_of_the_files(tdbg, tmp_path):
    names = ["stem", "body", "neck", "act", "head"]
    for side, arrays in zip("ab", chain(names, "neck")):
        timed(tmp_path / side, arrays, names)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert answer["order"] == "times" and answer["first_divergence"]["name"] == "neck.npy"
    assert [p["name"].removesuffix(".npy") for p in answer["pairs"]] == names
    assert "by their times" in " ".join(tdbg.text("diff", "-q", tmp_path / "a", tmp_path / "b", status=1).split())


@pytest.mark.parametrize("order", ["alphabetical", "equal", "backwards"])
def test_times_that_tell_nothing(tdbg, tmp_path, order):
    """A copy has the times of the copying: in the order of names, all at once, or against the numbers in the names."""
    names = ["act", "conv1", "conv2", "conv3", "norm"]
    listed = {"alphabetical": names, "equal": [], "backwards": names[::-1]}[order]
    for side, arrays in zip("ab", chain(names, "conv2")):
        timed(tmp_path / side, arrays, listed)
        for name in names if order == "equal" else []:
            os.utime(tmp_path / side / f"{name}.npy", ns=(10**18, 10**18))
    assert compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)["order"] == "unknown"


def test_a_dict_keeps_the_order_of_its_writer_unless_it_was_sorted(tdbg, tmp_path):
    names = ["stem", "body", "neck", "act", "head", "tail"]
    for order, evidence in (names, "file"), (sorted(names), "unknown"):
        a, b = chain(names, "neck")
        for side, arrays in ("a", a), ("b", b):
            np.savez(tmp_path / f"{side}.npz", **{n: arrays[n] for n in order})
        answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=1)
        assert answer["order"] == evidence
        assert evidence == "unknown" or answer["first_divergence"]["name"] == "neck"


def test_weights_of_a_file_are_no_chain(tdbg, tmp_path):
    rng = np.random.default_rng(1)
    w, b = rng.standard_normal((9, 8)), rng.standard_normal(8)
    for prefix in "", "layers.0.", "0_":
        np.savez(tmp_path / "a.npz", **{f"{prefix}w": w, f"{prefix}b": b})
        np.savez(tmp_path / "b.npz", **{f"{prefix}w": w * 1.1, f"{prefix}b": b})
        answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=1)
        assert answer["notes"] == [] and answer["first_divergence"]["stage"] == ("w" if prefix else f"{prefix}w")


# --- who inherits -------------------------------------------------------------------------------------------------


def origins(answer):
    return {p["name"].removesuffix(".npy"): p.get("origin") for p in answer["pairs"] if p["verdict"] == "diverged"}


def test_nothing_is_inherited_across_what_agrees(tdbg, tmp_path):
    names = [f"fc{i}" for i in range(8)]
    a, _ = chain(names)
    b = {n: 1.3 * x if n in ("fc2", "fc3", "fc6", "fc7") else x for n, x in a.items()}
    np.savez(tmp_path / "a.npz", **a)
    np.savez(tmp_path / "b.npz", **b)
    answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=1)
    assert origins(answer) == {"fc2": "born", "fc3": "inherited", "fc6": "born", "fc7": "inherited"}


def test_nothing_is_inherited_across_a_layer_that_agrees(tdbg, tmp_path):
    in_order = [f"model.layers.{n}.{m}" for n in range(4) for m in MODULES]
    a, _ = chain(in_order)
    spoilt = ("layers.0.mlp.down_proj", "layers.1.", "layers.3.self_attn.o_proj", "layers.3.post", "layers.3.mlp")
    b = {n: 1.3 * x if any(s in n for s in spoilt) else x for n, x in a.items()}
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    found = origins(compare(tdbg, tmp_path / "a", tmp_path / "b", status=1))
    assert [n for n, o in found.items() if o == "born"] == ["model.layers.0.mlp.down_proj", "model.layers.3.self_attn.o_proj"]


def test_a_jump_in_every_layer_is_a_mistake_in_every_layer(tdbg, tmp_path):
    rng, a, b = np.random.default_rng(4), {}, {}
    for n in range(4):
        for stage, error in ("attn_in", 0.13 * (n > 0)), ("attention_out", 0.93), ("residual", 0.12), ("ff", 0.13):
            x, noise = rng.standard_normal((2, 6, 32))
            a[f"net.layers.{n}.{stage}"] = x
            b[f"net.layers.{n}.{stage}"] = x + error * np.linalg.norm(x) / np.linalg.norm(noise) * noise
    np.savez(tmp_path / "a.npz", **a)
    np.savez(tmp_path / "b.npz", **b)
    born = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", "--only", "born", status=1)["pairs"]
    assert [p["name"] for p in born] == [f"net.layers.{n}.attention_out" for n in range(4)]


# --- what lies in between, and lengths ----------------------------------------------------------------------------


def test_what_has_no_partner_before_the_first_divergence_is_named(tdbg, tmp_path):
    names = ["stem", "body", "neck", "act", "head"]
    a, b = chain(names, "act")
    del b["neck"]
    np.savez(tmp_path / "a.npz", **a)
    np.savez(tmp_path / "b.npz", **b)
    answer = compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=1)
    assert answer["first_divergence"]["unpaired_before"] == {"a": ["neck"], "b": [], "count": 1}
    text = " ".join(tdbg.text("diff", "-q", tmp_path / "a.npz", tmp_path / "b.npz", status=1).split())
    assert "Before it, 1 tensor has no partner (neck of A): the mistake may be in there." in text
    del a["neck"]
    np.savez(tmp_path / "a.npz", **a)
    assert "unpaired_before" not in compare(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", status=1)["first_divergence"]


def test_a_prefix_is_told_by_its_length(tdbg, tmp_path):
    x = np.random.default_rng(2).standard_normal((100, 8))
    np.save(tmp_path / "a.npy", x)
    np.save(tmp_path / "b.npy", x[:30])
    text = " ".join(tdbg.text("diff", "-q", tmp_path / "a.npy", tmp_path / "b.npy", status=1).split())
    assert "B has only 30 of 100 of axis 0" in text and "off by" not in text


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.parametrize("names", [[f"layers.0.x{i:05}" for i in range(20000)], [f"t{i:05}" for i in range(20000)]])
def test_many_names_of_no_order_take_no_square_of_their_number(tdbg, tmp_path, names):
    rng = np.random.default_rng(8)
    values = {name: rng.standard_normal(4).astype(np.float32) for name in names}
    (tmp_path / "a.safetensors").write_bytes(tensorfiles.safetensors(values))
    (tmp_path / "b.safetensors").write_bytes(tensorfiles.safetensors({n: x * np.float32(1.1) for n, x in values.items()}))
    text = tdbg.text("diff", "-q", tmp_path / "a.safetensors", tmp_path / "b.safetensors", status=1)
    assert "inherit" not in text
