"""How much one call of a script may compute and hold while it is followed: sizes are looked at before torch makes a
tensor."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from pinnace import _core

MOST_BYTES = 1 << 33  # of one tensor
MOST_HELD = 1 << 34  # bytes of all tensors that a call makes and holds
MOST_WORK = 1 << 42  # elements made, and products of numbers in matrix products and convolutions

_SMALL = 1 << 22  # elements: steps whose sizes and numbers together give no more need no look
# Results of these have more elements than their arguments' sizes and numbers multiplied.
_SQUARES = frozenset(
    ["eye", "diag", "diag_embed", "diagflat", "block_diag", "vander", "combinations", "tril_indices", "triu_indices"]
)
_PRODUCTS = frozenset(
    ["mm", "bmm", "matmul", "linear", "addmm", "baddbmm", "addbmm", "einsum", "tensordot", "bilinear"]
)


class Budget:
    """Of one call."""

    def __init__(self) -> None:
        self._left = MOST_WORK
        self._made: list[weakref.ref[torch.Tensor]] = []
        self._since = 0

    def look_at(self, name: str, overload: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Before a step on tensors with memory. Unsupported: what it makes is too large."""
        values = list(_leaves([*args, *kwargs.values()]))
        tensors = [v for v in values if isinstance(v, torch.Tensor)]
        numbers = [abs(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
        numbers = [max(v, 1 / v) for v in numbers if v and math.isfinite(v)]
        most = math.prod(max(t.numel(), 1) for t in tensors) * math.prod(numbers)
        if name in ("repeat_interleave", "bincount", "one_hot") and tensors:
            counts = tensors[1 if name == "repeat_interleave" and len(tensors) > 1 else 0]
            if counts.numel() and not counts.is_floating_point():
                total = int(counts.sum()) if name == "repeat_interleave" else int(counts.max()) * counts.numel()
                self._check(total * max(tensors[0].numel() // max(len(counts), 1), 1), 8)
        if most < _SMALL and name not in _SQUARES:
            return
        for made in _leaves([_on_sizes(overload, args, kwargs)]):
            if isinstance(made, torch.Tensor):
                self._check(made.numel(), made.element_size())
                self._spend(made.numel() * _depth(name, tensors))

    def note(self, made: Any) -> None:
        """After a step. Unsupported: the call holds too much, or has computed too much."""
        for tensor in _leaves([made]):
            if isinstance(tensor, torch.Tensor):
                self._spend(tensor.numel())
                self._made.append(weakref.ref(tensor))
                self._since += tensor.numel() * tensor.element_size()
        if self._since > MOST_HELD:
            alive = [t for ref in self._made if (t := ref()) is not None]
            storages = {s.data_ptr(): s.nbytes() for s in (t.untyped_storage() for t in alive)}
            self._made = [weakref.ref(t) for t in alive]
            self._since = sum(storages.values())
            if self._since > MOST_HELD:
                raise _core.Unsupported(f"TorchScript: a call of forward() holds more than {MOST_HELD >> 30} GiB")

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise _core.Unsupported(f"TorchScript: a call of forward() computes more than {MOST_WORK} elements")

    @staticmethod
    def _check(count: int, size: int) -> None:
        if count * size > MOST_BYTES:
            raise _core.Unsupported(
                f"TorchScript: a tensor of {count} elements of {size} bytes; at most {MOST_BYTES >> 30} GiB are taken"
            )


def check_size(made: Any) -> None:
    """Of a step on tensors that have sizes alone. Unsupported: one is too large for the example's sizes."""
    for tensor in _leaves([made]):
        if isinstance(tensor, torch.Tensor):
            sizes = [s if isinstance(s, int) else _hint(s) for s in tensor.shape]
            Budget._check(math.prod(sizes), tensor.element_size())


def _hint(size: Any) -> int:
    return int(size.node.hint) if size.node.has_hint() else 1


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


def _depth(name: str, tensors: Sequence[torch.Tensor]) -> int:
    """Products for one element of the result."""
    if name in _PRODUCTS and tensors and tensors[0].dim():
        return int(max(t.shape[-1] for t in tensors if t.dim()))
    if "conv" in name and len(tensors) > 1 and tensors[1].dim():
        return tensors[1].numel() // max(tensors[1].shape[0], 1)
    return 1


def _on_sizes(overload: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What it gives for the sizes of tensors; None where torch does not say: data decide, within those sizes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode: Any = FakeTensorMode()

    def fake(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return mode.from_tensor(value)
        if isinstance(value, (list, tuple)):
            return [fake(v) for v in value]
        return value

    try:
        with mode:
            return overload(*map(fake, args), **{k: fake(v) for k, v in kwargs.items()})
    except Exception:  # of many kinds, where it has no rule for sizes; the step itself says what is wrong
        return None


__all__ = ["MOST_BYTES", "MOST_HELD", "MOST_WORK", "Budget", "check_size"]
