"""Source models that can be run: what a conversion is held against. One class per kind of source."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pinnace import _core
from pinnace.files import one_line, open_regular
from pinnace.session import as_array, as_tensor, input_array
from pinnace.torch_archive import archive_kind, load_archive
from pinnace.types import Array
from pinnace.zip_file import is_zip

if TYPE_CHECKING:
    import torch


class Source(Protocol):
    """Runs the source model. Inputs and outputs are in the order of the imported model's.

    A source that computes on integers in arithmetic of its own also has `steps`: per input what one step of its
    quantisation is, 0 for none. Results may differ by what such a step does to them.
    """

    @property
    def description(self) -> str:
        """What runs it: "torch 2.13"."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order, flattened as the importer flattens them."""

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by the names that the importer keeps, as far as the source can give them."""


# ------------------------------------------------------------------------------------------------------------- PyTorch


class TorchSource:
    """An ExportedProgram, run by torch in eval mode without gradients."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        """Keeps the program; every run works on a copy of what it mutates."""
        import torch

        self.program = program
        self.description = f"torch {torch.__version__}"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order: tensors, and ints as int64 scalars."""
        import torch

        with _named(self.description), torch.no_grad():
            module = _copied(self.program).module()
            args, kwargs = self._arguments(inputs)
            return [_to_numpy(t) for t in _tensors(module(*args, **kwargs))]

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Values of the exported graph's nodes by name."""
        import torch
        from torch.utils import _pytree

        found: dict[str, Array] = {}

        class Recorder(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                result = super().run_node(n)
                if n.name in names and isinstance(result, torch.Tensor):
                    found[n.name] = _to_numpy(result).copy()  # later nodes may write into it
                return result

        with _named(self.description), torch.no_grad():
            program = _copied(self.program)
            args, kwargs = self._arguments(inputs)
            flat = [t.clone() if isinstance(t, torch.Tensor) else t for t in _pytree.tree_flatten((args, kwargs))[0]]
            lifted = []
            state = {**program.state_dict, **program.constants}
            user = iter(flat)
            for spec in program.graph_signature.input_specs:
                lifted.append(next(user) if spec.kind.name == "USER_INPUT" else state[spec.target or ""])
            Recorder(program.graph_module).run(*lifted)
        return found

    def _arguments(self, inputs: Sequence[Array]) -> tuple[tuple[Any, ...], dict[str, Any]]:
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


# ---------------------------------------------------------------------------------------------------------------- ONNX


_REASON = 200  # characters: metadata has such values


class OnnxSource:
    """An ONNX file, run by onnxruntime; by ONNX's reference evaluator where that is not installed or has no code for
    what the file asks. `description` says which it is, after the first run also why.
    """

    def __init__(self, path: str) -> None:
        """Unsupported, with what to install, where neither package is there."""
        self.path = path
        self._evaluate = False
        try:
            import onnxruntime

            self.description = f"onnxruntime {onnxruntime.__version__}"
        except ImportError:
            self._evaluate = True
            try:
                self.description = _evaluator_name()
            except ImportError as error:
                raise _core.Unsupported(
                    "running an ONNX model for comparison needs a package: pip install onnxruntime, or onnx"
                ) from error
        self._session: Any = None
        self._names: list[str] = []

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order. FileError: it is no ONNX file; Unsupported: neither package runs the model."""
        if self._session is None:
            try:
                self._session, self._names = self._open(self.path)
            except _core.Error:
                raise
            except Exception as error:
                return self._run_otherwise(inputs, error)
        with _named(self.description):
            try:
                return self._call(self._session, self._names, inputs)
            except Exception as error:
                # So it says of a node; of inputs that do not fit the model it complains in other words.
                if self._evaluate or "returned while running" not in str(error):
                    raise
                return self._run_otherwise(inputs, error)

    def _run_otherwise(self, inputs: Sequence[Array], refusal: Exception) -> list[Array]:
        """The run by the reference evaluator, and all later ones, after what was to run it refused."""
        self._check_file(refusal)
        reasons = [f"{self.description}: {one_line(refusal, _REASON)}"]
        if not self._evaluate:
            try:
                name = _evaluator_name()
                self._evaluate = True
                session, names = self._open(self.path)
                outputs = self._call(session, names, inputs)
                self._session, self._names = session, names
                self.description = f"{name}, for {self.description} refuses the model: {one_line(refusal, _REASON)}"
                return outputs
            except _core.Error:
                raise
            except ImportError:
                reasons.append("ONNX's reference evaluator is not installed (pip install onnx)")
            except Exception as error:
                reasons.append(f"{name}: {one_line(error, _REASON)}")
            self._evaluate = False
        raise _core.Unsupported(
            f"{self.path}: nothing here runs it: {'; '.join(reasons)}; verify=False builds without a comparison"
        ) from refusal

    def _check_file(self, refusal: Exception) -> None:
        """FileError if it was the file, and not what it asks for, that was refused."""
        try:
            import onnx
        except ImportError:
            bad = type(refusal).__name__ in ("InvalidProtobuf", "NoSuchFile")
        else:
            try:
                with open_regular(self.path) as file:
                    bad = not onnx.load_model_from_string(file.read()).graph.output
            except _core.Error:
                raise
            except Exception:  # protobuf's errors, the system's: whatever it is, the file cannot be read
                bad = True
        if bad:
            raise _core.FileError(f"{self.path}: {self.description} cannot load it: {refusal}") from refusal

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by ONNX's names: the model with those values as outputs is run once. None without onnx, which
        writes that model."""
        try:
            import onnx
        except ImportError:
            return {}
        with _named(self.description), open_regular(self.path) as file:
            model = onnx.load_model_from_string(file.read())
        made = [o for node in model.graph.node for o in node.output if o in names]
        known = {o.name for o in model.graph.output}
        wanted = [o for o in made if o not in known]
        outputs = len(model.graph.output)
        for name in wanted:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
        with _named(self.description):
            session, input_names = self._open_changed(model)
            results = self._call(session, input_names, inputs)
        found = dict(zip(wanted, results[outputs:], strict=True))
        found.update({o.name: r for o, r in zip(model.graph.output, results, strict=False) if o.name in names})
        return found

    def _open(self, path: str) -> tuple[Any, list[str]]:
        open_regular(path).close()  # what reads it next would wait at a pipe
        if self._evaluate:
            return self._evaluator(path)
        return self._runtime(path, {})

    def _open_changed(self, model: Any) -> tuple[Any, list[str]]:
        """A model that was read from the file and changed; its external data stay where they are, beside the file."""
        folder = str(Path(self.path).absolute().parent)
        if self._evaluate:
            from onnx.external_data_helper import load_external_data_for_model

            load_external_data_for_model(model, folder)
            return self._evaluator(model)
        return self._runtime(
            model.SerializeToString(), {"session.model_external_initializers_file_folder_path": folder}
        )

    @staticmethod
    def _evaluator(model: Any) -> tuple[Any, list[str]]:
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(model)
        return evaluator, list(evaluator.input_names)

    @staticmethod
    def _runtime(model: str | bytes, entries: Mapping[str, str]) -> tuple[Any, list[str]]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what it refuses is in the exception
        for name, value in entries.items():
            options.add_session_config_entry(name, value)
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return session, [i.name for i in session.get_inputs()]

    @staticmethod
    def _call(session: Any, names: list[str], inputs: Sequence[Array]) -> list[Array]:
        return [np.asarray(o) for o in session.run(None, dict(zip(names, inputs, strict=True)))]


def _evaluator_name() -> str:
    import onnx

    return f"onnx {onnx.__version__} reference evaluator"


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

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Values by name, from a session that keeps them."""
        from pinnace.session import Session

        made = [o for n in self._session.program.nodes if not n.path for o in n.outputs if o in names]
        session = Session(self._session.program, target="cpu", keep=made)
        # Not by name: an inner value may be called what an output is called.
        results = session._core.run(session._bind(dict(zip(session.inputs, inputs, strict=True))))
        return dict(zip(made, results[len(self._session.program.outputs) :], strict=True))


def source_of(reference: Any, inputs: Mapping[str, Any]) -> Source:
    """The runnable form of whatever a user calls the reference: nn.Module, ExportedProgram, path or Program."""
    from pinnace.program import Program
    from pinnace.torch_export import export_module, is_exported, is_module

    if isinstance(reference, Program):
        return ProgramSource(reference)
    if is_exported(reference):
        return TorchSource(reference)
    if is_module(reference):
        example = {name: as_tensor(input_array(f"input {name!r}", value)) for name, value in inputs.items()}
        return TorchSource(export_module(reference, (), example, None))
    path = str(reference)
    if path.endswith(".pnc"):
        return ProgramSource(path)
    kind = archive_kind(path)
    if kind == "script":
        raise _core.Unsupported(f"{path}: TorchScript is compared when load() builds it, with its example_inputs")
    return open_torch_archive(path) if kind or is_zip(path) else OnnxSource(path)


__all__ = ["OnnxSource", "ProgramSource", "Source", "TorchSource", "open_torch_archive", "source_of"]
