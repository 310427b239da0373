"""`tdbg show`: values, slices and exports against numpy."""
import json
import random

import numpy as np
import pytest

FLOATS = ["float16", "float32", "float64"]


def same_bits(values, expected):
    """The JSON values, read as the array's own type, are the same bits."""
    got = np.array(values, dtype=object).reshape(expected.shape)
    got = np.array([float(v) for v in got.ravel()]).astype(expected.dtype).reshape(expected.shape)
    return got.tobytes() == expected.tobytes()


def test_json_is_as_the_contract_says(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6, dtype=np.int32).reshape(2, 3))
    assert tdbg.json("show", tmp_path / "a.npy") == {
        "version": 1,
        "name": "a.npy",
        "dtype": "int32",
        "shape": [2, 3],
        "slice": "",
        "values": [[0, 1, 2], [3, 4, 5]],
    }
    sliced = tdbg.json("show", f"{tmp_path}/a.npy[1, ::2]")
    assert (sliced["shape"], sliced["slice"], sliced["values"]) == ([2, 3], "1, ::2", [3, 5])


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_read_back_to_the_same_bits(tdbg, tmp_path, dtype):
    random_bits = np.random.default_rng(1).integers(0, 256, 40000, np.uint8).view(dtype)
    values = random_bits[np.isfinite(random_bits)]
    values = np.concatenate([values, np.array([0.0, -0.0, 0.1, -1 / 3, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)])
    np.save(tmp_path / "a.npy", values)
    assert same_bits(tdbg.json("show", tmp_path / "a.npy")["values"], values)


def test_float32_is_printed_short(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([0.1, 1, -0.0, 16777216, 1e-7, 3.4028235e38], np.float32))
    text = tdbg.text("show", "--json", tmp_path / "a.npy")
    assert '"values":[0.1,1.0,-0.0,16777216.0,1e-07,3.4028235e+38]' in text


def test_what_json_has_no_number_for(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([np.nan, np.inf, -np.inf, 1]))
    assert tdbg.json("show", tmp_path / "a.npy")["values"] == ["nan", "inf", "-inf", 1.0]
    np.save(tmp_path / "c.npy", np.array([1 + 2j, complex(np.nan, -0.5)], np.complex64))
    assert tdbg.json("show", tmp_path / "c.npy")["values"] == [[1.0, 2.0], ["nan", -0.5]]


@pytest.mark.parametrize("dtype", "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
def test_integers_are_exact(tdbg, tmp_path, dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)
    np.save(tmp_path / "a.npy", values)
    assert tdbg.json("show", tmp_path / "a.npy")["values"] == [int(v) for v in values]


def test_bool_scalar_and_empty(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([[True, False]]))
    assert tdbg.json("show", tmp_path / "a.npy")["values"] == [[True, False]]
    np.save(tmp_path / "s.npy", np.float32(2.5))
    assert tdbg.json("show", tmp_path / "s.npy")["values"] == 2.5
    np.save(tmp_path / "e.npy", np.zeros((2, 0, 3)))
    assert tdbg.json("show", tmp_path / "e.npy")["values"] == [[], []]
    assert tdbg.json("show", f"{tmp_path}/a.npy[:, 5:]")["values"] == [[]]
    assert tdbg.json("show", "--count", "0", tmp_path / "a.npy")["values"] == []


def random_item(rng, size):
    def end():
        return rng.choice(["", rng.randint(-size - 3, size + 3)])

    if size > 0 and rng.random() < 0.3:
        return str(rng.randint(-size, size - 1))
    step = rng.choice(["", ":", f":{rng.choice([1, 2, 3, 7, -1, -2, -5])}"])
    return f"{end()}:{end()}{step}"


def test_slices_are_numpys(tdbg, tmp_path):
    rng = random.Random(7)
    arrays = {
        "c": np.arange(2 * 7 * 5, dtype=np.float32).reshape(2, 7, 5),
        "fortran": np.asfortranarray(np.arange(3 * 4 * 6, dtype=np.int16).reshape(3, 4, 6)),
        "big_endian": np.arange(40, dtype=">i4").reshape(8, 5),
        "complex": (np.arange(12) + 1j).reshape(3, 4),
        "vector": np.arange(11, dtype=np.uint8),
        "scalar": np.float64(3),
        "one": np.ones((1, 1, 3), bool),
    }
    np.savez(tmp_path / "a.npz", **arrays)
    for _ in range(150):
        name = rng.choice(list(arrays))
        array = np.asarray(arrays[name])
        items = [random_item(rng, size) for size in array.shape[: rng.randint(0, array.ndim)]]
        if rng.random() < 0.4:
            at = rng.randint(0, len(items))
            tail = array.shape[array.ndim - (len(items) - at) :] if at < len(items) else ()
            items[at:] = ["...", *(random_item(rng, size) for size in tail)]
        text = ", ".join(items)
        if not text:
            continue
        expected = eval(f"array[{text}]")
        got = tdbg.json("show", f"{tmp_path}/a.npz:{name}[{text}]")
        if array.dtype.kind == "c":
            expected = np.stack([expected.real, expected.imag], -1)
        assert got["values"] == expected.tolist(), (name, text)
        assert got["slice"] == text


@pytest.mark.parametrize(
    "text, message",
    [
        ("80", "index 80 is out of range for axis 0 of size 76"),
        ("0, -6", "index -6 is out of range for axis 1 of size 5"),
        ("0, 0, 0", "too many indices: [0, 0, 0] names 3 axes, the tensor has 2"),
        ("::0", "bad slice [::0]: a step of zero"),
        ("..., ...", "bad slice [..., ...]: more than one ..."),
        ("a", "bad slice [a]: expected integers, ranges a:b:c and ... between commas"),
        ("1 2", "bad slice [1 2]: expected integers, ranges a:b:c and ... between commas"),
    ],
)
def test_bad_slices(tdbg, tmp_path, text, message):
    np.save(tmp_path / "a.npy", np.zeros((76, 5)))
    assert tdbg.fails("show", f"{tmp_path}/a.npy[{text}]") == f"tdbg: {tmp_path}/a.npy: {message}"


def test_numbers_beyond_any_size_clip(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    huge = 10**30
    assert tdbg.json("show", f"{tmp_path}/a.npy[-{huge}:{huge}:{huge}]")["values"] == [0]
    assert tdbg.json("show", f"{tmp_path}/a.npy[{huge}:-{huge}:-{huge}]")["values"] == [2]
    assert "out of range" in tdbg.fails("show", f"{tmp_path}/a.npy[{huge}]")


def test_which_tensor(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", **{"layers.0.weight": np.zeros(1), "w[0]": np.arange(4)})
    path = f"{tmp_path}/a.npz"
    assert (
        tdbg.fails("show", path) == f"tdbg: {path}: holds 2 tensors; name one of: layers.0.weight, w[0]"
    )
    assert tdbg.fails("show", f"{path}:x") == f"tdbg: {path}: no tensor named 'x'; there are 2: layers.0.weight, w[0]"
    assert tdbg.json("show", f"{path}:w[0]")["values"] == [0, 1, 2, 3]
    assert tdbg.json("show", f"{path}:w[0][1:3]")["values"] == [1, 2]
    np.savez(tmp_path / "b.npz", x=np.zeros(1))
    assert tdbg.json("show", f"{tmp_path}:b.npz:x")["name"] == "b.npz:x"
    assert tdbg.json("show", f"{tmp_path}:x")["name"] == "b.npz:x"
    assert tdbg.fails("show", f"{tmp_path}/gone.npy:x[3]").startswith(f"tdbg: {tmp_path}/gone.npy: cannot open")


def test_a_path_with_colons_and_brackets(tdbg, tmp_path):
    np.save(tmp_path / "a:b[0].npy", np.arange(3))
    assert tdbg.json("show", f"{tmp_path}/a:b[0].npy")["values"] == [0, 1, 2]
    assert tdbg.json("show", f"{tmp_path}/a:b[0].npy[1:]")["values"] == [1, 2]


def test_count(tdbg, tmp_path):
    array = np.arange(24).reshape(2, 3, 4)
    np.save(tmp_path / "a.npy", array)
    assert tdbg.json("show", "--count=5", tmp_path / "a.npy")["values"] == [0, 1, 2, 3, 4]
    assert tdbg.json("show", "-n3", f"{tmp_path}/a.npy[1, ::-1]")["values"] == [20, 21, 22]
    assert tdbg.json("show", "--count", "99", tmp_path / "a.npy")["values"] == array.tolist()


def test_text(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.array([[[1, -2.5], [0.125, 1000]], [[np.nan, 0], [-0.0, np.inf]]], np.float32))
    assert tdbg.text("show", tmp_path / "a.npy").splitlines() == [
        "a.npy  float32 [2, 2, 2]",
        "[[[   1.0     -2.5  ]",
        "  [   0.125 1000.0  ]]",
        "",
        " [[     nan    0.0  ]",
        "  [  -0.0        inf]]]",
    ]
    np.save(tmp_path / "b.npy", np.array([1e-9, -1.5, 2e10], np.float32))
    assert tdbg.text("show", "-q", tmp_path / "b.npy") == "[ 1.0e-09 -1.5e+00  2.0e+10]\n"
    np.save(tmp_path / "i.npy", np.array([[1, -20], [300, 4]]))
    assert tdbg.text("show", "-q", tmp_path / "i.npy") == "[[  1 -20]\n [300   4]]\n"
    np.save(tmp_path / "s.npy", np.float16(0.1))
    assert tdbg.text("show", "-q", tmp_path / "s.npy") == "0.1\n"


def test_text_of_a_big_tensor_shows_its_edges(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(10000).reshape(100, 100))
    lines = tdbg.text("show", "-q", tmp_path / "a.npy").splitlines()
    assert lines[0] == "[[   0    1    2 …   97   98   99]"
    assert lines[3] == " …"
    assert lines[-1] == " [9900 9901 9902 … 9997 9998 9999]]"
    assert len(lines) == 7
    every = tdbg.text("show", "-q", "--all", tmp_path / "a.npy")
    assert [int(n) for n in every.replace("[", " ").replace("]", " ").split()] == list(range(10000))


@pytest.mark.parametrize("width", [40, 80])
def test_text_wraps(tdbg, tmp_path, width):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((4, 60)))
    lines = tdbg.text("show", "--all", tmp_path / "a.npy", env={"COLUMNS": str(width)}).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) > 12


def test_many_axes_stay_readable(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3,) * 12, bool))
    assert len(tdbg.text("show", tmp_path / "a.npy")) < 100_000


