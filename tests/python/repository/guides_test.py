"""The guides of docs/ for devices: commands run as they stand there, or say that they were not run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pinnace as pn
import pytest
import torch
from slices import all_mode
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ["android.md", "device_report.md", "ios.md", "raspberry_pi.md"]
NOT_RUN = "# not run"


def commands(page: str) -> list[str]:
    """Lines of the blocks of shell commands, those that go on joined."""
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in re.sub(r"\\\n\s*", "", block).splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a net.onnx, as whoever follows a guide has one."""
    made = tmp_path_factory.mktemp("guide")
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).eval()
    torch.onnx.export(net, (torch.randn(1, 3, 32, 32),), made / "net.onnx", dynamo=True, verbose=False)
    return made


RELEASE = ROOT / "build/release"
CROSS = ROOT / "build/arm64"
EMULATED = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]


def as_run(words: list[str]) -> list[list[str]]:
    """What stands for a command of a guide: this tree's programs, for this processor and, where they are, for ARM64."""
    first, rest = words[0], words[1:]
    if first == "pinnace":
        return [[sys.executable, "-m", *words]]
    if first == "python3":
        return [[sys.executable, *rest]]
    if first == "./pinnace-run":
        cross = CROSS / "pinnace-run"
        there = cross.is_file() and shutil.which(EMULATED[0])
        return [[str(RELEASE / "pinnace-run"), *rest], *([[*EMULATED, str(cross), *rest]] if there else [])]
    assert first == "cmake", f"{shlex.join(words)}: neither run nor marked"
    return [words]


def cannot_run(command: list[str]) -> str:
    """Why a command cannot run here, empty if it can."""
    if command[0] == "cmake":
        if not all_mode():
            return "PINNACE_TEST_ALL=1 builds for other processors"
        return "" if shutil.which("aarch64-linux-gnu-g++") else "there is no compiler for ARM64"
    targets = [command[i + 1] for i, word in enumerate(command) if word == "--target" and command[1] == "run"]
    there = {d.target for d in pn.devices() if d.available}
    return next((f"{t} is not in this build" for t in targets if t.split(":")[0] not in there), "")


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", GUIDES)
def test_commands(page: str, folder: Path) -> None:
    ran = 0
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "PINNACE_CACHE": ""}
    for line in commands(page):
        if NOT_RUN in line:
            continue
        words = shlex.split(line)
        if words[0] == "make":  # its own test builds it
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
            continue
        started = as_run(words)
        if reason := cannot_run(words):
            print(f"{line}: {reason}")
            continue
        where = ROOT if words[0] == "cmake" else folder
        for command in started:
            done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran >= 1


@pytest.mark.parametrize("page", GUIDES)
def test_files_and_presets_that_a_guide_names_are_there(page: str) -> None:
    presets = (ROOT / "CMakePresets.json").read_text()
    for line in commands(page):
        for preset in re.findall(r"cmake --preset (\S+)", line):
            assert f'"name": "{preset}"' in presets, line
        for target in re.findall(r"\bmake (\S+)", line):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        for script in re.findall(r"\bscripts/\S+", line):
            assert (ROOT / script).is_file(), line


def test_calls_that_the_guide_for_ios_shows_are_declared() -> None:
    header = (ROOT / "cpp/include/pinnace/pinnace.h").read_text()
    shown = set(re.findall(r"\bpnc_\w+", (ROOT / "docs/ios.md").read_text()))
    assert len(shown) >= 5
    assert not [name for name in shown if not re.search(rf"\b{name}\b", header)]


@pytest.mark.skipif(not shutil.which("clang-19"), reason="no clang 19")
def test_the_c_functions_are_a_module(tmp_path: Path) -> None:
    """As Swift and Objective-C import it."""
    source = tmp_path / "use.c"
    source.write_text("#pragma clang module import Pinnace\nconst char* version(void) { return pnc_version(); }\n")
    include = ROOT / "cpp/include"
    flags = ["-fmodules", f"-fmodules-cache-path={tmp_path}", f"-fmodule-map-file={include}/module.modulemap"]
    command = ["clang-19", "-fsyntax-only", "-Wall", "-Werror", *flags, f"-I{include}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
