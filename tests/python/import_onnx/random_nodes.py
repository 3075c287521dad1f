"""What a random graph can be made of: each function draws inputs and attributes and adds a node or a few.

It raises Impossible where no value that there is fits. What ONNX's evaluator has wrong is left out, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from random_graph import LARGEST, MOST_ELEMENTS, Graph, Impossible, Value, fits, product_digits, sum_digits


def smooth(g: Graph) -> None:
    op = g.pick(["Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "Elu", "Selu", "Celu", "Gelu", "Mish", "HardSwish"])
    g.emit(op, [g.floats(lambda v: v.largest < 8)], digits=None)


def guarded(g: Graph) -> None:
    op = g.pick(["Exp", "Sqrt", "Log", "Reciprocal", "Sin", "Cos"])
    low = {"Sqrt": 0.1, "Log": 0.25, "Reciprocal": 0.25}.get(op)
    x = g.floats(lambda v: v.largest < 6)
    if low is not None:  # the graph makes its own safe operand
        x = g.emit("Abs", [x], digits=x.digits)[0]
        x = g.emit("Max", [x, g.constant(max(low, 0.25), x.dtype, digits=2)], digits=sum_digits(x))[0]
    g.emit(op, [x], digits=None)


def piecewise(g: Graph) -> None:
    op = g.pick(["Abs", "Neg", "Relu", "Identity", "LeakyRelu", "HardSigmoid", "Clip", "PRelu", "ThresholdedRelu"])
    x = g.floats()
    if op == "Clip":
        g.emit(op, [x, g.constant(-1.5, x.dtype, 1), g.constant(2, x.dtype) if g.flag() else None], digits=x.digits)
    elif op == "PRelu":
        slope = g.constant(np.full(x.shape[-1:] if g.flag() else (), 0.25), x.dtype, digits=2)
        g.emit(op, [x, slope], digits=product_digits(1, x, slope))
    elif op == "ThresholdedRelu":
        g.emit(op, [g.exact(lambda v: v.is_float)], digits=sum_digits(x), alpha=0.5)
    elif op == "LeakyRelu":
        g.emit(op, [x], digits=None, alpha=0.125)
    else:
        g.emit(op, [x], digits=None if op == "HardSigmoid" else x.digits)


def jump(g: Graph) -> None:
    x = g.exact(lambda v: v.is_float)
    g.emit(g.pick(["Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf"]), [x])


def integer_unary(g: Graph) -> None:
    op = g.pick(["Abs", "Neg", "BitwiseNot", "Not", "Sign"])
    if op == "Not":
        g.emit(op, [g.exact(lambda v: v.dtype == "bool")])
        return
    signed = op in ("Abs", "Neg")
    g.emit(op, [g.exact(lambda v: v.array.dtype.kind == "i" or (not signed and v.array.dtype.kind == "u"))])


def fitting(g: Graph, x: Value) -> Value:
    """A second operand of x's type that broadcasts with it."""

    def broadcasts(v: Value) -> bool:
        try:
            return v.dtype == x.dtype and int(np.prod(np.broadcast_shapes(v.shape, x.shape))) <= MOST_ELEMENTS
        except ValueError:
            return False

    return g.value(broadcasts)


def binary(g: Graph) -> None:
    x = g.floats()
    op = g.pick(["Add", "Sub", "Mul", "Div", "Min", "Max", "Mean", "Sum"])
    y = fitting(g, x)
    if op == "Div":
        y = g.constant(g.pick([2.0, -0.5, 4.0, 0.3]), x.dtype)
    digits = product_digits(1, x, y) if op == "Mul" else None if op in ("Div", "Mean") else sum_digits(x, y)
    g.emit(op, [y, x] if op != "Div" and g.flag() else [x, y], digits=digits)


def integer_binary(g: Graph) -> None:
    x = g.exact(lambda v: v.array.dtype.kind in "iu")
    op = g.pick(["Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"])
    if op == "BitShift" and x.array.dtype.kind != "u":
        raise Impossible
    if op in ("Div", "Mod", "BitShift"):
        if op == "Div" and x.array.dtype.kind == "i" and (x.array < 0).any():
            raise Impossible  # ONNX says only since opset 27 where the quotient of negative integers is rounded to
        y = g.constant(g.pick([1, 2, 3, 5]), x.dtype)
    else:
        y = fitting(g, x)
    g.emit(op, [x, y], direction=g.pick(["LEFT", "RIGHT"]) if op == "BitShift" else None)


