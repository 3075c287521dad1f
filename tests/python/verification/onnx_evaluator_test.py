"""ONNX's reference evaluator with operators of our own in it, against onnxruntime: what is held to be exact must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from pinnace.sources.onnx_evaluator import evaluator
from pinnace.sources.onnx_float64 import DoubleModel

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(17)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def one_node(op: str, x: Array, weights: dict[str, Array], opset: int, outputs: int = 1, **attributes: Any) -> Any:
    """A model of a single node that reads x and, in that order, the weights."""
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, ["x", *weights], names, **attributes)
    initial = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    graph = helper.make_graph([node], "g", given, made, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


def by_onnxruntime(model: Any, x: Array) -> Array:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def agree(model: Any, x: Array) -> Array:
    """In float32 and in float64, the latter nearer to float32's results than these are to each other's rounding."""
    want = by_onnxruntime(model, x)
    got = np.asarray(evaluator(model).run(None, {"x": x})[0])
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    bound = 1e-5 * float(np.abs(want).max())
    np.testing.assert_allclose(got, want, rtol=0, atol=bound)
    exact = DoubleModel(model).run([x])[0]  # widens the model: last
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, want, rtol=0, atol=bound)
    assert not np.array_equal(exact, exact.astype(np.float32))  # computed in doubles, not widened afterwards
    return want


# --------------------------------------------------------------------------------------------------------- convolutions

CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1-d": ((2, 3, 19), (4, 3, 5), {"pads": [2, 1], "strides": [2]}),
    "1-d dilated": ((1, 4, 23), (6, 2, 3), {"dilations": [3], "group": 2, "pads": [0, 4]}),
    "2-d": ((2, 3, 9, 11), (5, 3, 3, 2), {"pads": [1, 0, 2, 3], "strides": [2, 3]}),
    "2-d without attributes": ((1, 2, 6, 7), (3, 2, 3, 3), {}),
    "groups": ((2, 6, 8, 8), (9, 2, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    "depthwise": ((2, 5, 8, 9), (5, 1, 3, 3), {"group": 5, "pads": [1, 1, 1, 1], "strides": [2, 1]}),
    "depthwise, dilated": ((1, 3, 12, 12), (3, 1, 3, 3), {"group": 3, "dilations": [2, 3]}),
    "depthwise, two outputs each": ((1, 3, 7, 7), (6, 1, 3, 3), {"group": 3}),
    "dilations": ((1, 3, 14, 15), (4, 3, 3, 3), {"dilations": [2, 4], "pads": [2, 4, 2, 4]}),
    "3-d": ((1, 2, 6, 7, 8), (4, 2, 2, 3, 3), {"pads": [1, 0, 1, 0, 1, 1], "strides": [1, 2, 2]}),
    "3-d groups": ((2, 4, 5, 6, 6), (6, 2, 3, 3, 1), {"group": 2, "dilations": [1, 2, 1]}),
    "VALID": ((1, 3, 10, 9), (4, 3, 3, 4), {"auto_pad": "VALID", "strides": [2, 2]}),
    "SAME_UPPER": ((1, 3, 10, 9), (4, 3, 3, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "SAME_LOWER": ((1, 3, 10, 9), (4, 3, 3, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "SAME_UPPER without strides": ((1, 3, 7, 8), (2, 3, 4, 2), {"auto_pad": "SAME_UPPER"}),
    "SAME_LOWER 1-d": ((2, 3, 13), (2, 3, 4), {"auto_pad": "SAME_LOWER", "strides": [2]}),
    "SAME_UPPER 3-d": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 2, 2]}),
    "SAME_UPPER, long strides": (
        (1, 2, 9, 9),
        (3, 2, 1, 2),
        {"auto_pad": "SAME_UPPER", "strides": [3, 4]},
    ),
}


@pytest.mark.parametrize("bias", [False, True], ids=["without bias", "with bias"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, bias: bool) -> None:
    shape, kernel, attributes = CONVOLUTIONS[name]
    weights = {"w": normal(*kernel), **({"b": normal(kernel[0])} if bias else {})}
    x = normal(*shape)
    agree(one_node("Conv", x, weights, 13, **attributes), x)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_dilated_convolutions_of_the_same_size(auto_pad: str) -> None:
    """onnxruntime has no such ones: padding by numbers, as ONNX's text derives them, says the same."""
    x, weights = normal(1, 2, 11, 12), {"w": normal(3, 2, 3, 2)}
    made = one_node("Conv", x, weights, 13, auto_pad=auto_pad, dilations=[2, 3], strides=[2, 1])
    # ceil(11 / 2) = 6 rows need 5 * 2 + 5 - 11 = 4 more, 12 columns 11 + 4 - 12 = 3 more.
    pads = [2, 1, 2, 2] if auto_pad == "SAME_UPPER" else [2, 2, 2, 1]
    want = agree(one_node("Conv", x, weights, 13, pads=pads, dilations=[2, 3], strides=[2, 1]), x)
    got = np.asarray(evaluator(made).run(None, {"x": x})[0])
    assert got.shape == want.shape == (1, 3, 6, 12)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * float(np.abs(want).max()))


