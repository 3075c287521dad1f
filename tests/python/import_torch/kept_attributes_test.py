"""State that forward() keeps in plain attributes is state of the session, equal to eager torch's in calls in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from torch import Tensor, nn

CALLS = 5


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        return x * self.seen


class Delay(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.last
        self.last = x
        return y


class Mean(nn.Module):
    """A number that the first call makes a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.mean: Any = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.mean()
        shifted: Tensor = x - self.mean
        return shifted


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sum = torch.zeros(3)

    def forward(self, x: Tensor) -> Tensor:
        self.sum.add_(x)
        self.sum[0] *= 0.5
        return self.sum * 2


class Earlier(nn.Module):
    """What was read before a write stays what it was; what is written in place after an assignment does not."""

    def __init__(self) -> None:
        super().__init__()
        self.number, self.scale, self.flag = 1, 0.5, False
        self.tensor = torch.zeros(3)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        number, tensor = self.number, self.tensor
        self.number += 2
        self.scale *= 1.5
        self.flag = torch.as_tensor(self.flag) ^ (x.sum() > 0)  # type: ignore[assignment]
        self.tensor = x + number
        self.tensor.mul_(2)
        return tensor, x * number, self.tensor + self.scale, x * self.flag


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.linear = Mean(), Mean(), nn.Linear(3, 3)
        self.counters = nn.ModuleList([Counter(), Counter()])
        self.register_buffer("calls", torch.zeros(()))
        self.calls: Tensor

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y: Tensor = self.linear(self.first(x)) + self.second(self.second(x)) + self.calls
        counted: Tensor = self.counters[1](self.counters[0](y))
        return counted


class Noting(nn.Module):
    """Attributes that no later call computes with."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.log = 0, [0]
        self.table: Tensor | None = None
        self.attention = torch.zeros(2)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.log.append(self.calls)
        if self.table is None:
            self.table = torch.arange(3.0)
        self.attention = x.softmax(0)
        scaled: Tensor = self.attention * self.table
        return scaled


MODULES: dict[str, tuple[Callable[[], nn.Module], set[str]]] = {
    "a counter": (Counter, {"seen"}),
    "a delay": (Delay, {"last"}),
    "a running mean": (Mean, {"mean"}),
    "in place": (InPlace, {"sum"}),
    "earlier values": (Earlier, {"number", "scale", "flag", "tensor"}),
    "in submodules": (Nested, {"first.mean", "second.mean", "counters.0.seen", "counters.1.seen", "calls"}),
    "notes and caches": (Noting, set()),
}


@pytest.mark.parametrize("name", MODULES)
def test_sessions_keep_what_the_module_keeps(name: str) -> None:
    make, states = MODULES[name]
    torch.manual_seed(1)
    module = make().eval()
    before = {key: value for key, value in vars(module).items() if isinstance(value, int | float)}
    program = pn.load(module, torch.rand(3)).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    assert {key: vars(module)[key] for key in before} == before
    session = pn.Session(program)
    assert dict(session.state).keys() == set(session.state) == states
    assert session.state.get("nobody") is None
    for _ in range(2):  # from the start
        fresh = make().eval()
        fresh.load_state_dict(module.state_dict())
        for _ in range(CALLS):
            x = torch.randn(3)
            with torch.no_grad():
                wanted = fresh(x)
            outputs = session.run(dict.fromkeys(session.inputs, x)).values()
            for got, want in zip(outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
                assert_agree(got, want.numpy())
        for state in states - {"calls"}:
            path, _, attribute = state.rpartition(".")
            kept = getattr(fresh.get_submodule(path), attribute)
            assert_agree(session.state[state], np.asarray(kept))
        session.reset_state()


def test_compare_calls_the_module_several_times_too() -> None:
    program = pn.load(Counter(), torch.rand(3)).build()
    assert pn.compare(program, Counter(), [{"x": torch.rand(3)}, {"x": torch.rand(3)}]).ok
    frozen = pn.load(torch.export.export(Counter(), (torch.rand(3),), strict=False)).build()
    assert not pn.compare(frozen, Delay(), {"x": torch.rand(3)}).ok


class Growing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.past = torch.zeros(1, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.past = torch.cat([self.past, x[None]])
        return self.past.sum(0)


class Listing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.past: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.past.append(x)
        return torch.stack(self.past).sum(0)


class Beginning(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.past: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.past is None else x + self.past
        self.past = x
        return y


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn = 0

    def forward(self, x: Tensor) -> Tensor:
        self.turn += 1
        return x if self.turn % 2 else -x


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Growing, r"'past' of Growing 'inner' \(float32\[1, 3\] then float32\[2, 3\]"),
        (Listing, r"'past' of Listing 'inner' \(a list\)"),
        (Beginning, r"'past' of Beginning 'inner' \(None then float32\[3\]\)"),
        (Branching, r"keeps state between calls in 'inner.turn', which was made a buffer"),
    ],
)
def test_what_no_session_can_keep_is_refused_by_name(make: Callable[[], nn.Module], said: str) -> None:
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = make()

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.inner(x)
            return y

    with pytest.raises(pn.ConversionError, match=said):
        pn.load(Around(), torch.rand(3))
