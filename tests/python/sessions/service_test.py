"""Service: what NNAPI's driver is told of it, what back ends say that they leave aside, and wrong members."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core
from pinnace.program import core_of
from pinnace.service import PREFERENCES, PRIORITIES
from torch import nn

# Runs net.pnc on nnapi with a service of argv[1], the arguments as text.
CLIENT = """
import sys
import numpy as np, pinnace as pn
session = pn.Session("net.pnc", target="nnapi", fallback=False, service=pn.Service(**eval(sys.argv[1])))
session.run({"x": np.ones((1, 3, 16, 16), np.float32)})
for row in session.placement:
    print(row.backend, row.notice)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("service")
    program = pn.load(nn.Conv2d(3, 64, 3), (torch.ones(1, 3, 16, 16),)).build(verify=False, input_names=["x"])
    program.save(made / "net.pnc")
    return made


def client(folder: Path, service: dict[str, object], **settings: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PINNACE_NNAPI")}
    root = str(Path(pn.__file__).parent.parent)
    env |= {"PYTHONPATH": root, "PINNACE_NNAPI_LIBRARY": str(pn.nnapi_library_path()), **settings}
    command = [sys.executable, "-c", CLIENT, repr(service)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_the_driver_is_told_what_the_session_wishes(folder: Path, tmp_path: Path) -> None:
    """And not what the environment says, where both do."""
    trace, cache = tmp_path / "trace.txt", tmp_path / "cache"
    other = {"PREFERENCE": "low_power", "PRIORITY": "low", "DEVICE": "none", "CACHE": str(tmp_path / "other")}
    service = {
        "preference": "sustained_speed",
        "priority": "high",
        "deadline": 60,
        "cache_folder": str(cache),
        "device": "pinnace-cpu",
    }
    done = client(
        folder, service, PINNACE_NNAPI_TRACE=str(trace), **{f"PINNACE_NNAPI_{k}": v for k, v in other.items()}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["nnapi"]
    calls = trace.read_text()
    for call, value in (("setPreference", 2), ("setPriority", 110)):
        (line,) = [line for line in calls.splitlines() if f"Compilation_{call}" in line]
        assert f", {value})" in line
    for call in ("Compilation_setTimeout", "Execution_setTimeout"):
        (line, *_) = [line for line in calls.splitlines() if call in line]
        assert ", 60000000000)" in line
    assert list(cache.iterdir())
    assert not (tmp_path / "other").exists()


def test_a_level_says_what_it_cannot_do(folder: Path) -> None:
    wishes = {"preference": "low_power", "priority": "low", "deadline": 1.5, "cache_folder": "cache", "device": "x"}
    first = client(folder, wishes, PINNACE_NNAPI_LEVEL="27")
    assert first.stdout == (
        "nnapi nnapi at feature level 1 has no use of priority, deadline, cache_folder, device\n"
    ), first.stderr
    third = client(folder, wishes | {"device": "pinnace-cpu"}, PINNACE_NNAPI_LEVEL="29")
    assert third.stdout == "nnapi nnapi at feature level 3 has no use of priority, deadline\n", third.stderr


def test_a_device_that_is_not_there(folder: Path) -> None:
    done = client(folder, {"device": "tpu"})
    assert "Unsupported: target 'nnapi' cannot run here: the session's device is tpu, and " in done.stderr
    assert "pinnace-cpu (level 8)" in done.stderr


def test_sessions_keep_it(folder: Path) -> None:
    service = pn.Service(preference="low_power", processors=sorted(os.sched_getaffinity(0))[:1])
    session = pn.Session(folder / "net.pnc", target="cpu", service=service)
    before = os.sched_getaffinity(0)
    x = {"x": np.ones((1, 3, 16, 16), np.float32)}
    want = next(iter(pn.Session(folder / "net.pnc", target="cpu").run(x).values()))
    copy = pickle.loads(pickle.dumps(session))
    for each in (session, copy):
        np.testing.assert_array_equal(next(iter(each.run(x).values())), want)
        assert each.placement[0].notice == ""
    assert os.sched_getaffinity(0) == before
    aside = pn.Session(folder / "net.pnc", target="cpu", service=pn.Service(priority="high", device="npu"))
    assert aside.placement[0].notice == "cpu has no use of priority, device"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"preference": "fast"}, "preference is 'fast', must be one of low_power, fast_single_answer, sustained_speed"),
        ({"priority": "none"}, "priority is 'none', must be one of low, medium, high"),
        ({"deadline": 0}, "deadline is 0.0, must be a number of seconds above 0, or None"),
        ({"deadline": float("nan")}, "deadline is nan"),
        ({"loop_timeout": -1}, "loop_timeout is -1.0"),
        ({"processors": [-1]}, "processor -1 is not one of those"),
        ({"processors": [4096]}, "processor 4096 is not one of those"),
        ({"processors": [0, 0]}, "processor 0 is named twice"),
    ],
)
def test_wrong_members_are_named(wrong: dict[str, object], words: str, folder: Path) -> None:
    if wrong.get("processors") == [0, 0] and 0 not in os.sched_getaffinity(0):
        words = "processor 0 is not one of those"
    with pytest.raises(pn.InvalidArgument, match=words.replace("[", r"\[")):
        pn.Session(folder / "net.pnc", target="cpu", service=pn.Service(**wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ({"preference": "fast"}, pn.InvalidArgument, "preference is 'fast', must be one of low_power, fast_single"),
        ({"priority": "LOW"}, pn.InvalidArgument, "priority is 'LOW', must be one of low, medium, high"),
        ({"deadline": 0}, pn.InvalidArgument, "deadline is 0.0, must be a number of seconds above 0"),
        ({"loop_timeout": float("nan")}, pn.InvalidArgument, "loop_timeout is nan"),
        ({"priority": 3}, TypeError, "priority must be text, is 3"),
        ({"device": None}, TypeError, "device must be text, is None"),
        ({"deadline": "1"}, TypeError, "deadline must be a number of seconds, or None, is '1'"),
        ({"processors": "01"}, TypeError, "processors must be a list of numbers, is '01'"),
        ({"processors": 1}, TypeError, "processors must be a list of numbers, is 1"),
        ({"processors": [0.5]}, TypeError, "processors must be whole numbers"),
        ({"cache_folder": 3}, TypeError, "PathLike"),
    ],
)
def test_a_service_of_wrong_members_is_not_made(wrong: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        pn.Service(**wrong)


def test_services_are_values() -> None:
    assert pn.Service(processors=[0, 1]) == pn.Service(processors=np.array([0, 1]))  # type: ignore[arg-type]
    assert len({pn.Service(processors=[0]), pn.Service(processors=(0,)), pn.Service(priority="low")}) == 2


def test_the_words_are_those_of_the_extension(folder: Path) -> None:
    for preference in PREFERENCES:
        pn.Session(folder / "net.pnc", target="cpu", service=pn.Service(preference=preference))
    for priority in PRIORITIES:
        pn.Session(folder / "net.pnc", target="cpu", service=pn.Service(priority=priority))
    program = core_of(pn.Program.open(folder / "net.pnc"))
    for name, words in (("preference", PREFERENCES), ("priority", PRIORITIES)):
        other: dict[str, Any] = {name: "other"}
        with pytest.raises(pn.InvalidArgument, match=f"must be one of {', '.join(words)}$"):
            _core.Session(program, "cpu", service=_core.Service(**other))
