"""The definition of equal on whole models: wrong ones that a laxer one passes, right ones that a stricter one refuses.
docs/verification.md states it; agreement_test.py has two arrays.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from pinnace import cli
from pinnace.agreement import agreement
from pinnace.inputs.second_input import second_inputs
from pinnace.sources.onnx_file import OnnxSource
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.sources.rounding import Rounding
from pinnace.verify.dataflow import Dataflow
from pinnace.verify.reference_runs import ReferenceRun
from pinnace.verify.verification import MORE_SEEDS, verify_program
from torch import nn
from torch_modules import Of

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


class Pair:
    """A program of one function, held against another function."""

    def __init__(self, ours: nn.Module, *inputs: torch.Tensor) -> None:
        self.inputs = inputs
        self.program = pn.load(ours, inputs).build(verify=False)

    def against(self, theirs: nn.Module) -> pn.Program:
        source = pn.load(theirs, self.inputs)._source
        return verify_program(self.program, source, [dict(zip(self.program.inputs, self.inputs, strict=True))], ["cpu"])


# ------------------------------------------------------------------------------------ wrong ones, which must be refused


class Masked(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros_like(x)
        mask[..., 0] = torch.finfo(torch.float32).min
        return x * self.factor + mask


class Boxes(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x * 320 + 320, torch.sigmoid(x) * self.factor], 1)


class Stateful(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = x + 0.0 * self.last  # type: ignore[operator]
        self.last.copy_(x * self.factor)  # type: ignore[operator]
        return y


class Elsewhere(nn.Module):
    """The same, with the state in a submodule."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.inner = Stateful(factor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x)
        return y


