"""The hooks of one recording, on every module of a model.

A call of a module is a scope. It begins in the forward-pre hook and ends in the forward hook, where the outputs are
recorded. After an interruption, and in torch 1 after any exception, there is no forward hook, and scopes stay open. So a
module that is called in a scope where it never was before looks which calls are still on the stack, and closes the scopes
of all others.

Gradients of outputs come from hooks on the tensors and not from full backward hooks: those insert themselves into the
graph, break models that change an output in place, and see no dict. Gradients of parameters are read when they have
been added up, behind the node that adds them.

A name that comes again within a step gets a number: layers.0.output#2. Checkpointing runs a forward again during the
backward pass; its outputs have been recorded the first time, its scopes and gradients count.

Between two matrix products nothing of Python is in the caches any more, and every object that is touched costs a wait
for memory. So the way of a plain tensor through Enter and Leave is short and makes two calls of the library: names and
forms are made once, and what a step must reset is one counter a module. A tensor that a module passes on as it got it,
by the count that torch keeps of its changes, is told to be the last one again (tdbg_output).

Hooks are objects and not methods: a copy or a pickle of a recorded model has hooks that do nothing.
"""
import collections
import functools
import itertools
import sys
import weakref

import torch

from ._library import encode, library
from .costs import BY_OUTPUT, cost_of, flops
from .forms import STRIDED, form_of
from .outputs import leaves

scope_begin, scope_end, cost = library.tdbg_scope_begin, library.tdbg_scope_end, library.tdbg_cost
finish = library.tdbg_output
is_traced = getattr(getattr(torch, "compiler", None), "is_dynamo_compiling", bool)  # older torch compiles nothing
backward_under_way = getattr(torch._C, "_current_graph_task_id", None)
CALL = getattr(torch.nn.Module, "_call_impl", torch.nn.Module.__call__).__code__  # of every call that runs hooks
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
    """One module of a recording: its names and forms ready to hand over, how often it was called in this step, and in
    whose scopes it has been called."""
    __slots__ = ("recording", "name", "scope", "names", "forms", "cost", "calls", "parents")

    def __init__(self, recording, name, module):
        self.recording = recording
        self.name = name
        self.scope = encode(name or type(module).__name__)
        self.names = {}
        self.forms = {}  # by call
        self.cost = cost_of(module)
        self.calls = itertools.count(1)
        self.parents = set()

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

    def begin(self, mine, frame):
        """Opens the scope of a call that `frame` is a part of."""
        recording, opened = self.recording, mine.open
        if opened:
            close_abandoned(recording.run, opened, self, frame)
        if opened:
            self.parents.add(opened[-1])
        else:
            mine.replays = in_backward(frame)
            mine.learns = torch.is_grad_enabled() or is_checkpointed(frame, "forward")
        opened.append(self)
        scope_begin(recording.run, self.scope)

    def form(self, call, module, args, output):
        """What is told of this output and of those like it; None where each call has to be told by itself."""
        if (self.cost is None or self.cost in BY_OUTPUT) and not torch.jit.is_tracing():  # where sizes are no numbers
            self.forms[call] = form_of(self.named("output", call)[0], output,
                                       flops(self.cost, module, args, output) if self.cost else 0.0)
        return self.forms.get(call)

    def leave(self, mine, module, args, output, call=None):
        """Records any outputs of a call, and ends its scope. A call that failed has none, and does not count."""
        run = self.recording.run
        if output is None:
            pass
        elif mine.replays:
            self.take_again(mine, output)
        else:
            call = call or next(self.calls)
            for leaf, value in leaves(output, "output"):
                name, _ = self.named(leaf, call)
                if name is not None:
                    self.recording.write(name, value)
                self.follow(leaf, value, call, mine)
        if self.cost and output is not None:
            cost(run, flops(self.cost, module, args, output), 0.0, 0.0)
        close(run, mine.open, self)

    def follow(self, leaf, value, call, mine):
        """Sees to it that the gradient of an output is recorded once it is known."""
        _, gradient = self.named(leaf, call)
        recording = self.recording
        if gradient is None:
            return
        if not value.requires_grad:
            if mine.learns and not torch.is_grad_enabled():  # checkpointing may run this call again
                recording.waiting[self][call] = True
        elif value.is_leaf:
            recording.leaves.follow(self, gradient, value)
        else:
            value.register_hook(functools.partial(recording.write, gradient))

    def take_again(self, mine, output):
        """The outputs of a call that checkpointing runs again: they have been recorded, their gradients have not."""
        if mine.segment is None or mine.segment.waiting is not self.recording.waiting:
            mine.segment = Segment(self.recording.waiting)
        place = mine.segment.enter(self)
        for leaf, value in leaves(output, "output"):
            _, gradient = self.named(leaf, 1)
            if gradient is not None and value.requires_grad:
                if value.is_leaf:
                    self.recording.leaves.follow(self, gradient, value)
                else:
                    value.register_hook(functools.partial(mine.segment.write, mine, self, leaf, place))


