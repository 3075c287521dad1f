"""What a quantised program is held against: the same model with the same roundings, between operators on floats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
        self._core = core
        self.description = "the same roundings between float operators, on cpu"
        self._integers = {o for n in core.nodes if n["op"] == "quantize_linear" for o in n["outputs"]}
        self._cut: tuple[tuple[str, ...], Session] | None = None

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """Outputs with the integers of another program in place of its own, and by their names what its own would be
        after those before them."""
        names = {name.removesuffix(_FOLDED): name for name in given if name.removesuffix(_FOLDED) in self._integers}
        key = tuple(names)
        if self._cut is None or self._cut[0] != key:
            self._cut = key, Session(Program(self._core.cut(list(key)).build(["cpu"], {})), "cpu")
        session = self._cut[1]
        session.reset_state()
        feed = dict(zip(session.inputs, [*inputs, *(given[names[name]] for name in key)], strict=True))
        found = list(session.run(feed).values())
        own = len(found) - len(key)
        return found[:own], {names[name]: value for name, value in zip(key, found[own:], strict=True)}


__all__ = ["RoundedSource"]
