"""What --input gives: arrays of .npy and .npz files and images, by name or in the order of a model's inputs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from pinnace import _core
from pinnace.cli.array_file import read_array, read_arrays
from pinnace.cli.image_file import is_image, read_image
from pinnace.types import Array, TensorSpec


class InputFiles:
    """The files of one command, read when they are asked for."""

    def __init__(self, options: argparse.Namespace) -> None:
        """From the options input, mean and std. InvalidArgument: some have a name and some do not, or two have one."""
        self._mean, self._std = list(options.mean), list(options.std)
        self._named: list[tuple[str, str]] = []
        self._ordered: list[str] = []
        self._archives: list[str] = []
        for text in options.input:
            name, equals, path = text.partition("=")
            if equals:
                self._named.append((name, path))
            elif text.lower().endswith(".npz"):
                self._archives.append(text)
            else:
                self._ordered.append(text)
        if self._ordered and (self._named or self._archives):
            raise _core.InvalidArgument(
                "--input: either every input has a name (NAME=FILE, FILE.npz) or none has, and they are in order"
            )
        _only_once(name for name, _ in self._named)
        if (self._mean or self._std) and not self.has_images and getattr(options, "calibration", None) is None:
            raise _core.InvalidArgument("--mean and --std are for images, and no --input is one")

    @property
    def has_images(self) -> bool:
        """Whether a file is an image, whose array depends on the input that it is for."""
        return any(map(is_image, [*self._ordered, *(path for _, path in self._named)]))

    @property
    def paths(self) -> list[str]:
        """Of all files."""
        return [*self._ordered, *self._archives, *(path for _, path in self._named)]

    def arrays(self) -> dict[str, Array] | tuple[Array, ...]:
        """By name, or in order where no file has one. There must be no images. FileError, InvalidArgument."""
        if self._ordered:
            return tuple(_read(path, path) for path in self._ordered)
        arrays = {name: _read(name, path) for name, path in self._named}
        for path in self._archives:
            found = named_by(path, read_arrays(path))
            _only_once([*arrays, *found])
            arrays |= found
        return arrays

    def arrays_for(self, specs: Mapping[str, TensorSpec], sizes: Mapping[str, int] | None = None) -> dict[str, Array]:
        """By name, for inputs of these specs; an image is every element of its batch. sizes: of dynamic dimensions, by
        name. FileError, InvalidArgument; Unsupported: there are images and no Pillow to read them."""
        if len(self._ordered) > len(specs):
            takes = ", ".join(map(str, specs.values())) or "no inputs"
            raise _core.InvalidArgument(f"--input: {len(self._ordered)} files in order, the model takes {takes}")
        arrays: dict[str, Array] = {}
        named = self._named or list(zip(specs, self._ordered, strict=False))
        for name, path in named:
            if is_image(path):
                if name not in specs:
                    takes = ", ".join(map(str, specs.values())) or "no inputs"
                    raise _core.InvalidArgument(f"inputs: unknown [{name!r}]; the model takes {takes}")
                arrays[name] = read_image(path, specs[name], self._mean, self._std, sizes)
            else:
                arrays[name] = _read(name, path)
        for path in self._archives:
            found = named_by(path, read_arrays(path), specs)
            _only_once([*arrays, *found])
            arrays |= found
        return arrays


def _read(place: str, path: str) -> Array:
    if is_image(path):
        raise _core.InvalidArgument(
            f"--input {place}: TorchScript does not declare the shapes of its inputs, by which images are laid out; "
            "give it a .npy file"
        )
    try:
        return read_array(path)
    except _core.Error as error:
        error.args = (f"--input {place}: {error}",)
        raise


def named_by(path: str, arrays: Mapping[str, Array], specs: Mapping[str, TensorSpec] | None = None) -> dict[str, Array]:
    """By the names that members stand for: as they are, or percent-encoded, as `run --output` writes them."""
    known = specs if specs is not None else {}
    named: dict[str, Array] = {}
    for member, array in arrays.items():
        name = member if member in known else unquote(member)
        if name in named:
            raise _core.InvalidArgument(f"--input {path}: two members are called {name!r}")
        named[name] = array
    return named


def _only_once(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise _core.InvalidArgument(f"--input: {name!r} is given twice")
        seen.add(name)


__all__ = ["InputFiles", "named_by"]
