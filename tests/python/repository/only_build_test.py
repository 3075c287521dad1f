"""A runtime library for one model (-DPINNACE_ONLY): what the script leaves in its lists, and, where everything is
tested, the library itself, which is built, measured, and run through its C functions.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from slices import all_mode
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
# All levels of x86-64 would be there three times over. MobileNetV2's sizes: docs/performance/start_up_memory_size.md.
MOST_BYTES = 900_000


def small_net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU6(), nn.Conv2d(16, 16, 3, groups=16), nn.Flatten(), nn.Linear(16 * 81, 5)
    ).eval()


X = torch.linspace(-1, 1, 3 * 23 * 23).reshape(1, 3, 23, 23)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("only")
    model = pn.load(small_net(), (X,))
    model.build().save(folder / "plain.pnc")
    model.build(targets=["cpu:sse2"]).save(folder / "packed.pnc")
    pn.load(nn.Softmax(-1), (X,)).build().save(folder / "other.pnc")
    return folder


def lists(folder: Path, *models: str) -> tuple[set[str], set[str], set[str]]:
    """Operators and kernels that are kept, operators that are left out."""
    script: list[Path | str] = [
        sys.executable,
        ROOT / "cmake/only.py",
        ROOT,
        folder / "out",
        *(folder / m for m in models),
    ]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True)
    ops = re.findall(r"^OP\((\w+)\)$", (folder / "out/ops/ops.inc").read_text(), re.M)
    text = (folder / "out/backends/cpu/kernels.inc").read_text()
    kernels = re.findall(r"\((\w+)\), (\w+)\)$", text, re.M)
    assert len(kernels) == len(text.splitlines())
    mask, *left_out = done.stdout.strip().split(";")
    assert int(mask, 16) == 1 | 1 << 10  # f32 and i64
    return set(ops), {f"{symbol}_{isa}" for isa, symbol in kernels}, set(left_out)


def test_lists_hold_what_the_model_uses(files: Path) -> None:
    ops, kernels, out = lists(files, "plain.pnc")
    assert ops == {n.op for n in pn.Program.open(files / "plain.pnc").nodes}
    assert {"conv_f32_avx2", "conv_nhwc_f32_avx512", "conv_nhwc_f32_generic", "gemm_f32_generic"} <= kernels
    assert not any("i8" in k or k.startswith(("softmax", "recurrent")) for k in kernels)
    assert "softmax" in out
    assert not out & ops
    # Two models together.
    both, _, _ = lists(files, "plain.pnc", "other.pnc")
    assert both == ops | {"softmax"}


def test_packed_weights_tell_the_kernels(files: Path) -> None:
    _, kernels, _ = lists(files, "packed.pnc")
    keys = {p.key.split("/")[2] for p in pn.Program.open(files / "packed.pnc").payloads}
    packed = {key.replace("_sse2", "_generic") for key in keys}
    assert {"conv_nhwc_f32_generic", "conv_nhwc_depthwise_f32_generic"} <= packed <= kernels
    assert "conv_f32_generic" not in kernels  # no convolution of this model takes it
    assert all(k.endswith("_generic") for k in kernels)


def test_packed_for_this_machine(files: Path) -> None:
    (cpu,) = (d for d in pn.devices() if d.target == "cpu")
    level = cpu.description.split(", ")[1]
    pn.load(small_net(), (X,)).build(targets=[f"cpu:{level}"]).save(files / "here.pnc")
    _, kernels, _ = lists(files, "here.pnc")
    keys = {p.key.split("/")[2] for p in pn.Program.open(files / "here.pnc").payloads}
    packed = {key.replace("_sse2", "_generic") for key in keys}
    assert packed
    assert packed <= kernels


def test_what_is_no_program_is_refused(files: Path) -> None:
    (files / "text").write_text("not a program")
    done = subprocess.run(
        [sys.executable, ROOT / "cmake/only.py", ROOT, files / "out", files / "text"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "not a .pnc file" in done.stderr


class CTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 32),
    ]


class COptions(ctypes.Structure):
    _fields_ = [
        ("target", ctypes.c_char_p),
        ("precision", ctypes.c_char_p),
        ("threads", ctypes.c_int32),
        ("no_fallback", ctypes.c_int32),
    ]


def c_open(library: Any, path: Path) -> tuple[ctypes.c_void_p, str]:
    program = ctypes.c_void_p()
    status = library.pnc_program_open(os.fsencode(path), ctypes.byref(program))
    return program, library.pnc_error().decode() if status else ""


def built_library(files: Path, build: Path, *options: str) -> Any:
    """The runtime library for packed.pnc alone, built with these options and loaded."""
    commands: list[list[Path | str]] = [
        [
            *("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"),
            *(f"-DPINNACE_ONLY={files / 'packed.pnc'}", f"-DPython_EXECUTABLE={sys.executable}", *options),
        ],
        ["cmake", "--build", build, "--target", "pinnace_runtime", "--parallel", "2"],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    library = ctypes.CDLL(str((build / "libpinnace_runtime.so").resolve()))
    library.pnc_error.restype = ctypes.c_char_p
    return library


def check_runs(library: Any, path: Path, options: COptions) -> None:
    """The small net's answer, by the library's C functions."""
    program, error = c_open(library, path)
    assert not error
    session = ctypes.c_void_p()
    created = library.pnc_session_create(program, ctypes.byref(options), ctypes.byref(session))
    assert created == 0, library.pnc_error()
    x = np.ascontiguousarray(X.numpy())
    y = np.zeros((1, 5), np.float32)
    given = CTensor(x.ctypes.data, x.nbytes, 0, 4, (ctypes.c_int64 * 32)(*x.shape))
    wanted = CTensor(y.ctypes.data, y.nbytes, 0, 2, (ctypes.c_int64 * 32)(*y.shape))
    status = library.pnc_session_run(session, ctypes.byref(given), 1, ctypes.byref(wanted), 1)
    assert status == 0, library.pnc_error()
    expected = small_net()(X).detach().numpy()
    assert_agree(y, expected)
    library.pnc_session_close(session)
    library.pnc_program_close(program)


@pytest.mark.skipif(not all_mode(), reason="PINNACE_TEST_ALL=1 builds the library, which takes minutes")
def test_the_library_runs_its_model_and_refuses_others(files: Path) -> None:
    build = files / "build"
    library = built_library(files, build)
    path = (build / "libpinnace_runtime.so").resolve()
    assert path.stat().st_size < MOST_BYTES
    names = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True, timeout=60)
    functions = [line.split()[-1] for line in names.stdout.splitlines() if line.split()[1] != "A"]  # A: their version
    assert functions
    assert all(re.fullmatch(r"pnc_\w+@@PINNACE_0\.1", name) for name in functions)
    check_runs(library, files / "plain.pnc", COptions(None, None, 0, 0))
    _, error = c_open(library, files / "other.pnc")
    assert "operator softmax" in error
    assert "is not in this build" in error
    shutil.rmtree(build)


@pytest.mark.skipif(not all_mode(), reason="PINNACE_TEST_ALL=1 builds the library, which takes minutes")
def test_the_library_with_the_other_back_ends(files: Path) -> None:
    build = files / "build_all"
    library = built_library(files, build, "-DPINNACE_ONLY_GPU=ON", "-DPINNACE_ONLY_NNAPI=ON")
    check_runs(library, files / "plain.pnc", COptions(b"cpu", None, 0, 1))
    for target in {d.target for d in pn.devices() if d.available} & {"vulkan", "nnapi"}:
        check_runs(library, files / "plain.pnc", COptions(target.encode(), None, 0, 1))
    shutil.rmtree(build)
