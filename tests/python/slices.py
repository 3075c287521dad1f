"""How a test run chooses its share of the large suites: a slice by default, everything with PINNACE_TEST_ALL=1.

PINNACE_TEST_SEED moves the slice, so that runs on successive commits cover the whole in time, and a failure is repeated
by giving the printed seed again. PINNACE_TEST_BUDGET is the time in seconds that this run of the suite should take.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def test_seed() -> int:
    return int(os.environ.get("PINNACE_TEST_SEED") or "0")


test_seed.__test__ = False  # type: ignore[attr-defined]  # its name looks like a test's


def all_mode() -> bool:
    return os.environ.get("PINNACE_TEST_ALL") == "1"


def _shuffled(items: Sequence[T], salt: str) -> list[T]:
    # hashlib rather than hash(): Python salts the latter per process, and a seed has to mean the same everywhere.
    digest = hashlib.sha256(f"{test_seed()}/{salt}/{len(items)}".encode()).digest()
    order = list(items)
    random.Random(digest).shuffle(order)
    return order


def rotating_slice(items: Sequence[T], share: float, salt: str = "") -> list[T]:
    """About `share` of the items, at least one where there are any, in their own order; all of them in all mode.

    Two suites that pass different salts get slices that do not move together.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}, must be in (0, 1]")
    if all_mode() or not items:
        return list(items)
    count = max(1, round(share * len(items)))
    chosen = set(_shuffled(range(len(items)), salt)[:count])
    return [item for i, item in enumerate(items) if i in chosen]


def in_turn(name: str, share: float) -> bool:
    """Whether this run has the item of that name: in about `share` of all seeds, in all of them in all mode."""
    digest = hashlib.sha256(f"{test_seed()}/{name}".encode()).digest()
    return all_mode() or int.from_bytes(digest[:4], "big") < share * 2**32


def within_budget(items: Sequence[T], seconds: float, salt: str = "") -> Iterator[T]:
    """Items in an order given by the seed until the time is used up, always at least one; all of them in all mode."""
    end = time.monotonic() + seconds
    for i, item in enumerate(_shuffled(items, salt)):
        if i and not all_mode() and time.monotonic() > end:
            return
        yield item
