"""What every test through the binary shares: the `tdbg` fixture.

    def test_ls(tdbg, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros(3))
        assert tdbg.json("ls", tmp_path / "a.npy")["tensors"][0]["shape"] == [3]
        assert tdbg.fails("ls", "nowhere") == "tdbg: nowhere: cannot open: No such file or directory"

The environment variable TDBG names the binary; build/tdbg is the default.
"""
import json
import os
import subprocess

import pytest
from built import BINARY, LEAKS, PATIENCE, ROOT

# Debian's oneDNN computes bfloat16 on AMX where the CPU has it, without asking the kernel, and dies of it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

# Exit statuses that mean a crash or a sanitizer's finding; 2 is tdbg's own "trouble".
SANITIZER_EXIT = 99


class Tdbg:
    """Runs the binary. Every run is checked for crashes; a run that hangs is a failure."""

    def __init__(self, binary):
        self.binary = binary

    def run(self, *args, env=None, timeout=120, text=True, stdin=None, cwd=None):
        """Any outcome but a crash: the CompletedProcess with returncode, stdout, stderr."""
        options = f"exitcode={SANITIZER_EXIT}:halt_on_error=1:print_stacktrace=1"
        environment = {
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "",  # as wide as need be, whatever terminal the tests were started from
            "ASAN_OPTIONS": f"{options}:allocator_may_return_null=1:{os.environ.get('ASAN_OPTIONS', '')}",
            "UBSAN_OPTIONS": options,
            "TSAN_OPTIONS": options,
            **LEAKS,
            **(env or {}),
        }
        done = subprocess.run(
            [self.binary, *map(str, args)],
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            text=text,
            env=environment,
            timeout=timeout * PATIENCE,
            cwd=cwd,
        )
        command = " ".join(map(str, args))
        assert 0 <= done.returncode <= 2, f"tdbg {command}: status {done.returncode}\n{done.stderr}"
        return done

    def text(self, *args, status=0, **options):
        """Standard output of a run that ends with `status`."""
        done = self.run(*args, **options)
        assert done.returncode == status, f"status {done.returncode}: {done.stderr}"
        return done.stdout

    def json(self, command, *args, status=0, **options):
        """The document that `tdbg COMMAND --json …` prints."""
        return json.loads(self.text(command, "--json", *args, status=status, **options))

    def fails(self, *args, **options):
        """The one line on stderr of a run that ends with status 2 and prints nothing else."""
        done = self.run(*args, **options)
        assert done.returncode == 2, f"status {done.returncode}: {done.stdout}"
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        return lines[0]


@pytest.fixture(scope="session")
def tdbg():
    assert BINARY.is_file(), f"{BINARY} is not built"
    return Tdbg(BINARY)


@pytest.fixture(scope="session")
def data():
    """tests/data"""
    return ROOT / "tests" / "data"
