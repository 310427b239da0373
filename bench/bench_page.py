#!/usr/bin/python3
"""What a person waits for in the browser: first paint, a slider, tiles of a heatmap. In milliseconds, in headless
chromium with software rendering; the bars are those of a person at a desk."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")

sys.exit(subprocess.run([ROOT / "tools" / "test-web.py", "timing", BUILD]).returncode)
