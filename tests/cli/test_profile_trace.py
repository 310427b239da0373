"""`tdbg profile` of traces: Chrome's trace events as torch.profiler and ONNX Runtime write them."""
import gzip
import json
import lzma
import random
import subprocess
import time

import pytest

US = 1000


def span(name, begin, length, tid=1, **more):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": length, **more}


def write(path, events, **around):
    path.write_text(json.dumps({"schemaVersion": 1, **around, "traceEvents": events}) if around is not None else json.dumps(events))
    return path


def scopes(document):
    return {scope["path"]: scope for scope in document["scopes"]}


def times(document):
    return {path: (scope["calls"], scope["total_ns"], scope["self_ns"]) for path, scope in scopes(document).items()}


NESTED = [span("a", 0, 100), span("b", 10, 30), span("c", 15, 5), span("b", 50, 20), span("d", 200, 10)]
EXPECTED = {"a": (1, 100 * US, 50 * US), "a/b": (2, 50 * US, 45 * US), "a/b/c": (1, 5 * US, 5 * US), "d": (1, 10 * US, 10 * US)}


def test_nesting_does_not_depend_on_the_order(tdbg, tmp_path):
    for seed in range(5):
        events = NESTED[:]
        random.Random(seed).shuffle(events)
        document = tdbg.json("profile", write(tmp_path / "t.json", events))
        assert times(document) == EXPECTED
        assert document["wall_ns"] == 110 * US and document["events"] == 5


def test_bare_array_without_its_end(tdbg, tmp_path):
    path = tmp_path / "t.json"
    path.write_text("[\n" + ",\n".join(json.dumps(event) for event in NESTED) + ",\n")
    document = tdbg.json("profile", path)
    assert times(document) == EXPECTED and document["cut"] is False


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed(tdbg, tmp_path, pack):
    (tmp_path / "t.json.gz").write_bytes(pack(json.dumps({"traceEvents": NESTED}).encode()))
    assert times(tdbg.json("profile", tmp_path / "t.json.gz")) == EXPECTED


def test_windows_of_a_compressed_trace(tdbg, tmp_path):
    """Events that lie across the windows, and one larger than a window, are read whole."""
    events = [span(f"op {i % 7}", i * 10, 9, args={"text": "x" * (i % 900)}) for i in range(20000)]
    events[777]["args"]["text"] = "y" * (3 << 20)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(json.dumps(events).encode(), 1))
    document = tdbg.json("profile", tmp_path / "t.json.gz")
    assert document["events"] == 20000 and sum(scope["calls"] for scope in document["scopes"]) == 20000


def test_white_space_anywhere(tdbg, tmp_path):
    text = json.dumps({"traceEvents": NESTED}, separators=("\n\t,", " \r\n:\t"))
    (tmp_path / "t.json").write_text(text.replace("}", "\n}").replace("{", "{\n"))
    assert times(tdbg.json("profile", tmp_path / "t.json")) == EXPECTED


def test_begin_and_end(tdbg, tmp_path):
    def event(phase, name, at, tid=1):
        return {"ph": phase, "name": name, "pid": 1, "tid": tid, "ts": at}

    events = [event("B", "a", 0), event("B", "x", 1, tid=2), event("B", "b", 10), event("E", "b", 40), event("E", "x", 5, tid=2),
              event("E", "a", 100), event("E", "nobody", 101), event("B", "never ends", 102)]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert times(document) == {"a": (1, 100 * US, 70 * US), "a/b": (1, 30 * US, 30 * US), "x": (1, 4 * US, 4 * US)}
    assert document["skipped_events"] == 1


def test_spans_that_overlap_count_no_moment_twice(tdbg, tmp_path):
    # b sticks out of a by a little: it is cut. d lies mostly behind c: it begins where c ends.
    events = [span("a", 0, 100), span("b", 50, 51), span("c", 200, 100), span("d", 290, 100)]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert times(document) == {"a": (1, 100 * US, 50 * US), "a/b": (1, 50 * US, 50 * US), "c": (1, 100 * US, 100 * US), "d": (1, 90 * US, 90 * US)}
    assert document["wall_ns"] == 290 * US == sum(scope["self_ns"] for scope in document["scopes"])


