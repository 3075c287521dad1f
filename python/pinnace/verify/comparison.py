"""compare(): a program against its source, layer by layer, on every target; the result as table, JSON and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.agreement import Agreement, bounds_of
from pinnace.arrays import ordered_inputs
from pinnace.files import printable, write_text
from pinnace.program import Program
from pinnace.session import Session, nodes_on
from pinnace.sources.opened import source_of
from pinnace.types import json_text
from pinnace.verify.html_page import comparison_page
from pinnace.verify.layer_differences import layer_differences
from pinnace.verify.quantized_allowance import QuantizedAllowance
from pinnace.verify.verification import Verification


@dataclass(frozen=True)
class NodeCount:
    """Of the nodes of a program that compute something in a run: how many ran on a target.

    ran_there  on a back end that the target names.
    all        how many there are.
    """

    ran_there: int
    all: int


@dataclass(frozen=True)
class ComparisonRow:
    """One value: an inner one of the program that the source has too, an output, or a state after the last run.

    value    its name.
    node     the node that makes it; empty for outputs and states.
    op       that node's operator; "output" or "state".
    source   the line of the user's model: "net.py:41"; may be empty.
    output   True for outputs and states.
    targets  one Agreement per target, the worst input's.
    """

    value: str
    node: str
    op: str
    source: str
    output: bool
    targets: dict[str, Agreement] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if the value is within its bound on every target."""
        return all(d.ok for d in self.targets.values())


