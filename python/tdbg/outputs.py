"""What a module returns, tensor by tensor, and what each is called.

    tensor                          output
    tuple, list                     output[0], output[1], …
    dict, dataclass, named tuple    output.logits, output.hidden_states[3], …

The outputs of Hugging Face models are dicts of this kind. Anything else is passed over.
"""
import collections.abc
import dataclasses

import torch

DEEPEST = 8  # nests; a structure that contains itself ends there


def leaves(value, name, depth=0):
    """Pairs of name and tensor, in order."""
    if isinstance(value, torch.Tensor):
        yield name, value
        return
    if depth == DEEPEST:
        return
    for part, item in parts(value):
        yield from leaves(item, name + part, depth + 1)


def parts(value):
    """Names and items. What a container that makes its items when asked cannot give is passed over: a model must not
    fail because it is recorded."""
    if isinstance(value, collections.abc.Mapping):
        return [(f".{key}", attempt(value.__getitem__, key)) for key in attempt(list, value) or ()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{field}", getattr(value, field)) for field in value._fields]
    if isinstance(value, (tuple, list)):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", attempt(getattr, value, field.name)) for field in dataclasses.fields(value)]
    return []


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except Exception:
        return None
