"""The hooks of one recording, on every module of a model.

A call of a module is a scope. It begins in the forward-pre hook and ends in the forward hook, where the outputs are
recorded. Torch leaves a forward hook out when the forward raised, so scopes may stay open; each is kept with the frame
that called its module, and the next call closes those whose frame is gone.

Gradients of outputs come from hooks on the tensors and not from full backward hooks: those insert themselves into the
graph, break models that change an output in place, and see no dict. Gradients of parameters are read when they have
been added up, behind the node that adds them.

A name that comes again within a step gets a number: layers.0.output#2. Checkpointing runs a forward again during the
backward pass; its outputs have been recorded the first time, its scopes and gradients count.

Between two matrix products nothing of Python is in the caches any more, and every object that is touched costs a wait
for memory. So the way of a plain tensor through Enter and Leave is short: names are made once, and what a step must
reset is one counter a module.

Hooks are objects and not methods: a copy or a pickle of a recorded model has hooks that do nothing.
"""
import functools
import itertools
import sys

import torch

from ._library import encode, library
from .costs import cost_of, flops
from .outputs import leaves

scope_begin, scope_end, cost = library.tdbg_scope_begin, library.tdbg_scope_end, library.tdbg_cost
is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)  # older torch compiles nothing
backward_under_way = getattr(torch._C, "_current_graph_task_id", None)
COUNTED = (torch.int64, torch.int32)  # the types of token ids
Tensor = torch.Tensor


def nothing(*_):
    pass


def inert():
    """What a hook becomes in a copy of its model."""
    return nothing


class Hook:
    """A callable on a module, for a tap."""
    __slots__ = ("tap",)

    def __init__(self, tap):
        self.tap = tap

    def __reduce__(self):
        return inert, ()


class Tap:
    """One module of a recording: its names ready to hand over, and how often it was called in this step."""
    __slots__ = ("recording", "name", "scope", "names", "first", "cost", "calls")

    def __init__(self, recording, name, module):
        self.recording = recording
        self.name = name
        self.scope = encode(name or type(module).__name__)
        self.names = {}
        self.first = self.named("output", 1)
        self.cost = cost_of(module)
        self.calls = itertools.count(1)

    def named(self, leaf, call):
        """The names of a tensor of this module and of its gradient; None for what is not wanted."""
        try:
            return self.names[leaf, call]
        except KeyError:
            pass
        recording = self.recording
        text = f"{self.name}.{leaf}" if self.name else leaf
        again = f"#{call}" if call > 1 else ""
        name = encode(text + again) if recording.wants(text, self.name) else None
        text += ".grad"
        gradient = encode(text + again) if recording.grads and recording.wants(text, self.name) else None
        self.names[leaf, call] = name, gradient
        return name, gradient

    def begin(self, frame):
        """Opens the scope of a call, which is over when `frame` is gone."""
        recording = self.recording
        mine = recording.threads.mine
        if mine.open:
            close_abandoned(recording.run, mine.open, frame)
        if not mine.open:
            mine.replays = in_backward(frame)
        mine.open.append((self, id(frame), frame.f_code))
        scope_begin(recording.run, self.scope)

    def take(self, names, value, replayed):
        """Records an output, and its gradient once that is known."""
        name, gradient = names
        if name is not None and not replayed:
            self.recording.write(name, value)
        if gradient is not None and value.requires_grad:
            value.register_hook(functools.partial(self.recording.write, gradient))


class Enter(Hook):
    """Forward-pre hook: the scope begins."""
    __slots__ = ()

    def __call__(self, module, args):
        if not is_compiling():
            self.tap.begin(sys._getframe(1))


class EnterRoot(Hook):
    """That of the model itself, which sees what goes in."""
    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        if is_compiling():
            return
        tap = self.tap
        recording = tap.recording
        tap.begin(sys._getframe(1))
        tokens = next((v.numel() for _, v in leaves([args, kwargs], "") if v.dtype in COUNTED), 0)
        if tokens:
            cost(recording.run, 0.0, 0.0, tokens)
        if recording.threads.mine.replays:
            return
        recording.write_parameters()
        if recording.inputs:
            call = next(recording.repeats[EnterRoot])
            positional = args[0] if len(args) == 1 else args
            for leaf, value in itertools.chain(leaves(positional, "input"), leaves(kwargs, "input")):
                name, _ = tap.named(leaf, call)
                if name is not None:
                    recording.write(name, value)


class Leave(Hook):
    """Forward hook: the outputs are there, the scope ends."""
    __slots__ = ()

    def __call__(self, module, args, output):
        if is_compiling():
            return
        tap = self.tap
        recording = tap.recording
        mine = recording.threads.mine
        replayed = mine.replays
        call = next(recording.repeats[tap] if replayed else tap.calls)
        if type(output) is Tensor:
            tap.take(tap.first if call == 1 else tap.named("output", call), output, replayed)
        else:
            for leaf, value in leaves(output, "output"):
                tap.take(tap.named(leaf, call), value, replayed)
        if tap.cost:
            cost(recording.run, flops(tap.cost, module, args, output), 0.0, 0.0)
        leave(recording.run, mine.open, tap)


def leave(run, opened, tap):
    """Ends the scope of `tap`, and any within it that a caught exception left open."""
    if opened and opened[-1][0] is tap:
        opened.pop()
        scope_end(run)
    elif any(entry[0] is tap for entry in opened):  # else the recording began inside this call
        opened.pop()
        scope_end(run)
        leave(run, opened, tap)


def close_abandoned(run, opened, frame):
    """Ends scopes whose call is over though no forward hook said so."""
    while opened:
        _, identity, code = opened[-1]
        caller = frame.f_back
        while caller is not None:
            if id(caller) == identity and caller.f_code is code:
                return
            caller = caller.f_back
        opened.pop()
        scope_end(run)


def in_backward(frame):
    """Whether this call is a forward that checkpointing runs again."""
    if backward_under_way:
        return backward_under_way() != -1
    while frame is not None:
        code = frame.f_code
        if code.co_name in ("backward", "unpack") and code.co_filename.endswith("torch/utils/checkpoint.py"):
            return True
        frame = frame.f_back
    return False


class Gradients:
    """The gradient of one parameter, recorded whenever a backward pass has added to it."""

    def __init__(self, recording, name, parameter):
        self.recording, self.name, self.parameter = recording, name, parameter
        self.names = {}
        with torch.enable_grad():
            self.node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]  # lives as long as we hold it
        self.handle = self.node.register_hook(self)

    def __call__(self, *_):
        call = next(self.recording.repeats[self])
        if call not in self.names:
            self.names[call] = encode(self.name + (f"#{call}" if call > 1 else ""))
        if self.parameter.grad is not None:
            self.recording.write(self.names[call], self.parameter.grad)

    def remove(self):
        self.handle.remove()
