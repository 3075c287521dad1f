"""preprocess(): what an app does to a picture before a network, as a description that load() puts into the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.picture_arithmetic import PictureArithmetic
from pinnace.types import Array, Dim, TensorSpec

_OPEN, _DENSE = -1, 0  # as C++'s Preprocessing has them
_PLANES = ("nv21", "nv12", "i420")
# What errors of C++ name, by the arguments of preprocess().
_ARGUMENTS = {
    "crop_to_aspect": "crop 'aspect'",
    "crop_box": "crop",
    "crop_size": "crop",
    "crop_ratio": "crop",
    "cut_last_row": "rows 'cut'",
    "height and width:": "picture:",
    "kDense or kOpen": "None or 'open'",
}


@dataclass(frozen=True)
class Preprocessing:
    """What becomes of a picture on its way into a model. preprocess() makes it, and says what its arguments mean.

    The fields are those: input, picture, input_layout, row_stride, chroma_row_stride, pixel_stride, rows, matrix, crop,
    resize, antialias, output, scale, output_layout and name as given; size and center_crop with a number for each side
    (empty: none), mean and std with one for each channel or for all.
    """

    size: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    input: str
    picture: tuple[int | None, int | None]
    input_layout: str
    row_stride: int | str | None
    chroma_row_stride: int | str | None
    pixel_stride: int
    rows: str
    matrix: str
    crop: tuple[int, ...] | float | str | None
    resize: str
    antialias: bool
    center_crop: tuple[int, ...]
    output: str
    scale: float
    output_layout: str
    name: str

    def __post_init__(self) -> None:
        """Refuses what has no meaning: InvalidArgument."""
        try:
            _core.describe_preprocessing(core_fields(self))
        except _core.InvalidArgument as error:
            said = str(error)
            for name, argument in _ARGUMENTS.items():
                said = said.replace(name, argument)
            raise _core.InvalidArgument(said) from None

    def __str__(self) -> str:
        """All that it says, on one line."""
        return _core.describe_preprocessing(core_fields(self))

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs that the picture becomes, in order."""
        if self.input in _PLANES:
            chroma = [] if self.output == "grey" else ["u", "v"] if self.input == "i420" else ["uv"]
            return [f"{self.name}.{plane}" for plane in ["y", *chroma]]
        return [self.name]

    def run(self, picture: Array | Mapping[str, Array]) -> Array:
        """The same in numpy, float32 [N, C, H, W] to the bit: what a program with this description gives its network.

        picture  uint8: the array, or a dict of the planes by `input_names`.

        InvalidArgument: the names of planes are not those of `input_names`, or a plane has not the size that the
        description says.
        """
        planes = dict(picture) if isinstance(picture, Mapping) else {self.name: picture}
        if list(planes) != self.input_names and set(planes) != set(self.input_names):
            raise _core.InvalidArgument(f"preprocessing: takes {self.input_names}, is given {list(planes)}")
        arithmetic = PictureArithmetic(core_fields(self))
        return arithmetic.numbers(arithmetic.bytes_of([np.asarray(planes[name]) for name in self.input_names]))


def core_fields(how: Preprocessing) -> dict[str, Any]:
    """Its fields by the names that C++'s Preprocessing has for them."""
    same = ("size", "mean", "std", "input", "input_layout", "pixel_stride", "matrix", "resize", "antialias")
    found = {key: getattr(how, key) for key in (*same, "center_crop", "output", "scale", "output_layout", "name")}
    found["height"], found["width"] = (_OPEN if side is None else side for side in how.picture)
    for key in ("row_stride", "chroma_row_stride"):
        stride = getattr(how, key)
        found[key] = _DENSE if stride is None else _OPEN if stride == "open" else stride
    found["cut_last_row"] = how.rows == "cut"
    if how.crop == "aspect":
        found["crop_to_aspect"] = True
    elif isinstance(how.crop, float):
        found["crop_ratio"] = how.crop
    elif isinstance(how.crop, tuple):
        found["crop_size" if len(how.crop) == 2 else "crop_box"] = how.crop
    return found


