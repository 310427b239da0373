"""What tools/outputs.py asks a server: every route of `tdbg serve`, over the corpus of outputs_inputs.py.

    visit(ask)       asks everything, in one order; ask(name, method, path, body, kind) -> (status, document or bytes)

Each answer is remembered under its name ("serve/pair/0/values"), with its status and the headers that say something.
What a route answers may depend on what was asked before, so all is asked whatever --only says; that chooses what is
compared. Streams of events are read up to the first event, or to their end where they end.
"""
import json
import pathlib
import re
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
API = "/api/v1"
EDGE = "----edge7d1f"


def form(files, **fields):
    parts = [f'--{EDGE}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    for name, path in files.items():
        head = f'--{EDGE}\r\nContent-Disposition: form-data; name="{name}"; filename="{path.name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        parts += [head.encode(), path.read_bytes(), b"\r\n"]
    return b"".join(parts) + f"--{EDGE}--\r\n".encode(), f"multipart/form-data; boundary={EDGE}"


class Visitor:
    def __init__(self, ask, work):
        self.ask, self.work = ask, work

    def get(self, name, path, /, **query):
        """A GET; several values of a parameter are not needed."""
        text = "?" + urllib.parse.urlencode({k.rstrip("_"): v for k, v in query.items()}) if query else ""
        return self.ask(name, "GET", path + text)

    def send(self, name, method, path, body=None):
        return self.ask(name, method, path, json.dumps(body).encode(), "application/json")

    def rest(self, comparison):
        """Waits until it stands still; the answers on the way are no part of the outcome."""
        for _ in range(3000):
            _, found = self.ask(None, "GET", f"{API}/comparisons/{comparison}")
            if found["status"] not in ("queued", "running"):
                return
            time.sleep(0.02)
        raise RuntimeError(f"comparison {comparison} does not end")

    def compared(self, name, a, b=None, **settings):
        source = [None if x is None else x if isinstance(x, dict) else {"path": str(self.work / x)} for x in (a, b)]
        _, found = self.send(f"{name}/create", "POST", f"{API}/comparisons", {"a": source[0], "b": source[1], "settings": settings, "title": name})
        self.rest(found["id"])
        return found["id"]

    def everything(self):
        self.inputs()
        sound = {name: self.compared(name, f"{group}/{name}/a", f"{group}/{name}/b") for group, name in
                 (("mistake", "bias"), ("mistake", "nan"), ("layout", "missing"), ("layout", "shards-columns"), ("layout", "heads-first"))}
        sound["demo"] = self.compared("demo", "demo/a", "demo/b")
        sound["strict"] = self.compared("strict", "demo/a", "demo/b", policy="strict", top=3)
        sound["types"] = self.compared("types", "types/a", "types/b")
        sound["recorded"] = self.compared("recorded", "live/right", "live/wrong")
        sound["explore"] = self.compared("explore", "types/a")
        sound["archive"] = self.compared("archive", "demo/a.zip", "demo/b.tar.gz")
        for name, comparison in sound.items():
            self.comparison(name, comparison)
        self.changes(sound["bias"])
        self.trouble(sound["demo"])
        self.runs()
        self.original()
        self.page(sound["demo"])
        self.get("comparisons", f"{API}/comparisons")
        self.ask("deleted", "DELETE", f"{API}/comparisons/{sound['nan']}")
        self.get("deleted/show", f"{API}/comparisons/{sound['nan']}")

    def inputs(self):
        self.get("status", f"{API}/status")
        self.get("folder/roots", f"{API}/folder")
        for path in ("", "demo", "run", "demo/a/0_key.npy", "nowhere"):
            self.get(f"folder/{path or 'work'}", f"{API}/folder", path=self.work / path)
        self.get("folder/outside", f"{API}/folder", path="/etc")
        for name in ("gguf", "hf"):
            data = (self.work / "names" / f"{name}.safetensors").read_bytes()
            _, found = self.ask(f"upload/{name}", "POST", f"{API}/uploads?name={name}.safetensors", data, "application/octet-stream")
            self.compared(f"uploaded/{name}", {"upload": found["id"]}, "names/meta.safetensors")
        self.ask("upload/no-name", "POST", f"{API}/uploads", b"x", "application/octet-stream")

    def comparison(self, name, comparison):
        at = f"{API}/comparisons/{comparison}"
        self.get(f"{name}/show", at)
        _, result = self.get(f"{name}/result", f"{at}/result")
        self.get(f"{name}/state", f"{at}/state")
        self.ask(f"{name}/events", "GET", f"{at}/events")
        for report in ("report.html", "report.json", "report.csv", "report.xml", "pairs.json"):
            self.get(f"{name}/{report}", f"{at}/{report}")
        rows = result.get("pairs", result.get("tensors", []))
        for index in sorted({0, 3, len(rows) // 2, len(rows) - 1} & set(range(len(rows)))):
            self.pair(f"{name}/pair/{index}", f"{at}/pairs/{index}")
        self.get(f"{name}/pair/beyond", f"{at}/pairs/99999")

    def pair(self, name, at):
        """Every look at a pair, with good parameters and bad ones."""
        _, pair = self.get(name, at)
        shape = (pair["b"] or pair["a"])["shape"] if "shape" not in pair else pair["shape"]
        first = ",".join(["0"] * (len(shape) - 1) + ["0:4"]) if shape else ""
        plane = ",".join(["0"] * (len(shape) - 2) + [":", ":"]) if len(shape) > 1 else ":"
        for side in ("a", "b", "difference"):
            self.get(f"{name}/tile/{side}", f"{at}/tile", view=plane, what=side)
            self.get(f"{name}/export/npy/{side}", f"{at}/export", side=side, slice=first, format="npy")
            self.get(f"{name}/export/csv/{side}", f"{at}/export", side=side, slice=first, format="csv")
        self.get(f"{name}/tile/coarse", f"{at}/tile", view=plane, level=1, reduce="max", transpose=1)
        self.get(f"{name}/tile/flat", f"{at}/tile", view="flat", width=16)
        self.get(f"{name}/tile/wrong", f"{at}/tile", view=plane, level=-1)
        self.get(f"{name}/values", f"{at}/values", slice=first)
        self.get(f"{name}/values/flat", f"{at}/values", flat="0:5")
        self.get(f"{name}/values/wrong", f"{at}/values", slice="x")
        self.get(f"{name}/mapped", f"{at}/mapped", a=first, b=first)
        self.get(f"{name}/worst", f"{at}/worst", count=7)
        for what in ("nan", "inf", "zero"):
            self.get(f"{name}/find/{what}", f"{at}/find", what=what, limit=20)
        self.get(f"{name}/find/range", f"{at}/find", side="a", low="0.5", high="0.6", limit=20)
        self.get(f"{name}/find/wrong", f"{at}/find", side="x")
        self.get(f"{name}/histogram", f"{at}/histogram", bins=9)
        self.get(f"{name}/density", f"{at}/density", size=8)
        self.get(f"{name}/profile", f"{at}/profile")
        self.get(f"{name}/generation", at, generation=99999)

    def changes(self, comparison):
        at = f"{API}/comparisons/{comparison}"
        self.send("state/put", "PUT", f"{at}/state", {"order": [1, 0], "mappings": {"0": {"x": 1}}})
        self.send("state/patch", "PATCH", f"{at}/state", {"order": None, "mappings": {"1": {"y": 2}}})
        self.get("state/get", f"{at}/state")
        for name, settings in {"rtol": {"rtol": 10, "atol": 10}, "wrong": {"policy": "lenient"}, "match": {"match": "exact"},
                               "pairs": {"pairs": [{"a": "0_query.npy", "b": "0_key.npy"}]}, "no-such": {"pairs": [{"a": "x", "b": "y"}]}}.items():
            self.send(f"settings/{name}", "PUT", f"{at}/settings", settings)
            self.rest(comparison)
            self.get(f"settings/{name}/result", f"{at}/result")
        self.ask("cancel", "POST", f"{at}/cancel")

    def trouble(self, comparison):
        for name, body in {"outside": {"a": {"path": "/etc"}, "b": None}, "nothing": {}, "number": {"a": 1},
                           "nowhere": {"a": {"path": str(self.work / "nowhere")}, "b": None}}.items():
            self.send(f"refused/{name}", "POST", f"{API}/comparisons", body)
        for path in ("", "/result", "/state", "/events", "/report.html", "/pairs/0", "/pairs/0/values"):
            self.get(f"gone{path}", f"{API}/comparisons/{'0' * 16}{path}")
        self.ask("method", "DELETE", f"{API}/status")
        self.get("no-such-route", f"{API}/frobnicate")
        self.ask("not-json", "POST", f"{API}/comparisons", b"{", "application/json")
        self.ask("not-said-json", "POST", f"{API}/comparisons", b"{}", "text/plain")

    def runs(self):
        self.get("runs", f"{API}/runs")
        self.get("runs/below", f"{API}/runs", path=self.work / "run" / "ranks")
        for name in ("good", "nan", "broken", "ranks/rank-0", "nothing"):
            self.get(f"run/{name}", f"{API}/run", path=self.work / "run" / name)
        self.get("run/good/events", f"{API}/run/events", path=self.work / "run" / "good")
        for verb in ("continue", "explode"):
            self.send(f"run/control/{verb}", "POST", f"{API}/run/control", {"path": str(self.work / "run" / "good"), "do": verb})

    def original(self):
        """The routes of the application that tdbg replaces; they know the newest comparison."""
        self.get("original/health", "/health")
        demo = self.work / "demo"
        body, kind = form({"model1": demo / "a.zip", "model2": demo / "b.zip"}, upload_mode="dual_archive")
        self.ask("original/upload", "POST", "/upload", body, kind)
        for index in (0, 20, 9999):
            self.send(f"original/values/{index}", "POST", "/get_tensor_values", {"match_index": index, "dimension_indices": [0, 1], "count": 6, "get_argmax": True})
            self.send(f"original/shape/{index}", "POST", "/get_tensor_values", {"match_index": index, "get_final_shape": True})
            self.send(f"original/shapes/{index}", "POST", "/get_tensor_shapes", {"match_index": index})
            self.send(f"original/manual/{index}", "POST", "/get_tensor_values_manual",
                      {"match_index": index, "tensor1_indices": [0, 0, 0], "tensor2_indices": [0, 0, 0, 0], "count": 4})
        self.send("original/reorder", "POST", "/reorder_matches", {"old_index": 3, "new_index": 0})
        self.send("original/regroup", "POST", "/regroup_matches", {"group_by": "layer"})
        self.send("original/pair", "POST", "/manual_pair", {"model1_file": "0_query.npy", "model2_file": "1_query.safetensors"})
        body, kind = form({"single_file": self.work / "names" / "hf.safetensors"}, upload_mode="single_file")
        self.ask("original/upload/single", "POST", "/upload", body, kind)
        body, kind = form({})
        self.ask("original/upload/nothing", "POST", "/upload", body, kind)

    def page(self, comparison):
        self.get("page", "/")
        self.get("page/comparison", f"/c/{comparison}")
        self.get("page/asset", "/assets/nothing.js")


def visit(ask, work):
    Visitor(ask, work).everything()


ROUTE = re.compile(r'\{"([A-Z]+)", "(/[^"]*)", TD_BODY_')
DEFINE = re.compile(r'^#define (\w+) (".*")$', re.M)


def uncovered(asked):
    """Routes of the sources that nobody asked: of asked, (method, path) pairs."""
    missing = []
    for source in sorted((ROOT / "src" / "serve").glob("**/*.c")):
        text = source.read_text()
        for name, value in DEFINE.findall(text):
            text = re.sub(rf"\b{name}\b", value, text)
        for method, path in ROUTE.findall(text.replace('" "', "")):
            fits = re.compile(re.escape(path).replace(r"\{\}", "[^/]+") + "$")
            if not any(m == method and fits.match(p.split("?")[0]) for m, p in asked):
                missing.append(f"{method} {path}")
    return missing
