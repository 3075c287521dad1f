"""The Vulkan back end from Python: small networks with fallback off, placement, profiles, threads, lost devices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
import torch
from torch import nn


def vulkan_problem() -> str:
    """Empty, or why there is no Vulkan here: as `devices` says it."""
    try:
        pn.Session(pn.load(nn.ReLU(), (torch.ones(1),)).build(verify=False), target="vulkan")
    except pn.Unsupported as error:
        return str(error)
    return ""


PROBLEM = vulkan_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)


@pytest.fixture(params=["", "staging,offset_alignment=256,unknown_subgroup,max_invocations=128"])
def options(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device as it is, and made to look like a lesser one."""
    os.environ["PINNACE_GPU_OPTIONS"] = request.param
    yield request.param
    del os.environ["PINNACE_GPU_OPTIONS"]


class Slice(nn.Module):
    """A convolution, an activation, a pool, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 3, padding=1)
        self.line = nn.Linear(10 * 5 * 6, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.line(nn.functional.max_pool2d(self.conv(x).relu(), 2).flatten(1))
        return made


def close(got: np.ndarray, want: np.ndarray, part: float) -> None:
    assert np.abs(np.asarray(got) - np.asarray(want)).max() <= part * np.abs(want).max()


def test_slice_through_a_file(options: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    pn.load(module, (x,)).build(verify=False).save(tmp_path / "net.pnc")
    with torch.no_grad():
        want = module(x).numpy()
    for precision, part in (("fp32", 1e-4), ("fp16", 1e-2)):
        session = pn.Session(tmp_path / "net.pnc", target="vulkan", precision=precision, fallback=False)
        for _ in range(2):
            close(next(iter(session.run({"x": x}).values())), want, part)
        assert {row.backend for row in session.placement} == {"vulkan"}
        assert any(row.kernel == f"conv_nc4hw4_f{precision[2:]}" for row in session.placement)


class Block(nn.Module):
    """One layer of a vision transformer: patches, attention over them, two products and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 96, 8, stride=8)
        self.norm, self.second = nn.LayerNorm(96), nn.LayerNorm(96)
        self.qkv, self.out = nn.Linear(96, 288), nn.Linear(96, 96)
        self.up, self.down, self.head = nn.Linear(96, 200), nn.Linear(200, 96), nn.Linear(96, 10)
        self.token = nn.Parameter(torch.randn(1, 1, 96))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        q, k, v = self.qkv(self.norm(x)).reshape(x.shape[0], -1, 3, 3, 32).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        x = x + self.down(nn.functional.gelu(self.up(self.second(x))))
        made: torch.Tensor = self.head(x[:, 0])
        return made


def test_a_transformer_runs_whole() -> None:
    torch.manual_seed(0)
    module, x = Block().eval(), torch.randn(2, 3, 56, 48)
    program = pn.load(module, (x,)).build(verify=False)
    with torch.no_grad():
        want = module(x).numpy()
    for precision, part in (("fp32", 2e-5), ("fp16", 1e-2)):
        session = pn.Session(program, target="vulkan", precision=precision, fallback=False)
        close(next(iter(session.run({"x": x}).values())), want, part)
        assert any(row.kernel == f"attention_vectors_f{precision[2:]}" for row in session.placement)


def test_sizes_that_vary_share_their_weights() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Hardswish(), nn.Conv2d(8, 6, 1)).eval()
    program = pn.load(net, (torch.ones(2, 3, 9, 9),), ({0: pn.Dim("batch", 1, 8)},)).build(verify=False)
    session = pn.Session(program, target="vulkan", fallback=False)
    name = next(iter(session.inputs))
    for n in (1, 3, 8, 3):
        x = torch.randn(n, 3, 9, 9)
        with torch.no_grad():
            close(next(iter(session.run({name: x}).values())), net(x).numpy(), 1e-5)


def test_threads_share_a_program() -> None:
    torch.manual_seed(0)
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    program = pn.load(module, (x,)).build(verify=False)
    sessions = [pn.Session(program, target="vulkan", fallback=False) for _ in range(4)]
    with torch.no_grad():
        want = module(x).numpy()
    for _ in range(5):
        for run in [session.run_async({"x": x}) for session in sessions]:
            close(next(iter(run.result().values())), want, 1e-5)


