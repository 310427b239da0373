#!/usr/bin/env python3
"""Writes what tdbg prints today into the examples of README.md: every block that begins with `$ tdbg …`.

    DEMO_SERVE=0 make run && tools/readme.py      the examples look at the demo's dumps
"""
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
EXAMPLE = re.compile(r"^    \$ tdbg (.*)\n((?:    (?!\$).*\n|\n(?=    (?!\$)))*)", re.M)


def examples():
    """The commands in the README, each with the output shown there."""
    return [(command, re.sub(r"^    ", "", shown, flags=re.M).strip("\n"))
            for command, shown in EXAMPLE.findall(README.read_text())]


def renewed(match):
    done = subprocess.run([ROOT / "build" / "tdbg", *shlex.split(match.group(1))], cwd=ROOT, stdout=subprocess.PIPE,
                          text=True)
    lines = done.stdout.rstrip("\n").split("\n")
    return f"    $ tdbg {match.group(1)}\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines)


if __name__ == "__main__":
    README.write_text(EXAMPLE.sub(renewed, README.read_text()))
