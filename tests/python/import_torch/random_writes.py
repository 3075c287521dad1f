"""Random modules of views, copies and writes into either: what a converter that loses track of memory gets wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Step = tuple[str, int, Any]  # what is done, to which of the tensors so far, and with what


def _sliced(t: torch.Tensor, how: tuple[int, int, int, int]) -> torch.Tensor:
    dim, start, end, step = how
    return t[(slice(None),) * dim + (slice(start, end, step),)]


# Give another tensor, which may be a view.
VIEWS: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "slice": _sliced,
    "select": lambda t, how: t.select(*how),
    "transpose": lambda t, how: t.transpose(*how),
    "permute": lambda t, how: t.permute(how),
    "unsqueeze": lambda t, how: t.unsqueeze(how),
    "squeeze": lambda t, how: t.squeeze(how),
    "diagonal": lambda t, how: t.diagonal(0, *how),
    "chunk": lambda t, how: t.chunk(2, how[0])[how[1]],
    "unbind": lambda t, how: t.unbind(how[0])[how[1]],
    "split": lambda t, how: torch.split(t, how[1], how[0])[-1],
    "unfold": lambda t, how: t.unfold(*how),
    "expand": lambda t, how: t.unsqueeze(0).expand(2, *t.shape),
    "view": lambda t, how: t.view(-1),
    "reshape": lambda t, how: t.reshape(-1),  # a view where that can be
    "flatten": lambda t, how: t.flatten(how),
    "contiguous": lambda t, how: t.contiguous(),  # itself where it is
    "detach": lambda t, how: t.detach(),
    "to": lambda t, how: t.to(torch.float32),  # itself
    "view_as": lambda t, how: t.view_as(t),
    "movedim": lambda t, how: t.movedim(*how),
    "swapaxes": lambda t, how: t.swapaxes(*how),
    "narrow": lambda t, how: t.narrow(how[0], how[1], 1),
}
COPIES: dict[str, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    "clone": lambda t, how: t.clone(),
    "relu": lambda t, how: torch.relu(t),
    "affine": lambda t, how: t * 0.5 + how,
    "sum": lambda t, how: t.sum(how, keepdim=True),
    "flip": lambda t, how: t.flip(how),
    "gather": lambda t, how: t.index_select(how, torch.zeros(2, dtype=torch.int64)),
    "cat": lambda t, how: torch.cat([t, t], how),
}


def _set_last(t: torch.Tensor, how: float) -> None:
    t[..., -1] = how


def _index_put(t: torch.Tensor, how: float) -> None:
    t.index_put_((torch.tensor([0]),), torch.full((1, *t.shape[1:]), how))


WRITES: dict[str, Callable[[torch.Tensor, Any], Any]] = {
    "add_": lambda t, how: t.add_(how),
    "mul_": lambda t, how: t.mul_(how),
    "relu_": lambda t, how: t.relu_(),
    "zero_": lambda t, how: t.zero_(),
    "fill_": lambda t, how: t.fill_(how),
    "masked_fill_": lambda t, how: t.masked_fill_(t > how, how),
    "clamp_": lambda t, how: t.clamp_(-how, how),
    "copy_ of itself": lambda t, how: t.copy_(t.flip(0)),
    "index_put_": _index_put,
    "set item": _set_last,
    "iadd item": lambda t, how: t[0].add_(how),
}
# Of two tensors; all but "sub" write into the first.
PAIRS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add_ of": lambda t, u: t.add_(u),
    "copy_ of": lambda t, u: t.copy_(u),
    "mul_ of": lambda t, u: t.mul_(u),
    "sub": lambda t, u: t - u,
}


class RandomModule(nn.Module):
    """Does the steps to a list of tensors that begins with a copy of the input, the input, a parameter and the buffers,
    and gives some of them."""

    def __init__(self, steps: list[Step], given: list[int], buffers: list[torch.Tensor]) -> None:
        super().__init__()
        self.steps, self.given = steps, given
        self.weight = nn.Parameter(torch.linspace(-1, 1, 12).view(3, 4))
        for i, buffer in enumerate(buffers):
            self.register_buffer(f"b{i}", buffer.clone())
        self.names = [f"b{i}" for i in range(len(buffers))]

    def tensors(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Those that steps begin with."""
        return [x.clone(), x, self.weight, *(self.get_buffer(name) for name in self.names)]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = self.tensors(x)
        for step in self.steps:
            do(step, made)
        return tuple(made[i] * 1.0 for i in self.given)


