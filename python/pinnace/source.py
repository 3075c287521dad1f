"""Source models that can be run: what a conversion is held against. One class per kind of source."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pinnace import _core
from pinnace.session import as_array, as_tensor, input_array
from pinnace.torch_archive import archive_kind, load_archive
from pinnace.types import Array
from pinnace.zip_file import is_zip

if TYPE_CHECKING:
    import torch


class Source(Protocol):
    """Runs the source model. Inputs and outputs are in the order of the imported model's.

    A source may have more:
    steps     per input what one step of its quantisation is, 0 for none, where it computes on integers in arithmetic of
              its own. Results may differ by what such a step does to them.
    run_steps several calls in a row, with what they leave behind: see steps_of().
    float64   the same model in double precision: see arbiter_of().
    rounded   of such a one: the model with the errors of a reference_runs.Rounding at every operator that rounds.
    with_values  with inner values given by name in place of its own: outputs, and per name what it would have computed.
    """

    @property
    def description(self) -> str:
        """What runs it: "torch 2.13"."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order, flattened as the importer flattens them."""

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by the names that the importer keeps, as far as the source can give them."""


@dataclass(frozen=True)
class Steps:
    """Calls in a row of one model: outputs per call, and its states after the last by name, as far as it has them."""

    outputs: list[list[Array]]
    states: dict[str, Array] = field(default_factory=dict)


def steps_of(source: Source, steps: Sequence[Sequence[Array]]) -> Steps:
    """Runs a source on one list of inputs after the other, from its initial state on."""
    run: Callable[[Sequence[Sequence[Array]]], Steps] | None = getattr(source, "run_steps", None)
    return run(steps) if run else Steps([source.run(inputs) for inputs in steps])


def arbiter_of(source: Source) -> Source | None:
    """What computes the source's model in float64, by other code than ours; None where nothing can."""
    make: Callable[[], Source | None] | None = getattr(source, "float64", None)
    return make() if make else None


# ------------------------------------------------------------------------------------------------------------- PyTorch


