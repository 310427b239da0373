"""`tdbg diff` from outside: exit statuses, the shape of the answer, options, reports, and what is said when
things do not fit."""
import csv
import json
import os
import stat
import tarfile
import xml.etree.ElementTree
import zipfile

import numpy as np
import pytest
import torch

import tensorfiles
from difftools import compare, dump, one, single

STAGES = ["post_ln_pre_attn", "query", "key", "post_attn", "post_mlp"]


def model(layers=3, first=0, seed=1):
    rng = np.random.default_rng(seed)
    return {f"{first + n}_{s}": rng.standard_normal((12, 32)).astype(np.float32) for n in range(layers) for s in STAGES}


def broken(tensors, name="1_query", factor=0.125):
    """The same run with one stage scaled."""
    return {n: (x * np.float32(factor) if n == name else x) for n, x in tensors.items()}


@pytest.fixture
def runs(tmp_path):
    """a, same (identical), close (rounding), wrong (diverged at layer 1, query)"""
    tensors = model()
    rng = np.random.default_rng(2)
    near = {n: (x * (1 + 2e-8 * rng.standard_normal(x.shape))).astype(np.float32) for n, x in tensors.items()}
    dump(tmp_path / "a", tensors)
    dump(tmp_path / "same", tensors)
    dump(tmp_path / "close", near)
    dump(tmp_path / "wrong", broken(tensors))
    return tmp_path


# --- exit status and JSON ------------------------------------------------------------------------------------------


def test_exit_status(tdbg, runs):
    for other, status in ("same", 0), ("close", 0), ("wrong", 1), ("nowhere", 2):
        assert tdbg.run("diff", runs / "a", runs / other).returncode == status, other


def test_a_pair_that_cannot_be_compared_is_trouble(tdbg, runs):
    np.save(runs / "same" / "2_key.npy", np.zeros((5, 7), np.float32))
    done = tdbg.run("diff", runs / "a", runs / "same")
    assert done.returncode == 2 and "No divergence among the pairs that could be compared; 1 could not." in done.stdout
    np.save(runs / "wrong" / "2_key.npy", np.zeros((5, 7), np.float32))
    assert tdbg.run("diff", runs / "a", runs / "wrong").returncode == 1


def test_nothing_in_common_is_a_difference(tdbg, tmp_path):
    dump(tmp_path / "a", {"0_query": np.ones((3, 4)), "0_key": np.ones((3, 5))})
    dump(tmp_path / "b", {"7_post_mlp": np.ones((9, 2)), "norm": np.ones(7)})
    done = tdbg.run("diff", tmp_path / "a", tmp_path / "b")
    assert done.returncode == 1 and "not enough paired to say: nothing in A has a partner in B. Try --pairs" in " ".join(done.stdout.split())


def keys(thing):
    return set(thing)


