"""Fixtures that every Python test shares: the run's seed, a generator per test, and whether this is a full run.

A slice that is needed while tests are collected (parametrize) comes from slices.py, which is importable as `slices`.
"""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from slices import all_mode as is_all_mode
from slices import in_turn, rotating_slice, test_seed

__all__ = ["rotating_slice"]


# Tests keep nothing in the cache folder of whoever runs them, and find nothing there. Their processes inherit that.
os.environ["PINNACE_CACHE"] = ""

# Of the tests that are marked `rotating`: together they take most of the time. None is the only one of its file, for a
# file without a test is an error.
SHARE = 1 / 4


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "rotating: run in a quarter of all runs, by the seed; in all with PINNACE_TEST_ALL=1"
    )


def pytest_collectstart(collector: pytest.Collector) -> None:
    """What a file draws of torch while it is imported, weights of models that its tests share for instance, depends on
    its name alone: torch begins each process with another seed."""
    if isinstance(collector, pytest.Module):
        if "torch" in collector.path.read_text():
            importlib.import_module("torch")
        if torch := sys.modules.get("torch"):
            torch.manual_seed(zlib.crc32(collector.nodeid.encode()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of tests that are marked `rotating`, those whose turn it is; pytest counts and prints the others as deselected.
    Where nothing else was asked for, they run. PINNACE_TEST_PART=2/6: of a file that run_tests.py shares among six
    suites, every sixth test from the third on."""
    waiting = [i for i in items if i.get_closest_marker("rotating") and not in_turn(i.nodeid, SHARE)]
    if waiting and len(waiting) < len(items):
        config.hook.pytest_deselected(items=waiting)
        items[:] = [i for i in items if i not in waiting]
    if shared := os.environ.get("PINNACE_TEST_PART"):
        part, parts = map(int, shared.split("/"))
        config.hook.pytest_deselected(items=[i for k, i in enumerate(items) if k % parts != part])
        items[:] = items[part::parts]


def pytest_report_header() -> str:
    extent = "everything" if is_all_mode() else "a slice of the large suites"
    return f"pinnace: seed {test_seed()}, {extent}, built from {built_from()}"


def built_from() -> str:
    """The commit that the extension names; empty where it cannot be loaded, which the tests that need it report."""
    try:
        from pinnace import _core
    except ImportError:
        return ""
    return str(_core.built_from)


@pytest.fixture(scope="session", autouse=True)
def names_its_build(record_testsuite_property: Callable[[str, object], None]) -> None:
    """The report says which build was tested: scripts/run_tests.py compares that with what is checked out."""
    record_testsuite_property("built_from", built_from())


@pytest.fixture(scope="session")
def seed() -> int:
    """The run's seed, PINNACE_TEST_SEED."""
    return test_seed()


@pytest.fixture(scope="session")
def all_mode() -> bool:
    """Whether everything is to be run, PINNACE_TEST_ALL=1."""
    return is_all_mode()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on the run's seed and the test's name, not on which tests ran before."""
    return np.random.default_rng([test_seed(), zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture(autouse=True)
def torch_draws_by_name(request: pytest.FixtureRequest) -> None:
    """What a test draws of torch without a seed of its own depends on its name alone, not on which tests ran before:
    a slice of the tests draws what all of them do."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(zlib.crc32(request.node.nodeid.encode()))
