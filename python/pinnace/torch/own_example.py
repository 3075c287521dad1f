"""The example that an exported program was made with: of a live one, or read from a .pt2 file without unpickling.

Whatever a file has instead of tensors in tuples, lists and dicts, and whatever does not fit the program, means that
there is no example: inputs are then made up, as without one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pinnace.arrays import to_numpy
from pinnace.files import one_line
from pinnace.log import log
from pinnace.torch.saved_tensors import SavedObject, SavedTensor
from pinnace.torch.zip_file import ZipFile
from pinnace.types import Array, Dim, TensorSpec

MAX_BYTES = 1 << 28  # of the example in a file, and of the arrays that are made of it
MAX_PICKLE, MAX_OPCODES = 1 << 20, 20_000
MAX_LEAVES = 10_000  # of the call: lists in a pickle may hold each other, or themselves


def program_example(program: Any, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """By input, what a live torch.export.ExportedProgram was exported with; empty where it has none that fits."""
    try:
        example = program.example_inputs
        if example is None:
            return {}
        args, kwargs = example
        found = _by_input(specs, args, kwargs)
        return _fitting(specs, {name: np.array(to_numpy(tensor)) for name, tensor in found.items()})
    except Exception as error:  # tensors without memory, and what torch's properties raise
        log("debug", f"the exported program's example is not used: {one_line(error, 200, kind=True)}")
        return {}


def file_example(path: str, model_name: str, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """The same of the example in a .pt2 file, which has been imported; nothing is unpickled."""
    try:
        with ZipFile(path) as archive:
            entry = _entry(archive.names, model_name)
            data = archive.read(entry, MAX_BYTES) if entry else b""
        if not data:
            return {}
        saved = SavedObject(data)
        args, kwargs = saved.value(MAX_PICKLE, MAX_OPCODES)
        return _fitting(specs, _arrays(saved, _by_input(specs, args, kwargs)))
    except Exception as error:  # whatever zipfile and pickletools raise of damaged bytes, for which there is no list
        log("debug", f"{path}: its example is not used: {one_line(error, 200, kind=True)}")
        return {}


def is_placeholder(array: Array) -> bool:
    """Whether the example has nothing but zeros or ones for an input, as people write who only need a shape. Another
    value would find what these hide: rows of a table that no index reads, products with 0."""
    return array.size > 1 and bool(np.all(array == 0) or np.all(array == 1))


def _entry(names: Sequence[str], model_name: str) -> str:
    end = f"/data/sample_inputs/{model_name}.pt" if model_name else ".pt"
    found = [name for name in names if "/data/sample_inputs/" in name and name.endswith(end)]
    return found[0] if len(found) == 1 else ""


# ---- which value is for which input


def _by_input(specs: Mapping[str, TensorSpec], args: Any, kwargs: Any) -> dict[str, Any]:
    """Tensors of a call by the inputs that they are for: those among the positional arguments are the first ones, in
    order, those among the others go by name. ValueError: they are not as many, or have other names."""
    leaves = list(_tensors(args))
    names = list(specs)
    if not isinstance(kwargs, Mapping):
        raise ValueError("the call's keyword arguments are no dict")
    named = {name: value for name, value in kwargs.items() if _is_tensor(value)}
    if len(leaves) + len(named) != len(names) or any(name not in names[len(leaves) :] for name in named):
        raise ValueError(f"{len(leaves)} tensors in order and {sorted(named)} by name for the inputs {names}")
    return {**dict(zip(names, leaves, strict=False)), **named}


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors in nested tuples, lists and dicts, in order."""
    left, seen = [value], 0
    while left:
        seen += 1
        if seen > MAX_LEAVES:
            raise ValueError(f"more than {MAX_LEAVES} parts of a call")
        at = left.pop()
        if _is_tensor(at):
            yield at
        elif isinstance(at, tuple | list):
            left += reversed(at)
        elif isinstance(at, Mapping):
            left += reversed(list(at.values()))
        elif at is not None and not isinstance(at, bool | int | float | str):
            raise ValueError(f"{type(at).__name__} among the arguments")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, SavedTensor) or hasattr(value, "detach")


def _fitting(specs: Mapping[str, TensorSpec], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays in the order of inputs, all of which they must fit. ValueError."""
    for name, spec in specs.items():
        array = arrays[name]
        fits = len(array.shape) == len(spec.shape) and array.dtype == spec.dtype
        if not fits or not all(map(_takes, spec.shape, array.shape)):
            raise ValueError(f"{array.dtype}{list(array.shape)} for the input {spec}")
    return {name: arrays[name] for name in specs}


def _takes(dim: int | Dim | None, size: int) -> bool:
    if isinstance(dim, Dim):
        return dim.min <= size and (dim.max is None or size <= dim.max) and size % dim.multiple_of == 0
    return dim is None or dim == size


def _arrays(saved: SavedObject, tensors: Mapping[str, SavedTensor]) -> dict[str, Array]:
    """Of tensors of a file, with memory of their own. ValueError: one reaches beyond its storage, or they are large."""
    arrays: dict[str, Array] = {}
    made = 0
    for name, tensor in tensors.items():
        dtype = _dtype(tensor.storage.dtype)
        stored = np.frombuffer(saved.storage(tensor.storage), dtype)
        sizes, strides, elements = tensor.sizes, tensor.strides, math.prod(tensor.sizes)
        last = tensor.offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        made += elements * dtype.itemsize
        if (elements and last >= stored.size) or made > MAX_BYTES:
            raise ValueError(f"a tensor of {list(sizes)} in a storage of {stored.size} elements")
        if not elements:
            arrays[name] = np.empty(sizes, dtype)
            continue
        steps = [stride * dtype.itemsize for stride in strides]
        view = np.lib.stride_tricks.as_strided(stored[tensor.offset :], sizes, steps, writeable=False)
        arrays[name] = view.copy()
    return arrays


def _dtype(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


__all__ = ["file_example", "is_placeholder", "program_example"]
