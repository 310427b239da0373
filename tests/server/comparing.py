"""What the tests of comparisons share: small dumps, and asking a server to compare them."""
import json
import time
import zipfile

import numpy as np
import torch
from serving import PATIENCE

COMPARISONS = "/api/v1/comparisons"


def dump(folder, seed=0, layers=2, change=None, size=64):
    """A folder of `layers` times two dumps; `change` names one that gets other values."""
    folder.mkdir(parents=True, exist_ok=True)
    for layer in range(layers):
        for stage in ("query", "key"):
            values = np.random.default_rng([seed, layer, len(stage)]).standard_normal((size, size)).astype(np.float32)
            if change == f"{layer}_{stage}":
                values = values + np.float32(1)
            np.save(folder / f"{layer}_{stage}.npy", values)
    return folder


def pack(folder, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    return path


def large(path, value=1, rows=1 << 10):
    """A tensor that takes a while to compare and no room anywhere: one row of a MiB, expanded. With 2**10 rows it takes
    about a second, with 2**16 it runs until somebody stops it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = torch.zeros(1 << 18)
    row[-1] = value
    torch.save(row.expand(rows, -1), path)
    return path


def endless(tmp_path):
    """Two sides that are compared until somebody stops it."""
    return [large(tmp_path / side / "x.pth", value, 1 << 16) for value, side in enumerate("ab", 1)]


def begin(server, a, b=None, settings=None, title=None, **options):
    """The answer to asking for a comparison of two paths, or of {"upload": id}."""

    def source(x):
        return x if isinstance(x, dict) or x is None else {"path": str(x)}

    order = {"a": source(a), "b": source(b)}
    if settings is not None:
        order["settings"] = settings
    if title is not None:
        order["title"] = title
    return server.post(COMPARISONS, order, **options)


def started(server, a, b=None, settings=None, **options):
    answer = begin(server, a, b, settings, **options)
    assert answer.status == 202, answer
    return answer.json["id"]


def look(server, comparison):
    answer = server.get(f"{COMPARISONS}/{comparison}")
    assert answer.status == 200, answer
    return answer.json


def rest(server, comparison, seconds=60):
    """C when it stands still."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        found = look(server, comparison)
        if found["status"] not in ("queued", "running"):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.02)


def finished(server, a, b=None, settings=None, **options):
    """The id of a comparison that is done."""
    comparison = started(server, a, b, settings, **options)
    found = rest(server, comparison)
    assert found["status"] == "done", found
    return comparison


def result(server, comparison):
    answer = server.get(f"{COMPARISONS}/{comparison}/result")
    assert answer.status == 200, answer
    return answer.json


def events(server, comparison, most=1000):
    """The documents of the events until the stream ends."""
    connection = server.connect(120)
    connection.request("GET", f"{COMPARISONS}/{comparison}/events")
    response = connection.getresponse()
    assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream"
    seen = []
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith("data: "):
            seen.append(json.loads(line[6:]))
        else:
            assert line in ("", "event: change", ":"), line
        if len(seen) >= most:
            break
    connection.close()
    return seen


def upload(server, path, name=None):
    answer = server.post(f"/api/v1/uploads?name={name or path.name}", path.read_bytes())
    assert answer.status == 201, answer
    return {"upload": answer.json["id"]}
