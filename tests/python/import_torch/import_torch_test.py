"""The importer of torch.export archives: small modules in both dialects against eager, and what it refuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from pinnace import _core
from torch import Tensor, nn
from torch_modules import CASES, Case


def export(case: Case, module: nn.Module, path: Path, decomposed: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    program = torch.export.export(module, case.inputs(generator, case.sizes[0]), dynamic_shapes=case.dynamic)
    if decomposed:
        program = program.run_decompositions()
    torch.export.save(program, path)


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, (tuple, list)):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def arrays(tree: Any) -> list[np.ndarray]:
    """Tensors of a nest as arrays; bfloat16 as float32."""
    out = []
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor):
            leaf = leaf.detach()
            out.append((leaf.float() if leaf.dtype == torch.bfloat16 else leaf).contiguous().numpy())
    return out


def assert_close(got: list[Any], want: list[np.ndarray], tolerance: float, what: str) -> None:
    assert len(got) == len(want), what
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        where = f"{what}, output {i}"
        g = np.asarray(g).astype(np.float32) if "bfloat16" in str(np.asarray(g).dtype) else np.asarray(g)
        assert (g.shape, g.dtype) == (w.shape, w.dtype), f"{where}: {g.dtype}{g.shape} is not {w.dtype}{w.shape}"
        if w.size == 0:
            continue
        if w.dtype.kind != "f":
            assert np.array_equal(g, w), f"{where}: {g} is not {w}"
            continue
        assert np.array_equal(np.isfinite(g), np.isfinite(w)), f"{where}: {g} is not {w}"
        finite = np.isfinite(w)
        scale = max(float(np.abs(w[finite]).max(initial=0)), 1e-3)
        error = float(np.abs(g[finite].astype(np.float64) - w[finite].astype(np.float64)).max(initial=0)) / scale
        assert error <= tolerance, f"{where}: relative error {error:.3g}"


@pytest.mark.rotating
@pytest.mark.parametrize("dialect", ["whole", "decomposed"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name: str, dialect: str, tmp_path: Path) -> None:
    case = CASES[name]
    torch.manual_seed(1)
    module = case.module().eval()
    path = tmp_path / "m.pt2"
    with torch.no_grad():
        export(case, copy.deepcopy(module), path, dialect == "decomposed")
        generator = torch.Generator().manual_seed(7)
        runs = max(case.steps, 3)
        steps, wanted = [], []
        for run in range(runs):
            inputs = case.inputs(generator, case.sizes[run % len(case.sizes)])
            steps.append([a.copy() for a in arrays(inputs)])
            wanted.append([a.copy() for a in arrays(module(*inputs))])
        got = _core.run_model_reference(str(path), steps)
    for run in range(runs):
        assert_close(got[run], wanted[run], case.tolerance, f"{name} run {run}")


def refusal(module: nn.Module, inputs: tuple[Any, ...], path: Path) -> Any:
    torch.export.save(torch.export.export(module.eval(), inputs), path)
    with pytest.raises(_core.ConversionError) as caught:
        _core.import_model_text(str(path))
    return caught.value


class Unknown(nn.Module):
    def forward(self, x: Tensor) -> Any:
        y = torch.geqrf(x)[0]  # line of the first refusal
        return torch.linalg.lu_factor(y.relu())[0] + torch.special.bessel_j0(x).sum()


def test_unknown_operators_are_listed_with_their_lines(tmp_path: Path) -> None:
    error = refusal(Unknown(), (torch.randn(3, 3),), tmp_path / "m.pt2")
    problems = {p.op: p for p in error.nodes}
    assert {"aten.geqrf.default", "aten.special_bessel_j0.default"} <= set(problems), sorted(problems)
    assert all(p.rule == "operator not mapped" for p in problems.values()), [p.rule for p in problems.values()]
    line = next(
        i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "line of the first refusal" in text
    )
    assert problems["aten.geqrf.default"].source == f"{__file__}:{line}"


def test_shapes_in_errors_have_the_symbols_names(tmp_path: Path) -> None:
    class Pools(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.nn.functional.avg_pool1d(x, 2)

    shapes = {"x": {0: torch.export.Dim("batch", min=2)}}
    program = torch.export.export(Pools(), (torch.randint(9, (3, 2, 8)),), dynamic_shapes=shapes)
    name = next(iter(program.range_constraints))
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(_core.ConversionError, match=rf"int64\[[^ ]*{name}"):
        _core.import_model_text(str(tmp_path / "m.pt2"))


def test_writing_into_an_input_is_refused(tmp_path: Path) -> None:
    class Writes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[0].add_(1)

    error = refusal(Writes(), (torch.randn(3, 3),), tmp_path / "m.pt2")
    assert "mutates an input" in error.nodes[0].rule
    assert __file__ in error.nodes[0].source


def test_writing_into_an_input_is_refused_when_decomposed(tmp_path: Path) -> None:
    class Writes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.add_(1) * 2

    program = torch.export.export(Writes(), (torch.randn(3),)).run_decompositions()
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(_core.ConversionError, match="mutates an input"):
        _core.import_model_text(str(tmp_path / "m.pt2"))


def test_training_mode_is_refused(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.Dropout(0.5)).train()
    torch.export.save(torch.export.export(module, (torch.randn(2, 3, 4, 4),)), tmp_path / "m.pt2")
    with pytest.raises(_core.ConversionError) as caught:
        _core.import_model_text(str(tmp_path / "m.pt2"))
    assert {p.rule for p in caught.value.nodes if "training mode" in p.rule}


def test_autocast_says_how_to_go_on(tmp_path: Path) -> None:
    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Any:
            with torch.autocast("cpu", torch.bfloat16):
                y = self.fc(x)
            return y.float()

    path = tmp_path / "m.pt2"
    error = refusal(Cast(), (torch.randn(2, 4),), path)
    assert "autocast" in error.nodes[0].rule
    assert "run_decompositions" in error.nodes[0].rule
    module, x = Cast(), torch.randn(2, 4)
    torch.export.save(torch.export.export(module, (x,)).run_decompositions(), path)
    got = _core.run_model_reference(str(path), [[x.numpy()]])
    assert_close(got[0], arrays(module(x)), 1e-2, "autocast")


def test_names_come_from_the_source(tmp_path: Path) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)

        def forward(self, image: Tensor, flag: bool = True) -> dict[str, Tensor]:
            return {"score": self.first(image).relu(), "same": image}

    torch.export.save(torch.export.export(Named(), (torch.randn(2, 4),)), tmp_path / "m.pt2")
    text = _core.import_model_text(str(tmp_path / "m.pt2"))
    assert "input %image" in text
    assert 'output "score"' in text
    assert 'output "same" %image' in text
    assert "%first.weight" in text
    assert "%first :" in text  # what the module `first` computes
    assert "%relu" in text


class Centred(nn.Module):
    """A running mean, in a buffer of the name that torch.export gives the value of x.mean(0)."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.register_buffer(name, torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        state = self.get_buffer(self.name)
        state.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x - state


