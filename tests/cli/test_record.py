"""The recorder, through its C API: a program (tests/programs/recording.c) records, tdbg and sqlite3 read."""
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import time

import numpy as np
import pytest
from built import BINARY, PATIENCE

PROGRAM = BINARY.parent / "tests" / "recording"


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TDBG_RUN")}
    return {**clean, **more}


def record(script, run, capture=None, status=0, **env):
    """Runs the script of lines; what the program printed."""
    done = subprocess.run([PROGRAM, run or "", *([capture] if capture is not None else [])], input="\n".join(script) + "\n",
                          capture_output=True, text=True, env=environment(**env), timeout=60 * PATIENCE)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr.strip()


def tensor(folder, name, values, dtype=None, strides=None, shape=None):
    """The line of a script for this array, whose bytes go into a file beside."""
    values = np.asarray(values)
    path = folder / f"{name.replace('/', '_')}.{len(list(folder.iterdir()))}.raw"
    path.write_bytes(values.tobytes())
    dims = ",".join(map(str, values.shape if shape is None else shape)) or "-"
    return f"tensor {name} {dtype or values.dtype.name} {dims} {strides or '-'} {path}"


def rows(run, sql):
    db = sqlite3.connect(run / "run.db")
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def step_file(path):
    """A .safetensors file, read as its format says: name -> (dtype, shape, bytes)."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    body = data[8 + size:]
    return {name: (e["dtype"], e["shape"], body[slice(*e["data_offsets"])]) for name, e in header.items()}


@pytest.fixture
def work(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


# --- values --------------------------------------------------------------------------------------------------

TYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "complex64"]


def test_values_are_kept_bit_for_bit(tdbg, tmp_path, work):
    rng = np.random.default_rng(1)
    arrays = {f"x.{t}": rng.integers(0, 2, (3, 5)).astype(t) if t == "bool" else (rng.normal(size=(3, 5)) * 50).astype(t) for t in TYPES}
    arrays["nan"] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], "float32")
    arrays["scalar"] = np.array(2.5, "float32")
    arrays["empty"] = np.zeros((0, 4), "float32")
    record([tensor(work, name, a) for name, a in arrays.items()], tmp_path / "run")
    kept = step_file(tmp_path / "run" / "step-00000000.safetensors")
    assert {n: (s, b) for n, (_, s, b) in kept.items()} == {n: (list(a.shape), a.tobytes()) for n, a in arrays.items()}
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


def test_a_type_the_file_cannot_hold_leaves_statistics(tdbg, tmp_path, work):
    z = np.array([3 + 4j, 0], "complex128")
    record([tensor(work, "z", z), tensor(work, "x", np.ones(3, "float32"))], tmp_path / "run")
    assert rows(tmp_path / "run", "select name, kind, file, absmax from tensor") == [
        ("z", 2, None, 5.0), ("x", 1, "step-00000000.safetensors", 1.0)]
    assert rows(tmp_path / "run", "select kind, text from note") == [("trouble", "z: a .safetensors file cannot hold complex128")]


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
])
def test_bad_rules(tmp_path, rules, message):
    assert record([], tmp_path / "run", rules, status=2) == f"recording: {tmp_path}/run: {message}"


def test_one_name_twice_in_a_step(tdbg, tmp_path, work):
    record([tensor(work, "x", np.float32([i])) for i in range(3)] + ["step 1", tensor(work, "x", np.float32([9]))], tmp_path / "run")
    assert [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] == ["step-0/x", "step-0/x#2", "step-0/x#3", "step-1/x"]
    assert tdbg.json("show", f"{tmp_path}/run:step-0/x#3")["values"] == [2]


def test_many_tensors_go_on_in_a_second_file(tdbg, tmp_path, work):
    line = tensor(work, "NAME", np.float32([1, 2]))
    names = [f"layers.{i}.a_rather_long_name_for_an_output" for i in range(2000)]
    record([line.replace("NAME ", n + " ", 1) for n in names], tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").glob("step-*")) == ["step-00000000-2.safetensors", "step-00000000-3.safetensors", "step-00000000.safetensors"]
    assert sorted(t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]) == sorted(names)


def test_what_makes_no_tensor_is_noted(tmp_path, work):
    record([tensor(work, "a", np.float32([1]), dtype="float31"), tensor(work, "b", np.float32([1]))], tmp_path / "run")
    assert rows(tmp_path / "run", "select kind, text from note") == [("trouble", 'a: unknown type "float31"')]
    assert rows(tmp_path / "run", "select name from tensor") == [("b",)]


# --- scopes, numbers, memory ---------------------------------------------------------------------------------


def spans(run):
    """(path, flops, bytes, tokens) of each call, in the order they ended."""
    scopes = {0: ""}
    for number, parent, name in rows(run, "select id, parent, name from scope order by id"):
        scopes[number] = f"{scopes[parent]}/{name}"
    out = []
    for (data,) in rows(run, "select data from span_block order by id"):
        for begin, end, scope, thread, *costs in struct.iter_unpack("<qqIIddd", data):
            assert 0 <= begin <= end
            out.append((scopes[scope], *costs))
    return out


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


def test_a_place_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    message = record([], tmp_path / "file" / "run", status=2)
    assert message == f"recording: {tmp_path}/file/run: cannot make the folder: Not a directory"


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


def test_a_forked_child_is_not_recorded(tmp_path):
    assert record(["begin a", "end", "fork", "begin b", "end"], tmp_path / "run") == "child 0\n"
    assert [s[0] for s in spans(tmp_path / "run")] == ["/a", "/b"]


# --- dying, growing, failing ---------------------------------------------------------------------------------


def read_while_running(tdbg, run):
    return [t["name"] for t in tdbg.json("ls", run)["tensors"]]


def test_readable_while_it_grows(tdbg, tmp_path, work):
    program = subprocess.Popen([PROGRAM, tmp_path / "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())

    def say(*lines):
        program.stdin.write("".join(line + "\n" for line in lines))
        program.stdin.flush()

    say(tensor(work, "x", np.float32([1])), "step 1", tensor(work, "x", np.float32([2])), "saved 0")
    assert program.stdout.readline() == "saved 0\n"
    assert read_while_running(tdbg, tmp_path / "run") == ["x"]  # step 1 is under way
    say("step 2", "saved 1")
    assert program.stdout.readline() == "saved 1\n"
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


def test_full_disk(tdbg, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", disk], capture_output=True).returncode:
        pytest.skip("needs to mount a small file system")
    try:
        message = record(["spin 40 65536"], disk / "run", status=2)
        assert message in ("recording: cannot write the values of a step: No space left on device", "recording: no space left",
                           "recording: could not write everything")
        saved = [t["name"] for t in tdbg.json("ls", disk / "run")["tensors"]]
        assert len(saved) >= 4 and len(saved) % 4 == 0
    finally:
        subprocess.run(["umount", disk], check=True)


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


def test_an_index_that_is_none(tdbg, tmp_path, work):
    record([tensor(work, "x", np.float32([1]))], tmp_path / "run")
    (tmp_path / "run" / "run.db").write_bytes(b"no database at all" * 500)
    assert tdbg.fails("ls", tmp_path / "run") == f"tdbg: {tmp_path}/run: not a file of tdbg's"
