"""Fourier neural operators in one, two and three dimensions: spectral convolutions that write products of low modes
into a spectrum of zeros, complex weights, and what else is done to complex tensors by index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from torch import Tensor, nn
from torch.nn import functional as F
from torch_complex_test import Of, check


class Spectral1d(nn.Module):
    """Low modes of the spectrum times a complex matrix each; the others are 0 (Li et al., 2020)."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width)

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x)
        out = torch.zeros(x.shape[0], self.weight.shape[1], x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        out[:, :, : self.modes] = torch.einsum("bix,iox->box", spectrum[:, :, : self.modes], self.weight)
        made: Tensor = torch.fft.irfft(out, n=x.shape[-1])
        return made


class Operator1d(nn.Module):
    """Lifting, spectral layers beside 1 x 1 convolutions, projection; the place is one more channel."""

    def __init__(self, width: int = 8, modes: int = 5) -> None:
        super().__init__()
        self.lift = nn.Linear(2, width)
        self.spectral = nn.ModuleList(Spectral1d(width, modes) for _ in range(2))
        self.local = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(2))
        self.project = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, 1))

    def forward(self, x: Tensor) -> Tensor:  # [batch, points, 1]
        place = torch.linspace(0, 1, x.shape[1]).reshape(1, -1, 1).repeat(x.shape[0], 1, 1)
        y = self.lift(torch.cat([x, place], -1)).permute(0, 2, 1)
        for spectral, local in zip(self.spectral, self.local, strict=True):
            y = F.gelu(spectral(y) + local(y))
        made: Tensor = self.project(y.permute(0, 2, 1))
        return made


class Spectral2d(nn.Module):
    """Both corners of the half spectrum of two axes; weights stored as pairs of reals."""

    def __init__(self, width: int, rows: int, columns: int) -> None:
        super().__init__()
        self.rows, self.columns = rows, columns
        self.low = nn.Parameter(torch.randn(width, width, rows, columns, 2) / width)
        self.high = nn.Parameter(torch.randn(width, width, rows, columns, 2) / width)

    def forward(self, x: Tensor) -> Tensor:
        m, n = self.rows, self.columns
        low, high = torch.view_as_complex(self.low), torch.view_as_complex(self.high)
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros(*x.shape[:-1], x.shape[-1] // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, :m, :n] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :n], low)
        out[:, :, -m:, :n] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :n], high)
        made: Tensor = torch.fft.irfft2(out, s=(x.shape[-2], x.shape[-1]))
        return made


class Operator2d(nn.Module):
    """Channels first, padded where the domain is not periodic."""

    def __init__(self, width: int = 6, padding: int = 3) -> None:
        super().__init__()
        self.padding = padding
        self.lift = nn.Conv2d(3, width, 1)
        self.spectral = nn.ModuleList(Spectral2d(width, 4, 3) for _ in range(2))
        self.local = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(2))
        self.norm = nn.InstanceNorm2d(width)
        self.project = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:  # [batch, 1, rows, columns]
        rows = torch.linspace(0, 1, x.shape[-2]).reshape(1, 1, -1, 1).expand(x.shape)
        columns = torch.linspace(0, 1, x.shape[-1]).reshape(1, 1, 1, -1).expand(x.shape)
        y = F.pad(self.lift(torch.cat([x, rows, columns], 1)), (0, self.padding, 0, self.padding))
        for spectral, local in zip(self.spectral, self.local, strict=True):
            y = F.gelu(self.norm(spectral(y)) + local(y))
        made: Tensor = self.project(y[..., : -self.padding, : -self.padding])
        return made


