"""8-bit networks and recurrent ones on the GPU back ends with fallback off: integers equal to the CPU's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from target_problem import problem
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore")


TARGETS = [
    pytest.param(target, marks=pytest.mark.skipif(bool(why), reason=why))
    for target, why in ((target, problem(target)) for target in ("vulkan", "softmetal"))
]


def outputs(program: pn.Program, inputs: dict[str, Any], target: str, precision: str = "fp32") -> list[np.ndarray]:
    session = pn.Session(program, target=target, precision=precision, fallback=False)
    assert {row.backend for row in session.placement} == {target}
    return [np.asarray(made) for made in session.run(inputs).values()]


@pytest.mark.rotating
@pytest.mark.parametrize("target", TARGETS)
def test_pt2e_resnet(target: str) -> None:
    """Scales per channel, as the XNNPACK quantizer states them; residuals, a max pool, a mean and a linear layer."""
    flow: Any = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e", reason="torchao is not installed")
    xnnpack: Any = pytest.importorskip("torchao.testing.pt2e._xnnpack_quantizer")
    import torchvision_ops  # noqa: F401  # before torchvision: it declares what its missing C extension would

    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    module = torchvision.models.resnet18(weights=None, num_classes=16)
    module.train()
    with torch.no_grad():  # statistics under which activations do not vanish
        for _ in range(3):
            module(torch.randn(4, 3, 64, 64))
    x = torch.randn(2, 3, 64, 64)
    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    quantizer = xnnpack.XNNPACKQuantizer().set_global(config)
    prepared = flow.prepare_pt2e(torch.export.export(module.eval(), (x,)).module(), quantizer)
    with torch.no_grad():
        prepared(x)
        program = pn.load(torch.export.export(flow.convert_pt2e(prepared), (x,))).build(verify=False)
    inputs = {next(iter(pn.Session(program, target="cpu").inputs)): x}
    (want,), (got,) = outputs(program, inputs, "cpu"), outputs(program, inputs, target)
    assert len(np.unique(want)) > 8
    np.testing.assert_array_equal(got, want)
    # Floats at the edges have 16 bits then; between them nothing changes.
    (half,) = outputs(program, inputs, target, "fp16")
    assert np.abs(half - want).max() <= 0.1 * np.abs(want).max()


class Both(nn.Module):
    """Two directions and a state that is given."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(12, 10, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.cell(x, (h, c))
        return y, h, c


@pytest.mark.parametrize("target", TARGETS)
def test_both_directions_and_given_states(target: str) -> None:
    torch.manual_seed(3)
    module = Both().eval()
    given = (torch.randn(3, 7, 12), torch.randn(4, 3, 10), torch.randn(4, 3, 10))
    program = pn.load(module, given).build(verify=False)
    with torch.no_grad():
        want = [t.numpy() for t in module(*given)]
    names = list(pn.Session(program, target="cpu").inputs)
    for got, wanted in zip(outputs(program, dict(zip(names, given, strict=True)), target), want, strict=True):
        assert_agree(got, wanted)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bits", [8, 4])
