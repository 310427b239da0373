"""tdbg.diff and tdbg.assert_close: `tdbg diff` as a call.

Both take paths (files, folders, archives, recorded runs, PATH:NAME[slice]) or values in memory: arrays, tensors,
dicts of them. The library compares; what is here hands over and says what came out.
"""
import contextlib
import ctypes
import json
import pathlib
import tempfile

from ._library import DiffOptions, ErrorInfo, check, decode, encode, library
from .values import is_path, write

IN_MEMORY = "(in memory)"
LISTED = 10  # of the other pairs that diverge, in a message


def diff(a, b, *, match=None, threshold=0.0, pairs=None, policy=None, rtol=None, atol=None, reference=None,
         layout=None, top=5, names=None, coverage=None):
    """Compares; the document that `tdbg diff --json` prints, as a dict.

    match       how tensors are paired: "auto", "stage", "value", "exact", "fuzzy", "fused", "shape",
                "regex:FROM=>TO", "program:COMMAND", or a chain with commas; threshold is the similarity that fuzzy names need
    pairs       a JSON file of pairs by hand
    policy      "noise" (the default: what rounding explains is no divergence) or "strict" (a tolerance per type)
    rtol, atol  a tolerance for every element, instead of a policy
    reference   a third, more precise input, instead of both
    layout      B's axes by hand: "b h t d -> t h d"
    top         worst elements to list of each diverged pair
    names       a file that says what your engine calls its tensors: lines of PATTERN = STAGE
    coverage    share of the side with fewer tensors that needs a partner before anything is said (0.5)
    """
    return compared(a, b, reference, match=encode(match), threshold=threshold, pairs=encode(pairs),
                    policy=encode(policy), rtol=tolerance(rtol), atol=tolerance(atol), layout=encode(layout),
                    top=top or -1, names=encode(names), coverage=tolerance(coverage))[0]


def assert_close(a, b, *, unmatched=False, **options):
    """Raises AssertionError unless `tdbg diff` finds that they agree; says where they part, and why.

    unmatched   whether tensors, or rows of a longer one, may be on one side only
    options     those of tdbg.diff; without any, rounding that the types and the depth explain is no difference.
                rtol=0, atol=0 asks for the same values, policy="strict" for the tolerances of torch.testing.

    As in all of tdbg, shapes may differ as long as the elements line up: transposed axes, a leading 1, heads apart.
    """
    __tracebackhide__ = True  # pytest shows the test, not this
    top = options.pop("top", 5)
    reference = options.pop("reference", None)
    unknown = set(options) - {"match", "threshold", "pairs", "policy", "rtol", "atol", "layout", "names", "coverage"}
    if unknown:
        raise TypeError(f"assert_close() has no option {', '.join(sorted(unknown))}")
    given = {name: tolerance(value) if name in ("rtol", "atol", "coverage") else value if name == "threshold" else encode(value)
             for name, value in options.items()}
    document, words = compared(a, b, reference, top=top or -1, **given)
    message = complaint(document, words, unmatched)
    if message:
        raise AssertionError(message)


def tolerance(value):
    return None if value is None else ctypes.pointer(ctypes.c_double(value))


def compared(a, b, reference, **options):
    """(document, words)"""
    if a is None or b is None:
        raise TypeError("a and b are paths, arrays, tensors, numbers, or dicts and lists of these, not None")
    with contextlib.ExitStack() as stack:
        path_a, path_b, path_r = (stack.enter_context(on_disk(value, name))
                                  for value, name in ((a, "a"), (b, "b"), (reference, "reference")))
        document, words = run(path_a, path_b, DiffOptions(reference=path_r, **options))
    for side, value in (("a", a), ("b", b)):
        if not is_path(value):
            document[side]["path"] = IN_MEMORY
    if reference is not None and not is_path(reference):
        document["policy"]["reference"] = IN_MEMORY
    return document, words


@contextlib.contextmanager
def on_disk(value, name):
    """The path of `value`, which is in a file for the time being unless it is a path already."""
    if value is None or is_path(value):
        yield encode(value)
        return
    with tempfile.TemporaryDirectory(prefix="tdbg-") as folder:
        path = pathlib.Path(folder) / f"{name}.safetensors"
        write(path, value)
        yield encode(path)


def run(a, b, options):
    handle, error = ctypes.c_void_p(), ErrorInfo()
    check(library.tdbg_diff_open(ctypes.byref(handle), a, b, ctypes.byref(options), ctypes.byref(error)), error)
    try:
        return json.loads(library.tdbg_diff_json(handle)), decode(library.tdbg_diff_words(handle))
    finally:
        library.tdbg_diff_close(ctypes.byref(handle))


# --- the message of assert_close ----------------------------------------------------------------------------------

def complaint(document, words, unmatched):
    """Why two inputs do not agree; None when they do."""
    summary = document["summary"]
    bad = document["first_divergence"] or summary["errors"] or not summary["enough"]
    alone = [] if unmatched else others(document, "only_a", None) + others(document, "only_b", None) + cut(document)
    if not bad and not alone:
        return None
    lines = [line for line in words.splitlines() if line]
    if not summary["enough"] and not document["first_divergence"]:
        lines.reverse()  # the verdict first: there is nothing else to tell
    if not bad:
        return "\n".join([f"{lines[0]}, but not everything has a counterpart", *alone])
    first = document["first_divergence"]
    if first:
        lines += ["", *about(document["pairs"][first["index"]], first, "largest" if document.get("order") == "unknown" else "first")]
    lines += others(document, "diverged", first and first["index"])
    lines += others(document, "error", None)
    return "\n".join(lines + alone)


def about(pair, first, which):
    lines = [f"{which} divergence: {pair['name']}", f"  a  {side(pair['a'])}", f"  b  {side(pair['b'])}"]
    lines += [f"  {pair['reason']}"] if pair["reason"] else []
    sure = lambda d: "" if d["kind"] == "unknown" else f" ({d['confidence']:.0%})"  # in what is unknown there is none
    lines += [f"  diagnosis: {d['kind']}{sure(d)}: {d['detail']}" for d in first["diagnosis"]]
    worst = [([str(i) for i in w["index"]], number(w["a"]), number(w["b"])) for w in pair.get("worst", [])]
    if worst:
        rows = [("worst at", "a", "b")] + [(f"[{', '.join(at)}]", x, y) for at, x, y in worst]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines += [f"  {row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows]
    return lines


def number(value):
    return value if isinstance(value, str) else f"{value:.9g}"  # "nan" and "inf" come as text


def side(item):
    return f"{item['name']}  {item['dtype']} {item['shape']}"


def others(document, verdict, besides):
    """The pairs of one verdict, by name."""
    found = [p for p in document["pairs"] if p["verdict"] == verdict and p["index"] != besides]
    heading = {"diverged": "also diverged", "error": "not compared", "only_a": "only in a", "only_b": "only in b"}
    lines = [f"{heading[verdict]}: {p['name']}" + (f": {p['reason']}" if verdict == "error" else "")
             for p in found[:LISTED]]
    return lines + ([f"{heading[verdict]}: {len(found) - LISTED} more"] if len(found) > LISTED else [])


def cut(document):
    """Pairs that agree because a part of one side was left out. The parts of a fused tensor have pairs of their own."""
    return [f"in part: {p['name']}: {step}, of shape {p[step[0]]['shape']}"
            for p in document["pairs"] if p["layout"] and p["strategy"] != "fused"
            for step in p["layout"]["steps"] if step[3:].startswith(("slice", "take"))][:LISTED]
