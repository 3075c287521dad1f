"""From TorchScript (traced or scripted, live or saved by torch.jit.save) to the exported programs that load() takes.

Float models go through torch's own converter. Models that eager quantisation made hold packed weights and quantised
tensors, which that converter turns into float arithmetic on dequantised weights: these are walked here, node by node,
so that the stored 8-bit weights arrive as they are. Imports torch only when asked to.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.packages import import_package
from pinnace.torch.archive import archive_kind
from pinnace.torch.isolation import isolated_inference
from pinnace.torch.zip_file import INFLATED_MOST, ZipFile
from pinnace.types import custom_op_names

if TYPE_CHECKING:
    import torch

    from pinnace.torch.script_quantized import QuantizedScript


def is_script(value: Any) -> bool:
    """True for a ScriptModule, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.jit.ScriptModule)


def is_packed(module: torch.nn.Module) -> bool:
    """True where layers of torch.ao's eager quantisation read or make quantised tensors."""
    if not any(type(part).__module__.startswith("torch.ao.nn") for part in module.modules()):
        return False
    from pinnace.torch.packed_layers import has_static_layers  # imports torch

    return has_static_layers(module)


def traced(module: torch.nn.Module, examples: Sequence[Any]) -> torch.jit.ScriptModule:
    """The module's trace for that call. ConversionError: torch cannot trace it."""
    import torch

    jit: Any = torch.jit  # untyped in torch's own stubs
    with isolated_inference(module), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            script: torch.jit.ScriptModule = jit.trace(module, tuple(examples), check_trace=False)
        except Exception as error:
            raise _core.ConversionError(f"torch.jit cannot trace {type(module).__name__}: {error}") from error
        return script


def is_script_file(path: str) -> bool:
    """True for an archive that torch.jit.save wrote: a zip with code/ and constants.pkl."""
    return archive_kind(path) == "script"


def open_script(path: str) -> torch.jit.ScriptModule:
    """Read by torch, whose reader of TorchScript runs no Python of a file, after a look at what its code can call.

    CorruptFile; Unsupported: it names what reaches files; FileError: torch's words.
    """
    try:
        torch = import_package("torch")
    except ImportError as error:
        raise _core.Unsupported(f"{path}: reading TorchScript needs torch: pip install torch") from error
    with ZipFile(path, inflated=True) as archive:
        archive.verify()  # torch crashes where what it reads of sources is damaged
        _check_code(archive)
        try:
            jit: Any = torch.jit  # untyped in torch's own stubs
            return jit.load(archive.same_file, map_location="cpu")
        except _core.Error:
            raise
        except Exception as error:
            raise _core.FileError(f"{path}: torch cannot load it: {error}") from error


# TorchScript is run, some of it while it is read. Of what it can call, these reach files.
_REACHES_FILES = re.compile(r"\b(save|from_file|load_tensor)\b", re.ASCII)
# getattr takes a text, which could spell them in escapes or in pieces.
_SPELLED = re.compile(r"""\w["'](?:\s|\\\n|#[^\n]*)*["']|\\[xuUN0-7]""", re.ASCII)
_OPERATORS = re.compile(r"(?<![\w.])ops\s*\.\s*(\w+)", re.ASCII)
_CLASSES = re.compile(r"\btorch\s*\.\s*classes\s*\.\s*(\w+)", re.ASCII)
_NAMESPACES = frozenset(("aten", "prim", "prims", "quantized", "_quantized", "quantization", "sparse", "torchvision"))
_CLASS_NAMESPACES = frozenset(("quantized", "sparse", "rnn", "_nnapi", "mkldnn"))


def _check_code(archive: ZipFile) -> None:
    """Unsupported: the module's code names something that reads or writes files, or operators of other packages."""
    if Path(archive.path).suffix in (".pt2", ".onnx", ".pnc", ".json"):
        raise _core.Unsupported(
            f"{archive.path}: TorchScript, which holds code, under the name of a format without any"
        )
    own = {name.split(".")[0] for name in custom_op_names()}
    for entry in archive.names:
        if not entry.endswith((".py", ".pkl")):
            continue
        code = archive.read(entry, INFLATED_MOST).decode("latin-1")
        called = _REACHES_FILES.search(code) if entry.endswith(".py") else None
        if entry.endswith(".py") and "getattr" in code and _SPELLED.search(code):
            raise _core.Unsupported(f"{archive.path}: {entry} has texts in pieces or escapes, and names getattr")
        if called:
            raise _core.Unsupported(f"{archive.path}: {entry} names {called[1]!r}, with which code reaches files")
        for kind, pattern, known in (("operators", _OPERATORS, _NAMESPACES), ("classes", _CLASSES, _CLASS_NAMESPACES)):
            others = {found[1] for found in pattern.finditer(code)} - known - own
            if others and (kind == "classes" or entry.endswith(".py")):
                raise _core.Unsupported(f"{archive.path}: {entry} names {kind} of {sorted(others)[0]!r}")


def export_script(
    script: torch.jit.ScriptModule, examples: Sequence[Any]
) -> tuple[torch.export.ExportedProgram, QuantizedScript | None]:
    """The module for the examples' shapes, in eval mode, and what it is node by node if it is quantised.

    ConversionError: `.nodes` has every node in the way.
    """
    if not examples:
        raise _core.InvalidArgument("load(ScriptModule) needs example_inputs, one tensor for each of its inputs")
    with isolated_inference(script):
        return _exported(script, examples)


def _exported(
    script: torch.jit.ScriptModule, examples: Sequence[Any]
) -> tuple[torch.export.ExportedProgram, QuantizedScript | None]:
    from pinnace.torch.export import export_module
    from pinnace.torch.script_quantized import QuantizedScript, is_quantized_graph

    frozen = _frozen(script)
    if is_quantized_graph(frozen.graph) or any(t.is_quantized for t in examples):
        walker = QuantizedScript(frozen, examples)
        program = export_module(walker, [t.int_repr() if t.is_quantized else t for t in examples], {}, None)
        walker.name_sources(program)
        return _with_argument_names(program, script), walker
    from torch._export.converter import TS2EPConverter

    try:
        program = TS2EPConverter(script, tuple(examples)).convert()
    except Exception as error:
        raise _core.ConversionError(f"torch cannot turn this TorchScript into an exported program: {error}") from error
    return _with_argument_names(program, script), None


def _with_argument_names(
    program: torch.export.ExportedProgram, script: torch.jit.ScriptModule
) -> torch.export.ExportedProgram:
    """The program, whose call has the arguments' names of the script's own forward()."""
    entry = program.module_call_graph[0]
    forward: Any = script.forward  # a ScriptMethod, of which torch's stubs know nothing
    names = [re.sub(r"\.\d+$", "", a.name) for a in forward.schema.arguments[1:]]
    inputs = sum(spec.kind.name == "USER_INPUT" for spec in program.graph_signature.input_specs)
    if entry.signature is not None and len(names) == inputs and all(map(str.isidentifier, names)):
        entry.signature.forward_arg_names = names
    return program


def _frozen(script: torch.jit.ScriptModule) -> torch.jit.ScriptModule:
    """With attributes as constants, so that one flat graph holds everything; of a module in eval mode."""
    import torch

    if not hasattr(script, "training"):  # frozen already
        return script
    try:
        return torch.jit.freeze(script, optimize_numerics=False)
    except Exception as error:
        raise _core.ConversionError(f"torch cannot freeze this TorchScript module: {error}") from error


__all__ = ["export_script", "is_packed", "is_script", "is_script_file", "open_script", "traced"]
