"""Verification of a converted program against its source: what is run, what is recorded, where the first difference is.

When two values count as equal is stated in agreement.py; docs/verification.md has the whole with its reasons.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.agreement import BOUNDS, Agreement, agreement, bounds_of, tolerance_text
from pinnace.arrays import input_array
from pinnace.files import one_line, without_folders
from pinnace.inputs.second_input import second_inputs
from pinnace.log import log
from pinnace.program import Program
from pinnace.progress import phase
from pinnace.session import Session, nodes_on
from pinnace.sources.base import Source, check_ends, signed_of
from pinnace.types import Array
from pinnace.verify import detections
from pinnace.verify.dataflow import Dataflow
from pinnace.verify.layer_differences import first_difference
from pinnace.verify.other_sizes import dynamic_sizes_of, inputs_of_sizes, other_sizes, size_choices, sizes_of_one
from pinnace.verify.quantized_allowance import QuantizedAllowance
from pinnace.verify.reference_runs import NUDGE, ReferenceRun
from pinnace.verify.ties import is_tie, sides_of_pi, tied_value
from pinnace.verify.unseen_paths import UnseenPaths

# Seeds of further inputs, beside the second.
MORE_SEEDS = (3, 4, 5)
# Of an exporter, for each of which both run once more.
MOST_ASSUMPTIONS = 6
# Weights and memory of a run: a model with no more is run on these as well, which costs a few milliseconds.
SMALL_BYTES = 8 << 20
# Added where an output differs that eigenvectors or singular vectors flow into.
_NOT_DETERMINED = (
    "vectors of equal eigenvalues or singular values, and of the singular value 0, are not determined by the model: "
    "where the output depends on them, neither program is wrong"
)


def is_small(session: Session) -> bool:
    """Whether runs of the program cost next to nothing, as its last one has shown."""
    plan = session.plan
    return plan.constant_bytes + plan.peak_bytes <= SMALL_BYTES


@phase("verifying")
def verify_program(
    program: Program,
    source: Source | None,
    examples: Sequence[Mapping[str, Any]],
    targets: Sequence[str],
    tolerance: Mapping[str, float] | None = None,
) -> Program:
    """The program with its verification recorded: on the examples, on a second input beside the first of them, and
    where sizes are dynamic once at other sizes. `tolerance` has bounds by dtype in place of the stated ones.

    verified           how many inputs, against what, and by how much that differs from itself with its runtime's
                       optimisations on, where it does; "inconclusive: …" where equal outputs prove nothing: an output
                       does not move with the input, is empty or has no finite value, or no target could be tried.
    verified.<target>  "yes: …" with the largest difference and how many nodes ran there, or "no: …": it cannot run
                       here, or no node did. Where no target can run here, "cpu" is tried beside them.
    verified.second    "yes", with the inputs that it could not change, or "no: …" for the second input; absent where
                       there are no inputs.
    verified.sizes     "yes: …" or "no: …" for the other sizes; absent where none are dynamic or examples have several.
    verified.paths     branches and loops that never ran; absent where all did.
    verified.tolerance the bounds that were given in place of the stated ones; absent where none were.

    InvalidArgument: an example does not fit the program, which runs before its source does. VerificationError names
    output, error and the first layer that differs.
    """
    if source is None:
        return program.with_metadata({"verified": "no: the model has no source to run"})
    inputs = [[np.asarray(input_array(f"input {name!r}", e[name])) for name in program.inputs] for e in examples]
    start = time.perf_counter()
    work = Verification(program, source, inputs, tolerance)
    facts = {"verified.tolerance": tolerance_text(tolerance)} if tolerance else {}
    for target in targets:
        facts |= _facts_on(target, program, work)
    ran = [target for target in targets if facts[f"verified.{target}"].startswith("yes")]
    stand_in = [] if ran or "cpu" in targets else ["cpu"]  # which runs every program
    for target in stand_in:
        facts |= _facts_on(target, program, work)
        ran += [target] if facts[f"verified.{target}"].startswith("yes") else []
    facts["verified"] = "; ".join(
        [
            f"{len(examples)} input(s) against {source.description}",
            *(["on this machine's CPU, for none of the targets runs here"] if stand_in and ran else []),
            *work.single_labels(),
            *(optimised_differs(source, work.referred()[0], 0, work.plain_floats("fp32")) if ran else []),
        ]
    )
    doubts = work.doubts() if ran else ["no target ran it here"]
    if doubts:
        facts["verified"] = f"inconclusive: {'; '.join(doubts)}; {facts['verified']}"
    for key, value in facts.items():
        log("info", f"{key}: {value}")
        facts[key] = without_folders(value)
    log("info", f"verified in {time.perf_counter() - start:.2f} s")
    return program.with_metadata(facts)


def _facts_on(target: str, program: Program, work: Verification) -> dict[str, str]:
    """What to record of one target, whether or not it can run here; VerificationError."""
    try:
        session = Session(program, target)
    except _core.Unsupported as error:
        return {f"verified.{target}": f"no: {one_line(error)}"}
    return work.on(session, target)


@dataclass
class _Findings:
    """What the outputs that were held against references gave, as the metadata say it."""

    worst: float = 0.0
    notes: dict[str, None] = field(default_factory=dict)

    def add(self, name: str, verdict: Agreement) -> None:
        self.worst = max(self.worst, verdict.relative)
        if verdict.note:
            exact = f" (ours {verdict.exact.ours:.3g}, the source {verdict.exact.source:.3g})" if verdict.exact else ""
            self.notes[f"{name}: {verdict.note}{exact}"] = None

    def __str__(self) -> str:
        notes = list(self.notes)
        more = [f"{len(notes) - 4} notes more"] if len(notes) > 4 else []
        return "; ".join([f"largest relative difference {self.worst:.3g}", *notes[:4], *more])


class Verification:
    """One program and source, on any number of targets: the source runs once for all of them."""

    def __init__(
        self,
        program: Program,
        source: Source,
        examples: list[list[Array]],
        tolerance: Mapping[str, float] | None = None,
        second: bool = True,
    ) -> None:
        """tolerance: bounds by dtype that take the place of the stated ones. second: False where the examples do not
        begin the data set, whose first one alone gets a second input beside it."""
        self._beside = second
        self.program, self.source, self.examples = program, source, examples
        self.tolerance = dict(tolerance or {})
        self.flow = Dataflow(program)
        # What inner values are held against: the program's operators choose signs of vectors by a rule.
        self.inner = (signed_of(source) if self.flow.has_vectors() else None) or source
        self.outputs = list(program.outputs)
        self.groups = detections.groups_of(program, self.flow) if self.flow.suppresses() else []
        self._judged: tuple[Any, dict[int, Agreement]] = (None, {})  # detections of the last outputs that were judged
        self.references: list[ReferenceRun] = []
        self.second = ""
        self.tried: set[int] = set()
        self.sizes = ""
        self.unseen = UnseenPaths(program)
        self._ran: dict[tuple[int, ...], dict[str, Array]] = {}  # on the present target, by the inputs that were run

    def on(self, session: Session, target: str) -> dict[str, str]:
        """Runs everything there. What to record; VerificationError."""
        findings = _Findings()
        self._ran = {}
        for example in [] if self.references else self.examples:  # what does not fit is refused before the source runs
            check_ends(self.source, example)
            session.reset_state()
            self._ran[_identity(example)] = self.unseen.run(session, example)
        for reference in self.referred():
            self.hold(session, target, reference, findings)
        self._hold_on_more(session, target, findings)
        ran, nodes = nodes_on(session, target)
        yes = "yes" if ran or not nodes else "no"
        facts = {f"verified.{target}": f"{yes}: {findings}; {ran} of {nodes} nodes ran there"}
        if not self.sizes:
            self.sizes = self._at_other_sizes(session, target) or "-"
        facts |= {"verified.sizes": self.sizes} if self.sizes != "-" else {}
        if self.second:
            same = self._same_in_all_calls() if self.second == "yes" else []
            facts["verified.second"] = self.second + (f"; unchanged: {', '.join(same)}" if same else "")
        return facts | ({"verified.paths": never} if (never := self.unseen.named()) else {})

    def referred(self) -> list[ReferenceRun]:
        """The source's calls, made when first asked for."""
        if not self.references:
            self._refer()
        return self.references

    def _refer(self) -> None:
        """Calls of the source: the first example and a second input beside it, then the first again where there is
        state; each other example by itself."""
        if not self._beside:
            self.references = [ReferenceRun(self.source, [e], self._nudge()) for e in self.examples]
            return
        first = self.examples[0]
        again = [first] if self.program.states else []
        refused = ""
        for other in second_inputs(first):
            reference = ReferenceRun(self.source, [first, other, *again], self._nudge())
            try:
                reference.ran  # noqa: B018 (runs it)
            except _core.Error as error:
                refused = refused or one_line(error)
                continue
            self.references, self.second = [reference], "yes"
            break
        else:
            calls = 3 if self.program.states else 2 if hasattr(self.source, "run_steps") else 1
            self.references = [ReferenceRun(self.source, [first] * calls, self._nudge())]
            self.second = f"no: the source refuses it: {refused}" if refused else "no: no other values are known"
            self.second = self.second if self.program.inputs else ""
        self.references += [ReferenceRun(self.source, [e], self._nudge()) for e in self.examples[1:]]

    def _same_in_all_calls(self) -> list[str]:
        """Inputs, by name, that had the same contents in all calls of the source."""
        steps = [inputs for reference in self.references for inputs in reference.steps]
        return [
            name
            for place, name in enumerate(self.program.inputs)
            if all(_same_bytes(inputs[place], steps[0][place]) for inputs in steps)
        ]

    def _nudge(self) -> float:
        return NUDGE if any(self.flow.origins(name).roundings for name in self.outputs) else 0.0

    # ---- one reference against one session

    def hold(self, session: Session, target: str, reference: ReferenceRun, findings: _Findings, at: str = "") -> None:
        """VerificationError if an output or a final state is not equal to the reference's."""
        session.reset_state()
        given = reference.ran.outputs
        for call, inputs in enumerate(reference.steps):
            try:
                known = self._ran.pop(_identity(inputs), None) if not self.program.states else None
                got = self.unseen.run(session, inputs) if known is None else known
            except _core.Cancelled:
                raise
            except _core.Error as error:
                raise _core.VerificationError(
                    f"on {target}: {at or self._call(call)}the source runs and the program does not: {error}"
                ) from error
            if len(got) != len(given[call]):
                raise _core.VerificationError(f"the program has {len(got)} outputs, its source gave {len(given[call])}")
            allowance = QuantizedAllowance(self.program, self.flow, self.inner, inputs, target, session.precision)
            for place, (name, value) in enumerate(got.items()):
                verdict = self.verdict(reference, call, place, value, allowance, session.precision, got)
                if not verdict.ok:
                    where = f"on {target}: {at or self._call(call)}output {name!r} {verdict.why}"
                    explained = [self._explained(reference, call, target, session.precision)]
                    if self.flow.origins(name).vectors:
                        explained.append(_NOT_DETERMINED)
                    raise _core.VerificationError("; ".join(filter(None, [where, *explained])))
                findings.add(f"output {name!r}", verdict)
        self._hold_states(session, target, reference, findings)

    def _call(self, call: int) -> str:
        if call == 0:
            return ""
        return f"in call {call + 1}, {'the first input again' if call == 2 else 'a second input'}: "

    def verdict(
        self,
        reference: ReferenceRun,
        call: int,
        place: int,
        got: Array,
        allowance: QuantizedAllowance,
        precision: str,
        beside: Mapping[str, Array],
    ) -> Agreement:
        """On one output: bounds of the arithmetic's precision, the arbiter, ties, and what quantisation allows.

        beside  all outputs of the call: those that have a row for each detection are judged together, as sets.
        """
        output, want = self.outputs[place], reference.ran.outputs[call][place]
        bounds = self.bounds(output, precision)
        by_movement = functools.partial(reference.judge_by_movement, call, place, got, bounds)
        group = next((g for g in self.groups if place in g.places), None)
        if group is not None and self._have_rows(group, reference, call, beside):
            verdicts = self._detections(group, reference, call, beside, bounds)
            found = verdicts[place]
            if all(verdict.ok for verdict in verdicts.values()) or got.dtype != want.dtype:
                return found
            if allowance.judges_detections(output):  # all of them, for what refuses the boxes looks at nothing else
                return allowance.judge_detections(group, place, list(beside.values()), verdicts, bounds)
            same = got.shape == want.shape and not found.ok
            return allowance.judge(place, got, found, bounds, by_movement) if same else found
        floats, vectors = self.flow.has_float_input(output), self.flow.origins(output).vectors
        verdict = reference.judge(call, place, got, bounds, floats, vectors)
        if verdict.ok or got.shape != want.shape or got.dtype != want.dtype:
            return verdict
        turned = sides_of_pi(got, want, bounds.get(str(want.dtype), 0.0))
        if turned is not None:
            other = reference.judge(call, place, turned, bounds, floats, vectors)
            if other.ok:
                return Agreement(other.largest, other.relative, True, "", other.exact, "pi for -pi")
        tied = tied_value(self.flow, output)
        if tied is not None:
            inputs = dict(zip(self.program.inputs, reference.steps[call], strict=True))
            values = inputs.get(tied[1], self.inner.layers(reference.steps[call], {tied[1]}).get(tied[1]))
            if values is not None and is_tie(got, want, values, bounds):
                return Agreement(verdict.largest, 0.0, True, "", None, f"ties of {tied[0]} taken in another order")
        return allowance.judge(place, got, verdict, bounds, by_movement)

    def bounds(self, output: str, precision: str) -> dict[str, float]:
        """By dtype."""
        halves = [BOUNDS[half] for half in self.flow.origins(output).halves]
        return {d: max([b, *halves]) for d, b in bounds_of(precision).items()} | self.tolerance

    def plain_floats(self, precision: str) -> dict[int, dict[str, float]]:
        """Bounds of the outputs that have one right order and no choice, by place: floats that are not of detections
        and have no eigenvectors or elements that are chosen among equal ones in them."""
        found = {}
        for place, (name, spec) in enumerate(self.program.outputs.items()):
            chosen = self.is_of_detections(place) or self.flow.origins(name).vectors or tied_value(self.flow, name)
            if not chosen and str(spec.dtype) in BOUNDS:
                found[place] = self.bounds(name, precision)
        return found

    def is_of_detections(self, place: int) -> bool:
        """Whether an output has one row for each detection, in an order of its own."""
        return any(place in group.places for group in self.groups)

    @staticmethod
    def _have_rows(group: detections.Group, reference: ReferenceRun, call: int, got: Mapping[str, Array]) -> bool:
        return group.fits(list(got.values())) and group.fits(reference.ran.outputs[call])

    def _detections(
        self,
        group: detections.Group,
        reference: ReferenceRun,
        call: int,
        got: Mapping[str, Array],
        bounds: Mapping[str, float],
    ) -> dict[int, Agreement]:
        """Of all outputs of a group, judged once."""
        known, verdicts = self._judged
        if known is None or known[0] is not got or known[1:] != (group, reference, call):
            want = reference.ran.outputs[call]
            verdicts = detections.judge(group, list(got.values()), want, bounds, lambda: reference.others(call))
            self._judged = ((got, group, reference, call), verdicts)
        return verdicts

    def state_verdict(self, reference: ReferenceRun, name: str, got: Array) -> Agreement:
        """On one state after the last call."""
        halves = [BOUNDS[half] for half in self.flow.halves()]
        bounds = {dtype: max([bound, *halves]) for dtype, bound in BOUNDS.items()} | self.tolerance
        return reference.judge_state(name, got, bounds, self.flow.has_vectors())

    def _hold_states(self, session: Session, target: str, reference: ReferenceRun, findings: _Findings) -> None:
        for name in session.state:
            if name in reference.ran.states:
                value = session.state[name]
                verdict = self.state_verdict(reference, name, value)
                if not verdict.ok:
                    calls = len(reference.steps)
                    raise _core.VerificationError(f"on {target}: after {calls} call(s) state {name!r} {verdict.why}")
                findings.add(f"state {name!r}", verdict)

    def _explained(self, reference: ReferenceRun, call: int, target: str, precision: str) -> str:
        """The first difference, and whether two ways of running the source differ as well."""
        bounds = bounds_of(precision) | self.tolerance
        said = []
        if not getattr(self.inner, "rounded_types", ()):  # else the verdict names it: inner values are of another type
            said.append(first_difference(self.program, self.inner, reference.steps[call], target, bounds))
        said += ways_differ(self.source, reference, call, self.plain_floats(precision))
        return "; ".join(said)

    # ---- what would prove nothing

    def _hold_on_more(self, session: Session, target: str, findings: _Findings) -> None:
        """More inputs, tried once: where the model is small, for a ReLU that gives 0 hides what is wrong before it;
        and where an output was the same for all so far. The former only if exact values can be computed: without them
        each input is one more chance that rounding is taken for a fault."""
        more = is_small(session) and hasattr(self.source, "float64")
        for seed in MORE_SEEDS:
            if self.second != "yes" or seed in self.tried or not (more or self.unmoved()):
                continue
            self.tried.add(seed)
            for other in second_inputs(self.examples[0], seed):
                reference = ReferenceRun(self.source, [other], self._nudge())
                try:
                    reference.ran  # noqa: B018 (runs it)
                except _core.Error:
                    continue
                self.references.append(reference)
                self.hold(session, target, reference, findings, f"on a further input (seed {seed}): ")
                break

    def unmoved(self) -> list[str]:
        """Outputs that contents of inputs flow into and that were the same in all calls of the source."""
        still = []
        for place, name in enumerate(self.outputs):
            seen = [outputs[place] for r in self.references for outputs in r.ran.outputs]
            same = all(x.shape == seen[0].shape and x.tobytes() == seen[0].tobytes() for x in seen)
            if same and self.flow.origins(name).values:
                still.append(name)
        return still

    def doubts(self) -> list[str]:
        """Why equal outputs prove nothing; empty where they do prove something."""
        return doubts_of(self.seen()) + self.states_alone()

    def states_alone(self) -> list[str]:
        """Phrases on states that a source with states has none of the name of, so that nothing is held against them."""
        known = self.references[0].ran.states
        alone = [name for name in self.program.states if known and name not in known]
        return [f"state {name!r} has none of its name in the source" for name in alone]

    def seen(self) -> dict[str, Seen]:
        """Of each output, what the source gave in all calls so far."""
        found = {}
        labels = {
            group.labels for group in self.groups
        }  # of one class they cannot move; boxes and scores beside them do
        for place, name in enumerate(self.outputs):
            values = [outputs[place] for r in self.references for outputs in r.ran.outputs]
            found[name] = seen_in(values, place not in labels and self.flow.origins(name).values)
        return found

    def single_labels(self) -> list[str]:
        """Phrases on outputs with one label, the same for all detections in all calls of the source."""
        said = []
        for place in [group.labels for group in self.groups if group.labels is not None]:
            runs = [outputs[place] for r in self.references for outputs in r.ran.outputs]
            if len(seen := {int(label) for labels in runs for label in labels.reshape(-1)}) == 1:
                said.append(f"all labels in {self.outputs[place]!r} were {seen.pop()}")
        return said

    # ---- other sizes

    def _at_other_sizes(self, session: Session, target: str) -> str | None:
        """Holds the program against its source at sizes that no example has, one more run of both, and at sizes of 1,
        which exporters take no dynamic size for: what they record depends on that.

        What to record; None where there are no such sizes. VerificationError: outputs differ, or only the source runs.
        """
        specs = list(self.program.inputs.values())
        wanted = other_sizes(specs, self.examples)
        choices = size_choices(self.program, self.examples[0], wanted)
        held, refused = self._at_first_of(choices, session, target)
        ones = [name for name in sizes_of_one(specs, self.examples) if held is None or held[0].get(name) != 1]
        least = [dict.fromkeys(ones, 1), *({name: 1} for name in ones if len(ones) > 1)] if ones else []
        held_at_one, refused_at_one = self._at_first_of(least, session, target)
        more = self._where_assumptions_fail(session, target)
        said = [
            f"also at {_sizes_said(sizes)}, {findings}" for sizes, findings in filter(None, (held, held_at_one, *more))
        ]
        refusals = "; ".join(filter(None, (refused, refused_at_one)))
        if said:
            return f"yes: {'; '.join(said)}" + (f"; {refusals}" if refusals else "")
        return f"no: {refusals}" if refusals else None

    def _where_assumptions_fail(self, session: Session, target: str) -> list[tuple[Mapping[str, int], _Findings]]:
        """Holds the program against its source at sizes at which conditions do not hold that the exporter assumed of
        them, as far as both run there. VerificationError: one of them is the source's own."""
        assumed = getattr(self.source, "sizes_assumed_away", None)
        if assumed is None:
            return []
        held: list[tuple[Mapping[str, int], _Findings]] = []
        example, specs = self.examples[0], list(self.program.inputs.values())
        for condition, sizes in itertools.islice(assumed(specs, dynamic_sizes_of(specs, example)), MOST_ASSUMPTIONS):
            inputs = inputs_of_sizes(self.program, example, sizes)
            reference = ReferenceRun(self.source, [inputs], self._nudge())
            session.reset_state()
            try:
                self.unseen.run(session, inputs)
                reference.ran  # noqa: B018 (runs it)
            except _core.Cancelled:
                raise
            except _core.Error:
                continue
            findings, at = (
                _Findings(),
                f"at {_sizes_said(sizes)}, where {condition} does not hold, as torch.export assumes: ",
            )
            self.hold(session, target, reference, findings, at)
            held.append((sizes, findings))
        return held

    def _at_first_of(
        self, choices: Iterable[Mapping[str, int]], session: Session, target: str
    ) -> tuple[tuple[Mapping[str, int], _Findings] | None, str]:
        """Holds the program against its source at the first sizes that the source runs at: what was found there, None
        where there are none, and why the source did not run at those before."""
        refused = ""
        for sizes in choices:
            inputs = inputs_of_sizes(self.program, self.examples[0], sizes)
            reference = ReferenceRun(self.source, [inputs], self._nudge())
            try:
                reference.ran  # noqa: B018 (runs it)
            except _core.Error as error:
                refused = refused or f"the source cannot run at {_sizes_said(sizes)}: {one_line(error, 160)}"
                continue
            findings = _Findings()
            try:
                self.hold(session, target, reference, findings, f"at {_sizes_said(sizes)}: ")
            except _core.VerificationError as error:
                if 1 not in sizes.values():
                    raise
                raise _core.VerificationError(
                    f"{error}; exporters take dynamic sizes for 2 or more: where 1 is not needed, let them begin at 2 "
                    "(pn.Dim(name, 2, ...)), else convert for 1 alone"
                ) from error
            return (sizes, findings), refused
        return None, refused


