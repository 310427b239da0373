"""`tdbg memory RUN`: the memory that a recorded program told of, by scope."""
import pytest
from runfiles import Run

MS = 1_000_000


def record(folder, **facts):
    """Weights that stay, activations that come and go, and a scope that loses a block each step."""
    run = Run(folder, program="engine", **facts)
    run.blocks([("load", i * MS, 0x10000 + i * 0x10000, 60000) for i in range(4)])
    run.step()
    for step in range(50):
        at = (10 + step * 10) * MS
        run.blocks([("step/layers.0", at, 0x800000, 100_000),
                    ("step/layers.1", at + MS, 0xA00000, 200_000),
                    ("step/cache", at + 2 * MS, 0x1000000 + step * 4096, 2000),
                    ("step/layers.1", at + 3 * MS, 0xA00000, 0),
                    ("step/layers.0", at + 4 * MS, 0x800000, 0)])
        run.step()
    return run


def test_peak_leak_and_timeline(tdbg, tmp_path):
    record(tmp_path / "run").close()
    (story,) = tdbg.json("memory", tmp_path / "run", status=1)["memory"]
    assert story["title"] == "engine"
    assert story["peak"]["bytes"] == 240_000 + 300_000 + 50 * 2000
    assert story["peak"]["time"] == pytest.approx(0.502)
    owners = {row["owner"]: row["bytes"] for row in story["peak"]["owners"]}
    assert owners == {"load": 240_000, "step/layers.0": 100_000, "step/layers.1": 200_000, "step/cache": 100_000}
    leak, held = story["held"]["owners"]
    assert (leak["owner"], leak["bytes"], leak["blocks"], leak["grows"]) == ("step/cache", 100_000, 50, True)
    assert (held["owner"], held["bytes"], held["grows"]) == ("load", 240_000, False)
    assert story["held"]["leaks"] == 1
    assert max(point["bytes"] for point in story["timeline"]) == story["peak"]["bytes"]


def test_threads_are_put_in_the_order_of_time(tdbg, tmp_path):
    """A row of the index is one thread's; what it frees another may have allocated."""
    run = Run(tmp_path / "run")
    run.blocks([("b", 20, 0x1000, 0), ("b", 30, 0x2000, 70)])
    run.blocks([("a", 10, 0x1000, 50), ("a", 40, 0x2000, 0)])
    run.step()
    run.close()
    (story,) = tdbg.json("memory", tmp_path / "run")["memory"]
    assert story["unknown_releases"] == 0
    assert (story["peak"]["bytes"], story["held"]["bytes"]) == (70, 0)


def test_one_of_each(tdbg, tmp_path):
    """No moment of waste is ever reached: none is told of a time before the first event."""
    run = Run(tmp_path / "run")
    run.blocks([("a", 5 * MS, 0x1000, 100), ("a", 6 * MS, 0x1000, 0)])
    run.step()
    run.close()
    (story,) = tdbg.json("memory", tmp_path / "run")["memory"]
    assert {f["moment"]: f["time"] for f in story["fragmentation"][:2]} == {"peak": 0, "worst": 0}
    text = tdbg.text("memory", tmp_path / "run")
    assert ": 1 allocation of 100 B in all, 1 release, " in text and "peak: 100 B in 1 block after 0 s\n" in text
    assert "still held at the end: 0 B in 0 blocks\n" in text


def test_snapshots(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.blocks([("a", 1 * MS, 0x1000, 100), ("b", 3 * MS, 0x2000, 300), ("a", 5 * MS, 0x1000, 0)])
    run.db.executemany("INSERT INTO snapshot (name, step, time_ns) VALUES (?, 0, ?)", [("early", 2 * MS), ("middle", 4 * MS), ("late", 6 * MS)])
    run.step()
    run.close()
    (story,) = tdbg.json("memory", tmp_path / "run")["memory"]
    assert [(mark["name"], mark["bytes"]) for mark in story["snapshots"]] == [("early", 100), ("middle", 400), ("late", 300)]
    change = {row["owner"]: row["bytes"] for row in story["difference"]["owners"]}
    assert change == {"a": -100, "b": 300}
    (story,) = tdbg.json("memory", tmp_path / "run", "--snapshot", "early", "--snapshot", "middle")["memory"]
    assert {row["owner"]: row["bytes"] for row in story["difference"]["owners"]} == {"b": 300}
    assert tdbg.fails("memory", tmp_path / "run", "--snapshot", "early", "--snapshot", "never").endswith("no memory snapshot 'never'")


def test_ranks_and_runs_under_way(tdbg, tmp_path):
    record(tmp_path / "run" / "rank-0", rank=0, world=2).close()
    record(tmp_path / "run" / "rank-1", rank=1, world=2).close(ended=False)
    stories = tdbg.json("memory", tmp_path / "run", status=1)["memory"]
    assert sorted(story["title"] for story in stories) == ["engine, rank 0", "engine, rank 1"]
    under_way = next(story for story in stories if "rank 1" in story["title"])
    assert "not over" in under_way["note"] and under_way["held"]["leaks"] == 0


def test_text(tdbg, tmp_path):
    record(tmp_path / "run").close()
    out = tdbg.text("memory", tmp_path / "run", status=1)
    assert "leak: 97.7 KiB in 50 blocks, growing to the end, from step/cache" in out


def test_trouble(tdbg, tmp_path):
    Run(tmp_path / "empty").close()
    assert tdbg.fails("memory", tmp_path / "empty") == f"tdbg: {tmp_path}/empty: the run recorded no memory (tdbg_alloc, tdbg_free)"
    (tmp_path / "none").mkdir()
    assert tdbg.fails("memory", tmp_path / "none") == f"tdbg: {tmp_path}/none: no recorded run: there is no run.db in it"
    assert tdbg.fails("memory", "nowhere") == "tdbg: nowhere: cannot open: No such file or directory"