def test_nanoseconds_of_our_days(tdbg, tmp_path):
    path = tmp_path / "t.json"
    path.write_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1763258400123456.789,"dur":1.001},'
                    '{"ph":"X","name":"b","pid":1,"tid":1,"ts":1763258400123456.790,"dur":0.5},'
                    '{"ph":"X","name":"c","pid":1,"tid":1,"ts":1.7632584e15,"dur":2e0}]')
    assert times(tdbg.json("profile", path)) == {"a": (1, 1001, 501), "a/b": (1, 500, 500), "c": (1, 2000, 2000)}


def test_steps_of_torch(tdbg, tmp_path):
    events = [span("aten::mm", 0, 5)]
    for i in range(10):
        at = 100 + i * 100
        events += [span(f"ProfilerStep#{i + 3}", at, 90, cat="user_annotation"), span("aten::mm", at + 10, 20 + i), span("aten::add", at + 60, 5, tid=2)]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert [step["number"] for step in document["steps"]["kept"]] == list(range(3, 13))
    found = scopes(document)
    assert found["ProfilerStep"]["calls"] == 10
    assert found["ProfilerStep/aten::mm"]["per_step"]["p50_ns"] == 24.5 * US
    assert found["aten::add"]["per_step"]["count"] == 10, "by time, whatever the thread"
    assert found["aten::mm"]["per_step"] is None, "outside of all steps"


def test_threads_and_streams(tdbg, tmp_path):
    events = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
        span("launch", 0, 10),
        span("kernel x", 5, 50, tid=7, pid=0, cat="kernel"),
        span("kernel y", 60, 20, tid="stream 9", pid=0, cat="gpu_memcpy"),
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7 (compute)"}},
        span("PyTorch Profiler (0)", 0, 1000, tid="PyTorch Profiler", pid="Spans", cat="Trace"),
        {"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 3, "cat": "ac2g", "name": "ac2g"},
    ]
    path = write(tmp_path / "t.json", events)
    document = tdbg.json("profile", path)
    assert {thread["name"]: thread["device"] for thread in document["threads"]} == {"main": False, "stream 7 (compute)": True, "stream stream 9": True}
    assert document["wall_ns"] == 10 * US and document["device_wall_ns"] == 70 * US
    assert scopes(document)["stream 7 (compute)/kernel x"]["device"] is True
    assert "10 us of wall time in scopes, 70 us of GPU time in 2 streams" in tdbg.text("profile", path)


def test_events_that_lack_what_they_need(tdbg, tmp_path):
    events = [{}, {"ph": "M", "name": "thread_name"}, {"ph": "M", "name": "thread_name", "args": 3}, {"ph": "X"}, {"ph": "X", "name": "a"},
              {"ph": "i", "name": "[memory]", "ts": 1}, {"ph": "X", "name": "b", "ts": 1}, {"ph": "E", "ts": 2}, span("c", 5, -1)]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert times(document) == {"b": (1, 0, 0)} and document["skipped_events"] == 4


def test_events_whose_time_is_not_known(tdbg, tmp_path):
    """null, or what Python's json makes of a NaN."""
    events = [*NESTED, span("a", None, 3), span("b", 4, float("nan")), span("c", float("nan"), 1)]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert times(document) == EXPECTED and document["skipped_events"] == 3


def test_a_byte_order_mark(tdbg, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(NESTED), encoding="utf-8-sig")
    assert times(tdbg.json("profile", tmp_path / "t.json")) == EXPECTED


def test_escapes_in_names(tdbg, tmp_path):
    events = [span('say "hi"\n\u00e4\u4e2d\U0001f600', 0, 1)]
    for ascii_only in (True, False):
        (tmp_path / "t.json").write_text(json.dumps(events, ensure_ascii=ascii_only))
        name = tdbg.json("profile", tmp_path / "t.json")["scopes"][0]["name"]
        assert name.startswith('say "hi" \u00e4\u4e2d')


