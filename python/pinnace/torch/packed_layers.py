"""Layers with packed weights, in operators that torch.export can follow and on integers as they are stored.

torch.ao's dynamic quantisation (`quantize_dynamic`) holds 8-bit integers in packed objects. Each of its layers
quantises the whole of what it reads by its own range, multiplies integers, and gives floats: so do the modules here.
torch.ao's embeddings are dequantised row by row. torchao's 4-bit weights for CPUs are in the order that one processor's
kernel wants them in; its results say which integers they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from pinnace import _core

if TYPE_CHECKING:
    from torch import Tensor

# Below it fbgemm and QNNPACK take no scale: ATen/native/quantized/cpu/QuantUtils.h.
_LEAST_SCALE = 6.1e-5
_PACKAGE = "torch.ao.nn"


class DynamicLinear(nn.Module):
    """What quantized::linear_dynamic does with a packed weight."""

    weight: Tensor
    bias: Tensor | None
    scale: Tensor
    sums: Tensor

    def __init__(self, packed: Any, reduce_range: bool = True, relu: bool = False) -> None:
        """packed: a ScriptObject of torch.classes.quantized. ConversionError: its weights have zero points."""
        super().__init__()
        weight, bias = packed.unpack()
        self.relu = relu
        self.register_buffer("bias", None if bias is None else bias.detach().clone())
        if not weight.is_quantized:  # linear_dynamic_fp16: floats of 16 bits, unpacked to 32
            self.levels = 0
            self.register_buffer("weight", weight.detach().to(torch.float16))
            return
        if weight.qscheme() == torch.per_tensor_affine:
            scale, zero = torch.tensor(weight.q_scale()), torch.tensor(weight.q_zero_point())
        else:
            scale, zero = weight.q_per_channel_scales().to(torch.float32), weight.q_per_channel_zero_points()
        if torch.any(zero != 0):
            raise _core.ConversionError("a dynamically quantised layer whose weights have zero points")
        stored = weight.int_repr().contiguous()
        self.register_buffer("weight", stored)
        self.register_buffer("scale", scale)
        self.register_buffer("sums", stored.sum(1, dtype=torch.int32))
        self.levels = 255
        # Kernels take 127 steps where 16-bit sums could overflow; which do, an input tells.
        probe = torch.linspace(-0.7, 1, stored.shape[1])[None]
        run = torch.ops.quantized.linear_dynamic
        with torch.no_grad():
            wanted = run(probe, packed, reduce_range)
            self.levels = min((127, 255), key=lambda levels: float((self._product(probe, levels) - wanted).abs().max()))

    def forward(self, x: Tensor) -> Tensor:
        """As torch.ops.quantized.linear_dynamic."""
        if not self.levels:
            made = functional.linear(x, self.weight.to(torch.float32), self.bias)
        else:
            made = self._product(x, self.levels)
        return torch.relu(made) if self.relu else made

    def _product(self, x: Tensor, levels: int) -> Tensor:
        operators = _operators()
        flat = x.reshape(-1, x.shape[-1])
        scale, zero = operators.choose_qparams.tensor(flat, 0, levels, _LEAST_SCALE, torch.uint8)
        # As int8, with a zero point that is 128 lower: the same differences from it.
        zero = zero - 128
        q = operators.quantize_per_tensor.tensor(flat, scale, zero, -128, 127, torch.int8)
        sums = torch._int_mm(q, self.weight.t()) - zero.to(torch.int32) * self.sums
        made = sums.to(torch.float32) * (scale.to(torch.float32) * self.scale)
        if self.bias is not None:
            made = made + self.bias
        return made.reshape(*x.shape[:-1], made.shape[-1])


class Cell(nn.Module):
    """Weights of one direction of one layer."""

    def __init__(self, params: Any) -> None:
        """params: a ScriptObject of torch.classes.rnn.CellParamsBase."""
        super().__init__()
        kind, _, _, integers, packed = params.__getstate__()[0]
        if kind not in ("quantized_dynamic", "quantized_fp16"):
            raise _core.ConversionError(f"a recurrent layer with weights of kind {kind!r}")
        reduce_range = bool(integers[0]) if integers else True
        self.input = DynamicLinear(packed[0], reduce_range)
        self.hidden = DynamicLinear(packed[1], reduce_range)


def _lstm_step(hidden: DynamicLinear) -> Callable[..., Any]:
    def step(state: tuple[Tensor, Tensor], gates: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
        h, c = state
        i, f, g, o = (gates + hidden(h)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return (h, c), h.clone()

    return step


def _gru_step(hidden: DynamicLinear) -> Callable[..., Any]:
    def step(state: tuple[Tensor], gates: Tensor) -> tuple[tuple[Tensor], Tensor]:
        (h,) = state
        own, other = gates.chunk(3, -1), hidden(h).chunk(3, -1)
        reset, update = torch.sigmoid(own[0] + other[0]), torch.sigmoid(own[1] + other[1])
        new = torch.tanh(own[2] + reset * other[2])
        h = (h - new) * update + new
        return (h,), h.clone()

    return step


def _scanned(
    make: Callable[[DynamicLinear], Callable[..., Any]], hidden: DynamicLinear, states: list[Tensor], gates: Tensor
) -> tuple[tuple[Tensor, ...], Tensor]:
    """A step for each row of gates: the last states, and what each step gives. torch's own function for it, which
    compiles the step, would fix the number of rows."""
    own = {name: tensor for name, tensor in hidden._buffers.items() if tensor is not None}
    step = make(hidden)

    def combine(*given: Tensor) -> tuple[Tensor, ...]:
        count = len(states)
        try:
            hidden._buffers.update(zip(own, given[count + 1 :], strict=True))  # as the step's graph has them
            made, y = step(tuple(given[:count]), given[count])
            return (*made, y)
        finally:
            hidden._buffers.update(own)

    *last, rows = torch.ops.higher_order.scan(combine, states, [gates], tuple(own.values()))
    return tuple(last), rows


def recurrent(
    x: Tensor, states: Sequence[Tensor], cells: Sequence[Any], layers: int, bidirectional: bool, batch_first: bool
) -> tuple[Tensor, ...]:
    """torch.quantized_lstm of two states, torch.quantized_gru of one: output, then the states after the last step."""
    make = _lstm_step if len(states) == 2 else _gru_step
    x = x.transpose(0, 1) if batch_first else x
    last: list[tuple[Tensor, ...]] = []
    directions = 2 if bidirectional else 1
    for layer in range(layers):
        parts = []
        for direction in range(directions):
            place = layer * directions + direction
            gates = cells[place].input(x)
            gates = gates.flip(0) if direction else gates
            made, y = _scanned(make, cells[place].hidden, [s[place] for s in states], gates)
            last.append(made)
            parts.append(y.flip(0) if direction else y)
        x = torch.cat(parts, -1) if bidirectional else parts[0]
    return (x.transpose(0, 1) if batch_first else x), *(torch.stack(s) for s in zip(*last, strict=True))


class _Recurrent(nn.Module):
    """For torch.ao.nn.quantized.dynamic.LSTM and GRU."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.cells = nn.ModuleList(Cell(each.param) for each in layer._all_weight_values)
        self.layers, self.size = layer.num_layers, layer.hidden_size
        self.bidirectional, self.batch_first = layer.bidirectional, layer.batch_first
        self.states = 2 if type(layer).__name__ == "LSTM" else 1

    def forward(self, x: Tensor, hx: Any = None) -> Any:
        if not isinstance(x, torch.Tensor):
            raise _core.ConversionError("packed sequences in a dynamically quantised layer")
        if hx is None:
            batch = x.shape[0 if self.batch_first else 1]
            hx = x.new_zeros(self.layers * (2 if self.bidirectional else 1), batch, self.size)
            hx = (hx, hx) if self.states == 2 else hx
        states = hx if self.states == 2 else (hx,)
        y, *last = recurrent(x, states, list(self.cells), self.layers, self.bidirectional, self.batch_first)
        return y, tuple(last) if self.states == 2 else last[0]


