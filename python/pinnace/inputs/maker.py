"""Inputs for whoever has none: sizes from a search, contents from what the graph does with them; seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.arrays import input_array
from pinnace.inputs.contents import NORMAL, fill, flag_values
from pinnace.inputs.size_search import SECONDS, Found, dims_of, legal, search, shape_at
from pinnace.inputs.uses import Uses, uses_of
from pinnace.shape_trials import ShapeRules, ShapeTrial
from pinnace.types import Array, Dim, TensorSpec

OTHERS = 7  # further sizes that a build may turn to
MOST_FLAGS = 3  # choices of flags that inputs are made for
MOST_ELEMENTS = 1 << 28  # of all inputs at sizes that a file says its example had


@dataclass(frozen=True)
class Made:
    """One set of inputs, in order. `how` says of each that was made up what it is; it is empty where all were given."""

    arrays: dict[str, Array]
    how: dict[str, str]


@dataclass
class Makings:
    """All that can be made for one set of given arrays: at the smallest sizes, at usual ones where there are others,
    and at further ones; what the search of sizes found; the same with normal values so many times as large, None where
    there are none; and with other flags, for the branches that the first ones do not take."""

    made: list[Made]
    others: Callable[[], list[Made]]
    found: Found = field(default_factory=Found)
    rescaled: Callable[[float], Made | None] = lambda _: None
    branches: list[Made] = field(default_factory=list)


class InputMaker:
    """Makes inputs for one graph.

    specs  its inputs.
    owner  the Model or Program whose graph it is; None: nothing is known of it, sizes are small and integers refused.
    known  gives sizes of dynamic dimensions, where the file that the model is from says what its example had.
    sizes  of dynamic dimensions, by name, that the inputs must have.
    seconds  how long a search for sizes may take.
    """

    def __init__(
        self,
        specs: Mapping[str, TensorSpec],
        owner: ShapeRules | None = None,
        known: Callable[[], Mapping[str, int]] = dict,
        sizes: Mapping[str, int] | None = None,
        seconds: float = SECONDS,
    ) -> None:
        """Nothing is searched before inputs are made. InvalidArgument: `sizes` names no dynamic dimension, or has one
        that its dimension does not take."""
        self.specs = specs
        self._wanted, self._seconds = dict(sizes or {}), seconds
        check_sizes(specs, self._wanted)
        self._known = known
        self._owner = owner
        self._details: dict[tuple[tuple[int, ...], ...], ShapeTrial] = {}
        self._searches: dict[Any, Found] = {}

    def make(self, given: Mapping[str, Any] | None = None, seed: int = 1) -> Makings:
        """What was given, completed. InvalidArgument: a name in `given` is unknown or its value no array; no sizes pass
        the shape rules; or an integer input is not given and nothing is known of the graph."""
        arrays = self._given(given)
        unknown = [name for name in arrays if name not in self.specs]
        if unknown:
            raise _core.InvalidArgument(
                f"inputs: unknown {unknown}; the model takes {', '.join(map(str, self.specs.values()))}"
            )
        if len(arrays) == len(self.specs):
            self._fixed(arrays)
            ordered = {name: arrays[name] for name in self.specs}
            return Makings([Made(ordered, {})], list)
        found = self._sizes(arrays)
        assert found.smallest is not None
        made: list[Made] = []
        branches: list[Made] = []
        others = []
        for flags in self._flags(arrays, found.smallest, seed):
            fitting = self._sizes(arrays, flags)
            if fitting.smallest is None:
                continue
            choices = [fitting.smallest, *([fitting.usual] if fitting.usual else [])]
            others += [(flags, sizes) for sizes in fitting.others[:OTHERS] if sizes not in choices]
            if made:  # one size of each further choice of flags suffices
                branches.append(self._filled(arrays, choices[-1], seed, flags))
            else:
                made = [self._filled(arrays, sizes, seed, flags) for sizes in choices]
        if not made:  # no value of the flags fits: then whoever runs it says why
            made = [self._filled(arrays, found.smallest, seed)]
        return Makings(
            made,
            lambda: [self._filled(arrays, sizes, seed, flags) for flags, sizes in others],
            found,
            lambda scale: self._rescaled(made[-1], scale),
            branches,
        )

    def _given(self, given: Mapping[str, Any] | None) -> dict[str, Array]:
        types = {name: spec.dtype for name, spec in self.specs.items()}
        arrays = {name: input_array(f"input {name!r}", value, types.get(name)) for name, value in (given or {}).items()}
        return {name: np.asarray(array) for name, array in arrays.items()}

    def shapes(self, given: Mapping[str, Any] | None = None) -> tuple[list[list[int]], dict[str, int]]:
        """Shapes of all inputs in order, and sizes of dynamic dimensions by name, as make() would choose them: of what
        was given, else usual ones, else the smallest that pass. InvalidArgument as there."""
        arrays = self._given(given)
        found = self._sizes(arrays)
        assert found.smallest is not None
        chosen = found.usual or found.smallest
        shapes = [list(arrays[n].shape) if n in arrays else shape_at(s, chosen) for n, s in self.specs.items()]
        return shapes, {name: chosen[name] for name in dims_of(self.specs.values()) if name in chosen}

    @staticmethod
    def _rescaled(made: Made, scale: float) -> Made | None:
        """The same with normal values so many times as large; None where there are none."""
        normal = [name for name, how in made.how.items() if how.endswith(NORMAL)]
        scaled = {name: (made.arrays[name] * scale).astype(made.arrays[name].dtype) for name in normal}
        how = {name: f"{made.how[name]} times {scale:g}" for name in normal}
        return Made({**made.arrays, **scaled}, {**made.how, **how}) if normal else None

    def _flags(self, arrays: Mapping[str, Array], sizes: Mapping[str, int], seed: int) -> list[dict[str, int]]:
        """Values to give inputs that are one integer each and that the graph compares with constants, by which it may
        branch: what they are compared with and what they are not, one set after the other, beginning by the seed. One
        empty set where there are no such inputs."""
        if self._owner is None:
            return [{}]
        shapes = [shape_at(spec, sizes) for spec in self.specs.values()]
        choices: dict[str, list[int]] = {}
        for name, spec in self.specs.items():
            if name not in arrays and spec.dtype.kind in "iu" and math.prod(shape_at(spec, sizes)) == 1:
                choices[name] = flag_values(uses_of(self._detailed(shapes), name), spec)
        choices = {name: values for name, values in choices.items() if values}
        longest = max(map(len, choices.values()), default=1)
        turns = [(seed - 1 + turn) % longest for turn in range(longest)]
        return [{name: values[turn % len(values)] for name, values in choices.items()} for turn in turns[:MOST_FLAGS]]

    def _sizes(self, arrays: Mapping[str, Array], flags: Mapping[str, int] | None = None) -> Found:
        """The search for the dimensions that no array fixes, once for each set of sizes. With flags, for which no sizes
        need fit, contents of inputs count: the rules of the branches that are taken are asked alone."""
        fixed = self._fixed(arrays)
        contents = self._contents(arrays, flags) if flags is not None else []
        key = (tuple(sorted(fixed.items())), tuple((place, tuple(values)) for place, values in contents))
        if key in self._searches:
            return self._searches[key]
        dims = {name: dim for name, dim in dims_of(self.specs.values()).items() if name not in fixed}
        if self._owner is None:
            found = Found({**fixed, **{name: _small(dim) for name, dim in dims.items()}})
        elif not dims:
            found = Found(fixed)
        else:
            own = {**{name: size for name, size in self._known().items() if name in dims}, **fixed}
            specs = list(self.specs.values())
            found = (
                Found(own)
                if self._fits(own, contents)
                else search(
                    specs,
                    lambda shapes: self._try(shapes, contents=contents),
                    fixed,
                    seconds=self._seconds,
                    indexing=self._indexing,
                )
            )
        if found.smallest is None and flags is None:
            raise _core.InvalidArgument(
                f"inputs: of {found.tried} choices of sizes for {', '.join(dims)} none passes every shape rule; give "
                f"arrays (example_inputs of load(), examples of build(), --input NAME=FILE.npy). The furthest got to: "
                f"{found.failure}"
            )
        self._searches[key] = found
        return found

    def _fixed(self, arrays: Mapping[str, Array]) -> dict[str, int]:
        """Sizes of dynamic dimensions by name that arrays or the caller fix. InvalidArgument: these differ."""
        fixed = {
            dim.name if isinstance(dim, Dim) else f"{name}_dim{axis}": size
            for name, array in arrays.items()
            for axis, (dim, size) in enumerate(zip(self.specs[name].shape, array.shape, strict=False))
            if not isinstance(dim, int)
        }
        for name, size in self._wanted.items():
            if fixed.setdefault(name, size) != size:
                raise _core.InvalidArgument(f"inputs: dimension {name!r} is {fixed[name]} in an array, not {size}")
        return fixed

    def _contents(self, arrays: Mapping[str, Array], flags: Mapping[str, int]) -> list[tuple[int, list[int]]]:
        """What the rules are told of inputs' contents, by place: flags, and given arrays that are one integer."""
        known = {n: [int(x.reshape(-1)[0])] for n, x in arrays.items() if x.dtype.kind in "iub" and x.size == 1}
        known |= {name: [value] for name, value in flags.items()}
        return [(place, known[name]) for place, name in enumerate(self.specs) if name in known]

    def _fits(self, sizes: Mapping[str, int], contents: Sequence[tuple[int, list[int]]] = ()) -> bool:
        """Whether these are sizes of all dimensions, make arrays that one can hold, and pass."""
        if any(sizes.get(name, 0) < 1 for name in dims_of(self.specs.values())):
            return False
        shapes = [shape_at(spec, sizes) for spec in self.specs.values()]
        return sum(map(math.prod, shapes)) <= MOST_ELEMENTS and self._try(shapes, contents=contents).fits

    def _indexing(self, shapes: Sequence[Sequence[int]]) -> set[str]:
        """Inputs whose elements are read as indices."""
        details = self._detailed(shapes)
        return {name for name in self.specs if uses_of(details, name).bounds() is not None}

    def _try(
        self, shapes: Sequence[Sequence[int]], details: bool = False, contents: Sequence[tuple[int, list[int]]] = ()
    ) -> ShapeTrial:
        assert self._owner is not None
        return self._owner.try_shapes(shapes, details=details, contents=contents)

    def _detailed(self, shapes: Sequence[Sequence[int]]) -> ShapeTrial:
        """Nodes and values at these shapes, with both sides of each branch."""
        key = tuple(tuple(shape) for shape in shapes)
        if key not in self._details:
            try:
                self._details[key] = self._try(key, details=True)
            except _core.InvalidArgument:  # given arrays that do not fit, which the program will say
                self._details[key] = ShapeTrial(False)
        return self._details[key]

    def _filled(
        self,
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        seed: int,
        flags: Mapping[str, int] | None = None,
    ) -> Made:
        shapes = {name: shape_at(spec, sizes) for name, spec in self.specs.items() if name not in arrays}
        shapes.update({name: list(array.shape) for name, array in arrays.items()})
        random = np.random.default_rng(seed)
        details = None
        if self._owner is not None:
            details = self._detailed([shapes[name] for name in self.specs])
        filled, how = dict(arrays), {}
        for name, spec in self.specs.items():
            if name in arrays:
                continue
            uses = uses_of(details, name) if details is not None else Uses()
            if flags and name in flags:
                array = np.full(shapes[name], flags[name], spec.dtype)
                why = f"{flags[name]}, which it is {'' if flags[name] in uses.constants else 'not '}compared with"
            else:
                array, why = fill(spec, shapes, uses, random, seed, refuse_integers=self._owner is None)
            filled[name] = array
            how[name] = f"{array.dtype}[{','.join(map(str, array.shape))}], {why}"
        return Made({name: filled[name] for name in self.specs}, how)


