"""Models for PyTorch's own NNAPI runtime: one or more for every kind of node that its converter takes, and those that
it converts to something else without a word.

    LD_LIBRARY_PATH=build/release python torch_nnapi_models.py

converts, runs and compares all of them in this process, and prints a line of JSON for each as soon as it is done.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.backends._nnapi.prepare import convert_model_to_nnapi

Tensor = torch.Tensor


@dataclass
class Case:
    """A model and its inputs; what it is converted with where that differs; and what the converted model means."""

    name: str
    model: Callable[..., Any]
    inputs: list[Tensor]
    convert: list[Any] | None = None  # sample inputs with sizes 0 (known when it is loaded) or -1 (when it runs)
    return_shapes: list[tuple[int, ...]] | None = None
    means: Callable[..., Any] | None = None  # what the converted model computes where eager computes something else
    scripted: bool = False
    options: dict[str, Any] = field(default_factory=dict)


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def nhwc(x: Tensor) -> Tensor:
    """Marked as the converter wants it."""
    x = x.clone().contiguous(memory_format=torch.channels_last)
    x.nnapi_nhwc = True  # type: ignore[attr-defined]
    return x


def quantised(x: Tensor, scale: float = 0.03, zero_point: int = 128) -> Tensor:
    return torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)


def image(*sizes: int) -> Tensor:
    return torch.randn(sizes or (1, 4, 6, 8))


def forms(name: str, model: Callable[..., Any], x: Tensor, quant: bool = True) -> list[Case]:
    """In float and quantised, both in either layout."""
    cases = [Case(f"{name}-float", model, [x]), Case(f"{name}-float-nhwc", model, [nhwc(x)])]
    if quant:
        q = quantised(x)
        cases += [Case(f"{name}-quant", model, [q]), Case(f"{name}-quant-nhwc", model, [nhwc(q)])]
    return cases


def plain() -> list[Case]:
    cases: list[Case] = []
    x = image()
    function: Callable[..., Any]
    for name, function in {
        "relu": torch.relu,
        "sigmoid": torch.sigmoid,
        "detach": lambda t: torch.relu(t.detach()),
    }.items():
        cases += forms(name, function, x)
    for name, clamp, values in [("hardtanh", nn.Hardtanh(), x), ("relu6", nn.ReLU6(), 5 * x)]:
        cases += forms(name, clamp, values)
        # Eager (engine qnnpack) gives the elements of channels-last tensors in another order.
        cases[-1].means = lambda q, clamp=clamp: quantised(clamp(q.dequantize()))
    cases += forms("to", lambda t: torch.relu(t.to("cpu")), x, quant=False)
    cases += [Case("prelu", nn.PReLU(), [x]), Case("prelu-channels", nn.PReLU(4), [nhwc(x)])]
    for name, dim in [("width", 3), ("last", -1)]:
        cases.append(Case(f"softmax-{name}", nn.Softmax(dim), [x]))
        cases.append(Case(f"log_softmax-{name}", nn.LogSoftmax(dim), [x]))
    binary: dict[str, Any] = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
    for name, function in binary.items():
        other = torch.rand(1, 4, 6, 8) + 0.5
        cases.append(Case(name, function, [x, other]))
        cases.append(Case(f"{name}-nhwc", function, [nhwc(x), nhwc(other)]))
        cases.append(Case(f"{name}-broadcast", function, [x, other[:, :1, :, :1].clone()]))
        cases.append(Case(f"{name}-mixed", function, [nhwc(x), other[:, :, :1, :1].clone()]))
        cases.append(Case(f"{name}-constant", AndConstant(function, other), [x]))
        cases.append(Case(f"{name}-constant-nhwc", AndConstant(function, other), [nhwc(x)]))
    return cases


class AndConstant(nn.Module):
    """function(x, constant), a constant of the model."""

    def __init__(self, function: Callable[..., Any], constant: Tensor) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("constant", constant)

    def forward(self, x: Tensor) -> Any:
        return self.function(x, self.constant)


def shapes() -> list[Case]:
    x = image()
    cases = [
        Case("reshape", lambda t: t.reshape(2, -1), [x]),
        Case("reshape-nhwc", lambda t: t.reshape(1, -1), [nhwc(image(1, 4, 1, 1))]),
        Case("flatten", lambda t: t.flatten(1), [x]),
        Case("flatten-nhwc", lambda t: t.flatten(1), [nhwc(image(1, 4, 1, 1))]),
        Case("flatten-one-channel", lambda t: t.flatten(1), [nhwc(image(1, 1, 4, 5))]),
        Case("slice", lambda t: t[:, :, 1:5], [x]),
        Case("slice-step", lambda t: t[:, :, 1:5:2], [x]),
        Case("slice-negative", lambda t: t[:, :, -3:-1], [x]),
        Case("slice-quant", lambda t: t[:, 1:3], [quantised(x)]),
        Case("size", lambda t: t.reshape(t.size(0), t.size(1), -1), [x]),
        Case("identity-slice", lambda t: torch.relu(t[:, :]), [x]),
        Case("two-results", lambda t: (torch.relu(t), torch.sigmoid(t)), [x]),
    ]
    cases += [Case(f"unsqueeze-{d}", lambda t, d=d: t.unsqueeze(d), [image(2, 3, 4)]) for d in (0, 1, -1)]
    for dim in (0, 1, 2, 3):
        pair = [x, image()]
        cases.append(Case(f"cat-{dim}", lambda a, b, d=dim: torch.cat([a, b], d), pair))
        cases.append(Case(f"cat-{dim}-nhwc", lambda a, b, d=dim: torch.cat([a, b], d), [nhwc(t) for t in pair]))
    cases.append(Case("cat-quant", lambda a, b: torch.cat([a, b], 1), [quantised(x), quantised(image())]))
    for dims, keep in [((2, 3), True), ((2, 3), False), ((1,), True), ((-1,), False), ((1, 2, 3), False)]:
        name = f"mean-{'_'.join(map(str, dims))}{'-kept' if keep else ''}"
        cases.append(Case(name, lambda t, d=dims, k=keep: t.mean(d, k), [x]))
        if keep or {2, 3} <= set(dims):
            cases.append(Case(name + "-nhwc", lambda t, d=dims, k=keep: t.mean(d, k), [nhwc(x)]))
    return cases


def windows() -> list[Case]:
    x = image(1, 4, 8, 8)
    cases = forms("max_pool", nn.MaxPool2d(3, 2, 1), x) + forms("avg_pool", nn.AvgPool2d(2), x)
    cases += forms("avg_pool-uneven", nn.AvgPool2d((2, 3), (1, 2)), x, quant=False)
    cases += forms("adaptive_avg_pool", nn.AdaptiveAvgPool2d(1), x)
    for name, upsample in {
        "size": nn.UpsamplingNearest2d(size=(12, 20)),
        "scale": nn.UpsamplingNearest2d(scale_factor=(2.0, 3.0)),
    }.items():
        cases += forms(f"upsample-{name}", upsample, x)
    convolutions = {
        "plain": nn.Conv2d(4, 6, 3),
        "strided": nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0)),
        "no-bias": nn.Conv2d(4, 6, 1, bias=False),
        "depthwise": nn.Conv2d(4, 4, 3, padding=1, groups=4),
        "transposed": nn.ConvTranspose2d(4, 6, 3, stride=2),
        "transposed-padded": nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1),
    }
    for name, module in convolutions.items():
        cases += forms(f"conv-{name}", module, x, quant=False)
    cases.append(Case("conv-scripted", nn.Conv2d(4, 6, 3), [x], scripted=True))
    cases.append(Case("linear", nn.Linear(16, 5), [image(3, 16)]))
    cases.append(Case("addmm", Addmm(), [image(3, 16)]))
    cases.append(Case("relaxed", nn.Conv2d(4, 6, 3), [x], options={"relax_f32_to_f16": True}))
    for preference in (0, 1, 2):
        cases.append(
            Case(f"preference-{preference}", nn.Conv2d(4, 6, 3), [x], options={"compilation_preference": preference})
        )
    return cases


class Addmm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.linear.bias, x, self.linear.weight.t())


class Quantised(nn.Module):
    """A float module between a quantiser and a dequantiser, converted by eager mode."""

    def __init__(self, inner: nn.Module, sample: Tensor, edges: bool = True) -> None:
        super().__init__()
        body = nn.Sequential(
            torch.ao.quantization.QuantStub(), copy.deepcopy(inner), torch.ao.quantization.DeQuantStub()
        ).eval()
        body.qconfig = torch.ao.quantization.get_default_qconfig("qnnpack")  # type: ignore[no-untyped-call]
        torch.ao.quantization.prepare(body, inplace=True)  # type: ignore[no-untyped-call]
        body(sample)
        torch.ao.quantization.convert(body, inplace=True)  # type: ignore[no-untyped-call]
        self.body = body if edges else body[1]
        self.scale = float(body[0].scale)  # type: ignore[arg-type]
        self.zero_point = int(body[0].zero_point)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Any:
        return self.body(x)


class Sums(nn.Module):
    """x with itself by one of FloatFunctional's operations."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.functional = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x: Tensor) -> Any:
        return getattr(self.functional, self.name)(x, x)


