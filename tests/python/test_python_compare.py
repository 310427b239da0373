"""tdbg.diff and tdbg.assert_close: the answers of the command line, from Python."""
import json

import numpy as np
import pytest
import torch

import tdbg


@pytest.fixture
def dumps(tmp_path):
    """Two folders; B has its second key multiplied by 1/8."""
    generator = torch.Generator().manual_seed(0)
    for side in "ab":
        (tmp_path / side).mkdir()
    for layer in range(3):
        for stage in ("query", "key", "value"):
            value = torch.randn(16, 4, 32, generator=generator)
            torch.save(value, tmp_path / "a" / f"{layer}_{stage}.pth")
            torch.save(value * (0.125 if (layer, stage) == (1, "key") else 1), tmp_path / "b" / f"{layer}_{stage}.pth")
    return tmp_path / "a", tmp_path / "b"


def message_of(*args, **options):
    with pytest.raises(AssertionError) as failure:
        tdbg.assert_close(*args, **options)
    return str(failure.value)


def test_diff_is_what_the_command_prints(tdbg_binary, dumps):
    printed = tdbg_binary.json("diff", *dumps, status=1)
    assert tdbg.diff(*dumps) == printed
    assert tdbg.diff(*map(str, dumps)) == printed
    assert printed["first_divergence"]["diagnosis"][0]["kind"] == "scale"


@pytest.mark.parametrize("options, arguments", [
    ({"policy": "strict"}, ["--policy", "strict"]),
    ({"rtol": 0.5, "atol": 0}, ["--rtol", "0.5", "--atol", "0"]),
    ({"match": "exact", "top": 2}, ["--match", "exact", "--top", "2"]),
    ({"top": 0}, ["--top", "0"]),
    ({"match": "fuzzy", "threshold": 0.99}, ["--match", "fuzzy", "--threshold", "0.99"]),
])
def test_options_are_those_of_the_command(tdbg_binary, dumps, options, arguments):
    assert tdbg.diff(*dumps, **options) == tdbg_binary.json("diff", *dumps, *arguments, status=1)


def test_reference_layout_and_pairs(tdbg_binary, dumps, tmp_path):
    a, b = dumps
    assert tdbg.diff(a, b, reference=a) == tdbg_binary.json("diff", a, b, "--reference", a, status=1)
    one = f"{a}/0_query.pth"
    assert tdbg.diff(one, one, layout="t h d -> t h d")["summary"]["identical"] == 1
    pairs = tmp_path / "pairs.json"
    tdbg_binary.run("diff", a, b, "--save-pairs", pairs)
    assert tdbg.diff(a, b, pairs=pairs)["pairs"][0]["strategy"] == "manual"


@pytest.mark.parametrize("options, message", [
    ({"policy": "loose"}, "no policy 'loose'"),
    ({"rtol": -1}, "a tolerance is zero or more"),
    ({"rtol": float("nan")}, "a tolerance is zero or more"),
    ({"rtol": 1, "policy": "noise"}, "one rule at a time"),
    ({"match": "magic"}, "no matching strategy 'magic'"),
    ({"layout": "->"}, "is no layout"),
])
def test_misuse_is_told(dumps, options, message):
    with pytest.raises(tdbg.Error, match=message) as failure:
        tdbg.diff(*dumps, **options)
    assert failure.value.status == "MISUSE"


def test_assert_close_on_dumps_has_the_diagnosis(dumps):
    a, b = dumps
    tdbg.assert_close(a, a)
    text = message_of(a, b)
    assert "9 pairs: 8 identical, 1 diverged" in text
    assert "first divergence: 1_key" in text
    assert "diagnosis: scale" in text and "x 0.125 = 1/8" in text
    assert text.count("\n  [") == 5, "five worst elements"
    assert message_of(a, b, top=2).count("\n  [") == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64,
                                   torch.int8, torch.bool, torch.complex64, torch.complex128], ids=str)
def test_assert_close_in_memory(dtype):
    value = (torch.arange(24).reshape(2, 3, 4) % 7).to(dtype)
    other = value.clone()
    tdbg.assert_close({"x": value}, {"x": other})
    other[1, 2, 3] = not other[1, 2, 3] if dtype is torch.bool else 100
    assert "[1, 2, 3]" in message_of({"x": value}, {"x": other})
    assert tdbg.diff({"x": value}, {"x": other})["pairs"][0]["a"]["dtype"] == str(dtype).removeprefix("torch.")


