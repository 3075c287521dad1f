"""Totals of a model for `pinnace inspect`: parameters, multiply-adds of a run, bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pinnace import _core
from pinnace.dtypes import DTYPES
from pinnace.inputs.maker import InputMaker
from pinnace.model import Model
from pinnace.program import Program
from pinnace.shape_trials import TrialNode, TrialValue

# A constant in the text form: its name may be quoted and hold anything, what follows the last " : " is its type.
_CONSTANT = re.compile(r"^\s*const %.* : (\w+)\[([\d,]*)\](\{?)")
# Whoever only looks at a model waits no longer for sizes at which to count.
_SECONDS = 3.0
# Operators that multiply and add in ways that are not counted here.
_UNCOUNTED = {"dft", "einsum", "linear_attention", "quantized_lstm", "quantized_lstm_u8", "solve", "stft"}


@dataclass(frozen=True)
class Totals:
    """What a model holds and does, in numbers.

    parameters         elements of its constants that are floats, quantised, or of 8 bits and less: its weights.
    constant_bytes     bytes of all its constants.
    multiply_adds      of convolutions, products of matrices, attention and recurrent layers in one run, bodies of loops
                       counted once; None where no sizes for its inputs are known, or a size depends on data.
    at                 the sizes of open dimensions for that.
    multiply_adds_are_least  whether operators that are not counted multiply as well.
    """

    parameters: int
    constant_bytes: int
    multiply_adds: int | None
    at: dict[str, int]
    multiply_adds_are_least: bool


def totals_of(owner: Program | Model, given: Mapping[str, object], sizes: Mapping[str, int]) -> Totals:
    """Of a program or model, at the sizes of the given arrays, at `sizes` by name, and at usual ones where both leave
    dimensions open. InvalidArgument: a name or size is none of an open dimension, or an array does not fit."""
    parameters = constant_bytes = 0
    for count, bits, weight in _constants(owner.text(0)):
        parameters += count if weight else 0
        constant_bytes += (count * bits + 7) // 8
    maker = InputMaker(owner.inputs, owner, sizes=sizes, seconds=_SECONDS)
    counted: int | None = None
    at: dict[str, int] = {}
    try:
        shapes, at = maker.shapes(given)
        trial = owner.try_shapes(shapes, details=True)
        counted = _multiply_adds(trial.nodes, trial.values) if trial.fits else None
    except _core.InvalidArgument:
        if given or sizes:
            raise
    return Totals(parameters, constant_bytes, counted, at, any(node.op in _UNCOUNTED for node in owner.nodes))


def _constants(text: str) -> list[tuple[int, int, bool]]:
    """(elements, bits of one, whether it is a weight) of each constant in a graph's text."""
    found = []
    for line in text.splitlines():
        if match := _CONSTANT.match(line):
            dtype, dims, quantized = match.groups()
            count = math.prod(int(size) for size in dims.split(",") if size)
            name = DTYPES.get(dtype, dtype)
            bits = 8 if name == "bool" else int(re.sub(r"\D*(\d+).*", r"\1", name) or 8)
            weight = name != "bool" and ("float" in name or bits <= 8 or bool(quantized))
            found.append((count, bits, weight))
    return found


def _multiply_adds(nodes: Sequence[TrialNode], values: Mapping[str, TrialValue]) -> int | None:
    total = 0
    for node in nodes:
        count = _COUNTS.get(node.op)
        if count is None:
            continue
        try:
            total += count(node, _Shapes(node, values))
        except (_OpenSize, IndexError):
            return None
    return total


class _OpenSize(Exception):
    """A shape is not known."""


class _Shapes:
    """Shapes of what one node reads and makes. _OpenSize: data decide it, or it is not there."""

    def __init__(self, node: TrialNode, values: Mapping[str, TrialValue]) -> None:
        self._node, self._values = node, values

    def of(self, name: str) -> list[int]:
        shape = self._values[name].shape if name in self._values else [None]
        sizes = [size for size in shape if size is not None]
        if len(sizes) != len(shape):
            raise _OpenSize
        return sizes

    def input(self, place: int) -> list[int]:
        return self.of(self._node.inputs[place])

    def output(self, place: int = 0) -> list[int]:
        return self.of(self._node.outputs[place])


def _convolution(node: TrialNode, shapes: _Shapes) -> int:
    return math.prod(shapes.output()) * math.prod(shapes.input(1)[1:])


def _transposed_convolution(node: TrialNode, shapes: _Shapes) -> int:
    return math.prod(shapes.input(0)) * math.prod(shapes.input(1)[1:])


def _matrix_product(node: TrialNode, shapes: _Shapes) -> int:
    return math.prod(shapes.output()) * shapes.input(0)[-1]


def _gemm(node: TrialNode, shapes: _Shapes) -> int:
    return math.prod(shapes.output()) * shapes.input(0)[0 if node.attributes.get("trans_a") else 1]


def _attention(node: TrialNode, shapes: _Shapes) -> int:
    """Scores, and the weighted sum of the values: every query with every key, masked ones too."""
    q, k, v = shapes.input(0), shapes.input(1), shapes.input(2)
    past = shapes.input(4)[-2] if len(node.inputs) > 4 and node.inputs[4] else 0
    pairs = q[0] * q[-2] * (k[-2] + past)  # per head
    heads = node.attributes.get("q_num_heads", 0) if len(q) == 3 else q[1]
    kv_heads = node.attributes.get("kv_num_heads", 0) if len(q) == 3 else k[1]
    if len(q) == 3:
        if not heads or not kv_heads:
            raise _OpenSize
        return pairs * (q[-1] + v[-1] // kv_heads * heads)
    return pairs * heads * (q[-1] + v[-1])


def _recurrent(node: TrialNode, shapes: _Shapes) -> int:
    x = shapes.input(0)
    return x[0] * x[1] * (math.prod(shapes.input(1)) + math.prod(shapes.input(2)))


_COUNTS = {
    "attention": _attention,
    "conv": _convolution,
    "conv_integer": _convolution,
    "conv_transpose": _transposed_convolution,
    "deform_conv": _convolution,
    "gemm": _gemm,
    "gru": _recurrent,
    "lstm": _recurrent,
    "mat_mul": _matrix_product,
    "mat_mul_integer": _matrix_product,
    "rnn": _recurrent,
}


def amount(number: int) -> str:
    """A number as people read it: 4.09 G, 25.5 M, 1,234."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6)):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number < 1000 * size else f"{number / size:,.0f} {unit}"
    return f"{number:,}"


__all__ = ["Totals", "amount", "totals_of"]
