"""Ten scripts of somebody who had read README and nothing else: they run as they are, and use no name of ours that it
lacks."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pinnace as pn
import pytest
from slices import rotating_slice

ROOT = Path(__file__).resolve().parents[3]
WORDS = set(re.findall(r"\w+", (ROOT / "README.md").read_text()))
SCRIPTS = sorted((Path(__file__).parent / "readme_scripts").glob("*.py"))
# torchvision, which transformers imports, loads beside a CPU build of torch only after that.
RUN = "import runpy, sys, torchvision_ops; runpy.run_path(sys.argv[1], run_name='__main__')"


def ours() -> set[str]:
    """What the package and its classes have."""
    public = {name: getattr(pn, name) for name in pn.__all__}
    return set(public) | {m for c in public.values() if isinstance(c, type) for m in vars(c) if not m.startswith("_")}


def names_used(code: str) -> Iterator[str]:
    """Attributes of the package and its objects, arguments of their calls, commands and their options."""
    known = ours() - {"shape", "dtype", "numpy", "max"}  # torch and numpy have these, too
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and node.attr in known:
            yield node.attr
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            if called.attr in known and ast.unparse(called.value) != "subprocess":
                yield from (k.arg for k in node.keywords if k.arg)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("--"):
            yield node.value.removeprefix("--")


def test_there_are_ten() -> None:
    assert len(SCRIPTS) == 10
    assert {"load", "build", "save", "Session", "Int8"} <= {n for path in SCRIPTS for n in names_used(path.read_text())}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_readme_has_their_names(path: Path) -> None:
    assert set(names_used(path.read_text())) <= WORDS


@pytest.mark.parametrize("path", rotating_slice(SCRIPTS, 0.2, "readme scripts"), ids=lambda path: path.stem)
def test_they_run(path: Path, tmp_path: Path) -> None:
    here = [str(ROOT / "python"), str(ROOT / "tests/models")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(here)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "ok"
