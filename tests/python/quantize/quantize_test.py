"""build(quantize=Int8(...)): ranges from samples, accuracy control, reports, and what is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from nnapi_level import run_at_level
from onnx import TensorProto, helper, numpy_helper
from pinnace import _core, cli
from pinnace.quantization import QuantizationReport, QuantizationRow, RangeRow
from pinnace.quantize.control import fewest_kept
from pinnace.quantize.errors import relative_error
from torch import Tensor, nn

GENERATOR = np.random.default_rng(11)


class Net(nn.Module):
    """Convolutions with a residual, a gate, pooling and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.ReLU(), nn.Conv2d(16, 16, 1))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 16, 1), nn.Hardsigmoid())
        self.last = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = x + self.depth(x)
        x = x * self.gate(x)
        y: Tensor = self.last(nn.functional.max_pool2d(x, 2).flatten(1))
        return y


def images(count: int, batch: int = 1) -> list[dict[str, Any]]:
    return [{"x": GENERATOR.standard_normal((batch, 3, 16, 16)).astype(np.float32)} for _ in range(count)]


@pytest.fixture(scope="module")
def net() -> nn.Module:
    return Net().eval()


@pytest.fixture(scope="module")
def model(net: nn.Module) -> pn.Model:
    return pn.load(net, torch.zeros(1, 3, 16, 16))


@pytest.fixture(scope="module")
def samples() -> list[dict[str, Any]]:
    return images(16)


@pytest.fixture(scope="module")
def program(model: pn.Model, samples: list[dict[str, Any]]) -> pn.Program:
    return model.build(quantize=pn.Int8(calibration=samples))


def test_layers_compute_in_integers(program: pn.Program, net: nn.Module) -> None:
    report = program.quantization
    assert report is not None
    kept = [row for row in report.rows if row.kept_float and row.bytes_before]
    assert not kept, str(report)
    assert {row.op for row in report.rows if not row.kept_float} >= {"conv", "gemm", "add", "mul", "hard_swish"}
    kernels = {p.node: p.kernel for p in pn.Session(program, target="cpu").placement}
    products = [n for n in program.nodes if n.op in ("conv", "gemm", "mat_mul")]
    assert len(products) == 5
    for node in products:
        assert "int8" in node.output_types[0], node
        assert "i8" in kernels[node.name], (node.name, kernels[node.name])
    x = images(1)[0]
    exact = net(torch.from_numpy(x["x"])).detach().numpy()
    found = next(iter(pn.Session(program, target="cpu").run(x).values()))
    assert relative_error([found], [exact]) < 0.1
    assert 0 < max(report.errors.values()) < 0.1


def test_the_file_has_the_report(program: pn.Program, tmp_path: Path) -> None:
    program.save(tmp_path / "q.pnc")
    read = pn.Program.open(tmp_path / "q.pnc").quantization
    assert read is not None
    assert program.quantization is not None
    assert read.rows == program.quantization.rows
    assert not read.ranges
    assert program.quantization.ranges
    assert json.loads(read.to_json())["samples"] == 16
    assert program.metadata.verified.startswith("1 input(s) against the same roundings")
    assert program.metadata["float.verified"].startswith("1 input(s) against torch")
    assert "float.verified" in pn.Program.from_bytes(program.to_bytes()).metadata
    damaged = program.with_metadata({"quantization": '{"rows": 3}'})
    damaged = pn.Program.from_bytes(damaged.to_bytes())
    with pytest.raises(pn.CorruptFile, match="report on its quantisation"):
        _ = damaged.quantization
    assert pn.load(nn.Linear(2, 2), torch.zeros(1, 2)).build().quantization is None


def test_pages(program: pn.Program, tmp_path: Path) -> None:
    report = program.quantization
    assert report is not None
    page = report.to_html(tmp_path / "q.html")
    assert (tmp_path / "q.html").read_text() == page
    assert "5 of 5 layers in int8" in page
    assert page.count("<article>") == page.count('class="chosen"') == len(report.ranges)
    assert "<script" not in page
    assert "Every layer with weights is quantised." in page
    assert "5 of 5 layers" in report._repr_html_()
    assert repr(report).startswith("<pinnace.QuantizationReport int8: 12 of 12 nodes, error ")
    assert str(report).startswith("quantization: int8: 12 of 12 nodes, error ")


