"""The folder PINNACE_GPU_CACHE with several processes at once, without room, and without the right to write; what
"auto" remembers there from one process to the next; and that without a device file it opens no library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from gpu_backend_test import PROBLEM
from torch import nn

pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)

WORKER = """
import json, os, resource, sys, time
import numpy as np, pinnace as pn
order = json.loads(sys.argv[1])
if order.get("bytes") is not None:  # what a full disk does: Python ignores the signal, so that writes fail
    resource.setrlimit(resource.RLIMIT_FSIZE, (order["bytes"], order["bytes"]))
if order.get("nobody") and os.geteuid() == 0:
    os.seteuid(65534)
x = np.load(order["input"])
said = []
def rows(session):
    return [[row.backend, row.notice, *row.why] for row in session.placement if row.op == "conv"]
for net in order["nets"]:
    session = pn.Session(net, target=order.get("target", "vulkan"), threads=1, fallback="target" in order)
    want = np.load(net + ".npy")
    until = time.monotonic() + order.get("seconds", 0)
    while True:
        got = next(iter(session.run({"x": x}).values()))
        assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
        said += [row for row in rows(session) if row not in said]
        if time.monotonic() >= until or " ms without it" in str(said[-1]):
            break
    if not order.get("all"):
        said = said[-1:]
    if order.get("at_exit"):  # in the middle of everything
        break
    del session
if order.get("maps"):  # which libraries the process has opened
    said = [sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line.split()[-1]})]
print(json.dumps(said))
"""


class Net(nn.Module):
    """Other kernels, and so another file of them, for each kind."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 12, 1 + kind % 2 * 2, padding=kind % 2)
        self.kind = kind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        kinds = (y.relu(), nn.functional.max_pool2d(y, 2), y.softmax(-1), nn.functional.avg_pool2d(y, 2).mean((2, 3)))
        return kinds[self.kind]


