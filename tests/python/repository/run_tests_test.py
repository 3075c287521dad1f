"""The test runner itself: it adds up what ran, and nothing that goes wrong in a suite can pass for success."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

import fuzz
import pytest
import required_tests
import results_page
import run_tests
from outcomes import Outcome, read_pytest
from results_page import write_results_page

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
if behaviour == "record": tests[0]["sites"] = "12"
if behaviour == "nothing" or (behaviour == "idle" and os.environ.get("GTEST_SHARD_INDEX") == "1"): tests = []
report = {"testsuites": [{"name": "Add", "testsuite": tests}] if tests else []}
commit = pathlib.Path(__file__).with_name("commit")
if commit.exists(): report["built_from"] = commit.read_text()
pathlib.Path(arguments["output"].removeprefix("json:")).write_text(json.dumps(report))
sys.exit(1 if behaviour in ("fail", "quit") else 0)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PINNACE_TEST_ALL", "PINNACE_TEST_SEED", "CI"):
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "build/release/pinnace_tests"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    behave(tmp_path, "well")
    (tmp_path / ".gitignore").write_text("/build/\n__pycache__/\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/rules_test.py").write_text("def test_a(): pass\n")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/required_tests.toml").write_text("")
    commit(tmp_path)
    build(tmp_path, head(tmp_path))
    return tmp_path


def behave(tree: Path, how: str) -> None:
    (tree / "build/release/behaviour").write_text(how)


def commit(tree: Path) -> None:
    git = ["git", "-C", str(tree), "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run([*git, *arguments], check=True)


def head(tree: Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def build(tree: Path, built_from: str) -> None:
    (tree / "build/release/commit").write_text(built_from)


def require(tree: Path, table: str) -> None:
    (tree / "scripts/required_tests.toml").write_text(table)
    commit(tree)
    build(tree, head(tree))


def calls(tree: Path) -> list[str]:
    path = tree / "build/release/calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split()[0] for line in lines if not line.startswith("list")]


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


@pytest.mark.rotating
def test_python_files_are_shared_among_processes(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "tests/python").mkdir(exist_ok=True)
    for i in range(run_tests.PYTHON_FILES_TO_SHARE):
        (tree / f"tests/python/more{i}_test.py").write_text("def test_a(): pass\n")
    assert run_tests.main(["--only", "python"], tree) == 0
    said = capsys.readouterr().out
    shards = run_tests.PYTHON_SHARDS
    files = []
    for i in range(shards):
        assert f"python:{i + 1}-of-{shards}" in said
        passes = json.loads((tree / f"build/results/python-{i + 1}-of-{shards}.json").read_text())["passes"]
        files.append({name.partition("::")[0] for name in passes})
    assert len(set().union(*files)) == sum(map(len, files)) >= run_tests.PYTHON_FILES_TO_SHARE
    assert max(map(len, files)) - min(map(len, files)) <= 1


@pytest.mark.rotating
def test_long_files_of_a_full_run_are_shared_among_suites(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tests, "PYTHON_PARTS", {"long_test": 3})
    folder = tree / "tests/python"
    folder.mkdir(exist_ok=True)
    for name in ("conftest.py", "slices.py"):
        shutil.copy(Path(__file__).parents[1] / name, folder)
    (folder / "long_test.py").write_text("".join(f"def test_{i}(): pass\n" for i in range(7)))
    assert run_tests.main(["--all", "--only", "python"], tree) == 0
    assert "python:long_test:3-of-3: 2 passed" in capsys.readouterr().out
    passes = [
        json.loads((tree / f"build/results/python-long_test-{i}-of-3.json").read_text())["passes"] for i in (1, 2, 3)
    ]
    assert sorted(name for part in passes for name in part) == [f"tests.python.long_test::test_{i}" for i in range(7)]


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
    assert how != "fail" or "\n    a.cc:9\n" in output  # why


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
    assert re.search(r"^FAILED rules: \S*test_bad\n    assert 0$", output, re.MULTILINE)
    (tree / "tests/rules_test.py").write_text("import nothing_of_this_name\n")
    assert run_tests.main(["--only", "rules"], tree) == 1
    assert ", 0 failed" not in last_line(capsys)


def test_nothing_executed_is_a_failure(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # pytest ends with its status 5.
    (tree / "tests/rules_test.py").write_text("")
    assert run_tests.main(["--only", "rules"], tree) == 1
    output = capsys.readouterr().out
    assert "FAILED rules: rules: ended with status 5" in output
    assert output.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    # GoogleTest ends with 0.
    behave(tree, "nothing")
    assert run_tests.main(["--only", "cpp"], tree) == 1
    output = capsys.readouterr().out
    assert "FAILED cpp: cpp: ran no test" in output
    assert output.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_a_shard_without_a_test_is_a_failure(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    behave(tree, "idle")
    assert run_tests.main(["--only", "cpp", "--shards", "2"], tree) == 1
    output = capsys.readouterr().out
    assert "FAILED cpp:2-of-2: cpp:2-of-2: ran no test" in output
    assert output.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"


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
    run_tests.main(["--only", "cpp"], tree)
    run_tests.main(["--only", "cpp", "--seed", "5"], tree)
    seeds = [line.split()[1] for line in (tree / "build/release/calls").read_text().splitlines()]
    assert seeds == [str(int(head(tree)[:8], 16) % 1_000_000), "5"]
    assert "seed 5" in capsys.readouterr().out


# ---- continuous integration -----------------------------------------------------------------------------------------

PERMITS = '[[permitted_skip]]\nreason = "no device"\nwhy = "the stand-in has none"\n'


def test_a_skip_that_nobody_permits_fails_only_where_required(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_tests.main([], tree) == 0
    output = capsys.readouterr().out
    assert "not as in continuous integration: skipped: no device: 1 tests, cpp:Add.Gpu among them" in output
    assert output.splitlines()[-1] == "3 passed, 0 failed, 1 skipped"
    assert run_tests.main(["--require"], tree) == 1
    output = capsys.readouterr().out
    assert "FAILED required: skipped: no device" in output
    assert output.splitlines()[-1] == "3 passed, 1 failed, 1 skipped"
    monkeypatch.setenv("CI", "true")
    assert run_tests.main([], tree) == 1
    require(tree, PERMITS)
    assert run_tests.main([], tree) == 0


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ('tests = ["cpp:Add.*", "rules:rules_test::test_a"]', ""),
        ('tests = ["cpp:Add.*"]\nat_least = 3', "required: it: 2 tests cpp:Add.* passed, at least 3 must"),
        ('tests = ["cpp:Add.Gpu"]', "required: it: 0 tests cpp:Add.Gpu passed"),
        ('tests = ["rules:rules_test::test_b"]', "required: it: 0 tests rules:rules_test::test_b passed"),
        ('tests = ["cpp:Gone.*"]\nif_set = "PINNACE_GIVEN"', "required: it: 0 tests cpp:Gone.* passed"),
        ('tests = ["cpp:Gone.*"]\nif_set = "PINNACE_NOT_GIVEN"', ""),
        ('tests = ["cpp:Gone.*"]\nunless_set = "PINNACE_GIVEN"', ""),
        ('tests = ["cpp:Gone.*"]\nextent = "everything"', ""),
        ('tests = ["cpp:Gone.*"]\nextent = "slice"', "required: it: 0 tests cpp:Gone.* passed"),
        ('tests = ["cpp:Gone.*"]\nbuilds = ["asan"]', ""),
        ('tests = ["cpp:Gone.*"]\nprocessor = "pdp11"', ""),
        ('tests = ["python:gone_test::*"]', ""),  # there are no Python tests in this run
    ],
)
def test_required_tests(entry: str, sentence: str, tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    table.write_text(f'[[required]]\nname = "it"\n{entry}\n')
    cpp, rules = (Outcome(name, "", clean=True, everything=False, seed=0) for name in ("cpp:1-of-2", "rules"))
    cpp.succeed("Add.Small")
    cpp.succeed("Add.Large")
    cpp.skip("Add.Gpu", "no device")
    rules.succeed("tests.rules_test::test_a")
    run = required_tests.Run("release", everything=False, environment={"PINNACE_GIVEN": "1"}, processor="x86_64")
    found = list(required_tests.missing(required_tests.read_table(table), run, [cpp, rules]))
    assert found == [] if not sentence else sentence in found[0]
    assert len(found) == bool(sentence)


def test_a_required_test_that_did_not_pass_fails(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require(tree, f'{PERMITS}[[required]]\nname = "devices"\ntests = ["cpp:Add.Small", "cpp:Add.Gpu"]\n')
    assert run_tests.main(["--require", "--only", "cpp"], tree) == 1
    output = capsys.readouterr().out
    assert "FAILED required: required: devices: 0 tests cpp:Add.Gpu passed, at least 1 must" in output
    assert output.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"


def test_a_table_that_cannot_be_read_is_no_success(tree: Path) -> None:
    require(tree, '[[required]]\nname = "it"\ntest = ["cpp:Add.*"]\n')
    with pytest.raises(ValueError, match="has no field test"):
        run_tests.main(["--require"], tree)
    (tree / "scripts/required_tests.toml").unlink()
    with pytest.raises(FileNotFoundError):
        run_tests.main(["--require"], tree)


def test_a_python_file_without_a_test_is_named(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "tests/python").mkdir()
    (tree / "tests/python/conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='session', autouse=True)\n"
        f"def build(record_testsuite_property): record_testsuite_property('built_from', '{head(tree)}+changes')\n"
    )
    (tree / "tests/python/full_test.py").write_text("def test_a(): pass\n")
    (tree / "tests/python/hollow_test.py").write_text("def tset_a(): pass\n")
    assert run_tests.main(["--require", "--only", "python"], tree) == 1
    output = capsys.readouterr().out
    assert "FAILED required: empty: tests/python/hollow_test.py ran no test" in output
    assert output.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize("built_from", ["", "0123456789abcdef0123456789abcdef01234567", "{head}+changes"])
def test_binaries_of_another_commit_fail(tree: Path, capsys: pytest.CaptureFixture[str], built_from: str) -> None:
    require(tree, PERMITS)
    assert run_tests.main(["--require", "--only", "cpp"], tree) == 0
    assert f"binaries of build/release were built from {head(tree)}" in capsys.readouterr().out
    build(tree, built_from.format(head=head(tree)))
    assert run_tests.main(["--require", "--only", "cpp"], tree) == 1
    output = capsys.readouterr().out
    says = "does not say which commit" if not built_from else f"was built from {built_from.format(head=head(tree))}, "
    assert says in output
    assert output.splitlines()[-1] == "2 passed, 1 failed, 1 skipped"


def test_what_tests_record_and_what_others_wrote_stand_on_the_page(tree: Path) -> None:
    behave(tree, "record")
    page = tree / "docs/results.md"
    page.parent.mkdir()
    page.write_text("# Old\n\n1 passed\n\n## Failed\n\n- long ago\n\n## Fuzzing\n\nFive million.\n")
    assert run_tests.main(["--all"], tree) == 0
    text = page.read_text()
    assert "| Add.Small | sites 12 |" in text
    assert text.endswith("## Fuzzing\n\nFive million.\n")
    assert "long ago" not in text
    assert "Old" not in text


def test_planted_faults_have_a_table_of_their_own(tmp_path: Path) -> None:
    """As pytest reports them: one entry for each model, with properties that are text."""
    report = tmp_path / "planted.xml"
    entries = [("gru", 24, 24, {}), ("bert", 52, 50, {"a vector x 1.01: key.bias": "2e-05", "a|b: c": "inf"})]
    cases = "".join(
        f'<testcase classname="planted" name="test[{name}]"><properties><property name="faults of" value="{name}"/>'
        f'<property name="planted" value="{planted}"/><property name="found" value="{found}"/>'
        f'<property name="missed" value={quoteattr(json.dumps(missed))}/></properties></testcase>'
        for name, planted, found, missed in entries
    )
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    outcome = Outcome("python:planted_faults_test", "c", True, True, 1)
    read_pytest(report, outcome)
    page = tmp_path / "results.md"
    write_results_page(page, [outcome], "c", True, 1)
    text = page.read_text()
    assert "## Planted faults" in text
    rows = [line for line in text.splitlines() if line.startswith(("| bert", "| gru", "| **all**"))]
    assert rows == [
        "| bert | 52 | 50 | 2 | a vector x 1.01: key.bias (2e-05); a\\|b: c (inf) |",
        "| gru | 24 | 24 | 0 |  |",
        "| **all** | 76 | 74 | 2 | |",
    ]
    assert "test[bert]" not in text  # not among the counts that other tests recorded


@pytest.mark.parametrize(
    ("last", "status", "totals"),
    [("7 passed, 0 failed, 2 skipped", 0, "12 passed, 0 failed, 4 skipped"),
     ("7 passed, 1 failed, 2 skipped", 1, "12 passed, 1 failed, 4 skipped"),
     ("7 passed, 0 failed, 2 skipped", 3, "12 passed, 1 failed, 4 skipped"),
     ("", 0, "5 passed, 1 failed, 2 skipped")],
)  # fmt: skip
def test_a_full_run_takes_every_sanitizer(
    tree: Path, capsys: pytest.CaptureFixture[str], last: str, status: int, totals: str
) -> None:
    (tree / "CMakePresets.json").write_text("{}")  # which both turns of the address sanitizer need
    # Turns that ran at the same time would find the folder there.
    stand_in = "import os, sys, time\nos.mkdir('build/busy'); time.sleep(0.3); os.rmdir('build/busy')\n"
    stand_in += f"if sys.argv[2] == 'asan': print({last!r}); sys.exit({status})\n"
    (tree / "scripts/turns.py").write_text(stand_in + "print('0 passed, 0 failed, 0 skipped')\n")
    assert run_tests.main(["--all", "--jobs", "2"], tree) == 1
    output = capsys.readouterr().out
    assert "FAILED sanitizer:asan-gpu: sanitizer:asan-gpu: ran no test" in output
    number = int(totals.split()[2]) + 1  # of the other turn, which runs nothing
    assert output.splitlines()[-1] == re.sub(r"\d+ failed", f"{number} failed", totals)


def test_sanitizers_are_recorded_one_by_one(tree: Path) -> None:
    """Each takes hours: a run of one of them leaves what the page has of the others and of the tests."""
    (tree / "CMakePresets.json").write_text("{}")
    (tree / "scripts/turns.py").write_text("print('3 passed, 0 failed, 1 skipped')\n")
    page = tree / "docs/results.md"
    assert run_tests.main(["--all", "--only", "sanitizer", "--turn", "asan"], tree) == 0
    assert "| asan | `" in page.read_text()
    page.write_text(page.read_text().replace("| 3 | 0 | 1 |", "| 33 | 0 | 1 |"))
    assert run_tests.main(["--all", "--only", "sanitizer", "--turn", "asan-gpu"], tree) == 0
    text = page.read_text()
    assert re.search(r"\| asan \| `\w+`.* \| 33 \| 0 \| 1 \| 0 \|", text)
    assert re.search(r"\| asan-gpu \| `\w+`.* \| 3 \| 0 \| 1 \| 0 \|", text)
    assert run_tests.main(["--all", "--only", "cpp", "--only", "python", "--only", "rules"], tree) == 0
    assert "**5 passed, 0 failed, 2 skipped**" in page.read_text()
    assert page.read_text().count("| asan") == 2
    assert run_tests.main(["--all", "--only", "sanitizer", "--turn", "asan"], tree) == 0
    text = page.read_text()
    assert "**5 passed, 0 failed, 2 skipped**" in text
    assert "| 33 |" not in text
    assert run_tests.main(["--all", "--only", "sanitizer", "--turn", "nosan"], tree) == 2
    (tree / "scripts/turns.py").write_text("print('3 passed, 1 failed, 1 skipped')\nraise SystemExit(1)\n")
    for turn in ("asan", "asan-gpu"):
        assert run_tests.main(["--all", "--only", "sanitizer", "--turn", turn], tree) == 1
    assert "\n- asan: " in page.read_text()
    (tree / "scripts/turns.py").write_text("print('3 passed, 0 failed, 1 skipped')\n")
    assert run_tests.main(["--all", "--only", "sanitizer", "--turn", "asan"], tree) == 0
    assert "\n- asan: " not in page.read_text()
    assert "\n- asan-gpu: " in page.read_text()


def test_every_test_that_ci_requires_is_in_the_tree() -> None:
    """A name of the table that nothing has any more would otherwise be noticed in continuous integration alone."""
    root = run_tests.ROOT
    table = required_tests.read_table(required_tests.TABLE)
    cpp = "\n".join(path.read_text() for path in sorted((root / "tests").rglob("*.cc")))
    suites = set(re.findall(r"TEST(?:_F|_P)?\(\s*(\w+)", cpp))
    prefixes = set(re.findall(r"INSTANTIATE_TEST_SUITE_P\(\s*(\w+),", cpp))
    for entry in table["required"]:
        for pattern in entry["tests"]:
            kind, name = pattern.split(":", 1)
            if kind == "cpp":
                prefix, _, suite = name.split(".")[0].rpartition("/")
                assert suite in suites, pattern
                assert not prefix or prefix in prefixes, pattern
            else:
                folder = root / ("tests" if kind == "rules" else "tests/python")
                assert list(folder.rglob(f"{name.split('::')[0]}.py")), pattern
    for entry in table["permitted_skip"]:
        assert entry["why"], entry


def test_fuzzing_goes_on_where_the_program_is_the_same() -> None:
    first = fuzz.Total("a", executions=1500, quiet_seconds=61, edges=9, findings=["crash-1"])
    again = fuzz.total_of("a", dataclasses.asdict(first))
    assert again == dataclasses.replace(first, findings=[])
    second = fuzz.total_of("b", dataclasses.asdict(again))
    assert second == fuzz.Total("b", earlier=1500)
    second.executions = 500
    assert fuzz.total_of("c", dataclasses.asdict(second)) == fuzz.Total("c", earlier=2000)
    assert fuzz.total_of("a", {}) == fuzz.Total("a")


def test_fuzzing_is_summed_over_builds(tmp_path: Path) -> None:
    """The same totals written twice count once; another build adds a row; builds that were not written down count."""
    total = {"seconds": 600, "edges": 9, "features": 12, "corpus": 3, "quiet_seconds": 61, "earlier": 0}

    def page(program: str, executions: int, before: list[str]) -> list[str]:
        found = {"onnx": total | {"program": program, "executions": executions, "findings": []}}
        return results_page.fuzz_lines(found, before)

    first = page("a" * 40, 1500, [])
    assert "| onnx | aaaaaaaa | 1,500 | 10 | 9 | 12 | 3 | 1 | 0 |" in first
    assert page("a" * 40, 1500, first) == first
    second = page("b" * 40, 2_000_000, page("a" * 40, 2500, first))
    assert second[-1] == "Executions over all builds: onnx 2,002,500."
    assert sum(line.startswith("| onnx |") for line in second) == 2
    total["earlier"] = 3_000_000
    assert page("b" * 40, 2_000_000, second)[-1] == "Executions over all builds: onnx 5,000,000."


def test_fuzzing_is_timed_by_its_processor_time() -> None:
    work = "import os, time; time.sleep(1); sum(range(3_000_000)); os.write(2, b'#7 NEW cov: 3 ft: 4 corp: 5/6Kb\\n')"
    child = subprocess.Popen([sys.executable, "-c", work], stderr=subprocess.PIPE, text=True)
    total = fuzz.Total()
    fuzz.follow(child, total, [])
    assert child.returncode == 0
    assert total.edges == 3
    assert 0 < total.seconds < 1
    assert total.quiet_seconds < total.seconds
