"""TorchScript modules as source models, run by torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pinnace import _core
from pinnace.arrays import as_tensor, to_numpy
from pinnace.sources.base import Source, source_errors
from pinnace.sources.torch_module import module_twin
from pinnace.sources.torch_tensors import output_tensors, quantized_as
from pinnace.sources.vector_signs import SignedSource
from pinnace.torch.isolation import isolated_inference
from pinnace.types import Array

if TYPE_CHECKING:
    import torch

    from pinnace.torch.script_quantized import QuantizedScript


class ScriptSource:
    """A ScriptModule as what a conversion is held against. Quantised tensors go in and out as stored integers."""

    def __init__(
        self, script: torch.jit.ScriptModule, examples: Sequence[torch.Tensor], nodes: QuantizedScript | None = None
    ) -> None:
        """`examples` say which inputs are quantised, and how; `nodes` runs it node by node, if it is quantised."""
        import torch

        from pinnace.torch.script_quantized import input_step  # imports torch

        twin = module_twin(script)
        self._script = script if twin is None else twin
        self._shared = script if twin is None else None  # what a run must leave as it was
        self._examples = list(examples)
        self._nodes = nodes
        step = input_step(script)
        self.steps = [1.0 if t.is_quantized else step for t in self._examples]
        self.description = f"torch {torch.__version__} (TorchScript)"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order: tensors, and ints as int64 scalars."""
        arguments = quantized_as(self._examples, inputs)
        with source_errors(self.description), isolated_inference(self._shared):
            return [to_numpy(t) for t in output_tensors(self._script(*arguments))]

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """As in Source. Unsupported: the module is not quantised, so that nothing is known of its nodes."""
        if self._nodes is None:
            raise _core.Unsupported("a float TorchScript module has no inner values")
        arguments = quantized_as(self._examples, inputs)
        with source_errors(self.description), isolated_inference(self._shared):
            made, own = self._nodes.run_on(arguments, {name: as_tensor(value) for name, value in given.items()})
            return [to_numpy(t) for t in output_tensors(made)], {name: to_numpy(t) for name, t in own.items()}

    def signed(self) -> Source:
        """The module with signs of vectors as the operators have them."""
        return SignedSource(self)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """None: what is inside a ScriptModule has no names that a conversion keeps."""
        return {}


__all__ = ["ScriptSource"]
