#!/usr/bin/env python3
"""Runs the fuzz targets of build/fuzz one after the other and prints what each of them has reached.

    fuzz.py --seconds 20                        every target for a while, as CI does
    fuzz.py onnx pnc --minutes 30               two targets for half an hour each
    fuzz.py --executions 5000000 --quiet 30     in turns, until each ran so often, and 30 minutes without a new edge
    fuzz.py --jobs 2 --seconds 20               two targets at a time

Seeds are made once (tests/fuzz/make_seeds.py). What is found to reach more is kept in build/fuzz/corpus, where the next
run starts; totals go on as long as the program is the same, and are kept in build/fuzz/results.json, with those of the
programs before it, which --executions counts too. The minutes of --quiet and of the totals are of processor time. A
finding ends its target: the input lies in build/fuzz/findings, and `build/fuzz/fuzz_<target> <input>` repeats it.
Options that are unknown here are libFuzzer's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "fuzz"
SOURCES = ROOT / "tests" / "fuzz"

# The longest input that mutations make, in bytes: some times the length of a seed.
LONGEST = {"expression": 1024, "pnc": 8192, "pt2": 8192, "pt2_json": 8192}
DICTIONARIES = {
    "expression": "expression",
    "nnapi_json": "json",
    "pt2_json": "json",
    "pt2": "json",
    "text": "text",
    "run": "text",
    "onnx": "onnx",
}
# Operators by name, which no mutation would guess.
OPERATORS = {"text": "cpp/ops/ops.inc", "onnx": "cpp/import/onnx/mappings.inc"}
SLICE_SECONDS = 600  # of one target before the next has its turn


@dataclass
class Total:
    """What a target has done with one program, over all runs."""

    program: str = ""
    executions: int = 0
    seconds: float = 0  # of processor time, so that other work beside it does not count
    quiet_seconds: float = 0  # of it, since an edge was reached for the first time
    edges: int = 0
    features: int = 0
    corpus: int = 0
    earlier: int = 0  # executions of the programs before this one
    findings: list[str] = field(default_factory=list)


def targets() -> list[str]:
    return sorted(path.stem for path in (SOURCES / "targets").glob("*.cc"))


def make_seeds() -> Path:
    folder, key = FOLDER / "seeds", hashlib.sha1((ROOT / "requirements.txt").read_bytes())
    for path in sorted(p for p in SOURCES.rglob("*") if p.suffix == ".py" or "seeds" in p.parts):
        if path.is_file():
            key.update(path.read_bytes())
    stamp = folder / ".made"
    if not stamp.is_file() or stamp.read_text() != key.hexdigest():
        subprocess.run([sys.executable, str(SOURCES / "make_seeds.py"), str(folder)], check=True)
        stamp.write_text(key.hexdigest())
    return folder


def dictionary(target: str) -> list[str]:
    """The option for libFuzzer, with the dictionary written where it can read it; nothing for binary formats."""
    if target not in DICTIONARIES:
        return []
    name = DICTIONARIES[target]
    stored = SOURCES / "dictionaries" / f"{name}.dict"
    words = stored.read_text() if stored.is_file() else ""
    if name in OPERATORS:
        listed = re.findall(r"^\s*\w+\(\"?(\w+)", (ROOT / OPERATORS[name]).read_text(), re.MULTILINE)
        words += "".join(f'"{word}"\n' for word in dict.fromkeys(listed))
    written = FOLDER / f"{target}.dict"
    written.write_text(words)
    return [f"-dict={written}"]


def sum_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha1").hexdigest()


def processor_seconds(pid: int) -> float:
    """What a child process has used so far, also one that has ended and was not waited for."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def follow(process: subprocess.Popen[str], total: Total, log: list[str]) -> None:
    """Reads libFuzzer's report to its end: lines "#123 NEW cov: 45 ft: 67 corp: 8/9Kb ...", then statistics."""
    assert process.stderr is not None
    last = 0.0
    for line in process.stderr:
        log.append(line)
        if found := re.match(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)", line):
            edges, total.features, total.corpus = (int(n) for n in found.groups()[1:])
            if edges > total.edges:
                total.edges, total.quiet_seconds, last = edges, 0, processor_seconds(process.pid)
        elif found := re.match(r"stat::number_of_executed_units:\s+(\d+)", line):
            total.executions += int(found[1])
    end = processor_seconds(process.pid)
    process.wait()
    total.seconds += end
    total.quiet_seconds += end - last


