# ruff: noqa: UP006, UP007, UP045
# mypy: disable-error-code="no-any-return, no-untyped-call, assignment, operator, untyped-decorator, empty-body"
"""Modules for TorchScript, one for each row of its language reference (torchscript_language_test.py)."""

import enum
import math

# TorchScript reads annotations by these names.
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union  # noqa: UP035

import torch
from torch import Tensor, nn

jit: Any = torch.jit


# ----------------------------------------------------------------------------------------------- functions and classes


@jit.script
def clipped(x: Tensor, low: float = -0.5, high: float = 0.5) -> Tensor:
    return torch.clamp(x, low, high)


@jit.script
def factor(n: int) -> int:
    if n > 3:
        return n * 2
    return n + 1


@jit.script
class Pair:
    """A class of the script."""

    def __init__(self, first: Tensor, count: int) -> None:
        self.first = first
        self.count = count

    def grow(self, by: int) -> None:
        self.count += by

    def total(self) -> Tensor:
        return self.first * self.count


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Both(NamedTuple):
    a: Tensor
    b: Tensor


@jit.interface
class Shaped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


# ------------------------------------------------------------------------------------------------------------- modules


class Scalars(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a: int = 7
        b: float = 2.5
        c: bool = a > 3 and not (b < 1.0)
        n = a // 2 + a % 3 - (a**2) + int(b) + abs(-a) + min(a, 2) + max(1, a) + (a << 1) + (a & 3) + (a ^ 1) + (a | 8)
        f = a / 2 + float(n) + round(b) + b**2
        return x * n + f + (1 if c else 0)


class Lists(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        values: List[Tensor] = [x, x * 2]
        values.append(x * 3)
        values.insert(0, x - 1)
        values.extend([x + 1, x + 2])
        last = values.pop()
        values.reverse()
        values[0] = values[0] + last
        part = values[1:4:2]
        return torch.stack(values + part).sum(0) * len(values)


class IntLists(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n: List[int] = [3, 1, 2]
        n.sort()
        m = sorted([5, 4]) + n * 2
        m.remove(5)
        k = 0
        for i in m:
            k += i
        if 4 in m and 9 not in m:
            k += m.index(4) + m.count(1)
        n.clear()
        return x * k + len(n)


class Dicts(nn.Module):
    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        d: Dict[str, Tensor] = {"a": x, "b": x * 2}
        d["c"] = d["a"] + d["b"]
        if "b" in d:
            d["e"] = d.pop("b")
        for k, v in d.items():
            d[k] = v + len(k)
        keys = list(d.keys())
        total = torch.zeros_like(x)
        for v in d.values():
            total = total + v
        d["total"] = total * len(keys)
        got = d.get("none")
        if got is not None:
            d["a"] = got
        return d


class Tuples(nn.Module):
    def two(self, x: Tensor) -> Tuple[Tensor, int]:
        return x + 1, 3

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        a, n = self.two(x)
        t = (a, x, n)
        b = t[1:]
        (c, d), e = (t[0], t[1]), t[2]
        return c * e + b[0], d - n


class NamedTuples(nn.Module):
    def forward(self, x: Tensor) -> Both:
        made = Both(x.sum(1), x * 2)
        return Both(a=made.b, b=made.a)


class Optionals(nn.Module):
    def forward(self, x: Tensor, y: Optional[Tensor] = None, scale: Optional[float] = None) -> Tensor:
        if y is not None:
            x = x + y
        if scale is None:
            scale = 2.0
        return x * scale


class Unions(nn.Module):
    def pick(self, value: Union[int, float, Tensor]) -> float:
        if isinstance(value, int):
            return value * 2.0
        if isinstance(value, float):
            return value
        return 0.5

    def forward(self, x: Tensor) -> Tensor:
        return x * self.pick(3) + self.pick(1.5) + self.pick(x)


class Enums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.colour = Colour.BLUE

    def forward(self, x: Tensor) -> Tensor:
        if self.colour == Colour.RED:
            return x
        return x * self.colour.value


class Texts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mode = "Double,half"

    def forward(self, x: Tensor) -> Tensor:
        mode, other = self.mode.lower().split(",")
        text = f"{mode}-{other}" + "%d" % 3  # noqa: UP031
        if text.startswith("double") and len(text) > 3 and text[0] == "d" and other.upper() == "HALF":
            return x * 2 + text.find("half")
        return x


class TextPlaces(nn.Module):
    """Where torch is not Python: an end of -1 is the text's, and what is asked behind the end has answers."""

    def __init__(self) -> None:
        super().__init__()
        self.text = "bar,abc ba"

    def forward(self, x: Tensor) -> Tensor:
        t = self.text
        made = x
        if t.startswith("bar") and t.endswith("ba") and t.startswith(t) and not t.startswith("a", 2, 2):
            made = made * 2
        places = t.find("a", 5), t.rfind("ba"), t.rindex("ba"), t.index("ba", 2), t.find("ba", 0, -2), t.find("", 9, 3)
        return made + places[0] + places[1] * 3 + places[2] * 7 + places[3] * 11 + places[4] * 13 + t.count("a") * 17


class SlicedFrom(nn.Module):
    def forward(self, places: Tensor, x: Tensor) -> Tensor:
        return x[int(places[0]) :].sum(0)


class SlicedBetween(nn.Module):
    def forward(self, places: Tensor, x: Tensor) -> Tensor:
        return x[int(places[0]) : int(places[1])].sum(0)


class Narrowed(nn.Module):
    def forward(self, places: Tensor, x: Tensor) -> Tensor:
        return x.narrow(0, int(places[0]), 2)


class Asserted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 2, f"a matrix, not {x.dim()} dimensions"
        assert x.size(1) > 2
        if x.size(0) > 1000:
            raise ValueError("too many rows")
        return x * 2


class AssertedData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert bool(x.abs().max() < 100), "too large"
        return x * 2


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            y = torch.relu(x)
        elif x.mean() < -0.1:
            y = x - 1
        else:
            y = x * 3
        return y


class BranchNumbers(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        n, f, b = 1, 0.5, False
        if bool(x.sum() > 0):
            n = 4
            f = 2.5
            b = True
        if b and n > 2:
            x = x + f
        return x * n, n


class EarlyReturn(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * 2
        y = torch.tanh(x)
        if y.min() < -0.5:
            return y
        return x + y


class Ternary(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x if x.sum() > 0 else -x
        return a * (2.0 if x.dim() == 2 else 1.0)


class AndOr(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0) and bool(x.max() > 0.5) or bool(x.min() < -0.9):  # noqa: RUF021
            return x + 1
        if not bool(x.sum() > 0):
            return x - 1
        return x


class While(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        n = 0
        while bool(x.abs().sum() < 50):
            x = x * 1.5
            n += 1
        return x, n


class WhileBreak(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = 0
        while True:
            x = x * 2
            n += 1
            if bool(x.abs().max() > 10):
                break
            if n >= 8:
                break
        return x + n


class ForBreak(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x
        for i in range(6):
            if bool(y.sum() > 8):
                break
            if i == 2:
                continue
            y = y + x.abs()
        return y


class ForData(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for i in range(int(n)):
            y = y + x * i
        return y


class Nested(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(())
        for i in range(x.size(0)):
            if bool(x[i].sum() > 0):
                for j in range(3):
                    total = total + x[i, j]
            else:
                total = total - 1
        return total


class Recurrence(nn.Module):
    """Over a size that may be dynamic."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(4)
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(torch.cat([x[t], h])))
        return h


class Ranges(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = 0
        for i in range(2, 11, 3):
            n += i
        for i in range(5, 0, -2):
            n -= i
        for a, b in zip([1, 2, 3], [4, 5, 6]):  # noqa: B905
            n += a * b
        for i, v in enumerate([7, 8]):
            n += i * v
        squares = [i * i for i in range(4)]
        table = {i: i + 1 for i in range(3)}
        return x * (n + sum(squares) + table[2] + len([v * 2 for v in squares]))


class Slices(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x[:, 1:3]
        b = x[..., None][:, 0]
        c = x[-1]
        x = x.clone()
        x[0] = 0.5
        x[:, 1] += 1
        x[1:, 2:] = -1
        i = torch.tensor([1, 0])
        return a.sum() + b + c[0] + x[i].sum() + x[x > 0].sum()


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        y.add_(x).mul_(2)
        y[:, 0].fill_(1)
        y += 1
        return y


class InPlaceInBranch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        if bool(x.sum() > 0):
            y.mul_(2)
            y[0] = 1
        return y + 1


class ListInBranch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        values = [x, x]
        d = {"a": x}
        if bool(x.sum() > 0):
            values[0] = x * 2
            d["a"] = x + 5
        return values[0] + values[1] + d["a"]


class ListInLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        h = [torch.zeros(4), torch.ones(4)]
        while bool(h[0].sum() < 9):
            h[0] = h[0] + x.abs().sum(0)
            h[1] = h[1] * 2
        return h[0] - h[1]


class Stacked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        h = torch.zeros(4)
        for row in x:
            h = torch.tanh(h + row)
            outs.append(h)
        return torch.stack(outs)


class Functions(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return clipped(x, high=0.25) * factor(5) + factor(x.dim())


class Ignored(nn.Module):
    @torch.jit.unused
    def never(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    @torch.jit.export
    def other(self, x: Tensor) -> Tensor:
        return x * 4

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return self.never(x)
        return self.other(x)


class Objects(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pair = Pair(x, 2)
        pair.grow(3)
        for _ in range(2):
            pair.grow(1)
        return pair.total()


class ObjectInBranch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pair = Pair(x, 2)
        if bool(x.sum() > 0):
            pair.grow(3)
            pair.first = x * 2
        return pair.total()


class Submodules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"act": nn.ReLU(), "norm": nn.LayerNorm(4)})
        self.gain = nn.Parameter(torch.ones(4) * 1.5)
        self.steps: Dict[str, int] = {"a": 1, "b": 2}
        self.scale: int = 3

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x) * (i + 1)
        for name, module in self.named.items():
            x = module(x) + len(name)
        return x * self.gain * self.scale + self.steps["b"]


class Halved(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / 2


class Interfaces(nn.Module):
    chosen: Shaped

    def __init__(self) -> None:
        super().__init__()
        self.chosen = Halved()

    def forward(self, x: Tensor) -> Tensor:
        return self.chosen.forward(x)


class Forked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        waiting = [torch.jit.fork(clipped, x * i) for i in range(3)]
        own = torch.jit.fork(factor, 4)
        total = torch.zeros_like(x)
        for w in waiting:
            total = total + torch.jit.wait(w)
        return total * torch.jit.wait(own)


class DictInput(nn.Module):
    def forward(self, batch: Dict[str, Tensor], also: List[Tensor]) -> Tensor:
        total = batch["x"] * 2
        if "y" in batch:
            total = total + batch["y"]
        for a in also:
            total = total + a
        return total


class TupleInput(nn.Module):
    def forward(self, pair: Tuple[Tensor, Tensor], n: int) -> Tensor:
        a, b = pair
        return a * n + b


class Chunked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, 1)
        c, d = torch.split(x, 2, dim=1)
        return a * b + c - d + torch.cat(x.unbind(0)).sum()


class Creation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        b = torch.tensor([1, 2, 3])
        c = torch.zeros([2, 4], dtype=torch.float32) + torch.arange(4)
        d = torch.full([4], 2.0, dtype=x.dtype, device=x.device)
        return x + a.sum() + b.sum() + c[0] + d + x.new_ones([4])


class Casts(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x.to(torch.int32).float() + (x > 0).int() + x.half().to(x.dtype) + x.double().to(torch.float32)
        if x.dtype == torch.float32 and x.is_floating_point():
            a = a + 1
        return a


class ItemMath(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = int(x.abs().sum() * 4)
        f = float(x.max())
        m = x.argmax().item()
        return x * (n % 5) + f * 2 + m


class Shapes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n, c = x.shape
        y = x.view(n * c).reshape(x.size(1), -1)
        if len(x.shape) == 2 and x.numel() >= c:
            y = y.t()
        return y.expand(2, -1, -1).permute(1, 0, 2) * (c // 2)


class ShapeBranch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) > 4:
            return x * 2
        return x + 1


class SizeOne(nn.Module):
    """torch.export takes it for known that a dynamic size is not 1."""

    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) == 1:
            return x * 5
        return x * 2 if x.size(0) > 1 else x


class Math(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        f = math.sqrt(2.0) + math.floor(2.5) + math.ceil(1.2) + math.exp(0.5) + math.log(3.0) + math.sin(1.0) + math.pi
        return x * f


class IndexData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        rows = [x[0], x[1], x[0] + x[1]]
        return rows[int(x.argmax()) % 3]


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.register_buffer("seen", torch.zeros(4))
        self.last = torch.zeros(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.seen += x.sum(0)
        y = x + self.last * self.count + self.seen
        self.last = x * 2
        return y


class FirstCall(nn.Module):
    """Makes its state in the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.h = torch.zeros(0)
        self.ready = False

    def forward(self, x: Tensor) -> Tensor:
        if not self.ready:
            self.h = torch.zeros(x.size(0), x.size(1))
            self.ready = True
        self.h = torch.tanh(self.h + x)
        return self.h


class StateInBranch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            self.total = self.total + x.sum(0)
        return x + self.total


class Loops(nn.Module):
    """A loop in a branch in a loop."""

    def forward(self, x: Tensor) -> Tensor:
        n = 0
        while n < 20 and bool(x.abs().sum() < 40):
            if bool(x.sum() > 0):
                k = 0
                while bool(x.abs().max() < 2) and k < 3:
                    x = x * 1.3
                    k += 1
                n += k
            else:
                x = x + 0.5
            n += 1
        return x + n


class Uninitialised(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for i in range(4):
            if bool(x.sum() > 3):
                return x * i
            x = x + 0.5
        return x


class ListsOfLists(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        table: List[List[Tensor]] = [[x], [x * 2, x * 3]]
        table[0].append(x - 1)
        total = torch.zeros_like(x)
        for row in table:
            for v in row:
                total = total + v
        pairs: List[Tuple[int, str]] = [(1, "a"), (2, "bb")]
        for n, name in pairs:
            total = total * n + len(name)
        return total


class DictOfLists(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        d: Dict[str, List[Tensor]] = {}
        for name in ["a", "b", "a"]:
            if name not in d:
                d[name] = []
            d[name].append(x + len(d))
        del d["b"]
        d.update({"c": [x]})
        copy = d.copy()
        copy.clear()
        return d["a"][1] + d["c"][0] + len(d) + len(copy)


class Methods(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.gain = 2.0

    @property
    def doubled(self) -> float:
        return self.gain * 2

    def scaled(self, x: Tensor, by: float = 1.5, offset: int = 1) -> Tensor:
        return x * by + offset

    def forward(self, x: Tensor) -> Tensor:
        return self.scaled(self.linear(x), offset=3) + self.scaled(x, self.doubled)


class Operators(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = (x @ x.t()) // 0.3 % 2 - x.sum() ** 2
        m = (x > -0.5) & ~(x > 0.5) | (x == 0)
        n = 3
        if 1 < n <= 3:
            y = -y + n
        return torch.where(m, x, x * 2) + y.sum() + (x != x).sum()


class NoGrad(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x * 2
        print("shown", y.size(0))
        return y.detach() + x


class Deleted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = [1, 2, 3]
        del n[0]
        a, b = n
        first, (second, third) = a, (b, x)
        return third * first + second


class Annotated(nn.Module):
    limit: Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.limit = 3
        self.names = ["a", "b"]

    def forward(self, x: Tensor) -> Tensor:
        found = torch.jit.annotate(Optional[Tensor], None)
        for i in range(self.limit):
            if i == 2:
                found = x * i
        assert found is not None
        return found + len(self.names)


class ToList(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        numbers: List[List[float]] = x.tolist()
        return x + numbers[0][1] * numbers[1][2]


class SizeLoop(nn.Module):
    """A while over a dynamic size."""

    def forward(self, x: Tensor) -> Tensor:
        i = 0
        total = torch.zeros(4)
        while i < x.size(0):
            total = total * 0.5 + x[i]
            i += 2
        return total


class Complex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        z = torch.complex(x, x * 2)
        w = z * complex(0.5, 1.0)
        return w.real + torch.view_as_real(z).sum(-1)


class Passed(nn.Module):
    """Numbers that depend on data, through functions, tuples and lists."""

    def count(self, x: Tensor) -> Tuple[int, List[int]]:
        n = int((x > 0).sum())
        return n, [n + 1, 2]

    def forward(self, x: Tensor) -> Tensor:
        n, more = self.count(x)
        if n > 3 and more[0] < 7:
            return x * n
        return x + more[0] - more[1]


class OldDivision(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.div(x, y)
