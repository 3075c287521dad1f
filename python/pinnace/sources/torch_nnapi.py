"""PyTorch's own NNAPI models as source models: PyTorch's runtime drives the packaged NNAPI library."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pinnace.arrays import to_numpy
from pinnace.nnapi import nnapi_library_path
from pinnace.sources.base import source_errors
from pinnace.sources.torch_tensors import output_tensors, quantized_as
from pinnace.torch.isolation import isolated_inference
from pinnace.types import Array

if TYPE_CHECKING:
    import torch


class NnapiSource:
    """A converted module as the reference: PyTorch's runtime drives the packaged NNAPI library."""

    def __init__(self, script: torch.jit.ScriptModule, examples: Sequence[torch.Tensor]) -> None:
        """`examples` say which inputs are quantised, and how. Unsupported: there is no library."""
        import torch

        self._library = nnapi_library_path()
        self._script = _copied(script)
        self._examples = list(examples)
        self.steps = [1.0 if t.is_quantized else 0.0 for t in self._examples]
        self.description = f"torch {torch.__version__} (NNAPI)"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order; quantised ones as the integers they store."""
        # PyTorch asks the loader for the name, which is found where an object of that name is loaded already.
        ctypes.CDLL(self._library, mode=ctypes.RTLD_GLOBAL)
        arguments = quantized_as(self._examples, inputs)
        with source_errors(self.description), isolated_inference():
            made = self._script(*arguments) if hasattr(self._script, "mod") else self._script(arguments)
        return [to_numpy(t) for t in output_tensors(made)]

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """None: NNAPI shows no inner values."""
        return {}


def _copied(script: Any) -> Any:
    """A copy to run: a module that has run once holds a compilation, with which torch cannot save it any more."""
    import torch

    buffer = io.BytesIO()
    try:
        torch.jit.save(script, buffer)
    except RuntimeError:  # it has run
        return script
    buffer.seek(0)
    jit: Any = torch.jit  # untyped in torch's own stubs
    return jit.load(buffer)


__all__ = ["NnapiSource"]
