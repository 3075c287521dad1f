"""Loop turns of kernels: software Vulkan ends all loops of an invocation after 65,535 turns together, without a word.
Nodes that need more are refused with the reason, and results are right whatever the size."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from pinnace import _core

Shape = tuple[int, ...]


def spelled(shape: Shape, kind: str = "f32") -> str:
    dtype, mark, scale = kind.partition("{")
    return f"{dtype}[{','.join(map(str, shape))}]{mark}{scale}"


def graph(
    node: str, shapes: list[Shape], result: Shape, more: str = "", kind: str = "f32", of: str = "f32"
) -> tuple[str, dict[str, Any]]:
    """A node of the inputs %a, %b, ... of type `of`. The last element of %a is 1 (of bytes 200) and the others 0, so
    that nothing shows but what a loop reaches at its end; the other inputs are ones."""
    names = "abc"[: len(shapes)]
    inputs = " ".join(f"input %{n} : {spelled(s, of)}" for n, s in zip(names, shapes, strict=True))
    text = f'graph "g" {{ {inputs} {more}%y : {spelled(result, kind)} = {node} output "y" %y }}'
    dtype = {"f32": np.float32, "i64": np.int64}.get(of, np.uint8)
    arrays: dict[str, Any] = {n: np.ones(s, dtype) for n, s in zip(names, shapes, strict=True)}
    arrays["a"][...] = 0
    arrays["a"].flat[-1] = 200 if dtype is np.uint8 else 1
    return text, arrays


def ones(name: str, shape: Shape, kind: str = "f32") -> str:
    """A constant of ones."""
    return f"const %{name} : {spelled(shape, kind)} = {{{','.join(['1'] * int(np.prod(shape)))}}} "


def loop(count: int, each: int = 0) -> int:
    """Turns of a loop, with the check that ends it; `each`: those of the loops in its body."""
    return count * (1 + each) + 1


def shared(count: int, each: int = 0) -> int:
    return loop(-(-count // 64), each)


TREE, SEARCH, DIVISION = loop(6), loop(8), loop(56)
BYTE, UNIT = "u8{scale 1, zero 0}", "u8{scale 0.00390625, zero 7}"
AXES = "const %axes : i64[1] = {1} "


def bytes_along(
    op: str, n: int, attributes: str = "", kind: str = BYTE, kept: bool = True
) -> tuple[str, dict[str, Any]]:
    node = f"{op}(%a{', %axes' if not kept else ''}) {{{attributes}}}"
    return graph(node, [(1, n)], (1, n) if kept else (1, 1), "" if kept else AXES, kind, BYTE)


def square_pool(op: str, n: int, attributes: str, of: str = "f32") -> tuple[str, dict[str, Any]]:
    return graph(f"{op}(%a) {{{attributes}}}", [(1, 1, n, n)], (1, 1, 1, 1), "", of, of)


def taps(n: int) -> int:
    """Of an antialiased filter that shrinks n pixels to one."""
    return 2 * int(np.ceil(1 / float(np.float32(1 / n)))) + 1


def shrunk(n: int, kind: str = "f32", start: str = "none") -> tuple[str, dict[str, Any]]:
    sizes = "const %s : i64[4] = {1,1,2,2} "
    text, inputs = graph(
        'resize(%a, none, none, %s) {mode="linear", antialias=1}', [(1, 1, n, n)], (1, 1, 2, 2), sizes, kind, kind
    )
    inputs["a"][...] = 1 if kind == "f32" else 100
    return text, inputs


@dataclass(frozen=True)
class Case:
    """Its graph for a size, and how many loop turns the node's longest kernel has."""

    make: Callable[[int], tuple[str, dict[str, Any]]]
    turns: Callable[[int], int]

    def most(self, turns: int) -> int:
        """The largest size that has no more turns."""
        low = next(n for n in itertools.count(1) if self.turns(2 * n) > turns) if turns < 1000 else 1
        high = 2 * low
        while self.turns(high) <= turns:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.turns(middle) <= turns else (low, middle)
        return low


