"""Comparisons over HTTP, from the first order to the last deletion. See docs/api.md, "Comparisons"."""
import json
import os
import shutil
import threading
import time

import numpy as np
import pytest
from comparing import (COMPARISONS, begin, dump, endless, events, finished, large, look, pack, rest, result, started, upload)

SMALL = {"identical": 3, "within": 0, "diverged": 1, "errors": 0, "only_a": 0, "only_b": 0, "pairs": 4,
         "coverage": {"a": 1, "b": 1}, "enough": True}


@pytest.fixture
def sides(tmp_path):
    """Two folders that part at layer 1, key."""
    return dump(tmp_path / "hf"), dump(tmp_path / "ours", change="1_key")


# --- the life of one -----------------------------------------------------------------------------------------


def test_from_order_to_result(server, sides, tdbg):
    a, b = sides
    answer = begin(server, a, b)
    assert answer.status == 202
    c = answer.json
    assert c["status"] in ("queued", "running", "done")
    assert (c["title"], c["kind"], c["error"], c["settings"]) == ("hf against ours", "diff", None, {})
    assert c["a"] == {"name": "hf", "path": str(a), "upload": None, "changed": False, "missing": False}
    assert abs(c["created"] - time.time()) < 60
    c = rest(server, c["id"])
    assert (c["status"], c["summary"]) == ("done", SMALL)
    assert set(c["first"]) == {"index", "name", "kind"}
    assert c["first"]["name"] == "1_key.npy"
    assert result(server, c["id"])["pairs"][c["first"]["index"]]["name"] == "1_key.npy"
    assert c["progress"]["done"] == c["progress"]["total"] > 0
    assert result(server, c["id"]) == tdbg.json("diff", a, b, status=1)
    assert server.get(COMPARISONS).json == {"comparisons": [c]}


def test_page_carries_what_it_shows(server, sides):
    """Nothing in it can end the element that holds it, whatever a name says."""
    if not server.get("/api/v1/status").json["ui"]:
        pytest.skip("a build without the page")
    html, title = {"headers": {"Accept": "text/html"}}, "</script><script src=//evil></script><!--"
    comparison = started(server, *sides, title=title)
    c = rest(server, comparison)
    answer = server.get(f"/c/{comparison}/pairs/1", **html)
    before, _, after = answer.body.decode().partition('<script type="application/json" id="carried">')
    carried, _, _ = after.partition("</script>")
    assert "<" not in carried and json.loads(carried) == {"comparison": c, "state": {}, "result": result(server, comparison)}
    assert "evil" not in before and answer.headers["Cache-Control"] == "no-store"
    plain = server.get("/", **html)
    assert server.get("/c/0123456789abcdef", **html).body == plain.body


def test_page_carries_only_what_is_done(server, tmp_path, sides):
    comparison = started(server, *endless(tmp_path))
    assert b"carried" not in server.get(f"/c/{comparison}", headers={"Accept": "text/html"}).body
    assert server.post(f"{COMPARISONS}/{comparison}/cancel").status == 200


def test_exploring_one_input(server, sides, tdbg):
    comparison = finished(server, sides[0])
    c = look(server, comparison)
    assert (c["kind"], c["b"], c["title"], c["first"]) == ("explore", None, "hf", None)
    assert c["summary"] == {"tensors": 4, "bytes": 4 * 64 * 64 * 4, "with_nan": 0, "with_inf": 0, "skipped": 0}
    document = result(server, comparison)
    assert document == tdbg.json("stats", sides[0])
    assert [t["format"] for t in document["tensors"]] == ["npy"] * 4
    for name in ("report.html", "report.csv", "report.xml", "pairs.json"):
        answer = server.get(f"{COMPARISONS}/{comparison}/{name}")
        assert (answer.status, answer.error) == (409, "a single input is explored: there is no comparison to report")


def test_a_tensor_and_a_slice(server, sides, tdbg):
    a, b = (f"{side}:1_key.npy[0:8, 3]" for side in sides)
    comparison = finished(server, a, b)
    assert look(server, comparison)["a"]["name"] == "hf:1_key.npy[0:8, 3]"
    assert result(server, comparison) == tdbg.json("diff", a, b, status=1)
    explored = result(server, finished(server, a))
    assert [t["shape"] for t in explored["tensors"]] == [[8]]


def test_a_title_of_ones_own(server, sides):
    assert begin(server, *sides, title="Sunday's run \u2013 “b”").json["title"] == "Sunday's run – “b”"


