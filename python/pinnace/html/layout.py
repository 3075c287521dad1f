"""Layered layout of small directed graphs: boxes in rows from top to bottom, rows in columns from left to right.

The steps are Sugiyama's: ranks by longest paths, one place per rank for edges that pass it by, an order in each rank by
the mean place of neighbours, then coordinates that pull boxes under what they read. Two additions keep pictures
near the form of a screen: a rank of many boxes becomes several rows, and a long graph is folded into columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, CHANNEL = 176, 36, 18, 24, 44
ROW_MOST = 5  # boxes side by side
ROWS_MOST = 12  # rows of a column, before the next one begins
_BENDS_MOST = 400  # places for edges that pass by; beyond, long edges are straight
_SWEEPS = 6


@dataclass
class Layout:
    """Where everything is.

    boxes   (left, top) of each box, BOX_WIDTH wide and BOX_HEIGHT high.
    edges   for each edge its points: lines to be drawn smoothly, from the bottom of one box to the top of another.
    width, height  of the whole.
    """

    boxes: list[tuple[float, float]]
    edges: list[list[tuple[float, float]]] = field(default_factory=list)
    width: float = 0
    height: float = 0


def layout(count: int, edges: Iterable[tuple[int, int]]) -> Layout:
    """Boxes 0 to count - 1, in the order in which they run, and edges between them. Edges that lead back to an earlier
    box are drawn, and decide nothing."""
    edges = sorted({(a, b) for a, b in edges if a != b})
    forward = [(a, b) for a, b in edges if a < b]
    ranks = _ranks(count, forward)
    chains, rank_of, rows = _with_bends(count, forward, ranks)
    _order(rows, chains)
    x = _coordinates(rows, chains)
    columns = -(-len(rows) // ROWS_MOST)
    tall = -(-len(rows) // columns) if columns else 1
    lefts, channels, width = [0.0] * columns, [0.0] * columns, 0.0
    for column in range(columns):
        inside = [place for row in rows[column * tall : (column + 1) * tall] for place in row]
        left = min((x[p] for p in inside), default=0.0)
        lefts[column] = width - left
        width += max((x[p] for p in inside), default=0.0) - left + BOX_WIDTH + CHANNEL
        channels[column] = width - CHANNEL / 2
    step = BOX_HEIGHT + GAP_Y

    def at(place: int) -> tuple[float, float]:
        rank = rank_of[place]
        return x[place] + lefts[rank // tall], float((rank % tall) * step)

    drawn = Layout([at(place) for place in range(count)])
    drawn.width, drawn.height = max(width - CHANNEL, BOX_WIDTH), min(len(rows), tall) * step - GAP_Y
    lines = {(chain[0], chain[-1]): chain for chain in chains}
    for a, b in edges:
        drawn.edges.append(
            _line(lines.get((a, b), [a, b]), count, at, lambda place: rank_of[place] // tall, channels.__getitem__)
        )
    return drawn


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Rows by longest paths; a rank of more than ROW_MOST boxes takes several."""
    ranks = [0] * count
    before: dict[int, list[int]] = {}
    for a, b in edges:
        before.setdefault(b, []).append(a)
    for box in range(count):  # what it reads has smaller numbers
        ranks[box] = max((ranks[a] + 1 for a in before.get(box, ())), default=0)
    after: dict[int, list[int]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    for box in reversed(range(count)):  # what nothing feeds stands right above its reader
        if box not in before and box in after:
            ranks[box] = max(0, min(ranks[b] for b in after[box]) - 1)
    members: dict[int, list[int]] = {}
    for box, rank in enumerate(ranks):
        members.setdefault(rank, []).append(box)
    row = 0
    for rank in sorted(members):
        boxes = members[rank]
        lines = -(-len(boxes) // ROW_MOST)
        each = -(-len(boxes) // lines)
        for i, box in enumerate(boxes):
            ranks[box] = row + i // each
        row += lines
    return ranks


def _with_bends(
    count: int, edges: Sequence[tuple[int, int]], ranks: list[int]
) -> tuple[list[list[int]], list[int], list[list[int]]]:
    """(each edge as a chain of places, the rank of each place, the places of each rank); places from `count` on are
    bends: where a long edge passes a rank."""
    rank_of = list(ranks)
    bends = sum(ranks[b] - ranks[a] - 1 for a, b in edges) <= _BENDS_MOST
    chains = []
    for a, b in edges:
        chain = [a]
        for rank in range(ranks[a] + 1, ranks[b]) if bends else ():
            chain.append(len(rank_of))
            rank_of.append(rank)
        chains.append([*chain, b])
    rows: list[list[int]] = [[] for _ in range(max(rank_of, default=-1) + 1)]
    for place, rank in enumerate(rank_of):
        rows[rank].append(place)
    return chains, rank_of, rows


def _neighbours(chains: Sequence[Sequence[int]]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for chain in chains:
        for a, b in itertools.pairwise(chain):
            above.setdefault(b, []).append(a)
            below.setdefault(a, []).append(b)
    return above, below


def _order(rows: list[list[int]], chains: Sequence[Sequence[int]]) -> None:
    """Sorts each rank by the mean place of what its boxes read, then of what reads them, and so on."""
    above, below = _neighbours(chains)
    spot = {place: i - len(row) / 2 for row in rows for i, place in enumerate(row)}

    for sweep in range(_SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            means = {
                place: sum(spot[n] for n in near[place]) / len(near[place]) if near.get(place) else spot[place]
                for place in row
            }
            row.sort(key=means.__getitem__)
            spot.update({place: i - len(row) / 2 for i, place in enumerate(row)})


def _coordinates(rows: list[list[int]], chains: Sequence[Sequence[int]]) -> dict[int, float]:
    """Left edges: each as near to the mean of its neighbours as those beside it let it be."""
    above, below = _neighbours(chains)
    step = BOX_WIDTH + GAP_X
    x = {place: (i - (len(row) - 1) / 2) * step for row in rows for i, place in enumerate(row)}
    for sweep in range(_SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [sum(x[n] for n in near[p]) / len(near[p]) if near.get(p) else x[p] for p in row]
            from_left, from_right = list(wanted), list(wanted)
            for i in range(1, len(row)):
                from_left[i] = max(from_left[i], from_left[i - 1] + step)
            for i in reversed(range(len(row) - 1)):
                from_right[i] = min(from_right[i], from_right[i + 1] - step)
            for i, place in enumerate(row):
                x[place] = (from_left[i] + from_right[i]) / 2
    return x


def _line(
    chain: Sequence[int],
    count: int,
    at: Callable[[int], tuple[float, float]],
    column_of: Callable[[int], int],
    channel: Callable[[int], float],
) -> list[tuple[float, float]]:
    """The points of one edge. From one column to the next it goes below the first box, up between the columns, and
    above the second box."""
    points: list[tuple[float, float]] = []
    middle = BOX_WIDTH / 2
    for a, b in itertools.pairwise(chain):
        (ax, ay), (bx, by) = at(a), at(b)
        ay += BOX_HEIGHT if a < count else BOX_HEIGHT / 2
        by += 0 if b < count else BOX_HEIGHT / 2
        points.append((ax + middle, ay))
        if column_of(a) != column_of(b):
            between = channel(min(column_of(a), column_of(b)))
            down, up = ay + GAP_Y / 2, by - GAP_Y / 2
            points += [(ax + middle, down), (between, down), (between, up), (bx + middle, up)]
        points.append((bx + middle, by))
    return points


__all__ = ["BOX_HEIGHT", "BOX_WIDTH", "Layout", "layout"]
