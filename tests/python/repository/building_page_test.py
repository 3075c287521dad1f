"""docs/building.md names every option, preset, library and make target there is, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/building.md").read_text()
# Libraries that are steps of the build, and those of tests.
INNER_TARGETS = {"build_commit", "pinnace_host_static", "softmetal_test_kernels", "gpu_mutant_kernels"}


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables below a heading, without the tables' heads."""
    section = re.split(r"^## ", PAGE.split(f"\n## {heading}\n")[1], flags=re.M)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = [i for i, row in enumerate(cells) if set(row[0]) == {"-"}]
    return [row for i, row in enumerate(cells) if i not in rules and i + 1 not in rules]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def cmake() -> str:
    parts = [sorted((ROOT / part).rglob("CMakeLists.txt")) for part in ("cpp", "java", "bindings", "bench", "tests")]
    lists = [ROOT / "CMakeLists.txt", *sorted((ROOT / "cmake").glob("*.cmake")), *(path for p in parts for path in p)]
    return "\n".join(path.read_text() for path in lists if path.parent != ROOT / "tests/installed")


def test_options() -> None:
    found = dict(re.findall(r'^\s*option\((\w+) "[^"]*" (\w+)\)', cmake(), re.M))
    found |= dict(re.findall(r'^\s*set\((\w+) "([^"]*)"\s+CACHE (?!FILEPATH|INTERNAL)', cmake(), re.M))
    stated = {named(row[0])[0]: row[1] for row in rows("Options")}
    assert set(stated) == {name for name in found if name.startswith("PINNACE_")}
    for name, default in stated.items():
        if default == "empty":
            assert found[name] == "", name
        else:
            assert found[name].endswith(default.strip("`")), name


def test_presets() -> None:
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    assert [named(row[0])[0] for row in rows("Presets")] == [p["name"] for p in presets if not p.get("hidden")]


def test_targets() -> None:
    made = set(
        re.findall(r"^\s*(?:add_library|add_executable|pybind11_add_module)\((\w[\w-]*)(?! OBJECT)[ )]", cmake(), re.M)
    )
    made |= set(re.findall(r"^\s*pinnace_softmetal_library\((\w+) \d", cmake(), re.M)) | {"fuzz_targets"}
    stated = {named(row[0])[0] for row in rows("What each target gives") if not row[0].startswith("`make")}
    assert stated == made - INNER_TARGETS - {"fuzz_shared"}


def test_make_targets() -> None:
    stated = {name.removeprefix("make ") for row in rows("What each target gives") for name in named(row[0])}
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)) | {"fuzz-build", "clean"}
    assert targets - {"help"} == {name for name in stated if name in targets}
