"""tdbg.record of a model that raises, or is interrupted: scopes end where they should, and what failed does not count."""
import pytest
import tdbg
import torch
from modules import Echo
from runs import scopes, values
from torch import nn

TWO = not torch.__version__.startswith("1.")


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


class Trips(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), Echo(self.trip))

    def trip(self, x):
        if x.shape[0] == 1:
            raise ValueError("one is too few")
        return x

    def forward(self, x):
        return self.inner(x)


def test_an_exception_in_forward_leaves_no_scope_open(run):
    model = Trips()
    with tdbg.record(model, run):
        for batch in (1, 2):
            try:
                model(torch.ones(batch, 2))
            except ValueError:
                pass
        with pytest.raises(ValueError):
            model(torch.ones(1, 2))
        model.inner[0](torch.ones(1, 2))  # not within what the exception left
    assert scopes(run) == {("Trips",), ("Trips", "inner"), ("Trips", "inner", "inner.0"),
                           ("Trips", "inner", "inner.1"), ("inner.0",)}


def interrupt(x):
    raise KeyboardInterrupt


def test_an_interruption_leaves_no_scope_open(run):
    model = Trips()
    model.inner[1].function = interrupt
    with tdbg.record(model, run):
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                model(torch.ones(1, 2))
        model.inner[1].function = torch.neg
        model(torch.ones(1, 2))
    assert scopes(run) == {("Trips",), ("Trips", "inner"), ("Trips", "inner", "inner.0"), ("Trips", "inner", "inner.1")}


@pytest.mark.skipif(not TWO, reason="torch 1 calls no hook after an exception")
def test_what_is_called_after_a_caught_exception_is_not_within_it(run):
    class Fallback(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(2)
            self.fast = Echo(lambda x: self.norm(x).undefined)

        def forward(self, x):
            try:
                return self.fast(x)
            except AttributeError:
                return self.norm(x)

    model, x = Fallback(), torch.randn(3, 2)
    with tdbg.record(model, run):
        model(x)
    assert scopes(run) == {("Fallback",), ("Fallback", "fast"), ("Fallback", "fast", "norm"), ("Fallback", "norm")}
    assert list(values(run)) == ["norm.output", "norm.output#2", "output"]


def test_a_call_that_failed_does_not_count(run):
    model = Trips()
    with tdbg.record(model, run):
        with pytest.raises(ValueError):
            model(torch.ones(1, 2))
        model(torch.ones(2, 2))
    assert {"inner.output", "inner.1.output", "output"} < set(values(run))
