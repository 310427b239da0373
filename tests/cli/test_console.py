"""tdbg console over files: commands, scripts, errors, and a person at a terminal."""
import json
import subprocess

import numpy as np
import pytest
from built import ROOT

from terminal import Terminal


@pytest.fixture
def files(tmp_path):
    random = np.random.default_rng(3)
    tensors = {"layers.0.weight": random.standard_normal((6, 8)).astype("float32"), "layers.0.bias": np.arange(8.0),
               "wave": np.sin(np.arange(200) / 10), "bad": np.array([1, np.nan, np.inf, 2])}
    np.savez(tmp_path / "a.npz", **tensors)
    np.savez(tmp_path / "b.npz", **{**tensors, "layers.0.weight": tensors["layers.0.weight"] * 1.5})
    return tmp_path, tensors


def script(tdbg, folder, text, *options, status=0):
    """Output of a script from a file; its errors."""
    (folder / "script").write_text(text)
    done = tdbg.run("console", "--file", "script", *options, cwd=folder)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def test_look(tdbg, files):
    folder, tensors = files
    out, err = script(tdbg, folder, "# a comment\n\nopen a.npz\nls layers.*\ninspect layers.0.weight[0, :3]\nstats *.bias\n")
    assert err == ""
    assert out.startswith("a  a.npz  4 tensors\n")
    assert "wave" not in out
    assert "[0, :3] -> [3]" in out
    mean = tensors["layers.0.weight"][0, :3].astype("float64").mean()
    assert f"{mean:.5g}" in out
    assert f"{tensors['layers.0.bias'].mean():.5g}" in out


def test_same_as_the_commands(tdbg, files):
    """The console prints what the program's own commands print."""
    folder, _ = files
    out, _ = script(tdbg, folder, "stats\n", "a.npz", "-q")
    assert out == tdbg.text("stats", "a.npz", "-q", cwd=folder)
    out, _ = script(tdbg, folder, "slice layers.0.weight[1]\n", "a.npz", "-q")
    assert out == tdbg.text("show", "a.npz:layers.0.weight[1]", "-q", cwd=folder)
    out, _ = script(tdbg, folder, "diff\n", "a.npz", "b.npz", "-q")
    done = tdbg.run("diff", "a.npz", "b.npz", cwd=folder)
    assert done.returncode == 1 and out in (done.stdout, done.stdout.split("\n", 2)[2]) or "First divergence" in out


def test_json(tdbg, files):
    folder, tensors = files
    out, _ = script(tdbg, folder, "slice layers.0.bias[2:4]\n", "a.npz", "--json", "-q")
    assert json.loads(out)["values"] == tensors["layers.0.bias"][2:4].tolist()


def test_slice_into_a_file(tdbg, files):
    folder, tensors = files
    script(tdbg, folder, "slice layers.0.weight[1:3] -o part.npy\nslice layers.0.bias -o bias.csv\n", "a.npz")
    assert np.array_equal(np.load(folder / "part.npy"), tensors["layers.0.weight"][1:3])
    assert np.array_equal(np.loadtxt(folder / "bias.csv", delimiter=","), tensors["layers.0.bias"])


def test_hist(tdbg, files):
    folder, tensors = files
    out, _ = script(tdbg, folder, "hist wave -b 4\n", "a.npz")
    counts, _ = np.histogram(tensors["wave"], 4)
    lines = out.splitlines()[-4:]
    assert [int(line.split()[3]) for line in lines] == counts.tolist()


def test_diff_of_two_tensors(tdbg, files):
    folder, _ = files
    out, _ = script(tdbg, folder, "open a.npz b.npz\ndiff a:layers.0.weight b:layers.0.weight\n")
    assert "1 pair: 1 diverged" in out and "x 1.5" in out
    out, _ = script(tdbg, folder, "open a.npz b.npz\ndiff a:wave b:wave\n")
    assert "1 pair: 1 identical" in out


def test_plot_text(tdbg, files):
    folder, _ = files
    out, _ = script(tdbg, folder, "plot wave\nplot layers.0.weight\nplot bad\n", "a.npz")
    assert "values from -0.9" in out
    assert "a cell is the range of" in out
    assert "2 NaN or infinite (?)" in out
    rows = [line for line in out.splitlines() if line.lstrip()[:3] in tuple(f"{i} |" for i in range(6))]
    assert len(rows) >= 6   # one for each row of the weight


