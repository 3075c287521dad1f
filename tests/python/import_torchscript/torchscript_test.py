"""TorchScript: eager-mode quantised models keep their integers, float ones go through torch's converter, and what
cannot be imported is named at once."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import int8_mobilenet
import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from int8_mobilenet import jit, quantization, seeded
from torch import Tensor, nn
from torch.ao.nn.quantized import FloatFunctional as TypedFloatFunctional

pytestmark = pytest.mark.filterwarnings("ignore")


FloatFunctional: Any = TypedFloatFunctional  # untyped in torch's own stubs


class Edges(nn.Module):
    """A module between a quantiser and a dequantiser."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.quant, self.inner, self.dequant = quantization.QuantStub(), inner, quantization.DeQuantStub()

    def forward(self, x: Tensor) -> Any:
        return self.dequant(self.inner(self.quant(x)))


def quantised(inner: nn.Module, x: Tensor, engine: str = "qnnpack", fuse: Any = None) -> Any:
    """Calibrated on x and converted, with float edges."""
    torch.backends.quantized.engine = engine
    module: Any = Edges(inner).eval()
    if fuse:
        quantization.fuse_modules(module.inner, fuse, inplace=True)
    module.qconfig = quantization.get_default_qconfig(engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization.prepare(module, inplace=True)
        module(x)
        quantization.convert(module, inplace=True)
    return module


class Of(nn.Module):
    """A function of a convolution's result, or of two."""

    def __init__(self, function: Callable[..., Any], two: bool = False) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(3, 8, 1) if two else None
        self.ops = FloatFunctional()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        result = self.function(self.ops, self.a(x), self.b(x)) if self.b is not None else self.function(self.a(x))
        assert isinstance(result, Tensor)
        return result


f = nn.functional
MODULES: dict[str, Callable[[], nn.Module]] = {
    "conv": lambda: nn.Conv2d(3, 8, 3, padding=1),
    "conv with strides, dilation and groups": lambda: nn.Conv2d(
        3, 6, 3, stride=(2, 1), padding=2, dilation=2, groups=3
    ),
    "conv without bias": lambda: nn.Conv2d(3, 5, 3, bias=False),
    "transposed conv": lambda: nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1),
    "add": lambda: Of(lambda ops, a, b: ops.add(a, b), two=True),
    "add_relu": lambda: Of(lambda ops, a, b: ops.add_relu(a, b), two=True),
    "mul": lambda: Of(lambda ops, a, b: ops.mul(a, b), two=True),
    "cat": lambda: Of(lambda ops, a, b: ops.cat([a, b], 1), two=True),
    "relu": lambda: Of(torch.relu),
    "relu in place": lambda: Of(lambda x: torch.relu_(x) if x.is_quantized else torch.relu(x)),
    "hardtanh": lambda: Of(lambda x: f.hardtanh(x, -0.5, 0.5)),
    "relu6": lambda: Of(f.relu6),
    "hardswish": lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.Hardswish()),
    "leaky_relu": lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.LeakyReLU(0.1)),
    "sigmoid": lambda: Of(torch.sigmoid),
    "max_pool": lambda: Of(lambda x: f.max_pool2d(x, 3, 2, 1)),
    "avg_pool": lambda: Of(lambda x: f.avg_pool2d(x, 2)),
    "adaptive_avg_pool, flatten": lambda: Of(lambda x: f.adaptive_avg_pool2d(x, 1).flatten(1)),
    "mean": lambda: Of(lambda x: x.mean([2, 3])),
    "upsample nearest": lambda: Of(lambda x: f.interpolate(x, scale_factor=2.0, mode="nearest")),
    "upsample bilinear": lambda: Of(lambda x: f.interpolate(x, size=(15, 9), mode="bilinear", align_corners=False)),
    "permute, reshape": lambda: Of(lambda x: x.permute(0, 2, 3, 1).reshape(1, -1, 8)),
    "slice, transpose": lambda: Of(lambda x: x[:, 2:7].transpose(1, 2)),
    "channel shuffle": lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.ChannelShuffle(2)),
    "reshape by its own sizes": lambda: Of(lambda x: x.reshape(x.size(0), -1)),
}
# qnnpack's clamps put channels-last elements in another order: PyTorch's own result is not that of the operator.
ELSEWHERE = {"hardtanh": "fbgemm", "relu6": "fbgemm"}


