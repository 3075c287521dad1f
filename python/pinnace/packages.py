"""Packages that pinnace can do without until something needs them: torch, onnx, onnxruntime."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def import_package(name: str) -> Any:
    """The module of that name, imported if it is not yet. ImportError: it is not installed, or is broken.

    A SIGINT in the middle takes effect when the import has ended: Python's import system and what packages do when they
    are imported drop exceptions, KeyboardInterrupt among them, and Ctrl-C would be lost.
    """
    if sys.modules.get(name) is not None:  # by this thread, or another's import is waited for
        return importlib.import_module(name)
    with _interrupts_deferred():
        return importlib.import_module(name)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    # Handlers in Python run on the main thread alone; without one, the signal does what the system does.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    arrived: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if arrived:
            before(*arrived[0])


__all__ = ["import_package"]
