"""Calibration and scores on the workers of a Dask cluster: what is sent, what runs there, and how it is put together.

Statistics are sums of integers, so they are the same however the data set is divided; all else is taken in the order of
the data set.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pinnace import _core
from pinnace.cluster import Cluster, Job, Shared, partitions_of, slices
from pinnace.files import failures_named, temporary_folder
from pinnace.program import Program
from pinnace.quantize.calibration import Calibration, Observer
from pinnace.quantize.samples import Call, Kept, SampleRefused, samples_of
from pinnace.quantize.scoring import Candidate, Candidates
from pinnace.session import Session
from pinnace.types import Array, custom_ops

# At most so many calls of a user's iterable are sent at once.
SLICE_CALLS = 64


@dataclass(frozen=True)
class Slice:
    """Calls that come from the client's process."""

    calls: list[Call]


@dataclass
class Part:
    """What a worker found in one part of the data set.

    samples     how many it has: numbers within the next part begin there.
    calls       how many runs they were.
    statistics  by value, compressed.
    kept        the first calls, where they were asked for.
    refused     what is wrong with a sample; the rest has not been run then.
    kernels     that computed it: other ones may round otherwise.
    """

    samples: int = 0
    calls: int = 0
    statistics: bytes = b""
    kept: list[list[Array]] = field(default_factory=list)
    refused: tuple[int, str] | None = None
    kernels: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Observed:
    """What calibration needs on a worker: the float program, what to observe, names of inputs."""

    program: bytes
    values: list[dict[str, Any]]
    names: dict[str, str]


# ---- on a worker, where each job has one thread: the cluster has as many jobs as threads


def _opened(observed: Observed) -> tuple[Program, Observed]:
    return Program.from_bytes(observed.program), observed


def _calls(samples: Any, program: Program, names: Mapping[str, str]) -> Iterator[Call]:
    return iter(samples.calls) if isinstance(samples, Slice) else samples_of(samples, program.inputs, names)


def calibrate_part(shared: Shared, samples: Any, first: bool) -> Part:
    """samples: a Slice, or a partition of the user's. first: whether to keep calls."""
    program, observed = shared.opened(_opened)
    observer = Observer(program, observed.values, threads=1)
    part, kept = Part(), Kept()
    try:
        for call in _calls(samples, program, observed.names):
            observer.add(call)
            part.samples, part.calls = call.sample + 1, part.calls + 1
            if first:
                kept.offer(call.arrays)
    except SampleRefused as refused:
        part.refused = refused.number, refused.said
    part.kept = kept.samples
    part.kernels = kernels_of(observer.session)
    gathered = [s.to_bytes() for s in observer.statistics.values()]
    part.statistics = zlib.compress(b"".join(len(b).to_bytes(8, "little") + b for b in gathered), 1)
    return part


def first_calls(shared: Shared, samples: Any) -> list[list[Array]]:
    """Of a partition, as many as are kept at all."""
    program, observed = shared.opened(_opened)
    kept = Kept()
    for call in _calls(samples, program, observed.names):
        kept.offer(call.arrays)
        if kept.full:
            break
    return kept.samples


def _candidates(sent: tuple[bytes, dict[str, Any]]) -> Candidates:
    data, rest = sent
    with temporary_folder() as folder:  # what is mapped stays when its name goes
        path = Path(folder) / "float.pnc"
        with failures_named(path, "the float program, on a worker"):
            path.write_bytes(data)
        ready = _core.Model.load(str(path), ops=custom_ops())
    return Candidates(ready, Program.from_bytes(data), **rest, threads=1)


def score_of(shared: Shared, candidate: Candidate | None) -> float:
    """Its metric, or less of it the larger its worst error is."""
    return float(shared.opened(_candidates).score(candidate))


def worst_error_of(shared: Shared, candidate: Candidate | None) -> float:
    """Of one of its outputs."""
    return float(shared.opened(_candidates).worst_error(candidate))


# ---- in the client's process


def kernels_of(session: Session) -> frozenset[str]:
    """That a session's nodes run."""
    return frozenset(row.kernel for row in session.placement if row.kernel)


