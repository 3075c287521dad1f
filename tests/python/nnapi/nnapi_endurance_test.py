"""The NNAPI back end over thousands of runs before a device that fails now and then: every run has the right result or
says what went wrong, and neither memory nor descriptors grow. 10,000 runs with PINNACE_TEST_ALL=1, else a slice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from slices import all_mode
from torch import Tensor, nn

RUNS = 10_000 if all_mode() else 600

# Runs net.pnc argv[1] times on the target argv[2]; a session that lost its device makes place for a new one. Says what
# it saw, and memory and descriptors after a fifth of the runs and at the end.
CLIENT = """
import json, os, sys
import numpy as np, pinnace as pn
x, want = {"x": np.load("x.npy")}, np.load("want.npy")
def used():
    pages = int(open("/proc/self/statm").read().split()[1])
    return [pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))]
runs, there, lost, failed, wrong, session = int(sys.argv[1]), 0, 0, 0, 0, None
for run in range(runs):
    try:
        if session is None:
            session = pn.Session("net.pnc", target=sys.argv[2], fallback=sys.argv[3] == "yes", threads=1)
        got = np.asarray(next(iter(session.run(x).values())))
        wrong += not np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
        there += {row.backend for row in session.placement} == {"nnapi"}
        if any("device was lost" in why for row in session.placement for why in row.why):
            lost, session = lost + 1, None
    except pn.Error:
        failed, session = failed + 1, None
    if run == runs // 5:
        session = None  # it would hold its file open
        early = used()
session = None
print(json.dumps({"lost": lost, "there": there, "failed": failed, "wrong": wrong, "early": early, "late": used()}))
"""


class Net(nn.Module):
    """Work enough to be worth a call, and a recurrent operator behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.lstm = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 32, 3), nn.LSTM(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.first(x).relu()).flatten(2).permute(2, 0, 1)[:4]
        made: Tensor = self.lstm(y)[0]
        return made


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nnapi_endurance")
    torch.manual_seed(1)
    x = torch.randn(1, 3, 32, 32)
    program = pn.load(Net().eval(), (x,)).build(verify=False)
    program.save(folder / "net.pnc")
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "want.npy", next(iter(pn.Session(program, target="cpu").run({"x": x}).values())))
    return folder


def endure(folder: Path, runs: int, target: str, fallback: str, **settings: str) -> dict[str, Any]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PINNACE_NNAPI")}
    env |= {"PYTHONPATH": str(Path(pn.__file__).parent.parent), **settings}
    env["PINNACE_NNAPI_LIBRARY"] = str(pn.nnapi_library_path())
    command = [sys.executable, "-c", CLIENT, str(runs), target, fallback]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def stays_level(said: dict[str, Any]) -> bool:
    grown = said["late"][0] - said["early"][0]
    return bool(grown <= 4 << 20 and said["late"][1] == said["early"][1])


@pytest.mark.parametrize(("target", "fallback"), [("nnapi:28", "yes"), ("nnapi:30", "no"), ("nnapi", "yes")])
def test_a_device_that_fails_now_and_then(target: str, fallback: str, net: Path) -> None:
    """One run in ten, one compilation in seven, one descriptor in nineteen."""
    faults = [f"computation@{k}=OP_FAILED" for k in range(10, 2 * RUNS, 10)]
    faults += [f"Compilation_finish@{k}=OUT_OF_MEMORY" for k in range(7, RUNS // 3, 7)]
    faults += [f"Memory_createFromFd@{k}=BAD_STATE" for k in range(19, RUNS // 3, 19)]
    said = endure(net, RUNS, target, fallback, PINNACE_NNAPI_FAULTS=";".join(faults))
    assert said["wrong"] == 0
    assert said["lost" if fallback == "yes" else "failed"] >= RUNS // 15, said
    assert said["there"] >= RUNS // 2, said
    assert stays_level(said), said


def test_sessions_that_come_and_go(net: Path) -> None:
    """A session for every other run, lost by its first: models, compilations, memories and bursts are given back."""
    runs = min(RUNS // 2, 3000)  # a variable of the environment holds 128 KiB
    faults = ";".join(f"computation@{k}=dead" for k in range(1, 2 * runs, 2))
    said = endure(net, runs, "nnapi", "yes", PINNACE_NNAPI_FAULTS=faults)
    assert said["wrong"] == 0
    assert said["lost"] >= runs // 5, said
    assert stays_level(said), said
