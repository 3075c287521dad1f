"""Zoo models on NNAPI: docs/nnapi_models.md is up to date, and each model runs at each feature level.

A run makes a few lines of the page anew, and runs some models at two levels each; everything runs all of them at all.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from nnapi_level import run_at_level
from scripts_by_name import script
from slices import all_mode, rotating_slice

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.filterwarnings("ignore")


nnapi_models = script("nnapi_models")
MODELS: tuple[str, ...] = nnapi_models.MODELS
QUANTIZED: dict[str, str] = nnapi_models.QUANTIZED
PAIRS = [(name, level) for name in MODELS for level in nnapi_models.LEVELS]
# Two levels for each model that is drawn, so that a model is loaded for more than one run.
DRAWN = [
    pair
    for name in rotating_slice(MODELS, 0.15, "nnapi models at levels")
    for pair in rotating_slice([p for p in PAIRS if p[0] == name], 0.25, f"levels of {name}")
]


@pytest.mark.parametrize("name", rotating_slice(MODELS, 0.05, "nnapi models"))
def test_line_is_up_to_date(name: str) -> None:
    assert nnapi_models.lines(nnapi_models.PAGE.read_text())[name] == nnapi_models.line(name)


def test_every_model_has_a_line() -> None:
    assert tuple(nnapi_models.lines(nnapi_models.PAGE.read_text())) == MODELS


@functools.lru_cache(maxsize=1)
def loaded(name: str) -> tuple[pn.Model, dict[str, Any]]:
    """The model, small unless everything is run, and inputs for it."""
    options = {} if all_mode() else zoo.SMALL.get(name, {})
    made: tuple[pn.Model, dict[str, Any]] = nnapi_models.load(name, **options)
    return made


@pytest.mark.rotating
@pytest.mark.parametrize(("name", "level"), DRAWN)
def test_model_runs_at_level(name: str, level: int, tmp_path: Path) -> None:
    """Built for the level, through a library of that level: nothing is refused that was promised, nothing is lost."""
    model, inputs = loaded(name)
    target = f"nnapi:fl{level}"
    promised = {node.node for node in model.check(targets=[target]).nodes if node.supported}
    model.build(targets=[target], verify=False).save(tmp_path / "model.pnc")
    answer = run_at_level(tmp_path / "model.pnc", inputs, level, tmp_path)
    assert set(answer["supported"]) == promised
    assert answer["on_nnapi"] > 0
    # What the check refuses is on the CPU, and nothing else: no device refused an operation (N-17) or was lost (P-2).
    assert promised.isdisjoint(answer["on_cpu"]), answer["why"]
    assert answer["repeats"]
    # 8-bit results are the CPU's to the bit, signs shifted by 128 or not.
    bound = 0.0 if QUANTIZED.get(name, "float") != "float" else 1e-4
    for output, difference in answer["differences"].items():
        assert difference["relative"] <= bound, f"{output}: {difference}"


@pytest.mark.rotating
@pytest.mark.parametrize("form", QUANTIZED.values())
def test_int8_mobilenet_is_pytorchs_at_level_3(form: str, tmp_path: Path) -> None:
    """The three forms from TorchScript for nnapi:29, held against PyTorch."""
    traced, x = nnapi_models.int8_mobilenet.build(form)
    model = pn.load(traced, (x,))
    assert model.check(targets=["nnapi:29"]).ok
    program = model.build(targets=["nnapi:29"])
    assert program.metadata["verified.nnapi:29"].startswith("yes")
    session = pn.Session(program, target="nnapi:29", fallback=False)
    (got,) = session.run(dict.fromkeys(session.inputs, x.int_repr() if x.is_quantized else x)).values()
    assert {row.backend for row in session.placement} == {"nnapi"}
    with torch.no_grad():
        want = traced(x)
    want = (want.int_repr() if want.is_quantized else want).numpy()
    if form == "float":
        assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
    else:
        # 53 layers, each of which may round one step another way than PyTorch's fixed point does.
        assert np.corrcoef(got.ravel(), want.ravel())[0, 1] > 0.98
