#!/usr/bin/env python3
"""Writes the cases: folders with `a` (transformers under hooks), `b` (our numpy port under other names) and the truth.

    generate.py OUT [--seed N] [--bugs N] [--clean N] [--arch GLOB] [--style GLOB]

expect.json of a case:

    a, b     what to compare
    bug      kind of the planted mistake, or null; `layer`: where, null for all layers or outside of them
    pairs    {B name: [all names of A that hold this tensor, or a tensor it is a part of, or its parts]}
    parts    {B name: [[names of the first part], …]} for a fused tensor of B against parts of A
    part_of  {B name: [which, of how many]} for a part against a fused tensor of A
    ghosts   names of B without any counterpart
    first    names of A and B at which the first divergence may be reported
    accept   kinds of diagnosis that name the mistake

Truth comes from values: the clean port in float32 is held to 1e-4 of the model's logits, and a tensor of A is the
counterpart of every stage of the port that it equals to 1e-4, whatever its name. So all names of one tensor are found.
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
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import archs  # noqa: E402
import bugs  # noqa: E402
import hooks  # noqa: E402
import styles  # noqa: E402

CLOSE = 1e-4
CONTAINERS = ("pt", "npz", "safetensors", "npy")
FUSED = {"q": "qkv", "k": "qkv", "v": "qkv", "gate": "gate_up", "up": "gate_up"}
# Depth of a stage within its layer; what has the same depth does not depend on one another.
DEPTH = {name: i for i, names in enumerate(
    ["embed", "embed_scaled position", "stream0", "stream_in", "norm1_hat", "norm1", "q k v", "q_normed k_normed", "q_rope k_rope",
     "scores_raw", "scores", "probs", "context", "o", "attn_post_hat", "attn_post", "stream_mid", "sum1_hat", "sum1", "norm2_hat",
     "norm2", "router", "router_weights", "gate up", "act", "product", "down", "mlp_post_hat", "mlp_post", "stream_out",
     "sum2_hat", "sum2", "final_norm_hat", "final_norm", "head", "logits"]) for name in names.split()}
MLP_BRANCH = {"norm2_hat", "norm2", "gate", "up", "act", "product", "down"}
MAPS = {"scores_raw", "scores", "probs"}
SHARED = {"stream_in", "stream_out"}


def relative(a, b):
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def with_fused(stages, port):
    """The stages, and the fused tensors as transformers lays them out."""
    out = dict(stages)
    for layer in range(len(port.specs)):
        parts = [stages[s, layer] for s in "qkv"]
        if port.qkv == "blocks":
            out["qkv", layer] = np.concatenate([p.reshape(*p.shape[:2], -1) for p in parts], -1)
        elif port.qkv == "by head":
            out["qkv", layer] = np.concatenate(parts, -1)
        if port.gate_up:
            out["gate_up", layer] = np.concatenate([stages["gate", layer], stages["up", layer]], -1)
    return out


def counterparts(dump, stages, port):
    """{(stage, layer): [names of A]} by value."""
    by_size, found = {}, {}
    for key, value in with_fused(stages, port).items():
        forms = [value.ravel()] + ([value.transpose(0, 2, 1, 3).ravel()] if value.ndim == 4 else [])
        by_size.setdefault(value.size, []).extend((key, form) for form in forms)
    for name, tensor in dump.items():
        if not tensor.is_floating_point():
            continue
        flat = tensor.float().numpy().ravel()
        for key, form in by_size.get(flat.size, []):
            if np.abs(flat - form).max() <= CLOSE * max(1.0, np.abs(form).max()) and name not in found.get(key, []):
                found.setdefault(key, []).append(name)
    return found


def named_once(entries, repeated):
    """Entries of a style by name; a repeated name keeps the last, or is numbered."""
    out, times = {}, {}
    for name, value, stages in entries:
        times[name] = times.get(name, 0) + 1
        if repeated == "number" and times[name] > 1:
            name = f"{name}#{times[name]}"
        out.pop(name, None)
        out[name] = (value, stages)
    return out


def write(where, tensors, container):
    """`tensors`: {name: torch tensor}; gives the path that was written."""
    if container == "npy":
        for name, t in tensors.items():
            path = where / (name + ".npy")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, t.float().numpy() if t.is_floating_point() else t.numpy())
        return where
    path = where.with_suffix("." + container)
    if container == "pt":
        torch.save(tensors, path)
    elif container == "npz":
        np.savez(path, **{n: t.float().numpy() if t.is_floating_point() else t.numpy() for n, t in tensors.items()})
    else:
        from safetensors.torch import save_file
        save_file({n: t.contiguous().clone() for n, t in tensors.items()}, str(path))
    return path


def place(stage, layer, layers):
    if layer is not None:
        return layer, DEPTH[stage]
    return (-1 if DEPTH[stage] <= DEPTH["stream0"] else layers), DEPTH[stage]


def earlier(x, y, port):
    """Whether y is computed from what comes behind x (both (stage, layer))."""
    (lx, dx), (ly, dy) = (place(*z, len(port.specs)) for z in (x, y))
    if lx != ly:
        return lx < ly
    if port.specs[0].parallel and not {x[0], y[0]} & (SHARED | {"norm1", "norm1_hat"}):
        if (x[0] in MLP_BRANCH) != (y[0] in MLP_BRANCH):
            return False
    return dx < dy


def first_names(named, truth, clean, wrong, port, clear):
    """Names at which the mistake first shows among the paired tensors. A faint beginning may be passed over."""
    shows = {}  # B name -> effect
    for name, (_, stages) in named.items():
        if truth.get(name):
            effect = max(relative(wrong[s], clean[s]) if wrong[s].shape == clean[s].shape else 1 for s in stages)
            if effect > 1e-6:
                shows[name] = effect
    keys = {n: named[n][1][0] for n in shows}
    strong = {n for n, e in shows.items() if e > clear}
    if not strong:
        return None
    def minimal(names):
        return {n for n in names if not any(earlier(keys[m], keys[n], port) for m in names)}
    maps = {n for n in strong if keys[n][0] in MAPS}  # transformers gives them with the attention's output, later
    firm = minimal(strong) | minimal(strong - maps)
    faint = {n for n in shows if n not in strong and any(earlier(keys[n], keys[m], port) for m in firm)}
    return sorted(firm | faint)


def parts_of(stages, found):
    """(all names of A, [[names] of each part] or None, [which, of how many] or None) for a tensor of B."""
    stage, layer = stages[0]
    whole = found.get((FUSED.get(stage), layer), [])
    if len(stages) > 1:
        parts = [found.get(s, []) for s in stages]
        if whole or not all(parts):
            return whole, None, None
        return sum(parts, []), parts, None
    names = found.get((stage, layer), [])
    order = [s for s, f in FUSED.items() if f == FUSED.get(stage)]
    return names + whole, None, [order.index(stage), len(order)] if whole and not names else None


class Side:
    """A model, its port, and the truth about names for one way of dumping; kept, as many cases share it."""

    def __init__(self, arch, seed, way, low_a, batch=1):
        self.model = archs.load(arch, seed, low_a)
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(3, archs.VOCAB, (batch, 21), generator=generator)
        self.port = archs.port(self.model, arch)
        self.stages = self.port.run(self.tokens.numpy())
        exact = hooks.dump(self.model, self.tokens, way)
        with torch.no_grad():
            logits = self.model(self.tokens).logits.numpy()
        mine = self.stages.get(("logits", None), self.stages.get(("head", None)))
        error = np.abs(mine - logits).max()
        assert error <= CLOSE, f"{arch}: the port is {error} off"
        self.found = counterparts(exact, self.stages, self.port)
        self.dump = exact
        if low_a:
            tables = {n: b.clone() for n, b in self.model.named_buffers()}
            low = self.model.to(torch.bfloat16)
            for name, buffer in low.named_buffers():
                if "inv_freq" in name:
                    buffer.data = tables[name]
            self.dump = hooks.dump(low, self.tokens, way)


def permuted(port):
    """GGUF's rows of q and k: halves of a head woven, so that the rotary embedding turns neighbours."""
    port = port.copy()
    for spec, w in zip(port.specs, port.weights):
        spec.rope_style = "interleaved"
        for name in ("q", "k"):
            for kind in (".w", ".b"):
                if name + kind in w:
                    x = w[name + kind]
                    halves = x.reshape(-1, 2, spec.head_dim // 2, *x.shape[1:])
                    w[name + kind] = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(x.shape)
    return port


def case(out, plan, sides):
    """Writes one case; False when the bug has no place in it or does not show."""
    key = (plan["arch"], plan["seed"], plan["way"], plan["low_a"], plan["batch"])
    if key not in sides:
        sides[key] = Side(*key)
    side = sides[key]
    port = permuted(side.port) if plan["permuted"] else side.port
    clean, tokens = port.run(side.tokens.numpy()), side.tokens.numpy()
    wrong, layer = clean, None
    if plan["bug"]:
        layer = plan["layer"]
        mistaken = bugs.plant(port, plan["bug"], layer)
        if mistaken is None:
            return False
        wrong = mistaken.run(tokens)
    else:
        mistaken = port
    shown = mistaken.run(tokens, True) if plan["low_b"] else wrong
    named = named_once(styles.STYLES[plan["style"]](styles.Source(shown, mistaken)), plan["repeated"])
    if not named:
        return False
    pairs, parts, part_of = {}, {}, {}
    for name, (_, stages) in named.items():
        names, pieces, which = parts_of(stages, side.found)
        if names:
            pairs[name] = names
            parts.update({name: pieces} if pieces else {})
            part_of.update({name: which} if which else {})
    first = []
    if plan["bug"]:
        low = plan["low_a"] or plan["low_b"]
        first = first_names(named, pairs, clean, wrong, port, 0.1 if low else 1e-3)
        if first is None:
            return False
    ghosts = [n for n in named if n not in pairs and not any(
        m in pairs and named[n][0].size == named[m][0].size and np.array_equal(named[n][0].ravel(), named[m][0].ravel())
        for m in named)]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    mine = {n: torch.from_numpy(np.array(v, order="C")) for n, (v, _) in named.items()}
    if plan["low_b"] and plan["b"] in ("pt", "safetensors"):
        mine = {n: t.to(torch.bfloat16) for n, t in mine.items()}
    a, b = write(out / "a", side.dump, plan["a"]), write(out / "b", mine, plan["b"])
    expect = {"a": a.name, "b": b.name, **{k: plan[k] for k in ("arch", "style", "way", "bug")},
              "layer": layer, "types": ["bf16" if plan[k] else "f32" for k in ("low_a", "low_b")],
              "permuted": plan["permuted"], "pairs": pairs, "parts": parts, "part_of": part_of, "ghosts": ghosts,
              "first": first + sorted({a for n in first for a in pairs[n]}),
              "accept": bugs.accepted(plan["bug"]) if plan["bug"] else []}
    (out / "expect.json").write_text(json.dumps(expect, indent=1))
    return True


def drawn(rng, seed, arch, style):
    low_a, low_b = rng.choice([(False, False)] * 4 + [(True, True), (False, True), (True, False), (False, True)])
    return {"arch": arch, "style": style, "seed": seed * 100 + 7, "way": rng.choice(hooks.WAYS),
            "low_a": low_a, "low_b": low_b, "batch": 1, "a": rng.choice(CONTAINERS), "b": rng.choice(CONTAINERS),
            "repeated": rng.choice(["last", "number"]), "bug": None, "layer": None,
            "permuted": style == "llama.cpp" and arch in ("llama", "mistral") and rng.random() < 0.5}


def build(out, seed, n_bugs, n_clean, arch="*", style="*"):
    rng, sides = random.Random(seed), {}
    combinations = [(a, s) for a in archs.ARCHS for s in styles.STYLES
                    if fnmatch.fnmatch(a, arch) and fnmatch.fnmatch(s, style)]
    kinds = [*bugs.LAYER_BUGS, *bugs.TOP_BUGS]
    for count, buggy in ((n_clean, False), (n_bugs, True)):
        made, tries, order, todo = 0, 0, [], []
        while made < count and tries < 40 * count:
            tries += 1
            if not order:
                order = rng.sample(combinations, len(combinations))
            plan = drawn(rng, seed, *order.pop())
            if buggy:
                todo = todo or rng.sample(kinds, len(kinds))
                plan["bug"] = todo.pop()
                plan["layer"] = rng.choice([None, None, 0, 1, 2])
                plan["layer"] = None if plan["bug"] in bugs.TOP_BUGS else plan["layer"]
            name = f"{'bug' if buggy else 'clean'}{made:03d}_{plan['arch']}_{plan['style']}" + \
                (f"_{plan['bug']}" if buggy else "")
            made += case(out / name, plan, sides)
    return made


def main():
    p = argparse.ArgumentParser(description="writes the cases of the real-port suite")
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--bugs", type=int, default=60)
    p.add_argument("--clean", type=int, default=60)
    p.add_argument("--arch", default="*")
    p.add_argument("--style", default="*")
    o = p.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    build(o.out, o.seed, o.bugs, o.clean, o.arch, o.style)


if __name__ == "__main__":
    main()
