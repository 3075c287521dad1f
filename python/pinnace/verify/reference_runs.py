"""Calls of the source that a program is held against, and the verdict on each value: bounds first, then the arbiter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pinnace import _core
from pinnace.agreement import BOUNDS, MOVEMENT_MOST, Agreement, agreement
from pinnace.sources.base import Source, Steps, arbiter_of, signed_of, steps_of
from pinnace.sources.rounding import Rounding
from pinnace.types import Array

# How much inputs are changed to see what a rounding error in them does: 8 units in the last place of float32's largest
# value, one of the 16-bit types'.
ROUNDING = {"float64": 1e-6, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
# A quantised network without inner values to look at rounds such a change to another integer now and then.
NUDGE = 1e-5
# How often inputs are changed; more often before a refusal. A sum that is next to where it rounds to another integer
# gets there in about half of the runs: three changes move all but one of eight such networks, twelve all but one of
# 4,096.
NUDGES, MOST_NUDGES = 3, 12
# Where all that is left are rounding errors, there is nothing to be relative to. They are then as large as those of
# adding up the inputs: so many units in the last place of their root sum of squares.
NOISE = 4.0


class ReferenceRun:
    """Calls in a row of a source, each list of inputs one call, from the initial state on. Run when first asked."""

    def __init__(self, source: Source, steps: Sequence[Sequence[Array]], nudge: float = 0.0) -> None:
        """nudge: how much inputs change where the source's own movement has to tell; 0: by ROUNDING."""
        self.source, self.steps, self.nudge = source, [list(step) for step in steps], nudge
        self._ran: Steps | None = None
        self._exact: Steps | None = None
        self._moved: _NudgedRuns | None = None
        self._own: _NudgedRuns | None = None
        self._rounded: list[Steps] | None = None
        self._asked = False
        self._signed: ReferenceRun | None = None

    @property
    def ran(self) -> Steps:
        """Outputs per call and final states."""
        if self._ran is None:
            self._ran = steps_of(self.source, self.steps)
        return self._ran

    @property
    def exact(self) -> Steps | None:
        """The same in float64; None where nothing computes it."""
        if not self._asked:
            self._asked = True
            try:
                arbiter = arbiter_of(self.source)
                self._exact = steps_of(arbiter, self.steps) if arbiter is not None else None
            except _core.Cancelled:
                raise
            except _core.Error:  # no code for doubles, or for these types: then the source's movement has to tell
                self._exact = None
        return self._exact

    def judge(
        self,
        call: int,
        place: int,
        got: Array,
        bounds: Mapping[str, float] = BOUNDS,
        floats: bool | None = None,
        vectors: bool = False,
    ) -> Agreement:
        """The verdict on an output of a call. floats: whether a float among the inputs flows into it; None: if the
        inputs have one at all. vectors: whether eigenvectors or singular vectors do."""
        return self._judged(got, bounds, lambda steps: steps.outputs[call][place], floats, vectors)

    def judge_by_movement(self, call: int, place: int, got: Array, bounds: Mapping[str, float] = BOUNDS) -> Agreement:
        """The verdict on an output as if nothing computed exact values: by what the source itself moves by."""
        want = self.ran.outputs[call][place]

        def judge(moved: list[Array]) -> Agreement:
            return agreement(got, want, bounds, None, moved, self.nudge > 0)

        return self._own_runs().judged(judge, lambda steps: steps.outputs[call][place])

    def others(self, call: int) -> tuple[Sequence[Array] | None, list[Sequence[Array]]]:
        """What the source gives for a call in float64, and in float64 on inputs that differ by a rounding error. None,
        and its own on such inputs, where nothing computes it in float64."""
        moved = self.moved_by_itself if self.exact is None else self.moved
        exact = None if self.exact is None else self.exact.outputs[call]
        return exact, [steps.outputs[call] for steps in moved]

    def judge_state(
        self, name: str, got: Array, bounds: Mapping[str, float] = BOUNDS, vectors: bool = False
    ) -> Agreement:
        """The verdict on a state after the last call."""
        return self._judged(got, bounds, lambda steps: steps.states[name], None, vectors)

    @property
    def signed(self) -> ReferenceRun | None:
        """The same calls of the source with signs of vectors as the operators have them; None where it has no such."""
        if self._signed is None and (source := signed_of(self.source)) is not None:
            self._signed = ReferenceRun(source, self.steps, self.nudge)
        return self._signed

    def _judged(
        self,
        got: Array,
        bounds: Mapping[str, float],
        of: Callable[[Steps], Array],
        floats: bool | None,
        vectors: bool = False,
    ) -> Agreement:
        """With vectors: equal to the source as it is by the bounds alone, or with signs by all that is stated. Not by
        an arbiter for the source as it is: where that has other signs in float64, it would excuse anything."""
        if vectors and self.signed is not None:
            verdict = agreement(got, of(self.ran), bounds)
            if verdict.ok or got.shape != of(self.ran).shape or got.dtype != of(self.ran).dtype:
                return verdict
            verdict = self.signed._judged(got, bounds, of, floats)
            if verdict.ok and not agreement(of(self.signed.ran), of(self.ran), bounds).ok:
                note = "the source's eigenvectors or singular vectors turned to the operators' signs"
                return replace(verdict, note="; ".join(filter(None, [note, verdict.note])))
            return verdict
        want = of(self.ran)
        verdict = agreement(got, want, bounds)
        if verdict.ok or str(want.dtype) not in BOUNDS or got.shape != want.shape or got.dtype != want.dtype:
            return verdict
        if np.any(~np.isfinite(got) & np.isfinite(want)):
            return verdict
        if self.exact is not None:
            exact = of(self.exact)
            verdict = agreement(got, want, bounds, exact)
            if not verdict.ok:
                if floats is False or not self._has_floats():
                    verdict = agreement(got, want, bounds, exact, [of(s) for s in self.rounded], rounded=True)
                else:
                    verdict = self._moved_runs().judged(lambda s: agreement(got, want, bounds, exact, s), of)
        else:
            verdict = self._own_runs().judged(lambda s: agreement(got, want, bounds, None, s, self.nudge > 0), of)
        if verdict.ok or verdict.largest > self._noise(want):
            return verdict
        moved = [of(s) for s in self.moved_by_itself]
        if is_noise(got, want, [x for step in self.steps for x in step], moved):
            return replace(verdict, ok=True, why="", note="nothing but rounding errors, in both")
        return verdict

    def _has_floats(self) -> bool:
        return any(str(x.dtype) in ROUNDING for step in self.steps for x in step)

    @property
    def moved(self) -> list[Steps]:
        """The calls in float64 with inputs that differ by a rounding error, NUDGES times; not those that fail."""
        return self._moved_runs().first(NUDGES)

    def _moved_runs(self) -> _NudgedRuns:
        if self._moved is None:
            self._moved = _NudgedRuns(self, arbiter_of(self.source) or self.source)
        return self._moved

    @property
    def rounded(self) -> list[Steps]:
        """The calls in float64 with rounding errors at every operator, three times: where no input is a float, so that
        none can carry one. Runs that fail are left out."""
        if self._rounded is None:
            self._rounded = []
            arbiter = arbiter_of(self.source)
            make: Callable[[Rounding], Source] | None = getattr(arbiter, "rounded", None)
            rounding = Rounding(np.random.default_rng(7))
            for _ in range(3 if make else 0):
                try:
                    self._rounded.append(steps_of(make(rounding), self.steps))  # type: ignore[misc]
                except _core.Cancelled:
                    raise
                except _core.Error:  # an index that was computed in floats may be another one
                    continue
        return self._rounded

    @property
    def moved_by_itself(self) -> list[Steps]:
        """The same by the source itself."""
        return self._own_runs().first(NUDGES)

    def _own_runs(self) -> _NudgedRuns:
        if self._own is None:
            self._own = _NudgedRuns(self, self.source)
        return self._own

    def _noise(self, want: Array) -> float:
        """How large values may be that are nothing but rounding errors of adding up the inputs."""
        floats = [x.astype(np.float64) for step in self.steps for x in step if str(x.dtype) in ROUNDING]
        norm = max((float(np.linalg.norm(np.nan_to_num(x))) for x in floats), default=0.0)
        return 2 * NOISE * ROUNDING[str(want.dtype)] * norm


