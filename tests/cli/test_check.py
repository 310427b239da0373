"""tdbg check: each rule finds what it is for, keeps quiet about what is fine, and can be set."""
import os
import subprocess

import numpy as np
import pytest
import torch
from built import BINARY, ROOT
from runfiles import SKETCH, Run

rng = np.random.default_rng(7)


def normal(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype("float32")


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path / "run")
    yield made
    made.close()


def findings(tdbg, run, *options):
    """Of a run with findings: (rule, name, step) in their order."""
    run.commit()
    document = tdbg.json("check", run.folder, *options, status=1)
    return [(f["rule"], f["name"], f["step"]) for f in document["runs"][0]["findings"]]


def fine(tdbg, run, *options):
    run.commit()
    document = tdbg.json("check", run.folder, *options)
    assert document["runs"][0]["first"] is None
    return document["runs"][0]["findings"] == []


def healthy_step(run, step):
    """Twelve tensors of a small network that learns."""
    weight = normal(64, 64, scale=0.125)
    for layer in range(3):
        run.tensor(f"layers.{layer}.fc.weight", weight * (1 + 1e-3 * step))
        run.tensor(f"layers.{layer}.fc.output", normal(8, 64))
        run.tensor(f"layers.{layer}.relu.output", np.maximum(normal(8, 64), 0))
        run.tensor(f"layers.{layer}.fc.weight.grad", normal(64, 64, scale=1e-3))
    run.scalar("loss", step, 3 * 0.98**step + 0.05 * rng.standard_normal())
    run.step()


def test_a_healthy_run_has_no_findings(tdbg, run):
    for step in range(30):
        healthy_step(run, step)
    assert fine(tdbg, run)
    assert tdbg.text("check", run.folder) == f"{run.folder}: 30 steps, 360 tensors, 30 scalars: 0 findings\n"


def test_the_first_offence_comes_first(tdbg, run):
    for step in range(3):
        healthy_step(run, step)
    bad = normal(4, 4)
    bad[1, 2] = np.nan
    run.tensor("layers.1.attn.output", bad)
    run.tensor("layers.2.attn.output", bad * np.nan)
    run.scalar("loss", 30, float("nan"))
    run.step(number=30)
    run.tensor("layers.1.attn.output", bad)
    run.step(number=31)
    found = findings(tdbg, run)
    assert found == [("nan", "layers.1.attn.output", 30), ("nan", "layers.2.attn.output", 30), ("scalar-nan", "loss", 30)]
    document = tdbg.json("check", run.folder, status=1)["runs"][0]
    assert document["first"] == document["findings"][0]
    assert (document["first"]["number"], document["first"]["threshold"], document["first"]["times"]) == (1, 0, 2)
    text = tdbg.text("check", run.folder, status=1).splitlines()
    assert text[0].endswith(": 5 steps, 39 tensors, 4 scalars: 3 findings")
    assert text[1] == "first: step 30, layers.1.attn.output: NaN in a tensor (NaN values 1, above 0)"
    assert text[2].split() == ["step", "rule", "name", "number", "threshold", "worst", "times"]
    assert text[3].split() == ["30", "nan", "layers.1.attn.output", "1", ">", "0", "1", "2"]
    assert tdbg.text("check", "-q", run.folder, status=1).splitlines() == text[1:2]


def test_the_step_under_way_has_no_number_yet(tdbg, run):
    run.step(number=5)
    run.tensor("x", np.float32([np.inf]))
    assert findings(tdbg, run) == [("inf", "x", None)]
    assert "first: the unfinished step, x: infinity" in tdbg.text("check", run.folder, status=1)


def test_one_of_each_is_one(tdbg, run):
    run.tensor("x", np.float32([np.nan, 1]))
    run.scalar("loss", 0, 1.0)
    run.step()
    assert tdbg.text("check", run.folder, status=1).startswith(f"{run.folder}: 1 step, 1 tensor, 1 scalar: 1 finding\n")
    assert tdbg.json("ls", run.folder)["skipped"][0]["reason"] == "1 tensor recorded as statistics only (tdbg stats shows it)"


def test_masks_may_be_infinite(tdbg, run):
    run.tensor("attn.mask", np.float32([0, -np.inf]))
    assert fine(tdbg, run)


def test_near_overflow(tdbg, run):
    run.tensor("a.output", np.full(32, 40000, "float16"))
    run.tensor("b.output", np.full(32, 20000, "float16"))
    run.tensor("c.output", np.full(32, 40000, "float32"))
    run.step()
    assert findings(tdbg, run) == [("near-overflow", "a.output", 0)]