def quantised_modules() -> list[Case]:
    x = image(1, 4, 8, 8)
    fused = torch.ao.quantization.fuse_modules(  # type: ignore[no-untyped-call]
        nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.ReLU()).eval(), [["0", "1"]]
    )
    inner = {
        "conv": nn.Conv2d(4, 6, 3),
        "conv_relu": fused,
        "depthwise": nn.Conv2d(4, 4, 3, groups=4),
        "conv_transpose": nn.ConvTranspose2d(4, 6, 3, stride=2),
        "add": Sums("add"),
        "add_relu": Sums("add_relu"),
        "mul": Sums("mul"),
    }
    cases = []
    for name, module in inner.items():
        whole, core = Quantised(module, x), Quantised(module, x, edges=False)
        cases.append(Case(f"quantised-{name}", whole, [nhwc(x)]))
        cases.append(Case(f"quantised-{name}-core", core, [nhwc(quantised(x, core.scale, core.zero_point))]))
    flat = image(3, 16)
    core = Quantised(nn.Linear(16, 5), flat, edges=False)
    cases.append(Case("quantised-linear", core, [quantised(flat, core.scale, core.zero_point)]))
    cases.append(
        Case(
            "quantize-dequantize",
            lambda t: torch.quantize_per_tensor(t, 0.05, 100, torch.quint8).dequantize(),
            [nhwc(x)],
        )
    )
    return cases


