"""What torch gives for NaN, for bytes and for random numbers, of models built on ordinary examples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinnace as pn
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_modules import Of


def outputs(module: nn.Module, examples: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> list[np.ndarray]:
    session = pn.Session(pn.load(module, examples).build())
    return list(session.run(dict(zip(session.inputs, inputs, strict=True))).values())


SPECIAL = torch.tensor([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 0.25, 2.0, -2.0, 1e-40, 3e38])


@pytest.mark.parametrize("function", [F.softshrink, F.hardshrink, torch.sign, torch.sgn], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_nan(function: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    x = SPECIAL.to(dtype)
    (got,) = outputs(Of(function), (torch.linspace(-2, 2, 12).to(dtype),), (x,))
    np.testing.assert_array_equal(got, function(x).numpy())


def test_sign_of_integers() -> None:
    x = torch.tensor([-5, 0, 7])
    (got,) = outputs(Of(torch.sign), (x,), (x,))
    np.testing.assert_array_equal(got, [-1, 0, 1])


# Each has few digits left where it is written as a sum with 1: near 0, or where it vanishes.
CANCELLING: dict[str, Callable[[Tensor], Tensor]] = {
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "erfc": torch.erfc,
    "log_ndtr": torch.special.log_ndtr,
    "xlog1py": lambda x: torch.special.xlog1py(torch.ones_like(x), x),
    "logaddexp": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x, torch.ones_like(x), reduction="none"),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x), reduction="none"),
    "bce": lambda x: F.binary_cross_entropy(x.nan_to_num().abs().clamp(0, 1), torch.zeros_like(x), reduction="none"),
}


@pytest.mark.parametrize("name", CANCELLING)
def test_small_results_keep_their_digits(name: str) -> None:
    """Each element by itself, against float64; -1, infinities, NaN and both zeros too."""
    function = CANCELLING[name]
    sizes = torch.logspace(-30, 1.2, 200)
    x = torch.cat(
        [sizes, -sizes, -1 + torch.tensor([0.0, 1e-6, 0.5]), torch.tensor([np.nan, np.inf, -np.inf, 0.0, -0.0])]
    )
    (got,) = outputs(Of(function), (torch.linspace(-2, 2, x.numel()),), (x,))
    want = function(x.double()).numpy()
    # exp(-x^2) in float32 is off by x^2 roundings.
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=1e-37)


@pytest.mark.parametrize("alpha", [1, 2])
def test_what_beta_0_leaves_out_may_be_nan(alpha: int) -> None:
    """Two terms, so that the sums have no rounding."""
    module = Of(lambda c, a, b: torch.addmm(c, a, b, beta=0, alpha=alpha))
    a, b = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.5, 1.0, 2.0], [4.0, 8.0, 16.0]])
    c = torch.tensor([[np.nan, np.inf, 1.0], [2.0, -np.inf, np.nan]])
    (got,) = outputs(module, (torch.ones(2, 3), a, b), (c, a, b))
    np.testing.assert_array_equal(got, (alpha * (a @ b)).numpy())


def test_minus_of_bytes_wraps() -> None:
    x = torch.tensor([0, 1, 127, 128, 255], dtype=torch.uint8)
    got = outputs(Of(lambda x: (-x, torch.neg(x))), (x,), (x,))
    for each in got:
        assert each.dtype == np.uint8
        np.testing.assert_array_equal(each, (-x).numpy())


@pytest.mark.parametrize(
    "function",
    [
        torch.rand_like, torch.bernoulli, lambda x: F.gumbel_softmax(x), lambda x: torch.multinomial(x.abs() + 1, 2),
        lambda x: x.clone().normal_(), lambda x: x + torch.randint(0, 5, (12,)),
    ],
)  # fmt: skip
def test_random_numbers_are_refused_in_so_many_words(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(pn.ConversionError, match="random numbers differ from run to run and cannot be verified"):
        pn.load(Of(function), (torch.rand(12),)).build()


NAN = float("nan")
# Of torch's functions that order elements: what they give where there are NaN.
ORDERED: dict[str, tuple[Callable[..., object], tuple[Tensor, ...]]] = {
    "searchsorted": (torch.searchsorted, (torch.tensor([1, 2, NAN, NAN]), torch.tensor([2.5, 5, NAN, 1]))),
    "searchsorted, right": (
        lambda s, v: torch.searchsorted(s, v, right=True),
        (torch.tensor([[1, 2, 3, NAN], [1, 2, NAN, NAN]]), torch.tensor([[1, 3, NAN], [1, 0, NAN]])),
    ),
    "bucketize": (
        lambda v, s: torch.bucketize(v, s, right=True),
        (torch.tensor([2.5, 5, NAN, 1]), torch.tensor([1, 2, NAN, NAN])),
    ),
    "unique": (
        lambda v: torch.unique(v, return_inverse=True, return_counts=True),
        (torch.tensor([NAN, 5, NAN, 5]),),
    ),
    "isin": (torch.isin, (torch.tensor([NAN, 5, 2]), torch.tensor([2, NAN, NAN]))),
}


@pytest.mark.parametrize("name", ORDERED)
def test_nan_in_order(name: str) -> None:
    function, given = ORDERED[name]
    examples = tuple(torch.arange(x.numel(), dtype=torch.float32).reshape(x.shape) for x in given)
    want = function(*given)
    for got, right in zip(
        outputs(Of(function), examples, given), want if isinstance(want, tuple) else [want], strict=True
    ):
        np.testing.assert_array_equal(got, right.numpy())


def test_rows_with_nan_differ_from_all_others() -> None:
    """In which order they come is not torch's to say: its comparison takes NaN for equal to every number."""
    module = Of(lambda v: torch.unique(v, dim=0, return_counts=True))
    rows = torch.tensor([[NAN, 1], [5, 1], [NAN, 1], [5, 1]])
    values, counts = outputs(module, (torch.arange(8.0).reshape(4, 2),), (rows,))
    np.testing.assert_array_equal(values, [[5, 1], [NAN, 1], [NAN, 1]])
    np.testing.assert_array_equal(counts, [2, 1, 1])


def test_bincount_of_a_negative_number_is_an_error() -> None:
    module = Of(lambda v: torch.bincount(v, minlength=4))
    session = pn.Session(pn.load(module, (torch.tensor([1, 2, 3]),)).build())
    (name,) = session.inputs
    (got,) = session.run({name: torch.tensor([0, 3, 3])}).values()
    np.testing.assert_array_equal(got, [1, 0, 0, 2])
    with pytest.raises(pn.InvalidArgument, match="outside"):
        session.run({name: torch.tensor([-1, 2, 3])})
