#!/usr/bin/env python3
"""The checks that are too long for every run of continuous integration and so take turns, one a run.

    turns.py which                  the turn of this commit, or of PINNACE_TURN
    turns.py list                   all of them
    turns.py run NAME [--all]       builds and runs one: a slice of about --budget seconds, or everything

A turn is chosen by the hash of the commit, so that everyone who tests a commit runs the same one, and each comes up
about once in as many commits as there are turns. make test-all runs all of them. `run` closes with one line of totals,
in which a step that failed without saying how many of its tests did counts as one failed test.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from outcomes import TOTALS

# How scripts that are no run of run_tests.py count their tests: one line for each kind.
PASSED = re.compile(r"\w+: [\w-]+: [\w+,=-]+: (\d+) passed\b.*")
# The exit status of a script that cannot install what it needs: skipped, but not in continuous integration.
NOT_HERE = 77

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable

ADDRESS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
# Mesa and LLVM keep memory when they are unloaded, which the leak checker takes for ours.
NO_VULKAN = {"VK_ICD_FILENAMES": "/dev/null", "VK_DRIVER_FILES": "/dev/null"}
GPU_TESTS = "*Gpu*:*Vulkan*:*Softmetal*:*NnapiDevices*:*KeptStates*:*DeviceLost*"


@dataclass(frozen=True)
class Step:
    """One command of a turn. {budget} and {jobs} are filled in; `slice` and `everything` are added to it."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_test: bool = False  # counts as one, if it ends well and names no number
    slice: tuple[str, ...] = ()
    everything: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    name: str
    what: str
    steps: tuple[Step, ...]
    needs: str  # what it starts from; a tree without it has no such turn

    def present(self, root: Path) -> bool:
        return (root / self.needs).exists()


def build(preset: str, *targets: str) -> Step:
    """Configures as the Makefile does; a build keeps what an earlier one made."""
    command = f"nice cmake --build build/{preset} --parallel {{jobs}} --target {' '.join(targets)}"
    return Step(("bash", "-c", f"make build/{preset}/build.ninja && {command}"))


def tests(preset: str, label: str, *options: str, environment: Mapping[str, str]) -> Step:
    command = (PYTHON, "scripts/run_tests.py", f"--preset={preset}", f"--label={label}", "--only=cpp", *options)
    return Step(command, environment, False, ("--budget={budget}", "--shards=2"), ("--all",))


def sanitized(preset: str, *options: str) -> Step:
    command = ("scripts/sanitized.sh", preset, *options)
    return Step(command, {}, False, ("--budget", "{budget}"), ("--budget", "3600"))


TURNS = (
    Turn(
        "asan",
        "C++ tests under the address and undefined-behaviour sanitizers, with leaks",
        (build("asan", "pinnace_tests"), tests("asan", "asan", environment={**ADDRESS, **NO_VULKAN})),
        needs="CMakePresets.json",
    ),
    Turn(
        "asan-gpu",
        "Vulkan's lowering, recording and driver and softmetal under the same sanitizers, without leaks",
        (
            build("asan", "pinnace_tests"),
            tests(
                "asan",
                "asan-gpu",
                f"--filter={GPU_TESTS}",
                environment={**ADDRESS, "ASAN_OPTIONS": ADDRESS["ASAN_OPTIONS"].replace("leaks=1", "leaks=0")},
            ),
        ),
        needs="CMakePresets.json",
    ),
    Turn(
        "asan-python",
        "the Python extension under the address and undefined-behaviour sanitizers",
        (sanitized("asan", "--only", "python"),),
        needs="scripts/sanitized.sh",
    ),
    Turn(
        "tsan",
        "C++ tests of threads, and the Python extension, under the thread sanitizer",
        (sanitized("tsan"),),
        needs="scripts/sanitized.sh",
    ),
    Turn(
        "fuzz",
        "every libFuzzer target for a short time, from the seeds of the tree",
        (
            Step(("make", "fuzz-build", "build")),  # seeds are made with the extension of the release build
            # Of each of about ten targets.
            Step((PYTHON, "scripts/fuzz.py", "--jobs=2"), {}, True, ("--seconds", "20"), ("--minutes", "5")),
        ),
        needs="scripts/fuzz.py",
    ),
    Turn(
        "arm64",
        "the runtime library built for ARM64, and its C++ tests in emulation",
        (Step(("scripts/arm64.sh",), {}, False, ("--slice",), ()),),
        needs="scripts/arm64.sh",
    ),
)