def agree(model: pn.Model, source: Any, inputs: tuple[Tensor, ...], step: float, differing: float = 0.02) -> None:
    """The built program's results are the source's, a few of them one step away."""
    session = pn.Session(model.build(), target="cpu")
    (got,) = session.run(dict(zip(session.inputs, inputs, strict=True))).values()
    want = source(*inputs).detach()
    want = (want.int_repr() if want.is_quantized else want).numpy()
    distance = np.abs(got.astype(np.float64) - want.astype(np.float64)) / step
    assert distance.max(initial=0) < 1.01
    assert (distance > 0.01).mean() <= differing


@pytest.mark.parametrize("name", MODULES)
def test_quantised_operator(name: str) -> None:
    torch.manual_seed(5)
    x = seeded(1, 3, 10, 12)
    module = quantised(MODULES[name](), x, ELSEWHERE.get(name, "qnnpack"))
    script = jit.trace(module, x)
    model = pn.load(script, (x,))
    # The edges stay; nothing between them computes in floats.
    floats = [
        n for n in model.nodes if n.op not in ("quantize_linear", "dequantize_linear") and "f32" in str(n.outputs)
    ]
    assert not floats
    y = module.inner(module.quant(x))
    agree(model, script, (x,), y.q_scale(), 0.1 if name == "upsample bilinear" else 0.02)


@pytest.mark.parametrize("engine", ["qnnpack", "fbgemm"])
def test_conv_relu_and_linear_relu(engine: str) -> None:
    """Per tensor on qnnpack; per channel, and activations of 7 bits, on fbgemm."""
    torch.manual_seed(5)
    inner = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10), nn.ReLU())
    x = seeded(2, 3, 8, 8)
    module = quantised(inner, x, engine, [["0", "1"], ["3", "4"]])
    script = jit.trace(module, x)
    agree(pn.load(script, (x,)), script, (x,), module.inner(module.quant(x)).q_scale(), 0.06)


def test_layers_of_a_quantised_script(tmp_path: Path) -> None:
    """compare() holds the integers of each layer against the script's, which is run node by node."""
    torch.manual_seed(5)
    inner = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32, 10)
    )
    x = seeded(2, 3, 8, 8)
    script = jit.trace(quantised(inner, x, "fbgemm", [["0", "1"]]), x)
    jit.save(script, str(tmp_path / "m.pt"))
    program = pn.load(script, (x,)).build()
    (name,) = program.inputs
    for reference in (script, tmp_path / "m.pt"):
        made = pn.compare(program, reference, [{name: seeded(2, 3, 8, 8).numpy() * 0.9}])
        assert made.ok, str(made)
        assert {"quantize_linear", "conv", "max_pool", "gemm"} <= {row.op for row in made.rows}
        assert sum(row.op == "conv" for row in made.rows) == 2
    with pytest.raises(pn.Unsupported, match="quantised inputs is compared when load"):
        pn.compare(program, script, [{name: np.zeros((2, 3, 8, 8), np.uint8)}])


@pytest.mark.rotating
def test_mobilenet_v2_with_float_edges(tmp_path: Path) -> None:
    script, x = int8_mobilenet.build("float edges")
    jit.save(script, str(tmp_path / "m.pt"))
    loaded = pn.load(tmp_path / "m.pt", (x,))
    assert sum(n.op == "conv" for n in loaded.nodes) == 52
    assert {"quantize_linear", "dequantize_linear"} == {n.op for n in loaded.nodes if "linear" in n.op}
    program = loaded.build()
    session = pn.Session(program, target="cpu")
    (got,) = session.run(dict.fromkeys(session.inputs, x)).values()
    want = script(x).numpy()
    # 53 layers, each of which may round one step another way than PyTorch's fixed point does.
    assert np.corrcoef(got.ravel(), want.ravel())[0, 1] > 0.98


