"""Sizes that the example of a .pt2 file had: the hints beside the symbols in its graph. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pinnace import _core
from pinnace.torch.zip_file import ZipFile
from pinnace.types import Dim, TensorSpec

# Less than the importer takes: as Python's objects JSON takes up to twenty times its bytes. Larger ones give no sizes.
MAX_JSON = 1 << 27
MAX_SIZE = 1 << 40  # of a hint that is taken for a size


def example_sizes(path: str, model_name: str, specs: Mapping[str, TensorSpec]) -> dict[str, int]:
    """By the program's names for dynamic dimensions the size that the exported example had, as far as the file says so.

    `specs` are the program's inputs, which are the tensors among the file's, in order. The file has been imported, so
    it is no error here if it says nothing, or what nobody would expect.
    """
    try:
        with ZipFile(path) as archive:
            graph = _module(archive, model_name)["graph_module"]
        values = graph["graph"]["tensor_values"]
        tensors = [
            values[name]["sizes"]
            for spec in graph["signature"]["input_specs"]
            if (name := _tensor_name(spec)) is not None
        ]
    except (_core.Error, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}
    found: dict[str, int] = {}
    for spec, sizes in zip(specs.values(), tensors, strict=False):
        if not isinstance(sizes, list) or len(sizes) != len(spec.shape):
            return {}
        for dim, size in zip(spec.shape, sizes, strict=True):
            hint = _hint(size)
            if isinstance(dim, Dim) and hint is not None:
                found.setdefault(dim.name, hint)
    return found


def _module(archive: ZipFile, model_name: str) -> Any:
    named = [name for name in archive.names if "/models/" in name and name.endswith(".json")]
    chosen = [name for name in named if not model_name or name.endswith(f"/models/{model_name}.json")]
    if len(chosen) != 1:
        raise KeyError(model_name)
    return json.loads(archive.read(chosen[0], MAX_JSON))


def _tensor_name(spec: Any) -> str | None:
    """The name of the tensor that an input is, if it is one of the call's."""
    if "user_input" not in spec:
        return None
    arg = spec["user_input"]["arg"]
    return str(arg["as_tensor"]["name"]) if "as_tensor" in arg else None


def _hint(size: Any) -> int | None:
    """What the example had for a size: a whole number, beside an expression or in its place."""
    if isinstance(size, dict) and isinstance(size.get("as_expr"), dict):
        size = size["as_expr"].get("hint")
    number = size.get("as_int") if isinstance(size, dict) else None
    return number if type(number) is int and 0 <= number <= MAX_SIZE else None  # not a bool, which is an int too


__all__ = ["example_sizes"]
