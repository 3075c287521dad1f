"""Operators that we replace in ONNX's reference evaluator, and its use in float64, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from pinnace.sources.onnx_evaluator import evaluator
from pinnace.sources.onnx_float64 import DoubleModel

onnxruntime = pytest.importorskip("onnxruntime")
F, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Array = np.ndarray[Any, Any]


def value(name: str, kind: int = F, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: dict[str, Any],
) -> onnx.ModelProto:
    initial = [numpy_helper.from_array(np.asarray(c), name) for name, c in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def agrees(made: onnx.ModelProto, feed: dict[str, Array]) -> None:
    """The evaluator, in float32 and in float64, with onnxruntime."""
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, feed)
    plain = evaluator(made).run(None, feed)
    double = DoubleModel(onnx.ModelProto.FromString(made.SerializeToString())).run(list(feed.values()))
    for want, got, exact in zip(wanted, plain, double, strict=True):
        assert got.shape == exact.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5)
        np.testing.assert_allclose(exact, want, rtol=1e-5)
        if want.dtype == np.float32:
            assert exact.dtype == np.float64


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("counted", [True, False])
def test_loops_stack_what_each_round_gives(rounds: int, counted: bool) -> None:
    """Each round gives a matrix and a number: the outputs have a dimension more. By a count, or until told to end."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "step"], ["next"]),
            helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
            helper.make_node("Add", ["turn", "one"], ["after"]),
            helper.make_node("Less", ["after", "last"], ["again"]),
            helper.make_node("Identity", ["next"], ["kept"]),
        ],
        "body",
        [value("turn", I64, []), value("going", BOOL, []), value("state", F, [2, 3])],
        [value("again", BOOL, []), value("next", F, [2, 3]), value("kept", F, [2, 3]), value("sum", F, [])],
    )
    made = model(
        [
            helper.make_node(
                "Loop", ["count" if counted else "", "" if counted else "yes", "x"], ["a", "b", "c"], body=body
            )
        ],
        [value("x", F, [2, 3])],
        [value("a"), value("b"), value("c")],
        {"count": np.array(rounds), "yes": np.array(True), "step": np.float32(0.5), "one": 1, "last": rounds},
    )
    agrees(made, {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})


def test_a_loop_without_a_round(tmp_path: Path) -> None:
    """Its state is what it was; outputs of rounds would have no shape."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["again"]), helper.make_node("Neg", ["state"], ["next"])],
        "body",
        [value("turn", I64, []), value("going", BOOL, []), value("state", F, [2])],
        [value("again", BOOL, []), value("next", F, [2])],
    )
    loop = helper.make_node("Loop", ["count", "", "x"], ["a"], body=body)
    made = model([loop], [value("x", F, [2])], [value("a")], {"count": np.array(0)})
    agrees(made, {"x": np.array([1, 2], np.float32)})


@pytest.mark.parametrize(("axis", "shape"), [(0, (2, 3)), (1, (4, 2)), (-1, (3, 6)), (1, (1, 1))])
def test_gathered_elements_may_be_fewer(axis: int, shape: tuple[int, int]) -> None:
    made = model(
        [helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)],
        [value("x", F, [4, 3]), value("i", I64, shape)],
        [value("y")],
        {},
    )
    random = np.random.default_rng(1)
    x = random.standard_normal((4, 3)).astype(np.float32)
    agrees(made, {"x": x, "i": random.integers(-3, 3, shape)})


def test_constants_of_a_shape_are_of_float64_too() -> None:
    """Without a value they are zeros of float32, which nothing in float64 can be multiplied by."""
    made = model(
        [
            helper.make_node("Shape", ["x"], ["s"]),
            helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
            helper.make_node("Add", ["zeros", "one"], ["ones"]),
            helper.make_node("MatMul", ["x", "ones"], ["y"]),
            helper.make_node("HannWindow", ["five"], ["w"]),
        ],
        [value("x", F, [3, 3])],
        [value("y"), value("w")],
        {"one": np.float32(1), "five": np.array(5)},
    )
    agrees(made, {"x": np.arange(9, dtype=np.float32).reshape(3, 3)})
