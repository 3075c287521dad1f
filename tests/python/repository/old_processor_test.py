"""An x86-64 processor of 2008 (Nehalem, emulated): every baseline kernel, and a whole model like on this machine.

The emulator stops a program at the first instruction that such a processor does not have.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build/release"
EMULATOR = "qemu-x86_64"

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 machine"),
    pytest.mark.skipif(not shutil.which(EMULATOR), reason="qemu-user is not installed"),
    pytest.mark.skipif(not (BUILD / "pinnace-run").exists(), reason="build/release has no pinnace-run: make build"),
]


def emulated(*command: str | Path, instruction_set: str = "") -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PINNACE_TEST_INSTRUCTION_SET": instruction_set}
    run = [EMULATOR, "-cpu", "Nehalem", *map(str, command)]
    return subprocess.run(run, capture_output=True, text=True, timeout=600, check=False, env=variables)


@pytest.mark.rotating
def test_baseline_kernels_and_sessions_run() -> None:
    wanted = "Cpu/KernelLine.*generic*:CpuFeatures.*:Session.*:StepTeam.*"
    done = emulated(BUILD / "pinnace_tests", f"--gtest_filter={wanted}", "--gtest_brief=1", instruction_set="generic")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_a_model_runs_and_higher_instruction_sets_are_refused(tmp_path: Path) -> None:
    torch.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1),
        nn.Hardswish(),
        nn.Conv2d(16, 16, 3, 1, 1, groups=16),
        nn.ReLU6(),
        nn.Conv2d(16, 9, 1),
    ).eval()
    x = torch.randn(1, 3, 21, 18)
    program = pn.load(net, (x,)).build()
    program.save(tmp_path / "net.pnc")
    (tmp_path / "x").write_bytes(x.numpy().tobytes())
    (source,), (result,) = program.inputs, program.outputs
    want = pn.Session(program).run({source: x.numpy()})[result]
    files = ("--input", f"{source}={tmp_path / 'x'}", "--output", f"{result}={tmp_path / 'y'}")
    done = emulated(BUILD / "pinnace-run", tmp_path / "net.pnc", "--placement", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "_generic" in done.stdout
    assert "_avx" not in done.stdout
    got = np.frombuffer((tmp_path / "y").read_bytes(), np.float32).reshape(np.shape(want))
    assert_agree(got, want)
    refused = emulated(BUILD / "pinnace-run", tmp_path / "net.pnc", "--target", "cpu:avx2")
    assert refused.returncode != 0
    assert "this processor does not have avx2" in refused.stdout + refused.stderr
