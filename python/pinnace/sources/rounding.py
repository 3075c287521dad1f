"""Rounding errors of float32, put into runs of a source in double precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pinnace.types import Array

# What operands are changed by where no input is a float: two units in the last place of float32, since the errors of a
# network's operators add up; and half a unit, which one rounding makes.
OPERAND_ROUNDING, UNIT_ROUNDING = 2.0**-22, 2.0**-24
# Arrays of so few elements may be settings of an operator, such as an exponent or factors of sizes: they stay exact.
FEW_ELEMENTS = 8


class Rounding:
    """Errors of float32, put into a run in float64: what any program of the model makes at every operator."""

    def __init__(self, random: np.random.Generator) -> None:
        """random: where they are drawn from."""
        self._random = random

    def operand(self, x: Array) -> Array:
        """Each element changed by up to OPERAND_ROUNDING of itself: a right operator's result is exact for such ones.

        Whole numbers stay, which float32 holds as they are; so do up to eight elements: they may be a setting of the
        operator, such as an exponent or factors of sizes.
        """
        if x.dtype != np.float64 or x.size <= FEW_ELEMENTS:
            return x
        with np.errstate(invalid="ignore"):
            return self._changed(x, OPERAND_ROUNDING) if np.any(x % 1) else x

    def result(self, x: Array, operands: Sequence[Array]) -> Array:
        """A sum of n terms, also as a mean, is off by the root of n roundings, however well its terms are known. n is
        how many times more elements an operand has."""
        terms = max((o.size for o in operands if o.dtype == np.float64), default=0) / max(x.size, 1)
        return self._changed(x, UNIT_ROUNDING * float(np.sqrt(terms))) if x.dtype == np.float64 and terms > 1 else x

    def _changed(self, x: Array, size: float) -> Array:
        return np.asarray(x * self._random.uniform(1 - size, 1 + size, x.shape))


__all__ = ["Rounding"]
