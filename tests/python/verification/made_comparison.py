"""Comparisons of any size without a model: residual blocks in modules, or a chain that nothing is known of."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pinnace as pn
from pinnace.verify.error_details import WorstErrors

BLOCK = ("norm", "query", "key", "value", "scores", "softmax", "mixed", "project", "add", "gelu")


def made_comparison(
    layers: int,
    targets: tuple[str, ...] = ("cpu", "vulkan"),
    *,
    modules: bool = True,
    bad: int = 0,
    name: Callable[[str], str] = str,
    seed: int = 1,
) -> pn.Comparison:
    """bad: so many layers in the middle are outside of their bound on the last target. name: changes every name."""
    choose, contents = random.Random(seed), np.random.default_rng(seed)
    nodes: list[pn.NodeInfo] = []
    rows: list[pn.ComparisonRow] = []
    worst = WorstErrors()
    entry = last = name("image")
    for i in range(layers):
        kind = BLOCK[i % len(BLOCK)]
        entry = last if kind == "norm" else entry
        value = name(f"{kind}_{i}")
        reads = {"query": [last], "key": [last], "value": [last], "add": [last, entry]}.get(kind, [last])
        if kind in ("query", "key", "value"):
            reads = [name(f"norm_{i - BLOCK.index(kind)}")]
        if kind == "scores":
            reads = [name(f"query_{i - 3}"), name(f"key_{i - 2}")]
        if kind == "mixed":
            reads = [last, name(f"value_{i - 3}")]
        part = "attention." if 1 <= i % len(BLOCK) <= 7 else ""
        module = name(f"encoder.layer.{i // len(BLOCK)}.{part}{kind}") if modules else ""
        node = pn.NodeInfo(value, kind, "", "", module, reads, [value], ["float32[1,16,24]"])
        nodes.append(node)
        last = value
        wrong = layers // 2 <= i < layers // 2 + bad
        verdicts = {}
        for place, target in enumerate(targets):
            relative = 10 ** choose.uniform(-8, -5) * (1 + i / layers) if choose.random() > 0.1 else 0.0
            differs = wrong and place == len(targets) - 1
            relative = 0.03 if differs else relative
            why = f"differs by {relative:g} of its largest magnitude, bound 0.0001" if differs else ""
            verdict = pn.Agreement(relative, relative, not differs, why)
            want = contents.standard_normal((1, 16, 24)).astype(np.float32)
            got = want + relative * contents.standard_normal(want.shape).astype(np.float32)
            worst.look(target, value, False, verdict, got, want)
            verdicts[target] = verdict
        rows.append(pn.ComparisonRow(value, value, kind, "", False, verdicts))
    same = pn.Agreement(2e-6, 2e-6, True, "")
    rows.append(pn.ComparisonRow(name("logits"), "", "output", "", True, dict.fromkeys(targets, same)))
    graph = pn.ComparedGraph(nodes, [name("image")], {name("logits"): last})
    about = {"made by": "pn.compare(…)", "date": "2026-01-01 00:00 UTC", "model": name("Made"), "machine": "x86_64"}
    counts = {target: pn.NodeCount(layers, layers) for target in targets}
    return pn.Comparison(
        rows, list(targets), {}, "torch 2.13.0", counts, [], about, graph, worst.details(graph.outputs)
    )
