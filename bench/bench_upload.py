#!/usr/bin/python3
"""Two archives of small dumps, from the upload to the finished comparison, against what people do in Python.

Each archive holds 312 dumps (24 layers of 13 stages) of bfloat16, 92 MB; one is a .zip, the other a .tar.gz. The Python
script unpacks both, torch.loads each pair and computes the five metrics that the original application shows; it is this
file, run with --script. The server gets the files over loopback (by sendfile: the client is not what is measured), keeps
them, and answers with the comparison. The median of several rounds' ratios: a machine that others use, too, has slow and
fast moments, and the two sides of a round share them. What the script takes after `import torch` is shown too, and
the same with a .zip whose members are deflated, as `zip` makes it.

Neither side leaves anything behind: what the script unpacked and what the server keeps are removed after each run, which
does not count. Memory that a virtual machine has never used, or has given back to its host, is slow to come by: the same
upload then takes twice as long. It is given back within seconds, in blocks of 2 MiB, so right before each run, of either
side, so many blocks as it will need are taken and used for a moment.
"""
import http.client
import io
import json
import mmap
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("TDBG", ROOT / "build" / "tdbg")
STAGES = ["post_ln_pre_attn", "query", "query_final", "key", "key_final", "value", "value_final", "post_attn", "scaling",
          "sliding", "post_attn_pre_resid", "pre_mlp", "post_mlp"]
LAYERS, SHAPE, ROUNDS = 24, (76, 1920), 12
MEMORY = 1 << 29


def dumps(noise):
    for layer in range(LAYERS):
        for stage in STAGES:
            generator = torch.Generator().manual_seed(layer * len(STAGES) + STAGES.index(stage))
            tensor = torch.randn(SHAPE, generator=generator)
            out = io.BytesIO()
            torch.save((tensor * (1 + noise)).to(torch.bfloat16), out)
            yield f"dumps/{layer}_{stage}.pth", out.getvalue()


def write(folder):
    for name, method in (("a.zip", zipfile.ZIP_STORED), ("deflated.zip", zipfile.ZIP_DEFLATED)):
        write_zip(folder / name, method)
    write_tar(folder / "b.tar.gz")


def write_zip(path, method):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in dumps(0):
            archive.writestr(name, data)


def write_tar(path):
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, data in dumps(0.01):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def by_hand(a, b, folder):
    """What the script does."""
    with zipfile.ZipFile(a) as archive:
        archive.extractall(folder / "a")
    with tarfile.open(b) as archive:
        archive.extractall(folder / "b")
    results = {}
    for path in sorted((folder / "a").rglob("*.pth")):
        x = torch.load(path)
        y = torch.load(folder / "b" / path.relative_to(folder / "a"))
        d = x - y
        results[path.name] = (
            d.abs().float().mean().item(), d.abs().max().item(), (d.abs() / (x.abs() + 1e-8)).float().mean().item(),
            torch.mean(d**2).item(),
            torch.nn.functional.cosine_similarity(x.flatten(), y.flatten(), dim=0).item())
    return results


def form_of(a, b):
    """The pieces of the body, texts and files in turn, and the headers."""
    edge = "----bench"
    pieces = []
    for field, path in (("model1", a), ("model2", b)):
        pieces += [f'--{edge}\r\nContent-Disposition: form-data; name="{field}"; filename="{path.name}"\r\n'
                   "Content-Type: application/octet-stream\r\n\r\n".encode(), path, b"\r\n"]
    pieces.append(f"--{edge}--\r\n".encode())
    length = sum(piece.stat().st_size if isinstance(piece, pathlib.Path) else len(piece) for piece in pieces)
    return pieces, {"Content-Type": f"multipart/form-data; boundary={edge}", "Content-Length": str(length)}


def use_memory():
    with mmap.mmap(-1, MEMORY, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, MEMORY, mmap.PAGESIZE):
            memory[at] = 1


def run_script(a, b):
    """Seconds of the whole run, and of its work."""
    use_memory()
    with tempfile.TemporaryDirectory(dir=a.parent) as folder:
        command = [sys.executable, __file__, "--script", a, b, folder]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
    work, pairs = done.stdout.split()
    assert int(pairs) == LAYERS * len(STAGES)
    return seconds, float(work)


def run_upload(port, pieces, headers):
    use_memory()
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.putrequest("POST", "/upload")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    for piece in pieces:
        if isinstance(piece, pathlib.Path):
            with piece.open("rb") as file:
                connection.sock.sendfile(file)
        else:
            connection.sock.sendall(piece)
    body = connection.getresponse().read()
    seconds = time.perf_counter() - start
    connection.close()
    answer = json.loads(body)
    assert len(answer["matches"]) == LAYERS * len(STAGES), answer
    forget_comparisons(port)
    return seconds


def forget_comparisons(port):
    """With all that was uploaded for them."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/api/v1/comparisons")
    for comparison in json.loads(connection.getresponse().read())["comparisons"]:
        connection.request("DELETE", f"/api/v1/comparisons/{comparison['id']}")
        answer = connection.getresponse()
        assert answer.status == 204, answer.read()
        answer.read()
    connection.close()


def measure(port, a, b, rounds):
    """What the rounds took: the script in all, its work, the uploads."""
    pieces, headers = form_of(a, b)
    scripts, uploads = [], []
    for _ in range(rounds):
        scripts.append(run_script(a, b))
        uploads.append(run_upload(port, pieces, headers))
    return [script for script, _ in scripts], [work for _, work in scripts], uploads


def show(what, theirs, ours, bar, *files):
    ratio = statistics.median(script / upload for script, upload in zip(theirs, ours))
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.0f} MB" for path in files)
    print(f"{what}\t{ratio:.2f}\t{bar}\t{statistics.median(theirs):.2f} s against {statistics.median(ours):.2f} s, {sizes}")


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        write(folder)
        stored, deflated, tar = folder / "a.zip", folder / "deflated.zip", folder / "b.tar.gz"
        server = subprocess.Popen([BINARY, "serve", "--port", "0", "--data", folder / "data"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r":(\d+)", server.stdout.readline()).group(1))
            script, work, uploads = measure(port, stored, tar, ROUNDS)
            script_deflated, _, uploads_deflated = measure(port, deflated, tar, ROUNDS // 2)
        finally:
            server.terminate()
            server.wait()
        show("Python script / upload to comparison", script, uploads, ">=8", stored, tar)
        show("the same without import torch", work, uploads, "-", stored, tar)
        show("the same with a deflated .zip", script_deflated, uploads_deflated, "-", deflated, tar)


def script(a, b, folder):
    start = time.perf_counter()
    results = by_hand(a, b, pathlib.Path(folder))
    print(time.perf_counter() - start, len(results))


if __name__ == "__main__":
    script(*sys.argv[2:]) if sys.argv[1:2] == ["--script"] else main()
