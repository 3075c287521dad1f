"""Names of PyTorch models: inputs and outputs as their authors wrote them, nodes and values by module."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace.torch.module_names import value_names
from torch import nn

X = torch.linspace(-1, 1, 8).reshape(2, 4)


class Pair(NamedTuple):
    """A result with fields."""

    mean: torch.Tensor
    spread: torch.Tensor


@dataclasses.dataclass
class Result:
    """A dataclass that torch's trees know, with a field that may be left out."""

    logits: torch.Tensor
    hidden: torch.Tensor | None = None
    pair: Pair | None = None


@dataclasses.dataclass
class Unnamed:
    """A dataclass without a name for files."""

    scores: torch.Tensor
    boxes: torch.Tensor | None = None


torch.export.register_dataclass(Result, serialized_type_name="names_test.Result")
torch.utils._pytree.register_dataclass(Unnamed)


class Nest(nn.Module):
    """Takes and gives nests of every kind."""

    def forward(self, x: torch.Tensor, batch: Mapping[str, Any], *, past: list[Any]) -> dict[str, Any]:
        """All of them are used."""
        image, extra = batch["image"], batch["extra"]
        (k0, v0), (k1, v1) = past[0]["key"], past[1]["key"]
        return {
            "logits": x + image,
            "past": [{"key": k0 * 2, "value": v0 * 3}, {"key": k1 + v1, "value": extra[0] - extra[1]}],
            "pair": Pair(x.mean(), x.std()),
        }


def nest_inputs() -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of Nest, no two tensors alike."""
    n = [X + i for i in range(8)]
    return (n[0], {"image": n[1], "extra": (n[2], n[3])}), {"past": [{"key": (n[4], n[5])}, {"key": (n[6], n[7])}]}


NEST_INPUTS = [
    *("x", "batch.image", "batch.extra.0", "batch.extra.1"),
    *("past.0.key.0", "past.0.key.1", "past.1.key.0", "past.1.key.1"),
]
NEST_OUTPUTS = ["logits", "past.0.key", "past.0.value", "past.1.key", "past.1.value", "pair.mean", "pair.spread"]


def test_nested_arguments_and_results_have_their_python_names() -> None:
    """Dicts, lists, tuples, keywords and a named tuple, and each name is the value that it says."""
    args, kwargs = nest_inputs()
    program = pn.load(Nest(), args, example_kwargs=kwargs).build()
    assert list(program.inputs) == NEST_INPUTS
    assert list(program.outputs) == NEST_OUTPUTS
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    out = pn.Session(program).run(dict(zip(NEST_INPUTS, leaves, strict=True)))
    wanted = Nest()(*args, **kwargs)
    np.testing.assert_array_equal(out["past.1.key"], wanted["past"][1]["key"].numpy())
    np.testing.assert_array_equal(out["past.1.value"], wanted["past"][1]["value"].numpy())
    np.testing.assert_array_equal(out["logits"], wanted["logits"].numpy())


class Tree(nn.Module):
    """The same arguments, and results that torch.export can save."""

    def forward(self, x: torch.Tensor, batch: Mapping[str, Any], *, past: list[Any]) -> dict[str, Any]:
        """Without the named tuple."""
        made: dict[str, Any] = Nest()(x, batch, past=past)
        del made["pair"]
        return made


def test_an_exported_program_and_its_file_have_the_same_names(tmp_path: Path) -> None:
    """As the live module."""
    args, kwargs = nest_inputs()
    exported = torch.export.export(Tree(), args, kwargs)
    torch.export.save(exported, tmp_path / "net.pt2")
    for source in (exported, tmp_path / "net.pt2"):
        model = pn.load(source)
        assert list(model.inputs) == NEST_INPUTS
        assert list(model.outputs) == NEST_OUTPUTS[:5]


class Returns(nn.Module):
    """Returns what it was made with."""

    def __init__(self, make: Any) -> None:
        """make: of two tensors, the result."""
        super().__init__()
        self._make = make

    def forward(self, x: torch.Tensor) -> Any:
        """Two sums."""
        return self._make(x + 1, x + 2)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda a, b: Result(a, b), ["logits", "hidden"]),
        (lambda a, b: Result(a, None, Pair(a, b)), ["logits", "pair.mean", "pair.spread"]),
        (lambda a, b: Unnamed(a), ["scores"]),
        (lambda a, b: Unnamed(a, b), ["scores", "boxes"]),
        (lambda a, b: OrderedDict(z=a, y=[b, b * 2]), ["z", "y.0", "y.1"]),
        (lambda a, b: {0: a, 7: (b,)}, ["0", "7.0"]),
        (lambda a, b: (a, {"more": b}), ["add", "1.more"]),
        (lambda a, b: {"a": {"b": a}, "a.b": b}, ["a.b", "a.b_1"]),
        (lambda a, b: {"x" * 300: a, "y": b}, ["add", "y"]),
        (lambda a, b: (a, b), ["add", "add_1"]),
        (lambda a, b: [a, (b, b * 2)], ["add", "add_1", "mul"]),
        (lambda a, b: a * b, ["mul"]),
    ],
)
def test_results(make: Any, names: list[str]) -> None:
    """Fields, keys and places; a tensor alone or in a plain tuple has torch's name for it."""
    assert list(pn.load(Returns(make), (X,)).outputs) == names


