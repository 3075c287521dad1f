"""pn.load(..., random="seeded"): random numbers of Philox4x32-10, which a program and its source draw alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import cli
from pinnace.torch.seeded_random import NOTE, STATE, philox_words
from torch import Tensor, nn
from torch.nn import functional as F


class Of(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def session_of(function: Callable[[Tensor], Any], x: Tensor, sizes: Any = None) -> pn.Session:
    """The program, verified against its source in three runs in a row."""
    model = pn.load(Of(function), x, sizes, random="seeded")
    assert NOTE in model.notes
    return pn.Session(model.build(), target="cpu")


def run(session: pn.Session, x: Tensor) -> list[np.ndarray[Any, Any]]:
    return [np.array(y) for y in session.run({"x": x}).values()]


# The first three are those of the authors (Random123, kat_vectors).
@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (2**128 - 1, 2**64 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0x03707344_13198A2E_85A308D3_243F6A88, 0x299F31D0_A4093822, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_known_answers(counter: int, key: int, words: str) -> None:
    assert philox_words(counter % 2**64, counter >> 64, 4, key).tolist() == [int(word, 16) for word in words.split()]


def test_uniform_numbers_are_the_words() -> None:
    session = session_of(lambda x: x + torch.rand(5), torch.zeros(5))
    for position in range(3):
        assert int(session.state[STATE]) == position
        wanted = (philox_words(0, position, 5, 0) >> 8) * 2.0**-24
        np.testing.assert_array_equal(run(session, torch.zeros(5))[0], wanted.astype(np.float32))


def test_draws_of_one_run_have_words_of_their_own() -> None:
    session = session_of(lambda x: (torch.rand(3) + x, torch.rand(3) + x), torch.zeros(3))
    first, second = run(session, torch.zeros(3))
    np.testing.assert_array_equal(second, ((philox_words(1 << 32, 0, 3, 0) >> 8) * 2.0**-24).astype(np.float32))
    assert not np.array_equal(first, second)


def everything(x: Tensor) -> Any:  # [4, 6]
    y = x.clone()
    return (
        torch.randn(3, 4), torch.rand_like(x), torch.randn_like(x), torch.randint(2, 9, (5,)),
        torch.randint_like(x, 7), torch.randint(1 << 31, (3,)), torch.bernoulli(torch.sigmoid(x)),
        torch.bernoulli(x, 0.25), torch.normal(x, 2.0), torch.normal(1.0, x.abs()), torch.normal(x, x.abs()),
        torch.normal(1.0, 2.0, (3, 2)), torch.empty(4).normal_(2, 3), torch.empty(3).uniform_(-1, 1),
        torch.empty(3).exponential_(2.0), torch.empty(3, 2).bernoulli_(0.5), y.uniform_(2, 3) + x,
        torch.rand(2, 2, dtype=torch.float64), torch.randn(3, dtype=torch.float64), torch.rand(8, dtype=torch.float16),
        torch.randn(5, dtype=torch.bfloat16), F.dropout(x, 0.3, training=True),
        F.dropout2d(x[None, :, :, None], 0.5, training=True), F.dropout(x, 1.0, training=True),
        torch.native_dropout(x, 0.4, True)[0],
    )  # fmt: skip


def test_every_operator_that_draws(tmp_path: Path) -> None:
    """Against its source in build(); from the module, its exported program in both dialects, and a file."""
    x = torch.randn(4, 6)
    wanted = run(session_of(everything, x), x)
    exported = torch.export.export(Of(everything).eval(), (x,))
    torch.export.save(exported, tmp_path / "m.pt2")
    for source in (exported, exported.run_decompositions(), tmp_path / "m.pt2"):
        session = pn.Session(pn.load(source, x, random="seeded").build(), target="cpu")
        for got, want in zip(run(session, x), wanted, strict=True):
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=1e-6)


def test_sizes_that_are_open() -> None:
    def drawn(x: Tensor) -> Tensor:
        return F.dropout(torch.randn_like(x) + torch.rand(x.shape[0], 1), 0.2, training=True)

    session = session_of(drawn, torch.zeros(3, 4), {0: "n"})
    assert run(session, torch.zeros(7, 4))[0].shape == (7, 4)


def test_runs_go_on_and_begin_anew() -> None:
    session = session_of(lambda x: torch.randn_like(x), torch.zeros(64))
    x = torch.zeros(64)
    first = [run(session, x)[0] for _ in range(3)]
    assert not np.array_equal(first[0], first[1])
    session.reset_state()
    for before in first:
        np.testing.assert_array_equal(run(session, x)[0], before)
    session.state[STATE] = np.array(1, np.int64)
    np.testing.assert_array_equal(run(session, x)[0], first[1])
    again = pn.Session(session.program, target="cpu")
    np.testing.assert_array_equal(run(again, x)[0], first[0])


def test_distributions() -> None:
    """Mean, variance and 64 equal bins of 2^18 numbers; chi-square of 63 degrees of freedom, whose mean is 63 and whose
    standard deviation is 11.2."""
    n = 1 << 18

    def drawn(x: Tensor) -> Any:
        return (
            torch.rand(n) + x,
            torch.randn(n) + x,
            torch.randint(64, (n,)) + x.long(),
            torch.empty(n).exponential_() + x,
        )

    uniform, normal, integers, exponential = run(session_of(drawn, torch.zeros(1)), torch.zeros(1))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    for values, mean, variance in ((uniform, 0.5, 1 / 12), (normal, 0.0, 1.0), (exponential, 1.0, 1.0)):
        assert abs(values.mean(dtype=np.float64) - mean) < 6 * math.sqrt(variance / n)
        assert abs(values.var(dtype=np.float64) / variance - 1) < 6 * math.sqrt(8 / n)
    cumulated = 0.5 * (1 + np.array([math.erf(z / math.sqrt(2)) for z in normal.tolist()]))
    for share in (uniform, cumulated, (integers + 0.5) / 64, -np.expm1(-exponential.astype(np.float64))):
        counts = np.bincount(np.minimum((share * 64).astype(int), 63), minlength=64)
        assert ((counts - n / 64) ** 2 / (n / 64)).sum() < 63 + 5 * 11.2


def test_dropout_in_training_drops_and_scales() -> None:
    """An element is 0, or itself over 1 - p; whole channels are where they are features."""
    x = torch.rand(8, 16, 5, 5) + 1

    def dropped(x: Tensor) -> Any:
        return F.dropout(x, 0.25, training=True), F.dropout2d(x, 0.5, training=True), F.dropout(x, 0.25, training=False)

    some, channels, none = run(session_of(dropped, x), x)
    kept = some != 0
    np.testing.assert_allclose(some[kept], x.numpy()[kept] / 0.75, rtol=1e-6)
    assert abs(kept.mean() - 0.75) < 0.03
    whole = (channels != 0).reshape(8, 16, 25)
    assert (whole.all(-1) | ~whole.any(-1)).all()
    np.testing.assert_allclose(channels[channels != 0], x.numpy()[channels != 0] * 2, rtol=1e-6)
    np.testing.assert_array_equal(none, x.numpy())


def test_a_module_that_was_exported_in_training_mode() -> None:
    module = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3)).train()
    x = torch.randn(4, 6)
    program = torch.export.export(module, (x,))
    with pytest.raises(pn.ConversionError, match="dropout in training mode"):
        pn.load(program, x)
    session = pn.Session(pn.load(program, x, random="seeded").build(), target="cpu")
    first, second = (np.array(next(iter(session.run({"input": x}).values()))) for _ in range(2))
    assert not np.allclose(first, second)


def test_the_files_numbers_are_the_sessions() -> None:
    """Saved and opened again, and on other targets."""
    x = torch.zeros(9)
    session = session_of(lambda x: torch.randn(9) + x, x)
    program = pn.Program.from_bytes(session.program.to_bytes())
    wanted = run(session, x)[0]
    np.testing.assert_array_equal(run(pn.Session(program, target="cpu"), x)[0], wanted)
    np.testing.assert_allclose(run(pn.Session(program, target="softmetal"), x)[0], wanted, rtol=1e-5, atol=1e-6)


def test_without_the_option_they_are_refused_by_name() -> None:
    with pytest.raises(pn.ConversionError, match=r"aten\.randn.*random numbers differ from run to run"):
        pn.load(Of(lambda x: x + torch.randn(3)), torch.zeros(3))
    with pytest.raises(pn.InvalidArgument, match="random must be 'refuse' or 'seeded', is 'torch'"):
        pn.load(Of(lambda x: x), torch.zeros(3), random="torch")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, file = tmp_path / "net.pt2", tmp_path / "net.pnc"
    torch.export.save(torch.export.export(Of(lambda x: x + torch.randn(3)), (torch.zeros(3),)), source)
    assert cli.main(["convert", str(source), "-o", str(file)]) == 1
    assert "random numbers differ from run to run" in capsys.readouterr().err
    assert not file.exists()
    for arguments in (["convert", str(source), "-o", str(file)], ["check", str(source)], ["inspect", str(source)]):
        assert cli.main([*arguments, "--random", "seeded"]) == 0, capsys.readouterr().err
    assert "random_position" in pn.Program.open(file).states


def test_the_refusal_names_the_option() -> None:
    with pytest.raises(pn.ConversionError) as caught:
        pn.load(Of(lambda x: torch.special.bessel_j0(x) + torch.randn(3)), torch.zeros(3))
    assert str(caught.value).endswith(
        'What can be done: load(..., random="seeded") draws random numbers from a generator of pinnace\'s, where it '
        "has them; write it with other operators, or give its shape rule and code with custom_op()."
    )
    assert [problem.op for problem in caught.value.nodes] == [
        "aten.special_bessel_j0.default",
        "aten.randn.default",
    ]


def test_what_has_no_replacement_is_refused_by_name() -> None:
    with pytest.raises(pn.ConversionError, match=r"aten\.randperm.*random numbers differ from run to run"):
        pn.load(Of(lambda x: x[torch.randperm(3)] + torch.rand(3)), torch.zeros(3), random="seeded")


def test_a_module_that_draws_nothing_is_as_without_the_option() -> None:
    model = pn.load(Of(lambda x: x + 1), torch.zeros(3), random="seeded")
    assert NOTE not in model.notes
    assert not model.build().states
