"""Calls that run out of memory: the address space of a child process is limited, and what little is left is taken.

A call then raises pn.OutOfMemory, or Python's own MemoryError where the interpreter had none either, or succeeds with
what is left. With the limit lifted the same session runs, and new ones are made, at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn

SANITIZED = "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are counted as on Linux"),
    pytest.mark.skipif(SANITIZED, reason="a sanitizer needs address space of its own"),
]

CHILD = """
import gc, resource, sys
import numpy as np
import pinnace as pn

path, threads = sys.argv[1], int(sys.argv[2])
x = {"input": np.load(path + ".x.npy")}
want = np.load(path + ".y.npy")
program = pn.Program.open(path)
free = resource.getrlimit(resource.RLIMIT_AS)
seen = {"run": 0, "make": 0, "open": 0}

def right(session):
    (y,) = session.run(x).values()
    np.testing.assert_array_equal(y, want)

def address_space():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def tight(what, call, spare):
    '''call() with `spare` bytes left, in pieces of all sizes.'''
    gc.collect()
    hog, sizes = [None] * 400_000, [1 << 20, 1 << 16, 4096, 1024, 400, 160, 48]
    at, result, problem = 0, None, None
    left = [bytearray(spare // 8) for _ in range(8)]
    resource.setrlimit(resource.RLIMIT_AS, (address_space(), free[1]))
    for size in sizes:
        try:
            while at < len(hog):
                hog[at] = bytearray(size)
                at += 1
        except MemoryError:
            pass
    left = None
    try:
        result = call()
    except pn.OutOfMemory:
        problem = "ours"
    except MemoryError:
        problem = "python's"
    resource.setrlimit(resource.RLIMIT_AS, free)
    hog = None
    gc.collect()
    if problem == "ours":
        seen[what] += 1
    return result

right(pn.Session(program, threads=threads))  # imports and threads that stay
for spare in [64 << k for k in range(4, 18, 2)]:
    session = pn.Session(program, threads=threads)
    tight("run", lambda: session.run(x), spare)
    right(session)
    session = None  # what sessions share goes with the last one
    tight("make", lambda: pn.Session(program, threads=threads), spare)
    right(pn.Session(program, threads=threads))
    tight("open", lambda: pn.Program.open(path), spare)
    pn.Program.open(path)
print(seen)
assert seen["run"] > 0 and seen["make"] > 0, seen
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_without_memory_are_survived(tmp_path: Path, threads: int) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.Softmax(1)).eval()
    program = pn.load(net, (torch.zeros(2, 1024),)).build(verify=False)
    path = tmp_path / "net.pnc"
    program.save(path)
    x = np.random.default_rng(0).standard_normal((2, 1024)).astype(np.float32)
    (source,), (result,) = program.inputs, program.outputs
    assert source == "input"
    np.save(f"{path}.x.npy", x)
    np.save(f"{path}.y.npy", pn.Session(program, threads=1).run({source: x})[result])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(threads)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_out_of_memory_is_a_memory_error() -> None:
    assert issubclass(pn.OutOfMemory, MemoryError)
    assert issubclass(pn.OutOfMemory, pn.Error)
    assert pn.OutOfMemory("no").offset is None
