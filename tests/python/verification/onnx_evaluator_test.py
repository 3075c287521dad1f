"""ONNX's reference evaluator with operators of our own in it, against onnxruntime: what is held to be exact must be."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pinnace as pn
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


def onnx_itself(model: Any, feed: dict[str, Array]) -> Array:
    outputs: Any = ReferenceEvaluator(model).run(None, feed)
    return np.asarray(outputs[0])


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


TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1-d": ((2, 3, 9), (3, 4, 5), {"pads": [2, 1], "strides": [2]}),
    "1-d dilated": ((1, 4, 8), (4, 3, 3), {"dilations": [3], "group": 2, "pads": [0, 4]}),
    "2-d": ((2, 3, 5, 6), (3, 5, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 3]}),
    "2-d without attributes": ((1, 2, 6, 7), (2, 3, 3, 3), {}),
    "strides beyond the kernel": ((1, 2, 4, 5), (2, 3, 2, 1), {"strides": [3, 4]}),
    "more behind": ((1, 3, 5, 6), (3, 4, 3, 3), {"strides": [2, 3], "output_padding": [1, 2], "pads": [1, 1, 1, 1]}),
    "groups": ((2, 6, 5, 5), (6, 3, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    "depthwise": ((2, 5, 6, 7), (5, 1, 4, 4), {"group": 5, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "3-d": ((1, 2, 3, 4, 5), (2, 4, 2, 3, 3), {"pads": [1, 0, 1, 0, 1, 1], "strides": [1, 2, 2]}),
    "VALID": ((1, 3, 5, 4), (3, 4, 3, 4), {"auto_pad": "VALID", "strides": [2, 2]}),
    "SAME_UPPER": ((1, 3, 5, 4), (3, 4, 3, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    "SAME_LOWER": ((1, 3, 5, 4), (3, 4, 3, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
    "a given size": ((1, 3, 5, 4), (3, 4, 4, 4), {"output_shape": [9, 8], "strides": [2, 2]}),
    "a given size, SAME_UPPER": (
        (1, 3, 5, 4),
        (3, 4, 4, 4),
        {"output_shape": [9, 7], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ),
}


@pytest.mark.parametrize("bias", [False, True], ids=["without bias", "with bias"])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(name: str, bias: bool) -> None:
    shape, kernel, attributes = TRANSPOSED[name]
    weights = {"w": normal(*kernel), **({"b": normal(kernel[1] * attributes.get("group", 1))} if bias else {})}
    x = normal(*shape)
    agree(one_node("ConvTranspose", x, weights, 13, **attributes), x)


# ------------------------------------------------------------------------------------------------------------- elements


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min", None])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_scattered(axis: int, reduction: str | None) -> None:
    x = normal(4, 5, 6)
    indices = RANDOM.permuted(np.broadcast_to(np.arange(-4, 0), (3, 2, 4)), axis=2).swapaxes(2, axis)
    if reduction not in ("none", None):
        indices = indices // 2  # several to one place
    weights = {"at": indices, "updates": normal(*indices.shape)}
    attributes: dict[str, Any] = {"axis": axis, **({} if reduction is None else {"reduction": reduction})}
    model = one_node("ScatterElements", x, weights, 18, **attributes)
    np.testing.assert_array_equal(np.asarray(evaluator(model).run(None, {"x": x})[0]), by_onnxruntime(model, x))
    want = by_onnxruntime(model, x)
    exact = DoubleModel(model).run([x])[0]  # widens the model: last
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, want, rtol=0, atol=1e-5)


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


# ----------------------------------------------------------------------------------------------------------- detections


def boxes_of(count: int, batch: int = 1) -> Array:
    corner = RANDOM.random((batch, count, 2))
    return np.concatenate([corner, corner + 0.4 * RANDOM.random((batch, count, 2))], 2).astype(np.float32)


def suppression(boxes: Array, scores: Array, limits: list[Any], **attributes: Any) -> tuple[Any, dict[str, Array]]:
    """A model of one NonMaxSuppression whose last inputs are those limits, None: left out; and what it is given."""
    types = (np.int64, np.float32, np.float32)
    named = zip(("most", "overlap", "least"), limits, types, strict=False)
    constants = {name: np.array([value], dtype) for name, value, dtype in named if value is not None}
    names = ["boxes", "scores"]
    names += [n if n in constants else "" for n in ("most", "overlap", "least")[: len(limits)]]
    node = helper.make_node("NonMaxSuppression", names, ["y"], **attributes)
    feed = {"boxes": boxes, "scores": scores}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in feed.items()],
        [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7), feed


SUPPRESSIONS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "none asked for": ([], {}),
    "all without overlap": ([30], {}),
    "a limit of overlap": ([30, 0.3], {}),
    "few of each class": ([3, 0.3], {}),
    "a limit of scores": ([30, 0.3, 0.5], {}),
    "centres": ([30, 0.3, 0.2], {"center_point_box": 1}),
    "corners of any order": ([30, 0.3], {}),
    "no score is high enough": ([30, 0.3, 2.0], {}),
}


@pytest.mark.parametrize("name", SUPPRESSIONS)
def test_suppression_is_that_of_onnxruntime_and_of_onnx(name: str) -> None:
    limits, attributes = SUPPRESSIONS[name]
    boxes, scores = boxes_of(30, 2), RANDOM.random((2, 3, 30)).round(1).astype(np.float32)  # with equal scores
    if name == "corners of any order":
        boxes[:, ::2] = boxes[:, ::2, [2, 1, 0, 3]]
        boxes[:, ::3] = boxes[:, ::3, [0, 3, 2, 1]]
    boxes[:, 5, 2:] = 0.0 if attributes else boxes[:, 5, :2]  # a box without an area
    model, feed = suppression(boxes, scores, limits, **attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    want = np.asarray(session.run(None, feed)[0])
    got = np.asarray(evaluator(model).run(None, feed)[0])
    assert got.dtype == np.int64
    assert got.shape[1:] == (3,)
    np.testing.assert_array_equal(got, want.reshape(-1, 3))
    if len(limits) > 1:  # onnx's own asks for both
        np.testing.assert_array_equal(got, onnx_itself(model, feed))
    assert bool(got.size) == (name not in ("none asked for", "no score is high enough"))


def test_suppression_of_thousands_of_boxes_takes_no_minutes() -> None:
    model, feed = suppression(boxes_of(2000), RANDOM.random((1, 2, 2000)).astype(np.float32), [2000, 0.9])
    started = time.monotonic()
    assert len(evaluator(model).run(None, feed)[0]) > 1000
    assert time.monotonic() - started < 20


ALIGNMENTS: dict[str, tuple[int, dict[str, Any]]] = {
    "before operator set 16": (10, {"output_height": 3, "output_width": 2, "sampling_ratio": 2}),
    "half pixels": (16, {"output_height": 3, "output_width": 2, "sampling_ratio": 2}),
    "as many samples as fit": (16, {"output_height": 2, "output_width": 3}),
    "the largest": (16, {"output_height": 2, "output_width": 3, "mode": "max", "sampling_ratio": 2}),
    "a scale": (16, {"output_height": 4, "output_width": 4, "spatial_scale": 0.5, "sampling_ratio": 1}),
    "whole pixels": (16, {"coordinate_transformation_mode": "output_half_pixel", "output_height": 2}),
    "all left out": (16, {}),
}


@pytest.mark.parametrize("name", ALIGNMENTS)
def test_aligned_regions_are_those_of_onnxruntime_and_of_onnx(name: str) -> None:
    opset, attributes = ALIGNMENTS[name]
    corner = 12 * RANDOM.random((6, 2)) - 1.5
    rois = np.concatenate([corner, corner + 8 * RANDOM.random((6, 2))], 1).astype(np.float32)
    rois[0] = [-9, -9, -4, -5]  # outside
    rois[1] = [2, 2, 2, 2]  # a point
    model = one_node("RoiAlign", normal(2, 3, 9, 11), {"rois": rois, "at": np.array([0, 1, 1, 0, 1, 0])}, opset)
    model.graph.node[0].attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    x = normal(2, 3, 9, 11)
    agree(model, x)
    if opset >= 16:  # of older files, onnx's own takes the newer one's coordinates
        own = onnx_itself(model, {"x": x.astype(np.float64)})
        np.testing.assert_allclose(np.asarray(DoubleModel(model).run([x])[0]), own, rtol=1e-5, atol=1e-6)


# ----------------------------------------------------------------------------------------------------------------- time


def loop_of(rounds: int) -> Any:
    """x, doubled and halved in each round."""
    tensors = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y", "in", "out")}
    scalars = [helper.make_tensor_value_info("i", TensorProto.INT64, []), *(
        helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("going", "goes")
    )]  # fmt: skip
    body = helper.make_graph(
        [
            helper.make_node("Add", ["in", "in"], ["twice"]),
            helper.make_node("Mul", ["twice", "half"], ["out"]),
            helper.make_node("Identity", ["going"], ["goes"]),
        ],
        "body",
        [scalars[0], scalars[1], tensors["in"]],
        [scalars[2], tensors["out"]],
    )
    node = helper.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)
    constants = [numpy_helper.from_array(np.array(rounds), "rounds")]
    constants.append(numpy_helper.from_array(np.array(0.5, np.float32), "half"))
    graph = helper.make_graph([node], "g", [tensors["x"]], [tensors["y"]], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def test_a_run_in_float64_that_takes_too_long_ends_between_nodes_of_a_body() -> None:
    x = normal(4)
    started = time.monotonic()
    endless = DoubleModel(loop_of(10**9), seconds=0.3)
    for _ in range(2):
        with pytest.raises(pn.Unsupported, match=r"more than 0\.3 s in float64, before"):
            endless.run([x])
    with pytest.raises(pn.Unsupported, match=r"more than 0\.3 s in float64, before"):
        endless.layers([x], {"y"})
    assert time.monotonic() - started < 10
    np.testing.assert_array_equal(DoubleModel(loop_of(3), seconds=5.0).run([x])[0], x)