def usual_sizes(how: Preprocessing, specs: Mapping[str, TensorSpec], known: Mapping[str, int]) -> dict[str, int]:
    """Sizes for dynamic dimensions of these inputs, by name, that fit each other: odd ones, rows with gaps. Those that
    are `known` stay."""
    found = dict(known)

    def size(dim: Any, usual: int) -> int:
        if not isinstance(dim, Dim):
            return int(dim)
        fitting = max(dim.min, min(usual, dim.max or usual))
        return found.setdefault(dim.name, fitting + -fitting % dim.multiple_of)

    first, *chroma = how.input_names
    shape, gaps = specs[first].shape, 5
    if how.rows == "cut":
        for name in how.input_names:
            (dim,) = specs[name].shape
            lines = int(how.picture[0] or 0) if name == first else -(-int(how.picture[0] or 0) // 2)
            if isinstance(dim, Dim):
                size(dim, dim.min + gaps * (lines - 1))
        return found
    if how.input not in _PLANES and how.row_stride is None:
        at = len(shape) - (3 if how.input_layout == "nhwc" else 2)
        size(shape[at], 45)
        size(shape[at + 1], 61)
        return found
    height, row = size(shape[0], 45), size(shape[1], getattr(shape[1], "min", 0) + gaps if how.row_stride else 61)
    width = how.picture[1] or row
    for name in chroma:
        rows, columns = specs[name].shape
        size(rows, -(-height // 2))
        pairs = 2 if len(chroma) == 1 else 1
        size(columns, getattr(columns, "min", 0) + gaps if how.chroma_row_stride else pairs * -(-width // 2))
    return found


def preprocess(
    size: int | Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    input: str = "rgb",
    *,
    picture: Sequence[int | None] = (None, None),
    input_layout: str = "nhwc",
    row_stride: int | str | None = None,
    chroma_row_stride: int | str | None = None,
    pixel_stride: int = 1,
    rows: str = "whole",
    matrix: str = "bt601_full",
    crop: float | str | Sequence[int] | None = None,
    resize: str = "bilinear",
    antialias: bool = True,
    center_crop: int | Sequence[int] | None = None,
    output: str = "rgb",
    scale: float = 1 / 255,
    output_layout: str = "nchw",
    name: str = "image",
) -> Preprocessing:
    """Describes the work in front of an image network, for load(net, x, preprocess=...) and Model.preprocessed(). It
    happens in this order, as nodes of the graph, so that a device does what the host did (docs/preprocessing.md).

    input    what the bytes are: "rgb", "bgr", "rgba", "bgra" or "grey"; or planes with a colour for each 2 x 2 pixels:
             "nv21" (V before U), "nv12" (U before V), "i420".
    picture  (height, width) of what enters; None: each run says it, or, where nothing changes it, the model does.
    input_layout   "nhwc": a pixel's bytes together; "nchw": a plane for each channel. Of pictures without planes.
    row_stride     bytes from row to row of the pixels or of the luma plane: a number, "open" (each run says it by the
                   shape of its array), None: no gaps. Gaps need a known width.
    chroma_row_stride  of the chroma planes. pixel_stride: 2 where i420's have every second byte, as Android's may.
    rows     "whole": planes are [rows, stride]; "cut": vectors that end with the last pixel, as Android's buffers do.
    matrix   from luma and chroma to RGB: "bt601_full" (JPEG's, Android's cameras'), "bt601", "bt709" (luma 16 to 235).
    crop     (top, left, height, width); (height, width) in the middle; 0.875 of each side in the middle; or "aspect":
             the largest box in the middle of the shape of `size`.
    size     (height, width) after a resize; a number: of the shorter side.
    resize   "bilinear", "nearest" or "nearest_exact", as torch has them; antialias: as torchvision's.
    center_crop    (height, width), or a number for both, cut out of the middle of what was resized.
    output   "rgb", "bgr" or "grey".
    scale, mean, std   (byte * scale - mean) / std, a number or one for each channel. Models that take bytes get these.
    output_layout  of the model's input.
    name     of the new input, and how those of planes begin: image.y and image.uv, or image.u and image.v.

    InvalidArgument names the argument, what it must be and what it is.
    """
    sides = _sides("picture", picture, 2, open_too=True)
    if rows not in ("whole", "cut"):
        raise _core.InvalidArgument(f"rows must be 'whole' or 'cut', is {rows!r}")
    texts = {
        "input": input,
        "input_layout": input_layout,
        "matrix": matrix,
        "resize": resize,
        "output": output,
        "output_layout": output_layout,
        "name": name,
    }
    for key, value in texts.items():
        if not isinstance(value, str):
            raise _core.InvalidArgument(f"{key} must be text, is {value!r}")
    if not isinstance(antialias, bool):
        raise _core.InvalidArgument(f"antialias must be True or False, is {antialias!r}")
    return Preprocessing(
        size=() if size is None else _sides("size", size, 1, 2),
        mean=_numbers("mean", mean),
        std=_numbers("std", std),
        input=input,
        picture=(sides[0], sides[1]),
        input_layout=input_layout,
        row_stride=_stride("row_stride", row_stride),
        chroma_row_stride=_stride("chroma_row_stride", chroma_row_stride),
        pixel_stride=_whole("pixel_stride", pixel_stride),
        rows=rows,
        matrix=matrix,
        crop=_crop(crop),
        resize=resize,
        antialias=antialias,
        center_crop=() if center_crop is None else (_sides("center_crop", center_crop, 1, 2) * 2)[:2],
        output=output,
        scale=_number("scale", scale),
        output_layout=output_layout,
        name=name,
    )


def by_input(preprocess: Any, names: Sequence[str]) -> dict[str, Preprocessing]:
    """What a caller gave for `preprocess`, by the model's inputs; one without a name is under "".

    InvalidArgument: it is neither a Preprocessing nor a dict of them, or names what is no input.
    """
    if isinstance(preprocess, Preprocessing):
        return {"": preprocess}
    described = isinstance(preprocess, Mapping) and all(isinstance(p, Preprocessing) for p in preprocess.values())
    if not described or not preprocess:
        raise _core.InvalidArgument(
            f"preprocess must be what pn.preprocess() gives, or a dict input name -> such, is {preprocess!r:.200}"
        )
    if unknown := [name for name in preprocess if name not in names]:
        raise _core.InvalidArgument(f"preprocess: unknown {unknown}; the model takes {list(names)}")
    return dict(preprocess)


def _whole(place: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or abs(int(value)) >= 1 << 62:
        raise _core.InvalidArgument(f"{place} must be a whole number, is {value!r}")
    return int(value)


def _number(place: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise _core.InvalidArgument(f"{place} must be a number, is {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _core.InvalidArgument(f"{place} must be a finite number, is {value!r}")
    return number


def _numbers(place: str, value: Any) -> tuple[float, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        return (_number(place, value),)
    if len(value) == 0:
        raise _core.InvalidArgument(f"{place} must be a number, or one for each channel, is empty")
    return tuple(_number(place, item) for item in value)


def _sides(place: str, value: Any, *counts: int, open_too: bool = False) -> tuple[Any, ...]:
    """So many whole numbers; None among them stays."""
    items = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else [value]
    if len(items) not in counts:
        wanted = " or ".join(map(str, counts))
        raise _core.InvalidArgument(f"{place} must have {wanted} numbers, is {value!r}")
    return tuple(None if item is None and open_too else _whole(place, item) for item in items)


def _stride(place: str, value: Any) -> int | str | None:
    if value is None or (isinstance(value, str) and value == "open"):
        return value
    if isinstance(value, (str, bool)) or _whole(place, value) < 1:
        raise _core.InvalidArgument(f"{place} must be a positive number of bytes, 'open' or None, is {value!r}")
    return int(value)


def _crop(value: Any) -> tuple[int, ...] | float | str | None:
    if value is None or (isinstance(value, str) and value == "aspect"):
        return value
    if isinstance(value, float | np.floating):
        return _number("crop", value)
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise _core.InvalidArgument(
            "crop must be (top, left, height, width), (height, width), a part such as 0.875, 'aspect' or None, "
            f"is {value!r}"
        )
    return _sides("crop", value, 2, 4)


__all__ = ["Preprocessing", "by_input", "core_fields", "preprocess", "usual_sizes"]
