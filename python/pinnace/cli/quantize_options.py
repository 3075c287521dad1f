"""What `convert --quantize` asks for, and the samples of a folder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from pinnace import _core
from pinnace.cli.array_file import read_array, read_arrays
from pinnace.cli.image_file import is_image, read_image
from pinnace.cli.input_files import named_by
from pinnace.files import reason
from pinnace.model import Model
from pinnace.quantize.options import DynamicInt8, Float16, Int8, WeightOnly
from pinnace.types import Array

METHODS = ("int8", "dynamic8", "weights8", "weights4", "float16")


def quantization_of(options: argparse.Namespace, model: Model) -> Int8 | WeightOnly | DynamicInt8 | Float16 | None:
    """What build() is to be given. InvalidArgument: options that do not go together, or values that they refuse."""
    given = {
        "--calibration": options.calibration,
        "--observer": options.observer,
        "--max-drop": options.max_drop,
        "--block": options.block,
        "--skip": options.skip or None,
    }
    if options.quantize is None:
        if named := [name for name, value in given.items() if value is not None]:
            raise _core.InvalidArgument(f"{', '.join(named)}: only with --quantize")
        return None
    samples = ("--calibration", "--observer", "--max-drop")
    no_block = options.quantize in ("dynamic8", "float16")
    refused = ("--block",) if options.quantize == "int8" else (*samples, "--block") if no_block else samples[1:]
    if named := [name for name in refused if given[name] is not None]:
        raise _core.InvalidArgument(f"{', '.join(named)}: not with --quantize {options.quantize}")
    if options.quantize == "dynamic8":
        return DynamicInt8(skip=options.skip)
    if options.quantize == "float16":
        return Float16(skip=options.skip)
    if options.quantize != "int8":
        return WeightOnly(
            bits=4 if options.quantize == "weights4" else 8,
            block=options.block,
            skip=options.skip,
            calibration=None if options.calibration is None else lambda: folder_samples(options, model),
            progress=not options.quiet,
        )
    if options.calibration is None:
        raise _core.InvalidArgument("--quantize int8 needs samples: --calibration FOLDER")
    drop = options.max_drop
    return Int8(
        calibration=lambda: folder_samples(options, model),
        observer=options.observer or "minmax",
        max_drop=drop if drop is None or drop.endswith("%") else _number(drop),
        skip=options.skip,
        progress=not options.quiet,
    )


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # which Int8 refuses


def folder_samples(options: argparse.Namespace, model: Model) -> Iterator[dict[str, Array]]:
    """A sample for each file of the folder, in the order of their names: .npz with all inputs by name; .npy or an image
    for a model of one input. Files whose names begin with a dot are passed over.

    FileError: the folder or a file cannot be read; InvalidArgument: a file of another kind, or for a model of several
    inputs.
    """
    folder = Path(options.calibration)
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise _core.FileError(f"--calibration {folder}: {reason(error)}") from error
    specs = model.inputs
    for path in paths:
        if path.suffix.lower() == ".npz":
            yield named_by(str(path), read_arrays(str(path)), specs)
            continue
        if len(specs) != 1:
            takes = ", ".join(map(str, specs.values())) or "no inputs"
            raise _core.InvalidArgument(f"--calibration {path}: must be .npz with all inputs by name: {takes}")
        ((name, spec),) = specs.items()
        if is_image(str(path)):
            yield {name: read_image(str(path), spec, list(options.mean), list(options.std))}
        elif path.suffix.lower() == ".npy":
            yield {name: read_array(str(path))}
        else:
            raise _core.InvalidArgument(f"--calibration {path}: is no .npz, .npy or image")


__all__ = ["METHODS", "folder_samples", "quantization_of"]
