"""Values of TorchScript that Python has none of, and how values of two ways through a graph become one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

NUMBERS = (bool, int, float, torch.SymBool, torch.SymInt, torch.SymFloat)
_KINDS = {"bool": torch.bool, "int": torch.int64, "float": torch.float64}
# By c10's numbers, which scripts have for element types.
TYPE_NUMBERS = {
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
DTYPES = {number: dtype for dtype, number in TYPE_NUMBERS.items()}


class Missing:
    """What a way through the graph leaves without a value, since nothing reads it there."""


MISSING = Missing()


class Number:
    """A number that depends on data: the one element of a tensor."""

    def __init__(self, tensor: torch.Tensor, kind: str) -> None:
        """kind: "bool", "int" or "float"."""
        self.tensor, self.kind = tensor, kind


class SizeTensor:
    """A tensor without dimensions whose number is known while the graph is followed, as traces have sizes."""

    def __init__(self, value: Any, dtype: torch.dtype) -> None:
        self.value, self.dtype = value, dtype


class UnknownText(str):
    """A text of which a part depends on data or on a dynamic size: it may be shown, nothing can be computed with it."""


class Object:
    """An instance of a class of the script."""

    def __init__(self, kind: str, prototype: Any, attributes: dict[str, Any]) -> None:
        """prototype: torch's object of that class, which has its methods' graphs."""
        self.kind, self.prototype, self.attributes = kind, prototype, attributes


def number_kind(value: Any) -> str:
    """ "bool", "int" or "float"; empty for what is no number."""
    if isinstance(value, Number):
        return value.kind
    if isinstance(value, (bool, torch.SymBool)):
        return "bool"
    if isinstance(value, (int, torch.SymInt)):
        return "int"
    return "float" if isinstance(value, (float, torch.SymFloat)) else ""


def number_dtype(kind: str) -> torch.dtype:
    """Of the tensor that holds such a number."""
    return _KINDS[kind]


def is_symbolic(value: Any) -> bool:
    """Whether a number is an expression of sizes or of data."""
    return isinstance(value, (torch.SymBool, torch.SymInt, torch.SymFloat))


def symbols_of(value: Any) -> set[Any]:
    """The symbols in a number's expression."""
    node = getattr(value, "node", None)
    return set(node.expr.free_symbols) if node is not None and hasattr(node, "expr") else set()


def unbacked(symbols: set[Any]) -> set[Any]:
    """Those that depend on data."""
    return {s for s in symbols if str(s).startswith(("u", "zuf"))}


def key_of(value: Any) -> str:
    """Of a symbolic number: equal for equal expressions."""
    return f"{number_kind(value)} {value.node.expr}"


# ------------------------------------------------------------------------------------------------- two values as one


class Differs(Exception):
    """Two values that no single one can stand for; the text says why."""


@dataclass
class Slot:
    """A leaf that is computed: a tensor, or a number as one."""

    index: int
    kind: str  # "tensor", "int", "float", "bool"
    example: Any  # one of the two values


@dataclass
class Same:
    """What is the same either way."""

    value: Any


@dataclass
class Nest:
    """A container with parts, made anew."""

    make: Callable[[list[Any]], Any]
    parts: list[Any]
    split: Callable[[Any], Sequence[Any]]
    form: Any  # what another container must have to be alike


def _container(value: Any) -> tuple[Callable[[Any], Sequence[Any]], Callable[[list[Any]], Any], Any] | None:
    """How a container is taken apart and made of parts, and what must be equal in two for them to be alike."""
    if isinstance(value, list):
        return list, list, (list, len(value))
    if isinstance(value, tuple):
        kind: Any = type(value)
        make = (lambda parts: kind(*parts)) if hasattr(kind, "_fields") else tuple
        return list, make, (tuple, len(value))
    if isinstance(value, dict):
        keys = list(value)
        if not all(isinstance(key, (str, int, float, bool)) for key in keys):
            return None
        return (lambda d: [d[k] for k in keys]), (lambda parts: dict(zip(keys, parts, strict=True))), (dict, keys)
    if isinstance(value, Object):
        names = list(value.attributes)

        def make_object(parts: list[Any]) -> Object:
            return Object(value.kind, value.prototype, dict(zip(names, parts, strict=True)))

        return (lambda o: [o.attributes[n] for n in names]), make_object, (value.kind, sorted(names))
    return None


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {str(value.dtype).removeprefix('torch.')}{[str(s) for s in value.shape]}".replace("'", "")
    if isinstance(value, dict):
        return f"a dict with {list(value)}" if len(value) <= 8 else f"a dict of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, str) and not isinstance(value, UnknownText):
        return f"{value[:40]!r}"
    if isinstance(value, Object):
        return f"an object of {value.kind.rpartition('.')[2]}"
    kind = number_kind(value)
    return f"a number ({kind})" if kind else "None" if value is None else f"a {type(value).__name__}"


