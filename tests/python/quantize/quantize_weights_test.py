"""build(quantize=...) of WeightOnly, DynamicInt8 and Float16, and weights that Int8 stores beside its integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core
from pinnace.program import core_of
from pinnace.quantize.errors import relative_error
from torch import Tensor, nn

GENERATOR = np.random.default_rng(11)


class Language(nn.Module):
    """An embedding, two linear layers and the embedding again as the head: it is stored once in 8 bits, and twice in 4
    bits, of which bytes are gathered."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(9)
        self.table = nn.Embedding(2000, 64)
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        x = x + self.down(torch.relu(self.up(x)))
        y: Tensor = x @ self.table.weight.T
        return y


@pytest.mark.parametrize(
    ("options", "error", "size"),
    [
        (pn.WeightOnly(), 0.01, 0.30),
        (pn.WeightOnly(block=32), 0.008, 0.34),
        (pn.WeightOnly(bits=4, block=32), 0.15, 0.30),
        (pn.WeightOnly(bits=4, block=32, symmetric=False), 0.15, 0.31),
        (pn.WeightOnly(bits=4), 0.25, 0.26),
    ],
)
def test_weights_alone(options: pn.WeightOnly, error: float, size: float) -> None:
    ids = torch.arange(12)[None] * 150
    model = pn.load(Language().eval(), ids, {"ids": {1: pn.Dim("length", 1, 32)}})
    plain, program = model.build(), model.build(quantize=options)
    report = program.quantization
    assert report is not None
    assert {row.op for row in report.rows if not row.kept_float} >= {"gather", "mat_mul"}
    assert 0 < max(report.errors.values()) < error, report.errors
    assert len(program.to_bytes()) < size * len(plain.to_bytes())
    kernels = [p.kernel for p in pn.Session(program, "cpu").placement if p.op in ("gemm", "mat_mul")]
    assert len(kernels) == 3
    assert all("mat_mul_weights" in kernel for kernel in kernels), kernels
    assert "1 input(s) against the same program with the floats" in program.metadata.verified


class Tables(nn.Module):
    """One whose rows fill bytes with numbers of 4 bits, one whose rows do not."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(9)
        self.even, self.odd = nn.Embedding(50, 40), nn.Embedding(50, 41)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        return self.even(ids), self.odd(ids)


@pytest.mark.parametrize("symmetric", [True, False])
def test_tables_of_4_bits(symmetric: bool) -> None:
    ids = torch.tensor([[3, 49, 0], [7, 7, 21]])
    net = Tables().eval()
    model = pn.load(net, ids, {"ids": {0: "rows", 1: pn.Dim("columns", 1, 8)}})
    targets = ["cpu", "softmetal", "nnapi:31"]
    program = model.build(targets=targets, quantize=pn.WeightOnly(bits=4, block=16, symmetric=symmetric))
    report = program.quantization
    assert report is not None
    assert [(row.bytes_before, row.bytes_after) for row in report.rows] == [(8000, 1000), (8200, 2050)]
    for given in (ids, torch.tensor([[49]]), torch.arange(16).reshape(2, 8)):
        wanted = [t.detach().numpy() for t in net(given)]
        made = [list(pn.Session(program, target).run({"ids": given.numpy()}).values()) for target in targets]
        for even, odd in made:
            np.testing.assert_array_equal(even, made[0][0])
            assert even.shape == wanted[0].shape
            np.testing.assert_allclose(even, wanted[0], atol=0.3)
            np.testing.assert_allclose(odd, wanted[1], atol=0.03)


class Related(nn.Module):
    """What its layers multiply has few directions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(64, 96), nn.Linear(96, 96), nn.Linear(96, 24)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(torch.relu(self.second(torch.relu(self.first(x)))))
        return y


def related(count: int) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    """Calls of 6 rows."""
    directions = np.random.default_rng(5).normal(size=(4, 64))
    found = (GENERATOR.normal(size=(6, 4)) @ directions + 0.1 * GENERATOR.normal(size=(6, 64)) for _ in range(count))
    return [x.astype(np.float32) for x in found]


