"""tdbg.record: a PyTorch model records itself, into a folder that tdbg reads like any other input.

    with tdbg.record(model, "runs/a", tensors="layers.*") as run:
        for batch in batches:
            loss = model(batch).loss
            loss.backward()
            run.scalar("loss", loss)
            run.step()

Everything is handed to the library as an address with shape and strides; the library copies or reduces it before the
call returns. Nothing is computed here, and a tensor is copied here only when it has no address on this machine: on
another device, sparse, quantised.
"""
import collections
import collections.abc
import contextlib
import ctypes
import fnmatch
import functools
import itertools
import operator
import os
import pathlib
import re
import sys
import threading
import weakref

import torch

from . import threads
from ._library import MAX_DIMS, STATUSES, Error, ErrorInfo, RunOptions, check, decode, encode, library
from .forms import DENSE, DTYPES, LOOSE, STRAIGHT, STRIDED, TENSOR_BYTES
from .hooks import Enter, EnterRoot, Gradients, Leave, Leaves, Tap, nothing

PLAIN = (torch.Tensor, torch.nn.Parameter)
tdbg_tensor = library.tdbg_tensor
alive = weakref.WeakSet()


def record(model=None, path=None, tensors="*", every=1, grads=True, stats_only=False, *, capture=None, inputs=False,
           params=False, replace=False, control=True):
    """Begins to record `model` into the folder `path`; a context manager, or a handle with step() and close().

    path        None: the folder that TDBG_RUN names; without it nothing is recorded, at next to no cost
    tensors     a pattern or a list of them ("layers.*", "*.attn.output", "*.grad"); one must fit the name of a
                tensor, or that of its module
    every       record the tensors of every Nth step
    grads       gradients of outputs and parameters too
    stats_only  keep statistics of each tensor and not its values
    capture     rules of the library instead of `every` and `stats_only`: "*.grad=stats; layers.0.*@0:10=full"
    inputs      what goes into the model too: input, input[1], input.mask
    params      the parameters too, as each step finds them
    replace     remove an earlier run in the folder; else it is an error
    control     whether a console may attach to the run
    """
    return Recording(model, path, tensors, every, grads, stats_only, capture, inputs, params, replace, control)


class Thread:
    """What a thread hands tensors over with, made once; the scopes it has open; the last large output, if it is still
    there, and how often torch had seen it changed."""
    __slots__ = ("tensor", "address", "shape", "open", "replays", "learns", "segment", "last", "version")

    def __init__(self):
        self.tensor = ctypes.create_string_buffer(TENSOR_BYTES + 2 * MAX_DIMS * 8)
        self.address = ctypes.addressof(self.tensor)
        self.shape = self.address + TENSOR_BYTES
        self.open = []
        self.replays = self.learns = False  # of the outermost call: a forward run again; gradients are wanted
        self.segment = None
        self.last, self.version = nothing, 0
        threads.settle()


class Threads(threading.local):
    """`mine` is that of the thread that asks."""

    def __init__(self):
        self.mine = Thread()


