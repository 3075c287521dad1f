"""A copy of the sources with the edits that a how-to page states, and how to compile and link what they touch.

A page's numbered steps are its edits, in one of these forms:

    1. `path/of/new_file.cc`: ...                             followed by a code block: the file
    2. A line `TEXT` in `path`, before|after `ANCHOR`         beside the line that begins with ANCHOR, as far in
    2. A line `TEXT` in `path`, in alphabetical order         among the lines of the same macro
    2. Lines in `path`, before|after `ANCHOR`                 followed by a code block: the lines
    2. In `path`, `OLD` becomes `NEW`

Only what the edits touch is compiled; it is linked, ahead of the archives, with the objects of build/release.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build/release"
SECONDS = 300
COPIED = (
    "cpp",
    "tests/cases",
    "tests/cpp",
    "python",
    "bindings",
    "cmake",
    "CMakeLists.txt",
    "scripts/sanitized.sh",
    "tests/rule_trees.py",
    "tests/rules_test.py",
)

NEW_FILE = re.compile(r"`([\w./]+)`:")
LINE = re.compile(r"A line `([^`]+)` in `([\w./]+)`, (?:(before|after) `([^`]+)`|in alphabetical order)")
LINES = re.compile(r"Lines in `([\w./]+)`, (before|after) `([^`]+)`")
CHANGE = re.compile(r"In `([\w./]+)`, `([^`]+)` becomes `([^`]+)`")
# Targets whose objects are in neither the archives nor the tests.
NOT_LINKED = ("pinnace_runtime", "pinnace", "neuralnetworks", "pinnace_softmetal")


@dataclass(frozen=True)
class Edit:
    """A new file; or lines beside the one that begins with `anchor`, or in alphabetical order where that is empty; or,
    if there is `old`, other text in its place.
    """

    path: str
    text: str
    new: bool = False
    anchor: str = ""
    after: bool = False
    old: str = ""


def code_blocks(text: str) -> list[str]:
    """Contents of the fenced blocks of code, without the indentation of the list item that they stand in."""
    return [
        textwrap.dedent(block) for block in re.findall(r"^ *```(?:cpp|python|cmake)\n(.*?)^ *```$", text, re.M | re.S)
    ]


def edits(page: str) -> list[Edit]:
    """The numbered steps of a page, in order."""
    parts = re.split(r"^(\d+)\. ", page, flags=re.M)[1:]
    numbers, bodies = parts[::2], parts[1::2]
    assert numbers == [str(i + 1) for i in range(len(numbers))], numbers
    found = []
    for body in bodies:
        # The item ends where text is no longer indented.
        first, *others = body.split("\n")
        step = "\n".join([first, *itertools.takewhile(lambda line: not line or line[0] == " ", others)])
        item = re.sub(r"\s*\n\s+", " ", step.split("```")[0])
        if match := NEW_FILE.match(item):
            (content,) = code_blocks(step)
            found.append(Edit(match[1], content, new=True))
        elif match := LINES.match(item):
            (content,) = code_blocks(step)
            found.append(Edit(match[1], content, anchor=match[3], after=match[2] == "after"))
        elif match := CHANGE.match(item):
            found.append(Edit(match[1], match[3], old=match[2]))
        else:
            match = LINE.match(item)
            assert match, f"no edit that can be followed: {item}"
            found.append(Edit(match[2], match[1] + "\n", anchor=match[4] or "", after=match[3] == "after"))
    return found


def edited(content: str, edit: Edit) -> str:
    """A file's content after the edit."""
    if edit.old:
        assert content.count(edit.old) == 1, f"{edit.path}: {content.count(edit.old)} times {edit.old}"
        return content.replace(edit.old, edit.text)
    lines = content.splitlines(keepends=True)
    if edit.anchor:
        places = [i for i, line in enumerate(lines) if line.lstrip().startswith(edit.anchor)]
        assert len(places) == 1, f"{edit.path}: {len(places)} lines begin with {edit.anchor}"
        place = places[0] + edit.after
        indent = lines[places[0]][: -len(lines[places[0]].lstrip())]
    else:
        indent = ""
        macro = edit.text.split("(")[0] + "("
        listed = [(line, i) for i, line in enumerate(lines) if line.startswith(macro)]
        assert listed, f"{edit.path}: no line begins with {macro}"
        place = next((i for line, i in listed if line.lower() > edit.text.lower()), listed[-1][1] + 1)
    return "".join([*lines[:place], textwrap.indent(edit.text, indent), *lines[place:]])


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command's output, whatever its exit status."""
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env={**os.environ, **environment},
    )