class _Step(nn.Module):
    """For torch.ao.nn.quantized.dynamic.LSTMCell and GRUCell."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.input = DynamicLinear(layer._packed_weight_ih)
        self.hidden = DynamicLinear(layer._packed_weight_hh)
        self.size = layer.hidden_size
        self.states = 2 if type(layer).__name__ == "LSTMCell" else 1

    def forward(self, x: Tensor, hx: Any = None) -> Any:
        if hx is None:
            hx = x.new_zeros(x.shape[0], self.size)
            hx = (hx, hx) if self.states == 2 else hx
        make = _lstm_step if self.states == 2 else _gru_step
        made, _ = make(self.hidden)(hx if self.states == 2 else (hx,), self.input(x))
        return made if self.states == 2 else made[0]


class _Rows(nn.Module):
    """For torch.ao.nn.quantized.Embedding: rows of 8 bits, whose zero points are floats."""

    rows: Tensor
    scales: Tensor
    offsets: Tensor

    def __init__(self, layer: Any) -> None:
        super().__init__()
        weight = layer.weight()
        scales = weight.q_per_channel_scales().to(torch.float32)
        self.register_buffer("rows", weight.int_repr().contiguous())
        self.register_buffer("scales", scales[:, None])
        self.register_buffer("offsets", -(scales * weight.q_per_channel_zero_points())[:, None])

    def forward(self, places: Tensor) -> Tensor:
        real = functional.embedding(places, self.rows).to(torch.float32)
        scales, offsets = functional.embedding(places, self.scales), functional.embedding(places, self.offsets)
        return real * scales + offsets


class FourBitLinear(nn.Module):
    """For nn.Linear with torchao's Int4OpaqueTensor: weights (q - 8) * scale + zero, in groups of columns."""

    weight: Tensor
    scale: Tensor
    zero: Tensor
    factor: Tensor | None

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        packed: Any = layer.weight
        rows, columns = packed.shape
        self.size = int(packed.block_size[-1])
        both = packed.scale_and_zero.detach().to(torch.float32)  # [groups, rows, 2]
        self.register_buffer("weight", _four_bits(packed.qdata, rows, columns, self.size))
        self.register_buffer("scale", both[..., 0].t().contiguous())
        self.register_buffer("zero", both[..., 1].contiguous())
        self.register_buffer("factor", None if packed.act_pre_scale is None else packed.act_pre_scale.detach())
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        real = torch.ops.torchao.dequantize_affine
        x, dtype = (x if self.factor is None else x * self.factor), x.dtype
        wide = x.to(torch.float32)
        made = functional.linear(wide, real(self.weight, [1, self.size], self.scale, None, torch.int8, -8, 7))
        made = made + wide.reshape(*x.shape[:-1], -1, self.size).sum(-1) @ self.zero
        made = made.to(dtype)
        return made if self.bias is None else made + self.bias


