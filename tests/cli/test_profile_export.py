"""What `tdbg profile` writes: Chrome traces of runs, collapsed stacks, flame graphs."""
import json
import xml.etree.ElementTree as xml

import pytest
from runfiles import Run
from test_profile import MS, model, scopes

SVG = "{http://www.w3.org/2000/svg}"


def numbers(document):
    return {path: (scope["calls"], scope["total_ns"], scope["self_ns"], scope["per_step"]) for path, scope in scopes(document).items()}


def test_perfetto_reads_back_as_the_same_profile(tdbg, tmp_path):
    run = model(tmp_path / "run", 12, lambda step, i: 10 * MS + step * 1237 + i)
    tdbg.text("profile", run, "--perfetto", tmp_path / "trace.json")
    ours, theirs = tdbg.json("profile", run), tdbg.json("profile", tmp_path / "trace.json")
    assert numbers(ours) == numbers(theirs)
    assert scopes(ours)["model/layers.1"]["flops"] == scopes(theirs)["model/layers.1"]["flops"]
    assert ours["wall_ns"] == theirs["wall_ns"] and theirs["kind"] == "trace"
    assert [step["number"] for step in theirs["steps"]["kept"]] == list(range(12))


def test_perfetto_is_what_the_format_says(tdbg, tmp_path):
    run = Run(tmp_path / "run", pid=77, program='a "program"')
    run.spans([("outer/inner", 1500, 2001, 3, 1e9, 5e6, 64), ("outer", 1000, 4000, 3)])
    run.blocks([("outer", 1600, 0x10, 1000), ("outer", 1700, 0x20, 24), ("outer", 1900, 0x10, 0)])
    run.scalar("loss", 0, 2.5, time_ns=3000)
    run.scalar("bad", 0, float("nan"), time_ns=3000)
    run.step(number=5, begin_ns=0, end_ns=5000, rss=4096)
    run.close()
    tdbg.text("profile", tmp_path / "run", "--perfetto", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert all(event["pid"] == 77 and event["ph"] in "XCM" for event in events)
    inner = next(event for event in events if event["name"] == "inner")
    assert inner == {"ph": "X", "name": "inner", "pid": 77, "tid": 4, "cat": "scope", "ts": 1.5, "dur": 0.501,
                     "args": {"flops": 1e9, "bytes": 5e6, "tokens": 64}}
    counters = [(event["name"], event["ts"], event["args"]["value"]) for event in events if event["ph"] == "C"]
    assert counters == [("process memory", 5, 4096), ("loss", 3, 2.5), ("memory held", 1.6, 1000), ("memory held", 1.7, 1024), ("memory held", 1.9, 24)]
    names = {(event["name"], event["tid"]): event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names[("process_name", 0)] == 'a "program"' and names[("thread_name", 4)] == "thread 3" and names[("thread_name", 0)] == "steps"


def test_perfetto_of_a_trace_is_refused(tdbg, tmp_path):
    (tmp_path / "t.json").write_text("[]")
    assert "--perfetto takes a RUN" in tdbg.fails("profile", tmp_path / "t.json", "--perfetto", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_collapsed_stacks_add_up(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.spans([("a;b/c d", 0, 10), ("a;b", 0, 30), ("e", 40, 45)])
    run.close()
    tdbg.text("profile", tmp_path / "run", "--collapsed", tmp_path / "stacks.txt")
    assert (tmp_path / "stacks.txt").read_text() == "a,b 20\na,b;c d 10\ne 5\n"


def frames(path):
    root = xml.parse(path).getroot()
    out = {}
    for group in root.iter(f"{SVG}g"):
        title, rect = group.find(f"{SVG}title").text, group.find(f"{SVG}rect")
        out[title.split("\n")[0]] = (float(rect.get("x")), float(rect.get("width")), float(rect.get("y")), title)
    return out


def test_flame_graph(tdbg, tmp_path):
    tdbg.text("profile", model(tmp_path / "run"), "--flame", tmp_path / "f.svg")
    found = frames(tmp_path / "f.svg")
    assert set(found) == {"all", "model", *(f"layers.{i}" for i in range(4))}
    x, width, y, title = found["model"]
    assert width == pytest.approx(1180) and "self 40 ms, 20 calls" in title
    places = [found[f"layers.{i}"] for i in range(4)]
    for (x, width, below, _), after in zip(places, places[1:]):
        assert width == pytest.approx(1180 * 200 / 840, abs=0.02) and after[0] == pytest.approx(x + width, abs=0.02) and below > y
    text = (tmp_path / "f.svg").read_text()
    assert "<script>" in text and "http" not in text.replace("http://www.w3.org/2000/svg", ""), "nothing from elsewhere"


def test_names_in_a_flame_graph_are_text(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    run.spans([('<script>alert("1")&amp;]]>', 0, 1000), ("ä" * 300, 1000, 3000)])
    run.close()
    tdbg.text("profile", tmp_path / "run", "--flame", tmp_path / "f.svg")
    assert '<script>alert("1")&amp;]]>' in frames(tmp_path / "f.svg")
    assert (tmp_path / "f.svg").read_text().count("<script>") == 1


def test_empty_run(tdbg, tmp_path):
    Run(tmp_path / "run").close()
    tdbg.text("profile", tmp_path / "run", "--flame", tmp_path / "f.svg", "--collapsed", tmp_path / "c", "--perfetto", tmp_path / "p.json")
    assert set(frames(tmp_path / "f.svg")) == {"all"} and (tmp_path / "c").read_text() == ""
    assert json.loads((tmp_path / "p.json").read_text())["traceEvents"]


def test_a_file_that_cannot_be_written(tdbg, tmp_path):
    run = model(tmp_path / "run", 1)
    for option in ("--flame", "--collapsed", "--perfetto"):
        assert "nowhere/x: cannot" in tdbg.fails("profile", run, option, tmp_path / "nowhere" / "x")
        assert "No space left" in tdbg.fails("profile", run, option, "/dev/full")
