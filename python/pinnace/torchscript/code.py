"""The code in TorchScript files, looked at before torch compiles it: what it names, how deep it is nested, what it
would become, and what runs while it is opened."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from pinnace import _core
from pinnace.torch.zip_file import INFLATED_MOST, ZipFile
from pinnace.types import custom_op_names

MOST_DEEP = 400  # nodes of the syntax tree in each other: torch's compiler calls itself for each
MOST_COPIES = 100_000  # bodies of functions, after calls are replaced by what they call

# TorchScript is run, some of it while it is read. Of what it can call, these reach files.
_REACHES_FILES = re.compile(r"\b(save|from_file|load_tensor)\b", re.ASCII)
# getattr takes a text, which could spell them in escapes or in pieces.
_SPELLED = re.compile(r"""\w["'](?:\s|\\\n|#[^\n]*)*["']|\\[xuUN0-7]""", re.ASCII)
_OPERATORS = re.compile(r"(?<![\w.])ops\s*\.\s*(\w+)", re.ASCII)
_CLASSES = re.compile(r"\btorch\s*\.\s*classes\s*\.\s*(\w+)", re.ASCII)
_NAMESPACES = frozenset(("aten", "prim", "prims", "quantized", "_quantized", "quantization", "sparse", "torchvision"))
_CLASS_NAMESPACES = frozenset(("quantized", "sparse", "rnn", "_nnapi", "mkldnn"))


def check_code(archive: ZipFile) -> bool:
    """Whether torch computes while it opens the file: with texts in it, or what __setstate__ says.

    Unsupported: the module's code names something that reads or writes files, or operators of other packages; it is
    nested too deep; its functions call each other too often; or opening it would run a loop."""
    if Path(archive.path).suffix in (".pt2", ".onnx", ".pnc", ".json"):
        raise _core.Unsupported(
            f"{archive.path}: TorchScript, which holds code, under the name of a format without any"
        )
    own = {name.split(".")[0] for name in custom_op_names()}
    functions: dict[str, list[str]] = {}
    computes = False
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
        if entry.endswith(".py"):
            functions |= _functions(f"{archive.path}: {entry}", entry, code)
            computes = computes or "'" in code or '"' in code or "__setstate__" in code
    _check_calls(archive.path, functions)
    return computes


def _functions(place: str, entry: str, code: str) -> dict[str, list[str]]:
    """By the name of a function, those that it calls. A text that is no Python is for torch to refuse."""
    try:
        tree = ast.parse(code)
    except (RecursionError, MemoryError):
        raise _core.Unsupported(f"{place} is nested deeper than it can be read") from None
    except (SyntaxError, ValueError) as error:
        if "too many nested" in str(error) or "too complex" in str(error):
            raise _core.Unsupported(f"{place} is nested deeper than it can be read") from None
        return {}
    module = entry.partition("code/")[2].removesuffix(".py").replace("/", ".")
    found: dict[str, list[str]] = {}
    methods: dict[str, list[ast.FunctionDef]] = {}
    left: list[tuple[ast.AST, int, str]] = [(tree, 0, "")]
    while left:
        node, depth, function = left.pop()
        if depth > MOST_DEEP:
            raise _core.Unsupported(f"{place} is nested more than {MOST_DEEP} deep")
        if isinstance(node, ast.FunctionDef):
            function = f"{module}.{node.name}"
            found.setdefault(function, [])
            methods[node.name] = [*methods.get(node.name, []), node]
        if isinstance(node, ast.Call) and function and (name := _dotted(node.func)).startswith("__torch__."):
            found[function].append(name)
        left.extend((child, depth + 1, function) for child in ast.iter_child_nodes(node))
    _check_opening(place, methods)
    return found


def _dotted(node: ast.AST) -> str:
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _check_opening(place: str, methods: dict[str, list[ast.FunctionDef]]) -> None:
    """__setstate__ runs while torch opens the file, with the methods of its class that it calls."""
    left, seen = ["__setstate__"], {"__setstate__"}
    while left:
        for node in (node for function in methods.get(left.pop(), []) for node in ast.walk(function)):
            if isinstance(node, (ast.For, ast.While)):
                raise _core.Unsupported(f"{place} has a loop in __setstate__, which runs when the file is opened")
            if not isinstance(node, ast.Call) or _is_harmless(node.func):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) and _dotted(node.func.value) else ""
            if not called or _dotted(node.func.value) != "self" or called not in methods:  # type: ignore[attr-defined]
                raise _core.Unsupported(
                    f"{place} calls {ast.unparse(node.func)[:60]!r} in __setstate__, which runs when the file is opened"
                )
            left += [called] if called not in seen else []
            seen.add(called)


def _is_harmless(called: ast.AST) -> bool:
    """torch's own operators and functions, and those of the language."""
    name = _dotted(called)
    return name.startswith(("torch.", "ops.")) or ("." not in name and name != "")


def _check_calls(path: str, functions: dict[str, list[str]]) -> None:
    """torch replaces calls by the bodies of functions: two calls in each of 40 functions are 2^40 bodies."""
    copies: dict[str, int] = {}

    def order() -> Iterator[str]:
        """Called functions before those that call them."""
        done: set[str] = set()
        for start in functions:
            stack = [(start, iter(functions[start]))]
            done.add(start)
            while stack:
                name, calls = stack[-1]
                following = next((c for c in calls if c in functions and c not in done), None)
                if following is None:
                    stack.pop()
                    yield name
                else:
                    done.add(following)
                    stack.append((following, iter(functions[following])))

    for name in order():
        copies[name] = 1 + sum(copies.get(c, 0) for c in functions[name])
        if copies[name] > MOST_COPIES:
            raise _core.Unsupported(
                f"{path}: the functions that {name!r} calls, and those they call, are more than {MOST_COPIES} bodies"
            )


__all__ = ["MOST_COPIES", "MOST_DEEP", "check_code"]
