"""ONNX's quantised forms, imported, folded and run, to the bit.

Each model is computed a third time here, from the definition in numpy: sums in int64, m = s_x * s_w / s_y in float64
rounded once to float32, float32(sum) * m rounded half to even. Ours must be those bytes. onnxruntime and ONNX's
reference evaluator round m or the product at other places, so where the exact result lies next to a tie they may give
the neighbouring integer; anywhere else they must agree too.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pinnace as pn
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray[Any, Any]
BYTES = {"i8": np.dtype(np.int8), "u8": np.dtype(np.uint8)}
ZEROS = {"i8": [-128, -1, 0, 1, 127], "u8": [0, 1, 128, 255]}


def model_of(
    nodes: Sequence[NodeProto], inputs: dict[str, Array], constants: dict[str, Array], kind: int
) -> ModelProto:
    """A model of these nodes whose result is y, of element type `kind`; extra results are declared by their names."""
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in inputs.items()
    ]
    initializers = [numpy_helper.from_array(np.asarray(x), n) for n, x in constants.items()]
    graph = helper.make_graph(
        list(nodes), "quantised", declared, [helper.make_tensor_value_info("y", kind, None)], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def ours(model: ModelProto, inputs: dict[str, Array], folder: Path, *, folds: str | None) -> Array:
    """Loaded from a file, all passes, built, run by a session. folds: an operator that must become a quantised one."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    loaded = pn.load(path)
    if folds:
        assert f" = {folds}@" in loaded.text(), loaded.text()
        assert "quantize_linear" not in loaded.text(), loaded.text()
    (result,) = pn.Session(loaded.build(verify=False)).run(inputs).values()
    plain = pn.load(path, disabled_passes=["all"])
    (unfolded,) = pn.Session(plain.build(verify=False)).run(inputs).values()
    assert np.abs(unfolded.astype(np.int64) - result).max(initial=0) <= (1 if folds else 0)  # the pass's stated bound
    return np.asarray(result)


def requantized(sums: Array, scales: Array, y_scale: np.float32, zero: int, dtype: np.dtype) -> tuple[Array, Array]:
    """The bytes by definition, and whether the exact result lies so near a tie that other roundings may differ.

    scales: s_x * s_w in float64, broadcast to the sums.
    """
    m = (scales / np.float64(y_scale)).astype(np.float32)
    real = sums.astype(np.int32).astype(np.float32) * m
    info = np.iinfo(dtype)
    q = np.clip(np.rint(real.astype(np.float64)) + zero, info.min, info.max).astype(dtype)
    exact = sums * (scales / np.float64(y_scale))
    near = np.abs(np.abs(exact - np.floor(exact)) - 0.5) <= np.abs(exact) * 2.0**-21
    return q, near


def onnxruntime_is_exact(x: str, w: str) -> bool:
    """Whether onnxruntime's integer products of these types are exact on this processor.

    On x86-64 without VNNI it multiplies u8 by i8 with vpmaddubsw, whose sums of two products saturate at 16 bits.
    """
    if (x, w) != ("u8", "i8") or platform.machine() not in ("x86_64", "AMD64"):
        return True
    flags = Path("/proc/cpuinfo").read_text()
    return "avx512_vnni" in flags or "avx_vnni" in flags


def check_others(
    model: ModelProto,
    inputs: dict[str, Array],
    want: Array,
    near: Array,
    *,
    runtime: bool = True,
    reference: bool = True,
) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )  # it folds by rules of its own
    others: list[Any] = []
    if runtime:
        others.append(
            onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        )
    if reference:
        others.append(ReferenceEvaluator(model))
    for other in others:
        got = np.asarray(other.run(None, inputs)[0])
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        apart = np.abs(got.astype(np.int64) - want)
        assert apart[~near].max(initial=0) == 0, f"{type(other).__name__} differs away from ties"
        assert apart.max(initial=0) <= 1


def bytes_of(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> Array:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


# QLinearConv and QLinearMatMul of onnxruntime: u8 x with u8 or i8 w, i8 x with i8 w.
MIXES = [("u8", "u8"), ("u8", "i8"), ("i8", "i8")]
EXACT = (np.float32(0.5), np.float32(0.25), np.float32(1))  # m = 1/8: ties everywhere
ENDLESS = (np.float32(0.02), np.float32(0.013), np.float32(0.31))
ABOVE_ONE = (np.float32(2), np.float32(1.5), np.float32(1))


def windows(x: Array, kernel: int, zero: int) -> Array:
    """[N, C, OH, OW, kernel, kernel] of x [N, C, H, W] with one element of padding."""
    padded = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))


