"""Recurrent layers of dynamic length: torch.export runs them step by step to know the shapes of their results, which
fixes the number of steps. Within whole_recurrent() the shapes come from a formula, and the layer stays one operator.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def whole_recurrent() -> Iterator[None]:
    """For a block that exports: the kernels in Python that torch itself has for these layers are replaced.

    They are the process's: to be entered within isolated_inference(), of which one block runs at a time.
    """
    import torch

    aten = torch.ops.aten
    operators: list[Any] = [aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input]
    with contextlib.ExitStack() as stack:
        for operator in operators:
            stack.enter_context(_kernels(operator, _lstm if operator is aten.lstm.input else _gru_or_rnn))
        yield


@contextlib.contextmanager
def _kernels(operator: Any, shapes: Callable[..., Any]) -> Iterator[None]:
    """The operator with other kernels of Python's: shapes() for tensors without memory, its own for those with."""
    before = dict(operator.py_kernels)
    for key, kernel in before.items():
        operator.py_kernels[key] = _with_shapes(kernel, shapes)
    operator._dispatch_cache.clear()
    try:
        yield
    finally:
        operator.py_kernels.update(before)
        operator._dispatch_cache.clear()


def _with_shapes(kernel: Callable[..., Any], shapes: Callable[..., Any]) -> Callable[..., Any]:
    from torch._subclasses.fake_tensor import FakeTensor

    def chosen(x: torch.Tensor, *rest: Any) -> Any:
        return shapes(x, *rest) if isinstance(x, FakeTensor) else kernel(x, *rest)

    return chosen


def _lstm(
    x: torch.Tensor,
    hx: list[torch.Tensor],
    params: list[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """y [T, B, D * H] or [B, T, D * H], h and c as hx. With a projection h is smaller than c; y has h's size."""
    y = x.new_empty((*x.shape[:-1], hx[0].shape[-1] * (2 if bidirectional else 1)))
    return y, hx[0].new_empty(hx[0].shape), hx[1].new_empty(hx[1].shape)


def _gru_or_rnn(
    x: torch.Tensor, hx: torch.Tensor, params: list[torch.Tensor], has_biases: bool, num_layers: int, *rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """y and h; the rest as for an LSTM."""
    bidirectional = rest[2]
    y = x.new_empty((*x.shape[:-1], hx.shape[-1] * (2 if bidirectional else 1)))
    return y, hx.new_empty(hx.shape)


__all__ = ["whole_recurrent"]
