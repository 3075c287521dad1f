"""One engine, one case, one number of threads, in a process of its own: answers in lines of JSON.

  worker.py prepare ENGINE CASE_FOLDER          converts
  worker.py serve ENGINE CASE_FOLDER THREADS    loads, compares the outputs with PyTorch's, then reads lines from
                                                standard input: a number of seconds each, to time the engine for

Nothing is timed before it has been compared. Times are of a whole call from Python, numpy in and out.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cases import quantized
from engines import ENGINES, Arrays
from machine import busy_seconds, own_seconds, peak_mb

# In 8 bits, by root mean squares: of what differs from the float network's outputs, and of these. Engines round in
# different places (0.12 to 0.14 were seen, 0.34 of OpenVINO held to AVX2); outputs of another network differ by 1.4.
QUANTIZED_TOLERANCE = 0.5


def error_of(outputs: Arrays, expected: Arrays, eight_bits: bool, tolerance: float) -> float:
    if len(outputs) != len(expected):
        raise RuntimeError(f"{len(outputs)} outputs instead of {len(expected)}")
    worst = 0.0
    for got, want in zip(outputs, expected, strict=True):
        if got.size != want.size:
            raise RuntimeError(f"an output has shape {got.shape} instead of {want.shape}")
        apart = np.abs(got.reshape(want.shape) - want)
        if eight_bits:
            error = np.sqrt(np.square(apart).mean() / np.square(want).mean())
        else:
            error = apart.max() / np.abs(want).max()
        worst = max(worst, float(error)) if np.isfinite(error) else float("inf")
    bound = QUANTIZED_TOLERANCE if eight_bits else tolerance
    if not worst <= bound:
        what = "by root mean squares" if eight_bits else "of the largest value"
        raise RuntimeError(f"outputs differ from PyTorch's by {worst:.2g} {what}, may by {bound:g}")
    return worst


class Timed:
    """An engine that has loaded a case and gives the right outputs."""

    def __init__(self, engine_name: str, case: Path, threads: int) -> None:
        engine = ENGINES[engine_name]
        with np.load(case / "inputs.npz") as file:
            inputs = dict(file)
        with np.load(case / "expected.npz") as file:
            expected = list(file.values())
        self.arrays = list(inputs.values())
        self.version = engine.version()
        for module in engine.modules:
            importlib.import_module(module)

        start = time.perf_counter()
        self.run = engine.load(case, threads, inputs)
        self.load_ms = (time.perf_counter() - start) * 1e3
        outputs = self.run(self.arrays)
        self.first_ms = (time.perf_counter() - start) * 1e3
        # Later runs may write over them.
        self.error = error_of([np.array(y) for y in outputs], expected, quantized(case.name), engine.tolerance)
        for _ in range(2):
            self.run(self.arrays)

    def turn(self, seconds: float) -> dict[str, Any]:
        times: list[float] = []
        busy, own, begin = busy_seconds(), own_seconds(), time.perf_counter()
        while (now := time.perf_counter()) - begin < seconds or len(times) < 4:
            self.run(self.arrays)
            times.append(time.perf_counter() - now)
        wall, own = time.perf_counter() - begin, own_seconds() - own
        ms = np.array(times) * 1e3
        return {
            "median": float(np.median(ms)),
            "p10": float(np.percentile(ms, 10)),
            "p90": float(np.percentile(ms, 90)),
            "min": float(ms.min()),
            "runs": len(times),
            "first_ms": self.first_ms,
            "load_ms": self.load_ms,
            "cpu_s": own / len(times),
            "peak_mb": peak_mb(),
            "others": max(0.0, busy_seconds() - busy - own) / wall,
            "error": self.error,
            "version": self.version,
        }


def main() -> None:
    action, engine, case = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    # Engines print what they like; answers have a way of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(row: dict[str, Any]) -> None:
        print(json.dumps(row), file=answers, flush=True)

    try:
        if action == "prepare":
            ENGINES[engine].prepare(case)
            answer({})
        else:
            timed = Timed(engine, case, int(sys.argv[4]))
            answer({"first_ms": timed.first_ms, "load_ms": timed.load_ms})
            for line in sys.stdin:
                answer(timed.turn(float(line)))
    except Exception as error:  # whatever an engine raises: the report names it
        answer({"failed": f"{type(error).__name__}: {error}"[:400]})
    os._exit(0)  # some engines crash while they are unloaded


if __name__ == "__main__":
    main()