def test_newest_first(server, sides):
    ids = [finished(server, *sides) for _ in range(3)]
    assert [c["id"] for c in server.get(COMPARISONS).json["comparisons"]] == ids[::-1]


def test_an_input_that_cannot_be_read(server, sides, tmp_path):
    broken = tmp_path / "broken.npy"
    broken.write_bytes(b"\x93NUMPY\x01\x00nonsense")
    c = rest(server, started(server, broken, sides[1]))
    assert c["status"] == "failed"
    assert c["error"].startswith(f"{broken}: "), c
    assert (c["summary"], c["first"]) == (None, None)
    answer = server.get(f"{COMPARISONS}/{c['id']}/result")
    assert (answer.status, answer.error) == (409, f"the comparison failed: {c['error']}")
    # Mended, it is compared again.
    np.save(broken, np.zeros((64, 64), np.float32))
    assert server.put(f"{COMPARISONS}/{c['id']}/settings", {}).status == 202
    c = rest(server, c["id"])
    assert (c["status"], c["error"]) == ("done", None)


def test_reports(server, sides, tdbg, tmp_path):
    comparison = finished(server, *sides)
    files = {name: tmp_path / name for name in ("report.html", "report.csv", "report.xml", "pairs.json")}
    tdbg.text("diff", *sides, "--html", files["report.html"], "--csv", files["report.csv"], "--junit",
              files["report.xml"], "--save-pairs", files["pairs.json"], status=1)
    types = {"report.html": "text/html; charset=utf-8", "report.csv": "text/csv; charset=utf-8",
             "report.xml": "application/xml", "pairs.json": "application/json"}
    for name, path in files.items():
        answer = server.get(f"{COMPARISONS}/{comparison}/{name}")
        assert answer.status == 200
        assert answer.body == path.read_bytes(), name
        assert answer.headers["Content-Type"] == types[name]
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    answer = server.get(f"{COMPARISONS}/{comparison}/report.json")
    assert answer.json == tdbg.json("diff", *sides, status=1)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="report.json"'


def test_what_is_not_there(server):
    nothing = f"{COMPARISONS}/0123456789abcdef"
    for method, path, body in (
        ("GET", "", None), ("DELETE", "", None), ("POST", "/cancel", None), ("PUT", "/settings", {}),
        ("GET", "/result", None), ("GET", "/events", None), ("GET", "/report.html", None),
        ("GET", "/report.json", None), ("GET", "/pairs.json", None),
    ):  # fmt: skip
        answer = server.request(method, nothing + path, body)
        assert (answer.status, answer.error) == (404, "no comparison '0123456789abcdef'"), (method, path)
    for method, body in ("GET", None), ("PUT", {}):
        answer = server.request(method, nothing + "/state", body)
        assert (answer.status, answer.error) == (404, "no such comparison")


# --- orders that make no sense -------------------------------------------------------------------------------

NEITHER = 'is neither {"path": …} nor {"upload": …}'

BAD_ORDERS = [
    ([], 400, "the body is not an object"),
    ({}, 400, f'"a" {NEITHER}'),
    ({"a": "x"}, 400, f'"a" {NEITHER}'),
    ({"a": {}}, 400, f'"a" {NEITHER}'),
    ({"a": {"path": 3}}, 400, f'"a" {NEITHER}'),
    ({"a": {"path": "x", "upload": "y"}}, 400, f'"a" {NEITHER}'),
    ({"a": {"upload": "0123456789abcdef"}}, 404, "\"a\": no upload '0123456789abcdef'"),
    ({"a": {"path": "A"}, "b": {}}, 400, f'"b" {NEITHER}'),
    ({"a": {"path": "A"}, "color": 1}, 400, 'no member is called "color"'),
    ({"a": {"path": "A"}, "title": 1}, 400, '"title" is not a text of at most 400 bytes'),
    ({"a": {"path": "A"}, "title": "x" * 401}, 400, '"title" is not a text of at most 400 bytes'),
]


@pytest.mark.parametrize("order,status,error", BAD_ORDERS)
def test_bad_orders(server, sides, order, status, error):
    text = json.dumps(order).replace('"A"', json.dumps(str(sides[0])))
    answer = server.post(COMPARISONS, json.loads(text))
    assert (answer.status, answer.error) == (status, error)


