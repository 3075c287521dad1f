"""Sequences and optional values: what is in them is known at import, so that only tensors are left in the graph.

Models are written as text and compared with onnxruntime. What depends on data is refused by name.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pinnace as pn
import pytest
from agreeing import assert_agree
from pinnace import _core

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
Y = -X
P = np.array(-2, np.int64)

# name -> (inputs, nodes). Inputs are x, y, float[2,3,4], and p, an int64; the output is out.
MODELS = {
    "insert at the end and in the middle": """
        e = SequenceEmpty()
        s = SequenceInsert(e, x)
        t = SequenceInsert(s, y)
        i = Constant<value_int = 1>()
        z = Neg(x)
        u = SequenceInsert(t, z, i)
        j = Constant<value_int = -2>()
        out = SequenceAt(u, j)""",
    "insert counted from the back": """
        s = SequenceConstruct(x, y)
        z = Exp(x)
        i = Constant<value_int = -1>()
        t = SequenceInsert(s, z, i)
        out = ConcatFromSequence<axis = 0>(t)""",
    "erase the last and the first": """
        z = Exp(y)
        s = SequenceConstruct(x, z, y)
        t = SequenceErase(s)
        i = Constant<value_int = 0>()
        u = SequenceErase(t, i)
        out = ConcatFromSequence<axis = -1>(u)""",
    "concat with a new axis at the end": """
        s = SequenceConstruct(x, y)
        out = ConcatFromSequence<axis = -1, new_axis = 1>(s)""",
    "concat with a new axis inside": """
        s = SequenceConstruct(x, y, x)
        out = ConcatFromSequence<axis = 1, new_axis = 1>(s)""",
    "split into ones and back": """
        s = SplitToSequence<axis = -2>(x)
        out = ConcatFromSequence<axis = 2>(s)""",
    "split without the dimension": """
        s = SplitToSequence<axis = 1, keepdims = 0>(x)
        out = ConcatFromSequence<axis = 0, new_axis = 1>(s)""",
    "split into equal pieces, the last smaller": """
        two = Constant<value_int = 2>()
        s = SplitToSequence<axis = 1>(x, two)
        i = Constant<value_int = -1>()
        out = SequenceAt(s, i)""",
    "split into pieces of given sizes": """
        sizes = Constant<value_ints = [1, 3]>()
        s = SplitToSequence<axis = 2>(x, sizes)
        i = Constant<value_int = 1>()
        out = SequenceAt(s, i)""",
    "length": """
        s = SplitToSequence<axis = 2>(x)
        n = SequenceLength(s)
        out = Add(n, p)""",
    "a position known at run time": """
        z = Exp(y)
        s = SequenceConstruct(x, y, z)
        out = SequenceAt(s, p)""",
    "the same sequence under another name": """
        s = SequenceConstruct(x, y)
        t = Identity(s)
        i = Constant<value_int = 1>()
        out = SequenceAt(t, i)""",
    "map over a sequence and a tensor": """
        s = SequenceConstruct(x, y)
        t = SequenceMap(s, y) <body = each (float[2,3,4] a, float[2,3,4] b) => (float[2,3,4] c) {
            d = Mul(a, x)
            c = Add(d, b)
        }>
        out = ConcatFromSequence<axis = 1>(t)""",
    "map over two sequences, two outputs": """
        s = SequenceConstruct(x, y)
        t = SequenceConstruct(y, y)
        u, v = SequenceMap(s, t) <body = each (float[2,3,4] a, float[2,3,4] b) => (float[2,3,4] c, float[2,3,4] d) {
            c = Add(a, b)
            d = Mul(a, b)
        }>
        i = Constant<value_int = 0>()
        f = SequenceAt(u, i)
        g = ConcatFromSequence<axis = 0>(v)
        out = Concat<axis = 0>(f, g)""",
    "map over nothing": """
        s = SequenceEmpty()
        t = SequenceMap(s) <body = each (float[2] a) => (float[2] c) { c = Neg(a) }>
        out = SequenceLength(t)""",
    "a branch reads a sequence of the graph around it": """
        s = SequenceConstruct(x, y)
        zero = Constant<value_int = 0>()
        go = Less(p, zero)
        i = Constant<value_int = 1>()
        out = If(go) <then_branch = t () => (float[2,3,4] a) { a = SequenceAt(s, i) },
                      else_branch = e () => (float[2,3,4] b) { b = SequenceAt(s, zero) }>""",
    "a branch that is known passes a sequence out": """
        s = SequenceConstruct(x, y)
        go = Constant<value = bool {1}>()
        u = If(go) <then_branch = t () => (seq(float[2,3,4]) a) { a = SequenceErase(s) },
                    else_branch = e () => (seq(float[2,3,4]) b) { b = Identity(s) }>
        out = ConcatFromSequence<axis = 0>(u)""",
    "an optional tensor": """
        o = Optional(x)
        has = OptionalHasElement(o)
        out = If(has) <then_branch = t () => (float[2,3,4] a) { a = OptionalGetElement(o) },
                       else_branch = e () => (float[2,3,4] b) { b = Identity(y) }>""",
    "an optional sequence": """
        s = SequenceConstruct(x, y)
        o = Optional(s)
        t = OptionalGetElement(o)
        out = ConcatFromSequence<axis = 0>(t)""",
    "a tensor counts as an optional value": """
        has = OptionalHasElement(x)
        got = OptionalGetElement(x)
        out = Where(has, got, y)""",
}

# name -> (nodes, operator that is refused, part of the reason)
REFUSED = {
    "insert at run time": (
        "s = SequenceConstruct(x, y)\n t = SequenceInsert(s, x, p)\n out = ConcatFromSequence<axis = 0>(t)",
        "ai.onnx.SequenceInsert",
        "the position must be known",
    ),
    "erase at run time": (
        "s = SequenceConstruct(x, y)\n t = SequenceErase(s, p)\n out = ConcatFromSequence<axis = 0>(t)",
        "ai.onnx.SequenceErase",
        "the position must be known",
    ),
    "elements of several shapes at run time": (
        "z = Concat<axis = 0>(x, y)\n s = SequenceConstruct(x, z)\n out = SequenceAt(s, p)",
        "ai.onnx.SequenceAt",
        "elements of one shape",
    ),
    "a position beyond the end": (
        "s = SequenceConstruct(x, y)\n i = Constant<value_int = 2>()\n out = SequenceAt(s, i)",
        "ai.onnx.SequenceAt",
        "the position must be from -2 to 1",
    ),
    "erase from nothing": (
        "s = SequenceEmpty()\n t = SequenceErase(s)\n out = SequenceLength(t)",
        "ai.onnx.SequenceErase",
        "in a sequence of 0",
    ),
    "concat of nothing": (
        "s = SequenceEmpty()\n out = ConcatFromSequence<axis = 0>(s)",
        "ai.onnx.ConcatFromSequence",
        "no element",
    ),
    "elements of two types": (
        "s = SequenceConstruct(x, p)\n out = SequenceLength(s)",
        "ai.onnx.SequenceConstruct",
        "of one type",
    ),
    "a tensor where a sequence is needed": (
        "out = SequenceLength(x)",
        "ai.onnx.SequenceLength",
        "input 0 must be a sequence: float32[2,3,4]",
    ),
    "a sequence where a tensor is needed": (
        "s = SequenceConstruct(x, y)\n out = Neg(s)",
        "ai.onnx.Neg",
        "not supported as its inputs, only tensors: s",
    ),
    "sizes of pieces at run time": (
        "s = SplitToSequence(x, p)\n out = SequenceLength(s)",
        "ai.onnx.SplitToSequence",
        "the size of pieces must be known",
    ),
    "pieces of size 0": (
        "n = Constant<value_int = 0>()\n s = SplitToSequence(x, n)\n out = SequenceLength(s)",
        "ai.onnx.SplitToSequence",
        "a size of 1 or more: 0",
    ),
    "a map over sequences of two lengths": (
        """s = SequenceConstruct(x, y)
           t = SequenceConstruct(x)
           u = SequenceMap(s, t) <body = each (float[2,3,4] a, float[2,3,4] b) => (float[2,3,4] c) { c = Add(a, b) }>
           out = ConcatFromSequence<axis = 0>(u)""",
        "ai.onnx.SequenceMap",
        "the length of the first, 2: 1",
    ),
    "what is not in an optional value": (
        "o = Optional<type = float[2]>()\n out = OptionalGetElement(o)",
        "ai.onnx.OptionalGetElement",
        "it is empty",
    ),
    "a sequence that leaves the graph": ("out = SequenceConstruct(x, y)", "output", "cannot leave a graph"),
    "a sequence that leaves a branch at run time": (
        """zero = Constant<value_int = 0>()
           go = Less(p, zero)
           s = If(go) <then_branch = t () => (seq(float[2,3,4]) a) { a = SequenceConstruct(x) },
                       else_branch = e () => (seq(float[2,3,4]) b) { b = SequenceConstruct(y) }>
           out = ConcatFromSequence<axis = 0>(s)""",
        "output",
        "cannot leave a graph",
    ),
}


def _save(nodes: str, folder: pathlib.Path) -> tuple[pathlib.Path, onnx.ModelProto]:
    header = '<ir_version: 8, opset_import: ["" : 18]>\nm (float[2,3,4] x, float[2,3,4] y, int64 p) => (out)'
    model = onnx.parser.parse_model(f"{header} {{\n{nodes}\n}}")
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path, model


def _expected(model: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": X, "y": Y, "p": P})[0])


def _feeds(path: pathlib.Path) -> dict[str, Any]:
    given = {"x": X, "y": Y, "p": P}
    return {name: given[name] for name in pn.Session(pn.load(path).build(verify=False)).inputs}


@pytest.mark.parametrize("name", MODELS)
def test_sequence(name: str, tmp_path: pathlib.Path) -> None:
    path, model = _save(MODELS[name], tmp_path)
    expected = _expected(model)
    feeds = _feeds(path)
    program = pn.load(path).build(verify=False)
    ((reference,),) = _core.run_model_reference(str(path), [list(feeds.values())])
    for got in (reference, pn.Session(program).run(feeds)["out"]):
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        assert_agree(got, expected)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str, tmp_path: pathlib.Path) -> None:
    nodes, operator, reason = REFUSED[name]
    path, _ = _save(nodes, tmp_path)
    with pytest.raises(pn.ConversionError, match="cannot be imported") as caught:
        pn.load(path)
    assert [row.op for row in caught.value.nodes][:1] == [operator]
    assert reason in str(caught.value)


def test_keepdims_is_ignored_where_sizes_are_given(tmp_path: pathlib.Path) -> None:
    """As ONNX's text says; onnxruntime fails."""
    nodes = "n = Constant<value_ints = [1, 2]>()\n s = SplitToSequence<axis = 1, keepdims = 0>(x, n)\n"
    path, _ = _save(nodes + "i = Constant<value_int = 0>()\n out = SequenceAt(s, i)", tmp_path)
    out = pn.Session(pn.load(path).build(verify=False)).run(_feeds(path))["out"]
    np.testing.assert_array_equal(out, X[:, :1])


def test_a_position_outside_the_sequence_is_an_error_at_run_time(tmp_path: pathlib.Path) -> None:
    path, _ = _save(MODELS["a position known at run time"], tmp_path)
    session = pn.Session(pn.load(path).build(verify=False))
    for position in (-3, 2):
        session.run({"x": X, "y": Y, "p": np.array(position, np.int64)})
    for position in (-4, 3):
        with pytest.raises(pn.InvalidArgument):
            session.run({"x": X, "y": Y, "p": np.array(position, np.int64)})


@pytest.mark.parametrize(
    ("kind", "text"), [("seq(float[2])", "a sequence"), ("optional(float[2])", "an optional value")]
)
def test_inputs_must_be_tensors(kind: str, text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : 18]> m ({kind} given) => (bool out)'
            "{ out = OptionalHasElement(given) }"
        ),
        path,
    )
    with pytest.raises(pn.ConversionError, match=f"'given': only tensors can be inputs: {text}"):
        pn.load(path)
