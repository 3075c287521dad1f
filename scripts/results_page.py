#!/usr/bin/env python3
"""docs/results.md: what the last full test run gave, and what long runs of other commands gave.

run_tests.py --all writes the totals, what failed, what was skipped, and what tests recorded. Called by hand, this
script brings in the times that .ci/run left in build/results/ci.json. Other sections, such as those about fuzzing, stay
as they are: whoever runs those commands writes them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

from outcomes import Outcome, skip_reasons, totals_line

ROOT = Path(__file__).resolve().parent.parent
FAILED, SKIPPED, RECORDED, CI = "Failed", "Skipped, by reason", "Counts that tests recorded", "Times of `.ci/run`"


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


def recorded_lines(outcomes: list[Outcome]) -> list[str]:
    """A row for each test that recorded something, such as the sites and faults of a harness."""
    rows = [
        (
            test.replace("|", "\\|"),
            ", ".join(f"{key} {value}" for key, value in sorted(kept.items())).replace("|", "\\|"),
        )
        for outcome in outcomes
        for test, kept in outcome.records.items()
    ]
    return (
        ["| test | counts |", "|---|---|", *(f"| {test} | {counts} |" for test, counts in sorted(rows))] if rows else []
    )


def write_results_page(page: Path, outcomes: list[Outcome], commit: str, clean: bool, seed: int) -> None:
    state = "" if clean else ", with uncommitted changes"
    day = datetime.datetime.now(datetime.UTC).date()
    sections = read_sections(page)
    sections[""] = [
        "# Results of the full test run",
        "",
        "Written by `make test-all`, which runs every case of every suite, and all sanitizers.",
        "",
        f"Commit `{commit}`{state}; {day}; seed {seed}: **{totals_line(outcomes)}**.",
        "",
        "| suite | passed | failed | skipped | seconds |",
        "|---|---:|---:|---:|---:|",
        *(f"| {o.suite} | {o.passed} | {o.failed} | {o.skipped} | {o.seconds:.0f} |" for o in outcomes),
    ]
    ours = {
        FAILED: [f"- {name}" for o in outcomes for name in o.failures],
        SKIPPED: [f"- {count} × {reason}" for count, reason in skip_reasons(outcomes)],
        RECORDED: recorded_lines(outcomes),
    }
    others = {heading: lines for heading, lines in sections.items() if heading and heading not in ours}
    write_sections(page, {"": sections[""], **ours, **others})


def ci_lines(ci: dict[str, object]) -> list[str]:
    phases = ci["phases"]
    assert isinstance(phases, list)
    return [
        f"Commit `{ci['commit']}`; {ci['day']}; {ci['cores']} cores; sanitizer turn `{ci['turn']}`; compiler cache "
        f"{ci['cache']}; {ci['seconds']} s in all.",
        "",
        "| phase | seconds | outcome |",
        "|---|---:|---|",
        *(f"| {phase['name']} | {phase['seconds']} | {phase['outcome']} |" for phase in phases),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--page", type=Path, default=ROOT / "docs/results.md")
    parser.add_argument("--ci", type=Path, default=ROOT / "build/results/ci.json", help="the times of .ci/run")
    args = parser.parse_args()
    if not args.ci.exists():
        print(f"results: {args.ci} is not there; .ci/run writes it", file=sys.stderr)
        return 1
    sections = read_sections(args.page)
    sections[CI] = ci_lines(json.loads(args.ci.read_text()))
    write_sections(args.page, sections)
    return 0


if __name__ == "__main__":
    sys.exit(main())
