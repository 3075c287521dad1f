"""Which operators of a source format become which of ours, read from the importers' tables and mapping functions.

A table names a function per source operator; the function, and what it calls in its own file, names our operators where
it adds nodes. Names that are put together at run time (the snake_case rule) are followed by that rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FUNCTION = re.compile(
    r"^(?!namespace|struct|class|#|//| )[^\n;={}]*?\b(\w+)\([^;{}]*?\)[^;{}()]*\{\n(.*?)^\}", re.M | re.S
)
_LITERAL = re.compile(r'"([a-z][a-z0-9_]*)"')


def snake_case(name: str) -> str:
    """The rule of cpp/import/onnx/mapping.cc."""
    fixed = {"IsNaN": "is_nan", "PRelu": "prelu", "Col2Im": "col2im"}
    return fixed.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z0-9])", "_", name).lower()


def _functions(folder: Path, shared: str = "") -> dict[str, str]:
    """Name -> body with the bodies of the functions of the same file (and of `shared`) that it calls."""
    found: dict[str, str] = {}
    everywhere = dict(_FUNCTION.findall((folder / shared).read_text())) if shared else {}
    for path in sorted(folder.glob("*.cc")):
        own = dict(_FUNCTION.findall(path.read_text()))
        for name in own:
            seen, queue = {name}, [name]
            while queue:
                body = own.get(queue[0]) or everywhere.get(queue[0], "")
                queue.pop(0)
                for called in re.findall(r"\b(\w+)\(", body):
                    if called in (own.keys() | everywhere.keys()) - seen:
                        seen.add(called)
                        queue.append(called)
            found[name] = "\n".join(own.get(each) or everywhere.get(each, "") for each in sorted(seen))
    return found


def _invert(made: Iterable[tuple[str, Iterable[str]]], operators: set[str]) -> dict[str, list[str]]:
    sources: dict[str, list[str]] = {}
    for source, names in made:
        for name in sorted(set(names) & operators):
            sources.setdefault(name, []).append(source)
    return sources


def onnx_sources(operators: set[str]) -> dict[str, list[str]]:
    """Our operator -> ONNX's, the one of the same name first."""
    folder = ROOT / "cpp/import/onnx"
    functions = _functions(folder)
    calls = re.compile(r'(?:emit|emit_many|finish|map_as)\((?:node, )?"(\w+)"|std::string, [^"]*"(\w+)"')
    made = []
    for source, function in re.findall(r"^MAP\((\w+), (\w+)\)", (folder / "mappings.inc").read_text(), re.M):
        body = functions.get(f"map_{function}", "")
        names = {name for pair in calls.findall(body) for name in pair if name}
        if function == "generic" or "map_generic(" in body or "snake_case(" in body:
            names.add(snake_case(source))
        # A choice between two operators stands in the call's argument.
        names |= {
            name for call in re.findall(r"(?:emit|finish)\([^;]*?\?[^;]*;", body) for name in _LITERAL.findall(call)
        }
        made.append((source, names))
    sources = _invert(made, operators)
    for name, rows in sources.items():
        rows.sort(key=lambda source: (snake_case(source) != name, source))
    return sources


def onnx_operators(table: str = "mappings.inc") -> dict[str, list[str]]:
    """Function of a table of cpp/import/onnx -> ONNX's operators that it maps."""
    found: dict[str, list[str]] = {}
    for source, function in re.findall(r"^MAP\((\w+), (\w+)\)", (ROOT / "cpp/import/onnx" / table).read_text(), re.M):
        found.setdefault(function, []).append(source)
    return found


def torch_targets() -> dict[str, set[str]]:
    """File of cpp/import/torch/mappings -> the targets of its tables, without overloads."""
    row = re.compile(r'^ *\{"([a-z_]+\.[\w.]+)",\s*\w+(?:, *[^{}]*)?\}', re.M)
    rows = {path.stem: set(row.findall(path.read_text())) for path in (ROOT / "cpp/import/torch/mappings").glob("*.cc")}
    return {name: targets for name, targets in rows.items() if targets}


def number(name: str, path: str) -> int:
    """The constant of that name in a source file."""
    return int(re.findall(rf"constexpr \w+ {name} = (\d+);", (ROOT / path).read_text())[0])


def torch_sources(operators: set[str]) -> dict[str, list[str]]:
    """Our operator -> ATen targets, without overloads."""
    folder = ROOT / "cpp/import/torch/mappings"
    functions = _functions(folder)
    row = re.compile(r'^ *\{"([\w.]+)",\s*(\w+)((?:, *[^{}]*)?)\}', re.M)
    made = []
    for path in sorted(folder.glob("*.cc")):
        for target, function, rest in row.findall(path.read_text()):
            if target.startswith("_operator."):  # Python's arithmetic on sizes
                continue
            body = functions.get(function, "")
            adds = "".join(re.findall(r"\badd(?:_many|_node)?\([^;]*?;", body))
            made.append((target, _LITERAL.findall(adds) + _LITERAL.findall(rest)))
    sources = _invert(made, operators)
    for name, rows in sources.items():
        rows.sort(key=lambda target: (target.rsplit(".", 1)[-1].replace("_", "") != name.replace("_", ""), target))
    return sources
