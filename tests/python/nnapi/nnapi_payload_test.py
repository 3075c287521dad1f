"""Weights laid out for NNAPI in a file, from Python: what build(targets=...) stores, that the library gets the file
itself, and what `show` and a session say of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn

X = torch.linspace(-1, 1, 3 * 40 * 40).reshape(1, 3, 40, 40)


@pytest.fixture(scope="module")
def model() -> pn.Model:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2),
        nn.ReLU6(),
        nn.Flatten(),
        nn.Linear(64 * 19 * 19, 10),
    )
    return pn.load(net.eval(), (X,))


@pytest.fixture(scope="module")
def path(model: pn.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = model.build(targets=["nnapi:29", "cpu:sse2"])
    assert program.metadata["verified.nnapi:29"].startswith("yes"), program.metadata
    assert [p.target for p in program.payloads].count("nnapi:29") == 4  # two biases are part of the model
    file = tmp_path_factory.mktemp("nnapi_payload") / "net.pnc"
    program.save(file)
    return file


def test_what_is_stored_is_used_and_gives_the_same_bits(model: pn.Model, path: Path) -> None:
    stored = pn.Session(path, target="nnapi:29", fallback=False, require_payload=True)
    plain = pn.Session(model.build(verify=False), target="nnapi:fl3", fallback=False)
    assert stored.plan.constant_bytes == 0
    assert plain.plan.constant_bytes > 64 * 19 * 19 * 10 * 4
    assert {row.notice for row in stored.placement} == {""}
    (got,), (want,) = (s.run({"input": X.numpy()}).values() for s in (stored, plain))
    assert np.array_equal(got, want)


def test_a_target_without_a_level_stores_nothing_and_one_with_a_level_little_work_too(model: pn.Model) -> None:
    assert model.build(targets=["nnapi"], verify=False).payloads == []
    small = pn.load(nn.Linear(16, 64).eval(), (torch.ones(1, 16),))
    assert len(small.build(targets=["nnapi:29"], verify=False).payloads) == 2


def test_another_level_lays_them_out_and_says_so(path: Path) -> None:
    session = pn.Session(path, target="nnapi:30", fallback=False)
    notices = {row.notice for row in session.placement if row.op in ("conv", "gemm")}
    assert notices == {"laid out at load: the file has weights for nnapi:29, this runs as nnapi:30"}
    with pytest.raises(pn.Unsupported, match="the file has nothing for nnapi:30 under 'layout"):
        pn.Session(path, target="nnapi:30", fallback=False, require_payload=True)


def test_show_lists_them(path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(pn.__file__).parent.parent)}
    command = [sys.executable, "-m", "pinnace", "inspect", str(path)]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert re.search(r"payload for nnapi:29: 4 parts, [\d,]+ bytes", said), said


CLIENT = """
import sys, numpy as np, pinnace as pn
session = pn.Session(sys.argv[1], target="nnapi:29", fallback=False)
session.run({"input": np.ones((1, 3, 40, 40), np.float32)})
"""


def test_the_library_is_given_the_file(path: Path) -> None:
    """One memory: read-only, from a page of the file on, as large as what it holds."""
    env = {
        **os.environ,
        "PYTHONPATH": str(Path(pn.__file__).parent.parent),
        "PINNACE_NNAPI_TRACE": "1",
        "PINNACE_NNAPI_STRICT": "1",
        "PINNACE_NNAPI_LIBRARY": str(pn.nnapi_library_path()),
    }
    command = [sys.executable, "-c", CLIENT, str(path)]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stderr
    calls = [line for line in said.splitlines() if "Memory_createFromFd(" in line]
    payloads = [p for p in pn.Program.open(path).payloads if p.target == "nnapi:29"]
    total = sum(-(-p.bytes // 64) * 64 for p in payloads)
    for line in calls:
        size, protect, _, offset = (int(n) for n in re.findall(r"\d+", line.split("createFromFd(")[1])[:4])
        assert protect == 1, line
        assert offset > 0, line
        assert offset % os.sysconf("SC_PAGE_SIZE") == 0, line
        assert total - 64 < size < total + os.sysconf("SC_PAGE_SIZE"), (line, total)
    assert calls, said[-2000:]
    assert "strict: 0 violations" in said
