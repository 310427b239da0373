"""tests/programs/recording.c, a program that records what it is told."""
import os
import subprocess

from built import BINARY

PROGRAM = BINARY.parent / "tests" / "recording"


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TDBG_RUN")}
    return {**clean, **more}


class Talking(subprocess.Popen):
    """The program, told line by line what to do."""

    def __init__(self, run, *capture, **more):
        super().__init__([PROGRAM, run, *capture], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env=environment(**more))

    def say(self, *lines):
        self.stdin.write("".join(line + "\n" for line in lines))
        self.stdin.flush()

    def hear(self):
        return self.stdout.readline().strip()
