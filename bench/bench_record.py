#!/usr/bin/python3
"""What recording costs the recorded program: nothing while it is off, about a copy of the tensor while it is on.

The best of many short runs counts, for the call and for the copy: what others do on the machine only ever adds time,
and to a call, which computes, more than to a copy, which waits for memory.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("TDBG", ROOT / "build" / "tdbg")).parent
PROGRAM = BUILD / "bench" / "record_cost"


def measure(*args):
    return [float(x) for x in subprocess.run([PROGRAM, *map(str, args)], check=True, capture_output=True, text=True).stdout.split()]


def instructions(folder):
    """Of one call without a run, its loop included: two lengths of it, so that everything else drops out."""
    counts = []
    for n in (1000, 11000):
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", PROGRAM, "off", str(n)],
                              check=True, capture_output=True, text=True)
        counts.append(int(re.search(r"Collected : (\d+)", done.stderr).group(1)))
    return (counts[1] - counts[0]) / 10000


def main():
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "bench/record_cost"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        off = min(measure("off", 20_000_000)[0] for _ in range(5))
        print(f"tdbg_tensor without a run, ns\t{off:.2f}\t<=2\tthe best of 5 loops")
        if shutil.which("valgrind"):
            print(f"the same, instructions with its loop\t{instructions(folder):.1f}\t<=10\tcallgrind")
        runs = [measure("stats", f"{folder}/run", 400) for _ in range(40)]
        copy, call = min(run[0] for run in runs), min(run[1] for run in runs)
        ratios = sorted(run[2] for run in runs)
        print(f"tdbg_tensor, statistics of 1 MiB / memcpy\t{call / copy:.3f}\t<=1.2\t{call:.1f} of {copy:.1f} us; in one run"
              f" {ratios[0]:.2f} to {ratios[-1]:.2f}, in the middle {ratios[len(ratios) // 2]:.2f}")
        scopes = min(measure("scopes", f"{folder}/run", 1_000_000)[0] for _ in range(3))
        print(f"a million scopes, seconds\t{scopes:.3f}\t<=1\tthe best of 3")


if __name__ == "__main__":
    main()
