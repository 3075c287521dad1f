"""Where a program differs from its source: inner values by the names that importers keep, in the graph's order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pinnace import _core
from pinnace.agreement import BOUNDS, Agreement, agreement
from pinnace.files import one_line, place_text
from pinnace.log import log
from pinnace.program import NodeInfo, Program
from pinnace.session import Session
from pinnace.sources.base import Source, arbiter_of
from pinnace.types import Array
from pinnace.verify.reference_runs import nudged


def first_difference(
    program: Program, source: Source, inputs: Sequence[Array], target: str, bounds: Mapping[str, float] = BOUNDS
) -> str:
    """One phrase that names the first node, in order, whose value differs from the source's of the same name."""
    try:
        rows = layer_differences(program, source, inputs, target, bounds, to_first=True)
    except _core.Error as error:
        return f"inner values cannot be compared: {one_line(error)}"
    for node, name, d in rows:
        if not d.ok:
            place = place_text(node.name, node.module, node.source)
            place = f" ({place})" if place else ""
            return f"first difference at {node.op} '{node.name}'{place}: value {name!r} {d.why}"
    return "no inner value that both sides name differs"


def layer_differences(
    program: Program,
    source: Source,
    inputs: Sequence[Array],
    target: str,
    bounds: Mapping[str, float] = BOUNDS,
    precision: str = "fp32",
    look: Callable[[str, Agreement, Array, Array], None] | None = None,
    threads: int = 0,
    to_first: bool = False,
) -> list[tuple[NodeInfo, str, Agreement]]:
    """(node, value name, verdict) for every value of the program that the source also has, in order.

    look: called with (value name, verdict, the program's value, the source's) while both are at hand.
    to_first: no further than to the first values that differ. What runs in float64 then keeps 32 values at a time, too,
    and runs again for the next ones.

    Values are kept 32 at a time: memory stays bounded however deep the model is. What is outside of its bounds is held
    against float64 as outputs are: see ReferenceRun.
    """
    outputs = {o for n in program.nodes if not n.path for o in n.outputs}
    reference = source.layers(inputs, outputs)
    rows = [(n, o) for n in program.nodes if not n.path for o in n.outputs if o in reference]
    feed = dict(zip(program.inputs, inputs, strict=True))
    arbiter = _Arbiter(source, inputs, outputs)
    found = []
    for start in range(0, len(rows), 32):
        part = rows[start : start + 32]
        keep = [o for _, o in part]
        if to_first:
            arbiter = _Arbiter(source, inputs, set(keep))
        session = Session(program, target, threads, precision=precision, keep=keep, plan_cache=1)
        kept = session.kept_values(feed)
        verdicts = {name: agreement(kept[name], reference[name], bounds) for _, name in part}
        outside = [n for n, v in verdicts.items() if not v.ok and np.isfinite(v.largest) and kept[n].dtype.kind in "fV"]
        exact = arbiter.exact if outside else {}
        outside = [name for name in outside if name in exact]
        for name in outside:
            verdicts[name] = agreement(kept[name], reference[name], bounds, exact[name])
        for name, moved in arbiter.moved({name for name in outside if not verdicts[name].ok}).items():
            verdicts[name] = agreement(kept[name], reference[name], bounds, exact[name], moved)
        for node, name in part:
            found.append((node, name, verdicts[name]))
            if look is not None:
                look(name, verdicts[name], kept[name], reference[name])
        if to_first and not all(verdict.ok for verdict in verdicts.values()):
            break
    return found


class _Arbiter:
    """Inner values of the source in float64, computed when first asked for; none where nothing computes them."""

    def __init__(self, source: Source, inputs: Sequence[Array], names: set[str]) -> None:
        self._source, self._inputs, self._names = source, inputs, names

    @functools.cached_property
    def exact(self) -> dict[str, Array]:
        """By name."""
        return self._layers(self._inputs, self._names)

    def moved(self, names: set[str]) -> dict[str, list[Array]]:
        """The named ones, of inputs that differ by a rounding error, three times; not those of runs that fail."""
        moved: dict[str, list[Array]] = {name: [] for name in names}
        random, steps = np.random.default_rng(7), getattr(self._source, "steps", None)
        for _ in range(3 if names else 0):
            for name, value in self._layers(nudged(self._inputs, steps, 0.0, random), names).items():
                moved[name].append(value)
        return moved

    def _layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        try:
            arbiter = arbiter_of(self._source)
            return arbiter.layers(inputs, names) if arbiter is not None else {}
        except _core.Error as error:
            log("debug", f"no inner values in float64: {one_line(error)}")
            return {}


__all__ = ["first_difference", "layer_differences"]
