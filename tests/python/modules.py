"""Modules for tests."""
from torch import nn


class Echo(nn.Module):
    """Returns what a function makes of its input."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)
