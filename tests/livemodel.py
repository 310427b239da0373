"""A small model that records itself through the C library, for tests that stop it: python3 livemodel.py RUN STEPS [BUG]

Three layers of a made-up model; each step prints its loss, the model's own output. BUG names a layer whose output is
scaled by a little, "nan" plants a NaN in layers.1.output of step 2. PAUSE (seconds, in the environment) slows a
step down, so that a test has time to attach.
"""
import ctypes
import os
import sys
import time

import numpy as np

LIBRARY = os.environ.get("TDBG_LIBRARY", "build/libtdbg.so")


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_char_p), ("ndim", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


class Run:
    """The calls of tdbg.h that a model needs."""

    def __init__(self, folder):
        self.lib = ctypes.CDLL(LIBRARY)
        self.lib.tdbg_step.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        for name in ("tdbg_scope_begin", "tdbg_tensor"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p][: 2 + (name == "tdbg_tensor")]
        self.lib.tdbg_scope_end.argtypes = [ctypes.c_void_p]
        self.run = ctypes.c_void_p()
        assert self.lib.tdbg_run_open(ctypes.byref(self.run), os.fsencode(folder), None) == 0

    def step(self, number):
        self.lib.tdbg_step(self.run, number)

    def begin(self, name):
        self.lib.tdbg_scope_begin(self.run, name.encode())

    def end(self):
        self.lib.tdbg_scope_end(self.run)

    def tensor(self, name, array):
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        self.lib.tdbg_tensor(self.run, name.encode(), ctypes.byref(
            Tensor(array.ctypes.data, str(array.dtype).encode(), array.ndim, shape, strides)))

    def close(self):
        assert self.lib.tdbg_run_close(ctypes.byref(self.run)) == 0


def main(folder, steps, bug=""):
    run = Run(folder)
    random = np.random.default_rng(7)
    weights = [random.standard_normal((8, 8)).astype(np.float32) / 3 for _ in range(3)]
    for step in range(int(steps)):
        run.step(step)
        x = random.standard_normal((4, 8)).astype(np.float32)
        run.tensor("embed.output", x)
        for i, weight in enumerate(weights):
            run.begin(f"layers.{i}")
            hidden = x @ weight
            run.tensor(f"layers.{i}.hidden", hidden)
            x = np.tanh(hidden) + x
            if bug == str(i):
                x = x * np.float32(1.01)
            if bug == "nan" and i == 1 and step == 2:
                x[0, 0] = np.nan
            run.tensor(f"layers.{i}.output", x)
            run.end()
        for factor in (1, 2):   # a module that is called twice
            run.tensor("shared.output", x * np.float32(factor))
        print(f"step {step} loss {float(np.square(x).mean()):.6f}", flush=True)
        time.sleep(float(os.environ.get("PAUSE", "0")))
    run.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
