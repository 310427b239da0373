"""npy and npz as numpy writes them."""
import io
import zipfile

import numpy as np
import pytest

from tensorfiles import npy_raw, same, values

RANDOM = np.random.default_rng(11)
KINDS = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]


def random_array(dtype, shape):
    dtype = np.dtype(dtype)
    return np.frombuffer(RANDOM.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def bytes_of(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version)
    return out.getvalue()


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("kind", KINDS)
def test_values(tdbg, tmp_path, kind, endian, order):
    array = np.array(random_array(endian + kind, (2, 3, 4)), order=order)
    path = tmp_path / "a.npy"
    np.save(path, array)
    listed = tdbg.json("ls", path)["tensors"]
    assert listed == [{"name": "a.npy", "path": str(path), "dtype": array.dtype.name, "shape": [2, 3, 4],
                       "bytes": array.nbytes, "format": "npy"}]  # fmt: skip
    assert same(values(tdbg, path), array.astype(array.dtype.newbyteorder("=")))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tdbg, tmp_path, version):
    array = random_array("<f4", (5,))
    path = tmp_path / "a.npy"
    path.write_bytes(bytes_of(array, version))
    assert same(values(tdbg, path), array)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (0, 4), (1,) * 32])
def test_shapes(tdbg, tmp_path, shape):
    array = random_array("<i4", shape)
    path = tmp_path / "a.npy"
    np.save(path, array)
    assert tdbg.json("show", path)["shape"] == list(shape)
    assert same(values(tdbg, path), array)


def test_bool_and_complex(tdbg, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([[True, False], [False, True]]))
    assert values(tdbg, path) == [[True, False], [False, True]]
    for dtype in ("<c8", ">c8", "<c16", ">c16"):
        np.save(path, np.array([1 + 2j, -3.5j], dtype))
        assert values(tdbg, path) == [[1.0, 2.0], [0.0, -3.5]]


def test_header_in_other_words(tdbg, tmp_path):
    """What other writers than numpy may do: order of keys, spacing, double quotes, Python 2's long integers."""
    path = tmp_path / "a.npy"
    for header in (
        '{"shape":(2,3),"fortran_order":True,"descr":"<i2"}',
        "{ 'fortran_order' : True ,\n 'descr' : 'i2' , 'shape' : ( 2L , 3L , ) , }   \n",
    ):
        path.write_bytes(npy_raw(header, np.arange(6, dtype="<i2").tobytes()))
        assert values(tdbg, path) == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize("order", "CF")
def test_structured(tdbg, tmp_path, order):
    dtype = np.dtype([("x", "<f4"), ("n", ">i4"), ("v", "<f4", (2, 3)), ("flag", "?"), ("s", "S3")])
    array = np.array(random_array("u1", (3, 2, dtype.itemsize)).copy().view(dtype)[..., 0], order=order)
    array["flag"] = [[True, False], [False, False], [True, True]]
    path = tmp_path / "a.npy"
    np.save(path, array)
    answer = tdbg.json("ls", path)
    assert [(t["name"], t["shape"]) for t in answer["tensors"]] == [
        ("x", [3, 2]), ("n", [3, 2]), ("v", [3, 2, 2, 3]), ("flag", [3, 2])]  # fmt: skip
    assert [(s["name"], s["reason"]) for s in answer["skipped"]] == [("s", "holds byte strings")]
    for name in ("x", "v", "flag"):
        assert same(values(tdbg, path, name), array[name])
    assert same(values(tdbg, path, "n"), array["n"].astype("<i4"))


def test_structured_packed_tight(tdbg, tmp_path):
    """Records of 5 bytes: the float is no whole number of floats apart."""
    array = np.array([(1.5, 7), (2.5, 8)], np.dtype([("a", "<f4"), ("b", "u1")]))
    path = tmp_path / "a.npy"
    np.save(path, array)
    answer = tdbg.json("ls", path)
    assert answer["skipped"][0]["reason"] == "records of 5 bytes are no multiple of the field's 4"
    assert values(tdbg, path, "b") == [7, 8]


def test_structured_aligned_titled_nested(tdbg, tmp_path):
    dtype = np.dtype([("a", "u1"), (("the title", "é"), "<f8"), ("r", [("i", "<i4"), ("j", "<i4")])], align=True)
    array = np.zeros(3, dtype)
    array["é"] = [1, 2, 3]
    path = tmp_path / "a.npy"
    np.save(path, array)
    answer = tdbg.json("ls", path)
    assert [t["name"] for t in answer["tensors"]] == ["a", "é"]
    assert [(s["name"], s["reason"]) for s in answer["skipped"]] == [("r", "a record within a record")]
    assert values(tdbg, path, "é") == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("array, reason", [
    (np.array([{}, None], object), "object array: holds Python objects"),
    (np.array(["text"]), "holds text"),
    (np.array([b"bytes"]), "holds byte strings"),
    (np.array(["2024-01-01"], "M8[ns]"), "holds dates (datetime64)"),
    (np.array([1], "m8[s]"), "holds time spans (timedelta64)"),
    (np.array([1], "longdouble"), "long double: its layout differs between machines"),
    (np.array([1], "clongdouble"), "complex long double: its layout differs between machines"),
    (np.array([b"ab"], "V2"), "raw bytes: the file does not say their type (bfloat16 and float8 are saved like this)"),
])  # fmt: skip
def test_skipped(tdbg, tmp_path, array, reason):
    np.save(tmp_path / "a.npy", array)
    np.save(tmp_path / "b.npy", np.zeros(1))
    answer = tdbg.json("ls", tmp_path)
    assert [t["name"] for t in answer["tensors"]] == ["b.npy"]
    assert [(s["name"], s["reason"]) for s in answer["skipped"]] == [("a.npy", reason)]


