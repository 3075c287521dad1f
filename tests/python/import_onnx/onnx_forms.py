"""The forms that ONNX's operators have had since opset 7, and a model of one node for each.

A form is an operator and the opset that changed it. onnx_opsets.py says what the models' inputs are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

Array = NDArray[Any]
OLDEST = 7

# Operators that are refused by name, and why.
OUT_OF_SCOPE = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), "random"
    ),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), "text"),
    "ImageDecoder": "image files",
}

# Operators on values that no model of one node has: onnx_sequences_test.py.
SEQUENCES = (
    "ConcatFromSequence",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SequenceMap",
    "SplitToSequence",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
)


@dataclass
class Sample:
    """Inputs in order, None for one that is left out; those whose index is in `constants` become initialisers."""

    inputs: list[Array | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    constants: tuple[int, ...] = ()
    rtol: float = 1e-5
    atol: float = 1e-6
    compare: tuple[int, ...] | None = None  # outputs that are compared; None: all


def forms(schemas: list[Any] | None = None) -> list[tuple[str, int]]:
    """(operator, version) for every form in force at opset 7 or later, but for deprecations."""
    history: dict[str, list[Any]] = {}
    for schema in schemas or onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, []).append(schema)
    found = []
    for name, versions in sorted(history.items()):
        versions.sort(key=lambda s: s.since_version)
        newest_old = max((s.since_version for s in versions if s.since_version <= OLDEST), default=0)
        found += [(name, s.since_version) for s in versions if s.since_version >= newest_old and not s.deprecated]
    return found


def model_of(op: str, version: int, sample: Sample, opset: int | None = None) -> onnx.ModelProto:
    """A model of one node."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(sample.inputs)]
    values, constants = [], []
    for i, x in enumerate(sample.inputs):
        if x is None:
            continue
        if i in sample.constants:
            constants.append(onnx.numpy_helper.from_array(x, names[i]))
        else:
            values.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
    results = [f"y{i}" for i in range(sample.outputs)]
    node = helper.make_node(op, names, results, **sample.attributes)
    graph = helper.make_graph(
        [node], op, values, [onnx.ValueInfoProto(name=name) for name in results], initializer=constants
    )
    wanted = opset or max(version, OLDEST)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", wanted)])
    model.ir_version = max(helper.find_min_ir_version_for(list(model.opset_import)), 4)
    return onnx.shape_inference.infer_shapes(model)


class Random:
    """Numbers that depend on the operator alone."""

    def __init__(self, op: str) -> None:
        self.rng = np.random.default_rng(int.from_bytes(hashlib.sha256(op.encode()).digest()[:4]))

    def f(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype(np.float32)

    def u(self, low: float, high: float, *shape: int) -> Array:
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def i(self, low: int, high: int, *shape: int, dtype: Any = np.int64) -> Array:
        return self.rng.integers(low, high, shape).astype(dtype)

    def b(self, *shape: int) -> Array:
        return self.rng.integers(0, 2, shape).astype(bool)


# The samples for the form of an operator that a version has.
Recipe = Callable[[Random, int], list[Sample]]


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def scalar(value: Any, dtype: Any = np.int64) -> Array:
    return np.array(value, dtype)
