"""torchvision's quantised MobileNetV2 in its three forms, seeded: float, 8-bit integers inside with float edges,
8-bit integers throughout. Engine qnnpack; each form is a TorchScript module.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torchvision_ops  # noqa: F401  torchvision cannot be imported before it
from torch import Tensor, nn
from torchvision.models.quantization import mobilenet_v2

# Untyped in torch's own stubs.
jit: Any = torch.jit
quantization: Any = torch.ao.quantization

FORMS = ("float", "float edges", "throughout")


def seeded(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def float_mobilenet(width: float = 0.35, classes: int = 20, size: int = 96) -> Any:
    """The float architecture with fused layers and statistics that leave every layer alive."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        model: Any = mobilenet_v2(weights=None, quantize=False, width_mult=width, num_classes=classes)
        model.train()
        with torch.no_grad():
            for i in range(3):
                model(seeded(4, 3, size, size, seed=i))
        model.eval()
        model.fuse_model(is_qat=False)
    return model


def int8_mobilenet(width: float = 0.35, classes: int = 20, size: int = 96) -> Any:
    """The same, calibrated and converted."""
    model = float_mobilenet(width, classes, size)
    torch.backends.quantized.engine = "qnnpack"
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        model.qconfig = quantization.get_default_qconfig("qnnpack")
        quantization.prepare(model, inplace=True)
        model(seeded(1, 3, size, size, seed=9))
        quantization.convert(model, inplace=True)
    return model


class Inside(nn.Module):
    """MobileNetV2 without its edges: quantised tensors in and out."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        x = self.model.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1))
        made: Tensor = self.model.classifier(torch.flatten(x, 1))
        return made


def build(form: str, width: float = 0.35, classes: int = 20, size: int = 96) -> tuple[Any, Tensor]:
    """A form of FORMS, traced, and its input (quantised for "throughout")."""
    x = seeded(1, 3, size, size, seed=9)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if form == "float":
            return jit.trace(float_mobilenet(width, classes, size), x), x
        model = int8_mobilenet(width, classes, size)
        if form == "float edges":
            return jit.trace(model, x), x
        x = model.quant(x)
        return jit.trace(Inside(model).eval(), x), x