def bars(page: str) -> list[str]:
    """The rectangles of the chart of errors."""
    return re.findall(r"<rect[^>]*>", page[page.index('<svg class="chart along"') : page.index("What stayed in float")])


def test_a_page_has_totals_first_and_a_reason_for_each_layer(model: pn.Model, samples: list[dict[str, Any]]) -> None:
    report = model.build(quantize=pn.Int8(calibration=samples, skip=("gate",), max_drop=0.5)).quantization
    assert report is not None
    assert report.ns is not None
    assert min(report.ns) > 0
    before, after = (sum(getattr(row, f"bytes_{when}") for row in report.rows) for when in ("before", "after"))
    page = report.to_html()
    totals = page.index(f'<td class="n">{before:,}</td><td class="n">{after:,}</td>')
    times = page.index(f'<td class="n">{report.ns[0] / 1000:,.1f}</td><td class="n">{report.ns[1] / 1000:,.1f}</td>')
    assert totals < times < page.index("<h2>")
    stayed = page[page.index("What stayed in float") : page.index("Operators without weights")]
    assert stayed.count("skip=&#39;gate&#39;") == 1
    assert len(bars(page)) == sum(row.error is not None or row.bytes_before > 0 for row in report.rows)
    assert sum('class="none"' in bar for bar in bars(page)) == 1
    reasons = {row.op: row.reason for row in report.rows if row.kept_float and not row.bytes_before}
    assert any("what it reads is computed in float" in reason for reason in reasons.values()), reasons
    kept = [row for row in report.rows if row.kept_float]
    assert all(row.reason for row in kept)


