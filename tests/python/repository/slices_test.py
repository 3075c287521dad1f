"""The share of a large suite that a run takes: repeatable, moving with the seed, covering all in time."""

from __future__ import annotations

import pytest
from slices import in_turn, rotating_slice, within_budget


@pytest.fixture(autouse=True)
def _sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINNACE_TEST_ALL", raising=False)
    monkeypatch.setenv("PINNACE_TEST_SEED", "7")


def test_same_seed_gives_same_slice_in_order() -> None:
    first = rotating_slice(range(1000), 0.1)
    assert first == rotating_slice(range(1000), 0.1)
    assert len(first) == 100
    assert first == sorted(first)


def test_seeds_cover_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    for seed in range(60):
        monkeypatch.setenv("PINNACE_TEST_SEED", str(seed))
        seen.update(rotating_slice(range(50), 0.1))
    assert seen == set(range(50))


def test_salts_move_apart() -> None:
    assert rotating_slice(range(1000), 0.1, "a") != rotating_slice(range(1000), 0.1, "b")


def test_turns_are_a_share_of_seeds_and_move_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: dict[str, list[bool]] = {"a": [], "b": []}
    for seed in range(300):
        monkeypatch.setenv("PINNACE_TEST_SEED", str(seed))
        for name, taken in turns.items():
            taken.append(in_turn(name, 1 / 3))
    assert all(80 < sum(taken) < 120 for taken in turns.values())
    assert turns["a"] != turns["b"]
    monkeypatch.setenv("PINNACE_TEST_ALL", "1")
    assert in_turn("a", 1e-9)


def test_never_empty_unless_given_nothing() -> None:
    assert len(rotating_slice(range(3), 0.01)) == 1
    assert rotating_slice([], 0.5) == []
    with pytest.raises(ValueError, match="share"):
        rotating_slice([1], 0)


def test_all_mode_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINNACE_TEST_ALL", "1")
    assert rotating_slice(range(9), 0.1) == list(range(9))
    assert sorted(within_budget(range(9), 0)) == list(range(9))


def test_budget_stops_after_at_least_one() -> None:
    assert len(list(within_budget(range(9), -1))) == 1
    assert sorted(within_budget(range(9), 60)) == list(range(9))
