"""docs/nnapi_models.md says what becomes of zoo models on NNAPI: one line a run is made anew and compared."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from slices import rotating_slice

ROOT = Path(__file__).resolve().parent.parent.parent


def script() -> Any:
    spec = importlib.util.spec_from_file_location("nnapi_models", ROOT / "scripts" / "nnapi_models.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODELS = script().MODELS


@pytest.mark.parametrize("name", rotating_slice(MODELS, 0.05, "nnapi models"))
def test_line_is_up_to_date(name: str) -> None:
    nnapi_models = script()
    assert nnapi_models.lines(nnapi_models.PAGE.read_text())[name] == nnapi_models.line(name)


def test_every_model_has_a_line() -> None:
    nnapi_models = script()
    assert tuple(nnapi_models.lines(nnapi_models.PAGE.read_text())) == MODELS
