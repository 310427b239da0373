"""Plain pickles, and pickles that mean harm."""
import collections
import os
import pickle

import numpy as np
import pytest
import torch

from torch_support import check

EVERY_PROTOCOL = pytest.mark.parametrize("protocol", range(6))


def dump(value, path, protocol=4):
    path.write_bytes(pickle.dumps(value, protocol))
    return path


@EVERY_PROTOCOL
def test_arrays_and_scalars(tdbg, tmp_path, protocol):
    value = {
        "f4": np.array([[1.5, -0.0], [np.nan, np.inf]], dtype=np.float32), "big": np.arange(6, dtype=">i4").reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "bool": np.array([True, False]), "f2": np.arange(3, dtype=np.float16),
        "c8": np.array([1 + 2j], dtype=np.complex64), "bytes": np.arange(256, dtype=np.uint8), "empty": np.zeros((0, 3)),
        "zero_d": np.array(7), "scalar": np.float64(0.1), "np_bool": np.bool_(True), "int": -5, "float": 0.1, "yes": True,
        "complex": 2 - 1j, "nested": [1, (2.5, {"x": np.arange(2)})],
    }
    expected = {key: value[key] for key in list(value)[:-1]}
    expected |= {"nested.0": 1, "nested.1.0": 2.5, "nested.1.1.x": np.arange(2)}
    check(tdbg, dump(value, tmp_path / "a.pkl", protocol), expected, {}, format="pickle")


@EVERY_PROTOCOL
def test_tensors_without_torch_save(tdbg, tmp_path, protocol):
    base = torch.arange(12.0).reshape(3, 4)
    value = {"a": base, "view": base.t()[1:], "bf": torch.ones(2, dtype=torch.bfloat16), "model": torch.nn.Linear(2, 1).state_dict()}
    expected = {"a": base, "view": base.t()[1:], "bf": value["bf"], "model.weight": value["model"]["weight"], "model.bias": value["model"]["bias"]}
    check(tdbg, dump(value, tmp_path / "a.pkl", protocol), expected, {}, format="pickle")


@EVERY_PROTOCOL
def test_what_is_no_tensor(tdbg, tmp_path, protocol):
    value = {"text": np.array(["a", "b"]), "objects": np.array([1, np.arange(2)], dtype=object), "record": np.zeros(2, dtype=[("x", "f4")]),
             "date": np.array(["2020-01-01"], dtype="M8[D]"), "none": None, "huge": 2**70}
    listing = check(tdbg, dump(value, tmp_path / "a.pickle", protocol), {"objects.0": 1, "objects.1": np.arange(2)}, format="pickle")
    assert {skip["name"]: skip["reason"] for skip in listing["skipped"]} == {
        "text": "numpy array: holds text", "objects": "numpy array: object array: holds Python objects", "record": "a structured numpy array",
        "date": "numpy array: holds dates (datetime64)", "none": "None, not a tensor", "huge": "int beyond 64 bits",
    }


class Point:
    def __init__(self):
        self.x, self.y = np.arange(2), "y"


class Slots:
    __slots__ = ("a",)

    def __init__(self):
        self.a = np.arange(3)


class Named(dict):
    pass


@EVERY_PROTOCOL
def test_objects(tdbg, tmp_path, protocol):
    named = Named(w=np.arange(2))
    named.note = 3
    value = {"point": Point(), "named": named, "ordered": collections.OrderedDict(k=1)}
    expected = {"point.x": np.arange(2), "named.w": np.arange(2), "named.note": 3, "ordered.k": 1}
    reasons = {"point": f"object of class {__name__}.Point", "point.y": "str, not a tensor", "named": f"object of class {__name__}.Named"}
    if protocol >= 2:
        value["slots"] = Slots()
        expected["slots.a"] = np.arange(3)
        reasons["slots"] = f"object of class {__name__}.Slots"
    check(tdbg, dump(value, tmp_path / "a.pkl", protocol), expected, reasons, format="pickle")


def test_python2_arrays(tdbg, tmp_path):
    """As Python 2 wrote them: byte strings, not bytes; once with bytes that are text, once with others."""
    def array(raw):
        return (b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I2\ntcnumpy\ndtype\n(S'i2'\nI0\nI1\ntR"
                b"(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\n" + raw + b"\ntb")
    path = tmp_path / "a.pkl"
    path.write_bytes(b"(S'a'\n" + array(b"S'abcd'") + b"S'b'\n" + array(b"S'\\xff\\xfe\\x01\\x00'") + b"d.")
    check(tdbg, path, {"a": np.array([0x6261, 0x6463], dtype=np.int16), "b": np.array([-257, 1], dtype=np.int16)}, {}, format="pickle")


def test_bytes_kept_outside(tdbg, tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"a": np.arange(3), "b": 1}, 5, buffer_callback=lambda buffer: None))
    check(tdbg, path, {"b": 1}, {"a": "its bytes were kept outside the pickle"}, format="pickle")


def test_recognised_by_content(tdbg, tmp_path):
    assert tdbg.json("ls", dump({"a": 1}, tmp_path / "renamed.dat", 2))["tensors"][0]["format"] == "pickle"
    (tmp_path / "text.pkl").write_text("(not a pickle at all)\n")
    assert tdbg.run("ls", tmp_path / "text.pkl").returncode == 2


