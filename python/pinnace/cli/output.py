"""What the command line writes: data on standard output, messages on standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NamedTuple, TextIO

from pinnace.files import printable


class Coloured(NamedTuple):
    """A part of a line with the code of its colour or weight, for terminals."""

    text: str
    code: str


def bold(text: object) -> Coloured:
    """What a reader looks for first."""
    return Coloured(str(text), "1")


def dim(text: object) -> Coloured:
    """What a reader may pass over."""
    return Coloured(str(text), "2")


def red(text: object) -> Coloured:
    """What is wrong."""
    return Coloured(str(text), "31")


def green(text: object) -> Coloured:
    """What is right."""
    return Coloured(str(text), "32")


def cyan(text: object) -> Coloured:
    """Names of operators."""
    return Coloured(str(text), "36")


def failed(text: object, status: int) -> int:
    """The status, after a message, if there is a place for it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            show(red("pinnace:"), f" {text}", file=sys.stderr)
    return status


def drop_output() -> None:
    """What standard output still holds goes nowhere: the interpreter would try once more to write it at its end."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:  # OSError: a stream that is no file
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def show(*parts: object, file: TextIO | None = None) -> None:
    """The one way to the terminal. Names come from files: what a terminal would act on is escaped.

    parts  of the text, one after the other; those that are Coloured have their colours if `file` is a terminal.
    """
    file = file or sys.stdout
    colours = has_colours(file)
    told = []
    for part in parts:
        text = printable(part.text if isinstance(part, Coloured) else str(part), keep="\n")
        told.append(f"\x1b[{part.code}m{text}\x1b[0m" if colours and isinstance(part, Coloured) else text)
    print("".join(told), file=file)


def has_colours(file: TextIO | None) -> bool:
    """Whether it is a terminal that shows them, and the user has not turned them off with NO_COLOR."""
    try:
        terminal = file is not None and file.isatty()
    except ValueError:  # it is closed
        return False
    wanted = not os.environ.get("NO_COLOR")
    return terminal and wanted and os.environ.get("TERM") != "dumb"


__all__ = ["Coloured", "bold", "cyan", "dim", "drop_output", "failed", "green", "has_colours", "red", "show"]