def test_shape_of_the_answer(tdbg, runs):
    del_b = runs / "wrong" / "2_post_mlp.npy"
    del_b.unlink()
    np.save(runs / "wrong" / "0_extra.npy", np.ones((2, 3, 5)))
    np.save(runs / "wrong" / "2_key.npy", np.zeros((5, 7), np.float32))
    (runs / "a" / "notes.npy").write_bytes(b"\x93NUMPY nothing")
    answer = compare(tdbg, runs / "a", runs / "wrong", status=1)
    assert keys(answer) >= {"version", "a", "b", "summary", "policy", "first_divergence", "pairs", "skipped"}
    assert answer["version"] == 1
    assert answer["a"] == {"path": str(runs / "a"), "tensors": 15}
    assert answer["b"] == {"path": str(runs / "wrong"), "tensors": 15}
    assert answer["summary"] == {"pairs": 14, "identical": 12, "within": 0, "diverged": 1, "errors": 1, "only_a": 1,
                                 "only_b": 1, "coverage": {"a": 14 / 15, "b": 14 / 15}, "enough": True}  # fmt: skip
    assert answer["policy"] == {"kind": "noise", "rtol": None, "atol": None, "reference": None}
    first = answer["first_divergence"]
    assert keys(first) == {"index", "layer", "stage", "name", "diagnosis"}
    assert (first["layer"], first["stage"], first["name"]) == (1, "query", "1_query.npy")
    assert answer["pairs"][first["index"]]["name"] == first["name"]
    for finding in first["diagnosis"]:
        assert keys(finding) == {"kind", "confidence", "detail"} and 0 <= finding["confidence"] <= 1
    assert [p["index"] for p in answer["pairs"]] == list(range(16))
    for pair in answer["pairs"]:
        assert keys(pair) >= {"index", "layer", "stage", "name", "strategy", "verdict", "reason", "a", "b", "layout",
                              "metrics"}  # fmt: skip
        measured = pair["verdict"] in ("identical", "within", "diverged")
        assert (pair["a"] is None) == (pair["verdict"] == "only_b") and (pair["b"] is None) == (pair["verdict"] == "only_a")
        for side in "ab":
            if pair[side]:
                assert keys(pair[side]) >= {"name", "dtype", "shape"}
        if measured:
            assert keys(pair["layout"]) == {"shape", "steps", "by_value"}
            assert keys(pair["metrics"]) >= {
                "max_abs", "mean_abs", "max_rel", "mean_rel", "mse", "rmse", "cosine", "rel_l2", "snr_db", "beyond",
                "count", "nan_a", "nan_b", "inf_a", "inf_b", "argmax", "argmax_a", "argmax_b", "max_ulp"}  # fmt: skip
        else:
            assert pair["layout"] is None and pair["metrics"] is None
        assert (pair.get("origin") is not None) == (pair["verdict"] == "diverged")
    assert [keys(s) for s in answer["skipped"]] == [{"path", "name", "reason"}]
    assert answer["skipped"][0]["name"] == "notes.npy" and answer["skipped"][0]["path"] == str(runs / "a")
    verdicts = {p["name"]: (p["verdict"], p["reason"]) for p in answer["pairs"]}
    assert verdicts["2_post_mlp.npy"] == ("only_a", "no partner in B")
    assert verdicts["0_extra.npy"] == ("only_b", "no partner in A")
    assert verdicts["2_key.npy"] == ("error", "shapes [12, 32] and [5, 7] do not line up (384 and 35 elements)")


def test_order_is_that_of_execution(tdbg, runs):
    answer = compare(tdbg, runs / "a", runs / "wrong")
    assert [(p["layer"], p["stage"]) for p in answer["pairs"]] == [(n, s) for n in range(3) for s in STAGES]


def test_names_without_layers(tdbg, tmp_path):
    for side in "ab":
        dump(tmp_path / side, {"embedding": np.ones((4, 5)), "head": np.ones((6, 2))})
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=0)
    for pair, name in zip(answer["pairs"], ["embedding.npy", "head.npy"]):
        assert pair["layer"] is None and pair["stage"] == pair["name"] == name


def test_two_files_are_compared_whatever_their_names(tdbg, tmp_path):
    np.save(tmp_path / "before.npy", np.ones((3, 4)))
    np.save(tmp_path / "after.npy", np.ones((3, 4)))
    np.save(tmp_path / "other.npy", np.ones((5, 7)))
    assert one(compare(tdbg, tmp_path / "before.npy", tmp_path / "after.npy", status=0))["verdict"] == "identical"
    pair = one(compare(tdbg, tmp_path / "before.npy", tmp_path / "other.npy", status=2))
    assert pair["reason"] == "shapes [3, 4] and [5, 7] do not line up (12 and 35 elements)"


# --- options ---------------------------------------------------------------------------------------------------------


def test_only(tdbg, runs):
    (runs / "wrong" / "2_post_mlp.npy").unlink()
    np.save(runs / "wrong" / "2_key.npy", np.zeros((5, 7), np.float32))
    listed = lambda what: [p["name"] for p in compare(tdbg, runs / "a", runs / "wrong", "--only", what)["pairs"]]
    assert listed("diverged") == listed("born") == ["1_query.npy"]
    assert listed("errors") == ["2_key.npy"] and listed("unmatched") == ["2_post_mlp.npy"]
    assert len(listed("identical")) == 12 and listed("within") == []
    whole = compare(tdbg, runs / "a", runs / "wrong")
    part = compare(tdbg, runs / "a", runs / "wrong", "--only", "errors")
    assert part["summary"] == whole["summary"] and part["first_divergence"] == whole["first_divergence"]


