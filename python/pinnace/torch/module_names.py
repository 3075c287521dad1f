"""What the importer calls the values of an exported program: names by module, for torch's own graph.

The same rules in C++, for an archive: cpp/import/torch/exported/module_names.h.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from typing import Any


def value_names(program: Any) -> dict[str, str]:
    """By name of a node in the program's graph what the importer calls the tensor that it gives; where it names two
    values alike, the first one has the name.
    """
    nodes = [n for n in program.graph.nodes if n.op == "call_function" and _gives_tensors(n) and not _is_part(n)]
    of_module = Counter(_module(n) for n in nodes)
    names: dict[str, str] = {}
    uses: Counter[str] = Counter()
    for node in nodes:
        module = _module(node)
        name = node.name
        if module:
            name = module
            if of_module[module] > 1:
                name = f"{module}:{_operator_in(node.name)}"
                uses[name] += 1
                name += f"_{uses[name] - 1}" if uses[name] > 1 else ""
        value = node.meta.get("val")
        if not isinstance(value, list | tuple):
            names[node.name] = name
            continue
        for part in node.users:
            if _is_part(part):
                parted = f"{name}{'.' if ':' in name else ':'}{part.args[1]}"
                names[part.name] = part.name if not module else name if len(value) == 1 else parted
    first: dict[str, str] = {}
    for node_name, name in names.items():
        first.setdefault(name, node_name)
    return {node_name: name for name, node_name in first.items()}


def _module(node: Any) -> str:
    """The path of the innermost module, with the number of its call from the second on: "layer1.0.relu@1"."""
    stack = node.meta.get("nn_module_stack") or {}
    if not stack:
        return ""
    key, (path, _) = list(stack.items())[-1]
    call = re.search(r"@(\d+)", str(key))
    return f"{path}@{int(call[1])}" if path and call and int(call[1]) else str(path)


def _gives_tensors(node: Any) -> bool:
    value = node.meta.get("val")
    return any(hasattr(v, "detach") for v in (value if isinstance(value, list | tuple) else [value]))


def _is_part(node: Any) -> bool:
    """One of an operator's several results, which an archive lists with the operator."""
    return node.target is operator.getitem


def _operator_in(name: str) -> str:
    """ "hardtanh__7" without its number and the underscore of operators that work in place."""
    return re.sub(r"_\d+$", "", name).rstrip("_") or name


__all__ = ["value_names"]