BAD_SETTINGS = [
    (3, 400, '"settings" is not an object'),
    ({"colour": 1}, 400, 'no setting is called "colour"'),
    ({"match": 3}, 400, '"match" is not a text'),
    ({"match": ""}, 400, '"match" is not a text'),
    ({"match": "magic"}, 400, None),
    ({"match": "regex:(=>x"}, 400, None),
    ({"match": "exact,program:touch BAIT"}, 403, "a matcher that is a program runs only from the command line"),
    ({"match": "program:touch BAIT"}, 403, "a matcher that is a program runs only from the command line"),
    ({"threshold": "x"}, 400, '"threshold" is not a number of 0 to 1'),
    ({"threshold": 1.5}, 400, '"threshold" is not a number of 0 to 1'),
    ({"threshold": 0}, 400, "a threshold of 0, at which all names are alike; it is above 0"),
    ({"threshold": -0.5}, 400, '"threshold" is not a number of 0 to 1'),
    ({"policy": "lenient"}, 400, "no policy 'lenient'; there are noise and strict"),
    ({"policy": "strict", "rtol": 0.1}, 400, "one rule at a time: a policy, rtol and atol, or a reference"),
    ({"rtol": -1}, 400, '"rtol" is not a number of 0 or more'),
    ({"atol": True}, 400, '"atol" is not a number of 0 or more'),
    ({"layout": "sideways"}, 400, "'sideways' is no layout; write it as 'b h t d -> t h d'"),
    ({"reference": 5}, 400, '"reference" is not a text'),
    ({"reference": "/etc/passwd"}, 403, None),
    ({"top": 1.5}, 400, '"top" is not a whole number of 0 to 1000'),
    ({"top": 1001}, 400, '"top" is not a whole number of 0 to 1000'),
    ({"coverage": 1.5}, 400, '"coverage" is not a number of 0 to 1'),
    ({"names": 3}, 400, '"names": no object of "PATTERN": "STAGE"'),
    ({"names": "a = b\nc"}, 400, "\"names\": line 2: no '=': a rule is PATTERN = STAGE"),
    ({"names": {"a": 1}}, 400, '"names": "a": what it stands for is no text'),
    ({"pairs": [{"a": "{L}_x.npy", "b": "{L}_query.npy"}]}, 400, "the list of pairs has '{L}_x.npy', which fits no tensor of A"),
    ({"pairs": {}}, 400, 'no array "pairs"'),
    ({"pairs": [{"a": "x"}]}, 400, 'pair 0 has no "a" and "b" that are names'),
    ({"pairs": [{"a": "x", "b": "y", "a_part": [2, 2]}]}, 400, 'pair 0: "a_part" is not [which, of how many]'),
    ({"pairs": [{"a": "x", "b": "y", "b_part": ["first", 2]}]}, 400, 'pair 0: "b_part" is not [which, of how many]'),
]


@pytest.mark.parametrize("settings,status,error", BAD_SETTINGS)
def test_bad_settings(server, sides, tmp_path, settings, status, error):
    bait = tmp_path / "bait"
    settings = json.loads(json.dumps(settings).replace("BAIT", str(bait)))
    answer = begin(server, *sides, settings=settings)
    assert answer.status == status, answer
    assert error is None or answer.error == error
    assert server.get(COMPARISONS).json == {"comparisons": []}
    comparison = finished(server, *sides)
    answer = server.put(f"{COMPARISONS}/{comparison}/settings", settings)
    assert answer.status == status, answer
    assert look(server, comparison)["status"] == "done"
    assert not bait.exists()


# --- settings ------------------------------------------------------------------------------------------------


def test_compared_again_with_other_settings(server, sides, tdbg):
    comparison = finished(server, *sides)
    server.put(f"{COMPARISONS}/{comparison}/state", {"order": [3, 1]})
    answer = server.put(f"{COMPARISONS}/{comparison}/settings", {"rtol": 0, "atol": 2, "top": 3})
    assert answer.status == 202
    assert answer.json["settings"] == {"rtol": 0, "atol": 2, "top": 3}
    c = rest(server, comparison)
    assert c["summary"]["within"] == 1 and c["summary"]["diverged"] == 0
    assert result(server, comparison) == tdbg.json("diff", *sides, "--rtol", 0, "--atol", 2, "--top", 3)
    assert server.get(f"{COMPARISONS}/{comparison}/state").json == {"order": [3, 1]}


