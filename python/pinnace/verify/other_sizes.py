"""Sizes of dynamic dimensions that no example has, and examples cut or repeated to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pinnace.inputs.size_search import Shapes, near_sizes
from pinnace.inputs.uses import uses_of
from pinnace.program import Program
from pinnace.shape_trials import ShapeTrial
from pinnace.types import Array, Dim, TensorSpec

MOST_CHOICES = 4  # of other sizes, behind the first, where the source refuses them


def other_sizes(specs: Sequence[TensorSpec], examples: Sequence[Sequence[Array]]) -> dict[str, int]:
    """A legal size for every dynamic dimension for which all the examples have the same one; not that one.

    An eighth smaller and one step more for each further dimension, so that dimensions which were equal or multiples of
    each other are not any more; larger where none from 2 on is smaller.
    """
    seen: dict[str, set[int]] = {}
    dims: dict[str, Dim] = {}
    for arrays in examples:
        for spec, array in zip(specs, arrays, strict=True):
            for dim, size in zip(spec.shape, array.shape, strict=True):
                if isinstance(dim, Dim):
                    seen.setdefault(dim.name, set()).add(size)
                    dims[dim.name] = dim
    found: dict[str, int] = {}
    for name, sizes in seen.items():
        size = _other_size(dims[name], next(iter(sizes)), len(found)) if len(sizes) == 1 else None
        if size is not None:
            found[name] = size
    return found


def _other_size(dim: Dim, size: int, place: int) -> int | None:
    step = dim.multiple_of
    smaller = (size * 7 // 8 // step - place) * step
    if smaller >= max(dim.min, 2):
        return smaller
    if dim.max is None or size + step <= dim.max:
        return size + step
    return size - step if size - step >= max(dim.min, 1) else None


def sizes_of_one(specs: Sequence[TensorSpec], examples: Sequence[Sequence[Array]]) -> list[str]:
    """The dynamic dimensions that may be 1 and are in no example."""
    pairs = [
        pair
        for arrays in examples
        for spec, array in zip(specs, arrays, strict=True)
        for pair in zip(spec.shape, array.shape, strict=True)
    ]
    tried = {dim.name for dim, size in pairs if isinstance(dim, Dim) and size <= 1}
    dims = {d.name: d for d, _ in pairs if isinstance(d, Dim) and d.name not in tried}
    return [name for name, dim in dims.items() if dim.min <= 1 and dim.multiple_of == 1]


def resized(x: Array, spec: TensorSpec, sizes: Mapping[str, int]) -> Array:
    """The array cut or repeated to the given sizes. Repeated floats become up to 1/64 smaller, since equal ones have no
    order that a sort must keep, unless all are whole numbers, which may stand for something."""
    random = np.random.default_rng(5)
    whole = x.dtype.kind in "iub" or not np.any(np.nan_to_num(x.astype(np.float64), posinf=0, neginf=0) % 1)
    for axis, dim in enumerate(spec.shape):
        if not isinstance(dim, Dim) or dim.name not in sizes:
            continue
        old, new = x.shape[axis], sizes[dim.name]
        if old == 0:
            x = np.zeros([*x.shape[:axis], new, *x.shape[axis + 1 :]], x.dtype)
            continue
        made = np.take(x, np.arange(new) % old, axis)
        if new > old and not whole:
            more = [slice(None)] * axis + [slice(old, None)]
            part = made[tuple(more)]
            made[tuple(more)] = (part.astype(np.float64) * random.uniform(63 / 64, 1, part.shape)).astype(x.dtype)
        x = made
    return x


def inputs_of_sizes(program: Program, example: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
    """The example cut or repeated to the given sizes; integers that are lengths of sequences or indices are no larger
    than what is there then. Beyond it the program refuses them, and a source may compute something."""
    specs = list(program.inputs.values())
    made = [resized(x, spec, sizes) for x, spec in zip(example, specs, strict=True)]
    integers = [i for i, x in enumerate(made) if x.dtype.kind in "iu" and x.size]
    if not integers:
        return made
    trial = program.try_shapes([x.shape for x in made], details=True)
    for i in integers:
        uses = uses_of(trial, specs[i].name)
        bounds = uses.bounds()
        most = min([*uses.lengths, *([bounds[1]] if bounds else [])], default=None)
        if most is not None and made[i].max() > most:
            made[i] = np.minimum(made[i], np.asarray(most, made[i].dtype))
    return made


def size_choices(program: Program, example: Sequence[Array], wanted: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Sizes to try, each where the source refused those before: the wanted ones, whatever the program's rules say
    of them, since the source alone decides what is right; then near ones that pass these rules."""
    if not wanted:
        return
    yield dict(wanted)
    specs = list(program.inputs.values())
    sizes = dynamic_sizes_of(specs, example)
    known = {n: s for n, s in sizes.items() if n not in wanted}
    now = {n: s for n, s in sizes.items() if n in wanted}

    def rules(shapes: Shapes) -> ShapeTrial:
        return program.try_shapes(shapes)

    for near in near_sizes(specs, rules, now, wanted, known)[:MOST_CHOICES]:
        yield {name: size for name, size in near.items() if size != now.get(name, size)}


def dynamic_sizes_of(specs: Sequence[TensorSpec], arrays: Sequence[Array]) -> dict[str, int]:
    """The sizes that dynamic dimensions have in one example."""
    pairs = (p for spec, x in zip(specs, arrays, strict=True) for p in zip(spec.shape, x.shape, strict=True))
    return {dim.name: size for dim, size in pairs if isinstance(dim, Dim)}


__all__ = ["MOST_CHOICES", "dynamic_sizes_of", "inputs_of_sizes", "other_sizes", "size_choices", "sizes_of_one"]
