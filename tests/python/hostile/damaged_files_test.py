"""Damaged files of every format that is read: an error of pinnace's own or a right result, in bounded time and memory.

Truncated, flipped, spliced, and field by field: 10,000 of each format with PINNACE_TEST_ALL=1, else a slice that moves
with the seed. They are tried by damaged_files.py in processes under limits, so that a crash, a file that takes too long
or one that takes too much memory is named like any other failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from damaged_files import CPU_SECONDS, FORMATS, SECONDS, make_files
from slices import all_mode, test_seed

COUNT = 10_000
BATCH = 500  # a process: what it leaves behind is measured
# Of the slice: a .pt2 or .onnx that is accepted is converted and verified, which takes a hundred times longer than an
# array does.
SLICE = {
    "pt2": 30,
    "pt": 30,
    "onnx": 30,
    "external": 20,
    "pnc": 125,
    "nnapi": 125,
    "nnapi_torch": 125,
    "npy": 75,
    "npz": 25,
}
# Files that come from strangers are tried in every run, and the other formats in turn: a process takes 10 s to start.
ALWAYS = ("pnc", "onnx", "pt2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("damaged")
    make_files(made)
    return made


@pytest.mark.parametrize(
    "kind", [kind if kind in ALWAYS else pytest.param(kind, marks=pytest.mark.rotating) for kind in FORMATS]
)
def test_damaged_files(kind: str, folder: Path) -> None:
    seed = test_seed()
    start = 0 if all_mode() else seed * SLICE[kind] % COUNT
    end = COUNT if all_mode() else start + SLICE[kind]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    wrong, outcomes = [], dict[str, int]()
    first = start
    while first < end:
        last = min(first + BATCH, end)
        command = [sys.executable, str(Path(__file__).with_name("damaged_files.py")), str(folder), kind, "0"]
        done = subprocess.run(
            [*command, str(first), str(last)], capture_output=True, text=True, env=environment, errors="replace"
        )
        lines = done.stdout.splitlines()
        if done.returncode == 0:
            report = json.loads(lines[-1])
            wrong += report["wrong"]
            for outcome, count in report["outcomes"].items():
                outcomes[outcome] = outcomes.get(outcome, 0) + count
            first = last
        else:
            assert lines, done.stderr[-2000:]
            wrong.append(
                f"{kind}, index {lines[-1]}: the process ended with {done.returncode} "
                f"(-27: over {CPU_SECONDS} s of work, -14: over {SECONDS} s): {done.stderr[-500:]}"
            )
            first = int(lines[-1]) + 1
    print(f"{kind}: {start} to {end}: {outcomes}")
    assert not wrong, "\n".join(wrong[:20])
    assert sum(outcomes.values()) == end - start
    assert outcomes.get("right", 0) < end - start  # some damage was damage
