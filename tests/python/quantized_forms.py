"""What a model that somebody quantised becomes here: how large the program's file is, and which kernels run."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pinnace as pn
import torch
from torch import nn

INTEGERS = ("mat_mul_i8_", "mat_mul_integer_i8_", "conv_nhwc_i8_", "conv_i8_", "conv_integer_i8_", "conv_depthwise_i8_")
STORED = ("mat_mul_weights_f32_",)
PRODUCTS = ("mat_mul", "gemm", "conv")


class Two(nn.Module):
    """Two linear layers with gelu between."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.b(nn.functional.gelu(self.a(x)))
        return y


class Convolutions(nn.Module):
    """Convolutions with batch normalisation and a residual, pools, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24)
        self.c2, self.b2 = nn.Conv2d(24, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24)
        self.r1, self.r2, self.add = nn.ReLU(), nn.ReLU(), torch.ao.nn.quantized.FloatFunctional()
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.r1(self.b1(self.c1(x)))
        x = self.r2(self.add.add(self.b2(self.c2(x)), x))
        y: torch.Tensor = self.head(torch.flatten(self.pool(nn.functional.max_pool2d(x, 2)), 1))
        return y


def two() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(3)
    return Two().eval(), torch.randn(8, 96)


def convolutions() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(3)
    module = Convolutions().train()
    with torch.no_grad():  # statistics under which activations do not vanish
        module(torch.randn(8, 3, 12, 12))
    return module.eval(), torch.randn(2, 3, 12, 12)


@dataclass(frozen=True)
class Became:
    """A form after load() and build(), which verifies."""

    constant_bytes: int
    kernels: frozenset[str]
    notes: list[str]
    text: str

    def products(self) -> set[str]:
        """Kernels of products, those of INTEGERS and STORED by the beginning of their names."""
        ran = {k for k in self.kernels if k.startswith(PRODUCTS)}
        return {next((p for p in (*INTEGERS, *STORED) if k.startswith(p)), k) for k in ran}

    def assert_integers(self, elements: int, bits: int = 8) -> None:
        """Constants are near what the weights take as integers; every product computes with integers."""
        assert self.constant_bytes < 1.4 * elements * bits / 8, (self.constant_bytes, elements)
        assert self.products() <= set(INTEGERS), self.products()
        assert self.products()

    def assert_stored(self, elements: int, bits: int = 8) -> None:
        """The same, of products in float that read stored integers."""
        assert self.constant_bytes < 1.4 * elements * bits / 8, (self.constant_bytes, elements)
        assert self.products() == set(STORED), self.products()


_CONSTANT = re.compile(r"^\s*const %\S+ : [a-z]+(\d+)\w*\[([\d,]*)\](.*)", re.MULTILINE)


def became(source: Any, inputs: tuple[torch.Tensor, ...], folder: Path) -> Became:
    """Converted, verified, saved, opened and planned for the CPU."""
    exported = isinstance(source, torch.export.ExportedProgram)
    model = pn.load(source) if exported else pn.load(source, inputs)
    program = model.build()
    assert program.metadata["verified.cpu"].startswith("yes")
    program.save(folder / "form.pnc")
    opened = pn.Program.open(folder / "form.pnc")
    text = opened.text(0)
    sizes = [
        int(bits) * math.prod(int(size) for size in shape.split(",") if size) // 8
        for bits, shape, _ in set(_CONSTANT.findall(text))  # equal ones are stored once
    ]
    session = pn.Session(opened, target="cpu")
    return Became(sum(sizes), frozenset(row.kernel for row in session.placement), list(model.notes), text)


def elements(module: nn.Module) -> int:
    """Numbers in parameters of more than one dimension."""
    return sum(math.prod(p.shape) for p in module.parameters() if p.dim() > 1)
