#!/usr/bin/env python3
"""`tdbg diff` against the bandwidth of the machine and against torch, on files in the page cache.

Whole processes are timed, from start to exit, alternating, and the best of each counts: what others do on the machine
only ever adds time. The yardstick is read_sum over both files, one after the other. TDBG_BENCH_MIB sets the size of
the big tensors (default 1024). Pairs that diverge are diagnosed as well, and the diagnosis has to name the mistake.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
MIB = int(os.environ.get("TDBG_BENCH_MIB", "1024"))
REPEATS = 15
DIAGNOSED_REPEATS = 7
LAYERS, STAGES = 25, 12  # the folders: 300 files of 20 KB
PYTHON = "/usr/bin/python3"  # Debian's, which has torch

# Both sides of each case differ by noise that the type's own rounding could make; heads first against tokens first is
# float32 as well. `diverged` has a hundred times as much.
MAKE = """
import sys, torch
torch.manual_seed(0)
folder, mib, layers, stages = sys.argv[1], *map(int, sys.argv[2:])
x = torch.randn(mib * 2**18)
noise = torch.randn(mib * 2**18)
y = x + 1e-6 * noise
torch.save(x, folder + "/float32_a.pth")
torch.save(y, folder + "/float32_b.pth")
torch.save(x + 1e-4 * noise, folder + "/diverged_b.pth")
torch.save(x.view(32, -1, 128).clone(), folder + "/permuted_a.pth")
torch.save(y.view(32, -1, 128).permute(1, 0, 2).contiguous(), folder + "/permuted_b.pth")
half = torch.cat([x, x]).to(torch.bfloat16)
del x, y, noise
torch.save(half, folder + "/bfloat16_a.pth")
half += 1e-3 * torch.randn(mib * 2**19).to(torch.bfloat16)
torch.save(half, folder + "/bfloat16_b.pth")
import os
for side in "ab":
    os.mkdir(folder + "/dumps_" + side)
for layer in range(layers):
    for stage in range(stages):
        x = torch.randn(1, 80, 64)
        torch.save(x, f"{folder}/dumps_a/{layer}_stage{stage}.pth")
        torch.save(x + 1e-7 * torch.randn(1, 80, 64), f"{folder}/dumps_b/{layer}_stage{stage}.pth")
"""

# A matrix and, one at a time, a mistake in it: what it is called.
MISTAKES = {"noise": "unknown", "scale": "scale", "rows": "permutation", "tile": "partial"}
MAKE_MISTAKE = """
import sys, torch
torch.manual_seed(0)
folder, mib, dtype, mistake = sys.argv[1], int(sys.argv[2]), getattr(torch, sys.argv[3]), sys.argv[4]
columns = 8192
rows = mib * 2**20 // (columns * torch.empty(0, dtype=dtype).element_size())
x = torch.randn(rows, columns).to(dtype)
torch.save(x, folder + "/mistake_a.pth")
if mistake == "noise":
    x = torch.randn(rows, columns).to(dtype)
elif mistake == "scale":
    x *= 1.25
elif mistake == "rows":  # few of the rows that a diagnosis looks at have come from elsewhere
    order = torch.arange(rows).view(-1, 8)[:, [3, 0, 6, 1, 7, 2, 5, 4]].flatten()
    x = x[order]