CASES: dict[str, Case] = {
    "mat_mul": Case(lambda n: graph("mat_mul(%a, %b)", [(2, n), (n, 3)], (2, 3)), loop),
    "mat_mul split": Case(
        lambda n: graph("mat_mul(%a, %w)", [(2, n)], (2, 3), ones("w", (n, 3))), lambda n: loop(-(-n // 8))
    ),
    "gemm": Case(lambda n: graph("gemm(%a, %b)", [(2, n), (n, 3)], (2, 3)), loop),
    "conv dense taps": Case(
        lambda n: graph("conv(%a, %b)", [(1, 1, n), (1, 1, n)], (1, 1, 1)), lambda n: loop(1, loop(n))
    ),
    "conv dense channels": Case(lambda n: graph("conv(%a, %b)", [(1, n, 1, 1), (4, n, 1, 1)], (1, 4, 1, 1)), loop),
    "conv dense volume": Case(
        lambda n: graph("conv(%a, %b)", [(1, n, 2, 3, 2), (1, n, 2, 3, 2)], (1, 1, 1, 1, 1)),
        lambda n: loop(n, loop(2, loop(3, loop(2)))),
    ),
    "conv": Case(
        lambda n: graph("conv(%a, %w)", [(1, 4 * n, 3, 3)], (1, 1, 1, 1), ones("w", (1, 4 * n, 3, 3))),
        lambda n: loop(3, loop(3, loop(n))),
    ),
    "conv pointwise": Case(
        lambda n: graph("conv(%a, %w)", [(1, 4 * n, 1, 1)], (1, 1, 1, 1), ones("w", (1, 4 * n, 1, 1))), loop
    ),
    "conv depthwise": Case(
        lambda n: graph("conv(%a, %w) {group=4}", [(1, 4, n, n)], (1, 4, 1, 1), ones("w", (4, 1, n, n))),
        lambda n: loop(n, loop(n)),
    ),
    "conv_transpose dense": Case(
        lambda n: graph("conv_transpose(%a, %b)", [(1, n, 1, 1), (n, 4, 1, 1)], (1, 4, 1, 1)), loop
    ),
    "conv_transpose": Case(
        lambda n: graph("conv_transpose(%a, %w)", [(1, 4 * n, 1, 1)], (1, 4, 3, 3), ones("w", (4 * n, 4, 3, 3))),
        lambda n: loop(3, loop(3, loop(n))),
    ),
    "attention": Case(
        lambda n: graph("attention(%c, %b, %a)", [(1, 1, n, 8), (1, 1, n, 8), (1, 1, 2, 8)], (1, 1, 2, 8)),
        lambda n: loop(-(-n // 32), loop(2) + loop(32)),
    ),
    "attention wide": Case(
        lambda n: graph("attention(%c, %b, %a)", [(1, 1, n, 4), (1, 1, n, 258), (1, 1, 2, 258)], (1, 1, 2, 4)),
        lambda n: loop(-(-n // 32), loop(65) + loop(32)),
    ),
    "cum_sum": Case(
        lambda n: graph("cum_sum(%a, %axis)", [(1, n)], (1, n), "const %axis : i64[] = {1} "), lambda n: shared(n, TREE)
    ),
    "softmax": Case(lambda n: graph("softmax(%a) {axis=1}", [(1, n)], (1, n)), lambda n: 3 * shared(n) + 2 * TREE),
    "layer_normalization": Case(
        lambda n: graph("layer_normalization(%a, %b) {axis=1}", [(1, n), (n,)], (1, n)),
        lambda n: 3 * (shared(n) + TREE),
    ),
    "lp_normalization": Case(
        lambda n: graph("lp_normalization(%a) {axis=1}", [(1, n)], (1, n)), lambda n: shared(n) + TREE
    ),
    "lrn": Case(lambda n: graph(f"lrn(%a) {{size={2 * n}, alpha={2 * n}.0}}", [(1, n, 1, 1)], (1, n, 1, 1)), loop),
    "reduce_sum": Case(lambda n: graph("reduce_sum(%a, %axes)", [(1, n)], (1, 1), AXES), lambda n: shared(n) + TREE),
    "reduce_log_sum_exp": Case(
        lambda n: graph("reduce_log_sum_exp(%a, %axes)", [(1, n)], (1, 1), AXES), lambda n: 2 * (shared(n) + TREE)
    ),
    "global_average_pool": Case(
        lambda n: graph("global_average_pool(%a)", [(1, 4, 1, n)], (1, 4, 1, 1)), lambda n: shared(n) + TREE
    ),
    "max_pool": Case(lambda n: square_pool("max_pool", n, f"kernel_shape=[{n},{n}]"), lambda n: loop(n, loop(n))),
    "adaptive_average_pool": Case(
        lambda n: graph("adaptive_average_pool(%a) {output_size=[2,2]}", [(1, 1, 2 * n, 2 * n)], (1, 1, 2, 2)),
        lambda n: loop(n, loop(n)),
    ),
    "resize": Case(lambda n: shrunk(2 * n), lambda n: loop(taps(n), loop(taps(n)))),
    "arg_max": Case(
        lambda n: graph("arg_max(%a) {axis=1}", [(1, n)], (1, 1), kind="i64"), lambda n: loop(1, shared(n) + TREE)
    ),
    "cum_sum of integers": Case(
        lambda n: graph("cum_sum(%a, %axis)", [(1, n)], (1, n), "const %axis : i64[] = {1} ", "i64", "i64"),
        lambda n: shared(n, TREE),
    ),
    "reduce_sum of integers": Case(
        lambda n: graph("reduce_sum(%a, %axes)", [(1, n)], (1, 1), AXES, "i64", "i64"), lambda n: shared(n) + TREE
    ),
    "mat_mul_integer": Case(
        lambda n: graph("mat_mul_integer(%a, %b)", [(2, n), (n, 3)], (2, 3), "", "i32", "u8"), loop
    ),
    "8-bit mat_mul": Case(lambda n: graph("mat_mul(%a, %b)", [(2, n), (n, 3)], (2, 3), kind=BYTE, of=BYTE), loop),
    "8-bit conv": Case(
        lambda n: graph(
            "conv(%a, %w)", [(1, 4 * n, 3, 3)], (1, 1, 1, 1), ones("w", (1, 4 * n, 3, 3), BYTE), BYTE, BYTE
        ),
        lambda n: loop(3, loop(3, loop(n))),
    ),
    "8-bit conv depthwise": Case(
        lambda n: graph(
            "conv(%a, %w) {group=4}", [(1, 4, n, n)], (1, 4, 1, 1), ones("w", (4, 1, n, n), BYTE), BYTE, BYTE
        ),
        lambda n: loop(n, loop(n)),
    ),
    "8-bit conv dense": Case(
        lambda n: graph("conv(%a, %b)", [(1, n, 2, 1), (1, n, 2, 1)], (1, 1, 1, 1), "", BYTE, BYTE),
        lambda n: loop(n, loop(2)),
    ),
    "8-bit softmax": Case(
        lambda n: bytes_along("softmax", n, "axis=1", UNIT),
        lambda n: shared(n) + TREE + loop(n) + shared(n, DIVISION + SEARCH),
    ),
    "8-bit log_softmax": Case(
        lambda n: bytes_along("log_softmax", n, "axis=1", "u8{scale 1, zero 255}"),
        lambda n: shared(n) + TREE + loop(n) + loop(8) + loop(2) + shared(n, loop(2, SEARCH) + 1),
    ),
    "8-bit lp_normalization": Case(
        lambda n: bytes_along("lp_normalization", n, "axis=1", UNIT),
        lambda n: loop(n) + DIVISION + shared(n, DIVISION + SEARCH),
    ),
    "8-bit reduce_sum": Case(lambda n: bytes_along("reduce_sum", n, kept=False), lambda n: shared(n) + TREE + SEARCH),
    "8-bit reduce_l2": Case(lambda n: bytes_along("reduce_l2", n, kept=False), lambda n: loop(n) + SEARCH),
    "8-bit reduce_log_sum_exp": Case(
        lambda n: bytes_along("reduce_log_sum_exp", n, kept=False), lambda n: 2 * loop(n) + SEARCH
    ),
    "8-bit reduce_max": Case(lambda n: bytes_along("reduce_max", n, kept=False), lambda n: shared(n) + TREE),
    "8-bit max_pool": Case(
        lambda n: square_pool("max_pool", n, f"kernel_shape=[{n},{n}]", BYTE), lambda n: loop(n, loop(n)) + SEARCH
    ),
    "8-bit lp_pool": Case(
        lambda n: square_pool("lp_pool", n, f"kernel_shape=[{n},{n}]", BYTE),
        lambda n: loop(n, loop(n)) + loop(4, SEARCH),
    ),
    "8-bit resize": Case(lambda n: shrunk(2 * n, BYTE), lambda n: loop(4, loop(taps(n), loop(taps(n))) + SEARCH)),
}


def run(text: str, inputs: dict[str, Any], target: str, op: str) -> tuple[Any, Any]:
    """The results, and where the node ran."""
    program = pn.Program(_core.Model.parse(text, [], False, []).build(["cpu"]))
    session = pn.Session(program, target=target if target == "cpu" else [target, "cpu"])
    results = list(session.run(inputs).values())
    (row,) = [row for row in session.placement if row.op == op]
    return results, row


def op_of(name: str) -> str:
    return name.removeprefix("8-bit ").partition(" ")[0]


def needs_vulkan() -> None:
    if not any(device.target == "vulkan" and device.available for device in pn.devices()):
        pytest.skip("there is no Vulkan device")


def on_both_sides(name: str, turns: int, target: str, reason: str) -> None:
    """The largest size with so many turns runs on the device, the next one on the CPU, both with the right results."""
    case, op = CASES[name], op_of(name)
    most = case.most(turns)
    beyond = next(n for n in itertools.count(most + 1) if case.turns(n) > turns)
    for size, backend in ((most, target), (beyond, "cpu")):
        text, inputs = case.make(size)
        got, row = run(text, inputs, target, op)
        assert row.backend == backend, (size, row.why)
        assert backend != "cpu" or reason in row.why[0], row.why
        for one, other in zip(got, run(text, inputs, "cpu", op)[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_more_loop_turns_than_the_device_has_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINNACE_GPU_OPTIONS", "max_turns=400")
    reason = "loop turns of an invocation, it has 400 (rule V-20)"
    on_both_sides(name, 400, "softmetal", reason)


# 65,534 channels of lrn, each a sum over all of them, are 4 billion products. The others reach another limit first:
# that of int32, or a million summands (rule V-7).
FAR = ("lrn", "8-bit mat_mul", "mat_mul_integer", "8-bit conv", "8-bit conv depthwise", "8-bit reduce_sum")


@pytest.mark.rotating
@pytest.mark.parametrize("name", [name for name in CASES if name not in FAR])
def test_software_vulkan_has_the_turns_that_lowerings_state(name: str) -> None:
    needs_vulkan()
    if not any(device.target == "vulkan" and "llvmpipe" in device.description for device in pn.devices()):
        pytest.skip("the Vulkan device is not llvmpipe")
    on_both_sides(name, 65535, "vulkan", "loop turns of an invocation, it has 65535 (rule V-20)")


def test_long_sequences_of_small_layers_are_cut_into_dispatches() -> None:
    needs_vulkan()
    steps = 70_000
    weights = "const %w : f32[1,3,1] = {0.5,-0.5,1} "
    text, inputs = graph("gru(%a, %w, %w)", [(steps, 1, 1)], (steps, 1, 1, 1), weights)
    inputs["a"][:, 0, 0] = np.random.default_rng(1).standard_normal(steps)
    program = pn.Program(_core.Model.parse(text, [], False, []).build(["cpu"]))
    (want,) = pn.Session(program, target="cpu").run(inputs).values()
    (got,) = pn.Session(program, target="vulkan", fallback=False).run(inputs).values()
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


def test_sorts_of_long_slices_are_cut_into_dispatches() -> None:
    needs_vulkan()
    x = np.random.default_rng(2).integers(0, 500, (3, 2000, 2)).astype(np.float32)
    text = """graph "g" { input %a : f32[3,2000,2] const %k : i64[1] = {2000}
      %y, %i = top_k(%a, %k) {axis=1} output "y" %y output "i" %i }"""
    for target, options in (("vulkan", ""), ("vulkan", "max_binding_bytes=16384"), ("softmetal", "max_turns=40000")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PINNACE_GPU_OPTIONS", options)
            (values, places), row = run(text, {"a": x}, target, "top_k")
        assert row.backend == target, row.why
        assert row.kernel == "top_k_f32"
        order = np.argsort(-x, axis=1, kind="stable")
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