# ------------------------------------------------------------------------------------------------------- normalisation


def statistics(channels: int) -> dict[str, Array]:
    return {
        "scale": normal(channels),
        "bias": normal(channels),
        "mean": normal(channels) * np.float32(3),
        "var": np.abs(normal(channels)) + np.float32(0.1),
    }


@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 5), (2, 4, 5, 6), (1, 4, 3, 2, 2)], ids=str)
@pytest.mark.parametrize("opset", [7, 9, 12, 13, 14, 15])
def test_momentum_means_nothing_to_a_network_that_is_not_training(opset: int, shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    forms: list[dict[str, Any]] = [{"momentum": 0.9}, {"momentum": 0.1, "epsilon": 1e-2}, {}]
    for attributes in forms:
        agree(one_node("BatchNormalization", x, statistics(4), opset, **attributes), x)


def test_statistics_of_the_batch_are_no_part_of_it() -> None:
    """The onnx package's own code mixes them in at operator set 9. Once it does not, this fails: ours can go then."""
    x = normal(2, 4, 5) + np.float32(7)
    model = one_node("BatchNormalization", x, statistics(4), 9, momentum=0.9)
    want = agree(model, x)
    model = one_node("BatchNormalization", x, statistics(4), 9, momentum=0.9)
    packaged: Any = ReferenceEvaluator(model)
    plain = np.asarray(packaged.run(None, {"x": x})[0])
    assert not np.allclose(plain, want, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [(14, 3, {"training_mode": 1}), (14, 1, {"training_mode": 1}), (9, 5, {}), (6, 1, {"is_test": 0}), (6, 1, {})],
    ids=["three outputs", "training_mode", "five outputs", "is_test 0", "is_test left out"],
)
def test_training_is_refused(opset: int, outputs: int, attributes: dict[str, Any]) -> None:
    x = normal(3, 4, 5)
    model = one_node("BatchNormalization", x, statistics(4), opset, outputs, **attributes)
    with pytest.raises(NotImplementedError, match="training"):
        evaluator(model).run(None, {"x": x})


def test_is_test_of_operator_set_6_is_no_training() -> None:
    """onnxruntime begins at operator set 7, of which the node means the same without that attribute."""
    x, weights = normal(3, 4, 5), statistics(4)
    want = by_onnxruntime(one_node("BatchNormalization", x, weights, 7), x)
    got = evaluator(one_node("BatchNormalization", x, weights, 6, is_test=1)).run(None, {"x": x})[0]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * float(np.abs(want).max()))


def test_statistics_of_each_place_are_refused() -> None:
    """spatial = 0 has one mean per element of a sample, which nothing here has code for."""
    x = normal(2, 4, 5)
    weights = {name: np.repeat(value.reshape(-1, 1), 5, 1) for name, value in statistics(4).items()}
    with pytest.raises(NotImplementedError, match="spatial"):
        evaluator(one_node("BatchNormalization", x, weights, 7, spatial=0)).run(None, {"x": x})


# -------------------------------------------------------------------------------------------------------------- pooling


@pytest.mark.parametrize("shape", [(2, 3, 11), (2, 3, 5, 7), (1, 3, 4, 5, 6)], ids=["rank 3", "rank 4", "rank 5"])
@pytest.mark.parametrize("opset", [7, 13, 22])
def test_global_maxima_take_all_axes(shape: tuple[int, ...], opset: int) -> None:
    x = normal(*shape) - np.float32(20)  # all below 0: a 0 from anywhere would win
    model = one_node("GlobalMaxPool", x, {}, opset)
    model.ir_version = 10
    want = by_onnxruntime(model, x)
    got = np.asarray(evaluator(model).run(None, {"x": x})[0])
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(want, x.reshape(*shape[:2], -1).max(-1).reshape(want.shape))


# ---------------------------------------------------------------------------------------------------------- whole files


def test_a_path_and_inner_values(tmp_path: Path) -> None:
    """Files are read with weights that lie beside them; inner values of a model can be asked for."""
    x, w = normal(1, 3, 8, 8), normal(4, 3, 3, 3)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("GlobalMaxPool", ["c"], ["y"])]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", given, made, [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    want = by_onnxruntime(model, x)
    inner = np.asarray(evaluator(model, ["c"]).run(None, {"x": x})[0])
    np.testing.assert_allclose(inner.max((2, 3), keepdims=True), want, rtol=0, atol=1e-5)
    path = str(tmp_path / "m.onnx")
    onnx.save(model, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    got = np.asarray(evaluator(path).run(None, {"x": x})[0])
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)