@pytest.mark.parametrize("dtype", "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 ? c8 c16".split())
def test_npy(tdbg, tmp_path, dtype):
    array = np.random.default_rng(0).integers(0, 2, (5, 6, 7)).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    tdbg.text("show", f"{tmp_path}/a.npy[::-2, 1:, 3]", "--npy", tmp_path / "out.npy")
    written = np.load(tmp_path / "out.npy")
    assert written.dtype == array.dtype
    assert np.array_equal(written, array[::-2, 1:, 3])


def test_npy_of_any_shape(tdbg, tmp_path):
    for i, shape in enumerate([(), (1,), (0, 3), (100_000,), (1,) * 20]):
        array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
        np.save(tmp_path / "a.npy", array)
        done = tdbg.run("show", tmp_path / "a.npy", "--npy", tmp_path / f"{i}.npy")
        assert done.stdout == "" and done.stderr == f"wrote {tmp_path}/{i}.npy: float32 {list(shape)}\n"
        assert np.array_equal(np.load(tmp_path / f"{i}.npy"), array)
    np.save(tmp_path / "a.npy", np.arange(3))
    out = tdbg.run("show", "-q", tmp_path / "a.npy", "--npy", "-", text=False).stdout
    assert out[:6] == b"\x93NUMPY"


def test_csv(tdbg, tmp_path):
    array = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)
    np.save(tmp_path / "a.npy", array)
    tdbg.text("show", tmp_path / "a.npy", "--csv", tmp_path / "a.csv")
    assert np.array_equal(np.loadtxt(tmp_path / "a.csv", delimiter=",", dtype=np.float32), array.reshape(20, 6))
    np.save(tmp_path / "c.npy", np.array([1 - 2j, -0.5 + 1j]))
    assert tdbg.text("show", "-q", tmp_path / "c.npy", "--csv", "-") == "1.0-2.0j,-0.5+1.0j\n"


def test_an_export_that_fails_leaves_nothing(tdbg, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(100_000))
    message = tdbg.fails("show", tmp_path / "a.npy", "--npy", tmp_path / "no/such/folder.npy")
    assert message == f"tdbg: {tmp_path}/no/such/folder.npy: cannot create: No such file or directory"
    assert tdbg.fails("show", tmp_path / "a.npy", "--npy", "/dev/full") == (
        "tdbg: /dev/full: cannot write: No space left on device"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_json_is_one_document(tdbg, tmp_path):
    np.savez(tmp_path / "a.npz", **{'quo"te\\ü': np.zeros(1)})
    text = tdbg.text("show", "--json", tmp_path / "a.npz")
    assert text.endswith("}\n") and json.loads(text)["name"] == 'quo"te\\ü'
