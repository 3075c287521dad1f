#!/usr/bin/env python3
"""docs/results.md: what the last full test run gave, and what long runs of other commands gave.

run_tests.py --all writes the totals, what failed, what was skipped, and what tests recorded. Called by hand, this
script brings in what longer commands left behind: the times of .ci/run (build/results/ci.json) and the totals of
fuzz.py (build/fuzz/results.json). Any other section stays as it is.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import Any

from outcomes import Outcome, skip_reasons, totals_line

ROOT = Path(__file__).resolve().parent.parent
FAILED, SKIPPED, RECORDED, CI = "Failed", "Skipped, by reason", "Counts that tests recorded", "Times of `.ci/run`"
FAULTS, FUZZING, PLANTED, SANITIZERS = "Injected faults", "Fuzzing", "Planted faults", "Sanitizers"


def read_sections(page: Path) -> dict[str, list[str]]:
    """Heading -> lines; what stands before the first heading of level two is under the empty one."""
    sections: dict[str, list[str]] = {"": []}
    heading = ""
    for line in page.read_text().splitlines() if page.exists() else []:
        if line.startswith("## "):
            heading = line.removeprefix("## ")
            sections[heading] = []
        else:
            sections[heading].append(line)
    return sections


def write_sections(page: Path, sections: dict[str, list[str]]) -> None:
    blocks = []
    for heading, lines in sections.items():
        text = "\n".join(lines).strip("\n")
        if text:
            blocks.append(f"## {heading}\n\n{text}" if heading else text)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(blocks) + "\n")


# What a test of planted faults records of its model.
PLANTED_KEYS = {"faults of", "planted", "found", "missed"}


def recorded_lines(outcomes: list[Outcome]) -> list[str]:
    """A row for each test that recorded something, such as the sites and faults of a harness."""
    rows = [
        (
            test.replace("|", "\\|"),
            ", ".join(f"{key} {value}" for key, value in sorted(kept.items())).replace("|", "\\|"),
        )
        for outcome in outcomes
        for test, kept in outcome.records.items()
        if not kept.keys() >= PLANTED_KEYS
    ]
    return (
        ["| test | counts |", "|---|---|", *(f"| {test} | {counts} |" for test, counts in sorted(rows))] if rows else []
    )


def fault_lines(outcomes: list[Outcome]) -> list[str]:
    """The rows that the fault harness printed: each call with every failure of one kind."""
    rows = sorted({row for outcome in outcomes for row in outcome.fault_rows})
    if not rows:
        return []
    return [
        "Places: points of the call where this kind of failure can be made. Failures: how many runs of the call had",
        "one, each at another place. Told: it returned the typed error. Survived: it gave the right result even so.",
        "",
        "| call | kind of fault | places | failures | told | survived | seconds |",
        "|---|---|---:|---:|---:|---:|---:|",
        *rows,
    ]


def planted_lines(outcomes: list[Outcome]) -> list[str]:
    """A row for each model into which faults were planted, and their sum."""
    kept = [k for outcome in outcomes for k in outcome.records.values() if k.keys() >= PLANTED_KEYS]
    if not kept:
        return []
    rows = []
    for row in sorted(kept, key=lambda k: k["faults of"]):
        missed = json.loads(row["missed"])
        said = "; ".join(f"{fault} ({change})" for fault, change in missed.items()).replace("|", "\\|")
        rows.append((row["faults of"], int(row["planted"]), int(row["found"]), len(missed), said))
    sums = [sum(row[column] for row in rows) for column in (1, 2, 3)]  # type: ignore[misc]
    return [
        "Faults planted into converted models, one at a time, that verification against the source found. Missed: how",
        "far the outputs are from the model's on further inputs, relative to their largest value, is in parentheses.",
        "`docs/verification.md` says how they are judged.",
        "",
        "| model | planted | found | missed | which |",
        "|---|---:|---:|---:|---|",
        *(f"| {name} | {planted} | {found} | {missed} | {said} |" for name, planted, found, missed, said in rows),
        f"| **all** | {sums[0]} | {sums[1]} | {sums[2]} | |",
    ]


def write_results_page(page: Path, outcomes: list[Outcome], commit: str, clean: bool, seed: int) -> None:
    """What the suites gave. Sanitizers have a section of their own, with the commit in each row, for one takes hours: a
    row stays as it is until that sanitizer is run again, and so do the tests' sections until they are."""
    sections = read_sections(page)
    state = "" if clean else ", with uncommitted changes"
    day = datetime.datetime.now(datetime.UTC).date()
    tests = [o for o in outcomes if o.kind != "sanitizer"]
    if tests:
        sections[""] = [
            "# Results of the full test run",
            "",
            "Written by `make test-all`, which runs every case of every suite, and all sanitizers, listed below.",
            "",
            f"Commit `{commit}`{state}; {day}; seed {seed}: **{totals_line(tests)}**.",
            "",
            "| suite | passed | failed | skipped | seconds |",
            "|---|---:|---:|---:|---:|",
            *(f"| {o.suite} | {o.passed} | {o.failed} | {o.skipped} | {o.seconds:.0f} |" for o in tests),
        ]
    ours = {SANITIZERS: sanitizer_lines(outcomes, f"`{commit}`{state}; {day}", sections.get(SANITIZERS, []))}
    if tests:
        ours |= {
            FAILED: [f"- {name}" for o in tests for name in o.failures],
            SKIPPED: [f"- {count} × {reason}" for count, reason in skip_reasons(tests)],
            FAULTS: fault_lines(tests),
            PLANTED: planted_lines(tests),
            RECORDED: recorded_lines(tests),
        }
    others = {heading: lines for heading, lines in sections.items() if heading and heading not in ours}
    write_sections(page, {"": sections[""], **ours, **others})


