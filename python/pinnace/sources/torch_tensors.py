"""Between arrays and the tensors of a torch model's calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pinnace.arrays import as_tensor, to_numpy
from pinnace.torch.isolation import is_inference
from pinnace.types import Array

if TYPE_CHECKING:
    import torch


def output_tensors(output: Any) -> Iterator[torch.Tensor]:
    """What the importer makes outputs of: tensors, and ints as int64 scalars. Bools, floats and text are left out."""
    import torch
    from torch.utils import _pytree

    for leaf in _pytree.tree_flatten(output)[0]:
        if hasattr(leaf, "detach"):
            yield leaf
        elif isinstance(leaf, int) and not isinstance(leaf, bool):
            yield torch.tensor(leaf, dtype=torch.int64)


def quantized_as(examples: Sequence[torch.Tensor], inputs: Sequence[Array]) -> list[torch.Tensor]:
    """Tensors of a call, those quantised whose example is: with its scale and zero point, the array holds integers."""
    import torch

    arguments = []
    for value, example in zip(inputs, examples, strict=True):
        tensor = as_tensor(value)
        if example.is_quantized:
            tensor = torch._make_per_tensor_quantized_tensor(tensor, example.q_scale(), example.q_zero_point())
        arguments.append(tensor)
    return arguments


def version(tensor: torch.Tensor) -> Any:
    """What differs after each write into the tensor: torch's count, or the values, where inference mode counts none."""
    return to_numpy(tensor).tobytes() if is_inference(tensor) else tensor._version


__all__ = ["output_tensors", "quantized_as", "version"]