class Large(nn.Module):
    """25 million multiply-adds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 32, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        return y.relu()


def saved(module: nn.Module, x: torch.Tensor, path: Path) -> str:
    module = module.eval()
    pn.load(module, (x,)).build(verify=False).save(path)
    with torch.no_grad():
        np.save(f"{path}.npy", module(x).numpy())
    return str(path)


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    torch.manual_seed(0)
    folder, x = tmp_path_factory.mktemp("nets"), torch.randn(1, 8, 14, 18)
    np.save(folder / "x.npy", x.numpy())
    folder.chmod(0o755)  # copies of it are read by another user
    return [saved(Net(kind), x, folder / f"{kind}.pnc") for kind in range(4)], str(folder / "x.npy")


def start(folder: Path, **order: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PINNACE_GPU_CACHE": str(folder)}
    environment |= order.pop("environment", {})
    command = [sys.executable, "-c", WORKER, json.dumps(order)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[list[str]]:
    try:
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, err
    said: list[list[str]] = json.loads(out)
    return said


def names(folder: Path, end: str = ".cache") -> list[str]:
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(end))


def test_processes_share_a_file(nets: tuple[list[str], str], tmp_path: Path) -> None:
    files, x = nets
    running = [start(tmp_path, nets=files[k:] + files[:k], input=x) for k in (0, 2)]
    for process in running:
        finish(process)
    (name,) = names(tmp_path)
    whole = (tmp_path / name).read_bytes()
    for kernel in (b"softmax_f32\t\n", b"conv_pointwise_f32\t\n", b"pool_f32\t\n"):
        assert kernel in whole, "a self-check that a process passed"
    # It is whole: the next process takes it as it is and finds nothing to add, a damaged one it replaces.
    before = (tmp_path / name).stat().st_ino
    finish(start(tmp_path, nets=files, input=x))
    assert (tmp_path / name).stat().st_ino == before
    (tmp_path / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    finish(start(tmp_path, nets=files, input=x))
    assert names(tmp_path) == [name]
    # Drivers may write the same code in another order: that it is whole again, the next process says.
    before = (tmp_path / name).stat().st_ino
    finish(start(tmp_path, nets=files, input=x))
    assert (tmp_path / name).stat().st_ino == before


def test_no_room_costs_time_only(nets: tuple[list[str], str], tmp_path: Path) -> None:
    files, x = nets
    finish(start(tmp_path, nets=files[:1], input=x, bytes=100))
    assert names(tmp_path) == []
    finish(start(tmp_path, nets=files[:1], input=x))
    (name,) = names(tmp_path)
    whole = (tmp_path / name).read_bytes()
    finish(start(tmp_path, nets=files, input=x, bytes=100))
    assert (tmp_path / name).read_bytes() == whole, "the old file stays"


def test_a_folder_of_another_user(nets: tuple[list[str], str]) -> None:
    # Not below pytest's folder, which every pytest that starts closes to other users.
    with tempfile.TemporaryDirectory() as made:
        open_to_all = Path(made)
        open_to_all.chmod(0o755)
        copies = shutil.copytree(Path(nets[1]).parent, open_to_all / "nets")
        files, x = [str(copies / Path(f).name) for f in nets[0]], str(copies / Path(nets[1]).name)
        shared = open_to_all / "shared"
        shared.mkdir(mode=0o700)
        finish(start(shared, nets=files[:1], input=x))
        (name,) = names(shared)
        whole = (shared / name).read_bytes()
        shared.chmod(0o555)
        try:
            (row,) = finish(start(shared, nets=files, input=x, nobody=True))
        finally:
            shared.chmod(0o755)
        assert names(shared) == [name]
        assert (shared / name).read_bytes() == whole
    if os.geteuid() == 0:
        assert "pipelines are not kept: cannot trust" in row[1]
        assert "it belongs to user 0, not to 65534" in row[1]


def test_a_folder_that_others_can_write(nets: tuple[list[str], str], tmp_path: Path) -> None:
    files, x = nets
    tmp_path.chmod(0o770)
    (row,) = finish(start(tmp_path, nets=files[:1], input=x))
    assert names(tmp_path) == []
    assert "others than its owner can write it (mode 770)" in row[1]


def test_auto_remembers_between_processes(tmp_path: Path) -> None:
    """Software Vulkan, which a switch has treated as a GPU; the file's times decide, whatever they are. What is found
    out about a device that is none is remembered too."""
    torch.manual_seed(1)
    x = torch.randn(1, 8, 104, 104)
    np.save(tmp_path / "x.npy", x.numpy())
    net, folder = saved(Large(), x, tmp_path / "net.pnc"), tmp_path / "cache"
    folder.mkdir(mode=0o700)
    order: dict[str, Any] = {"nets": [net], "input": str(tmp_path / "x.npy"), "target": "auto:fixed"}

    order["environment"] = {"PINNACE_GPU_DEVICE_FILES": net}
    (row,) = finish(start(folder, **order))
    assert row[0] == "cpu"
    assert "vulkan was passed over by auto: its device, " in row[2]
    assert row[2].endswith(" is this processor")
    (none,) = names(folder, ".times")
    assert finish(start(folder, maps=True, **order)) == finish(start(folder, **(order | {"target": "cpu"}), maps=True))
    (folder / none).unlink()

    order["environment"] = {"PINNACE_GPU_OPTIONS": "measure_software"}
    running = [start(folder, **order) for _ in range(2)]
    for process in running:
        (row,) = finish(process)
        said = row[1] if row[0] == "vulkan" else row[2]
        assert " ms " in said
        assert said.endswith(" ms without it")
    (name,) = names(folder, ".times")
    text = (folder / name).read_text()
    # A process that finds the file says the times of the file.
    for _ in range(2):
        (again,) = finish(start(folder, **order))
        device, rest = (int(line.split()[0]) for line in text.splitlines()[-2:])
        assert again[0] == ("vulkan" if device < rest else "cpu")
        said = again[1] if again[0] == "vulkan" else again[2]
        times = [float(word) for word in said.replace(",", " ").split() if word[0].isdigit()]
        np.testing.assert_allclose(times, [device / 1000, rest / 1000], rtol=0.2, atol=0.51)
        assert (folder / name).read_text() == text
    # Of a model that is too small nothing is measured.
    small = torch.randn(1, 8, 14, 18)
    np.save(tmp_path / "small.npy", small.numpy())
    order |= {"nets": [saved(Net(0), small, tmp_path / "small.pnc")], "input": str(tmp_path / "small.npy")}
    (row,) = finish(start(folder, **order))
    assert row == ["cpu", ""]
    assert names(folder, ".times") == [name]


def test_without_a_device_file_auto_opens_no_library(tmp_path: Path) -> None:
    """Vulkan's loader is installed, and a target that names it uses it: only "auto" has no reason to."""
    torch.manual_seed(1)
    x = torch.randn(1, 8, 104, 104)
    np.save(tmp_path / "x.npy", x.numpy())
    net = saved(Large(), x, tmp_path / "net.pnc")

    def opened(target: str, device_files: str) -> list[str]:
        order = {"nets": [net], "input": str(tmp_path / "x.npy"), "target": target, "maps": True}
        environment = {"PINNACE_GPU_DEVICE_FILES": device_files}
        (libraries,) = finish(start(tmp_path / "cache", **order, environment=environment))
        return [name for name in libraries if "vulkan" in name or "LLVM" in name]

    for target in ("auto", "auto:fixed"):
        assert opened(target, f"{tmp_path}/dri/renderD*:{tmp_path}/kgsl-3d0") == []
    assert any("libvulkan.so" in name for name in opened("auto:fixed", f"{tmp_path}/nothing:{net}"))
    assert any("libvulkan.so" in name for name in opened("vulkan", f"{tmp_path}/nothing"))


