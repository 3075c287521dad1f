"""Lists of which nobody knows how many elements they have: where a loop over a dynamic size adds to one, or a tensor is
taken apart along a dynamic dimension, elements in a row are rows of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pinnace import _core
from pinnace.torchscript.values import DTYPES, Differs, SizeTensor, is_symbolic, number_kind


class Rows:
    """Within a list, elements one after the other: rows of a tensor, which is None in a loop that adds to them."""

    def __init__(self, tensor: torch.Tensor | None, kind: str) -> None:
        """kind: "tensor", or that of the numbers."""
        self.tensor, self.kind = tensor, kind


def has_rows(value: Any) -> bool:
    """Whether it is a list, or a tuple of such, of which the number of elements is dynamic."""
    if isinstance(value, (list, tuple)):
        return any(isinstance(v, Rows) or (isinstance(v, (list, tuple)) and has_rows(v)) for v in value)
    return False


@dataclass(eq=False)
class Growing:
    """A list to which each iteration of a loop adds as many elements."""

    own: list[Any]
    before: list[Any]  # its elements before the loop
    in_front: bool
    added: list[Any]  # what one iteration adds
    stand_in: Rows

    def contents(self, rows: Rows | None = None) -> list[Any]:
        """Of the list, with what was added so far."""
        made = self.stand_in if rows is None else rows
        return [made, *self.before] if self.in_front else [*self.before, made]

    def between(self, after: Sequence[Any]) -> list[Any]:
        """What an iteration has added. Differs: it did something else."""
        at = next((i for i, v in enumerate(after) if v is self.stand_in), None)
        if at is None:
            raise Differs(f"a list of {len(self.before)} at first, of {len(after)} later")
        if not self.before and at == len(after) - 1:
            self.in_front = at > 0
        front, back = list(after[:at]), list(after[at + 1 :])
        added, others = (front, back) if self.in_front else (back, front)
        if len(added) != len(self.added) or not _all_same(self.before, others):
            raise Differs(f"a list that gets {len(self.added)} elements at first, later others")
        return added

    def take(self, after: Sequence[Any]) -> None:
        """Notes what an iteration has added. Differs: it did something else, or elements of several kinds."""
        self.added = self.between(after)
        self.kind()

    def kind(self) -> tuple[str, Any]:
        """Of the elements, with an example. Differs: they are of several kinds, or of none that rows have."""
        first, *others = (v.value if isinstance(v, SizeTensor) else v for v in self.added)
        kind = number_kind(first) or ("tensor" if isinstance(first, torch.Tensor) else "")
        if not kind:
            raise Differs(f"a list gets elements that are neither tensors nor numbers ({type(first).__name__})")
        for other in others:
            same = number_kind(other) == kind if kind != "tensor" else isinstance(other, torch.Tensor)
            if not same or (kind == "tensor" and (other.dtype, _sizes(other)) != (first.dtype, _sizes(first))):
                raise Differs("a list gets elements of several types or shapes in one iteration")
        return kind, first


def _sizes(tensor: torch.Tensor) -> list[str]:
    return [str(s) for s in tensor.shape]


def growth(own: list[Any], after: Sequence[Any], stand_in: Rows) -> Growing | None:
    """What a list becomes in a loop, by what one iteration leaves in it; None: it is as long as before, or shorter, or
    its elements have changed too. stand_in: what stands in the loop for the elements that were added."""
    more = len(after) - len(own)
    if more <= 0:
        return None
    for in_front in (False, True):
        kept = after[more:] if in_front else after[: len(own)]
        if _all_same(own, kept):
            return Growing(own, list(own), in_front, list(after[:more] if in_front else after[len(own) :]), stand_in)
    return None


def _all_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(_is_same, a, b))


def _is_same(a: Any, b: Any) -> bool:
    plain = (bool, int, float, str)
    return a is b or (isinstance(a, plain) and type(a) is type(b) and bool(a == b))


# ------------------------------------------------------------------------------------- operators on lists with rows


def length(run: Any, own: Sequence[Any]) -> Any:
    """How many elements such a list has."""
    count: Any = 0
    for part in own:
        count = count + (run.here(part.tensor).shape[0] if isinstance(part, Rows) else 1)
    return count


def _kind_of(own: Sequence[Any]) -> str:
    kinds = {v.kind if isinstance(v, Rows) else number_kind(v) or "tensor" for v in own}
    if len(kinds) != 1:
        raise _core.ConversionError("a list of which the number of elements is dynamic, with elements of several kinds")
    return kinds.pop()


def stacked(run: Any, own: Sequence[Any]) -> torch.Tensor:
    """All elements as rows of one tensor."""
    kind = _kind_of(own)
    parts = []
    for part in own:
        if isinstance(part, Rows):
            parts.append(run.here(part.tensor))
        else:
            tensor = run.argument(part, "Tensor") if kind == "tensor" else run.tensor_of(part, kind)
            parts.append(tensor.unsqueeze(0))
    made: torch.Tensor = parts[0] if len(parts) == 1 else torch.ops.aten.cat.default(parts)
    run.note_made([made], own if len(parts) == 1 else ())
    return made


def element(run: Any, own: list[Any], index: Any) -> Any:
    """The element at that place."""
    whole = stacked(run, own)
    kind = _kind_of(own)
    if isinstance(index, int):
        made = torch.ops.aten.select.int(whole, 0, index)
    else:
        place = run.tensor_of(index, "int")
        place = torch.ops.aten.where.self(place < 0, place + whole.shape[0], place)
        made = torch.ops.aten.index_select.default(whole, 0, place.reshape([1])).squeeze(0)
    run.note_made([made])
    if kind != "tensor":
        return run.item(made, kind)
    for part in own:  # written into, it would not be the list's element that changes
        run.twins.join(made, part.tensor if isinstance(part, Rows) else part)
    return made


def _stack(run: Any, own: list[Any], dim: Any = 0) -> Any:
    return torch.ops.aten.movedim.int(stacked(run, own), 0, run.index(dim)).clone()


def _cat(run: Any, own: list[Any], dim: Any = 0) -> Any:
    dim = run.index(dim)
    parts = []
    for part in own:
        if not isinstance(part, Rows):
            parts.append(run.argument(part, "Tensor"))
            continue
        rows = run.here(part.tensor)
        at = dim + rows.dim() - 1 if dim < 0 else dim
        parts.append(torch.ops.aten.movedim.int(rows, 0, at).flatten(at, at + 1))
    return parts[0].clone() if len(parts) == 1 else torch.ops.aten.cat.default(parts, dim)


def _insert(run: Any, own: list[Any], index: Any, value: Any) -> None:
    if run.plain(index) != 0:
        raise _core.ConversionError(
            "an element is put into the middle of a list of which the number of elements is dynamic"
        )
    run.changing(own).insert(0, value)


def _reverse(run: Any, own: list[Any]) -> None:
    turned: list[Any] = []
    for part in reversed(own):
        if isinstance(part, Rows):
            tensor = run.here(part.tensor)
            flipped = tensor.flip(0)
            run.note_made([flipped])
            run.twins.join(flipped, tensor)
            part = run.rows(flipped, part.kind)
        turned.append(part)
    run.changing(own)[:] = turned


def _get_item(run: Any, own: list[Any], index: Any) -> Any:
    return element(run, own, run.plain(index))


def _tensor(run: Any, own: list[Any], dtype: Any = None, *_others: Any) -> Any:
    made = stacked(run, own)
    kind = _kind_of(own)
    default = {"int": torch.int64, "bool": torch.bool}.get(kind, torch.float32)
    return made.to(default if dtype is None else DTYPES[dtype])


# What such lists can be given to, beside steps that pass values on and those that add elements.
ON_ROWS: dict[str, Callable[..., Any]] = {
    "aten::len": length,
    "aten::stack": _stack,
    "aten::cat": _cat,
    "aten::concat": _cat,
    "aten::__getitem__": _get_item,
    "aten::insert": _insert,
    "aten::reverse": _reverse,
    "aten::tensor": _tensor,
}
# Those that need not know.
UNAWARE = frozenset(
    (
        "aten::append",
        "aten::extend",
        "aten::add_",
        "aten::add",
        "aten::clear",
        "aten::copy",
        "aten::list",
        "aten::__isnot__",
        "aten::__is__",
        "aten::_unwrap_optional",
        "prim::unchecked_cast",
        "prim::unchecked_unwrap_optional",
        "prim::TupleConstruct",
        "prim::TupleUnpack",
        "prim::TupleIndex",
        "prim::ListConstruct",
        "prim::If",
        "prim::Loop",
        "prim::CallMethod",
        "prim::CallFunction",
        "prim::fork",
        "aten::wait",
        "prim::SetAttr",
    )
)


def run_on_rows(run: Any, kind: str, values: list[Any], place: str) -> Any:
    """A step on a list of which the number of elements is dynamic. ConversionError: it has no meaning there."""
    function = ON_ROWS.get(kind)
    if function is None:
        raise _core.ConversionError(
            f"{kind} ({place}) of a list of which the number of elements follows from a dynamic size; such lists have "
            "append, extend, insert(0), len, reverse and elements; torch.stack, torch.cat and torch.tensor take them"
        )
    if kind != "aten::insert" and any(isinstance(v, Rows) and v.tensor is None for v in values[0]):
        raise _core.ConversionError(f"{kind} ({place}) reads a list to which a loop over a dynamic size adds elements")
    return function(run, *values)


def unbound(run: Any, tensor: torch.Tensor, dim: int) -> list[Any] | None:
    """A tensor taken apart along a dynamic dimension; None: it is none."""
    if not is_symbolic(tensor.shape[dim]):
        return None
    rows = tensor if dim % tensor.dim() == 0 else torch.ops.aten.movedim.int(tensor, dim, 0)
    return [run.rows(rows, "tensor")]


__all__ = ["UNAWARE", "Growing", "Rows", "growth", "has_rows", "run_on_rows", "unbound"]
