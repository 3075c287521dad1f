#!/usr/bin/env python3
"""Runs the tests over and over, each round under a seed of its own, until the time is up or a round fails.

A round takes other slices and other random inputs than the one before. The failing seed is printed; run_tests.py --seed
repeats it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

RUN_TESTS = Path(__file__).with_name("run_tests.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000, help="of the first round")
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
        rounds += 1
    print(f"soak: {rounds} rounds passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