def _sizes_said(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


@dataclass(frozen=True)
class Seen:
    """What a source gave for one output in some calls; parts of a data set are put together by merged().

    empty     all without an element.
    infinite  all floats, and none with an element that is finite.
    moves     contents of an input flow into it.
    same      a digest of type, shape and bytes, where all are equal; else empty.
    """

    empty: bool
    infinite: bool
    moves: bool
    same: bytes

    def merged(self, other: Seen) -> Seen:
        """Of both."""
        same = self.same if self.same == other.same else b""
        return Seen(self.empty and other.empty, self.infinite and other.infinite, self.moves, same)


def seen_in(values: Sequence[Array], moves: bool) -> Seen:
    """Of at least one value. moves: whether contents of an input flow into the output."""
    digests = {hashlib.sha256(f"{x.dtype}{x.shape}".encode() + x.tobytes()).digest() for x in values}
    return Seen(
        all(x.size == 0 for x in values),
        all(x.dtype.kind in "fV" and not np.isfinite(x.astype(np.float64)).any() for x in values),
        moves,
        digests.pop() if len(digests) == 1 else b"",
    )


def doubts_of(seen: Mapping[str, Seen]) -> list[str]:
    """By output name, why equal values prove nothing of it; empty where they do prove something."""
    empty = {name: f"output {name!r} is empty" for name, s in seen.items() if s.empty}
    infinite = {name: f"output {name!r} has no finite value" for name, s in seen.items() if s.infinite}
    first = [empty.get(name) or infinite[name] for name in seen if name in empty or name in infinite]
    still = [name for name, s in seen.items() if s.moves and s.same and name not in empty and name not in infinite]
    return first + [f"output {name!r} does not move with the input" for name in still]


def _same_bytes(a: Array, b: Array) -> bool:
    if a is b:
        return True
    raw, other = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(raw, other)


def _identity(inputs: Sequence[Array]) -> tuple[int, ...]:
    return tuple(map(id, inputs))


def ways_differ(
    source: Source, reference: ReferenceRun, call: int, bounds: Mapping[int, Mapping[str, float]]
) -> list[str]:
    """Phrases that say so where two ways of running the source differ: a module from what torch.export made of it, a
    runtime without its optimisations from the same with them (bounds: as of optimised_differs)."""
    said = []
    changes = getattr(source, "exporter_changes", None)
    if changes and (text := changes(reference.steps, call)):
        said.append(text)
    return said + optimised_differs(source, reference, call, bounds)


def optimised_differs(
    source: Source, reference: ReferenceRun, call: int, bounds: Mapping[int, Mapping[str, float]]
) -> list[str]:
    """A phrase that says so where a runtime without its optimisations differs from the same with them.

    bounds  of the outputs to look at, by place.
    """
    optimised = getattr(source, "optimised", None)
    if not bounds or optimised is None or (other := optimised(reference.steps[call])) is None:
        return []
    plain = reference.ran.outputs[call]
    found = [agreement(other[place], plain[place], bounds[place]) for place in bounds]
    far = max((verdict for verdict in found if not verdict.ok), key=lambda verdict: verdict.relative, default=None)
    return [] if far is None else [f"with its optimisations on, the source differs from itself: {far.why}"]


__all__ = ["MORE_SEEDS", "Seen", "Verification", "doubts_of", "optimised_differs", "seen_in", "verify_program"]
