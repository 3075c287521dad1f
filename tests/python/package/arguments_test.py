"""What public calls say of arguments of the wrong form, and that nothing is lost by them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
import torch
from onnx import TensorProto, helper
from pinnace import types
from pinnace.cli import main
from torch import nn


@pytest.mark.parametrize(
    "examples", [[torch.zeros(2, 3)], {"input": torch.zeros(2, 3)}, [(1,)], torch.zeros(2, 3), [3], 3]
)
def test_examples_of_another_form(examples: Any) -> None:
    model = pn.load(nn.Linear(3, 4), torch.zeros(2, 3))
    for verify in (True, False):
        with pytest.raises(
            pn.InvalidArgument, match="build: examples must be a list of dicts of input names and arrays"
        ):
            model.build(examples=examples, verify=verify)


@pytest.mark.parametrize(
    ("name", "outputs", "says"),
    [("", 1, "printable text"), ("a b", 1, "printable text"), ("a\0b", 1, "printable"), ("aud.z", 0, "0 outputs")],
)
def test_custom_operators_that_cannot_be(name: str, outputs: int, says: str) -> None:
    before = types.custom_op_names()
    with pytest.raises(pn.InvalidArgument, match=says):
        pn.custom_op(name, lambda inputs, attributes: inputs, lambda arrays, attributes: arrays, outputs=outputs)
    with pytest.raises(TypeError, match="must be text"):
        pn.custom_op(5, lambda inputs, attributes: inputs, lambda arrays, attributes: arrays)  # type: ignore[arg-type]
    assert types.custom_op_names() == before


def test_errors_with_nodes_travel_between_processes() -> None:
    class Exponential(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = torch.linalg.matrix_exp(x)
            return made

    with pytest.raises(pn.ConversionError) as caught:
        pn.load(Exponential(), torch.randn(3, 3))
    assert caught.value.nodes
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.deepcopy(caught.value)):
        assert str(again) == str(caught.value)
        assert [repr(node) for node in again.nodes] == [repr(node) for node in caught.value.nodes]


@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_made_up_divisors_are_not_zero(operator: str) -> None:
    def value(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.INT32, [4])

    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "z"], ["y"])], "g", [value("x"), value("z")], [value("y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    assert "divides by it" in str(pn.load(model).build().metadata["made_up.z"])


def test_the_output_is_none_of_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.export.save(torch.export.export(nn.Linear(3, 4).eval(), (torch.zeros(2, 3),)), "net.pt2")
    (tmp_path / "other.pt2").symlink_to("net.pt2")
    before = Path("net.pt2").read_bytes()
    for output in ("net.pt2", "other.pt2"):
        assert main(["convert", "net.pt2", "-o", output]) == 2
        assert Path("net.pt2").read_bytes() == before
    assert main(["convert", "net.pt2", "-o", "net.pnc", "--quiet"]) == 0


def test_precision_auto_is_judged_as_what_it_became() -> None:
    net = nn.Linear(64, 64).eval()
    x = torch.randn(2, 64)
    assert pn.compare(pn.load(net, x).build(), net, {"input": x}, targets=["cpu"], precision="auto").ok


def test_samples_with_a_negative_bit_are_what_torch_says() -> None:
    tensor = torch.complex(torch.zeros(2, 3), torch.ones(2, 3)).mH.imag
    assert tensor.is_neg()
    np.testing.assert_array_equal(pn.arrays.as_array(tensor), -np.ones((3, 2), np.float32))


class Delay(nn.Module):
    h: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        difference = x - self.h
        self.h = x
        return difference


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Delay, r"self\.h\.copy_\(x\)"),
        (lambda: nn.LazyLinear(4), "'weight' has no values yet: call the module once before it is loaded"),
        (lambda: nn.Sequential(torch.jit.script(nn.Linear(3, 4)), nn.ReLU()), "'0' is TorchScript"),
    ],
)
def test_what_to_change_in_a_module(make: Any, says: str) -> None:
    with pytest.raises(pn.ConversionError, match=says):
        pn.load(make(), torch.randn(3))


def test_tensors_without_values_are_no_inputs() -> None:
    """Of a FakeTensor torch hands out memory that nobody wrote."""
    session = pn.Session(pn.load(nn.ReLU(), torch.zeros(2)).build(), target="cpu")
    with torch._subclasses.fake_tensor.FakeTensorMode():
        fake = torch.ones(2)
    for value, says in ((fake, "a FakeTensor has no values"), (torch.ones(2, device="meta"), "meta")):
        with pytest.raises(pn.InvalidArgument, match=f"input 'input' is not an array: .*{says}"):
            session.run({"input": value})
    assert session.run({"input": torch.ones(2)})["relu"].tolist() == [1, 1]


def test_a_service_is_a_service() -> None:
    program = pn.load(nn.ReLU(), torch.zeros(2)).build()
    with pytest.raises(pn.InvalidArgument, match="service must be a Service, is int"):
        pn.Session(program, service=3)  # type: ignore[arg-type]


def test_an_output_that_an_onnx_file_lists_twice() -> None:
    """It is there once, and so in what the program is held against."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "twice", [x], [y, y])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = pn.load(file).build()
    assert list(program.outputs) == ["y"]
    comparison = pn.compare(program, file, [{"x": np.array([1, -1], np.float32)}])
    assert comparison.ok


def test_lists_of_names_are_lists() -> None:
    program = pn.load(nn.ReLU(), torch.zeros(2)).build()
    calls: dict[str, Callable[[], Any]] = {
        "keep must be a list of names, is 'relu'": lambda: pn.Session(program, keep="relu"),
        "target must be a list of names, is 3": lambda: pn.Session(program, target=3),  # type: ignore[arg-type]
        "target '' is empty": lambda: pn.Session(program, target=""),
        "diff: 'a.pnc' is no Program": lambda: pn.diff("a.pnc", program),  # type: ignore[arg-type]
        "symbols must be a list of Dim": lambda: pn.load(b"", symbols=["n"]),  # type: ignore[list-item]
        "example_kwargs must be arguments by name": lambda: pn.load(b"", example_kwargs="x"),  # type: ignore[arg-type]
    }
    for said, call in calls.items():
        with pytest.raises((pn.InvalidArgument, TypeError), match=said):
            call()
