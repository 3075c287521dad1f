"""Samples for onnx_opsets.py. Layers of networks, arithmetic, signal processing."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx_forms import Random, Recipe, Sample, ints, scalar


def _clip(r: Random, version: int) -> list[Sample]:
    if version < 11:
        return [Sample([r.f(3, 4)], {"min": -0.5, "max": 0.5}), Sample([r.f(3, 4)], {"min": 0.0})]
    return [
        Sample([r.f(3, 4), scalar(-0.5, np.float32), scalar(0.5, np.float32)]),
        Sample([r.f(3, 4), None, scalar(0.5, np.float32)]),
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


RECIPES: dict[str, Recipe] = {
    "AffineGrid": lambda r, v: [
        Sample([r.f(2, 2, 3), ints(2, 1, 3, 4)], {"align_corners": a}, constants=(1,)) for a in (0, 1)
    ],
    "Attention": _attention,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "CausalConvWithState": lambda r, v: [
        Sample([r.f(2, 3, 5), r.f(3, 1, 3), r.f(3), r.f(2, 3, 2)], outputs=2, rtol=1e-4, atol=1e-5)
    ],
    "Clip": _clip,
    "Conv": lambda r, v: [
        Sample(
            [r.f(1, 4, 6, 7), r.f(6, 2, 3, 3), r.f(6)],
            {"group": 2, "pads": [1, 0, 1, 2], "strides": [2, 1]},
            rtol=1e-4,
            atol=1e-5,
        ),
        Sample([r.f(1, 2, 9), r.f(3, 2, 3)], {"dilations": [2], "auto_pad": "SAME_LOWER"}, rtol=1e-4, atol=1e-5),
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
    "Det": lambda r, v: [Sample([r.f(2, 3, 3)])],
    "Dropout": _dropout,
    "Einsum": lambda r, v: [Sample([r.f(2, 3, 4), r.f(2, 4, 5)], {"equation": "bij,bjk->bik"})],
    "Gemm": lambda r, v: (
        [Sample([r.f(4, 3), r.f(5, 4), r.f(5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0})]
        + ([Sample([r.f(3, 4), r.f(4, 5)])] if v >= 11 else [])
    ),
    "GridSample": _grid_sample,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": lambda r, v: [Sample([r.f(2, 3, 4, 5), r.f(3), r.f(3)], rtol=1e-4, atol=1e-5)],
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
    "LpNormalization": lambda r, v: [Sample([r.f(2, 3, 4)], {"axis": 1, "p": p}) for p in (1, 2)],
    "LpPool": _lp_pool,
    "MatMul": lambda r, v: [Sample([r.f(2, 3, 4), r.f(4, 5)]), Sample([r.f(4), r.f(4)])],
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
    "NegativeLogLikelihoodLoss": lambda r, v: [
        Sample([r.f(3, 4), ints(0, 3, 1)]),
        Sample([r.f(3, 4), ints(0, 3, 1), r.u(0.5, 1, 4)], {"reduction": "sum", "ignore_index": 3}),
    ],
    "PRelu": lambda r, v: [Sample([r.f(2, 3, 4), r.f(3, 1)])],
    "Pow": lambda r, v: (
        [Sample([r.u(0.5, 2, 2, 3), r.f(3)])] + ([Sample([r.u(0.5, 2, 3), r.i(0, 3, 3)])] if v >= 12 else [])
    ),
    "RMSNormalization": lambda r, v: [Sample([r.f(2, 3, 4), r.f(4)], rtol=1e-4, atol=1e-5)],
    "RoiAlign": _roi_align,
    "RotaryEmbedding": lambda r, v: [Sample([r.f(1, 2, 3, 8), r.f(1, 3, 4), r.f(1, 3, 4)])],
    "STFT": lambda r, v: [Sample([r.f(1, 16, 1), scalar(4), r.f(8)], constants=(1,), rtol=1e-4, atol=1e-5)],
    "Shrink": lambda r, v: [Sample([r.f(3, 4)], {"lambd": 0.5, "bias": 0.1})],
    "SoftmaxCrossEntropyLoss": lambda r, v: [
        Sample([r.f(3, 4), ints(0, 3, 1)], outputs=2),
        Sample([r.f(3, 4), ints(0, 3, 1), r.u(0.5, 1, 4)], {"reduction": "none"}),
    ],
    "SwiGLU": lambda r, v: [Sample([r.f(2, 3), r.f(2, 3)])],
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
}
