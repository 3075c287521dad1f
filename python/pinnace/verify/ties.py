"""Results that two right programs may give differently: indices of equal values, and angles of -pi and pi."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pinnace.agreement import BOUNDS
from pinnace.types import Array
from pinnace.verify.dataflow import Dataflow

_INDEXING = {"arg_max", "arg_min", "top_k"}


def tied_value(flow: Dataflow, output: str) -> tuple[str, str] | None:
    """(operator, the value that it searches) if an output is indices that a search among values gave."""
    for node in flow.ways_to(output):
        if node.op in _INDEXING and node.inputs:
            return node.op, node.inputs[0]
    return None


def is_tie(got: Array, want: Array, values: Array, bounds: Mapping[str, float] = BOUNDS) -> bool:
    """Whether indices `got` and `want` into one axis of `values` differ only where the values there are equal, within
    the bound on their difference relative to the largest."""
    if got.shape != want.shape or got.dtype.kind not in "iu" or values.dtype.kind not in "fV":
        return False
    wide = values.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    most = bounds.get(str(values.dtype), 0.0) * float(finite.max(initial=0.0))
    for axis in range(values.ndim):
        pairs = [_taken(wide, indices.astype(np.int64), axis) for indices in (got, want)]
        if pairs[0] is not None and pairs[1] is not None and np.all(np.abs(pairs[0] - pairs[1]) <= most):
            return True
    return False


def _taken(values: Array, indices: Array, axis: int) -> Array | None:
    """The values at indices along an axis; None if these cannot be indices along that one."""
    if indices.ndim == values.ndim - 1:
        indices = np.expand_dims(indices, axis)
    others = [a for a in range(values.ndim) if a != axis]
    if indices.ndim != values.ndim or any(indices.shape[a] != values.shape[a] for a in others):
        return None
    if indices.size and (indices.min() < -values.shape[axis] or indices.max() >= values.shape[axis]):
        return None
    return np.asarray(np.take_along_axis(values, indices % values.shape[axis], axis))


def sides_of_pi(got: Array, want: Array, bound: float) -> Array | None:
    """`got` with the signs of `want` where one is pi and the other -pi, within the bound; None if none are."""
    if got.shape != want.shape or got.dtype != want.dtype or got.dtype.kind not in "fV":
        return None
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        other_side = (np.abs(np.abs(a) - np.pi) <= bound * np.pi) & (np.abs(a + b) <= 2 * bound * np.pi) & (a * b < 0)
    if not other_side.any():
        return None
    return np.where(other_side, -a, a).astype(got.dtype)


__all__ = ["is_tie", "sides_of_pi", "tied_value"]
