"""How far two programs are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pinnace.program import Program
from pinnace.types import Array
from pinnace.verify.dataflow import Dataflow
from pinnace.verify.detections import Group, Rows, groups_of, partners

# Boxes of one label that overlap by this much are one detection: integers move corners by more than rounding does.
PARTNER_OVERLAP = 0.5


class _Difference:
    """Sums of squares: of differences, of exact values. Of integers and booleans, how many."""

    def __init__(self) -> None:
        self.squares, self.size = 0.0, 0.0

    def add(self, found: Array, exact: Array) -> None:
        """Of one shape. Where `exact` is not finite there is no difference."""
        if exact.dtype.kind not in "fV":
            self.squares += float(np.count_nonzero(found != exact))
            self.size += exact.size
            return
        x, y = found.astype(np.float64), exact.astype(np.float64)
        finite = np.isfinite(y)
        self.squares += float(np.sum(np.square(np.where(finite, x - np.where(finite, y, 0), 0))))
        self.size += float(np.sum(np.square(y[finite])))

    def add_apart(self, found: Array, exact: Array) -> None:
        """Of what has nothing to be compared with on the other side: all of it is wrong."""
        for value, size in ((found, 0.0), (exact, 1.0)):
            own = _Difference()
            own.add(value, value)
            self.squares += own.size
            self.size += size * own.size

    @property
    def relative(self) -> float:
        """0 where there is no difference."""
        if self.squares == 0:
            return 0.0
        return math.sqrt(self.squares / self.size) if self.size > 0 else math.inf


def relative_error(found: Sequence[Array], exact: Sequence[Array]) -> float:
    """Root mean square of the differences over that of the exact values; of integers and booleans, the root of the part
    that differs. Arrays of other shapes, whose sizes data decide, are wrong as a whole. 0 where there is nothing."""
    sums = _Difference()
    for a, b in zip(found, exact, strict=True):
        (sums.add if a.shape == b.shape else sums.add_apart)(a, b)
    return sums.relative


def output_errors(
    program: Program, found: Sequence[Sequence[Array]], exact: Sequence[Sequence[Array]]
) -> dict[str, float]:
    """relative_error() of each output over calls. Detections are compared as sets: by label and overlap, those that are
    in one program alone being wrong as a whole, for two right programs may give them in another order or number."""
    flow = Dataflow(program)
    groups = groups_of(program, flow) if flow.suppresses() else []
    sums = [_Difference() for _ in program.outputs]
    for mine, theirs in zip(found, exact, strict=True):
        together = [g for g in groups if g.fits(mine) and g.fits(theirs)]
        for group in together:
            _add_detections(group, mine, theirs, sums)
        alone = set(range(len(sums))).difference(*(g.places for g in together))
        for place in alone:
            a, b = mine[place], theirs[place]
            (sums[place].add if a.shape == b.shape else sums[place].add_apart)(a, b)
    return {name: s.relative for name, s in zip(program.outputs, sums, strict=True)}


def _add_detections(group: Group, found: Sequence[Array], exact: Sequence[Array], sums: Sequence[_Difference]) -> None:
    pairs = partners(Rows.of(group, exact), Rows.of(group, found), PARTNER_OVERLAP)
    rows, columns = list(pairs), list(pairs.values())
    for place in group.places:
        a, b = found[place], exact[place]
        sums[place].add(a[columns], b[rows])
        sums[place].add_apart(np.delete(a, columns, 0), np.delete(b, rows, 0))


__all__ = ["output_errors", "relative_error"]