def present(root: Path) -> list[Turn]:
    return [turn for turn in TURNS if turn.present(root)]


def turn_of(commit: str, root: Path, environment: Mapping[str, str]) -> Turn:
    """PINNACE_TURN's, or the commit's. Other digits than those that give the tests' seed."""
    turns = present(root)
    if name := environment.get("PINNACE_TURN"):
        found = next((turn for turn in turns if turn.name == name), None)
        if found is None:
            raise ValueError(f"PINNACE_TURN is '{name}', must be one of {', '.join(turn.name for turn in turns)}")
        return found
    digits = commit[8:16] if re.fullmatch(r"[0-9a-f]{40}", commit) else "0"
    return turns[int(digits, 16) % len(turns)]


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


def run_step(step: Step, budget: int, everything: bool, root: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of one command, whose output is passed on."""
    words = {"budget": str(budget), "jobs": os.environ.get("JOBS", str(os.cpu_count() or 2))}
    command = [word.format(**words) for word in (*step.command, *(step.everything if everything else step.slice))]
    print("turn:", *command, flush=True)
    # Whatever these commands build with, the make that called this one is not to be asked for its job slots.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    environment.update(step.environment)
    last, passed = None, 0
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            last = TOTALS.fullmatch(line.rstrip("\n")) or last
            if counted := PASSED.fullmatch(line.rstrip("\n")):
                passed += int(counted[1])
    if process.returncode == 0 and step.is_test:
        passed = max(passed, 1)
    passed, failed, skipped = (int(number) for number in last.groups()) if last else (passed, 0, 0)
    if process.returncode == NOT_HERE and not in_ci():
        return 0, 0, 1
    if process.returncode != 0:
        print(f"turn: FAILED: ended with status {process.returncode}: {' '.join(command)}", flush=True)
        failed = max(failed, 1)
    return passed, failed, skipped


def run(turn: Turn, budget: int, everything: bool, root: Path = ROOT) -> int:
    sums = [0, 0, 0]
    for step in turn.steps:
        counts = run_step(step, budget, everything, root)
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        if counts[1]:
            break  # what follows needs it, or would say the same again
    if sums[0] + sums[1] == 0 and (in_ci() or sums[2] == 0):
        print(f"turn: FAILED: {turn.name} ran no test")
        sums[1] = 1
    print(f"{sums[0]} passed, {sums[1]} failed, {sums[2]} skipped", flush=True)
    return 1 if sums[1] else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["which", "list", "run"])
    parser.add_argument("name", nargs="?", choices=[turn.name for turn in TURNS])
    parser.add_argument("--budget", type=int, default=180, metavar="S", help="seconds of tests, beside the build")
    parser.add_argument("--all", action="store_true", help="everything that the turn has")
    args = parser.parse_args(arguments)
    if args.what == "list":
        for turn in TURNS:
            print(f"{turn.name:12} {turn.what}{'' if turn.present(ROOT) else f' (no {turn.needs})'}")
        return 0
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if args.what == "which" or args.name is None:
        try:
            turn = turn_of(commit, ROOT, os.environ)
        except ValueError as error:
            print(f"turns: {error}", file=sys.stderr)
            return 2
        if args.what == "which":
            print(turn.name)
            return 0
    else:
        turn = next(turn for turn in TURNS if turn.name == args.name)
    if not turn.present(ROOT):
        print(f"turns: {turn.name}: {turn.needs} is not there", file=sys.stderr)
        return 1
    # Every command of the turn takes the slice that run_tests.py would take.
    os.environ.setdefault("PINNACE_TEST_SEED", str(int(commit[:8], 16) % 1_000_000 if commit else 0))
    return run(turn, args.budget, args.all)


if __name__ == "__main__":
    sys.exit(main())