def test_arrays_tensors_numbers_and_nests_mix():
    values = {"model": {"w": np.arange(6.).reshape(2, 3), "list": [1, np.float32(2)]}}
    same = {"model": {"w": torch.arange(6.).reshape(3, 2).double().reshape(2, 3), "list": (1, torch.tensor(2.))}}
    tdbg.assert_close(values, same)
    names = [pair["name"] for pair in tdbg.diff(values, same)["pairs"]]
    assert names == ["model.w", "model.list.0", "model.list.1"]
    assert tdbg.diff(values, same)["a"]["path"] == "(in memory)"
    named = {"tensor": {"a": 1}, "a": 2}  # "tensor" is a name like any other
    assert {pair["name"] for pair in tdbg.diff(named, named)["pairs"]} == {"tensor.a", "a"}


def test_kinds_of_torch_tensors():
    value = torch.randn(4, 6)
    for other in (value.t().contiguous().t(), torch.nn.Parameter(value), value.to_sparse(), -(-value)):
        tdbg.assert_close(value, other, rtol=0, atol=0)
    quantised = torch.quantize_per_tensor(value, 0.5, 0, torch.qint8)
    tdbg.assert_close(quantised, quantised.dequantize(), rtol=0, atol=0)
    spun = torch.randn(3, dtype=torch.complex64)
    tdbg.assert_close(spun.conj(), spun.conj().resolve_conj(), rtol=0, atol=0)
    tdbg.assert_close(value.numpy().astype(">f4"), value, rtol=0, atol=0)


def test_what_has_no_counterpart_fails_unless_allowed():
    x = np.random.default_rng(0).normal(size=(4, 8))
    assert "only in b: y" in message_of({"x": x}, {"x": x, "y": x[0]})
    assert "in part: x: a: slice 0:3 of axis 1, of shape [4, 8]" in message_of({"x": x}, {"x": x[:, :3]})
    tdbg.assert_close({"x": x}, {"x": x, "y": x[0]}, unmatched=True)
    assert "x" in message_of({"x": x}, {"q": np.zeros(3, "i4")})


def test_nan_on_one_side_is_a_divergence():
    x = np.ones(8, "f4")
    y = x.copy()
    y[3] = np.nan
    assert "nan" in message_of(x, y)
    tdbg.assert_close(y, y)


def test_bad_values_and_options():
    with pytest.raises(TypeError, match="no type tdbg compares"):
        tdbg.diff(np.array(["a"]), np.zeros(1))
    with pytest.raises(TypeError, match="output: NoneType is no type tdbg compares"):
        tdbg.diff({"output": None}, {"output": 1})
    for a, b in ((None, 1), (1, None)):
        with pytest.raises(TypeError, match="a and b are paths, arrays, .* not None"):
            tdbg.assert_close(a, b)
    with pytest.raises(ValueError, match="two tensors are named a.b"):
        tdbg.diff({"a": {"b": 1}, "a.b": 2}, 1)
    with pytest.raises(TypeError, match="no option tolerance"):
        tdbg.assert_close(1, 1, tolerance=1)
    with pytest.raises(tdbg.Error, match="cannot open") as failure:
        tdbg.diff("nowhere", np.zeros(1))
    assert failure.value.status == "IO"


def test_documents_are_json(dumps):
    json.dumps(tdbg.diff(*dumps), allow_nan=False)


@pytest.fixture
def few(tmp_path):
    """Two names in common of eight."""
    sides = []
    for side in "ab":
        (tmp_path / side).mkdir()
        sides.append(tmp_path / side)
        for i in range(8):
            np.save(tmp_path / side / (f"x{i}.npy" if i < 2 else f"{side * 3}{i}.npy"), np.full((3 + i, 4), i + 1.5))
    return sides


def test_too_little_paired_is_no_agreement(few, tmp_path):
    assert message_of(*few, match="exact", unmatched=True).startswith("not enough paired to say: 25 % of A and 25 % of B")
    tdbg.assert_close(*few, match="exact", unmatched=True, coverage=0.25)
    assert tdbg.diff(*few, match="exact", coverage=0)["summary"]["enough"]
    with pytest.raises(tdbg.Error, match="a coverage of -1; it is a share, from 0 to 1"):
        tdbg.diff(*few, coverage=-1)


def test_names_are_those_of_a_file(few, tmp_path):
    (tmp_path / "names").write_text("what")
    with pytest.raises(tdbg.Error, match="line 1: no '='"):
        tdbg.assert_close(*few, names=tmp_path / "names")
