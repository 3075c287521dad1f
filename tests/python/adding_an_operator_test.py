"""docs/adding_an_operator.md makes three edits: made in a copy of the tree, exactly as they stand there, they suffice.

Only what the edits touch is compiled; it is linked, ahead of the archives, with the objects of build/release.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
DOC = (ROOT / "docs/adding_an_operator.md").read_text()
TORCH_TABLE = "cpp/import/torch/activations.cc"
SECONDS = 300


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env={**os.environ, **environment},
    )


def edits() -> tuple[dict[str, str], str, list[str]]:
    """What the page says: new files by path, the line of the list, the lines for the importers of ONNX and PyTorch."""
    assert re.findall(r"^(\d+)\. ", DOC, re.M) == ["1", "2", "3"]
    blocks = [textwrap.dedent(block) for block in re.findall(r"^ *```cpp\n(.*?)^ *```$", DOC, re.M | re.S)]
    assert len(blocks) == 4
    paths = re.findall(r"^[13]\. `([^`]+)`", DOC, re.M)
    line = re.search(r"^2\. A line `([^`]+)` in `cpp/ops/ops.inc`", DOC, re.M)
    assert line
    return dict(zip(paths, blocks[:2], strict=True)), line[1], blocks[2:]


class Tree:
    """A copy of the sources with the page's edits, and how to compile and link what they touch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in ("cpp", "tests/cases", "python"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        files, line, mappings = edits()
        for path, content in files.items():
            assert not (folder / path).exists()
            (folder / path).write_text(content)
        self.insert("cpp/ops/ops.inc", line + "\n", before="OP(unique)")
        self.insert("cpp/import/onnx/mappings.inc", mappings[0], before="MAP(Unique")
        self.insert(TORCH_TABLE, mappings[1], before="};\nstatic_assert(sorted(kMappings));")
        self.commands: dict[str, list[str]] = {}
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            command = shlex.split(entry["command"])
            # The shared library and others have objects of the same files; those of the archives come first.
            if re.match(
                r"CMakeFiles/(runtime_objects|host_objects|pinnace_tests)\.dir/", command[command.index("-o") + 1]
            ):
                self.commands[entry["file"]] = command

    def insert(self, path: str, line: str, before: str) -> None:
        content = (self.folder / path).read_text()
        assert content.count(before) == 1
        (self.folder / path).write_text(content.replace(before, line + before))

    def compile(self, path: str, like: str = "") -> str:
        """An object of the file in the copy, with the flags of `like`, a file of its kind that the build knows."""
        known = str(ROOT / (like or path))
        made = str(self.folder / (path.replace("/", "_") + ".o"))
        command = [word.replace(f"{ROOT}/cpp", f"{self.folder}/cpp") for word in self.commands[known]]
        command = [word.replace(f"{ROOT}/tests", f"{self.folder}/tests") for word in command]
        command[command.index("-o") + 1] = made
        command[command.index("-c") + 1] = str(self.folder / path)
        done = run(command, BUILD)
        assert done.returncode == 0, done.stderr
        return made

    def link(
        self, target: str, made: str, objects: list[str], instead_of: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Links the build's target with these objects ahead of all others, and without the one they replace."""
        listing = run(["ninja", "-t", "commands", "-s", target], BUILD).stdout.splitlines()
        parts = [shlex.split(part) for part in listing[-1].split(" && ")]
        command = next(part for part in parts if "-o" in part)
        command[command.index("-o") + 1] = made
        command = [word for word in command if not (instead_of and word.endswith(instead_of))]
        place = command.index("-o")
        return run([*command[:place], *objects, *command[place:]], BUILD)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    if not (BUILD / "pinnace_tests").exists() or not shutil.which("ninja"):
        pytest.skip("needs the objects of build/release: make build")
    return Tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def objects(tree: Tree) -> list[str]:
    """The operator, and the file that reads the list."""
    return [tree.compile("cpp/ops/twice.cc", like="cpp/ops/relu.cc"), tree.compile("cpp/ops/op.cc")]


@pytest.fixture(scope="module")
def lists_of_cases(tree: Tree) -> str:
    return tree.compile("tests/cases/run_case.cc")


def test_parity_and_bad_nodes(tree: Tree, objects: list[str], lists_of_cases: str) -> None:
    program = tree.folder / "pinnace_tests"
    replaced = "tests/cases/run_case.cc.o"
    without_cases = tree.link("pinnace_tests", str(program), [*objects, lists_of_cases], replaced)
    assert without_cases.returncode != 0
    assert "twice_cases" in without_cases.stderr

    cases = tree.compile("tests/cases/twice.cc", like="tests/cases/relu.cc")
    linked = tree.link("pinnace_tests", str(program), [*objects, lists_of_cases, cases], replaced)
    assert linked.returncode == 0, linked.stderr
    done = run([str(program), "--gtest_filter=*/twice:Operators.*", "--gtest_color=no"], tree.folder)
    assert done.returncode == 0, done.stdout
    ran = set(re.findall(r"^\[       OK \] (\S+)", done.stdout, re.M))
    assert {"Operators/Parity.Reference/twice", "Operators.AreSortedByName"} <= ran


USES = """
import sys
import numpy as np
import onnx
import pinnace as pn
import torch
from onnx import TensorProto, helper

assert "twice" in [op["name"] for op in pn._core.operators()]
x = np.array([1.5, np.nan, -0.0], np.float32)

def check(path):
    program = pn.load(path).build(verify=False)
    program.save("twice.pnc")
    assert [node.op for node in pn.Program.open("twice.pnc").nodes] == ["twice"]
    (y,) = pn.Session("twice.pnc").run({"x": x}).values()
    np.testing.assert_array_equal(y, [3, np.nan, 0])
    assert np.signbit(y[2])

values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Twice", ["x"], ["y"])], "g", values[:1], values[1:])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), "twice.onnx")
check("twice.onnx")

@torch.library.custom_op("toy::twice", mutates_args=())
def twice(self: torch.Tensor) -> torch.Tensor:
    return self * 2

@twice.register_fake
def _(self):
    return torch.empty_like(self)

class Twice(torch.nn.Module):
    def forward(self, x):
        return torch.ops.toy.twice(x)

torch.export.save(torch.export.export(Twice(), (torch.zeros(3),)), "twice.pt2")
check("twice.pt2")
print("checked")
"""


def test_importers_files_and_sessions(tree: Tree, objects: list[str]) -> None:
    (built,) = (ROOT / "python/pinnace").glob("_core.*.so")
    extension = tree.folder / "python/pinnace" / built.name
    importers = [tree.compile("cpp/import/onnx/mapping.cc"), tree.compile(TORCH_TABLE)]
    linked = tree.link(str(built), str(extension), [*objects, *importers])
    assert linked.returncode == 0, linked.stderr
    done = run([sys.executable, "-c", USES], tree.folder, PYTHONPATH=str(tree.folder / "python"))
    assert done.stdout.strip() == "checked", done.stderr
