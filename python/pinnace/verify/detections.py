"""Detections as sets: rows that non-maximum suppression leaves (boxes, scores, labels), matched by label and overlap.

Two right programs may give them in another order, since scores are nearly equal, and may disagree on those that lie at
a threshold. docs/verification.md has the definition with its reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pinnace.agreement import MOVEMENT_FACTOR, Agreement, agreement, slice_bound
from pinnace.program import NodeInfo, Program
from pinnace.types import Array
from pinnace.verify.dataflow import Dataflow

# Boxes of one label that overlap by this much are one detection.
PARTNER_OVERLAP = 0.9
# Scores below this part of the largest have the bound of that part, sides of boxes below this part of the largest
# coordinate likewise: what is left of sums that cancel has their error.
LEAST_SCORE, LEAST_SIDE = 0.05, 0.01
# Numbers of kept detections are at least this: smaller ones are columns of boxes.
FEW_KEPT = 10
# That part of the detections, and at least so many, may be at a threshold.
MOST_NAMED, FEW_NAMED = 0.05, 2
_COMPARING = {"greater", "greater_or_equal", "less", "less_or_equal"}


@dataclass(frozen=True)
class Thresholds:
    """Of what suppresses and selects before the outputs, as far as they are constants.

    scores    below which detections are left out.
    overlaps  above which they are suppressed.
    counts    of the best that are kept.
    """

    scores: tuple[float, ...] = ()
    overlaps: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Group:
    """Places among a program's outputs that have one row for each detection of an image."""

    boxes: int
    scores: int
    labels: int | None
    others: tuple[int, ...]
    thresholds: Thresholds = Thresholds()

    @property
    def places(self) -> tuple[int, ...]:
        """All of them."""
        labels = () if self.labels is None else (self.labels,)
        return (self.boxes, self.scores, *labels, *self.others)

    def fits(self, arrays: Sequence[Array]) -> bool:
        """Whether the outputs of a run have one row for each detection."""
        counts = {arrays[place].shape[:1] for place in self.places}
        return len(counts) == 1 and counts != {()}


def groups_of(program: Program, flow: Dataflow) -> list[Group]:
    """Outputs that non-maximum suppression flows into and whose first dimension is not fixed, by image: of each image
    one [n, 4] and one [n] of floats, at most one [n] of integers, and any others. They belong together by what their
    names begin with (`0.boxes`, `0.scores`); where names do not tell, by their order: by image or by kind."""
    names = list(program.outputs)
    left = [
        place
        for place, spec in enumerate(program.outputs.values())
        if spec.shape and not isinstance(spec.shape[0], int) and flow.origins(names[place]).suppressed
    ]
    groups: list[Group] = []
    parts: dict[str, list[int]] = {}
    for place in left:
        parts.setdefault(names[place].rpartition(".")[0], []).append(place)
    for places in parts.values():
        groups += filter(None, [_group(program, flow, places)])
    left = [place for place in left if not any(place in group.places for group in groups)]
    images = sum(_kind(program, place) == "boxes" for place in left)
    if images and len(left) % images == 0:
        each = len(left) // images
        by_image = [left[i * each : (i + 1) * each] for i in range(images)]
        for split in (by_image, [left[i::images] for i in range(images)]):
            alike = len({tuple(_kind(program, place) for place in part) for part in split}) == 1
            made = [_group(program, flow, part) for part in split] if alike else []
            if made and None not in made:
                return groups + [group for group in made if group is not None]
    return groups


def _kind(program: Program, place: int) -> str:
    """What an output may be of a group."""
    spec = list(program.outputs.values())[place]
    if spec.dtype.kind in "fV" and len(spec.shape) == 2 and spec.shape[1] == 4:
        return "boxes"
    if len(spec.shape) == 1:
        return "scores" if spec.dtype.kind in "fV" else "labels" if spec.dtype.kind in "iu" else "other"
    return f"other of rank {len(spec.shape)}"


