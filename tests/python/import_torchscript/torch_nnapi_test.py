"""Models that PyTorch's own NNAPI converter made, imported live and saved: equal to eager, or refused with the reason;
damaged ones are typed errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from int8_mobilenet import Inside, int8_mobilenet, jit, seeded
from pinnace import _core
from torch import Tensor, nn
from torch.backends._nnapi import prepare
from torchscript_test import Of, quantised

pytestmark = pytest.mark.filterwarnings("ignore")


# Untyped in torch's own stubs.
convert_model_to_nnapi: Any = prepare.convert_model_to_nnapi
process_for_nnapi: Any = prepare.process_for_nnapi


def channels_last(x: Tensor) -> Tensor:
    """As the converter wants it marked."""
    x = x.contiguous(memory_format=torch.channels_last)
    x.nnapi_nhwc = True  # type: ignore[attr-defined]
    return x


f = nn.functional
MODULES: dict[str, tuple[Callable[[], nn.Module], bool]] = {  # and whether it is right with channels last
    "conv": (lambda: nn.Conv2d(4, 6, 3, 2, 1), True),
    "conv without bias": (lambda: nn.Conv2d(4, 6, 1, bias=False), True),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, padding=1, groups=4), True),
    "transposed conv": (lambda: nn.ConvTranspose2d(4, 6, 2, 2), True),
    "relu": (lambda: nn.ReLU(), True),
    "relu6, hardtanh": (lambda: nn.Sequential(nn.ReLU6(), nn.Hardtanh()), True),
    "sigmoid": (lambda: nn.Sigmoid(), True),
    "prelu": (lambda: nn.PReLU(), True),
    "max pool": (lambda: nn.MaxPool2d(2, 2), True),
    "average pool": (lambda: nn.AvgPool2d(2, 2), True),
    "adaptive pool, flatten, linear": (
        lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)),
        True,
    ),
    "nearest": (lambda: nn.UpsamplingNearest2d(scale_factor=2), True),
    "softmax": (lambda: nn.Softmax(dim=-1), False),
    "log_softmax": (lambda: nn.LogSoftmax(dim=-1), False),
    "mean": (lambda: Plain(lambda x: x.mean([2, 3])), True),
    "arithmetic": (lambda: Plain(lambda x: (x + x * x - x / (x * x + x * x)) * x), True),
    "cat": (lambda: Plain(lambda x: torch.cat([x, x.relu()], 1)), True),
    "slice": (lambda: Plain(lambda x: x[:, 1:3]), False),
    "reshape": (lambda: Plain(lambda x: x.reshape(1, -1)), False),
    "unsqueeze": (lambda: Plain(lambda x: x.unsqueeze(1)), False),
}


class Plain(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def answer(model: pn.Model, *inputs: Tensor) -> np.ndarray:
    session = pn.Session(model.build(), target="cpu")
    (got,) = session.run(dict(zip(session.inputs, inputs, strict=True))).values()
    return np.asarray(got)


@pytest.mark.rotating
@pytest.mark.parametrize("last", [False, True], ids=["nchw", "nhwc"])
@pytest.mark.parametrize("name", MODULES)
def test_float_module(name: str, last: bool, tmp_path: Path) -> None:
    make, right_with_last = MODULES[name]
    if last and not right_with_last:
        return  # the converter itself makes something else of it, or refuses
    torch.manual_seed(4)
    module, x = make().eval(), seeded(1, 4, 6, 8)
    x = channels_last(x) if last else x
    converted = convert_model_to_nnapi(jit.trace(module, x), [x])
    jit.save(converted, str(tmp_path / "m.pt"))
    want = module(x).detach().numpy()
    assert_agree(answer(pn.load(converted, (x,)), x), want)
    assert_agree(answer(pn.load(tmp_path / "m.pt", (x,)), x), want)
    assert not hasattr(converted.mod, "comp") or converted.mod.comp is None, "the user's module was run"


def test_sizes_left_open() -> None:
    """0 in the example: known when the model is compiled; the shapes are those of load()'s example."""
    torch.manual_seed(4)
    module = nn.Sequential(nn.Conv2d(4, 6, 3, 1, 1), nn.ReLU()).eval()
    script = jit.trace(module, seeded(1, 4, 6, 8))
    converted = convert_model_to_nnapi(script, [torch.zeros(1, 4, 0, 0)])
    for shape in ((1, 4, 6, 8), (1, 4, 9, 5)):
        x = seeded(*shape)
        assert_agree(answer(pn.load(converted, (x,)), x), module(x).detach().numpy())
    with pytest.raises(pn.InvalidArgument, match="size 2 of dimension 1"):
        pn.load(converted, (seeded(1, 2, 6, 8),))


@pytest.mark.parametrize("last", [False, True], ids=["nchw", "nhwc"])
def test_several_inputs(last: bool) -> None:
    class Two(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            return a + b, a * b

    a, b = seeded(1, 4, 6, 8), seeded(1, 4, 6, 8, seed=8)
    given = [channels_last(t) if last else t for t in (a, b)]
    model = pn.load(convert_model_to_nnapi(jit.trace(Two().eval(), tuple(given)), given), given)
    session = pn.Session(model.build(), target="cpu")
    for got, want in zip(session.run(dict(zip(session.inputs, given, strict=True))).values(), Two()(a, b), strict=True):
        assert_agree(got, want.numpy())


QUANTISED: dict[str, Callable[[], nn.Module]] = {
    "conv": lambda: nn.Conv2d(3, 8, 3, padding=1),
    "depthwise": lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8)),
    "add": lambda: Of(lambda ops, a, b: ops.add(a, b), two=True),
    "mul": lambda: Of(lambda ops, a, b: ops.mul(a, b), two=True),
    "max pool": lambda: Of(lambda x: f.max_pool2d(x, 2, 2)),
    "pool, flatten, linear": lambda: nn.Sequential(
        nn.Conv2d(3, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    ),
    "nearest": lambda: Of(lambda x: f.interpolate(x, scale_factor=2.0, mode="nearest")),
}


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_module(name: str) -> None:
    torch.manual_seed(5)
    x = seeded(1, 3, 8, 8)
    module = quantised(QUANTISED[name](), x)
    given = channels_last(module.quant(x))
    script = jit.trace(module.inner.eval(), given)
    want = script(given)
    got = answer(pn.load(convert_model_to_nnapi(script, [given]), (given,)), given)
    distance = np.abs(got.astype(int) - want.int_repr().numpy().astype(int))
    assert got.dtype == np.uint8
    assert distance.max() <= 1
    assert (distance > 0).mean() <= 0.03


