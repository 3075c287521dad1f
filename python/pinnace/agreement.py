"""When two arrays count as equal: the one definition, on arrays alone. docs/verification.md has it with its reasons.

Values are judged over the whole array and in slices, each by its own magnitude. What is outside of a bound counts as
equal only if it is as near to the exact values as the source is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from pinnace import _core
from pinnace.types import Array

# Largest difference allowed, relative to the largest magnitude of the whole. Integers and bools must be equal.
BOUNDS = {"float32": 1e-4, "float64": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}
# The same for float32 values of a session of that precision, or that were computed from values of that type.
PRECISION_BOUNDS = {"fp32": BOUNDS["float32"], "fp16": BOUNDS["float16"], "bf16": BOUNDS["bfloat16"]}
# Of a slice's own magnitude ten times as much, but below a tenth: 1e-3 for float32.
SLICE_FACTOR, SLICE_MOST = 10.0, 0.1
# How much further than the source from the exact values a slice may be: two right sums of the same numbers in different
# orders have errors of one distribution, not of one size.
ARBITER_FACTOR = 4.0
# Where the source gives 0, sums that cancel leave such a part of the whole: so many units in its last place.
ZERO_UNITS = 2.0
# Without exact values: that many times what the source's own values move by, and at most such a part of a slice.
MOVEMENT_FACTOR, MOVEMENT_MOST = 4.0, 0.5
QUANTIZED_MOST = 0.1  # of an output's largest magnitude
# A slice has at least so many elements, unless the array as a whole has no more than the second number.
SLICE_ELEMENTS, FEW_ELEMENTS = 8, 64
# Sentinels, finite values such as those of masks: beyond a quarter of the type's largest value, or nearly equal to each
# other and that many decades above everything else.
SENTINEL_DECADES, SENTINEL_SPREAD, SENTINEL_BOUND = 4, 1e-3, 1e-6


def bounds_of(precision: str) -> dict[str, float]:
    """Bounds by dtype for values of a session of that precision."""
    least = PRECISION_BOUNDS.get(precision, 0.0)
    return {dtype: max(bound, least) for dtype, bound in BOUNDS.items()}


def tolerance_bounds(tolerance: float | Mapping[str, float] | None) -> dict[str, float]:
    """Bounds by dtype name that take the place of the stated ones, from what a caller gave: one number for all types of
    BOUNDS, or numbers by dtype name; None for none. Integers must be equal unless a dict names their dtype.

    InvalidArgument: it is no number in [0, 1), 0 for a type of BOUNDS, or no dtype has such a name.
    """
    if tolerance is None:
        return {}
    given: dict[Any, Any] = dict(tolerance) if isinstance(tolerance, Mapping) else dict.fromkeys(BOUNDS, tolerance)
    bounds: dict[str, float] = {}
    for dtype, bound in given.items():
        if dtype not in _core.dtypes():
            raise _core.InvalidArgument(
                f"tolerance: {dtype!r} is no dtype's name; those with bounds of their own are {', '.join(BOUNDS)}"
            )
        place = f"tolerance for {dtype}" if isinstance(tolerance, Mapping) else "tolerance"
        if isinstance(bound, bool | np.bool_) or not isinstance(bound, Real):
            raise _core.InvalidArgument(f"{place}: {type(bound).__name__}, must be a number or a dict dtype -> number")
        if not 0 <= float(bound) < 1:  # false for NaN
            raise _core.InvalidArgument(
                f"{place} is {bound!r}: must be at least 0 and below 1, the largest magnitude of the values compared"
            )
        if bound == 0 and dtype in BOUNDS:
            raise _core.InvalidArgument(
                f"{place} is 0, which floats cannot keep to: sums in another order are rounded differently"
            )
        bounds[dtype] = float(bound)
    return bounds


def tolerance_text(bounds: Mapping[str, float]) -> str:
    """What reports say of tolerance_bounds(): `float32 0.001, float16 0.01`."""
    return ", ".join(f"{dtype} {bound!r}" for dtype, bound in bounds.items())


def slice_bound(bound: float) -> float:
    """The bound on a slice's difference relative to the slice's own magnitude, for a bound on the whole."""
    return max(bound, min(SLICE_FACTOR * bound, SLICE_MOST))


class ExactDistances(NamedTuple):
    """Largest distances from the exact values, computed in float64, relative to the value's largest magnitude.

    ours    of the program's values.
    source  of the source's own.
    """

    ours: float
    source: float


@dataclass(frozen=True)
class Agreement:
    """How far a value is from the wanted one, and whether that counts as equal.

    largest   the largest absolute difference.
    relative  that relative to the largest magnitude of the whole, sentinels and non-finite values apart.
    ok, why   the verdict; what is wrong where it is no.
    exact     how far both are from the exact values; None where the bounds sufficed or nothing can compute those.
    note      what an equal verdict rests on beside the bounds; empty where on nothing.
    """

    largest: float
    relative: float
    ok: bool
    why: str
    exact: ExactDistances | None = None
    note: str = ""


def agreement(
    got: Array,
    want: Array,
    bounds: Mapping[str, float] = BOUNDS,
    exact: Array | None = None,
    spread: Sequence[Array] = (),
    quantized: bool = False,
    rounded: bool = False,
) -> Agreement:
    """Judges `got` against `want`, the source's value.

    bounds  by dtype name, relative to the largest magnitude of the whole; for slices see slice_bound().
    exact   the value in float64: a slice outside of its bound then passes if it is as near to this as `want` is. Where
            `want` is not finite and this is, it takes the place of `want`.
    spread  values on inputs that differ by a rounding error: the exact ones with `exact`, else `want`. What they move
            by excuses at most a percent of a slice, of 16 bits more; with `exact` also the bound of the whole.
    quantized  without `exact`: what moves is excused up to QUANTIZED_MOST of the whole instead.
    rounded  with `exact`: `spread` comes from rounding errors at every operator instead; only that percent then.

    Arrays of other shape or dtype differ. Integers are compared as integers. Non-finite values must stand in the same
    places, sentinels must be equal to 1e-6.
    """
    if got.shape != want.shape or got.dtype != want.dtype:
        said = f"is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"
        return Agreement(np.inf, np.inf, False, said)
    if got.size == 0:
        return Agreement(0.0, 0.0, True, "")
    bound = bounds.get(str(want.dtype), 0.0)
    if got.dtype.kind in "iub":
        return _integers(got, want, bound)
    return _Floats(got, want, bound, exact, spread, quantized, rounded).judged()


def _integers(got: Array, want: Array, bound: float) -> Agreement:
    """float64 has no room for 64 bits: distances are taken modulo 2^64, where none overflows."""
    wide = np.int64 if want.dtype.kind == "i" else np.uint64
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(over="ignore"):  # of the two, the one that is not taken
        distance = np.where(a > b, a.view(np.uint64) - b.view(np.uint64), b.view(np.uint64) - a.view(np.uint64))
    largest = float(distance.max())
    relative = _ratio(largest, float(np.abs(want.astype(np.float64)).max()))
    ok = relative <= bound
    places = int(np.count_nonzero(distance))
    why = "" if ok else f"differs by {largest:g} at most, in {places} of {distance.size} integers"
    return Agreement(largest, relative, ok, why)


def _ratio(part: float, whole: float) -> float:
    return 0.0 if part == 0 else part / whole if whole else np.inf


@dataclass(frozen=True)
class _Slices:
    """One way to cut an array: the largest value of an array per slice, and what the slices are called.

    blocks: slices that are `width` neighbours on an axis, since single ones have too few elements.
    """

    name: str
    over: tuple[int, ...]
    width: int = 1

    def largest(self, values: Array) -> Array:
        reduced = np.asarray(values.max(axis=self.over) if self.over else values).ravel()
        if self.width == 1:
            return reduced
        starts = np.arange(0, reduced.size, self.width)
        return np.asarray(np.maximum.reduceat(reduced, starts))

    def place(self, index: int, shape: Sequence[int]) -> str:
        kept = [size for axis, size in enumerate(shape) if axis not in self.over]
        if self.width > 1:
            first = index * self.width
            return f"{self.name} {first} to {min(first + self.width, int(np.prod(kept))) - 1}"
        where = [int(i) for i in np.unravel_index(index, kept)]
        return f"{self.name} {where[0] if len(where) == 1 else where}"


def slices_of(shape: Sequence[int]) -> Iterator[_Slices]:
    """The ways to cut an array of that shape: every index of every axis, rows, [n, c] maps; single elements of few."""
    size, rank = int(np.prod(shape)), len(shape)
    axes = [axis for axis in range(rank) if shape[axis] > 1]
    if size <= FEW_ELEMENTS:
        if size > 1:
            yield _Slices("element", ())
        return
    for axis in axes:
        others = tuple(a for a in range(rank) if a != axis)
        each = size // shape[axis]
        width = 1 if each >= SLICE_ELEMENTS else -(-SLICE_ELEMENTS // each)
        if width < shape[axis]:
            yield _Slices(f"axis {axis} index", others, width)
    if len(axes) > 1 and shape[-1] >= SLICE_ELEMENTS:
        yield _Slices("row", (rank - 1,))
    if rank > 3 and len(axes) > 2 and size // (shape[0] * shape[1]) >= SLICE_ELEMENTS and shape[0] > 1:
        yield _Slices("channel", tuple(range(2, rank)))


class _Floats:
    """One judgement of floating-point arrays."""

    def __init__(
        self,
        got: Array,
        want: Array,
        bound: float,
        exact: Array | None,
        spread: Sequence[Array],
        quantized: bool,
        rounded: bool,
    ) -> None:
        self.shape, self.bound, self.dtype = got.shape, bound, got.dtype
        self.quantized, self.rounded = quantized, rounded
        self.got, self.want = got.astype(np.float64), want.astype(np.float64)
        self.finite = np.isfinite(self.want)
        self.exact = None if exact is None or exact.shape != want.shape else exact.astype(np.float64)
        self.spread = [s.astype(np.float64) for s in spread if s.shape == want.shape]

    def judged(self) -> Agreement:
        lost = self._overflowed()
        if not lost.any():
            return self._judged()
        assert self.exact is not None
        self.want = np.where(lost, self.exact, self.want)
        self.finite = self.finite | lost
        found = self._judged()
        note = "the source is not finite where float64 is"
        return replace(found, note=f"{found.note}; {note}" if found.note else note) if found.ok else found

    def _overflowed(self) -> Array:
        """Where the source has an infinity or NaN for a number that its type holds, and the program a number."""
        if self.exact is None or self.finite.all():
            return np.zeros(self.shape, bool)
        with np.errstate(over="ignore", invalid="ignore"):
            held = np.isfinite(self.exact.astype(self.dtype).astype(np.float64))
        return np.asarray(~self.finite & np.isfinite(self.got) & held)

    def _judged(self) -> Agreement:
        got, want, finite = self.got, self.want, self.finite
        if not np.array_equal(np.isfinite(got), finite) or not np.array_equal(
            got[~finite], want[~finite], equal_nan=True
        ):
            return Agreement(np.inf, np.inf, False, "non-finite values stand in other places")
        size = np.abs(np.where(finite, want, 0.0))
        with np.errstate(over="ignore"):
            distance = np.abs(np.where(finite, got - np.where(finite, want, 0.0), 0.0))
        decades = _decades(size)
        sentinels, bounds = self._sentinels(size, decades)
        wrong = sentinels & (distance > bounds * size)
        if wrong.any():
            k = int(np.argmax(wrong))
            a, b = float(got.flat[k]), float(want.flat[k])
            return Agreement(float(distance.max()), np.inf, False, f"a sentinel is {a:g}, must be {b:g} (element {k})")
        ordinary = finite & ~sentinels
        size, distance = np.where(ordinary, size, 0.0), np.where(ordinary, distance, 0.0)
        largest, magnitude = float(distance.max()), float(size.max())
        found = Agreement(largest, _ratio(largest, magnitude), True, "")
        outside = list(self._outside(size, distance, decades, ordinary))
        if not outside:
            return found
        return self._arbitrated(found, outside, ordinary, magnitude)

    def _sentinels(self, size: Array, decades: Array) -> tuple[Array, Array | float]:
        """Finite values that stand for something, and how equal each must be."""
        info = _finfo(self.dtype)
        huge = size > info.max / 4 if info is not None else np.zeros(self.shape, bool)
        # Values of 16 bits that are computed get as far: two units in the last place.
        least = max(SENTINEL_BOUND, 2 * float(info.eps)) if info is not None else SENTINEL_BOUND
        present = _different(decades[(size > 0) & ~huge])
        gaps = np.flatnonzero(np.diff(present) > SENTINEL_DECADES)
        if not gaps.size:
            return huge, least
        above = (decades > present[gaps[-1]]) & ~huge & (size > 0)
        values = size[above]
        if values.max() - values.min() > SENTINEL_SPREAD * values.max() or values.size == size.size:
            return huge, least
        # Large values that are computed, too, lie there: they keep the bound of the whole, each for itself.
        return huge | above, np.where(huge, least, self.bound)

    def _outside(self, size: Array, distance: Array, decades: Array, ordinary: Array) -> Iterator[_Outside]:
        """Slices outside of their bounds, with what tells how far something else goes in them."""
        least = _least(self.dtype)
        whole, magnitude = float(distance.max()), float(size.max())
        if whole > self.bound * magnitude + least:
            yield _Outside("", lambda values: float(values.max()), _ratio(whole, magnitude), magnitude)
        limit = slice_bound(self.bound)
        for cut in slices_of(self.shape):
            d, m = cut.largest(distance), cut.largest(size)
            beyond = d > limit * m + least
            if beyond.any():
                yield from _of_cut(cut, np.flatnonzero(beyond), d, m, self.shape)
        # Elements of one decade: rounding errors of small ones are no larger than those of the larger ones beside them.
        beside = 0.0
        for decade in _different(decades[ordinary])[::-1]:
            members = ordinary & (decades == decade)
            d_most, m_most = float(distance[members].max()), float(size[members].max())
            if d_most > limit * m_most + least and d_most > 2 * beside:
                largest = functools.partial(_largest_among, members)
                yield _Outside(f"elements below {m_most:.2g}", largest, _ratio(d_most, m_most), m_most)
            beside = max(beside, d_most)

    def _arbitrated(self, found: Agreement, outside: list[_Outside], ordinary: Array, magnitude: float) -> Agreement:
        """The verdict where slices are outside of their bounds."""
        ours = theirs = 0.0
        if self.exact is not None:
            with np.errstate(invalid="ignore", over="ignore"):
                own = np.where(ordinary, np.nan_to_num(np.abs(self.got - self.exact), nan=np.inf), 0.0)
                source = np.where(ordinary, np.nan_to_num(np.abs(self.want - self.exact), nan=np.inf), 0.0)
            ours, theirs = float(own.max()), float(source.max())
            found = replace(found, exact=ExactDistances(_ratio(ours, magnitude), _ratio(theirs, magnitude)))
            base = self.exact
        else:
            source = np.zeros(self.shape)
            own, base = np.where(ordinary, np.abs(self.got - np.where(ordinary, self.want, 0.0)), 0.0), self.want
        movement = np.zeros(self.shape)
        for moved in self.spread:
            with np.errstate(invalid="ignore", over="ignore"):
                step = np.where(ordinary, np.nan_to_num(np.abs(moved - base), nan=0.0, posinf=0.0), 0.0)
            movement = np.maximum(movement, MOVEMENT_FACTOR * step)
        least, worst = _least(self.dtype), None
        info = _finfo(self.dtype)
        cancelled = ZERO_UNITS * float(info.eps) * magnitude if info is not None else 0.0
        percent, moved_most = min(100 * self.bound, MOVEMENT_MOST), float(movement.max())
        typical = ARBITER_FACTOR * float(np.sqrt(np.mean(np.square(source))))
        far = ARBITER_FACTOR * source
        # Slices that are small beside the whole may be sums that cancel: the bound of the whole then.
        excused = 0.0 if self.rounded else self.bound * magnitude
        for slice_ in outside:
            if self.exact is not None:
                # Of few elements the source may have hit some exactly: half a percent then. Where it gives 0 itself,
                # there is nothing to be relative to but its errors beside that.
                hit = percent / 2 * slice_.magnitude if slice_.magnitude else np.inf
                most = max(slice_.largest(far), min(typical, hit))
                most = max(most, min(slice_.largest(movement), max(excused, percent * slice_.magnitude)))
            elif self.quantized:
                most = min(moved_most, QUANTIZED_MOST * magnitude)
            else:
                most = min(moved_most, percent * slice_.magnitude)
            # Where the exact run is the source itself, as of operators that make floats of bools, what is that small is
            # its rounding.
            noise = typical == 0 and slice_.magnitude <= cancelled
            if self.exact is not None and (slice_.magnitude == 0 or noise):
                most = max(most, cancelled)
            if slice_.largest(own) > most + least and (worst is None or slice_.relative > worst.relative):
                worst = slice_
        if worst is None:
            if self.exact is not None:
                return replace(found, note="as near to float64 as the source")
            by = _ratio(moved_most / MOVEMENT_FACTOR, magnitude)
            return replace(
                found, note=f"the source itself moves by {by:.3g} when its inputs change by a rounding error"
            )
        bound = slice_bound(self.bound) if worst.place else self.bound
        at = f" at {worst.place}" if worst.place else ""
        why = f"differs by {worst.relative:.3g} of its largest magnitude{at}, bound {bound:g}"
        if found.exact is not None:
            why += f"; from float64 ours by {found.exact.ours:.3g}, the source by {found.exact.source:.3g}"
        return replace(found, ok=False, why=why)


@dataclass(frozen=True)
class _Outside:
    """A slice outside of its bound: its name (empty: the whole), the largest of an array's values in it, its difference
    relative to its magnitude."""

    place: str
    largest: Callable[[Array], float]
    relative: float
    magnitude: float


def _of_cut(cut: _Slices, beyond: Array, distance: Array, size: Array, shape: Sequence[int]) -> Iterator[_Outside]:
    """All of one way to cut. The values of an array per slice are computed once, however many slices there are."""
    known: dict[int, Array] = {}

    def largest(k: int, values: Array) -> float:
        if id(values) not in known:
            known[id(values)] = cut.largest(values)
        return float(known[id(values)][k])

    for k in beyond.tolist():
        relative = _ratio(float(distance[k]), float(size[k]))
        yield _Outside(cut.place(k, shape), functools.partial(largest, k), relative, float(size[k]))


def _largest_among(members: Array, values: Array) -> float:
    return float(values[members].max())


def _decades(size: Array) -> Array:
    """Powers of ten, rounded down; those of 0 are below all others."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.floor(np.log10(np.maximum(size, 1e-320)))).astype(np.int32)


def _different(values: Array) -> Array:
    """Those that there are, ascending. np.unique() imports numpy.ma, which takes longer than a small model runs."""
    ordered = np.sort(values, axis=None)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))] if ordered.size else ordered


def _finfo(dtype: np.dtype[Any]) -> Any:
    """Limits of a floating-point type, numpy's own or not; None for any other."""
    try:
        return np.finfo(dtype)
    except (TypeError, ValueError):
        pass
    try:
        import ml_dtypes

        limits: Any = ml_dtypes.finfo
        return limits(dtype)
    except (ImportError, KeyError, TypeError, ValueError):
        return None


def _least(dtype: np.dtype[Any]) -> float:
    """The type's smallest normal number, float16's smallest step: processors may flush what is below to 0."""
    info = _finfo(dtype)
    if info is None:
        return 0.0
    return float(info.smallest_subnormal if str(dtype) == "float16" else info.smallest_normal)


__all__ = [
    "BOUNDS",
    "PRECISION_BOUNDS",
    "Agreement",
    "ExactDistances",
    "agreement",
    "bounds_of",
    "slice_bound",
    "slices_of",
    "tolerance_bounds",
    "tolerance_text",
]