class Quantised(nn.Module):
    """One quantisation of no account beside an output that it does not reach."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ops = torch.ops.quantized_decomposed
        q = ops.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)
        return x * self.factor, ops.dequantize_per_tensor(q, 0.1, 0, -128, 127, torch.int8)


@pytest.mark.parametrize(
    ("ours", "theirs", "x", "says"),
    [
        (Masked(1.02), Masked(1.0), torch.randn(2, 40), "differs by 0.02"),
        (Boxes(0.94), Boxes(1.0), torch.rand(2, 4, 30), "differs by 0.06"),
        (Of(lambda x: x * 3), Of(lambda x: x * x), torch.zeros(2, 5), "in call 2, a second input"),
        (Stateful(-99.0), Stateful(1.0), torch.randn(3), "state 'last' differs by"),
        (Quantised(1.3), Quantised(1.0), torch.randn(2, 9), "differs by 0.3"),
    ],
    ids=["mask", "boxes", "zeros", "state", "unrelated quantisation"],
)
def test_wrong_ones_are_refused(ours: nn.Module, theirs: nn.Module, x: torch.Tensor, says: str) -> None:
    Pair(ours, x).against(ours)
    with pytest.raises(pn.VerificationError, match=says):
        Pair(ours, x).against(theirs)


def test_what_a_relu_hides_on_two_inputs_shows_on_a_third() -> None:
    """A channel that is 0 on the example and on the second input. Larger models, and sources without exact values, are
    not run on more."""
    x = torch.from_numpy(normal(400))
    tried = [x.numpy(), *(next(second_inputs([x.numpy()], seed))[0] for seed in (2, *MORE_SEEDS))]
    hidden = np.maximum(tried[0], tried[1])
    place = int(np.argmax(np.max(tried[2:], 0) - hidden))
    threshold = float(hidden[place]) + 0.1
    assert max(t[place] for t in tried[2:]) > threshold + 0.1

    def channel(factor: float) -> nn.Module:
        return Of(lambda x: (x * 2, torch.relu(x[place] - threshold) * factor + x[0]))

    pair = Pair(channel(1.5), x)
    pair.against(channel(1.5))
    with pytest.raises(pn.VerificationError, match="on a further input"):
        pair.against(channel(1.0))


def test_a_counter_that_the_exporter_freezes_is_refused() -> None:
    """One that is no attribute of the module: those become states, see kept_attributes_test.py."""
    calls = [0]

    class Counting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls[0] += 1
            return x * calls[0]

    with pytest.raises(pn.VerificationError, match=r"torch.export changed the model"):
        pn.load(Counting(), (torch.randn(3),)).build()


def test_the_cpu_stands_in_where_no_target_can_run_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent = "cpu:avx2" if platform.machine() == "aarch64" else "cpu:neon"
    x = torch.tensor([-1.0, 0.5, 2.0])  # of which ReLU moves with some
    program = pn.load(nn.ReLU(), (x,)).build([absent])
    assert "; on this machine's CPU, for none of the targets runs here" in program.metadata["verified"]
    assert not program.metadata.inconclusive
    assert program.metadata[f"verified.{absent}"].startswith("no: ")
    assert program.metadata["verified.cpu"].startswith("yes: ")
    both = pn.load(nn.ReLU(), (x,)).build([absent, "cpu"])
    assert "for none of the targets" not in both.metadata["verified"]
    torch.export.save(torch.export.export(nn.ReLU(), (x,)), tmp_path / "m.pt2")
    command = ["convert", str(tmp_path / "m.pt2"), "-o", str(tmp_path / "m.pnc"), "--target", absent]
    assert cli.main(command) == 0
    assert "for none of the targets runs here" in capsys.readouterr().out
    assert (tmp_path / "m.pnc").exists()


def test_a_wrong_program_is_found_where_no_target_can_run_here() -> None:
    absent = "cpu:avx2" if platform.machine() == "aarch64" else "cpu:neon"
    x = torch.tensor([-1.0, 0.5, 2.0])
    program = pn.load(nn.ReLU(), (x,)).build(verify=False)
    other = pn.load(nn.ELU(), (x,))._source
    with pytest.raises(pn.VerificationError, match="on cpu: output"):
        verify_program(program, other, [dict(zip(program.inputs, [x], strict=True))], [absent])


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: torch.relu(x.abs() * -1), "output 'relu' does not move with the input"),
        (lambda x: torch.log(-x.abs() - 1), "has no finite value"),
        (lambda x: x[:0], "is empty"),
    ],
)
def test_what_proves_nothing_is_inconclusive(function: Callable[..., Any], says: str) -> None:
    program = pn.load(Of(function), (torch.randn(2, 5),)).build()
    assert program.metadata["verified"].startswith("inconclusive: ")
    assert says in program.metadata["verified"]
    assert program.metadata["verified.cpu"].startswith("yes")
    x = dict.fromkeys(program.inputs, torch.randn(2, 5))
    result = pn.compare(program, Of(function), [x])
    assert result.ok
    assert len(result.inconclusive) == 1
    assert "inconclusive: " in str(result)
    assert "inconclusive: " in result.to_html()


def test_outputs_of_sizes_alone_may_stay_the_same() -> None:
    program = pn.load(Of(lambda x: (x * 2, x.shape[0], torch.ones(3))), (torch.randn(2, 5),)).build()
    assert not program.metadata.inconclusive


def test_what_proves_nothing_ends_commands_with_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = Of(lambda x: torch.relu(x.abs() * -1))
    torch.export.save(torch.export.export(silent, (torch.randn(2, 5),)), tmp_path / "m.pt2")
    made, page = tmp_path / "m.pnc", tmp_path / "page.html"
    convert = ["convert", str(tmp_path / "m.pt2"), "-o", str(made)]
    assert cli.main(convert) == 1
    assert "is written, but its verification proves nothing" in capsys.readouterr().err
    assert pn.Program.open(made).metadata.inconclusive
    assert cli.main([*convert, "--allow-inconclusive"]) == 0
    compare = ["compare", str(made), "--reference", str(tmp_path / "m.pt2"), "--html", str(page)]
    assert cli.main(compare) == 1
    assert "inconclusive: " in page.read_text()
    assert cli.main([*compare, "--allow-inconclusive"]) == 0


def test_a_state_that_the_source_does_not_have_is_a_doubt() -> None:
    x = torch.randn(3)
    program = pn.load(Stateful(1.0), (x,)).build(verify=False)
    renamed = Stateful(1.0)
    renamed.register_buffer("another", torch.zeros(3))
    source: Any = pn.load(renamed, (x,))._source
    feed = [{next(iter(program.inputs)): x.numpy()}]
    assert not verify_program(program, source, feed, ["cpu"]).metadata.inconclusive

    class Renamed:
        """Gives what the source gives, and its states under other names."""

        description = "a source"

        def run_steps(self, steps: Sequence[Sequence[Array]]) -> Any:
            ran = source.run_steps(steps)
            return replace(ran, states={f"my_{name}": value for name, value in ran.states.items()})

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

    found = verify_program(program, Renamed(), feed, ["cpu"]).metadata
    assert "state 'last' has none of its name in the source" in found["verified"]
    assert pn.compare(program, Stateful(1.0), feed).inconclusive == []
    assert pn.compare(program, Elsewhere(1.0), feed).inconclusive == ["state 'last' has none of its name in the source"]


def test_inputs_that_no_call_changed_are_named() -> None:
    x, places = torch.randn(4), torch.arange(4)
    program = pn.load(Of(lambda x, places: x[places] * 2), (x, places)).build()
    name = list(program.inputs)[1]
    assert program.metadata["verified.second"] == f"yes; unchanged: {name}"
    program = pn.load(nn.ReLU(), (x,)).build()
    assert program.metadata["verified.second"] == "yes"


def test_branches_that_never_ran_are_named() -> None:
    class Branching(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.abs().sum() > -1, torch.sin, lambda x: torch.cos(x) + 1, (x,))  # type: ignore[no-any-return]

    program = pn.load(Branching(), (torch.randn(4),)).build()
    assert program.metadata["verified.paths"] == "never ran: cond.else_branch"


# --------------------------------------------------------------------------------------------- right ones, which pass


def onnx_model(
    path: Path, nodes: Sequence[Any], shape: Sequence[Any], weights: dict[str, Array], out: Any = None
) -> Path:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)]
    initial = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initial)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
    return path


def test_a_text_detector_whose_map_is_near_zero(tmp_path: Path) -> None:
    """onnxruntime's sigmoid has steps of 2^-25, larger than what it gives here."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["c"], ["y"]),
    ]
    weights = {"w": normal(1, 3, 3, 3) * np.float32(0.3), "b": np.array([-15.5], np.float32)}
    path = onnx_model(tmp_path / "detector.onnx", nodes, [1, 3, 24, 24], weights)
    program = pn.load(path, {"x": normal(1, 3, 24, 24)}).build()
    assert program.metadata["verified.cpu"].startswith("yes")


