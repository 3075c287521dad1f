"""README's first screen is true: its Python and `make demo` run, its C++ compiles, and the commands it names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run_python(code: str, folder: Path) -> str:
    """What a script that has to succeed prints, in that folder and without this process' environment."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_runs(tmp_path: Path) -> None:
    (code,) = blocks("python")
    said = run_python(code, tmp_path)
    assert "(4, 10)" in said
    assert "cpu: 3 of 3 nodes" in said
    assert "vulkan: 3 of 3 nodes" in said or "vulkan: " not in said
    assert "bf16" in said
    assert "equal within bounds" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "net.pnc").stat().st_size > 576 * 10 * 4


def test_operators_of_ones_own(tmp_path: Path) -> None:
    """The example of docs/using.md, and a program that does not know the operator."""
    page = (ROOT / "docs/using.md").read_text()
    (code,) = re.findall(r"^## Operators of your own\n.*?^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    other = """import pinnace as pn
program = pn.Program.open("limited.pnc")
print(list(program.inputs))
try:
    pn.Session(program)
except pn.Unsupported as error:
    print(error)
"""
    said = [run_python(script, tmp_path) for script in (code, other)]
    assert "runs the application's own code" in said[0]
    assert "['x']" in said[1]
    assert "operator mylib.limit_norm" in said[1]
    assert "is an application's own, which is not registered here" in said[1]


def test_cpp_compiles(tmp_path: Path) -> None:
    (code,) = blocks("cpp")
    includes = "".join(line + "\n" for line in code.splitlines() if line.startswith("#"))
    body = "\n".join(line for line in code.splitlines() if not line.startswith("#"))
    source = tmp_path / "readme.cc"
    before = "int main() {\n  std::vector<pinnace::Tensor> inputs, outputs;\n"
    source.write_text(f"{includes}{before}{body}\n  return status.ok() ? 0 : 1;\n}}\n")
    include = ["-I", str(ROOT / "cpp/include")]
    command = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *include, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.rotating
def test_the_demo_ends_equal() -> None:
    """What `make demo` does once everything is built."""
    prefix = ROOT / "build/install"
    install = ["cmake", "--install", str(ROOT / "build/release"), "--prefix", str(prefix)]
    subprocess.run(install, stdout=subprocess.DEVNULL, timeout=120, check=True)
    demo = [sys.executable, str(ROOT / "examples/demo.py")]
    done = subprocess.run(demo, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal within bounds" in done.stdout


def test_commands_and_files_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", README))
    assert {"demo", "test"} <= named <= targets
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("http") or (ROOT / link).exists(), link