def test_flops_of_matrix_products(tdbg, tmp_path):
    events = [span("aten::mm", 0, 10, args={"Input Dims": [[8, 64], [64, 32]], "x": 1}),
              span("aten::addmm", 20, 10, args={"Input Dims": [[32], [8, 64], [64, 32], [], []]}),
              span("aten::bmm", 40, 10, args={"Input Dims": [[4, 8, 64], [4, 64, 32]]}),
              span("aten::mm", 60, 10, args={"Input Dims": "nonsense"}), span("aten::add", 80, 10, args={"Input Dims": [[8, 64], [64, 32]]})]
    found = scopes(tdbg.json("profile", write(tmp_path / "t.json", events)))
    product = 2 * 8 * 64 * 32
    assert (found["aten::mm"]["flops"], found["aten::addmm"]["flops"], found["aten::bmm"]["flops"]) == (product, product, 4 * product)
    assert "flops" not in found["aten::add"]


def test_memory_events(tdbg, tmp_path):
    def memory(at, size, total):
        return {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at, "args": {"Bytes": size, "Total Allocated": total}}

    document = tdbg.json("profile", write(tmp_path / "t.json", [span("a", 0, 100), span("b", 10, 50), memory(20, 4096, 4096), memory(70, 1000, 5096), memory(80, -4096, 1000)]))
    assert document["peak_bytes"] == 5096
    assert scopes(document)["a"]["allocated_bytes"] == 5096 and scopes(document)["a/b"]["allocated_bytes"] == 4096


def test_onnxruntime_shape(tdbg, tmp_path):
    """Its profiles by hand; tests/conformance has real ones."""
    events = [{"cat": "Session", "pid": 5, "tid": 5, "dur": 900, "ts": 3, "ph": "X", "name": "model_loading_uri", "args": {}}]
    for i in range(3):
        at = 1000 + i * 1000
        events += [{"cat": "Node", "pid": 5, "tid": 5, "dur": 300, "ts": at + 20, "ph": "X", "name": "/fc/Gemm_kernel_time", "args": {"op_name": "Gemm", "provider": "CPUExecutionProvider"}},
                   {"cat": "Session", "pid": 5, "tid": 5, "dur": 350, "ts": at + 10, "ph": "X", "name": "SequentialExecutor::Execute", "args": {}},
                   {"cat": "Session", "pid": 5, "tid": 5, "dur": 400, "ts": at, "ph": "X", "name": "model_run", "args": {}}]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert document["steps"]["count"] == 3
    assert times(document)["model_run/SequentialExecutor::Execute//fc/Gemm"] == (3, 900 * US, 900 * US)


def test_torch_profiler(tdbg, tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(3)])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        for _ in range(4):
            with torch.profiler.record_function("forward"):
                model(torch.ones(8, 64))
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    found = scopes(tdbg.json("profile", path))
    assert found["forward"]["calls"] == 4
    assert found["forward/aten::linear"]["calls"] == 12
    if "CPU functions" not in path.read_text():  # Kineto writes shapes, the profiler before it did not
        assert found["forward/aten::linear/aten::addmm"]["flops"] == 12 * 2 * 8 * 64 * 64


