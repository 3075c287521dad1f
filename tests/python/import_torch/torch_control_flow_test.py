"""cond, while_loop, scan and map, nested, with captured values and trip counts that depend on data; and the state of
modules that change their buffers: readable, writable, resettable, and committed only by a run that succeeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from torch import Tensor, nn
from torch._higher_order_ops.map import map as _map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop as _while_loop

# Untyped, or typed too narrowly, in torch.
while_loop: Any = _while_loop
torch_map: Any = _map


def session_of(module: nn.Module, inputs: tuple[Tensor, ...], decomposed: bool, folder: Path) -> pn.Session:
    program = torch.export.export(module.eval(), inputs)
    if decomposed:
        program = program.run_decompositions()
    path = folder / "m.pt2"
    torch.export.save(program, path)
    return pn.Session(pn.load(str(path)).build(verify=False), target="cpu")


def run(session: pn.Session, *inputs: Tensor) -> list[np.ndarray]:
    return list(session.run(dict(zip(session.inputs, (i.numpy() for i in inputs), strict=True))).values())


class CondInWhile(nn.Module):
    """Collatz: the number of steps depends on the number; each step is one of two branches."""

    def forward(self, n: Tensor) -> Any:
        def step(n: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
            following = torch.cond((n % 2) == 0, lambda n: n // 2, lambda n: 3 * n + 1, (n,))
            return following.clone(), count + 1

        return while_loop(lambda n, count: n > 1, step, (n, torch.zeros((), dtype=torch.int64)))


class CondInCond(nn.Module):
    """Branches that capture weights, one of them with a branch of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        def upper(x: Tensor) -> Any:
            return torch.cond(x[0, 0] > 1, lambda x: self.first(x), lambda x: self.second(x).relu(), (x,))

        return torch.cond(x.sum() > 0, upper, lambda x: self.third(x) - 1, (x,)) * 2


class WhileCaptures(nn.Module):
    """A loop that reads a weight, and a bound computed before it."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Linear(3, 3, bias=False)

    def forward(self, x: Tensor) -> Any:
        bound = x.abs().max() * 8
        return while_loop(
            lambda i, h: (h.abs().max() < bound) & (i < 20),
            lambda i, h: (i + 1, self.turn(h) + h * 1.5),
            (torch.zeros((), dtype=torch.int64), x),
        )


class WhileInWhile(nn.Module):
    def forward(self, n: Tensor) -> Any:
        def row(i: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
            _k, total = while_loop(lambda k, t: k < i, lambda k, t: (k + 1, t + k * i), (torch.zeros_like(i), total))
            return i + 1, total

        return while_loop(lambda i, t: i < n, row, (torch.zeros_like(n), torch.zeros_like(n)))


class ScanCaptures(nn.Module):
    """A plain recurrent network written as a scan: carried, mapped and captured values."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(4, 4))

    def forward(self, xs: Tensor) -> Any:
        def step(h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.tanh(self.w @ x + self.u @ h)
            return h, h.sum() + x

        return scan(step, torch.zeros(4), xs)


class CondInScan(nn.Module):
    def forward(self, xs: Tensor) -> Any:
        def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            c = torch.cond(x.sum() > 0, lambda c, x: c + x, lambda c, x: c * 0.5 - x, (c, x))
            return c.clone(), c * 2

        return scan(step, torch.ones(2), xs)


class Mapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, xs: Tensor, y: Tensor) -> Any:
        return torch_map(lambda x, y: self.fc(x).relu() + y, xs, y)


