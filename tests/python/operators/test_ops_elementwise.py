"""The elementwise operators against ONNX's reference evaluator, numpy and PyTorch: types, shapes, special values.

Floats: ONNX is evaluated in float64 and rounded to the type, which is what our reference code promises; one unit of the
last place is allowed, because math libraries differ in the last bit of float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pinnace
import pytest
import torch
from single_op import DTYPES, ONNX_TYPES, onnx_node, ours

FLOATS = ["f32", "f16", "bf16", "f64"]
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
INTEGERS = SIGNED + UNSIGNED
SHAPES = [(), (0, 3), (1,), (2, 3, 5)]
PAIRS = [
    ((), ()),
    ((3,), ()),
    ((), (4,)),
    ((2, 3, 5), (2, 3, 5)),
    ((2, 1, 4), (3, 1)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((0,), (1,)),
    ((0, 3), (2, 1, 3)),
    ((2, 300), (300,)),  # longer than a block
]
DIGITS = {"f32": 24, "f16": 11, "bf16": 8, "f64": 53}
Span = tuple[float, float]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-3, 80.0, -80.0, np.inf, -np.inf, np.nan]


def floats(rng: np.random.Generator, name: str, shape: tuple[int, ...], low: float = -4, high: float = 4) -> np.ndarray:
    """Uniform numbers, every third of them a special value where all numbers are allowed."""
    values = rng.uniform(low, high, shape)
    if low < 0:
        values = np.where(rng.integers(0, 3, shape) == 0, rng.choice(SPECIAL, shape), values)
    return np.asarray(values).astype(DTYPES[name])


def integers(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers and the ends of the range."""
    info = np.iinfo(DTYPES[name])
    ends = np.array([info.min, info.max, info.min + 1, info.max - 1], DTYPES[name])
    small = rng.integers(max(info.min, -20), 20, shape).astype(DTYPES[name])
    return np.where(rng.integers(0, 3, shape) == 0, rng.choice(ends, shape), small)


