"""PyTorch files, both formats, written by torch itself and read bit for bit."""
import collections
import warnings
import zipfile

import numpy as np
import pytest
import torch

from torch_support import as_torch, check
from torchfiles import Call, Global, Storage, dumps, floats, legacy_file, v2, v3, zip_file

warnings.filterwarnings("ignore")

BOTH = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool, torch.complex64, torch.complex128,
]


def save(value, path, zipped=True, **options):
    torch.save(value, path, _use_new_zipfile_serialization=zipped, **options)
    return path


def special(dtype):
    """Values where a wrong conversion shows."""
    if dtype == torch.bool:
        return torch.tensor([True, False, True])
    if dtype.is_complex:
        return torch.tensor([1 + 2j, complex(-0.0, float("inf")), complex(float("nan"), 1e-30)], dtype=dtype)
    if dtype.is_floating_point:
        smallest = torch.finfo(dtype).tiny / 4
        return torch.tensor([0.1, -0.0, float("inf"), -float("inf"), float("nan"), smallest, torch.finfo(dtype).max], dtype=dtype)
    limits = torch.iinfo(dtype)
    return torch.tensor([limits.min, limits.max, 0, 1], dtype=dtype)


@BOTH
def test_every_dtype(tdbg, tmp_path, zipped):
    tensors = {str(dtype)[6:]: special(dtype) for dtype in DTYPES}
    check(tdbg, save(tensors, tmp_path / "a.pth", zipped), tensors, {})


@BOTH
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol(tdbg, tmp_path, zipped, protocol):
    values = {"weight": torch.arange(6.0).reshape(2, 3), "array": np.arange(200, 206), "scalar": np.float16(0.1), "n": 2**40}
    check(tdbg, save(values, tmp_path / "a.pt", zipped, pickle_protocol=protocol), values, {})


@BOTH
def test_views(tdbg, tmp_path, zipped):
    base = torch.arange(60.0).reshape(3, 4, 5)
    views = {
        "base": base,
        "transposed": base.transpose(0, 2),
        "permuted": base.permute(1, 2, 0),
        "sliced": base[1:, ::2, 1:4],
        "offset": base[2, 3],
        "expanded": base[:, :1, :1].expand(3, 4, 5),
        "diagonal": base.diagonal(0, 0, 1),
        "scalar": base[2, 3, 4],
        "empty": base[:, 4:],
        "unfolded": base.reshape(-1).unfold(0, 10, 5),
    }
    listing = check(tdbg, save(views, tmp_path / "a.pth", zipped), views, {})
    assert listing["tensors"][1]["bytes"] == 240


@BOTH
@pytest.mark.parametrize("value", [torch.tensor(1.5), torch.zeros(0), 128, 0.1, True, -(2**63), np.arange(3)], ids=repr)
def test_one_unnamed_value(tdbg, tmp_path, zipped, value):
    path = save(value, tmp_path / "0_sliding.pth", zipped)
    listing = tdbg.json("ls", path)
    assert [tensor["name"] for tensor in listing["tensors"]] == ["0_sliding.pth"]
    tensor = as_torch(value)
    assert listing["tensors"][0]["shape"] == list(tensor.shape)
    assert tdbg.json("show", path)["values"] == tensor.tolist()


