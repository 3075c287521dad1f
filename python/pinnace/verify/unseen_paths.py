"""Branches and bodies of loops that no run of a verification entered: what they compute was not compared."""

from __future__ import annotations

from collections.abc import Sequence

from pinnace.program import Program
from pinnace.session import Session
from pinnace.types import Array

# Nodes that a plan resolves to views or constants leave no trace in a profile.
_TRACELESS = {"identity", "reshape", "flatten", "squeeze", "unsqueeze", "shape", "size", "cast", "slice", "transpose"}


class UnseenPaths:
    """Nested graphs of one program, crossed off as their nodes run."""

    def __init__(self, program: Program) -> None:
        """Nested graphs that hold something whose run shows."""
        self._names = list(program.inputs)
        self._left: dict[str, set[str]] = {}
        everywhere = [node.name for node in program.nodes if not node.path]
        for node in program.nodes:
            if node.path and node.op not in _TRACELESS and node.name not in everywhere:
                self._left.setdefault(node.path, set()).add(node.name)

    def run(self, session: Session, inputs: Sequence[Array]) -> dict[str, Array]:
        """Runs once, as Session.run(); with a record of the nodes that ran as long as paths are left."""
        feed = dict(zip(self._names, inputs, strict=True))
        if not self._left:
            return session.run(feed)
        profile = session.profile(feed)
        ran = {event.node for event in profile.events}
        self._left = {path: nodes for path, nodes in self._left.items() if not nodes & ran}
        return profile.outputs

    def named(self) -> str:
        """What to record of those that are left; empty where none is."""
        return f"never ran: {', '.join(sorted(self._left))}" if self._left else ""


__all__ = ["UnseenPaths"]
