"""Writes torch_VERSION.pt2 and, with what the network gives there, torch_VERSION.npz into a folder, with the torch that
runs it: `python make_pt2_versions.py FOLDER`. tests/data/pt2 has those of every version that pinnace says it reads."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    """What archives store in ways of their own: tied weights, views of a storage, buffers that are saved, that are not,
    and that forward changes, a constant without a name, integers and halves; dynamic sizes; a branch."""

    scale: torch.Tensor
    calls: torch.Tensor
    row: torch.Tensor
    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.linspace(0.5, 2, 4), persistent=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("row", torch.arange(4.0).expand(3, 4))
        self.register_buffer("table", torch.linspace(-1, 1, 8, dtype=torch.float16).view(2, 4).t())
        self.offset = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls.add_(1)
        y = torch.relu(self.norm(self.conv(x))).mean((2, 3)) * self.scale + self.offset + self.row.sum(0)
        y = torch.cond(y.mean() > 0, lambda v: v * 2, lambda v: v - 1, (y,))
        y = y + self.embed(ids).sum(1) + self.table.float()[:, 1]
        return F.log_softmax(self.head(y), -1), self.calls * 2


def main(folder: Path) -> None:
    """Writes both files."""
    torch.manual_seed(7)
    net = Net().eval()
    with torch.no_grad():
        net.norm.running_mean.uniform_(-1, 1)  # type: ignore[union-attr]
        net.norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
    x, ids = torch.randn(2, 3, 8, 8), torch.randint(0, 10, (2, 5))
    batch = torch.export.Dim("batch", max=64)
    version = torch.__version__.split("+")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(net, (x, ids), dynamic_shapes=({0: batch}, {0: batch}))
        torch.export.save(program, folder / f"torch_{version}.pt2")
    net.calls.zero_()
    with torch.no_grad():
        y, calls = net(x, ids)
    np.savez(folder / f"torch_{version}.npz", x=x.numpy(), ids=ids.numpy(), y=y.numpy(), calls=calls.numpy())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
