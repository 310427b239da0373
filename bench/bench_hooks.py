#!/usr/bin/env python3
"""What recording costs a PyTorch model: a 12-layer GPT-style model on the CPU, statistics of every module output.

Forward passes with and without hooks alternate, in one process and in random order; what is compared are the medians.
The model is in the sizes of GPT-2: 12 layers, width 768, 12 heads, 50257 tokens. TDBG_BENCH_ROUNDS sets the number of
pairs (default 15).
"""
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

PYTHON = "/usr/bin/python3"  # Debian's, which has torch
ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = int(os.environ.get("TDBG_BENCH_ROUNDS", "15"))

if sys.executable != PYTHON and "TDBG_BENCH_PYTHON" not in os.environ:
    os.execv(PYTHON, [PYTHON, __file__])

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]
os.environ.setdefault("TDBG_LIBRARY", str(ROOT / os.environ.get("BUILD", "build") / "libtdbg.so"))
import gpt  # noqa: E402
import tdbg  # noqa: E402
import torch  # noqa: E402


def seconds(model, ids):
    start = time.perf_counter()
    model(ids)
    return time.perf_counter() - start


def measure(model, ids, folder, **options):
    """Medians of a forward pass: without hooks, with hooks."""
    times = {False: [], True: []}
    recording = tdbg.record(model, f"{folder}/run", replace=True, **options)
    hooks = [(m, dict(m._forward_hooks), dict(m._forward_pre_hooks)) for m in model.modules()]
    for _ in range(ROUNDS):
        for hooked in random.sample((False, True), 2):
            for module, after, before in hooks:
                module._forward_hooks.clear(), module._forward_pre_hooks.clear()
                if hooked:
                    module._forward_hooks.update(after), module._forward_pre_hooks.update(before)
            times[hooked].append(seconds(model, ids))
            if hooked:
                recording.step()
            time.sleep(0.02)  # the writer's work is not the next pass's
    recording.close()
    return statistics.median(times[False]), statistics.median(times[True])


def main():
    torch.manual_seed(0)
    random.seed(0)
    model = gpt.GPT(layers=12, width=768, heads=12, vocabulary=50257, length=256).eval()
    ids = torch.randint(0, 50257, (1, 256))
    with tempfile.TemporaryDirectory(prefix="tdbg-bench-") as folder, torch.no_grad():
        for _ in range(3):
            model(ids)
        for what, bar, options in (("statistics", "<=1.05", {"stats_only": True}),
                                   ("scopes alone", "-", {"tensors": []})):
            plain, hooked = measure(model, ids, folder, **options)
            print(f"12-layer GPT forward, {what} / without hooks\t{hooked / plain:.4f}\t{bar}\t"
                  f"{hooked * 1e3:.1f} ms, without {plain * 1e3:.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