def run(target: str, total: Total, seconds: float, seeds: Path, options: list[str]) -> None:
    """One run of a target; a finding is added to the total's."""
    program = FOLDER / f"fuzz_{target}"
    corpus, findings = FOLDER / "corpus" / target, FOLDER / "findings" / target
    for folder in (corpus, findings, seeds / target):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as scratch:
        command = [
            str(program),
            f"-max_total_time={max(1, round(seconds))}",
            f"-max_len={LONGEST.get(target, 4096)}",
            "-timeout=20",
            "-rss_limit_mb=2560",
            "-print_final_stats=1",
            f"-artifact_prefix={findings}/",
            *dictionary(target),
            *options,
            str(corpus),
            str(seeds / target),
        ]
        # Where memory was allocated is not kept, a tenth of the time: a finding is repeated by hand, with it. Freed
        # memory is kept from use as long as 16 MB last: the usual 256 MB do not fit a cache, another tenth.
        sanitizer = {"ASAN_OPTIONS": "malloc_context_size=0:quarantine_size_mb=16"}
        environment = sanitizer | os.environ | {"PINNACE_FUZZ_FOLDER": scratch}
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace", env=environment
        )
        log: list[str] = []
        try:
            follow(process, total, log)
        finally:
            if process.poll() is None:
                process.kill()
    new = sorted(set(findings.iterdir()) - before)
    total.findings += [str(path.relative_to(ROOT)) for path in new]
    if process.returncode != 0 or new:
        if not new:
            total.findings.append(f"exit status {process.returncode}")
        (FOLDER / f"{target}.log").write_text("".join(log))
        print(f"fuzz: {target}: FAILED", *total.findings, sep="\n  ")
        print("".join(log[-60:]))


def total_of(program: str, stored: dict[str, Any]) -> Total:
    """What to go on from: a program that has changed starts again, but for the executions of those before it."""
    known = {f.name for f in fields(Total)}
    kept = Total(**{name: value for name, value in stored.items() if name in known})
    kept.findings = []
    return kept if kept.program == program else Total(program, earlier=kept.earlier + kept.executions)


def table(totals: dict[str, Total]) -> str:
    titles = ("executions", "earlier", "per s", "minutes", "edges", "features", "corpus", "quiet min", "findings")
    rows = ["target       " + " ".join(f"{title:>12}" for title in titles)]
    for name, t in totals.items():
        rate = t.executions / t.seconds if t.seconds else 0
        counts = (t.executions, t.earlier, rate, t.seconds / 60, t.edges, t.features, t.corpus, t.quiet_seconds / 60)
        rows.append(f"{name:12} " + " ".join(f"{count:12,.0f}" for count in (*counts, len(t.findings))))
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="all, if none is named")
    parser.add_argument("--seconds", type=float, default=0, help="of each target")
    parser.add_argument("--minutes", type=float, default=0, help="of each target")
    parser.add_argument("--executions", type=int, default=0, help="of each target, over all its runs")
    parser.add_argument("--quiet", type=float, default=0, help="minutes without a new edge that each target ends with")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at a time")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0: another each time")
    args, options = parser.parse_known_args()
    wanted = args.targets or targets()
    if unknown := set(wanted) - set(targets()):
        parser.error(f"no such targets: {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    if missing := [t for t in wanted if not (FOLDER / f"fuzz_{t}").is_file()]:
        print(f"fuzz: not built: {', '.join(missing)}; make fuzz builds them")
        return 1
    seeds = make_seeds()
    kept = FOLDER / "results.json"
    stored = json.loads(kept.read_text()) if kept.is_file() else {}
    totals = {}
    for target in wanted:
        program = sum_of(FOLDER / f"fuzz_{target}")
        totals[target] = total_of(program, stored.get(target, {}))
    budget = args.seconds + 60 * args.minutes
    until = args.executions > 0 or args.quiet > 0
    left = {t: budget if budget > 0 else float("inf") if until else 20.0 for t in wanted}
    rounds = 0
    writing = threading.Lock()

    def turn(target: str) -> None:
        total = totals[target]
        seconds = min(left[target], SLICE_SECONDS)
        # Every second turn compares are followed too, which finds constants and costs speed. Their features are so many
        # that preferring inputs by rare ones (entropic) would take up to half of the time.
        follows = rounds % 2
        more = [f"-use_value_profile={follows}", f"-entropic={1 - follows}"]
        more += [*([f"-seed={args.seed}"] if args.seed else []), *options]
        run(target, total, seconds, seeds, more)
        left[target] -= seconds
        done = until and total.earlier + total.executions >= args.executions and total.quiet_seconds >= 60 * args.quiet
        if total.findings or done:
            left[target] = 0
        with writing:
            kept.write_text(json.dumps(stored | {t: asdict(v) for t, v in totals.items()}, indent=1))

    with ThreadPoolExecutor(max(1, args.jobs)) as pool:
        while left:
            list(pool.map(turn, list(left)))
            left = {target: seconds for target, seconds in left.items() if seconds > 0}
            rounds += 1
    print(table(totals))
    return 1 if any(t.findings for t in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
