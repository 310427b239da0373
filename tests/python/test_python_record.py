"""tdbg.record: what is recorded is what the model computed, bit for bit, whatever the model does."""
import collections
import copy
import dataclasses
import os
import pickle
import threading

import gpt
import numpy
import pytest
import tdbg
import torch
from modules import Echo
from runs import bits, flops, query, scopes, values
from torch import nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

TWO = not torch.__version__.startswith("1.")
REENTRANT = [{"use_reentrant": True}, {"use_reentrant": False}] if TWO else [{}]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def echoed(run, function, *args, **options):
    """What is recorded of one call of `function` as a module."""
    module = Echo(function)
    with tdbg.record(module, run, **options):
        module(*args)
    return values(run)


def witnessed(model):
    """Hooks of our own, written the obvious way: every output and its gradient, cloned."""
    seen = {}

    def hook(name):
        def see(module, args, output):
            seen[name] = output.detach().clone()
            if output.requires_grad:
                output.register_hook(lambda grad: seen.__setitem__(f"{name}.grad", grad.clone()))
        return see

    for name, module in model.named_modules():
        module.register_forward_hook(hook(f"{name}.output" if name else "output"))
    return seen


# --- values and gradients ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_outputs_and_gradients_bit_for_bit(run, dtype):
    model = gpt.model().to(dtype)
    seen = witnessed(model)
    with tdbg.record(model, run) as recording:
        for step in range(2):
            model.zero_grad()
            model(gpt.ids(step)).float().logsumexp(-1).sum().backward()
            expected = {**{name: bits(t) for name, t in seen.items()},
                        **{f"{name}.grad": bits(p.grad) for name, p in model.named_parameters()}}
            recording.step()
            if step == 0:
                first = expected
    assert values(run, 0) == first
    assert values(run, 1) == expected
    assert "layers.1.attn.qkv.weight.grad" in first and "layers.0.mlp.1.output.grad" in first


def test_read_back_through_the_library(run):
    model = gpt.model()
    seen = witnessed(model)
    with tdbg.record(model, run, grads=False):
        model(gpt.ids())
    tensors = tdbg.load(run)
    assert len(tensors) == len(seen)
    for name, value in seen.items():
        assert tensors[name].tobytes() == value.numpy().tobytes(), name


def test_the_model_is_not_changed_by_being_recorded(run):
    plain, watched = gpt.model(), gpt.model()
    for model in (plain, watched):
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        recording = tdbg.record(model, run) if model is watched else None
        for step in range(3):
            optimiser.zero_grad()
            model(gpt.ids(step)).logsumexp(-1).sum().backward()
            optimiser.step()
            if recording:
                recording.step()
        if recording:
            recording.close()
    for a, b in zip(plain.parameters(), watched.parameters()):
        assert torch.equal(a, b)


# --- what is asked for ---------------------------------------------------------------------------------------------

def test_patterns_choose_tensors_and_modules(run, tmp_path):
    model = gpt.model()
    with tdbg.record(model, run, tensors="layers.1.*"):
        model(gpt.ids()).sum().backward()
    names = list(values(run))
    assert names and all(name.startswith("layers.1.") for name in names)
    assert "layers.1.attn.qkv.weight.grad" in names and "layers.1.ln1.output" in names
    other = tmp_path / "other"
    with tdbg.record(model, other, tensors=["*.attn", "head.weight.grad"]):
        model(gpt.ids()).sum().backward()
    assert set(values(other)) == {f"layers.{i}.attn.output{end}" for i in range(3) for end in ("", ".grad")} | \
        {"head.weight.grad"}
    assert ("GPT", "layers.0", "layers.0.mlp", "layers.0.mlp.1") in scopes(other), "scopes are not chosen"


@pytest.mark.parametrize("pattern", ["rnn.output[0]", "*.output[0]", "*output[[]0]"])
@pytest.mark.parametrize("how", [lambda pattern: {"tensors": pattern}, lambda pattern: {"capture": f"{pattern}=full"}])
def test_names_with_brackets_are_patterns_of_themselves(run, pattern, how):
    model = nn.ModuleDict({"rnn": nn.LSTM(2, 2)})
    with tdbg.record(model, run, grads=False, **how(pattern)):
        model["rnn"](torch.ones(1, 2))
    assert list(values(run)) == ["rnn.output[0]"]


