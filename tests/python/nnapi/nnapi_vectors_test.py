"""libneuralnetworks.so on conformance vectors for NNAPI that lie outside the tree, through their own runner.

PINNACE_NNAPI_VECTORS is a folder with vectors.tar.xz and run.py. Without it everything here is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from slices import rotating_slice

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = ROOT / "build/release/libneuralnetworks.so"
OUTSIDE = Path(os.environ.get("PINNACE_NNAPI_VECTORS") or "/nonexistent")

pytestmark = [
    pytest.mark.skipif(not (OUTSIDE / "run.py").is_file(), reason="PINNACE_NNAPI_VECTORS names no vectors"),
    pytest.mark.skipif(not LIBRARY.is_file(), reason="build/release has no libneuralnetworks.so: make build"),
]

# Ways to run a case besides a plain synchronous one; "signed" has few cases and is always run.
MODES = ["async", "burst", "fenced", "reuse", "dynamic", "memory", "devmem", "padding", "device", "caching", "threads"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nnapi_vectors")
    with tarfile.open(OUTSIDE / "vectors.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def run(
    vectors: Path, out: Path, *arguments: str, environment: dict[str, str] | None = None, seconds: int = 500
) -> dict[str, Any]:
    command = [sys.executable, OUTSIDE / "run.py", LIBRARY, vectors, "--jobs", "2", "--out", out, *arguments]
    subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    result: dict[str, Any] = json.loads(out.read_text())
    return result


@pytest.mark.parametrize("mode", ["signed", *rotating_slice(MODES, 0.1, "nnapi modes")])
def test_every_vector_that_can_run_is_right(vectors: Path, tmp_path: Path, mode: str) -> None:
    result = run(vectors, tmp_path / "result.json", "--modes", mode)
    assert result["failures"] == []
    assert result["unsupported"] == {}


@pytest.mark.rotating
def test_integers_differ_only_where_listed(vectors: Path, tmp_path: Path) -> None:
    """Plain runs with integers exact; those that differ, run again, are within the vectors' tolerance of 1."""
    lines = Path(__file__).with_name("nnapi_strict_differences.txt").read_text().splitlines()
    listed = {line.strip() for line in lines if line.startswith("  ")}
    result = run(vectors, tmp_path / "strict.json", "--strict")
    differing = {f"{f['folder']}/{f['case']}" for f in result["failures"]}
    assert differing - listed == set()
    assert listed - differing == set(), "these are exact now: take them off the list"
    assert result["unsupported"] == {}
    assert result["total"]["pass"] + len(differing) >= 4997
    assert result["total"]["rejected"] >= 40
    again = run(vectors, tmp_path / "again.json", "--only", f"^({'|'.join(sorted(differing))})$")
    assert again["failures"] == []
    assert again["total"]["pass"] == len(differing)


def test_dumped_models_run_again_with_the_same_values(vectors: Path, tmp_path: Path) -> None:
    dumps = {"PINNACE_NNAPI_DUMP": f"{tmp_path}/dumps"}
    first = run(vectors / "V1_2", tmp_path / "a.json", "--ops", "CONV_2D,ARGMAX,CAST,QUANTIZE,SLICE", environment=dumps)
    assert first["total"]["pass"] > 300
    # Each model that was compiled ran; integers are now compared exactly.
    again = run(tmp_path / "dumps", tmp_path / "b.json", "--strict")
    assert again["failures"] == []
    assert again["total"]["pass"] >= first["total"]["pass"]
