"""The Python module with a current torch: its tests again, by a Python that has one.

Debian's torch is 1.13. This runs with the torch of the conformance tests' environment, or where TDBG_TORCH_PYTHON names
another Python that has one (and numpy and pytest).
"""
import os
import subprocess
import sys

import pytest
from built import BINARY, ROOT

PYTHON = os.environ.get("TDBG_TORCH_PYTHON", sys.executable)


def version():
    done = subprocess.run([PYTHON, "-c", "import pytest, numpy, torch; print(torch.__version__)"],
                          capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_the_python_module_with_a_current_torch():
    found = version()
    if not found or found.startswith("1."):
        pytest.skip(f"no current torch in {PYTHON}; TDBG_TORCH_PYTHON names a Python that has one")
    done = subprocess.run([PYTHON, "-m", "pytest", "-c", "tests/pytest.ini", "-q", "tests/python"], cwd=ROOT,
                          env={**os.environ, "TDBG": str(BINARY)}, capture_output=True, text=True, timeout=1800)
    print(f"torch {found}: {done.stdout.splitlines()[-1] if done.stdout else ''}")
    assert done.returncode == 0, done.stdout[-4000:]
