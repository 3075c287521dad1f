"""Where the errors of the worst values lie: a histogram, a small heat map and the worst elements of each.

compare() shows every pair of arrays to a WorstErrors, which keeps what it needs of the few worst values alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from pinnace.agreement import Agreement
from pinnace.types import Array

# So many values are kept. Each takes at most about 50 KB, whatever its size, and 6 KB in a page.
WORST = 8
# Histogram: half decades of the error relative to the value's largest magnitude.
LOWEST, HIGHEST, PER_DECADE = -10, 0, 2
_BINS = (HIGHEST - LOWEST) * PER_DECADE + 2  # one below, the half decades, one above
# The heat map: so many rows and columns at most, so many elements by name.
MAP_ROWS, MAP_COLUMNS, ELEMENTS = 32, 64, 5


@dataclass(frozen=True)
class ErrorDetail:
    """Where the errors of one value lie, on the target where they are largest.

    Errors are relative to the largest magnitude of the source's value; one that is not finite where the other side is
    counts as infinite.

    value     the row's name; output says which of two rows.
    output    True for outputs and states.
    target    one of the comparison's targets.
    dtype     of the value.
    shape     of the value.
    equal     how many elements have no error at all.
    counts    how many have one of each size: below 1e-10, then in half decades up to 1, then above, infinite included.
    axes      the two axes that the heat map's rows and columns are; -1 for none.
    heat_map  rows of the largest error in each block of elements, over all other axes; at most 32 rows of 64.
    worst     the five elements with the largest errors: (index, the program's value, the source's value).
    """

    value: str
    output: bool
    target: str
    dtype: str
    shape: list[int]
    equal: int
    counts: list[int]
    axes: tuple[int, int]
    heat_map: list[list[float]]
    worst: list[tuple[list[int], float, float]]

    @property
    def sizes(self) -> list[str]:
        """What each place of `counts` stands for: "below 1e-10", "1e-05 to 3.2e-05", "above 1"."""
        edges = [f"{10 ** (LOWEST + i / PER_DECADE):.2g}" for i in range(_BINS - 1)]
        between = [f"{low} to {high}" for low, high in itertools.pairwise(edges)]
        return [f"below {edges[0]}", *between, f"above {edges[-1]}"]


def error_detail(name: str, output: bool, target: str, got: Array, want: Array) -> ErrorDetail:
    """Of two arrays of the same shape with at least one element."""
    with np.errstate(all="ignore"):
        ours, theirs = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(ours) & np.isfinite(theirs)
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        magnitude = float(np.abs(theirs, where=np.isfinite(theirs), out=np.zeros(theirs.shape)).max()) or 1.0
        error = np.where(same, 0.0, np.where(finite, np.abs(ours - theirs) / magnitude, np.inf))
        steps = np.clip(np.floor((np.log10(error[error > 0]) - LOWEST) * PER_DECADE), -1, _BINS - 2).astype(np.int64)
    counts = np.bincount(steps + 1, minlength=_BINS)
    axes, rows = _heat_map(error)
    most = min(ELEMENTS, error.size)
    among = np.argpartition(error, -most, axis=None)[-most:]
    places = [int(p) for p in among[np.argsort(-error.flat[among], kind="stable")] if error.flat[p] > 0]
    worst = [
        ([int(i) for i in np.unravel_index(place, error.shape)], float(ours.flat[place]), float(theirs.flat[place]))
        for place in places
    ]
    equal = int(error.size - np.count_nonzero(error))
    return ErrorDetail(name, output, target, str(got.dtype), list(got.shape), equal, counts.tolist(), axes, rows, worst)


def _heat_map(error: Array) -> tuple[tuple[int, int], list[list[float]]]:
    """The last two axes that have more than one index, and the largest error in each block of them."""
    axes = [axis for axis in range(error.ndim) if error.shape[axis] > 1][-2:]
    others = tuple(axis for axis in range(error.ndim) if axis not in axes)
    plane = error.max(axis=others) if others else error
    plane = plane.reshape((1,) * (2 - plane.ndim) + plane.shape)
    for axis, most in enumerate((MAP_ROWS, MAP_COLUMNS)):
        size = plane.shape[axis]
        if size > most:
            plane = np.maximum.reduceat(plane, np.arange(most) * size // most, axis=axis)
    named = [-1] * (2 - len(axes)) + axes
    return (named[0], named[1]), plane.astype(np.float32).tolist()


# The larger the worse: outside of its bound, relative error, and then whatever makes the order one of all.
_Rank = tuple[bool, float, int, int, bool, str]


class WorstErrors:
    """Keeps the details of the worst values of a comparison, at most WORST of them, each on its worst target."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bool], tuple[_Rank, ErrorDetail]] = {}
        self.place = (0, 0)

    def look(self, target: str, name: str, output: bool, verdict: Agreement, got: Array, want: Array) -> None:
        """One value on one target and one input; `place` has the numbers of the input and of the target. The arrays are
        read only if it is among the worst so far."""
        if verdict.relative == 0 or got.shape != want.shape or got.dtype != want.dtype or got.size == 0:
            return
        # Of equal errors the first input's, so that it does not matter in which order, or where, inputs are compared.
        rank = (not verdict.ok, verdict.relative, -self.place[0], -self.place[1], output, name)
        self._keep((name, output), rank, lambda: error_detail(name, output, target, got, want))

    def shift(self, by: int) -> None:
        """Counts inputs from `by` on."""
        self._kept = {k: ((*rank[:2], rank[2] - by, *rank[3:]), detail) for k, (rank, detail) in self._kept.items()}

    def merge(self, other: WorstErrors) -> None:
        """Adds what another one saw of other inputs."""
        for key, (rank, detail) in other._kept.items():
            self._keep(key, rank, lambda detail=detail: detail)  # type: ignore[misc]

    def _keep(self, key: tuple[str, bool], rank: _Rank, detail: Callable[[], ErrorDetail]) -> None:
        known = self._kept.get(key)
        if known is not None and known[0] >= rank:
            return
        if known is None and len(self._kept) >= WORST:
            least = min(self._kept, key=lambda k: self._kept[k][0])
            if self._kept[least][0] >= rank:
                return
            del self._kept[least]
        self._kept[key] = (rank, detail())

    def details(self, outputs: Mapping[str, str]) -> list[ErrorDetail]:
        """The worst first. outputs: name -> value; a value is left out where an output that it is says the same."""
        kept = [d for _, d in sorted(self._kept.values(), key=lambda kept: kept[0], reverse=True)]
        same = [replace(d, value=outputs[d.value], output=False) for d in kept if d.output and d.value in outputs]
        return [d for d in kept if d not in same]


__all__ = ["ErrorDetail", "WorstErrors", "error_detail"]
