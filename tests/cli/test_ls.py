"""`tdbg ls`: names, order, tables, skips."""
import zipfile

import numpy as np
import pytest
import torch

STAGES = (
    "post_ln_pre_attn query query_final key key_final value value_final post_attn scaling sliding "
    "post_attn_pre_resid pre_mlp post_mlp"
).split()


def names(document):
    return [t["name"] for t in document["tensors"]]


def test_json_is_as_the_contract_says(tdbg, tmp_path):
    path = tmp_path / "3_query.npy"
    np.save(path, np.zeros((76, 45, 64), np.float16))
    assert tdbg.json("ls", path) == {
        "version": 1,
        "tensors": [
            {
                "name": "3_query.npy",
                "path": str(path),
                "dtype": "float16",
                "shape": [76, 45, 64],
                "bytes": 76 * 45 * 64 * 2,
                "format": "npy",
            }
        ],
        "skipped": [],
    }


def test_names_are_joined_by_where_they_lie(tdbg, tmp_path):
    (tmp_path / "sub").mkdir()
    np.save(tmp_path / "a.npy", np.zeros(1))
    np.savez(tmp_path / "sub/b.npz", x=np.zeros(1), y=np.zeros(1))
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as z:
        z.write(tmp_path / "a.npy", "deep/c.npy")
    assert sorted(names(tdbg.json("ls", tmp_path))) == ["a.npy", "inner.zip/deep/c.npy", "sub/b.npz:x", "sub/b.npz:y"]
    assert names(tdbg.json("ls", tmp_path / "sub/b.npz")) == ["x", "y"]
    assert names(tdbg.json("ls", tmp_path / "inner.zip")) == ["deep/c.npy"]


def test_every_name_works_after_the_path(tdbg, tmp_path):
    (tmp_path / "sub").mkdir()
    np.save(tmp_path / "a.npy", np.zeros(1))
    np.save(tmp_path / "od:d[0].npy", np.zeros(1))
    np.savez(tmp_path / "sub/b.npz", **{"x": np.zeros(1), "y[0]": np.zeros(1), "z:w": np.zeros(1)})
    for name in names(tdbg.json("ls", tmp_path)):
        assert tdbg.json("show", f"{tmp_path}:{name}")["name"] == name


def test_names_that_meet_are_told_apart(tdbg, tmp_path):
    torch.save({"a.b": torch.zeros(1), "a": {"b": torch.ones(1), "b#2": torch.full((1,), 2.0)}, 1: torch.full((1,), 3.0),
                "1": torch.full((1,), 4.0)}, tmp_path / "x.pth")
    want = {"a.b": 0, "a.b#3": 1, "a.b#2": 2, "1": 3, "1#2": 4}
    assert names(tdbg.json("ls", tmp_path / "x.pth")) == list(want)
    assert {name: tdbg.json("show", f"{tmp_path}/x.pth:{name}")["values"][0] for name in want} == want
    tdbg.text("export", "safetensors", tmp_path / "x.pth", tmp_path / "x.safetensors")
    assert names(tdbg.json("ls", tmp_path / "x.safetensors")) == list(want)


def test_an_error_is_one_line(tdbg, tmp_path):
    assert tdbg.fails("ls", tmp_path / "x\n\x1b[31m.npy") == f"tdbg: {tmp_path}/x??[31m.npy: cannot open: No such file or directory"


@pytest.mark.slow
def test_more_files_than_a_process_can_map(tdbg, tmp_path):
    """The kernel's limit is 65530 (vm.max_map_count)."""
    np.save(tmp_path / "one.npy", np.float32([1, 2]))
    (tmp_path / "many").mkdir()
    for i in range(66_000):
        (tmp_path / "many" / f"{i}.npy").symlink_to("../one.npy")
    assert tdbg.text("ls", tmp_path / "many").splitlines()[-1].startswith("66000 tensors, ")
    assert tdbg.json("show", f"{tmp_path}/many:65999.npy")["values"] == [1, 2]


def test_execution_order(tdbg, tmp_path):
    expected = []
    for folder in ("rank2", "rank10"):
        (tmp_path / folder).mkdir()
        for layer in (0, 2, 10):
            expected += [f"{folder}/{layer}_{stage}.npy" for stage in [*STAGES, "alpha", "zeta"]]
        expected += [f"{folder}/embedding.npy", f"{folder}/logits.npy"]
    for name in sorted(expected, key=hash):
        np.save(tmp_path / name, np.zeros(1))
    assert names(tdbg.json("ls", tmp_path)) == expected


