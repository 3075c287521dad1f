"""One model or more for every form that an operator of ONNX's standard domain has had since opset 7.

`samples(op, version)` gives what a model of one node needs. Where the form changed, the sample does what changed: axes
as an attribute and as an input, the old broadcasting of softmax, defaults that are others today.
"""

from __future__ import annotations

import numpy as np
import onnx_samples_control
import onnx_samples_layers
import onnx_samples_movement
import onnx_samples_types
from onnx_forms import Random, Recipe, Sample, ints, scalar

_UNARY = [
    "Abs",
    "Asinh",
    "Atan",
    "Ceil",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Shape",
    "Size",
]
_RANGES = {
    "Acos": (-0.9, 0.9),
    "Acosh": (1.1, 3),
    "Asin": (-0.9, 0.9),
    "Atanh": (-0.9, 0.9),
    "Log": (0.1, 3),
    "Reciprocal": (0.5, 3),
    "Sqrt": (0.1, 3),
}
_ARITHMETIC = ("Add", "Sub", "Mul", "Div")
_REDUCE = {
    name: 13 if name == "ReduceSum" else 18
    for name in [
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ]
}


_TABLE: dict[str, Recipe] = {
    **onnx_samples_control.RECIPES,
    **onnx_samples_layers.RECIPES,
    **onnx_samples_movement.RECIPES,
    **onnx_samples_types.RECIPES,
}


def samples(op: str, version: int) -> list[Sample]:
    """What is run for one form; empty where nothing is known, which is an error of the table."""
    r = Random(op)
    if op in _UNARY:
        return [Sample([r.f(2, 3, 4)])]
    if op in _RANGES:
        return [Sample([r.u(*_RANGES[op], 2, 3, 4)])]
    if op in _ARITHMETIC:
        return [Sample([r.f(2, 3, 4), r.u(0.5, 2, 3, 1)])]
    if op in _REDUCE:
        return _reduce(r, version >= _REDUCE[op])
    if op in ("And", "Or", "Xor"):
        return [Sample([r.b(2, 3), r.b(3)])]
    if op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        return [Sample([r.i(0, 100, 2, 3, dtype=np.int32), r.i(0, 100, 3, dtype=np.int32)])]
    if op in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        return [Sample([r.f(2, 3), r.f(3)])]
    if op in ("Max", "Min", "Mean", "Sum"):
        # Until opset 8 all inputs have one shape.
        return [Sample([r.f(2, 3), r.f(2, 3), r.f(2, 3)]), *([Sample([r.f(2, 3), r.f(3)])] if version >= 8 else [])]
    if op in ("ArgMax", "ArgMin"):
        x = r.i(0, 3, 3, 4).astype(np.float32)
        last = [Sample([x], {"axis": 1, "keepdims": 0, "select_last_index": 1})] if version >= 12 else []
        return [Sample([x]), Sample([x], {"axis": 1, "keepdims": 0}), *last]
    if op in ("Softmax", "LogSoftmax", "Hardmax"):
        negative = [Sample([r.f(2, 3, 4)], {"axis": -1})] if version >= 11 else []
        return [
            Sample([r.f(2, 3, 4)]),
            Sample([r.f(2, 3, 4)], {"axis": 1}),
            Sample([r.f(2, 3)], {"axis": 0}),
            *negative,
        ]
    if op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        return [Sample([r.f(2, 3, 4, 5)])]
    if op in ("HammingWindow", "HannWindow", "BlackmanWindow"):
        return [Sample([scalar(10)], constants=(0,)), Sample([scalar(9)], {"periodic": 0}, constants=(0,))]
    if op in ("GRU", "LSTM", "RNN"):
        return _recurrent(op, r)
    return _TABLE[op](r, version) if op in _TABLE else []


def _reduce(r: Random, axes_are_inputs: bool) -> list[Sample]:
    x = r.u(0.5, 2, 3, 4, 5)
    if not axes_are_inputs:
        return [Sample([x]), Sample([x], {"axes": [1], "keepdims": 0}), Sample([x], {"axes": [0, 2]})]
    return [
        Sample([x]),
        Sample([x, ints(1)], {"keepdims": 0}, constants=(1,)),
        Sample([x, ints(0, -1)], constants=(1,)),
        Sample([x], {"noop_with_empty_axes": 1}),
    ]


def _recurrent(op: str, r: Random) -> list[Sample]:
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    outputs = 3 if op == "LSTM" else 2
    x, w, k, b = r.f(4, 2, 3), r.f(1, gates * 5, 3), r.f(1, gates * 5, 5), r.f(1, gates * 10)
    both = [r.f(4, 2, 3), r.f(2, gates * 5, 3), r.f(2, gates * 5, 5)]
    return [
        Sample([x, w, k, b], {"hidden_size": 5}, outputs, rtol=1e-4, atol=1e-5),
        Sample([*both], {"hidden_size": 5, "direction": "bidirectional"}, outputs, rtol=1e-4, atol=1e-5),
    ]