class Weighed(nn.Module):
    """Parameters and buffers of the names of values, read before and after those are made."""

    def __init__(self) -> None:
        super().__init__()
        self.mul = nn.Parameter(torch.randn(3))
        self.softmax = nn.Parameter(torch.randn(3))
        self.register_buffer("softmax_1", torch.randn(3))
        self.register_buffer("add", torch.randn(3), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.softmax(x * self.mul, -1) + self.softmax
        return torch.softmax(y * self.get_buffer("softmax_1"), -1) * self.get_buffer("add") + y


class Branches(nn.Module):
    """Bodies of control flow, with buffers and values of each other's names."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cond", torch.randn(3))
        self.register_buffer("sin", torch.randn(3))

    def forward(self, x: Tensor) -> Tensor:
        def yes(x: Tensor) -> Tensor:
            return torch.sin(x) + self.get_buffer("sin")

        def no(x: Tensor) -> Tensor:
            return torch.cos(x) * self.get_buffer("cond")

        made: Tensor = torch.cond(x.sum() > 0, yes, no, (x,))
        return made.sin() + self.get_buffer("sin")


class Looped(nn.Module):
    """A loop, whose condition is computed in the graph around it once: its values are called by the loop's name."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("lt", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        from torch._higher_order_ops import while_loop

        def goes_on(i: Tensor, x: Tensor) -> Tensor:
            return (i.reshape(1) < 3).reshape(())

        def body(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, x * 2 + self.get_buffer("lt")

        loop: Any = while_loop  # untyped in torch
        made: Tensor = loop(goes_on, body, (torch.zeros((), dtype=torch.int64), x))[1]
        return made


@pytest.mark.parametrize("dialect", ["whole", "decomposed"])
@pytest.mark.parametrize(
    "make",
    [lambda: Centred("mean"), lambda: Centred("sub"), lambda: Centred("add_"), Weighed, Branches, Looped],
    ids=["mean", "sub", "add_", "weights", "branches", "loop"],
)
def test_buffers_may_be_called_as_values_are(make: Any, dialect: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    module, x = make().eval(), torch.randn(4, 3)
    path = tmp_path / "m.pt2"
    program = torch.export.export(module, (x,))
    torch.export.save(program.run_decompositions() if dialect == "decomposed" else program, path)
    with torch.no_grad():
        wanted = [arrays(module(x)), arrays(module(-x))]
    got = _core.run_model_reference(str(path), [[x.numpy()], [-x.numpy()]])
    for run in (0, 1):
        assert_close(got[run], wanted[run], 1e-6, f"run {run}")


def test_a_value_keeps_its_name_beside_a_buffer_of_that_name() -> None:
    """Values are compared by name, layer by layer: the buffer is the one that is called otherwise."""
    torch.manual_seed(3)
    module, x = Centred("mean").eval(), torch.randn(4, 3)
    program = pn.load(module, (x,), disabled_passes=["all"]).build()
    assert program.metadata["verified"].startswith("1 input")
    assert list(program.states) == ["mean"]
    rows = pn.compare(program, module, [{"x": x}]).rows
    assert {"mean", "sub"} <= {row.value for row in rows}
    assert all(row.ok for row in rows)
    session = pn.Session(program, "cpu")
    session.run({"x": x})
    assert_agree(session.state["mean"], x.mean(0).numpy() / 2)


@pytest.mark.parametrize("kind", ["missing", "text", "empty", "torchscript"])
def test_other_files_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    if kind == "text":
        path.write_bytes(b"PK not a zip")
    elif kind == "empty":
        path.write_bytes(b"PK\x05\x06" + bytes(18))
    elif kind == "torchscript":
        trace: Any = torch.jit.trace  # untyped in torch
        trace(nn.Linear(2, 2), torch.randn(1, 2)).save(str(path))
    with pytest.raises(_core.Error) as caught:
        _core.import_model_text(str(path))
    assert str(path) in str(caught.value)


def test_dynamic_dimensions_have_names_ranges_and_can_be_fixed(tmp_path: Path) -> None:
    class Two(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return a.sum(1) + b.reshape(2, -1).sum(0)

    half = torch.export.Dim("half", min=2, max=50)
    program = torch.export.export(
        Two(), (torch.randn(4, 3), torch.randn(8)), dynamic_shapes={"a": {0: half}, "b": {0: 2 * half}}
    )
    path = tmp_path / "m.pt2"
    torch.export.save(program, path)
    model = _core.Model.load(str(path))
    symbols = {s["name"]: (s["min"], s["max"], s["multiple_of"]) for s in model.symbols}
    base = next(name for name in symbols if "*" not in name)
    assert symbols == {base: (2, 50, 1), f"2*{base}": (4, 100, 2)}
    fixed = _core.Model.load(str(path), symbols=[(base, 5, 5, 1)])
    assert "input %a : f32[5,3]" in fixed.text()
    assert "input %b : f32[10]" in fixed.text()
    with pytest.raises(_core.InvalidArgument, match="called 'nosuch'"):
        _core.Model.load(str(path), symbols=[("nosuch", 5, 5, 1)])


@pytest.mark.parametrize("low", [0, 2, 4])
def test_the_range_of_a_dimension_with_a_divisor_is_what_was_asked_for(low: int) -> None:
    """torch.export gives s of 2*s the range from 2 by itself; the range of 2*s is the one that was asked for."""

    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(-1, 2, 3).sum(1)

    rows = pn.Dim("rows", low, 8, multiple_of=2)
    model = pn.load(Pairs(), example_inputs=(torch.ones(4, 3),), dynamic_shapes={"x": {0: rows}})
    session = pn.Session(model.build(verify=False))
    (x,) = session.inputs.values()
    assert x.shape[0] == pn.Dim("rows", max(low, 2), 8, multiple_of=2)  # torch has no Dims of 0
    for size in range(max(low, 2), 9, 2):
        data = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
        (y,) = session.run({"x": data}).values()
        np.testing.assert_array_equal(y, data.reshape(-1, 2, 3).sum(1))
    with pytest.raises(pn.InvalidArgument):
        session.run({"x": np.zeros((max(low, 2) - 2, 3), np.float32)})


def test_one_of_several_models_is_named(tmp_path: Path) -> None:
    from torch.export.pt2_archive._package import package_pt2

    programs = {
        name: torch.export.export(nn.Linear(3, n), (torch.randn(1, 3),)) for name, n in (("enc", 4), ("dec", 5))
    }
    path = str(tmp_path / "m.pt2")
    package_pt2(path, exported_programs=programs)
    with pytest.raises(_core.InvalidArgument, match="dec, enc"):
        _core.Model.load(path)
    assert "f32[1,5]" in _core.Model.load(path, model_name="dec").text()
    with pytest.raises(_core.InvalidArgument, match="no model 'other'"):
        _core.Model.load(path, model_name="other")


def test_many_elements_are_not_compared_all_with_all(tmp_path: Path) -> None:
    """100,000 elements against as many: a table of all pairs would take 10 GB even in bytes."""
    count = 100_000
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, count, (count,), generator=generator)
    y = torch.randint(0, count, (count,), generator=generator)

    class Counts(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Any:
            ends = y.sort().values
            repeats = (x % 3).clamp(max=2)
            return (
                torch.isin(x, y[::2]), torch.bincount(x), torch.bincount(x, (y % 7).float(), minlength=count + 5),
                torch.searchsorted(ends, x), torch.bucketize(x, ends, right=True), torch.mode(x % 1000).values,
                torch.repeat_interleave(y, repeats),
                torch.nn.functional.embedding_bag(x % 10, torch.eye(10), torch.arange(0, count, 5), mode="sum"),
            )  # fmt: skip

    torch.export.save(torch.export.export(Counts(), (x, y)), tmp_path / "m.pt2")
    got = _core.run_model_reference(str(tmp_path / "m.pt2"), [[x.numpy(), y.numpy()]])[0]
    wanted = Counts()(x, y)
    assert_close(got, arrays(wanted), 1e-6, "counts")
