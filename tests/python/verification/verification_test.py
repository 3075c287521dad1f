"""What build() and compare() hold against the source, by which bounds, and what they record of it: integers as
integers, outputs that cancel, sizes of which no example was given, and where nodes really ran.
"""

from __future__ import annotations

import copy
import json
import platform
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import cli
from pinnace.agreement import agreement
from pinnace.sources.torch_module import LiveSource
from pinnace.sources.torch_program import TorchSource
from pinnace.types import TensorSpec
from pinnace.verify.other_sizes import MOST_CHOICES, other_sizes, resized
from pinnace.verify.reference_runs import ReferenceRun
from pinnace.verify.verification import verify_program
from torch import nn

Array = np.ndarray[Any, Any]


class Function(nn.Module):
    """A module of one function of one tensor."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class Source:
    """A source that computes with numpy."""

    description = "numpy"

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function
        self.runs: list[tuple[int, ...]] = []

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        self.runs.append(inputs[0].shape)
        return [np.asarray(self.function(inputs[0]))]

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        return {}


def built(function: Callable[[torch.Tensor], Any], x: torch.Tensor, shapes: Any = None) -> pn.Program:
    return pn.load(Function(function), (x,), shapes and {"x": shapes}).build(verify=False)


# ------------------------------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize(
    ("dtype", "a", "b", "distance"),
    [
        (np.int64, 2**53, 2**53 + 1, 1),
        (np.int64, -(2**63), 2**63 - 1, 2**64 - 1),
        (np.uint64, 2**64 - 1, 2**64 - 2, 1),
        (np.uint8, 0, 255, 255),
        (np.int8, -128, 127, 255),
    ],
)
def test_integers_are_compared_as_integers(dtype: Any, a: int, b: int, distance: int) -> None:
    for one, other in ((a, b), (b, a)):
        d = agreement(np.array([7, one], dtype), np.array([7, other], dtype))
        assert not d.ok
        assert d.largest == float(distance)
        assert d.relative > 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert agreement(np.array(one, dtype), np.array(other, dtype)).largest == float(distance)
    assert agreement(np.array([a, b], dtype), np.array([a, b], dtype)).ok


def test_integers_within_a_bound_that_is_asked_for() -> None:
    assert agreement(np.array([100, 3]), np.array([99, 3]), {"int64": 0.02}).ok
    assert not agreement(np.array([100, 3]), np.array([96, 3]), {"int64": 0.02}).ok
    assert not agreement(np.array([True]), np.array([False])).ok


# -------------------------------------------------------------------------------------------------- outputs that cancel


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [7, 300, 20_000])
def test_outputs_that_are_nothing_but_rounding_errors_pass(dtype: torch.dtype, n: int) -> None:
    x = torch.randn(n, generator=torch.Generator().manual_seed(n)).to(dtype)
    program = pn.load(Function(lambda x: (x - x.mean()).sum()), (x,)).build()
    assert program.metadata["verified.cpu"].startswith("yes")


def noise(seed: int) -> Callable[[Array], Array]:
    """A source whose output is rounding errors of its own, others at each run."""
    random = np.random.default_rng(seed)
    return lambda x: np.asarray(random.choice([-1, 1]) * random.uniform(1e-7, 3e-7), np.float32)


def test_rounding_errors_of_another_kind_pass_and_are_recorded() -> None:
    x = torch.randn(64, generator=torch.Generator().manual_seed(3))
    program = built(lambda x: (x - x.mean()).sum(), x)
    facts = verify_program(program, Source(noise(1)), [{"x": x}], ["cpu"]).metadata
    assert "nothing but rounding errors" in facts["verified.cpu"]


@pytest.mark.parametrize(
    ("function", "source"),
    [
        (lambda x: (x - x.mean()).sum(), lambda x: np.float32(0.01)),  # too large for rounding errors
        (lambda x: x.sum() * 1e-9, lambda x: np.float32(x.sum() * 2e-9)),  # small, but no noise
        (lambda x: (x > 0).float().sum(), lambda x: np.float32((x > 0).sum() + 1)),
        (lambda x: x * 1.001, lambda x: x),
        (lambda x: x.sum(), lambda x: np.float32(x.sum() * 1.001 + 0 * x[0])),
    ],
)
def test_small_or_wrong_outputs_are_refused_all_the_same(
    function: Callable[[torch.Tensor], torch.Tensor], source: Callable[[Array], Array]
) -> None:
    x = torch.rand(64, generator=torch.Generator().manual_seed(3))
    with pytest.raises(pn.VerificationError, match="differs by"):
        verify_program(built(function, x), Source(source), [{"x": x}], ["cpu"])


def test_a_float_network_that_enlarges_rounding_errors_passes_by_what_it_moves_itself() -> None:
    """Both lose the last digits, not to the same number, and neither is wrong."""
    x = torch.randn(1000, generator=torch.Generator().manual_seed(5))
    program = built(lambda x: (x + 1e4) - 1e4, x)
    source = Source(lambda x: x)
    one = Source(lambda x: ((x + np.float32(2e4)) - np.float32(2e4)).astype(np.float32))
    facts = verify_program(program, one, [{"x": x}], ["cpu"]).metadata
    assert "the source itself moves by" in facts["verified.cpu"]
    with pytest.raises(pn.VerificationError):  # this one does not move: it has nothing to enlarge
        verify_program(program, source, [{"x": x}], ["cpu"])


def test_no_movement_excuses_a_percent() -> None:
    """A source with a step where the example stands moves by its height; what is held to it may not."""
    x = torch.arange(8.0)
    source = Source(np.floor)
    reference = ReferenceRun(source, [[x.numpy()]])
    assert max(np.abs(m.outputs[0][0] - reference.ran.outputs[0][0]).max() for m in reference.moved_by_itself) > 0.1
    with pytest.raises(pn.VerificationError):
        verify_program(built(lambda x: torch.floor(x) * 1.02, x), source, [{"x": x}], ["cpu"])


# ----------------------------------------------------------------------------------------------------- inner values


class Cancelling(nn.Module):
    """Its first value loses half of its digits, which its output does not show."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.norm = nn.BatchNorm1d(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x) + self.norm(x)
        return torch.sigmoid((x + 3000.7) - x)