def test_stored_weights_become_floats(bits: int, target: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """8 bits with a scale per column; 4 bits with one per column and block of 16 rows."""
    where: Any = {"axis": 1} if bits == 8 else {"axis": 0, "block_size": 16}
    scale = rng.uniform(0.01, 0.1, 8 if bits == 8 else (2, 8)).astype(np.float32)
    kind = onnx.TensorProto.INT8 if bits == 8 else onnx.TensorProto.INT4
    w = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (32, 8))
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["w", "scale"], ["wide"], **where),
        onnx.helper.make_node("MatMul", ["x", "wide"], ["y"]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "stored",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [5, 32])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [5, 8])],
        [onnx.helper.make_tensor("w", kind, w.shape, w.ravel().tolist()), onnx.numpy_helper.from_array(scale, "scale")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "stored.onnx")
    program = pn.load(str(tmp_path / "stored.onnx")).build(verify=False)
    x = rng.standard_normal((5, 32)).astype(np.float32)
    (got,) = outputs(program, {"x": x}, target)
    wide = w * (scale if bits == 8 else np.repeat(scale, 16, axis=0))
    assert_agree(got, (x @ wide).astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_stored_weights_of_a_convolution(target: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """8 bits with a scale per output channel: known with the plan, so that the kernels of images take them."""
    scale = rng.uniform(0.01, 0.1, 8).astype(np.float32)
    w = rng.integers(-128, 128, (8, 5, 3, 3)).astype(np.int8)
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["w", "scale"], ["wide"], axis=0),
        onnx.helper.make_node("Conv", ["x", "wide"], ["y"], pads=[1, 1, 1, 1]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "stored",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 5, 7, 9])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 8, 7, 9])],
        [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(scale, "scale")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "stored.onnx")
    program = pn.load(str(tmp_path / "stored.onnx")).build(verify=False)
    x = rng.standard_normal((2, 5, 7, 9)).astype(np.float32)
    (got,) = outputs(program, {"x": x}, target)
    wide = torch.from_numpy(w * scale[:, None, None, None])
    want = nn.functional.conv2d(torch.from_numpy(x), wide, padding=1).numpy()
    assert_agree(got, want)
    session = pn.Session(program, target=target, fallback=False)
    session.run({"x": x})
    assert any(row.kernel.startswith("conv_nc4hw4") for row in session.placement)


class Convolved(nn.Module):
    """Weights and bias come with a run."""

    def forward(self, x: Tensor, w: Tensor, b: Tensor, v: Tensor) -> Tensor:
        y = nn.functional.conv2d(x, w, b, stride=2, padding=1, groups=2).relu()
        return nn.functional.conv_transpose2d(y, v, stride=2)


@pytest.mark.parametrize("target", TARGETS)
def test_convolutions_of_what_a_run_brings(target: str) -> None:
    torch.manual_seed(4)
    given = (torch.randn(2, 6, 9, 11), torch.randn(8, 3, 3, 3), torch.randn(8), torch.randn(8, 5, 2, 2))
    program = pn.load(Convolved(), given).build(verify=False)
    names = list(pn.Session(program, target="cpu").inputs)
    want = Convolved()(*given).numpy()
    for precision, part in (("fp32", 1e-5), ("fp16", 1e-2)):
        (got,) = outputs(program, dict(zip(names, given, strict=True)), target, precision)
        assert np.abs(got - want).max() <= part * np.abs(want).max()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [3, 4])
def test_moves_of_bytes(size: int, target: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """What quantize_linear makes is an image of bytes: parts of it, exchanged and turned, are not moved as floats."""
    nodes = [
        onnx.helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        onnx.helper.make_node("Split", ["q", "sizes"], ["a", "b"], axis=1),
        onnx.helper.make_node("Concat", ["b", "a"], ["c"], axis=1),
        onnx.helper.make_node("Transpose", ["c"], ["d"], perm=[0, 2, 3, 1]),
        onnx.helper.make_node("DequantizeLinear", ["d", "scale", "zero"], ["y"]),
    ]
    channels = 2 * size + 1
    constants = {
        "scale": np.float32(0.013),
        "zero": np.int8(-5),
        "sizes": np.array([size, channels - size], np.int64),
    }
    graph = onnx.helper.make_graph(
        nodes,
        "moves",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, channels, 5, 7])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 5, 7, channels])],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "moves.onnx")
    program = pn.load(str(tmp_path / "moves.onnx")).build(verify=False)
    x = rng.standard_normal((2, channels, 5, 7)).astype(np.float32)
    (want,), (got,) = outputs(program, {"x": x}, "cpu"), outputs(program, {"x": x}, target)
    np.testing.assert_array_equal(got, want)
