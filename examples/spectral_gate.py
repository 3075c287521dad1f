"""A small denoiser for examples/native/denoise.cc: samples in, samples out, spectra within.

    PYTHONPATH=python .venv/bin/python examples/spectral_gate.py gate.pnc
    build/denoise gate.pnc < noisy.wav > clean.wav

Frames of 32 ms every 8 ms; each bin is as loud as it is above the noise that it usually has. All of it is convolutions,
so that load(stream=...) makes a program for chunks of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pinnace as pn
import torch
import torch.nn.functional as F
from torch import nn

RATE = 16000
SIZE = 512  # samples of a frame
HOP = 128


class SpectralGate(nn.Module):
    """[1, 1, T] -> [1, 1, T], T a multiple of HOP.

    floor   [257], the power of the noise in each bin
    slope   of the gain over dB: how sharp the border is between speech and noise
    """

    def __init__(self, floor: torch.Tensor, slope: float = 0.6) -> None:
        """Nothing is trained."""
        super().__init__()
        bins = SIZE // 2 + 1
        t = torch.arange(SIZE, dtype=torch.float64)
        turn = 2 * torch.pi * torch.arange(bins, dtype=torch.float64)[:, None] * t / SIZE
        window = torch.sin(torch.pi * (t + 0.5) / SIZE)  # its square, every fourth of a frame, sums to 2
        analysis = torch.cat([torch.cos(turn), -torch.sin(turn)]) * window
        # The inverse transform counts all bins twice but the first and the last.
        synthesis = analysis * torch.where(torch.arange(2 * bins) % bins % (bins - 1) == 0, 1, 2)[:, None] / (2 * SIZE)
        self.analysis: torch.Tensor
        self.synthesis: torch.Tensor
        self.floor: torch.Tensor
        self.register_buffer("analysis", analysis[:, None].float())
        self.register_buffer("synthesis", synthesis.T[:, :, None].float())
        self.register_buffer("floor", 10 * torch.log10(floor)[None, :, None])
        self.slope = slope
        # Over five bins and five frames, of which none lies ahead.
        self.smooth = nn.Conv2d(1, 1, 5, padding=(2, 0), bias=False)
        nn.init.constant_(self.smooth.weight, 1 / 25)

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        """Frames reach over both ends, so that each sample is in four of them."""
        around = SIZE - HOP
        spectrum = F.conv1d(F.pad(audio, (around, around)), self.analysis, stride=HOP)
        real, imaginary = spectrum.chunk(2, 1)
        power = 10 * torch.log10(real**2 + imaginary**2 + 1e-9) - self.floor
        level = self.smooth(F.pad(power, (4, 0))[:, None])[:, 0]
        gain = torch.sigmoid(self.slope * (level - 6))
        frames = F.conv1d(torch.cat([real * gain, imaginary * gain], 1), self.synthesis)
        # A block of HOP samples is the sum of four frames' parts.
        count = SIZE // HOP
        parts = frames.chunk(count, 1)
        blocks = sum((F.pad(part, (k, count - 1 - k)) for k, part in enumerate(parts)), torch.zeros(()))
        return blocks.transpose(1, 2).reshape(1, 1, -1)[:, :, around:-around]


def noise_floor(noise: np.ndarray) -> torch.Tensor:
    """Mean power of each bin: [257]."""
    spectra = torch.stft(
        torch.from_numpy(noise),
        SIZE,
        HOP,
        window=torch.sin(torch.pi * (torch.arange(SIZE) + 0.5) / SIZE),
        center=False,
        return_complex=True,
    )
    return (spectra.abs() ** 2).mean(1)


def gate_program(noise: np.ndarray) -> tuple[pn.Program, SpectralGate]:
    """The program, which says what rate it is for, and the module; raises what load() and build() raise."""
    net = SpectralGate(noise_floor(noise)).eval()
    example = torch.randn(1, 1, 60 * HOP, generator=torch.Generator().manual_seed(0)) * 0.1
    program = pn.load(net, (example,), stream={"audio": 2}).build()
    return program.with_metadata({"rate": str(RATE)}), net


def main() -> int:
    """For white noise 26 dB below the loudest sample."""
    if len(sys.argv) != 2:
        print("usage: spectral_gate.py gate.pnc", file=sys.stderr)
        return 2
    noise = np.random.default_rng(0).standard_normal(RATE).astype(np.float32) * 0.05
    gate_program(noise)[0].save(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