@pytest.mark.parametrize("name,falls", [("loss", True), ("train/total_loss", True), ("loss_scale", False), ("accuracy", False)])
def test_loss_not_decreasing(tdbg, run, name, falls):
    for step in range(40):
        run.scalar(name, step, 2 + 0.1 * rng.standard_normal())
    run.step()
    if not falls:
        assert fine(tdbg, run)
        return
    (rule, _, step), = findings(tdbg, run)
    assert rule == "loss-not-decreasing" and 19 <= step < 40


def test_spikes_do_not_hide_that_a_loss_falls(tdbg, run):
    for step in range(60):
        run.scalar("loss", step, 100 if step % 7 == 3 else 5 * 0.95**step)
    assert fine(tdbg, run)


def test_the_window_of_a_loss_can_be_set(tdbg, run):
    for step in range(12):
        run.scalar("loss", step, 1.0)
    assert fine(tdbg, run)
    assert findings(tdbg, run, "--set", "loss-not-decreasing.steps=10") == [("loss-not-decreasing", "loss", 9)]


def test_exploding_and_jumping_gradients(tdbg, run):
    for step in range(8):
        run.tensor("a.weight.grad", normal(10, 10, scale=500))
        run.tensor("b.weight.grad", normal(10, 10, scale=3 if step == 7 else 1e-3))
        run.step()
    assert findings(tdbg, run) == [("exploding-gradient", "a.weight.grad", 0), ("gradient-jump", "b.weight.grad", 7)]


def test_vanishing_gradients_need_three_steps(tdbg, run):
    for step in range(6):
        run.tensor("a.weight.grad", normal(10, 10, scale=1e-9))
        run.tensor("b.weight.grad", normal(10, 10, scale=1e-9 if step % 3 else 1e-3))
        run.step()
    assert findings(tdbg, run) == [("vanishing-gradient", "a.weight.grad", 2)]
    assert len(findings(tdbg, run, "--set", "vanishing-gradient.steps=2")) == 2


def test_dead_relu(tdbg, run):
    dead = np.zeros((8, 64), "float32")
    dead[0, :4] = 1
    run.tensor("a.output", dead)
    run.tensor("b.output", np.maximum(normal(8, 64), 0))
    run.tensor("ids", np.zeros((8, 64), "int64"))
    run.step()
    assert findings(tdbg, run) == [("dead-relu", "a.output", 0)]
    assert findings(tdbg, run, "--set", "dead-relu=0.3") == [("dead-relu", "a.output", 0), ("dead-relu", "b.output", 0)]


@pytest.mark.parametrize("kind", [SKETCH, 2])
def test_saturated_activations(tdbg, run, kind):
    run.tensor("a.tanh.output", np.tanh(normal(64, 64, scale=20)), kind=kind)
    run.tensor("b.tanh.output", np.tanh(normal(64, 64, scale=0.5)), kind=kind)
    run.tensor("c.sigmoid.output", 1 / (1 + np.exp(-np.clip(normal(64, 64, scale=30), -80, 80))), kind=kind)
    run.tensor("d.sigmoid.output", 1 / (1 + np.exp(-normal(64, 64))), kind=kind)
    softmax = np.exp(normal(64, 64, scale=9))
    run.tensor("e.softmax.output", softmax / softmax.sum(1, keepdims=True), kind=kind)
    run.tensor("f.norm.output", normal(64, 64), kind=kind)
    run.step()
    assert [name for _, name, _ in findings(tdbg, run)] == ["a.tanh.output", "c.sigmoid.output"]


def test_unchanged_parameters(tdbg, run):
    stuck, frozen = normal(8, 8, scale=0.3), normal(8, 8, scale=0.3)
    for step in range(6):
        run.tensor("a.weight", stuck)
        run.tensor("b.weight", normal(8, 8, scale=0.3) * 1e-3 + stuck)
        run.tensor("frozen.weight", frozen)
        run.tensor("a.weight.grad", normal(8, 8))
        run.tensor("b.weight.grad", normal(8, 8))
        run.step()
    assert findings(tdbg, run) == [("unchanged-tensor", "a.weight", 4)]


def test_weights_of_inference_may_stay(tdbg, run):
    weight = normal(8, 8, scale=0.3)
    for _ in range(6):
        run.tensor("a.weight", weight)
        run.step()
    assert fine(tdbg, run)


def test_poor_initialisation(tdbg, run):
    for _ in range(2):
        run.tensor("wide.weight", normal(256, 256, scale=3))
        run.tensor("zero.weight", np.zeros((256, 256), "float32"))
        run.tensor("he.weight", normal(256, 256, scale=(2 / 256) ** 0.5))
        run.tensor("gpt2.weight", normal(768, 3072, scale=0.02))
        run.tensor("torch.weight", rng.uniform(-1 / 16, 1 / 16, (256, 256)).astype("float32"))
        run.tensor("embedding.weight", normal(256, 256))
        run.tensor("norm.weight", np.ones(256, "float32"))
        run.step()
    found = [f for f in findings(tdbg, run) if f[0] == "poor-initialisation"]
    assert found == [("poor-initialisation", "wide.weight", 0), ("poor-initialisation", "zero.weight", 0)]