def test_why_operators_stay_in_float() -> None:
    class Several(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(2)
            self.up = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            y = self.up(x)
            z: Tensor = torch.sin(y) @ y.mT
            return z

    samples = [GENERATOR.standard_normal((4, 8)).astype(np.float32) for _ in range(4)]
    report = pn.load(Several().eval(), torch.zeros(4, 8)).build(quantize=pn.Int8(calibration=samples)).quantization
    assert report is not None
    reasons = {row.op: row.reason for row in report.rows if row.kept_float}
    assert reasons["sin"] == "sin has no 8-bit form here"
    assert reasons["mat_mul"] == "it does not multiply by constant float32 weights"


def test_a_page_of_many_layers_is_bounded_and_escapes_names() -> None:
    hostile = '"><script>alert(1)</script>\x1b[0m'
    rows = [
        QuantizationRow(f"{hostile}{i}", hostile, hostile, hostile, i % 3 == 0, hostile, e, e, 4000, 1000, 9, None)
        for i in range(1200)
        for e in (None if i % 3 == 0 else math.inf if i == 1 else 10.0 ** -(i % 9),)
    ]
    counts = [0, 5, 100, 3]
    ranges = [
        RangeRow(hostile, 0.1, 3, -0.3, 25.2, -1.0, 3.0, (-1.0, 1.0, counts)),
        RangeRow("constant", 1.0, 0, 0.0, 255.0, 0.0, 0.0, (0.0, 0.0, [4])),
        RangeRow("nothing", 1.0, 0, 0.0, 255.0, 0.0, 0.0, (0.0, 0.0, [])),
        *(RangeRow(str(i), 0.1, 3, -0.3, 25.2, -1.0, 3.0, (-1.0, 1.0, counts)) for i in range(500)),
    ]
    report = QuantizationReport(rows, ranges, errors={hostile: 0.1}, said=[hostile])
    for page in (report.to_html(), report._repr_html_()):
        assert "<script" not in page
        assert "\x1b" not in page
        assert "nan" not in page
        assert len(bars(page)) <= 400
        assert len(page) < 3_000_000
    assert report.to_html().count("<article>") == 300
    assert "and 203 values more" in report.to_html()
    assert "and 200 nodes more" in report.to_html()


def test_a_page_of_stored_weights() -> None:
    model = pn.load(nn.Linear(64, 64), torch.zeros(2, 64))
    report = model.build(quantize=pn.WeightOnly()).quantization
    assert report is not None
    page = report.to_html()
    assert "The errors of single layers were not measured." in page
    assert "Calibrated" not in page
    assert "not measured</td>" in page


@pytest.mark.parametrize("observer", ["minmax", "percentile", "mse", "entropy"])
def test_observers(model: pn.Model, samples: list[dict[str, Any]], observer: str) -> None:
    program = model.build(quantize=pn.Int8(calibration=samples, observer=observer))
    assert program.quantization is not None
    assert max(program.quantization.errors.values()) < 0.15


def test_equal_bytes_however_samples_come(model: pn.Model, samples: list[dict[str, Any]]) -> None:
    def generated() -> Iterator[dict[str, Any]]:
        yield from samples

    one = model.build(quantize=pn.Int8(calibration=samples)).to_bytes()
    batch = [{"x": np.concatenate([s["x"] for s in samples[i : i + 4]])} for i in range(0, 16, 4)]
    for calibration in (generated, generated(), batch, [s["x"] for s in samples], [(s["x"], 3) for s in samples]):
        again = model.build(quantize=pn.Int8(calibration=calibration))
        weights = pn.Program.from_bytes(one).with_metadata({"quantization": ""})
        assert again.with_metadata({"quantization": ""}).to_bytes() == weights.to_bytes()


def test_skip(model: pn.Model, samples: list[dict[str, Any]]) -> None:
    report = model.build(quantize=pn.Int8(calibration=samples, skip=("gate", "las?"))).quantization
    assert report is not None
    kept = {row.node: row.reason for row in report.rows if row.kept_float and row.bytes_before}
    assert set(kept.values()) == {"skip='gate'", "skip='las?'"}, kept
    with pytest.raises(pn.Unsupported, match="skip names all of them"):
        model.build(quantize=pn.Int8(calibration=samples, skip=("*",)))


@pytest.mark.parametrize("small", [1e-3, 1e-9, 1e-40])
def test_a_channel_with_next_to_no_weights(small: float) -> None:
    """Its bias is what it gives, and must not take the whole range of the layer: weight decay makes such channels."""

    class Dying(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(7)
            self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 4)
            with torch.no_grad():
                self.first.weight[3], self.first.bias[3] = small, 2

        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = self.last(self.first(x).relu())
            return made

    samples = [GENERATOR.standard_normal((8, 16)).astype(np.float32) for _ in range(8)]
    model = pn.load(Dying().eval(), torch.zeros(8, 16))
    errors = []
    for equalize in (True, False):
        report = model.build(quantize=pn.Int8(calibration=samples, equalize=equalize)).quantization
        assert report is not None
        errors.append(max(report.errors.values()))
    assert errors[0] < 1.5 * errors[1] + 0.01


def test_calibrations_that_fail_to_begin(model: pn.Model) -> None:
    class Failing:
        def __iter__(self) -> Any:
            raise OSError("the disk is gone")

    failing: list[tuple[Any, str]] = [(lambda: 1 / 0, "ZeroDivisionError"), (Failing(), "OSError: the disk is gone")]
    for calibration, said in failing:
        with pytest.raises(pn.InvalidArgument, match=f"calibration sample 0 cannot be read: {said}"):
            model.build(quantize=pn.Int8(calibration=calibration))


def test_what_became_a_part_of_another_node_has_a_name_to_skip(tmp_path: Path) -> None:
    """In an ONNX file a convolution, its batch norm and the activation behind them are three nodes, here one."""
    rng = np.random.default_rng(5)
    weights = {"w": rng.standard_normal((4, 3, 3, 3)), "v": rng.standard_normal((4, 4, 1, 1))}
    weights |= {name: rng.random(4) + 0.5 for name in ("scale", "bias", "mean", "var")}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="/stem/Conv"),
        helper.make_node("BatchNormalization", ["a", "scale", "bias", "mean", "var"], ["b"], name="/stem/Norm"),
        helper.make_node("Relu", ["b"], ["c"], name="/stem/Relu"),
        helper.make_node("Conv", ["c", "v"], ["d"], name="/head/Conv"),
        helper.make_node("Clip", ["d", "low", "high"], ["y"], name="/head/Clip"),
    ]
    held: dict[str, Any] = {name: value.astype(np.float32) for name, value in weights.items()}
    held |= {"low": np.float32(0), "high": np.float32(6)}
    graph = helper.make_graph(
        nodes,
        "fused",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
    )
    model = pn.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert [node.name for node in model.nodes] == ["/stem/Relu", "/head/Clip"]
    samples = [{"x": rng.standard_normal((1, 3, 8, 8)).astype(np.float32)} for _ in range(4)]
    for name in ("/stem/Conv", "/stem/Norm", "/stem/Relu", "/stem/*", "/stem/C*"):
        for quantize in (pn.Int8(calibration=samples, skip=[name]), pn.Float16(skip=[name])):
            report = model.build(quantize=quantize).quantization
            assert report is not None
            kept = {row.node: row.reason for row in report.rows if row.kept_float and row.bytes_before}
            assert kept == {"/stem/Relu": f"skip={name!r}"}, (name, report)
    with pytest.raises(pn.InvalidArgument, match=r"'/stem/Conf' names no node.*is '/stem/Conv' meant"):
        model.build(quantize=pn.Float16(skip=["/stem/Conf"]))


