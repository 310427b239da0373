"""Tensors as the library wants them: struct tdbg_tensor and struct tdbg_output of include/tdbg.h, in memory.

The library reads addresses, so whatever it is pointed to must stay: words for the types are made once and for good, and a
form keeps its own memory.
"""
import ctypes
import struct

import torch

from ._library import MAX_DIMS, OUTPUT, TENSOR

NAMES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
         "float8_e5m2fnuz", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "complex64",
         "complex128")
WORDS = {getattr(torch, name): ctypes.create_string_buffer(name.encode()) for name in NAMES if hasattr(torch, name)}
DTYPES = {dtype: ctypes.addressof(word) for dtype, word in WORDS.items()}  # where the library finds the name
STRAIGHT = {dtype: word for dtype, word in DTYPES.items() if not dtype.is_complex}  # complex may be conjugated on paper
STRIDED = torch.strided

# Write a tensor, by rank; its shape, and where need be its strides, follow in the same memory.
DENSE = [struct.Struct(f"{TENSOR}{rank}q").pack_into for rank in range(MAX_DIMS + 1)]
LOOSE = [struct.Struct(f"{TENSOR}{2 * rank}q").pack_into for rank in range(MAX_DIMS + 1)]
TENSOR_BYTES = struct.calcsize(TENSOR)
OUTPUT_BYTES = struct.calcsize(OUTPUT)

LARGE = 1 << 20  # elements: the library remembers what it measured (src/record/last.h)


class Form:
    """What is the same from call to call of a module that returns a plain tensor: all but where the values lie. Fits
    dense tensors of this type and shape in the memory of this machine."""
    __slots__ = ("dtype", "shape", "large", "memory", "address")

    def __init__(self, name, value, flops):
        self.dtype, self.shape, self.large = value.dtype, value.shape, value.numel() >= LARGE
        rank = len(self.shape)
        text = b"" if name is None else name + b"\0"
        behind = OUTPUT_BYTES + 8 * rank  # the shape
        self.memory = ctypes.create_string_buffer(behind + len(text))
        self.address = ctypes.addressof(self.memory)
        struct.pack_into(f"{OUTPUT}{rank}q{len(text)}s", self.memory, 0, self.address + behind if text else 0,
                         0, STRAIGHT[self.dtype], rank, self.address + OUTPUT_BYTES, 0, flops, *self.shape, text)


def form_of(name, value, flops):
    """None for a tensor that has to be looked at anew each time."""
    return Form(name, value, flops) if value.dtype in STRAIGHT and value.dim() <= MAX_DIMS else None
