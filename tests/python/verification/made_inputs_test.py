"""Inputs that nobody gave: sizes found by the shape rules, contents by what the graph does with them, both recorded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import TensorProto, helper, numpy_helper
from pinnace import _core, cli
from pinnace.inputs.attempts import range_text
from pinnace.inputs.maker import InputMaker, seeded_inputs
from pinnace.inputs.size_search import TRIES, near_sizes, search

Inputs = dict[str, tuple[int, Sequence[int | str | None]]]
F, I64, BOOL, U8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8


def save(
    folder: Path, nodes: list[onnx.NodeProto], inputs: Inputs, outputs: dict[str, int], constants: dict[str, Any]
) -> str:
    """An ONNX file of these nodes; outputs by name with their element type."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "m.onnx"
    onnx.save(model, str(path))
    return str(path)


def made(model: pn.Model, seed: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    return InputMaker(model.inputs, model).make(seed=seed).made[0].arrays


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


# ---------------------------------------------------------------------------------------------------------------- sizes


def conv(folder: Path, shape: Sequence[int | str | None], size: int = 5) -> str:
    weight = np.ones((4, 3, size, size), np.float32) / size
    return save(folder, [node("Conv", "x w", "y")], {"x": (F, shape)}, {"y": F}, {"w": weight})


def test_sizes_fit_a_window(tmp_path: Path) -> None:
    """The smallest, then usual ones of pictures; the range is the program's and stands in the metadata."""
    program = pn.load(conv(tmp_path, ["n", 3, "h", "w"])).build()
    by_name = {d.name: d for d in program.inputs["x"].shape if isinstance(d, pn.Dim)}
    assert (by_name["h"].min, by_name["w"].min, by_name["n"].min) == (5, 5, 0)
    assert program.metadata["range.h"] == "at least 5"
    assert "range.n" not in program.metadata
    assert "float32[2,3,5,5]" in program.metadata["made_up.x"]
    assert "float32[1,3,224,224]" in program.metadata["made_up.x"]
    assert program.metadata["verified"].startswith("2 input(s)")
    with pytest.raises(pn.InvalidArgument, match="h"):
        pn.Session(program, "cpu").run({"x": np.zeros((1, 3, 4, 8), np.float32)})


def test_multiple_of(tmp_path: Path) -> None:
    """Halved twice and doubled twice, then added to what it was: sizes are multiples of 4."""
    nodes = [
        node("MaxPool", "x", "a", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxPool", "a", "b", kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", "b  scales", "c", mode="nearest"),
        node("Concat", "x c", "y", axis=1),
    ]
    nodes[2].input[:] = ["b", "", "scales"]
    constants = {"scales": np.array([1, 1, 4, 4], np.float32)}
    program = pn.load(save(tmp_path, nodes, {"x": (F, [1, 3, "h", "w"])}, {"y": F}, constants)).build()
    for dim in program.inputs["x"].shape[2:]:
        assert isinstance(dim, pn.Dim)
        assert (dim.min, dim.max, dim.multiple_of) == (4, None, 4)
    assert program.metadata["range.w"] == "at least 4, a multiple of 4"


def test_one_size_only_and_a_largest(tmp_path: Path) -> None:
    """A batch that a constant shape fixes; a sequence that a table of 40 places bounds."""
    nodes = [
        node("Reshape", "x one", "a"),
        node("Shape", "x", "s"),
        node("Gather", "s at", "length"),
        node("Slice", "table zero length zero", "places"),
        node("Add", "a places", "y"),
    ]
    constants: dict[str, Any] = {
        "one": np.array([1, -1, 3]),
        "at": np.array([1]),
        "zero": np.array([0]),
        "table": np.ones((40, 3), np.float32),
    }
    constants["one"] = np.array([1, -1, 3])
    path = save(tmp_path, nodes, {"x": (F, ["n", "t", 3])}, {"y": F}, constants)
    # With n = 2 the reshape gives 2 t rows, and the table t: no sum, unless t is 1.
    program = pn.load(path).build()
    by_name = {d.name: d for d in program.inputs["x"].shape if isinstance(d, pn.Dim)}
    assert by_name["t"].max == 40
    assert "at most 40" in program.metadata["range.t"]


def test_sums_of_sizes(tmp_path: Path) -> None:
    """The third size is the sum of the others, so that one alone cannot change: no range is claimed for it."""
    nodes = [node("Concat", "past x", "all", axis=0), node("Concat", "all mask", "y", axis=1)]
    inputs: Inputs = {"past": (F, ["p", 4]), "x": (F, ["s", 4]), "mask": (F, ["total", 1])}
    model = pn.load(save(tmp_path, nodes, inputs, {"y": F}, {}))
    arrays = made(model)
    assert arrays["past"].shape[0] + arrays["x"].shape[0] == arrays["mask"].shape[0]
    assert np.all(arrays["mask"] == 1)
    program = model.build()
    assert all(d.max is None for s in program.inputs.values() for d in s.shape if isinstance(d, pn.Dim))
    assert any("together" in v for k, v in program.metadata.items() if k.startswith("range."))


def test_equal_sizes_stay_together(tmp_path: Path) -> None:
    """Two names for one size: moved together, no range claimed, larger sizes of both still taken."""
    nodes = [node("Concat", "a b", "y", axis=1)]
    path = save(tmp_path, nodes, {"a": (F, ["n", 2]), "b": (F, ["m", 3])}, {"y": F}, {})
    program = pn.load(path).build()
    assert program.metadata["range.m"] == "changes together with n"
    out = pn.Session(program, "cpu").run({"a": np.ones((9, 2), np.float32), "b": np.ones((9, 3), np.float32)})
    assert out["y"].shape == (9, 5)


def test_a_range_that_depends_on_the_other_size_is_not_claimed(tmp_path: Path) -> None:
    """n m elements in rows of 6: with m = 2 only multiples of 3 pass, with m = 3 others do."""
    path = save(tmp_path, [node("Reshape", "x six", "y")], {"x": (F, ["n", "m"])}, {"y": F}, {"six": np.array([-1, 6])})
    program = pn.load(path).build()
    assert not [key for key in program.metadata if key.startswith("range.")]
    for shape in ((3, 2), (2, 3), (1, 6), (4, 9)):
        pn.Session(program, "cpu").run({"x": np.zeros(shape, np.float32)})


def test_other_sizes_to_verify_at_pass_the_rules(tmp_path: Path) -> None:
    """With an example of 8 and 32 rows neither 7 and 27 nor 7 alone is right; the rules say which pairs are."""
    nodes = [node("Concat", "x x x x", "four", axis=0), node("Add", "four z", "y")]
    path = save(tmp_path, nodes, {"x": (F, ["n", 3]), "z": (F, ["m", 3])}, {"y": F}, {})
    random = np.random.default_rng(1)
    example = {name: random.standard_normal((n, 3)).astype(np.float32) for name, n in (("x", 8), ("z", 32))}
    said = pn.load(path, example).build().metadata["verified.sizes"]
    found = re.match(r"yes: also at n = (\d+), m = (\d+), largest", said)
    assert found, said
    assert int(found[2]) in (1, 4 * int(found[1]))
    assert "the source cannot run at n = 7, m = 27: " in said


def test_near_sizes_are_bounded() -> None:
    """By tries; and rules that nothing passes give nothing."""
    dims = [pn.Dim(f"d{i}") for i in range(6)]
    specs = [pn.TensorSpec("x", np.dtype(np.float32), tuple(dims), None)]
    asked: list[Any] = []

    def rules(shapes: list[list[int]]) -> pn.ShapeTrial:
        asked.append(shapes)
        return pn.ShapeTrial(False, len(asked), "none")

    now, wanted = {d.name: 8 for d in dims}, {d.name: 7 for d in dims}
    assert near_sizes(specs, rules, now, wanted, {}, tries=50) == []
    assert len(asked) == 50
    all_fit = near_sizes(specs, lambda _: pn.ShapeTrial(True), now, wanted, {}, tries=50)
    assert now not in all_fit
    assert len({tuple(sizes.values()) for sizes in all_fit}) == len(all_fit) > 6


def test_linked_sizes_become_small_together(tmp_path: Path) -> None:
    """The third size does not keep two others, which have to be equal, at the size that all were found with."""
    nodes = [
        node("Concat", "a b", "both", axis=1),
        node("Reshape", "c eight", "groups"),
        node("ReduceMean", "groups", "mean", keepdims=0),
        node("Add", "both mean", "y"),
    ]
    inputs: Inputs = {"a": (F, ["n", 2]), "b": (F, ["m", 3]), "c": (F, ["t"])}
    path = save(tmp_path, nodes, inputs, {"y": F}, {"eight": np.array([-1, 24])})
    facts = pn.load(path).build().metadata
    assert facts["made_up.a"].startswith("float32[2,2]"), facts
    assert facts["made_up.b"].startswith("float32[2,3]")
    assert facts["made_up.c"].startswith("float32[24]")
    assert "float32[1,2]" in facts["made_up.a"]


def test_sizes_that_fail_at_run_time(tmp_path: Path) -> None:
    """No rule says that the place read must be there; the smallest sizes fail in the run, the usual ones do not."""
    nodes = [node("ReduceMax", "k", "top", keepdims=0), node("Gather", "x top", "y", axis=0)]
    nodes = [
        node("Cast", "k", "big", to=I64),
        node("Mul", "big hundred", "place"),
        node("Gather", "x place", "y", axis=0),
    ]
    path = save(tmp_path, nodes, {"x": (F, ["t"]), "k": (BOOL, [1])}, {"y": F}, {"hundred": np.array([100])})
    program = pn.load(path).build(examples=[{"k": np.array([True])}])
    assert "float32[16000]" in program.metadata["made_up.x"]
    assert program.metadata["verified"].startswith("1 input(s)")


# ---------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["?", "unk__7", "None", "-1", ""])
def test_names_that_say_nothing(tmp_path: Path, name: str) -> None:
    """Each place is a dimension of its own, and a note says so."""
    model = pn.load(conv(tmp_path, [name, 3, name, name]))
    dims = [d.name for d in model.inputs["x"].shape if isinstance(d, pn.Dim)]
    assert dims == ["x_dim0", "x_dim2", "x_dim3"]
    assert [n for n in model.notes if "x_dim0, x_dim2, x_dim3" in n] or not name
    assert model.build().metadata["range.x_dim2"] == "at least 5"


def test_a_name_that_says_nothing_is_kept_where_it_is_given_a_range(tmp_path: Path) -> None:
    model = pn.load(conv(tmp_path, [1, 3, "unk__7", "unk__7"]), symbols=[pn.Dim("unk__7", 8, 16)])
    assert model.inputs["x"].shape[2:] == (pn.Dim("unk__7", 8, 16),) * 2


def test_a_made_name_is_not_one_of_the_file(tmp_path: Path) -> None:
    nodes = [node("Concat", "x z", "y", axis=0)]
    path = save(tmp_path, nodes, {"x": (F, ["?", 2]), "z": (F, ["x_dim0", 2])}, {"y": F}, {})
    names = [s.shape[0].name for s in pn.load(path).inputs.values() if isinstance(s.shape[0], pn.Dim)]
    assert len(set(names)) == 2


def test_names_that_the_shapes_contradict(tmp_path: Path) -> None:
    """One name for 5 channels and for a batch that is reshaped to 1: no size is both."""
    nodes = [node("MatMul", "x w", "a"), node("Reshape", "a one", "y")]
    constants = {"w": np.ones((5, 2), np.float32), "one": np.array([1, 2])}
    model = pn.load(save(tmp_path, nodes, {"x": (F, ["N", "N"])}, {"y": F}, constants))
    assert [d.name for d in model.inputs["x"].shape if isinstance(d, pn.Dim)] == ["x_dim0", "x_dim1"]
    assert any("'N'" in n for n in model.notes)
    program = model.build()
    assert program.metadata["range.x_dim0"] == "1 only"
    assert program.metadata["range.x_dim1"] == "5 only"


def test_names_that_the_example_contradicts(tmp_path: Path) -> None:
    """What the caller gives wins over the file's names."""
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 6)).astype(np.float32)
    path = conv(tmp_path, ["b", 3, "size", "size"])
    assert pn.load(path).inputs["x"].shape[2] == pn.load(path).inputs["x"].shape[3]
    program = pn.load(path, {"x": x}).build()
    assert "made_up.x" not in program.metadata
    assert pn.Session(program, "cpu").run({"x": x})["y"].shape == (1, 4, 4, 2)