def test_update_ratio_is_a_lower_bound(tdbg, run):
    weight = normal(64, 64, scale=0.1)
    for _ in range(3):
        run.tensor("a.weight", weight)
        run.step()
        weight = weight * 1.5 + 0.01
    run.commit()
    finding, = tdbg.json("check", run.folder, status=1)["runs"][0]["findings"]
    before = (weight - 0.01) / 1.5
    before = (before - 0.01) / 1.5
    true = np.linalg.norm((before - 0.01) / 1.5 - before) / np.linalg.norm((before - 0.01) / 1.5)
    assert finding["rule"] == "update-ratio" and finding["step"] == 1 and finding["times"] == 2
    assert 0.1 < finding["number"] <= true * 1.000001


def test_rules_can_be_set_and_left_out(tdbg, run):
    run.tensor("x", np.float32([np.nan, 1]))
    run.step()
    assert findings(tdbg, run) == [("nan", "x", 0)]
    assert fine(tdbg, run, "--disable", "nan")
    assert fine(tdbg, run, "--set", "nan=1")
    rules = {r["name"]: r for r in tdbg.json("check", "--list-rules", "--set", "nan=1", "--disable", "inf")["rules"]}
    assert rules["nan"]["threshold"] == 1 and rules["inf"]["disabled"] and len(rules) == 13
    assert "dead-relu" in tdbg.text("check", "--list-rules")


@pytest.mark.parametrize("options,message", [
    (["--set", "nan"], "'nan' is not RULE=VALUE"),
    (["--set", "nam=1"], "no rule 'nam'"),
    (["--set", "nan=x"], "'x' is no number"),
    (["--set", "nan.steps=0"], "nan.steps takes 1 to 256"),
    (["--set", "loss-not-decreasing.steps=1"], "loss-not-decreasing.steps takes 2 to 256"),
    (["--disable", "all"], "no rule 'all'"),
])
def test_bad_settings(tdbg, run, options, message):
    assert tdbg.fails("check", run.folder, *options) == \
        f"tdbg: check: {message} (--list-rules names them) (see 'tdbg check --help')"


def test_ranks_are_checked_each(tdbg, tmp_path):
    for rank in (0, 2, 10):
        run = Run(tmp_path / "run" / f"rank-{rank}", rank=rank, world=11)
        run.tensor("x", np.float32([np.nan if rank == 2 else 1]))
        run.step()
        run.close()
    document = tdbg.json("check", tmp_path / "run", status=1)
    assert [(r["path"].rsplit("/", 1)[1], len(r["findings"])) for r in document["runs"]] == \
        [("rank-0", 0), ("rank-2", 1), ("rank-10", 0)]


def test_what_is_no_run(tdbg, tmp_path):
    assert tdbg.fails("check", tmp_path / "nowhere") == f"tdbg: {tmp_path}/nowhere: cannot open: No such file or directory"
    (tmp_path / "run.db").write_bytes(b"not a database at all, but long enough to look" * 100)
    assert tdbg.fails("check", tmp_path).startswith(f"tdbg: {tmp_path}: ")
    assert tdbg.fails("check").startswith("tdbg: check: no PATH given")


# --- stored tensors -----------------------------------------------------------------------------------------


def test_stored_tensors_go_through_the_rules(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", good=normal(8, 64), relu=np.maximum(normal(8, 64) - 3, 0), bad=np.float32([1, np.nan, np.inf]),
             tanh=np.tanh(normal(64, 64, scale=20)), half=np.full(32, 60000, "float16"), weight=normal(64, 64, scale=50))
    found, = tdbg.json("check", tmp_path / "a.npz", status=1)["inputs"]
    assert [(f["rule"], f["name"]) for f in found["findings"]] == \
        [("dead-relu", "relu"), ("nan", "bad"), ("inf", "bad"), ("saturated-activation", "tanh"), ("near-overflow", "half")]
    assert found["tensors"] == 6 and found["first"]["step"] is None and found["first"]["ordinal"] is None and "fits" not in found
    text = tdbg.text("check", tmp_path / "a.npz", status=1).splitlines()
    assert text[0] == f"{tmp_path}/a.npz: 6 tensors: 5 findings"
    assert text[1].startswith("first: relu: an activation that is nearly all zeros (share of zeros ")
    assert text[2].split() == ["rule", "name", "number", "threshold"]
    only, = tdbg.json("check", f"{tmp_path}/a.npz:good")["inputs"]
    assert only["tensors"] == 1 and only["findings"] == []


