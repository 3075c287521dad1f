"""Sizes that the example of a .pt2 file had: taken where the file says them, nothing else is, and nothing is raised."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import TensorProto, helper
from pinnace.inputs.maker import InputMaker
from pinnace.torch import example_sizes as sizes_module
from pinnace.torch.example_sizes import MAX_SIZE, example_sizes

SPECS = {"x": pn.TensorSpec("x", np.dtype(np.float32), (pn.Dim("n"), 3, pn.Dim("t")), None)}
OPEN_N = {"as_expr": {"expr_str": "s1", "hint": {"as_int": 5}}}
OPEN_T = {"as_expr": {"expr_str": "s2", "hint": {"as_int": 7}}}
PROGRAM: dict[str, Any] = {
    "graph_module": {
        "graph": {"tensor_values": {"x": {"sizes": [OPEN_N, {"as_int": 3}, OPEN_T]}}},
        "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]},
    }
}


def archive(folder: Path, text: str | bytes, names: tuple[str, ...] = ("net/models/model.json",)) -> str:
    path = folder / "m.pt2"
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, text)
    return str(path)


def sizes(folder: Path, program: Any) -> dict[str, int]:
    text = program if isinstance(program, (str, bytes)) else json.dumps(program)
    return example_sizes(archive(folder, text), "", SPECS)


def test_hints_are_taken(tmp_path: Path) -> None:
    assert example_sizes(archive(tmp_path, json.dumps(PROGRAM)), "", SPECS) == {"n": 5, "t": 7}
    assert example_sizes(archive(tmp_path, json.dumps(PROGRAM)), "model", SPECS) == {"n": 5, "t": 7}


def changed(path: list[str | int], value: Any) -> Any:
    """The program with one part replaced."""
    program = copy.deepcopy(PROGRAM)
    at: Any = program
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return program


GRAPH: list[str | int] = ["graph_module", "graph", "tensor_values"]
SIZES: list[str | int] = [*GRAPH, "x", "sizes"]
HINT: list[str | int] = [*SIZES, 0, "as_expr", "hint"]
WRONG: list[Any] = [None, True, -1, 1.5, "5", [], {}, [[[]]], {"as_int": 5}, 10**30]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[" * 200_000,
        '{"graph_module":' * 100_000 + "1" + "}" * 100_000,
        "9" * 100_000,
        '{"graph_module": NaN}',
        "\ud800".encode("utf-8", "surrogatepass"),
        b"\xff\xfe\x00",
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_unexpected_json_gives_no_sizes(tmp_path: Path, text: str | bytes) -> None:
    """Text that is no JSON, too deep for the parser, or of numbers that are too long."""
    assert sizes(tmp_path, text) == {}


@pytest.mark.parametrize("path", [GRAPH, [*GRAPH, "x"], SIZES, ["graph_module"], ["graph_module", "signature"]])
@pytest.mark.parametrize("value", WRONG, ids=ascii)
def test_unexpected_parts_give_no_sizes(tmp_path: Path, path: list[str | int], value: Any) -> None:
    assert sizes(tmp_path, changed(path, value)) == {}


@pytest.mark.parametrize("value", [*WRONG, MAX_SIZE + 1], ids=ascii)
def test_hints_that_are_no_sizes_are_passed_over(tmp_path: Path, value: Any) -> None:
    """The other dimension's stays. {"as_int": 5} in the place of a hint is what a hint is."""
    expected = {"t": 7} if value != {"as_int": 5} else {"n": 5, "t": 7}
    assert sizes(tmp_path, changed(HINT, value)) == expected
    assert sizes(tmp_path, changed([*HINT, "as_int"], value)) == {"t": 7}


def test_archives_that_say_it_twice_or_not_at_all(tmp_path: Path) -> None:
    text = json.dumps(PROGRAM)
    assert example_sizes(archive(tmp_path, text, ("net/models/a.json", "net/models/b.json")), "", SPECS) == {}
    assert example_sizes(archive(tmp_path, text, ("net/other.json",)), "", SPECS) == {}
    assert example_sizes(str(tmp_path / "none.pt2"), "", SPECS) == {}
    (tmp_path / "text.pt2").write_text(text)
    assert example_sizes(str(tmp_path / "text.pt2"), "", SPECS) == {}


def test_large_json_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(PROGRAM)
    monkeypatch.setattr(sizes_module, "MAX_JSON", len(text) - 1)
    parsed: list[int] = []
    loads = json.loads

    def counted(data: bytes) -> Any:
        parsed.append(len(data))
        return loads(data)

    monkeypatch.setattr(json, "loads", counted)
    assert sizes(tmp_path, text) == {}
    assert parsed == []
    monkeypatch.setattr(sizes_module, "MAX_JSON", len(text))
    assert sizes(tmp_path, text) == {"n": 5, "t": 7}
    assert parsed == [len(text)]


@pytest.mark.parametrize(
    "known", [{"n": 3}, *({"n": n, "m": m} for n, m in [(2**40, 2**40), (2**33, 2**33), (4, 5), (0, 0)])]
)
def test_sizes_that_do_not_fit_are_not_used(tmp_path: Path, known: dict[str, int]) -> None:
    """Not of every dimension, larger than memory, refused by a shape rule, or zero: then sizes are searched as ever."""
    graph = helper.make_graph(
        [helper.make_node("Concat", ["a", "b"], ["c"], axis=1), helper.make_node("Conv", ["c", "w"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, 2, 8])
            for name, size in (("a", "n"), ("b", "m"))
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.ones((1, 4, 3), np.float32), "w")],
    )
    path = str(tmp_path / "m.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    model = pn.load(path)
    arrays = InputMaker(model.inputs, model, lambda: known).make().made[0].arrays
    assert arrays["a"].shape == arrays["b"].shape == (2, 2, 8)
    used = InputMaker(model.inputs, model, lambda: {"n": 6, "m": 6}).make().made[0].arrays
    assert used["a"].shape == (6, 2, 8)