def test_samples_that_are_not_like_the_inputs(
    model: pn.Model, samples: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    """Zeros show no ranges: the report says so, and a warning, with the error that the examples have."""
    example = images(1)
    with caplog.at_level("WARNING", "pinnace"):
        report = model.build(
            quantize=pn.Int8(calibration=[{"x": np.zeros((1, 3, 16, 16), np.float32)}] * 2), examples=example
        ).quantization
    assert report is not None
    assert "input 'x' is 0 throughout the samples" in str(report)
    assert re.search(r"on the examples an output is off by 0\.\d+ of its magnitude, on the samples by", str(report))
    assert "is 0 throughout the samples" in caplog.text
    assert "on the examples an output is off" in caplog.text
    assert "throughout" in report.to_html()
    caplog.clear()
    report = model.build(quantize=pn.Int8(calibration=samples), examples=example).quantization
    assert report is not None
    assert not report.said
    assert not caplog.text


def test_a_name_to_skip_that_is_none(model: pn.Model, samples: list[Any]) -> None:
    skip = ("gate", "lasst", "nothing*")
    kinds = (pn.Int8(calibration=samples, skip=skip), pn.WeightOnly(skip=skip), pn.DynamicInt8(skip=skip))
    for quantize in (*kinds, pn.Float16(skip=skip)):
        with pytest.raises(pn.InvalidArgument, match=r"skip: 'lasst', 'nothing\*' names no node.*is 'last' meant"):
            model.build(quantize=quantize)


def test_accuracy_control_finds_the_layer() -> None:
    class Planted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(6)])
            scale = torch.ones(16)
            scale[::2] = 1000
            self.scale: Tensor
            self.register_buffer("scale", scale)
            with torch.no_grad():
                self.layers[3].get_parameter("weight").div_(scale)

        def forward(self, x: Tensor) -> Tensor:
            for i, layer in enumerate(self.layers):
                if i == 3:  # a range of a thousand to one between channels, which cancels within the layer
                    x = x * self.scale
                x = torch.tanh(layer(x) * 1.5)
            return x

    samples = [GENERATOR.standard_normal((4, 16)).astype(np.float32) for _ in range(8)]
    model = pn.load(Planted().eval(), torch.zeros(4, 16))
    plain = model.build(quantize=pn.Int8(calibration=samples)).quantization
    assert plain is not None
    assert max(plain.errors.values()) > 0.1
    report = model.build(quantize=pn.Int8(calibration=samples, max_drop=0.05)).quantization
    assert report is not None
    kept = [row for row in report.rows if row.kept_float and row.bytes_before]
    assert len(kept) <= 3, str(report)
    assert any(row.module == "layers.3" for row in kept), str(report)
    assert max(report.errors.values()) <= 0.05


