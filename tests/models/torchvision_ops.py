"""Lets torchvision be imported where the C extension of its wheel does not load, as beside a CPU build of torch.

torchvision registers fake kernels for its operators while it is imported, which fails unless something has declared
them, so this module has to be imported first. It declares every operator and implements the two that detection models
run: nms and roi_align. The others stay declared only: calling one reports a missing kernel.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch
from torch import Tensor

_library = torch.library.Library("torchvision", "DEF")

_POOL = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_DEFORM = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
    "SymInt groups, SymInt offset_groups, bool use_mask"
)
_POOL_GRAD = "Tensor grad, Tensor rois, {} float spatial_scale, SymInt pooled_height, SymInt pooled_width, {} " + _SHAPE

for _schema in (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    f"roi_align({_POOL}, int sampling_ratio, bool aligned) -> Tensor",
    f"qroi_align({_POOL}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({_POOL}) -> (Tensor, Tensor)",
    f"ps_roi_align({_POOL}, int sampling_ratio) -> (Tensor, Tensor)",
    f"ps_roi_pool({_POOL}) -> (Tensor, Tensor)",
    f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_DEFORM}) -> Tensor",
    f"_roi_align_backward({_POOL_GRAD.format('', '')}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_pool_backward({_POOL_GRAD.format('Tensor argmax,', '')}) -> Tensor",
    f"_ps_roi_align_backward({_POOL_GRAD.format('Tensor channel_mapping,', 'int sampling_ratio,')}) -> Tensor",
    f"_ps_roi_pool_backward({_POOL_GRAD.format('Tensor channel_mapping,', '')}) -> Tensor",
    "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    f"{_DEFORM}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
):
    _library.define(_schema)


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes [N, 4] (x1 y1 x2 y2) to keep, by falling score; equal scores keep their order."""
    order = scores.argsort(descending=True, stable=True)
    boxes = dets[order]
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept: list[int] = []
    alive = torch.ones(len(boxes), dtype=torch.bool)
    for i in range(len(boxes)):
        if not alive[i]:
            continue
        kept.append(i)
        top_left = torch.maximum(boxes[i, :2], boxes[:, :2])
        bottom_right = torch.minimum(boxes[i, 2:], boxes[:, 2:])
        overlap = (bottom_right - top_left).clamp(min=0).prod(dim=1)
        # Compared as a quotient, which is how torchvision rounds it; two empty boxes give NaN and do not suppress.
        alive &= ~(overlap / (area[i] + area - overlap) > iou_threshold)
    return order[torch.tensor(kept, dtype=torch.int64)]


def _axis_weights(start: float, bin_size: float, bins: int, samples: int, size: int, dtype: torch.dtype) -> Tensor:
    """[bins, size]: what each cell of one axis adds to each bin, the mean of `samples` linear interpolations.

    A sample more than one cell outside adds nothing; one within that margin takes the border cell.
    """
    weights = torch.zeros(bins, size, dtype=dtype)
    step = (torch.arange(samples, dtype=dtype) + 0.5) * (bin_size / samples)
    at = start + torch.arange(bins, dtype=dtype)[:, None] * bin_size + step
    inside = ((at >= -1) & (at <= size)).to(dtype) / samples
    at = at.clamp(0, size - 1)
    low = at.floor().long()
    high = (low + 1).clamp(max=size - 1)
    weights.scatter_add_(1, low, inside * (1 - (at - low)))
    weights.scatter_add_(1, high, inside * (at - low))
    return weights


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """[R, C, pooled_height, pooled_width] from input [N, C, H, W] and rois [R, 5] (image, x1, y1, x2, y2).

    Bilinear samples and their mean are separable, so each region is two small matrix products.
    """
    _, channels, height, width = input.shape
    out = input.new_zeros(rois.shape[0], channels, pooled_height, pooled_width)
    offset = 0.5 if aligned else 0.0
    for r, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (v * spatial_scale - offset for v in corners)
        roi_width, roi_height = x2 - x1, y2 - y1
        if not aligned:
            roi_width, roi_height = max(roi_width, 1.0), max(roi_height, 1.0)
        samples_y = sampling_ratio if sampling_ratio > 0 else math.ceil(roi_height / pooled_height)
        samples_x = sampling_ratio if sampling_ratio > 0 else math.ceil(roi_width / pooled_width)
        if samples_y < 1 or samples_x < 1:
            continue  # an empty region has no samples and stays zero
        rows = _axis_weights(y1, roi_height / pooled_height, pooled_height, samples_y, height, input.dtype)
        cols = _axis_weights(x1, roi_width / pooled_width, pooled_width, samples_x, width, input.dtype)
        out[r] = rows @ input[int(image)] @ cols.T
    return out


def _roi_align_meta(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    return input.new_empty((rois.shape[0], input.shape[1], pooled_height, pooled_width))


_library.impl("nms", nms, "CPU")
_library.impl("roi_align", roi_align, "CPU")
_library.impl("roi_align", _roi_align_meta, "Meta")

import torchvision  # noqa: E402  its import needs the declarations above


def _has_ops() -> bool:
    return True


# Modules copied this test by name at import. One that still answers False refuses nms, and sends roi_align through
# torch.compile. It is a function with a body because torch.jit.script compiles it.
for _name, _module in list(sys.modules.items()):
    if _name.startswith("torchvision") and hasattr(_module, "_has_ops"):
        vars(_module)["_has_ops"] = _has_ops


def patch_for_export(model: Any = None) -> None:
    """Makes torchvision's R-CNN detectors exportable: no branch and no loop depends on how many boxes were found.

    Results are unchanged, except that a given model returns masks as [n, 1, 28, 28] in place of pasting them into the
    image, and boxes in the resized image's coordinates; both are left to the caller.
    """
    import torchvision.ops.boxes as box_ops
    import torchvision.ops.poolers as poolers

    def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
        # Each class is moved to a place of its own, so that boxes of different classes never overlap.
        span = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max() + 1
        return box_ops.nms(boxes + (idxs.to(boxes) * span)[:, None], scores, iou_threshold)

    def multiscale_roi_align(
        x_filtered: list[Tensor],
        boxes: list[Tensor],
        output_size: list[int],
        sampling_ratio: int,
        scales: list[float],
        mapper: Any,
    ) -> Tensor:
        # Every region on every level, then a choice: more work than sorting regions by level, but of known shape.
        rois = poolers._convert_to_roi_format(boxes)
        level_of: Any = mapper(boxes) if len(x_filtered) > 1 else None
        out: Tensor | None = None
        for level, (features, scale) in enumerate(zip(x_filtered, scales, strict=True)):
            pooled = torch.ops.torchvision.roi_align(features, rois, scale, *output_size, sampling_ratio, False)
            out = pooled if out is None else torch.where((level_of == level)[:, None, None, None], pooled, out)
        assert out is not None
        return out

    box_ops.batched_nms = batched_nms
    poolers._multiscale_roi_align = multiscale_roi_align
    if model is not None:
        model.transform.postprocess = lambda result, *_: result


__all__ = ["nms", "patch_for_export", "roi_align", "torchvision"]
