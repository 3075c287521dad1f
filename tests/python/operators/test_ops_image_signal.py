"""Operators of images, signals and losses against ONNX's reference evaluator, over random shapes and attributes.

Where the evaluator lacks a form, numpy says what is meant. Data is seeded; a case is one call by reference code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from single_op import DTYPES, ONNX_TYPES, onnx_node, ours

# Of the largest magnitude: the evaluator rounds float32 after every step, ours once.
TOLERANCE = {"f32": 3e-5, "f64": 1e-12, "f16": 4e-3, "bf16": 3e-2}
INT64 = np.int64


def close(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
    assert got.shape == want.shape
    assert got.dtype == DTYPES[dtype]
    scale = max(float(np.abs(want[np.isfinite(want)].astype(np.float64)).max(initial=0)), 1e-6)
    np.testing.assert_allclose(
        got.astype(np.float64), want.astype(np.float64), rtol=0, atol=TOLERANCE.get(dtype, 0) * scale
    )


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "f32") -> np.ndarray:
    if DTYPES[dtype].kind in "iu":
        return rng.integers(0, 9, shape).astype(DTYPES[dtype])
    return rng.standard_normal(shape).astype(DTYPES[dtype])


def ints(*values: int) -> np.ndarray:
    return np.array(values, INT64)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u64"])
@pytest.mark.parametrize("attrs", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
def test_cum_prod(dtype: str, attrs: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    x = normal(rng, (2, 5, 3), dtype)
    for axis in range(-3, 3):
        inputs = [x, np.array(axis, INT64)]
        close(ours("cum_prod", inputs, attrs)[0], onnx_node("CumProd", inputs, attrs)[0], dtype)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_det(size: int, dtype: str) -> None:
    x = normal(np.random.default_rng(size), (2, 3, size, size), dtype)
    close(ours("det", [x])[0], onnx_node("Det", [x])[0], dtype)


@pytest.mark.parametrize("seed", range(12))
def test_center_crop_pad(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = ["f32", "i64", "u8", "bool"][seed % 4]
    x = rng.integers(0, 2, rng.integers(1, 6, 3)).astype(DTYPES[dtype])
    axes = [int(a) for a in rng.permutation(3)[: rng.integers(1, 4)]]
    axes[0] -= 3 * int(rng.integers(0, 2))
    inputs, attrs = [x, rng.integers(1, 8, len(axes)).astype(INT64)], {"axes": axes}
    np.testing.assert_array_equal(
        ours("center_crop_pad", inputs, attrs)[0], onnx_node("CenterCropPad", inputs, attrs)[0]
    )


@pytest.mark.parametrize("seed", range(12))
def test_col2im(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = [2, 2, 3][seed % 3]
    dtype = ["f32", "f64", "i32"][seed // 3 % 3]
    image = rng.integers(4, 8, dims)
    block, strides, dilations = rng.integers(1, 3, dims), rng.integers(1, 3, dims), rng.integers(1, 3, dims)
    pads = rng.integers(0, 3, 2 * dims)
    places = (image + pads[:dims] + pads[dims:] - dilations * (block - 1) - 1) // strides + 1
    x = normal(rng, (2, 3 * int(block.prod()), int(places.prod())), dtype)
    attrs = {"strides": strides.tolist(), "dilations": dilations.tolist(), "pads": pads.tolist()}
    inputs = [x, image.astype(INT64), block.astype(INT64)]
    close(ours("col2im", inputs, attrs)[0], onnx_node("Col2Im", inputs, attrs)[0], dtype)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 2, 4, 3)])
def test_affine_grid(align: int, size: tuple[int, ...]) -> None:
    k = len(size) - 2
    inputs = [normal(np.random.default_rng(k), (2, k, k + 1)), ints(*size)]
    attrs = {"align_corners": align}
    close(ours("affine_grid", inputs, attrs)[0], onnx_node("AffineGrid", inputs, attrs)[0], "f32")


@pytest.mark.parametrize("seed", range(8))
def test_deform_conv(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group, offset_group = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    kernel, strides, dilations = rng.integers(1, 3, 2), rng.integers(1, 3, 2), rng.integers(1, 3, 2)
    pads, image = rng.integers(0, 2, 4), rng.integers(4, 7, 2)
    places = (image + pads[:2] + pads[2:] - dilations * (kernel - 1) - 1) // strides + 1
    taps = offset_group * int(kernel.prod())
    inputs: list[np.ndarray | None] = [
        normal(rng, (2, 4, *image)),
        normal(rng, (2, 4 // group, *kernel)),
        normal(rng, (2, taps * 2, *places)) * 2,
        normal(rng, (2,)) if seed % 2 else None,
        normal(rng, (2, taps, *places)),
    ]
    attrs = {
        "group": group,
        "offset_group": offset_group,
        "kernel_shape": kernel.tolist(),
        "strides": strides.tolist(),
        "dilations": dilations.tolist(),
        "pads": pads.tolist(),
    }
    close(ours("deform_conv", inputs, attrs)[0], onnx_node("DeformConv", inputs, attrs)[0], "f32")


@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 2, 5, 6), (1, 2, 4, 5, 3)])
def test_max_unpool(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    dims = len(shape) - 2
    attrs = {"kernel_shape": [2] * dims, "strides": [2] * dims}
    unpooled = (*shape[:2], *(2 * n for n in shape[2:]))
    places = rng.permutation(int(np.prod(unpooled)))[: int(np.prod(shape))].reshape(shape)
    inputs = [normal(rng, shape), places]
    for more in ([], [ints(*shape[:2], *(2 * n + 1 for n in shape[2:]))]):
        got = ours("max_unpool", inputs + more, attrs)[0]
        np.testing.assert_array_equal(got, onnx_node("MaxUnpool", inputs + more, attrs)[0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3), (2, 3, 4, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_negative_log_likelihood_loss(reduction: str, shape: tuple[int, ...], weighted: bool) -> None:
    rng = np.random.default_rng(len(shape))
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    inputs = [normal(rng, shape), target] + ([np.abs(normal(rng, shape[1:2]))] if weighted else [])
    for attrs in ({"reduction": reduction, "ignore_index": 1}, {"reduction": reduction}):
        got = ours("negative_log_likelihood_loss", inputs, attrs)[0]
        close(got, onnx_node("NegativeLogLikelihoodLoss", inputs, attrs)[0], "f32")


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_tensor_scatter(mode: str, axis: int) -> None:
    rng = np.random.default_rng(5)
    shape, rows = (3, 4, 5, 6), [3, 4, 5, 6]
    rows[axis] = 2
    first = rng.integers(0, shape[axis] - (2 if mode == "linear" else 0), 3)
    attrs = {"mode": mode, "axis": axis}
    for inputs in (
        [normal(rng, shape), normal(rng, tuple(rows)), first],
        [normal(rng, shape), normal(rng, tuple(rows))],
    ):
        got = ours("tensor_scatter", inputs, attrs)[0]
        np.testing.assert_array_equal(got, onnx_node("TensorScatter", inputs, attrs)[0])


@pytest.mark.parametrize(("dtype", "to"), [("f32", "i32"), ("i64", "f64"), ("f16", "u16"), ("i8", "u8")])
def test_bit_cast(dtype: str, to: str) -> None:
    x = np.random.default_rng(3).integers(0, 256, (3, 8), np.uint8).view(DTYPES[dtype])
    got = ours("bit_cast", [x], {"to": to}, output_type=f"{to}[]")[0]
    assert got.dtype == DTYPES[to]
    np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize("op", ["BlackmanWindow", "HammingWindow", "HannWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_signal_window(op: str, periodic: int, dtype: str) -> None:
    name = op.removesuffix("Window").lower() + "_window"
    for size in (2, 7, 16, 400):
        inputs = [np.array(size, INT64)]
        attrs = {"periodic": periodic, "output_datatype": dtype}
        got = ours(name, inputs, attrs, output_type=f"{dtype}[]")[0]
        close(got, onnx_node(op, inputs, {**attrs, "output_datatype": ONNX_TYPES[dtype]})[0], dtype)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 16, 30, 97, 128, 210])
@pytest.mark.parametrize("attrs", [{}, {"inverse": 1}, {"onesided": 1}, {"inverse": 1, "onesided": 1}])
def test_dft(size: int, attrs: dict[str, int]) -> None:
    rng = np.random.default_rng(size)
    parts = 1 if attrs == {"onesided": 1} else 2
    half = size // 2 + 1 if attrs == {"inverse": 1, "onesided": 1} else size
    for axis, shape in ((1, (2, half, 3, parts)), (-2, (3, half, parts))):
        for length in (size, size + 3, max(size - 2, 1)):
            inputs = [normal(rng, shape, "f64"), np.array(length, INT64), np.array(axis, INT64)]
            close(ours("dft", inputs, attrs)[0], onnx_node("DFT", inputs, attrs)[0], "f64")


@pytest.mark.parametrize("length", [5, 8, 12])
@pytest.mark.parametrize(("onesided", "parts"), [(1, 1), (0, 1), (0, 2)])
def test_stft(length: int, onesided: int, parts: int) -> None:
    rng = np.random.default_rng(length)
    signal, window = normal(rng, (2, 40, parts), "f64"), normal(rng, (length,), "f64")
    got = ours("stft", [signal, np.array(3, INT64), window, np.array(length, INT64)], {"onesided": onesided})[0]
    # numpy, frame by frame: the evaluator knows windows of real signals only.
    values = signal[..., 0] + (1j * signal[..., 1] if parts == 2 else 0)
    frames = [np.fft.fft(values[:, i : i + length] * window) for i in range(0, 40 - length + 1, 3)]
    want = np.stack(frames, axis=1)[..., : length // 2 + 1 if onesided else length]
    close(got, np.stack([want.real, want.imag], axis=-1), "f64")


@pytest.mark.parametrize(
    ("bands", "length", "rate", "edges"), [(8, 64, 16000, (0, 8000)), (20, 400, 16000, (20, 7600))]
)
def test_mel_weight_matrix(bands: int, length: int, rate: int, edges: tuple[float, float]) -> None:
    inputs = [np.array(n, INT64) for n in (bands, length, rate)] + [np.array(e, np.float32) for e in edges]
    close(ours("mel_weight_matrix", inputs)[0], onnx_node("MelWeightMatrix", inputs)[0], "f32")


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("heads", [(2, 2), (4, 2), (3, 1)])
@pytest.mark.parametrize("past", [False, True])
def test_linear_attention(rule: str, heads: tuple[int, int], past: bool) -> None:
    rng = np.random.default_rng(sum(heads))
    q, kv = heads
    inputs: list[np.ndarray | None] = [normal(rng, (2, 5, q * 4)), normal(rng, (2, 5, kv * 4)) / 2]
    inputs += [normal(rng, (2, 5, kv * 3)), normal(rng, (2, kv, 4, 3)) if past else None]
    if rule.startswith("gated"):
        inputs.append(-np.abs(normal(rng, (2, 5, kv * (4 if past else 1)))))
    if rule.endswith("delta"):
        inputs += [None] * (5 - len(inputs)) + [rng.random((2, 5, 1 if past else kv)).astype(np.float32)]
    attrs = {"q_num_heads": q, "kv_num_heads": kv, "update_rule": rule}
    want = onnx_node("LinearAttention", inputs, attrs, outputs=2)
    for got, expected in zip(ours("linear_attention", inputs, attrs, outputs=2), want, strict=True):
        close(got, expected, "f32")
