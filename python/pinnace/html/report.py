"""The page of a comparison: one file for a browser that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pinnace.html.charts import heat_map, histogram
from pinnace.html.comparison_parts import (
    NodeColors,
    combined,
    pictures_of,
    targets_table,
    verdict_cell,
    verdict_of,
    worst_of,
)
from pinnace.html.document import LEGEND, markup, number, part, rendered, script_hash
from pinnace.html.grouping import GraphNode, module_of, table_groups


@dataclass(frozen=True)
class _RowNode:
    """Stands for the node of a row where the graph is not known."""

    name: str
    op: str
    source: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    output_types: list[str] = field(default_factory=list)


def comparison_page(c: Any) -> str:
    """Of a pinnace.Comparison."""
    pictures = pictures_of(c, links=True)
    script = part("page.js")
    return rendered(
        "page.html",
        c=c,
        verdict=verdict_of(c),
        style=markup(part("style.css") + part("page.css")),
        script=markup(script),
        script_hash=script_hash(script),
        about=[("reference", c.reference), *c.about.items()],
        targets=markup(targets_table(c)),
        legend=LEGEND,
        views=[_view(view) for view in pictures.views()] if pictures else [],
        groups=_table(c),
        details=[_detail(c, d) for d in c.details],
    )


def _view(view: Any) -> dict[str, Any]:
    return {"name": view.name, "trail": view.trail, "svg": markup(view.svg)}


def _table(c: Any) -> list[dict[str, Any]]:
    """Groups of rows by module, in the order of the graph, outputs and states last."""
    made_by = {v: node for node in (c.graph.nodes if c.graph else ()) for v in node.outputs}
    inner = [(i, row) for i, row in enumerate(c.rows) if not row.output]
    nodes: list[GraphNode] = [
        made_by.get(row.value) or _RowNode(row.node, row.op, row.source, outputs=[row.value]) for _, row in inner
    ]
    colors = NodeColors(c)
    groups = []
    for path, places in table_groups(nodes):
        rows = [_row(c, *inner[place], nodes[place]) for place in places]
        title = path or ("all layers" if len(places) == len(inner) else "without a module")
        groups.append(_group(c, colors, title, rows, [inner[place][1] for place in places]))
    outer = [(i, row) for i, row in enumerate(c.rows) if row.output]
    if outer:
        rows = [_row(c, i, row, None) for i, row in outer]
        groups.append(_group(c, colors, "outputs and states", rows, [row for _, row in outer]) | {"open": 1})
    return groups


def _group(c: Any, colors: NodeColors, title: str, rows: list[dict[str, Any]], of: Sequence[Any]) -> dict[str, Any]:
    cells = []
    for i, target in enumerate(c.targets):
        worst = worst_of([row.targets[target] for row in of if target in row.targets])
        place = i + 1 if len(c.targets) > 1 else 0
        kind = combined([colors.of_row(row) for row in of], len(c.targets) + 1)[place]
        cells.append({"kind": kind, "text": number(worst.relative) if worst else "–"})
    return {"title": title, "rows": rows, "cells": cells, "open": int(any(row["bad"] for row in rows))}


def _row(c: Any, place: int, row: Any, node: Any) -> dict[str, Any]:
    types = dict(zip(node.outputs, node.output_types, strict=False)) if node else {}
    return {
        "id": f"r{place}",
        "place": place + 1,
        "value": row.value,
        "op": row.op,
        "type": types.get(row.value, ""),
        "module": module_of(node) if node and not _stands_for_source(node) else "",
        "source": row.source,
        "output": row.output,
        "bad": not row.ok,
        "cells": markup("".join(verdict_cell(row.targets.get(target)) for target in c.targets)),
    }


def _stands_for_source(node: Any) -> bool:
    """Whether the module's column would repeat the source's."""
    return bool(node.source) and not getattr(node, "module", "")


def _detail(c: Any, d: Any) -> dict[str, Any]:
    row = next((r for r in c.rows if r.value == d.value and r.output is d.output), None)
    verdict = row.targets.get(d.target) if row else None
    elements = sum(d.counts) + d.equal
    kind = "output" if d.output else row.op if row else ""
    size = f"{d.dtype}{d.shape}"
    largest = f"largest {number(verdict.relative)}" if verdict else ""
    rows, columns = d.axes
    axes = (
        "All elements"
        if rows < 0 and columns < 0
        else f"Across: axis {columns}" + (f"; down: axis {rows}" if rows >= 0 else "")
    )
    over = len([size for size in d.shape if size > 1]) > 2
    return {
        "title": d.value,
        "text": f"{kind} · {size} · {d.target} · {largest} · {d.equal:,} of {elements:,} elements without error",
        "why": verdict.why if verdict else "",
        "histogram": markup(histogram(d.equal, d.counts, d.sizes)),
        "axes": axes + (", the largest over the other axes" if over else ""),
        "image": markup(heat_map(d.heat_map)),
        "worst": [(str(index), f"{ours:.7g}", f"{theirs:.7g}") for index, ours, theirs in d.worst],
    }


__all__ = ["comparison_page"]