def test_pairs_by_hand(server, sides, tdbg):
    settings = {"pairs": [{"a": "0_query.npy", "b": "1_query.npy"}], "match": "exact"}
    comparison = finished(server, *sides, settings)
    pair = next(p for p in result(server, comparison)["pairs"] if p["a"] and p["a"]["name"] == "0_query.npy")
    assert (pair["b"]["name"], pair["strategy"]) == ("1_query.npy", "manual")
    # What was found can be given again.
    pairs = server.get(f"{COMPARISONS}/{comparison}/pairs.json").json["pairs"]
    again = finished(server, *sides, {"pairs": pairs, "match": "manual"})
    assert [(p["a"], p["b"]) for p in result(server, again)["pairs"]] == [
        (p["a"], p["b"]) for p in result(server, comparison)["pairs"]]


def test_pairs_by_hand_one_after_the_other(server, tmp_path):
    """A's keys are in alphabetical order, B's are not: the order is B's. Each list is held against what lies open."""
    for name, keys in ("a", ["qux_1", "qux_2", "qux_3"]), ("b", ["un", "deux", "trois"]):
        np.savez(tmp_path / f"{name}.npz", **{key: np.arange(4.0) + i for i, key in enumerate(keys)})
    comparison = finished(server, tmp_path / "a.npz", tmp_path / "b.npz", {"match": "exact"})
    pairs = []
    for a, b in ("qux_1", "trois"), ("qux_2", "un"), ("qux_3", "deux"):
        pairs.append({"a": a, "b": b})
        assert server.get(f"{COMPARISONS}/{comparison}/pairs/0").status == 200  # now it lies open
        assert server.put(f"{COMPARISONS}/{comparison}/settings", {"match": "exact", "pairs": pairs}).status == 202
        rest(server, comparison)
        found = result(server, comparison)["pairs"]
        assert sorted((p["a"]["name"], p["b"]["name"]) for p in found if p["a"] and p["b"]) == sorted(
            (p["a"], p["b"]) for p in pairs)


def test_pairs_for_all_layers(server, sides):
    settings = {"pairs": [{"a": "{L}_query.npy", "b": "{L}_key.npy"}], "match": "manual"}
    comparison = finished(server, *sides, settings)
    assert [(p["a"]["name"], p["b"]["name"]) for p in result(server, comparison)["pairs"] if p["strategy"] == "manual"] == [
        ("0_query.npy", "0_key.npy"), ("1_query.npy", "1_key.npy")]


def test_coverage_and_names(server, sides):
    settings = {"pairs": [{"a": "0_query.npy", "b": "0_query.npy"}], "match": "manual"}
    comparison = finished(server, *sides, settings)
    assert {key: look(server, comparison)["summary"][key] for key in ("coverage", "enough")} == {
        "coverage": {"a": 0.25, "b": 0.25}, "enough": False}
    names = {"q{L}": "query"}
    comparison = finished(server, *sides, {**settings, "coverage": 0.2, "names": names})
    assert look(server, comparison)["summary"]["enough"] and look(server, comparison)["settings"]["names"] == names
    finished(server, *sides, {"names": "# ours\nq{L} = query\n"})


def test_a_reference(server, sides, tdbg):
    a, b = sides
    comparison = finished(server, a, b, {"reference": str(a)})
    assert result(server, comparison) == tdbg.json("diff", a, b, "--reference", a, status=1)


# --- the page's notes ----------------------------------------------------------------------------------------


def test_state(server, sides):
    path = f"{COMPARISONS}/{finished(server, *sides)}/state"
    assert server.get(path).json == {}
    notes = {"order": [2, 0, 1], "filter": "Ünï", "deep": {"x": [None, True, 1.5]}}
    answer = server.put(path, notes)
    assert (answer.status, answer.json) == (200, notes)
    assert server.get(path).json == notes
    assert server.put(path, [1]).error == "the body is not an object"
    answer = server.put(path, {"x": "y" * (1 << 20)})
    assert (answer.status, answer.error) == (413, "notes of 1048584 bytes; 1048576 are the most")
    assert server.get(path).json == notes


