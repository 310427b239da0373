"""The README shows what tdbg really prints: each `$ tdbg …` in it is run on the demo and must answer as written."""
import re
import shlex
import subprocess

import pytest

from conftest import ROOT

pytestmark = pytest.mark.native  # other compilers may round the demo otherwise

EXAMPLE = re.compile(r"^    \$ tdbg (.*)\n((?:    .*\n|\n(?=    (?!\$)))*)", re.M)


def examples():
    return [(command, re.sub(r"^    ", "", shown, flags=re.M).strip("\n"))
            for command, shown in EXAMPLE.findall((ROOT / "README.md").read_text())]


@pytest.fixture(scope="module")
def demo(tdbg, tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    subprocess.run([tdbg.binary.parent / "examples" / "tiny_transformer", "demo"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    return folder


def test_there_are_examples():
    assert [command.split()[0] for command, _ in examples()] == ["diff", "stats", "show"]


@pytest.mark.parametrize("command, shown", examples(), ids=[command for command, _ in examples()])
def test_readme(tdbg, demo, monkeypatch, command, shown):
    monkeypatch.chdir(demo)
    assert tdbg.run(*shlex.split(command)).stdout.strip("\n") == shown
