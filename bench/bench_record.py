#!/usr/bin/python3
"""What recording costs the recorded program: nothing while it is off, about a copy of the tensor while it is on."""
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
        runs = sorted((measure("stats", f"{folder}/run", 400) for _ in range(9)), key=lambda run: run[2])
        copy, call, ratio = runs[4]
        print(f"tdbg_tensor, statistics of 1 MiB / memcpy\t{ratio:.3f}\t<=1.2\t{call:.1f} of {copy:.1f} us; the median of 9 runs"
              f" ({runs[0][2]:.2f} to {runs[-1][2]:.2f}), each that of 400 pairs")
        scopes = min(measure("scopes", f"{folder}/run", 1_000_000)[0] for _ in range(3))
        print(f"a million scopes, seconds\t{scopes:.3f}\t<=1\tthe best of 3")


if __name__ == "__main__":
    main()
