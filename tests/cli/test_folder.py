"""A folder of a thousand files answers at once: only headers are read."""
import resource

import numpy as np
import pytest

COUNT = 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thousand")
    for i in range(COUNT):
        np.save(folder / f"{i}_query.npy", np.full((3, 5), i, "f4"))
    return folder


def test_all_are_listed(tdbg, folder):
    document = tdbg.json("ls", folder)
    assert len(document["tensors"]) == COUNT and document["skipped"] == []
    # Execution order: layer 10 comes after layer 9, not after layer 1.
    assert [t["name"] for t in document["tensors"]] == [f"{i}_query.npy" for i in range(COUNT)]
    assert {tuple(t["shape"]) for t in document["tensors"]} == {(3, 5)}


@pytest.mark.native
def test_listing_is_quick(tdbg, folder):
    """CPU time, so that a busy machine does not matter."""
    best = min(cpu_seconds(tdbg, folder) for _ in range(3))
    assert best < 0.25, f"{best:.2f} s"


def cpu_seconds(tdbg, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    tdbg.json("ls", folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_few_files_are_open_at_once(tdbg, folder):
    """A thousand files do not need a thousand descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        assert len(tdbg.json("stats", folder)["tensors"]) == COUNT
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
