"""The NNAPI back end on values at the ends of what its operations can hold: bounds that exporters write for none,
float16 beyond the square root of its range, infinities, and one element beside images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from onnx import TensorProto, helper
from torch import Tensor, nn

GREATEST = float(np.finfo(np.float32).max)


def model_of(nodes: list[onnx.NodeProto], inputs: Mapping[str, np.ndarray], constants: Mapping[str, Any]) -> pn.Program:
    """Of the output y."""
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    made = [onnx.numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "extremes", given, [output], made)
    opsets = [helper.make_opsetid("", 18)]
    return pn.load(helper.make_model(graph, opset_imports=opsets, ir_version=8)).build(verify=False)


def answers(program: pn.Program, inputs: Mapping[str, np.ndarray], target: str) -> tuple[np.ndarray, list[str]]:
    """Its one output, and where its nodes ran."""
    session = pn.Session(program, target=target)
    return np.asarray(session.run(inputs)["y"]), [row.backend for row in session.placement]


VALUES = np.array([0.5, 1, 2, -3, 1e6, 0.001, 7, -8], np.float32)


@pytest.mark.parametrize("target", ["nnapi:27", "nnapi:28", "nnapi:29"])
@pytest.mark.parametrize(
    ("low", "high", "below_three"),
    [
        (0, GREATEST, "nnapi"),
        (-GREATEST, GREATEST, "nnapi"),
        (-GREATEST, 2, "nnapi"),
        (-200, 200, "nnapi"),
        (-65504, 65504, "cpu"),
        (-1e30, 0, "cpu"),
    ],
)
def test_bounds_of_clip(target: str, low: float, high: float, below_three: str) -> None:
    """Below feature level 3 bounds are taken off and added again, which costs the digits of smaller values."""
    node = helper.make_node("Clip", ["x", "low", "high"], ["y"])
    program = model_of([node], {"x": VALUES}, {"low": low, "high": high})
    got, ran = answers(program, {"x": VALUES}, target)
    np.testing.assert_allclose(got, VALUES.clip(low, high), rtol=2e-7, atol=4e-5)
    assert ran == ["nnapi" if target == "nnapi:29" else below_three]


@pytest.mark.parametrize("target", ["nnapi:28", "nnapi:29"])
@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize(
    ("other", "constant", "at_two"),
    [(np.float32(3), True, "nnapi"), (-1e30 + 0 * VALUES, True, "cpu"), (VALUES[::-1].copy(), False, "cpu")],
)
def test_larger_and_smaller(target: str, op: str, other: Any, constant: bool, at_two: str) -> None:
    for names in (["x", "b"], ["b", "x"]):
        given = {"x": VALUES} if constant else {"x": VALUES, "b": other}
        program = model_of([helper.make_node(op, names, ["y"])], given, {"b": other} if constant else {})
        got, ran = answers(program, given, target)
        want = np.maximum(VALUES, other) if op == "Max" else np.minimum(VALUES, other)
        np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-6)
        assert ran == ["nnapi" if target == "nnapi:29" else at_two]


@pytest.mark.parametrize("target", ["nnapi:28", "nnapi:29"])
@pytest.mark.parametrize(("value", "at_two"), [(-200, "nnapi"), (-GREATEST, "cpu"), (-np.inf, "cpu")])
def test_constants_of_pad(target: str, value: float, at_two: str) -> None:
    x = VALUES.reshape(2, 4)
    node = helper.make_node("Pad", ["x", "pads", "value"], ["y"])
    program = model_of(
        [helper.make_node("Constant", [], ["pads"], value_ints=[0, 1, 0, 0]), node], {"x": x}, {"value": value}
    )
    got, ran = answers(program, {"x": x}, target)
    np.testing.assert_allclose(got, np.pad(x, ((0, 0), (1, 0)), constant_values=value), rtol=2e-7, atol=4e-5)
    assert ran == ["nnapi" if target == "nnapi:29" else at_two]


HALF: dict[str, Callable[[], nn.Module]] = {
    "layer norm": lambda: nn.LayerNorm(8),
    "layer norm of a small epsilon": lambda: nn.LayerNorm(8, eps=1e-12),
    "rms norm": lambda: nn.RMSNorm(8, eps=1e-6),
    "group norm": lambda: nn.GroupNorm(2, 4),
    "instance norm": lambda: nn.InstanceNorm1d(4, affine=True),
}


class Norm(nn.Module):
    """The Euclidean length of rows."""

    def forward(self, x: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(x, dim=-1)
        return length


@pytest.mark.parametrize("target", ["nnapi:29", "nnapi:30"])
@pytest.mark.parametrize("name", [*HALF, "length"])
def test_squares_of_float16(name: str, target: str) -> None:
    """256 squared is beyond float16, and so is no row of equal values a division by zero."""
    module = (Norm() if name == "length" else HALF[name]()).half().eval()
    x = torch.randn(1, 4, 8) * 100
    x[0, 0, 3], x[0, 1] = 900, 2
    x = x.half()
    program = pn.load(module, (x,)).build(verify=False)
    session = pn.Session(program, target=target, fallback=False)
    (got,) = session.run(dict.fromkeys(session.inputs, x)).values()
    with torch.no_grad():
        want, exact = module(x), module.float()(x.float())
    assert np.isfinite(np.asarray(got, np.float32)).all()
    assert_agree(np.asarray(got), want.numpy(), exact=exact.numpy())


@pytest.mark.parametrize("target", ["nnapi:28", "nnapi:29", "nnapi:30"])
@pytest.mark.parametrize("function", [nn.functional.gelu, torch.erf])
def test_infinities(function: Callable[[Tensor], Tensor], target: str) -> None:
    class Of(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return function(x)

    x = torch.tensor([torch.inf, 1e20, 30.0, 6.5, 1.0, -1.0, -6.5, -30.0])
    want = function(x).numpy().copy()
    want[0] = 1 if function is torch.erf else np.inf  # torch's own gelu gives NaN for a part of such arrays
    program = pn.load(Of(), (x,)).build(verify=False)
    session = pn.Session(program, target=target)
    (got,) = session.run(dict.fromkeys(session.inputs, x)).values()
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("target", ["nnapi:27", "nnapi:29", "nnapi:30"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("inside", [False, True])
def test_one_element_beside_an_image(target: str, shape: tuple[int, ...], inside: bool) -> None:
    """The image stands channels last; what has fewer dimensions has no channels."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 3)

        def forward(self, x: Tensor, by: Tensor) -> Tensor:
            y = self.conv(x)
            made: Tensor = y * (by * 2 if inside else by)
            return made

    module = Scaled().eval()
    x, by = torch.randn(1, 2, 5, 6), torch.full(shape, 3.0)
    program = pn.load(module, (x, by)).build(verify=False)
    session = pn.Session(program, target=target, fallback=False)
    (got,) = session.run(dict(zip(session.inputs, (x, by), strict=True))).values()
    with torch.no_grad():
        assert_agree(np.asarray(got), module(x, by).numpy())


def test_tables_of_sizes_go_with_their_plan() -> None:
    """Each number of rows has its tables of ones and zeros, as large as the result."""
    x = np.arange(20_000, dtype=np.float32)[None]
    nodes = [
        helper.make_node("Greater", ["x", "c"], ["b"]),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    open_rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 20_000])
    constant = onnx.numpy_helper.from_array(np.array(3, np.float32), "c")
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "tables", [open_rows], [output], [constant])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    session = pn.Session(pn.load(file).build(verify=False), target="nnapi:30", fallback=False, plan_cache=1)
    used = []
    for rows in range(1, 41):
        session.run({"x": np.repeat(x, rows, 0)})
        used.append(shared_bytes())
    assert used[-1] < 50 << 20, used  # one plan of 40 rows has 25 MB, the tables of all of them 131 MB


def shared_bytes() -> int:
    """Memory of this process behind file descriptors that it has mapped."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssShmem")) << 10
