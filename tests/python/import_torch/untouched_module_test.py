"""What load(), build() and compare() leave behind in a user's module, in torch's settings and in random numbers:
nothing, also after an error or an interruption."""

from __future__ import annotations

import contextlib
import gc
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace.torch import isolation
from pinnace.torch.collection import without_collection
from pinnace.torch.isolation import isolated_inference
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


class InferenceInside(nn.Module):
    """Computes in inference mode, and keeps what it has made there."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.last = torch.zeros(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.inference_mode():
            self.last = self.linear(x) + self.last
            return self.last * 2


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


class Factored(nn.Module):
    """An operator that is not imported."""

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = x @ torch.linalg.lu_factor(x.t() @ x)[0]
        return made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["scripted", "traced", "refused"])
def test_torchscript_is_as_it_was(kind: str) -> None:
    jit: Any = torch.jit
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3)).eval()
    script = jit.script(net.append(Factored())) if kind == "refused" else None
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


# For each setting a value that it does not have by default, two where one of them may be the default.
OTHER_SETTINGS: dict[str, Any] = {
    "numpy's errors": [{"divide": "raise", "over": "raise", "under": "raise", "invalid": "raise"}],
    "grad": [True, False],
    "default dtype": [torch.float64],
    "default device": [torch.device("meta")],
    "threads": [1],
    "matmul precision": ["high"],
    "tf32, cuda": [True, False],
    "tf32, cudnn": [True, False],
    "deterministic algorithms": [(True, True), (True, False)],
    "cudnn": [True, False],
    "cudnn.deterministic": [True, False],
    "cudnn.benchmark": [True, False],
    "mkldnn": [True, False],
    "quantized.engine": torch.backends.quantized.supported_engines,
    "autocast": [True, False],
    "autocast dtype": [torch.float16],
    "autocast cache": [True, False],
}


@pytest.mark.parametrize("fails", [False, True], ids=["", "fails"])
@pytest.mark.parametrize("name", isolation._settings())
def test_each_setting_is_as_it_was(name: str, fails: bool) -> None:
    rows = isolation._settings()
    read, write = rows[name]
    before = {row: rows[row][0]() for row in rows}
    values = ["ieee", "tf32", "bf16"] if name.startswith("fp32 precision") else OTHER_SETTINGS[name]
    different = 0
    for value in values:
        with contextlib.suppress(RuntimeError) if fails else contextlib.nullcontext(), isolated_inference():
            try:
                write(value)
            except RuntimeError:  # a precision that this one does not have
                assert name.startswith("fp32 precision")
            with contextlib.suppress(RuntimeError):  # torch does not read some where others were written
                different += read() != before[name]
            if fails:
                raise RuntimeError
        assert {row: rows[row][0]() for row in rows} == before
    assert different


@pytest.fixture
def bfloat16_products() -> Iterator[None]:
    """After this torch.get_float32_matmul_precision() raises."""
    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    matmul.fp32_precision = "bf16"
    yield
    matmul.fp32_precision = before


@pytest.mark.usefixtures("bfloat16_products")
def test_a_setting_that_torch_refuses_to_read() -> None:
    with pytest.raises(RuntimeError):
        torch.get_float32_matmul_precision()
    pn.load(nn.ReLU(), X)
    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    with isolated_inference():
        matmul.fp32_precision = "ieee"
        torch.set_default_dtype(torch.float64)
    assert (matmul.fp32_precision, torch.get_default_dtype()) == ("bf16", torch.float32)


def test_what_is_kept_of_a_module_has_bounds() -> None:
    """Optimizers, data and large arrays are the application's: they are neither copied nor looked into."""

    class Slotted:
        __slots__ = ("count", "empty", "items")

        def __init__(self) -> None:
            self.count, self.items = 1, [1]

    class Data(torch.utils.data.Dataset[int]):
        def __init__(self) -> None:
            self.place = 0

    module: Any = nn.Linear(2, 2)
    module.slotted, module.raw, module.chance = Slotted(), bytearray(b"ab"), random.Random(1)
    module.large = np.zeros(isolation.MOST_BYTES // 8 + 1)
    module.small = np.zeros(2)
    module.many = [[i] for i in range(isolation.MOST_ENTRIES + 1)]
    module.data = Data()
    module.register_buffer("state", torch.zeros(2))
    module.optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    chance = module.chance.getstate()
    with isolated_inference(module):
        module.slotted.count, module.slotted.items, module.slotted.empty = 2, [], 5
        module.raw[:] = b"xyz"
        module.chance.random()
        module.large[:] = module.small[:] = 1
        module.many[0].append(0)
        module.many.pop()
        module.data.place = 1
        module.optimizer.param_groups[0]["lr"] = 2.0
        module.weight.data = torch.zeros(2, 2)
        module.state.data = torch.ones(2)
    assert (module.slotted.count, module.slotted.items, hasattr(module.slotted, "empty")) == (1, [1], False)
    assert (module.raw, module.chance.getstate()) == (bytearray(b"ab"), chance)
    assert (module.large[0], module.small[0]) == (1, 0)
    assert (module.many[0], len(module.many)) == ([0, 0], isolation.MOST_ENTRIES + 1)
    assert (module.data.place, module.optimizer.param_groups[0]["lr"]) == (1, 2.0)
    assert bool(module.weight.any())
    assert not module.state.any()


def test_what_cannot_be_put_back_leaves_the_rest_restored() -> None:
    module: Any = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    module.array = np.zeros(2)
    module.again = np.zeros(2)
    around = settings()

    def isolated() -> None:
        with isolated_inference(module):
            torch.set_default_dtype(torch.float64)
            torch.rand(1)
            module[1].extra = 1
            module.array[:] = module.again[:] = 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolation, "_restore_array", lambda *_: refuse())
        with pytest.raises(ValueError, match="does not run"):
            isolated()
    assert settings() == around
    assert [part.training for part in module.modules()] == [True] * 3
    assert not hasattr(module[1], "extra")


