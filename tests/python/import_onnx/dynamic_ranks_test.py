"""Squeeze without axes where sizes are dynamic: the rank of what follows depends on which of them are 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import TensorProto, helper, numpy_helper
from pinnace import cli

F = TensorProto.FLOAT


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=f"{op}_{output}", **attributes)


def save(
    folder: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Sequence[int | str]],
    declared: Sequence[int | str] | None,
    constants: dict[str, Any] | None = None,
) -> str:
    """A file of these nodes with the output y, of the shape that the file declares for it."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, F, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", F, declared)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    path = str(folder / "m.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def squeezed(folder: Path, declared: Sequence[int | str] | None, name: str = "n") -> str:
    return save(folder, [node("Squeeze", "x", "a"), node("Relu", "a", "y")], {"x": [name, 7, 1]}, declared)


def dims(model: pn.Model, name: str = "x") -> list[int | tuple[str, int]]:
    return [(d.name, d.min) if isinstance(d, pn.Dim) else int(d or 0) for d in model.inputs[name].shape]


def notes(model: pn.Model) -> str:
    return "\n".join(model.notes)


def test_sizes_from_two_on(tmp_path: Path) -> None:
    """The file declares two dimensions, as all sizes but 1 give: 1 is refused, and the note says so."""
    model = pn.load(squeezed(tmp_path, ["n", 7]))
    assert dims(model) == [("n", 2), 7, 1]
    assert "Dimension 'n' is taken to be at least 2: Squeeze 'Squeeze_a' names no axes" in notes(model)
    program = model.build()
    assert program.metadata["verified"].startswith("1 input(s)")
    assert "float32[2,7,1]" in program.metadata["made_up.x"]
    session = pn.Session(program, "cpu")
    assert session.run({"x": np.ones((5, 7, 1), np.float32)})["y"].shape == (5, 7)
    with pytest.raises(pn.InvalidArgument, match="n"):
        session.run({"x": np.ones((1, 7, 1), np.float32)})


def test_size_one(tmp_path: Path) -> None:
    """The file declares one dimension, as there is for size 1 alone."""
    model = pn.load(squeezed(tmp_path, [7]))
    assert dims(model) == [1, 7, 1]
    assert "Dimension 'n' is fixed to 1: Squeeze 'Squeeze_a' names no axes" in notes(model)
    program = model.build()
    assert program.metadata["made_up.x"].startswith("float32[1,7,1]")
    assert pn.Session(program, "cpu").run({"x": np.ones((1, 7, 1), np.float32)})["y"].shape == (7,)


@pytest.mark.parametrize("declared", [None, ["n", 7, 1, 1, 1]])
def test_where_the_file_does_not_help(tmp_path: Path, declared: Sequence[int | str] | None) -> None:
    """Without a declared shape, or with one that neither size gives: more sizes are better than one."""
    model = pn.load(squeezed(tmp_path, declared))
    assert dims(model) == [("n", 2), 7, 1]
    model.build()


def test_what_the_caller_says_wins(tmp_path: Path) -> None:
    path = squeezed(tmp_path, ["n", 7])
    one = pn.load(path, symbols=[pn.Dim("n", 1, 1)])
    assert dims(one) == [1, 7, 1]
    assert one.notes == []
    assert one.build().outputs["y"].shape == (7,)
    some = pn.load(squeezed(tmp_path, [7]), symbols=[pn.Dim("n", 2, 8)])
    assert dims(some) == [("n", 2), 7, 1]
    assert some.notes == []
    even = pn.load(path, symbols=[pn.Dim("n", 0, None, 2)])
    assert dims(even) == [("n", 0), 7, 1]
    with pytest.raises(pn.ConversionError, match="give 'n' the size 1, or a range without 1"):
        pn.load(path, symbols=[pn.Dim("n", 1, 8)])


def test_an_example_wins(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    path = squeezed(tmp_path, ["n", 7])
    one = pn.load(path, {"x": random.standard_normal((1, 7, 1)).astype(np.float32)})
    assert dims(one) == [1, 7, 1]
    assert "Dimension 'n' is fixed to 1, since the example has this size" in notes(one)
    assert one.build().metadata["verified"].startswith("1 input(s)")
    three = pn.load(path, [random.standard_normal((3, 7, 1)).astype(np.float32)])
    assert dims(three) == [("n", 2), 7, 1]
    assert three.build().metadata["verified.sizes"].startswith("yes: also at n = 2")


def test_only_one_fits(tmp_path: Path) -> None:
    """The file declares nothing, and what follows takes 7 elements: no size but 1 passes."""
    nodes = [node("Squeeze", "x", "a"), node("Reshape", "a seven", "y")]
    model = pn.load(save(tmp_path, nodes, {"x": ["n", 7, 1]}, None, {"seven": np.array([7])}))
    assert dims(model) == [1, 7, 1]
    assert "Dimension 'n' is fixed to 1, since no other size passes every shape rule" in notes(model)
    model.build()


def test_no_size_fits(tmp_path: Path) -> None:
    """Then the reason is the rule that none passes, and not the size."""
    nodes = [node("Squeeze", "x", "a"), node("Reshape", "a five", "y")]
    model = pn.load(save(tmp_path, nodes, {"x": ["n", 7, 1]}, None, {"five": np.array([5])}))
    with pytest.raises(pn.InvalidArgument, match="none passes every shape rule"):
        model.build()


def test_the_rest_of_the_file_asks_for_one(tmp_path: Path) -> None:
    """With two dimensions the file cannot be read at all: a transposition takes one."""
    nodes = [node("Squeeze", "x", "a"), node("Transpose", "a", "y", perm=[0])]
    model = pn.load(save(tmp_path, nodes, {"x": ["n", 7, 1]}, None))
    assert dims(model) == [1, 7, 1]
    assert "is fixed to 1" in notes(model)


def test_what_is_refused_for_another_reason(tmp_path: Path) -> None:
    nodes = [node("Squeeze", "x", "a"), node("NoSuchOperator", "a", "y")]
    with pytest.raises(pn.ConversionError, match="NoSuchOperator"):
        pn.load(save(tmp_path, nodes, {"x": ["n", 7, 1]}, [7]))


def test_a_size_that_is_computed(tmp_path: Path) -> None:
    """No range of an input says whether it is 1."""
    nodes = [node("NonZero", "x", "places"), node("Cast", "places", "a", to=F), node("Squeeze", "a", "y")]
    with pytest.raises(pn.ConversionError, match="dimension 1 is computed when the model runs"):
        pn.load(save(tmp_path, nodes, {"x": ["n"]}, None))


def test_in_a_branch(tmp_path: Path) -> None:
    """A nested graph knows the dimensions of the whole model."""
    shape = helper.make_tensor_value_info
    body = helper.make_graph([node("Squeeze", "x", "s")], "then", [], [shape("s", F, None)])
    other = helper.make_graph([node("Identity", "z", "t")], "else", [], [shape("t", F, None)])
    nodes = [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum zero", "c"),
        node("If", "c", "y", then_branch=body, else_branch=other),
    ]
    inputs: dict[str, Sequence[int | str]] = {"x": ["n", 3, 1], "z": ["n", 3]}
    model = pn.load(save(tmp_path, nodes, inputs, ["n", 3], {"zero": np.array(0, np.float32)}))
    assert dims(model) == [("n", 2), 3, 1]
    model.build()


def test_two_dimensions(tmp_path: Path) -> None:
    """Both are dynamic and both may be 1: none is, the first is, both are, as the file declares its output."""
    wanted: dict[tuple[str, ...], list[int | tuple[str, int]]] = {
        ("n", "m"): [("n", 2), ("m", 2), 1],
        ("m",): [1, ("m", 2), 1],
        (): [1, 1, 1],
    }
    for declared, expected in wanted.items():
        path = save(tmp_path, [node("Squeeze", "x", "y")], {"x": ["n", "m", 1]}, declared)
        model = pn.load(path)
        assert dims(model) == expected
        model.build()
    # Nothing else has one dimension, as what follows takes.
    nodes = [node("Squeeze", "x", "a"), node("Concat", "a z", "y", axis=0)]
    path = save(tmp_path, nodes, {"x": ["n", "m", 1], "z": [4]}, ["n4"])
    assert dims(pn.load(path)) == [1, ("m", 2), 1]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = squeezed(tmp_path, ["n", 7]), str(tmp_path / "m.pnc")
    assert cli.main(["convert", path, "-o", output]) == 0
    assert "note: Dimension 'n' is taken to be at least 2" in capsys.readouterr().err
    assert cli.main(["convert", path, "-o", output, "--dim", "n=1"]) == 0
    assert "note:" not in capsys.readouterr().err
