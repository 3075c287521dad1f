#!/usr/bin/env python3
"""Times pinnace beside the engines that one would use instead, and prints a table with the ratio to the best of them.

  report.py [CASE...] [--engines NAME,...] [--threads 1,2] [--seconds 2] [--rounds 3]

One process per engine, case and number of threads; engines take turns (A B C A B C ...), pinned alike: one thread to
the last processor, more to the last ones. A figure is the median over a process's calls, and of those of several rounds
the best. While other programs used more than 5 % of a processor, a turn is repeated, up to twice. Everything goes to
build/bench/results.json, the tables also to build/bench/report.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cases import FOLDER, ROOT, TARGETS, quantized, write
from engines import ENGINES

OURS = "pinnace"
# Not compared with the others: our own kernels on a lower instruction set.
ASIDE = ("pinnace-avx2",)
OTHERS_LIMIT = 0.05
Row = dict[str, Any]


def python_of(environment: str) -> Path:
    return ROOT / (f".venv-bench/{environment}" if environment else ".venv") / "bin" / "python"


def worker(environment: str, *arguments: str, processors: list[int], limit_s: float) -> Row:
    """Runs worker.py; {"failed": why} where it cannot answer."""
    python = python_of(environment)
    if not python.exists():
        return {"failed": "not installed"}
    pin = ["taskset", "-c", ",".join(map(str, processors))]
    command = [*pin, str(python), str(ROOT / "bench" / "worker.py"), *arguments]
    # Rivals with OpenMP keep their threads where they are.
    environment_of = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_PROC_BIND": "true"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, env=environment_of)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {limit_s:.0f} s"}
    lines = done.stdout.strip().splitlines()
    try:
        return dict(json.loads(lines[-1]))
    except (IndexError, ValueError):
        return {"failed": f"ended with {done.returncode}: {(done.stderr or done.stdout)[-200:]}"}


def prepare(case: Path, names: list[str]) -> dict[str, str]:
    """Converts the case for each engine once; answers why for those that cannot."""
    known = case / "prepared.json"
    state: dict[str, str] = json.loads(known.read_text()) if known.exists() else {}
    for name in names:
        engine = ENGINES[name]
        if quantized(case.name) and not engine.quantizes:
            state[name] = "takes quantised models only from tools of its own"
            continue
        if name in state and name != OURS:  # ours is converted anew, as the library may have changed
            continue
        every = sorted(os.sched_getaffinity(0))
        answer = worker(
            engine.converts_in or engine.environment, "prepare", name, str(case), processors=every, limit_s=900
        )
        state[name] = str(answer.get("failed", ""))
        if state[name]:
            print(f"  {name}: {state[name]}", flush=True)
    known.write_text(json.dumps(state, indent=1))
    return {name: state[name] for name in names if state[name]}


def time_case(case: str, names: list[str], threads: int, seconds: float, rounds: int) -> Row:
    """{engine: its best round, or {"failed": why}}."""
    folder = write(case)
    failed = prepare(folder, names)
    rows: Row = {name: {"failed": why} for name, why in failed.items()}
    processors = sorted(os.sched_getaffinity(0))[-threads:]
    for _ in range(rounds):
        for name in names:
            if "failed" in rows.get(name, {}):
                continue
            for _attempt in range(3):
                arguments = ("time", name, str(folder), str(threads), str(seconds))
                row = worker(ENGINES[name].environment, *arguments, processors=processors, limit_s=120 + 20 * seconds)
                if "failed" in row or row["others"] <= OTHERS_LIMIT:
                    break
            best = rows.get(name)
            if best is None or "failed" in row or row["median"] < best["median"]:
                rows[name] = row | {"medians": [*(best or {}).get("medians", []), row.get("median")]}
            else:
                best["medians"].append(row["median"])
            shown = row.get("failed") or f"{row['median']:9.3f} ms  others {row['others']:.2f}"
            print(f"  {case} {threads}T {name:14} {shown}", flush=True)
    return rows


def best_rival(rows: Row) -> str | None:
    rivals = [n for n, r in rows.items() if n != OURS and n not in ASIDE and "failed" not in r]
    return min(rivals, key=lambda n: rows[n]["median"], default=None)


def summary(results: list[Row]) -> str:
    """Markdown: our figures beside the best rival's, then everybody's."""
    out = ["| model | threads | ours, ms (p10 to p90) | best rival, ms | ratio | at most | start-up, ms | peak, MB |"]
    out += ["|---|---|---|---|---|---|---|---|"]
    for result in results:
        rows, rival = result["engines"], best_rival(result["engines"])
        ours = rows.get(OURS, {"failed": "not run"})
        if "failed" in ours or rival is None:
            out.append(f"| {result['case']} | {result['threads']} | {ours.get('failed', '')} | | | | | |")
            continue
        theirs = rows[rival]
        others = [r for n, r in rows.items() if n != OURS and n not in ASIDE and "failed" not in r]
        target = TARGETS[result["case"]][0 if result["threads"] == 1 else 1]
        out.append(
            f"| {result['case']} | {result['threads']} | {ours['median']:.3f} ({ours['p10']:.3f} to {ours['p90']:.3f}) "
            f"| {rival} {theirs['median']:.3f} | **{ours['median'] / theirs['median']:.2f}** | {target:.2f} "
            f"| {ours['start_up']:.1f}, rivals from {min(r['start_up'] for r in others):.1f} "
            f"| {ours['peak_mb']:.0f}, rivals from {min(r['peak_mb'] for r in others):.0f} |"
        )
    names = list(dict.fromkeys(n for result in results for n in result["engines"]))
    out += ["", f"| model, ms | threads | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for result in results:
        cells = []
        for name in names:
            row = result["engines"].get(name, {"failed": ""})
            cells.append("-" if "failed" in row else f"{row['median']:.3f}")
        out.append(f"| {result['case']} | {result['threads']} | {' | '.join(cells)} |")
    missing = {(r["case"], n, e["failed"]) for r in results for n, e in r["engines"].items() if "failed" in e}
    if missing:
        out += ["", "Not run:", *(f"- {case}, {name}: {why.splitlines()[0]}" for case, name, why in sorted(missing))]
    return "\n".join(out)


def scaling(results: list[Row]) -> str:
    """Time at n threads over time at one, for each engine: 1.000, then the smaller the better."""
    threads = sorted({r["threads"] for r in results})
    out = [f"| model | engine | {' | '.join(f'{t} threads' for t in threads)} |", "|---|---|" + "---|" * len(threads)]
    for case in dict.fromkeys(r["case"] for r in results):
        by_threads = {r["threads"]: r["engines"] for r in results if r["case"] == case}
        for name, row in by_threads.get(1, {}).items():
            if "failed" in row:
                continue
            cells = [by_threads.get(t, {}).get(name, {}).get("median") for t in threads]
            shown = " | ".join("-" if c is None else f"{c / row['median']:.3f}" for c in cells)
            out.append(f"| {case} | {name} | {shown} |")
    return "\n".join(out)


def machine() -> Row:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")
    return {"processor": model, "processors": os.cpu_count(), "system": platform.platform(), "date": str(date.today())}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", default=[], help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--engines", default=",".join(ENGINES), help="names, with commas between")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas between")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each process runs")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    names = options.engines.split(",")
    for name in names:
        if name not in ENGINES:
            parser.error(f"--engines: {name!r} is none of {', '.join(ENGINES)}")
    for case in options.cases:
        if case not in TARGETS:
            parser.error(f"{case!r} is none of {', '.join(TARGETS)}")
    counts = [int(t) for t in options.threads.split(",")]
    available = len(os.sched_getaffinity(0))
    if not all(1 <= t <= available for t in counts):
        parser.error(f"--threads: {options.threads}; this machine gives 1 to {available}")
    results: list[Row] = []
    FOLDER.mkdir(parents=True, exist_ok=True)
    for case in options.cases or TARGETS:
        for threads in counts:
            engines = time_case(case, names, threads, options.seconds, options.rounds)
            results.append({"case": case, "threads": threads, "engines": engines})
            text = json.dumps({"machine": machine(), "results": results}, indent=1)
            (FOLDER / "results.json").write_text(text)
    report = summary(results) + ("\n\n" + scaling(results) if len(counts) > 1 else "")
    (FOLDER / "report.md").write_text(report + "\n")
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
