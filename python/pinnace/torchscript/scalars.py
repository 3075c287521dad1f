"""Numbers of TorchScript: its operators and Python's math on them. Where data or a dynamic size decide a number, it is
an expression, or the one element of a tensor."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from pinnace import _core
from pinnace.torchscript.values import Number, SizeTensor, is_symbolic, number_kind, symbols_of, unbacked

_core_torch: Any = torch._C
_sym: Any = torch  # whose functions of symbolic numbers have no types


def divide(_: Any, a: Any, b: Any) -> Any:
    """True division."""
    return a / b


def _of_data(run: Any, value: Any, kind: str) -> Any:
    """A tensor or a number that data decide, as a number of that kind; None of any other value."""
    if isinstance(value, torch.Tensor):
        return run.item(value, kind)
    if isinstance(value, Number):
        return value if value.kind == kind else run.item(value.tensor, kind)
    return None


def to_int(run: Any, value: Any) -> Any:
    """int() of a number, a text or a tensor."""
    value = value.value if isinstance(value, SizeTensor) else value
    if (made := _of_data(run, value, "int")) is not None:
        return made
    if isinstance(value, str):
        return int(value)
    if isinstance(value, torch.SymBool):
        return run.item(run.tensor_of(value, "bool"), "int")
    return held(_sym.sym_int(value))


def to_float(run: Any, value: Any) -> Any:
    """float() of a number, a text or a tensor."""
    value = value.value if isinstance(value, SizeTensor) else value
    if (made := _of_data(run, value, "float")) is not None:
        return made
    return float(value) if isinstance(value, str) else _sym.sym_float(value)


def to_bool(run: Any, value: Any) -> Any:
    """bool() of a number or a tensor."""
    value = value.value if isinstance(value, SizeTensor) else value
    if (made := _of_data(run, value, "bool")) is not None:
        return made
    if isinstance(value, torch.SymBool):
        return value
    return value != 0 if is_symbolic(value) else bool(value)


def item_of(run: Any, value: Any) -> Any:
    """item() of a tensor."""
    if isinstance(value, SizeTensor):
        return value.value
    kind = "bool" if value.dtype == torch.bool else "float" if value.dtype.is_floating_point else "int"
    return run.item(value, kind)


def negated(_: Any, value: Any) -> Any:
    """`not`."""
    return _sym.sym_not(value)


def least(_: Any, a: Any, b: Any = None) -> Any:
    """min() of two numbers, of two lists, or of the numbers in one."""
    if isinstance(b, list):
        return min(a, b)
    return _folded(a, _sym.sym_min) if isinstance(a, list) else _sym.sym_min(a, b)


def largest(_: Any, a: Any, b: Any = None) -> Any:
    """max() likewise."""
    if isinstance(b, list):
        return max(a, b)
    return _folded(a, _sym.sym_max) if isinstance(a, list) else _sym.sym_max(a, b)


def _folded(values: list[Any], pick: Callable[[Any, Any], Any]) -> Any:
    made = values[0]
    for value in values[1:]:
        made = pick(made, value)
    return made


def absolute(_: Any, value: Any) -> Any:
    """abs()."""
    return _sym.sym_max(value, -value) if is_symbolic(value) else abs(value)


def _is_data(*values: Any) -> bool:
    """Whether the numbers are floats of which data decide one: torch saves fewer functions of those than of sizes."""
    return "float" in map(number_kind, values) and any(is_symbolic(v) and unbacked(symbols_of(v)) for v in values)


def _on_tensors(run: Any, function: Any, kind: str, *values: Any) -> Number:
    """A function of torch on numbers."""
    made = function(*(run.tensor_of(v, "float") for v in values))
    run.note_made([made])
    return Number(made, kind)


def floor_divide(run: Any, a: Any, b: Any) -> Any:
    """`//`."""
    if not _is_data(a, b):
        return a // b
    return _on_tensors(run, lambda a, b: torch.ops.aten.floor.default(torch.ops.aten.div.Tensor(a, b)), "float", a, b)


def remainder(run: Any, a: Any, b: Any) -> Any:
    """`%`."""
    return _on_tensors(run, torch.ops.aten.remainder.Tensor, "float", a, b) if _is_data(a, b) else a % b


def rounding(name: str) -> Callable[[Any, Any], Any]:
    """math.floor, math.ceil and math.trunc, by their names."""
    function, of_torch = getattr(math, name), getattr(torch.ops.aten, name).default

    def run(run: Any, value: Any) -> Any:
        if number_kind(value) != "float" or not is_symbolic(value):
            return function(value)
        if name == "trunc" or (name == "floor" and run.known(value >= 0)):
            return _sym.sym_int(value)  # torch saves math.trunc, but not math.floor and math.ceil
        return _on_tensors(run, of_torch, "int", value)

    return run


def power(_: Any, a: Any, b: Any) -> Any:
    """`**`."""
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b > 64:
        raise _core.Unsupported(f"{a} ** {b}, which no 64-bit integer holds")
    return a**b


def shifted(_: Any, a: Any, b: Any) -> Any:
    """`<<`."""
    if isinstance(b, int) and b > 63:
        raise _core.Unsupported(f"{a} << {b}, which no 64-bit integer holds")
    return a * (1 << b) if is_symbolic(a) and isinstance(b, int) and b >= 0 else a << b


def shifted_right(_: Any, a: Any, b: Any) -> Any:
    """`>>`."""
    return a // (1 << b) if is_symbolic(a) and isinstance(b, int) and 0 <= b < 63 else a >> b


def factorial(_: Any, value: Any) -> Any:
    """math.factorial."""
    if value > 20:
        raise _core.Unsupported(f"the factorial of {value}, which no 64-bit integer holds")
    return math.factorial(value)


def held(value: Any) -> Any:
    """A number that a script can hold. Unsupported: an integer of more than 64 bits, which torch would cut off."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise _core.Unsupported("TorchScript computes an integer of more than 64 bits")
    return value


