"""Operators that move, index, shape and reduce, held against other implementations of the same meaning.

The judge is ONNX's reference evaluator; where it is known to be wrong, or lacks a type, numpy, torch or onnxruntime.
Data is seeded; a case is one call of one operator by its reference code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator
from pinnace import _core

Arrays = Sequence[np.ndarray | None]
BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "bool": "bool"}
NAMES |= {f"{sign}int{bits}": f"{'u' if sign else 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
NUMBERS = [np.dtype(t) for t in ("float32", "float16", BF16, "float64", "int8", "uint8", "int32", "int64")]
ALL = [*NUMBERS, np.dtype(bool)]
FLOATS = NUMBERS[:4]
LOOSE = {"float32": 3e-6, "float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}


def snake(name: str) -> str:
    name = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    return {"gathernd": "gather_nd", "scatternd": "scatter_nd"}.get(name.replace("_", ""), name)


def text_type(array: np.ndarray) -> str:
    return f"{NAMES[array.dtype.name]}[{','.join(map(str, array.shape))}]"


def text_attr(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ",".join(text_attr(v) for v in value) + "]"
    return str(value)


def ours(op: str, inputs: Arrays, attrs: dict[str, Any] | None = None, outputs: int = 1) -> list[np.ndarray]:
    given = [f"input %i{k} : {text_type(a)}" for k, a in enumerate(inputs) if a is not None]
    names = ", ".join("none" if a is None else f"%i{k}" for k, a in enumerate(inputs))
    results = [f"%o{k}" for k in range(outputs)]
    braces = ", ".join(f"{k}={text_attr(v)}" for k, v in (attrs or {}).items())
    node = f"{', '.join(results)} = {op} ({names}) {{{braces}}}"
    lines = [*given, node, *(f'output "{r[1:]}" {r}' for r in results)]
    text = 'graph "t" {\n' + "\n".join(lines) + "\n}"
    return list(_core.run_graph_text(text, [a for a in inputs if a is not None]))


def model_of(op: str, inputs: Arrays, attrs: dict[str, Any] | None, outputs: int) -> onnx.ModelProto:
    names = ["" if a is None else f"i{k}" for k, a in enumerate(inputs)]
    node = helper.make_node(op, names, [f"o{k}" for k in range(outputs)], **(attrs or {}))
    types = [
        helper.make_tensor_value_info(f"i{k}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for k, a in enumerate(inputs)
        if a is not None
    ]
    results = [onnx.ValueInfoProto(name=f"o{k}") for k in range(outputs)]
    graph = helper.make_graph([node], "t", types, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def by_onnx(op: str, inputs: Arrays, attrs: dict[str, Any] | None = None, outputs: int = 1) -> list[np.ndarray]:
    feeds = {f"i{k}": a for k, a in enumerate(inputs) if a is not None}
    return list(ReferenceEvaluator(model_of(op, inputs, attrs, outputs)).run(None, feeds))


def by_ort(op: str, inputs: Arrays, attrs: dict[str, Any] | None = None, outputs: int = 1) -> list[np.ndarray]:
    feeds = {f"i{k}": a for k, a in enumerate(inputs) if a is not None}
    model = onnx.shape_inference.infer_shapes(model_of(op, inputs, attrs, outputs))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def close(got: Sequence[np.ndarray], want: Sequence[np.ndarray], relative: float = 0) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape, f"{g.shape} is not {w.shape}"
        assert g.dtype == w.dtype, f"{g.dtype} is not {w.dtype}"
        if relative and g.dtype.name in LOOSE:
            a, b = g.astype(np.float64), w.astype(np.float64)
            finite = np.abs(b[np.isfinite(b)])
            np.testing.assert_allclose(a, b, rtol=0, atol=relative * max(finite.max(initial=0), 1e-30), equal_nan=True)
        else:
            same = (g == w) | ((g != g) & (w != w))
            assert same.all(), f"{g} is not {w}"


def check(
    op: str,
    inputs: Arrays,
    attrs: dict[str, Any] | None = None,
    outputs: int = 1,
    relative: float = 0,
    judge: Callable[..., list[np.ndarray]] = by_onnx,
) -> None:
    close(ours(snake(op), inputs, attrs, outputs), judge(op, inputs, attrs, outputs), relative)


def data(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype | str = "float32") -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.name in LOOSE:
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -1000), min(info.max, 1000), shape).astype(dtype)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def judged_as_bits(op: str, inputs: Arrays, attrs: dict[str, Any] | None, outputs: int) -> list[np.ndarray]:
    """For bf16, which the evaluator moves only as integers of its size."""
    as_bits = [a.view(np.uint16) if a is not None and a.dtype == BF16 else a for a in inputs]
    return [r.view(BF16) if r.dtype == np.uint16 else r for r in by_onnx(op, as_bits, attrs, outputs)]


# ------------------------------------------------------------------------------------------------------- movement

MOVES: list[tuple[str, Callable[[np.random.Generator, np.dtype], Arrays], dict[str, Any], int]] = [
    ("Concat", lambda r, t: [data(r, (2, k, 3), t) for k in (1, 4, 0, 2)], {"axis": 1}, 1),
    ("Concat", lambda r, t: [data(r, (k, 3), t) for k in (2, 1)], {"axis": -2}, 1),
    ("Compress", lambda r, t: [data(r, (3, 4), t), np.array([1, 0, 1], bool)], {"axis": 1}, 1),
    ("Compress", lambda r, t: [data(r, (3, 4), t), np.array([1, 0, 1, 0, 0, 1], bool)], {}, 1),
    ("DepthToSpace", lambda r, t: [data(r, (2, 12, 2, 3), t)], {"blocksize": 2}, 1),
    ("DepthToSpace", lambda r, t: [data(r, (2, 18, 2, 3), t)], {"blocksize": 3, "mode": "CRD"}, 1),
    ("SpaceToDepth", lambda r, t: [data(r, (2, 3, 4, 6), t)], {"blocksize": 2}, 1),
    ("Expand", lambda r, t: [data(r, (3, 1, 4), t), ints(2, 1, 5, 1)], {}, 1),
    ("Flatten", lambda r, t: [data(r, (2, 3, 4), t)], {"axis": -2}, 1),
    ("Gather", lambda r, t: [data(r, (3, 4, 2), t), ints(3, -1, 0, 1, 1, -4).reshape(2, 3)], {"axis": 1}, 1),
    ("GatherElements", lambda r, t: [data(r, (3, 4), t), r.integers(-4, 4, (3, 6))], {"axis": 1}, 1),
    ("GatherND", lambda r, t: [data(r, (3, 4, 2), t), r.integers(0, 3, (5, 2))], {}, 1),
    ("GatherND", lambda r, t: [data(r, (2, 4, 3), t), r.integers(0, 3, (2, 5, 1))], {"batch_dims": 1}, 1),
    ("Pad", lambda r, t: [data(r, (3, 4), t), ints(1, 0, 2, 3)], {}, 1),
    ("Pad", lambda r, t: [data(r, (3, 4), t), ints(1, 2, 2, 1), data(r, (), t)], {}, 1),
    ("Pad", lambda r, t: [data(r, (3, 4), t), ints(1, 2, 0, 3)], {"mode": "edge"}, 1),
    ("Pad", lambda r, t: [data(r, (3, 4), t), ints(5, 2, 0, 3)], {"mode": "reflect"}, 1),
    ("Pad", lambda r, t: [data(r, (3, 4), t), ints(1, 9, 0, 3)], {"mode": "wrap"}, 1),
    ("Pad", lambda r, t: [data(r, (3, 4, 2), t), ints(2, 1), None, ints(-2)], {"mode": "edge"}, 1),
    ("ReverseSequence", lambda r, t: [data(r, (5, 3, 2), t), ints(5, 1, 3)], {}, 1),
    ("ReverseSequence", lambda r, t: [data(r, (3, 5), t), ints(5, 2, 3)], {"batch_axis": 0, "time_axis": 1}, 1),
    ("ScatterElements", lambda r, t: [data(r, (4, 3), t), ints(1, -1, 3, 0).reshape(2, 2), data(r, (2, 2), t)], {}, 1),
    ("ScatterND", lambda r, t: [data(r, (4, 3), t), ints(2, 0).reshape(2, 1), data(r, (2, 3), t)], {}, 1),
    ("Slice", lambda r, t: [data(r, (5, 6), t), ints(1, -1), ints(9, -7), ints(0, 1), ints(2, -3)], {}, 1),
    ("Slice", lambda r, t: [data(r, (5, 6), t), ints(-3), ints(-1)], {}, 1),
    ("Split", lambda r, t: [data(r, (2, 7), t), ints(3, 0, 4)], {"axis": 1}, 3),
    ("Split", lambda r, t: [data(r, (7, 2), t)], {"num_outputs": 3}, 3),
    ("Squeeze", lambda r, t: [data(r, (1, 3, 1), t)], {}, 1),
    ("Squeeze", lambda r, t: [data(r, (1, 3, 1), t), ints(-1)], {}, 1),
    ("Unsqueeze", lambda r, t: [data(r, (3, 2), t), ints(-1, 0)], {}, 1),
    ("Tile", lambda r, t: [data(r, (2, 3, 1), t), ints(2, 1, 3)], {}, 1),
    ("Transpose", lambda r, t: [data(r, (2, 3, 4), t)], {}, 1),
    ("Transpose", lambda r, t: [data(r, (2, 3, 4, 2), t)], {"perm": [2, 0, 3, 1]}, 1),
    ("Trilu", lambda r, t: [data(r, (2, 3, 4), t), np.array(1)], {"upper": 0}, 1),
    ("Trilu", lambda r, t: [data(r, (4, 3), t), np.array(-1)], {}, 1),
    ("Shape", lambda r, t: [data(r, (2, 3, 4), t)], {"start": -2}, 1),
    ("Size", lambda r, t: [data(r, (2, 3, 4), t)], {}, 1),
]


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("case", range(len(MOVES)), ids=[f"{c[0]}-{k}" for k, c in enumerate(MOVES)])
def test_moves_every_type(case: int, dtype: np.dtype, rng: np.random.Generator) -> None:
    op, make, attrs, outputs = MOVES[case]
    check(op, make(rng, dtype), attrs, outputs, judge=judged_as_bits if dtype == BF16 else by_onnx)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_moves_that_the_evaluator_lacks(dtype: np.dtype, rng: np.random.Generator) -> None:
    values = data(rng, (2,), dtype)
    indices = rng.integers(-5, 5, (3, 2))
    hot = np.arange(5)[None, :, None] == (indices % 5)[:, None, :]
    close(ours("one_hot", [indices, ints(5), values], {"axis": 1}), [np.where(hot, values[1], values[0]).astype(dtype)])
    x = data(rng, (3, 4), dtype)
    close(ours("resize", [x, None, None, ints(6, 2)]), [x.repeat(2, axis=0)[:, [0, 2]]])
    few = rng.integers(-4, 4, (2, 6))
    close(ours("gather_elements", [x, few], {"axis": 1}), [np.take_along_axis(x[:2], few, 1)])


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in ("float32", "int8", "int64", "bool")], ids=str)
def test_sizes_that_depend_on_data(dtype: np.dtype, rng: np.random.Generator) -> None:
    x = (rng.integers(0, 3, (4, 5, 3))).astype(dtype)
    check("NonZero", [x])
    for attrs in ({}, {"sorted": 0}, {"axis": 0}, {"axis": 1}, {"axis": -1, "sorted": 0}):
        rows = np.repeat(x, 2, axis=1)[:, ::-1]
        if dtype.kind != "b":
            check("Unique", [rows], attrs, 4, judge=by_ort)  # the evaluator takes no sorted=0 and axis=-1
        elif attrs in ({}, {"axis": 0}):
            check("Unique", [rows], attrs, 4)
    if dtype.kind != "b":
        start, stop, step = (np.array(v, dtype) for v in (3, 20, 4))
        check("Range", [start, stop, step])
        check("Range", [stop, start, np.array(-5, dtype)])


def test_range_of_floats() -> None:
    for dtype in (np.float32, np.float64):
        check("Range", [np.array(v, dtype) for v in (0.5, 3.1, 0.3)], relative=LOOSE[np.dtype(dtype).name])


@pytest.mark.parametrize("name", ["float32", "float16", "int32", "int64", "bool", "uint8"])
def test_makes_constants(name: str, rng: np.random.Generator) -> None:
    ours_name, number = NAMES[name], 1 if name == "bool" else 3
    value = {"value": float(number)} if name.startswith("float") else {"int_value": number}
    got = ours("constant_of_shape", [ints(2, 3)], {"dtype": ours_name, **value})
    close(got, [np.full((2, 3), number, name)])
    for k in (-2, 0, 1):
        close(ours("eye_like", [data(rng, (3, 4))], {"k": k, "dtype": ours_name}), [np.eye(3, 4, k, name)])


# ----------------------------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_searches(dtype: np.dtype, rng: np.random.Generator) -> None:
    x = rng.integers(0, 5, (3, 6, 2)).astype(dtype)
    for op, pick in (("arg_max", np.argmax), ("arg_min", np.argmin)):
        for axis in (0, 1, -1):
            close(ours(op, [x], {"axis": axis}), [np.expand_dims(pick(x, axis), axis)])
            last = x.shape[axis] - 1 - pick(np.flip(x, axis), axis)
            close(ours(op, [x], {"axis": axis, "select_last_index": 1, "keepdims": 0}), [last])
    for largest in (0, 1):
        order = np.argsort(-x.astype(np.float64) if largest else x.astype(np.float64), axis=1, kind="stable")[:, :4]
        want = [np.take_along_axis(x, order, 1), order]
        close(ours("top_k", [x, ints(4)], {"axis": 1, "largest": largest}, 2), want)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_cum_sum(dtype: np.dtype, rng: np.random.Generator) -> None:
    x = rng.integers(0, 9, (3, 5)).astype(dtype)
    for axis in (0, -1):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                attrs = {"exclusive": exclusive, "reverse": reverse}
                flipped = np.flip(x, axis) if reverse else x
                want = np.cumsum(flipped.astype(np.float64), axis=axis)
                want = want - flipped.astype(np.float64) if exclusive else want
                want = np.flip(want, axis) if reverse else want
                close(ours("cum_sum", [x, np.array(axis)], attrs), [want.astype(dtype)])


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "l1": lambda x, **k: np.abs(x).sum(**k),
    "l2": lambda x, **k: np.sqrt((x * x).sum(**k)),
    "log_sum": lambda x, **k: np.log(x.sum(**k)),
    "log_sum_exp": lambda x, **k: np.logaddexp.reduce(x, axis=k["axis"], keepdims=k["keepdims"]),
    "max": lambda x, **k: x.max(**k),
    "min": lambda x, **k: x.min(**k),
    "mean": lambda x, **k: x.mean(**k),
    "prod": lambda x, **k: x.prod(**k),
    "sum": lambda x, **k: x.sum(**k),
    "sum_square": lambda x, **k: (x * x).sum(**k),
}


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, dtype: np.dtype, rng: np.random.Generator) -> None:
    x = rng.integers(1, 4, (2, 3, 4)).astype(dtype)
    if dtype.name in LOOSE:
        x = (x + rng.random(x.shape)).astype(dtype)
    x = np.minimum(x, dtype.type(2)) if name == "prod" else x  # f16 must not overflow
    for axes in ((0,), (-1,), (0, 2), (1, 2), (0, 1, 2)):
        for keepdims in (0, 1):
            wide = x.astype(np.float64)
            want = np.asarray(REDUCTIONS[name](wide, axis=axes, keepdims=bool(keepdims)))
            want = want.astype(dtype) if dtype.name in LOOSE else np.trunc(want).astype(np.int64).astype(dtype)
            got = ours(f"reduce_{name}", [x, ints(*axes)], {"keepdims": keepdims})
            close(got, [want], LOOSE.get(dtype.name, 0))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_by_onnx(name: str, rng: np.random.Generator) -> None:
    op = "Reduce" + "".join(part.capitalize() for part in name.split("_"))
    x = np.abs(data(rng, (3, 4, 2))) + np.float32(0.1)
    check(op, [x], relative=3e-6)
    check(op, [x, ints()], {"noop_with_empty_axes": 1}, relative=3e-6)
    check(op, [x, ints(1)], {"keepdims": 0}, relative=3e-6)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_scatter_reductions(reduction: str, dtype: str, rng: np.random.Generator) -> None:
    x, updates = (rng.integers(1, 5, s).astype(dtype) for s in ((4, 3), (2, 3)))
    check("ScatterElements", [x, rng.integers(0, 4, (2, 3)), updates], {"reduction": reduction})
    check("ScatterND", [x, ints(2, 2).reshape(2, 1), updates], {"reduction": reduction})


# --------------------------------------------------------------------------------------------------------- images

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_resize_nearest(coordinates: str, nearest: str, rng: np.random.Generator) -> None:
    x = data(rng, (1, 2, 4, 6))
    attrs = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest}
    # Scales by powers of two and sizes whose places are exact, so that float32 and double round alike.
    for scales in ((1, 1, 2, 4), (1, 1, 0.5, 2)):
        if coordinates != "align_corners":
            check("Resize", [x, None, np.array(scales, np.float32)], attrs)
    check("Resize", [x, None, None, ints(1, 2, 7, 11) if coordinates == "align_corners" else ints(1, 2, 8, 3)], attrs)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_resize_interpolates(
    coordinates: str, mode: str, antialias: int, exclude_outside: int, rng: np.random.Generator
) -> None:
    x = data(rng, (1, 1, 5, 7))
    attrs: dict[str, Any] = {"coordinate_transformation_mode": coordinates, "mode": mode, "antialias": antialias}
    attrs |= {"exclude_outside": exclude_outside, "cubic_coeff_a": -0.5}
    # The evaluator aligns corners with sizes before they are rounded, onnxruntime with the sizes that there are.
    judge = by_ort if coordinates == "align_corners" else by_onnx
    if judge is by_onnx or mode == "cubic" or not exclude_outside:  # onnxruntime takes exclude_outside only with cubic
        check("Resize", [x, None, np.array([1, 1, 0.6, 1.7], np.float32)], attrs, relative=1e-5, judge=judge)
    check("Resize", [x, None, None, ints(1, 1, 9, 3)], attrs, relative=1e-5)
    check("Resize", [x, None, None, ints(9, 4)], {**attrs, "axes": [3, 2]}, relative=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_other_ways(mode: str, rng: np.random.Generator) -> None:
    x = data(rng, (1, 1, 4, 5))
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": mode, "extrapolation_value": 7.5}
    roi = np.array([0, 0, 0.3, -0.2, 1, 1, 0.9, 1.3], np.float32)
    check("Resize", [x, roi, None, ints(1, 1, 3, 6)], crop, relative=1e-5)
    for policy in ("not_larger", "not_smaller"):
        attrs = {"mode": mode, "keep_aspect_ratio_policy": policy, "axes": [2, 3]}
        check("Resize", [x, None, None, ints(8, 8)], attrs, relative=1e-5)
    if mode == "linear":
        check("Resize", [data(rng, (2, 3, 4, 3)), None, None, ints(3, 5, 2, 4)], {"mode": mode}, relative=1e-5)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resize_as_torch(mode: str, antialias: bool, rng: np.random.Generator) -> None:
    x = data(rng, (1, 2, 9, 11))
    for corners in (False, True):
        if antialias and corners:
            continue
        want = torch.nn.functional.interpolate(
            torch.from_numpy(x), (5, 17), mode=mode, align_corners=corners, antialias=antialias
        )
        attrs: dict[str, Any] = {"mode": "linear" if mode == "bilinear" else "cubic", "antialias": int(antialias)}
        attrs["coordinate_transformation_mode"] = "align_corners" if corners else "half_pixel"
        if antialias:
            attrs |= {"exclude_outside": 1, "cubic_coeff_a": -0.5}
        close(ours("resize", [x, None, None, ints(1, 2, 5, 17)], attrs), [want.numpy()], 1e-5)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_sample(mode: str, padding: str, corners: int, rng: np.random.Generator) -> None:
    x = data(rng, (2, 3, 4, 5))
    grid = rng.uniform(-2.5, 2.5, (2, 6, 7, 2)).astype(np.float32)
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    args = (torch.from_numpy(x), torch.from_numpy(grid), name, padding, bool(corners))
    close(ours("grid_sample", [x, grid], attrs), [torch.nn.functional.grid_sample(*args).numpy()], 1e-5)
    check("GridSample", [x, grid], attrs, relative=1e-5, judge=by_ort)
    volume = data(rng, (1, 2, 3, 4, 2))
    places = rng.uniform(-1.5, 1.5, (1, 2, 3, 2, 3)).astype(np.float32)
    if mode != "cubic":
        check("GridSample", [volume, places], attrs, relative=1e-5, judge=by_ort)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("half", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(mode: str, half: str, ratio: int, rng: np.random.Generator) -> None:
    x = data(rng, (2, 3, 9, 8))
    corners = rng.uniform(-2, 20, (5, 2)).astype(np.float32)
    rois = np.concatenate([corners, corners + rng.uniform(0.5, 9, (5, 2)).astype(np.float32)], 1)
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": half, "sampling_ratio": ratio}
    attrs |= {"output_height": 3, "output_width": 2, "spatial_scale": 0.5}
    check("RoiAlign", [x, rois, rng.integers(0, 2, 5)], attrs, relative=1e-5)


@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(center: int, rng: np.random.Generator) -> None:
    boxes = rng.uniform(0, 10, (2, 30, 4)).astype(np.float32)
    if not center:
        boxes[..., 2:] = boxes[..., :2] + rng.uniform(-6, 6, (2, 30, 2)).astype(np.float32)
    scores = rng.random((2, 3, 30)).astype(np.float32)
    for most, iou, score in ((5, 0.3, 0.2), (30, 0.0, 0.0), (30, 0.6, 0.9)):
        thresholds = (np.array([v], np.float32) for v in (iou, score))
        inputs = [boxes, scores, ints(most), *thresholds]
        check("NonMaxSuppression", inputs, {"center_point_box": center}, judge=by_ort)


# --------------------------------------------------------------------------------------------------------- refusal


def test_data_out_of_range_is_refused(rng: np.random.Generator) -> None:
    x = data(rng, (3, 4))
    for op, inputs in (
        ("gather", [x, ints(3)]),
        ("gather_nd", [x, ints(0, 4).reshape(1, 2)]),
        ("gather_elements", [x, ints(-4).reshape(1, 1)]),
        ("scatter_nd", [x, ints(7).reshape(1, 1), data(rng, (1, 4))]),
        ("top_k", [x, ints(5)]),
        ("tile", [x, ints(2**62, 2**62)]),
        ("expand", [x, ints(2**40, 2**40, 1, 1)]),
        ("pad", [x, ints(2**63 - 1, 0, 2**63 - 1, 0)]),
        ("range", [np.array(0), np.array(2**62), np.array(1)]),
    ):
        with pytest.raises(_core.InvalidArgument, match=op):
            ours(op, inputs, outputs=2 if op == "top_k" else 1)
    with pytest.raises((_core.OutOfMemory, _core.InvalidArgument)):
        ours("expand", [np.zeros(1, np.int8), ints(2**50)])