def test_bytes_after_the_pickle(tdbg, tmp_path):
    path = dump({"a": 1}, tmp_path / "a.pkl")
    path.write_bytes(path.read_bytes() + b"tail")
    assert tdbg.json("ls", path)["skipped"][0]["reason"] == "4 bytes after the pickle are not read"


# --- Harm ---

COMMAND = "touch MARKER"


def harmful(marker):
    text = COMMAND.replace("MARKER", str(marker)).encode()
    string = b"S'" + text + b"'\n"
    unicode = b"X" + len(text).to_bytes(4, "little") + text
    system = b"cos\nsystem\n"
    return {
        "reduce": system + b"(" + string + b"tR.",
        "inst": b"(" + string + b"ios\nsystem\n.",
        "obj": b"(" + system + string + b"o.",
        "newobj": b"\x80\x02" + system + unicode + b"\x85\x81.",
        "newobj_ex": b"\x80\x04" + system + unicode + b"\x85}\x92.",
        "stack_global": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + unicode + b"\x85R.",
        "build": b"\x80\x02csubprocess\nPopen\n)\x81}X\x0c\0\0\0__setstate__" + system + b"sb" + unicode + b"b.",
        "ext": b"\x80\x02\x82\x01" + unicode + b"\x85R.",
        "eval": b"cbuiltins\neval\n(S'__import__(\"os\").system(\"" + text + b"\")'\ntR.",
        "getattr": b"cbuiltins\ngetattr\n(cos\nsystem\nS'__call__'\ntR(" + string + b"tR.",
        "in_dict": b"}S'key'\n" + system + b"(" + string + b"tRs.",
        "appends": system + b"(" + string + b"tR(I1\nI2\ne.",
    }


@pytest.mark.parametrize("kind", list(harmful("x")))
def test_nothing_is_executed(tdbg, tmp_path, kind):
    path, marker = tmp_path / "harm.pkl", tmp_path / "marker"
    path.write_bytes(harmful(marker)[kind])
    listing = tdbg.json("ls", path)
    reasons = [skip["reason"] for skip in listing["skipped"]]
    assert any(reason.startswith("object of ") for reason in reasons), reasons
    tdbg.run("stats", path)
    assert not marker.exists()


def test_the_marker_would_show(tmp_path):
    """The pickles above are real: Python does run them."""
    marker = tmp_path / "marker"
    pickle.loads(harmful(marker)["reduce"])
    assert marker.exists()
    os.remove(marker)
    pickle.loads(harmful(marker)["stack_global"])
    assert marker.exists()


def test_harm_inside_torch_files(tdbg, tmp_path):
    class Harm:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'marker'}",)

    for zipped in (True, False):
        torch.save({"w": torch.ones(1), "harm": Harm()}, tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
        check(tdbg, tmp_path / "a.pth", {"w": torch.ones(1)}, {"harm": "object of class posix.system", "harm.0": "str, not a tensor"})
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_every_cut_is_noticed(tdbg, tmp_path, protocol):
    whole = dump({"a": np.arange(40), "b": [torch.ones(3)], "c": 1}, tmp_path / "whole.pkl", protocol).read_bytes()
    path = tmp_path / "cut.pkl"
    for size in range(0, len(whole), 64):
        path.write_bytes(whole[:size])
        assert tdbg.run("ls", path).returncode == 2


def test_shared_arrays_are_decoded_once(tdbg, tmp_path):
    array = np.arange(200, 10_200)
    value = {str(i): array for i in range(50)}
    path = dump(value, tmp_path / "a.pkl", 2)
    listing = tdbg.json("ls", path)
    assert len(listing["tensors"]) == 50 and listing["skipped"] == []
    assert tdbg.json("show", f"{path}:49")["values"] == array.tolist()


def test_shared_nonsense_is_not_gone_through_forever(tdbg, tmp_path):
    """A megabyte that is no Latin-1, as the bytes of an array that is listed 100,000 times."""
    text = "\u0100".encode() * 500_000
    array = (b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85S'b'\ntR(K\x01K\x02\x85cnumpy\ndtype\nX\x02\0\0\0i2\x89\x88\x87R"
             b"\x89X" + len(text).to_bytes(4, "little") + text + b"tbq\x00")
    path = tmp_path / "a.pkl"
    path.write_bytes(b"\x80\x02](" + array + b"h\x00" * 100_000 + b"e.")
    reasons = {skip["reason"] for skip in tdbg.json("ls", path, timeout=20)["skipped"]}
    assert reasons == {"text that is not Latin-1 where bytes belong", "the same bytes are gone through over and over"}


@pytest.mark.slow
def test_more_values_than_anybody_reads(tdbg, tmp_path):
    path = dump({"losses": [0.5] * 200_000, "w": np.arange(2)}, tmp_path / "a.pkl")
    listing = tdbg.json("ls", path)
    assert len(listing["tensors"]) == 131072 + 1
    assert listing["tensors"][-1]["name"] == "w"
    assert [skip["reason"] for skip in listing["skipped"]] == ["68928 more Python values are not listed"]
