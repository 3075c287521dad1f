"""What every source model offers, and how the errors of the packages that run one are named."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pinnace import _core
from pinnace.types import Array


class Source(Protocol):
    """Runs the source model. Inputs and outputs are in the order of the imported model's.

    A source may have more:
    steps     per input what one step of its quantisation is, 0 for none, where it computes on integers in arithmetic of
              its own. Results may differ by what such a step does to them.
    run_steps several calls in a row, with what they leave behind: see steps_of().
    float64   the same model in double precision: see arbiter_of().
    rounded   of such a one: the model with the errors of a rounding.Rounding at every operator that rounds.
    signed    the same model with signs of eigenvectors and singular vectors by the operators' rule: see signed_of().
    check_ends  raises Unsupported for inputs on which the source's loops run too long: see check_ends().
    excused   how far outputs may be off, relative to their largest magnitude, where ties of its roundings explain it.
    rounded_types  dtypes of inner values to compare by with_values, where they are not the integers of a quantisation.
    with_values  with inner values given by name in place of its own: outputs, and per name what it would have computed.
    """

    @property
    def description(self) -> str:
        """What runs it: "torch 2.13"."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order, flattened as the importer flattens them."""

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by the names that the importer keeps, as far as the source can give them."""


@dataclass(frozen=True)
class Steps:
    """Calls in a row of one model: outputs per call, and its states after the last by name, as far as it has them."""

    outputs: list[list[Array]]
    states: dict[str, Array] = field(default_factory=dict)


def steps_of(source: Source, steps: Sequence[Sequence[Array]]) -> Steps:
    """Runs a source on one list of inputs after the other, from its initial state on."""
    run: Callable[[Sequence[Sequence[Array]]], Steps] | None = getattr(source, "run_steps", None)
    return run(steps) if run else Steps([source.run(inputs) for inputs in steps])


def check_ends(source: Source, inputs: Sequence[Array]) -> None:
    """Unsupported: on these inputs the source, and so its program, would run very long, perhaps without end."""
    check: Callable[[Sequence[Array]], None] | None = getattr(source, "check_ends", None)
    if check:
        check(inputs)


def arbiter_of(source: Source) -> Source | None:
    """What computes the source's model in float64, by other code than ours; None where nothing can."""
    make: Callable[[], Source | None] | None = getattr(source, "float64", None)
    return make() if make else None


def signed_of(source: Source) -> Source | None:
    """The source's model with signs of eigenvectors and singular vectors as the operators `eigh` and `svd` have them;
    None where nothing can give it such."""
    make: Callable[[], Source] | None = getattr(source, "signed", None)
    return make() if make else None


@contextlib.contextmanager
def source_errors(description: str) -> Iterator[None]:
    """Turns what another package raises when it runs a source, for which there is no list, into InvalidArgument, but
    for MemoryError, which is OutOfMemory.
    """
    try:
        yield
    except _core.Error:
        raise
    except MemoryError as error:
        raise _core.OutOfMemory(f"running the source: {description}") from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}".strip()
        raise _core.InvalidArgument(f"the source cannot be run on these inputs: {description}: {text}") from error


__all__ = ["Source", "Steps", "arbiter_of", "check_ends", "signed_of", "source_errors", "steps_of"]
