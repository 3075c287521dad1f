# ruff: noqa: UP006
"""TorchScript whose lists grow in loops over a dynamic size: rows of a tensor, or a refusal that says why not."""

from collections.abc import Callable

# TorchScript reads annotations by these names.
from typing import Any, List, Tuple  # noqa: UP035

import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from pinnace.torchscript import loops
from slices import rotating_slice
from torch import Tensor, nn

# mypy: disable-error-code="no-untyped-call"
jit: Any = torch.jit
pytestmark = pytest.mark.filterwarnings("ignore")


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


class Appended(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        h = torch.zeros(2, 4)
        for i in range(x.size(0)):
            h = torch.tanh(h + x[i])
            outs.append(h)
        return torch.stack(outs)


class Cell(nn.Module):
    """As the recurrent layers of PyTorch's own examples."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.hidden = nn.Linear(4, 16), nn.Linear(4, 16)

    def step(self, x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        h, c = state
        i, f, g, o = (self.own(x) + self.hidden(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        inputs = x.unbind(0)
        outputs = torch.jit.annotate(List[Tensor], [])
        state = (torch.zeros(2, 4), torch.zeros(2, 4))
        for i in range(len(inputs)):
            out, state = self.step(inputs[i], state)
            outputs += [out]
        return torch.stack(outputs), state


class Backwards(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        out: List[Tensor] = []
        turned: List[Tensor] = []
        h = torch.zeros(2, 4)
        for i in range(x.size(0) - 1, -1, -1):
            h = h * 0.5 + x[i]
            out.insert(0, h)
            turned.append(h * 2)
        turned.reverse()
        return torch.stack(out, 1), torch.cat(turned, 1)


class InBranches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        for row in x:
            if bool(row.sum() > 0):
                outs.append(row * 2)
            else:
                outs.append(row)
        return torch.stack(outs, -1)


class AfterOthers(nn.Module):
    """There are elements before, two come in each iteration, and others come after it."""

    def forward(self, x: Tensor) -> Tensor:
        outs = [torch.ones(2, 4)]
        for i in range(x.size(0)):
            outs.append(x[i])
            outs.append(x[i] * i)
        outs.append(x[0] * 7)
        for i in range(x.size(0)):
            outs.append(x[i] - 1)
        return torch.cat(outs, 0) * len(outs)


class ReadAfterwards(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs = [x[0] * 0.5]
        for i in range(1, x.size(0)):
            outs.append(outs_of(x, i))
        total = torch.zeros(2, 4)
        for i, v in enumerate(outs):
            total = total * 0.9 + v * i
        return total + outs[0] + outs[-1] * 3


@jit.script  # type: ignore[untyped-decorator]
def outs_of(x: Tensor, i: int) -> Tensor:
    return x[i] * x[i - 1]


class OfNumbers(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        places: List[int] = []
        sums = [0.5]
        for row in x:
            places.append(int(row.argmax()))
            sums.append(float(row.sum()))
        best = 0
        for n in places:
            if n > best:
                best = n
        return torch.tensor(places), torch.tensor(sums), x * best


class Ring(nn.Module):
    """Not longer, but of other elements."""

    def forward(self, x: Tensor) -> Tensor:
        held = [torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(2, 4)]
        total = torch.zeros(2, 4)
        for i in range(x.size(0)):
            held.append(x[i])
            total = total + held.pop(0)
        return total + torch.stack(held).sum(0) * 2


class WithinEach(nn.Module):
    """A list of each iteration's own, in a list of all."""

    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        for row in x:
            parts: List[Tensor] = []
            for part in row:
                parts.append(torch.relu(part))
            outs.append(torch.stack(parts).sum(0))
        return torch.stack(outs)


class MoreThanUnrolled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        h = torch.zeros(())
        for i in range(20):
            h = torch.sin(h + x[0, 0, 0] * i)
            outs.append(h)
        return torch.stack(outs)


class WrittenElement(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        for row in x:
            outs.append(row * 2)
        outs[0].add_(1)
        return torch.stack(outs)


MODULES = [
    Appended,
    Cell,
    Backwards,
    InBranches,
    AfterOthers,
    ReadAfterwards,
    OfNumbers,
    Ring,
    WithinEach,
    WrittenElement,
]


@pytest.mark.parametrize("make", rotating_slice(MODULES, 1 / 3))
def test_lists_that_grow_over_a_dynamic_size(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    script = jit.script(make().eval())
    session = pn.Session(pn.load(script, (seeded(3, 2, 4),), {0: pn.Dim("time", 1, 64)}).build(), target="cpu")
    for size in (1, 2, 3, 9):
        x = seeded(size, 2, 4, seed=size)
        got = list(session.run({"x": x.numpy()}).values())
        want = [v.detach().numpy() for v in torch.utils._pytree.tree_leaves(script(x))]
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            assert_agree(a, b)


class UntilData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        for row in x:
            if bool(row.sum() > 3):
                break
            outs.append(row)
        return torch.stack(outs)


class Sometimes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs = [x[0]]
        for row in x:
            if bool(row.sum() > 0):
                outs.append(row)
        return torch.stack(outs)


class Returned(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        outs: List[Tensor] = []
        for row in x:
            outs.append(row * 2)
        return outs


class ReadWithin(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs = [x[0]]
        for row in x:
            outs.append(outs[-1] * 0.5 + row)
        return torch.stack(outs)


class WrittenLater(nn.Module):
    """The next iteration writes into what the list holds."""

    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        h = torch.zeros(2, 4)
        for row in x:
            h.add_(row)
            outs.append(h)
        return torch.stack(outs)


class WrittenAfterwards(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        h = torch.zeros(2, 4)
        for row in x:
            h = h + row
            outs.append(h)
        h.add_(1)
        return torch.stack(outs)


class Sliced(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        for row in x:
            outs.append(row * 2)
        return torch.stack(outs[1:])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (UntilData, "a list of 0 on one side, a list of 1 on the other"),
        (Sometimes, "a list of 2 on one side, a list of 1 on the other"),
        (Returned, r"return torch\.stack\(\) of the list"),
        (ReadWithin, "reads a list to which a loop over a dynamic size adds"),
        (WrittenLater, "writes into a tensor that it has put into a list"),
        (WrittenAfterwards, "changed under one name"),
        (Sliced, r"aten::slice .*torchscript_lists_test\.py:\d+"),
    ],
)
def test_what_no_program_has_is_refused(make: Callable[[], nn.Module], words: str) -> None:
    with pytest.raises(pn.ConversionError, match=words):
        pn.load(jit.script(make().eval()), (seeded(3, 2, 4),), {0: pn.Dim("time", 1, 64)})


class AsOftenAsDataSay(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        outs = [x]
        count = int(n)
        for i in range(count):
            outs.append(x * i)
        made = torch.stack(outs).sum(0)
        return made + 100 if count > 0 else made


def test_a_list_that_grows_as_often_as_data_say() -> None:
    script = jit.script(AsOftenAsDataSay().eval())
    session = pn.Session(pn.load(script, (seeded(3, 4), torch.tensor(2))).build(), target="cpu")
    for count in (0, 1, 5):
        x, n = seeded(3, 4, seed=count), torch.tensor(count)
        assert_agree(next(iter(session.run({"x": x.numpy(), "n": n.numpy()}).values())), script(x, n).numpy())


def test_a_list_of_more_iterations_than_are_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_UNROLLED", 8)
    script = jit.script(MoreThanUnrolled().eval())
    x = seeded(3, 2, 4) * 0.01
    session = pn.Session(pn.load(script, (x,)).build(), target="cpu")
    assert_agree(next(iter(session.run({"x": x.numpy()}).values())), script(x).numpy())
