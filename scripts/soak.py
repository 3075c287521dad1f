#!/usr/bin/env python3
"""Runs the tests over and over, each round under a seed of its own, until the time is up or a round fails.

A round takes other slices and other random inputs than the one before, fuzzes the NNAPI library and back end for a
while, under sanitizers where build/asan is built, and runs the fuzz targets of all readers (scripts/fuzz.py), whose
corpus grows from round to round, where build/fuzz is built. With --preset asan or tsan it does nothing but fuzz NNAPI,
with that build.
The failing seed is printed; run_tests.py --seed, or the command that is printed with it, repeats it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN_TESTS = Path(__file__).with_name("run_tests.py")

# What sanitizers are to do, unless the caller says otherwise. Without Vulkan, whose software driver keeps memory.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "VK_ICD_FILENAMES": "/dev/null",
    "VK_DRIVER_FILES": "/dev/null",
}


def fuzz(program: Path, seed: int, seconds: int) -> int:
    """Each of NNAPI's fuzz tests for that long; 0 if they pass."""
    command = [str(program), "--gtest_brief=1", "--gtest_filter=NnapiFuzz.*"]
    variables = {"PINNACE_TEST_SEED": str(seed), "PINNACE_FUZZ_SECONDS": str(seconds)}
    environment = {**SANITIZERS, **os.environ, **variables}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    print(f"fuzz, seed {seed}, {program.parent.name}: {'passed' if result.returncode == 0 else 'failed'}", flush=True)
    if result.returncode != 0:
        print(result.stdout, result.stderr, sep="\n")
        print("soak: failed; again:", *(f"{k}={v}" for k, v in variables.items()), *command)
    return result.returncode


def fuzz_readers(seed: int, seconds: int) -> int:
    """Each fuzz target of build/fuzz for that long; 0 if nothing was found."""
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), f"--seconds={seconds}", f"--seed={seed + 1}"]
    return subprocess.run(command, check=False).returncode


def test_round(number: int, seed: int, rest: list[str]) -> int:
    """All tests once; 0 if they pass."""
    command = [sys.executable, str(RUN_TESTS), f"--seed={seed}", *rest]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = result.stdout.splitlines()
    print(f"round {number}, seed {seed}: {lines[-1] if lines else 'no output'}", flush=True)
    if result.returncode != 0:
        print(result.stdout, result.stderr, sep="\n")
        print(f"soak: failed in round {number}; again: scripts/run_tests.py --seed {seed}")
    return result.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000, help="of the first round")
    parser.add_argument("--fuzz-seconds", type=int, default=120, help="of each fuzz test in a round; 0: none")
    parser.add_argument("--preset", default="", help="only fuzz NNAPI, with this build: asan, tsan, ...")
    args, rest = parser.parse_known_args()
    folders = [args.preset] if args.preset else ["asan", "release"]
    built = [p for p in (ROOT / "build" / folder / "pinnace_tests" for folder in folders) if p.is_file()]
    if args.preset and not built:
        print(f"soak: build/{args.preset}/pinnace_tests is not built: make soak SOAK_PRESET={args.preset}")
        return 1
    end = time.monotonic() + 60 * args.minutes
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        seed = args.seed + rounds
        if not args.preset and test_round(rounds, seed, rest) != 0:
            return 1
        if built and args.fuzz_seconds > 0 and fuzz(built[0], seed, args.fuzz_seconds) != 0:
            return 1
        targets_built = any((ROOT / "build" / "fuzz").glob("fuzz_*"))
        if not args.preset and targets_built and args.fuzz_seconds > 0 and fuzz_readers(seed, args.fuzz_seconds) != 0:
            return 1
        rounds += 1
    print(f"soak: {rounds} rounds passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
