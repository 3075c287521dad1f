"""ONNX models in double precision, run by ONNX's reference evaluator: exact values beside which rounding shows."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.packages import import_package
from pinnace.sources.base import source_errors
from pinnace.sources.onnx_evaluator import evaluator
from pinnace.sources.rounding import Rounding
from pinnace.types import Array

# Where an operator's result is a float of a type that the model does not otherwise name, by the attribute that says so.
_TYPE_ATTRIBUTES = {"to", "dtype", "output_dtype", "output_datatype"}
# Operators that give float32 where that attribute is left out.
_FLOAT_BY_DEFAULT = {"HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"}
_NARROW = {"float32", "float16", "bfloat16"}
# Of one run. The evaluator's operators are written in Python, some element by element.
MOST_SECONDS = 120.0
# Operators that give elements of what they read, compare them or take them to integers: floats are exact there.
EXACT = {
    "Abs", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "DepthToSpace",
    "DequantizeLinear", "Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND",
    "GlobalMaxPool", "Greater", "GreaterOrEqual", "Identity", "If", "IsInf", "IsNaN", "Less", "LessOrEqual", "Loop",
    "Max", "MaxPool", "Min", "Neg", "NonZero", "OneHot", "Pad", "QuantizeLinear", "Range", "ReduceMax", "ReduceMin",
    "Relu", "Reshape", "Resize", "ReverseSequence", "Round", "Scan", "ScatterElements", "ScatterND", "Shape",
    "Sign", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unique",
    "Unsqueeze", "Upsample", "Where",
}  # fmt: skip


class DoubleModel:
    """A model whose floats are all float64: weights, inputs, constants, and what it casts to.

    Quantised values stay the integers that they are, and their scales become float64.
    """

    def __init__(self, model: Any, seconds: float = MOST_SECONDS) -> None:
        """model: a ModelProto with all its weights inside, which is changed. Unsupported: onnx cannot evaluate it.
        seconds: a run that takes longer is Unsupported, too."""
        onnx = import_package("onnx")

        self._model = _widened(model)
        self._deadline = _Deadline(seconds)
        self.description = f"onnx {onnx.__version__} reference evaluator in float64"
        self._evaluator: Any = None

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs in order; one that the file lists twice is there once."""
        with source_errors(self.description), np.errstate(all="ignore"):  # what overflows shows in the results
            if self._evaluator is None:
                self._evaluator = self._limited_evaluator()
            self._deadline.begin()
            return [
                np.asarray(o)
                for o in self._evaluator.run(list(dict.fromkeys(self._evaluator.output_names)), self._feed(inputs))
            ]

    def rounded(self, rounding: Rounding) -> DoubleModel:
        """The model with rounding errors at every operator that rounds."""
        made = copy.copy(self)
        made._evaluator = self._limited_evaluator()
        for node in made._evaluator.rt_nodes_:
            if node.onnx_node.op_type not in EXACT:
                node.run = _rounded(node.run, rounding)
        return made

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values by ONNX's names."""
        with source_errors(self.description), np.errstate(all="ignore"):
            made = [o for node in self._model.graph.node for o in node.output if o in names]
            limited = self._limited_evaluator(made)
            self._deadline.begin()
            found = limited.run(None, self._feed(inputs))
            return {name: np.asarray(value) for name, value in zip(made, found, strict=True)}

    def _limited_evaluator(self, outputs: Sequence[str] = ()) -> Any:
        """Of the model, whose nodes ask for the deadline before they run."""
        made = evaluator(self._model, outputs)
        _limit(made, self._deadline)
        return made

    def _feed(self, inputs: Sequence[Array]) -> dict[str, Array]:
        initial = {i.name for i in self._model.graph.initializer}
        names = [i.name for i in self._model.graph.input if i.name not in initial]
        return {n: x.astype(np.float64) if str(x.dtype) in _NARROW else x for n, x in zip(names, inputs, strict=True)}


class _Deadline:
    """Of the run that is under way."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = 0.0

    def begin(self) -> None:
        self._end = time.monotonic() + self._seconds

    def check(self, op: str) -> None:
        if time.monotonic() > self._end:
            raise _core.Unsupported(f"more than {self._seconds:g} s in float64, before {op}")


def _limit(evaluated: Any, deadline: _Deadline) -> None:
    """Nodes of an evaluator, and of the bodies in it, check the deadline first."""
    for node in evaluated.rt_nodes_:
        for body in [held for held in vars(node).values() if hasattr(held, "rt_nodes_")]:
            _limit(body, deadline)
        node.run = _limited(node.run, node.onnx_node.op_type, deadline)


def _limited(run: Callable[..., Any], op: str, deadline: _Deadline) -> Callable[..., Any]:
    def limited(*operands: Any, **options: Any) -> Any:
        deadline.check(op)
        return run(*operands, **options)

    return limited


def _rounded(run: Callable[..., Any], rounding: Rounding) -> Callable[..., Any]:
    def rounded(*operands: Any, **options: Any) -> Any:
        changed = [rounding.operand(x) if isinstance(x, np.ndarray) else x for x in operands]
        arrays = [x for x in changed if isinstance(x, np.ndarray)]
        results = run(*changed, **options)
        return tuple(rounding.result(np.asarray(r), arrays) if hasattr(r, "dtype") else r for r in results)

    return rounded


def _graphs(graph: Any) -> Iterator[Any]:
    """The graph and all that its nodes hold."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from _graphs(inner)


def _widened(model: Any) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    narrow = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}

    def widen_tensor(tensor: Any) -> None:
        if tensor.data_type in narrow:
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float64), tensor.name))

    def widen_type(value: Any) -> None:
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in narrow:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE

    bodies = [model.graph, *model.functions]
    for graph in [g for body in bodies for g in _graphs(body)]:
        for tensor in getattr(graph, "initializer", []):
            widen_tensor(tensor)
        if hasattr(graph, "initializer"):
            for value in (*graph.input, *graph.output, *graph.value_info):
                widen_type(value)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    widen_tensor(attribute.t)
                elif attribute.name in _TYPE_ATTRIBUTES and attribute.i in narrow:
                    attribute.i = TensorProto.DOUBLE
            if node.op_type == "ConstantOfShape" and not node.attribute:  # zeros of float32
                node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))
            if node.op_type in _FLOAT_BY_DEFAULT and all(a.name != "output_datatype" for a in node.attribute):
                node.attribute.append(helper.make_attribute("output_datatype", int(TensorProto.DOUBLE)))
            plain = [
                a for a in node.attribute if node.op_type == "Constant" and a.name in ("value_float", "value_floats")
            ]
            for attribute in plain:
                array = np.asarray(attribute.f if attribute.name == "value_float" else attribute.floats, np.float64)
                del node.attribute[:]
                value = node.attribute.add()
                value.name, value.type = "value", value.TENSOR
                value.t.CopyFrom(numpy_helper.from_array(array))
    return model


def double_model(path: str) -> DoubleModel | None:
    """The model of a file; None without onnx. FileError: the file cannot be read."""
    try:
        onnx = import_package("onnx")
    except ImportError:
        return None
    try:
        return DoubleModel(onnx.load(path))
    except Exception as error:
        raise _core.Unsupported(f"{path}: cannot be evaluated in float64: {error}") from error


__all__ = ["DoubleModel", "double_model"]
