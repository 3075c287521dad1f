"""The definition of equal on two arrays: slices, magnitudes and sentinels, and what exact values excuse.
docs/verification.md states it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pinnace.agreement import agreement, slice_bound

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("width", [1, 2, 8, 16])
def test_no_slice_off_by_a_percent_is_equal(width: int) -> None:
    """One index of any axis (a channel, a row, an element) and a few beside each other, at magnitudes of 1e-6 to 1e3
    beside 1e3, a percent too large or too small."""
    for shape in ((2, 8, 5, 7), (3, 40, 24), (400, 6), (1, 1000), (4000,), (9,)):
        for axis in (axis for axis in range(len(shape)) if shape[axis] > width):
            for magnitude in (1e-6, 1e-3, 1.0, 1e3):
                want = normal(*shape) * 1e3
                at: list[Any] = [slice(None)] * len(shape)
                first = RANDOM.integers(shape[axis] - width + 1)
                at[axis] = slice(first, first + width)
                want[tuple(at)] = (RANDOM.uniform(0.5, 1, want[tuple(at)].shape) * magnitude).astype(np.float32)
                assert agreement(want.copy(), want).ok
                for factor in (1.01, 0.99):
                    got = want.copy()
                    got[tuple(at)] *= np.float32(factor)
                    assert not agreement(got, want).ok, (shape, axis, first, magnitude, factor)
    assert slice_bound(1e-4) < 1e-2


def test_one_channel_of_one_image_off_by_a_percent_is_not_equal() -> None:
    for magnitude in (1e-6, 1e-3, 1.0):
        want = normal(2, 8, 20, 20)
        want[1, 3] *= np.float32(magnitude)
        got = want.copy()
        got[1, 3] *= np.float32(1.01)
        assert not agreement(got, want).ok, magnitude


def test_a_mask_beside_logits_is_no_magnitude() -> None:
    want = normal(4, 100)
    for mark in (np.finfo(np.float32).min, -1e9, -np.inf):
        masked = want.copy()
        masked[2, 7] = mark
        off = masked.copy()
        off[0] *= np.float32(1.02)
        assert agreement(masked, masked.copy()).ok
        assert not agreement(off, masked).ok
        other = masked.copy()
        other[2, 7] = mark / 2 if np.isfinite(mark) else 0
        assert not agreement(other, masked).ok
        elsewhere = want.copy()
        elsewhere[2, 8] = mark
        assert not agreement(elsewhere, masked).ok


def test_large_values_of_16_bits_may_be_computed() -> None:
    want = np.array([1.0, 31744, -65504, 20000], np.float16)
    for got, ok in (([1.0, 31728, -65504, 20016], True), ([1.0, 31744, -64000, 20000], False)):
        assert agreement(np.array(got, np.float16), want).ok == ok
    want = np.array([1.0, np.finfo(np.float32).min], np.float32)
    assert not agreement((want * np.float32(1 - 4e-6)).astype(np.float32), want).ok


def test_large_values_that_are_computed_are_no_marks() -> None:
    want = np.concatenate([normal(100) * 1e-3, np.full(3, 640, np.float32)])
    assert agreement((want * np.float32(1 + 1e-5)).astype(np.float32), want).ok


def test_small_probabilities_beside_boxes() -> None:
    boxes, probabilities = normal(1, 4, 50) * 300 + 320, RANDOM.uniform(0, 1, (1, 3, 50)).astype(np.float32)
    for axis, parts in ((1, (boxes, probabilities)), (0, (boxes.ravel(), probabilities.ravel()))):
        want = np.concatenate(parts, axis)
        assert agreement(want, want.copy()).ok
        assert not agreement(np.concatenate([parts[0], parts[1] * np.float32(0.94)], axis), want).ok


def test_rounding_of_a_sum_is_equal() -> None:
    """Values that cross zero have errors of their neighbours' size, not of their own."""
    exact = RANDOM.standard_normal((1, 21, 64, 64))
    want = (exact + RANDOM.normal(0, 1e-6, exact.shape)).astype(np.float32)
    got = (exact + RANDOM.normal(0, 1e-6, exact.shape)).astype(np.float32)
    assert agreement(got, want).ok


