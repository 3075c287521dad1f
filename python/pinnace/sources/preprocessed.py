"""A source model behind the preprocessing of a picture, in numpy: what a program with both is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace.picture_arithmetic import PictureArithmetic
from pinnace.preprocessing import Preprocessing, core_fields
from pinnace.sources.base import Source, Steps, steps_of
from pinnace.types import Array, TensorSpec

if TYPE_CHECKING:
    from pinnace.sources.rounding import Rounding


@dataclass(frozen=True)
class Stage:
    """One input of a model that is made of a picture.

    how    what happens to the picture.
    place  of the input among the model's.
    spec   of that input.
    """

    how: Preprocessing
    place: int
    spec: TensorSpec

    def prepared(self, inputs: Sequence[Array], exact: bool = False) -> list[Array]:
        """The model's inputs out of those with the picture's planes. exact: numbers in float64."""
        count = len(self.how.input_names)
        planes = inputs[self.place : self.place + count]
        made = self._typed(PictureArithmetic(core_fields(self.how)), planes, exact)
        return [*inputs[: self.place], made, *inputs[self.place + count :]]

    def _typed(self, arithmetic: PictureArithmetic, planes: Sequence[Array], exact: bool) -> Array:
        pixels = arithmetic.bytes_of(planes)
        plain = self.spec.dtype == np.uint8 and self.spec.quantization is None
        made = pixels if plain else arithmetic.exact_numbers(pixels) if exact else arithmetic.numbers(pixels)
        if self.how.output_layout == "nhwc":
            made = made.transpose(0, 2, 3, 1)
        if len(self.spec.shape) == 3:
            made = made[0]
        quantization = self.spec.quantization
        if quantization is not None:
            limits = np.iinfo(self.spec.dtype)
            steps = np.rint(made.astype(np.float32) / np.float32(quantization.scales[0]))
            made = np.clip(steps + quantization.zero_points[0], limits.min, limits.max)
        keeps = exact and made.dtype == np.float64 and self.spec.dtype == np.float32
        return np.ascontiguousarray(made if keeps else made.astype(self.spec.dtype))


class PreprocessedSource:
    """A source with a Stage before it."""

    def __init__(self, source: Source, stage: Stage, exact: bool = False) -> None:
        """exact: the source computes in float64, and so does the conversion."""
        self._source, self._stage, self._exact = source, stage, exact

    @property
    def description(self) -> str:
        """What runs it."""
        return f"{self._source.description} behind numpy's preprocessing"

    def _prepared(self, inputs: Sequence[Array]) -> list[Array]:
        return self._stage.prepared(inputs, self._exact)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order."""
        return self._source.run(self._prepared(inputs))

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values of the model, and its input."""
        prepared = self._prepared(inputs)
        found = self._source.layers(prepared, names - {self._stage.spec.name})
        own = {self._stage.spec.name: prepared[self._stage.place]} if self._stage.spec.name in names else {}
        return {**found, **own}

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """Calls in a row."""
        return steps_of(self._source, [self._prepared(inputs) for inputs in steps])

    def __getattr__(self, name: str) -> Any:
        """What not every source has: where this one's has it, with pictures for inputs."""
        if name.startswith("_"):
            raise AttributeError(name)
        inner: Any = getattr(self._source, name)
        if name == "float64":
            return lambda: self._behind(inner(), True)
        if name == "signed":
            return lambda: self._behind(inner(), self._exact)
        if name == "rounded":
            return lambda rounding: self._rounded(inner, rounding)
        if name in ("check_ends", "optimised"):
            return lambda inputs: inner(self._prepared(inputs))
        if name == "with_values":
            return lambda inputs, *rest, **more: inner(self._prepared(inputs), *rest, **more)
        if name == "exporter_changes":
            return lambda steps, call: inner([self._prepared(inputs) for inputs in steps], call)
        if name == "steps":
            at, planes = self._stage.place, len(self._stage.how.input_names)
            return [*inner[:at], *[0.0] * planes, *inner[at + 1 :]]
        if name in ("excused", "rounded_types"):
            return inner
        raise AttributeError(name)

    def _behind(self, source: Source | None, exact: bool) -> Source | None:
        return None if source is None else PreprocessedSource(source, self._stage, exact)

    def _rounded(self, make: Any, rounding: Rounding) -> Source:
        return PreprocessedSource(make(rounding), self._stage, self._exact)


def behind(source: Source, stages: Sequence[Stage]) -> Source:
    """The source with these stages before it, the last of which was added last."""
    for stage in stages:
        source = PreprocessedSource(source, stage)
    return source


def model_inputs(arrays: Mapping[str, Array], stages: Sequence[Stage], names: Sequence[str]) -> dict[str, Array]:
    """Arrays for the inputs of the model itself, which has `names`, out of those with pictures."""
    values: list[Array] = list(arrays.values())
    for stage in reversed(stages):
        values = stage.prepared(values)
    return dict(zip(names, values, strict=True))


__all__ = ["PreprocessedSource", "Stage", "behind", "model_inputs"]
