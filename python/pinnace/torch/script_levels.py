"""What is noted while graphs are followed: what a branch or loop reads, makes, changes and leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from pinnace.torch.script_values import Object


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
class Left:
    """What a part of the graph leaves."""

    values: list[Any]
    changed: dict[int, tuple[Any, Any]]  # containers and what is in them
    level: Level
    written: list[Any]  # tensors from outside, written in place
    new: dict[int, Any]  # containers that it makes

    def contents(self, key: int, container: Any) -> Any:
        """Of a container afterwards."""
        return self.changed[key][1] if key in self.changed else contents_of(container)


@dataclass(eq=False)
class Twins:
    """Tensors and containers of which a branch or a loop has given one, by data: in the script the result is the very
    one, here it is another. Where one of the two is changed, the other is stale."""

    others: dict[tuple[str, int], set[tuple[str, int]]] = field(default_factory=dict)
    stale: dict[tuple[str, int], str] = field(default_factory=dict)  # and where it became that
    alive: list[Any] = field(default_factory=list)  # their identities are not given to others

    def join(self, a: Any, b: Any) -> None:
        """Of the result and what it may be."""
        self.alive += [a, b]
        for one, other in ((a, b), (b, a)):
            self.others.setdefault(identity(one), set()).add(identity(other))

    def change(self, value: Any, place: str) -> None:
        """A tensor or container is written into."""
        for other in self.others.get(identity(value), ()):
            self.stale[other] = place

    def copy(self) -> Twins:
        """With marks of its own."""
        return Twins({k: set(v) for k, v in self.others.items()}, dict(self.stale), list(self.alive))


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
