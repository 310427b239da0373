"""Each bad file is refused with the exact text, in every way to get at it."""
import pytest

from bad_files import BAD


@pytest.mark.parametrize("name", BAD)
def test_bad_file(tdbg, tmp_path, name):
    data, error = BAD[name]
    path = tmp_path / name.split("/")[1]
    path.write_bytes(data)
    assert tdbg.fails("ls", path) == f"tdbg: {path}: {error}"
