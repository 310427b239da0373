"""A live run: its control socket, breakpoints, the console that attaches to it. The model's output stays the same."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from built import BINARY, PATIENCE, ROOT
from recording import Talking

from terminal import Terminal

pytestmark = pytest.mark.native  # the model is a Python that loads the library; tests/unit/test_control.c is for sanitizers

MODEL = ROOT / "tests" / "livemodel.py"
LIBRARY = BINARY.parent / "libtdbg.so"
ENDLESS = 100_000  # steps: it runs until the test is over, however long that takes


class Model:
    """tests/livemodel.py in a process of its own."""

    def __init__(self, folder, steps=6, bug="", wait=True, pause=0.0, env=None):
        self.folder = pathlib.Path(folder)
        environment = {**os.environ, "TDBG_LIBRARY": str(LIBRARY), "PAUSE": str(pause), **(env or {})}
        if wait:
            environment["TDBG_WAIT"] = "1"
        self.process = subprocess.Popen([sys.executable, str(MODEL), str(folder), str(steps), bug], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: list(self.folder.glob("**/control")) or self.process.poll() is not None)
        if wait:   # until it does
            client = self.client()
            until(lambda: client.ask("state")["state"] == "stopped")
            client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def output(self):
        """What it printed, once it has ended well."""
        out, _ = self.process.communicate(timeout=30 * PATIENCE)
        assert self.process.returncode == 0, out
        return out

    def client(self):
        return Client(self.folder)


class Client:
    """One end of the control socket, spoken to by hand."""

    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20 * PATIENCE)
        here = os.open(folder, os.O_PATH)
        until(lambda: self.socket.connect_ex(f"/proc/self/fd/{here}/control") == 0)   # the queue may be full
        os.close(here)
        self.lines = self.socket.makefile("r")
        self.events = []
        self.id = 0

    def ask(self, verb, **parameters):
        self.id += 1
        self.socket.sendall(json.dumps({"id": self.id, "do": verb, **parameters}).encode() + b"\n")
        while True:
            line = json.loads(self.lines.readline())
            if "event" not in line:
                assert line["id"] == self.id
                return line
            self.events.append(line)

    def event(self, kind):
        """The next event of that kind."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if event["event"] == kind:
                    return event
            self.events.append(json.loads(self.lines.readline()))

    def close(self):
        self.lines.close()
        self.socket.close()


