"""Verification of a program that takes chunks: the source runs the whole, the program its pieces, in several splits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.agreement import bounds_of, tolerance_text
from pinnace.arrays import input_array
from pinnace.files import one_line, without_folders
from pinnace.inputs.second_input import second_inputs
from pinnace.log import log
from pinnace.program import Program
from pinnace.progress import phase
from pinnace.session import Session, nodes_on
from pinnace.sources.base import Source, check_ends
from pinnace.types import Array
from pinnace.verify.reference_runs import ReferenceRun
from pinnace.verify.verification import doubts_of, seen_in

# Small chunks that begin and end a split of a long input, whose middle is one chunk: what goes wrong where chunks meet
# goes wrong at the first of them, and what ends are padded with shows at the last.
ENDS = 24
PRIME = 7


def splits(elements: int, multiple: int, seed: int = 1) -> Iterator[tuple[str, list[int]]]:
    """Ways to cut so many elements, with a name each: in chunks of the multiple, of a prime number of them, of random
    numbers of them, and in none."""
    count = elements // multiple
    yield f"chunks of {multiple}", _cut(count, [1] * count, multiple)
    if count > PRIME:
        yield f"chunks of {PRIME * multiple}", _cut(count, [PRIME] * (count // PRIME + 1), multiple)
    if count > 2:
        random = np.random.default_rng(seed)
        sizes = [int(n) for n in random.integers(1, max(2, min(count // 2, 64)) + 1, count)]
        yield "random chunks", _cut(count, sizes, multiple)
    yield "one chunk", [elements]


def _cut(count: int, sizes: Sequence[int], multiple: int) -> list[int]:
    """`sizes` as long as they last, at most ENDS of them at either end."""
    cut: list[int] = []
    left = count
    for size in sizes:
        if left <= 0:
            break
        cut.append(min(size, left))
        left -= cut[-1]
    if len(cut) > 2 * ENDS:
        cut = [*cut[:ENDS], sum(cut[ENDS:-ENDS]), *cut[-ENDS:]]
    return [size * multiple for size in cut]


def run_in_chunks(session: Session, inputs: Mapping[str, Array], sizes: Sequence[int]) -> dict[str, Array]:
    """What a session gives for the chunks one after the other and for finish(), joined: from its initial state on.
    Elements that the outputs lag behind by are at the front. InvalidArgument, Unsupported as run() raises them."""
    streams, outputs = session.program.stream, session.program.streamed_outputs
    session.reset_state()
    pieces: list[dict[str, Array]] = []
    at = 0
    for size in sizes:
        chunk = {
            name: np.ascontiguousarray(np.take(x, range(at, at + size), axis=streams[name].axis))
            if name in streams
            else x
            for name, x in inputs.items()
        }
        pieces.append(session.run(chunk))
        at += size
    pieces.append(session.finish({name: x for name, x in inputs.items() if name not in streams}))
    return {name: np.concatenate([p[name] for p in pieces], axis=one.axis) for name, one in outputs.items()}


@phase("verifying")
def verify_stream(
    program: Program,
    source: Source | None,
    examples: Sequence[Mapping[str, Any]],
    targets: Sequence[str],
    tolerance: Mapping[str, float] | None = None,
) -> Program:
    """The program with its verification recorded, as verify_program() records it. Each example and a second input
    beside the first, cut to a multiple of the stream's, are run whole by the source and in every split by the program.

    InvalidArgument: an example has fewer elements than one chunk. VerificationError: an output differs from the
    source's, in which split, or is not 0 before the source's begins.
    """
    if source is None:
        return program.with_metadata({"verified": "no: the model has no source to run"})
    start = time.perf_counter()
    wholes = [_whole_chunks(program, example) for example in examples]
    if wholes and (second := next(second_inputs(list(wholes[0].values())), None)):
        wholes.append(dict(zip(wholes[0], second, strict=True)))
    references = [ReferenceRun(source, [list(whole.values())]) for whole in wholes]
    facts = {"verified.tolerance": tolerance_text(tolerance)} if tolerance else {}
    ran, instead = 0, ""
    for target in targets:
        facts[f"verified.{target}"] = _held(program, references, wholes, target, dict(tolerance or {}))
        ran += facts[f"verified.{target}"].startswith("yes")
    if not ran and "cpu" not in targets:
        facts["verified.cpu"] = _held(program, references, wholes, "cpu", dict(tolerance or {}))
        ran, instead = 1, "; on this machine's CPU, for none of the targets runs here"
    said = f"{len(examples)} input(s) and a second beside the first, whole by {source.description}, in chunks here"
    said += instead
    seen = {
        name: seen_in([r.ran.outputs[0][place] for r in references], True) for place, name in enumerate(program.outputs)
    }
    doubts = doubts_of(seen) if ran else ["no target ran it here"]
    facts["verified"] = f"inconclusive: {'; '.join(doubts)}; {said}" if doubts else said
    for key, value in facts.items():
        log("info", f"{key}: {value}")
        facts[key] = without_folders(value)
    log("info", f"verified in {time.perf_counter() - start:.2f} s")
    return program.with_metadata(facts)


def _whole_chunks(program: Program, example: Mapping[str, Any]) -> dict[str, Array]:
    """The example in the program's order, cut to a multiple of the stream's."""
    arrays = {name: np.asarray(input_array(f"input {name!r}", example[name])) for name in program.inputs}
    for name, stream in program.stream.items():
        x = arrays[name]
        count = x.shape[stream.axis] // stream.multiple * stream.multiple
        if not count:
            raise _core.InvalidArgument(
                f"input {name!r} has {x.shape[stream.axis]} elements along axis {stream.axis}, chunks are multiples of "
                f"{stream.multiple}"
            )
        arrays[name] = np.ascontiguousarray(np.take(x, range(count), axis=stream.axis))
    return arrays


def _held(
    program: Program,
    references: Sequence[ReferenceRun],
    wholes: Sequence[Mapping[str, Array]],
    target: str,
    tolerance: Mapping[str, float],
) -> str:
    """What to record of one target; VerificationError."""
    try:
        session = Session(program, target)
    except _core.Unsupported as error:
        return f"no: {one_line(error)}"
    name, stream = next(iter(program.stream.items()))
    bounds = {**bounds_of(session.precision), **tolerance}
    worst, names = 0.0, []
    for reference, whole in zip(references, wholes, strict=True):
        check_ends(reference.source, list(whole.values()))
        for label, sizes in splits(whole[name].shape[stream.axis], stream.multiple):
            try:
                got = run_in_chunks(session, whole, sizes)
            except _core.Cancelled:
                raise
            except _core.Error as error:
                raise _core.VerificationError(
                    f"on {target}, in {label}: the source runs and the program does not: {error}"
                ) from error
            worst = max(worst, _judged(program, reference, got, bounds, f"on {target}, in {label}: "))
            names.append(label)
    ran, nodes = nodes_on(session, target)
    return (
        f"{'yes' if ran or not nodes else 'no'}: largest relative difference {worst:.3g} in "
        f"{', '.join(dict.fromkeys(names))}; {ran} of {nodes} nodes ran there"
    )


def _judged(
    program: Program, reference: ReferenceRun, got: Mapping[str, Array], bounds: Mapping[str, float], where: str
) -> float:
    latency = next(iter(program.stream.values())).latency
    worst = 0.0
    for place, (name, one) in enumerate(program.streamed_outputs.items()):
        late = one.delay(latency)
        early, y = np.split(got[name], [late], axis=one.axis)
        if early.any():
            raise _core.VerificationError(
                f"{where}output {name!r} is not 0 in its first {late} elements, before it begins"
            )
        verdict = reference.judge(0, list(program.outputs).index(name), np.ascontiguousarray(y), bounds)
        if not verdict.ok:
            raise _core.VerificationError(
                f"{where}output {name!r} {verdict.why}; {_first_difference(reference, place, y, one.axis)}"
            )
        worst = max(worst, verdict.relative)
    return worst


def _first_difference(reference: ReferenceRun, place: int, got: Array, axis: int) -> str:
    want = reference.ran.outputs[0][place]
    if got.shape != want.shape or want.dtype.kind not in "fiu":
        return f"{got.shape} for {want.shape}"
    far = np.abs(got.astype(np.float64) - want.astype(np.float64)) > 1e-3 * max(
        1e-30, float(np.abs(want).max(initial=0))
    )
    lines = np.flatnonzero(far.any(axis=tuple(i for i in range(far.ndim) if i != axis)))
    return f"element {lines[0]} along time is the first that is far off" if lines.size else "no element is far off"


__all__ = ["ENDS", "run_in_chunks", "splits", "verify_stream"]
