"""The recorder, through its C API: a program (tests/programs/recording.c) records, tdbg and sqlite3 read."""
import contextlib
import io
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import tarfile
import time
import zipfile

import numpy as np
import pytest
from built import PATIENCE
from recording import PROGRAM, STATISTICS, Talking, environment, record, rows, spans, step_file


MAX_DIMS = 32  # of tdbg.h


def tensor(folder, name, values, dtype=None, strides=None, shape=None):
    """The line of a script for this array, whose bytes go into a file beside."""
    values = np.asarray(values)
    path = folder / f"{name.replace('/', '_')}.{len(list(folder.iterdir()))}.raw"
    path.write_bytes(values.tobytes())
    dims = ",".join(map(str, values.shape if shape is None else shape)) or "-"
    return f"tensor {name} {dtype or values.dtype.name} {dims} {strides or '-'} {path}"


@pytest.fixture
def work(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


# --- values --------------------------------------------------------------------------------------------------

TYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128"]


def test_values_are_kept_bit_for_bit(tdbg, tmp_path, work):
    rng = np.random.default_rng(1)
    arrays = {f"x.{t}": rng.integers(0, 2, (3, 5)).astype(t) if t == "bool" else (rng.normal(size=(3, 5)) * 50).astype(t) for t in TYPES}
    arrays["nan"] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], "float32")
    arrays["scalar"] = np.array(2.5, "float32")
    arrays["empty"] = np.zeros((0, 4), "float32")
    record([tensor(work, name, a) for name, a in arrays.items()], tmp_path / "run")
    kept = step_file(tmp_path / "run" / "step-00000000.safetensors")
    stored = {n: a.view("float64").reshape(*a.shape, 2) if a.dtype == "complex128" else a for n, a in arrays.items()}
    assert {n: (s, b) for n, (_, s, b) in kept.items()} == {n: (list(a.shape), a.tobytes()) for n, a in stored.items()}
    listed = tdbg.json("ls", tmp_path / "run")
    assert [(t["name"], t["dtype"], t["shape"]) for t in listed["tensors"]] == [(n, a.dtype.name, list(a.shape)) for n, a in arrays.items()]
    assert listed["skipped"] == []


def test_bfloat16_and_float8_keep_their_bytes(tmp_path, work):
    raw = np.arange(240, dtype="uint8")
    record([tensor(work, "a", raw, "bfloat16", shape=(120,)), tensor(work, "b", raw, "float8_e4m3fn"),
            tensor(work, "c", raw, "float8_e5m2")], tmp_path / "run")
    kept = step_file(tmp_path / "run" / "step-00000000.safetensors")
    assert {n: (d, b) for n, (d, _, b) in kept.items()} == {
        "a": ("BF16", raw.tobytes()), "b": ("F8_E4M3", raw.tobytes()), "c": ("F8_E5M2", raw.tobytes())}


def test_strides(tmp_path, work):
    x = np.arange(24, dtype="float32")
    record([tensor(work, "transposed", x, strides="1,4", shape=(4, 6)), tensor(work, "expanded", x, strides="0,1", shape=(3, 2)),
            tensor(work, "every.other", x, strides="2", shape=(12,))], tmp_path / "run")
    kept = {n: np.frombuffer(b, "float32").reshape(s) for n, (_, s, b) in step_file(tmp_path / "run" / "step-00000000.safetensors").items()}
    assert np.array_equal(kept["transposed"], x.reshape(6, 4).T)
    assert np.array_equal(kept["expanded"], np.stack([x[:2]] * 3))
    assert np.array_equal(kept["every.other"], x[::2])