@dataclass(frozen=True)
class Comparison:
    """What compare() found.

    rows         one per value, in the order in which the graph runs, outputs last.
    targets      "cpu" for float32, "cpu bf16" for another precision.
    unavailable  those asked for that cannot run here, with the reason.
    reference    what ran the reference: "torch 2.13".
    nodes        per target: how many nodes ran on a back end that it names, and how many there are.
    inconclusive why equal values prove nothing, one sentence each: an output that does not move with the input, is
                 empty, or has no finite value.
    """

    rows: list[ComparisonRow]
    targets: list[str]
    unavailable: dict[str, str]
    reference: str
    nodes: dict[str, NodeCount] = field(default_factory=dict)
    inconclusive: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """False if any value of any row is not equal. Says nothing of `unavailable` targets and `inconclusive`."""
        return all(row.ok for row in self.rows)

    def worst(self, target: str) -> float:
        """The largest relative difference of an output on `target`, one of `targets`; 0 where there is none."""
        return max((r.targets[target].relative for r in self.rows if r.output and target in r.targets), default=0.0)

    def table(self, limit: int | None = None) -> str:
        """Plain text: one line per row, one column per target; `limit` keeps as many of the largest and the outputs.

        Where float64 had to tell, a cell has three numbers: ours from the source, ours and the source from float64.
        """
        rows = self.rows
        if limit is not None and len(rows) > limit:
            inner = sorted((r for r in rows if not r.output), key=_size, reverse=True)[: max(0, limit)]
            rows = [r for r in rows if r.output or any(r is i for i in inner)]
        head = ["value", "op", "source", *self.targets]
        lines = [
            [r.value + (" (output)" if r.output else ""), r.op, r.source, *(_cell(r, t) for t in self.targets)]
            for r in rows
        ]
        lines = [[printable(cell) for cell in line] for line in lines]
        widths = [max(len(str(line[i])) for line in [head, *lines]) for i in range(len(head))]
        return "\n".join(
            "  ".join(str(c).ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in [head, *lines]
        )

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Everything as JSON, infinities as "inf"; written to `path` if given, as a whole or not at all.

        FileError: it cannot be written.
        """
        text = json_text(
            {
                "ok": self.ok,
                "inconclusive": self.inconclusive,
                "reference": self.reference,
                "targets": self.targets,
                "unavailable": self.unavailable,
                "nodes": {target: asdict(count) for target, count in self.nodes.items()},
                "rows": [asdict(r) | {"ok": r.ok} for r in self.rows],
            },
            indent=1,
        )
        _write(path, text)
        return text

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """One page with a bar per value and target; written to `path` if given, as a whole or not at all.

        Names from a model are escaped. FileError: it cannot be written. Needs the jinja2 package.
        """
        text = comparison_page(self)
        _write(path, text)
        return text

    def __str__(self) -> str:
        """The table, the targets that did not run all nodes or none, and a last line with the verdict."""
        bad = sum(not r.ok for r in self.rows)
        lines = [self.table()]
        fewer = {target: count for target, count in self.nodes.items() if count.ran_there < count.all}
        lines += [f"{target}: {n.ran_there} of {n.all} nodes ran there" for target, n in fewer.items()]
        lines += [f"{target}: cannot run here: {printable(reason)}" for target, reason in self.unavailable.items()]
        lines += [f"inconclusive: {doubt}" for doubt in map(printable, self.inconclusive)]
        equal = "equal within bounds" + (", which proves nothing of these outputs" if self.inconclusive else "")
        lines.append(equal if self.ok else f"{bad} of {len(self.rows)} values differ")
        return "\n".join(lines)


def _size(row: ComparisonRow) -> float:
    return max((d.relative for d in row.targets.values()), default=0.0)


def _cell(row: ComparisonRow, target: str) -> str:
    if target not in row.targets:
        return "-"
    d = row.targets[target]
    exact = f" ({d.exact.ours:.1e}, {d.exact.source:.1e})" if d.exact else ""
    return f"{d.relative:.2e}{exact}" + ("" if d.ok else " !")


def _write(path: str | PathLike[str] | None, text: str) -> None:
    if path is not None:
        write_text(path, text)


def compare(
    program: Program | str | PathLike[str],
    reference: Any,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    targets: str | Sequence[str] = ("cpu",),
    precision: str | Sequence[str] = ("fp32",),
    tolerance: Mapping[str, float] | None = None,
    cancel: _core.CancelToken | None = None,
) -> Comparison:
    """Runs `program` on every target, in every precision, and `reference` once per input, and compares layer by layer.

    Outputs also on a second input beside the first one. When values count as equal: docs/verification.md.

    program    a Program, or the path of a .pnc file.
    reference  nn.Module, ExportedProgram, path of a .pt2, .onnx or .pnc, or a Program.
    inputs     dict name -> array, of the shapes and dtypes of program.inputs, or a list of such dicts.
    targets    one, or several: "cpu", "vulkan", "nnapi:29".
    precision  "fp32", "fp16", "bf16" or several: each is a column beside the target's name, with bounds of its own.
    tolerance  dtype name -> bound on the difference relative to a value's largest magnitude; None: the stated bounds.
    cancel     a CancelToken that ends the comparison with Cancelled; a run of the reference is waited for.

    A wrong number is a row, not an exception. Unsupported: none of the targets can run here; those that cannot are
    listed in `unavailable` otherwise. InvalidArgument: no inputs, no such precision, or the reference cannot be run on
    them.
    """
    with _core.CancelScope(cancel):
        return _compare(program, reference, _feeds(inputs), targets, precision, tolerance or {})


def _feeds(inputs: Any) -> list[Mapping[str, Any]]:
    """The dicts of inputs that a caller gave: one, or several."""
    feeds = [inputs] if isinstance(inputs, Mapping) else list(inputs) if isinstance(inputs, Iterable) else [inputs]
    if not feeds:
        raise _core.InvalidArgument("compare needs at least one dict of inputs")
    for feed in feeds:
        if not isinstance(feed, Mapping):
            raise _core.InvalidArgument(
                f"compare: inputs must be a dict of input names and arrays, or a list of such dicts, not "
                f"{type(feed).__name__}" + (f" in a {type(inputs).__name__}" if feed is not inputs else "")
            )
    return feeds


def _compare(
    program: Program | str | PathLike[str],
    reference: Any,
    inputs: Sequence[Mapping[str, Any]],
    targets: str | Sequence[str],
    precision: str | Sequence[str],
    tolerance: Mapping[str, float],
) -> Comparison:
    if not isinstance(program, Program):
        program = Program.open(program)
    targets = [targets] if isinstance(targets, str) else list(targets)
    precisions = [precision] if isinstance(precision, str) else list(precision)
    columns = {t if p == "fp32" else f"{t} {p}": (t, p) for t in targets for p in precisions}
    source = source_of(reference, inputs[0])
    work: Verification | None = None
    rows: dict[tuple[str, bool], ComparisonRow] = {}
    unavailable: dict[str, str] = {}
    nodes: dict[str, NodeCount] = {}
    for column, (target, mode) in columns.items():
        bounds = {**bounds_of(mode), **tolerance}
        try:
            session = Session(program, target, precision=mode)
        except _core.Unsupported as error:
            unavailable[column] = str(error)
            continue
        if work is None:
            arrays_of = [ordered_inputs(program.inputs, feed) for feed in inputs]  # names what is missing or unknown
            work = Verification(program, source, [[np.asarray(a) for a in arrays] for arrays in arrays_of])
        _outputs(work, session, target, column, tolerance, rows)
        for arrays in work.examples:
            for node, name, d in layer_differences(program, source, arrays, target, bounds, mode):
                row = rows.setdefault((name, False), ComparisonRow(name, node.name, node.op, node.source, False))
                _keep_worst(row, column, d)
        nodes[column] = NodeCount(*nodes_on(session, target))
    if work is None:
        raise _core.Unsupported("none of the targets can run here: " + "; ".join(unavailable.values()))
    ordered = [r for (_, out), r in rows.items() if not out] + [r for (_, out), r in rows.items() if out]
    there = [c for c in columns if c not in unavailable]
    return Comparison(ordered, there, unavailable, source.description, nodes, work.doubts())


def _outputs(
    work: Verification,
    session: Session,
    target: str,
    column: str,
    tolerance: Mapping[str, float],
    rows: dict[tuple[str, bool], ComparisonRow],
) -> None:
    """The rows of outputs and states: on the inputs, and on a second input beside the first of them."""
    for arrays in work.examples:
        session.reset_state()
        session.run(dict(zip(session.inputs, arrays, strict=True)))  # what does not fit is refused here
    for reference in work.referred():
        session.reset_state()
        for call, arrays in enumerate(reference.steps):
            outputs, wanted = work.unseen.run(session, arrays), reference.ran.outputs[call]
            if len(outputs) != len(wanted):
                raise _core.InvalidArgument(
                    f"the program has {len(outputs)} outputs, the reference gave {len(wanted)}: not the same model"
                )
            allowance = QuantizedAllowance(work.program, work.flow, work.source, arrays, target, session.precision)
            for place, (name, got) in enumerate(outputs.items()):
                row = rows.setdefault((name, True), ComparisonRow(name, "", "output", "", True))
                _keep_worst(
                    row, column, work.verdict(reference, call, place, got, allowance, session.precision, tolerance)
                )
        for name in session.state:
            if name in reference.ran.states:
                row = rows.setdefault((f"state {name}", True), ComparisonRow(name, "", "state", "", True))
                _keep_worst(row, column, reference.judge_state(name, session.state[name]))


def _keep_worst(row: ComparisonRow, target: str, d: Agreement) -> None:
    known = row.targets.get(target)
    if known is None or (known.ok, -known.relative) > (d.ok, -d.relative):
        row.targets[target] = d


__all__ = ["Comparison", "ComparisonRow", "NodeCount", "compare"]
