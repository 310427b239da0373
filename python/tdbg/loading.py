"""tdbg.load: the tensors of anything tdbg reads, as numpy arrays.

    weights = tdbg.load("model.pth")
    weights["layers.0.weight"].mean()

Nothing in a pickle is run. An array is made when it is asked for. Where the file holds the elements as numpy wants
them, the array is the mapped file: read-only, and no byte is copied. Everything else (transposed, compressed,
quantised, sparse) is read into memory.

numpy has no bfloat16 and no float8. With the package ml_dtypes installed, arrays have its types. Without it they are
float32, which holds every such value exactly. `raw(name)` gives the bits as uint16 or uint8 in either case.
"""
import collections.abc
import ctypes
import functools
import weakref

import numpy

from ._library import ErrorInfo, check, decode, encode, library

NARROW = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "float8_e4m3fnuz": "uint8",
          "float8_e5m2fnuz": "uint8"}
CHUNK = 1 << 20  # elements widened at a time


def load(path):
    """A mapping of name to numpy array, of a file, folder, archive or recorded run."""
    return Tensors(path)


def close(handle):
    library.tdbg_input_close(ctypes.byref(ctypes.c_void_p(handle)))


@functools.lru_cache(maxsize=None)
def narrow_type(name):
    """The type that ml_dtypes has for what numpy lacks, or None."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    return numpy.dtype(getattr(ml_dtypes, name))


class Borrowed:
    """Memory of an input, for numpy; keeps the input open as long as an array looks at it."""

    def __init__(self, tensors, address, shape, dtype):
        self.tensors = tensors
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": shape,
                                    "typestr": numpy.dtype(dtype).str}


class Tensors(collections.abc.Mapping):
    """The tensors of one input, in execution order. See the module."""

    def __init__(self, path):
        handle, error = ctypes.c_void_p(), ErrorInfo()
        status = library.tdbg_input_open(ctypes.byref(handle), encode(path), ctypes.byref(error))
        check(status, error, decode(encode(path)))
        self.path = path
        self._handle = handle.value
        weakref.finalize(self, close, self._handle)
        self._infos = [library.tdbg_input_info(self._handle, i)
                       for i in range(library.tdbg_input_count(self._handle))]
        self._places = {}
        for place, info in enumerate(self._infos):
            self._places.setdefault(decode(info.name), place)

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)

    def __contains__(self, name):
        return name in self._places

    def __getitem__(self, name):
        place = self._place(name)
        info = self._infos[place]
        value = decode(info.value)
        if value not in NARROW:
            return self._elements(place, value)
        narrow = narrow_type(value)
        return self._widened(place) if narrow is None else self._elements(place, NARROW[value]).view(narrow)

    def __repr__(self):
        return f"<tdbg.load({str(self.path)!r}): {len(self)} tensors>"

    def raw(self, name):
        """The elements bit for bit; those of a type that numpy lacks as unsigned integers."""
        place = self._place(name)
        value = decode(self._infos[place].value)
        return self._elements(place, NARROW.get(value, value))

    def dtype(self, name):
        """The type in the file, by tdbg's name: "bfloat16", "q4_0"."""
        return decode(self._infos[self._place(name)].dtype)

    def shape(self, name):
        return self._shape(self._place(name))

    @property
    def skipped(self):
        """What could not be read: {name: reason}."""
        name, reason, found = ctypes.c_char_p(), ctypes.c_char_p(), {}
        for i in range(library.tdbg_input_skipped(self._handle)):
            library.tdbg_input_skip(self._handle, i, ctypes.byref(name), ctypes.byref(reason))
            found.setdefault(decode(name.value), []).append(decode(reason.value))
        return {name: "; ".join(reasons) for name, reasons in found.items()}

    def _place(self, name):
        try:
            return self._places[name]
        except KeyError:
            pass
        found, error = ctypes.c_size_t(), ErrorInfo()
        if library.tdbg_input_find(self._handle, encode(name), ctypes.byref(found), ctypes.byref(error)):
            raise KeyError(f"{self.path}: {decode(error.message)}")
        return found.value

    def _shape(self, place):
        info = self._infos[place]
        return tuple(info.shape[:info.ndim])

    def _elements(self, place, dtype):
        shape = self._shape(place)
        address = library.tdbg_input_borrow(self._handle, place)
        if address and 0 not in shape:
            return numpy.asarray(Borrowed(self, address, shape, dtype))
        array = numpy.empty(shape, dtype)
        self._read(library.tdbg_input_elements, place, 0, array)
        return array

    def _widened(self, place):
        wide = numpy.empty(self._shape(place), numpy.float32)
        flat = wide.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            part = numpy.empty(min(CHUNK, flat.size - start), numpy.float64)
            self._read(library.tdbg_input_read, place, start, part)
            flat[start:start + part.size] = part
        return wide

    def _read(self, function, place, start, array):
        error = ErrorInfo()
        status = function(self._handle, place, start, array.size, array.ctypes.data, ctypes.byref(error))
        check(status, error, f"{decode(encode(self.path))}: {decode(self._infos[place].name)}")
