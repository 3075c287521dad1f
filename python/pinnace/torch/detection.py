"""torchvision's detectors for torch.export: functions that branch or loop on how many boxes there are, or compute sizes
in Python's floats, are replaced while it exports.

A replacement gives the bits of what it replaces where tensors have memory. Two of them stand for operators of
pinnace's, which the importer knows: pinnace::batched_nms and pinnace::heatmaps_to_keypoints. Imports torch only when
asked to, and torchvision never: where it was not imported, no module uses it.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_BOXES = "torchvision.ops.boxes"
_POOLERS = "torchvision.ops.poolers"
_DETECTION = "torchvision.models.detection"
_TRANSFORM, _HEADS, _PARTS = (f"{_DETECTION}.{name}" for name in ("transform", "roi_heads", "_utils"))


NOTE = "scales of feature maps that torchvision infers from sizes at the first call are those of the example's sizes"


@contextlib.contextmanager
def exportable_detectors(notes: list[str] | None = None) -> Iterator[None]:
    """For a block that exports: torchvision's functions, wherever they were imported to, and methods are replaced.

    They are the process's: to be entered within isolated_inference(), of which one block runs at a time. notes: is told
    once if dynamic sizes decide the scales of a pooler.
    """
    said: list[str] = [] if notes is None else notes
    if _BOXES not in sys.modules:
        yield
        return
    with contextlib.ExitStack() as undo:
        functions: dict[int, Any] = {}
        for place, name, made in _FUNCTIONS:
            original = getattr(sys.modules.get(place), name, None)
            if original is not None:
                stands_in = _setup_scales(original, said) if made is _setup_scales else made(original)
                functions[id(original)] = functools.wraps(original)(stands_in)
        for module in list(sys.modules.values()):
            for name, value in list(vars(module).items()) if isinstance(module, type(sys)) else ():
                if id(value) in functions:
                    _replace(undo, module, name, functions[id(value)])
        for place, owner, name, made in _METHODS:
            kind = getattr(sys.modules.get(place), owner, None)
            original = vars(kind).get(name) if kind is not None else None
            if original is not None:
                _replace(undo, kind, name, functools.wraps(original)(made(original)))
        yield


def _replace(undo: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    undo.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, value)


def _is_traced(*values: Any) -> bool:
    """Whether tensors have shapes alone, as they do while torch exports."""
    from torch._subclasses.fake_tensor import FakeTensor

    return any(isinstance(value, FakeTensor) for value in values)


def takes_images(module: Any) -> bool:
    """Whether it is one of torchvision's detectors, whose only argument is a list of images of their own sizes."""
    transform = getattr(sys.modules.get(_TRANSFORM), "GeneralizedRCNNTransform", None)
    return transform is not None and isinstance(getattr(module, "transform", None), transform)


# ---- operators of pinnace's