def _group(program: Program, flow: Dataflow, places: Sequence[int]) -> Group | None:
    """Of those outputs; None: they are none."""
    by_kind = {kind: [p for p in places if _kind(program, p) == kind] for kind in ("boxes", "scores", "labels")}
    boxes, scores, labels = by_kind.values()
    if len(boxes) != 1 or len(scores) != 1 or len(labels) > 1:
        return None
    others = tuple(p for p in places if p not in (*boxes, *scores, *labels))
    limits = _thresholds(program, flow, list(program.outputs)[scores[0]])
    return Group(boxes[0], scores[0], labels[0] if labels else None, others, limits)


def _thresholds(program: Program, flow: Dataflow, output: str) -> Thresholds:
    text = program.text(64)
    constants = {name: float(value) for name, value in _NUMBER.findall(text)}
    counts_of = {name: int(value) for name, value in _COUNT.findall(text)}
    scores, overlaps, counts = set(), set(), set()
    for node in _before(flow, flow.value_of(output)):
        if node.op in _COMPARING and len(node.inputs) == 2:
            scores |= {constants[name] for name in node.inputs if name in constants}
        elif node.op == "non_max_suppression":
            overlaps |= {constants[name] for name in node.inputs[3:4] if name in constants}
            scores |= {constants[name] for name in node.inputs[4:5] if name in constants}
        elif node.op in ("slice", "min"):  # up to a number, or to the smaller of it and how many there are
            counts |= {counts_of[name] for name in node.inputs[1:3] if counts_of.get(name, 0) >= FEW_KEPT}
    return Thresholds(tuple(sorted(scores)), tuple(sorted(overlaps)), tuple(sorted(counts)))


_NUMBER = re.compile(
    r'^  const %"?((?:\\.|[^"\\\s])+)"? : f32\[1?\] = \{?(-?\d[\d.]*(?:e[-+]?\d+)?)[,}\s]', re.MULTILINE
)
_COUNT = re.compile(r'^  const %"?((?:\\.|[^"\\\s])+)"? : i64\[1?\] = \{?(\d+)[,}\s]', re.MULTILINE)


def _before(flow: Dataflow, value: str) -> Iterator[NodeInfo]:
    """The nodes that a value is made by, each once."""
    left, seen = [value], set[str]()
    while left:
        node = flow.made_by.get(left.pop())
        if node is not None and node.name not in seen:
            seen.add(node.name)
            yield node
            left += [name for name in node.inputs if name]


# ---- one image


@dataclass(frozen=True)
class Rows:
    """What one run gave for an image, in double."""

    boxes: Array
    scores: Array
    labels: Array

    @staticmethod
    def of(group: Group, arrays: Sequence[Array]) -> Rows:
        boxes, scores = (arrays[p].astype(np.float64) for p in (group.boxes, group.scores))
        labels = np.zeros(len(scores), np.int64) if group.labels is None else arrays[group.labels]
        return Rows(boxes, scores, labels)

    def __len__(self) -> int:
        return len(self.scores)

    def chosen(self, rows: Sequence[int]) -> Rows:
        """Some of them."""
        at = np.asarray(rows, np.int64)
        return Rows(self.boxes[at], self.scores[at], self.labels[at])

    def said(self, row: int) -> str:
        return f"label {self.labels[row]}, score {self.scores[row]:.6g}"


