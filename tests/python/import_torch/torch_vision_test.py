"""torchvision's operators that are no part of PyTorch, against their formulas: the wheel's own kernels do not load."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from agreeing import assert_agree
from pinnace import _core
from torch import Tensor, nn

pytest.importorskip("torchvision_ops")  # before torchvision: it declares what its missing C extension would

_library: Any = torch.library.Library("torchvision", "IMPL")  # type: ignore[no-untyped-call]
# What torch.export needs: shapes of the results.
_library.impl(
    "deform_conv2d",
    lambda x, weight, offset, *_: x.new_empty((x.shape[0], weight.shape[0], *offset.shape[2:])),
    "Meta",
)
_library.impl(
    "roi_pool",
    lambda x, rois, scale, height, width: (
        x.new_empty((rois.shape[0], x.shape[1], height, width)),
        x.new_empty((rois.shape[0], x.shape[1], height, width), dtype=torch.int32),
    ),
    "Meta",
)
for _name in ("ps_roi_align", "ps_roi_pool"):
    _library.impl(
        _name,
        lambda x, rois, scale, height, width, *_: (
            x.new_empty((rois.shape[0], x.shape[1] // (height * width), height, width)),
            x.new_empty((rois.shape[0], x.shape[1] // (height * width), height, width), dtype=torch.int32),
        ),
        "Meta",
    )


def run(module: nn.Module, inputs: tuple[Tensor, ...], path: Path) -> list[np.ndarray]:
    torch.export.save(torch.export.export(module.eval(), inputs), path)
    return list(_core.run_model_reference(str(path), [[x.numpy() for x in inputs]])[0])


def deformed(
    x: Tensor, weight: Tensor, offset: Tensor, mask: Tensor | None, stride: int, pad: int, dilation: int, groups: int
) -> Tensor:
    """The taps, each sampled bilinearly where its offset moves it, as one long grouped product."""
    n, channels, height, width = x.shape
    rows, columns = weight.shape[2:]
    out_h, out_w = offset.shape[2:]
    parts = offset.shape[1] // (2 * rows * columns)
    taps = []
    for k in range(rows * columns):
        sampled = []
        for part, piece in enumerate(x.chunk(parts, 1)):
            at = part * rows * columns + k
            y = offset[:, 2 * at] + (torch.arange(out_h) * stride - pad + (k // columns) * dilation)[:, None]
            z = offset[:, 2 * at + 1] + (torch.arange(out_w) * stride - pad + (k % columns) * dilation)
            grid = torch.stack([2 * z / (width - 1) - 1, 2 * y / (height - 1) - 1], -1)
            values = F.grid_sample(piece, grid, align_corners=True)
            sampled.append(values if mask is None else values * mask[:, at, None])
        taps.append(torch.cat(sampled, 1))
    columns_of = torch.stack(taps, 2).view(n, groups, channels // groups * rows * columns, out_h * out_w)
    kernel = weight.reshape(groups, weight.shape[0] // groups, -1)
    return (kernel @ columns_of).reshape(n, weight.shape[0], out_h, out_w)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("stride", "pad", "dilation", "groups", "parts"), [(1, 1, 1, 1, 1), (2, 2, 2, 2, 2)])
def test_deform_conv(
    masked: bool, stride: int, pad: int, dilation: int, groups: int, parts: int, tmp_path: Path
) -> None:
    from torchvision.ops import DeformConv2d

    torch.manual_seed(0)
    layer = DeformConv2d(4, 6, 3, stride, pad, dilation, groups, bias=masked)
    x = torch.randn(2, 4, 7, 8)
    out_h, out_w = ((size + 2 * pad - 2 * dilation - 1) // stride + 1 for size in (7, 8))
    offset = torch.randn(2, parts * 18, out_h, out_w)
    mask = torch.rand(2, parts * 9, out_h, out_w) if masked else None
    inputs = (x, offset, mask) if mask is not None else (x, offset)
    with torch.no_grad():
        want = deformed(x, layer.weight, offset, mask, stride, pad, dilation, groups)
        if layer.bias is not None:
            want = want + layer.bias.view(1, -1, 1, 1)
    got = run(layer, inputs, tmp_path / "m.pt2")[0]
    torch.testing.assert_close(torch.from_numpy(np.array(got)), want, rtol=1e-4, atol=1e-5)


def test_roi_pool(tmp_path: Path) -> None:
    from torchvision.ops import RoIPool

    torch.manual_seed(0)
    x = torch.randn(2, 3, 9, 11)
    rois = torch.tensor([[0, 0, 0, 12, 10], [1, 3.4, 2.6, 20, 16], [1, 30, 30, 40, 40], [0, 9, 8, 9, 8.0]])
    got = run(RoIPool((3, 2), 0.5), (x, rois), tmp_path / "m.pt2")[0]
    want = torch.zeros(4, 3, 3, 2)
    for r, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (math.floor(v * 0.5 + 0.5) for v in corners)
        high, wide = max(y2 - y1 + 1, 1) / 3, max(x2 - x1 + 1, 1) / 2
        for i in range(3):
            for j in range(2):
                top, left = y1 + math.floor(i * high), x1 + math.floor(j * wide)
                piece = x[int(image), :, top : y1 + math.ceil((i + 1) * high), left : x1 + math.ceil((j + 1) * wide)]
                if piece.numel():
                    want[r, :, i, j] = piece.amax((1, 2))
    assert np.array_equal(np.array(got), want.numpy())


# image, x1, y1, x2, y2; the last ones reach beyond the features.
ROIS: list[list[float]] = [
    [0, 0, 0, 12, 10],
    [1, 3.4, 2.6, 20, 16],
    [1, 2.5, 1, 4, 15],
    [0, 9, 8, 9.5, 8.4],
    [1, 15, 10, 40, 40],
]


def sensitive_align(x: Tensor, rois: Tensor, scale: float, rows: int, columns: int, ratio: int) -> Tensor:
    """Of each bin, what aligning gives in its own channel."""
    whole = torch.ops.torchvision.roi_align(x, rois, scale, rows, columns, ratio, True)
    whole = whole.view(len(rois), -1, rows, columns, rows, columns)
    return torch.stack([torch.stack([whole[:, :, i, j, i, j] for j in range(columns)], -1) for i in range(rows)], -2)


@pytest.mark.parametrize("ratio", [2, -1])
def test_position_sensitive_roi_align(ratio: int, tmp_path: Path) -> None:
    from torchvision.ops import PSRoIAlign

    torch.manual_seed(0)
    rows, columns, channels = 3, 2, 4
    x = torch.randn(2, channels * rows * columns, 9, 11)
    got = run(PSRoIAlign((rows, columns), 0.5, ratio), (x, torch.tensor(ROIS)), tmp_path / "m.pt2")[0]
    want = sensitive_align(x, torch.tensor(ROIS), 0.5, rows, columns, ratio)
    assert got.shape == want.shape
    assert float((want != 0).float().mean()) > 0.5
    assert_agree(got, want.numpy())


def sensitive_pool(x: Tensor, rois: Tensor, scale: float, rows: int, columns: int) -> Tensor:
    """Means of the bins; the last row and column of x are in none."""
    want = torch.zeros(len(rois), x.shape[1] // (rows * columns), rows, columns)
    most_y, most_x = x.shape[2] - 1, x.shape[3] - 1
    for r, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (math.floor(v * scale + 0.5) for v in corners)
        high, wide = max(y2 - y1, 1) / rows, max(x2 - x1, 1) / columns
        for i in range(rows):
            for j in range(columns):
                top, bottom = (min(max(y1 + v, 0), most_y) for v in (math.floor(i * high), math.ceil((i + 1) * high)))
                left, right = (min(max(x1 + v, 0), most_x) for v in (math.floor(j * wide), math.ceil((j + 1) * wide)))
                if bottom > top and right > left:
                    piece = x[int(image), i * columns + j :: rows * columns, top:bottom, left:right]
                    want[r, :, i, j] = piece.double().mean((1, 2)).float()
    return want


def test_position_sensitive_roi_pool(tmp_path: Path) -> None:
    from torchvision.ops import PSRoIPool

    torch.manual_seed(0)
    rows, columns, channels = 3, 2, 4
    x = torch.randn(2, channels * rows * columns, 9, 11)
    got = run(PSRoIPool((rows, columns), 0.5), (x, torch.tensor(ROIS)), tmp_path / "m.pt2")[0]
    want = sensitive_pool(x, torch.tensor(ROIS), 0.5, rows, columns).numpy()
    assert (want == 0).any()
    assert (want != 0).mean() > 0.5
    assert_agree(got, want)


def greedy(boxes: Tensor, scores: Tensor, threshold: float) -> list[int]:
    """torchvision's kernel: an overlap in float32 is compared with a threshold in double; corners stay as they are."""
    b, kept, left = boxes.numpy(), [], scores.argsort(descending=True, stable=True).tolist()
    areas = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    while left:
        i, *rest = left
        kept.append(i)
        left = []
        for j in rest:
            width, height = np.maximum(np.minimum(b[i, 2:], b[j, 2:]) - np.maximum(b[i, :2], b[j, :2]), np.float32(0))
            with np.errstate(all="ignore"):
                both = width * height
                over = float(both / (areas[i] + areas[j] - both))
            if not over > threshold:
                left.append(j)
    return kept


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.6, 0.7])
@pytest.mark.parametrize("moved", [False, True])
def test_nms(threshold: float, moved: bool) -> None:
    """Overlaps of just the threshold; corners in the wrong order; NaN scores, which come first."""
    from torchvision.ops import batched_nms, nms

    class Suppressing(nn.Module):
        def forward(self, boxes: Tensor, scores: Tensor, idxs: Tensor) -> Tensor:
            kept: Tensor = batched_nms(boxes, scores, idxs, threshold) if moved else nms(boxes, scores, threshold)
            return kept

    inputs = (
        torch.tensor(
            [
                [0, 0, 10, 1],
                [0, 0, 10 * threshold, 1],
                [10, 30, 0, 20],
                [0, 20, 10, 30],
                [0, 20, 10, 29.5],
                [40, 0, 5, 9],
            ]
        ),
        torch.tensor([0.9, 0.8, 0.7, 0.6, torch.nan, torch.nan]),
        torch.zeros(6, dtype=torch.int64),
    )
    n = pn.Dim("n", 1, 100)
    program = pn.load(Suppressing(), inputs, dynamic_shapes=({0: n}, {0: n}, {0: n})).build(verify=False)
    session = pn.Session(program)
    (got,) = session.run({name: x.numpy() for name, x in zip(session.inputs, inputs, strict=True)}).values()
    assert got.tolist() == greedy(*inputs[:2], threshold)


