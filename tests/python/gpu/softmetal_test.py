"""Networks on Metal's kernels, executed on this processor; what the translator refuses; the Metal driver's types."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core
from torch import nn

ROOT = Path(__file__).resolve().parents[3]


def softmetal_problem() -> str:
    """Empty, or why there is no softmetal here: as sessions say it."""
    try:
        pn.Session(pn.load(nn.ReLU(), (torch.ones(1),)).build(verify=False), target="softmetal")
    except pn.Unsupported as error:
        return str(error)
    return ""


PROBLEM = softmetal_problem()
needs_softmetal = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)


@pytest.fixture(params=[f"order={o} width={w}" for o in ("forward", "reverse", "shuffled") for w in (8, 32, 64)])
def execution(request: pytest.FixtureRequest, seed: int) -> Iterator[str]:
    os.environ["PINNACE_SOFTMETAL"] = f"{request.param} seed={seed % 1000}"
    yield request.param
    del os.environ["PINNACE_SOFTMETAL"]


def part_of_largest(got: object, want: object) -> float:
    return float(np.abs(np.asarray(got) - np.asarray(want)).max() / np.abs(np.asarray(want)).max())


@needs_softmetal
def test_a_small_network_in_every_order_and_width(execution: str) -> None:
    torch.manual_seed(1)
    module = nn.Sequential(
        *(nn.Conv2d(3, 18, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(18, 18, 3, padding=1, groups=18), nn.ReLU6()),
        *(nn.Conv2d(18, 24, 1), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)),
        nn.Softmax(-1),
    ).eval()
    x = torch.randn(2, 3, 33, 29)
    program = pn.load(module, example_inputs=(x,)).build(verify=False)
    with torch.no_grad():
        want = module(x).numpy()
    for precision, bound in (("fp32", 1e-5), ("fp16", 1e-2)):
        session = pn.Session(program, target="softmetal", precision=precision, fallback=False)
        name = next(iter(session.inputs))
        first = np.asarray(next(iter(session.run({name: x.numpy()}).values())))
        assert part_of_largest(first, want) < bound
        np.testing.assert_array_equal(np.asarray(next(iter(session.run({name: x.numpy()}).values()))), first)
        assert {row.backend for row in session.placement} == {"softmetal"}


class Heavy(nn.Module):
    """Every kernel of products: tiles of both sizes, groups, a transpose, row-sharing depthwise, attention, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.tiles = nn.Conv2d(48, 48, 3, padding=1)
        self.again = nn.Conv2d(48, 48, 3, padding=1)
        self.small = nn.Conv2d(128, 128, 3, padding=1)
        self.up = nn.ConvTranspose2d(48, 21, 4, stride=2, padding=1)
        self.groups = nn.Conv2d(21, 28, 3, groups=7)
        self.each = nn.Conv2d(28, 28, 5, padding=2, groups=28)
        self.head = nn.Linear(28, 9)

    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tiles = self.again(self.tiles(x).relu()) + x
        made = self.each(self.groups(self.up(tiles))).flatten(2)  # [N, 28, tokens]
        tokens = made[:, :, :70].reshape(-1, 7, 4, 70).transpose(2, 3)  # 7 heads of 4
        attended = nn.functional.scaled_dot_product_attention(tokens, tokens, tokens, attn_mask=mask)
        causal = nn.functional.scaled_dot_product_attention(
            x[:, :2, :, :6], x[:, 2:4, :, :6], x[:, 4:6], is_causal=True
        )
        return self.head(attended.transpose(1, 2).flatten(2)), self.small(y), causal


