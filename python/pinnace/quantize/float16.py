"""Constants and arithmetic in float16: Float16."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.log import log
from pinnace.program import NodeInfo, Program, core_of, node_infos
from pinnace.quantization import FACT, QuantizationReport
from pinnace.quantize.options import Float16, skipped_nodes
from pinnace.quantize.rounded_source import Float16Source
from pinnace.quantize.stored_weights import errors_of, program_in_chunks, weights_row
from pinnace.session import Session
from pinnace.verify.verification import verify_program

# float16 has 65,504; values of other inputs may be somewhat larger than those of the examples.
LARGEST = 32768.0
# Values that are kept in one run.
AT_ONCE = 64


def float16_program(
    core: _core.Model,
    options: Float16,
    targets: list[str],
    facts: Mapping[str, str],
    examples: Sequence[Mapping[str, Any]],
    in_chunks: Callable[[_core.Model], _core.Model] | None = None,
) -> Program:
    """The program in float16, each node held against float32's arithmetic on the same values and constants, by
    float16's bounds.

    core, facts, examples and in_chunks are as quantized_program() of build.py takes them. Unsupported: there is no such
    node.
    """
    nodes = {node.name: node for node in node_infos(core.nodes) if not node.path}
    sites = {site["name"]: site for site in core.float16_sites()}
    kept = skipped_nodes(nodes.values(), options.skip, core.merged)
    kept |= {name: site["why_not"] for name, site in sites.items() if name not in kept and site["why_not"]}
    exact = Program(core.build(["cpu"], {}))
    for name, why in _beyond_float16(exact, [n for n in nodes.values() if n.name in sites], examples).items():
        kept.setdefault(name, why)
    chosen = [name for name in sites if name not in kept]
    if not chosen:
        raise _core.Unsupported(
            "quantize: no node here computes in float32 and can in float16"
            + (f"; left out: {', '.join(dict.fromkeys(kept.values()))}" if kept else "")
        )
    model = core.in_float16(chosen)
    whole_targets = ["cpu"] if in_chunks else targets
    program = Program(model.build(whole_targets, dict(facts)))
    errors: dict[str, float] = {}
    if examples:
        source = Float16Source(core.in_float16(chosen, values=False))
        program = verify_program(program, source, examples, whole_targets)
        errors = errors_of(program, exact, examples)
    if in_chunks:
        program = program_in_chunks(in_chunks(model), program, targets, facts, examples)
    rows = [
        weights_row(
            node,
            sites[name]["weights"] if name in sites else 0,
            16 if name in sites and name not in kept else None,
            kept.get(name, "it has no float32 operands"),
        )
        for name, node in nodes.items()
    ]
    report = QuantizationReport(rows, method="float16", errors=errors)
    log("info", f"quantised: {report!r}")
    return Program(core_of(program.with_metadata({FACT: report.to_json(ranges=False)})), report)


def _beyond_float16(exact: Program, nodes: Sequence[NodeInfo], examples: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """By name, why nodes stay in float32: they make or read a value that reaches LARGEST on the examples."""
    made = [output for node in nodes for output in node.outputs if output]
    largest: dict[str, float] = {}
    for example in examples:
        for start in range(0, len(made), AT_ONCE):
            part = made[start : start + AT_ONCE]
            kept = Session(exact, "cpu", keep=part, plan_cache=1).kept_values(dict(example))
            for name, value in kept.items():
                if value.dtype == np.float32 and value.size:
                    finite = np.abs(value[np.isfinite(value)])
                    largest[name] = max(largest.get(name, 0.0), float(finite.max(initial=0.0)))
    for name, spec in exact.inputs.items():
        arrays = [np.abs(np.asarray(example[name], np.float32)) for example in examples if spec.dtype == np.float32]
        largest[name] = max((float(a[np.isfinite(a)].max(initial=0.0)) for a in arrays), default=0.0)
    found: dict[str, str] = {}
    for node in nodes:
        for name in (*node.outputs, *node.inputs):
            if largest.get(name, 0.0) >= LARGEST:
                found.setdefault(
                    node.name, f"value {name!r} reaches {largest[name]:.6g} on the examples, beyond float16"
                )
    return found


__all__ = ["float16_program"]
