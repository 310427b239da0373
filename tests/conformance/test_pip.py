"""`pip install .` in a fresh environment: the module imports with the library inside it, the program runs."""
import subprocess
import sys

import pytest
from built import ROOT

USE = """
import numpy, pathlib, tdbg
library = tdbg._library.library._name
assert pathlib.Path(library).parent == pathlib.Path(tdbg.__file__).parent, library
numpy.save("x.npy", numpy.arange(6.0).reshape(2, 3))
assert (tdbg.load("x.npy")["x.npy"] == [[0, 1, 2], [3, 4, 5]]).all()
tdbg.assert_close("x.npy", numpy.arange(6.0).reshape(2, 3))
"""


@pytest.mark.slow
def test_pip_install_from_the_source_tree(tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    done = subprocess.run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", ROOT],
                          capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    subprocess.run([venv / "bin/python", "-c", USE], cwd=tmp_path, check=True)
    said = subprocess.run([venv / "bin/tdbg", "ls", "x.npy"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "float64" in said.stdout
    said = subprocess.run([venv / "bin/tdbg", "memory", "--", "true"], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
