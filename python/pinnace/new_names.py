"""Names that a caller gives to the inputs and outputs of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pinnace import _core

LONGEST = 200  # characters, as for names that importers take from a model


def new_names(argument: str, kind: str, names: Sequence[str], wanted: Any) -> list[str]:
    """All of `names`, in order, some or all of them replaced as the caller wants it.

    argument  the parameter's name, for messages; kind: "input" or "output".
    wanted    new names for all in order, or a dict old name -> new name; None: all stay.

    InvalidArgument: another number of names, an unknown old one, or a new one that is no text, empty, longer than
    LONGEST, has characters that cannot be printed, or is that of two.
    """
    if wanted is None:
        return list(names)
    has = f"the model's {kind}s are {', '.join(map(repr, names)) or 'none'}"
    if isinstance(wanted, Mapping):
        unknown = [old for old in wanted if old not in names]
        if unknown:
            raise _core.InvalidArgument(f"{argument}: unknown {', '.join(map(repr, unknown))}; {has}")
        chosen = [wanted.get(name, name) for name in names]
    elif isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise _core.InvalidArgument(
            f"{argument}: {type(wanted).__name__}, must be a list of names or a dict old name -> new name; {has}"
        )
    else:
        chosen = list(wanted)
        if len(chosen) != len(names):
            raise _core.InvalidArgument(f"{argument}: {len(chosen)} names for {len(names)} {kind}s; {has}")
    for old, new in zip(names, chosen, strict=True):
        if new != old:
            _check(f"{argument}: the name for {kind} {old!r}", new)
    twice = [name for name, count in Counter(chosen).items() if count > 1]
    if twice:
        raise _core.InvalidArgument(f"{argument}: {twice[0]!r} would be the name of two {kind}s; {has}")
    return chosen


def _check(place: str, name: Any) -> None:
    if not isinstance(name, str):
        raise _core.InvalidArgument(f"{place} is {type(name).__name__}, must be text")
    if not name:
        raise _core.InvalidArgument(f"{place} is empty")
    if len(name) > LONGEST:
        raise _core.InvalidArgument(f"{place} has {len(name)} characters, {LONGEST} at most")
    if not name.isprintable():
        raise _core.InvalidArgument(f"{place}, {name!r}, has characters that cannot be printed")


__all__ = ["new_names"]
