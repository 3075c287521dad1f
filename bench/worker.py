"""One engine, one case, one number of threads, in a process of its own: prints a line of JSON.

  worker.py prepare ENGINE CASE_FOLDER            converts
  worker.py time ENGINE CASE_FOLDER THREADS SECONDS

Outputs are compared with PyTorch's before anything is timed. Times are of a whole call from Python, numpy in and out.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cases import quantized
from engines import ENGINES

# An engine that is off by more computes something else; conversions of ours are held to 1e-4.
TOLERANCE = 1e-3
# Engines that quantise by themselves, or round elsewhere, differ by many units in the last place.
QUANTIZED_TOLERANCE = 0.3


def busy_seconds() -> float:
    """Processor time that all processes of the machine have used, all processors together."""
    with open("/proc/stat") as file:
        fields = [int(x) for x in file.readline().split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    times = os.times()
    return times.user + times.system


def time_engine(engine_name: str, case: Path, threads: int, seconds: float) -> dict[str, object]:
    engine = ENGINES[engine_name]
    with np.load(case / "inputs.npz") as file:
        inputs = dict(file)
    with np.load(case / "expected.npz") as file:
        expected = list(file.values())
    arrays = list(inputs.values())
    engine.version()  # imports what it imports: libraries are loaded before the clock starts

    start = time.perf_counter()
    run = engine.load(case, threads, inputs)
    outputs = run(arrays)
    first_s = time.perf_counter() - start
    outputs = [np.array(y) for y in outputs]  # what later runs may write over
    if len(outputs) != len(expected):
        raise RuntimeError(f"{len(outputs)} outputs instead of {len(expected)}")
    error = 0.0
    for got, want in zip(outputs, expected, strict=True):
        if got.size != want.size:
            raise RuntimeError(f"an output has shape {got.shape} instead of {want.shape}")
        error = max(error, float(np.abs(got.reshape(want.shape) - want).max() / np.abs(want).max()))
    if not error <= (QUANTIZED_TOLERANCE if quantized(case.name) else TOLERANCE):
        raise RuntimeError(f"outputs differ from PyTorch's by {error:.2g} of the largest value")

    for _ in range(3):
        run(arrays)
    times: list[float] = []
    busy, own, begin = busy_seconds(), own_seconds(), time.perf_counter()
    while (now := time.perf_counter()) - begin < seconds or len(times) < 10:
        run(arrays)
        times.append(time.perf_counter() - now)
    wall, own = time.perf_counter() - begin, own_seconds() - own
    others = max(0.0, busy_seconds() - busy - own) / wall
    ms = np.array(times) * 1e3
    return {
        "median": float(np.median(ms)),
        "p10": float(np.percentile(ms, 10)),
        "p90": float(np.percentile(ms, 90)),
        "min": float(ms.min()),
        "runs": len(times),
        "start_up": max(0.0, first_s * 1e3 - float(np.median(ms))),
        "cpu_s": own / len(times),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "others": others,
        "error": error,
        "version": engine.version(),
    }


def main() -> None:
    action, engine, case = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    try:
        if action == "prepare":
            ENGINES[engine].prepare(case)
            result: dict[str, object] = {}
        else:
            result = time_engine(engine, case, int(sys.argv[4]), float(sys.argv[5]))
    except Exception as error:  # whatever an engine raises: the report names it
        result = {"failed": f"{type(error).__name__}: {error}"[:400]}
    print("\n" + json.dumps(result), flush=True)
    os._exit(0)  # some engines crash while they are unloaded


if __name__ == "__main__":
    main()
