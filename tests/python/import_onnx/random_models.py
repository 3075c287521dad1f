"""Whole random models: inputs with dynamic and fixed sizes, 2 to 12 operators, If and Loop with graphs of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper
from random_graph import OPSET, Draw, Graph, Impossible, Value, captured, sum_digits, tensor_info
from random_nodes import ELEMENTWISE, MAKERS

FLOATS = ("float32", "float32", "float32", "float64", "float16")
INTEGERS = ("int64", "int64", "int32", "int8", "uint8")


def grow(g: Graph, count: int, makers: Sequence[Callable[[Graph], None]]) -> None:
    """`count` choices, each of which may add a few nodes. What turns out impossible leaves nothing."""
    for _ in range(count):
        start = g.number(0, len(makers) - 1)
        for i in range(len(makers)):
            values, nodes = len(g.values), len(g.nodes)
            try:
                makers[(start + i) % len(makers)](g)
            except Impossible:
                del g.values[values:], g.nodes[nodes:]
            else:
                break


def condition_of(g: Graph) -> Value:
    """A bool of one element that depends on values."""
    x = g.exact(lambda v: v.is_float and v.array.size > 0)
    total = g.emit("ReduceMax", [x], digits=x.digits, keepdims=0)[0]
    return g.emit("Greater", [total, g.constant(g.pick([0.0, 1.0, 50.0]), x.dtype)])[0]


def as_float(g: Graph, x: Value) -> Value:
    """Branches must agree on a type."""
    if x.dtype == "float32":
        return g.emit("Identity", [x], digits=x.digits)[0]
    if x.largest > 1e4:
        raise Impossible
    return g.emit("Cast", [x], digits=x.digits, to=TensorProto.FLOAT)[0]


def branch(g: Graph) -> tuple[onnx.GraphProto, Value]:
    inner = Graph(g.draw, g.names, g)
    grow(inner, g.number(1, 3), MAKERS if depth(g) else MAKERS + CONTROL)
    result = as_float(inner, inner.value())
    output = helper.make_tensor_value_info(result.name, TensorProto.FLOAT, None)
    return helper.make_graph(inner.nodes, f"g{next(g.names)}", [], [output]), result


def depth(g: Graph) -> int:
    return 0 if g.outer is None else 1 + depth(g.outer)


def if_(g: Graph) -> None:
    condition = condition_of(g)
    (then_graph, a), (else_graph, b) = branch(g), branch(g)
    if a.rank != b.rank:
        raise Impossible  # a value has one rank with us; such a model is refused
    g.emit("If", [condition], digits=sum_digits(a, b), then_branch=then_graph, else_branch=else_graph)


def loop(g: Graph) -> None:
    """Carries one tensor, whose first dimension may grow; collects one more; ends early where a condition says so."""
    x = g.floats(lambda v: 0 < v.rank <= 3 and v.array.size <= 64 and v.largest < 8)
    grows = g.flag()
    trips = g.constant(g.number(0, 4), "int64")
    inner = Graph(g.draw, g.names, g)
    step, go = Value(f"i{next(g.names)}", np.array(0)), Value(f"b{next(g.names)}", np.array(True))
    carried = Value(f"x{next(g.names)}", x.array, None)
    inner.values += [step, carried]
    grow(inner, g.number(0, 2), ELEMENTWISE)
    same = inner.value(lambda v: v.shape == x.shape and v.dtype == x.dtype)
    after = inner.emit("Tanh", [same], digits=None)[0]
    if grows:
        after = inner.emit("Concat", [carried, after], digits=None, axis=0)[0]
    # One dimension: the evaluator stacks the results of the turns rightly for these only.
    kept = inner.emit("Reshape", [inner.emit("ReduceSum", [after], digits=None)[0], inner.ints(-1)], digits=None)[0]
    last = inner.constant(g.number(0, 4), "int64")
    more = inner.emit("Less", [step, last])[0]
    kind = helper.np_dtype_to_tensor_dtype(x.array.dtype)
    body = helper.make_graph(
        inner.nodes,
        f"g{next(g.names)}",
        [
            helper.make_tensor_value_info(step.name, TensorProto.INT64, []),
            helper.make_tensor_value_info(go.name, TensorProto.BOOL, []),
            helper.make_tensor_value_info(carried.name, kind, None),
        ],
        [
            helper.make_tensor_value_info(more.name, TensorProto.BOOL, []),
            helper.make_tensor_value_info(after.name, kind, None),
            helper.make_tensor_value_info(kept.name, kind, [1]),
        ],
    )
    g.emit("Loop", [trips, g.constant(True, "bool"), x], outputs=2, digits=None, body=body)


CONTROL: list[Callable[[Graph], None]] = [if_, loop]


@dataclass(frozen=True)
class RandomModel:
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    exact: frozenset[str]  # outputs that must be equal
    symbols: dict[str, int]  # dynamic dimensions, with their size here
    scale: float  # the largest magnitude that a float has on the way

    def __repr__(self) -> str:
        return onnx.printer.to_text(self.model)


@st.composite
def random_models(draw: Draw) -> RandomModel:
    g = Graph(draw, itertools.count())
    infos, symbols = [], {}
    for i in range(draw(st.integers(1, 3))):
        dtype = draw(st.sampled_from(FLOATS if i == 0 else FLOATS + INTEGERS))
        shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 0] if i else [2, 1, 3, 4, 6]), max_size=4)))
        random = np.random.default_rng(draw(st.integers(0, 999)))
        floats = np.dtype(dtype).kind == "f"
        low = 0 if dtype == "uint8" else -8
        array = np.asarray(random.integers(low, 9, size=shape) / (4 if floats else 1)).astype(dtype)
        declared: list[int | str] = list(shape)
        for axis, size in enumerate(shape):
            if size > 0 and draw(st.booleans()):
                declared[axis] = f"n{size}"  # the same name has the same size
                symbols[f"n{size}"] = size
        value = Value(f"in{i}", array, 2 if floats else 0)
        g.values.append(value)
        infos.append(tensor_info(value.name, array, declared))
    inputs = {v.name: v.array for v in g.values}
    grow(g, draw(st.integers(2, 9)), MAKERS + CONTROL)
    used = {name for node in g.nodes for name in set(node.input) | captured(node)}
    outputs = [v for v in g.values if v.name not in inputs and v.name not in used]
    if not outputs:
        outputs = g.emit("Identity", [g.values[0]], digits=g.values[0].digits)
    made = {name for node in g.nodes for name in node.output}
    outputs = [v for v in outputs if v.name in made]
    graph = helper.make_graph(g.nodes, "random", infos, [tensor_info(v.name, v.array, None) for v in outputs])
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    exact = frozenset(v.name for v in outputs if v.digits is not None)
    scale = max((v.largest for v in g.values if v.is_float), default=0.0)
    return RandomModel(model, inputs, {v.name: v.array for v in outputs}, exact, symbols, scale)
