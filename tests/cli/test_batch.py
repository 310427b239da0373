"""`tdbg batch FILE.json`: many comparisons, one answer."""
import json
import os
import xml.etree.ElementTree

import numpy as np
import pytest


@pytest.fixture
def suite(tmp_path):
    """Runs to compare, and a function that writes a batch file beside them."""
    rng = np.random.default_rng(11)
    values = {f"{layer}_{stage}": rng.standard_normal((6, 4, 8)).astype(np.float32) for layer in range(2) for stage in ("query", "key")}
    for run in ("good", "same", "bad", "close"):
        (tmp_path / run).mkdir()
        for name, v in values.items():
            v = -v if (run, name) == ("bad", "1_key") else v * np.float32(1.001) if run == "close" else v
            np.save(tmp_path / run / f"{name}.npy", v)

    def write(comparisons, **more):
        path = tmp_path / "suite.json"
        path.write_text(json.dumps({"version": 1, "comparisons": comparisons, **more}))
        return path

    return write


def test_all_as_expected(tdbg, suite):
    path = suite([{"name": "one", "a": "good", "b": "same"}, {"name": "two", "a": "good", "b": "bad", "expect": "diverged"}])
    found = tdbg.json("batch", path)
    assert found["summary"] == {"comparisons": 2, "same": 1, "diverged": 1, "errors": 0, "unexpected": 0}
    one, two = found["comparisons"]
    assert (one["name"], one["status"], one["ok"], one["first_divergence"]) == ("one", "same", True, None)
    assert one["summary"] == {"pairs": 4, "identical": 4, "within": 0, "diverged": 0, "errors": 0, "only_a": 0, "only_b": 0,
                              "coverage": {"a": 1, "b": 1}, "enough": True}
    assert (two["status"], two["expected"], two["ok"]) == ("diverged", "diverged", True)
    assert two["first_divergence"]["layer"] == 1 and two["first_divergence"]["stage"] == "key"
    assert two["first_divergence"]["diagnosis"][0]["kind"] == "sign"


def test_each_is_the_diff(tdbg, suite, tmp_path):
    found = tdbg.json("batch", suite([{"name": "x", "a": "good", "b": "bad"}]), status=1)["comparisons"][0]
    alone = tdbg.json("diff", tmp_path / "good", tmp_path / "bad", status=1)
    assert found["summary"] == alone["summary"]
    assert found["first_divergence"] == alone["first_divergence"]


def test_some_not_as_expected(tdbg, suite):
    path = suite([{"name": "one", "a": "good", "b": "bad"}, {"name": "two", "a": "good", "b": "same", "expect": "diverged"}])
    assert [c["ok"] for c in tdbg.json("batch", path, status=1)["comparisons"]] == [False, False]


def test_one_failure_stops_no_other(tdbg, suite, tmp_path):
    path = suite([{"name": "gone", "a": "nowhere", "b": "good"}, {"name": "there", "a": "good", "b": "same"}])
    done = tdbg.run("batch", "--json", path)
    assert done.returncode == 2
    gone, there = json.loads(done.stdout)["comparisons"]
    assert gone["status"] == "error" and there["status"] == "same"
    assert gone["error"] == f"{tmp_path}/nowhere: cannot open: No such file or directory"
    assert done.stderr == f"tdbg: gone: {gone['error']}\n"


def test_nothing_in_common_is_an_error(tdbg, suite, tmp_path):
    np.savez(tmp_path / "x.npz", alpha=np.ones((3, 5)), gamma=np.ones((3, 5)))
    np.savez(tmp_path / "y.npz", beta=np.ones(7), delta=np.ones(7))
    done = tdbg.run("batch", "--json", suite([{"name": "n", "a": "x.npz", "b": "y.npz"}]))
    assert done.returncode == 2 and json.loads(done.stdout)["comparisons"][0]["status"] == "error"


def test_settings(tdbg, suite):
    path = suite([{"name": "loose", "a": "good", "b": "close", "rtol": 0.01}, {"name": "tight", "a": "good", "b": "close", "rtol": 1e-6},
                  {"name": "by default", "a": "good", "b": "close"}, {"name": "null", "a": "good", "b": "close", "policy": None}],
                 defaults={"policy": "strict", "expect": "diverged"})
    assert [c["status"] for c in tdbg.json("batch", path, status=1)["comparisons"]] == ["same", "diverged", "diverged", "diverged"]


def test_paths_are_relative_to_the_file(tdbg, suite, tmp_path, monkeypatch):
    path = suite([{"name": "x", "a": "good", "b": str(tmp_path / "same")}])
    monkeypatch.chdir("/")
    tdbg.text("batch", path)
    monkeypatch.chdir(tmp_path)
    tdbg.text("batch", "suite.json")
    (tmp_path / "sub").mkdir()
    os.rename(path, tmp_path / "sub" / "suite.json")
    assert tdbg.run("batch", "sub/suite.json").returncode == 2


