"""Pools whose length torch.export would fix: within pools_of_dynamic_length() torch.max_pool1d of a dynamic length is
max_pool2d of an image of one row, which asks of no number.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def pools_of_dynamic_length() -> Iterator[None]:
    """For a block that exports: torch.max_pool1d, which is the process's, is replaced. To be entered within
    isolated_inference(), of which one block runs at a time."""
    import torch

    before = torch.max_pool1d
    namespace: Any = torch
    namespace.max_pool1d = _pool(before)
    try:
        yield
    finally:
        namespace.max_pool1d = before


def _pool(fixed: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The pool, by `fixed` where the length is a number."""

    def max_pool1d(
        input: torch.Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> torch.Tensor:
        import torch

        length: Any = input.shape[-1]
        if not isinstance(length, torch.SymInt):
            return fixed(input, kernel_size, stride, padding, dilation, ceil_mode)
        size = _one(kernel_size)
        step = size if stride is None or stride == () or stride == [] else _one(stride)
        rows = torch.nn.functional.max_pool2d(
            input.unsqueeze(-2), (1, size), (1, step), (0, _one(padding)), (1, _one(dilation)), ceil_mode
        )
        return rows.squeeze(-2)

    return max_pool1d


def _one(value: int | Sequence[int]) -> int:
    return value if isinstance(value, int) else int(value[0])


__all__ = ["pools_of_dynamic_length"]
