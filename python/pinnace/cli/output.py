"""What the command line writes: data on standard output, messages on standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from pinnace.files import printable


def failed(text: object, status: int) -> int:
    """The status, after a message, if there is a place for it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            show(f"pinnace: {text}", file=sys.stderr)
    return status


def drop_output() -> None:
    """What standard output still holds goes nowhere: the interpreter would try once more to write it at its end."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:  # OSError: a stream that is no file
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def show(text: object, file: TextIO | None = None) -> None:
    """The one way to the terminal. Names come from files: what a terminal would act on is escaped."""
    print(printable(str(text), keep="\n"), file=file or sys.stdout)


__all__ = ["drop_output", "failed", "show"]