def test_plot_png(tdbg, files):
    folder, _ = files
    out, _ = script(tdbg, folder, "plot layers.0.weight -o w.png\nplot wave -o wave.png\n", "a.npz")
    assert "wrote w.png" in out
    for name in ("w.png", "wave.png"):
        data = (folder / name).read_bytes()
        assert data.startswith(b"\x89PNG\r\n") and data.rstrip().endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize("line, message", [
    ("inspect nothing", "tdbg: nothing: no tensor named 'nothing'; there are 4: layers.0.weight, layers.0.bias, wave, bad"),
    ("inspect", "tdbg: inspect: no TENSOR given (see 'help inspect')"),
    ("inspect wave[300]", "tdbg: wave[300]: index 300 is out of range"),
    ("inspekt wave", "tdbg: no command 'inspekt'; did you mean 'inspect'?"),
    ("slice wave -o x.txt", "tdbg: slice: -o takes a .npy or a .csv file (see 'help slice')"),
    ("stats none*", "tdbg: none*: no tensor fits 'none*'"),
    ("inspect 'wave", "tdbg: a quote is not closed, or there are more than 64 words"),
    ("open nowhere.npz", "tdbg: nowhere.npz: cannot open: No such file or directory"),
    ("break x", "tdbg: no live run ('attach RUN' finds one)"),
    ("where", "tdbg: no live run ('attach RUN' finds one)"),
    ("break", "tdbg: break: a pattern of tensor or scope names is missing (see 'help break')"),
    ("attach .", "tdbg: .: no process records this run"),
])
def test_errors(tdbg, files, line, message):
    folder, _ = files
    out, err = script(tdbg, folder, f"{line}\nls\n", "a.npz", "-q", status=2)
    assert err.splitlines()[0].startswith(message)
    assert len(err.splitlines()) == 1
    assert out == ""   # the first error ends a script
    out, err = script(tdbg, folder, f"{line}\nls\n", "a.npz", "-q", "--keep-going", status=2)
    assert "wave" in out and len(err.splitlines()) == 1


def test_ambiguous_name(tdbg, files):
    folder, _ = files
    _, err = script(tdbg, folder, "inspect wave\n", "a.npz", "b.npz", "-q", status=2)
    assert err == "tdbg: wave: both a and b have it: say a:wave or b:wave\n"


def test_standard_input(tdbg, files):
    folder, _ = files
    (folder / "script").write_text("ls\nquit\nno such command\n")
    with open(folder / "script") as stdin:
        done = tdbg.run("console", "a.npz", "-q", cwd=folder, stdin=stdin)
    assert done.returncode == 0 and "wave" in done.stdout


def test_help_of_every_command(tdbg, files):
    folder, _ = files
    out, _ = script(tdbg, folder, "help\n")
    names = [line.split()[0] for line in out.split("\n\n")[0].splitlines()]
    assert {"open", "ls", "inspect", "stats", "slice", "hist", "diff", "plot", "break", "step", "quit"} <= set(names)
    for name in names:
        out, _ = script(tdbg, folder, f"help {name}\n")
        assert out.startswith(name) and len(out.splitlines()) > 3, name


@pytest.mark.native   # other compilers may round the demo otherwise
def test_docs(tdbg, tmp_path):
    """The session over files in docs/console.md is what the console prints."""
    page = (ROOT / "docs" / "console.md").read_text()
    session = page.split("    $ tdbg console port/a port/b\n")[1].split("\n\n")[0]
    lines = [line[4:] for line in session.splitlines()]
    subprocess.run([tdbg.binary.parent / "examples" / "tiny_transformer", "port", "--bug", "rope-interleaved", "--from", "2"],
                   cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    typed = "".join(line[6:] + "\n" for line in lines if line.startswith("tdbg> "))
    out, _ = script(tdbg, tmp_path, typed, "port/a", "port/b")
    assert out.splitlines() == [line for line in lines if not line.startswith("tdbg> ")]


def test_commands_are_documented(tdbg, files):
    folder, _ = files
    page = (ROOT / "docs" / "console.md").read_text()
    out, _ = script(tdbg, folder, "help\n")
    for name in (line.split()[0] for line in out.split("\n\n")[0].splitlines()):
        assert f"`{name}" in page or name == "quit", name


# --- at a terminal ---------------------------------------------------------------------------------------------


def console(tdbg, folder, *args):
    return Terminal([tdbg.binary, "console", *args], env={"XDG_DATA_HOME": str(folder / "data"), "HOME": str(folder)}, cwd=folder)


def test_a_person(tdbg, files):
    folder, _ = files
    with console(tdbg, folder, "a.npz") as t:
        t.expect("tdbg> ")
        t.type("insp\tlayers.0.w\t\n")   # both are completed
        assert "layers.0.weight  float32 [6, 8]" in t.expect("inspect layers.0.weight") + t.expect("tdbg> ")
        t.type("stats layers.0.\t")
        assert "layers.0.weight" in t.expect("layers.0.bias")   # both fit: they are listed
        t.type("\x03")
        t.expect("tdbg> ")
        t.type("nonsense\n")
        t.expect("no command 'nonsense'")
        t.expect("tdbg> ")
        t.type("\x04")
        assert t.ends() == 0
    with console(tdbg, folder, "a.npz") as t:   # the history is remembered
        t.expect("tdbg> ")
        t.type("\x1b[A\x1b[A\n")
        t.expect("inspect layers.0.weight")
        t.expect("tdbg> ")
        t.type("quit\n")
        assert t.ends() == 0
    assert (folder / "data" / "tdbg" / "history").exists()


def test_interrupt_stops_the_command(tdbg, tmp_path):
    """Ctrl-C while a large tensor is printed gives the prompt back."""
    np.save(tmp_path / "large.npy", np.zeros(30_000_000, "float32"))
    with console(tdbg, tmp_path, "large.npy") as t:
        t.expect("tdbg> ")
        t.type("slice large.npy --all\n")
        t.expect("0.")
        t.interrupt()
        t.expect("interrupted", timeout=30)
        t.expect("tdbg> ")
        t.type("ls\n")
        t.expect("30000000")
        t.expect("tdbg> ")
        t.type("\x04")
        assert t.ends() == 0
