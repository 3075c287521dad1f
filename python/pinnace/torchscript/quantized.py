"""TorchScript of eager-mode quantised models, as a module that torch.export can follow.

Each node of the frozen graph becomes what it means: dequantise what it reads, the float operator, quantise what it
makes, which is the form that the importer folds into operators on integers. Packed weights come out as the integers
that were stored. Table: QUANTIZED for the quantized:: operators, KEEPS for aten:: ones that work on quantised tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from pinnace import _core
from pinnace.torch.module_names import value_names
from pinnace.torch.packed_layers import Cell, DynamicLinear, recurrent

if TYPE_CHECKING:
    from torch import Tensor

_decomposed: Any = None


def _operators() -> Any:
    """torch.ops.quantized_decomposed, which torch declares only when asked."""
    global _decomposed
    if _decomposed is None:
        import torch.ao.quantization.fx._decomposed

        _decomposed = torch.ops.quantized_decomposed
    return _decomposed


LISTING = "<torchscript>"  # the file that the lines of QuantizedScript's steps are in
_RANGES = {torch.quint8: (0, 255, torch.uint8), torch.qint8: (-128, 127, torch.int8)}
_DTYPES = {12: torch.qint8, 13: torch.quint8}  # c10's numbers


class Quantized(NamedTuple):
    """A quantised tensor while the graph is followed."""

    stored: Tensor
    scale: float
    zero_point: int
    dtype: torch.dtype

    def real(self) -> Tensor:
        """Dequantised."""
        low, high, stored = _RANGES[self.dtype]
        made: Tensor = _operators().dequantize_per_tensor(self.stored, self.scale, self.zero_point, low, high, stored)
        return made


def quantize(value: Tensor, scale: float, zero_point: int, dtype: torch.dtype = torch.quint8) -> Quantized:
    """A float tensor, quantised per tensor."""
    low, high, stored = _RANGES[dtype]
    scale, zero_point = float(scale), int(zero_point)
    made = _operators().quantize_per_tensor(value, scale, zero_point, low, high, stored)
    return Quantized(made, scale, zero_point, dtype)


def _real(value: Any) -> Any:
    if isinstance(value, Quantized):
        return value.real()
    if isinstance(value, list):
        return [_real(v) for v in value]
    return value


class Packed(torch.nn.Module):
    """What a packed parameter object holds: weight, bias and, of convolutions, the attributes."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, packed: Any) -> None:
        """`packed`: a ScriptObject of torch.classes.quantized."""
        super().__init__()
        name = packed._type().qualified_name() if hasattr(packed, "_type") else ""
        unpacked = packed.unpack()
        weight, bias = unpacked[0], unpacked[1]
        self.linear = "Linear" in name
        self.per_channel = weight.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric)
        self.register_buffer("weight", weight.int_repr().contiguous())
        self.register_buffer("bias", None if bias is None else bias.detach().clone())
        if self.per_channel:
            self.axis = int(weight.q_per_channel_axis())
            self.register_buffer("scales", weight.q_per_channel_scales().to(torch.float32))
            self.register_buffer("zero_points", weight.q_per_channel_zero_points())
        else:
            self.scale, self.zero_point = float(weight.q_scale()), int(weight.q_zero_point())
        if hasattr(packed, "stride"):
            self.stride, self.padding = list(packed.stride()), list(packed.padding())
            self.dilation, self.groups = list(packed.dilation()), int(packed.groups())
            self.output_padding, self.transposed = list(packed.output_padding()), bool(packed.transpose())

    def real_weight(self) -> Tensor:
        """Dequantised."""
        arguments = (
            (self.weight, self.scales, self.zero_points, self.axis)
            if self.per_channel
            else (self.weight, self.scale, self.zero_point)
        )
        if self.per_channel:
            made: Tensor = _operators().dequantize_per_channel(*arguments, -128, 127, torch.int8)
        else:
            made = _operators().dequantize_per_tensor(*arguments, -128, 127, torch.int8)
        return made


def _unpacked(value: Any, node: Any) -> torch.nn.Module:
    """What a packed object holds, for what reads the constant that it is."""
    if "CellParams" in value._type().qualified_name():
        return Cell(value)
    readers = [use.user for use in node.output().uses()]
    dynamic = [n for n in readers if n.kind().startswith("quantized::linear") and "_dynamic" in n.kind()]
    if not dynamic:
        return Packed(value)
    given = [i.toIValue() for i in dynamic[0].inputs()]
    return DynamicLinear(value, bool(given[2]) if len(given) > 2 else False, "relu" in dynamic[0].kind())


