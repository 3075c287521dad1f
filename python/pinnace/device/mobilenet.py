"""A network of the shape of MobileNetV2 (Sandler et al., 2018), with seeded weights, for kits to time."""

from __future__ import annotations

from typing import Any

import numpy as np

from pinnace.device.graph_text import GraphText

# Expansion, channels, blocks, stride of the first: the paper's table 2.
_BLOCKS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
_CLASSES = 1000
_RELU6: dict[str, Any] = {"activation": "clip", "activation_params": [0.0, 6.0]}


def mobilenet_text(size: int = 224, width: float = 1.0) -> str:
    """The graph for one image [1, 3, size, size]; width: part of the channels, each a multiple of 8 and at least 8.

    Batch normalisation is folded into weights and biases, as a converted model has it. Weights are scaled so that
    activations neither vanish nor stand at their limits.
    """
    graph = GraphText(seed=1)

    def conv(
        value: str, given: int, made: int, kernel: int = 1, stride: int = 1, group: int = 1, last: bool = False
    ) -> str:
        each = (made, given // group, kernel, kernel)
        weights = graph.constant(graph.array(*each, scale=((1 if last else 2) / int(np.prod(each[1:]))) ** 0.5))
        bias = graph.constant(graph.array(made, scale=0.1))
        pads, strides = [kernel // 2] * 4, [stride] * 2
        activation: dict[str, Any] = {} if last else _RELU6
        return str(graph.node("conv", value, weights, bias, strides=strides, pads=pads, group=group, **activation))

    def channels(number: int) -> int:
        return max(8, int(number * width + 4) // 8 * 8)

    value = graph.input("image", np.empty((1, 3, size, size), np.float32))
    given = channels(32)
    value = conv(value, 3, given, 3, 2)
    for expansion, number, blocks, first_stride in _BLOCKS:
        for block in range(blocks):
            made, stride, before = channels(number), first_stride if block == 0 else 1, value
            inner = given * expansion
            if expansion > 1:
                value = conv(value, given, inner)
            value = conv(value, inner, inner, 3, stride, inner)
            value = conv(value, inner, made, last=True)
            if stride == 1 and given == made:
                value = graph.node("add", value, before)
            given = made
    last = channels(1280)
    value = graph.node("global_average_pool", conv(value, given, last))
    flat = graph.node("reshape", value, graph.integers(1, last))
    bias = graph.constant(graph.array(_CLASSES, scale=0.1))
    graph.output(graph.node("gemm", flat, graph.weights(_CLASSES, last), bias, trans_b=1), "classes")
    return graph.text()


__all__ = ["mobilenet_text"]
