"""`tdbg diff --html`: one file that says all, and that no name in a dump can take over."""
import base64
import hashlib
import html.parser
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

LAYERS, STAGES = 3, ("query", "key", "value", "post_attn")

HOSTILE = (
    "</script><script>document.documentElement.dataset.pwned=1</script>",
    "<img src=x onerror=\"document.documentElement.dataset.pwned=1\">",
    "\"><svg onload=document.documentElement.dataset.pwned=1>",
    "<!--<script>",
    "{{js}}",
    "' onmouseover='document.documentElement.dataset.pwned=1",
)


class Page(html.parser.HTMLParser):
    """The page as a browser's parser sees it: scripts by id, every tag, the text outside scripts."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.tags, self.text, self.inside = [], [], "", None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = tag
            self.scripts.append([tag, dict(attributes), ""])

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1][2] += data
        else:
            self.text += data

    def block(self, name):
        (found,) = [text for tag, attributes, text in self.scripts if attributes.get("id") == name]
        return json.loads(found)


def dump(folder, change=None):
    """A run: {layer}_{stage}.npy, `change(layer, stage, values)` applied to each."""
    rng = np.random.default_rng(7)
    folder.mkdir()
    for layer in range(LAYERS):
        for stage in STAGES:
            values = rng.standard_normal((12, 4, 20)).astype(np.float32)
            np.save(folder / f"{layer}_{stage}.npy", change(layer, stage, values) if change else values)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    bias = np.linspace(-1, 1, 20, dtype=np.float32)
    off = lambda layer, stage, values: values + bias if (layer, stage) == (1, "query") else values
    return dump(folder / "a"), dump(folder / "b", off)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(3)
    tensors = {name: torch.from_numpy(rng.standard_normal((4, 6)).astype(np.float32)) for name in HOSTILE}
    torch.save(tensors, folder / "a.pth")
    torch.save({name: t * 2 for name, t in tensors.items()}, folder / "b<b>&.pth")
    return folder / "a.pth", folder / "b<b>&.pth"


def page_of(tdbg, a, b, out, *options, status=1):
    tdbg.text("diff", a, b, "--html", out, *options, status=status)
    return out.read_text()


def test_data_is_the_json(tdbg, runs, tmp_path):
    page = Page(page_of(tdbg, *runs, tmp_path / "r.html"))
    assert page.block("data-diff") == tdbg.json("diff", *runs, status=1)


def test_words(tdbg, runs, tmp_path):
    page = Page(page_of(tdbg, *runs, tmp_path / "r.html"))
    printed = " ".join(tdbg.text("diff", "-q", *runs, status=1).split())
    assert printed in " ".join(page.text.split())
    assert str(runs[0]) in page.text and str(runs[1]) in page.text
    assert "They differ" in page.text


def test_values_around_the_worst_element(tdbg, runs, tmp_path):
    values = Page(page_of(tdbg, *runs, tmp_path / "r.html")).block("data-values")
    first = next(p for p in tdbg.json("diff", *runs, status=1)["pairs"] if p["verdict"] == "diverged")
    token, head, channel = first["worst"][0]["index"]
    a, b = (np.load(run / "1_query.npy") for run in runs)
    row, column = values["worst"]
    assert (values["rows"][row], values["columns"][column]) == (head, channel)
    assert len(values["rows"]) == 4 and len(values["columns"]) == 16
    window = np.s_[token, values["rows"][0]:values["rows"][-1] + 1, values["columns"][0]:values["columns"][-1] + 1]
    assert values["slice"] == f"[{token}, 0:4, {values['columns'][0]}:{values['columns'][-1] + 1}]"
    np.testing.assert_array_equal(np.array(values["a"]), a[window].astype(np.float64))
    np.testing.assert_array_equal(np.array(values["b"]), b[window].astype(np.float64))
    np.testing.assert_array_equal(np.array(values["difference"]), b[window].astype(np.float64) - a[window])


@pytest.mark.parametrize("shape", [(), (1,), (3,), (40,), (2, 40), (1, 1, 2, 30)])
def test_values_of_any_shape(tdbg, tmp_path, shape):
    a = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    b = a.copy()
    b.flat[-1] = np.nan
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    values = Page(page_of(tdbg, tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "r.html")).block("data-values")
    row, column = values["worst"]
    assert values["b"][row][column] == "nan" and values["a"][row][column] == a.flat[-1]


def test_agreement(tdbg, runs, tmp_path):
    page = Page(page_of(tdbg, runs[0], runs[0], tmp_path / "r.html", status=0))
    assert page.block("data-values") is None
    assert "They agree" in page.text and "The two are identical." in page.text


def test_stands_alone(tdbg, runs, tmp_path):
    text = page_of(tdbg, *runs, tmp_path / "r.html")
    page = Page(text)
    assert "{{" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "base"), tag
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert len(text) < 200_000


def test_policy_lets_only_our_script_run(tdbg, runs, tmp_path):
    page = Page(page_of(tdbg, *runs, tmp_path / "r.html"))
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag, attributes, text in page.scripts:
        if attributes.get("type") != "application/json":
            assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy


def test_hostile_names_are_text(tdbg, hostile, tmp_path):
    harmless, evil = tmp_path / "x.html", tmp_path / "r.html"
    np.save(tmp_path / "a.npy", np.ones(3))
    plain = Page(page_of(tdbg, tmp_path / "a.npy", tmp_path / "a.npy", harmless, status=0))
    page = Page(page_of(tdbg, *hostile, evil))
    assert {name for p in page.block("data-diff")["pairs"] for name in (p["name"],)} == set(HOSTILE)
    assert [t for t, _ in page.tags] == [t for t, _ in plain.tags]
    assert "b<b>&.pth" in page.text


def test_file_is_whole_or_not_there(tdbg, runs, tmp_path):
    out = tmp_path / "nowhere" / "r.html"
    done = tdbg.run("diff", "-q", *runs, "--html", out)
    assert done.returncode == 2
    assert done.stderr == f"tdbg: {out}: cannot create: No such file or directory\n"


# --- in a browser ---------------------------------------------------------------------------------------------

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(not BROWSER, reason="no chromium here")


def dom_of(path, profile):
    """The document after its script ran."""
    return subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}", "--virtual-time-budget=5000",
         "--dump-dom", f"file://{path}"],
        capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.slow
@needs_browser
def test_browser_draws(tdbg, runs, tmp_path):
    page_of(tdbg, *runs, tmp_path / "r.html")
    dom = dom_of(tmp_path / "r.html", tmp_path / "profile")
    assert len(re.findall(r'<tr class="pair ', dom)) == LAYERS * len(STAGES)
    assert len(re.findall(r'<path class="point ', dom)) == LAYERS * len(STAGES)
    assert len(re.findall(r'<tr class="layer"', dom)) == LAYERS
    assert "first divergence: layer 1, query" in dom
    assert len(re.findall(r'<td class="(?:plus|minus)[^"]*worst"', dom)) == 3
    assert re.search(r'<span class="kind">bias</span>', dom)


@pytest.mark.slow
@needs_browser
def test_browser_shows_no_error_of_nothing(tdbg, tmp_path):
    """Where no two values are both finite, the zeros among the metrics are no relative error of 0."""
    dump(tmp_path / "a")
    dump(tmp_path / "b", lambda layer, stage, values: values * np.nan if (layer, stage) == (1, "key") else values)
    page_of(tdbg, tmp_path / "a", tmp_path / "b", tmp_path / "r.html")
    points = re.findall(r"<title>(layer [^<]*)</title>", dom_of(tmp_path / "r.html", tmp_path / "profile"))
    assert len(points) == LAYERS * len(STAGES)
    assert [point for point in points if "relative error" not in point] == ["layer 1, key: diverged (nan)"]


@pytest.mark.slow
@needs_browser
def test_browser_shows_no_error_of_zero_for_moved_nan(tdbg, tmp_path):
    """As many on both sides, at other places or with another sign: the sums leave them out, the report does not."""
    def moved(at):
        def change(layer, stage, values):
            if (layer, stage) == (1, "key"):
                values.flat[at] = np.nan
            if (layer, stage) == (1, "value"):
                values.flat[3] = np.inf if at else -np.inf
            return values
        return change
    dump(tmp_path / "a", moved(0))
    dump(tmp_path / "b", moved(7))
    page_of(tdbg, tmp_path / "a", tmp_path / "b", tmp_path / "r.html")
    dom = dom_of(tmp_path / "r.html", tmp_path / "profile")
    points = re.findall(r"<title>(layer 1, (?:key|value):[^<]*)</title>", dom)
    assert [re.search(r"relative error (\w+)", point).group(1) for point in points] == ["nan", "inf"]
    rows = re.findall(r'<tr class="pair diverged.*?</tr>', dom, re.S)
    assert [re.findall(r'<td class="number[^>]*>(nan|inf)</td>', row) for row in rows] == [["nan", "nan"], ["inf", "inf"]]


@pytest.mark.slow
@needs_browser
def test_browser_stays_ours(tdbg, hostile, tmp_path):
    page_of(tdbg, *hostile, tmp_path / "r.html")
    dom = dom_of(tmp_path / "r.html", tmp_path / "profile")
    assert "data-pwned" not in dom
    assert len(re.findall(r'<tr class="pair ', dom)) == len(HOSTILE)
    page = Page(dom)
    assert not [tag for tag, attributes in page.tags if tag == "img" or any(n.startswith("on") for n in attributes)]


@pytest.mark.slow
@needs_browser
def test_browser_draws_thousands(tdbg, tmp_path):
    """Rows out of sight do not exist, so that 5,000 pairs cost what 50 do."""
    values = np.zeros(2, np.float32)
    for side in "ab":
        np.savez(tmp_path / f"{side}.npz", **{f"{i}_{stage}": values for i in range(1250) for stage in STAGES})
    page_of(tdbg, tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "r.html", status=0)
    assert (tmp_path / "r.html").stat().st_size < 10_000_000
    dom = dom_of(tmp_path / "r.html", tmp_path / "profile")
    assert 10 < len(re.findall(r'<tr class="pair ', dom)) < 100
    assert ">5000 pairs<" in dom