@BOTH
def test_nested_containers(tdbg, tmp_path, zipped):
    one, two = torch.ones(2), torch.full((2,), 2.0)
    value = {
        "dict": {"a": one, 3: two, (1, "x"): one, True: two, None: one, 2.5: two},
        "ordered": collections.OrderedDict(b=two),
        "default": collections.defaultdict(list, c=[one]),
        "counter": collections.Counter("aab"),
        "list": [one, [two, ()], {}],
        "tuple": (one, (two,)),
        "deque": collections.deque([one, two], maxlen=5),
        "set": {7},
        "frozen": frozenset([8]),
        "size": one.size(),
        "complex": 1 - 2j,
        "big": 2**64,
        "text": "text",
        "bytes": b"bytes",
        "none": None,
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "function": collections.OrderedDict,
    }
    expected = {
        "dict.a": one, "dict.3": two, "dict.(1, x)": one, "dict.True": two, "dict.None": one, "dict.2.5": two,
        "ordered.b": two, "default.c.0": one, "counter.a": 2, "counter.b": 1, "list.0": one, "list.1.0": two,
        "tuple.0": one, "tuple.1.0": two, "deque.0": one, "deque.1": two, "set.0": 7, "frozen.0": 8, "size.0": 2,
        "complex": 1 - 2j,
    }
    skipped = {
        "big": "int beyond 64 bits", "text": "str, not a tensor",
        "bytes": "bytes, not a tensor", "none": "None, not a tensor",
        "dtype": "torch.float32, not a tensor", "device": "torch.device, not a tensor",
        "function": "collections.OrderedDict, not a tensor",
    }
    check(tdbg, save(value, tmp_path / "a.pth", zipped), expected, skipped)


@BOTH
def test_shared_storages(tdbg, tmp_path, zipped):
    base = torch.arange(10.0)
    value = {"all": base, "first": base[:5], "last": base[5:], "again": base}
    path = save(value, tmp_path / "a.pth", zipped)
    check(tdbg, path, value, {})
    assert path.stat().st_size < 2500


@BOTH
def test_storages_by_themselves(tdbg, tmp_path, zipped):
    value = {"typed": torch.arange(4.0).storage(), "untyped": torch.arange(2, dtype=torch.int16).storage().untyped()}
    expected = {"typed": torch.arange(4.0), "untyped": torch.tensor([0, 0, 1, 0], dtype=torch.uint8)}
    check(tdbg, save(value, tmp_path / "a.pth", zipped), expected, {})


@BOTH
def test_quantised(tdbg, tmp_path, zipped):
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    scales, zeros = torch.tensor([0.1, 0.02, 0.3], dtype=torch.float64), torch.tensor([0, 5, -3])
    value = {
        "qint8": torch.quantize_per_tensor(x, 0.05, 3, torch.qint8),
        "quint8": torch.quantize_per_tensor(x, 0.1, 10, torch.quint8),
        "qint32": torch.quantize_per_tensor(x, 1e-6, 0, torch.qint32),
        "rows": torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8),
        "columns": torch.quantize_per_channel(x.t().contiguous(), scales, zeros, 1, torch.qint8),
        "transposed": torch.quantize_per_tensor(x, 0.05, 3, torch.qint8).t(),
    }
    check(tdbg, save(value, tmp_path / "a.pth", zipped), value, {})


@BOTH
def test_sparse(tdbg, tmp_path, zipped):
    dense = torch.tensor([[0, 1.5, 0], [2.5, 0, -1]])
    indices = torch.tensor([[0, 1, 0], [1, 0, 1]])
    value = {
        "coo": dense.to_sparse(),
        "twice": torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2, 4]), (2, 3)),
        "hybrid": torch.sparse_coo_tensor(torch.tensor([[1, 0]]), torch.arange(4.0).reshape(2, 2), (3, 2)),
        "nothing": torch.sparse_coo_tensor(size=(2, 2)),
        "ints": torch.tensor([[0, 7]]).to_sparse(),
        "csr": dense.to_sparse_csr(),
    }
    check(tdbg, save(value, tmp_path / "a.pth", zipped), value, {})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 3), torch.nn.LSTM(3, 2)])
        self.norm = torch.nn.BatchNorm1d(3)
        self.head = torch.nn.Linear(2, 3, bias=False)
        self.head.weight = self.layers[0].weight
        self.register_buffer("cache", torch.ones(1), persistent=False)
        self.width = 7
        self.extra = [torch.full((2,), 5.0)]


@BOTH
def test_whole_module_is_listed_as_its_state_dict(tdbg, tmp_path, zipped):
    net = Net()
    listing = tdbg.json("ls", save(net, tmp_path / "net.pth", zipped))
    names = [tensor["name"] for tensor in listing["tensors"]]
    assert set(names) == set(net.state_dict()) | {"cache", "extra.0"}
    assert listing["skipped"] == []
    for name, tensor in net.state_dict().items():
        values = tdbg.json("show", f"{tmp_path / 'net.pth'}:{name}")["values"]
        assert torch.equal(torch.tensor(values, dtype=tensor.dtype), tensor)


