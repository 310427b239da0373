"""A server that is killed at any moment, or whose disk is full: what it reported as saved is there, whole."""
import contextlib
import http.client
import os
import random
import sqlite3
import subprocess
import threading
import time

import pytest
from comparing import COMPARISONS, begin, dump, finished, look, pack, rest, result, started
from serving import PATIENCE, Server


class Life:
    """One server from its start to its sudden death, busy all the time. Remembers what it was told."""

    def __init__(self, told, server, archives, seed):
        self.told, self.server, self.archives = told, server, archives
        self.random = random.Random(seed)
        self.over = False

    def live(self, seconds):
        tasks = [self.send_uploads, self.compare, self.compare, self.take_notes, self.forget]
        threads = [threading.Thread(target=self.repeat, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.server.kill()
        self.over = True
        for thread in threads:
            thread.join()

    def repeat(self, task):
        while not self.over:
            # The server may be gone, in the middle of an answer or before.
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                task()

    def send_uploads(self):
        path = self.random.choice(self.archives)
        answer = self.server.post(f"/api/v1/uploads?name={path.name}", path.read_bytes())
        if answer.status == 201:
            self.told.uploads[answer.json["id"]] = path

    def compare(self):
        sources = [{"path": str(path)} for path in self.archives]
        if self.told.uploads and self.random.random() < 0.5:
            kept, path = self.random.choice(list(self.told.uploads.items()))
            sources[self.archives.index(path)] = {"upload": kept}
        answer = begin(self.server, *sources)
        if answer.status == 202:
            self.told.orders.add(answer.json["id"])
            if rest(self.server, answer.json["id"], 5)["status"] == "done":
                self.told.done.add(answer.json["id"])

    def take_notes(self):
        time.sleep(0.005)
        if self.told.done:
            one, notes = self.random.choice(sorted(self.told.done)), {"number": self.random.random()}
            self.told.notes.setdefault(one, [{}]).append(notes)  # all that may be there until one is confirmed
            if self.server.put(f"{COMPARISONS}/{one}/state", notes).status == 200:
                self.told.notes[one] = [notes]

    def forget(self):
        time.sleep(0.1)
        if len(self.told.done) > 5:
            one = self.random.choice(sorted(self.told.done))
            self.told.done.discard(one)
            self.told.orders.discard(one)
            self.told.notes.pop(one, None)
            for side in "ab":
                self.told.uploads.pop(look(self.server, one)[side]["upload"], None)
            self.server.delete(f"{COMPARISONS}/{one}")


class Told:
    def __init__(self):
        self.uploads, self.orders, self.done, self.notes = {}, set(), set(), {}


def without_paths(document):
    for side in "ab":
        document[side].pop("path")
    return document


def check(server, told, expected):
    uploads = server.data / "uploads"
    assert list(uploads.rglob("*.part")) == []
    known = {c["id"]: c for c in server.get(COMPARISONS).json["comparisons"]}
    for one in told.done:
        assert known[one]["status"] == "done", known[one]
        assert without_paths(result(server, one)) == expected
    for one in told.orders:
        assert one in known
    for one, versions in told.notes.items():
        if one in told.done:
            assert server.get(f"{COMPARISONS}/{one}/state").json in versions
    for kept, path in told.uploads.items():
        copy = uploads / kept / path.name
        assert copy.read_bytes() == path.read_bytes()


def check_folder(data):
    """What lies in the folder of uploads is what the store knows."""
    with sqlite3.connect(f"file:{data / 'tdbg.db'}?mode=ro", uri=True) as store:
        rows = {row[0]: (row[1], row[2]) for row in store.execute("SELECT id, name, bytes FROM upload")}
        assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert store.execute("PRAGMA foreign_key_check").fetchall() == []
    found = {}
    for folder in (data / "uploads").iterdir():
        if folder.is_dir():
            (file,) = folder.iterdir()
            found[folder.name] = (file.name, file.stat().st_size)
    assert found == rows


@pytest.mark.parametrize("rounds", [3, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.native])])
def test_killed_at_any_moment(rounds, tmp_path, tdbg):
    archives = [pack(dump(tmp_path / "a", layers=40, size=32), tmp_path / "a.zip"),
                pack(dump(tmp_path / "b", layers=40, size=32, change="3_key"), tmp_path / "b.zip")]
    expected = without_paths(tdbg.json("diff", *archives, status=1))
    data = tmp_path / "data"
    data.mkdir()
    told, chance = Told(), random.Random(rounds)
    for number in range(rounds):
        server = Server(data, "--root", tmp_path)
        check(server, told, expected)
        Life(told, server, archives, number).live(chance.uniform(0.02, 0.6) * PATIENCE)
    with Server(data, "--root", tmp_path) as server:
        check(server, told, expected)
        for one in told.orders:
            assert rest(server, one)["status"] == "done"
    check_folder(data)
    print(f"{rounds} rounds: {len(told.done)} done, {len(told.orders)} ordered, {len(told.uploads)} uploads")
    assert told.done and told.uploads


# --- a full disk ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk is not permitted")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk(small_disk, tmp_path):
    a, b = dump(tmp_path / "a"), dump(tmp_path / "b", change="1_key")
    with Server(small_disk, "--root", tmp_path) as server:
        first = finished(server, a, b)
        kept = small_disk / "filler"
        with open(kept, "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(b"x" * 4096):
                pass
        answer = begin(server, a, b)
        assert (answer.status, answer.error) == (507, "the data folder: no space left")
        answer = server.put(f"{COMPARISONS}/{first}/state", {"notes": "x" * 100000})
        assert (answer.status, answer.error) == (507, "the data folder: no space left")
        answer = server.post("/api/v1/uploads?name=a.zip", b"x" * 100000)
        assert answer.status == 507
        # What is there can still be seen.
        assert result(server, first)["summary"]["diverged"] == 1
        assert server.get(f"{COMPARISONS}/{first}/state").json == {}
        kept.unlink()
        assert look(server, finished(server, a, b))["summary"]["diverged"] == 1


def test_a_result_that_finds_no_room(small_disk, tmp_path):
    """The order was saved, its result is not: the comparison fails and says why."""
    a, b = dump(tmp_path / "a", layers=600, size=4), dump(tmp_path / "b", layers=600, size=4)
    with Server(small_disk, "--root", tmp_path) as server:
        kept = small_disk / "filler"
        free = os.statvfs(small_disk)
        kept.write_bytes(b"x" * (free.f_bavail * free.f_frsize - 256 * 1024))
        c = rest(server, started(server, a, b))
        assert (c["status"], c["error"]) == ("failed", "cannot save the result: no space left")
        kept.unlink()
        assert server.put(f"{COMPARISONS}/{c['id']}/settings", {}).status == 202
        c = rest(server, c["id"])
        assert (c["status"], c["error"], c["summary"]["pairs"]) == ("done", None, 1200)
