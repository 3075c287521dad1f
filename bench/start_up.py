#!/usr/bin/env python3
"""Times the first answer: from the file to the first answer less one steady run, beside the engines that one would use.

  start_up.py [NAME...] [--engines NAME,...] [--threads 1,2] [--starts 7] [--seconds 0.3]

NAME is a model of bench/cases.py. Every start is a process of its own, whose files are in memory and whose libraries
are loaded before the clock runs; engines take turns, A B C A B C ... A start's figure is the time from the file to its
first answer, which is compared with PyTorch's, less the median of the runs that follow; an engine's is the smallest of
its starts, beside their median. Starts during which other programs used more than 5 % of a processor are counted.

Ours starts with its default target three times: from a plain file without a cache folder, from the same file whose
weights an earlier start has packed into one, and from a file that was packed when it was built. Tables go to
build/bench/start_up.md, everything else to start_up.json (PINNACE_BENCH_FOLDER is another folder than build/bench).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine
import tables
from cases import FOLDER, START_UP_TARGET, TARGETS
from engines import CPU_ENGINES, ENGINES, START_UP_ENGINES
from process import engine_process
from report import START_LIMIT_S, prepare, read_files, refusal, write_case

CASES = ("mobilenet_v2", "resnet50", "bert", "noise_suppressor")
Row = dict[str, Any]


def start(name: str, folder: Path, threads: int, seconds: float) -> Row:
    """One start of an engine, and the runs behind it."""
    read_files(folder)
    process = engine_process("serve", name, folder, machine.processors(threads), str(threads))
    try:
        answer = process.answer(START_LIMIT_S)
        if "failed" in answer:
            return answer
        process.ask(str(seconds))
        turn = process.answer(60 + 20 * seconds)
        if "failed" in turn:
            return turn
        return {**turn, "start_up": turn["first_ms"] - turn["median"]}
    finally:
        process.close()


def figure(starts: list[Row]) -> Row:
    times = [s["start_up"] for s in starts]
    return {
        "best": min(times),
        "median": statistics.median(times),
        "run": min(s["median"] for s in starts),
        "starts": len(starts),
        "disturbed": sum(s["others"] > tables.OTHERS_LIMIT for s in starts),
        "version": starts[0]["version"],
    }


def time_case(case: str, names: list[str], threads: int, starts: int, seconds: float) -> Row:
    """{engine: its figure, or {"failed": why}}."""
    rows: Row = {name: {"failed": why} for name in names if (why := refusal(name, case))}
    if why := write_case(case):
        return {name: {"failed": why} for name in names}
    folder = FOLDER / case
    rows |= {name: {"failed": why} for name, why in prepare(folder, [n for n in names if n not in rows]).items()}
    found: dict[str, list[Row]] = {}
    for _ in range(starts):
        for name in names:
            if name in rows:
                continue
            row = start(name, folder, threads, seconds)
            if "failed" in row:
                rows[name] = row
            else:
                found.setdefault(name, []).append(row)
    for name in names:
        if name not in rows:
            rows[name] = figure(found[name])
        shown = rows[name].get("failed") or f"{rows[name]['best']:8.2f} ms, median {rows[name]['median']:.2f}"
        print(f"  {case} {threads}T {name:16} {shown}", flush=True)
    return {name: rows[name] for name in names}


def best_rival(engines: Row) -> tuple[str, float] | None:
    """The engine of others that starts soonest."""
    times = {n: r["best"] for n, r in engines.items() if "best" in r and not tables.ours(n)}
    return min(times.items(), key=lambda item: item[1]) if times else None


def report(data: Row) -> str:
    ours = [n for n in data["engines"] if tables.ours(n)]
    titles = [f"{n.removeprefix('pinnace-')}, ms" for n in ours]
    head = ["model", "threads", *titles, "best rival, ms", *(f"ratio, {title[:-4]}" for title in titles)]
    lines = [
        f"{data['machine']['processor']}, {data['machine']['processors']} processors, {data['machine']['date']}. "
        f"Smallest of {data['starts']} starts, less one steady run; the ratio is to the best rival, at most "
        f"{START_UP_TARGET:g} is asked for.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for row in data["models"]:
        rival = best_rival(row["engines"])
        cells = [row["case"], str(row["threads"])]
        figures = [row["engines"][n] for n in ours]
        cells += [f"{f['best']:.2f} ({f['median']:.2f})" if "best" in f else f["failed"] for f in figures]
        cells.append(f"{rival[1]:.2f} ({rival[0]})" if rival else "none")
        for f in figures:
            ratio = f["best"] / rival[1] if rival and "best" in f and rival[1] > 0 else None
            met = "" if ratio is None else " met" if ratio <= START_UP_TARGET else " **missed**"
            cells.append("-" if ratio is None else f"{ratio:.2f}{met}")
        lines.append("| " + " | ".join(cells) + " |")
    disturbed = sum(r.get("disturbed", 0) for row in data["models"] for r in row["engines"].values())
    starts = sum(r.get("starts", 0) for row in data["models"] for r in row["engines"].values())
    lines += ["", f"{disturbed} of {starts} starts were disturbed by other programs."]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"models; without any {', '.join(CASES)}")
    parser.add_argument("--engines", help=f"of {', '.join([*START_UP_ENGINES, *CPU_ENGINES])}, with commas between")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas between")
    parser.add_argument("--starts", type=int, default=7, help="processes of each engine")
    parser.add_argument("--seconds", type=float, default=0.3, help="of steady runs behind each start")
    options = parser.parse_args(arguments)
    rivals = [n for n in CPU_ENGINES if not tables.ours(n) and not n.endswith("-avx2")]
    names = options.engines.split(",") if options.engines else [*START_UP_ENGINES, *rivals]
    for name in names:
        if name not in ENGINES or ENGINES[name].gpu:
            parser.error(f"--engines: {name!r} is none of {', '.join([*START_UP_ENGINES, *CPU_ENGINES])}")
    for name in options.names:
        if name not in TARGETS:
            parser.error(f"{name!r} is none of {', '.join(TARGETS)}")
    here = machine.describe()
    counts = [t for t in sorted({int(t) for t in options.threads.split(",")}) if 1 <= t <= here["processors"]]
    if not counts:
        parser.error(f"--threads: {options.threads}; this machine has {here['processors']} processors")
    FOLDER.mkdir(parents=True, exist_ok=True)
    data: Row = {"machine": here, "engines": names, "starts": options.starts, "models": []}
    for case in options.names or CASES:
        for threads in counts:
            engines = time_case(case, names, threads, options.starts, options.seconds)
            data["models"].append({"case": case, "threads": threads, "engines": engines})
            (FOLDER / "start_up.json").write_text(json.dumps(data, indent=1))
    text = report(data)
    (FOLDER / "start_up.md").write_text(text + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
