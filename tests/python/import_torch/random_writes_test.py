"""Random programs of views, copies and writes against eager torch: what each of three calls gives, and what the buffers
are after each. With PINNACE_TEST_ALL=1 2,000 of them."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from random_writes import COPIES, PAIRS, VIEWS, WRITES, RandomModule, random_module
from slices import all_mode, test_seed

COUNT = 2000
SLICE = 40
# Why a program may be refused: it writes into elements that share memory, which torch refuses at run time too or leaves
# to chance, or into what may be the input, or torch decides at run time whether two tensors share memory.
REFUSALS = (
    "elements of the view lie on one another",
    "refers to a single memory location",
    "may mutate an input",
    "read after a write that may or may not have changed it",
)
pytestmark = pytest.mark.filterwarnings("ignore")


def close(got: np.ndarray[Any, Any], want: torch.Tensor) -> bool:
    right = want.detach().numpy()
    return got.shape == right.shape and bool(np.allclose(got, right, rtol=1e-5, atol=1e-5))


def difference(module: RandomModule) -> str:
    """What differs from eager; "" for nothing. ConversionError: it is refused."""
    x = torch.linspace(-1, 1, 24).view(2, 3, 4)
    eager = copy.deepcopy(module)
    session = pn.Session(pn.load(module, (x,)).build(verify=False), target="cpu", threads=1)
    for call in range(3):
        given = x.flip(call % 3) * (1 - 0.3 * call)
        with torch.no_grad():
            want = eager(given.clone())
        got = list(session.run({name: given.numpy() for name in session.inputs}).values())
        for i, (y, right) in enumerate(zip(got, want, strict=True)):
            if not close(y, right):
                return f"call {call}: output {i}: {y.tolist()} for {right.tolist()}"
        for name in module.names:
            now, began = eager.get_buffer(name), module.get_buffer(name)
            if name not in session.state:
                if not torch.equal(now, began):
                    return f"call {call}: buffer {name} is no state"
            elif not close(np.asarray(session.state[name]), now):
                return f"call {call}: buffer {name}: {np.asarray(session.state[name]).tolist()} for {now.tolist()}"
    return ""


def test_random_programs() -> None:
    start = 0 if all_mode() else test_seed() * SLICE % COUNT
    numbers = range(COUNT) if all_mode() else range(start, start + SLICE)
    wrong: list[str] = []
    refused: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    for number in numbers:
        module = random_module(number)
        steps.update(name for name, *_ in module.steps)
        try:
            said = difference(module)
        except pn.ConversionError as error:
            why = next((why for why in REFUSALS if why in str(error)), "")
            if why:
                refused[why] += 1
                continue
            said = str(error)
        if said:
            wrong.append(f"{number}: {said}\n  {module.steps} gives {module.given}")
    print(f"{len(numbers)} programs, {sum(steps.values())} steps, refused: {dict(refused)}")
    assert not wrong, "\n".join(wrong[:10])
    if all_mode():
        assert sum(refused.values()) <= COUNT // 50
        assert set(steps) == {*VIEWS, *COPIES, *WRITES, *PAIRS}


def test_a_write_into_elements_that_are_one_is_refused() -> None:
    """Torch's own way to make it functional adds up what is written to each of them."""

    class Filled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("row", torch.full((1, 4), 1.5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            view = self.get_buffer("row").expand(2, 4)
            view.masked_fill_(view > 0, -0.75)
            return x + view.sum()

    with pytest.raises(pn.ConversionError, match=r"elements of the view lie on one another: aten\.expand"):
        pn.load(Filled(), (torch.ones(2),))
