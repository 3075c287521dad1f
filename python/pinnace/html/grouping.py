"""Nodes of a graph in a tree of groups, so that a graph of thousands can be shown in pictures of a few boxes.

A node's path is its module's ("layers.3.conv1"); where that is not known, its place in the user's source ("net.py:41"),
else the prefix of its name ("/layers.3/conv1/Conv"). Neighbours without any path become runs of nodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

# A group in the table of layers has at most so many rows, unless one module has more by itself.
TABLE_ROWS = 48


class GraphNode(Protocol):
    """What a NodeInfo has."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def op(self) -> str:
        """Its operator."""

    @property
    def source(self) -> str:
        """The line of the user's model."""

    @property
    def inputs(self) -> list[str]:
        """Names of the values that it reads."""

    @property
    def outputs(self) -> list[str]:
        """Names of the values that it makes."""

    @property
    def output_types(self) -> list[str]:
        """Their types."""


@dataclass(eq=False)
class Group:
    """A part of a graph: nodes by their places in the list of all, and groups, in the order in which they run.

    label  the last part of its path.
    path   the whole path, for titles.
    parts  places of nodes, and groups.
    """

    label: str
    path: str
    parts: list[Group | int] = field(default_factory=list)

    def members(self) -> Iterator[int]:
        """Places of all nodes in it."""
        for part in self.parts:
            if isinstance(part, Group):
                yield from part.members()
            else:
                yield part


def module_of(node: GraphNode) -> str:
    """The path of the module that a node comes from, or else what stands for it."""
    return ".".join(path_of(node))


def path_of(node: GraphNode) -> list[str]:
    """The parts of a node's path; none where nothing is known. At most eight: what is deeper is one part."""
    if module := getattr(node, "module", ""):
        parts = [part for part in str(module).split(".") if part]
    elif node.source:
        file, _, line = re.split(r"[\\/]", node.source)[-1].rpartition(":")
        parts = [file, f"line {line}"] if file else [line]
    else:
        parts = [part for part in node.name.split("/")[:-1] if part]
    return parts if len(parts) <= 8 else [*parts[:7], ".".join(parts[7:])]


def grouped(nodes: Sequence[GraphNode], most: int, even: bool = True) -> Group:
    """The tree of all nodes. No group has more than `most` parts: longer ones are cut into runs of neighbours, of even
    sizes over all levels, or else of `most` each.
    """
    root = Group("", "")
    known: dict[tuple[str, ...], Group] = {(): root}
    for place, node in enumerate(nodes):
        parts = tuple(path_of(node))
        for depth in range(1, len(parts) + 1):
            if parts[:depth] not in known:
                group = known[parts[:depth]] = Group(parts[depth - 1], ".".join(parts[:depth]))
                known[parts[: depth - 1]].parts.append(group)
        known[parts].parts.append(place)
    return _compact(root, most, even)


def _compact(group: Group, most: int, even: bool) -> Group:
    """Without groups of one part, and with runs where there are too many parts."""
    parts: list[Group | int] = []
    for part in group.parts:
        inner = _compact(part, most, even) if isinstance(part, Group) else part
        while isinstance(inner, Group) and len(inner.parts) == 1:
            only = inner.parts[0]
            if isinstance(only, Group):
                only = Group(f"{inner.label}.{only.label}", only.path, only.parts)
            inner = only
        parts.append(inner)
    levels = math.ceil(math.log(max(len(parts), 2), most))
    size = math.ceil(len(parts) ** (1 / levels)) if even else most
    while len(parts) > most:
        parts = [_run(parts[i : i + size], group.path) for i in range(0, len(parts), size)]
    return Group(group.label, group.path, parts)


def _run(parts: list[Group | int], path: str) -> Group | int:
    if len(parts) == 1:
        return parts[0]
    first, last = (f"node {p + 1}" if isinstance(p, int) else p.label for p in (parts[0], parts[-1]))
    label = f"{first.partition(' … ')[0]} … {last.rpartition(' … ')[2]}"
    return Group(label, f"{path}: {label}" if path else label, parts)


def table_groups(nodes: Sequence[GraphNode]) -> list[tuple[str, list[int]]]:
    """(path, places of nodes) of groups for a table: as large as TABLE_ROWS lets them be, in the order of the graph."""
    found: list[tuple[str, list[int]]] = []

    def gather(group: Group) -> None:
        members = sorted(group.members())
        if len(members) <= TABLE_ROWS or not any(isinstance(part, Group) for part in group.parts):
            found.append((group.path, members))
            return
        rest = [part for part in group.parts if isinstance(part, int)]
        if rest:
            found.append((group.path, rest))
        for part in group.parts:
            if isinstance(part, Group):
                gather(part)

    gather(grouped(nodes, TABLE_ROWS, even=False))
    return sorted(found, key=lambda item: item[1][0] if item[1] else -1)


__all__ = ["GraphNode", "Group", "grouped", "module_of", "path_of", "table_groups"]
