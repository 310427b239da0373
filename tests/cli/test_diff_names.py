"""Both names of a pair, and how sure it is, wherever a pair is told."""
import csv
import json
import xml.etree.ElementTree

import numpy as np
import pytest

A = [f"model.layers.{layer}.{what}.output" for layer in (0, 1) for what in ("post_attention_layernorm", "mlp.down_proj")]
B = ["L0.ln2", "L0.out", "L1.ln2", "L1.out"]


@pytest.fixture
def renamed(tmp_path):
    """Two dumps of other names; the pairs are told. The last two differ; B has one tensor more."""
    generator = np.random.default_rng(7)
    values = [generator.standard_normal((6, 8)).astype(np.float32) for _ in A]
    np.savez(tmp_path / "a.npz", **dict(zip(A, values)))
    np.savez(tmp_path / "b.npz", **dict(zip(B, [v * (2 if i > 1 else 1) for i, v in enumerate(values)])), odd=np.ones(3))
    (tmp_path / "pairs.json").write_text(json.dumps({"version": 1, "pairs": [{"a": a, "b": b} for a, b in zip(A, B)]}))
    return "a.npz", "b.npz", "--pairs", "pairs.json", "--match", "manual"


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("width", [64, 80, 120, 160])
def test_text(tdbg, renamed, tmp_path, width):
    text = tdbg.text("diff", *renamed, "-v", status=1, cwd=tmp_path, env={"COLUMNS": str(width)})
    assert max(map(len, text.splitlines())) <= width, text
    table = [part for part in text.split("\n\n") if part.lstrip().startswith("layer")][0].splitlines()
    assert "in B" in table[0]
    if width >= 80:
        assert all(any(name in line for line in table) for name in (*B, "odd")), text
        (only,) = [line for line in table if "odd" in line]
        assert only.index("odd") == table[0].index("in B") and "only in B" in only
    if width >= 120:
        assert all(any(name.split(".", 3)[3] in line for line in table) for name in A), text
    assert "First divergence: layer 1, post_attention_layernorm.output (in B: L1.ln2). B is off by" in words(text)


def test_no_column_for_names_that_are_the_same(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3.0), y=np.arange(4.0))
    for name in "x", "y":
        (tmp_path / "b").mkdir(exist_ok=True)
        np.save(tmp_path / "b" / f"{name}.npy", np.arange(3.0 if name == "x" else 4.0) + (name == "y"))
    text = tdbg.text("diff", "a.npz", "b", "-v", status=1, cwd=tmp_path)
    assert "in B" not in text and "divergence: y. " in words(text)


def test_csv(tdbg, renamed, tmp_path):
    tdbg.run("diff", *renamed, "--csv", "out.csv", cwd=tmp_path)
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    assert [(row["name_a"], row["name_b"], row["sure"]) for row in rows if row["name_a"]] == [(a, b, "1.0") for a, b in zip(A, B)]
    assert [(row["name_a"], row["name_b"], row["sure"]) for row in rows if not row["name_a"]] == [("", "odd", "")]


def test_junit(tdbg, renamed, tmp_path):
    tdbg.run("diff", *renamed, "--junit", "out.xml", cwd=tmp_path)
    suite = xml.etree.ElementTree.parse(tmp_path / "out.xml").getroot().find("testsuite")
    found = {}
    for case in suite.findall("testcase"):
        properties = {p.get("name"): p.get("value") for p in case.findall("properties/property")}
        if properties:
            found[properties["a"]] = properties["b"]
            assert "doubt" not in properties
    assert found == dict(zip(A, B))


def test_doubt_of_the_first_divergence_is_told(tdbg, tmp_path):
    """Whatever pairs the two: where it is not sure, the paragraph says so without -v."""
    generator = np.random.default_rng(3)
    x = generator.standard_normal((16, 24)).astype(np.float32)
    np.savez(tmp_path / "a.npz", qux=x)
    np.savez(tmp_path / "b.npz", zap=(x + 2 * generator.standard_normal(x.shape)).astype(np.float32))
    answer = tdbg.json("diff", "a.npz", "b.npz", status=1, cwd=tmp_path)
    pair = answer["pairs"][answer["first_divergence"]["index"]]
    assert pair["sure"] < 0.9
    text = words(tdbg.text("diff", "-q", "a.npz", "b.npz", status=1, cwd=tmp_path))
    doubt = f"(paired by {pair['strategy']}, {int(100 * pair['sure'] + 1e-9)} % sure: {pair['evidence']})"
    assert f"(in B: zap). The two may not belong together {doubt}. B is off by" in text


def test_the_kind_of_a_file_takes_no_room(tdbg, renamed, tmp_path):
    """Of "L0.ln2.npy" the table shows "L0.ln2"; the paragraph names the file."""
    (tmp_path / "b").mkdir()
    with np.load(tmp_path / "b.npz") as values:
        for name in B:
            np.save(tmp_path / "b" / f"{name}.npy", values[name])
    pairs = [{"a": a, "b": f"{b}.npy"} for a, b in zip(A, B)]
    (tmp_path / "pairs.json").write_text(json.dumps({"version": 1, "pairs": pairs}))
    text = tdbg.text("diff", "a.npz", "b", *renamed[2:], status=1, cwd=tmp_path, env={"COLUMNS": "120"})
    assert "  L1.ln2  " in text and "(in B: L1.ln2.npy)" in words(text)


@pytest.mark.parametrize("width", [64, 72, 80, 100])
def test_a_table_in_which_nothing_is_first_fits(tdbg, renamed, tmp_path, width):
    """The column that marks the first divergence is empty then, and what parts it from the next is still there."""
    text = tdbg.text("diff", "a.npz", "a.npz", "-v", cwd=tmp_path, env={"COLUMNS": str(width)})
    assert max(map(len, text.splitlines())) <= width, text
    with np.load(tmp_path / "a.npz") as values:
        np.savez(tmp_path / "c.npz", **{b: values[a] for a, b in zip(A, B)})
    text = tdbg.text("diff", "a.npz", "c.npz", *renamed[2:], "-v", cwd=tmp_path, env={"COLUMNS": str(width)})
    assert max(map(len, text.splitlines())) <= width, text
