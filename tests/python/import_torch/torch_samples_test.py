"""PyTorch's own samples of every operator (OpInfo), through export, import and a session, against PyTorch itself.

By default a slice that moves with the seed; PINNACE_TEST_ALL=1 runs everything. What is refused stands, with its
reason, in torch_expected_refusals.txt, which may only shrink: a line that is no longer true fails too.
"""

from __future__ import annotations

import collections
import sys
import time
from pathlib import Path

import pytest
import torch_samples
from slices import all_mode, within_budget

REFUSALS = Path(__file__).with_name("torch_expected_refusals.txt")
SECONDS = 20
INFOS = torch_samples.operators()


def expected() -> dict[str, dict[str, str]]:
    """Reason by operator and dtype."""
    table: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for line in REFUSALS.read_text().splitlines():
        call, reason = line.split(": ", 1)
        op, dtype = call.rsplit(" ", 1)
        table[op][f"{op} {dtype}"] = reason
    return table


def test_the_list_of_refusals_is_sorted_and_names_operators() -> None:
    lines = REFUSALS.read_text().splitlines()
    assert lines == sorted(set(lines))
    assert not set(expected()) - set(INFOS)


def test_samples_agree_with_eager(capsys: pytest.CaptureFixture[str]) -> None:
    table, total = expected(), torch_samples.Outcome()
    problems: list[str] = []
    operators, slowest, start = 0, (0.0, ""), time.monotonic()
    for name in within_budget(sorted(INFOS), SECONDS, "torch samples"):
        began = time.monotonic()
        samples = torch_samples.samples_of(name, INFOS[name])
        outcome = torch_samples.check(samples) if samples else torch_samples.Outcome()
        operators += 1
        total.passed += outcome.passed
        total.decomposed += outcome.decomposed
        total.refused_samples += outcome.refused_samples
        total.unexportable += outcome.unexportable
        problems += outcome.wrong
        for call in sorted(outcome.refused.keys() | table[name].keys()):
            found, known = outcome.refused.get(call), table[name].get(call)
            if found is None:
                problems.append(f"{call} is no longer refused: take its line out of {REFUSALS.name}")
            elif known is None:
                problems.append(f"{call} is refused: {found}")
            elif found != known:
                problems.append(f"{call} is refused for another reason: {found}; listed: {known}")
        slowest = max(slowest, (time.monotonic() - began, name))
    with capsys.disabled():
        print(
            f"\ntorch samples: {operators} of {len(INFOS)} operators, {total.passed} samples agree "
            f"({total.decomposed} after a decomposition), {total.refused_samples} refused, {total.unexportable} cannot "
            f"be exported, {time.monotonic() - start:.0f} s, slowest {slowest[1]} {slowest[0]:.0f} s",
            file=sys.stderr,
        )
    assert not problems, "\n".join(problems)
    assert total.passed >= (10_000 if all_mode() else 10)
