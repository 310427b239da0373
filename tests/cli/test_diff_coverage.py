"""No answer without evidence: how much of each side has a partner, and what is said when that is too little."""
import json
import xml.etree.ElementTree

import numpy as np
import pytest


def dump(folder, names, seed=0, change=()):
    """One tensor for each name, of a shape and of values that depend on its place in the list alone."""
    folder.mkdir()
    generator = np.random.default_rng(seed)
    for i, name in enumerate(names):
        value = generator.standard_normal((3 + i, 8)).astype(np.float32)
        np.save(folder / f"{name}.npy", value * 2 if name in change else value)
    return folder


@pytest.fixture
def few(tmp_path):
    """Eight tensors each, of which two have the same name."""
    a = dump(tmp_path / "a", ["x0", "x1", *(f"left_{w}" for w in "abcdef")])
    b = dump(tmp_path / "b", ["x0", "x1", *(f"other{w}{w}" for w in "uvwxyz")])
    return a, b


def words(text):
    return " ".join(text.split())


def test_too_little_is_no_agreement(tdbg, few):
    done = tdbg.run("diff", *few, "--match", "exact")
    assert done.returncode == 1
    assert "not enough paired to say: 25 % of A and 25 % of B have a partner." in words(done.stdout)
    for option in "--pairs", "--names", "--match", "--coverage":
        assert option in done.stdout.rsplit("not enough", 1)[1]
    assert not any(word in done.stdout.split("2 pairs")[1] for word in ("agree", "are identical"))
    assert tdbg.text("diff", "-q", *few, "--match", "exact", status=1).startswith("not enough paired to say")
    summary = tdbg.json("diff", *few, "--match", "exact", status=1)["summary"]
    assert (summary["coverage"], summary["enough"], summary["identical"]) == ({"a": 0.25, "b": 0.25}, False, 2)


def test_how_much_is_enough_can_be_said(tdbg, few):
    for share, enough in (0, True), (0.25, True), (0.26, False), (1, False):
        found = tdbg.json("diff", *few, "--match", "exact", "--coverage", share, status=0 if enough else 1)
        assert found["summary"]["enough"] is enough
    text = tdbg.text("diff", "-q", *few, "--match", "exact", "--coverage", "0.2")
    assert words(text) == "The 2 pairs are identical; 25 % of A and 25 % of B have a partner. 12 tensors have no partner."
    assert "a coverage of 1.5; it is a share, from 0 to 1" in tdbg.fails("diff", *few, "--coverage", "1.5")


def test_the_shorter_side_decides(tdbg, tmp_path):
    """A few tensors held against a whole dump are all that was meant."""
    a = dump(tmp_path / "a", [f"x{i}" for i in range(30)])
    b = dump(tmp_path / "b", ["x0", "x1"])
    for sides in (a, b), (b, a):
        summary = tdbg.json("diff", *sides, "--match", "exact")["summary"]
        assert summary["enough"] and sorted(summary["coverage"].values()) == [2 / 30, 1]


def test_nothing_paired_is_never_enough(tdbg, tmp_path):
    a, b = dump(tmp_path / "a", ["x0", "x1"]), dump(tmp_path / "b", ["y7", "y8"], seed=1)
    text = words(tdbg.text("diff", "-q", a, b, "--match", "exact", "--coverage", "0", status=1))
    assert text.startswith("not enough paired to say: nothing in A has a partner in B. Try --pairs FILE")


def test_a_divergence_is_told_with_the_shares(tdbg, tmp_path):
    a = dump(tmp_path / "a", ["x0", "x1", *(f"left_{w}" for w in "abcdef")])
    b = dump(tmp_path / "b", ["x0", "x1", *(f"other{w}{w}" for w in "uvwxyz")], change=["x1"])
    text = words(tdbg.text("diff", "-q", a, b, "--match", "exact", status=1))
    assert text.startswith("First divergence: x1.npy")
    assert text.endswith("Only 25 % of A and 25 % of B have a partner: the first mistake may be in what has none.")


