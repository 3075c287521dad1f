"""eigh, svd and qr: PyTorch's functions that need them, modules that use them, and how signs of vectors are verified.

What holds of a decomposition without another library (it multiplies to the matrix, vectors are orthonormal, values are
in order) is tested here on matrices that are known to be hard; single values are in tests/cases.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from pinnace import _core
from pinnace.sources.vector_signs import vector_signs
from single_op import ours
from torch import Tensor, nn

linalg = torch.linalg


class Function(nn.Module):
    """A module of one expression."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def converted(module: nn.Module, *inputs: Tensor, **options: Any) -> tuple[pn.Model, pn.Program]:
    model = pn.load(module.eval(), inputs, **options)
    return model, model.build()


def run(program: pn.Program, *inputs: Tensor, **options: Any) -> list[np.ndarray]:
    session = pn.Session(program, **options)
    return list(session.run(dict(zip(session.inputs, inputs, strict=True))).values())


def random(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# ------------------------------------------------------------------------------------------------- what must hold of it


def matrices(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Square ones, of values that are far apart, equal, 0 or hardly to be told from 0."""
    n = np.arange(10)
    thin = rng.standard_normal((12, 3))
    turned = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    return {
        "random": rng.standard_normal((17, 17)),
        "Hilbert": 1 / (n[:, None] + n + 1.0),
        "rank 3": thin @ thin.T,
        "repeated values": (turned * np.repeat([1.0, 2, 5], 4)) @ turned.T,
        "identity": np.eye(5),
        "zero": np.zeros((4, 4)),
        "ones": np.ones((6, 6)),
        "second differences": 2 * np.eye(31) - np.eye(31, k=1) - np.eye(31, k=-1),
        "Wilkinson": np.diag(np.abs(np.arange(-10, 11.0))) + np.eye(21, k=1) + np.eye(21, k=-1),
        "graded": rng.standard_normal((12, 12)) * 10.0 ** (-3 * np.arange(12)),
        "large": 1e300 * rng.standard_normal((5, 5)),
        "small": 1e-300 * rng.standard_normal((5, 5)),
        "one element": np.array([[-3.0]]),
    }


MATRICES = list(matrices(np.random.default_rng(0)))


def orthonormal(v: np.ndarray) -> None:
    """Columns are."""
    np.testing.assert_allclose(v.T @ v, np.eye(v.shape[-1]), rtol=0, atol=1e-13)


def leading_is_positive(vectors: np.ndarray) -> None:
    """The rule for signs, on columns."""
    for v in vectors.T:
        assert v[np.argmax(np.abs(v) >= 0.9 * np.abs(v).max(initial=0))] > 0


@pytest.mark.parametrize("name", MATRICES)
def test_eigh_decomposes(name: str, rng: np.random.Generator) -> None:
    a = matrices(rng)[name]
    a = a + a.T
    size = np.abs(a).max(initial=0) or 1.0
    w, v = ours("eigh", [a], {}, outputs=2)
    assert np.all(np.diff(w) >= 0)
    orthonormal(v)
    leading_is_positive(v)
    np.testing.assert_allclose((v * (w / size)) @ v.T, a / size, rtol=0, atol=2e-14 * len(a))
    np.testing.assert_array_equal(ours("eigh", [a], {})[0], w)
    np.testing.assert_array_equal(ours("eigh", [np.triu(a)], {"upper": 1})[0], w)


@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("form", ["square", "tall", "wide"])
@pytest.mark.parametrize("name", MATRICES)
def test_svd_decomposes(name: str, form: str, full: int, rng: np.random.Generator) -> None:
    a = matrices(rng)[name]
    half = (len(a) + 1) // 2
    a = a[:, :half] if form == "tall" else a[:half] if form == "wide" else a
    size = np.abs(a).max(initial=0) or 1.0
    s, u, vt = ours("svd", [a], {"full_matrices": full}, outputs=3)
    count = min(a.shape)
    assert s.shape == (count,)
    assert u.shape == (len(a), len(a) if full else count)
    assert vt.shape == (a.shape[1] if full else count, a.shape[1])
    assert np.all(np.diff(s) <= 0)
    assert np.all(s >= 0)
    orthonormal(u)
    orthonormal(vt.T)
    leading_is_positive(u[:, :count])
    np.testing.assert_allclose((u[:, :count] * (s / size)) @ vt[:count], a / size, rtol=0, atol=2e-14 * max(a.shape))
    np.testing.assert_array_equal(ours("svd", [a], {})[0], s)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("form", ["square", "tall", "wide"])
@pytest.mark.parametrize("name", MATRICES)
def test_qr_decomposes(name: str, form: str, mode: str, rng: np.random.Generator) -> None:
    a = matrices(rng)[name]
    half = (len(a) + 1) // 2
    a = a[:, :half] if form == "tall" else a[:half] if form == "wide" else a
    size = np.abs(a).max(initial=0) or 1.0
    q, r = ours("qr", [a], {"mode": mode}, outputs=2)
    np.testing.assert_array_equal(r, np.triu(r))
    if mode == "r":
        assert q.shape == (0,)
        np.testing.assert_array_equal(r, ours("qr", [a], {}, outputs=2)[1])
        return
    assert q.shape == (len(a), len(a) if mode == "complete" else min(a.shape))
    orthonormal(q)
    np.testing.assert_allclose(q @ (r / size), a / size, rtol=0, atol=1e-14 * max(a.shape))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (1, 3), (3, 1), (3, 7, 4)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_has_lapacks_signs(shape: tuple[int, ...], mode: str, rng: np.random.Generator) -> None:
    a = rng.standard_normal(shape)
    for got, want in zip(ours("qr", [a], {"mode": mode}, outputs=2), linalg.qr(torch.from_numpy(a), mode), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=0, atol=1e-13)


def test_hilberts_smallest_singular_value() -> None:
    """Of order 8, to 1e-6 of itself, which is 7e-11 of the largest: 1.11153896e-10."""
    n = np.arange(8)
    values = ours("svd", [1 / (n[:, None] + n + 1.0)], {})[0]
    np.testing.assert_allclose(values[[0, -1]], [1.69593899692195, 1.11153896643e-10], rtol=1e-6)


def test_a_matrix_of_64_rows_takes_milliseconds() -> None:
    """CPU time; 1 to 3 ms where nothing else runs."""
    a = random(64, 64).numpy()
    a = a + a.T
    ours("eigh", [a], {}, outputs=2)
    begun = time.process_time()
    ours("eigh", [a], {}, outputs=2)
    assert time.process_time() - begun < 0.1


# ------------------------------------------------------------------------------------------------------ whole functions

FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "eigvalsh": lambda x: linalg.eigvalsh(x.mT @ x),
    "eigvalsh, upper": lambda x: linalg.eigvalsh((x.mT @ x).triu(), UPLO="U"),
    "svdvals": linalg.svdvals,
    "qr": linalg.qr,
    "qr, complete": lambda x: linalg.qr(x, "complete"),
    "qr, r": lambda x: linalg.qr(x, "r")[1],
    "torch.qr": lambda x: torch.qr(x, some=False),
    "norm, nuclear": lambda x: torch.norm(x, "nuc", dim=(-2, -1)),
    "matrix_norm, 2": lambda x: linalg.matrix_norm(x, 2),
    "matrix_norm, -2": lambda x: linalg.matrix_norm(x, -2),
    "cond": linalg.cond,
    "cond, -2": lambda x: linalg.cond(x, -2),
    "matrix_rank": lambda x: torch.cat(
        [linalg.matrix_rank(x)[..., None], linalg.matrix_rank(x, tol=1.5)[..., None]], -1
    ),
    "pinv": linalg.pinv,
    "pinv, rtol": lambda x: linalg.pinv(x, rtol=0.3),
    "pinv, atol and rtol": lambda x: linalg.pinv(x, atol=0.9, rtol=0.1),
    "pinv, rcond": lambda x: linalg.pinv(x, 0.25),
    "pinv, hermitian": lambda x: linalg.pinv(x.mT @ x, hermitian=True),
    "pinverse": lambda x: torch.pinverse(x),
    "u s vh": lambda x: (lambda u, s, vh: (u * s.unsqueeze(-2)) @ vh)(*linalg.svd(x, full_matrices=False)),
    "square root": lambda x: (lambda w, v: (v * w.abs().sqrt().unsqueeze(-2)) @ v.mT)(*linalg.eigh(x.mT @ x)),
    "projection": lambda x: (lambda q: q @ q.mT)(linalg.qr(x)[0]),
}


@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 6, 3)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_needs_no_signs_equals_the_module_itself(name: str, shape: tuple[int, ...]) -> None:
    _, program = converted(Function(FUNCTIONS[name]), random(*shape))
    assert program.metadata["verified.cpu"].startswith("yes")
    assert "turned" not in program.metadata["verified.cpu"]


@pytest.mark.parametrize("shape", [(4, 6), (0, 3), (3, 0), (0, 3, 3)])
def test_wide_and_empty_matrices(shape: tuple[int, ...]) -> None:
    for function in (linalg.svdvals, linalg.qr, linalg.pinv, lambda x: linalg.qr(x, "complete")):
        x = random(*shape)
        program = pn.load(Function(function), (x,)).build(verify=x.numel() > 0)
        wanted = function(x)
        for got, want in zip(run(program, x), wanted if isinstance(wanted, tuple) else [wanted], strict=True):
            assert_agree(got, want.numpy())


# ---------------------------------------------------------------------------- determinants, triangles, what is singular

E = torch.eye(200)
HARD: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]]] = {
    "slogdet that vanishes": (linalg.slogdet, (E,), (0.01 * E,)),
    "slogdet that overflows": (linalg.slogdet, (E,), (-100 * E,)),
    "slogdet of double": (linalg.slogdet, (E.double(),), (1e-3 * E.double(),)),
    "slogdet of several, one singular": (
        linalg.slogdet,
        (torch.eye(3).expand(2, 3, 3) + 0,),
        (torch.stack([torch.ones(3, 3), torch.diag(torch.tensor([-1e-20, 1e-20, 1e-20]))]),),
    ),
    "logdet of a covariance": (torch.logdet, (1.1 * torch.eye(400),), (torch.cov(0.1 * random(400, 2000)),)),
    "logdet below 0": (torch.logdet, (torch.eye(2),), (torch.tensor([[-1.0, 0], [0, 1]]),)),
    "cholesky_solve": (
        torch.cholesky_solve,
        (torch.ones(2, 1), torch.eye(2)),
        (torch.tensor([[1.0], [2]]), torch.tensor([[1.0, 0], [1, 1e-4]])),
    ),
    "cholesky_solve, upper": (
        lambda b, u: torch.cholesky_solve(b, u, upper=True),
        (torch.ones(2, 1), torch.eye(2)),
        (torch.tensor([[1.0], [2]]), torch.tensor([[1.0, 1], [7, 1e-4]])),
    ),
    "cholesky_inverse": (torch.cholesky_inverse, (torch.eye(2),), (torch.tensor([[1.0, 7], [1, 1e-4]]),)),
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=False),
        (torch.eye(2), torch.ones(2, 1)),
        (torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[1.0], [2]])),
    ),
    "solve_triangular, right, unit": (
        lambda a, b: linalg.solve_triangular(a, b, upper=True, left=False, unitriangular=True),
        (torch.eye(3), torch.ones(2, 3)),
        (random(3, 3), random(2, 3)),
    ),
    "inv_ex of zeros": (linalg.inv_ex, (torch.eye(2),), (torch.zeros(2, 2),)),
    "solve_ex": (
        linalg.solve_ex,
        (torch.eye(2), torch.ones(2, 1)),
        (torch.tensor([[1.0, 2], [2, 4]]), torch.ones(2, 1)),
    ),
    "cholesky_ex": (linalg.cholesky_ex, (torch.eye(2),), (-torch.eye(2),)),
    "cholesky_ex, upper": (
        lambda a: linalg.cholesky_ex(a, upper=True),
        (torch.eye(3),),
        (torch.tensor([[1.0, 2, 3], [2, 1, 3], [3, 3, 50]]),),
    ),
    "inv of NaN": (linalg.inv, (torch.eye(2),), (torch.tensor([[1.0, 0], [0, torch.nan]]),)),
}


@pytest.mark.parametrize("name", HARD)
def test_matrices_at_the_edge(name: str) -> None:
    """What is built on ordinary matrices gives what torch gives on those that lose digits, or have no inverse."""
    function, examples, inputs = HARD[name]
    _, program = converted(Function(lambda *x: tuple(y) if isinstance(y := function(*x), tuple) else y), *examples)
    wanted = function(*inputs)
    for got, want in zip(run(program, *inputs), wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-5)


def test_inverses_of_singular_matrices_are_refused() -> None:
    for function in (linalg.inv, torch.inverse, lambda a: linalg.solve(a, a), lambda a: linalg.cholesky(a - 1)):
        _, program = converted(Function(function), torch.eye(2) + (function is not linalg.inv))
        with pytest.raises(_core.InvalidArgument, match=r"matrix 0 of a is (singular|not positive definite)"):
            run(program, torch.ones(2, 2))


# ---------------------------------------------------------------------------------------------------------------- signs

VECTORS: dict[str, Callable[[Tensor], Any]] = {
    "eigh": lambda x: linalg.eigh(x.mT @ x),
    "eigh, upper": lambda x: linalg.eigh((x.mT @ x).triu(), UPLO="U"),
    "svd": linalg.svd,
    "svd, reduced": lambda x: linalg.svd(x, full_matrices=False),
    "torch.svd": lambda x: torch.svd(x),
    "behind layers": lambda x: torch.tanh(linalg.eigh(x.mT @ x)[1] @ x.mT).cumsum(-1),
}


@pytest.mark.parametrize("shape", [(6, 4), (3, 5, 4), (4, 4)])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_have_the_operators_signs(name: str, shape: tuple[int, ...]) -> None:
    """The program is equal to the module whose vectors are turned, and both a note and the metadata say so."""
    x = random(*shape)
    model, program = converted(Function(VECTORS[name]), x)
    assert any("signs of the vectors" in note for note in model.notes)
    said = program.metadata["verified.cpu"]
    assert said.startswith("yes")
    assert "turned to the operators' signs" in said
    with vector_signs():
        wanted = VECTORS[name](x)
    for got, want in zip(run(program, x), wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=0, atol=2e-4)


@pytest.mark.parametrize("shape", [(2, 7), (7, 2), (2, 4, 5)])
def test_full_matrices_of_other_forms(shape: tuple[int, ...]) -> None:
    x = random(*shape)
    _, program = converted(Function(linalg.svd), x)
    u, s, vh = run(program, x)
    count = s.shape[-1]
    np.testing.assert_allclose((u[..., :count] * s[..., None, :]) @ vh[..., :count, :], x.numpy(), rtol=0, atol=1e-5)


def test_vectors_that_nobody_reads_give_no_note() -> None:
    model, _ = converted(Function(lambda x: linalg.svd(x)[1] + linalg.pinv(x).sum()), random(4, 4))
    assert not any("signs" in note for note in model.notes)


def test_a_wrong_sign_is_found() -> None:
    """Signs are allowed to differ by the rule alone: a program whose second vector is turned is not the module's."""
    x = random(5, 4)

    class Eigenvectors(nn.Module):
        def __init__(self, sign: float) -> None:
            super().__init__()
            self.sign = nn.Buffer(torch.tensor([1.0, sign, 1.0, 1.0]))

        def forward(self, x: Tensor) -> Tensor:
            vectors: Tensor = linalg.eigh(x.mT @ x)[1]
            return vectors * self.sign

    _, right = converted(Eigenvectors(1.0), x)
    inputs = dict.fromkeys(right.inputs, x)
    assert pn.compare(right, Eigenvectors(1.0), [inputs]).ok
    assert not pn.compare(right, Eigenvectors(-1.0), [inputs]).ok


def test_inner_vectors_are_compared_with_the_same_signs() -> None:
    x = random(6, 4)
    module = Function(lambda x: (lambda w, v: (v * w.unsqueeze(-2)) @ v.mT)(*linalg.eigh(x.mT @ x)))
    _, program = converted(module, x)
    compared = pn.compare(program, module, [dict.fromkeys(program.inputs, x)])
    assert compared.ok
    assert any(row.op == "eigh" and row.value for row in compared.rows)


def test_equal_eigenvalues_are_said_to_leave_vectors_open() -> None:
    """A matrix of rank 1 with five rows has the eigenvalue 0 four times."""
    with pytest.raises(pn.VerificationError, match="are not determined by the model"):
        converted(Function(lambda x: linalg.eigh(x @ x.mT)[1]), random(5, 1))


def test_scripts_have_the_same_signs() -> None:
    x = random(5, 4)
    script = torch.jit.trace(Function(lambda x: linalg.eigh(x.mT @ x)), x)  # type: ignore[no-untyped-call]
    program = pn.load(script, (x,)).build()
    assert program.metadata["verified.cpu"].startswith("yes")


# -------------------------------------------------------------------------------------------------------------- modules


class Whitening(nn.Module):
    """PCA whitening of a batch by its own covariance."""

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(0)
        values, vectors = linalg.eigh(centred.mT @ centred / x.shape[0] + 1e-3 * torch.eye(x.shape[1]))
        white: Tensor = centred @ vectors @ torch.diag(values.rsqrt()) @ vectors.mT
        return white


class Truncated(nn.Module):
    """A layer whose weight is cut to its two largest singular values when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(random(8, 6))

    def forward(self, x: Tensor) -> Tensor:
        u, s, vh = linalg.svd(self.weight, full_matrices=False)
        weight: Tensor = (u[:, :2] * s[:2]) @ vh[:2]
        return x @ weight.mT


class Orthogonal(nn.Module):
    """A layer with a weight that QR makes orthogonal, and a positive diagonal."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(random(6, 6))

    def forward(self, x: Tensor) -> Tensor:
        q, r = linalg.qr(self.weight)
        weight: Tensor = q * torch.diagonal(r).sign()
        return x @ weight


class LeastSquares(nn.Module):
    """Weights of a linear fit, by the pseudo-inverse."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        inverse: Tensor = linalg.pinv(x)
        return inverse @ y


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (Whitening(), [random(20, 6)]),
        (Truncated(), [random(3, 6)]),
        (Orthogonal(), [random(3, 6)]),
        (LeastSquares(), [random(12, 4), random(12, 2, seed=4)]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_modules(module: nn.Module, inputs: list[Tensor]) -> None:
    _, program = converted(module, *inputs)
    assert program.metadata["verified"].startswith("1 input(s)")
    assert "turned" not in program.metadata["verified.cpu"]
    with torch.no_grad():
        assert_agree(run(program, *inputs)[0], module(*inputs).numpy())
    one, two = (run(program, *inputs, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_dynamic_sizes() -> None:
    rows = torch.export.Dim("rows", min=4, max=64)
    _, program = converted(Whitening(), random(20, 6), dynamic_shapes=({0: rows},))
    assert program.metadata["verified.sizes"].startswith("yes")
    _, program = converted(Function(linalg.svdvals), random(7, 5), dynamic_shapes=(({0: rows},),))
    assert_agree(run(program, random(4, 5))[0], linalg.svdvals(random(4, 5)).numpy())
    with torch.no_grad():
        (got,) = run(program, random(30, 5))
        assert_agree(got, linalg.svdvals(random(30, 5)).numpy())


@pytest.mark.parametrize("offset", [0, 2, -3])
@pytest.mark.parametrize("dims", [{1: "n"}, {2: "n"}, {1: "rows", 2: "columns"}, {1: "side", 2: "side"}], ids=str)
def test_diagonals_of_dynamic_sizes(dims: dict[int, str], offset: int) -> None:
    """From matrices with one or two dynamic sides, and of vectors, also where they are empty."""

    def diagonals(x: Tensor) -> list[Tensor]:
        matrix, vector, truth = x[1], x[:, 0], x > 0
        return [
            x.diagonal(offset, 1, 2) * 2,
            x.diagonal(offset, 2, 1) + 1,
            truth.diagonal(offset, 1, 2).logical_not(),
            torch.diag(matrix, offset),
            torch.trace(matrix),
            torch.diag_embed(vector, offset),
            torch.diag_embed(vector > 0, offset, 0, 2),
            torch.diagflat(matrix[0], offset),
        ]

    known = {name: pn.Dim(name, 2, 40) for name in dims.values()}
    shapes = (({axis: known[name] for axis, name in dims.items()},),)
    program = pn.load(Function(diagonals), (random(3, 7, 7 if len(known) < len(dims) else 5),), shapes).build()
    for side, other in ((2, 5), (5, 2), (4, 9), (40, 30), (3, 3)):
        sizes = [side if 1 in dims else 7, other if 2 in dims else 5]
        if len(known) < len(dims):
            sizes[1] = sizes[0]
        x = random(3, *sizes)
        for got, wanted in zip(run(program, x), diagonals(x), strict=True):
            assert_agree(got, wanted.numpy())


def test_many_matrices_give_the_same_bits_on_two_threads() -> None:
    x = random(300, 9, 7)
    program = pn.load(Function(lambda x: (*linalg.svd(x), *linalg.eigh(x.mT @ x), *linalg.qr(x))), (x,)).build(
        verify=False
    )
    for one, two in zip(run(program, x, threads=1), run(program, x, threads=2), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused_with_its_place(value: float) -> None:
    x = random(2, 3, 3)
    program = pn.load(Function(linalg.svdvals), (x,)).build()
    x[1, 2, 0] = value
    with pytest.raises(_core.InvalidArgument, match=r"matrix 1 of a has (nan|inf) at \[2, 0\]"):
        run(program, x)
