"""Where a program differs from its source: inner values by the names that importers keep, in the graph's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pinnace import _core
from pinnace.agreement import BOUNDS, Agreement, agreement
from pinnace.files import one_line
from pinnace.program import NodeInfo, Program
from pinnace.session import Session
from pinnace.sources.base import Source, arbiter_of
from pinnace.types import Array


def first_difference(program: Program, source: Source, inputs: Sequence[Array], target: str) -> str:
    """One phrase that names the first node, in order, whose value differs from the source's of the same name."""
    try:
        rows = layer_differences(program, source, inputs, target)
    except _core.Error as error:
        return f"inner values cannot be compared: {one_line(error)}"
    for node, name, d in rows:
        if not d.ok:
            place = f" ({node.source})" if node.source else ""
            return f"first difference at {node.op} '{node.name}'{place}: value {name!r} {d.why}"
    return "no inner value that both sides name differs"


def layer_differences(
    program: Program,
    source: Source,
    inputs: Sequence[Array],
    target: str,
    bounds: Mapping[str, float] = BOUNDS,
    precision: str = "fp32",
) -> list[tuple[NodeInfo, str, Agreement]]:
    """(node, value name, verdict) for every value of the program that the source also has, in order.

    Values are kept 32 at a time: memory stays bounded however deep the model is. What is outside of its bounds is held
    against float64, which runs once, if it is needed.
    """
    outputs = {o for n in program.nodes if not n.path for o in n.outputs}
    reference = source.layers(inputs, outputs)
    rows = [(n, o) for n in program.nodes if not n.path for o in n.outputs if o in reference]
    feed = dict(zip(program.inputs, inputs, strict=True))
    exact: dict[str, Array] | None = None
    found = []
    for start in range(0, len(rows), 32):
        part = rows[start : start + 32]
        session = Session(program, target, precision=precision, keep=[o for _, o in part], plan_cache=1)
        kept = session.kept_values(feed)
        for node, name in part:
            value = kept[name]
            verdict = agreement(value, reference[name], bounds)
            if not verdict.ok and np.isfinite(verdict.largest) and value.dtype.kind in "fV":
                exact = _exact_layers(source, inputs, outputs) if exact is None else exact
                verdict = agreement(value, reference[name], bounds, exact.get(name))
            found.append((node, name, verdict))
    return found


def _exact_layers(source: Source, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
    try:
        arbiter = arbiter_of(source)
        return arbiter.layers(inputs, names) if arbiter is not None else {}
    except _core.Error:
        return {}


__all__ = ["first_difference", "layer_differences"]
