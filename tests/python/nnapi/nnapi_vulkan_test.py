"""Conformance vectors for NNAPI on Vulkan: as models of ours on the target, and by the host library's second device.

nnapi_left_off_vulkan.txt lists what the GPU back end does not take, `OPERATION operator`: an operator of ours that an
operation became (-: none) and that stayed on the CPU in some case. It may only shrink: a line that is not seen any more
in a run of everything has to go.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import zoo
from nnapi_vector_models import all_vectors, run_target
from nnapi_vectors_test import LIBRARY, OUTSIDE, run, vectors
from slices import all_mode, rotating_slice

__all__ = ["vectors"]

VULKAN = next((d for d in pn.devices() if d.target == "vulkan"), None)
PROBLEM = "" if VULKAN and VULKAN.available else "no Vulkan device"
pytestmark = [
    pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM),
    pytest.mark.skipif(not LIBRARY.is_file(), reason="build/release has no libneuralnetworks.so: make build"),
]
needs_vectors = pytest.mark.skipif(not (OUTSIDE / "run.py").is_file(), reason="PINNACE_NNAPI_VECTORS names no vectors")

LISTED = set(Path(__file__).with_name("nnapi_left_off_vulkan.txt").read_text().splitlines())
# Slices of the 5,037 vectors; and how many of them run without the CPU in a run of everything, at least.
MODELS, DEVICE = 0.01, 0.015
WHOLE_MODELS, ON_THE_DEVICE = 4630, 1674


@needs_vectors
def test_vectors_run_as_models(vectors: Path) -> None:
    """Right on whatever they run; what stays on the CPU is listed."""
    chosen = rotating_slice(all_vectors(vectors), MODELS, "nnapi vectors on vulkan")
    seen: set[str] = set()
    whole = 0
    for vector, answer in zip(chosen, run_target(chosen, "vulkan", {}), strict=True):
        assert not answer.error, f"{vector}: {answer.error}"
        assert answer.refused == vector.expect_failure, str(vector)
        left = {line.rpartition(" ")[0] for line in answer.left}
        assert left <= LISTED, f"{vector}: {left - LISTED}"
        seen |= left
        whole += answer.on_target > 0 and answer.on_cpu == 0
    assert whole > 0
    if all_mode():
        assert whole >= WHOLE_MODELS
        stale = sorted(LISTED - seen)
        assert stale == [], "not seen any more:\n" + "\n".join(stale)


@needs_vectors
def test_the_device_of_the_host_library(vectors: Path, tmp_path: Path) -> None:
    """What pinnace-vulkan says that it takes, it compiles and computes, alone."""
    drawn = rotating_slice(all_vectors(vectors), DEVICE, "nnapi vectors on pinnace-vulkan")
    arguments = ["--modes", "device", "--device", "1"]
    if not all_mode():
        arguments += ["--only", "|".join(f"^{re.escape(str(v))}$" for v in drawn)]
    result = run(vectors, tmp_path / "result.json", *arguments, seconds=3600)
    assert [d["name"] for d in result["info"]["devices"]] == ["pinnace-cpu", "pinnace-vulkan"]
    assert result["failures"] == []
    assert all(reason.startswith("device refuses ") for reason in result["unsupported"])
    assert result["total"]["pass"] >= (ON_THE_DEVICE if all_mode() else 1)


@pytest.mark.parametrize("name", rotating_slice(["mobilenet_v2", "squeezenet1_1", "resnet18"], 0.3, "pinnace-vulkan"))
def test_networks_run_whole_on_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From our back end for NNAPI through the library to our back end for GPUs."""
    module, inputs = zoo.build(name)
    program = pn.load(module, example_inputs=tuple(inputs.values())).build(verify=False)
    want = np.asarray(next(iter(pn.Session(program, target="cpu").run(inputs).values())))
    monkeypatch.setenv("PINNACE_NNAPI_LIBRARY", str(LIBRARY))
    monkeypatch.setenv("PINNACE_NNAPI_DEVICE", "pinnace-vulkan")
    session = pn.Session(program, target="nnapi", fallback=False)
    got = np.asarray(next(iter(session.run(inputs).values())))
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
    assert {row.backend for row in session.placement} == {"nnapi"}
