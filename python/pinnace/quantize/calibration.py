"""Calibration: runs on samples, and the scale and zero point of each value that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.files import one_line
from pinnace.program import Program
from pinnace.progress import counted
from pinnace.quantize.options import Int8
from pinnace.quantize.samples import Call, Kept, SampleRefused
from pinnace.session import Session
from pinnace.types import Array


@dataclass
class Calibration:
    """What the samples have shown.

    statistics  of each value, by name.
    samples     how many calls there were.
    kept        the first of them.
    said        what a user should know of how they ran.
    """

    statistics: dict[str, Any]
    samples: int = 0
    kept: list[list[Array]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def checked(self) -> Calibration:
        """Itself. InvalidArgument: there was no sample."""
        if not self.samples:
            raise _core.InvalidArgument("calibration has no sample: ranges of values follow from runs on some")
        return self

    def scales(self, values: Sequence[Mapping[str, Any]], options: Int8) -> list[tuple[str, float, int]]:
        """(value, scale, zero point) by the options' observer; values of a group share the hull of their ranges."""
        hulls: dict[int, tuple[float, float]] = {}
        for value in values:
            low, high = self.statistics[value["name"]].range(options.observer, options.percentile)
            before = hulls.get(value["group"], (low, high))
            hulls[value["group"]] = (min(before[0], low), max(before[1], high))
        return [(value["name"], *_core.byte_scale(*hulls[value["group"]])) for value in values]

    def means(self, values: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[float]]]:
        """(value, mean of each channel) of those that enter products."""
        return [
            (value["name"], self.statistics[value["name"]].channel_means)
            for value in values
            if value["channel_axis"] >= 0
        ]


class Observer:
    """Runs calls of the float program and gathers what its values are like."""

    def __init__(self, program: Program, values: Sequence[Mapping[str, Any]], threads: int = 0) -> None:
        """values: what has to be observed, as the sites name it. threads: of the session; 0: as many as help."""
        self.statistics = {value["name"]: _core.ValueStatistics() for value in values}
        inner = [value for value in values if value["name"] not in program.inputs]
        keep = [value["name"] for value in inner]
        self.session = Session(program, "cpu", threads, keep=keep, plan_cache=2)
        first, inputs = len(program.outputs), list(program.inputs)
        self._observed = [
            (first + i, self.statistics[value["name"]], value["channel_axis"]) for i, value in enumerate(inner)
        ]
        self._entering = [(inputs.index(value["name"]), value) for value in values if value["name"] in program.inputs]

    def add(self, call: Call) -> None:
        """SampleRefused: it does not fit the inputs, or an element of a value is NaN or infinite."""
        try:
            for place, value in self._entering:
                self._add_input(value, call.arrays[place])
            _core.observe(self.session._core, call.arrays, self._observed)
        except _core.InvalidArgument as error:
            raise SampleRefused(call.sample, f": {one_line(error)}") from None

    def _add_input(self, value: Mapping[str, Any], array: Array) -> None:
        name = value["name"]
        try:
            if array.dtype != np.float32:
                raise _core.InvalidArgument(f"must be float32 to be quantised, is {array.dtype}")
            self.statistics[name].add(array, value["channel_axis"])
        except _core.InvalidArgument as error:
            raise _core.InvalidArgument(f"input {name!r}: {error}") from None


def calibrate(
    program: Program, values: Sequence[Mapping[str, Any]], samples: Iterator[Call], shown: bool, threads: int = 0
) -> Calibration:
    """Runs the float program on every sample. values: what has to be observed, as the sites name it.

    InvalidArgument: no sample, one that does not fit the inputs, or one whose values are not finite; with its number.
    """
    observer = Observer(program, values, threads)
    done = Calibration(observer.statistics)
    kept = Kept()
    with counted("calibrating", shown) as step:
        try:
            for call in samples:
                observer.add(call)
                kept.offer(call.arrays)
                done.samples += 1
                step()
        except SampleRefused as refused:
            raise refused.error() from None
    done.kept = kept.samples
    return done.checked()


__all__ = ["Calibration", "Observer", "calibrate"]
