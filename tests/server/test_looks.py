"""Looking at a pair over HTTP: every answer against numpy, and every parameter that makes no sense."""
import io
import os
import urllib.parse

import numpy as np
import pytest
import torch
from comparing import COMPARISONS, finished, result
from serving import Server

SHAPE = (6, 40, 300)


def random(seed, shape=SHAPE):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Pairs:
    """A comparison that is done; asked by the name of the pair."""

    def __init__(self, server, a, b=None, settings=None):
        self.server = server
        self.id = finished(server, a, b, settings)
        document = result(server, self.id)
        rows = document["pairs"] if b else document["tensors"]
        self.index = {row["name"]: row.get("index", i) for i, row in enumerate(rows)}

    def get(self, name, route="", /, **query):
        path = f"{COMPARISONS}/{self.id}/pairs/{self.index.get(name, name)}"
        return self.server.get(f"{path}{'/' if route else ''}{route}?{urllib.parse.urlencode(query)}")

    def json(self, name, route="", /, **query):
        answer = self.get(name, route, **query)
        assert answer.status == 200, answer
        return answer.json

    def values(self, name, **query):
        answer = self.get(name, "values", **query)
        assert answer.status == 200, answer
        shape = [int(n) for n in answer.headers["X-Tdbg-Shape"].split(",")]
        sides = answer.headers["X-Tdbg-Sides"]
        return sides, np.frombuffer(answer.body, "<f8").reshape([3 if sides == "ab" else 1] + shape)

    def tile(self, name, **query):
        answer = self.get(name, "tile", **query)
        assert answer.status == 200, answer
        return np.frombuffer(answer.body, "<f4").reshape([int(n) for n in answer.headers["X-Tdbg-Shape"].split(",")])


class World:
    def __init__(self, folder):
        a, b = folder / "a", folder / "b"
        a.mkdir()
        b.mkdir()
        self.plain = random(1), random(1) + random(2) / 100
        self.odd = random(3), random(3)
        self.odd[0][0, 0, 0] = self.odd[1][0, 0, 0] = np.nan
        self.odd[1][1, 2, 3] = np.nan
        self.odd[0][2, 3, 4:6] = np.inf, -np.inf
        self.odd[0][5, 39, 299] = 0
        self.turned = random(4, (30, 50, 20)), random(4, (30, 50, 20))
        self.only = random(5, (7, 11))
        self.ints = np.arange(600, dtype=np.int64).reshape(20, 30), np.arange(600, dtype=np.int64).reshape(20, 30) + 1
        self.scalar = np.float32(3), np.float32(4)
        for name in ("plain", "odd", "ints", "scalar"):
            np.save(a / f"{name}.npy", getattr(self, name)[0])
            np.save(b / f"{name}.npy", getattr(self, name)[1])
        np.save(a / "turned.npy", self.turned[0])
        np.save(b / "turned.npy", np.ascontiguousarray(self.turned[1].transpose(1, 0, 2)))
        np.save(a / "only.npy", self.only)
        self.a, self.b = a, b


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("looks")
    world = World(folder)
    data = folder / "data"
    data.mkdir()
    with Server(data, "--root", folder) as server:
        world.server = server
        world.pairs = Pairs(server, world.a, world.b)
        yield world


def test_pair(world):
    found = world.pairs.json("plain.npy")
    a, b = (x.astype(np.float64) for x in world.plain)
    assert found["index"] == world.pairs.index["plain.npy"] and found["shape"] == list(SHAPE)
    assert found["a"] == {"name": "plain.npy", "dtype": "float32", "shape": list(SHAPE)} == found["b"]
    assert found["metrics"]["max_abs"] == np.abs(a - b).max()
    assert found["a_stats"]["min"] == a.min() and found["b_stats"]["max"] == b.max()
    assert found["a_stats"]["mean"] == pytest.approx(a.mean(), rel=1e-12)
    assert found["a_stats"]["count"] == a.size
    alone = world.pairs.json("only.npy")
    assert alone["b"] is alone["metrics"] is alone["layout"] is alone["b_stats"] is None
    assert alone["a_stats"]["std"] == pytest.approx(world.only.astype(np.float64).std(ddof=1), rel=1e-12)


