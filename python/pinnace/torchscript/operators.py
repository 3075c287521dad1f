"""What operators of TorchScript do that work on Python's values: numbers, text, lists, dicts, tuples and objects.

A table of functions by the operators' names, of which the first argument is the interpreter. Those in RAW get values as
they are; those in COMPUTED get numbers that Python can compute with, if only as expressions of sizes.
"""

from __future__ import annotations

import enum
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import torch

from pinnace import _core
from pinnace.torchscript.rows import unbound
from pinnace.torchscript.scalars import (
    absolute,
    binary,
    divide,
    factorial,
    floor_divide,
    item_of,
    largest,
    least,
    logarithm,
    math_function,
    math_function_of_two,
    negated,
    power,
    range_length,
    remainder,
    rounded_to,
    rounding,
    shifted,
    shifted_right,
    to_bool,
    to_float,
    to_int,
    unary,
)
from pinnace.torchscript.values import (
    DTYPES,
    MISSING,
    TYPE_NUMBERS,
    Number,
    Object,
    SizeTensor,
    UnknownText,
    is_symbolic,
    number_kind,
)

_core_torch: Any = torch._C
_sym: Any = torch  # whose functions of symbolic numbers have no types
MOST_ELEMENTS = 1 << 20  # of a list, a dict or a text


def sized(count: Any) -> None:
    """Unsupported: more elements than a list, dict or text of a script may have here."""
    if isinstance(count, int) and count > MOST_ELEMENTS:
        raise _core.Unsupported(f"a list, dict or text of {count} elements, at most {MOST_ELEMENTS} are followed")


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


def _stacked_numbers(run: Any, values: list[Any]) -> Any:
    """Numbers in a list, where data or dynamic sizes decide one of them, as a tensor; None: they are known, or none."""
    if not any(is_symbolic(run.plain(v)) for v in values):
        return None
    return torch.ops.aten.stack.default([run.tensor_of(v, number_kind(values[0])) for v in values])


def _sorted(run: Any, own: list[Any], reverse: Any = False, *_: Any) -> list[Any]:
    numbers = _stacked_numbers(run, own)
    if numbers is None:
        return sorted(own, key=run.plain, reverse=bool(reverse))
    made = torch.ops.aten.sort.default(numbers, 0, bool(reverse))[0]
    run.note_made([made])
    return [run.item(made[i], number_kind(own[0])) for i in range(len(own))]


def _sort(run: Any, own: list[Any], reverse: Any = False, *_: Any) -> None:
    made = _sorted(run, own, reverse)
    run.changing(own)[:] = made


def _known_place(run: Any, own: list[Any], value: Any, what: str) -> int:
    """Where a value is in a list. ConversionError: data or a dynamic size decide."""
    numbers = [run.plain(v) for v in own]
    value = run.plain(value)
    if any(map(is_symbolic, [*numbers, value])):
        raise _core.ConversionError(f"{what} of a list with numbers that depend on data or on a dynamic size")
    return numbers.index(value)


def _remove(run: Any, own: list[Any], value: Any) -> None:
    at = _known_place(run, own, value, "remove()")
    del run.changing(own)[at]


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


