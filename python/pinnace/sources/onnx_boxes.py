"""NonMaxSuppression and RoiAlign for ONNX's reference evaluator, by arrays.

Its own go through boxes, channels and samples one by one in Python, which takes minutes for a thousand boxes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pinnace.types import Array


def suppress(boxes: Array, scores: Array, most: int, overlap: float, least: float | None, centred: bool) -> Array:
    """int64[n, 3]: batch, class and box of what is kept. Source: https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html

    boxes    [batch, n, 4]: two corners y, x, y, x in any order; centred: x, y, width and height.
    scores   [batch, classes, n]
    most     how many are kept of each class
    overlap  a box that overlaps a kept one by more (intersection over union) is dropped
    least    scores must be above it; None: any
    """
    if centred:
        middle, half = boxes[..., 1::-1], boxes[..., :1:-1] / 2
        low, high = middle - half, middle + half
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    areas = np.prod(high - low, axis=-1)
    kept: list[tuple[int, int, int]] = []
    for batch, label in np.ndindex(*scores.shape[:2]):
        of_class = scores[batch, label]
        order = np.argsort(-of_class, kind="stable")  # of equal scores the first box
        if least is not None:
            order = order[of_class[order] > least]
        for _ in range(most):
            if not order.size:
                break
            best, order = order[0], order[1:]
            kept.append((batch, label, int(best)))
            sides = np.minimum(high[batch, best], high[batch, order]) - np.maximum(low[batch, best], low[batch, order])
            common = np.prod(np.maximum(sides, 0), axis=-1)
            both = areas[batch, best] + areas[batch, order] - common
            with np.errstate(divide="ignore", invalid="ignore"):  # boxes without an area overlap nothing
                order = order[~((common > 0) & (common / both > overlap))]
    return np.array(kept, np.int64).reshape(-1, 3)


def align(x: Array, rois: Array, batches: Array, options: dict[str, Any]) -> Array:
    """[n, c, output_height, output_width]. Source: https://onnx.ai/onnx/operators/onnx__RoiAlign.html

    Mode "max" is the largest of the weighted corners of all samples, as in ONNX's evaluator and in onnxruntime.

    x        [batch, c, h, w]
    rois     [n, 4]: x, y, x, y
    batches  [n]
    """
    out = [int(options["output_height"]), int(options["output_width"])]
    shifted = options["coordinate_transformation_mode"] == "half_pixel"
    made = np.zeros((len(rois), x.shape[1], *out), x.dtype)
    for n, (roi, batch) in enumerate(zip(rois, batches, strict=True)):
        scaled = roi * options["spatial_scale"] - (0.5 if shifted else 0.0)
        axes = []
        for axis in range(2):  # y, then x
            start, size = scaled[1 - axis], scaled[3 - axis] - scaled[1 - axis]
            size = size if shifted else max(size, 1.0)
            samples = int(options["sampling_ratio"]) or math.ceil(size / out[axis])
            axes.append(_samples(start, size, out[axis], max(samples, 0), x.shape[2 + axis]))
        (rows, row_weights, row_there), (columns, column_weights, column_there) = axes
        count = rows.shape[2] * columns.shape[2]
        if not count:
            continue
        # [2, 2, c, output_height, samples, output_width, samples]: each corner by its weight
        there = row_there[:, :, None, None] & column_there
        corners = []
        for i, j in np.ndindex(2, 2):
            at = np.where(there, rows[i][:, :, None, None], 0), np.where(there, columns[j], 0)
            weight = np.where(there, row_weights[i][:, :, None, None] * column_weights[j], 0.0)
            corners.append(x[batch][:, *at] * weight)
        if options["mode"] == "max":
            made[n] = np.max(corners, axis=(0, 3, 5))
        else:
            made[n] = np.sum(corners, axis=(0, 3, 5)) / count
    return made


def _samples(start: float, size: float, bins: int, samples: int, limit: int) -> tuple[Array, Array, Array]:
    """Of an axis, for each bin and sample: the two neighbours [2, bins, samples], their weights, and whether the sample
    lies in the image."""
    at = start + (np.arange(bins)[:, None] + (np.arange(samples) + 0.5) / max(samples, 1)) * (size / bins)
    there = (at >= -1.0) & (at <= limit)
    at = np.clip(at, 0.0, limit - 1)
    low = np.minimum(at.astype(np.int64), limit - 1)
    part = at - low
    return np.stack([low, np.minimum(low + 1, limit - 1)]), np.stack([1.0 - part, part]), there


__all__ = ["align", "suppress"]
