"""Recorded runs written without the recorder: run.db from the schema, row by row.

    run = Run(tmp_path / "a")
    run.tensor("layers.0.output", np.ones((2, 3), "float32"))
    run.scalar("loss", 0, 1.5)
    run.step()                      # the rows so far belong to a step that is over
    run.close()

Rows are visible to other processes at each step and at commit(), as with the recorder.
"""
import pathlib
import sqlite3
import struct
import time

import numpy as np

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "src" / "store" / "run_schema.sql"
APPLICATION, VERSION = 0x74647275, 1
NONE, FULL, STATS, SKETCH, SLICE = range(5)
BINS = 64


def statistics(values):
    """The columns count to norm of a tensor, over its finite values."""
    x = np.asarray(values, "float64").ravel()
    good = x[np.isfinite(x)]
    spread = float(good.std(ddof=1)) if good.size > 1 else None
    numbers = [float(good.mean()), spread, float(good.min()), float(good.max()), float(np.abs(good).max())] if good.size else [None] * 5
    return [x.size, good.size, int(np.isnan(x).sum()), int(np.isinf(x).sum()), int((good == 0).sum()), *numbers,
            float(np.sqrt((good**2).sum()))]


def sketch(values):
    good = np.asarray(values, "float64").ravel()
    good = good[np.isfinite(good)]
    return np.histogram(good, BINS)[0].astype("<u8").tobytes() if good.size else None


class Run:
    def __init__(self, folder, **facts):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(self.folder / "run.db", isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA application_id = {APPLICATION}")
        self.db.execute(f"PRAGMA user_version = {VERSION}")
        self.db.executescript(SCHEMA.read_text())
        self.started = time.monotonic_ns()
        self.ordinal, self.begun, self.scopes = 0, 0, {}
        facts = {"started": int(time.time()), "ended_ns": 0, "pid": 1, "rank": 0, "world": 1, "program": "test", "host": "localhost",
                 "capture": "*=full", **facts}
        self.db.executemany("INSERT INTO fact VALUES (?, ?)", facts.items())
        self.db.execute("BEGIN")

    def now(self):
        return time.monotonic_ns() - self.started

    def commit(self):
        self.db.execute("COMMIT")
        self.db.execute("BEGIN")

    def scope(self, path):
        """The id of a scope by its way, "model/layers.0/attn"."""
        if not path:
            return 0
        if path not in self.scopes:
            parent, _, name = path.rpartition("/")
            above = self.scope(parent)
            self.scopes[path] = len(self.scopes) + 1
            self.db.execute("INSERT INTO scope VALUES (?, ?, ?)", (self.scopes[path], above, name))
        return self.scopes[path]

    def spans(self, spans):
        """spans: (path, begin_ns, end_ns) or with (…, thread, flops, bytes, tokens)."""
        data = bytearray()
        for path, begin, end, *rest in spans:
            thread, flops, size, tokens = (*rest, 0, 0, 0, 0)[:4]
            data += struct.pack("<qqIIddd", begin, end, self.scope(path), thread, flops, size, tokens)
        self.db.execute("INSERT INTO span_block (step, count, data) VALUES (?, ?, ?)", (self.ordinal, len(spans), data))

    def blocks(self, blocks):
        """blocks: (path, time_ns, address, bytes), bytes 0 to give back."""
        data = b"".join(struct.pack("<qQQII", at, address, size, self.scope(path), 0) for path, at, address, size in blocks)
        self.db.execute("INSERT INTO memory_block (step, count, data) VALUES (?, ?, ?)", (self.ordinal, len(blocks), data))

    def tensor(self, name, values, kind=STATS, dtype=None, scope="", file=None, time_ns=None):
        values = np.asarray(values)
        self.db.execute(
            "INSERT INTO tensor (step, name, scope, thread, time_ns, dtype, shape, kind, file, count, finite, nan, inf, zeros,"
            " mean, std, min, max, absmax, norm, bins) VALUES (" + ", ".join("?" * 21) + ")",
            (self.ordinal, name, self.scope(scope), 0, self.now() if time_ns is None else time_ns, dtype or str(values.dtype),
             ",".join(map(str, values.shape)), kind, file, *statistics(values), sketch(values) if kind == SKETCH else None))

    def scalar(self, name, step, value, time_ns=None):
        self.db.execute("INSERT INTO scalar (name, step, time_ns, value) VALUES (?, ?, ?, ?)",
                        (name, step, self.now() if time_ns is None else time_ns, value))

    def note(self, kind, text):
        self.db.execute("INSERT INTO note (time_ns, step, kind, text) VALUES (?, ?, ?, ?)", (self.now(), self.ordinal, kind, text))

    def snapshot(self, name):
        self.db.execute("INSERT INTO snapshot (name, step, time_ns) VALUES (?, ?, ?)", (name, self.ordinal, self.now()))

    def step(self, number=None, begin_ns=None, end_ns=None, rss=1 << 20, cpu_ns=None):
        """The step under way is over; `number` as the program counts."""
        end = self.now() if end_ns is None else end_ns
        begin = self.begun if begin_ns is None else begin_ns
        self.db.execute("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?)",
                        (self.ordinal, self.ordinal if number is None else number, begin, end, end - begin if cpu_ns is None else cpu_ns, rss))
        self.begun = end
        self.ordinal += 1
        self.commit()

    def close(self, ended=True):
        if ended:
            self.db.execute("INSERT OR REPLACE INTO fact VALUES ('ended_ns', ?)", (self.now(),))
        self.db.execute("COMMIT")
        self.db.close()
