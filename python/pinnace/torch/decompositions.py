"""Decompositions of operators that torch has none for.

Imports torch only when asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def own_decompositions() -> dict[Any, Callable[..., Any]]:
    """By overload of an operator; of packages, those that were imported."""
    import torch

    aten = torch.ops.aten
    table: dict[Any, Callable[..., Any]] = {aten.histc.default: _histc}
    grouped = getattr(aten, "_grouped_mm", None)
    if grouped is not None:
        table[grouped.default] = _grouped_mm
    fallback = getattr(torch.ops.transformers, "grouped_mm_fallback", None)
    if fallback is not None:
        table[fallback.default] = _grouped_mm
    return table


def _histc(x: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    """Counts per bin of [min, max], or of the data's range where both are equal, with the arithmetic of torch's kernel:
    an element at an edge is in the same bin."""
    import torch

    if min > max:
        raise NotImplementedError("histc of a range that ends before it starts")
    values = x.reshape(-1, 1)
    low, high = x.new_full((), min), x.new_full((), max)
    if min == max and x.numel():
        low, high = x.amin(), x.amax()
    single = low == high
    low, high = torch.where(single, low - 1, low), torch.where(single, high + 1, high)
    place = ((values - low) * bins / (high - low)).to(torch.int64).clamp(max=bins - 1)
    inside = (values >= low) & (values <= high)
    return ((place == torch.arange(bins, device=x.device)) & inside).sum(0).to(x.dtype)


def _grouped_mm(
    x: torch.Tensor,
    weight: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """x [S, K] by weight [G, K, N], of which matrix g takes the rows from offs[g - 1] to offs[g]. Rows after the last
    are 0.

    Which rows are whose is known only when the program runs, so that each matrix multiplies all rows, and those of its
    own are chosen: G products of [S, K] by [K, N].
    """
    import torch

    if offs is None or bias is not None or x.dim() != 2 or weight.dim() != 3:
        raise NotImplementedError("grouped_mm of another form than [S, K] by [G, K, N]")
    row = torch.arange(x.shape[0], device=x.device)[:, None]
    made = x.new_zeros((x.shape[0], weight.shape[2]))
    for g in range(weight.shape[0]):
        own = row < offs[g] if g == 0 else (row >= offs[g - 1]) & (row < offs[g])
        made = torch.where(own, x @ weight[g], made)
    return made if out_dtype is None else made.to(out_dtype)


__all__ = ["own_decompositions"]
