"""Loops of kernels that a device ends early: software Vulkan after 65,535 turns, without a word. Such nodes are refused
with the reason, and results are right whatever the size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from pinnace import _core


def graph(
    node: str, shapes: list[tuple[int, ...]], result: tuple[int, ...], more: str = "", kind: str = "f32"
) -> tuple[str, dict[str, Any]]:
    """A node of the inputs %a, %b, ... and an input of ones for each."""

    def spelled(shape: tuple[int, ...], kind: str = "f32") -> str:
        return f"{kind}[{','.join(map(str, shape))}]"

    names = "abc"[: len(shapes)]
    inputs = " ".join(f"input %{n} : {spelled(s)}" for n, s in zip(names, shapes, strict=True))
    text = f'graph "g" {{ {inputs} {more}%y : {spelled(result, kind)} = {node} output "y" %y }}'
    return text, {n: np.ones(s, np.float32) for n, s in zip(names, shapes, strict=True)}


def product(n: int) -> tuple[str, dict[str, Any]]:
    return graph("mat_mul(%a, %b)", [(2, n), (n, 3)], (2, 3))


def gemm(n: int) -> tuple[str, dict[str, Any]]:
    return graph("gemm(%a, %b)", [(2, n), (n, 3)], (2, 3))


def taps(n: int) -> tuple[str, dict[str, Any]]:
    return graph("conv(%a, %b)", [(1, 1, n), (1, 1, n)], (1, 1, 1))


def channels(n: int) -> tuple[str, dict[str, Any]]:
    return graph("conv(%a, %b)", [(1, n, 1, 1), (4, n, 1, 1)], (1, 4, 1, 1))


def transposed(n: int) -> tuple[str, dict[str, Any]]:
    return graph("conv_transpose(%a, %b)", [(1, n, 1, 1), (n, 4, 1, 1)], (1, 4, 1, 1))


def attention(n: int) -> tuple[str, dict[str, Any]]:
    return graph("attention(%a, %b, %c)", [(1, 1, 2, 8), (1, 1, n, 8), (1, 1, n, 8)], (1, 1, 2, 8))


def running_sum(n: int) -> tuple[str, dict[str, Any]]:
    return graph("cum_sum(%a, %axis)", [(1, n)], (1, n), "const %axis : i64[] = {1} ")


def softmax(n: int) -> tuple[str, dict[str, Any]]:
    return graph("softmax(%a) {axis=1}", [(1, n)], (1, n))


def norm(n: int) -> tuple[str, dict[str, Any]]:
    return graph("layer_normalization(%a, %b) {axis=1}", [(1, n), (n,)], (1, n))


def total(n: int) -> tuple[str, dict[str, Any]]:
    return graph("reduce_sum(%a, %axes)", [(1, n)], (1, 1), "const %axes : i64[1] = {1} ")


def pool(n: int) -> tuple[str, dict[str, Any]]:
    return graph("global_average_pool(%a)", [(1, 4, 1, n)], (1, 4, 1, 1))


def largest(n: int) -> tuple[str, dict[str, Any]]:
    return graph("arg_max(%a) {axis=1}", [(1, n)], (1, 1), kind="i64")


# By the size that makes the loop long, and how many turns it has at least for each of that size's elements.
NODES: dict[str, tuple[Callable[[int], tuple[str, dict[str, Any]]], float]] = {
    "mat_mul": (product, 1),
    "gemm": (gemm, 1),
    "conv over taps": (taps, 1),
    "conv over channels": (channels, 1),
    "conv_transpose": (transposed, 1),
    "attention": (attention, 2),
    "cum_sum": (running_sum, 1 / 4),
    "softmax": (softmax, 1 / 16),
    "layer_normalization": (norm, 1 / 16),
    "reduce_sum": (total, 1 / 32),
    "global_average_pool": (pool, 1 / 32),
    "arg_max": (largest, 1 / 32),
}


def run(name: str, size: int, target: str) -> tuple[Any, Any]:
    """The result, and where the node ran."""
    text, inputs = NODES[name][0](size)
    if name == "arg_max":
        inputs["a"][0, -1] = 2
    if name == "layer_normalization":
        inputs["a"][0] = np.random.default_rng(1).standard_normal(size)
    program = pn.Program(_core.Model.parse(text, [], False, []).build(["cpu"]))
    session = pn.Session(program, target=target if target == "cpu" else [target, "cpu"])
    (result,) = session.run(inputs).values()
    (row,) = [row for row in session.placement if row.op == name.partition(" ")[0]]
    return result, row


def test_long_sequences_of_small_layers_are_cut_into_dispatches() -> None:
    if not any(device.target == "vulkan" and device.available for device in pn.devices()):
        pytest.skip("there is no Vulkan device")
    steps = 70_000
    weights = "const %w : f32[1,3,1] = {0.5,-0.5,1} "
    text, inputs = graph("gru(%a, %w, %w)", [(steps, 1, 1)], (steps, 1, 1, 1), weights)
    inputs["a"][:, 0, 0] = np.random.default_rng(1).standard_normal(steps)
    program = pn.Program(_core.Model.parse(text, [], False, []).build(["cpu"]))
    (want,) = pn.Session(program, target="cpu").run(inputs).values()
    (got,) = pn.Session(program, target="vulkan", fallback=False).run(inputs).values()
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", NODES)
def test_a_loop_that_is_too_long_for_the_device_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINNACE_GPU_OPTIONS", "max_turns=100")
    turns = NODES[name][1]
    for size, backend in ((int(100 / turns), "softmetal"), (int(133 / turns), "cpu")):
        result, row = run(name, size, "softmetal")
        assert row.backend == backend, row.why
        assert backend == "softmetal" or "turns, its loops end after 100 (rule V-20)" in row.why[0]
        np.testing.assert_allclose(result, run(name, size, "cpu")[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name", [name if NODES[name][1] >= 1 else pytest.param(name, marks=pytest.mark.rotating) for name in NODES]
)
def test_long_rows_are_right_on_every_device(name: str) -> None:
    if not any(device.target == "vulkan" and device.available for device in pn.devices()):
        pytest.skip("there is no Vulkan device")
    for size in (60_000, 70_000, int(140_000 / NODES[name][1])):
        want = run(name, size, "cpu")[0]
        np.testing.assert_allclose(run(name, size, "vulkan")[0], want, rtol=2e-3, atol=1e-9)
