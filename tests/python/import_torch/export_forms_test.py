"""How modules are exported: the forms that are tried until one serves, and what is said where none does."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from agreeing import assert_agree
from pinnace.torch.export import narrowed
from torch import Tensor, nn


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def hold(module: nn.Module, program: pn.Program, x: Tensor) -> None:
    """One run of the program against the module, and the module in float64."""
    session = pn.Session(program)
    with torch.no_grad():
        wanted = torch.utils._pytree.tree_leaves(module(x))
        exact = torch.utils._pytree.tree_leaves(copy.deepcopy(module).double()(x.double()))
    for got, want, arbiter in zip(session.run(dict.fromkeys(session.inputs, x)).values(), wanted, exact, strict=True):
        assert_agree(got, want.numpy(), exact=arbiter.numpy())


# Made in the test, whose name says what their weights are.
RECURRENT: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(4, 5, batch_first=True),
    "lstm, two layers, both directions": lambda: nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True),
    "lstm with a projection": lambda: nn.LSTM(4, 5, proj_size=3, batch_first=True),
    "lstm with a projection, two layers, both directions": lambda: nn.LSTM(
        4, 5, num_layers=2, bidirectional=True, proj_size=3, bias=False, batch_first=True
    ),
    "gru": lambda: nn.GRU(4, 5, batch_first=True),
    "gru, both directions": lambda: nn.GRU(4, 5, num_layers=2, bidirectional=True, batch_first=True, bias=False),
    "rnn": lambda: nn.RNN(4, 5, batch_first=True),
    "rnn of relu": lambda: nn.RNN(4, 5, nonlinearity="relu", batch_first=True),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_of_dynamic_length_stay_whole(name: str) -> None:
    module = RECURRENT[name]().eval()
    x = torch.randn(2, 7, 4)
    program = pn.load(module, x, {0: "batch", 1: "steps"}).build()
    assert sum(node.op in ("lstm", "gru", "rnn") for node in program.nodes) <= 4
    for sizes in ((1, 1), (3, 2), (2, 31)):
        hold(module, program, torch.randn(*sizes, 4))


def test_a_dimension_that_is_lost_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that is decomposed into its steps has as many of them as the example."""

    def steps(x: Tensor) -> Tensor:
        made = [x[:, 0]]
        for step in range(1, x.shape[1]):
            made.append(made[-1] * 0.5 + x[:, step])
        return torch.stack(made, 1)

    operator: Any = torch.library.custom_op(
        "pinnace_test::decaying", steps, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    operator.register_fake(torch.empty_like)
    own = {torch.ops.pinnace_test.decaying.default: steps}
    monkeypatch.setattr("pinnace.torch.export.own_decompositions", lambda: own)
    module = Function(torch.ops.pinnace_test.decaying)
    program = pn.load(module, torch.randn(2, 7, 4)).build()
    hold(module, program, torch.randn(2, 7, 4))
    with pytest.raises(pn.ConversionError, match=r"dimension 1 of input 'x', 'steps' in dynamic_shapes, .* 7 "):
        pn.load(module, torch.randn(2, 7, 4), {1: "steps"})


@pytest.mark.parametrize("bias", [True, False])
def test_states_that_a_projection_makes_narrower_than_cells(bias: bool) -> None:
    class Given(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(4, 20, proj_size=7, bias=bias)

        def forward(self, x: Tensor) -> Any:
            h, c = x[:1, :, :1].expand(-1, -1, 7), x[:1, :, 1:2].expand(-1, -1, 20)
            return self.layer(x, (h, c))

    module = Given().eval()
    program = pn.load(module, torch.randn(7, 2, 4), {0: "steps", 1: "batch"}).build()
    assert [node.op for node in program.nodes].count("lstm") == 1
    for sizes in ((1, 1), (9, 3)):
        hold(module, program, torch.randn(*sizes, 4))


def test_torchs_kernels_are_its_own_again() -> None:
    operators = [torch.ops.aten.lstm.input, torch.ops.aten.gru.input]
    before = [dict(operator.py_kernels) for operator in operators]
    pn.load(RECURRENT["lstm"](), torch.randn(2, 7, 4))
    with pytest.raises(pn.ConversionError):
        pn.load(Function(lambda x: x.view(2, 5)), torch.rand(9))
    assert [dict(operator.py_kernels) for operator in operators] == before


@pytest.mark.parametrize("sizes", [None, {0: "n"}])
def test_vmap_is_traced_on_whole_batches(sizes: Any) -> None:
    module = Function(lambda x: torch.vmap(lambda row: row.softmax(0) * row.sum())(x))
    model = pn.load(module, torch.rand(3, 4), sizes)
    assert model.notes == ["vmap traced by torch on whole batches"]
    program = model.build()
    hold(module, program, torch.rand(5 if sizes else 3, 4))


def test_bounds_that_nobody_gave_are_torchs() -> None:
    module = nn.Conv3d(1, 2, 3, stride=2)
    model = pn.load(module, torch.rand(1, 1, 9, 9, 9), {2: "depth"})
    assert any("dimension 'depth' is at least" in note for note in model.notes)
    program = model.build()
    (dim,) = [d for d in program.inputs["input"].shape if isinstance(d, pn.Dim)]
    assert dim.min >= 3
    hold(module, program, torch.rand(1, 1, 12, 9, 9))
    with pytest.raises(pn.ConversionError, match=r"pn.Dim\(name, min, max"):
        pn.load(module, torch.rand(1, 1, 9, 9, 9), {2: pn.Dim("depth", 1, 20)})


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("Suggested fixes:\n  n = Dim('n', min=3)\n", pn.Dim("n", 3)),
        ("Suggested fixes:\n  n = Dim('n', max=30)\n\nThe error", pn.Dim("n", max=30)),
        ("Suggested fixes:\n  n = Dim('n', min=2, max=30)\n", pn.Dim("n", 2, 30)),
        ("Suggested fixes:\n  _n = Dim('_n', max=3)\n  n = 4*_n\n", None),  # of a dimension that nobody named
        ("Suggested fixes:\n  n = 4*_n\n", pn.Dim("n", multiple_of=4)),
        ("Suggested fixes:\n  n = 7\n", None),
        ("Suggested fixes:\n  m = Dim('m', min=3)\n", None),
        ("Suggested fixes:\n  n = m\n", None),
        ("nothing", None),
    ],
)
def test_suggestions_that_narrow_a_range_are_taken(words: str, wanted: pn.Dim | None) -> None:
    shapes = {"x": {0: pn.Dim("n"), 1: None}, "y": [{0: pn.Dim("n")}]}
    made, changes = narrowed(shapes, words)
    assert made == shapes or changes
    if wanted is None:
        assert changes == []
    else:
        assert made == {"x": {0: wanted, 1: None}, "y": [{0: wanted}]}
        assert len(changes) == 1