def test_state_is_changed_in_part(server, sides):
    path = f"{COMPARISONS}/{finished(server, *sides)}/state"
    server.put(path, {"order": [2, 0, 1], "mappings": {"1": {"a": "0", "b": "1"}}, "other": "x"})
    answer = server.request("PATCH", path, {"mappings": {"3": {"a": "2", "b": "3"}}, "other": None})
    both = {"1": {"a": "0", "b": "1"}, "3": {"a": "2", "b": "3"}}
    assert (answer.status, answer.json) == (200, {"order": [2, 0, 1], "mappings": both})
    assert server.request("PATCH", path, {"order": []}).json == {"order": [], "mappings": both} == server.get(path).json
    assert server.request("PATCH", path, {"new": {"deep": {"gone": None, "x": 1}}}).json["new"] == {"deep": {"x": 1}}
    before = server.get(path).json
    assert server.request("PATCH", path, [1]).error == "the body is not an object"
    assert server.request("PATCH", path, {"x": "y" * (1 << 20)}).status == 413
    assert server.request("PATCH", f"{COMPARISONS}/0123456789abcdef/state", {}).status == 404
    assert server.get(path).json == before


def test_many_change_the_state_at_once(server, sides):
    path = f"{COMPARISONS}/{finished(server, *sides)}/state"

    def write(n):
        for i in range(10):
            assert server.request("PATCH", path, {"mappings": {str(10 * n + i): {"a": "0", "b": str(n)}}}).status == 200

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(server.get(path).json["mappings"]) == {str(i) for i in range(40)}


def compare_again(server, comparison, settings):
    answer = server.put(f"{COMPARISONS}/{comparison}/settings", settings)
    assert answer.status == 202, answer
    found = rest(server, comparison)
    assert found["status"] == "done", found
    return found


def indices(server, comparison):
    """By the names of both sides."""
    return {tuple(side and side["name"] for side in (pair["a"], pair["b"])): str(pair["index"])
            for pair in result(server, comparison)["pairs"]}


@pytest.mark.parametrize("original", [False, True])
def test_notes_follow_the_pairs(server, sides, original):
    """Whoever makes other pairs, through whichever of the two APIs."""
    comparison = finished(server, *sides)
    path, before = f"{COMPARISONS}/{comparison}/state", indices(server, comparison)
    keys, queries = ("1_key.npy",) * 2, ("0_query.npy",) * 2
    mappings = {before[keys]: {"a": "1", "b": "2"}, before[queries]: {"a": "3", "b": "4"}}
    notes = {"order": [3, 2, 1, 0], "mappings": mappings, "other": "x"}
    server.put(path, notes)
    # Another tolerance, the same pairs: nothing is lost.
    compare_again(server, comparison, {"policy": "strict"})
    assert indices(server, comparison) == before and server.get(path).json == notes
    hand = ("0_query.npy", "1_query.npy")
    if original:
        assert server.post("/manual_pair", {"model1_file": hand[0], "model2_file": hand[1]}).status == 200
    else:
        compare_again(server, comparison, {"pairs": [{"a": hand[0], "b": hand[1]}]})
    after = indices(server, comparison)
    assert hand in after and queries not in after and after[keys] != before[keys]
    assert server.get(path).json == {"mappings": {after[keys]: {"a": "1", "b": "2"}}, "other": "x"}


def test_a_result_that_was_replaced_is_not_mixed_with_the_new_one(serve, sides, tmp_path):
    server = serve("--root", tmp_path)
    comparison = finished(server, *sides)
    first = look(server, comparison)["generation"]
    pair = f"{COMPARISONS}/{comparison}/pairs/0"
    assert server.get(f"{pair}?generation={first}").json["generation"] == first
    second = compare_again(server, comparison, {"pairs": [{"a": "0_query.npy", "b": "1_query.npy"}]})["generation"]
    assert second > first
    again = "compared again since; its pairs may be others now"
    for route in ("", "/values", "/mapped", "/worst", "/tile", "/export"):
        answer = server.get(f"{pair}{route}?generation={first}&slice=0,0&view=0,:&a=0,0&b=0,0")
        assert (answer.status, answer.error) == (409, again), route
    assert server.get(f"{pair}/values?generation={second}&slice=0,0").status == 200
    assert server.get(f"{pair}/values?generation=x").status == 400
    state = f"{COMPARISONS}/{comparison}/state"
    answer = server.request("PATCH", f"{state}?generation={first}", {"order": [1, 0]})
    assert (answer.status, answer.error) == (409, again)
    assert server.get(state).json == {}
    assert server.request("PATCH", f"{state}?generation={second}", {"order": [1, 0]}).json == {"order": [1, 0]}
    server.stop()
    server = serve("--root", tmp_path)
    assert look(server, comparison)["generation"] == second
    assert server.get(f"{pair}/values?generation={second}&slice=0,0").status == 200


