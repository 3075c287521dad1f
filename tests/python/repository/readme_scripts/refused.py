"""Modules that cannot be converted: catch ConversionError and show the line of one's own code for each node."""

import pinnace as pn
import torch
from torch import nn


class Bessel(nn.Module):
    def forward(self, x):
        y = torch.special.bessel_j0(x.T @ x)
        return {"bessel": torch.special.bessel_y1(y.abs() + 1)}


class ToNumpy(nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy() * 2)


x = torch.randn(6, 3)
for module in (Bessel(), ToNumpy()):
    try:
        pn.load(module.eval(), x).build()
        raise AssertionError("it was converted")
    except pn.ConversionError as error:
        assert isinstance(error, pn.Error)
        print("message:", error)
        for node in error.nodes:
            print("  node:", node)
        assert len(error.nodes) == (2 if isinstance(module, Bessel) else 1)
        assert all("refused.py:" in node.source for node in error.nodes)
try:
    pn.load(42)
    raise AssertionError("loaded a number")
except TypeError as error:
    print("TypeError:", error)
print("ok")
