"""Random graphs of 2 to 12 operators against ONNX's reference evaluator: as imported, after every pass, after a file.

A failure shrinks to a small model, which is printed. 60 graphs in a normal run, 600 with PINNACE_TEST_ALL=1.
"""

from __future__ import annotations

import collections
import tempfile
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy as np
import onnx
import pinnace as pn
import pytest
import random_models
from pinnace.agreement import BOUNDS, agreement
from random_graph import Graph
from random_models import CONTROL, RandomModel
from random_nodes import MAKERS
from slices import all_mode, test_seed

GRAPHS = 600 if all_mode() else 60
# Twelve operators of float16, each rounded by itself.
HALVES = 4e-2
WITHIN = {**BOUNDS, "float16": HALVES}


# Operators whose results have as many elements as values say.
SIZED_BY_VALUES = {"Compress", "NonZero", "Range", "Unique"}


def sized_by_values(graph: onnx.GraphProto) -> bool:
    """True if such an operator is in the graph, or in a nested one."""
    return any(
        node.op_type in SIZED_BY_VALUES
        or any(a.type == onnx.AttributeProto.GRAPH and sized_by_values(a.g) for a in node.attribute)
        for node in graph.node
    )


def has_halves(graph: onnx.GraphProto) -> bool:
    """True if float16 is an input or made on the way, perhaps in a nested graph; a result in float32 is no closer."""
    if any(i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for i in graph.input):
        return True
    for node in graph.node:
        for a in node.attribute:
            if node.op_type == "Cast" and a.name == "to" and a.i == onnx.TensorProto.FLOAT16:
                return True
            if a.type == onnx.AttributeProto.GRAPH and has_halves(a.g):
                return True
    return False


def check(got: dict[str, np.ndarray], random: RandomModel, when: str) -> None:
    rounding = dict.fromkeys(WITHIN, HALVES) if has_halves(random.model.graph) else WITHIN
    for name, want in random.expected.items():
        bounds = dict.fromkeys(WITHIN, 0.0) if name in random.exact else rounding
        found = agreement(got[name], want, bounds)
        # What cancels out is as far off as the values it came from.
        close = name not in random.exact and found.largest <= bounds.get(str(want.dtype), 0) * random.scale / 16
        assert found.ok or close, f"{name} {when}: {found.why}\n{got[name]!r}\nwanted\n{want!r}"


def run(program: pn.Program, random: RandomModel) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in pn.Session(program).run(random.inputs).items()}


def check_model(random: RandomModel) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(random.model, path)
        # A graph is made for its sizes: with smaller ones an index may be out of range.
        symbols = [pn.Dim(name, size, 8) for name, size in random.symbols.items()]
        try:
            plain = pn.load(path, random.inputs, symbols=symbols, disabled_passes=["all"])
        except pn.ConversionError as error:
            # A value has one rank with us. That of a Squeeze without axes has as many as its input's sizes say; one in
            # a nested graph is reported for the If around it as well.
            dynamic_sizes = bool(random.symbols) or sized_by_values(random.model.graph)
            if dynamic_sizes and all("without axes its rank depends on sizes" in p.rule for p in error.nodes):
                return
            raise
        check(run(plain.build(verify=False), random), random, "as imported")
        # The model is run before and after each pass; one that changes a result is an error that names it.
        passed = pn.load(path, random.inputs, symbols=symbols, check_passes=True).build(verify=False)
        outputs = run(passed, random)
        check(outputs, random, "after all passes")
        file = Path(folder) / "model.pnc"
        passed.save(file)
        again = run(pn.Program.open(file), random)
        assert all(np.array_equal(outputs[name], again[name], equal_nan=True) for name in outputs), "after a file"


def settings(count: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@hypothesis.seed(test_seed())
@settings(GRAPHS)
@hypothesis.given(random_models.random_models())
def test_random_graphs(random: RandomModel) -> None:
    hypothesis.note(onnx.printer.to_text(random.model))
    check_model(random)


def test_every_maker_adds_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never finds a value to work on would test nothing."""
    added: collections.Counter[str] = collections.Counter()

    def counted(maker: Callable[[Graph], None]) -> Callable[[Graph], None]:
        def make(g: Graph) -> None:
            maker(g)
            added[maker.__name__] += 1

        return make

    names = {maker.__name__ for maker in (*MAKERS, *CONTROL)}
    monkeypatch.setattr(random_models, "MAKERS", [counted(maker) for maker in MAKERS])
    monkeypatch.setattr(random_models, "CONTROL", [counted(maker) for maker in CONTROL])

    @hypothesis.seed(1)
    @settings(500)
    @hypothesis.given(random_models.random_models())
    def count(_: RandomModel) -> None:
        pass

    count()
    print(dict(added))
    assert names == set(added)