@pytest.mark.parametrize("text", ["5,12,0:16", "...,::-7", "2", "-1,:,3", "0:2,5:9,100:300:3", "1,2,3", "0:0"])
def test_values(world, text):
    expected = [eval(f"x[{text}]", {"x": x.astype(np.float64)}) for x in world.plain]
    sides, got = world.pairs.values("plain.npy", slice=text)
    assert sides == "ab"
    for k, want in enumerate([*expected, expected[1] - expected[0]]):
        np.testing.assert_array_equal(got[k].reshape(np.shape(want)), want)


def test_values_of_other_kinds(world):
    for name, pair in (("odd.npy", world.odd), ("turned.npy", world.turned), ("ints.npy", world.ints)):
        text = "1,2" if pair[0].ndim > 2 else "3:5"
        with np.errstate(invalid="ignore"):
            for k, want in enumerate([*pair, pair[1].astype(np.float64) - pair[0]]):
                want = eval(f"x[{text}]", {"x": want}).astype(np.float64)
                np.testing.assert_array_equal(world.pairs.values(name, slice=text)[1][k], want)
    sides, got = world.pairs.values("only.npy", slice="2")
    assert sides == "a"
    np.testing.assert_array_equal(got[0], world.only[2])
    np.testing.assert_array_equal(world.pairs.values("scalar.npy")[1].ravel(), [3, 4, 1])


def test_flat_values(world):
    flat = [x.ravel().astype(np.float64) for x in world.plain]
    for text in ("100:116", "-5:", ":10", "71999"):
        got = world.pairs.values("plain.npy", flat=text)[1]
        want = [np.atleast_1d(eval(f"x[{text}]", {"x": x})) for x in flat]
        np.testing.assert_array_equal(got, [*want, want[1] - want[0]])
    assert world.pairs.get("plain.npy", "values", flat="0:10:2").error == (
        "a range of the flattened tensor has no step: [0:10:2]")


def test_mapped(world):
    found = world.pairs.json("turned.npy", "mapped", a="5,:,0", b=":,6,0")
    a, b = world.turned[0][5, :, 0].astype(np.float64), world.turned[1][6, :, 0].astype(np.float64)
    np.testing.assert_array_equal(found["a"]["values"], a)
    np.testing.assert_array_equal(found["b"]["values"], b)
    assert found["a"]["shape"] == [50] and found["b"]["stats"]["min"] == b.min()
    assert found["difference"]["max_abs"] == np.abs(a - b).max()
    assert found["difference"]["mse"] == pytest.approx(((a - b) ** 2).mean(), rel=1e-12)
    assert found["difference"]["cosine"] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-12)
    assert found["difference"]["count"] == 50
    assert world.pairs.json("turned.npy", "mapped", a="5,:,0", b="0,0,0")["difference"] is None
    assert world.pairs.json("only.npy", "mapped", a="2")["b"] is None
    assert world.pairs.get("plain.npy", "mapped", a="0,0", b="0").status == 413


def test_worst(world):
    a, b = (x.astype(np.float64) for x in world.plain)
    found = world.pairs.json("plain.npy", "worst", count=7)["worst"]
    order = np.argsort(-np.abs(a - b).ravel(), kind="stable")[:7]
    for row, flat in zip(found, order, strict=True):
        at = np.unravel_index(flat, SHAPE)
        assert row == {"index": [int(n) for n in at], "a": a[at], "b": b[at], "difference": b[at] - a[at]}
    assert len(world.pairs.json("plain.npy", "worst")["worst"]) == 20
    odd = world.pairs.json("odd.npy", "worst", count=3)["worst"]
    assert [row["index"] for row in odd] == [[1, 2, 3], [2, 3, 4], [2, 3, 5]]
    assert odd[0]["b"] == odd[0]["difference"] == "nan" and odd[1]["a"] == "inf" and odd[1]["difference"] == "-inf"
    assert world.pairs.get("only.npy", "worst").error == "this needs two sides; there is only a"


def test_find(world):
    a = world.plain[0].ravel()
    places, start = [], 0
    while start is not None:
        found = world.pairs.json("plain.npy", "find", side="a", low=1, high=1.5, limit=1000, **{"from": start})
        places += found["places"]
        assert found["next"] is None or found["next"] > start
        start = found["next"]
    expected = np.flatnonzero((a >= 1) & (a <= 1.5))
    assert [place["flat"] for place in places] == expected.tolist()
    assert places[3]["index"] == [int(n) for n in np.unravel_index(expected[3], SHAPE)]
    assert places[3]["value"] == a[expected[3]]
    assert [p["index"] for p in world.pairs.json("odd.npy", "find", side="b", what="nan")["places"]] == [
        [0, 0, 0], [1, 2, 3]]
    infinite = world.pairs.json("odd.npy", "find", what="inf")
    assert [p["value"] for p in infinite["places"]] == ["inf", "-inf"] and infinite["next"] is None
    assert [p["index"] for p in world.pairs.json("odd.npy", "find", what="zero")["places"]] == [[5, 39, 299]]
    some = world.pairs.json("plain.npy", "find", low=-10, limit=2)
    assert [p["flat"] for p in some["places"]] == [0, 1] and some["next"] == 2


