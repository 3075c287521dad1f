"""Operators that are timed by themselves: each case makes an ONNX model of one operator, its inputs, and what it costs.

Sizes are those of the networks that the models' table has, and of a few beyond. `operations` counts additions and
multiplications of the arithmetic that the formula asks for (a transformed convolution does fewer); bytes are those that
must be read and written at the least. Names say operator, kind, channels and size, so that patterns can choose them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
OPSET = 24


@dataclass
class Built:
    """An operator with data. nodes: (ONNX operator, inputs, outputs, attributes); the last output is the model's."""

    nodes: list[tuple[str, list[str], list[str], dict[str, Any]]]
    inputs: dict[str, Array]
    constants: dict[str, Array] = field(default_factory=dict)
    operations: float = 0.0
    arithmetic: str = "f32"  # which measured peak operations are held against: f32 or i8
    read_bytes: float | None = None  # where not simply all of inputs and constants
    outputs: tuple[str, ...] = ("y",)

    def model(self) -> Any:
        """The ONNX model."""
        from onnx import helper, numpy_helper

        def value(name: str, array: Array) -> Any:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        graph = helper.make_graph(
            [
                helper.make_node(op, inputs, outputs, name=f"n{i}", **attributes)
                for i, (op, inputs, outputs, attributes) in enumerate(self.nodes)
            ],
            "operator",
            [value(name, array) for name, array in self.inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in self.outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=12)


@dataclass(frozen=True)
class OperatorCase:
    name: str
    make: Callable[[np.random.Generator], Built]

    def build(self) -> Built:
        """The same numbers every time."""
        return self.make(np.random.default_rng(zlib.crc32(self.name.encode())))


def normal(random: np.random.Generator, *shape: int, scale: float = 1.0) -> Array:
    return (random.standard_normal(shape) * scale).astype(np.float32)


# ---- one function per kind ------------------------------------------------------------------------------------------


def one(
    op: str,
    shapes: Sequence[Sequence[int]],
    constants: Sequence[Sequence[int]] = (),
    *,
    operations: float = 0.0,
    dtype: Any = np.float32,
    positive: bool = False,
    outputs: int = 1,
    **attributes: Any,
) -> Callable[[np.random.Generator], Built]:
    """An operator of normal inputs and constants, of the given shapes and in that order."""

    def make(random: np.random.Generator) -> Built:
        arrays = [
            normal(random, *shape, scale=1 / math.sqrt(shape[-1]) if i >= len(shapes) else 1.0)
            for i, shape in enumerate([*shapes, *constants])
        ]
        arrays = [(np.abs(a) + 0.1 if positive else a).astype(dtype) for a in arrays]
        names = [f"x{i}" for i in range(len(arrays))]
        outs = ("y", *(f"y{i}" for i in range(1, outputs)))
        return Built(
            [(op, names, list(outs), attributes)],
            dict(zip(names[: len(shapes)], arrays, strict=False)),
            dict(zip(names[len(shapes) :], arrays[len(shapes) :], strict=True)),
            operations,
            outputs=outs,
        )

    return make


def conv(
    channels: int,
    filters: int,
    size: int,
    kernel: int = 1,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    *,
    eight: bool = False,
    dtype: Any = np.float32,
    pad: int | None = None,
) -> Callable[[np.random.Generator], Built]:
    """A square convolution with bias; eight: in 8 bits, unsigned activations and weights per channel."""

    def make(random: np.random.Generator) -> Built:
        p = dilation * (kernel - 1) // 2 if pad is None else pad
        attributes = {"pads": [p] * 4, "strides": [stride] * 2, "dilations": [dilation] * 2, "group": groups}
        depth = channels // groups * kernel**2
        shape = (filters, channels // groups, kernel, kernel)
        outs = (size + 2 * p - dilation * (kernel - 1) - 1) // stride + 1
        operations = 2.0 * filters * depth * outs**2
        if not eight:
            x, w = normal(random, 1, channels, size, size), normal(random, *shape, scale=depth**-0.5)
            return Built(
                [("Conv", ["x", "w", "b"], ["y"], attributes)],
                {"x": x.astype(dtype)},
                {"w": w.astype(dtype), "b": normal(random, filters).astype(dtype)},
                operations,
            )
        x = random.integers(0, 256, (1, channels, size, size)).astype(np.uint8)
        return _eight_bits(random, "Conv", x, shape, 0, depth, filters, operations, attributes)

    return make


def _eight_bits(
    random: np.random.Generator,
    op: str,
    x: Array,
    shape: Sequence[int],
    axis: int,
    depth: int,
    filters: int,
    operations: float,
    attributes: dict[str, Any],
) -> Built:
    """op(x, w, b) between quantize and dequantize nodes, as quantisers write it."""
    weights_scale = (random.uniform(0.5, 1.5, filters) * 0.01).astype(np.float32)
    constants: dict[str, Array] = {
        "w": random.integers(-127, 128, shape).astype(np.int8),
        "b": random.integers(-2000, 2000, filters).astype(np.int32),
        "sx": np.array(0.02, np.float32),
        "zx": np.array(128, np.uint8),
        "sw": weights_scale,
        "zw": np.zeros(filters, np.int8),
        "sb": weights_scale * np.float32(0.02),
        "zb": np.zeros(filters, np.int32),
        # Inputs are uniform over all bytes: deviation 74 each.
        "sy": np.array(math.sqrt(depth) * 74 * 0.02 * 74 * 0.01 * 6 / 255, np.float32),
        "zy": np.array(128, np.uint8),
    }
    nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = [
        ("DequantizeLinear", ["x", "sx", "zx"], ["fx"], {}),
        ("DequantizeLinear", ["w", "sw", "zw"], ["fw"], {"axis": axis}),
        ("DequantizeLinear", ["b", "sb", "zb"], ["fb"], {"axis": 0}),
    ]
    if op == "MatMul":
        nodes += [(op, ["fx", "fw"], ["m"], attributes), ("Add", ["m", "fb"], ["f"], {})]
    else:
        nodes += [(op, ["fx", "fw", "fb"], ["f"], attributes)]
    nodes += [("QuantizeLinear", ["f", "sy", "zy"], ["y"], {})]
    return Built(nodes, {"x": x}, constants, operations, "i8")


def eight(
    op: str,
    shapes: Sequence[Sequence[int]],
    *,
    operations: float = 0.0,
    scales: Sequence[float] = (),
    **attributes: Any,
) -> Callable[[np.random.Generator], Built]:
    """An operator of 8-bit inputs and output, between quantize and dequantize nodes. scales: those of the inputs."""

    def make(random: np.random.Generator) -> Built:
        names = [f"x{i}" for i in range(len(shapes))]
        constants: dict[str, Array] = {"s": np.array(0.02, np.float32), "z": np.array(120, np.uint8)}
        constants |= {f"s{i}": np.array(scale, np.float32) for i, scale in enumerate(scales)}
        return Built(
            [
                *(
                    ("DequantizeLinear", [n, f"s{i}" if scales else "s", "z"], ["f" + n], {})
                    for i, n in enumerate(names)
                ),
                (op, ["f" + n for n in names], ["f"], attributes),
                ("QuantizeLinear", ["f", "s", "z"], ["y"], {}),
            ],
            {n: random.integers(0, 256, shape).astype(np.uint8) for n, shape in zip(names, shapes, strict=True)},
            constants,
            operations,
            "i8",
        )

    return make


def conv_transpose(
    channels: int, filters: int, size: int, kernel: int, stride: int, pad: int, groups: int = 1, rank: int = 2
) -> Any:
    operations = 2.0 * channels * filters / groups * (kernel * size) ** rank
    shapes = [(1, channels, *[size] * rank)], [(channels, filters // groups, *[kernel] * rank), (filters,)]
    attributes: dict[str, Any] = {"strides": [stride] * rank, "pads": [pad] * 2 * rank, "group": groups}
    return one("ConvTranspose", *shapes, operations=operations, **attributes)


def conv_transpose_i8(channels: int, filters: int, size: int, kernel: int, stride: int, pad: int) -> Any:
    def make(random: np.random.Generator) -> Built:
        x = random.integers(0, 256, (1, channels, size, size)).astype(np.uint8)
        attributes: dict[str, Any] = {"strides": [stride] * 2, "pads": [pad] * 4}
        depth, operations = channels * (kernel // stride) ** 2, 2.0 * channels * filters * (kernel * size) ** 2
        shape = (channels, filters, kernel, kernel)
        return _eight_bits(random, "ConvTranspose", x, shape, 1, depth, filters, operations, attributes)

    return make


def mat_mul(batch: Sequence[int], m: int, k: int, n: int, constant: bool = False, dtype: Any = np.float32) -> Any:
    operations = 2.0 * math.prod(batch) * m * k * n
    if constant:
        return one("MatMul", [(*batch, m, k)], [(k, n)], operations=operations, dtype=dtype)
    return one("MatMul", [(*batch, m, k), (*batch, k, n)], operations=operations, dtype=dtype)


def gemm(m: int, k: int, n: int) -> Any:
    return one("Gemm", [(m, k)], [(n, k), (n,)], operations=2.0 * m * k * n, transB=1)


def mat_mul_i8(m: int, k: int, n: int) -> Callable[[np.random.Generator], Built]:
    def make(random: np.random.Generator) -> Built:
        x = random.integers(0, 256, (m, k)).astype(np.uint8)
        return _eight_bits(random, "MatMul", x, (k, n), 1, k, n, 2.0 * m * k * n, {})

    return make


def mat_mul_weights(m: int, k: int, n: int, bits: int) -> Callable[[np.random.Generator], Built]:
    """f32 activations, weights of 8 bits per channel or of 4 bits in blocks of 32."""

    def make(random: np.random.Generator) -> Built:
        import ml_dtypes

        limit = 1 << (bits - 1)
        kind: Any = np.int8 if bits == 8 else ml_dtypes.int4
        w = random.integers(-limit, limit, (k, n)).astype(np.int8).astype(kind)
        scales = random.uniform(0.5, 1.5, (n,) if bits == 8 else (k // 32, n)).astype(np.float32) / limit
        attributes = {"axis": 1} if bits == 8 else {"axis": 0, "block_size": 32}
        return Built(
            [("DequantizeLinear", ["w", "s"], ["f"], attributes), ("MatMul", ["x", "f"], ["y"], {})],
            {"x": normal(random, m, k)},
            {"w": w, "s": scales},
            2.0 * m * k * n,
            read_bytes=k * n * bits / 8 + scales.nbytes + 4 * m * k,
        )

    return make


def attention(heads: int, queries: int, keys: int, size: int, share: int = 1) -> Any:
    """share: heads that have the same keys and values."""
    operations = 4.0 * heads * queries * keys * size
    shapes = [(1, heads, queries, size), *[(1, heads // share, keys, size)] * 2]
    return one("Attention", shapes, operations=operations)


def recurrent(op: str, steps: int, features: int, hidden: int, directions: int = 1) -> Any:
    attributes: dict[str, Any] = {"direction": "bidirectional"} if directions == 2 else {}
    if op == "GRU":
        attributes["linear_before_reset"] = 1
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]

    def make(random: np.random.Generator) -> Built:
        built = one(
            op,
            [(steps, 1, features)],
            [(directions, gates * hidden, features), (directions, gates * hidden, hidden)],
            operations=2.0 * steps * directions * gates * hidden * (features + hidden),
            hidden_size=hidden,
            **attributes,
        )(random)
        # Every step reads the recurrent weights again.
        built.read_bytes = 4.0 * directions * gates * hidden * (features + steps * hidden)
        return built

    return make


def with_constant(
    op: str, x: Sequence[int], *constants: Array | None, dtype: Any = np.float32, **attributes: Any
) -> Any:
    """An operator of one normal input and given constants; a constant that is None is left out."""

    def make(random: np.random.Generator) -> Built:
        names = [f"c{i}" for i in range(len(constants))]
        return Built(
            [
                (
                    op,
                    ["x", *(n if c is not None else "" for n, c in zip(names, constants, strict=True))],
                    ["y"],
                    attributes,
                )
            ],
            {"x": normal(random, *x).astype(dtype)},
            {n: c for n, c in zip(names, constants, strict=True) if c is not None},
        )

    return make


def indexed(
    op: str, x: Sequence[int], indices: Sequence[int], limit: int, updates: Sequence[int] = (), **attributes: Any
) -> Any:
    """gather and scatter: random indices below `limit`; what is not gathered is not read."""

    def make(random: np.random.Generator) -> Built:
        inputs: dict[str, Array] = {"x": normal(random, *x), "i": random.integers(0, limit, indices)}
        if updates:
            inputs["u"] = normal(random, *updates)
        built = Built([(op, list(inputs), ["y"], attributes)], inputs)
        if op in ("Gather", "GatherND", "GatherElements"):
            each = math.prod(x[1:]) if op == "Gather" and attributes.get("axis", 0) == 0 else 1
            built.read_bytes = inputs["i"].nbytes + 4.0 * inputs["i"].size * each
        return built

    return make


def top_k(x: Sequence[int], k: int) -> Any:
    def make(random: np.random.Generator) -> Built:
        return Built(
            [("TopK", ["x", "k"], ["y", "i"], {})],
            {"x": normal(random, *x)},
            {"k": np.array([k])},
            outputs=("y", "i"),
        )

    return make


def cast(x: Sequence[int], source: Any, target: str) -> Any:
    def make(random: np.random.Generator) -> Built:
        from onnx import TensorProto

        to = int(getattr(TensorProto, target))
        return Built([("Cast", ["x"], ["y"], {"to": to})], {"x": (normal(random, *x) * 10).astype(source)})

    return make


def where(*shape: int) -> Any:
    def make(random: np.random.Generator) -> Built:
        inputs: dict[str, Array] = {
            "c": random.random(shape) < 0.5,
            "a": normal(random, *shape),
            "b": normal(random, *shape),
        }
        return Built([("Where", ["c", "a", "b"], ["y"], {})], inputs)

    return make


def resize(channels: int, size: int, factor: float, mode: str, source: str = "half_pixel") -> Any:
    scales = np.array([1, 1, factor, factor], np.float32)
    more = {"nearest_mode": "floor"} if mode == "nearest" else {}
    return with_constant(
        "Resize", (1, channels, size, size), None, scales, mode=mode, coordinate_transformation_mode=source, **more
    )


def resize_i8(channels: int, size: int, factor: float, mode: str, source: str = "half_pixel") -> Any:
    def make(random: np.random.Generator) -> Built:
        more = {"nearest_mode": "floor"} if mode == "nearest" else {}
        return Built(
            [
                ("DequantizeLinear", ["x", "s", "z"], ["f"], {}),
                ("Resize", ["f", "", "r"], ["g"], {"mode": mode, "coordinate_transformation_mode": source, **more}),
                ("QuantizeLinear", ["g", "s", "z"], ["y"], {}),
            ],
            {"x": random.integers(0, 256, (1, channels, size, size)).astype(np.uint8)},
            {
                "r": np.array([1, 1, factor, factor], np.float32),
                "s": np.array(0.02, np.float32),
                "z": np.array(120, np.uint8),
            },
            arithmetic="i8",
        )

    return make


def quantizing(op: str, x: Sequence[int], kind: Any) -> Any:
    """quantize_linear, dequantize_linear, both after another with other scales, or the dynamic one."""

    def make(random: np.random.Generator) -> Built:
        constants: dict[str, Array] = {
            "s": np.array(0.03, np.float32),
            "z": np.array(3, kind),
            "s2": np.array(0.04, np.float32),
            "z2": np.array(7, kind),
        }
        bytes_: Array = random.integers(0, 100, x).astype(kind)
        if op == "quantize":
            return Built([("QuantizeLinear", ["x", "s", "z"], ["y"], {})], {"x": normal(random, *x)}, constants)
        if op == "dequantize":
            return Built([("DequantizeLinear", ["x", "s", "z"], ["y"], {})], {"x": bytes_}, constants)
        if op == "requantize":
            nodes: Any = [
                ("DequantizeLinear", ["x", "s", "z"], ["f"], {}),
                ("QuantizeLinear", ["f", "s2", "z2"], ["y"], {}),
            ]
            return Built(nodes, {"x": bytes_}, constants)
        return Built(
            [("DynamicQuantizeLinear", ["x"], ["y", "s", "z"], {})], {"x": normal(random, *x)}, outputs=("y", "s", "z")
        )

    return make


def quantizing_by_axis(op: str, x: Sequence[int], axis: int, block: int = 0) -> Any:
    """quantize_linear or dequantize_linear with i8 and a scale for each index of an axis, or for each block of it."""

    def make(random: np.random.Generator) -> Built:
        sizes = [x[axis]] if not block else [n // block if i == axis else n for i, n in enumerate(x)]
        constants: dict[str, Array] = {
            "s": random.uniform(0.01, 0.05, sizes).astype(np.float32),
            "z": random.integers(-9, 10, sizes).astype(np.int8),
        }
        attributes = {"axis": axis, "block_size": block}
        data = normal(random, *x) if op == "quantize" else random.integers(-128, 128, x).astype(np.int8)
        node = "QuantizeLinear" if op == "quantize" else "DequantizeLinear"
        return Built([(node, ["x", "s", "z"], ["y"], attributes)], {"x": data}, constants)

    return make


def one_hot(count: int, depth: int) -> Any:
    def make(random: np.random.Generator) -> Built:
        return Built(
            [("OneHot", ["i", "d", "v"], ["y"], {})],
            {"i": random.integers(0, depth, (count,))},
            {"d": np.array([depth]), "v": np.array([0, 1], np.float32)},
        )

    return make


# ---- the list -------------------------------------------------------------------------------------------------------

F16 = np.float16


def _cases() -> Iterator[tuple[str, Callable[[np.random.Generator], Built]]]:
    for c, m, s in (
        (32, 16, 112),
        (16, 96, 112),
        (24, 144, 56),
        (144, 32, 28),
        (96, 576, 14),
        (160, 960, 7),
        (320, 1280, 7),
        (64, 256, 56),
        (1024, 256, 14),
        (2048, 512, 7),
    ):
        yield f"conv_1x1_{c}_{m}_at_{s}", conv(c, m, s)
    yield "conv_1x1_s2_256_512_at_56", conv(256, 512, 56, stride=2)
    yield "conv_3x3_s2_3_32_at_224", conv(3, 32, 224, 3, 2)
    yield "conv_7x7_s2_3_64_at_224", conv(3, 64, 224, 7, 2)
    yield "conv_16x16_s16_3_768_at_224", conv(3, 768, 224, 16, 16, pad=0)
    for c, s in ((64, 56), (128, 28), (256, 14), (512, 7), (256, 10), (128, 7), (64, 5)):
        yield f"conv_3x3_{c}_{c}_at_{s}", conv(c, c, s, 3)
    yield "conv_3x3_s2_128_128_at_56", conv(128, 128, 56, 3, 2)
    yield "conv_3x3_dilated2_64_64_at_56", conv(64, 64, 56, 3, dilation=2)
    yield "conv_3x3_16_64_at_55", conv(16, 64, 55, 3)
    yield "conv_5x5_32_64_at_28", conv(32, 64, 28, 5)
    yield (
        "conv_1d_w5_257_128_at_100",
        one("Conv", [(1, 257, 100)], [(128, 257, 5), (128,)], operations=2.0 * 128 * 257 * 5 * 100, pads=[2, 2]),
    )
    yield (
        "conv_1d_w3_128_128_at_100",
        one("Conv", [(1, 128, 100)], [(128, 128, 3), (128,)], operations=2.0 * 128 * 128 * 3 * 100, pads=[1, 1]),
    )
    for k, s, c, size, d in (
        (3, 1, 32, 112, 1),
        (3, 2, 96, 112, 1),
        (3, 1, 144, 56, 1),
        (3, 1, 384, 14, 1),
        (3, 1, 960, 7, 1),
        (3, 1, 960, 14, 2),
        (5, 1, 120, 28, 1),
        (5, 2, 672, 14, 1),
        (5, 1, 960, 7, 1),
        (7, 1, 96, 56, 1),
        (7, 1, 384, 14, 1),
    ):
        named = f"depthwise_{k}x{k}{'_s2' if s == 2 else ''}{'_dilated2' if d == 2 else ''}_{c}_at_{size}"
        yield named, conv(c, c, size, k, s, d, c)
    yield "conv_grouped32_3x3_128_128_at_28", conv(128, 128, 28, 3, groups=32)
    yield "conv_grouped32_3x3_256_256_at_28", conv(256, 256, 28, 3, groups=32)
    yield "conv_grouped32_3x3_512_512_at_14", conv(512, 512, 14, 3, groups=32)
    yield "conv_grouped32_3x3_s2_256_256_at_56", conv(256, 256, 56, 3, 2, groups=32)
    yield "conv_grouped3_1x1_240_240_at_28", conv(240, 240, 28, groups=3)
    yield (
        "conv_1d_grouped32_w5_128_128_at_400",
        one("Conv", [(1, 128, 400)], [(128, 4, 5), (128,)], operations=2.0 * 128 * 4 * 5 * 400, pads=[2, 2], group=32),
    )
    yield "conv_transpose_2x2_s2_256_256_at_14", conv_transpose(256, 256, 14, 2, 2, 0)
    yield "conv_transpose_3x3_s2_64_32_at_56", conv_transpose(64, 32, 56, 3, 2, 1)
    yield "conv_transpose_4x4_s2_128_64_at_28", conv_transpose(128, 64, 28, 4, 2, 1)
    yield "conv_transpose_grouped4_4x4_s2_128_128_at_28", conv_transpose(128, 128, 28, 4, 2, 1, 4)
    yield "conv_transpose_depthwise_4x4_s2_64_at_56", conv_transpose(64, 64, 56, 4, 2, 1, 64)
    yield "conv_transpose_1d_w16_s8_256_128_at_100", conv_transpose(256, 128, 100, 16, 8, 4, rank=1)
    yield "conv_f16_1x1_96_576_at_14", conv(96, 576, 14, dtype=F16)
    yield "conv_f16_3x3_64_64_at_56", conv(64, 64, 56, 3, dtype=F16)

    yield "gemm_128_768_768", gemm(128, 768, 768)
    yield "gemm_128_768_3072", gemm(128, 768, 3072)
    yield "gemm_197_3072_768", gemm(197, 3072, 768)
    yield "gemm_512_512_512", gemm(512, 512, 512)
    yield "gemv_1280_1000", gemm(1, 1280, 1000)
    yield "gemv_768_3072", gemm(1, 768, 3072)
    yield "gemv_4096_4096", gemm(1, 4096, 4096)
    yield "mat_mul_128_768_768", mat_mul((1,), 128, 768, 768, constant=True)
    yield "mat_mul_batched_12_128_64_128", mat_mul((1, 12), 128, 64, 128)
    yield "mat_mul_batched_12_197_197_64", mat_mul((1, 12), 197, 197, 64)
    yield "mat_mul_f16_128_768_768", mat_mul((1,), 128, 768, 768, constant=True, dtype=F16)
    yield "attention_12_heads_128_of_64", attention(12, 128, 128, 64)
    yield "attention_12_heads_197_of_64", attention(12, 197, 197, 64)
    yield "attention_12_heads_1024_of_64", attention(12, 1024, 1024, 64)
    yield "attention_12_heads_one_query_1024_of_64", attention(12, 1, 1024, 64)
    yield "attention_32_heads_one_query_1024_of_128_shared_by_4", attention(32, 1, 1024, 128, 4)

    yield "layer_normalization_128_768", one("LayerNormalization", [(128, 768)], [(768,), (768,)])
    yield "layer_normalization_197_768", one("LayerNormalization", [(197, 768)], [(768,), (768,)])
    yield "rms_normalization_128_2048", one("RMSNormalization", [(128, 2048)], [(2048,)])
    yield (
        "group_normalization_32_256_at_28",
        one("GroupNormalization", [(1, 256, 28, 28)], [(256,), (256,)], num_groups=32),
    )
    yield "mean_variance_normalization_64_at_56", one("MeanVarianceNormalization", [(1, 64, 56, 56)])
    yield "instance_normalization_64_at_56", one("InstanceNormalization", [(1, 64, 56, 56)], [(64,), (64,)])
    yield (
        "batch_normalization_64_at_56",
        one("BatchNormalization", [(1, 64, 56, 56)], [(64,), (64,), (64,), (64,)], positive=True),
    )
    yield "softmax_12_128_128", one("Softmax", [(1, 12, 128, 128)], axis=-1)
    yield "softmax_1_1000", one("Softmax", [(1, 1000)], axis=-1)
    yield "softmax_channels_21_at_65", one("Softmax", [(1, 21, 65, 65)], axis=1)
    yield "log_softmax_128_1000", one("LogSoftmax", [(128, 1000)], axis=-1)
    yield "log_softmax_channels_21_at_65", one("LogSoftmax", [(1, 21, 65, 65)], axis=1)
    yield "lp_normalization_128_768", one("LpNormalization", [(128, 768)], axis=-1)
    yield "lp_normalization_channels_64_at_56", one("LpNormalization", [(1, 64, 56, 56)], axis=1)

    axes = {name: np.array(value) for name, value in (("last", [-1]), ("space", [2, 3]), ("channels", [1]))}
    yield "reduce_mean_last_128_768", with_constant("ReduceMean", (128, 768), axes["last"])
    yield "reduce_mean_space_960_at_7", with_constant("ReduceMean", (1, 960, 7, 7), axes["space"])
    yield "reduce_sum_channels_64_at_56", with_constant("ReduceSum", (1, 64, 56, 56), axes["channels"])
    yield "reduce_max_last_128_768", with_constant("ReduceMax", (128, 768), axes["last"])
    for op, name in (("Min", "min"), ("Prod", "prod"), ("L1", "l1"), ("L2", "l2"), ("LogSumExp", "log_sum_exp")):
        yield f"reduce_{name}_last_128_768", with_constant(f"Reduce{op}", (128, 768), axes["last"])
    yield "reduce_sum_all_1000000", with_constant("ReduceSum", (1000000,), keepdims=0)
    yield "arg_max_channels_21_at_256", one("ArgMax", [(1, 21, 256, 256)], axis=1)
    yield "arg_max_last_128_1000", one("ArgMax", [(128, 1000)], axis=-1)
    yield "cum_sum_128_768", with_constant("CumSum", (128, 768), np.array(1))
    yield "cum_sum_columns_128_768", with_constant("CumSum", (128, 768), np.array(0))

    yield (
        "max_pool_3x3_s2_64_at_112",
        one("MaxPool", [(1, 64, 112, 112)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    )
    yield "max_pool_2x2_s2_64_at_56", one("MaxPool", [(1, 64, 56, 56)], kernel_shape=[2, 2], strides=[2, 2])
    yield "average_pool_3x3_192_at_28", one("AveragePool", [(1, 192, 28, 28)], kernel_shape=[3, 3], pads=[1] * 4)
    yield "average_pool_2x2_s2_128_at_56", one("AveragePool", [(1, 128, 56, 56)], kernel_shape=[2, 2], strides=[2, 2])
    yield "global_average_pool_1280_at_7", one("GlobalAveragePool", [(1, 1280, 7, 7)])
    yield "resize_linear_x2_64_at_28", resize(64, 28, 2, "linear")
    yield "resize_linear_x8_21_at_32", resize(21, 32, 8, "linear")
    yield "resize_linear_corners_x4_128_at_16", resize(128, 16, 4, "linear", "align_corners")
    yield "resize_nearest_x2_256_at_14", resize(256, 14, 2, "nearest", "asymmetric")
    yield "resize_cubic_x2_64_at_28", resize(64, 28, 2, "cubic")

    image, rows = (1, 64, 56, 56), (128, 768)
    for op in (
        "Relu",
        "Sigmoid",
        "Tanh",
        "Exp",
        "Erf",
        "Gelu",
        "HardSwish",
        "Swish",
        "Mish",
        "Elu",
        "Selu",
        "Softplus",
        "Softsign",
        "Abs",
        "Floor",
        "Round",
        "Sign",
        "Sin",
        "Cos",
        "Tan",
        "Sinh",
        "Atan",
        "Asinh",
    ):
        yield f"{op.lower() if op != 'HardSwish' else 'hard_swish'}_64_at_56", one(op, [image])
    yield "sqrt_64_at_56", one("Sqrt", [image], positive=True)
    yield "log_64_at_56", one("Log", [image], positive=True)
    yield "add_256_at_56", one("Add", [(1, 256, 56, 56)] * 2)
    yield "add_64_at_56", one("Add", [image] * 2)
    yield "div_64_at_56", one("Div", [image] * 2, positive=True)
    yield "pow_64_at_56", one("Pow", [image] * 2, positive=True)
    yield "pow_by_number_64_at_56", one("Pow", [image], [(1,)], positive=True)
    yield "mod_64_at_56", one("Mod", [image] * 2, positive=True, fmod=1)
    yield "add_broadcast_row_128_768", one("Add", [rows, (768,)])
    yield "add_broadcast_column_128_768", one("Add", [rows, (128, 1)])
    yield "mul_broadcast_channels_672_at_14", one("Mul", [(1, 672, 14, 14), (1, 672, 1, 1)])
    yield "prelu_64_at_56", one("PRelu", [image], [(64, 1, 1)])
    yield "clip_64_at_56", with_constant("Clip", image, np.array(-1, np.float32), np.array(1, np.float32))
    yield "where_64_at_56", where(*image)
    yield "less_64_at_56", one("Less", [image] * 2)
    yield "add_f16_64_at_56", one("Add", [image] * 2, dtype=F16)
    yield "add_i64_128_768", one("Add", [rows] * 2, dtype=np.int64)
    yield "mul_i32_128_768", one("Mul", [rows] * 2, dtype=np.int32)
    yield "div_i64_by_number_128_768", with_constant("Div", rows, np.array(32), dtype=np.int64)
    yield "equal_i64_broadcast_row_128_768", one("Equal", [rows, (768,)], dtype=np.int64)
    yield "less_i32_128_768", one("Less", [rows] * 2, dtype=np.int32)
    yield "and_128_768", one("And", [rows] * 2, dtype=np.bool_)
    yield "not_64_at_56", one("Not", [image], dtype=np.bool_)

    yield "gather_rows_30522_768_by_128", indexed("Gather", (30522, 768), (128,), 30522)
    yield "gather_columns_128_768_by_64", indexed("Gather", rows, (64,), 768, axis=1)
    yield "gather_elements_128_768", indexed("GatherElements", rows, rows, 128, axis=0)
    yield "gather_nd_64_64_by_4096", indexed("GatherND", (64, 64), (4096, 2), 64)
    yield "scatter_nd_512_768_by_64", indexed("ScatterND", (512, 768), (64, 1), 512, (64, 768))
    yield "scatter_elements_128_768", indexed("ScatterElements", rows, (32, 768), 128, (32, 768), axis=0)
    yield "top_k_5_of_1000", top_k((1, 1000), 5)
    yield "top_k_1000_of_20000", top_k((1, 20000), 1000)
    yield "top_k_10_of_128_by_1000", top_k((128, 1000), 10)
    yield "top_k_all_of_64_by_1024", top_k((64, 1024), 1024)
    yield "one_hot_4096_of_128", one_hot(4096, 128)
    yield "trilu_12_512_512", one("Trilu", [(12, 512, 512)])
    yield "tile_128_768_by_4", with_constant("Tile", rows, np.array([1, 4]))
    yield "reverse_sequence_100_8_256", with_constant("ReverseSequence", (100, 8, 256), np.arange(8) * 12 + 3)
    yield "transpose_heads_128_12_64", one("Transpose", [(1, 128, 12, 64)], perm=[0, 2, 1, 3])
    yield "transpose_to_channels_last_64_at_56", one("Transpose", [image], perm=[0, 2, 3, 1])
    yield "transpose_768_3072", one("Transpose", [(768, 3072)], perm=[1, 0])
    yield "concat_channels_64_at_56", one("Concat", [image, image], axis=1)
    yield "concat_last_128_768", one("Concat", [rows, rows], axis=1)
    yield "split_channels_64_at_56", one("Split", [image], outputs=2, axis=1, num_outputs=2)
    yield "slice_channels_64_at_56", with_constant("Slice", image, np.array([16]), np.array([48]), np.array([1]))
    yield "pad_64_at_56", with_constant("Pad", image, np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    yield "expand_768_to_128_768", with_constant("Expand", (1, 768), np.array([128, 768]))
    yield "depth_to_space_2_256_at_28", one("DepthToSpace", [(1, 256, 28, 28)], blocksize=2)
    yield "space_to_depth_2_64_at_56", one("SpaceToDepth", [image], blocksize=2)
    yield "cast_f32_to_f16_64_at_56", cast(image, np.float32, "FLOAT16")
    yield "cast_f16_to_f32_64_at_56", cast(image, F16, "FLOAT")
    yield "cast_f32_to_i32_64_at_56", cast(image, np.float32, "INT32")
    yield "cast_u8_to_f32_3_at_224", cast((1, 3, 224, 224), np.uint8, "FLOAT")

    yield "cast_i64_to_i32_128_768", cast(rows, np.int64, "INT32")
    yield "cast_i64_to_f32_128_768", cast(rows, np.int64, "FLOAT")
    yield "cast_f32_to_u8_64_at_56", cast(image, np.float32, "UINT8")
    yield "cast_f32_to_bool_64_at_56", cast(image, np.float32, "BOOL")
    yield "cast_u8_to_i32_64_at_56", cast(image, np.uint8, "INT32")

    yield "quantize_u8_64_at_56", quantizing("quantize", image, np.uint8)
    yield "quantize_i8_128_768", quantizing("quantize", rows, np.int8)
    yield "dequantize_u8_64_at_56", quantizing("dequantize", image, np.uint8)
    yield "requantize_u8_64_at_56", quantizing("requantize", image, np.uint8)
    yield "dynamic_quantize_128_768", quantizing("dynamic", rows, np.uint8)
    yield "quantize_channels_i8_64_at_56", quantizing_by_axis("quantize", image, 1)
    yield "dequantize_channels_i8_64_at_56", quantizing_by_axis("dequantize", image, 1)
    yield "dequantize_rows_i8_768_3072", quantizing_by_axis("dequantize", (768, 3072), 0)
    yield "dequantize_columns_i8_768_3072", quantizing_by_axis("dequantize", (768, 3072), 1)
    yield "dequantize_blocks_of_32_i8_768_3072", quantizing_by_axis("dequantize", (768, 3072), 1, 32)
    for c, m, s in ((32, 16, 112), (24, 144, 56), (96, 576, 14), (160, 960, 7), (64, 256, 56), (1024, 256, 14)):
        yield f"conv_i8_1x1_{c}_{m}_at_{s}", conv(c, m, s, eight=True)
    yield "conv_i8_3x3_s2_3_32_at_224", conv(3, 32, 224, 3, 2, eight=True)
    yield "conv_i8_7x7_s2_3_64_at_224", conv(3, 64, 224, 7, 2, eight=True)
    for c, s in ((64, 56), (256, 14), (512, 7)):
        yield f"conv_i8_3x3_{c}_{c}_at_{s}", conv(c, c, s, 3, eight=True)
    yield "conv_i8_3x3_dilated2_64_64_at_56", conv(64, 64, 56, 3, dilation=2, eight=True)
    yield "conv_i8_grouped32_3x3_128_128_at_28", conv(128, 128, 28, 3, groups=32, eight=True)
    for k, s, c, size in ((3, 1, 144, 56), (3, 2, 96, 112), (3, 1, 960, 7), (5, 1, 120, 28), (7, 1, 96, 56)):
        yield f"depthwise_i8_{k}x{k}{'_s2' if s == 2 else ''}_{c}_at_{size}", conv(c, c, size, k, s, 1, c, eight=True)
    yield "conv_transpose_i8_2x2_s2_256_256_at_14", conv_transpose_i8(256, 256, 14, 2, 2, 0)
    yield "conv_transpose_i8_4x4_s2_128_64_at_28", conv_transpose_i8(128, 64, 28, 4, 2, 1)
    yield "mat_mul_i8_128_768_768", mat_mul_i8(128, 768, 768)
    yield "mat_mul_i8_1_1280_1000", mat_mul_i8(1, 1280, 1000)
    yield "mat_mul_weights_i8_1_768_3072", mat_mul_weights(1, 768, 3072, 8)
    yield "mat_mul_weights_i4_1_4096_4096", mat_mul_weights(1, 4096, 4096, 4)
    yield "mat_mul_weights_i4_128_768_3072", mat_mul_weights(128, 768, 3072, 4)
    yield "add_i8_256_at_56", eight("Add", [(1, 256, 56, 56)] * 2)
    yield "mul_i8_broadcast_channels_672_at_14", eight("Mul", [(1, 672, 14, 14), (1, 672, 1, 1)])
    yield "sigmoid_i8_64_at_56", eight("Sigmoid", [image])
    yield "global_average_pool_i8_1280_at_7", eight("GlobalAveragePool", [(1, 1280, 7, 7)])
    yield "average_pool_i8_3x3_192_at_28", eight("AveragePool", [(1, 192, 28, 28)], kernel_shape=[3, 3], pads=[1] * 4)
    yield (
        "max_pool_i8_3x3_s2_64_at_112",
        eight("MaxPool", [(1, 64, 112, 112)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    )
    yield "concat_i8_channels_64_at_56", eight("Concat", [image] * 2, axis=1)
    yield "concat_i8_scales_last_128_768", eight("Concat", [rows] * 2, scales=(0.02, 0.03), axis=1)
    yield "add_i8_broadcast_row_128_768", eight("Add", [rows, (768,)])
    yield "mul_i8_broadcast_column_128_768", eight("Mul", [rows, (128, 1)])
    yield "resize_i8_linear_x2_64_at_28", resize_i8(64, 28, 2, "linear")
    yield "resize_i8_nearest_x2_256_at_14", resize_i8(256, 14, 2, "nearest", "asymmetric")
    yield "softmax_i8_12_128_128", eight("Softmax", [(1, 12, 128, 128)], axis=-1)

    yield "lstm_100_steps_128_256", recurrent("LSTM", 100, 128, 256)
    yield "lstm_both_ways_50_steps_128_128", recurrent("LSTM", 50, 128, 128, 2)
    yield "gru_100_steps_128_256", recurrent("GRU", 100, 128, 256)
    yield "gru_1_step_128_256", recurrent("GRU", 1, 128, 256)


OPERATORS: dict[str, OperatorCase] = {name: OperatorCase(name, make) for name, make in _cases()}
