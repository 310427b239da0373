#!/usr/bin/env python3
"""What recording costs a PyTorch model: a 12-layer GPT-style model on the CPU, statistics of every module output.

A pass takes a third of a second, and on a shared machine the next one may take half as long again: whole passes cannot be
compared. So the parts of the model (its layers, and what is around them) alternate. In two passes each part runs once with
hooks and once without, half of them in each; the sums are compared, and the median of many such pairs is shown with how
sure it is (19 of 20 times: the notch of a box plot). Where that is too little to tell, no bar is shown. The two passes
are one step, the end of which counts for the side with hooks; what the recorder's own threads do meanwhile hits either
half, so their CPU time is added in full to that side too.

The model has the sizes of GPT-2 (width 768, 12 heads, 50257 tokens), or smaller ones where a pass would take half a minute:
Debian's torch multiplies matrices slowly, which flatters the ratio. A pass has 512 tokens. One of 128 is shown as well:
the calls of Python cost the same there, and are a larger share; what they come to with a single token is not what a bar is
for. TDBG_TORCH_PYTHON names a Python with a faster torch, TDBG_BENCH_ROUNDS the number of pairs (default 31; fewer, but
five, where they would take more than 40 seconds).
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
ROUNDS, FEWEST, SECONDS = int(os.environ.get("TDBG_BENCH_ROUNDS", "31")), 5, 40
MOST_DOUBT = 0.02
SIZES = ((768, 12, 50257, (512, 128)), (192, 3, 1024, (32,)))  # width, heads, vocabulary, tokens: the first has the bar

if os.environ.get("TDBG_BENCH_HOOKS") != PYTHON:
    os.environ["TDBG_BENCH_HOOKS"] = PYTHON
    os.execv(PYTHON, [PYTHON, __file__])

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples")]
os.environ.setdefault("TDBG_LIBRARY", str(ROOT / os.environ.get("BUILD", "build") / "libtdbg.so"))
import gpt  # noqa: E402
import tdbg  # noqa: E402
import torch  # noqa: E402


def sized():
    """A model that suits the speed of matrix products here, and its inputs."""
    a, b = torch.randn(128, 768), torch.randn(768, 768)
    a @ b  # the first product loads and starts what it is made with
    start = time.process_time()
    a @ b
    width, heads, vocabulary, lengths = SIZES[time.process_time() - start > 0.03]
    model = gpt.GPT(layers=12, width=width, heads=heads, vocabulary=vocabulary, length=max(lengths)).eval()
    return model, [torch.randint(0, vocabulary, (1, tokens)) for tokens in lengths], width


class Parts:
    """The layers of a model and, last, what is around them; a stopwatch on each, and a switch for the hooks of each."""

    def __init__(self, model):
        self.model, self.count = model, len(model.layers) + 1
        self.stamps = []
        for module in (*model.layers, model.ln):
            module.register_forward_pre_hook(lambda *_: self.stamps.append(time.perf_counter()))
        self.mine = {m: dict(m._forward_pre_hooks) for m in model.modules()}

    def adopt(self):
        """The hooks that are there beside the stopwatches, for switch()."""
        self.hooks = [(part, m, dict(m._forward_pre_hooks), dict(m._forward_hooks)) for part, m in self.modules()]

    def modules(self):
        layers = {m: i for i, layer in enumerate(self.model.layers) for m in layer.modules()}
        return [(layers.get(m, self.count - 1), m) for m in self.model.modules()]

    def switch(self, on):
        for part, module, before, after in self.hooks:
            for hooks, wanted in ((module._forward_pre_hooks, before if part in on else self.mine[module]),
                                  (module._forward_hooks, after if part in on else {})):
                hooks.clear()
                hooks.update(wanted)

    def seconds(self, ids):
        """How long each part took in a pass."""
        self.stamps.clear()
        start = time.perf_counter()
        self.model(ids)
        end = time.perf_counter()
        layers = [late - early for early, late in zip(self.stamps, self.stamps[1:])]
        return layers + [end - start - sum(layers)]


def threads():
    return set(os.listdir("/proc/self/task"))


def busy(tids):
    """Seconds that threads have had of a CPU."""
    return sum(int(pathlib.Path(f"/proc/self/task/{tid}/schedstat").read_text().split()[0]) for tid in tids) / 1e9


def measure(parts, ids, folder, **options):
    """Pairs of seconds: every part without hooks, every part with them; and seconds of the recorder's threads, a pass."""
    before, pairs = threads(), []
    with tdbg.record(parts.model, f"{folder}/run", replace=True, **options) as run:
        recorders = threads() - before
        parts.adopt()
        everything = range(parts.count)
        parts.switch(everything)
        parts.seconds(ids)
        run.step()
        used, end = busy(recorders), time.monotonic() + SECONDS
        while len(pairs) < ROUNDS and (len(pairs) < FEWEST or time.monotonic() < end):
            first = set(random.sample(everything, parts.count // 2))
            plain = hooked = 0.0
            for on in (first, set(everything) - first):
                parts.switch(on)
                taken = parts.seconds(ids)
                hooked += sum(taken[part] for part in on)
                plain += sum(taken[part] for part in everything if part not in on)
            start = time.perf_counter()
            run.step()
            pairs.append((plain, hooked + time.perf_counter() - start))
        used = (busy(recorders) - used) / len(pairs)
        parts.switch(everything)
    return pairs, used


def main():
    torch.manual_seed(0)
    random.seed(0)
    with tempfile.TemporaryDirectory(prefix="tdbg-bench-") as folder, torch.no_grad():
        model, inputs, width = sized()
        parts = Parts(model)
        for ids in inputs:
            model(ids)
            for what, bar, options in (("statistics of all outputs", "<=1.05" if ids is inputs[0] else "-", {"stats_only": True}),
                                       ("scopes alone", "-", {"tensors": []})):
                pairs, used = measure(parts, ids, folder, **options)
                low, ratio, high = statistics.quantiles([(hooked + used) / plain for plain, hooked in pairs], n=4)
                doubt = 1.57 * (high - low) / len(pairs) ** 0.5
                plain = statistics.median(plain for plain, _ in pairs)
                print(f"12-layer GPT forward, {ids.shape[1]} tokens, {what} / no hooks\t{ratio:.3f}\t"
                      f"{bar if doubt <= MOST_DOUBT else '-'}\t± {doubt:.3f} in {len(pairs)} pairs"
                      f"{'' if doubt <= MOST_DOUBT else ', too noisy to judge'}; {plain * 1e3:.0f} ms without, {used * 1e3:.1f} ms "
                      f"of other threads counted; width {width}, torch {torch.__version__}")


if __name__ == "__main__":
    sys.exit(main())
