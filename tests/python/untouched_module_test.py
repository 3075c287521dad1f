"""What load(), build() and compare() leave behind in a user's module, in torch's settings and in random numbers:
nothing, also after an error or an interruption."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import Tensor, nn

X = torch.linspace(-1, 1, 12).reshape(4, 3)


class Wrapper(nn.Module):
    """Of a training module around any other; `fault` is called in each forward."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.fault: Callable[[], None] | None = None

    def forward(self, x: Tensor) -> Any:
        if self.fault is not None:
            self.fault()
        return self.inner(x) + 1


class Counting(nn.Module):
    """State of every kind that a forward may change: buffer, numbers, lists, own objects, flags of parameters."""

    calls: Tensor

    class Notes:
        def __init__(self) -> None:
            self.last = 0
            self.seen = np.zeros(2)

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.linear = nn.Linear(3, 3)
        self.number = 0
        self.log: list[int] = []
        self.table = {"runs": [0]}
        self.notes = Counting.Notes()

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.number += 1
        self.log.append(self.number)
        self.table["runs"][0] += 1
        self.notes.last = self.number
        self.notes.seen += 1
        self.linear.weight.requires_grad_(False)
        total: Tensor = self.linear(x) + 0 * self.calls
        return total


class Writing(nn.Module):
    """Writes into its own parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        self.weight.mul_(0.5)
        return x * self.weight


class Settings(nn.Module):
    """Changes settings of torch, and draws random numbers, whenever it is called."""

    def forward(self, x: Tensor) -> Tensor:
        random.random()
        np.random.rand()  # noqa: NPY002 (as users' modules do)
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.set_float32_matmul_precision("high")
        return x * 2


class NotCopied(Counting):
    """What deepcopy refuses."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("this module cannot be copied")


def mixed() -> nn.Module:
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Sequential(nn.BatchNorm1d(3)))
    net.train()
    net[1].eval()
    net[3].training = False
    return net


def frozen() -> nn.Module:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 3))
    net[0].requires_grad_(False)
    net(X).sum().backward()
    return net


def hooked() -> nn.Module:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    net[0].register_forward_hook(lambda _module, _inputs, output: output * 2)
    net[1].register_forward_pre_hook(lambda _module, inputs: inputs)
    return net


MODULES: dict[str, Callable[[], nn.Module]] = {
    "an eval network in a new wrapper": lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout()).eval(),
    "mixed modes": mixed,
    "frozen parameters, gradients": frozen,
    "batch norm in training": lambda: nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3)),
    "state of every kind": Counting,
    "state that cannot be copied": NotCopied,
    "writes into a parameter": Writing,
    "hooks": hooked,
    "dropout in training": lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 3)),
    "settings of torch": Settings,
}


def held_by(value: Any) -> Any:
    """A value as text and bytes: for tensors also who they are."""
    if isinstance(value, Tensor):
        grad = value.grad if value.is_leaf else None
        return (id(value), value.detach().numpy().tobytes(), value.requires_grad, grad is None or held_by(grad))
    if isinstance(value, np.ndarray):
        return (id(value), value.tobytes())
    if isinstance(value, nn.Module | Counting.Notes):
        return (id(value), {name: held_by(v) for name, v in vars(value).items()})
    if isinstance(value, dict):
        return (id(value), [(name, held_by(v)) for name, v in value.items()])
    if isinstance(value, list):
        return (id(value), [held_by(v) for v in value])
    return value


def settings() -> dict[str, Any]:
    return {
        "random": random.getstate(),
        "numpy": str(np.random.get_state()),  # noqa: NPY002
        "torch": torch.get_rng_state().numpy().tobytes(),
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn": torch.is_deterministic_algorithms_warn_only_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "numpy errors": np.geterr(),
    }


def stop() -> None:
    raise KeyboardInterrupt


def refuse() -> None:
    raise ValueError("this module does not run")


def load(module: Wrapper) -> None:
    pn.load(module, (X,))


def load_that_fails(module: Wrapper) -> None:
    module.fault = refuse
    with pytest.raises(pn.ConversionError, match="does not run"):
        pn.load(module, (X,))


def load_that_is_interrupted(module: Wrapper) -> None:
    module.fault = stop
    with pytest.raises(KeyboardInterrupt):
        pn.load(module, (X,))


def build(module: Wrapper) -> None:
    with contextlib.suppress(pn.VerificationError):  # random numbers in what cannot be copied
        pn.load(module, (X,)).build()