def sample(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name == "bool":
        return np.asarray(rng.integers(0, 2, shape).astype(np.bool_))
    return floats(rng, name, shape) if name in FLOATS else integers(rng, name, shape)


def assert_close(got: np.ndarray, want: np.ndarray, ulps: float = 1) -> None:
    """Equal types, shapes and non-finite values; floats within so many units of the last place."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    name = next(n for n, d in DTYPES.items() if d == got.dtype)
    if name not in FLOATS:
        np.testing.assert_array_equal(got, want)
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    finite = np.isfinite(b)
    np.testing.assert_array_equal(a[~finite], b[~finite])
    smallest = float(np.finfo(np.float32).tiny) if name != "f16" else 6e-8
    unit = np.maximum(np.abs(b[finite]), smallest) * 2.0 ** (1 - DIGITS[name])
    if name == "f64":  # computed twice in this precision, so both sides have roundings within
        ulps = max(ulps, 8)
    np.testing.assert_array_less(np.abs(a[finite] - b[finite]), ulps * unit * (1 + 1e-9) + 1e-300)


def in_double(op: str, inputs: list[np.ndarray], attributes: dict[str, Any] | None = None) -> np.ndarray:
    """What ONNX gives in float64, rounded to the type of the first input."""
    wide = onnx_node(op, [a.astype(np.float64) for a in inputs], attributes)[0]
    with np.errstate(over="ignore"):
        return np.asarray(wide).astype(inputs[0].dtype)


# ---------------------------------------------------------------------------------------------------------------- unary

ALPHA = float(np.float32(0.3))
# Operator, ONNX's name, attributes, range of the random numbers.
FUNCTIONS: list[tuple[str, str, dict[str, Any], Span]] = [
    ("abs", "Abs", {}, (-4, 4)),
    ("acos", "Acos", {}, (-1, 1)),
    ("acosh", "Acosh", {}, (1, 9)),
    ("asin", "Asin", {}, (-1, 1)),
    ("asinh", "Asinh", {}, (-4, 4)),
    ("atan", "Atan", {}, (-4, 4)),
    ("atanh", "Atanh", {}, (-1, 1)),
    ("ceil", "Ceil", {}, (-4, 4)),
    ("celu", "Celu", {"alpha": 1.5}, (-4, 4)),
    ("cos", "Cos", {}, (-4, 4)),
    ("cosh", "Cosh", {}, (-4, 4)),
    ("elu", "Elu", {"alpha": 1.5}, (-4, 4)),
    ("exp", "Exp", {}, (-4, 4)),
    ("floor", "Floor", {}, (-4, 4)),
    ("hard_sigmoid", "HardSigmoid", {}, (-4, 4)),
    ("hard_sigmoid", "HardSigmoid", {"alpha": ALPHA, "beta": 0.25}, (-4, 4)),
    ("leaky_relu", "LeakyRelu", {}, (-4, 4)),
    ("leaky_relu", "LeakyRelu", {"alpha": ALPHA}, (-4, 4)),
    ("log", "Log", {}, (0.01, 9)),
    ("log", "Log", {}, (-4, 4)),
    ("neg", "Neg", {}, (-4, 4)),
    ("reciprocal", "Reciprocal", {}, (-4, 4)),
    ("round", "Round", {}, (-4, 4)),
    ("selu", "Selu", {}, (-4, 4)),
    ("selu", "Selu", {"alpha": 1.5, "gamma": 2.0}, (-4, 4)),
    ("shrink", "Shrink", {}, (-4, 4)),
    ("shrink", "Shrink", {"bias": 0.5, "lambd": 1.5}, (-4, 4)),
    ("sigmoid", "Sigmoid", {}, (-4, 4)),
    ("sign", "Sign", {}, (-4, 4)),
    ("sin", "Sin", {}, (-4, 4)),
    ("sinh", "Sinh", {}, (-4, 4)),
    ("sqrt", "Sqrt", {}, (0, 9)),
    ("tan", "Tan", {}, (-4, 4)),
    ("tanh", "Tanh", {}, (-4, 4)),
    ("thresholded_relu", "ThresholdedRelu", {"alpha": 0.5}, (-4, 4)),
]


@pytest.mark.parametrize(("op", "name", "attributes", "span"), FUNCTIONS)
def test_functions_of_floats(
    op: str, name: str, attributes: dict[str, Any], span: Span, rng: np.random.Generator
) -> None:
    for dtype in FLOATS:
        for shape in [*SHAPES, (200,)]:
            x = floats(rng, dtype, shape, *span)
            assert_close(ours(op, [x], attributes)[0], in_double(name, [x], attributes))


# ONNX defines some of these by others, computes erf in float32 and has no scalar softsign: PyTorch is closer.
TORCH_FUNCTIONS: list[tuple[str, dict[str, Any], Callable[[torch.Tensor], torch.Tensor]]] = [
    ("erf", {}, torch.erf),
    ("gelu", {}, torch.nn.functional.gelu),
    ("gelu", {"approximate": "tanh"}, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
    ("hard_swish", {}, torch.nn.functional.hardswish),
    ("mish", {}, torch.nn.functional.mish),
    ("silu", {}, torch.nn.functional.silu),
    ("softsign", {}, torch.nn.functional.softsign),
    ("softplus", {}, lambda x: torch.nn.functional.softplus(x, threshold=1e9)),
]


@pytest.mark.parametrize(("op", "attributes", "function"), TORCH_FUNCTIONS)
def test_activations_as_in_torch(
    op: str, attributes: dict[str, Any], function: Callable[..., Any], rng: np.random.Generator
) -> None:
    for dtype in FLOATS:
        for shape in [*SHAPES, (200,)]:
            x = floats(rng, dtype, shape)
            want = function(torch.from_numpy(np.atleast_1d(x.astype(np.float64)))).numpy().reshape(shape)
            # float64 against float64: the formulas differ by a few roundings, and cancel near zeros of the function.
            if dtype == "f64":
                np.testing.assert_allclose(ours(op, [x], attributes)[0], want, rtol=1e-12, atol=1e-14)
            else:
                assert_close(ours(op, [x], attributes)[0], want.astype(x.dtype))


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_unary_on_integers(dtype: str, rng: np.random.Generator) -> None:
    for shape in SHAPES:
        x = integers(rng, dtype, shape)
        with np.errstate(over="ignore"):
            assert_close(ours("abs", [x])[0], np.abs(x))
            assert_close(ours("sign", [x])[0], np.sign(x))
            assert_close(ours("bitwise_not", [x])[0], np.asarray(~x))
            if dtype in SIGNED:
                assert_close(ours("neg", [x])[0], np.negative(x))
        assert_close(ours("identity", [x])[0], x)


def test_predicates(rng: np.random.Generator) -> None:
    for shape in SHAPES:
        for dtype in FLOATS:
            x = floats(rng, dtype, shape)
            assert_close(ours("is_nan", [x])[0], np.isnan(x))
            for attributes in ({}, {"detect_negative": 0}, {"detect_positive": 0}):
                want = onnx_node("IsInf", [x.astype(np.float64)], attributes)[0]
                assert_close(ours("is_inf", [x], attributes)[0], np.asarray(want))
        x = sample(rng, "bool", shape)
        assert_close(ours("not", [x])[0], np.asarray(~x))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_clip(dtype: str, rng: np.random.Generator) -> None:
    for shape in SHAPES:
        x = sample(rng, dtype, shape)
        low, high = np.array(3 if dtype in UNSIGNED else -2, x.dtype), np.array(5, x.dtype)
        choices: list[list[np.ndarray | None]] = [[], [low], [None, high], [low, high], [high, low]]
        for limits in choices:
            want = x
            for limit, function in zip(limits, [np.maximum, np.minimum], strict=False):
                want = want if limit is None else function(want, limit)
            assert_close(ours("clip", [x, *limits])[0], np.asarray(want).astype(x.dtype))


# --------------------------------------------------------------------------------------------------------------- binary


@pytest.mark.parametrize(("op", "name"), [("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("div", "Div")])
def test_arithmetic(op: str, name: str, rng: np.random.Generator) -> None:
    for a_shape, b_shape in PAIRS:
        for dtype in FLOATS:
            a, b = floats(rng, dtype, a_shape), floats(rng, dtype, b_shape)
            assert_close(ours(op, [a, b])[0], in_double(name, [a, b]))
        for dtype in INTEGERS:
            a, b = integers(rng, dtype, a_shape), integers(rng, dtype, b_shape)
            if op == "div":
                b = np.where(b == 0, np.array(7, b.dtype), b)
            got = ours(op, [a, b])[0]
            # torch wraps as we do; it lacks arithmetic on wider unsigned types, for which Python's integers stand in.
            exact = {
                "add": lambda x, y: x + y,
                "sub": lambda x, y: x - y,
                "mul": lambda x, y: x * y,
                "div": lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
            }[op]
            bits = a.dtype.itemsize * 8
            want = np.frompyfunc(lambda x, y, f=exact, n=bits: f(int(x), int(y)) % (1 << n), 2, 1)(a, b)
            assert_close(got, np.asarray(want).astype(np.uint64).astype(a.dtype))


def test_integer_division_by_zero_is_refused() -> None:
    for op in ("div", "mod"):
        with pytest.raises(pinnace.InvalidArgument, match="element 1 of the divisor is 0"):
            ours(op, [np.array([1, 2], np.int32), np.array([3, 0], np.int32)])


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod(fmod: int, rng: np.random.Generator) -> None:
    function = np.fmod if fmod else np.mod
    for a_shape, b_shape in PAIRS:
        for dtype in FLOATS:
            a, b = floats(rng, dtype, a_shape), floats(rng, dtype, b_shape)
            with np.errstate(all="ignore"):
                want = np.asarray(function(a.astype(np.float64), b.astype(np.float64))).astype(a.dtype)
            got = ours("mod", [a, b], {"fmod": fmod})[0]
            assert_close(got, want)
        for dtype in INTEGERS:
            a, b = integers(rng, dtype, a_shape), integers(rng, dtype, b_shape)
            b = np.where(b == 0, np.array(7, b.dtype), b)
            with np.errstate(all="ignore"):
                assert_close(ours("mod", [a, b], {"fmod": fmod})[0], np.asarray(function(a, b)))


def test_pow(rng: np.random.Generator) -> None:
    for a_shape, b_shape in PAIRS:
        for dtype in FLOATS:
            for exponent in ["f32", "f64", "i32", "i64", "u8"]:
                a, b = floats(rng, dtype, a_shape), sample(rng, exponent, b_shape)
                # Lists, not numbers: numpy and PyTorch take the root of a single number, which has none for -inf.
                x, y = np.broadcast_arrays(a.astype(np.float64), b.astype(np.float64))
                powers = torch.pow(torch.from_numpy(x.flatten()), torch.from_numpy(y.flatten())).numpy()
                with np.errstate(all="ignore"):
                    want = powers.reshape(x.shape).astype(a.dtype)
                assert_close(ours("pow", [a, b])[0], want, ulps=2)
        for dtype in ["i32", "i64", "u8"]:
            a = integers(rng, dtype, a_shape)
            b = rng.integers(0, 70, b_shape)
            bits = a.dtype.itemsize * 8
            want = np.frompyfunc(lambda x, y, n=bits: int(x) ** int(y) % (1 << n), 2, 1)(a, b)
            got = ours("pow", [a, np.asarray(b, np.int64)])[0]
            assert_close(got, np.asarray(want).astype(np.uint64).astype(a.dtype))
    bases = np.array([-2, -1, 1, 2, 5])
    assert_close(ours("pow", [bases, np.array(-3)])[0], torch.pow(torch.from_numpy(bases), torch.tensor([-3])).numpy())


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("equal", np.equal),
        ("greater", np.greater),
        ("greater_or_equal", np.greater_equal),
        ("less", np.less),
        ("less_or_equal", np.less_equal),
    ],
)
def test_comparisons(op: str, function: Callable[..., Any], rng: np.random.Generator) -> None:
    for a_shape, b_shape in PAIRS:
        for dtype in FLOATS + INTEGERS + (["bool"] if op == "equal" else []):
            a, b = sample(rng, dtype, a_shape), sample(rng, dtype, b_shape)
            with np.errstate(invalid="ignore"):
                assert_close(ours(op, [a, b])[0], np.asarray(function(a, b)))


def test_logic_and_bits(rng: np.random.Generator) -> None:
    functions = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    for a_shape, b_shape in PAIRS:
        for op, function in functions.items():
            a, b = sample(rng, "bool", a_shape), sample(rng, "bool", b_shape)
            assert_close(ours(op, [a, b])[0], np.asarray(function(a, b)))
            for dtype in INTEGERS:
                a, b = integers(rng, dtype, a_shape), integers(rng, dtype, b_shape)
                assert_close(ours("bitwise_" + op, [a, b])[0], np.asarray(function(a, b)))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_bit_shift(direction: str, rng: np.random.Generator) -> None:
    for a_shape, b_shape in PAIRS:
        for dtype in INTEGERS:
            a = integers(rng, dtype, a_shape)
            bits = a.dtype.itemsize * 8
            b = rng.integers(0 if dtype in UNSIGNED else -2, bits + 3, b_shape).astype(a.dtype)

            def shifted(x: int, y: int, n: int = bits) -> int:
                amount = int(y) if 0 <= y < n else n
                return (int(x) << amount if direction == "LEFT" else int(x) >> amount) % (1 << n)

            want = np.asarray(np.frompyfunc(shifted, 2, 1)(a, b)).astype(np.uint64).astype(a.dtype)
            assert_close(ours("bit_shift", [a, b], {"direction": direction})[0], want)


def test_prelu(rng: np.random.Generator) -> None:
    for x_shape, slope_shape in [((2, 3, 5), (5,)), ((2, 3, 5), (3, 1)), ((4,), ()), ((), ()), ((0, 3), (3,))]:
        for dtype in FLOATS:
            # Finite slopes: at x = 0 ONNX's evaluator multiplies by the slope, where the definition takes x.
            x, slope = floats(rng, dtype, x_shape), floats(rng, dtype, slope_shape, 0.01, 2)
            assert_close(ours("prelu", [x, slope])[0], in_double("PRelu", [x, slope]))
        x, slope = integers(rng, "i32", x_shape), rng.integers(-3, 3, slope_shape).astype(np.int32)
        with np.errstate(over="ignore"):
            assert_close(ours("prelu", [x, slope])[0], np.where(x < 0, x * slope, x))


# ------------------------------------------------------------------------------------------------------ variadic, where


@pytest.mark.parametrize(("op", "function"), [("max", np.maximum), ("min", np.minimum)])
def test_extremes(op: str, function: Callable[..., Any], rng: np.random.Generator) -> None:
    for shapes in [((2, 3),), *PAIRS, ((2, 3), (3,), (2, 1)), ((4,), (), (4,), (1,))]:
        for dtype in FLOATS + INTEGERS:
            xs = [sample(rng, dtype, s) for s in shapes]
            with np.errstate(invalid="ignore"):
                want = np.asarray(functools.reduce(function, xs))
            assert_close(ours(op, xs)[0], want.astype(xs[0].dtype))


@pytest.mark.parametrize("op", ["sum", "mean"])
def test_sums(op: str, rng: np.random.Generator) -> None:
    for shapes in [((2, 3),), *PAIRS, ((2, 3), (3,), (2, 1)), ((4,), (), (4,), (1,))]:
        for dtype in FLOATS:
            xs = [floats(rng, dtype, s) for s in shapes]
            with np.errstate(all="ignore"):
                total = functools.reduce(np.add, [x.astype(np.float64) for x in xs])
                want = np.asarray(total if op == "sum" else total / len(xs)).astype(xs[0].dtype)
            assert_close(ours(op, xs)[0], want)


def test_where(rng: np.random.Generator) -> None:
    for c_shape, x_shape, y_shape in [
        ((3,), (3,), (3,)),
        ((2, 1), (3,), ()),
        ((), (2,), (3, 1)),
        ((0,), (1,), (0,)),
        ((), (), ()),
    ]:
        for dtype in FLOATS + INTEGERS + ["bool"]:
            c, x, y = sample(rng, "bool", c_shape), sample(rng, dtype, x_shape), sample(rng, dtype, y_shape)
            assert_close(ours("where", [c, x, y])[0], np.where(c, x, y))


# ----------------------------------------------------------------------------------------------------------------- cast


# Types that are only stored have small_floats_test.py.
CAST_TYPES = [*FLOATS, *INTEGERS, "bool", "i4", "u4"]


@pytest.mark.parametrize("source", CAST_TYPES)
def test_cast(source: str, rng: np.random.Generator) -> None:
    for shape in [(), (0, 3), (7, 9), (3, 171)]:  # the last longer than a block
        if source in ("i4", "u4"):
            x = rng.integers(-8 if source == "i4" else 0, 8 if source == "i4" else 16, shape).astype(DTYPES[source])
        elif source in FLOATS:  # in every type's range: beyond it ONNX leaves open what comes out
            x = rng.uniform(0, 15, shape).astype(DTYPES[source])
        else:
            x = sample(rng, source, shape)
        for target in CAST_TYPES:
            if target in ("i4", "u4") and source not in FLOATS:
                continue  # low bits: checked in C++; ml_dtypes saturates some pairs
            got = ours("cast", [x], {"to": target})[0]
            with np.errstate(all="ignore"):
                if source in ("i4", "u4"):
                    want = x.astype(np.int8).astype(DTYPES[target])
                elif target in ("i4", "u4"):
                    want = (x.astype(np.int8) & 15).astype(np.uint8)
                    want = ((want ^ 8).astype(np.int8) - 8 if target == "i4" else want).astype(DTYPES[target])
                elif target == "bf16" and source in INTEGERS:
                    want = x.astype(np.float64).astype(DTYPES[target])
                else:
                    want = x.astype(DTYPES[target])
            assert_close(got, np.asarray(want))
            assert_close(ours("cast_like", [x, np.zeros((2,), DTYPES[target])])[0], got)


def test_cast_out_of_range_is_what_numpy_gives_on_x86() -> None:
    # numpy's own conversions to 32-bit and wider unsigned types depend on the processor's vector instructions.
    x = np.array([300.7, -300.7, 3e9, -3e9, 5e9, 1e19, -1e19, 1e30, np.nan, np.inf, -np.inf, 70000.9, -1.5])
    for source in ["f32", "f64"]:
        for target in ["i8", "u8", "i16", "u16", "i32", "i64", "bool"]:
            given = x.astype(DTYPES[source])
            want = torch.from_numpy(given).to(getattr(torch, DTYPES[target].name)).numpy()
            assert_close(ours("cast", [given], {"to": target})[0], want)


# --------------------------------------------------------------------------------------------------------- quantisation


def quantized(x: np.ndarray, scale: float, zero: int, dtype: np.dtype) -> np.ndarray:
    """clamp(round_half_even(x / scale) + zero) with the division in float32."""
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        q = np.rint((x.astype(np.float32) / np.float32(scale)).astype(np.float64)) + zero
    return np.where(np.isnan(q), zero, np.clip(q, info.min, info.max)).astype(dtype)


def dequantized(q: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return (q.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)


QUANTIZED_PARAMETERS = [
    ("i8", 0.05, -3, 0.03, 7),
    ("u8", 0.02, 128, 0.011, 3),
    ("u8", 0.25, 0, 0.5, 255),
    ("i8", 1.0, 127, 0.1, -128),
]


@pytest.mark.parametrize(("op", "name", "attributes", "span"), FUNCTIONS)
def test_functions_of_quantized_types(op: str, name: str, attributes: dict[str, Any], span: Span) -> None:
    for dtype, scale, zero, out_scale, out_zero in QUANTIZED_PARAMETERS:
        info = np.iinfo(DTYPES[dtype])
        q = np.arange(info.min, info.max + 1).astype(DTYPES[dtype])
        real = dequantized(q, scale, zero)
        want = quantized(in_double(name, [real], attributes), out_scale, out_zero, q.dtype)
        got = ours(op, [q], attributes, quantization=[f"scale {scale}, zero {zero}"],
                   output_type=f"{dtype}[256]{{scale {out_scale}, zero {out_zero}}}")[0]  # fmt: skip
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("add", np.add),
        ("sub", np.subtract),
        ("mul", np.multiply),
        ("div", np.divide),
        ("max", np.maximum),
        ("min", np.minimum),
    ],
)
def test_arithmetic_of_quantized_types(op: str, function: Callable[..., Any], rng: np.random.Generator) -> None:
    for dtype, scale, zero, out_scale, out_zero in QUANTIZED_PARAMETERS:
        info = np.iinfo(DTYPES[dtype])
        for a_shape, b_shape in [((50, 40), (50, 40)), ((2, 1, 40), (3, 1)), ((), (5,))]:
            a, b = (rng.integers(info.min, info.max + 1, s).astype(DTYPES[dtype]) for s in (a_shape, b_shape))
            with np.errstate(all="ignore"):
                real = np.asarray(function(dequantized(a, scale, zero), dequantized(b, 0.04, 5)))
            want = quantized(real, out_scale, out_zero, a.dtype)
            got = ours(op, [a, b], quantization=[f"scale {scale}, zero {zero}", "scale 0.04, zero 5"],
                       output_type=f"{dtype}[]{{scale {out_scale}, zero {out_zero}}}")[0]  # fmt: skip
            np.testing.assert_array_equal(got, want)


# x's shape, scale's shape, axis, block size.
GRANULARITIES = [((2, 3), (), 1, 0), ((4, 6), (6,), 1, 0), ((4, 6), (4,), 0, 0), ((3, 4, 5), (4,), -2, 0),
                 ((4, 6), (4, 3), 1, 2), ((6, 4), (2, 4), 0, 3), ((0, 3), (), 1, 0), ((5,), (5,), 0, 0)]  # fmt: skip


@pytest.mark.parametrize(("shape", "scale_shape", "axis", "block"), GRANULARITIES)
def test_explicit_quantisation(
    shape: tuple[int, ...], scale_shape: tuple[int, ...], axis: int, block: int, rng: np.random.Generator
) -> None:
    attributes = {"axis": axis, **({"block_size": block} if block else {})}
    for dtype in ["i8", "u8", "i16", "u16", "i4", "u4"]:
        low, high = {"i4": (-8, 7), "u4": (0, 15)}.get(dtype) or (
            np.iinfo(DTYPES[dtype]).min,
            np.iinfo(DTYPES[dtype]).max,
        )
        scale = rng.uniform(0.01, 0.5, scale_shape).astype(np.float32)
        zero = rng.integers(max(low, -9), min(high, 9) + 1, scale_shape).astype(DTYPES[dtype])
        x = (rng.uniform(-1.2, 1.2, shape) * (high - low) * 0.3).astype(np.float32)
        got = ours("quantize_linear", [x, scale, zero], attributes)[0]
        assert_close(got, np.asarray(onnx_node("QuantizeLinear", [x, scale, zero], attributes)[0]))
        back = ours("dequantize_linear", [got, scale, zero], attributes)[0]
        assert_close(back, np.asarray(onnx_node("DequantizeLinear", [got, scale, zero], attributes)[0]))
        alone = ours("quantize_linear", [x, scale], {**attributes, "output_dtype": dtype})[0]
        want = onnx_node("QuantizeLinear", [x, scale], {**attributes, "output_dtype": ONNX_TYPES[dtype]})[0]
        assert_close(alone, np.asarray(want))
    q = rng.integers(-1000, 1000, shape).astype(np.int32)
    assert_close(
        ours("dequantize_linear", [q, scale], attributes)[0], onnx_node("DequantizeLinear", [q, scale], attributes)[0]
    )


def test_dynamic_quantisation(rng: np.random.Generator) -> None:
    for low, high in [(-3, 5), (0.5, 2), (-7, -1)]:
        x = rng.uniform(low, high, (6, 7)).astype(np.float32)
        got = ours("dynamic_quantize_linear", [x], outputs=3)
        want = onnx_node("DynamicQuantizeLinear", [x], outputs=3)
        for a, b in zip(got, want, strict=True):
            assert_close(a, np.asarray(b))
