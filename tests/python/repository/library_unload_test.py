"""dlclose of the libraries: threads of the pool stay asleep in their code, so it must stay where it is. In a child
process, which opens a library, runs a model on several threads, and closes it at once, again and again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn

BUILD = Path(__file__).resolve().parents[3] / "build/release"
ELEMENTS = 1 << 17

BEGIN = """
import ctypes as C, json, os, sys, time
import _ctypes
import numpy as np
path, model, N = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = np.linspace(-2, 2, N, dtype=np.float32)
"""

CYCLES = """
def threads():
    return len(os.listdir("/proc/self/task"))
seen = []
for _ in range(4):
    y = np.zeros(N, np.float32)
    library = C.CDLL(path)
    run(library)
    assert np.abs(y - np.tanh(x)).max() < 1e-5
    _ctypes.dlclose(library._handle)
    time.sleep(0.02)  # by now whoever was on the way to sleep has come there, or nowhere
    with open("/proc/self/maps") as maps:
        seen.append([threads(), sum(os.path.realpath(path) in line for line in maps)])
print(json.dumps(seen))
"""

NNAPI = """
class Type(C.Structure):
    _fields_ = [("code", C.c_int32), ("rank", C.c_uint32), ("dims", C.POINTER(C.c_uint32)),
                ("scale", C.c_float), ("zero", C.c_int32)]
def run(library):
    def call(name, *arguments):
        code = getattr(library, "ANeuralNetworks" + name)(*arguments)
        assert code == 0, (name, code)
    m, c, e = C.c_void_p(), C.c_void_p(), C.c_void_p()
    one, bytes = (lambda i: (C.c_uint32 * 1)(i)), C.c_size_t(4 * N)
    call("Model_create", C.byref(m))
    for _ in range(2):
        call("Model_addOperand", m, C.byref(Type(3, 1, one(N), 0, 0)))
    call("Model_addOperation", m, 28, 1, one(0), 1, one(1))
    call("Model_identifyInputsAndOutputs", m, 1, one(0), 1, one(1))
    call("Model_finish", m)
    call("Compilation_create", m, C.byref(c))
    call("Compilation_finish", c)
    call("Execution_create", c, C.byref(e))
    call("Execution_setInput", e, 0, None, C.c_void_p(x.ctypes.data), bytes)
    call("Execution_setOutput", e, 0, None, C.c_void_p(y.ctypes.data), bytes)
    call("Execution_compute", e)
    library.ANeuralNetworksExecution_free(e)
    library.ANeuralNetworksCompilation_free(c)
    library.ANeuralNetworksModel_free(m)
"""

RUNTIME = """
class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("bytes", C.c_size_t), ("dtype", C.c_int32), ("rank", C.c_int32),
                ("shape", C.c_int64 * 8)]
def run(library):
    program, session = C.c_void_p(), C.c_void_p()
    assert library.pnc_program_open(model.encode(), C.byref(program)) == 0
    assert library.pnc_session_create(program, None, C.byref(session)) == 0
    given, wanted = (Tensor(a.ctypes.data, a.nbytes, 0, 2, (C.c_int64 * 8)(1, N)) for a in (x, y))
    assert library.pnc_session_run(session, C.byref(given), 1, C.byref(wanted), 1) == 0
    library.pnc_session_close(session)
    library.pnc_program_close(program)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unload") / "tanh.pnc"
    pn.load(nn.Tanh(), example_inputs=(torch.zeros(1, ELEMENTS),)).build(verify=False).save(path)
    return path


@pytest.mark.parametrize("name", ["libneuralnetworks.so", "libpinnace_runtime.so", "libpinnace.so"])
def test_a_closed_library_stays(name: str, model: Path) -> None:
    nnapi = name == "libneuralnetworks.so"
    path = Path(pn.nnapi_library_path()) if nnapi else BUILD / name
    if not path.exists():
        pytest.skip(f"{path} is not there: make build")
    script = BEGIN + (NNAPI if nnapi else RUNTIME) + CYCLES
    command = [sys.executable, "-c", script, str(path), str(model), str(ELEMENTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    seen = np.array(json.loads(done.stdout))
    assert (seen[:, 1] > 0).all(), f"{name} is gone: {seen.tolist()}"
    assert (seen[:, 0] == seen[0, 0]).all(), f"threads are left behind: {seen.tolist()}"
