"""QuantizationReport: which nodes compute in integers, which stay in float and why, and what it costs and gains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pinnace import _core
from pinnace.files import printable

FACT = "quantization"  # of a program's metadata


@dataclass(frozen=True)
class QuantizationRow:
    """One node of the float program.

    node, op      its name and operator.
    source        the line of the user's model; may be empty.
    module        the user's module; may be empty.
    kept_float    whether it computes in float.
    reason        why it does; empty where it does not.
    error         of its result: root mean square of the difference from the float program's over the first samples,
                  relative to that of the result; None where it was not measured.
    sensitivity   the same of the worst output with this layer alone quantised; None where accuracy control did not ask.
    bytes_before  of its weights in float, 0 for nodes without weights.
    bytes_after   as they are stored.
    ns_before     one run in float on this machine, nanoseconds; None where it was not measured.
    ns_after      the same of what it has become.
    """

    node: str
    op: str
    source: str
    module: str
    kept_float: bool
    reason: str
    error: float | None
    sensitivity: float | None
    bytes_before: int
    bytes_after: int
    ns_before: int | None
    ns_after: int | None


@dataclass(frozen=True)
class RangeRow:
    """One quantised value: real = (integer - zero_point) * scale.

    low, high  the range that was chosen; least and greatest were seen.
    histogram  (where its first step begins, width of a step, counts), at most 64 steps.
    """

    value: str
    scale: float
    zero_point: int
    low: float
    high: float
    least: float
    greatest: float
    histogram: tuple[float, float, list[int]]


@dataclass(frozen=True)
class QuantizationReport:
    """The report of a quantisation.

    rows        one for each node of the float program, in order.
    ranges      one for each quantised value; empty for a program that was read from a file.
    method      "int8".
    samples     how many calls the calibration had.
    errors      by output: as QuantizationRow.error.
    score       the metric of the float program and of this one; None without a metric.
    ns          one run of the float program and of this one, nanoseconds on one thread of this machine; None where it
                was not measured.
    said        what else a user should know, a sentence each.
    """

    rows: list[QuantizationRow]
    ranges: list[RangeRow] = field(default_factory=list)
    method: str = "int8"
    samples: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    score: tuple[float, float] | None = None
    ns: tuple[int, int] | None = None
    said: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        """How much is quantised, and the largest error of an output."""
        return f"<pinnace.QuantizationReport {self._summary()}>"

    def _summary(self) -> str:
        quantised = sum(not row.kept_float for row in self.rows)
        worst = max(self.errors.values(), default=0.0)
        return f"{self.method}: {quantised} of {len(self.rows)} nodes, error {worst:.2g}"

    def __str__(self) -> str:
        """A line for the whole, then one for each layer with weights that stays in float."""
        kept = [row for row in self.rows if row.kept_float and row.bytes_before]
        lines = [f"quantization: {self._summary()}"]
        if self.score:
            lines.append(f"metric: {self.score[0]:.6g} in float, {self.score[1]:.6g} quantised")
        lines += [printable(f"  in float: {row.op} '{row.node}': {row.reason}") for row in kept]
        return "\n".join([*lines, *(printable(f"  {sentence}") for sentence in self.said)])

    def to_json(self, ranges: bool = True) -> str:
        """All of it as JSON. ranges: False leaves out ranges and histograms."""
        facts = asdict(self)
        if not ranges:
            del facts["ranges"]
        return json.dumps(facts, separators=(",", ":"))

    def to_html(self, path: Any = None) -> str:
        """A page of its own: sizes and times before and after, errors along the graph, what stayed in float and why,
        histograms with the chosen ranges. path: where to write it as well. FileError: it cannot be written there.
        """
        from pinnace.html.quantization import quantization_page

        page = quantization_page(self)
        if path is not None:
            from pinnace.files import write_text

            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        """For notebooks: the same without a page around it, with the first ranges."""
        from pinnace.html.quantization import quantization_html

        return quantization_html(self)


def quantization_of(metadata: Mapping[str, str]) -> QuantizationReport | None:
    """The report that a program carries; None where it has none. CorruptFile: what it carries is no report."""
    text = metadata.get(FACT)
    if text is None:
        return None
    try:
        facts = json.loads(text)
        rows = [QuantizationRow(**row) for row in facts.pop("rows")]
        score: Sequence[float] | None = facts.pop("score")
        ns: Sequence[int] | None = facts.pop("ns", None)
        facts |= {"score": (score[0], score[1]) if score else None, "ns": (ns[0], ns[1]) if ns else None}
        return QuantizationReport(rows, **facts)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise _core.CorruptFile(f"the program's report on its quantisation cannot be read: {error}") from error


__all__ = ["FACT", "QuantizationReport", "QuantizationRow", "RangeRow", "quantization_of"]
