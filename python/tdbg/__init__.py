"""tdbg, the tensor debugger, from Python.

    with tdbg.record(model, "runs/a") as run:       what a PyTorch model computes, layer by layer, as a folder
        for batch in batches:
            model(batch)
            run.step()
    tdbg.diff("runs/a", "runs/b")                   where two of them part first, and what mistake that looks like
    tdbg.assert_close(ours, theirs)                 the same for tests: paths, arrays, tensors, dicts of them
    tdbg.load("model.pth")                          a mapping of name to numpy array; no pickle is run

A thin layer: libtdbg reads, compares and records.
"""
from . import _library
from ._library import Error
from .compare import assert_close, diff
from .loading import load

__version__ = _library.decode(_library.library.tdbg_version())
__all__ = ["Error", "assert_close", "diff", "load", "record"]


def __getattr__(name):
    if name == "record":  # imports torch, which takes seconds
        from .recorder import record
        return record
    raise AttributeError(f"module 'tdbg' has no attribute '{name}'")
