"""Conformance vectors for NNAPI on Vulkan: as models of ours on the target, and by the host library's second device.

nnapi_left_off_vulkan.txt lists what the GPU back end does not take, as nnapi_left_on_cpu.txt does for NNAPI. It may
only shrink: a line that is not seen any more in a run of everything has to go.
"""

from __future__ import annotations

from pathlib import Path

import pinnace as pn
import pytest
from nnapi_vector_models import all_vectors, run_target
from nnapi_vectors_test import pytestmark as needs_vectors
from nnapi_vectors_test import run, vectors
from slices import all_mode, rotating_slice

__all__ = ["vectors"]

VULKAN = next((d for d in pn.devices() if d["target"] == "vulkan"), None)
PROBLEM = "" if VULKAN and VULKAN["available"] else "no Vulkan device"
pytestmark = [*needs_vectors, pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)]

LISTED = set(Path(__file__).with_name("nnapi_left_off_vulkan.txt").read_text().splitlines())
# Slices of what 5,037 vectors take in a run of everything.
MODELS, OPERATIONS = 0.03, 0.06


def test_vectors_run_as_models(vectors: Path) -> None:
    """Right on whatever they run; what stays on the CPU is listed with its rule."""
    chosen = rotating_slice(all_vectors(vectors), MODELS, "nnapi vectors on vulkan")
    seen: set[str] = set()
    whole = 0
    for vector, answer in zip(chosen, run_target(chosen, "vulkan", {}), strict=True):
        assert not answer.error, f"{vector}: {answer.error}"
        assert answer.refused == vector.expect_failure, str(vector)
        assert set(answer.left) <= LISTED, f"{vector}: {set(answer.left) - LISTED}"
        seen |= set(answer.left)
        whole += answer.on_target > 0 and answer.on_cpu == 0
    assert whole > 0
    if all_mode():
        stale = sorted(LISTED - seen)
        assert stale == [], "not seen any more:\n" + "\n".join(stale)


def test_the_device_of_the_host_library(vectors: Path, tmp_path: Path) -> None:
    """What pinnace-vulkan says that it takes, it compiles and computes, alone."""
    operations = sorted({o for v in all_vectors(vectors) for o in v.operations})
    drawn = rotating_slice(operations, OPERATIONS, "nnapi operations of pinnace-vulkan")
    arguments = ["--modes", "device", "--device", "1", "--ops", ",".join({"ADD", *drawn})]
    result = run(vectors, tmp_path / "result.json", *arguments, seconds=3600)
    assert [d["name"] for d in result["info"]["devices"]] == ["pinnace-cpu", "pinnace-vulkan"]
    assert result["failures"] == []
    assert all(reason.startswith("device refuses ") for reason in result["unsupported"])
    assert result["by_operation"]["ADD"]["pass"] > 0