def test_axes_that_run_backwards(tmp_path, work):
    x = np.arange(24, dtype="float32").reshape(4, 6)
    views = {"flipped": x[::-1, ::-1], "rows": x[::-1], "other": x[:, ::-2]}
    record([tensor(work, name, x, strides=",".join(str(s // 4) for s in v.strides), shape=v.shape)
            + f" {v.__array_interface__['data'][0] - x.__array_interface__['data'][0]}" for name, v in views.items()]
           + [tensor(work, "beyond", x, strides=f"{-2**62},1", shape=x.shape)], tmp_path / "run")
    kept = {n: np.frombuffer(b, "float32").reshape(s) for n, (_, s, b) in step_file(tmp_path / "run" / "step-00000000.safetensors").items()}
    assert all(np.array_equal(kept[name], v) for name, v in views.items()) and "beyond" not in kept
    assert rows(tmp_path / "run", "select text from note") == [("beyond: strides that reach beyond any memory",)]


def test_complex128_is_read_back_as_what_it_was(tdbg, tmp_path, work):
    """Though the format of the files has no word for it: pairs of float64, and a note."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**64, (300, 2), "uint64").view("complex128")[:, 0]  # any bits: NaN, subnormals, -0
    arrays = {"bits": bits, "pairs": rng.normal(size=(3, 2)), "matrix": rng.normal(size=(4, 2)) + 1j, "one": np.array(-0.0 + 2j),
              'odd."name"\u00e9': np.ones(2, "complex128"), "empty": np.zeros((0, 2), "complex128")}
    for run in ("a", "b"):
        record([tensor(work, name, a) for name, a in arrays.items()] + ["step 1", tensor(work, "x", arrays["pairs"])], tmp_path / run)
    listed = tdbg.json("ls", tmp_path / "a")
    assert listed["skipped"] == []
    assert [(t["name"], t["dtype"], t["shape"]) for t in listed["tensors"]] == [
        *((f"step-0/{n}", a.dtype.name, list(a.shape)) for n, a in arrays.items()), ("step-1/x", "float64", [3, 2])]
    for name, a in arrays.items():
        tdbg.text("show", "--npy", tmp_path / "x.npy", f"{tmp_path}/a:step-0/{name}")
        read = np.load(tmp_path / "x.npy")
        assert (read.dtype, read.shape, read.tobytes()) == (a.dtype, a.shape, a.tobytes()), name
    document = tdbg.json("diff", tmp_path / "a", tmp_path / "b")
    assert document["summary"]["identical"] == document["summary"]["pairs"] == len(arrays) + 1
    assert {p["a"]["dtype"] for p in document["pairs"]} == {"complex128", "float64"}
    tdbg.text("export", "safetensors", tmp_path / "a", tmp_path / "all.safetensors")
    assert tdbg.json("diff", tmp_path / "a", tmp_path / "all.safetensors")["summary"]["identical"] == len(arrays) + 1


def test_many_complex_tensors_go_on_in_a_second_file(tdbg, tmp_path, work):
    z = np.array([1 + 2j])
    record([tensor(work, f"z.{i}." + "x" * 100, z) for i in range(500)], tmp_path / "run")
    assert len(list((tmp_path / "run").glob("step-*.safetensors"))) > 1
    assert {(t["dtype"], tuple(t["shape"])) for t in tdbg.json("ls", tmp_path / "run")["tensors"]} == {("complex128", (1,))}


def test_a_tensor_the_file_cannot_hold_leaves_statistics(tdbg, tmp_path, work):
    z = np.array([3 + 4j, 0], "complex128").reshape((1,) * (MAX_DIMS - 1) + (2,))
    record([tensor(work, "z", z), tensor(work, "x", np.ones(3, "float32"))], tmp_path / "run")
    assert rows(tmp_path / "run", "select name, kind, file, absmax from tensor") == [
        ("z", 2, None, 5.0), ("x", 1, "step-00000000.safetensors", 1.0)]
    assert rows(tmp_path / "run", "select kind, text from note") == [("trouble", f"z: a .safetensors file cannot hold complex128 of {MAX_DIMS} axes")]


def test_statistics_are_those_of_tdbg(tdbg, tmp_path, work):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(100, 70)).astype("float32")
    x[3, 3], x[4, 4], x[5] = np.nan, np.inf, 0
    np.save(tmp_path / "x.npy", x)
    record([tensor(work, "x", x)], tmp_path / "full")
    record([tensor(work, "x", x)], tmp_path / "stats", "*=stats")
    wanted = tdbg.json("stats", tmp_path / "x.npy")["tensors"][0]
    keys = ["count", "finite", "nan", "inf", "zeros", "mean", "std", "min", "max", "absmax", "norm"]
    for run in ("full", "stats"):
        seen = tdbg.json("stats", tmp_path / run)["tensors"]
        assert [{k: t[k] for k in ["name", *keys]} for t in seen] == [{"name": "x", **{k: wanted[k] for k in keys}}]
        assert rows(tmp_path / run, "select mean, std, norm from tensor") == [tuple(wanted[k] for k in ("mean", "std", "norm"))]
    assert not list((tmp_path / "stats").glob("step-*"))


def test_lent_threads_change_no_bit(tmp_path, work):
    """Odd sizes, strides, values that are not finite or whose squares are not, all types; and the same when the lender
    runs all parts itself."""
    rng = np.random.default_rng(3)
    script = []
    for i, dtype in enumerate(TYPES):
        x = rng.normal(size=(3, 61, 557 + i)) * 50
        script.append(tensor(work, f"x.{dtype}", (x > 0 if dtype == "bool" else x).astype(dtype)))
    wild = rng.normal(size=150001).astype("float32")
    wild[rng.integers(0, len(wild), 50)] = np.nan
    wild[100000], wild[70000:90000] = np.inf, 0
    script += [tensor(work, "wild", wild), tensor(work, "large", rng.normal(size=70000) * 1e300),
               tensor(work, "bfloat16", rng.integers(0, 1 << 16, 99991).astype("uint16"), "bfloat16"),
               tensor(work, "float8", rng.integers(0, 256, 600011).astype("uint8"), "float8_e4m3fn"),
               tensor(work, "offset", (1e6 + rng.normal(size=300007)).astype("float32")),
               tensor(work, "turned", rng.normal(size=(307, 1013)).astype("float32"), strides="1,1013", shape=(1013, 307)),
               tensor(work, "gaps", rng.normal(size=(800, 400)), strides="800,2", shape=(400, 200)),
               tensor(work, "expanded", rng.normal(size=40000).astype("float32"), strides="0,1", shape=(5, 40000)),
               tensor(work, "small", rng.normal(size=100))]
    record(script, tmp_path / "alone", "*=stats")
    alone = rows(tmp_path / "alone", STATISTICS)
    assert len(alone) == len(script)
    for threads in (0, 1, 3):
        run = tmp_path / f"lent-{threads}"
        words = record(script, run, "*=stats", LEND=str(threads), TDBG_THREADS="2").split()
        assert words[0] == "lent" and int(words[1]) > 0  # not all: a busy machine has no thread to lend
        assert rows(run, STATISTICS) == alone


def test_threads_are_wanted_for_large_statistics_only(tmp_path, work):
    script = [tensor(work, "small", np.zeros(20000)), tensor(work, "large", np.zeros(100000))]
    lent = {"LEND": "2", "TDBG_THREADS": "2"}
    assert record(script, tmp_path / "stats", "*=stats", **lent) == "lent 1\n"
    assert record(script, tmp_path / "full", "*=full", **lent) == "lent 0\n"
    assert record(script, tmp_path / "one", "*=stats", LEND="2", TDBG_THREADS="1") == "lent 0\n"
    message = record([], tmp_path / "many", status=2, LEND="2", TDBG_THREADS="many")
    assert message.endswith(": TDBG_THREADS=many: a number from 1 to 256 is needed")


# --- what is kept --------------------------------------------------------------------------------------------


def test_capture_rules(tmp_path, work):
    x = np.arange(40, dtype="float32").reshape(4, 10)
    script = []
    for step in range(5):
        script += [f"step {step}"] + [tensor(work, n, x + step) for n in ("layers.0.out", "layers.0.grad", "embed", "other")]
    rules = "layers.*.out@1::2=full; *.grad@every:2=stats; embed@3=slice:1,2:5; *.grad=none; layers.*=sketch"
    record(script, tmp_path / "run", rules)
    seen = rows(tmp_path / "run", "select step.number, name, kind, file from tensor join step on step.ordinal = tensor.step")
    f, keep = "step-{:08d}.safetensors".format, {"full": 1, "stats": 2, "sketch": 3, "slice": 4}
    assert seen == [(0, "layers.0.out", keep["sketch"], None), (0, "layers.0.grad", keep["stats"], None),
                    (1, "layers.0.out", keep["full"], f(1)),
                    (2, "layers.0.out", keep["sketch"], None), (2, "layers.0.grad", keep["stats"], None),
                    (3, "layers.0.out", keep["full"], f(3)), (3, "embed", keep["slice"], f(3)),
                    (4, "layers.0.out", keep["sketch"], None), (4, "layers.0.grad", keep["stats"], None)]
    dtype, shape, data = step_file(tmp_path / "run" / f(3))["embed"]
    assert (shape, np.frombuffer(data, "float32").tolist()) == ([3], [15, 16, 17])


@pytest.mark.parametrize("pattern, kept", [
    ("lstm.output[0]", ["lstm.output[0]"]), ("*.output[0]", ["lstm.output[0]"]), ("*[1][0]", ["lstm.output[1][0]"]),
    ("head[01]", ["head0", "head1"]), ("x[y", ["x[y"]),
])
def test_names_with_brackets_are_patterns_of_themselves(tmp_path, work, pattern, kept):
    names = ["lstm.output[0]", "lstm.output[1][0]", "lstm.output[00]", "head0", "head1", "x[y"]
    record([tensor(work, name, np.float32([1])) for name in names], tmp_path / "run", f"{pattern}=full")
    assert [name for (name,) in rows(tmp_path / "run", "select name from tensor")] == kept


def test_steps_below_zero_are_steps(tdbg, tmp_path, work):
    """A warm-up may count down to 0."""
    script = []
    for step in (-2, -1, 0, 1):
        script += [f"step {step}", tensor(work, "x", np.float32([step])), tensor(work, "y", np.float32([step]))]
    record(script, tmp_path / "run", "y@every:2=full; x=full")
    listed = tdbg.json("ls", tmp_path / "run")
    assert [t["name"] for t in listed["tensors"]] == ["step--2/x", "step--2/y", "step--1/x", "step-0/x", "step-0/y", "step-1/x"]
    assert listed["skipped"] == [] and tdbg.json("show", f"{tmp_path}/run:step--1/x")["values"] == [-1]
    record([tensor(work, "z", np.float32([1]))], tmp_path / "run", REPLACE="1")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["run.db", "step-00000000.safetensors"]


def test_a_sketch_is_a_histogram(tmp_path, work):
    x = np.random.default_rng(3).normal(size=5000).astype("float32")
    record([tensor(work, "x", x)], tmp_path / "run", "*=sketch")
    [(bins, low, high)] = rows(tmp_path / "run", "select bins, min, max from tensor")
    assert (low, high) == (x.min(), x.max())
    assert np.array_equal(np.frombuffer(bins, "<u8"), np.histogram(x.astype("float64"), 64)[0])


@pytest.mark.parametrize("rules, message", [
    ("layers.*", 'capture rule "layers.*": expected PATTERN[@STEPS]=KIND'),
    ("*=all", 'capture rule for "*": kind "all" is none of full, stats, sketch, slice:EXPR, none'),
    ("*@a:b=full", 'capture rule for "*": steps "a:b" are neither FIRST:LAST:STRIDE nor every:N'),
    ("*@every:0=full", 'capture rule for "*": steps "every:0" are neither FIRST:LAST:STRIDE nor every:N'),
    (";".join(["a=full"] * 65), "more than 64 capture rules"),
    ("*=slice:[", 'capture rule for "*": bad slice [[]: expected integers, ranges a:b:c and ... between commas'),
    ("*=slice:0:2:0", 'capture rule for "*": bad slice [0:2:0]: a step of zero'),
])
def test_bad_rules(tmp_path, rules, message):
    assert record([], tmp_path / "run", rules, status=2) == f"recording: {tmp_path}/run: {message}"


def test_one_name_twice_in_a_step(tdbg, tmp_path, work):
    record([tensor(work, "x", np.float32([i])) for i in range(3)] + ["step 1", tensor(work, "x", np.float32([9]))], tmp_path / "run")
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] == ["step-0/x", "step-0/x#2", "step-0/x#3", "step-1/x"]
    assert tdbg.json("show", f"{tmp_path}/run:step-0/x#3")["values"] == [2]


@pytest.mark.parametrize("given, kept", [
    ("x x#2 x", "x x#2 x#3"), ("x x x#2", "x x#2 x#2#2"), ("x#2 x x x", "x#2 x x#3 x#4"),
    ("__metadata__ x __metadata__", "__metadata__#2 x __metadata__#3"),
    pytest.param(f"{'n' * 5000} {'n' * 4090}", f"{'n' * 4000} {'n' * 4000}#2", id="long"),
])
def test_names_that_a_number_would_collide_with(tdbg, tmp_path, work, given, kept):
    line = tensor(work, "NAME", np.float32([1])).split(" ", 2)[2]
    record([f"tensor {name} {line}" for name in given.split()], tmp_path / "run")
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] == kept.split()
    assert [name for (name,) in rows(tmp_path / "run", "select name from tensor order by id")] == kept.split()


def test_names_that_are_no_text_are_told_apart(tdbg, tmp_path, work):
    line = tensor(work, "NAME", np.float32([1])).split(" ", 2)[2]
    script = b"".join(b"tensor a%c %s\n" % (byte, line.encode()) for byte in (0xfe, 0xff))
    subprocess.run([PROGRAM, tmp_path / "run"], input=script, check=True, env=environment(), timeout=60 * PATIENCE)
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] == ["a?", "a?#2"]


def test_steps_that_begin_anew_are_told_apart(tdbg, tmp_path, work):
    """Epochs that each count from 0: in the order they ran, each reachable."""
    script = []
    for epoch in range(3):
        for step in range(2):
            script += [f"step {step}", tensor(work, "x", np.float32([10 * epoch + step])), tensor(work, "s", np.float32([epoch]))]
    record(script, tmp_path / "run", "x=full;*=stats")
    steps = ["step-0", "step-1", "step-0#2", "step-1#2", "step-0#3", "step-1#3"]
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] == [f"{step}/x" for step in steps]
    assert [tdbg.json("show", f"{tmp_path}/run:{step}/x")["values"] for step in steps] == [[0], [1], [10], [11], [20], [21]]
    only = [t["name"] for t in tdbg.json("stats", tmp_path / "run")["tensors"] if t["name"].endswith("/s")]
    assert only == [f"{step}/s" for step in steps]


def test_many_tensors_go_on_in_a_second_file(tdbg, tmp_path, work):
    line = tensor(work, "NAME", np.float32([1, 2]))
    names = [f"layers.{i}.a_rather_long_name_for_an_output" for i in range(2000)]
    record([line.replace("NAME ", n + " ", 1) for n in names], tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").glob("step-*")) == ["step-00000000-2.safetensors", "step-00000000-3.safetensors", "step-00000000.safetensors"]
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] == names


def test_what_makes_no_tensor_is_noted_and_told(tdbg, tmp_path, work):
    bad, good = (tensor(work, name, np.float32([1]), dtype=dtype) for name, dtype in (("a", "float31"), ("b", None)))
    record([bad, good], tmp_path / "run")
    assert rows(tmp_path / "run", "select kind, text from note") == [("trouble", 'a: unknown type "float31"')]
    assert rows(tmp_path / "run", "select name from tensor") == [("b",)]
    assert [s["reason"] for s in tdbg.json("ls", tmp_path / "run")["skipped"]] == [
        'trouble while recording: a: unknown type "float31"']
    record([bad, good, bad], tmp_path / "again")
    assert [s["reason"] for s in tdbg.json("ls", tmp_path / "again")["skipped"]] == [
        'trouble while recording, 2 times; the first: a: unknown type "float31"']


def test_reading_a_run_that_ended_leaves_nothing_behind(tdbg, tmp_path, work):
    record([tensor(work, "x", np.float32([1]))], tmp_path / "run")
    for command in ("ls", "stats", "profile", "check"):
        tdbg.run(command, tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["run.db", "step-00000000.safetensors"]


def test_names_reach_no_terminal_as_they_are(tdbg, tmp_path):
    script = b"begin evil\x1b[31m\nscalar s\x1b]0;x\x07 0 nan\nalloc 1 100\nsnapshot now\x1b[2J\nend\n"
    subprocess.run([PROGRAM, tmp_path / "run"], input=script, check=True, env=environment(), timeout=60 * PATIENCE)
    seen = "".join(tdbg.run(command, tmp_path / "run").stdout for command in ("profile", "memory", "check"))
    assert "\x1b" not in seen and "\x07" not in seen
    assert all(name in seen for name in ("evil?[31m", "s?]0;x?", "now?[2J"))


def test_calls_without_a_name_are_noted(tmp_path):
    record(["nothing", "scalar x 0 1"], tmp_path / "run")
    assert [text for (text,) in rows(tmp_path / "run", "select text from note where kind = 'trouble'")] == [
        "tdbg_tensor: no name", "x: no tensor", "(no name): no tensor", "tdbg_tensor: no name", "tdbg_scope_begin: no name", "tdbg_scalar: no name",
        "tdbg_snapshot: no name"]
    assert spans(tmp_path / "run") == [("/(no name)", 0, 0, 0)]
    assert rows(tmp_path / "run", "select name from scalar") == [("x",)]


def test_a_tensor_without_memory_for_its_copy_is_noted(tmp_path, work):
    """A view may show more than any memory holds: strides of zero. The program goes on without it."""
    huge = tensor(work, "huge", np.float64([1]), shape=(1 << 20, 1 << 20, 1 << 7), strides="0,0,0")
    sanitizers = {f"{s}_OPTIONS": f"{os.environ.get(f'{s}_OPTIONS', '')}:allocator_may_return_null=1" for s in ("ASAN", "TSAN")}
    record([huge, tensor(work, "x", np.float32([1]))], tmp_path / "run", **sanitizers)
    assert rows(tmp_path / "run", "select kind, text from note") == [
        ("trouble", "huge: no memory for a copy of 1125899906842624 bytes: not recorded")]
    assert rows(tmp_path / "run", "select name from tensor") == [("x",)]


# --- scopes, numbers, memory ---------------------------------------------------------------------------------


def test_scopes(tmp_path):
    record(["begin model", "begin a", "cost 10 2 3", "begin b", "cost 1 0 0", "end", "cost 5 0 0", "end", "begin a", "end", "end",
            "end", "begin b", "end"], tmp_path / "run")
    assert spans(tmp_path / "run") == [("/model/a/b", 1, 0, 0), ("/model/a", 15, 2, 3), ("/model/a", 0, 0, 0), ("/model", 0, 0, 0), ("/b", 0, 0, 0)]


def test_deep_nesting_keeps_its_balance(tmp_path):
    record([*(["begin x"] * 300), *(["end"] * 300), "begin y", "end"], tmp_path / "run")
    seen = [s[0] for s in spans(tmp_path / "run")]
    assert len(seen) == 257 and seen[0] == "/x" * 256 and seen[-1] == "/y"


def test_scalars(tmp_path):
    record(["scalar loss 0 2.5", "scalar loss 1 nan", "step 7", "scalar loss 2 -inf", "scalar lr 0 1e-3"], tmp_path / "run")
    assert rows(tmp_path / "run", "select name, step, value from scalar") == [("loss", 0, 2.5), ("loss", 1, None), ("loss", 2, float("-inf")), ("lr", 0, 1e-3)]
    assert rows(tmp_path / "run", "select ordinal, number from step") == [(0, 0), (1, 7)]


def test_allocations(tmp_path):
    record(["begin layer", "alloc 1 100", "end", "snapshot warm", "alloc 2 50", "free 1", "step 1", "free 2"], tmp_path / "run")
    scopes = dict(rows(tmp_path / "run", "select id, name from scope"))
    seen = [(scopes.get(scope), size) for (data,) in rows(tmp_path / "run", "select data from memory_block")
            for _, _, size, scope, _ in struct.iter_unpack("<qQQII", data)]
    assert seen == [("layer", 100), (None, 50), (None, 0), (None, 0)]
    assert rows(tmp_path / "run", "select name, step from snapshot") == [("warm", 0)]


def test_steps_of_which_nothing_is_recorded_are_not_there(tmp_path):
    record(["step 0", "step 1", "scalar x 1 1", "step 2", "step 3", "scalar x 3 1"], tmp_path / "run")
    assert rows(tmp_path / "run", "select ordinal, number from step") == [(0, 1), (1, 3)]


def test_threads(tdbg, tmp_path):
    record(["threads 8 500"], tmp_path / "run")
    assert sorted(s[0] for s in spans(tmp_path / "run")) == sorted(f"/thread.{t}" for t in range(8) for _ in range(500))
    kept = step_file(tmp_path / "run" / "step-00000000.safetensors")
    for more in (tmp_path / "run").glob("step-00000000-*.safetensors"):
        kept.update(step_file(more))
    assert len(kept) == 4000
    for name, (_, _, data) in kept.items():
        thread, i = map(int, name[1:].split("."))
        assert set(np.frombuffer(data, "float32")) == {thread * 1000000 + i}
    ids = rows(tmp_path / "run", "select id from tensor order by id")
    assert ids == [(i,) for i in range(1, 4001)]


def test_nothing_is_lost_when_the_writer_is_behind(tmp_path):
    record(["spin 30 65536"], tmp_path / "run", "w0=full;*=stats")
    assert rows(tmp_path / "run", "select count(*), min(count), max(count) from tensor") == [(120, 16384, 16384)]
    wrong = "select count(*) from tensor join step on step.ordinal = tensor.step where mean <> number * 8 + substr(name, 2)"
    assert rows(tmp_path / "run", wrong) == [(0,)]


# --- where it is recorded ------------------------------------------------------------------------------------


def test_a_folder_with_a_run_is_left_alone(tmp_path):
    record(["scalar x 0 1"], tmp_path / "deep" / "run")
    assert record(["scalar x 0 2"], tmp_path / "deep" / "run", status=2) == f"recording: {tmp_path}/deep/run: holds a run already"
    assert rows(tmp_path / "deep" / "run", "select value from scalar") == [(1.0,)]


@pytest.mark.parametrize("options", [{}, {"NO_CONTROL": "1"}], ids=["asked", "looked at"])
def test_a_run_that_is_being_recorded_is_not_replaced(tmp_path, options):
    run = tmp_path / "run"
    with Talking(run, **options) as program:
        program.say("scalar x 0 1", "step 1", "saved 0")
        assert program.hear() == "saved 0"
        complaint = record([], run, status=2, REPLACE="1")
        assert complaint == f"recording: {run}: a process records into it now: not replaced"
        program.kill()
        program.wait()
    assert rows(run, "select value from scalar") == [(1.0,)]
    record(["scalar x 0 2"], run, REPLACE="1")  # killed: nobody's any more
    record(["scalar x 0 3"], run, REPLACE="1")
    assert rows(run, "select value from scalar") == [(3.0,)]


def test_a_place_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    message = record([], tmp_path / "file" / "run", status=2)
    assert message == f"recording: {tmp_path}/file/run: cannot make the folder: Not a directory"


def test_a_cpu_that_is_not_there(tmp_path):
    """Said when recording begins, not at the first tensor."""
    message = record([], tmp_path / "run", status=2, TDBG_CPU="abacus")
    assert "TDBG_CPU=abacus: this machine has " in message


def test_the_environment_turns_it_on(tdbg, tmp_path, work):
    script = [tensor(work, "x", np.float32([1]))]
    record(script, None)  # nobody asked: nothing happens
    record(script, None, TDBG_RUN=str(tmp_path / "run"), TDBG_CAPTURE="*=stats")
    assert rows(tmp_path / "run", "select name, kind from tensor") == [("x", 2)]
    assert rows(tmp_path / "run", "select value from fact where name = 'capture'") == [("*=stats",)]


@pytest.mark.parametrize("names", [("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")])
def test_ranks(tdbg, tmp_path, work, names):
    for rank in range(2):
        record([tensor(work, "w", np.float32([rank, rank + 10]))], tmp_path / "run", **{names[0]: str(rank), names[1]: "2"})
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] == ["rank-0/w", "rank-1/w"]
    assert rows(tmp_path / "run" / "rank-1", "select value from fact where name in ('rank', 'world') order by name") == [(1,), (2,)]
    np.save(tmp_path / "w.npy", np.float32([0, 10, 1, 11]))
    assert tdbg.json("diff", tmp_path / "run", tmp_path / "w.npy", "--match", "shape")["summary"]["identical"] == 1


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_run_in_an_archive_is_a_run(tdbg, tmp_path, work, kind):
    """Whatever the order of its files, and under the folders it lies in."""
    script = [line for step in range(12) for line in (f"step {step}", *(tensor(work, name, np.float32([step])) for name in "zya"))]
    record(script, tmp_path / "run")
    names = [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]]
    assert names[:4] == ["step-0/z", "step-0/y", "step-0/a", "step-1/z"] and len(names) == 36
    files, path = sorted((tmp_path / "run").iterdir(), reverse=True), tmp_path / f"run.{kind}"
    files = [f for f in files if f.is_file()]
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for f in files:
                archive.write(f, f"some/where/{f.name}")
    else:
        with tarfile.open(path, "w:gz") as archive:
            for f in files:
                archive.add(f, f"some/where/{f.name}")
    listed = tdbg.json("ls", path)
    assert [t["name"] for t in listed["tensors"]] == names and listed["skipped"] == []
    assert tdbg.json("diff", path, tmp_path / "run")["summary"]["identical"] == 36


def test_ranks_in_an_archive(tdbg, tmp_path, work):
    for rank in range(2):
        record([tensor(work, "w", np.float32([rank]))], tmp_path / "run", RANK=str(rank), WORLD_SIZE="2")
    shutil.make_archive(tmp_path / "run", "zip", tmp_path, "run")
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run.zip")["tensors"]] == ["rank-0/w", "rank-1/w"]


def test_what_an_archive_merely_calls_a_run(tdbg, tmp_path):
    np.save(npy := io.BytesIO(), np.float32([1]))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("run.db", b"SQLite format 3\0" + bytes(500))
        archive.writestr("x.npy", npy.getvalue())
    listed = tdbg.json("ls", tmp_path / "x.zip")
    assert [t["name"] for t in listed["tensors"]] == ["x.npy"] and [s["name"] for s in listed["skipped"]] == ["run.db"]


def test_a_forked_child_is_not_recorded(tmp_path):
    assert record(["begin a", "end", "fork", "begin b", "end"], tmp_path / "run") == "child 0\n"
    assert [s[0] for s in spans(tmp_path / "run")] == ["/a", "/b"]


def test_a_forked_child_is_not_lent_threads(tmp_path):
    lent = {"LEND": "2", "TDBG_THREADS": "2"}
    assert record(["begin a", "end", "fork"], tmp_path / "run", "*=stats", **lent) == "child 0\nlent 0\n"


def test_forked_children_do_not_wait_for_a_lock_nobody_lets_go(tmp_path):
    assert record(["forks 300"], tmp_path / "run") == "stuck 0\n"
    assert rows(tmp_path / "run", "select count(*) from tensor") == [(1200,)]


# --- dying, growing, failing ---------------------------------------------------------------------------------


def read_while_running(tdbg, run):
    return [t["name"] for t in tdbg.json("ls", run)["tensors"]]


def test_readable_while_it_grows(tdbg, tmp_path, work):
    program = Talking(tmp_path / "run")
    program.say(tensor(work, "x", np.float32([1])), "step 1", tensor(work, "x", np.float32([2])), "saved 0")
    assert program.hear() == "saved 0"
    assert read_while_running(tdbg, tmp_path / "run") == ["x"]  # step 1 is under way
    program.say("step 2", "saved 1")
    assert program.hear() == "saved 1"
    assert read_while_running(tdbg, tmp_path / "run") == ["step-0/x", "step-1/x"]
    program.stdin.close()
    assert program.wait(10 * PATIENCE) == 0


def kill_while_recording(tdbg, run, rng, size):
    program = subprocess.Popen([PROGRAM, run], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
    program.stdin.write(f"spin 1000000 {size}\n")
    program.stdin.flush()
    for _ in range(rng.randrange(1, 4)):
        program.stdout.readline()
    time.sleep(rng.random() * 0.05)
    program.send_signal(signal.SIGKILL)
    told = [int(line) for line in program.stdout.read().split()]
    program.wait()
    return max(told, default=0)


def check_survivor(tdbg, run, told):
    """Every step that was reported, and every one that can be seen, is whole."""
    steps = [n for (n,) in rows(run, "select number from step order by ordinal")]
    assert steps == list(range(len(steps))) and len(steps) > told
    stats = tdbg.json("stats", run)
    step_of = "step-{}/".format if len(steps) > 1 else lambda step: ""
    wanted = {f"{step_of(s)}w{k}": s * 8 + k for s in steps for k in range(4)}
    assert [(t["name"], t["min"], t["max"]) for t in stats["tensors"]] == [(n, v, v) for n, v in wanted.items()]
    assert rows(run, "select count(*) from scalar where step < %d" % len(steps)) == [(len(steps),)]
    assert rows(run, "pragma integrity_check") == [("ok",)]


@pytest.mark.parametrize("rounds", [5, pytest.param(95, marks=[pytest.mark.slow, pytest.mark.native])])
def test_killed_while_recording(tdbg, tmp_path, rounds):
    rng = random.Random(rounds)
    for i in range(rounds):
        run = tmp_path / f"run{i}"
        told = kill_while_recording(tdbg, run, rng, rng.choice([4096, 65536, 1 << 20]))
        check_survivor(tdbg, run, told)
        subprocess.run(["rm", "-r", run], check=True)


NO_SPACE = ("recording: cannot write the values of a step: No space left on device", "recording: no space left")


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True).returncode:
        pytest.skip("needs to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk(tdbg, tmp_path):
    with small_disk(tmp_path / "disk", "6m") as disk:
        assert record(["spin 40 65536"], disk / "run", status=2) in NO_SPACE
        saved = [t["name"] for t in tdbg.json("ls", disk / "run")["tensors"]]
        assert len(saved) >= 4 and len(saved) % 4 == 0


def test_a_disk_that_is_full_for_the_last_step(tdbg, tmp_path, work):
    with small_disk(tmp_path / "disk", "6m") as disk:
        program = Talking(disk / "run")
        program.say(tensor(work, "x", np.float32([1])), "step 1", tensor(work, "x", np.float32([2])), "saved 0")
        assert program.hear() == "saved 0"
        with pytest.raises(OSError), open(disk / "rest", "wb", buffering=0) as rest:
            while True:
                rest.write(bytes(4096))
        _, complaint = program.communicate(timeout=60 * PATIENCE)
        assert (program.returncode, complaint.strip() in NO_SPACE) == (2, True), complaint
        (disk / "rest").unlink()
        assert [t["name"] for t in tdbg.json("ls", disk / "run")["tensors"]] == ["x"]


@pytest.mark.parametrize("size", ["4k", "32k"])
def test_a_disk_that_is_full_at_the_beginning(tdbg, tmp_path, size):
    """Nothing stays that would be taken for a run."""
    with small_disk(tmp_path / "disk", size) as disk:
        assert record([], disk, status=2) == f"recording: {disk}: no space left"
        assert list(disk.iterdir()) == []


# --- a run that lies -----------------------------------------------------------------------------------------


def spoil(run, *statements):
    db = sqlite3.connect(run / "run.db")
    for statement in statements:
        db.execute(*statement) if isinstance(statement, tuple) else db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize("statement, message", [
    ("update tensor set shape = '1,x'", 'tensor x has the shape "1,x"'),
    ("update tensor set kind = 9", "tensor x is kept in an unknown way (9)"),
    ("pragma application_id = 1", "a database of another program"),
    ("pragma user_version = 2", "made by a newer tdbg: version 2, this one knows 1"),
    ("drop table tensor", "no such table: tensor"),
])
def test_an_index_that_lies(tdbg, tmp_path, work, statement, message):
    record([tensor(work, "x", np.float32([1]))], tmp_path / "run")
    spoil(tmp_path / "run", statement)
    assert message in tdbg.fails("ls", tmp_path / "run")


def test_a_run_that_has_only_begun(tdbg, tmp_path):
    """Its index is empty until all that a reader needs is in it; a watcher never sees half of one."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.db").touch()
    assert tdbg.fails("ls", tmp_path / "run") == f"tdbg: {tmp_path}/run: nothing is recorded yet: the run has only begun"


def test_an_index_that_is_none(tdbg, tmp_path, work):
    record([tensor(work, "x", np.float32([1]))], tmp_path / "run")
    (tmp_path / "run" / "run.db").write_bytes(b"no database at all" * 500)
    assert tdbg.fails("ls", tmp_path / "run") == f"tdbg: {tmp_path}/run: not a file of tdbg's"
