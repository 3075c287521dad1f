"""Images as inputs of a command line: read by Pillow, laid out as the input declares, never resized."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pinnace import _core
from pinnace.files import one_line, open_regular, printable, reason
from pinnace.packages import import_package
from pinnace.types import Array, Dim, TensorSpec

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".webp")
# Pillow's readers of these run nothing else; that of EPS, for instance, starts ghostscript.
_FORMATS = ("BMP", "JPEG", "PNG", "PPM", "WEBP")
_MODES = {1: "L", 3: "RGB"}
# Modes of 8 bits a channel at most, of which nothing but alpha is lost.
_READ = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}


class _Layout(NamedTuple):
    """Where an input has channels, height and width; -1: it has no axis for them."""

    channels: int
    height: int
    width: int


def is_image(path: str) -> bool:
    """Whether the file's name is that of an image."""
    return path.lower().endswith(SUFFIXES)


def read_image(
    path: str,
    spec: TensorSpec,
    mean: Sequence[float] = (),
    std: Sequence[float] = (),
    sizes: Mapping[str, int] | None = None,
) -> Array:
    """The image as every element of a batch of the input `spec`, channels first or last as its shape says, RGB or grey
    by their number. uint8 inputs get the pixels, those of floats (pixel / 255 - mean) / std.

    mean, std  one number, or one per channel; empty: 0 and 1.
    sizes      of dynamic dimensions by name. A dynamic batch that is not among them is the smallest that there may be,
               1 for instance.

    Unsupported: Pillow is not installed; FileError: the file is no image; InvalidArgument: the input takes none, or
    one of another size, or mean and std do not fit it.
    """
    layouts = list(_layouts(spec))
    if not layouts:
        raise _core.InvalidArgument(
            f"{path}: input {spec} takes no image: it has no dimension of 3 channels (RGB) or 1 (grey) before or "
            "after height and width"
        )
    if spec.dtype != np.uint8 and str(spec.dtype) not in ("float16", "float32", "float64", "bfloat16"):
        raise _core.InvalidArgument(f"{path}: input {spec} takes no image: pixels are uint8 or floats")
    if spec.dtype == np.uint8 and (mean or std):
        raise _core.InvalidArgument(f"--mean and --std are for inputs of floats; {spec} takes the pixels as they are")
    try:
        image_module = import_package("PIL.Image")
    except ImportError as error:
        raise _core.Unsupported(f"{path}: reading images needs the Pillow package: pip install pillow") from error
    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error", image_module.DecompressionBombWarning)
            with image_module.open(file, formats=_FORMATS) as image:
                layout = _fitting(path, image.size, spec, layouts)
                if image.mode not in _READ:
                    raise ValueError(f"pixels of mode {image.mode}, which are not 8 bits a channel")
                channels = spec.shape[layout.channels] if layout.channels >= 0 else 1
                assert isinstance(channels, int)
                pixels = np.asarray(image.convert(_MODES[channels]))
    except _core.Error:
        raise
    except MemoryError as error:
        raise _core.OutOfMemory(f"{path}: reading the image") from error
    except OSError as error:
        text = one_line(error, 200) if error.errno is None else reason(error)  # Pillow's own have no number
        raise _core.FileError(f"{path}: not a readable image: {text}") from error
    except Exception as error:  # what Pillow raises of damaged files, for which there is no list
        raise _core.FileError(f"{path}: not a readable image: {one_line(error, 200, kind=True)}") from error
    values = _laid_out(_scaled(pixels.reshape(*pixels.shape[:2], channels), spec, mean, std), spec, layout)
    return np.repeat(values, _batch(spec, sizes or {}), 0) if len(spec.shape) == 4 else values


def _batch(spec: TensorSpec, sizes: Mapping[str, int]) -> int:
    """How many images the input takes."""
    batch = spec.shape[0]
    if isinstance(batch, Dim):
        return sizes.get(batch.name, max(1, batch.min) + -max(1, batch.min) % batch.multiple_of)
    return 1 if batch is None else batch


def _layouts(spec: TensorSpec) -> Iterator[_Layout]:
    """The ways in which the declared shape can hold an image, channels first before channels last."""
    rank = len(spec.shape)
    if rank in (3, 4):
        for layout in (_Layout(rank - 3, rank - 2, rank - 1), _Layout(rank - 1, rank - 3, rank - 2)):
            if spec.shape[layout.channels] in _MODES:
                yield layout
    elif rank == 2:
        yield _Layout(-1, 0, 1)


def _fitting(path: str, size: tuple[int, int], spec: TensorSpec, layouts: Sequence[_Layout]) -> _Layout:
    """The first layout that an image of that (width, height) has the size for."""
    width, height = size
    for layout in layouts:
        if _takes(spec.shape[layout.width], width) and _takes(spec.shape[layout.height], height):
            return layout
    wanted = dict.fromkeys(f"{_told(spec.shape[lay.width])} x {_told(spec.shape[lay.height])}" for lay in layouts)
    raise _core.InvalidArgument(
        f"{path} is {width} x {height} pixels (width x height), input {spec} takes {' or '.join(wanted)}; "
        "images are not resized"
    )


def _takes(dim: int | Dim | None, size: int) -> bool:
    if isinstance(dim, Dim):
        return dim.min <= size and (dim.max is None or size <= dim.max) and size % dim.multiple_of == 0
    return dim is None or dim == size


def _told(dim: int | Dim | None) -> str:
    """A dimension with its range."""
    if not isinstance(dim, Dim):
        return "any" if dim is None else str(dim)
    by = f" by {dim.multiple_of}" if dim.multiple_of > 1 else ""
    return f"{printable(dim.name)} ({dim.min}..{'' if dim.max is None else dim.max}{by})"


def _scaled(pixels: Array, spec: TensorSpec, mean: Sequence[float], std: Sequence[float]) -> Array:
    """[height, width, channels] in the input's element type."""
    if spec.dtype == np.uint8:
        return pixels
    channels = pixels.shape[-1]
    for name, numbers in (("mean", mean), ("std", std)):
        if len(numbers) not in (0, 1, channels):
            raise _core.InvalidArgument(
                f"--{name} has {len(numbers)} numbers, input {spec} has {channels} channel{'s' * (channels > 1)}"
            )
    values: Any = pixels.astype(np.float64) / 255
    values = (values - np.array(mean or [0.0])) / np.array(std or [1.0])
    return np.asarray(values.astype(spec.dtype))


def _laid_out(values: Array, spec: TensorSpec, layout: _Layout) -> Array:
    if layout.channels < 0:
        return np.ascontiguousarray(values[:, :, 0])
    ordered = values.transpose(2, 0, 1) if layout.channels < layout.height else values
    return np.ascontiguousarray(ordered[None] if len(spec.shape) == 4 else ordered)


__all__ = ["SUFFIXES", "is_image", "read_image"]
