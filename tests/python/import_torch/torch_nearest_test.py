"""Nearest interpolation of PyTorch models: torch's pixels and sizes, at every size and factor, fixed and dynamic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from agreeing import assert_agree
from slices import rotating_slice
from torch import Tensor, nn
from torch_modules import Of

FACTORS = (
    0.1,
    0.15,
    0.3,
    1 / 3,
    0.5,
    0.6,
    0.7,
    0.75,
    0.9,
    0.99,
    1.01,
    1.1,
    1.2,
    1.3,
    1.5,
    1.7,
    2.0,
    2.01,
    2.3,
    2.5,
    3.0,
)
MODES = ("nearest", "nearest-exact")
WIDEST = 130


class FromOther(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        return F.interpolate(x, size=skip.shape[2:], mode=self.mode)


def least_size(factor: float) -> int:
    """torch.export wants two elements on both sides of a dynamic dimension."""
    return next(size for size in range(2, 100) if int(size * factor) >= 2)


def numbered(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Neighbours along every axis differ; whole numbers that bfloat16 and bytes hold."""
    return (torch.arange(int(np.prod(shape))) % 251).reshape(shape).to(dtype)


def session_of(module: nn.Module, examples: tuple[Tensor, ...], dims: Any = None) -> pn.Session:
    with torch.no_grad():
        return pn.Session(pn.load(module.eval(), examples, dims).build(verify=False), threads=1)


def differing(session: pn.Session, module: nn.Module, inputs: tuple[Tensor, ...]) -> list[tuple[int, ...]]:
    """Numbers of the outputs that are not torch's, with both shapes."""
    got = list(session.run(dict(zip(session.inputs, inputs, strict=True))).values())
    with torch.no_grad():
        want = module(*inputs)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    return [
        (i, *g.shape, *w.shape)
        for i, (g, w) in enumerate(zip(got, want, strict=True))
        if g.shape != tuple(w.shape) or not np.array_equal(g, w.numpy())
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factor", FACTORS)
def test_open_width_by_factor(mode: str, factor: float) -> None:
    module = Of(lambda x: F.interpolate(x, scale_factor=factor, mode=mode))
    least = least_size(factor)
    session = session_of(module, (numbered(1, 2, least + 13),), (({2: pn.Dim("w", least, 400)},),))
    wrong = [w for w in range(least, WIDEST + 1) if differing(session, module, (numbered(1, 2, w),))]
    assert not wrong


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factors", [(1.1, 2.3), (0.6, 1.3), (2.0, 2.0), (1.5, 0.7), (1.0, 2.01), (2.0, 1.2)])
@pytest.mark.parametrize("layout", ["rows", "channels last"])
def test_open_images_by_factor(mode: str, factors: tuple[float, float], layout: str, rng: np.random.Generator) -> None:
    """Small images and those that stand channels last are done by another kernel of torch, which differs."""

    def image(h: int, w: int) -> Tensor:
        x = numbered(1, 5, h, w)
        return x if layout == "rows" else x.contiguous(memory_format=torch.channels_last)

    module = Of(lambda x: F.interpolate(x, scale_factor=factors, mode=mode))
    rows, columns = (least_size(factor) for factor in factors)
    dims = (({2: pn.Dim("h", rows, 200), 3: pn.Dim("w", columns, 200)},),)
    session = session_of(module, (image(16, 19),), dims)
    sizes = [(h, w) for h in range(rows, 12) for w in range(columns, 12)] + rng.integers(6, 90, (60, 2)).tolist()
    assert not [(h, w) for h, w in sizes if differing(session, module, (image(h, w),))]


@pytest.mark.parametrize("mode", MODES)
def test_open_width_by_the_size_of_another(mode: str) -> None:
    module = FromOther(mode)
    dims = ({2: pn.Dim("w", 1, 400)}, {2: pn.Dim("v", 1, 400)})
    session = session_of(module, (numbered(1, 1, 8), numbered(1, 1, 16)), dims)
    pairs = [(w, v) for w in range(1, WIDEST + 1) for v in {*range(1 + w % 5, 160, 5), w, 2 * w - 1, 2 * w, 2 * w + 1}]
    assert not [(w, v) for w, v in pairs if differing(session, module, (numbered(1, 1, w), numbered(1, 1, v)))]


def test_open_image_by_the_size_of_another() -> None:
    """A feature pyramid, exported at 7 x 7 and 14 x 14."""
    module = FromOther("nearest")
    dynamic_sizes = ({2: pn.Dim("h", 2, 99), 3: pn.Dim("w", 2, 99)}, {2: pn.Dim("i", 2, 99), 3: pn.Dim("v", 2, 99)})
    session = session_of(module, (numbered(1, 3, 7, 7), numbered(1, 1, 14, 14)), dynamic_sizes)
    for (h, w), (i, v) in (((14, 24), (32, 74)), ((7, 9), (14, 18)), ((14, 14), (8, 23)), ((6, 4), (74, 41))):
        assert not differing(session, module, (numbered(1, 3, h, w), numbered(1, 1, i, v)))


def every_interpolation(w: int, mode: str, spatial: int) -> list[Callable[[Tensor], Tensor]]:
    """By each factor and to some sizes; of volumes only along the width."""
    wide, once = (2, 0) if spatial == 2 else (1, spatial - 1)
    forms: list[dict[str, Any]] = [
        {"scale_factor": (1.0,) * once + (factor,) * wide} for factor in FACTORS if int(w * factor)
    ]
    sizes = (1, 7, 31, 74, w, 2 * w - 1, 2 * w, 2 * w + 1, 141)
    forms += [{"size": (2,) * once + (size,) * wide} for size in sizes]
    return [lambda x, form=form: F.interpolate(x, mode=mode, **form) for form in forms]  # type: ignore[misc]


@pytest.mark.rotating
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8], ids=str)
def test_fixed_sizes(mode: str, rank: int, dtype: torch.dtype) -> None:
    """Also of float64, for which torch's steps are double."""
    for w in rotating_slice(range(1, WIDEST + 1), 0.02, f"{mode}{rank}{dtype}"):
        each = every_interpolation(w, mode, rank - 2)
        module = Of(lambda x, each=each: tuple(f(x) for f in each))
        x = numbered(1, 2, *{3: (w,), 4: (w, w), 5: (2, 2, w)}[rank], dtype=dtype)
        assert not differing(session_of(module, (x,)), module, (x,)), w


