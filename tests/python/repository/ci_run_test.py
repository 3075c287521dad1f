""".ci/run with stand-ins for all that it calls: whatever fails fails the run, and the last line says so."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# Called as the scripts are; each writes down how it was called, and fails if its name is in FAIL.
STAND_IN = """#!/usr/bin/env bash
name=$(basename "$0")
[[ $name == python ]] && name=$(basename "$1") && shift
echo "$name $* CI=$CI" >>"$CALLS"
if [[ $name == turns.py && $1 == which ]]; then echo "${PINNACE_TURN:-tsan}"; exit; fi
if [[ $name == turns.py && $1 == list ]]; then printf 'asan  first\\ntsan  second\\n'; exit; fi
if [[ $name == make && $1 == test && " $FAIL " != *" silent "* ]]; then
  mkdir -p build/results
  line="12 passed, 0 failed, 3 skipped"
  [[ " $FAIL " == *" make-test "* ]] && line="10 passed, 2 failed, 3 skipped"
  echo "$line" | tee build/results/totals.txt
fi
[[ " $FAIL " == *" $name-$1 "* || " $FAIL " == *" $name-$2 "* || " $FAIL " == *" $name "* ]] && exit 1
[[ $name == make && $1 == test && " $FAIL " == *" silent "* ]] && exit 1
exit 0
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("scripts/setup.sh", "scripts/lint.sh", ".venv/bin/python", "bin/make", "bin/ccache"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN)
        path.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/run").write_text((ROOT / ".ci/run").read_text())
    return tmp_path


def run(tree: Path, fail: str = "", turn: str = "") -> tuple[int, list[str], list[str]]:
    """Exit status, lines of output, and calls."""
    calls = tree / "calls"
    calls.unlink(missing_ok=True)
    path = f"{tree / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "FAIL": fail, "CALLS": str(calls), "PINNACE_TURN": turn}
    environment.pop("CI", None)
    command = ["bash", str(tree / ".ci/run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), calls.read_text().splitlines()


def test_all_phases_in_order_of_cost(tree: Path) -> None:
    status, lines, calls = run(tree)
    assert status == 0, lines
    assert lines[-1] == "12 passed, 0 failed, 3 skipped"
    phases = [line.split(" CI=")[0] for line in calls if not line.startswith(("ccache", "turns.py which"))]
    assert phases == [
        "setup.sh ",
        "lint.sh --only style",
        "make build",
        "lint.sh --only tidy",
        "make test",
        "turns.py run tsan --budget 180",
    ]
    assert all(line.endswith("CI=true") for line in calls if not line.startswith("ccache"))
    kept = json.loads((tree / "build/results/ci.json").read_text())
    assert [phase["name"] for phase in kept["phases"]] == ["setup", "style", "build", "tidy", "test", "turn tsan"]
    assert kept["turn"] == "tsan"


@pytest.mark.parametrize(
    ("fail", "totals"),
    [
        ("setup.sh", "0 passed, 1 failed, 0 skipped"),
        ("make-build", "0 passed, 1 failed, 0 skipped"),
        ("lint.sh-style", "12 passed, 1 failed, 3 skipped"),
        ("lint.sh-tidy", "12 passed, 1 failed, 3 skipped"),
        ("make-test", "10 passed, 2 failed, 3 skipped"),
        ("make-test turns.py-run", "10 passed, 3 failed, 3 skipped"),
        ("silent", "0 passed, 1 failed, 0 skipped"),
        ("turns.py-run", "12 passed, 1 failed, 3 skipped"),
        ("lint.sh turns.py-run", "12 passed, 3 failed, 3 skipped"),
    ],
)
def test_any_failure_is_the_runs(tree: Path, fail: str, totals: str) -> None:
    status, lines, _ = run(tree, fail)
    assert status == 1, lines
    assert lines[-1] == totals


def test_totals_of_an_earlier_run_do_not_count(tree: Path) -> None:
    assert run(tree)[0] == 0
    status, lines, _ = run(tree, "silent")
    assert status == 1
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


def test_turns_can_be_chosen(tree: Path) -> None:
    assert "turns.py run fuzz --budget 180 CI=true" in run(tree, turn="fuzz")[2]
    calls = run(tree, turn="all")[2]
    assert [line.split()[2] for line in calls if line.startswith("turns.py run")] == ["asan", "tsan"]
