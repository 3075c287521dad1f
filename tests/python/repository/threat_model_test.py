"""docs/threat_model.md: each statement of its tables names a place in the code and tests; all of them are there, and
continuous integration requires the tests (scripts/required_tests.toml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import required_tests

ROOT = Path(__file__).resolve().parents[3]
PAGE = "docs/threat_model.md"
HEADER = ["Statement", "Where", "Test"]
CPP_TEST = re.compile(r"([A-Z]\w*)\.([A-Z]\w*)")
PYTHON_TEST = re.compile(r"((?:\w+/)*\w+\.py)::(test_\w+)")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")


def rows(page: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of the tables of statements."""
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells == HEADER:
            inside = True
        elif not cells:
            inside = False
        elif inside and set(line) - set("|-: "):
            yield number, cells


@cache
def cpp_tests(root: Path) -> frozenset[tuple[str, str]]:
    sources = "\n".join(path.read_text() for path in sorted((root / "tests").rglob("*.cc")))
    return frozenset(re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", sources))


def known(root: Path, name: str) -> bool:
    """Whether a test of that name is there: Suite.Name, file.py::test_name, or a file of tests/ (a fuzz target)."""
    if match := CPP_TEST.fullmatch(name):
        return (match[1], match[2]) in cpp_tests(root)
    if match := PYTHON_TEST.fullmatch(name):
        definition = re.compile(rf"^def {match[2]}\(", re.MULTILINE)
        return any(definition.search(path.read_text()) for path in (root / "tests").rglob(match[1]))
    return name.startswith("tests/") and (root / name).exists()


@cache
def required_patterns(root: Path) -> tuple[str, ...]:
    """Those of the release build, without what GoogleTest and pytest add for parameters: Suite.Name, file::test."""
    table = required_tests.read_table(root / "scripts" / required_tests.TABLE.name)
    patterns = []
    for entry in table["required"]:
        if "release" not in entry.get("builds", ["release"]):
            continue
        for pattern in entry["tests"]:
            kind, name = pattern.split(":", 1)
            if kind == "cpp":
                suite, _, test = name.partition(".")
                patterns.append(f"{suite.rpartition('/')[2]}.{test.split('/')[0]}")
            else:
                patterns.append(name.split("[[]")[0])
    return tuple(patterns)


def required(root: Path, name: str) -> bool:
    """Whether continuous integration requires the test, or one beside it; fuzz targets have a turn of their own."""
    if name.startswith("tests/"):
        return True
    if match := PYTHON_TEST.fullmatch(name):
        name = f"{Path(match[1]).stem}::{match[2]}"
    return any(fnmatchcase(name, pattern) for pattern in required_patterns(root))


def violations(root: Path) -> Iterator[str]:
    for number, cells in rows((root / PAGE).read_text()):
        where = f"{PAGE}:{number}"
        if len(cells) != len(HEADER):
            yield f"{where}: {len(cells)} columns, must be {len(HEADER)}"
            continue
        for column, names in zip(HEADER[1:], [re.findall(r"`([^`]+)`", cell) for cell in cells[1:]], strict=True):
            if not names:
                yield f"{where}: names nothing under {column}"
            for name in names:
                found = known(root, name) if column == "Test" else FILE.fullmatch(name) and (root / name).exists()
                if not found:
                    yield f"{where}: there is no {name}"
                elif column == "Test" and not required(root, name):
                    yield f"{where}: {name} is not in scripts/{required_tests.TABLE.name}"


def test_every_statement_has_its_test() -> None:
    wrong = list(violations(ROOT))
    assert not wrong, "\n" + "\n".join(wrong)
    assert len(list(rows((ROOT / PAGE).read_text()))) > 40


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("| A. | `cpp/a.cc` | `Suite.Name`, `a_test.py::test_a` |", ""),
        ("| A. | `cpp/a.cc` | `tests/fuzz/a.cc` |", ""),
        ("| A. | `cpp/a.cc` | `Free.Name` |", "Free.Name is not in scripts/required_tests.toml"),
        ("| A. | `cpp/a.cc` | `a_test.py::test_free` |", "a_test.py::test_free is not in scripts/required_tests.toml"),
        ("| A. | `cpp/a.cc` | `Suite.Other` |", "there is no Suite.Other"),
        ("| A. | `cpp/a.cc` | `a_test.py::test_b` |", "there is no a_test.py::test_b"),
        ("| A. | `cpp/a.cc` | `b_test.py::test_a` |", "there is no b_test.py::test_a"),
        ("| A. | `cpp/b.cc` | `Suite.Name` |", "there is no cpp/b.cc"),
        ("| A. | `cpp/a.cc` | none yet |", "names nothing under Test"),
        ("| A. | everywhere | `Suite.Name` |", "names nothing under Where"),
        ("| A. | `cpp/a.cc` |", "2 columns, must be 3"),
    ],
)
def test_the_check_sees(row: str, says: str, tmp_path: Path) -> None:
    content = {
        PAGE: f"# A\n\n| Trusted | Why |\n|---|---|\n| B | c |\n\n| Statement | Where | Test |\n|---|---|---|\n{row}\n",
        "cpp/a.cc": "",
        "tests/cpp/a_test.cc": "TEST_P(Suite, Name) {}\nTEST(Free, Name) {}\n",
        "tests/fuzz/a.cc": "",
        "tests/python/a_test.py": "def test_a() -> None: ...\ndef test_free() -> None: ...\n",
        "scripts/required_tests.toml": """
[[required]]
name = "a"
tests = ["cpp:All/Suite.*/cpu", "python:a_test::test_a[[]x[]]"]
[[required]]
name = "elsewhere"
tests = ["cpp:Free.*"]
builds = ["asan"]
""",
    }
    for name, text in content.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    wrong = list(violations(tmp_path))
    assert [says in sentence for sentence in wrong] == ([True] if says else []), wrong