def test_only_born_leaves_out_what_is_inherited(tdbg, tmp_path):
    rng = np.random.default_rng(5)
    names = [f"{n}_{s}" for n in range(2) for s in ("query", "query_final", "post_attn")]
    a = {n: rng.standard_normal((8, 16)) for n in names}
    b = {n: x * 2 if n.startswith("1_query") else x for n, x in a.items()}
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b")
    origins = {p["name"]: p["origin"] for p in answer["pairs"] if "origin" in p}
    assert origins == {"1_query.npy": "born", "1_query_final.npy": "inherited"}
    assert [p["name"] for p in compare(tdbg, tmp_path / "a", tmp_path / "b", "--only", "born")["pairs"]] == ["1_query.npy"]


def test_a_nan_is_born_where_nothing_before_it_is_lost(tdbg, tmp_path):
    rng = np.random.default_rng(5)
    a = {f"{n}_{s}": rng.standard_normal((8, 16)) for n in range(2) for s in ("query", "query_final", "post_attn")}
    b = {n: x * (1 if n.startswith("0") else 2) for n, x in a.items()}
    b["1_query_final"][3, 5] = np.nan
    b["1_post_attn"][2] = np.nan
    dump(tmp_path / "a", a)
    dump(tmp_path / "b", b)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b")
    assert {p["name"]: p["origin"] for p in answer["pairs"] if "origin" in p} == {
        "1_query.npy": "born", "1_query_final.npy": "born", "1_post_attn.npy": "inherited"}
    assert {p["name"]: p for p in answer["pairs"]}["1_query_final.npy"]["diagnosis"][0]["kind"] == "nan"


def test_layout_by_hand_reports_what_does_not_fit(tdbg, tmp_path):
    x = np.arange(24.0).reshape(4, 6)
    reason = lambda text: single(tdbg, tmp_path, x, x, "--layout", text, status=2)["reason"]
    assert reason("a b -> b a") == "layout 'a b -> b a': 'b' is 4 in A and 6 in B"
    assert reason("a b -> b c") == "layout 'a b -> b c': 'b' is 4 in A and 6 in B"
    assert reason("a b -> a c") == "layout 'a b -> a c': 'c' is not on the left"
    assert reason("a b -> a b c") == "layout 'a b -> a b c' for 2 axes of B and 2 of A"
    assert single(tdbg, tmp_path, x, x.T.copy(), "--layout", "a b -> b a", status=0)["verdict"] == "identical"
    line = tdbg.fails("diff", tmp_path / "a", tmp_path / "b", "--layout", "a b c -> a b c")
    assert line == "tdbg: layout 'a b c -> a b c' fits no pair: no tensor of B has 3 axes"


@pytest.mark.parametrize("text", ["a b", "->", "a ->", "-> a", "a -> b -> c", "(a -> a", "a) -> a", "a b -> a+b",
                                  "() a -> a", "()" * 60 + " -> a", "a a -> a a", "((a)) -> a", "x" * 200 + " -> x",
                                  " ".join(f"a{i}" for i in range(40)) + " -> a1"])  # fmt: skip
def test_no_layout(tdbg, tmp_path, text):
    single(tdbg, tmp_path, np.ones(3), np.ones(3))
    line = tdbg.fails("diff", tmp_path / "a", tmp_path / "b", "--layout", text)
    assert line == f"tdbg: '{text}' is no layout; write it as 'b h t d -> t h d'"


USAGE = " (see 'tdbg diff --help')"


