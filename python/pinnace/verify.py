"""Verification: a converted program against its source, by stated bounds; the first layer that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.program import Program
from pinnace.session import Session, as_array
from pinnace.source import Source
from pinnace.types import Array, Dim, TensorSpec

# Largest difference allowed, relative to the largest magnitude of the whole output. Integers and bools must be equal.
BOUNDS = {"float32": 1e-4, "float64": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}
# The same for float32 values of a session of that precision: what the type itself may differ by.
PRECISION_BOUNDS = {"fp32": BOUNDS["float32"], "fp16": BOUNDS["float16"], "bf16": BOUNDS["bfloat16"]}


def bounds_of(precision: str) -> dict[str, float]:
    """Bounds by dtype for values of a session of that precision."""
    least = PRECISION_BOUNDS.get(precision, 0.0)
    return {dtype: max(bound, least) for dtype, bound in BOUNDS.items()}


@dataclass(frozen=True)
class Difference:
    """How far a value is from the wanted one: absolute, and relative to the latter's largest magnitude."""

    largest: float
    relative: float
    ok: bool
    why: str


def difference(got: Array, want: Array, bounds: Mapping[str, float] = BOUNDS) -> Difference:
    """Compares two arrays. Non-finite values must stand in the same places."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return Difference(
            np.inf, np.inf, False, f"is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"
        )
    if got.size == 0:
        return Difference(0.0, 0.0, True, "")
    bound = bounds.get(str(want.dtype), 0.0)
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return Difference(np.inf, np.inf, False, "non-finite values stand in other places")
    magnitude = float(np.abs(b[finite]).max(initial=0.0))
    largest = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    relative = 0.0 if largest == 0 else largest / magnitude if magnitude else np.inf
    ok = relative <= bound
    return Difference(
        largest, relative, ok, "" if ok else f"differs by {relative:.3g} of its largest magnitude, bound {bound:g}"
    )


def seeded_inputs(
    specs: Mapping[str, TensorSpec], given: Mapping[str, Any] | None = None, seed: int = 1
) -> dict[str, Array]:
    """`given` completed: normal values for float inputs; sizes that the given arrays fix, else small ones in range.

    InvalidArgument: a name in `given` is unknown, or an integer input is not given.
    """
    random = np.random.default_rng(seed)
    inputs = {name: np.asarray(as_array(value)) for name, value in (given or {}).items()}
    unknown = [name for name in inputs if name not in specs]
    if unknown:
        raise _core.InvalidArgument(f"inputs: unknown {unknown}; the model takes {', '.join(map(str, specs.values()))}")
    sizes = {
        dim.name: size
        for name, array in inputs.items()
        for dim, size in zip(specs[name].shape, array.shape, strict=False)
        if isinstance(dim, Dim)
    }
    for spec in specs.values():
        if spec.name in inputs:
            continue
        shape = [sizes.get(d.name, _size_of(d)) if isinstance(d, Dim) else _size_of(d) for d in spec.shape]
        if spec.dtype.kind in "iu":
            raise _core.InvalidArgument(
                f"input {spec}: integers cannot be guessed; give an array (example_inputs of load(), examples of "
                f"build(), --input {spec.name}=FILE.npy)"
            )
        if spec.dtype.kind == "b":
            inputs[spec.name] = random.integers(0, 2, shape).astype(bool)
        else:
            inputs[spec.name] = random.standard_normal(shape).astype(spec.dtype)
    return {name: inputs[name] for name in specs}


def _size_of(dim: int | Dim | None) -> int:
    if isinstance(dim, int):
        return dim
    if dim is None:
        return 2
    size = max(dim.min, 2 if dim.max is None or dim.max >= 2 else dim.max)
    return -(-size // dim.multiple_of) * dim.multiple_of


def verify_program(
    program: Program, source: Source | None, examples: Sequence[Mapping[str, Any]], targets: Sequence[str]
) -> Program:
    """The program with its verification recorded.

    InvalidArgument: an example does not fit the program, which runs before its source does. VerificationError names
    output, error and the first layer that differs.
    """
    if source is None:
        return Program(program._core.with_metadata("verified", "no: the model has no source to run"))
    arrays = [[np.asarray(as_array(e[name])) for name in program.inputs] for e in examples]
    core = program._core.with_metadata("verified", f"{len(arrays)} input(s) against {source.description}")
    expected: list[list[Array] | None] = [None] * len(arrays)
    for target in targets:
        try:
            session = Session(program, target)
        except _core.Unsupported as error:
            core = core.with_metadata(f"verified.{target}", f"no: {_one_line(error)}")
            continue
        worst = 0.0
        moved: dict[int, list[float]] = {}
        for i, inputs in enumerate(arrays):
            session.reset_state()
            got = session.run(dict(zip(program.inputs, inputs, strict=True)))
            want = expected[i] or source.run(inputs)
            expected[i] = want
            if len(got) != len(want):
                raise _core.VerificationError(f"the program has {len(got)} outputs, its source gave {len(want)}")
            for k, ((name, value), reference) in enumerate(zip(got.items(), want, strict=True)):
                d = difference(value, reference)
                if not d.ok and quantizes(program):
                    if i not in moved:
                        moved[i] = source_movement(source, inputs, want)
                    bound = min(MOVEMENT_FACTOR * moved[i][k], MOVEMENT_MOST)
                    d = difference(value, reference, dict.fromkeys(BOUNDS, bound))
                if not d.ok:
                    where = first_difference(program, source, inputs, target)
                    raise _core.VerificationError(f"on {target}: output {name!r} {d.why}; {where}")
                worst = max(worst, d.relative)
        said = f"yes: largest relative difference {worst:.3g}"
        if moved:
            most = max(max(m) for m in moved.values())
            said += f"; the source itself moves by {most:.3g} when its inputs change by {NUDGE:g}"
        core = core.with_metadata(f"verified.{target}", said)
    return Program(core)


# A quantised network rounds inside: two right implementations whose sums differ in the last bit of a float now and then
# differ by a unit of 8 bits, and later layers make of it what they make of any such change. How much that is shows the
# source itself, given inputs that differ by as little.
NUDGE = 1e-5
MOVEMENT_FACTOR = 4.0
MOVEMENT_MOST = 0.5  # whatever the source does: outputs of another model differ by more
QUANTIZING = {"quantize_linear", "dynamic_quantize_linear", "mat_mul_integer", "conv_integer"}


def quantizes(program: Program) -> bool:
    """Whether values are rounded to few bits inside the program."""
    return any(node.op in QUANTIZING for node in program.nodes)


def source_movement(source: Source, inputs: Sequence[Array], outputs: Sequence[Array], times: int = 3) -> list[float]:
    """For each output: the most it moves, relative to its largest magnitude, when the inputs change a little: each
    element by a random part of the source's step for it, where it has one, floats else of NUDGE of the largest."""
    random = np.random.default_rng(7)
    most = [0.0] * len(outputs)
    steps = getattr(source, "steps", None) or [0.0] * len(inputs)
    for _ in range(times):
        nudged = [_nudged(x, step, random) for x, step in zip(inputs, steps, strict=True)]
        for k, (moved, wanted) in enumerate(zip(source.run(nudged), outputs, strict=True)):
            d = difference(moved, wanted)
            most[k] = max(most[k], d.relative if np.isfinite(d.relative) else 0.0)
    return most


