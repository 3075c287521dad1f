"""Attributes of modules whose memory is another tensor's: two states would not know of each other. And tensors that
are conjugate or negated only where they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn


class Window(nn.Module):
    """A view of a buffer, which is written to."""

    buf: torch.Tensor

    def __init__(self, of_buffer: bool) -> None:
        super().__init__()
        self.register_buffer("buf", torch.zeros(3))
        self.window = self.buf[:2]
        self.of_buffer = of_buffer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (self.buf if self.of_buffer else self.window).add_(x[:3] if self.of_buffer else x[:2])
        return self.window * 1 if self.of_buffer else self.buf * 1


class Detached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.w = self.linear.weight.detach()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.w.mul_(0.5)
        out: torch.Tensor = self.linear(x)
        return out


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.zeros(3)
        self.b = self.a

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.a.add_(x)
        return self.b * 1


@pytest.mark.parametrize(
    ("make", "owner"),
    [
        (lambda: Window(False), "attribute 'window' of Window shares memory with buffer 'buf'"),
        (lambda: Window(True), "attribute 'window' of Window shares memory with buffer 'buf'"),
        (Detached, "attribute 'w' of Detached shares memory with parameter 'linear.weight'"),
        (Twice, "attribute '[ab]' of Twice shares memory with attribute '[ab]'"),
    ],
)
def test_two_names_of_one_memory_are_refused(make: Any, owner: str) -> None:
    with pytest.raises(pn.ConversionError, match=owner):
        pn.load(make().eval(), torch.ones(3))


class Caches(nn.Module):
    """A view of a buffer that each call makes anew, and that no call reads."""

    buf: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buf", torch.zeros(3))
        self.last = self.buf[:2]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.buf.add_(x)
        self.last = self.buf[:2]
        return self.buf * 1


def test_a_view_that_only_notes_something_is_no_state() -> None:
    net = Caches().eval()
    net(torch.ones(3))
    program = pn.load(net, torch.ones(3)).build()
    session = pn.Session(program, target="cpu")
    for call in (2, 3):
        (y,) = session.run({"x": torch.ones(3)}).values()
        np.testing.assert_array_equal(y, [call] * 3)


def test_views_that_nobody_writes_to_are_constants() -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.first = self.linear.weight[:1].detach()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.linear(x) + self.first.sum()
            return made

    net = Reads().eval()
    x = torch.randn(2, 3)
    (y,) = pn.Session(pn.load(net, x).build(), target="cpu").run({"x": x}).values()
    np.testing.assert_allclose(y, net(x).detach().numpy(), rtol=1e-5)


def negated(n: int) -> torch.Tensor:
    tensor = torch.complex(torch.zeros(n), torch.arange(1.0, n + 1)).conj().imag
    assert tensor.is_neg()
    return tensor


class Held(nn.Module):
    lazy: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("lazy", negated(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.lazy


def test_negated_views_have_their_sign() -> None:
    program = pn.load(nn.Identity(), torch.ones(3)).build()
    (y,) = pn.Session(program, target="cpu").run({"input": negated(3)}).values()
    np.testing.assert_array_equal(y, [-1, -2, -3])
    net = Held()
    for source in (net, torch.export.export(net, (torch.ones(3),))):
        (y,) = pn.Session(pn.load(source, torch.ones(3)).build(), target="cpu").run({"x": torch.ones(3)}).values()
        np.testing.assert_array_equal(y, [-1, -2, -3])


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_distances_between_few_rows_keep_their_digits(p: float) -> None:
    class Distances(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.cdist(x, y, p)

    x, y = torch.randn(4, 6), torch.randn(5, 6)
    program = pn.load(Distances(), (x, y), [{0: "n"}, None]).build()
    near = 100 + y
    far = near[:4] + 0.01 * x
    (got,) = pn.Session(program, target="cpu").run({"x": far, "y": near}).values()
    np.testing.assert_allclose(got, torch.cdist(far, near, p).numpy(), rtol=1e-3, atol=1e-4)
