"""What arguments of the command line stand for: inputs of a run, ranges of dimensions, files to write."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from pinnace import _core
from pinnace.cli.input_files import InputFiles
from pinnace.inputs.maker import check_sizes, seeded_inputs
from pinnace.program import Program
from pinnace.types import Array, Dim


def check_writable(path: str, sources: Sequence[str | None] = ()) -> None:
    """FileError now rather than after minutes of work. InvalidArgument: it is one of the files that are read."""
    for source in sources:
        if source is not None and os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise _core.InvalidArgument(f"output {path!r} is {source!r} itself, which would be lost: name another file")
    folder = os.path.dirname(os.path.realpath(path))  # a link stays, and what it points to is written
    if not os.path.isdir(folder):
        raise _core.FileError(f"cannot write {path!r}: its folder does not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _core.FileError(f"cannot write {path!r}: its folder may not be written to")
    if os.path.isdir(path):
        raise _core.FileError(f"cannot write {path!r}: it is a folder")


def feed(program: Program, options: argparse.Namespace) -> dict[str, Array]:
    """The inputs of one run: those given, the others seeded, at the sizes of --dim. InvalidArgument, FileError;
    Unsupported: an image is given and Pillow is not installed."""
    wanted = sizes(options.dim)
    check_sizes(program.inputs, wanted)
    given = InputFiles(options).arrays_for(program.inputs, wanted)
    return seeded_inputs(program.inputs, given, program=program, sizes=wanted)


def new_names(option: str, texts: Sequence[str]) -> dict[str, str]:
    """New names by the old ones, from OLD=NEW of an option. InvalidArgument."""
    found: dict[str, str] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not equals:
            raise _core.InvalidArgument(f"{option} {text!r}: must be OLD=NEW")
        if old in found:
            raise _core.InvalidArgument(f"{option}: {old!r} is given twice")
        found[old] = new
    return found


def sizes(texts: Sequence[str]) -> dict[str, int]:
    """The sizes of --dim NAME=SIZE. InvalidArgument."""
    found: dict[str, int] = {}
    for text in texts:
        name, _, size = text.partition("=")
        if not name or not size.isascii() or not size.isdigit():
            raise _core.InvalidArgument(f"--dim {text!r}: must be NAME=SIZE, one size for this run")
        if name in found:
            raise _core.InvalidArgument(f"--dim: {name!r} is given twice")
        found[name] = int(size)
    return found


def dims(texts: Sequence[str]) -> list[Dim]:
    """The ranges of --dim NAME=MIN..MAX. InvalidArgument."""
    found = []
    for text in texts:
        name, _, bounds = text.partition("=")
        low, dots, high = bounds.partition("..")
        try:
            found.append(Dim(name, int(low), int(high) if dots else int(low)))
        except ValueError as error:
            raise _core.InvalidArgument(f"--dim {text!r}: must be NAME=MIN..MAX") from error
    return found


__all__ = ["check_writable", "dims", "feed", "new_names", "sizes"]
