"""scripts/notices.py: the licences of what a binary contains that others wrote, or a sentence and no file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts_by_name import script

ROOT = Path(__file__).resolve().parents[3]
notices = script("notices")

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="licence texts are those of Debian's packages")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts/notices.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_extension_names_all_that_it_needs(tmp_path: Path) -> None:
    from pinnace import _core

    done = run(tmp_path / "notices.txt", _core.__file__)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "notices.txt").read_text()
    for name in (
        "libflatbuffers",
        "libxxhash",
        "libspdlog",
        "libprotobuf-lite",
        "libzip",
        "libsimdjson",
        "pybind11",
        "onnx",
    ):
        assert f"\n{name}" in text, name
    assert "Apache License" in text


def test_the_device_library_needs_little() -> None:
    library = ROOT / "build/release/libpinnace_runtime.so"
    if not library.exists():
        pytest.skip("build/release has no libpinnace_runtime.so: make build")
    assert notices.shared_libraries(library) == []
    text = notices.notices(library)
    assert "\nlibflatbuffers-dev" in text
    assert "\nlibspdlog" not in text


def test_what_cannot_be_found_is_said_and_nothing_written(tmp_path: Path) -> None:
    out = tmp_path / "notices.txt"
    done = run(out, tmp_path / "nothing.so")
    assert done.returncode == 1
    assert "nothing.so" in done.stderr
    assert not out.exists()
    assert run(out).returncode == 2
    with pytest.raises(notices.Missing, match="is of no Debian package"):
        notices.package_of(out)
    with pytest.raises(notices.Missing, match="package no-such-package is not installed"):
        notices.debian_notice("no-such-package")
    with pytest.raises(notices.Missing, match="no-such-distribution is not installed"):
        notices.distribution_notice("no-such-distribution")
