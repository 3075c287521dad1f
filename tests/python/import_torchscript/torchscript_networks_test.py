"""Networks as TorchScript: traced ones with a dynamic batch, scripted ones with layers of dynamic quantisation, and the
layers that compare() sees in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from slices import rotating_slice
from torch import Tensor, nn
from torch.ao import quantization as typed_quantization

jit: Any = torch.jit
quantization: Any = typed_quantization
pytestmark = pytest.mark.filterwarnings("ignore")

# name -> height and width of the inputs
TRACED = {
    "alexnet": 64,
    "convnext_tiny": 64,
    "densenet121": 64,
    "efficientnet_b0": 64,
    "googlenet": 64,
    "maxvit_t": 224,
    "mnasnet0_5": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "regnet_x_400mf": 64,
    "regnet_y_400mf": 64,
    "resnet18": 64,
    "resnext50_32x4d": 64,
    "shufflenet_v2_x0_5": 64,
    "squeezenet1_1": 64,
    "swin_t": 64,
    "swin_v2_t": 64,
    "vgg11": 64,
    "segmentation.lraspp_mobilenet_v3_large": 64,
    "segmentation.fcn_resnet50": 64,
}


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def network(name: str) -> Any:
    import torchvision_ops  # noqa: F401  # before torchvision: it declares what its missing C extension would

    models = pytest.importorskip("torchvision").models
    family, _, own = name.rpartition(".")
    options: dict[str, Any] = {"weights_backbone": None} if family else {}
    if own == "googlenet":
        options = {"init_weights": False, "aux_logits": False}
    torch.manual_seed(0)
    return getattr(getattr(models, family) if family else models, own)(weights=None, **options).eval()


def run(session: pn.Session, x: Tensor) -> list[np.ndarray]:
    (name,) = session.inputs
    return list(session.run({name: x}).values())


@pytest.mark.rotating
@pytest.mark.parametrize("name", rotating_slice(sorted(TRACED), 1 / 10))
def test_traced_network_at_two_sizes(name: str) -> None:
    size = TRACED[name]
    script = jit.trace(network(name), seeded(2, 3, size, size), check_trace=False, strict=False)
    program = pn.load(script, (seeded(2, 3, size, size),), {0: pn.Dim("n", 1, 8)}).build()
    session = pn.Session(program, target="cpu")
    for batch in (1, 3):
        x = seeded(batch, 3, size, size, seed=batch)
        with torch.no_grad():
            want = torch.utils._pytree.tree_leaves(script(x))
        for a, b in zip(run(session, x), want, strict=True):
            assert_agree(a, b.numpy())


@pytest.mark.parametrize("name", rotating_slice(["resnet18", "mobilenet_v2"], 1 / 2))
def test_traced_network_with_open_height_and_width(name: str) -> None:
    script = jit.trace(network(name), seeded(2, 3, 64, 64), check_trace=False)
    dims = {0: pn.Dim("n", 1, 8), 2: pn.Dim("h", 32, 256), 3: pn.Dim("w", 32, 256)}
    session = pn.Session(pn.load(script, (seeded(2, 3, 64, 64),), dims).build(), target="cpu")
    x = seeded(1, 3, 96, 40, seed=1)
    want = script(x).detach().numpy()
    assert_agree(run(session, x)[0], want)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(8, 16, 2, batch_first=True)
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(x)
        made: Tensor = self.b(torch.relu(self.a(y)))
        return made if x.size(1) < 100 else made * 2


class Branching(nn.Module):
    """Quantised layers in the branches of an if."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 20):
            made: Tensor = self.b(torch.relu(self.a(x)))
        else:
            made = self.b(self.a(x))
        return made


@pytest.mark.rotating
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    ("make", "x", "dims"),
    [
        (Recurrent, seeded(2, 5, 8), None),
        (Recurrent, seeded(2, 5, 8), {0: pn.Dim("n", 1, 64), 1: pn.Dim("time", 1, 99)}),
        (Branching, seeded(5, 8), {0: pn.Dim("n", 1, 64)}),
    ],
    ids=["lstm and linear", "lstm of any batch and time", "linear in branches"],
)
def test_dynamic_quantisation_stays_integers(
    make: Callable[[], nn.Module], x: Tensor, dims: Any, saved: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    script = jit.script(quantization.quantize_dynamic(make().eval(), {nn.Linear, nn.LSTM}, dtype=torch.qint8))
    if saved:
        jit.save(script, str(tmp_path / "m.pt"))
    model = pn.load(tmp_path / "m.pt" if saved else script, (x,), dims)
    assert "mat_mul_integer" in {node.op for node in model.nodes}
    session = pn.Session(model.build(), target="cpu")
    for size in (x.shape[0], *((1, 7, 30) if dims else ())):
        other = seeded(*(size + d if dims and d in dims else n for d, n in enumerate(x.shape)), seed=size)
        assert_agree(run(session, other)[0], script(other).numpy())


@pytest.mark.rotating
def test_layers_and_lines_of_a_traced_network() -> None:
    script = jit.trace(network("resnet18"), seeded(2, 3, 64, 64))
    model = pn.load(script, (seeded(2, 3, 64, 64),))
    (name,) = model.inputs
    made = pn.compare(model.build(), script, [{name: seeded(2, 3, 64, 64, seed=1)}])
    assert made.ok
    modules = {row.module for row in made.rows}
    assert {"conv1", "layer1.0.conv1", "layer4.1.conv2", "fc"} <= modules


class Lines(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = torch.sigmoid(x) * torch.linalg.lu_factor(x)[1]
        return made


def test_what_cannot_be_imported_has_its_line() -> None:
    with pytest.raises(pn.ConversionError, match="lu_factor") as caught:
        pn.load(jit.script(Lines()), (seeded(3, 3),))
    assert "torchscript_networks_test.py" in str(caught.value)
