"""The libraries of a release build on x86-64 have a size that no change may let grow unnoticed.

Bytes without symbols, as packages have them, from Debian 12's compiler: others make other code. ARM64's limits, which
devices need, are in tests/arm64/check_arm64.py.
"""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build/release"
# Kernels of all instruction sets of x86-64 are 3.3 of the 9.9 MB of the runtime.
MOST_BYTES = {
    "libpinnace_runtime.so": 10_000_000,
    "libpinnace.so": 13_800_000,
    "libneuralnetworks.so": 11_000_000,
}


def made_by_gcc_12(library: Path) -> bool:
    """Every compiler that had a part leaves its name in the section .comment: "GCC: (Debian 12.2.0-14) 12.2.0"."""
    done = subprocess.run(["readelf", "-p", ".comment", str(library)], capture_output=True, text=True, check=True)
    compilers = re.findall(r"GCC: \([^)]*\) (\d+)|(clang version)", done.stdout)
    return {major for major, _ in compilers} == {"12"}


@pytest.mark.parametrize("library", MOST_BYTES)
def test_library_is_no_larger(library: str, tmp_path: Path) -> None:
    if platform.machine() != "x86_64" or not made_by_gcc_12(BUILD / library):
        pytest.skip("sizes are those of GCC 12 on x86-64")
    stripped = tmp_path / library
    subprocess.run(["strip", "-o", str(stripped), str(BUILD / library)], check=True)
    size = stripped.stat().st_size
    assert size <= MOST_BYTES[library], f"{library} has {size:,} bytes"
    assert size > MOST_BYTES[library] * 0.95, f"{library} has {size:,} bytes: the limit is to follow"
