"""Special values through every elementwise operator: NaN, infinities, zeros of both signs, the smallest and the largest
numbers, and the ends of every integer type, alone and in all pairs.

What must come out is computed here by numpy in a wider type (longdouble, which has 64 digits) and rounded once. Bits
are compared, the sign of zero included; any NaN is as good as another. Functions that no machine computes exactly may
differ by one unit of the last place. A test at the end holds the lists against the operators of the build.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pinnace
import pytest
import torch
from single_op import DTYPES, ours

Array = np.ndarray[Any, Any]
Wide = np.longdouble
FLOATS = ["f32", "f16", "bf16", "f64"]
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]


def specials(name: str) -> Array:
    dtype = DTYPES[name]
    info: Any = ml_dtypes.finfo(dtype) if name == "bf16" else np.finfo(dtype)  # type: ignore[no-untyped-call]
    ends = [info.max, info.smallest_normal, info.smallest_subnormal, info.eps]
    positive = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.0, np.inf, *[float(e) for e in ends]]
    return np.array([*positive, *[-x for x in positive], np.nan], dtype)


def ends(name: str) -> Array:
    info = np.iinfo(DTYPES[name])
    values = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, *([-1, -2, -7] if info.min else [])}
    return np.array(sorted(values), DTYPES[name])


def rounded(x: Array, dtype: np.dtype) -> Array:
    """Rounds longdouble once; through float32 bfloat16 would be rounded twice."""
    if dtype != DTYPES["bf16"]:
        return np.asarray(x).astype(dtype)
    out = np.empty(x.shape, dtype)
    for i, v in np.ndenumerate(x):
        out[i] = dtype.type(float(v)) if not np.isfinite(v) or v == 0 else dtype.type(nearest(v, 8, -133))
    return out


def nearest(v: Any, digits: int, least: int) -> float:
    """v to so many digits, half to even; the last digit is never worth less than 2 ** least."""
    _, exponent = np.frexp(v)
    unit = Wide(2.0) ** max(int(exponent) - digits, least)
    return float(np.rint(v / unit) * unit)


def wide(x: Array) -> Array:
    return x.astype(np.float64).astype(Wide)


def assert_same(got: Array, want: Array, ulps: int, what: str, *operands: Array) -> None:
    """Equal bits or, where `ulps` allows, neighbours: distances are those of the numbers' places in their order."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    bits = np.dtype(f"i{got.dtype.itemsize}")
    places = [
        np.where(a.view(bits) < 0, np.iinfo(bits).min - a.view(bits), a.view(bits)).astype(object) for a in (got, want)
    ]
    both_nan = np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    # -0 and 0 have the same place.
    wrong = ~both_nan & (
        (np.abs(places[0] - places[1]) > ulps)
        | (np.signbit(got.astype(np.float64)) != np.signbit(want.astype(np.float64)))
    )
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        given = ", ".join(str(o[at]) for o in operands)
        pytest.fail(f"{what} of {given} gives {got[at]!r}, must be {want[at]!r} ({int(wrong.sum())} places)")


# ---------------------------------------------------------------------------------------------------------- one input

Function = Callable[[Array], Array]


def erf(x: Array) -> Array:
    return np.array([np.nan if np.isnan(v) else math.erf(float(v)) for v in x], Wide)


def gelu(x: Array) -> Array:
    """x / 2 * erfc(-x / sqrt(2)); -inf times 0 is NaN, as the formula has it."""
    halves = np.array([np.nan if np.isnan(v) else math.erfc(-float(v) * 0.70710678118654752440) for v in x], Wide)
    return np.asarray(x / 2 * halves)


def softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def of_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    """For functions that numpy has not."""
    return lambda x: np.asarray(function(torch.from_numpy(np.asarray(x, np.float64))).numpy())


