"""torch.istft(length=...) of a dynamic length: torch takes a number there, by which torch.export fixes the length for
good. Within istft_of_dynamic_length() it is the same formula by operators that take lengths as they come.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def istft_of_dynamic_length() -> Iterator[None]:
    """For a block that exports: torch.istft and Tensor.istft, which are the process's, are replaced. To be entered
    within isolated_inference(), of which one block runs at a time."""
    import torch

    function, method = torch.istft, torch.Tensor.istft
    functions: Any = torch
    methods: Any = torch.Tensor
    functions.istft = methods.istft = _istft(function)
    try:
        yield
    finally:
        functions.istft, methods.istft = function, method


def _istft(fixed: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The transform, by `fixed` where the length is a number or not given."""

    def istft(
        input: torch.Tensor,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: torch.Tensor | None = None,
        center: bool = True,
        normalized: bool = False,
        onesided: bool | None = None,
        length: Any = None,
        return_complex: bool = False,
    ) -> torch.Tensor:
        import torch

        if not isinstance(length, torch.SymInt) or return_complex:
            options = (hop_length, win_length, window, center, normalized, onesided, length, return_complex)
            return fixed(input, n_fft, *options)
        half = onesided if onesided is not None else input.shape[-2] != n_fft
        norm = "ortho" if normalized else "backward"
        if half:
            frames = torch.fft.irfft(input, n_fft, -2, norm)
        else:
            frames = torch.fft.ifft(input, n_fft, -2, norm).real
        step = n_fft // 4 if hop_length is None else hop_length
        width = n_fft if win_length is None else win_length
        if window is None:
            window = torch.ones(width, dtype=frames.dtype, device=frames.device)
        before = (n_fft - width) // 2
        window = torch.nn.functional.pad(window, (before, n_fft - width - before))[:, None]
        count = frames.shape[-1]
        whole = n_fft + step * (count - 1)
        start = n_fft // 2 if center else 0
        silence: Any = torch.sym_max(0, start + length - whole)  # type: ignore[no-untyped-call]  # behind the last frame

        def overlapped(one: torch.Tensor) -> torch.Tensor:
            image = torch.nn.functional.fold(one, (1, whole), (1, n_fft), stride=(1, step))
            line = torch.nn.functional.pad(image.flatten(-3), (0, silence))
            return line[..., start : start + length]

        squares = overlapped((window * window).expand(n_fft, count))
        return overlapped(frames * window) / torch.where(squares == 0, 1, squares)

    return istft


__all__ = ["istft_of_dynamic_length"]
