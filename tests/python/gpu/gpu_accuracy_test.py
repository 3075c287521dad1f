"""Sums of many elements keep their digits on the GPU back ends, and special values their meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinnace as pn
import pytest
from pinnace import _core

TARGETS = ("vulkan", "softmetal")
SIZE = 1 << 20


def run(target: str, node: str, result: str, constants: str = "", **inputs: Any) -> Any:
    """The result of a node of the inputs, all of it on the device."""
    if not any(device.target == target and device.available for device in pn.devices()):
        pytest.skip(f"there is no {target} device")
    given = " ".join(f"input %{name} : f32[{','.join(map(str, x.shape))}]" for name, x in inputs.items())
    text = f'graph "g" {{ {given} {constants} %y : {result} = {node} output "y" %y }}'
    program = pn.Program(_core.Model.parse(text, [], False, []).build(["cpu"]))
    (made,) = pn.Session(program, target=target, fallback=False).run(inputs).values()
    return made


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("reduce_sum", SIZE * 0.1),
        ("reduce_mean", 0.1),
        ("reduce_l1", SIZE * 0.1),
        ("reduce_sum_square", SIZE * 0.01),
        ("reduce_l2", np.sqrt(SIZE * 0.01)),
        ("reduce_log_sum_exp", 0.1 + np.log(SIZE)),
    ],
)
def test_sums_of_a_million_equal_elements(op: str, value: float, target: str) -> None:
    x = np.full((1, SIZE), 0.1, np.float32)
    made = run(target, f"{op}(%x, %axes)", "f32[1,1]", "const %axes : i64[1] = {1}", x=x)
    np.testing.assert_allclose(made, value, rtol=3e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", ["global_average_pool", "average_pool", "adaptive_average_pool"])
def test_means_of_planes(op: str, target: str) -> None:
    side = {"global_average_pool": 1024, "average_pool": 250, "adaptive_average_pool": 250}[op]
    attributes = {
        "global_average_pool": "",
        "average_pool": f"{{kernel_shape=[{side},{side}]}}",
        "adaptive_average_pool": "{output_size=[2,1]}",
    }[op]
    rows = 2 if op == "adaptive_average_pool" else 1
    x = np.full((1, 4, side * rows, side), 0.1, np.float32)
    made = run(target, f"{op}(%x) {attributes}", f"f32[1,4,{rows},1]", x=x)
    np.testing.assert_allclose(made, 0.1, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("offset", [0.0, 3.0, -1000.0])
def test_norms_of_a_million_elements_with_a_large_mean(offset: float, target: str) -> None:
    size = 1_000_000
    x = (offset + 0.01 * (np.arange(size) % 2 + np.random.default_rng(1).random(size))).astype(np.float32)[None]
    made = run(
        target, "layer_normalization(%x, %w) {axis=1, epsilon=0.0}", f"f32[1,{size}]", x=x, w=np.ones(size, np.float32)
    )
    wide = x.astype(np.float64)
    np.testing.assert_allclose(made, (wide - wide.mean()) / wide.std(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_norms_of_equal_and_of_infinite_elements(target: str) -> None:
    x = np.full((3, 200), 7.3, np.float32)
    x[1, 5], x[2, 0] = np.inf, np.nan
    made = run(target, "layer_normalization(%x, %w) {axis=1}", "f32[3,200]", x=x, w=np.ones(200, np.float32))
    np.testing.assert_allclose(made[0], 0, atol=1e-3)
    assert np.isnan(made[1:]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_of_many_and_of_large_elements(target: str) -> None:
    x = np.zeros((1, SIZE), np.float32)
    np.testing.assert_allclose(run(target, "softmax(%x) {axis=1}", f"f32[1,{SIZE}]", x=x), 1 / SIZE, rtol=3e-6)
    x = (1e5 + np.random.default_rng(2).integers(0, 8, (3, 50))).astype(np.float32)
    wide = x.astype(np.float64) - x.max(1, keepdims=True)
    want = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    np.testing.assert_allclose(run(target, "log_softmax(%x) {axis=1}", "f32[3,50]", x=x), want, rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("power", [1, 2, 3])
def test_lp_pools_keep_nan(power: int, target: str) -> None:
    x = np.ones((1, 2, 4, 4), np.float32)
    x[0, 0, 1, 1], x[0, 1, 2, 2] = np.nan, np.inf
    made = run(target, f"lp_pool(%x) {{kernel_shape=[2,2], strides=[2,2], p={power}}}", "f32[1,2,2,2]", x=x)
    want = np.full((1, 2, 2, 2), 4 ** (1 / power), np.float32)
    want[0, 0, 0, 0], want[0, 1, 1, 1] = np.nan, np.inf
    np.testing.assert_allclose(made, want, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_powers_of_special_values(target: str) -> None:
    special = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, np.inf, -np.inf, np.nan], np.float32)
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    made = run(target, "pow(%x, %z)", f"f32[{x.size}]", x=x, z=y)
    np.testing.assert_allclose(made, want, rtol=1e-6)