def test_a_mean_of_integers_that_falls_on_ties(tmp_path: Path) -> None:
    """A mean of sixteen integers ends in .5 one time in sixteen: which way it rounds hangs on the last bit."""
    scale, zero = np.float32(0.0371), np.uint8(128)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["mq"]),
        helper.make_node("DequantizeLinear", ["mq", "s", "z"], ["md"]),
        helper.make_node("Flatten", ["md"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    weights: dict[str, Array] = {"s": np.asarray(scale), "z": np.asarray(zero), "w": normal(64, 10)}
    path = onnx_model(tmp_path / "mean.onnx", nodes, [4, 64, 4, 4], weights)
    assert pn.load(path, {"x": normal(4, 64, 4, 4)}).build().metadata["verified.cpu"].startswith("yes")


def test_four_bit_weights_that_onnxruntime_fuses_to_approximate_arithmetic(tmp_path: Path) -> None:
    blocks = helper.make_node("DequantizeLinear", ["w", "s"], ["wd"], axis=0, block_size=32)
    nodes = [blocks, helper.make_node("MatMul", ["x", "wd"], ["y"])]
    scales = RANDOM.uniform(0.01, 0.1, (8, 48)).astype(np.float32)
    path = onnx_model(tmp_path / "four.onnx", nodes, [5, 256], {"s": scales})
    model = onnx.load(path)
    values = RANDOM.integers(-8, 8, 256 * 48)
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, [256, 48], values.tolist()))
    onnx.save(model, path)
    program = pn.load(path, {"x": normal(5, 256)}).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    assert "optimisations off" in program.metadata["verified"]


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_runtime_that_differs_from_itself_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    """With optimisations and without: in what is recorded of a right program as in the refusal of a wrong one."""
    nodes, weights = [helper.make_node("MatMul", ["x", "w"], ["y"], name="allocation")], normal(6, 3)
    path = onnx_model(tmp_path / "net.onnx", nodes, [5, 6], {"w": weights})
    optimised = OnnxSource.optimised

    def approximate(self: OnnxSource, inputs: Sequence[Array]) -> list[Array]:
        made = optimised(self, inputs)
        assert made is not None
        return [y * np.float32(factor) for y in made]

    monkeypatch.setattr(OnnxSource, "optimised", approximate)
    model, said = pn.load(path, {"x": normal(5, 6)}), "with its optimisations on, the source differs from itself"
    assert (f"{said}: differs by 0.01 of" in model.build().metadata["verified"]) == (factor != 1)
    assert said not in model.build(tolerance=0.1).metadata["verified"]
    wrong = pn.load(onnx_model(tmp_path / "wrong.onnx", nodes, [5, 6], {"w": 2 * weights})).build(verify=False)
    with pytest.raises(pn.VerificationError) as refusal:
        verify_program(wrong, OnnxSource(str(path)), [{"x": normal(5, 6)}], ["cpu"])
    assert (said in str(refusal.value)) == (factor != 1)