def held(dtype):
    """The values of a narrow type, from 0 up, and its least normal one."""
    bits, mantissa, bias, top = {"float8_e4m3fn": (7, 3, 7, 126), "float8_e5m2": (7, 2, 15, 123)}[dtype]
    codes = np.arange(top + 1)
    exponent, fraction = codes >> mantissa, codes & ((1 << mantissa) - 1)
    normal_values = (1 + fraction / (1 << mantissa)) * 2.0 ** (exponent - bias)
    return np.where(exponent == 0, fraction / (1 << mantissa) * 2.0 ** (1 - bias), normal_values), 2.0 ** (1 - bias)


def expected(values, dtype):
    """beyond, lost, subnormal, by converting."""
    x = np.abs(values[np.isfinite(values)].astype("float64"))
    if dtype == "float16":
        with np.errstate(over="ignore"):
            y = x.astype("float16").astype("float64")
        least = 2.0**-14
    elif dtype == "bfloat16":
        y, least = torch.tensor(x).bfloat16().double().numpy(), 2.0**-126
    else:
        grid, least = held(dtype)
        after = grid[-1] + (grid[-1] - grid[-2])  # what would come next, were there one more
        edges = np.append((grid[1:] + grid[:-1]) / 2, (grid[-1] + after) / 2)
        at = np.searchsorted(edges, x)
        tie = (at < len(edges)) & (x == edges[np.minimum(at, len(edges) - 1)]) & (at % 2 == 1)
        y = np.append(grid, np.inf)[np.minimum(at + tie, len(grid))]
    return int(np.isinf(y).sum()), int(((y == 0) & (x > 0)).sum()), int(((x > 0) & (x < least) & (y > 0)).sum())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_what_another_type_would_lose(tdbg, tmp_path, dtype):
    edges = [0, 2.0**-25, 2.0**-24, 2.0**-14, 65504, 65519.996, 65520, 448, 464, 464.00003, 57344, 61440, 61439.996, 2.0**-10,
             2.0**-17, 2.0**-134, 2.0**-133, 3.3895e38, 3.39618e38, 3.4e38, np.nan, np.inf, 2.0**-6, 2.0**-126]
    values = np.concatenate([np.float32(edges), -np.float32(edges), (rng.standard_normal(5000) * 10.0 ** rng.uniform(-45, 38, 5000)).astype("float32")])
    np.save(tmp_path / "x.npy", values)
    fit, = tdbg.json("check", tmp_path / "x.npy", "--as", dtype, "--disable", "nan", "--disable", "inf", status=1)["inputs"][0]["fits"]
    assert fit["count"] == values.size
    assert (fit["beyond"], fit["lost"], fit["subnormal"]) == expected(values, dtype)


def test_a_tensor_that_fits(tdbg, tmp_path):
    np.save(tmp_path / "x.npy", normal(4, 4))
    assert "as float16:\nname   dtype    count  beyond  lost  subnormal\nx.npy  float32     16       0     0          0\n" in \
        tdbg.text("check", tmp_path / "x.npy", "--as", "float16")
    assert tdbg.fails("check", tmp_path / "x.npy", "--as", "int8") == \
        "tdbg: check: --as takes float32, float16, bfloat16, float8_e4m3fn or float8_e5m2, not 'int8' (see 'tdbg check --help')"


@pytest.mark.slow
@pytest.mark.native
def test_the_example_of_the_manual(tdbg, tmp_path):
    """examples/unstable.py goes wrong as docs/check.md says."""
    environment = {**os.environ, "TDBG_LIBRARY": str(BINARY.parent / "libtdbg.so")}
    environment.pop("PYTHONPATH", None)  # it finds the module beside it
    subprocess.run(["/usr/bin/python3", ROOT / "examples" / "unstable.py", tmp_path / "run"], env=environment, check=True, timeout=120)
    found = tdbg.json("check", tmp_path / "run", status=1)["runs"][0]
    assert (found["steps"], found["tensors"], found["scalars"]) == (60, 1440, 60)
    rules = [(f["rule"], f["name"]) for f in found["findings"]]
    assert rules[:2] == [("poor-initialisation", "0.weight"), ("saturated-activation", "1.output")]
    first_nan = next(f for f in found["findings"] if f["rule"] == "nan")
    assert (first_nan["name"], first_nan["step"]) == ("4.output.grad", 40)
    assert ("scalar-nan", "loss") in rules and ("loss-not-decreasing", "loss") in rules
