"""Program: what a .pnc file holds."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, SupportsIndex

from pinnace import _core
from pinnace.progress import phase
from pinnace.quantization import QuantizationReport, quantization_of
from pinnace.shape_trials import ShapeTrial, shape_trial, sizes_of
from pinnace.streams import Stream, StreamedOutput, streamed_inputs, streamed_outputs
from pinnace.types import TensorSpec, custom_ops, signature, specs_from, texts_by_name, truth, whole


@dataclass(frozen=True)
class NodeInfo:
    """One node of the portable graph.

    name          its name, from the source model where that has one.
    op            its operator, in snake_case.
    path          the control flow that encloses it, such as "loop1.body"; empty at the top level.
    source        the line of the user's model: "net.py:41"; may be empty.
    module        the user's module: "layers.3.conv1"; may be empty.
    inputs        names of the values that it reads, "" for an input that is left out.
    outputs       names of the values that it makes.
    output_types  their types: "float32[batch,8]".
    """

    name: str
    op: str
    path: str
    source: str
    module: str
    inputs: list[str]
    outputs: list[str]
    output_types: list[str]


def node_infos(rows: Sequence[Mapping[str, Any]]) -> list[NodeInfo]:
    """From the extension's rows."""
    return [NodeInfo(**row) for row in rows]


@dataclass(frozen=True)
class Payload:
    """Bytes that a back end keeps in a file: packed weights, a compiled model.

    target  whose they are: "cpu:avx2".
    key     what they are, in the back end's own words.
    bytes   how many.
    """

    target: str
    key: str
    bytes: int


class Metadata(Mapping[str, str]):
    """Facts that a program carries, text by name: `metadata["verified"]`. What a build records has properties too."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        """Made by Program.metadata. entries: the facts, which are copied."""
        self._entries = dict(entries)

    def __getitem__(self, key: str) -> str:
        """One fact. KeyError: there is none of that name."""
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names."""
        return iter(self._entries)

    def __len__(self) -> int:
        """The number of facts."""
        return len(self._entries)

    def __repr__(self) -> str:
        """All facts."""
        return f"Metadata({self._entries!r})"

    @property
    def source(self) -> str:
        """The name of the model that the program was made from; empty where it is not recorded."""
        return self.get("source", "")

    @property
    def verified(self) -> str:
        """How many inputs were compared, with what; begins with "no" where nothing was compared, with "inconclusive"
        where the comparison proves nothing. Empty where it is not recorded.
        """
        return self.get("verified", "")

    @property
    def inconclusive(self) -> bool:
        """Whether verification found no difference and proves nothing: an output that does not move, for instance."""
        return self.verified.startswith("inconclusive")

    @property
    def verified_on(self) -> dict[str, str]:
        """By target "yes: …" with the largest difference, or "no: …" with the reason."""
        return self._below("verified.", but=("second", "sizes", "paths", "tolerance"))

    @property
    def tolerance(self) -> str:
        """The bounds of the comparison that the build was given in place of the stated ones, `float32 0.001`; empty
        where it was given none.
        """
        return self.get("verified.tolerance", "")

    @property
    def made_up(self) -> dict[str, str]:
        """By input what was made up for it, since nobody gave it."""
        return self._below("made_up.")

    @property
    def ranges(self) -> dict[str, str]:
        """By dimension the sizes that the graph was found to take."""
        return self._below("range.")

    def _below(self, prefix: str, but: Sequence[str] = ()) -> dict[str, str]:
        rows = {key.removeprefix(prefix): value for key, value in self.items() if key.startswith(prefix)}
        return {name: value for name, value in rows.items() if name not in but}


