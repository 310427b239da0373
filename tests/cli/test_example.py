"""examples/tiny_transformer: the demo dumps are real files that tdbg reads, and each bug does what it says."""
import os
import pathlib
import subprocess

import numpy as np
import pytest

PROGRAM = pathlib.Path(os.environ.get("TDBG", "build/tdbg")).resolve().parent / "examples" / "tiny_transformer"
STAGES = ["post_ln_pre_attn", "query", "query_final", "key", "key_final", "value", "value_final", "post_attn",
          "scaling", "sliding", "post_attn_pre_resid", "pre_mlp", "post_mlp"]  # fmt: skip

# The stages of a layer in the order they are computed, and where each bug shows first.
COMPUTED = ["post_ln_pre_attn", "query", "key", "value", "query_final", "key_final", "value_final", "scaling", "sliding",
            "post_attn", "post_attn_pre_resid", "pre_mlp", "post_mlp"]  # fmt: skip
FIRST = {
    "missing-query-bias": "query", "wrong-scale": "scaling", "swapped-kv": "key", "rope-interleaved": "query_final",
    "mask-off-by-one": "post_attn", "token-shift": "key_final", "kv-tiled": "post_attn", "window-ignored": "sliding",
    "stale-weights": "post_ln_pre_attn", "gate-up-swapped": "post_mlp",
}  # fmt: skip


def run(*args):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=60)


def dump(folder, *args):
    done = run(folder, *args)
    assert done.returncode == 0, done.stderr
    return folder


def reference(folder, layer, stage):
    return np.load(folder / "a" / f"{layer}_{stage}.npy")


def port(folder, layer, stage):
    """The port's tensor in the reference's layout, read without tdbg."""
    content = (folder / "b" / f"{layer}_{stage}.safetensors").read_bytes()
    data = content[8 + int.from_bytes(content[:8], "little") :]
    if stage == "scaling":
        return np.frombuffer(data, np.float32).reshape(())
    if stage == "sliding":
        return np.frombuffer(data, np.int64).reshape(())
    values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    like = reference(folder, layer, stage)
    if like.ndim == 2:
        return values.reshape(like.shape)
    tokens, heads, dim = like.shape
    return values.reshape(heads, tokens, dim).transpose(1, 0, 2)


def error(folder, layer, stage):
    a, b = reference(folder, layer, stage).astype(float), port(folder, layer, stage).astype(float)
    return np.linalg.norm(a - b) / (np.linalg.norm(a) + 1e-30)


def test_ls_lists_every_stage_in_the_order_of_execution(tdbg, tmp_path):
    dump(tmp_path, "--layers", 3)
    for side, ending, dtype, batch in ("a", "npy", "float32", []), ("b", "safetensors", "bfloat16", [1]):
        tensors = tdbg.json("ls", tmp_path / side)["tensors"]
        assert [tensor["name"] for tensor in tensors] == [f"{i}_{s}.{ending}" for i in range(3) for s in STAGES]
        by_name = {tensor["name"]: tensor for tensor in tensors}
        for stage, expected in ("pre_mlp", (dtype, [*batch, 24, 64])), ("scaling", ("float32", [])), ("sliding", ("int64", [])):
            tensor = by_name[f"1_{stage}.{ending}"]
            assert (tensor["dtype"], tensor["shape"]) == expected
    assert by_name["1_query.safetensors"]["shape"] == [1, 8, 24, 16]


def test_values_are_those_in_the_files(tdbg, tmp_path):
    dump(tmp_path, "--layers", 1)
    shown = tdbg.json("show", tmp_path / "a" / "0_query.npy")["values"]
    assert np.array_equal(np.array(shown, np.float32), reference(tmp_path, 0, "query"))
    shown = tdbg.json("show", tmp_path / "b" / "0_query.safetensors")["values"]
    assert np.array_equal(np.array(shown, np.float32)[0].transpose(1, 0, 2), port(tmp_path, 0, "query"))
    assert tdbg.json("show", tmp_path / "a" / "0_sliding.npy")["values"] == 8
    assert tdbg.json("show", tmp_path / "b" / "0_scaling.safetensors")["values"] == 0.25


def test_a_faithful_port_differs_by_rounding_only(tmp_path):
    dump(tmp_path, "--bug", "none", "--layers", 4)
    for layer in range(4):
        for stage in STAGES:
            assert error(tmp_path, layer, stage) < 0.03, (layer, stage)


@pytest.mark.parametrize("bug", FIRST)
def test_a_bug_shows_where_it_was_planted(tmp_path, bug):
    dump(tmp_path, "--bug", bug, "--layers", 3, "--from", 1)
    layer = 2 if bug == "window-ignored" else 1  # layer 1 has no window to ignore
    computed = [(i, stage) for i in range(3) for stage in COMPUTED]
    first = next(place for place in computed if error(tmp_path, *place) > 0.03)
    assert first == (layer, FIRST[bug])


def test_the_seed_decides(tmp_path):
    one, again, other = (dump(tmp_path / name, "--seed", seed) for name, seed in (("1", 5), ("2", 5), ("3", 6)))
    files = sorted(path.relative_to(one) for path in one.rglob("*.*"))
    assert len(files) == 2 * 4 * len(STAGES)
    assert all((one / file).read_bytes() == (again / file).read_bytes() for file in files)
    assert (one / "a/0_query.npy").read_bytes() != (other / "a/0_query.npy").read_bytes()


def test_help_names_every_bug():
    done = run("--help")
    assert done.returncode == 0
    assert all(f"  {bug} " in done.stdout for bug in ["none", *FIRST])


@pytest.mark.parametrize("args, message", [
    ([], "one OUT_DIR, please; see --help"),
    (["x", "--bug", "nonsense"], "'nonsense' makes no sense here; see --help"),
    (["x", "--layers", "0"], "'0' makes no sense here; see --help"),
    (["/dev/null/x"], "/dev/null/x: Not a directory"),
])  # fmt: skip
def test_usage_errors(args, message):
    done = run(*args)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"tiny_transformer: {message}"
