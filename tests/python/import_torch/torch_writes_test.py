"""Writes into views of PyTorch models: through views that repeat elements, and views made of lists of tensors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import Tensor, nn
from torch_modules import Of


def expand_row(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y.expand(2, 4)[0].masked_fill_(m, 0.0)
    return y


def broadcast_row(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y[:1].broadcast_to(2, 3, 1)[0, 1].masked_fill_(m[:1], 7.0)
    return y


def window(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y.unfold(0, 3, 1)[1].masked_fill_(m[:3], 5.0)
    return y, -y


def window_views_are_seen(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    wide = y.unfold(0, 3, 1)
    wide[1].masked_fill_(m[:3], 5.0)
    return y, wide, wide[0]


def middle_axis(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    v = y[:, None].expand(-1, 3)[:, 0]
    v.mul_(2)
    v.masked_fill_(m, 1.0)
    return y, v


def below_a_slice(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x + 1])
    y[1].expand(3, 4)[2][1:].masked_fill_(m[1:], -1.0)
    return y


def fill_all_windows(x: Tensor, m: Tensor) -> Any:
    y = torch.where(m, x, x + 1)
    y[1:].unfold(0, 2, 1).fill_(3.0)
    return y


def strided_rows(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y.as_strided((3, 2), (1, 1))[1].masked_fill_(m[:2], 9.0)
    return y


def diagonal_part(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x * 2, x * 3])
    y.diagonal(1)[1:].masked_fill_(m[:2], 4.0)
    return y


def einsum_turned(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x * 2])
    v = torch.einsum("ij->ji", y)
    v.masked_fill_(m[:, None], 0.0)
    return y, v


def einsum_summed(x: Tensor, m: Tensor) -> Any:
    y = torch.stack([x, x * 2])
    torch.einsum("ij->j", y).masked_fill_(m, 0.0)
    return y


def broadcast_pair(x: Tensor, m: Tensor) -> Any:
    y, z = x.clone(), x[:, None] + 1
    a, b = torch.broadcast_tensors(y, z)  # type: ignore[no-untyped-call]
    a[0].masked_fill_(m, 0.0)
    return y, z, a, b


def grid(x: Tensor, m: Tensor) -> Any:
    y, z = x.clone(), x[:2] + 1
    a, b = torch.meshgrid(y, z, indexing="xy")
    a[0].masked_fill_(m, 0.0)
    return y, z, a, b


FORMS = [
    expand_row, broadcast_row, window, window_views_are_seen, middle_axis, below_a_slice, fill_all_windows,
    strided_rows, diagonal_part, einsum_turned, einsum_summed, broadcast_pair, grid,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_writes_are_seen(form: Callable[[Tensor, Tensor], Any]) -> None:
    """The example has nothing to write: only other values show what is lost."""
    module = Of(form)
    x, none = torch.randn(4), torch.zeros(4, dtype=torch.bool)
    session = pn.Session(pn.load(module, (x, none)).build())
    for mask in (none, ~none, torch.tensor([True, False, False, True])):
        x = torch.randn(4)
        want = module(x, mask)
        got = session.run(dict(zip(session.inputs, (x, mask), strict=True))).values()
        for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_array_equal(g, w.numpy())


def added_windows(x: Tensor) -> Tensor:
    y = x.clone()
    y.unfold(0, 3, 1).add_(1)
    return y


def doubled_rows(x: Tensor) -> Tensor:
    y = x.clone()
    y.as_strided((3, 2), (1, 1)).mul_(2)
    return y


@pytest.mark.parametrize("form", [added_windows, doubled_rows], ids=lambda f: f.__name__)
def test_overlapping_views_themselves_are_refused(form: Callable[[Tensor], Tensor]) -> None:
    """What torch computes here depends on the order in which it takes the elements."""
    with pytest.raises(pn.ConversionError, match=r"elements of the view lie on one another: aten.(unfold|as_strided)"):
        pn.load(Of(form), (torch.randn(4),)).build()


def test_writes_through_diagonals_of_dynamic_size_say_why_not() -> None:
    class Shifted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x.clone()
            y.diagonal(0, 1, 2).add_(1)
            return y

    with pytest.raises(pn.ConversionError, match=r"of dynamic size may lie on one another: aten\.diagonal"):
        pn.load(Shifted(), (torch.randn(2, 5, 6),), [{1: pn.Dim("rows", 2, 9)}])


# ---- which of a module's tensors are written to

SHARING = Path(__file__).resolve().parents[3] / "cpp/import/torch/sharing.cc"


class Embedded(nn.Module):
    """Writes into what an embedding gives, which is a copy; the head has the embedding's weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 50, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, i: Tensor) -> Any:
        return self.head(self.tokens(i).relu_().mul_(2))


