"""What is noted while graphs are followed: what a branch or loop reads, makes, changes and leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from pinnace.torchscript.values import Object


@dataclass(eq=False)
class Level:
    """A graph of its own within the one that is recorded; while it is looked at first, without being recorded."""

    recorded: bool
    tensors: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # by id: what is outside, and what is inside
    numbers: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # by expression
    made: dict[int, Any] = field(default_factory=dict)  # tensors that it makes
    symbols: set[Any] = field(default_factory=set)  # of sizes that it reads
    own_symbols: set[Any] = field(default_factory=set)  # that its data give


@dataclass(eq=False)
class Log:
    """What containers held before they were changed, and which are new."""

    before: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    new: dict[int, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Twins:
    """Tensors and containers of which a branch or a loop has given one, by data: in the script the result is the very
    one, here it is another. Where one of the two is changed, the other is stale."""

    sources: dict[tuple[str, int], set[tuple[str, int]]] = field(default_factory=dict)  # what a result may be
    stale: dict[tuple[str, int], str] = field(default_factory=dict)  # and where it became that
    alive: list[Any] = field(default_factory=list)  # their identities are not given to others

    def join(self, made: Any, source: Any) -> None:
        """Of a result and what it may be."""
        self.alive += [made, source]
        self.sources.setdefault(identity(made), set()).add(identity(source))

    def origins(self, value: Any) -> set[tuple[str, int]]:
        """It, and all that it may be."""
        found, left = {identity(value)}, [identity(value)]
        while left:
            more = self.sources.get(left.pop(), set()) - found
            found |= more
            left += more
        return found

    def change(self, value: Any, place: str) -> None:
        """A tensor or container is written into: what it may be, and what may be that, is stale."""
        changed = self.origins(value)
        while more := {made for made, of in self.sources.items() if of & changed} - changed:
            changed |= more
        self.stale.update(dict.fromkeys(changed - {identity(value)}, place))

    def replace(self, value: Any, place: str) -> None:
        """A copy of it is written into, in its place."""
        self.change(value, place)
        self.alive.append(value)
        self.stale[identity(value)] = place

    def copy(self) -> Twins:
        """With marks of its own."""
        return Twins({k: set(v) for k, v in self.sources.items()}, dict(self.stale), list(self.alive))

    def take(self, other: Twins) -> None:
        """What a part of the graph has made stale, after it."""
        self.stale |= other.stale
        self.alive += other.alive


@dataclass(eq=False)
class Left:
    """What a part of the graph leaves."""

    values: list[Any]
    changed: dict[int, tuple[Any, Any]]  # containers and what is in them
    level: Level
    written: list[Any]  # tensors from outside, written in place
    new: dict[int, Any]  # containers that it makes
    twins: Twins

    def contents(self, key: int, container: Any) -> Any:
        """Of a container afterwards."""
        return self.changed[key][1] if key in self.changed else contents_of(container)


def identity(value: Any) -> tuple[str, int]:
    """Of a container, or of the memory of a tensor."""
    return ("memory", value.untyped_storage()._cdata) if isinstance(value, torch.Tensor) else ("container", id(value))


def contents_of(container: Any) -> Any:
    return dict(container.attributes) if isinstance(container, Object) else container.copy()


def restore(container: Any, contents: Any) -> None:
    own = container.attributes if isinstance(container, Object) else container
    if isinstance(own, list):
        own[:] = contents
    else:
        own.clear()
        own.update(contents)


__all__ = ["Left", "Level", "Log", "Twins", "contents_of", "identity", "restore"]
