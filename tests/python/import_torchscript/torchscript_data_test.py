# ruff: noqa: UP006
"""TorchScript in which data decide: which of two names a tensor has, what a number is, what a later call computes.

Either the program gives what the module gives on data that the example does not have, or load() says what it cannot do.
"""

import enum
import math
from collections.abc import Callable

# TorchScript reads annotations by these names.
from typing import Any, Dict, List, Tuple  # noqa: UP035

import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from torch import Tensor, nn

# mypy: disable-error-code="no-untyped-call"
jit: Any = torch.jit
pytestmark = pytest.mark.filterwarnings("ignore")


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def check(script: Any, session: pn.Session, x: Tensor) -> None:
    (name,) = session.inputs
    got = list(session.run({name: x}).values())
    want = [v for v in torch.utils._pytree.tree_leaves(script(x)) if isinstance(v, Tensor)]
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.detach().numpy().dtype
        assert_agree(a, b.detach().numpy())


# ------------------------------------------------------------------------------------------------------ two names


class WrittenUnderNewName(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x.clone()
        b = x * 2
        y = a if bool(x.sum() > 0) else b
        if bool(x.abs().max() > 3):
            y.add_(1)
        return a + b


class WrittenUnderOldName(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x.clone()
        y = a if bool(x.sum() > 0) else x * 2
        if bool(x.abs().max() > 3):
            a.add_(1)
        return y


class ViewsOfOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x.clone()
        v = a[0] if bool(x.sum() > 0) else a[1]
        v.add_(10)
        return a


class ListOfTwoNames(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = [x]
        b = [x * 2]
        c = a if bool(x.sum() > 0) else b
        a[0] = x * 7
        return c[0]


class StartOfLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        a = y
        while bool(a.abs().sum() < 2):
            a.add_(1)
            a = a * 2
        return y + a


class CarriedTwice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x.clone()
        b = x * 2
        while bool(b.abs().sum() < 60):
            a.add_(0.5)
            a = b
            b = b * 1.7
        return a + b


class WrittenInBranch(nn.Module):
    """Chosen and written within a branch, read after it."""

    def forward(self, x: Tensor) -> Tensor:
        a = x + 1
        b = x * 2
        y = a
        if bool(x.max() > 3):
            if bool(x.sum() > 0):
                y = b
            y.add_(100)
        return a + b


class LengthOfText(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * len(str(int(x.abs().sum())))


class LengthOfSizeText(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * len(f"{x.size(0)}")


class OrderOfKeys(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        d: Dict[str, Tensor] = {}
        if bool(x.sum() > 0):
            d["a"] = x
            d["b"] = x * 2
        else:
            d["b"] = x
            d["a"] = x * 2
        return list(d.values())[0]  # noqa: RUF015


class Removed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        numbers = [int(x[0, 0] * 2), 0, 1]
        numbers.remove(0)
        return x * numbers[0]


class Place(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * [int(x[0, 0] * 2), 0, 1].index(0)


class Kind(enum.Enum):
    ONE = 1


class SameKind(nn.Module):
    """TorchScript says no."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = Kind.ONE

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if self.kind is Kind.ONE else x


class CallsPython(nn.Module):
    @jit.ignore  # type: ignore[untyped-decorator]
    def outside(self, x: Tensor) -> Tensor:
        return x * 7

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.outside(x)
        return made + 1


class OverlappingBuffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.whole: Tensor
        self.part: Tensor
        self.register_buffer("whole", torch.zeros(4))
        self.register_buffer("part", self.whole[:2])

    def forward(self, x: Tensor) -> Tensor:
        self.part += x[0, :2]
        return x + self.whole


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (WrittenUnderNewName, "a tensor .* second name, .* read under the other"),
        (WrittenUnderOldName, "a tensor .* second name, .* read under the other"),
        (ViewsOfOne, "a tensor .* second name, .* read under the other"),
        (ListOfTwoNames, "a list, dict or object .* second name, .* read under the other"),
        (StartOfLoop, "a tensor .* second name, .* read under the other"),
        (CarriedTwice, "writes into a tensor that it carries or reads under another name"),
        (WrittenInBranch, "a tensor .* second name, .* read under the other"),
        (LengthOfText, "aten::len of a text .* depend on data"),
        (LengthOfSizeText, "aten::len of a text .* dynamic size"),
        (OrderOfKeys, r"a dict with \['a', 'b'\] on one side, a dict with \['b', 'a'\]"),
        (Removed, r"remove\(\) of a list .* depend on data .*torchscript_data_test\.py:\d+"),
        (Place, r"index\(\) of a list .* depend on data .*torchscript_data_test\.py:\d+"),
        (SameKind, r"`is` of enums.*compare with == \(.*torchscript_data_test\.py:\d+"),
        (CallsPython, r"Python's 'outside', left in TorchScript by torch\.jit\.ignore \(.*torchscript_data_test"),
        (OverlappingBuffers, "'part' is written to and shares memory with 'whole'"),
    ],
)
def test_what_would_give_other_numbers_is_refused(make: Callable[[], nn.Module], words: str) -> None:
    dims = {0: pn.Dim("n", 1, 64)} if make is LengthOfSizeText else None
    with pytest.raises(pn.Error, match=words):
        pn.load(jit.script(make().eval()), (seeded(2, 4, seed=1),), dims)


class WrittenCopies(nn.Module):
    """What is written into has one name."""

    def forward(self, x: Tensor) -> Tensor:
        y = x + 1 if bool(x.sum() > 0) else x
        y = y.clone()
        y[0] = 5.0
        z = x * 2
        pair = (y, z) if bool(x.sum() > 0) else (z, y)  # of tensors from outside
        y = pair[0] - pair[1]
        i = 0
        while i < 3 and bool(z.abs().sum() < 20):
            z = z * 1.5
            y.add_(z)
            i += 1
        return y + x


# --------------------------------------------------------------------------------------------------------- numbers


class Pair:
    def __init__(self, n: int) -> None:
        self.n = n


class Numbers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair = jit.script(Pair)(3)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, float, bool]:
        t = (x * 4).sum().to(torch.int64)
        n = int(t)
        t.add_(5)  # n is what it was
        rows = [int(v.sum()) for v in x]
        f = float(x.abs().sum()) + 0.1
        flag = bool(x.sum() > 0)
        if rows == [0, 0]:
            f = f + 1
        same = flag == bool(x.max() > 0.7)
        m = sum(rows) + max(rows) + int(flag) * 2 + self.pair.n
        g = math.sqrt(f) + math.exp(-f) + f // 0.3 + f % 0.3 + round(f * 10) + math.floor(f) + math.ceil(-f)
        d = {"a": 1, "b": 2}
        _, value = d.popitem()  # the first
        ones = [1, 2]
        ones *= 3
        y = x * n + t + m + g + value + len(ones)
        return y if same else -y, torch.tensor([1, 2]) * (2**3), f, flag


class NumbersInLists(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        ints = [int(x[0, 0] * 2), 0, int(x[0, 1] * 2), 1]
        floats = [float(x[0, 2]), 0.25, float(x[0, 3])]
        floats.sort()
        ordered = sorted(ints)
        return x * (ints.count(0) * 10 + ints.count(1)) + ordered[0] * 100 + ordered[3], torch.tensor(floats)


class MathOfNumbers(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        f = float(x.abs().sum()) + 0.1
        n = int(f * 3)
        g = math.fmod(-f, 0.7) + math.atan2(f, -2.0) + math.copysign(2.0, -f) + math.degrees(f) + f // 0.1 + -f // 0.3
        h = (n & 3) + (n | 4) * 2 + (n ^ 5) * 3 + (n << 2) + (n >> 1) + math.gcd(n, 6) + -n // 3 + -n % 5
        return x * h + g


class StepsBack(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        t = torch.zeros(4)
        for i in range(x.size(0) - 1, -1, -2):
            t = t * 0.5 + x[i]
        return t


@pytest.mark.parametrize("make", [WrittenCopies, Numbers, NumbersInLists, MathOfNumbers])
def test_numbers_are_those_of_the_data(make: Callable[[], nn.Module]) -> None:
    script = jit.script(make().eval())
    session = pn.Session(pn.load(script, (seeded(2, 4),)).build(), target="cpu")
    for seed in range(1, 7):
        check(script, session, seeded(2, 4, seed=seed) * (1.0, 5.0, 0.1)[seed % 3])


class Halved(nn.Module):
    """Its trace divides a negative size towards zero."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.div(x.size(0) - 10, 2, rounding_mode="trunc")


def test_sizes_that_a_trace_divides_towards_zero() -> None:
    script = jit.trace(Halved(), seeded(3, 4))
    session = pn.Session(pn.load(script, (seeded(3, 4),), {0: pn.Dim("n", 1, 64)}).build(), target="cpu")
    for size in (1, 2, 7, 10, 13):
        check(script, session, seeded(size, 4, seed=size))
    check(script, pn.Session(pn.load(script, (seeded(3, 4),)).build(), target="cpu"), seeded(3, 4, seed=1))


def test_sums_of_several_sizes() -> None:
    script = jit.script(StepsBack().eval())
    session = pn.Session(pn.load(script, (seeded(3, 4),), {0: pn.Dim("n", 1, 64)}).build(), target="cpu")
    for size in (1, 2, 7):
        check(script, session, seeded(size, 4, seed=size))


# ---------------------------------------------------------------------------------------------------------- state


class FromFifthCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.count < 5:
            self.count += 1
            return x
        return x * 2


class EveryFourthCall(nn.Module):
    """An attribute that the first calls do not change, and a delay of more calls than are tried."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.held = torch.zeros(2, 4)
        self.a, self.b, self.c = torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        if self.count % 4 == 3:
            self.held = x
        self.count += 1
        y = x + self.held + self.c * 2
        self.c = self.b
        self.b = self.a
        self.a = x
        return y


class FlagInBranch(nn.Module):
    """A branch that changes one of two attributes: the other goes through it unread."""

    def __init__(self) -> None:
        super().__init__()
        self.first = True
        self.h = torch.zeros(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        if self.first:
            self.h = torch.ones_like(x)
            self.first = False
        self.h = self.h * 0.9 + x
        return self.h


class ResetBySize(nn.Module):
    """The first calls, all of one size, leave the same number."""

    def __init__(self) -> None:
        super().__init__()
        self.last = 0
        self.h = torch.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) != self.last:
            self.h = torch.zeros(4)
            self.last = x.size(0)
        self.h = self.h + x.sum(0)
        return x + self.h


@pytest.mark.parametrize("make", [FromFifthCall, EveryFourthCall, FlagInBranch, ResetBySize])
def test_state_that_later_calls_show(make: Callable[[], nn.Module]) -> None:
    script = jit.script(make().eval())
    dims = {0: pn.Dim("n", 1, 8)} if make is ResetBySize else None
    session = pn.Session(pn.load(script, (seeded(2, 4),), dims).build(), target="cpu")
    for call in range(9):
        check(script, session, seeded(2 + (call // 4 if dims else 0), 4, seed=call))


class LateWord(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.names: List[int] = [0]

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        if self.count == 5:
            self.names = [7]
        return x * self.names[0]


def test_state_that_no_session_has_is_refused_though_the_first_calls_leave_it() -> None:
    with pytest.raises(pn.ConversionError, match=r"state between calls in 'names' \(list.*not every call changes"):
        pn.load(jit.script(LateWord().eval()), (seeded(2, 4),))


# ----------------------------------------------------------------------------------------------------------- modules


class Asserted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert bool(x.abs().max() < 100), "too large"
        return x * 2


def test_exceptions_that_are_left_out_are_noted() -> None:
    notes = pn.load(jit.script(Asserted().eval()), (seeded(2, 4),)).notes
    assert any("exceptions that depend on data are left out" in n and "torchscript_data_test.py" in n for n in notes)


def test_hooks_of_the_module_itself_are_refused() -> None:
    def before(self: Any, given: Tuple[Tensor]) -> Tuple[Tensor]:
        return (given[0] + 10,)

    module = nn.Sequential(nn.ReLU())
    module.register_forward_pre_hook(before)
    with pytest.raises(pn.Unsupported, match="hooks of the module that is loaded"):
        pn.load(jit.script(module), (seeded(2, 4),))


def test_modules_that_torch_has_laid_out_for_its_libraries_are_refused() -> None:
    """torch ends the process where such tensors meet those of an export."""
    script = jit.optimize_for_inference(jit.script(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()))
    with pytest.raises(pn.Unsupported, match="mkldnn: load the module as it was before"):
        pn.load(script, (seeded(2, 3, 8, 8),))
