"""examples/gpt.py as docs/python.md shows it: recorded twice, compared, profiled, stopped where it goes wrong."""
import os
import subprocess
import sys
import time

import pytest
from built import PATIENCE, ROOT

DOC = " ".join((ROOT / "docs" / "python.md").read_text().split())


def example(folder, *arguments, **environment):
    return subprocess.Popen([sys.executable, ROOT / "examples" / "gpt.py", "runs/" + arguments[0], *arguments[1:]],
                            cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    for arguments in (["reference"], ["port", "--bug"]):
        process = example(folder, *arguments)
        said = process.communicate(timeout=120 * PATIENCE)[0]
        assert process.returncode == 0 and said.startswith("3 steps, loss 3.2")
    return folder


def shown(text):
    """Words that the document shows, too."""
    assert text in DOC, text
    return text


def test_diff_names_module_and_mistake(tdbg, folder):
    out = tdbg.text("diff", "runs/reference", "runs/port", status=1, cwd=folder)
    assert shown("First divergence: layer 2, attn.scores.output.") in out
    assert shown("It looks like scale") in " ".join(out.split())
    assert shown("x 0.25 = 1/4") in " ".join(out.split())


def test_profile_shows_the_modules(tdbg, folder):
    out = tdbg.text("profile", "runs/reference", cwd=folder)
    assert shown("layers.2.attn.qkv") in out and shown("GPT") in out


def test_a_live_run_stops_at_the_same_module(tdbg, folder):
    live = example(folder, "live", "--bug", TDBG_WAIT="1")
    try:
        late = time.monotonic() + 60 * PATIENCE
        while not (folder / "runs/live/control").exists():
            assert time.monotonic() < late
            time.sleep(0.05)
        script = folder / "script"
        script.write_text(shown("break * if diverges-from runs/reference") + "\ncontinue\nwhere\ndelete 1\n")
        out = tdbg.text("console", "runs/live", "--file", script, cwd=folder)
        assert shown("stopped at layers.2.attn.scores.output") in out
        assert live.communicate(timeout=60 * PATIENCE)[0].startswith("3 steps"), "goes on when the console leaves"
        assert live.returncode == 0
    finally:
        live.kill()
        live.wait()
