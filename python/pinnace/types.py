"""Shapes, types and registered operators as users see them: Dim, TensorSpec, custom_op."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt

from pinnace import _core
from pinnace.files import printable

Array = npt.NDArray[Any]
Shape = tuple["int | Dim | None", ...]


# ---- types of arguments: TypeError names the argument and the value -------------------------------------------------


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """A whole number. InvalidArgument: it is below `least` or above `most`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, is {value!r:.200}")
    number = operator.index(value)
    if least is not None and number < least:
        raise _core.InvalidArgument(f"{name} is {number}, must be {least} or more")
    if most is not None and number > most:
        raise _core.InvalidArgument(f"{name} is {number}, must be at most {most}")
    return number


def truth(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_ | int):
        raise TypeError(f"{name} must be True or False, is {value!r:.200}")
    return bool(value)


def word(name: str, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, is {value!r:.200}")
    return value


def words(name: str, value: Any) -> list[str]:
    """One text, or several."""
    if isinstance(value, str):
        return [value]
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else None
    if listed is None or not all(isinstance(one, str) for one in listed):
        raise TypeError(f"{name} must be a name or a list of names, is {value!r:.200}")
    return listed


def texts_by_name(name: str, value: Any) -> dict[str, str]:
    """A dict of texts."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict of texts by name, is {value!r:.200}")
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"{name} must be a dict of texts by name, has {key!r:.100}: {text!r:.100}")
    return dict(value)


def seconds(name: str, value: Any) -> float | None:
    """A number of seconds, which is not looked at; None stays."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} must be a number of seconds, or None, is {value!r:.200}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def token(value: Any) -> _core.CancelToken | None:
    """A CancelToken, or None."""
    if value is not None and not isinstance(value, _core.CancelToken):
        raise TypeError(f"cancel must be a CancelToken, or None, is {value!r:.200}")
    return value


# ---- shapes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dim:
    """A dimension whose size each run fixes: min <= size <= max and size % multiple_of == 0.

    name         what it is called in shapes and messages.
    min          the smallest size, at least 0; of a live module at least 1, for torch.export traces no empty dimension.
    max          the largest size; None: there is no bound.
    multiple_of  what sizes are multiples of, at least 1.

    InvalidArgument: no size satisfies this.
    """

    name: str
    min: int = 0
    max: int | None = None
    multiple_of: int = 1

    def __post_init__(self) -> None:
        """Refuses ranges that no size satisfies: InvalidArgument."""
        word("the name of a Dim", self.name)
        for field in ("min", "max", "multiple_of"):
            if field != "max" or self.max is not None:
                object.__setattr__(self, field, whole(f"Dim {self.name!r}: {field}", getattr(self, field)))
        k = self.multiple_of
        if self.min < 0 or k < 1 or (self.max is not None and self.max // k * k < self.min):
            raise _core.InvalidArgument(
                f"Dim {self.name!r}: no size satisfies {self.min}..{self.max} by {self.multiple_of}"
            )

    def __str__(self) -> str:
        """The name alone, as in printed shapes."""
        return printable(self.name)


@dataclass(frozen=True)
class Quantization:
    """How stored integers q stand for real numbers: real = (q - zero_point) * scale.

    scales       one, one per index of `axis`, or one per block of elements along it.
    zero_points  as many.
    axis         -1: the whole tensor has one scale.
    block        how many elements along `axis` share a scale; 0: each index of `axis` has its own.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    block: int


@dataclass(frozen=True)
class TensorSpec:
    """An input, an output or a state.

    name          what run() calls it.
    dtype         of numpy, or of ml_dtypes (bfloat16, float8, int4).
    shape         sizes: a number, a Dim where each run fixes the size, None where data decide it.
    quantization  how integers stand for real numbers; None for what is not quantised.
    """

    name: str
    dtype: np.dtype[Any]
    shape: Shape
    quantization: Quantization | None

    def __str__(self) -> str:
        """`x: float32[batch,3,224,224]`."""
        return f"{printable(self.name)}: {self.dtype}[{','.join('?' if d is None else str(d) for d in self.shape)}]"


def specs_from(
    core_specs: Sequence[Mapping[str, Any]], core_symbols: Sequence[Mapping[str, Any]]
) -> dict[str, TensorSpec]:
    """Specs by name from the core's plain dicts."""
    dims = [Dim(s["name"], s["min"], s["max"], s["multiple_of"]) for s in core_symbols]
    specs = {}
    for spec in core_specs:
        shape = tuple(dims[d[0]] if isinstance(d, tuple) else d for d in spec["shape"])
        q = spec["quantization"]
        quantization = q and Quantization(tuple(q["scales"]), tuple(q["zero_points"]), q["axis"], q["block"])
        specs[spec["name"]] = TensorSpec(spec["name"], spec["dtype"], shape, quantization)
    return specs


def signature(inputs: Mapping[str, TensorSpec], outputs: Mapping[str, TensorSpec]) -> str:
    """`x: float32[batch,3,224,224] -> y: float32[batch,1000]`, for printing."""
    sides = (", ".join(map(str, specs.values())) or "()" for specs in (inputs, outputs))
    return " -> ".join(sides)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that every reader takes: it has no numbers for NaN and infinities, which become "nan", "inf", "-inf"."""

    def finite(item: Any) -> Any:
        if isinstance(item, float) and not math.isfinite(item):
            return str(item)
        if isinstance(item, dict):
            return {key: finite(part) for key, part in item.items()}
        if isinstance(item, list | tuple):
            return [finite(part) for part in item]
        return item

    return json.dumps(finite(value), indent=indent, allow_nan=False)


# Operators live as long as the process: prepared programs, which sessions share, refer to them.
_custom_ops: dict[str, _core.CustomOp] = {}

ShapeFunction = Callable[
    [list[tuple[np.dtype[Any], tuple["int | None", ...]]], dict[str, str]], Sequence[tuple[Any, Sequence[Any]]]
]
ReferenceFunction = Callable[[list[Array], dict[str, str]], Sequence[Array]]


def custom_op(name: str, shape: ShapeFunction, reference: ReferenceFunction, *, outputs: int = 1) -> None:
    """Adds an operator of the application to every model loaded and session made from now on.

    name       what the source model calls it: "mylib.scale" for torch.ops.mylib.scale, "com.example.Scale" for ONNX.
    shape      (inputs as (dtype, shape) with None for unknown sizes, attributes as text) -> (dtype, shape) per output.
    reference  (arrays, attributes) -> one array per output, of exactly those types. Called from any thread with the
               GIL.
    outputs    how many outputs it has.

    InvalidArgument: the name is taken, empty, or has spaces or what cannot be printed; or outputs is below 1.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a custom operator must be text, is {type(name).__name__}")
    if not name or not name.isprintable() or " " in name:
        raise _core.InvalidArgument(f"the name of a custom operator must be printable text without spaces, is {name!r}")
    for role, function in (("shape", shape), ("reference", reference)):
        if not callable(function):
            raise TypeError(f"custom operator {name!r}: {role} must be a function, is {function!r:.200}")
    outputs = whole(f"custom operator {name!r}: outputs", outputs, most=1 << 16)
    if outputs < 1:
        raise _core.InvalidArgument(f"custom operator {name!r} has {outputs} outputs, needs 1 or more")
    if name in _custom_ops:
        raise _core.InvalidArgument(f"custom operator {name!r} is registered already")
    _custom_ops[name] = _core.CustomOp(name, shape, reference, outputs)


def custom_ops() -> list[_core.CustomOp]:
    """Every operator registered so far."""
    return list(_custom_ops.values())


def custom_op_names() -> set[str]:
    """What source models call them."""
    return set(_custom_ops)
