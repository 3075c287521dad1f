"""Graphs as SVG: one picture of a few boxes for the whole, and one more for each group in it."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pinnace.html.document import text
from pinnace.html.grouping import GraphNode, Group, grouped
from pinnace.html.layout import BOX_HEIGHT, BOX_WIDTH, layout

# Boxes of one picture.
BOXES_MOST = 40
_LABEL_MOST = 26


@dataclass(frozen=True)
class Box:
    """What is drawn of a node, an input, an output or a group.

    head, label  two lines of text.
    title        what a pointer is told.
    classes      colors: one class per choice of target.
    link         the address of what a click leads to; empty for none.
    group        whether it is one.
    """

    head: str
    label: str
    title: str
    classes: Sequence[str]
    link: str = ""
    group: bool = False


@dataclass(frozen=True)
class View:
    """One picture: its name in the page, the path to it as (name, label) from the whole on, and the SVG."""

    name: str
    trail: list[tuple[str, str]]
    svg: str


class GraphPictures:
    """Pictures of one graph: inputs, nodes in the order in which they run, and outputs."""

    def __init__(
        self,
        nodes: Sequence[GraphNode],
        inputs: Sequence[str],
        outputs: dict[str, str],
        box_of: Callable[[int], Box],
        group_classes: Callable[[list[int]], Sequence[str]],
        output_box: Callable[[str], Box],
    ) -> None:
        """box_of: the box of the node at a place; group_classes: colors of a group of such; outputs: name -> value."""
        self._nodes, self._inputs, self._outputs = nodes, list(inputs)[:BOXES_MOST], dict(outputs)
        self._box_of, self._group_classes, self._output_box = box_of, group_classes, output_box
        self._tree = grouped(nodes, BOXES_MOST)
        self._maker = {value: place for place, node in enumerate(nodes) for value in node.outputs if value}

    def whole(self) -> str:
        """The first picture alone, without links."""
        return self._picture(self._tree, _expanded(self._tree), {}, "")

    def views(self) -> Iterator[View]:
        """The whole, then each group in it, and so on. Each node is in one picture."""
        waiting = deque([(self._tree, [("g0", "whole graph")])])
        named = 1
        while waiting:
            group, trail = waiting.popleft()
            parts = _expanded(group)
            inner = {f"g{named + i}": part for i, part in enumerate(p for p in parts if isinstance(p, Group))}
            named += len(inner)
            name, names = trail[-1][0], {id(part): name for name, part in inner.items()}
            yield View(name, trail, self._picture(group, parts, names, name))
            waiting.extend((part, [*trail, (name, part.label)]) for name, part in inner.items())

    def _picture(self, group: Group, parts: Sequence[Group | int], names: dict[int, str], name: str) -> str:
        """names: of the pictures of inner groups, by identity; name: of this one, empty for one that stands alone."""
        top = group is self._tree
        boxes = [Box("input", value, value, ["io"]) for value in self._inputs] if top else []
        offset, home = len(boxes), dict[int, int]()
        for i, part in enumerate(parts):
            if isinstance(part, Group):
                members = list(part.members())
                home |= dict.fromkeys(members, offset + i)
                link = f"#{names[id(part)]}" if id(part) in names else ""
                label = f"{len(members):,} nodes"
                boxes.append(Box(_head(part), label, part.path, self._group_classes(members), link, True))
            else:
                home[part] = offset + i
                boxes.append(self._box_of(part))
        edges = self._edges(home, offset)
        for output, value in list(self._outputs.items())[:BOXES_MOST] if top else ():
            if value in self._maker:
                edges.add((home[self._maker[value]], len(boxes)))
            boxes.append(self._output_box(output))
        return _svg(boxes, edges, name or f"{zlib.crc32(repr(boxes).encode(errors='backslashreplace')):x}")

    def _edges(self, home: dict[int, int], offset: int) -> set[tuple[int, int]]:
        edges = set()
        given = {value: i for i, value in enumerate(self._inputs)} if offset else {}
        for place, box in home.items():
            for value in self._nodes[place].inputs:
                start = home.get(self._maker.get(value, -1), given.get(value))
                if start is not None and start != box:
                    edges.add((start, box))
        return edges


def _expanded(group: Group) -> list[Group | int]:
    """The parts of a group, and level by level those of the groups in it, as long as one picture holds them."""
    parts = group.parts
    while any(isinstance(part, Group) for part in parts):
        deeper: list[Group | int] = []
        for part in parts:
            if isinstance(part, Group):
                deeper += [_relabelled(part, inner) for inner in part.parts]
            else:
                deeper.append(part)
        if len(deeper) > BOXES_MOST:
            break
        parts = deeper
    return sorted(parts, key=_first)


def _relabelled(outer: Group, inner: Group | int) -> Group | int:
    if isinstance(inner, int):
        return inner
    return Group(f"{outer.label}.{inner.label}" if " … " not in outer.label else inner.label, inner.path, inner.parts)


def _head(group: Group) -> str:
    """The label, with its parent's where it is a number alone: "layer.36"."""
    return ".".join(group.path.split(".")[-2:]) if group.label.isdigit() else group.label


def _first(part: Group | int) -> int:
    return min(part.members()) if isinstance(part, Group) else part


def _short(label: str, most: int = _LABEL_MOST) -> str:
    return label if len(label) <= most else f"{label[: most // 2 - 1]}…{label[-(most - most // 2) :]}"


def _svg(boxes: Sequence[Box], edges: set[tuple[int, int]], name: str) -> str:
    """name: of its arrow, which no other picture of a page may have."""
    drawn = layout(len(boxes), edges)
    arrow = f"pn-arrow-{name}"
    parts = [
        f'<defs><marker id="{arrow}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 1L7 4L0 7z"/></marker></defs>'
    ]
    parts += [f'<path class="edge" marker-end="url(#{arrow})" d="{_path(points)}"/>' for points in drawn.edges]
    for box, (x, y) in zip(boxes, drawn.boxes, strict=True):
        kind = f"node {box.classes[0]}" + (" group" if box.group else "")
        choices = f' data-c="{" ".join(box.classes)}"' if len(box.classes) > 1 else ""
        body = (
            f'<g class="{kind}"{choices} transform="translate({x:.0f} {y:.0f})"><title>{text(box.title)}</title>'
            f'<rect width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="{8 if box.group else 4}"/>'
            f'<text x="8" y="15" class="head">{text(_short(box.head, 24))}</text>'
            f'<text x="8" y="29">{text(_short(box.label))}</text></g>'
        )
        parts.append(f'<a href="{text(box.link)}">{body}</a>' if box.link else body)
    width, height = drawn.width + 8, drawn.height + 28
    return (
        f'<svg class="graph" viewBox="-4 -14 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="graph of {len(boxes)} boxes">{"".join(parts)}</svg>'
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line through two points one below the other; straight ones with round joints else."""
    (x, y), *rest = points
    path = f"M{x:.0f} {y:.0f}"
    for nx, ny in rest:
        if nx == x or ny == y:
            path += f"L{nx:.0f} {ny:.0f}"
        else:
            half = (ny - y) / 2
            path += f"C{x:.0f} {y + half:.0f} {nx:.0f} {ny - half:.0f} {nx:.0f} {ny:.0f}"
        x, y = nx, ny
    return path


__all__ = ["Box", "GraphPictures", "View"]
