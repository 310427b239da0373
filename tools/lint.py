#!/usr/bin/env python3
"""The rules of the house that a compiler does not know. Run by `make lint` and `make test`.

    tools/lint.py [BUILD]      BUILD: where libtdbg.so is, for the exported symbols (default build)

Each rule is a generator of complaints over the tracked files; a complaint is `path:line: what is wrong`.
Exit status 1 when there is any. Lines that begin with "warning:" do not count.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A folder of src/ includes folders of a lower level, itself, and the public header.
LEVELS = {
    "base": 0,
    "tensor": 1, "io": 1, "pickle": 1, "store": 1, "shim": 1,
    "format": 2, "kernel": 2,
    "compare": 3, "record": 3,
    "session": 4, "analyse": 4,
    "live": 5, "report": 5,
    "serve": 6,
    "cli": 7,
}
# Folders with a face of their own, where printing is the job.
PROGRAMS = {"cli"}

# Objects that may have mutable globals, and why.
GLOBALS = {
    "io_map.c": "a SIGBUS handler gets no argument but the address",
    "library.c": "a process loads a library once, and then its functions are everybody's",
}

FILE_WARN, FILE_MOST = 600, 700
FUNCTION_WARN, FUNCTION_MOST = 70, 100

PRINTING = re.compile(r"(?<!\w)(?:(?:v?printf|puts|putchar|perror|_?exit|quick_exit|abort)\s*\(|v?fprintf\s*\(\s*std(?:err|out)\b)")
INTRINSIC = re.compile(r"\b(?:immintrin|x86intrin|arm_neon|arm_sve)\.h|\b_mm\d*_\w+\s*\(|__builtin_ia32|\b__(?:AVX|SSE|ARM_NEON)\w*|\bv\w+q_[fsu]\d+\s*\(")
SQL = re.compile(r'"[^"]*\b(?:SELECT\s.+\sFROM|INSERT\s+INTO|CREATE\s+(?:TABLE|INDEX)|DELETE\s+FROM|UPDATE\s+\w+\s+SET|PRAGMA\s)', re.I)
JSON_PRINTF = re.compile(r'printf\s*\([^;]*?"(?:[^"\\]|\\.)*(?:\{\s*\\"|\\"[\w%]+\\"\s*:)', re.S)
LEFT_BEHIND = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}*])/(?:(?:work|home|root|Users)/\w|tmp/w\b)")


def tracked(*patterns):
    out = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "--deduplicate", *patterns],
                         cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in out.splitlines() if (ROOT / line).is_file()]


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_comments(text):
    """Comments become spaces, so that offsets and lines stay."""
    token = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/|//[^\n]*', re.S)
    return token.sub(lambda m: m.group(0) if m.group(0)[0] in "\"'" else blank(m), text)


def without_strings(code):
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', blank, code)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Source:
    """A C file of src/ with its folder and its text without comments."""

    def __init__(self, path):
        self.path = path.relative_to(ROOT)
        self.text = path.read_text()
        self.code = without_comments(self.text)
        self.folder = self.path.parts[1]

    def find(self, pattern, message, code=None):
        for match in pattern.finditer(self.code if code is None else code):
            found = " ".join(match.group(0).split())[:40]
            yield f"{self.path}:{line_of(self.code, match.start())}: {message}: {found}"


def layers(source):
    if source.folder not in LEVELS:
        yield f"{source.path}:1: folder {source.folder} has no level in tools/lint.py"
        return
    for match in re.finditer(r'^[ \t]*#\s*include\s+"([^"]+)"', source.code, re.M):
        where = f"{source.path}:{line_of(source.code, match.start())}"
        folder = match.group(1).split("/")[0]
        if match.group(1) == "tdbg.h":
            continue
        if "/" not in match.group(1):
            if not match.group(1).endswith((".pb-c.h", ".inc.h")):
                yield f"{where}: include \"{match.group(1)}\" by its folder"
        elif folder not in LEVELS:
            yield f"{where}: include of unknown folder {folder}"
        elif folder != source.folder and LEVELS[folder] >= LEVELS[source.folder]:
            yield f"{where}: {source.folder}/ (level {LEVELS[source.folder]}) includes {folder}/ (level {LEVELS[folder]})"


def habits(source):
    if source.folder != "kernel" and source.path.name != "field.h":
        yield from source.find(INTRINSIC, "intrinsics belong in kernel/, or base/field.h")
    if source.folder != "store":
        yield from source.find(SQL, "SQL belongs in store/")
    if source.folder not in PROGRAMS:
        yield from source.find(PRINTING, "the library neither prints nor exits", without_strings(source.code))
    yield from source.find(JSON_PRINTF, "JSON is written by the JSON writer")


def sizes(source):
    lines = source.text.count("\n")
    if lines > FILE_MOST:
        yield f"{source.path}:1: {lines} lines, {FILE_MOST} at most"
    elif lines > FILE_WARN:
        yield f"warning: {source.path}: {lines} lines, {FILE_WARN} are enough"
    if not source.text.startswith("/*"):
        yield f"{source.path}:1: a file opens with a comment that says what it is"
    # Linux brace style: a function opens with { and closes with } in the first column.
    for match in re.finditer(r"^\{\n.*?^\}", source.code, re.M | re.S):
        length = match.group(0).count("\n") + 1
        where = f"{source.path}:{line_of(source.code, match.start())}"
        if length > FUNCTION_MOST:
            yield f"{where}: a function of {length} lines, {FUNCTION_MOST} at most"
        elif length > FUNCTION_WARN:
            yield f"warning: {where}: a function of {length} lines fits no screen"


def left_behind(path):
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return
    name = path.relative_to(ROOT)
    if name.parts[:2] == ("tests", "data"):
        return
    for pattern, message in ((LEFT_BEHIND, "left behind"), (MACHINE_PATH, "a path of one machine")):
        for match in pattern.finditer(text):
            yield f"{name}:{line_of(text, match.start())}: {message}: {match.group(0)}"


def formatted(paths):
    done = subprocess.run(["clang-format", "--dry-run", "--Werror", *map(str, paths)], capture_output=True, text=True)
    if done.returncode == 0:
        return
    seen = set()
    for line in done.stderr.splitlines():
        match = re.match(r"(.*?):(\d+):\d+: error", line)
        if match and match.group(1) not in seen:
            seen.add(match.group(1))
            yield f"{pathlib.Path(match.group(1)).relative_to(ROOT)}:{match.group(2)}: run make fmt"
    if not seen:
        yield f"clang-format: {done.stderr.strip()}"


def exported(library):
    if not library.exists():
        yield f"warning: {library.name} is not built, exported symbols not checked"
        return
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        symbol = line.split()[-1].split("@")[0]
        if not symbol.startswith("tdbg_"):
            yield f"libtdbg.so: exports {symbol}"


def globals_of(build):
    """Variables that can change: data and zeroed data, but not constant tables that only need relocation."""
    archives = [build / name for name in ("libtdbgcore.a", "libtdbgserver.a") if (build / name).exists()]
    if not archives:
        return
    done = subprocess.run(["objdump", "-t", *archives], capture_output=True, text=True, check=True)
    unit = ""
    for line in done.stdout.splitlines():
        if ":     file format" in line:
            unit = line.split(":")[0].split("/")[-1]
        match = re.match(r"\S+ .{6}O (\.t?bss|\.t?data(?!\.rel\.ro))\S*\s+\S+\s+(?:\.hidden )?(\S+)$", line)
        if match and not any(part in unit for part in GLOBALS):
            yield f"{unit}: mutable global {match.group(2)}"


def complaints(build):
    everything = tracked()
    c_files = [p for p in everything if p.suffix in (".c", ".h")]
    for path in c_files:
        if path.relative_to(ROOT).parts[0] == "src":
            source = Source(path)
            for rule in (layers, habits, sizes):
                yield from rule(source)
    for path in everything:
        yield from left_behind(path)
    yield from formatted(c_files)
    yield from exported(build / "libtdbg.so")
    yield from globals_of(build)


def main():
    build = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build")
    bad = 0
    for complaint in complaints(build):
        print(complaint)
        bad += not complaint.startswith("warning:")
    print(f"lint: {bad} complaints" if bad else "lint: clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
