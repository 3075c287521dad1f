"""The NNAPI back end before devices that our library's test bed pretends: lower levels, operations that are refused,
result codes at every call. Each case is a process of its own, for the library reads its settings once."""

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
from slices import rotating_slice
from torch import Tensor, nn

# Loads net.pnc and runs it five times on the target argv[1]; argv[2] is the fallback. Says what came of it as JSON.
CLIENT = """
import json, sys
import numpy as np, pinnace as pn
x = {"x": np.load("x.npy")}
said = {"error": "", "text": ""}
try:
    session = pn.Session("net.pnc", target=sys.argv[1], fallback=sys.argv[2] == "yes", precision=sys.argv[3])
    said["runs"] = [np.asarray(next(iter(session.run(x).values()))).tolist() for _ in range(5)]
    said["placement"] = [[row.op, row.backend, row.kernel, row.why] for row in session.placement]
    said["notices"] = [row.notice for row in session.placement]
    said["events"] = [[e.backend, e.kernel] for e in session.profile(x).events]
except pn.Error as error:
    said["error"], said["text"] = type(error).__name__, str(error)
print(json.dumps(said))
"""


class Net(nn.Module):
    """Something of each kind that levels treat differently, with work enough to be worth a call."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=2, dilation=2, groups=32)
        self.grouped = nn.Conv2d(32, 32, 3, padding=1, groups=4)
        self.wide = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.hardswish(self.first(x))
        y = nn.functional.leaky_relu(self.depthwise(y)) + self.grouped(y).clamp(-0.5, 2)
        y = self.pool(nn.functional.hardsigmoid(self.wide(y)))
        made: Tensor = self.head(y.mean((2, 3))).softmax(-1)
        return made


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with net.pnc, x.npy and want.npy."""
    folder = tmp_path_factory.mktemp("nnapi_test_bed")
    torch.manual_seed(1)
    module, x = Net().eval(), torch.randn(1, 3, 64, 64)
    program = pn.load(module, (x,)).build(verify=False)
    program.save(folder / "net.pnc")
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "want.npy", next(iter(pn.Session(program, target="cpu").run({"x": x}).values())))
    return folder


def client(folder: Path, target: str, fallback: str = "no", precision: str = "fp32", **settings: str) -> dict[str, Any]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PINNACE_NNAPI")}
    root = str(Path(pn.__file__).parent.parent)
    env |= {"PYTHONPATH": root, "PINNACE_NNAPI_LIBRARY": str(pn.nnapi_library_path()), **settings}
    command = [sys.executable, "-c", CLIENT, target, fallback, precision]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def matches(folder: Path, said: dict[str, Any], bound: float = 1e-5) -> bool:
    want = np.load(folder / "want.npy")
    return len(said["runs"]) == 5 and all(np.abs(np.asarray(run) - want).max() <= bound for run in said["runs"])


def backends(said: dict[str, Any]) -> set[str]:
    return {backend for _, backend, _, _ in said["placement"]}


def reasons(said: dict[str, Any]) -> str:
    return "\n".join(why for row in said["placement"] for why in row[3])


@pytest.mark.parametrize("level", ["27", "28", "29", "30", "31", "1000006", "1000007", "1000008"])
def test_a_library_of_each_level_takes_every_segment(level: str, net: Path, tmp_path: Path) -> None:
    """It refuses what is above its level, and in strict mode says what a client must not do."""
    report = tmp_path / "strict.txt"
    said = client(net, "nnapi", PINNACE_NNAPI_LEVEL=level, PINNACE_NNAPI_STRICT=str(report))
    assert said["error"] == "", said["text"]
    assert backends(said) == {"nnapi"}
    assert matches(net, said)
    violations = [line for line in report.read_text().splitlines() if line.startswith("strict: ")]
    assert [v for v in violations if "never-freed" not in v and "violations" not in v] == []


def test_functions_are_of_the_level(net: Path, tmp_path: Path) -> None:
    """Feature level 1 has asynchronous calls alone; from 3 on a device is chosen, from 5 on executions are reused."""
    called = {}
    for level in ("27", "29", "31"):
        trace = tmp_path / f"{level}.txt"
        client(net, "nnapi", PINNACE_NNAPI_LEVEL=level, PINNACE_NNAPI_TRACE=str(trace))
        called[level] = trace.read_text()
    assert "Execution_startCompute" in called["27"]
    assert "Memory_createFromFd" in called["27"]
    for later in ("createForDevices", "burstCompute", "Execution_compute", "getDeviceCount"):
        assert later not in called["27"]
    assert "Compilation_createForDevices" in called["29"]
    assert "Execution_burstCompute" in called["29"]
    assert "setReusable" not in called["29"]
    assert "Execution_setReusable" in called["31"]
    assert called["31"].count("Execution_create") < called["29"].count("Execution_create")


def test_a_target_above_the_library_is_refused(net: Path) -> None:
    said = client(net, "nnapi:30", PINNACE_NNAPI_LEVEL="28")
    assert said["error"] == "Unsupported"
    assert "no device of feature level 4" in said["text"]


def test_what_a_device_refuses_goes_elsewhere(net: Path) -> None:
    said = client(net, "nnapi", "yes", PINNACE_NNAPI_UNSUPPORTED="MAX_POOL_2D")
    assert matches(net, said)
    pools = [row for row in said["placement"] if row[0] == "max_pool"]
    assert [row[1] for row in pools] == ["cpu"]
    assert "MAX_POOL_2D on pinnace-cpu (rule N-17)" in pools[0][3][0]
    assert "nnapi" in backends(said)
    alone = client(net, "nnapi", "no", PINNACE_NNAPI_UNSUPPORTED="MAX_POOL_2D")
    assert alone["error"] == "Unsupported"
    assert "fallback is off" in alone["text"]


