"""flex_attention with its functions of scores and masks, exported as matrix products and a softmax."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

module_of_flex: Any = sys.modules["torch.nn.attention.flex_attention"]


class Flex(nn.Module):
    def __init__(self, score: Callable[..., Tensor] | None = None, mask: Any = None, groups: bool = False) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(4))
        self.score = score
        self.mask = mask
        self.groups = groups

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
        def biased(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            return score + self.bias[h]

        score = biased if self.score is biased_by_head else self.score
        block = None if self.mask is None else create_block_mask(self.mask, None, None, q.shape[2], k.shape[2], "cpu")
        return flex_attention(q, k, v, score_mod=score, block_mask=block, enable_gqa=self.groups)


def biased_by_head(score: Tensor, *_: Tensor) -> Tensor:
    return score  # stands for the function of the module's own parameter


def causal(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return i >= j


def distance(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return score - 0.1 * (i - j).abs() * (h + 1)


CASES: dict[str, nn.Module] = {
    "plain": Flex(),
    "a score of distance": Flex(distance),
    "a score of a parameter": Flex(biased_by_head),
    "causal": Flex(mask=causal),
    "causal, distance, groups of heads": Flex(distance, causal, groups=True),
}


@pytest.mark.parametrize("name", CASES)
def test_flex_attention_is_plain_attention(name: str) -> None:
    torch.manual_seed(0)
    module: Any = CASES[name].eval()
    own = (module_of_flex.flex_attention_hop, module_of_flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG)
    heads = 2 if module.groups else 4
    inputs = (torch.randn(2, 4, 9, 8), torch.randn(2, heads, 9, 8), torch.randn(2, heads, 9, 8))
    program = pn.load(module, inputs).build()
    assert own == (module_of_flex.flex_attention_hop, module_of_flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG)
    assert program.metadata["verified.cpu"].startswith("yes")
    fresh = [torch.randn_like(x) for x in inputs]
    with torch.no_grad():
        want = module(*fresh)
    (got,) = pn.Session(program, target="cpu").run(dict(zip("qkv", fresh, strict=True))).values()
    assert_agree(got, want.numpy())
