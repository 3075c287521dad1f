"""The how-to pages (docs/adding_*.md): their steps, made in a copy of the tree exactly as they stand there, suffice.

Every run makes the edits of all pages in one copy and holds it to the rules of the tree; one page, another with each
seed, is also compiled, linked and tried (all of them with PINNACE_TEST_ALL=1).
"""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import how_to_tree
import pytest
from how_to_tree import ROOT, Tree
from slices import rotating_slice

TORCH_TABLE = "cpp/import/torch/mappings/activations.cc"

USES_TWICE = """
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


LIST_OF_CASES = "cases/run_case.cc.o"
SHADERS = """
import struct, sys
from pathlib import Path
import shaders

folder, cache = Path("cpp/backends/gpu"), Path("cache")
cache.mkdir()
variant = next(v for v in shaders.variants(folder) if v.name == "elementwise_f32")
code = next(d.partition("=")[2] for d in variant.defines if d.startswith("FN_elliott="))
spirv = shaders.compile_variant(folder, cache, variant, "key", ("glslc", "spirv-opt", "spirv-val"))
manifest = shaders.reflect(struct.unpack(f"<{len(spirv) // 4}I", spirv))
text = shaders.SpirvCross(sys.argv[1]).msl(spirv, variant.name, manifest.bindings, manifest.push_bytes > 0)
assert f"case {code}:" in text
print("checked")
"""
ASKS_FOR_THE_SET = """
#include <cstdio>
#include "base/cpu_features.h"

