"""Verification: a converted program against its source, by stated bounds; the first layer that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.files import one_line
from pinnace.program import Program
from pinnace.session import Session, input_array, nodes_on
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
    """Compares two arrays. Non-finite values must stand in the same places; integers are compared as integers."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return Difference(
            np.inf, np.inf, False, f"is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"
        )
    if got.size == 0:
        return Difference(0.0, 0.0, True, "")
    bound = bounds.get(str(want.dtype), 0.0)
    if got.dtype.kind in "iu":
        return _difference_of_integers(got, want, bound)
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return Difference(np.inf, np.inf, False, "non-finite values stand in other places")
    magnitude = float(np.abs(b[finite]).max(initial=0.0))
    largest = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return _judged(largest, magnitude, bound)


def _difference_of_integers(got: Array, want: Array, bound: float) -> Difference:
    """float64 has no room for 64 bits: distances are taken modulo 2^64, where none overflows."""
    wide = np.uint64 if want.dtype.kind == "u" else np.int64
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(over="ignore"):  # of the two, the one that is not taken
        distance = np.where(a > b, a.view(np.uint64) - b.view(np.uint64), b.view(np.uint64) - a.view(np.uint64))
    return _judged(float(distance.max()), float(np.abs(want.astype(np.float64)).max()), bound)


def _judged(largest: float, magnitude: float, bound: float) -> Difference:
    relative = 0.0 if largest == 0 else largest / magnitude if magnitude else np.inf
    ok = relative <= bound
    return Difference(
        largest, relative, ok, "" if ok else f"differs by {relative:.3g} of its largest magnitude, bound {bound:g}"
    )


def seeded_inputs(
    specs: Mapping[str, TensorSpec], given: Mapping[str, Any] | None = None, seed: int = 1
) -> dict[str, Array]:
    """`given` completed: normal values for float inputs; sizes that the given arrays fix, else small ones in range.

    InvalidArgument: a name in `given` is unknown or its value no array, or an integer input is not given.
    """
    random = np.random.default_rng(seed)
    inputs = {name: np.asarray(input_array(f"input {name!r}", value)) for name, value in (given or {}).items()}
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
    """The program with its verification recorded: on the examples, and where sizes are open once at other sizes.

    verified           how many inputs, against what.
    verified.<target>  "yes: …" with the largest difference and how many nodes ran there, or "no: …": it cannot run
                       here, or no node did.
    verified.sizes     "yes: …" or "no: …" for the other sizes; absent where none are open or the examples have several.

    InvalidArgument: an example does not fit the program, which runs before its source does. VerificationError names
    output, error and the first layer that differs.
    """
    if source is None:
        return Program(program._core.with_metadata("verified", "no: the model has no source to run"))
    facts: dict[str, str] = {}
    references = [
        _Reference(
            source, [np.asarray(input_array(f"input {name!r}", e[name])) for name in program.inputs], quantizes(program)
        )
        for e in examples
    ]
    for target in targets:
        try:
            session = Session(program, target)
        except _core.Unsupported as error:
            facts[f"verified.{target}"] = f"no: {one_line(error)}"
            continue
        findings = _Findings()
        for reference in references:
            session.reset_state()
            got = session.run(dict(zip(program.inputs, reference.inputs, strict=True)))
            _hold(program, reference, got, target, findings)
        ran, nodes = nodes_on(session, target)
        yes = "yes" if ran or not nodes else "no"
        facts[f"verified.{target}"] = f"{yes}: {findings}; {ran} of {nodes} nodes ran there"
        if "verified.sizes" not in facts:
            said = _at_other_sizes(program, references, session, target)
            if said:
                facts["verified.sizes"] = said
    facts["verified"] = f"{len(references)} input(s) against {source.description}"
    core = program._core
    for key, value in facts.items():
        core = core.with_metadata(key, value)
    return Program(core)


@dataclass
class _Reference:
    """One example, and what the source makes of it: run when first asked, and again to see by how much it moves."""

    source: Source
    inputs: list[Array]
    quantized: bool
    _outputs: list[Array] | None = None
    _moved: list[float] | None = None

    @property
    def outputs(self) -> list[Array]:
        if self._outputs is None:
            self._outputs = self.source.run(self.inputs)
        return self._outputs

    @property
    def moved(self) -> list[float]:
        if self._moved is None:
            self._moved = source_movement(self.source, self.inputs, self.outputs, NUDGE if self.quantized else 0.0)
        return self._moved


@dataclass
class _Findings:
    """What the outputs that were held against references gave, as the metadata say it."""

    worst: float = 0.0
    moved: str = ""
    noise: str = ""

    def __str__(self) -> str:
        return f"largest relative difference {self.worst:.3g}{self.moved}{self.noise}"


def _hold(
    program: Program, reference: _Reference, got: Mapping[str, Array], target: str, findings: _Findings, at: str = ""
) -> None:
    """VerificationError if an output is further from the reference than the stated bounds allow."""
    want = reference.outputs
    if len(got) != len(want):
        raise _core.VerificationError(f"the program has {len(got)} outputs, its source gave {len(want)}")
    for k, ((name, value), wanted) in enumerate(zip(got.items(), want, strict=True)):
        d = difference(value, wanted)
        dtype = str(wanted.dtype)
        if not d.ok and dtype in BOUNDS and np.isfinite(d.largest):
            moved = reference.moved[k]
            most = MOVEMENT_MOST if reference.quantized else min(100 * BOUNDS[dtype], MOVEMENT_MOST)
            if _is_noise(value, wanted, reference.inputs, moved):
                findings.noise = f"; output {name!r} is nothing but rounding errors, in both"
                continue
            d = difference(value, wanted, {dtype: max(BOUNDS[dtype], min(MOVEMENT_FACTOR * moved, most))})
            if d.ok:
                nudge = f"{NUDGE:g}" if reference.quantized else "a rounding error"
                findings.moved = f"; the source itself moves by {moved:.3g} when its inputs change by {nudge}"
        if not d.ok:
            where = first_difference(program, reference.source, reference.inputs, target)
            raise _core.VerificationError(f"on {target}: {at}output {name!r} {d.why}; {where}")
        findings.worst = max(findings.worst, d.relative)


