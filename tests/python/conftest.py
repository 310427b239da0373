"""The module of the source tree over the library that was built beside the binary."""
import os
import sys

from built import BINARY, ROOT

os.environ.setdefault("TDBG_LIBRARY", str(BINARY.parent / "libtdbg.so"))
sys.path.insert(0, str(ROOT / "python"))