# Operator, attributes, function, units of the last place.
UNARY: list[tuple[str, dict[str, Any], Function, int]] = [
    ("abs", {}, np.abs, 0),
    ("acos", {}, np.arccos, 1),
    ("acosh", {}, np.arccosh, 1),
    ("asin", {}, np.arcsin, 1),
    ("asinh", {}, np.arcsinh, 1),
    ("atan", {}, np.arctan, 1),
    ("atanh", {}, np.arctanh, 1),
    # PyTorch gives NaN at infinity; and 0 at -0, though the function is odd.
    ("bessel_i", {}, lambda x: np.where(np.isinf(x), np.inf, of_torch(torch.special.i0)(x)), 2),
    ("bessel_i", {"order": 1, "scaled": 1}, lambda x: np.copysign(of_torch(torch.special.i1e)(x), x), 2),
    ("ceil", {}, np.ceil, 0),
    ("celu", {"alpha": 2.0}, lambda x: np.where(x >= 0, x, 2 * np.expm1(x / 2)), 1),
    ("cos", {}, np.cos, 1),
    ("cosh", {}, np.cosh, 1),
    ("digamma", {}, of_torch(torch.digamma), 64),  # terms cancel near its zeros, -0.504 is one
    ("elu", {"alpha": 2.0}, lambda x: np.where(x >= 0, x, 2 * np.expm1(x)), 1),
    ("erf", {}, erf, 1),
    ("erf_inv", {}, of_torch(torch.erfinv), 4),
    ("erfcx", {}, of_torch(torch.special.erfcx), 2),
    ("exp", {}, np.exp, 1),
    ("floor", {}, np.floor, 0),
    ("gelu", {}, gelu, 4),
    ("hard_sigmoid", {"alpha": 0.25, "beta": 0.5}, lambda x: np.clip(x / 4 + 0.5, 0, 1), 0),
    ("hard_swish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 1),
    ("leaky_relu", {"alpha": 0.25}, lambda x: np.where(x < 0, x / 4, x), 0),
    ("log", {}, np.log, 1),
    ("log_gamma", {}, of_torch(torch.lgamma), 4),
    ("mish", {}, lambda x: x * np.tanh(softplus(x)), 2),
    ("neg", {}, np.negative, 0),
    ("reciprocal", {}, np.reciprocal, 0),
    ("relu", {}, lambda x: np.where(x <= 0, 0, x), 0),
    ("round", {}, np.rint, 0),
    ("selu", {"alpha": 2.0, "gamma": 1.5}, lambda x: np.where(x > 0, 1.5 * x, 3 * np.expm1(x)), 1),
    ("shrink", {"bias": 0.25, "lambd": 1.0}, lambda x: np.where(x < -1, x + 0.25, np.where(x > 1, x - 0.25, 0)), 0),
    ("sigmoid", {}, sigmoid, 1),
    ("sign", {}, lambda x: np.where(x == 0, 0, np.sign(x)), 0),
    ("silu", {}, lambda x: x * sigmoid(x), 1),
    ("sin", {}, np.sin, 1),
    ("sinh", {}, np.sinh, 1),
    ("softplus", {}, softplus, 1),
    ("softsign", {}, lambda x: x / (1 + np.abs(x)), 1),
    ("sqrt", {}, np.sqrt, 0),
    ("tan", {}, np.tan, 1),
    ("tanh", {}, np.tanh, 1),
    ("thresholded_relu", {"alpha": 1.0}, lambda x: np.where(x > 1, x, 0), 0),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attributes", "function", "ulps"), UNARY, ids=[u[0] for u in UNARY])
def test_functions(op: str, attributes: dict[str, Any], function: Function, ulps: int) -> None:
    for name in FLOATS:
        x = specials(name)
        with np.errstate(all="ignore"):
            exact = name == "f64" and ulps == 0  # one operation in the type itself
            want = np.asarray(function(x)) if exact else rounded(np.asarray(function(wide(x))), x.dtype)
        # In f64 the operator's own roundings are seen.
        assert_same(ours(op, [x], attributes)[0], want, 4 * ulps if name == "f64" else ulps, f"{op} {name}", x)


UNARY_INTEGERS: list[tuple[str, Callable[[int], int]]] = [
    ("abs", abs),
    ("bitwise_not", lambda v: ~v),
    ("neg", lambda v: -v),
    ("relu", lambda v: max(v, 0)),
    ("sign", lambda v: (v > 0) - (v < 0)),
]


def wrapped(values: list[int], dtype: np.dtype) -> Array:
    """The low bits, as two's complement."""
    bits = 8 * dtype.itemsize
    low = [v & ((1 << bits) - 1) for v in values]
    return np.array([v - (1 << bits) if dtype.kind == "i" and v >> (bits - 1) else v for v in low], dtype)


@pytest.mark.parametrize(("op", "function"), UNARY_INTEGERS, ids=[u[0] for u in UNARY_INTEGERS])
def test_functions_of_integers(op: str, function: Callable[[int], int]) -> None:
    for name in INTEGERS:
        x = ends(name)
        if op == "neg" and x.dtype.kind == "u":
            continue
        np.testing.assert_array_equal(ours(op, [x])[0], wrapped([function(int(v)) for v in x], x.dtype), f"{op} {name}")


# --------------------------------------------------------------------------------------------------------- two inputs


def pairs(values: Array) -> tuple[Array, Array]:
    both = list(itertools.product(range(len(values)), repeat=2))
    return values[[a for a, _ in both]], values[[b for _, b in both]]


def first_of_equals(pick: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Array]:
    """NaN where either is; the first of equal ones, which shows in the sign of zero."""
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a == b, a, pick(a, b)))


