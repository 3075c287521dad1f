"""Inputs to verify on, in the order in which to try them, and what a program records of those that were made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pinnace import _core
from pinnace.files import printable
from pinnace.inputs.maker import Made, Makings
from pinnace.program import Program
from pinnace.types import Array, Dim

FACTS = 64  # inputs of which a program records what was made up
# What normal values are multiplied by, one after the other, where outputs do not move with them: a sigmoid that is 1
# wherever one looks says nothing of what comes before it.
SCALES = (0.1, 0.01, 10.0, 100.0)
UNMOVED = "does not move with the input"  # as verification says it


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
    program: Program,
    makings: Sequence[Makings],
    verify: Callable[[Program, list[dict[str, Array]]], Program],
    renamed: Mapping[str, str] | None = None,
) -> Program:
    """What `verify` makes of the program and the first attempt that neither program nor source refuse to run
    (InvalidArgument, Unsupported). Where all are refused, the first refusal is raised. Where outputs do not move with
    these inputs, larger and smaller values join them, if they do with those. The program has the facts of the first
    attempt, with the names that `renamed` has for inputs."""
    refused: _core.Error | None = None

    def verified(used: Sequence[Made], first: bool) -> Program:
        told = program if first else program.with_metadata(facts_of(makings, used, renamed))
        return verify(told, [made.arrays for made in used])

    for used in attempts(makings):
        try:
            done = verified(used, refused is None)
        except (_core.InvalidArgument, _core.Unsupported) as error:
            refused = refused or error
            continue
        return moved(done, used, makings, lambda more: verified(more, False))
    assert refused is not None
    raise refused


def moved(
    done: Program, used: Sequence[Made], makings: Sequence[Makings], verified: Callable[[Sequence[Made]], Program]
) -> Program:
    """What `verified` makes of values of another size beside those used, where outputs of `done` do not move and do
    with those; else `done`."""
    for scale in SCALES if UNMOVED in done.metadata.verified else ():
        more = [made for making in makings if (made := making.rescaled(scale)) is not None]
        if not more:
            break
        try:
            again = verified([*used, *more])
        except (_core.InvalidArgument, _core.Unsupported):
            continue
        if UNMOVED not in again.metadata.verified:
            return again
    return done


def ranges_of(makings: Sequence[Makings]) -> list[tuple[str, int, int | None, int]]:
    """Ranges to give to the program's dimensions, as the core takes them: those found beside one example alone, since
    another may have fixed the dimension."""
    found = makings[0].found.ranges if len(makings) == 1 else []
    return [(dim.name, dim.min, dim.max, dim.multiple_of) for dim in found]


def facts_of(
    makings: Sequence[Makings], used: Sequence[Made], renamed: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What to record of inputs that were made up: one entry for each of the first FACTS, and for each range and group
    of dimensions that was found. Names are from files: what is not printed is escaped. `renamed`
    has the names of inputs in the program, where these are other ones."""
    new = renamed or {}
    how: dict[str, list[str]] = {}
    for made in used:
        for name, said in made.how.items():
            if said not in how.setdefault(name, []):
                how[name].append(said)
    facts = {f"made_up.{new.get(name, name)}": "; ".join(said[:4]) for name, said in list(how.items())[:FACTS]}
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


__all__ = ["attempts", "facts_of", "first_that_runs", "moved", "range_text", "ranges_of"]
