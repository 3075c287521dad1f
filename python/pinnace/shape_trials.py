"""What the shape rules of a graph say at given sizes of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pinnace.types import whole


@dataclass(frozen=True)
class TrialNode:
    """One node of a graph whose shape rules were tried.

    name, op       its name and operator.
    inputs         names of the values that it reads, "" for an input that is left out.
    outputs        names of the values that it makes.
    attributes     those that are whole numbers, by name, defaults included.
    multiply_adds  multiplications with an addition, of products, attention and recurrent operators; 0 for others; None
                   where data decide a size, or where there are 2^53 and more.
    """

    name: str
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, int]
    multiply_adds: int | None


@dataclass(frozen=True)
class TrialValue:
    """One value of a graph whose shape rules were tried.

    dtype     the name of its element type: "float32", "int64".
    shape     its sizes, None where data decide.
    contents  its elements in order, where they are known: small integer constants, and what follows from sizes alone.
    range     (least, greatest) of the finite elements of a float constant; None where nothing is known.
    """

    dtype: str
    shape: list[int | None]
    contents: list[int] | None
    range: tuple[float, float] | None


@dataclass(frozen=True)
class ShapeTrial:
    """What the shape rules say at given sizes of the inputs.

    fits      whether every rule holds.
    inferred  how many nodes, from the first on, have a type.
    failure   the message of the rule that does not hold; empty where all do.
    nodes     with details: every node in order; those of nested graphs follow the node that holds them.
    values    with details: every value by name.
    """

    fits: bool
    inferred: int = 0
    failure: str = ""
    nodes: list[TrialNode] = field(default_factory=list)
    values: dict[str, TrialValue] = field(default_factory=dict)


class ShapeRules(Protocol):
    """A graph whose shape rules can be tried: a Model or a Program."""

    def try_shapes(
        self,
        shapes: Sequence[Sequence[int]],
        *,
        details: bool = False,
        contents: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> ShapeTrial:
        """One list of sizes per input, in order; `contents`: (place of an input, its integers), where known."""


def sizes_of(shapes: Any) -> list[list[int]]:
    """What a caller gave as shapes. TypeError: it is no list of sizes for each input."""
    listed = [shapes] if isinstance(shapes, str | bytes | Mapping) or not isinstance(shapes, Iterable) else list(shapes)
    for sizes in listed:
        if isinstance(sizes, str | bytes | Mapping) or not isinstance(sizes, Iterable):
            raise TypeError(f"shapes must be a list of sizes for each input, in order; is {shapes!r:.200}")
    return [[whole("a size", size, -(1 << 63), (1 << 63) - 1) for size in sizes] for sizes in listed]


def shape_trial(row: Mapping[str, Any]) -> ShapeTrial:
    """From what the extension's try_shapes() gives."""
    nodes = [TrialNode(*node) for node in row["nodes"]]
    values = {name: TrialValue(*value) for name, value in row["values"].items()}
    return ShapeTrial(row["fits"], row["inferred"], row["failure"], nodes, values)


__all__ = ["ShapeRules", "ShapeTrial", "TrialNode", "TrialValue", "shape_trial", "sizes_of"]
