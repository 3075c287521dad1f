#!/usr/bin/env python3
"""Runs the tests over and over, each round under a seed of its own, until the time is up or a round fails.

A round takes other slices and other random inputs than the one before, and fuzzes the NNAPI library for a while, under
sanitizers where build/asan is built. The failing seed is printed; run_tests.py --seed repeats it.
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


def fuzz(seed: int, seconds: int) -> int:
    """The fuzz tests for that long each, with the build that judges best; 0 if they pass, or none is built."""
    built = [p for p in (ROOT / "build" / name / "pinnace_tests" for name in ("asan", "release")) if p.is_file()]
    if not built or seconds <= 0:
        return 0
    command = [str(built[0]), "--gtest_brief=1", "--gtest_filter=NnapiFuzz.*"]
    variables = {"PINNACE_TEST_SEED": str(seed), "PINNACE_FUZZ_SECONDS": str(seconds)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    print(f"fuzz, seed {seed}, {built[0].parent.name}: {'passed' if result.returncode == 0 else 'failed'}", flush=True)
    if result.returncode != 0:
        print(result.stdout, result.stderr, sep="\n")
        print("soak: failed; again:", *(f"{k}={v}" for k, v in variables.items()), *command)
    return result.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000, help="of the first round")
    parser.add_argument("--fuzz-seconds", type=int, default=120, help="of each fuzz test in a round; 0: none")
    args, rest = parser.parse_known_args()
    end = time.monotonic() + 60 * args.minutes
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        seed = args.seed + rounds
        command = [sys.executable, str(RUN_TESTS), f"--seed={seed}", *rest]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = result.stdout.splitlines()
        print(f"round {rounds}, seed {seed}: {lines[-1] if lines else 'no output'}", flush=True)
        if result.returncode != 0:
            print(result.stdout, result.stderr, sep="\n")
            print(f"soak: failed in round {rounds}; again: scripts/run_tests.py --seed {seed}")
            return 1
        if fuzz(seed, args.fuzz_seconds) != 0:
            return 1
        rounds += 1
    print(f"soak: {rounds} rounds passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