# ------------------------------------------------------------------------------------------------------------- contents


def test_indices_stay_below_what_they_index(tmp_path: Path) -> None:
    """Through casts, an offset and a reshape: ids + 2 read 9 rows; the second table has 2 rows; places count."""
    nodes = [
        node("Cast", "input_ids", "wide", to=I64),
        node("Add", "wide two", "shifted"),
        node("Gather", "words shifted", "a"),
        node("Gather", "kinds token_type_ids", "b"),
        node("Gather", "places position_ids", "c"),
        node("Sum", "a b c", "d"),
        node("Cast", "attention_mask", "m", to=F),
        node("Unsqueeze", "m last", "m3"),
        node("Mul", "d m3", "y"),
    ]
    ids: tuple[int, Sequence[int | str | None]] = (TensorProto.INT32, ["batch", "sequence"])
    wide: tuple[int, Sequence[int | str | None]] = (I64, ["batch", "sequence"])
    inputs: Inputs = {
        "input_ids": ids,
        "token_type_ids": wide,
        "position_ids": wide,
        "attention_mask": wide,
    }
    random = np.random.default_rng(1)
    constants = {
        "two": np.array(2),
        "last": np.array([2]),
        "words": random.standard_normal((9, 4)).astype(np.float32),
        "kinds": random.standard_normal((2, 4)).astype(np.float32),
        "places": random.standard_normal((6, 4)).astype(np.float32),
    }
    model = pn.load(save(tmp_path, nodes, inputs, {"y": F}, constants))
    for seed in range(1, 9):
        for one in InputMaker(model.inputs, model).make(seed=seed).made:
            arrays = one.arrays
            assert arrays["input_ids"].min() >= 0
            assert arrays["input_ids"].max() <= 6
            assert set(np.unique(arrays["token_type_ids"])) <= {0, 1}
            assert np.all(arrays["attention_mask"] == 1)
            length = arrays["position_ids"].shape[-1]
            assert np.array_equal(arrays["position_ids"][0], np.arange(length) % 6)
    used = {int(x) for seed in range(1, 30) for x in made(model, seed)["input_ids"].ravel()}
    assert used == set(range(7)), "every row that may be read is, by some seed"
    facts = model.build().metadata
    assert "from 0 to 6" in facts["made_up.input_ids"]
    assert "9" in facts["made_up.input_ids"]
    assert "mask" in facts["made_up.attention_mask"]


