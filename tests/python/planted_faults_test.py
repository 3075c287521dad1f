"""Verification finds faults: of 200 planted into models of the zoo at least 190, and none where there is none.

A fault that is not found must be equivalent: on further inputs, too, the model with it computes what it did without.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from pinnace import _core
from pinnace.agreement import agreement
from pinnace.program import Program
from pinnace.second_input import second_inputs
from pinnace.verify import Verification, is_inconclusive, verify_program
from planted_faults import faults
from slices import all_mode, rotating_slice, test_seed
from torch import nn


class Smoothing(nn.Module):
    """A network with states: a running mean and the last output."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 12), nn.Linear(12, 6)
        self.register_buffer("average", torch.zeros(6))
        self.register_buffer("last", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average.mul_(0.9).add_(x.mean(0), alpha=0.1)  # type: ignore[operator]
        y: torch.Tensor = self.down(torch.sigmoid(self.up(x - self.average))) + 0.5 * self.last  # type: ignore[operator]
        self.last.copy_(y[-1])  # type: ignore[operator]
        return y


def smoothing() -> zoo.Built:
    torch.manual_seed(2)
    return Smoothing().eval(), {"x": torch.randn(4, 6)}


# Model, options and how many of the 200 faults it gets. Those with many weights have few: their text is long.
MODELS: dict[str, tuple[Callable[[], zoo.Built], int]] = {
    "bert": (lambda: zoo.build("bert", layers=2, length=12, hidden=32, heads=4, vocabulary=60), 40),
    "lstm": (lambda: zoo.build("lstm", steps=6, features=6, hidden=8), 30),
    "gru": (lambda: zoo.build("gru", steps=6, features=6, hidden=8), 30),
    "smoothing": (smoothing, 20),
    "noise_suppressor": (lambda: zoo.build("noise_suppressor", frames=10), 20),
    "noise_suppressor_frame": (lambda: zoo.build("noise_suppressor_frame"), 20),
    "squeezenet1_1": (lambda: zoo.build("squeezenet1_1", size=64), 20),
    "mobilenet_v2": (lambda: zoo.build("mobilenet_v2", size=64), 20),
}
SMALL = ("bert", "lstm", "gru", "smoothing")


@functools.lru_cache(maxsize=1)
def network(name: str) -> tuple[pn.Model, str]:
    module, inputs = MODELS[name][0]()
    model = pn.load(module, inputs, disabled_passes=["all"])
    return model, model.text(1 << 40)


def parsed(text: str) -> Program | None:
    """The program of a text; None if what was planted is no legal graph."""
    try:
        return Program(_core.Model.parse(text, ["all"]).build(["cpu"], {}))
    except _core.Error:
        return None


def is_equivalent(a: Program, b: Program, example: dict[str, Any]) -> bool:
    """Whether both compute the same on three further inputs, two calls each."""
    for seed in (21, 22, 23):
        arrays = next(second_inputs([np.asarray(x) for x in example.values()], seed))
        feed = dict(zip(example, arrays, strict=True))
        outputs = []
        for program in (a, b):
            session = pn.Session(program, "cpu")
            outputs.append([*session.run(feed).values(), *session.run(feed).values()])
        if not all(agreement(x, y).ok for x, y in zip(*outputs, strict=True)):
            return False
    return True


@pytest.mark.parametrize("name", MODELS if all_mode() else rotating_slice(SMALL, 0.25, "planted faults"))
def test_planted_faults_are_found(name: str, record_property: Callable[[str, object], None]) -> None:
    model, text = network(name)
    right = parsed(text)
    assert right is not None
    example = model._examples[0]
    assert not is_inconclusive(verify_program(right, model._source, [example], ["cpu"]))
    # The source is the same for all: it runs once.
    references = Verification(right, model._source, [list(example.values())]).referred()
    planted, missed = 0, []
    count = MODELS[name][1] if all_mode() else 12
    for fault in faults(text, test_seed(), 3 * count):
        wrong = parsed(fault.text)
        if wrong is None:
            continue
        planted += 1
        work = Verification(wrong, model._source, [list(example.values())])
        work.references, work.second = list(references), "yes"
        try:
            work.on(pn.Session(wrong, "cpu"), "cpu")
            missed.append((fault, wrong))
        except pn.VerificationError:
            pass
        if planted == count:
            break
    record_property("planted", planted)
    record_property("missed", [f"{fault.kind}: {fault.place}" for fault, _ in missed])
    assert planted >= count // 2
    wrong_ones = [f"{fault.kind} {fault.place}" for fault, wrong in missed if not is_equivalent(right, wrong, example)]
    assert not wrong_ones
    assert len(missed) <= max(2, planted // 20), [f"{fault.kind} {fault.place}" for fault, _ in missed]