class _NudgedRuns:
    """The calls of a ReferenceRun by `runs`, its source or that in float64, each time with other changes of the inputs.
    Run when first asked."""

    def __init__(self, reference: ReferenceRun, runs: Source) -> None:
        self._reference, self._runs = reference, runs
        self._random = np.random.default_rng(7)
        self._ran: list[Steps | None] = []  # None: failed

    def first(self, count: int) -> list[Steps]:
        """The first so many, without those that failed."""
        steps = getattr(self._reference.source, "steps", None)
        while len(self._ran) < count:
            changed = [nudged(x, steps, self._reference.nudge, self._random) for x in self._reference.steps]
            try:
                self._ran.append(steps_of(self._runs, changed))
            except _core.Cancelled:
                raise
            except _core.Error:  # what is no probability any more, or not positive definite
                self._ran.append(None)
        return [ran for ran in self._ran[:count] if ran is not None]

    def judged(self, judge: Callable[[list[Array]], Agreement], of: Callable[[Steps], Array]) -> Agreement:
        """The verdict that the movement of a value gives, that of more runs where a few do not excuse it."""
        verdict = judge([of(steps) for steps in self.first(NUDGES)])
        return verdict if verdict.ok else judge([of(steps) for steps in self.first(MOST_NUDGES)])


