"""ONNX's own backend tests: every case passes, or is refused by name and listed, and none crashes.

A seeded slice runs by default, everything with PINNACE_TEST_ALL=1. The list of refusals may only shrink.
"""

from __future__ import annotations

import collections
import pathlib
from typing import Any

import onnx
import onnx_backend
import pytest
from slices import all_mode, rotating_slice

# All cases take 60 seconds on two cores; the "real" networks alone 20.
# How many pass when all are run; the rest is refused by name. May only grow.
MINIMUM_PASSES = {"node": 1792, "simple": 15, "pytorch-operator": 35, "pytorch-converted": 82, "real": 9}
# The most for any case but whole networks: reference code is plain, but a node that has nothing else must not stall a
# model. Processor time, so that a busy machine fails nothing; the slowest takes 0.01.
SECONDS_IN_A_SESSION = 2.0
SHARES = {"node": 0.25, "simple": 1.0, "pytorch-operator": 1.0, "pytorch-converted": 0.5, "real": 0.3}


@pytest.mark.parametrize("kind", onnx_backend.KINDS)
def test_backend(kind: str) -> None:
    names = rotating_slice(sorted(onnx_backend.load_cases(kind)), SHARES[kind], salt=f"onnx {kind}")
    outcomes = onnx_backend.run_cases([(kind, name) for name in names])
    onnx_backend.print_counts(outcomes)
    counts = collections.Counter(o.result for o in outcomes)
    assert sum(counts.values()) == len(names)
    expected = onnx_backend.expected_refusals()
    wrong = [f"{o.result}: {o.name} ({o.operator}): {o.text}" for o in outcomes if o.result in ("fail", "crash")]
    wrong += [
        f"refused and not listed: {o.name} ({o.operator}): {o.text}"
        for o in outcomes
        if o.result == "refused" and o.name not in expected
    ]
    wrong += [
        f"listed as refused and passes, remove it from {onnx_backend.EXPECTED_REFUSALS.name}: {o.name}"
        for o in outcomes
        if o.result == "pass" and o.name in expected
    ]
    wrong += [
        f"takes {o.seconds:.1f} s of processor time, {SECONDS_IN_A_SESSION} are the most: {o.name} ({o.operator})"
        for o in outcomes
        if o.seconds > SECONDS_IN_A_SESSION and o.kind != "real"
    ]
    print(f"{kind}: {counts['pass']} of {len(names)} pass, {counts['refused']} are refused by name")
    assert not wrong, f"{counts['pass']} of {len(names)} passed\n" + "\n".join(wrong[:20])
    if all_mode():
        assert counts["pass"] >= MINIMUM_PASSES[kind]


def test_every_listed_refusal_is_a_case() -> None:
    """A renamed or dropped case must not stay in the list, where nothing would ever remove it."""
    cases = {name for kind in onnx_backend.KINDS for name in onnx_backend.load_cases(kind)}
    assert not set(onnx_backend.expected_refusals()) - cases


def test_every_operator_made_of_others_has_an_expanded_case() -> None:
    """So that the cases above run the nodes that ONNX itself defines the operator by."""
    cases = onnx_backend.load_cases("node")
    whole = {name.partition("_expanded")[0] for name in cases if "_expanded" in name}
    expanded = {cases[name].model.graph.node[0].op_type for name in whole & set(cases)}
    schemas: list[Any] = [schema for schema in onnx.defs.get_all_schemas() if schema.domain == ""]
    defined = {s.name for s in schemas if s.has_function or s.has_context_dependent_function}
    assert len(defined) >= 48
    assert not defined - expanded


def test_runner_sees_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The worker that dies is recorded against its case and the cases after it still run."""
    fake = tmp_path / "worker.py"
    fake.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    kind, name = json.loads(line)\n"
        "    if name == 'dies': os.abort()\n"
        "    print(json.dumps(dict(kind=kind, name=name, result='pass')), flush=True)\n"
    )
    monkeypatch.setattr(onnx_backend, "WORKER", fake)
    outcomes = onnx_backend.run_cases([("node", "one"), ("node", "dies"), ("node", "two")])
    assert [(o.name, o.result) for o in outcomes] == [("one", "pass"), ("dies", "crash"), ("two", "pass")]
