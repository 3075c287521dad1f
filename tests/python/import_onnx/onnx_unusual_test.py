"""ONNX files with content that is legal and rare: products of integers, constants and nodes of a kind that is not
imported and that nothing reads, outputs of nodes that are left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


def model_of(nodes: list[onnx.NodeProto], outputs: list[str], kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Of an input x of [6]."""
    graph = helper.make_graph(
        nodes,
        "unusual",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_nodes_that_nothing_needs_are_not_refused() -> None:
    """A text, what is made of it, and a branch that has one; the same nodes are refused where an output needs them."""
    text = helper.make_node("Constant", [], ["word"], value_string="cat")
    made = helper.make_node("StringNormalizer", ["word"], ["words"])
    longer = helper.make_node("Constant", [], ["list"], value_strings=["cat", "dog"])
    body = helper.make_graph([text], "body", [], [helper.make_tensor_value_info("word", TensorProto.STRING, [])])
    yes = helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True)))
    branch = helper.make_node("If", ["yes"], ["chosen"], then_branch=body, else_branch=body)
    relu = helper.make_node("Relu", ["x"], ["y"])
    feed = {"x": np.arange(-3, 3, dtype=np.float32)}
    for nodes in ([text, relu], [longer, relu], [text, made, relu], [relu, yes, branch]):
        program = pn.load(model_of(nodes, ["y"])).build(verify=False)
        assert pn.Session(program).run(feed)["y"].tolist() == [0, 0, 0, 0, 1, 2]
    assert pn.load(model_of([text, relu], ["y"])).build().metadata.verified.startswith("1 input")
    for nodes, output in (([text, relu], "word"), ([text, made, relu], "words"), ([yes, branch, relu], "chosen")):
        with pytest.raises(pn.ConversionError, match="cannot be imported"):
            pn.load(model_of(nodes, [output], TensorProto.STRING))


SPLIT = """
import sys
import numpy as np, onnx, pinnace as pn
program = pn.load(sys.argv[1]).build()
session = pn.Session(program, target="cpu")
print(program.metadata.verified_on["cpu"], *(session.run({"x": np.arange(6, dtype=np.float32)}).values()))
"""


@pytest.mark.parametrize("nested", [False, True])
def test_an_output_of_split_that_is_left_out(nested: bool, tmp_path: Path) -> None:
    """onnxruntime ends the process, whose verification a build is, where it sees one without a name."""
    sizes = helper.make_node("Constant", [], ["sizes"], value_ints=[1, 2, 3])
    split = helper.make_node("Split", ["x", "sizes"], ["a", "", "c"])
    nodes = [sizes, split]
    if nested:
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("a", "c")]
        body = helper.make_graph([sizes, split], "body", [], outputs)
        some = helper.make_node("Constant", [], ["zero"], value_floats=[0.0])
        total = helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0)
        more = helper.make_node("Greater", ["sum", "zero"], ["more"])
        flat = helper.make_node("Squeeze", ["more"], ["yes"])
        choice = helper.make_node("If", ["yes"], ["a", "c"], then_branch=body, else_branch=body)
        nodes = [some, total, more, flat, choice]
    onnx.save(model_of(nodes, ["a", "c"]), tmp_path / "split.onnx")
    done = subprocess.run(
        [sys.executable, "-c", SPLIT, str(tmp_path / "split.onnx")],
        env={**os.environ, "PYTHONPATH": str(Path(pn.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("yes")
    assert done.stdout.endswith("[0.] [3. 4. 5.]\n")