def test_a_slice_as_near_to_float64_as_the_source_is_equal() -> None:
    exact = RANDOM.uniform(1e-9, 1e-7, (1, 1, 40, 40))
    coarse = (np.round(exact / 2**-25) * 2**-25).astype(np.float32)
    fine = exact.astype(np.float32)
    assert not agreement(fine, coarse).ok
    found = agreement(fine, coarse, exact=exact)
    assert found.ok
    assert found.exact is not None
    assert found.exact[0] < 1e-6 < 1e-2 < found.exact[1]
    assert not agreement(coarse, fine, exact=exact).ok  # the other way round nothing excuses it


def test_what_overflows_in_the_source_alone() -> None:
    """log(1 + exp(x)) of 16 bits: infinite in the source from 12 on, x in a program that does not overflow."""
    x = np.array([1.0, 11.0, 12.0, 60.0, np.inf], np.float16)
    exact = np.log1p(np.exp(x.astype(np.float64)))
    exact[4] = np.inf
    want = np.where(x >= 12, np.float16(np.inf), exact.astype(np.float16))
    got = exact.astype(np.float16)
    found = agreement(got, want, exact=exact)
    assert found.ok
    assert "not finite where float64 is" in found.note
    assert not agreement(got, want).ok
    assert not agreement(got * np.float16(1.1), want, exact=exact).ok
    assert not agreement(want, got, exact=exact).ok, "what overflows in the program alone is wrong"
    got[4] = 3
    assert not agreement(got, want, exact=exact).ok, "what is infinite in float64 stays so"


def test_an_exact_run_in_float32_excuses_rounding_alone() -> None:
    """fft.hfft makes float32 of bools whatever the run's type is: its exact run is the source."""
    want = np.linspace(-0.4, 0.4, 60, dtype=np.float32)
    want[30] = -4e-9  # 0, but for rounding
    got = want.copy()
    got[30] = 3e-8
    assert agreement(got, want, exact=want.astype(np.float64)).ok
    got[30] = 3e-7
    assert not agreement(got, want, exact=want.astype(np.float64)).ok, "beyond rounding"
    got[30] = 3e-8
    other = want.astype(np.float64)
    other[::2] += 1e-9
    other[30] = want[30]
    assert not agreement(got, want, exact=other).ok, "an exact run that says more than the source"


def test_sums_that_cancel_are_not_exactly_zero() -> None:
    """The imaginary part of a spectrum's first element: 0 in a source that is exact there, a rounding error here."""
    want = np.zeros((8, 2), np.float32)
    want[:, 0] = RANDOM.permutation(8) + 1
    want[1:, 1] = RANDOM.permutation(7) + 1
    exact = want.astype(np.float64)
    for size, ok in ((4e-8, True), (1.8e-7, True), (1e-6, False), (1e-3, False)):
        got = want.copy()
        got[0, 1] = size * 8
        assert agreement(got, want, exact=exact).ok == ok, size
        assert not agreement(got, want).ok


def test_rounding_errors_of_inputs_excuse_a_percent() -> None:
    """Of a slice, however far they move the exact values; of one that is small beside the whole, the bound of that."""
    want = np.linspace(1, 2, 64, dtype=np.float32).reshape(8, 8)
    want[3] *= 1e-4
    exact = want.astype(np.float64)
    spread = [exact * 1.1, exact + 0.01]
    for rows, factor, ok in ((slice(4, 8), 1.005, True), (slice(4, 8), 1.02, False), (3, 1.5, True), (3, 4.0, False)):
        got = want.copy()
        got[rows] *= np.float32(factor)
        assert not agreement(got, want, exact=exact).ok
        assert agreement(got, want, exact=exact, spread=spread).ok == ok, (rows, factor)