def test_order_of_keys_and_of_files_without_layers(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", **{"1_query": np.zeros(1), "0_value": np.zeros(1), "0_query": np.zeros(1)})
    assert names(tdbg.json("ls", tmp_path / "a.npz")) == ["0_query", "0_value", "1_query"]
    np.savez(tmp_path / "b.npz", z=np.zeros(1), a=np.zeros(1), m=np.zeros(1))
    assert names(tdbg.json("ls", tmp_path / "b.npz")) == ["z", "a", "m"]


def test_table(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "b.npy", np.zeros(2048, np.int64))
    np.save(tmp_path / "scalar.npy", np.float64(1))
    assert tdbg.text("ls", tmp_path).splitlines() == [
        "name        dtype    shape       size",
        "a.npy       float32  [2, 3]      24 B",
        "b.npy       int64    [2048]  16.0 KiB",
        "scalar.npy  float64  []           8 B",
        "3 tensors, 16.0 KiB",
    ]
    assert "tensors" not in tdbg.text("ls", "-q", tmp_path)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_table_fits_the_width(tdbg, tmp_path, width):
    long = "model.decoder.blocks.17.attention.query_key_value.lora_adapter.default.weight" * 2
    np.savez(tmp_path / "a.npz", **{long: np.zeros((3, 4, 5)), "größe": np.zeros(1), "短": np.zeros(1)})
    np.save(tmp_path / "b.npy", np.zeros(3))
    lines = tdbg.text("ls", tmp_path, env={"COLUMNS": str(width)}).splitlines()
    assert max(len(line) for line in lines) <= width
    assert "[3, 4, 5]" in lines[1] and ("…" in lines[1]) == (width < len(long) + 30)
    # A wide character takes two columns.
    plain = next(line for line in lines if "größe" in line)
    wide = next(line for line in lines if "短" in line)
    assert plain.index("float64") == wide.index("float64") + 1


def test_ascii_where_the_locale_is(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", **{"x" * 100: np.zeros(1)})
    text = tdbg.text("ls", tmp_path / "a.npz", env={"COLUMNS": "60", "LC_ALL": "C"})
    assert ".." in text and text.isascii()


def test_several_paths(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(1))
    np.save(tmp_path / "b.npy", np.zeros(1))
    document = tdbg.json("ls", tmp_path / "b.npy", tmp_path / "a.npy")
    assert [t["path"] for t in document["tensors"]] == [str(tmp_path / "b.npy"), str(tmp_path / "a.npy")]
    done = tdbg.run("ls", "--json", tmp_path / "b.npy", tmp_path / "gone.npy")
    assert done.returncode == 2 and '"b.npy"' in done.stdout
    assert done.stderr == f"tdbg: {tmp_path}/gone.npy: cannot open: No such file or directory\n"


def test_skips_are_said(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(1))
    (tmp_path / "note0.txt").write_text("hello\n")
    assert tdbg.run("ls", tmp_path).stderr == "1 skipped: note0.txt: not a tensor file\n"
    for i in range(5):
        (tmp_path / f"note{i}.txt").write_text("hello\n")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-3])
    skipped = {s["name"]: s["reason"] for s in tdbg.json("ls", tmp_path)["skipped"]}
    assert set(skipped) == {"cut.npy", *(f"note{i}.txt" for i in range(5))}
    assert skipped["note0.txt"] == "not a tensor file"
    done = tdbg.run("ls", tmp_path)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines[0] == "6 skipped:" and lines[-1] == "  and 3 more (-v lists them all)" and len(lines) == 5
    assert "note4.txt: not a tensor file" in tdbg.run("ls", "-v", tmp_path).stderr
    assert tdbg.run("ls", "-q", tmp_path).stderr == ""


def test_nothing_readable_is_an_error(tdbg, tmp_path):
    (tmp_path / "empty").mkdir()
    assert tdbg.fails("ls", tmp_path / "empty") == f"tdbg: {tmp_path}/empty: no files in it"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("hello\n")
    assert (
        tdbg.fails("ls", tmp_path / "notes")
        == f"tdbg: {tmp_path}/notes: no tensor file in it: a.txt: not a tensor file"
    )
    (tmp_path / "notes/b.txt").write_text("hello\n")
    assert tdbg.fails("ls", tmp_path / "notes").endswith("a.txt: not a tensor file; and 1 more")
    assert (
        tdbg.fails("ls", tmp_path / "notes/a.txt")
        == f"tdbg: {tmp_path}/notes/a.txt: not a tensor file tdbg knows"
    )
    (tmp_path / "nil.npy").write_bytes(b"")
    assert tdbg.fails("ls", tmp_path / "nil.npy") == f"tdbg: {tmp_path}/nil.npy: an empty file"


def test_a_name_that_grows_too_long(tdbg, tmp_path):
    np.savez(tmp_path / "dump.npz", **{"k" * 4090: np.zeros(1), "short": np.zeros(1)})
    assert len(tdbg.json("ls", tmp_path / "dump.npz")["tensors"]) == 2
    document = tdbg.json("ls", tmp_path)
    assert names(document) == ["dump.npz:short"]
    assert [s["reason"] for s in document["skipped"]] == ["its full name has 4099 bytes, 4096 at most"]


def test_one_tensor_of_many(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(1), y=np.zeros(2))
    assert names(tdbg.json("ls", f"{tmp_path}/a.npz:y")) == ["y"]