def check_sizes(specs: Mapping[str, TensorSpec], sizes: Mapping[str, int]) -> None:
    """InvalidArgument: a name is none of a dynamic dimension of `specs`, or a size none that its dimension takes."""
    dims = dims_of(specs.values())
    for name, size in sizes.items():
        if name not in dims:
            raise _core.InvalidArgument(
                f"inputs: there is no dynamic dimension {name!r}; "
                f"the dynamic ones are {', '.join(map(repr, dims)) or 'none'}"
            )
        if legal(dims[name], size) != size:
            low, high, by = dims[name].min, dims[name].max, dims[name].multiple_of
            takes = f"{low}..{'' if high is None else high}{f' by {by}' if by > 1 else ''}"
            raise _core.InvalidArgument(f"inputs: dimension {name!r} cannot be {size}, it takes {takes}")


def _small(dim: Dim) -> int:
    size = max(dim.min, 2 if dim.max is None or dim.max >= 2 else dim.max)
    return -(-size // dim.multiple_of) * dim.multiple_of


def seeded_inputs(
    specs: Mapping[str, TensorSpec],
    given: Mapping[str, Any] | None = None,
    seed: int = 1,
    program: ShapeRules | None = None,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """`given` completed: normal values for float inputs, integers by what `program`, the Program or Model that takes
    them, does with them; sizes that the given arrays or `sizes`, by name, fix, else usual ones that pass its shape
    rules. Without a program sizes are small.

    InvalidArgument: a name in `given` is unknown or its value no array, no sizes pass, a name or size in `sizes` is
    none of a dynamic dimension, or an integer input is not given and there is no program.
    """
    return InputMaker(specs, program, sizes=sizes).make(given, seed).made[-1].arrays


__all__ = ["InputMaker", "Made", "Makings", "check_sizes", "seeded_inputs"]
