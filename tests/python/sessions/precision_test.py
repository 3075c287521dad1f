"""Sessions of fp16 and bf16, and models stored in these types: kernels, error against float32, what compare() shows.

The yardstick is torch: a network in 16 bits may be as far from the same network in float32 as torch's own run of it in
that type is, and half as much again. Operators by themselves are held to their bound in tests/cpp.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from pinnace.cli import main
from pinnace.types import Array
from slices import rotating_slice
from torch import nn

TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
LEVELS = ("sse2", "avx2", "avx512", "avx512_bf16", "amx_bf16")
MODELS = ("mobilenet_v2", "noise_suppressor", "encoder")


def build(name: str) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """A model of the zoo, or a transformer encoder that is quickly made."""
    if name != "encoder":
        return zoo.build(name)
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(192, 3, 768, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), {"src": torch.randn(1, 64, 192)}


def in_type(inputs: Mapping[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}


def outputs_of(module: nn.Module, inputs: Mapping[str, torch.Tensor]) -> list[Array]:
    with torch.no_grad():
        leaves = torch.utils._pytree.tree_leaves(module(**inputs))
    return [leaf.float().numpy() for leaf in leaves]


def error(got: list[Array], want: list[Array]) -> float:
    """The largest difference, relative to the largest magnitude of its output."""
    return max(float(np.abs(g.astype(np.float64) - w).max() / np.abs(w).max()) for g, w in zip(got, want, strict=True))


class Model:
    """A model with what torch makes of it, in float32 and in 16 bits."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module, self.inputs = build(name)
        self.wanted = outputs_of(self.module, self.inputs)
        model = pn.load(self.module, example_inputs=dict(self.inputs))
        self.program = model.build(targets=["cpu"], verify=False)
        self.torch_error = {
            precision: error(outputs_of(self.stored_as(dtype), in_type(self.inputs, dtype)), self.wanted)
            for precision, dtype in TYPES.items()
        }

    def stored_as(self, dtype: torch.dtype) -> nn.Module:
        return copy.deepcopy(self.module).to(dtype)

    def feed(self, program: pn.Program, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
        return dict(zip(program.inputs, in_type(self.inputs, dtype).values(), strict=True))


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param)


def levels_here(program: pn.Program) -> list[str]:
    """Instruction sets of this processor that choose different kernels."""
    targets = []
    for level in LEVELS:
        try:
            pn.Session(program, f"cpu:{level}")
        except (pn.Unsupported, pn.InvalidArgument):
            continue
        targets.append(f"cpu:{level}")
    return targets or ["cpu"]


@pytest.mark.rotating
@pytest.mark.parametrize("precision", TYPES)
def test_error_is_within_torchs_own(model: Model, precision: str) -> None:
    for target in levels_here(model.program):
        session = pn.Session(model.program, target, precision=precision)
        found = error(list(session.run(model.feed(model.program)).values()), model.wanted)
        assert found <= 1.5 * model.torch_error[precision], f"{model.name} on {target}"
        products = {p.kernel for p in session.placement if p.op in ("gemm", "mat_mul", "gru")}
        weights = "f16" if precision == "fp16" else "bf16"
        assert products, model.name
        assert all(f"_{weights}_" in kernel for kernel in products if "packed" in kernel or "recurrent" in kernel)


def test_auto_is_one_of_the_three(model: Model) -> None:
    for target in ["cpu", *levels_here(model.program)]:
        session = pn.Session(model.program, target, precision="auto")
        assert session.precision in ("fp32", *TYPES)
        same = pn.Session(model.program, target, precision=session.precision)
        feed = model.feed(model.program)
        for got, want in zip(session.run(feed).values(), same.run(feed).values(), strict=True):
            assert np.array_equal(got, want)
        if target in ("cpu:sse2", "cpu:avx2", "cpu:avx512"):
            assert session.precision == "fp32"
        if target == "cpu:amx_bf16":
            assert session.precision == "bf16"
        assert pickle.loads(pickle.dumps(session)).precision == session.precision