def missing() -> str:
    """Why nothing can be built here; empty if it can."""
    if not (BUILD / "pinnace_tests").exists() or not shutil.which("ninja"):
        return "needs the objects of build/release: make build"
    return ""


class Tree:
    """The copy in `folder`, with the edits of `pages` made."""

    def __init__(self, folder: Path, *pages: str) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, ignore=ignored)
            else:
                (folder / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / part, folder / part)
        for page in pages:
            for edit in edits((ROOT / "docs" / page).read_text()):
                self.make(edit)
        self._commands: dict[str, list[list[str]]] = {}

    def make(self, edit: Edit) -> None:
        """Makes one edit."""
        path = self.folder / edit.path
        if edit.new:
            assert not path.exists(), f"{edit.path} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(edit.text)
        else:
            path.write_text(edited(path.read_text(), edit))

    def rules(self) -> subprocess.CompletedProcess[str]:
        """The rules of the tree, on the copy."""
        return run([sys.executable, "tests/rules_test.py"], self.folder)

    @property
    def commands(self) -> dict[str, list[list[str]]]:
        """How build/release compiles each source; several commands for one that is compiled per instruction set."""
        if not self._commands:
            for entry in json.loads((BUILD / "compile_commands.json").read_text()):
                command = shlex.split(entry["command"])
                if "-include" in command:  # precompiled headers, which are those of the tree that was copied
                    at = command.index("-include")
                    del command[at : at + 2]
                # The shared library and others have objects of the same files; those of the archives come first.
                target = re.match(r"(?:\S*/)?CMakeFiles/(\w+)\.dir/", command[command.index("-o") + 1])
                if target and target[1] not in NOT_LINKED:
                    self._commands.setdefault(entry["file"], []).append(command)
        return self._commands

    def compile(self, path: str, like: str = "") -> list[str]:
        """Objects of the file in the copy, with the flags of `like`, a file of its kind that the build knows."""
        made = []
        for number, known in enumerate(self.commands[str(ROOT / (like or path))]):
            made.append(str(self.folder / f"{path.replace('/', '_')}.{number}.o"))
            command = [word.replace(f"{ROOT}/cpp", f"{self.folder}/cpp") for word in known]
            command = [word.replace(f"{ROOT}/tests", f"{self.folder}/tests") for word in command]
            command[command.index("-o") + 1] = made[-1]
            command[command.index("-c") + 1] = str(self.folder / path)
            done = run(command, BUILD)
            assert done.returncode == 0, done.stderr
        return made

    def link(self, target: str, made: str, objects: list[str], *instead_of: str) -> subprocess.CompletedProcess[str]:
        """Links the build's target with these objects ahead of all others, and without the ones they replace."""
        listing = run(["ninja", "-t", "commands", "-s", target], BUILD).stdout.splitlines()
        parts = [shlex.split(part) for part in listing[-1].split(" && ")]
        command = next(part for part in parts if "-o" in part)
        command[command.index("-o") + 1] = made
        command = [word for word in command if not word.endswith(instead_of)] if instead_of else command
        place = command.index("-o")
        return run([*command[:place], *objects, *command[place:]], BUILD)

    def link_extension(self, objects: list[str]) -> None:
        """The Python extension in the copy's package."""
        (built,) = (ROOT / "python/pinnace").glob("_core.*.so")
        linked = self.link(str(built), str(self.folder / "python/pinnace" / built.name), objects)
        assert linked.returncode == 0, linked.stderr

    def python(self, *arguments: str, path: str = "python") -> subprocess.CompletedProcess[str]:
        """Python with the modules of a folder of the copy, its package by default."""
        return run([sys.executable, *arguments], self.folder, PYTHONPATH=str(self.folder / path))

    def passes(self, test: str, count: int) -> None:
        """A Python test of the copy passes, as so many."""
        done = self.python("-m", "pytest", "-q", "-p", "no:cacheprovider", test)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{count} passed" in done.stdout
