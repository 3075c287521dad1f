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
from pinnace.quantize.samples import Kept
from pinnace.session import Session
from pinnace.types import Array


@dataclass
class Calibration:
    """What the samples have shown.

    statistics  of each value, by name.
    samples     how many calls there were.
    kept        the first of them.
    """

    statistics: dict[str, Any]
    samples: int = 0
    kept: list[list[Array]] = field(default_factory=list)

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


def calibrate(
    program: Program, values: Sequence[Mapping[str, Any]], samples: Iterator[list[Array]], shown: bool
) -> Calibration:
    """Runs the float program on every sample. values: what has to be observed, as the sites name it.

    InvalidArgument: no sample, one that does not fit the inputs, or one whose values are not finite; with its number.
    """
    statistics = {value["name"]: _core.ValueStatistics() for value in values}
    inputs = list(program.inputs)
    inner = [value for value in values if value["name"] not in program.inputs]
    session = Session(program, "cpu", keep=[value["name"] for value in inner], plan_cache=2)
    first = len(program.outputs)
    observed = [(first + i, statistics[value["name"]], value["channel_axis"]) for i, value in enumerate(inner)]
    entering = [(inputs.index(value["name"]), value) for value in values if value["name"] in program.inputs]
    done = Calibration(statistics)
    kept = Kept()
    with counted("calibrating", shown) as step:
        for arrays in samples:
            try:
                for place, value in entering:
                    statistics[value["name"]].add(_floats(arrays[place]), value["channel_axis"])
                _core.observe(session._core, arrays, observed)
            except _core.InvalidArgument as error:
                raise _core.InvalidArgument(f"calibration sample {done.samples}: {one_line(error)}") from None
            kept.offer(arrays)
            done.samples += 1
            step()
    if not done.samples:
        raise _core.InvalidArgument("calibration has no sample: ranges of values follow from runs on some")
    done.kept = kept.samples
    return done


def _floats(array: Array) -> Array:
    if array.dtype != np.float32:
        raise _core.InvalidArgument(f"an input that is quantised must be float32, is {array.dtype}")
    return array


__all__ = ["Calibration", "calibrate"]
