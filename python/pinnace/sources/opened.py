"""source_of(): whatever a user calls the reference, as a source model that can be run."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from typing import Any

from pinnace import _core
from pinnace.arrays import as_tensor, input_array
from pinnace.program import Program
from pinnace.sources.base import Source
from pinnace.sources.model_file import model_file
from pinnace.sources.onnx_file import OnnxSource
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.sources.torch_module import live_source
from pinnace.sources.torch_program import TorchSource, open_torch_archive
from pinnace.sources.torchscript import QuantizedScriptSource, script_source
from pinnace.torch.caches import cached_module
from pinnace.torch.export import is_exported, is_module
from pinnace.torch.module_call import takes_list, uncompiled
from pinnace.torch.other_files import other_file, other_format
from pinnace.torchscript.script import (
    export_quantized,
    has_quantized_steps,
    interpreted,
    is_script,
    is_script_file,
    open_script,
)


def _call_of(module: Any, example: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by their names where forward() has these, also as lists and dicts (`images.0`), else in their order."""
    for named in (dict(example), _nested(example)):
        with contextlib.suppress(TypeError):
            inspect.signature(module.forward).bind(**named)
            return (), named
    values = tuple(example.values())
    return ((list(values),) if takes_list(module) else values), {}


def _nested(example: Mapping[str, Any]) -> dict[str, Any]:
    """The containers that names of inputs tell: `images.0` is the first of the list `images`, `batch.mask` an entry of
    the dict `batch`."""
    tree: dict[str, Any] = {}
    for name, value in example.items():
        *keys, last = name.split(".")
        at = tree
        for key in keys:
            inner = at.setdefault(key, {})
            if not isinstance(inner, dict):
                return dict(example)
            at = inner
        at[last] = value

    def listed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = {key: listed(item) for key, item in value.items()}
        return list(items.values()) if list(items) == [str(i) for i in range(len(items))] else items

    return {key: listed(value) for key, value in tree.items()}


def source_of(reference: Any, inputs: Mapping[str, Any]) -> Source:
    """The runnable form of whatever a user calls the reference: nn.Module, ExportedProgram, Program, or what
    model_file() takes.
    """
    if isinstance(reference, Program):
        return ProgramSource(reference)
    if is_exported(reference):
        return TorchSource(reference)
    if is_script(reference):
        return _script_source(reference, type(reference).__name__, inputs)
    if is_module(reference):
        reference = cached_module(uncompiled(reference))
        args, kwargs = _call_of(reference, _tensors(inputs))
        return live_source(reference, args, kwargs, None)
    file = model_file(reference)
    with file.named():
        if is_script_file(file.path):
            return _script_source(open_script(file.path), file.path, inputs)
        return file.reader(_file_source(file.path))


def _tensors(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: as_tensor(input_array(f"input {name!r}", value)) for name, value in inputs.items()}


def _script_source(script: Any, name: str, inputs: Mapping[str, Any]) -> Source:
    """A ScriptModule. Unsupported: its inputs are quantised, so that they are no arrays alone."""
    run = interpreted(script)
    if has_quantized_steps(run):
        given = _tensors(inputs)
        if any(tensor.element_size() == 1 for tensor in given.values()):
            raise _core.Unsupported(f"{name}: TorchScript with quantised inputs is compared when load() builds it")
        names = run.argument_names
        examples = [given[n] for n in (names if set(names) == set(given) else given)]
        return QuantizedScriptSource(script, examples, export_quantized(script, examples)[1])
    return script_source(script, *_call_of(run.module, _tensors(inputs)), None)


def _file_source(path: str) -> Source:
    made_by = _core.Model.format_of(path)
    if made_by == "pnc":
        return ProgramSource(path)
    if made_by == "pt2":
        return open_torch_archive(path)
    if made_by == "onnx":
        if kind := other_format(path):  # which would be seen when the file is run, by its packages
            raise other_file(path, kind)
        return OnnxSource(path)
    raise _core.Unsupported(f"{path}: nothing here runs a model of the format {made_by}")


__all__ = ["source_of"]
