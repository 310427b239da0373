"""Floating point operations of one call of a module, from shapes alone: a multiplication and an addition count two.

Only what dominates is here: matrix products. A module that calls others costs what they cost.
"""
import math

from torch import nn


def linear(module, args, output):
    return 2.0 * output.numel() * module.in_features


def convolution(module, args, output):
    return 2.0 * output.numel() * module.in_channels / module.groups * math.prod(module.kernel_size)


def transposed(module, args, output):
    return 2.0 * args[0].numel() * module.out_channels / module.groups * math.prod(module.kernel_size)


def attention(module, args, output):
    """Projections of queries, keys, values and result; scores and their use. They call no modules."""
    query, key = args[0], args[1]
    width, rows, others = module.embed_dim, query.numel() // module.embed_dim, key.numel() // key.shape[-1]
    length = key.shape[-2] if module.batch_first or key.dim() == 2 else key.shape[0]
    projections = rows * width * 2 + others * (module.kdim + module.vdim)
    return 2.0 * width * projections + 4.0 * rows * length * width


BY_OUTPUT = (linear, convolution)  # what is returned tells all: these ask nothing of the arguments
KINDS = ((nn.Linear, linear),
         ((nn.Conv1d, nn.Conv2d, nn.Conv3d), convolution),
         ((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), transposed),
         (nn.MultiheadAttention, attention))


def cost_of(module):
    """The function for this module, or None."""
    return next((function for kinds, function in KINDS if isinstance(module, kinds)), None)


def flops(function, module, args, output):
    """What `function` says; 0 where a module is used in a way that its class does not tell."""
    try:
        return function(module, args, output)
    except (AttributeError, IndexError, TypeError, RuntimeError):
        return 0.0
