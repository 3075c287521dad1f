"""What the page of a comparison and its view in a notebook share: colors of nodes, pictures, a table of targets.

Comparisons are taken as they are, pinnace.Comparison and its parts, whose classes stand above this folder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pinnace.html.charts import error_line
from pinnace.html.document import BAD, UNKNOWN, number, sentence, shown, step_of, text
from pinnace.html.graph_picture import Box, GraphPictures
from pinnace.html.grouping import module_of

# From harmless to bad; a group has the worst class of its nodes.
_CLASSES = [UNKNOWN, "e0", "e1", "e2", "e3", "e4", BAD]


@dataclass(frozen=True)
class Verdict:
    """The headline: its kind ("yes", "maybe", "no"), a title, and sentences below it, which are HTML already."""

    kind: str
    title: str
    lines: list[Any]


def verdict_of(c: Any) -> Verdict:
    """Of a comparison."""
    count, targets = len(c.rows), ", ".join(c.targets)
    reference = f"Reference: {c.reference}."
    if not c.ok:
        bad = [row for row in c.rows if not row.ok]
        first = bad[0]
        target, judged = next((t, d) for t, d in first.targets.items() if not d.ok)
        where = f" ({first.op}{', ' + first.source if first.source else ''})"
        lines = [
            f"{len(bad)} of {count} values are outside of their bounds. {reference}",
            f"The first, in the order of the graph: {shown(first.value)}{where} on {target} {judged.why}.",
        ]
        return Verdict("no", "Values differ", [sentence(line) for line in lines])
    lines = [sentence(f"All {count} values are within their bounds on {targets}. {reference}")]
    if c.inconclusive:
        return Verdict("maybe", "Equal within bounds, which proves nothing of some outputs", lines)
    if c.unavailable:
        return Verdict("maybe", f"Equal within bounds; not run: {', '.join(c.unavailable)}", lines)
    return Verdict("yes", "Equal within bounds", lines)


def worst_of(verdicts: Sequence[Any]) -> Any:
    """The worst of some Agreements; None of none."""
    return max(verdicts, key=lambda d: (not d.ok, d.relative), default=None)


class NodeColors:
    """Classes of color of the nodes and outputs of a comparison: on the worst target first, then on each."""

    def __init__(self, c: Any) -> None:
        self._c = c
        self.inner = {row.value: (i, row) for i, row in enumerate(c.rows) if not row.output}
        self.outputs = {row.value: (i, row) for i, row in enumerate(c.rows) if row.output and row.op != "state"}

    def of_row(self, row: Any) -> list[str]:
        """One class per choice."""
        verdicts = [row.targets.get(target) for target in self._c.targets]
        worst = worst_of([d for d in verdicts if d is not None])
        choices = [worst, *verdicts] if len(verdicts) > 1 else [worst]
        return [UNKNOWN if d is None else step_of(d.relative, d.ok) for d in choices]

    def of_node(self, node: Any) -> list[str]:
        """The worst of what it makes."""
        return combined([self.of_row(self.inner[v][1]) for v in node.outputs if v in self.inner], self._choices())

    def of_nodes(self, places: list[int]) -> list[str]:
        """The worst of several."""
        nodes = self._c.graph.nodes
        return combined([self.of_node(nodes[place]) for place in places], self._choices())

    def _choices(self) -> int:
        return len(self._c.targets) + 1 if len(self._c.targets) > 1 else 1


def combined(classes: Sequence[Sequence[str]], choices: int) -> list[str]:
    """The worst class per choice."""
    if not classes:
        return [UNKNOWN] * choices
    return [max(column, key=_CLASSES.index) for column in zip(*classes, strict=True)]


def pictures_of(c: Any, links: bool) -> GraphPictures | None:
    """Of a comparison's graph; links: to the rows of a page. None where the graph is not known."""
    if c.graph is None or not c.graph.nodes:
        return None
    colors, nodes = NodeColors(c), c.graph.nodes

    def link(row: tuple[int, Any] | None) -> str:
        return f"#r{row[0]}" if links and row else ""

    def box_of(place: int) -> Box:
        node = nodes[place]
        rows = [colors.inner[v] for v in node.outputs if v in colors.inner]
        module = module_of(node)
        says = [f"{node.op} {node.name}", *node.output_types[:2]]
        says += [f"in {module}"] if module else []
        says += [node.source] if node.source and node.source != module else []
        says += [f"{t}: {number(d.relative)}" for _, row in rows[:1] for t, d in row.targets.items()]
        label = node.outputs[0] if node.outputs else node.name
        return Box(node.op, label, " · ".join(map(shown, says)), colors.of_node(node), link(next(iter(rows), None)))

    def output_box(name: str) -> Box:
        row = colors.outputs.get(name)
        classes = colors.of_row(row[1]) if row else [UNKNOWN]
        return Box("output", name, name, classes, link(row))

    known: dict[int, list[str]] = {}

    def group_classes(places: list[int]) -> Sequence[str]:
        for place in places:
            if place not in known:
                known[place] = colors.of_node(nodes[place])
        return combined([known[place] for place in places], len(known[places[0]]))

    return GraphPictures(nodes, c.graph.inputs, c.graph.outputs, box_of, group_classes, output_box)


