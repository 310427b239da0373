"""A program on a pseudo-terminal, and somebody who types.

    with Terminal([binary, "console", path]) as t:
        t.expect("tdbg> ")
        t.type("ls\n")
        assert "layers.0" in t.expect("tdbg> ")
"""
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from fcntl import ioctl

from built import LEAKS, PATIENCE

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]|\r|\x08")


class Terminal:
    def __init__(self, command, env=None, cwd=None, columns=120):
        master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {**os.environ, "TERM": "vt100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8", **LEAKS, **(env or {})}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(list(map(str, command)), stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=cwd,
                                        start_new_session=True, preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.master = master
        self.text = ""   # what has arrived and was not expected yet

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        try:
            piece = os.read(self.master, 65536)
        except OSError:   # the other end is closed
            return False
        self.text += piece.decode(errors="replace")
        return bool(piece)

    def expect(self, wanted, timeout=20):
        """What came up to and with `wanted`, without escape sequences."""
        end = time.monotonic() + timeout * PATIENCE
        while True:
            plain = ESCAPES.sub("", self.text)
            at = plain.find(wanted)
            if at >= 0:
                self.text = plain[at + len(wanted):]
                return plain[:at + len(wanted)]
            left = end - time.monotonic()
            assert left > 0, f"no {wanted!r} in {plain!r}"
            if not self.read(min(left, 0.5)) and self.process.poll() is not None and not self.read(0.1):
                raise AssertionError(f"ended with {self.process.returncode}; no {wanted!r} in {ESCAPES.sub('', self.text)!r}")

    def interrupt(self):
        """Ctrl-C, as the terminal sends it."""
        self.type("\x03")

    def ends(self, timeout=20):
        """The exit status."""
        end = time.monotonic() + timeout * PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.1)
        assert self.process.poll() is not None, f"still runs: {self.text!r}"
        return self.process.returncode
