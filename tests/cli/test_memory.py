"""Memory in use does not grow with the size of the tensors: 64 MiB of anonymous memory are enough for any."""
import io
import os
import subprocess
import tarfile
import time

import numpy as np
import pytest

MIB = 1 << 20
BAR = 64 * MIB


def npy_header(shape, dtype):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape})
    return header.getvalue()


def peak_anonymous(command, status=0):
    """Highest RssAnon of a process in bytes, looked at every few milliseconds, and its standard output."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as facts:
                for line in facts:
                    if line.startswith("RssAnon:"):
                        peak = max(peak, int(line.split()[1]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(0.005)
    out, err = process.communicate()
    assert process.returncode == status, err
    return peak, out


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.parametrize("dtype, size", [("float32", 4096 * MIB), ("float16", 512 * MIB), ("int8", 512 * MIB)])
def test_stats_of_a_big_tensor(tdbg, tmp_path, dtype, size):
    count = size // np.dtype(dtype).itemsize
    path = tmp_path / "big.npy"
    header = npy_header((count // 4096, 4096), dtype)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(len(header) + size)  # a hole: reads as zeros, takes no disk
        file.seek(len(header) + size // 2)
        file.write(np.ones(1, dtype).tobytes())
    peak, out = peak_anonymous([tdbg.binary, "stats", "--json", path])
    assert b'"zeros":%d' % (count - 1) in out.replace(b" ", b"")
    assert 0 < peak < BAR, f"{peak / MIB:.1f} MiB"


@pytest.mark.slow
@pytest.mark.native
def test_stats_of_an_archive(tdbg, tmp_path):
    """A compressed member is unpacked to a spill file, not into memory."""
    header = npy_header((256 * MIB // 4,), "float32")
    raw = tmp_path / "a.npy"
    with open(raw, "wb") as file:
        file.write(header)
        file.truncate(len(header) + 256 * MIB)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(raw, "a.npy")
    os.remove(raw)
    peak, out = peak_anonymous([tdbg.binary, "stats", "--json", tmp_path / "a.tar.gz"])
    assert b'"name"' in out
    assert 0 < peak < BAR, f"{peak / MIB:.1f} MiB"
