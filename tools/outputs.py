#!/usr/bin/python3
"""Compares what two commits print and answer, over one corpus: the net for changes that must change nothing.

    tools/outputs.py OLD [NEW] [--only GLOB]... [--keep DIR] [--lines N]
    tools/outputs.py --list

OLD and NEW are commits; without NEW it is the working tree. Each is built in a temporary copy, every command
(outputs_commands.py) and every route of `tdbg serve` (outputs_routes.py) is run over the same inputs
(outputs_inputs.py), and what differs is printed, case by case. Exit status 1 when anything does, 2 when it could not be
found out.

    --only GLOB   only cases of such names, as --list prints them: 'diff/*', 'serve/demo/pair/0/*'
    --keep DIR    copies, builds, corpus and answers stay there and are used again the next time; else they are deleted
    --lines N     lines of the difference to print of each case (12), and N times as many in all
    --list        the names of the cases, and the routes that are asked

An answer is the exit status, both outputs and the files written; of a request the status, headers and body. What
differs by nature is replaced first: paths of the copies, ports, ids, times of day, the version. The page itself is left
out of the builds: it has tests of its own.
"""
import argparse
import concurrent.futures
import difflib
import fnmatch
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")  # as tests/conftest.py
import outputs_commands  # noqa: E402
import outputs_inputs  # noqa: E402
import outputs_routes  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["tdbg", "libtdbg.so", "libtdbg-malloc.so", "examples/tiny_transformer"]
SETUP = ["-Dweb=disabled", "-Dtests=disabled", "-Dbuildtype=plain", "-Doptimization=2", "-Db_ndebug=false"]
TREE = "the working tree"
JOBS = os.cpu_count() or 1
TIMEOUT = 120
SILENT_HEADERS = {"date", "set-cookie", "content-length", "connection", "keep-alive", "etag"}


class Trouble(Exception):
    """Something that must work did not; the message is its output."""


