"""Side A: dumps of a torch model by forward hooks, in the ways people write them.

    o        outputs of all modules under their path; of a tuple `path.0`, `path.1`
    output   the same, `path.output`, `path.output.0`
    io       inputs, too: `path.input`, `path.input.0` (of several)
    leaf     outputs of modules without children

The order is that of the calls: a container comes after what it holds.
"""
import torch

WAYS = ("o", "output", "io", "leaf")


def tensors(value):
    """(suffix, tensor) of what a module takes or gives."""
    if torch.is_tensor(value):
        return [("", value)]
    if isinstance(value, (tuple, list)):
        return [(f".{i}", v) for i, v in enumerate(value) if torch.is_tensor(v)]
    if hasattr(value, "items"):
        return [(f".{k}", v) for k, v in value.items() if torch.is_tensor(v)]
    return []


def dump(model, tokens, way):
    """{name: tensor} of one pass."""
    kept, handles = {}, []

    def keep(name, value):
        for suffix, tensor in value:
            kept[(name + suffix).lstrip(".")] = tensor.detach().clone()

    def hook(path, leaf):
        def after(module, args, result):
            if way == "io":
                inputs = [v for v in args if torch.is_tensor(v)]
                keep(f"{path}.input", tensors(inputs[0] if len(inputs) == 1 else inputs))
            if path or way != "leaf":
                keep(path + (".output" if way in ("output", "io") and path else ""), tensors(result))
        return after

    for path, module in model.named_modules():
        leaf = not any(True for _ in module.children())
        if way != "leaf" or leaf:
            handles.append(module.register_forward_hook(hook(path, leaf)))
    with torch.no_grad():
        model(tokens, use_cache=False) if hasattr(model.config, "use_cache") else model(tokens)
    for handle in handles:
        handle.remove()
    return kept
