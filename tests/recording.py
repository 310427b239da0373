"""tests/programs/recording.c, a program that records what it is told, and what a run holds, read without tdbg."""
import json
import os
import sqlite3
import struct
import subprocess

from built import BINARY, PATIENCE

PROGRAM = BINARY.parent / "tests" / "recording"
STATISTICS = "select name, count, finite, nan, inf, zeros, mean, std, min, max, absmax, norm from tensor order by id"


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TDBG_RUN")}
    return {**clean, **more}


class Talking(subprocess.Popen):
    """The program, told line by line what to do."""

    def __init__(self, run, *capture, **more):
        super().__init__([PROGRAM, run, *capture], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env=environment(**more))

    def say(self, *lines):
        self.stdin.write("".join(line + "\n" for line in lines))
        self.stdin.flush()

    def hear(self):
        return self.stdout.readline().strip()


def record(script, run, capture=None, status=0, **env):
    """Runs the script of lines; what the program printed."""
    done = subprocess.run([PROGRAM, run or "", *([capture] if capture is not None else [])], input="\n".join(script) + "\n",
                          capture_output=True, text=True, env=environment(**env), timeout=60 * PATIENCE)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr.strip()


def rows(run, sql):
    db = sqlite3.connect(run / "run.db")
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def step_file(path):
    """A .safetensors file, read as its format says: name -> (dtype, shape, bytes)."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    body = data[8 + size:]
    header.pop("__metadata__", None)
    return {name: (e["dtype"], e["shape"], body[slice(*e["data_offsets"])]) for name, e in header.items()}


def spans(run):
    """(path, flops, bytes, tokens) of each call, in the order they ended."""
    scopes = {0: ""}
    for number, parent, name in rows(run, "select id, parent, name from scope order by id"):
        scopes[number] = f"{scopes[parent]}/{name}"
    out = []
    for (data,) in rows(run, "select data from span_block order by id"):
        for begin, end, scope, thread, *costs in struct.iter_unpack("<qqIIddd", data):
            assert 0 <= begin <= end
            out.append((scopes[scope], *costs))
    return out
