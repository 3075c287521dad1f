"""What values downstream of quantisation may differ by: two right programs round a tie, or a float beside one, to
different integers, and all that follows from those integers differs.

So each rounding is held against the source on the program's own integers before it, where it may differ by one step,
at ties alone; and the outputs against what the source makes of the program's last integers, by the bounds of any other
value. What has added up by the end is at most OUTPUT_MOST of an output, unless the source says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pinnace import _core
from pinnace.agreement import BOUNDS, Agreement, agreement
from pinnace.program import Program
from pinnace.session import Session
from pinnace.sources.base import Source
from pinnace.types import Array
from pinnace.verify import detections
from pinnace.verify.dataflow import Dataflow

OUTPUT_MOST = 0.1
# Of one rounding's values at most so many may stand at a tie: of means of sixteen integers, one in sixteen does.
TIES_MOST = 0.125
_FOLDED = ".quantized"  # cpp/passes/fold_quantization.cc
_INTEGERS = ("int8", "uint8", "int16", "uint16")


class QuantizedAllowance:
    """One program on one target, for one call's inputs."""

    def __init__(
        self, program: Program, flow: Dataflow, source: Source, inputs: Sequence[Array], target: str, precision: str
    ) -> None:
        """Runs nothing yet."""
        self.program, self.flow, self.source = program, flow, source
        self.inputs, self.target, self.precision = inputs, target, precision
        self._found: tuple[list[Array], str, str] | None = None
        self._rounded_types: tuple[str, ...] = getattr(source, "rounded_types", ())

    def judge(
        self,
        place: int,
        got: Array,
        verdict: Agreement,
        bounds: Mapping[str, float],
        by_movement: Callable[[], Agreement] | None = None,
    ) -> Agreement:
        """The verdict on output `place`, which is outside of its bounds, with the program's own roundings allowed.

        As it is where the source shows no inner integers, or the output is not downstream of any.

        by_movement  the verdict by what the source itself moves by, for roundings within loops and branches, whose
                     integers it does not show; None: nothing excuses those.
        """
        origins = self.flow.origins(list(self.program.outputs)[place])
        if not origins.roundings and not self._rounded_types:
            return verdict
        if self._found is None:
            self._found = self._measure()
        outputs, ties, wrong = self._found
        if wrong:
            return replace(verdict, why=f"{verdict.why}; {wrong}")
        after = agreement(got, outputs[place], bounds) if ties else None
        if by_movement and origins.within and not (after and after.ok):
            moving = by_movement()
            if moving.ok:
                return replace(moving, note="roundings within loops and branches, which move the source as well")
        if after is None:
            return verdict
        what = "values" if self._rounded_types else "integers"
        integers = got.dtype.kind in "iu"
        steps_only = integers and after.largest <= 1
        if not after.ok and not steps_only:
            return replace(verdict, why=f"{verdict.why}; on the same {what} it {after.why}")
        most = getattr(self.source, "excused", OUTPUT_MOST)
        if not integers and verdict.relative > most:
            return replace(verdict, why=f"{verdict.why}; {ties}, which excuse {most:g} at most")
        return replace(verdict, ok=True, why="", note=f"{ties}; on the same {what} {after.relative:.3g}")

    def judges_detections(self, output: str) -> bool:
        """Whether detections may be others than the source's, since roundings moved scores over thresholds: where the
        source says of them that they excuse any difference."""
        rounded = bool(self.flow.origins(output).roundings or self._rounded_types)
        return rounded and math.isinf(getattr(self.source, "excused", OUTPUT_MOST))

    def judge_detections(
        self,
        group: detections.Group,
        place: int,
        got: Sequence[Array],
        verdicts: Mapping[int, Agreement],
        bounds: Mapping[str, float],
    ) -> Agreement:
        """The verdict on an output of `group`, of which `verdicts` refuse one: held against the source's detections on
        the program's own values.

        got  all outputs of the program.
        """
        if self._found is None:
            self._found = self._measure()
        outputs, ties, wrong = self._found
        refused = next(verdict for verdict in verdicts.values() if not verdict.ok)
        if wrong:
            return replace(refused, why=f"{refused.why}; {wrong}")
        if not ties or not group.fits(outputs):
            return refused
        after = detections.judge(group, got, outputs, bounds, lambda: (None, []))[place]
        if not after.ok:
            return replace(refused, why=f"{refused.why}; on the same values it {after.why}")
        return replace(after, note=f"{ties}, and detections with them; on the same values {after.relative:.3g}")

    def _measure(self) -> tuple[list[Array], str, str]:
        """(the source's outputs for the program's integers, which of those differ at ties, what is wrong)."""
        with_values: Callable[..., tuple[list[Array], dict[str, Array]]] | None
        with_values = getattr(self.source, "with_values", None)
        if with_values is None:
            return [], "", ""
        names = [
            name
            for node in self.flow.nodes
            for name, type_ in zip(node.outputs, node.output_types, strict=False)
            if type_.split("[")[0].split("{")[0] in (self._rounded_types or _INTEGERS)
            and self.flow.origins_of(name).values
        ]
        if not names:
            return [], "", ""
        session = Session(self.program, self.target, precision=self.precision, keep=names, plan_cache=1)
        feed = dict(zip(self.program.inputs, self.inputs, strict=True))
        # What computes on integers has the name of the source's value with a word behind it, and the same integers.
        kept = {name.removesuffix(_FOLDED): value for name, value in session.kept_values(feed).items()}
        try:
            outputs, own = with_values(self.inputs, kept)
        except _core.Error:
            return [], "", ""
        if self._rounded_types:
            wrong = next((text for name, value in own.items() if (text := _differs(name, kept[name], value))), "")
            return outputs, f"{len(own)} values are rounded to {', '.join(self._rounded_types)}" if own else "", wrong
        said = []
        for name, value in own.items():
            mine = kept[name]
            if mine.shape != value.shape or mine.dtype != value.dtype:
                continue
            steps = np.abs(mine.astype(np.int64) - value.astype(np.int64))
            count = int(np.count_nonzero(steps))
            if not count:
                continue
            if steps.max() > 1 or count > max(1, TIES_MOST * steps.size):
                places = f"{int(steps.max())} steps at most, in {count} of {steps.size} places"
                return outputs, "", f"quantised value {name!r} differs on the same integers before it by {places}"
            said.append(f"{count} of {steps.size} of {name!r}")
        if not own:
            return outputs, "", ""
        more = f" and in {len(said) - 2} values more" if len(said) > 2 else ""
        ties = f"ties round to the other side ({', '.join(said[:2])}{more})" if said else "ties before it"
        return outputs, ties, ""


def _differs(name: str, mine: Array, value: Array) -> str:
    """What is wrong with a value of few bits that should be `value`; empty where nothing is."""
    beyond = np.isfinite(value) & ~np.isfinite(mine)
    if beyond.any():
        return f"value {name!r} is {mine[beyond][0]}, must be {value[beyond][0]:g}"
    with np.errstate(over="ignore"):
        verdict = agreement(mine, value.astype(mine.dtype), BOUNDS)
    return "" if verdict.ok else f"value {name!r}, on the same values before it, {verdict.why}"


__all__ = ["OUTPUT_MOST", "QuantizedAllowance"]
