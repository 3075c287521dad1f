"""Measuring: how runs are timed, and which processors count as cores, on clocks and folders that the tests make."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from pinnace.measure import runs
from pinnace.measure.runs import TRIES, Runs, Spread, busy_seconds, calmest_runs, spread_of, time_runs


class Clock:
    """Time that passes only in runs, each of which takes a number of milliseconds and keeps some processors busy."""

    def __init__(self, milliseconds: list[float], busy: float) -> None:
        self.milliseconds, self.busy = milliseconds, busy
        self.now = self.cpu = 0.0
        self.calls = 0

    def run(self) -> None:
        taken = self.milliseconds[self.calls % len(self.milliseconds)] / 1e3
        self.calls += 1
        self.now += taken
        self.cpu += taken * self.busy

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(runs, "processor_seconds", lambda: self.cpu)
        monkeypatch.setattr(runs, "busy_seconds", lambda: self.cpu + 0.25 * self.now)


def test_spread() -> None:
    assert spread_of([3.0]) == Spread(3.0, 3.0, 3.0)
    assert spread_of(range(20, 0, -1)) == Spread(10.5, 3, 19)


def test_runs_are_timed_and_turns_tell_consumption(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([4.0], busy=1.5)
    clock.install(monkeypatch)
    found = time_runs(clock.run, 50)
    assert clock.calls == 50 + 13  # of 50 ms of warm-up
    assert found.runs == 50
    assert found.ms.median == pytest.approx(4.0)
    assert found.turns == 16  # of three runs each; the last two make no turn
    assert found.cpu_per_wall.median == pytest.approx(1.5)
    assert found.cpu_ms == pytest.approx(6.0)
    assert found.others == pytest.approx(0.25)
    assert found.disturbed


def test_a_limit_of_time_leaves_some_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([300.0], busy=0.1)
    clock.install(monkeypatch)
    found = time_runs(clock.run, 50, seconds=0.5)
    assert (found.runs, found.turns) == (5, 5)
    assert found.cpu_per_wall.p10 == pytest.approx(0.1)
    assert found.cpu_per_wall.p90 == pytest.approx(0.1)
    clock = Clock([0.01], busy=1.0)
    clock.install(monkeypatch)
    found = time_runs(clock.run, 3)
    assert (found.runs, found.turns, found.others) == (3, 1, None)  # too short to tell what others used


def test_load_of_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert busy_seconds(tmp_path / "stat") is None
    for text in ("", "cpu  1 2 x 4 5 6 7 8\n", "cpu 1 2\n"):
        (tmp_path / "stat").write_text(text)
        assert busy_seconds(tmp_path / "stat") is None
    (tmp_path / "stat").write_text("cpu  100 200 300 4000 50 60 70 80 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    monitor = busy_seconds(tmp_path / "stat")
    assert monitor == pytest.approx((100 + 200 + 300 + 60 + 70 + 80) / os.sysconf("SC_CLK_TCK"))


def test_disturbed_figures_are_taken_again() -> None:
    """Until nothing disturbs them; of tries that were all disturbed, the calmest counts and says so."""

    def runs_of(others: Sequence[float | None]) -> tuple[Runs, int]:
        same, left = Spread(1.0, 1.0, 1.0), iter(others)
        made = calmest_runs(lambda: Runs(5, same, same, 1, 1.0, next(left)))
        return made, len(list(left))

    for tries, calmest, spare in (([None, 1.0], None, 1), ([0.3, 0.01, 1.0], 0.01, 1)):
        runs, left = runs_of(tries)
        assert (runs.others, left, runs.disturbed) == (calmest, spare, False)
    runs, left = runs_of([0.3, 0.1, 0.2, 0.4])
    assert TRIES == 4
    assert (runs.others, left, runs.disturbed) == (0.1, 0, True)
