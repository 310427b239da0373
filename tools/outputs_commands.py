"""What tools/outputs.py runs on the command line: every command, over the corpus of outputs_inputs.py.

    cases(work)      work: a folder with the corpus; a list of Case

A case has a name ("diff/layout/merged", for --only), the words behind `tdbg`, and perhaps input and environment.
{out} in a word stands for the name of a file that the command writes: what it holds is part of the answer. Programs
that record or are watched (`program`) come before `tdbg` and are told which library to load.
"""
import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Case:
    name: str
    args: list
    stdin: str = None
    env: dict = dataclasses.field(default_factory=dict)
    program: list = None  # runs first, and must succeed


def folders(path):
    return sorted(p.name for p in path.iterdir() if p.is_dir())


def files(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def helps():
    yield Case("help/version", ["--version"])
    yield Case("help/all", ["--help"])
    yield Case("help/none", [])
    yield Case("help/wrong", ["frobnicate"])
    for command in commands():
        yield Case(f"help/{command}", [command, "--help"])
        yield Case(f"help/{command}-wrong-option", [command, "--frobnicate"])
        yield Case(f"help/{command}-nowhere", [command, "nowhere"])


def commands():
    """Those that the sources have."""
    return sorted(path.stem[4:] for path in (ROOT / "src" / "cli").glob("cmd_*.c"))


def listings(work):
    """ls, stats, check and show of every file of every format, good and bad."""
    for name in files(work / "seeds"):
        path = f"seeds/{name}"
        if name.startswith(("trace/", "memory_snapshot/")):
            continue
        yield Case(f"ls/{path}", ["ls", "-v", path])
        yield Case(f"stats/{path}", ["stats", "--json", path])
        if "bad" not in name:
            yield Case(f"ls/json/{path}", ["ls", "--json", path])
            yield Case(f"show/{path}", ["show", path])
            yield Case(f"check/{path}", ["check", "--as", "float16", path])
            yield Case(f"export/{path}", ["export", "safetensors", path, "{out}"])
    for path in ("demo/a", "demo/b", "demo/a.zip", "demo/a.tar.gz", "demo/nested.tar", "types/a", "layout/shards-columns/b",
                 "layout/experts/b", "names/gguf.safetensors", "run/good", "live/nan", "demo"):
        name = path.replace("/", "-")
        yield Case(f"ls/{name}", ["ls", path])
        yield Case(f"ls/json/{name}", ["ls", "--json", path])
        yield Case(f"stats/{name}", ["stats", path])
        yield Case(f"stats/json/{name}", ["stats", "--json", "--hist", "7", path])
        yield Case(f"check/{name}", ["check", path])
    yield Case("stats/narrow", ["stats", "demo/a"], env={"COLUMNS": "60"})
    yield Case("stats/hist", ["stats", "--hist", "12", "demo/a:1_query.npy"])
    yield Case("stats/slice", ["stats", "demo/a:1_query.npy[0, :, ::2]"])
    yield Case("ls/two", ["ls", "demo/a", "demo/b.zip"])


def values():
    """show, in every form, of parts of some tensors."""
    for name, tensor in {"whole": "demo/a:1_query.npy", "slice": "demo/a:1_query.npy[0, :4, ::8]", "last": "demo/b:2_key.safetensors[..., -1]", "element": "demo/a:1_query.npy[3, 2, 1]",
                         "reversed": "demo/a:1_query.npy[::-1, 0, 0]", "scalar": "demo/a:0_scaling.npy", "nan": "mistake/nan/b:1_query.npy[0]",
                         "integers": "mistake/integers/a:0_ids.npy", "bfloat16": "types/a:0_bfloat16", "complex": "types/a:0_complex64.npy",
                         "float8": "types/a:0_float8_e4m3fn", "shard": "layout/shards-columns/b:rank1/0_post_attn.npy", "zip": "demo/a.zip:1_query.npy[0]"}.items():
        yield Case(f"show/{name}", ["show", tensor])
        yield Case(f"show/json/{name}", ["show", "--json", tensor])
        yield Case(f"show/npy/{name}", ["show", tensor, "--npy", "{out}"])
        yield Case(f"show/csv/{name}", ["show", tensor, "--csv", "{out}"])
        yield Case(f"show/count/{name}", ["show", tensor, "--count", "5"])
    yield Case("show/all", ["show", "--all", "demo/a:0_query.npy[:2]"])
    for wrong in ("demo/a:nothing", "demo/a:1_query.npy[99]", "demo/a:1_query.npy[0,0,0,0]", "demo/a:1_query.npy[x]", "demo/a"):
        yield Case(f"show/wrong/{wrong.replace('/', '-')}", ["show", wrong])


def comparisons(work):
    for group in ("layout", "mistake", "zoo"):
        for name in folders(work / group) if (work / group).exists() else []:
            a, b = f"{group}/{name}/a", f"{group}/{name}/b"
            if not (work / a).exists():
                continue
            yield Case(f"diff/{group}/{name}", ["diff", a, b])
            yield Case(f"diff/json/{group}/{name}", ["diff", "--json", a, b])
            if group == "layout":
                yield Case(f"diff/turned/{name}", ["diff", "--json", b, a])
            if group != "zoo":
                yield Case(f"diff/csv/{group}/{name}", ["diff", "-q", a, b, "--csv", "{out}"])
    yield from reports("demo", "demo/a", "demo/b")
    yield from reports("sign", "mistake/sign/a", "mistake/sign/b")
    yield from reports("missing", "layout/missing/a", "layout/missing/b")
    yield from reports("types", "types/a", "types/b")
    yield from options()
    for a in ("hf", "gguf", "meta", "own"):
        for b in ("hf", "gguf", "meta", "own"):
            yield Case(f"diff/names/{a}-{b}", ["diff", "--json", f"names/{a}.safetensors", f"names/{b}.safetensors"])
    for archive in ("a.zip", "a.tar.gz", "nested.tar"):
        yield Case(f"diff/archive/{archive}", ["diff", "--json", f"demo/{archive}", "demo/b"])
    for bug in ("wrong", "nan", "right"):
        yield Case(f"diff/live/{bug}", ["diff", "live/right", f"live/{bug}"])
        yield Case(f"diff/live/json/{bug}", ["diff", "--json", "live/right", f"live/{bug}"])
    yield Case("diff/live/statistics-only", ["diff", "--json", "run/good", "run/slow"])


def reports(name, a, b):
    """A comparison in every form."""
    yield Case(f"diff/text/{name}", ["diff", a, b])
    yield Case(f"diff/verbose/{name}", ["diff", "-v", a, b], env={"COLUMNS": "100"})
    yield Case(f"diff/narrow/{name}", ["diff", a, b], env={"COLUMNS": "60"})
    yield Case(f"diff/html/{name}", ["diff", "-q", a, b, "--html", "{out}"])
    yield Case(f"diff/junit/{name}", ["diff", "-q", a, b, "--junit", "{out}"])
    yield Case(f"diff/csv/{name}", ["diff", "-q", a, b, "--csv", "{out}"])
    yield Case(f"diff/save-pairs/{name}", ["diff", "-q", a, b, "--save-pairs", "{out}"])
    for only in ("identical", "within", "diverged", "errors", "unmatched", "born"):
        yield Case(f"diff/only/{only}/{name}", ["diff", a, b, "--only", only])
    yield Case(f"diff/self/{name}", ["diff", a])
    yield Case(f"diff/self/json/{name}", ["diff", "--json", a])


def options():
    a, b = "mistake/noise/a", "mistake/noise/b"
    for words in (["--policy", "strict"], ["--policy", "noise"], ["--rtol", "0.01"], ["--atol", "0.01"], ["--rtol", "1e-9", "--atol", "1e-9"],
                  ["--reference", "mistake/reference"], ["--top", "9"], ["--match", "exact"], ["--match", "stage"], ["--match", "shape"],
                  ["--match", "fuzzy,exact"], ["--match", "regex:(.*)_key=>\\1_value"], ["--match", "nonsense"], ["--threshold", "0.9"],
                  ["--layout", "t h d -> h t d"], ["--layout", "x -> y"], ["--policy", "lenient"]):
        yield Case(f"diff/options/{' '.join(words).replace('/', '-')}", ["diff", "--json", a, b, *words])
    yield Case("diff/options/text-reference", ["diff", a, b, "--reference", "mistake/reference"])
    yield Case("diff/options/one-tensor", ["diff", "mistake/bias/a:1_query.npy", "mistake/bias/b:1_query.npy[:, :2]"])
    yield Case("diff/options/slices", ["diff", "--json", "mistake/bias/a:1_query.npy[:, 0]", "mistake/bias/b:1_query.npy[:, 0]"])
    yield Case("diff/options/pairs", ["diff", "--json", a, b, "--pairs", "pairs.json"])
    yield Case("diff/threads", ["diff", "--json", "demo/a", "demo/b"], env={"TDBG_THREADS": "1"})
    yield Case("diff/scalar", ["diff", "--json", "demo/a", "demo/b"], env={"TDBG_CPU": "scalar"})


def recorded(work):
    for name in [*folders(work / "run"), "ranks/rank-1"]:
        run = f"run/{name}"
        for command in ("check", "profile", "memory"):
            yield Case(f"{command}/{run}", [command, run])
            yield Case(f"{command}/json/{run}", [command, "--json", run])
        yield Case(f"export/tensorboard/{run}", ["export", "tensorboard", run, "{out}"])
    yield Case("check/list-rules", ["check", "--list-rules"])
    yield Case("check/set", ["check", "run/stuck", "--set", "dead-relu=0.8", "--set", "vanishing-gradient.steps=10"])
    yield Case("check/disable", ["check", "run/stuck", "--disable", "dead-relu", "--json"])
    yield Case("check/wrong", ["check", "run/stuck", "--set", "nonsense=1"])
    for words in (["--depth", "1"], ["--top", "2"], ["--sort", "self"], ["--sort", "calls"], ["--sort", "name"], ["--sort", "order"], ["--flat"],
                  ["--series", "--json"], ["--compare", "run/slow"], ["--compare", "run/slow", "--json"]):
        yield Case(f"profile/options/{' '.join(words).replace('/', '-')}", ["profile", "run/good", *words])
    for kind in ("perfetto", "flame", "collapsed"):
        yield Case(f"profile/{kind}", ["profile", "-q", "run/good", f"--{kind}", "{out}"])
    for name in files(work / "seeds" / "trace"):
        yield Case(f"profile/trace/{name}", ["profile", "--json", f"seeds/trace/{name}"])
        yield Case(f"profile/trace/text/{name}", ["profile", f"seeds/trace/{name}"])
    for name in files(work / "seeds" / "memory_snapshot"):
        yield Case(f"memory/snapshot/{name}", ["memory", "--json", f"seeds/memory_snapshot/{name}"])
    yield Case("memory/gpu", ["memory", "gpu.pickle", "--top", "3"])
    yield Case("memory/file", ["memory", "--json", "-o", "{out}", "gpu.pickle"])
    yield Case("memory/snapshots", ["memory", "run/good", "--snapshot", "peak", "--snapshot", "end"])
    yield Case("memory/snapshots/unknown", ["memory", "run/good", "--snapshot", "peak", "--snapshot", "never"])
    yield Case("memory/program", ["memory", "-q", "-o", "{out}", "--", "sh", "-c", "echo hello; exit 3"])


def exported():
    for name, path in {"demo": "demo/a", "types": "types/a", "slice": "demo/b:1_query.safetensors[0]", "shards": "layout/shards-columns/b"}.items():
        yield Case(f"export/safetensors/{name}", ["export", "safetensors", path, "{out}"])
        yield Case(f"export/json/{name}", ["export", "--json", "safetensors", path, "{out}"])
    yield Case("export/gguf", ["export", "safetensors", "seeds/gguf", "{out}"])
    yield Case("export/wrong", ["export", "nonsense", "demo/a", "{out}"])


def batches():
    for name in ("good", "mixed", "trouble", "wrong"):
        yield Case(f"batch/{name}", ["batch", f"batch/{name}.json"])
        yield Case(f"batch/json/{name}", ["batch", "--json", f"batch/{name}.json"])
        yield Case(f"batch/junit/{name}", ["batch", "-q", f"batch/{name}.json", "--junit", "{out}"])


SCRIPTS = {
    "look": "ls\nls *query*\ninspect 1_query.npy\nstats *_key.npy\nslice 1_query.npy[0, :2]\nhist 1_query.npy\nplot 1_query.npy[0]\nplot 1_query.npy[0, 0]\n",
    "two": "open demo/b\nls b:*\ndiff\ndiff a:1_query.npy b:1_query.safetensors\ninspect b:1_query.safetensors[0]\nclose a\nls\n",
    "errors": "frobnicate\ninspect nothing\nslice 1_query.npy[99]\nplot\nbreak x\nopen nowhere\n",
    "help": "help\nhelp diff\nhelp break\nhelp plot\nquit\n",
    "run": "open live/nan\nls\nstats *layers.1*\nseen\nwhere\nattach live/nan\ninfo\n",
}

def consoles():
    for name, script in SCRIPTS.items():
        yield Case(f"console/{name}", ["console", "-k", "demo/a"], stdin=script)
        yield Case(f"console/json/{name}", ["console", "-k", "--json", "demo/a"], stdin=script)
    yield Case("console/stops", ["console", "demo/a"], stdin="inspect nothing\nls\n")
    yield Case("console/commands-too", ["console", "-q", "demo/a", "--file", "console.txt"])


def live():
    """A run that is recorded by the side's own library; what it holds is looked at like any other."""
    model = ["/usr/bin/python3", str(ROOT / "tests" / "livemodel.py")]
    for name, bug in (("right", ""), ("wrong", "1"), ("nan", "nan")):
        yield Case(f"record/{name}", ["ls", "--json", "{out}"], program=[*model, "{out}", "5", bug])
        yield Case(f"record/stats/{name}", ["stats", "{out}"], program=[*model, "{out}", "5", bug])
        yield Case(f"record/check/{name}", ["check", "{out}"], program=[*model, "{out}", "5", bug])


def cases(work):
    (work / "pairs.json").write_text('{"version": 1, "pairs": [{"a": "0_query.npy", "b": "0_key.npy"}, {"a": "1_key.npy", "b": "1_query.npy"}]}')
    (work / "console.txt").write_text(SCRIPTS["look"])
    return [*helps(), *listings(work), *values(), *comparisons(work), *recorded(work), *exported(), *batches(), *consoles(), *live()]


def uncovered(all_cases):
    """Commands of the sources that no case runs; `serve` is what outputs_routes.py is for."""
    ran = {case.args[0] for case in all_cases if case.args and not case.name.startswith("help/")}
    return [f"tdbg {command}" for command in commands() if command not in ran | {"serve"}]
