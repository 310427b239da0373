"""The README shows what tdbg really prints: each `$ tdbg …` in it is run on the demo and must answer as written.

After a change of output, `tools/readme.py` writes the new one into it.
"""
import shlex
import subprocess
import sys

import pytest

from built import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import readme

# native: other compilers may round the demo otherwise. slow: a new wording does not stop the inner loop.
pytestmark = [pytest.mark.native, pytest.mark.slow]


@pytest.fixture(scope="module")
def demo(tdbg, tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    subprocess.run([tdbg.binary.parent / "examples" / "tiny_transformer", "demo"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def test_there_are_examples():
    assert [command.split()[0] for command, _ in readme.examples()] == ["diff", "stats", "show"]


@pytest.mark.parametrize("command, shown", readme.examples(), ids=[command for command, _ in readme.examples()])
def test_readme(tdbg, demo, monkeypatch, command, shown):
    monkeypatch.chdir(demo)
    assert tdbg.run(*shlex.split(command)).stdout.strip("\n") == shown
