"""The example that an exported program was made with is its example input; in a file it is read without unpickling."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace.torch import own_example
from pinnace.torch.own_example import file_example, program_example
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor, parts: Any, *, gain: torch.Tensor) -> Any:
        return x @ parts["weight"] * gain + parts["more"][0].sum()


ARGS = (torch.arange(12.0).reshape(3, 4).t(), {"weight": torch.eye(3, 2), "more": [torch.arange(4)]})
KWARGS = {"gain": torch.tensor(0.5)}
NAMES = ["x", "parts.weight", "parts.more.0", "gain"]


@pytest.fixture(scope="module")
def program() -> Any:
    return torch.export.export(Net(), ARGS, KWARGS)


@pytest.fixture(scope="module")
def path(program: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("own") / "net.pt2"
    torch.export.save(program, str(made))
    return made


def wanted() -> list[Any]:
    return [ARGS[0].numpy(), np.eye(3, 2, dtype=np.float32), np.arange(4), np.float32(0.5)]


def test_a_live_program_and_a_file_have_their_example(program: Any, path: Path) -> None:
    for source in (program, path):
        model = pn.load(source)
        assert list(model.inputs) == NAMES
        (example,) = model._examples
        for got, want in zip(example.values(), wanted(), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
        built = model.build()
        assert built.metadata.made_up == {}
        assert built.metadata["verified.cpu"].startswith("yes")


def test_zeros_and_ones_say_nothing_but_sizes(tmp_path: Path) -> None:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(50, 8)

        def forward(self, ids: torch.Tensor, x: torch.Tensor, gain: torch.Tensor) -> Any:
            return self.table(ids).sum(1) * gain + x

    batch = torch.export.Dim("batch", min=1, max=64)
    call = (torch.zeros(3, 7, dtype=torch.long), torch.randn(3, 8), torch.tensor(1.0))
    shapes = {"ids": {0: batch}, "x": {0: batch}, "gain": None}
    program = torch.export.export(Table(), call, dynamic_shapes=shapes)
    torch.export.save(program, str(tmp_path / "table.pt2"))
    for source in (program, tmp_path / "table.pt2"):
        model = pn.load(source)
        assert list(model._examples[0]) == ["x", "gain"]
        made = model.build().metadata.made_up
        assert list(made) == ["ids"]
        assert made["ids"].startswith("int64[3,7], from 0 to 49")
    ones = torch.export.export(Table(), (call[0], torch.ones(3, 8), call[2]), dynamic_shapes=shapes)
    made = pn.load(ones).build().metadata.made_up
    assert list(made) == ["ids", "x"]
    assert made["x"].startswith("float32[3,8], normal values"), "at the example's sizes, which both have lost"


def test_what_is_given_counts(program: Any, path: Path) -> None:
    given = {name: np.full_like(value, 2) for name, value in zip(NAMES, wanted(), strict=True)}
    for source in (program, path):
        (example,) = pn.load(source, given)._examples
        assert example["x"].max() == 2
    example = {"x": np.zeros((4, 3), np.float32)}
    assert pn.load(path, example)._examples[0].keys() == example.keys()


def test_programs_without_an_example_that_fits(program: Any, path: Path) -> None:
    specs = pn.load(path).inputs
    fewer = {name: specs[name] for name in NAMES[:3]}
    other = {**specs, "x": pn.TensorSpec("x", np.dtype(np.float32), (4, 4), None)}
    named = {("scale" if name == "gain" else name): spec for name, spec in specs.items()}
    for wrong in (fewer, other, named):
        assert program_example(program, wrong) == {}
        assert file_example(str(path), "", wrong) == {}
    assert file_example(str(path), "another", specs) == {}
    assert file_example(str(path.with_name("none.pt2")), "", specs) == {}

    class Without:
        example_inputs = None

    assert program_example(Without(), specs) == {}
    assert program_example(object(), specs) == {}


# ---- the pickle


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def archive(folder: Path, data: bytes) -> str:
    path = folder / "m.pt2"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/data/sample_inputs/model.pt", data)
    return str(path)


def x_spec(shape: tuple[Any, ...], dtype: Any = np.float32) -> dict[str, pn.TensorSpec]:
    return {"x": pn.TensorSpec("x", np.dtype(dtype), shape, None)}


def with_pickle(data: bytes, kept: bytes | None = None) -> bytes:
    """An archive of torch.save of one tensor of 6 floats with another pickle."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(((torch.arange(6.0),), {})))) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            is_pickle = name.endswith("data.pkl")
            new.writestr(name, data if is_pickle else kept if kept is not None and "/data/" in name else old.read(name))
    return made.getvalue()


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8],
)
def test_element_types(tmp_path: Path, dtype: torch.dtype) -> None:
    x = torch.arange(6).to(dtype).reshape(2, 3)
    got = file_example(archive(tmp_path, saved(((x,), {}))), "model", x_spec((2, 3), x.numpy().dtype))["x"]
    np.testing.assert_array_equal(got, x.numpy())


def test_other_element_types_and_views(tmp_path: Path) -> None:
    flags = torch.tensor([True, False])
    assert file_example(archive(tmp_path, saved(((flags,), {}))), "", x_spec((2,), bool))["x"].tolist() == [True, False]
    half = torch.tensor([1.5, -2]).bfloat16()
    got = file_example(archive(tmp_path, saved(((half,), {}))), "", x_spec((2,), ml_dtypes.bfloat16))["x"]
    assert got.astype(np.float32).tolist() == [1.5, -2]
    view = torch.arange(20.0)[3:15].reshape(3, 4)[:, 1:3].t()
    got = file_example(archive(tmp_path, saved(([view], {}))), "", x_spec((2, 3)))["x"]
    np.testing.assert_array_equal(got, view.numpy())
    wide = torch.ones(1).expand(5)
    assert file_example(archive(tmp_path, saved(((wide,), {}))), "", x_spec((pn.Dim("n"),)))["x"].tolist() == [1] * 5
    empty = torch.zeros(0, 3)
    assert file_example(archive(tmp_path, saved(((empty,), {}))), "", x_spec((0, 3)))["x"].shape == (0, 3)
    both = file_example(archive(tmp_path, saved(((1, None, "text", 2.5), {"x": view}))), "", x_spec((2, 3)))
    assert list(both) == ["x"]


