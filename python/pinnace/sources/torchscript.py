"""TorchScript modules as source models, run by torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pinnace.arrays import to_numpy
from pinnace.sources.base import Source, source_errors
from pinnace.sources.torch_module import module_twin
from pinnace.sources.torch_tensors import output_tensors, quantized_as
from pinnace.sources.vector_signs import SignedSource
from pinnace.torch.isolation import isolated_inference
from pinnace.types import Array

if TYPE_CHECKING:
    import torch


class ScriptSource:
    """A ScriptModule as what a conversion is held against. Quantised tensors go in and out as stored integers."""

    def __init__(self, script: torch.jit.ScriptModule, examples: Sequence[torch.Tensor]) -> None:
        """`examples` say which inputs are quantised, and how."""
        import torch

        from pinnace.torch.script_quantized import input_step  # imports torch

        twin = module_twin(script)
        self._script = script if twin is None else twin
        self._shared = script if twin is None else None  # what a run must leave as it was
        self._examples = list(examples)
        step = input_step(script)
        self.steps = [1.0 if t.is_quantized else step for t in self._examples]
        self.description = f"torch {torch.__version__} (TorchScript)"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order: tensors, and ints as int64 scalars."""
        arguments = quantized_as(self._examples, inputs)
        with source_errors(self.description), isolated_inference(self._shared):
            return [to_numpy(t) for t in output_tensors(self._script(*arguments))]

    def signed(self) -> Source:
        """The module with signs of vectors as the operators have them."""
        return SignedSource(self)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """None: what is inside a ScriptModule has no names that a conversion keeps."""
        return {}


__all__ = ["ScriptSource"]
