"""One operator at a time: ours through the text form of a graph, ONNX's through its reference evaluator.

`ours` builds the graph "inputs -> operator -> outputs" as text and runs it by reference code. `onnx_node` runs one node
of ONNX.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from pinnace import _core

# Our names of element types, as numpy dtypes and as ONNX's numbers.
DTYPES: dict[str, np.dtype] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
    "i4": np.dtype(ml_dtypes.int4),
    "u4": np.dtype(ml_dtypes.uint4),
    "i2": np.dtype(ml_dtypes.int2),
    "u2": np.dtype(ml_dtypes.uint2),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "f6e2m3": np.dtype(ml_dtypes.float6_e2m3fn),
    "f6e3m2": np.dtype(ml_dtypes.float6_e3m2fn),
    "f4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
}
ONNX_TYPES: dict[str, int] = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "f64": TensorProto.DOUBLE,
    "i8": TensorProto.INT8,
    "u8": TensorProto.UINT8,
    "i16": TensorProto.INT16,
    "u16": TensorProto.UINT16,
    "i32": TensorProto.INT32,
    "u32": TensorProto.UINT32,
    "i64": TensorProto.INT64,
    "u64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
    "i4": TensorProto.INT4,
    "u4": TensorProto.UINT4,
    "i2": TensorProto.INT2,
    "u2": TensorProto.UINT2,
    "f8e4m3fn": TensorProto.FLOAT8E4M3FN,
    "f8e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "f8e5m2": TensorProto.FLOAT8E5M2,
    "f8e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "f8e8m0": TensorProto.FLOAT8E8M0,
    "f6e2m3": TensorProto.FLOAT6E2M3,
    "f6e3m2": TensorProto.FLOAT6E3M2,
    "f4e2m1": TensorProto.FLOAT4E2M1,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def dtype_name(array: np.ndarray) -> str:
    return _NAMES[array.dtype]


def attribute_text(value: Any) -> str:
    """An attribute in the text form: floats always have a point or an exponent."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool | int | float):
        return repr(float(value)) if isinstance(value, float) else str(int(value))
    return "[" + ",".join(attribute_text(v) for v in value) + "]"


def ours(
    op: str,
    inputs: Sequence[np.ndarray | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    outputs: int = 1,
    quantization: Sequence[str] | None = None,
    output_type: str = "f32[]",
) -> list[np.ndarray]:
    """The results of operator `op`. quantization: per input "scale 0.5, zero 3", or "" for none."""
    lines, names = ['graph "one" {'], []
    for i, array in enumerate(inputs):
        if array is None:
            names.append("none")
            continue
        shape = ",".join(map(str, array.shape))
        braces = f"{{{quantization[i]}}}" if quantization and quantization[i] else ""
        lines.append(f"  input %x{i} : {dtype_name(array)}[{shape}]{braces}")
        names.append(f"%x{i}")
    results = ", ".join(f"%y{i}" + (f" : {output_type}" if i == 0 else "") for i in range(outputs))
    text = ", ".join(f"{name}={attribute_text(value)}" for name, value in (attributes or {}).items())
    lines.append(f"  {results} = {op}({', '.join(names)})" + (f" {{{text}}}" if text else ""))
    lines += [f'  output "y{i}" %y{i}' for i in range(outputs)] + ["}"]
    given_back: list[np.ndarray] = _core.run_graph_text("\n".join(lines), [a for a in inputs if a is not None])
    return given_back


@functools.cache
def _evaluator(
    op: str, types: tuple[str, ...], attributes: tuple[tuple[str, Any], ...], outputs: int
) -> ReferenceEvaluator:
    names = [f"x{i}" if t else "" for i, t in enumerate(types)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **dict(attributes))
    given = [helper.make_tensor_value_info(n, ONNX_TYPES[t], None) for n, t in zip(names, types, strict=True) if t]
    results = [helper.make_tensor_value_info(f"y{i}", TensorProto.UNDEFINED, None) for i in range(outputs)]
    graph = helper.make_graph([node], "one", given, results)
    return ReferenceEvaluator(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", onnx.defs.onnx_opset_version())])
    )


def onnx_node(
    op: str, inputs: Sequence[np.ndarray | None], attributes: Mapping[str, Any] | None = None, *, outputs: int = 1
) -> list[np.ndarray]:
    """The results of one node of ONNX's newest opset."""
    types = tuple("" if a is None else dtype_name(a) for a in inputs)
    hashable = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in (attributes or {}).items())
    evaluator = _evaluator(op, types, hashable, outputs)
    with np.errstate(all="ignore"):
        results = evaluator.run(None, {f"x{i}": a for i, a in enumerate(inputs) if a is not None})
    return [np.asarray(result) for result in results]
