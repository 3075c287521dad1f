"""compare() on the workers of a Dask cluster: what is sent, what runs there, and how it is put together."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pinnace import _core
from pinnace.cluster import Cluster, Job, Shared, is_partitioned, partitions_of, slices
from pinnace.program import Program
from pinnace.sources.base import Source
from pinnace.sources.opened import source_of
from pinnace.verify.compared_parts import InputRefused, Part, compared_part

# At most so many inputs of a user's iterable are sent at once.
SLICE_INPUTS = 8


@dataclass(frozen=True)
class Asked:
    """What a comparison needs on a worker. first: the first input of the data set, by which a module is exported."""

    program: Program
    reference: Any
    columns: dict[str, tuple[str, str]]
    tolerance: dict[str, float]
    first: dict[str, Any]


@dataclass(frozen=True)
class Slice:
    """Inputs that come from the client's process."""

    feeds: list[Any]


class _Opened:
    """A source runs one thread at a time."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.lock = asked, threading.Lock()
        self._source: Source | None = None

    @property
    def source(self) -> Source:
        if self._source is None:
            self._source = source_of(self.asked.reference, self.asked.first)
        return self._source


def compare_part(shared: Shared, inputs: Any, second: bool) -> Part:
    """inputs: a Slice, or a partition of the user's. second: whether they begin the data set."""
    feeds = list(inputs.feeds if isinstance(inputs, Slice) else inputs)
    if not feeds:
        return Part()
    opened: _Opened = shared.opened(_Opened)
    asked = opened.asked
    try:
        for number, feed in enumerate(feeds):
            _check(feed, number)
        with opened.lock:
            return compared_part(asked.program, opened.source, feeds, asked.columns, asked.tolerance, second, threads=1)
    except InputRefused as error:
        return Part(refused=(error.number, error.said))


def first_feed(shared: None, inputs: Any) -> list[Any]:
    """The first input of a partition, alone; nothing where there is none."""
    return list(itertools.islice(inputs, 1))


def _check(feed: Any, number: int) -> None:
    if not isinstance(feed, Mapping):
        raise InputRefused(number, f"it must be a dict of input names and arrays, is {type(feed).__name__}")


# ---- in the client's process


def compared_on(
    cluster: Cluster,
    program: Program,
    reference: Any,
    inputs: Any,
    columns: Mapping[str, tuple[str, str]],
    tolerance: Mapping[str, float],
) -> Part:
    """compared_part() on workers, with the same result.

    InvalidArgument: there are no inputs, one does not fit, with its number, the reference cannot be pickled or run, or
    a partition cannot be computed. DeviceLost: workers died.
    """
    parts = partitions_of(inputs) if is_partitioned(inputs) else None
    whole = Part()

    def place(number: int) -> Callable[[], str]:
        return lambda: f"compare, partition {number} of {len(parts or [])}, inputs from {whole.count} on"

    if parts is not None:
        begins, first = _first(cluster, parts, place)
        jobs: Sequence[Job] | Iterator[Job] = [
            Job(place(number), (part, number == begins), True) for number, part in enumerate(parts)
        ]
    else:
        feeds = iter([inputs] if isinstance(inputs, Mapping) else inputs)
        first = next(feeds, None)
        jobs = _sliced(itertools.chain([first], feeds))
    if first is None:
        raise _core.InvalidArgument("compare needs at least one dict of inputs")
    try:
        _check(first, 0)
    except InputRefused as error:
        raise error.error() from None
    asked = Asked(program, _sendable(reference), dict(columns), dict(tolerance), dict(first))
    shared = cluster.share(asked, "the reference")
    with closing(cluster.results(compare_part, shared, jobs, "comparing")) as results:
        for part in results:
            if part.refused is not None:
                raise InputRefused(*part.refused).error(whole.count)
            whole.add(part)
    return whole.without_unavailable()


def _first(cluster: Cluster, parts: Sequence[Any], place: Callable[[int], Callable[[], str]]) -> tuple[int, Any]:
    """The partition with the first input, and that."""
    for number, part in enumerate(parts):
        with closing(cluster.results(first_feed, None, [Job(place(number), (part,), True)], "comparing")) as found:
            if feeds := next(found):
                return number, feeds[0]
    return 0, None


def _sliced(feeds: Iterable[Any]) -> Iterator[Job]:
    before = 0
    for some in slices(feeds, _bytes_of, SLICE_INPUTS):
        last = before + len(some) - 1
        named = f"compare, inputs {before} to {last}" if last > before else f"compare, input {before}"
        yield Job(named, (Slice(some), before == 0))
        before += len(some)


def _bytes_of(feed: Any) -> int:
    return sum(int(getattr(x, "nbytes", 0)) for x in feed.values()) if isinstance(feed, Mapping) else 0


def _sendable(reference: Any) -> Any:
    """A path from wherever a worker stands; a file's contents."""
    if isinstance(reference, str | os.PathLike):
        return os.path.abspath(reference)
    return reference.read() if callable(getattr(reference, "read", None)) else reference


__all__ = ["SLICE_INPUTS", "compare_part", "compared_on", "first_feed"]
