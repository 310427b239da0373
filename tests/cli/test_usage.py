"""The command line itself: options, help, mistakes, streams that break, Ctrl-C."""
import os
import pty
import re
import signal
import subprocess
import time

import numpy as np
import pytest

COMMANDS = ["ls", "show", "stats"]


def test_overview_and_help(tdbg):
    overview = tdbg.text("--help")
    assert tdbg.text("help") == overview
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", overview, re.M)
        text = tdbg.text(command, "--help")
        assert text == tdbg.text("help", command) == tdbg.text(command, "-h", "whatever")
        assert text.startswith(f"Usage: tdbg {command} ") and f"  tdbg {command} " in text
        assert max(map(len, text.splitlines())) <= 110
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


def on_terminal(tdbg, args, env, interrupt_after=None):
    """Runs with stdout and stderr on a terminal; its output and exit status."""
    master, slave = pty.openpty()
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", **env}
    process = subprocess.Popen([tdbg.binary, *map(str, args)], stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    if interrupt_after:
        time.sleep(interrupt_after)
        process.send_signal(signal.SIGINT)
    output = b""
    while True:
        try:
            output += os.read(master, 65536)
        except OSError:  # everybody on the other side is gone
            break
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


def test_interrupt(tdbg, tmp_path):
    big = huge(tmp_path / "big.npy")
    for args in (["stats", big], ["show", "--json", big], ["show", big, "--csv", tmp_path / "out.csv"]):
        process = subprocess.Popen(
            [tdbg.binary, *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        time.sleep(0.3)
        assert process.poll() is None, "over before it could be interrupted"
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (130, "")
        assert time.monotonic() - started < 10
    assert [p.name for p in tmp_path.iterdir()] == ["big.npy"]


def test_progress_and_a_clean_terminal(tdbg, tmp_path):
    big = huge(tmp_path / "big.npy")
    output, status = on_terminal(tdbg, ["stats", big], {"COLUMNS": "80"}, interrupt_after=1.0)
    assert status == 130
    assert re.search("statistics  [▏▎▍▌▋▊▉█]+ +[0-9]+ %", output)
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
