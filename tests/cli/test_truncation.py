"""Every good file cut at every 64th byte: an error or fewer tensors, never a crash, never a wrong value.

The good files are the fuzzers' seeds, so a format that has seeds is tested here without another word. All cuts of
a file go into one folder, which tdbg reads in one run; what it still lists must be, value for value as far as the
statistics tell, a tensor of the whole file. The seeds hold random values: equal statistics are no accident.
"""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fuzz"))
import seeds

STEP = 64


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    seeds.main(folder)
    return folder


def facts(tensor):
    """What must not change when a tensor survives the cut: everything but where it is."""
    return json.dumps({key: value for key, value in tensor.items() if key not in ("name", "path")}, sort_keys=True)


def cut_everywhere(path, folder):
    """Cuts of the file in `folder`, named so that the reader of its suffix still looks at them."""
    whole = path.read_bytes()
    for size in range(0, len(whole), STEP):
        (folder / f"cut-{size:07}{path.suffix}").write_bytes(whole[:size])
    return len(range(0, len(whole), STEP))


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(seeds.WRITERS))
def test_cut_files_tell_no_lies(tdbg, good, tmp_path, target):
    for path in sorted(good.joinpath(target).iterdir()):
        if path.name.startswith("bad-"):
            continue
        whole = tdbg.run("stats", "--json", path)
        known = {facts(t) for t in json.loads(whole.stdout)["tensors"]} if whole.returncode == 0 else set()
        folder = tmp_path / path.name
        folder.mkdir()
        count = cut_everywhere(path, folder)
        done = tdbg.run("stats", "--json", folder, timeout=300)
        assert count > 0
        if done.returncode == 2:  # not one of the cuts is a tensor file
            assert "no tensor file in it" in done.stderr
            continue
        for tensor in json.loads(done.stdout)["tensors"]:
            assert facts(tensor) in known, f"{path.name}: {tensor}"


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(seeds.WRITERS))
def test_a_cut_file_alone(tdbg, good, tmp_path, target):
    """The same through the path of a plain file, at a few places: one line on stderr or a clean answer."""
    for path in sorted(good.joinpath(target).iterdir())[:4]:
        whole = path.read_bytes()
        for part in (0, 1, 3, 5, 7):
            cut = tmp_path / f"cut{part}{path.suffix}"
            cut.write_bytes(whole[: len(whole) * part // 8])
            done = tdbg.run("ls", cut)
            if done.returncode:
                lines = done.stderr.splitlines()
                assert len(lines) == 1 and lines[0].startswith(f"tdbg: {cut}: "), done.stderr
