"""Convolutions whose large inner images are made a few rows at a time, against the same ones with whole images."""

from __future__ import annotations

import random

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from slices import rotating_slice
from torch import Tensor, nn

CASES = 60


class Block(nn.Module):
    """Expansion, depthwise convolution, projection; all sizes drawn from the seed, inner images above 1 MB."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        torch.manual_seed(seed)
        channels = draw.choice([3, 5, 16, 24])
        wide = draw.choice([40, 45, 64])
        kernel = draw.choice([1, 3, 5])
        first = draw.choice([1, 3]) if channels < 8 else 1  # not by Winograd
        stride, dilation = draw.choice([(1, 1), (2, 1), (1, 2), (3, 1)])
        pads = draw.choice([0, kernel // 2, (kernel // 2) * dilation])
        size = draw.choice([(97, 110), (131, 64), (61, 203), (128, 96)])
        self.example = torch.randn(draw.choice([1, 1, 2, 3]), channels, *size)
        self.expand = nn.Conv2d(channels, wide, first, padding=first // 2)
        self.depthwise = nn.Conv2d(wide, wide, kernel, stride, pads, dilation, groups=wide)
        self.project = nn.Conv2d(wide, draw.choice([8, 19, 33]), 1)
        self.activation = draw.choice([nn.ReLU6(), nn.Hardswish(), nn.Identity()])
        pools = [nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.MaxPool2d(3, 1, 1)]
        self.pool = draw.choice([nn.Identity(), nn.Identity(), *pools])
        self.skip = nn.Conv2d(channels, wide, 1) if draw.choice([True, False]) else None

    def forward(self, x: Tensor) -> Tensor:
        wide = self.expand(x)
        if self.skip:  # a sum that one of them takes along
            wide = wide + self.skip(x)
        wide = self.pool(self.activation(wide))
        y: Tensor = self.project(self.activation(self.depthwise(wide)))
        return y


def in_strips(session: pn.Session, x: dict[str, np.ndarray]) -> bool:
    kernels = [e.kernel for e in session.profile(x).events]
    return any("conv_nhwc_f32" in k and ("depthwise" in k or "max_pool" in k) for k in kernels)


@pytest.mark.parametrize("seed", rotating_slice(range(CASES), 0.15))
def test_strips_change_no_bit(seed: int) -> None:
    block = Block(seed).eval()
    program = pn.load(block, {"x": block.example}).build(verify=False)
    x = {"x": block.example.numpy()}
    # Values that are kept are whole.
    inner = [name for node in program.nodes if node.op == "conv" for name in node.outputs]
    whole = pn.Session(program, keep=inner)
    assert not in_strips(whole, x)
    want = np.asarray(next(iter(whole.run(x).values())))
    with torch.no_grad():
        assert_agree(want, block(block.example).numpy())
    for threads in (1, 2, 3, 7):
        session = pn.Session(program, threads=threads)
        assert in_strips(session, x)
        for _ in range(2):
            got = np.asarray(next(iter(session.run(x).values())))
            np.testing.assert_array_equal(got, want)
