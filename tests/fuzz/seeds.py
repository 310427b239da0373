"""Writes the seed corpus: for each fuzz target a folder of small good files, made by the real libraries.

    /usr/bin/python3 tests/fuzz/seeds.py OUT

A function marked @seeds("npy") fills OUT/npy, the corpus of tests/fuzz/fuzz_npy.c. The hand-made bad files of
tests/data/bad/npy are added to it. Keep seeds small (a few KiB): the fuzzer mutates them, size only slows it.
"""
import pathlib
import shutil
import sys

TESTS = pathlib.Path(__file__).parent.parent
BAD = TESTS / "data" / "bad"
sys.path.insert(0, str(TESTS))  # the modules that tests share
WRITERS = {}


def seeds(target):
    """Marks the function that writes the good files of a target."""

    def register(function):
        WRITERS.setdefault(target, []).append(function)
        return function

    return register


@seeds("pickle")
def pickle_seeds(folder):
    import collections
    import datetime
    import pickle

    import numpy as np

    shared = [1, 2.5, "é\n"]
    shared.append(shared)
    value = {
        "plain": (None, True, -1, 2**40, 2**70, 1e300, "text", b"\0\xff", bytearray(b"x"), 1j, {1}, frozenset([2])),
        "shared": [shared, shared],
        "objects": [collections.OrderedDict(a=1), collections.Counter("ab"), datetime.date(2020, 1, 2), np.dtype],
        "array": np.arange(6, dtype=">f4").reshape(2, 3),
        "scalar": np.float64(3),
    }
    for protocol in range(6):
        (folder / f"protocol{protocol}.pkl").write_bytes(pickle.dumps(value, protocol))


def torch_values():
    import collections

    import numpy as np
    import torch

    base = torch.arange(6.0).reshape(2, 3)
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
    return {
        "tensor": base.t()[1:],
        "dict": collections.OrderedDict(a=base, b=base.bfloat16(), n=3, s="text", p=torch.nn.Parameter(base)),
        "quantised": [torch.quantize_per_tensor(base, 0.5, 1, torch.qint8), torch.quantize_per_channel(base, scales, zeros, 0, torch.quint8)],
        "sparse": [base.to_sparse(), base.to_sparse_csr()],
        "numpy": [np.arange(3, dtype=">i2"), np.float32(1), np.asfortranarray(np.ones((2, 2), bool))],
        "module": torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1)),
        "storage": base.storage(),
    }


@seeds("stretch")
def stretch_seeds(folder):
    """Raw deflate of several blocks: of bytes, of short and of long copies, and of all kinds."""
    import zlib

    import numpy as np

    values = np.random.default_rng(1).standard_normal(1 << 14).astype("f4").view("u2")[1::2].tobytes()
    contents = {"tensor": values, "text": b"tensor of layer 7, " * 2000, "noise": np.random.default_rng(2).bytes(20000)}
    for name, content in contents.items():
        for kind, level, strategy in (("fast", 1, zlib.Z_DEFAULT_STRATEGY), ("fixed", 6, zlib.Z_FIXED)):
            packer = zlib.compressobj(level, wbits=-15, strategy=strategy)
            packed = packer.compress(content) + packer.flush(zlib.Z_SYNC_FLUSH) + packer.compress(content) + packer.flush()
            (folder / f"{name}-{kind}").write_bytes(packed)


