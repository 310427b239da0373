#!/usr/bin/env python3
"""A small GPT-style model that learns to count, recorded while it trains.

    examples/gpt.py FOLDER [--bug] [--steps N]

Records into FOLDER. With --bug the attention of layer 2 scales its scores by 1/d instead of 1/sqrt(d): nothing crashes,
and the loss falls all the same. docs/python.md finds it.
"""
import argparse
import pathlib
import sys

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import tdbg  # noqa: E402


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.scores = nn.Identity()  # a module that does nothing makes a tensor visible

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(width, 2))
        scores = self.scores(q @ k.transpose(-2, -1) * self.scale)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return self.proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, layers=4, width=64, heads=4, vocabulary=50, length=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln(x))


def batch(step, rows=8, length=16, vocabulary=50):
    """Sequences that count up from a random number."""
    start = torch.randint(0, vocabulary, (rows, 1), generator=torch.Generator().manual_seed(step))
    return (start + torch.arange(length + 1)) % vocabulary


def train(model, run, steps):
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(steps):
        ids = batch(step)
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        run.scalar("loss", loss)
        run.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--bug", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = GPT()
    if options.bug:
        model.layers[2].attn.scale **= 2
    with tdbg.record(model, options.folder) as run:
        loss = train(model, run, options.steps)
    print(f"{options.steps} steps, loss {loss:.2f}, recorded in {options.folder}")


if __name__ == "__main__":
    main()