def test_histogram(world):
    for name, pair in (("plain.npy", world.plain), ("odd.npy", world.odd), ("turned.npy", world.turned)):
        finite = [x[np.isfinite(x)].astype(np.float64) for x in pair]
        low, high = min(x.min() for x in finite), max(x.max() for x in finite)
        found = world.pairs.json(name, "histogram", bins=37)
        np.testing.assert_allclose(found["edges"], np.linspace(low, high, 38), rtol=1e-12)
        for side, x in zip("ab", finite):
            np.testing.assert_array_equal(found[side], np.histogram(x, 37, (low, high))[0])
    alone = world.pairs.json("only.npy", "histogram")
    assert sum(alone["a"]) == 77 and len(alone["edges"]) == 101 and alone["b"] is None


def test_density(world):
    a, b = (x.ravel().astype(np.float64) for x in world.plain)
    found = world.pairs.json("plain.npy", "density", size=40)
    low, high = min(a.min(), b.min()), max(a.max(), b.max())
    assert (found["low"], found["high"], found["size"]) == (low, high, 40)
    edges = np.arange(41) * ((high - low) / 40) + low
    edges[-1] = high
    np.testing.assert_array_equal(np.reshape(found["counts"], (40, 40)), np.histogram2d(b, a, [edges, edges])[0])
    assert sum(world.pairs.json("odd.npy", "density")["counts"]) == 72000 - 4


def test_profile(world):
    a, b = (x.astype(np.float64) for x in world.plain)
    axes = world.pairs.json("plain.npy", "profile")["axes"]
    for axis in range(3):
        others = tuple(i for i in range(3) if i != axis)
        np.testing.assert_allclose(axes[axis], np.sqrt(((b - a) ** 2).mean(others)), rtol=1e-10)
    x = world.only.astype(np.float64)
    axes = world.pairs.json("only.npy", "profile")["axes"]
    np.testing.assert_allclose(axes[0], np.sqrt((x**2).mean(1)), rtol=1e-10)
    np.testing.assert_allclose(axes[1], np.sqrt((x**2).mean(0)), rtol=1e-10)
    assert world.pairs.json("scalar.npy", "profile")["axes"] == []


# --- tiles --------------------------------------------------------------------------------------------------