def flexible() -> list[Case]:
    """Sizes that are known when the model is loaded, or only when it runs."""

    def zeros(*sizes: int) -> Tensor:
        return torch.zeros(sizes)

    conv = nn.Conv2d(4, 6, 3, stride=2, padding=1)
    x = image(2, 4, 9, 7)
    cases = [
        Case("load-relu", torch.relu, [x], [zeros(0, 4, 0, 0)]),
        Case("load-conv", conv, [x], [zeros(0, 4, 0, 0)]),
        Case("load-conv-nhwc", conv, [nhwc(x)], [nhwc(zeros(0, 4, 0, 0))]),
        Case("load-conv_transpose", nn.ConvTranspose2d(4, 6, 3, stride=2), [x], [zeros(0, 4, 0, 0)]),
        Case("load-avg_pool", nn.AvgPool2d(2), [image(1, 4, 8, 6)], [zeros(1, 4, 0, 0)]),
        Case("load-linear", nn.Linear(16, 5), [image(3, 16)], [zeros(0, 16)]),
        Case("load-upsample", nn.UpsamplingNearest2d(scale_factor=2.0), [x], [zeros(2, 4, 0, 0)]),
        Case("load-add", torch.add, [x, image(2, 4, 9, 7)], [zeros(0, 4, 0, 7), zeros(0, 4, 0, 7)]),
        Case("load-add-broadcast", torch.add, [x, image(2, 4, 1, 7)], [zeros(0, 4, 0, 7), zeros(0, 4, 1, 7)]),
        Case(
            "load-cat",
            lambda a, b: torch.cat([a, b], 2),
            [x, image(2, 4, 3, 7)],
            [zeros(2, 4, 0, 7), zeros(2, 4, 0, 7)],
        ),
        Case("load-softmax", nn.Softmax(3), [x], [zeros(2, 4, 0, 7)]),
        Case("load-prelu", nn.PReLU(), [x], [zeros(2, 4, 0, 0)]),
        Case("load-flatten", lambda t: t.flatten(1), [image(3, 4, 2, 2)], [zeros(0, 4, 2, 2)]),
        Case("load-slice", lambda t: t[:, 1:3], [x], [zeros(0, 4, 0, 7)]),
    ]
    for name, shape in [("batch", (-1, 4, 9, 7)), ("sizes", (2, 4, -1, -1))]:
        sample = SimpleNamespace(shape=shape, dtype=torch.float32, nnapi_nhwc=False)
        cases.append(Case(f"run-relu-{name}", torch.relu, [x], [sample], [(2, 4, 9, 7)]))
    return cases


