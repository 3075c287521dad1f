"""flex_attention for torch.export: within attention_in_parts() it is matrix products, a softmax, and the functions of
scores and masks applied to whole tensors.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_MODULE = "torch.nn.attention.flex_attention"


@contextlib.contextmanager
def attention_in_parts() -> Iterator[None]:
    """For a block that exports: the operator behind flex_attention, which is the process's, is replaced. To be entered
    within isolated_inference(), of which one block runs at a time. Does nothing where flex_attention was not imported.
    """
    module: Any = sys.modules.get(_MODULE)
    replaced = {"flex_attention_hop": _attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG": True}
    if module is None or not all(hasattr(module, name) for name in replaced):
        yield
        return
    before = {name: getattr(module, name) for name in replaced}
    vars(module).update(replaced)
    try:
        yield
    finally:
        vars(module).update(before)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., torch.Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    *_: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """query [B, H, M, E], key [B, G, N, E], value [B, G, N, F]; G divides H, and B of key and value may be 1. Gives
    [B, H, M, F], and logarithms of sums and maxima to the base 2, in which torch's operator has them.

    score_mod and the mask's function get places of shapes [B, 1, 1, 1] to [1, 1, 1, N] in place of single numbers.
    """
    import torch

    batch, heads = query.shape[:2]
    if heads != key.shape[1]:
        key, value = (t.repeat_interleave(heads // key.shape[1], 1) for t in (key, value))
    scores = query.float() @ key.float().transpose(-2, -1) * scale
    places = []
    for dim, size in enumerate((batch, heads, query.shape[2], key.shape[2])):
        shape = [1, 1, 1, 1]
        shape[dim] = -1
        places.append(torch.arange(size, device=query.device).view(shape))
    scores = torch.where(block_mask[-1](*places), score_mod(scores, *places), -math.inf)
    greatest = scores.amax(-1)
    sums = scores.logsumexp(-1)
    weights: torch.Tensor = torch._safe_softmax(scores, -1)  # 0 where all is masked
    return weights.to(query.dtype) @ value, sums / math.log(2), greatest / math.log(2)


__all__ = ["attention_in_parts"]
