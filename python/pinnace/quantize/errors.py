"""How far two programs are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pinnace.types import Array


def relative_error(found: Sequence[Array], exact: Sequence[Array]) -> float:
    """Root mean square of the differences over that of the exact values; of integers and booleans, the part that
    differs. 0 where there is nothing."""
    squares, size, count = 0.0, 0.0, 0
    for a, b in zip(found, exact, strict=True):
        if b.dtype.kind not in "fV":
            squares += float(np.count_nonzero(a != b))
            size += b.size
            count += b.size
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(y)
        squares += float(np.sum(np.square(np.where(finite, x - np.where(finite, y, 0), 0))))
        size += float(np.sum(np.square(y[finite])))
        count += y.size
    if not count or squares == 0:
        return 0.0
    return math.sqrt(squares / size) if size > 0 else math.inf


__all__ = ["relative_error"]