@pytest.mark.parametrize("scales", [EXACT, ENDLESS, ABOVE_ONE], ids=["ties", "endless", "above_one"])
@pytest.mark.parametrize(("x_name", "w_name"), MIXES)
@pytest.mark.parametrize("qdq", [False, True], ids=["qlinear", "qdq"])
def test_conv(x_name: str, w_name: str, scales: tuple[np.float32, ...], qdq: bool, rng: np.random.Generator,
              tmp_path: Path) -> None:  # fmt: skip
    x_type, w_type = BYTES[x_name], BYTES[w_name]
    x_scale, w_base, y_scale = scales
    for at, x_zero in enumerate(ZEROS[x_name]):
        per_channel = at % 2 == 1
        y_zero = ZEROS[x_name][-1 - at]
        x, w = bytes_of(rng, x_type, (1, 3, 6, 7)), bytes_of(rng, w_type, (4, 3, 3, 3))
        w_scale = w_base * np.array([1, 0.5, 2, 0.75], np.float32) if per_channel else np.float32(w_base)
        w_zero = np.zeros(4, w_type) if per_channel else np.array(ZEROS[w_name][1], w_type)
        bias = rng.integers(-5000, 5000, 4).astype(np.int32)
        constants: dict[str, Array] = {
            "xs": np.array(x_scale), "xz": np.array(x_zero, x_type), "w": w, "ws": np.asarray(w_scale, np.float32),
            "wz": w_zero, "ys": np.array(y_scale), "yz": np.array(y_zero, x_type), "b": bias,
        }  # fmt: skip
        if qdq:
            constants["bs"] = np.broadcast_to(np.float32(x_scale) * constants["ws"], (4,)).astype(np.float32)
            constants["bz"] = np.zeros(4, np.int32)
            nodes = [
                helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
                helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
                helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], axis=0),
                helper.make_node("Conv", ["xf", "wf", "bf"], ["yf"], pads=[1, 1, 1, 1]),
                helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
            ]
        else:
            nodes = [
                helper.make_node(
                    "QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], pads=[1, 1, 1, 1]
                )
            ]
        model = model_of(nodes, {"x": x}, constants, helper.np_dtype_to_tensor_dtype(x_type))
        centred = w.astype(np.int64) - w_zero.astype(np.int64).reshape(-1, *([1, 1, 1] if per_channel else []))
        sums = np.einsum("nchwkl,mckl->nmhw", windows(x, 3, x_zero), centred) + bias[:, None, None]
        wide = np.float64(x_scale) * np.broadcast_to(np.asarray(w_scale, np.float64), (4,))[:, None, None]
        want, near = requantized(sums, wide, y_scale, y_zero, x_type)
        np.testing.assert_array_equal(ours(model, {"x": x}, tmp_path, folds="conv"), want)
        # In QDQ form others sum in float32, after rounding every product: only away from ties by more than that.
        exact = qdq or onnxruntime_is_exact(x_name, w_name)
        check_others(model, {"x": x}, want, near | qdq, runtime=exact, reference=not qdq)


