"""Every form that an operator of ONNX has had since opset 7 is imported and gives what other engines give.

The oracle is onnxruntime where it has that opset and operator, else ONNX's reference evaluator, which runs many older
forms as the newest; each runs in this process on models of one node from onnx_opsets.py.
"""

from __future__ import annotations

import collections
import pathlib
import re
from typing import Any

import numpy as np
import onnx
import onnx_forms
import onnx_opsets
import onnxruntime
import pinnace as pn
import pytest
from onnx.reference import ReferenceEvaluator
from pinnace import _core
from slices import rotating_slice

ROOT = pathlib.Path(__file__).parents[3]
FORMS = [form for form in onnx_forms.forms() if form[0] not in (*onnx_forms.OUT_OF_SCOPE, *onnx_forms.SEQUENCES)]
# Forms that only take more element types than those before: no engine has the new one, the older gives the values.
SAME_AS_OPSET = {("GlobalLpPool", 22): 21, ("MaxRoiPool", 22): 21}


def _onnxruntime(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def expected(model: onnx.ModelProto, feeds: dict[str, Any]) -> tuple[str, list[Any]]:
    """Which oracle ran, and what it gave."""
    reason = "element types"
    if all(array.dtype.kind in "fiub" for array in feeds.values()):
        try:
            return "onnxruntime", _onnxruntime(model, feeds)
        except Exception as error:  # no kernel, or an opset that it does not know: it has many types of exception
            reason = str(error)
    with np.errstate(all="ignore"):
        return f"reference ({reason[:80]})", list(ReferenceEvaluator(model).run(None, feeds))


def check_form(op: str, version: int, folder: pathlib.Path) -> int:
    """Runs the samples of one form; returns how many."""
    samples = onnx_opsets.samples(op, version)
    for i, sample in enumerate(samples):
        model = onnx_forms.model_of(op, version, sample)
        feeds = {f"x{k}": x for k, x in enumerate(sample.inputs) if x is not None and k not in sample.constants}
        path = folder / f"{op}_{version}_{i}.onnx"
        onnx.save(model, path)
        older = SAME_AS_OPSET.get((op, version))
        oracle, want = expected(onnx_forms.model_of(op, version, sample, older) if older else model, feeds)
        program = pn.load(path).build(verify=False)
        ways = {
            "reference code": _core.run_model_reference(str(path), [list(feeds.values())])[0],
            "session": list(pn.Session(program).run(feeds).values()),
        }
        for way, got in ways.items():
            for k in sample.compare if sample.compare is not None else range(sample.outputs):
                a, b = np.asarray(got[k]), np.asarray(want[k])
                where = f"{op} {version}, sample {i}, output {k}, {way} against {oracle}"
                assert a.shape == b.shape, f"{where}: {a.shape} and {b.shape}"
                if a.dtype.name.startswith("float8") and b.dtype == np.uint8:  # as onnxruntime gives them
                    a = a.view(np.uint8)
                if a.dtype.kind in "biu" and b.dtype.kind in "biu":
                    np.testing.assert_array_equal(a, b, err_msg=where)
                else:
                    wide = a.astype(np.float64), b.astype(np.float64)
                    np.testing.assert_allclose(*wide, rtol=sample.rtol, atol=sample.atol, err_msg=where)
    return len(samples)


@pytest.mark.parametrize("form", rotating_slice(FORMS, 0.3, salt="onnx opsets"), ids=lambda f: f"{f[0]}-{f[1]}")
def test_form(form: tuple[str, int], tmp_path: pathlib.Path) -> None:
    assert check_form(*form, tmp_path) > 0


def test_every_form_has_a_sample() -> None:
    """A new opset of the onnx package brings new forms: each needs a sample or a reason."""
    missing = [f"{op} {version}" for op, version in FORMS if not onnx_opsets.samples(op, version)]
    assert not missing
    assert len(FORMS) >= 533


def test_every_operator_is_in_the_importers_table() -> None:
    """What is imported, what is refused by name, and why: nothing else, and nothing twice."""
    text = (ROOT / "cpp/import/onnx/mappings.inc").read_text()
    table = dict(re.findall(r"^MAP\((\w+), (\w+)\)$", text, re.MULTILINE))
    assert len(table) == text.count("\nMAP(")
    core = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""}
    assert set(table) == core
    refused = {op for op, function in table.items() if function in ("random", "absent")}
    assert refused == set(onnx_forms.OUT_OF_SCOPE)
    reasons = collections.Counter(onnx_forms.OUT_OF_SCOPE.values())
    assert reasons == {"random": 6, "text": 4, "image files": 1}


@pytest.mark.parametrize("op", sorted(onnx_forms.OUT_OF_SCOPE))
def test_what_is_out_of_scope_is_refused_by_name(op: str, tmp_path: pathlib.Path) -> None:
    schema = onnx.defs.get_schema(op)
    names = [f"x{i}" for i in range(schema.min_input)]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in names]
    node = onnx.helper.make_node(op, names, ["y"])
    graph = onnx.helper.make_graph([node], op, values, [onnx.ValueInfoProto(name="y")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", onnx.defs.onnx_opset_version())])
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(pn.ConversionError) as caught:
        pn.load(tmp_path / "model.onnx")
    assert [row.op for row in caught.value.nodes] == [f"ai.onnx.{op}"]
