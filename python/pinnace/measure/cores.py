"""Processors and cores: which processors stand for n cores, whether they are n cores, and keeping the process on them.

Two processors may be two threads of one core, and in a virtual machine the system does not always know. So it is
measured as bench/ measures a machine's peaks: multiply-adds on all of them at once, each thread on its own processor,
beside those of each alone; the best of several runs, repeated where other programs disturbed them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pinnace import _core
from pinnace.measure.runs import OTHERS_LIMIT, OthersLoad
from pinnace.program import Program
from pinnace.session import Session

# Threads of one core do together what one does alone: half, for two. Cores whose clock slows with their number keep
# nine tenths.
LEAST_SHARE = 0.75
_RUN_SECONDS, _RUNS, _ATTEMPTS = 0.02, 7, 3
# One product, which fits the cache of the second level and keeps the multipliers busy.
_PRODUCT = """graph "product" {
  input %a : f32[256,256]
  input %b : f32[256,256]
  %y = mat_mul(%a, %b)
  output "y" %y
}"""


@dataclass(frozen=True)
class Together:
    """What processors do at once, by the sum of what each does alone.

    share   1 for cores, half for two threads of one core.
    others  what other programs used meanwhile, in processors; None where that is not known.
    """

    share: float
    others: float | None


@dataclass(frozen=True)
class Column:
    """A number of cores to measure with.

    cores       how many.
    processors  the system's numbers of those that stand for them; empty where the system has no such sets.
    why         why there can be no figures; empty where there can.
    share       Together.share, where it was measured.
    """

    cores: int
    processors: list[int]
    why: str = ""
    share: float | None = None


def own_processors() -> list[int] | None:
    """The numbers of those that the calling thread may use; None where the system has no such sets."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def columns(
    counts: Sequence[int],
    own: Sequence[int] | None,
    folder: Path = Path("/sys/devices/system/cpu"),
    measure: Callable[[Sequence[int]], Together] | None = None,
) -> list[Column]:
    """A column for each number of cores, in order.

    own     the processors to choose from, as own_processors() gives them.
    folder  where the system says which processors are of one core.
    measure together(), or what stands for it in tests.
    """
    return [_column(count, own, folder, measure or together) for count in counts]


def _column(
    count: int, own: Sequence[int] | None, folder: Path, measure: Callable[[Sequence[int]], Together]
) -> Column:
    have = (os.cpu_count() or 1) if own is None else len(own)
    if count > have:
        return Column(count, [], f"the process may use {have} {'processor' if have == 1 else 'processors'}")
    if own is None:
        return Column(count, [])
    chosen = _of_different_cores(count, own, folder)
    if count == 1:
        return Column(count, chosen)
    names = f"processors {', '.join(map(str, chosen))}"
    known = {core for processor in chosen if (core := _core_of(processor, folder))}
    if 0 < len(known) < count:
        return Column(count, chosen, f"{names} are threads of {len(known)} {'core' if len(known) == 1 else 'cores'}")
    found = measure(chosen)
    if found.share >= LEAST_SHARE:
        return Column(count, chosen, "", found.share)
    said = f"{names} do at once {found.share:.0%} of what each does alone"
    if found.others is not None and found.others > OTHERS_LIMIT:
        why = f"{said}, while other programs used {found.others:.2f} of a processor: whether they are cores is open"
    else:
        why = f"{said}: they are no {count} cores"
    return Column(count, chosen, why, found.share)


def _core_of(processor: int, folder: Path) -> tuple[str, ...] | None:
    """Package, cluster and core by the system's numbers; None where it has none."""
    place = folder / f"cpu{processor}" / "topology"
    try:
        cluster = (place / "cluster_id").read_text() if (place / "cluster_id").exists() else ""
        return (place / "physical_package_id").read_text(), cluster, (place / "core_id").read_text()
    except OSError:
        return None


def _of_different_cores(count: int, own: Sequence[int], folder: Path) -> list[int]:
    """The last ones, as interrupts prefer the first; of one core one, as long as there are cores."""
    first: dict[object, int] = {}
    rest = []
    for processor in reversed(own):
        core = _core_of(processor, folder) or processor
        if core in first:
            rest.append(processor)
        else:
            first[core] = processor
    return sorted([*first.values(), *rest][:count])


def together(processors: Sequence[int]) -> Together:
    """Measures what these processors do at once. What Session raises; OSError: one may not be used."""
    program = Program(_core.Model.parse(_PRODUCT).build(["cpu"]))
    x = np.ones((256, 256), np.float32)
    sessions = {processor: Session(program, "cpu", 1) for processor in processors}
    for session in sessions.values():
        session.run({"a": x, "b": x})
    start = time.perf_counter()
    sessions[processors[0]].run({"a": x, "b": x})
    rounds = max(1, int(_RUN_SECONDS / max(time.perf_counter() - start, 1e-6)))

    def rate(at_once: Sequence[int]) -> float:
        return max(_rate([(p, sessions[p]) for p in at_once], {"a": x, "b": x}, rounds) for _ in range(_RUNS))

    alone: dict[int, float] = dict.fromkeys(processors, 0.0)
    all_at_once = 0.0
    for _ in range(_ATTEMPTS):  # what a machine can do is the most that was ever seen
        load = OthersLoad()
        alone = {processor: max(seen, rate([processor])) for processor, seen in alone.items()}
        all_at_once = max(all_at_once, rate(processors))
        others = load.so_far()
        if others is None or others <= OTHERS_LIMIT:
            break
    return Together(all_at_once / sum(alone.values()), others)


def _rate(places: Sequence[tuple[int, Session]], inputs: dict[str, np.ndarray], rounds: int) -> float:
    """Rounds a second, all threads together, each on its processor."""
    barrier = threading.Barrier(len(places))
    ends: list[tuple[float, float]] = []
    failures: list[Exception] = []

    def turn(processor: int, session: Session) -> None:
        try:
            os.sched_setaffinity(0, {processor})  # of this thread alone
            barrier.wait()
            start = time.perf_counter()
            for _ in range(rounds):
                session.run(inputs)
            ends.append((start, time.perf_counter()))
        except Exception as error:
            barrier.abort()
            failures.append(error)

    threads = [threading.Thread(target=turn, args=place) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise next((e for e in failures if not isinstance(e, threading.BrokenBarrierError)), failures[0])
    taken = max(end for _, end in ends) - min(start for start, _ in ends)
    return rounds * len(places) / max(taken, 1e-9)


@contextlib.contextmanager
def kept_on(processors: Sequence[int]) -> Iterator[None]:
    """All threads of the process, drivers' too, stay on these processors while it lasts; those that are made meanwhile
    as well. Nothing where none are named. InvalidArgument: the process may use none of them.
    """
    if not processors:
        yield
        return
    before = {task: mask for task in _tasks() if (mask := _mask(task))}
    own = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, processors)
    except (OSError, ValueError) as error:
        raise _core.InvalidArgument(f"processors {list(processors)}: the process may use none of them") from error
    try:
        for task in before:
            _keep(task, set(processors))
        yield
    finally:
        for task in _tasks():
            _keep(task, before.get(task, own))
        os.sched_setaffinity(0, own)


def _tasks() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return []


def _mask(task: int) -> set[int]:
    try:
        return os.sched_getaffinity(task)
    except OSError:  # it has ended
        return set()


def _keep(task: int, processors: set[int]) -> None:
    with contextlib.suppress(OSError):  # it has ended
        os.sched_setaffinity(task, processors)


__all__ = ["LEAST_SHARE", "Column", "Together", "columns", "kept_on", "own_processors", "together"]