def test_profile_has_every_dispatch() -> None:
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    session = pn.Session(pn.load(module, (x,)).build(verify=False), target="vulkan", fallback=False)
    kernels = [event.kernel for event in session.profile({"x": x}).events]
    assert "pool_f32" in kernels
    assert "gemm_split_f32" in kernels


def test_what_it_does_not_take_stays_on_the_cpu() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cumprod(x.relu(), dim=-1).exp()

    x = torch.randn(3, 7)
    program = pn.load(Net(), (x,)).build(verify=False)
    session = pn.Session(program, target="vulkan,cpu")
    close(next(iter(session.run({"x": x}).values())), Net()(x).numpy(), 1e-5)
    assert {row.backend for row in session.placement} >= {"vulkan", "cpu"}
    assert any("(rule V-" in why for row in session.placement for why in row.why)
    with pytest.raises(pn.Unsupported, match="fallback is off"):
        pn.Session(program, target="vulkan", fallback=False)


def test_a_lost_device_costs_time_only() -> None:
    module, x = Slice().eval(), torch.randn(2, 3, 11, 13)
    program = pn.load(module, (x,)).build(verify=False)
    with torch.no_grad():
        want = module(x).numpy()
    # With staging the first submit is the weights' upload, whatever memory the device has.
    os.environ["PINNACE_GPU_OPTIONS"] = "no_self_check,staging,fail_submit=3"
    try:
        session = pn.Session(program, target="vulkan")
        for _ in range(3):
            close(next(iter(session.run({"x": x}).values())), want, 1e-5)
        assert {row.backend for row in session.placement} == {"cpu"}
        assert any("(rule P-2)" in why for row in session.placement for why in row.why)
        alone = pn.Session(program, target="vulkan", fallback=False)
        for _ in range(2):  # the second is made again on the device opened anew
            close(next(iter(alone.run({"x": x}).values())), want, 1e-5)
        assert any("and opened anew" in row.notice for row in alone.placement)
        with pytest.raises(pn.DeviceLost):
            alone.run({"x": x})
    finally:
        del os.environ["PINNACE_GPU_OPTIONS"]


