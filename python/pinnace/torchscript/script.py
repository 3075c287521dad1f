"""From TorchScript (traced or scripted, live or saved by torch.jit.save) to the exported programs that load() takes.

Its graphs are followed step by step while torch.export records what they do (interpreter.py). Those of models
that eager quantisation made hold packed weights and quantised tensors, which torch.export knows nothing of: they are
walked node by node (quantized.py). Imports torch only when asked to.
"""

from __future__ import annotations

import operator
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.files import printable
from pinnace.packages import import_package
from pinnace.torch.archive import archive_kind
from pinnace.torch.isolation import isolated_inference
from pinnace.torch.zip_file import ZipFile
from pinnace.torchscript import trial
from pinnace.torchscript.code import check_code
from pinnace.torchscript.source_ranges import check_source_ranges
from pinnace.torchscript.storages import check_storages

if TYPE_CHECKING:
    import torch

    from pinnace.torchscript.interpreter import Attribute, ScriptInterpreter, ScriptState
    from pinnace.torchscript.quantized import QuantizedScript

MOST_NAMED = 3  # places that a note names


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
    with ZipFile(path, inflated=True) as archive:
        archive.verify()  # torch crashes where what it reads of sources is damaged
        check_storages(archive)
        check_source_ranges(archive)
        computes = check_code(archive)
        if computes:
            trial.prepare()  # it imports torch, as this process may have to
        try:
            torch = import_package("torch")
        except ImportError as error:
            raise _core.Unsupported(f"{path}: reading TorchScript needs torch: pip install torch") from error
        if computes:
            trial.opens(path, archive.descriptor)
        try:
            jit: Any = torch.jit  # untyped in torch's own stubs
            return jit.load(archive.same_file, map_location="cpu")
        except _core.Error:
            raise
        except Exception as error:
            raise _core.FileError(f"{path}: torch cannot load it: {error}") from error


def interpreted(script: torch.jit.ScriptModule, state: ScriptState | None = None) -> ScriptInterpreter:
    """What runs its graphs, and has it as a module that torch.export can follow.

    ConversionError: its graphs hold what no program can have, or it has no forward; Unsupported: the module itself has
    hooks.
    """
    from pinnace.torchscript.interpreter import ScriptInterpreter  # imports torch

    core: Any = operator.attrgetter("_c")(script)
    if not core._has_method("forward"):
        names = ", ".join(f"'{printable(name)}'" for name in core._method_names()[:MOST_NAMED]) or "none"
        raise _core.ConversionError(
            f"TorchScript: the module has no method 'forward', which is what a program computes; its methods: {names}"
        )
    if core._get_forward_hooks() or core._get_forward_pre_hooks():
        raise _core.Unsupported("TorchScript: hooks of the module that is loaded; those of modules in it are run")

    with isolated_inference(script):
        return ScriptInterpreter(script, state)


def has_quantized_steps(module: ScriptInterpreter) -> bool:
    """Whether steps of its graphs pass on quantised tensors."""
    return any(
        kind in ("aten::quantize_per_tensor", "aten::quantize_per_channel", "aten::dequantize")
        or (kind.startswith("quantized::") and "dynamic" not in kind)
        for kind in module.kinds
    )


def export_interpreted(
    script: torch.jit.ScriptModule,
    state: ScriptState,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    notes: list[str] | None,
) -> tuple[torch.export.ExportedProgram, dict[Attribute, Any]]:
    """The program for that call, with the lines of the script's source; and attributes that are none of the states but
    that it reads and changes, with what it leaves in them. ConversionError: it cannot be exported."""
    from pinnace.torch.export import export_module
    from pinnace.torchscript.interpreter import LISTING

    module = interpreted(script, state)
    program = export_module(module.module, args, kwargs, dynamic_shapes, notes)

    for part in program.graph_module.modules():
        for node in part.graph.nodes if hasattr(part, "graph") else ():
            lines = re.findall(rf'File "{LISTING}", line (\d+), in forward', node.meta.get("stack_trace") or "")
            places = [module.place_of(int(line)).rpartition(":") for line in lines]
            frames = [f'  File "{file}", line {line}, in forward\n' for file, _, line in places if file]
            if frames or "stack_trace" in node.meta:
                node.meta["stack_trace"] = "".join(frames)
    if notes is not None and module.exceptions:
        named = ", ".join(module.exceptions[:MOST_NAMED])
        notes.append(
            f"exceptions that depend on data are left out ({named}): the program goes on where the script raises"
        )
    return program, module.unsettled


def export_quantized(
    script: torch.jit.ScriptModule, examples: Sequence[Any]
) -> tuple[torch.export.ExportedProgram, QuantizedScript]:
    """A quantised module for the examples' shapes, in eval mode, and what it is node by node.

    ConversionError: `.nodes` has every node in the way.
    """
    if not examples:
        raise _core.InvalidArgument("load(ScriptModule) needs example_inputs, one tensor for each of its inputs")
    from pinnace.torch.export import export_module
    from pinnace.torchscript.quantized import QuantizedScript

    with isolated_inference(script):
        walker = QuantizedScript(_frozen(script), examples)
        program = export_module(walker, [t.int_repr() if t.is_quantized else t for t in examples], {}, None)
        walker.name_sources(program)
        return _with_argument_names(program, script), walker


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


__all__ = [
    "check_code",
    "export_interpreted",
    "export_quantized",
    "has_quantized_steps",
    "interpreted",
    "is_packed",
    "is_script",
    "is_script_file",
    "open_script",
    "traced",
]
