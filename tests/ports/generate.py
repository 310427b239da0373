#!/usr/bin/env python3
"""Writes the cases: folders with `a` (transformers under hooks), `b` (our numpy port under other names) and the truth.

    generate.py OUT [--seed N] [--bugs N] [--clean N] [--arch GLOB] [--style GLOB] [--bug GLOB]

expect.json of a case:

    a, b      what to compare
    bug       kind of the planted mistake, or null; `layer`: where, null for all layers or outside of them
    pairs     {B name: [all names of A that hold this tensor, a tensor it is a part of, or its parts]}
    parts     {B name: [[names of the first part], …]}: a fused tensor of B against parts of A
    part_of   {B name: [which, of how many]}: a part against a fused tensor of A
    ghosts    names of B without any counterpart
    first     names of A and B at which the first divergence may be reported
    accept    kinds of diagnosis that name the mistake

How names, layouts, types, containers and mistakes are combined is drawn by the seed; nothing else is chance.
"""
import argparse
import fnmatch
import json
import pathlib
import random
import shutil
import sys

import numpy as np
import torch
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import archs  # noqa: E402
import bugs  # noqa: E402
import engine  # noqa: E402
import hooks  # noqa: E402
import styles  # noqa: E402
import truth  # noqa: E402

CONTAINERS = ("pt", "npz", "safetensors", "npy")
CLEAR = {False: 1e-3, True: 0.1}  # change that shows beyond doubt: in float32, where either side is bfloat16
FAINT_ON_PURPOSE = {"gelu_kind": 1e-5}  # of these a small change must be seen, in float32


class Side:
    """Side A: a model, its dumps in one way, its port, and what is what."""

    def __init__(self, arch, seed, way, low, batch, tokens):
        self.model = archs.load(arch, seed, low)
        self.inputs = archs.inputs(self.model, batch, tokens)
        self.port = archs.port(self.model, arch)
        self.stages = self.port.run(self.inputs.numpy())
        self.error = self.held()
        self.dump = hooks.dump(self.model, self.inputs, way)
        self.found = truth.counterparts(self.dump, self.stages, self.port)
        self.routed_alike = True
        if low:
            self.dump = hooks.dump(lowered(self.model), self.inputs, way)
            router = {key: self.dump[names[0]].float().numpy() for key, names in self.found.items() if key[0] == "router"}
            self.routed_alike = truth.same_routes(truth.routes(router, self.port), truth.routes(self.stages, self.port))

    def held(self):
        """Largest difference of the port's answer from the model's; the port does not count when it is more than 1e-4."""
        with torch.no_grad():
            out = self.model(self.inputs)
        theirs = (out.logits if "logits" in out else out.last_hidden_state).numpy()
        mine = next(self.stages[key] for key in reversed(list(self.stages)))
        error = float(np.abs(mine - theirs).max())
        assert mine.shape == theirs.shape and error <= truth.CLOSE, f"the port is {error} off"
        return error


def lowered(model):
    """The model in bfloat16; its tables of rotary frequencies stay as they are, as in models that are loaded."""
    tables = {name: buffer.clone() for name, buffer in model.named_buffers() if "inv_freq" in name}
    low = model.to(torch.bfloat16)
    for name, buffer in low.named_buffers():
        if name in tables:
            buffer.data = tables[name]
    return low