@pytest.mark.parametrize("scales", [EXACT, ENDLESS, ABOVE_ONE], ids=["ties", "endless", "above_one"])
@pytest.mark.parametrize(("x_name", "w_name"), MIXES)
@pytest.mark.parametrize("qdq", [False, True], ids=["qlinear", "qdq"])
def test_mat_mul(x_name: str, w_name: str, scales: tuple[np.float32, ...], qdq: bool, rng: np.random.Generator,
                 tmp_path: Path) -> None:  # fmt: skip
    a_type, b_type = BYTES[x_name], BYTES[w_name]
    a_scale, b_scale, y_scale = scales
    for at, a_zero in enumerate(ZEROS[x_name]):
        y_zero, b_zero = ZEROS[x_name][-1 - at], ZEROS[w_name][at % 4]
        a, b = bytes_of(rng, a_type, (2, 5, 9)), bytes_of(rng, b_type, (9, 4))
        constants: dict[str, Array] = {
            "as": np.array(a_scale), "az": np.array(a_zero, a_type), "b": b, "bs": np.array(b_scale),
            "bz": np.array(b_zero, b_type), "ys": np.array(y_scale), "yz": np.array(y_zero, a_type),
        }  # fmt: skip
        if qdq:
            nodes = [
                helper.make_node("DequantizeLinear", ["a", "as", "az"], ["af"]),
                helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bf"]),
                helper.make_node("MatMul", ["af", "bf"], ["yf"]),
                helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
            ]
        else:
            nodes = [helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"])]
        model = model_of(nodes, {"a": a}, constants, helper.np_dtype_to_tensor_dtype(a_type))
        sums = (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)
        want, near = requantized(sums, np.asarray(np.float64(a_scale) * np.float64(b_scale)), y_scale, y_zero, a_type)
        np.testing.assert_array_equal(ours(model, {"a": a}, tmp_path, folds="mat_mul"), want)
        exact = qdq or onnxruntime_is_exact(x_name, w_name)
        check_others(model, {"a": a}, want, near | qdq, runtime=exact, reference=not qdq)


@pytest.mark.parametrize(("op", "function"), [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)])
@pytest.mark.parametrize("name", ["i8", "u8"])
def test_arithmetic_between_quantize_and_dequantize(op: str, function: Any, name: str, tmp_path: Path) -> None:
    """All pairs of bytes: in QDQ form each step is one float32 operation, for everybody."""
    dtype = BYTES[name]
    info = np.iinfo(dtype)
    a, b = (x.reshape(-1).astype(dtype) for x in np.meshgrid(*[np.arange(info.min, info.max + 1)] * 2))
    for at, (a_scale, b_scale, y_scale) in enumerate([EXACT, ENDLESS, ABOVE_ONE]):
        zeros = [ZEROS[name][(at + k) % 4] for k in range(3)]
        constants: dict[str, Array] = {}
        for key, scale, zero in zip("aby", (a_scale, b_scale, y_scale), zeros, strict=True):
            constants |= {f"{key}s": np.array(scale), f"{key}z": np.array(zero, dtype)}
        nodes = [
            helper.make_node("DequantizeLinear", ["a", "as", "az"], ["af"]),
            helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bf"]),
            helper.make_node(op, ["af", "bf"], ["yf"]),
            helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
        ]
        model = model_of(nodes, {"a": a, "b": b}, constants, helper.np_dtype_to_tensor_dtype(dtype))
        real = function(
            (a.astype(np.int32) - zeros[0]).astype(np.float32) * a_scale,
            (b.astype(np.int32) - zeros[1]).astype(np.float32) * b_scale,
        )
        want = np.clip(np.rint((real / y_scale).astype(np.float64)) + zeros[2], info.min, info.max).astype(dtype)
        got = ours(model, {"a": a, "b": b}, tmp_path, folds=op.lower())
        np.testing.assert_array_equal(got, want)
        check_others(model, {"a": a, "b": b}, want, np.zeros(want.shape, bool))


@pytest.mark.parametrize(("x_name", "w_name"), [*MIXES, ("i8", "u8")])
def test_integer_products(x_name: str, w_name: str, rng: np.random.Generator, tmp_path: Path) -> None:
    x_type, w_type = BYTES[x_name], BYTES[w_name]
    for x_zero in ZEROS[x_name]:
        w_zero = ZEROS[w_name][int(rng.integers(4))]
        constants: dict[str, Array] = {"xz": np.array(x_zero, x_type), "wz": np.array(w_zero, w_type)}
        a, b = bytes_of(rng, x_type, (2, 5, 70)), bytes_of(rng, w_type, (70, 4))
        sums = ((a.astype(np.int64) - x_zero) @ (b.astype(np.int64) - w_zero)).astype(np.int32)
        model = model_of(
            [helper.make_node("MatMulInteger", ["a", "b", "xz", "wz"], ["y"])],
            {"a": a, "b": b},
            constants,
            TensorProto.INT32,
        )
        np.testing.assert_array_equal(ours(model, {"a": a, "b": b}, tmp_path, folds=None), sums)
        np.testing.assert_array_equal(
            np.asarray(next(iter(ReferenceEvaluator(model).run(None, {"a": a, "b": b})))), sums
        )
        x, w = bytes_of(rng, x_type, (1, 3, 6, 7)), bytes_of(rng, w_type, (4, 3, 3, 3))
        sums = np.einsum("nchwkl,mckl->nmhw", windows(x, 3, x_zero), w.astype(np.int64) - w_zero).astype(np.int32)
        node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], pads=[1, 1, 1, 1])
        model = model_of([node], {"x": x, "w": w}, constants, TensorProto.INT32)
        np.testing.assert_array_equal(ours(model, {"x": x, "w": w}, tmp_path, folds=None), sums)


def test_dynamic_quantize_linear(rng: np.random.Generator, tmp_path: Path) -> None:
    for low, high in [(-3, 5), (0.5, 2), (-7, -1), (-1e-30, 1e30), (-1e-38, 1e-38), (0, 0)]:
        x = rng.uniform(low, high, (6, 7)).astype(np.float32)
        model = model_of(
            [helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])], {"x": x}, {}, TensorProto.UINT8
        )
        got = ours(model, {"x": x}, tmp_path, folds=None)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(got, session.run(None, {"x": x})[0])