def cells(plane, level, reduce):
    """Every cell of a plane, by single loops; NaN stands for elements that are not there."""
    rows, columns = (-(-n >> level << level) for n in plane.shape)
    size = 1 << level
    missing = np.zeros((rows, columns), bool)
    missing[plane.shape[0]:] = missing[:, plane.shape[1]:] = True
    wide = np.zeros((rows, columns))
    wide[:plane.shape[0], :plane.shape[1]] = plane
    def split(x):
        return x.reshape(rows // size, size, columns // size, size).swapaxes(1, 2)
    wide, missing = split(wide), split(missing)
    with np.errstate(invalid="ignore"):
        if reduce == "mean":
            return (wide.sum((2, 3)) / (~missing).sum((2, 3))).astype(np.float32)
        high, low = wide.max((2, 3)), wide.min((2, 3))
        return np.where(high >= -low, high, low).astype(np.float32) + wide.sum((2, 3)) * 0


def check_tiles(world, name, planes, level, **query):
    for what, plane in planes.items():
        for reduce in ("mean", "max"):
            want = cells(plane, level, reduce)
            if query.get("transpose"):
                want = want.T
            for y in range(0, want.shape[0], 256):
                for x in range(0, want.shape[1], 256):
                    got = world.pairs.tile(name, level=level, x=x // 256, y=y // 256, what=what, reduce=reduce, **query)
                    np.testing.assert_allclose(got, want[y:y + 256, x:x + 256], rtol=1e-5, atol=1e-7)


def test_first_look_at_a_pair_that_was_just_opened(server, tmp_path):
    """Opening one, by its address or in the list, makes its picture beforehand; whoever asks meanwhile gets the same."""
    pair = random(1, (1030, 4200)), random(2, (1030, 4200))
    for path, values in zip((tmp_path / "a.npy", tmp_path / "b.npy"), pair):
        np.save(path, values)
    pairs = Pairs(server, tmp_path / "a.npy", tmp_path / "b.npy")
    name, = pairs.index
    server.get(f"/c/{pairs.id}/pairs/0", headers={"Accept": "text/html"})
    pairs.json(name)
    for what, plane in planes(pair, lambda x: x).items():
        got = pairs.tile(name, level=5, what=what)
        np.testing.assert_allclose(got, cells(plane, 5, "mean"), rtol=1e-5, atol=1e-7)


def planes(pair, pick):
    a, b = (pick(x.astype(np.float64)) for x in pair)
    return {"a": a, "b": b, "difference": b - a}


@pytest.mark.parametrize("level", [0, 1, 3, 5, 9])
def test_tiles(world, level):
    check_tiles(world, "plain.npy", planes(world.plain, lambda x: x[5]), level, view="5,:,:")
    check_tiles(world, "plain.npy", planes(world.plain, lambda x: x[5]), level, view="5", transpose=1)
    check_tiles(world, "plain.npy", planes(world.plain, lambda x: x[:, 3, ::-1]), level, view=":,3,::-1")
    check_tiles(world, "turned.npy", planes(world.turned, lambda x: x[:, :, 7]), level, view="...,7")
    check_tiles(world, "plain.npy", planes(world.plain, lambda x: x[2, 3][None]), level, view="2,3")


@pytest.mark.parametrize("level", [0, 2, 4, 6])
def test_flat_tiles(world, level):
    def fold(width):
        return lambda x: x.reshape(-1, width)
    check_tiles(world, "plain.npy", planes(world.plain, fold(400)), level, view="flat", width=400)
    check_tiles(world, "plain.npy", planes(world.plain, fold(90)), level, view="flat", width=90, transpose=1)
    short = world.pairs.tile("only.npy", view="flat", width=10, level=0)
    assert short.shape == (8, 10) and np.isnan(short[7, 7:]).all()
    np.testing.assert_array_equal(short.ravel()[:77], world.only.ravel())
    assert world.pairs.tile("only.npy", view="flat", width=10, level=3)[0, 0] == np.float32(
        world.only.ravel()[:80].reshape(-1)[[r * 10 + c for r in range(8) for c in range(8) if r * 10 + c < 77]]
        .astype(np.float64).mean())


def test_tiles_of_nan_and_infinity(world):
    tile = world.pairs.tile("odd.npy", view="0", level=4)
    assert np.isnan(tile[0, 0]) and np.isfinite(tile[0, 1:]).all()
    tile = world.pairs.tile("odd.npy", view="2,:,:5", level=4)
    assert tile[0, 0] == np.inf
    assert np.isnan(world.pairs.tile("odd.npy", view="2,:,:", level=4)[0, 0])
    assert world.pairs.tile("odd.npy", view="2,:,:", level=4, reduce="max")[0, 0] == np.inf


@pytest.mark.slow
def test_levels_above_the_kept_one(world, tmp_path):
    """Larger than a tile of the base level, so that coarse tiles are made of several."""
    values = np.random.default_rng(8).standard_normal((4200, 4500)).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    data = tmp_path / "data"
    data.mkdir()
    with Server(data, "--root", tmp_path) as server:
        pairs = Pairs(server, tmp_path / "x.npy")
        for _ in range(2):
            for level in (4, 5, 7, 13):
                for transpose in (0, 1):
                    want = cells(values.astype(np.float64), level, "mean")
                    got = pairs.tile(0, level=level, transpose=transpose, view="")
                    np.testing.assert_allclose(got, (want.T if transpose else want)[:256, :256], rtol=1e-4, atol=1e-8)
        np.testing.assert_allclose(pairs.tile(0, level=4, x=1, y=1, view=""),
                                   cells(values.astype(np.float64), 4, "mean")[256:, 256:], rtol=1e-4, atol=1e-8)
        assert pairs.tile(0, level=40, view="", reduce="max").shape == (1, 1)


# --- files --------------------------------------------------------------------------------------------------


def exported(world, name, **query):
    answer = world.pairs.get(name, "export", **query)
    assert answer.status == 200, answer
    return answer


def test_export_npy(world):
    for text in ("", "2,3:5,::-1", "5,12,7"):
        a, b = (eval(f"x[{text or '...'}]", {"x": x}) for x in world.plain)
        got = np.load(io.BytesIO(exported(world, "plain.npy", side="a", slice=text).body))
        assert got.dtype == np.float32 and got.shape == a.shape
        np.testing.assert_array_equal(got, a)
        got = np.load(io.BytesIO(exported(world, "plain.npy", side="difference", slice=text).body))
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, b.astype(np.float64) - a)
    answer = exported(world, "turned.npy", side="b", slice="3")
    np.testing.assert_array_equal(np.load(io.BytesIO(answer.body)), world.turned[1][3])
    assert answer.headers["Content-Disposition"] == (
        f'attachment; filename="pair-{world.pairs.index["turned.npy"]}-b.npy"')
    ints = np.load(io.BytesIO(exported(world, "ints.npy", slice="2").body))
    assert ints.dtype == np.int64 and (ints == world.ints[0][2]).all()
    flat = np.load(io.BytesIO(exported(world, "plain.npy", flat="100:5000").body))
    np.testing.assert_array_equal(flat, world.plain[0].ravel()[100:5000])


def test_export_csv(world):
    text = exported(world, "plain.npy", side="b", slice="0,:3,:4", format="csv").body.decode()
    np.testing.assert_array_equal(np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.float32),
                                  world.plain[1][0, :3, :4])
    text = exported(world, "turned.npy", side="difference", flat="7:3000", format="csv").body.decode()
    np.testing.assert_array_equal(np.loadtxt(io.StringIO(text), delimiter=","), np.zeros(2993))


