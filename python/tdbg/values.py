"""Arrays and tensors in memory as something libtdbg opens: one .safetensors file, written raw.

What can be told apart: numpy arrays (ml_dtypes' too), torch tensors of any kind and device, Python numbers, and dicts,
lists and tuples of all these; nested names join with dots, as those of a checkpoint do. The bytes are written as they
lie in memory. No value passes through Python.
"""
import collections.abc
import ctypes
import json
import os
import struct
import sys

# By the names of numpy, ml_dtypes and torch, which agree.
TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
         "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
         "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32",
         "uint16": "U16", "uint8": "U8", "bool": "BOOL", "complex64": "C64", "complex128": "F64"}


def is_path(value):
    return isinstance(value, (str, bytes, os.PathLike))


def flatten(value, name=None):
    """Pairs of name and leaf."""
    if isinstance(value, (collections.abc.Mapping, list, tuple)):
        items = value.items() if isinstance(value, collections.abc.Mapping) else enumerate(value)
        for key, item in items:
            yield from flatten(item, str(key) if name is None else f"{name}.{key}")
    else:
        yield "tensor" if name is None else name, value


def of_torch(tensor):
    """(dtype, shape, buffer) of a torch tensor; dense, on the CPU, contiguous."""
    import torch
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    size = tensor.numel() * tensor.element_size()
    buffer = (ctypes.c_char * size).from_address(tensor.data_ptr()) if size else b""
    if size:
        buffer.owner = tensor  # the memory lives as long as the buffer
    return str(tensor.dtype).rpartition(".")[2], list(tensor.shape), buffer


def of_numpy(value, name):
    """(dtype, shape, buffer) of whatever numpy makes an array of."""
    import numpy
    array = numpy.asarray(value)
    if array.dtype.name not in TYPES:
        kind = type(value).__name__ if array.dtype.hasobject else array.dtype
        raise TypeError(f"{name}: {kind} is no type tdbg compares")
    array = numpy.asarray(array, array.dtype.newbyteorder("="), order="C")
    return array.dtype.name, list(array.shape), array.reshape(-1).view(numpy.uint8)


def describe(name, value):
    torch = sys.modules.get("torch")
    dtype, shape, buffer = of_torch(value) if torch and isinstance(value, torch.Tensor) else of_numpy(value, name)
    if dtype not in TYPES:
        raise TypeError(f"{name}: {dtype} is no type tdbg compares")
    return dtype, shape, buffer


def write(path, value):
    """Writes every tensor of `value` to `path`."""
    header, notes, buffers, at = {}, {}, [], 0
    for name, leaf in flatten(value):
        if name in header:
            raise ValueError(f"two tensors are named {name}")
        dtype, shape, buffer = describe(name, leaf)
        if dtype == "complex128":  # the format has no word for it: pairs of float64, and a note of what they are
            shape = shape + [2]
            notes[f"complex128:{name}"] = "float64, real and imaginary part in the last axis"
        header[name] = {"dtype": TYPES[dtype], "shape": shape, "data_offsets": [at, at + len(buffer)]}
        buffers.append(buffer)
        at += len(buffer)
    text = json.dumps({**header, "__metadata__": notes} if notes else header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for buffer in buffers:
            file.write(buffer)
