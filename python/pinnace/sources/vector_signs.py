"""Torch models whose eigenvectors and singular vectors have the signs of the operators `eigh` and `svd`.

A vector v and -v are eigenvectors alike, and LAPACK, which torch asks, chooses by its algorithm. The operators choose
by a rule (cpp/ops/eigh.cc, cpp/ops/svd.cc). For a comparison of what depends on that choice, torch's vectors are given
the same signs here, right behind torch's own decomposition, and everything else of the model runs as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pinnace.sources.base import Source, Steps, steps_of
from pinnace.types import Array

if TYPE_CHECKING:
    import torch

    from pinnace.sources.rounding import Rounding

# Of the largest magnitude in a vector: the first element that has as much is positive.
LEADING = 0.9


def vector_signs() -> Any:
    """A mode of torch's within which torch.linalg.eigh and torch.linalg.svd, and what calls them, give such vectors.

    What full matrices have beyond the singular vectors is the end of QR's complete q of these, as in the operator: any
    other basis of that space would do as well.
    """
    import torch
    from torch.utils import _python_dispatch

    aten = torch.ops.aten
    # In inference mode torch's own functions come here; else what they call.
    eigh = (aten._linalg_eigh.default, aten.linalg_eigh.default)
    svd = (aten._linalg_svd.default, aten.linalg_svd.default)
    base: Any = _python_dispatch.TorchDispatchMode

    class Signs(base):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if func in eigh and made[1].numel():
                return type(made)((made[0], made[1] * _signs(made[1])))
            if func in svd and made[0].numel() and made[2].numel():
                return type(made)(_with_signs(*made))
            return made

    return Signs()


def _with_signs(u: torch.Tensor, s: torch.Tensor, vh: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The decomposition with turned pairs of vectors, and with the further ones of full matrices made anew."""
    count = s.shape[-1]
    if count == 0:
        return u, s, vh
    signs = _signs(u[..., :count])
    left, right = u[..., :count] * signs, vh[..., :count, :] * signs.mT
    return _completed(left, u.shape[-1]), s, _completed(right.mT, vh.shape[-2]).mT


def _signs(vectors: torch.Tensor) -> torch.Tensor:
    """1 or -1 for each column: the sign of the first element whose magnitude is LEADING of the largest."""
    magnitudes = vectors.abs()
    leading = (magnitudes >= LEADING * magnitudes.amax(-2, keepdim=True)).byte().argmax(-2, keepdim=True)
    return 1 - 2 * (vectors.gather(-2, leading) < 0).to(vectors.dtype)


def _completed(vectors: torch.Tensor, columns: int) -> torch.Tensor:
    """Orthonormal columns, followed by those that QR adds."""
    import torch

    count = vectors.shape[-1]
    if count == columns:
        return vectors
    return torch.cat([vectors, torch.linalg.qr(vectors, mode="complete")[0][..., count:]], -1)


class SignedSource:
    """A source that torch runs, with such vectors."""

    def __init__(self, source: Source) -> None:
        """source: as it is."""
        self._source = source
        self.description = source.description

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Outputs of one call."""
        with vector_signs():
            return self._source.run(inputs)

    def run_steps(self, steps: Sequence[Sequence[Array]]) -> Steps:
        """As base.steps_of()."""
        with vector_signs():
            return steps_of(self._source, steps)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """Inner values, as the source has them."""
        with vector_signs():
            return self._source.layers(inputs, names)

    def float64(self) -> Source | None:
        """The source in double precision, likewise."""
        make = getattr(self._source, "float64", None)
        wide = make() if make else None
        return None if wide is None else SignedSource(wide)

    def rounded(self, rounding: Rounding) -> SignedSource:
        """Of one in double precision: with rounding errors."""
        make: Any = getattr(self._source, "rounded")  # noqa: B009 (not every source has it)
        return SignedSource(make(rounding))

    def with_values(self, inputs: Sequence[Array], given: Mapping[str, Array]) -> tuple[list[Array], dict[str, Array]]:
        """As in Source."""
        make: Any = getattr(self._source, "with_values")  # noqa: B009
        with vector_signs():
            made: tuple[list[Array], dict[str, Array]] = make(inputs, given)
            return made


__all__ = ["SignedSource", "vector_signs"]
