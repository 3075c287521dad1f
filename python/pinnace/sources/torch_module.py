"""Live PyTorch modules as what a conversion is held against: the module itself, not what torch.export made of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.agreement import agreement
from pinnace.arrays import to_numpy
from pinnace.sources.base import Source, Steps, source_errors
from pinnace.sources.kept_attributes import KeptAttribute, attribute_values, kept_attributes, with_buffers
from pinnace.sources.torch_float64 import DoubleModule
from pinnace.sources.torch_program import TorchSource
from pinnace.sources.torch_tensors import output_tensors
from pinnace.sources.vector_signs import SignedSource
from pinnace.torch.assumed_sizes import sizes_assumed_away
from pinnace.torch.export import export_module
from pinnace.torch.isolation import is_inference, isolated_inference, set_eval
from pinnace.torch.module_names import value_names
from pinnace.types import Array, TensorSpec

if TYPE_CHECKING:
    import torch


def module_twin(module: torch.nn.Module) -> torch.nn.Module | None:
    """The module in eval mode as it is now, with state of its own and shared parameters.

    None: it has parts that cannot be copied.
    """
    shared = {id(p): p for p in module.parameters() if not is_inference(p)}  # those are copied, to become usual ones
    try:
        with isolated_inference():
            twin = copy.deepcopy(module, shared)
            set_eval(twin)
            return twin
    except Exception:  # what a class of the user's raises when it is copied
        return None


def live_source(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    notes: list[str] | None = None,
) -> LiveSource | TorchSource:
    """The module, exported for that call; its exported program in place of a module that cannot be copied.

    State that its forward() keeps in plain attributes is in buffers of the exported program. notes: as export_module()
    has them. ConversionError: torch cannot export the module, or it keeps state that no session could.
    """
    twin = module_twin(module)  # before torch.export runs it, which may change what it counts
    exported = TorchSource(export_module(module, args, kwargs, dynamic_shapes, notes))
    if twin is None:
        return exported
    live = LiveSource(twin, exported)
    kept = kept_attributes(module, live.copy, args, kwargs)

    def anew(args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.export.ExportedProgram:
        module = with_buffers(live.copy(), kept) if kept else live.copy()
        return export_module(module, args, kwargs, dynamic_shapes)

    # Without dynamic shapes the program has the sizes of the example, perhaps as numbers in its nodes.
    export = None if dynamic_shapes else anew
    if not kept:
        return LiveSource(twin, exported, export=export)
    try:
        program = anew(args, kwargs)
    except _core.ConversionError as error:
        names = ", ".join(repr(attribute.full_name) for attribute in kept)
        raise _core.ConversionError(
            f"{type(module).__name__} keeps state between calls in {names}, which was made a buffer to be exported: "
            f"{error}"
        ) from error
    return LiveSource(twin, TorchSource(program), kept, export)


class LiveSource:
    """A module that is called as its user calls it, several times in a row."""

    def __init__(
        self,
        module: torch.nn.Module,
        exported: TorchSource,
        kept: Sequence[KeptAttribute] = (),
        export: Callable[[Sequence[Any], Mapping[str, Any]], torch.export.ExportedProgram] | None = None,
    ) -> None:
        """module: what module_twin() gave. exported: its exported program, which knows how a call is made of arrays and
        names inner values. kept: attributes of the module that are buffers there. export: exports the module for a call
        of other sizes, where the program has those of one example."""
        self._module = module
        self._kept = kept
        self._writes: bool | None = None  # into parameters; found out when it is first run
        self.exported = exported
        self.description = exported.description
        self._export = export
        self._by_shapes: dict[tuple[tuple[int, ...], ...], TorchSource] = {}

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs of one call."""
        return self.run_steps([inputs]).outputs[0]

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As base.steps_of(), on a copy. States are buffers, and attributes that are kept, by their names."""

        with source_errors(self.description), isolated_inference():
            module = self.copy()
            outputs = []
            for inputs in steps:
                args, kwargs = self.exported.arguments(inputs)
                outputs.append([to_numpy(t).copy() for t in output_tensors(module(*args, **kwargs))])
            states = {**dict(module.named_buffers()), **attribute_values(module, self._kept)}
            return Steps(outputs, {name: to_numpy(t).copy() for name, t in states.items()})

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values, of the exported program: a module's own have no names that a conversion keeps."""
        return self._exported_for(inputs).layers(inputs, names)

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """As in Source, of the exported program. Unsupported: that is not what the module computes."""
        if changed := self.exporter_changes([inputs], 0):
            raise _core.Unsupported(changed)
        return self._exported_for(inputs).with_values(inputs, given)

    def _layers_within(
        self, inputs: Sequence[Array], names: set[str], computing: AbstractContextManager[Any]
    ) -> dict[str, Array]:
        return self._exported_for(inputs).layers_within(inputs, names, computing)

    def _exported_for(self, inputs: Sequence[Array]) -> TorchSource:
        """The exported program for inputs of these shapes: exported anew where it has those of one example."""
        shapes, own = tuple(tuple(x.shape) for x in inputs), self.exported.input_shapes()
        if self._export is None or own is None or shapes == own:
            return self.exported
        if shapes not in self._by_shapes:
            args, kwargs = self.exported.arguments(inputs)
            self._by_shapes[shapes] = TorchSource(self._export(args, kwargs))
        return self._by_shapes[shapes]

    def float64(self) -> Source | None:
        """The module in double precision; inner values, as layers(), of the exported program."""
        return DoubleModule(lambda: copy.deepcopy(self._module), self.exported.arguments, self._layers_within)

    def signed(self) -> Source:
        """The module with signs of vectors as the operators have them."""
        return SignedSource(self)

    def sizes_assumed_away(
        self, specs: Sequence[TensorSpec], example: Mapping[str, int]
    ) -> Iterator[tuple[str, dict[str, int]]]:
        """As torch.assumed_sizes has them, of the exported program."""
        return sizes_assumed_away(self.exported.program, specs, example)

    def exporter_changes(self, steps: Sequence[Sequence[Array]], call: int) -> str:
        """One phrase where the exported program differs from the module in that call; empty where it does not.

        It names the first submodule whose result differs, of those that are called once.
        """
        live = self.run_steps(steps).outputs[call]
        try:
            made = self.exported.run_steps(steps).outputs[call]
        except _core.Error as error:
            return f"the program that torch.export made of the module does not run on what the module does: {error}"
        if len(live) == len(made) and all(agreement(b, a).ok for a, b in zip(live, made, strict=True)):
            return ""
        said = f"torch.export changed the model: the program that it made differs from the module{self._where(steps)}"
        return f"{said}; load() an ExportedProgram to convert what torch.export made of it"

    def _where(self, steps: Sequence[Sequence[Array]]) -> str:
        import torch

        seen: dict[str, list[Any]] = {}
        module = self.copy()
        for name, part in module.named_modules():
            if name:
                part.register_forward_hook(
                    lambda _module, _inputs, output, name=name: seen.setdefault(name, []).append(output)
                )
        with source_errors(self.description), isolated_inference():
            args, kwargs = self.exported.arguments(steps[0])
            module(*args, **kwargs)
        last = _last_values(self.exported.program)
        values = self.exported.layers(steps[0], set(last.values()))
        for name, outputs in seen.items():
            value, output = values.get(last.get(name, "")), outputs[0]
            if value is None or len(outputs) != 1 or not isinstance(output, torch.Tensor) or output.is_nested:
                continue
            own = to_numpy(output)
            if own.shape == value.shape and not agreement(value, own).ok:
                return f", first in {type(module.get_submodule(name)).__name__} '{name}'"
        return ""

    def copy(self) -> Any:
        """The module with state of its own. Weights stay where they are, unless its code writes into them."""
        if self._writes is None:
            self._writes = _writes_into_parameters(self.exported.program)
        with isolated_inference():
            return copy.deepcopy(self._module, {} if self._writes else _same_memory(self._module))


