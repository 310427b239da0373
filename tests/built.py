"""What is tested, and how patient to be: shared by all tests through the binary."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = pathlib.Path(os.environ.get("TDBG", ROOT / "build" / "tdbg")).resolve()

# For LeakSanitizer: what is not ours.
LEAKS = {"LSAN_OPTIONS": f"suppressions={ROOT / 'tests' / 'leaks.txt'}:print_suppressions=0"}

# Sanitizers are slow: how many times longer a run may take than it says.
PATIENCE = float(os.environ.get("TDBG_TEST_PATIENCE", 1))
