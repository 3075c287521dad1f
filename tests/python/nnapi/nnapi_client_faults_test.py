"""The NNAPI back end as a client: each of its calls fails with each result code in turn. Every run has the right result
or says which call gave which code, and once nothing fails any more all is on NNAPI. A slice of the calls;
PINNACE_TEST_ALL=1 takes all."""

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
from torch import nn

CODES = [
    "OUT_OF_MEMORY",
    "INCOMPLETE",
    "UNEXPECTED_NULL",
    "BAD_DATA",
    "OP_FAILED",
    "BAD_STATE",
    "UNMAPPABLE",
    "OUTPUT_INSUFFICIENT_SIZE",
    "UNAVAILABLE_DEVICE",
    "MISSED_DEADLINE_TRANSIENT",
    "MISSED_DEADLINE_PERSISTENT",
    "RESOURCE_EXHAUSTED_TRANSIENT",
    "RESOURCE_EXHAUSTED_PERSISTENT",
    "DEAD_OBJECT",
]
TRIES = 3  # of what fails with a code that says that the same call may succeed

BUILDING = [
    "Memory_createFromFd",
    "Model_create",
    "Model_addOperand",
    "Model_setOperandValue",
    "Model_setOperandValueFromMemory",
    "Model_addOperation",
    "Model_identifyInputsAndOutputs",
    "Model_finish",
    "Compilation_setPreference",
    "Compilation_finish",
    "Execution_create",
]
STAGES = {
    "nnapi:28": [
        *BUILDING,
        "Model_relaxComputationFloat32toFloat16",
        "Compilation_create",
        "Execution_setInput",
        "Execution_setOutput",
        "Execution_startCompute",
        "Event_wait",
        "computation",
    ],
    "nnapi": [
        *BUILDING,
        "Model_getSupportedOperationsForDevices",
        "Model_setOperandSymmPerChannelQuantParams",
        "Compilation_createForDevices",
        "Compilation_setCaching",
        "Compilation_setPriority",
        "Compilation_setTimeout",
        "Burst_create",
        "Execution_setReusable",
        "Execution_setTimeout",
        "Execution_setInputFromMemory",
        "Execution_setOutputFromMemory",
        "Execution_burstCompute",
        "computation",
    ],
}
# The answer is not needed: what a device refuses shows when the model is compiled.
ASKED_FOR_ONLY = {"Model_getSupportedOperationsForDevices"}
PAIRS = [(target, stage) for target, stages in STAGES.items() for stage in stages]

CLIENT = """
import json, re, sys
import numpy as np, pinnace as pn
x, want = np.load("x.npy"), np.load("want.npy")
target, fallback, most = sys.argv[1], sys.argv[2] == "yes", int(sys.argv[3])
seen, wrong, there = set(), 0, 0
for attempt in range(most):
    texts = []
    try:
        session = pn.Session("net.pnc", target=target, fallback=fallback, threads=1,
                             precision="fp16" if target == "nnapi:28" else "fp32")
        got = np.asarray(next(iter(session.run(dict.fromkeys(session.inputs, x)).values())))
        wrong += not np.abs(got - want).max() <= 1e-2 * np.abs(want).max()
        texts = [why for row in session.placement for why in row.why]
        there = there + 1 if {row.backend for row in session.placement} == {"nnapi"} else 0
    except pn.Error as error:
        texts, there = [str(error)], 0
    seen |= {tuple(pair) for text in texts for pair in re.findall(r"(\\w+) gives (\\w+)", text)}
print(json.dumps({"seen": sorted(seen), "wrong": wrong, "there": there}))
"""


class Net(nn.Module):
    """Weights that are copied, and some that lie in a memory."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.second(self.first(x).relu())
        return made


def int8(x: torch.Tensor) -> torch.jit.ScriptModule:
    """A convolution of 8 bits with scales per channel."""
    ao: Any = torch.ao.quantization
    net: Any = nn.Sequential(ao.QuantStub(), nn.Conv2d(3, 16, 3), ao.DeQuantStub()).eval()
    net.qconfig = ao.get_default_qconfig("fbgemm")
    ao.prepare(net, inplace=True)(x)
    traced: torch.jit.ScriptModule = torch.jit.trace(ao.convert(net), (x,))  # type: ignore[no-untyped-call]
    return traced


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The network in floats, and in 8 bits for what takes scales per channel."""
    torch.manual_seed(1)
    x = torch.randn(1, 3, 16, 16)
    folders = {}
    for form, module in {"float": Net().eval(), "int8": int8(x)}.items():
        folders[form] = tmp_path_factory.mktemp(f"nnapi_client_{form}")
        program = pn.load(module, (x,)).build(verify=False)
        program.save(folders[form] / "net.pnc")
        np.save(folders[form] / "x.npy", x.numpy())
        session = pn.Session(program, target="cpu")
        np.save(folders[form] / "want.npy", next(iter(session.run(dict.fromkeys(session.inputs, x)).values())))
    return folders


@pytest.mark.parametrize(("target", "stage"), rotating_slice(PAIRS, 0.12, "nnapi client faults"))
def test_each_code_of_a_call(target: str, stage: str, nets: dict[str, Path], tmp_path: Path) -> None:
    form = "int8" if stage == "Model_setOperandSymmPerChannelQuantParams" else "float"
    calls = enumerate((code for code in CODES for _ in range(TRIES)), 1)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PINNACE_NNAPI")}
    env |= {
        "PYTHONPATH": str(Path(pn.__file__).parent.parent),
        "PINNACE_NNAPI_LIBRARY": str(pn.nnapi_library_path()),
        "PINNACE_NNAPI_WORK": "any",
        "PINNACE_NNAPI_CACHE": str(tmp_path),
        "PINNACE_NNAPI_DEADLINE_MS": "600000",
        "PINNACE_NNAPI_FAULTS": ";".join(f"{stage}@{k}={code}" for k, code in calls),
    }
    fallback = "yes" if len(stage) % 2 else "no"
    command = [sys.executable, "-c", CLIENT, target, fallback, str(TRIES * len(CODES) + 2)]
    done = subprocess.run(command, cwd=nets[form], env=env, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert said["wrong"] == 0
    assert said["there"] >= 2, said
    if stage not in ASKED_FOR_ONLY:
        assert {code for _, code in said["seen"]} >= set(CODES), said["seen"]
        assert stage == "computation" or {call for call, _ in said["seen"]} == {stage}
