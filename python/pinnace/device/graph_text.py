"""Small graphs in their text form, with seeded constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pinnace.types import Array

# Element types of the text form, by numpy's names.
_CODES = {"float32": "f32", "float16": "f16", "int8": "i8", "int32": "i32", "int64": "i64", "bool": "bool"}


class GraphText:
    """One graph while it is written. Values are called by the names that methods return: %x, %v1, %v2."""

    def __init__(self, seed: int) -> None:
        """The seed of constants and arrays."""
        self.random = np.random.default_rng(seed)
        self._lines: list[str] = []
        self._names = 0

    def text(self) -> str:
        """The graph as it stands."""
        return "\n".join(['graph "g" {', *self._lines, "}"])

    def array(self, *shape: int, scale: float = 1.0, dtype: str = "float32") -> Array:
        """Normal values; of int8 all that the type has, of bools both."""
        if dtype == "bool":
            return self.random.random(shape) < 0.5
        if dtype == "int8":
            return self.random.integers(-128, 127, shape, np.int8, endpoint=True)
        return np.asarray(self.random.standard_normal(shape) * scale).astype(dtype)

    def input(self, name: str, array: Array, suffix: str = "") -> str:
        """An input of the array's type; suffix: its quantisation, "{scale 0.5, zero 3}"."""
        self._lines.append(f"input %{name} : {type_text(array)}{suffix}")
        return f"%{name}"

    def constant(self, array: Any, suffix: str = "") -> str:
        """A constant. Floats have four digits: shorter texts, and the same on every machine."""
        array = np.asarray(array)
        name = self._name()
        if array.dtype.kind == "f":
            elements = ("%.4g," * array.size % tuple(array.ravel().tolist()))[:-1]  # one call for millions
        else:
            elements = ",".join(map(str, array.astype(np.int64).ravel().tolist()))
        self._lines.append(f"const {name} : {type_text(array)}{suffix} = {{{elements}}}")
        return name

    def weights(self, *shape: int, fan_in: int | None = None) -> str:
        """Weights that keep the magnitude of what they are multiplied by; fan_in: of the second and later sizes."""
        return self.constant(self.array(*shape, scale=(fan_in or int(np.prod(shape[1:]))) ** -0.5))

    def integers(self, *values: int) -> str:
        """A list of int64."""
        return self.constant(np.array(values, np.int64))

    def node(self, op: str, *inputs: str, type: str = "", outputs: int = 1, **attributes: Any) -> Any:
        """A node; the name of its output, or a list of them. type: of its output, where it is quantised."""
        names = [self._name() for _ in range(outputs)]
        typed = [f"{name} : {type}" if type else name for name in names]
        given = ", ".join(f"{key}={_attribute(value)}" for key, value in attributes.items())
        self._lines.append(f"{', '.join(typed)} = {op}({', '.join(inputs)}){f' {{{given}}}' if given else ''}")
        return names[0] if outputs == 1 else names

    def line(self, text: str) -> None:
        """A statement as it is."""
        self._lines.append(text)

    def output(self, value: str, name: str = "y") -> None:
        """An output."""
        self._lines.append(f'output "{name}" {value}')

    def _name(self) -> str:
        self._names += 1
        return f"%v{self._names}"


def type_text(array: Array) -> str:
    """ "f32[2,3]" """
    return f"{_CODES[array.dtype.name]}[{','.join(map(str, array.shape))}]"


def _attribute(value: Any) -> str:
    if isinstance(value, str):
        return value if value.startswith('graph "') else f'"{value}"'
    if isinstance(value, Sequence):
        return f"[{','.join(_attribute(item) for item in value)}]"
    return repr(value)


__all__ = ["GraphText", "type_text"]
