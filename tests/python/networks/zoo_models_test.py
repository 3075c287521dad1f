"""Whole networks through the whole product: every model of the zoo from PyTorch and from ONNX to a session's outputs.

Each is built with its sizes fixed and with a batch of 1 to 8, verified as it is built, and held against the module on
inputs that the conversion has not seen. Everything takes 7 minutes on two cores; the slice of a normal run a twelfth.
"""

from __future__ import annotations

import copy
import functools
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
import zoo
from pinnace.sources.torch_float64 import DoubleModule
from pinnace.verify.reference_runs import ReferenceRun
from slices import all_mode, rotating_slice
from torch import nn
from torch.utils import _pytree

BATCH = pn.Dim("batch", 1, 8)
# The exporter writes attention's reshapes with products of sizes, which have no name of their own: what the output's
# batch is, is then known only when the model runs.
COMPUTED_SIZES = {("vit_b_16", "onnx")}

CASES = [(name, source) for name in zoo.MODELS for source in ("torch", "onnx")]
Load = Callable[[Path, nn.Module, zoo.Inputs, bool], pn.Model]


@functools.lru_cache(maxsize=1)
def network(name: str) -> zoo.Built:
    module, inputs = zoo.build(name, **({} if all_mode() else zoo.SMALL.get(name, {})))
    return module, inputs


def dims(inputs: zoo.Inputs, batch: Any) -> dict[str, dict[int, Any]]:
    return {key: {0: batch} for key in inputs}


def load_torch(folder: Path, module: nn.Module, inputs: zoo.Inputs, dynamic: bool) -> pn.Model:
    """The live module; with fixed sizes also its saved archive, which must give the same program."""
    live = pn.load(module, inputs, dims(inputs, BATCH) if dynamic else None)
    if not dynamic:
        path = folder / "model.pt2"
        torch.export.save(torch.export.export(module, (), dict(inputs), strict=False), path)
        saved = pn.load(path, inputs)
        programs = [model.build(verify=model is saved) for model in (live, saved)]
        assert not pn.diff(programs[0], programs[1], include_metadata=False)
    return live


def load_onnx(folder: Path, module: nn.Module, inputs: zoo.Inputs, dynamic: bool) -> pn.Model:
    path = folder / "model.onnx"
    shapes = dims(inputs, torch.export.Dim(BATCH.name, min=BATCH.min, max=BATCH.max)) if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the exporter's own libraries call deprecated
        torch.onnx.export(module, (), path, kwargs=dict(inputs), dynamic_shapes=shapes, dynamo=True, verbose=False)
    return pn.load(path, inputs, symbols=[BATCH] if dynamic else [])


LOADERS: dict[str, Load] = {"torch": load_torch, "onnx": load_onnx}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Removed at once, unlike tmp_path: some of these files have hundreds of megabytes."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def resized(inputs: zoo.Inputs, batch: int) -> zoo.Inputs:
    return {key: torch.cat([value] * batch)[:batch] for key, value in inputs.items()}


