"""Sums of many elements on the CPU keep their digits, and those of large ones their range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinnace as pn
import pytest
from pinnace import _core

LARGE = np.float32(3e38)


def run(graph: str, **inputs: Any) -> tuple[Any, str]:
    """The result of a graph's text, and the kernel of its last node."""
    given = " ".join(f"input %{name} : f32[{','.join(map(str, x.shape))}]" for name, x in inputs.items())
    program = pn.Program(
        _core.Model.parse(f'graph "g" {{ {given} {graph} output "y" %y }}', [], False, []).build(["cpu"])
    )
    session = pn.Session(program, threads=2)
    (made,) = session.run(inputs).values()
    return made, list(session.placement)[-1].kernel


@pytest.mark.parametrize(
    ("pool", "rows", "cols"),
    [
        ("global_average_pool(%c)", 1, 1),
        ("reduce_mean(%c, %axes)", 1, 1),
        ("average_pool(%c) {kernel_shape=[1000,1000]}", 1, 1),
        ("average_pool(%c) {kernel_shape=[30,30], strides=[30,30], dilations=[2,1]}", 32, 33),
        ("adaptive_average_pool(%c) {output_size=[2,3]}", 2, 3),
    ],
)
@pytest.mark.parametrize("channels", [8, 72])
def test_means_of_images(pool: str, rows: int, cols: int, channels: int) -> None:
    """Behind a convolution, whose results stand channels last. It passes on what it reads."""
    x = np.full((1, channels, 1000, 1000), 0.1, np.float32)
    x += np.arange(channels, dtype=np.float32)[:, None, None] / 7
    w = np.eye(channels, dtype=np.float32)[:, :, None, None]
    values = ",".join(str(int(v)) for v in w.ravel())
    graph = (
        f"const %w : f32[{channels},{channels},1,1] = {{{values}}} const %axes : i64[2] = {{2,3}} "
        f"%c : f32[1,{channels},1000,1000] = conv(%x, %w) {{kernel_shape=[1,1]}} "
        f"%y : f32[1,{channels},{rows},{cols}] = {pool}"
    )
    made, kernel = run(graph, x=x)
    assert "nhwc" in kernel
    want = np.broadcast_to(x[:, :, :1, :1].astype(np.float64), made.shape)
    np.testing.assert_allclose(made, want, rtol=2e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["reduce_sum", "reduce_mean", "reduce_log_sum", "reduce_l1", "reduce_l2"])
def test_sums_that_float32_does_not_hold(op: str, axis: int) -> None:
    """99 large numbers, then as many negative ones, then a smaller one that is left."""
    x = np.full((199, 199), LARGE)
    x[(slice(None),) * axis + (slice(99, None),)] = -LARGE
    x[(slice(None),) * axis + (slice(198, None),)] = 1e37
    made, kernel = run(f"const %axes : i64[1] = {{{axis}}} %y : f32[199] = {op}(%x, %axes) {{keepdims=0}}", x=x)
    assert "reference" not in kernel
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        want = {
            "reduce_sum": wide.sum(axis),
            "reduce_mean": wide.mean(axis),
            "reduce_log_sum": np.log(wide.sum(axis)),
            "reduce_l1": np.abs(wide).sum(axis),
            "reduce_l2": np.sqrt((wide**2).sum(axis)),
        }[op].astype(np.float32)
    np.testing.assert_allclose(made, want, rtol=1e-6)
