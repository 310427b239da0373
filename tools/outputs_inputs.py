"""The corpus of tools/outputs.py: small inputs of every kind, made by the generators of the tests, seeds fixed.

    make(folder, build, zoo)     build: a folder with examples/tiny_transformer, or None; zoo: the bug zoo's folder or None

    demo/        two dumps of the tiny transformer, and the same packed: zip, tar.gz, tar in zip
    seeds/       good and bad files of every format (tests/fuzz/seeds.py)
    layout/      pairs of one model under two layouts: NAME/a and NAME/b
    mistake/     pairs with one planted mistake each; zoo/ those of the bug zoo, where there is one
    names/       one set of weights under the names of several families
    run/         recorded runs, finished and not, with findings, memory and spans (tests/runfiles.py)
    live/        runs recorded by the library with their values (tests/livemodel.py)
    trace/       traces and snapshots of the GPU's allocator are in seeds/trace and seeds/memory_snapshot
    batch/, console/   what these commands read

The same code makes the corpus for both sides, from the sources of this tree, whatever is compared.
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import warnings
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
for folder in ("tests", "tests/fuzz"):
    sys.path.insert(0, str(ROOT / folder))
import difftools  # noqa: E402
import memoryfiles  # noqa: E402
import runfiles  # noqa: E402
import seeds  # noqa: E402
import tensorfiles  # noqa: E402

MS = 1_000_000


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def pair(folder, a, b):
    for side, tensors in (("a", a), ("b", b)):
        difftools.dump(folder / side, tensors)


# --- pairs under two layouts ------------------------------------------------------------------------------------

def interleave(w, head):
    """Halves of each head of the rows as neighbours, as llama.cpp stores q and k."""
    return w.reshape(-1, 2, head // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def ranks(name, parts):
    return {f"rank{i}/{name}": part for i, part in enumerate(parts)}


def layouts(folder):
    layers = range(3)
    heads = {f"{n}_query": normal(12, 4, 16, seed=n) for n in layers}
    square = {f"{n}_query": normal(8, 8, 16, seed=n) for n in layers}
    flat = {f"{n}_post_attn": normal(12, 64, seed=n) for n in layers}
    weights = {f"layers.{n}.q.weight": normal(128, 24, seed=n) for n in layers}
    keys = {f"{n}_key_final": normal(12, 2, 16, seed=n) for n in layers}
    pair(folder / "same", heads, heads)
    pair(folder / "batch", flat, {k: x[None] for k, x in flat.items()})
    pair(folder / "heads-first", heads, {k: x.swapaxes(0, 1)[None] for k, x in heads.items()})
    pair(folder / "merged", heads, {k: x.reshape(12, -1) for k, x in heads.items()})
    pair(folder / "ambiguous", square, {k: x.swapaxes(0, 1) for k, x in square.items()})
    pair(folder / "ambiguous-in-one", square, {k: x.swapaxes(0, 1) if k[0] == "1" else x for k, x in square.items()})
    pair(folder / "transposed", weights, {k: x.T.copy() for k, x in weights.items()})
    pair(folder / "rotary", weights, {k: interleave(x, 32) for k, x in weights.items()})
    pair(folder / "rotary-in-one", weights, {k: interleave(x, 32) if ".1." in k else x for k, x in weights.items()})
    pair(folder / "repeated", keys, {k: x.repeat(2, axis=1) for k, x in keys.items()})
    pair(folder / "padded", flat, {k: np.concatenate([x, np.zeros((4, 64), np.float32)]) for k, x in flat.items()})
    pair(folder / "last-token", {f"lm_head.{n}": x for n, x in enumerate(flat.values())}, {f"lm_head.{n}": x[-1] for n, x in enumerate(flat.values())})
    pair(folder / "shards-columns", flat, {k2: v for k, x in flat.items() for k2, v in ranks(k, np.split(x, 2, axis=1)).items()})
    pair(folder / "shards-sum", flat, {k2: v for k, x in flat.items() for k2, v in ranks(k, [x - normal(12, 64, seed=9), normal(12, 64, seed=9)]).items()})
    pair(folder / "shards-copies", flat, {k2: v for k, x in flat.items() for k2, v in ranks(k, [x, x]).items()})
    fused(folder)
    experts = {n: [normal(16, 24, seed=10 * n + e) for e in range(4)] for n in layers}
    pair(folder / "experts", {f"layers.{n}.mlp.experts.{e}.w1.weight": x for n, all in experts.items() for e, x in enumerate(all)},
         {f"layers.{n}.mlp.experts.w1.weight": np.stack(all) for n, all in experts.items()})
    cut = dict(heads)
    del cut["1_query"]
    pair(folder / "missing", heads, cut | {"1_extra": normal(3), "2_query": heads["2_query"][:, :, :15]})


def fused(folder):
    """q, k and v in one: side by side, by head, and by group of heads."""
    parts = {n: [normal(rows, 24, seed=100 + 10 * n + i) for i, rows in enumerate((64, 32, 32))] for n in range(2)}
    apart = {f"model.layers.{n}.self_attn.{c}_proj.weight": w for n, three in parts.items() for c, w in zip("qkv", three)}
    name = "model.layers.{}.self_attn.qkv_proj.weight"
    pair(folder / "fused-block", apart, {name.format(n): np.concatenate(three) for n, three in parts.items()})
    grouped = {name.format(n): np.concatenate([q.reshape(2, 2, 16, 24), k.reshape(2, 1, 16, 24), v.reshape(2, 1, 16, 24)], 1).reshape(128, 24)
               for n, (q, k, v) in parts.items()}
    pair(folder / "fused-group", apart | {"0_query": normal(5, 4, 16)}, grouped | {"0_query": normal(5, 4, 16)})


# --- pairs with a mistake ----------------------------------------------------------------------------------------

def rotated(x):
    angle = np.arange(x.shape[0])[:, None, None] * 10000.0 ** (-np.arange(8) / 8)
    a, b = x[..., :8], x[..., 8:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1).astype(np.float32)


MISTAKES = {
    "sign": lambda x: -x,
    "scale": lambda x: x / 4,
    "bias": lambda x: x + normal(16, seed=5),
    "offset": lambda x: x + np.float32(0.5),
    "channels": lambda x: x * (1 + normal(16, seed=5)),
    "clamp": lambda x: x.clip(-1, 1),
    "precision": lambda x: x.astype(np.float16).astype(np.float32),
    "noise": lambda x: x * (1 + np.float32(1e-3) * normal(*x.shape, seed=6)),
    "nan": lambda x: np.where(np.arange(16) == 3, np.float32(np.nan), x),
    "inf": lambda x: np.where(x > 2, np.float32(np.inf), x),
    "zeroed": lambda x: np.where(np.arange(12)[:, None, None] > 9, np.float32(0), x),
    "partial": lambda x: np.where(np.arange(12)[:, None, None] == 5, normal(*x.shape, seed=7), x),
    "shift": lambda x: np.roll(x, 1, 0),
    "permutation": lambda x: x[:, [2, 0, 3, 1]],
    "transpose": lambda x: x.swapaxes(0, 1).reshape(x.shape),
    "rope": rotated,
    "interleaved": lambda x: x.reshape(*x.shape[:2], 2, 8).swapaxes(2, 3).reshape(x.shape),
    "unknown": lambda x: normal(*x.shape, seed=8),
    "outlier": lambda x: x + (np.arange(x.size).reshape(x.shape) == 77).astype(np.float32),
}


def mistakes(folder):
    right = {f"{n}_{stage}": normal(12, 4, 16, seed=n * 10 + i) for n in range(3) for i, stage in enumerate(("query", "key", "value"))}
    rounding = {k: x * (1 + np.float32(1e-7) * normal(*x.shape, seed=3)) for k, x in right.items()}
    for name, mistake in MISTAKES.items():
        pair(folder / name, right, rounding | {"1_query": mistake(rounding["1_query"])})
    pair(folder / "swap", right, rounding | {"1_key": rounding["1_value"]})
    pair(folder / "stale", right, rounding | {"2_key": rounding["1_key"]})
    pair(folder / "integers", {"0_ids": np.arange(40), "0_scale": np.float32(0.25)}, {"0_ids": np.arange(40) + (np.arange(40) == 7), "0_scale": np.float32(0.5)})
    scores = np.where(np.tril(np.ones((12, 12), bool)), normal(12, 12), np.float32(-1e9))
    pair(folder / "mask", {"0_scores": scores}, {"0_scores": np.where(scores < -1e8, np.float32(-3.4e38), scores * np.float32(1.5))})
    exact = {k: x.astype(np.float64) for k, x in right.items()}
    difftools.dump(folder / "reference", {k: x + 1e-9 for k, x in exact.items()})


def types(folder):
    """A tensor of every type, against the same values in float32."""
    values = normal(6, 8, seed=2) * 20
    for dtype in difftools.TYPES:
        difftools.Typed(dtype, values.astype(np.complex64) if dtype.startswith("complex") else abs(values) if dtype[0] in "ub" else values).save(folder / "a", f"0_{dtype}")
        difftools.Typed("float32", values).save(folder / "b", f"0_{dtype}")


def names(folder):
    """Weights of one small model under the names of several families; biases of one shape too."""
    folder.mkdir()
    schemes = {
        "hf": ("model.layers.{}.", {"q": "self_attn.q_proj.weight", "k": "self_attn.k_proj.weight", "o": "self_attn.o_proj.weight",
                                    "n": "input_layernorm.weight", "u": "mlp.up_proj.weight"}, "model.embed_tokens.weight"),
        "gguf": ("blk.{}.", {"q": "attn_q.weight", "k": "attn_k.weight", "o": "attn_output.weight", "n": "attn_norm.weight",
                             "u": "ffn_up.weight"}, "token_embd.weight"),
        "meta": ("layers.{}.", {"q": "attention.wq.weight", "k": "attention.wk.weight", "o": "attention.wo.weight",
                                "n": "attention_norm.weight", "u": "feed_forward.w3.weight"}, "tok_embeddings.weight"),
        "own": ("block{}/", {"q": "Wq", "k": "Wk", "o": "Wout", "n": "gamma", "u": "W_in"}, "table"),
    }
    shapes = {"q": (32, 32), "k": (16, 32), "o": (32, 32), "n": (32,), "u": (48, 32)}
    for family, (prefix, parts, embedding) in schemes.items():
        tensors = {prefix.format(n) + parts[p]: normal(*shape, seed=n * 7 + ord(p)) for n in range(3) for p, shape in shapes.items()}
        (folder / f"{family}.safetensors").write_bytes(tensorfiles.safetensors(tensors | {embedding: normal(50, 32)}))


# --- runs ----------------------------------------------------------------------------------------------------------

class Run(runfiles.Run):
    """One whose clock goes on by a millisecond at each look."""

    def __init__(self, folder, **facts):
        self.ticks = 0
        super().__init__(folder, started=1_700_000_000, program="train.py", host="here", **facts)

    def now(self):
        self.ticks += MS
        return self.ticks


def healthy(run, steps, slow=1, nan=None):
    random = np.random.default_rng(7)
    now = 0
    for step in range(steps):
        begin = now
        spans = []
        for i in range(3):
            length = (5 + i + step % 3) * MS * (slow if i == 1 else 1)
            spans.append((f"model/layers.{i}", now, now + length, 0, 2e9, 1e8, 128))
            x = random.standard_normal((8, 16)).astype(np.float32)
            if nan == step and i == 1:
                x[0, 0] = np.nan
            run.tensor(f"layers.{i}.output", x, kind=runfiles.SKETCH)
            run.tensor(f"layers.{i}.weight.grad", x * np.float32(1e-3))
            run.blocks([(f"model/layers.{i}", now, 0x10000 * (step * 3 + i + 1), 4000), (f"model/layers.{i}", now + MS, 0x10000 * (step * 3 + i + 1), 4000 if i == 2 else 0)])
            now += length
        run.spans([*spans, ("model", begin, now)])
        run.scalar("loss", step, 3 * 0.9**step)
        run.scalar("lr", step, 1e-3)
        now += MS
        run.step(begin_ns=begin, end_ns=now, rss=(64 + step) << 20)
    run.note("capture", "*=stats")
    run.snapshot("late")


def runs(folder):
    for name, steps, options in (("good", 12, {}), ("slow", 12, {"slow": 3}), ("nan", 8, {"nan": 4})):
        run = Run(folder / name)
        healthy(run, steps, **options)
        run.close()
    for rank in range(2):
        run = Run(folder / "ranks" / f"rank-{rank}", rank=rank, world=2)
        healthy(run, 5, slow=1 + rank)
        run.close()
    broken = Run(folder / "broken", pid=2**22 + 1)
    healthy(broken, 3)
    broken.close(ended=False)
    stuck = Run(folder / "stuck")
    for step in range(60):
        stuck.tensor("relu.output", np.zeros((8, 16), np.float32))
        stuck.tensor("fc.weight.grad", normal(8, 16, seed=step) * np.float32(10.0 ** min(step, 30)))
        stuck.scalar("loss", step, 2.5)
        stuck.step(begin_ns=step * MS, end_ns=(step + 1) * MS)
    stuck.close()


def live(folder, build):
    """Runs recorded by the library, values and all."""
    folder.mkdir()
    for name, bug in (("right", ""), ("wrong", "1"), ("nan", "nan")):
        subprocess.run([sys.executable, ROOT / "tests" / "livemodel.py", folder / name, "4", bug], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "TDBG_LIBRARY": str(build / "libtdbg.so")})


# --- all of it -------------------------------------------------------------------------------------------------------

def packed(folder):
    """demo/a in archives; the times in them are those of no clock."""
    def still(member):
        member.mtime = 0
        return member

    for side in "ab":
        with zipfile.ZipFile(folder / f"{side}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted((folder / side).iterdir()):
                archive.writestr(zipfile.ZipInfo(file.name), file.read_bytes())
        with tarfile.open(folder / f"{side}.tar.gz", "w:gz") as archive:
            archive.add(folder / side, side, filter=still)
    with tarfile.open(folder / "nested.tar", "w") as archive:
        archive.add(folder / "a.zip", "inner/a.zip", filter=still)


def batches(folder):
    folder.mkdir()
    where = os.path.relpath(folder.parent, folder)
    some = [{"name": name, "a": f"{where}/mistake/{name}/a", "b": f"{where}/mistake/{name}/b"} for name in ("sign", "noise", "nan")]
    good = [{"name": "same", "a": f"{where}/layout/same/a", "b": f"{where}/layout/same/b"},
            {"name": "expected", "a": f"{where}/mistake/scale/a", "b": f"{where}/mistake/scale/b", "expect": "diverged"}]
    strict = {"name": "tolerant", "a": f"{where}/mistake/noise/a", "b": f"{where}/mistake/noise/b", "rtol": 1, "atol": 1}
    for name, comparisons in {"good": good, "mixed": good + some, "trouble": [*good, strict, {"name": "gone", "a": "nowhere", "b": "nowhere"}]}.items():
        (folder / f"{name}.json").write_text(json.dumps({"version": 1, "defaults": {"policy": "noise"}, "comparisons": comparisons}))
    (folder / "wrong.json").write_text('{"version": 1, "comparisons": [{"a": 1}]}')


def bug_zoo(folder, source):
    """A case of every bug, and the clean ones."""
    spec = importlib.util.spec_from_file_location("zoo", source / "zoo.py")
    zoo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(zoo)
    zoo.torch.set_num_threads(1)
    layouts = list(zoo.LAYOUTS)
    for i, (name, bug) in enumerate([("clean", None)] * 4 + list(zoo.BUGS.items())):
        zoo.case(str(folder), i, name, 5000 + i, bug, ("float32", "bfloat16")[i % 2], layouts[i % len(layouts)])


def seed_files(folder):
    for target, writers in seeds.WRITERS.items():
        if target in ("stretch", "form", "match", "pickle"):  # inputs of a function, no files of a user
            continue
        (folder / target).mkdir(parents=True)
        for writer in writers:
            with warnings.catch_warnings():  # torch's, of what it calls beta
                warnings.simplefilter("ignore")
                writer(folder / target)


def make(folder, build, zoo):
    folder.mkdir(parents=True)
    if build:
        subprocess.run([build / "examples" / "tiny_transformer", folder / "demo"], check=True, stdout=subprocess.DEVNULL)
        packed(folder / "demo")
        live(folder / "live", build)
    layouts(folder / "layout")
    mistakes(folder / "mistake")
    types(folder / "types")
    names(folder / "names")
    runs(folder / "run")
    batches(folder / "batch")
    seed_files(folder / "seeds")
    memoryfiles.save(folder / "gpu.pickle", gpu())
    if zoo:
        bug_zoo(folder / "zoo", zoo)


def gpu():
    """Three layers that take and give back, and a cache that only grows."""
    device = memoryfiles.Device()
    for step in range(20):
        held = [device.alloc((i + 1) << 18, memoryfiles.stack(f"layer_{i}", "train")) for i in range(3)]
        device.alloc(1 << 16, memoryfiles.stack("cache", "train"))
        for block in held:
            device.free(block)
    return device
