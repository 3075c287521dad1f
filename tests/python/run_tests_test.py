"""The test runner itself: it adds up what ran, and nothing that goes wrong in a suite can pass for success."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import run_tests

# A stand-in for the C++ test program: it obeys the two options that the runner uses, and misbehaves on demand.
PROGRAM = """#!/usr/bin/env python3
import json, os, pathlib, signal, sys, time
arguments = dict(a.removeprefix("--gtest_").partition("=")[::2] for a in sys.argv[1:])
behaviour = pathlib.Path(__file__).with_name("behaviour").read_text()
with open(pathlib.Path(__file__).with_name("calls"), "a") as calls:
    shard = os.environ.get("GTEST_SHARD_INDEX", "0") + "/" + os.environ.get("GTEST_TOTAL_SHARDS", "1")
    calls.write(arguments.get("filter", "list") + " " + os.environ.get("PINNACE_TEST_SEED", "") + " " + shard + "\\n")
if "list_tests" in arguments:
    print("Running main() from gtest_main.cc\\nAdd.\\n  Small\\n  Large")
    print("All/Parity.  # TypeParam\\n  Runs/0  # GetParam()")
    sys.exit(0)
print("[ RUN      ] Add.Small\\n[       OK ] Add.Small (0 ms)")
print("[ RUN      ] Add.Gpu\\na.cc:3: Skipped\\nno device\\n\\n[  SKIPPED ] Add.Gpu (0 ms)")
if behaviour == "crash":
    print("[ RUN      ] Add.Bad\\na.cc:4: Failure\\n[  FAILED  ] Add.Bad, where GetParam() = 1 (0 ms)")
print("[ RUN      ] Add.Large", flush=True)
if behaviour == "crash": os.kill(os.getpid(), signal.SIGSEGV)
if behaviour == "hang": time.sleep(60)
test = lambda name: {"name": name, "status": "RUN", "result": "COMPLETED"}
tests = [test("Small"), test("Large"), {**test("Gpu"), "result": "SKIPPED"}]
if behaviour == "fail": tests[1]["failures"] = [{"failure": "a.cc:9"}]
report = {"testsuites": [{"name": "Add", "testsuite": tests}]}
pathlib.Path(arguments["output"].removeprefix("json:")).write_text(json.dumps(report))
sys.exit(1 if behaviour in ("fail", "quit") else 0)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PINNACE_TEST_ALL", "PINNACE_TEST_SEED"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "build/release/pinnace_tests"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    behave(tmp_path, "well")
    (tmp_path / ".gitignore").write_text("/build/\n__pycache__/\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/rules_test.py").write_text("def test_a(): pass\n")
    commit(tmp_path)
    return tmp_path


def behave(tree: Path, how: str) -> None:
    (tree / "build/release/behaviour").write_text(how)


def commit(tree: Path) -> None:
    git = ["git", "-C", str(tree), "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run([*git, *arguments], check=True)


def calls(tree: Path) -> list[str]:
    path = tree / "build/release/calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split()[0] for line in lines if not line.startswith("list")]


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_adds_up_both_runners(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tests.main([], tree) == 0
    assert last_line(capsys) == "3 passed, 0 failed, 1 skipped"
    outcome = json.loads((tree / "build/results/cpp.json").read_text())
    assert outcome["skip_reasons"] == {"no device": 1}
    assert outcome["clean"] is True


@pytest.mark.parametrize(
    ("how", "totals", "failure"),
    [
        ("fail", "2 passed, 1 failed, 1 skipped", "Add.Large"),
        ("crash", "2 passed, 2 failed, 1 skipped", "ended by SIGSEGV in Add.Large"),
        ("quit", "3 passed, 1 failed, 1 skipped", "ended with status 1"),
    ],
)
def test_failures_count(tree: Path, capsys: pytest.CaptureFixture[str], how: str, totals: str, failure: str) -> None:
    behave(tree, how)
    assert run_tests.main([], tree) == 1
    output = capsys.readouterr().out
    assert output.splitlines()[-1] == totals
    assert failure in output


def test_hung_suite_is_ended(tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    behave(tree, "hang")
    monkeypatch.setattr(run_tests, "HANG_MINIMUM_S", 2.0)
    assert run_tests.main(["--only", "cpp", "--budget", "1"], tree) == 1
    output = capsys.readouterr().out
    assert "did not end in time in Add.Large" in output
    assert output.splitlines()[-1] == "1 passed, 1 failed, 1 skipped"


def test_shards_share_out_one_program(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tests.main(["--only", "cpp", "--shards", "2"], tree) == 0
    assert last_line(capsys) == "4 passed, 0 failed, 2 skipped"  # the stand-in runs all its tests each time
    lines = (tree / "build/release/calls").read_text().splitlines()
    assert sorted(line.split()[-1] for line in lines) == ["0/2", "1/2"]
    assert (tree / "build/results/cpp-1-of-2.json").exists()
    assert (tree / "build/results/cpp-2-of-2.json").exists()


def test_missing_program_fails(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "build/release/pinnace_tests").unlink()
    assert run_tests.main([], tree) == 1
    assert last_line(capsys) == "1 passed, 1 failed, 0 skipped"


def test_python_failures_and_broken_files_count(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "tests/rules_test.py").write_text(
        "import pytest\ndef test_good(): pass\ndef test_bad(): assert 0\ndef test_skipped(): pytest.skip('not here')\n"
    )
    assert run_tests.main(["--only", "rules"], tree) == 1
    output = capsys.readouterr().out
    assert output.splitlines()[-1] == "1 passed, 1 failed, 1 skipped"
    assert "skipped 1: not here" in output
    (tree / "tests/rules_test.py").write_text("import nothing_of_this_name\n")
    assert run_tests.main(["--only", "rules"], tree) == 1
    assert ", 0 failed" not in last_line(capsys)


def test_nothing_executed_is_a_failure(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "tests/rules_test.py").write_text("")
    assert run_tests.main(["--only", "rules"], tree) == 1
    assert last_line(capsys) == "0 passed, 0 failed, 0 skipped"


def test_full_run_resumes_on_the_same_clean_commit(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups = ["Add.*", "All/Parity.*"]
    assert run_tests.main(["--all"], tree) == 0
    assert sorted(calls(tree)) == groups
    assert "**5 passed, 0 failed, 2 skipped**" in (tree / "docs/results.md").read_text()
    # The page that the run wrote is itself no change to what was tested.
    assert run_tests.main(["--all"], tree) == 0
    assert sorted(calls(tree)) == groups
    assert last_line(capsys) == "5 passed, 0 failed, 2 skipped"
    (tree / "new.txt").write_text("a")
    assert run_tests.main(["--all"], tree) == 0
    assert len(calls(tree)) == 4
    commit(tree)
    assert run_tests.main(["--all"], tree) == 0
    assert len(calls(tree)) == 6


def test_full_run_repeats_what_failed(tree: Path) -> None:
    behave(tree, "fail")
    assert run_tests.main(["--all"], tree) == 1
    behave(tree, "well")
    assert run_tests.main(["--all"], tree) == 0
    assert len(calls(tree)) == 4


def test_seed_comes_from_the_commit_unless_given(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    run_tests.main(["--only", "cpp"], tree)
    run_tests.main(["--only", "cpp", "--seed", "5"], tree)
    seeds = [line.split()[1] for line in (tree / "build/release/calls").read_text().splitlines()]
    assert seeds == [str(int(head.stdout[:8], 16) % 1_000_000), "5"]
    assert "seed 5" in capsys.readouterr().out