class ModuleSource:
    """The module as a source of pinnace.source, without the export that source_of() makes."""

    description = "torch"

    def __init__(self, module: nn.Module, names: Sequence[str]) -> None:
        self.module, self.names = module, list(names)

    def arguments(self, arrays: Sequence[np.ndarray]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (), {name: torch.from_numpy(array) for name, array in zip(self.names, arrays, strict=True)}

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        with torch.no_grad():
            return [t.numpy() for t in _pytree.tree_leaves(self.module(**self.arguments(inputs)[1]))]

    def layers(self, inputs: Sequence[np.ndarray], names: set[str]) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def float64(self) -> DoubleModule:
        return DoubleModule(lambda: copy.deepcopy(self.module), self.arguments)


def check_outputs(name: str, session: pn.Session, module: nn.Module, inputs: zoo.Inputs, seed: int) -> None:
    fresh = zoo.fresh_inputs(name, module, inputs, seed)
    wanted = ReferenceRun(ModuleSource(module, list(fresh)), [[x.numpy() for x in fresh.values()]])
    got = session.run(fresh)
    assert len(got) == len(wanted.ran.outputs[0])
    for place, (output, value) in enumerate(got.items()):
        found = wanted.judge(0, place, value)
        assert found.ok, f"{output}: {found.why}"


# PyTorch exports each of these models with a dynamic batch, to either format: none is excused.
@pytest.mark.parametrize(("name", "source"), rotating_slice(CASES, 0.085, "zoo models"))
@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "dynamic batch"])
def test_model(name: str, source: str, dynamic: bool, folder: Path) -> None:
    module, inputs = network(name)
    # Export takes an example of one image for a constant.
    example = resized(inputs, 2) if dynamic else inputs
    program = LOADERS[source](folder, module, example, dynamic).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    assert not program.metadata.inconclusive
    session = pn.Session(program, target="cpu")
    if not dynamic:
        assert [list(spec.shape) for spec in session.inputs.values()] == [list(x.shape) for x in inputs.values()]
        for seed in (5, 6):
            check_outputs(name, session, module, inputs, seed)
        return
    assert {spec.shape[0] for spec in session.inputs.values()} == {BATCH}
    for spec in session.outputs.values():
        assert BATCH in spec.shape or (name, source) in COMPUTED_SIZES
    for batch in (1, 3, 8):
        check_outputs(name, session, module, resized(inputs, batch), batch)
    first = next(iter(inputs))
    with pytest.raises(pn.InvalidArgument, match=rf"input '{first}': dimension 0 is 9, 'batch' must be in \[1, 8\]"):
        session.run(resized(inputs, 9))


class Sum(nn.Module):
    """Takes a nest of tensors and a keyword, so that shapes and inputs come in different orders."""

    def forward(self, a: torch.Tensor, b: list[torch.Tensor], *, c: torch.Tensor) -> torch.Tensor:
        return a.sum(1) + b[0].sum() + c


def test_every_dim_keeps_its_name() -> None:
    a, b, c = torch.randn(4, 3), [torch.randn(6, 2)], torch.randn(4)
    batch, rows = pn.Dim("batch", 2, 8), pn.Dim("rows", 4, 20, multiple_of=2)
    by_name = pn.load(Sum(), {"b": b, "c": c, "a": a}, {"b": [{0: rows}], "a": {0: batch}, "c": {0: batch}})
    assert [str(spec) for spec in by_name.inputs.values()] == [
        "b.0: float32[rows,2]",
        "c: float32[batch]",
        "a: float32[batch,3]",
    ]
    assert by_name.inputs["b.0"].shape[0] == rows
    session = pn.Session(by_name.build())
    feed = {"a": a, "b.0": torch.randn(5, 2), "c": c}
    with pytest.raises(pn.InvalidArgument, match=r"input 'b\.0': dimension 0 is 5, 'rows' must be a multiple of 2"):
        session.run(feed)
    with pytest.raises(
        pn.InvalidArgument, match=r"dimension 0 is 3, but 'batch' is 4|dimension 0 is 4, but 'batch' is 3"
    ):
        session.run({**feed, "b.0": b[0], "c": torch.randn(3)})

    q = torch.export.Dim("q", max=7)
    by_place: Any = [{0: q}, [None], {0: q}]
    model = pn.load(Sum(), (a, b), by_place, example_kwargs={"c": c})
    assert str(model.inputs["a"]) == "a: float32[q,3]"
    assert str(model.inputs["c"]) == "c: float32[q]"


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ([(7, 0, "n")], "name 'n': there is no input 7 of 1"),
        ([(0, 2, "n")], "name 'n': input 'x' has no dimension 2, its rank is 2"),
        ([(0, 0, "n"), (0, 1, "n")], "name 'n' for dimension 1 of input 'x' is that of another dimension"),
    ],
)
def test_names_that_cannot_be_given(names: list[tuple[int, int, str]], rule: str, tmp_path: Path) -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    shapes = {"x": {0: torch.export.Dim("a"), 1: torch.export.Dim("b")}}
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(Twice(), (torch.randn(3, 4),), dynamic_shapes=shapes), path)
    with pytest.raises(pn.InvalidArgument, match=rule):
        pn._core.Model.load(str(path), dim_names=names)
