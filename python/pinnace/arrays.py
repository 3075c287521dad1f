"""Arrays and tensors of a call: numpy, DLPack, torch, and what numpy makes arrays of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace import _core
from pinnace.types import Array, TensorSpec

if TYPE_CHECKING:
    import torch


def as_array(value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """An array that shares memory where it can: numpy as it is, DLPack without a copy, scalars and lists copied.

    dtype  what Python's own numbers, which have no type, become where it holds them; None: what numpy makes of them.
    """
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # a torch tensor that takes part in autograd refuses DLPack
        if hasattr(value, "fake_mode"):  # it would give memory that nobody wrote
            raise ValueError("a FakeTensor has no values")
        value = value.detach().resolve_conj().resolve_neg()  # views that are conjugate or negated where they are read
        if value.is_quantized:  # as the integers that it stores
            value = value.int_repr()
        name = str(value.dtype).removeprefix("torch.")
        if name == "bfloat16" or name.startswith("float8_"):  # not among numpy's own: the bits travel as integers
            import ml_dtypes
            import torch

            return value.view(torch.int16 if name == "bfloat16" else torch.uint8).numpy().view(getattr(ml_dtypes, name))
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    array = np.asarray(value)
    if dtype is None or isinstance(value, np.generic) or not isinstance(value, bool | int | float | list | tuple):
        return array
    return _typed(array, dtype)


_KINDS = "bif"  # each holds the numbers of those before it; bools are none


def _typed(array: Array, dtype: np.dtype[Any]) -> Array:
    """Python's numbers in an element type: whole ones in all of them, others in floats. As they are where the type is
    of another kind, which is then refused. ValueError: one is too large for it."""
    kind, wanted = array.dtype.kind, "f" if "float" in dtype.name else dtype.kind.replace("u", "i")
    if array.dtype == dtype or wanted not in _KINDS or (array.size and kind not in _KINDS.replace("b", "")):
        return array
    if array.size and _KINDS.index(kind) > _KINDS.index(wanted):
        return array
    with np.errstate(over="ignore"):
        made = array.astype(dtype)
    lost = ~np.isfinite(made) & np.isfinite(array) if wanted == "f" else made != array
    if lost.any():
        raise ValueError(f"{array[lost].flat[0]} is too large for {dtype}")
    return made


def as_tensor(value: Any) -> torch.Tensor:
    """A torch tensor with memory of its own, of whatever element type the array has, bfloat16 and float8 too.

    InvalidArgument: torch has no tensors of its type, text for instance.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone().resolve_conj().resolve_neg()
    array = np.array(value)
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    name = str(array.dtype)
    if name == "bfloat16" or name.startswith("float8_"):
        tensor: torch.Tensor = torch.from_numpy(array.view(np.int16 if name == "bfloat16" else np.uint8))
        return tensor.view(getattr(torch, name))
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise _core.InvalidArgument(f"an array of {name} cannot be a tensor: {error}") from error


def input_array(name: str, value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """as_array() of what a user gives. InvalidArgument, beginning with `name`: it is no array, as a ragged list is, or
    has elements that are masked, or numbers that `dtype` does not hold.
    """
    # A masked array, not by the name of its class: numpy imports numpy.ma when that is first named, under a lock that a
    # fork would leave held in the child.
    if isinstance(value, np.ndarray) and np.any(getattr(value, "mask", False)):
        raise _core.InvalidArgument(f"{name} has masked elements; .filled() gives an array with values in their places")
    try:
        return as_array(value, dtype)
    except (ValueError, TypeError, BufferError, RuntimeError) as error:  # what numpy and other libraries raise
        raise _core.InvalidArgument(f"{name} is not an array: {error}") from error


def to_numpy(tensor: torch.Tensor) -> Array:
    """A tensor's values, dense; quantised ones as the integers that they store. Memory is shared where it can be."""
    return np.asarray(as_array(tensor.detach().contiguous()))


def ordered_inputs(specs: Mapping[str, TensorSpec], inputs: Any) -> list[Any]:
    """The arrays of a call in the order of `specs`, its inputs. InvalidArgument: it is no mapping, names are missing or
    unknown, or a value is no array.
    """
    if not isinstance(inputs, dict | Mapping):
        names = ", ".join(map(repr, specs)) or "none"
        raise _core.InvalidArgument(f"inputs: {type(inputs).__name__}, must be arrays by name ({names})")
    if inputs.keys() != specs.keys():
        missing = [name for name in specs if name not in inputs]
        extra = [name for name in inputs if name not in specs]
        if missing or extra:
            parts = [f"missing {', '.join(map(repr, missing))}"] * bool(missing)
            parts += [f"unknown {', '.join(map(repr, extra))}"] * bool(extra)
            takes = ", ".join(str(spec) for spec in specs.values()) or "no inputs"
            raise _core.InvalidArgument(f"inputs: {'; '.join(parts)}; the program takes {takes}")
    # A run of a small network takes as long as some of these calls: plain arrays need none.
    return [
        value if type(value := inputs[name]) is np.ndarray else input_array(f"input {name!r}", value, spec.dtype)
        for name, spec in specs.items()
    ]


__all__ = ["as_array", "as_tensor", "input_array", "ordered_inputs", "to_numpy"]
