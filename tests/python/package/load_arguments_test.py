"""What load() takes: examples as users have them, models in memory, names for dimensions; how it refuses the rest."""

from __future__ import annotations

import dataclasses
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from onnx import TensorProto, helper
from torch import Tensor, nn

X = torch.linspace(-1, 1, 6).reshape(2, 3)


class One(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2.5


class Two(nn.Module):
    def forward(self, x: Tensor, y: Tensor, scale: float = 1.0) -> Tensor:
        return x * scale + y


class Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.sum() + y


class Nested(nn.Module):
    def forward(self, batch: dict[str, Any], pair: tuple[Tensor, list[Tensor]]) -> Tensor:
        total: Tensor = batch["x"] * batch["scale"] + batch["inner"]["y"] + pair[0] - pair[1][0]
        return total


class NoInputs(nn.Module):
    def forward(self) -> Tensor:
        return torch.arange(3) + 1


ARRAY = X.numpy()
ACCEPTED: dict[str, tuple[type[nn.Module], Any, list[tuple[int, ...]], str]] = {
    "a tensor": (One, X, [(2, 3)], "float32"),
    "an array": (One, ARRAY, [(2, 3)], "float32"),
    "an array of integers": (One, np.arange(4), [(4,)], "int64"),
    "a number of numpy": (One, np.float32(2), [()], "float32"),
    "a number": (One, 2.0, [()], "float32"),
    "a whole number": (One, 2, [()], "int64"),
    "a list of numbers": (One, [1.0, 2.0], [(2,)], "float32"),
    "a list of lists": (One, [[1, 2], [3, 4]], [(2, 2)], "int64"),
    "a tuple with an array": (One, (ARRAY,), [(2, 3)], "float32"),
    "a list with a tensor": (One, [X], [(2, 3)], "float32"),
    "a dict with an array": (One, {"x": ARRAY}, [(2, 3)], "float32"),
    "two in a tuple": (Two, (X, ARRAY), [(2, 3), (2, 3)], "float32"),
    "two in a list, and a number": (Two, [X, ARRAY, 3.0], [(2, 3), (2, 3)], "float32"),
    "two in a dict": (Two, {"x": X, "y": ARRAY, "scale": 2.0}, [(2, 3), (2, 3)], "float32"),
    "the other byte order": (One, ARRAY.astype(">f4"), [(2, 3)], "float32"),
    "an iterator": (Two, iter((X, X)), [(2, 3), (2, 3)], "float32"),
    "nested": (Nested, ({"x": X, "scale": 2, "inner": {"y": ARRAY}}, (ARRAY, [X])), [(2, 3)] * 4, "float32"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_examples_as_users_have_them(name: str) -> None:
    module, example, shapes, dtype = ACCEPTED[name]
    model = pn.load(module(), example)
    assert [spec.shape for spec in model.inputs.values()] == shapes
    assert {str(spec.dtype) for spec in model.inputs.values()} == {dtype}
    assert "1 input(s) against torch" in model.build().metadata["verified"]


def test_one_tensor_given_twice_is_two_inputs() -> None:
    """torch.export takes it for one, if it is given the same tensor."""
    for example in ((X, X), {"x": X, "y": X}):
        program = pn.load(Two(), example).build()
        (z,) = pn.Session(program, "cpu").run({"x": X, "y": 2 * X}).values()
        assert_agree(z, 3 * ARRAY)
    jit: Any = torch.jit
    traced = jit.trace(Two(), (X, X.clone()))
    assert pn.load(traced, (X, X)).build().metadata["verified"].startswith("1 input(s)")


def test_a_module_without_inputs_needs_no_example() -> None:
    program = pn.load(NoInputs()).build(verify=False)
    (y,) = pn.Session(program, "cpu").run({}).values()
    np.testing.assert_array_equal(y, [1, 2, 3])


@dataclasses.dataclass
class Pair:
    a: Tensor


class Table:
    """As a DataFrame is, to whoever takes it for an array."""

    def to_numpy(self) -> Any:
        return ARRAY


REFUSED: dict[str, tuple[type[nn.Module], Any, str]] = {
    "text": (One, "x.npy", r"example_inputs is text \('x.npy'\); it must be a tensor, an array"),
    "bytes": (One, b"x", r"example_inputs is bytes"),
    "a table": (One, Table(), r"example_inputs is of type Table; .* with \.to_numpy\(\)"),
    "a table among others": (Two, (X, Table()), r"example_inputs\[1\] is of type Table; .*to_numpy"),
    "a table by name": (Two, {"x": X, "y": Table()}, r"example_inputs\['y'\] is of type Table"),
    "a table inside": (Nested, ({"x": Table()}, X), r"example_inputs\[0\]\['x'\] is of type Table"),
    "a function": (One, torch.rand, r"example_inputs is the function 'rand'; .*call it"),
    "a function among others": (Two, (X, lambda: X), r"example_inputs\[1\] is the function '<lambda>'"),
    "a class": (One, Table, r"example_inputs is the class Table"),
    "a set": (One, {1, 2}, r"example_inputs is of type set"),
    "text in an array": (One, np.array(["a"]), r"example_inputs\[0\]: an array of <U1 cannot be a tensor"),
    "a ragged list": (One, [[1.0], [2.0, 3.0]], r"example_inputs is not an array"),
    "nothing": (One, (), r"load\(One\) needs example_inputs.*One\.forward takes \(x: "),
    "None": (One, None, r"load\(One\) needs example_inputs"),
    "too few": (Two, X, r"does not fit Two\.forward, which takes \(x: .*missing a required argument: 'y'"),
    "too many": (One, (X, X), r"does not fit One\.forward, which takes \(x: .*too many positional arguments"),
    "a wrong name": (Two, {"x": X, "z": X}, r"does not fit Two\.forward, which takes .*'y'|'z'"),
    "a dict for an argument": (One, {"a": X}, r"does not fit One\.forward.*for one argument that is a dict, write"),
    "a list of numbers among others": (One, {"x": [1.0, 2.0]}, r"of One has no tensor.*lists of numbers.*constants"),
    "a number in a tuple": (One, (2.0,), r"of One has no tensor or array.*numpy\.float32\(2\.0\)"),
    "a masked array": (
        One,
        np.ma.masked_array(ARRAY, ARRAY > 0),
        r"example_inputs\[0\] has masked elements; \.filled\(\)",
    ),
    "a dataclass": (One, (Pair(X),), r"is of type Pair; .*torch\.export\.register_dataclass\(Pair\)"),
    "a key that is no name": (
        One,
        {0: X},
        r"the key 0 is of type int; it must be a name of an argument of One\.forward",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_examples_of_a_wrong_kind_are_named(name: str) -> None:
    module, example, says = REFUSED[name]
    with pytest.raises(pn.InvalidArgument, match=says) as caught:
        pn.load(module(), example)
    assert len(str(caught.value).splitlines()) <= 2


# --------------------------------------------------------------------------------------------------- dynamic dimensions


def sizes(model: pn.Model) -> list[str]:
    return [str(spec) for spec in model.inputs.values()]


@pytest.mark.parametrize("example", [X, (X,), {"x": X}], ids=["alone", "in a tuple", "by name"])
def test_dimensions_of_the_only_argument(example: Any) -> None:
    model = pn.load(One(), example, {0: "batch"})
    assert sizes(model) == ["x: float32[batch,3]"]
    assert sizes(pn.load(One(), example, {0: pn.Dim("rows", 1, 8), 1: "width"})) == ["x: float32[rows,width]"]
    program = model.build()
    (y,) = pn.Session(program, "cpu").run({"x": np.ones((5, 3), np.float32)}).values()
    np.testing.assert_array_equal(y, np.full((5, 3), 2.5, np.float32))


def test_names_of_dimensions_in_every_form() -> None:
    by_name = pn.load(Two(), (X, X), {"x": {0: "n"}, "y": {0: "n"}})
    in_order = pn.load(Two(), (X, X), ({0: "n"}, {0: "n"}))
    assert sizes(by_name) == sizes(in_order) == ["x: float32[n,3]", "y: float32[n,3]"]


@pytest.mark.parametrize("example", [(X, X), {"x": X, "y": X}], ids=["in order", "by name"])
def test_dimensions_of_no_argument(example: Any) -> None:
    with pytest.raises(pn.InvalidArgument, match=r"dynamic_shapes: \{dimension: name\}.*this one has 2"):
        pn.load(Two(), example, {0: "batch"})


def test_arguments_that_are_not_named_keep_their_sizes() -> None:
    assert sizes(pn.load(Sum(), (X, X), {"y": {0: "n"}})) == ["x: float32[2,3]", "y: float32[n,3]"]
    with pytest.raises(pn.InvalidArgument, match=r"^dynamic_shapes must be a dict .*, such as \{0: 'n'\}, or "):
        pn.load(nn.ReLU(), torch.ones(2, 3), "n")
    with pytest.raises(pn.InvalidArgument, match=r"^dynamic_shapes: the call has no argument 'z'; it has 'x', 'y'$"):
        pn.load(Sum(), (X, X), {"x": {0: "n"}, "z": {0: "n"}})


@pytest.mark.parametrize("size", ["width", pn.Dim("width")])
def test_dimensions_counted_from_the_last(size: Any) -> None:
    for shapes in ({-1: size}, {"x": {-1: size}}, ({-1: size},)):
        assert sizes(pn.load(One(), X, shapes)) == ["x: float32[2,width]"]
    nested = pn.load(Nested(), ({"x": X, "scale": 2, "inner": {"y": X}}, (X, [X])), NESTED_SHAPES)
    assert sizes(nested) == [f"{name}: float32[n,3]" for name in nested.inputs]


ROWS = {-2: "n"}
NESTED_SHAPES = ({"x": ROWS, "scale": None, "inner": {"y": ROWS}}, (ROWS, [ROWS]))


def test_a_name_beside_a_range() -> None:
    for shapes in (({0: "n"}, {0: pn.Dim("n", 1, 8)}), ({0: pn.Dim("n", 1, 8)}, {0: "n"})):
        model = pn.load(Two(), (X, X), shapes)
        assert [spec.shape[0] for spec in model.inputs.values()] == [pn.Dim("n", 1, 8)] * 2


def test_dimensions_of_wrapped_modules() -> None:
    linear = nn.Linear(3, 3)
    compiled_here = nn.Linear(3, 3)
    compiled_here.compile()
    for module in (torch.compile(linear), compiled_here, nn.DataParallel(linear)):
        (spec,) = pn.load(module, X, {0: "n"}).inputs.values()
        assert str(spec).endswith("float32[n,3]")
    program = pn.load(torch.compile(linear), {"input": X}, {"input": {0: "n"}}).build()
    assert pn.compare(program, torch.compile(linear), [{"input": X}]).ok
    assert program.metadata["source"] == "Linear"


REFUSED_SHAPES: dict[str, tuple[Any, str]] = {
    "too large": ({9: "n"}, r"dynamic_shapes\['x'\]: dimension 9 of a tensor of shape \[2, 3\].* -2 to 1"),
    "too small": ({"x": {-3: pn.Dim("n")}}, r"dynamic_shapes\['x'\]: dimension -3"),
    "in order": (({2: pn.Dim("n")},), r"dynamic_shapes\[0\]: dimension 2"),
    "twice": ({1: "n", -1: "m"}, r"dimension 1 is given twice, once as -1"),
    "no identifier": ({0: "my batch"}, r"the name 'my batch' is no identifier"),
    "a keyword": ({0: pn.Dim("for")}, r"the name 'for' is no identifier"),
    "two ranges": ({0: pn.Dim("n", 1, 8), 1: pn.Dim("n", 1, 9)}, r"'n' is Dim\(.*max=.*; it is one size"),
}


@pytest.mark.parametrize("name", REFUSED_SHAPES)
def test_dimensions_that_are_refused(name: str) -> None:
    shapes, says = REFUSED_SHAPES[name]
    with pytest.raises(pn.InvalidArgument, match=says):
        pn.load(One(), X, shapes)


def test_what_only_modules_take() -> None:
    exported = torch.export.export(One(), (X,))
    for source, says in ((exported, "an exported program has the dimensions"), (onnx_model(), "a file has names")):
        with pytest.raises(pn.InvalidArgument, match=f"dynamic_shapes is for modules: {says}"):
            pn.load(source, X, {0: "n"})
        with pytest.raises(pn.InvalidArgument, match="example_kwargs is for modules"):
            pn.load(source, X, example_kwargs={"y": X})
    with pytest.raises(pn.InvalidArgument, match="example_inputs and example_kwargs both have 'x'"):
        pn.load(One(), {"x": X}, example_kwargs={"x": X})


# ----------------------------------------------------------------------------------------------------- models in memory


def onnx_model() -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def of_torch(save: Callable[[Any], None]) -> bytes:
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()


def contents(kind: str) -> bytes:
    if kind == "onnx":
        return bytes(onnx_model().SerializeToString())
    if kind == "pnc":
        return pn.load(onnx_model()).build(verify=False).to_bytes()
    if kind == "pt2":
        return of_torch(lambda file: torch.export.save(torch.export.export(nn.ReLU(), (X,)), file))
    jit: Any = torch.jit
    return of_torch(lambda file: jit.save(jit.trace(nn.ReLU(), (X,)), file))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["onnx", "pnc", "pt2", "pt"])
def test_bytes_and_open_files(kind: str, temporary: Path, tmp_path: Path) -> None:
    data = contents(kind)
    path = tmp_path / f"net.{kind}"
    path.write_bytes(data)
    with path.open("rb") as file:
        sources = [(data, "bytes"), (bytearray(data), "bytes"), (io.BytesIO(data), "BytesIO"), (file, path.name)]
        for source, name in sources:
            model = pn.load(source, X)
            assert repr(model).startswith(f"<pinnace.Model {name}:")
            program = model.build()
            assert program.metadata["verified"].startswith("1 input(s)")
            assert program.metadata["source"] == name
            del model
            assert list(temporary.iterdir()) == []  # a copy goes with its model


def test_a_model_proto(temporary: Path) -> None:
    proto = onnx_model()
    before = proto.SerializeToString()
    model = pn.load(proto, X)
    assert sizes(model) == ["x: float32[n,3]"]
    assert model.build().metadata["verified"].startswith("1 input(s) against onnxruntime")
    assert proto.SerializeToString() == before
    del model
    assert list(temporary.iterdir()) == []


def test_a_forked_child_leaves_the_copy_to_its_parent(temporary: Path) -> None:
    model = pn.load(onnx_model(), X)
    child = os.fork()
    if child == 0:
        del model
        os._exit(0)
    os.waitpid(child, 0)
    assert model.build().metadata["verified"].startswith("1 input(s)")


class Reads:
    """What is taken for an open file."""

    def __init__(self, data: Any, name: str = "") -> None:
        self.data, self.name = data, name

    def read(self, size: int) -> Any:
        return self.data


def at_its_end() -> io.BytesIO:
    file = io.BytesIO(b"12345")
    file.read()
    return file


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        (b"", pn.CorruptFile, "^bytes: is empty"),
        (b"no model at all", pn.CorruptFile, "^bytes: not an ONNX model"),
        (at_its_end(), pn.InvalidArgument, r"BytesIO: nothing is left to read.*at its end, byte 5; seek\(0\)"),
        (Reads(None), pn.InvalidArgument, r"Reads: read\(\) must give bytes, it gives NoneType"),
        (
            Reads("text"),
            pn.InvalidArgument,
            r"Reads: read\(\) must give bytes, it gives text: open it as open\(path, 'rb'\)",
        ),
        (Reads(b"", "a\x1b[1m\nb"), pn.CorruptFile, r"^a\\x1b\[1m\\nb: is empty"),
        (Reads(b"", "folder/"), pn.CorruptFile, "^Reads: is empty"),
        (io.StringIO("text"), pn.InvalidArgument, r"StringIO: the file is open as text; open it as open\(path, 'rb'\)"),
        (io.BytesIO(b"GGUF" + bytes(60)), pn.FileError, "^BytesIO: cannot load it: GGUF"),
    ],
)
def test_what_is_no_model_in_memory(source: Any, kind: type[Exception], says: str, temporary: Path) -> None:
    with pytest.raises(kind, match=says) as caught:
        pn.load(source)
    assert str(temporary) not in str(caught.value)
    del caught
    assert list(temporary.iterdir()) == []


def test_references_in_memory(temporary: Path) -> None:
    """compare() takes what load() does, and names it as load() does."""
    program = pn.load(onnx_model()).build(verify=False)
    exported = contents("pt2")
    feed = [{"x": X}]
    for reference in (onnx_model(), contents("onnx"), io.BytesIO(contents("pnc")), exported, memoryview(exported)):
        assert pn.compare(program, reference, feed).ok
        del reference
    assert list(temporary.iterdir()) == []
    refused: list[tuple[Any, type[Exception], str]] = [
        (b"x" * 100_000, pn.Error, "^bytes: "),
        (onnx_model().SerializeToString()[:-20], pn.Error, "^bytes: "),
        (io.BytesIO(b"GGUF" + bytes(60)), pn.FileError, "^BytesIO: cannot load it: GGUF"),
        (One().state_dict(), TypeError, "not OrderedDict; of a state dict: build the module"),
    ]
    for reference, kind, says in refused:
        with pytest.raises(kind, match=says) as caught:
            pn.compare(program, reference, feed)
        assert str(temporary) not in str(caught.value)
        assert len(str(caught.value)) < 600


def test_numbers_for_a_file_have_its_element_type(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(onnx_model(), path)
    for example in (X, ARRAY, [[1.0, 2.0, 3.0]], [[1, 2, 3]], {"x": [[1, 2, 3]]}, [ARRAY]):
        assert pn.load(path, example).build().metadata["verified"].startswith("1 input(s)")
    with pytest.raises(pn.InvalidArgument, match=r"example_inputs has 2 arrays, the model takes \['x'\]"):
        pn.load(path, (X, X))
    with pytest.raises(pn.InvalidArgument, match=r"unknown \['z'\]; the model takes \['x'\]"):
        pn.load(path, {"z": X})
    with pytest.raises(pn.InvalidArgument, match="example_inputs is text"):
        pn.load(path, "x.npy")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (5, "not int"),
        (One, "not type; One is a class: make an instance"),
        (One().state_dict(), "not OrderedDict; of a state dict: build the module, load_state_dict"),
        (None, "not NoneType"),
    ],
)
def test_what_is_no_source_of_a_model(source: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        pn.load(source)


def test_a_module_with_a_read_method_is_a_module() -> None:
    class Memory(nn.Linear):
        def read(self) -> bytes:
            raise AssertionError("load() called it")

    assert pn.load(Memory(3, 3), torch.rand(1, 3)).build().outputs