def overlaps(a: Array, b: Array) -> Array:
    """[n, m]: intersection over union of boxes [n, 4] and [m, 4] in double; 1 for equal boxes, also empty ones."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=2)
    sizes = [np.prod(np.maximum(x[:, 2:] - x[:, :2], 0), axis=1) for x in (a, b)]
    union = sizes[0][:, None] + sizes[1][None] - both
    shared = np.divide(both, union, out=np.zeros_like(both), where=union > 0)
    return np.where(np.abs(a[:, None] - b[None]).max(axis=2, initial=0) == 0, 1.0, shared)


def partners(a: Rows, b: Rows, least: float = PARTNER_OVERLAP) -> dict[int, int]:
    """Rows of `a` to rows of `b`: equal labels, largest overlap first, from `least` on, each once. Boxes without area,
    which overlap nothing, go by their corners."""
    if not len(a) or not len(b):
        return {}
    near = overlaps(a.boxes, b.boxes)
    thin_a, thin_b = (np.minimum(x[:, 2] - x[:, 0], x[:, 3] - x[:, 1]) <= 1e-3 * _size(x) for x in (a.boxes, b.boxes))
    apart = np.abs(a.boxes[:, None] - b.boxes[None]).max(axis=2)
    thin = thin_a[:, None] & thin_b[None] & (apart <= 1e-3 * _size(b.boxes))
    near = np.where(thin, np.maximum(near, 1 - apart / max(_size(b.boxes), 1e-300)), near)
    near = np.where(a.labels[:, None] == b.labels[None], near, 0.0)
    score = np.abs(a.scores[:, None] - b.scores[None])
    rows, columns = np.nonzero(near >= least)
    order = np.lexsort((score[rows, columns], -near[rows, columns]))
    found: dict[int, int] = {}
    taken: set[int] = set()
    for i in order:
        row, column = int(rows[i]), int(columns[i])
        if row not in found and column not in taken:
            found[row] = column
            taken.add(column)
    return found


def _size(boxes: Array) -> float:
    finite = np.abs(boxes[np.isfinite(boxes)])
    return float(finite.max(initial=0.0))


def _refused(group: Group, place: int, why: str) -> dict[int, Agreement]:
    passed, failed = Agreement(0.0, 0.0, True, ""), Agreement(np.inf, np.inf, False, why)
    return {p: failed if p == place else passed for p in group.places}


def judge(
    group: Group,
    got: Sequence[Array],
    want: Sequence[Array],
    bounds: Mapping[str, float],
    others: Callable[[], tuple[Sequence[Array] | None, Sequence[Sequence[Array]]]],
) -> dict[int, Agreement]:
    """By place among the outputs, the verdict on one call's detections of one image; `want` are the source's.

    others  further runs of the source, as ReferenceRun.others() has them; asked for only where the bounds do not
            suffice.
    """
    mine, theirs = Rows.of(group, got), Rows.of(group, want)
    limit = slice_bound(bounds.get(str(want[group.scores].dtype), 0.0))
    for p in group.places:
        if got[p].dtype != want[p].dtype or got[p].shape[1:] != want[p].shape[1:]:
            said = f"is {got[p].dtype}{list(got[p].shape)}, must be {want[p].dtype}{list(want[p].shape)}"
            return _refused(group, p, said)
    pairs = partners(theirs, mine)
    runs, verdicts = _Runs(group, want, others), dict[int, Agreement]()
    unsteady: dict[int, str] = {}  # rows of the source whose values are off, and that not each of its runs has
    for place in group.places:
        verdict, far = _values(group, place, got[place], want[place], theirs, pairs, limit)
        if far and got[place].dtype.kind in "fV":
            off = {row: pairs[row] for row in far}
            verdict, rows = runs.arbitrated(place, got[place], off, bounds, limit, verdict)
            unsteady |= rows
        verdicts[place] = verdict
    named = [f"values of {theirs.said(row)} differ: {reason}" for row, reason in sorted(unsteady.items())]
    sides = ((theirs, mine, "source", pairs.keys()), (mine, theirs, "program", pairs.values()))
    for own, other, whose, with_partner in sides:
        for row in sorted(set(range(len(own))) - set(with_partner)):
            reason = _reason(group, own, other, row, limit, 0.0) or runs.reason(own, row, whose == "source")
            reason = reason or _reason(group, own, other, row, limit, MOVEMENT_FACTOR * runs.movement())
            if not reason:
                said = f"detection {row} of the {whose} ({own.said(row)}) is none of the other's"
                return _refused(group, group.boxes, f"{said}: {len(mine)} detections for {len(theirs)}")
            named.append(f"{own.said(row)} is the {whose}'s alone: {reason}")
    if len(named) > max(MOST_NAMED * max(len(mine), len(theirs)), FEW_NAMED):
        return _refused(group, group.boxes, f"{len(named)} detections at thresholds: {'; '.join(named[:4])}")
    if named and verdicts[group.boxes].ok:
        boxes = verdicts[group.boxes]
        note = "; ".join(filter(None, [boxes.note, *named[:4], *([f"{len(named)} in all"] if len(named) > 4 else [])]))
        verdicts[group.boxes] = Agreement(boxes.largest, boxes.relative, True, "", boxes.exact, note)
    return verdicts


def _values(
    group: Group, place: int, got: Array, want: Array, theirs: Rows, pairs: Mapping[int, int], limit: float
) -> tuple[Agreement, list[int]]:
    """Of partners, rows of the source to those of the program: each row's difference relative to what is large in it,
    and the source's rows that are outside of their bounds."""
    rows, columns = list(pairs), list(pairs.values())
    if want.dtype.kind not in "fV":
        found = agreement(got[columns], want[rows])
        return found, [] if found.ok else rows
    if not rows or not want[:1].size:
        return Agreement(0.0, 0.0, True, ""), []
    furthest, size = np.array([_apart(got[column], want[row]) for row, column in pairs.items()]).T
    if place == group.boxes:
        sides = np.maximum(theirs.boxes[:, 2] - theirs.boxes[:, 0], theirs.boxes[:, 3] - theirs.boxes[:, 1])
        size = np.maximum(sides[rows], LEAST_SIDE * _size(theirs.boxes))
    elif place == group.scores:
        size = np.maximum(size, LEAST_SCORE * float(np.abs(theirs.scores).max()))
    relative = np.divide(furthest, size, out=np.where(furthest > 0, np.inf, 0.0), where=size > 0)
    worst = int(np.argmax(relative))
    far = [row for row, part in zip(rows, relative, strict=True) if not part <= limit]
    said = f"{relative[worst]:.3g} of its {'longer side' if place == group.boxes else 'largest value'}"
    why = f"differs by {said} in detection {rows[worst]} ({theirs.said(rows[worst])})" if far else ""
    return Agreement(float(furthest.max()), float(relative[worst]), not far, why), far


