"""What a program that takes its inputs in chunks says of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pinnace import _core


@dataclass(frozen=True)
class Stream:
    """An input that comes in chunks.

    axis      the time axis, along which they are cut.
    latency   by how many elements of this input the outputs are delayed.
    multiple  the size of every chunk is a multiple of it.
    """

    axis: int
    latency: int
    multiple: int


@dataclass(frozen=True)
class StreamedOutput:
    """An output of a program that takes its inputs in chunks. For T elements of the input, the network's output has
    T * rate + more elements along `axis`; chunk by chunk it is delayed by delay(latency) elements.

    axis  the time axis.
    rate  how many elements there are for each element of the input, a Fraction.
    more  how many elements there are beyond that; negative: how many are missing.
    """

    axis: int
    rate: Fraction
    more: int

    def delay(self, latency: int) -> int:
        """How many zeros stand in front of its first element. latency: that of the stream. Raises nothing."""
        return int(latency * self.rate)


def streamed_inputs(core: _core.Program) -> dict[str, Stream]:
    """Of the extension's program, by name in order; empty where it takes the whole. CorruptFile: the metadata say so in
    another form than build() writes."""
    return {row["name"]: Stream(row["axis"], row["latency"], row["multiple"]) for row in core.streamed_inputs}


def streamed_outputs(core: _core.Program) -> dict[str, StreamedOutput]:
    """The same of outputs."""
    return {
        row["name"]: StreamedOutput(row["axis"], Fraction(row["up"], row["down"]), row["more"])
        for row in core.streamed_outputs
    }


__all__ = ["Stream", "StreamedOutput", "streamed_inputs", "streamed_outputs"]
