"""Tensors without dimensions that only stand for numbers, as traces have sizes and constants: operators on them give
numbers again."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from pinnace import _core
from pinnace.torchscript.values import Number, SizeTensor, number_kind

if TYPE_CHECKING:
    from pinnace.torchscript.graph import Step


@contextlib.contextmanager
def _really() -> Iterator[None]:
    """Tensors have memory within the block, and nothing is recorded."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    with unset_fake_temporarily(), disable_proxy_modes_tracing():
        yield


def known_item(tensor: torch.Tensor) -> Any:
    """A number of a real tensor while fake ones are made of all."""
    with _really():
        return tensor.item()


def on_known(step: Step, values: list[Any]) -> SizeTensor | None:
    """What torch computes of numbers that are known; None: it is no number, or data or dynamic sizes decide."""
    parts = [p for v in values for p in (v if isinstance(v, list) else [v])]
    numbers = [p.value if isinstance(p, SizeTensor) else p for p in parts]
    known = all(n is None or isinstance(n, (bool, int, float, str, torch.device)) for n in numbers)
    if not known or torch.Tag.nondeterministic_seeded in step.overload.tags:
        return None

    def real(value: Any) -> Any:
        if isinstance(value, SizeTensor):
            return torch.tensor(value.value, dtype=value.dtype)
        return list(map(real, value)) if isinstance(value, list) else value

    with _really():
        given = list(zip(map(real, values), step.schema.arguments, strict=True))
        by_name = {a.name: v for v, a in given if a.kwarg_only}
        made = step.overload(*(v for v, a in given if not a.kwarg_only), **by_name)
        plain = isinstance(made, torch.Tensor) and made.dim() == 0 and not made.is_complex()
        return SizeTensor(made.item(), made.dtype) if plain else None


def put_back(run: Any, step: Step, values: list[Any], made: SizeTensor) -> SizeTensor:
    """The result, which is the first argument itself where the operator writes into that."""
    first, alias = values[0], step.schema.arguments[0].alias_info
    if alias is None or not alias.is_write or not isinstance(first, SizeTensor):
        return made
    if run.levels:
        raise _core.ConversionError(f"{step.kind} ({step.place}) writes into a number in a branch or loop on data")
    first.value = made.value
    return first


# Of size tensors alone: numbers again.
_SIZE_TYPES = (torch.int64, torch.float32, torch.bool)
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


def of_sizes(run: Any, kind: str, values: list[Any]) -> SizeTensor | None:
    """The result of an operator on sizes that look like tensors; None: it needs them as tensors."""
    name = kind.partition("::")[2].rstrip("_")
    types = [v.dtype for v in values if isinstance(v, SizeTensor)]
    if any(isinstance(v, (torch.Tensor, Number)) for v in values) or not set(types) <= set(_SIZE_TYPES):
        return None
    plain = [run.plain(v) for v in values]
    if name in ("div", "divide") and len(plain) == 3:
        whole = plain[2] == "floor" or (plain[2] == "trunc" and run.known(plain[0] >= 0) and run.known(plain[1] > 0))
        return SizeTensor(plain[0] // plain[1], torch.int64) if whole else None
    function = _OF_SIZES.get(name)
    if function is None:
        return None
    made = function(*plain)
    dtype = torch.float32 if number_kind(made) == "float" else torch.bool if number_kind(made) == "bool" else None
    if name in ("floor", "ceil") and isinstance(values[0], SizeTensor):
        dtype = values[0].dtype
    return SizeTensor(made, dtype or torch.int64)


__all__ = ["known_item", "of_sizes", "on_known", "put_back"]
