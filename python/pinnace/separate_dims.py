"""ONNX files that give one name to dimensions of different sizes: it is dropped where no size fits all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pinnace import _core
from pinnace.made_sizes import search
from pinnace.types import Dim, TensorSpec, specs_from

# What the search may take here, where nobody asked for inputs.
TRIES, SECONDS = 600, 5.0


def load_separated(
    load: Callable[[list[str]], _core.Model],
    example: Sequence[tuple[str, Any]],
    declared: Sequence[str],
    onnx: bool,
) -> _core.Model:
    """The model as `load([])` imports it, or with the names separated that its shape rules or the example contradict.

    load      imports with every occurrence of the given names a dimension of its own; [""]: of all names.
    example   arrays by name, or with empty names all inputs in order. Their sizes win over the file's names.
    declared  names that the caller gave ranges to, which stay what they are.
    onnx      whether it may be an ONNX file; others have no such names.
    """
    try:
        core = load([])
    except _core.ConversionError:
        if not onnx or declared:
            raise
        try:
            return load([""])
        except _core.Error:
            pass
        raise
    if core.format != "onnx":
        return core
    specs = specs_from(core.inputs, core.symbols)
    shared = [name for name in repeated(specs.values()) if name not in set(declared)]
    contradicted = [name for name in conflicting(specs, example) if name in shared]
    if contradicted:
        return load(contradicted)
    if not shared or example or _some_fit(core, specs):
        return core
    for names in [*([name] for name in shared), shared] if len(shared) > 1 else [shared]:
        apart = load(names)
        if _some_fit(apart, specs_from(apart.inputs, apart.symbols)):
            return apart
    return core


def repeated(specs: Iterable[TensorSpec]) -> list[str]:
    """Names of open dimensions that inputs have in more than one place."""
    count = Counter(dim.name for spec in specs for dim in spec.shape if isinstance(dim, Dim))
    return [name for name, times in count.items() if times > 1]


def conflicting(specs: Mapping[str, TensorSpec], example: Sequence[tuple[str, Any]]) -> list[str]:
    """Names of dimensions that have different sizes in an example."""
    sizes: dict[str, set[int]] = {}
    ordered = list(specs)
    for place, (name, array) in enumerate(example):
        own = name or (ordered[place] if place < len(ordered) else "")
        if own in specs:
            for dim, size in zip(specs[own].shape, array.shape, strict=False):
                if isinstance(dim, Dim):
                    sizes.setdefault(dim.name, set()).add(size)
    return [name for name, found in sizes.items() if len(found) > 1]


def _some_fit(core: _core.Model, specs: Mapping[str, TensorSpec]) -> bool:
    found = search(list(specs.values()), core.try_shapes, tries=TRIES, seconds=SECONDS, only_fit=True)
    return found.smallest is not None
