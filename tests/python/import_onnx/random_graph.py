"""Random ONNX graphs, a node at a time, each evaluated by ONNX's reference evaluator as it is added.

Shapes and values are known while a graph grows, so that each choice is one that the operator allows: no division by
nearly nothing, no index out of range. Two evaluators round differently; a value therefore carries how many binary
digits it has after the point (`digits`), None once rounding may have touched it. What jumps (floor, comparisons, arg
max, conditions) is fed only with values that are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

OPSET = 21
MOST_ELEMENTS = 2048
# Significant binary digits that sums and products may need before one counts as rounded.
DIGITS = {"float64": 50, "float32": 23, "float16": 10}
LARGEST = {"float64": 1e4, "float32": 1e4, "float16": 64.0}


class Impossible(Exception):
    """This choice does not fit the values there are; another is tried."""


@dataclass(frozen=True)
class Value:
    name: str
    array: np.ndarray
    digits: int | None = 0  # after the binary point, as far as every element is exact

    @property
    def dtype(self) -> str:
        return str(self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def is_float(self) -> bool:
        return self.array.dtype.kind == "f"

    @property
    def largest(self) -> float:
        return float(np.abs(self.array.astype(np.float64)).max(initial=0.0))


@dataclass
class Graph:
    """A graph, or a nested one that sees the values of those around it."""

    draw: Draw
    names: itertools.count[int]
    outer: Graph | None = None
    values: list[Value] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def pick(self, choices: Sequence[T]) -> T:
        if not choices:
            raise Impossible
        chosen: T = self.draw(st.sampled_from(choices))
        return chosen

    def number(self, low: int, high: int) -> int:
        if low > high:
            raise Impossible
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def visible(self) -> list[Value]:
        return (self.outer.visible() if self.outer else []) + self.values

    def value(self, wanted: Callable[[Value], bool] = lambda v: True) -> Value:
        """One of the visible values, the latest most simply."""
        return self.pick([v for v in reversed(self.visible()) if wanted(v)])

    def floats(self, wanted: Callable[[Value], bool] = lambda v: True) -> Value:
        return self.value(lambda v: v.is_float and wanted(v))

    def exact(self, wanted: Callable[[Value], bool] = lambda v: True) -> Value:
        return self.value(lambda v: v.digits is not None and wanted(v))

    def constant(self, array: Any, dtype: str | None = None, digits: int = 0) -> Value:
        """A node of its own: constants reach the importer the way exporters write them."""
        array = np.asarray(array, dtype)
        name = f"c{next(self.names)}"
        self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
        value = Value(name, array, digits)
        self.values.append(value)
        return value

    def ints(self, *numbers: int) -> Value:
        return self.constant(list(numbers), "int64")

    def emit(
        self, op: str, inputs: Sequence[Value | None], outputs: int = 1, digits: int | None = 0, **attrs: Any
    ) -> list[Value]:
        """Adds a node and evaluates it. `digits` are its results'; None where it rounds."""
        names = [f"v{next(self.names)}" for _ in range(outputs)]
        attrs = {key: value for key, value in attrs.items() if value is not None}
        node = helper.make_node(op, [v.name if v else "" for v in inputs], names, **attrs)
        results = evaluate(node, self.visible())
        for result in results:
            if not isinstance(result, np.ndarray) or result.size > MOST_ELEMENTS or result.ndim > 6:
                raise Impossible
            if result.dtype.kind == "f":
                limit = LARGEST[str(result.dtype)]
                if not np.isfinite(result).all() or np.abs(result).max(initial=0) > limit:
                    raise Impossible
        self.nodes.append(node)
        made = []
        for name, array in zip(names, results, strict=True):
            kept = digits
            if array.dtype.kind != "f":
                kept = None if digits is None else 0
            elif kept is not None and not fits(np.abs(array).max(initial=0), kept, str(array.dtype)):
                kept = None
            made.append(Value(name, array, kept))
        self.values += made
        return made


def fits(largest: float, digits: int, dtype: str) -> bool:
    return float(largest) * 2.0**digits < 2.0 ** DIGITS[dtype]


def evaluate(node: onnx.NodeProto, values: Sequence[Value]) -> list[np.ndarray]:
    """The node's outputs. Nested graphs may use any of the values."""
    used = {name for name in node.input if name} | captured(node)
    known = {v.name: v for v in values if v.name in used}
    graph = helper.make_graph(
        [node],
        "one",
        [tensor_info(v.name, v.array) for v in known.values()],
        [onnx.ValueInfoProto(name=name) for name in node.output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    with np.errstate(all="ignore"):
        try:
            results = ReferenceEvaluator(model).run(None, {name: v.array for name, v in known.items()})
        except (ValueError, IndexError, RuntimeError, TypeError, AssertionError, ZeroDivisionError) as error:
            raise Impossible from error
    return [np.asarray(r) for r in results]


def captured(node: onnx.NodeProto) -> set[str]:
    """Names that nested graphs use."""
    names: set[str] = set()
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= set(inner.input) | captured(inner)
        names |= {output.name for output in attribute.g.output}
    return names


def tensor_info(name: str, array: np.ndarray, shape: Sequence[int | str] | None = None) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape if shape is None else shape)


def sum_digits(*values: Value) -> int | None:
    return None if any(v.digits is None for v in values) else max(v.digits or 0 for v in values)


def product_digits(count: int, a: Value, b: Value) -> int | None:
    """Of sums of `count` products."""
    if a.digits is None or b.digits is None:
        return None
    digits = a.digits + b.digits
    return digits if not a.is_float or fits(count * a.largest * b.largest, digits, a.dtype) else None
