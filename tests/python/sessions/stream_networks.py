"""Audio networks that stream_test.py cuts into chunks: each with an example, its axis of time, and the sizes of chunks
that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn


class Chomp(nn.Module):
    """Cuts off what a convolution padded at both ends has too much."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :, : -self.count].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int) -> None:
        super().__init__()
        pad = (kernel - 1) * dilation
        self.first = nn.Conv1d(inputs, outputs, kernel, padding=pad, dilation=dilation)
        self.second = nn.Conv1d(outputs, outputs, kernel, padding=pad, dilation=dilation)
        self.chomp = Chomp(pad)
        self.down = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.chomp(self.first(x)))
        y = F.relu(self.chomp(self.second(y)))
        return F.relu(y + self.down(x))


class Wave(nn.Module):
    """Gated dilated convolutions with skips; `causal`: padded at the left alone, else at both ends."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.first = nn.Conv1d(1, 8, 1)
        self.gates = nn.ModuleList(
            nn.Conv1d(8, 16, 2 if causal else 3, padding=0 if causal else 2**i, dilation=2**i) for i in range(4)
        )
        self.mixes = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(4))
        self.last = nn.Conv1d(8, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        skip = torch.zeros(())
        for i, (gate, mix) in enumerate(zip(self.gates, self.mixes, strict=True)):
            a, b = gate(F.pad(x, (2**i, 0)) if self.causal else x).chunk(2, 1)
            z = mix(torch.tanh(a) * torch.sigmoid(b))
            skip, x = skip + z, x + z
        y: torch.Tensor = self.last(F.relu(skip))
        return y


class ConvTasNet(nn.Module):
    """An encoder with strides, masks for two speakers that look ahead, and a decoder that adds up frames."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, 16, 16, stride=8, bias=False)
        self.decoder = nn.ConvTranspose1d(16, 1, 16, stride=8, bias=False)
        self.narrow = nn.Conv1d(16, 8, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(8, 16, 1),
                nn.PReLU(),
                nn.Conv1d(16, 16, 3, padding=2**i, dilation=2**i, groups=16),
                nn.PReLU(),
                nn.Conv1d(16, 8, 1),
            )
            for i in range(3)
        )
        self.masks = nn.Conv1d(8, 32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = F.relu(self.encoder(x))
        y = self.narrow(w)
        for block in self.blocks:
            y = y + block(y)
        masks = torch.sigmoid(self.masks(y)).view(x.shape[0], 2, 16, -1)
        sources = (w.unsqueeze(1) * masks).view(x.shape[0] * 2, 16, -1)
        made: torch.Tensor = self.decoder(sources).view(x.shape[0], 2, -1)
        return made


class Recurrent(nn.Module):
    """A mask on spectral frames; with `ahead` after a convolution that looks ahead."""

    def __init__(self, kind: type[nn.RNNBase], ahead: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(33)
        self.ahead = nn.Conv1d(33, 33, 5, padding=2) if ahead else None
        self.cells = kind(33, 24, 2, batch_first=True)  # type: ignore[arg-type]
        self.mask = nn.Linear(24, 33)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        if self.ahead is not None:
            y = self.ahead(y.transpose(1, 2)).transpose(1, 2)
        return x * torch.sigmoid(self.mask(self.cells(y)[0]))


class UNet(nn.Module):
    """Down by 4 twice, up again, with skips."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv1d(1, 8, 8, stride=4, padding=2), nn.Conv1d(8, 16, 8, stride=4, padding=2)])
        self.middle = nn.Conv1d(16, 16, 3, padding=1)
        self.up = nn.ModuleList(
            [nn.ConvTranspose1d(16, 8, 8, stride=4, padding=2), nn.ConvTranspose1d(8, 1, 8, stride=4, padding=2)]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = F.gelu(self.down[0](x))
        b = F.gelu(self.down[1](a))
        b = F.gelu(self.middle(b)) + b
        made: torch.Tensor = self.up[1](F.gelu(self.up[0](b)) + a) + x
        return made


class CausalTransformer(nn.Module):
    """One layer with learnt positions; `ahead`: after a convolution that looks ahead."""

    def __init__(self, longest: int, ahead: bool = False) -> None:
        super().__init__()
        self.positions = nn.Embedding(longest + 16, 16)
        self.enter = nn.Linear(8, 16)
        self.ahead = nn.Conv1d(8, 8, 5, padding=2) if ahead else None
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])
        self.feed = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, _ = x.shape
        if self.ahead is not None:
            x = self.ahead(x.transpose(1, 2)).transpose(1, 2)
        x = self.enter(x) + self.positions(torch.arange(time))
        q, k, v = (t.view(batch, time, 2, -1).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, time, -1)
        x = x + self.out(y)
        made: torch.Tensor = x + self.feed(self.norms[1](x))
        return made


class Sines(nn.Module):
    """Sines of positions, which follow from the number of elements, beside the elements."""

    def __init__(self) -> None:
        super().__init__()
        self.frequencies: torch.Tensor
        self.register_buffer("frequencies", torch.rand(33))
        self.mix = nn.Linear(33, 33)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(x.shape[1])[:, None] * self.frequencies
        y: torch.Tensor = self.mix(x + torch.sin(angles)).softmax(-1)
        return y


class SpectralMask(nn.Module):
    """A mask on a short-time Fourier transform of frames without padding."""

    def __init__(self) -> None:
        super().__init__()
        self.window: torch.Tensor
        self.register_buffer("window", torch.hann_window(64))
        self.mask = nn.Conv1d(33, 33, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        spectrum = torch.stft(x, 64, 32, window=self.window, center=False, return_complex=True)
        mask = torch.sigmoid(self.mask(spectrum.abs()))
        return spectrum.real * mask, spectrum.imag * mask


class Denoiser(nn.Module):
    """A recurrent mask on spectra, between stft and istft as torch has them by default: centred, so that the signal is
    padded at both ends, by what `pad_mode` says, and of the signal's own length."""

    def __init__(self, pad_mode: str) -> None:
        super().__init__()
        self.pad_mode = pad_mode
        self.window: torch.Tensor
        self.register_buffer("window", torch.hann_window(64))
        self.cells = nn.GRU(33, 33, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 64, 16, window=self.window, pad_mode=self.pad_mode, return_complex=True)
        mask = torch.sigmoid(self.cells(spectrum.abs().transpose(1, 2))[0]).transpose(1, 2)
        return torch.istft(spectrum * mask, 64, 16, window=self.window, length=x.shape[-1])


class Mirrored(nn.Module):
    """Convolutions that pad with their input's own elements, one of them with a stride, and a pad by itself."""

    def __init__(self, mode: Literal["reflect", "replicate"]) -> None:
        super().__init__()
        self.mode = mode
        self.first = nn.Conv1d(2, 4, 7, padding=3, padding_mode=mode)
        self.second = nn.Conv1d(4, 8, 4, stride=2, padding=1, padding_mode=mode)
        self.last = nn.ConvTranspose1d(8, 2, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.last(F.relu(self.second(F.relu(self.first(x)))))
        return F.pad(torch.tanh(y), (2, 5), mode=self.mode)


class Frames(nn.Module):
    """Overlapping frames by unfold, each through a layer, laid over each other by fold."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(20, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = self.layer(x.unfold(-1, 20, 8)).transpose(-1, -2).squeeze(1)
        length = 8 * (frames.shape[-1] - 1) + 20
        return F.fold(frames, (1, length), (1, 20), stride=(1, 8)).squeeze(2)


class Picture(nn.Module):
    """Two-dimensional convolutions over frames and bins, pools, and nearest upsampling along time."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.last = nn.Conv2d(4, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.max_pool2d(F.relu(self.first(x)), (2, 2))
        y = F.avg_pool2d(F.elu(self.second(y)), (3, 1), stride=1, padding=(1, 0))
        made: torch.Tensor = self.last(F.interpolate(y, scale_factor=(2.0, 2.0), mode="nearest")) + x
        return made


@dataclass(frozen=True)
class Network:
    """make: the module. shape: of its example. axis: of time. longest: the most elements, where it must say so."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    axis: int
    latency: int
    multiple: int = 1
    longest: int | None = None


NETWORKS = {
    "tcn": Network(
        lambda: nn.Sequential(TemporalBlock(1, 8, 3, 1), TemporalBlock(8, 8, 3, 2), TemporalBlock(8, 8, 3, 4)),
        (1, 1, 230), 2, 0,
    ),
    "causal_wave": Network(lambda: Wave(True), (1, 1, 230), 2, 0),
    "wave": Network(lambda: Wave(False), (1, 1, 230), 2, 15),
    "conv_tasnet": Network(ConvTasNet, (1, 1, 1600), 2, 64, 8),
    "gru": Network(lambda: Recurrent(nn.GRU), (1, 230, 33), 1, 0),
    "lstm": Network(lambda: Recurrent(nn.LSTM), (2, 230, 33), 1, 0),
    "lstm_ahead": Network(lambda: Recurrent(nn.LSTM, True), (2, 230, 33), 1, 2),
    "unet": Network(UNet, (1, 1, 16 * 110), 2, 48, 16),
    "transformer": Network(lambda: CausalTransformer(240), (2, 230, 8), 1, 0, 1, 240),
    "transformer_ahead": Network(lambda: CausalTransformer(240, True), (1, 230, 8), 1, 2, 1, 240),
    "sines": Network(Sines, (1, 230, 33), 1, 0),
    "stft": Network(SpectralMask, (1, 32 * 110), 1, 32, 32),
    "denoiser": Network(lambda: Denoiser("constant"), (1, 16 * 110), 1, 48, 16),
    "denoiser_reflect": Network(lambda: Denoiser("reflect"), (1, 16 * 110), 1, 64, 16),
    "mirrored": Network(lambda: Mirrored("reflect"), (1, 2, 2 * 110), 2, 6, 2),
    "repeated": Network(lambda: Mirrored("replicate"), (1, 2, 2 * 110), 2, 4, 2),
    "frames": Network(Frames, (1, 1, 8 * 110), 2, 16, 8),
    "picture": Network(Picture, (1, 1, 220, 8), 2, 8, 2),
}  # fmt: skip
