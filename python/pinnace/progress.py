"""Which part of a long call is under way, on a terminal: set_progress(), and phase() for the package's own use."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Seconds before a phase is shown: what ends sooner needs no explanation.
AFTER = 2.0

_wanted = True
_shown = threading.Lock()  # held by the phase that may be shown: one at a time, the outermost


def set_progress(shown: bool) -> None:
    """Whether load(), build(), compare() and save() show on a terminal what they are doing, as they do at first.

    shown  False: never.

    A line on stderr names the phase (exporting, importing, building, verifying, comparing, saving) and the time that it
    has taken, from its third second on, and vanishes at its end. Nothing is shown where stderr is no terminal, a
    notebook's included, or where the package rich is not installed. Raises nothing.
    """
    global _wanted
    _wanted = shown


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Shows the name while the block runs, or the function that this decorates; within another phase, nothing."""
    with counted(name):
        yield


@contextmanager
def counted(name: str, shown: bool = True) -> Iterator[Callable[[], None]]:
    """The same for a block that calls what it is given after each step of its work: the line then has their number.
    shown: False shows nothing."""
    if not (shown and _wanted and _is_terminal() and _shown.acquire(blocking=False)):
        yield lambda: None
        return
    try:
        line = _Line(name)
        try:
            yield line.step
        finally:
            line.end()
    finally:
        _shown.release()


def is_shown() -> bool:
    """What set_progress() said last."""
    return _wanted


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it is closed
        return False


class _Line:
    """Drawn by rich from a thread of its own, once a timer has run out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._steps = 0
        self._lock = threading.Lock()
        self._ended = False
        self._drawn: Any = None
        self._timer = threading.Timer(AFTER, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def _draw(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        except ImportError:
            return
        console = Console(stderr=True)
        with self._lock:
            if self._ended or console.is_dumb_terminal:
                return
            columns = (TextColumn("{task.description}", markup=False), BarColumn(24), TimeElapsedColumn())
            drawn = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            drawn.add_task(self._text(), total=None)
            (task,) = drawn.tasks
            task.start_time = (task.start_time or 0.0) - AFTER
            drawn.start()
            self._drawn = drawn

    def _text(self) -> str:
        return f"{self._name}, {self._steps}" if self._steps else self._name

    def step(self) -> None:
        with self._lock:
            self._steps += 1
            if self._drawn is not None:
                self._drawn.update(self._drawn.tasks[0].id, description=self._text())

    def end(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._drawn is not None:
                self._drawn.stop()


__all__ = ["counted", "is_shown", "phase", "set_progress"]
