"""`tdbg profile --compare` and folders of ranks: what is slower beyond the noise, and who holds the others up."""
import math

import numpy as np
import pytest
from test_profile import MS, model


def noisy(seed, factor=lambda i: 1.0, spread=0.05):
    """Layer times with a noise of 5 % and now and then a much longer one."""
    random = np.random.default_rng(seed)
    table = {}

    def layer(step, i):
        if (step, i) not in table:
            time = 10 * MS * factor(i) * (1 + abs(random.normal(0, spread)))
            table[step, i] = int(time * (4 if random.random() < 0.02 else 1))
        return table[step, i]

    return layer


def changes(document):
    return {scope["path"]: scope["change"] for scope in document["scopes"]}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_noise_is_no_change(tdbg, tmp_path, seed):
    a = model(tmp_path / "a", 40, noisy(2 * seed), 8)
    b = model(tmp_path / "b", 40, noisy(2 * seed + 1), 8)
    document = tdbg.json("profile", b, "--compare", a)
    assert document["summary"] == {"slower": 0, "faster": 0, "compared": 10}
    assert set(changes(document).values()) == {"same"}


def test_a_slower_layer_is_found(tdbg, tmp_path):
    a = model(tmp_path / "a", 40, noisy(1), 8)
    b = model(tmp_path / "b", 40, noisy(2, lambda i: 1.2 if i == 5 else 1), 8)
    document = tdbg.json("profile", b, "--compare", a, status=1)
    found = changes(document)
    assert found["model/layers.5"] == "slower"
    assert [path for path, change in found.items() if change != "same"] in (
        ["model/layers.5"], ["", "model", "model/layers.5"], ["model", "model/layers.5"])
    layer = next(scope for scope in document["scopes"] if scope["path"] == "model/layers.5")
    assert 0 < layer["low_ns"] <= layer["shift_ns"] <= layer["high_ns"] and layer["shift_ns"] == pytest.approx(2 * MS, rel=0.2)
    assert layer["p"] < 1e-5 and layer["steps"] == layer["other_steps"] == 40
    text = tdbg.text("profile", b, "--compare", a, status=1)
    assert [line for line in text.splitlines() if "layers.5" in line][0].split()[-1] == "slower"
    assert "beyond the noise of the steps" in text and "Mann-Whitney" in text
    assert tdbg.run("profile", a, "--compare", b).returncode == 0, "the other way round it is faster"


def test_numbers(tdbg, tmp_path):
    """The test by its definition: pairs in which one side is larger, against their normal distribution."""
    one, two = noisy(3), noisy(4, lambda i: 1.03)
    a, b = model(tmp_path / "a", 30, one, 1), model(tmp_path / "b", 25, two, 1)
    status = tdbg.run("profile", b, "--compare", a).returncode
    scope = tdbg.json("profile", b, "--compare", a, status=status)["scopes"][2]
    differences = np.subtract.outer([np.float32(two(step, 0)) for step in range(25)], [np.float32(one(step, 0)) for step in range(30)])
    larger = (differences > 0).sum() + (differences == 0).sum() / 2
    distance = (abs(larger - 25 * 30 / 2) - 0.5) / math.sqrt(25 * 30 * (25 + 30 + 1) / 12)
    assert scope["p"] == pytest.approx(math.erfc(distance / math.sqrt(2)), rel=1e-6)
    assert scope["shift_ns"] == pytest.approx(np.median(differences), rel=1e-4)


def test_scopes_of_one_side(tdbg, tmp_path):
    a = model(tmp_path / "a", 10, layers=3)
    b = model(tmp_path / "b", 10, layers=4)
    found = changes(tdbg.json("profile", b, "--compare", a, status=1))
    assert found["model/layers.3"] == "only_b" and found["model/layers.2"] == "same"
    assert changes(tdbg.json("profile", a, "--compare", b))["model/layers.3"] == "only_a"


def test_too_few_steps(tdbg, tmp_path):
    a, b = model(tmp_path / "a", 3), model(tmp_path / "b", 3, lambda step, i: 30 * MS)
    assert set(changes(tdbg.json("profile", b, "--compare", a)).values()) == {"unknown"}
    assert "Fewer than 5 steps on a side" in tdbg.text("profile", b, "--compare", a)


def test_narrow_table(tdbg, tmp_path):
    a, b = model(tmp_path / "a"), model(tmp_path / "b", layer=lambda step, i: 12 * MS)
    lines = tdbg.text("profile", b, "--compare", a, "-q", status=1, env={"COLUMNS": "80"}).splitlines()
    assert all(len(line) <= 80 for line in lines[1:-1])
    assert lines[2].split()[:2] == ["step", "42"] and "slower" in lines[2]


def ranks(folder, slow=None, count=4):
    """Ranks that wait for each other: their steps are equal, and a slow one only shows in its own layer."""
    for rank in range(count):
        layer = lambda step, i, late=rank == slow: (22 if late else 10) * MS if i == 2 else (10 if late or i != 3 else 22) * MS
        model(folder / f"rank-{rank}", 12, layer, rank=rank, world=count)
    return folder


def test_ranks_side_by_side(tdbg, tmp_path):
    folder = ranks(tmp_path / "run", slow=3)
    document = tdbg.json("profile", folder)
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1, 2, 3]
    assert document["stragglers"] == [{"rank": 3, "path": "model/layers.2", "p50_ns": 22 * MS, "others_p50_ns": 10 * MS}]
    text = tdbg.text("profile", folder)
    assert "- Rank 3 takes 22 ms a step in model/layers.2, the others 10 ms (median): 2.20 times." in text
    line = next(line for line in text.splitlines() if "layers.2" in line)
    assert line.split() == ["layers.2", "10", "ms", "10", "ms", "10", "ms", "22", "ms"]


def test_even_ranks(tdbg, tmp_path):
    folder = ranks(tmp_path / "run")
    assert tdbg.json("profile", folder)["stragglers"] == []
    assert "No rank is slower than the others" in tdbg.text("profile", folder)
    assert f"{folder} holds several ranks; take one: {folder}/rank-0" in tdbg.fails("profile", folder, "--compare", folder)


def test_one_bad_rank(tdbg, tmp_path):
    folder = ranks(tmp_path / "run", count=2)
    (folder / "rank-1" / "run.db").write_bytes(b"SQLite format 3\0 but not really")
    assert f"tdbg: {folder}/rank-1: " in tdbg.fails("profile", folder)
