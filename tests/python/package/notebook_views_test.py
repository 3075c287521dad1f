"""What notebooks show of models, programs, placements, profiles and comparisons: HTML that stands alone, bounded."""

from __future__ import annotations

import copy
import pickle
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import TensorProto, helper
from pinnace.files import printable

HOSTILE = "<script>alert(1)</script>\x1b"
VOID = {"br", "img", "input", "meta", "hr"}


class Balance(HTMLParser):
    """Whether what is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def model_of(count: int, folder: Path) -> pn.Model:
    """A chain of that many nodes with hostile names."""
    names = [f"{HOSTILE}{i}" for i in range(count)]
    nodes = [
        helper.make_node("Neg" if i % 2 else "Exp", [names[i - 1] if i else "x"], [name], name=f"node {name}")
        for i, name in enumerate(names)
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 3])
    y = helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, ["rows", 3])
    graph = helper.make_graph(nodes, "g", [x], [y])
    path = folder / "chain.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(made.SerializeToString())
    onnx.checker.check_model(str(path))
    return pn.load(path)


@pytest.mark.parametrize("count", [1, 700])
def test_views_are_text_that_stands_alone(count: int, tmp_path: Path) -> None:
    model = model_of(count, tmp_path)
    program = model.build(verify=False)
    session = pn.Session(program, "cpu")
    feed = {"x": np.full((2, 3), -1.0, np.float32)}
    views = {
        "Model": model._repr_html_(),
        "Program": program._repr_html_(),
        "Placement": session.placement._repr_html_(),
        "Profile": session.profile(feed)._repr_html_(),
        "Comparison": pn.compare(program, program, feed)._repr_html_(),
    }
    for name, view in views.items():
        assert view.startswith('<div class="pinnace"><style>'), name
        assert view.endswith("</div>"), name
        assert not Balance(view).open, name
        assert f"<h3>{name}" in view
        assert "<script" not in view
        assert "\x1b" not in view
        assert "&lt;script&gt;" in view, name
        assert len(view) < 150_000, name


def test_a_placement_is_the_list_that_it_was(tmp_path: Path) -> None:
    placement = pn.Session(model_of(3, tmp_path).build(verify=False), "cpu").placement
    assert isinstance(placement, list)
    assert placement == list(placement)
    lines = str(placement).splitlines()
    assert len(lines) == len(placement)
    for row, line in zip(placement, lines, strict=True):
        assert all(printable(part) in line for part in (row.node, row.op, row.kernel))
    assert repr(placement) == repr(list(placement))
    assert type(placement[0]) is pn.Placement
    assert [row.op for row in placement[1:]] == [row.op for row in placement][1:]
    for again in (copy.deepcopy(placement), pickle.loads(pickle.dumps(placement))):
        assert again == placement
        assert type(again) is pn.PlacementTable


def test_a_program_says_whether_it_was_verified(tmp_path: Path) -> None:
    program = model_of(2, tmp_path).build(verify=False)
    assert '<b class="doubt">no: verify=False</b>' in program._repr_html_()
    assert '<b class="good">1 input' in program.with_metadata({"verified": "1 input(s)"})._repr_html_()