def _apart(got: Array, want: Array) -> tuple[float, float]:
    """Of one detection: the largest difference, infinite where one is not finite and the other another, and the largest
    magnitude of what is wanted."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return float(np.nan_to_num(apart, nan=np.inf).max()), float(
        np.abs(b, where=np.isfinite(b), out=np.zeros(b.shape)).max()
    )


def _reason(group: Group, own: Rows, other: Rows, row: int, limit: float, moves: float) -> str:
    """Why a detection may be there in one program alone, by the numbers of both; empty if for none. moves: what scores
    may differ by beyond their bound."""
    score, largest = own.scores[row], float(np.abs(own.scores).max(initial=0.0))
    least = max(limit * max(abs(score), LEAST_SCORE * largest), moves)
    for threshold in group.thresholds.scores:
        if abs(score - threshold) <= least:
            return f"at the score threshold {threshold:.6g}"
    if len(own) == len(other) and len(own) in group.thresholds.counts and score - other.scores.min() <= least:
        return f"at the last of {len(own)} scores, {other.scores.min():.6g}"
    if len(other):
        near = overlaps(own.boxes[row : row + 1], other.boxes)[0]
        for threshold in group.thresholds.overlaps:
            at = (
                (np.abs(near - threshold) <= limit)
                & (other.scores >= score - least)
                & (other.labels == own.labels[row])
            )
            if at.any():
                return f"it overlaps a kept one by {near[int(np.argmax(at))]:.6g}, at the threshold {threshold:.6g}"
    return ""


@dataclass(frozen=True)
class _Found:
    """The program's values at a place among the outputs, and where rows of the source are found again."""

    place: int
    got: Array
    pairs: Mapping[int, int]  # in the program
    ways: Sequence[Mapping[int, int]]  # in each of the source's further runs