@pytest.mark.parametrize("x", [torch.linspace(-2, 3, 31), torch.arange(31) % 7 - 3], ids=["floats", "integers"])
def test_zeros_of_the_source_leave_room_for_its_own_rounding(x: torch.Tensor) -> None:
    """The imaginary part of a sum of real numbers is 0; added up in another order it is a rounding error."""
    program = pn.load(Of(lambda x: torch.view_as_real(torch.fft.ifftn(x))), (x,)).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    want = np.zeros((31, 2), np.float32)
    want[:, 0] = np.linspace(0.1, 1, 31)
    exact = want.astype(np.float64) + 3e-8 * np.cos(np.arange(62)).reshape(31, 2) * (want != 0)
    for error, ok in ((3e-8, True), (1e-6, False)):
        got = want.copy()
        got[4, 1] = error
        assert not agreement(got, want).ok
        assert agreement(got, want, exact=exact).ok == ok


def test_a_live_module_with_buffers_has_exact_values() -> None:
    """Statistics of batches, tensors that are no buffers, and constants are doubles too."""

    class Normal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
            self.register_buffer("scale", torch.tensor([0.1, 0.3, 0.7]))
            self.shift = torch.tensor(0.3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.part(x).mean((2, 3)) * self.scale + self.shift
            return y + torch.full((3,), 0.1)

    module, x = Normal().eval(), torch.randn(1, 2, 5, 5)
    source = pn.load(module, (x,))._source
    assert source is not None
    reference = ReferenceRun(source, [[x.numpy()]])
    assert reference.exact is not None
    exact = reference.exact.outputs[0][0]
    assert exact.dtype == np.float64
    with torch.no_grad():
        batch: Any = module.double().part[1]
        y = torch.nn.functional.conv2d(x.double(), module.part[0].weight, module.part[0].bias)  # type: ignore[arg-type]
        y = (y - 0) / torch.sqrt(torch.tensor(1, dtype=torch.float64) + batch.eps)
        want = y.mean((2, 3)) * module.scale + module.shift.double() + 0.1  # type: ignore[operator]
    np.testing.assert_allclose(exact, want.numpy(), rtol=1e-12, atol=1e-13)


def test_a_half_precision_network_with_float_inputs_and_outputs() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(12)]).half()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x.half()).float()  # type: ignore[no-any-return]

    program = pn.load(Half(), (torch.randn(4, 64),)).build()
    assert program.metadata["verified.cpu"].startswith("yes")


