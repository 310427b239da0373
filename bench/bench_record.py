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


def instructions(folder, calls=10000):
    """Of one call without a run, by callgrind's count of the function."""
    out = f"{folder}/out"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", PROGRAM, "off", str(calls)], check=True, capture_output=True)
    text = subprocess.run(["callgrind_annotate", "--threshold=100", out], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"^\s*([\d,]+).*:tdbg_tensor\b", text, re.M).group(1).replace(",", "")) / calls


def main():
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "bench/record_cost"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        off = min(measure("off", 20_000_000)[0] for _ in range(5))
        print(f"tdbg_tensor without a run, ns\t{off:.2f}\t<=2\tthe best of 5 loops")
        if shutil.which("valgrind"):
            print(f"the same, instructions\t{instructions(folder):.1f}\t<=10\tcallgrind")
        pairs = [measure("stats", f"{folder}/run", 400) for _ in range(5)]
        copy, call = min(pairs, key=lambda p: p[1] / p[0])
        print(f"tdbg_tensor, statistics of 1 MiB / memcpy\t{call / copy:.3f}\t<=1.2\t{call:.1f} of {copy:.1f} us, medians of 400, the best of 5 runs")
        scopes = min(measure("scopes", f"{folder}/run", 1_000_000)[0] for _ in range(3))
        print(f"a million scopes, seconds\t{scopes:.3f}\t<=1\tthe best of 3")


if __name__ == "__main__":
    main()