def range_length(_: Any, begin: Any, end: Any, step: Any) -> Any:
    """How many steps range(begin, end, step) has."""
    if not any(map(is_symbolic, (begin, end, step))):
        return len(range(begin, end, step))
    return _sym.sym_max(0, (end - begin + step - 1) // step if step > 0 else (begin - end - step - 1) // -step)


def unary(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of one number that needs nothing of the interpreter."""

    def run(_: Any, value: Any) -> Any:
        return function(value)

    return run


def math_function(name: str) -> Callable[[Any, Any], Any]:
    """A function of Python's math; where data or a dynamic size decide its argument, torch's of that name."""
    function, of_torch = getattr(math, name), {"fabs": "abs"}.get(name, name)

    def run(run: Any, value: Any) -> Any:
        operators = getattr(torch.ops.aten, of_torch, None)
        if not is_symbolic(value):
            return function(value)
        if name in ("degrees", "radians"):
            return _sym.sym_float(value) * function(1)
        if operators is None:
            return function(value)
        return _on_tensors(run, operators.default, "bool" if name.startswith("is") else "float", value)

    return run


def math_function_of_two(name: str, of_torch: str = "") -> Callable[[Any, Any, Any], Any]:
    """A function of Python's math on two numbers; where data or a dynamic size decide one, torch's of that name."""
    function = getattr(math, name)

    def run(run: Any, a: Any, b: Any) -> Any:
        if not is_symbolic(a) and not is_symbolic(b):
            return function(a, b)
        operators = getattr(torch.ops.aten, of_torch or name)
        kind = "int" if name == "gcd" else "float"
        overload = getattr(operators, "Tensor" if "Tensor" in operators.overloads() else "default")
        made = overload(run.tensor_of(a, kind), run.tensor_of(b, kind))
        run.note_made([made])
        return Number(made, kind)

    return run


def rounded_to(run: Any, value: Any, digits: Any = 0) -> Any:
    """round()."""
    if not is_symbolic(value):
        return round(float(value), digits)
    return _on_tensors(run, functools.partial(torch.ops.aten.round.decimals, decimals=digits), "float", value)


def logarithm(run: Any, value: Any, *base: Any) -> Any:
    """math.log, with a base perhaps."""
    return math.log(value, *base) if base or not is_symbolic(value) else math_function("log")(run, value)


def binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """A function of two numbers that needs nothing of the interpreter."""

    def run(_: Any, a: Any, b: Any) -> Any:
        return function(a, b)

    return run


@functools.cache
def _torch_function(kind: str, overload: str) -> Callable[..., Any]:
    made: Callable[..., Any] = _core_torch._get_operation_overload(kind, overload)[0]
    return made


def by_torch(kind: str, schema: Any, values: list[Any]) -> Any:
    """What torch computes of known numbers where floats are among them: infinities and NaN where Python raises errors,
    and 1.0 // 0.1 is 10. None: of other values."""
    if schema is None or not all(isinstance(v, (bool, int, float)) for v in values):
        return None
    declared = [str(a.type) for a in schema.arguments]
    floats = [str(r.type) for r in schema.returns] == ["float"] or any(isinstance(v, float) for v in values)
    if not floats or not all(t in ("bool", "int", "float") for t in declared):
        return None
    return _torch_function(kind, schema.overload_name)(*values)


__all__ = [
    "absolute",
    "binary",
    "by_torch",
    "divide",
    "factorial",
    "floor_divide",
    "held",
    "item_of",
    "largest",
    "least",
    "logarithm",
    "math_function",
    "math_function_of_two",
    "negated",
    "power",
    "range_length",
    "remainder",
    "rounded_to",
    "rounding",
    "shifted",
    "shifted_right",
    "to_bool",
    "to_float",
    "to_int",
    "unary",
]