def _dynamic(x: Tensor, layer: DynamicLinear, reduce_range: bool = False) -> Tensor:
    made: Tensor = layer(x)
    return made


def _convolution(x: Quantized, packed: Packed, scale: float, zero_point: int, relu: bool = False) -> Quantized:
    spatial = len(packed.stride)
    if packed.transposed:
        f = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)[spatial - 1]
        made = f(
            x.real(),
            packed.real_weight(),
            packed.bias,
            packed.stride,
            packed.padding,
            packed.output_padding,
            packed.groups,
            packed.dilation,
        )
    else:
        g = (functional.conv1d, functional.conv2d, functional.conv3d)[spatial - 1]
        made = g(
            x.real(), packed.real_weight(), packed.bias, packed.stride, packed.padding, packed.dilation, packed.groups
        )
    return quantize(torch.relu(made) if relu else made, scale, zero_point, x.dtype)


def _convolution_relu(x: Quantized, packed: Packed, scale: float, zero_point: int) -> Quantized:
    return _convolution(x, packed, scale, zero_point, True)


def _linear(x: Quantized, packed: Packed, scale: float, zero_point: int) -> Quantized:
    return quantize(functional.linear(x.real(), packed.real_weight(), packed.bias), scale, zero_point, x.dtype)


def _linear_relu(x: Quantized, packed: Packed, scale: float, zero_point: int) -> Quantized:
    made = functional.linear(x.real(), packed.real_weight(), packed.bias)
    return quantize(torch.relu(made), scale, zero_point, x.dtype)


def _binary(f: Callable[[Tensor, Tensor], Tensor], relu: bool) -> Callable[..., Quantized]:
    def run(a: Quantized, b: Quantized, scale: float, zero_point: int) -> Quantized:
        made = f(a.real(), b.real())
        return quantize(torch.relu(made) if relu else made, scale, zero_point, a.dtype)

    return run


def _unary(f: Callable[..., Tensor]) -> Callable[..., Quantized]:
    """Operators whose last two arguments are the scale and zero point of the result."""

    def run(x: Quantized, *arguments: Any) -> Quantized:
        *others, scale, zero_point = arguments
        return quantize(f(x.real(), *others), scale, zero_point, x.dtype)

    return run


def _concatenate(relu: bool) -> Callable[..., Quantized]:
    def run(parts: list[Quantized], dim: int, scale: float | None = None, zero_point: int | None = None) -> Quantized:
        made = torch.cat([p.real() for p in parts], dim)
        first = parts[0]
        return quantize(
            torch.relu(made) if relu else made,
            first.scale if scale is None else scale,
            first.zero_point if zero_point is None else zero_point,
            first.dtype,
        )

    return run


QUANTIZED: dict[str, Callable[..., Any]] = {
    **{f"conv{n}d": _convolution for n in (1, 2, 3)},
    **{f"conv{n}d_relu": _convolution_relu for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _convolution for n in (1, 2, 3)},
    "linear": _linear,
    "linear_dynamic": _dynamic,
    "linear_dynamic_fp16": _dynamic,
    "linear_relu": _linear_relu,
    "linear_relu_dynamic": _dynamic,
    "add": _binary(torch.add, False),
    "add_relu": _binary(torch.add, True),
    "mul": _binary(torch.mul, False),
    "mul_relu": _binary(torch.mul, True),
    "cat": _concatenate(False),
    "cat_relu": _concatenate(True),
    "hardswish": _unary(functional.hardswish),
    "leaky_relu": _unary(lambda x, slope, inplace: functional.leaky_relu(x, slope)),
    "sigmoid": _unary(torch.sigmoid),
    "softmax": _unary(lambda x, dim: torch.softmax(x, dim)),
    "layer_norm": _unary(lambda x, shape, w, b, eps: functional.layer_norm(x, shape, w, b, eps)),
    "instance_norm": _unary(lambda x, w, b, eps: functional.instance_norm(x, weight=w, bias=b, eps=eps)),
    "group_norm": _unary(lambda x, groups, w, b, eps: functional.group_norm(x, groups, w, b, eps)),
}

