"""Python's cyclic garbage collector and exports."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator


class _Pause:
    """How many blocks are running in all threads, and whether the collector was on before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.was_enabled = False


_pause = _Pause()


def _begin_anew() -> None:
    """In a child that was forked while another thread was in a block, no thread is left to end that block."""
    global _pause
    if _pause.blocks and _pause.was_enabled:
        gc.enable()
    _pause = _Pause()


os.register_at_fork(after_in_child=_begin_anew)


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """The collector is off in the block, and afterwards as it was before; blocks may nest and run in several threads.

    An export makes millions of objects that stay, beside those that PyTorch and the model's package have loaded, and
    the collector walks through all of them again and again: 13 to 28 % of the time of pn.load(). What it could free
    meanwhile are 16 MB at most in the models of bench/conversion.py.
    """
    with _pause.lock:
        if _pause.blocks == 0:
            _pause.was_enabled = gc.isenabled()
            gc.disable()
        _pause.blocks += 1
    try:
        yield
    finally:
        with _pause.lock:
            _pause.blocks -= 1
            if _pause.blocks == 0 and _pause.was_enabled:
                gc.enable()