class Words(nn.Module):
    """Word vectors of which little is left when their mean is taken off, as in a classifier of bytes; ids go in.

    The variance is a difference of two numbers near 1, so that float32 leaves a few digits of it.
    """

    def __init__(self, seed: int, width: int, amplitude: float, factor: float = 1.0) -> None:
        super().__init__()
        random = np.random.default_rng(seed)
        table = (1 + amplitude * random.standard_normal((40, width))).astype(np.float32)
        weight = random.standard_normal((width, 8)).astype(np.float32) * np.float32(factor)
        self.table, self.weight = (nn.Parameter(torch.from_numpy(array)) for array in (table, weight))
        self.ids = torch.from_numpy(random.integers(0, 40, (1, 64)))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table[ids]
        mean = x.mean(-1, keepdim=True)
        variance = torch.clamp((x * x).mean(-1, keepdim=True) - mean * mean, min=0)
        return ((x - mean) / torch.sqrt(variance + 1e-9)) @ self.weight

    def as_onnx(self, path: Path) -> Path:
        """The same graph as a file."""
        node = helper.make_node
        nodes = [
            node("Gather", ["table", "ids"], ["x"]),
            node("ReduceMean", ["x"], ["mean"], axes=[-1]),
            node("Mul", ["x", "x"], ["squares"]),
            node("ReduceMean", ["squares"], ["second"], axes=[-1]),
            node("Mul", ["mean", "mean"], ["first"]),
            node("Sub", ["second", "first"], ["difference"]),
            node("Max", ["difference", "zero"], ["variance"]),
            node("Add", ["variance", "epsilon"], ["more"]),
            node("Sqrt", ["more"], ["deviation"]),
            node("Sub", ["x", "mean"], ["centred"]),
            node("Div", ["centred", "deviation"], ["normal"]),
            node("MatMul", ["normal", "weight"], ["y"]),
        ]
        weights = {name: value.detach().numpy() for name, value in self.named_parameters()}
        weights |= {"zero": np.asarray(0, np.float32), "epsilon": np.asarray(1e-9, np.float32)}
        initial = [numpy_helper.from_array(value, name) for name, value in weights.items()]
        given = [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 64])]
        made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph(nodes, "words", given, made, initial)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path


# Seed, width, amplitude: networks that are refused where nothing but inputs can carry a rounding error.
WORDS = {"torch": [(3, 96, 0.003), (2, 300, 0.003), (4, 300, 0.003)], "onnx": [(6, 96, 0.004), (7, 96, 0.006)]}


@pytest.mark.parametrize(("kind", "form"), [(kind, form) for kind, forms in WORDS.items() for form in forms])
def test_integers_alone_leave_room_for_the_rounding_of_operators(
    kind: str, form: tuple[int, int, float], tmp_path: Path
) -> None:
    """No input is a float that could carry a rounding error; a weight that is wrong by a percent still shows."""
    right, wrong = Words(*form), Words(*form, 1.01)
    models: list[pn.Model] = []
    for name, module in (("right", right), ("wrong", wrong)):
        if kind == "onnx":
            models.append(pn.load(module.as_onnx(tmp_path / f"{name}.onnx"), {"ids": right.ids.numpy()}))
        else:
            models.append(pn.load(module, (right.ids,)))
    program = models[0].build()
    assert program.metadata["verified"].startswith("1 input")
    with pytest.raises(pn.VerificationError, match=r"output .* differs by 0\.0.*from float64 ours by"):
        verify_program(program, models[1]._source, [{"ids": right.ids.numpy()}], ["cpu"])