def test_what_lies_in_between_is_named(tdbg, tmp_path):
    a = dump(tmp_path / "a", ["0_query", "1_lost", "2_query", "3_query"])
    b = dump(tmp_path / "b", ["0_query", "9_other", "2_query", "3_query"], change=["2_query", "3_query"])
    (b / "9_other.npy").unlink()
    text = words(tdbg.text("diff", "-q", a, b, status=1))
    assert "First divergence: layer 2, query." in text
    assert "Before it, 1 tensor has no partner (1_lost.npy of A): the mistake may be in there." in text
    (a / "1_lost.npy").unlink()
    assert "may be in there" not in tdbg.text("diff", "-q", a, b, status=1)


def test_reports(tdbg, few, tmp_path):
    tdbg.run("diff", *few, "--match", "exact", "--html", tmp_path / "r.html", "--junit", tmp_path / "r.xml")
    html = (tmp_path / "r.html").read_text()
    assert "Not enough is paired to say" in html and "They agree" not in html
    suite = xml.etree.ElementTree.parse(tmp_path / "r.xml").getroot().find("testsuite")
    (case,) = [c for c in suite.findall("testcase") if c.get("name") == "coverage"]
    assert case.find("failure").get("message") == "not enough paired to say: 25 % of A and 25 % of B have a partner"
    assert suite.get("failures") == "1" and int(suite.get("tests")) == len(suite.findall("testcase"))


def test_batch(tdbg, few, tmp_path):
    a, b = few
    path = tmp_path / "batch.json"
    one = {"a": str(a), "b": str(b), "match": "exact"}
    path.write_text(json.dumps({"version": 1, "comparisons": [one, {**one, "coverage": 0.1}]}))
    found = tdbg.json("batch", path, status=2)["comparisons"]
    assert [c["status"] for c in found] == ["error", "same"]
    assert found[0]["error"] == "not enough paired to say: 25 % of A and 25 % of B have a partner"
    path.write_text(json.dumps({"version": 1, "comparisons": [{**one, "coverage": 2}]}))
    assert "a coverage of 2" in tdbg.fails("batch", path)


def test_how_a_pair_was_found(tdbg, few):
    pairs = tdbg.json("diff", *few, "--match", "exact", status=1)["pairs"]
    assert {(p["sure"], p["strategy"]) for p in pairs} == {(1, "exact"), (0, "none")}
    assert all(p["aliases"] == {"a": [], "b": []} for p in pairs)
    assert all({"evidence", "template"} <= p.keys() for p in pairs)


# --- files of names and of pairs ----------------------------------------------------------------------------------

@pytest.mark.parametrize("content, message", [
    ("a = b\nq{L}\n", "line 2: no '=': a rule is PATTERN = STAGE"),
    ("a = b{L}\n", "line 1: {L} in the stage, and none in the pattern to say which"),
    ('{"a": 3}', '"a": what it stands for is no text'),
])
def test_bad_names(tdbg, few, tmp_path, content, message):
    names = tmp_path / "engine.names"
    names.write_text(content)
    assert tdbg.fails("diff", *few, "--names", names).endswith(f"{names}: {message}")


def test_names_are_read(tdbg, few, tmp_path):
    names = tmp_path / "engine.names"
    assert "cannot open" in tdbg.fails("diff", *few, "--names", names)
    names.write_text("# ours\nother{L}_q = left_{L}\n")
    tdbg.text("diff", *few, "--names", names, "--coverage", "0")


def test_pairs_for_all_layers(tdbg, tmp_path):
    a = dump(tmp_path / "a", [f"model.layers.{i}.self_attn.q_proj" for i in range(4)])
    b = dump(tmp_path / "b", [f"Zorro-{i + 1}" for i in range(4)])
    pairs = tmp_path / "pairs.json"
    pairs.write_text(json.dumps({"pairs": [{"a": "model.layers.{L}.self_attn.q_proj.npy", "b": "Zorro-{L+1}.npy"}]}))
    found = tdbg.json("diff", a, b, "--pairs", pairs, "--match", "manual")
    assert [(p["a"]["name"], p["b"]["name"], p["strategy"]) for p in found["pairs"]] == [
        (f"model.layers.{i}.self_attn.q_proj.npy", f"Zorro-{i + 1}.npy", "manual") for i in range(4)]
    pairs.write_text(json.dumps({"pairs": [{"a": "model.layers.{L}.q.npy", "b": "Zorro-{L+1}.npy"}]}))
    assert "'model.layers.{L}.q.npy', which fits no tensor of A" in tdbg.fails("diff", a, b, "--pairs", pairs)
