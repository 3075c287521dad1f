"""Programs of torch.export whose arguments are of other kinds than an operator takes, or far beyond what it can use.

Their tensors have other ranks and types, too. Each is an error or a program; under the sanitizers, without a report.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pinnace as pn
import pytest
from exported_json import archive, compact, exported_programs, programs_of_one_node
from pinnace import _core
from slices import rotating_slice

MOST, LEAST = 2**63 - 1, -(2**63)
ARGUMENTS: list[dict[str, Any]] = [
    {"arg": 1},
    {"as_none": True},
    *({"as_int": n} for n in (-7, 0, 2**62, MOST, LEAST)),
    *({"as_ints": list(n)} for n in ((), (0,) * 9, (LEAST,), (MOST,) * 2, (2**62,) * 3)),
    {"as_float": "NaN"},
    {"as_float": 1e300},
    {"as_float": -1e300},
    {"as_string": "x"},
    {"as_bool": True},
    {"as_tensors": []},
    {"as_sym_int": {"as_name": "nothing"}},
    {"as_sym_int": {"as_int": -1}},
    {"as_tensor": {"name": "nothing"}},
]
SHAPES = ((), (0,), (2,), (1, 0, 3), (2, 1, 1, 1, 1, 1))
TYPES = (1, 2, 4, 5, 7, 8, 12, 13)  # torch's numbers: bytes, integers, floats, bool, bfloat16


def changed(program: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The program with one thing changed, again and again; the same object each time."""
    graph = program["graph_module"]["graph"]
    inputs, values = graph["nodes"][0]["inputs"], graph["tensor_values"]
    tensors = [{"as_tensor": {"name": name}} for name in list(values)[:3]]
    for i, given in enumerate(copy.deepcopy(inputs)):
        for argument in [*ARGUMENTS, *tensors]:
            inputs[i]["arg"] = argument
            yield program
        del inputs[i]
        yield program
        inputs.insert(i, given)
    for name, stated in copy.deepcopy(values).items():
        for shape in SHAPES:
            values[name] |= {"sizes": [{"as_int": n} for n in shape], "strides": [{"as_int": 1}] * len(shape)}
            yield program
        values[name] = stated
    for dtype in TYPES:
        graph["tensor_values"] = {name: value | {"dtype": dtype} for name, value in values.items()}
        yield program


def opened(content: dict[str, Any], path: Path) -> bool:
    """Whether the archive of that program gives a model; one that it gives is built, too."""
    path.write_bytes(archive({"archive_format": b"pt2", "models/model.json": compact(content)}))
    with contextlib.suppress(pn.Error):
        _core.Model.load(str(path)).build(["cpu"])
        return True
    return False


@pytest.mark.filterwarnings("ignore")  # of the exporter
def test_arguments_and_types_of_every_operator(tmp_path: Path) -> None:
    programs = list(programs_of_one_node(exported_programs()))
    assert len(programs) > 300
    path = tmp_path / "model.pt2"
    taken = refused = whole = 0
    for program in rotating_slice(programs, 0.2, "argument kinds"):
        whole += opened(program, path)
        for other in changed(program):
            if opened(other, path):
                taken += 1
            else:
                refused += 1
    assert whole > 20
    assert taken > 200
    assert refused > 1000