@seeds("trace")
def trace_seeds(folder):
    import gzip
    import json

    def span(name, begin, length, **more):
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": length, **more}

    kineto = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
        span("ProfilerStep#1", 0, 100.25, cat="user_annotation"),
        span("aten::mm", 10, 20, args={"Input Dims": [[8, 64], [64, 32]]}),
        span("kernel<\u00e4 \"x\">", 15, 90, pid=0, tid=7, cat="kernel"),
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12, "args": {"Bytes": 4096, "Total Allocated": 8192}},
        span("ProfilerStep#2", 100.25, 1e2, cat="user_annotation"),
        span("PyTorch Profiler (0)", 0, 300, cat="Trace", pid="Spans", tid="PyTorch Profiler"),
    ]
    onnx = [{"cat": "Session", "pid": 5, "tid": 5, "dur": 90, "ts": 3, "ph": "X", "name": "model_run", "args": {}},
            {"cat": "Node", "pid": 5, "tid": 5, "dur": 30, "ts": 20, "ph": "X", "name": "Gemm_kernel_time", "args": {"op_name": "Gemm"}}]
    pairs = [{"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": at} for phase, name, at in (("B", "a", 0), ("B", "b", 5), ("E", "b", 9), ("E", "a", 12))]
    text = json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": kineto, "traceName": "t.json"})
    (folder / "kineto.json").write_text(text)
    (folder / "kineto.json.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "onnx.json").write_text(json.dumps(onnx, indent=1))
    (folder / "pairs.json").write_text(json.dumps(pairs)[:-1])


@seeds("memory_snapshot")
def memory_snapshot_seeds(folder):
    from memoryfiles import Device, save, stack

    for form in ("full", "segments", "old", "trace"):
        for protocol in (2, 4):
            device = Device()
            blocks = [device.alloc(512 * (i + 1), stack("layer", f"step_{i % 3}")) for i in range(6)]
            for block in blocks[::2]:
                device.free(block)
            device.event("snapshot", 0, 0)
            device.event("oom", 0, 1 << 40, device_free=7)
            device.event("segment_free", 0x7F0000000000, 1 << 20)
            save(folder / f"{form}{protocol}.pickle", device, form=form, protocol=protocol)


@seeds("torch")
def torch_seeds(folder):
    import torch

    for name, value in torch_values().items():
        torch.save(value, folder / f"{name}.pth")
    torch.jit.trace(torch.nn.Linear(1, 1), torch.zeros(1, 1)).save(str(folder / "script.pt"))
    write_bad("torch", folder)


@seeds("torch_legacy")
def torch_legacy_seeds(folder):
    import torch

    for name, value in torch_values().items():
        for protocol in (2, 4):
            torch.save(value, folder / f"{name}{protocol}.pth", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    write_bad("torch_legacy", folder)


@seeds("pickle_file")
def pickle_file_seeds(folder):
    import pickle

    pickle_seeds(folder)
    for name, value in torch_values().items():
        for protocol in (0, 2, 5):
            (folder / f"{name}{protocol}.pkl").write_bytes(pickle.dumps(value, protocol))
    write_bad("pickle_file", folder)


@seeds("onnx")
def onnx_seeds(folder):
    import onnxfiles

    sparse = [onnxfiles.sparse("a", [1, 2], [[0, 1], [1, 2]], [2, 3]), onnxfiles.sparse("b", [1, 2], [1, 5], [2, 3])]
    models = {
        "types": onnxfiles.model(onnxfiles.typed_and_raw()),
        "nested": onnxfiles.nested(),
        "sparse": onnxfiles.model(sparse_initializers=sparse),
        "tensor": onnxfiles.typed("t", "FLOAT16", onnxfiles.sample("FLOAT16")),
    }
    for name, model in models.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    for name, (content, _) in onnxfiles.BAD_FILES.items():
        (folder / f"bad-{name}.onnx").write_bytes(content)
    for name, (tensor, _) in onnxfiles.BAD_TENSORS.items():
        (folder / f"bad-{name}.onnx").write_bytes(onnxfiles.model_of_tensor(tensor))


def write_bad(target, folder):
    from bad_files import BAD as bad_files

    for name, (data, _) in bad_files.items():
        if name.startswith(target + "/"):
            (folder / f"bad-{name.split('/')[1]}").write_bytes(data)


@seeds("safetensors")
def safetensors_seeds(folder):
    import numpy as np
    from tensorfiles import SAFETENSORS_DTYPES, safetensors

    tensors = {dtype: np.arange(6).astype(dtype).reshape(2, 3) for dtype in SAFETENSORS_DTYPES}
    small = {f"x.{name}": (name, [2, 2], bytes([0x38, 0, 1, 0x7F] * size))
             for name, size in (("BF16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("F8_E4M3FNUZ", 1), ("F8_E5M2FNUZ", 1))}
    (folder / "dtypes").write_bytes(safetensors({**tensors, **small}, {"format": "pt"}))
    (folder / "one").write_bytes(safetensors({"w": tensors["float32"]}))
    (folder / "pairs").write_bytes(safetensors({"z": np.zeros((3, 2)), "w": np.zeros(2)}, {"complex128:z": "", "complex128:w": ""}))
    (folder / "empty").write_bytes(safetensors({"none": np.zeros((0, 3)), "scalar": np.zeros(()), "f4": ("F4", [2], b"1")}))
    write_bad("safetensors", folder)


@seeds("npy")
def npy_seeds(folder):
    import numpy as np

    record = np.dtype([("x", "<f4"), (("t", "é"), ">i4"), ("v", "<f4", (2,)), ("s", "S4"), ("r", [("i", "u1"), ("j", "V3")])])
    arrays = {"f4": np.zeros((2, 3), "<f4"), "big": np.ones((2, 3), ">f8"), "order": np.zeros((3, 2), "<i2", order="F"),
              "scalar": np.array(3), "object": np.array([{}]), "date": np.array([0], "M8[ns]"), "text": np.array(["a"]),
              "record": np.zeros(3, record), "complex": np.zeros(2, "<c16"), "half": np.zeros(5, "<f2")}
    for name, array in arrays.items():
        np.save(folder / name, array)
    for version in (2, 3):
        with open(folder / f"version{version}", "wb") as out:
            np.lib.format.write_array(out, arrays["f4"], (version, 0))
    write_bad("npy", folder)


@seeds("npz")
def npz_seeds(folder):
    import numpy as np

    arrays = {"a": np.arange(6.0).reshape(2, 3), "b/c": np.arange(3, dtype=">i2"), "o": np.array([{}])}
    np.savez(folder / "stored", **arrays)
    np.savez_compressed(folder / "deflated", **arrays)
    np.savez(folder / "empty")


@seeds("gguf")
def gguf_seeds(folder):
    import numpy as np
    from tensorfiles import GGUF_TYPES, Gguf

    for order in "<>":
        gguf = Gguf(order=order, alignment=64).pair("general.alignment", "u32", 64).pair("name", "string", "llama")
        gguf.pair("tokens", "array", ("string", ["a", "b"])).pair("n", "array", ("array", [("u16", [1]), ("f64", [2])]))
        for kind in ("f32", "f16", "bf16", "i64", "tq1_0"):
            gguf.tensor(kind, kind, [2, 2], bytes(32))
        (folder / f"plain-{'little' if order == '<' else 'big'}").write_bytes(gguf.file())
    golden = np.load(TESTS / "data" / "gguf_golden.npz")
    for kind in GGUF_TYPES:
        if f"{kind}.blocks" in golden:
            shape, blocks = golden[f"{kind}.values"].shape, golden[f"{kind}.blocks"].tobytes()
            (folder / kind).write_bytes(Gguf(version=2).tensor(kind, kind, shape, blocks).file())
    write_bad("gguf", folder)


@seeds("index")
def index_seeds(folder):
    """Zips: an index and its shards."""
    import json
    import zipfile

    import numpy as np
    from bad_files import BAD as bad_files
    from tensorfiles import safetensors

    def write(name, members):
        with zipfile.ZipFile(folder / name, "w") as z:
            for member, data in members.items():
                z.writestr(member, data)

    shards = {"a.safetensors": safetensors({"x": np.arange(3.0), "y": np.arange(2)}),
              "b.safetensors": safetensors({"z": np.zeros(1)})}
    index = {"metadata": {"total_size": 1}, "weight_map": {"z": "b.safetensors", "x": "a.safetensors", "q": "a.safetensors"}}
    write("two", {"m.safetensors.index.json": json.dumps(index), **shards})
    write("folder", {"f/m.index.json": json.dumps({"weight_map": {"x": "a.safetensors", "n": "no"}}), "f/a.safetensors": shards["a.safetensors"]})
    write("itself", {"m.index.json": json.dumps({"weight_map": {"x": "m.index.json"}})})
    for name, (data, _) in bad_files.items():
        if name.startswith("index/"):
            write(f"bad-{name.split('/')[1]}", {"m.index.json": data})


@seeds("zip")
def zip_seeds(folder):
    import warnings
    import zipfile

    text = b"tensor debugger " * 40
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(folder / f"method{method}.zip", "w", method) as out:
            out.writestr("a/data.pkl", text)
            out.writestr("a/data/0", bytes(range(256)))
            out.writestr("a/", b"")
            with out.open("streamed", "w", force_zip64=True) as member:
                member.write(text)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out.writestr("a/data/0", b"again")
    with zipfile.ZipFile(folder / "empty.zip", "w") as out:
        out.comment = b"nothing"


@seeds("archive")
def archive_seeds(folder):
    import io
    import subprocess
    import tarfile

    def tar(form, *, links=False):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as out:
            for name, data in (("d/0_query.npy", bytes(300)), ("d/" + "n" * 120, b"long"), ("/up/../x", b"x")):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
            for kind in (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE) if links else ():
                info = tarfile.TarInfo(f"d/link{kind[0]}")
                info.type, info.linkname = kind, "d/0_query.npy"
                out.addfile(info)
        return buffer.getvalue().rstrip(b"\0") + bytes(1024)

    plain = tar(tarfile.GNU_FORMAT, links=True)
    (folder / "gnu.tar").write_bytes(plain)
    (folder / "pax.tar").write_bytes(tar(tarfile.PAX_FORMAT))
    (folder / "ustar.tar").write_bytes(tar(tarfile.GNU_FORMAT)[:2048])
    for tool in ("gzip", "xz", "zstd", "bzip2"):
        packed = subprocess.run([tool, "-c"], input=plain, stdout=subprocess.PIPE, check=True).stdout
        (folder / f"tar.{tool}").write_bytes(packed)
        (folder / f"twice.{tool}").write_bytes(packed + packed)
        one = subprocess.run([tool, "-c"], input=b"tensor " * 50, stdout=subprocess.PIPE, check=True).stdout
        (folder / f"one.{tool}").write_bytes(one)
    zip_seeds(folder)


@seeds("names")
def names_seeds(folder):
    """Files for --names, in both forms."""
    (folder / "lines").write_text("# ours\nblk{L}_norm = model.layers.{L}.norm  # all\nmlp*=mlp.*\n{L}_q = query\n")
    (folder / "object").write_text('{"blk{L}_q": "layers.{L}.q", "x*": "y*"}')
    (folder / "template").write_text("layers.{L+12}.q")


@seeds("match")
def match_seeds(folder):
    """Names of both sides, as fuzz_match.c reads them."""
    layers = range(2)
    dumps = [f"{n}_{stage}.pth" for n in layers for stage in ("query", "key", "value", "post_mlp")]
    ranks = [f"rank{r}/{name}" for r in range(2) for name in dumps]
    counted = [f"model-0000{i + 1}-of-00002.safetensors:{key}" for i in range(2) for key in (f"layers.{i}.w", "norm")]
    hugging_face = [f"model.layers.{n}.{m}.weight" for n in layers for m in ("self_attn.q_proj", "mlp.gate_up_proj")]
    gguf = [f"blk.{n}.{m}.weight" for n in layers for m in ("attn_q", "ffn_gate", "ffn_up")] + ["token_embd.weight"]
    fused = [f"{n + 3}_qkv.npy" for n in layers]
    for name, chain, a, b in (
        ("stages", "auto", dumps, [d.replace("pth", "npy") for d in dumps]),
        ("ranks", "auto", ranks, dumps),
        ("counted", "exact,fuzzy", counted, ["layers.0.w", "layers.1.w", "norm"]),
        ("families", "auto", hugging_face, gguf),
        ("fused", "stage,fused,shape", dumps, fused),
        ("rule", r"regex:blk\.(\d{1,2})\.attn_q=>model.layers.\1.self_attn.q_proj,auto", gguf, hugging_face),
    ):
        (folder / name).write_text("\n".join([chain, *a, "", *b]))

    # With values: what follows "=" says shape, values, where they begin, type.
    def model(names, *codes):
        return [f"{name.format(n)}={codes[(n + i) % len(codes)]}" for n in range(3) for i, name in enumerate(names)]

    own, other = ("h.{}.aa", "h.{}.bb", "h.{}.cc"), ("step{}_x", "step{}_y", "step{}_z")
    whole = [f"l{n}/fused=4{n}{n}0" for n in range(3)]
    for name, a, b in (
        ("values", model(own, "3010", "3020", "5030", "b040"), model(other, "3010", "3020", "5030", "b040")),
        ("nearly", model(own, "3010", "3020"), model(other, "3110", "3120")),
        ("nothing", model(own, "3300", "3200", "3600", "1000", "2000"), model(other, "3200", "3300", "3500", "1000")),
        ("batch", model(own, "6000", "6010"), model(other, "7000", "7010")),
        ("views", model(own, "c000", "d010", "e000", "f020"), model(other, "c000", "d010", "e000", "f020")),
        ("types", model(own, "3011", "3022", "3034", "3045"), model(other, "3011", "3022", "3033", "3046")),
        ("parts", [f"l{n}/{p}=3{n}{i}0" for n in range(3) for i, p in enumerate("uvw")], whole),
        ("twins", model(own, "3010"), model(other, "3010")),
    ):
        (folder / name).write_text("\n".join(["auto", *a, "", *b]))


@seeds("form")
def form_seeds(folder):
    """Types and bodies, as fuzz_form.c reads them."""
    def part(head, content):
        return b"--edge\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + content + b"\r\n"

    text, end = part(b'name="upload_mode"', b"dual_pth"), b"--edge--\r\n"
    file = part(b'name="model1"; filename="a \\"b\\" %22c%22.pth"\r\nContent-Type: x/y', b"\r\n--edg\r\n-\r\r\n" * 9)
    for name, kind, body in (
        ("both", b"multipart/form-data; boundary=edge", text + file + end),
        ("quoted", b'multipart/form-data; charset=utf-8; Boundary="edge"', b"before\r\n" + text + end + b"after"),
        ("padded", b"multipart/form-data;boundary=edge", file.replace(b"--edge\r", b"--edge \t\r", 1) + end),
        ("cut", b"multipart/form-data; boundary=edge", file + text[:-5]),
        ("long", b"multipart/form-data; boundary=edge", part(b"name=x; filename=y", bytes(range(256)) * 8) + end),
    ):
        (folder / name).write_bytes(kind + b"\n" + body)


def main(out):
    for target, writers in WRITERS.items():
        folder = out / target
        folder.mkdir(parents=True, exist_ok=True)
        for writer in writers:
            writer(folder)
        if (BAD / target).is_dir():
            for path in sorted((BAD / target).iterdir()):
                shutil.copy(path, folder / f"bad-{path.name}")
        print(f"{target}: {len(list(folder.iterdir()))} seeds")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