def until(what, timeout=20):
    end = time.monotonic() + timeout * PATIENCE
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def script(tdbg, folder, text, status=0):
    path = folder.parent / "script"
    path.write_text(text)
    done = tdbg.run("console", folder, "--file", path)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The output of a model that nobody stops."""
    with Model(tmp_path_factory.mktemp("plain") / "run", wait=False) as model:
        return model.output()


# --- the console -----------------------------------------------------------------------------------------------


def test_a_session(tdbg, tmp_path, plain):
    """Attach, list, break, continue, hit, inspect, stats, step, watch, detach, re-attach; the model computes the same."""
    with Model(tmp_path / "run", pause=0.3) as model:
        command = [tdbg.binary, "console", tmp_path / "run"]
        with Terminal(command, env={"XDG_DATA_HOME": str(tmp_path)}, columns=160) as t:
            assert "attached to" in t.expect("tdbg> ")

            def say(line):
                t.type(line + "\n")
                return t.expect("tdbg> ")

            assert "embed.output" in say("seen")
            assert "breakpoint 1 at layers.1.output" in say("break layers.1.output")
            assert "watch 1" in say("watch absmax(layers.0.output)")
            text = say("continue")
            assert "stopped at layers.1.output  float32 [4, 8]  step 0: breakpoint 1" in text
            assert "step 0  absmax(layers.0.output) = " in text
            assert "layers.1.output  float32 [4, 8]" in say("inspect .")
            assert "absmax" in say("stats layers.1.output[0]")
            assert "layers.1\n" in say("where")
            assert "stopped at layers.2.hidden" in say("step")
            assert "stopped at layers.2.output" in say("next")
            assert "layers.1.output" in say("info breakpoints")
            assert "detached" in say("detach")
            assert "attached to" in say(f"attach {tmp_path / 'run'}")
            assert "stopped at layers.1.output" in say("continue")
            assert "the model runs on" in say("detach --clear")
            t.type("\x04")
            assert t.ends() == 0
        assert model.output() == plain


def test_another_console_goes_on_meanwhile(tdbg, tmp_path, plain):
    """What is shown is where the run is now, and a command waits for its own stop, not for one that is over."""
    with Model(tmp_path / "run") as model:
        other = model.client()
        other.ask("attach")
        other.ask("break", pattern="layers.1.output")

        def go_on():
            other.events.clear()
            other.ask("continue")
            return other.event("stop")["step"]

        with Terminal([tdbg.binary, "console", tmp_path / "run"], env={"XDG_DATA_HOME": str(tmp_path)}, columns=160) as t:
            t.expect("tdbg> ")

            def say(line):
                t.type(line + "\n")
                return [text for text in t.expect("tdbg> ").splitlines() if text.startswith("stopped at")][-1].split(":")[0]

            assert [go_on(), go_on()] == [0, 1]
            assert say("where") == "stopped at layers.1.output  float32 [4, 8]  step 1"
            assert go_on() == 2
            assert say("continue") == "stopped at layers.1.output  float32 [4, 8]  step 3"
            t.type("detach --clear\n")
            t.expect("the model stays stopped for others")
            t.type("\x04")
            assert t.ends() == 0
        other.close()
        assert model.output() == plain


def test_who_leaves_is_told_that_others_hold_the_model(tdbg, tmp_path, plain):
    with Model(tmp_path / "run") as model:
        other = model.client()
        other.ask("attach")
        assert "the model stays stopped for others" in script(tdbg, tmp_path / "run", "detach\n")
        other.ask("detach")
        other.close()
        assert model.output() == plain


def test_the_console_dies(tdbg, tmp_path, plain):
    """A model never waits for somebody who is gone."""
    with Model(tmp_path / "run") as model:
        with Terminal([tdbg.binary, "console", tmp_path / "run"], env={"XDG_DATA_HOME": str(tmp_path)}) as t:
            t.expect("stopped at embed.output")
            t.process.kill()
        assert model.output() == plain


def test_interrupt_while_the_model_runs(tdbg, tmp_path, plain):
    with Model(tmp_path / "run", pause=0.4) as model:
        with Terminal([tdbg.binary, "console", tmp_path / "run"], env={"XDG_DATA_HOME": str(tmp_path)}) as t:
            t.expect("tdbg> ")
            t.type("continue\n")
            client = model.client()
            until(lambda: client.ask("state")["state"] == "running")
            client.close()
            t.interrupt()
            t.expect("the model runs on")
            t.expect("tdbg> ")
            t.type("step\n")
            t.expect("stopped at")
            t.expect("tdbg> ")
            t.type("quit\n")
            assert t.ends() == 0
        assert model.output() == plain


def test_values_of_memory_and_of_files(tdbg, tmp_path):
    """The stopped tensor comes from memory, an earlier one from the run's files, both bit for bit."""
    run = tmp_path / "run"
    with Model(run) as model:
        client = model.client()
        client.ask("attach")
        client.ask("break", pattern="layers.2.output")
        for _ in range(2):
            client.ask("continue")
            assert client.event("stop")["name"] == "layers.2.output"
        until(lambda: "layers.0.output" in tdbg.run("ls", run).stdout)   # step 0 is on its way to the disk
        out = script(tdbg, run, f"""slice . -o {tmp_path}/now.npy
slice .[1:3, ::2] -o {tmp_path}/part.npy
slice layers.0.output -o {tmp_path}/before.npy
hist . -b 4
plot .
""")
        client.ask("detach", clear="yes")
        model.output()
    now = recorded(tdbg, run, 1, "layers.2.output")
    assert np.array_equal(np.load(tmp_path / "now.npy"), now)
    assert np.array_equal(np.load(tmp_path / "part.npy"), now[1:3, ::2])
    assert np.array_equal(np.load(tmp_path / "before.npy"), recorded(tdbg, run, 0, "layers.0.output"))
    assert "the run did not stop there: as recorded in the last finished step" in out


