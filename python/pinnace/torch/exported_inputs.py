"""What an exported program says of the tensors of its call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def input_tensors(program: torch.export.ExportedProgram) -> list[Any]:
    """The traced tensors of the call, in its order, whose shapes have numbers and symbols; None for one without."""
    traced = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    return [
        traced.get(spec.arg.name)
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT" and not hasattr(spec.arg, "value")  # a constant of the call
    ]


__all__ = ["input_tensors"]