@functools.cache
def _batched_nms_operator() -> Any:
    """pinnace::batched_nms, torchvision's function as one operator: how many boxes stay depends on data."""
    import torch

    def run(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
        from torchvision.ops import boxes as torchvision_boxes

        kept: Tensor = torchvision_boxes.batched_nms(boxes, scores, idxs, iou_threshold)
        return kept

    def shape(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
        count = torch.library.get_ctx().new_dynamic_size()
        return boxes.new_empty((count,), dtype=torch.int64)

    schema = "(Tensor boxes, Tensor scores, Tensor idxs, float iou_threshold) -> Tensor"
    operator = torch.library.custom_op("pinnace::batched_nms", run, mutates_args=(), schema=schema)
    operator.register_fake(shape)
    return torch.ops.pinnace.batched_nms.default


@functools.cache
def _keypoints_operator() -> Any:
    """pinnace::heatmaps_to_keypoints: each heat map is enlarged to its box, whose size depends on data."""
    import torch

    def run(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
        from torchvision.models.detection import roi_heads

        places, scores = roi_heads.heatmaps_to_keypoints(maps, rois)
        return places.contiguous(), scores

    def shapes(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
        return maps.new_empty((*maps.shape[:2], 3)), maps.new_empty(maps.shape[:2])

    schema = "(Tensor maps, Tensor rois) -> (Tensor, Tensor)"
    operator = torch.library.custom_op("pinnace::heatmaps_to_keypoints", run, mutates_args=(), schema=schema)
    operator.register_fake(shapes)
    return torch.ops.pinnace.heatmaps_to_keypoints.default


# ---- functions: each is given the original


def _batched_nms(original: Callable[..., Any]) -> Callable[..., Any]:
    def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Any:
        run = _batched_nms_operator() if _is_traced(boxes, scores, idxs) else original
        return run(boxes, scores, idxs, iou_threshold)

    return batched_nms


def _topk_min(original: Callable[..., Any]) -> Callable[..., Any]:
    def topk_min(input: Tensor, orig_kval: int, axis: int) -> Any:
        import torch

        smaller: Any = torch.sym_min
        return smaller(orig_kval, input.shape[axis])

    return topk_min


def _setup_scales(original: Callable[..., Any], notes: list[str]) -> Callable[..., Any]:
    """A pooler infers the scales of its feature maps at the first call and keeps them: those of the example's sizes."""

    def setup_scales(features: Sequence[Tensor], image_shapes: Sequence[Sequence[int]], *rest: Any) -> Any:
        from torch.utils._python_dispatch import _disable_current_modes

        if any(not isinstance(size, int) for shape in image_shapes for size in shape) and NOTE not in notes:
            notes.append(NOTE)
        shapes = [SimpleNamespace(shape=tuple(map(_example_size, feature.shape))) for feature in features]
        with _disable_current_modes():  # so that the numbers that it computes are no part of the graph
            return original(shapes, [tuple(map(_example_size, shape)) for shape in image_shapes], *rest)

    return setup_scales


def _example_size(size: Any) -> int:
    import torch

    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def _multiscale_roi_align(original: Callable[..., Any]) -> Callable[..., Any]:
    def multiscale_roi_align(
        x_filtered: Sequence[Tensor],
        boxes: Sequence[Tensor],
        output_size: Sequence[int],
        sampling_ratio: int,
        scales: Sequence[float] | None,
        mapper: Any,
    ) -> Any:
        if len(x_filtered) == 1 or scales is None or mapper is None or not _is_traced(*x_filtered):
            return original(x_filtered, boxes, output_size, sampling_ratio, scales, mapper)
        import torch

        poolers = sys.modules[_POOLERS]
        rois, levels = poolers._convert_to_roi_format(boxes), mapper(boxes)
        first = x_filtered[0]
        result = first.new_zeros((rois.shape[0], first.shape[1], *output_size))
        for level, (feature, scale) in enumerate(zip(x_filtered, scales, strict=False)):
            here = torch.where(levels == level)[0]
            pooled = poolers.roi_align(feature, rois[here], tuple(output_size), scale, sampling_ratio)
            result[here] = pooled.to(result.dtype)
        return result

    return multiscale_roi_align


def _resize_image_and_masks(original: Callable[..., Any]) -> Callable[..., Any]:
    """Sizes from the image's as symbols: scale = min(shorter side wanted / shorter, longest allowed / longer)."""

    def resize_image_and_masks(
        image: Tensor, self_min_size: int, self_max_size: int, target: Any = None, fixed_size: Any = None
    ) -> Any:
        if fixed_size is not None or target is not None:
            return original(image, self_min_size, self_max_size, target, fixed_size)
        import torch

        height, width = image.shape[-2:]
        symbols: Any = torch  # its functions of symbols have no types
        smaller, larger, whole = symbols.sym_min, symbols.sym_max, symbols.sym_int
        scale = smaller(self_min_size / smaller(height, width), self_max_size / larger(height, width))
        size = [whole(height * scale), whole(width * scale)]
        return torch.nn.functional.interpolate(image[None], size=size, mode="bilinear", align_corners=False)[0], None

    return resize_image_and_masks


def _paste_masks_in_image(original: Callable[..., Any]) -> Callable[..., Any]:
    def paste_masks_in_image(masks: Tensor, boxes: Tensor, img_shape: Sequence[int], padding: int = 1) -> Any:
        if not _is_traced(masks, boxes):
            return original(masks, boxes, img_shape, padding)
        return pasted_masks(masks, boxes, img_shape, padding)

    return paste_masks_in_image


def pasted_masks(masks: Tensor, boxes: Tensor, img_shape: Sequence[int], padding: int = 1) -> Tensor:
    """What torchvision's paste_masks_in_image gives, up to rounding, without a loop: [n, 1, height, width].

    Each mask is enlarged bilinearly to the pixels of its box, which is separable: two products by matrices, whose rows
    are an image's rows and columns and have two weights each, or none outside of the box.
    """
    import torch

    heads = sys.modules[_HEADS]
    padded, scale = heads.expand_masks(masks, padding=padding)
    cells = padded.shape[-1]
    corners = heads.expand_boxes(boxes, scale).to(dtype=torch.int64)

    def weights(first: Tensor, last: Tensor, size: int) -> Tensor:
        pixels = (last - first + 1).clamp(min=1)[:, None]
        at = torch.arange(size, device=masks.device)[None] - first[:, None]
        source = ((at + 0.5) * (cells / pixels.to(torch.float32)) - 0.5).clamp(min=0, max=cells - 1)
        distance = source[..., None] - torch.arange(cells, device=masks.device)
        inside = (at >= 0) & (at < pixels)
        return (1 - distance.abs()).clamp(min=0) * inside[..., None]

    rows = weights(corners[:, 1], corners[:, 3], img_shape[0])
    columns = weights(corners[:, 0], corners[:, 2], img_shape[1])
    made: Tensor = rows @ padded[:, 0] @ columns.transpose(1, 2)
    return made[:, None]


def _heatmaps_to_keypoints(original: Callable[..., Any]) -> Callable[..., Any]:
    def heatmaps_to_keypoints(maps: Tensor, rois: Tensor) -> Any:
        return _keypoints_operator()(maps, rois) if _is_traced(maps, rois) else original(maps, rois)

    return heatmaps_to_keypoints


# ---- methods: each is given the original


def _decode(original: Callable[..., Any]) -> Callable[..., Any]:
    """Without its test for no boxes, for which it gives another rank: codes have one row for each box anyway."""

    def decode(self: Any, rel_codes: Tensor, boxes: Sequence[Tensor]) -> Any:
        if not _is_traced(rel_codes, *boxes) or rel_codes.dim() != 2:
            return original(self, rel_codes, boxes)
        import torch

        made = self.decode_single(rel_codes, torch.cat(list(boxes), dim=0))
        return made.unflatten(1, (made.shape[1] // 4, 4))

    return decode


def _batch_images(original: Callable[..., Any]) -> Callable[..., Any]:
    """Padded to the largest image's sizes, made multiples of size_divisible, in integers."""

    def batch_images(self: Any, images: Sequence[Tensor], size_divisible: int = 32) -> Any:
        import torch

        larger: Any = torch.sym_max
        step = int(size_divisible)
        sizes: list[Any] = []
        for axis in (1, 2):
            most: Any = images[0].shape[axis]
            for image in images[1:]:
                most = larger(most, image.shape[axis])
            sizes.append((most + (step - 1)) // step * step)
        high, wide = sizes
        pad = torch.nn.functional.pad
        return torch.stack([pad(i, (0, wide - i.shape[2], 0, high - i.shape[1])) for i in images])

    return batch_images


_FUNCTIONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    (_BOXES, "batched_nms", _batched_nms),
    (_PARTS, "_topk_min", _topk_min),
    (_POOLERS, "_setup_scales", _setup_scales),
    (_POOLERS, "_multiscale_roi_align", _multiscale_roi_align),
    (_TRANSFORM, "_resize_image_and_masks", _resize_image_and_masks),
    (_HEADS, "paste_masks_in_image", _paste_masks_in_image),
    (_HEADS, "heatmaps_to_keypoints", _heatmaps_to_keypoints),
)
_METHODS: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    (_PARTS, "BoxCoder", "decode", _decode),
    (_TRANSFORM, "GeneralizedRCNNTransform", "batch_images", _batch_images),
)

__all__ = ["NOTE", "exportable_detectors", "pasted_masks", "takes_images"]