def test_a_dataclass_as_an_argument() -> None:
    """Its fields follow the argument's name."""

    class Takes(nn.Module):
        def forward(self, given: Result) -> torch.Tensor:
            assert given.hidden is not None
            return given.logits - given.hidden

    assert list(pn.load(Takes(), (Result(X, X + 1),)).inputs) == ["given.logits", "given.hidden"]


def test_torchscript_has_the_names_of_its_arguments() -> None:
    """Of forward(), traced and scripted."""

    class Two(nn.Module):
        def forward(self, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return image * mask

    jit: Any = torch.jit  # untyped in torch's own stubs
    for script in (jit.trace(Two().eval(), (X, X + 1)), jit.script(Two().eval())):
        assert list(pn.load(script, (X, X + 1)).inputs) == ["image", "mask"]


# ------------------------------------------------------------------------------------------------------------- modules


class Attention(nn.Module):
    """A module with several operators of its own."""

    def __init__(self) -> None:
        """Two projections."""
        super().__init__()
        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Softmax twice."""
        scores = torch.softmax(self.q(x) @ self.k(x).transpose(0, 1), -1)
        return torch.softmax(scores * 3, -1) @ x


class Block(nn.Module):
    """A residual block whose activation is called twice."""

    def __init__(self) -> None:
        """Attention, and a linear layer."""
        super().__init__()
        self.attn, self.act = Attention(), nn.Sigmoid()
        self.parts = nn.ModuleDict({"fc": nn.Linear(4, 4)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One operator of its own, at the end."""
        inner: torch.Tensor = self.act(self.parts["fc"](self.act(self.attn(x))))
        return x + inner


class Deep(nn.Module):
    """Blocks in a list."""

    def __init__(self) -> None:
        """Two blocks."""
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """The outermost module's operators have torch's names."""
        for layer in self.layers:
            x = layer(x)
        return {"y": torch.tanh(x)}


def deep() -> Any:
    """A Deep that gives the same numbers every time."""
    torch.manual_seed(1)
    return Deep().eval()


DEEP_VALUES = [
    *("layers.0.attn.q", "layers.0.attn.k", "layers.0.attn:matmul", "layers.0.attn:softmax", "layers.0.attn:mul"),
    *("layers.0.attn:softmax_1", "layers.0.attn:matmul_1", "layers.0.act", "layers.0.parts.fc", "layers.0.act@1"),
    *("layers.0", "layers.1.attn.q", "layers.1", "tanh"),
]


def test_values_and_nodes_are_named_by_module(tmp_path: Path) -> None:
    """Of a live module and of its file; each node says which module it belongs to."""
    exported = torch.export.export(deep(), (X,))
    torch.export.save(exported, tmp_path / "net.pt2")
    nodes = {}
    for source, example in ((deep(), (X,)), (exported, ()), (tmp_path / "net.pt2", ())):
        model = pn.load(source, example, disabled_passes=["all"])
        values = [value for node in model.nodes for value in node.outputs]
        assert set(DEEP_VALUES) <= set(values)
        assert {n.name for n in model.nodes} >= set(DEEP_VALUES) - {"layers.0.attn.q", "layers.0.attn.k"}
        nodes = {node.outputs[0]: node for node in model.nodes}
    assert nodes["layers.0.attn:softmax_1"].module == "layers.0.attn"
    assert nodes["layers.1.act@1"].module == "layers.1.act"
    assert nodes["tanh"].module == ""


def test_torchs_own_graph_gets_the_same_names() -> None:
    """value_names() is what the importer does, so that layers are compared: every value of the program is found."""
    exported = torch.export.export(deep(), (X,))
    assert set(DEEP_VALUES) <= set(value_names(exported).values())
    program = pn.load(deep(), (X,)).build()
    found = pn.compare(program, deep(), [{"x": X.numpy()}])
    assert found.ok
    inner = {row.value: row for row in found.rows if not row.output}
    assert {"layers.0.attn:softmax", "layers.1.act@1", "layers.0"} <= set(inner)
    assert inner["layers.0.attn:softmax"].module == "layers.0.attn"
    assert "layers.0.attn:softmax" in found.table()
    assert "<td>layers.0.attn</td>" in found.to_html()


def test_a_wrong_layer_is_named_by_its_module() -> None:
    """The first difference is a linear layer with its activation: the value is the latter's, the module the former."""
    changed = deep()
    with torch.no_grad():
        changed.layers[1].parts["fc"].weight.mul_(2)
    program = pn.load(changed, (X,)).build(verify=False)
    rows = [row for row in pn.compare(program, deep(), [{"x": X.numpy()}]).rows if not row.ok]
    assert (rows[0].value, rows[0].module) == ("layers.1.act@1", "layers.1.parts.fc")
    with pytest.raises(pn.VerificationError, match=r"'layers\.1\.act@1' \(in layers\.1\.parts\.fc, names_test\.py:"):
        pn.load(changed, (X,)).build(reference=deep())


def test_every_report_says_the_module(tmp_path: Path) -> None:
    """Placement, check, profile with its file, and the nodes of a ConversionError."""
    model = pn.load(deep(), (X,))
    session = pn.Session(model.build())
    modules = {n.name: n.module for n in model.nodes}
    assert modules["layers.0.attn:softmax"] == "layers.0.attn"
    assert {p.node: p.module for p in session.placement} == modules
    assert {n.node: n.module for n in model.check(["cpu", "nnapi:27"]).nodes} == modules
    profile = session.profile({"x": X})
    assert all(event.module == modules[event.node] for event in profile.events)
    profile.save(tmp_path / "trace.json")
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "layers.0.attn" in {row["args"]["module"] for row in rows}

    class Solver(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q: torch.Tensor = torch.geqrf(x)[0]
            return q

    with pytest.raises(pn.ConversionError, match=r"of inner\.0") as caught:
        pn.load(nn.Sequential(OrderedDict(inner=nn.Sequential(Solver()))), (X,))
    assert [p.module for p in caught.value.nodes] == ["inner.0"]
    assert "module='inner.0'" in repr(caught.value.nodes[0])


def test_values_of_a_module_can_be_kept() -> None:
    """By the module's path."""
    program = pn.load(deep(), (X,), disabled_passes=["all"]).build()
    kept = pn.Session(program, keep=["layers.0.parts.fc"]).kept_values({"x": X.numpy()})
    seen: list[torch.Tensor] = []
    net = deep()
    net.layers[0].parts["fc"].register_forward_hook(lambda _m, _i, out: seen.append(out))
    with torch.no_grad():
        net(X)
    np.testing.assert_allclose(kept["layers.0.parts.fc"], seen[0].numpy(), rtol=1e-5)