def test_floats_that_index_have_the_lengths_of_texts(tmp_path: Path) -> None:
    """Some writers declare ids as floats: they are whole numbers, and as many as in a sentence, not as in a sound."""
    nodes = [node("Cast", "x", "ids", to=TensorProto.INT32), node("Gather", "table ids", "y")]
    path = save(tmp_path, nodes, {"x": (F, ["b", "t"])}, {"y": F}, {"table": np.ones((5, 3), np.float32)})
    facts = pn.load(path).build().metadata["made_up.x"]
    assert facts.startswith("float32[2,2], from 0 to 4")
    assert "float32[1,16], from 0 to 4" in facts


@pytest.mark.parametrize(
    ("op", "inputs", "size", "attributes"),
    [
        ("GatherElements", "data i", 3, {"axis": 1}),
        ("GatherND", "data i", 3, {}),
        ("ScatterElements", "data i updates", 3, {"axis": 1}),
        ("OneHot", "i depth values", 7, {}),
    ],
)
def test_readers_of_indices(tmp_path: Path, op: str, inputs: str, size: int, attributes: dict[str, int]) -> None:
    """Each operator that indexes bounds its indices, and the build runs."""
    constants = {
        "data": np.arange(15, dtype=np.float32).reshape(5, 3),
        "updates": np.ones((5, 2), np.float32),
        "depth": np.array([7]),
        "values": np.array([0, 1], np.float32),
    }
    path = save(
        tmp_path,
        [node(op, inputs, "y", **attributes)],
        {"i": (I64, [5, 2])},
        {"y": F},
        {name: constants[name] for name in inputs.split() if name in constants},
    )
    model = pn.load(path)
    most = max(int(made(model, seed)["i"].max()) for seed in range(1, 12))
    assert most == size - 1
    model.build()


