"""Converted programs as source models of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from pinnace.program import Program
from pinnace.session import Session
from pinnace.sources.base import Steps
from pinnace.types import Array


class ProgramSource:
    """A converted program as the reference of another."""

    def __init__(self, program: Program | str | PathLike[str]) -> None:
        """`program`: a Program or the path of a .pnc file."""
        self._session = Session(program, target="cpu")
        self.description = "pinnace on cpu"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order."""
        return list(self._session.run(dict(zip(self._session.inputs, inputs, strict=True))).values())

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As steps_of(). States are those of the session."""
        self._session.reset_state()
        outputs = [self.run(inputs) for inputs in steps]
        return Steps(outputs, {name: self._session.state[name] for name in self._session.state})

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Values by name, from a session that keeps them."""
        made = [o for n in self._session.program.nodes if not n.path for o in n.outputs if o in names]
        session = Session(self._session.program, target="cpu", keep=made)
        return session.kept_values(dict(zip(session.inputs, inputs, strict=True)))


__all__ = ["ProgramSource"]