def test_weights_rounded_by_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    model = pn.load(Related().eval(), torch.zeros(6, 64), {0: pn.Dim("rows", 1, 64)})
    plain, samples, fresh = model.build(), related(20), related(10)

    def error(program: pn.Program) -> float:
        each, exact = pn.Session(program, "cpu"), pn.Session(plain, "cpu")
        mine, wanted = (np.concatenate([next(iter(s.run({"x": x}).values())) for x in fresh]) for s in (each, exact))
        return float(np.sqrt(((mine - wanted) ** 2).mean() / (wanted**2).mean()))

    def built(calibration: Any, **options: Any) -> pn.Program:
        return model.build(quantize=pn.WeightOnly(bits=4, block=32, calibration=calibration, **options))

    nearest, carried = built(None), built(samples)
    assert error(carried) < 0.6 * error(nearest), (error(carried), error(nearest))
    assert len(carried.to_bytes()) == pytest.approx(len(nearest.to_bytes()), rel=0.01)
    assert error(built(samples, symmetric=False)) < 0.6 * error(built(None, symmetric=False))
    report = carried.quantization
    assert report is not None
    assert report.samples == 20
    assert nearest.quantization is not None
    assert nearest.quantization.samples == 0
    for same in ([{"x": x} for x in samples], (x for x in samples), lambda: samples):
        assert built(same).to_bytes() == carried.to_bytes()
    pairs = [np.concatenate(samples[i : i + 2]) for i in range(0, 20, 2)]
    assert error(built(pairs)) == pytest.approx(error(carried), rel=0.02)
    monkeypatch.setattr("pinnace.quantize.stored_weights.GRAM_BYTES", 1)  # the samples run again for each layer
    assert error(built(samples)) < 0.6 * error(nearest)
    monkeypatch.setattr("pinnace.quantize.stored_weights.MOST_IN_ROW", 90)  # the first layer alone
    assert 0.6 * error(nearest) < error(built(samples)) < error(nearest)


