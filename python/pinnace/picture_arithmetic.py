"""What preprocessing does to a picture, in numpy, written from the formulas of docs/preprocessing.md.

It shares nothing with the nodes that C++ puts into the graph: verification holds one against the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pinnace import _core
from pinnace.types import Array

_Float64 = npt.NDArray[np.float64]

_OPEN = -1
_UNIT = 2.0**-14  # of the weights from luma and chroma to RGB
# By name: weights of red and blue in luma (ITU-R BT.601-7, section 2.5.1; BT.709-6, section 3.2), and whether luma is
# 16 to 235 and chroma 16 to 240 (BT.601-7, section 2.5.3; BT.709-6, section 4.6) or both 0 to 255 (JFIF).
_MATRICES = {
    "bt601_full": (0.299, 0.114, False),
    "bt601": (0.299, 0.114, True),
    "bt709": (0.2126, 0.0722, True),
}
_CHANNELS = {"rgb": 3, "bgr": 3, "rgba": 4, "bgra": 4, "grey": 1}


class PictureArithmetic:
    """One description, as the fields of C++'s Preprocessing."""

    def __init__(self, how: Mapping[str, Any]) -> None:
        """how: as core_fields() of preprocessing.py gives it."""
        self.how = how

    # ---- as it enters

    def bytes_of(self, planes: Sequence[Array]) -> Array:
        """The bytes before they become numbers: uint8 [N, C, H, W]. InvalidArgument: planes that cannot be."""
        how = self.how
        for plane in planes:
            if plane.dtype != np.uint8:
                raise _core.InvalidArgument(f"preprocessing of {how['name']!r}: a picture is uint8, is {plane.dtype}")
        if how["input"] in _CHANNELS:
            order, pixels = self._pixels(planes[0])
            top, left, height, width = self._box(*pixels.shape[2:])
            pixels = pixels[:, :, top : top + height, left : left + width]
        else:
            order, pixels = self._from_luma_and_chroma(planes)
        return self._ordered(order, self._resized(pixels))

    def _refuse(self, why: str) -> _core.InvalidArgument:
        return _core.InvalidArgument(f"preprocessing of {self.how['name']!r}: {why}")

    def _pixels(self, given: Array) -> tuple[str, Array]:
        how = self.how
        order, channels = how["input"], _CHANNELS[how["input"]]
        if how["row_stride"] or how["cut_last_row"]:
            rows = self._rows(how["name"], given, how["height"], how["width"] * channels, how["row_stride"])
            pixels = rows.reshape(1, rows.shape[0], how["width"], channels).transpose(0, 3, 1, 2)
        else:
            if given.ndim not in (3, 4):
                raise self._refuse(f"a picture has 3 or 4 dimensions, has {given.ndim}")
            pixels = given if given.ndim == 4 else given[None]
            if how["input_layout"] == "nhwc":
                pixels = pixels.transpose(0, 3, 1, 2)
            wanted = [channels, *(None if side == _OPEN else side for side in (how["height"], how["width"]))]
            if any(w not in (None, is_) for w, is_ in zip(wanted, pixels.shape[1:], strict=True)):
                raise self._refuse(f"the picture is {given.shape}, which is not {how['input']} of {wanted[1:]}")
        return order.removesuffix("a") if channels == 4 else order, pixels[:, :3]

    def _rows(self, name: str, plane: Array, rows: int, used: int, stride: int) -> Array:
        """[rows, used]; an open number of rows is the plane's. name: of the plane."""
        if not self.how["cut_last_row"]:
            whole = plane.shape[0] if rows == _OPEN else rows
            wide = plane.shape[-1] if stride == _OPEN else stride or used
            if plane.shape != (whole, wide) or wide < used:
                raise self._refuse(
                    f"{name} is {plane.shape}, must be {(whole, max(wide, used))}, {used} bytes of pixels a row"
                )
            return plane[:, :used]
        pitch = stride or used
        if stride == _OPEN and rows > 1:
            pitch = (plane.size - used) // (rows - 1)
        if plane.ndim != 1 or plane.size != (rows - 1) * pitch + used or pitch < used:
            raise self._refuse(f"{name} of {plane.shape} bytes cannot be {rows} rows, the last of {used} bytes")
        return plane[np.arange(rows)[:, None] * pitch + np.arange(used)]

    def _from_luma_and_chroma(self, planes: Sequence[Array]) -> tuple[str, Array]:
        how = self.how
        height, width = (how[side] for side in ("height", "width"))
        used = planes[0].shape[-1] if width == _OPEN else width
        luma = self._rows(f"{how['name']}.y", planes[0], height, used, how["row_stride"])
        height, width = luma.shape
        red, blue, limited = _MATRICES[how["matrix"]]
        black, luma_range, chroma_range = (16, 219, 224) if limited else (0, 255, 255)
        top, left, box_height, box_width = self._box(height, width)
        y = luma[top : top + box_height, left : left + box_width].astype(np.float64)
        gain = _rounded(255 / luma_range)
        if how["output"] == "grey":
            return "grey", _to_bytes(gain * (y - black))[None, None]
        # A pixel's colour is that of its 2 x 2 pixels.
        row, column = (top + np.arange(box_height)) // 2, (left + np.arange(box_width)) // 2
        u, v = (c[row[:, None], column].astype(np.float64) - 128 for c in self._chroma(planes[1:], height, width))
        to_red, to_blue, green = 2 * (1 - red), 2 * (1 - blue), 1 - red - blue
        k = 255 / chroma_range
        r = gain * (y - black) + _rounded(k * to_red) * v
        g = gain * (y - black) - _rounded(k * to_blue * blue / green) * u - _rounded(k * to_red * red / green) * v
        b = gain * (y - black) + _rounded(k * to_blue) * u
        return "rgb", _to_bytes(np.stack([r, g, b]))[None]

    def _chroma(self, planes: Sequence[Array], height: int, width: int) -> tuple[Array, Array]:
        how = self.how
        rows, columns, stride = -(-height // 2), -(-width // 2), how["chroma_row_stride"]
        if how["input"] == "i420":
            step = how["pixel_stride"]
            used = step * (columns - 1) + 1
            named = zip("uv", planes, strict=True)
            u, v = (self._rows(f"{how['name']}.{x}", plane, rows, used, stride)[:, ::step] for x, plane in named)
            return u, v
        both = self._rows(f"{how['name']}.uv", planes[0], rows, 2 * columns, stride)
        first, second = both[:, 0::2], both[:, 1::2]
        return (second, first) if how["input"] == "nv21" else (first, second)

    def _box(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Of what is kept: top, left, height, width."""
        how = self.how
        if box := how.get("crop_box"):
            top, left, box_height, box_width = box
            if top + box_height > height or left + box_width > width:
                raise self._refuse(f"the box {tuple(box)} is not within a picture of {height} x {width}")
            return top, left, box_height, box_width
        box_height, box_width = how.get("crop_size") or (height, width)
        if how.get("crop_to_aspect"):
            high, wide = how["size"]
            box_height, box_width = min(height, width * high // wide), min(width, height * wide // high)
        elif "crop_ratio" in how:
            parts = round(how["crop_ratio"] * 1e6)
            box_height, box_width = height * parts // 10**6, width * parts // 10**6
        return self._middle(height, width, box_height, box_width)

    def _middle(self, height: int, width: int, box_height: int, box_width: int) -> tuple[int, int, int, int]:
        if not (1 <= box_height <= height and 1 <= box_width <= width):
            raise self._refuse(f"a box of {box_height} x {box_width} cannot be cut out of {height} x {width}")
        return round((height - box_height) / 2), round((width - box_width) / 2), box_height, box_width

    # ---- sizes

    def _resized(self, pixels: Array) -> Array:
        how = self.how
        if not how["size"]:
            return pixels
        height, width = pixels.shape[2:]
        if len(how["size"]) == 2:
            new_height, new_width = how["size"]
        else:
            shorter = min(height, width)
            new_height, new_width = (side * how["size"][0] // shorter for side in (height, width))
        pixels = self._sampled(pixels, new_height, new_width)
        if not how["center_crop"]:
            return pixels
        top, left, height, width = self._middle(new_height, new_width, *how["center_crop"])
        return pixels[:, :, top : top + height, left : left + width]

    def _sampled(self, pixels: Array, height: int, width: int) -> Array:
        mode = self.how["resize"]
        if (height, width) == pixels.shape[2:]:
            return pixels
        if mode != "bilinear":
            pick = _nearest if mode == "nearest" else _nearest_middle
            return pixels[:, :, pick(pixels.shape[2], height)[:, None], pick(pixels.shape[3], width)]
        reals = pixels.astype(np.float64)
        if height != pixels.shape[2]:
            reals = _blended(reals, 2, height, self.how["antialias"])
        if width != pixels.shape[3]:
            reals = _blended(reals, 3, width, self.how["antialias"])
        return _to_bytes(reals.astype(np.float32))

    # ---- channels and numbers

    def _ordered(self, order: str, pixels: Array) -> Array:
        output = self.how["output"]
        if order == output:
            return pixels
        if order == "grey":
            return np.repeat(pixels, 3, axis=1)
        if output != "grey":
            return pixels[:, ::-1]
        r, g, b = (pixels[:, i].astype(np.float64) for i in ((0, 1, 2) if order == "rgb" else (2, 1, 0)))
        return _to_bytes(_rounded(0.299) * r + _rounded(0.587) * g + _rounded(0.114) * b)[:, None]

    def numbers(self, pixels: Array) -> Array:
        """float32 [N, C, H, W] of such bytes, to the bit: the difference rounded, then the product."""
        scale = self.how["scale"]
        mean = np.array([m / scale for m in self.how["mean"] or (0,)], np.float32)
        factor = np.array([scale / s for s in self.how["std"] or (1,)], np.float32)
        return (pixels.astype(np.float32) - mean[:, None, None]) * factor[:, None, None]

    def exact_numbers(self, pixels: Array) -> Array:
        """The same in float64."""
        mean, std = (np.array(self.how[key] or (d,))[:, None, None] for key, d in (("mean", 0.0), ("std", 1.0)))
        return np.asarray((pixels.astype(np.float64) * self.how["scale"] - mean) / std)


def _rounded(weight: float) -> float:
    return float(np.rint(weight / _UNIT) * _UNIT)


def _to_bytes(x: Array) -> Array:
    """Rounded half to even, cut to what a byte holds."""
    return np.clip(np.rint(x), 0, 255).astype(np.uint8)


def _nearest(old: int, new: int) -> Array:
    """torch's "nearest": the place in the picture, rounded down; in float32."""
    places = np.arange(new, dtype=np.float32) * (np.float32(old) / np.float32(new))
    return np.minimum(np.floor(places).astype(int), old - 1)


def _places(old: int, new: int) -> _Float64:
    """The middles of the new pixels, from the middle of the first old one; rounded to float32 as torch's are."""
    step = np.float64(np.float32(old) / np.float32(new))
    return ((np.arange(new) + 0.5) * step - 0.5).astype(np.float32).astype(np.float64)


def _nearest_middle(old: int, new: int) -> Array:
    """torch's "nearest-exact": the old pixel in which the middle lies."""
    middles = (_places(old, new).astype(np.float32) + np.float32(0.5)).astype(np.float64)
    return np.clip(np.floor(middles).astype(int), 0, old - 1)


def _blended(x: _Float64, axis: int, new: int, antialias: bool) -> _Float64:
    """Bilinear along one axis: a triangle around each place; with antialias as wide as a new pixel, where that is the
    wider one, and without what lies outside, where the edge is repeated else."""
    old = x.shape[axis]
    scale = np.float64(np.float32(new) / np.float32(old))
    stretch = min(scale, 1.0) if antialias else 1.0
    places = _places(old, new)
    reach = int(np.ceil(1 / stretch))
    first = np.ceil(places - 1 / stretch).astype(int)
    taps = first[:, None] + np.arange(2 * reach + 1)
    weights = np.maximum(0, 1 - np.abs((taps - places[:, None]) * stretch))
    if antialias:
        weights[(taps < 0) | (taps >= old)] = 0
    total = np.zeros(new)
    for k in range(weights.shape[1]):  # from the left, one after the other
        total += weights[:, k]
    weights /= total[:, None]
    taps = np.clip(taps, 0, old - 1)
    made = np.zeros((*x.shape[:axis], new, *x.shape[axis + 1 :]))
    shape = [1] * x.ndim
    shape[axis] = new
    for k in range(weights.shape[1]):
        made += weights[:, k].reshape(shape) * np.take(x, taps[:, k], axis)
    return made


__all__ = ["PictureArithmetic"]
