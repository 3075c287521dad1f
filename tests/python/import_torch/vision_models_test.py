"""Networks of torchvision and timm (tests/models/vision.py): loaded with one line, built with verification, and held
against the module on images that the conversion has not seen.

By default a slice that moves with the seed; PINNACE_TEST_ALL=1 runs all of them. Networks that are refused stand, with
the reason, in vision_expected_refusals.txt, and nodes that Vulkan leaves to the CPU in vision_left_off_vulkan.txt. Both
may only shrink: a line that is no longer true fails too.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from slices import all_mode, within_budget
from torch import Tensor, nn
from torch.utils import _pytree

pytest.importorskip("torchvision_ops")  # before timm, which imports torchvision
timm: Any = pytest.importorskip("timm", reason="timm is not installed")

import vision  # noqa: E402

HERE = Path(__file__).parent
LISTS = {"refused": HERE / "vision_expected_refusals.txt", "left to the CPU": HERE / "vision_left_off_vulkan.txt"}
SECONDS = 12

pytestmark = pytest.mark.filterwarnings("ignore")


def listed(kind: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in LISTS[kind].read_text().splitlines())


def agree(program: pn.Program, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """The outputs are the module's; where the network amplifies what rounding does, float64 tells who is right."""
    with torch.no_grad():
        wanted = [leaf for leaf in _pytree.tree_leaves(module(*inputs)) if isinstance(leaf, Tensor)]
    session = pn.Session(program, target="cpu")
    named = dict(zip(session.inputs, inputs, strict=True))
    off = ""
    try:
        for (name, made), want in zip(session.run(named).items(), wanted, strict=True):
            assert_agree(made, want.numpy(), name)
    except AssertionError as error:
        off = str(error)
    if off:
        result = pn.compare(program, module, named)
        assert result.ok, f"{off}\n{result.table(20)}"


def found(name: str) -> dict[str, str]:
    """What there is to say of a network, by the list that has such lines; empty where it holds, on Vulkan too."""
    module, inputs = vision.make(name)
    try:
        model = pn.load(module, inputs)
    except pn.ConversionError as error:
        return {"refused": re.sub(r" \([^()]*\.py:.*", "", str(error).splitlines()[0])}
    program = model.build()
    assert program.metadata["verified.cpu"].startswith("yes"), program.metadata["verified.cpu"]
    agree(program, module, vision.inputs(name, 1, 7))
    left = [node for node in model.check(targets=["vulkan"]).nodes if not node.supported]
    rules = Counter(f"{node.op} ({node.rule})" for node in left)
    return {"left to the CPU": ", ".join(f"{n} {rule}" for rule, n in sorted(rules.items()))} if left else {}


def test_lists_are_sorted_and_short() -> None:
    for kind, share in (("refused", 0.02), ("left to the CPU", 0.05)):
        lines = LISTS[kind].read_text().splitlines()
        assert lines == sorted(set(lines))
        assert listed(kind).keys() <= set(vision.names())
        assert len(lines) <= share * len(vision.names())


def test_families_are_those_of_timm() -> None:
    """All of timm's but deepseek_vit, whose smallest network has 412 million parameters."""
    assert set(timm.list_modules()) - set(vision.TIMM) == {"deepseek_vit"}
    for family, network in vision.TIMM.items():
        assert network.name in timm.list_models(module=family)


# A run of everything shares the file, which takes 25 minutes, among processes (PYTHON_PARTS of scripts/run_tests.py).
SHARES = 6 if all_mode() else 1


@pytest.mark.parametrize("share", range(SHARES))
def test_networks_agree_with_eager(share: int, capsys: pytest.CaptureFixture[str]) -> None:
    problems: list[str] = []
    counts: Counter[str] = Counter()
    for name in within_budget(vision.names()[share::SHARES], SECONDS, "vision"):
        try:
            said: dict[str, Any] = found(name)
        except (pn.Error, AssertionError) as error:
            problems.append(f"{name}: {type(error).__name__}: {error}")
            continue
        counts[", ".join(said) or "holds"] += 1
        for kind, path in LISTS.items():
            before, now = listed(kind).get(name), said.get(kind)
            if before != now:
                problems.append(f"{name} is {kind}: {now}; {path.name} has {before}")
    with capsys.disabled():
        print(f"\nvision: {dict(counts)}, {len(problems)} problems", file=sys.stderr)
    assert not problems, "\n".join(problems)
