"""What operators of TorchScript do that work on Python's values: numbers, text, lists, dicts, tuples and objects.

A table of functions by the operators' names, of which the first argument is the interpreter. Those in RAW get values as
they are; those in COMPUTED get numbers that Python can compute with, if only as expressions of sizes.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import torch

from pinnace import _core
from pinnace.torchscript.values import (
    MISSING,
    Number,
    Object,
    SizeTensor,
    UnknownText,
    is_symbolic,
    number_kind,
    symbols_of,
    unbacked,
)

_sym: Any = torch  # whose functions of symbolic numbers have no types
MOST_ELEMENTS = 1 << 20  # of a list, a dict or a text
# By c10's numbers, which scripts have for element types.
_TYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex32: 8,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.qint8: 12,
    torch.quint8: 13,
    torch.qint32: 14,
    torch.bfloat16: 15,
}
DTYPES = {number: dtype for dtype, number in _TYPES.items()}


def sized(count: Any) -> None:
    """Unsupported: more elements than a list, dict or text of a script may have here."""
    if isinstance(count, int) and count > MOST_ELEMENTS:
        raise _core.Unsupported(f"a list, dict or text of {count} elements, at most {MOST_ELEMENTS} are followed")


# ----------------------------------------------------------------------------------------------------------- numbers


def _divide(_: Any, a: Any, b: Any) -> Any:
    return a / b


def _of_data(run: Any, value: Any, kind: str) -> Any:
    """A tensor or a number that data decide, as a number of that kind; None of any other value."""
    if isinstance(value, torch.Tensor):
        return run.item(value, kind)
    if isinstance(value, Number):
        return value if value.kind == kind else run.item(value.tensor, kind)
    return None


def _to_int(run: Any, value: Any) -> Any:
    value = value.value if isinstance(value, SizeTensor) else value
    if (made := _of_data(run, value, "int")) is not None:
        return made
    if isinstance(value, str):
        return int(value)
    if isinstance(value, torch.SymBool):
        return run.item(run.tensor_of(value, "bool"), "int")
    return _sym.sym_int(value)


def _to_float(run: Any, value: Any) -> Any:
    value = value.value if isinstance(value, SizeTensor) else value
    if (made := _of_data(run, value, "float")) is not None:
        return made
    return float(value) if isinstance(value, str) else _sym.sym_float(value)


def _to_bool(run: Any, value: Any) -> Any:
    value = value.value if isinstance(value, SizeTensor) else value
    if (made := _of_data(run, value, "bool")) is not None:
        return made
    if isinstance(value, torch.SymBool):
        return value
    return value != 0 if is_symbolic(value) else bool(value)


def _item(run: Any, value: Any) -> Any:
    if isinstance(value, SizeTensor):
        return value.value
    kind = "bool" if value.dtype == torch.bool else "float" if value.dtype.is_floating_point else "int"
    return run.item(value, kind)


def _not(_: Any, value: Any) -> Any:
    return _sym.sym_not(value)


def _least(_: Any, a: Any, b: Any = None) -> Any:
    return _folded(a, _sym.sym_min) if isinstance(a, list) else _sym.sym_min(a, b)


def _largest(_: Any, a: Any, b: Any = None) -> Any:
    return _folded(a, _sym.sym_max) if isinstance(a, list) else _sym.sym_max(a, b)


def _folded(values: list[Any], pick: Callable[[Any, Any], Any]) -> Any:
    made = values[0]
    for value in values[1:]:
        made = pick(made, value)
    return made


def _absolute(_: Any, value: Any) -> Any:
    return _sym.sym_max(value, -value) if is_symbolic(value) else abs(value)


def _is_data(*values: Any) -> bool:
    """Whether the numbers are floats of which data decide one: torch saves fewer functions of those than of sizes."""
    return "float" in map(number_kind, values) and any(is_symbolic(v) and unbacked(symbols_of(v)) for v in values)


def _on_tensors(run: Any, function: Any, kind: str, *values: Any) -> Number:
    """A function of torch on numbers."""
    made = function(*(run.tensor_of(v, "float") for v in values))
    run.note_made([made])
    return Number(made, kind)


def _floor_divide(run: Any, a: Any, b: Any) -> Any:
    return _on_tensors(run, torch.ops.aten.floor_divide.default, "float", a, b) if _is_data(a, b) else a // b


def _remainder(run: Any, a: Any, b: Any) -> Any:
    return _on_tensors(run, torch.ops.aten.remainder.Tensor, "float", a, b) if _is_data(a, b) else a % b


def _rounded(name: str) -> Callable[[Any, Any], Any]:
    function, of_torch = getattr(math, name), getattr(torch.ops.aten, name).default

    def run(run: Any, value: Any) -> Any:
        if number_kind(value) != "float" or not is_symbolic(value):
            return function(value)
        if name == "trunc" or (name == "floor" and run.known(value >= 0)):
            return _sym.sym_int(value)  # torch saves math.trunc, but not math.floor and math.ceil
        return _on_tensors(run, of_torch, "int", value)

    return run


def _power(_: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b > 64:
        raise _core.Unsupported(f"{a} ** {b}, which no 64-bit integer holds")
    return a**b


def _shifted(_: Any, a: Any, b: Any) -> Any:
    if isinstance(b, int) and b > 63:
        raise _core.Unsupported(f"{a} << {b}, which no 64-bit integer holds")
    return a << b


def _factorial(_: Any, value: Any) -> Any:
    if value > 20:
        raise _core.Unsupported(f"the factorial of {value}, which no 64-bit integer holds")
    return math.factorial(value)


def held(value: Any) -> Any:
    """A number that a script can hold. Unsupported: an integer of more than 64 bits, which torch would cut off."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise _core.Unsupported("TorchScript computes an integer of more than 64 bits")
    return value