def test_samples_that_weights_cannot_be_rounded_by() -> None:
    model = pn.load(Related().eval(), torch.zeros(6, 64))
    samples = related(4)
    samples[2][1, 5] = np.nan
    for wrong, part in [
        ([], "calibration has no sample"),
        (samples, "^calibration sample 2: .*NaN"),
        ([*samples[:2], np.zeros((6, 63), np.float32)], "^calibration sample 2"),
        ((1 // 0 for _ in range(1)), "^calibration sample 0 cannot be read: ZeroDivisionError"),
    ]:
        with pytest.raises(pn.InvalidArgument, match=part):
            model.build(quantize=pn.WeightOnly(bits=4, calibration=wrong), verify=False)
    with pytest.raises(pn.InvalidArgument, match="calibration must be an iterable"):
        pn.WeightOnly(calibration=3)  # type: ignore[arg-type]


def test_rows_rounded_at_run_time() -> None:
    ids = torch.arange(12)[None] * 150
    model = pn.load(Language().eval(), ids, {"ids": {1: pn.Dim("length", 1, 32)}})
    plain, program = model.build(), model.build(quantize=pn.DynamicInt8(skip=("down",)))
    report = program.quantization
    assert report is not None
    kept = {row.module: row.reason for row in report.rows if row.op == "mat_mul" and row.kept_float}
    assert kept == {"down": "skip='down'"}
    assert 0 < max(report.errors.values()) < 0.02, report.errors
    assert len(program.to_bytes()) < 0.6 * len(plain.to_bytes())
    assert "against the same roundings between float operators" in program.metadata.verified
    again = pn.Program.from_bytes(program.to_bytes())
    assert again.quantization is not None
    exact, found = (pn.Session(p, "cpu").run({"ids": ids.numpy()}) for p in (plain, again))
    for name, value in exact.items():
        assert relative_error([found[name]], [value]) < 0.02


class Mixed(nn.Module):
    """A constant beyond float16, one that would be 0 in it, a state, an index, and what converts."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.dense = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        x = self.dense(x) + torch.where(x > 1e6, -3e38, 0.0).clamp(min=-1.0)
        y = x / (x.abs().sum(-1, keepdim=True) + 1e-9)
        return y, y.argmax(-1)


def test_float16() -> None:
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    model = pn.load(Mixed().eval(), x)
    plain, program = model.build(), model.build(quantize=pn.Float16(skip=("dense",)))
    report = program.quantization
    assert report is not None
    reasons = {row.op: row.reason for row in report.rows if row.kept_float}
    assert reasons["gemm"] == "skip='dense'"
    assert any("-3e+38, beyond float16" in row.reason for row in report.rows)
    assert any("1e-09, beyond float16" in row.reason for row in report.rows)
    assert not next(row for row in report.rows if row.op == "conv").kept_float
    assert 0 < max(report.errors.values()) < 5e-3
    assert "its inputs and constants rounded to float16" in program.metadata.verified
    again = pn.Program.from_bytes(program.to_bytes())
    assert [str(s.dtype) for s in again.inputs.values()] == ["float32"]
    assert [str(s.dtype) for s in again.outputs.values()] == ["float32", "int64"]
    exact, found = (list(pn.Session(p, "cpu").run({"x": x.numpy()}).values()) for p in (plain, again))
    assert relative_error([found[0]], [exact[0]]) < 5e-3
    whole = model.build(quantize=pn.Float16())
    sizes = [sum(c["bytes"] for c in core_of(p).constants if "weight" in c["name"]) for p in (plain, whole)]
    assert sizes[1] * 2 == sizes[0]


def test_float16_of_large_values() -> None:
    """What reaches beyond float16 on the examples stays float32."""

    class Large(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.a.weight.data.fill_(3e4)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.c(self.b(self.a(x)) * 1e-4)
            return y

    x = torch.ones(2, 4)
    program = pn.load(Large().eval(), x).build(quantize=pn.Float16())
    report = program.quantization
    assert report is not None
    reasons = {row.module: row.reason for row in report.rows if row.op == "gemm"}
    assert "reaches 120000 on the examples, beyond float16" in reasons["a"]
    assert "reaches 120000 on the examples, beyond float16" in reasons["b"]
    assert reasons["c"] == ""


class Neighbours(nn.Module):
    """Differences of neighbours, of which nothing is left in float16 where they are nearly equal."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.factor
        y = x[..., 1:] - x[..., :-1]
        return torch.relu(y).sum(-1)


@pytest.mark.parametrize("factor", [1.0, 3.3])
def test_float16_of_values_that_cancel(factor: float) -> None:
    """What rounding does to a network is no fault of the program, whose values are each held against float32's of those
    before them: inputs as they were rounded, and an output that is itself such a value.
    """
    x = 1 + 1e-3 * torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(1))
    program = pn.load(Neighbours(factor).eval(), x).build(quantize=pn.Float16())
    assert program.quantization is not None
    assert max(program.quantization.errors.values()) > 0.01
    assert "rounded to float16" in program.metadata.verified


@pytest.mark.parametrize("target", ["vulkan", "softmetal", "nnapi:30"])
def test_float16_on_other_targets(target: str) -> None:
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    program = pn.load(Mixed().eval(), x).build(["cpu", target], quantize=pn.Float16())
    assert str(program.metadata[f"verified.{target}"]).startswith("yes")


def test_float16_of_a_state_and_a_planted_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pn.load(nn.GRU(6, 5, batch_first=True).eval(), torch.randn(1, 4, 6))
    program = model.build(quantize=pn.Float16())
    assert program.quantization is not None
    assert not next(row for row in program.quantization.rows if row.op == "gru").kept_float
    whole = _core.Model.in_float16

    model = pn.load(nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4)), torch.randn(3, 16))
    other = pn.load(nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4)), torch.randn(3, 16))
    monkeypatch.setattr(
        _core.Model,
        "in_float16",
        lambda core, nodes, values=True: whole(other._core if values else core, nodes, values),
    )
    with pytest.raises(pn.VerificationError, match="on the same values before it"):
        model.build(quantize=pn.Float16())


