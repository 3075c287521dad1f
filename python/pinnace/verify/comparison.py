"""compare(): a program against its source, layer by layer, on every target; the result as table, JSON and HTML."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.agreement import Agreement, bounds_of, tolerance_bounds, tolerance_text
from pinnace.arrays import ordered_inputs
from pinnace.files import place_text, printable, write_text
from pinnace.html.notebook import comparison_html
from pinnace.html.report import comparison_page
from pinnace.program import NodeInfo, Program
from pinnace.progress import phase
from pinnace.session import Session, nodes_on
from pinnace.sources.opened import source_of
from pinnace.types import Array, json_text
from pinnace.verify.circumstances import call_text, circumstances
from pinnace.verify.error_details import ErrorDetail, WorstErrors
from pinnace.verify.layer_differences import layer_differences
from pinnace.verify.model_explorer import model_explorer_json
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
    module   the submodule of the source model that it belongs to: "layers.3.conv1"; may be empty.
    """

    value: str
    node: str
    op: str
    source: str
    output: bool
    targets: dict[str, Agreement] = field(default_factory=dict)
    module: str = ""

    @property
    def place(self) -> str:
        """Module and line for people: "in layers.3, net.py:41"; the module is left out where the name begins so."""
        return place_text(self.node or self.value, self.module, self.source)

    @property
    def ok(self) -> bool:
        """True if the value is within its bound on every target."""
        return all(d.ok for d in self.targets.values())


@dataclass(frozen=True)
class ComparedGraph:
    """The graph of the compared program, without what is nested in control flow.

    nodes    in the order in which they run.
    inputs   names of the values that a caller gives.
    outputs  name of an output -> name of the value that it is.
    """

    nodes: list[NodeInfo]
    inputs: list[str]
    outputs: dict[str, str]


@dataclass(frozen=True)
class Comparison:
    """What compare() found. Plain data: it can be pickled, copied and shown without models, devices or files.

    rows         one per value, in the order in which the graph runs, outputs last.
    targets      "cpu" for float32, "cpu bf16" for another precision.
    unavailable  those asked for that cannot run here, with the reason.
    reference    what ran the reference: "torch 2.13".
    nodes        per target: how many nodes ran on a back end that it names, and how many there are.
    inconclusive why equal values prove nothing, one sentence each: an output that does not move with the input, is
                 empty, or has no finite value.
    about        what it was made with, by name: the call, the date, the machine, versions of packages.
    graph        what was compared; None where it is not known.
    details      of the worst values, eight at most, the worst first: where their errors lie.
    """

    rows: list[ComparisonRow]
    targets: list[str]
    unavailable: dict[str, str]
    reference: str
    nodes: dict[str, NodeCount] = field(default_factory=dict)
    inconclusive: list[str] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    graph: ComparedGraph | None = None
    details: list[ErrorDetail] = field(default_factory=list)

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
            [r.value + (" (output)" if r.output else ""), r.op, r.place, *(_cell(r, t) for t in self.targets)]
            for r in rows
        ]
        lines = [[printable(cell) for cell in line] for line in lines]
        widths = [max(len(str(line[i])) for line in [head, *lines]) for i in range(len(head))]
        return "\n".join(
            "  ".join(str(c).ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in [head, *lines]
        )

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Everything but `graph` and `details` as JSON, infinities as "inf"; written to `path` if given, as a whole or
        not at all.

        FileError: it cannot be written.
        """
        text = json_text(
            {
                "ok": self.ok,
                "about": self.about,
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
        """A page for a browser, in one file that loads nothing: the verdict, the circumstances, the targets side by
        side, the graph with errors as colours, a table of all layers to sort and search, and the worst errors as
        histograms and heat maps. Written to `path` if given, as a whole or not at all.

        It has at most 256 KiB and 3 KiB per node or row, and 250 bytes more per row for each target beyond the first.
        Names from a model are shortened to 160 characters and escaped; a policy in the page runs no script but its own.
        FileError: it cannot be written. Needs the jinja2 package.
        """
        text = comparison_page(self)
        _write(path, text)
        return text

    def to_model_explorer(
        self, path: str | PathLike[str] | None = None, *, target: str | None = None, graph: str = "graph"
    ) -> str:
        """Relative differences per node as JSON of node data for Google's Model Explorer, which colours the source
        model's graph by them: open the model there, then add this file as node data. Written to `path` if given, as a
        whole or not at all.

        target  one of `targets`; None takes the worst of all for each value.
        graph   the graph's id there: "graph" for a PyTorch exported program; the model's name for other formats.

        Nodes are found by the names of the values that they make, which importers keep: for exported programs they are
        the nodes' ids, for other formats names of output tensors. Values that differ are red, others coloured by
        decades; what is infinite is written as 1e30. Source of the format: the classes ModelNodeData, GraphNodeData,
        NodeDataResult and ThresholdItem of src/server/package/src/model_explorer/node_data_builder.py in
        github.com/google-ai-edge/model-explorer. FileError: it cannot be written; InvalidArgument: no such target.
        """
        if target is not None and target not in self.targets:
            raise _core.InvalidArgument(f"the comparison has no target {target!r}; it has {self.targets}")
        text = model_explorer_json(self, self.targets if target is None else [target], graph)
        _write(path, text)
        return text

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, the targets side by side, the graph and the worst rows."""
        return comparison_html(self)

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
    tolerance: float | Mapping[str, float] | None = None,
    cancel: _core.CancelToken | None = None,
) -> Comparison:
    """Runs `program` on every target, in every precision, and `reference` once per input, and compares layer by layer.

    Outputs also on a second input beside the first one. When values count as equal: docs/verification.md.

    program    a Program, or the path of a .pnc file.
    reference  nn.Module, ExportedProgram, path of a .pt2, .onnx or .pnc, or a Program; also such a file as bytes or
               open for reading, and onnx.ModelProto.
    inputs     dict name -> array, of the shapes and dtypes of program.inputs, or a list of such dicts.
    targets    one, or several: "cpu", "vulkan", "nnapi:29".
    precision  "fp32", "fp16", "bf16" or several: each is a column beside the target's name, with bounds of its own.
    tolerance  bound on the difference relative to a value's largest magnitude, in place of the stated ones: a number
               for all floating-point types, or a dict dtype name -> number. None: the stated bounds.
    cancel     a CancelToken that ends the comparison with Cancelled; a run of the reference is waited for.

    A wrong number is a row, not an exception. Unsupported: none of the targets can run here; those that cannot are
    listed in `unavailable` otherwise. InvalidArgument: no inputs, no such precision, a tolerance that is negative, NaN,
    1 or more, 0 for floats or for a dtype that does not exist, or the reference cannot be run on the inputs.
    """
    with _core.CancelScope(cancel):
        return _compare(program, reference, _feeds(inputs), targets, precision, tolerance_bounds(tolerance))


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