def test_weights_take_half_the_memory(model: Model) -> None:
    def packed(precision: str) -> int:
        return pn.Session(model.program, "cpu", precision=precision).plan.constant_bytes

    for precision in TYPES:
        # Weights of depthwise convolutions stay float32.
        assert packed(precision) < 0.6 * packed("fp32")


@pytest.mark.parametrize("precision", rotating_slice(list(TYPES), 0.5, "precision"))
def test_models_stored_in_16_bits_run_by_kernels(model: Model, precision: str) -> None:
    dtype = TYPES[precision]
    loaded = pn.load(model.stored_as(dtype), example_inputs=in_type(model.inputs, dtype))
    program = loaded.build(targets=["cpu"], verify=False)
    for target in levels_here(program):
        session = pn.Session(program, target)
        got = [np.asarray(v).astype(np.float32) for v in session.run(model.feed(program, dtype)).values()]
        assert error(got, model.wanted) <= 1.5 * model.torch_error[precision], f"{model.name} on {target}"
        by_reference = {p.op for p in session.placement if p.kernel == "reference"}
        assert not by_reference & {"conv", "gemm", "mat_mul", "gru", "add", "layer_normalization", "attention"}


def test_results_do_not_depend_on_threads(model: Model) -> None:
    for precision in TYPES:
        one, two = (
            pn.Session(model.program, threads=threads, precision=precision).run(model.feed(model.program))
            for threads in (1, 2)
        )
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])


def test_compare_shows_every_precision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, inputs = build("encoder")
    program = pn.load(module, example_inputs=inputs).build(targets=["cpu"], verify=False)
    feed = dict(zip(program.inputs, inputs.values(), strict=True))
    found = pn.compare(program, module, [feed], targets=["cpu"], precision=["fp32", "fp16", "bf16"])
    assert found.targets == ["cpu", "cpu fp16", "cpu bf16"]
    assert found.ok, str(found)
    assert found.worst("cpu") < found.worst("cpu fp16") < found.worst("cpu bf16")
    with pytest.raises(pn.InvalidArgument, match="precision 'fp8' is not one of fp32, fp16, bf16, auto"):
        pn.compare(program, module, [feed], precision="fp8")

    program.save(tmp_path / "net.pnc")
    np.save(tmp_path / "x.npy", inputs["src"].numpy())
    (name,) = program.inputs
    common = [str(tmp_path / "net.pnc"), "--input", f"{name}={tmp_path / 'x.npy'}"]
    assert main(["compare", *common, "--reference", str(tmp_path / "net.pnc"), "--precision", "bf16"]) == 0
    assert "cpu bf16" in capsys.readouterr().out
    assert main(["run", *common, "--precision", "fp16"]) == 0
    assert main(["bench", *common, "--runs", "1", "--precision", "fp32", "--precision", "bf16"]) == 0
    assert "cpu bf16 threads 1: median" in capsys.readouterr().out
    assert main(["run", *common, "--precision", "fp17"]) == 2
    assert "'fp17' is not one of fp32, fp16, bf16, auto" in capsys.readouterr().err


def test_a_session_says_its_precision() -> None:
    program = pn.load(nn.Linear(3, 2), example_inputs=(torch.ones(1, 3),)).build(targets=["cpu"], verify=False)
    session = pn.Session(program, precision="bf16")
    assert session.precision == "bf16"
    assert "; bf16; " in repr(session)


def test_what_falls_back_to_the_cpu_has_the_precision_that_was_asked_for() -> None:
    """A GPU has no bfloat16: all nodes go to the CPU, with a reason, and compute there as the session says."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10)).eval()
    x = torch.randn(1, 3, 8, 8)
    program = pn.load(net, x).build()
    kernels = {}
    for target in ("cpu", "softmetal", "vulkan", "nnapi:29"):
        session = pn.Session(program, target, precision="bf16")
        kernels[target] = [p.kernel for p in session.placement]
        if target != "cpu":
            assert all(
                p.backend == "cpu" and "the precision must be fp32 or fp16, is bf16" in p.why[0]
                for p in session.placement
                if p.kernel != "view"
            ), session.placement
    assert any("bf16" in kernel for kernel in kernels["cpu"])
    assert all(found == kernels["cpu"] for found in kernels.values()), kernels
