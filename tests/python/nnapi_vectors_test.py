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

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build/release/libneuralnetworks.so"
OUTSIDE = Path(os.environ.get("PINNACE_NNAPI_VECTORS") or "/nonexistent")

pytestmark = [
    pytest.mark.skipif(not (OUTSIDE / "run.py").is_file(), reason="PINNACE_NNAPI_VECTORS names no vectors"),
    pytest.mark.skipif(not LIBRARY.is_file(), reason="build/release has no libneuralnetworks.so: make build"),
]

# Ways to run a case besides a plain synchronous one; "signed" has few cases and is always run.
MODES = ["async", "burst", "fenced", "reuse", "dynamic", "memory", "devmem", "padding", "device", "caching", "threads"]

# Operations that cannot be run yet. The list may only shrink.
NOT_LOWERED = {
    "AXIS_ALIGNED_BBOX_TRANSFORM",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "BOX_WITH_NMS_LIMIT",
    "DETECTION_POSTPROCESSING",
    "GENERATE_PROPOSALS",
    "HASHTABLE_LOOKUP",
    "HEATMAP_MAX_KEYPOINT",
    "IF",
    "LSH_PROJECTION",
    "LSTM",
    "QUANTIZED_16BIT_LSTM",
    "QUANTIZED_LSTM",
    "RANDOM_MULTINOMIAL",
    "RNN",
    "ROI_ALIGN",
    "ROI_POOLING",
    "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "WHILE",
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nnapi_vectors")
    with tarfile.open(OUTSIDE / "vectors.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def run(vectors: Path, out: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, OUTSIDE / "run.py", LIBRARY, vectors, "--jobs", "2", "--out", out, *arguments]
    subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=500, check=False)
    result: dict[str, Any] = json.loads(out.read_text())
    return result


@pytest.mark.parametrize("mode", ["sync", "signed", *rotating_slice(MODES, 0.1, "nnapi modes")])
def test_every_vector_that_can_run_is_right(vectors: Path, tmp_path: Path, mode: str) -> None:
    result = run(vectors, tmp_path / "result.json", "--modes", mode)
    assert result["failures"] == []
    refused = {reason.removeprefix("device refuses ") for reason in result["unsupported"]}
    assert refused <= NOT_LOWERED
    total = result["total"]
    if mode == "sync":
        assert total["pass"] >= 4576
        assert total["rejected"] >= 40
