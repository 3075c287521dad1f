"""TorchScript modules as source models, run by torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.arrays import as_tensor, to_numpy
from pinnace.sources.base import Source, Steps, source_errors, steps_of
from pinnace.sources.kept_attributes import KeptAttribute
from pinnace.sources.torch_module import LiveSource, module_twin
from pinnace.sources.torch_program import TorchSource
from pinnace.sources.torch_tensors import output_tensors, quantized_as
from pinnace.sources.vector_signs import SignedSource
from pinnace.torch.isolation import isolated_inference
from pinnace.types import Array

if TYPE_CHECKING:
    import torch

    from pinnace.torchscript.quantized import QuantizedScript

MOST_STATES = 5  # exports of a script, each with more attributes as states


class ScriptSource(LiveSource):
    """A ScriptModule, held against the program that was exported from its graphs."""

    bounded: Callable[[], Any] | None = None  # an interpreter of the script, where data decide how long it runs

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As base.steps_of(). Unsupported: on these inputs its loops run longer than an interpreter follows, and torch,
        which cannot be stopped, is not asked."""
        self._check_ends(steps)
        return super().run_steps(steps)

    def check_ends(self, inputs: Sequence[Array]) -> None:
        """As in Source."""
        self._check_ends([inputs])

    def _check_ends(self, steps: Sequence[Sequence[Array]]) -> None:
        if self.bounded is None:
            return
        with source_errors(self.description), isolated_inference():
            run = self.bounded()
            for inputs in steps:
                args, kwargs = self.exported.arguments(inputs)
                run(*args, **kwargs)
                run.start = run.after

    def float64(self) -> Source | None:
        """The exported program in double precision, where it computes what the script does: nothing widens a script's
        own types."""
        made = self.exported.float64()
        return None if made is None else _DoubleScript(self, made)

    def _where(self, steps: Sequence[Sequence[Array]]) -> str:
        """Nowhere: a script's submodules tell nobody what they return."""
        del steps
        return ""


class _DoubleScript:
    """The program of a script in double precision, for calls in which its results are the script's."""

    def __init__(self, script: ScriptSource, double: Source) -> None:
        self._script, self._double = script, double
        self.description = double.description

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """As in Source."""
        return self.run_steps([inputs]).outputs[0]

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As base.steps_of(). ConversionError: the program computes something else."""
        for call in range(len(steps)):
            if changes := self._script.exporter_changes(steps, call):
                raise _core.ConversionError(changes)
        return steps_of(self._double, steps)

    def __getattr__(self, name: str) -> Any:
        """What the program in double precision has beyond these."""
        return getattr(self._double, name)


def script_source(
    script: torch.jit.ScriptModule,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    notes: list[str] | None = None,
) -> ScriptSource:
    """The module, exported for that call. notes: as export_module() has them.

    ConversionError: its graphs hold what no program can have; Unsupported: they run without end.
    """
    from pinnace.sources.script_state import script_state, with_unsettled  # imports torch
    from pinnace.torchscript.script import export_interpreted, interpreted

    def fresh() -> Any:
        with isolated_inference():
            return _sharing_memory(script, copy.deepcopy(script))

    state = script_state(lambda: interpreted(fresh()), args, kwargs)

    def export(args: Sequence[Any], kwargs: Mapping[str, Any], said: list[str] | None) -> TorchSource:
        nonlocal state
        for _ in range(MOST_STATES):
            own: list[str] = []
            program, found = export_interpreted(fresh(), state, args, kwargs, dynamic_shapes, own)
            wider = with_unsettled(lambda: interpreted(fresh()), state, found)
            if wider == state:
                if said is not None:
                    said += own
                return TorchSource(program)
            state = wider
        raise _core.ConversionError(f"attributes that forward() changes do not settle: {sorted(found)}")

    exported = export(args, kwargs, notes)
    twin = module_twin(script)
    kept = [
        KeptAttribute(path, name, value, (path, name) in state.numbers) for (path, name), value in state.kept.items()
    ]
    again: Callable[..., Any] | None = None if dynamic_shapes else lambda a, k: export(a, k, None).program
    made = ScriptSource(script if twin is None else twin, exported, kept, again)
    if any(str(n.target) == "while_loop" for part in _graphs(exported.program) for n in part.nodes):
        made.bounded = lambda: interpreted(fresh())
    return made


def _sharing_memory(script: torch.jit.ScriptModule, made: torch.jit.ScriptModule) -> torch.jit.ScriptModule:
    """The copy, with tensors that are parts of the same memory where the script's are: copying makes them tensors of
    their own."""
    import torch

    own, copied = dict(_tensors(script)), dict(_tensors(made))
    memory: dict[int, Any] = {}
    for name, tensor in own.items():
        memory.setdefault(tensor.untyped_storage().data_ptr(), []).append(name)
    for names in memory.values():
        first = own[names[0]]
        views = {(own[n].data_ptr(), own[n].shape, own[n].stride()) for n in names}
        if len(views) > 1 and first.numel():
            storage: Any = copy.copy(first.untyped_storage())
            with torch.no_grad():
                for name in names:
                    own_tensor = own[name]
                    copied[name].set_(storage, own_tensor.storage_offset(), own_tensor.size(), own_tensor.stride())
    return made


def _tensors(script: torch.jit.ScriptModule) -> list[tuple[str, torch.Tensor]]:
    import torch

    named = [*script.named_parameters(remove_duplicate=False), *script.named_buffers(remove_duplicate=False)]
    return [(n, t) for n, t in named if t.layout == torch.strided and not t.is_quantized]


def _graphs(program: torch.export.ExportedProgram) -> list[Any]:
    return [part.graph for part in program.graph_module.modules() if hasattr(part, "graph")]


class QuantizedScriptSource:
    """A quantised ScriptModule as what a conversion is held against. Quantised tensors go in and out as integers."""

    def __init__(
        self, script: torch.jit.ScriptModule, examples: Sequence[torch.Tensor], nodes: QuantizedScript | None = None
    ) -> None:
        """`examples` say which inputs are quantised, and how; `nodes` runs it node by node."""
        import torch

        from pinnace.torchscript.quantized import input_step  # imports torch

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
        """As in Source."""
        if self._nodes is None:
            raise _core.Unsupported("nothing is known of the nodes of this TorchScript module")
        arguments = quantized_as(self._examples, inputs)
        with source_errors(self.description), isolated_inference(self._shared):
            made, own = self._nodes.run_on(arguments, {name: as_tensor(value) for name, value in given.items()})
            return [to_numpy(t) for t in output_tensors(made)], {n: to_numpy(t) for n, t in own.items() if n in given}

    def signed(self) -> Source:
        """The module with signs of vectors as the operators have them."""
        return SignedSource(self)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Integers that the script's nodes make, by the names of the operators that make them in the conversion."""
        if self._nodes is None:
            return {}
        arguments = quantized_as(self._examples, inputs)
        with source_errors(self.description), isolated_inference(self._shared):
            _, own = self._nodes.run_on(arguments, {})
            made = {name: to_numpy(value) for name, value in own.items()}
        # What computes on integers has the name of the script's value with a word behind it, and the same integers.
        return {n: made[own_name] for n in names if (own_name := n.removesuffix(".quantized")) in made}


__all__ = ["QuantizedScriptSource", "ScriptSource", "script_source"]
