"""`tdbg diff FILE`: every pair of its tensors, as they come."""
import itertools
import json
import os
import pty
import resource
import subprocess
import time

import numpy as np
import pytest


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Two copies, a near copy, a transposed copy, another size, a scalar, something else."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal((8, 6)).astype(np.float32)
    tensors = {"embed": w, "head": w, "near": w * np.float32(1 + 1e-7), "turned": np.ascontiguousarray(w.T), "small": w[:3], "one": np.float32(3),
               "other": rng.standard_normal((8, 6)).astype(np.float32)}
    path = tmp_path_factory.mktemp("self") / "model.npz"
    np.savez(path, **tensors)
    return path, tensors


def test_pairs_in_order(tdbg, model):
    path, tensors = model
    found = tdbg.json("diff", path, status=1)
    assert found["a"] == found["b"] == {"path": str(path), "tensors": 7}
    alike = [pair for pair in itertools.combinations(tensors, 2) if tensors[pair[0]].size == tensors[pair[1]].size]
    assert [(p["a"]["name"], p["b"]["name"]) for p in found["pairs"]] == alike
    every = list(itertools.combinations(tensors, 2))
    assert [every[p["index"]] for p in found["pairs"]] == alike
    assert {p["strategy"] for p in found["pairs"]} == {"self"}
    assert found["self"] == {"total": 21, "unlike": 21 - len(alike), "complete": True}
    assert found["summary"]["pairs"] == len(alike)


def test_values_are_compared(tdbg, model):
    path, tensors = model
    pairs = {(p["a"]["name"], p["b"]["name"]): p for p in tdbg.json("diff", path, status=1)["pairs"]}
    assert pairs["embed", "head"]["verdict"] == "identical"
    assert pairs["embed", "near"]["verdict"] == "within"
    a, b = (tensors[n].astype(np.float64) for n in ("embed", "near"))
    assert pairs["embed", "near"]["metrics"]["max_abs"] == np.abs(a - b).max()
    turned = pairs["embed", "turned"]
    assert turned["verdict"] == "identical" and any("permute" in step for step in turned["layout"]["steps"])


def test_only_and_top(tdbg, model):
    path, _ = model
    copies = tdbg.json("diff", path, "--only", "identical")
    assert {p["verdict"] for p in copies["pairs"]} == {"identical"}
    assert copies["self"]["complete"] and copies["summary"]["pairs"] == len(copies["pairs"])
    assert len(tdbg.json("diff", path, "--top", "2")["pairs"]) == 2
    assert not tdbg.json("diff", path, "--top", "2")["self"]["complete"]


def test_text(tdbg, model):
    path, _ = model
    lines = tdbg.text("diff", path, "--only", "identical").splitlines()
    assert lines[0].split() == ["tensor", "against", "shape", "rel", "error", "max", "abs", "cosine", "verdict"]
    assert lines[1].split() == ["embed", "head", "[8,", "6]", "0", "0", "1.0000", "identical"]
    assert "passed over, their shapes do not line up" in lines[-1]
    assert "There are more: --top K" in tdbg.text("diff", path, "--top", "1")
    assert len(tdbg.text("diff", "-q", path, "--top", "1").splitlines()) == 2


def test_one_tensor(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    assert "0 of 0 pairs listed" in tdbg.text("diff", tmp_path / "a.npy")
    assert tdbg.json("diff", tmp_path / "a.npy")["pairs"] == []


def test_errors(tdbg, model):
    path, _ = model
    assert tdbg.fails("diff", "nowhere") == "tdbg: nowhere: cannot open: No such file or directory"
    assert tdbg.fails("diff", path, "--html", "x.html") == "tdbg: diff: --html needs two PATHs (see 'tdbg diff --help')"
    assert tdbg.fails("diff", path, "--layout", "a -> a") == "tdbg: diff: --layout needs two PATHs (see 'tdbg diff --help')"
    assert "two PATHs are compared, or one with itself; 3 given" in tdbg.fails("diff", path, path, path)


def test_same_bytes_on_any_machine(tdbg, model):
    path, _ = model
    outputs = {tdbg.text("diff", "--json", path, status=1, env=env) for env in ({"TDBG_THREADS": "1"}, {"TDBG_THREADS": "2"}, {"TDBG_CPU": "scalar"})}
    assert len(outputs) == 1


@pytest.fixture(scope="module")
def thousands(tmp_path_factory):
    rng = np.random.default_rng(2)
    path = tmp_path_factory.mktemp("thousands") / "m.npz"
    np.savez(path, **{f"layers.{i // 4}.{'qkvo'[i % 4]}": rng.standard_normal((4 + i % 4, 16)).astype(np.float32) for i in range(2000)})
    return path


@pytest.mark.native
def test_first_page_at_once(tdbg, thousands):
    """2 million pairs; the first fifty take as long as opening the file."""
    start = time.monotonic()
    assert len(tdbg.json("diff", thousands, "--top", "50", status=1)["pairs"]) == 50
    assert time.monotonic() - start < 10


def test_a_terminal_gets_a_page(tdbg, thousands):
    master, slave = pty.openpty()
    process = subprocess.Popen([tdbg.binary, "diff", str(thousands)], stdout=slave, stderr=subprocess.DEVNULL,
                               env={**os.environ, "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"})
    os.close(slave)
    text = b""
    try:
        while chunk := os.read(master, 65536):
            text += chunk
    except OSError:  # the other end is gone
        pass
    os.close(master)
    assert process.wait(timeout=60) == 1
    lines = text.decode().splitlines()
    assert len([line for line in lines if line.endswith("diverged")]) == 50
    assert "50 of 1999000 pairs listed" in text.decode() and "There are more" in text.decode()


@pytest.mark.slow
@pytest.mark.native
def test_memory_is_bounded(tdbg, thousands):
    """Twenty thousand pairs (22 MB of JSON) in 128 MiB, thread stacks and all."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (128 << 20, 128 << 20))
    done = subprocess.run([tdbg.binary, "diff", "--json", "--top", "20000", str(thousands)], capture_output=True, preexec_fn=limit, timeout=120,
                          env={**os.environ, "TDBG_THREADS": "2"})
    assert done.returncode == 1, done.stderr
    assert len(json.loads(done.stdout)["pairs"]) == 20000
