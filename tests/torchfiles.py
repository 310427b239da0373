"""Torch files written by hand: what torch 1.13 does not write, and what no torch would.

    zip_file({"w": v2(Storage("torch.FloatStorage", "0", 4), (2, 2), (2, 1))}, {"0": bytes(16)})
"""
import collections
import io
import pickle
import struct
import zipfile

MAGIC = 0x1950A86A20F9469CFC6C


class Global:
    """Pickles as a bare global, whether or not it exists."""

    def __init__(self, name):
        self.name = name


class Call:
    """Pickles as a call of a global."""

    def __init__(self, name, *args):
        self.name, self.args = name, args


class Storage:
    """Pickles as torch's persistent id of a storage."""

    def __init__(self, type, key, elements, *view):
        self.id = ("storage", Global(type), key, "cpu", elements, *view)


class Writer(pickle._Pickler):
    def persistent_id(self, value):
        return value.id if isinstance(value, Storage) else None

    def save(self, value, save_persistent_id=True):
        if isinstance(value, Global):
            module, _, name = value.name.rpartition(".")
            self.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n")
        elif isinstance(value, Call):
            self.save(Global(value.name))
            self.save(value.args)
            self.write(b"R")
        else:
            super().save(value, save_persistent_id)


def dumps(value, protocol=2):
    out = io.BytesIO()
    Writer(out, protocol).dump(value)
    return out.getvalue()


def zip_file(value, storages=(), **members):
    """What torch.save writes. A value of type bytes is the pickle itself."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", value if isinstance(value, bytes) else dumps(value))
        archive.writestr("archive/version", "3\n")
        for key, data in dict(storages).items():
            archive.writestr(f"archive/data/{key}", data)
        for name, data in members.items():
            archive.writestr(f"archive/{name}", data)
    return out.getvalue()


def legacy_file(value, storages=(), magic=MAGIC, version=1001, keys=None):
    """What torch.save wrote before 1.6. `storages`: key -> (number of elements, bytes)."""
    storages = dict(storages)
    info = {"protocol_version": version, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    parts = [pickle.dumps(part, 2) for part in (magic, version, info)]
    parts += [dumps(value), pickle.dumps(list(storages) if keys is None else keys, 2)]
    parts += [struct.pack("<q", count) + data for count, data in storages.values()]
    return b"".join(parts)


def v2(storage, shape, stride, *metadata, offset=0):
    return Call("torch._utils._rebuild_tensor_v2", storage, offset, shape, stride, False, collections.OrderedDict(), *metadata)


def v3(storage, shape, stride, dtype, *metadata):
    return Call("torch._utils._rebuild_tensor_v3", storage, 0, shape, stride, False, collections.OrderedDict(),
                Global(f"torch.{dtype}"), *metadata)


def floats(key="0", count=4, *view):
    return Storage("torch.FloatStorage", key, count, *view)
