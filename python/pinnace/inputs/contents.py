"""The contents of one input that nobody gave: by what the graph does with it, by its name, by its type; seeded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from pinnace import _core
from pinnace.inputs.uses import Uses
from pinnace.types import Array, TensorSpec

_MASK = re.compile(r"mask", re.IGNORECASE)
_PLACES = re.compile(r"pos(ition)?s?(_?ids?)?$|position", re.IGNORECASE)
_LENGTH = re.compile(r"(^|_)(lens?|lengths?)$|(^|[a-z])(Len|Length)s?$|length", re.IGNORECASE)
_FACTOR = re.compile(r"scale|ratio|factor", re.IGNORECASE)
NORMAL = "normal values"


def flag_values(uses: Uses, spec: TensorSpec) -> list[int]:
    """What to give an input by which the graph may branch: the constants that it is compared with, and one that is none
    of them; empty for what is an index, a length or a mask."""
    most = int(np.iinfo(spec.dtype).max)
    constants = [c for c in uses.constants if c <= most]
    if not constants or uses.lengths or uses.bounds() is not None or _MASK.search(spec.name):
        return []
    other = constants[0] // 2 if constants[0] // 2 not in constants else max(constants) + 1
    return [*constants, other] if other <= most else constants


def fill(
    spec: TensorSpec,
    shapes: Mapping[str, Sequence[int]],
    uses: Uses,
    random: np.random.Generator,
    seed: int,
    refuse_integers: bool = False,
) -> tuple[Array, str]:
    """The contents of one input, and a phrase that says what they are.

    shapes           of all inputs.
    refuse_integers  InvalidArgument for integers, of whose use nothing is known.
    """
    shape, kind = list(shapes[spec.name]), spec.dtype.kind
    if kind in "iu" and refuse_integers:
        raise _core.InvalidArgument(
            f"input {spec}: integers cannot be guessed; give an array (example_inputs of load(), examples of "
            f"build(), --input {spec.name}=FILE.npy)"
        )
    bounds = uses.bounds()
    if bounds is not None:
        low, high, why = bounds
        if _PLACES.search(spec.name) and shape and shape[-1] > 1:
            return _counted(spec, shape, low, high), f"0, 1, 2, … up to {high}: {why}"
        return random.integers(low, high + 1, shape).astype(spec.dtype), f"from {low} to {high}: {why}"
    if _MASK.search(spec.name):
        return np.ones(shape, spec.dtype), "ones: a mask"
    if kind == "b":
        return random.integers(0, 2, shape).astype(bool), "True and False"
    if kind in "iu":
        return _integers(spec, shapes, uses, random, seed)
    if len(uses.least) + len(uses.greatest) == 1 and np.prod(shape) == 1:  # a bound of what is selected: all of it is
        value = uses.least[0][0] if uses.least else uses.greatest[0][1]
        return np.full(shape, value, spec.dtype), f"{value:g}, the {'least' if uses.least else 'greatest'} it bounds"
    if uses.sizes or (_FACTOR.search(spec.name) and np.prod(shape) <= 16):
        return np.ones(shape, spec.dtype), "ones: a factor or a size"
    return random.standard_normal(shape).astype(spec.dtype), NORMAL


def _integers(
    spec: TensorSpec, shapes: Mapping[str, Sequence[int]], uses: Uses, random: np.random.Generator, seed: int
) -> tuple[Array, str]:
    """Integers that index nothing."""
    shape = list(shapes[spec.name])
    limits = np.iinfo(spec.dtype)
    constants = [c for c in uses.constants if c <= limits.max]
    sequence = max(uses.lengths) if uses.lengths else _sequence(spec, shapes)
    if uses.lengths or (_LENGTH.search(spec.name) and len(shape) <= 1 and sequence):
        longest = min(sequence, int(limits.max))
        array = random.integers(-(-longest // 2), longest + 1, shape).astype(spec.dtype)
        array.reshape(-1)[:1] = longest
        return array, f"lengths of at most {longest}"
    if constants:
        value = constants[(seed - 1) % len(constants)]
        return np.full(shape, value, spec.dtype), f"{value}, which it is compared with"
    if _PLACES.search(spec.name) and shape and shape[-1] > 1:
        return _counted(spec, shape, 0, int(limits.max)), "0, 1, 2, …"
    if uses.sizes:
        small = random.integers(1, 3, shape).astype(spec.dtype)
        return small, f"1 and 2: '{uses.sizes[0]}' takes it as a size or divides by it"
    if limits.bits == 8:
        whole = random.integers(limits.min, limits.max + 1, shape).astype(spec.dtype)
        return whole, f"from {limits.min} to {limits.max}"
    return random.integers(0, 2, shape).astype(spec.dtype), "0 and 1"


def _counted(spec: TensorSpec, shape: Sequence[int], low: int, high: int) -> Array:
    """0, 1, 2, … along the last axis, again from the least where the greatest is passed."""
    row = low + np.arange(shape[-1]) % (high - low + 1)
    return np.broadcast_to(row, shape).astype(spec.dtype)


def _sequence(spec: TensorSpec, shapes: Mapping[str, Sequence[int]]) -> int:
    """The length of what the other inputs hold: the longest of their axes behind the first."""
    return max((max(s[1:]) for name, s in shapes.items() if name != spec.name and len(s) > 1), default=0)


__all__ = ["NORMAL", "fill", "flag_values"]
