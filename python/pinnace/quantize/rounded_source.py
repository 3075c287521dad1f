"""What a quantised program is held against: the same model with the same roundings, between operators on floats; and
what a float16 program is: the float32 model, given every value of that program in place of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pinnace import _core
from pinnace.program import Program
from pinnace.session import Session
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.types import Array

# What a value that fold_quantization has made integers of is called after the value that was rounded.
_FOLDED = ".quantized"


class RoundedSource(ProgramSource):
    """Quantise and dequantise nodes around the float operators, run by the float kernels.

    It shows every integer of the program, so each rounding is compared by itself; how far a tie that fell to the other
    side carries to the outputs is a property of the network, and no bound on it says more.
    """

    excused = math.inf

    def __init__(self, core: _core.Model) -> None:
        """core: Model.quantized(fold=False)."""
        self.program = Program(core.build(["cpu"], {}))
        super().__init__(self.program)
        self._cut = _Cut(core)
        self.description = "the same roundings between float operators, on cpu"
        self._integers = {o for n in core.nodes if n["op"] == "quantize_linear" for o in n["outputs"]}

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """Outputs with the integers of another program in place of its own, and by their names what its own would be
        after those before them."""
        names = {name.removesuffix(_FOLDED): name for name in given if name.removesuffix(_FOLDED) in self._integers}
        outputs, own = self._cut.run(inputs, {name: given[names[name]] for name in names})
        return outputs, {names[name]: value for name, value in own.items()}


class Float16Source(ProgramSource):
    """The float32 program, rounded to float16 only its constants and what comes from float32 nodes or from outside.

    How far the roundings of all values carry to the outputs is a property of the network, so each node is compared on
    the float16 program's own values, and outputs on the last of these.
    """

    excused = math.inf
    rounded_types = ("float16",)

    def __init__(self, core: _core.Model) -> None:
        """core: Model.in_float16(values=False)."""
        self.program = Program(core.build(["cpu"], {}))
        super().__init__(self.program)
        self._cut = _Cut(core)
        self.description = "the same program in float32, its inputs and constants rounded to float16, on cpu"
        self._made = {o for n in core.nodes if not n["path"] for o in n["outputs"]}

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """Outputs with the values of the float16 program in place of its own, and what its own would be after those."""
        return self._cut.run(inputs, {n: value.astype(np.float32) for n, value in given.items() if n in self._made})


class _Cut:
    """A model that is given inner values; the session of the last choice of them is kept."""

    def __init__(self, core: _core.Model) -> None:
        self._core = core
        self._last: tuple[tuple[str, ...], Session] | None = None

    def run(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """(outputs, what the given values would have been)."""
        key = tuple(given)
        if self._last is None or self._last[0] != key:
            self._last = key, Session(Program(self._core.cut(list(key)).build(["cpu"], {})), "cpu")
        session = self._last[1]
        session.reset_state()
        feed = dict(zip(session.inputs, [*inputs, *given.values()], strict=True))
        found = list(session.run(feed).values())
        own = len(found) - len(key)
        return found[:own], dict(zip(key, found[own:], strict=True))


__all__ = ["Float16Source", "RoundedSource"]
