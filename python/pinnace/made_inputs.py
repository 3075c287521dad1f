"""Inputs for whoever has none: sizes from a search, contents from what the graph does with them; seeded."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.files import printable
from pinnace.input_uses import Uses, uses_of
from pinnace.made_sizes import Found, dims_of, search, shape_at
from pinnace.program import Program
from pinnace.session import input_array
from pinnace.types import Array, Dim, TensorSpec, custom_ops

_MASK = re.compile(r"mask", re.IGNORECASE)
_PLACES = re.compile(r"pos(ition)?s?(_?ids?)?$|position", re.IGNORECASE)
_LENGTH = re.compile(r"(^|_)(lens?|lengths?)$|(^|[a-z])(Len|Length)s?$|length", re.IGNORECASE)
_FACTOR = re.compile(r"scale|ratio|factor", re.IGNORECASE)
OTHERS = 6  # further sizes that a build may turn to
FACTS = 64  # inputs of which a program records what was made up
MOST_ELEMENTS = 1 << 28  # of all inputs at sizes that a file says its example had


@dataclass(frozen=True)
class Made:
    """One set of inputs, in order. `how` says of each that was made up what it is; it is empty where all were given."""

    arrays: dict[str, Array]
    how: dict[str, str]


@dataclass
class Makings:
    """All that can be made for one set of given arrays: at the smallest sizes, at usual ones where there are others,
    and at further ones; and what the search of sizes found."""

    made: list[Made]
    others: Callable[[], list[Made]]
    found: Found = field(default_factory=Found)


class InputMaker:
    """Makes inputs for one graph.

    specs  its inputs.
    owner  the Model or Program whose graph it is; None: nothing is known of it, sizes are small and integers refused.
    known  gives sizes of open dimensions, where the file that the model is from says what its example had.
    """

    def __init__(
        self, specs: Mapping[str, TensorSpec], owner: Any = None, known: Callable[[], Mapping[str, int]] = dict
    ) -> None:
        """Nothing is searched before inputs are made."""
        self.specs = specs
        self._known = known
        self._core = getattr(owner, "_core", owner)
        self._details: dict[tuple[tuple[int, ...], ...], Mapping[str, Any]] = {}
        self._searches: dict[tuple[tuple[str, int], ...], Found] = {}

    def make(self, given: Mapping[str, Any] | None = None, seed: int = 1) -> Makings:
        """What was given, completed. InvalidArgument: a name in `given` is unknown or its value no array; no sizes pass
        the shape rules; or an integer input is not given and nothing is known of the graph."""
        arrays = {name: np.asarray(input_array(f"input {name!r}", value)) for name, value in (given or {}).items()}
        unknown = [name for name in arrays if name not in self.specs]
        if unknown:
            raise _core.InvalidArgument(
                f"inputs: unknown {unknown}; the model takes {', '.join(map(str, self.specs.values()))}"
            )
        if len(arrays) == len(self.specs):
            ordered = {name: arrays[name] for name in self.specs}
            return Makings([Made(ordered, {})], list)
        found = self._sizes(arrays)
        assert found.smallest is not None
        choices = [found.smallest, *([found.usual] if found.usual else [])]
        return Makings(
            [self._filled(arrays, sizes, seed) for sizes in choices],
            lambda: [self._filled(arrays, sizes, seed) for sizes in found.others[:OTHERS] if sizes not in choices],
            found,
        )

    def _sizes(self, arrays: Mapping[str, Array]) -> Found:
        """The search for the dimensions that no array fixes, once for each set of sizes."""
        fixed = {
            dim.name if isinstance(dim, Dim) else f"{name}_dim{axis}": size
            for name, array in arrays.items()
            for axis, (dim, size) in enumerate(zip(self.specs[name].shape, array.shape, strict=False))
            if not isinstance(dim, int)
        }
        key = tuple(sorted(fixed.items()))
        if key in self._searches:
            return self._searches[key]
        dims = {name: dim for name, dim in dims_of(self.specs.values()).items() if name not in fixed}
        if self._core is None:
            found = Found({**fixed, **{name: _small(dim) for name, dim in dims.items()}})
        elif not dims:
            found = Found(fixed)
        else:
            own = {**{name: size for name, size in self._known().items() if name in dims}, **fixed}
            specs = list(self.specs.values())
            found = Found(own) if self._fits(own) else search(specs, self._try, fixed, indexing=self._indexing)
        if found.smallest is None:
            raise _core.InvalidArgument(
                f"inputs: of {found.tried} choices of sizes for {', '.join(dims)} none passes every shape rule; give "
                f"arrays (example_inputs of load(), examples of build(), --input NAME=FILE.npy). The furthest got to: "
                f"{found.failure}"
            )
        self._searches[key] = found
        return found

    def _fits(self, sizes: Mapping[str, int]) -> bool:
        """Whether these are sizes of all dimensions, make arrays that one can hold, and pass."""
        if any(sizes.get(name, 0) < 1 for name in dims_of(self.specs.values())):
            return False
        shapes = [shape_at(spec, sizes) for spec in self.specs.values()]
        return sum(map(math.prod, shapes)) <= MOST_ELEMENTS and bool(self._try(shapes)["fits"])

    def _indexing(self, shapes: Sequence[Sequence[int]]) -> set[str]:
        """Inputs whose elements are read as indices."""
        details = self._try(shapes, details=True)
        return {name for name in self.specs if uses_of(details, name).bounds() is not None}

    def _try(self, shapes: Sequence[Sequence[int]], details: bool = False) -> Mapping[str, Any]:
        if isinstance(self._core, _core.Program):
            return self._core.try_shapes(shapes, details, custom_ops())
        said: Mapping[str, Any] = self._core.try_shapes(shapes, details)
        return said

    def _filled(self, arrays: Mapping[str, Array], sizes: Mapping[str, int], seed: int) -> Made:
        shapes = {name: shape_at(spec, sizes) for name, spec in self.specs.items() if name not in arrays}
        shapes.update({name: list(array.shape) for name, array in arrays.items()})
        random = np.random.default_rng(seed)
        details = None
        if self._core is not None:
            key = tuple(tuple(shapes[name]) for name in self.specs)
            if key not in self._details:
                try:
                    self._details[key] = self._try(key, details=True)
                except _core.InvalidArgument:  # given arrays that do not fit, which the program will say
                    self._details[key] = {"fits": False, "nodes": [], "values": {}}
            details = self._details[key]
        filled, how = dict(arrays), {}
        for name, spec in self.specs.items():
            if name in arrays:
                continue
            uses = uses_of(details, name) if details is not None else Uses()
            array, why = fill(spec, shapes, uses, random, seed, refuse_integers=self._core is None)
            filled[name] = array
            how[name] = f"{array.dtype}[{','.join(map(str, array.shape))}], {why}"
        return Made({name: filled[name] for name in self.specs}, how)


def _small(dim: Dim) -> int:
    size = max(dim.min, 2 if dim.max is None or dim.max >= 2 else dim.max)
    return -(-size // dim.multiple_of) * dim.multiple_of


def fill(
    spec: TensorSpec,
    shapes: Mapping[str, Sequence[int]],
    uses: Uses,
    random: np.random.Generator,
    seed: int,
    refuse_integers: bool = False,
) -> tuple[Array, str]:
    """The contents of one input, and a phrase that says what they are.

    shapes           of all inputs.
    refuse_integers  InvalidArgument for integers, of whose use nothing is known.
    """
    shape, kind = list(shapes[spec.name]), spec.dtype.kind
    if kind in "iu" and refuse_integers:
        raise _core.InvalidArgument(
            f"input {spec}: integers cannot be guessed; give an array (example_inputs of load(), examples of "
            f"build(), --input {spec.name}=FILE.npy)"
        )
    bounds = uses.bounds()
    if bounds is not None:
        low, high, why = bounds
        if _PLACES.search(spec.name) and shape and shape[-1] > 1:
            return _counted(spec, shape, low, high), f"0, 1, 2, … up to {high}: {why}"
        return random.integers(low, high + 1, shape).astype(spec.dtype), f"from {low} to {high}: {why}"
    if _MASK.search(spec.name):
        return np.ones(shape, spec.dtype), "ones: a mask"
    if kind == "b":
        return random.integers(0, 2, shape).astype(bool), "True and False"
    if kind in "iu":
        return _integers(spec, shapes, uses, random, seed)
    if uses.sizes or (_FACTOR.search(spec.name) and np.prod(shape) <= 16):
        return np.ones(shape, spec.dtype), "ones: a factor or a size"
    return random.standard_normal(shape).astype(spec.dtype), "normal values"


def _integers(
    spec: TensorSpec, shapes: Mapping[str, Sequence[int]], uses: Uses, random: np.random.Generator, seed: int
) -> tuple[Array, str]:
    """Integers that index nothing."""
    shape = list(shapes[spec.name])
    limits = np.iinfo(spec.dtype)
    constants = [c for c in uses.constants if c <= limits.max]
    sequence = max(uses.lengths) if uses.lengths else _sequence(spec, shapes)
    if uses.lengths or (_LENGTH.search(spec.name) and len(shape) <= 1 and sequence):
        longest = min(sequence, int(limits.max))
        array = random.integers(-(-longest // 2), longest + 1, shape).astype(spec.dtype)
        array.reshape(-1)[:1] = longest
        return array, f"lengths of at most {longest}"
    if constants:
        value = constants[(seed - 1) % len(constants)]
        return np.full(shape, value, spec.dtype), f"{value}, which it is compared with"
    if _PLACES.search(spec.name) and shape and shape[-1] > 1:
        return _counted(spec, shape, 0, int(limits.max)), "0, 1, 2, …"
    if uses.sizes:
        return random.integers(1, 3, shape).astype(spec.dtype), f"1 and 2: '{uses.sizes[0]}' takes it as a size"
    if limits.bits == 8:
        whole = random.integers(limits.min, limits.max + 1, shape).astype(spec.dtype)
        return whole, f"from {limits.min} to {limits.max}"
    return random.integers(0, 2, shape).astype(spec.dtype), "0 and 1"


def _counted(spec: TensorSpec, shape: Sequence[int], low: int, high: int) -> Array:
    """0, 1, 2, … along the last axis, again from the least where the greatest is passed."""
    row = low + np.arange(shape[-1]) % (high - low + 1)
    return np.broadcast_to(row, shape).astype(spec.dtype)


def _sequence(spec: TensorSpec, shapes: Mapping[str, Sequence[int]]) -> int:
    """The length of what the other inputs hold: the longest of their axes behind the first."""
    return max((max(s[1:]) for name, s in shapes.items() if name != spec.name and len(s) > 1), default=0)


def seeded_inputs(
    specs: Mapping[str, TensorSpec], given: Mapping[str, Any] | None = None, seed: int = 1, program: Any = None
) -> dict[str, Array]:
    """`given` completed: normal values for float inputs, integers by what `program`, the Program or Model that takes
    them, does with them; sizes that the given arrays fix, else usual ones that pass its shape rules. Without a program
    sizes are small.

    InvalidArgument: a name in `given` is unknown or its value no array, no sizes pass, or an integer input is not given
    and there is no program.
    """
    return InputMaker(specs, program).make(given, seed).made[-1].arrays


def attempts(makings: Sequence[Makings]) -> Iterator[list[Made]]:
    """Inputs to verify on, in the order in which to try them: all that were made; at one size each, the usual and then
    the smallest; then further sizes. Programs may refuse at run time sizes to which no shape rule objects."""
    yield [made for making in makings for made in making.made]
    if any(len(making.made) > 1 for making in makings):
        yield [making.made[-1] for making in makings]
        yield [making.made[0] for making in makings]
    if len(makings) == 1:
        yield from ([made] for made in makings[0].others())


def first_that_runs(
    program: Program, makings: Sequence[Makings], verify: Callable[[Program, list[dict[str, Array]]], Program]
) -> Program:
    """What `verify` makes of the program and the first attempt that neither program nor source refuse to run
    (InvalidArgument, Unsupported). Where all are refused, the first refusal is raised. The program has the facts of the
    first attempt."""
    refused: _core.Error | None = None
    for used in attempts(makings):
        core = program._core
        if refused is not None:
            for key, value in facts_of(makings, used).items():
                core = core.with_metadata(key, value)
        try:
            return verify(Program(core), [made.arrays for made in used])
        except (_core.InvalidArgument, _core.Unsupported) as error:
            refused = refused or error
    assert refused is not None
    raise refused


def ranges_of(makings: Sequence[Makings]) -> list[tuple[str, int, int | None, int]]:
    """Ranges to give to the program's dimensions, as the core takes them: those found beside one example alone, since
    another may have fixed the dimension."""
    found = makings[0].found.ranges if len(makings) == 1 else []
    return [(dim.name, dim.min, dim.max, dim.multiple_of) for dim in found]


def facts_of(makings: Sequence[Makings], used: Sequence[Made]) -> dict[str, str]:
    """What to record of inputs that were made up: one entry for each of the first FACTS, and for each range and group
    of dimensions that was found. Names are from files: what is not printed is escaped."""
    how: dict[str, list[str]] = {}
    for made in used:
        for name, said in made.how.items():
            if said not in how.setdefault(name, []):
                how[name].append(said)
    facts = {f"made_up.{name}": "; ".join(said[:4]) for name, said in list(how.items())[:FACTS]}
    for making in makings:
        for dim in making.found.ranges:
            facts[f"range.{dim.name}"] = range_text(dim)
        for names in making.found.together:
            facts[f"range.{names[0]}"] = f"changes together with {', '.join(names[1:])}"
        if not making.found.complete:
            facts["made_up"] = f"the search of sizes ended after {making.found.tried} choices"
    return {printable(key): printable(value) for key, value in facts.items()}


def range_text(dim: Dim) -> str:
    """The range in words."""
    if dim.max == dim.min:
        return f"{dim.min} only"
    parts = [f"at least {dim.min}"] if dim.min > 1 else []
    parts += [f"at most {dim.max}"] if dim.max is not None else []
    parts += [f"a multiple of {dim.multiple_of}"] if dim.multiple_of > 1 else []
    return ", ".join(parts) or "any size"