def floor_mod(a: Array, b: Array) -> Array:
    """Zero takes the sign of b; of an infinite b and an a of the other sign comes b."""
    r = np.fmod(a, b)
    r = np.where((r != 0) & (np.signbit(r) != np.signbit(b)), r + b, r)
    return np.where(r == 0, np.copysign(0, b), r)


def power(a: Array, b: Array) -> Array:
    return np.asarray(np.power(a, b))


BINARY: list[tuple[str, dict[str, Any], Callable[[Array, Array], Any], int]] = [
    ("add", {}, np.add, 0),
    ("div", {}, np.divide, 0),
    ("max", {}, first_of_equals(np.maximum), 0),
    ("mean", {}, lambda a, b: (a + b) / 2, 0),
    ("min", {}, first_of_equals(np.minimum), 0),
    ("mod", {"fmod": 1}, np.fmod, 0),
    ("mod", {}, floor_mod, 0),
    ("mul", {}, np.multiply, 0),
    ("pow", {}, power, 1),
    ("prelu", {}, lambda a, b: np.where(a >= 0, a, a * b), 0),
    ("sub", {}, np.subtract, 0),
    ("sum", {}, np.add, 0),
]


@pytest.mark.parametrize(("op", "attributes", "function", "ulps"), BINARY, ids=[f"{b[0]}{len(b[1])}" for b in BINARY])
def test_arithmetic(op: str, attributes: dict[str, Any], function: Callable[[Array, Array], Any], ulps: int) -> None:
    for name in FLOATS:
        a, b = pairs(specials(name))
        with np.errstate(all="ignore"):
            if name == "f64":  # one operation in the type itself
                want = np.asarray(function(a, b))
            else:
                want = rounded(np.asarray(function(wide(a), wide(b))), a.dtype)
        assert_same(ours(op, [a, b], attributes)[0], want, ulps, f"{op} {name}", a, b)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def integer_power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


BINARY_INTEGERS: list[tuple[str, dict[str, Any], Callable[[int, int], int], bool]] = [
    ("add", {}, lambda a, b: a + b, True),
    ("bitwise_and", {}, lambda a, b: a & b, True),
    ("bitwise_or", {}, lambda a, b: a | b, True),
    ("bitwise_xor", {}, lambda a, b: a ^ b, True),
    ("div", {}, truncated, False),
    ("gcd", {}, math.gcd, True),
    ("max", {}, max, True),
    ("min", {}, min, True),
    ("mod", {"fmod": 1}, lambda a, b: a - b * truncated(a, b), False),
    ("mod", {}, lambda a, b: a % b, False),
    ("mul", {}, lambda a, b: a * b, True),
    ("pow", {}, integer_power, True),
    ("prelu", {}, lambda a, b: a if a >= 0 else a * b, True),
    ("sub", {}, lambda a, b: a - b, True),
]


@pytest.mark.parametrize(
    ("op", "attributes", "function", "zero"), BINARY_INTEGERS, ids=[f"{b[0]}{len(b[1])}" for b in BINARY_INTEGERS]
)
def test_arithmetic_of_integers(
    op: str, attributes: dict[str, Any], function: Callable[[int, int], int], zero: bool
) -> None:
    """zero: the second operand may be 0, which is an error otherwise."""
    for name in INTEGERS:
        a, b = pairs(ends(name))
        if not zero:
            with pytest.raises(pinnace.InvalidArgument, match="divisor is 0"):
                ours(op, [a, b], attributes)
            a, b = a[b != 0], b[b != 0]
        want = wrapped([function(int(x), int(y)) for x, y in zip(a, b, strict=True)], a.dtype)
        got = ours(op, [a, b], attributes)[0]
        wrong = np.flatnonzero(got != want)
        assert not wrong.size, (
            f"{op} {name} of {a[wrong[0]]}, {b[wrong[0]]} gives {got[wrong[0]]}, must be {want[wrong[0]]}"
        )


COMPARISONS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("equal", np.equal),
    ("greater", np.greater),
    ("greater_or_equal", np.greater_equal),
    ("less", np.less),
    ("less_or_equal", np.less_equal),
]