def test_auto_tries_the_device_beside_the_first_runs(tmp_path: Path) -> None:
    """Software Vulkan again: whether it is the faster one is its own affair, the first answer is the CPU's."""
    torch.manual_seed(1)
    x = torch.randn(1, 8, 104, 104)
    np.save(tmp_path / "x.npy", x.numpy())
    net, folder = saved(Large(), x, tmp_path / "net.pnc"), tmp_path / "cache"
    folder.mkdir(mode=0o700)
    order: dict[str, Any] = {"nets": [net], "input": str(tmp_path / "x.npy"), "target": "auto", "all": True}
    order |= {"seconds": 60, "environment": {"PINNACE_GPU_OPTIONS": "measure_software"}}
    first, *_, last = finish(start(folder, **order))
    assert first[0] == "cpu"
    assert "it is tried beside the first runs" in first[2]
    assert " ms without it" in (last[1] if last[0] == "vulkan" else last[2])
    (name,) = names(folder, ".times")
    device, rest = (int(line.split()[0]) for line in (folder / name).read_text().splitlines()[-2:])
    assert last[0] == ("vulkan" if device < rest else "cpu")
    # The next process knows: either it opens no library, or it changes over without timing anything.
    again = finish(start(folder, **order))
    assert again[0][0] == "cpu"
    assert again[-1][0] == last[0]
    assert len(names(folder, ".times")) == 1


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_a_process_ends_while_a_device_is_tried(tmp_path: Path, seconds: float) -> None:
    torch.manual_seed(1)
    x = torch.randn(1, 8, 104, 104)
    np.save(tmp_path / "x.npy", x.numpy())
    net = saved(Large(), x, tmp_path / "net.pnc")
    order: dict[str, Any] = {"nets": [net], "input": str(tmp_path / "x.npy"), "target": "auto", "at_exit": True}
    environment = {"PINNACE_GPU_OPTIONS": "measure_software"}
    finish(start(tmp_path / "cache", **order, seconds=seconds, environment=environment))