def test_a_metric(model: pn.Model, net: nn.Module, samples: list[dict[str, Any]]) -> None:
    wanted = [net(torch.from_numpy(s["x"])).argmax().item() for s in samples]
    asked = []

    def accuracy(run: Any) -> float:
        asked.append(1)
        hits = [np.argmax(next(iter(run(s).values()))) == w for s, w in zip(samples, wanted, strict=True)]
        return float(np.mean(hits))

    report = model.build(quantize=pn.Int8(calibration=samples, metric=accuracy, max_drop="10%")).quantization
    assert report is not None
    assert report.score is not None
    assert report.score[0] == 1.0
    assert report.score[1] >= 0.9
    assert len(asked) >= 2
    unreachable = iter(range(1000))
    report = model.build(
        quantize=pn.Int8(calibration=samples, metric=lambda run: -float(next(unreachable)), max_drop=0.5)
    ).quantization
    assert report is not None
    assert all(row.kept_float for row in report.rows if row.bytes_before)
    assert "all stay in float" in report.said[0]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"observer": "best"}, "observer must be one of minmax, percentile, mse, entropy, is 'best'"),
        ({"percentile": 40}, "percentile must be above 50"),
        ({"skip": "conv"}, "skip must be a list of names"),
        ({"metric": 3, "max_drop": 1}, "metric must be a function"),
        ({"metric": lambda run: 1.0}, "metric needs max_drop"),
        ({"max_drop": -1}, "max_drop must be a number from 0 on"),
        ({"max_drop": float("nan")}, "max_drop must be"),
        ({"max_drop": "half"}, "max_drop must be"),
        ({"max_drop": "0.5"}, "max_drop must be"),
        ({"calibration": 3}, "calibration must be an iterable"),
        ({"calibration": {"x": 1}}, "calibration must hold samples"),
    ],
)
def test_options_that_are_refused(options: Mapping[str, Any], part: str) -> None:
    with pytest.raises(pn.InvalidArgument, match=part.replace("(", r"\(")):
        pn.Int8(**{"calibration": [], **options})


def test_samples_that_are_refused(model: pn.Model) -> None:
    def refused(calibration: Any, part: str) -> None:
        with pytest.raises(pn.InvalidArgument, match=part):
            model.build(quantize=pn.Int8(calibration=calibration))

    good = images(1)[0]
    wrong = good["x"].copy()
    wrong[0, 1, 2, 3] = np.nan
    refused([], "calibration has no sample")
    refused([good, {"x": wrong}], "calibration sample 1: .*NaN")
    refused([good, {"y": good["x"]}], "calibration sample 1: inputs: missing 'x'; unknown 'y'")
    refused([good, {"x": good["x"][:, :2]}], "calibration sample 1: .*3")
    refused([good, (good["x"], good["x"], good["x"])], "calibration sample 1: has 3 arrays, the program takes 1")
    refused([{"x": good["x"].astype(np.float64)}], "calibration sample 0: .*float64")
    refused(lambda: 3, "calibration\\(\\) gave int")

    def failing() -> Iterator[Any]:
        yield good
        raise RuntimeError("the disk is gone")

    refused(failing, "calibration sample 1 cannot be read: RuntimeError: the disk is gone")
    with pytest.raises(pn.InvalidArgument, match="metric failed: ZeroDivisionError"):
        model.build(quantize=pn.Int8(calibration=[good], metric=lambda run: 1 / 0, max_drop=1))
    metrics: list[tuple[Any, str]] = [
        (lambda run: float("nan"), "metric gave NaN, must give a finite number"),
        (lambda run: float("inf"), "metric gave inf"),
        (lambda run: -float("inf"), "metric gave -inf"),
        (lambda run: None, "metric failed: TypeError"),
        (lambda run: "good", "metric failed: ValueError"),
    ]
    for metric, part in metrics:
        with pytest.raises(pn.InvalidArgument, match=part):
            model.build(quantize=pn.Int8(calibration=[good], metric=metric, max_drop=1))
    with pytest.raises(pn.InvalidArgument, match="quantize must be None, Int8"):
        model.build(quantize="int8")  # type: ignore[arg-type]
    constant = model.build(quantize=pn.Int8(calibration=[{"x": np.zeros((1, 3, 16, 16), np.float32)}]))
    assert constant.quantization is not None


def test_what_cannot_be_quantised() -> None:
    model = pn.load(nn.Sequential(nn.Softmax(-1)), torch.zeros(2, 3))
    with pytest.raises(pn.Unsupported, match="no layer here has an 8-bit form"):
        model.build(quantize=pn.Int8(calibration=[np.zeros((2, 3), np.float32)]))