# --- following and stopping ----------------------------------------------------------------------------------


def test_events(server, tmp_path):
    a, b = large(tmp_path / "a" / "x.pth"), large(tmp_path / "b" / "x.pth", value=2)
    comparison = started(server, a, b)
    begin_time = time.monotonic()
    seen = events(server, comparison)
    seconds = time.monotonic() - begin_time
    order = ["queued", "running", "done"]
    places = [order.index(c["status"]) for c in seen]
    assert places == sorted(places) and seen[-1]["status"] == "done"
    assert all(c["id"] == comparison for c in seen)
    done = [c["progress"]["done"] for c in seen]
    assert done == sorted(done)
    assert len(seen) <= 10 * seconds + 3
    # Of one that stands still there is one event, and the end.
    assert events(server, comparison) == [look(server, comparison)]


def test_a_running_one_is_stopped(server, tmp_path, sides):
    comparison = started(server, *endless(tmp_path))
    while look(server, comparison)["status"] == "queued":
        time.sleep(0.001)
    waiting = started(server, *sides)
    assert server.put(f"{COMPARISONS}/{waiting}/settings", {}).status == 409
    # One that waits is stopped at once, one that runs soon.
    assert server.post(f"{COMPARISONS}/{waiting}/cancel").json["status"] == "cancelled"
    answer = server.post(f"{COMPARISONS}/{comparison}/cancel")
    assert answer.status == 200
    assert answer.json["status"] == "cancelled"
    assert server.get(f"{COMPARISONS}/{waiting}/result").error == "the comparison is cancelled"
    assert server.post(f"{COMPARISONS}/{waiting}/cancel").json["status"] == "cancelled"
    assert server.put(f"{COMPARISONS}/{waiting}/settings", {}).status == 202
    assert rest(server, waiting)["status"] == "done"


def test_deleted_while_it_runs(server, tmp_path):
    a, b = endless(tmp_path)
    comparison = started(server, a, b)
    waiting = started(server, a, b)
    while look(server, comparison)["status"] == "queued":
        time.sleep(0.001)
    for one in comparison, waiting:
        answer = server.delete(f"{COMPARISONS}/{one}")
        assert (answer.status, answer.body) == (204, b"")
    assert server.get(COMPARISONS).json == {"comparisons": []}
    assert a.exists() and b.exists()


def test_too_many_wait(server, tmp_path, sides):
    first = started(server, *endless(tmp_path))
    while look(server, first)["status"] == "queued":
        time.sleep(0.001)
    answers = [begin(server, *sides) for _ in range(65)]
    refused = [answer for answer in answers if answer.status != 202]
    assert [(r.status, r.error) for r in refused] == [(429, "64 comparisons wait already; try again later")]
    server.post(f"{COMPARISONS}/{first}/cancel")
    for answer in answers:
        if answer.status == 202:
            assert rest(server, answer.json["id"])["status"] == "done"


# --- inputs on disk ------------------------------------------------------------------------------------------


def touch(path):
    """Another time than before, whatever the clock's grain."""
    st = os.stat(path)
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns + 1_000_000))


def flags(server, comparison, wanted=None):
    """(changed, missing) of each side. The server looks at the disk sparingly: what is wanted may take a while."""
    for _ in range(500):
        c = look(server, comparison)
        seen = [(c[side]["changed"], c[side]["missing"]) for side in "ab"]
        if wanted is None or seen == wanted:
            break
        time.sleep(0.02)
    return seen


def test_a_file_that_changes_and_vanishes(serve, tmp_path, sides):
    a, b = pack(sides[0], tmp_path / "a.zip"), pack(sides[1], tmp_path / "b.zip")
    server = serve("--root", tmp_path)
    comparison = finished(server, a, b)
    assert flags(server, comparison) == [(False, False), (False, False)]
    touch(b)
    changed = [(False, False), (True, False)]
    assert flags(server, comparison, changed) == changed
    answer = server.get(f"{COMPARISONS}/{comparison}/report.html")
    assert (answer.status, answer.error) == (409, "b.zip: changed since it was compared; compare again")
    # The result is what it was.
    assert result(server, comparison)["summary"] == SMALL
    server.put(f"{COMPARISONS}/{comparison}/settings", {})
    assert rest(server, comparison)["status"] == "done"
    assert flags(server, comparison) == [(False, False), (False, False)]
    a.unlink()
    gone = [(False, True), (False, False)]
    assert flags(server, comparison, gone) == gone
    # It lies open, and is still what was compared; a new server cannot open it.
    assert server.get(f"{COMPARISONS}/{comparison}/report.html").status == 200
    server.stop()
    server = serve("--root", tmp_path)
    answer = server.get(f"{COMPARISONS}/{comparison}/report.html")
    assert (answer.status, answer.error) == (422, "a.zip: no longer there")
    assert result(server, comparison)["summary"] == SMALL


