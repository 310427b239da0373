"""docs/walkthrough.md, record.md and matching.md show what tdbg really prints: every command in them is run, in order, and
answers as written. In matching.md `cat FILE` is what the reader writes into that file.
"""
import re
import shlex
import subprocess
import sys

import pytest

from built import ROOT

pytestmark = pytest.mark.native  # other compilers may round the demo otherwise

EXAMPLE = re.compile(r"^    \$ (.*)\n((?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", re.M)


def examples(name):
    for command, shown in EXAMPLE.findall((ROOT / "docs" / name).read_text()):
        yield shlex.split(command), re.sub(r"^    ", "", shown, flags=re.M).strip("\n")


@pytest.mark.parametrize("page, least", [("walkthrough.md", 10), ("record.md", 2)])
def test_commands(tdbg, tmp_path, page, least):
    ran = 0
    for words, shown in examples(page):
        if words[0] == "build/examples/tiny_transformer":
            subprocess.run([tdbg.binary.parent / "examples" / "tiny_transformer", *words[1:]], cwd=tmp_path, check=True,
                           stdout=subprocess.DEVNULL)
            continue
        assert words[0] == "tdbg"
        done = tdbg.run(*words[1:], cwd=tmp_path)
        assert done.returncode == (1 if "diff" in words and ("port/a" in words or "runs/a" in words) else 0), (words, done.stderr)
        if shown:
            assert done.stdout.strip("\n") == shown, words
        ran += 1
    assert ran >= least


def test_matching(tdbg, tmp_path):
    pytest.importorskip("numpy")
    ran = 0
    for words, shown in examples("matching.md"):
        if words[0] == "cat":
            (tmp_path / words[1]).write_text(shown + "\n")
            continue
        first, _, second = " ".join(words).partition(" | ")
        if first.startswith("tdbg "):
            done = tdbg.run(*first.split()[1:], cwd=tmp_path)
            assert done.returncode == 1, (words, done.stderr)
            answer = done.stdout
            ran += 1
        for script in filter(None, (first if first.startswith("python3 ") else "", second)):
            assert script.startswith("python3 "), words
            answer = subprocess.run([sys.executable, *script.split()[1:]], cwd=tmp_path, check=True, stdout=subprocess.PIPE,
                                    input=answer if second else "", text=True).stdout
        assert [line.rstrip() for line in answer.strip("\n").split("\n")] == shown.split("\n"), words
    assert ran >= 7


def test_links():
    """Links between the pages lead somewhere."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("command", ["diff", "profile"])
def test_every_option_is_documented(tdbg, command):
    text = (ROOT / "docs" / f"{command}.md").read_text()
    for option in re.findall(r"--[a-z-]+", tdbg.text(command, "--help").split("Options:")[1].split("\n\n")[0]):
        assert option in ("--quiet", "--verbose", "--help") or option in text, option
