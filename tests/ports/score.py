#!/usr/bin/env python3
"""Runs `tdbg diff --json A B` on every case that generate.py wrote and prints what it got right, by cause.

    score.py TDBG CASES [-v] [--cases GLOB] [--hand-over] [--json] [--jobs N] [--right X --wrong X --first X …]

For each B tensor with a counterpart: `right` when the answer pairs it with one of its true names, `wrong` when with
another, else `missing`; an alias counts as its pair. A `ghost` is a B tensor without counterpart that got one.
`first`: the first divergence of a case with a mistake is where the mistake first shows. `false alarms`: clean cases
that do not agree. `unseen`: cases with a mistake that "agree" with exit status 0.

With --hand-over the true pairs are given by --pairs, which leaves what is not pairing's fault.
Exit status 1 below a bar.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

NOTHING = "regex:^$=>x"  # a strategy that pairs nothing of its own
NAMES = ("right", "wrong", "missing", "ghosts", "ghosts paired")


def handed_over(want):
    """A pairs file of the truth; each tensor of A is used once, save for fused ones."""
    pairs, used = [], set()
    of_a, of_b = ("" if "." in want[side] else ".npy" for side in "ab")  # a folder's tensors have file names
    for b, names in want["pairs"].items():
        if b in want["parts"]:
            parts = want["parts"][b]
            pairs += [{"a": p[0], "b": b, "b_part": [i, len(parts)]} for i, p in enumerate(parts)]
        elif b in want["part_of"]:
            pairs.append({"a": names[0], "b": b, "a_part": want["part_of"][b]})
        else:
            free = [n for n in names if n not in used]
            if free:
                used.add(free[0])
                pairs.append({"a": free[0], "b": b})
    for pair in pairs:
        pair["a"], pair["b"] = pair["a"] + of_a, pair["b"] + of_b
    return {"version": 1, "pairs": pairs}


def sides(pair):
    """(names of A, names of B) of one pair of the answer, aliases and members included."""
    out = []
    for side in ("a", "b"):
        tensor = pair.get(side)
        names = {tensor["name"]} if tensor else set()
        out.append(names | set((pair.get("aliases") or {}).get(side) or []) if tensor else names)
    return out


def cleaned(name):
    """`folder/x.npy` and `x` are one name; a single key in a file is passed over by tdbg."""
    return name[:-4] if name.endswith(".npy") else name


def judge(folder, tdbg, hand_over):
    """The score of one case: a dict with counts, and `misses`: what to print with -v."""
    want = json.loads((folder / "expect.json").read_text())
    args = [tdbg, "diff", "--json", str(folder / want["a"]), str(folder / want["b"])]
    score = {**{k: want[k] for k in ("arch", "style", "way", "bug", "types")}, "name": folder.name, "misses": [],
             **dict.fromkeys(NAMES, 0)}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as given:
        if hand_over:
            json.dump(handed_over(want), given)
            given.flush()
            args[2:2] = ["--pairs", given.name, "--match", NOTHING]
        start = time.monotonic()
        try:
            run = subprocess.run(args, capture_output=True, text=True, timeout=120)
            answer = json.loads(run.stdout)
        except (ValueError, subprocess.TimeoutExpired) as e:
            stderr = getattr(locals().get("run"), "stderr", "")
            return {**score, "trouble": f"no JSON answer: {stderr.strip()[:200] or e}"}
        score["seconds"] = time.monotonic() - start
    miss = score["misses"].append
    partners = collections.defaultdict(list)
    for pair in answer["pairs"]:
        a, b = ({cleaned(n) for n in s} for s in sides(pair))
        if a and b:
            for name in b:
                partners[name].append((a, cleaned(pair["b"]["name"]) == name, pair))
    for b, names in want["pairs"].items():
        got = partners.get(b, [])
        bad = [p for a, _, p in got if not a & set(names)]
        result = "missing" if not got else "wrong" if bad else "right"
        score[result] += 1
        if result != "right":
            miss(f"{result}: {b} is {names[0]}" + (f", paired with {bad[0]['a']['name']} ({bad[0].get('strategy')}, "
                                                   f"{bad[0]['verdict']})" if bad else ""))
    score["ghosts"] = len(want["ghosts"])
    for b in want["ghosts"]:
        for a, itself, pair in partners.get(b, []):
            if itself:
                score["ghosts paired"] += 1
                miss(f"ghost paired: {b} with {pair['a']['name']} ({pair.get('strategy')}, {pair['verdict']})")
    first = answer["first_divergence"]
    score["exit"], score["agrees"] = run.returncode, first is None and run.returncode == 0
    at = set()
    if first is not None:
        index = first.get("index")
        pair = next((p for p in answer["pairs"] if p["index"] == index), None)
        at = {cleaned(n) for s in (sides(pair) if pair else []) for n in s} | {cleaned(first["name"])}
    kinds = [d["kind"] for d in (first or {}).get("diagnosis") or []]
    if want["bug"] is None:
        score["alarm"] = not score["agrees"]
        if first:
            true = pair and {cleaned(pair["a"]["name"])} & set(want["pairs"].get(cleaned(pair["b"]["name"]), []))
            score["cause"] = "wrong pair" if not true else "layout or floor"
            detail = (pair or {}).get("reason", "")
            miss(f"false alarm ({score['cause']}) at {' | '.join(sorted(at)[:3])}: {kinds[:1]} {detail[:100]}")
        elif score["alarm"]:
            score["cause"] = "not enough paired"
            miss(f"false alarm: exit status {run.returncode} without a divergence")
        return score
    score["localised"], score["unseen"] = bool(at & set(want["first"])), score["agrees"]
    score["named"] = bool(kinds) and kinds[0] in want["accept"] if want["accept"] else None
    if not score["localised"]:
        paired = [b for b in want["first"] if b in want["pairs"] and partners.get(b)]
        true = [p for b in paired for a, _, p in partners[b] if a & set(want["pairs"][b])]
        seen = [p for p in true if p["verdict"] not in ("identical", "within")]
        score["cause"] = "agreed" if score["agrees"] else "its pair missing" if not paired else \
            "its pair wrong" if not true else "its pair agrees" if not seen else "another was named"
        miss(f"first divergence ({score['cause']}): wanted {' | '.join(want['first'][:4])}, got "
             f"{' | '.join(sorted(at)[:3]) or None} {kinds[:1]}")
    return score


def share(rows, part, of):
    return sum(r[part] for r in rows) / max(1, sum(sum(r[k] for k in of) for r in rows))


def line(title, rows):
    buggy, clean = [r for r in rows if r["bug"]], [r for r in rows if not r["bug"]]
    truth, named = ("right", "wrong", "missing"), [r["named"] for r in buggy if r["named"] is not None]
    return f"{title:22} {share(rows, 'right', truth):7.3f} {share(rows, 'wrong', truth):7.4f} " \
           f"{share(rows, 'missing', truth):7.3f} {sum(r['ghosts paired'] for r in rows):5}/{sum(r['ghosts'] for r in rows):<5}" \
           f" {sum(r['localised'] for r in buggy):4}/{len(buggy):<4} {sum(named):4}/{len(named):<4}" \
           f" {sum(r['alarm'] for r in clean):4}/{len(clean):<4} {sum(r['unseen'] for r in buggy):4}"


def table(rows):
    print(f"{'':22} {'right':>7} {'wrong':>7} {'missing':>7} {'ghosts':>11} {'first':>9} {'named':>9} {'alarms':>9} {'unseen':>6}")
    print(line("all", rows))
    for key in ("style", "arch", "way"):
        for value in sorted({r[key] for r in rows}):
            print(line(f"  {value}", [r for r in rows if r[key] == value]))
    for value in sorted({tuple(r["types"]) for r in rows}):
        print(line("  " + " ".join(value), [r for r in rows if tuple(r["types"]) == value]))
    for what, kept in (("first divergence missed", [r for r in rows if r["bug"]]), ("false alarms", [r for r in rows if not r["bug"]])):
        causes = collections.Counter(r["cause"] for r in kept if "cause" in r)
        if causes:
            print(f"{what}: " + ", ".join(f"{n} {cause}" for cause, n in causes.most_common()))


def figures(rows):
    truth = ("right", "wrong", "missing")
    buggy = [r for r in rows if r["bug"]]
    return {"cases": len(rows), "right": share(rows, "right", truth), "wrong": share(rows, "wrong", truth),
            "ghosts": sum(r["ghosts paired"] for r in rows),
            "first": sum(r["localised"] for r in buggy) / max(1, len(buggy)),
            "alarms": sum(r["alarm"] for r in rows if not r["bug"]), "unseen": sum(r["unseen"] for r in buggy)}


def judged(tdbg, folder, cases="*", hand_over=False, jobs=min(2, os.cpu_count() or 1)):
    """(scores of the cases, cases without an answer)."""
    folders = [f for f in sorted(folder.iterdir()) if (f / "expect.json").exists() and fnmatch.fnmatch(f.name, cases)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(lambda f: judge(f, tdbg, hand_over), folders))
    return [r for r in rows if "trouble" not in r], [r for r in rows if "trouble" in r]


def below(got, bars):
    """Which figures miss their bar: `right` and `first` are least, the others most."""
    return [b for b, bar in bars.items() if (got[b] < bar if b in ("right", "first") else got[b] > bar)]


def main():
    p = argparse.ArgumentParser(description="scores tdbg diff on the real-port suite")
    p.add_argument("tdbg")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("-v", action="store_true", help="one line for each miss")
    p.add_argument("--cases", default="*")
    p.add_argument("--hand-over", action="store_true", help="give the true pairs by --pairs")
    p.add_argument("--json", action="store_true")
    p.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    for bar in ("right", "first", "wrong", "alarms", "unseen", "ghosts"):
        p.add_argument("--" + bar, type=float, help="least" if bar in ("right", "first") else "most")
    o = p.parse_args()
    rows, trouble = judged(o.tdbg, o.folder, o.cases, o.hand_over, o.jobs)
    got = figures(rows)
    if o.json:
        print(json.dumps({"figures": got, "trouble": trouble, "cases": rows}, indent=1))
    else:
        for r in trouble:
            print(f"{r['name']}: {r['trouble']}")
        for r in rows if o.v else []:
            for m in r["misses"]:
                print(f"{r['name']}: {m}")
        table(rows)
        print(" ".join(f"{k} {v:.4g}" for k, v in got.items()))
    missed = below(got, {b: getattr(o, b) for b in ("right", "first", "wrong", "alarms", "unseen", "ghosts")
                         if getattr(o, b) is not None})
    if missed:
        print("below the bar: " + ", ".join(missed), file=sys.stderr)
    return 1 if missed or trouble else 0


if __name__ == "__main__":
    sys.exit(main())