def test_isolated_blocks_of_threads_take_turns() -> None:
    """Otherwise the second saves what the first has changed, and the first's values come back at the end."""
    inside = threading.Event()
    ends = threading.Event()
    order: list[str] = []

    def first() -> None:
        with isolated_inference():
            torch.set_default_dtype(torch.float64)
            inside.set()
            ends.wait(60)
            with isolated_inference():  # of the same thread
                order.append("first")

    def second() -> None:
        inside.wait(60)
        with isolated_inference():
            order.append(f"second {torch.get_default_dtype()}")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    inside.wait(60)
    threads[1].join(0.2)
    ends.set()
    for thread in threads:
        thread.join(60)
    assert order == ["first", "second torch.float32"]
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("was", [True, False], ids=["on", "off"])
def test_the_collector_of_garbage_is_as_it_was(was: bool) -> None:
    """Also where the export fails or is interrupted; while torch exports it is off."""
    seen = []

    def notice() -> None:
        seen.append(gc.isenabled())

    def fail() -> None:
        notice()
        raise KeyboardInterrupt

    module = Wrapper(nn.Linear(3, 3))
    before = gc.isenabled()
    try:
        (gc.enable if was else gc.disable)()
        module.fault = notice
        pn.load(module, X)
        assert gc.isenabled() == was
        module.fault = fail
        with pytest.raises(KeyboardInterrupt):
            pn.load(module, X)
        assert gc.isenabled() == was
    finally:
        (gc.enable if before else gc.disable)()
    assert False in seen  # while torch exported; where the module is only run, nothing is changed


def test_blocks_without_collection_in_several_threads() -> None:
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with without_collection():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with without_collection():
        thread.start()
        assert inside.wait(60)
    assert not gc.isenabled()  # the other thread's block goes on
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_random_numbers_that_nobody_drew_are_not_written_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state written back although it is the same takes away what another thread draws between the two."""
    monkeypatch.setattr(torch.random, "set_rng_state", lambda _: stop())
    monkeypatch.setattr(np.random, "set_state", lambda _: stop())
    monkeypatch.setattr(random, "setstate", lambda _: stop())
    with isolated_inference():
        pass


@pytest.mark.parametrize("used", ["outside", "inside"])
@pytest.mark.parametrize("made", ["outside", "inside"])
@pytest.mark.parametrize("kind", [lambda: nn.BatchNorm1d(3), Counting, InferenceInside], ids=["norm", "state", "code"])
def test_inference_mode(kind: Any, made: str, used: str) -> None:
    """Around the making of a module, around its use, and in its code."""

    with torch.inference_mode(made == "inside"):
        module: Any = kind()
    with torch.inference_mode(used == "inside"):
        x = X.clone()
        before = [(id(t), t.tolist()) for t in (*module.parameters(), *module.buffers())]
        program = pn.load(module, x).build()
        assert pn.compare(program, module, [dict.fromkeys(program.inputs, x)]).ok
        assert torch.is_inference_mode_enabled() == (used == "inside")
    assert [(id(t), t.tolist()) for t in (*module.parameters(), *module.buffers())] == before
    assert all(t.is_inference() == (made == "inside") for t in module.parameters())
