"""Which tests must have run, and for which reasons a test may be skipped: what the table required_tests.toml says.

A run is green where nothing failed, and that is also so where nothing ran: a machine without Vulkan skips every test of
it. Continuous integration has all that the tests need, so it names what must have passed and why a test may be skipped;
anything else is a failure (run_tests.py --require). Elsewhere the same findings are only printed.
"""

from __future__ import annotations

import os
import platform
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from outcomes import Outcome

TABLE = Path(__file__).with_name("required_tests.toml")
CONDITIONS = ("if_set", "unless_set", "processor", "extent", "builds")


@dataclass(frozen=True)
class Run:
    """What conditions are about."""

    preset: str
    everything: bool
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    processor: str = field(default_factory=platform.machine)


def read_table(path: Path) -> dict[str, list[dict[str, Any]]]:
    table = tomllib.loads(path.read_text())
    known = {"required": {"name", "tests", "at_least"}, "permitted_skip": {"reason", "why", "tests"}}
    for kind, entries in table.items():
        if kind not in known:
            raise ValueError(f"{path.name}: there are no entries [[{kind}]], only {' and '.join(known)}")
        for entry in entries:
            if unknown := entry.keys() - known[kind] - set(CONDITIONS):
                raise ValueError(f"{path.name}: [[{kind}]] has no field {', '.join(sorted(unknown))}")
    return table


def applies(entry: Mapping[str, Any], run: Run) -> bool:
    """Whether the conditions of an entry hold for this run; one without any is for every run of the release build."""
    return (
        run.preset in entry.get("builds", ["release"])
        and ("if_set" not in entry or bool(run.environment.get(entry["if_set"])))
        and ("unless_set" not in entry or not run.environment.get(entry["unless_set"]))
        and entry.get("processor", run.processor) == run.processor
        and entry.get("extent", "any") in ("any", "everything" if run.everything else "slice")
    )


def full_name(outcome: Outcome, test: str) -> str:
    """How the table names tests: "cpp:Suite.Test", "python:file::test[parameters]", whatever folder the file is in."""
    module, colons, name = test.partition("::")
    return f"{outcome.kind}:{module.rpartition('.')[2] if colons else test}{colons}{name}"


def missing(table: Mapping[str, list[dict[str, Any]]], run: Run, outcomes: list[Outcome]) -> Iterator[str]:
    """A sentence for each pattern of which fewer tests passed than must."""
    passed = [full_name(outcome, test) for outcome in outcomes for test in outcome.passes]
    kinds = {outcome.kind for outcome in outcomes}
    for entry in table.get("required", []):
        if not applies(entry, run):
            continue
        for pattern in entry["tests"]:
            if pattern.split(":")[0] not in kinds:
                continue  # left out on the command line
            count, wanted = sum(fnmatchcase(name, pattern) for name in passed), entry.get("at_least", 1)
            if count < wanted:
                yield f"required: {entry['name']}: {count} tests {pattern} passed, at least {wanted} must"


def not_permitted(table: Mapping[str, list[dict[str, Any]]], run: Run, outcomes: list[Outcome]) -> Iterator[str]:
    """A sentence for each reason that the table does not permit, with the first test that gave it."""
    permitted = [entry for entry in table.get("permitted_skip", []) if applies(entry, run)]
    seen: dict[str, list[str]] = {}
    for outcome in outcomes:
        for test, reason in outcome.skips.items():
            name = full_name(outcome, test)
            if not any(
                fnmatchcase(reason, entry["reason"])
                and any(fnmatchcase(name, pattern) for pattern in entry.get("tests", ["*"]))
                for entry in permitted
            ):
                seen.setdefault(reason, []).append(name)
    for reason, names in sorted(seen.items()):
        yield f"skipped: {reason}: {len(names)} tests, {names[0]} among them"


def silent_files(root: Path, outcomes: list[Outcome]) -> Iterator[str]:
    """A sentence for each Python test file of which no test passed, failed or was skipped."""
    named = [test for outcome in outcomes for test in (*outcome.passes, *outcome.failures, *outcome.skips)]
    if not any(outcome.kind == "python" for outcome in outcomes):
        return
    folder = root / "tests/python"
    for path in sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")}):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if not any(name.startswith((f"{module}::", f"{module}.")) or name == module for name in named):
            yield f"empty: {path.relative_to(root)} ran no test"


def other_builds(expected: str, outcomes: list[Outcome]) -> Iterator[str]:
    """A sentence for each suite whose binary was built from something else than what is checked out."""
    for outcome in outcomes:
        if outcome.kind not in ("cpp", "python") or not outcome.passes:
            continue
        if not outcome.built_from:
            yield f"build: {outcome.suite}: its binary does not say which commit it was built from"
        elif outcome.built_from != expected:
            yield f"build: {outcome.suite}: its binary was built from {outcome.built_from}, checked out is {expected}"
