"""Samples of a calibration: whatever a user's iterable gives, as arrays in the order of a program's inputs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.arrays import input_array, ordered_inputs
from pinnace.files import one_line
from pinnace.types import Array, TensorSpec


@dataclass(frozen=True)
class Call:
    """The arrays of one call, in the order of the inputs, and the number of the sample that it is, or is a part of."""

    sample: int
    arrays: list[Array]


class SampleRefused(Exception):
    """What is wrong with a sample. Its number may be within a part of the data set: whoever knows of the whole makes an
    InvalidArgument of it."""

    def __init__(self, number: int, said: str) -> None:
        """said: follows "calibration sample 3"."""
        super().__init__(number, said)
        self.number, self.said = number, said

    def error(self, before: int = 0) -> _core.InvalidArgument:
        """before: samples of the data set before this part."""
        return _core.InvalidArgument(f"calibration sample {before + self.number}{self.said}")


def samples_of(calibration: Any, specs: Mapping[str, TensorSpec], names: Mapping[str, str]) -> Iterator[Call]:
    """One call after the other.

    names: of inputs that the program calls otherwise than the model of which the user knows. A batch that is a multiple
    of a fixed first dimension is several calls.

    SampleRefused: what the iterable gives is no sample, or the iterable itself fails. InvalidArgument: it is none.
    """
    given = calibration
    if callable(calibration):
        with _users_code(0):
            given = calibration()
    if not isinstance(given, Iterable):
        raise _core.InvalidArgument(f"calibration() gave {type(given).__name__}, must give an iterable of samples")
    for number, sample in enumerate(_guarded(given)):
        try:
            arrays = [np.asarray(a) for a in ordered_inputs(specs, _by_name(sample, specs, names))]
        except _core.InvalidArgument as error:
            raise SampleRefused(number, f": {one_line(error)}") from None
        for call in _calls(arrays, list(specs.values())):
            yield Call(number, call)


def _guarded(given: Iterable[Any]) -> Iterator[Any]:
    with _users_code(0):
        iterator = iter(given)
    for number in itertools.count():
        with _users_code(number):
            sample = next(iterator, _END)
        if sample is _END:
            return
        yield sample


_END = object()


@contextlib.contextmanager
def _users_code(number: int) -> Iterator[None]:
    """For a block that reads a sample: whatever it raises is SampleRefused."""
    try:
        yield
    except _core.Error:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".strip()
        raise SampleRefused(number, f" cannot be read: {text}") from error


def _by_name(sample: Any, specs: Mapping[str, TensorSpec], names: Mapping[str, str]) -> Mapping[str, Any]:
    if isinstance(sample, Mapping):
        return {names.get(name, name): value for name, value in sample.items()}
    values: Sequence[Any] = sample if isinstance(sample, (list, tuple)) else [sample]
    if len(specs) == 1 and len(values) == 2 and isinstance(sample, (list, tuple)):
        values = values[:1]  # (input, label), as data sets for training give them
    if len(values) != len(specs):
        takes = ", ".join(map(repr, specs))
        raise _core.InvalidArgument(f"has {len(values)} arrays, the program takes {len(specs)} ({takes})")
    return dict(zip(specs, values, strict=True))


def _calls(arrays: list[Array], specs: Sequence[TensorSpec]) -> Iterator[list[Array]]:
    firsts = {spec.shape[0] if spec.shape else None for spec in specs}
    batch = {array.shape[0] if array.ndim else None for array in arrays}
    if len(firsts) == 1 and len(batch) == 1:
        (size,), (count,) = firsts, batch
        if isinstance(size, int) and count is not None and 0 < size < count and count % size == 0:
            for start in range(0, count, size):
                yield [np.ascontiguousarray(array[start : start + size]) for array in arrays]
            return
    yield arrays


class Kept:
    """The first calls, for measuring errors: at most 8, of at most 64 MB together."""

    MOST, MOST_BYTES = 8, 64 << 20

    def __init__(self) -> None:
        """Holds none."""
        self.samples: list[list[Array]] = []
        self.full = False
        self._bytes = 0

    def offer(self, sample: list[Array]) -> None:
        """Keeps a copy where there is room; the first always. After one for which there is none, no other is kept: so
        these are the first calls of the data set, however its parts come."""
        size = sum(array.nbytes for array in sample)
        fits = not self.samples or self._bytes + size <= self.MOST_BYTES
        if fits and not self.full:
            self.samples.append([np.array(input_array("a sample", array)) for array in sample])
            self._bytes += size
        self.full = self.full or not fits or len(self.samples) >= self.MOST


__all__ = ["Call", "Kept", "SampleRefused", "samples_of"]
