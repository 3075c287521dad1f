"""Zoo models on the GPU targets: docs/gpu_models.md is up to date, and each model runs whole in 32 and in 16 bits.

A run makes a few lines of the page anew and runs some models, small; everything runs all of them, as large as users
have them.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from scripts_by_name import script
from slices import all_mode, rotating_slice
from target_problem import problem
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.filterwarnings("ignore")


gpu_models = script("gpu_models")
MODELS: tuple[str, ...] = gpu_models.MODELS
QUANTIZED: dict[str, str] = gpu_models.QUANTIZED


PROBLEMS = {target: problem(target) for target in ("vulkan", "softmetal")}
PAIRS = [(name, target) for name in MODELS for target in PROBLEMS]

# Of the largest output, in 32 and in 16 bits. Where a network's random weights amplify the rounding of 16 bits in
# memory, whoever computes, it may be off by AMPLIFIED times what PyTorch's float32 arithmetic is off by when weights
# and all that operators hand on are rounded to 16 bits: another order of rounding draws another such error.
SINGLE, HALF, AMPLIFIED = 1e-4, 2e-2, 1.5
# Gates saturate, so that recurrent networks lose little.
RECURRENT = dict.fromkeys(("lstm", "gru", "noise_suppressor", "noise_suppressor_frame"), (1e-5, 5e-3))


class HalfStorage(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Arithmetic in float32, results rounded to 16 bits."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))

        def rounded(value: Any) -> Any:
            floats = isinstance(value, torch.Tensor) and value.dtype == torch.float32 and not func.is_view
            return value.half().float() if floats else value

        return _pytree.tree_map(rounded, made)


def part_of_largest(got: list[np.ndarray], want: list[np.ndarray]) -> float:
    return max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, want, strict=True))


@torch.no_grad()
def error_of_half_storage(name: str) -> float:
    """What 16 bits in memory cost this model, by PyTorch."""
    module, inputs = zoo.build(name, **({} if all_mode() else zoo.SMALL.get(name, {})))
    want = [t.numpy() for t in _pytree.tree_leaves(module(**inputs))]
    halves = copy.deepcopy(module)
    for parameter in halves.parameters():
        parameter.copy_(parameter.half().float())
    with HalfStorage():  # type: ignore[no-untyped-call]
        got = [t.numpy() for t in _pytree.tree_leaves(halves(**inputs))]
    return part_of_largest(got, want)


@functools.lru_cache(maxsize=1)
def loaded(name: str) -> tuple[pn.Model, pn.Program, dict[str, Any], list[np.ndarray]]:
    """The model, small unless everything is run, built; inputs for it, and what the CPU makes of them."""
    model, inputs = gpu_models.load(name, **({} if all_mode() else zoo.SMALL.get(name, {})))
    program = model.build(verify=False)
    return model, program, inputs, outputs(pn.Session(program, target="cpu"), inputs)


def outputs(session: pn.Session, inputs: dict[str, Any]) -> list[np.ndarray]:
    return [np.array(made) for made in session.run(inputs).values()]


@pytest.mark.parametrize("name", rotating_slice(MODELS, 0.05, "gpu models"))
def test_line_is_up_to_date(name: str) -> None:
    assert gpu_models.lines(gpu_models.PAGE.read_text())[name] == gpu_models.line(name)


def test_every_model_has_a_line() -> None:
    rows = gpu_models.lines(gpu_models.PAGE.read_text())
    assert tuple(rows) == MODELS
    # Convolutional networks and encoders are to run without the CPU: the page has no other model.
    assert all(row.endswith("| none |") for row in rows.values())


@pytest.mark.parametrize(("name", "target"), rotating_slice(PAIRS, 0.12, "gpu models on targets"))
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_model_runs_whole(name: str, target: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes on the target, the same bits again, and outputs near the CPU's; 8-bit ones equal to them."""
    if PROBLEMS[target]:
        pytest.skip(PROBLEMS[target])
    if target == "softmetal":  # a processor makes simdgroup matrices far slower than what stands beside them
        monkeypatch.setenv("PINNACE_GPU_OPTIONS", "no_matrices")
    _, program, inputs, want = loaded(name)
    form = QUANTIZED.get(name, "float")
    if form == "float edges" and precision == "fp16":  # of floats that 16 bits hold, as the device takes them
        inputs = {key: x.half().float() for key, x in inputs.items()}
        want = [w.astype(np.float16).astype(np.float32) for w in outputs(pn.Session(program, target="cpu"), inputs)]
    session = pn.Session(program, target=target, precision=precision, fallback=False)
    assert {row.backend for row in session.placement} == {target}
    got = outputs(session, inputs)
    for first, second in zip(got, outputs(session, inputs), strict=True):
        np.testing.assert_array_equal(second, first)
    if form != "float":
        for g, w in zip(got, want, strict=True):
            assert len(np.unique(w)) > 8
            np.testing.assert_array_equal(g, w)
        return
    error = part_of_largest(got, want)
    single, half = RECURRENT.get(name, (SINGLE, HALF))
    if precision == "fp16" and error > half:
        assert name in zoo.MODELS
        assert error <= AMPLIFIED * error_of_half_storage(name)
    else:
        assert error <= (single if precision == "fp32" else half)


@pytest.mark.parametrize("target", list(PROBLEMS))
def test_16_bits_suffice_where_weights_amplify_little(target: str) -> None:
    """MobileNetV2 with residual branches and rectifiers as trained networks have them."""
    if PROBLEMS[target]:
        pytest.skip(PROBLEMS[target])
    module, inputs = zoo.build("mobilenet_v2", size=224 if all_mode() else 96, calm=True)
    program = pn.load(module, inputs).build(verify=False)
    want = outputs(pn.Session(program, target="cpu"), inputs)
    session = pn.Session(program, target=target, precision="fp16", fallback=False)
    assert any("conv_matrices_f16" in row.kernel for row in session.placement) == (target == "softmetal")
    assert part_of_largest(outputs(session, inputs), want) <= HALF
