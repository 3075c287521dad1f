"""Samples for onnx_opsets.py. Element types: casts, quantisation, integer arithmetic."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from onnx_forms import Random, Recipe, Sample, ints, scalar


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
        counts = r.i(-300, 300, 2, 9, dtype=np.int32)
        found.append(Sample([counts, scalar(6, np.int32), scalar(9, np.uint8)], constants=(1, 2)))
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


RECIPES: dict[str, Recipe] = {
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
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": lambda r, v: [Sample([r.f(3, 4)], outputs=3)],
    "Equal": lambda r, v: [
        Sample([r.i(0, 3, 2, 3), r.i(0, 3, 3)]),
        *([Sample([r.f(2, 3), r.f(3)])] if v >= 11 else []),
    ],
    "IsInf": lambda r, v: [Sample([np.array([1, np.inf, -np.inf, np.nan], np.float32)], {"detect_negative": 0})],
    "IsNaN": lambda r, v: [Sample([np.array([1, np.inf, np.nan], np.float32)])],
    "MatMulInteger": lambda r, v: [
        Sample([r.i(0, 255, 3, 4, dtype=np.uint8), r.i(-99, 99, 4, 2, dtype=np.int8), scalar(9, np.uint8)])
    ],
    "Mod": lambda r, v: [
        Sample([r.i(-9, 9, 6), ints(3, -3, 2, 5, -5, 7)]),
        Sample([r.f(4), r.u(0.5, 2, 4)], {"fmod": 1}),
    ],
    "Not": lambda r, v: [Sample([r.b(2, 3)])],
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
}
