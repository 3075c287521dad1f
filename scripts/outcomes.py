"""What became of a suite: counts, names and reasons, read from the reports of GoogleTest, pytest and this runner.

run_tests.py keeps one Outcome for each suite under build/results/, as JSON.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Outcome:
    """The JSON file of a suite."""

    suite: str
    commit: str
    clean: bool
    everything: bool
    seed: int
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    built_from: str = ""  # the commit that the tested binary names; empty: the suite has no binary, or it did not say
    failures: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)  # of failures, where the suite's report has one
    passes: list[str] = field(default_factory=list)
    skips: dict[str, str] = field(default_factory=dict)  # test -> reason
    skip_reasons: dict[str, int] = field(default_factory=dict)
    records: dict[str, dict[str, str]] = field(default_factory=dict)  # test -> what it recorded (RecordProperty)
    fault_rows: list[str] = field(default_factory=list)  # of the table of injected faults, as the harness printed them

    @property
    def kind(self) -> str:
        """cpp, python, rules, ...: the suites that --only names together."""
        return self.suite.split(":")[0]

    def succeed(self, name: str) -> None:
        self.passed += 1
        self.passes.append(name)

    def fail(self, name: str, reason: str = "") -> None:
        self.failed += 1
        self.failures.append(name)
        if reason:
            self.reasons[name] = " ".join(reason.split())[:300]

    def skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        reason = " ".join(reason.split())[:200] or "no reason given"
        self.skips[name] = reason
        self.skip_reasons[reason] = self.skip_reasons.get(reason, 0) + 1


# ---- reading reports ------------------------------------------------------------------------------------------------

# What GoogleTest itself says of a test; any other key of its report was recorded by the test.
GTEST_KEYS = {
    *("name", "file", "line", "status", "result", "timestamp", "time", "classname"),
    *("failures", "value_param", "type_param", "skipped"),
}


def gtest_skip_reasons(log: str) -> dict[str, str]:
    """Test -> what its GTEST_SKIP said. Reports of GoogleTest before 1.13 leave it out, so it is read off the log."""
    pattern = r"^\[ RUN      \] (\S+)\n(?:(?!\[ ).*\n)*?\S+:\d+: Skipped\n((?:(?!\[ ).*\n)*)\[  SKIPPED \] "
    return {match[1]: match[2] for match in re.finditer(pattern, log, re.MULTILINE)}


def read_gtest(report: Path, log: str, outcome: Outcome) -> None:
    reasons = gtest_skip_reasons(log)
    outcome.fault_rows = re.findall(r"^faults (\| .* \|)$", log, re.MULTILINE)
    content = json.loads(report.read_text())
    outcome.built_from = content.get("built_from", "")
    for group in content["testsuites"]:
        for test in group["testsuite"]:
            name = f"{group['name']}.{test['name']}"
            if test.get("failures"):
                of = f" ({test['value_param'][:80]})" if "value_param" in test else ""
                outcome.fail(name + of, test["failures"][0].get("failure", ""))
            elif test["status"] == "NOTRUN":
                outcome.skip(name, "disabled")
            elif test["result"] == "SKIPPED":
                outcome.skip(name, reasons.get(name, ""))
            else:
                outcome.succeed(name)
            if recorded := {key: str(value) for key, value in test.items() if key not in GTEST_KEYS}:
                outcome.records[name] = recorded


def read_gtest_log(log: str, outcome: Outcome) -> None:
    """What a program that did not live to write its report had said. The test it died in is failed by the caller."""
    for match in re.finditer(r"^\[       OK \] (\S+)", log, re.MULTILINE):
        outcome.succeed(match[1].rstrip(","))
    for name, reason in gtest_skip_reasons(log).items():
        outcome.skip(name, reason)
    for match in re.finditer(r"^\[  FAILED  \] ([^\s,]+)[^\n]*\([\d.]+ ms\)$", log, re.MULTILINE):
        outcome.fail(match[1])


def read_pytest(report: Path, outcome: Outcome) -> None:
    # The files of one test: a failure in its tear-down comes as a second entry of the same name.
    seen: dict[str, str] = {}
    reasons: dict[str, str] = {}
    root = ET.parse(report).getroot()
    for entry in root.iterfind("testsuite/properties/property"):
        if entry.get("name") == "built_from":
            outcome.built_from = entry.get("value", "")
    for case in root.iter("testcase"):
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        skipped = case.find("skipped")
        failures = [found for kind in ("failure", "error") if (found := case.find(kind)) is not None]
        if failures:
            seen[name] = "failed"
            reasons.setdefault(name, failures[0].get("message", ""))
        elif skipped is not None:
            seen.setdefault(name, f"skipped:{skipped.get('message', '')}")
        else:
            seen.setdefault(name, "passed")
        recorded = {p.get("name", ""): p.get("value", "") for p in case.iterfind("properties/property")}
        if recorded:
            outcome.records[name] = recorded
    for name, state in seen.items():
        if state == "failed":
            outcome.fail(name, reasons[name])
        elif state == "passed":
            outcome.succeed(name)
        else:
            outcome.skip(name, state.removeprefix("skipped:"))


TOTALS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)


def read_totals(log: str, outcome: Outcome) -> None:
    """The closing line of a command that runs tests of its own. ValueError if there is none."""
    lines = TOTALS.findall(log)
    if not lines:
        raise ValueError("there is no line 'N passed, N failed, N skipped'")
    outcome.passed, outcome.failed, outcome.skipped = (int(number) for number in lines[-1])
    if outcome.failed:
        outcome.failures.append(f"{outcome.suite}: {outcome.failed} of its own tests")
    if outcome.skipped:
        outcome.skip_reasons["in a run of its own, whose log has the reasons"] = outcome.skipped


# ---- adding up ------------------------------------------------------------------------------------------------------


def table(outcomes: list[Outcome]) -> list[str]:
    width = max(len(o.suite) for o in outcomes)
    lines = [f"{'suite':{width}}  passed  failed  skipped  seconds"]
    for o in outcomes:
        lines.append(f"{o.suite:{width}}  {o.passed:6}  {o.failed:6}  {o.skipped:7}  {o.seconds:7.1f}")
    return lines


def totals_line(outcomes: list[Outcome]) -> str:
    passed, failed, skipped = (sum(getattr(o, name) for o in outcomes) for name in ("passed", "failed", "skipped"))
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def skip_reasons(outcomes: list[Outcome]) -> list[tuple[int, str]]:
    counts: dict[str, int] = {}
    for outcome in outcomes:
        for reason, count in outcome.skip_reasons.items():
            counts[reason] = counts.get(reason, 0) + count
    return sorted(((count, reason) for reason, count in counts.items()), reverse=True)
