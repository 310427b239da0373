"""What a recorded run holds, read without tdbg: the index with sqlite3, the values by the layout of .safetensors."""
import ctypes
import json
import sqlite3
import struct

import torch

TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.int32: "I32", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.complex64: "C64"}


def values(run, step=0):
    """{name: (dtype, shape, bytes)} of one step."""
    data = (run / f"step-{step:08}.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length:]
    return {name: (t["dtype"], t["shape"], body[slice(*t["data_offsets"])]) for name, t in header.items()}


def bits(tensor):
    """A tensor as values() gives it."""
    tensor = tensor.detach().contiguous()
    size = tensor.numel() * tensor.element_size()
    return TYPES[tensor.dtype], list(tensor.shape), ctypes.string_at(tensor.data_ptr(), size) if size else b""


def query(run, sql, *arguments):
    with sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True) as db:
        return db.execute(sql, arguments).fetchall()


def scopes(run):
    """The paths of all scopes, by name."""
    rows = {row[0]: row for row in query(run, "SELECT id, parent, name FROM scope")}

    def path(number):
        return path(rows[number][1]) + (rows[number][2],) if number else ()

    return {path(number) for number in rows}


def flops(run):
    """Of every call of a scope, in the order in which they ended."""
    return [span[4] for data, in query(run, "SELECT data FROM span_block ORDER BY id")
            for span in struct.iter_unpack("<qqIIddd", data)]
