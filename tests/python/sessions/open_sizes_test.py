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


def check(module: nn.Module, example: Tensor, open_axes: dict[int, pn.Dim], shapes: Sequence[tuple[int, ...]]) -> None:
    name = "x" if isinstance(module, Call) else "input"
    session = pn.Session(pn.load(module.eval(), {name: example}, {name: open_axes}).build(verify=False), threads=2)
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
    open_axes = {2 + i: pn.Dim(f"size{i}", 2, 32) for i in range(spatial)}
    shapes = [(2, 3, *([n, n + 5, n + 2][:spatial])) for n in (2, 6, 7, 13)]
    plain = getattr(nn, f"AdaptiveMaxPool{spatial}d")(cells)
    check(plain, torch.randn(2, 3, *[9] * spatial), open_axes, shapes)
    pool = getattr(F, f"adaptive_max_pool{spatial}d")

    def with_places(x: Tensor) -> Any:
        values, places = pool(x, cells, return_indices=True)
        return values + places.to(x.dtype)

    check(Call(with_places), torch.randn(2, 3, *[9] * spatial), open_axes, shapes)