@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED_TRANSIENT", "MISSED_DEADLINE_TRANSIENT"])
@pytest.mark.parametrize("level", ["28", "29", "31"])
def test_transient_codes_are_retried(code: str, level: str, net: Path) -> None:
    said = client(net, "nnapi", "no", PINNACE_NNAPI_LEVEL=level, PINNACE_NNAPI_FAULTS=f"computation@2-3={code}")
    assert said["error"] == "", said["text"]
    assert matches(net, said)
    assert backends(said) == {"nnapi"}


@pytest.mark.parametrize("fault", ["computation@3+=OP_FAILED", "computation@2=dead", "Compilation_finish=OP_FAILED"])
def test_other_codes_leave_the_device(fault: str, net: Path) -> None:
    said = client(net, "nnapi", "yes", PINNACE_NNAPI_FAULTS=fault)
    assert matches(net, said)
    assert backends(said) == {"cpu"}
    assert "its device was lost (NNAPI device pinnace-cpu: " in reasons(said)
    assert ("DEAD_OBJECT" if "dead" in fault else "OP_FAILED") in reasons(said)
    alone = client(net, "nnapi", "no", PINNACE_NNAPI_FAULTS=fault)
    assert alone["error"] == "DeviceLost"


STAGES = (
    *("Memory_createFromFd", "Model_create", "Model_addOperand", "Model_setOperandValue", "Model_addOperation"),
    *("Model_setOperandValueFromMemory", "Model_identifyInputsAndOutputs", "Model_finish", "getDeviceCount"),
    *("Model_getSupportedOperationsForDevices", "Compilation_createForDevices", "Compilation_setPreference"),
    *("Compilation_finish", "Execution_create", "Execution_setReusable", "Execution_setInputFromMemory"),
    *("Execution_setOutputFromMemory", "Burst_create", "Execution_burstCompute", "computation"),
)


@pytest.mark.parametrize(
    ("stage", "code"), rotating_slice([(s, c) for s in STAGES for c in range(1, 15)], 0.03, "nnapi faults")
)
def test_each_code_at_each_stage_recovers_or_reports(stage: str, code: int, net: Path) -> None:
    for when in ("", "@2+"):
        said = client(net, "nnapi", "yes", PINNACE_NNAPI_FAULTS=f"{stage}{when}={code}")
        if said["error"]:
            assert said["error"] in ("Unsupported", "OutOfMemory"), said["text"]
            assert said["text"]
        else:
            assert matches(net, said)
            assert backends(said) == {"nnapi"} or "lost" in reasons(said) or "rule N-" in reasons(said)


def test_a_target_by_name_takes_small_work_too() -> None:
    program = pn.load(nn.ReLU(), (torch.ones(1, 3, 4, 4),)).build(["nnapi:29"])
    assert program.metadata["verified.nnapi:29"].endswith("; 1 of 1 nodes ran there")
    name = next(iter(pn.Session(program).inputs))
    for fallback in (True, False):
        session = pn.Session(program, target="nnapi:29", fallback=fallback)
        session.run({name: np.ones((1, 3, 4, 4), np.float32)})
        (row,) = session.placement
        assert row.backend == "nnapi"


def test_settings_of_the_environment(net: Path, tmp_path: Path) -> None:
    cache, trace = tmp_path / "cache", tmp_path / "trace.txt"
    cache.mkdir(mode=0o700)
    settings = {
        "PINNACE_NNAPI_CACHE": str(cache),
        "PINNACE_NNAPI_PREFERENCE": "sustained_speed",
        "PINNACE_NNAPI_PRIORITY": "high",
        "PINNACE_NNAPI_DEADLINE_MS": "60000",
        "PINNACE_NNAPI_DEVICE": "pinnace-cpu",
    }
    said = client(net, "nnapi", PINNACE_NNAPI_TRACE=str(trace), **settings)
    assert said["error"] == "", said["text"]
    assert matches(net, said)
    for call in ("Compilation_setCaching", "Compilation_setPriority", "Compilation_setTimeout", "Execution_setTimeout"):
        assert call in trace.read_text()
    assert list(cache.iterdir())
    assert matches(net, client(net, "nnapi", **settings))
    kept = sorted(cache.iterdir())
    cache.chmod(0o777)
    said = client(net, "nnapi", **settings)
    assert matches(net, said)
    assert any("the driver keeps nothing: cannot trust" in notice for notice in said["notices"])
    assert sorted(cache.iterdir()) == kept
    for variable, value in (("PREFERENCE", "fast"), ("PRIORITY", "9"), ("DEADLINE_MS", "soon")):
        wrong = client(net, "nnapi", **{f"PINNACE_NNAPI_{variable}": value})
        assert wrong["error"] == "InvalidArgument"
        assert f"PINNACE_NNAPI_{variable}" in wrong["text"]
    assert "no-such-device" in client(net, "nnapi", PINNACE_NNAPI_DEVICE="no-such-device")["text"]


def test_half_precision_relaxes_the_model(net: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    said = client(net, "nnapi", precision="fp16", PINNACE_NNAPI_TRACE=str(trace))
    assert said["error"] == "", said["text"]
    assert "Model_relaxComputationFloat32toFloat16" in trace.read_text()
    assert matches(net, said, 2e-2)


def test_a_profile_has_the_devices_time(net: Path) -> None:
    events = client(net, "nnapi")["events"]
    assert ["nnapi", "on the device"] in events
    assert ["nnapi", "the whole run"] in events
