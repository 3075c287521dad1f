"""compare(): a program against its source, layer by layer, on every target; the result as table, JSON and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

from pinnace import _core
from pinnace.agreement import tolerance_bounds, tolerance_text
from pinnace.cluster import Cluster, check_client, check_here
from pinnace.files import printable, write_text
from pinnace.html.notebook import comparison_html
from pinnace.html.report import comparison_page
from pinnace.program import NodeInfo, Program
from pinnace.progress import phase
from pinnace.sources.opened import source_of
from pinnace.types import json_text, token, words
from pinnace.verify.circumstances import call_text, circumstances
from pinnace.verify.compared_parts import InputRefused, Part, compared_part
from pinnace.verify.comparison_rows import ComparisonRow, NodeCount
from pinnace.verify.dataflow import Dataflow
from pinnace.verify.error_details import ErrorDetail
from pinnace.verify.model_explorer import model_explorer_json
from pinnace.verify.on_workers import compared_on
from pinnace.verify.verification import doubts_of


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
                 empty, or has no finite value, or a state that the reference has none of the name of.
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
    inputs: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    *,
    targets: str | Sequence[str] = ("cpu",),
    precision: str | Sequence[str] = ("fp32",),
    tolerance: float | Mapping[str, float] | None = None,
    cancel: _core.CancelToken | None = None,
    client: Any = None,
) -> Comparison:
    """Runs `program` on every target, in every precision, and `reference` once per input, and compares layer by layer.

    Outputs also on a second input beside the first one. When values count as equal: docs/verification.md.

    program    a Program, or the path of a .pnc file.
    reference  nn.Module, ExportedProgram, path of a .pt2, .onnx or .pnc, or a Program; also such a file as bytes or
               open for reading, and onnx.ModelProto.
    inputs     dict name -> array, of the shapes and dtypes of program.inputs, or several such dicts.
    targets    one, or several: "cpu", "vulkan", "nnapi:29".
    precision  "fp32", "fp16", "bf16", "auto" or several: each is a column beside the target's name, with bounds of its
               own; "auto" has those of what it became.
    tolerance  bound on the difference relative to a value's largest magnitude, in place of the stated ones: a number
               for all floating-point types, or a dict dtype name -> number. None: the stated bounds.
    cancel     a CancelToken that ends the comparison with Cancelled; a run of the reference is waited for.
    client     a dask.distributed.Client (pip install pinnace[dask]): inputs are compared on its workers, of a generator
               a few at a time. `inputs` may then also be a Dask bag or a list of delayed partitions, each an iterable
               of such dicts. The reference is pickled; a path must lead to the file on every worker too. However the
               inputs are divided, the result is the same. A target that a worker lacks is among `unavailable`.

    A wrong number is a row, not an exception. Unsupported: none of the targets can run here; those that cannot are
    listed in `unavailable` otherwise. InvalidArgument: no inputs, a program for chunks with a reference for the whole,
    no such precision, a tolerance that is negative, NaN, 1 or more, 0 for floats or for a dtype that does not exist, a
    reference that cannot be run on the inputs or cannot be pickled, or a client that is none or is closed. DeviceLost:
    workers died.
    """
    check_client(client)
    cluster = None if client is None else Cluster(client)
    with _core.CancelScope(token(cancel)):
        bounds = tolerance_bounds(tolerance)
        opened = program if isinstance(program, Program) else None
        columns = _columns(targets, precision)
        if not columns:
            raise _core.InvalidArgument("compare needs at least one target and one precision")
        if cluster is None:
            feeds = _feeds(inputs)
            opened = opened or Program.open(program)  # type: ignore[arg-type]
            _check_streams(opened, reference)
            part = _compared_here(opened, reference, feeds, columns, bounds)
        else:
            opened = opened or Program.open(program)  # type: ignore[arg-type]
            _check_streams(opened, reference)
            part = compared_on(cluster, opened, reference, inputs, columns, bounds)
        return _comparison(part, opened, program, reference, columns, targets, precision, bounds, client)


def _check_streams(program: Program, reference: Any) -> None:
    """InvalidArgument: the program takes chunks, and what it is to be held against takes the whole."""
    file = isinstance(reference, str | PathLike) and str(reference).endswith(".pnc")
    if program.stream and not file and not (isinstance(reference, Program) and reference.stream):
        raise _core.InvalidArgument(
            f"compare: the program takes {list(program.stream)} in chunks, and its outputs lag behind: build() holds "
            "chunks against the whole, compare() takes another program for the same chunks as the reference"
        )


def _columns(targets: str | Sequence[str], precision: str | Sequence[str]) -> dict[str, tuple[str, str]]:
    """(target, precision) by the name of the column."""
    modes = words("precision", precision)
    return {t if p == "fp32" else f"{t} {p}": (t, p) for t in words("targets", targets) for p in modes}


def _feeds(inputs: Any) -> list[Mapping[str, Any]]:
    """The dicts of inputs that a caller gave: one, or several."""
    check_here(inputs, "compare: inputs")
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
def _compared_here(
    program: Program,
    reference: Any,
    feeds: Sequence[Mapping[str, Any]],
    columns: Mapping[str, tuple[str, str]],
    tolerance: Mapping[str, float],
) -> Part:
    try:
        return compared_part(program, source_of(reference, feeds[0]), feeds, columns, tolerance)
    except InputRefused as error:
        raise (error.error() if len(feeds) > 1 else _core.InvalidArgument(error.said)) from None


def _comparison(
    part: Part,
    program: Program,
    given: Program | str | PathLike[str],
    reference: Any,
    columns: Mapping[str, tuple[str, str]],
    targets: str | Sequence[str],
    precision: str | Sequence[str],
    tolerance: Mapping[str, float],
    client: Any,
) -> Comparison:
    """Of all inputs. Unsupported: no target could be run."""
    there = [c for c in columns if c not in part.unavailable]
    if not there:
        raise _core.Unsupported("none of the targets can run here: " + "; ".join(part.unavailable.values()))
    rows = [r for (_, out), r in part.rows.items() if not out] + [r for (_, out), r in part.rows.items() if out]
    flow = Dataflow(program)
    graph = ComparedGraph(flow.nodes, list(program.inputs), {name: flow.value_of(name) for name in program.outputs})
    wanted, modes = words("targets", targets), words("precision", precision)
    call = call_text(given, reference, part.feeds, part.count, wanted, modes, tolerance, client)
    about = circumstances(call, program, [columns[column][0] for column in there])
    if tolerance:
        about["tolerance"] = tolerance_text(tolerance)
    return Comparison(
        rows,
        there,
        part.unavailable,
        part.reference,
        part.nodes,
        [*doubts_of(part.seen), *part.states_alone],
        about,
        graph,
        part.worst.details(graph.outputs),
    )


__all__ = ["ComparedGraph", "Comparison", "ComparisonRow", "NodeCount", "compare"]