def test_float16_has_nothing_to_do() -> None:
    with pytest.raises(pn.Unsupported, match="no node here computes in float32"):
        pn.load(nn.Flatten(), torch.zeros(2, 3, 4, dtype=torch.int64)).build(quantize=pn.Float16())
    with pytest.raises(pn.Unsupported, match=r"left out: skip='\*'"):
        pn.load(nn.Linear(8, 8), torch.zeros(2, 8)).build(quantize=pn.Float16(skip=("*",)))
    with pytest.raises(pn.InvalidArgument, match="must be"):
        pn.Float16(skip="all")


def test_a_planted_integer_is_found_in_rounded_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The integers of one column are turned round: the check of the integers sees it."""
    model = pn.load(nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4)), torch.randn(3, 16))
    whole = _core.Model.with_stored_weights

    def planted(core: _core.Model, *args: Any, **options: Any) -> _core.Model:
        made = whole(core, *args, **options)
        if options.get("integers", True):
            return whole(core, args[0], 4, 0, True)  # other integers
        return made

    monkeypatch.setattr(_core.Model, "with_stored_weights", planted)
    with pytest.raises(pn.VerificationError):
        model.build(quantize=pn.DynamicInt8())


def test_tables_and_layers_left_in_float_are_stored_in_8_bits() -> None:
    ids = [np.arange(12)[None] * 150 + i for i in range(8)]
    model = pn.load(Language().eval(), torch.from_numpy(ids[0]), {"ids": {1: pn.Dim("length", 1, 32)}})
    whole = len(model.build().to_bytes())
    program = model.build(quantize=pn.Int8(calibration=ids))
    assert program.quantization is not None
    rows = {row.op: row for row in program.quantization.rows}
    assert not rows["gather"].kept_float
    assert rows["gather"].bytes_before == 4 * rows["gather"].bytes_after == 4 * 2000 * 64
    assert rows["gather"].error is not None
    assert 0 < rows["gather"].error < 0.01
    size = len(program.to_bytes())
    assert size < 0.55 * whole  # which has the table once: gathered and multiplied by, it is stored twice
    left = model.build(quantize=pn.Int8(calibration=ids, skip=("table", "gather")))
    assert len(left.to_bytes()) > size + 2.9 * 2000 * 64
    assert left.quantization is not None
    assert {row.reason for row in left.quantization.rows if row.op == "gather"} <= {"skip='table'", "skip='gather'"}

    # Looser than what stored weights cost, tighter than what integers do: weights of what stays in float are stored.
    error = max(program.quantization.errors.values())
    controlled = model.build(quantize=pn.Int8(calibration=ids, max_drop=0.7 * error))
    report = controlled.quantization
    assert report is not None
    kept = [row for row in report.rows if row.kept_float and row.bytes_before]
    assert kept
    for row in kept:
        assert row.reason.endswith("; its weights are stored in 8 bits")
        assert row.bytes_before == 4 * row.bytes_after
    assert max(report.errors.values()) <= 0.7 * error
    assert len(controlled.to_bytes()) < 1.2 * size
    kernels = {p.node: p.kernel for p in pn.Session(controlled, "cpu").placement}
    assert any("mat_mul_weights" in kernel for kernel in kernels.values()), kernels

    # Tighter than that: the floats themselves.
    exact = model.build(quantize=pn.Int8(calibration=ids, max_drop=1e-6)).quantization
    assert exact is not None
    assert all(row.kept_float and row.bytes_before == row.bytes_after for row in exact.rows)


class Cells(nn.Module):
    """Every kind of recurrent cell, and a linear layer, that Int8 has something to do."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(21)
        self.both = nn.LSTM(40, 96, num_layers=2, batch_first=True, bidirectional=True)
        self.gated = nn.GRU(192, 64, batch_first=True)
        self.plain = nn.RNN(64, 33, batch_first=True)  # of an odd length
        self.projected = nn.LSTM(33, 48, batch_first=True, proj_size=24)
        self.head = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        for cell in (self.both, self.gated, self.plain, self.projected):
            x = cell(x)[0]
        y: Tensor = self.head(x)
        return y


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("options", "error", "size"),
    [
        (pn.WeightOnly(), 0.005, 0.29),
        (pn.WeightOnly(bits=4, block=32), 0.05, 0.19),
        (pn.WeightOnly(bits=4, symmetric=False), 0.05, 0.17),
        (pn.DynamicInt8(), 0.005, 0.29),
        (pn.Int8(calibration=lambda: [{"x": np.ones((2, 20, 40), np.float32)}], progress=False), 0.02, 0.30),
    ],
)
def test_recurrent_cells(options: Any, error: float, size: float) -> None:
    """Their matrices are stored; the kernels that a float cell has run, on floats that are made once."""
    x = torch.randn(2, 20, 40, generator=torch.Generator().manual_seed(3))
    model = pn.load(Cells().eval(), x)
    targets = ["cpu", "vulkan", "softmetal", "nnapi:30"]
    plain, program = model.build(), model.build(targets, quantize=options)
    report = program.quantization
    assert report is not None
    assert 0 < max(report.errors.values()) < error, report.errors
    assert len(model.build(quantize=options).to_bytes()) < size * len(plain.to_bytes())
    assert all(str(program.metadata[f"verified.{target}"]).startswith("yes") for target in targets)
    cells = [row for row in report.rows if row.op in ("lstm", "gru", "rnn")]
    assert len(cells) == 5
    for row in cells:
        assert row.bytes_after == row.bytes_before * (4 if getattr(options, "bits", 8) == 4 else 8) // 32
        assert "its weights are stored in 8 bits" in row.reason or not row.kept_float
    for target, there in (("cpu", 5), ("vulkan", 4), ("softmetal", 4)):  # projections run on the CPU alone
        session = pn.Session(program, [target, "cpu"])
        exact = pn.Session(plain, [target, "cpu"])
        session.run({"x": x.numpy()})
        exact.run({"x": x.numpy()})
        kernels, floats = ([p.kernel for p in s.placement if p.op in ("lstm", "gru", "rnn")] for s in (session, exact))
        assert kernels == floats
        assert sum(p.backend == target for p in session.placement if p.op in ("lstm", "gru", "rnn")) == there