def test_what_is_made_ready_is_verified(
    model: pn.Model, samples: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that became another one when its channels were evened out is not quantised."""
    torch.manual_seed(4)
    other = pn.load(Net().eval(), torch.zeros(1, 3, 16, 16))
    changed = other.build().text(1 << 20).replace('activation="relu"', 'activation="tanh"')
    assert changed != other.build().text(1 << 20)
    core = _core.Model.parse(changed)
    monkeypatch.setattr(_core.Model, "ready_to_quantize", lambda self, equalize: core)
    with pytest.raises(pn.VerificationError, match="differs by"):
        model.build(quantize=pn.Int8(calibration=samples))


def test_a_transformer_layer() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    samples = [GENERATOR.standard_normal((1, 10, 32)).astype(np.float32) for _ in range(8)]
    model = pn.load(layer, torch.zeros(1, 10, 32), {"src": {1: pn.Dim("length", 1, 64)}})
    program = model.build(quantize=pn.Int8(calibration=samples))
    assert program.quantization is not None
    assert sum(not row.kept_float for row in program.quantization.rows if row.bytes_before) == 4
    assert max(program.quantization.errors.values()) < 0.1


@pytest.fixture(scope="module")
def mixed(model: pn.Model, samples: list[dict[str, Any]]) -> pn.Program:
    """With a layer between integers that stays in float."""
    program = model.build(quantize=pn.Int8(calibration=samples, skip=("gate*",)))
    assert program.quantization is not None
    assert [row.kept_float for row in program.quantization.rows if row.node == "gate.2" and row.bytes_before] == [True]
    return program


@pytest.mark.parametrize("which", ["program", "mixed"])
@pytest.mark.parametrize("target", ["vulkan", "softmetal"])
def test_graphics_processors_give_the_integers(which: str, target: str, request: pytest.FixtureRequest) -> None:
    """All of it there. The output, integers times their scale, is the CPU's to the bit, or within one step where a
    layer computes in float: its sums may fall to either side of a rounding tie."""
    program: pn.Program = request.getfixturevalue(which)
    session = pn.Session(program, target=target, fallback=False)
    assert {row.backend for row in session.placement} == {target}
    on_cpu = pn.Session(program, target="cpu")
    bound = 0 if which == "program" else 1.01 * output_scale(program)
    for x in images(8):
        (wanted,) = on_cpu.run(x).values()
        (found,) = session.run(x).values()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


def output_scale(program: pn.Program) -> float:
    """Of the integers that the output was."""
    assert program.quantization is not None
    (scale,) = (row.scale for row in program.quantization.ranges if row.value == "last")
    return scale


@pytest.mark.parametrize("which", ["program", "mixed"])
@pytest.mark.parametrize("level", [2, 3, 7])
def test_nnapi_gives_the_integers(which: str, level: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """All of it there from level 3 on, the convolutions below; the output within NNAPI's own tolerance, one step of its
    integers."""
    program: pn.Program = request.getfixturevalue(which)
    program.save(tmp_path / "net.pnc")
    said = run_at_level(tmp_path / "net.pnc", images(1)[0], level, tmp_path)
    # QUANTIZE, CAST and HARD_SWISH came with level 3.
    if level > 2:
        assert said["on_cpu"] == []
    assert not {"first.2", "depth.1", "depth.2", "add", "mul", "max_pool2d"} & set(said["on_cpu"])
    (difference,) = said["differences"].values()
    assert difference["largest"] <= 1.01 * output_scale(program)
    assert said["repeats"]


def test_the_fewest_layers() -> None:
    layers = [f"l{i}" for i in range(20)]
    for needed in (set(), {"l0"}, {"l0", "l1"}, {"l2"}, {"l0", "l5"}, {"l19"}, set(layers)):

        def score(kept: Sequence[str], needed: set[str] = needed) -> float:
            return float(len(needed & set(kept)))

        found = fewest_kept(layers, score, len(needed))
        assert needed <= set(found.kept)
        if len(needed) < 16 and max((int(n[1:]) for n in needed), default=0) < 16:
            assert set(found.kept) == needed
        assert found.tried <= 30


def test_statistics_of_a_value() -> None:
    s = _core.ValueStatistics()
    s.add(np.array([[1, 2], [3, -4]], np.float32), 1)
    assert s.samples == 2
    assert s.extremes == pytest.approx((-4, 3))
    assert list(s.channel_means) == pytest.approx([2, -1])
    assert sum(s.histogram()[2]) == 4
    with pytest.raises(pn.InvalidArgument, match="observer 'x'"):
        s.range("x")
    with pytest.raises(pn.CorruptFile):
        _core.ValueStatistics.from_bytes(b"nothing")
    again = _core.ValueStatistics.from_bytes(s.to_bytes())
    again.merge(s)
    assert again.samples == 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, net: nn.Module, samples: list[dict[str, Any]]) -> Path:
    """The network as a .pt2 file, and folders of samples."""
    made = tmp_path_factory.mktemp("quantize")
    torch.export.save(torch.export.export(net, (torch.zeros(1, 3, 16, 16),)), made / "net.pt2")
    (made / "samples").mkdir()
    for i, sample in enumerate(samples[:3]):
        np.savez(made / "samples" / f"{i}.npz", **sample)
        np.save(made / "samples" / f"{i}.npy", sample["x"])
    (made / "samples" / ".hidden").write_text("")
    (made / "empty").mkdir()
    (made / "other").mkdir()
    (made / "other" / "a.txt").write_text("")
    return made


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str], samples: list[dict[str, Any]]) -> None:
    source, file = str(folder / "net.pt2"), folder / "net.pnc"
    int8 = ["convert", source, "-o", str(file), "--quantize", "int8", "--calibration", str(folder / "samples")]
    assert cli.main(int8) == 0
    said = capsys.readouterr()
    assert "  quantization: int8: 12 of 12 nodes, error " in said.out
    assert cli.main(["inspect", str(file)]) == 0
    said = capsys.readouterr()
    assert "\nquantization: int8: 12 of 12 nodes, error " in said.out
    assert max(map(len, said.out.splitlines())) < 400, "the report itself is not for a terminal"
    report = pn.Program.open(file).quantization
    assert report is not None
    assert report.samples == 6
    assert cli.main([*int8, "--max-drop", "1%", "--skip", "gate", "--observer", "mse", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert any(row["reason"] == "skip='gate'" for row in facts["quantization"]["rows"])
    assert cli.main(["convert", source, "-o", str(file), "--quantize", "float16", "--skip", "gate"]) == 0
    report = pn.Program.open(file).quantization
    assert report is not None
    assert report.method == "float16"
    assert cli.main(["convert", source, "-o", str(file), "--quantize", "dynamic8"]) == 0
    report = pn.Program.open(file).quantization
    assert report is not None
    assert [row.op for row in report.rows if not row.kept_float] == ["gemm"]
    assert max(facts["quantization"]["errors"].values()) <= 0.01
    weights = ["convert", source, "-o", str(file), "--quantize", "weights4", "--block", "32"]
    assert cli.main(weights) == 0
    assert "weights of 4 bits" in capsys.readouterr().out
    assert cli.main([*weights, "--calibration", str(folder / "samples"), "--quiet"]) == 0
    report = pn.Program.open(file).quantization
    assert report is not None
    assert report.samples > 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--quantize", "int8"], "--calibration FOLDER"),
        (["--quantize", "int4"], "invalid choice"),
        (["--calibration", "samples"], "--calibration: only with --quantize"),
        (["--max-drop", "1", "--skip", "a"], "--max-drop, --skip: only with --quantize"),
        (["--quantize", "int8", "--calibration", "samples", "--block", "8"], "--block: not with --quantize int8"),
        (["--quantize", "weights4", "--calibration", "empty"], "calibration has no sample"),
        (["--quantize", "weights8", "--max-drop", "1%"], "--max-drop: not with --quantize weights8"),
        (["--quantize", "dynamic8", "--block", "32"], "--block: not with --quantize dynamic8"),
        (["--quantize", "float16", "--max-drop", "1%"], "--max-drop: not with --quantize float16"),
        (["--quantize", "dynamic8", "--observer", "mse"], "--observer: not with --quantize dynamic8"),
        (["--quantize", "weights8", "--block", "12"], "block must be a multiple of 8"),
        (["--quantize", "int8", "--calibration", "samples", "--max-drop", "some"], "max_drop must be"),
        (["--quantize", "int8", "--calibration", "nowhere"], "nowhere: "),
        (["--quantize", "int8", "--calibration", "empty"], "calibration has no sample"),
        (["--quantize", "int8", "--calibration", "other"], "is no .npz, .npy or image"),
    ],
)
def test_the_command_refuses(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], part: str) -> None:
    filled = [str(folder / a) if a in ("samples", "empty", "other", "nowhere") else a for a in arguments]
    file = folder / "refused.pnc"
    try:
        status = cli.main(["convert", str(folder / "net.pt2"), "-o", str(file), *filled])
    except SystemExit as end:
        status = int(end.code or 0)
    assert status == 2
    assert part in capsys.readouterr().err
    assert not file.exists()
