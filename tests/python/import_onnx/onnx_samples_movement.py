"""Samples for onnx_opsets.py. What moves, picks and makes elements: slices, pads, gathers, resizes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from onnx_forms import Array, Random, Recipe, Sample, ints, scalar


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


RECIPES: dict[str, Recipe] = {
    "CenterCropPad": lambda r, v: [Sample([r.f(4, 6), ints(6, 3)], constants=(1,))],
    "Col2Im": lambda r, v: [Sample([r.f(1, 4, 9), ints(4, 4), ints(2, 2)], constants=(1, 2))],
    "Compress": lambda r, v: [Sample([r.f(3, 4), np.array([True, False, True])], {"axis": 0})],
    "Concat": lambda r, v: [Sample([r.f(2, 3), r.f(2, 1)], {"axis": 1})],
    "ConstantOfShape": lambda r, v: [
        Sample([ints(2, 3)]),
        Sample([ints(2, 3)], {"value": helper.make_tensor("v", TensorProto.INT64, [1], [7])}, constants=(0,)),
    ],
    "DepthToSpace": lambda r, v: [
        Sample([r.f(1, 8, 2, 3)], {"blocksize": 2}),
        *([Sample([r.f(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"})] if v >= 11 else []),
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
    "OneHot": lambda r, v: (
        [Sample([ints(0, 2, 1), scalar(3), np.array([0, 1], np.float32)], constants=(1,))]
        + (
            [Sample([ints(0, -1), scalar(3), np.array([2, 5], np.float32)], {"axis": 0}, constants=(1,))]
            if v >= 11
            else []
        )
    ),
    "Pad": _pad,
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
    "Scatter": lambda r, v: [Sample([r.f(3, 4), np.array([[0, 2, 1, 0]], np.int64), r.f(1, 4)])],
    "ScatterElements": _scatter,
    "ScatterND": _scatter_nd,
    "Slice": _slice,
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
    "TensorScatter": lambda r, v: [Sample([r.f(2, 3, 6, 4), r.f(2, 3, 2, 4), ints(0, 3)])],
    "Tile": lambda r, v: [Sample([r.f(2, 3), ints(2, 1)], constants=(1,))],
    "TopK": _top_k,
    "Transpose": lambda r, v: [Sample([r.f(2, 3, 4)]), Sample([r.f(2, 3, 4)], {"perm": [1, 2, 0]})],
    "Trilu": lambda r, v: [Sample([r.f(3, 4)]), Sample([r.f(3, 4), scalar(1)], {"upper": 0}, constants=(1,))],
    "Unique": lambda r, v: [Sample([r.i(0, 4, 8).astype(np.float32)], outputs=4)],
    "Unsqueeze": lambda r, v: [_axes(v, r.f(2, 3), (0, 2)), *([_axes(v, r.f(2, 3), (-1,))] if v >= 11 else [])],
    "Upsample": _upsample,
    "Where": lambda r, v: [Sample([r.b(2, 3), r.f(2, 3), r.f(3)])],
}
