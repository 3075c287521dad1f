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
OTHERS = 7  # further sizes that a build may turn to
FACTS = 64  # inputs of which a program records what was made up
NORMAL = "normal values"
# What normal values are multiplied by, one after the other, where outputs do not move with them: a sigmoid that is 1
# wherever one looks says nothing of what comes before it.
SCALES = (0.1, 0.01, 10.0, 100.0)
UNMOVED = "does not move with the input"  # as verification says it
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
        self._searches: dict[Any, Found] = {}

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
        if self._core is None:
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
        fixed = {
            dim.name if isinstance(dim, Dim) else f"{name}_dim{axis}": size
            for name, array in arrays.items()
            for axis, (dim, size) in enumerate(zip(self.specs[name].shape, array.shape, strict=False))
            if not isinstance(dim, int)
        }
        contents = self._contents(arrays, flags) if flags is not None else []
        key = (tuple(sorted(fixed.items())), tuple((place, tuple(values)) for place, values in contents))
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
            found = (
                Found(own)
                if self._fits(own, contents)
                else search(specs, lambda shapes: self._try(shapes, contents=contents), fixed, indexing=self._indexing)
            )
        if found.smallest is None and flags is None:
            raise _core.InvalidArgument(
                f"inputs: of {found.tried} choices of sizes for {', '.join(dims)} none passes every shape rule; give "
                f"arrays (example_inputs of load(), examples of build(), --input NAME=FILE.npy). The furthest got to: "
                f"{found.failure}"
            )
        self._searches[key] = found
        return found

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
        return sum(map(math.prod, shapes)) <= MOST_ELEMENTS and bool(self._try(shapes, contents=contents)["fits"])

    def _indexing(self, shapes: Sequence[Sequence[int]]) -> set[str]:
        """Inputs whose elements are read as indices."""
        details = self._detailed(shapes)
        return {name for name in self.specs if uses_of(details, name).bounds() is not None}

    def _try(
        self, shapes: Sequence[Sequence[int]], details: bool = False, contents: Sequence[tuple[int, list[int]]] = ()
    ) -> Mapping[str, Any]:
        if isinstance(self._core, _core.Program):
            return self._core.try_shapes(shapes, details, custom_ops(), contents)
        said: Mapping[str, Any] = self._core.try_shapes(shapes, details, contents)
        return said

    def _detailed(self, shapes: Sequence[Sequence[int]]) -> Mapping[str, Any]:
        """Nodes and values at these shapes, with both sides of each branch."""
        key = tuple(tuple(shape) for shape in shapes)
        if key not in self._details:
            try:
                self._details[key] = self._try(key, details=True)
            except _core.InvalidArgument:  # given arrays that do not fit, which the program will say
                self._details[key] = {"fits": False, "nodes": [], "values": {}}
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
        if self._core is not None:
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
                array, why = fill(spec, shapes, uses, random, seed, refuse_integers=self._core is None)
            filled[name] = array
            how[name] = f"{array.dtype}[{','.join(map(str, array.shape))}], {why}"
        return Made({name: filled[name] for name in self.specs}, how)


def flag_values(uses: Uses, spec: TensorSpec) -> list[int]:
    """What to give an input by which the graph may branch: the constants that it is compared with, and one that is none
    of them; empty for what is an index, a length or a mask."""
    most = int(np.iinfo(spec.dtype).max)
    constants = [c for c in uses.constants if c <= most]
    if not constants or uses.lengths or uses.bounds() is not None or _MASK.search(spec.name):
        return []
    other = constants[0] // 2 if constants[0] // 2 not in constants else max(constants) + 1
    return [*constants, other] if other <= most else constants


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
    if len(uses.least) + len(uses.greatest) == 1 and np.prod(shape) == 1:  # a bound of what is selected: all of it is
        value = uses.least[0][0] if uses.least else uses.greatest[0][1]
        return np.full(shape, value, spec.dtype), f"{value:g}, the {'least' if uses.least else 'greatest'} it bounds"
    if uses.sizes or (_FACTOR.search(spec.name) and np.prod(shape) <= 16):
        return np.ones(shape, spec.dtype), "ones: a factor or a size"
    return random.standard_normal(shape).astype(spec.dtype), NORMAL


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
    the smallest; then further sizes. Programs may refuse at run time what no shape rule objects to."""
    yield [made for making in makings for made in [*making.made, *making.branches]]
    if any(making.branches for making in makings):
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
    (InvalidArgument, Unsupported). Where all are refused, the first refusal is raised. Where outputs do not move with
    these inputs, larger and smaller values join them, if they do with those. The program has the facts of the first
    attempt."""
    refused: _core.Error | None = None

    def verified(used: Sequence[Made], first: bool) -> Program:
        core = program._core
        if not first:
            core = core.with_metadata(facts_of(makings, used))
        return verify(Program(core), [made.arrays for made in used])

    for used in attempts(makings):
        try:
            done = verified(used, refused is None)
        except (_core.InvalidArgument, _core.Unsupported) as error:
            refused = refused or error
            continue
        return _moved(done, used, makings, lambda more: verified(more, False))
    assert refused is not None
    raise refused


def _moved(
    done: Program, used: Sequence[Made], makings: Sequence[Makings], verified: Callable[[Sequence[Made]], Program]
) -> Program:
    """A verification with values of another size beside those used, where that makes more outputs move."""
    for scale in SCALES if UNMOVED in done.metadata.get("verified", "") else ():
        more = [made for making in makings if (made := making.rescaled(scale)) is not None]
        if not more:
            break
        try:
            again = verified([*used, *more])
        except (_core.InvalidArgument, _core.Unsupported):
            continue
        if UNMOVED not in again.metadata["verified"]:
            return again
    return done


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
            tried = making.found.tried
            facts["made_up"] = (
                f"the search for sizes ended at its bounds, after {tried} choices; it may have missed some"
            )
    return {printable(key): printable(value) for key, value in facts.items()}


def range_text(dim: Dim) -> str:
    """The range in words."""
    if dim.max == dim.min:
        return f"{dim.min} only"
    parts = [f"at least {dim.min}"] if dim.min > 1 else []
    parts += [f"at most {dim.max}"] if dim.max is not None else []
    parts += [f"a multiple of {dim.multiple_of}"] if dim.multiple_of > 1 else []
    return ", ".join(parts) or "any size"
