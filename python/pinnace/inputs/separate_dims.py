"""What an ONNX file says of its dynamic dimensions and its graph contradicts: one name for dimensions of different
sizes is dropped where no size fits all of them; a dimension taken to be at least 2 becomes 1 where no other size
fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pinnace import _core
from pinnace.inputs.size_search import Shapes, search
from pinnace.shape_trials import ShapeTrial, shape_trial
from pinnace.types import Dim, TensorSpec, specs_from

# What the search may take here, where nobody asked for inputs.
TRIES, SECONDS = 600, 5.0

Load = Callable[[list[str], list[str]], _core.Model]


def load_separated(
    load: Load, example: Sequence[tuple[str, Any]], declared: Sequence[str], onnx: bool
) -> tuple[_core.Model, list[str]]:
    """The model as `load([], [])` imports it, or with the names separated that its shape rules or the example
    contradict, or with those dimensions 1 that the importer took to be at least 2; and notes that say the latter.

    load      imports with every occurrence of the first names a dimension of its own ([""]: of all names), and with the
              dimensions of the second names fixed to 1.
    example   arrays by name, or with empty names all inputs in order. Their sizes win over the file's names.
    declared  names that the caller gave ranges to, which stay what they are.
    onnx      whether it may be an ONNX file; others have no such names.
    """
    try:
        core = load([], [])
    except _core.ConversionError:
        if not onnx or declared:
            raise
        try:
            return load([""], []), []
        except _core.Error:
            pass
        raise
    if core.format != "onnx":
        return core, []
    core, ones, why = _with_ones(core, load, example, set(declared))
    notes = [
        f"Dimension {name!r} is fixed to 1, since {why}: a Squeeze without axes gives fewer dimensions there than at "
        f"other sizes."
        for name in ones
    ]
    specs = specs_from(core.inputs, core.symbols)
    shared = [name for name in repeated(specs.values()) if name not in set(declared)]
    contradicted = [name for name in conflicting(specs, example) if name in shared]
    if contradicted:
        return load(contradicted, ones), notes
    if not shared or example or _some_fit(core, specs):
        return core, notes
    for names in [*([name] for name in shared), shared] if len(shared) > 1 else [shared]:
        apart = load(names, ones)
        if _some_fit(apart, specs_from(apart.inputs, apart.symbols)):
            return apart, notes
    return core, notes


def _with_ones(
    core: _core.Model, load: Load, example: Sequence[tuple[str, Any]], declared: set[str]
) -> tuple[_core.Model, list[str], str]:
    """The model with the dimensions 1 that the importer took to be at least 2 for the sake of one rank, where the
    example has them so or, without one, where no larger sizes pass; these dimensions, and the reason."""
    narrowed = [s["name"] for s in core.symbols if s["min"] == 2 and s["name"] not in declared]
    if not narrowed:
        return core, [], ""
    specs = specs_from(core.inputs, core.symbols)
    sizes = sizes_in(specs, example)
    ones = [name for name in narrowed if sizes.get(name) == {1}]
    if ones:
        return load([], ones), ones, "the example has this size"
    if example or _some_fit(core, specs):
        return core, [], ""
    try:
        other = load([], narrowed)
    except _core.ConversionError:
        return core, [], ""
    if _some_fit(other, specs_from(other.inputs, other.symbols)):
        return other, narrowed, "no other size passes every shape rule"
    return core, [], ""


def repeated(specs: Iterable[TensorSpec]) -> list[str]:
    """Names of dynamic dimensions that inputs have in more than one place."""
    count = Counter(dim.name for spec in specs for dim in spec.shape if isinstance(dim, Dim))
    return [name for name, times in count.items() if times > 1]


def conflicting(specs: Mapping[str, TensorSpec], example: Sequence[tuple[str, Any]]) -> list[str]:
    """Names of dimensions that have different sizes in an example."""
    return [name for name, found in sizes_in(specs, example).items() if len(found) > 1]


def sizes_in(specs: Mapping[str, TensorSpec], example: Sequence[tuple[str, Any]]) -> dict[str, set[int]]:
    """The sizes that dynamic dimensions have in an example."""
    sizes: dict[str, set[int]] = {}
    ordered = list(specs)
    for place, (name, array) in enumerate(example):
        own = name or (ordered[place] if place < len(ordered) else "")
        if own in specs:
            for dim, size in zip(specs[own].shape, array.shape, strict=False):
                if isinstance(dim, Dim):
                    sizes.setdefault(dim.name, set()).add(size)
    return sizes


def _some_fit(core: _core.Model, specs: Mapping[str, TensorSpec]) -> bool:
    def rules(shapes: Shapes) -> ShapeTrial:
        return shape_trial(core.try_shapes(shapes))

    found = search(list(specs.values()), rules, tries=TRIES, seconds=SECONDS, only_fit=True)
    return found.smallest is not None


__all__ = ["load_separated"]