@pytest.mark.parametrize("what", ["touched", "added", "removed", "renamed", "below"])
def test_a_folder_that_changes(server, sides, what):
    folder = sides[0]
    (folder / "sub").mkdir()
    shutil.copy(folder / "0_key.npy", folder / "sub" / "9_key.npy")
    comparison = finished(server, *sides)
    assert flags(server, comparison) == [(False, False), (False, False)]
    if what == "touched":
        touch(folder / "0_key.npy")
    elif what == "added":
        shutil.copy(folder / "0_key.npy", folder / "7_key.npy")
    elif what == "removed":
        (folder / "0_key.npy").unlink()
    elif what == "renamed":
        (folder / "0_key.npy").rename(folder / "8_key.npy")
    else:
        touch(folder / "sub" / "9_key.npy")
    changed = [(True, False), (False, False)]
    assert flags(server, comparison, changed) == changed


# --- uploads -------------------------------------------------------------------------------------------------


def uploads_in(server):
    return sorted(p.name for p in (server.data / "uploads").iterdir() if p.is_dir())


def test_uploads_go_with_the_last_comparison(server, sides, tmp_path):
    a, b = (upload(server, pack(side, tmp_path / f"{side.name}.zip")) for side in sides)
    first, second = finished(server, a, b), finished(server, a)
    c = look(server, first)
    assert (c["a"]["name"], c["a"]["upload"]) == ("hf.zip", a["upload"])
    assert uploads_in(server) == sorted([a["upload"], b["upload"]])
    server.delete(f"{COMPARISONS}/{first}")
    assert uploads_in(server) == [a["upload"]]
    assert rest(server, second)["status"] == "done"
    assert server.get(f"{COMPARISONS}/{second}/result").status == 200
    server.delete(f"{COMPARISONS}/{second}")
    assert uploads_in(server) == []
    assert begin(server, a).status == 404


# --- restarting ----------------------------------------------------------------------------------------------


def test_everything_comes_back(serve, sides, tmp_path, tdbg):
    server = serve("--root", tmp_path)
    a = upload(server, pack(sides[0], tmp_path / "a.zip"))
    first = finished(server, a, sides[1], {"policy": "strict"}, title="first")
    second = finished(server, sides[0])
    failed = rest(server, started(server, sides[0], sides[1], {"layout": "x y z -> z y x"}))
    notes = {"order": [3, 2, 1, 0]}
    server.put(f"{COMPARISONS}/{first}/state", notes)
    before = server.get(COMPARISONS).json
    results = [result(server, one) for one in (first, second)]
    server.stop()
    server = serve("--root", tmp_path)
    after = server.get(COMPARISONS).json
    for c in before["comparisons"] + after["comparisons"]:
        del c["progress"]
    assert after == before
    assert [c["id"] for c in after["comparisons"]] == [failed["id"], second, first]
    assert [result(server, one) for one in (first, second)] == results
    assert server.get(f"{COMPARISONS}/{first}/state").json == notes
    # Its values are opened again when somebody looks.
    assert server.get(f"{COMPARISONS}/{first}/report.csv").status == 200


def test_what_was_under_way_begins_anew(serve, tmp_path, sides):
    a, b = large(tmp_path / "a" / "x.pth"), large(tmp_path / "b" / "x.pth", value=2)
    server = serve("--root", tmp_path)
    running = started(server, a, b)
    while look(server, running)["status"] == "queued":
        time.sleep(0.001)
    waiting = started(server, *sides)
    assert server.stop() < 10
    server = serve("--root", tmp_path)
    assert rest(server, running)["status"] == "done"
    assert rest(server, waiting)["summary"] == SMALL


