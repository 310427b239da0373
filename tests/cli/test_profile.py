"""`tdbg profile` of recorded runs: times, percentiles, work, memory, several threads, what stands out.

Runs are made row by row (runfiles.py), so every number is known beforehand.
"""
import os
import subprocess
import time

import numpy as np
import pytest
from built import BINARY, PATIENCE
from runfiles import Run

MS = 1_000_000


def scopes(document):
    return {scope["path"]: scope for scope in document["scopes"]}


def findings(document):
    return {finding["kind"]: finding for finding in document["findings"]}


def model(folder, steps=20, layer=lambda step, i: 10 * MS, layers=4, gap=0, cpu=1.0, **facts):
    """A run of `steps` steps; each runs `model`, which runs its layers one after the other and 2 ms of its own."""
    run = Run(folder, **facts)
    now = 0
    for step in range(steps):
        begin, spans = now, []
        now += MS
        for i in range(layers):
            spans.append((f"model/layers.{i}", now, now + layer(step, i), 0, 2e9, 1e8, 128))
            now += layer(step, i)
        now += MS
        spans.append(("model", begin, now))
        run.spans(spans)
        now += gap
        run.step(begin_ns=begin, end_ns=now, cpu_ns=int((now - begin) * cpu))
    run.close()
    return folder


def test_tree(tdbg, tmp_path):
    document = tdbg.json("profile", model(tmp_path / "run"))
    assert document["kind"] == "run" and document["ended"] is True
    assert document["wall_ns"] == document["thread_ns"] == 20 * 42 * MS
    found = scopes(document)
    assert list(found) == ["model", *(f"model/layers.{i}" for i in range(4))]
    assert (found["model"]["calls"], found["model"]["total_ns"], found["model"]["self_ns"]) == (20, 840 * MS, 40 * MS)
    layer = found["model/layers.2"]
    assert (layer["calls"], layer["total_ns"], layer["self_ns"], layer["depth"]) == (20, 200 * MS, 200 * MS, 1)
    assert layer["share"] == pytest.approx(200 / 840)
    assert layer["flops"] == 4e10 and layer["flops_per_s"] == pytest.approx(2e11) and layer["bytes"] == 2e9
    assert found["model"]["flops"] == 1.6e11, "work adds up"
    assert found["model"]["tokens"] == 20 * 128, "tokens pass through the layers, they do not add up"
    assert layer["per_step"] == {"count": 20, "p50_ns": 10 * MS, "p90_ns": 10 * MS, "p99_ns": 10 * MS, "min_ns": 10 * MS, "max_ns": 10 * MS}
    assert sum(scope["self_ns"] for scope in found.values()) == document["wall_ns"]


def test_percentiles_are_those_of_numpy(tdbg, tmp_path):
    times = np.random.default_rng(1).integers(1, 100, 50) * MS
    found = scopes(tdbg.json("profile", model(tmp_path / "run", 50, lambda step, i: int(times[step]), 1)))
    spread = found["model/layers.0"]["per_step"]
    for share in (50, 90, 99):
        assert spread[f"p{share}_ns"] == pytest.approx(np.percentile(times, share), rel=1e-6)


def test_series(tdbg, tmp_path):
    run = model(tmp_path / "run", 6, lambda step, i: (step + 1) * MS, 2)
    assert "steps_ns" not in tdbg.json("profile", run)["scopes"][0]
    found = scopes(tdbg.json("profile", run, "--series"))
    assert found["model/layers.1"]["steps_ns"] == [i * MS for i in range(1, 7)]
    assert found["model"]["steps_ns"] == [2 * i * MS + 2 * MS for i in range(1, 7)]