@BOTH
def test_optimizer_checkpoint(tdbg, tmp_path, zipped):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    checkpoint = {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
        "scaler": {"scale": 65536.0, "_growth_tracker": 17}, "rng": torch.get_rng_state()[:16].clone(),
    }
    listing = tdbg.json("ls", save(checkpoint, tmp_path / "c.ckpt", zipped))
    names = [tensor["name"] for tensor in listing["tensors"]]
    for name in ["model.weight", "model.bias", "optimizer.state.0.exp_avg", "optimizer.param_groups.0.betas.1", "epoch",
                 "scaler._growth_tracker", "rng"]:
        assert name in names
    assert not [name for name in names if "_metadata" in name]
    value = tdbg.json("show", f"{tmp_path / 'c.ckpt'}:optimizer.state.0.exp_avg")["values"]
    assert torch.equal(torch.tensor(value), optimizer.state_dict()["state"][0]["exp_avg"])


class Subclass(torch.Tensor):
    pass


class Config:
    def __init__(self):
        self.table = torch.arange(3.0)
        self.deep = {"inner": [torch.zeros(1)]}
        self.name = "config"


class Pair(collections.namedtuple("Pair", "first second")):
    pass


class TaggedList(list):
    pass


@BOTH
def test_subclasses_and_unknown_classes(tdbg, tmp_path, zipped):
    tagged = TaggedList([torch.ones(1)])
    tagged.tag = 4
    parameter = torch.nn.Parameter(torch.ones(2))
    value = {"sub": torch.arange(2.0).as_subclass(Subclass), "config": Config(), "pair": Pair(torch.zeros(1), 1), "tagged": tagged,
             "parameter": parameter}
    expected = {
        "sub": torch.arange(2.0), "config.table": torch.arange(3.0), "config.deep.inner.0": torch.zeros(1),
        "pair.0": torch.zeros(1), "pair.1": 1, "tagged.0": torch.ones(1), "tagged.tag": 4, "parameter": torch.ones(2),
    }
    module = Config.__module__
    check(tdbg, save(value, tmp_path / "a.pth", zipped), expected, {
        "config": f"object of class {module}.Config", "config.name": "str, not a tensor",
        "pair": f"object of class {module}.Pair", "tagged": f"object of class {module}.TaggedList",
    })


def test_torchscript(tdbg, tmp_path):
    net = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), torch.zeros(1, 2))
    net.save(str(tmp_path / "net.pt"))
    expected = {"0.weight": net.state_dict()["0.weight"], "0.bias": net.state_dict()["0.bias"]}
    check(tdbg, tmp_path / "net.pt", expected, {})

    class Constant(torch.nn.Module):
        def forward(self, x):
            return x + torch.arange(3)

    torch.jit.trace(Constant(), torch.zeros(3)).save(str(tmp_path / "constant.pt"))
    names = [tensor["name"] for tensor in tdbg.json("ls", tmp_path / "constant.pt")["tensors"]]
    assert all(name.startswith("constants.") for name in names)


def test_cycles_and_depth(tdbg, tmp_path):
    ring = [torch.ones(1)]
    ring.append({"up": ring})
    check(tdbg, save(ring, tmp_path / "ring.pth"), {"0": torch.ones(1)}, {"1.up": "refers back to itself"})
    deep = torch.ones(1)
    for _ in range(100):
        deep = [deep]
    reasons = [skip["reason"] for skip in tdbg.json("ls", save(deep, tmp_path / "deep.pth"))["skipped"]]
    assert reasons == ["nested more than 64 deep"]


# --- Files that torch 1.13 cannot write ---


def write_zip(path, value, storages, **members):
    path.write_bytes(zip_file(value, storages, **members))
    return path


def names_and_types(listing):
    return {tensor["name"]: tensor["dtype"] for tensor in listing["tensors"]}