def command(*args, cwd=ROOT, **options):
    done = subprocess.run([str(a) for a in args], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise Trouble(f"{' '.join(map(str, args))}\n{done.stdout.decode(errors='replace')[-4000:]}")
    return done.stdout


def git(*args):
    return command("git", "-c", f"safe.directory={ROOT}", *args)


# --- The two sides: sources, built. ------------------------------------------------------------------------------------

def copy_tree(folder):
    """The working tree with what is new in it; files that did not change are left alone, so that little is built."""
    names = git("ls-files", "-coz", "--exclude-standard", "--deduplicate").decode().split("\0")
    wanted = {name for name in names if name and (ROOT / name).is_file()}
    for name in wanted:
        source, target = ROOT / name, folder / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for path in [p for p in folder.rglob("*") if p.is_file() and "build" not in p.relative_to(folder).parts[:1]]:
        if str(path.relative_to(folder)) not in wanted:
            path.unlink()


def extract(commit, folder):
    if folder.exists():
        return
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    archive = subprocess.run(["tar", "-x", "-C", partial], input=git("archive", commit), check=False)
    if archive.returncode:
        raise Trouble(f"cannot unpack {commit}")
    partial.rename(folder)


def built(what, keep):
    """The build folder of a commit, or of the working tree."""
    if what == TREE:
        folder = keep / "tree"
        folder.mkdir(exist_ok=True)
        copy_tree(folder)
    else:
        commit = git("rev-parse", "--verify", f"{what}^{{commit}}").decode().strip()
        folder = keep / commit
        extract(commit, folder)
    build = folder / "build"
    if not (build / "build.ninja").exists():
        command("meson", "setup", build, folder, *SETUP)
    have = set(re.findall(r"^([^:\n]+): ", command("ninja", "-C", build, "-t", "targets", "all").decode(), re.M))
    command("ninja", "-C", build, *[target for target in TARGETS if target in have])
    return build


class Side:
    """One of the two: its program, and a copy of the corpus of its own, under a path as long as the other's."""

    def __init__(self, name, build, corpus, keep):
        self.build, self.root = build, keep / name
        self.work, self.ids, self.answers = self.root / "work", {}, {}
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(corpus, self.work, copy_function=os.link)
        for folder in ("tmp", "home", "data", "out"):
            (self.root / folder).mkdir()
        self.version = command(build / "tdbg", "--version").decode().split()[-1]

    def environment(self, more):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TDBG_")}
        return {**clean, "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1", "COLUMNS": "", "TMPDIR": str(self.root / "tmp"),
                "HOME": str(self.root / "home"), "TDBG_THREADS": "2", "TDBG_LIBRARY": str(self.build / "libtdbg.so"), **more}

    def plain(self, text):
        """The text without what differs by nature."""
        for path, word in ((self.root, "SIDE"), (self.build, "BUILD")):
            text = text.replace(str(path), word)
            text = text.replace(str(path).replace("/", "%2F"), word)
        text = re.sub(r"(127\.0\.0\.1:|localhost:|tdbg_session_)\d+", r"\1PORT", text)
        text = re.sub(r"\b[0-9a-f]{16}\b", lambda m: self.ids.get(m.group(), m.group()), text)
        text = re.sub(r'("(?:created|generation)": ?)\d{10,}', r"\g<1>0", text)
        text = re.sub(r"\(pid \d+\)(.*), [\d.e-]+ s$", r"(pid N)\1, N s", text, flags=re.M)
        return text.replace(f"tdbg {self.version}", "tdbg VERSION").replace(f'"version":"{self.version}"', '"version":"VERSION"')

    def remember(self, name, parts):
        """parts: label -> bytes or text."""
        self.answers[name] = {label: self.shown(data) for label, data in parts.items()}

    def shown(self, data):
        try:
            text = data if isinstance(data, str) else data.decode()
        except UnicodeDecodeError:
            return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
        return self.plain(text)


# --- Commands. ------------------------------------------------------------------------------------------------------------

def written(path):
    """What is in a file, or in the files of a folder: label -> bytes."""
    if path.is_file():
        return {"file": path.read_bytes()}
    return {f"file {p.relative_to(path)}": p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def run_case(side, case):
    out = "../out/" + re.sub(r"[^\w.-]", "_", case.name)
    fill = lambda words: [word.replace("{out}", out) for word in words]  # noqa: E731
    options = {"cwd": side.work, "env": side.environment(case.env), "capture_output": True, "timeout": TIMEOUT}
    try:
        if case.program:
            first = subprocess.run(fill(case.program), stdin=subprocess.DEVNULL, **options)
            if first.returncode:
                side.remember(case.name, {"program": first.stdout + first.stderr})
                return
        done = subprocess.run([side.build / "tdbg", *fill(case.args)], input=(case.stdin or "").encode(), **options)
    except subprocess.TimeoutExpired:
        side.remember(case.name, {"exit status": f"none within {TIMEOUT} s"})
        return
    files = {} if case.program else written(side.work / out)
    side.remember(case.name, {"exit status": str(done.returncode), "stdout": done.stdout, "stderr": done.stderr, **files})


def run_commands(sides, cases):
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for future in [pool.submit(run_case, side, case) for case in cases for side in sides]:
            future.result()


# --- The server. -----------------------------------------------------------------------------------------------------------

class Asker:
    """A running server of a side. Answers go to the side under "serve/NAME"."""

    def __init__(self, side):
        self.side, self.cookie, self.asked = side, None, []
        args = [side.build / "tdbg", "serve", "--port", "0", "--data", side.root / "data", "--root", side.work]
        self.process = subprocess.Popen(args, cwd=side.work, env=side.environment({}), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        url = self.process.stdout.readline().strip()
        if not url:
            raise Trouble(f"the server does not start: {self.process.communicate()[1]}")
        self.port = int(re.search(r":(\d+)", url).group(1))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            out, err = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
        self.side.remember("serve/end", {"exit status": str(self.process.returncode), "stdout": out, "stderr": err})

    def __call__(self, name, method, path, body=None, kind=None):
        headers = {"Content-Type": kind} if kind else {}
        if self.cookie:
            headers["Cookie"] = self.cookie
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            data = self.first_event(response) if response.getheader("Content-Type") == "text/event-stream" else response.read()
        finally:
            connection.close()
        if response.getheader("Set-Cookie"):
            self.cookie = response.getheader("Set-Cookie").split(";")[0]
        return self.answer(name, method, path, response, data)

    @staticmethod
    def first_event(response):
        lines = []
        for line in response:
            lines.append(line)
            if line.startswith(b"data:"):
                break
        return b"".join(lines)

    def answer(self, name, method, path, response, data):
        document = data
        if response.getheader("Content-Type") == "application/json":
            document = json.loads(data)
            self.learn(document)
            if response.status == 202:  # how far it has come by then is a matter of time
                data = json.dumps(sorted(document))
        if name:
            self.asked.append((method, path))
            head = "".join(f"{k}: {v}\n" for k, v in sorted(response.getheaders()) if k.lower() not in SILENT_HEADERS)
            self.side.remember(f"serve/{name}", {"status": str(response.status), "headers": head, "body": data})
        return response.status, document

    def learn(self, document):
        """Ids are numbered in the order in which they come."""
        values = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
        for key, value in values:
            if key in ("id", "upload") and re.fullmatch("[0-9a-f]{16}", str(value)):
                self.side.ids.setdefault(value, f"ID{len(self.side.ids)}")
            self.learn(value)


def visit(side):
    ask = Asker(side)
    try:
        outputs_routes.visit(ask, side.work)
    except (LookupError, TypeError, RuntimeError, OSError, http.client.HTTPException):
        side.remember("serve/broken-off", {"why": traceback.format_exc()})
    finally:
        ask.end()
    return ask.asked


# --- What differs. ------------------------------------------------------------------------------------------------------------

def lines_of(text):
    """In lines that a difference can be read by: JSON and markup come in one."""
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False).splitlines()
    except ValueError:
        return text.replace("><", ">\n<").splitlines() if text.lstrip().startswith("<") else text.splitlines()


def difference(old, new):
    """Lines that tell two answers apart; none when they are the same."""
    found = []
    for label in [*old, *(label for label in new if label not in old)]:
        a, b = old.get(label), new.get(label)
        if a == b:
            continue
        if a is None or b is None:
            found.append(f"  {label}: only in {'NEW' if a is None else 'OLD'}")
            continue
        rows = list(difflib.unified_diff(lines_of(a), lines_of(b), n=0, lineterm=""))[2:]
        found += [f"  {label}:", *("    " + row for row in rows)] if rows else [f"  {label}: white space differs"]
    return found


def report(sides, selected, words, most):
    """Prints the cases that differ; how many there are, of how many."""
    old, new = sides
    names = [name for name in [*old.answers, *(n for n in new.answers if n not in old.answers)] if selected(name)]
    differ, shown = [], 0
    for name in names:
        if name not in old.answers or name not in new.answers:
            rows = [f"  only in {'OLD' if name in old.answers else 'NEW'}"]
        else:
            rows = difference(old.answers[name], new.answers[name])
        if not rows:
            continue
        differ.append(name)
        if shown < most * most:
            print(f"== {name}{words.get(name, '')}", *rows[:most], sep="\n")
            if len(rows) > most:
                print(f"  ... and {len(rows) - most} more lines")
            shown += min(len(rows), most)
        elif len(differ) < 500:
            print(f"== {name}")
    return len(differ), len(names)


def names_and_routes(keep):
    corpus = keep / "corpus"
    outputs_inputs.make(corpus, None, zoo_folder())
    for case in outputs_commands.cases(corpus):
        print(case.name)
    print("serve/*: every route of src/serve")


def zoo_folder():
    zoo = ROOT.parent / "shared" / "bugzoo"
    return zoo if (zoo / "zoo.py").exists() else None


def compare(old, new, only, keep, most):
    builds = [built(what, keep) for what in (old, new)]
    corpus = keep / "corpus"
    shutil.rmtree(corpus, ignore_errors=True)
    outputs_inputs.make(corpus, builds[0], zoo_folder())
    cases = outputs_commands.cases(corpus)
    sides = [Side(name, build, corpus, keep) for name, build in zip(("old", "new"), builds)]
    selected = lambda name: not only or any(fnmatch.fnmatch(name, glob) for glob in only)  # noqa: E731
    run_commands(sides, [case for case in cases if selected(case.name)])
    asked = None
    if not only or any(fnmatch.fnmatch("serve", glob.split("/")[0]) for glob in only):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = [*pool.map(visit, sides)][1]
    for side in sides:
        (side.root / "answers.json").write_text(json.dumps(side.answers, indent=1))
    words = {case.name: f": tdbg {' '.join(case.args)}" for case in cases}
    differ, count = report(sides, selected, words, most)
    for missing in outputs_commands.uncovered(cases) + (outputs_routes.uncovered(asked) if asked else []):
        print(f"warning: nothing here asks for {missing}")
    print(f"{count} answers of {old} and {new}: {differ or 'none'} differ{'s' if differ == 1 else ''}")
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(usage="tools/outputs.py OLD [NEW] [--only GLOB]... [--keep DIR] [--lines N] | --list")
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?", default=TREE)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=12)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if not options.old and not options.list:
        parser.error("which commit?")
    with tempfile.TemporaryDirectory(prefix="outputs-") as temporary:
        keep = pathlib.Path(temporary)
        if options.keep and not options.list:
            keep = options.keep.resolve()
            keep.mkdir(parents=True, exist_ok=True)
        try:
            if options.list:
                names_and_routes(keep)
                return 0
            return compare(options.old, options.new, options.only, keep, options.lines)
        except Trouble as trouble:
            print(trouble, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
