"""One version everywhere, and a changelog that begins with it."""

from __future__ import annotations

import ctypes
import re
import tomllib
from pathlib import Path

import pinnace as pn

ROOT = Path(__file__).resolve().parents[3]


def test_one_version() -> None:
    found = re.search(r"project\(pinnace VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())
    assert found
    version = found[1]
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == version
    assert pn.__version__ == version
    library = ROOT / "build/release/libpinnace_runtime.so"
    if library.exists():
        tell = ctypes.CDLL(str(library)).pnc_version
        tell.restype = ctypes.c_char_p
        assert tell().decode() == version
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading
    assert heading[1] == version
    # A release may bring C functions, and none is of a later one.
    releases = re.findall(r"^## (\d+)\.(\d+)$", (ROOT / "tests/data/c_abi.txt").read_text(), re.MULTILINE)
    assert max((int(x), int(y)) for x, y in releases) <= tuple(map(int, version.split(".")[:2]))