def test_every_nth_step(run):
    model = gpt.model()
    with tdbg.record(model, run, tensors="head", every=2, grads=False) as recording:
        for _ in range(5):
            model(gpt.ids())
            recording.step()
    assert query(run, "SELECT DISTINCT s.number FROM tensor t JOIN step s ON s.ordinal = t.step") == [(0,), (2,), (4,)]
    assert query(run, "SELECT count(*) FROM step") == [(5,)]


def test_statistics_only(run):
    model = gpt.model()
    with tdbg.record(model, run, stats_only=True, grads=False):
        output = model(gpt.ids()).detach()
    assert not list(run.glob("*.safetensors"))
    [(count, mean, absmax)] = query(run, "SELECT count, mean, absmax FROM tensor WHERE name = 'output'")
    assert count == output.numel()
    assert mean == pytest.approx(output.double().mean().item(), rel=1e-12)
    assert absmax == output.abs().max().item()


def test_capture_rules_pass_through(run):
    model = gpt.model()
    with tdbg.record(model, run, capture="*.ln1.*=full; output=stats"):
        model(gpt.ids())
    assert set(values(run)) == {f"layers.{i}.ln1.output" for i in range(3)}
    assert len(query(run, "SELECT name FROM tensor")) == 4
    with pytest.raises(ValueError, match="capture says what every and stats_only would"):
        tdbg.record(model, run, capture="*=full", every=2)
    with pytest.raises(tdbg.Error):
        tdbg.record(model, run.parent / "bad", capture="nonsense")


def test_inputs_and_parameters(run):
    model = gpt.model()
    with tdbg.record(model, run, inputs=True, params=True, grads=False) as recording:
        model(gpt.ids())
        first = {name: bits(p) for name, p in model.named_parameters()}
        with torch.no_grad():
            model.head.weight.mul_(2)
        recording.step()
        model(gpt.ids())
        recording.step()
    assert values(run)["input"] == bits(gpt.ids())
    assert {name: values(run)[name] for name in first} == first
    assert values(run, 1)["head.weight"] == bits(model.head.weight)
    assert not (run / "step-00000002.safetensors").exists(), "a step that nothing happened in"


def test_scalars_scopes_tensors_and_costs(run):
    model = gpt.model()
    with tdbg.record(model, run, grads=False) as recording:
        with recording.scope("data"):
            batch = gpt.ids()
        recording.tensor("mine", torch.arange(3.))
        recording.scalar("loss", model(batch).mean())
        recording.step(7)
        recording.scalar("loss", 2)
        recording.scalar("lr", torch.tensor(0.5), step=3)
    assert values(run)["mine"] == bits(torch.arange(3.))
    assert [row[:2] for row in query(run, "SELECT name, step FROM scalar")] == [("loss", 0), ("loss", 7), ("lr", 3)]
    assert ("data",) in scopes(run)


# --- what models do ------------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Result:
    logits: object
    hidden: object = None


class ModelOutput(collections.OrderedDict):
    """As in Hugging Face's library: a dict with attributes."""


def test_names_of_nested_outputs(run):
    one = torch.ones(1)
    output = (one, [one, None, "text"], {"a": one, "b": (one,)}, Pair(one, one), Result(one, {"x": one}),
              ModelOutput(logits=one))
    assert list(echoed(run, lambda: output)) == [
        "output[0]", "output[1][0]", "output[2].a", "output[2].b[0]", "output[3].left", "output[3].right",
        "output[4].logits", "output[4].hidden.x", "output[5].logits"]


class Lazy(collections.UserDict):
    """Makes its items when they are asked for, and cannot make one of them."""

    def __getitem__(self, key):
        if key == "bad":
            raise RuntimeError("not computed")
        return super().__getitem__(key)


@dataclasses.dataclass
class LazyResult:
    x: object
    bad: object = None

    def __getattribute__(self, name):
        if name == "bad":
            raise RuntimeError("not computed")
        return super().__getattribute__(name)


@pytest.mark.parametrize("make", [lambda x: Lazy(bad=1, x=x), LazyResult], ids=["mapping", "dataclass"])
def test_an_output_that_cannot_give_an_item_is_recorded_without(run, make):
    assert list(echoed(run, lambda: make(torch.ones(1)))) == ["output.x"]