class Counted(nn.Module):
    """The counter is int64, as PyTorch makes it."""

    def forward(self, x: Tensor, n: Tensor) -> Any:
        def step(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, torch.relu(x) * 0.5 + i

        return while_loop(lambda i, x: i < n, step, (torch.zeros((), dtype=torch.int64), x))[1]


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


CASES: dict[str, tuple[type[nn.Module], list[tuple[Tensor, ...]]]] = {
    "cond in while": (CondInWhile, [(torch.tensor(n),) for n in (6, 1, 27, 0)]),
    "cond in cond": (CondInCond, [(torch.full((2, 4), v),) for v in (2.0, 0.5, -1.0)]),
    "while captures": (WhileCaptures, [(seeded(2, 3, seed=s),) for s in range(3)]),
    "while in while": (WhileInWhile, [(torch.tensor(n),) for n in (4, 0, 7)]),
    "scan captures": (ScanCaptures, [(seeded(5, 3, seed=s),) for s in range(2)]),
    "cond in scan": (CondInScan, [(seeded(6, 2, seed=s),) for s in range(3)]),
    "map": (Mapped, [(seeded(4, 3, seed=s), seeded(2, seed=s)) for s in range(2)]),
}


@pytest.mark.rotating
@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "decomposed"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name: str, decomposed: bool, tmp_path: Path) -> None:
    kind, inputs = CASES[name]
    torch.manual_seed(1)
    module = kind()
    session = session_of(module, inputs[0], decomposed, tmp_path)
    for given in inputs:
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(module(*given))
        for got, want in zip(run(session, *given), wanted, strict=True):
            torch.testing.assert_close(torch.from_numpy(got), want)


class Counter(nn.Module):
    """Three kinds of writes: a whole buffer, a slice of one, and one that is looked up before it may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Tensor
        self.history: Tensor
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("history", torch.zeros(4, 2))
        self.table = nn.Parameter(torch.arange(6.0).reshape(3, 2))

    def forward(self, x: Tensor, row: Tensor) -> Tensor:
        self.count.add_(1)
        self.history.copy_(self.history.roll(1, 0))
        self.history[0] = x
        return self.table[row] + self.history.sum(0) + self.count


@pytest.fixture(params=[False, True], ids=["whole", "decomposed"])
def counter(request: pytest.FixtureRequest, tmp_path: Path) -> pn.Session:
    return session_of(Counter(), (torch.ones(2), torch.tensor(0)), request.param, tmp_path)


def test_buffers_are_state(counter: pn.Session) -> None:
    module = Counter()
    for i in range(3):
        x, row = torch.full((2,), i + 1.0), torch.tensor(i)
        with torch.no_grad():
            want = module(x, row)
        torch.testing.assert_close(torch.from_numpy(run(counter, x, row)[0]), want)
        assert int(counter.state["count"]) == i + 1
        np.testing.assert_array_equal(counter.state["history"], module.history.numpy())


def test_state_can_be_written_and_reset(counter: pn.Session) -> None:
    x, row = torch.ones(2), torch.tensor(1)
    first = run(counter, x, row)[0]
    assert sorted(counter.state) == ["count", "history"]
    counter.state["count"] = np.asarray(40, dtype=np.int64)
    counter.state["history"] = np.zeros((4, 2), dtype=np.float32)
    np.testing.assert_array_equal(run(counter, x, row)[0], first + 40)
    with pytest.raises(pn.InvalidArgument):
        counter.state["history"] = np.zeros((3, 2), dtype=np.float32)
    counter.reset_state()
    assert int(counter.state["count"]) == 0
    np.testing.assert_array_equal(run(counter, x, row)[0], first)


def test_a_failing_run_leaves_the_state(counter: pn.Session) -> None:
    x = torch.ones(2)
    run(counter, x, torch.tensor(0))
    with pytest.raises(pn.Error):
        run(counter, x, torch.tensor(7))
    assert int(counter.state["count"]) == 1
    np.testing.assert_array_equal(counter.state["history"], [[1, 1], [0, 0], [0, 0], [0, 0]])
    module = Counter()
    with torch.no_grad():
        module(x, torch.tensor(0))
        want = module(x, torch.tensor(2))
    np.testing.assert_array_equal(run(counter, x, torch.tensor(2))[0], want.numpy())


def test_a_counted_loop_is_one_operation_of_nnapi() -> None:
    program = pn.load(Counted(), (seeded(2, 3), torch.tensor(5))).build(verify=False)
    try:
        session = pn.Session(program, target="nnapi:30", fallback=False)
    except pn.Unsupported as error:
        pytest.skip(str(error))
    for n in (0, 1, 7):
        x = seeded(2, 3, seed=n)
        (got,) = run(session, x, torch.tensor(n))
        assert_agree(got, Counted()(x, torch.tensor(n)).numpy())
    assert {row.backend for row in session.placement} == {"nnapi"}
    (loop,) = [row for row in session.placement if row.op == "loop"]
    inner = [row for row in session.placement if row.path]
    assert {row.path for row in inner} == {f"{loop.node}.body"}
    assert {"add", "relu", "mul", "less"} <= {row.op for row in inner}