def test_two_arrays_in_a_file(tdbg, tmp_path):
    """np.load reads the first; the rest is not passed over in silence."""
    one = bytes_of(np.arange(3, dtype=np.int8))
    path = tmp_path / "a.npy"
    path.write_bytes(one + one)
    answer = tdbg.json("ls", path)
    assert answer["skipped"][0]["reason"] == f"the array ends at byte {len(one)} of {2 * len(one)}; the rest is not read"
    assert values(tdbg, path) == [0, 1, 2]


def test_cut_short(tdbg, tmp_path):
    whole = bytes_of(random_array("<f8", (20, 8)))
    path = tmp_path / "a.npy"
    for size in range(0, len(whole), 64):
        path.write_bytes(whole[:size])
        tdbg.fails("ls", path)


# --- npz ---


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tdbg, tmp_path, save):
    arrays = {"b": random_array("<f4", (3, 4)), "a": np.array(random_array(">i2", (2, 5)), order="F"),
              "layers/0": random_array("u1", ()), "none": np.zeros(0)}  # fmt: skip
    path = tmp_path / "a.npz"
    save(path, **arrays)
    listed = tdbg.json("ls", path)["tensors"]
    assert [t["name"] for t in listed] == ["b", "a", "layers/0", "none"]
    assert {t["format"] for t in listed} == {"npz"}
    for name, array in arrays.items():
        assert same(values(tdbg, path, name), array.astype(array.dtype.newbyteorder("=")))


def test_npz_structured_and_objects(tdbg, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, r=np.array([(1, 2.5)], [("i", "<i4"), ("x", "<f4")]), o=np.array([{}]), x=np.arange(2))
    answer = tdbg.json("ls", path)
    assert [t["name"] for t in answer["tensors"]] == ["r.i", "r.x", "x"]
    assert [(s["name"], s["reason"]) for s in answer["skipped"]] == [("o", "object array: holds Python objects")]
    assert values(tdbg, path, "r.x") == [2.5]


def test_npz_bad_member(tdbg, tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("bad.npy", b"not an array")
        z.writestr("short.npy", npy_raw("{'descr': '<f4', 'fortran_order': False, 'shape': (9,)}", bytes(8)))
        z.writestr("good.npy", bytes_of(np.arange(2)))
    answer = tdbg.json("ls", path)
    assert [t["name"] for t in answer["tensors"]] == ["good"]
    assert [(s["name"], s["reason"]) for s in answer["skipped"]] == [
        ("bad", "not a .npy array"), ("short", "needs 36 bytes of data, has 8")]  # fmt: skip


def test_npz_empty(tdbg, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path)
    assert tdbg.json("ls", path)["tensors"] == []


def test_zip_of_npy_is_a_folder(tdbg, tmp_path):
    path = tmp_path / "dumps.zip"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("0_query.npy", bytes_of(np.arange(2)))
    assert [(t["name"], t["format"]) for t in tdbg.json("ls", path)["tensors"]] == [("0_query.npy", "npy")]


def test_npz_cut_short(tdbg, tmp_path):
    """A zip ends with its directory: without it nothing is certain."""
    path = tmp_path / "a.npz"
    np.savez(path, a=random_array("<f4", (8, 9)), b=random_array("<f4", (8, 9)))
    whole = path.read_bytes()
    for size in range(0, len(whole), 64):
        path.write_bytes(whole[:size])
        tdbg.fails("ls", path)


def test_records_with_objects_are_a_pickle(tdbg, tmp_path):
    """None of the fields can be viewed, whatever the bytes behind the header look like."""
    records = np.array([(1.5, None, 7), (2.5, "x", 8)], [("x", "<f8"), ("o", "O"), ("n", "<i4")])
    np.save(tmp_path / "r.npy", records, allow_pickle=True)
    reasons = {s["name"]: s["reason"] for s in tdbg.json("ls", tmp_path / "r.npy")["skipped"]}
    assert reasons == {"x": "records with Python objects in them are a pickle",
                       "o": "object array: holds Python objects",
                       "n": "records with Python objects in them are a pickle"}