def recorded(tdbg, run, step, name):
    """Values that the run has on disk."""
    return np.array(tdbg.json("show", run / f"step-{step:08}.safetensors:{name}")["values"], "float32")


def test_diverges_from(tdbg, tmp_path):
    """The live run stops at the module that tdbg diff names."""
    for name, bug in (("good", ""), ("bad", "1")):
        with Model(tmp_path / name, bug=bug, wait=False) as model:
            model.output()
    first = tdbg.json("diff", tmp_path / "good", tmp_path / "bad", status=1)["first_divergence"]
    with Model(tmp_path / "run", bug="1") as model:
        out = script(tdbg, tmp_path / "run", f"break * if diverges-from {tmp_path}/good\ncontinue\n")
        model.output()
    stopped = [line for line in out.splitlines() if "diverges from" in line and line.startswith("stopped at")]
    assert len(stopped) == 1
    assert stopped[0].split()[2] == "layers.1.output" and "step 0" in stopped[0]
    assert first["name"].endswith("layers.1.output") and first["layer"] == 1


def test_diverges_from_what_agrees(tdbg, tmp_path):
    with Model(tmp_path / "good", wait=False) as model:
        model.output()
    with Model(tmp_path / "run") as model:
        assert "the run has ended" in script(tdbg, tmp_path / "run", f"break * if diverges-from {tmp_path}/good\ncontinue\n")
        model.output()


def test_a_run_that_ended_is_read_whole(tdbg, tmp_path):
    """It says goodbye before its last step is on disk."""
    with Model(tmp_path / "run") as model:
        out = script(tdbg, tmp_path / "run", "continue\nls\n")
        model.output()
    assert out.splitlines()[-1] == tdbg.text("ls", tmp_path / "run").splitlines()[-1]


def test_diverges_from_statistics(tdbg, tmp_path):
    with Model(tmp_path / "good", wait=False, env={"TDBG_CAPTURE": "*=stats"}) as model:
        model.output()
    with Model(tmp_path / "run") as model:
        (tmp_path / "script").write_text(f"break * if diverges-from {tmp_path}/good\n")
        done = tdbg.run("console", tmp_path / "run", "--file", tmp_path / "script")
        assert done.returncode == 2
        assert done.stderr == f"tdbg: {tmp_path}/good: no values recorded: only statistics\n"
        model.output()


def test_environment(tdbg, tmp_path, plain):
    """TDBG_BREAK stops without a console, and waits for one."""
    with Model(tmp_path / "run", bug="nan", wait=False, env={"TDBG_BREAK": "layers.* if nan > 0; nowhere"}) as model:
        client = model.client()
        until(lambda: client.ask("state")["state"] == "stopped")
        client.close()   # it only asked: the model still waits
        out = script(tdbg, tmp_path / "run", "where\ninfo breakpoints\ndetach --clear\n")
        assert "stopped at layers.1.output  float32 [4, 8]  step 2: breakpoint 1: nan 1 > 0" in out
        model.output()


def test_bad_environment(tmp_path):
    with Model(tmp_path / "run", wait=False, env={"TDBG_BREAK": "x if madness"}) as model:
        out, _ = model.process.communicate(timeout=20 * PATIENCE)
        assert model.process.returncode != 0


def test_capture(tdbg, tmp_path):
    with Model(tmp_path / "run") as model:
        script(tdbg, tmp_path / "run", "tbreak layers.0.hidden if count > 0\ncapture *=none\ncontinue\n")
        model.output()
    names = [t["name"] for t in tdbg.json("ls", tmp_path / "run")["tensors"]] if list((tmp_path / "run").glob("step*")) else []
    assert not [name for name in names if name.endswith("layers.2.output")]


def test_not_stopped(tdbg, tmp_path):
    with Model(tmp_path / "run", steps=ENDLESS, wait=False, pause=0.1):
        (tmp_path / "script").write_text("inspect .[0]\n")
        done = tdbg.run("console", tmp_path / "run", "--file", tmp_path / "script")
        assert (done.returncode, done.stderr) == (2, "tdbg: .[0]: the run is not stopped ('step' stops it)\n")


