"""build() on networks that are quantised inside: right conversions pass although two right implementations round a few
values apart, and outputs of another network do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
import torch
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from pinnace.agreement import BOUNDS, agreement
from pinnace.program import Program
from pinnace.sources.onnx_file import OnnxSource
from pinnace.verify.dataflow import Dataflow
from pinnace.verify.quantized_allowance import QuantizedAllowance
from pinnace.verify.reference_runs import NUDGE, ReferenceRun
from pinnace.verify.verification import verify_program
from torch import nn

Array = np.ndarray[Any, Any]


class Batches(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, batches: Sequence[Array]) -> None:
        self.left = [{"x": b} for b in batches]

    def get_next(self) -> dict[str, Array] | None:
        return self.left.pop() if self.left else None


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Array]:
    """A QDQ model of convolutions with a residual, deep enough that units of 8 bits add up, and an input."""
    folder = tmp_path_factory.mktemp("quantised")

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 16, 3, padding=1)
            self.inner = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(6))
            self.head = nn.Linear(16, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.first(x))
            for conv in self.inner:
                x = torch.relu(x + conv(x))
            y: torch.Tensor = self.head(x.mean((2, 3)))
            return y

    torch.manual_seed(3)
    random = np.random.default_rng(3)
    batches = [random.standard_normal((1, 3, 16, 16)).astype(np.float32) for _ in range(4)]
    net = Net().eval()
    torch.onnx.export(
        net, (), folder / "float.onnx", kwargs={"x": torch.from_numpy(batches[0])}, dynamo=True, verbose=False
    )
    quantize_static(
        folder / "float.onnx",
        folder / "model.onnx",
        Batches(batches[1:]),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return folder / "model.onnx", batches[0]


def rounds(program: Program) -> bool:
    return any(Dataflow(program).origins(name).roundings for name in program.outputs)


def test_a_quantised_network_is_verified(model: tuple[Path, Array]) -> None:
    path, x = model
    program = pn.load(path, {"x": x}).build()
    assert rounds(program)
    assert program.metadata["verified.cpu"].startswith("yes")


def test_outputs_of_another_network_are_refused(model: tuple[Path, Array]) -> None:
    path, x = model
    program: Program = pn.load(path, {"x": x}).build(verify=False)

    class Another:
        description = "another network"

        def __init__(self) -> None:
            self.source = OnnxSource(str(path))

        def run(self, inputs: Sequence[Array]) -> list[Array]:
            return [y[:, ::-1].copy() for y in self.source.run(inputs)]

        def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
            return {}

    with pytest.raises(pn.VerificationError, match="differs by"):
        verify_program(program, Another(), [{"x": x}], ["cpu"])


def test_a_wrong_layer_is_refused_at_its_own_integers(model: tuple[Path, Array], tmp_path: Path) -> None:
    """A weight's scale of 1.03 moves few integers by more than a step, and is hidden by no tie before it."""
    path, x = model
    wrong = onnx.load(path)
    scales = [i for i in wrong.graph.initializer if i.name.endswith("weight_scale")]
    for scale in scales[3:4]:
        scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(1.03), scale.name))
    assert scales[3:4]
    onnx.save(wrong, tmp_path / "wrong.onnx")
    program = pn.load(tmp_path / "wrong.onnx", {"x": x}).build(verify=False)
    with pytest.raises(pn.VerificationError, match="differs by"):
        verify_program(program, OnnxSource(str(path)), [{"x": x}], ["cpu"])


def test_a_float_network_keeps_its_bound(tmp_path: Path) -> None:
    """The wider bound is for what rounds inside only."""
    x = torch.randn(2, 8)
    program = pn.load(nn.Linear(8, 4).eval(), {"input": x}).build(verify=False)
    assert not rounds(program)


