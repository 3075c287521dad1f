"""Candidates, programs in which some nodes compute in integers, and how good they are. The same here and on workers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pinnace import _core
from pinnace.program import Program
from pinnace.progress import phase
from pinnace.quantize.errors import output_errors
from pinnace.quantize.options import Run
from pinnace.session import Session
from pinnace.types import Array

# So many weights share a scale where floats are multiplied by stored ones.
STORED_BLOCK = 64


@dataclass(frozen=True)
class Candidate:
    """One choice.

    nodes   that compute in integers.
    stored  nodes whose weights are stored as 8-bit integers that float arithmetic reads.
    """

    nodes: tuple[str, ...]
    stored: tuple[str, ...] = ()


@dataclass
class Candidates:
    """The programs that a calibration allows. None names the float one.

    ready    the float model, and float_program what was built of it.
    scales   (value, scale, zero point), and means the means of channels, empty without bias correction.
    kept     the first calls, on which errors are measured.
    metric   the user's; None: the worst error, negative.
    names    of inputs that the user's model calls otherwise.
    threads  of each session; 0: as many as help.
    """

    ready: _core.Model
    float_program: Program
    scales: Sequence[tuple[str, float, int]]
    means: Sequence[tuple[str, list[float]]]
    kept: Sequence[Sequence[Array]]
    metric: Callable[[Run], float] | None
    names: Mapping[str, str]
    threads: int = 0
    _floats: list[list[Array]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def model(self, candidate: Candidate, fold: bool = True) -> _core.Model:
        """In integers, or as rounded floats."""
        ready, stored = self.ready, list(candidate.stored)
        if stored:
            ready = ready.with_stored_weights(stored, 8, STORED_BLOCK, True, integers=fold, passes=False)
        return ready.quantized(list(candidate.nodes), list(self.scales), list(self.means), fold=fold)

    def program(self, candidate: Candidate | None) -> Program:
        """Built for the CPU."""
        return self.float_program if candidate is None else built(self.model(candidate))

    def outputs(self, program: Program) -> list[list[Array]]:
        """Of each kept call."""
        session = Session(program, "cpu", self.threads, plan_cache=1)
        found = []
        for sample in self.kept:
            session.reset_state()
            found.append(list(session.run(dict(zip(program.inputs, sample, strict=True))).values()))
        return found

    def errors(self, program: Program) -> dict[str, float]:
        """By output, relative to the float program's."""
        with self._lock:
            if not self._floats:
                self._floats = self.outputs(self.float_program)
        return output_errors(program, self.outputs(program), self._floats)

    def worst_error(self, candidate: Candidate | None) -> float:
        """Of an output."""
        return max(self.errors(self.program(candidate)).values(), default=0.0)

    def score(self, candidate: Candidate | None) -> float:
        """The metric, or less of it the larger the worst error is. InvalidArgument: it raises, or is no number."""
        if self.metric is None:
            return -self.worst_error(candidate)
        session = Session(self.program(candidate), "cpu", self.threads)

        def run(feed: Mapping[str, Any]) -> dict[str, Array]:
            return session.run({self.names.get(name, name): value for name, value in feed.items()})

        try:
            number = float(self.metric(run))
        except _core.Error:
            raise
        except Exception as error:  # of the user's code
            text = f"{type(error).__name__}: {error}".strip()
            raise _core.InvalidArgument(f"metric failed: {text}") from error
        if not math.isfinite(number):
            said = "NaN" if math.isnan(number) else number
            raise _core.InvalidArgument(f"metric gave {said}, must give a finite number, higher for better programs")
        return number


@phase("building")
def built(core: _core.Model) -> Program:
    """For the CPU."""
    return Program(core.build(["cpu"], {}))


__all__ = ["Candidate", "Candidates", "built"]
