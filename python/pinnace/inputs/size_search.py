"""Sizes for dynamic dimensions that nobody gave: searched, by the shape rules of the graph, within a stated budget.

A search asks the shape rules about one choice of sizes after the other. The measure of progress is how many nodes have
a type before the first that has none. From a choice that fits it goes down to the smallest, then looks at the sizes
around it for the range that the graph implies, and at usual sizes of such inputs.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pinnace import _core
from pinnace.inputs.usual_sizes import usual_sizes
from pinnace.shape_trials import ShapeTrial
from pinnace.types import Dim, TensorSpec

# One search: shape rules are asked this often, and for this long, at most; then the best found so far counts.
TRIES = 4000
SECONDS = 15.0
# Sizes to start from, all dimensions alike. 2 first: where all sizes are 1, broadcasting hides what is wrong.
STARTS = (2, 1, 3, 4, 5, 8, 16, 32, 48, 64, 96, 128, 224, 256, 320, 400, 512, 640, 1024, 4096, 16000)
WINDOW = 16  # sizes after the smallest that are tried for a range; four times the smallest, where some do not fit
MOST_WINDOW = 256
LARGE = (512, 1024, 2048, 8192, 32768)  # sizes that a dimension without upper bound takes
Shapes = list[list[int]]
Rules = Callable[[Shapes], ShapeTrial]


class _BudgetSpent(Exception):
    """The search ends with what it has."""


@dataclass
class Found:
    """What a search gave: sizes by dimension.

    smallest  the smallest that pass every shape rule, from 2 on where 2 passes; None: none were found.
    usual     usual ones that pass too; None where there are no others.
    others    further ones that pass, for programs whose nodes refuse at run time what no rule could see.
    ranges    dimensions whose range the graph narrows.
    together  groups of dimensions that have to be changed together.
    failure   the rule that stood longest, where none were found.
    tried     how often the shape rules were asked; complete: whether the budget sufficed.
    """

    smallest: dict[str, int] | None = None
    usual: dict[str, int] | None = None
    others: list[dict[str, int]] = field(default_factory=list)
    ranges: list[Dim] = field(default_factory=list)
    together: list[tuple[str, ...]] = field(default_factory=list)
    failure: str = ""
    tried: int = 0
    complete: bool = True


def dims_of(specs: Iterable[TensorSpec]) -> dict[str, Dim]:
    """Dynamic dimensions by name, in order; those without one are called after their input and place."""
    dims: dict[str, Dim] = {}
    for spec in specs:
        for axis, dim in enumerate(spec.shape):
            if dim is None:
                dims.setdefault(f"{spec.name}_dim{axis}", Dim(f"{spec.name}_dim{axis}"))
            elif isinstance(dim, Dim):
                dims.setdefault(dim.name, dim)
    return dims


def shape_at(spec: TensorSpec, sizes: Mapping[str, int]) -> list[int]:
    """The shape of an input at these sizes."""
    return [
        dim if isinstance(dim, int) else sizes[dim.name if isinstance(dim, Dim) else f"{spec.name}_dim{axis}"]
        for axis, dim in enumerate(spec.shape)
    ]


def legal(dim: Dim, size: int) -> int:
    """The size in range that is nearest to `size`, from above where there is one."""
    step = dim.multiple_of
    size = -(-max(size, dim.min) // step) * step
    if dim.max is not None and size > dim.max:
        size = dim.max // step * step
    return size


def search(
    specs: Sequence[TensorSpec],
    rules: Rules,
    fixed: Mapping[str, int] | None = None,
    *,
    tries: int = TRIES,
    seconds: float = SECONDS,
    only_fit: bool = False,
    indexing: Callable[[Shapes], set[str]] = lambda _: set(),
) -> Found:
    """Sizes for the dynamic dimensions of `specs` but for those that `fixed` has.

    rules     what the shape rules say of shapes of all inputs, in order.
    indexing  at shapes that pass, the names of inputs whose elements are indices: these have the lengths of texts.
    only_fit  True: ends with the first sizes that pass; neither smallest nor usual ones nor ranges are looked for.
    """
    run = _Search(specs, rules, fixed or {}, tries, seconds)
    try:
        run.fit()
        if run.found.smallest is not None and not only_fit:
            run.shrink()
            run.find_ranges()
            run.find_usual(indexing)
    except _BudgetSpent:
        run.found.complete = False
    run.drop_contradicted()
    run.found.tried = len(run.seen)
    return run.found


def near_sizes(
    specs: Sequence[TensorSpec],
    rules: Rules,
    now: Mapping[str, int],
    wanted: Mapping[str, int],
    fixed: Mapping[str, int],
    *,
    tries: int = 300,
    seconds: float = 3.0,
) -> list[dict[str, int]]:
    """Choices of sizes that pass every shape rule and are not those of now: what a climb from the wanted ones reaches;
    each dimension alone at its wanted size, then each, and all of one size together, a little smaller or larger.

    now, wanted  sizes of the dimensions that may change; fixed: of all others.
    """
    run = _Search(specs, rules, fixed, tries, seconds)
    at, other = [now[dim.name] for dim in run.open], [wanted[dim.name] for dim in run.open]
    found: list[list[int]] = []

    def take(sizes: list[int] | None) -> None:
        if sizes is not None and sizes != at and sizes not in found and run.fits(sizes):
            found.append(sizes)

    try:
        for k, size in enumerate(other):
            take(run.moved(at, [k], size))
        take(run.climb(other))
        for group in [[k] for k in range(len(at))] + [[k for k, s in enumerate(at) if s == t] for t in sorted(set(at))]:
            dim, size = run.open[group[0]], at[group[0]]
            steps = {dim.multiple_of, size // 2, size, 2 * size}
            for near in sorted({size - step for step in steps} | {size + step for step in steps}):
                take(run.moved(at, group, legal(dim, near)))
    except _BudgetSpent:
        pass
    # What changes more dimensions proves more.
    return [
        run.named(sizes)
        for sizes in sorted(found, key=lambda sizes: -sum(a != b for a, b in zip(sizes, at, strict=True)))
    ]


class _Search:
    """The state of one search. `open` are the dimensions it may change, `sizes` are given as tuples in their order."""

    def __init__(
        self, specs: Sequence[TensorSpec], rules: Rules, fixed: Mapping[str, int], tries: int, seconds: float
    ) -> None:
        self.specs, self.rules, self.fixed = specs, rules, fixed
        self.open = [dim for name, dim in dims_of(specs).items() if name not in fixed]
        self.seen: dict[tuple[int, ...], int] = {}  # nodes that have a type; -1: all, and it fits
        self.tries, self.until = tries, time.monotonic() + seconds
        self.found = Found()
        self.most = -1  # of failures
        first: dict[str, bool] = {}  # whether it comes first of several where it is first met: a number of pictures
        for spec in specs:
            for axis, entry in enumerate(spec.shape):
                if not isinstance(entry, int):
                    first.setdefault(
                        entry.name if entry else f"{spec.name}_dim{axis}", axis == 0 and len(spec.shape) > 1
                    )
        self.leading = [first[dim.name] for dim in self.open]

    def named(self, sizes: Sequence[int]) -> dict[str, int]:
        return {**self.fixed, **{dim.name: size for dim, size in zip(self.open, sizes, strict=True)}}

    def progress(self, sizes: Sequence[int]) -> float:
        """How far the rules get: nodes, or infinity where the sizes fit. Sizes out of range get nowhere."""
        key = tuple(sizes)
        if key not in self.seen:
            if any(s != legal(dim, s) or (s < 1 and dim.max != 0) for dim, s in zip(self.open, key, strict=True)):
                return -1.0
            if len(self.seen) >= self.tries or time.monotonic() > self.until:
                raise _BudgetSpent
            by_name = self.named(key)
            try:
                said = self.rules([shape_at(spec, by_name) for spec in self.specs])
            except _core.InvalidArgument as error:  # larger than memory can be
                said = ShapeTrial(False, 0, str(error))
            self.seen[key] = -1 if said.fits else said.inferred
            if not said.fits and said.inferred > self.most:
                self.most, self.found.failure = said.inferred, said.failure
        return math.inf if self.seen[key] == -1 else self.seen[key]

    def fits(self, sizes: Sequence[int]) -> bool:
        return self.progress(sizes) == math.inf

    # ------------------------------------------------------------------------------------------------- any that fit

    def fit(self) -> None:
        """The first sizes that pass, into found.smallest."""
        starts = []
        for size in STARTS:
            for lead in (size, 1):
                at = [legal(dim, lead if first else size) for dim, first in zip(self.open, self.leading, strict=True)]
                if at not in starts:
                    starts.append(at)
        best: list[tuple[float, int, list[int]]] = []
        for at in starts:
            if self.fits(at):
                self.found.smallest = self.named(at)
                return
            best.append((-self.progress(at), len(best), at))
        for _, _, at in sorted(best)[:4]:
            climbed = self.climb(at)
            if climbed is not None:
                self.found.smallest = self.named(climbed)
                return

    def climb(self, start: Sequence[int]) -> list[int] | None:
        """From `start` by the change of one dimension, or of two, that gets furthest, as long as one gets further."""
        at, reached = list(start), self.progress(start)
        while True:
            best, best_reached = at, reached
            for changed in itertools.chain(self.changes(at, 1), self.changes(at, 2)):
                got = self.progress(changed)
                if got == math.inf:
                    return changed
                if got > best_reached:
                    best, best_reached = changed, got
            if best_reached <= reached:
                return None
            at, reached = best, best_reached

    def changes(self, at: Sequence[int], count: int) -> Iterable[list[int]]:
        """`at` with `count` dimensions changed: to sizes to start from, to others' sizes, sums and multiples."""
        near = set(at) | {a + b for a, b in itertools.combinations(at, 2)} | {2 * a for a in at} | {a // 2 for a in at}
        near |= {a + k for a in at for k in (-1, 1)}
        wanted = sorted(near | set(STARTS if count == 1 else STARTS[:12]))
        for which in itertools.combinations(range(len(at)), count):
            for size in wanted:
                changed = list(at)
                for k in which:
                    changed[k] = legal(self.open[k], size)
                if size >= 1 and changed != at:
                    yield changed

    # --------------------------------------------------------------------------------------------------- the smallest

    def shrink(self) -> None:
        """found.smallest as small as it gets, one dimension or those of one size after the other."""
        at = self.at()
        for _ in range(2):
            # Dimensions of one size may have to keep it together: pairs of them, or all that still have it.
            alike = [[k for k, s in enumerate(at) if s == size] for size in sorted(set(at))]
            pairs = [list(p) for group in alike if len(group) > 2 for p in itertools.combinations(group, 2)]
            for group in [*([k] for k in range(len(at))), *pairs, *(g for g in alike if len(g) > 1)]:
                least = self.least(at, group)
                if least < at[group[0]]:
                    at = self.moved(at, group, least)
                    self.found.smallest = self.named(at)

    def at(self) -> list[int]:
        assert self.found.smallest is not None
        return [self.found.smallest[dim.name] for dim in self.open]

    @staticmethod
    def moved(at: Sequence[int], group: Iterable[int], size: int) -> list[int]:
        changed = list(at)
        for k in group:
            changed[k] = size
        return changed

    def least(self, at: Sequence[int], group: Sequence[int], floor: int = 2) -> int:
        """The smallest size from `floor` on that these dimensions can have together: each is tried up to 64; above,
        the smallest that passes is searched by halves."""
        now = at[group[0]]
        if any(at[k] != now for k in group) or now <= floor:
            return now
        for size in range(floor, min(now, 65)):
            if self.fits(self.moved(at, group, size)):
                return size
        low, high = min(now, 64), now  # low does not fit, high does
        while high - low > 1:
            middle = (low + high) // 2
            if self.fits(self.moved(at, group, middle)):
                high = middle
            else:
                low = middle
        return high

    # ------------------------------------------------------------------------------------------------------ the range

    def find_ranges(self) -> None:
        """The range of each dimension, the others as they are; what is not so elsewhere is not claimed."""
        at = self.at()
        elsewhere = [other for other in ([2 * s for s in at], [3 * s for s in at], [4 * s for s in at]) if other]
        for k, dim in enumerate(self.open):
            together = self.partners(at, k)
            if together:
                names = tuple(sorted([dim.name, *(self.open[j].name for j in together)]))
                if names not in self.found.together:
                    self.found.together.append(names)
                continue
            claim = self.range_of(at, k)
            # A size that passes where the others are larger is not out of range.
            for other in elsewhere:
                claim = self.held(claim, k, [at[k] if j == k else s for j, s in enumerate(other)])
            if (claim.min, claim.max, claim.multiple_of) != (dim.min, dim.max, dim.multiple_of):
                self.found.ranges.append(claim)

    def partners(self, at: Sequence[int], k: int) -> list[int]:
        """Dimensions that have to change with dimension k: it alone takes no other size, with them it does."""
        steps = sorted({1, 2, 3, 4, 8, at[k], 2 * at[k], 3 * at[k]})
        if any(self.fits(self.moved(at, [k], at[k] + step)) for step in steps):
            return []
        for count in (1, 2):
            for others in itertools.combinations([j for j in range(len(at)) if j != k], count):
                for step in steps:
                    changed = [s + step if j == k or j in others else s for j, s in enumerate(at)]
                    if self.fits(changed):
                        return list(others)
        return []

    def range_of(self, at: Sequence[int], k: int) -> Dim:
        """The range of dimension k around its size, as far as it was seen to be one."""
        dim = self.open[k]

        def fits(size: int) -> bool:
            return self.fits(self.moved(at, [k], size))

        low = 1 if at[k] == 2 and fits(1) else at[k]
        width = WINDOW if all(fits(low + i) for i in range(1, 5)) else min(max(4 * low, 4 * WINDOW), MOST_WINDOW)
        passing = [size for size in range(low, low + width) if fits(size)]
        step = math.gcd(*passing) if len(passing) > 1 else dim.multiple_of
        multiples = [size for size in range(low, low + width) if size % step == 0]
        if passing != multiples and len(passing) > 1:
            step = dim.multiple_of
        larger = [legal(dim, -(-size // step) * step) for size in LARGE if size > low]
        refused = [size for size in larger if not fits(size)]
        high = dim.max
        if len(passing) == 1:
            high = low if not any(fits(size) for size in larger) else dim.max
        elif refused and not any(fits(size) for size in larger if size > refused[0]):
            high = self.last(fits, max([s for s in [*passing, *larger] if fits(s)]), refused[0], step)
        least = low if low > 1 or high == low else 0
        return Dim(dim.name, max(dim.min, least), high, max(step, dim.multiple_of))

    @staticmethod
    def last(fits: Callable[[int], bool], low: int, high: int, step: int) -> int:
        """The last size, in steps, of those from `low`, which fits, to `high`, which does not."""
        while high - low > step:
            middle = (low + high) // 2 // step * step
            if middle <= low:
                middle = low + step
            if fits(middle):
                low = middle
            else:
                high = middle
        return low

    def held(self, claim: Dim, k: int, other: Sequence[int]) -> Dim:
        """The claim without what does not hold where the other dimensions are as in `other`."""
        dim = self.open[k]

        def fits(size: int) -> bool:
            return size > 0 and self.fits(self.moved(other, [k], size))

        low, high, step = claim.min, claim.max, claim.multiple_of
        if step > dim.multiple_of and any(fits(claim.min + i) or fits(other[k] + i) for i in range(1, min(step, 32))):
            step = dim.multiple_of
        if low > dim.min and any(fits(size) for size in {low - 1, low - step, low // 2}):
            low = dim.min
        if high is not None and high != dim.max and any(fits(size) for size in {high + 1, high + step, 2 * high}):
            high = dim.max
        return Dim(dim.name, low, high, step)

    def drop_contradicted(self) -> None:
        """Ranges without what a choice of sizes that fits, whichever it was tried for, shows to be wrong."""
        fitting = [key for key, nodes in self.seen.items() if nodes == -1]
        for claim in list(self.found.ranges):
            k = [dim.name for dim in self.open].index(claim.name)
            dim, sizes = self.open[k], {key[k] for key in fitting}
            step = claim.multiple_of if all(s % claim.multiple_of == 0 for s in sizes) else dim.multiple_of
            low = claim.min if all(s >= claim.min for s in sizes) else dim.min
            high = claim.max if claim.max is None or all(s <= claim.max for s in sizes) else dim.max
            self.found.ranges.remove(claim)
            if (low, high, step) != (dim.min, dim.max, dim.multiple_of):
                self.found.ranges.append(Dim(claim.name, low, high, step))

    # -------------------------------------------------------------------------------------------------- usual sizes

    def find_usual(self, indexing: Callable[[Shapes], set[str]]) -> None:
        """found.usual, and found.others from all sizes alike."""
        at = self.at()
        ranges = {dim.name: dim for dim in self.found.ranges}
        usual = list(at)
        by_name = self.named(at)
        tokens = indexing([shape_at(spec, by_name) for spec in self.specs])
        bound = self.bound(at)
        # What changes together with a number of pictures is one too.
        of_leading = {j for k, first in enumerate(self.leading) if first for j in bound[k]}
        leading = {dim.name: first or k in of_leading for k, (dim, first) in enumerate(self.numbered())}
        for names, choices in usual_sizes(self.specs, leading, tokens):
            wanted = [
                [legal(ranges.get(name, self.dim(name)), s) for name, s in zip(names, c, strict=True)] for c in choices
            ]
            # Those that the ranges take as they are come first: 48 x 320 where the height is 48.
            for sizes in sorted(wanted, key=lambda sizes: tuple(sizes) not in choices):
                changed = list(usual)
                for k, dim in enumerate(self.open):
                    if dim.name in names:
                        changed = self.moved(changed, [k, *bound[k]], sizes[names.index(dim.name)])
                if self.fits(changed):
                    usual = changed
                    break
        for k, first in enumerate(self.leading):  # one picture, one text
            if first and self.fits(one := self.moved(usual, [k, *bound[k]], 1)):
                usual = one
        if usual != at:
            self.found.usual = self.named(usual)
        few = list(usual)  # three pictures, three texts
        for k, first in enumerate(self.leading):
            few = self.moved(few, [k, *bound[k]], legal(self.open[k], 3)) if first else few
        alike = ([legal(d, size) for d in self.open] for size in (1, 32, 64, 128, 320, 512, 640))
        for sizes in [usual, few, *alike]:
            for changed in (sizes, [1 if first else s for s, first in zip(sizes, self.leading, strict=True)]):
                if self.fits(changed) and self.named(changed) not in [self.found.smallest, *self.found.others]:
                    self.found.others.append(self.named(changed))

    def numbered(self) -> list[tuple[Dim, bool]]:
        """Dynamic dimensions with whether they lead."""
        return list(zip(self.open, self.leading, strict=True))

    def bound(self, at: Sequence[int]) -> list[list[int]]:
        """For each dimension those that have its size and change together with it."""
        places = {dim.name: k for k, dim in enumerate(self.open)}
        groups = [[places[name] for name in names] for names in self.found.together]
        return [
            sorted({j for group in groups if k in group for j in group if j != k and at[j] == at[k]})
            for k in range(len(at))
        ]

    def dim(self, name: str) -> Dim:
        return next(dim for dim in self.open if dim.name == name)


__all__ = ["TRIES", "Found", "dims_of", "legal", "near_sizes", "search", "shape_at"]
