"""What build() can be given beside targets: a tolerance of the verification, and names of inputs and outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from onnx import TensorProto, helper
from pinnace.agreement import tolerance_bounds
from pinnace.new_names import new_names
from torch import nn


class Scaled(nn.Module):
    """Off by `factor` in every element of its first output."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear = nn.Linear(6, 4)
        with torch.no_grad():
            self.linear.weight.mul_(factor)
            self.linear.bias.mul_(factor)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> Any:
        return self.linear(first), first - second


@pytest.fixture(scope="module")
def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(3, 6, generator=generator), torch.randn(3, 6, generator=generator)


@pytest.fixture(scope="module")
def model(inputs: tuple[torch.Tensor, torch.Tensor]) -> pn.Model:
    return pn.load(Scaled(), inputs)


# ---- tolerance


def test_a_wider_tolerance_lets_pass_what_the_stated_bounds_refuse(model: pn.Model) -> None:
    wrong = Scaled(1.005)
    with pytest.raises(pn.VerificationError, match=r"bound 0\.001"):
        model.build(reference=wrong)
    program = model.build(reference=wrong, tolerance=0.05)
    assert program.metadata["verified.cpu"].startswith("yes")
    assert program.metadata.tolerance == program.metadata["verified.tolerance"]
    assert program.metadata.tolerance.startswith("float32 0.05, ")
    assert "tolerance" not in program.metadata.verified_on
    assert pn.Program.from_bytes(program.to_bytes()).metadata.tolerance == program.metadata.tolerance
    by_type = model.build(reference=wrong, tolerance={"float32": 0.05})
    assert by_type.metadata.tolerance == "float32 0.05"


def test_a_narrower_tolerance_refuses_what_the_stated_bounds_let_pass(model: pn.Model) -> None:
    """By a tenth of the stated bound, and not as near to float64 as the source."""
    near = Scaled(1 + 5e-5)
    assert model.build(reference=near).metadata.tolerance == ""
    with pytest.raises(pn.VerificationError, match=r"bound 1e-0[56]"):
        model.build(reference=near, tolerance=1e-6)
    with pytest.raises(pn.VerificationError):
        model.build(reference=near, tolerance={"float32": 1e-6})
    assert model.build(reference=near, tolerance={"float16": 1e-6}).metadata.tolerance == "float16 1e-06"


def test_a_tolerance_does_not_touch_integers() -> None:
    class Counts(nn.Module):
        def __init__(self, offset: int) -> None:
            super().__init__()
            self.offset = offset

        def forward(self, x: torch.Tensor) -> Any:
            return (x > 0).sum(1) + 1000 + self.offset

    model = pn.load(Counts(0), torch.randn(4, 50))
    with pytest.raises(pn.VerificationError, match="integers"):
        model.build(reference=Counts(1), tolerance=0.1)
    assert model.build(reference=Counts(1), tolerance={"int64": 0.1}).metadata.tolerance == "int64 0.1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (-0.1, "is -0.1: must be at least 0 and below 1"),
        (float("nan"), "is nan: must be"),
        (float("inf"), "is inf: must be"),
        (1, "is 1: must be"),
        (0, "is 0, which floats cannot keep to"),
        (True, "bool, must be a number"),
        ("0.1", "str, must be a number"),
        ({"float32": "0.1"}, "tolerance for float32: str, must be a number"),
        ({"float16": 0.0}, "tolerance for float16 is 0, which floats cannot keep to"),
        ({"float32": float("nan")}, "tolerance for float32 is nan"),
        ({"f32": 0.1}, "'f32' is no dtype's name; those with bounds of their own are float32, float64, float16"),
        ({"int8": -1}, "tolerance for int8 is -1"),
        ([0.1], "list, must be a number"),
    ],
)
def test_nonsense_is_refused_as_a_tolerance(
    model: pn.Model, inputs: tuple[torch.Tensor, torch.Tensor], given: Any, said: str
) -> None:
    with pytest.raises(pn.InvalidArgument) as refusal:
        model.build(tolerance=given)
    assert said in str(refusal.value)
    program = model.build(verify=False)
    with pytest.raises(pn.InvalidArgument) as refusal:
        pn.compare(program, Scaled(), dict(zip(program.inputs, inputs, strict=True)), tolerance=given)
    assert said in str(refusal.value)


def test_tolerances_that_hold() -> None:
    assert tolerance_bounds(None) == {}
    assert tolerance_bounds(np.float64(0.5)) == dict.fromkeys(["float32", "float64", "float16", "bfloat16"], 0.5)
    assert tolerance_bounds({"int8": 0, "float8_e5m2": 0.25}) == {"int8": 0.0, "float8_e5m2": 0.25}


def test_a_comparison_reports_its_tolerance(model: pn.Model, inputs: tuple[torch.Tensor, torch.Tensor]) -> None:
    program = model.build()
    feed = dict(zip(program.inputs, inputs, strict=True))
    wrong = Scaled(1.005)
    assert not pn.compare(program, wrong, feed).ok
    wide = pn.compare(program, wrong, feed, tolerance=0.05)
    assert wide.ok
    assert json.loads(wide.to_json())["about"]["tolerance"].startswith("float32 0.05")
    assert "tolerance" in wide.to_html()
    assert "tolerance" not in pn.compare(program, Scaled(), feed).about


