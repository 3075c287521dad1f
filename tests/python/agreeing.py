"""assert_agree: what a program gives is held against its source by the definition of equal of build() and compare()."""

from __future__ import annotations

from typing import Any

import numpy as np
from pinnace.agreement import BOUNDS, agreement


def assert_agree(got: Any, want: Any, about: str = "", exact: Any = None) -> None:
    """Both are arrays, or become ones; type and shape have to be the same too. exact: the value in float64, without
    which an element close to 0 that is a slice by itself may be rounded too far."""
    arbiter = None if exact is None else np.asarray(exact)
    judged = agreement(np.asarray(got), np.asarray(want), BOUNDS, arbiter)
    assert judged.ok, f"{about}: {judged.why}" if about else judged.why