# aten:: operators that give a quantised tensor the quantisation of the one that they read.
KEEPS = frozenset(
    [
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "avg_pool2d",
        "avg_pool3d",
        "channel_shuffle",
        "chunk",
        "clamp",
        "clamp_max",
        "clamp_min",
        "clone",
        "constant_pad_nd",
        "contiguous",
        "detach",
        "dropout",
        "dropout_",
        "expand",
        "feature_dropout",
        "flatten",
        "flip",
        "hardtanh",
        "hardtanh_",
        "index_select",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "mean",
        "narrow",
        "pad",
        "permute",
        "pixel_shuffle",
        "pixel_unshuffle",
        "reflection_pad1d",
        "reflection_pad2d",
        "relu",
        "relu6",
        "relu6_",
        "relu_",
        "repeat",
        "replication_pad2d",
        "reshape",
        "select",
        "slice",
        "split",
        "squeeze",
        "stack",
        "t",
        "transpose",
        "unflatten",
        "unsqueeze",
        "upsample_bilinear2d",
        "upsample_nearest1d",
        "upsample_nearest2d",
        "upsample_nearest3d",
        "view",
    ]
)
# Those whose result has a quantisation of its own for quint8: scale, zero point.
FIXED = {"sigmoid": (1 / 256, 0), "hardsigmoid": (1 / 256, 0), "tanh": (1 / 128, 128)}

_STRUCTURE = frozenset(
    [
        "prim::Constant",
        "prim::ListConstruct",
        "prim::TupleConstruct",
        "prim::ListUnpack",
        "prim::TupleUnpack",
        "prim::NumToTensor",
        "aten::Int",
        "aten::Float",
        "aten::ScalarImplicit",
        "aten::size",
        "aten::quantize_per_tensor",
        "aten::dequantize",
    ]
)


def source_of_node(node: Any) -> str:
    """ "file:line" of the innermost frame outside torch, as far as the trace recorded one; else empty."""
    frames = re.findall(r"^(\S.*)\((\d+)\): ", node.sourceRange(), re.MULTILINE)
    own = [f for f in frames if "/torch/" not in f[0]] or frames
    return f"{own[0][0]}:{own[0][1]}" if own else ""


def _name(node: Any) -> str:
    return next((str(o.debugName()) for o in node.outputs()), "")


def input_step(script: Any) -> float:
    """The largest scale that a float value is quantised with in the graph, edges included; 0 if none is."""
    scales = [0.0]
    for node in script.inlined_graph.nodes():
        if node.kind() == "aten::quantize_per_tensor":
            scale = list(node.inputs())[1].toIValue()
            scales.append(float(scale) if scale is not None else 0.0)
    return max(scales)


