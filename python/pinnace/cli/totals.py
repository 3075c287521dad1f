"""Totals of a model for `pinnace inspect`: parameters, multiply-adds of a run, bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.inputs.maker import InputMaker
from pinnace.model import Model
from pinnace.program import Program

# Whoever only looks at a model waits no longer for sizes at which to count.
_SECONDS = 3.0
# Operators that multiply and add in ways that are not counted here.
_UNCOUNTED = {
    "dft", "eigh", "einsum", "linear_attention", "qr", "quantized_lstm", "quantized_lstm_u8", "solve", "stft", "svd",
}  # fmt: skip


@dataclass(frozen=True)
class Totals:
    """What a model holds and does, in numbers.

    parameters         elements of its constants that are floats, quantised, or of 8 bits and less: its weights.
    constant_bytes     bytes of all its constants.
    multiply_adds      of convolutions, products of matrices, attention and recurrent layers in one run, bodies of loops
                       counted once; None where no sizes for its inputs are known, or a size depends on data.
    at                 the sizes of dynamic dimensions for that.
    multiply_adds_are_least  whether operators that are not counted multiply as well.
    """

    parameters: int
    constant_bytes: int
    multiply_adds: int | None
    at: dict[str, int]
    multiply_adds_are_least: bool


def totals_of(owner: Program | Model, given: Mapping[str, object], sizes: Mapping[str, int]) -> Totals:
    """Of a program or model, at the sizes of the given arrays, at `sizes` by name, and at usual ones where both leave
    dimensions dynamic. InvalidArgument: a name or size is none of a dynamic dimension, or an array does not fit."""
    parameters = constant_bytes = 0
    for constant in owner._core.constants:
        constant_bytes += constant["bytes"]
        if _is_weight(constant["dtype"], constant["quantization"]):
            parameters += math.prod(constant["shape"])
    maker = InputMaker(owner.inputs, owner, sizes=sizes, seconds=_SECONDS)
    counted: int | None = None
    at: dict[str, int] = {}
    try:
        shapes, at = maker.shapes(given)
        trial = owner.try_shapes(shapes, details=True)
        counts = [node.multiply_adds for node in trial.nodes if node.multiply_adds is not None]
        counted = sum(counts) if trial.fits and len(counts) == len(trial.nodes) else None
    except _core.InvalidArgument:
        if given or sizes:
            raise
    return Totals(parameters, constant_bytes, counted, at, any(node.op in _UNCOUNTED for node in owner.nodes))


def _is_weight(dtype: np.dtype[Any], quantization: object) -> bool:
    """Floats of any width, quantised integers, and integers of 8 bits and less, which nothing else is stored in."""
    name = dtype.name
    return name != "bool" and ("float" in name or dtype.itemsize == 1 or quantization is not None)


def amount(number: int) -> str:
    """A number as people read it: 4.09 G, 25.5 M, 1,234."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number < 1000 * size else f"{number / size:,.0f} {unit}"
    return f"{number:,}"


__all__ = ["Totals", "amount", "totals_of"]