def _nudged(x: Array, step: float, random: np.random.Generator) -> Array:
    if x.dtype.kind == "f":
        size = step or NUDGE * np.abs(x).max(initial=0)
        return np.asarray((x + random.uniform(-size, size, x.shape)).astype(x.dtype))
    if not step:
        return x
    limits = np.iinfo(x.dtype)
    return np.asarray(
        np.clip(x.astype(np.int64) + random.integers(-1, 2, x.shape), limits.min, limits.max).astype(x.dtype)
    )


def first_difference(program: Program, source: Source, inputs: Sequence[Array], target: str) -> str:
    """One phrase that names the first node, in order, whose value differs from the source's of the same name."""
    for node, name, d in layer_differences(program, source, inputs, target):
        if not d.ok:
            place = f" ({node.source})" if node.source else ""
            return f"first difference at {node.op} '{node.name}'{place}: value {name!r} {d.why}"
    return "no inner value that both sides name differs"


def layer_differences(
    program: Program,
    source: Source,
    inputs: Sequence[Array],
    target: str,
    bounds: Mapping[str, float] = BOUNDS,
    precision: str = "fp32",
) -> list[tuple[Any, str, Difference]]:
    """(node, value name, difference) for every value of the program that the source also has, in order.

    Values are kept 32 at a time: memory stays bounded however deep the model is.
    """
    outputs = {o for n in program.nodes if not n.path for o in n.outputs}
    reference = source.layers(inputs, outputs)
    rows = [(n, o) for n in program.nodes if not n.path for o in n.outputs if o in reference]
    feed = dict(zip(program.inputs, inputs, strict=True))
    found = []
    for start in range(0, len(rows), 32):
        part = rows[start : start + 32]
        session = Session(program, target, precision=precision, keep=[o for _, o in part], plan_cache=1)
        kept = session._core.run(session._bind(feed))[len(program.outputs) :]
        for (node, name), value in zip(part, kept, strict=True):
            found.append((node, name, difference(value, reference[name], bounds)))
    return found


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