# --- what makes no sense ------------------------------------------------------------------------------------

BAD = [
    ("values", {"slice": "9"}, 400, "index 9 is out of range for axis 0 of size 6"),
    ("values", {"slice": "x"}, 400, "bad slice [x]: expected integers, ranges a:b:c and ... between commas"),
    ("values", {"slice": ""}, 413, "72000 elements; a request gets at most 65536"),
    ("mapped", {"a": "0,0,0,0"}, 400, "too many indices: [0,0,0,0] names 4 axes, the tensor has 3"),
    ("worst", {"count": "0"}, 400, "count is '0', not a number from 1 to 200"),
    ("worst", {"count": "many"}, 400, "count is 'many', not a number from 1 to 200"),
    ("find", {}, 400, "what is looked for? low and high, or what=nan, inf or zero"),
    ("find", {"low": "x"}, 400, "low is 'x', not a number"),
    ("find", {"low": "nan"}, 400, "low is 'nan', not a number"),
    ("find", {"what": "big"}, 400, "what is 'big', not one of range, nan, inf, zero"),
    ("find", {"what": "nan", "side": "c"}, 400, "side is 'c', not one of a, b, difference"),
    ("find", {"what": "nan", "side": "difference"}, 400, "side is 'difference', not one of a, b"),
    ("find", {"what": "nan", "from": "-1"}, 400, "from is '-1', not a number from 0 to 72000"),
    ("find", {"what": "nan", "limit": "100000"}, 400, "limit is '100000', not a number from 1 to 1000"),
    ("histogram", {"bins": "0"}, 400, "bins is '0', not a number from 1 to 1000"),
    ("density", {"size": "1"}, 400, "size is '1', not a number from 2 to 512"),
    ("tile", {"view": "5,3,2"}, 400, "a picture shows one or two axes; this slice keeps 0"),
    ("tile", {}, 400, "a picture shows one or two axes; this slice keeps 3"),
    ("tile", {"view": "5", "level": "41"}, 400, "level is '41', not a number from 0 to 40"),
    ("tile", {"view": "5", "x": "2"}, 400, "the picture has no tile at x 2, y 0 of level 0"),
    ("tile", {"view": "5", "x": "1", "transpose": "1"}, 400, "the picture has no tile at x 1, y 0 of level 0"),
    ("tile", {"view": "5", "y": str(1 << 60)}, 400, f"y is '{1 << 60}', not a number from 0 to {1 << 48}"),
    ("tile", {"view": "5", "level": "9", "y": str(1 << 48)}, 400,
     f"the picture has no tile at x 0, y {1 << 48} of level 9"),
    ("tile", {"view": "5", "reduce": "min"}, 400, "reduce is 'min', not one of mean, max"),
    ("tile", {"view": "5", "what": "c"}, 400, "what is 'c', not one of a, b, difference"),
    ("tile", {"view": "flat", "width": "0"}, 400, f"width is '0', not a number from 1 to {1 << 48}"),
    ("tile", {"view": "0:0,0"}, 400, "the picture has no tile at x 0, y 0 of level 0"),
    ("export", {"format": "xls"}, 400, "format is 'xls', not one of npy, csv"),
    ("export", {"slice": "7"}, 400, "index 7 is out of range for axis 0 of size 6"),
]