class OfIntegers:
    """A source whose outputs are given, and whose integers are the program's but for a change of one value."""

    def __init__(self, outputs: list[Array], change: Callable[[Array], None]) -> None:
        self.outputs, self.change = outputs, change

    def with_values(self, inputs: Sequence[Array], kept: dict[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        own = {name: value.copy() for name, value in kept.items()}
        self.change(next(iter(own.values())).reshape(-1))
        return self.outputs, own


def moved(count: int, step: int) -> Callable[[Array], None]:
    """So many places of a value, towards the middle of its type, where a step always has room."""

    def change(value: Array) -> None:
        middle = 0 if value.dtype.kind == "i" else 128
        value[:count] += np.where(value[:count] > middle, -step, step).astype(value.dtype)

    return change


@pytest.mark.parametrize(
    ("count", "step", "factor", "said"),
    [
        (1, 1, 1.05, ""),
        (96, 1, 1.05, ""),
        (97, 1, 1.05, "1 steps at most, in 97 of 768 places"),
        (1, 2, 1.05, "2 steps at most, in 1 of 768 places"),
        (1, 1, 1.2, "which excuse 0.1 at most"),
        (0, 1, 1.05, ""),
    ],
)
def test_ties_excuse_what_they_can(model: tuple[Path, Array], count: int, step: int, factor: float, said: str) -> None:
    """One step in one of eight places, and a tenth of the output."""
    path, x = model
    program = pn.load(path, {"x": x}).build(verify=False)
    (got,) = pn.Session(program, "cpu").run({"x": x}).values()
    source: Any = OfIntegers([got], moved(count, step))
    allowance = QuantizedAllowance(program, Dataflow(program), source, [x], "cpu", "fp32")
    found = allowance.judge(0, got, agreement(got, got * np.float32(factor)), BOUNDS)
    assert found.ok == (not said)
    assert said in found.why
    if found.ok:
        assert (f"ties round to the other side ({count} of 768 of 'x" in found.note) == (count > 0), found.note
    source.outputs = [got * np.float32(1.01)]
    allowance = QuantizedAllowance(program, Dataflow(program), source, [x], "cpu", "fp32")
    assert not allowance.judge(0, got, agreement(got, got * np.float32(factor)), BOUNDS).ok, "wrong after the integers"


class Stepping:
    """A source of one number that takes a step in its n-th run, as a network whose sum is next to a tie does."""

    description = "steps"

    def __init__(self, at: int) -> None:
        self.at, self.runs = at, 0

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        self.runs += 1
        return [np.array([1.0, 1.003 if self.runs == self.at else 1.0], np.float32)]


@pytest.mark.parametrize(("at", "runs"), [(2, 4), (4, 4), (5, 13), (13, 13), (14, 13)])
def test_more_changes_of_the_inputs_before_a_refusal(at: int, runs: int) -> None:
    """The run itself, three that say whether it moves, and nine more where these do not."""
    source: Any = Stepping(at)
    reference = ReferenceRun(source, [[np.ones(2, np.float32)]], NUDGE)
    found = reference.judge(0, 0, np.array([1.0, 1.003], np.float32))
    assert found.ok == (at <= 13)
    assert source.runs == runs


def test_roundings_in_a_loop_are_excused_by_what_the_source_moves() -> None:
    """A quantised recurrent layer: the integers of its steps are in no list of the source's."""
    torch.manual_seed(3)
    layer = nn.GRU(24, 32, num_layers=2, batch_first=True)
    source = torch.ao.quantization.quantize_dynamic(nn.Sequential(layer), {nn.GRU}, dtype=torch.qint8)  # type: ignore[no-untyped-call]
    program = pn.load(source, (torch.randn(2, 4, 24),)).build(verify=False)
    flow = Dataflow(program)
    assert any(flow.origins(name).within for name in program.outputs)
    x = np.ones((2, 4, 24), np.float32)
    feed = dict(zip(program.inputs, [x], strict=True))
    got = next(iter(pn.Session(program, "cpu").run(feed).values()))
    for moves in (True, False):
        allowance = QuantizedAllowance(program, flow, object(), [x], "cpu", "fp32")  # type: ignore[arg-type]
        apart = agreement(got, got * np.float32(1.05))
        by_movement = agreement(got, got) if moves else apart
        assert allowance.judge(0, got, apart, BOUNDS, lambda found=by_movement: found).ok == moves  # type: ignore[misc]
