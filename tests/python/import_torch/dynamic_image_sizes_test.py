"""Image operators after a convolution of images whose height and width are dynamic: eager's values at sizes that the
conversion has not seen."""

from __future__ import annotations

from collections.abc import Callable

import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from agreeing import assert_agree
from slices import rotating_slice
from torch import Tensor, nn

SIZES = ((8, 8), (11, 13), (24, 20), (7, 31))


def windows(y: Tensor) -> Tensor:
    """In windows of 4 x 4, as Swin has them."""
    padded = F.pad(y, (0, -y.shape[3] % 4, 0, -y.shape[2] % 4))
    n, channels, height, width = padded.shape
    tiles = padded.view(n, channels, height // 4, 4, width // 4, 4)
    return tiles.permute(0, 2, 4, 3, 5, 1).flatten(0, 2)


OPERATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "area to a size": lambda y: F.interpolate(y, size=(7, 5), mode="area"),
    "area by half": lambda y: F.interpolate(y, scale_factor=0.5, mode="area"),
    "area by 1.5": lambda y: F.interpolate(y, scale_factor=1.5, mode="area"),
    "area of a computed size": lambda y: F.interpolate(y, size=(y.shape[2] // 2, 5), mode="area"),
    "adaptive max pool": lambda y: F.adaptive_max_pool2d(y, (3, 4)),
    "places of an adaptive max pool": lambda y: F.adaptive_max_pool2d(y, (3, 4), return_indices=True)[1],
    "adaptive average pool": lambda y: F.adaptive_avg_pool2d(y, (3, 4)),
    "adaptive average pool of a computed size": lambda y: F.adaptive_avg_pool2d(y, (y.shape[2] + 1, y.shape[3] // 2)),
    "pixel shuffle": lambda y: F.pixel_shuffle(y, 2),
    "pixel unshuffle": lambda y: F.pixel_unshuffle(y, 2),
    "bilinear": lambda y: F.interpolate(y, scale_factor=2, mode="bilinear"),
    "bilinear of a computed size": lambda y: F.interpolate(
        y, size=(y.shape[2] * 2, y.shape[3] + 3), mode="bilinear", align_corners=True
    ),
    "bicubic": lambda y: F.interpolate(y, scale_factor=1.5, mode="bicubic"),
    # 7 and 8 keep their sizes: what is linear or antialiased is copied then, not sampled at steps of 1 / 1.1.
    "bilinear by 1.1": lambda y: F.interpolate(y, scale_factor=1.1, mode="bilinear"),
    "bilinear by 0.95 and 1.05": lambda y: F.interpolate(y, scale_factor=(0.95, 1.05), mode="bilinear"),
    "bicubic by 1.1": lambda y: F.interpolate(y, scale_factor=1.1, mode="bicubic"),
    "bicubic by 1.1, antialiased": lambda y: F.interpolate(y, scale_factor=1.1, mode="bicubic", antialias=True),
    "bilinear by 1.1, antialiased": lambda y: F.interpolate(y, scale_factor=1.1, mode="bilinear", antialias=True),
    "antialiased": lambda y: F.interpolate(y, scale_factor=0.5, mode="bilinear", antialias=True),
    "nearest exact": lambda y: F.interpolate(y, scale_factor=0.7, mode="nearest-exact"),
    "strided convolution": lambda y: F.conv2d(y, torch.ones(3, 8, 3, 3), stride=2),
    "lp pool": lambda y: F.lp_pool2d(y, 2, 3, 2),
    "max pool, ceil": lambda y: F.max_pool2d(y, 3, 2, ceil_mode=True),
    "unfold": lambda y: F.unfold(y, 3),
    "fold": lambda y: F.fold(F.unfold(y, 3, padding=1), (y.shape[2], y.shape[3]), 3, padding=1),
    "roll": lambda y: torch.roll(y, (1, 2), (2, 3)),
    "reflection": lambda y: F.pad(y, (1, 2, 3, 1), mode="reflect"),
    "windows": windows,
    "spectrum": lambda y: torch.fft.rfft2(y).abs(),
}
NEEDS_EVEN = {"pixel unshuffle"}


class After(nn.Module):
    def __init__(self, operator: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.operator = operator

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"y": self.operator(self.conv(x))}


@pytest.mark.parametrize("name", rotating_slice(list(OPERATORS), 0.3, "dynamic image sizes"))
def test_image_operators_take_other_sizes(name: str) -> None:
    torch.manual_seed(0)
    module = After(OPERATORS[name]).eval()
    sizes = {0: pn.Dim("n", 1, 4), 2: pn.Dim("height", 4, 64), 3: pn.Dim("width", 4, 64)}
    if name in NEEDS_EVEN:
        sizes = {0: sizes[0], 2: pn.Dim("height", 4, 64, multiple_of=2), 3: pn.Dim("width", 4, 64, multiple_of=2)}
    model = pn.load(module, torch.rand(2, 4, 12, 16), {"x": sizes})
    program = model.build()
    assert program.metadata["verified.cpu"].startswith("yes")
    session = pn.Session(program, target="cpu")
    for height, width in SIZES:
        if name in NEEDS_EVEN:
            height, width = height // 2 * 2, width // 2 * 2
        x = torch.rand(1, 4, height, width)
        with torch.no_grad():
            wanted = module(x)["y"].numpy()
        got = session.run({"x": x})["y"]
        assert got.shape == wanted.shape
        assert_agree(got, wanted, f"{name} of {height} x {width}")
