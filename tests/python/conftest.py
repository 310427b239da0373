"""The module of the source tree over the library that was built beside the binary."""
import os
import sys

import pytest
from built import BINARY, ROOT

os.environ.setdefault("TDBG_LIBRARY", str(BINARY.parent / "libtdbg.so"))
sys.path.insert(0, str(ROOT / "python"))


@pytest.fixture
def tdbg_binary(tdbg):
    """The `tdbg` fixture, where that name is the module's."""
    return tdbg