# ---- names


def test_inputs_and_outputs_are_renamed_in_order(model: pn.Model, inputs: tuple[torch.Tensor, torch.Tensor]) -> None:
    program = model.build(input_names=["image", "mask"], output_names=["logits", "difference"])
    assert list(program.inputs) == ["image", "mask"]
    assert list(program.outputs) == ["logits", "difference"]
    assert program.metadata["verified.cpu"].startswith("yes")
    assert list(model.inputs) == ["first", "second"]
    out = pn.Session(program, "cpu").run({"image": inputs[0], "mask": inputs[1]})
    np.testing.assert_array_equal(out["difference"], (inputs[0] - inputs[1]).numpy())
    same = pn.compare(program, Scaled(), {"image": inputs[0], "mask": inputs[1]})
    assert same.ok


def test_some_are_renamed_by_a_mapping(model: pn.Model, inputs: tuple[torch.Tensor, torch.Tensor]) -> None:
    old = list(model.outputs)
    program = model.build(input_names={"second": "mask"}, output_names={old[1]: "difference"})
    assert list(program.inputs) == ["first", "mask"]
    assert list(program.outputs) == [old[0], "difference"]
    swapped = model.build(input_names={"first": "second", "second": "first"})
    assert list(swapped.inputs) == ["second", "first"]
    out = pn.Session(swapped, "cpu").run({"second": inputs[0], "first": inputs[1]})
    np.testing.assert_array_equal(out[old[1]], (inputs[0] - inputs[1]).numpy())
    assert model.build(input_names={}).to_bytes() == model.build().to_bytes()


def test_examples_and_the_reference_go_by_the_models_names(
    model: pn.Model, inputs: tuple[torch.Tensor, torch.Tensor]
) -> None:
    """A reference with its arguments the other way round is called by name."""

    class Turned(Scaled):
        def forward(self, second: torch.Tensor, first: torch.Tensor) -> Any:  # type: ignore[override]
            return super().forward(first, second)

    example = {"first": inputs[0], "second": inputs[1]}
    program = model.build(examples=[example], input_names=["a", "b"])
    assert program.metadata["verified"].startswith("1 input(s)")
    with pytest.raises(pn.InvalidArgument, match=r"unknown \['a', 'b'\]"):
        model.build(examples=[{"a": inputs[0], "b": inputs[1]}], input_names=["a", "b"])
    turned = model.build(examples=[example], input_names={"first": "second", "second": "first"}, reference=Turned())
    assert turned.metadata["verified.cpu"].startswith("yes")


def test_what_is_made_up_is_told_by_the_new_names(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "relu.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    program = pn.load(path).build(input_names=["y"], output_names=["x"])  # the names of each other
    assert (list(program.inputs), list(program.outputs)) == (["y"], ["x"])
    assert list(program.metadata.made_up) == ["y"]
    assert list(pn.load(path).build(verify=False, input_names=["z"]).inputs) == ["z"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (["a"], "1 names for 2 inputs; the model's inputs are 'first', 'second'"),
        (["a", "b", "c"], "3 names for 2 inputs"),
        ([], "0 names for 2 inputs"),
        (["a", ""], "the name for input 'second' is empty"),
        (["a", "a"], "'a' would be the name of two inputs"),
        ({"first": "second"}, "'second' would be the name of two inputs"),
        ({"third": "a"}, "unknown 'third'; the model's inputs are"),
        (["a", "b\n"], r"'b\n', has characters that cannot be printed"),
        (["a", "\x1b[31mb"], "cannot be printed"),
        (["a", "b\x00"], "cannot be printed"),
        (["a", "b\udc80"], "cannot be printed"),
        (["a", "\u202eb"], "cannot be printed"),
        (["a", "b" * 201], "has 201 characters, 200 at most"),
        (["a", 3], "is int, must be text"),
        ({"first": None}, "is NoneType, must be text"),
        ("ab", "str, must be a list of names or a dict"),
        (7, "int, must be a list of names or a dict"),
    ],
)
def test_names_that_cannot_be_are_refused(model: pn.Model, wanted: Any, said: str) -> None:
    with pytest.raises(pn.InvalidArgument) as refusal:
        model.build(input_names=wanted)
    assert str(refusal.value).startswith("input_names: ")
    assert said in str(refusal.value)
    with pytest.raises(pn.InvalidArgument, match=r"^output_names: ") as refusal:
        new_names("output_names", "output", list(model.inputs), wanted)
    assert said.replace("input", "output") in str(refusal.value)


def test_names_are_text_of_any_language() -> None:
    assert new_names("input_names", "input", ["x"], ["größe 图/0:1"]) == ["größe 图/0:1"]
    assert new_names("input_names", "input", ["x", "y"], ("a", "y")) == ["a", "y"]
    assert new_names("input_names", "input", ["a\nb", "y"], {"y": "z"}) == ["a\nb", "z"], "old names stay as they are"
