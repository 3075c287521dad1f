#!/usr/bin/env python3
"""Times pinnace beside the engines that one would use instead, and its operators beside what the machine can do.

  report.py [NAME...] [--only models|operators] [--engines NAME,...] [--threads 1,2] [--seconds 0.4]
            [--rounds 3] [--repeats 2] [--fresh]
  report.py --gpu [NAME...] [--batch 1,16] [...]     networks on the GPU instead
  report.py --quantize [CASE...] [...]               quantisers instead: accuracy, size and time (quantize.py)

NAME is a model or an operator, or a pattern ("conv_*"); without any, everything runs. Per model and number of threads
every engine has a process of its own, pinned alike (one thread to the last processor, more to the last ones), and they
take turns: A B C A B C ... A figure is the median over the calls of a turn, of several turns the best. A turn during
which other programs used more than 5 % of a processor is repeated, up to twice. Operators are pinnace's alone.

--gpu has the first Vulkan device beside ncnn on it, and PyTorch where there is CUDA, in 32 and in 16 bits. Every engine
is started twice, with drivers' caches of compiled code empty and filled, and the second process is timed.

Everything goes to build/bench/results.json as it is found, the tables to build/bench/report.md (selected.json and
selected.md where not everything was asked for, gpu.json and gpu.md with --gpu; PINNACE_BENCH_FOLDER is another folder
than build/bench). A run that was broken off goes on when the same command is given again, unless the library has
changed or --fresh is given.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gpu_tables
import machine
import quantize
import quantize_cases
import tables
from cases import FOLDER, GPU_CASES, ROOT, TARGETS, of_batch, quantized, written
from engines import CPU_ENGINES, ENGINES, GPU_ENGINES, NOT_LIMITED
from operator_cases import OPERATORS
from process import Process, driver_cache, engine_process, python_of, variables

OTHERS_LIMIT = tables.OTHERS_LIMIT
PREPARE_LIMIT_S = 900.0
START_LIMIT_S = 240.0
Row = dict[str, Any]


def library_stamp() -> str:
    """Changes with our library."""
    files = sorted((ROOT / "python" / "pinnace").glob("_core*.so"))
    return " ".join(f"{f.stat().st_size}-{f.stat().st_mtime_ns}" for f in files)


# ---- models ---------------------------------------------------------------------------------------------------------


def write_case(case: str) -> str:
    """Writes the case's files where they are missing; empty, or why they cannot be."""
    if written(case):
        return ""
    print(f"  {case}: writing its files", flush=True)
    command = [str(python_of("")), str(ROOT / "bench" / "cases.py"), case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PREPARE_LIMIT_S, env=variables())
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["cannot be written"])[-1]


def refusal(name: str, case: str) -> str:
    """Why an engine does not take part in a case; empty if it does."""
    engine = ENGINES[name]
    return engine.not_quantized if quantized(case) else engine.not_float


def prepare(case: Path, names: list[str]) -> Row:
    """Converts the case for each engine once, ours whenever the library has changed; why for those that cannot."""
    known = case / "prepared.json"
    state: Row = json.loads(known.read_text()) if known.exists() else {}
    failed: Row = {}
    for name in names:
        source = ENGINES[name].twin_of or name
        stamp = library_stamp() if tables.ours(source) else ""
        if source not in state or state[source]["stamp"] != stamp:
            every = sorted(os.sched_getaffinity(0))
            process = engine_process("prepare", source, case, every)
            try:
                answer = process.answer(PREPARE_LIMIT_S)
            finally:
                process.close()
            state[source] = {"failed": answer.get("failed", ""), "stamp": stamp}
            known.write_text(json.dumps(state, indent=1))
            if state[source]["failed"]:
                print(f"  {case.name}: {source}: {state[source]['failed']}", flush=True)
        if state[source]["failed"]:
            failed[name] = state[source]["failed"]
    return failed