def compare(g: Graph) -> None:
    x = g.exact(lambda v: v.dtype != "bool")
    y = fitting(g, x)
    if y.digits is None:
        raise Impossible
    g.emit(g.pick(["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]), [x, y])


def logic(g: Graph) -> None:
    x = g.exact(lambda v: v.dtype == "bool")
    g.emit(g.pick(["And", "Or", "Xor", "Equal"]), [x, fitting(g, x)])


def where(g: Graph) -> None:
    condition = g.exact(lambda v: v.dtype == "bool")
    x = g.value()
    y = fitting(g, x)
    g.emit("Where", [condition, x, y], digits=sum_digits(x, y))


def cast(g: Graph) -> None:
    to = g.pick(["float32", "float64", "int32", "int64", "bool", "float16"])
    x = g.exact(lambda v: v.dtype != to and v.largest < LARGEST.get(to, 1e6))
    g.emit("Cast", [x], digits=x.digits, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def transpose(g: Graph) -> None:
    x = g.value(lambda v: v.rank > 1)
    g.emit("Transpose", [x], digits=x.digits, perm=g.draw(st.permutations(range(x.rank))))


def reshape(g: Graph) -> None:
    x = g.value(lambda v: v.array.size > 0)
    sizes = [1] if g.flag() else []
    left = x.array.size
    while left > 1 and len(sizes) < 4 and g.flag():
        factor = g.pick([f for f in range(2, left + 1) if left % f == 0])
        sizes.append(factor)
        left //= factor
    if left > 1:
        sizes.append(left)
    if sizes and g.flag():
        sizes[g.number(0, len(sizes) - 1)] = -1
    g.emit("Reshape", [x, g.ints(*sizes)], digits=x.digits)


def reshape_by_shape(g: Graph) -> None:
    """The way exporters keep a dimension dynamic: its size is taken from another tensor's shape."""
    x = g.value(lambda v: v.rank > 1 and v.array.size > 0)
    shape = g.emit("Shape", [x])[0]
    first = g.emit("Gather", [shape, g.ints(0)])[0]
    whole = g.emit("Concat", [first, g.ints(-1)], axis=0)[0]
    g.emit("Reshape", [x, whole], digits=x.digits)


def squeeze(g: Graph) -> None:
    x = g.value()
    if g.flag():
        g.emit("Unsqueeze", [x, g.ints(g.number(-x.rank - 1, x.rank))], digits=x.digits)
    elif g.flag():
        ones = [i for i, n in enumerate(x.shape) if n == 1]
        axis = g.pick(ones)
        g.emit("Squeeze", [x, g.ints(axis - x.rank if g.flag() else axis) if g.flag() else None], digits=x.digits)
    else:
        g.emit("Flatten", [x], digits=x.digits, axis=g.number(-x.rank, x.rank))


def concat(g: Graph) -> None:
    x = g.value(lambda v: v.rank > 0)
    axis = g.number(-x.rank, x.rank - 1)

    def joins(v: Value) -> bool:
        return (
            v.dtype == x.dtype
            and v.rank == x.rank
            and all(a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != axis % x.rank)
        )

    parts = [x] + [g.value(joins) for _ in range(g.number(0, 2))]
    g.emit("Concat", parts, digits=sum_digits(*parts), axis=axis)


def split(g: Graph) -> None:
    x = g.value(lambda v: v.rank > 0 and max(v.shape) > 1)
    axis = g.pick([i for i, n in enumerate(x.shape) if n > 1])
    if g.flag():
        first = g.number(0, x.shape[axis])
        g.emit("Split", [x, g.ints(first, x.shape[axis] - first)], outputs=2, digits=x.digits, axis=axis)
    else:
        g.emit("Split", [x], outputs=2, digits=x.digits, axis=axis - x.rank, num_outputs=2)


def slice_(g: Graph) -> None:
    x = g.value(lambda v: v.rank > 0)
    axis = g.number(0, x.rank - 1)
    n = x.shape[axis]
    step = g.pick([1, 2, -1, -2])
    bounds = g.pick([(0, n), (1, n), (-2, 100), (0, -1), (n, 0)] if step > 0 else [(n, -100), (-1, 0), (1, -100)])
    g.emit("Slice", [x, g.ints(bounds[0]), g.ints(bounds[1]), g.ints(axis), g.ints(step)], digits=x.digits)


def indices(g: Graph, count: Sequence[int], size: int) -> Value:
    if size < 1:
        raise Impossible
    drawn = [g.number(-size, size - 1) for _ in range(int(np.prod(count)))]
    return g.constant(np.array(drawn, np.int64).reshape(count), g.pick(["int64", "int32"]))


def gather(g: Graph) -> None:
    x = g.value(lambda v: v.rank > 0)
    axis = g.number(-x.rank, x.rank - 1)
    op = g.pick(["Gather", "GatherElements", "GatherND"])
    if op == "Gather":
        count = g.pick([(), (1,), (3,), (2, 2)])
        g.emit(op, [x, indices(g, count, x.shape[axis])], digits=x.digits, axis=axis)
    elif op == "GatherElements":
        if x.array.size > 64:
            raise Impossible
        g.emit(op, [x, indices(g, x.shape, x.shape[axis])], digits=x.digits, axis=axis)
    else:
        where_to = indices(g, (2, 1), x.shape[0])
        g.emit(op, [x, g.emit("Cast", [where_to], to=TensorProto.INT64)[0]], digits=x.digits)


def scatter(g: Graph) -> None:
    x = g.value(lambda v: v.rank > 0 and v.shape[0] > 1 and v.array.size <= 64)
    rows = g.draw(st.permutations(range(x.shape[0])))[:2]
    if g.flag():
        at = g.constant(np.array(rows).reshape(2, 1), "int64")
        updates = g.emit("Gather", [x, g.ints(0, 0)], digits=x.digits)[0]
        g.emit("ScatterND", [x, at, updates], digits=x.digits)
    else:
        shape = (2, *x.shape[1:])
        at = g.constant(np.broadcast_to(np.array(rows).reshape(2, *[1] * (x.rank - 1)), shape), "int64")
        updates = g.emit("Slice", [x, g.ints(0), g.ints(2), g.ints(0)], digits=x.digits)[0]
        g.emit("ScatterElements", [x, at, updates], digits=x.digits, axis=0)


def expand(g: Graph) -> None:
    x = g.value(lambda v: v.array.size <= 256)
    if g.flag():
        g.emit("Expand", [x, g.ints(g.number(1, 3), *x.shape)], digits=x.digits)
    elif g.flag():
        g.emit("Tile", [x, g.ints(*[g.number(0, 2) for _ in x.shape])], digits=x.digits)
    else:
        like = g.value(lambda v: 0 < v.array.size <= 256)
        shape = g.emit("Shape", [like])[0]
        g.emit("Expand", [g.constant(1.5, "float32", 1), shape], digits=1)


def pad(g: Graph) -> None:
    x = g.floats(lambda v: 0 < v.rank <= 4 and v.array.size <= 512 and min(v.shape, default=0) > 1)
    mode = g.pick(["constant", "edge", "reflect", "wrap"])
    low = -1 if mode == "constant" else 0
    pads = [g.number(low, 1) for _ in range(2 * x.rank)]
    if any(n + a + b < 0 for n, a, b in zip(x.shape, pads[: x.rank], pads[x.rank :], strict=True)):
        raise Impossible
    value = g.constant(0.5, x.dtype, 1) if mode == "constant" and g.flag() else None
    g.emit("Pad", [x, g.ints(*pads), value], digits=x.digits if x.digits is None else max(1, x.digits), mode=mode)


def rearrange(g: Graph) -> None:
    op = g.pick(["Trilu", "DepthToSpace", "SpaceToDepth", "ReverseSequence"])
    if op == "Trilu":
        x = g.value(lambda v: v.rank > 1)
        g.emit(op, [x, g.constant(g.number(-2, 2), "int64")], digits=x.digits, upper=g.number(0, 1))
    elif op == "ReverseSequence":
        x = g.value(lambda v: v.rank > 1 and v.shape[0] > 0)
        lengths = g.ints(*[g.number(1, max(1, x.shape[0])) for _ in range(x.shape[1])])
        g.emit(op, [x, lengths], digits=x.digits, time_axis=0, batch_axis=1)
    elif op == "DepthToSpace":
        x = g.floats(lambda v: v.rank == 4 and v.shape[1] % 4 == 0 and v.array.size > 0)
        g.emit(op, [x], digits=x.digits, blocksize=2, mode=g.pick(["DCR", "CRD"]))
    else:
        x = g.floats(lambda v: v.rank == 4 and v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0 and v.array.size > 0)
        g.emit(op, [x], digits=x.digits, blocksize=2)


def reduce(g: Graph) -> None:
    op = g.pick(["Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "Prod"])
    x = g.floats(lambda v: v.array.size > 0 and v.largest < 8)
    axes = [i for i in range(x.rank) if g.flag()]
    keepdims = g.number(0, 1)
    digits: int | None = None
    if op in ("Max", "Min") or (
        op in ("Sum", "L1") and x.digits is not None and fits(x.array.size * x.largest, x.digits, x.dtype)
    ):
        digits = x.digits
    g.emit(f"Reduce{op}", [x, g.ints(*axes) if axes else None], digits=digits, keepdims=keepdims)


def arg_reduce(g: Graph) -> None:
    x = g.exact(lambda v: v.dtype in ("float32", "float64", "int32", "int64") and v.rank > 0 and min(v.shape) > 0)
    op = g.pick(["ArgMax", "ArgMin"])
    axis = g.number(-x.rank, x.rank - 1)
    g.emit(op, [x], axis=axis, keepdims=g.number(0, 1), select_last_index=g.number(0, 1))


def scan_along(g: Graph) -> None:
    x = g.floats(lambda v: v.rank > 0 and v.array.size > 0 and v.largest < 8)
    axis = g.number(-x.rank, x.rank - 1)
    op = g.pick(["CumSum", "Softmax", "LogSoftmax", "LpNormalization", "LayerNormalization"])
    if op == "CumSum":
        exact = x.digits is not None and fits(x.array.size * x.largest, x.digits, x.dtype)
        digits = x.digits if exact else None
        at = g.constant(axis, "int64")
        g.emit(op, [x, at], digits=digits, exclusive=g.number(0, 1), reverse=g.number(0, 1))
    elif op == "LayerNormalization":
        if x.dtype == "float16" or x.array[..., :].std(axis=-1).min(initial=1.0) < 0.05:
            raise Impossible  # dividing by nearly nothing
        g.emit(op, [x, g.constant(np.ones(x.shape[-1]), x.dtype)], digits=None)
    elif op == "LpNormalization":
        if np.sqrt((x.array.astype(np.float64) ** 2).sum(axis=axis)).min(initial=1.0) < 0.1:
            raise Impossible
        g.emit(op, [x], digits=None, axis=axis, p=2)
    else:
        g.emit(op, [x], digits=None, axis=axis)


def mat_mul(g: Graph) -> None:
    x = g.floats(lambda v: v.rank > 0 and v.largest < 64)
    inner = x.shape[-1]
    y = g.floats(lambda v: v.dtype == x.dtype and v.rank > 0 and v.shape[-2 if v.rank > 1 else -1] == inner)
    if g.flag() and x.rank == 2 and y.rank == 2 and min(*x.shape, *y.shape) > 0:
        bias = g.constant(np.arange(y.shape[1]) % 3 * 0.5, x.dtype, 1)
        g.emit("Gemm", [x, y, bias], digits=None)
    else:
        g.emit("MatMul", [x, y], digits=product_digits(inner, x, y))


def weights(g: Graph, shape: Sequence[int], dtype: str) -> Value:
    seed = g.number(0, 99)
    drawn = np.random.default_rng(seed).integers(-4, 5, size=shape) / 4
    return g.constant(drawn, dtype, digits=2)


def convolution(g: Graph) -> None:
    x = g.floats(lambda v: 3 <= v.rank <= 4 and min(v.shape) > 0 and v.dtype != "float16" and v.largest < 32)
    channels, kernel = x.shape[1], g.number(1, min(3, *x.shape[2:]))
    depthwise = g.flag()
    w = weights(g, (channels if depthwise else 3, 1 if depthwise else channels, *[kernel] * (x.rank - 2)), x.dtype)
    bias = weights(g, w.shape[:1], x.dtype) if g.flag() else None
    count = int(np.prod(w.shape[1:])) + 1
    attrs: dict[str, Any] = {"group": channels if depthwise else 1}
    if g.flag():
        attrs["pads"] = [g.number(0, 1) for _ in range(2 * (x.rank - 2))]
    if g.flag():
        attrs["strides"] = [2] * (x.rank - 2)
    g.emit("Conv", [x, w, bias], digits=product_digits(count, x, w), **attrs)


def pool(g: Graph) -> None:
    x = g.floats(lambda v: 3 <= v.rank <= 4 and min(v.shape) > 0 and v.dtype != "float16")
    op = g.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    digits = x.digits if "Max" in op else None
    if op.startswith("Global"):
        if x.rank < 4 and "Max" in op:
            raise Impossible  # the evaluator's result of a rank 3 input lacks a dimension
        g.emit(op, [x], digits=digits)
        return
    kernel = [g.number(1, min(3, n)) for n in x.shape[2:]]
    before = [g.number(0, k - 1) for k in kernel]
    # The evaluator leaves out what only the second of unequal pads of one dimension adds.
    after = before if x.rank == 3 else [g.number(0, k - 1) for k in kernel]
    pads = before + after
    strides = [g.number(1, 2) for _ in kernel]
    count_pad = g.number(0, 1) if op == "AveragePool" else None
    g.emit(op, [x], digits=digits, kernel_shape=kernel, pads=pads, strides=strides, count_include_pad=count_pad)


def normalise(g: Graph) -> None:
    x = g.floats(lambda v: v.rank >= 2 and v.dtype != "float16")
    c = x.shape[1]
    scale, mean = g.constant(np.full(c, 0.5), x.dtype, 1), g.constant(np.arange(c) * 0.25, x.dtype, 2)
    g.emit("BatchNormalization", [x, scale, mean, mean, g.constant(np.full(c, 1.25), x.dtype, 2)], digits=None)


def quantize(g: Graph) -> None:
    x = g.exact(lambda v: v.dtype == "float32" and v.rank > 0)
    scale = g.constant(g.pick([0.25, 0.5, 0.0625]), "float32", 4)  # quotients are exact: no tie is decided by rounding
    zero = g.constant(g.pick([0, 3]), g.pick(["int8", "uint8"]))
    q = g.emit("QuantizeLinear", [x, scale, zero])[0]
    g.emit("DequantizeLinear", [q, scale, zero], digits=4)


def data_dependent(g: Graph) -> None:
    """Operators whose output's size depends on values."""
    op = g.pick(["NonZero", "Compress", "Unique", "TopK", "Range", "OneHot"])
    if op == "NonZero":
        g.emit(op, [g.exact(lambda v: v.rank > 0)])
    elif op == "Compress":
        condition = g.exact(lambda v: v.dtype == "bool" and v.rank == 1)
        x = g.value(lambda v: v.rank > 0 and v.shape[0] >= condition.shape[0])
        g.emit(op, [x, condition], digits=x.digits, axis=0)
    elif op == "Unique":
        x = g.exact(lambda v: v.dtype in ("float32", "int64", "int8") and v.array.size > 0)
        g.emit(op, [x], outputs=g.number(1, 4), digits=x.digits, sorted=1)
    elif op == "TopK":
        x = g.exact(lambda v: v.dtype in ("float32", "int64", "int32") and v.rank > 0 and v.shape[-1] > 0)
        k = g.constant([g.number(1, x.shape[-1])], "int64")
        values = g.emit(op, [x, k], outputs=2, digits=x.digits, largest=g.number(0, 1))
        if len(np.unique(x.array)) != x.array.size:
            g.values.remove(values[1])  # of equal values any may come first
    elif op == "Range":
        end = g.exact(lambda v: v.dtype == "int64" and v.array.size == 1 and 0 <= v.largest <= 16)
        end = g.emit("Reshape", [end, g.constant([], "int64")])[0]
        g.emit(op, [g.constant(0, "int64"), end, g.constant(g.pick([1, 2]), "int64")])
    else:
        x = g.exact(lambda v: v.dtype == "int64" and v.array.size <= 64)
        g.emit(op, [x, g.constant(4, "int64"), g.constant([0.0, 1.5], "float32", 1)], digits=1, axis=-1)


def about_shape(g: Graph) -> None:
    x = g.value()
    op = g.pick(["Shape", "Size", "ConstantOfShape", "EyeLike"])
    if op == "ConstantOfShape":
        fill = numpy_helper.from_array(np.array([g.pick([0.5, -2.0])], np.float32))
        g.emit(op, [g.emit("Shape", [x])[0]], digits=1, value=fill)
    elif op == "EyeLike":
        g.emit(op, [g.value(lambda v: v.rank == 2 and v.dtype != "bool")], k=g.number(-1, 1))
    elif op == "Shape":
        g.emit(op, [x], start=g.number(-2, 1), end=g.pick([None, -1, 3]))
    else:
        g.emit(op, [x])


ELEMENTWISE: list[Callable[[Graph], None]] = [smooth, piecewise, binary, where]
MAKERS: list[Callable[[Graph], None]] = [
    *ELEMENTWISE,
    guarded,
    jump,
    integer_unary,
    integer_binary,
    compare,
    logic,
    cast,
    transpose,
    reshape,
    reshape_by_shape,
    squeeze,
    concat,
    split,
    slice_,
    gather,
    scatter,
    expand,
    pad,
    rearrange,
    reduce,
    arg_reduce,
    scan_along,
    mat_mul,
    convolution,
    pool,
    normalise,
    quantize,
    data_dependent,
    about_shape,
]
