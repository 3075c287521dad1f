"""What flows into each output of a program: inputs, states, roundings to few bits, arithmetic of 16 bits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pinnace.program import NodeInfo, Program

QUANTIZING = {"quantize_linear", "dynamic_quantize_linear"}
# Arithmetic on integers that rounds inside: its inputs are rounded floats, too, in whichever form.
ROUNDING = {*QUANTIZING, "mat_mul_integer", "conv_integer"}
# Operators whose outputs beside the first are vectors that are determined but for their signs.
_VECTORS = {"eigh", "svd"}
# Operators that leave out boxes that overlap others.
SUPPRESSING = {"non_max_suppression", "box_with_nms_limit", "generate_proposals", "detection_postprocessing"}
# Results that depend on sizes alone.
_SIZES = {"shape", "size"}
_HALF = ("float16", "bfloat16")
# What only moves 16-bit values, or makes them of stored ones, rounds nothing.
_STORAGE = {"cast", "cast_like", "identity", "dequantize_linear"}


@dataclass(frozen=True)
class Origins:
    """What one output is made of.

    values     whether contents of an input, or a state, flow into it, sizes of inputs apart.
    inputs     inputs and states, by their values' names, whose contents do.
    halves     16-bit float types that arithmetic before it has.
    roundings  most roundings to few bits on one way from the inputs to it.
    within     whether one of them is in a loop or branch, whose integers the source does not show.
    nearest    values that are rounded to few bits, with nothing else so rounded between them and the output.
    vectors    whether eigenvectors or singular vectors flow into it, whose signs another program may choose otherwise.
    suppressed whether it has one row for each of the boxes that are left where some are left out, in an order of its
               own; in such programs also what top_k gives.
    """

    values: bool
    halves: frozenset[str]
    roundings: int
    nearest: tuple[str, ...]
    inputs: frozenset[str] = frozenset()
    vectors: bool = False
    suppressed: bool = False
    within: bool = False


class Dataflow:
    """The top level of a program's graph, backwards from its outputs."""

    def __init__(self, program: Program) -> None:
        """Reads nodes and the text form, in which outputs and states have their values' names."""
        self.nodes = [n for n in program.nodes if not n.path]
        self._nested = [n for n in program.nodes if n.path]
        self.made_by = {o: n for n in self.nodes for o in n.outputs if o}
        text = program.text(0)
        self._values = {_plain(name): _plain(value) for name, value in _OUTPUT.findall(text)}
        self._sources = set(program.inputs) | {_plain(value) for _, value in _STATE.findall(text)}
        self._floats = {name for name, spec in program.inputs.items() if spec.dtype.kind in "fV"}
        self._known: dict[str, Origins] = {}
        # Of candidates that are suppressed later, top_k gives rows in an order that nearly equal scores decide.
        self._reordering = {*SUPPRESSING, "top_k"} if self.suppresses() else set[str]()

    def value_of(self, output: str) -> str:
        """The name of the value that an output gives."""
        return self._values.get(output, output)

    def origins(self, output: str) -> Origins:
        """Of an output of the program, by its name."""
        return self.origins_of(self.value_of(output))

    def origins_of(self, value: str) -> Origins:
        """Of any value of the top level. Nodes stand in order, so that one pass forward suffices."""
        if not self._known:
            for name in self._sources:
                self._known[name] = Origins(True, frozenset(), 0, (), frozenset([name]))
            for node in self.nodes:
                origins = self._of_node(node)
                for place, (name, type_) in enumerate(zip(node.outputs, node.output_types, strict=False)):
                    half = type_.split("[")[0]
                    made = origins
                    if half in _HALF and origins.values and node.op not in _STORAGE:
                        made = replace(made, halves=origins.halves | {half})
                    if node.op in _VECTORS and place:
                        made = replace(made, vectors=True)
                    self._known[name] = replace(made, nearest=(name,)) if node.op in QUANTIZING else made
        return self._known.get(value, Origins(False, frozenset(), 0, ()))

    def halves(self) -> frozenset[str]:
        """16-bit float types that arithmetic anywhere at the top level has."""
        types = {t.split("[")[0] for n in self.nodes if n.op not in _STORAGE for t in n.output_types}
        return frozenset(types & set(_HALF))

    def has_vectors(self) -> bool:
        """Whether eigenvectors or singular vectors are computed anywhere."""
        return any(n.op in _VECTORS and len(n.outputs) > 1 for n in (*self.nodes, *self._nested))

    def suppresses(self) -> bool:
        """Whether boxes that overlap others are left out anywhere."""
        return any(n.op in SUPPRESSING for n in (*self.nodes, *self._nested))

    def has_float_input(self, output: str) -> bool:
        """Whether contents of a float among the program's inputs flow into an output."""
        return any(name in self._floats for name in self.origins(output).inputs)

    def _of_node(self, node: NodeInfo) -> Origins:
        before = [self._known.get(name, Origins(False, frozenset(), 0, ())) for name in node.inputs]
        inner = [n for n in self._nested if n.path.startswith(f"{node.name}.")]
        halves = frozenset[str]().union(*(o.halves for o in before))
        halves |= {
            half
            for n in inner
            if n.op not in _STORAGE
            for t in n.output_types
            for half in [t.split("[")[0]]
            if half in _HALF
        }
        rounds = int(node.op in ROUNDING) + sum(n.op in ROUNDING for n in inner)
        nearest = tuple(dict.fromkeys(name for o in before for name in o.nearest))
        contents = node.op not in _SIZES
        return Origins(
            contents and (any(o.values for o in before) or node.op.startswith("random")),
            halves,
            max((o.roundings for o in before), default=0) + rounds,
            nearest,
            frozenset[str]().union(*(o.inputs for o in before)) if contents else frozenset(),
            contents and any([*(o.vectors for o in before), *(n.op in _VECTORS and len(n.outputs) > 1 for n in inner)]),
            any([*(o.suppressed for o in before), *(n.op in self._reordering for n in (node, *inner))]),
            any([*(o.within for o in before), *(n.op in ROUNDING for n in inner)]),
        )

    def ways_to(self, output: str) -> Iterator[NodeInfo]:
        """The node that makes an output and those before it, as far as each only moves elements, nearest first."""
        name = self.value_of(output)
        while name in self.made_by:
            node = self.made_by[name]
            yield node
            if node.op not in _MOVEMENT or not node.inputs:
                return
            name = node.inputs[0]


_MOVEMENT = {"cast", "identity", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "slice", "concat"}

_NAME = r'%("(?:\\.|[^"\\])*"|[A-Za-z_0-9][\w.]*)'
_TEXT = r'("(?:\\.|[^"\\])*"|[A-Za-z_][\w.]*)'
_OUTPUT = re.compile(rf"^  output {_TEXT} {_NAME}", re.MULTILINE)
_STATE = re.compile(rf"^  state {_TEXT} {_NAME} :", re.MULTILINE)


def _plain(text: str) -> str:
    """A name without its quotes and escapes."""
    if not text.startswith('"'):
        return text
    body = text[1:-1]
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", lambda m: _escaped(m[1]), body)


def _escaped(text: str) -> str:
    return chr(int(text[1:], 16)) if len(text) == 3 else {"n": "\n"}.get(text, text)


__all__ = ["QUANTIZING", "SUPPRESSING", "Dataflow", "Origins"]