def _shape_length(_: Any, begin: Any, end: Any, step: Any) -> Any:
    """How many steps range(begin, end, step) has."""
    if not any(map(is_symbolic, (begin, end, step))):
        return len(range(begin, end, step))
    return _sym.sym_max(0, (end - begin + step - 1) // step if step > 0 else (begin - end - step - 1) // -step)


def _unary(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def run(_: Any, value: Any) -> Any:
        return function(value)

    return run


def _math(name: str) -> Callable[[Any, Any], Any]:
    """A function of Python's math; where data or an open size decide its argument, torch's of that name."""
    function, of_torch = getattr(math, name), {"fabs": "abs"}.get(name, name)

    def run(run: Any, value: Any) -> Any:
        operators = getattr(torch.ops.aten, of_torch, None)
        if not is_symbolic(value) or operators is None:
            return function(value)
        return _on_tensors(run, operators.default, "bool" if name.startswith("is") else "float", value)

    return run


def _round(run: Any, value: Any, digits: Any = 0) -> Any:
    if not is_symbolic(value):
        return round(float(value), digits)
    return _on_tensors(run, functools.partial(torch.ops.aten.round.decimals, decimals=digits), "float", value)


def _logarithm(run: Any, value: Any, *base: Any) -> Any:
    return math.log(value, *base) if base or not is_symbolic(value) else _math("log")(run, value)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def run(_: Any, a: Any, b: Any) -> Any:
        return function(a, b)

    return run


# ------------------------------------------------------------------------------------------------ lists, dicts, text


def _append(run: Any, own: list[Any], value: Any) -> Any:
    run.changing(own).append(value)
    sized(len(own))
    return own


def _extend(run: Any, own: list[Any], values: list[Any]) -> Any:
    sized(len(own) + len(values))
    run.changing(own).extend(values)
    return own


def _repeated(run: Any, a: Any, b: Any) -> Any:
    own, count = (a, b) if isinstance(a, (list, str)) else (b, a)
    sized(len(own) * int(count))
    return own * int(count)


def _multiply(run: Any, a: Any, b: Any) -> Any:
    return _repeated(run, a, b) if isinstance(a, (list, str)) or isinstance(b, (list, str)) else a * b


def _add(run: Any, a: Any, b: Any, *_: Any) -> Any:
    if isinstance(a, (list, str)):
        sized(len(a) + len(b))
    return a + b


def _pop(run: Any, own: Any, *at: Any) -> Any:
    own = run.changing(own)
    return own.pop(*map(run.index, at))


def _insert(run: Any, own: list[Any], at: Any, value: Any) -> None:
    run.changing(own).insert(run.index(at), value)
    sized(len(own))


def _set_item(run: Any, own: Any, key: Any, value: Any) -> Any:
    if isinstance(own, dict):
        sized(len(own) + 1)
        run.changing(own)[run.key(key)] = value
    else:
        run.changing(own)[run.index(key)] = value
    return own


def _get_item(run: Any, own: Any, key: Any) -> Any:
    if isinstance(own, dict):
        return own[run.key(key)]
    at = run.plain(key)
    return run.listed(own, at) if isinstance(own, list) and is_symbolic(at) else own[at]


def _delete(run: Any, own: Any, key: Any) -> None:
    del run.changing(own)[run.key(key) if isinstance(own, dict) else run.index(key)]


def _get(run: Any, own: dict[Any, Any], key: Any, instead: Any = None) -> Any:
    return own.get(run.key(key), instead)


def _set_default(run: Any, own: dict[Any, Any], key: Any, value: Any) -> Any:
    return run.changing(own).setdefault(run.key(key), value)


def _put_all(run: Any, own: dict[Any, Any], other: dict[Any, Any]) -> None:
    sized(len(own) + len(other))
    run.changing(own).update(other)


def _clear(run: Any, own: Any) -> Any:
    run.changing(own).clear()
    return own


def _reverse(run: Any, own: list[Any]) -> None:
    run.changing(own).reverse()


def _sort(run: Any, own: list[Any], reverse: Any = False, *_: Any) -> None:
    run.changing(own).sort(key=run.plain, reverse=bool(reverse))


def _remove(run: Any, own: list[Any], value: Any) -> None:
    run.changing(own).remove(value)


def _pop_item(run: Any, own: dict[Any, Any]) -> Any:
    key = next(iter(own))  # the first one, where Python takes the last
    return key, run.changing(own).pop(key)


def _repeat_in_place(run: Any, own: list[Any], count: Any) -> Any:
    made = _repeated(run, own, run.index(count))
    run.changing(own)[:] = made
    return own


def _equal(run: Any, a: Any, b: Any) -> Any:
    """Of numbers, texts, and lists of them; elements of which the data decide are compared one by one."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return False
        same: Any = True
        for x, y in zip(a, b, strict=True):
            now = _equal(run, x, y)
            if not is_symbolic(now):
                if not now:
                    return False
            else:
                same = now if same is True else same & now
        return same
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        raise _core.ConversionError("a comparison of lists of tensors in TorchScript")
    if is_symbolic(a) or is_symbolic(b):
        kinds = {number_kind(a), number_kind(b)}
        if kinds == {"bool"}:
            if is_symbolic(a) and is_symbolic(b):
                return (a & b) | _sym.sym_not(a | b)
            return _same_flag(a, b)
    return a == b


def _same_flag(a: Any, b: Any) -> Any:
    flag, known = (a, b) if is_symbolic(a) else (b, a)
    return flag if known else _sym.sym_not(flag)


def _unequal(run: Any, a: Any, b: Any) -> Any:
    return _sym.sym_not(_equal(run, a, b))


def _exclusive(run: Any, a: Any, b: Any) -> Any:
    return _unequal(run, a, b) if number_kind(a) == number_kind(b) == "bool" else a ^ b


def _slice(run: Any, own: Any, start: Any, end: Any, step: Any) -> Any:
    return own[run.index(start) : run.index(end) : run.index(step)]


def _set_slice(run: Any, own: list[Any], values: list[Any], start: Any, end: Any, step: Any) -> Any:
    run.changing(own)[run.index(start) : run.index(end) : run.index(step)] = values
    return own


def _length(run: Any, own: Any) -> Any:
    if isinstance(own, SizeTensor):
        return 0
    return run.here(own).shape[0] if isinstance(own, torch.Tensor) else len(own)


def _contains(run: Any, own: Any, value: Any) -> Any:
    if isinstance(own, dict):
        return run.key(value) in own
    value = run.plain(value)
    found: Any = False
    for item in own:
        same = run.plain(item) == value
        if not is_symbolic(same):
            if same:
                return True
        else:
            found = same if found is False else found | same
    return found


def _as_list(_: Any, value: Any) -> Any:
    sized(len(value))
    return list(value)


def _dict(run: Any, *pairs: Any) -> Any:
    if not pairs:
        return {}
    return dict(pairs[0].items() if isinstance(pairs[0], dict) else pairs[0])


def _items(_: Any, own: dict[Any, Any]) -> Any:
    return [tuple(item) for item in own.items()]


def _format(run: Any, text: str, *values: Any) -> Any:
    return run.text(text, values)


def _string(run: Any, value: Any) -> Any:
    return run.text("{}", (value,))


def _percent(run: Any, text: str, *values: Any) -> Any:
    if len(values) == 1 and isinstance(values[0], tuple):
        (values,) = values
    given = tuple(v if isinstance(v, (str, int, float)) else run.text("{}", (v,)) for v in values)
    if re.search(r"%[^a-zA-Z%]*(\d{4}|\*)", text):
        raise _core.Unsupported("a text of TorchScript, formatted with a width of four digits")
    if any(isinstance(v, UnknownText) for v in given):
        return UnknownText(f"{text} with {', '.join(map(str, given))}")
    return text % given


def _is(_: Any, a: Any, b: Any) -> Any:
    return a is b if a is None or b is None or isinstance(a, (torch.Tensor, list, dict, Object)) else a == b


def _is_not(run: Any, a: Any, b: Any) -> Any:
    return not _is(run, a, b)


def _unchanged(_: Any, value: Any, *_others: Any) -> Any:
    return value


def _nothing(_: Any, *_values: Any) -> Any:
    return None


def _false(_: Any, *_values: Any) -> Any:
    return False


def _unwrapped(run: Any, value: Any) -> Any:
    if value is None:
        raise run.raised("Unwrapping null optional")
    return value


def _range(_: Any, *ends: Any) -> Any:
    made = range(*ends)
    sized(len(made))
    return list(made)


# ------------------------------------------------------------------------------------------------------------ tensors


def _size(run: Any, value: Any, dim: Any = None) -> Any:
    if isinstance(value, SizeTensor):
        return []
    shape = run.here(value).shape
    return list(shape) if dim is None else shape[run.index(dim)]


def _dim(run: Any, value: Any) -> Any:
    return 0 if isinstance(value, SizeTensor) else run.here(value).dim()


def _count(run: Any, value: Any) -> Any:
    return 1 if isinstance(value, SizeTensor) else run.here(value).numel()


def _dtype(_: Any, value: Any) -> Any:
    return _TYPES.get(value.dtype, 6)


def _device(_: Any, *_value: Any) -> Any:
    return torch.device("cpu")


def _is_float(_: Any, value: Any) -> Any:
    return value.dtype.is_floating_point


def _size_tensor(_: Any, value: Any) -> Any:
    if isinstance(value, Number):
        return value.tensor
    kind = number_kind(value)
    dtype = {"bool": torch.bool, "int": torch.int64}.get(kind, torch.float32)
    return SizeTensor(value, dtype)


def _chunk(run: Any, value: Any, chunks: Any = 1, dim: Any = 0) -> Any:
    return list(torch.ops.aten.chunk.default(run.here(value), run.index(chunks), run.index(dim)))


def _flat(value: Any) -> list[Any]:
    left, made = [value], []
    while left:
        v = left.pop(0)
        if isinstance(v, list):
            left = [*v, *left]
        else:
            made.append(v)
    return made


def _tensor(run: Any, data: Any, dtype: Any = None, *_others: Any) -> Any:
    """torch.tensor of numbers, perhaps in lists."""
    if isinstance(data, SizeTensor):
        data = data.value
    if isinstance(data, torch.Tensor):
        made = run.here(data).clone()
        return made if dtype is None else made.to(DTYPES[dtype])
    numbers = [run.plain(v) for v in _flat(data)] if isinstance(data, list) else [run.plain(data)]
    sized(len(numbers))
    kinds = {number_kind(v) for v in numbers}
    kind = "float" if "float" in kinds or not numbers else "int" if "int" in kinds else "bool"
    own = DTYPES[dtype] if dtype is not None else {"int": torch.int64, "bool": torch.bool}.get(kind, torch.float32)
    shape, level = [], data
    while isinstance(level, list):
        shape.append(len(level))
        level = level[0] if level else None
    if not any(map(is_symbolic, numbers)):
        return run.constant(numbers, shape, own)
    parts = [run.tensor_of(v, number_kind(v)).to(own) for v in numbers]
    return torch.ops.aten.stack.default(parts).reshape(shape) if shape else parts[0]


def _full_type(_: Any, a: Any, b: Any) -> Any:
    return _TYPES[torch.promote_types(DTYPES[a], DTYPES[b])]


_MATH = (
    "acos acosh asin asinh atan atanh cos cosh degrees erf erfc exp expm1 gamma lgamma log10 log1p radians sin sinh "
)
_MATH += "sqrt tan tanh fabs isnan isinf isfinite"
_TEXT = "capitalize center endswith expandtabs find isalnum isalpha isdecimal isdigit isidentifier islower isnumeric "
_TEXT += "isprintable isspace istitle isupper join ljust lower lstrip partition replace rfind rindex rjust rpartition "
_TEXT += "rsplit rstrip split splitlines startswith strip swapcase title upper zfill"


_PADDING = frozenset(("center", "expandtabs", "ljust", "rjust", "zfill"))


def _method(name: str) -> Callable[..., Any]:
    def run(_: Any, own: str, *values: Any) -> Any:
        numbers = [v for v in values if isinstance(v, int)]
        sized(max([*numbers, 0]) if name in _PADDING else 0)
        if name == "join":
            sized(sum(len(v) + len(own) for v in values[0]))
        if name == "replace":
            sized((own.count(values[0]) + 1) * len(values[1]) + len(own))
        if name == "count" and not values[0]:
            raise ValueError("torch counts an empty text for ever")
        # torch's own: an end of -1 is that of the text, and some answers are no other language's.
        return torch._C._jit_get_operation(f"aten::{name}")[0](own, *values)

    return run


def _index(run: Any, own: Any, *values: Any) -> Any:
    if isinstance(own, str):
        return _method("index")(run, own, *values)
    return [run.plain(v) for v in own].index(run.plain(values[0]))


def _occurrences(run: Any, own: Any, *values: Any) -> Any:
    return _method("count")(run, own, *values) if isinstance(own, str) else own.count(*values)


RAW: dict[str, Callable[..., Any]] = {
    "aten::IntImplicit": _to_int,
    "aten::Int": _to_int,
    "aten::Float": _to_float,
    "aten::FloatImplicit": _to_float,
    "aten::Bool": _to_bool,
    "aten::ScalarImplicit": _item,
    "aten::item": _item,
    "prim::ImplicitTensorToNum": _item,
    "aten::size": _size,
    "aten::sym_size": _size,
    "prim::shape": _size,
    "aten::dim": _dim,
    "aten::ndimension": _dim,
    "aten::numel": _count,
    "aten::len": _length,
    "aten::is_floating_point": _is_float,
    "aten::requires_grad_": _unchanged,
    "aten::tensor": _tensor,
    "aten::as_tensor": _tensor,
    "aten::chunk": _chunk,
    "aten::promote_types": _full_type,
    "aten::wait": _unchanged,
    "aten::warn": _nothing,
    "aten::is_grad_enabled": lambda _: False,
    "aten::set_grad_enabled": _nothing,
    "aten::__is__": _is,
    "aten::__isnot__": _is_not,
    "aten::_unwrap_optional": _unwrapped,
    "aten::format": _format,
    "aten::str": _string,
    "aten::percentFormat": _percent,
    "aten::is_scripting": lambda _: True,
    "aten::device": _device,
    "prim::NumToTensor": _size_tensor,
    "prim::Print": _nothing,
    "prim::Uninitialized": lambda _: MISSING,
    "prim::unchecked_cast": _unchanged,
    "prim::unchecked_unwrap_optional": _unwrapped,
    "prim::data": _unchanged,
    "prim::dtype": _dtype,
    "prim::device": _device,
    "prim::layout": lambda _, _value: 0,
    "prim::type": lambda _, _value: "cpu",
    "prim::index": lambda _, _value: -1,
    "prim::requires_grad": _false,
    "prim::is_cuda": _false,
    "prim::is_cpu": lambda _, _value: True,
    "prim::is_quantized": _false,
    "prim::is_meta": _false,
    "prim::is_mkldnn": _false,
    "prim::is_sparse": _false,
    "prim::is_nested": _false,
    "prim::is_xla": _false,
    "prim::is_vulkan": _false,
    "prim::is_mps": _false,
    "prim::EnumName": lambda _, value: value.name,
    "prim::EnumValue": lambda _, value: value.value,
    "prim::SetItem": _set_item,
    "prim::rangelist": _range,
    "prim::TupleIndex": _get_item,
    "prim::TupleSlice": _slice,
}

# By name; of these, what torch's dispatcher has with tensors goes there.
PYTHON: dict[str, Callable[..., Any]] = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "clear": _clear,
    "reverse": _reverse,
    "sort": _sort,
    "sorted": lambda run, own, *_: sorted(own, key=run.plain),
    "remove": _remove,
    "popitem": _pop_item,
    "_set_item": _set_item,
    "__setitem__": _set_item,
    "__getitem__": _get_item,
    "__delitem__": _delete,
    "__contains__": _contains,
    "Delete": _delete,
    "get": _get,
    "setdefault": _set_default,
    "update": _put_all,
    "keys": lambda _, own: list(own),
    "values": lambda _, own: list(own.values()),
    "items": _items,
    "dict": _dict,
    "list": _as_list,
    "copy": lambda _, own: own.copy(),
    "slice": _slice,
    "index": _index,
    "count": _occurrences,
    "_slice_scatter_": _set_slice,
    "__range_length": _shape_length,
    "add_": _extend,
    "mul_": _repeat_in_place,
}

COMPUTED: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": _binary(operator.sub),
    "mul": _multiply,
    "div": _divide,
    "floordiv": _floor_divide,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _binary(math.fmod),
    "pow": _power,
    "neg": _unary(operator.neg),
    "eq": _equal,
    "ne": _unequal,
    "lt": _binary(operator.lt),
    "le": _binary(operator.le),
    "gt": _binary(operator.gt),
    "ge": _binary(operator.ge),
    "__and__": _binary(operator.and_),
    "__or__": _binary(operator.or_),
    "__xor__": _exclusive,
    "__lshift__": _shifted,
    "__rshift__": _binary(operator.rshift),
    "__not__": _not,
    "bitwise_not": _unary(operator.invert),
    "min": _least,
    "max": _largest,
    "abs": _absolute,
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "round": _round,
    "trunc": _rounded("trunc"),
    "log": _logarithm,
    "atan2": _binary(math.atan2),
    "copysign": _binary(math.copysign),
    "gcd": _binary(math.gcd),
    "hypot": _binary(math.hypot),
    "mathremainder": _binary(math.remainder),
    "modf": _unary(math.modf),
    "frexp": _unary(math.frexp),
    "ldexp": _binary(math.ldexp),
    "divmod": _binary(divmod),
    "factorial": _factorial,
    "sum": lambda _, values: sum(values),
    "all": lambda _, values: all(values),
    "any": lambda _, values: any(values),
    "ord": _unary(ord),
    "chr": _unary(chr),
    "hex": _unary(hex),
    "oct": _unary(oct),
    "bin": _unary(bin),
    "__derive_index": lambda _, index, start, step: start + index * step,
    **{name: _math(name) for name in _MATH.split()},
    **{name: _method(name) for name in _TEXT.split()},
}


def python_function(kind: str) -> tuple[Callable[..., Any] | None, bool]:
    """The function for an operator that is none of the dispatcher's, and whether it computes with plain numbers."""
    name = kind.partition("::")[2]
    if name in PYTHON:
        return PYTHON[name], False
    return COMPUTED.get(name), True


# Of size tensors alone: numbers again.
_OF_SIZES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, alpha=1: a + b * alpha,
    "sub": lambda a, b, alpha=1: a - b * alpha,
    "rsub": lambda a, b, alpha=1: b - a * alpha,
    "mul": operator.mul,
    "div": operator.truediv,
    "true_divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "neg": operator.neg,
    "floor": math.floor,
    "ceil": math.ceil,
    "detach": lambda a: a,
    "clone": lambda a, *_: a,
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}


def of_sizes(kind: str, values: list[Any]) -> Any:
    """The result of an operator on numbers that only look like tensors; None: it needs them as tensors."""
    name = kind.partition("::")[2].rstrip("_")
    if any(isinstance(v, (torch.Tensor, Number)) for v in values):
        return None
    plain = [v.value if isinstance(v, SizeTensor) else v for v in values]
    if name in ("div", "divide") and len(plain) == 3:
        return _size_tensor(None, plain[0] // plain[1]) if plain[2] in ("floor", "trunc") else None
    function = _OF_SIZES.get(name)
    if function is None:
        return None
    made = function(*plain)
    dtype = torch.float32 if number_kind(made) == "float" else torch.bool if number_kind(made) == "bool" else None
    if name in ("floor", "ceil") and isinstance(values[0], SizeTensor):
        dtype = values[0].dtype
    return SizeTensor(made, dtype or torch.int64)


__all__ = ["COMPUTED", "DTYPES", "MOST_ELEMENTS", "PYTHON", "RAW", "held", "of_sizes", "python_function", "sized"]
