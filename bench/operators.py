"""Times operators by themselves, in a process of its own: prints a line of JSON per operator and number of threads.

  operators.py SECONDS REPEATS THREADS[,THREADS...] NAME...

REPEATS is how often at most a time is taken again that other programs disturbed.

An operator is converted from ONNX like any model, held against the reference code (bits for integers, 1e-4 of the
largest magnitude for floats), and only then timed. Its time is that of its own kernels; changes of layout before and
after, which a network makes once for many operators, and the call from Python are told apart ("ms_whole").
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from machine import busy_seconds, own_seconds, processors
from operator_cases import OPERATORS, Array, Built

TOLERANCE = 1e-4
# Sums and formulas in 16-bit floats round at their end.
HALF_TOLERANCE = 5e-3
OTHERS_LIMIT = 0.05
Row = dict[str, Any]


def difference(got: Array, want: Array) -> float:
    """Largest difference by the largest magnitude; for integers, by one."""
    if got.shape != want.shape or got.dtype != want.dtype:
        raise RuntimeError(f"gives {got.dtype}{list(got.shape)}, the reference {want.dtype}{list(want.shape)}")
    if want.dtype.kind not in "f":
        return float(np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0))
    a, b = got.astype(np.float64), want.astype(np.float64)
    return float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))


def check(outputs: list[Array], reference: list[Array]) -> float:
    worst = 0.0
    for got, want in zip(outputs, reference, strict=True):
        error = difference(got, want)
        bound = {"f2": HALF_TOLERANCE, "f4": TOLERANCE, "f8": TOLERANCE}.get(want.dtype.str[1:], 0.0)
        if not error <= bound:
            raise RuntimeError(f"differs from the reference by {error:.3g}, may by {bound:g}")
        worst = max(worst, error)
    return worst


def is_layout(kernel: str) -> bool:
    """Steps that only change the layout: "to channels last", "to dense"."""
    return kernel.startswith("to ")


def time_operator(session: Any, inputs: dict[str, Array], seconds: float) -> Row:
    kernels: list[int] = []
    whole: list[float] = []
    parts: dict[str, int] = {}
    for _ in range(2):
        session.run(inputs)
    busy, own, begin = busy_seconds(), own_seconds(), time.perf_counter()
    while time.perf_counter() - begin < seconds or len(kernels) < 5:
        events = session.profile(inputs).events
        own_events = [e for e in events if not is_layout(e.kernel)]
        for event in own_events:
            parts[event.kernel] = parts.get(event.kernel, 0) + event.duration_ns
        kernels.append(sum(e.duration_ns for e in own_events))
        start = time.perf_counter()
        session.run(inputs)
        whole.append(time.perf_counter() - start)
    wall, own = time.perf_counter() - begin, own_seconds() - own
    ms = np.array(kernels) / 1e6
    return {
        "median": float(np.median(ms)),
        "p10": float(np.percentile(ms, 10)),
        "p90": float(np.percentile(ms, 90)),
        "min": float(ms.min()),
        "runs": len(kernels),
        "ms_whole": float(np.median(whole)) * 1e3,
        # Casts that only rename bytes run by reference code too, in no time.
        "kernels": [name for name, ns in parts.items() if ns > 0.02 * sum(parts.values())],
        "reference_share": parts.get("reference", 0) / max(sum(parts.values()), 1),
        "others": max(0.0, busy_seconds() - busy - own) / wall,
    }


def costs(built: Built, outputs: list[Array]) -> Row:
    constants = sum(c.nbytes for c in built.constants.values())
    read = built.read_bytes
    if read is None:
        read = float(sum(x.nbytes for x in built.inputs.values()) + constants)
    written = float(sum(y.nbytes for y in outputs))
    return {
        "operations": built.operations,
        "arithmetic": built.arithmetic,
        "read_bytes": read,
        "written_bytes": written,
        "touched_bytes": min(read, sum(x.nbytes for x in built.inputs.values()) + constants) + written,
    }


def run(name: str, thread_counts: list[int], seconds: float, repeats: int) -> list[Row]:
    import onnx
    import pinnace as pn
    from pinnace import _core

    built = OPERATORS[name].build()
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "operator.onnx", Path(folder) / "operator.pnc"
        onnx.save(built.model(), source)
        program = pn.load(source, built.inputs).build(verify=False)
        program.save(path)
        [reference] = _core.run_model_reference(str(path), [list(built.inputs.values())])
    rows = []
    for threads in thread_counts:
        # Threads of a session's pool inherit what this one may run on.
        os.sched_setaffinity(0, processors_of[threads])
        session = pn.Session(program, target="cpu", threads=threads)
        error = check(list(session.run(built.inputs).values()), reference)
        row: Row = {}
        for attempt in range(1 + repeats):
            row = time_operator(session, built.inputs, seconds)
            row["repeated"] = attempt
            if row["others"] <= OTHERS_LIMIT:
                break
        rows.append({"operator": name, "threads": threads, "error": error} | row | costs(built, reference))
    return rows


processors_of: dict[int, list[int]] = {}


def main() -> None:
    seconds, repeats, counts = float(sys.argv[1]), int(sys.argv[2]), [int(t) for t in sys.argv[3].split(",")]
    processors_of.update({t: processors(t) for t in counts})
    for name in sys.argv[4:]:
        try:
            rows = run(name, counts, seconds, repeats)
        except Exception as error:  # whatever goes wrong with one operator: the others are timed
            rows = [
                {"operator": name, "threads": t, "failed": f"{type(error).__name__}: {error}"[:400]} for t in counts
            ]
        for row in rows:
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
