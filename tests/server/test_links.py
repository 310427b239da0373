"""Links below a root: a client sees nothing through them that it could not name itself. Who starts the server, or works
on the command line, names what his links lead to."""
import os

import numpy as np
import onnx
import onnxfiles
import pytest
from comparing import finished, rest, result, started

OUT = "leads out of the folders this server may open"


@pytest.fixture
def places(tmp_path):
    """root/dump with links that stay in root and links that leave it; what these lead to lies in secret/."""
    root, secret = tmp_path / "root", tmp_path / "secret"
    for folder in (root / "dump", root / "other", secret / "deeper"):
        folder.mkdir(parents=True)
    np.save(root / "dump" / "own.npy", np.arange(3.0))
    np.save(root / "other" / "x.npy", np.arange(4.0))
    np.save(secret / "deeper" / "s.npy", np.arange(5.0))
    os.symlink("../other/x.npy", root / "dump" / "inner.npy")
    os.symlink("../other", root / "dump" / "inner")
    os.symlink(secret / "deeper" / "s.npy", root / "dump" / "outer.npy")
    os.symlink(secret, root / "dump" / "outer")
    os.symlink("outer", root / "dump" / "twice")
    return root, secret


INSIDE = {"own.npy", "inner.npy", "inner/x.npy"}
OUTSIDE = {"outer.npy", "outer/deeper/s.npy", "twice/deeper/s.npy"}


def names(server, path):
    document = result(server, finished(server, path))
    return {tensor["name"] for tensor in document["tensors"]}, {s["name"]: s["reason"] for s in document["skipped"]}


def test_a_folder_below_a_root(serve, places, tdbg):
    root, _ = places
    server = serve("--root", root)
    assert names(server, root / "dump") == (INSIDE, {"outer.npy": OUT, "outer": OUT, "twice": OUT})
    assert {t["name"] for t in tdbg.json("ls", root / "dump")["tensors"]} == INSIDE | OUTSIDE


def test_an_input_that_the_server_is_started_with(serve, places):
    root, _ = places
    server = serve("--root", root, root / "dump")
    assert names(server, root / "dump") == (INSIDE | OUTSIDE, {})


def test_nothing_but_links_out(serve, places):
    root, secret = places
    (root / "only").mkdir()
    os.symlink(secret / "deeper" / "s.npy", root / "only" / "s.npy")
    server = serve("--root", root)
    c = rest(server, started(server, root / "only"))
    assert c["status"] == "failed" and c["error"] == f"{root}/only: no tensor file in it: s.npy: {OUT}"
    # Made part of the roots, it is opened.
    server.stop()
    server = serve("--root", root.parent)
    assert names(server, root / "only") == ({"s.npy"}, {})


def test_external_data_beside_a_model(serve, places, tdbg):
    root, secret = places
    array = np.arange(6, dtype=np.float32)
    model = onnxfiles.model([onnxfiles.raw("w", array)])
    onnx.save_model(model, str(root / "m.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0)
    server = serve("--root", root)
    assert names(server, root / "m.onnx") == ({"w"}, {})
    (root / "weights.bin").rename(secret / "weights.bin")
    os.symlink(secret / "weights.bin", root / "weights.bin")
    found, skipped = names(server, root / "m.onnx")
    assert not found and OUT in skipped["w"]
    assert [t["name"] for t in tdbg.json("ls", root / "m.onnx")["tensors"]] == ["w"]