def test_a_machine_without_vulkan_says_so() -> None:
    """No driver: the loader is told of one that is not there."""
    code = (
        "import pinnace as pn, torch; model = pn.load(torch.nn.ReLU(), (torch.ones(1),));"
        "pn.Session(model.build(verify=False), target='vulkan')"
    )
    gone = {**os.environ, "VK_ICD_FILENAMES": "/nonexistent.json", "VK_DRIVER_FILES": "/nonexistent.json"}
    done = subprocess.run([sys.executable, "-c", code], env=gone, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "target 'vulkan' cannot run here: no Vulkan" in done.stderr


def test_targets_are_devices() -> None:
    model = pn.load(nn.ReLU(), (torch.ones(1, 3, 4, 4),))
    assert model.check(targets=["vulkan", "vulkan:1"]).ok
    ahead = model.check(targets=["metal"])  # in no build for Linux, but what it takes is known
    assert ahead.ok
    assert {row.target for row in ahead.nodes} == {"metal"}
    with pytest.raises(pn.InvalidArgument, match="is no number of a device"):
        model.check(targets=["vulkan:fast"])
    with pytest.raises(pn.Unsupported, match="there is no device 99"):
        pn.Session(model.build(verify=False), target="vulkan:99")


class Embedding(nn.Module):
    """Rows of a table by indices that a run brings."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.table(ids) * 2
        return made


def on_vulkan(module: nn.Module, *inputs: torch.Tensor, fallback: bool = False) -> tuple[pn.Session, list[str]]:
    session = pn.Session(pn.load(module.eval(), inputs).build(verify=False), target="vulkan", fallback=fallback)
    return session, list(session.inputs)


def test_indices_come_with_a_run_and_are_checked() -> None:
    torch.manual_seed(0)
    module, ids = Embedding(), torch.tensor([[1, 6, 0], [3, 3, 2]])
    session, (name,) = on_vulkan(module, ids)
    with torch.no_grad():
        close(next(iter(session.run({name: ids}).values())), module(ids).numpy(), 1e-6)
    ids[1, 1] = 7
    with pytest.raises(pn.InvalidArgument, match="index 7 is outside a dimension of size 7"):
        session.run({name: ids})
    ids[1, 1] = 4  # the session goes on
    with torch.no_grad():
        close(next(iter(session.run({name: ids}).values())), module(ids).numpy(), 1e-6)


class Scattered(nn.Module):
    """Rows added to, and kept in, a table at indices that a run brings."""

    def forward(self, x: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        added = x.index_add(0, ids, rows)
        most = x.scatter_reduce(0, ids[:, None].expand(-1, x.shape[1]), rows, "amax")
        return added, most


def test_scatters_take_indices_of_a_run() -> None:
    torch.manual_seed(0)
    module = Scattered()
    x, ids, rows = torch.randn(9, 5), torch.tensor([3, 0, 3, 8, 3, 0]), torch.randn(6, 5)
    session, (x_name, ids_name, rows_name) = on_vulkan(module, x, ids, rows)
    given = {x_name: x, ids_name: ids, rows_name: rows}
    for got, want in zip(session.run(given).values(), module(x, ids, rows), strict=True):
        close(got, want.numpy(), 1e-6)
    ids[2] = 9
    with pytest.raises(pn.InvalidArgument, match="index 9 is outside a dimension of size 9"):
        session.run(given)


class Whole(nn.Module):
    """Arithmetic on 64-bit integers."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b + 3


@pytest.mark.parametrize(
    ("a", "b", "why"), [(2**40, 1, "an input is 1099511627776"), (2**20, 2**20, "a result of mul .* needs more")]
)
def test_integers_beyond_32_bits_are_never_cut(a: int, b: int, why: str) -> None:
    small, x, y = torch.tensor([4, -5, 6]), torch.tensor([1, a, 2]), torch.tensor([1, b, 2])
    session, (first, second) = on_vulkan(Whole(), small, small.clone())
    got = next(iter(session.run({first: small, second: small}).values()))
    np.testing.assert_array_equal(np.asarray(got), Whole()(small, small).numpy())
    with pytest.raises(pn.DeviceLost, match=f"32-bit integers, and {why}"):
        session.run({first: x, second: y})
    # The device itself is well.
    got = next(iter(session.run({first: small, second: small}).values()))
    np.testing.assert_array_equal(np.asarray(got), Whole()(small, small).numpy())
    session, (first, second) = on_vulkan(Whole(), small, small.clone(), fallback=True)
    got = next(iter(session.run({first: x, second: y}).values()))
    np.testing.assert_array_equal(np.asarray(got), Whole()(x, y).numpy())
    assert any("32-bit integers" in text for row in session.placement for text in row.why)


def test_a_divisor_of_0_is_an_error() -> None:
    class Quotient(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.div(a, b, rounding_mode="trunc")

    a, b = torch.tensor([7, -7, 9], dtype=torch.int32), torch.tensor([2, 2, -4], dtype=torch.int32)
    session, (first, second) = on_vulkan(Quotient(), a, b)
    got = next(iter(session.run({first: a, second: b}).values()))
    np.testing.assert_array_equal(np.asarray(got), Quotient()(a, b).numpy())
    b[1] = 0
    with pytest.raises(pn.InvalidArgument, match="of the divisor is 0"):
        session.run({first: a, second: b})


class Choices(nn.Module):
    """What detectors and decoders end with: masks, the largest, running sums, sorted scores."""

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> tuple[torch.Tensor, ...]:
        masked = torch.where(keep & (x > -1), x, torch.full_like(x, -2))
        values, places = torch.topk(masked, 3, dim=-1)
        count = keep.to(torch.int64).cumsum(-1)
        return masked.argmax(-1), values, torch.gather(x, 1, places), count, torch.triu(x), masked.cumsum(0)


def test_choices_and_orders_run_whole() -> None:
    torch.manual_seed(3)
    x, keep = torch.randn(70, 130), torch.rand(70, 130) > 0.4
    session, (first, second) = on_vulkan(Choices(), x, keep)
    for got, want in zip(session.run({first: x, second: keep}).values(), Choices()(x, keep), strict=True):
        assert np.asarray(got).dtype == want.numpy().dtype
        close(got, want.numpy(), 1e-5)
