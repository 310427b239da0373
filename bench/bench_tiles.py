#!/usr/bin/python3
"""Tiles of a heatmap of an 8192 x 8192 float32 pair through HTTP, at every level, in milliseconds.

First: nobody has looked at this pair before. Again: a neighbour was drawn, as when somebody pans and zooms; below
the levels that are kept this still reads every element, so the tile asked for is another one each time. The bar is
for what is drawn again; beside it stands how long a plain read of the elements takes that the tile covers.
"""
import http.client
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("TDBG", ROOT / "build" / "tdbg")).parent
SIDE, ROUNDS, BAR = 8192, 5, 50
VIEWS = {"": "", "transposed": "&transpose=1", "folded": "&view=flat&width=4096"}


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        data = answer.read()
        assert answer.status < 300, data
        return data

    def compare(self, a, b):
        path = "/api/v1/comparisons"
        found = json.loads(self.ask("POST", path, {"a": {"path": str(a)}, "b": {"path": str(b)}}))
        while found["status"] in ("queued", "running"):
            time.sleep(0.05)
            found = json.loads(self.ask("GET", f"{path}/{found['id']}"))
        assert found["status"] == "done", found
        return f"{path}/{found['id']}/pairs/0/tile"

    def tile(self, path, level, y, what, view):
        begin = time.perf_counter()
        self.ask("GET", f"{path}?level={level}&x=0&y={y}&what={what}{view}")
        return 1000 * (time.perf_counter() - begin)


def plain_read(values, level):
    """Summing the elements that a tile covers, by numpy, on one thread."""
    edge = min(SIDE, 256 << level)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        values[:edge, :edge].sum()
        times.append(1000 * (time.perf_counter() - begin))
    return min(times)


def measure(client, folder, values):
    rows = []
    for name, view in VIEWS.items():
        for what in ("a", "difference"):
            path = client.compare(folder / "a.npy", folder / "b.npy")
            first = {5: client.tile(path, 5, 0, what, view)}  # the whole tensor, as a page shows it at first
            for level in range(6):
                tiles = max(1, SIDE >> 8 + level)
                times = [client.tile(path, level, i % tiles, what, view) for i in range(ROUNDS)]
                again = sorted(times)[len(times) // 2]
                rows.append((f"{what} {name}".strip(), level, first.get(level), again, plain_read(values, level)))
    return rows


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        folder = pathlib.Path(place)
        values = np.random.default_rng(1).standard_normal((SIDE, SIDE), np.float32)
        np.save(folder / "a.npy", values)
        np.save(folder / "b.npy", values + np.float32(0.001))
        (folder / "data").mkdir()
        server = subprocess.Popen([BUILD / "tdbg", "serve", "--port", "0", "--data", folder / "data", "--root", folder],
                                  stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r":(\d+)", server.stdout.readline()).group(1))
            rows = measure(Client(port), folder, values)
        finally:
            server.terminate()
            server.wait()
    for name, level, first, again, read in rows:
        figures = f"a plain read of its elements {read:.1f} ms"
        print(f"tile of {name}, level {level}, in ms\t{again:.1f}\t<={BAR}\t{figures}")
        if first is not None:
            print(f"tile of {name}, level {level}, the first time, in ms\t{first:.1f}\t-\tall of the tensor is read")


if __name__ == "__main__":
    main()