def nudged(
    inputs: Sequence[Array], steps: Sequence[float] | None, nudge: float, random: np.random.Generator
) -> list[Array]:
    """Each element changed by a random part of the source's step for its input, where it has one, floats else of
    `nudge` (0: of ROUNDING) of the largest."""
    return [_nudged(x, step, nudge, random) for x, step in zip(inputs, steps or [0.0] * len(inputs), strict=True)]


def _nudged(x: Array, step: float, nudge: float, random: np.random.Generator) -> Array:
    if str(x.dtype) in ROUNDING:
        wide = x.astype(np.float64)
        size = step or (nudge or ROUNDING[str(x.dtype)]) * _largest(wide)
        return np.asarray((wide + random.uniform(-size, size, x.shape)).astype(x.dtype))
    if not step:
        return x
    limits = np.iinfo(x.dtype)
    moved = x.astype(np.int64) + random.integers(-1, 2, x.shape)
    return np.asarray(np.clip(moved, limits.min, limits.max).astype(x.dtype))


def _largest(x: Array) -> float:
    """The largest finite magnitude: masks hold infinities."""
    return float(np.abs(x, where=np.isfinite(x), out=np.zeros(x.shape)).max(initial=0.0))


def is_noise(got: Array, want: Array, inputs: Sequence[Array], moved: Sequence[Array]) -> bool:
    """Whether both are rounding errors: values that a rounding error in the inputs changes wholly, and so small beside
    the inputs that nothing else can be left of them."""
    norms = [float(np.linalg.norm(np.nan_to_num(x.astype(np.float64)))) for x in inputs if str(x.dtype) in ROUNDING]
    units = ROUNDING[str(want.dtype)] * max(norms, default=0.0)
    largest = max(_largest(got.astype(np.float64)), _largest(want.astype(np.float64)))
    changes = [agreement(m, want).relative for m in moved if m.shape == want.shape]
    return max(changes, default=0.0) >= MOVEMENT_MOST and largest <= NOISE * units


__all__ = ["NUDGE", "ROUNDING", "ReferenceRun", "is_noise", "nudged"]
