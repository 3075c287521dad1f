"""Models whose heaviest nodes have run by reference code on x86-64: each has a kernel for every node, and the right
answer."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from onnx import ModelProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="this processor does not have x86-64")


def model_of(nodes: list[Any], constants: dict[str, Any], shape: list[int], kind: int) -> ModelProto:
    """Nodes from x, float32 of that shape, to y."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def qdq(rng: np.random.Generator, activation: type, weight: type, weight_zero: int) -> ModelProto:
    """Two convolutions, the second depthwise, with quantised activations between and weights of more than 64 KiB."""
    zero, scale = (120, 0.05) if activation is np.uint8 else (31000, 0.0002)
    channels = 96
    bounds = np.iinfo(weight)
    constants = {
        "scale": np.float32(scale),
        "zero": activation(zero),
        "w_scale": np.float32(0.002),
        "w_zero": weight(weight_zero),
        "w0": rng.integers(bounds.min, bounds.max, (channels, 40, 3, 3), weight, endpoint=True),
        "w1": rng.integers(bounds.min, bounds.max, (channels, 1, 5, 5), weight, endpoint=True),
    }
    nodes = []

    def rounded(name: str, to: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [name, "scale", "zero"], [to + "_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [to + "_q", "scale", "zero"], [to]))
        return to

    value = rounded("x", "x_r")
    for i, group in enumerate((1, channels)):
        nodes.append(helper.make_node("DequantizeLinear", [f"w{i}", "w_scale", "w_zero"], [f"w{i}_r"]))
        nodes.append(
            helper.make_node("Conv", [value, f"w{i}_r"], [f"c{i}"], group=group, pads=[1 + i] * 4, name=f"conv{i}")
        )
        value = rounded(f"c{i}", "y" if i else "c_r")
    return model_of(nodes, constants, [1, 40, 9, 11], TensorProto.FLOAT)


def integers(rng: np.random.Generator, op: str) -> ModelProto:
    """Dynamically quantised x by uint8 weights with a zero point."""
    weights, shape = ((70, 40), [5, 70]) if op == "MatMulInteger" else ((70, 40, 3, 3), [1, 40, 9, 11])
    constants = {"w": rng.integers(0, 256, weights).astype(np.uint8), "w_zero": np.uint8(117)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node(op, ["q", "w", "zero", "w_zero"], ["y"]),
    ]
    return model_of(nodes, constants, shape, TensorProto.INT32)


MODELS: dict[str, Callable[[np.random.Generator], ModelProto]] = {
    "QDQ, uint8 weights with a zero point": lambda rng: qdq(rng, np.uint8, np.uint8, 113),
    "QDQ, int8 weights with a zero point": lambda rng: qdq(rng, np.uint8, np.int8, -7),
    "QDQ in 16 bits": lambda rng: qdq(rng, np.uint16, np.int8, 0),
    "ConvInteger": lambda rng: integers(rng, "ConvInteger"),
    "MatMulInteger": lambda rng: integers(rng, "MatMulInteger"),
}


@pytest.mark.parametrize("isa", ["avx2", "avx512_vnni"])
@pytest.mark.parametrize("name", MODELS)
def test_every_node_has_a_kernel(name: str, isa: str, rng: np.random.Generator) -> None:
    model = MODELS[name](rng)
    x = rng.standard_normal([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]).astype(np.float32)
    try:
        session = pn.Session(pn.load(model).build(), target=f"cpu:{isa}")
    except pn.Unsupported:
        pytest.skip(f"this processor does not have {isa}")
    (y,) = session.run({"x": x}).values()
    assert {row.node: row.kernel for row in session.placement if row.kernel == "reference"} == {}
    options = onnxruntime.SessionOptions()
    # On processors without VNNI its products of uint8 by int8 saturate, which its optimisations make of QDQ nodes.
    if "DequantizeLinear" in {node.op_type for node in model.graph.node}:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    else:
        options.add_session_config_entry("session.x64quantprecision", "1")
    (want,) = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    assert y.shape == want.shape
    if y.dtype == np.int32:
        assert np.array_equal(y, want)
    else:  # one unit of the last rounding, where the engines round sums at other places
        unit = next(numpy_helper.to_array(i) for i in model.graph.initializer if i.name == "scale")
        assert np.abs(y - want).max() <= 1.01 * unit


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (torch.nn.Conv2d(32, 48, (5, 1)), (2, 32, 37, 1)),
        (torch.nn.Conv2d(32, 48, 3, padding=36, dilation=36), (1, 32, 28, 28)),
        (torch.nn.Conv2d(32, 48, 3, padding=12, dilation=12), (1, 32, 28, 28)),
        (torch.nn.Conv3d(8, 16, 3, padding=1), (1, 8, 2, 7, 7)),
    ],
    ids=["one pixel wide", "one tap within the image", "taps of some outputs", "two planes"],
)
def test_convolutions(module: torch.nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    session = pn.Session(pn.load(module.eval(), x).build(), target="cpu")
    (y,) = session.run(dict(zip(session.inputs, (x.numpy(),), strict=True))).values()
    with torch.no_grad():
        assert_agree(y, module(x).numpy())
    assert all(row.kernel.startswith(("conv_", "row-tiled")) for row in session.placement), session.placement
