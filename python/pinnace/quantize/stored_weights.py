"""Weights as stored integers, and what multiplies them in float or rounded at run time: WeightOnly, DynamicInt8."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.arrays import input_array
from pinnace.files import one_line
from pinnace.log import log
from pinnace.program import Program, core_of, node_infos
from pinnace.progress import counted
from pinnace.quantization import FACT, QuantizationReport, QuantizationRow
from pinnace.quantize.errors import output_errors
from pinnace.quantize.options import DynamicInt8, WeightOnly, skipped_nodes
from pinnace.quantize.rounded_source import RoundedSource
from pinnace.quantize.samples import SampleRefused, samples_of
from pinnace.session import Session
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.types import Array, specs_from
from pinnace.verify.streams import verify_stream
from pinnace.verify.verification import verify_program

# Of the Gram matrices that are in memory together.
GRAM_BYTES = 256 << 20
# Elements of a row, beyond which its Gram matrix (2 GiB there) is not made and weights are rounded to the nearest.
MOST_IN_ROW = 16_384


def stored_weights_program(
    core: _core.Model,
    options: WeightOnly | DynamicInt8,
    targets: list[str],
    facts: Mapping[str, str],
    examples: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    in_chunks: Callable[[_core.Model], _core.Model] | None = None,
) -> Program:
    """The program with stored weights, held against the same program with the floats that they stand for, and with
    the same roundings of rows where products are of integers.

    core, facts, examples and names are as quantized_program() of build.py takes them.
    in_chunks  makes the model that takes chunks of one that takes the whole: the program is that, held against the
               whole with stored weights, which is verified first. None: the program takes the whole.

    Unsupported: there is no such layer; InvalidArgument: a sample of the calibration.
    """
    nodes = {node.name: node for node in node_infos(core.nodes) if not node.path}
    skipped = skipped_nodes(nodes.values(), options.skip, core.merged)
    dynamic = isinstance(options, DynamicInt8)
    found = core.weight_sites()
    if dynamic:
        skipped |= {site["name"]: site["why_not_dynamic"] for site in found if site["why_not_dynamic"]}
    sites = {site["name"]: site for site in found if site["name"] not in skipped}
    if not sites:
        raise _core.Unsupported(
            "quantize: no layer here multiplies by, or gathers rows of, a constant float32 matrix"
            + (f"; left out: {', '.join(dict.fromkeys(skipped.values()))}" if skipped else "")
        )
    bits = 8 if isinstance(options, DynamicInt8) else options.bits
    block, symmetric = (0, True) if isinstance(options, DynamicInt8) else (options.block or 0, options.symmetric)
    calls, progress = [], False
    if isinstance(options, WeightOnly) and options.calibration is not None:
        calls, progress = _calls(core, options, names), options.progress
    by_samples = list(_groups(sites.values())) if calls else []
    grouped = {site["name"] for group in by_samples for site in group}
    left = [name for name in sites if name not in grouped]
    last = not by_samples
    stored = core.with_stored_weights(left, bits, block, symmetric, dynamic, passes=last)
    floats = core.with_stored_weights(left, bits, block, symmetric, dynamic, integers=False, passes=last)
    for number, group in enumerate(by_samples):
        last = number == len(by_samples) - 1
        grams = _gram_matrices(floats, group, calls, progress)
        chosen = [site["name"] for site in group]
        stored = stored.with_stored_weights(chosen, bits, block, symmetric, passes=last, grams=grams)
        floats = floats.with_stored_weights(chosen, bits, block, symmetric, integers=False, passes=last, grams=grams)
    whole_targets = ["cpu"] if in_chunks else targets
    program = Program(stored.build(whole_targets, dict(facts)))
    errors: dict[str, float] = {}
    if examples:
        if dynamic:
            source: ProgramSource = RoundedSource(floats)
        else:
            source = ProgramSource(Program(floats.build(["cpu"], {})))
            source.description = "the same program with the floats that its integers stand for, on cpu"
        program = verify_program(program, source, examples, whole_targets)
        errors = errors_of(program, Program(core.build(["cpu"], {})), examples)
    if in_chunks:
        program = program_in_chunks(in_chunks(stored), program, targets, facts, examples)
    rows = [
        weights_row(
            node,
            sites[name]["weights"] if name in sites else 0,
            None if name not in sites else 8 if node.op == "gather" and sites[name]["length"] % 2 else bits,
            skipped.get(name, "it has no constant float32 matrix"),
        )
        for name, node in nodes.items()
    ]
    method = "products of 8 bits, rows rounded at run time" if dynamic else f"weights of {bits} bits"
    report = QuantizationReport(rows, samples=len(calls), method=method, errors=errors)
    log("info", f"quantised: {report!r}")
    return Program(core_of(program.with_metadata({FACT: report.to_json(ranges=False)})), report)


def program_in_chunks(
    core: _core.Model,
    whole: Program,
    targets: list[str],
    facts: Mapping[str, str],
    examples: Sequence[Mapping[str, Any]],
) -> Program:
    """The program of `core`, which takes chunks, held against the quantised program of the whole."""
    program = Program(core.build(targets, dict(facts)))
    if not examples:
        return program
    source = ProgramSource(whole)
    source.description = "the quantised program of the whole"
    return verify_stream(program, source, examples, targets)


# ---- rounding by samples


def _calls(core: _core.Model, options: WeightOnly, names: Mapping[str, str]) -> list[list[Array]]:
    """The arrays of each call. InvalidArgument: a sample is none, or there is none."""
    specs = specs_from(core.inputs, core.symbols)
    try:
        calls = [
            [np.array(input_array("a sample", array)) for array in call.arrays]
            for call in samples_of(options.calibration, specs, names)
        ]
    except SampleRefused as refused:
        raise refused.error() from None
    if not calls:
        raise _core.InvalidArgument("calibration has no sample: weights are rounded by what runs on some give")
    return calls


def _gram_matrices(
    core: _core.Model, sites: Sequence[Mapping[str, Any]], calls: Sequence[Sequence[Array]], shown: bool
) -> list[tuple[str, Any]]:
    """(node, GramMatrix of the rows that it multiplies): of those that reach it where the weights before it are rounded
    already.

    InvalidArgument: a call does not fit the inputs, or a value has an element that is NaN or infinite.
    """
    program = Program(core.build(["cpu"], {}))
    grams = {site["rows"]: _core.GramMatrix() for site in sites}
    inner = [name for name in grams if name not in program.inputs]
    session = Session(program, "cpu", keep=inner, plan_cache=2)
    observed = [(len(program.outputs) + i, grams[name], -1) for i, name in enumerate(inner)]
    entering = [(i, grams[name]) for i, name in enumerate(program.inputs) if name in grams]
    with counted("calibrating", shown) as step:
        for number, arrays in enumerate(calls):
            try:
                for place, gram in entering:
                    gram.add(arrays[place])
                _core.observe(session._core, arrays, observed)
            except _core.InvalidArgument as error:
                raise SampleRefused(number, f": {one_line(error)}").error() from None
            step()
    return [(site["name"], grams[site["rows"]]) for site in sites if grams[site["rows"]].length]


def _groups(sites: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Nodes that multiply rows, in an order of the graph: Gram matrices of GRAM_BYTES, or those of the nodes that share
    one matrix of weights, which come together."""
    by_matrix: dict[str, list[Mapping[str, Any]]] = {}
    for site in sites:
        if site["rows"] and site["length"] <= MOST_IN_ROW:
            by_matrix.setdefault(site["matrix"], []).append(site)
    group: list[Mapping[str, Any]] = []
    lengths: dict[str, int] = {}
    for together in by_matrix.values():
        own = {site["rows"]: site["length"] for site in together}
        if group and sum(8 * n * n for n in (lengths | own).values()) > GRAM_BYTES:
            yield group
            group, lengths = [], {}
        group += together
        lengths |= own
    if group:
        yield group


def errors_of(program: Program, exact: Program, examples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """By output, over all examples, relative to the exact program's."""
    found: list[list[list[Array]]] = []
    for each in (program, exact):
        session = Session(each, "cpu", plan_cache=1)
        runs = []
        for example in examples:
            session.reset_state()
            runs.append([np.asarray(value) for value in session.run(dict(example)).values()])
        found.append(runs)
    return output_errors(program, *found)


def weights_row(node: Any, weights: int, bits: int | None, reason: str) -> QuantizationRow:
    """The report's row of a node with so many weights, of so many bits. None: they stay float32, for the reason."""
    return QuantizationRow(
        node=node.name,
        op=node.op,
        source=node.source,
        module=node.module,
        kept_float=bits is None,
        reason=reason if bits is None else "",
        error=None,
        sensitivity=None,
        bytes_before=4 * weights,
        bytes_after=weights * (32 if bits is None else bits) // 8,
        ns_before=None,
        ns_after=None,
    )


__all__ = ["errors_of", "stored_weights_program", "weights_row"]