@pytest.mark.rotating
def test_quantised_mobilenet_v2(tmp_path: Path) -> None:
    model = int8_mobilenet()
    given = channels_last(model.quant(seeded(1, 3, 96, 96, seed=9)))
    script = jit.trace(Inside(model).eval(), given)
    jit.save(convert_model_to_nnapi(script, [given]), str(tmp_path / "m.pt"))
    loaded = pn.load(tmp_path / "m.pt", (given,))
    got, want = answer(loaded, given), script(given).int_repr().numpy()
    assert np.corrcoef(got.ravel(), want.ravel())[0, 1] > 0.98
    # No image is turned but the one that comes in.
    assert sum(n.op == "transpose" for n in loaded.nodes) <= 1


def parts() -> tuple[np.ndarray, list[np.ndarray], list[Any]]:
    """Of a small network: the serialised model, its weights, and the rest of what the parser takes."""
    torch.manual_seed(4)
    x = seeded(1, 4, 6, 8)
    module = jit.trace(nn.Sequential(nn.Conv2d(4, 6, 3), nn.ReLU(), nn.MaxPool2d(2, 2)).eval(), x)
    _, serialised, weights, inputs, outputs, _ = process_for_nnapi(module, [x])
    return serialised.numpy(), [w.numpy() for w in weights], [[[1, 4, 6, 8]], list(inputs), list(outputs)]


def test_damaged_models(rng: np.random.Generator, all_mode: bool) -> None:
    """Cut anywhere, and each word replaced: an error that names the byte or the rule, or a model that still means
    something."""
    serialised, weights, rest = parts()
    _core.Model.load_torch_nnapi(serialised, weights, *rest)
    for cut in range(len(serialised)):
        with pytest.raises(pn.CorruptFile) as caught:
            _core.Model.load_torch_nnapi(serialised[:cut], weights, *rest)
        assert caught.value.offset is not None
        assert 0 <= caught.value.offset <= 4 * cut
    with pytest.raises(pn.CorruptFile, match="4 bytes behind the end"):
        _core.Model.load_torch_nnapi(np.append(serialised, np.int32(0)), weights, *rest)
    refused = 0
    values = [0, 1, 2, 3, 7, 255, 1 << 24, 1 << 30, -1, -(1 << 31)]
    for place in range(len(serialised)):
        for value in values if all_mode else rng.choice(values, 3):
            changed = serialised.copy()
            changed[place] = value
            try:
                _core.Model.load_torch_nnapi(changed, weights, *rest)
            except pn.Error:
                refused += 1
    assert refused > len(serialised)
    with pytest.raises(pn.CorruptFile, match="buffer 1, there are 1"):
        _core.Model.load_torch_nnapi(serialised, weights[:1], *rest)
    with pytest.raises(pn.CorruptFile, match="which has"):
        _core.Model.load_torch_nnapi(serialised, [weights[0][:1], *weights[1:]], *rest)


def test_a_model_as_a_value() -> None:
    """The format has no models that models refer to; one without a byte has nothing to be aligned to."""
    header = np.array([1, 3, 1, 1, 1, 1], np.uint32)
    operands = np.array([3, 1, 0, 0, 3, 1, 0, 0, 15, 0, 0, 0], np.uint32)
    value, operation = np.array([2, 0, 0], np.uint32), np.array([19, 1, 1], np.uint32)
    rest = np.array([4, 4, 0, 1, 0, 1], np.uint32)  # dimensions, RELU of 0 to 1, input, output
    model = np.concatenate([header, operands, value, operation, rest]).view(np.uint8)
    with pytest.raises(pn.CorruptFile, match="a value of operand 2, a MODEL"):
        _core.Model.load_torch_nnapi(model, [], [[4]], [0], [0])


def test_wrong_calls() -> None:
    serialised, weights, (dims, inputs, outputs) = parts()
    load = _core.Model.load_torch_nnapi
    with pytest.raises(pn.InvalidArgument, match="memory format 3"):
        load(serialised, weights, dims, [3], outputs)
    with pytest.raises(pn.InvalidArgument, match="2 memory formats"):
        load(serialised, weights, dims, inputs, [0, 0])
    with pytest.raises(pn.InvalidArgument, match="rank 3"):
        load(serialised, weights, [[4, 6, 8]], inputs, outputs)
    with pytest.raises(pn.InvalidArgument, match="size 7 of dimension 3"):
        load(serialised, weights, [[1, 4, 6, 7]], inputs, outputs)
    with pytest.raises(pn.InvalidArgument, match="shapes of 2 inputs"):
        load(serialised, weights, [*dims, *dims], inputs, outputs)


def test_library_path() -> None:
    assert Path(pn.nnapi_library_path()).name == "libneuralnetworks.so"
    assert Path(pn.nnapi_library_path()).exists()
