"""The tables of `pinnace bench --table` as Markdown whose columns line up, so that it reads well as text."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Sequence

from pinnace.cli.bench_energy import energy_cell, energy_text
from pinnace.cli.bench_table import DEFINITIONS, Cell, Row, Table, has_energy
from pinnace.measure.cores import Column
from pinnace.measure.runs import OTHERS_LIMIT, Spread

_NONE = "-"
WIDTH = 120


def table_text(table: Table) -> str:
    """The whole page."""
    about = table.about
    timed = [row for row in table.rows if not row.why]
    parts = [
        _wrapped(
            f"{table.program} on {about['processor']} ({about['system']}); {about['date']}; pinnace "
            f"{about['pinnace']}. Before anything was timed, the answers of each row were compared with those of cpu "
            "in fp32."
        ),
        *_part(table, timed, "latency", "Latency, ms", lambda cell: _tilde(cell) + _spread(cell.runs.ms)),
        *_part(
            table,
            timed,
            "normalised latency",
            "Normalised latency, ms",
            _normalised,
        ),
        *_part(
            table,
            timed,
            "CPU consumption",
            "CPU consumption with offload",
            lambda cell: _tilde(cell) + _spread(cell.runs.cpu_per_wall, 2),
            ("offload", _offload),
        ),
        *(_part(table, timed, "energy", "Energy", _energy) if has_energy(table) else []),
        "\n".join(_notes(table)),
    ]
    return "\n\n".join(part for part in parts if part)


def _part(
    table: Table,
    rows: Sequence[Row],
    definition: str,
    title: str,
    figure: Callable[[Cell], str],
    more: tuple[str, Callable[[Row], str]] | None = None,
) -> list[str]:
    """A title with its definition, and a table with a column for each number of cores."""
    if not rows:
        return []
    head = ["back end", *([more[0]] if more else []), *(_cores(column) for column in table.columns)]
    lines = [
        [_label(row), *([more[1](row)] if more else []), *(_cell(row, column, figure) for column in table.columns)]
        for row in rows
    ]
    return [_wrapped(f"**{title}**: {DEFINITIONS[definition]}."), markdown_table(head, lines, left=2 if more else 1)]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table whose columns line up; those behind the first `left` ones stand to the right."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(3, *(_width(row[i]) for row in cells)) for i in range(len(head))]
    lines = []
    for row in cells:
        pads = [" " * (width - _width(cell)) for width, cell in zip(widths, row, strict=True)]
        lines.append(
            [cell + pad if i < left else pad + cell for i, (cell, pad) in enumerate(zip(row, pads, strict=True))]
        )
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def _width(text: str) -> int:
    """Places that a terminal gives it."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text if not unicodedata.combining(c))


def _cores(column: Column) -> str:
    return f"{column.cores} core" + ("s" if column.cores > 1 else "")


def _label(row: Row) -> str:
    return row.name + (" (software)" if row.software else "")


def _cell(row: Row, column: Column, figure: Callable[[Cell], str]) -> str:
    cell = next((cell for cell in row.cells if cell.cores == column.cores), None)
    return _NONE if cell is None else figure(cell)


def _tilde(cell: Cell) -> str:
    """Stands before figures that other programs disturbed."""
    return "~" if cell.runs.disturbed else ""


def _normalised(cell: Cell) -> str:
    return _tilde(cell) + _number(cell.normalised_ms)


def _energy(cell: Cell) -> str:
    return energy_cell(cell.energy) if cell.energy is not None else _NONE


def _offload(row: Row) -> str:
    if row.software:
        return "none: software on this processor"
    if not row.offloaded:
        return "none: the processor itself"
    return f"{row.offloaded} of {row.nodes_all} nodes"


def _number(value: float) -> str:
    """Three digits and more."""
    digits = 3 if value < 1 else 2 if value < 100 else 1
    return f"{value:.{digits}f}"


def _spread(spread: Spread, digits: int | None = None) -> str:
    shown = [_number(x) if digits is None else f"{x:.{digits}f}" for x in (spread.median, spread.p10, spread.p90)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _wrapped(text: str, indent: str = "") -> str:
    """In lines that a page of the documentation and a terminal have room for."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _notes(table: Table) -> list[str]:
    """What a reader has to know of single rows and columns, as a list."""
    notes = []
    for column in table.columns:
        if column.why:
            notes.append(f"{_cores(column)}: no figures, as {column.why}.")
        elif column.processors:
            share = "" if column.share is None else f"; at once they do {column.share:.0%} of what each does alone"
            names = ", ".join(map(str, column.processors))
            notes.append(
                f"{_cores(column)}: all threads were kept on processor{'s' * (column.cores > 1)} {names}{share}."
            )
        else:
            notes.append(
                f"{_cores(column)}: the system keeps no threads on processors; so many threads were asked for."
            )
    for row in table.rows:
        if row.why:
            notes.append(f"{_label(row)}: not timed, as {row.why}.")
            continue
        part = f"; {row.nodes_all - row.nodes_there} of {row.nodes_all} nodes run elsewhere"
        elsewhere = part if row.nodes_there < row.nodes_all else ""
        stands = "; this processor stands in for a device, and nothing is offloaded" if row.software else ""
        notes.append(f"{_label(row)}: {row.device}{stands}{elsewhere}; largest difference {row.difference:.1e}.")
    for row in table.rows:
        told = [(cell.cores, energy_text(cell.energy)) for cell in row.cells if cell.energy is not None]
        if len({text for _, text in told}) == 1:
            notes.append(f"{_label(row)}: {told[0][1]}.")
        else:
            notes += [f"{_label(row)}, {count} core{'s' * (count > 1)}: {text}." for count, text in told]
    notes += [f"{target}: not available: {why}." for target, why in table.unavailable.items()]
    if any(cell.runs.disturbed for row in table.rows for cell in row.cells):
        notes.append(f"~: other programs used more than {OTHERS_LIMIT:.0%} of a processor meanwhile.")
    return [_wrapped(f"- {note}", "  ") for note in notes]


__all__ = ["markdown_table", "table_text"]
