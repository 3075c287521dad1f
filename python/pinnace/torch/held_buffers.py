"""Buffers that plain objects of a module hold as well, as a static cache of keys and values does: a buffer that is read
and written through such an object is one and the same, exported and in double precision too.

Imports torch only when asked to.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pinnace.torch.isolation import LEAVES, MOST_ENTRIES, is_plain

if TYPE_CHECKING:
    import torch


def with_one_buffer(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program without constants that are a buffer's memory: the buffer takes their place.

    torch.export, unless it is strict, puts its own tensors into the buffers while forward() runs, and takes what is
    read through another object for a constant of the program. Without such constants it is the same program.
    """
    from torch.export.graph_signature import ExportGraphSignature

    signature = program.graph_signature
    tensors = {**program.state_dict, **program.constants}
    buffers: dict[Any, str] = {}
    again: dict[str, str] = {}  # by the argument of a constant that of its buffer
    for wanted in ("BUFFER", "CONSTANT_TENSOR"):
        for spec in signature.input_specs:
            place = _place(tensors.get(spec.target or "")) if spec.kind.name == wanted else None
            if place is None:
                continue
            if wanted == "BUFFER":
                buffers.setdefault(place, spec.arg.name)
            elif place in buffers:
                again[spec.arg.name] = buffers[place]
    if not again:
        return program
    made: Any = copy.deepcopy(program.graph_module)
    arguments = {node.name: node for node in made.graph.nodes if node.op == "placeholder"}
    for constant, buffer in again.items():
        arguments[constant].replace_all_uses_with(arguments[buffer])
        made.graph.erase_node(arguments[constant])
    made.recompile()
    gone = {spec.target for spec in signature.input_specs if spec.arg.name in again}
    return program._update(
        made,
        ExportGraphSignature(
            input_specs=[spec for spec in signature.input_specs if spec.arg.name not in again],
            output_specs=list(signature.output_specs),
        ),
        constants={name: value for name, value in program.constants.items() if name not in gone},
    )


def _place(tensor: Any) -> Any:
    """What two tensors have in common that are the same elements in the same order; None for those without memory."""
    import torch

    if type(tensor) is not torch.Tensor or tensor.layout != torch.strided or not tensor.numel():
        return None
    try:
        address = tensor.data_ptr()
    except RuntimeError:  # of a tensor without values
        return None
    return (address, tuple(tensor.shape), tensor.stride(), tensor.dtype) if address else None


def replace_held(module: torch.nn.Module, replaced: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Puts the second tensor of each pair where lists, dicts and plain objects of the module hold the first.

    For a copy of a module of a user's, whose own buffers nobody else can hold.
    """
    import torch

    new = {id(old): now for old, now in replaced}
    seen: dict[int, Any] = {}
    left: list[Any] = [vars(part) for part in module.modules()] if new else []
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, (*LEAVES, torch.Tensor)):
            continue
        seen[id(value)] = value
        if isinstance(value, (dict, list)):
            if len(value) > MOST_ENTRIES:
                continue
            for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
                if id(item) in new:
                    value[key] = new[id(item)]
                else:
                    left.append(item)
        elif isinstance(value, tuple):
            left.extend(value)
        elif isinstance(value, torch.nn.Module) or is_plain(value):
            left.append(getattr(value, "__dict__", None))


__all__ = ["replace_held", "with_one_buffer"]
