"""The command line itself: options, help, mistakes, streams that break, Ctrl-C."""
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

import numpy as np
import pytest
from built import PATIENCE, ROOT

COMMANDS = ["diff", "batch", "serve", "ls", "show", "stats", "check", "console", "profile", "memory", "export"]


def test_overview(tdbg):
    overview = tdbg.text("--help")
    assert tdbg.text("help") == tdbg.text("-h") == overview
    listed = re.findall(r"^  ([a-z]+) +[A-Z]", overview, re.M)
    described = re.findall(r"^\| `tdbg ([a-z]+)", (ROOT / "README.md").read_text(), re.M)
    assert listed == COMMANDS == list(dict.fromkeys(described))
    assert max(map(len, overview.splitlines())) <= 105


@pytest.mark.parametrize("command", COMMANDS)
def test_help(tdbg, command):
    text = tdbg.text(command, "--help")
    assert text == tdbg.text("help", command) == tdbg.text(command, "-h", "whatever")
    assert text.startswith(f"Usage: tdbg {command} ")
    options, rest = text.split("Options:\n")[1].split("\n\n", 1)
    assert "\nExamples:\n" in rest and re.search(rf"^  (echo .* \| )?tdbg {command} ", rest.split("\nExamples:\n")[1], re.M)
    assert max(map(len, text.splitlines())) <= 105
    columns = {re.match(r"  (?:-\w,|   ) --[a-z-]+(?: [A-Z=]+)? {2,}", line).end() for line in options.splitlines() if "--" in line[:8]}
    assert len(columns) == 1, "the explanations stand below each other"


def test_help_fits_a_narrow_terminal(tdbg):
    options = tdbg.text("diff", "--help", env={"COLUMNS": "60"}).split("Options:\n")[1].split("\n\n")[0]
    assert max(map(len, options.splitlines())) <= 60


def test_version(tdbg):
    assert re.fullmatch(r"tdbg \d+\.\d+\.\d+\n", tdbg.text("--version"))


@pytest.mark.parametrize(
    "args, message",
    [
        ([], "tdbg: no command given (see 'tdbg --help')"),
        (["sttas"], "tdbg: no command 'sttas'; did you mean 'stats'?"),
        (["frobnicate"], "tdbg: no command 'frobnicate' (see 'tdbg --help')"),
        (["--frobnicate"], "tdbg: no option '--frobnicate' (see 'tdbg --help')"),
        (["help", "nope"], "tdbg: no command 'nope' (see 'tdbg --help')"),
        (["ls"], "tdbg: ls: no PATH given (see 'tdbg ls --help')"),
        (["stats"], "tdbg: stats: no PATH given (see 'tdbg stats --help')"),
        (["show"], "tdbg: show: no TENSOR given (see 'tdbg show --help')"),
        (["show", "a", "b"], "tdbg: show: one TENSOR at a time (see 'tdbg show --help')"),
        (["ls", "--jsn"], "tdbg: ls: unknown option '--jsn'; did you mean --json? (see 'tdbg ls --help')"),
        (["ls", "-x"], "tdbg: ls: unknown option '-x' (see 'tdbg ls --help')"),
        (["ls", "--json=1"], "tdbg: ls: --json takes no value (see 'tdbg ls --help')"),
        (["show", "--count"], "tdbg: show: --count needs a value (N) (see 'tdbg show --help')"),
        (["show", "--count", "ten"], "tdbg: show: --count takes a number, not 'ten' (see 'tdbg show --help')"),
        (["show", "--count=-1"], "tdbg: show: --count takes a number, not '-1' (see 'tdbg show --help')"),
    ],
)
def test_mistakes(tdbg, args, message):
    assert tdbg.fails(*args) == message