class QuantizedScript(torch.nn.Module):
    """Runs the flat graph of a frozen ScriptModule. Quantised inputs are given as the integers they store."""

    def __init__(self, frozen: Any, examples: Sequence[Tensor]) -> None:
        """ConversionError with every node that this table lacks. `examples`: for inputs that are quantised, how."""
        super().__init__()
        self._graph = frozen.graph
        self._formats = [(t.q_scale(), t.q_zero_point(), t.dtype) if t.is_quantized else None for t in examples]
        takes = len(list(self._graph.inputs())) - 1
        if takes != len(examples):
            raise _core.InvalidArgument(f"example_inputs has {len(examples)} tensors, the module takes {takes}")
        self._constants: dict[str, Any] = {}
        self._made: dict[str, str] = {}  # by value of the script: the importer's name for its integers
        problems = []
        for node in self._graph.nodes():
            if node.kind() == "prim::Constant":
                self._add_constant(node)
            elif why := self._refusal(node):
                problems.append(_core.NodeProblem(_name(node), node.kind(), source_of_node(node), why))
        self._nodes = [n for n in self._graph.nodes() if n.kind() != "prim::Constant"]
        # A line for each node: what torch.export records as the place of an operator is then the node's number.
        lines = ["def forward(run):", *(f"    run({i})" for i in range(len(self._nodes)))]
        scope: dict[str, Any] = {}
        exec(compile("\n".join(lines), LISTING, "exec"), scope)
        self._steps = scope["forward"]
        if problems:
            kinds = ", ".join(sorted({p.op for p in problems}))
            error = _core.ConversionError(f"{len(problems)} nodes of the TorchScript graph cannot be imported: {kinds}")
            error.nodes = problems
            raise error

    def name_sources(self, program: torch.export.ExportedProgram) -> None:
        """Gives the nodes of this module's export the user's lines in place of this file's; run_on() then knows what
        the importer calls the integers that each node of the script makes."""
        names = value_names(program)
        for node in program.graph.nodes:
            found = re.search(rf'File "{LISTING}", line (\d+)', node.meta.get("stack_trace") or "")
            made_by = self._nodes[int(found[1]) - 2] if found else None
            source = "" if made_by is None else source_of_node(made_by)
            quantizes = ".quantize_per_tensor" in str(node.target) and node.name in names
            if quantizes and made_by is not None and made_by.outputsSize() == 1:
                self._made[made_by.output().debugName()] = names[node.name]
            file, _, line = source.rpartition(":")
            node.meta["stack_trace"] = f'  File "{file}", line {line}, in forward\n' if file else ""

    def run_on(self, inputs: Sequence[Tensor], given: Mapping[str, Tensor]) -> tuple[Any, dict[str, Tensor]]:
        """The script's own operators, one after the other, with given integers in place of those that it makes: what it
        returns, and by name what each node has made, or would have."""
        values: dict[str, Any] = {}
        own: dict[str, Tensor] = {}
        for value, tensor in zip(list(self._graph.inputs())[1:], inputs, strict=True):
            values[value.debugName()] = tensor
        for node in self._graph.nodes():
            arguments = [values[v.debugName()] for v in node.inputs()]
            made = _run_by_torch(node, arguments)
            if node.outputsSize() != 1:
                values.update(zip((o.debugName() for o in node.outputs()), made, strict=True))
                continue
            name = node.output().debugName()
            known = self._made.get(name, "")
            if known and isinstance(made, torch.Tensor) and made.is_quantized:
                own[known] = made.int_repr()
                if known in given and given[known].shape == made.shape:
                    made = torch._make_per_tensor_quantized_tensor(given[known], made.q_scale(), made.q_zero_point())
            values[name] = made
        results = [values[v.debugName()] for v in self._graph.outputs()]
        return results[0] if len(results) == 1 else tuple(results), own

    def _add_constant(self, node: Any) -> None:
        output = node.output()
        value = output.toIValue()
        name = f"constant_{len(self._constants)}"
        if isinstance(value, torch.ScriptObject):
            value = _unpacked(value, node)
            self.add_module(name, value)
        elif isinstance(value, torch.Tensor):
            value = value.detach()
            if value.is_quantized:
                value = Quantized(value.int_repr(), value.q_scale(), value.q_zero_point(), value.dtype)
            else:
                self.register_buffer(name, value.clone())
                value = getattr(self, name)
        self._constants[output.debugName()] = value

    @staticmethod
    def _refusal(node: Any) -> str:
        kind = node.kind()
        namespace, _, name = kind.partition("::")
        if next(node.blocks(), None) is not None:
            return "control flow in a quantised TorchScript model"
        if kind in _STRUCTURE or namespace == "aten":
            return ""
        if namespace == "quantized":
            return "" if name in QUANTIZED else "a quantised operator without a meaning here"
        return "not a node of a frozen trace"

    def forward(self, *inputs: Tensor) -> Any:
        """The graph's result: tensors, quantised ones as the integers they store."""
        values = dict(self._constants)
        names = [v.debugName() for v in self._graph.inputs()][1:]
        for name, tensor, form in zip(names, inputs, self._formats, strict=True):
            values[name] = tensor if form is None else Quantized(tensor, *form)
        self._steps(lambda i: self._run(self._nodes[i], values))
        results = [values[v.debugName()] for v in self._graph.outputs()]
        return _stored(results[0] if len(results) == 1 else tuple(results))

    def _run(self, node: Any, values: dict[str, Any]) -> None:
        arguments = [values[v.debugName()] for v in node.inputs()]
        made = self._result(node, arguments)
        if node.outputsSize() == 1:
            values[node.output().debugName()] = made
        else:
            for output, value in zip(node.outputs(), made, strict=True):
                values[output.debugName()] = value
        if node.kind().endswith("_") and isinstance(arguments[0], Quantized):  # it was written in place
            for name, value in values.items():
                if value is arguments[0]:
                    values[name] = made

    @staticmethod
    def _result(node: Any, arguments: list[Any]) -> Any:
        namespace, _, name = node.kind().partition("::")
        if namespace == "prim":
            if name in ("ListConstruct", "TupleConstruct"):
                return arguments if name == "ListConstruct" else tuple(arguments)
            return arguments[0]
        if namespace == "quantized":
            return QUANTIZED[name](*arguments)
        if name in ("quantized_lstm", "quantized_gru"):
            x, states, cells, _, layers, _, _, bidirectional, batch_first = arguments[:9]
            return recurrent(
                x, states if name.endswith("lstm") else [states], cells, layers, bidirectional, batch_first
            )
        if name == "quantize_per_tensor":
            value, scale, zero_point, dtype = arguments
            return quantize(value, scale, zero_point, _DTYPES[dtype])
        if name == "dequantize":
            return _real(arguments[0])
        if name in ("Int", "Float", "ScalarImplicit"):
            return arguments[0] if name == "ScalarImplicit" else (int if name == "Int" else float)(arguments[0])
        if name == "size":
            shape = (arguments[0].stored if isinstance(arguments[0], Quantized) else arguments[0]).shape
            return shape[arguments[1]] if len(arguments) > 1 else list(shape)
        return _call(node, name, arguments)


