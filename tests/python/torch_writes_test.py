"""Writes into views of PyTorch models: through views that repeat elements, and views made of lists of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import Tensor
from torch_modules import Of


def expand_row(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y.expand(2, 4)[0].masked_fill_(m, 0.0)
    return y


def broadcast_row(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y[:1].broadcast_to(2, 3, 1)[0, 1].masked_fill_(m[:1], 7.0)
    return y


def window(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y.unfold(0, 3, 1)[1].masked_fill_(m[:3], 5.0)
    return y, -y


def window_views_are_seen(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    wide = y.unfold(0, 3, 1)
    wide[1].masked_fill_(m[:3], 5.0)
    return y, wide, wide[0]


def middle_axis(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    v = y[:, None].expand(-1, 3)[:, 0]
    v.mul_(2)
    v.masked_fill_(m, 1.0)
    return y, v


def below_a_slice(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x + 1])
    y[1].expand(3, 4)[2][1:].masked_fill_(m[1:], -1.0)
    return y


def fill_all_windows(x: Tensor, m: Tensor) -> Any:
    y = torch.where(m, x, x + 1)
    y[1:].unfold(0, 2, 1).fill_(3.0)
    return y


def strided_rows(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y.as_strided((3, 2), (1, 1))[1].masked_fill_(m[:2], 9.0)
    return y


def diagonal_part(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x * 2, x * 3])
    y.diagonal(1)[1:].masked_fill_(m[:2], 4.0)
    return y


def einsum_turned(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x * 2])
    v = torch.einsum("ij->ji", y)
    v.masked_fill_(m[:, None], 0.0)
    return y, v


def einsum_summed(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x * 2])
    torch.einsum("ij->j", y).masked_fill_(m, 0.0)
    return y


def broadcast_pair(x: Tensor, m: Tensor) -> Any:
    y, z = x.clone(), x[:, None] + 1
    a, b = torch.broadcast_tensors(y, z)  # type: ignore[no-untyped-call]
    a[0].masked_fill_(m, 0.0)
    return y, z, a, b


def grid(x: Tensor, m: Tensor) -> Any:
    y, z = x.clone(), x[:2] + 1
    a, b = torch.meshgrid(y, z, indexing="xy")
    a[0].masked_fill_(m, 0.0)
    return y, z, a, b


FORMS = [
    expand_row, broadcast_row, window, window_views_are_seen, middle_axis, below_a_slice, fill_all_windows,
    strided_rows, diagonal_part, einsum_turned, einsum_summed, broadcast_pair, grid,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_writes_are_seen(form: Callable[[Tensor, Tensor], Any]) -> None:
    """The example has nothing to write: only other values show what is lost."""
    module = Of(form)
    x, none = torch.randn(4), torch.zeros(4, dtype=torch.bool)
    session = pn.Session(pn.load(module, (x, none)).build())
    for mask in (none, ~none, torch.tensor([True, False, False, True])):
        x = torch.randn(4)
        want = module(x, mask)
        got = session.run(dict(zip(session.inputs, (x, mask), strict=True))).values()
        for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_array_equal(g, w.numpy())


def added_windows(x: Tensor) -> Tensor:
    y = x.clone()
    y.unfold(0, 3, 1).add_(1)
    return y


def doubled_rows(x: Tensor) -> Tensor:
    y = x.clone()
    y.as_strided((3, 2), (1, 1)).mul_(2)
    return y


@pytest.mark.parametrize("form", [added_windows, doubled_rows], ids=lambda f: f.__name__)
def test_overlapping_views_themselves_are_refused(form: Callable[[Tensor], Tensor]) -> None:
    """What torch computes here depends on the order in which it takes the elements."""
    with pytest.raises(pn.ConversionError, match=r"elements of the view lie on one another: aten.(unfold|as_strided)"):
        pn.load(Of(form), (torch.randn(4),)).build()
