"""Samples for onnx_opsets.py. Graphs within nodes, and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx_forms import Random, Recipe, Sample, ints, scalar


def _subgraph(name: str, nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, inputs, outputs)


def _value(name: str, shape: list[int], dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def _if(r: Random, version: int) -> list[Sample]:
    def branch(name: str, value: float) -> onnx.GraphProto:
        tensor = onnx.numpy_helper.from_array(np.full((2,), value, np.float32))
        return _subgraph(name, [helper.make_node("Constant", [], [name], value=tensor)], [], [_value(name, [2])])

    attributes = {"then_branch": branch("a", 1), "else_branch": branch("b", 2)}
    return [Sample([scalar(True, bool)], attributes), Sample([scalar(False, bool)], attributes)]


def _loop(r: Random, version: int) -> list[Sample]:
    body = _subgraph(
        "body",
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Add", ["v", "v"], ["twice"]),
            helper.make_node("Identity", ["twice"], ["seen"]),
        ],
        [_value("at", [], TensorProto.INT64), _value("go", [], TensorProto.BOOL), _value("v", [2])],
        [_value("on", [], TensorProto.BOOL), _value("twice", [2]), _value("seen", [2])],
    )
    return [Sample([scalar(3), scalar(True, bool), r.f(2)], {"body": body}, 2)]


def _scan(r: Random, version: int) -> list[Sample]:
    body = _subgraph(
        "body",
        [helper.make_node("Add", ["s", "x"], ["next"]), helper.make_node("Mul", ["next", "x"], ["out"])],
        [_value("s", [2]), _value("x", [2])],
        [_value("next", [2]), _value("out", [2])],
    )
    if version < 9:
        return [
            Sample([None, r.f(3, 2), r.f(3, 4, 2)], {"body": body, "num_scan_inputs": 1}, 2),
            Sample([None, r.f(3, 2), r.f(3, 4, 2)], {"body": body, "num_scan_inputs": 1, "directions": [1]}, 2),
            Sample([ints(4, 2, 1), r.f(3, 2), r.f(3, 4, 2)], {"body": body, "num_scan_inputs": 1}, 2),
            Sample([ints(1, 3), r.f(2, 2), r.f(2, 4, 2)], {"body": body, "num_scan_inputs": 1, "directions": [1]}, 2),
        ]
    axes = {
        "scan_input_axes": [1],
        "scan_input_directions": [1],
        "scan_output_axes": [1],
        "scan_output_directions": [1],
    }
    found = [
        Sample([r.f(2), r.f(4, 2)], {"body": body, "num_scan_inputs": 1}, 2),
        Sample([r.f(2), r.f(2, 4)], {"body": body, "num_scan_inputs": 1, **axes}, 2),
    ]
    if version >= 11:
        negative = {"scan_input_axes": [-1], "scan_output_axes": [-1]}
        found.append(Sample([r.f(2), r.f(2, 4)], {"body": body, "num_scan_inputs": 1, **negative}, 2))
    return found


def _constant(r: Random, version: int) -> list[Sample]:
    found = [Sample([], {"value": onnx.numpy_helper.from_array(r.f(2, 3))})]
    if version >= 12:
        found += [
            Sample([], {"value_float": 1.5}),
            Sample([], {"value_ints": [1, 2]}),
            Sample([], {"value_floats": [1.0, 2.5]}),
            Sample([], {"value_int": 7}),
        ]
    if version >= 21:
        import ml_dtypes

        found.append(Sample([], {"value": onnx.numpy_helper.from_array(np.array([-8, 7, 3], ml_dtypes.int4))}))
    return found


RECIPES: dict[str, Recipe] = {
    "Constant": _constant,
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
}
