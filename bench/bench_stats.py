#!/usr/bin/env python3
"""`tdbg stats` against the bandwidth of the machine and against torch, on files in the page cache.

Whole processes are timed, from start to exit, alternating, and the best of each counts: what others do on the machine
only ever adds time. TDBG_BENCH_MIB sets the size of the tensors (default 1024).
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
MIB = int(os.environ.get("TDBG_BENCH_MIB", "1024"))
REPEATS = 9
PYTHON = "/usr/bin/python3"  # Debian's, which has torch

MAKE = """
import sys, torch
torch.manual_seed(0)
folder, mib = sys.argv[1], int(sys.argv[2])
x = torch.randn(mib * 2**18)
torch.save(x, folder + "/float32.pth")
torch.save(torch.cat([x, x]).to(torch.bfloat16), folder + "/bfloat16.pth")
torch.save(torch.cat([x, x]).to(torch.float16), folder + "/float16.pth")
torch.save(x[:mib * 2**17].double(), folder + "/float64.pth")
torch.save(x.view(1024, -1).t(), folder + "/transposed.pth")
"""

TORCH = """
import sys, time, torch
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    x = torch.load(sys.argv[1])
    x.mean().item(), x.std().item(), x.min().item(), x.max().item()
    best = min(best, time.perf_counter() - start)
print(best)
"""


def seconds(*command):
    start = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measure(folder):
    subprocess.run([PYTHON, "-c", MAKE, folder, str(MIB)], check=True)
    read = BUILD / "bench/read_sum"
    names = ["float32", "bfloat16", "float16", "float64", "transposed"]
    best = {}
    for _ in range(REPEATS):
        for name in names:
            path = f"{folder}/{name}.pth"
            for what, command in (("read", [read, path]), ("stats", [BUILD / "tdbg", "stats", "--json", path])):
                best[what, name] = min(best.get((what, name), 1e9), seconds(*command))
    torch = float(subprocess.check_output([PYTHON, "-c", TORCH, f"{folder}/float32.pth"]))
    return names, best, torch


def main():
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "bench/read_sum", "tdbg"], check=True)
    with tempfile.TemporaryDirectory(prefix="tdbg-bench-") as folder:
        names, best, torch = measure(folder)
    bars = {"float32": ">=0.7", "bfloat16": ">=0.5"}
    for name in names:
        read, stats = best["read", name], best["stats", name]
        rate = MIB * 2**20 / 1e9
        print(f"stats {name} / two-thread read\t{read / stats:.3f}\t{bars.get(name, '-')}\t"
              f"{rate / stats:.1f} of {rate / read:.1f} GB/s")
    stats = best["stats", "float32"]
    print(f"stats float32 / torch load+mean+std+min+max\t{torch / stats:.1f}\t>=20\t{stats:.3f} s, torch {torch:.3f} s")


if __name__ == "__main__":
    sys.exit(main())