def test_flags_are_what_they_are_compared_with(tmp_path: Path) -> None:
    """A sampling rate that the graph asks for, and the next one it asks for with another seed."""
    nodes = [
        node("Equal", "sr high", "is_high"),
        node("Equal", "sr low", "is_low"),
        node("Where", "is_high x two", "a"),
        node("Where", "is_low a x", "y"),
    ]
    constants = {"high": np.array(16000), "low": np.array(8000), "two": np.array(2, np.float32)}
    model = pn.load(save(tmp_path, nodes, {"x": (F, [3]), "sr": (I64, [])}, {"y": F}, constants))
    assert {int(made(model, seed)["sr"]) for seed in (1, 2, 3)} == {16000, 8000, 16001}
    assert "16000, which it is compared with" in model.build().metadata["made_up.sr"]


def branches(folder: Path, compare: str = "Equal") -> str:
    """A branch for a rate of 16000, which takes 12 samples at least, and one for all others, which takes 6."""
    bodies = {}
    for branch, size in (("then_branch", 12), ("else_branch", 6)):
        weight = numpy_helper.from_array(np.ones((1, 1, size), np.float32), f"w{size}")
        nodes = [node("Conv", f"x w{size}", f"c{size}"), node("ReduceMax", f"c{size}", f"y{size}", axes=[2])]
        value = helper.make_tensor_value_info(f"y{size}", F, None)
        bodies[branch] = helper.make_graph(nodes, branch, [], [value], [weight])
    nodes = [node(compare, "sr rate", "c"), node("If", "c", "y", **bodies)]
    inputs: Inputs = {"x": (F, ["n", 1, "t"]), "sr": (I64, [])}
    return save(folder, nodes, inputs, {"y": F}, {"rate": np.array(16000)})


