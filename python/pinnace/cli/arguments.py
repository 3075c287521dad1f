"""What arguments of the command line stand for: input files, ranges of dimensions, files to write."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pinnace import _core
from pinnace.cli.array_file import read_array
from pinnace.inputs.maker import seeded_inputs
from pinnace.program import Program
from pinnace.types import Array, Dim


def load_inputs(pairs: Sequence[str]) -> dict[str, Array]:
    """The arrays of --input NAME=FILE.npy, by name. InvalidArgument, FileError."""
    arrays: dict[str, Array] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not equals:
            raise _core.InvalidArgument(f"--input {pair!r}: must be NAME=FILE.npy")
        try:
            array = read_array(path)
        except _core.Error as error:
            error.args = (f"--input {name}: {error}",)
            raise
        arrays[name] = array
    return arrays


def check_writable(path: str) -> None:
    """FileError now rather than after minutes of work."""
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise _core.FileError(f"cannot write {path!r}: its folder does not exist")
    if os.path.isdir(path):
        raise _core.FileError(f"cannot write {path!r}: it is a folder")


def feed(program: Program, pairs: Sequence[str]) -> dict[str, Array]:
    """The inputs of one run: those given, the others seeded. InvalidArgument, FileError."""
    return seeded_inputs(program.inputs, load_inputs(pairs), program=program)


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


__all__ = ["check_writable", "dims", "feed", "load_inputs"]
