"""Buffers that a module's plain objects hold as well: one state, whichever way the code reads and writes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from pinnace.sources.torch_module import live_source
from torch import Tensor, nn


class Store:
    """A plain object with tensors, as caches of keys and values are."""

    def __init__(self, rows: int) -> None:
        self.values = torch.zeros(rows, 3)
        self.count = torch.zeros((), dtype=torch.int64)

    def update(self, x: Tensor) -> Tensor:
        self.values.index_copy_(0, self.count[None] % len(self.values), x)
        self.count.add_(1)
        return self.values


class Remembers(nn.Module):
    values_0: Tensor

    def __init__(self, persistent: bool) -> None:
        super().__init__()
        self.stores = [Store(4), {"second": Store(5)}]
        self.linear = nn.Linear(3, 3)
        for i, store in enumerate(self.each()):
            self.register_buffer(f"values_{i}", store.values, persistent=persistent)
            self.register_buffer(f"count_{i}", store.count, persistent=persistent)

    def each(self) -> list[Store]:
        first, second = self.stores
        assert isinstance(first, Store)
        assert isinstance(second, dict)
        return [first, second["second"]]

    def forward(self, x: Tensor) -> Tensor:
        sums = [store.update(self.linear(x)).sum(0) for store in self.each()]
        return torch.stack(sums) + self.values_0[0]


@pytest.mark.parametrize("persistent", [True, False])
def test_they_are_one_state(persistent: bool) -> None:
    torch.manual_seed(0)
    module = Remembers(persistent).eval()
    before = {name: value.clone() for name, value in module.named_buffers()}
    program = pn.load(module, torch.randn(1, 3)).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    assert all(torch.equal(value, before[name]) for name, value in module.named_buffers())
    assert module.values_0 is module.each()[0].values
    session = pn.Session(program, target="cpu")
    assert set(session.state) == set(before)
    with torch.no_grad():
        for _ in range(7):
            x = torch.randn(1, 3)
            (got,) = session.run({"x": x}).values()
            assert_agree(got, module(x).numpy())
    for name, value in module.named_buffers():
        assert_agree(session.state[name], value.numpy())


def test_they_are_one_state_in_double_precision() -> None:
    torch.manual_seed(0)
    module = Remembers(False).eval()
    source: Any = live_source(module, (torch.randn(1, 3),), {}, None)
    steps = [[np.random.default_rng(i).standard_normal((1, 3)).astype(np.float32)] for i in range(3)]
    single, double = source.run_steps(steps), source.float64().run_steps(steps)
    for a, b in zip(single.outputs, double.outputs, strict=True):
        assert_agree(a[0], b[0].astype(np.float32))
    assert double.states["values_0"].dtype == np.float64
    for name, value in single.states.items():
        assert_agree(value, double.states[name].astype(value.dtype))


def test_an_exported_program_stays_as_it_was() -> None:
    module = Remembers(False).eval()
    x = torch.randn(1, 3)
    with torch.no_grad():
        exported = torch.export.export(module, (x,), strict=False)
    before = (str(exported.graph), str(exported.graph_signature), list(exported.constants))
    program = pn.load(exported, x).build()
    assert (str(exported.graph), str(exported.graph_signature), list(exported.constants)) == before
    assert set(pn.Session(program, target="cpu").state) == {"values_0", "count_0", "values_1", "count_1"}
