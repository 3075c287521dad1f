"""Program: what a .pnc file holds."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath

from pinnace import _core
from pinnace.types import TensorSpec, signature, specs_from


@dataclass(frozen=True)
class NodeInfo:
    """One node of the portable graph.

    `path` names the enclosing control flow, `source` the line of the user's model.
    """

    name: str
    op: str
    path: str
    source: str
    module: str
    inputs: list[str]
    outputs: list[str]
    output_types: list[str]


@dataclass(frozen=True)
class Payload:
    """Bytes that a back end keeps in a file: packed weights, a compiled model."""

    target: str
    key: str
    bytes: int


class Program:
    """A converted model: immutable, verified, shared by any number of sessions."""

    def __init__(self, core: _core.Program) -> None:
        """Made by open, from_bytes and Model.build."""
        self._core = core

    def __repr__(self) -> str:
        """Number of nodes, inputs and outputs."""
        return f"<pinnace.Program: {len(self._core.nodes)} nodes, {signature(self.inputs, self.outputs)}>"

    @classmethod
    def open(cls, path: str | PathLike[str], *, verify_hashes: bool = True, on_use: bool = False) -> Program:
        """Maps a .pnc file. FileError; CorruptFile (offset, rule); Unsupported where it is newer than this build.

        on_use  hashes of weights and payloads are checked when a session first uses them, and CorruptFile is raised
                then, instead of all of them here: what no session reads never leaves the disk.
        """
        return cls(_core.Program.open(fspath(path), verify_hashes, on_use))

    @classmethod
    def from_bytes(cls, data: bytes, *, verify_hashes: bool = True) -> Program:
        """As open, from bytes."""
        return cls(_core.Program.from_bytes(data, verify_hashes))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the file atomically: whatever fails, a file that was there stays whole. FileError."""
        self._core.save(fspath(path))

    def to_bytes(self) -> bytes:
        """The file's bytes."""
        return self._core.bytes()

    @property
    def inputs(self) -> dict[str, TensorSpec]:
        """Inputs by name, in order."""
        return specs_from(self._core.inputs, self._core.symbols)

    @property
    def outputs(self) -> dict[str, TensorSpec]:
        """Outputs by name, in order."""
        return specs_from(self._core.outputs, self._core.symbols)

    @property
    def states(self) -> dict[str, TensorSpec]:
        """What a session keeps between runs, by name."""
        return specs_from(self._core.states, self._core.symbols)

    @property
    def nodes(self) -> list[NodeInfo]:
        """Every node in execution order; nodes of nested graphs follow the node that holds them."""
        return [NodeInfo(**row) for row in self._core.nodes]

    @property
    def metadata(self) -> dict[str, str]:
        """Facts recorded at conversion: producer, source, what was verified and how closely."""
        return dict(self._core.metadata)

    @property
    def payloads(self) -> list[Payload]:
        """What back ends stored in the file, by target and key."""
        return [Payload(**row) for row in self._core.payloads]

    def without_payloads(self) -> Program:
        """The same program without them: smaller, slower to prepare, the same results."""
        return Program(self._core.without_payloads())

    def text(self, max_constant_bytes: int = 64) -> str:
        """The graph's text form; longer constants appear as a hash."""
        return self._core.text(max_constant_bytes)


def diff(a: Program, b: Program, *, include_metadata: bool = True) -> list[str]:
    """Differences between two programs, one line each; empty if there is none."""
    return list(_core.diff(a._core, b._core, include_metadata))
