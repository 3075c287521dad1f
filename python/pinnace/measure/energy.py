"""The energy of one run: measured by a meter, less what the machine draws when it is idle."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from pinnace import _core
from pinnace.measure.counters import Meter
from pinnace.measure.runs import OthersLoad, spread_of

LEAST_REPETITIONS, MOST_REPETITIONS = 5, 15
ENOUGH_SPREAD = 0.1  # of the median between p10 and p90: more repetitions would tell little more
_SETTLE_SECONDS = 0.1  # in which threads that wait for more work fall asleep


@dataclass(frozen=True)
class Energy:
    """The energy of one run.

    kind         "measured", "modelled", or "none" where there is no figure.
    joules       measured: the median; None where there is no figure.
    low, high    measured: p10 and p90 of the repetitions; modelled: the bounds of an order of magnitude.
    repetitions  how often it was measured.
    idle_watts   the idle power that was subtracted: medians of before and after the runs.
    source       what it was measured with, or which model it is.
    why          why it was not measured, and why there is none.
    others       what other programs used meanwhile, in processors, whose energy is in the figure as far as it was not
                 in the idle power; None where that is not known.
    """

    kind: str
    joules: float | None = None
    low: float | None = None
    high: float | None = None
    repetitions: int = 0
    idle_watts: tuple[float, float] | None = None
    source: str = ""
    why: str = ""
    others: float | None = None


def measured_energy(
    run: Callable[[], object],
    meter: Meter,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Energy:
    """Measures idle power, runs, and idle power again, until p10 and p90 are near each other or MOST_REPETITIONS.

    Unsupported: the meter gives no figure, or the runs cannot be told from what is idle. Else errors are those of
    `run`.
    """

    def idle() -> float:
        sleep(_SETTLE_SECONDS)
        start = clock()
        meter.begin()
        sleep(meter.seconds)
        return meter.joules() / (clock() - start)

    figures: list[float] = []
    before: list[float] = []
    after: list[float] = []
    power = idle()
    load = OthersLoad()
    while len(figures) < MOST_REPETITIONS:
        before.append(power)
        start, count = clock(), 0
        meter.begin()
        while count == 0 or clock() - start < meter.seconds:
            run()
            count += 1
        joules, taken = meter.joules(), clock() - start
        power = idle()
        after.append(power)
        figures.append((joules - (before[-1] + power) / 2 * taken) / count)
        spread = spread_of(figures)
        if len(figures) >= LEAST_REPETITIONS and spread.p90 - spread.p10 <= ENOUGH_SPREAD * abs(spread.median):
            break
    watts = (statistics.median(before), statistics.median(after))
    if max(watts) == 0 and spread.median == 0:
        raise _core.Unsupported(f"{meter.source}: the counters do not move")
    if spread.p10 <= 0:
        raise _core.Unsupported(
            f"{meter.source}: runs cannot be told from {watts[0]:.3g} W of idle power: {spread.p10:.2g} to "
            f"{spread.p90:.2g} J a run in {len(figures)} repetitions"
        )
    others = load.so_far()
    return Energy("measured", spread.median, spread.p10, spread.p90, len(figures), watts, meter.source, others=others)


__all__ = ["Energy", "measured_energy"]