@pytest.mark.parametrize("route, query, status, text", BAD)
def test_bad_parameters(world, route, query, status, text):
    answer = world.pairs.get("plain.npy", route, **query)
    assert (answer.status, answer.error) == (status, text)


def test_what_there_is_not(world):
    assert world.pairs.get(99, "values").status == 404
    assert world.pairs.get("x1", "values").error == "no pair 'x1'"
    assert world.server.get(f"{COMPARISONS}/0123456789abcdef/pairs/0/values").status == 404
    assert world.pairs.get("only.npy", "density").error == "this needs two sides; there is only a"
    assert world.pairs.get("only.npy", "tile", what="b").error == "this pair has no side b"
    assert world.pairs.get("only.npy", "find", side="b", what="nan").error == "this pair has no side b"
    assert world.pairs.get("only.npy", "export", side="difference").error == "this pair has no side b"
    assert world.server.post(f"{COMPARISONS}/{world.pairs.id}/pairs/0/values", {}).status == 405


def test_sides_that_do_not_line_up(server, tmp_path):
    for side, shape in (("a", (3, 5)), ("b", (7, 2))):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "x.npy", random(1, shape))
    pairs = Pairs(server, tmp_path / "a", tmp_path / "b", {"pairs": [{"a": "x.npy", "b": "x.npy"}]})
    answer = pairs.get("x.npy", "values")
    assert answer.status == 409 and answer.error.startswith("the two sides do not line up")


def test_mapped_where_the_sides_do_not_line_up(server, tmp_path):
    """Mapping by hand is the way out there: each side has its own shape, however the other looks."""
    a, b = random(1, (3, 5)), random(2, (7, 2))
    for side, values in (("a", a), ("b", b)):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "x.npy", values)
    by_hand = {"pairs": [{"a": "x.npy", "b": "x.npy"}]}
    for settings in (by_hand, {**by_hand, "layout": "p q -> r s t"}):
        pairs = Pairs(server, tmp_path / "a", tmp_path / "b", settings)
        assert result(server, pairs.id)["pairs"][0]["verdict"] == "error"
        found = pairs.json("x.npy", "mapped", a="2,1:5", b="2:6,1")
        np.testing.assert_array_equal(found["a"]["values"], a[2, 1:5].astype(np.float64))
        np.testing.assert_array_equal(found["b"]["values"], b[2:6, 1].astype(np.float64))
        assert found["difference"]["max_abs"] == np.abs(a[2, 1:5].astype(np.float64) - b[2:6, 1]).max()
        assert pairs.get("x.npy", "mapped", a="3").error == "index 3 is out of range for axis 0 of size 3"
        assert pairs.json("x.npy", "mapped", a="0", b="0")["difference"] is None
        for route in ("", "values", "worst", "histogram", "density", "profile", "tile", "export"):
            assert pairs.get("x.npy", route).status == 409, route


# --- other ways to store ------------------------------------------------------------------------------------