def test_what_an_operator_computes_is_no_view_of_its_weights() -> None:
    program = pn.load(Embedded().eval(), (torch.tensor([3, 1, 4, 1]),)).build()
    assert not program.states


def two_empty_tensors(x: Tensor) -> Any:
    a, b = torch.empty(4), torch.empty(4)
    a.copy_(x)
    b.fill_(2.0).add_(x)
    return a * b


def computed_weights(x: Tensor) -> Any:
    return torch.ones(4).mul(3).add_(x).clamp_(min=0.5)


@pytest.mark.parametrize("form", [two_empty_tensors, computed_weights], ids=lambda f: f.__name__)
def test_new_tensors_are_no_state(form: Callable[[Tensor], Any]) -> None:
    assert not pn.load(Of(form).eval(), (torch.tensor([1.0, -2.0, 3.0, 0.5]),)).build().states


class Kept(nn.Module):
    """A buffer that is written to through what `view` makes of it."""

    def __init__(self, view: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(2, 4))
        self.view = view

    def forward(self, x: Tensor) -> Any:
        kept: Any = self.kept
        self.view(kept).add_(x)
        return kept * 2


FUNCTIONS: Any = torch
VIEWS: dict[str, Callable[[Any], Tensor]] = {
    "itself": lambda t: t,
    "view": lambda t: t.view(2, 2, 2).reshape(2, 4),
    "part of a split": lambda t: t.split(1)[1],
    "last of unbind": lambda t: t.unbind(0)[-1],
    "dropout of a model that is not trained": lambda t: nn.functional.dropout(t, 0.5, False),
    "at least two axes": lambda t: FUNCTIONS.atleast_2d(t),
    "of a list": lambda t: FUNCTIONS.broadcast_tensors(t, torch.ones(4))[0],
    "the same type": lambda t: t.to(torch.float32).type_as(t).contiguous(),
    "einsum of one": lambda t: torch.einsum("ij->ji", t).t(),
}


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_written_to_through_views_is_state(view: str) -> None:
    program = pn.load(Kept(VIEWS[view]).eval(), (torch.tensor([1.0, 2.0, 3.0, 4.0]),)).build()
    assert list(program.states) == ["kept"]
    session = pn.Session(program)
    live = Kept(VIEWS[view]).eval()
    for value in (1.0, 3.0):
        x = torch.full((4,), value)
        np.testing.assert_array_equal(next(iter(session.run({"x": x}).values())), live(x).numpy())


def test_views_are_those_of_the_schemas() -> None:
    """Every operator that PyTorch marks as giving a view, if it has a mapping here, is on the list."""
    listed = set(re.findall(r'"(aten\.\w+)"', SHARING.read_text()))
    mapped = set(re.findall(r'\{"(aten\.\w+)", map_', "".join(p.read_text() for p in SHARING.parent.rglob("*.cc"))))
    assert len(mapped) > 400
    marked = set()
    for schema in torch._C._jit_get_all_schemas():
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
        shares = any(r.alias_info is not None for r in schema.returns)
        if shares and not writes and schema.name.startswith("aten::"):
            marked.add("aten." + schema.name.removeprefix("aten::"))
    assert {"aten.view", "aten.split", "aten.to"} <= marked
    assert marked & mapped <= listed
