"""tdbg export safetensors: any input as one .safetensors file, read back bit for bit."""
import json
import struct

import numpy as np
import pytest
import torch

MAX_DIMS = 32  # of tdbg.h

rng = np.random.default_rng(11)


def header(path):
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    assert length % 8 == 0
    return json.loads(data[8:8 + length]), data[8 + length:]


def test_a_checkpoint(tdbg, tmp_path):
    tensors = {"f": torch.randn(3, 5), "t": torch.randn(4, 6).t(), "b": torch.randn(7).bfloat16(), "h": torch.randn(2, 2).half(),
               "i": torch.arange(5), "flag": torch.tensor([True, False]), "empty": torch.zeros(0, 3), "scalar": torch.tensor(1.5)}
    torch.save(tensors, tmp_path / "a.pt")
    out = tmp_path / "a.safetensors"
    assert tdbg.text("export", "safetensors", tmp_path / "a.pt", out) == f"{out}: 8 tensors, 224 B\n"
    described, data = header(out)
    kinds = {"f": "F32", "t": "F32", "b": "BF16", "h": "F16", "i": "I64", "flag": "BOOL", "empty": "F32", "scalar": "F32"}
    assert {name: d["dtype"] for name, d in described.items()} == kinds
    for name, tensor in tensors.items():
        begin, end = described[name]["data_offsets"]
        plain = tensor.contiguous()
        expected = (plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain).numpy().tobytes()
        assert described[name]["shape"] == list(tensor.shape) and data[begin:end] == expected, name
    assert tdbg.json("diff", tmp_path / "a.pt", out)["summary"]["identical"] == 8


def test_one_tensor_and_a_slice(tdbg, tmp_path):
    values = rng.standard_normal((200, 300))
    np.savez(tmp_path / "a.npz", x=values, y=values)
    tdbg.text("export", "safetensors", f"{tmp_path}/a.npz:x[3:150:2, ::-1]", tmp_path / "x.safetensors")
    described, data = header(tmp_path / "x.safetensors")
    assert list(described) == ["x"] and data == np.ascontiguousarray(values[3:150:2, ::-1]).tobytes()


def test_what_the_format_cannot_hold_is_left_out(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", c=np.zeros((1,) * MAX_DIMS, "complex128"), x=np.zeros(3, "float32"))
    done = tdbg.run("export", "safetensors", tmp_path / "a.npz", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, f"tdbg: 1 tensor left out: safetensors cannot hold complex128 of {MAX_DIMS} axes\n")
    assert list(header(tmp_path / "out")[0]) == ["x"]


def test_what_was_written_as_json(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", c=np.zeros((1,) * MAX_DIMS, "complex128"), x=np.zeros(3, "float32"), y=np.zeros((2, 2), "int8"))
    out = tmp_path / "out.safetensors"
    done = tdbg.run("export", "safetensors", tmp_path / "a.npz", out, "--json", "-q")
    assert (done.returncode, json.loads(done.stdout)) == (0, {
        "version": 1, "files": [{"path": str(out), "tensors": 2, "bytes": 16, "left_out": 1}]})
    assert tdbg.fails("export", "safetensors", "--json", tmp_path / "a.npz", "-") == \
        "tdbg: export: --json and FILE cannot both be standard output (see 'tdbg export --help')"
    assert tdbg.run("export", "safetensors", "--json", "nowhere", out).stdout == ""


@pytest.mark.parametrize("operands,message", [
    (["nowhere", "out"], "tdbg: nowhere: cannot open: No such file or directory"),
    (["{tmp}/a.npy", "{tmp}/no/out"], "tdbg: {tmp}/no/out: cannot create: No such file or directory"),
    (["{tmp}/a.npy"], "tdbg: export: safetensors takes PATH FILE (see 'tdbg export --help')"),
])
def test_bad_usage(tdbg, tmp_path, operands, message):
    np.save(tmp_path / "a.npy", np.zeros(3))
    assert tdbg.fails("export", "safetensors", *(o.format(tmp=tmp_path) for o in operands)) == message.format(tmp=tmp_path)