class Segment:
    """A stretch of the model that checkpointing runs again, from its first call to its first gradient.

    The last segment of the forward comes first, but the calls within it come in their order. So which calls of a module
    they were is known once there are no more of them: they are the last that are still waiting for their gradients.
    """

    def __init__(self, waiting):
        self.waiting = waiting  # of the step
        self.places = collections.Counter()
        self.calls = None

    def enter(self, tap):
        """Another call of the module; its place among them."""
        self.places[tap] += 1
        return self.places[tap] - 1

    def write(self, mine, tap, leaf, place, gradient):
        if self.calls is None:
            mine.segment = None
            self.calls = {tap: self.claim(tap, count) for tap, count in self.places.items()}
        _, name = tap.named(leaf, self.calls[tap][place])
        tap.recording.write(name, gradient)

    def claim(self, tap, count):
        """The numbers of the calls; from 1 in a second backward pass, where none waits any more."""
        waiting = self.waiting[tap]
        calls = list(waiting)[-count:]
        for call in calls:
            del waiting[call]
        return calls if len(calls) == count else range(1, count + 1)


class Leaves:
    """Hooks on tensors that outlive the step, such as a parameter that a module returns: one for each module and tensor,
    however often it is returned, and removed with the recording."""

    def __init__(self):
        self.handles = {}

    def follow(self, tap, gradient, value):
        key = tap, id(value)
        if key not in self.handles:
            alive = weakref.ref(value, lambda _: self.handles.pop(key, None))
            self.handles[key] = alive, value.register_hook(functools.partial(tap.recording.write, gradient))

    def remove(self):
        for _, handle in self.handles.values():
            handle.remove()
        self.handles = {}


class Enter(Hook):
    """Forward-pre hook: the scope begins."""
    __slots__ = ()

    def __call__(self, module, args):
        if is_traced():
            return
        tap = self.tap
        recording = tap.recording
        mine = recording.threads.mine
        opened = mine.open
        if opened and opened[-1] in tap.parents:
            opened.append(tap)
            scope_begin(recording.run, tap.scope)
        else:
            tap.begin(mine, sys._getframe(1))


class EnterRoot(Hook):
    """That of the model itself, which sees what goes in."""
    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        if is_traced():
            return
        tap = self.tap
        recording = tap.recording
        mine = recording.threads.mine
        tap.begin(mine, sys._getframe(1))
        tokens = next((v.numel() for _, v in leaves([args, kwargs], "") if v.dtype in COUNTED), 0)
        if tokens:
            cost(recording.run, 0.0, 0.0, tokens)
        if mine.replays:
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
        if is_traced():
            return
        tap = self.tap
        recording = tap.recording
        mine = recording.threads.mine
        opened = mine.open
        if type(output) is not Tensor or mine.replays or not opened or opened[-1] is not tap:
            tap.leave(mine, module, args, output)
            return
        call = next(tap.calls)
        form = tap.forms.get(call)
        try:
            if form is None or output.shape != form.shape or output.dtype is not form.dtype:
                form = tap.form(call, module, args, output)
            plain = (form is not None and output.is_cpu and not output.is_neg() and output.layout is STRIDED
                     and output.is_contiguous())
            data = output.data_ptr() if plain else 0
        except RuntimeError:  # it has no address: see Recording.write
            plain = False
        if not plain:
            tap.leave(mine, module, args, output, call)
            return
        if mine.learns or output.requires_grad:
            tap.follow("output", output, call, mine)
        again = False
        if form.large and not output.is_inference():  # where torch counts no changes
            if mine.last() is output and mine.version == output._version:
                again = True
            else:
                mine.last, mine.version = weakref.ref(output), output._version
        opened.pop()
        finish(recording.run, form.address, data, again)


def close(run, opened, tap):
    """Ends the scope of `tap`, and any within it that a caught exception left open."""
    if tap in opened:  # else the recording began inside this call
        while opened.pop() is not tap:
            scope_end(run)
        scope_end(run)


def close_abandoned(run, opened, tap, frame):
    """Ends scopes whose call is over though no forward hook said so. `frame` is of a call of `tap`, the scope of which is
    about to begin."""
    calls = collections.Counter({tap: -1})
    while frame is not None:
        if frame.f_code is CALL:
            hooks = frame.f_locals["self"]._forward_pre_hooks.values()
            calls.update(hook.tap for hook in hooks if isinstance(hook, Hook))
        frame = frame.f_back
    while opened and opened.count(opened[-1]) > calls[opened[-1]]:
        opened.pop()
        scope_end(run)


def in_backward(frame):
    """Whether this call is a forward that checkpointing runs again."""
    if backward_under_way:
        return backward_under_way() != -1
    return is_checkpointed(frame, "backward", "unpack")


def is_checkpointed(frame, *within):
    """Whether checkpointing makes this call, from a function of its own that has one of these names."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in within and code.co_filename.endswith("torch/utils/checkpoint.py"):
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
