"""The programs of known answers: one for each important kind of layer, in the text form of graphs, with inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinnace.device.graph_text import GraphText
from pinnace.types import Array


@dataclass(frozen=True)
class KnownAnswer:
    """One test.

    text   the graph.
    steps  inputs of each run in the graph's order; states go from one to the next.
    exact  the graph is of quantised values, whose integers every back end must give.
    """

    name: str
    text: str
    steps: list[list[Array]]
    exact: bool = False


_Maker = Callable[[GraphText], list[list[Array]]]
_MAKERS: dict[str, tuple[_Maker, bool]] = {}


def _test(name: str, exact: bool = False) -> Callable[[_Maker], _Maker]:
    def add(maker: _Maker) -> _Maker:
        _MAKERS[name] = maker, exact
        return maker

    return add


def known_answers() -> list[KnownAnswer]:
    """All tests, the same ones on every machine."""
    made = []
    for seed, (name, (maker, exact)) in enumerate(_MAKERS.items(), 1):
        graph = GraphText(seed)
        steps = maker(graph)
        made.append(KnownAnswer(name, graph.text(), steps, exact))
    return made


def _unary(graph: GraphText, shape: tuple[int, ...], **nodes: dict[str, Any]) -> list[list[Array]]:
    """The same input through each operator, an output for each."""
    x = graph.array(*shape, scale=2.0)
    value = graph.input("x", x)
    for op, attributes in nodes.items():
        graph.output(graph.node(op, value, **attributes), op)
    return [[x]]


def _conv(name: str, shape: tuple[int, ...], weights: tuple[int, ...], op: str = "conv", **attributes: Any) -> None:
    def maker(graph: GraphText) -> list[list[Array]]:
        x = graph.array(*shape)
        value = graph.input("x", x)
        made = weights[0] if op == "conv" else weights[1] * attributes.get("group", 1)
        bias = graph.constant(graph.array(made, scale=0.1))
        graph.output(graph.node(op, value, graph.weights(*weights), bias, **attributes))
        return [[x]]

    _test(name)(maker)


_RELU6: dict[str, Any] = {"activation": "clip", "activation_params": [0.0, 6.0]}
_conv("conv_dense", (1, 8, 12, 12), (16, 8, 3, 3), pads=[1, 1, 1, 1], activation="relu")
_conv("conv_pointwise", (1, 24, 10, 9), (40, 24, 1, 1), **_RELU6)
_conv("conv_strided", (1, 3, 23, 25), (16, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], **_RELU6)
_conv("conv_depthwise", (1, 24, 14, 13), (24, 1, 3, 3), group=24, pads=[1, 1, 1, 1])
_conv("conv_depthwise_strided", (1, 16, 15, 15), (16, 1, 5, 5), group=16, strides=[2, 2], pads=[2, 2, 2, 2], **_RELU6)
_conv("conv_grouped", (1, 16, 9, 9), (24, 8, 3, 3), group=2)
_conv("conv_dilated", (1, 8, 13, 13), (8, 8, 3, 3), dilations=[2, 2], pads=[2, 2, 2, 2])
_conv("conv_one_axis", (1, 16, 40), (24, 16, 5), pads=[2, 2])
_conv("conv_transposed", (1, 12, 7, 8), (12, 8, 4, 4), "conv_transpose", strides=[2, 2], pads=[1, 1, 1, 1])


@_test("linear")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(3, 96)
    bias = graph.constant(graph.array(40, scale=0.1))
    graph.output(graph.node("gemm", graph.input("x", x), graph.weights(40, 96), bias, trans_b=1, activation="relu"))
    return [[x]]


@_test("batched_product")
def _(graph: GraphText) -> list[list[Array]]:
    a, b = graph.array(2, 4, 17, 24), graph.array(2, 4, 24, 19)
    graph.output(graph.node("mat_mul", graph.input("a", a), graph.input("b", b)))
    return [[a, b]]


@_test("attention")
def _(graph: GraphText) -> list[list[Array]]:
    arrays = [graph.array(1, 4, 12, 16) for _ in range(3)]
    q, k, v = (graph.input(name, array) for name, array in zip("qkv", arrays, strict=True))
    scores = graph.node("mat_mul", q, graph.node("transpose", k, perm=[0, 1, 3, 2]))
    scaled = graph.node("mul", scores, graph.constant(np.float32(0.25)))
    graph.output(graph.node("mat_mul", graph.node("softmax", scaled, axis=-1), v))
    return [arrays]


@_test("pooling")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(1, 12, 15, 14)
    value = graph.input("x", x)
    graph.output(graph.node("max_pool", value, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), "max")
    graph.output(graph.node("average_pool", value, kernel_shape=[2, 2], strides=[2, 2]), "average")
    graph.output(graph.node("global_average_pool", value), "global")
    return [[x]]


@_test("softmax")
def _(graph: GraphText) -> list[list[Array]]:
    return _unary(graph, (5, 67), softmax={"axis": -1}, log_softmax={"axis": -1})


@_test("layer_norm")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(2, 7, 48, scale=3.0)
    scale, bias = graph.constant(1 + graph.array(48, scale=0.2)), graph.constant(graph.array(48, scale=0.2))
    graph.output(graph.node("layer_normalization", graph.input("x", x), scale, bias))
    return [[x]]


@_test("group_norm")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(1, 12, 8, 9, scale=3.0)
    value = graph.input("x", x)
    scale, bias = graph.constant(1 + graph.array(12, scale=0.2)), graph.constant(graph.array(12, scale=0.2))
    graph.output(graph.node("group_normalization", value, scale, bias, num_groups=3), "group")
    graph.output(graph.node("instance_normalization", value, scale, bias), "instance")
    return [[x]]


@_test("batch_norm")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(1, 12, 8, 9, scale=3.0)
    value = graph.node("relu", graph.input("x", x))  # so that it is not folded into a convolution's weights
    parameters = [1 + graph.array(12, scale=0.2), graph.array(12, scale=0.2), graph.array(12)]
    constants = [graph.constant(array) for array in (*parameters, 0.5 + graph.random.random(12, np.float32))]
    graph.output(graph.node("batch_normalization", value, *constants))
    return [[x]]


@_test("activations_by_parts")
def _(graph: GraphText) -> list[list[Array]]:
    return _unary(graph, (1, 8, 9, 11), relu={}, leaky_relu={"alpha": 0.1}, hard_swish={}, hard_sigmoid={}, abs={})


@_test("activations_by_exponentials")
def _(graph: GraphText) -> list[list[Array]]:
    return _unary(graph, (1, 8, 9, 11), sigmoid={}, tanh={}, silu={}, gelu={}, elu={}, softplus={}, exp={})


@_test("binary")
def _(graph: GraphText) -> list[list[Array]]:
    a, b, c = graph.array(1, 8, 9, 11), graph.array(1, 8, 9, 11), graph.array(8, 1, 1)
    x, y, z = graph.input("a", a), graph.input("b", b), graph.input("c", c)
    product = graph.node("mul", graph.node("sub", x, y), z)
    positive = graph.node("add", graph.node("mul", z, z), graph.constant(np.float32(0.5)))
    graph.output(graph.node("div", graph.node("add", product, x), positive), "arithmetic")
    graph.output(graph.node("max", graph.node("min", x, y), z), "limits")
    return [[a, b, c]]


@_test("resize")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(1, 8, 6, 7)
    value = graph.input("x", x)
    doubled = graph.constant(np.array([1, 1, 2, 2], np.float32))
    graph.output(graph.node("resize", value, "none", doubled, mode="linear"), "linear")
    repeated: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    graph.output(graph.node("resize", value, "none", doubled, mode="nearest", **repeated), "nearest")
    return [[x]]


@_test("gather")
def _(graph: GraphText) -> list[list[Array]]:
    indices = np.array([[3, 0, 29], [7, 7, 12]], np.int32)
    graph.output(graph.node("gather", graph.weights(30, 20, fan_in=1), graph.input("indices", indices)))
    return [[indices]]


@_test("movement")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(1, 8, 6, 10)
    value = graph.input("x", x)
    part = graph.node("slice", value, graph.integers(1), graph.integers(7), graph.integers(3), graph.integers(2))
    joined = graph.node("concat", part, graph.node("pad", part, graph.integers(*[0] * 8)), axis=1)
    turned = graph.node("transpose", joined, perm=[0, 2, 3, 1])
    graph.output(graph.node("reshape", turned, graph.integers(6, 48)))
    return [[x]]


@_test("reductions")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(2, 6, 7, 8)
    value = graph.input("x", x)
    for op, axes in {"reduce_mean": (2, 3), "reduce_sum": (1,), "reduce_max": (3,), "reduce_min": (1, 2)}.items():
        graph.output(graph.node(op, value, graph.integers(*axes), keepdims=0), op)
    return [[x]]


@_test("largest")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(4, 50)
    value = graph.input("x", x)
    graph.output(graph.node("arg_max", value, axis=1), "place")
    values, indices = graph.node("top_k", value, graph.integers(5), outputs=2)
    graph.output(values, "values")
    graph.output(indices, "places")
    return [[x]]


@_test("comparisons")
def _(graph: GraphText) -> list[list[Array]]:
    a, b = graph.array(4, 33), graph.array(4, 33)
    x, y = graph.input("a", a), graph.input("b", b)
    larger = graph.node("greater", x, y)
    graph.output(graph.node("where", larger, x, graph.node("neg", y)), "chosen")
    graph.output(graph.node("cast", larger, to="f32"), "larger")
    return [[a, b]]


@_test("int8_network", exact=True)
def _(graph: GraphText) -> list[list[Array]]:
    """Convolutions, an addition, a pool and a product of 8-bit integers."""
    x = graph.array(1, 8, 12, 12, dtype="int8")
    value = graph.input("x", x, "{scale 0.05, zero 3}")
    wide = graph.constant(graph.array(16, 8, 3, 3, dtype="int8"), "{scale 0.01, zero 0}")
    bias = graph.constant(graph.random.integers(-3000, 3000, 16, np.int32))
    first = graph.node(
        "conv", value, wide, bias, type="i8[1,16,12,12]{scale 0.1, zero -128}", pads=[1, 1, 1, 1], activation="relu"
    )
    deep = graph.constant(graph.array(16, 1, 3, 3, dtype="int8"), "{scale 0.02, zero 0}")
    second = graph.node("conv", first, deep, type="i8[1,16,12,12]{scale 0.1, zero 5}", group=16, pads=[1, 1, 1, 1])
    sum_ = graph.node("add", first, second, type="i8[1,16,12,12]{scale 0.15, zero -20}")
    pooled = graph.node("global_average_pool", sum_, type="i8[1,16,1,1]{scale 0.1, zero -20}")
    flat = graph.node("reshape", pooled, graph.integers(1, 16), type="i8[1,16]{scale 0.1, zero -20}")
    head = graph.constant(graph.array(10, 16, dtype="int8"), "{scale 0.02, zero 0}")
    graph.output(graph.node("gemm", flat, head, type="i8[1,10]{scale 0.2, zero 4}", trans_b=1), "classes")
    graph.output(second, "features")
    return [[x]]


@_test("int8_weights")
def _(graph: GraphText) -> list[list[Array]]:
    """A float product by weights of 8 bits, one scale for each output."""
    x = graph.array(2, 64)
    stored = graph.constant(graph.array(24, 64, dtype="int8"))
    scales = graph.constant(0.005 + 0.01 * graph.random.random(24, np.float32))
    weights = graph.node("dequantize_linear", stored, scales, axis=0)
    graph.output(graph.node("gemm", graph.input("x", x), weights, trans_b=1))
    return [[x]]


@_test("float16")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(1, 8, 10, 10, dtype="float16")
    weights = graph.constant(graph.array(8, 8, 3, 3, scale=0.12, dtype="float16"))
    graph.output(graph.node("relu", graph.node("conv", graph.input("x", x), weights, pads=[1, 1, 1, 1])))
    return [[x]]


@_test("lstm")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(6, 2, 12)
    parts = [graph.weights(1, 64, 12, fan_in=12), graph.weights(1, 64, 16, fan_in=16)]
    bias = graph.constant(graph.array(1, 128, scale=0.1))
    y, h, c = graph.node("lstm", graph.input("x", x), *parts, bias, outputs=3, hidden_size=16)
    for name, value in (("y", y), ("h", h), ("c", c)):
        graph.output(value, name)
    return [[x]]


@_test("state")
def _(graph: GraphText) -> list[list[Array]]:
    """A recurrent cell whose state the session keeps, for three runs."""
    steps = [[graph.array(1, 8)] for _ in range(3)]
    value = graph.input("x", steps[0][0])
    graph.line(f'state "h" %h : f32[1,12] next %next = {{{",".join(["0"] * 12)}}}')
    own = graph.node("mat_mul", "%h", graph.weights(12, 12))
    sum_ = graph.node("add", graph.node("mat_mul", value, graph.weights(8, 12, fan_in=8)), own)
    graph.line(f"%next : f32[1,12] = tanh({sum_})")
    graph.output("%next")
    return steps


def _branch(name: str, op: str) -> str:
    return f'graph "{name}" {{ input %a : f32[2,16] %b : f32[2,16] = {op}(%a) output "b" %b }}'


@_test("branch")
def _(graph: GraphText) -> list[list[Array]]:
    """One run for each branch."""
    x = graph.array(2, 16)
    condition, value = graph.input("c", np.array(True)), graph.input("x", x)
    graph.output(
        graph.node("if", condition, value, then_branch=_branch("then", "sigmoid"), else_branch=_branch("else", "relu"))
    )
    return [[np.array(True), x], [np.array(False), x]]


@_test("loop")
def _(graph: GraphText) -> list[list[Array]]:
    x = graph.array(2, 16)
    value = graph.input("x", x)
    body = (
        'graph "body" { input %i : i64[] input %c : bool[] input %a : f32[2,16] input %x : f32[2,16] '
        '%s : f32[2,16] = add(%a, %x) %t : f32[2,16] = tanh(%s) output "c" %c output "t" %t }'
    )
    graph.output(graph.node("loop", graph.constant(np.int64(5)), "none", value, value, carried=1, body=body))
    return [[x]]


__all__ = ["KnownAnswer", "known_answers"]