def test_options_anywhere(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    path = str(tmp_path / "a.npy")
    expected = tdbg.text("show", "--json", "--count", "2", path)
    for args in (["--count=2", path, "--json"], [path, "--json", "-n", "2"], ["-n2", "--json", "--", path]):
        assert tdbg.text("show", *args) == expected
    (tmp_path / "-dash.npy").write_bytes((tmp_path / "a.npy").read_bytes())
    done = subprocess.run([tdbg.binary, "ls", "--", "-dash.npy"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "-dash.npy" in done.stdout


@pytest.mark.parametrize("name, value", [("TDBG_THREADS", "many"), ("TDBG_THREADS", "0"), ("TDBG_CPU", "vax")])
def test_bad_environment(tdbg, tmp_path, name, value):
    np.save(tmp_path / "a.npy", np.arange(3))
    assert tdbg.fails("stats", tmp_path / "a.npy", env={name: value}).startswith(f"tdbg: {name}={value}: ")


def test_no_colours_unless_a_terminal(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([np.nan]))
    assert "\033" not in tdbg.text("stats", tmp_path / "a.npy", env={"NO_COLOR": ""})


def on_terminal(tdbg, args, env, interrupt_at=None):
    """Runs with stdout and stderr on a terminal; its output and exit status. Ctrl-C comes once it shows `interrupt_at`."""
    master, slave = pty.openpty()
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", **env}
    process = subprocess.Popen([tdbg.binary, *map(str, args)], stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    output = b""
    while True:
        try:
            output += os.read(master, 65536)
        except OSError:  # everybody on the other side is gone
            break
        if interrupt_at and re.search(interrupt_at, output.decode(errors="ignore")):
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    os.close(master)
    return output.decode(), process.wait(timeout=60)


def test_colours_on_a_terminal(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([np.nan]))
    output, status = on_terminal(tdbg, ["stats", tmp_path / "a.npy"], {"NO_COLOR": ""})
    assert status == 0 and "\033[31m1\033[0m" in output
    output, status = on_terminal(tdbg, ["stats", tmp_path / "a.npy"], {"NO_COLOR": "1"})
    assert status == 0 and "\033" not in output


def huge(path):
    """8 GiB of zeros that take no room on the disk."""
    header = np.lib.format
    with open(path, "wb") as file:
        header.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 31,)})
        file.truncate(file.tell() + (8 << 30))
    return path


def await_handler(process, number):
    """Until the process catches the signal, which it does before it begins to work."""
    late = time.monotonic() + 30 * PATIENCE
    while time.monotonic() < late and process.poll() is None:
        caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M)
        if int(caught[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.01)


def test_interrupt(tdbg, tmp_path):
    big = huge(tmp_path / "big.npy")
    for args in (["stats", big], ["show", "--json", big], ["show", big, "--csv", tmp_path / "out.csv"]):
        process = subprocess.Popen(
            [tdbg.binary, *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        await_handler(process, signal.SIGINT)
        assert process.poll() is None, "over before it could be interrupted"
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (130, "")
        assert time.monotonic() - started < 10
    assert [p.name for p in tmp_path.iterdir()] == ["big.npy"]


def test_progress_and_a_clean_terminal(tdbg, tmp_path):
    big = huge(tmp_path / "big.npy")
    output, status = on_terminal(tdbg, ["stats", big], {"COLUMNS": "80"}, interrupt_at="statistics  [▏▎▍▌▋▊▉█]+ +[0-9]+ %")
    assert status == 130
    assert output.endswith("\r\033[K")
    frames = output.split("\r\033[K")
    assert all(len(frame) < 80 for frame in frames)


def test_a_reader_that_goes_away(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(1_000_000))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{tdbg.binary}' show --all '{tmp_path}/a.npy' | head -c 100"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == "" and len(done.stdout) == 100


def test_a_reader_that_goes_away_where_nobody_kills(tdbg, tmp_path):
    """With SIGPIPE ignored the write fails instead; the work must stop all the same."""
    process = subprocess.Popen(
        [tdbg.binary, "show", "--json", huge(tmp_path / "big.npy")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN),
        restore_signals=False,
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 2


@pytest.mark.parametrize(
    "args", [["ls"], ["ls", "--json"], ["show"], ["show", "--json"], ["stats"], ["stats", "--json"], ["--help"]]
)
def test_a_full_disk(tdbg, tmp_path, args):
    np.save(tmp_path / "a.npy", np.arange(100_000))
    operands = [] if args == ["--help"] else [str(tmp_path / "a.npy")]
    with open("/dev/full", "w") as full:
        done = subprocess.run([tdbg.binary, *args, *operands], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "tdbg: standard output: cannot write: No space left on device\n"