def converted_to_something_else() -> list[Case]:
    """What 2.13 converts without a word to a model that means something else."""
    f = nn.functional
    x = image(1, 4, 8, 8)
    transposed, padded = nn.ConvTranspose2d(4, 4, 3, stride=2), nn.ConvTranspose2d(4, 4, 3, stride=2, output_padding=1)
    padded.load_state_dict(transposed.state_dict())
    grouped = nn.ConvTranspose2d(4, 4, 3, stride=2, groups=4)
    other = quantised(image(1, 4, 8, 8), 0.06, 100)

    def average_without_pads(t: Tensor) -> Tensor:
        return f.avg_pool2d(t, 3, 1, 1, count_include_pad=False)

    def joined(a: Tensor, b: Tensor) -> Tensor:
        return quantised(torch.cat([a.dequantize(), b.dequantize()], 1))

    return [
        Case("max_pool-ceil_mode", nn.MaxPool2d(3, 2, ceil_mode=True), [x], means=nn.MaxPool2d(3, 2)),
        Case("avg_pool-ceil_mode", nn.AvgPool2d(3, 2, ceil_mode=True), [x], means=nn.AvgPool2d(3, 2)),
        Case("avg_pool-padded", nn.AvgPool2d(3, 1, 1), [x], means=average_without_pads),
        Case("conv_transpose-output_padding", padded, [x], means=transposed),
        Case("conv_transpose-groups", grouped, [x]),
        Case("slice-uneven-step", lambda t: t[:, :, 0:5:2], [x]),
        Case("slice-step-of-everything", lambda t: torch.relu(t[:, :, ::2]), [x], means=torch.relu),
        Case("slice-beyond-the-end", lambda t: t[:, :, 2:100], [x]),
        Case("slice-channels-nhwc", lambda t: t[:, 1:3], [nhwc(x)]),
        Case("to-int32", lambda t: torch.relu(t).to(torch.int32), [x], means=torch.relu),
        Case("softmax-channels-nhwc", nn.Softmax(1), [nhwc(x)], means=nn.Softmax(2)),
        Case("log_softmax-channels-nhwc", nn.LogSoftmax(1), [nhwc(x)], means=nn.LogSoftmax(2)),
        Case(
            "reshape-nhwc",
            lambda t: t.reshape(1, -1),
            [nhwc(x)],
            means=lambda t: t.permute(0, 2, 3, 1).reshape(1, -1),
        ),
        Case("cat-of-two-scales", lambda a, b: torch.cat([a, b], 1), [quantised(x), other], means=joined),
    ]


GROUPS: dict[str, Callable[[], list[Case]]] = {
    "plain": plain,
    "shapes": shapes,
    "windows": windows,
    "quantised modules": quantised_modules,
    "flexible": flexible,
    "converted to something else": converted_to_something_else,
}


# ------------------------------------------------------------------------------------------------------------- running


def tensors(result: Any) -> list[Tensor]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def difference(got: Tensor, want: Tensor) -> float | str:
    """The largest, in steps where tensors are quantised; else relative to the largest value. Text if types differ."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
    if got.is_quantized:
        if abs(got.q_scale() - want.q_scale()) > 1e-9 or got.q_zero_point() != want.q_zero_point():
            return (
                f"quantised by {got.q_scale()} and {got.q_zero_point()}, not {want.q_scale()} and {want.q_zero_point()}"
            )
        return float((got.int_repr().int() - want.int_repr().int()).abs().max())
    return float((got - want).abs().max() / want.abs().max().clamp(min=1))


def compare(got: list[Tensor], want: list[Tensor]) -> float | str:
    found = [difference(g, w) for g, w in zip(got, want, strict=True)]
    texts = [d for d in found if isinstance(d, str)]
    return texts[0] if texts else max(d for d in found if not isinstance(d, str))


def run(case: Case) -> dict[str, Any]:
    model = case.model if isinstance(case.model, nn.Module) else Function(case.model)
    model.eval()
    with torch.no_grad():
        traced: Any = torch.jit.script(model) if case.scripted else torch.jit.trace(model, tuple(case.inputs))  # type: ignore[no-untyped-call]
        kinds = sorted({node.kind() for node in torch.jit.freeze(traced).graph.nodes()})
        answer: dict[str, Any] = {"kinds": kinds}
        converted = convert_model_to_nnapi(  # type: ignore[no-untyped-call]
            traced, case.convert or case.inputs, return_shapes=case.return_shapes, **case.options
        )
        try:
            first, got = tensors(converted(*case.inputs)), tensors(converted(*case.inputs))
        except RuntimeError as error:
            return answer | {"refused": str(error).strip().splitlines()[-1]}
        answer["repeats"] = compare(first, got)
        answer["eager"] = compare(got, tensors(model(*case.inputs)))
        if case.means:
            answer["means"] = compare(got, tensors(case.means(*case.inputs)))
        return answer


def main() -> None:
    warnings.simplefilter("ignore")
    torch.backends.quantized.engine = "qnnpack"
    for group, make in GROUPS.items():
        torch.manual_seed(7)
        for case in make():
            try:
                result = run(case)
            except Exception as error:  # whatever the converter says is what this case has to tell
                result = {"not_converted": f"{type(error).__name__}: {error}"}
            print(json.dumps({"group": group, "name": case.name} | result), flush=True)


if __name__ == "__main__":
    main()