@pytest.mark.parametrize(("op", "function"), COMPARISONS, ids=[c[0] for c in COMPARISONS])
def test_comparisons(op: str, function: Callable[[Any, Any], Any]) -> None:
    for name in [*FLOATS, *INTEGERS]:
        a, b = pairs(specials(name) if name in FLOATS else ends(name))
        with np.errstate(invalid="ignore"):
            want = function(a, b)
        np.testing.assert_array_equal(ours(op, [a, b])[0], want, f"{op} {name}")


# -------------------------------------------------------------------------------------------------------- the others


def test_clip() -> None:
    for name in FLOATS:
        x = specials(name)
        for low, high in itertools.product(x, repeat=2):
            limits = [np.array(low, x.dtype), np.array(high, x.dtype)]
            a, b, c = wide(x), wide(limits[0]), wide(limits[1])
            want = np.where(a < b, b, a)
            want = np.where(want > c, c, want)
            want = np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), np.nan, want)
            assert_same(ours("clip", [x, *limits])[0], rounded(want, x.dtype), 0, f"clip {low}..{high} {name}", x)


def test_where_keeps_bits() -> None:
    for name in FLOATS:
        a, b = pairs(specials(name))
        condition = np.arange(len(a)) % 2 == 0
        assert_same(ours("where", [condition, a, b])[0], np.where(condition, a, b), 0, f"where {name}", a, b)


def test_questions() -> None:
    for name in FLOATS:
        x = specials(name)
        np.testing.assert_array_equal(ours("is_nan", [x])[0], np.isnan(x.astype(np.float64)))
        np.testing.assert_array_equal(ours("is_inf", [x])[0], np.isinf(x.astype(np.float64)))


def test_cast_between_floats() -> None:
    for source, target in itertools.product(FLOATS, repeat=2):
        x = specials(source)
        with np.errstate(all="ignore"):
            want = rounded(wide(x), DTYPES[target])
        assert_same(ours("cast", [x], {"to": target})[0], want, 0, f"cast {source} to {target}", x)


def test_cast_between_integers() -> None:
    for source, target in itertools.product(INTEGERS, repeat=2):
        x = ends(source)
        want = wrapped([int(v) for v in x], DTYPES[target])
        np.testing.assert_array_equal(ours("cast", [x], {"to": target})[0], want, f"{source} to {target}")


def test_bit_shift() -> None:
    for name in ["u8", "u16", "u32", "u64"]:
        a, _ = pairs(ends(name))
        bits = 8 * a.dtype.itemsize
        b = np.resize(np.array([0, 1, bits - 1, bits, 255], a.dtype), a.shape)
        for direction in ["LEFT", "RIGHT"]:
            shifted = [int(x) << int(n) if direction == "LEFT" else int(x) >> int(n) for x, n in zip(a, b, strict=True)]
            got = ours("bit_shift", [a, b], {"direction": direction})[0]
            np.testing.assert_array_equal(got, wrapped(shifted, a.dtype), f"{name} {direction}")


# Operators whose result may take the memory of an input and that are not in the lists above, with the reason.
# test_ops_*.py has them.
ELSEWHERE = {
    "and", "or", "xor", "not",  # bool has no special values
    "cast_like", "identity",  # as cast; bytes stay
    "batch_normalization", "cum_prod", "cum_sum", "group_normalization", "hardmax",
    "instance_normalization", "layer_normalization", "log_cum_sum_exp", "log_softmax", "lp_normalization", "lrn",
    "mean_variance_normalization", "rms_normalization", "rotary_embedding", "softmax", "trilu",  # along an axis
    "cholesky",  # matrices
    "zeta",  # its poles are among its cases
    "scale_rois",  # boxes, whose special values are refused
    "scatter_elements", "scatter_nd", "tensor_scatter",  # a copy with some elements changed
}  # fmt: skip


def test_every_elementwise_operator_is_here() -> None:
    functions = [u[0] for u in UNARY] + [b[0] for b in BINARY] + [u[0] for u in UNARY_INTEGERS]
    functions += [b[0] for b in BINARY_INTEGERS] + [c[0] for c in COMPARISONS]
    listed = {*functions, "bit_shift", "cast", "clip", "is_inf", "is_nan", "where"}
    folder = Path(__file__).resolve().parents[3] / "cpp" / "ops"
    texts = {path.stem: path.read_text() for path in folder.glob("*.cc")}
    elementwise = {name for name, text in texts.items() if ".in_place" in text and "PINNACE_OP" in text}
    assert elementwise - listed == ELSEWHERE
