"""Passes that optimise a model's graph: which there are, and what each did."""

from __future__ import annotations

from dataclasses import dataclass

from pinnace import _core


@dataclass(frozen=True)
class PassInfo:
    """One pass of this build.

    name     what load(disabled_passes=...) takes.
    summary  what it rewrites, in one sentence.
    """

    name: str
    summary: str


@dataclass(frozen=True)
class PassReport:
    """What one pass did to a model.

    name           its name.
    changes        how many rewrites it made.
    milliseconds   how long it took.
    largest_error  with load(check_passes=True): the largest relative difference that it caused; else 0.
    """

    name: str
    changes: int
    milliseconds: float
    largest_error: float


def passes() -> list[PassInfo]:
    """Every pass, in the order in which they run. Takes no arguments, raises nothing."""
    return [PassInfo(name, summary) for name, summary in _core.passes()]


__all__ = ["PassInfo", "PassReport", "passes"]
