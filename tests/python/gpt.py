"""The model of examples/gpt.py in a small size, and one with a bug."""
import importlib.util
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

spec = importlib.util.spec_from_file_location("example_gpt", ROOT / "examples" / "gpt.py")
example = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = example  # where pickle looks for classes
spec.loader.exec_module(example)
GPT = example.GPT


def model(layers=3, width=32):
    torch.manual_seed(0)
    return GPT(layers=layers, width=width)


def ids(seed=1, rows=2, length=12):
    return torch.randint(0, 50, (rows, length), generator=torch.Generator().manual_seed(seed))


def broken(layer=1, factor=2.0):
    """The same weights; the attention of one layer scales its scores wrongly."""
    other = model()
    other.layers[layer].attn.scale *= factor
    return other
