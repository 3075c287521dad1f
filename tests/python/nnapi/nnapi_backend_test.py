"""The NNAPI back end through our own library: zoo models at every feature level, reasons, and missing libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from agreeing import assert_agree
from torch import nn

LEVELS = {1: "nnapi:27", 2: "nnapi:28", 3: "nnapi:29", 4: "nnapi:30", 5: "nnapi:31", 8: "nnapi:fl8"}


@pytest.fixture(scope="module")
def mobilenet() -> tuple[pn.Program, dict[str, np.ndarray], np.ndarray]:
    module, inputs = zoo.build("mobilenet_v2")
    program = pn.load(module, example_inputs=tuple(inputs.values())).build(verify=False)
    want = next(iter(pn.Session(program, target="cpu").run(inputs).values()))
    return program, {k: v.numpy() for k, v in inputs.items()}, np.asarray(want)


@pytest.mark.parametrize("target", LEVELS.values())
def test_mobilenet_runs_whole(target: str, mobilenet: tuple[pn.Program, dict[str, np.ndarray], np.ndarray]) -> None:
    program, inputs, want = mobilenet
    session = pn.Session(program, target=target, fallback=False)
    got = np.asarray(next(iter(session.run(inputs).values())))
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
    assert {row.backend for row in session.placement} == {"nnapi"}
    assert any(row.kernel == "DEPTHWISE_CONV_2D" for row in session.placement)
    again = np.asarray(next(iter(session.run(inputs).values())))
    np.testing.assert_array_equal(again, got)


class Layouts(nn.Module):
    """Channels last and first by turns: a flattened image, a permuted one, sums along channels and rows."""

    def __init__(self, permutes: bool) -> None:
        super().__init__()
        self.permutes = permutes
        self.conv = nn.Conv2d(3, 5, 3)
        self.line = nn.Linear(5 * 6 * 6, 7)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = self.conv(x).relu()
        z = nn.functional.max_pool2d(y, 2, 1)
        moved = z.permute(0, 3, 1, 2) if self.permutes else z
        return self.line(y.flatten(1)), moved + 1, torch.cat([y, self.conv(x)], 1)


@pytest.mark.parametrize("target", LEVELS.values())
def test_layouts_change_inside(target: str) -> None:
    """At feature level 1, which has no TRANSPOSE, between two models."""
    torch.manual_seed(0)
    module, x = Layouts(permutes=target != "nnapi:27").eval(), torch.randn(2, 3, 8, 8)
    program = pn.load(module, (x,)).build(verify=False)
    session = pn.Session(program, target=target, fallback=False)
    with torch.no_grad():
        want = module(x)
    for _ in range(2):
        for got, of in zip(session.run({"x": x}).values(), want, strict=True):
            assert_agree(np.asarray(got), of.numpy())


def test_sizes_that_vary_share_their_weights() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU6(), nn.Conv2d(64, 64, 3, padding=1))
    batch = pn.Dim("batch", 1, 8)
    program = pn.load(net.eval(), (torch.ones(2, 3, 32, 32),), ({0: batch},)).build(verify=False)
    session = pn.Session(program, target="nnapi:29", fallback=False)
    for n in (1, 3, 8, 3):
        x = torch.randn(n, 3, 32, 32)
        with torch.no_grad():
            want = net(x).numpy()
        name = next(iter(session.inputs))
        got = np.asarray(next(iter(session.run({name: x}).values())))
        assert_agree(got, want)
    assert {row.backend for row in session.placement} == {"nnapi"}


def test_threads_share_a_model(mobilenet: tuple[pn.Program, dict[str, np.ndarray], np.ndarray]) -> None:
    program, inputs, want = mobilenet
    sessions = [pn.Session(program, target="nnapi:fl8", fallback=False, threads=1) for _ in range(3)]
    runs = [session.run_async(inputs) for session in sessions for _ in range(1)]
    for run in runs:
        got = np.asarray(next(iter(run.result().values())))
        assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


def test_check_says_why_and_what_instead() -> None:
    model = pn.load(nn.Sequential(nn.Hardswish(), nn.Softplus()), (torch.ones(2, 3),))
    swish, plus = model.check(targets=["nnapi:28"]).nodes
    assert swish.supported
    assert swish.rewrite == "hard_swish by add, relu6, mul"
    assert not plus.supported
    assert plus.rule.startswith("N-2: ")
    assert "needs feature level 3, here are 2" in plus.value
    assert model.check(targets=["nnapi:29"]).ok


def test_targets_are_feature_levels() -> None:
    model = pn.load(nn.ReLU(), (torch.ones(1, 3, 4, 4),))
    assert model.check(targets=["nnapi:27", "nnapi:fl8"]).ok
    for bad in ("nnapi:26", "nnapi:fl9", "nnapi:fast"):
        with pytest.raises(pn.InvalidArgument, match="27 to 31 or fl1 to fl8"):
            model.check(targets=[bad])


def run_python(code: str, **environment: str) -> str:
    """What `code` prints, in a process of its own."""
    root = Path(pn.__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": str(root), **environment}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout


ONE_RELU = """
import numpy as np, pinnace as pn, torch
model = pn.load(torch.nn.ReLU(), (torch.ones(1, 3, 4, 4),))
print(model.check(targets=["nnapi:27"]).ok)
try:
    session = pn.Session(model.build(verify=False), target="nnapi:27", fallback=False)
    print(session.run({session_input: np.ones((1, 3, 4, 4), np.float32) for session_input in session.inputs}))
except pn.Unsupported as error:
    print(error)
"""


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    """Questions need no library; a session does, and says which path it tried."""
    missing = tmp_path / "nowhere.so"
    said = run_python(ONE_RELU, PINNACE_NNAPI_LIBRARY=str(missing))
    assert said.startswith("True\n")
    assert "no NNAPI library, tried" in said
    assert str(missing) in said


def test_a_library_that_is_none_is_named() -> None:
    said = run_python(ONE_RELU, PINNACE_NNAPI_LIBRARY="libm.so.6")
    assert "libm.so.6 is no NNAPI library: it lacks functions of feature level 1" in said