def test_sizes_fit_the_branch_that_is_taken(tmp_path: Path) -> None:
    """Each branch is verified, at sizes that are its own; what one of them takes is not out of range for the model."""
    model = pn.load(branches(tmp_path))
    for seed in range(1, 5):
        makings = InputMaker(model.inputs, model).make(seed=seed)
        for one in [*makings.made, *makings.branches]:
            least = 12 if one.arrays["sr"] == 16000 else 6
            assert one.arrays["x"].shape[2] >= least
    program = model.build()
    facts = program.metadata
    assert (
        facts["made_up.sr"] == "int64[], 16000, which it is compared with; int64[], 8000, which it is not compared with"
    )
    assert facts["made_up.x"].startswith("float32[2,1,12]")
    assert facts["range.t"] == "at least 6"
    assert facts["verified"].startswith("3 input(s)")
    assert "verified.paths" not in facts, "both branches ran"
    pn.Session(program, "cpu").run({"x": np.ones((1, 1, 7), np.float32), "sr": np.array(8000)})
    assert int(seeded_inputs(program.inputs, {}, 1, program)["sr"]) == 16000
    assert int(seeded_inputs(program.inputs, {}, 2, program)["sr"]) == 8000
    for seed in (1, 2, 3):
        pn.Session(program, "cpu").run(seeded_inputs(program.inputs, {}, seed, program))


def test_a_flag_that_is_given_decides_the_branch(tmp_path: Path) -> None:
    model = pn.load(branches(tmp_path))
    for rate, least in ((16000, 12), (44100, 6)):
        makings = InputMaker(model.inputs, model).make({"sr": np.array(rate)})
        assert makings.made[0].arrays["x"].shape == (2, 1, least)
        assert all(int(made.arrays["sr"]) == rate for made in [*makings.made, *makings.others()])


def test_flags_on_either_side_of_a_constant(tmp_path: Path) -> None:
    """Less than 16000 and not: the constant itself, and one less."""
    facts = pn.load(branches(tmp_path, "Less")).build().metadata
    assert "16000, which it is compared with" in facts["made_up.sr"]
    assert "15999" in facts["made_up.sr"]
    assert "verified.paths" not in facts


def test_contents_of_a_trial(tmp_path: Path) -> None:
    core = pn.load(branches(tmp_path))._core
    shapes = [[1, 1, 8], []]
    assert core.try_shapes(shapes)["fits"]
    assert core.try_shapes(shapes, contents=[(1, [8000])])["fits"]
    assert not core.try_shapes(shapes, contents=[(1, [16000])])["fits"]
    wrong: list[tuple[int, list[int]]] = [(0, [1]), (1, []), (1, [1, 2]), (2, [1])]
    for bad in wrong:
        with pytest.raises(pn.InvalidArgument):
            core.try_shapes(shapes, contents=[bad])


@pytest.mark.parametrize("turned", [False, True])
def test_bounds_of_what_is_selected(tmp_path: Path, turned: bool) -> None:
    """Of places with a frequency each, those from `low` to `high` count: normal values as bounds would leave none."""
    compare = [node("GreaterOrEqual", "hertz low", "a"), node("LessOrEqual", "hertz high", "b")]
    if turned:
        compare = [node("LessOrEqual", "low hertz", "a"), node("GreaterOrEqual", "high hertz", "b")]
    nodes = [*compare, node("And", "a b", "c"), node("Where", "c x nothing", "d"), node("ReduceMax", "d", "y")]
    inputs: Inputs = {"x": (F, ["n", 3]), "low": (F, []), "high": (F, [1])}
    constants = {"hertz": np.array([50, 100, 2000], np.float32), "nothing": np.float32(-np.inf)}
    facts = pn.load(save(tmp_path, nodes, inputs, {"y": F}, constants)).build().metadata
    assert facts["made_up.low"] == "float32[], 50, the least it bounds"
    assert facts["made_up.high"] == "float32[1], 2000, the greatest it bounds"
    assert not facts["verified"].startswith("inconclusive")


def test_a_threshold_is_no_bound_of_several(tmp_path: Path) -> None:
    """One constant says nothing of what is sensible; nor does a comparison with what is computed."""
    nodes = [node("Greater", "x t", "a"), node("Cast", "a", "b", to=F), node("Less", "t half", "c")]
    nodes += [node("Cast", "c", "d", to=F), node("Add", "b d", "y")]
    inputs: Inputs = {"x": (F, [3]), "t": (F, [])}
    model = pn.load(save(tmp_path, nodes, inputs, {"y": F}, {"half": np.float32(0.5)}))
    assert InputMaker(model.inputs, model).make().made[0].how["t"] == "float32[], normal values"