def test_table(tdbg, suite):
    path = suite([{"name": "one", "a": "good", "b": "same"}, {"name": "two", "a": "good", "b": "bad"}])
    lines = tdbg.text("batch", path, status=1).splitlines()
    assert lines[0].split() == ["name", "pairs", "diverged", "first", "divergence", "kind", "verdict"]
    assert lines[1].split() == ["one", "4", "0", "same"]
    assert lines[2].split() == ["two", "4", "1", "layer", "1,", "key", "sign", "diverged", "expected", "same"]
    assert lines[-1] == "2 comparisons: 1 as expected, 1 not, 0 could not be compared"
    assert [line.split()[0] for line in tdbg.text("batch", "-q", path, status=1).splitlines()] == ["name", "two"]


def test_junit(tdbg, suite, tmp_path):
    path = suite([{"name": "a < b & \"c\"", "a": "good", "b": "bad"}, {"name": "gone", "a": "nowhere", "b": "good"}, {"name": "fine", "a": "good", "b": "same"}])
    tdbg.run("batch", path, "--junit", tmp_path / "r.xml")
    found = xml.etree.ElementTree.parse(tmp_path / "r.xml").getroot().find("testsuite")
    assert {k: found.get(k) for k in ("tests", "failures", "errors")} == {"tests": "3", "failures": "1", "errors": "1"}
    cases = found.findall("testcase")
    assert [c.get("name") for c in cases] == ["a < b & \"c\"", "gone", "fine"]
    assert cases[0].find("failure").get("message") == "diverged, expected same; first layer 1, key"
    assert "sign (" in cases[0].find("failure").text
    assert "cannot open" in cases[1].find("error").get("message")
    assert len(cases[2]) == 0


@pytest.mark.parametrize("text, message", [
    ("", "batch is not valid JSON: '[' or '{' expected near end of file (at byte 0)"),
    ("[]", "batch is not a JSON object (at byte 0)"),
    ('{"comparisons": []}', '"version" is not 1'),
    ('{"version": 2, "comparisons": []}', '"version" is not 1'),
    ('{"version": 1}', 'no array "comparisons" with a comparison in it'),
    ('{"version": 1, "comparisons": {}}', 'no array "comparisons" with a comparison in it'),
    ('{"version": 1, "comparisons": [3]}', "comparison 1: not an object"),
    ('{"version": 1, "comparisons": [{"name": "x", "a": "p"}]}', 'comparison 1, "x": no "b" to compare'),
    ('{"version": 1, "comparisons": [{"a": 1, "b": "q"}]}', 'comparison 1: "a" is not a path'),
    ('{"version": 1, "comparisons": [{"a": "p", "b": "q"}, {"a": "p", "b": "q", "rtol": -1}]}', 'comparison 2: "rtol" is not a number of 0 or more'),
    ('{"version": 1, "comparisons": [{"name": "x", "a": "p", "b": "q", "polcy": "noise"}]}', 'comparison 1, "x": no setting is called "polcy"'),
    ('{"version": 1, "comparisons": [{"name": "x", "a": "p", "b": "q", "policy": "lax"}]}', "comparison 1, \"x\": no policy 'lax'; there are noise and strict"),
    ('{"version": 1, "comparisons": [{"name": "x", "a": "p", "b": "q", "expect": "error"}]}', 'comparison 1, "x": "expect" is neither "same" nor "diverged"'),
    ('{"version": 1, "defaults": [], "comparisons": [{"a": "p", "b": "q"}]}', '"defaults" is not an object'),
    ('{"version": 1, "defaults": {"name": "x"}, "comparisons": [{"a": "p", "b": "q"}]}', 'defaults: no setting is called "name"'),
])
def test_bad_files(tdbg, tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert tdbg.fails("batch", path) == f"tdbg: {path}: {message}"


def test_usage(tdbg, tmp_path):
    assert tdbg.fails("batch", tmp_path / "none.json") == f"tdbg: {tmp_path}/none.json: cannot open: No such file or directory"
    assert tdbg.fails("batch") == "tdbg: batch: one FILE.json is run, 0 given (see 'tdbg batch --help')"


def test_help_teaches_a_file_that_works(tdbg, tmp_path):
    """The example in the help is a batch that reads."""
    text = tdbg.text("batch", "--help")
    example = text[text.index('{"version"'):text.index("]}") + 2]
    (tmp_path / "example.json").write_text(example)
    names = [c["name"] for c in json.loads(tdbg.run("batch", "--json", tmp_path / "example.json").stdout)["comparisons"]]
    assert names == ["prefill", "weights", "old bug"]