# ------------------------------------------------------------------------------------------------- what moves by itself

# A quantised network rounds inside: two right implementations whose sums differ in the last bit of a float now and then
# differ by a unit of 8 bits, and later layers make of it what they make of any such change. How much that is shows the
# source itself, given inputs that differ by as little.
NUDGE = 1e-5
MOVEMENT_FACTOR = 4.0
MOVEMENT_MOST = 0.5  # whatever the source does: outputs of another model differ by more
QUANTIZING = {"quantize_linear", "dynamic_quantize_linear", "mat_mul_integer", "conv_integer"}
# A float network that subtracts nearly equal numbers enlarges rounding errors: its inputs are changed by some of them
# (8 units in the last place of float32, one of the 16-bit types), which a well-conditioned one keeps far below BOUNDS.
ROUNDING = {"float64": 1e-6, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
# Where all that is left are the errors, there is nothing to be relative to. They are then as large as those of adding
# up the inputs: so many units in the last place of their root sum of squares.
NOISE = 4.0


def quantizes(program: Program) -> bool:
    """Whether values are rounded to few bits inside the program."""
    return any(node.op in QUANTIZING for node in program.nodes)


def source_movement(
    source: Source, inputs: Sequence[Array], outputs: Sequence[Array], nudge: float = NUDGE, times: int = 3
) -> list[float]:
    """For each output: the most it moves, relative to its largest magnitude, when the inputs change a little: each
    element by a random part of the source's step for it, where it has one, floats else of `nudge` (0: of ROUNDING)
    of the largest."""
    random = np.random.default_rng(7)
    most = [0.0] * len(outputs)
    steps = getattr(source, "steps", None) or [0.0] * len(inputs)
    for _ in range(times):
        nudged = [_nudged(x, step, nudge, random) for x, step in zip(inputs, steps, strict=True)]
        for k, (moved, wanted) in enumerate(zip(source.run(nudged), outputs, strict=True)):
            d = difference(moved, wanted)
            most[k] = max(most[k], d.relative if np.isfinite(d.largest) else 0.0)
    return most


def _nudged(x: Array, step: float, nudge: float, random: np.random.Generator) -> Array:
    if str(x.dtype) in ROUNDING:
        wide = x.astype(np.float64)
        size = step or (nudge or ROUNDING[str(x.dtype)]) * _largest(wide)
        return np.asarray((wide + random.uniform(-size, size, x.shape)).astype(x.dtype))
    if not step:
        return x
    limits = np.iinfo(x.dtype)
    return np.asarray(
        np.clip(x.astype(np.int64) + random.integers(-1, 2, x.shape), limits.min, limits.max).astype(x.dtype)
    )


def _largest(x: Array) -> float:
    """The largest finite magnitude: masks hold infinities."""
    return float(np.abs(x, where=np.isfinite(x), out=np.zeros(x.shape)).max(initial=0.0))


def _is_noise(got: Array, want: Array, inputs: Sequence[Array], moved: float) -> bool:
    """Whether both are rounding errors: values that a rounding error in the inputs changes wholly, and so small beside
    the inputs that nothing else can be left of them."""
    norms = [float(np.linalg.norm(np.nan_to_num(x.astype(np.float64)))) for x in inputs if str(x.dtype) in ROUNDING]
    units = ROUNDING[str(want.dtype)] * max(norms, default=0.0)
    largest = max(_largest(got.astype(np.float64)), _largest(want.astype(np.float64)))
    return moved >= MOVEMENT_MOST and largest <= NOISE * units


# ---------------------------------------------------------------------------------------------------------- other sizes


def _at_other_sizes(program: Program, references: Sequence[_Reference], session: Session, target: str) -> str | None:
    """Holds the program against its source at sizes that no example has: one more run of both.

    What to record; None where there are no such sizes. VerificationError: outputs differ, or only the source runs.
    """
    sizes = other_sizes(list(program.inputs.values()), [r.inputs for r in references])
    first, refused = references[0], ""
    # Sizes that depend on each other in ways that no range says cannot change together: then the first alone.
    for part in [sizes, dict(list(sizes.items())[:1])] if len(sizes) > 1 else [sizes] if sizes else []:
        at = ", ".join(f"{name} = {size}" for name, size in part.items())
        inputs = [resized(x, spec, part) for x, spec in zip(first.inputs, program.inputs.values(), strict=True)]
        reference = _Reference(first.source, inputs, first.quantized)
        try:
            reference.outputs  # noqa: B018 (runs it)
        except _core.Error as error:
            refused = refused or f"the source cannot run at {at}: {one_line(error)}"
            continue
        session.reset_state()
        try:
            got = session.run(dict(zip(program.inputs, inputs, strict=True)))
        except _core.Error as error:
            raise _core.VerificationError(
                f"on {target}: at {at} the source runs and the program does not: {error}"
            ) from error
        findings = _Findings()
        _hold(program, reference, got, target, findings, f"at {at}: ")
        return f"yes: also at {at}, {findings}" + (f"; {refused}" if refused else "")
    return f"no: {refused}" if refused else None


def other_sizes(specs: Sequence[TensorSpec], examples: Sequence[Sequence[Array]]) -> dict[str, int]:
    """A legal size for every open dimension for which all the examples have the same one; not that one.

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


# ----------------------------------------------------------------------------------------------------- where it differs


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