BAD = {
    "empty": ("", "the file is empty"),
    "no JSON": ("hello", "neither a recorded run nor a trace in JSON"),
    "no events": ('{"a": [1, 2, {"b": 3}]}', "JSON without traceEvents: not a trace"),
    "events no array": ('{"traceEvents": 7}', "traceEvents is no array (at byte 16)"),
    "event no object": ("[1, 2]", "an event that is no object (at byte 1)"),
    "no colon": ('[{"ph" "X"}]', "a colon is missing (at byte 7)"),
    "no comma": ('[{"ph": "X" "ts": 1}]', "a comma is missing (at byte 12)"),
    "no key": ("[{1: 2}]", "a key is missing (at byte 2)"),
    "no value": ('[{"ph": }]', "a value is missing (at byte 8)"),
    "time no number": ('[{"ph": "X", "ts": "now"}]', "a time that is no number of microseconds (at byte 24)"),
    "time too large": ('[{"ph": "X", "ts": 1e300}]', "a time that is no number of microseconds (at byte 24)"),
    "time of 16 digits": ('[{"ph": "X", "ts": 9333333333333333}]', "a time that is no number of microseconds (at byte 35)"),
    "time of 19 digits": ('[{"ph": "X", "ts": 9999999999999999.999}]', "a time that is no number of microseconds (at byte 39)"),
    "brackets": ('[{"args": {"a": [}}]', "a bracket that was not opened (at byte 17)"),
    "depth": ('[{"args": ' + "[" * 100000, "brackets nested too deeply (at byte 74)"),
    "cut before events": ('{"schemaVersion": 1, "traceEv', "the trace ends before its first event"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad(tdbg, tmp_path, name):
    text, message = BAD[name]
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert tdbg.fails("profile", path) == f"tdbg: {path}: {message}"


def test_cut_within_an_event(tdbg, tmp_path):
    whole = json.dumps({"traceEvents": NESTED})
    path = tmp_path / "cut.json"
    for length in range(20, len(whole) - 2):
        path.write_text(whole[:length])
        document = tdbg.json("profile", path) if length % 7 == 0 else None
        assert document is None or document["events"] <= 5
    path.write_text(whole[:-30])
    document = tdbg.json("profile", path)
    assert document["cut"] is True and document["events"] == 4
    at = whole.rindex('{"ph"')
    assert f"the trace stops within an event at byte {at}; what was before it counts" in tdbg.text("profile", path)


def test_damaged_gzip(tdbg, tmp_path):
    packed = bytearray(gzip.compress(json.dumps([span(str(i), i, 1) for i in range(5000)]).encode()))
    packed[len(packed) // 2] ^= 0x55
    (tmp_path / "bad.gz").write_bytes(packed)
    assert "bad.gz: " in tdbg.fails("profile", tmp_path / "bad.gz")


def test_times_at_the_ends_of_the_range(tdbg, tmp_path):
    most = 2**61 // 1000
    events = [span("a", -most, most), span("b", most, most), span("c", 0, 5), span("d", most - 1, 10**15)] + [span("e", -most, most, tid=i) for i in range(2, 40)]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert all(scope["total_ns"] >= 0 and scope["self_ns"] >= 0 for scope in document["scopes"])


@pytest.mark.slow
def test_more_scopes_than_fit(tdbg, tmp_path):
    """Each call has a name of its own: beyond the cap they count for their parent."""
    events = [span("all", 0, 10**6)] + [span(f"op {i}", i * 10, 5) for i in range(80000)]
    document = tdbg.json("profile", write(tmp_path / "t.json", events))
    assert document["folded"] == 80002 - (1 << 16)
    assert sum(scope["self_ns"] for scope in document["scopes"]) == 10**6 * US == document["wall_ns"]
    assert "count for their parents" in tdbg.text("profile", tmp_path / "t.json")


def test_more_threads_than_anybody_has(tdbg, tmp_path):
    events = [span("a", i, 1, tid=i) for i in range(20000)]
    assert "more than 16384 threads" in tdbg.fails("profile", write(tmp_path / "t.json", events))
    document = tdbg.json("profile", write(tmp_path / "t.json", events[:16000] * 3))
    assert document["calls"] == 48000 and len(document["threads"]) == 16000


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.parametrize("packed", [False, True])
def test_memory_is_bounded(tdbg, tmp_path, packed):
    """More spans than the sort holds at once, in no order, on several threads."""
    path = tmp_path / "big.json"
    block = "".join(f'{{"ph":"X","cat":"cpu_op","name":"op {i % 50}","pid":1,"tid":{i % 8},"ts":%d.{(i * 7919) % 1000:03d},"dur":0.5}},\n' for i in range(1000))
    with open(path, "w") as file:
        file.write("[\n")
        for i in range(1200):
            at = (i * 7919 % 1200) * 1000
            file.write(block % tuple(range(at, at + 1000)))
    if packed:
        subprocess.run(["gzip", "-1", path], check=True)
        path = tmp_path / "big.json.gz"
    process = subprocess.Popen([tdbg.binary, "profile", "--json", path], stdout=subprocess.PIPE)
    peak = 0
    with open(tmp_path / "out", "wb") as out:
        while process.poll() is None:
            try:
                lines = open(f"/proc/{process.pid}/status").read().splitlines()
                peak = max([peak] + [int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")])
            except (FileNotFoundError, ProcessLookupError):
                pass
            time.sleep(0.005)
        out.write(process.stdout.read())
    document = json.loads((tmp_path / "out").read_bytes())
    assert document["events"] == 1200000 and document["thread_ns"] == 1200000 * 500
    assert 0 < peak < 64 << 20, f"{peak / 2**20:.1f} MiB"
