"""Module.to() and its like called in forward() on a module that is so already: torch.export cannot exchange parameters,
and fails. Within conversions_to_the_same() such a call does nothing, as it changes nothing outside.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def conversions_to_the_same() -> Iterator[None]:
    """For a block that exports: methods of nn.Module, which are the process's, are replaced. To be entered within
    isolated_inference(), of which one block runs at a time."""
    import torch

    wanted: dict[str, Callable[..., tuple[Any, Any, bool]]] = {
        "to": _asked,
        "float": lambda: (None, torch.float32, True),
        "double": lambda: (None, torch.float64, True),
        "half": lambda: (None, torch.float16, True),
        "bfloat16": lambda: (None, torch.bfloat16, True),
        "cpu": lambda: (torch.device("cpu"), None, True),
    }
    kind: Any = torch.nn.Module
    original = {name: getattr(kind, name) for name in wanted}
    try:
        for name, asked in wanted.items():
            setattr(kind, name, _converted(original[name], asked))
        yield
    finally:
        for name, method in original.items():
            setattr(kind, name, method)


def _asked(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
    """The device and element type that Module.to() is asked for, and whether that is all it is asked for."""
    import torch

    parse: Any = torch._C._nn._parse_to
    device, dtype, _, memory_format = parse(*args, **kwargs)
    return device, dtype, memory_format is None


def _converted(convert: Callable[..., Any], asked: Callable[..., tuple[Any, Any, bool]]) -> Callable[..., Any]:
    def converted(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        try:
            device, dtype, alone = asked(*args, **kwargs)
        except (TypeError, RuntimeError):  # torch's own words for arguments that it does not take
            return convert(self, *args, **kwargs)
        tensors = [*self.parameters(), *self.buffers()]
        if alone and all(_is_so(tensor, device, dtype) for tensor in tensors):
            return self
        return convert(self, *args, **kwargs)

    return converted


def _is_so(tensor: torch.Tensor, device: Any, dtype: Any) -> bool:
    """Integers keep their type in a module's conversion."""
    floats = tensor.is_floating_point() or tensor.is_complex()
    return (device is None or tensor.device == device) and (dtype is None or not floats or tensor.dtype == dtype)