def test_shards(server, tmp_path):
    """Joined along an axis, and summed: seen as one tensor."""
    joined, summed = random(6, (32, 48)), random(7, (16, 24))
    part = random(8, (16, 24))
    for rank in range(2):
        folder = tmp_path / "a" / f"rank{rank}"
        folder.mkdir(parents=True)
        np.save(folder / "0_joined.npy", joined[:, rank * 24:rank * 24 + 24])
        np.save(folder / "1_summed.npy", part if rank else summed - part)
    (tmp_path / "b").mkdir()
    np.save(tmp_path / "b" / "0_joined.npy", joined)
    np.save(tmp_path / "b" / "1_summed.npy", summed)
    pairs = Pairs(server, tmp_path / "a", tmp_path / "b")
    name = next(n for n in pairs.index if "joined" in n)
    got = pairs.values(name, slice="3:6,20:30")[1]
    np.testing.assert_array_equal(got[0], joined[3:6, 20:30])
    np.testing.assert_array_equal(got[2], np.zeros((3, 10)))
    np.testing.assert_array_equal(pairs.values(name, slice="::-3,::-5")[1][0], joined[::-3, ::-5])
    np.testing.assert_array_equal(pairs.values(name, flat="40:100")[1][0], joined.ravel()[40:100])
    np.testing.assert_array_equal(pairs.tile(name, view="", what="a"), joined)
    np.testing.assert_array_equal(np.load(io.BytesIO(pairs.get(name, "export", side="a", slice=":,22:26").body)),
                                  joined[:, 22:26])
    assert pairs.json(name, "mapped", a="0,20:28", b="0,20:28")["difference"]["max_abs"] == 0
    name = next(n for n in pairs.index if "summed" in n)
    want = (summed - part).astype(np.float64) + part
    np.testing.assert_array_equal(pairs.values(name)[1][0], want)
    np.testing.assert_allclose(pairs.tile(name, view="", what="a"), want, rtol=1e-6)
    np.testing.assert_allclose(pairs.tile(name, view="::2,3", what="a")[0], want[::2, 3], rtol=1e-6)


def test_torch_kinds(server, tmp_path):
    """Sparse, quantised, half precision, transposed: all as the numbers they stand for."""
    dense = torch.from_numpy(random(9, (40, 60)))
    sparse = torch.where(dense > 1, dense, torch.zeros(()))
    tensors = {
        "sparse": (sparse.to_sparse(), sparse),
        "csr": (sparse.to_sparse_csr(), sparse),
        "quantised": (torch.quantize_per_tensor(dense, 0.05, 3, torch.qint8),
                      torch.quantize_per_tensor(dense, 0.05, 3, torch.qint8).dequantize()),
        "half": (dense.half(), dense.half().float()),
        "brain": (dense.bfloat16(), dense.bfloat16().float()),
        "turned": (dense.t(), dense.t()),
        "expanded": (dense[0].expand(40, 60), dense[0].expand(40, 60)),
    }
    torch.save({name: stored for name, (stored, _) in tensors.items()}, tmp_path / "x.pt")
    pairs = Pairs(server, tmp_path / "x.pt")
    for name, (_, seen) in tensors.items():
        seen = seen.numpy().astype(np.float64)
        np.testing.assert_array_equal(pairs.values(name, slice="3:30:2,::-3")[1][0], seen[3:30:2, ::-3])
        np.testing.assert_array_equal(pairs.values(name, flat="55:130")[1][0], seen.ravel()[55:130])
        np.testing.assert_allclose(pairs.tile(name, view=""), seen, rtol=1e-6)
        np.testing.assert_allclose(pairs.tile(name, view="", level=2, transpose=1), cells(seen, 2, "mean").T, rtol=1e-5,
                                   atol=1e-7)
        np.testing.assert_allclose(pairs.tile(name, view="flat", width=80, level=1, reduce="max"),
                                   cells(seen.reshape(30, 80), 1, "max"), rtol=1e-6)
        np.testing.assert_allclose(pairs.json(name, "profile")["axes"][1], np.sqrt((seen**2).mean(0)), rtol=1e-6)
        assert sum(pairs.json(name, "histogram", bins=10)["a"]) == seen.size
        low = float(np.sort(seen.ravel())[-5])
        found = pairs.json(name, "find", low=low * 0.999999)["places"]
        assert {p["flat"] for p in found} >= set(np.flatnonzero(seen.ravel() >= low).tolist())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_shared_infinities_are_no_difference(server, tmp_path, dtype):
    """Scores that both sides masked: half of the picture would be NaN."""
    a, b = random(1, (70, 90)), random(2, (70, 90)).astype(dtype)
    masked = np.triu(np.ones(a.shape, bool), 1)
    a[masked], b[masked] = -np.inf, -np.inf
    a[69, 0], b[69, 0] = np.inf, -np.inf
    a[69, 1] = b[69, 1] = np.nan
    a[69, 2] = np.inf
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    pairs = Pairs(server, tmp_path / "a.npy", tmp_path / "b.npy")
    same = a == b
    with np.errstate(invalid="ignore"):
        want = np.where(same, 0, b.astype(np.float64) - a)
    np.testing.assert_array_equal(pairs.values(0, slice="")[1][2], want)
    np.testing.assert_array_equal(pairs.tile(0, view=":,:", what="difference"), want.astype(np.float32))
    np.testing.assert_array_equal(pairs.tile(0, view="flat", width=63, what="difference"), want.reshape(100, 63).astype(np.float32))
    np.testing.assert_allclose(pairs.tile(0, view=":64,:", level=2, what="difference"), cells(want[:64], 2, "mean"), rtol=1e-5, atol=1e-7)
    exported = np.load(io.BytesIO(pairs.get(0, "export", side="difference", format="npy").body))
    np.testing.assert_array_equal(exported, want)


