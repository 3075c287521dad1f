"""Packed weights of TorchScript's dynamically quantised layers, as modules that torch.export can follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from pinnace.torch.packed_layers import Cell, DynamicLinear, recurrent


class PackedLinear(nn.Module):
    """A packed weight as each of the calls takes it that the script has."""

    def __init__(self, packed: Any, calls: Sequence[tuple[bool, bool]]) -> None:
        super().__init__()
        for reduced, relu in calls:
            self.add_module(_key(reduced, relu), DynamicLinear(packed, reduced, relu))

    def called(self, x: torch.Tensor, reduced: bool, relu: bool) -> torch.Tensor:
        """As quantized::linear_dynamic."""
        made: torch.Tensor = getattr(self, _key(reduced, relu))(x)
        return made


def _key(reduced: bool, relu: bool) -> str:
    return f"{'reduced' if reduced else 'full'}{'_relu' if relu else ''}"


def packed_module(value: Any, calls: Sequence[tuple[bool, bool]]) -> nn.Module | None:
    """The module for an object of torch.classes; None: of another kind, or one that no such call takes."""
    name = str(value._type().qualified_name())
    if "CellParams" in name:
        return Cell(value)
    if "LinearPackedParams" in name and calls:
        return PackedLinear(value, calls)
    return None


def _linear(x: Any, packed: Any, reduced: bool = False) -> Any:
    return packed.called(x, bool(reduced), False)


def _linear_relu(x: Any, packed: Any, reduced: bool = False) -> Any:
    return packed.called(x, bool(reduced), True)


def _recurrent(kind: str) -> Callable[..., Any]:
    def run(x: Any, states: Any, cells: Any, *options: Any) -> Any:
        _, layers, _, _, bidirectional, batch_first = options[:6]
        states = states if kind == "lstm" else [states]
        return recurrent(x, states, cells, layers, bidirectional, batch_first)

    return run


_OPERATORS: dict[str, Callable[..., Any]] = {
    "quantized::linear_dynamic": _linear,
    "quantized::linear_relu_dynamic": _linear_relu,
    "quantized::linear_dynamic_fp16": _linear,
    "quantized::linear_relu_dynamic_fp16": _linear_relu,
    "aten::quantized_lstm": _recurrent("lstm"),
    "aten::quantized_gru": _recurrent("gru"),
}


def packed_operator(kind: str) -> Callable[..., Any] | None:
    """What an operator on packed weights does."""
    return _OPERATORS.get(kind)


__all__ = ["PackedLinear", "packed_module", "packed_operator"]
