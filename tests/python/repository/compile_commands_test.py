"""A source of build/release is compiled once, and libraries, tests and the Python extension share its object."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = ROOT / "build/release/compile_commands.json"


def targets_of_sources(commands: Path) -> dict[str, list[str]]:
    """The targets that compile a source, relative to the tree."""
    found = defaultdict(list)
    for entry in json.loads(commands.read_text()):
        words = shlex.split(entry["command"])
        target = re.search(r"CMakeFiles/([\w-]+)\.dir/", words[words.index("-o") + 1])
        assert target, entry["command"]
        found[entry["file"].removeprefix(f"{ROOT}/")].append(target[1])
    return found


def bodies() -> dict[str, set[str]]:
    """The exceptions: files that are compiled once for each instruction set of their BODY line."""
    found = {}
    for lists in (ROOT / "cpp/backends/cpu").glob("*/CMakeLists.txt"):
        for file, sets in re.findall(r"^ *BODY\((\S+) ([^)]*)\)", lists.read_text(), re.M):
            names = {f"cpu_{name}" for name in sets.split() if name != "EXACT"}
            found[f"{lists.parent.relative_to(ROOT)}/{file}"] = names
    return found


def test_a_source_is_compiled_once() -> None:
    if not COMMANDS.exists():
        pytest.skip("needs build/release: make build")
    several = bodies()
    assert several
    for source, targets in targets_of_sources(COMMANDS).items():
        assert len(targets) == len(set(targets)), f"{source}: twice in one of {targets}"
        if source in several:
            assert set(targets) <= several[source], f"{source}: {targets}"
        else:
            assert len(targets) == 1, f"{source} is compiled by {targets}"


def test_every_source_of_the_libraries_is_compiled() -> None:
    if not COMMANDS.exists():
        pytest.skip("needs build/release: make build")
    compiled = set(targets_of_sources(COMMANDS))
    # Those of other processors, and of parts whose tools this machine lacks.
    elsewhere = re.compile(r"_(?:sve|neon\w*)\.cc$|^cpp/backends/(?:gpu|vulkan|metal|softmetal)/")
    sources = {str(p.relative_to(ROOT)) for top in ("cpp", "bindings") for p in (ROOT / top).rglob("*.cc")}
    assert not {path for path in sources - compiled if not elsewhere.search(path)}