class TorchSource:
    """An ExportedProgram, run by torch in eval mode without gradients."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        """Keeps the program; runs work on a copy, made anew after one that wrote into it."""
        import torch

        self.program = program
        self.description = f"torch {torch.__version__}"
        self._module: Any = None
        self._untouched: list[int] = []

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order: tensors, and ints as int64 scalars."""
        return self.run_steps([inputs]).outputs[0]

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As steps_of(). States are buffers, by their names in the module."""
        import torch

        with _named(self.description), torch.no_grad():
            if self._module is None or _versions(self._module) != self._untouched:
                self._module = _copied(self.program).module()
                self._untouched = _versions(self._module)
            outputs = []
            for inputs in steps:
                args, kwargs = self.arguments(inputs)
                outputs.append([_to_numpy(t).copy() for t in _tensors(self._module(*args, **kwargs))])
            return Steps(outputs, {name: _to_numpy(t).copy() for name, t in self._module.named_buffers()})

    def float64(self) -> Source | None:
        """The program in double precision."""
        from pinnace.float64_torch import DoubleModule

        return DoubleModule(lambda: _copied(self.program).module(), self.arguments, self.layers)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Values of the exported graph's nodes by name."""
        return self._interpreted(inputs, names, {})[1]

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """As in Source."""
        return self._interpreted(inputs, set(given), given)

    def _interpreted(
        self, inputs: Sequence[Array], names: set[str], given: Mapping[str, Array]
    ) -> tuple[list[Array], dict[str, Array]]:
        """User outputs and the named nodes' values, node by node; `given` ones take the place of what was computed."""
        import torch
        from torch.utils import _pytree

        found: dict[str, Array] = {}

        class Recorder(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                result = super().run_node(n)
                if n.name in names and isinstance(result, torch.Tensor):
                    found[n.name] = _to_numpy(result).copy()  # later nodes may write into it
                    if n.name in given and given[n.name].shape == result.shape:
                        return as_tensor(given[n.name]).to(result.dtype)
                return result

        with _named(self.description), torch.no_grad():
            program = _copied(self.program)
            args, kwargs = self.arguments(inputs)
            flat = [t.clone() if isinstance(t, torch.Tensor) else t for t in _pytree.tree_flatten((args, kwargs))[0]]
            lifted = []
            state = {**program.state_dict, **program.constants}
            user = iter(flat)
            for spec in program.graph_signature.input_specs:
                lifted.append(next(user) if spec.kind.name == "USER_INPUT" else state[spec.target or ""])
            made = Recorder(program.graph_module).run(*lifted)
            specs = program.graph_signature.output_specs
            users = [o for o, spec in zip(made, specs, strict=True) if spec.kind.name == "USER_OUTPUT"]
            return [_to_numpy(t) for t in _tensors(users)], found

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


@contextlib.contextmanager
def _named(description: str) -> Iterator[None]:
    """Turns what another package raises when it runs a source, for which there is no list, into InvalidArgument, but
    for MemoryError, which is OutOfMemory.
    """
    try:
        yield
    except _core.Error:
        raise
    except MemoryError as error:
        raise _core.OutOfMemory(f"running the source: {description}") from error
    except Exception as error:
        text = f"{type(error).__name__}: {error}".strip()
        raise _core.InvalidArgument(f"the source cannot be run on these inputs: {description}: {text}") from error


def _versions(module: Any) -> list[int]:
    """How often each tensor of a module was written into."""
    import torch

    own = [t for m in module.modules() for t in vars(m).values() if isinstance(t, torch.Tensor)]
    return [t._version for t in (*module.parameters(), *module.buffers(), *own)]


def _copied(program: Any) -> Any:
    """A deep copy. What torch warns of while it copies its own classes is nothing that a user could change."""
    import copy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return copy.deepcopy(program)


def _tensors(output: Any) -> Iterator[Any]:
    """What the importer makes outputs of: tensors, and ints as int64 scalars. Bools, floats and text are left out."""
    import torch
    from torch.utils import _pytree

    for leaf in _pytree.tree_flatten(output)[0]:
        if hasattr(leaf, "detach"):
            yield leaf
        elif isinstance(leaf, int) and not isinstance(leaf, bool):
            yield torch.tensor(leaf, dtype=torch.int64)


def _to_numpy(tensor: Any) -> Array:
    return np.asarray(as_array(tensor.detach().contiguous()))


def open_torch_archive(path: str, model_name: str = "") -> TorchSource:
    """The program of a .pt2 file, as torch_archive hands it to torch: nothing in the file runs. Raises as it does."""
    return TorchSource(load_archive(path, model_name))


class ProgramSource:
    """A converted program as the reference of another."""

    def __init__(self, program: Any) -> None:
        """`program`: a Program or the path of a .pnc file."""
        from pinnace.session import Session

        self._session = Session(program, target="cpu")
        self.description = "pinnace on cpu"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order."""
        return list(self._session.run(dict(zip(self._session.inputs, inputs, strict=True))).values())

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As steps_of(). States are those of the session."""
        self._session.reset_state()
        outputs = [self.run(inputs) for inputs in steps]
        return Steps(outputs, {name: self._session.state[name] for name in self._session.state})

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Values by name, from a session that keeps them."""
        from pinnace.session import Session

        made = [o for n in self._session.program.nodes if not n.path for o in n.outputs if o in names]
        session = Session(self._session.program, target="cpu", keep=made)
        # Not by name: an inner value may be called what an output is called.
        results = session._core.run(session._bind(dict(zip(session.inputs, inputs, strict=True))))
        return dict(zip(made, results[len(self._session.program.outputs) :], strict=True))


def _call_of(module: Any, example: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by their names where forward() has these, else in their order."""
    import inspect

    try:
        inspect.signature(module.forward).bind(**example)
    except TypeError:
        return tuple(example.values()), {}
    return (), dict(example)


def source_of(reference: Any, inputs: Mapping[str, Any]) -> Source:
    """The runnable form of whatever a user calls the reference: nn.Module, ExportedProgram, path or Program."""
    from pinnace.program import Program
    from pinnace.torch_export import export_module, is_exported, is_module

    if isinstance(reference, Program):
        return ProgramSource(reference)
    if is_exported(reference):
        return TorchSource(reference)
    if is_module(reference):
        from pinnace.torch_live import LiveSource, module_twin

        example = {name: as_tensor(input_array(f"input {name!r}", value)) for name, value in inputs.items()}
        twin = module_twin(reference)
        args, kwargs = _call_of(reference, example)
        exported = TorchSource(export_module(reference, args, kwargs, None))
        return exported if twin is None else LiveSource(twin, exported)
    path = str(reference)
    if path.endswith(".pnc"):
        return ProgramSource(path)
    kind = archive_kind(path)
    if kind == "script":
        raise _core.Unsupported(f"{path}: TorchScript is compared when load() builds it, with its example_inputs")
    if kind or is_zip(path):
        return open_torch_archive(path)
    from pinnace.onnx_source import OnnxSource

    return OnnxSource(path)


__all__ = ["ProgramSource", "Source", "TorchSource", "open_torch_archive", "source_of"]