def _four_bits(packed: Tensor, rows: int, columns: int, group: int) -> Tensor:
    """The integers q - 8 [rows, columns] of what torch.ops.aten._weight_int4pack_mm_for_cpu takes.

    Products by 1, 32, 32^2 and 32^3 give four of them at a time, exact in float32.
    """
    plain = torch.ones(columns // group, rows, 2)
    plain[..., 1] = 0
    run = torch.ops.aten._weight_int4pack_mm_for_cpu
    places = torch.arange(columns)
    made = torch.empty(columns, rows, dtype=torch.int8)
    for first in range(0, columns, 1024):
        own = places[first : first + 1024]
        given = torch.zeros((len(own) + 3) // 4, columns)
        given[(own - first) // 4, own] = 32.0 ** ((own - first) % 4)
        sums = run(given, packed, group, plain).to(torch.int32)
        for digit in range(4):
            value = (sums + 16) % 32 - 16
            sums = (sums - value) // 32
            made[own[digit::4]] = value[: len(own[digit::4])].to(torch.int8)
    return made.t().contiguous()


def _is_opaque(layer: nn.Module) -> bool:
    weight = getattr(layer, "weight", None)
    return type(weight).__name__ == "Int4OpaqueTensor" and getattr(weight, "act_mapping_type", None) is None


def has_packed_layers(module: nn.Module) -> bool:
    """Whether packed_as_operators() has something to do, perhaps."""
    return any(type(m).__module__.startswith(_PACKAGE) or _is_opaque(m) for m in module.modules())


def _operators() -> Any:
    """torch.ops.quantized_decomposed, which torch declares only when asked."""
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed


def _replacement(layer: nn.Module) -> nn.Module | None:
    kind = type(layer)
    if isinstance(layer, nn.Linear) and _is_opaque(layer):
        return FourBitLinear(layer)
    if not kind.__module__.startswith(_PACKAGE):
        return None
    own: Any = layer
    if ".dynamic" not in kind.__module__:
        rows = kind.__name__ == "Embedding" and ".quantized." in kind.__module__
        return _Rows(own) if rows and own._packed_params.dtype == torch.quint8 else None
    if kind.__name__ in ("Linear", "LinearReLU"):
        old = own.version is None or own.version < 4
        return DynamicLinear(own._packed_params._packed_params, not old, kind.__name__ == "LinearReLU")
    if kind.__name__ in ("LSTM", "GRU"):
        return _Recurrent(own)
    return _Step(own) if kind.__name__ in ("LSTMCell", "GRUCell") else None


def has_static_layers(module: nn.Module) -> bool:
    """Whether layers of torch.ao read or make quantised tensors, which torch.export knows nothing of."""
    return any(
        type(m).__module__.startswith((f"{_PACKAGE}.quantized.", f"{_PACKAGE}.intrinsic.quantized."))
        and ".dynamic" not in type(m).__module__
        and ".reference" not in type(m).__module__
        and type(m).__name__ not in ("Embedding", "LinearPackedParams", "EmbeddingPackedParams")
        for m in module.modules()
    )


@contextlib.contextmanager
def packed_as_operators(module: nn.Module) -> Iterator[nn.Module]:
    """For a block that exports: the module with layers that have packed weights replaced, itself if it is one."""
    own = _replacement(module)
    if own is not None:
        yield own.eval()
        return
    found = [
        (parent, name, child)
        for parent in module.modules()
        for name, child in parent.named_children()
        if type(child).__module__.startswith(_PACKAGE) or _is_opaque(child)
    ]
    made: dict[int, nn.Module | None] = {}
    try:
        for parent, name, child in found:
            if id(child) not in made:
                replacement = _replacement(child)
                made[id(child)] = None if replacement is None else replacement.eval()
            if (new := made[id(child)]) is not None:
                parent._modules[name] = new
        yield module
    finally:
        for parent, name, child in found:
            parent._modules[name] = child


__all__ = ["Cell", "DynamicLinear", "has_packed_layers", "has_static_layers", "packed_as_operators", "recurrent"]
