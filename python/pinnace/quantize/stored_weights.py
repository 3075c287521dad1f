"""Weights as stored integers, and what multiplies them in float or rounded at run time: WeightOnly, DynamicInt8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.log import log
from pinnace.program import Program, core_of, node_infos
from pinnace.quantization import FACT, QuantizationReport, QuantizationRow
from pinnace.quantize.errors import relative_error
from pinnace.quantize.options import DynamicInt8, WeightOnly, skip_reason
from pinnace.quantize.rounded_source import RoundedSource
from pinnace.session import Session
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.types import Array
from pinnace.verify.verification import verify_program


def stored_weights_program(
    core: _core.Model,
    options: WeightOnly | DynamicInt8,
    targets: list[str],
    facts: Mapping[str, str],
    examples: Sequence[Mapping[str, Any]],
) -> Program:
    """The program with stored weights, held against the same program with the floats that they stand for, and with
    the same roundings of rows where products are of integers.

    core, facts and examples are as quantized_program() of build.py takes them. Unsupported: there is no such layer.
    """
    nodes = {node.name: node for node in node_infos(core.nodes) if not node.path}
    skipped = {name: why for name, node in nodes.items() if (why := skip_reason(node, options.skip))}
    dynamic = isinstance(options, DynamicInt8)
    found = core.weight_sites()
    if dynamic:
        skipped |= {site["name"]: site["why_not_dynamic"] for site in found if site["why_not_dynamic"]}
    sites = {site["name"]: site["weights"] for site in found if site["name"] not in skipped}
    if not sites:
        raise _core.Unsupported(
            "quantize: no layer here multiplies by, or gathers rows of, a constant float32 matrix"
            + (f"; left out: {', '.join(dict.fromkeys(skipped.values()))}" if skipped else "")
        )
    bits = 8 if isinstance(options, DynamicInt8) else options.bits
    block, symmetric = (0, True) if isinstance(options, DynamicInt8) else (options.block or 0, options.symmetric)
    stored = core.with_stored_weights(list(sites), bits, block, symmetric, dynamic)
    floats = core.with_stored_weights(list(sites), bits, block, symmetric, dynamic, integers=False)
    program = Program(stored.build(targets, dict(facts)))
    errors: dict[str, float] = {}
    if examples:
        if dynamic:
            source: ProgramSource = RoundedSource(floats)
        else:
            source = ProgramSource(Program(floats.build(["cpu"], {})))
            source.description = "the same program with the floats that its integers stand for, on cpu"
        program = verify_program(program, source, examples, targets)
        errors = errors_of(program, Program(core.build(["cpu"], {})), examples)
    rows = [
        weights_row(
            node,
            sites.get(name, 0),
            None if name not in sites else 8 if node.op == "gather" else bits,
            skipped.get(name, "it has no constant float32 matrix"),
        )
        for name, node in nodes.items()
    ]
    method = "products of 8 bits, rows rounded at run time" if dynamic else f"weights of {bits} bits"
    report = QuantizationReport(rows, method=method, errors=errors)
    log("info", f"quantised: {report!r}")
    return Program(core_of(program.with_metadata({FACT: report.to_json(ranges=False)})), report)


def errors_of(program: Program, exact: Program, examples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """By output, over all examples, relative to the exact program's."""
    found: list[list[Array]] = []
    for each in (program, exact):
        session = Session(each, "cpu", plan_cache=1)
        runs = []
        for example in examples:
            session.reset_state()
            runs.append([np.asarray(value) for value in session.run(dict(example)).values()])
        found.append([np.concatenate([run[i].ravel() for run in runs]) for i in range(len(program.outputs))])
    return {name: relative_error([a], [b]) for name, a, b in zip(program.outputs, *found, strict=True)}


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