def join(a: Any, b: Any, slots: list[Slot], like: Callable[[torch.Tensor, torch.Tensor], bool]) -> Any:
    """What stands for both values: a nest of Same, Slot and Nest; the slots are appended to the list.

    like: whether two tensors may share a slot. Differs: there is none.
    """
    if a is b:
        return Same(a)
    if isinstance(a, Missing) or isinstance(b, Missing):
        return _computed(b if isinstance(a, Missing) else a, slots)
    if isinstance(a, SizeTensor) or isinstance(b, SizeTensor):
        a, b = (v.value if isinstance(v, SizeTensor) else v for v in (a, b))
    kinds = number_kind(a), number_kind(b)
    if all(kinds):
        if kinds[0] != kinds[1]:
            raise Differs(f"a number is {kinds[0]} on one side and {kinds[1]} on the other")
        return Same(a) if _equal(a, b) else _slot(kinds[0], a, slots)
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if not like(a, b):
            raise Differs(f"{_described(a)} on one side, {_described(b)} on the other")
        return _slot("tensor", a, slots)
    first, second = _container(a), _container(b)
    if first is not None and second is not None and first[2] == second[2]:
        split, make, form = first
        return Nest(make, [join(x, y, slots, like) for x, y in zip(split(a), split(b), strict=True)], split, form)
    if first is None and second is None and type(a) is type(b) and not isinstance(a, torch.Tensor) and a == b:
        return Same(a)
    raise Differs(f"{_described(a)} on one side, {_described(b)} on the other")


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Number) or isinstance(b, Number):
        return isinstance(a, Number) and isinstance(b, Number) and a.tensor is b.tensor
    if is_symbolic(a) or is_symbolic(b):
        return is_symbolic(a) and is_symbolic(b) and bool(a.node.expr == b.node.expr)
    return bool(a == b) or (a != a and b != b)


def _slot(kind: str, example: Any, slots: list[Slot]) -> Slot:
    slots.append(Slot(len(slots), kind, example))
    return slots[-1]


def _computed(value: Any, slots: list[Slot]) -> Any:
    """Every tensor and every number that is not known, as a slot."""
    if isinstance(value, torch.Tensor):
        return _slot("tensor", value, slots)
    if isinstance(value, Number) or is_symbolic(value):
        return _slot(number_kind(value), value, slots)
    parts = _container(value)
    if parts is None:
        return Same(value)
    split, make, form = parts
    return Nest(make, [_computed(v, slots) for v in split(value)], split, form)


def widened(template: Any, value: Any, slots: list[Slot], like: Callable[[torch.Tensor, torch.Tensor], bool]) -> Any:
    """The template for one more value: slots stay slots, and what differs becomes some. Differs: as join()."""
    if isinstance(template, Same):
        return join(template.value, value, slots, like)
    if isinstance(template, Slot):
        if isinstance(value, SizeTensor):
            value = value.value
        fits = isinstance(value, Missing) or number_kind(value) == template.kind
        if template.kind == "tensor":
            fits = isinstance(value, torch.Tensor) and like(template.example, value)
        if not fits:
            raise Differs(f"{_described(template.example)} at first, {_described(value)} later")
        return _slot(template.kind, template.example, slots)
    parts = _container(value)
    if parts is None or parts[2] != template.form:
        raise Differs(f"{_form(template.form)} at first, {_described(value)} later")
    split = template.split
    made = [widened(t, v, slots, like) for t, v in zip(template.parts, split(value), strict=True)]
    return Nest(template.make, made, split, template.form)


def _form(form: Any) -> str:
    return f"a {form[0].__name__} of {form[1] if isinstance(form[1], int) else len(form[1])}"


def freed(value: Any, slots: list[Slot]) -> Any:
    """A template in which every number is a slot, and all else the same."""
    if number_kind(value):
        return _slot(number_kind(value), value, slots)
    parts = _container(value)
    if parts is None:
        return Same(value)
    split, make, form = parts
    return Nest(make, [freed(v, slots) for v in split(value)], split, form)


def picked(template: Any, value: Any) -> Iterator[Any]:
    """The leaves of a value that have slots in the template, in their order; MISSING where the value has none."""
    if isinstance(template, Slot):
        yield value
    elif isinstance(template, Nest):
        parts = [MISSING] * len(template.parts) if isinstance(value, Missing) else template.split(value)
        for inner, part in zip(template.parts, parts, strict=True):
            yield from picked(inner, part)


def built(template: Any, leaves: Sequence[Any]) -> Any:
    """The value with these leaves in the slots."""
    if isinstance(template, Slot):
        return leaves[template.index]
    if isinstance(template, Nest):
        return template.make([built(part, leaves) for part in template.parts])
    return template.value


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors of a nest."""
    left = [value]
    while left:
        v = left.pop()
        if isinstance(v, torch.Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            left.extend(v)
        elif isinstance(v, dict):
            left.extend(v.values())


def same_bits(a: Any, b: Any) -> bool:
    """Whether two nests are equal, with tensors element by element."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return (
            a.shape == b.shape
            and a.dtype == b.dtype
            and bool(torch.equal(torch.nan_to_num(a) if a.is_floating_point() else a, _plain(b)))
        )
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_bits(a[k], b[k]) for k in a)
    return type(a) is type(b) and bool(operator.eq(a, b))


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(tensor) if tensor.is_floating_point() else tensor


__all__ = [
    "DTYPES",
    "MISSING",
    "NUMBERS",
    "TYPE_NUMBERS",
    "Differs",
    "Missing",
    "Nest",
    "Number",
    "Object",
    "Same",
    "SizeTensor",
    "Slot",
    "UnknownText",
    "built",
    "freed",
    "is_symbolic",
    "join",
    "key_of",
    "number_dtype",
    "number_kind",
    "picked",
    "same_bits",
    "symbols_of",
    "tensors_in",
    "unbacked",
    "widened",
]