def reasons(listing):
    return {skip["name"]: skip["reason"] for skip in listing["skipped"]}


def test_types_newer_than_this_torch(tdbg, tmp_path):
    raw = bytes([0x00, 0x38, 0xB8, 0x7E])
    types = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "uint16", "uint32"]
    value = {name: v3(Storage("torch.storage.UntypedStorage", name, 4), (4 // (1 if "8" in name else int(name[4:]) // 8),), (1,), name)
             for name in types}
    value["bits16"] = v3(Storage("torch.storage.UntypedStorage", "uint16", 4), (2,), (1,), "bits16")
    value["typed"] = v2(Storage("torch.UInt64Storage", "u64", 1), (1,), (1,))
    value["half"] = v2(Storage("torch.ComplexHalfStorage", "u64", 2), (2,), (1,))
    path = write_zip(tmp_path / "a.pth", value, {**{name: raw for name in types}, "u64": b"\xff" * 8})
    listing = tdbg.json("ls", path)
    assert names_and_types(listing) == {**{name: name for name in types}, "typed": "uint64"}
    assert reasons(listing) == {"bits16": "dtype torch.bits16", "half": "storage type torch.ComplexHalfStorage"}
    show = lambda name: tdbg.json("show", f"{path}:{name}")["values"]
    assert show("float8_e4m3fn") == [0.0, 1.0, -1.0, 448.0]
    assert show("float8_e5m2") == [0.0, 0.5, -0.5, "nan"]
    assert show("float8_e4m3fnuz") == [0.0, 0.5, -0.5, 224.0]
    assert show("uint16") == [0x3800, 0x7EB8]
    assert show("uint32") == [0x7EB83800]
    assert show("typed") == [2**64 - 1]


def test_lazy_bits_are_refused(tdbg, tmp_path):
    storage = Storage("torch.ComplexFloatStorage", "0", 1)
    value = {
        "conj": v2(storage, (1,), (1,), {"conj": True}), "neg": v2(storage, (1,), (1,), {"neg": True}),
        "v3": v3(storage, (1,), (1,), "complex64", {"conj": True}), "plain": v2(storage, (1,), (1,), {"conj": False}),
    }
    listing = tdbg.json("ls", write_zip(tmp_path / "a.pth", value, {"0": bytes(8)}))
    assert list(names_and_types(listing)) == ["plain"]
    assert reasons(listing) == {
        "conj": "its values are stored unconjugated (a lazy conj view)",
        "neg": "its values are stored unnegated (a lazy neg view)",
        "v3": "its values are stored unconjugated (a lazy conj view)",
    }


def test_tensors_without_values(tdbg, tmp_path):
    layout = lambda name: Call("torch.serialization._get_layout", f"torch.{name}")
    value = {
        "meta": Call("torch._utils._rebuild_meta_tensor_no_storage", Global("torch.float32"), (2,), (1,), False),
        "wrapper": Call("torch._utils._rebuild_wrapper_subclass", Global("my.Tensor"), Global("torch.float32"), (2,)),
        "bsr": Call("torch._utils._rebuild_sparse_tensor", layout("sparse_bsr"), ()),
    }
    assert reasons(tdbg.json("ls", write_zip(tmp_path / "a.pth", value, {}))) == {
        "meta": "meta tensor: has a shape and no values",
        "wrapper": "wrapper tensor of class my.Tensor: has no values of its own",
        "bsr": "a sparse layout other than COO, CSR and CSC",
    }


def test_sparse_of_newer_torch(tdbg, tmp_path):
    layout = lambda name: Call("torch.serialization._get_layout", f"torch.{name}")
    longs = lambda key, count, shape: v2(Storage("torch.LongStorage", key, count), shape, tuple(np.cumprod((1,) + shape[:0:-1])[::-1].tolist()))
    values = v2(floats("values", 2), (2,), (1,))
    size = Call("torch.Size", (2, 3))
    sparse = lambda kind, *parts: Call("torch._utils._rebuild_sparse_tensor", layout(kind), parts)
    value = {
        "coo": sparse("sparse_coo", longs("coo", 4, (2, 2)), values, size, True),
        "csr": sparse("sparse_csr", longs("crow", 3, (3,)), longs("col", 2, (2,)), values, size),
        "csc": sparse("sparse_csc", longs("ccol", 4, (4,)), longs("row", 2, (2,)), values, size),
        "misfit": sparse("sparse_csr", longs("ccol", 4, (4,)), longs("col", 2, (2,)), values, size),
    }
    pack = lambda *values: np.array(values, dtype=np.int64).tobytes()
    path = write_zip(tmp_path / "a.pth", value, {
        "coo": pack(0, 1, 2, 0), "crow": pack(0, 1, 2), "col": pack(2, 0), "ccol": pack(0, 1, 1, 2), "row": pack(1, 0),
        "values": np.array([5, 6], dtype=np.float32).tobytes(),
    })
    dense = [[0.0, 0.0, 5.0], [6.0, 0.0, 0.0]]
    assert tdbg.json("show", f"{path}:coo")["values"] == dense
    assert tdbg.json("show", f"{path}:csr")["values"] == dense
    assert tdbg.json("show", f"{path}:csc")["values"] == [[0.0, 0.0, 6.0], [5.0, 0.0, 0.0]]
    assert reasons(tdbg.json("ls", path)) == {"misfit": "sparse indices and values do not fit the shape"}


def test_parameters_with_state_and_device_tensors(tdbg, tmp_path):
    tensor = v2(Storage("torch.FloatStorage", "0", 2), (2,), (1,))
    value = {
        "parameter": Call("torch._utils._rebuild_parameter_with_state", tensor, True, collections.OrderedDict(), {"mask": tensor, "n": 3}),
        "xla": Call("torch._utils._rebuild_device_tensor_from_numpy", np.arange(2.0), Global("torch.float64"), "xla:0", False),
        "old": Call("torch._utils._rebuild_tensor", Storage("torch.cuda.FloatStorage", "0", 2), 1, (1,), (1,)),
    }
    path = write_zip(tmp_path / "a.pth", value, {"0": np.array([1, 2], dtype=np.float32).tobytes()})
    check(tdbg, path, {"parameter": torch.tensor([1.0, 2]), "parameter.mask": torch.tensor([1.0, 2]), "xla": np.arange(2.0),
                       "old": torch.tensor([2.0])}, {})


def test_big_endian(tdbg, tmp_path):
    swap = {"f": "<f4", "h": "<i2", "c": "<c16", "b": "i1"}
    tensors = {"f": torch.tensor([1.5, -2]), "h": torch.tensor([258, -3], dtype=torch.int16),
               "c": torch.tensor([1 + 2j], dtype=torch.complex128), "b": torch.tensor([5], dtype=torch.int8)}
    storages = {name: tensor.numpy().astype(np.dtype(swap[name]).newbyteorder(">")).tobytes() for name, tensor in tensors.items()}
    types = {"f": "Float", "h": "Short", "c": "ComplexDouble", "b": "Char"}
    value = {name: v2(Storage(f"torch.{types[name]}Storage", name, tensor.numel()), tuple(tensor.shape), (1,)) for name, tensor in tensors.items()}
    check(tdbg, write_zip(tmp_path / "a.pth", value, storages, byteorder="big"), tensors, {})


def test_compressed_members_are_unpacked_once(tdbg, tmp_path):
    base = torch.arange(1000.0)
    path = save({"a": base, "b": base[10:]}, tmp_path / "a.pth")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    check(tdbg, path, {"a": base, "b": base[10:]}, {})


def test_archive_of_a_long_name(tdbg, tmp_path):
    """Longer than tdbg takes on: no torch file to it, whatever else it may be; never a crash."""
    for length in range(1010, 1020):
        path = tmp_path / "a.pth"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("n" * length + "/data.pkl", dumps(1))
            archive.writestr("n" * length + "/version", "3")
        tdbg.run("ls", path)


# --- Damage ---


def test_bad_views_and_storages(tdbg, tmp_path):
    value = {
        "outside": v2(floats(), (5,), (1,)),
        "offset": v2(floats(), (1,), (1,), offset=4),
        "below": v2(floats(), (2,), (-1,)),
        "negative": v2(floats(), (-1,), (1,)),
        "huge": v2(floats(), (2**40, 2**40), (0, 0)),
        "ranks": v2(floats(), (1, 1), (1,)),
        "missing": v2(floats("9"), (1,), (1,)),
        "short": v2(floats("0", 5), (1,), (1,)),
        "overflow": v2(floats("0", 2**62), (1,), (1,)),
        "nothing": v2(None, (1,), (1,)),
        "text": v2(floats(), "no shape", (1,)),
        "dims": v2(floats(), (1,) * 33, (1,) * 33),
        "scale": Call("torch._utils._rebuild_qtensor", floats(), 0, (1,), (1,), (), False, None),
        "raw": v2(Storage("torch.QInt8Storage", "0", 4), (1,), (1,)),
        "good": v2(floats(), (2, 2), (2, 1)),
    }
    path = write_zip(tmp_path / "a.pth", value, {"0": np.arange(4, dtype=np.float32).tobytes()})
    listing = tdbg.json("ls", path)
    assert list(names_and_types(listing)) == ["good"]
    assert reasons(listing) == {
        "outside": "a view reaches outside its storage of 4 elements",
        "offset": "a view reaches outside its storage of 4 elements",
        "below": "a view reaches outside its storage of 4 elements",
        "negative": "negative size -1 of axis 0",
        "huge": "more than 2^48 elements",
        "ranks": "2 sizes and 1 strides",
        "missing": "storage 9 is not in the file",
        "short": "storage 0 has 16 bytes, needs 20",
        "overflow": "a storage of 4611686018427387904 elements",
        "nothing": "None where a storage belongs",
        "text": "size is str where a tuple belongs",
        "dims": "33 dimensions, 32 at most",
        "scale": "a quantised tensor of type float32",
        "raw": "qint8 values without a scale",
    }


def test_legacy_storages(tdbg, tmp_path):
    """One is fine, one is seen in part, one has another size, one is cut short, one is not there at all."""
    one = lambda storage, count=1: v2(storage, (count,), (1,))
    value = {
        "good": one(floats("a", 2, None), 2), "part": one(floats("a", 2, ("a1", 1, 1))), "beyond": one(floats("a", 2, ("a2", 1, 2))),
        "other": one(floats("b", 3, None)), "cut": one(floats("c", 4, None)), "missing": one(floats("d", 1, None)),
    }
    storages = {"a": (2, np.float32([1, 2]).tobytes()), "b": (2, bytes(8)), "c": (4, bytes(10))}
    path = tmp_path / "a.pth"
    path.write_bytes(legacy_file(value, storages))
    check(tdbg, path, {"good": torch.tensor([1.0, 2]), "part": torch.tensor([2.0])}, {
        "beyond": "a part of a storage that reaches beyond it", "other": "storage b has 8 bytes, needs 12",
        "cut": "storage c is cut short: 10 of 16 bytes", "missing": "storage d is not in the file",
    })


@BOTH
def test_every_cut_is_noticed(tdbg, tmp_path, zipped):
    """Cut at every 64th byte: an error, or fewer tensors, and those with the right values."""
    tensors = {"a": torch.arange(40.0), "b": torch.arange(80).reshape(8, 10).t(), "c": torch.ones(3, dtype=torch.bfloat16)}
    whole = save(tensors, tmp_path / "whole.pth", zipped).read_bytes()
    path = tmp_path / "cut.pth"
    for size in range(0, len(whole), 64):
        path.write_bytes(whole[:size])
        run = tdbg.run("ls", "--json", path)
        if run.returncode == 2:
            continue
        listing = tdbg.json("ls", path)
        assert not zipped, "a zip without its directory is no torch file"
        assert len(listing["tensors"]) < len(tensors)
        for tensor in listing["tensors"]:
            assert tdbg.json("show", f"{path}:{tensor['name']}")["values"] == tensors[tensor["name"]].tolist()
