"""Snapshots of PyTorch's CUDA allocator, written without a GPU: dicts of the shape that
torch.cuda.memory._snapshot() documents.

    device = Device()
    block = device.alloc(1 << 20, stack("forward", "train"))
    device.free(block)
    save(path, device)                       # {"segments", "device_traces"}
    save(path, device, form="segments")      # only the list of segments, as before history was recorded
"""
import pickle

SEGMENT = 20 << 20


def frame(name, line=10, filename="/srv/model.py"):
    return {"filename": filename, "line": line, "name": name}


def stack(*names):
    """Frames, the innermost first, below the usual ones of the library."""
    library = [frame("forward", 114, "/usr/lib/python3/torch/nn/modules/linear.py"),
               frame("_call_impl", 1501, "/usr/lib/python3/torch/nn/modules/module.py")]
    return library + [frame(name, 10 + i) for i, name in enumerate(names)]


class Device:
    """A bump allocator over segments: addresses are never used again."""

    def __init__(self, base=0x7F0000000000, index=0):
        self.index, self.next, self.end, self.time = index, base, base, 1_700_000_000_000_000
        self.segments, self.trace, self.live = [], [], {}

    def event(self, action, addr, size, frames=(), **more):
        self.time += 100
        self.trace.append({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.time, "frames": list(frames), **more})

    def alloc(self, size, frames=()):
        if self.next + size > self.end:
            total = max(SEGMENT, size)
            self.next = self.end
            self.end = self.next + total
            self.segments.append({"device": self.index, "address": self.next, "total_size": total, "stream": 0, "segment_type": "large", "blocks": []})
            self.event("segment_alloc", self.next, total, frames)
        address, self.next = self.next, self.next + size
        block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": list(frames)}
        self.segments[-1]["blocks"].append(block)
        self.live[address] = block
        self.event("alloc", address, size, frames)
        return address

    def free(self, address):
        block = self.live.pop(address)
        block["state"] = "inactive"
        self.event("free_requested", address, block["size"])
        self.event("free_completed", address, block["size"])

    def state(self):
        """The segments, each with the memory behind its last block as an inactive one."""
        for segment in self.segments:
            used = sum(block["size"] for block in segment["blocks"])
            segment["allocated_size"] = segment["active_size"] = sum(b["size"] for b in segment["blocks"] if b["state"] != "inactive")
            rest = segment["total_size"] - used
            if rest:
                segment["blocks"].append({"address": segment["address"] + used, "size": rest, "requested_size": rest, "state": "inactive", "frames": []})
        return self.segments


def old_blocks(segments):
    """Blocks as PyTorch 1.13 and 2.0 wrote them: no addresses, frames in a history."""
    for segment in segments:
        for block in segment["blocks"]:
            frames = block.pop("frames")
            block.pop("address")
            if block["state"] != "inactive":
                block["history"] = [{"addr": 0, "real_size": block["size"], "frames": frames}]
    return segments


def save(path, *devices, form="full", protocol=4):
    segments = [segment for device in devices for segment in device.state()]
    value = {
        "full": lambda: {"segments": segments, "device_traces": [device.trace for device in devices], "allocator_settings": {}},
        "segments": lambda: segments,
        "old": lambda: old_blocks(segments),
        "trace": lambda: {"device_traces": [device.trace for device in devices]},
    }[form]()
    path.write_bytes(pickle.dumps(value, protocol))
    return path
