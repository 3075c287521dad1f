"""The binary interface of the C functions: what tests/data/c_abi.txt records of pinnace.h stays as it is.

The file has a line for each declaration, in the order of the header, below the release that brought it: "## 0.1".
Functions and enumerators never change; a struct may get members at its end if its first one is `size`, by which a
library sees what its caller knows. What is new in the header is added to the file below the next release.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "cpp/include/pinnace/pinnace.h"
RECORD = ROOT / "tests/data/c_abi.txt"
RUNTIME = ROOT / "build/release/libpinnace_runtime.so"


def declarations(text: str) -> list[str]:
    """Each typedef, function and constant of the C part, on a line."""
    c = text[text.index('extern "C" {') + len('extern "C" {') :]
    c = c[: c.index("#ifdef __cplusplus")]
    c = re.sub(r"/\*.*?\*/", " ", c, flags=re.DOTALL)
    found = [f"#define {name} {value}" for name, value in re.findall(r"^#define (PNC_\w+) (\S+)$", c, re.MULTILINE)]
    c = re.sub(r"^#.*$", "", c, flags=re.MULTILINE).replace("PNC_API", "")
    depth, start = 0, 0
    for at, letter in enumerate(c):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == ";" and depth == 0:
            found.append(" ".join(c[start:at].split()).replace("( ", "(").replace("{ ", "{").replace(" }", "}"))
            start = at + 1
    return found


def recorded() -> dict[str, str]:
    """Declaration -> the release that brought it."""
    release, found = "", {}
    for line in RECORD.read_text().splitlines():
        if line.startswith("## "):
            release = line.removeprefix("## ")
        elif line:
            assert line not in found, f"twice: {line}"
            found[line] = release
    return found


def members(struct: str) -> list[str]:
    return [m.strip() for m in struct[struct.index("{") + 1 : struct.rindex("}")].split(";") if m.strip()]


def name_of(declaration: str) -> str:
    if declaration.startswith("#define"):
        return declaration.split()[1]
    found = re.search(r"\(\*(\w+)\)|^(?!typedef).*?(\w+)\(|(\w+)$", declaration)
    assert found, declaration
    return found[1] or found[2] or found[3]


def is_kept(old: str, new: str) -> bool:
    """Whether callers of the old declaration can be served by a library of the new one."""
    if old == new:
        return True
    kind = old.split("{")[0]
    if "{" not in old or kind != new.split("{")[0]:
        return False
    if kind.startswith("typedef enum"):
        return set(re.findall(r"\w+ = \d+", old)) <= set(re.findall(r"\w+ = \d+", new))
    before, after = members(old), members(new)
    return before[0] == "size_t size" and after[: len(before)] == before


def test_what_was_released_is_kept() -> None:
    now = {name_of(d): d for d in declarations(HEADER.read_text())}
    for old, release in recorded().items():
        new = now.get(name_of(old))
        assert new is not None, f"{name_of(old)} of {release} is gone"
        assert is_kept(old, new), f"{name_of(old)} of {release} was\n  {old}\nand is\n  {new}"


def test_what_is_new_is_recorded() -> None:
    known = {name_of(d) for d in recorded()}
    missing = [d for d in declarations(HEADER.read_text()) if name_of(d) not in known]
    assert missing == [], "add to tests/data/c_abi.txt, below the next release:\n" + "\n".join(missing)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("int pnc_f(int a)", "int pnc_f(int a)", True),
        ("int pnc_f(int a)", "int pnc_f(long a)", False),
        ("typedef enum e {A = 0} e", "typedef enum e {A = 0, B = 1} e", True),
        ("typedef enum e {A = 0} e", "typedef enum e {A = 1} e", False),
        ("typedef struct s {size_t size; int a;} s", "typedef struct s {size_t size; int a; int b;} s", True),
        ("typedef struct s {size_t size; int a;} s", "typedef struct s {size_t size; int b; int a;} s", False),
        ("typedef struct s {int a;} s", "typedef struct s {int a; int b;} s", False),
        ("typedef struct s {size_t size; int a;} s", "typedef struct s {size_t size;} s", False),
    ],
)
def test_the_rule(old: str, new: str, kept: bool) -> None:
    assert is_kept(old, new) == kept


def test_each_function_has_the_version_of_its_release() -> None:
    """The linker's version: a program that needs a function of 0.2 does not start with a library of 0.1."""
    if not RUNTIME.exists():
        pytest.skip("build/release has no libpinnace_runtime.so: make build")
    listing = subprocess.run(["nm", "-D", "--defined-only", RUNTIME], capture_output=True, text=True, check=True).stdout
    exported = dict(re.findall(r" T (pnc_\w+)@@(\S+)$", listing, re.MULTILINE))
    functions = {name_of(d): f"PINNACE_{r}" for d, r in recorded().items() if not d.startswith(("typedef", "#define"))}
    assert exported == functions
    version = re.search(r"project\(pinnace VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert version
    others = set(re.findall(r"@@(\S+)$", listing, re.MULTILINE)) - set(functions.values())
    assert others == {f"PINNACE_CXX_{version[1]}"}, "C++ functions are those of one release"
