"""Conditions on dynamic sizes that torch.export assumed when it traced a module, and sizes at which they do not hold.

It follows the branch that the example takes. What decided it is a guard, which it checks itself if it is of one
dimension alone, or an assertion, with prefer_deferred_runtime_asserts_over_guards. Most of them are its own questions
about strides, which no result depends on; some are an `if` of the module. Which are which shows when both are run where
a condition does not hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pinnace.packages import import_package
from pinnace.torch.exported_inputs import input_tensors
from pinnace.types import Dim, TensorSpec

if TYPE_CHECKING:
    import torch

MOST_TRIED = 400  # combinations of sizes, for each condition
MOST_CONDITIONS = 64


def sizes_assumed_away(
    program: torch.export.ExportedProgram, specs: Sequence[TensorSpec], example: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, int]]]:
    """(condition, sizes by dimension) at which a condition does not hold that the program asserts: for each the nearest
    to the example's, if no earlier ones break it too.

    specs: of the program's inputs, in the order of the call's tensors. example: the sizes that dynamic ones have there.
    """
    named = _named_symbols(program, specs)
    given: list[dict[str, int]] = []
    for condition in itertools.islice(_conditions(program), MOST_CONDITIONS):
        symbols = sorted(condition.free_symbols, key=str)
        if not symbols or not all(symbol in named and named[symbol].name in example for symbol in symbols):
            continue
        dims = [named[symbol] for symbol in symbols]
        if any(_broken(condition, symbols, [{**example, **sizes}[d.name] for d in dims]) for sizes in given):
            continue
        own = [example[d.name] for d in dims]
        combinations = itertools.product(*[_near(d, size) for d, size in zip(dims, own, strict=True)])
        nearest = sorted(itertools.islice(combinations, MOST_TRIED), key=lambda sizes: _distance(sizes, own))
        for sizes in nearest:
            if _broken(condition, symbols, sizes):
                found = {d.name: size for d, size in zip(dims, sizes, strict=True)}
                given.append(found)
                yield _text(condition, symbols, dims), found
                break


def _named_symbols(program: torch.export.ExportedProgram, specs: Sequence[TensorSpec]) -> dict[Any, Dim]:
    """The symbols of torch's that are sizes of inputs, with the dimensions of the program that they are."""
    import torch

    found: dict[Any, Dim] = {}
    for tensor, spec in zip(input_tensors(program), specs, strict=False):
        for size, dim in zip(getattr(tensor, "shape", ()), spec.shape, strict=False):
            if isinstance(size, torch.SymInt) and isinstance(dim, Dim) and size.node.expr.is_Symbol:
                found.setdefault(size.node.expr, dim)
    return found


def _conditions(program: torch.export.ExportedProgram) -> Iterator[Any]:
    """Assertions and guards, expressions of sympy; each once."""
    import torch

    found: dict[Any, None] = {}
    environments: dict[int, Any] = {}
    for tensor in input_tensors(program):
        open_ones = [size.node.shape_env for size in getattr(tensor, "shape", ()) if isinstance(size, torch.SymInt)]
        environments |= {id(environment): environment for environment in open_ones}
    for node in program.graph.nodes:
        if node.target is torch.ops.aten._assert_scalar.default and isinstance(node.args[0], torch.fx.Node):
            value = node.args[0].meta.get("val")
            if isinstance(value, torch.SymBool):
                found[value.node.expr] = None
    for environment in environments.values():
        found |= {guard.expr: None for guard in environment.guards}
    yield from found


def _near(dim: Dim, size: int) -> list[int]:
    """Legal sizes from 2 on, the size itself and those that differ by few steps first."""
    by = dim.multiple_of
    steps = [0, *(sign * k for k in range(1, 9) for sign in (1, -1)), -(size // (2 * by)), size // by]
    made = dict.fromkeys(size + k * by for k in steps)
    return [s for s in made if s >= max(dim.min, 2) and (dim.max is None or s <= dim.max)]


def _distance(sizes: Sequence[int], own: Sequence[int]) -> tuple[int, int]:
    changes = [abs(a - b) for a, b in zip(sizes, own, strict=True)]
    return sum(map(bool, changes)), sum(changes)


def _broken(condition: Any, symbols: Sequence[Any], sizes: Sequence[int]) -> bool:
    """Whether it is known not to hold there."""
    sympy = import_package("sympy")
    try:
        return condition.xreplace(dict(zip(symbols, map(sympy.Integer, sizes), strict=True))) == False  # noqa: E712
    except (ArithmeticError, ValueError, AssertionError):  # a division by zero, in sympy or in torch's functions
        return False


def _text(condition: Any, symbols: Sequence[Any], dims: Sequence[Dim]) -> str:
    sympy = import_package("sympy")
    return str(condition.xreplace({s: sympy.Symbol(d.name) for s, d in zip(symbols, dims, strict=True)}))


__all__ = ["sizes_assumed_away"]
