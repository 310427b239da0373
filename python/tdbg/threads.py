"""The threads that torch computes with, lent to the library for the statistics of large tensors.

A module's output was written by all of torch's threads, and a part of it lies in the cache of each. They wait for the
next operation wide awake, so that another thread would find no CPU beside them; but they take a parallel region of
their own OpenMP runtime at once, and then each mostly reads what it wrote.

That runtime is a matter of the loader: torch brings one along, a distribution has another, and a process may hold several.
"""
import ctypes

import torch

from ._library import OpenMP, library


def openmp():
    """The functions of the runtime that torch calls, found in the order in which the loader found them for torch: what the
    program was started with, then the libraries of torch itself. None where torch computes with other threads."""
    if "ATen parallel backend: OpenMP" not in torch.__config__.parallel_info():
        return None
    for place in (None, torch._C.__file__):
        try:
            runtime = ctypes.CDLL(place)
            return OpenMP(*(ctypes.cast(getattr(runtime, name), ctypes.c_void_p) for name, _ in OpenMP._fields_))
        except (OSError, AttributeError):
            continue
    return None


OPENMP = openmp()  # for good: a run keeps its address


def lent():
    """Options of a run that is lent torch's threads. How many they are is asked at each tensor."""
    if OPENMP is None:
        return {}
    return {"parallel": ctypes.cast(library.tdbg_openmp_parallel, ctypes.c_void_p),
            "parallel_user": ctypes.addressof(OPENMP)}


def settle():
    """Once in each thread that records: torch tells OpenMP in every thread anew how many threads are wanted, but not before
    it has something to compute there."""
    torch.get_num_threads()
