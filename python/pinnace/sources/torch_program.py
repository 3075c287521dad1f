"""Exported PyTorch programs as source models, run by torch."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pinnace.arrays import as_tensor, to_numpy
from pinnace.sources.base import Source, Steps, source_errors
from pinnace.sources.torch_float64 import DoubleModule
from pinnace.sources.torch_tensors import output_tensors, version
from pinnace.sources.vector_signs import SignedSource
from pinnace.torch.archive import load_archive
from pinnace.torch.exported_inputs import input_tensors
from pinnace.torch.isolation import isolated_inference
from pinnace.torch.module_names import value_names
from pinnace.types import Array

if TYPE_CHECKING:
    import torch


class TorchSource:
    """An ExportedProgram, run by torch in eval mode without gradients."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        """Keeps the program; runs work on a copy, made anew after one that wrote into it."""
        import torch

        self.program = program
        self.description = f"torch {torch.__version__}"
        self._module: Any = None
        self._untouched: list[Any] = []

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order: tensors, and ints as int64 scalars."""
        return self.run_steps([inputs]).outputs[0]

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As steps_of(). States are buffers, by their names in the module."""
        with source_errors(self.description), isolated_inference():
            if self._module is None or _versions(self._module) != self._untouched:
                self._module = _copied(self.program).module()
                self._untouched = _versions(self._module)
            outputs = []
            for inputs in steps:
                args, kwargs = self.arguments(inputs)
                outputs.append([to_numpy(t).copy() for t in output_tensors(self._module(*args, **kwargs))])
            return Steps(outputs, {name: to_numpy(t).copy() for name, t in self._module.named_buffers()})

    def float64(self) -> Source | None:
        """The program in double precision."""
        return DoubleModule(lambda: _copied(self.program).module(), self.arguments, self.layers_within)

    def signed(self) -> Source:
        """The program with signs of vectors as the operators have them."""
        return SignedSource(self)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Values of the exported graph's nodes, by the importer's names for them or by torch's."""
        return self._interpreted(inputs, names, {})[1]

    def layers_within(
        self, inputs: Sequence[Array], names: set[str], computing: AbstractContextManager[Any]
    ) -> dict[str, Array]:
        """The same, computed within a mode of torch's; copies are made before, which modes get in the way of."""
        return self._interpreted(inputs, names, {}, computing)[1]

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """As in Source."""
        return self._interpreted(inputs, set(given), given)

    def _interpreted(
        self,
        inputs: Sequence[Array],
        names: set[str],
        given: Mapping[str, Array],
        computing: AbstractContextManager[Any] | None = None,
    ) -> tuple[list[Array], dict[str, Array]]:
        """User outputs and the named nodes' values, node by node; `given` ones take the place of what was computed."""
        import torch
        from torch.utils import _pytree

        found: dict[str, Array] = {}
        wanted = self._wanted(names)

        class Recorder(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                result = super().run_node(n)
                name = wanted.get(n.name)
                if name is not None and isinstance(result, torch.Tensor):
                    found[name] = to_numpy(result).copy()  # later nodes may write into it
                    if name in given and given[name].shape == result.shape:
                        return as_tensor(given[name]).to(result.dtype)
                return result

        with source_errors(self.description), isolated_inference():
            program = _copied(self.program)
            args, kwargs = self.arguments(inputs)
            flat = [t.clone() if isinstance(t, torch.Tensor) else t for t in _pytree.tree_flatten((args, kwargs))[0]]
            lifted = []
            state = {**program.state_dict, **program.constants}
            user = iter(flat)
            for spec in program.graph_signature.input_specs:
                lifted.append(next(user) if spec.kind.name == "USER_INPUT" else state[spec.target or ""])
            if widen := getattr(computing, "widen", None):
                lifted = [widen(value) for value in lifted]
            with computing or contextlib.nullcontext():
                made = Recorder(program.graph_module).run(*lifted)
            specs = program.graph_signature.output_specs
            users = [o for o, spec in zip(made, specs, strict=True) if spec.kind.name == "USER_OUTPUT"]
            return [to_numpy(t) for t in output_tensors(users)], found

    def _wanted(self, names: set[str]) -> dict[str, str]:
        """By node of the graph the name under which its value is asked for. Files of older versions have torch's names,
        which count where the importer calls nothing so."""
        known = value_names(self.program)
        wanted = {node: name for node, name in known.items() if name in names}
        for name in names - set(wanted.values()):
            wanted.setdefault(name, name)
        return wanted

    def arguments(self, inputs: Sequence[Array]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call's args and kwargs: user tensors from `inputs`, the rest as exported."""
        from torch.utils import _pytree

        tensors = iter(inputs)
        flat: list[Any] = []
        for spec in self.program.graph_signature.input_specs:
            if spec.kind.name != "USER_INPUT":
                continue
            if hasattr(spec.arg, "value"):  # a constant of the call
                flat.append(spec.arg.value)
            else:
                flat.append(as_tensor(next(tensors)))
        in_spec = self.program.call_spec.in_spec
        if in_spec is None:
            return tuple(flat), {}
        args, kwargs = _pytree.tree_unflatten(flat, in_spec)
        return args, kwargs

    def input_shapes(self) -> tuple[tuple[int, ...], ...] | None:
        """Shapes of the tensors among the call's inputs, in order; None: a size is dynamic."""
        shapes = []
        for tensor in input_tensors(self.program):
            shape = getattr(tensor, "shape", None)
            if shape is None or not all(isinstance(size, int) for size in shape):
                return None
            shapes.append(tuple(shape))
        return tuple(shapes)


def _versions(module: Any) -> list[Any]:
    """How often each tensor of a module was written into."""
    import torch

    own = [t for m in module.modules() for t in vars(m).values() if isinstance(t, torch.Tensor)]
    return [version(t) for t in (*module.parameters(), *module.buffers(), *own)]


def _copied(program: Any) -> Any:
    """A deep copy. What torch warns of while it copies its own classes is nothing that a user could change."""
    import copy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return copy.deepcopy(program)


def open_torch_archive(path: str, model_name: str = "") -> TorchSource:
    """The program of a .pt2 file, as torch_archive hands it to torch: nothing in the file runs. Raises as it does."""
    return TorchSource(load_archive(path, model_name))


__all__ = ["TorchSource", "open_torch_archive"]
