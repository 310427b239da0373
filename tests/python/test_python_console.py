"""A live PyTorch model and the console: diverges-from stops it at the module that tdbg diff names."""
import os
import subprocess
import sys
import time

import gpt
import pytest
import tdbg
from built import PATIENCE, ROOT

pytestmark = pytest.mark.native

def record(model, run):
    with tdbg.record(model, str(run)) as handle:
        output = model(gpt.ids())
        handle.step()
    return output


@pytest.mark.parametrize("layer", [0, 2])
def test_diverges_from(tdbg_binary, tmp_path, layer):
    record(gpt.model(), tmp_path / "good")
    expected = record(gpt.broken(layer), tmp_path / "bad")
    first = tdbg.diff(str(tmp_path / "good"), str(tmp_path / "bad"))["first_divergence"]
    program = f"""
import sys
sys.path[:0] = [{str(ROOT / "python")!r}, {str(ROOT / "tests" / "python")!r}]
import gpt, tdbg
model = gpt.broken({layer})
with tdbg.record(model, {str(tmp_path / "live")!r}) as handle:
    print(repr(model(gpt.ids()).double().sum().item()))
    handle.step()
"""
    environment = {**os.environ, "TDBG_WAIT": "1"}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60 * PATIENCE
        while not (tmp_path / "live" / "control").exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        (tmp_path / "script").write_text(f"step\nbreak * if diverges-from {tmp_path / 'good'}\ncontinue\ninspect .\n")
        out = tdbg_binary.text("console", tmp_path / "live", "--file", tmp_path / "script")
        output, _ = process.communicate(timeout=60 * PATIENCE)
        assert process.returncode == 0
    stopped = [line.split()[2] for line in out.splitlines() if line.startswith("stopped at") and "diverges from" in line]
    assert stopped == [first["name"]]
    assert stopped[0].startswith(f"layers.{layer}.attn")
    assert float(output) == expected.double().sum().item()