@phase("comparing")
def _compare(
    program: Program | str | PathLike[str],
    reference: Any,
    inputs: Sequence[Mapping[str, Any]],
    targets: str | Sequence[str],
    precision: str | Sequence[str],
    tolerance: Mapping[str, float],
) -> Comparison:
    given = program
    if not isinstance(program, Program):
        program = Program.open(program)
    targets = [targets] if isinstance(targets, str) else list(targets)
    precisions = [precision] if isinstance(precision, str) else list(precision)
    columns = {t if p == "fp32" else f"{t} {p}": (t, p) for t in targets for p in precisions}
    source = source_of(reference, inputs[0])
    work: Verification | None = None
    worst = WorstErrors()
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
            work = Verification(program, source, [[np.asarray(a) for a in arrays] for arrays in arrays_of], tolerance)
        _outputs(work, session, target, column, rows, worst)
        look = functools.partial(_look_inside, worst, column)
        for arrays in work.examples:
            for node, name, d in layer_differences(program, work.inner, arrays, target, bounds, mode, look):
                made = ComparisonRow(name, node.name, node.op, node.source, False, module=node.module)
                row = rows.setdefault((name, False), made)
                _keep_worst(row, column, d)
        nodes[column] = NodeCount(*nodes_on(session, target))
    if work is None:
        raise _core.Unsupported("none of the targets can run here: " + "; ".join(unavailable.values()))
    ordered = [r for (_, out), r in rows.items() if not out] + [r for (_, out), r in rows.items() if out]
    there = [c for c in columns if c not in unavailable]
    graph = ComparedGraph(
        work.flow.nodes, list(program.inputs), {name: work.flow.value_of(name) for name in program.outputs}
    )
    call = call_text(given, reference, inputs, targets, precisions, tolerance)
    about = circumstances(call, program, [columns[column][0] for column in there])
    if tolerance:
        about["tolerance"] = tolerance_text(tolerance)
    return Comparison(
        ordered,
        there,
        unavailable,
        source.description,
        nodes,
        work.doubts(),
        about,
        graph,
        worst.details(graph.outputs),
    )


def _look_inside(worst: WorstErrors, column: str, name: str, verdict: Agreement, got: Array, want: Array) -> None:
    worst.look(column, name, False, verdict, got, want)


def _outputs(
    work: Verification,
    session: Session,
    target: str,
    column: str,
    rows: dict[tuple[str, bool], ComparisonRow],
    worst: WorstErrors,
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
            allowance = QuantizedAllowance(work.program, work.flow, work.inner, arrays, target, session.precision)
            for place, (name, got) in enumerate(outputs.items()):
                row = rows.setdefault((name, True), ComparisonRow(name, "", "output", "", True))
                verdict = work.verdict(reference, call, place, got, allowance, session.precision)
                _keep_worst(row, column, verdict)
                worst.look(column, name, True, verdict, got, wanted[place])
        for name in session.state:
            if name in reference.ran.states:
                row = rows.setdefault((f"state {name}", True), ComparisonRow(name, "", "state", "", True))
                _keep_worst(row, column, work.state_verdict(reference, name, session.state[name]))


def _keep_worst(row: ComparisonRow, target: str, d: Agreement) -> None:
    known = row.targets.get(target)
    if known is None or (known.ok, -known.relative) > (d.ok, -d.relative):
        row.targets[target] = d


__all__ = ["ComparedGraph", "Comparison", "ComparisonRow", "NodeCount", "compare"]
