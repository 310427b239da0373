"""tdbg_output: a tensor, its cost and the end of its scope in one call; and a large one that is handed over again."""
import numpy as np
import pytest
from recording import STATISTICS, record, rows, spans, step_file


@pytest.fixture
def work(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


def test_an_output_ends_its_scope(tmp_path, work):
    values = np.float32([1, 2, 3, -4])
    values.tofile(work / "values")
    record(["begin model", "begin a", f"output a.output 8 {work / 'values'}", "begin b", f"output - 2 {work / 'values'}",
            f"output model.output 0 {work / 'values'}", f"output alone 1 {work / 'values'}"], tmp_path / "run", "a*=full; *=stats")
    assert spans(tmp_path / "run") == [("/model/a", 8, 0, 0), ("/model/b", 2, 0, 0), ("/model", 0, 0, 0)]
    names = dict(rows(tmp_path / "run", "select id, name from scope"))
    assert [(name, names.get(scope), file is not None, absmax) for name, scope, file, absmax in rows(
        tmp_path / "run", "select name, scope, file, absmax from tensor order by id")] == [
            ("a.output", "a", True, 4), ("model.output", "model", False, 4), ("alone", None, True, 4)]
    assert step_file(tmp_path / "run" / "step-00000000.safetensors")["a.output"] == ("F32", [4], values.tobytes())


def test_an_output_handed_over_again_is_measured_unless_it_changed(tmp_path, work):
    """All have one address; `again` is what the caller believes. The sample sees what changes everything, and a lie about the length."""
    x = np.arange(1 << 20, dtype="float32")
    files = {"x": x, "other": -x, "short": x[:50_000]}
    for name, values in files.items():
        values.tofile(work / name)
    script = ["x", "x again", "other again", "other again", "short again", "x"]
    record([line for i, words in enumerate(script) for line in (f"begin s{i}", f"output o{i} 0 {work / words}")], tmp_path / "run", "*=stats")
    figures = rows(tmp_path / "run", STATISTICS)
    assert [row[0] for row in figures] == [f"o{i}" for i in range(len(script))]
    for (_, count, *_, low, high, _, _), words in zip(figures, script):
        values = files[words.split()[0]]
        assert (count, low, high) == (len(values), values.min(), values.max()), words
    assert figures[0][1:] == figures[1][1:] == figures[5][1:] and figures[2][1:] == figures[3][1:]


def test_what_is_handed_over_again_is_not_read_again(tmp_path, work):
    """The middle of the second is another value, where no line of the sample lies: that is how the test knows."""
    x = np.zeros(1 << 20, dtype="float32")
    x.tofile(work / "x")
    x[(1 << 19) + 8000] = 1
    x.tofile(work / "changed")
    record(["begin a", f"output a 0 {work / 'x'}", "begin b", f"output b 0 {work / 'changed'} again", "begin c", f"output c 0 {work / 'changed'}"],
           tmp_path / "run", "*=stats")
    assert rows(tmp_path / "run", "select name, max from tensor order by id") == [("a", 0), ("b", 0), ("c", 1)]


def test_the_last_output_is_the_last_one_though_it_was_not_measured(tmp_path, work):
    """The second lies where the first lay, and is like it in the sample; the third is the second again."""
    x = np.zeros(1 << 20, dtype="float32")
    x.tofile(work / "x")
    x[(1 << 19) + 8000] = 1
    x.tofile(work / "other")
    for quiet, name in (("quiet=none", "quiet"), ("quiet=full", "quiet"), ("", "-")):
        record(["begin a", f"output a 0 {work / 'x'}", "begin b", f"output {name} 0 {work / 'other'}", "begin c", f"output c 0 {work / 'other'} again"],
               tmp_path / "run", f"{quiet}; *=stats".lstrip("; "), REPLACE="1")
        assert rows(tmp_path / "run", "select max from tensor where name = 'c'") == [(1,)]