class Program:
    """A converted model: immutable, verified, shared by any number of sessions.

    A pickle of it holds the bytes of the .pnc file, weights and payloads included, however it was opened: 4 GB of
    weights make a pickle of 4 GB, and unpickling copies them. Between processes of one machine, pass the path instead:
    all of them then share one mapping. Unpickling checks the bytes as from_bytes() does and raises CorruptFile where
    they are damaged. A pickle is code that runs when it is loaded, so load only those of sources you trust. copy() and
    deepcopy() give the program itself, since nothing can change it.
    """

    def __init__(self, core: _core.Program, report: QuantizationReport | None = None) -> None:
        """Made by open, from_bytes and Model.build. core: the extension's program. report: of its quantisation, with
        more than the file has of it. InvalidArgument: `core` is something else, such as a path.
        """
        if not isinstance(core, _core.Program):
            raise _core.InvalidArgument(
                f"Program() was given {type(core).__name__}: Program.open(path) opens a file, load() imports a model"
            )
        self._core = core
        self._report = report

    def __repr__(self) -> str:
        """Number of nodes, inputs and outputs."""
        if not hasattr(self, "_core"):  # while its making fails, a debugger may ask
            return "<pinnace.Program, not made>"
        return f"<pinnace.Program: {len(self._core.nodes)} nodes, {signature(self.inputs, self.outputs)}>"

    def _repr_html_(self) -> str:
        """For notebooks: inputs and outputs, the graph in groups, and what the file records."""
        from pinnace.html.notebook import program_html

        return program_html(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Callable[..., Program], tuple[Any]]:
        """The bytes of the file; from protocol 5 on as a buffer, which may travel outside of the pickle."""
        data = self.to_bytes()
        return program_from_pickle, (pickle.PickleBuffer(data) if int(protocol) >= 5 else data,)

    def __copy__(self) -> Program:
        """Itself: it is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        """Itself: it is immutable."""
        return self

    @classmethod
    def open(cls, path: str | PathLike[str], *, verify_hashes: bool = True, on_use: bool = False) -> Program:
        """Maps a .pnc file.

        path           of the file.
        verify_hashes  False: hashes of weights and payloads are not checked; all else always is.
        on_use         hashes of weights and payloads are checked when a session first uses them, and CorruptFile is
                       raised then, instead of all of them here: what no session reads never leaves the disk.

        FileError: it cannot be read; CorruptFile (offset, rule); Unsupported: it is newer than this build.
        """
        return cls(_core.Program.open(fspath(path), verify_hashes, on_use))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, *, verify_hashes: bool = True) -> Program:
        """As open, from the bytes of a file, `data`, which are copied. verify_hashes and errors are those of open."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"from_bytes needs the bytes of a .pnc file, was given {type(data).__name__}")
        return cls(_core.Program.from_bytes(bytes(data), truth("verify_hashes", verify_hashes)))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the file `path` atomically: whatever fails, a file that was there stays whole. FileError."""
        with phase("saving"):
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
        return node_infos(self._core.nodes)

    @property
    def metadata(self) -> Metadata:
        """Facts recorded at conversion: producer, source, what was verified and how closely."""
        return Metadata(self._core.metadata)

    @property
    def stream(self) -> dict[str, Stream]:
        """Inputs that come in chunks, by name; empty where a run takes the whole. CorruptFile: the metadata say so in
        another form than build() writes.
        """
        return streamed_inputs(self._core)

    @property
    def streamed_outputs(self) -> dict[str, StreamedOutput]:
        """The outputs of a program that takes chunks, by name; empty where a run takes the whole. CorruptFile as
        `stream`.
        """
        return streamed_outputs(self._core)

    @property
    def quantization(self) -> QuantizationReport | None:
        """What build(quantize=...) made of which node, and why others stayed in float; None where nothing was quantised
        here. What build() returns also has ranges and histograms; a file has not. CorruptFile: what it records of it
        cannot be read.
        """
        return self._report or quantization_of(self.metadata)

    @property
    def payloads(self) -> list[Payload]:
        """What back ends stored in the file, by target and key."""
        return [Payload(**row) for row in self._core.payloads]

    def with_metadata(self, entries: Mapping[str, str]) -> Program:
        """The same program with these facts more, or changed. entries: text by name. OutOfMemory."""
        return Program(self._core.with_metadata(texts_by_name("entries", entries)), self._report)

    def without_payloads(self) -> Program:
        """The same program without them: smaller, slower to prepare, the same results. OutOfMemory."""
        return Program(self._core.without_payloads(), self._report)

    def text(self, max_constant_bytes: int = 64) -> str:
        """The graph's text form; constants longer than `max_constant_bytes` appear as a hash."""
        return self._core.text(whole("max_constant_bytes", max_constant_bytes, 0, (1 << 63) - 1))

    def try_shapes(
        self,
        shapes: Sequence[Sequence[int]],
        *,
        details: bool = False,
        contents: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> ShapeTrial:
        """What the shape rules say at given sizes of the inputs. Nothing runs; ranges of dimensions are not looked at.

        shapes    one list of sizes per input, in order.
        details   True: the trial also has every node and value.
        contents  (place of an input, its integers in order), for inputs by which the graph branches.

        InvalidArgument: another number of inputs, another rank, a negative size, or one that differs from a fixed one;
        contents that the input cannot have.
        """
        return shape_trial(self._core.try_shapes(sizes_of(shapes), details, custom_ops(), contents))


def program_from_pickle(data: bytes | bytearray | memoryview) -> Program:
    """What pickles of programs call. data: the bytes of the file. CorruptFile: they are damaged, or no bytes."""
    if not isinstance(data, bytes | bytearray | memoryview | pickle.PickleBuffer):
        raise _core.CorruptFile(f"pickle of a Program: holds {type(data).__name__}, not the bytes of a .pnc file")
    return Program.from_bytes(bytes(data))


def core_of(program: Program) -> _core.Program:
    """The extension's program, for the parts of this package that hand it to the extension."""
    return program._core


def diff(a: Program, b: Program, *, include_metadata: bool = True) -> list[str]:
    """Differences between two programs, `a` and `b`, one line each; empty if there is none.

    include_metadata  False: their metadata may differ.

    InvalidArgument: one of them is no Program.
    """
    for program in (a, b):
        if not isinstance(program, Program):
            raise _core.InvalidArgument(f"diff: {program!r} is no Program; Program.open() makes one of a file")
    return list(_core.diff(a._core, b._core, include_metadata))


__all__ = ["Metadata", "NodeInfo", "Payload", "Program", "core_of", "diff", "node_infos", "program_from_pickle"]
