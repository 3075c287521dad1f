"""From live PyTorch modules and exported programs to the archive that the importer reads.

Imports torch only when asked to.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.types import Dim

if TYPE_CHECKING:
    import torch


def is_module(value: Any) -> bool:
    """True for nn.Module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def is_exported(value: Any) -> bool:
    """True for torch.export.ExportedProgram, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.export.ExportedProgram)


def export_module(
    module: torch.nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any],
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None,
) -> torch.export.ExportedProgram:
    """torch.export.export in eval mode; ConversionError with torch's own words where it cannot."""
    import torch

    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            return torch.export.export(
                module,
                tuple(example_inputs),
                dict(example_kwargs),
                dynamic_shapes=_torch_dims(dynamic_shapes),
                strict=False,
            )
    except Exception as error:
        raise _core.ConversionError(f"torch.export cannot export {type(module).__name__}: {error}") from error
    finally:
        module.train(training)


def _torch_dims(dynamic_shapes: Any) -> Any:
    """The same nest with pn.Dim turned into torch.export.Dim; a multiple_of k becomes k * Dim."""
    import torch

    made: dict[str, Any] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, Dim):
            if value.name not in made:
                k = value.multiple_of
                low, high = -(-value.min // k), None if value.max is None else value.max // k
                base = torch.export.Dim(value.name if k == 1 else f"{value.name}_{k}", min=max(low, 1), max=high)
                made[value.name] = base if k == 1 else k * base
            return made[value.name]
        if isinstance(value, Mapping):
            return {key: convert(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(convert(item) for item in value)
        return value

    return None if dynamic_shapes is None else convert(dynamic_shapes)


def symbol_names(program: torch.export.ExportedProgram, dynamic_shapes: Any) -> list[tuple[str, str]]:
    """(torch's name, the user's) of each dimension that `dynamic_shapes` names: torch calls them s77 and the like.

    Read off inputs that are tensors themselves, by name or by position; dimensions that torch derived from others
    (multiples) keep its names.
    """
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    inputs = [nodes[n] for n in program.graph_signature.user_inputs if isinstance(n, str) and n in nodes]
    if isinstance(dynamic_shapes, Mapping):
        pairs = [(nodes[key], dims) for key, dims in dynamic_shapes.items() if key in nodes]
    elif isinstance(dynamic_shapes, (list, tuple)) and len(dynamic_shapes) == len(inputs):
        pairs = list(zip(inputs, dynamic_shapes, strict=True))
    else:
        return []
    names: dict[str, str] = {}
    for node, dims in pairs:
        shape = getattr(node.meta.get("val"), "shape", ())
        listed = dims.items() if isinstance(dims, Mapping) else enumerate(dims or ())
        for index, dim in listed:
            expression = getattr(getattr(shape[index], "node", None), "expr", None) if index < len(shape) else None
            name = dim.name if isinstance(dim, Dim) else getattr(dim, "__name__", None)
            if name and getattr(expression, "is_Symbol", False):
                names.setdefault(str(expression), name)
    return list(names.items()) if len(set(names.values())) == len(names) else []


def decompose(
    program: torch.export.ExportedProgram, error: _core.ConversionError
) -> torch.export.ExportedProgram | None:
    """The program with only those operators decomposed that the importer did not know; None if that changes nothing.

    A program with autocast regions is decomposed as a whole: only then are its casts explicit.
    """
    import torch

    if any("autocast" in problem.rule for problem in error.nodes):
        return program.run_decompositions()
    table = torch.export.default_decompositions()
    unknown = set()
    for problem in error.nodes:
        parts = problem.op.split(".")
        if len(parts) < 2:
            return None
        packet = getattr(getattr(torch.ops, parts[0], None), parts[1], None)
        if packet is not None:
            unknown.add(packet)
    chosen = {op: f for op, f in dict(table).items() if getattr(op, "overloadpacket", op) in unknown}
    if not chosen:
        return None
    return program.run_decompositions(chosen)
