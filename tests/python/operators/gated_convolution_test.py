"""Squeeze-and-excitation whose gate is multiplied into the weights of the projection that follows, against PyTorch."""

from __future__ import annotations

import random

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from slices import rotating_slice
from torch import Tensor, nn

CASES = 40


class Block(nn.Module):
    """Depthwise convolution, gate, projection, at times with a sum; all sizes drawn from the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        torch.manual_seed(seed)
        channels, wide, made = draw.choice([8, 16, 19]), draw.choice([16, 40, 45]), draw.choice([8, 16, 19])
        self.example = torch.randn(draw.choice([1, 1, 1, 2]), channels, draw.choice([9, 14, 28]), draw.choice([11, 14]))
        self.expand = nn.Conv2d(channels, wide, 1)
        self.depthwise = nn.Conv2d(wide, wide, 3, padding=1, groups=wide)
        self.squeeze, self.excite = nn.Conv2d(wide, 4, 1), nn.Conv2d(4, wide, 1)
        self.project = nn.Conv2d(wide, made, 1)
        self.adds = made == channels
        self.gate_first = draw.choice([True, False])
        self.reads_twice = draw.choice([True, False, False])

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.depthwise(torch.relu(self.expand(x))))
        gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(inner.mean((2, 3), keepdim=True)))))
        gated = gate * inner if self.gate_first else inner * gate
        y: Tensor = self.project(gated)
        if self.adds:
            y = y + x
        return y + gated.mean() if self.reads_twice else y


@pytest.mark.parametrize("seed", rotating_slice(range(CASES), 0.2))
def test_gates_are_multiplied_into_weights(seed: int) -> None:
    block = Block(seed).eval()
    program = pn.load(block, {"x": block.example}).build(verify=False)
    x = {"x": block.example.numpy()}
    with torch.no_grad():
        want = block(block.example).numpy()
    outputs = []
    for threads in (1, 2):
        session = pn.Session(program, target="cpu", threads=threads)
        [got] = session.run(x).values()
        assert_agree(got, want)
        outputs.append(got)
        kernels = [e.kernel for e in session.profile(x).events]
        _, _, height, width = block.example.shape
        pays = height * width >= 4 * block.project.out_channels
        single = len(block.example) == 1 and not block.reads_twice
        assert any(k.startswith("conv_squeeze_excitation_") for k in kernels) == (pays and single), kernels
    np.testing.assert_array_equal(outputs[0], outputs[1])
