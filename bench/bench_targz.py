#!/usr/bin/python3
"""`tdbg stats` of a .tar.gz of dumps against `igzip -dc` of the same file to nowhere.

The dumps are what people make: a few hundred files that torch.save wrote, float32 activations of about 1 MiB. Both
commands run in turn and the best of each counts, so that a busy moment hits both or neither.
"""
import os
import pathlib
import subprocess
import tarfile
import tempfile
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("TDBG", ROOT / "build" / "tdbg")
FILES, ELEMENTS, ROUNDS = 400, 1 << 18, 7


def write(folder):
    torch.manual_seed(1)
    archive = folder / "dumps.tar"
    with tarfile.open(archive, "w") as tar:
        for i in range(FILES):
            path = folder / "dump.pth"
            torch.save(torch.randn(64, ELEMENTS // 64), path)
            tar.add(path, f"dumps/{i // 13}_stage{i % 13}.pth")
    subprocess.run(["gzip", "-1", archive], check=True)
    return folder / "dumps.tar.gz"


def timed(command):
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE if "stats" in command else subprocess.DEVNULL, check=True)
    return time.perf_counter() - start, done.stdout


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        archive = write(pathlib.Path(name))
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(timed(["igzip", "-dc", archive])[0])
            seconds, output = timed([BINARY, "stats", archive])
            assert output.count(b"_stage") == FILES, output[:300]
            ours.append(seconds)
    best, base = min(ours), min(theirs)
    print(f"stats .tar.gz / igzip -dc\t{best / base:.3f}\t<=1.3\t{best:.2f} s against {base:.2f} s, "
          f"{FILES * ELEMENTS * 4 >> 20} MiB of float32")


main()