int main() {
  using namespace pinnace;
  Cpu set;
  if (!cpu_isa_from_name("avx512_vbmi", &set) || set != Cpu::avx512_vbmi) return 1;
  if (kernel_isa_name(set) != "avx512_vbmi" || !(Cpu::avx512_bf16 < set && set < Cpu::neon_dotprod)) return 2;
  if (cpu_runs(set) && cpu_isa() < set) return 3;  // a processor with AMX is beyond it
  std::puts(cpu_runs(set) ? "runs here" : "known");
}
"""


def passed(tree: Tree, program: Path, pattern: str) -> set[str]:
    """The C++ tests of that pattern, all of which have to pass."""
    done = how_to_tree.run([str(program), f"--gtest_filter={pattern}", "--gtest_color=no"], tree.folder)
    assert done.returncode == 0, done.stdout
    return set(re.findall(r"^\[       OK \] ([^\s,]+)", done.stdout, re.M))


def linked_tests(tree: Tree, objects: list[str], *instead_of: str) -> Path:
    """The C++ tests with these objects."""
    program = tree.folder / "pinnace_tests"
    done = tree.link("pinnace_tests", str(program), objects, *instead_of)
    assert done.returncode == 0, done.stderr
    return program


def follow_an_operator(tree: Tree) -> None:
    objects = [*tree.compile("cpp/ops/twice.cc", like="cpp/ops/relu.cc"), *tree.compile("cpp/ops/op.cc")]
    lists = tree.compile("tests/cases/run_case.cc")
    without_cases = tree.link("pinnace_tests", str(tree.folder / "none"), [*objects, *lists], LIST_OF_CASES)
    assert without_cases.returncode != 0
    assert "twice_cases" in without_cases.stderr

    cases = tree.compile("tests/cases/twice.cc", like="tests/cases/relu.cc")
    program = linked_tests(tree, [*objects, *lists, *cases], LIST_OF_CASES)
    ran = passed(tree, program, "*/twice:Operators.*")
    assert {"Operators/Parity.Reference/twice", "Operators.AreSortedByName"} <= ran

    tree.link_extension([*objects, *tree.compile("cpp/import/onnx/mapping.cc"), *tree.compile(TORCH_TABLE)])
    done = tree.python("-c", USES_TWICE)
    assert done.stdout.strip() == "checked", done.stderr


def follow_a_unary_function(tree: Tree) -> None:
    changed = [
        *("cpp/ops/op.cc", "cpp/ops/unary.cc", "cpp/backends/cpu/dispatch.cc"),
        *("cpp/backends/cpu/unary/unary_f32.body.cc", "tests/cases/run_case.cc", "tests/cpp/cpu/unary_test.cc"),
    ]
    objects = [made for path in changed for made in tree.compile(path)]
    objects += tree.compile("cpp/ops/elliott.cc", like="cpp/ops/mish.cc")
    objects += tree.compile("tests/cases/elliott.cc", like="tests/cases/relu.cc")
    program = linked_tests(tree, objects, LIST_OF_CASES, "cpp/cpu/unary_test.cc.o")
    ran = passed(tree, program, "*/elliott:*KernelLine*elliott*:Unary*:Operators.*")
    assert {"Operators/Parity.Reference/elliott", "UnaryKernel.EveryRowAgreesWithItsReference"} <= ran
    lines = {name.rsplit("/", 1)[1] for name in ran if "KernelLine" in name}
    assert {"elliott_f32_unary_f32_generic", "elliott_f32_unary_nhwc_f32_generic"} <= lines

    cache = (how_to_tree.BUILD / "CMakeCache.txt").read_text()
    library = re.search(r"^PINNACE_SPIRV_CROSS:\w+=(.+)$", cache, re.M)
    if library and not library[1].endswith("NOTFOUND") and shutil.which("glslc"):
        done = tree.python("-c", SHADERS, library[1], path="cmake")
        assert done.stdout.strip() == "checked", done.stderr


def follow_a_kernel(tree: Tree) -> None:
    folder = "cpp/backends/cpu/softmax"
    objects = [
        *tree.compile("cpp/backends/cpu/dispatch.cc"),
        *tree.compile(f"{folder}/hardmax_f32.cc", like=f"{folder}/softmax_f32.cc"),
        *tree.compile(f"{folder}/hardmax_f32.body.cc", like=f"{folder}/softmax_f32.body.cc"),
    ]
    ran = passed(tree, linked_tests(tree, objects), "*KernelLine*hardmax*")
    assert {name.rsplit("/", 1)[1] for name in ran} >= {"hardmax_f32_hardmax_f32_generic"}


def follow_an_instruction_set(tree: Tree) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("the page's instruction set is of x86-64")
    build = tree.folder / "build"
    off = [f"-DPINNACE_{part}=OFF" for part in ("HOST", "PYTHON", "TESTS", "TOOLS", "GPU")]
    made = how_to_tree.run(["cmake", "-S", str(tree.folder), "-B", str(build), "-G", "Ninja", *off], tree.folder)
    assert made.returncode == 0, made.stderr
    done = how_to_tree.run(["cmake", "--build", str(build), "--target", "cpu_avx512_vbmi"], tree.folder)
    assert done.returncode == 0, done.stdout
    assert list(build.glob("**/softmax_f32.body.cc.o"))

    source, program = tree.folder / "asks.cc", tree.folder / "asks"
    source.write_text(ASKS_FOR_THE_SET)
    features = tree.compile("cpp/base/cpu_features.cc")
    paths = [f"-I{tree.folder}/cpp", f"-I{tree.folder}/cpp/include"]
    archive = str(how_to_tree.BUILD / "libpinnace_runtime.a")
    command = ["g++", "-std=c++20", *paths, str(source), *features, archive, "-pthread", "-o", str(program)]
    linked = how_to_tree.run(command, tree.folder)
    assert linked.returncode == 0, linked.stderr
    done = how_to_tree.run([str(program)], tree.folder)
    assert (done.returncode, done.stdout.strip()) in [(0, "runs here"), (0, "known")]


def follow_a_pass(tree: Tree) -> None:
    objects = [
        *tree.compile("cpp/passes/cancel_negations.cc", like="cpp/passes/fuse_silu.cc"),
        *tree.compile("cpp/passes/pass.cc"),
        *tree.compile("tests/cpp/passes/cancel_negations_test.cc", like="tests/cpp/passes/fuse_silu_test.cc"),
    ]
    assert len(passed(tree, linked_tests(tree, objects), "CancelNegations.*")) == 2


def follow_a_back_end(tree: Tree) -> None:
    tree.link_extension(
        [
            *tree.compile("cpp/backends/toy/backend.cc", like="cpp/backends/nnapi/backend.cc"),
            *tree.compile("cpp/compile/targets.cc"),
        ]
    )
    tree.passes("tests/python/toy_backend_test.py", 2)


def follow_an_importer(tree: Tree) -> None:
    tree.link_extension(
        [
            *tree.compile("cpp/import/toy/import.cc", like="cpp/import/importers.cc"),
            *tree.compile("cpp/import/importers.cc"),
        ]
    )
    tree.passes("tests/python/toy_importer_test.py", 2)


FOLLOW: dict[str, Callable[[Tree], None]] = {
    "adding_a_backend.md": follow_a_back_end,
    "adding_a_kernel.md": follow_a_kernel,
    "adding_a_pass.md": follow_a_pass,
    "adding_a_unary_function.md": follow_a_unary_function,
    "adding_an_importer.md": follow_an_importer,
    "adding_an_instruction_set.md": follow_an_instruction_set,
    "adding_an_operator.md": follow_an_operator,
}


def test_every_page_is_followed() -> None:
    assert sorted(path.name for path in (ROOT / "docs").glob("adding_*.md")) == sorted(FOLLOW)


def test_edits_keep_the_rules_of_the_tree(tmp_path: Path) -> None:
    done = Tree(tmp_path, *FOLLOW).rules()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", rotating_slice(list(FOLLOW), 1 / len(FOLLOW), "how-to pages"))
def test_page(page: str, tmp_path: Path) -> None:
    if reason := how_to_tree.missing():
        pytest.skip(reason)
    FOLLOW[page](Tree(tmp_path, page))


def test_a_page_that_leaves_something_out_is_noticed() -> None:
    with pytest.raises(AssertionError, match="no edit that can be followed"):
        how_to_tree.edits("# A\n\n1. Something in `cpp/a.cc`.\n")
    with pytest.raises(AssertionError):
        how_to_tree.edits("# A\n\n2. `cpp/a.cc`: a file.\n\n   ```cpp\n   int a;\n   ```\n")
    line = how_to_tree.Edit("a.inc", "OP(b)\n")
    assert how_to_tree.edited("// A.\nOP(a)\nOP(c)\n", line) == "// A.\nOP(a)\nOP(b)\nOP(c)\n"
    assert how_to_tree.edited("OP(a)\n", line) == "OP(a)\nOP(b)\n"
    beside = how_to_tree.Edit("a.inc", "OP(b)\n", anchor="OP(a)", after=True)
    assert how_to_tree.edited("  OP(a)\nOP(c)\n", beside) == "  OP(a)\n  OP(b)\nOP(c)\n"
    with pytest.raises(AssertionError, match="2 lines begin"):
        how_to_tree.edited("OP(a)\nOP(a)\n", beside)
    other = how_to_tree.Edit("a.cc", "two", old="one")
    assert how_to_tree.edited("int one;\n", other) == "int two;\n"
    with pytest.raises(AssertionError, match="0 times one"):
        how_to_tree.edited("int two;\n", other)


def test_nothing_but_the_list_of_importers_names_formats() -> None:
    formats = re.findall(r"^IMPORTER\((\w+),", (ROOT / "cpp/import/importers.inc").read_text(), re.M)
    assert formats
    literal = re.compile(rf'"(?:{"|".join(formats)})"')
    places = [
        *(ROOT / "cpp/convert").rglob("*.cc"),
        *(ROOT / "bindings").glob("*.cc"),
        *(ROOT / "cpp/import").glob("*.*"),
    ]
    named = {(path.name, found) for path in places for found in literal.findall(path.read_text())}
    # What has no file is loaded by calls of its own: Model::load_torch_nnapi() and load_torch_program().
    assert named == {("model.cc", '"nnapi"'), ("model.cc", '"pt2"')}