@needs_softmetal
def test_heavy_kernels_in_every_order_and_width(execution: str) -> None:
    torch.manual_seed(2)
    module = Heavy().eval()
    inputs = (torch.randn(2, 48, 13, 15), torch.randn(1, 128, 10, 10), torch.rand(1, 1, 70, 70) > 0.3)
    program = pn.load(module, example_inputs=inputs).build(verify=False)
    with torch.no_grad():
        want = [y.numpy() for y in module(*inputs)]
    for precision, bound in (("fp32", 2e-5), ("fp16", 1e-2)):
        session = pn.Session(program, target="softmetal", precision=precision, fallback=False)
        kernels = "+".join(row.kernel for row in session.placement)
        for name in (
            "winograd_input_2",
            "winograd_output_4",
            "conv_nc4hw4_transposed",
            "conv_nc4hw4_block",
            "attention",
        ):
            assert f"{name}_f{precision[2:]}" in kernels, kernels
        got = session.run(dict(zip(session.inputs, (x.numpy() for x in inputs), strict=True))).values()
        for mine, right in zip(got, want, strict=True):
            assert part_of_largest(mine, right) < bound
        assert {row.backend for row in session.placement} == {"softmetal"}


@needs_softmetal
@needs_softmetal
def test_tables_are_made_for_every_set_of_sizes() -> None:
    """Tuples of no numbers name all of data: as many places as there are updates."""
    graph = """graph "g" {
      symbol n 1..64
      input %x : f32[4]
      input %i : i64[n,0]
      input %u : f32[n,4]
      %y : f32[4] = scatter_nd(%x, %i, %u) {reduction="add"}
      output "y" %y
    }"""
    program = pn.Program(_core.Model.parse(graph, [], False, []).build(["cpu"]))
    session = pn.Session(program, target="softmetal", fallback=False)
    x = np.arange(4, dtype=np.float32)
    for n in (2, 5, 3):
        u = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        (y,) = session.run({"x": x, "i": np.zeros((n, 0), np.int64), "u": u}).values()
        assert np.array_equal(np.asarray(y), x + u.sum(0))


def test_execution_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    program = pn.load(nn.ReLU(), (torch.ones(3),)).build(verify=False)
    monkeypatch.setenv("PINNACE_SOFTMETAL", "order=backward")
    with pytest.raises(pn.Error, match="'order=backward' is none of order=forward"):
        pn.Session(program, target="softmetal", fallback=False).run({"input": np.ones(3, np.float32)})


# ---- the translator


def translator() -> ModuleType:
    path = ROOT / "cpp/backends/softmetal/translate.py"
    spec = importlib.util.spec_from_file_location("softmetal_translate", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


KERNEL = "kernel void k(device float* x [[buffer(0)]]) { x[0] = 1.0; }"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("int f() { return 1; }", "a.metal:1: no `kernel void`"),
        (f"#include <other.h>\n{KERNEL}", "a.metal:1: includes a file that is not Metal's"),
        ("\nkernel void k(texture2d<float> t [[texture(0)]]) {}", "a.metal:2: textures are not executed"),
        ("kernel void k(device float* x) {}", "a.metal:1: parameter without an attribute that can be bound"),
        ("kernel void k(uint t [[thread_in_some_where]]) {}", r"a.metal:1: \[\[thread_in_some_where\]\] is not known"),
        (
            "struct B { int n; float x[1]; };\nkernel void k(device B& b [[buffer(0)]]) {}",
            "a.metal:1: struct B: a storage buffer with members before its array",
        ),
        (
            "kernel void k(device float* x [[buffer(0)]])\n{\n    threadgroup float a[4], b[4];\n}",
            "a.metal:3: declare one threadgroup variable per statement",
        ),
        (f'template [[host_name("k2")]] kernel void f();\n{KERNEL}', "a.metal:1:.*host_name"),
    ],
)
def test_translator_refuses_by_line(text: str, why: str, tmp_path: Path) -> None:
    module = translator()
    (tmp_path / "a.metal").write_text(text)
    with pytest.raises(module.Untranslatable, match=why):
        module.translate(tmp_path / "a.metal")