else:
    x[rows // 2 : rows // 2 + 64, 4000:4064] = torch.randn(64, 64).to(dtype)
torch.save(x, folder + "/mistake_b.pth")
"""

# The five metrics as the original application computes them, eagerly, of one pair or of two folders.
TORCH = """
import os, sys, time
start = time.perf_counter()
import torch
torch.set_num_threads(2)
def metrics(path_a, path_b):
    a, b = torch.load(path_a).float().flatten(), torch.load(path_b).float().flatten()
    d = (a - b).abs()
    return (d.max().item(), d.mean().item(), (d / (a.abs() + 1e-8)).mean().item(), (d * d).mean().item(),
            torch.nn.functional.cosine_similarity(a, b, dim=0).item())
a, b = sys.argv[1:]
if os.path.isdir(a):
    for name in sorted(os.listdir(a)):
        metrics(f"{a}/{name}", f"{b}/{name}")
else:
    start = time.perf_counter()  # without the import: of a big pair only the work counts
    metrics(a, b)
print(time.perf_counter() - start)
"""


def seconds(*command):
    start = time.perf_counter()
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):  # 1: they differ
        raise SystemExit(f"{command[0]}: exit status {done.returncode}")
    return time.perf_counter() - start


def torch_seconds(a, b, times=2):
    return min(float(subprocess.check_output([PYTHON, "-c", TORCH, a, b])) for _ in range(times))


def diagnose(tdbg, read, folder, dtype, mistake):
    """Seconds of the best diff and of the best read."""
    a, b = f"{folder}/mistake_a.pth", f"{folder}/mistake_b.pth"
    subprocess.run([PYTHON, "-c", MAKE_MISTAKE, folder, str(MIB), dtype, mistake], check=True)
    done = subprocess.run([str(tdbg), "diff", "--json", a, b], stdout=subprocess.PIPE)
    found = json.loads(done.stdout)["first_divergence"]["diagnosis"][0]["kind"]
    if found != MISTAKES[mistake]:
        raise SystemExit(f"{dtype}, {mistake}: diagnosed as {found}, not as {MISTAKES[mistake]}")
    times = [(seconds(tdbg, "diff", "--json", a, b), seconds(read, a) + seconds(read, b)) for _ in range(DIAGNOSED_REPEATS)]
    return [min(column) for column in zip(*times)]


def main():
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "bench/read_sum", "tdbg"], check=True)
    tdbg, read = BUILD / "tdbg", BUILD / "bench/read_sum"
    with tempfile.TemporaryDirectory(prefix="tdbg-bench-") as folder:
        sizes = [str(n) for n in (MIB, LAYERS, STAGES)]
        subprocess.run([PYTHON, "-c", MAKE, folder, *sizes], check=True)
        cases = {name: (f"{folder}/{name}_a.pth", f"{folder}/{name}_b.pth")
                 for name in ("float32", "bfloat16", "permuted")}
        cases["diverged"] = (f"{folder}/float32_a.pth", f"{folder}/diverged_b.pth")
        dumps = f"{folder}/dumps_a", f"{folder}/dumps_b"
        best = {}
        for _ in range(REPEATS):
            for name, (a, b) in cases.items():
                times = {"read": seconds(read, a) + seconds(read, b), "diff": seconds(tdbg, "diff", "--json", a, b)}
                for what, t in times.items():
                    best[what, name] = min(best.get((what, name), 1e9), t)
            best["dumps"] = min(best.get("dumps", 1e9), seconds(tdbg, "diff", "--json", *dumps))
        for dtype in ("float32", "bfloat16"):
            for mistake in MISTAKES:
                best["diff", f"{dtype} {mistake}"], best["read", f"{dtype} {mistake}"] = diagnose(tdbg, read, folder, dtype, mistake)
        torch_pair, torch_dumps = torch_seconds(*cases["float32"]), torch_seconds(*dumps)
    bars = {"float32": ">=0.6", "bfloat16": ">=0.6", "permuted": ">=0.3"}
    rate = 2 * MIB * 2**20 / 1e9
    for name in cases:
        base, diff = best["read", name], best["diff", name]
        print(f"diff {name} / two-thread read\t{base / diff:.3f}\t{bars.get(name, '-')}\t"
              f"{rate / diff:.1f} of {rate / base:.1f} GB/s")
    for case in (f"{dtype} {mistake}" for dtype in ("float32", "bfloat16") for mistake in MISTAKES):
        base, diff = best["read", case], best["diff", case]
        print(f"diff {case}, diagnosed / two-thread read\t{base / diff:.3f}\t>=0.25\t{diff:.3f} s, read {base:.3f} s")
    diff = best["diff", "float32"]
    print(f"diff float32 / torch load and five metrics\t{torch_pair / diff:.1f}\t>=30\t{diff:.3f} s, torch {torch_pair:.2f} s")
    print(f"diff of {LAYERS * STAGES} small files / torch script\t{best['dumps'] / torch_dumps:.4f}\t<=0.05\t"
          f"{best['dumps'] * 1e3:.0f} ms against {torch_dumps:.2f} s")


if __name__ == "__main__":
    sys.exit(main())
