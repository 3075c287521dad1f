"""Operators of TorchScript on numbers, texts and lists: what Python computes of them is what torch computes."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import pytest
import torch
from pinnace import _core
from pinnace.torchscript.graph import Place, Step, _find_operator
from pinnace.torchscript.interpreter import ScriptInterpreter
from pinnace.torchscript.operators import COMPUTED, PYTHON, RAW
from slices import rotating_slice
from torch import Tensor, nn

# mypy: disable-error-code="no-untyped-call"
core: Any = torch._C
jit: Any = torch.jit

NAN, INF = float("nan"), float("inf")
INTS = [0, 1, 2, -1, -2, 3, -3, 7, -7, 5, 63, 100, -100, 1 << 40]
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.0, 1.5, 2.5, -2.5, -1.5, 3.7, -3.7, 1e-3, 1e20, -1e20, INF, -INF, NAN]
VALUES: dict[str, list[Any]] = {
    "int": INTS,
    "float": FLOATS,
    "bool": [True, False],
    "str": ["", "a", "Ab c", "abcabc", "12", "-3", "1.5", " x ", "a,b"],
    "int[]": [[], [1], [3, 1, 2], [2, 2, -5]],
    "float[]": [[], [1.5], [3.0, -1.0, 2.5]],
    "bool[]": [[], [True], [True, False]],
    "str[]": [[], ["a"], ["b", "a", "c"]],
}
OTHER_NAMES = {
    "List[int]": "int[]",
    "List[float]": "float[]",
    "List[bool]": "bool[]",
    "List[str]": "str[]",
    "Optional[int]": "int",
    "t": "int",
    "List[t]": "int[]",
}


def cases() -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    found = {}
    for schema in core._jit_get_all_schemas():
        name = schema.name.partition("::")[2]
        if schema.name not in RAW and name not in COMPUTED and name not in PYTHON:
            continue
        types = tuple(OTHER_NAMES.get(str(a.type), str(a.type)) for a in schema.arguments)
        returns = tuple(OTHER_NAMES.get(str(r.type), str(r.type)) for r in schema.returns)
        whole = types and returns and len(types) <= 3 and all(t in VALUES for t in types)
        if whole and schema.name != "prim::NumToTensor":
            found[schema.name, types] = (schema.name, types, returns)
    return sorted(case for case in found.values() if of_torch(*case))  # the others no text of a graph can name


def of_torch(kind: str, types: tuple[str, ...], returns: tuple[str, ...]) -> tuple[Any, Step] | None:
    given = ", ".join(f"%a{i} : {t}" for i, t in enumerate(types))
    made = ", ".join(f"%o{i} : {r}" for i, r in enumerate(returns))
    names = ", ".join(f"%a{i}" for i in range(len(types)))
    results = ", ".join(f"%o{i}" for i in range(len(returns)))
    try:
        graph = core.parse_ir(f"graph({given}):\n  {made} = {kind}({names})\n  return ({results})\n")
        node = next(iter(graph.nodes()))
        if node.schema() == "(no schema)":
            return None
        function = core._create_function_from_graph("f", graph)
    except RuntimeError:  # a type that has no name in such text
        return None
    step = Step(kind, tuple(range(len(types))), tuple(range(100, 100 + len(returns))), Place("", 0))
    _find_operator(node, step)
    return function, step


def is_same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or abs(a - b) <= 1e-14 * abs(b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return type(a) is type(b) and bool(a == b)


def too_much(kind: str, values: tuple[Any, ...]) -> bool:
    """Of which torch makes gigabytes or an endless loop, reads beyond the end, or does what C++ leaves open."""
    name = kind.partition("::")[2]
    large = any(isinstance(v, int) and abs(v) > 1000 for v in values)
    texts = any(isinstance(v, str | list) for v in values)
    divides = name in ("floordiv", "remainder", "divmod", "floor_divide", "__range_length")
    return (
        (large and (texts or name in ("__range_length", "rangelist")))
        or (name in ("count", "rsplit", "replace") and "" in values[:2])
        or (name == "center" and type(values[1]) is int and not 0 <= values[1] < 64)
        or (name == "Int" and type(values[0]) is float and not math.isfinite(values[0]))
        or name == "promote_types"
        or (name == "ord" and len(values[0]) != 1)
        or (name == "chr" and not 0 <= values[0] < 128)
        or (divides and type(values[-1]) is int and values[-1] == 0)
        or (name in ("__lshift__", "__rshift__") and not 0 <= values[1] < 64)
    )


class Nothing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize("case", rotating_slice(cases(), 1 / 2), ids=lambda c: f"{c[0]}({', '.join(c[1])})")
def test_operator(case: tuple[str, tuple[str, ...], tuple[str, ...]]) -> None:
    kind, types, returns = case
    made = of_torch(kind, types, returns)
    assert made is not None
    function, step = made
    run = ScriptInterpreter(jit.script(Nothing()))
    for values in itertools.product(*(VALUES[t] for t in types)):
        if too_much(kind, values):
            continue
        own, others = copy.deepcopy(values), copy.deepcopy(values)
        try:
            want = function(*own)
        except (RuntimeError, ValueError, IndexError, OverflowError):
            continue
        try:
            got = run._operator(step, list(others))
        except _core.Error:  # what no 64-bit integer holds
            continue
        assert is_same(got, want), (values, got, want)