def permuted(port):
    """GGUF's rows of q and k: the halves of a head woven, so that the rotary embedding turns neighbours."""
    port = port.copy()
    for spec, w in zip(port.specs, port.weights):
        spec.rope_style = "interleaved"
        for name in (n + kind for n in "qk" for kind in (".w", ".b") if n + kind in w):
            x = w[name]
            halves = x.reshape(-1, 2, spec.head_dim // 2, *x.shape[1:])
            w[name] = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(x.shape)
    return port


def named_once(entries, repeated):
    """{name: (array, stages)}; a repeated name keeps the last, or is numbered."""
    out, times = {}, {}
    for name, value, stages in entries:
        times[name] = times.get(name, 0) + 1
        if repeated == "number" and times[name] > 1:
            name = f"{name}#{times[name]}"
        out.pop(name, None)
        out[name] = (value, stages)
    return out


def write(where, tensors, container):
    """Writes {name: torch tensor}; the path. numpy's formats have no bfloat16: it becomes float32."""
    numpys = {n: (t.float() if t.is_floating_point() else t).numpy() for n, t in tensors.items()}
    if container == "npy":
        for name, value in numpys.items():
            path = where / (name + ".npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, value)
        return where
    path = where.with_suffix("." + container)
    if container == "pt":
        torch.save(tensors, path)
    elif container == "npz":
        np.savez(path, **numpys)
    else:
        save_file({n: t.contiguous().clone() for n, t in tensors.items()}, str(path))
    return path


def stored(named, low, container):
    """B's arrays as torch tensors of the type in which they are written."""
    out = {n: torch.from_numpy(np.array(v, order="C")) for n, (v, _) in named.items()}
    if low and container in ("pt", "safetensors"):
        out = {n: t.to(torch.bfloat16) if t.is_floating_point() else t for n, t in out.items()}
    return out


def planted(side, plan):
    """(clean port, port with the plan's mistake) or None where it has no place."""
    port = permuted(side.port) if plan["permuted"] and side.port.specs[0].rope_style == "half" else side.port
    if not plan["bug"]:
        return port, port
    wrong = bugs.plant(port, plan["bug"], plan["layer"])
    return (port, wrong) if wrong else None


def dumps(side, plan, clean, wrong):
    """B's tensors under its names: (of the clean port in float32, with the mistake in float32, as shown), or None."""
    inputs = side.inputs.numpy()
    runs = [clean.run(inputs), wrong.run(inputs)]
    shown = wrong.run(inputs, True) if plan["low_b"] == "computed" else runs[1]
    if plan["low_b"] == "stored":
        shown = {k: engine.to_bf16(v) if v.dtype == np.float32 else v for k, v in shown.items()}
    if not truth.same_routes(truth.routes(shown, clean), truth.routes(runs[1], clean)) or not side.routed_alike:
        return None  # a tie that rounding breaks is no mistake, and differs all the same
    style = styles.STYLES[plan["style"]]
    return [named_once(style(styles.Source(run, clean), random.Random(plan["style seed"])), plan["repeated"])
            for run in (*runs, shown)]


def case(out, plan):
    """Writes one case; False when the style does not fit, or the mistake has no place or does not show."""
    side = Side(*(plan[k] for k in ("arch", "seed", "way", "low_a", "batch", "tokens")))
    ports = planted(side, plan)
    runs = ports and dumps(side, plan, *ports)
    if not runs or not runs[0]:
        return False
    clean, wrong, shown = runs
    pairs, parts, part_of = {}, {}, {}
    for name, (_, stages) in shown.items():
        names, pieces, which = truth.partners(stages, side.found)
        if names:
            pairs[name] = names
            parts.update({name: pieces} if pieces else {})
            part_of.update({name: which} if which else {})
    first = []
    if plan["bug"]:
        low = plan["low_a"] or bool(plan["low_b"])
        clear = CLEAR[low] if low else FAINT_ON_PURPOSE.get(plan["bug"], CLEAR[low])
        first = truth.first_names(pairs, clean, wrong, side.port, clear)
        if first is None:
            return False
    copies = {(v.size, v.tobytes()) for n, (v, _) in shown.items() if n in pairs}
    ghosts = [n for n, (v, _) in shown.items() if n not in pairs and (v.size, v.tobytes()) not in copies]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    a = write(out / "a", side.dump, plan["a"])
    b = write(out / "b", stored(shown, plan["low_b"], plan["b"]), plan["b"])
    expect = {"a": a.name, "b": b.name, **{k: plan[k] for k in ("arch", "style", "way", "bug", "layer")},
              "types": ["bf16" if plan[k] else "f32" for k in ("low_a", "low_b")], "batch": plan["batch"],
              "tokens": plan["tokens"], "permuted": plan["permuted"], "pairs": pairs, "parts": parts, "part_of": part_of,
              "ghosts": ghosts, "first": first + sorted({a for n in first for a in pairs[n]}),
              "accept": bugs.accepted(plan["bug"]) if plan["bug"] else []}
    (out / "expect.json").write_text(json.dumps(expect, indent=1))
    return True


def drawn(rng, seed, arch, style):
    low_a, low_b = rng.choice([(False, "")] * 5 + [(True, "computed")] * 2 + [(False, "computed"), (False, "stored"), (True, "")])
    return {"arch": arch, "style": style, "seed": seed * 100 + 7, "way": rng.choice(hooks.WAYS), "low_a": low_a,
            "low_b": low_b, "batch": rng.choice([1, 1, 1, 1, 2]), "tokens": rng.choice([21] * 6 + [16, 40, 64]),
            "a": rng.choice(CONTAINERS), "b": rng.choice(CONTAINERS), "repeated": rng.choice(["last", "number"]),
            "bug": None, "layer": None, "style seed": rng.randrange(1 << 30),
            "permuted": style == "llama.cpp" and arch in ("llama", "mistral", "granite") and rng.random() < 0.6}


class Deck:
    """All of `cards` in an order drawn by chance, again and again."""

    def __init__(self, rng, cards, glob):
        self.rng, self.cards, self.left = rng, fnmatch.filter(cards, glob), []

    def draw(self):
        self.left = self.left or self.rng.sample(self.cards, len(self.cards))
        return self.left.pop()


def build(out, seed, count, buggy, arch="*", style="*", bug="*"):
    """Writes `count` cases. Architectures, styles and mistakes come up in turn; a mistake waits for a port that can have it."""
    rng, made, ports = random.Random(f"{seed} {buggy}"), 0, {}
    kinds, models, names = Deck(rng, bugs.KINDS, bug), Deck(rng, archs.names(), arch), Deck(rng, list(styles.STYLES), style)
    kind = kinds.draw() if buggy else None
    tried = 0
    for _ in range(200 * count):
        if made == count:
            break
        plan = drawn(rng, seed, models.draw(), names.draw())
        plan["bug"] = kind
        plan["layer"] = rng.choice([None, None, 0, 1, 2]) if kind in bugs.LAYER_BUGS else None
        if plan["arch"] not in ports:
            ports[plan["arch"]] = archs.port(archs.load(plan["arch"], seed), plan["arch"])
        fits = not kind or not (plan["style"] == "opaque" and kind in bugs.ONLY_BY_NAME) and \
            bugs.plant(ports[plan["arch"]], kind, plan["layer"])
        words = [f"{'bug' if buggy else 'clean'}{made:03d}", plan["arch"], plan["style"], *([kind] if kind else [])]
        done = fits and case(out / "_".join(words).replace("/", "").replace(" ", "-"), plan)
        made, tried = made + bool(done), 0 if done else tried + 1
        if buggy and (done or tried == 100):
            kind, tried = kinds.draw(), 0
    return made


def main():
    p = argparse.ArgumentParser(description="writes the cases of the real-port suite")
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--bugs", type=int, default=66)
    p.add_argument("--clean", type=int, default=60)
    p.add_argument("--arch", default="*")
    p.add_argument("--style", default="*")
    p.add_argument("--bug", default="*")
    o = p.parse_args()
    torch.set_num_threads(1)
    for buggy, count in ((False, o.clean), (True, o.bugs)):
        print(build(o.out, o.seed, count, buggy, o.arch, o.style, o.bug), "with a mistake" if buggy else "clean")


if __name__ == "__main__":
    main()
