"""One session at several sizes, back and forth: what a kernel packed for one size must not be used for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Call(nn.Module):
    def __init__(self, f: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Tensor) -> Any:
        return self.f(x)


def check(
    module: nn.Module, example: Tensor, dynamic_axes: dict[int, pn.Dim], shapes: Sequence[tuple[int, ...]]
) -> None:
    name = "x" if isinstance(module, Call) else "input"
    session = pn.Session(pn.load(module.eval(), {name: example}, {name: dynamic_axes}).build(verify=False), threads=2)
    for shape in [*shapes, *reversed(shapes)]:
        x = torch.randn(shape)
        with torch.no_grad():
            want = module(x)
        want = want[0] if isinstance(want, tuple) else want
        got = torch.from_numpy(next(iter(session.run({name: x}).values())))
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_recurrent(kind: type[nn.GRU] | type[nn.LSTM] | type[nn.RNN]) -> None:
    """One row and two are packed in another way than more."""
    torch.manual_seed(1)
    layer = kind(12, 20, num_layers=2, batch_first=True)
    shapes = [(batch, 1, 12) for batch in (2, 7, 1, 3, 8)]
    check(layer, torch.randn(2, 1, 12), {0: pn.Dim("batch", 1, 8)}, shapes)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_resize(mode: str) -> None:
    """Tables of 5 -> 10 and 10 -> 5 places have equal sizes for other pairs of height and width."""

    def twice(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=(2.0, 2.0), mode=mode)

    shapes = [(1, 3, 5, 8), (1, 3, 8, 5), (1, 3, 6, 7), (1, 3, 7, 6)]
    axes = {2: pn.Dim("height", 2, 16), 3: pn.Dim("width", 2, 16)}
    check(Call(twice), torch.randn(1, 3, 6, 7), axes, shapes)


def test_convolutions_and_products() -> None:
    """3 x 3 convolutions go another way from 12 x 12 outputs on; both ways share nothing."""
    torch.manual_seed(2)
    net = nn.Sequential(nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 16, 3, padding=1, groups=8))
    axes = {2: pn.Dim("height", 4, 32), 3: pn.Dim("width", 4, 32)}
    check(net, torch.randn(1, 16, 9, 10), axes, [(1, 16, s, t) for s, t in ((4, 31), (16, 13), (11, 12), (12, 12))])


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("cells", [1, 3, 7])
def test_adaptive_max_pool(spatial: int, cells: int) -> None:
    """Sizes that are multiples of the cells, others, and fewer elements than cells; with places and without."""
    dynamic_axes = {2 + i: pn.Dim(f"size{i}", 2, 32) for i in range(spatial)}
    shapes = [(2, 3, *([n, n + 5, n + 2][:spatial])) for n in (2, 6, 7, 13)]
    plain = getattr(nn, f"AdaptiveMaxPool{spatial}d")(cells)
    check(plain, torch.randn(2, 3, *[9] * spatial), dynamic_axes, shapes)
    pool = getattr(F, f"adaptive_max_pool{spatial}d")

    def with_places(x: Tensor) -> Any:
        values, places = pool(x, cells, return_indices=True)
        return values + places.to(x.dtype)

    check(Call(with_places), torch.randn(2, 3, *[9] * spatial), dynamic_axes, shapes)


class Skip(nn.Module):
    """Half of a U-Net: the size that is resized to is that of another value."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.mode = mode
        self.outer, self.inner = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.last = nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, input: Tensor) -> Tensor:
        wide = self.outer(input).relu()
        narrow = F.interpolate(self.inner(wide).relu(), size=wide.shape[2:], mode=self.mode)
        made: Tensor = self.last(torch.cat([wide, narrow], 1))
        return made


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_sizes_that_are_resized_to(mode: str) -> None:
    """Inputs of one type, as many bytes, and other sizes to make of them."""
    axes = {2: pn.Dim("h", 8, 64), 3: pn.Dim("w", 8, 64)}
    sizes = ((31, 32), (32, 31), (15, 17), (16, 28), (28, 16))
    check(Skip(mode), torch.randn(1, 3, 31, 32), axes, [(1, 3, *size) for size in sizes])


def positions(x: Tensor, axis: int, count: int) -> Tensor:
    """[size of the axis, count], numbers that depend on the size."""
    size = x.shape[axis]
    return torch.sin(torch.arange(size)[:, None] * torch.arange(1, count + 1) / size)


COMPUTED: dict[str, Callable[[Tensor], Tensor]] = {
    "product": lambda x: x @ positions(x, 1, 8).mean(0, keepdim=True).expand(6, 8),
    "product of as many rows": lambda x: x.mT @ positions(x, 1, 8),
    "bias": lambda x: F.linear(x, torch.ones(8, 6), positions(x, 1, 8).sum(0)),
    "weights of a convolution": lambda x: F.conv1d(x.mT, positions(x, 1, 8).sum(0).reshape(8, 1, 1).expand(8, 6, 3)),
    "depthwise": lambda x: F.conv1d(x.mT, positions(x, 1, 6).sum(0).reshape(6, 1, 1).expand(6, 1, 3), groups=6),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_weights_that_sizes_decide(name: str) -> None:
    """They are computed ahead, and packed as constants are."""
    shapes = [(2, steps, 6) for steps in (5, 6, 7, 8, 33)]
    check(Call(COMPUTED[name]), torch.randn(2, 5, 6), {1: pn.Dim("steps", 3, 64)}, shapes)