def test_the_rounding_of_operators_is_looked_at_only_without_floats() -> None:
    """Beside a float that flows into an output its change tells; one that flows elsewhere says nothing."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = Words(2, 300, 0.003)

        def forward(self, ids: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y = self.words(ids)
            return y, x * 2, y + x.mean(), y + x.shape[0]

    module = Both()
    program = pn.load(module, (module.words.ids, torch.randn(5))).build(verify=False)
    flow = Dataflow(program)
    assert [flow.has_float_input(name) for name in program.outputs] == [False, True, True, False]
    source = pn.load(module, (module.words.ids, torch.randn(5)))._source
    assert source is not None
    reference = ReferenceRun(source, [[module.words.ids.numpy(), normal(5)]])
    want = reference.ran.outputs[0][0]
    off = (want.astype(np.float64) + 6e-3 * np.abs(want)).astype(np.float32)
    off[0, 0] = want[0, 0]
    assert reference.judge(0, 0, off, floats=False).ok
    assert not reference.judge(0, 0, off, floats=True).ok
    assert not reference.judge(0, 0, off).ok  # there is a float among the inputs
    assert not reference.judge(0, 0, (want * np.float32(1.03)).astype(np.float32), floats=False).ok


def test_rounding_errors_are_of_their_size_and_leave_settings_alone() -> None:
    rounding = Rounding(np.random.default_rng(3))
    x = np.random.default_rng(4).standard_normal((40, 50))
    far = np.abs(rounding.operand(x) / x - 1)
    assert 2.0**-23 < far.max() <= 1.01 * 2.0**-22
    for same in (np.full((3, 4), 2.0), np.array([1.0, 1.0, 1.5, 1.5]), x.astype(np.float32), np.arange(20)):
        assert rounding.operand(same) is same
    total = x.sum(1)
    far = np.abs(rounding.result(total, [x]) / total - 1)
    assert 0 < far.max() <= 1.01 * np.sqrt(50) * 2.0**-24
    assert rounding.result(x, [x, total]) is x
    assert np.isposinf(rounding.operand(np.array([np.inf] * 9 + [0.5]))[:9]).all()


def test_rounding_errors_change_no_meaning() -> None:
    """Views, what is written in place, states, lists of tensors, sorting and comparison."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Embedding(30, 16), nn.Linear(16, 16), nn.LayerNorm(16))
            self.register_buffer("total", torch.zeros(16))

        def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
            x = self.inner(ids)
            y = x.clone()
            y[0].mul_(2)
            y.transpose(0, 1)[1].add_(1)
            self.total.add_(y.mean((0, 1)))  # type: ignore[operator]
            same = torch.where(x == x.reshape(-1).reshape(x.shape), 1.0, 0.0)
            parts = torch.cat(torch.split(y, [5, 11], -1), -1) == y
            total: torch.Tensor = self.total * 1.5  # type: ignore[operator, assignment]
            return y.sort(-1).values, same, parts, x.argmax(-1), (y > 0).sum(), total

    torch.manual_seed(5)
    ids = torch.randint(0, 30, (4, 6))
    source = pn.load(Mixed().eval(), (ids,))._source
    assert source is not None
    reference = ReferenceRun(source, [[ids.numpy()], [ids.numpy()]])
    assert reference.exact is not None
    assert len(reference.rounded) == 3
    for run in reference.rounded:
        for call in (0, 1):
            ordered, same, parts, most, count, total = run.outputs[call]
            exact = reference.exact.outputs[call]
            assert 0 < np.abs(ordered - exact[0]).max() < 1e-5
            assert same.all()
            assert parts.all()
            assert np.array_equal(most, exact[3])
            assert count == exact[4]
            assert 0 < np.abs(total - exact[5]).max() < 1e-5
        assert 0 < np.abs(run.states["total"] - reference.exact.states["total"]).max() < 1e-5
    first, second = (run.outputs[0][0] for run in reference.rounded[:2])
    assert not np.array_equal(first, second)


class Given:
    """A source that gives what a function makes of its inputs, and its first input for layers that are asked for."""

    description = "a function"

    def __init__(self, function: Callable[..., Sequence[torch.Tensor]]) -> None:
        self._function = function

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return [y.numpy() for y in self._function(*(torch.from_numpy(np.array(x)) for x in inputs))]

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        return {name: np.array(inputs[0]) for name in names if name == "mul"}  # folded: the input itself is searched


def test_ties_of_argmax_are_named() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 1.0, 2.0, 0.0]])
    program = pn.load(Of(lambda x: (x * 1).argmax(1)), (x,)).build(verify=False)
    last = Given(lambda x: [3 - x.flip(1).argmax(1)])
    facts = verify_program(program, last, [{next(iter(program.inputs)): x.numpy()}], ["cpu"]).metadata
    assert "ties of arg_max taken in another order" in facts["verified.cpu"]
    wrong = Given(lambda x: [(x.argmax(1) + 1) % 4])
    with pytest.raises(pn.VerificationError):
        verify_program(program, wrong, [{next(iter(program.inputs)): x.numpy()}], ["cpu"])


def test_ties_of_top_k_are_named() -> None:
    """Two of four numbers are the largest: which comes first is the engine's to choose."""
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 1.0, 2.0, 0.0]])
    program = pn.load(Of(lambda x: tuple((x * 1).topk(2))), (x,)).build(verify=False)

    def other_way(x: torch.Tensor) -> Sequence[torch.Tensor]:
        values, places = x.flip(1).topk(2)
        return values, 3 - places

    def another_number(x: torch.Tensor) -> Sequence[torch.Tensor]:
        values, places = x.topk(2)
        return values, (places + 1) % 4

    feed = [{next(iter(program.inputs)): x.numpy()}]
    facts = verify_program(program, Given(other_way), feed, ["cpu"]).metadata
    assert "ties of top_k taken in another order" in facts["verified.cpu"]
    with pytest.raises(pn.VerificationError):
        verify_program(program, Given(another_number), feed, ["cpu"])


