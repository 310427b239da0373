"""A model in shards, through its index."""
import json
import zipfile

import numpy as np
import pytest

from tensorfiles import safetensors, values

A, B = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def write(folder, weight_map=None, shards=None):
    x, y, z = np.arange(3.0), np.arange(4.0), np.arange(5, dtype=np.int8)
    shards = {A: {"y": y, "x": x}, B: {"z": z}} if shards is None else shards
    for name, tensors in shards.items():
        (folder / name).write_bytes(safetensors(tensors))
    weight_map = {"z": B, "x": A, "y": A} if weight_map is None else weight_map
    index = {"metadata": {"total_size": 61}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index, indent=2))
    return folder / INDEX


def names(answer):
    return [t["name"] for t in answer["tensors"]]


def skips(answer):
    return [(s["name"], s["reason"]) for s in answer["skipped"]]


def test_shards_in_order(tdbg, tmp_path):
    """By the shards' names, then as the file has them, whatever the order of the index."""
    index = write(tmp_path)
    answer = tdbg.json("ls", index)
    assert names(answer) == ["y", "x", "z"] and skips(answer) == []
    assert {t["format"] for t in answer["tensors"]} == {"safetensors"}
    assert values(tdbg, index, "z") == [0, 1, 2, 3, 4]


def test_folder_lists_shards_once(tdbg, tmp_path):
    write(tmp_path)
    (tmp_path / "other.safetensors").write_bytes(safetensors({"w": np.zeros(1)}))
    answer = tdbg.json("ls", tmp_path)
    assert sorted(names(answer)) == ["model.safetensors:x", "model.safetensors:y", "model.safetensors:z",
                                     "other.safetensors:w"]  # fmt: skip


def test_in_an_archive(tdbg, tmp_path):
    write(tmp_path)
    path = tmp_path / "m.zip"
    with zipfile.ZipFile(path, "w") as z:
        for name in (A, B, INDEX):
            z.write(tmp_path / name, f"llama/{name}")
    assert sorted(names(tdbg.json("ls", path))) == [f"llama/model.safetensors:{n}" for n in "xyz"]


def test_shard_missing(tdbg, tmp_path):
    index = write(tmp_path)
    (tmp_path / A).unlink()
    answer = tdbg.json("ls", index)
    assert names(answer) == ["z"]
    [(name, reason)] = skips(answer)
    assert name == A and reason.endswith("No such file or directory (holds 2 of the index's tensors)"), reason


def test_shard_bad(tdbg, tmp_path):
    index = write(tmp_path)
    (tmp_path / A).write_bytes((tmp_path / A).read_bytes()[:-1])
    answer = tdbg.json("ls", index)
    assert names(answer) == ["z"]
    assert skips(answer) == [(A, "x: ends at byte 56 of the data, which has 55 (holds 2 of the index's tensors)")]


def test_shard_not_tensors(tdbg, tmp_path):
    index = write(tmp_path)
    (tmp_path / A).write_text("hello")
    assert skips(tdbg.json("ls", index)) == [(A, "not a tensor file (holds 2 of the index's tensors)")]


def test_index_and_shards_disagree(tdbg, tmp_path):
    index = write(tmp_path, {"x": A, "y": B, "z": B})
    answer = tdbg.json("ls", index)
    assert names(answer) == ["x", "z"]
    assert skips(answer) == [("y", f"in {A}, but not in the index"), ("y", f"in the index, but not in {B}")]


@pytest.mark.parametrize("shard", ["/etc/passwd", "../" + A, "a/../../" + A])
def test_outside_the_folder(tdbg, tmp_path, shard):
    index = write(tmp_path, {"x": shard, "z": B})
    answer = tdbg.json("ls", index)
    assert names(answer) == ["z"]
    assert skips(answer)[0] == (shard, "refers to a file outside its folder (holds 1 of the index's tensors)")


def test_index_of_itself(tdbg, tmp_path):
    index = write(tmp_path, {"x": INDEX, "z": B})
    answer = tdbg.json("ls", index)
    assert names(answer) == ["z"]
    assert skips(answer)[0] == (INDEX, "not a tensor file (holds 1 of the index's tensors)")


def test_torch_shards(tdbg, tmp_path):
    torch = pytest.importorskip("torch")
    for i, name in enumerate(("a", "b")):
        torch.save({name: torch.full((2,), float(i))}, tmp_path / f"pytorch_model-0000{i}-of-00002.bin")
    index = tmp_path / "pytorch_model.bin.index.json"
    weight_map = {name: f"pytorch_model-0000{i}-of-00002.bin" for i, name in enumerate(("a", "b"))}
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    assert names(tdbg.json("ls", index)) == ["a", "b"]
    assert values(tdbg, index, "b") == [1.0, 1.0]
    assert sorted(names(tdbg.json("ls", tmp_path))) == ["pytorch_model.bin:a", "pytorch_model.bin:b"]
