"""What notebooks show of models, programs, placements, profiles and comparisons: short tables and small pictures.

Each is one <div> with its style inside and no script. Rows are limited, so that an output stays below about 150 KB
however large a model is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pinnace.html.charts import share_bar
from pinnace.html.comparison_parts import pictures_of, targets_table, verdict_cell, verdict_of, worst_of
from pinnace.html.document import LEGEND, part, text
from pinnace.html.graph_picture import Box, GraphPictures

_ROWS_MOST, _WORST_MOST, _EVENTS_MOST = 100, 10, 600
_BACKEND_CLASSES = ("bar", "b1", "b2", "b3", "b4")


def _shell(title: str, *parts: str) -> str:
    return f'<div class="pinnace"><style>{part("style.css")}</style><h3>{text(title)}</h3>{"".join(parts)}</div>'


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()) -> str:
    """heads and cells are texts; numbers: columns that are aligned as such."""
    right = set(numbers)
    head = "".join(f"<th>{text(h)}</th>" for h in heads)
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if i in right else ''}>{text(cell)}</td>" for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll tall"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _folded(summary: str, body: str, open_: bool = False) -> str:
    return f"<details{' open' if open_ else ''}><summary>{text(summary)}</summary>{body}</details>"


def _more(count: int) -> str:
    return f'<p class="soft">… and {count - _ROWS_MOST:,} more</p>' if count > _ROWS_MOST else ""


# ---- models and programs --------------------------------------------------------------------------------------------


def _specs(kinds: Sequence[tuple[str, Any]]) -> str:
    rows = [
        (kind, spec.name, str(spec.dtype), "[" + ", ".join("?" if d is None else str(d) for d in spec.shape) + "]")
        for kind, specs in kinds
        for spec in specs.values()
    ]
    return _table(["", "name", "dtype", "shape"], rows[:_ROWS_MOST]) + _more(len(rows))


def _graph(nodes: Sequence[Any], inputs: Iterable[str], outputs: Iterable[str]) -> str:
    top = [node for node in nodes if not node.path]
    if not top:
        return ""
    made = {value for node in top for value in node.outputs}

    def box_of(place: int) -> Box:
        node = top[place]
        label = node.outputs[0] if node.outputs else node.name
        return Box(node.op, label, f"{node.op} {node.name} {' '.join(node.output_types[:2])}", ["none"])

    pictures = GraphPictures(
        top,
        list(inputs),
        {name: name for name in outputs if name in made},
        box_of,
        lambda _: ["none"],
        lambda name: Box("output", name, name, ["io"]),
    )
    return f'<div class="scroll tall">{pictures.whole()}</div>'


def _operators(nodes: Sequence[Any]) -> str:
    counts = Counter(node.op for node in nodes).most_common()
    told = ", ".join(f"{count:,} {op}" for op, count in counts[:12])
    return f'<p class="soft">{text(told + (f" and {len(counts) - 12} more" if len(counts) > 12 else ""))}</p>'


def model_html(model: Any) -> str:
    """Of a pinnace.Model."""
    nodes = model.nodes
    changed = [(p.name, p.changes) for p in model.passes if p.changes]
    title = repr(model).removeprefix("<pinnace.").partition(":")[0]
    return _shell(
        f"{title}: {len(nodes):,} nodes",
        _specs([("input", model.inputs), ("output", model.outputs)]),
        _operators(nodes),
        _folded("graph", _graph(nodes, model.inputs, model.outputs), open_=True),
        _folded("passes that changed it", _table(["pass", "changes"], changed, [1])) if changed else "",
        "".join(f'<p class="doubt">{text(note)}</p>' for note in model.notes[:20]),
    )


def program_html(program: Any) -> str:
    """Of a pinnace.Program."""
    nodes, metadata = program.nodes, program.metadata
    kinds = [("input", program.inputs), ("output", program.outputs), ("state", program.states)]
    doubt = metadata.inconclusive or not metadata.verified or metadata.verified.startswith("no")
    verified = metadata.verified or "not recorded"
    return _shell(
        f"Program {metadata.source}: {len(nodes):,} nodes",
        f'<p>verified: <b class="{"doubt" if doubt else "good"}">{text(verified)}</b></p>',
        _specs(kinds),
        _operators(nodes),
        _folded("graph", _graph(nodes, program.inputs, program.outputs), open_=True),
        _folded("what the file records", _table(["", ""], list(metadata.items())[:_ROWS_MOST])),
    )


# ---- runs -----------------------------------------------------------------------------------------------------------


def _classes(backends: Iterable[str]) -> dict[str, str]:
    names = list(dict.fromkeys(backends))
    return {name: _BACKEND_CLASSES[min(i, len(_BACKEND_CLASSES) - 1)] for i, name in enumerate(names)}


def _backends(shares: Counter[str], unit: str) -> str:
    whole = sum(shares.values()) or 1
    kinds = _classes(name for name, _ in shares.most_common())
    bar = share_bar([(f"{name}: {n:,} {unit}", kinds[name], n / whole) for name, n in shares.most_common()])
    key = "".join(f'<span><i class="{kinds[name]}"></i>{text(name)}: {n:,} {unit}</span>' for name, n in shares.items())
    return f'<p>{bar} <span class="key">{key}</span></p>'


def placement_html(rows: Sequence[Any]) -> str:
    """Of what Session.placement gives."""
    shown = rows[:_ROWS_MOST]
    table = _table(
        ["node", "operator", "source", "back end", "kernel", "bytes copied", "why not elsewhere, notices"],
        [
            (
                f"{r.path}/{r.node}" if r.path else r.node,
                r.op,
                r.source,
                r.backend,
                r.kernel,
                f"{r.bytes_copied:,}",
                "; ".join([*r.why, r.notice]).strip("; "),
            )
            for r in shown
        ],
        [5],
    )
    return _shell(
        f"Placement of {len(rows):,} nodes",
        _backends(Counter(row.backend for row in rows), "nodes"),
        table,
        _more(len(rows)),
    )


def profile_html(profile: Any) -> str:
    """Of a pinnace.Profile."""
    events = profile.events
    start = min((e.start_ns for e in events), default=0)
    total = max((e.start_ns + e.duration_ns for e in events), default=0) - start
    by_backend: Counter[str] = Counter()
    by_op: Counter[str] = Counter()
    for e in events:
        by_backend[e.backend] += e.duration_ns
        by_op[e.op] += e.duration_ns
    kinds, width = _classes(name for name, _ in by_backend.most_common()), 720
    # What is too short to be seen is left out where there are many.
    drawn = sorted(sorted(events, key=lambda e: -e.duration_ns)[:_EVENTS_MOST], key=lambda e: e.start_ns)
    rects = "".join(
        f'<rect class="{kinds[e.backend]}" x="{width * (e.start_ns - start) / total:.1f}" y="2" height="28" '
        f'width="{max(0.4, width * e.duration_ns / total - 0.3):.1f}"><title>{text(e.node)} ({text(e.kernel)}): '
        f"{e.duration_ns / 1e3:,.1f} µs</title></rect>"
        for e in drawn
        if total
    )
    line = f'<svg class="time" viewBox="0 0 {width} 34" preserveAspectRatio="none">{rects}</svg>'
    busy = sum(by_op.values()) or 1
    ops = "".join(
        f"<tr><td>{text(op)}</td><td>{share_bar([(op, 'bar', ns / busy)])}</td>"
        f"<td class=n>{ns / 1e3:,.1f} µs</td><td class=n>{100 * ns / busy:.1f} %</td></tr>"
        for op, ns in by_op.most_common(8)
    )
    longest = sorted(events, key=lambda e: -e.duration_ns)[:_WORST_MOST]
    rows = [(e.node, e.op, e.backend, e.kernel, f"{e.duration_ns / 1e3:,.1f}") for e in longest]
    return _shell(
        f"Profile: {len(events):,} nodes in {total / 1e6:,.3g} ms",
        line,
        f'<div class="scroll"><table><tbody>{ops}</tbody></table></div>',
        _folded("nodes that took longest", _table(["node", "operator", "back end", "kernel", "µs"], rows, [4])),
    )


# ---- comparisons ----------------------------------------------------------------------------------------------------


def comparison_html(c: Any) -> str:
    """Of a pinnace.Comparison."""
    verdict = verdict_of(c)
    mark = {"yes": "good", "maybe": "doubt", "no": "wrong"}[verdict.kind]
    worst = sorted(c.rows, key=lambda row: _badness(row), reverse=True)[:_WORST_MOST]
    heads = "".join(f"<th>{text(head)}</th>" for head in ("value", "operator", "source", *c.targets))
    body = "".join(
        f"<tr><td>{text(row.value)}{' (output)' if row.output else ''}</td><td>{text(row.op)}</td>"
        f"<td>{text(row.source)}</td>{''.join(verdict_cell(row.targets.get(t)) for t in c.targets)}</tr>"
        for row in worst
    )
    rows = f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    pictures = pictures_of(c, links=False)
    key = "".join(f'<span><i class="{kind}"></i>{label}</span>' for kind, label in LEGEND)
    graph = f'<p class="key">{key}</p><div class="scroll tall">{pictures.whole()}</div>' if pictures else ""
    return _shell(
        "Comparison",
        f'<p><b class="{mark}">{text(verdict.title)}</b></p>',
        "".join(f"<p>{line}</p>" for line in verdict.lines),
        "".join(f'<p class="doubt">inconclusive: {text(doubt)}</p>' for doubt in c.inconclusive[:20]),
        targets_table(c),
        _folded("graph", graph, open_=True) if graph else "",
        _folded(f"the {len(worst)} largest differences of {len(c.rows):,} values", rows, open_=not c.ok),
        '<p class="soft">to_html(path) writes a page with all layers, their graph and the largest errors.</p>',
    )


def _badness(row: Any) -> tuple[bool, float]:
    worst = worst_of(list(row.targets.values()))
    return (not worst.ok, worst.relative) if worst else (False, 0.0)


__all__ = ["comparison_html", "model_html", "placement_html", "profile_html", "program_html"]