@pytest.mark.parametrize("options, line", [
    (["--only", "foo"], f"diff: --only takes identical, within, diverged, errors, unmatched or born, not 'foo'{USAGE}"),
    (["--policy", "loose"], "no policy 'loose'; there are noise and strict"),
    (["--policy", "strict", "--rtol", "1"], "one rule at a time: a policy, rtol and atol, or a reference"),
    (["--reference", "a", "--atol", "1"], "one rule at a time: a policy, rtol and atol, or a reference"),
    (["--rtol", "-1"], f"diff: --rtol takes a number of 0 or more, not '-1'{USAGE}"),
    (["--atol", "nan"], f"diff: --atol takes a number of 0 or more, not 'nan'{USAGE}"),
    (["--top", "x"], f"diff: --top takes a number, not 'x'{USAGE}"),
    (["--threshold", "2"], "a threshold of 2; similarity lies between 0 and 1"),
    (["--threshold", "0"], "a threshold of 0, at which all names are alike; it is above 0"),
    (["--top", "1001"], "1001 worst elements of a pair; at most 1000 are kept"),
    (["--match", "best"], "no matching strategy 'best' (auto, stage, value, exact, fuzzy, fused, shape, weights, regex:FROM=>TO, "
                          "program:COMMAND, manual)"),
    (["--match", "exact:x"], "matching strategy exact takes no argument"),
    (["--match", "regex"], "matching strategy regex needs an argument: regex:…"),
    (["--match", "regex:(=>x"], "regular expression '(': missing closing parenthesis (at character 1)"),
    (["--match", "program:exit 3"], "matching program: exit 3: exit status 3"),
    (["--pairs", "nowhere"], "nowhere: cannot open: No such file or directory"),
    (["--reference", "nowhere"], "nowhere: cannot open: No such file or directory"),
    (["--frobnicate"], f"diff: unknown option '--frobnicate'{USAGE}"),
])  # fmt: skip
def test_bad_options(tdbg, runs, options, line):
    assert tdbg.fails("diff", "a", "same", *options, cwd=runs) == f"tdbg: {line}"


def test_operands(tdbg, runs):
    assert tdbg.fails("diff", cwd=runs) == f"tdbg: diff: two PATHs are compared, or one with itself; 0 given{USAGE}"
    assert tdbg.fails("diff", "a", "b", "c", cwd=runs) == f"tdbg: diff: two PATHs are compared, or one with itself; 3 given{USAGE}"
    assert tdbg.fails("diff", "a", "nowhere", cwd=runs) == "tdbg: nowhere: cannot open: No such file or directory"
    assert tdbg.fails("diff", "nowhere", "a", cwd=runs) == "tdbg: nowhere: cannot open: No such file or directory"


@pytest.mark.parametrize("option", ["--csv", "--junit", "--save-pairs"])
def test_a_report_that_cannot_be_written(tdbg, runs, option):
    done = tdbg.run("diff", "a", "same", option, "nowhere/x", cwd=runs)
    assert done.returncode == 2
    assert done.stderr == "tdbg: nowhere/x: cannot create: No such file or directory\n"


# --- pairing -----------------------------------------------------------------------------------------------------------


def names(answer):
    return {(p["a"]["name"], p["b"]["name"]): p["strategy"] for p in answer["pairs"] if p["a"] and p["b"]}


def test_layer_offset_is_said(tdbg, tmp_path):
    dump(tmp_path / "a", model(first=3))
    dump(tmp_path / "b", model(first=0))
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=0)
    assert answer["summary"]["identical"] == 15 and answer["layer_offset"] == -3
    assert "layer n of A is layer n-3 of B" in tdbg.text("diff", tmp_path / "a", tmp_path / "b")


MODULES = {"self_attn.q_proj.weight": "attn_q.weight", "self_attn.o_proj.weight": "attn_output.weight",
           "mlp.down_proj.weight": "ffn_down.weight", "input_layernorm.weight": "attn_norm.weight"}  # fmt: skip


def modules(layers, first=None, name="model.layers.{}.{}", names=None):
    """Layers of one model, under their own numbers or counted from `first`."""
    rng = np.random.default_rng(5)
    model = [{p: rng.standard_normal(32 if "norm" in p else (32, 32)).astype(np.float32) for p in MODULES} for _ in range(12)]
    return {name.format(n if first is None else first + k, names[p] if names else p): model[n][p]
            for k, n in enumerate(layers) for p in MODULES}  # fmt: skip


@pytest.mark.parametrize("a, b, offset, pairs", [
    (modules(range(3, 8)), modules(range(3, 8), 0, "layers.{}.{}"), -3, 20),  # a part of a model by itself
    (modules(range(8)), modules(range(8), 1, "blk.{}.{}", MODULES), 1, 32),  # one counts from 1
    (modules(range(8)), modules(range(4, 8), 0), -4, 16),  # the last stage of a pipeline; the names would fit as they are
    (modules(range(12)), modules(range(4, 8), 0), -4, 16),  # a stage from its middle
    (modules(range(8)), modules(range(4, 12)), None, 16),  # they overlap, and their numbers are right
    (modules(range(8)), modules(range(2, 6)), None, 16),
    (modules(range(8)), modules(range(8), None, "layers.{}.{}"), None, 32),
])  # fmt: skip
def test_layer_offset_of_modules(tdbg, tmp_path, a, b, offset, pairs):
    for folder, arrays in ("a", a), ("b", b):
        (tmp_path / folder).mkdir()
        for name, array in arrays.items():
            np.save(tmp_path / folder / f"{name}.npy", array)
    answer = json.loads(tdbg.run("diff", "--json", tmp_path / "a", tmp_path / "b").stdout)
    assert answer["summary"]["identical"] == answer["summary"]["pairs"] == pairs
    assert answer.get("layer_offset") == offset


