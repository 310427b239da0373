"""Finds libtdbg and declares what is called in it: include/tdbg.h, word for word.

The library is looked for in this order: the file that TDBG_LIBRARY names; beside this module, where pip puts it; in
the build folder of the source tree this module lies in; wherever the system keeps libraries.

Calls release the GIL. Recording could do without, for 50 ns less a call; but a call that waits, at a breakpoint or for
the disk, must not stop every other thread of the program.
"""
import ctypes
import os
import pathlib
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

STATUSES = ("OK", "NOMEM", "IO", "CORRUPT", "UNSUPPORTED", "LIMIT", "NOTFOUND", "MISMATCH", "MISUSE", "CANCELLED")


class Error(Exception):
    """What the library could not do; `status` is "IO", "CORRUPT", "NOTFOUND", … as in tdbg.h."""

    def __init__(self, status, message, offset=None):
        super().__init__(message)
        self.status = status
        self.offset = offset  # byte of the file where the trouble shows, or None


class ErrorInfo(ctypes.Structure):
    _fields_ = [("status", c_int), ("offset", c_uint64), ("message", c_char * 384)]


class Info(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_char_p), ("format", c_char_p), ("ndim", c_int),
                ("shape", POINTER(c_int64)), ("bytes", c_uint64), ("value", c_char_p), ("value_bytes", c_size_t)]


class DiffOptions(ctypes.Structure):
    _fields_ = [("match", c_char_p), ("threshold", c_double), ("pairs", c_char_p), ("policy", c_char_p),
                ("rtol", POINTER(c_double)), ("atol", POINTER(c_double)), ("reference", c_char_p),
                ("layout", c_char_p), ("top", c_int64), ("names", c_char_p), ("coverage", POINTER(c_double))]


class RunOptions(ctypes.Structure):
    _fields_ = [("capture", c_char_p), ("program", c_char_p), ("rank", c_int), ("world", c_int),
                ("staging_bytes", c_uint64), ("replace", c_bool), ("no_control", c_bool), ("error", POINTER(ErrorInfo)),
                ("parallel", c_void_p), ("parallel_user", c_void_p)]


class OpenMP(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("GOMP_parallel", "omp_get_max_threads", "omp_get_num_threads",
                                              "omp_get_thread_num", "omp_in_parallel")]


MAX_DIMS = 32
TENSOR = "PPiPP"  # struct tdbg_tensor in the words of the module struct: data, dtype, ndim, shape, strides
OUTPUT = f"P{TENSOR}d"  # struct tdbg_output: name, tensor, flops
ERROR = POINTER(ErrorInfo)
HANDLE = POINTER(c_void_p)

# Arguments and results. A tensor goes as a plain address: a thread makes one and uses it many times.
FUNCTIONS = {
    "tdbg_version": ([], c_char_p),
    "tdbg_input_open": ([HANDLE, c_char_p, ERROR], c_int),
    "tdbg_input_close": ([HANDLE], None),
    "tdbg_input_count": ([c_void_p], c_size_t),
    "tdbg_input_info": ([c_void_p, c_size_t], Info),
    "tdbg_input_find": ([c_void_p, c_char_p, POINTER(c_size_t), ERROR], c_int),
    "tdbg_input_skipped": ([c_void_p], c_size_t),
    "tdbg_input_skip": ([c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_char_p)], None),
    "tdbg_input_read": ([c_void_p, c_size_t, c_uint64, c_uint64, c_void_p, ERROR], c_int),
    "tdbg_input_elements": ([c_void_p, c_size_t, c_uint64, c_uint64, c_void_p, ERROR], c_int),
    "tdbg_input_borrow": ([c_void_p, c_size_t], c_void_p),
    "tdbg_diff_open": ([HANDLE, c_char_p, c_char_p, POINTER(DiffOptions), ERROR], c_int),
    "tdbg_diff_close": ([HANDLE], None),
    "tdbg_diff_json": ([c_void_p], c_char_p),
    "tdbg_diff_words": ([c_void_p], c_char_p),
    "tdbg_run_open": ([HANDLE, c_char_p, POINTER(RunOptions)], c_int),
    "tdbg_run_end": ([HANDLE, ERROR], c_int),
    "tdbg_run_saved": ([c_void_p], c_int64),
    "tdbg_step": ([c_void_p, c_int64], None),
    "tdbg_scope_begin": ([c_void_p, c_char_p], None),
    "tdbg_scope_end": ([c_void_p], None),
    "tdbg_cost": ([c_void_p, c_double, c_double, c_double], None),
    "tdbg_tensor": ([c_void_p, c_char_p, c_void_p], None),
    "tdbg_output": ([c_void_p, c_void_p, c_void_p, c_bool], None),
    "tdbg_scalar": ([c_void_p, c_char_p, c_int64, c_double], None),
    "tdbg_snapshot": ([c_void_p, c_char_p], None),
}


def candidates():
    """Where the library may be, likeliest first."""
    named = os.environ.get("TDBG_LIBRARY")
    if named:
        return [named]
    here = pathlib.Path(__file__).resolve().parent
    places = [here / "libtdbg.so", here.parent.parent / "build" / "libtdbg.so"]
    return [str(place) for place in places if place.exists()] + ["libtdbg.so.0", "libtdbg.so"]


def load():
    """The library with its functions declared."""
    tried = []
    for place in candidates():
        try:
            library = ctypes.CDLL(place)
        except OSError as error:
            tried.append(str(error))
            continue
        for name, (arguments, result) in FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result
        return library
    raise ImportError("tdbg: no libtdbg: " + "; ".join(tried) + " (TDBG_LIBRARY=build/libtdbg.so names it)")


library = load()


def encode(text):
    """A path or a name as the library takes it; None stays None."""
    return None if text is None else os.fsencode(text)


def decode(text):
    return os.fsdecode(text)


def check(status, error, where=None):
    """Raises what a call complained about; `where` is put in front, as `tdbg` does."""
    if status:
        message = error.message.decode("utf-8", "replace")
        offset = None if error.offset == 2**64 - 1 else error.offset
        raise Error(STATUSES[status], f"{where}: {message}" if where else message, offset)
