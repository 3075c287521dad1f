"""Accuracy control: as few layers as possible stay in float, so that a metric reaches its limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pinnace.log import log


@dataclass
class Choice:
    """What the search found.

    kept    layers that stay in float, the most sensitive first.
    score   the metric with these.
    tried   how often the metric was computed.
    """

    kept: list[str]
    score: float
    tried: int = 0
    scores: dict[int, float] = field(default_factory=dict)  # by how many of the most sensitive layers were kept


def fewest_kept(
    order: Sequence[str], score: Callable[[Sequence[str]], float], least: float, prune_most: int = 16
) -> Choice:
    """The shortest beginning of `order` (layers, the most sensitive first) with which score(layers kept) is at least
    `least`, without those of it that are not needed.

    The beginning is found by doubling and then by halving, which takes the score to rise with the layers that are kept;
    it ends after 2 log2(n) scores whether it does or not. With all layers kept nothing is asked any more: that is the
    float program. Of a beginning of at most `prune_most` layers each is then left out by itself, the least sensitive
    first, and stays out where the score still reaches `least`.
    """
    found = Choice([], 0.0)

    def reaches(count: int) -> bool:
        if count not in found.scores:
            found.scores[count] = score(order[:count])
            found.tried += 1
            log("info", f"accuracy control: {count} layers in float, {found.scores[count]:.6g}, wanted {least:.6g}")
        return found.scores[count] >= least

    high = 0
    while high < len(order) and not reaches(high):
        high = min(len(order), max(1, 2 * high))
    low = high // 2  # does not reach it, where high is above 0
    while high - low > 1:
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    found.kept = list(order[:high])
    found.score = found.scores.get(high, least)
    if 1 < len(found.kept) <= prune_most:
        for layer in reversed(found.kept[:]):
            fewer = [name for name in found.kept if name != layer]
            reached = score(fewer)
            found.tried += 1
            if reached >= least:
                found.kept, found.score = fewer, reached
    return found


__all__ = ["Choice", "fewest_kept"]
