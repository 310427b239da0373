#!/usr/bin/env python3
"""A small PyTorch training that goes wrong in two ways, recorded for `tdbg check` and the dashboard.

    python3 examples/unstable.py runs/unstable && tdbg check runs/unstable

The first layer begins sixty times too large, so its tanh saturates; and a bad batch at step 40 makes the loss NaN.
docs/check.md walks through what tdbg says about it.
"""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import tdbg  # noqa: E402

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
with torch.no_grad():
    model[0].weight *= 60
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)

with tdbg.record(model, sys.argv[1], capture="*=sketch", params=True, replace=True) as run:
    for step in range(60):
        x = torch.randn(128, 32)
        loss = ((model(x) - x[:, :1] ** 2) ** 2).mean()
        if step == 40:
            loss = loss * float("nan")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        run.scalar("loss", loss.item())
        run.step()
