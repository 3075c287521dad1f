"""What PyTorch's quantisers write: each form of the table in docs/imports.md converts, is verified against the model as
torch runs it, keeps its integers in the file, and computes as the table says.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace.sources.torch_module import LiveSource
from pinnace.verify.verification import verify_program
from quantized_forms import STORED, Became, became, convolutions, elements, two
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
Form = tuple[Any, tuple[torch.Tensor, ...], int]  # the model, its inputs, elements of its weights

ao: Any = importlib.import_module("torch.ao.quantization")  # untyped in torch's own stubs
torchao: Any = pytest.importorskip("torchao.quantization", reason="torchao is not installed")


INT4: Any = getattr(torch, "int4")  # noqa: B009 (torch's stubs lack it)


def weights_by_torchao(config: Any) -> Form:
    module, x = two()
    count = elements(module)
    torchao.quantize_(module, config)
    return module, (x,), count


def groups(size: int) -> Any:
    from torchao.quantization.granularity import PerGroup

    return PerGroup(size)


def four_bits_for_processors(size: int, dtype: torch.dtype = torch.float32) -> Form:
    from torchao.prototype.quantization.int4.inference_workflow import PrototypeInt4WeightOnlyConfig

    torch.manual_seed(3)
    module, x = nn.Sequential(nn.Linear(256, 128), nn.GELU(), nn.Linear(128, 64)).eval().to(dtype), torch.randn(8, 256)
    count = elements(module)
    torchao.quantize_(module, PrototypeInt4WeightOnlyConfig(group_size=size))
    return module, (x.to(dtype),), count


def dynamic(engine: str, make: Callable[[], tuple[nn.Module, torch.Tensor]] = two, trace: bool = False) -> Form:
    torch.backends.quantized.engine = engine
    module, x = make()
    count = elements(module)
    made = ao.quantize_dynamic(module, {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell}, dtype=torch.qint8)
    return (torch.jit.trace(made, (x,)) if trace else made), (x,), count  # type: ignore[no-untyped-call]


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.r = kind(24, 32, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.r(x)[0])
        return y


def recurrent(kind: type[nn.Module]) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(3)
    return Recurrent(kind).eval(), torch.randn(2, 4, 24)


class Stubs(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.into, self.inner, self.out = ao.QuantStub(), inner, ao.DeQuantStub()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.out(self.inner(self.into(x)))
        return y


def eager(engine: str, trace: bool = False) -> Form:
    torch.backends.quantized.engine = engine
    inner, x = convolutions()
    count = elements(inner)
    module = ao.fuse_modules(Stubs(inner).eval(), [["inner.c1", "inner.b1", "inner.r1"], ["inner.c2", "inner.b2"]])
    module.qconfig = ao.get_default_qconfig(engine)
    ao.prepare(module, inplace=True)
    module(x)
    module = ao.convert(module)
    return (torch.jit.trace(module, (x,)) if trace else module), (x,), count  # type: ignore[no-untyped-call]


def graph_mode(of_dynamic: bool) -> Form:
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    torch.backends.quantized.engine = "fbgemm"
    module, x = two()
    mapping = ao.get_default_qconfig_mapping("fbgemm")
    if of_dynamic:
        mapping = ao.QConfigMapping().set_global(ao.default_dynamic_qconfig)
    prepared = prepare_fx(module, mapping, (x,))
    prepared(x)
    return convert_fx(prepared), (x,), elements(module)


def pt2e(
    kind: str,
    make: Callable[[], tuple[nn.Module, torch.Tensor]] = two,
    fold: bool = True,
    exported: bool = False,
    **options: Any,
) -> Form:
    from torchao.quantization.pt2e import move_exported_model_to_eval, quantize_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    if kind == "xnnpack":
        quantizer = xnnpack.XNNPACKQuantizer()
        quantizer.set_global(xnnpack.get_symmetric_quantization_config(**options))
    else:
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config(**options))
    module, x = make()
    count = elements(module)
    training = bool(options.get("is_qat"))
    graph: Any = torch.export.export(module.train(training), (x,)).module()
    graph = (quantize_pt2e.prepare_qat_pt2e if training else quantize_pt2e.prepare_pt2e)(graph, quantizer)
    with torch.no_grad():
        graph(x)
    if training:
        move_exported_model_to_eval(graph)
    made = quantize_pt2e.convert_pt2e(graph, fold_quantize=fold)
    return (torch.export.export(made, (x,)) if exported else made), (x,), count


def embedding() -> Form:
    torch.manual_seed(3)
    module: Any = nn.Sequential(nn.Embedding(100, 64)).eval()
    places = torch.randint(0, 100, (2, 7))
    count = elements(module)
    module[0].qconfig = ao.float_qparams_weight_only_qconfig
    ao.prepare(module, inplace=True)
    return ao.convert(module), (places,), count


def one() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(96, 96), nn.ReLU()).eval(), torch.randn(4, 96)


# By row of the table: what makes its forms, and how many bits an element of a weight is to take.
FORMS: dict[str, tuple[int, list[Callable[[], Form]]]] = {
    "torchao `Int8WeightOnlyConfig`": (8, [lambda: weights_by_torchao(torchao.Int8WeightOnlyConfig())]),
    "torchao `IntxWeightOnlyConfig`, 8 bits": (
        8,
        [lambda: weights_by_torchao(torchao.IntxWeightOnlyConfig(torch.int8, groups(32)))],
    ),
    "torchao `IntxWeightOnlyConfig`, 4 bits": (
        4,
        [
            lambda: weights_by_torchao(torchao.IntxWeightOnlyConfig(INT4, groups(32))),
            lambda: weights_by_torchao(torchao.IntxWeightOnlyConfig(INT4, torchao.PerAxis(0))),
        ],
    ),
    "torchao int4 weights for CPUs (`PrototypeInt4WeightOnlyConfig`)": (
        4,
        [
            lambda: four_bits_for_processors(32),
            lambda: four_bits_for_processors(64),
            lambda: four_bits_for_processors(128),
            lambda: four_bits_for_processors(32, torch.bfloat16),
        ],
    ),
    "torchao `Int8DynamicActivationInt8WeightConfig`": (
        8,
        [lambda: weights_by_torchao(torchao.Int8DynamicActivationInt8WeightConfig())],
    ),
    "torchao `Int8DynamicActivationIntxWeightConfig`, 4 bits": (
        4,
        [
            lambda: weights_by_torchao(
                torchao.Int8DynamicActivationIntxWeightConfig(weight_dtype=INT4, weight_granularity=groups(32))
            )
        ],
    ),
    "`quantize_dynamic`: `Linear`, `LSTM`, `GRU`": (
        8,
        [
            lambda: dynamic("fbgemm"),
            lambda: dynamic("qnnpack"),
            lambda: dynamic("fbgemm", trace=True),
            lambda: dynamic("fbgemm", lambda: recurrent(nn.LSTM)),
            lambda: dynamic("fbgemm", lambda: recurrent(nn.GRU)),
            lambda: dynamic("fbgemm", lambda: recurrent(nn.LSTM), trace=True),
        ],
    ),
    "Eager static quantisation, fbgemm and qnnpack": (
        8,
        [
            lambda: eager("fbgemm"),
            lambda: eager("qnnpack"),
            lambda: eager("fbgemm", True),
            lambda: eager("qnnpack", True),
        ],
    ),
    "FX graph mode, static": (8, [lambda: graph_mode(False)]),
    "FX graph mode, dynamic": (8, [lambda: graph_mode(True)]),
    "PT2E, `XNNPACKQuantizer`, static": (
        8,
        [
            lambda: pt2e("xnnpack", is_per_channel=False),
            lambda: pt2e("xnnpack", is_per_channel=True),
            lambda: pt2e("xnnpack", convolutions, is_per_channel=True),
            lambda: pt2e("xnnpack", convolutions, is_per_channel=True, exported=True),
            lambda: pt2e("xnnpack", fold=False, is_per_channel=True),
        ],
    ),
    "PT2E, `XNNPACKQuantizer`, trained (QAT)": (8, [lambda: pt2e("xnnpack", one, is_per_channel=True, is_qat=True)]),
    "PT2E, `XNNPACKQuantizer`, dynamic": (8, [lambda: pt2e("xnnpack", is_per_channel=True, is_dynamic=True)]),
    "PT2E, `X86InductorQuantizer`, static and dynamic": (
        8,
        [
            lambda: pt2e("x86"),
            lambda: pt2e("x86", is_dynamic=True),
            lambda: pt2e("x86", one, is_qat=True),
            lambda: pt2e("x86", fold=False),
        ],
    ),
}


def table() -> dict[str, str]:
    """Form -> what becomes of it, of PyTorch's part of the table."""
    text = (ROOT / "docs/imports.md").read_text()
    rows = re.findall(r"^\| PyTorch: (.+?) \| (.+?) \|", text, re.MULTILINE)
    return dict(rows)