def _run_by_torch(node: Any, arguments: list[Any]) -> Any:
    """A node's result, or results, by the operator that it names."""
    namespace, _, name = node.kind().partition("::")
    if namespace == "prim":
        if name == "Constant":
            return node.output().toIValue()
        if name in ("ListConstruct", "TupleConstruct"):
            return arguments if name == "ListConstruct" else tuple(arguments)
        return arguments[0]
    if name in ("Int", "Float", "ScalarImplicit"):
        return arguments[0] if name == "ScalarImplicit" else (int if name == "Int" else float)(arguments[0])
    schema = torch._C.parse_schema(node.schema())
    overload = getattr(getattr(getattr(torch.ops, namespace), name), schema.overload_name or "default")
    given = list(zip(arguments, schema.arguments, strict=True))
    return overload(
        *(a for a, declared in given if not declared.kwarg_only),
        **{declared.name: a for a, declared in given if declared.kwarg_only},
    )


def _call(node: Any, name: str, arguments: list[Any]) -> Any:
    """An aten:: operator by its schema; on quantised tensors by its meaning on the numbers they stand for."""
    quantized = next((a for a in arguments if isinstance(a, Quantized)), None)
    if quantized is None and isinstance(arguments[0], list):
        quantized = next((a for a in arguments[0] if isinstance(a, Quantized)), None)
    if quantized is not None and name == "cat":
        return _concatenate(False)(*arguments)
    if quantized is not None and name not in KEEPS and name.rstrip("_") not in FIXED:
        _refuse(node, "an operator on a quantised tensor without a meaning here")
    schema = torch._C.parse_schema(node.schema())
    # In place on a dequantised copy would be lost: the plain form gives the result, and the caller puts it back.
    plain = name.rstrip("_") if quantized is not None else name
    packet = getattr(torch.ops.aten, plain)
    overload = getattr(packet, schema.overload_name or "default")
    positional = [_real(a) for a, s in zip(arguments, schema.arguments, strict=True) if not s.kwarg_only]
    keywords = {s.name: _real(a) for a, s in zip(arguments, schema.arguments, strict=True) if s.kwarg_only}
    made = overload(*positional, **keywords)
    if quantized is None:
        return made
    fixed = FIXED.get(plain)
    if fixed is not None and quantized.dtype != torch.quint8:
        _refuse(node, "of this type", str(quantized.dtype))
    scale, zero_point = fixed or (quantized.scale, quantized.zero_point)
    if isinstance(made, (list, tuple)):
        return [quantize(m, scale, zero_point, quantized.dtype) for m in made]
    return quantize(made, scale, zero_point, quantized.dtype)


def _refuse(node: Any, rule: str, value: str = "") -> None:
    error = _core.ConversionError(f"{node.kind()}: {rule}")
    error.nodes = [_core.NodeProblem(_name(node), node.kind(), source_of_node(node), rule, value)]
    raise error


def _stored(value: Any) -> Any:
    if isinstance(value, Quantized):
        return value.stored
    if isinstance(value, (list, tuple)):
        return type(value)(_stored(v) for v in value)
    return value


__all__ = ["FIXED", "KEEPS", "QUANTIZED", "QuantizedScript"]