def test_an_angle_of_pi_is_one_of_minus_pi_and_named() -> None:
    y, x = torch.tensor([0.0, 1.0, -1.0]), torch.tensor([-1.0, 2.0, -2.0])
    program = pn.load(Of(torch.atan2), (y, x)).build(verify=False)

    def turned(y: torch.Tensor, x: torch.Tensor) -> Sequence[torch.Tensor]:
        return [torch.where((y == 0) & (x < 0), -torch.pi, torch.atan2(y, x))]

    def wrong(y: torch.Tensor, x: torch.Tensor) -> Sequence[torch.Tensor]:
        return [-torch.atan2(y, x)]

    feed = [dict(zip(program.inputs, (y.numpy(), x.numpy()), strict=True))]
    assert "pi for -pi" in verify_program(program, Given(turned), feed, ["cpu"]).metadata["verified.cpu"]
    with pytest.raises(pn.VerificationError):
        verify_program(program, Given(wrong), feed, ["cpu"])


def test_pi_and_minus_pi_are_one_angle() -> None:
    from pinnace.verify.ties import sides_of_pi

    want = np.array([np.pi, -np.pi, 1.0, -3.1], np.float32)
    turned = sides_of_pi(np.array([-np.pi, -np.pi, 1.0, -3.1], np.float32), want, 1e-4)
    assert turned is not None
    assert agreement(turned, want).ok
    assert sides_of_pi(np.array([np.pi, -np.pi, 1.0, 3.1], np.float32), want, 1e-4) is None


# ----------------------------------------------------------------------------------------------------- what is the sour


def test_the_live_module_is_the_source() -> None:
    """With a padding mask, eager TransformerEncoder gives 0 in padded rows, its exported program does not."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    module = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(2, 5, 16)
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        assert module(x, src_key_padding_mask=mask)[1, 3:].abs().max() == 0
    model = pn.load(module, (x,), example_kwargs={"src_key_padding_mask": mask})
    with pytest.raises(pn.VerificationError, match=r"torch\.export changed the model"):
        model.build()


def test_an_onnx_file_is_held_against_the_module_that_it_came_from(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    path = onnx_model(tmp_path / "twice.onnx", nodes, [2, 3], {"w": np.array(2, np.float32)})
    model = pn.load(path, {"x": normal(2, 3)})
    assert model.build(reference=Of(lambda x: x * 2)).metadata["verified"].startswith("1 input(s) against torch")
    with pytest.raises(pn.VerificationError, match="differs by"):
        model.build(reference=Of(lambda x: x * 2.02))
    for factor, status in ((2, 0), (3, 1)):
        torch.export.save(
            torch.export.export(Of(lambda x, f=factor: x * f), (torch.randn(2, 3),)), tmp_path / f"{factor}.pt2"
        )
        command = ["convert", str(path), "-o", str(tmp_path / "m.pnc"), "--reference", str(tmp_path / f"{factor}.pt2")]
        assert cli.main(command) == status


def test_second_inputs_keep_the_kind_of_the_first() -> None:
    ids, positions = np.array([[5, 2, 9, 2]]), np.arange(4)
    image, mask = RANDOM.uniform(0, 1, (3, 4)).astype(np.float32), np.array([0, -np.inf, 0, 0], np.float32)
    made = next(second_inputs([ids, positions, image, mask]))
    assert sorted(made[0].ravel()) == [2, 2, 5, 9]
    assert made[1].tolist() == [0, 1, 2, 3]
    assert 0 <= made[2].min() <= made[2].max() <= 1
    assert not np.array_equal(made[2], image)
    assert np.isinf(made[3]).sum() == 1
    assert next(second_inputs([np.zeros((3, 4), np.float32)]))[0].any()
    assert list(second_inputs([np.arange(3)])) == []


def test_states_of_a_program_are_compared_with_those_of_another(tmp_path: Path) -> None:
    x = torch.randn(3)
    programs = [pn.load(Stateful(f), (x,)).build() for f in (1.0, 2.0)]
    result = pn.compare(programs[0], programs[1], [{"x": x}])
    assert not result.ok
    assert [row.value for row in result.rows if not row.ok and row.op == "state"] == ["last"]
    assert verify_program(programs[0], ProgramSource(programs[0]), [{"x": x.numpy()}], ["cpu"])
