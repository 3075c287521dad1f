"""Runs of a session, timed: the one implementation behind `pinnace bench`, its table and its energy.

cpp/report/measure.h has the same definitions for devices without Python.
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

WARM_UP_SECONDS = 0.05  # a processor that was idle runs slowly for a while
TURN_SECONDS = 0.01  # of consecutive runs over which processor time is compared with time, at least
LEAST_RUNS = 5  # where a limit of time is given
OTHERS_SECONDS = 0.2  # least time over which other programs' load can be told: the system counts it in hundredths
OTHERS_LIMIT = 0.05  # of a processor: what other programs use of more disturbs, as in bench/
TRIES = 4  # of figures that other programs disturb


@dataclass(frozen=True)
class Spread:
    """The middle of several figures, and what a tenth of them are below and above."""

    median: float
    p10: float
    p90: float


@dataclass(frozen=True)
class Runs:
    """What runs of a session took.

    runs          how many were timed, after a warm-up.
    ms            of one run.
    cpu_per_wall  CPU consumption: processor seconds of the whole process by seconds, over turns of consecutive runs of
                  a hundredth of a second and more.
    turns         how many of these.
    cpu_ms        processor time of the process for one run, the mean.
    others        what other programs used meanwhile, in processors; None where that is not known.
    """

    runs: int
    ms: Spread
    cpu_per_wall: Spread
    turns: int
    cpu_ms: float
    others: float | None

    @property
    def disturbed(self) -> bool:
        """Whether other programs used so much that the figures are not to be trusted."""
        return self.others is not None and self.others > OTHERS_LIMIT


def spread_of(figures: Sequence[float]) -> Spread:
    """Of at least one figure."""
    ordered = sorted(figures)
    count = len(ordered)
    return Spread(statistics.median(ordered), ordered[count // 10], ordered[count * 9 // 10])


def processor_seconds() -> float:
    """What all threads of this process have used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def busy_seconds(path: Path = Path("/proc/stat")) -> float | None:
    """What all processes of the machine have used, all processors together; None where the system does not say."""
    try:
        fields = [int(part) for part in path.read_text().split("\n", 1)[0].split()[1:]]
    except (OSError, ValueError):
        return None
    return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK") if len(fields) >= 8 else None


class OthersLoad:
    """What other programs use from now on, in processors."""

    def __init__(self) -> None:
        """Begins now."""
        self._start = time.perf_counter()
        self._busy, self._own = busy_seconds(), processor_seconds()

    def so_far(self) -> float | None:
        """Until now; None where that is not known, or too little time has passed to tell."""
        wall = time.perf_counter() - self._start
        busy = busy_seconds()
        if busy is None or self._busy is None or wall < OTHERS_SECONDS:
            return None
        return max(0.0, busy - self._busy - (processor_seconds() - self._own)) / wall


def time_runs(run: Callable[[], object], most: int, seconds: float | None = None) -> Runs:
    """Times `run`, which has run once, `most` times; with `seconds`, only until they have passed, but LEAST_RUNS times.
    Errors are those of `run`.
    """
    begin = time.perf_counter()
    while True:
        run()
        if time.perf_counter() - begin >= WARM_UP_SECONDS:
            break
    others = OthersLoad()
    times: list[float] = []
    consumption: list[float] = []
    start, cpu_start = time.perf_counter(), processor_seconds()
    turn_start, cpu_turn = start, cpu_start
    while len(times) < most:
        before = time.perf_counter()
        run()
        now = time.perf_counter()
        times.append((now - before) * 1e3)
        last = len(times) == most or (seconds is not None and len(times) >= LEAST_RUNS and now - start >= seconds)
        if now - turn_start >= TURN_SECONDS or (last and not consumption):
            cpu = processor_seconds()
            consumption.append((cpu - cpu_turn) / (now - turn_start))
            turn_start, cpu_turn = time.perf_counter(), cpu
        if last:
            break
    cpu_ms = (processor_seconds() - cpu_start) * 1e3 / len(times)
    return Runs(len(times), spread_of(times), spread_of(consumption), len(consumption), cpu_ms, others.so_far())


def calmest_runs(time: Callable[[], Runs]) -> Runs:
    """What `time` gives when nothing disturbs it; of TRIES tries that were disturbed, the one that was least."""
    tried: list[Runs] = []
    while len(tried) < TRIES:
        tried.append(time())
        if not tried[-1].disturbed:
            return tried[-1]
    return min(tried, key=lambda runs: runs.others or 0.0)


__all__ = [
    "OTHERS_LIMIT",
    "TRIES",
    "OthersLoad",
    "Runs",
    "Spread",
    "busy_seconds",
    "calmest_runs",
    "processor_seconds",
    "spread_of",
    "time_runs",
]