class Spectral3d(nn.Module):
    """The four corners of three axes, found by a shift that brings low frequencies together; the contraction by
    factors of a Tucker form, as libraries of neural operators store large weights."""

    def __init__(self, width: int, modes: tuple[int, int, int], rank: int) -> None:
        super().__init__()
        self.modes = modes
        sizes = (width, width, *modes)
        self.core = nn.Parameter(torch.randn([rank] * 5, dtype=torch.cfloat) / rank)
        self.factors = nn.ParameterList(torch.randn(n, rank, dtype=torch.cfloat) / rank for n in sizes)

    def forward(self, x: Tensor) -> Tensor:
        sizes = x.shape[-3:]
        spectrum = torch.fft.fftshift(torch.fft.rfftn(x, norm="ortho", dim=(-3, -2, -1)), dim=(-3, -2))
        starts = [(n - m) // 2 for n, m in zip(sizes[:2], self.modes[:2], strict=True)]
        low = [slice(s, s + m) for s, m in zip(starts, self.modes[:2], strict=True)]
        places = (slice(None), slice(None), *low, slice(0, self.modes[2]))
        out = torch.zeros_like(spectrum)
        out[places] = torch.einsum("bixyz,fghjk,if,og,xh,yj,zk->boxyz", spectrum[places], self.core, *self.factors)
        made: Tensor = torch.fft.irfftn(torch.fft.ifftshift(out, dim=(-3, -2)), s=sizes, dim=(-3, -2, -1), norm="ortho")
        return made


class Operator3d(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.lift = nn.Conv3d(1, width, 1)
        self.spectral = Spectral3d(width, (4, 4, 3), 2)
        self.skip = nn.Conv3d(width, width, 1, bias=False)
        self.project = nn.Conv3d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:  # [batch, 1, x, y, time]
        y = self.lift(x)
        made: Tensor = self.project(F.gelu(self.spectral(y) + self.skip(y)))
        return made


OPERATORS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], dict[int, Any]]] = {
    "1d": (Operator1d, (2, 32, 1), {0: "batch"}),
    "2d": (Operator2d, (2, 1, 13, 16), {0: "batch"}),
    "3d": (Operator3d, (1, 1, 8, 7, 6), {0: "batch"}),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_fourier_operators(name: str, tmp_path: Path) -> None:
    """Both dialects of torch's, and pn.load with its checks, also of another batch."""
    torch.manual_seed(0)
    make, sizes, dynamic_sizes = OPERATORS[name]
    module = make().eval()
    x = torch.randn(sizes)
    check(module, (x,), tmp_path / "m.pt2")
    session = pn.Session(pn.load(module, x).build(), target="cpu")
    hold(module, session, torch.randn(sizes))
    session = pn.Session(pn.load(module, torch.randn(3, *sizes[1:]), dynamic_sizes).build(), target="cpu")
    hold(module, session, torch.randn(4, *sizes[1:]))


def hold(module: nn.Module, session: pn.Session, x: Tensor) -> None:
    with torch.no_grad():
        wanted = module(x).numpy()
    got = next(iter(session.run({"x": x}).values()))
    assert_agree(got, wanted)


def written_by_index(a: Tensor, b: Tensor) -> Any:  # [4, 6, 2], [4, 6, 2]
    z, w = torch.view_as_complex(a), torch.view_as_complex(b)
    rows, columns = torch.tensor([2, 0]), torch.tensor([1, 5])
    made = []

    def of(write: Callable[[Tensor], Any]) -> None:
        y = z.clone()
        write(y)
        made.append(y)

    of(lambda y: y.__setitem__((slice(1, 3), slice(None, None, 2)), w[1:3, ::2]))
    of(lambda y: y.__setitem__(2, w[0]))
    of(lambda y: y.__setitem__((slice(None), -2), 1.5 - 2j))  # type: ignore[assignment]  # torch's stubs lack complex
    of(lambda y: y.__setitem__(rows, w[:2]))
    of(lambda y: y.__setitem__((rows, columns), w[0, :2]))
    of(lambda y: y.__setitem__((slice(None), columns), w[:, :2]))
    of(lambda y: y.__setitem__(a[..., 0] > 0, 2j))  # type: ignore[assignment]
    of(lambda y: y.__setitem__(a[:, 0, 0] > 0, 0))
    of(lambda y: y[:2].mul_(w[:2]))
    of(lambda y: y[1].zero_())
    of(lambda y: y[..., 0].fill_(3j))
    of(lambda y: y.t()[1:].copy_(w.t()[1:]))
    of(lambda y: y.permute(1, 0)[::2].add_(1j))
    of(lambda y: y.view(2, 12)[1].copy_(w.reshape(2, 12)[0]))
    of(lambda y: y.diagonal().copy_(w[0, :4]))
    of(lambda y: y.real.mul_(2))
    of(lambda y: y.imag[1:].zero_())
    of(lambda y: torch.view_as_real(y)[..., 1].neg_())
    of(lambda y: torch.view_as_real(y).mul_(3))
    of(lambda y: y[:, 1:3].real.copy_(b[:, 1:3, 0]))
    of(lambda y: y.add_(w[:1]))
    made += [
        torch.slice_scatter(z, w[:, 1:3], 1, 2, 4), torch.select_scatter(z, w[1], 0, 3),
        torch.slice_scatter(z, w[::2], 0, 0, 4, 2), z.index_put((rows, columns), w[0, :2], accumulate=True),
        z.index_add(0, rows, w[:2], alpha=2), z.index_copy(1, columns, w[:, :2]), torch.diagonal_scatter(z, w[0, :4]),
    ]  # fmt: skip
    return [torch.stack([m.real, m.imag]) for m in made]


def products(a: Tensor, b: Tensor, x: Tensor) -> Any:  # [3, 4, 5, 2], [4, 2, 5, 2], [5, 4]
    z, w, y = torch.view_as_complex(a), torch.view_as_complex(b), x.to(torch.cfloat)
    made = [
        torch.einsum("bix,iox->box", z, w), torch.einsum("bix,iox,xk->bok", z, w, y), torch.einsum("bix->xb", z),
        torch.einsum("bix,bjx->ij", z, z.conj()), torch.einsum("...x,xk", z, y), torch.einsum("bix,iox->", z, w),
        F.linear(z, y.t(), y[0]), F.linear(z[0], y.t(), y[0]), torch.addmm(y[0], z[0], y, beta=2, alpha=1j),
        torch.baddbmm(z[:, :, :4], z, z.mT, beta=0.5), z @ y,
    ]  # fmt: skip
    return [torch.view_as_real(m.resolve_conj()) for m in made]


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "written by index": (written_by_index, [(4, 6, 2), (4, 6, 2)]),
    "products": (products, [(3, 4, 5, 2), (4, 2, 5, 2), (5, 4)]),
}


@pytest.mark.parametrize("name", CASES)
def test_complex_tensors(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    function, sizes = CASES[name]
    check(Of(function), tuple(torch.randn(s) for s in sizes), tmp_path / "m.pt2")


def test_writes_through_conjugates() -> None:
    """In the dialect that is not decomposed: torch's own decompositions fail on them."""

    def written(a: Tensor, b: Tensor) -> Any:
        z, w = torch.view_as_complex(a), torch.view_as_complex(b)
        transposed, plain = z.clone(), z.clone()
        transposed.mH.copy_(w.mH)
        plain[1:].conj().copy_(w[1:])
        return torch.view_as_real(transposed.resolve_conj()), torch.view_as_real(plain)

    a, b = torch.randn(4, 6, 2), torch.randn(4, 6, 2)
    got = list(pn.Session(pn.load(Of(written), (a, b)).build(verify=False)).run({"args_0": a, "args_1": b}).values())
    assert_agree(got[0], b.numpy())
    assert_agree(got[1][1:], b[1:].numpy() * np.array([1, -1], np.float32))
    assert_agree(got[1][0], a[0].numpy())