def _bits(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Of integers bit by bit, of flags as Python does it."""

    def run(run: Any, a: Any, b: Any) -> Any:
        if not (is_symbolic(a) or is_symbolic(b)) or number_kind(a) == "bool":
            return function(a, b)
        of_torch = getattr(torch.ops.aten, f"bitwise_{name}").Tensor
        made = of_torch(run.tensor_of(a, "int"), run.tensor_of(b, "int"))
        run.note_made([made])
        return Number(made, "int")

    return run


def _exclusive(run: Any, a: Any, b: Any) -> Any:
    return _unequal(run, a, b) if number_kind(a) == number_kind(b) == "bool" else _bits("xor", operator.xor)(run, a, b)


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
    if isinstance(a, enum.Enum) and isinstance(b, enum.Enum):
        raise _core.ConversionError("`is` of enums, which TorchScript answers by their memory: compare with ==")
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
    return TYPE_NUMBERS.get(value.dtype, 6)


def _device(_: Any, *_value: Any) -> Any:
    return torch.device("cpu")


def _is_float(_: Any, value: Any) -> Any:
    return value.dtype.is_floating_point


def _size_tensor(_: Any, value: Any) -> Any:
    if isinstance(value, Number):
        return value.tensor
    kind = number_kind(value)
    dtype = {"bool": torch.bool, "int": torch.int64}.get(kind, torch.float64)
    return SizeTensor(value, dtype)


def _chunk(run: Any, value: Any, chunks: Any = 1, dim: Any = 0) -> Any:
    return list(torch.ops.aten.chunk.default(run.here(value), run.index(chunks), run.index(dim)))


def _unbind(run: Any, value: Any, dim: Any = 0) -> Any:
    tensor, dim = run.argument(value, "Tensor"), run.index(dim)
    made = unbound(run, tensor, dim)
    return list(torch.ops.aten.unbind.int(tensor, dim)) if made is None else made


def _flat(value: Any) -> list[Any]:
    made: list[Any] = []
    for v in value:
        if isinstance(v, list):
            made += _flat(v)
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
    return TYPE_NUMBERS[torch.promote_types(DTYPES[a], DTYPES[b])]


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
        if name in ("count", "rsplit", "replace") and values[:1] == ("",):
            raise ValueError("torch looks for an empty text for ever")
        if name == "center" and values[0] <= len(own):
            return own  # torch adds spaces without end where the width is negative
        # torch's own: an end of -1 is that of the text, and some answers are no other language's.
        return _core_torch._jit_get_operation(f"aten::{name}")[0](own, *values)

    return run


def _index(run: Any, own: Any, *values: Any) -> Any:
    if isinstance(own, str):
        return _method("index")(run, own, *values)
    return _known_place(run, own, values[0], "index()")


def _occurrences(run: Any, own: Any, *values: Any) -> Any:
    if isinstance(own, str):
        return _method("count")(run, own, *values)
    numbers = _stacked_numbers(run, [*own, *values])
    if numbers is None:
        return [run.plain(v) for v in own].count(run.plain(values[0]))
    made = (numbers[:-1] == numbers[-1]).sum()
    run.note_made([made])
    return run.item(made, "int")


RAW: dict[str, Callable[..., Any]] = {
    "aten::IntImplicit": to_int,
    "aten::Int": to_int,
    "aten::Float": to_float,
    "aten::FloatImplicit": to_float,
    "aten::Bool": to_bool,
    "aten::ScalarImplicit": item_of,
    "aten::item": item_of,
    "prim::ImplicitTensorToNum": item_of,
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
    "aten::unbind": _unbind,
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
    "sorted": _sorted,
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
    "__range_length": range_length,
    "add_": _extend,
    "mul_": _repeat_in_place,
}

COMPUTED: dict[str, Callable[..., Any]] = {
    "add": _add,
    "sub": binary(operator.sub),
    "mul": _multiply,
    "div": divide,
    "floordiv": floor_divide,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "fmod": math_function_of_two("fmod"),
    "pow": power,
    "neg": unary(operator.neg),
    "eq": _equal,
    "ne": _unequal,
    "lt": binary(operator.lt),
    "le": binary(operator.le),
    "gt": binary(operator.gt),
    "ge": binary(operator.ge),
    "__and__": _bits("and", operator.and_),
    "__or__": _bits("or", operator.or_),
    "__xor__": _exclusive,
    "__lshift__": shifted,
    "__rshift__": shifted_right,
    "__not__": negated,
    "bitwise_not": unary(operator.invert),
    "min": least,
    "max": largest,
    "abs": absolute,
    "floor": rounding("floor"),
    "ceil": rounding("ceil"),
    "round": rounded_to,
    "trunc": rounding("trunc"),
    "log": logarithm,
    "atan2": math_function_of_two("atan2"),
    "copysign": math_function_of_two("copysign"),
    "gcd": math_function_of_two("gcd"),
    "hypot": math_function_of_two("hypot"),
    "mathremainder": binary(math.remainder),
    "modf": unary(math.modf),
    "frexp": unary(math.frexp),
    "ldexp": binary(math.ldexp),
    "divmod": binary(divmod),
    "factorial": factorial,
    "sum": lambda _, values: sum(values),
    "all": lambda _, values: all(values),
    "any": lambda _, values: any(values),
    "ord": unary(ord),
    "chr": unary(chr),
    "hex": unary(hex),
    "oct": unary(oct),
    "bin": unary(bin),
    "__derive_index": lambda _, index, start, step: start + index * step,
    **{name: math_function(name) for name in _MATH.split()},
    **{name: _method(name) for name in _TEXT.split()},
}


def python_function(kind: str) -> tuple[Callable[..., Any] | None, bool]:
    """The function for an operator that is none of the dispatcher's, and whether it computes with plain numbers."""
    name = kind.partition("::")[2]
    if name in PYTHON:
        return PYTHON[name], False
    return COMPUTED.get(name), True


__all__ = ["COMPUTED", "MOST_ELEMENTS", "PYTHON", "RAW", "python_function", "sized"]