def test_complex(server, tmp_path):
    """Seen as their parts, on one more axis: the moduli of a number and its conjugate are the same."""
    angles = random(9, (40, 60)).astype(np.float64)
    table = np.exp(1j * angles)
    a, b = table.astype(np.complex64), table.conj()
    np.savez(tmp_path / "a.npz", turned=a.T.copy(), rotary=a, mixed=a, only=a * 2)
    np.savez(tmp_path / "b.npz", turned=b, rotary=b, mixed=np.abs(b))
    pairs = Pairs(server, tmp_path / "a.npz", tmp_path / "b.npz")
    parts = [np.stack([x.real, x.imag], -1).astype(np.float64) for x in (a, b)]
    difference = parts[1] - parts[0]
    for name in ("rotary", "turned"):
        pair = pairs.json(name)
        assert pair["as_real"] and pair["metrics"]["max_abs"] == pytest.approx(np.abs(a - b).max())
        shape = (40, 60, 2) if pair["shape"] == [40, 60, 2] else (60, 40, 2)
        assert pair["shape"] == list(shape)
        if shape == (60, 40, 2):  # the axes of a
            parts, difference = [x.transpose(1, 0, 2) for x in parts], difference.transpose(1, 0, 2)
        assert pair["a_stats"]["count"] == parts[0].size and pair["b_stats"]["min"] == parts[1].min()
        np.testing.assert_array_equal(pairs.values(name, slice="5:9,::-7")[1], [x[5:9, ::-7] for x in (*parts, difference)])
        worst = pairs.json(name, "worst", count=1)["worst"][0]
        assert worst["index"] == list(np.unravel_index(np.abs(difference).argmax(), shape))
        assert worst["difference"] == difference[tuple(worst["index"])]
        np.testing.assert_allclose(pairs.tile(name, view=":,:,1", what="difference"), difference[..., 1], rtol=1e-6)
        exported = np.load(io.BytesIO(pairs.get(name, "export", side="a", slice="2,3", format="npy").body))
        np.testing.assert_array_equal(exported, parts[0][2, 3])
        assert exported.dtype == np.float32
        np.testing.assert_allclose(pairs.json(name, "mapped", a="3,4", b="3,4")["a"]["values"], [1], rtol=1e-6)
    assert pairs.json("only")["shape"] == [40, 60, 2]
    assert not pairs.json("mixed")["as_real"]
    np.testing.assert_allclose(pairs.values("mixed")[1][0], 1, rtol=1e-6)
    assert not pairs.json("rotary")["metrics"]["argmax"][2:]


def test_complex_with_strides_that_nothing_reaches(server, tmp_path):
    """What an axis of one index, or a tensor without elements, has for strides is anything: twice of it may be no number."""
    far = 2**62 + 1
    x = torch.complex(torch.arange(8.0), -torch.arange(8.0))
    torch.save({"one": torch.as_strided(x, (1, 4), (far, 2)), "none": torch.as_strided(x, (0, 4), (far, far))}, tmp_path / "x.pt")
    pairs = Pairs(server, tmp_path / "x.pt")
    assert pairs.values("one", slice="")[1][0].tolist() == [[[0, 0], [2, -2], [4, -4], [6, -6]]]
    assert pairs.json("none")["shape"] == [0, 4, 2]


def test_file_cut_short(server, tmp_path):
    """Values of a file that has shrunk are not shown as zeros."""
    path = tmp_path / "x.npy"
    np.save(path, random(1, (512, 1024)))
    pairs = Pairs(server, path)
    assert pairs.get(0, "values", slice="511").status == 200
    os.truncate(path, 4096)
    for what in ("values?slice=511", "tile?view=&level=4", "find?what=nan&from=500000", "profile"):
        answer = server.get(f"{COMPARISONS}/{pairs.id}/pairs/0/{what}")
        assert answer.status in (409, 422), (what, answer)