def test_an_output_that_contains_itself_ends(run):
    loop = [torch.ones(1)]
    loop.append(loop)
    assert "output[0]" in echoed(run, lambda: loop)


BASE = torch.arange(24.).reshape(4, 6)
KINDS = {
    "transposed": BASE.t(), "expanded": BASE[0].expand(3, 6), "stepped": BASE[::2, 1::2], "scalar": BASE[1, 2],
    "empty": BASE[:0], "channels": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "half": BASE.half(), "bfloat16": BASE.bfloat16(), "bool": BASE > 3, "int8": BASE.to(torch.int8),
    "complex": torch.randn(3, dtype=torch.complex64), "parameter": nn.Parameter(BASE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_tensors(run, kind):
    assert echoed(run, lambda: KINDS[kind])["output"] == bits(KINDS[kind])


def test_tensors_without_an_address_of_their_own(run):
    spun = torch.randn(3, dtype=torch.complex64)
    quantised = torch.quantize_per_tensor(BASE, 0.5, 0, torch.qint8)
    got = echoed(run, lambda: {"sparse": BASE.to_sparse(), "conj": spun.conj(), "quantised": quantised,
                               "neg": spun.conj().imag})
    assert got == {"output.sparse": bits(BASE), "output.conj": bits(spun.conj().resolve_conj()),
                   "output.quantised": bits(quantised.dequantize()), "output.neg": bits(-spun.imag)}


def test_meta_tensors_are_passed_over(run):
    assert list(echoed(run, lambda: (torch.ones(2, device="meta"), torch.ones(1)))) == ["output[1]"]
    with tdbg.record(nn.Linear(2, 2, device="meta"), run.parent / "meta"):
        pass


def odd_uses():
    """Models run in ways that leave nothing with an address, and must run all the same."""
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(3, 4)
    attention = nn.MultiheadAttention(4, 2)
    yield "traced", model, lambda: torch.jit.trace(model, x)
    yield "data parallel", nn.DataParallel(model), lambda: model(x)
    yield "keywords", attention, lambda: attention(query=x, key=x, value=x)
    yield "second order", model, lambda: torch.autograd.grad(model(x).sum(), list(model.parameters()), create_graph=True)
    if TWO:
        yield "vmap", model, lambda: torch.func.vmap(model)(x)
        yield "jacobian", model, lambda: torch.func.jacrev(model)(x)
        yield "compiled", model, lambda: torch.compile(model, backend="eager", fullgraph=True)(x)
        yield "exported", model, lambda: torch.export.export(model, (x,))


@pytest.mark.parametrize("model, use", [pytest.param(*case, id=name) for name, *case in odd_uses()])
def test_recording_never_fails_the_model(run, model, use):
    with tdbg.record(model, run):
        use()


def test_scripted_models(run):
    scripted = torch.jit.script(nn.Linear(2, 2))
    with pytest.raises(TypeError, match="takes no hooks"):
        tdbg.record(scripted, run)
    model = nn.Sequential(nn.ReLU(), scripted)
    with tdbg.record(model, run.parent / "mixed", grads=False):
        model(torch.ones(1, 2))
    assert not run.exists()
    assert list(values(run.parent / "mixed")) == ["0.output", "output"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_cuda_tensors_are_copied(run):
    assert echoed(run, lambda: BASE.cuda())["output"] == bits(BASE)


def test_no_grad_and_autocast(run):
    model = gpt.model()
    with tdbg.record(model, run) as recording:
        with torch.no_grad():
            model(gpt.ids())
        recording.step()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(gpt.ids())
    assert not [name for name in values(run) if name.endswith(".grad")]
    assert values(run, 1)["layers.0.attn.qkv.output"][0] == "BF16"


def test_a_module_used_again_gets_numbers(run):
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    x = torch.randn(2, 3)
    with tdbg.record(model, run) as recording:
        model(x).sum().backward()
        recording.step()
        model(x)
    first = shared(x)
    assert values(run)["0.output"] == bits(first)
    assert values(run)["0.output#2"] == bits(shared(first.relu()))
    assert values(run)["0.output.grad#2"] == bits(torch.ones(2, 3)), "the gradient has the number of its output"
    assert "1.output" in values(run, 1) and "1.output#2" not in values(run, 1)


def test_gradients_of_two_backward_passes_are_told_apart(run, tdbg_binary):
    """Numbers of calls, given by the module, and numbers of passes, given by the library."""
    shared = nn.Linear(3, 1)
    with tdbg.record(shared, run):
        first, second = shared(torch.randn(2, 3)), shared(torch.randn(2, 3))
        (first.sum() + second.sum()).backward(retain_graph=True)
        (first * second).sum().backward()
    names = [t["name"] for t in tdbg_binary.json("ls", run)["tensors"]]
    assert len(set(names)) == len(names) and sum(name.startswith("output.grad") for name in names) == 4


def test_a_parameter_that_a_module_returns_has_one_gradient_a_step(run):
    position = Echo(lambda: position.weight)
    position.weight = nn.Parameter(torch.randn(3))
    model = nn.ModuleDict({"position": position, "head": nn.Linear(3, 1)})
    with tdbg.record(model, run) as recording:
        for _ in range(3):
            model["head"](torch.ones(2, 3) + model["position"]()).sum().backward()
            recording.step()
        assert len(position.weight._backward_hooks) == 1
    assert not position.weight._backward_hooks
    for step in range(3):
        assert [name for name in values(run, step) if name.startswith("position.output.grad")] == ["position.output.grad"]


def test_in_place_changes_do_not_reach_back(run):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))
    x = torch.randn(4, 3)
    with tdbg.record(model, run):
        model(x).sum().backward()
    assert values(run)["0.output"] == bits(model[0](x))
    assert values(run)["1.output"] == bits(model[0](x).relu())


def test_outputs_of_every_kind_in_turn(run):
    """What is known of an output from the last call must not be taken for this one."""
    several = [torch.randn(2, 3), torch.randn(3, 2), torch.randn(6), torch.randn(2, 3).double(), torch.randn(3, 2).t(),
               torch.randn(2, 3, dtype=torch.complex64), torch.randn(1, 1, 2, 3), torch.randn(2, 6)[:, ::2], torch.randn(()),
               torch.randn(2, 3), torch.randn(0, 3), torch.randn(2, 3).to_sparse(), torch._neg_view(torch.randn(2, 3)),
               torch.randn(3).expand(2, 3), nn.Parameter(torch.randn(2, 3)), torch.randn(2, 3)]
    model = Echo(lambda x: x)
    with tdbg.record(model, run) as recording:
        for x in several:
            model(x)
            recording.step()
    for step, x in enumerate(several):
        assert values(run, step)["output"] == bits(x.to_dense() if x.is_sparse else x.resolve_neg()), step


LARGE = torch.arange(float(1 << 20))


@pytest.mark.parametrize("change", [
    lambda x: x, lambda x: x.neg_(), lambda x: [x.data.neg_()], lambda x: [x.numpy().__imul__(2)],
    lambda x: x.__setitem__(12345, -1e9), lambda x: x[::2], lambda x: x.clone().neg_()], ids=[
    "nothing", "in place", "by data", "by numpy", "one value", "a view", "a copy"])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_large_outputs_that_are_passed_on(run, change, mode):
    """Statistics of what a module returns are those of its values then, whatever its part returned before."""
    seen = []

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Echo(lambda: LARGE.clone())

        def forward(self):
            x = self.inner()
            changed = change(x)
            x = changed if isinstance(changed, torch.Tensor) else x
            seen.append((x.min().item(), x.max().item(), x.double().mean().item()))
            return x

    model = Outer()
    with mode(), tdbg.record(model, run, stats_only=True) as recording:
        for _ in range(2):
            model()
            recording.step()
    kept = query(run, "SELECT min, max, mean FROM tensor WHERE name = 'output' ORDER BY id")
    assert kept == [pytest.approx(figures, rel=1e-12) for figures in seen]
    inner = query(run, "SELECT min, max FROM tensor WHERE name = 'inner.output'")
    assert inner == [(0, LARGE[-1].item())] * 2


def test_a_layer_that_is_called_with_other_shapes_costs_what_it_does(run):
    model = nn.Linear(3, 5)
    with tdbg.record(model, run) as recording:
        for rows in (2, 2, 7):
            model(torch.randn(rows, 3))
            recording.step()
    assert flops(run) == [60, 60, 210]


@pytest.mark.parametrize("how", REENTRANT, ids=str)
def test_checkpointing_records_once(run, how):
    class Saving(gpt.GPT):
        def forward(self, ids):
            x = self.wte(ids)
            for layer in self.layers:
                x = checkpoint(layer, x, **how)
            return self.head(self.ln(x))

    plain, saving = Saving(layers=3), Saving(layers=3)
    saving.load_state_dict(plain.state_dict())
    plain.forward = lambda ids: plain.head(plain.ln(plain.layers[2](plain.layers[1](plain.layers[0](plain.wte(ids))))))
    for model, folder in ((plain, run.parent / "plain"), (saving, run)):
        with tdbg.record(model, folder):
            model(gpt.ids()).sum().backward()
    assert values(run) == values(run.parent / "plain")


@pytest.mark.parametrize("how", REENTRANT, ids=str)
@pytest.mark.parametrize("times", [1, 2])
def test_gradients_of_a_shared_module_keep_their_calls_under_checkpointing(run, how, times):
    """Segments are run again from the last to the first, the calls within one in their order."""
    block = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def segment(x):
        for _ in range(times):
            x = block(x)
        return x

    x = torch.randn(2, 4)
    folders = {"plain": lambda part, x: part(x), "saving": lambda part, x: checkpoint(part, x, **how)}
    for folder, call in folders.items():
        with tdbg.record(block, run / folder) as recording:
            for _ in range(2):
                y = x.clone().requires_grad_()
                for _ in range(3):
                    y = call(segment, y)
                y.pow(2).sum().backward()
                recording.step()
    for step in range(2):
        plain, saving = values(run / "plain", step), values(run / "saving", step)
        outputs = [name for name in plain if ".output" in name or name.startswith("output")]
        assert {name: saving.get(name) for name in outputs} == {name: plain[name] for name in outputs}


def test_parametrisations(run):
    class Double(nn.Module):
        def forward(self, weight):
            return weight * 2

    model = nn.Sequential(nn.Linear(2, 2))
    parametrize.register_parametrization(model[0], "weight", Double())
    with tdbg.record(model, run):
        model(torch.ones(1, 2)).sum().backward()
    got = values(run)
    assert got["0.parametrizations.weight.0.output"] == bits(model[0].weight)
    assert got["0.parametrizations.weight.original.grad"] == bits(torch.full((2, 2), 2.))


def test_threads_record_side_by_side(run):
    model = gpt.model()
    with tdbg.record(model, run, grads=False):
        threads = [threading.Thread(target=lambda i=i: model(gpt.ids(i))) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    got = values(run)
    expected = sorted(bits(model(gpt.ids(i)))[2] for i in range(4))
    assert sorted(got[name][2] for name in ("output", "output#2", "output#3", "output#4")) == expected
    paths = scopes(run)
    assert {path[:1] for path in paths} == {("GPT",)} and len(paths) == len([m for m in model.modules()]) - 1


def test_replicas_share_the_recording(run):
    model = gpt.model()
    with tdbg.record(model, run, grads=False):
        model._replicate_for_data_parallel()(gpt.ids())
    assert values(run)["output"] == bits(model(gpt.ids()))


def test_recordings_nest(run):
    model = gpt.model()
    with tdbg.record(model, run, grads=False), tdbg.record(model.layers, run.parent / "inner", grads=False):
        model(gpt.ids())
    inner, outer = values(run.parent / "inner"), values(run)
    assert inner["0.attn.output"] == outer["layers.0.attn.output"]


def test_copies_and_pickles_of_a_recorded_model_are_silent(run):
    model = gpt.model()
    with tdbg.record(model, run, grads=False):
        twin, thawed = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
        twin(gpt.ids())
        thawed(gpt.ids())
    assert query(run, "SELECT count(*) FROM tensor") == [(0,)]


def test_a_forked_child_does_not_record(run):
    model = gpt.model()
    with tdbg.record(model, run, tensors="output", grads=False):
        torch.set_num_threads(1)
        child = os.fork()
        if child == 0:
            model(gpt.ids())
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        model(gpt.ids())
    assert len(query(run, "SELECT name FROM tensor")) == 1


# --- the handle ----------------------------------------------------------------------------------------------------

def test_hooks_are_gone_after_close(run):
    model = gpt.model()
    recording = tdbg.record(model, run)
    recording.close()
    recording.close()
    model(gpt.ids()).sum().backward()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert query(run, "SELECT count(*) FROM tensor") == [(0,)]


def test_a_run_is_not_overwritten_unless_asked(run):
    tdbg.record(None, run).close()
    with pytest.raises(tdbg.Error) as refusal:
        tdbg.record(None, run)
    assert str(refusal.value) == f"{run}: holds a run already"
    tdbg.record(None, run, replace=True).close()


def test_without_a_folder_nothing_happens(monkeypatch, run):
    monkeypatch.delenv("TDBG_RUN", raising=False)
    model = gpt.model()
    with tdbg.record(model) as recording:
        assert not any(m._forward_hooks for m in model.modules())
        model(gpt.ids())
        recording.scalar("loss", 1)
        recording.step()
    monkeypatch.setenv("TDBG_RUN", str(run))
    with tdbg.record(model, grads=False):
        model(gpt.ids())
    assert "output" in values(run)


def test_steps_are_saved_as_they_end(run):
    model = gpt.model()
    with tdbg.record(model, run, tensors="output") as recording:
        assert recording.saved == -1
        for _ in range(3):
            model(gpt.ids())
            recording.step()
        while recording.saved < 2:
            pass
        assert (run / "step-00000002.safetensors").exists()


@pytest.mark.parametrize("arguments, message", [
    ({"model": "model.pt"}, "the model is a torch.nn.Module or None, not str"),
    ({"model": {"w": torch.zeros(2)}}, "not dict"),
    ({"tensors": 5}, "tensors=5: a pattern or a list of them"),
    ({"tensors": ["a", None]}, "a pattern or a list of them"),
    ({"every": "2"}, "cannot be interpreted as an integer"),
    ({"every": 2.5}, "cannot be interpreted as an integer"),
    ({"tensor": "a"}, r"record\(\) got an unexpected keyword argument 'tensor'")])
def test_bad_arguments_are_told_before_a_run_begins(run, arguments, message):
    with pytest.raises(TypeError, match=message):
        tdbg.record(**{"model": nn.Identity(), "path": run, **arguments})
    assert not run.exists()


def test_a_bad_number_of_a_step_changes_nothing(run):
    with tdbg.record(None, run) as recording:
        for number in ("1", 1.5):
            with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
                recording.step(number)
        recording.step()
        recording.tensor("x", torch.ones(1))
    assert query(run, "select number from step") == [(1,)]


def test_tensors_of_what_torch_makes_one_of(run):
    given = {"array": numpy.arange(6, dtype="float16").reshape(2, 3)[:, ::-1].T.copy(), "list": [[1, 2], [3, 4]], "number": 2.5}
    with tdbg.record(None, run) as recording:
        for name, value in given.items():
            recording.tensor(name, value)
        with pytest.raises((TypeError, ValueError)):
            recording.tensor("words", ["a", "b"])
    assert {n: a.tolist() for n, a in tdbg.load(run).items()} == {n: numpy.asarray(a).tolist() for n, a in given.items()}


def test_an_exception_passes_through_the_recording(run):
    with pytest.raises(ZeroDivisionError):
        with tdbg.record(gpt.model(), run):
            1 / 0


# --- two runs ------------------------------------------------------------------------------------------------------

def test_a_planted_bug_is_found_by_module(tdbg_binary, tmp_path):
    for name, model in (("a", gpt.model()), ("b", gpt.broken())):
        with tdbg.record(model, tmp_path / name) as recording:
            for step in range(2):
                model.zero_grad()
                model(gpt.ids(step)).logsumexp(-1).sum().backward()
                recording.step()
    document = tdbg_binary.json("diff", tmp_path / "a", tmp_path / "b", status=1)
    assert document["first_divergence"]["name"] == "step-0/layers.1.attn.scores.output"
    assert document["first_divergence"]["diagnosis"][0]["kind"] == "scale"
    assert tdbg.diff(tmp_path / "a", tmp_path / "b") == document
    with pytest.raises(AssertionError, match=r"first divergence: .*layers\.1\.attn"):
        tdbg.assert_close(tmp_path / "a", tmp_path / "b")