def test_more_than_lie_open(server, tmp_path):
    """Comparisons that were closed to make room are opened again, also for many who ask at once."""
    folders = [dump(tmp_path / f"m{i}", seed=i) for i in range(11)]
    ids = [finished(server, folder, folders[0]) for folder in folders]
    expected = [server.get(f"{COMPARISONS}/{one}/report.csv").body for one in ids]
    assert len(set(expected)) == 11
    wrong = []

    def ask(order):
        for i in order:
            answer = server.get(f"{COMPARISONS}/{ids[i]}/report.csv")
            if answer.status != 200 or answer.body != expected[i]:
                wrong.append((i, answer))

    orders = [np.random.default_rng(seed).permutation(11).tolist() for seed in range(6)] + [[0] * 11] * 2
    threads = [threading.Thread(target=ask, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_damaged_store_is_refused(serve, tmp_path, tdbg):
    server = serve("--root", tmp_path)
    server.stop()
    (server.data / "tdbg.db").write_bytes(b"no database" * 1000)
    message = tdbg.fails("serve", "--port", 0, "--data", server.data)
    assert message == f"tdbg: {server.data / 'tdbg.db'}: not a file of tdbg's"


def test_one_tensor_of_an_upload(server, sides, tmp_path):
    a = upload(server, pack(sides[0], tmp_path / "all.zip"))
    names = [tensor["name"] for tensor in result(server, finished(server, a))["tensors"]]
    comparison = finished(server, {**a, "tensor": names[0]}, {**a, "tensor": names[0]})
    assert look(server, comparison)["a"]["name"] == f"all.zip:{names[0]}"
    assert result(server, comparison)["summary"]["identical"] == 1
    assert begin(server, {"path": str(sides[0]), "tensor": names[0]}).status == 400


# --- pairs by hand that are not there ------------------------------------------------------------------------


NOWHERE = "the list of pairs names 'nowhere.npy', which is not in B"


def test_pairs_that_name_nothing_leave_the_result(server, sides):
    comparison = finished(server, *sides)
    before = look(server, comparison)
    wrong = [{"a": "0_key.npy", "b": "0_key.npy"}, {"a": "1_key.npy", "b": "nowhere.npy"}]
    answer = server.put(f"{COMPARISONS}/{comparison}/settings", {"pairs": wrong})
    assert (answer.status, answer.error) == (400, NOWHERE)
    assert look(server, comparison) == before
    assert result(server, comparison)["summary"] == SMALL
    twice = [{"a": "0_key.npy", "b": "0_key.npy"}, {"a": "0_key.npy", "b": "1_key.npy"}]
    answer = server.put(f"{COMPARISONS}/{comparison}/settings", {"pairs": twice})
    assert (answer.status, answer.error) == (400, "the list of pairs has '0_key.npy' of A in more than one pair")
    assert look(server, comparison) == before


def test_pairs_are_checked_where_nothing_lies_open(server, sides, tmp_path):
    """After a failure, and when an input has changed: by opening the inputs as they are now."""
    moved = sides[1].rename(tmp_path / "away")
    sides[1].mkdir()
    c = rest(server, started(server, *sides))
    assert c["status"] == "failed"
    sides[1].rmdir()
    moved.rename(sides[1])
    wrong = {"pairs": [{"a": "1_key.npy", "b": "nowhere.npy"}]}
    assert server.put(f"{COMPARISONS}/{c['id']}/settings", wrong).error == NOWHERE
    assert look(server, c["id"])["error"] == c["error"]
    assert server.put(f"{COMPARISONS}/{c['id']}/settings", {}).status == 202
    assert rest(server, c["id"])["status"] == "done"
    np.save(sides[1] / "nowhere.npy", np.zeros((64, 64), np.float32))
    assert server.put(f"{COMPARISONS}/{c['id']}/settings", wrong).status == 202
    assert rest(server, c["id"])["status"] == "done"


def test_a_comparison_is_not_begun_with_pairs_that_name_nothing(server, sides):
    wrong = {"pairs": [{"a": "1_key.npy", "b": "nowhere.npy"}]}
    answer = begin(server, *sides, wrong)
    assert (answer.status, answer.error) == (400, NOWHERE)
    assert server.get(COMPARISONS).json == {"comparisons": []}
    # What cannot be opened says so itself, as ever.
    broken = sides[1].parent / "broken.npy"
    broken.write_bytes(b"nonsense")
    assert rest(server, started(server, sides[0], broken, wrong))["status"] == "failed"
