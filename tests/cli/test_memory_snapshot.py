"""`tdbg memory SNAPSHOT.pickle`: snapshots of PyTorch's CUDA allocator."""
import gzip
import pickle

import pytest
from memoryfiles import SEGMENT, Device, save, stack

MIB = 1 << 20


def train(device, steps=40):
    """Weights that stay, activations that come and go, and a list of losses that keeps its graphs."""
    for i in range(8):
        device.alloc(2 * MIB, stack(f"build_{i % 2}", "main"))
    for _ in range(steps):
        blocks = [device.alloc(MIB, stack("layer", "step", "main")) for _ in range(6)]
        device.alloc(MIB // 4, stack("remember_loss", "step", "main"))
        for block in reversed(blocks):
            device.free(block)
    return device


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_peak_leak_and_reserved(tdbg, tmp_path, protocol):
    path = save(tmp_path / "snapshot.pickle", train(Device()), protocol=protocol)
    (story,) = tdbg.json("memory", path, status=1)["memory"]
    assert story["title"] == "device 0"
    assert story["peak"]["bytes"] == 16 * MIB + 6 * MIB + 39 * MIB // 4 + MIB // 4
    rows = {row["owner"]: row["bytes"] for row in story["peak"]["owners"]}
    assert rows["layer (model.py:10) < step (model.py:11) < main (model.py:12)"] == 6 * MIB
    assert rows["build_0 (model.py:10) < main (model.py:11)"] == 8 * MIB
    leak = story["held"]["owners"][0]
    assert leak["owner"].startswith("remember_loss (model.py:10) < step")
    assert (leak["bytes"], leak["blocks"], leak["grows"]) == (40 * MIB // 4, 40, True)
    assert leak["stack"][0] == "forward (linear.py:114)"
    assert story["held"]["leaks"] == 1
    peak, worst, end = story["fragmentation"]
    assert end["reserved"] % SEGMENT == 0 and end["reserved"] >= 260 * MIB


def test_history_that_begins_in_the_middle(tdbg, tmp_path):
    """The trace is a ring: what it lost is known from what is freed later, and from the state at the end."""
    device = Device()
    early = device.alloc(3 * MIB, stack("early"))
    late = device.alloc(5 * MIB, stack("late"))
    device.trace.clear()
    device.free(early)
    device.alloc(MIB, stack("now"))
    path = save(tmp_path / "snapshot.pickle", device)
    (story,) = tdbg.json("memory", path)["memory"]
    assert late in device.live
    assert story["peak"]["bytes"] == 8 * MIB
    assert story["held"]["bytes"] == 6 * MIB
    assert story["unknown_releases"] == 0
    assert {row["owner"]: row["bytes"] for row in story["held"]["owners"]} == {"late (model.py:10)": 5 * MIB, "now (model.py:10)": MIB}


@pytest.mark.parametrize("form", ["segments", "old"])
def test_without_history(tdbg, tmp_path, form):
    path = save(tmp_path / "snapshot.pickle", train(Device()), form=form)
    (story,) = tdbg.json("memory", path, status=1)["memory"]  # the holes are there all the same
    assert story["held"]["bytes"] == 26 * MIB
    assert story["held"]["leaks"] == 0
    assert not any(row["grows"] for row in story["held"]["owners"])
    assert story["note"].startswith("without a history")
    reserved = {view["moment"]: view["reserved"] for view in story["fragmentation"]}
    assert reserved["peak"] == reserved["end"] > 26 * MIB
    assert story["peak"]["owners"][0]["owner"].startswith("remember_loss (model.py:10)")


def test_fragmentation(tdbg, tmp_path):
    """Every second block freed, and a large one asked for."""
    device = Device()
    kept, dropped = [], []
    for _ in range(200):
        kept.append(device.alloc(MIB // 2, stack("keep")))
        dropped.append(device.alloc(MIB // 2, stack("drop")))
    for block in dropped:
        device.free(block)
    device.alloc(64 * MIB, stack("large"))
    (story,) = tdbg.json("memory", save(tmp_path / "snapshot.pickle", device), status=1)["memory"]
    worst = story["fragmentation"][1]
    assert worst["fragmented"]
    assert worst["largest_hole"] == MIB // 2
    assert worst["pinned_by"][0]["owner"] == "keep (model.py:10)"


def test_devices_snapshots_and_out_of_memory(tdbg, tmp_path):
    one, two = train(Device(), 3), train(Device(base=0x7E0000000000, index=1), 10)
    one.event("snapshot", 0, 0)
    one.alloc(MIB, stack("later"))
    one.event("snapshot", 0, 0)
    two.event("oom", 0, 10**12, device_free=12345)
    stories = tdbg.json("memory", save(tmp_path / "snapshot.pickle", one, two), status=1)["memory"]
    assert [story["title"] for story in stories] == ["device 1", "device 0"]
    assert stories[0]["note"] == "out of memory: 1000000000000 bytes were asked for and 12345 were free on the device"
    assert [mark["name"] for mark in stories[1]["snapshots"]] == ["snapshot 1", "snapshot 2"]
    assert [row["bytes"] for row in stories[1]["difference"]["owners"]] == [MIB]


@pytest.mark.parametrize("time", ["0s", "0.0001s", "0.05s"])
def test_any_time_within_the_history_is_a_snapshot(tdbg, tmp_path, time):
    """Also one after the last block came or went, while the history goes on, and where another GPU did nothing."""
    device = Device()
    device.alloc(MIB, stack("early"))
    device.alloc(2 * MIB, stack("late"))
    device.time += 100_000
    device.event("segment_alloc", 0x7A0000000000, SEGMENT)
    path = save(tmp_path / "snapshot.pickle", device, Device(index=1))
    (story,) = tdbg.json("memory", "--snapshot", time, "--snapshot", "end", path)["memory"]
    assert story["difference"]["from"] == time and story["difference"]["to"] == "end"
    assert sum(row["bytes"] for row in story["difference"]["owners"]) == (0 if time == "0.05s" else 3 * MIB if time == "0s" else 2 * MIB)
    assert tdbg.fails("memory", "--snapshot", "0.2s", "--snapshot", "end", path).endswith("no memory snapshot '0.2s'")


def test_compressed(tdbg, tmp_path):
    plain = save(tmp_path / "snapshot.pickle", train(Device()))
    (tmp_path / "snapshot.pickle.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert tdbg.json("memory", tmp_path / "snapshot.pickle.gz", status=1) == tdbg.json("memory", plain, status=1)


def write(path, value):
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, 4))
    return path


def test_bad_files(tdbg, tmp_path):
    good = save(tmp_path / "good.pickle", train(Device(), 2)).read_bytes()
    no_snapshot = "a pickle, but no snapshot of torch.cuda.memory: neither segments nor device_traces in it"
    huge = {"segments": [{"address": 2**63, "total_size": 1, "blocks": [{"size": 2**63 - 1, "state": "inactive"}] * 3}]}
    for value, message in [
        (b"", "pickle: ends without a STOP (at byte 0)"),
        (b"no pickle at all", None),
        (good[: len(good) // 2], None),
        ({"a": 1}, no_snapshot),
        ([1, 2, 3], no_snapshot),
        ({"segments": [], "device_traces": []}, "the snapshot holds no memory"),
        ({"segments": 5, "device_traces": "x"}, no_snapshot),
        (huge, "a block of 9223372036854775807 bytes at 0xffffffffffffffff"),
    ]:
        path = write(tmp_path / "bad.pickle", value)
        line = tdbg.fails("memory", path)
        assert line.startswith(f"tdbg: {path}: ")
        if message:
            assert line == f"tdbg: {path}: {message}"


def test_values_of_other_kinds_count_as_absent(tdbg, tmp_path):
    """Nothing in a file makes the reader fall over: wrong kinds everywhere, loops, the same list a hundred times."""
    loop = []
    loop.append(loop)
    block = {"address": 16, "size": 64, "state": "active_allocated", "frames": [1, loop, {"filename": 3, "line": "x", "name": None}]}
    event = {"action": "alloc", "addr": 4096, "size": 100, "frames": loop, "time_us": "late"}
    value = {"segments": [None, 3, {"blocks": "x"}, {"address": -5, "blocks": [None, block]}],
             "device_traces": [[event, 7, {"action": 5}, {"addr": 3}, {"action": "alloc", "addr": 8192, "size": -1}] + [event] * 100, None, loop]}
    (story,) = tdbg.json("memory", write(tmp_path / "odd.pickle", value))["memory"]
    assert story["peak"]["bytes"] == 164


def test_nothing_is_executed(tdbg, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "executed"), "w"))

    write(tmp_path / "bomb.pickle", {"segments": [Bomb()], "device_traces": [[Bomb()]]})
    tdbg.fails("memory", tmp_path / "bomb.pickle")
    assert not (tmp_path / "executed").exists()