def calibrate_on(
    cluster: Cluster,
    program: Program,
    values: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    calibration: Any,
    partitioned: bool,
) -> Calibration:
    """calibrate() of calibration.py on workers, with the same result. partitioned: the data set is Dask's.

    InvalidArgument as there; also a partition that cannot be computed. DeviceLost: its workers died. Unsupported: the
    model has states, so that each sample follows the one before.
    """
    if program.states:
        raise _core.Unsupported(
            f"quantize: client= takes no model with states ({', '.join(map(repr, program.states))}): each of its "
            "samples follows the one before"
        )
    sent = Observed(program.to_bytes(), [dict(value) for value in values], dict(names))
    shared = cluster.share(sent, "the float program")
    done = Calibration({value["name"]: _core.ValueStatistics() for value in values})
    kept, kernels, before = Kept(), set(), 0
    refused: list[SampleRefused] = []
    parts = partitions_of(calibration) if partitioned else []

    def place(number: int) -> Callable[[], str]:
        return lambda: f"calibration partition {number} of {len(parts)}, samples from {before} on"

    def sliced() -> Iterator[Job]:
        every = _offered(samples_of(calibration, program.inputs, names), kept, refused)
        for calls in slices(every, _bytes_of, SLICE_CALLS):
            first, last = calls[0].sample, calls[-1].sample
            named = f"calibration samples {first} to {last}" if last > first else f"calibration sample {first}"
            yield Job(named, (Slice(calls), False))

    if partitioned:  # each has at least one sample as a rule, so that the first calls are in the first few
        jobs: Sequence[Job] | Iterator[Job] = [
            Job(place(number), (part, number < Kept.MOST), True) for number, part in enumerate(parts)
        ]
    else:
        jobs = sliced()
    with closing(cluster.results(calibrate_part, shared, jobs, "calibrating")) as results:
        for number, part in enumerate(results):
            if part.refused is not None:
                raise SampleRefused(*part.refused).error(before)
            _merge(done, part)
            if partitioned:
                if number >= Kept.MOST and part.calls and not kept.full:
                    job = Job(place(number), (parts[number],), True)
                    with closing(cluster.results(first_calls, shared, [job], "calibrating")) as found:
                        part.kept = next(found)
                for arrays in part.kept:
                    kept.offer(arrays)
                before += part.samples
            kernels.add(part.kernels)
    if refused:
        raise refused[0].error()
    done.kept = kept.samples
    if len(kernels) > 1:
        differing = sorted(frozenset.union(*kernels) - frozenset.intersection(*kernels))
        done.said.append(
            f"calibration ran on workers of {len(kernels)} kinds, whose kernels may round otherwise: "
            + ", ".join(differing[:6])
        )
    return done.checked()


def _merge(done: Calibration, part: Part) -> None:
    done.samples += part.calls
    if not part.calls:
        return
    try:
        data = zlib.decompress(part.statistics)
    except zlib.error as error:
        raise _core.CorruptFile(f"statistics that a worker sent: {error}") from None
    at = 0
    for statistics in done.statistics.values():
        size = int.from_bytes(data[at : at + 8], "little")
        statistics.merge(_core.ValueStatistics.from_bytes(data[at + 8 : at + 8 + size]))
        at += 8 + size


def _offered(calls: Iterator[Call], kept: Kept, refused: list[SampleRefused]) -> Iterator[Call]:
    """Each call, which is offered to be kept. A sample that is refused ends the data set, and is the error of the whole
    if the calls before it have none."""
    try:
        for call in calls:
            kept.offer(call.arrays)
            yield call
    except SampleRefused as error:
        refused.append(error)


def _bytes_of(call: Call) -> int:
    return sum(array.nbytes for array in call.arrays)


class ScoresOn:
    """Scores of candidates, several at a time."""

    def __init__(self, cluster: Cluster, candidates: Candidates) -> None:
        """InvalidArgument: the metric cannot be pickled."""
        self._cluster = cluster
        rest = {name: getattr(candidates, name) for name in ("scales", "means", "kept", "metric", "names")}
        name = "the metric" if candidates.metric is not None else "the float program"
        self._shared = cluster.share((candidates.float_program.to_bytes(), rest), name)

    def __call__(
        self, function: Callable[[Shared, Candidate | None], float], asked: Mapping[str, Candidate | None]
    ) -> Iterator[float]:
        """One number for each candidate, in order; asked: by what it is, for errors."""
        jobs = [Job(f"accuracy control, {what}", (candidate,)) for what, candidate in asked.items()]
        with closing(self._cluster.results(function, self._shared, jobs, "controlling accuracy")) as results:
            yield from results


__all__ = ["SLICE_CALLS", "ScoresOn", "calibrate_on", "score_of", "worst_error_of"]
