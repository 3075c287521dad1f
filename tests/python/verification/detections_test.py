"""Detections compared as sets: another order and what lies at a threshold pass, everything else is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from pinnace.agreement import BOUNDS
from pinnace.types import Array
from pinnace.verify.detections import Group, Thresholds, judge
from pinnace.verify.quantized_allowance import QuantizedAllowance

GROUP = Group(0, 1, 2, (3,), Thresholds((0.05,), (0.5,)))
# 40 detections on a grid: rows of boxes of one size and label, that overlap no other.
COUNT = 40


def f32(*values: float) -> Array:
    return np.asarray(values, np.float32)


def detected(rng: np.random.Generator) -> list[Array]:
    at = np.stack(np.meshgrid(np.arange(8), np.arange(5)), -1).reshape(-1, 2) * 40.0
    at = at + rng.uniform(0, 5, at.shape)
    boxes = np.concatenate([at, at + rng.uniform(20, 30, at.shape)], 1).astype(np.float32)
    scores = np.sort(rng.uniform(0.1, 1, COUNT).astype(np.float32))[::-1].copy()
    masks = rng.random((COUNT, 1, 6, 7), np.float32)
    return [boxes, scores, rng.integers(0, 3, COUNT), masks]


def noise(arrays: Sequence[Array], rng: np.random.Generator) -> list[Array]:
    return [
        np.asarray((a * (1 + 1e-6 * rng.standard_normal(a.shape))).astype(a.dtype)) if a.dtype.kind == "f" else a
        for a in arrays
    ]


def verdict(
    got: Sequence[Array],
    want: Sequence[Array],
    runs: Sequence[Sequence[Array]] = (),
    group: Group = GROUP,
    double: bool = True,
) -> tuple[bool, str, str]:
    """double: the first of the runs is in float64, if there are any."""
    others = (runs[0], runs[1:]) if runs and double else (None, runs)
    verdicts = judge(group, got, want, BOUNDS, lambda: others).values()
    whys, notes = [v.why for v in verdicts if not v.ok], [v.note for v in verdicts if v.note]
    return all(v.ok for v in verdicts), "; ".join(whys), "; ".join(notes)


def without(arrays: Sequence[Array], row: int) -> list[Array]:
    return [np.delete(a, row, axis=0) for a in arrays]


def with_row(arrays: Sequence[Array], row: int, place: int, value: object) -> list[Array]:
    changed = [a.copy() for a in arrays]
    changed[place][row] = value
    return changed


def test_another_order_and_rounding_pass(rng: np.random.Generator) -> None:
    want = detected(rng)
    order = rng.permutation(COUNT)
    assert verdict([a[order] for a in noise(want, rng)], want) == (True, "", "")
    assert verdict([a[:0] for a in want], [a[:0] for a in want]) == (True, "", "")


MUTATIONS: dict[str, tuple[Callable[[list[Array], int], list[Array]], str]] = {
    "box shifted by 2 % of its width": (
        lambda a, r: with_row(a, r, 0, a[0][r] + 0.02 * (a[0][r, 2] - a[0][r, 0]) * f32(1, 0, 1, 0)),
        "of its longer side in detection",
    ),
    "box shifted by its width": (
        lambda a, r: with_row(a, r, 0, a[0][r] + (a[0][r, 2] - a[0][r, 0]) * f32(1, 0, 1, 0)),
        "of the source .* is none of the other's",
    ),
    "label changed": (lambda a, r: with_row(a, r, 2, 7), "is none of the other's"),
    "detection dropped": (without, "is none of the other's: 39 detections for 40"),
    "detection twice": (lambda a, r: [np.concatenate([x, x[r : r + 1]]) for x in a], "of the program .* is none"),
    "score 1 % off": (lambda a, r: with_row(a, r, 1, a[1][r] * 1.01), "differs by 0.01 of its largest value"),
    "mask 1 % off": (lambda a, r: with_row(a, r, 3, a[3][r] * 1.01), "differs by 0.0"),
    "NaN": (lambda a, r: with_row(a, r, 1, np.nan), "differs by inf"),
    "all boxes at 0": (lambda a, r: [a[0] * 0, *a[1:]], "is none of the other's"),
    "none": (lambda a, r: [x[:0] for x in a], "is none of the other's: 0 detections for 40"),
}


@pytest.mark.parametrize("name", list(MUTATIONS))
def test_faults_are_found(name: str, rng: np.random.Generator) -> None:
    mutate, said = MUTATIONS[name]
    want = detected(rng)
    for row in (0, 17, COUNT - 1):
        got = mutate(noise(want, rng), row)
        # Further runs of the source, which do what it does, excuse nothing.
        ok, why, _ = verdict(got, want, [noise(want, rng) for _ in range(4)])
        assert not ok
        assert re.search(said, why), why


def test_what_lies_at_a_threshold_is_named(rng: np.random.Generator) -> None:
    want = detected(rng)
    at = with_row(want, COUNT - 1, 1, np.float32(0.05001))
    ok, why, note = verdict(without(at, COUNT - 1), at)
    assert ok, why
    assert "score 0.05001 is the source's alone: at the score threshold 0.05" in note
    # With 0.06 it does not.
    assert not verdict(without(at, COUNT - 1), with_row(at, COUNT - 1, 1, np.float32(0.06)))[0]

    # A box that overlaps a kept one of its label by the suppression's threshold.
    x, y, right, bottom = want[0][3]
    third = f32(x + (right - x) / 3, y, right + (right - x) / 3, bottom)  # overlap: 2/3 of 4/3
    extra = [np.concatenate([a, a[3:4]]) for a in want]
    extra = with_row(with_row(extra, COUNT, 0, third), COUNT, 1, want[1][3] * np.float32(0.9))
    ok, why, note = verdict(want, extra)
    assert ok, why
    assert "it overlaps a kept one by 0.5, at the threshold 0.5" in note
    assert not verdict(want, with_row(extra, COUNT, 0, third + f32(1, 0, 1, 0)))[0]
    assert not verdict(want, with_row(extra, COUNT, 2, extra[2][COUNT] + 1))[0]  # of another label


def test_what_the_source_itself_loses_by_rounding_is_named(rng: np.random.Generator) -> None:
    want = detected(rng)
    ok, why, note = verdict(without(want, 5), want, [noise(want, rng), without(noise(want, rng), 5)])
    assert ok, why
    assert "a rounding error decides it in the source too (1 of 2 runs have it)" in note
    moved = with_row(want, 5, 3, want[3][5] * 1.01)
    assert not verdict(moved, want, [noise(want, rng), noise(want, rng)])[0]
    ok, why, note = verdict(moved, want, [noise(want, rng), without(noise(want, rng), 5)])
    assert ok, why
    assert f"values of label {want[2][5]}, score {want[1][5]:.6g} differ: a rounding error decides it" in note
    apart = with_row(want, 5, 3, want[3][5] * 1.005)
    for double, good in ((False, True), (True, False)):  # in float64 the source is right, and moves less than that
        runs = [noise(want, rng), with_row(noise(want, rng), 5, 3, want[3][5] * (1.0 if double else 0.998))]
        assert verdict(apart, want, runs, double=double)[0] == good
    moved[3][6] *= 1.01
    assert not verdict(moved, want, [noise(want, rng), without(noise(want, rng), 5)])[0]
    assert verdict(want, without(want, 5), [without(want, 5), want])[0]
    assert not verdict(want, without(want, 5), [without(want, 5)])[0]


def test_values_that_a_run_of_the_source_has_are_named(rng: np.random.Generator) -> None:
    """As of a mask that is pasted one pixel further, because a corner lies where it rounds to the next one."""
    want = detected(rng)
    further = with_row(want, 5, 3, np.roll(want[3][5], 1, axis=-1))
    ok, why, note = verdict(further, want, [noise(run, rng) for run in (want, want, further)])
    assert ok, why
    assert f"values of label {want[2][5]}, score {want[1][5]:.6g} differ: a rounding error decides it" in note
    assert "(1 of 3 runs have it)" in note
    ok, why, note = verdict(further, want, [noise(further, rng), noise(want, rng)])  # the first is in float64
    assert ok, why
    assert "as near to float64 as the source" in note
    assert not verdict(further, want, [noise(want, rng), noise(want, rng)])[0]
    another = with_row(further, 5, 3, np.roll(want[3][5], 2, axis=-1))
    assert not verdict(another, want, [noise(want, rng), noise(further, rng)])[0]
    both = with_row(further, 6, 3, want[3][6] * 1.01)  # a fault beside it
    assert not verdict(both, want, [noise(want, rng), noise(further, rng)])[0]
    three = further
    for row in (7, 8):
        three = with_row(three, row, 3, np.roll(want[3][row], 1, axis=-1))
    assert not verdict(three, want, [noise(want, rng), noise(three, rng)])[0]  # more than are taken for such


def test_at_most_a_twentieth_lies_at_thresholds(rng: np.random.Generator) -> None:
    want = detected(rng)
    want[1][-5:] = 0.05
    assert verdict([a[:-2] for a in want], want)[0]
    ok, why, _ = verdict([a[:-5] for a in want], want)
    assert not ok
    assert "5 detections at thresholds" in why


def test_the_last_of_a_number_that_is_kept_may_be_another(rng: np.random.Generator) -> None:
    kept = replace(GROUP, thresholds=Thresholds((0.05,), (0.5,), (COUNT,)))
    want = detected(rng)
    got = with_row(want, COUNT - 1, 0, f32(500, 500, 530, 530))
    got = with_row(got, COUNT - 1, 1, want[1][-1] * np.float32(1.0005))
    ok, why, note = verdict(got, want, group=kept)
    assert ok, why
    assert f"at the last of {COUNT} scores" in note
    assert not verdict(got, want)[0]  # nothing keeps that number
    assert not verdict(with_row(got, COUNT - 1, 1, want[1][-1] * np.float32(1.01)), want, group=kept)[0]
    assert not verdict(with_row(want, 5, 0, f32(500, 500, 530, 530)), want, group=kept)[0]  # not the last
    # What the source's scores move by themselves counts four times.
    moved = [want[0], want[1] + np.float32(0.004 * want[1][-1]), *want[2:]]
    assert verdict(with_row(got, COUNT - 1, 1, want[1][-1] * np.float32(1.01)), want, [moved], kept)[0]


class Flow:
    """Of a program whose values are all rounded."""

    nodes = ()

    def origins(self, _: str) -> Flow:
        return self

    roundings = frozenset({"x"})


class Rounded:
    excused = np.inf


@pytest.mark.parametrize("place", range(4))
def test_each_output_is_held_where_roundings_changed_the_number(place: int) -> None:
    """A score that crossed a threshold excuses one row more, and nothing that is wrong in any of the outputs."""
    rng = np.random.default_rng(5)
    own = detected(rng)
    want = without(own, 17)
    allowance = QuantizedAllowance(None, Flow(), Rounded(), [], "cpu", "fp32")  # type: ignore[arg-type]
    allowance._found = (own, "3 values are rounded", "")
    assert allowance.judges_detections("boxes")
    verdicts = judge(GROUP, own, want, BOUNDS, lambda: (None, []))
    assert not verdicts[0].ok
    right = [allowance.judge_detections(GROUP, p, own, verdicts, BOUNDS) for p in range(4)]
    assert all(v.ok for v in right), right
    assert "and detections with them" in right[place].note
    wrong = with_row(own, 3, place, own[place][3] + (1 if place == 2 else own[place][3] * 0.5 + 0.1))
    verdicts = judge(GROUP, wrong, want, BOUNDS, lambda: (None, []))
    found = [allowance.judge_detections(GROUP, p, wrong, verdicts, BOUNDS) for p in range(4)]
    assert not all(v.ok for v in found), found