class Recording:
    """A run under way. See tdbg.record."""

    def __init__(self, model, path, tensors, every, grads, stats_only, capture, inputs, params, replace, control):
        if isinstance(model, torch.jit.ScriptModule):
            raise TypeError("a model in TorchScript takes no hooks; record the one it was made of")
        if model is not None and not isinstance(model, torch.nn.Module):
            raise TypeError(f"the model is a torch.nn.Module or None, not {type(model).__name__}")
        every = operator.index(every)
        if every < 1:
            raise ValueError(f"every={every}: 1 or more")
        if capture and (every != 1 or stats_only):
            raise ValueError("capture says what every and stats_only would; give one or the other")
        self.path = path
        self.grads = grads
        self.inputs = inputs
        self.threads = Threads()
        self.number = 0
        self._patterns = list(patterns(tensors))
        self._every = every
        self._parameters, self._stale = {}, True
        self.leaves = Leaves()
        self._taps, self._hooks = [], [self.leaves]
        self._count_anew()
        self.run = open_run(path, capture or f"*@every:{every}={'stats' if stats_only else 'full'}", replace, control)
        self._finalizer = weakref.finalize(self, close_run, self.run, path)
        alive.add(self)
        if model is not None and self.run:
            self._attach(model, params)

    # --- what the program tells ------------------------------------------------------------------------------------

    def step(self, number=None):
        """The next step begins, or the one of that number."""
        self.number = self.number + 1 if number is None else operator.index(number)
        self._count_anew()
        library.tdbg_step(self.run, self.number)
        self._stale = True

    def scalar(self, name, value, step=None):
        """A number to follow over the steps: a loss, a learning rate."""
        value = value.detach() if isinstance(value, torch.Tensor) else value
        library.tdbg_scalar(self.run, encode(name), self.number if step is None else step, float(value))

    def tensor(self, name, value):
        """A tensor that no module returns; or what torch makes one of: an array, a list, a number."""
        self.write(encode(name), torch.as_tensor(value))

    @contextlib.contextmanager
    def scope(self, name):
        """A stretch of the program with a name: data loading, the optimiser."""
        library.tdbg_scope_begin(self.run, encode(name))
        try:
            yield
        finally:
            library.tdbg_scope_end(self.run)

    def snapshot(self, name):
        """Marks a moment for `tdbg memory`."""
        library.tdbg_snapshot(self.run, encode(name))

    @property
    def saved(self):
        """The last step that is whole on disk, whatever happens now; -1 before the first."""
        return library.tdbg_run_saved(self.run)

    def close(self):
        """Removes the hooks and waits until everything is on disk."""
        for hook in self._hooks:
            hook.remove()
        self._taps, self._hooks = [], []
        self.run = None
        trouble = self._finalizer()  # None, too, when it was closed before
        if trouble:
            raise trouble

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            self.close()
        except Error:
            if kind is None:  # else the program's own trouble is the one to hear of
                raise

    # --- what the hooks tell ---------------------------------------------------------------------------------------

    def wants(self, name, module):
        return any(p in (name, module) or fnmatch.fnmatchcase(name, p) or fnmatch.fnmatchcase(module, p)
                   for p in self._patterns)

    def _count_anew(self):
        """A counter counts in one go, also when threads count together; so does a dict that makes it."""
        self.repeats = collections.defaultdict(functools.partial(itertools.count, 1))
        self.waiting = collections.defaultdict(dict)  # calls of a module whose gradients checkpointing may yet make
        for tap in self._taps:
            tap.calls = itertools.count(1)

    def write(self, name, value):
        """Hands a tensor over. Returns nothing: a hook that returned something would change the model."""
        mine = self.threads.mine
        try:
            dtype = STRAIGHT.get(value.dtype)
            if dtype is None or type(value) not in PLAIN or not value.is_cpu or value.is_neg() or value.layout is not STRIDED:
                value = self._addressable(value)
                if value is None:
                    return
                dtype = DTYPES[value.dtype]
            shape = value.shape
            rank = len(shape)
            if rank > MAX_DIMS:
                return
            if value.is_contiguous():
                DENSE[rank](mine.tensor, 0, value.data_ptr(), dtype, rank, mine.shape, 0, *shape)
            else:
                LOOSE[rank](mine.tensor, 0, value.data_ptr(), dtype, rank, mine.shape, mine.shape + 8 * rank, *shape,
                            *value.stride())
        except RuntimeError:  # nested, or the tensor of a transformation such as vmap: nothing that has an address
            return
        tdbg_tensor(self.run, name, mine.address)

    def write_parameters(self):
        """Those that this step begins with, before it uses them."""
        if self._stale:
            self._stale = False
            for name, parameter in self._parameters.items():
                self.write(name, parameter)

    def _addressable(self, value):
        """The same values, dense, on this machine; None for what has no values or is not asked for now."""
        value = value.detach()
        if hasattr(value, "to_local"):  # a shard of a distributed tensor
            value = value.to_local()
        if value.device.type == "meta" or (value.device.type != "cpu" and self.number % self._every):
            return None
        if value.is_quantized:
            value = value.dequantize()
        if value.layout is not torch.strided:
            value = value.to_dense()
        value = value.cpu().resolve_conj().resolve_neg()
        return value if value.dtype in DTYPES else None

    # --- hooks -----------------------------------------------------------------------------------------------------

    def _attach(self, model, params):
        for name, module in model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                continue
            tap = Tap(self, name, module)
            self._taps.append(tap)
            self._hooks.append(enter(module, tap, root=module is model))
            self._hooks.append(leave(module, tap))
        for name, parameter in model.named_parameters():
            if torch.nn.parameter.is_lazy(parameter) or parameter.is_meta:
                continue
            owner = name.rpartition(".")[0]
            if params and self.wants(name, owner):
                self._parameters[encode(name)] = parameter
            if self.grads and parameter.requires_grad and self.wants(f"{name}.grad", owner):
                self._hooks.append(Gradients(self, f"{name}.grad", parameter))


def patterns(tensors):
    """Those given, and where one has a number in brackets, which names have too, another that takes it literally."""
    several = isinstance(tensors, collections.abc.Iterable) and not isinstance(tensors, str)
    for pattern in tensors if several else [tensors]:
        if not isinstance(pattern, str):
            raise TypeError(f"tensors={tensors!r}: a pattern or a list of them")
        yield pattern
        literal = re.sub(r"\[(\d+)\]", r"[[]\1]", pattern)
        if literal != pattern:
            yield literal


def enter(module, tap, root):
    if not root:
        return module.register_forward_pre_hook(Enter(tap))
    try:
        return module.register_forward_pre_hook(EnterRoot(tap), with_kwargs=True)
    except TypeError:  # torch 1 shows a hook only what comes without a name
        return module.register_forward_pre_hook(EnterRoot(tap))


def leave(module, tap):
    try:
        return module.register_forward_hook(Leave(tap), always_call=True)
    except TypeError:  # torch 1 calls none when the forward raised
        return module.register_forward_hook(Leave(tap))


def open_run(path, capture, replace, control):
    """The library's handle, or None where nothing is to be recorded."""
    error, run = ErrorInfo(), ctypes.c_void_p()
    rank, world = ranks()
    options = RunOptions(capture=encode(capture), program=encode(program()), rank=rank, world=world, replace=replace,
                         no_control=not control, error=ctypes.pointer(error), **threads.lent())
    status = library.tdbg_run_open(ctypes.byref(run), encode(path), ctypes.byref(options))
    check(status, error)  # it names the folder
    return run.value


def close_run(run, path):
    """Waits for the disk; what went wrong while recording, if anything did."""
    error = ErrorInfo()
    status = library.tdbg_run_end(ctypes.byref(ctypes.c_void_p(run)), ctypes.byref(error))
    where = os.environ.get("TDBG_RUN") if path is None else path
    return Error(STATUSES[status], f"{where}: the recording ended early: {decode(error.message)}") if status else None


def program():
    """What runs, by its name; python itself is no answer."""
    return pathlib.Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c") else None


def ranks():
    """Of torch.distributed, once it has begun; else the library asks the launcher's environment."""
    distributed = getattr(torch, "distributed", None)
    if distributed and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 0


def forget():
    """In a forked child: the run and its threads belong to the parent."""
    for recording in list(alive):
        recording.run = None
        recording._finalizer.detach()


os.register_at_fork(after_in_child=forget)
