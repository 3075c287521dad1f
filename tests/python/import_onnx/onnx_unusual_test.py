"""ONNX files with content that is legal and rare: products of integers, and constants of a kind that is not imported
and that nothing reads."""

from __future__ import annotations

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import TensorProto, helper, numpy_helper


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("turned", [False, True])
def test_gemm_of_integers(dtype: type, turned: bool, rng: np.random.Generator) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shapes = (2, 3), (4, 3) if turned else (3, 4), (4,)
    arrays: list[np.ndarray] = [rng.integers(0, 90, shape).astype(dtype) for shape in shapes]
    a, b, c = arrays
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transB=int(turned), alpha=2.0, beta=3.0)
    graph = helper.make_graph(
        [node],
        "integers",
        [helper.make_tensor_value_info("a", kind, a.shape)],
        [helper.make_tensor_value_info("y", kind, [2, 4])],
        [numpy_helper.from_array(b, "b"), numpy_helper.from_array(c, "c")],
    )
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(file, full_check=True)
    program = pn.load(file).build()
    want = 2 * (a @ (b.T if turned else b)) + 3 * c
    np.testing.assert_array_equal(pn.Session(program).run({"a": a})["y"], want)
    for factor in (0.5, np.inf, np.nan, 1e30):
        other = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transB=int(turned), alpha=factor)
        graph.node[0].CopyFrom(other)
        file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with pytest.raises(pn.ConversionError, match="factors of integers are whole numbers"):
            pn.load(file)


@pytest.mark.parametrize("read", [False, True])
def test_texts_that_nothing_reads(read: bool) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    if read:
        nodes.append(helper.make_node("Identity", ["words"], ["z"]))
    graph = helper.make_graph(
        nodes,
        "texts",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.array(["cat"], object), "words")],
    )
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if read:
        with pytest.raises(pn.ConversionError, match="'words': element type STRING"):
            pn.load(file)
    else:
        program = pn.load(file).build()
        assert pn.Session(program).run({"x": np.array([1, -1], np.float32)})["y"].tolist() == [1, 0]