@pytest.mark.rotating
def test_mobilenet_v2_quantised_throughout() -> None:
    script, x = int8_mobilenet.build("throughout")
    loaded = pn.load(script, (x,))
    assert [str(s.dtype) for s in (*loaded.inputs.values(), *loaded.outputs.values())] == ["uint8", "uint8"]
    session = pn.Session(loaded.build(), target="cpu")
    (got,) = session.run(dict.fromkeys(session.inputs, x)).values()
    want = script(x).int_repr().numpy()
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 12
    assert np.corrcoef(got.ravel(), want.ravel())[0, 1] > 0.98


class Segmentation(nn.Module):
    """Down, up by a transposed convolution, by nearest and by bilinear resizing."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.mix, self.head, self.ops = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 2, 1), FloatFunctional()

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(x)
        x = self.ops.add(self.up(x), nn.functional.interpolate(self.mix(self.up(x)), scale_factor=1.0, mode="nearest"))
        return nn.functional.interpolate(self.head(x), scale_factor=2.0, mode="bilinear", align_corners=False)


def test_segmentation_network() -> None:
    torch.manual_seed(2)
    x = seeded(1, 3, 32, 24)
    plain = jit.trace(Segmentation().eval(), x)
    agree(pn.load(plain, (x,)), plain, (x,), 1e-4, 0.5)
    torch.manual_seed(2)
    script = jit.trace(quantised(Segmentation(), x), x)
    loaded = pn.load(script, (x,))
    session = pn.Session(loaded.build(), target="cpu")
    (got,) = session.run(dict.fromkeys(session.inputs, x)).values()
    assert np.corrcoef(got.ravel(), script(x).numpy().ravel())[0, 1] > 0.999


# What PyTorch's own converter for NNAPI got wrong without a word. Each row: what it made of it.
CONVERTED_WRONG: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "max pool: ceil_mode ignored": (nn.MaxPool2d(3, 2, ceil_mode=True), (1, 4, 8, 8)),
    "transposed conv: output_padding ignored": (nn.ConvTranspose2d(4, 3, 3, 2, output_padding=1), (1, 4, 8, 8)),
    "transposed conv with groups: a depthwise conv": (nn.ConvTranspose2d(4, 4, 3, 2, groups=4), (1, 4, 8, 8)),
    "slice with a step: length rounded down": (Of(lambda x: x[:, 0:5:2]), (1, 3, 8, 8)),
    "slice of the whole range with a step: dropped": (Of(lambda x: x[:, ::2]), (1, 3, 8, 8)),
    "slice: end beyond the size": (Of(lambda x: x[:, 2:100]), (1, 3, 8, 8)),
    "average pool: ceil_mode ignored": (nn.AvgPool2d(3, 2, ceil_mode=True), (1, 4, 8, 8)),
    "to another type: nothing": (Of(lambda x: (x * 10).to(torch.int32)), (1, 3, 8, 8)),
    "softmax over channels, channels last: over rows": (nn.Softmax(dim=1), (1, 4, 5, 6)),
    "slice of channels, channels last: other dimension": (Of(lambda x: x[:, 1:3]), (1, 3, 8, 8)),
    "reshape, channels last: other order": (Of(lambda x: x.reshape(1, -1)), (1, 3, 8, 8)),
    "average pool counts padding": (nn.AvgPool2d(3, 1, 1, count_include_pad=True), (1, 4, 8, 8)),
    "transposed conv: width and padding": (nn.ConvTranspose2d(4, 3, (3, 4), 2, padding=(1, 0)), (1, 4, 8, 5)),
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["nchw", "nhwc"])
@pytest.mark.parametrize("name", CONVERTED_WRONG)
def test_converted_wrong_elsewhere(name: str, layout: torch.memory_format) -> None:
    torch.manual_seed(1)
    module, shape = CONVERTED_WRONG[name]
    x = seeded(*shape).contiguous(memory_format=layout)
    script = jit.trace(module.eval(), x)
    session = pn.Session(pn.load(script, (x,)).build(), target="cpu")
    (got,) = session.run(dict.fromkeys(session.inputs, x)).values()
    want = script(x).detach().numpy()
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    assert_agree(got, want)


def test_concatenation_of_other_scales_requantises() -> None:
    """The last of that list: parts were joined as they were stored."""
    torch.manual_seed(1)
    x = seeded(1, 3, 6, 6)
    module = quantised(
        Of(lambda ops, a, b: ops.cat([a, b * 1], 1) if not a.is_quantized else ops.cat([a, b], 1), True), x
    )
    with torch.no_grad():
        assert module.inner.a.scale != module.inner.b.scale
    script = jit.trace(module, x)
    agree(pn.load(script, (x,)), script, (x,), module.inner(module.quant(x)).q_scale())


def test_float_scripts() -> None:
    class Branches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(2):
                x = x * 2
            return torch.tanh(x)

    x = seeded(2, 5)
    for script in (jit.script(Branches()), jit.trace(nn.LSTM(5, 4), x.unsqueeze(0))):
        given = x if x.dim() == 2 and not isinstance(script, jit.TopLevelTracedModule) else x.unsqueeze(0)
        session = pn.Session(pn.load(script, (given,)).build(), target="cpu")
        got = list(session.run(dict.fromkeys(session.inputs, given)).values())
        want = torch.utils._pytree.tree_leaves(script(given))
        for a, b in zip(got, want, strict=True):
            assert_agree(a, b.detach().numpy())


def test_scripts_beside_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is imported, calls are looked through for its caches."""
    monkeypatch.setitem(sys.modules, "transformers.cache_utils", types.SimpleNamespace(Cache=type("Cache", (), {})))
    net = nn.Sequential(nn.Linear(3, 3)).eval()
    for script in (jit.script(net), jit.trace(net, (torch.zeros(2, 3),))):
        assert pn.load(script, torch.randn(2, 3)).build().metadata["verified.cpu"].startswith("yes")


