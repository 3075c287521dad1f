#!/usr/bin/env python3
"""Runs every test suite, C++ and Python, and closes with one line that adds them up.

A suite is a process of its own: the C++ test program, the Python tests, the rules of the tree. With --all each
GoogleTest suite and each Python file is one, the longest files several (PYTHON_PARTS), so that a run of hours that was
broken off goes on where it stopped: a suite that passed on the same commit, with nothing uncommitted then or now, is
not run again. Each leaves one JSON file under build/results/. A suite that crashes, hangs or cannot start counts as one
failed test; it never goes unnoticed.

What the suites read: PINNACE_TEST_SEED (which slice of the large suites, and their random inputs), PINNACE_TEST_ALL=1
(everything), PINNACE_TEST_BUDGET (seconds that the suite should take; larger suites cut their slice to it).

Nothing passes by not running: a suite, a shard or a Python file without a test has failed. With --require, or CI=true,
so has a run without the tests that required_tests.toml names, with a skip that it does not permit, or of binaries that
were built from another commit than the one that is checked out. With --all the sanitizers of turns.py run as well;
--only sanitizer --turn tsan runs one of them by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import required_tests
import turns
from outcomes import Outcome, read_gtest, read_gtest_log, read_pytest, read_totals, skip_reasons, table, totals_line
from results_page import write_results_page

ROOT = Path(__file__).resolve().parent.parent

# 12 minutes on two cores, two suites at a time.
DEFAULT_BUDGET_S = 12 * 60
# A run of a slice shares the Python files, by far the longest suite, among so many processes, if there are enough.
PYTHON_SHARDS = 8
PYTHON_FILES_TO_SHARE = 10
# Of --all: files that take longest, and among how many suites each is shared; conftest.py of the tests takes its part.
PYTHON_PARTS = {"damaged_files_test": 9, "hostile_pt2_test": 6, "vision_models_test": 6}
# A suite is taken for hung at this many times its budget, and not before the minimum.
HANG_FACTOR = 4
HANG_MINIMUM_S = 60.0
HANG_ALL_S = 4 * 3600

# The kinds that make up the tests of docs/results.md; the sanitizers have a section of their own.
TESTS = {"cpp", "python", "rules"}

# Each leads a process group of its own, which a Ctrl-C at the terminal does not reach.
RUNNING: set[subprocess.Popen[bytes]] = set()


@dataclass
class Suite:
    """What to run, and where the runner's own report will be."""

    name: str
    kind: str  # "gtest", "pytest", or "command": a program that closes with a line of totals itself
    command: list[str]
    report: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        return re.sub(r"[^A-Za-z0-9_.-]+", "-", self.name)


@dataclass
class Options:
    root: Path
    build: Path
    results: Path
    everything: bool
    budget: float
    seed: int
    jobs: int
    shards: int
    only: list[str]
    fresh: bool
    label: str
    pattern: str  # of the C++ tests; empty: all of them
    turn: str  # of the sanitizers; empty: all of them
    require: bool


# ---- the commit -----------------------------------------------------------------------------------------------------