@pytest.fixture(autouse=True)
def _engine() -> Any:
    before = torch.backends.quantized.engine
    yield
    torch.backends.quantized.engine = before


def test_the_table_has_these_forms() -> None:
    assert table().keys() == FORMS.keys()


def check(said: str, made: Became, count: int, bits: int) -> None:
    if said.startswith("integer arithmetic"):
        made.assert_integers(count, bits)
    elif said.startswith("float arithmetic on stored weights"):
        # Sums of groups by their zeros are products of floats: 1 / 32 of the work.
        assert made.constant_bytes < (1.4 + 0.1 * (bits == 4)) * count * bits / 8 + 4 * count / 32
        assert set(STORED) <= made.products(), made.products()
        assert all(k.startswith((*STORED, "mat_mul_packed_f32_")) for k in made.products())
    else:
        raise AssertionError(f"the table says {said!r}, which nothing here checks")


CASES = [(name, place) for name, (_, makers) in FORMS.items() for place in range(len(makers))]


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "place"), CASES)
def test_forms(name: str, place: int, tmp_path: Path) -> None:
    bits, makers = FORMS[name]
    source, inputs, count = makers[place]()
    check(table()[name], became(source, inputs, tmp_path), count, bits)


@pytest.mark.filterwarnings("ignore")
def test_stored_rows_of_embeddings(tmp_path: Path) -> None:
    """torch.ao's: rows with float zero points."""
    source, inputs, count = embedding()
    assert became(source, inputs, tmp_path).constant_bytes < 1.4 * count