def test_lines_of_the_user() -> None:
    x = seeded(1, 3, 8, 8)
    model = pn.load(jit.trace(quantised(Of(torch.relu), x), x), (x,))
    (relu,) = [n for n in model.nodes if n.op == "conv"]
    assert "torchscript_quantized" not in relu.source


def test_all_nodes_that_cannot_be_imported_are_named() -> None:
    torch.backends.quantized.engine = "qnnpack"

    class Twice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
            elu = torch.ops.quantized.elu
            made: Tensor = elu(elu(q, 0.1, 3), 0.1, 3).dequantize()
            return made

    x = seeded(2, 4)
    with pytest.raises(pn.ConversionError) as caught:
        pn.load(jit.trace(Twice(), x), (x,))
    assert [n.op for n in caught.value.nodes] == ["quantized::elu"] * 2
    assert all(n.rule and n.source for n in caught.value.nodes)


def test_operator_on_quantised_tensors_without_a_meaning() -> None:
    torch.backends.quantized.engine = "qnnpack"

    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).topk(2)[0].dequantize()

    x = seeded(2, 4)
    with pytest.raises(pn.ConversionError, match="aten::topk") as caught:
        pn.load(jit.trace(Odd(), x), (x,))
    assert "torchscript_test.py" in caught.value.nodes[0].source


def test_wrong_calls(tmp_path: Path) -> None:
    x = seeded(1, 3, 8, 8)
    script = jit.trace(quantised(nn.Conv2d(3, 4, 3), x), x)
    with pytest.raises(pn.InvalidArgument, match="example_inputs"):
        pn.load(script)
    with pytest.raises(pn.InvalidArgument, match="2 tensors, the module takes 1"):
        pn.load(script, (x, x))
    with pytest.raises(pn.InvalidArgument, match="dynamic_shapes"):
        pn.load(script, (x,), {"x": {0: pn.Dim("n", 1, 4)}})
    with pytest.raises(pn.InvalidArgument, match="without names"):
        pn.load(script, {"x": x})
    jit.save(script, str(tmp_path / "m.pt"))
    data = (tmp_path / "m.pt").read_bytes()
    for cut in (len(data) // 3, len(data) - 30):
        (tmp_path / "cut.pt").write_bytes(data[:cut])
        with pytest.raises(pn.Error):
            pn.load(tmp_path / "cut.pt", (x,))
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "state.pt")
    with pytest.raises(pn.Error, match=r"state\.pt"):
        pn.load(tmp_path / "state.pt", (x,))