@pytest.mark.parametrize(("bias", "scale"), [(60.0, None), (0.0, "0.01")])
def test_outputs_that_normal_values_saturate(tmp_path: Path, bias: float, scale: str | None) -> None:
    """A sigmoid that is 1 for every normal value proves nothing; where smaller ones move it, they are tried as well."""
    nodes = [
        node("MatMul", "x w", "a"),
        node("Abs", "a", "b"),
        node("Add", "b bias", "c"),
        node("Sigmoid", "c", "y"),
    ]
    constants = {"w": np.full((8, 1), 3000, np.float32), "bias": np.float32(bias)}
    facts = pn.load(save(tmp_path, nodes, {"x": (F, [4, 8])}, {"y": F}, constants)).build().metadata
    if scale is None:
        assert facts["verified"].startswith("inconclusive: output 'y' does not move with the input")
        assert facts["made_up.x"] == "float32[4,8], normal values"
    else:
        assert facts["verified"].startswith("2 input(s)")
        assert facts["made_up.x"] == f"float32[4,8], normal values; float32[4,8], normal values times {scale}"


@pytest.mark.parametrize(("first", "size"), [(0, 3), (0, 257), (5, 100)])
def test_a_written_out_encoding_is_an_index(tmp_path: Path, first: int, size: int) -> None:
    """Bytes that are compared with each of 0, 1, 2, … for their row of a table, as jax writes a one-hot encoding."""
    nodes = [
        node("Unsqueeze", "bytes at1", "column"),
        node("Equal", "column classes", "is"),
        node("Cast", "is", "one_hot", to=F),
        node("MatMul", "one_hot table", "y"),
    ]
    table = np.random.default_rng(1).standard_normal((size, 4)).astype(np.float32)
    constants = {"classes": np.arange(first, first + size), "table": table, "at1": np.array([1])}
    model = pn.load(save(tmp_path, nodes, {"bytes": (I64, [2000])}, {"y": F}, constants))
    drawn = made(model)["bytes"]
    assert set(drawn.tolist()) <= set(range(first, first + size))
    assert len(set(drawn.tolist())) > 0.9 * size
    assert f"what has {size}" in model.build().metadata["made_up.bytes"]


