#!/usr/bin/env python3
"""What recording costs a PyTorch model: a 12-layer GPT-style model on the CPU, statistics of every module output.

Forward passes with and without hooks alternate in one process, in random order; the medians are compared. The model has
the sizes of GPT-2 (width 768, 12 heads, 50257 tokens), or smaller ones where a pass would take half a minute: Debian's
torch multiplies matrices slowly, which flatters the ratio. TDBG_TORCH_PYTHON names a Python with a faster torch,
TDBG_BENCH_ROUNDS the number of pairs (default 31).
"""
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

PYTHON = os.environ.get("TDBG_TORCH_PYTHON", "/usr/bin/python3")
ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = int(os.environ.get("TDBG_BENCH_ROUNDS", "31"))
SIZES = ((768, 12, 50257, 128), (192, 3, 1024, 32))  # width, heads, vocabulary, tokens

if os.environ.get("TDBG_BENCH_HOOKS") != PYTHON:
    os.environ["TDBG_BENCH_HOOKS"] = PYTHON
    os.execv(PYTHON, [PYTHON, __file__])

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples")]
os.environ.setdefault("TDBG_LIBRARY", str(ROOT / os.environ.get("BUILD", "build") / "libtdbg.so"))
import gpt  # noqa: E402
import tdbg  # noqa: E402
import torch  # noqa: E402


def seconds(model, ids):
    start = time.perf_counter()
    model(ids)
    return time.perf_counter() - start


def sized():
    """A model that suits the speed of matrix products here, and its input."""
    a = torch.randn(128, 768)
    start = time.process_time()
    a @ torch.randn(768, 768)
    width, heads, vocabulary, tokens = SIZES[time.process_time() - start > 0.03]
    model = gpt.GPT(layers=12, width=width, heads=heads, vocabulary=vocabulary, length=tokens).eval()
    ids = torch.randint(0, vocabulary, (1, tokens))
    model(ids)
    return model, ids, width


def measure(model, ids, folder, **options):
    """Medians of a forward pass: without hooks, with hooks."""
    times = {False: [], True: []}
    with tdbg.record(model, f"{folder}/run", replace=True, **options) as run:
        hooks = [(m, dict(m._forward_hooks), dict(m._forward_pre_hooks)) for m in model.modules()]
        for _ in range(ROUNDS):
            for hooked in random.sample((False, True), 2):
                for module, after, before in hooks:
                    module._forward_hooks.clear()
                    module._forward_pre_hooks.clear()
                    module._forward_hooks.update(after if hooked else {})
                    module._forward_pre_hooks.update(before if hooked else {})
                times[hooked].append(seconds(model, ids))
                if hooked:
                    run.step()
    return statistics.median(times[False]), statistics.median(times[True])


def main():
    torch.manual_seed(0)
    random.seed(0)
    with tempfile.TemporaryDirectory(prefix="tdbg-bench-") as folder, torch.no_grad():
        model, ids, width = sized()
        for what, bar, options in (("statistics of all outputs", "<=1.05", {"stats_only": True}),
                                   ("scopes alone", "-", {"tensors": []})):
            plain, hooked = measure(model, ids, folder, **options)
            print(f"12-layer GPT forward, {what} / no hooks\t{hooked / plain:.3f}\t{bar}\t"
                  f"{hooked * 1e3:.1f} ms, without {plain * 1e3:.1f} ms; width {width}, torch {torch.__version__}")


if __name__ == "__main__":
    sys.exit(main())
