"""tdbg export tensorboard: frames, checksums and messages of an event file, read by code of its own.

tests/conformance/test_tensorboard.py has the real TensorBoard read such files.
"""
import pathlib
import struct

import numpy as np
import pytest
from runfiles import FULL, SKETCH, Run

rng = np.random.default_rng(3)


def crc32c(data):
    """The checksum of Castagnoli, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        length, crc = struct.unpack_from("<QI", data)
        assert crc == masked(data[:8])
        message, (crc,) = data[12:12 + length], struct.unpack_from("<I", data, 12 + length)
        assert crc == masked(message)
        yield message
        data = data[16 + length:]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """A protobuf message as {number: [values]}: integers, or bytes."""
    out, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(tag & 7) or varint(data, at)
            value, at = data[at:at + size], at + size
        out.setdefault(tag >> 3, []).append(value)
    assert at == len(data)
    return out


def events(folder):
    """(wall time, step, tag, plugin, value) of each event after the first; a histogram is an array of [bins, 3]."""
    path, = folder.glob("events.out.tfevents.*")
    first, *others = map(fields, records(path.read_bytes()))
    assert first[3] == [b"brain.Event:2"]
    for event in others:
        wall, = struct.unpack("<d", event[1][0])
        value = fields(fields(event[5][0])[1][0])
        plugin = fields(fields(value[9][0])[1][0])[1][0].decode()
        if 2 in value:
            content, = struct.unpack("<f", value[2][0])
        else:
            tensor = fields(value[8][0])
            shape = [fields(dim)[1][0] for dim in fields(tensor[2][0])[2]]
            assert tensor[1] == [2]
            content = np.frombuffer(tensor[4][0], "<f8").reshape(shape)
        yield wall, event.get(2, [0])[0], value[1][0].decode(), plugin, content


def test_checksum_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283


def test_scalars(tdbg, tmp_path):
    run = Run(tmp_path / "run", started=1_700_000_000, host="a/b c", pid=42)
    run.scalar("loss", 0, 1.5, time_ns=250_000_000)
    run.scalar("loss", 7, 0.0, time_ns=500_000_000)
    run.scalar("lr", 7, float("nan"), time_ns=750_000_000)
    run.close()
    said = tdbg.text("export", "tensorboard", run.folder, tmp_path / "logs")
    name = "events.out.tfevents.1700000000.a-b-c.42.tdbg"
    assert said == f"{tmp_path}/logs/{name}: 3 scalars, 0 histograms\n"
    assert [p.name for p in (tmp_path / "logs").iterdir()] == [name]
    found = list(events(tmp_path / "logs"))
    assert found[:2] == [(1_700_000_000.25, 0, "loss", "scalars", 1.5), (1_700_000_000.5, 7, "loss", "scalars", 0.0)]
    assert found[2][:4] == (1_700_000_000.75, 7, "lr", "scalars") and np.isnan(found[2][4])
    tdbg.text("export", "tensorboard", run.folder, tmp_path / "logs")
    assert len(list((tmp_path / "logs").iterdir())) == 1


def test_histograms_of_sketches(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    values = rng.standard_normal((50, 40)).astype("float32")
    run.tensor("layers.0.output", values, kind=SKETCH)
    run.tensor("constant", np.full(5, 3.0, "float32"), kind=SKETCH)
    run.tensor("statistics", values)
    run.step(number=12)
    run.tensor("unfinished", values, kind=SKETCH)
    run.close()
    said = tdbg.text("export", "tensorboard", run.folder, tmp_path / "logs")
    assert "0 scalars, 2 histograms\n1 tensor without a histogram: statistics alone were kept" in said
    first, second = events(tmp_path / "logs")
    assert first[1:4] == (12, "layers.0.output", "histograms")
    counts, edges = np.histogram(values.astype("float64"), 64)
    assert (first[4][:, 2] == counts).all()
    np.testing.assert_allclose(first[4][:, 0], edges[:-1], rtol=1e-12, atol=1e-15)
    assert (first[4][1:, 0] == first[4][:-1, 1]).all()
    assert second[4][0, 0] == 2.5 and second[4][-1, 1] == 3.5 and second[4][:, 2].sum() == 5


def write_safetensors(path, name, values):
    header = f'{{"{name}":{{"dtype":"F32","shape":[{",".join(map(str, values.shape))}],"data_offsets":[0,{values.nbytes}]}}}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + values.tobytes())


def test_histograms_of_values(tdbg, tmp_path):
    run = Run(tmp_path / "run")
    for step in range(2):
        values = rng.standard_normal((50, 40)).astype("float32") * (step + 1)
        write_safetensors(run.folder / f"step-{step:08}.safetensors", "x", values)
        run.tensor("x", values, kind=FULL, file=f"step-{step:08}.safetensors")
        run.step()
    run.tensor("gone", values, kind=FULL, file="step-00000002.safetensors")
    run.tensor("outside", values, kind=FULL, file="../run/step-00000000.safetensors")
    run.step()
    run.close()
    done = tdbg.run("export", "tensorboard", run.folder, tmp_path / "logs")
    assert done.returncode == 0 and done.stderr.startswith("tdbg: 2 tensors left out: cannot open")
    *_, last = events(tmp_path / "logs")
    assert last[1] == 1 and (last[4][:, 2] == np.histogram(values, 64)[0]).all()


def test_ranks_become_runs(tdbg, tmp_path):
    for rank in range(2):
        run = Run(tmp_path / "run" / f"rank-{rank}")
        run.scalar("loss", 0, float(rank))
        run.close()
    said = tdbg.json("export", "tensorboard", tmp_path / "run", tmp_path / "logs")
    assert [(pathlib.Path(f.pop("path")).parent, f) for f in said["files"]] == [
        (tmp_path / "logs" / f"rank-{rank}", {"scalars": 1, "histograms": 0, "without_histogram": 0, "left_out": 0})
        for rank in range(2)]
    assert [next(events(tmp_path / "logs" / f"rank-{rank}"))[4] for rank in range(2)] == [0.0, 1.0]


@pytest.mark.parametrize("operands,message", [
    ([], "tdbg: export: no kind given (see 'tdbg export --help')"),
    (["tensorbord", "a", "b"], "tdbg: export: no kind 'tensorbord'; did you mean 'tensorboard'? (see 'tdbg export --help')"),
    (["tensorboard", "a"], "tdbg: export: tensorboard takes RUN DIR (see 'tdbg export --help')"),
    (["tensorboard", "nowhere", "b"], "tdbg: nowhere: no recorded run: there is no run.db in it"),
])
def test_bad_usage(tdbg, operands, message):
    assert tdbg.fails("export", *operands) == message


def test_a_folder_that_cannot_be_made(tdbg, tmp_path):
    Run(tmp_path / "run").close()
    assert tdbg.fails("export", "tensorboard", tmp_path / "run", tmp_path / "no" / "logs") == \
        f"tdbg: {tmp_path}/no/logs: cannot create: No such file or directory"