def _same_memory(module: torch.nn.Module) -> dict[int, Any]:
    """For deepcopy: parameters with flags of their own and the memory of the module's."""
    import torch

    kind = torch.nn.Parameter
    return {id(p): kind(p.detach(), p.requires_grad) for p in module.parameters() if type(p) is kind}


def _writes_into_parameters(program: Any) -> bool:
    """Whether an in-place operator writes into one, perhaps through a view."""
    specs = program.graph_signature.input_specs
    names = {spec.arg.name for spec in specs if spec.kind.name == "PARAMETER"}
    parameters = {node for node in program.graph.nodes if node.op == "placeholder" and node.name in names}

    def aliased(node: Any, written: bool) -> list[Any]:
        """The tensors among a node's arguments that it writes into, or that its results share memory with."""
        schema = getattr(node.target, "_schema", None)
        named = zip(schema.arguments, node.args, strict=False) if schema is not None else ()
        marked = [(a.alias_info, value) for a, value in named if a.alias_info is not None]
        return [v for info, v in marked if hasattr(v, "op") and (info.is_write or not written)]

    for node in program.graph.nodes:
        left = aliased(node, written=True)
        while left:
            value = left.pop()
            if value in parameters:
                return True
            left.extend(aliased(value, written=False))
    return False


def _last_values(program: Any) -> dict[str, str]:
    """Per submodule path: the exported graph's last value that it computed, as the importer calls it."""
    names = value_names(program)
    last: dict[str, str] = {}
    for node in program.graph.nodes:
        for path, _ in (node.meta.get("nn_module_stack") or {}).values():
            name = str(path).removeprefix("L['self'].").removeprefix("L['self']")
            if name:
                last[name] = names.get(node.name, node.name)
    return last


__all__ = ["LiveSource", "live_source", "module_twin"]
