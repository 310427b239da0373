"""Writes the seed corpus: for each fuzz target a folder of small good files, made by the real libraries.

    /usr/bin/python3 tests/fuzz/seeds.py OUT

A function marked @seeds("npy") fills OUT/npy, the corpus of tests/fuzz/fuzz_npy.c. The hand-made bad files of
tests/data/bad/npy are added to it. Keep seeds small (a few KiB): the fuzzer mutates them, size only slows it.
"""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))  # the modules that tests share
BAD = pathlib.Path(__file__).parent.parent / "data" / "bad"
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