def sanitizer_lines(outcomes: list[Outcome], run: str, before: list[str]) -> list[str]:
    """A row for each turn of scripts/turns.py: those that ran in place of what the page has of them."""
    rows = {cells[0]: cells for line in before if len(cells := _cells(line)) == 6 and cells[2].isdigit()}
    failed = [line for line in before if line.startswith("- ")]
    for o in outcomes:
        if o.kind == "sanitizer":
            name = o.suite.removeprefix("sanitizer:")
            rows[name] = [name, run, *map(str, (o.passed, o.failed, o.skipped, round(o.seconds)))]
            failed = [line for line in failed if not line.startswith(f"- {name}: ")]
            failed += [f"- {name}: {one}" for one in o.failures]
    if not rows:
        return []
    return [
        "| sanitizer | commit | passed | failed | skipped | seconds |",
        "|---|---|---:|---:|---:|---:|",
        *(f"| {' | '.join(cells)} |" for _, cells in sorted(rows.items())),
        *(["", *failed] if failed else []),
    ]


def ci_lines(ci: dict[str, Any]) -> list[str]:
    return [
        f"Commit `{ci['commit']}`; {ci['day']}; {ci['cores']} cores; sanitizer turn `{ci['turn']}`; compiler cache "
        f"{ci['cache']}; {ci['seconds']} s in all.",
        "",
        "| phase | seconds | outcome |",
        "|---|---:|---|",
        *(f"| {phase['name']} | {phase['seconds']} | {phase['outcome']} |" for phase in ci["phases"]),
    ]


def fuzz_lines(totals: dict[str, dict[str, Any]], before: list[str]) -> list[str]:
    """What scripts/fuzz.py keeps for each target and build of it, below what the page has of other builds."""
    read = [cells for line in before if len(cells := _cells(line)) == 9 and not cells[2].strip(",0123456789")]
    rows = {(cells[0], cells[1]): cells for cells in read}
    for name, t in totals.items():
        numbers = [t["executions"], t["seconds"] // 60, t["edges"], t["features"], t["corpus"]]
        counts = [f"{round(n):,}" for n in [*numbers, t["quiet_seconds"] // 60, len(t["findings"])]]
        rows[name, t["program"][:8]] = [name, t["program"][:8], *counts]
    sums: dict[str, int] = {}
    for (name, _), cells in rows.items():
        sums[name] = sums.get(name, 0) + int(cells[2].replace(",", ""))
    for name, t in totals.items():  # builds between those that were written down
        sums[name] = max(sums[name], t["executions"] + t["earlier"])
    return [
        "Build: the first digits of the SHA-1 of the program, which changes with its sources. Minutes are of processor",
        "time (of builds before 2026-11-29: of the clock); those without news: since a build last reached a new edge.",
        "",
        "| target | build | executions | minutes | edges | features | inputs kept | minutes without news | findings |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *(f"| {' | '.join(cells)} |" for _, cells in sorted(rows.items())),
        "",
        "Executions over all builds: " + ", ".join(f"{name} {count:,}" for name, count in sorted(sums.items())) + ".",
    ]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", type=Path, default=ROOT / "docs/results.md")
    parser.add_argument("--fuzz", type=Path, default=ROOT / "build/fuzz/results.json", help="the totals of fuzz.py")
    parser.add_argument("--ci", type=Path, default=ROOT / "build/results/ci.json", help="the times of .ci/run")
    args = parser.parse_args()
    sections = read_sections(args.page)
    written = {}
    if args.ci.exists():
        written[CI] = ci_lines(json.loads(args.ci.read_text()))
    if args.fuzz.exists():
        written[FUZZING] = fuzz_lines(json.loads(args.fuzz.read_text()), sections.get(FUZZING, []))
    if not written:
        print(f"results: neither {args.ci} nor {args.fuzz} is there", file=sys.stderr)
        return 1
    write_sections(args.page, sections | written)
    print(f"results: {args.page}: {', '.join(written)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
