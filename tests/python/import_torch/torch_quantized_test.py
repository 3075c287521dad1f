"""quantized_decomposed operators, static and dynamic, and whole PT2E models: integers bit for bit with PyTorch where a
value is not on the edge between two, and never more than one unit away."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # declares torch.ops.quantized_decomposed
from torch import Tensor, nn

QD: Any = torch.ops.quantized_decomposed


class Of(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Any:
        return self.function(*args)


def results(module: nn.Module, inputs: tuple[Tensor, ...], folder: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(ours, PyTorch's)."""
    with torch.no_grad():
        program = torch.export.export(module, inputs)
        wanted = [np.array(t) for t in torch.utils._pytree.tree_leaves(program.module()(*inputs))]
    torch.export.save(program, folder / "m.pt2")
    session = pn.Session(pn.load(str(folder / "m.pt2")).build(verify=False), target="cpu")
    given = dict(zip(session.inputs, (i.numpy() for i in inputs), strict=True))
    return [np.array(a) for a in session.run(given).values()], wanted


def assert_units(got: np.ndarray, want: np.ndarray, differing: float = 0.0) -> None:
    """Integers: at most one apart, and at most that share of them."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    distance = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert distance.max(initial=0) <= 1
    assert (distance > 0).mean() <= differing


def seeded(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


# PyTorch multiplies by 1 / scale, ONNX divides: only values on the edge between two integers could tell them apart.
INT8, UINT8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
INTEGER_CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "per tensor": (lambda x: QD.quantize_per_tensor(x, 0.05, 3, *INT8), (seeded(4, 33),)),
    "per tensor, narrow": (lambda x: QD.quantize_per_tensor(x, 0.007, 0, -127, 127, torch.int8), (seeded(4, 33),)),
    "per tensor, unsigned": (lambda x: QD.quantize_per_tensor(x, 0.02, 100, *UINT8), (seeded(4, 33),)),
    "per tensor, 16 bits": (lambda x: QD.quantize_per_tensor(x, 1e-4, 0, -32768, 32767, torch.int16), (seeded(9),)),
    "per tensor, tensors": (
        lambda x, s, z: QD.quantize_per_tensor.tensor(x, s, z, *INT8),
        (seeded(4, 33), torch.tensor(0.05), torch.tensor(-2)),
    ),
    "per channel": (
        lambda x, s, z: QD.quantize_per_channel(x, s, z, 1, *INT8),
        (seeded(2, 4, 5), torch.rand(4) + 0.01, torch.tensor([0, 3, -7, 1])),
    ),
    "per channel, narrow": (
        lambda x, s, z: QD.quantize_per_channel(x, s, z, 0, -127, 127, torch.int8),
        (seeded(4, 5) * 100, torch.rand(4) + 0.01, torch.zeros(4, dtype=torch.int64)),
    ),
    "per token": (
        lambda x, s, z: QD.quantize_per_token(x, s, z, *INT8),
        (seeded(3, 4, 9), torch.rand(3, 4, 1) + 0.01, torch.randint(-5, 5, (3, 4, 1))),
    ),
    "per group": (
        lambda x, s, z: QD.quantize_per_channel_group(x, s, z, -8, 7, torch.int8, 4),
        (seeded(3, 8), torch.rand(3, 2) + 0.1, torch.zeros(3, 2)),
    ),
}


@pytest.mark.parametrize("name", INTEGER_CASES)
def test_quantize(name: str, tmp_path: Path) -> None:
    function, inputs = INTEGER_CASES[name]
    ours, theirs = results(Of(function), inputs, tmp_path)
    assert_units(ours[0], theirs[0])


Q = torch.randint(-128, 128, (3, 8), generator=torch.Generator().manual_seed(5)).to(torch.int8)
REAL_CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "per tensor": (lambda q: QD.dequantize_per_tensor(q, 0.05, 3, *INT8), (Q,)),
    "per channel": (
        lambda q, s, z: QD.dequantize_per_channel(q, s, z, 0, *INT8),
        (Q, torch.rand(3) + 0.1, torch.tensor([0, 5, -3])),
    ),
    "per channel, no zero points": (
        lambda q, s: QD.dequantize_per_channel(q, s, None, 1, *INT8),
        (Q, torch.rand(8) + 0.1),
    ),
    "per token": (
        lambda q, s, z: QD.dequantize_per_token(q, s, z, *INT8, torch.float32),
        (Q, torch.rand(3, 1) + 0.1, torch.randint(-5, 5, (3, 1))),
    ),
    "per group": (
        lambda q, s, z: QD.dequantize_per_channel_group(q, s, z, -8, 7, torch.int8, 4, torch.float32),
        (Q, torch.rand(3, 2) + 0.1, torch.zeros(3, 2)),
    ),
    "per group, integer zero points": (
        lambda q, s, z: QD.dequantize_per_channel_group(q, s, z, -8, 7, torch.int8, 4, torch.float32),
        (Q, torch.rand(3, 2) + 0.1, torch.randint(-5, 5, (3, 2))),
    ),
    "choose, per tensor": (lambda x: QD.choose_qparams.tensor(x, -128, 127, 1e-7, torch.int8), (seeded(3, 8),)),
    "choose, symmetric": (lambda x: QD.choose_qparams_symmetric.tensor(x, -127, 127, 1e-7, torch.int8), (seeded(9),)),
    "choose, per token": (lambda x: QD.choose_qparams_per_token(x, torch.int8), (seeded(3, 8),)),
    "choose, per token, asymmetric": (
        lambda x: QD.choose_qparams_per_token_asymmetric(x, torch.int8),
        (seeded(3, 8) + 1,),
    ),
}


@pytest.mark.parametrize("name", REAL_CASES)
def test_dequantize_and_choose(name: str, tmp_path: Path) -> None:
    function, inputs = REAL_CASES[name]
    ours, theirs = results(Of(function), inputs, tmp_path)
    for got, want in zip(ours, theirs, strict=True):
        assert got.shape == want.shape
        # PyTorch's own results are f32 where the archive declares f64.
        torch.testing.assert_close(
            torch.from_numpy(got.astype(want.dtype)), torch.from_numpy(want), rtol=1e-6, atol=1e-7
        )


class StoredLinear(nn.Module):
    """A linear layer of 8-bit weights with scales per channel, or per group of 32: too large to be folded to floats."""

    def __init__(self, groups: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.groups = groups
        self.bias = nn.Parameter(torch.randn(320, generator=generator))
        self.register_buffer("weight", torch.randint(-128, 128, (320, 640), generator=generator).to(torch.int8))
        shape = (320, 20) if groups else (320,)
        self.register_buffer("scales", torch.rand(shape, generator=generator) * 0.01 + 0.001)
        self.register_buffer("zeros", torch.randint(-3, 4, shape, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        if self.groups:
            w = QD.dequantize_per_channel_group(
                self.weight, self.scales, self.zeros, -128, 127, torch.int8, 32, torch.float32
            )
        else:
            w = QD.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, *INT8)
        return nn.functional.linear(x, w, self.bias)


@pytest.mark.parametrize("groups", [False, True], ids=["channels", "groups"])
@pytest.mark.parametrize("rows", [1, 20])
def test_weights_stay_integers_in_products(groups: bool, rows: int) -> None:
    """The kernel that multiplies by stored integers takes what PyTorch writes, and nothing is dequantised before."""
    module = StoredLinear(groups).eval()
    x = seeded(2, rows, 640)
    session = pn.Session(pn.load(module, example_inputs=(x,)).build(verify=False), target="cpu")
    given = {next(iter(session.inputs)): x.numpy()}
    (got,) = session.run(given).values()
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(np.array(got)), module(x), rtol=1e-5, atol=1e-3)
    kernels = [event.kernel for event in session.profile(given).events]
    assert len(kernels) == 1
    assert kernels[0].startswith("mat_mul_weights_f32_")


def pt2e(module: nn.Module, x: Tensor, dynamic: bool) -> nn.Module:
    """The flow of torchao with the XNNPACK quantizer: int8, weights per channel."""
    flow: Any = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e", reason="torchao is not installed")
    xnnpack: Any = pytest.importorskip("torchao.testing.pt2e._xnnpack_quantizer")
    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    prepared = flow.prepare_pt2e(
        torch.export.export(module, (x,)).module(), xnnpack.XNNPACKQuantizer().set_global(config)
    )
    with torch.no_grad():
        prepared(x)
        converted: nn.Module = flow.convert_pt2e(prepared)
    return converted


class Held(torch.fx.Interpreter):
    """PyTorch's own run of a graph, where each quantised tensor is held against ours and then replaced by it: so every
    layer is judged on its own, on equal inputs."""

    def __init__(self, graph: torch.fx.GraphModule, ours: dict[str, np.ndarray]) -> None:
        super().__init__(graph)
        self.ours = ours
        self.differing: dict[str, float] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if n.name not in self.ours:
            return result
        got = self.ours[n.name]
        # The mean of four integers is on an edge one time in eight; sums of products rarely are.
        pooled = "pool" in str(n.args[0])
        assert_units(got, result.numpy(), differing=0.15 if pooled else 0.01)
        self.differing[n.name] = float((got != result.numpy()).mean())
        return torch.from_numpy(got)


@pytest.mark.rotating
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_pt2e_models(name: str, tmp_path: Path) -> None:
    import torchvision_ops  # noqa: F401  # before torchvision: it declares what its missing C extension would

    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    module = getattr(torchvision.models, name)(weights=None, num_classes=16)
    module.train()
    with torch.no_grad():  # statistics under which activations do not vanish
        for _ in range(3):
            module(torch.randn(4, 3, 64, 64))
    x = seeded(2, 3, 64, 64)
    quantized = pt2e(module.eval(), x, False)
    whole, _ = results(quantized, (x,), tmp_path)
    # The same with every quantised tensor as an output: PyTorch computes on dequantised floats, in which a value on an
    # edge may round the other way; we are defined to the bit, whatever is fused.
    graph: Any = torch.export.export(quantized, (x,)).module()
    nodes = [
        n for n in graph.graph.nodes if "quantize_per_tensor" in str(n.target) and "dequantize" not in str(n.target)
    ]
    output = next(n for n in graph.graph.nodes if n.op == "output")
    last = torch.utils._pytree.tree_leaves(output.args)[0]
    output.args = ((last, *nodes),)
    graph.graph._codegen = torch.fx.graph.CodeGen()
    graph.recompile()
    exposed, _ = results(Of(lambda x: graph(x)), (x,), tmp_path)
    assert len(nodes) > 30
    np.testing.assert_array_equal(exposed[0], whole[0])
    held = Held(graph, dict(zip((n.name for n in nodes), exposed[1:], strict=True)))
    with torch.no_grad():
        held.run(x)
    assert held.differing.keys() == {n.name for n in nodes}
    assert np.mean(list(held.differing.values())) < 5e-3


@pytest.mark.rotating
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_kernels_give_the_bytes_of_the_reference(name: str, tmp_path: Path) -> None:
    """Whole models: every node has a kernel of 8-bit types, and all of them together give what reference code gives."""
    import torchvision_ops  # noqa: F401

    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    module = getattr(torchvision.models, name)(weights=None, num_classes=16)
    x = seeded(2, 3, 40, 48)
    module.train()(x)  # statistics under which activations do not vanish
    quantized = pt2e(module.eval(), x, False)
    with torch.no_grad():
        torch.export.save(torch.export.export(quantized, (x,)), tmp_path / "m.pt2")
    program = pn.load(str(tmp_path / "m.pt2")).build(verify=False)
    program.save(tmp_path / "m.pnc")
    ((want,),) = pn._core.run_model_reference(str(tmp_path / "m.pnc"), [[x.numpy()]])
    assert len(np.unique(want)) > 8
    for isa in ("sse2", "avx2", "avx512_vnni"):
        try:
            session = pn.Session(program, target=f"cpu:{isa}")
        except pn.Unsupported:
            continue  # this processor does not have it
        (got,) = session.run({next(iter(session.inputs)): x.numpy()}).values()
        np.testing.assert_array_equal(got, want)
        kernels = {row.node: row.kernel for row in session.placement}
        assert [node for node, kernel in kernels.items() if kernel == "reference"] == []
        ran = [kernel for kernel in kernels.values() if kernel.startswith("conv_")]
        assert len(ran) >= 20
        assert {kernel.partition("_i8_")[2] for kernel in ran} == {"generic" if isa == "sse2" else isa}


def test_dynamically_quantized_linear(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).eval()
    x = seeded(5, 16)
    ours, theirs = results(pt2e(module, x, True), (x,), tmp_path)
    torch.testing.assert_close(torch.from_numpy(ours[0]), torch.from_numpy(theirs[0]), rtol=1e-2, atol=1e-2)


def test_verified_where_nothing_else_declares_the_operators(tmp_path: Path) -> None:
    """A process that has imported no quantiser."""
    x = seeded(5, 16)
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU()).eval()
    with torch.no_grad():
        torch.export.save(torch.export.export(pt2e(module, x, False), (x,)), tmp_path / "m.pt2")
    code = "import sys, numpy, pinnace; x = numpy.ones((5, 16), 'f4'); print(pinnace.load(sys.argv[1], [x]).build())"
    path = os.pathsep.join(["python", *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.pt2")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert "Program" in done.stdout