@pytest.mark.parametrize("bits", [torch.int8, INT4])
def test_rows_are_dequantised_as_they_are_read(bits: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(3)
    module, places = nn.Sequential(nn.Embedding(300, 64), nn.Linear(64, 64)).eval(), torch.randint(0, 300, (2, 7))
    count = elements(module)
    config = torchao.IntxWeightOnlyConfig(bits, groups(32))
    torchao.quantize_(module, config, filter_fn=lambda m, _: isinstance(m, nn.Embedding | nn.Linear))
    made = became(module, (places,), tmp_path)
    assert made.constant_bytes < 1.4 * count
    gathers = [line for line in made.text.splitlines() if "= gather@" in line]
    assert any(": i8[2,7,64] = gather@" in line for line in gathers)
    assert "f32[300,64]" not in made.text


def test_dynamic_sizes_stay_open() -> None:
    """What is converted for any size without quantisation is so with dynamic quantisation too."""
    source, (x,), _ = dynamic("fbgemm")
    program = pn.load(source, (x,), dynamic_shapes={0: "batch"}).build()
    session = pn.Session(program, target="cpu")
    for size in (1, 5):
        given = np.random.default_rng(5).standard_normal((size, 96)).astype(np.float32)
        (got,) = session.run({next(iter(session.inputs)): given}).values()
        with torch.no_grad():
            want = source(torch.from_numpy(given)).numpy()
        np.testing.assert_allclose(got, want, atol=0.02 * np.abs(want).max())


def test_the_module_is_as_before() -> None:
    """Layers that are replaced while it is exported are its own again."""
    source, (x,), _ = dynamic("fbgemm")
    before = dict(source.named_modules())
    pn.load(source, (x,))
    after = dict(source.named_modules())
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def test_sizes_of_eager_models_are_fixed() -> None:
    source, (x,), _ = eager("fbgemm")
    with pytest.raises(pn.InvalidArgument, match="dynamic_shapes"):
        pn.load(source, (x,), dynamic_shapes={0: "batch"})
    assert any("traced" in note for note in pn.load(source, (x,)).notes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [lambda: pt2e("xnnpack", is_per_channel=True), lambda: graph_mode(False)])
def test_a_wrong_weight_is_refused_at_its_own_integers(make: Callable[[], Form]) -> None:
    """Verification holds each rounding against the live model on the program's own integers before it."""
    source, (x,), _ = make()
    model = pn.load(source, (x,))
    program = model.build(verify=False)
    other, _, _ = make()
    for buffer in other.buffers():
        if buffer.dtype == torch.int8:
            buffer.copy_(buffer.roll(1, 0))
            break
    else:
        state = other.a._packed_params._packed_params.unpack()
        other.a.set_weight_bias(state[0], state[1] * 1.5 + 0.5)
    wrong = pn.load(other, (x,))._source
    assert isinstance(wrong, LiveSource) or hasattr(wrong, "with_values")
    verify_program(program, model._source, [{next(iter(program.inputs)): x.numpy()}], ["cpu"])
    with pytest.raises(pn.VerificationError, match="differs by"):
        verify_program(program, wrong, [{next(iter(program.inputs)): x.numpy()}], ["cpu"])
