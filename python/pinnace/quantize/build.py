"""From a float model to a quantised program: Model.build(quantize=...)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pinnace import _core
from pinnace.cluster import Cluster, Shared, is_partitioned
from pinnace.log import log
from pinnace.program import Program, core_of, node_infos
from pinnace.progress import phase
from pinnace.quantization import FACT, QuantizationReport, QuantizationRow, RangeRow
from pinnace.quantize.calibration import Calibration, calibrate
from pinnace.quantize.control import Choice, fewest_kept
from pinnace.quantize.errors import relative_error
from pinnace.quantize.on_workers import ScoresOn, calibrate_on, score_of, worst_error_of
from pinnace.quantize.options import Int8, skipped_nodes
from pinnace.quantize.rounded_source import RoundedSource
from pinnace.quantize.samples import samples_of
from pinnace.quantize.scoring import Candidate, Candidates, built
from pinnace.quantize.stored_weights import errors_of, program_in_chunks
from pinnace.session import Session
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.types import specs_from
from pinnace.verify.verification import verify_program

# Layers whose sensitivity is measured one by one; of more, by the error that each makes where all are quantised.
ALONE_MOST = 400
# Errors on the examples that are worth a word: above this, and above so many times those on the samples.
NOTABLE_ERROR, NOTABLE_FACTOR = 0.1, 3.0
# Operators that multiply by weights.
PRODUCTS = ("conv", "conv_transpose", "gemm", "mat_mul")


class Quantizer:
    """One model and what is asked of it."""

    candidates: Candidates

    def __init__(self, core: _core.Model, options: Int8, names: Mapping[str, str]) -> None:
        """core: the float model with the program's names. names: of inputs that the user's model calls otherwise."""
        self.options, self.names = options, names
        self.cluster = None if options.client is None else Cluster(options.client, options.progress)
        self.ready = core.ready_to_quantize(options.equalize)
        sites = self.ready.quantization_sites()
        self.values: list[dict[str, Any]] = sites["values"]
        self.skipped = skipped_nodes(node_infos(self.ready.nodes), options.skip, self.ready.merged)
        self.sites: list[dict[str, Any]] = sites["nodes"]
        self.float_only = set(sites["float_only"])
        self.layers = [n["name"] for n in self.sites if n["weighted"] and n["name"] not in self.skipped]
        weights = {site["name"]: site for site in self.ready.weight_sites()}
        self.weights = {name: site["weights"] for name, site in weights.items()}
        self.storable = set(weights)
        # Nodes whose weights are stored as 8-bit integers that float arithmetic reads: rows that are gathered,
        # recurrent cells, and layers that accuracy control leaves in float.
        others = {n: s["op"] for n, s in weights.items() if s["op"] not in PRODUCTS and n not in self.skipped}
        self.tables = [name for name, op in others.items() if op == "gather"]
        self.cells = [name for name, op in others.items() if op != "gather"]
        self.stored: Sequence[str] = ()
        self.float_program = built(self.ready)
        self.calibration = Calibration({})
        self.said: list[str] = []
        self._on_workers: ScoresOn | None = None

    def calibrate(self) -> None:
        """Runs the samples. InvalidArgument, DeviceLost, Unsupported: see calibrate() of calibration.py, and
        calibrate_on() of on_workers.py."""
        given, options = self.options.calibration, self.options
        if self.cluster is None:
            samples = samples_of(given, specs_from(self.ready.inputs, self.ready.symbols), self.names)
            self.calibration = calibrate(self.float_program, self.values, samples, options.progress)
        else:
            self.calibration = calibrate_on(
                self.cluster, self.float_program, self.values, self.names, given, is_partitioned(given)
            )
        self.said += self.calibration.said
        self.scales = self.calibration.scales(self.values, options)
        means = self.calibration.means(self.values) if options.bias_correction else []
        kept = self.calibration.kept
        self.candidates = Candidates(
            self.ready, self.float_program, self.scales, means, kept, options.metric, self.names
        )

    def chosen(self, kept: Sequence[str] = ()) -> list[str]:
        """The nodes that compute in integers where these layers stay in float. Others follow the layers whose results
        they take: between floats they would only cost."""
        stay, made, nodes = {*kept, *self.skipped}, set(), []
        for site in self.sites:
            if site["name"] in stay or not (site["weighted"] or all(name in made for name in site["inputs"])):
                continue
            nodes.append(site["name"])
            made.add(site["output"])
        return nodes

    def candidate(self, kept: Sequence[str] = ()) -> Candidate:
        """Where these layers stay in float."""
        stored = [name for name in kept if name in self.storable]
        return Candidate(tuple(self.chosen(kept)), (*self.tables, *self.cells, *stored))

    # ---- errors

    def inner_errors(self, program: Program, names: Sequence[str]) -> dict[str, float]:
        """By inner value, on the first kept sample, 32 values at a time."""
        feed = dict(zip(program.inputs, self.calibration.kept[0], strict=True))
        errors: dict[str, float] = {}
        for start in range(0, len(names), 32):
            part = list(names[start : start + 32])
            mine = Session(program, "cpu", keep=part, plan_cache=1).kept_values(feed)
            exact = Session(self.float_program, "cpu", keep=part, plan_cache=1).kept_values(feed)
            errors |= {name: relative_error([mine[name]], [exact[name]]) for name in part}
        return errors

    # ---- accuracy control

    def numbers(
        self,
        here: Callable[[Candidate | None], float],
        there: Callable[[Shared, Candidate | None], float],
        asked: Mapping[str, Candidate | None],
    ) -> list[float]:
        """Of each candidate, in this process or on workers. asked: by what it is, for errors."""
        if self.cluster is None:
            return [here(candidate) for candidate in asked.values()]
        if self._on_workers is None:
            self._on_workers = ScoresOn(self.cluster, self.candidates)
        return list(self._on_workers(there, asked))

    def scores(self, asked: Mapping[str, Candidate | None]) -> list[float]:
        """The metric, or less of it the larger the worst error is. InvalidArgument: it raises, or is no number."""
        return self.numbers(self.candidates.score, score_of, asked)

    def sensitivities(self) -> dict[str, float]:
        """By layer, the error of the worst output where it alone is quantised."""
        if len(self.layers) > ALONE_MOST:
            outputs = {site["name"]: site["output"] for site in self.sites}
            rounded = built(self.candidates.model(self.candidate(), fold=False))
            errors = self.inner_errors(rounded, [outputs[name] for name in self.layers])
            return {name: errors[outputs[name]] for name in self.layers}
        asked = {f"layer {name!r} alone": Candidate((name,)) for name in self.layers}
        worst = self.numbers(self.candidates.worst_error, worst_error_of, asked)
        return dict(zip(self.layers, worst, strict=True))

    @phase("controlling accuracy")
    def kept(self) -> tuple[list[str], dict[str, float], tuple[float, float] | None]:
        """(layers that stay in float, sensitivities, scores of the float program and of the result)."""
        if self.options.max_drop is None:
            return [], {}, None
        found: dict[Candidate, float] = {}
        every = self.candidate()
        exact, found[every] = self.scores({"the float program": None, "all layers in integers": every})
        allowed = self.options.allowed(exact)
        assert allowed is not None

        def ask(choices: Sequence[Sequence[str]]) -> None:
            unknown = [kept for kept in choices if self.candidate(kept) not in found]
            asked = {f"{len(kept)} layers in float": self.candidate(kept) for kept in unknown}
            found.update(zip(asked.values(), self.scores(asked), strict=True))

        def scored(kept: Sequence[str]) -> float:
            ask([kept])
            return found[self.candidate(kept)]

        def searched() -> Choice:
            if self.cluster is not None:  # the search begins with these, of which workers can score several at a time
                doubled = [order[:count] for count in (1, 2, 4, 8, 16, 32, 64, 128, 256) if count < len(order)]
                ask(doubled[: self.cluster.slots])
            return fewest_kept(order, scored, least)

        least = exact - allowed
        if scored([]) >= least:
            return [], {}, self._scores(exact, scored([]))
        sensitivity = self.sensitivities()
        order = sorted(self.layers, key=lambda name: -sensitivity[name])
        choice = searched()
        storing = self.tables or self.cells or self.storable.intersection(self.layers)
        if len(choice.kept) == len(self.layers) and storing:
            self.tables, self.cells, self.storable = [], [], set()  # stored weights may be what is not good enough
            choice = searched()
        self.stored = [name for name in choice.kept if name in self.storable]
        if len(choice.kept) == len(self.layers):
            self.said.append(f"no choice of quantised layers reaches a drop of {allowed:g}: all stay in float")
            return choice.kept, sensitivity, self._scores(exact, exact)
        return choice.kept, sensitivity, self._scores(exact, choice.score)

    def _scores(self, exact: float, found: float) -> tuple[float, float] | None:
        return (exact, found) if self.options.metric is not None else None

    # ---- the report

    def doubt(self, program: Program, examples: Sequence[Mapping[str, Any]]) -> None:
        """Says where the samples were not like the inputs that the program gets: a report's sentence and a warning."""
        doubts = []
        for name in self.float_program.inputs:
            statistics = self.calibration.statistics.get(name)
            if statistics is not None and statistics.extremes[0] == statistics.extremes[1]:
                doubts.append(
                    f"input {name!r} is {statistics.extremes[0]:g} throughout the samples: ranges that follow from "
                    "them hold for no other input"
                )
        mine = max(self.candidates.errors(program).values(), default=0.0)
        found = max(errors_of(program, self.float_program, examples).values(), default=0.0) if examples else 0.0
        if found > max(NOTABLE_ERROR, NOTABLE_FACTOR * mine):
            doubts.append(
                f"on the examples an output is off by {found:.2g} of its magnitude, on the samples by {mine:.2g}: "
                "calibration needs samples that are like what the program will get"
            )
        for sentence in doubts:
            log("warn", f"quantised: {sentence}")
        self.said += doubts

    def report(
        self,
        program: Program,
        rounded: Program,
        nodes: Sequence[str],
        kept: Sequence[str],
        sensitivity: Mapping[str, float],
        score: tuple[float, float] | None,
    ) -> QuantizationReport:
        """What has become of each node. rounded: the program between floats, which has inner values by their names."""
        sites = {site["name"]: site for site in self.sites}
        chosen, stored = {*nodes, *self.tables}, {*self.tables, *self.cells, *self.stored}
        infos = [node for node in node_infos(self.ready.nodes) if not node.path]
        inner = self.inner_errors(rounded, [node.outputs[0] for node in infos if node.name in chosen])
        before, after = self._times(self.float_program), self._times(program)
        reasons = self._reasons(chosen, kept, sensitivity)
        rows = []
        for node in infos:
            site = sites.get(node.name)
            weights = site["weights"] if site else self.weights.get(node.name, 0)
            integers = node.name in chosen
            rows.append(
                QuantizationRow(
                    node=node.name,
                    op=node.op,
                    source=node.source,
                    module=node.module,
                    kept_float=not integers,
                    reason=reasons.get(node.name, ""),
                    error=inner[node.outputs[0]] if integers else None,
                    sensitivity=sensitivity.get(node.name),
                    bytes_before=4 * weights,
                    bytes_after=weights if integers or node.name in stored else 4 * weights,
                    ns_before=before.get(node.name),
                    ns_after=after.get(node.name),
                )
            )
        used = {name for site in self.sites if site["name"] in chosen for name in (*site["inputs"], site["output"])}
        ranges = [self._range(*row) for row in self.scales if row[0] in used]
        return QuantizationReport(
            rows,
            ranges,
            samples=self.calibration.samples,
            errors=self.candidates.errors(program),
            score=score,
            ns=(sum(before.values()), sum(after.values())),
            said=self.said,
        )

    def _reasons(
        self, chosen: Collection[str], kept: Sequence[str], sensitivity: Mapping[str, float]
    ) -> dict[str, str]:
        """Why each node that is not chosen computes in float."""
        sites = {site["name"] for site in self.sites}
        # Values of floats that no chosen node makes.
        floats = {name for name, spec in self.float_program.inputs.items() if spec.dtype == "float32"}
        reasons: dict[str, str] = {}
        for node in node_infos(self.ready.nodes):
            if node.path or node.name in chosen:
                continue
            computes = [value for value, kind in zip(node.outputs, node.output_types, strict=True) if "float" in kind]
            reads_floats = not floats.isdisjoint(node.inputs)
            floats.update(computes)
            if node.name in self.skipped:
                reason = self.skipped[node.name]
            elif node.name in kept:
                alone = sensitivity[node.name]
                reason = f"max_drop={self.options.max_drop!r}: quantised alone it makes an error of {alone:.2g}"
                if node.name in self.stored:
                    reason += "; its weights are stored in 8 bits"
            elif not computes:
                reason = "it computes no floats"
            elif node.name in self.float_only:
                reason = f"{node.op} has no 8-bit form here"
            elif reads_floats and (node.name in sites or node.op not in PRODUCTS):
                reason = "what it reads is computed in float"
            elif node.op in PRODUCTS:
                reason = "it does not multiply by constant float32 weights"
            else:
                reason = f"{node.op} has no 8-bit form here with these operands"
            if node.name in self.cells:
                reason += "; its weights are stored in 8 bits"
            reasons[node.name] = reason
        return reasons

    def _range(self, name: str, scale: float, zero_point: int) -> RangeRow:
        statistics = self.calibration.statistics[name]
        start, step, counts = statistics.histogram()
        wide = max(1, -(-len(counts) // 64))
        bins = [sum(counts[i : i + wide]) for i in range(0, len(counts), wide)]
        low, high = (0 - zero_point) * scale, (255 - zero_point) * scale
        least, greatest = statistics.extremes
        return RangeRow(name, scale, zero_point, low, high, least, greatest, (start, step * wide, bins))

    def _times(self, program: Program) -> dict[str, int]:
        session = Session(program, "cpu", threads=1, plan_cache=1)
        feed = dict(zip(program.inputs, self.calibration.kept[0], strict=True))
        session.run(feed)
        times: dict[str, int] = {}
        for _ in range(3):
            for event in session.profile(feed).events:
                times[event.node] = min(times.get(event.node, event.duration_ns), event.duration_ns)
        return times


def quantized_program(
    core: _core.Model,
    options: Int8,
    targets: list[str],
    facts: Mapping[str, str],
    examples: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    in_chunks: Callable[[_core.Model], _core.Model] | None = None,
) -> Program:
    """The quantised program, held against the same roundings between operators on floats.

    core      the float model, with the program's names.
    facts     to record in the file.
    examples  inputs to verify on; none: verification is left out.
    names     of inputs that the user's model calls otherwise.
    in_chunks makes the model that takes chunks of one that takes the whole: the program is that, held against the
              quantised whole, which is verified first. None: the program takes the whole.

    InvalidArgument: a sample, the metric or the client; DeviceLost: workers died; VerificationError: the integers
    differ from what they round, or that from the float model before its channels were evened out.
    """
    work = Quantizer(core, options, names)
    if not work.layers:
        raise _core.Unsupported(
            "quantize: no layer here has an 8-bit form: products by constant float32 weights are quantised"
            + (", and skip names all of them" if work.skipped else "")
        )
    if examples:  # what was made ready computes what the verified program does
        verify_program(work.float_program, ProgramSource(built(core)), examples, ["cpu"])
    work.calibrate()
    kept, sensitivity, score = work.kept()
    candidate = work.candidate(kept)
    model = work.candidates.model(candidate)
    whole_targets = ["cpu"] if in_chunks else targets
    program = Program(model.build(whole_targets, dict(facts)))
    source = RoundedSource(work.candidates.model(candidate, fold=False))
    if examples:
        program = verify_program(program, source, examples, whole_targets)
    work.doubt(program, examples)
    report = work.report(program, source.program, candidate.nodes, kept, sensitivity, score)
    if in_chunks:
        program = program_in_chunks(in_chunks(model), program, targets, facts, examples)
    log("info", f"quantised: {report!r}")
    return Program(core_of(program.with_metadata({FACT: report.to_json(ranges=False)})), report)


__all__ = ["Quantizer", "quantized_program"]