def test_a_dead_model(tdbg, tmp_path):
    """A run whose process was killed is looked at as files, whatever it left behind."""
    with Model(tmp_path / "run", steps=ENDLESS, wait=False, pause=0.1) as model:
        until(lambda: list((tmp_path / "run").glob("step-*1.safetensors")))
        model.process.kill()
        model.process.wait()
    assert (tmp_path / "run" / "control").exists()
    out = script(tdbg, tmp_path / "run", "stats step-0/layers.1.output\n")
    assert out.startswith(f"a  {tmp_path}/run  ") and "layers.1.output" in out


def test_the_model_dies_under_the_console(tdbg, tmp_path):
    """What it recorded is looked at as files."""
    run = tmp_path / "run"
    with Model(run) as model:
        with Terminal([tdbg.binary, "console", run], env={"XDG_DATA_HOME": str(tmp_path)}, columns=160) as t:
            t.expect("tdbg> ")

            def say(line):
                t.type(line + "\n")
                return t.expect("tdbg> ")

            say("break layers.1.output")
            say("continue")
            say("continue")
            until(lambda: "layers.0.output" in tdbg.run("ls", run).stdout)   # step 0 is on its way to the disk
            model.process.kill()
            model.process.wait()
            say("where")
            listed = say("ls")
            assert f"a  {run}  9 tensors" in listed and "layers.2.output" in listed
            assert "absmax" in say("stats layers.2.output")
            t.type("\x04")
            assert t.ends() == 0


def test_ranks(tdbg, tmp_path):
    """Of a run of several ranks the first is attached to."""
    with Model(tmp_path / "run", steps=ENDLESS, wait=False, pause=0.1, env={"RANK": "0", "WORLD_SIZE": "2"}):
        until(lambda: (tmp_path / "run" / "rank-0" / "control").exists())
        assert f"attached to {tmp_path}/run/rank-0" in script(tdbg, tmp_path / "run", "step\nwhere\n")


# --- the socket ------------------------------------------------------------------------------------------------


def test_breakpoints(tmp_path, plain):
    with Model(tmp_path / "run") as model:
        c = model.client()
        assert c.ask("attach")["stop"]["name"] == "embed.output"
        number = c.ask("break", pattern="layers.*.output", when="std > 0.1")["number"]
        once = c.ask("break", pattern="layers.0.hidden", once="yes")["number"]
        c.ask("continue")
        assert c.event("stop")["breakpoint"] == once
        c.ask("continue")
        stop = c.event("stop")
        assert stop["breakpoint"] == number and stop["name"] == "layers.0.output" and stop["scopes"] == ["layers.0"]
        assert stop["stats"]["std"] > 0.1
        listed = c.ask("breakpoints")["breakpoints"]
        assert [(b["number"], b["hits"], b["enabled"]) for b in listed] == [(number, 1, True)]
        assert c.ask("disable", number=str(number))["ok"]
        assert c.ask("break", pattern="layers.2.output")["ok"]
        c.ask("continue")
        assert c.event("stop")["name"] == "layers.2.output"
        assert c.ask("enable", number=number)["ok"]
        c.ask("continue")
        stop = c.event("stop")
        assert (stop["name"], stop["step"]) == ("layers.0.output", 1)
        assert not c.ask("delete", number="99")["ok"]
        c.ask("detach", clear="yes")
        assert model.output() == plain


def test_scopes_and_next(tmp_path):
    with Model(tmp_path / "run") as model:
        c = model.client()
        c.ask("attach")
        c.ask("break", pattern="layers.1")
        c.ask("continue")
        stop = c.event("stop")
        assert (stop["kind"], stop["name"], stop["scopes"]) == ("scope", "layers.1", [])
        assert "at a scope" in c.ask("fetch")["error"]
        c.ask("next")   # over the scope
        stop = c.event("stop")
        assert (stop["kind"], stop["name"]) == ("scope", "layers.2")
        c.ask("step")   # into it
        assert c.event("stop")["name"] == "layers.2.hidden"
        c.close()


