"""What a conversion is held against: sources of every element type and form of output run, or say why they cannot."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
import torch
from onnx import TensorProto, helper
from pinnace.sources.onnx_file import OnnxSource
from pinnace.torch.archive import load_archive
from torch import nn
from torch._export.serde.serialize import GraphModuleSerializer
from torch_modules import Of

Pair = collections.namedtuple("Pair", ["first", "second"])


def build(function: Callable[..., Any], *args: Any) -> pn.Program:
    return pn.load(Of(function), example_inputs=args).build()


def test_a_bfloat16_model_is_verified_and_compared() -> None:
    module = nn.Linear(4, 3).bfloat16().eval()
    x = torch.randn(2, 4).bfloat16()
    program = pn.load(module, (x,)).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    (y,) = pn.Session(program, "cpu").run({"input": x}).values()
    with torch.no_grad():
        np.testing.assert_allclose(y.astype(np.float32), module(x).float().numpy(), rtol=4e-2, atol=4e-2)
    result = pn.compare(program, module, [{"input": x}])
    assert result.ok, str(result)
    assert any(not row.output for row in result.rows)


def test_a_bfloat16_torchscript_is_verified() -> None:
    module = nn.Linear(4, 3).bfloat16().eval()
    x = torch.randn(2, 4).bfloat16()
    script = torch.jit.trace(module, (x,))  # type: ignore[no-untyped-call]
    assert pn.load(script, (x,)).build().metadata["verified.cpu"].startswith("yes")


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "int16"])
def test_arrays_keep_type_and_bits_on_their_way_through_torch(dtype: str) -> None:
    from pinnace.arrays import as_array, as_tensor

    tensor = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.0, -8.0]]).to(getattr(torch, dtype))
    array = as_array(tensor)
    assert str(array.dtype) == dtype
    back = as_tensor(array)
    assert back.dtype == tensor.dtype
    assert torch.equal(back.float(), tensor.float())
    assert as_tensor(array[0, 0]).shape == ()


def test_ints_among_the_outputs_are_int64_scalars() -> None:
    program = build(lambda x: (x * 2, x.shape[0], 7), torch.randn(3, 4))
    outputs = list(pn.Session(program, "cpu").run({next(iter(program.inputs)): np.zeros((3, 4), np.float32)}).values())
    assert [o.tolist() for o in outputs[1:]] == [3, 7]
    assert all(o.dtype == np.int64 and o.shape == () for o in outputs[1:])


def test_an_int_that_a_dimension_gives_is_an_output() -> None:
    class Sized(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, Any]:
            return {"double": x * 2, "rows": x.shape[0], "flag": True, "nothing": None, "last": x.shape[0] * 3}

    dims = {"x": {0: pn.Dim("rows", 1, 9)}}
    model = pn.load(Sized(), (torch.randn(3, 4),), dims)
    program = model.build()
    assert model.notes == ["output 'flag' is not a tensor and is left out"]
    outputs = list(pn.Session(program, "cpu").run({"x": np.ones((5, 4), np.float32)}).values())
    assert [o.tolist() for o in outputs[1:]] == [5, 15]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: x.topk(2), ["values", "indices"]),
        (lambda x: x.max(1), ["values", "indices"]),
        (lambda x: x.sort(), ["values", "indices"]),
        (lambda x: Pair(x + 1, x.sum()), ["first", "second"]),
        (lambda x: {"best": x.topk(2), "all": Pair(x, x + 1)}, None),
    ],
)
def test_named_tuples_may_be_returned(function: Callable[..., Any], names: list[str] | None) -> None:
    x = torch.randn(3, 4)
    program = build(function, x)
    if names:
        assert list(program.outputs) == names
    outputs = list(pn.Session(program, "cpu").run({next(iter(program.inputs)): x}).values())
    wanted = torch.utils._pytree.tree_leaves(function(x))
    assert len(outputs) == len(wanted)
    for got, want in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)


def test_a_program_is_left_as_it_was_when_its_named_tuples_are_saved() -> None:
    x = torch.randn(3, 4)
    exported = torch.export.export(Of(lambda x: x.topk(2)), (x,))
    pn.load(exported, (x,)).build()
    assert isinstance(exported.module()(x), torch.return_types.topk)


def test_a_named_tuple_may_be_an_argument() -> None:
    class Net(nn.Module):
        def forward(self, pair: Pair) -> torch.Tensor:
            total: torch.Tensor = pair.first * 2 + pair.second
            return total

    program = pn.load(Net(), (Pair(torch.randn(3), torch.randn(3)),)).build()
    assert len(program.inputs) == 2


def test_what_torch_cannot_save_is_a_conversion_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotImplementedError("no words for it")

    monkeypatch.setattr(GraphModuleSerializer, "serialize", refuse)
    with pytest.raises(pn.ConversionError, match=r"Of: torch.export cannot save it.*no words for it"):
        build(lambda x: x + 1, torch.randn(3))


def test_messages_name_the_module_and_no_temporary_file() -> None:
    with pytest.raises(pn.ConversionError) as caught:
        build(lambda x: torch.rand_like(x) + x, torch.randn(3))
    assert "model.pt2" not in str(caught.value)
    assert str(caught.value).startswith("Of") or " Of" in str(caught.value)
    assert caught.value.nodes


# ----------------------------------------------------------------------------- ONNX that onnxruntime does not take


def onnx_file(
    path: Path, node: onnx.NodeProto, inputs: Any, outputs: Any, constants: Any = (), opset: int = 18
) -> Path:
    graph = helper.make_graph([node], "g", inputs, outputs, list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), path)
    return path


def even_lrn(folder: Path) -> Path:
    """LRN of an even size: valid, and refused by onnxruntime when it loads the model."""
    shape = (TensorProto.FLOAT, [1, 6, 2, 2])
    return onnx_file(
        folder / "lrn.onnx",
        helper.make_node("LRN", ["x"], ["y"], size=4),
        [helper.make_tensor_value_info("x", *shape)],
        [helper.make_tensor_value_info("y", *shape)],
    )


def test_onnx_that_onnxruntime_refuses_is_run_by_the_reference_evaluator(tmp_path: Path) -> None:
    program = pn.load(even_lrn(tmp_path)).build()
    assert program.metadata["verified.cpu"].startswith("yes")
    assert "reference evaluator" in program.metadata["verified"]
    assert "onnxruntime" in program.metadata["verified"]  # who refused it


def test_onnx_that_onnxruntime_refuses_when_it_runs(tmp_path: Path) -> None:
    path = onnx_file(
        tmp_path / "split.onnx",
        helper.make_node("Split", ["x"], ["a", "b", "c"], num_outputs=3),
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None]) for name in "abc"],
    )
    source = OnnxSource(str(path))
    sizes = [len(part) for part in source.run([np.arange(4, dtype=np.float32)])]
    assert sizes == [2, 2, 0]
    if "refuses" in source.description:  # onnxruntime may learn it
        assert "reference evaluator" in source.description


def test_onnx_that_neither_runs_is_unsupported_with_both_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = even_lrn(tmp_path)

    def refuse(*_: Any, **__: Any) -> None:
        raise NotImplementedError("not by me either")

    monkeypatch.setattr("onnx.reference.ReferenceEvaluator", refuse)
    with pytest.raises(pn.Unsupported, match=r"onnxruntime.*not by me either.*verify=False"):
        pn.load(path).build()


def test_what_is_no_onnx_file_is_a_file_error(tmp_path: Path) -> None:
    path = tmp_path / "noise.onnx"
    path.write_bytes(b"\xff" * 50)
    with pytest.raises(pn.FileError, match=r"noise\.onnx"):
        OnnxSource(str(path)).run([])
    with pytest.raises(pn.FileError, match="nowhere"):
        OnnxSource(str(tmp_path / "nowhere.onnx")).run([])


def test_inner_values_need_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = OnnxSource(str(even_lrn(tmp_path)))
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert source.layers([np.ones((1, 6, 2, 2), np.float32)], {"y"}) == {}


def test_a_pt2_source_without_torch_is_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(nn.ReLU(), (torch.randn(2, 3),)), path)
    program = pn.load(path).build(verify=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(pn.Unsupported, match=r"m\.pt2: comparing with a \.pt2 file needs torch: pip install torch"):
        pn.compare(program, path, [{name: np.ones((2, 3), np.float32) for name in program.inputs}])
    with pytest.raises(pn.Unsupported, match="needs torch"):
        pn.load(path).build()


@pytest.mark.parametrize(("raised", "becomes"), [(MemoryError(), pn.OutOfMemory), (OSError(28, "full"), pn.FileError)])
def test_a_copy_for_torch_that_cannot_be_written(
    raised: Exception, becomes: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(nn.ReLU(), (torch.randn(2, 3),)), path)

    def refuse(*_: Any) -> None:
        raise raised

    monkeypatch.setattr("zipfile.ZipFile.writestr", refuse)
    with pytest.raises(becomes, match=r"m\.pt2.*writ.* a temporary copy"):
        load_archive(str(path))


def test_a_child_can_read_what_another_thread_of_the_parent_was_reading(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(nn.ReLU(), (torch.randn(2, 3),)), path)
    code = (
        "import os, signal, sys, threading\n"
        "from pinnace.torch import archive\n"
        "lock = archive._reading['lock']\n"
        "thread = threading.Thread(target=lock.acquire)\n"
        "thread.start(); thread.join()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"
        "    archive.load_archive(sys.argv[1])\n"
        "    os._exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, str(path)], env=environment, timeout=120, check=False)
    assert done.returncode == 0


def test_the_named_one_of_several_models_is_the_source(tmp_path: Path) -> None:
    from torch.export.pt2_archive._package import package_pt2

    programs = {
        name: torch.export.export(nn.Linear(3, n), (torch.randn(1, 3),)) for name, n in (("enc", 4), ("dec", 5))
    }
    package_pt2(str(tmp_path / "m.pt2"), exported_programs=programs)
    program = pn.load(tmp_path / "m.pt2", model_name="dec").build()
    assert program.metadata["verified"].startswith("1 input(s) against torch")


def test_weights_of_any_name_reach_torch(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleDict({"a-b": nn.Linear(3, 3), "c d": nn.Linear(3, 3), "__e": nn.Linear(3, 3)})
            self.register_buffer("count-of", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> Any:
            for layer in self.layers.values():
                x = layer(x)
            return torch.trapezoid(x + getattr(self, "count-of"))

    torch.export.save(torch.export.export(Odd(), (torch.randn(2, 3),)), tmp_path / "m.pt2")
    model = pn.load(tmp_path / "m.pt2")
    assert model.notes == ["decomposed by torch: aten.trapezoid.dx"]
    assert model.build().metadata["verified"].startswith("1 input(s) against torch")