class Touches:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return open, (str(self._path), "w")


def test_no_pickle_runs_anything(tmp_path: Path) -> None:
    """Whatever a pickle calls, builds or names, there is no example, and no file."""
    marker = tmp_path / "marker"
    for protocol in range(6):
        data = with_pickle(pickle.dumps(((Touches(marker),), {}), protocol))
        assert file_example(archive(tmp_path, data), "", x_spec((6,))) == {}
    code = [
        b"cos\nsystem\n(S'touch %s'\ntR." % str(marker).encode(),
        b"(S'touch %s'\nios\nsystem\n." % str(marker).encode(),
        b"\x80\x02cbuiltins\neval\nX\x03\x00\x00\x001+1\x85R.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)\x81.",
        b"\x80\x02ccollections\nOrderedDict\n)R}X\x01\x00\x00\x00aK\x01sb.",
    ]
    for each in code:
        assert file_example(archive(tmp_path, with_pickle(each)), "", x_spec((6,))) == {}
    assert not marker.exists()


def test_damaged_and_hostile_pickles_give_no_example(tmp_path: Path) -> None:
    good = saved(((torch.arange(6.0),), {}))
    assert file_example(archive(tmp_path, good), "", x_spec((6,)))["x"].tolist() == [0, 1, 2, 3, 4, 5]
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        data = file.read(next(name for name in file.namelist() if name.endswith("data.pkl")))
    assert file_example(archive(tmp_path, with_pickle(data)), "", x_spec((6,))) != {}
    for cut in range(0, len(data), 3):
        assert file_example(archive(tmp_path, with_pickle(data[:cut])), "", x_spec((6,))) == {}
    random = np.random.default_rng(1)
    for _ in range(300):  # an example or none, and no error
        changed = bytearray(data)
        changed[int(random.integers(len(data)))] = int(random.integers(256))
        file_example(archive(tmp_path, with_pickle(bytes(changed))), "", x_spec((6,)))
    hostile = [
        b"\x80\x02" + b"]q\x00h\x00a" * 9 + b"}\x86.",  # lists that hold themselves
        b"\x80\x02]q\x00(" + b"h\x00" * 15_000 + b"e}\x86.",
        b"\x80\x02" + b"]" * 19_000 + b".",
        b"\x80\x02" + b"(" * 19_000 + b".",
        b"\x80\x02" + b")" + b"\x85" * 15_000 + b"}\x86.",  # a tuple in a tuple in a tuple
        b"\x80\x02N" * 30_000,
        b"",
        b".",
        b"a.",
        b"\x80\x02}NNs.",
        b"\x80\x02h\x07.",
        pickle.dumps(OrderedDict(a=1)),
        b"\x80\x02" + b"X\xff\xff\xff\xff" + b"a.",
    ]
    for each in hostile:
        assert file_example(archive(tmp_path, with_pickle(each)), "", x_spec((6,))) == {}
    for storage in (b"", b"\0" * 23):
        assert file_example(archive(tmp_path, with_pickle(data, storage)), "", x_spec((6,))) == {}


def test_sizes_beyond_the_storage_and_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes in the pickle are the tensor's own: 6 is one byte of it."""
    with zipfile.ZipFile(io.BytesIO(saved(((torch.arange(6.0),), {})))) as file:
        data = file.read(next(name for name in file.namelist() if name.endswith("data.pkl")))
    assert data.count(b"K\x06\x85") == 1
    longer = data.replace(b"K\x06\x85", b"K\x07\x85")
    assert file_example(archive(tmp_path, with_pickle(longer)), "", x_spec((7,))) == {}
    huge = data.replace(b"K\x06\x85", b"J\xff\xff\xff\x7f\x85").replace(b"K\x01\x85", b"K\x00\x85")
    assert file_example(archive(tmp_path, with_pickle(huge)), "", x_spec((pn.Dim("n"),))) == {}
    negative = data.replace(b"K\x06\x85", b"J\xff\xff\xff\xff\x85")
    assert file_example(archive(tmp_path, with_pickle(negative)), "", x_spec((pn.Dim("n"),))) == {}
    monkeypatch.setattr(own_example, "MAX_BYTES", 23)
    assert file_example(archive(tmp_path, saved(((torch.arange(6.0),), {}))), "", x_spec((6,))) == {}


# ---- comparisons


def test_a_live_module_is_compared_at_every_batch_size() -> None:
    """torch.export writes the example's batch into the program; inner values of other batches need another."""

    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.conv = nn.Conv2d(1, 2, 3)
            self.head = nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return self.head(torch.tanh(self.conv(x)).view(x.size(0), -1))

    module = Flat().eval()
    x = torch.randn(3, 1, 4, 4)
    program = pn.load(module, x, {0: "batch"}).build()
    result = pn.compare(program, module, [{"x": x}, {"x": x[:1]}, {"x": x[:2]}])
    assert result.ok
    inner = {row.op for row in result.rows if not row.output}
    assert {"conv", "gemm"} <= inner or {"conv", "mat_mul"} <= inner
    wrong = Flat().eval()
    with torch.no_grad():
        wrong.head.weight.mul_(1.01)
    assert not pn.compare(program, wrong, [{"x": x}, {"x": x[:1]}]).ok