def test_recurrent_cells_that_are_skipped() -> None:
    x = torch.randn(1, 5, 40)
    program = pn.load(Cells().eval(), x).build(quantize=pn.WeightOnly(skip=("gated", "rnn")))
    assert program.quantization is not None
    reasons = {row.op: row.reason for row in program.quantization.rows if row.op in ("lstm", "gru", "rnn")}
    assert reasons == {"lstm": "", "gru": "skip='gated'", "rnn": "skip='rnn'"}


@pytest.mark.parametrize(
    "options", [{"bits": 3}, {"bits": True}, {"block": 12}, {"block": 0}, {"block": -8}, {"skip": "all"}, {"skip": 3}]
)
def test_weight_options_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(pn.InvalidArgument, match="must be"):
        pn.WeightOnly(**options)


def test_all_sixteen_integers_are_used() -> None:
    """Weights that are -8 to 7 times a scale lose nothing."""
    net = nn.Linear(64, 16, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(GENERATOR.permuted(np.tile(np.arange(-8, 8), (16, 4)), axis=1) * 0.25))
    report = pn.load(net, torch.randn(3, 64)).build(quantize=pn.WeightOnly(bits=4, block=None)).quantization
    assert report is not None
    assert max(report.errors.values()) < 1e-6


def test_no_weights_to_store() -> None:
    with pytest.raises(pn.Unsupported, match="no layer here multiplies by"):
        pn.load(nn.Softmax(-1), torch.zeros(2, 3)).build(quantize=pn.WeightOnly())
    with pytest.raises(pn.Unsupported, match=r"left out: skip='\*'"):
        pn.load(nn.Linear(8, 8), torch.zeros(2, 8)).build(quantize=pn.WeightOnly(skip=("*",)))
