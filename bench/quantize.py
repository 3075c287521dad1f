"""report.py --quantize: accuracy, size and time of quantised models, ours beside ONNX Runtime's and NNCF's.

  report.py --quantize [CASE...] [--seconds 0.4] [--repeats 2]

Every quantiser (quantize_methods.py) gets the same ONNX file and the same samples of a case (quantize_cases.py), in a
process of its own. Accuracy is measured on other samples. A time is the median of single calls on one thread, pinned to
the last processor; where other programs used more than 5 % of a processor in every repetition, it was not measured.
Results go to build/bench/quantize/results.json. With all cases, the table in docs/quantisation.md is written anew.

  quantize.py CASE METHOD SECONDS REPEATS     one of them, answered as a line of JSON
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine
import quantize_cases as cases
from cases import ROOT
from process import python_of, variables
from quantize_methods import METHODS
from tables import OTHERS_LIMIT, table

Row = dict[str, Any]
PAGE = ROOT / "docs" / "quantisation.md"
BEGIN, END = "<!-- begin: make bench BENCH_ARGS=--quantize -->", "<!-- end -->"
LIMIT_S = 1800.0
TIMED_CALLS = 20  # of a case's test, over and over


# ---- one quantiser, in a process of its own -------------------------------------------------------------------------


def measured(case: str, method: str, seconds: float, repeats: int) -> Row:
    """Accuracy first: what is wrong has no time."""
    made = METHODS[method].make(case)
    row: Row = {"accuracy": cases.accuracy(case, made.run), "size": made.size, "whole": made.whole}
    os.sched_setaffinity(0, machine.processors(1))
    feeds = cases.feeds(case, "test")
    feeds = [feeds[0] | feed for feed in feeds[:TIMED_CALLS]]  # a stream's state is in the first alone
    for _ in range(repeats + 1):
        times: list[float] = []
        busy, own, begun = machine.busy_seconds(), machine.own_seconds(), time.perf_counter()
        while time.perf_counter() - begun < seconds or len(times) < 2 * TIMED_CALLS:
            feed = feeds[len(times) % TIMED_CALLS]
            start = time.perf_counter()
            made.run(feed)
            times.append(time.perf_counter() - start)
        elapsed = time.perf_counter() - begun
        others = (machine.busy_seconds() - busy - (machine.own_seconds() - own)) / elapsed
        if others <= OTHERS_LIMIT:
            return row | {"ms": 1000 * statistics.median(times[TIMED_CALLS:])}
    return row


# ---- all ------------------------------------------------------------------------------------------------------------


def asked(case: str, method: str, seconds: float, repeats: int) -> Row:
    """From a process; {"failed": why} where there is nothing to show."""
    python = python_of(METHODS[method].environment)
    if not python.exists():
        return {"failed": "not installed"}
    command = [str(python), str(Path(__file__).resolve()), case, method, str(seconds), str(repeats)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=variables())
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {LIMIT_S:.0f} s"}
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return {"failed": said[-1][:200]}
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def cells(case: str, method: str, row: Row) -> tuple[str, ...]:
    label = METHODS[method].label
    if "failed" in row:
        return (case, label, f"failed: {row['failed'].replace('|', '/')[:80]}", "", "")
    ms = f"{row['ms']:.3g}" if "ms" in row else "not measured"
    return (case, label, f"{100 * row['accuracy']:.1f} %", f"{row['size'] / row['whole']:.2f}", ms)


def report(data: Row) -> str:
    """The table, with what it depends on."""
    rows = [cells(r["case"], r["method"], r) for r in data["rows"]]
    untimed = sum("ms" not in r for r in data["rows"])
    said = f"{data['machine']['processor']}, {data['machine']['date']}."
    if untimed:
        said += f" Time not measured in {untimed} of {len(rows)} rows: other programs were running, or it failed."
    head = ("model", "quantiser", "accuracy", "file, of its float file", "ms, one thread")
    kinds = ", ".join(f"{name} {kind}" for name, kind in cases.CASES.items())
    return "\n".join([said, f"Accuracy is: {kinds}.", "", *table(head, rows)])


def insert(page: str, text: str) -> str:
    """The page with the text between the markers. ValueError: it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for the table: {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main(names: list[str], seconds: float, repeats: int) -> int:
    """Measures, prints and, with all cases, writes the table."""
    rows = []
    for case in names or list(cases.CASES):
        command = [str(python_of("")), str(ROOT / "bench" / "quantize_cases.py"), case]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=variables())
        if done.returncode:
            print(f"  {case}: {(done.stderr.strip().splitlines() or ['cannot be written'])[-1]}", flush=True)
            continue
        for method, described in METHODS.items():
            if described.only and case not in described.only:
                continue
            row = {"case": case, "method": method} | asked(case, method, seconds, repeats)
            print("  " + "  ".join(cells(case, method, row)), flush=True)
            rows.append(row)
    data = {"machine": machine.describe(), "rows": rows}
    cases.PLACE.mkdir(parents=True, exist_ok=True)
    (cases.PLACE / ("selected.json" if names else "results.json")).write_text(json.dumps(data, indent=1))
    text = report(data)
    if not names:
        PAGE.write_text(insert(PAGE.read_text(), text))
    print(text)
    return 0 if rows else 1


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))))