def test_threads_merge_by_path(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.spans([("work/a", 0, 4 * MS, 0), ("work", 0, 10 * MS, 0)])
    run.spans([("work/a", 2 * MS, 8 * MS, 1), ("work", 2 * MS, 14 * MS, 1)])
    run.step(begin_ns=0, end_ns=14 * MS)
    run.close()
    document = tdbg.json("profile", tmp_path / "run")
    assert document["wall_ns"] == 14 * MS and document["thread_ns"] == 22 * MS
    assert scopes(document)["work/a"]["total_ns"] == 10 * MS and scopes(document)["work"]["self_ns"] == 12 * MS
    assert [thread["busy_ns"] for thread in document["threads"]] == [10 * MS, 12 * MS]
    assert "14 ms of wall time in scopes, 22 ms of thread time in 2 threads" in tdbg.text("profile", tmp_path / "run")


def test_a_scope_that_has_not_ended_takes_the_time_of_its_children(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.spans([("outer/a", MS, 3 * MS), ("outer/b", 4 * MS, 5 * MS)])
    run.close(ended=False)
    document = tdbg.json("profile", tmp_path / "run")
    outer = scopes(document)["outer"]
    assert (outer["calls"], outer["total_ns"], outer["self_ns"]) == (0, 3 * MS, 0)
    assert document["wall_ns"] == 3 * MS and document["ended"] is False
    assert "the run has not ended" in tdbg.text("profile", tmp_path / "run")


def test_memory(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.spans([("a/b", 0, MS), ("a", 0, 2 * MS), ("c", 3 * MS, 4 * MS)])
    # the release of 0x20 is written before its allocation: another thread made it
    run.blocks([("a/b", 1, 0x10, 1000), ("c", 30, 0x20, 0), ("a", 20, 0x20, 500), ("c", 40, 0x30, 100), ("c", 50, 0x10, 0)])
    run.step(begin_ns=0, end_ns=4 * MS)
    run.close()
    document = tdbg.json("profile", tmp_path / "run")
    found = scopes(document)
    assert document["peak_bytes"] == 1500
    assert (found["a"]["allocated_bytes"], found["a"]["peak_bytes"], found["a"]["held_bytes"]) == (1500, 1500, 0)
    assert found["a/b"]["peak_bytes"] == 1000 and found["c"]["held_bytes"] == 100


def test_table(tdbg, tmp_path):
    text = tdbg.text("profile", model(tmp_path / "run"), env={"COLUMNS": "80"})
    lines = text.splitlines()
    assert lines[0] == f"{tmp_path / 'run'}: 840 ms of wall time in scopes"
    assert lines[1].startswith("20 steps: p50 42 ms, p90 42 ms, p99 42 ms, 3.05 ktokens/s")
    assert "CPU time of all threads: 1.00 x the time of the steps" in lines
    table = lines[lines.index(next(line for line in lines if line.startswith("scope"))):]
    assert all(len(line) <= 80 for line in lines)
    assert table[1].split()[:6] == ["model", "20", "840", "ms", "40", "ms"]
    assert table[2].startswith("  layers.")
    wide = tdbg.text("profile", tmp_path / "run", env={"COLUMNS": "200"})
    assert "bytes/s" in wide and "bytes/s" not in text


def test_rows_asked_for(tdbg, tmp_path):
    model(tmp_path / "run", layer=lambda step, i: (10 - i) * MS)
    names = lambda *args: [line.split()[0] for line in tdbg.text("profile", "-q", tmp_path / "run", *args).splitlines()[4:]]
    assert names() == ["model", "layers.0", "layers.1", "layers.2", "layers.3"]
    assert names("--depth", 1) == ["model"]
    assert names("--top", 2) == ["model", "layers.0"]
    assert names("--sort", "self", "--top", 2) == ["model", "layers.0"]
    assert names("--sort", "name") == ["model", "layers.0", "layers.1", "layers.2", "layers.3"]
    assert names("--flat") == ["layers.0", "layers.1", "layers.2", "layers.3", "model"]
    flat = tdbg.json("profile", "--flat", tmp_path / "run")
    assert [row["name"] for row in flat["names"]] == names("--flat") and "scopes" not in flat
    assert [row["places"] for row in flat["names"]] == [1] * 5 and sum(row["share"] for row in flat["names"]) == pytest.approx(1)


def test_a_slow_layer_stands_out(tdbg, tmp_path):
    document = tdbg.json("profile", model(tmp_path / "run", layer=lambda step, i: 25 * MS if i == 2 else 10 * MS))
    outlier = findings(document)["outlier"]
    assert outlier["scope"] == "model/layers.2" and outlier["value"] == 2.5
    assert "takes 25 ms a call, 2.5 times the median of its kind (10 ms, 4 scopes)" in outlier["text"]


def test_even_layers_do_not_stand_out(tdbg, tmp_path):
    found = findings(tdbg.json("profile", model(tmp_path / "run", 40, lambda step, i: (100 + (step * 7 + i) % 5) * MS // 10)))
    assert set(found) <= {"hot"}


def test_uneven_steps(tdbg, tmp_path):
    document = tdbg.json("profile", model(tmp_path / "run", 100, lambda step, i: 80 * MS if i == 1 and step % 25 == 3 else 10 * MS))
    jitter = findings(document)["jitter"]
    assert jitter["scope"] == "model/layers.1" and jitter["value"] > 1.5 and "p99" in jitter["text"]


def test_steps_that_grow(tdbg, tmp_path):
    document = tdbg.json("profile", model(tmp_path / "run", 60, lambda step, i: (10 + (step // 4 if i == 3 else 0)) * MS))
    drift = findings(document)["drift"]
    assert drift["scope"] == "model/layers.3" and "the first quarter" in drift["text"]


def test_idle_and_unscoped(tdbg, tmp_path):
    found = findings(tdbg.json("profile", model(tmp_path / "run", gap=42 * MS, cpu=0.25)))
    assert found["idle"]["value"] == 0.25 and "25 %" in found["idle"]["text"]
    assert found["unscoped"]["value"] == 0.5 and "840 ms of 1.68 s" in found["unscoped"]["text"]


def test_first_step(tdbg, tmp_path):
    found = findings(tdbg.json("profile", model(tmp_path / "run", layer=lambda step, i: (100 if step == 0 else 10) * MS)))
    assert "The first step takes 402 ms, 9.6 times the median (42 ms)." == found["warmup"]["text"]


def test_many_tiny_calls(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.spans([("loop/add", i * 2000, i * 2000 + 1500) for i in range(2000)] + [("loop", 0, 4 * MS)])
    run.step(begin_ns=0, end_ns=4 * MS)
    run.close()
    tiny = findings(tdbg.json("profile", tmp_path / "run"))["tiny"]
    assert tiny["scope"] == "loop/add" and tiny["value"] == 75 and "2000 calls of 1.50 us" in tiny["text"]


def test_slow_work(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.spans([("fast", 0, 10 * MS, 0, 1e9, 1e6), ("slow", 10 * MS, 30 * MS, 0, 1e8, 1e8)])
    run.step(begin_ns=0, end_ns=30 * MS)
    run.close()
    slow = findings(tdbg.json("profile", tmp_path / "run"))["slow_work"]
    assert slow["text"] == "slow runs at 5 GFLOP/s, fast at 100 GFLOP/s. It does 1 FLOPs for each byte it moves."
    assert "Memory bounds it" in slow["advice"]


def test_gpu_samples(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    for value in (20, 40):
        run.scalar("gpu0.utilisation", 0, value)
        run.scalar("gpu0.memory", 0, value * 2**20)
    run.scalar("loss", 0, 3)
    run.close()
    document = tdbg.json("profile", tmp_path / "run")
    assert document["gauges"] == [
        {"name": "gpu0.utilisation", "samples": 2, "mean": 30, "max": 40},
        {"name": "gpu0.memory", "samples": 2, "mean": 30 * 2**20, "max": 40 * 2**20},
    ]
    assert "gpu0.utilisation is 30 % on average" in findings(document)["gpu_idle"]["text"]
    assert "gpu0.memory: mean 30 MiB, max 40 MiB" in tdbg.text("profile", tmp_path / "run")


def test_many_steps_are_thinned(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    for step in range(10000):
        run.spans([("a", step * 10, step * 10 + 5)])
        run.db.execute("INSERT INTO step VALUES (?, ?, ?, ?, 0, 0)", (step, step, step * 10, step * 10 + 10))
        run.ordinal += 1
    run.close()
    document = tdbg.json("profile", tmp_path / "run")
    assert document["steps"]["count"] == 10000 and document["steps"]["stride"] == 3
    assert scopes(document)["a"]["total_ns"] == 50000 and scopes(document)["a"]["per_step"]["count"] == 3334


def test_wall_time_of_many_pieces(tdbg, tmp_path):
    """More pieces than are kept apart, then two threads that take turns, then two that know nothing of each other."""
    run = Run(tmp_path / "many")
    run.spans([("a", i * 1000, i * 1000 + 900) for i in range(40000)])
    run.close()
    assert tdbg.json("profile", tmp_path / "many")["wall_ns"] == 40000 * 900
    run = Run(tmp_path / "turns")
    run.spans([("a", i * 1000, i * 1000 + 500) for i in range(12000)])
    run.spans([("b", i * 1000 + 500, i * 1000 + 1000, 1) for i in range(6000)])
    run.close()
    assert tdbg.json("profile", tmp_path / "turns")["wall_ns"] == 6000 * 1000 + 6000 * 500
    random, line = np.random.default_rng(1), np.zeros(40_000_000 // 10, bool)
    run = Run(tmp_path / "strangers")
    for thread in range(2):
        edges = np.cumsum(random.integers(20, 160, 44000))[:44000 // 2 * 2].reshape(-1, 2)
        edges = edges[edges[:, 1] < line.size]
        for begin, end in edges:
            line[begin:end] = True
        run.spans([("a", int(begin) * 10, int(end) * 10, thread) for begin, end in edges])
    run.close()
    assert tdbg.json("profile", tmp_path / "strangers")["wall_ns"] == pytest.approx(int(line.sum()) * 10, rel=0.02)


def test_empty_run(tdbg, tmp_path):
    Run(tmp_path / "run").close()
    assert tdbg.text("profile", tmp_path / "run") == f"{tmp_path / 'run'}: 0 of wall time in scopes\n"


def test_wrong_use(tdbg, tmp_path):
    (tmp_path / "folder").mkdir()
    assert tdbg.fails("profile") == "tdbg: profile: no RUN or TRACE given (see 'tdbg profile --help')"
    assert tdbg.fails("profile", tmp_path / "folder") == f"tdbg: {tmp_path / 'folder'}: a folder without run.db: not a recorded run"
    assert "cannot open: No such file" in tdbg.fails("profile", tmp_path / "nowhere")
    assert "--sort takes total, self, calls, name or order, not 'x'" in tdbg.fails("profile", tmp_path, "--sort", "x")


def record(tmp_path, script):
    subprocess.run([BINARY.parent / "tests" / "recording", tmp_path / "run"], input=script, text=True, check=True, timeout=60 * PATIENCE,
                   env={**os.environ, "TDBG_RUN": ""})
    return tmp_path / "run"


def test_self_times_of_a_recorded_program_are_its_wall_time(tdbg, tmp_path):
    step = "begin model\nbegin layers.0\nsleep 20\nend\nbegin layers.1\nbegin attn\nsleep 10\nend\nsleep 10\nend\nsleep 5\nend\n"
    began = time.monotonic()
    run = record(tmp_path, "".join(f"step {i}\n{step}" for i in range(4)))
    elapsed = (time.monotonic() - began) * 1e9
    document = tdbg.json("profile", run)
    whole = sum(scope["self_ns"] for scope in document["scopes"])
    assert whole == document["thread_ns"] == pytest.approx(document["wall_ns"], rel=0.02)
    assert 4 * 45 * MS <= whole <= elapsed
    found = scopes(document)
    assert found["model/layers.1/attn"]["calls"] == 4 and found["model/layers.1"]["self_ns"] >= 40 * MS
    assert document["steps"]["count"] == 4 and findings(document)["idle"]["value"] < 0.5, "it only sleeps"


@pytest.mark.slow
def test_gpus_are_sampled_while_a_run_is_recorded(tdbg, tmp_path, monkeypatch):
    """With a library that claims to be NVML, made by the build."""
    fake = BINARY.parent / "tests" / "unit" / "nvidia"
    if not (fake / "libnvidia-ml.so.1").exists():
        pytest.skip("this build has no unit tests")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake))
    document = tdbg.json("profile", record(tmp_path, "step 0\nbegin a\nsleep 2500\nend\nstep 1\n"))
    means = {gauge["name"]: gauge["mean"] for gauge in document["gauges"]}
    assert means == {"gpu0.utilisation": 40, "gpu0.memory": 2**30, "gpu1.utilisation": 90, "gpu1.memory": 2**31}


def test_recorded_threads(tdbg, tmp_path):
    document = tdbg.json("profile", record(tmp_path, "step 0\nthreads 4 500\n"))
    busy = [thread["busy_ns"] for thread in document["threads"] if thread["calls"]]
    assert 1 <= len(busy) <= 4 and sum(scope["calls"] for scope in document["scopes"]) == 2000
    assert sum(scope["self_ns"] for scope in document["scopes"]) == document["thread_ns"] == sum(busy)
    assert max(busy) <= document["wall_ns"] <= document["thread_ns"]