def best_turn(turns: list[Row]) -> Row:
    """The turn with the smallest median, one that nothing disturbed if there is one; with what all turns had."""
    quiet = [t for t in turns if t["others"] <= OTHERS_LIMIT]
    best = min(quiet or turns, key=lambda t: float(t["median"]))
    return best | {
        "start_up": best["first_ms"] - best["median"],
        "medians": [t["median"] for t in turns],
        "repeated": sum(t["attempt"] > 0 for t in turns),
        "peak_mb": max(t["peak_mb"] for t in turns),
    }


def read_files(folder: Path) -> None:
    """Brings the case's files into memory: start-up is not to be the disk's, of whoever comes first."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()


def start_cold(name: str, folder: Path, threads: int) -> Row:
    """A start without compiled code from earlier ones, which leaves it for the next."""
    shutil.rmtree(driver_cache(folder, name), ignore_errors=True)
    process = engine_process("serve", name, folder, machine.processors(threads), str(threads))
    try:
        answer = process.answer(START_LIMIT_S)
        time.sleep(1)  # drivers write in threads of their own
    finally:
        process.close(gently=True)
    return {f"cold_{key}": value for key, value in answer.items()} if "failed" not in answer else answer


def time_case(case: str, names: list[str], threads: int, settings: Row) -> Row:
    """{engine: its best turn, or {"failed": why}}."""
    seconds = settings["seconds"]
    rows: Row = {name: {"failed": why} for name in names if (why := refusal(name, case))}
    taking_part = [n for n in names if n not in rows]
    why = write_case(case)
    if why:
        return {name: {"failed": why} for name in names}
    folder = FOLDER / case
    rows |= {name: {"failed": why} for name, why in prepare(folder, taking_part).items()}
    processes: dict[str, Process] = {}
    turns: dict[str, list[Row]] = {}
    cold: dict[str, Row] = {}
    try:
        for name in taking_part:
            if name in rows:
                continue
            read_files(folder)
            if ENGINES[name].gpu:
                cold[name] = start_cold(name, folder, threads)
                if "failed" in cold[name]:
                    rows[name] = cold[name]
                    print(f"  {case} {threads}T {name:14} {cold[name]['failed']}", flush=True)
                    continue
            processes[name] = engine_process("serve", name, folder, machine.processors(threads), str(threads))
            answer = processes[name].answer(START_LIMIT_S)
            shown = answer.get("failed") or f"first answer after {answer['first_ms']:.1f} ms"
            print(f"  {case} {threads}T {name:14} {shown}", flush=True)
            if "failed" in answer:
                rows[name] = answer
                processes.pop(name).close()
        for _ in range(settings["rounds"]):
            for name, process in list(processes.items()):
                for attempt in range(1 + settings["repeats"]):
                    process.ask(str(seconds))
                    row = process.answer(60 + 20 * seconds)
                    if "failed" in row:
                        rows[name] = row
                        processes.pop(name).close()
                        break
                    turns.setdefault(name, []).append(row | {"attempt": attempt})
                    if row["others"] <= OTHERS_LIMIT:
                        break
    finally:
        for process in processes.values():
            process.close()
    for name in names:
        if name not in rows:
            rows[name] = best_turn(turns[name]) | cold.get(name, {})
            row = rows[name]
            print(f"  {case} {threads}T {name:14} {row['median']:9.3f} ms  others {row['others']:.2f}", flush=True)
    return {name: rows[name] for name in names}


def run_models(data: Row, store: Any, cases: list[str], names: list[str], counts: list[int]) -> None:
    done = {(r["case"], r["threads"]) for r in data["models"]}
    settings = data["settings"]
    for case in cases:
        for threads in counts:
            if (case, threads) in done:
                continue
            engines = time_case(case, names, threads, settings)
            data["models"].append({"case": case, "threads": threads, "engines": engines})
            store()


# ---- operators ------------------------------------------------------------------------------------------------------


def run_operators(data: Row, store: Any, names: list[str], counts: list[int]) -> None:
    """All in one process, which is started again behind an operator that ends it."""
    done = {r["operator"] for r in data["operators"]}
    left = [n for n in names if n not in done]
    seconds = str(data["settings"]["operator_seconds"])
    while left:
        repeats = str(data["settings"]["repeats"])
        command = ["operators.py", seconds, repeats, ",".join(map(str, counts)), *left]
        process = Process("", command, "operators", sorted(os.sched_getaffinity(0)))
        try:
            while left:
                rows = []
                for _ in counts:
                    row = process.answer(120)
                    if "operator" not in row:
                        rows = [row | {"operator": left[0], "threads": t} for t in counts]
                        break
                    rows.append(row)
                for row in rows:
                    shown = row.get("failed") or f"{row['median']:9.4f} ms  {', '.join(row['kernels'])}"
                    print(f"  {row['operator']:44} {row['threads']}T {shown}", flush=True)
                data["operators"] += rows
                left.pop(0)
                store()
                if "failed" in rows[0] and process.child is not None and process.child.poll() is not None:
                    break
        finally:
            process.close()


# ---- the rest -------------------------------------------------------------------------------------------------------


def level() -> str:
    """The instruction set that our kernels run here."""
    code = "import pinnace; print(*(d.description for d in pinnace.devices() if d.target == 'cpu'))"
    done = subprocess.run([str(python_of("")), "-c", code], capture_output=True, text=True, timeout=60, env=variables())
    found = re.search(r", (\w+), \d+ processor", done.stdout)
    return found[1] if found else ""


def arm64() -> Row:
    """What the ARM64 build gives in emulation, where it has been made."""
    build = ROOT / "build" / "arm64"
    model = FOLDER / "mobilenet_v2" / "model.pnc"
    if not ((build / "pinnace-run").exists() and (build / "libpinnace_runtime.so").exists() and model.exists()):
        return {}
    command = [sys.executable, str(ROOT / "tests/arm64/check_arm64.py"), "--only", "library", "--model", str(model)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    except subprocess.TimeoutExpired:
        return {}
    found: Row = {}
    if size := re.search(r"stripped (\d+) bytes", said):
        found["runtime library, stripped"] = int(size[1]) / 1e6
    if count := re.search(r"([\d.]+) M instructions", said):
        found["MobileNetV2 in float32, instructions"] = float(count[1])
    return found


def resumed(path: Path, data: Row, fresh: bool) -> Row:
    """What an earlier run of the same settings, machine and library had found before it was broken off."""
    if fresh or not path.exists():
        return data
    earlier: Row = json.loads(path.read_text())
    same = all(earlier.get(key) == data[key] for key in ("settings", "library"))
    same &= {**earlier.get("machine", {}), "date": ""} == {**data["machine"], "date": ""}
    if earlier.get("finished", True) or not same:
        return data
    print(f"goes on with {path}", flush=True)
    return earlier


def chosen(patterns: list[str], known: list[str]) -> list[str]:
    return [name for name in known if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"models ({', '.join(TARGETS)}) and operators, or patterns")
    parser.add_argument("--only", choices=["models", "operators"], help="leave the other part out")
    parser.add_argument("--gpu", action="store_true", help="networks on the GPU, in a table of their own")
    parser.add_argument("--quantize", action="store_true", help=f"quantisers, on {', '.join(quantize_cases.CASES)}")
    parser.add_argument("--batch", default="1", help="with --gpu: numbers of images, with commas between")
    parser.add_argument("--engines", help=f"of {', '.join(ENGINES)}, with commas between")
    parser.add_argument("--threads", help="numbers of threads, with commas between: 1,2,4; with --gpu all processors")
    parser.add_argument("--seconds", type=float, default=0.4, help="of a turn of an engine")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each engine")
    parser.add_argument("--repeats", type=int, default=2, help="of a turn that other programs disturbed")
    parser.add_argument("--operator-seconds", type=float, default=0.15, help="for each operator")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a run that was broken off")
    parser.add_argument("--list", action="store_true", help="print the names that are chosen, and end")
    options = parser.parse_args(arguments)
    if options.quantize:
        for pattern in options.names:
            if not chosen([pattern], list(quantize_cases.CASES)):
                parser.error(f"{pattern!r} is none of {', '.join(quantize_cases.CASES)}")
        picked = chosen(options.names, list(quantize_cases.CASES)) if options.names else []
        return quantize.main(picked, options.seconds, options.repeats)
    names = options.engines.split(",") if options.engines else GPU_ENGINES if options.gpu else CPU_ENGINES
    for name in names:
        if name not in ENGINES:
            parser.error(f"--engines: {name!r} is none of {', '.join(ENGINES)}")
        if ENGINES[name].gpu != options.gpu:
            parser.error(f"--engines: {name!r} is timed {'without' if options.gpu else 'with'} --gpu")
    if options.gpu:
        options.only = "models"
    models = chosen(options.names, list(GPU_CASES if options.gpu else TARGETS)) if options.only != "operators" else []
    operators = chosen(options.names, list(OPERATORS)) if options.only != "models" else []
    for pattern in options.names:
        if not chosen([pattern], [*models, *operators]):
            parser.error(f"{pattern!r} is no model and no operator; --list names them")
    if options.gpu:
        models = [of_batch(model, int(batch)) for batch in options.batch.split(",") for model in models]
    if options.list:
        print("\n".join([*models, *operators]))
        return 0
    here = machine.describe()
    default = str(here["processors"]) if options.gpu else "1,2,4"
    asked = sorted({int(t) for t in (options.threads or default).split(",")})
    counts = [t for t in asked if 1 <= t <= here["processors"]]
    if not counts:
        parser.error(f"--threads: {options.threads or default}; this machine has {here['processors']} processors")

    FOLDER.mkdir(parents=True, exist_ok=True)
    stem = "gpu" if options.gpu else "selected" if options.names or options.only else "results"
    output = FOLDER / f"{stem}.json"
    settings = {
        "threads": asked,
        "engines": names,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "repeats": options.repeats,
        "operator_seconds": options.operator_seconds,
        "names": options.names,
        "only": options.only,
    }
    if options.gpu:
        settings["gpu"] = gpu_tables.devices(python_of(""), variables())
        settings["cases"] = models
    data: Row = {
        "machine": here,
        "settings": settings,
        "library": library_stamp(),
        "level": level(),
        "not_limited": {name: why for name, why in NOT_LIMITED.items() if name in names},
        "finished": False,
        "peaks": {},
        "libraries": {},
        "models": [],
        "operators": [],
    }
    data = resumed(output, data, options.fresh)

    def store() -> None:
        """Whole or not at all: a run may be broken off at any time."""
        new = output.with_suffix(".new")
        new.write_text(json.dumps(data, indent=1))
        new.replace(output)

    store()
    try:
        for threads in counts:
            if operators and str(threads) not in data["peaks"]:
                data["peaks"][str(threads)] = machine.measure_peak(threads)
                store()
        run_operators(data, store, operators, counts)
        run_models(data, store, models, names, counts)
        if not options.gpu:
            data["libraries"] = machine.library_sizes()
            data["arm64"] = arm64()
        data["finished"] = True
        store()
    except KeyboardInterrupt:
        print(f"broken off; the same command goes on with {output}", flush=True)
    text = gpu_tables.report(data) if options.gpu else tables.report(data)
    (FOLDER / ("report.md" if stem == "results" else f"{stem}.md")).write_text(text + "\n")
    print(text)
    return 0 if data["finished"] else 130


if __name__ == "__main__":
    sys.exit(main())