def git(root: Path, *arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""


def commit_and_clean(root: Path) -> tuple[str, bool]:
    commit = git(root, "rev-parse", "HEAD")
    # The totals that a full run writes are no change to what was tested.
    dirty = git(root, "status", "--porcelain", "--", ".", ":(exclude)docs/results.md")
    return commit or "unknown", bool(commit) and not dirty


def default_seed(commit: str) -> int:
    """Moves with each commit, and is the same for everyone who tests that commit."""
    return int(commit[:8], 16) % 1_000_000 if re.match(r"[0-9a-f]{8}", commit) else 0


# ---- the suites -----------------------------------------------------------------------------------------------------


def gtest_suites(options: Options) -> list[Suite]:
    program = options.build / "pinnace_tests"
    names = ["*"]
    if options.everything and program.exists():
        chosen = [f"--gtest_filter={options.pattern}"] if options.pattern else []
        command = [str(program), "--gtest_list_tests", *chosen]
        listing = subprocess.run(command, capture_output=True, text=True, check=False)
        # "Suite." and "Prefix/Suite/0.  # TypeParam = ..." start a line, their tests are indented.
        names = [f"{m[1]}.*" for m in re.finditer(r"^([\w/]+)\.(?:\s|$)", listing.stdout, re.MULTILINE)] or ["*"]
    # Shards take turns at the tests of the whole program; suites of --all are processes of their own anyway.
    shards = options.shards if names == ["*"] else 1
    suites = []
    for pattern, shard in [(pattern, shard) for pattern in names for shard in range(shards)]:
        name = "cpp" if pattern == "*" else f"cpp:{pattern.removesuffix('.*')}"
        suite = Suite(name, "gtest", [], Path())
        if shards > 1:
            suite.name = f"cpp:{shard + 1}-of-{shards}"
            suite.environment = {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}
        suite.report = options.results / "raw" / f"{suite.stem}.json"
        tests = options.pattern if pattern == "*" and options.pattern else pattern
        suite.command = [str(program), f"--gtest_output=json:{suite.report}", f"--gtest_filter={tests}"]
        suite.command.append("--gtest_color=no")
        suites.append(suite)
    return suites


def pytest_suites(options: Options) -> list[Suite]:
    folder = options.root / "tests/python"
    files = [str(p.relative_to(options.root)) for p in sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")})]
    targets = {"rules": ["tests/rules_test.py"]}
    if options.everything:
        targets |= {f"python:{Path(name).stem}": [name] for name in files}
    elif len(files) < PYTHON_FILES_TO_SHARE:
        targets = {"python": ["tests/python"], **targets}
    else:  # every eighth file, so that two lanes end at about the same time; most tests use one core
        shards = {f"python:{i + 1}-of-{PYTHON_SHARDS}": files[i::PYTHON_SHARDS] for i in range(PYTHON_SHARDS)}
        targets = {**shards, **targets}
    suites = []
    for name, paths in targets.items():
        if not (options.root / paths[0]).exists():
            continue
        parts = PYTHON_PARTS.get(Path(paths[0]).stem, 1) if options.everything else 1
        for part in range(parts):
            suite = Suite(name, "pytest", [], Path())
            if parts > 1:
                suite.name = f"{name}:{part + 1}-of-{parts}"
                suite.environment = {"PINNACE_TEST_PART": f"{part}/{parts}"}
            suite.report = options.results / "raw" / f"{suite.stem}.xml"
            suite.command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            suite.command += [f"--junit-xml={suite.report}", *paths]
            suites.append(suite)
    return suites


def sanitizer_suites(options: Options) -> list[Suite]:
    """Every turn of the sanitizers, each with everything that it tests; builds of their own, so they come last."""
    if not options.everything or options.label != "release":
        return []
    script, unused = str(options.root / "scripts/turns.py"), options.results / "raw" / "unused"
    return [
        Suite(f"sanitizer:{turn.name}", "command", [sys.executable, script, "run", turn.name, "--all"], unused)
        for turn in turns.present(options.root)
        if options.turn in ("", turn.name)
    ]


# ---- running one ----------------------------------------------------------------------------------------------------


def run_process(suite: Suite, options: Options, log: Path) -> tuple[int | None, float]:
    """Exit status (None: taken for hung and ended) and seconds. Output goes to the log."""
    limit = HANG_ALL_S if options.everything else max(HANG_MINIMUM_S, HANG_FACTOR * options.budget)
    environment = dict(os.environ, PINNACE_TEST_SEED=str(options.seed), PINNACE_TEST_BUDGET=f"{options.budget:g}")
    environment.update(suite.environment)
    environment.pop("PINNACE_TEST_ALL", None)
    if options.everything:
        environment["PINNACE_TEST_ALL"] = "1"
    path = [str(options.root / "python"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
    start = time.monotonic()
    with log.open("wb") as stream:
        # A session of its own, so that what a hung suite started ends with it.
        process = subprocess.Popen(
            suite.command,
            cwd=options.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        RUNNING.add(process)
        try:
            status: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        finally:
            RUNNING.discard(process)
    return status, time.monotonic() - start


def end_running(*_: object) -> None:
    """Ends what was started, on Ctrl-C or when the run itself is told to end."""
    for process in list(RUNNING):
        os.killpg(process.pid, signal.SIGKILL)
    os._exit(130)


def describe_exit(status: int | None) -> str:
    if status is None:
        return "did not end in time"
    if status < 0:
        try:
            return f"ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"ended by signal {-status}"
    return f"ended with status {status}"


def run_suite(suite: Suite, options: Options, commit: str, clean: bool) -> Outcome:
    outcome = Outcome(suite.name, commit, clean, options.everything, options.seed)
    log_path = options.results / "raw" / f"{suite.stem}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    suite.report.unlink(missing_ok=True)
    try:
        status, outcome.seconds = run_process(suite, options, log_path)
    except OSError as error:
        outcome.fail(f"{suite.name}: cannot start: {error}")
        return outcome

    complete = False
    log = log_path.read_text(errors="replace")
    try:
        if suite.kind == "gtest":
            read_gtest(suite.report, log, outcome)
        elif suite.kind == "pytest":
            read_pytest(suite.report, outcome)
        else:
            read_totals(log, outcome)
        complete = True
    except (OSError, ValueError, KeyError, ET.ParseError):
        if suite.kind == "gtest":
            read_gtest_log(log, outcome)
    # 1 is "tests failed" of both runners; pytest's 5, no tests, is a failure like any other.
    expected = {0} | ({1} if outcome.failed else set())
    if not complete or status not in expected:
        running = re.findall(r"^\[ RUN      \] (\S+)", log, re.MULTILINE)
        where = f" in {running[-1]}" if running and not complete else ""
        outcome.fail(f"{suite.name}: {describe_exit(status)}{where}")
    elif outcome.passed + outcome.failed + outcome.skipped == 0:
        outcome.fail(f"{suite.name}: ran no test")
    if outcome.failed:
        # The end of the log is where both runners put what failed.
        print(f"---- {suite.name}: {log_path.relative_to(options.root)}\n{log[-12000:]}", flush=True)
    return outcome


def earlier(suite: Suite, options: Options, commit: str, clean: bool) -> Outcome | None:
    """The outcome of an unfinished or repeated full run that still holds."""
    if not options.everything or options.fresh or not clean:
        return None
    try:
        outcome = Outcome(**json.loads((options.results / f"{suite.stem}.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    same = outcome.commit == commit and outcome.clean and outcome.everything and outcome.seed == options.seed
    return outcome if same and outcome.failed == 0 else None


# ---- totals ---------------------------------------------------------------------------------------------------------


def parse(arguments: list[str] | None, root: Path) -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="everything, resumable; writes docs/results.md")
    parser.add_argument("--fresh", action="store_true", help="with --all: run again what has already passed")
    parser.add_argument("--budget", type=float, default=DEFAULT_BUDGET_S, metavar="S", help="seconds for each suite")
    parser.add_argument("--seed", type=int, help="which slice, and random inputs; default: from the commit")
    parser.add_argument("--jobs", type=int, default=2, help="suites at a time")
    parser.add_argument("--shards", type=int, default=1, help="processes among which the C++ tests are shared out")
    parser.add_argument("--preset", default="release", help="build of the C++ tests: build/<preset>")
    kinds = "cpp, python, rules or sanitizer; repeatable"
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=kinds)
    in_ci = os.environ.get("CI", "").lower() in ("1", "true")
    parser.add_argument("--filter", default="", metavar="F", help="of the C++ tests: as --gtest_filter takes it")
    parser.add_argument("--turn", default="", metavar="NAME", help="of the sanitizers: one of turns.py list")
    parser.add_argument("--label", help="of the results, and in required_tests.toml; the preset's name unless given")
    help_require = (
        "fail without the tests of required_tests.toml, as continuous integration does; default where CI=true"
    )
    parser.add_argument("--require", action="store_true", default=in_ci, help=help_require)
    args = parser.parse_args(arguments)
    seed = args.seed
    if seed is None:
        given = os.environ.get("PINNACE_TEST_SEED")
        seed = int(given) if given else default_seed(git(root, "rev-parse", "HEAD"))
    label = args.label or args.preset
    results = root / "build/results" / ("" if label == "release" else label)
    everything = args.all or os.environ.get("PINNACE_TEST_ALL") == "1"
    build = root / "build" / args.preset
    return Options(
        root=root,
        build=build,
        results=results,
        everything=everything,
        budget=args.budget,
        seed=seed,
        jobs=args.jobs,
        shards=max(1, args.shards),
        only=args.only,
        fresh=args.fresh,
        label=label,
        pattern=args.filter,
        turn=args.turn,
        require=args.require,
    )


def findings(options: Options, outcomes: list[Outcome], expected: str) -> list[str]:
    """What makes this run count for less than it seems to: a sentence each."""
    listed = required_tests.read_table(options.root / "scripts" / required_tests.TABLE.name)
    run = required_tests.Run(options.label, options.everything)
    return [
        *required_tests.missing(listed, run, outcomes),
        *required_tests.not_permitted(listed, run, outcomes),
        *required_tests.silent_files(options.root, outcomes),
        *required_tests.other_builds(expected, outcomes),
    ]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    options = parse(arguments, root)
    commit, clean = commit_and_clean(root)
    extent = "everything" if options.everything else f"a slice, {options.budget:g} s a suite"
    print(f"commit {commit[:12]}{'' if clean else ' + changes'}, seed {options.seed}, {extent}", flush=True)
    suites = [*gtest_suites(options), *pytest_suites(options), *sanitizer_suites(options)]
    if options.only:
        suites = [s for s in suites if s.name.split(":")[0] in options.only]
    if not suites:
        print(f"no suite is called {' or '.join([*options.only, *filter(None, [options.turn])])}", file=sys.stderr)
        return 2

    # Turns share build folders, and each has builds that use all processors.
    one_turn = threading.Lock()

    def one(suite: Suite) -> Outcome:
        outcome = earlier(suite, options, commit, clean)
        note = "passed before"
        if outcome is None:
            with one_turn if suite.kind == "command" else contextlib.nullcontext():
                outcome = run_suite(suite, options, commit, clean)
            outcome.clean = clean and commit_and_clean(root) == (commit, True)
            (options.results / f"{suite.stem}.json").write_text(json.dumps(asdict(outcome), indent=1) + "\n")
            note = f"{outcome.seconds:.0f} s"
        print(f"{suite.name}: {totals_line([outcome])} ({note})", flush=True)
        return outcome

    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        outcomes = list(pool.map(one, suites))

    found = findings(options, outcomes, commit + ("" if clean else "+changes"))
    if options.require:
        # Counted as a suite of its own, so that totals and exit status cannot say otherwise.
        outcomes.append(Outcome("required", commit, clean, options.everything, options.seed))
        for sentence in found:
            outcomes[-1].fail(sentence)
    for build in sorted({outcome.built_from for outcome in outcomes if outcome.built_from}):
        print(f"binaries of {options.build.relative_to(root)} were built from {build}")

    print("\n" + "\n".join(table(outcomes)))
    for count, reason in skip_reasons(outcomes):
        print(f"skipped {count}: {reason}")
    for outcome in outcomes:
        for name in outcome.failures:
            print(f"FAILED {outcome.suite}: {name}")
            if name in outcome.reasons:
                print(f"    {outcome.reasons[name]}")
    if not options.require:
        for sentence in found:
            print(f"not as in continuous integration: {sentence}")
    if options.everything and options.label == "release":
        whole = not options.only or set(options.only) >= TESTS
        page = [outcome for outcome in outcomes if whole or outcome.kind == "sanitizer"]
        if page:
            write_results_page(root / "docs/results.md", page, commit, clean, options.seed)
    ran = sum(o.passed + o.failed for o in outcomes)
    if not ran:
        print("no test was executed", file=sys.stderr)
    (options.results / "totals.txt").write_text(totals_line(outcomes) + "\n")
    print(totals_line(outcomes), flush=True)
    return 0 if ran and not any(o.failed for o in outcomes) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGINT, end_running)
    signal.signal(signal.SIGTERM, end_running)
    sys.exit(main())
