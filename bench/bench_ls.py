#!/usr/bin/env python3
"""tdbg ls: of a small file against importing torch, and of a folder of a thousand files. Best of several runs."""
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TDBG = ROOT / "build" / "tdbg"
PYTHON = "/usr/bin/python3"
HEADER = b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }".ljust(117) + b"\n"


def best(command, times):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for i in range(1000):
            (folder / f"{i}_query.npy").write_bytes(HEADER + bytes(60))
        torch = best([PYTHON, "-c", "import torch"], 3)
        small = best([TDBG, "ls", folder / "0_query.npy"], 20)
        many = best([TDBG, "ls", folder], 5)
    print(f"ls small file / import torch\t{small / torch:.4f}\t<=0.02\t{small * 1e3:.1f} ms against {torch:.2f} s")
    print(f"ls of 1000 files / import torch\t{many / torch:.4f}\t-\t{many * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