def targets_table(c: Any) -> str:
    """One column per target that ran or should have."""
    heads = "".join(f"<th>{text(t)}</th>" for t in [*c.targets, *c.unavailable])
    lines: list[tuple[str, list[str]]] = []
    verdicts = {t: [(row, row.targets[t]) for row in c.rows if t in row.targets] for t in c.targets}
    bad = {t: sum(not d.ok for _, d in found) for t, found in verdicts.items()}
    said = {
        t: '<b class="good">equal within bounds</b>' if not n else f'<b class="wrong">{n:,} differ</b>'
        for t, n in bad.items()
    }
    lines.append(
        (
            "verdict",
            [said[t] for t in c.targets]
            + [f'<b class="doubt">not run</b>: {text(why)}' for why in c.unavailable.values()],
        )
    )
    lines.append(("values compared", [f"{len(verdicts[t]):,}" for t in c.targets]))
    for label, output in (("largest difference of an output", True), ("of an inner value", False)):
        cells = []
        for t in c.targets:
            among = [(row, d) for row, d in verdicts[t] if row.output is output]
            row, d = max(among, key=lambda item: (not item[1].ok, item[1].relative), default=(None, None))
            cells.append(
                "–" if row is None or d is None else f"{number(d.relative)} <span class=soft>{text(row.value)}</span>"
            )
        lines.append((label, cells))
    if c.nodes:
        ran = [c.nodes.get(t) for t in c.targets]
        lines.append(("nodes that ran there", [f"{n.ran_there:,} of {n.all:,}" if n else "–" for n in ran]))
    pictures = [
        error_line([(d.relative, d.ok) for row, d in verdicts[t] if not row.output], f"errors along the graph on {t}")
        for t in c.targets
    ]
    if any(pictures):
        lines.append(("along the graph, 1e-9 to 1", pictures))
    width = len(c.targets) + len(c.unavailable)
    body = "".join(
        f"<tr><th>{label}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}{'<td></td>' * (width - len(cells))}</tr>"
        for label, cells in lines
    )
    return f'<div class="scroll"><table><thead><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def bar_width(relative: float, full: float) -> float:
    """The length of a bar: the logarithm, none at 1e-9, full at 1 and above."""
    if not relative > 1e-9:
        return 0.0
    return full * min(1.0, (math.log10(min(relative, 1.0)) + 9) / 9)


def verdict_cell(d: Any) -> str:
    """The cell of a table for one Agreement, None for none."""
    if d is None:
        return "<td class=e>–</td>"
    bar = f'<i class="{step_of(d.relative, d.ok)}" style="width:{bar_width(d.relative, 60):.0f}px"></i>'
    value = d.relative if math.isfinite(d.relative) else 1e300
    exact = f" (from float64: ours {d.exact.ours:.1e}, the source {d.exact.source:.1e})" if d.exact else ""
    small = exact.strip() if d.ok else text(d.why)
    small = f"<small>{small}</small>" if small else ""
    title = f' title="{text(d.note)}"' if d.note else ""
    return f'<td class="e{"" if d.ok else " wrong"}" data-v="{value:.4g}"{title}>{bar}{number(d.relative)}{small}</td>'


__all__ = [
    *("NodeColors", "Verdict", "bar_width", "combined", "pictures_of", "targets_table", "verdict_cell", "verdict_of"),
    "worst_of",
]
