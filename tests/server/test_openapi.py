"""docs/openapi.yaml says what the server does: the same routes, and answers that fit their schemas."""
import re

import comparing
import jsonschema
import numpy as np
import pytest
import yaml
from built import ROOT
from runfiles import Run

API = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())
METHODS = {"get", "post", "put", "patch", "delete"}
DEFINE = re.compile(r'^#define (\w+) (".*")$', re.M)
ROUTE = re.compile(r'\{"([A-Z]+)", "(/api/v1/[^"]*)", TD_BODY_')


def documented():
    return {(method.upper(), re.sub(r"\{\w+\}", "{}", path))
            for path, item in API["paths"].items() for method in item.keys() & METHODS}


def routes(source):
    """The rows of a file's tables, with its macros put in."""
    text = source.read_text()
    for name, value in DEFINE.findall(text):
        text = re.sub(rf"\b{name}\b", value, text)
    return ROUTE.findall(text.replace('" "', ""))


def test_every_route_is_documented_and_no_other():
    served = {route for source in (ROOT / "src" / "serve").glob("*.c") for route in routes(source)}
    assert served == documented()


def modern(schema):
    """OpenAPI's `nullable` as JSON Schema says it; references looked up."""
    if isinstance(schema, list):
        return [modern(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return modern(resolve(schema))
    out = {key: modern(value) for key, value in schema.items() if key != "nullable"}
    return {"oneOf": [{"type": "null"}, out]} if schema.get("nullable") is True else out


def resolve(node):
    while "$ref" in node:
        target = API
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def check(method, path, answer):
    """The answer's status is documented, its type is, and where that is JSON it fits the schema."""
    responses = API["paths"][path][method.lower()]["responses"]
    assert str(answer.status) in responses, (method, path, answer)
    content = resolve(responses[str(answer.status)]).get("content", {})
    if not content:
        assert answer.body == b"", answer
        return
    kind = answer.headers["Content-Type"].split(";")[0]
    assert kind in content, (method, path, kind)
    if kind == "application/json":
        jsonschema.validate(answer.json, modern(content[kind]["schema"]))


@pytest.fixture
def answers(server, tmp_path):
    """Asks, checks, and remembers what was asked."""
    asked = set()

    def ask(method, path, body=None, query="", **values):
        url = "/api/v1" + path.format(**values) + query
        answer = server.request(method, url, body)
        check(method, "/api/v1" + path, answer)
        asked.add((method, re.sub(r"\{\w+\}", "{}", "/api/v1" + path)))
        return answer

    ask.asked = asked
    ask.server = server
    return ask


def test_answers_fit_their_schemas(answers, tmp_path):
    a, b = comparing.dump(tmp_path / "a"), comparing.dump(tmp_path / "b", change="1_query")
    np.save(a / "9_alone.npy", np.array([[1, np.nan, np.inf]], np.float32))
    answers("GET", "/status")
    answers("GET", "/folder")
    answers("GET", "/folder", query=f"?path={tmp_path}")
    answers("GET", "/folder", query="?path=/")
    upload = answers("POST", "/uploads", (a / "0_key.npy").read_bytes(), "?name=k.npy").json["id"]
    answers("POST", "/uploads", b"", "")
    answers("POST", "/comparisons", {"a": {"path": "/etc"}})
    answers("POST", "/comparisons", {"a": 1})
    one = answers("POST", "/comparisons", {"a": {"upload": upload}, "b": None}).json["id"]
    two = answers("POST", "/comparisons", {"a": {"path": str(a)}, "b": {"path": str(b)}}).json["id"]
    for comparison in (one, two):
        comparing.rest(answers.server, comparison)
        answers("GET", "/comparisons/{id}", id=comparison)
        answers("GET", "/comparisons/{id}/result", id=comparison)
        answers("GET", "/comparisons/{id}/events", id=comparison)
        look_at_pair(answers, comparison, 0)
    look_at_pair(answers, two, len(answers("GET", "/comparisons/{id}/result", id=two).json["pairs"]) - 1)
    answers("GET", "/comparisons/{id}/pairs/{index}", id=two, index=99)
    answers("GET", "/comparisons/{id}/state", id=two)
    answers("PUT", "/comparisons/{id}/state", {"order": [1, 0]}, id=two)
    answers("PATCH", "/comparisons/{id}/state", {"order": [0, 1]}, id=two)
    answers("PATCH", "/comparisons/{id}/state", {"order": [0, 1]}, "?generation=1", id=two)
    answers("GET", "/comparisons/{id}/pairs/{index}", query="?generation=1", id=two, index=0)
    for report in ("report.html", "report.json", "report.csv", "report.xml", "pairs.json"):
        answers("GET", "/comparisons/{id}/" + report, id=two)
    answers("PUT", "/comparisons/{id}/settings", {"policy": "strict"}, id=two)
    comparing.rest(answers.server, two)
    answers("PUT", "/comparisons/{id}/settings", {"policy": "lenient"}, id=two)
    answers("POST", "/comparisons/{id}/cancel", id=two)
    answers("GET", "/comparisons")
    look_at_runs(answers, tmp_path)
    refuse(answers, two)
    answers("DELETE", "/comparisons/{id}", id=two)
    answers("GET", "/comparisons/{id}", id=two)
    assert answers.asked == documented()


def refuse(answers, comparison):
    """Whatever is asked of a comparison that is not there, or of a pair of another result, is refused as documented."""
    for path, item in API["paths"].items():
        short = path.removeprefix("/api/v1")
        if "{id}" not in short:
            continue
        for method in sorted(item.keys() & METHODS):
            body = {} if method in ("put", "patch") else None
            assert answers(method.upper(), short, body, id="0" * 16, index=0).status == 404, (method, path)
        if "{index}" in short:
            assert answers("GET", short, query="?generation=99999", id=comparison, index=0).status == 409, path


def look_at_runs(answers, folder):
    run = Run(folder / "run")
    run.tensor("x", np.array([np.nan, 1], np.float32))
    run.spans([("model/fc", 0, 5)])
    run.scalar("loss", 0, 1.5)
    run.note("capture", "*=stats")
    run.step()
    run.close()
    answers("GET", "/runs")
    answers("GET", "/runs", query="?path=/")
    answers("GET", "/run", query=f"?path={run.folder}")
    answers("GET", "/run", query=f"?path={folder}")
    answers("GET", "/run")
    answers("GET", "/run/events")
    answers("POST", "/run/control", {"path": str(run.folder), "do": "continue"})
    answers("POST", "/run/control", {"path": str(run.folder), "do": "explode"})


def look_at_pair(answers, comparison, index):
    pair = {"id": comparison, "index": index}
    at = "/comparisons/{id}/pairs/{index}"
    sides = answers("GET", at, **pair).json
    side = "a" if sides["a"] else "b"
    both = sides["a"] and sides["b"]
    answers("GET", at + "/values", query="?slice=0,0:2", **pair)
    answers("GET", at + "/values", query="?slice=x", **pair)
    answers("GET", at + "/find", query=f"?side={side}&what=nan", **pair)
    answers("GET", at + "/find", query=f"?side={side}&low=1", **pair)
    answers("GET", at + "/histogram", **pair)
    answers("GET", at + "/profile", **pair)
    answers("GET", at + "/tile", query=f"?view=:,:&what={side}", **pair)
    answers("GET", at + "/tile", query="?view=:,:&level=-1", **pair)
    for kind in ("npy", "csv"):
        answers("GET", at + "/export", query=f"?side={side}&slice=0&format={kind}", **pair)
    if both:
        answers("GET", at + "/mapped", query="?a=0,0:3&b=0,0:3", **pair)
        answers("GET", at + "/worst", **pair)
        answers("GET", at + "/density", **pair)
