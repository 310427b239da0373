"""Recorded runs over HTTP: which there are, one of them as it stands and as it grows, and its live process."""
import http.client
import json
import os
import socket
import threading
import time
import urllib.parse

import numpy as np
import pytest
from runfiles import SKETCH, Run
from serving import PATIENCE


def made(folder, steps=3, **facts):
    run = Run(folder, **facts)
    for step in range(steps):
        run.spans([("model/fc", 0, 3_000_000), ("model", 0, 5_000_000)])
        run.tensor("fc.weight.grad", np.full(4, 0.5, "float32"), kind=SKETCH)
        run.scalar("loss", step, 1 / (step + 1))
        run.step()
    return run


def show(server, folder):
    return server.get(f"/api/v1/run?path={urllib.parse.quote(str(folder))}")


class Events:
    """The documents of a stream of events, as they come."""

    def __init__(self, server, folder):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30 * PATIENCE)
        self.connection.request("GET", f"/api/v1/run/events?path={urllib.parse.quote(str(folder))}")
        self.response = self.connection.getresponse()
        assert self.response.status == 200

    def next(self):
        for line in self.response:
            if line.startswith(b"data: "):
                return json.loads(line[6:])

    def until(self, fits):
        """The first document that fits."""
        while not fits(news := self.next()):
            pass
        return news

    def close(self):
        self.connection.close()


def test_runs_below_the_roots_newest_first(server, tmp_path):
    made(tmp_path / "old", started=1000).close()
    made(tmp_path / "deep" / "er" / "rank-0", started=2000, rank=0, world=2).close()
    made(tmp_path / "killed", started=3000, pid=2**22 + 1).close(ended=False)
    made(tmp_path / "live", started=4000, pid=os.getpid()).close(ended=False)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.db").write_bytes(b"no database" * 500)
    listed = server.get("/api/v1/runs").json
    assert [(r["path"][len(str(tmp_path)) + 1:], r["state"]) for r in listed["runs"]] == \
        [("live", "running"), ("killed", "broken off"), ("deep/er/rank-0", "ended"), ("old", "ended")]
    assert not listed["cut"]
    below = server.get(f"/api/v1/runs?path={tmp_path}/deep").json["runs"]
    assert [(r["rank"], r["world"]) for r in below] == [(0, 2)]
    assert server.get("/api/v1/runs?path=/etc").status == 403


def test_a_run_as_it_stands(server, tmp_path):
    made(tmp_path / "run", steps=4).close()
    run = show(server, tmp_path / "run").json
    assert run["progress"]["steps"] == 4 and run["progress"]["step"] == 3
    loss, = run["scalars"]
    assert (loss["name"], loss["last"], loss["count"]) == ("loss", 0.25, 4)
    assert [p[0] for p in loss["points"]] == [0, 1, 2, 3] and loss["points"][1] == [1, 0.5]
    gradient, = run["gradients"]
    assert gradient["points"] == [[step, 0.5] for step in range(4)]
    assert run["layers"]["rows"] == [
        {"path": "model/fc", "calls": 4, "total_ns": 12_000_000, "self_ns": 12_000_000},
        {"path": "model", "calls": 4, "total_ns": 20_000_000, "self_ns": 8_000_000},
    ]
    assert run["alerts"] == {"count": 0, "rows": []} and run["control"] == {"live": False, "attached": False}


def test_a_run_that_grows_is_shown_to_its_present_end(server, tmp_path):
    """Nobody follows its events: each question finds what was recorded before it."""
    run = made(tmp_path / "run", steps=2)
    for steps in range(2, 6):
        assert show(server, run.folder).json["progress"]["steps"] == steps
        run.step()
    run.close()
    assert show(server, run.folder).json["facts"]["state"] == "ended"


def test_long_series_keep_their_extremes(server, tmp_path):
    run = Run(tmp_path / "run")
    for step in range(5000):
        run.scalar("loss", step, 100.0 if step == 1234 else float(step % 7))
    run.close()
    points = show(server, tmp_path / "run").json["scalars"][0]["points"]
    assert 128 <= len(points) <= 256 and all(len(p) == 4 for p in points)
    assert max(p[2] for p in points) == 100 and points[-1][3] == 4999 % 7
    assert [p[0] for p in points] == [at * 32 for at in range(len(points))]


def test_events_tell_what_is_new(server, tmp_path):
    run = made(tmp_path / "run", steps=2)
    events = Events(server, run.folder)
    first = events.next()
    assert first["progress"]["steps"] == 2 and {"facts", "layers", "alerts", "control", "steps"} <= set(first)
    run.scalar("lr", 2, 0.1)
    run.tensor("x", np.float32([np.nan]))
    begin = time.monotonic()
    run.step()
    news = events.until(lambda n: n["progress"]["steps"] == 3)
    assert time.monotonic() - begin < 10 * PATIENCE  # it looks ten times a second, on a machine that may be busy
    assert [t["name"] for t in news["scalars"]] == ["lr"] and news["gradients"] == [] and "layers" not in news
    assert [(f["rule"], f["name"], f["step"]) for f in news["alerts"]["rows"]] == [("nan", "x", 2)]
    run.close()
    assert events.until(lambda n: "facts" in n)["facts"]["state"] == "ended"
    events.close()


def test_a_run_recorded_anew_is_another_epoch(server, tmp_path):
    made(tmp_path / "run", steps=5).close()
    events = Events(server, tmp_path / "run")
    assert events.next()["progress"]["steps"] == 5
    for name in ("run.db", "run.db-wal", "run.db-shm"):
        (tmp_path / "run" / name).unlink(missing_ok=True)
    made(tmp_path / "run", steps=1).close()
    news = events.until(lambda n: n["progress"]["steps"] == 1)
    assert news["epoch"] > 1 and "facts" in news and news["scalars"][0]["count"] == 1
    events.close()