class _Runs:
    """Further runs of the source, asked for once."""

    def __init__(
        self,
        group: Group,
        want: Sequence[Array],
        ask: Callable[[], tuple[Sequence[Array] | None, Sequence[Sequence[Array]]]],
    ) -> None:
        self._group, self._want, self._ask = group, want, ask
        self._theirs = Rows.of(group, want)
        self._known: list[tuple[Sequence[Array], Rows]] | None = None
        self._exact = False  # whether the first is in float64; it is the source's own then

    def _runs(self) -> list[tuple[Sequence[Array], Rows]]:
        if self._known is None:
            exact, moved = self._ask()
            self._exact = exact is not None and self._group.fits(exact)
            first = exact if exact is not None and self._exact else self._want
            fitting = [run for run in (first, *moved) if self._group.fits(run)]
            self._known = [(run, Rows.of(self._group, run)) for run in fitting]
        return self._known

    def arbitrated(
        self,
        place: int,
        got: Array,
        pairs: Mapping[int, int],
        bounds: Mapping[str, float],
        limit: float,
        verdict: Agreement,
    ) -> tuple[Agreement, dict[int, str]]:
        """The arbiter's verdict on partners that are outside of their bounds, and those rows of the source on which it
        has none: a run of the source lacks them, or has the program's values, as where a mask is pasted at a rounded
        place."""
        ways = [partners(self._theirs, run) for _, run in self._runs()]
        found = _Found(place, got, pairs, ways)
        having = {row: sum(row in way for way in ways) for row in pairs}
        lacked = {row: _decided(n, len(ways)) for row, n in having.items() if n < len(ways)}
        rows = [row for row in pairs if row not in lacked]
        judged = self._judged(found, rows, bounds)
        if not judged.ok:
            with_it = self._with_values_of(found, rows, limit)
            lacked |= {row: _decided(n, len(ways)) for row, n in with_it.items() if n}
            judged = self._judged(found, [row for row in rows if row not in lacked], bounds)
        if not judged.ok:
            return verdict, {}
        return Agreement(verdict.largest, verdict.relative, True, "", judged.exact, judged.note), lacked

    def _judged(self, found: _Found, rows: Sequence[int], bounds: Mapping[str, float]) -> Agreement:
        """The arbiter's verdict on those rows of the source, which all its runs have."""
        if not rows:
            return Agreement(0.0, 0.0, True, "")
        both = zip(self._runs(), found.ways, strict=True)
        first, *moved = [run[found.place][[way[row] for row in rows]] for (run, _), way in both]
        exact = first if self._exact else None
        got, want = found.got[[found.pairs[row] for row in rows]], self._want[found.place][list(rows)]
        return agreement(got, want, bounds, exact, moved)

    def _with_values_of(self, found: _Found, rows: Sequence[int], limit: float) -> dict[int, int]:
        """For each of those rows, how many runs of the source have the program's values there."""
        counts = dict.fromkeys(rows, 0)
        for (run, theirs), way in zip(self._runs(), found.ways, strict=True):
            pairs = {way[row]: found.pairs[row] for row in rows}
            _, far = _values(self._group, found.place, found.got, run[found.place], theirs, pairs, limit)
            for row in rows:
                counts[row] += way[row] not in far
        return counts

    def movement(self) -> float:
        """The most that a score of the source's detections differs by in its other runs."""
        apart = [0.0]
        for _, run in self._runs():
            way = partners(self._theirs, run)
            rows, columns = list(way), list(way.values())
            apart.append(float(np.abs(self._theirs.scores[rows] - run.scores[columns]).max(initial=0.0)))
        return max(apart)

    def reason(self, own: Rows, row: int, sources: bool) -> str:
        """Whether the source itself has that detection in one run and not in another, beside those that are found
        anyway."""
        rest, alone = own.chosen([i for i in range(len(own)) if i != row]), own.chosen([row])
        has = []
        for _, run in self._runs():
            taken = set(partners(rest, run).values())
            has.append(bool(partners(alone, run.chosen([i for i in range(len(run)) if i not in taken]))))
        if (sources and not all(has)) or (not sources and any(has)):
            return _decided(sum(has), len(has))
        return ""


def _decided(having: int, runs: int) -> str:
    return f"a rounding error decides it in the source too ({having} of {runs} runs have it)"


__all__ = ["Group", "Rows", "Thresholds", "groups_of", "judge", "overlaps", "partners"]
