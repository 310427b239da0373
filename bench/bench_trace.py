#!/usr/bin/python3
"""`tdbg profile` of a 1 GB Chrome trace against `python3 -c 'json.load'` of it; and its anonymous memory.

The trace looks like one of torch.profiler: operators with shapes on two threads, kernels on a GPU stream, written by
kind and not by time, about 270 bytes an event. TRACE_MB makes a smaller one.
"""
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("TDBG", ROOT / "build" / "tdbg")
SIZE = int(os.environ.get("TRACE_MB", 1000)) * 1_000_000
LAYERS = 24
EVENT = """  {
    "ph": "X", "cat": "%s", "name": "%s", "pid": %s, "tid": %s,
    "ts": %d.%03d, "dur": %d.%03d,
    "args": {
      "External id": %d,"Record function id": 0, "Ev Idx": %d, "Input Dims": [[64, 1024], [1024, 1024]], "Input type": ["float", "float"]
    }
  }"""


def event(kind, name, pid, tid, begin, length, number):
    return EVENT % (kind, name, pid, tid, begin // 1000, begin % 1000, length // 1000, length % 1000, number, number)


def step(number, base):
    """One step: forward on thread 1, backward on thread 2, kernels on stream 7; each kind as it ended."""
    out, now = [], base
    for thread, way in ((1, "forward"), (2, "backward")):
        for layer in range(LAYERS):
            begin = now
            for name in ("aten::layer_norm", "aten::linear", "aten::softmax", "aten::bmm", "aten::gelu"):
                out.append(event("cpu_op", "aten::empty", 1, thread, now + 1100, 1500, number))
                out.append(event("cpu_op", name, 1, thread, now + 1000, 9000, number))
                out.append(event("kernel", f"void {name[6:]}_kernel<float, 128>", 0, 7, now + 9500, 9000, number))
                now += 10000
            out.append(event("user_annotation", f"{way} layers.{layer}", 1, thread, begin, now - begin, number))
    out.append(event("user_annotation", f"ProfilerStep#{number}", 1, 1, base, now - base, number))
    return out, now


def write(path):
    size, number, now = 0, 0, 1_700_000_000_000_000_000
    with open(path, "w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [\n')
        while size < SIZE:
            events, now = step(number, now + 5000)
            text = (",\n" if number else "") + ",\n".join(events)
            file.write(text)
            size += len(text)
            number += 1
        file.write("\n]}\n")
    return number


def run(command):
    """Seconds and highest anonymous memory in bytes of a command."""
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            for line in open(f"/proc/{process.pid}/status"):
                if line.startswith("RssAnon:"):
                    peak = max(peak, int(line.split()[1]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.01)
    assert process.returncode == 0, command
    return time.perf_counter() - start, peak


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = pathlib.Path(folder, "trace.json")
        steps = write(path)
        size = path.stat().st_size / 1e6
        runs = [run([BINARY, "profile", "--json", path]) for _ in range(3)]
        ours, memory = min(seconds for seconds, _ in runs), max(peak for _, peak in runs)
        theirs, hold = run(["python3", "-c", "import json, sys; json.load(open(sys.argv[1]))", path])
        subprocess.run(["gzip", "-1", path], check=True)
        packed, packed_memory = run([BINARY, "profile", "--json", f"{path}.gz"])
    figures = f"{ours:.2f} s against {theirs:.2f} s, {size:.0f} MB, {steps} steps"
    print(f"profile of a trace / json.load\t{ours / theirs:.3f}\t<=1\t{figures}")
    print(f"profile of a trace, anonymous MiB\t{memory / 2**20:.1f}\t<=64\tjson.load takes {hold / 2**20:.0f} MiB")
    print(f"profile of a .json.gz / json.load of the plain file\t{packed / theirs:.3f}\t<=1\t{packed:.2f} s")
    print(f"profile of a .json.gz, anonymous MiB\t{packed_memory / 2**20:.1f}\t<=128\ttwo threads")


main()
