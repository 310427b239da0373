#!/usr/bin/python3
"""Two archives of small dumps, from the upload to the finished comparison, against what people do in Python.

Each archive holds 312 dumps (24 layers of 13 stages) of bfloat16, 92 MB; one is a .zip, the other a .tar.gz. The Python
script unpacks both, torch.loads each pair and computes the five metrics that the original application shows. It starts
with torch imported; the server has the files sent to it over loopback. Best of several rounds, in turn.
"""
import http.client
import io
import json
import os
import pathlib
import re
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
LAYERS, SHAPE, ROUNDS = 24, (76, 1920), 3


def dumps(noise):
    for layer in range(LAYERS):
        for stage in STAGES:
            generator = torch.Generator().manual_seed(hash((layer, stage)) & 0xFFFF)
            tensor = torch.randn(SHAPE, generator=generator)
            out = io.BytesIO()
            torch.save((tensor * (1 + noise)).to(torch.bfloat16), out)
            yield f"dumps/{layer}_{stage}.pth", out.getvalue()


def write(folder):
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for name, data in dumps(0):
            archive.writestr(name, data)
    with tarfile.open(folder / "b.tar.gz", "w:gz", compresslevel=1) as archive:
        for name, data in dumps(0.01):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return folder / "a.zip", folder / "b.tar.gz"


def by_hand(a, b):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
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


def body_of(a, b):
    edge = "----bench"
    parts = []
    for field, path in (("model1", a), ("model2", b)):
        parts += [f'--{edge}\r\nContent-Disposition: form-data; name="{field}"; filename="{path.name}"\r\n'
                  "Content-Type: application/octet-stream\r\n\r\n".encode(), path.read_bytes(), b"\r\n"]
    return b"".join(parts) + f"--{edge}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={edge}"}


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        a, b = write(folder)
        body, headers = body_of(a, b)
        server = subprocess.Popen([BINARY, "serve", "--port", "0", "--db", folder / "data" / "tdbg.db"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r":(\d+)", server.stdout.readline()).group(1))
            ours, theirs = [], []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                expected = by_hand(a, b)
                theirs.append(time.perf_counter() - start)
                start = time.perf_counter()
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("POST", "/upload", body, headers)
                answer = json.loads(connection.getresponse().read())
                ours.append(time.perf_counter() - start)
                connection.close()
                assert len(answer["matches"]) == len(expected) == LAYERS * len(STAGES), answer
        finally:
            server.terminate()
            server.wait()
        sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.0f} MB" for path in (a, b))
    best, base = min(ours), min(theirs)
    print(f"Python / upload to comparison\t{base / best:.2f}\t>=8\t{base:.2f} s against {best:.2f} s, {sizes}")


if __name__ == "__main__":
    sys.exit(main())