@pytest.mark.parametrize("mode", MODES)
def test_float64_of_open_width(mode: str) -> None:
    module = Of(
        lambda x: (F.interpolate(x, scale_factor=2.3, mode=mode), F.interpolate(x, size=99, mode=mode)),
    )
    session = session_of(module, (numbered(1, 1, 14, dtype=torch.float64),), (({2: pn.Dim("w", 2, 200)},),))
    widths = range(2, WIDEST + 1)
    assert not [w for w in widths if differing(session, module, (numbered(1, 1, w, dtype=torch.float64),))]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_sizes_are_floors_of_double_products(mode: str) -> None:
    """90 * 0.7 is 62.99 in double, 63 in float32."""
    module = Of(lambda x: F.interpolate(x, scale_factor=0.7, mode=mode))
    session = session_of(module, (numbered(1, 1, 17),), (({2: pn.Dim("w", 3, 400)},),))
    for w in (90, 10, 20, 180, 360):
        x = numbered(1, 1, w)
        (got,) = session.run({next(iter(session.inputs)): x}).values()
        assert got.shape[2] == int(w * 0.7)
        assert_agree(got, module(x).numpy())


@pytest.mark.parametrize("factor", [0.3, 0.6, 1.2])
def test_fixed_sizes_are_verified(factor: float) -> None:
    module = Of(lambda x: F.interpolate(x, scale_factor=factor, mode="nearest"))
    pn.load(module, (torch.randn(1, 1, 64),)).build()
