"""A process may end while a thread of ours opens a driver's library: exit() waits for the library's constructors, so
that its destructors find what those made. The library here stands for the system's Vulkan loader."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pinnace as pn
import pytest
import torch
from torch import nn

# As LLVM's, the constructor registers a destructor first and is at work for long after. Each step is a line of the file
# of the variable STEPS. One that finds the other's step missing ends the process with 77.
LIBRARY = r"""
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

static bool made = false, ended = false;

static void step(const std::string& what) {
  const int file = open(getenv("STEPS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  const std::string line = what + "\n";
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(78);
  close(file);
}

struct Registered {
  ~Registered() {
    ended = true;
    step("destroyed");
    if (!made) _exit(77);
  }
};

__attribute__((constructor)) static void construct() {
  static Registered registered;
  step("begun");
  usleep(1500000);
  if (ended) _exit(77);
  made = true;
  step("made");
}
"""

# Ends as soon as the library's constructor has begun.
PROCESS = """
import os, sys, time
import numpy as np, pinnace as pn
session = pn.Session("net.pnc", target="auto")
end = time.monotonic() + 60
while not os.path.exists(os.environ["STEPS"]):
    session.run({"x": np.ones((1, 64, 48, 48), np.float32)})
    assert time.monotonic() < end, "no search began"
    time.sleep(0.01)
if sys.argv[1] == "sys.exit":
    sys.exit(3)
"""


@pytest.mark.parametrize(("way", "status"), [("return", 0), ("sys.exit", 3)])
def test_exit_waits_for_a_library_that_is_being_opened(way: str, status: int, tmp_path: Path) -> None:
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("no compiler to make a library with")
    net = nn.Conv2d(64, 64, 3)
    program = pn.load(net, (torch.ones(1, 64, 48, 48),)).build(verify=False, input_names=["x"])
    program.save(tmp_path / "net.pnc")
    (tmp_path / "loader.cc").write_text(LIBRARY)
    (tmp_path / "gpu").touch()
    command = [compiler, "-shared", "-fPIC", "-o", str(tmp_path / "libvulkan.so.1"), str(tmp_path / "loader.cc")]
    subprocess.run(command, check=True, timeout=120)
    environment = os.environ | {
        "PYTHONPATH": str(Path(pn.__file__).parent.parent),
        "LD_LIBRARY_PATH": f"{tmp_path}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "PINNACE_GPU_DEVICE_FILES": str(tmp_path / "gpu"),
        "STEPS": str(tmp_path / "steps.txt"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, way],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    assert (tmp_path / "steps.txt").read_text().split() == ["begun", "made", "destroyed"]
