#!/usr/bin/env python3
"""What it costs a program to be watched by `tdbg memory`, and what it costs to read a large snapshot.

Whole processes are timed, alternating, and the best of each counts. The loop does nothing but allocate and free, and
so shows the most that watching can cost; the others are programs that also work. TDBG_BENCH_SNAPSHOT_MB sets the size
of the snapshot (default 100).
"""
import os
import pathlib
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
TDBG = BUILD / "tdbg"
SNAPSHOT_MB = int(os.environ.get("TDBG_BENCH_SNAPSHOT_MB", "100"))
REPEATS = 3

DICTS = "import json; x = json.dumps([{'a': i, 'b': str(i)} for i in range(20000)]); [json.loads(x) for _ in range(2)]"
TORCH = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])
for _ in range(20):
    model(torch.randn(64, 512)).sum().backward()
"""


def seconds(command, env=None):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - start


def overhead(what, command, report, env=None):
    env = {**os.environ, **(env or {})}
    alone = watched = 1e9
    for _ in range(REPEATS):
        alone = min(alone, seconds(command, env))
        start = time.perf_counter()
        subprocess.run([TDBG, "memory", "--json", "-o", report, "--", *command], stdout=subprocess.DEVNULL, env=env)
        watched = min(watched, time.perf_counter() - start)
    print(f"watched / alone, {what}\t{watched / alone:.2f}\t-\t{watched * 1e3:.0f} of {alone * 1e3:.0f} ms")
    return watched - alone


def write_snapshot(path, size, depth=20, frames=300):
    """A pickle like those of PyTorch, whose frames are shared, written without holding it in memory."""
    numbers, written, remembered = {}, 0, 0

    def get(key):
        return b"j" + struct.pack("<I", numbers[key])

    with open(path, "wb", buffering=1 << 20) as out:
        def put(data):
            nonlocal written
            out.write(data)
            written += len(data)

        def remember(key=None):
            nonlocal remembered
            if key:
                numbers[key] = remembered
            remembered += 1
            put(b"\x94")

        def text(value):
            put(b"\x8c" + bytes([len(value)]) + value.encode())
            remember(value)

        put(b"\x80\x04}(")
        text("device_traces")
        put(b"](](")
        put(b"(")  # names and frames, thrown away at once: the memo keeps them
        for key in ("action", "addr", "size", "stream", "time_us", "frames", "filename", "line", "name", "alloc", "free_completed"):
            text(key)
        for i in range(frames):
            put(b"}")
            remember(("frame", i))
            put(b"(" + get("filename"))
            text(f"/srv/model_{i}.py")
            put(get("line") + b"M" + struct.pack("<H", i) + get("name"))
            text(f"function_{i}")
            put(b"u")
        put(b"1")
        stacks = [b"".join(get(("frame", (7 * i + k * k) % frames)) for k in range(depth)) for i in range(1000)]
        address, live, time_us = 0x7F0000000000, [], 1
        while written < size:
            for i in range(1000):
                time_us += 7
                if len(live) > 4000:
                    where, length = live.pop(i % 1000)
                    action = get("free_completed")
                else:
                    where, length, action = address, 512 * (1 + i), get("alloc")
                    address += length
                    live.append((where, length))
                put(b"}")
                remember()
                put(b"(" + get("action") + action + get("addr") + b"\x8a\x08" + struct.pack("<q", where) + get("size") + b"J" +
                    struct.pack("<i", length) + get("stream") + b"K\x00" + get("time_us") + b"\x8a\x08" + struct.pack("<q", time_us) +
                    get("frames") + b"](" + stacks[i] + b"eu")
        put(b"ee" + b"u.")


def snapshot(folder):
    path = folder / "snapshot.pickle"
    write_snapshot(path, SNAPSHOT_MB * 1_000_000)
    took = 1e9
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run([TDBG, "memory", "-q", path], stdout=subprocess.DEVNULL)
        took = min(took, time.perf_counter() - start)
    pid = os.spawnv(os.P_NOWAIT, TDBG, [str(TDBG), "memory", "--json", "-o", str(folder / "out"), str(path)])
    _, _, usage = os.wait4(pid, 0)
    size = path.stat().st_size
    print(f"memory for a snapshot / its size\t{usage.ru_maxrss * 1024 / size:.2f}\t-\t{size / 1e6:.0f} MB in {took:.2f} s, {usage.ru_maxrss / 1024:.0f} MiB")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "memory_program"
        subprocess.run(["cc", "-O1", "-o", program, ROOT / "tests/data/memory_program.c", "-lpthread"], check=True)
        more = overhead("10^6 allocations and releases in a loop", [program, "million"], folder / "report")
        print(f"nanoseconds more for each of them\t{more * 1e9 / 2e6:.0f}\t-\t2 million events")
        overhead("4 threads that allocate", [program, "threads", "4"], folder / "report")
        overhead("python3, JSON, every object by malloc", ["/usr/bin/python3", "-c", DICTS], folder / "report", {"PYTHONMALLOC": "malloc"})
        overhead("python3, JSON", ["/usr/bin/python3", "-c", DICTS], folder / "report")
        overhead("python3, torch, 20 training steps", ["/usr/bin/python3", "-c", TORCH], folder / "report")
        snapshot(folder)


if __name__ == "__main__":
    main()
