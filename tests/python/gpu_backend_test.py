"""The Vulkan back end from Python: whole networks with fallback off, placement, profiles, threads, lost devices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from torch import nn


def vulkan_problem() -> str:
    """Empty, or why there is no Vulkan here: as `devices` says it."""
    try:
        pn.Session(pn.load(nn.ReLU(), (torch.ones(1),)).build(verify=False), target="vulkan")
    except pn.Unsupported as error:
        return str(error)
    return ""


PROBLEM = vulkan_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)


@pytest.fixture(params=["", "staging,offset_alignment=256,unknown_subgroup,max_invocations=128"])
def options(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device as it is, and made to look like a lesser one."""
    os.environ["PINNACE_GPU_OPTIONS"] = request.param
    yield request.param
    del os.environ["PINNACE_GPU_OPTIONS"]


class Slice(nn.Module):
    """A convolution, an activation, a pool, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 3, padding=1)
        self.line = nn.Linear(10 * 5 * 6, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.line(nn.functional.max_pool2d(self.conv(x).relu(), 2).flatten(1))
        return made


def close(got: np.ndarray, want: np.ndarray, part: float) -> None:
    assert np.abs(np.asarray(got) - np.asarray(want)).max() <= part * np.abs(want).max()


def test_slice_through_a_file(options: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    pn.load(module, (x,)).build(verify=False).save(tmp_path / "net.pnc")
    with torch.no_grad():
        want = module(x).numpy()
    for precision, part in (("fp32", 1e-4), ("fp16", 1e-2)):
        session = pn.Session(tmp_path / "net.pnc", target="vulkan", precision=precision, fallback=False)
        for _ in range(2):
            close(next(iter(session.run({"x": x}).values())), want, part)
        assert {row.backend for row in session.placement} == {"vulkan"}
        assert any(row.kernel == f"conv_image_f{precision[2:]}" for row in session.placement)


# What 16 bits between layers may cost, of the largest output: with the zoo's random weights MobileNetV2 loses most.
HALF = {"mobilenet_v2": 8e-2, "efficientnet_b0": 8e-2}


@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v2", "resnet18", "efficientnet_b0"])
def test_networks_run_whole(name: str) -> None:
    module, inputs = zoo.build(name)
    program = pn.load(module, example_inputs=tuple(inputs.values())).build(verify=False)
    want = next(iter(pn.Session(program, target="cpu").run(inputs).values()))
    for precision, part in (("fp32", 1e-3), ("fp16", HALF.get(name, 2e-2))):
        session = pn.Session(program, target="vulkan", precision=precision, fallback=False)
        got = np.asarray(next(iter(session.run(inputs).values())))
        close(got, np.asarray(want), part)
        np.testing.assert_array_equal(np.asarray(next(iter(session.run(inputs).values()))), got)
        assert {row.backend for row in session.placement} == {"vulkan"}


def test_sizes_that_vary_share_their_weights() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Hardswish(), nn.Conv2d(8, 6, 1)).eval()
    program = pn.load(net, (torch.ones(2, 3, 9, 9),), ({0: pn.Dim("batch", 1, 8)},)).build(verify=False)
    session = pn.Session(program, target="vulkan", fallback=False)
    name = next(iter(session.inputs))
    for n in (1, 3, 8, 3):
        x = torch.randn(n, 3, 9, 9)
        with torch.no_grad():
            close(next(iter(session.run({name: x}).values())), net(x).numpy(), 1e-5)


def test_threads_share_a_program() -> None:
    torch.manual_seed(0)
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    program = pn.load(module, (x,)).build(verify=False)
    sessions = [pn.Session(program, target="vulkan", fallback=False) for _ in range(4)]
    with torch.no_grad():
        want = module(x).numpy()
    for _ in range(5):
        for run in [session.run_async({"x": x}) for session in sessions]:
            close(next(iter(run.result().values())), want, 1e-5)


def test_profile_has_every_dispatch() -> None:
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    session = pn.Session(pn.load(module, (x,)).build(verify=False), target="vulkan", fallback=False)
    kernels = [event.kernel for event in session.profile({"x": x}).events]
    assert "pool_f32" in kernels
    assert "gemm_packed_f32" in kernels


def test_what_it_does_not_take_stays_on_the_cpu() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sort(x.relu(), dim=-1)[0].exp()

    x = torch.randn(3, 7)
    program = pn.load(Net(), (x,)).build(verify=False)
    session = pn.Session(program, target="vulkan,cpu")
    close(next(iter(session.run({"x": x}).values())), Net()(x).numpy(), 1e-5)
    assert {row.backend for row in session.placement} >= {"vulkan", "cpu"}
    assert any("(rule V-" in why for row in session.placement for why in row.why)
    with pytest.raises(pn.Unsupported, match="fallback is off"):
        pn.Session(program, target="vulkan", fallback=False)


def test_a_lost_device_costs_time_only() -> None:
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    program = pn.load(module, (x,)).build(verify=False)
    with torch.no_grad():
        want = module(x).numpy()
    os.environ["PINNACE_GPU_OPTIONS"] = "no_self_check,fail_submit=2"
    try:
        session = pn.Session(program, target="vulkan")
        for _ in range(3):
            close(next(iter(session.run({"x": x}).values())), want, 1e-5)
        assert {row.backend for row in session.placement} == {"cpu"}
        assert any("(rule P-2)" in why for row in session.placement for why in row.why)
        alone = pn.Session(program, target="vulkan", fallback=False)
        alone.run({"x": x})
        with pytest.raises(pn.DeviceLost):
            alone.run({"x": x})
    finally:
        del os.environ["PINNACE_GPU_OPTIONS"]


def test_a_machine_without_vulkan_says_so() -> None:
    """No driver: the loader is told of one that is not there."""
    code = (
        "import pinnace as pn, torch; model = pn.load(torch.nn.ReLU(), (torch.ones(1),));"
        "pn.Session(model.build(verify=False), target='vulkan')"
    )
    gone = {**os.environ, "VK_ICD_FILENAMES": "/nonexistent.json", "VK_DRIVER_FILES": "/nonexistent.json"}
    done = subprocess.run([sys.executable, "-c", code], env=gone, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "target 'vulkan' cannot run here: no Vulkan" in done.stderr


def test_targets_are_devices() -> None:
    model = pn.load(nn.ReLU(), (torch.ones(1, 3, 4, 4),))
    assert model.check(targets=["vulkan", "vulkan:1"]).ok
    with pytest.raises(pn.InvalidArgument, match="is no number of a device"):
        model.check(targets=["vulkan:fast"])
    with pytest.raises(pn.Unsupported, match="there is no device 99"):
        pn.Session(model.build(verify=False), target="vulkan:99")
