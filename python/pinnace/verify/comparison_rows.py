"""The rows of a Comparison: one value on all targets, and how many nodes ran on each."""

from __future__ import annotations

from dataclasses import dataclass, field

from pinnace.agreement import Agreement
from pinnace.files import place_text


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


__all__ = ["ComparisonRow", "NodeCount"]