def build_that_is_interrupted(module: Wrapper) -> None:
    """In the first operator that torch runs for the verification."""
    model = pn.load(module, (X,))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("torch_module", "torch_program"):
            patch.setattr(f"pinnace.sources.{name}.output_tensors", lambda _: stop())
        with pytest.raises(KeyboardInterrupt):
            model.build()


def compare(module: Wrapper) -> None:
    program = pn.load(module, (X,)).build(verify=False)
    pn.compare(program, module, [{"x": X}])


USES = [load, load_that_fails, load_that_is_interrupted, build, build_that_is_interrupted, compare]


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("use", USES, ids=[u.__name__.replace("_", " ") for u in USES])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_as_it_was(name: str, use: Callable[[Wrapper], None]) -> None:
    torch.manual_seed(1)
    module = Wrapper(MODULES[name]())
    assert module.training
    faults = [refuse, stop]
    before, around = held_by(module), settings()
    use(module)
    if module.fault in faults:
        module.fault = None  # which the test itself has set
    assert held_by(module) == before
    assert settings() == around


def test_weights_are_not_copied_to_run_the_module() -> None:
    places = set()

    class Noting(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            if type(self.weight) is nn.Parameter:  # not while it is exported
                places.add(self.weight.data_ptr())
            return super().forward(x)

    net = Noting(3, 3)
    pn.load(net, X).build()
    assert places == {net.weight.data_ptr()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["scripted", "traced", "refused"])
def test_torchscript_is_as_it_was(kind: str) -> None:
    jit: Any = torch.jit
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout()).eval()
    script = jit.script(net.append(nn.BatchNorm1d(3))) if kind == "refused" else None
    script = script or (jit.script(net) if kind == "scripted" else jit.trace(net, (X,)))
    script.train()
    next(script.children()).eval()

    def held() -> Any:
        tensors = {name: t.numpy().tobytes() for name, t in script.state_dict().items()}
        flags = [(m.training, [p.requires_grad for p in m.parameters()]) for m in script.modules()]
        return tensors, flags, settings()

    before = held()
    with pytest.raises(pn.ConversionError) if kind == "refused" else contextlib.nullcontext():
        pn.load(script, (X,)).build()
    assert held() == before


def test_an_exported_program_is_as_it_was() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    exported = torch.export.export(net.eval(), (X,))
    text, state = str(exported), {n: t.detach().numpy().tobytes() for n, t in exported.state_dict.items()}
    around = settings()
    program = pn.load(exported, (X,)).build()
    pn.compare(program, exported, [dict.fromkeys(program.inputs, X)])
    assert (str(exported), settings()) == (text, around)
    assert {n: t.detach().numpy().tobytes() for n, t in exported.state_dict.items()} == state


def test_isolation_ends_with_what_was_there_whatever_the_block_does() -> None:
    from pinnace.torch.isolation import isolated_inference

    class Everything(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("buffer", torch.tensor([1.0, float("nan")]))
            self.linear = nn.Linear(2, 2)
            self.generator = torch.Generator()
            self.chance = np.random.default_rng(1)
            self.things: Any = [{1}, {"a": (np.ones(2), [1])}]

    module: Any = Everything()
    buffer = module.buffer
    before, around = held_by(module), settings()
    states = module.generator.get_state().tolist(), str(module.chance.bit_generator.state)

    def change_everything() -> None:
        assert not module.linear.training
        assert not torch.is_grad_enabled()
        module.linear.weight.requires_grad_(False)
        module.linear.bias = None
        module.linear.register_forward_hook(lambda *_: None)
        module.register_buffer("more", torch.ones(1))
        module.more_still = 5
        buffer.data = torch.zeros(7)
        module.things[0].add(2)
        module.things[1]["a"][0][:] = 0
        module.things[1]["a"][1].append(2)
        module.things.append(1)
        module.chance.random()
        torch.rand(2, generator=module.generator)
        torch.rand(2)
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_autocast_enabled("cpu", True)
        torch.set_autocast_dtype("cpu", torch.float16)
        torch.backends.cudnn.deterministic = not torch.backends.cudnn.deterministic
        stop()

    def isolated() -> None:
        with isolated_inference(module):
            change_everything()

    with pytest.raises(KeyboardInterrupt):
        isolated()
    assert held_by(module) == before
    assert module.things[0] == {1}
    assert settings() == around
    assert states == (module.generator.get_state().tolist(), str(module.chance.bit_generator.state))
    version = buffer._version
    with isolated_inference(module):
        pass
    assert (held_by(module), buffer._version) == (before, version)  # what has not changed is not written
