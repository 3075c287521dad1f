"""The checks that take turns: which one a commit has, what a turn's totals are, and that none passes by not running."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import run_tests
import turns
from turns import Step, Turn


def turn_with(*codes: str) -> Turn:
    """A turn whose steps are Python programs."""
    steps = tuple(Step((sys.executable, "-c", code), {}, False, ("slice",), ("everything",)) for code in codes)
    return Turn("it", "stand-in", steps, needs="")


def test_every_commit_has_a_turn_and_every_turn_commits() -> None:
    names = [turn.name for turn in turns.present(turns.ROOT)]
    commits = [hashlib.sha1(str(i).encode()).hexdigest() for i in range(600)]
    chosen = [turns.turn_of(commit, turns.ROOT, {}).name for commit in commits]
    assert set(chosen) == set(names)
    for name in names:  # about evenly
        assert chosen.count(name) > len(commits) / len(names) / 2
    assert chosen == [turns.turn_of(commit, turns.ROOT, {}).name for commit in commits]


def test_a_person_may_choose() -> None:
    assert turns.turn_of("f" * 40, turns.ROOT, {"PINNACE_TURN": "asan"}).name == "asan"
    with pytest.raises(ValueError, match="PINNACE_TURN is 'none', must be one of asan"):
        turns.turn_of("f" * 40, turns.ROOT, {"PINNACE_TURN": "none"})


def test_a_full_run_runs_every_turn_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the commands that run_tests.py gives to turns.py."""
    ran: list[tuple[str, bool]] = []

    def run(turn: Turn, _budget: int, everything: bool) -> int:
        ran.append((turn.name, everything))
        return 0

    monkeypatch.setattr(turns, "run", run)
    monkeypatch.setenv("PINNACE_TEST_SEED", "1")
    for suite in run_tests.sanitizer_suites(run_tests.parse(["--all"], turns.ROOT)):
        assert turns.main(suite.command[2:]) == 0
    assert ran == [(turn.name, True) for turn in turns.present(turns.ROOT)]


def test_a_turn_whose_script_is_missing_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ROOT", Path("/nonexistent"))
    assert turns.main(["run", "fuzz"]) == 1
    assert "fuzz: scripts/fuzz.py is not there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("codes", "totals"),
    [
        (["print('3 passed, 0 failed, 1 skipped')"], "3 passed, 0 failed, 1 skipped"),
        (["", "print('3 passed, 0 failed, 1 skipped')"], "3 passed, 0 failed, 1 skipped"),
        (["print('1 passed, 0 failed, 0 skipped')"] * 2, "2 passed, 0 failed, 0 skipped"),
        (["print('1 passed, 9 failed, 0 skipped\\n1 passed, 2 failed, 0 skipped')"], "1 passed, 2 failed, 0 skipped"),
        (["import sys; print('3 passed, 0 failed, 0 skipped'); sys.exit(1)"], "3 passed, 1 failed, 0 skipped"),
        (["import sys; sys.exit(1)", "print('3 passed, 0 failed, 0 skipped')"], "0 passed, 1 failed, 0 skipped"),
        (
            ["print('sanitized: tsan: C++: 5 passed, status 0\\nsanitized: tsan: Python: 2 passed, status 0')"],
            "7 passed, 0 failed, 0 skipped",
        ),
        (["import sys; sys.exit(77)"], "0 passed, 1 failed, 0 skipped"),
        (["import os; os.kill(os.getpid(), 9)"], "0 passed, 1 failed, 0 skipped"),
        ([""], "0 passed, 1 failed, 0 skipped"),
        (["print('0 passed, 0 failed, 7 skipped')"], "0 passed, 1 failed, 7 skipped"),
    ],
)
def test_totals(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, codes: list[str], totals: str
) -> None:
    monkeypatch.setenv("CI", "true")
    status = turns.run(turn_with(*codes), 5, False, tmp_path)
    assert capfd.readouterr().out.splitlines()[-1] == totals
    assert status == (0 if ", 0 failed" in totals else 1)


def test_tools_that_cannot_be_had_are_a_skip_elsewhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert turns.run(turn_with("import sys; sys.exit(77)"), 5, False, tmp_path) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "0 passed, 0 failed, 1 skipped"


def test_a_slice_and_everything_are_told_apart(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print(sys.argv[1:]); print('1 passed, 0 failed, 0 skipped')"
    turns.run(turn_with(code), 5, False, tmp_path)
    turns.run(turn_with(code), 5, True, tmp_path)
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("[")] == ["['slice']", "['everything']"]


def test_the_command_line_names_them_all() -> None:
    command = [sys.executable, str(turns.ROOT / "scripts/turns.py")]
    environment = {name: value for name, value in os.environ.items() if name != "PINNACE_TURN"}

    def said(word: str) -> str:
        return subprocess.run([*command, word], env=environment, capture_output=True, text=True, check=True).stdout

    listed = said("list")
    assert [line.split()[0] for line in listed.splitlines()] == [turn.name for turn in turns.TURNS]
    assert said("which").strip() in listed
