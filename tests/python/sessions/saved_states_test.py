"""save_state, restore_state and fork of sessions, on the CPU and on Vulkan, in this process and in a forked one."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn


class Smoothed(nn.Module):
    """An exponential mean of a product, kept in a buffer."""

    def __init__(self, factor: float = 0.5) -> None:
        super().__init__()
        self.factor = factor
        self.mean: torch.Tensor
        self.register_buffer("mean", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.copy_(self.mean * self.factor + x)
        return torch.relu(self.mean) + x


@pytest.fixture(scope="module")
def program() -> pn.Program:
    return pn.load(Smoothed(), torch.ones(1, 8)).build(targets=["cpu"])


def answers(session: pn.Session, count: int, seed: int = 1) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [session.run({"x": rng.standard_normal((1, 8)).astype(np.float32)}) for _ in range(count)]


def equal(left: list[Any], right: list[Any]) -> bool:
    return all(np.array_equal(a[n], b[n]) for a, b in zip(left, right, strict=True) for n in a)


TARGETS = ["cpu", *(["vulkan,cpu"] if any(d.target == "vulkan" and d.available for d in pn.devices()) else [])]


@pytest.mark.parametrize("target", TARGETS)
def test_saved_restored_and_forked_runs_are_those_of_one_session(program: pn.Program, target: str) -> None:
    session = pn.Session(program, target=target)
    answers(session, 3)
    saved = session.save_state()
    fork = session.fork()
    went_on = answers(session, 4, seed=2)
    other = pn.Session(program, target=target)
    other.restore_state(saved)
    assert equal(answers(other, 4, seed=2), went_on)
    assert equal(answers(fork, 4, seed=2), went_on)
    assert not equal(answers(pn.Session(program, target=target), 4, seed=2), went_on)
    # Interleaved ones do not meet.
    session.restore_state(saved)
    left, right = session.fork(), session.fork()
    mixed = [(answers(left, 1, seed=s), answers(right, 1, seed=9)) for s in range(3)]
    session.restore_state(saved)
    assert equal([a for s in range(3) for a in answers(session, 1, seed=s)], [a for pair, _ in mixed for a in pair])


def test_a_state_crosses_targets_and_pickles(program: pn.Program) -> None:
    sessions = [pn.Session(program, target=target) for target in TARGETS]
    answers(sessions[0], 2)
    sessions[-1].restore_state(pickle.loads(pickle.dumps(sessions[0].save_state())))
    assert np.array_equal(sessions[0].state["mean"], sessions[-1].state["mean"])
    assert sessions[0].fork().target == "cpu"
    assert "nodes" in repr(sessions[0].fork())


def test_a_forked_child_goes_on(program: pn.Program) -> None:
    session = pn.Session(program, target="cpu", threads=1)
    answers(session, 2)
    saved = session.save_state()
    want = answers(session.fork(), 2, seed=3)
    child = os.fork()
    if child == 0:
        try:
            forked = session.fork()
            session.restore_state(saved)
            right = equal(answers(session, 2, seed=3), want) and equal(answers(forked, 2, seed=3), want)
            os._exit(0 if right else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_not_its_own_is_refused(program: pn.Program) -> None:
    session = pn.Session(program, target="cpu")
    answers(session, 1)
    before, saved = session.state["mean"], session.save_state()
    other = pn.Session(pn.load(Smoothed(0.25), torch.ones(1, 8)).build(targets=["cpu"]), target="cpu")
    with pytest.raises(pn.InvalidArgument, match="another program"):
        other.restore_state(saved)
    for bytes_ in (b"", b"PNC", saved[:-1], saved + b"\0", saved[:50] + b"\xff" + saved[51:]):
        with pytest.raises(pn.CorruptFile, match="saved state"):
            session.restore_state(bytes_)
    with pytest.raises(pn.InvalidArgument, match="bytes of save_state"):
        session.restore_state("text")  # type: ignore[arg-type]
    assert np.array_equal(session.state["mean"], before)
    session.restore_state(memoryview(saved))  # type: ignore[arg-type]