def test_strategies(tdbg, tmp_path):
    rng = np.random.default_rng(8)
    weight = lambda: rng.standard_normal((24, 40)).astype(np.float32)
    hf = {f"model.layers.{n}.self_attn.{p}_proj.weight": weight() for n in range(2) for p in "qk"}
    gguf = {name.replace("model.layers.", "blk.").replace("self_attn.", "attn_").replace("_proj", ""): x for name, x in hf.items()}
    (tmp_path / "hf.safetensors").write_bytes(tensorfiles.safetensors(hf))
    (tmp_path / "gg.safetensors").write_bytes(tensorfiles.safetensors(gguf))
    run = lambda *o: compare(tdbg, tmp_path / "hf.safetensors", tmp_path / "gg.safetensors", *o)
    want = set(zip(hf, gguf))
    assert names(run()) == {pair: "fuzzy" for pair in want}
    assert names(run("--match", "fuzzy")) == {pair: "fuzzy" for pair in want}
    assert run("--match", "exact")["summary"]["only_a"] == 4
    assert names(run("--match", "shape")) == {pair: "shape" for pair in want}  # by value: all have one shape
    rule = r"regex:model\.layers\.(\d+)\.self_attn\.(.)_proj\.weight=>blk.\1.attn_\2.weight"
    assert names(run("--match", rule)) == {pair: "regex" for pair in want}
    only_q = r"regex:model\.layers\.(\d+)\.self_attn\.q_proj\.weight=>blk.\1.attn_q.weight"
    assert sorted(names(run("--match", only_q + ",fuzzy")).values()) == ["fuzzy", "fuzzy", "regex", "regex"]
    same = compare(tdbg, tmp_path / "hf.safetensors", tmp_path / "hf.safetensors", "--match", "exact", status=0)
    assert set(names(same).values()) == {"exact"}


def test_stage_strategy(tdbg, runs):
    assert set(names(compare(tdbg, runs / "a", runs / "same", "--match", "stage")).values()) == {"stage"}


