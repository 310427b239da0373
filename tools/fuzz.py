#!/usr/bin/env python3
"""Runs the fuzz targets of tests/fuzz with a seeded corpus, under ASan and UBSan.

    tools/fuzz.py [--seconds S | --cpu-minutes M] [--jobs N] [TARGET…]
    tools/fuzz.py --report

Every target runs for S seconds of wall time (default 60), or until it has used M minutes of CPU time. Corpora
grow in build-fuzz/corpus, findings are kept in build-fuzz/crashes, and build-fuzz/cpu.log gets a line per run;
--report adds them up. A finding is a crash, a sanitizer's complaint, a run of more than 5 seconds, one allocation
above 256 MiB or 1 GiB in all. Exit status 1 when there is any.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-fuzz"
LOG = BUILD / "cpu.log"
SLICE = 300  # seconds of one run of a long campaign

LIMITS = ["-timeout=5", "-rss_limit_mb=1024", "-malloc_limit_mb=256", "-max_len=65536"]


def known_targets():
    sources = (ROOT / "tests/fuzz").glob("fuzz_*.c")
    return sorted(p.stem[len("fuzz_"):] for p in sources if "LLVMFuzzerTestOneInput" in p.read_text())


def build(targets):
    if not (BUILD / "build.ninja").exists():
        subprocess.run(
            ["meson", "setup", BUILD, "-Dfuzz=true", "-Dtests=disabled", "-Dweb=disabled", "-Db_sanitize=address,undefined",
             "-Db_lundef=false"],
            env={**os.environ, "CC": "clang"}, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    done = subprocess.run(["ninja", "-C", BUILD, "--quiet", *(f"tests/fuzz/fuzz_{t}" for t in targets)],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stdout)


def write_seeds():
    subprocess.run(["/usr/bin/python3", ROOT / "tests/fuzz/seeds.py", BUILD / "seeds"], check=True,
                   stdout=subprocess.DEVNULL)


def run_once(target, seconds):
    """One libFuzzer process. Returns (CPU seconds, executions, edges covered, finding or None)."""
    corpus, seeds = BUILD / "corpus" / target, BUILD / "seeds" / target
    corpus.mkdir(parents=True, exist_ok=True)
    (BUILD / "crashes").mkdir(exist_ok=True)
    command = [BUILD / "tests/fuzz" / f"fuzz_{target}", corpus, seeds, *LIMITS, f"-max_total_time={seconds}",
               f"-artifact_prefix={BUILD}/crashes/{target}-", "-print_final_stats=1", "-verbosity=1"]
    log = BUILD / f"{target}.log"
    with open(log, "wb") as out:
        process = subprocess.Popen([str(part) for part in ["nice", *command]], stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    executions = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    edges = re.findall(r"cov: (\d+)", text)
    finding = None
    if process.returncode:
        reason = re.search(r"(?:SUMMARY: .*|ERROR: .*|runtime error: .*)", text)
        finding = f"{reason.group(0) if reason else 'status %d' % process.returncode} (see {log.relative_to(ROOT)})"
    return (usage.ru_utime + usage.ru_stime, int(executions.group(1)) if executions else 0,
            int(edges[-1]) if edges else 0, finding)


def run(target, seconds, cpu_seconds):
    seeds = BUILD / "seeds" / target
    if not seeds.is_dir() or not any(seeds.iterdir()):
        print(f"{target:16} has no seeds: add a function to tests/fuzz/seeds.py", flush=True)
        return False
    cpu, executions, edges, finding = 0.0, 0, 0, None
    while finding is None and (cpu < cpu_seconds if cpu_seconds else cpu == 0):
        wall = min(SLICE, max(10, int(cpu_seconds - cpu))) if cpu_seconds else seconds
        used, count, edges, finding = run_once(target, wall)
        cpu, executions = cpu + used, executions + count
        with open(LOG, "a") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {target} {used:.1f} {count} {finding or 'clean'}\n")
    print(f"{target:16} {cpu:8.1f} CPU s {executions:12} runs {edges:7} edges  {finding or 'clean'}", flush=True)
    return finding is None


def report():
    total = {}
    for line in LOG.read_text().splitlines() if LOG.exists() else []:
        _, target, cpu, count, outcome = line.split(" ", 4)
        row = total.setdefault(target, [0.0, 0, 0])
        row[0] += float(cpu)
        row[1] += int(count)
        row[2] += outcome != "clean"
    for target, (cpu, count, findings) in sorted(total.items()):
        print(f"{target:16} {cpu / 60:8.1f} CPU min {count:12} runs {findings:4} findings")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--cpu-minutes", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("targets", nargs="*")
    args = parser.parse_args()
    if args.report:
        return report()
    known = known_targets()
    unknown = set(args.targets) - set(known)
    if unknown:
        sys.exit(f"fuzz.py: no target {' '.join(sorted(unknown))}; there are {' '.join(known)}")
    targets = args.targets or known
    build(targets)
    write_seeds()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as jobs:
        results = list(jobs.map(lambda t: run(t, args.seconds, args.cpu_minutes * 60), targets))
    print(f"fuzz: {results.count(True)} targets clean, {results.count(False)} with findings")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
