"""What compare() finds on a part of its inputs, in this process or on a worker, and how parts become the whole."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.agreement import Agreement, bounds_of
from pinnace.arrays import ordered_inputs
from pinnace.program import Program
from pinnace.session import Session, nodes_on
from pinnace.sources.base import Source
from pinnace.types import Array
from pinnace.verify.circumstances import feed_text
from pinnace.verify.comparison_rows import ComparisonRow, NodeCount
from pinnace.verify.error_details import WorstErrors
from pinnace.verify.layer_differences import layer_differences
from pinnace.verify.quantized_allowance import QuantizedAllowance
from pinnace.verify.verification import Seen, Verification

# Of so many inputs a report names the arrays.
NAMED = 3


class InputRefused(Exception):
    """What is wrong with an input. Its number may be within a part of the data set."""

    def __init__(self, number: int, said: str) -> None:
        """number: from 0; said: without the number."""
        super().__init__(number, said)
        self.number, self.said = number, said

    def error(self, before: int = 0) -> _core.InvalidArgument:
        """before: inputs of the data set before this part."""
        return _core.InvalidArgument(f"compare: input {before + self.number}: {self.said}")


@dataclass
class Part:
    """Of some inputs in a row.

    count        how many.
    feeds        the first of them as text.
    reference    what ran the reference.
    rows         by value, and whether it is an output.
    unavailable  targets that cannot run here, with the reason.
    nodes        per target, how many ran there.
    seen         of each output, what the source gave.
    states_alone phrases on states that the source has none of the name of.
    worst        where the largest errors are.
    refused      what is wrong with an input; then nothing was compared.
    """

    count: int = 0
    feeds: list[str] = field(default_factory=list)
    reference: str = ""
    rows: dict[tuple[str, bool], ComparisonRow] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, NodeCount] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    states_alone: dict[str, None] = field(default_factory=dict)
    worst: WorstErrors = field(default_factory=WorstErrors)
    refused: tuple[int, str] | None = None

    def add(self, part: Part) -> None:
        """What the inputs that follow gave."""
        part.worst.shift(self.count)
        self.count += part.count
        self.feeds = (self.feeds + part.feeds)[:NAMED]
        self.reference = self.reference or part.reference
        for key, row in part.rows.items():
            mine = self.rows.setdefault(key, row)
            if mine is not row:
                for column, verdict in row.targets.items():
                    _keep_worst(mine, column, verdict)
        self.unavailable |= part.unavailable
        self.nodes |= part.nodes
        self.seen = {name: self.seen[name].merged(s) if name in self.seen else s for name, s in part.seen.items()} or (
            self.seen
        )
        self.states_alone |= part.states_alone
        self.worst.merge(part.worst)

    def without_unavailable(self) -> Part:
        """Without the columns that could not be run everywhere: a worker may lack a target that others have."""
        if self.unavailable:
            for row in self.rows.values():
                for column in self.unavailable:
                    row.targets.pop(column, None)
            self.rows = {key: row for key, row in self.rows.items() if row.targets}
            self.nodes = {column: count for column, count in self.nodes.items() if column not in self.unavailable}
        return self


def compared_part(
    program: Program,
    source: Source,
    inputs: Sequence[Mapping[str, Any]],
    columns: Mapping[str, tuple[str, str]],
    tolerance: Mapping[str, float],
    second: bool = True,
    threads: int = 0,
) -> Part:
    """inputs: at least one. columns: (target, precision) by what a column is called. second: the inputs begin the data
    set, whose first one gets a second beside it. threads: of each session; 0: as many as help.

    InputRefused: names of an input are missing or unknown; InvalidArgument: the reference cannot be run on them.
    """
    part = Part(len(inputs), [feed_text(feed) for feed in inputs[:NAMED]], source.description)
    work: Verification | None = None
    for place, (column, (target, mode)) in enumerate(columns.items()):
        try:
            session = Session(program, target, threads, precision=mode)
        except _core.Unsupported as error:
            part.unavailable[column] = str(error)
            continue
        bounds = {**bounds_of(session.precision), **tolerance}  # of what "auto" became
        if work is None:
            arrays_of = [_ordered(program, feed, number) for number, feed in enumerate(inputs)]
            work = Verification(program, source, arrays_of, tolerance, second)
        _outputs(work, session, target, column, part, place)
        look = functools.partial(_look_inside, part.worst, column)
        for number, arrays in enumerate(work.examples):
            part.worst.place = (number, place)
            inner = layer_differences(program, work.inner, arrays, target, bounds, mode, look, threads)
            for node, name, d in inner:
                if not d.ok and work.flow.origins_of(name).suppressed:
                    continue  # its rows are of detections, which have no order: the outputs are judged as sets
                made = ComparisonRow(name, node.name, node.op, node.source, False, module=node.module)
                _keep_worst(part.rows.setdefault((name, False), made), column, d)
        part.nodes[column] = NodeCount(*nodes_on(session, target))
    if work is not None:
        part.seen = work.seen()
        part.states_alone = dict.fromkeys(work.states_alone())
    return part


def _ordered(program: Program, feed: Any, number: int) -> list[Array]:
    try:
        return [np.asarray(a) for a in ordered_inputs(program.inputs, feed)]
    except _core.InvalidArgument as error:
        raise InputRefused(number, str(error)) from None


def _look_inside(worst: WorstErrors, column: str, name: str, verdict: Agreement, got: Array, want: Array) -> None:
    worst.look(column, name, False, verdict, got, want)


def _outputs(work: Verification, session: Session, target: str, column: str, part: Part, place: int) -> None:
    """The rows of outputs and states: on the inputs, and on a second input beside the first of the data set."""
    rows = part.rows
    for arrays in work.examples:
        session.reset_state()
        session.run(dict(zip(session.inputs, arrays, strict=True)))  # what does not fit is refused here
    for number, reference in enumerate(work.referred()):
        part.worst.place = (number, place)
        session.reset_state()
        for call, arrays in enumerate(reference.steps):
            outputs, wanted = work.unseen.run(session, arrays), reference.ran.outputs[call]
            if len(outputs) != len(wanted):
                raise _core.InvalidArgument(
                    f"the program has {len(outputs)} outputs, the reference gave {len(wanted)}: not the same model"
                )
            allowance = QuantizedAllowance(work.program, work.flow, work.inner, arrays, target, session.precision)
            for i, (name, got) in enumerate(outputs.items()):
                row = rows.setdefault((name, True), ComparisonRow(name, "", "output", "", True))
                verdict = work.verdict(reference, call, i, got, allowance, session.precision, outputs)
                _keep_worst(row, column, verdict)
                if not work.is_of_detections(i):  # whose rows are not those of the same places
                    part.worst.look(column, name, True, verdict, got, wanted[i])
        for name in session.state:
            if name in reference.ran.states:
                row = rows.setdefault((f"state {name}", True), ComparisonRow(name, "", "state", "", True))
                _keep_worst(row, column, work.state_verdict(reference, name, session.state[name]))


def _keep_worst(row: ComparisonRow, target: str, d: Agreement) -> None:
    known = row.targets.get(target)
    if known is None or (known.ok, -known.relative) > (d.ok, -d.relative):
        row.targets[target] = d


__all__ = ["InputRefused", "Part", "compared_part"]