def test_matching_program(tdbg, tmp_path):
    dump(tmp_path / "a", {"x": np.ones((3, 4)), "y": np.ones((3, 5))})
    dump(tmp_path / "b", {"p": np.ones((3, 5)), "q": np.ones((3, 4))})
    program = tmp_path / "matcher.py"
    program.write_text("""#!/usr/bin/python3
import json, sys
question = json.load(sys.stdin)
assert question["version"] == 1
shapes = {tuple(t["shape"]): t["name"] for t in question["b"]}
pairs = [{"a": t["name"], "b": shapes[tuple(t["shape"])]} for t in question["a"]]
json.dump({"version": 1, "pairs": pairs}, sys.stdout)
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", "--match", f"program:{program}", status=0)
    assert names(answer) == {("x.npy", "q.npy"): "program", ("y.npy", "p.npy"): "program"}


def test_pairs_by_hand_and_back(tdbg, tmp_path):
    rng = np.random.default_rng(9)
    dump(tmp_path / "a", {"one": rng.standard_normal((6, 7)), "two": rng.standard_normal((6, 7))})
    dump(tmp_path / "b", {"one": np.load(tmp_path / "a" / "two.npy"), "two": np.load(tmp_path / "a" / "one.npy")})
    assert compare(tdbg, tmp_path / "a", tmp_path / "b")["summary"]["diverged"] == 2
    crossed = tmp_path / "crossed.json"
    crossed.write_text(json.dumps({"version": 1, "pairs": [{"a": "one.npy", "b": "two.npy"}]}))
    saved = tmp_path / "saved.json"
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", "--pairs", crossed, "--match", "auto", "--save-pairs", saved, status=0)
    assert names(answer)[("one.npy", "two.npy")] == "manual" and len(names(answer)) == 2
    text = json.loads(saved.read_text())
    assert {(p["a"], p["b"]) for p in text["pairs"]} == {("one.npy", "two.npy"), ("two.npy", "one.npy")}
    again = compare(tdbg, tmp_path / "a", tmp_path / "b", "--pairs", saved, status=0)
    assert set(names(again)) == set(names(answer)) and set(names(again).values()) == {"manual"}


@pytest.mark.parametrize("text, line", [
    ('{"version":1,"pairs":[{"a":"nope","b":"0_key.npy"}]}', "the list of pairs names 'nope', which is not in A"),
    ('{"version":2,"pairs":[]}', "pairs.json: list of pairs: \"version\" is not 1"),
    ('{"pairs":[', "pairs.json: list of pairs is not valid JSON: ']' expected near end of file (at byte 10)"),
])  # fmt: skip
def test_bad_pairs(tdbg, runs, text, line):
    (runs / "pairs.json").write_text(text)
    assert tdbg.fails("diff", "a", "same", "--pairs", "pairs.json", cwd=runs) == f"tdbg: {line}"


# --- mixed inputs -------------------------------------------------------------------------------------------------------


def test_folder_against_archives(tdbg, runs):
    with zipfile.ZipFile(runs / "a.zip", "w") as z:
        for path in sorted((runs / "a").iterdir()):
            z.write(path, path.name)
    with tarfile.open(runs / "wrong.tar.gz", "w:gz") as t:
        for path in sorted((runs / "wrong").iterdir()):
            t.add(path, path.name)
    plain = compare(tdbg, runs / "a", runs / "wrong")
    for a, b in ("a.zip", "wrong"), ("a", "wrong.tar.gz"), ("a.zip", "wrong.tar.gz"):
        mixed = compare(tdbg, runs / a, runs / b, status=1)
        assert mixed["summary"] == plain["summary"] and mixed["first_divergence"] == plain["first_divergence"]
        assert [p["metrics"] for p in mixed["pairs"]] == [p["metrics"] for p in plain["pairs"]]


def test_formats_against_each_other(tdbg, runs):
    torch = pytest.importorskip("torch")
    tensors = model()
    (runs / "pth").mkdir()
    (runs / "st").mkdir()
    for name, x in tensors.items():
        torch.save(torch.from_numpy(x), runs / "pth" / f"{name}.pth")
        (runs / "st" / f"{name}.safetensors").write_bytes(tensorfiles.safetensors({name: x}))
    torch.save({name: torch.from_numpy(x) for name, x in tensors.items()}, runs / "all.pth")
    (runs / "all.safetensors").write_bytes(tensorfiles.safetensors(tensors))
    np.savez(runs / "all.npz", **tensors)
    forms = ["a", "pth", "st", "all.pth", "all.safetensors", "all.npz"]
    for i, a in enumerate(forms):
        for b in forms[i + 1 :]:
            answer = compare(tdbg, runs / a, runs / b, status=0)
            assert answer["summary"]["identical"] == 15 and answer["summary"]["only_a"] == 0, (a, b)
            assert [p["layer"] for p in answer["pairs"]] == [n for n in range(3) for _ in STAGES]


def test_python_scalars_in_dumps(tdbg, tmp_path):
    """0_scaling.pth may hold a float, 0_sliding.pth an int."""
    torch = pytest.importorskip("torch")
    for side, sliding in ("a", 128), ("b", 127):
        (tmp_path / side).mkdir()
        torch.save(0.125, tmp_path / side / "0_scaling.pth")
        torch.save(sliding, tmp_path / side / "0_sliding.pth")
    answer = compare(tdbg, tmp_path / "a", tmp_path / "b", status=1)
    assert [p["verdict"] for p in answer["pairs"]] == ["identical", "diverged"]
    assert answer["pairs"][1]["reason"] == "scalars are exact: 128 against 127"


def test_unreadable_members_are_listed(tdbg, runs):
    (runs / "wrong" / "1_key.npy").write_bytes((runs / "wrong" / "1_key.npy").read_bytes()[:40])
    done = tdbg.run("diff", runs / "a", runs / "wrong")
    assert done.returncode == 1 and "only in A: 1_key.npy" in done.stdout
    assert done.stderr.startswith("1 skipped: 1_key.npy: ") and len(done.stderr.splitlines()) == 1
    assert tdbg.run("diff", "-q", runs / "a", runs / "wrong").stderr == ""


# --- reports ------------------------------------------------------------------------------------------------------------


def test_csv(tdbg, runs):
    np.save(runs / "wrong" / "2_key.npy", np.zeros((5, 7), np.float32))
    odd = 'odd, "quoted"'
    np.save(runs / "a" / f"{odd}.npy", np.ones(3))
    answer = compare(tdbg, runs / "a", runs / "wrong", "--csv", runs / "out.csv", status=1)
    with open(runs / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert len(rows) == len(answer["pairs"]) and None not in rows[0] and all(None not in r.values() for r in rows)
    for row, pair in zip(rows, answer["pairs"]):
        assert (row["name"], row["verdict"], row["reason"]) == (pair["name"], pair["verdict"], pair["reason"])
        assert row["layer"] == ("" if pair["layer"] is None else str(pair["layer"]))
        assert row["shape_a"] == ("x".join(map(str, pair["a"]["shape"])) if pair["a"] else "")
        for key in "max_abs", "mean_rel", "cosine", "snr_db", "beyond", "count", "nan_a", "inf_b":
            if pair["metrics"]:
                assert float(row[key]) == float(pair["metrics"][key])
            else:
                assert row[key] == ""
    assert [r["diagnosis"] for r in rows if r["diagnosis"]] == ["scale"]


def test_junit(tdbg, runs):
    np.save(runs / "wrong" / "2_key.npy", np.zeros((5, 7), np.float32))
    np.save(runs / "a" / "<&\"'>\x01.npy", np.ones(3))
    answer = compare(tdbg, runs / "a", runs / "wrong", "--junit", runs / "out.xml", status=1)
    suite = xml.etree.ElementTree.parse(runs / "out.xml").getroot().find("testsuite")
    cases, summary = suite.findall("testcase"), answer["summary"]
    assert int(suite.get("tests")) == len(cases) == len(answer["pairs"])
    for element, attribute, count in (("failure", "failures", summary["diverged"]), ("error", "errors", summary["errors"]),
                                      ("skipped", "skipped", summary["only_a"] + summary["only_b"])):  # fmt: skip
        assert int(suite.get(attribute)) == len([c for c in cases if c.find(element) is not None]) == count
    failed = [c for c in cases if c.find("failure") is not None]
    assert [(c.get("classname"), c.get("name")) for c in failed] == [("layer 1", "query")]
    assert "scale" in failed[0].find("failure").text
    assert failed[0].find("failure").get("message") == answer["pairs"][answer["first_divergence"]["index"]]["reason"]
    assert "First divergence: layer 1, query." in suite.find("system-out").text


@pytest.mark.parametrize("width", [80, 120, 160])
@pytest.mark.parametrize("verbose", [(), ("-v",)])
def test_text_fits_the_width(tdbg, runs, width, verbose):
    for name in "a_tensor_with_a_rather_long_name_that_has_no_partner_anywhere", "another_tensor_of_that_kind_and_length", "third":
        np.save(runs / "a" / f"{name}.npy", np.ones(3))
    text = tdbg.text("diff", "a", "wrong", *verbose, status=1, cwd=runs, env={"COLUMNS": str(width)})
    assert max(len(line) for line in text.splitlines()) <= width, text
    assert text.splitlines()[0] == "A  a  (18 tensors)"
    assert "15 pairs: 14 identical, 1 diverged, 3 only in A" in text
    closing = " ".join(text.split("\n\n")[-1].split())
    assert closing.startswith("First divergence: layer 1, query. B is off by 87.5 % of A (relative L2), ")
    assert "It looks like scale: 100.0 % explained by x 0.125 = 1/8. " in closing
    assert closing.endswith("Look for a factor applied twice, left out, or folded into the weights. The 8 tensors after it agree again.")


def test_a_number_and_its_percent_sign_stay_together(tdbg, runs):
    for width in range(40, 101):
        text = tdbg.text("diff", "-q", "a", "wrong", status=1, cwd=runs, env={"COLUMNS": str(width)})
        assert not any(line.startswith("%") for line in text.splitlines()), text
        assert max(map(len, text.splitlines())) <= width


def test_text_of_agreement(tdbg, runs):
    assert tdbg.text("diff", runs / "a", runs / "same").endswith("Every tensor has a partner. The two are identical.\n")
    assert tdbg.text("diff", runs / "a", runs / "close").endswith("The two agree: what differs is within the tolerance.\n")
    assert tdbg.text("diff", "-q", runs / "a", runs / "same") == "Every tensor has a partner. The two are identical.\n"


def test_text_of_complex_values(tdbg, tmp_path):
    """A turn of the phase leaves every modulus as it was."""
    dump(tmp_path / "a", {"freqs": np.full((2, 3), 3 + 4j)})
    dump(tmp_path / "b", {"freqs": np.full((2, 3), 3 - 4j)})
    text = " ".join(tdbg.text("diff", "-q", tmp_path / "a", tmp_path / "b", status=1).split())
    assert "the worst element, [0,0], is off by 8 (moduli 5 and 5)." in text


def test_text_of_agreement_in_part(tdbg, tmp_path):
    """What has no partner or could not be read is not called identical."""
    for side in "ab":
        dump(tmp_path / side, {"0_query": np.ones((3, 4)), "1_query": np.ones((3, 4))})
    dump(tmp_path / "more", {"0_query": np.ones((3, 4)), "1_query": np.ones((3, 4)), "2_query": np.ones((3, 4))})
    assert tdbg.text("diff", "-q", tmp_path / "a", tmp_path / "more") == (
        "The 2 pairs are identical; 100 % of A and 66 % of B have a partner. 1 tensor has no partner.\n")
    for side in "ab":
        os.truncate(tmp_path / side / "1_query.npy", 150)
    assert " ".join(tdbg.text("diff", "-q", tmp_path / "a", tmp_path / "b").split()) == (
        "The only pair is identical; 100 % of A and 100 % of B have a partner. 2 could not be read and were not compared.")
    tdbg.text("diff", "-q", tmp_path / "a", tmp_path / "b", "--junit", tmp_path / "r.xml")
    suite = xml.etree.ElementTree.parse(tmp_path / "r.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("skipped")) == ("3", "2")
    assert [c.get("name") for c in suite.findall("testcase") if c.get("classname") == "unreadable"] == ["1_query.npy"] * 2


@pytest.mark.parametrize("value", [torch.ones(1).expand(1 << 20, 1 << 20), torch.sparse_coo_tensor([[0], [0]], [1.0], (1 << 20, 1 << 18))])
def test_more_elements_than_were_ever_stored(tdbg, tmp_path, value):
    """A file of a few bytes that would keep the machine busy for an hour."""
    torch.save({"big": value, "small": torch.ones(2)}, tmp_path / "a.pth")
    answer = compare(tdbg, tmp_path / "a.pth", tmp_path / "a.pth", status=2)
    assert {p["name"]: p["verdict"] for p in answer["pairs"]} == {"big": "error", "small": "identical"}
    assert f"{value.numel()} elements that are not stored one by one" in answer["pairs"][0]["reason"]


def test_a_file_cut_short_under_way(tdbg, tmp_path):
    """Its pages read as zeros from then on: nothing that was computed from it may be told."""
    values = np.random.default_rng(1).standard_normal((2, 1 << 19)).astype(np.float32)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", values)
    program = tmp_path / "cut"  # runs between opening and comparing
    program.write_text(f"#!/bin/sh\ntruncate -s 4096 {tmp_path}/a.npy\ncat >/dev/null\necho '{{\"version\":1,\"pairs\":[]}}'\n")
    program.chmod(0o755)
    error = tdbg.fails("diff", "--match", f"program:{program},auto", tmp_path / "a.npy", tmp_path / "b.npy")
    assert error == f"tdbg: {tmp_path}/a.npy: a.npy: the file was cut short while it was read"


def test_same_bytes_everywhere(tdbg, runs):
    for options in ("--json",), (), ("-v",):
        outputs = {tdbg.text("diff", *options, runs / "a", runs / "wrong", status=1, env=env)
                   for env in ({}, {"TDBG_THREADS": "1"}, {"TDBG_THREADS": "2"}, {"TDBG_CPU": "scalar"})}  # fmt: skip
        assert len(outputs) == 1
