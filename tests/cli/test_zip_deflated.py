"""A zip whose members are deflated: they are inflated several at a time, and what is odd one by one."""
import io
import json
import zipfile
import zlib

import numpy as np
import pytest

from test_archives import npy, tensor_bytes, words

PACKERS = {
    "fast": lambda: zlib.compressobj(1, zlib.DEFLATED, -15),
    "well": lambda: zlib.compressobj(9, zlib.DEFLATED, -15),
    "fixed codes": lambda: zlib.compressobj(1, zlib.DEFLATED, -15, 8, zlib.Z_FIXED),
    "no copies": lambda: zlib.compressobj(1, zlib.DEFLATED, -15, 8, zlib.Z_HUFFMAN_ONLY),
    "not at all": lambda: zlib.compressobj(0, zlib.DEFLATED, -15),
    "after a secret": lambda: zlib.compressobj(9, zlib.DEFLATED, -15, zdict=bytes(1 << 15)),
}


def zip_of(monkeypatch, members):
    """members: name -> (bytes, packer)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, packer) in members.items():
            monkeypatch.setattr(zipfile, "_get_compressor", lambda *_, packer=packer: PACKERS[packer]())
            archive.writestr(name, data)
    return out.getvalue()


def exported(tdbg, path, **more):
    """All tensors of an archive, as tdbg writes them into a file of another format."""
    tdbg.text("export", "safetensors", path, path.with_suffix(".safetensors"), **more)
    data = path.with_suffix(".safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {name: data[8 + size + tensor["data_offsets"][0] : 8 + size + tensor["data_offsets"][1]]
            for name, tensor in header.items()}


def dumps(count=9):
    return {f"{i}_query.npy": tensor_bytes(150_000 + 1000 * i, seed=i) for i in range(count)}


def skipped(document):
    return {skip["name"]: skip["reason"] for skip in document["skipped"]}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_members_of_all_kinds_and_sizes(tdbg, tmp_path, monkeypatch, threads):
    arrays = {
        **dumps(),
        "large.npy": tensor_bytes(2 << 20, seed=50),
        "zeros.npy": np.zeros(6 << 20, "u1"),
        "mixed.npy": np.concatenate([tensor_bytes(300_000), np.zeros(1 << 20, "u1"), tensor_bytes(300_000, seed=2)]),
        "words.npy": words(1 << 20),
        "noise.npy": np.random.default_rng(1).integers(0, 256, 700_000, "u1"),
        "one.npy": np.ones(1, "u1"),
        "none.npy": np.ones(0, "u1"),
    }
    packers = [packer for packer in PACKERS if packer != "after a secret"]
    members = {name: (npy(array), packers[i % len(packers)]) for i, (name, array) in enumerate(arrays.items())}
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of(monkeypatch, members))
    found = exported(tdbg, path, env={"TDBG_THREADS": str(threads)})
    assert found == {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("packer", [packer for packer in PACKERS if packer != "after a secret"])
def test_one_packer_for_all(tdbg, tmp_path, monkeypatch, packer):
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of(monkeypatch, {name: (npy(array), packer) for name, array in dumps().items()}))
    assert exported(tdbg, path) == {name: array.tobytes() for name, array in dumps().items()}


def member_data(data, name):
    """Where a member's packed bytes are."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo(name)
    return info.header_offset + 30 + len(name.encode()), info


@pytest.mark.parametrize("at", [0, 0.3, 0.99])
def test_damaged_members_are_named_and_the_rest_is_read(tdbg, tmp_path, monkeypatch, at):
    data = bytearray(zip_of(monkeypatch, {name: (npy(array), "fast") for name, array in dumps().items()}))
    damaged = ["2_query.npy", "7_query.npy"]
    for name in damaged:
        start, info = member_data(data, name)
        data[start + int(at * info.compress_size)] ^= 0x06
    (tmp_path / "x.zip").write_bytes(data)
    document = tdbg.json("ls", tmp_path / "x.zip")
    assert [tensor["name"] for tensor in document["tensors"]] == [name for name in dumps() if name not in damaged]
    assert set(skipped(document)) == set(damaged)
    assert all(reason.startswith("zip: the member") for reason in skipped(document).values())


@pytest.mark.parametrize("claim,reason", [(-1, "more"), (1, "less")])
def test_a_member_of_another_size_than_it_says(tdbg, tmp_path, monkeypatch, claim, reason):
    data = bytearray(zip_of(monkeypatch, {name: (npy(array), "fast") for name, array in dumps().items()}))
    start, info = member_data(data, "4_query.npy")
    central = data.rindex(b"PK\1\2", 0, data.rindex(b"4_query.npy"))
    lie = (info.file_size + claim).to_bytes(4, "little")
    local = info.header_offset
    data[local + 22 : local + 26] = data[central + 24 : central + 28] = lie
    (tmp_path / "x.zip").write_bytes(data)
    document = tdbg.json("ls", tmp_path / "x.zip")
    assert len(document["tensors"]) == 8
    assert skipped(document)["4_query.npy"].startswith(f"zip: the member unpacks to {reason} than its size")


def test_a_member_that_begins_before_its_beginning(tdbg, tmp_path, monkeypatch):
    """Copies from what nobody has, though its checksum is right if that is taken for zeros."""
    zeros = bytes(40_000) + tensor_bytes(150_000).tobytes()
    members = {name: (npy(array), "fast") for name, array in dumps().items()}
    (tmp_path / "x.zip").write_bytes(zip_of(monkeypatch, {**members, "before.npy": (zeros, "after a secret")}))
    document = tdbg.json("ls", tmp_path / "x.zip")
    assert len(document["tensors"]) == len(members)
    assert skipped(document)["before.npy"].startswith("zip: the member's deflate stream is damaged")


def test_a_compressed_npz(tdbg, tmp_path):
    arrays = {name.removesuffix(".npy"): array for name, array in dumps().items()}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    assert exported(tdbg, tmp_path / "x.npz") == {name: array.tobytes() for name, array in arrays.items()}


def test_more_than_may_be_unpacked(tdbg, tmp_path, monkeypatch):
    """What fits is read, the rest is named."""
    (tmp_path / "x.zip").write_bytes(zip_of(monkeypatch, {name: (npy(array), "fast") for name, array in dumps().items()}))
    document = tdbg.json("ls", tmp_path / "x.zip", env={"TDBG_MAX_UNPACK": "1000000"})
    assert len(document["tensors"]) == 3
    assert all("TDBG_MAX_UNPACK" in reason for reason in skipped(document).values())