def test_translator_tells_writes_from_reads(tmp_path: Path) -> None:
    body = "t[i] = t[i + 1];\n t[i].x = 1.0;\n t[i] += 2.0;\n f(&t[i]);\n g(a & t[i]);\n if (t[i] == t[t[i]]) t[i]++;"
    text = f"kernel void k(uint i [[thread_index_in_threadgroup]])\n{{\n    threadgroup float4 t[8];\n {body}\n}}\n"
    (tmp_path / "a.metal").write_text(text)
    made, names = translator().translate(tmp_path / "a.metal")
    assert names == ["k"]
    for part in (
        *("t.write()[i] = t[i + 1];", "t.unordered()[i].x = 1.0f;", "t.write()[i] += 2.0f;", "f(&t.unordered()[i]);"),
        *("g(a & t[i]);", "if (t[i] == t[t[i]]) t.write()[i]++;"),
    ):
        assert part in made, made


# ---- kernels that are written by hand in Metal's language

HAND_WRITTEN = """struct Params
{
    int M; float a;
};
constant int ACT [[function_constant(0)]];
enum { LOCAL = 64 };
kernel void k(device const S* x [[buffer(0)]], device S* y [[buffer(1)]], constant Params& p [[buffer(30)]])
{
    threadgroup float left[256];  // enough
}
"""


def shader_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shaders", ROOT / "cmake/shaders.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["shaders"] = module
    spec.loader.exec_module(module)
    return module


def test_manifest_of_a_hand_written_kernel() -> None:
    m = shader_tool().read_metal(HAND_WRITTEN)
    assert (m.bindings, m.written, m.push_bytes, m.spec_constants) == (2, 2, 8, 1)
    assert (m.local, m.shared_bytes, m.simdgroup_matrices) == ((64, 1, 1), 1024, False)
    assert shader_tool().read_metal(HAND_WRITTEN + "simdgroup_load(").simdgroup_matrices


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("LOCAL = 64", "LOCAL = 512", "more than 256 invocations"),
        ("LOCAL", "SIZE", "LOCAL is the number of invocations"),
        ("left[256]", "left[4097]", "16388 bytes of shared memory"),
        ("left[256]", "left[16][16]", "arrays of one dimension"),
        ("int M;", "half M;", "ints and floats of a struct Params"),
        ("[[buffer(30)]]", "[[buffer(2)]]", "ints and floats of a struct Params"),
        ("[[buffer(1)]]", "[[buffer(2)]]", "bindings count from 0"),
        ("function_constant(0)", "function_constant(1)", "specialisation constants count from 0"),
        ("int M;", "int M; " + "int n; " * 32, "136 bytes of push constants"),
    ],
)
def test_rules_of_hand_written_kernels(right: str, wrong: str, why: str) -> None:
    module = shader_tool()
    assert HAND_WRITTEN.count(right) == 1
    with pytest.raises(module.ShaderError, match=why):
        module.read_metal(HAND_WRITTEN.replace(right, wrong))


# ---- the Metal driver, as a compiler with Apple's rules sees it

CLANG = next((c for c in ("clang++-19", "clang++-18", "clang++-17", "clang++-16") if shutil.which(c)), "")


def type_check(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "device.mm").write_text(text)
    flags = ["-x", "objective-c++", "-std=c++20", "-fobjc-arc", "-fobjc-runtime=macosx-12", "-fsyntax-only"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
    folders = [f"-I{ROOT / folder}" for folder in ("tests/fakes/metal", "cpp", "cpp/include")]
    command = [CLANG, *flags, *warnings, "-fno-exceptions", "-fno-rtti", *folders, str(tmp_path / "device.mm")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not CLANG, reason="no clang++ 16 or later")
def test_metal_driver_type_checks_with_reference_counting(tmp_path: Path) -> None:
    text = (ROOT / "cpp/backends/metal/device.mm").read_text()
    done = type_check(text, tmp_path)
    assert done.returncode == 0, done.stderr
    for right, wrong, said in (
        ("memoryBarrierWithScope:", "memoryBarrierForScope:", "memoryBarrierForScope"),
        ("[compute endEncoding]", "[compute endEncode]", "endEncode"),
        ("id<MTLCommandQueue> queue = [device", "id<MTLBuffer> queue = [device", "MTLBuffer"),
    ):
        assert right in text
        done = type_check(text.replace(right, wrong), tmp_path)
        assert done.returncode != 0
        assert said in done.stderr