@pytest.mark.parametrize("after, scopes", [([], ["model"]), (["end"], []), (["end", "begin next", "begin inner"], ["next", "inner"]),
                                           (["begin inner", "begin x", "end"], ["model", "inner"])])
def test_scopes_that_had_begun_before(tmp_path, after, scopes):
    """Where a stop is, is known in whole, whenever somebody attached."""
    (tmp_path / "x").write_bytes(bytes(4))
    with Talking(tmp_path / "run") as program:
        program.say("begin model", "step 1", "scalar x 0 1", "step 2", "saved 1")
        assert program.hear() == "saved 1"   # it is within the scope
        c = Client(tmp_path / "run")
        c.ask("attach")
        c.ask("break", pattern="x")
        program.say(*after, f"tensor x float32 1 - {tmp_path}/x")
        assert c.event("stop")["scopes"] == scopes
        assert c.ask("state")["stop"]["scopes"] == scopes
        c.close()


@pytest.mark.parametrize("when, message", [
    ("madness", "no statistic 'madness'"),
    ("absmax", "'absmax' is compared with < or > and a number"),
    ("absmax > much", "a number is missing after 'absmax >'"),
    ("nan and inf", "'and inf' is not understood: tests are joined by 'or'"),
    ("nan or", "a test is missing after 'or'"),
    ("diverges-from /nowhere/run", "/nowhere/run: "),
    ("diverges-from", "diverges-from takes the folder of an earlier run"),
])
def test_bad_conditions(tmp_path, when, message):
    with Model(tmp_path / "run") as model:
        answer = model.client().ask("break", pattern="*", when=when)
        assert not answer["ok"] and answer["error"].startswith(message)


def test_a_hit_without_anybody(tdbg, tmp_path, plain):
    """Breakpoints that somebody left behind are noted, and hold nothing."""
    with Model(tmp_path / "run", pause=0.05) as model:
        c = model.client()
        c.ask("attach")
        c.ask("break", pattern="layers.1.output")
        c.ask("detach")
        assert model.output() == plain
    import sqlite3
    notes = sqlite3.connect(tmp_path / "run" / "run.db").execute("SELECT text FROM note WHERE kind = 'break'").fetchall()
    assert ("layers.1.output: breakpoint 1",) in notes


def test_several_clients(tmp_path, plain):
    with Model(tmp_path / "run") as model:
        one, two = model.client(), model.client()
        one.ask("attach")
        two.ask("attach")
        one.ask("break", pattern="layers.2.output")
        two.ask("continue")
        assert one.event("stop")["name"] == two.event("stop")["name"] == "layers.2.output"
        one.close()   # the other one still looks
        assert two.ask("state")["state"] == "stopped"
        two.close()
        assert model.output() == plain


def test_hostile_clients(tmp_path, plain):
    """Whatever is sent, the model runs and others are served."""
    with Model(tmp_path / "run") as model:
        good = model.client()
        good.ask("attach")
        for garbage in (b"\n", b"{}\n", b"[1, 2]\n", b"null\n", b"\x00\xff\xfe\n", b"{" * 5000 + b"\n", b'{"do": 5}\n', b'{"do": "fetch"',
                        b"x" * 200_000):
            bad = model.client()
            try:
                bad.socket.sendall(garbage)
            except OSError:
                pass
            bad.close()
        hoard = [model.client() for _ in range(14)]
        for _ in range(20):   # asks and never reads
            hoard[0].socket.sendall(b'{"id": 1, "do": "fetch"}\n')
        for _ in range(20):   # more than there are places
            model.client().close()
        assert good.ask("state")["state"] == "stopped"
        good.ask("continue")
        assert model.output() == plain


def test_only_the_owner(tmp_path):
    with Model(tmp_path / "run") as model:
        assert (tmp_path / "run" / "control").stat().st_mode & 0o777 == 0o600
        assert model.process.poll() is None


def test_a_long_path(tdbg, tmp_path):
    folder = tmp_path / ("x" * 120) / ("y" * 120)
    with Model(folder / "run") as model:
        assert "attached to" in script(tdbg, folder / "run", "where\n")
        model.output()
    assert not (folder / "run" / "control").exists()
