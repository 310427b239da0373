"""Which tensor of A is which of B, and where a mistake first shows: by values, not by names.

The clean port in float32 is equal to transformers (generate.py holds it to that). So a tensor of A is the counterpart of
every stage of the port that has its values to 1e-4, whatever either is called, and all names of one tensor are found.
Where the port has a mistake, the counterparts are those of the clean port.
"""
import numpy as np

from port import fused

CLOSE = 1e-4
NOTICED = 1e-6  # relative change by a mistake that is one at all
FUSED = {"q": "qkv", "k": "qkv", "v": "qkv", "gate": "gate_up", "up": "gate_up"}
MAPS = {"scores_raw", "scores", "probs"}
MLP_BRANCH = {"norm2_hat", "norm2", "router", "router_weights", "gate", "up", "act", "product", "down"}
JOINTS = {"stream_in", "stream_out", "norm1", "norm1_hat"}  # of both branches of a layer
# Depth of a stage within its layer; those of equal depth do not depend on one another.
DEPTH = {name: i for i, stages in enumerate(
    ["tokens", "embed", "embed_scaled position types", "embed_sum", "stream0", "stream_in", "norm1_hat", "norm1", "q k v",
     "q_normed k_normed", "q_rope k_rope", "scores_raw", "scores", "probs", "context", "o", "attn_post_hat", "attn_post",
     "stream_mid", "sum1_hat", "sum1", "norm2_hat", "norm2", "router", "router_weights", "gate up", "act", "product", "down",
     "mlp_post_hat", "mlp_post", "stream_out", "sum2_hat", "sum2", "final_norm_hat", "final_norm", "head", "logits"])
    for name in stages.split()}


def with_fused(stages, port):
    """The stages, and the fused tensors as transformers lays them out."""
    out = dict(stages)
    for layer, spec in enumerate(port.specs):
        if port.qkv:
            out["qkv", layer] = fused([stages[s, layer] for s in "qkv"], port.qkv, spec)
        if port.gate_up:
            out["gate_up", layer] = np.concatenate([stages["gate", layer], stages["up", layer]], -1)
    return out


def forms(stage, value):
    """A stage's values in the orders in which a dump may hold them."""
    yield value.ravel()
    if value.ndim == 4:
        yield value.transpose(0, 2, 1, 3).ravel()
    if stage == "embed":
        yield value.swapaxes(1, 2).ravel()  # as a convolution gives patches


def counterparts(dump, stages, port):
    """{(stage, layer): [names of A]}."""
    by_size, found = {}, {}
    for key, value in with_fused(stages, port).items():
        by_size.setdefault(value.size, []).extend((key, form) for form in forms(key[0], value))
    for name, tensor in dump.items():
        flat = tensor.float().numpy().ravel()
        for key, form in by_size.get(flat.size, []):
            if np.abs(flat - form).max() <= CLOSE * max(1.0, np.abs(form).max()) and name not in found.get(key, []):
                found.setdefault(key, []).append(name)
    return found


def partners(stages, found):
    """(all names of A, [[names] of each part] or None, [which, of how many] or None) for what B's tensor holds."""
    if not stages:
        return [], None, None
    stage, layer = stages[0]
    whole = found.get((FUSED.get(stage), layer), [])
    if len(stages) > 1:
        parts = [found.get(s, []) for s in stages]
        if whole or not all(parts):
            return whole, None, None
        return sum(parts, []), parts, None
    names = found.get((stage, layer), [])
    order = [s for s, f in FUSED.items() if f == FUSED.get(stage)]
    return names + whole, None, [order.index(stage), len(order)] if whole and not names else None


def earlier(x, y, port):
    """Whether y is computed from what comes with x (both (stage, layer))."""
    def layer(stage, number):
        return number if number is not None else -1 if DEPTH[stage] <= DEPTH["stream0"] else len(port.specs)
    one, other = layer(*x), layer(*y)
    if one != other:
        return one < other
    if port.specs[0].parallel and not {x[0], y[0]} & JOINTS and (x[0] in MLP_BRANCH) != (y[0] in MLP_BRANCH):
        return False
    return DEPTH[x[0]] < DEPTH[y[0]]


def relative(a, b):
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)) if a.shape == b.shape else 1.0


def first_names(pairs, clean, wrong, port, clear):
    """Names of B at which the mistake first shows among the tensors with a counterpart, or None where it shows nowhere.

    `clean` and `wrong` are {name: (array, stages)} in float32. What changes by less than `clear` may be passed over: a
    faint beginning is accepted, and so is the first that is clear. transformers gives maps of attention together with
    what attention gives, hence after what is computed from them: both are accepted.
    """
    shows = {n: relative(wrong[n][0], clean[n][0]) for n in pairs if n in wrong and n in clean}
    shows = {n: e for n, e in shows.items() if e > NOTICED}
    keys = {n: wrong[n][1][0] for n in shows}
    strong = {n for n, e in shows.items() if e > clear}

    def minimal(names):
        return {n for n in names if not any(earlier(keys[m], keys[n], port) for m in names)}
    firm = minimal(strong) | minimal({n for n in strong if keys[n][0] not in MAPS})
    faint = {n for n in shows if n not in strong and any(earlier(keys[n], keys[m], port) for m in firm)}
    return sorted(firm | faint) if strong else None


def routes(stages, port):
    """The experts that each token goes to, by layer; without experts nothing."""
    best = {key: np.argsort(-value, -1, kind="stable")[..., :port.specs[0].top_k]
            for key, value in stages.items() if key[0] == "router"}
    return {key: np.sort(value.reshape(-1, value.shape[-1]), -1) for key, value in best.items()}


def same_routes(one, other):
    return all(np.array_equal(one[key], other[key]) for key in one if key in other)