@pytest.mark.parametrize("live", [True, False])
def test_inner_values_are_computed_in_float64_by_torch_too(live: bool) -> None:
    """Of a module and of an exported program: none of them has the rounding errors of float32."""
    torch.manual_seed(0)
    net, x = Cancelling().eval(), torch.randn(8, 64)
    exported = torch.export.export(net, (x,), strict=False)
    source: Any = LiveSource(net, TorchSource(exported)) if live else TorchSource(exported)
    arbiter = source.float64()
    nodes = {"linear", "batch_norm", "add", "sub"}
    exact, rounded = arbiter.layers([x.numpy()], nodes), source.layers([x.numpy()], nodes)
    assert exact.keys() == rounded.keys() == nodes
    assert {str(v.dtype) for v in exact.values()} == {"float64"}
    wide, y = copy.deepcopy(net).double(), x.double()
    y = (wide.linear(y) + wide.norm(y)).detach()
    np.testing.assert_allclose(exact["add"], y.numpy(), rtol=1e-12)
    np.testing.assert_allclose(exact["sub"], 3000.7, rtol=1e-15)
    assert np.abs(rounded["sub"].astype(np.float64) - 3000.7).max() > 1e-5


class Residue(nn.Module):
    """A linear layer whose rows are zero but for rounding errors where an input's two halves are equal."""

    def __init__(self) -> None:
        super().__init__()
        half = torch.randn(64, 512, generator=torch.Generator().manual_seed(1))
        self.weight = nn.Parameter(torch.cat([half, -half], 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(nn.functional.linear(x, self.weight), 1)


@pytest.mark.parametrize("live", [True, False])
def test_inner_values_of_a_convolution_with_bias_are_computed_in_float64(live: bool) -> None:
    net, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 1)).eval(), torch.rand(1, 3, 5, 5)
    exported = torch.export.export(net, (x,))
    source: Any = LiveSource(net, TorchSource(exported)) if live else TorchSource(exported)
    exact = source.float64().layers([x.numpy()], {"0", "1"})
    assert {name: str(value.dtype) for name, value in exact.items()} == {"0": "float64", "1": "float64"}
    np.testing.assert_allclose(exact["1"], net.double()(x.double()).detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("live", [True, False])
def test_inner_rounding_errors_are_held_against_float64(live: bool) -> None:
    """Two right sums in different orders have nothing in common there, but are equally near to the exact value."""
    half, net = torch.randn(16, 512, generator=torch.Generator().manual_seed(2)), Residue()
    other = torch.randn(16, 512, generator=torch.Generator().manual_seed(3))
    x = torch.cat([half, torch.where(torch.arange(16)[:, None] % 2 == 0, half, other)], 1)
    program = pn.load(net, (x,)).build(verify=False)
    source: Any = net if live else torch.export.export(net, (x,), strict=False)
    result = pn.compare(program, source, {"x": x})
    (row,) = [row for row in result.rows if row.value == "linear"]
    assert result.ok, result
    distances = row.targets["cpu"].exact
    assert distances is not None
    assert max(distances.ours, distances.source) < 1e-5
    ours, theirs = f"{distances.ours:.1e}", f"{distances.source:.1e}"
    (line,) = [line for line in str(result).splitlines() if line.startswith("linear ")]
    assert f"({ours}, {theirs})" in line
    for page in (result._repr_html_(), result.to_html()):
        assert f"(from float64: ours {ours}, the source {theirs})" in page


@pytest.mark.parametrize("inputs", [None, 3, [], [np.zeros(3)], np.zeros(3), "x"])
def test_inputs_that_are_no_dict_are_refused_in_words(inputs: Any) -> None:
    program = built(lambda x: x + 1, torch.zeros(3))
    with pytest.raises(pn.InvalidArgument, match=r"dict of inputs|dict of input names"):
        pn.compare(program, program, inputs)


# ---------------------------------------------------------------------------------------------------------- other sizes


def spec(*shape: Any, dtype: str = "float32") -> TensorSpec:
    return TensorSpec("x", np.dtype(dtype), shape, None)


@pytest.mark.parametrize(
    ("dim", "size", "wanted"),
    [
        (pn.Dim("n", 1, 8), 4, 3),
        (pn.Dim("n", 1, 8), 2, 3),
        (pn.Dim("n", 1, 2), 2, 1),
        (pn.Dim("n", 1), 1, 2),
        (pn.Dim("n", 16, 400), 16, 17),
        (pn.Dim("n", 32, None, 32), 224, 192),
        (pn.Dim("n", 32, 64, 32), 32, 64),
        (pn.Dim("n", 5, 5), 5, None),
        (pn.Dim("n", 0, 1), 1, None),
    ],
)
def test_another_size_is_a_legal_one(dim: pn.Dim, size: int, wanted: int | None) -> None:
    found = other_sizes([spec(dim, 3)], [[np.zeros((size, 3), np.float32)]])
    assert found == ({} if wanted is None else {"n": wanted})


def test_dimensions_that_were_equal_are_not_any_more() -> None:
    a, b = pn.Dim("a", 1), pn.Dim("b", 1)
    found = other_sizes([spec(a, b)], [[np.zeros((16, 16), np.float32)]])
    assert len(set(found.values())) == 2
    c, d = pn.Dim("c", 8, 128, 8), pn.Dim("d", 8, 128, 8)
    assert other_sizes([spec(c, d)], [[np.zeros((64, 64), np.float32)]]) == {"c": 56, "d": 48}


def test_sizes_that_examples_differ_in_are_left_alone() -> None:
    a, b = pn.Dim("a", 1), pn.Dim("b", 1)
    arrays = [[np.zeros((4, 16), np.float32)], [np.zeros((5, 16), np.float32)]]
    assert list(other_sizes([spec(a, b)], arrays)) == ["b"]


def test_examples_are_cut_or_repeated() -> None:
    dim = pn.Dim("n", 1)
    ids = np.arange(4, dtype=np.int64).reshape(1, 4)
    assert resized(ids, spec(1, dim, dtype="int64"), {"n": 3}).tolist() == [[0, 1, 2]]
    assert resized(ids, spec(1, dim, dtype="int64"), {"n": 6}).tolist() == [[0, 1, 2, 3, 0, 1]]
    mask = np.array([0.0, -np.inf, 1.0], np.float32)
    assert resized(mask, spec(dim), {"n": 5}).tolist() == [0, -np.inf, 1, 0, -np.inf]
    values = np.array([0.5, 0.25], np.float32)
    more = resized(values, spec(dim), {"n": 4})
    assert more[:2].tolist() == [0.5, 0.25]
    assert len(set(more.tolist())) == 4
    assert np.all(np.abs(more[2:] / values - 1) <= 1 / 64)
    assert resized(np.zeros((0, 2), np.float32), spec(dim, 2), {"n": 3}).shape == (3, 2)


def test_dynamic_sizes_are_verified_at_others() -> None:
    model = pn.load(Function(lambda x: x * 2), (torch.randn(4, 6),), {"x": {0: pn.Dim("rows", 1, 8)}})
    assert model.build().metadata["verified.sizes"].startswith("yes: also at rows = 3, ")
    fixed = pn.load(Function(lambda x: x * 2), (torch.randn(4, 6),)).build()
    assert "verified.sizes" not in fixed.metadata
    both = [{"x": np.ones((n, 6), np.float32)} for n in (2, 5)]
    said = model.build(examples=both).metadata["verified.sizes"]
    assert said == "yes: also at rows = 1, largest relative difference 0"
    both.append({"x": np.ones((1, 6), np.float32)})
    assert "verified.sizes" not in model.build(examples=both).metadata


def test_what_differs_at_a_size_of_one_is_found() -> None:
    """torch.export takes a dynamic size for 2 or more, and squeeze() for the others alone."""
    net, x = Function(lambda x: (x * 2).squeeze()), torch.randn(4, 1, 6)
    model = pn.load(net, (x,), {"x": {0: pn.Dim("rows", 1, 8)}})
    with pytest.raises(pn.VerificationError, match=r"at rows = 1: .*\[1, 6\], must be float32\[6\].*Dim\(name, 2"):
        model.build()
    program = pn.load(net, (x,), {"x": {0: pn.Dim("rows", 2, 8)}}).build()
    assert program.metadata["verified.sizes"].startswith("yes: also at rows = 3, ")
    assert "rows = 1" not in program.metadata["verified.sizes"]


def test_sizes_of_one_are_tried_together_then_alone() -> None:
    x = torch.randn(4, 6)
    program = built(lambda x: x * 2, x, {0: pn.Dim("rows", 1, 8), 1: pn.Dim("columns", 1, 8)})

    def refuse(x: Array) -> Array:
        if x.shape == (1, 1) or x.shape[0] == 1:
            raise pn.InvalidArgument("two rows")
        return x * 2

    said = verify_program(program, Source(refuse), [{"x": x}], ["cpu"]).metadata["verified.sizes"]
    assert "; also at columns = 1, largest relative difference 0" in said
    assert said.endswith("; the source cannot run at rows = 1, columns = 1: two rows")


def test_what_differs_at_other_sizes_only_is_found() -> None:
    x = torch.randn(4, 6)
    program = built(lambda x: x * 2, x, {0: pn.Dim("rows", 1, 8)})
    source = Source(lambda x: x * 2 if len(x) == 4 else x * 3)
    with pytest.raises(pn.VerificationError, match="at rows = 3: output"):
        verify_program(program, source, [{"x": x}], ["cpu"])
    assert source.runs == [(4, 6), (4, 6), *[(3, 6)] * 13]  # the last twelve to see how far it moves
    right = Source(lambda x: x * 2)
    verify_program(program, right, [{"x": x}], ["cpu", "cpu"])
    assert right.runs == [(4, 6), (4, 6), (3, 6), (1, 6)]  # a second input, other sizes: once, however many targets


def test_a_source_that_cannot_run_at_other_sizes_is_recorded() -> None:
    x = torch.randn(4, 6)
    program = built(lambda x: x * 2, x, {0: pn.Dim("rows", 1, 8), 1: pn.Dim("columns", 2, 8)})

    def refuse(x: Array) -> Array:
        if x.shape != (4, 6):
            raise pn.InvalidArgument("four rows,\nno others")
        return x * 2

    source = Source(refuse)
    facts = verify_program(program, source, [{"x": x}], ["cpu"]).metadata
    assert facts["verified.sizes"] == (
        "no: the source cannot run at rows = 3, columns = 4: four rows, no others; "
        "the source cannot run at rows = 1: four rows, no others"
    )
    assert facts["verified.cpu"].startswith("yes")
    assert source.runs[:3] == [(4, 6), (4, 6), (3, 4)]  # sizes together, then others that pass the rules
    assert {(3, 6), (4, 4)} <= set(source.runs[3:])
    assert len(source.runs) <= 4 + MOST_CHOICES


def test_sizes_that_cannot_change_together_change_alone() -> None:
    x = torch.randn(4, 6)
    program = built(lambda x: x * 2, x, {0: pn.Dim("rows", 1, 8), 1: pn.Dim("columns", 2, 8)})

    def refuse(x: Array) -> Array:
        if x.shape[1] != 6:
            raise pn.InvalidArgument("six columns")
        return x * 2

    said = verify_program(program, Source(refuse), [{"x": x}], ["cpu"]).metadata["verified.sizes"]
    assert said.startswith("yes: also at rows = 3, largest relative difference 0")
    assert said.endswith("; the source cannot run at rows = 3, columns = 4: six columns")


def test_a_program_that_does_not_run_where_its_source_does_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(4, 6)
    program = built(lambda x: x * 2, x, {0: pn.Dim("rows", 1, 8)})
    run = pn.Session.run

    def refuse(session: pn.Session, inputs: Any) -> Any:
        if len(inputs["x"]) != 4:
            raise pn.InvalidArgument("only four rows")
        return run(session, inputs)

    monkeypatch.setattr(pn.Session, "run", refuse)
    with pytest.raises(pn.VerificationError, match="rows = 3: the source runs and the program does not: only four"):
        verify_program(program, Source(lambda x: x * 2), [{"x": x}], ["cpu"])


# ------------------------------------------------------------------------------------------------------ where nodes ran


def test_how_many_nodes_ran_on_a_target_is_recorded() -> None:
    x = torch.randn(2, 3)
    source = TorchSource(torch.export.export(Function(lambda x: torch.atan(torch.cosh(x))), (x,)))
    facts = verify_program(two_nodes(x), source, [{"x": x}], ["cpu", "auto"]).metadata
    for target in ("cpu", "auto"):
        assert facts[f"verified.{target}"].startswith("yes: largest relative difference ")
        assert facts[f"verified.{target}"].endswith("; 2 of 2 nodes ran there")


def two_nodes(x: torch.Tensor) -> pn.Program:
    return built(lambda x: torch.atan(torch.cosh(x)), x)


def on_nnapi(program: pn.Program) -> pn.Session:
    try:
        return pn.Session(program, "nnapi")
    except pn.Unsupported as error:
        pytest.skip(str(error))


def test_a_target_on_which_nothing_ran_is_not_verified() -> None:
    """NNAPI has neither operator, so both stay on the CPU."""
    x = torch.randn(2, 3)
    program = two_nodes(x)
    on_nnapi(program)
    source = TorchSource(torch.export.export(Function(lambda x: torch.atan(torch.cosh(x))), (x,)))
    facts = verify_program(program, source, [{"x": x}], ["nnapi"]).metadata
    assert facts["verified.nnapi"].startswith("no: ")
    assert facts["verified.nnapi"].endswith("; 0 of 2 nodes ran there")
    result = pn.compare(program, Function(lambda x: torch.atan(torch.cosh(x))), [{"x": x}], targets=["cpu", "nnapi"])
    assert result.ok
    assert "nnapi: 0 of 2 nodes ran there" in str(result)
    assert "cpu:" not in str(result)
    assert "nnapi: 0 of 2 nodes ran there" in result.to_html()
    assert json.loads(result.to_json())["nodes"]["cpu"] == {"ran_there": 2, "all": 2}


def unavailable_target() -> str:
    """A level of another kind of processor."""
    return "cpu:avx2" if platform.machine() == "aarch64" else "cpu:neon"


def test_targets_that_cannot_run_are_printed_and_make_the_command_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = torch.randn(2, 3)
    program = two_nodes(x)
    absent = unavailable_target()
    result = pn.compare(program, Function(lambda x: torch.atan(torch.cosh(x))), [{"x": x}], targets=["cpu", absent])
    assert result.ok
    assert list(result.unavailable) == [absent]
    assert f"{absent}: cannot run here: {result.unavailable[absent]}" in str(result)
    path = str(tmp_path / "two.pnc")
    program.save(path)
    command = ["compare", path, "--reference", path, "--target", "cpu"]
    assert cli.main(command) == 0
    assert cli.main([*command, "--target", absent]) == 1
    assert f"{absent}: cannot run here" in capsys.readouterr().out