@pytest.mark.parametrize("given", [pn.Dim("n", 1), pn.Dim("n", 2), pn.Dim("n", max=9), pn.Dim("n", multiple_of=3)])
def test_what_the_user_gave_is_not_narrowed(given: pn.Dim) -> None:
    words = "Suggested fixes:\n  n = Dim('n', min=3, max=8)\n"
    if given.multiple_of > 1:
        words = "Suggested fixes:\n  n = 4*_n\n"
    assert narrowed(({0: given},), words) == (({0: given},), [])


REFUSED: dict[str, tuple[Callable[[Tensor], Any], Any, str]] = {
    "a branch on a value": (lambda x: x if x.sum() > 0 else -x, None, "Decide with torch.where"),
    "a size from a value": (lambda x: x[: int(x.argmax())], None, "torch._check"),
    "a wrong shape": (lambda x: x.view(2, 5), None, "RuntimeError: shape '[2, 5]' is invalid for input of size 9"),
    "numpy": (lambda x: x * torch.from_numpy(x.numpy()), None, "Compute with torch"),
    "a size that the code fixes": (lambda x: x + torch.ones(9), {0: "n"}, "leave it out of dynamic_shapes"),
    "an error of the module's own": (lambda x: {"here": x}["missing"], None, "KeyError: 'missing'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported_is_said_in_a_few_lines(
    name: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    function, sizes, said = REFUSED[name]
    pn.set_log_level("debug")
    try:
        with caplog.at_level(logging.DEBUG, "pinnace"), pytest.raises(pn.ConversionError) as caught:
            pn.load(Function(function), torch.rand(9), sizes)
    finally:
        pn.set_log_level("warn")
    text = str(caught.value)
    assert said in text
    assert text.count("\n") < 6
    assert len(text) < 1000
    assert not any(word in text for word in ("TORCH_LOGS", "TORCHDYNAMO", "http", "draft_export"))
    if sizes is None:
        assert "export_forms_test.py:" in text
        (problem,) = caught.value.nodes
        file, _, line = problem.source.rpartition(":")
        assert Path(file).read_text().splitlines()[int(line) - 1].strip() == problem.value
        assert text.split(": ", 1)[1].startswith(problem.rule)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert any("Traceback" in record.message for record in caplog.records)
    assert "def forward" not in capfd.readouterr().err


def test_an_example_that_does_not_fit_is_told_apart_from_what_cannot_be_exported(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Also by its shapes, and without torch's own trace on stderr."""
    said = (
        r"Linear cannot be called with these example inputs \(\[2, 7\]\): RuntimeError: mat1 and mat2 shapes cannot be "
        r"multiplied \(2x7 and 8x4\)"
    )
    with pytest.raises(pn.ConversionError, match=said):
        pn.load(nn.Linear(8, 4), torch.zeros(2, 7))
    assert capfd.readouterr().err == ""
    with pytest.raises(pn.ConversionError, match=r"example inputs \(\[9\]\): KeyError: 'missing'"):
        pn.load(Function(lambda x: {"here": x}["missing"]), torch.rand(9))


def test_an_example_of_size_one_is_told_apart_from_what_stands_for_it() -> None:
    """torch.export takes a size of 1 for fixed: where it is dynamic, the example is repeated."""

    class Pair(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.cat([x, y], 1)

    said = (
        r"Pair can be called with the example inputs \(\[1, 3\], \[1, 3\]\), and cannot with more than 1 "
        r".*\(\[2, 3\], \[1, 3\]\)"
    )
    with pytest.raises(pn.ConversionError, match=said):
        pn.load(Pair(), (torch.zeros(1, 3), torch.zeros(1, 3)), {"x": {0: "n"}})


def test_ranges_that_torch_cannot_state() -> None:
    """It ends in an assertion where it would have to name a quotient, and finds the range if it may choose it."""
    part = Function(lambda x: x[2:5] * 2)
    for rows, said, other in ((4, "at most 4", 3), (8, "at least 5", 5)):
        model = pn.load(part, torch.rand(rows, 6), {0: "n"})
        assert any(f"dimension 'n' is {said}" in note for note in model.notes), model.notes
        hold(part, model.build(), torch.rand(other, 6))
    with pytest.raises(pn.ConversionError, match="give a larger example"):
        pn.load(part, torch.rand(4, 6), {0: pn.Dim("n", 2, 64)})
    differences = Function(lambda x: x[:, 2:] - x[:, :-2])
    for size in ("n", pn.Dim("n", 2)):
        program = pn.load(differences, torch.rand(3, 8), {1: size}).build()
        for length in (3, 4, 31):
            hold(differences, program, torch.rand(3, length))


@pytest.mark.parametrize("ceil", [False, True])
def test_max_pools_of_dynamic_length(ceil: bool) -> None:
    before = torch.max_pool1d
    for pool in (nn.MaxPool1d(2), nn.MaxPool1d(3, 2, 1, 2, ceil_mode=ceil)):
        program = pn.load(pool, torch.rand(2, 4, 20), {0: "n", 2: "t"}).build()
        for length in (19, 33):
            hold(pool, program, torch.rand(1, 4, length))
    assert torch.max_pool1d is before


@pytest.mark.parametrize("dim", [pn.Dim("n", 4, 4), pn.Dim("n", 3, 5, multiple_of=2)])
def test_a_dimension_of_one_size_is_not_open(dim: pn.Dim) -> None:
    with pytest.raises(pn.InvalidArgument, match="dynamic_shapes: dimension 'n' has one size, 4: leave it out"):
        pn.load(nn.ReLU(), torch.rand(4, 6), {0: dim})


class EvenOnly(nn.Module):
    """Of an example with an even batch, torch.export has the second branch, and an assertion."""

    def forward(self, x: Tensor) -> Tensor:
        return x if x.shape[0] % 2 else x * 2


@pytest.mark.parametrize("saved", [False, True])
def test_sizes_that_a_branch_was_taken_for(saved: bool, tmp_path: Path) -> None:
    x = torch.rand(4, 6)
    if saved:
        shapes = ({0: torch.export.Dim("n")},)
        exported = torch.export.export(
            EvenOnly(), (x,), dynamic_shapes=shapes, prefer_deferred_runtime_asserts_over_guards=True
        )
        torch.export.save(exported, tmp_path / "even.pt2")
        model = pn.load(tmp_path / "even.pt2")
    else:
        model = pn.load(EvenOnly(), x, {0: "n"})
    assert model.notes == ["dimension 0 of input 'x' is a multiple of 2: the exported program takes no other sizes"]
    program = model.build()
    (dim,) = [d for d in program.inputs["x"].shape if isinstance(d, pn.Dim)]
    assert dim.multiple_of == 2
    hold(EvenOnly(), program, torch.rand(6, 6))
    with pytest.raises(pn.InvalidArgument, match="multiple of 2"):
        pn.Session(program).run({"x": torch.rand(3, 6)})


def test_a_branch_on_sizes_that_no_dimension_can_state_is_found() -> None:
    """The module is what counts, and is run at sizes for which torch.export took the other branch."""
    module = Function(lambda x: x if (x.shape[0] // 2 * x.shape[1]) % 3 else x * 2)
    model = pn.load(module, torch.rand(6, 8), {0: "n", 1: "m"})
    said = r"at m = \d+, n = \d+, where Eq\(Mod\(m\*\(\(n//2\)\), 3\), 0\) does not hold, as torch.export assumes"
    with pytest.raises(pn.VerificationError, match=said):
        model.build()


def test_assertions_that_no_result_depends_on_are_no_reason_to_refuse() -> None:
    """Whether 8 channels become 2 or 4 become 1 decides strides that torch.export asks of."""
    shuffled = Function(lambda x: nn.functional.pixel_unshuffle(nn.functional.pixel_shuffle(x, 2), 2))
    program = pn.load(shuffled, torch.rand(2, 4, 6, 8), {0: "n", 1: "c", 2: "h", 3: "w"}).build()
    assert "also at" in program.metadata["verified.sizes"]
    hold(shuffled, program, torch.rand(1, 8, 3, 5))


class _Inverse(nn.Module):
    """istft of what stft gives, of the signal's length and some more."""

    def __init__(self, more: int, **options: Any) -> None:
        super().__init__()
        self.more, self.options = more, options
        self.window: torch.Tensor
        # Where no window covers an element, torch divides by nothing and refuses.
        self.register_buffer("window", 0.1 + torch.hann_window(48 if more < 16 else 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        options = {"win_length": len(self.window), "window": self.window, **self.options}
        z = torch.stft(x, 64, 16, return_complex=True, **options)
        y: torch.Tensor = torch.istft(z * 0.5, 64, 16, length=x.shape[-1] + self.more, **options)
        return y


@pytest.mark.parametrize("more", [0, -20, 9, 200])
@pytest.mark.parametrize("options", [{}, {"normalized": True}, {"onesided": False}], ids=str)
def test_istft_of_dynamic_length(more: int, options: dict[str, Any]) -> None:
    """Lengths that are multiples of the step, and others, whose last elements few frames cover, or none."""
    module = _Inverse(more, **options)
    program = pn.load(module, (torch.randn(2, 480),), [{1: pn.Dim("t", 64, 4000)}]).build(targets=["cpu"])
    (name,) = program.inputs
    before = torch.istft, torch.Tensor.istft
    for length in (64, 100, 479, 480, 481, 1023):
        x = torch.randn(2, length)
        (y,) = pn.Session(program, target="cpu").run({name: x.numpy()}).values()
        assert_agree(y, module(x).numpy())
    assert (torch.istft, torch.Tensor.istft) == before


@pytest.mark.parametrize("length", [300, 2000])
def test_istft_of_a_length_beside_open_frames(length: int) -> None:
    """Cut off where there are more frames, and silence behind the last one where there are fewer."""

    class Cut(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = torch.stft(x, 64, 16, window=torch.ones(64), return_complex=True)
            return torch.istft(z, 64, 16, window=torch.ones(64), length=length)

    program = pn.load(Cut(), (torch.randn(2, 480),), [{1: pn.Dim("t", 350, 1900)}]).build(targets=["cpu"])
    (name,) = program.inputs
    for elements in (352, 480, 1900):
        x = torch.randn(2, elements)
        (y,) = pn.Session(program, target="cpu").run({name: x.numpy()}).values()
        assert_agree(y, Cut()(x).numpy())


@pytest.mark.parametrize(("size", "step"), [(8, 4), (20, 8), (3, 1), (4, 6), (1, 1)])
def test_windows_of_dynamic_length(size: int, step: int) -> None:
    """Tensor.unfold, nn.functional.unfold and fold over a dimension of dynamic size."""

    class Windows(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:  # [2, 3, T]
            columns = F.unfold(x[:, :, None], (1, size), stride=(1, step))
            length = step * (columns.shape[-1] - 1) + size
            return x.unfold(2, size, step) * 2, columns, F.fold(columns, (1, length), (1, size), stride=(1, step))

    program = pn.load(Windows(), (torch.randn(2, 3, 50),), [{2: pn.Dim("t", 24, 400)}]).build(targets=["cpu"])
    (name,) = program.inputs
    for length in (24, 31, 32, 50, 399):
        x = torch.randn(2, 3, length)
        for y, want in zip(
            pn.Session(program, target="cpu").run({name: x.numpy()}).values(), Windows()(x), strict=True
        ):
            assert_agree(y, want.numpy())


class ConvertsItself(nn.Module):
    """Layers that are brought to an element type in forward(), as mixtures of experts do with their routers."""

    def __init__(self, convert: Callable[[nn.Module, Tensor], nn.Module]) -> None:
        super().__init__()
        self.layer: nn.Module = nn.Sequential(
            nn.Linear(3, 4), nn.BatchNorm1d(4)
        )  # whose count of batches is an integer
        self.convert = convert

    def forward(self, x: Tensor) -> Any:
        self.layer = self.convert(self.layer, x)
        return self.layer(x)


@pytest.mark.parametrize(
    "convert",
    [
        lambda layer, x: layer.to(x.dtype),
        lambda layer, x: layer.to(x),
        lambda layer, x: layer.to("cpu", dtype=torch.float32, non_blocking=True),
        lambda layer, x: layer.float().cpu(),
    ],
    ids=["dtype", "as a tensor", "device and dtype", "by name"],
)
def test_layers_that_are_converted_to_what_they_are(convert: Callable[[nn.Module, Tensor], nn.Module]) -> None:
    torch.manual_seed(0)
    module = ConvertsItself(convert).eval()
    methods = {name: getattr(nn.Module, name) for name in ("to", "float", "double", "half", "bfloat16", "cpu")}
    x = torch.randn(2, 3)
    program = pn.load(module, x, {0: "batch"}).build()
    assert {name: getattr(nn.Module, name) for name in methods} == methods
    assert_agree(pn.Session(program).run({"x": x})["batch_norm"], module(x).detach().numpy())


def test_layers_that_are_converted_to_something_else() -> None:
    module = ConvertsItself(lambda layer, x: layer.to(torch.float64)).eval()
    with pytest.raises(pn.ConversionError, match="dtype, but got Float and Double"):
        pn.load(module, torch.randn(2, 3))
    assert {value.dtype for value in module.parameters()} == {torch.float32}


class HeadsOfOpenSize(nn.Module):
    """The last size of a view is left to torch, beside a size that has no name: it is that of a part of a table."""

    places: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", torch.randn(1, 64, 24))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        y = (x + self.places[:, : x.shape[1]]) * mask.unsqueeze(-1)
        first, second, third = y.view(*y.size()[:-1], 4, -1).permute(0, 2, 1, 3).chunk(3, -1)
        return first + second * third


def test_a_size_left_to_torch_beside_open_ones() -> None:
    module, sizes = HeadsOfOpenSize(), {0: "batch", 1: pn.Dim("length", 1, 64)}
    x, mask = torch.randn(2, 5, 24), torch.ones(2, 5)
    program = pn.load(module, (x, mask), (sizes, sizes)).build()
    x, mask = torch.randn(3, 9, 24), (torch.rand(3, 9) < 0.5).float()
    (got,) = pn.Session(program).run({"x": x, "mask": mask}).values()
    assert_agree(got, module(x, mask).numpy())
