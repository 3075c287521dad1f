"""Normalisations of PyTorch: parameters of float32 beside 16-bit inputs, and the epsilon that nobody gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Norm(nn.Module):
    """A normalisation of [N, 4, 5] with parameters of a type."""

    def __init__(self, function: Callable[[Any, Tensor], Tensor], dtype: torch.dtype) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(3)
        self.function = function
        self.c = nn.Parameter(torch.rand(4, generator=random).to(dtype))
        self.d = nn.Parameter(torch.randn(5, generator=random).to(dtype))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


NORMS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "layer": lambda s, x: F.layer_norm(x, (5,), s.d, s.d),
    "layer without bias": lambda s, x: F.layer_norm(x, (5,), s.d),
    "group": lambda s, x: F.group_norm(x, 2, s.c, s.c),
    "instance": lambda s, x: F.instance_norm(x, None, None, s.c, s.c),
    "batch": lambda s, x: F.batch_norm(x, s.c, s.c, s.c, s.c),
    "batch, parameters alone": lambda s, x: F.batch_norm(x, s.c.to(x), s.c.to(x), s.c.to(x), s.c.to(x)),
    "rms": lambda s, x: F.rms_norm(x, (5,), s.d, 1e-5),
    "rms with no epsilon": lambda s, x: F.rms_norm(x, (5,), s.d),
    "rms with nothing": lambda _, x: F.rms_norm(x, (5,)),
}
TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def run(module: nn.Module, x: Tensor) -> tuple[Any, Any]:
    """Ours and torch's results."""
    program = pn.load(module.eval(), (x,)).build()
    session = pn.Session(program)
    (got,) = session.run(dict.fromkeys(session.inputs, x)).values()
    with torch.no_grad():
        want = module(x)
    assert got.dtype == (ml_dtypes.bfloat16 if want.dtype == torch.bfloat16 else want.numpy().dtype)
    return got.astype(np.float64), want.double().numpy()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.filterwarnings("ignore:Mismatch dtype")
def test_parameters_of_float32_beside_16_bits(name: str, dtype: torch.dtype) -> None:
    """Computed in float32 and rounded once, as torch does: one unit in the last place at most."""
    x = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(4)).to(dtype)
    got, want = run(Norm(NORMS[name], torch.float32), x)
    np.testing.assert_allclose(got, want, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("weights", [True, False])
def test_the_epsilon_of_rms_norm_that_nobody_gave(dtype: torch.dtype, weights: bool) -> None:
    """Seen in small values, beside which the epsilon of a 16-bit type would be everything."""
    x = (torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(4)) * 1e-3).to(dtype)
    got, want = run(Norm(NORMS["rms with no epsilon" if weights else "rms with nothing"], dtype), x)
    np.testing.assert_allclose(got, want, rtol=4 * torch.finfo(dtype).eps)


def test_an_autocast_region_with_a_norm() -> None:
    class Region(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(5, 5), nn.LayerNorm(5)

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                y: Tensor = self.norm(self.linear(x))
            return y

    got, want = run(Region(), torch.randn(3, 4, 5))
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2)
