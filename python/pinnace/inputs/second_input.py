"""A second input beside the caller's: of the same shapes and kinds of values, other values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pinnace.types import Array

_FLOATS = ("float64", "float32", "float16", "bfloat16")


def second_inputs(example: Sequence[Array], seed: int = 2) -> Iterator[list[Array]]:
    """Lists of inputs to try in turn, the most different from the example first: a model may refuse some values.

    All inputs changed; only the floats; only the floats that are not all the same; only the largest of them. What would
    equal the example is left out.
    """
    floats = [str(x.dtype) in _FLOATS for x in example]
    varied = [f and _varies(x) for f, x in zip(floats, example, strict=True)]
    most = max((x.size for f, x in zip(floats, example, strict=True) if f), default=0)
    largest = [f and x.size == most for f, x in zip(floats, example, strict=True)]
    tried: set[tuple[bool, ...]] = set()
    for chosen in map(tuple, ([True] * len(example), floats, varied, largest)):
        if chosen in tried:
            continue
        tried.add(chosen)
        random = np.random.default_rng(seed)
        made = [_changed(x, random) if change else x for x, change in zip(example, chosen, strict=True)]
        if any(not _same(a, b) for a, b in zip(made, example, strict=True)):
            yield made


def _varies(x: Array) -> bool:
    return x.size > 1 and not np.array_equal(x, np.broadcast_to(x.flat[0], x.shape))


def _same(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


def _changed(x: Array, random: np.random.Generator) -> Array:
    """Other values of the array's own kind.

    Integers and bools stay among those that the example has, in another order, since they may be indices; ascending
    ones, such as positions, stay as they are, and a mask of ones gets zeros. Floats that are whole numbers or hold
    infinities, as masks do, are taken in another order too; others become normal values of the example's mean and
    deviation, within its sign; where the example is all one value, standard normal ones.
    """
    if x.size == 0:
        return x
    if str(x.dtype) not in _FLOATS:
        if x.dtype.kind in "iu" and x.size > 1 and np.all(x == 1):
            mask = random.integers(0, 2, x.shape)
            mask[..., 0] = 1
            return np.asarray(mask.astype(x.dtype))
        if x.dtype.kind in "iu" and x.size > 1 and np.all(np.diff(x.ravel().astype(np.int64)) >= 0):
            return x
        return np.asarray(random.permutation(x.ravel()).reshape(x.shape))
    wide = x.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if not finite.size:
        return x
    if not _varies(x):
        if x.size == 1 and finite[0] != 0:  # a threshold, a scale
            return np.asarray((wide * random.uniform(0.8, 1.25, x.shape)).astype(x.dtype))
        return np.asarray(random.standard_normal(x.shape).astype(x.dtype))
    if finite.size < x.size or not np.any(finite % 1):
        return np.asarray(random.permutation(x.ravel()).reshape(x.shape))
    made = random.normal(finite.mean(), finite.std(), x.shape)
    if finite.min() >= 0:
        made = np.clip(np.abs(made), finite.min(), finite.max() if finite.max() <= 1 else None)
    return np.asarray(made.astype(x.dtype))


__all__ = ["second_inputs"]