# ---------------------------------------------------------------------------------------- live modules, dynamic sizes


def _pooled_places(pooled: Tensor) -> tuple[Tensor, Tensor]:
    return pooled, torch.zeros(pooled.shape, dtype=torch.int32)


# In the place of the wheel's own kernels.
_library.impl("ps_roi_align", lambda *given: _pooled_places(sensitive_align(*given)), "CPU")
_library.impl("ps_roi_pool", lambda *given: _pooled_places(sensitive_pool(*given)), "CPU")
_library.impl(
    "deform_conv2d",
    lambda x, weight, offset, mask, bias, stride, _, pad, __, dilation, ___, groups, ____, masked: (
        deformed(x, weight, offset, mask if masked else None, stride, pad, dilation, groups) + bias.view(1, -1, 1, 1)
    ),
    "CPU",
)


class Deformed(nn.Module):
    """Offsets, and where asked for a mask, from a convolution, as these layers are used."""

    def __init__(self, masked: bool) -> None:
        from torchvision.ops import DeformConv2d

        super().__init__()
        self.layer = DeformConv2d(4, 6, 3, padding=1)
        self.where = nn.Conv2d(4, 27 if masked else 18, 3, padding=1)
        self.masked = masked

    def forward(self, x: Tensor) -> Tensor:
        made = self.where(x)
        found: Tensor = self.layer(x, made[:, :18], made[:, 18:].sigmoid() if self.masked else None)
        return found