def do(step: Step, made: list[torch.Tensor]) -> None:
    """One step, whose result joins `made`."""
    name, at, how = step
    if name in VIEWS:
        made.append(VIEWS[name](made[at], how))
    elif name in COPIES:
        made.append(COPIES[name](made[at], how))
    elif name in WRITES:
        WRITES[name](made[at], how)
    else:
        result = PAIRS[name](made[at], made[how])
        if name == "sub":
            made.append(result)


def _argument(name: str, t: torch.Tensor, count: int, rng: random.Random) -> Any:
    """Of a step on `t`, with `count` tensors there."""
    rank = t.dim()
    dim = rng.randrange(max(1, rank))
    size = t.shape[dim] if rank else 1
    if name == "slice":
        start = rng.randrange(size)
        return dim, start, rng.randint(start + 1, size), rng.choice((1, 1, 2))
    if name in ("select", "unbind", "narrow"):
        return dim, rng.randrange(size)
    if name in ("transpose", "movedim", "swapaxes", "diagonal"):
        return tuple(rng.sample(range(max(2, rank)), 2))
    if name == "permute":
        return tuple(rng.sample(range(rank), rank))
    if name == "unfold":
        window = rng.randint(1, size)
        return dim, window, rng.randint(1, window)
    if name in ("chunk", "split"):
        return dim, rng.randrange(2) if name == "chunk" else rng.randint(1, size)
    if name == "flip":
        return (dim,)
    if name in ("squeeze", "unsqueeze", "flatten", "sum", "cat", "gather"):
        return dim
    if name in PAIRS:
        return rng.randrange(count)
    return rng.choice((0.25, 0.5, -0.75, 1.5))


def random_module(seed: int) -> RandomModule:
    """A module that eager torch runs: steps that it refuses are left out, as are writes into the input."""
    rng = random.Random(seed)
    shapes = [(3, 4), (2, 3, 4), (4,), (2, 2), (1, 4)]
    chosen = [rng.choice(shapes) for _ in range(rng.randint(1, 3))]
    buffers = [torch.arange(float(torch.Size(s).numel())).view(s) / 7 - 0.5 for s in chosen]
    module = RandomModule([], [], buffers)
    x = torch.linspace(-1, 1, 24).view(2, 3, 4)
    made = module.tensors(x.clone())
    wanted, tries = rng.randint(4, 12), 0
    names = [list(VIEWS), list(COPIES), list(WRITES), list(PAIRS)]
    while len(module.steps) < wanted and tries < 200:
        tries += 1
        name = rng.choice(rng.choices(names, (5, 1, 4, 2))[0])
        at = rng.randrange(len(made))
        step = (name, at, _argument(name, made[at], len(made), rng))
        before = (made[1].clone(), made[2].clone())
        try:
            with torch.no_grad():
                trial = list(made)
                writes = name in WRITES or (name in PAIRS and name != "sub")
                if writes and any(_share(made[at], fixed) for fixed in made[1:3]):
                    continue
                do(step, trial)
        except (RuntimeError, IndexError, ValueError):
            continue
        if any(t.numel() == 0 or t.numel() > 400 or t.dim() > 6 for t in trial[len(made) :]):
            continue
        if not all(bool(t.isfinite().all()) and float(t.abs().max()) < 1e4 for t in trial):
            continue
        assert torch.equal(before[0], made[1])
        assert torch.equal(before[1], made[2])
        made = trial
        module.steps.append(step)
    module.given.extend(sorted(rng.sample(range(len(made)), min(len(made), 4))))
    return RandomModule(module.steps, module.given, buffers).eval()


def _share(t: torch.Tensor, u: torch.Tensor) -> bool:
    return t.untyped_storage().data_ptr() == u.untyped_storage().data_ptr()