def test_lengths_lie_within_the_sequence(tmp_path: Path) -> None:
    """Compared with places that the graph counts; or so called."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape one", "t"),
        node("Range", "zero t one", "places"),
        node("Unsqueeze", "n at1", "n2"),
        node("Less", "places n2", "inside"),
        node("Cast", "inside", "m", to=F),
        node("Mul", "x m", "y"),
    ]
    constants = {"zero": np.array(0), "one": np.array(1), "at1": np.array([1])}
    model = pn.load(save(tmp_path, nodes, {"x": (F, ["b", 12]), "n": (I64, ["b"])}, {"y": F}, constants))
    for seed in (1, 2, 3):
        lengths = made(model, seed)["n"]
        assert lengths[0] == 12
        assert lengths.min() >= 6
        assert lengths.max() <= 12
    model.build()
    nodes = [node("Cast", "x_lengths", "n", to=F), node("ReduceSum", "x", "s", keepdims=0), node("Mul", "s n", "y")]
    path = save(tmp_path, nodes, {"x": (F, [1, 9]), "x_lengths": (I64, [1])}, {"y": F}, {})
    assert made(pn.load(path))["x_lengths"][0] == 9


def test_lengths_that_are_sorted_lie_within_the_sequence(tmp_path: Path) -> None:
    """As torch exports packed sequences: also where the comparison with the source cuts the sequence to 1, which
    onnxruntime runs whatever the lengths are."""
    random = np.random.default_rng(0)
    nodes = [
        helper.make_node("TopK", ["n", "two"], ["sorted", "order"]),
        node("Cast", "sorted", "lens", to=TensorProto.INT32),
        helper.make_node("GRU", ["x", "w", "r", "", "lens"], ["", "y"], hidden_size=5),
    ]
    w, r = random.standard_normal((1, 15, 4)), random.standard_normal((1, 15, 5))
    constants = {"w": w.astype(np.float32), "r": r.astype(np.float32), "two": np.array([2])}
    path = save(tmp_path, nodes, {"x": (F, ["t", 2, 4]), "n": (I64, [2])}, {"y": F}, constants)
    model = pn.load(path)
    assert made(model)["n"].max() <= made(model)["x"].shape[0]
    model.build()
    example = {"x": random.standard_normal((6, 2, 4)).astype(np.float32), "n": np.array([6, 3])}
    sizes = pn.load(path, example).build().metadata["verified.sizes"]
    assert "at t = 5," in sizes
    assert "at t = 1," in sizes


def test_other_integers_and_bools(tmp_path: Path) -> None:
    """0 and 1; 8 bits whole; masks of True; sizes small and positive; floats that index hold whole numbers."""
    nodes = [
        node("Cast", "n", "a", to=F),
        node("Cast", "pixels", "b", to=F),
        node("Where", "key_mask a b", "c"),
        node("Cast", "place", "i", to=I64),
        node("Gather", "table i", "d"),
        node("Tile", "c times", "e"),
        node("Where", "flag e d", "y"),
    ]
    inputs: Inputs = {
        "n": (I64, [40]),
        "pixels": (U8, [40]),
        "key_mask": (BOOL, [40]),
        "place": (F, [1]),
        "times": (I64, [1]),
        "flag": (BOOL, [1]),
    }
    model = pn.load(save(tmp_path, nodes, inputs, {"y": F}, {"table": np.ones(11, np.float32)}))
    arrays = made(model)
    assert set(arrays["n"]) == {0, 1}
    assert arrays["pixels"].max() > 100
    assert arrays["key_mask"].all()
    assert arrays["place"][0] == int(arrays["place"][0])
    assert 0 <= arrays["place"][0] < 11
    assert arrays["times"][0] in (1, 2)
    assert {bool(made(model, seed)["flag"][0]) for seed in range(1, 12)} == {True, False}
    model.build()


def test_readers_in_nested_graphs(tmp_path: Path) -> None:
    """A branch reads a table by an index of the graph around it."""
    body = helper.make_graph(
        [node("Gather", "table i", "picked")], "then", [], [helper.make_tensor_value_info("picked", F, None)]
    )
    other = helper.make_graph(
        [node("Identity", "x", "same")], "else", [], [helper.make_tensor_value_info("same", F, None)]
    )
    nodes = [node("Equal", "flag seven", "c"), node("If", "c", "y", then_branch=body, else_branch=other)]
    inputs: Inputs = {"i": (I64, [3]), "flag": (I64, []), "x": (F, [3])}
    constants = {"table": np.arange(4, dtype=np.float32), "seven": np.array(7)}
    model = pn.load(save(tmp_path, nodes, inputs, {"y": F}, constants))
    assert max(int(made(model, seed)["i"].max()) for seed in range(1, 12)) == 3
    assert int(made(model)["flag"]) == 7
    model.build()


def test_what_is_given_wins(tmp_path: Path) -> None:
    """Sizes and contents of given arrays stay; only what they leave out is made up, at sizes that go with them."""
    nodes = [node("Gather", "table i", "a"), node("Add", "a x", "y")]
    constants = {"table": np.ones((5, 4), np.float32)}
    path = save(tmp_path, nodes, {"i": (I64, ["n"]), "x": (F, ["n", 4])}, {"y": F}, constants)
    given = np.array([4, 4, 4, 0, 1, 2, 3])
    program = pn.load(path, {"i": given}).build()
    assert "made_up.i" not in program.metadata
    assert program.metadata["made_up.x"].startswith("float32[7,4], normal values")
    feed = seeded_inputs(program.inputs, {"i": given}, 3, program)
    assert np.array_equal(feed["i"], given)
    assert feed["x"].shape == (7, 4)
    assert not np.array_equal(feed["x"], seeded_inputs(program.inputs, {"i": given}, 4, program)["x"])
    with pytest.raises(pn.InvalidArgument, match="integers cannot be guessed"):
        seeded_inputs(program.inputs)


def test_sizes_of_an_exported_example(tmp_path: Path) -> None:
    """A .pt2 says what its example had; integers that are all 0 there are drawn as any."""
    torch = pytest.importorskip("torch")

    class Embed(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(50, 8)

        def forward(self, ids: Any, x: Any) -> Any:
            return self.table(ids).sum(1) + x

    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=3)
    shapes = {"ids": {0: batch, 1: length}, "x": {0: batch}}
    example = (torch.zeros(3, 7, dtype=torch.long), torch.randn(3, 8))
    path = str(tmp_path / "m.pt2")
    torch.export.save(torch.export.export(Embed(), example, dynamic_shapes=shapes), path)
    facts = pn.load(path).build().metadata
    assert facts["made_up.ids"].startswith("int64[3,7], from 0 to 49")
    assert "made_up.x" not in facts, "the example's own"


# -------------------------------------------------------------------------------------------------------------- hostile


def unfitting(folder: Path, inputs: int) -> str:
    """Two dynamic dimensions an input, all of which stand side by side: once as they are, once with one made longer.

    The choices that a search has grow with the square of the inputs: with 200 they are over a million.
    """
    names = [f"x{i}" for i in range(inputs)]
    nodes = [
        node("Concat", " ".join(names), "a", axis=1),
        node("Pad", "x0 more", "longer"),
        node("Concat", " ".join(["longer", *names[1:]]), "b", axis=1),
        node("Concat", "a b", "y", axis=1),
    ]
    shapes: Inputs = {name: (F, [f"n{i}", f"m{i}"]) for i, name in enumerate(names)}
    return save(folder, nodes, shapes, {"y": F}, {"more": np.array([1, 0, 0, 0])})


def test_a_search_without_end_ends(tmp_path: Path) -> None:
    """By the number of tries, by time, and with the rule that stood longest."""
    model = pn.load(unfitting(tmp_path, 200))
    specs = list(model.inputs.values())
    found = search(specs, model.try_shapes, tries=300)
    assert found.smallest is None
    assert found.tried <= 300
    assert not found.complete
    start = time.monotonic()
    assert not search(specs, model.try_shapes, tries=10**9, seconds=0.5).complete
    assert time.monotonic() - start < 5
    with pytest.raises(pn.InvalidArgument, match=r"none passes every shape rule.*furthest got to: concat"):
        model.build()
    assert search(specs, model.try_shapes).tried <= TRIES


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends the search with 130, and leaves no file."""
    path, output = unfitting(tmp_path, 200), tmp_path / "m.pnc"
    code = (
        "import sys, pinnace.inputs.size_search as s; s.search.__kwdefaults__.update(tries=10**9, seconds=600.0);"
        "from pinnace.cli import main; print('ready', flush=True); sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "convert", path, "-o", str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert b"interrupted" in errors
    assert not output.exists()


def test_bad_calls(tmp_path: Path) -> None:
    """Shapes that are none of the inputs', and ranges that are none of the dimension's."""
    core = pn.load(conv(tmp_path, ["n", 3, "h", "w"]), symbols=[pn.Dim("n", 1, 8, 2)])._core
    for shapes in ([], [[1, 3, 8]], [[1, 4, 8, 8]], [[1, 3, -1, 8]], [[1, 3, 2**40, 2**40]]):
        with pytest.raises(pn.InvalidArgument):
            core.try_shapes(shapes)
    assert core.try_shapes([[1, 3, 4, 8]])["fits"] is False
    assert "conv" in core.try_shapes([[1, 3, 4, 8]])["failure"]
    assert core.try_shapes([[1, 3, 5, 8]], True)["values"]["y"][1] == [1, 4, 1, 4]
    narrow = core.with_ranges([("h", 5, None, 1), ("n", 2, 4, 4)])
    assert {s["name"]: (s["min"], s["max"], s["multiple_of"]) for s in narrow.symbols} == {
        "n": (2, 4, 4),
        "h": (5, None, 1),
        "w": (0, None, 1),
    }
    for bad in (("z", 1, 2, 1), ("n", 0, 8, 2), ("n", 1, 9, 2), ("n", 1, 8, 3), ("h", 5, 4, 1), ("h", 1, 3, 4)):
        with pytest.raises(pn.InvalidArgument):
            core.with_ranges([bad])


# --------------------------------------------------------------------------------------------------------- command line


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was made up is printed, and inspect shows it; --input takes its place."""
    path, output = conv(tmp_path, ["?", 3, "?", "?"]), str(tmp_path / "m.pnc")
    assert cli.main(["convert", path, "-o", output]) == 0
    errors = capsys.readouterr().err
    made_up, found = errors[errors.index("made up, ") :].split("sizes that the model takes")
    assert "\n  x: float32[2,3,5,5], normal values" in made_up
    assert "\n  x_dim2: at least 5\n  x_dim3: at least 5\n" in found
    assert cli.main(["inspect", output]) == 0
    assert "made_up.x: float32[2,3,5,5]" in capsys.readouterr().out
    assert cli.main(["run", output]) == 0
    assert "[1, 4, 220, 220]" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", np.ones((1, 3, 24, 20), np.float32))
    assert cli.main(["convert", path, "-o", output, "--input", f"x={tmp_path}/x.npy"]) == 0
    assert "made up" not in capsys.readouterr().err
    assert not [k for k in pn.Program.open(output).metadata if k.startswith("made_up.")]


def test_range_text() -> None:
    assert range_text(pn.Dim("d", 32, None, 8)) == "at least 32, a multiple of 8"
    assert range_text(pn.Dim("d", 1, 1)) == "1 only"
    assert range_text(pn.Dim("d", 0, 40)) == "at most 40"
    assert issubclass(pn.InvalidArgument, _core.Error)