class Sensitive(nn.Module):
    """The second stage of R-FCN: scores of bins, each from channels of its own."""

    def __init__(self, kind: str) -> None:
        from torchvision import ops

        super().__init__()
        self.scores = nn.Conv2d(4, 3 * 6, 1)
        self.pool = ops.PSRoIPool((3, 2), 0.5) if kind == "pool" else ops.PSRoIAlign((3, 2), 0.5, 2)

    def forward(self, x: Tensor, rois: Tensor) -> Tensor:
        found: Tensor = self.pool(self.scores(x), rois).mean((2, 3))
        return found


@pytest.mark.parametrize("masked", [False, True])
def test_live_deformed_convolution_of_any_size(masked: bool) -> None:
    torch.manual_seed(0)
    module = Deformed(masked).eval()
    dims = {0: pn.Dim("n", 1, 4), 2: pn.Dim("h", 4, 40), 3: pn.Dim("w", 4, 40)}
    session = pn.Session(pn.load(module, torch.randn(2, 4, 7, 8), dims).build(), target="cpu")
    for shape in ((1, 4, 9, 5), (3, 4, 12, 17)):
        x = torch.randn(*shape)
        (got,) = session.run({"x": x.numpy()}).values()
        assert_agree(got, module(x).detach().numpy())


@pytest.mark.parametrize("kind", ["pool", "align"])
def test_live_position_sensitive_layers_of_any_size(kind: str) -> None:
    torch.manual_seed(0)
    module = Sensitive(kind).eval()
    dims = {"x": {2: pn.Dim("h", 4, 40), 3: pn.Dim("w", 4, 40)}, "rois": {0: pn.Dim("k", 1, 100)}}
    model = pn.load(module, (torch.randn(2, 4, 9, 11), torch.tensor(ROIS)), dims)
    session = pn.Session(model.build(), target="cpu")
    for size, count in (((6, 13), 1), ((20, 9), 4)):
        x, rois = torch.randn(2, 4, *size), torch.tensor(ROIS)[:count]
        (got,) = session.run({"x": x.numpy(), "rois": rois.numpy()}).values()
        assert_agree(got, module(x, rois).detach().numpy())