@pytest.mark.parametrize("query,status,message", [
    ("", 400, "the path of a run is missing"),
    ("?path=/etc", 403, None),
    ("?path={tmp}", 404, "no recorded run in {tmp}"),
    ("?path={tmp}/nowhere", 404, None),
])
def test_what_cannot_be_shown(server, tmp_path, query, status, message):
    for route in ("run", "run/events"):
        answer = server.get(f"/api/v1/{route}" + query.format(tmp=tmp_path))
        assert answer.status == status
        assert message is None or answer.error == message.format(tmp=tmp_path)


def test_a_broken_index_is_an_error(server, tmp_path):
    (tmp_path / "run.db").write_bytes(b"no database" * 500)
    answer = show(server, tmp_path)
    assert answer.status == 422 and answer.error


class Process(threading.Thread):
    """The control socket of a live process, as far as the server uses it."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.breakpoints, self.stop, self.attached, self.asked = [], None, False, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "control"))
        self.listener.listen()
        self.start()

    def answer(self, request):
        verb = request["do"]
        if verb not in ("state", "breakpoints"):
            self.asked.append(verb)
        if verb == "attach":
            self.attached = True
        if verb == "detach":
            self.attached, self.stop = False, None
        if verb == "break":
            if request["pattern"] == "[":
                return {"ok": False, "error": "no pattern: ["}
            self.breakpoints.append({"number": 1, "pattern": request["pattern"], "when": request.get("when"), "enabled": True, "hits": 1})
            self.stop = {"kind": "tensor", "name": "fc.output", "step": 3, "reason": "breakpoint 1"}
        if verb == "continue":
            self.stop = None
        state = {"state": "stopped" if self.stop else "running", **({"stop": self.stop} if self.stop else {})}
        return {"ok": True, **({"breakpoints": self.breakpoints} if verb == "breakpoints" else state)}

    def serve(self, client):
        for line in client.makefile():
            request = json.loads(line)
            client.sendall(json.dumps({"id": request["id"], **self.answer(request)}).encode() + b"\n")
        self.attached = False

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()


def ask(server, folder, **request):
    return server.post("/api/v1/run/control", {"path": str(folder), **request})


@pytest.mark.slow
def test_breakpoints_of_a_live_process(server, tmp_path):
    run = made(tmp_path / "run", pid=os.getpid())
    process = Process(run.folder)
    events = Events(server, run.folder)
    events.until(lambda n: n.get("control", {}).get("live"))
    assert not process.attached
    control = ask(server, run.folder, do="break", pattern="fc.*", when="nan").json["control"]
    assert process.attached and control["attached"] and control["state"] == "stopped"
    assert control["stop"]["name"] == "fc.output" and control["breakpoints"][0]["when"] == "nan"
    events.until(lambda n: n.get("control", {}).get("state") == "stopped")
    assert ask(server, run.folder, do="continue").json["control"]["state"] == "running"
    refused = ask(server, run.folder, do="break", pattern="[")
    assert refused.status >= 400 and "no pattern: [" in refused.error
    assert process.asked == ["attach", "break", "continue", "break"]
    ask(server, run.folder, do="detach")
    assert not process.attached
    ask(server, run.folder, do="attach")
    events.close()
    deadline = time.monotonic() + 20 * PATIENCE
    while process.attached and time.monotonic() < deadline:  # nobody looks any more: the model must not wait
        time.sleep(0.1)
    assert not process.attached
    run.close()


def test_control_of_what_is_not_live(server, tmp_path):
    made(tmp_path / "run").close()
    assert ask(server, tmp_path / "run", do="continue").status == 409
    assert ask(server, tmp_path / "run", do="format").status == 400
    assert ask(server, tmp_path, do="continue").status == 404
    assert ask(server, "/etc", do="continue").status == 403


def test_serve_opens_the_dashboard_of_a_run(serve, tmp_path):
    made(tmp_path / "a run").close()
    with serve(tmp_path / "a run") as server:
        assert server.url.endswith("/run?path=" + urllib.parse.quote(str(tmp_path / "a run")))
        assert server.get("/api/v1/status").json["run"] == str(tmp_path / "a run")


def test_a_crowded_run_is_bounded(server, tmp_path):
    """Many names, long names, many steps: the document stays small enough to send ten times a second."""
    run = Run(tmp_path / "run")
    run.db.executemany("INSERT INTO scalar (name, step, time_ns, value) VALUES (?, ?, ?, ?)",
                       [(f"scalar.{k}." + "x" * 200, s, s, -1.2345678e-30 * s) for s in range(600) for k in range(150)])
    one = np.float32([1.5])
    for step in range(130):
        for k in range(20):
            run.tensor(f"layers.{k}.weight.grad", one * (step + 1))
        run.step()
    run.spans([("/".join(f"scope{n}" + "y" * 300 for n in range(depth)), 0, 10) for depth in range(1, 30)])
    run.close()
    answer = show(server, run.folder)
    document = answer.json
    assert len(document["scalars"]) == 128 and len(answer.body) < 3_000_000
    assert document["gradients"][0]["points"][0] == [0, 6.0] and len(document["gradients"][0]["points"]) <= 64
    assert all(len(row["path"]) <= 1024 for row in document["layers"]["rows"])
    events = Events(server, run.folder)
    assert events.next()["serial"] == document["serial"]
    events.close()
