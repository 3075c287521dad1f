"""One model or more for every form that an operator of ONNX's standard domain has had since opset 7.

`samples(op, version)` gives what a model of one node needs. Where the form changed, the sample does what changed: axes
as an attribute and as an input, the old broadcasting of softmax, defaults that are others today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx_forms import Array, Random, Sample, ints, scalar

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


def _slice(r: Random, version: int) -> list[Sample]:
    x = r.f(4, 5, 6)
    if version < 10:
        return [
            Sample([x], {"starts": [1, -3], "ends": [3, 100]}),
            Sample([x], {"starts": [0], "ends": [-1], "axes": [2]}),
        ]
    return [
        Sample([x, ints(1, -1), ints(3, -100), ints(0, 2), ints(1, -2)], constants=(1, 2, 3, 4)),
        Sample([x, ints(1), ints(3)], constants=(1, 2)),
    ]


def _pad(r: Random, version: int) -> list[Sample]:
    x = r.f(2, 3, 4)
    pads = [0, 1, 2, 0, 2, 1]
    if version < 11:
        return [
            Sample([x], {"pads": pads, "value": 1.5}),
            Sample([x], {"pads": pads, "mode": "reflect"}),
            Sample([x], {"pads": pads, "mode": "edge"}),
        ]
    found = [
        Sample([x, ints(*pads), scalar(1.5, np.float32)], constants=(1,)),
        Sample([x, ints(*pads)], {"mode": "reflect"}, constants=(1,)),
    ]
    if version >= 18:
        found.append(Sample([x, ints(1, 2), None, ints(-1)], {"mode": "edge"}, constants=(1, 3)))
    if version >= 19:
        found.append(Sample([x, ints(0, 0, 2, 0, 0, 3)], {"mode": "wrap"}, constants=(1,)))
    return found


def _clip(r: Random, version: int) -> list[Sample]:
    if version < 11:
        return [Sample([r.f(3, 4)], {"min": -0.5, "max": 0.5}), Sample([r.f(3, 4)], {"min": 0.0})]
    return [
        Sample([r.f(3, 4), scalar(-0.5, np.float32), scalar(0.5, np.float32)]),
        Sample([r.f(3, 4), None, scalar(0.5, np.float32)]),
    ]


def _resize(r: Random, version: int) -> list[Sample]:
    x = r.f(1, 2, 4, 5)
    scales = np.array([1, 1, 2, 1.5], np.float32)
    if version < 11:
        return [
            Sample([x, np.array([1, 1, 2, 2], np.float32)], constants=(1,)),
            Sample([x, np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}, constants=(1,)),
        ]
    empty = np.zeros(0, np.float32)
    region: Array | None = empty if version < 13 else None
    sizes = [x, region, empty if version < 13 else None, ints(1, 2, 8, 3)]
    found = [
        Sample([x, region, scales], constants=(1, 2)),
        Sample([x, region, scales], {"mode": "linear"}, constants=(1, 2)),
        Sample(
            [x, region, scales],
            {"mode": "cubic", "coordinate_transformation_mode": "align_corners"},
            constants=(1, 2),
            atol=1e-5,
        ),
        Sample(
            [*sizes],
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            constants=(1, 2, 3),
        ),
    ]
    if version >= 18:
        found.append(
            Sample(
                [x, None, np.array([0.6, 0.7], np.float32)],
                {"mode": "linear", "antialias": 1, "axes": [2, 3]},
                constants=(2,),
                atol=1e-5,
            )
        )
    return found


def _upsample(r: Random, version: int) -> list[Sample]:
    scales = [1.0, 1.0, 2.0, 3.0]
    if version < 9:
        return [
            Sample([r.f(1, 2, 3, 4)], {"scales": scales}),
            Sample([r.f(1, 2, 3, 4)], {"scales": scales, "mode": "linear"}),
        ]
    return [
        Sample([r.f(1, 2, 3, 4), np.array(scales, np.float32)], constants=(1,)),
        Sample([r.f(1, 2, 3, 4), np.array(scales, np.float32)], {"mode": "linear"}, constants=(1,)),
    ]


def _batch_normalization(r: Random, version: int) -> list[Sample]:
    stats = [r.f(3), r.f(3), r.f(3), r.u(0.5, 2, 3)]
    return [Sample([r.f(2, 3, 4), *stats]), Sample([r.f(2, 3, 4, 5), *stats], {"epsilon": 0.01, "momentum": 0.5})]


def _dropout(r: Random, version: int) -> list[Sample]:
    if version < 12:
        return [
            Sample([r.f(2, 3)], {"ratio": 0.3}),
            Sample([r.f(2, 3)], outputs=2, compare=(0,)),
        ]  # the mask means nothing
    return [
        Sample([r.f(2, 3), scalar(0.3, np.float32), scalar(False, bool)], outputs=2, constants=(1, 2)),
        Sample([r.f(2, 3)]),
    ]


def _top_k(r: Random, version: int) -> list[Sample]:
    x = r.f(3, 6)
    if version < 10:
        return [Sample([x], {"k": 3}, 2), Sample([x], {"k": 2, "axis": 0}, 2)]
    smallest = [Sample([x, ints(2)], {"axis": 0, "largest": 0}, 2, constants=(1,))] if version >= 11 else []
    return [Sample([x, ints(3)], outputs=2, constants=(1,)), *smallest]


def _split(r: Random, version: int) -> list[Sample]:
    x = r.f(6, 4)
    if version < 13:
        return [Sample([x], {"axis": 0}, 3), Sample([x], {"axis": 0, "split": [1, 2, 3]}, 3)]
    equal = {"axis": 0, **({"num_outputs": 3} if version >= 18 else {})}
    uneven = [Sample([r.f(7, 2)], {"num_outputs": 3}, 3)] if version >= 18 else []
    return [Sample([x], equal, 3), Sample([x, ints(1, 2, 3)], {"axis": 0}, 3, constants=(1,)), *uneven]


def _axes(version: int, x: Array, axes: tuple[int, ...]) -> Sample:
    return Sample([x, ints(*axes)], constants=(1,)) if version >= 13 else Sample([x], {"axes": list(axes)})


def _cast(r: Random, version: int) -> list[Sample]:
    found = [
        Sample([r.u(-9, 9, 3, 4)], {"to": int(TensorProto.INT32)}),
        Sample([r.i(-9, 9, 3, 4)], {"to": int(TensorProto.DOUBLE)}),
    ]
    if version >= 13:
        found.append(Sample([r.f(3, 4)], {"to": int(TensorProto.BFLOAT16)}))
    if version >= 19:
        found.append(Sample([r.f(3, 4) * 300], {"to": int(TensorProto.FLOAT8E4M3FN), "saturate": 0}))
        found.append(Sample([r.f(3, 4) * 300], {"to": int(TensorProto.FLOAT8E5M2)}))
    if version >= 21:
        found.append(Sample([r.i(-8, 8, 3, 3, dtype=np.int8)], {"to": int(TensorProto.INT4)}))
    if version >= 23:
        found.append(Sample([r.f(3, 3)], {"to": int(TensorProto.FLOAT4E2M1)}))
    if version >= 24:
        found.append(Sample([r.u(0.1, 9, 3)], {"to": int(TensorProto.FLOAT8E8M0), "round_mode": "down"}))
    if version >= 25:
        found.append(Sample([r.i(0, 4, 5, dtype=np.uint8)], {"to": int(TensorProto.UINT2)}))
    return found


def _quantize(r: Random, version: int) -> list[Sample]:
    x, scale = r.f(2, 3, 4) * 20, r.u(0.05, 0.2, 3)
    found = [Sample([x, scalar(0.1, np.float32), scalar(3, np.uint8)], constants=(1, 2))]
    if version >= 13:
        found.append(Sample([x, scale, r.i(-9, 9, 3, dtype=np.int8)], {"axis": 1}, constants=(1, 2)))
    if version >= 19:
        import ml_dtypes

        zero = np.zeros((), ml_dtypes.float8_e4m3fn)
        found.append(Sample([x, scalar(0.1, np.float32), zero], constants=(1, 2)))
    if version >= 21:
        blocks = r.u(0.05, 0.2, 2, 3, 2)
        found.append(
            Sample([x, blocks], {"axis": 2, "block_size": 2, "output_dtype": int(TensorProto.INT16)}, constants=(1,))
        )
    return found


def _dequantize(r: Random, version: int) -> list[Sample]:
    x, scale = r.i(-128, 128, 2, 3, 4, dtype=np.int8), r.u(0.05, 0.2, 3)
    found = [
        Sample([x, scalar(0.1, np.float32), scalar(3, np.int8)], constants=(1, 2)),
        Sample([r.i(-999, 999, 4, dtype=np.int32), scalar(0.1, np.float32)], constants=(1,)),
    ]
    if version >= 13:
        found.append(Sample([x, scale, r.i(-9, 9, 3, dtype=np.int8)], {"axis": 1}, constants=(1, 2)))
    if version >= 19:
        import ml_dtypes

        found.append(Sample([r.f(4).astype(ml_dtypes.float8_e5m2), scalar(0.1, np.float32)], constants=(1,)))
    if version >= 21:
        found.append(Sample([x, r.u(0.05, 0.2, 2, 3, 2)], {"axis": 2, "block_size": 2}, constants=(1,)))
    return found


def _max_pool(r: Random, version: int) -> list[Sample]:
    found = [
        Sample([r.f(1, 2, 6, 7)], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
        Sample([r.f(1, 2, 6, 6)], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
    ]
    if version >= 8:
        found.append(Sample([r.f(1, 2, 6, 7)], {"kernel_shape": [2, 2]}, 2))
    if version >= 10:
        found.append(
            Sample([r.f(1, 2, 8, 8)], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "dilations": [2, 1]})
        )
    return found


def _average_pool(r: Random, version: int) -> list[Sample]:
    found = [
        Sample([r.f(1, 2, 6, 7)], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
        Sample([r.f(1, 2, 6, 7)], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1}),
    ]
    if version >= 10:
        found.append(Sample([r.f(1, 2, 7, 7)], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}))
    if version >= 19:
        found.append(Sample([r.f(1, 2, 8, 8)], {"kernel_shape": [3, 3], "dilations": [2, 2]}))
    return found


def _lp_pool(r: Random, version: int) -> list[Sample]:
    found = [Sample([r.f(1, 2, 6, 7)], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "p": 3})]
    if version >= 18:
        found.append(Sample([r.f(1, 2, 8, 8)], {"kernel_shape": [3, 3], "dilations": [2, 2]}))
    return found


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


def _grid_sample(r: Random, version: int) -> list[Sample]:
    linear, cubic = ("bilinear", "bicubic") if version < 20 else ("linear", "cubic")
    x, grid = r.f(1, 2, 4, 5), r.u(-1.2, 1.2, 1, 3, 3, 2)
    modes: list[dict[str, Any]] = [
        {"mode": linear},
        {"mode": "nearest", "padding_mode": "border"},
        {"mode": cubic, "align_corners": 1},
    ]
    return [Sample([x, grid], mode, rtol=1e-4, atol=1e-5) for mode in modes]


def _roi_align(r: Random, version: int) -> list[Sample]:
    rois = np.array([[0, 0, 4, 4], [1, 1, 5, 3]], np.float32)
    common = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    found = [Sample([r.f(1, 2, 6, 6), rois, ints(0, 0)], common)]
    if version >= 16:
        found.append(
            Sample(
                [r.f(1, 2, 6, 6), rois, ints(0, 0)], {**common, "coordinate_transformation_mode": "output_half_pixel"}
            )
        )
    return found


def _scatter(r: Random, version: int) -> list[Sample]:
    x, at, new = r.f(3, 4), np.array([[0, 2, 1, 0]], np.int64), r.f(1, 4)
    reductions = (["add", "mul"] if version >= 16 else []) + (["max", "min"] if version >= 18 else [])
    return [
        Sample([x, at, new]),
        Sample([x, np.array([[3], [0], [1]], np.int64), r.f(3, 1)], {"axis": 1}),
        *(Sample([x, at, new], {"reduction": each}) for each in reductions),
    ]


def _scatter_nd(r: Random, version: int) -> list[Sample]:
    x, at, new = r.f(3, 4), np.array([[0], [2]], np.int64), r.f(2, 4)
    reductions = (["add", "mul"] if version >= 16 else []) + (["max", "min"] if version >= 18 else [])
    return [Sample([x, at, new]), *(Sample([x, at, new], {"reduction": each}) for each in reductions)]


def _group_normalization(r: Random, version: int) -> list[Sample]:
    per = 2 if version < 21 else 4
    return [Sample([r.f(2, 4, 3), r.f(per), r.f(per)], {"num_groups": 2}, rtol=1e-4, atol=1e-5)]


def _attention(r: Random, version: int) -> list[Sample]:
    q, k, v = r.f(2, 4, 3, 8), r.f(2, 2, 5, 8), r.f(2, 2, 5, 6)
    return [
        Sample([q, k, v], rtol=1e-4, atol=1e-5),
        Sample([r.f(2, 4, 3, 8), r.f(2, 4, 3, 8), r.f(2, 4, 3, 6)], {"is_causal": 1}, rtol=1e-4, atol=1e-5),
        Sample([r.f(2, 3, 8), r.f(2, 5, 8), r.f(2, 5, 8)], {"q_num_heads": 2, "kv_num_heads": 2}, rtol=1e-4, atol=1e-5),
    ]


def _shape_like(r: Random, version: int) -> list[Sample]:
    return [Sample([r.f(2, 3, 4)])]


Recipe = Callable[[Random, int], list[Sample]]
_TABLE: dict[str, Recipe] = {
    "AffineGrid": lambda r, v: [
        Sample([r.f(2, 2, 3), ints(2, 1, 3, 4)], {"align_corners": a}, constants=(1,)) for a in (0, 1)
    ],
    "Attention": _attention,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "BitCast": lambda r, v: [Sample([r.f(3, 4)], {"to": int(TensorProto.INT32)})],
    "BitShift": lambda r, v: [
        Sample([r.i(0, 99, 4, dtype=np.uint8), r.i(0, 7, 4, dtype=np.uint8)], {"direction": d})
        for d in ("LEFT", "RIGHT")
    ],
    "BitwiseNot": lambda r, v: [Sample([r.i(0, 99, 4, dtype=np.int32)])],
    "Cast": _cast,
    "CastLike": lambda r, v: [
        Sample([r.u(-9, 9, 3), r.i(0, 1, 1)]),
        Sample([r.u(-9, 9, 3), r.f(1).astype(np.float16)]),
    ],
    "CausalConvWithState": lambda r, v: [
        Sample([r.f(2, 3, 5), r.f(3, 1, 3), r.f(3), r.f(2, 3, 2)], outputs=2, rtol=1e-4, atol=1e-5)
    ],
    "CenterCropPad": lambda r, v: [Sample([r.f(4, 6), ints(6, 3)], constants=(1,))],
    "Clip": _clip,
    "Col2Im": lambda r, v: [Sample([r.f(1, 4, 9), ints(4, 4), ints(2, 2)], constants=(1, 2))],
    "Compress": lambda r, v: [Sample([r.f(3, 4), np.array([True, False, True])], {"axis": 0})],
    "Concat": lambda r, v: [Sample([r.f(2, 3), r.f(2, 1)], {"axis": 1})],
    "Constant": _constant,
    "ConstantOfShape": lambda r, v: [
        Sample([ints(2, 3)]),
        Sample([ints(2, 3)], {"value": helper.make_tensor("v", TensorProto.INT64, [1], [7])}, constants=(0,)),
    ],
    "Conv": lambda r, v: [
        Sample(
            [r.f(1, 4, 6, 7), r.f(6, 2, 3, 3), r.f(6)],
            {"group": 2, "pads": [1, 0, 1, 2], "strides": [2, 1]},
            rtol=1e-4,
            atol=1e-5,
        ),
        Sample([r.f(1, 2, 9), r.f(3, 2, 3)], {"dilations": [2], "auto_pad": "SAME_LOWER"}, rtol=1e-4, atol=1e-5),
    ],
    "ConvInteger": lambda r, v: [
        Sample(
            [
                r.i(0, 255, 1, 2, 5, 5, dtype=np.uint8),
                r.i(0, 255, 3, 2, 3, 3, dtype=np.uint8),
                scalar(3, np.uint8),
                scalar(5, np.uint8),
            ]
        )
    ],
    "ConvTranspose": lambda r, v: [
        Sample(
            [r.f(1, 4, 4, 5), r.f(4, 3, 3, 3), r.f(6)],
            {"group": 2, "strides": [2, 2], "pads": [1, 0, 1, 0], "output_padding": [1, 0]},
            rtol=1e-4,
            atol=1e-5,
        ),
    ],
    "CumProd": lambda r, v: [
        Sample([r.f(3, 4), scalar(1)], {"reverse": k, "exclusive": k}, constants=(1,)) for k in (0, 1)
    ],
    "CumSum": lambda r, v: [
        Sample([r.f(3, 4), scalar(1)], {"reverse": k, "exclusive": k}, constants=(1,)) for k in (0, 1)
    ],
    "DFT": lambda r, v: [
        Sample([r.f(1, 6, 4, 1)], rtol=1e-4, atol=1e-5),
        Sample(
            [r.f(1, 6, 1)] if v < 20 else [r.f(1, 6, 1), None, scalar(1)],
            {"onesided": 1, **({"axis": 1} if v < 20 else {})},
            constants=(2,),
            rtol=1e-4,
            atol=1e-5,
        ),
    ],
    "DeformConv": lambda r, v: [Sample([r.f(1, 2, 4, 4), r.f(3, 2, 2, 2), r.f(1, 8, 3, 3)], rtol=1e-4, atol=1e-5)],
    "DepthToSpace": lambda r, v: [
        Sample([r.f(1, 8, 2, 3)], {"blocksize": 2}),
        *([Sample([r.f(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"})] if v >= 11 else []),
    ],
    "DequantizeLinear": _dequantize,
    "Det": lambda r, v: [Sample([r.f(2, 3, 3)])],
    "Dropout": _dropout,
    "DynamicQuantizeLinear": lambda r, v: [Sample([r.f(3, 4)], outputs=3)],
    "Einsum": lambda r, v: [Sample([r.f(2, 3, 4), r.f(2, 4, 5)], {"equation": "bij,bjk->bik"})],
    "Equal": lambda r, v: [
        Sample([r.i(0, 3, 2, 3), r.i(0, 3, 3)]),
        *([Sample([r.f(2, 3), r.f(3)])] if v >= 11 else []),
    ],
    "Expand": lambda r, v: [Sample([r.f(3, 1), ints(2, 1, 4)], constants=(1,))],
    "EyeLike": lambda r, v: [Sample([r.f(3, 4)], {"k": 1})],
    "Flatten": lambda r, v: [
        Sample([r.f(2, 3, 4)]),
        Sample([r.f(2, 3, 4)], {"axis": 2}),
        *([Sample([r.f(2, 3, 4)], {"axis": -1})] if v >= 11 else []),
    ],
    "Gather": lambda r, v: (
        [Sample([r.f(3, 4), np.array([[0, 2]], np.int64)], {"axis": 1})]
        + ([Sample([r.f(3, 4), ints(-1, 0)])] if v >= 11 else [])
    ),
    "GatherElements": lambda r, v: [Sample([r.f(3, 4), np.array([[0, -1, 1, 2]], np.int64)])],
    "GatherND": lambda r, v: (
        [Sample([r.f(3, 4), np.array([[0, 1], [2, 3]], np.int64)])]
        + ([Sample([r.f(2, 3, 4), np.array([[1], [2]], np.int64)], {"batch_dims": 1})] if v >= 12 else [])
    ),
    "Gemm": lambda r, v: (
        [Sample([r.f(4, 3), r.f(5, 4), r.f(5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0})]
        + ([Sample([r.f(3, 4), r.f(4, 5)])] if v >= 11 else [])
    ),
    "GridSample": _grid_sample,
    "GroupNormalization": _group_normalization,
    "If": _if,
    "InstanceNormalization": lambda r, v: [Sample([r.f(2, 3, 4, 5), r.f(3), r.f(3)], rtol=1e-4, atol=1e-5)],
    "IsInf": lambda r, v: [Sample([np.array([1, np.inf, -np.inf, np.nan], np.float32)], {"detect_negative": 0})],
    "IsNaN": lambda r, v: [Sample([np.array([1, np.inf, np.nan], np.float32)])],
    "LRN": lambda r, v: [Sample([r.f(1, 5, 3, 3)], {"size": 3})],
    "LayerNormalization": lambda r, v: [
        Sample([r.f(2, 3, 4), r.f(4), r.f(4)], rtol=1e-4, atol=1e-5),
        Sample([r.f(2, 3, 4), r.f(3, 4)], {"axis": 1}, 3, rtol=1e-4, atol=1e-5),
    ],
    "LinearAttention": lambda r, v: [
        Sample(
            [r.f(2, 4, 6), r.f(2, 4, 6), r.f(2, 4, 6)],
            {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"},
            outputs=2,
            rtol=1e-4,
            atol=1e-5,
        )
    ],
    "Loop": _loop,
    "LpNormalization": lambda r, v: [Sample([r.f(2, 3, 4)], {"axis": 1, "p": p}) for p in (1, 2)],
    "LpPool": _lp_pool,
    "MatMul": lambda r, v: [Sample([r.f(2, 3, 4), r.f(4, 5)]), Sample([r.f(4), r.f(4)])],
    "MatMulInteger": lambda r, v: [
        Sample([r.i(0, 255, 3, 4, dtype=np.uint8), r.i(-99, 99, 4, 2, dtype=np.int8), scalar(9, np.uint8)])
    ],
    "MaxPool": _max_pool,
    "MaxRoiPool": lambda r, v: [
        Sample([r.f(1, 2, 6, 6), np.array([[0, 0, 0, 3, 3], [0, 1, 1, 5, 4]], np.float32)], {"pooled_shape": [2, 2]})
    ],
    "MaxUnpool": lambda r, v: [
        Sample(
            [np.array([[[[1, 2], [3, 4]]]], np.float32), np.array([[[[5, 7], [13, 15]]]], np.int64)],
            {"kernel_shape": [2, 2], "strides": [2, 2]},
        )
    ],
    "MeanVarianceNormalization": lambda r, v: [
        Sample([r.f(2, 3, 4, 5)], rtol=1e-4, atol=1e-5),
        Sample([r.f(2, 3, 4, 5)], {"axes": [2, 3]}, rtol=1e-4, atol=1e-5),
    ],
    "MelWeightMatrix": lambda r, v: [
        Sample(
            [scalar(8), scalar(16), scalar(8000), scalar(0, np.float32), scalar(4000, np.float32)],
            constants=(0, 1, 2, 3, 4),
        )
    ],
    "Mod": lambda r, v: [
        Sample([r.i(-9, 9, 6), ints(3, -3, 2, 5, -5, 7)]),
        Sample([r.f(4), r.u(0.5, 2, 4)], {"fmod": 1}),
    ],
    "NegativeLogLikelihoodLoss": lambda r, v: [
        Sample([r.f(3, 4), ints(0, 3, 1)]),
        Sample([r.f(3, 4), ints(0, 3, 1), r.u(0.5, 1, 4)], {"reduction": "sum", "ignore_index": 3}),
    ],
    "NonMaxSuppression": lambda r, v: [
        Sample(
            [
                np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 3, 1, 4]]], np.float32),
                np.array([[[0.9, 0.8, 0.7]]], np.float32),
                ints(3),
                np.array([0.5], np.float32),
            ],
            constants=(2, 3),
        ),
    ],
    "NonZero": lambda r, v: [Sample([r.i(0, 2, 3, 4).astype(np.float32)])],
    "Not": lambda r, v: [Sample([r.b(2, 3)])],
    "OneHot": lambda r, v: (
        [Sample([ints(0, 2, 1), scalar(3), np.array([0, 1], np.float32)], constants=(1,))]
        + (
            [Sample([ints(0, -1), scalar(3), np.array([2, 5], np.float32)], {"axis": 0}, constants=(1,))]
            if v >= 11
            else []
        )
    ),
    "PRelu": lambda r, v: [Sample([r.f(2, 3, 4), r.f(3, 1)])],
    "Pad": _pad,
    "Pow": lambda r, v: (
        [Sample([r.u(0.5, 2, 2, 3), r.f(3)])] + ([Sample([r.u(0.5, 2, 3), r.i(0, 3, 3)])] if v >= 12 else [])
    ),
    "QLinearConv": lambda r, v: [
        Sample(
            [
                r.i(0, 255, 1, 2, 5, 5, dtype=np.uint8),
                scalar(0.05, np.float32),
                scalar(128, np.uint8),
                r.i(0, 255, 3, 2, 3, 3, dtype=np.uint8),
                scalar(0.02, np.float32),
                scalar(120, np.uint8),
                scalar(0.2, np.float32),
                scalar(100, np.uint8),
                r.i(-99, 99, 3, dtype=np.int32),
            ],
            constants=tuple(range(1, 9)),
        ),
    ],
    "QLinearMatMul": lambda r, v: [
        Sample(
            [
                r.i(0, 255, 3, 4, dtype=np.uint8),
                scalar(0.05, np.float32),
                scalar(128, np.uint8),
                r.i(0, 255, 4, 2, dtype=np.uint8),
                scalar(0.02, np.float32),
                scalar(120, np.uint8),
                scalar(0.2, np.float32),
                scalar(100, np.uint8),
            ],
            constants=tuple(range(1, 8)),
        ),
    ],
    "QuantizeLinear": _quantize,
    "RMSNormalization": lambda r, v: [Sample([r.f(2, 3, 4), r.f(4)], rtol=1e-4, atol=1e-5)],
    "Range": lambda r, v: [
        Sample([scalar(1), scalar(9), scalar(3)], constants=(0, 1, 2)),
        Sample([scalar(x, np.float32) for x in (1, 2, 0.25)]),
    ],
    "Reshape": lambda r, v: (
        [Sample([r.f(2, 3, 4), ints(0, -1)], constants=(1,))]
        + ([Sample([np.zeros((0, 3), np.float32), ints(3, 0)], {"allowzero": 1}, constants=(1,))] if v >= 14 else [])
    ),
    "Resize": _resize,
    "ReverseSequence": lambda r, v: [Sample([r.f(4, 3), ints(4, 2, 1)], {"time_axis": 0, "batch_axis": 1})],
    "RoiAlign": _roi_align,
    "RotaryEmbedding": lambda r, v: [Sample([r.f(1, 2, 3, 8), r.f(1, 3, 4), r.f(1, 3, 4)])],
    "STFT": lambda r, v: [Sample([r.f(1, 16, 1), scalar(4), r.f(8)], constants=(1,), rtol=1e-4, atol=1e-5)],
    "Scan": _scan,
    "Scatter": lambda r, v: [Sample([r.f(3, 4), np.array([[0, 2, 1, 0]], np.int64), r.f(1, 4)])],
    "ScatterElements": _scatter,
    "ScatterND": _scatter_nd,
    "Shrink": lambda r, v: [Sample([r.f(3, 4)], {"lambd": 0.5, "bias": 0.1})],
    "Slice": _slice,
    "SoftmaxCrossEntropyLoss": lambda r, v: [
        Sample([r.f(3, 4), ints(0, 3, 1)], outputs=2),
        Sample([r.f(3, 4), ints(0, 3, 1), r.u(0.5, 1, 4)], {"reduction": "none"}),
    ],
    "SpaceToDepth": lambda r, v: (
        [Sample([r.f(1, 2, 4, 6)], {"blocksize": 2})]
        + ([Sample([r.f(1, 2, 4, 6)], {"blocksize": 2, "mode": "CRD"})] if v >= 28 else [])
    ),
    "Split": _split,
    "Squeeze": lambda r, v: [
        Sample([r.f(1, 3, 1)]),
        _axes(v, r.f(1, 3, 1), (0,)),
        *([_axes(v, r.f(1, 3, 1), (-1,))] if v >= 11 else []),
    ],
    "SwiGLU": lambda r, v: [Sample([r.f(2, 3), r.f(2, 3)])],
    "TensorScatter": lambda r, v: [Sample([r.f(2, 3, 6, 4), r.f(2, 3, 2, 4), ints(0, 3)])],
    "TfIdfVectorizer": lambda r, v: [
        Sample(
            [r.i(0, 6, 3, 9)],
            {
                "mode": mode,
                "min_gram_length": 1,
                "max_gram_length": 2,
                "max_skip_count": 2,
                "ngram_counts": [0, 3],
                "ngram_indexes": [0, 1, 2, 4, 3],
                "pool_int64s": [0, 1, 2, 3, 1, 2, 2],
                "weights": [0.5, 1.0, 1.5, 2.0, 2.5],
            },
        )
        for mode in ("TF", "IDF", "TFIDF")
    ],
    "Tile": lambda r, v: [Sample([r.f(2, 3), ints(2, 1)], constants=(1,))],
    "TopK": _top_k,
    "Transpose": lambda r, v: [Sample([r.f(2, 3, 4)]), Sample([r.f(2, 3, 4)], {"perm": [1, 2, 0]})],
    "Trilu": lambda r, v: [Sample([r.f(3, 4)]), Sample([r.f(3, 4), scalar(1)], {"upper": 0}, constants=(1,))],
    "Unique": lambda r, v: [Sample([r.i(0, 4, 8).astype(np.float32)], outputs=4)],
    "Unsqueeze": lambda r, v: [_axes(v, r.f(2, 3), (0, 2)), *([_axes(v, r.f(2, 3), (-1,))] if v >= 11 else [])],
    "Upsample": _upsample,
    "Where": lambda r, v: [Sample([r.b(2, 3), r.f(2, 3), r.f(3)])],
}
