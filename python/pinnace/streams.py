"""What a program that takes its inputs in chunks says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from pinnace import _core


@dataclass(frozen=True)
class Stream:
    """An input that comes in chunks.

    axis      along which they are cut.
    latency   by how many elements of this input outputs lag behind.
    multiple  sizes of chunks are multiples of it.
    """

    axis: int
    latency: int
    multiple: int


@dataclass(frozen=True)
class StreamedInput:
    """What finish() needs of an input: its stream, and how many elements of nothing bring out what is left."""

    stream: Stream
    tail: int


@dataclass(frozen=True)
class StreamedOutput:
    """An output of a stream: after T elements of input the whole has T * rate + more elements along `axis`."""

    axis: int
    rate: Fraction
    more: int

    def late(self, latency: int) -> int:
        """By how many of its own elements it lags behind."""
        return int(latency * self.rate)

    def rest(self, latency: int) -> int:
        """How many of its elements are left when the input ends."""
        return max(0, self.late(latency) + self.more)


def streamed_inputs(facts: Mapping[str, str]) -> dict[str, StreamedInput]:
    """Of a program, by its metadata; empty where it takes the whole. CorruptFile: they are not what build() writes."""
    found = {}
    for key, value in facts.items():
        if key.startswith("stream."):
            axis, latency, multiple, tail = _numbers(
                key, value, r"axis (\d+), latency (\d+), multiple (\d+), tail (\d+)"
            )
            found[key.removeprefix("stream.")] = StreamedInput(Stream(axis, latency, multiple), tail)
    return found


def streamed_outputs(facts: Mapping[str, str]) -> dict[str, StreamedOutput]:
    """The same of outputs."""
    found = {}
    for key, value in facts.items():
        if key.startswith("streamed."):
            axis, up, down, more = _numbers(key, value, r"axis (\d+), rate (\d+)/([1-9]\d*), more (-?\d+)")
            found[key.removeprefix("streamed.")] = StreamedOutput(axis, Fraction(up, down), more)
    return found


def _numbers(key: str, value: str, form: str) -> list[int]:
    match = re.fullmatch(form, value)
    if match is None:
        raise _core.CorruptFile(f"metadata {key!r} is {value!r}, which is not of the form that build() writes")
    return [int(number) for number in match.groups()]


__all__ = ["Stream", "StreamedInput", "StreamedOutput", "streamed_inputs", "streamed_outputs"]
