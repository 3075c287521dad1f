"""What users get wrong: arrays that do not fit, options that do not exist, files that are not models, full disks.

Everything is an error of pinnace's own that names the place; nothing ends the process, and no file that was there is
lost.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core
from pinnace.inputs.maker import seeded_inputs
from slices import rotating_slice

TEXT = """graph "g" {
  symbol n 0..8
  input %x : f32[n,3]
  input %k : i64[n]
  %y : f32[n,3] = add(%x, %x)
  %z : i64[n] = add(%k, %k)
  output "y" %y
  output "z" %z
}"""


def program_of(text: str) -> pn.Program:
    return pn.Program(_core.Model.parse(text, [], False, []).build(["cpu"], {}))


@pytest.fixture(scope="module")
def program() -> pn.Program:
    return program_of(TEXT)


@pytest.fixture
def session(program: pn.Program) -> pn.Session:
    return pn.Session(program, threads=1)


def good() -> dict[str, Any]:
    return {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "k": np.array([7, -1])}


# ---- arrays ---------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, Any, str]] = [
    ("nothing", {}, "missing 'x', 'k'"),
    ("one missing", {"x": good()["x"]}, "missing 'k'"),
    ("one too many", {**good(), "w": np.zeros(1)}, "unknown 'w'"),
    ("a key that is no string", {**good(), 5: np.zeros(1)}, "unknown 5"),
    ("None", {**good(), "k": None}, "'k'"),
    ("a string", {**good(), "k": "seven"}, "'k'"),
    ("strings", {**good(), "k": np.array(["a", "b"])}, "'k'"),
    ("objects", {**good(), "k": np.array([object(), None])}, "'k' has element type object"),
    ("a tensor that numpy cannot see", {**good(), "x": torch.zeros(2, 3).to_sparse()}, "'x'"),
    ("a ragged list", {**good(), "k": [[1], [2, 3]]}, "'k'"),
    ("complex numbers", {**good(), "x": np.zeros((2, 3), np.complex64)}, "'x' has element type complex64"),
    ("dates", {**good(), "k": np.array(["2020-01-01"] * 2, "M8[D]")}, "'k'"),
    ("records", {**good(), "k": np.zeros(2, [("a", "i8")])}, "'k'"),
    ("another width", {**good(), "k": np.array([1, 2], np.int32)}, "'k'.* int32, must be int64"),
    ("double", {**good(), "x": np.zeros((2, 3))}, "'x'.* float64, must be float32"),
    ("big-endian of another type", {**good(), "x": np.zeros((2, 3), ">f8")}, "'x'.* must be float32"),
    ("a wrong size", {**good(), "x": np.zeros((2, 4), np.float32)}, "'x'.* dimension 1 is 4, must be 3"),
    ("sizes that differ", {**good(), "k": np.array([1, 2, 3])}, "dimension 0 is 3"),
    ("beyond the range", {"x": np.zeros((9, 3), np.float32), "k": np.zeros(9, np.int64)}, "dimension 0 is 9"),
    ("rank 0", {**good(), "x": np.float32(1)}, "'x'.* rank 0"),
    ("rank 64", {**good(), "x": np.zeros((1,) * 32 + (2, 3), np.float32)[(0,) * 31]}, "'x'.* rank 3"),
    (
        "a virtual array of terabytes",
        {**good(), "x": np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 40, 3), (0, 0))},
        "'x': dimension 0 is 1099511627776, 'n' must be in",
    ),
    ("a list", [np.zeros(3, np.float32)], "inputs: list, must be arrays by name"),
    ("nothing", None, "inputs: NoneType, must be arrays by name"),
]


@pytest.mark.parametrize(("feed", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_arrays_that_do_not_fit_are_named(session: pn.Session, feed: Any, says: str) -> None:
    def wait(inputs: Any) -> Any:
        return session.run_async(inputs).result()

    for run in (session.run, wait, session.profile):
        with pytest.raises((pn.InvalidArgument, pn.OutOfMemory), match=says):
            run(feed)
    # Nothing was changed, and nothing is held.
    np.testing.assert_array_equal(session.run(good())["z"], [14, -2])


def test_numbers_of_pythons_own_become_the_inputs_type() -> None:
    """They have no type of theirs; arrays have one, which stays."""
    inputs = "input %x : f32[2] input %h : f16[] input %b : u8[2] input %k : i64[] input %t : bool[1]"
    outputs = "".join(f' output "{name}" %{name}' for name in "xhbkt")
    session = pn.Session(program_of(f'graph "g" {{ {inputs}{outputs} }}'))
    made = session.run({"x": [1, 0.5], "h": 2, "b": (0, 255), "k": 7, "t": [True]})
    want = {"x": np.array([1, 0.5], np.float32), "h": np.float16(2), "b": np.array([0, 255], np.uint8)}
    for name, value in {**want, "k": np.array(7), "t": np.array([True])}.items():
        np.testing.assert_array_equal(made[name], value)
    good: dict[str, Any] = {"x": [1, 2], "h": 1, "b": [1, 2], "k": 1, "t": [False]}
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"x": [1, 1e39]}, "'x' is not an array: 1e.39 is too large for float32"),
        ({"h": 70000}, "'h' is not an array: 70000 is too large for float16"),
        ({"b": [1, 256]}, "'b' is not an array: 256 is too large for uint8"),
        ({"b": [1, -1]}, "'b' is not an array: -1 is too large for uint8"),
        ({"k": 0.5}, "'k'.* float64, must be int64"),
        ({"t": [1]}, "'t'.* int64, must be bool"),
        ({"x": [True, False]}, "'x'.* bool, must be float32"),
        ({"x": np.array([1.0, 2.0])}, "'x'.* float64, must be float32"),
        ({"h": np.float64(1)}, "'h'.* float64, must be float16"),
    ]
    for wrong, says in wrongs:
        with pytest.raises(pn.InvalidArgument, match=says):
            session.run({**good, **wrong})


def test_arguments_of_a_wrong_type_are_named(session: pn.Session, program: pn.Program) -> None:
    """With their value, in a sentence that holds no arrays and no file."""
    feed, model = good(), pn.load(program.to_bytes())
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("threads must be a whole number, is '4'", lambda: pn.Session(program, threads="4")),  # type: ignore[arg-type]
        ("threads must be a whole number, is 2.0", lambda: pn.Session(program, threads=2.0)),  # type: ignore[arg-type]
        ("plan_cache must be a whole number", lambda: pn.Session(program, plan_cache="8")),  # type: ignore[arg-type]
        ("precision must be text, is None", lambda: pn.Session(program, precision=None)),  # type: ignore[arg-type]
        ("fallback must be True or False, is 'no'", lambda: pn.Session(program, fallback="no")),  # type: ignore[arg-type]
        ("pack_cache must be True or False", lambda: pn.Session(program, pack_cache=None)),  # type: ignore[arg-type]
        ("from_bytes needs the bytes", lambda: pn.Program.from_bytes("net.pnc")),  # type: ignore[arg-type]
        ("has 'a': 1", lambda: program.with_metadata({"a": 1})),  # type: ignore[dict-item]
        ("metadata must be a dict", lambda: model.build(metadata=["a"])),  # type: ignore[arg-type]
        ("targets must be a name or a list of names, is None", lambda: model.build(None)),  # type: ignore[arg-type]
        ("targets must be a name or a list of names, is .1.", lambda: model.check([1])),  # type: ignore[list-item]
        ("targets must be a name", lambda: pn.compare(program, program, feed, targets=3)),  # type: ignore[arg-type]
        ("max_constant_bytes must be a whole number", lambda: program.text("x")),  # type: ignore[arg-type]
        ("shapes must be a list of sizes", lambda: program.try_shapes([4, 3])),  # type: ignore[list-item]
        ("a size must be a whole number, is 2.5", lambda: model.try_shapes([[2.5, 3], [2]])),  # type: ignore[list-item]
        ("Dim must be text, is 3", lambda: pn.Dim(3)),  # type: ignore[arg-type]
        ("Dim 'n': min must be a whole number, is 1.5", lambda: pn.Dim("n", 1.5)),  # type: ignore[arg-type]
        ("check_passes must be True or False", lambda: pn.load(b"", check_passes="x")),  # type: ignore[arg-type]
        ("cancel must be a CancelToken, or None", lambda: pn.load(b"", cancel=3)),  # type: ignore[arg-type]
    ]
    runs: list[Callable[..., Any]] = [session.run, session.run_async, session.profile]
    for run in runs:
        calls.append(("timeout must be a number of seconds, or None, is '5'", partial(run, feed, timeout="5")))
        calls.append(("cancel must be a CancelToken, or None, is True", partial(run, feed, cancel=True)))
    for says, call in calls:
        with pytest.raises(TypeError, match=says) as refusal:
            call()
        assert len(str(refusal.value)) < 300
    assert len(session.run(feed, timeout=10**400)) == len(runs[0](feed, timeout=np.float32(9)))
    with pytest.raises(pn.InvalidArgument, match="at least one target"):
        pn.compare(program, program, feed, targets=[])
    data = program.to_bytes()
    assert pn.Program.from_bytes(bytearray(data)).to_bytes() == pn.Program.from_bytes(memoryview(data)).to_bytes()
    assert pn.Session(program, threads=np.int64(1)).threads == 1  # type: ignore[arg-type]
    assert pn.Dim("n", np.int64(2)) == pn.Dim("n", 2)  # type: ignore[arg-type]
    assert pn.load(data, disabled_passes="all").nodes


def test_an_array_that_does_not_fit_is_not_copied() -> None:
    """Whatever it would be, were it dense: here some terabytes, whose copy the system does not give."""
    program = program_of('graph "g" { symbol n 1..8 input %x : f32[n,3] %y : f32[n,3] = relu(%x) output "y" %y }')
    session = pn.Session(program)
    for shape, says in (((1 << 40, 3), "'n' must be in .1, 8."), ((2, 1 << 40), "must be 3"), ((1 << 42,), "rank 1")):
        for dtype in (np.float32, ">f4"):
            huge = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, (0,) * len(shape))
            with pytest.raises(pn.InvalidArgument, match=says):
                session.run({"x": huge})
    huge = np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 40, 3), (0, 0))
    with pytest.raises(pn.InvalidArgument, match="is float64, must be float32"):
        session.run({"x": huge})


def test_ragged_lists_are_invalid_arguments_everywhere(program: pn.Program, tmp_path: Path) -> None:
    ragged = [[1], [2, 3]]
    feed = {**good(), "k": ragged}
    program.save(tmp_path / "p.pnc")
    counter = pn.Session(
        program_of(
            'graph "g" {\n  input %x : f32[2]\n  state "total" %s : f32[2] next %t = {0,0}\n'
            '  %t : f32[2] = add(%s, %x)\n  output "t" %t\n}'
        )
    )
    (state,) = counter.state
    torch_trace: Any = torch.jit.trace  # which has no types
    traced = torch_trace(torch.nn.ReLU(), torch.ones(2))
    calls: list[Callable[[], Any]] = [
        lambda: seeded_inputs(program.inputs, feed),
        lambda: pn.compare(program, program, [feed]),
        lambda: pn.compare(program, torch.nn.ReLU(), [feed]),
        lambda: pn.load(tmp_path / "p.pnc", feed),
        lambda: pn.load(tmp_path / "p.pnc", list(feed.values())),
        lambda: pn.load(tmp_path / "p.pnc", feed, check_passes=True),
        lambda: pn.load(tmp_path / "p.pnc", list(feed.values()), check_passes=True),
        lambda: pn.load(tmp_path / "p.pnc").build(examples=[feed]),
        lambda: pn.load(traced, [ragged]),
        lambda: counter.state.__setitem__(state, ragged),
    ]
    for call in calls:
        with pytest.raises(pn.InvalidArgument, match="is not an array"):
            call()
    with pytest.raises(pn.InvalidArgument, match="has no tensor or array"):
        pn.load(traced, [["text"]])


def test_dynamic_sizes_keep_to_their_bound() -> None:
    bounded = pn.Session(program_of('graph "g" { input %x : f32[?<=4] %y : f32[?] = relu(%x) output "y" %y }'))
    for size in (0, 4):
        np.testing.assert_array_equal(bounded.run({"x": np.ones(size, np.float32)})["y"], np.ones(size))
    with pytest.raises(pn.InvalidArgument, match=r"'x'.* dimension 0 is 5, must be at most 4"):
        bounded.run({"x": np.ones(5, np.float32)})


@pytest.mark.parametrize(
    "sizes", [(-1, 3), (0, -1), (4, 3), (0, 3, 0), (1, 7, 8), (9, 15, 8), (5, 5, 2), (1, 2**62, 2**63)]
)
def test_dims_that_no_size_satisfies(sizes: tuple[int, ...]) -> None:
    with pytest.raises(pn.InvalidArgument, match="Dim 'b': no size satisfies"):
        pn.Dim("b", *sizes)
    for right in ((0, 7, 8), (1, 8, 8), (9, 16, 8), (9, None, 8)):  # 0 is a multiple of 8
        pn.Dim("b", *right)


def test_unusual_arrays_are_read_as_what_they_are(session: pn.Session) -> None:
    base = good()
    want = session.run(base)
    shifted = np.frombuffer(b"\0" + base["x"].tobytes(), np.float32, 6, 1).reshape(2, 3)  # at an odd address
    read_only = base["x"].copy()
    read_only.flags.writeable = False
    wide = np.zeros((4, 9), np.float32)
    wide[::2, ::3] = base["x"]
    variants = [
        np.asfortranarray(base["x"]),
        base["x"][::-1][::-1],
        wide[::2, ::3],
        base["x"].astype(">f4"),
        np.asfortranarray(base["x"].astype(">f4")),
        shifted,
        read_only,
        np.ma.masked_array(base["x"]),
        np.asmatrix(base["x"]),
    ]
    for x in variants:
        for k in (base["k"], base["k"].astype(">i8"), np.repeat(base["k"], 3)[::3]):
            got = session.run({"x": x, "k": k})
            np.testing.assert_array_equal(got["y"], want["y"])
            np.testing.assert_array_equal(got["z"], want["z"])
    assert not read_only.flags.writeable
    np.testing.assert_array_equal(read_only, base["x"])


def test_arrays_without_elements(session: pn.Session) -> None:
    for x in (np.zeros((0, 3), np.float32), np.zeros((5, 3), ">f4")[5:], np.asfortranarray(np.zeros((0, 3), "f4"))):
        got = session.run({"x": x, "k": np.zeros(0, np.int64)})
        assert got["y"].shape == (0, 3)
        assert got["z"].shape == (0,)


def test_results_outlive_their_session(program: pn.Program) -> None:
    session = pn.Session(program)
    y = session.run_async(good()).result()["y"]
    del session
    np.testing.assert_array_equal(y, 2 * good()["x"])
    pn.Session(program).run_async(good())  # nobody waits for this one: it waits for itself


def test_a_failed_run_leaves_inputs_and_results_alone(session: pn.Session) -> None:
    first = session.run(good())
    copy = first["y"].copy()
    with pytest.raises(pn.InvalidArgument):
        session.run({**good(), "x": np.zeros((2, 2), np.float32)})
    session.run({**good(), "x": good()["x"] * 100})
    np.testing.assert_array_equal(first["y"], copy)


# ---- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target": "abacus"}, "abacus"),
        ({"target": ""}, "''"),
        ({"target": "cpu:z80"}, "z80"),
        ({"target": ["cpu", "abacus"]}, "abacus"),
        ({"threads": -1}, "threads is -1"),
        ({"threads": 2**70}, "must be at most 2147483647"),
        ({"precision": "fp17"}, "fp17"),
        ({"plan_cache": 0}, "plan_cache is 0"),
        ({"keep": ["nothing"]}, "'nothing'"),
    ],
)
def test_options_that_do_not_exist_are_named(program: pn.Program, options: dict[str, Any], says: str) -> None:
    with pytest.raises((pn.InvalidArgument, pn.Unsupported), match=says):
        pn.Session(program, **options)


@pytest.mark.parametrize("options", [{"threads": "two"}, {"threads": 2.0}, {"target": 5}, {"keep": [5]}])
def test_options_of_another_type_are_type_errors(program: pn.Program, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        pn.Session(program, **options)


# ---- files ----------------------------------------------------------------------------------------------------------


def openers() -> list[Callable[[Any], Any]]:
    return [pn.load, pn.Program.open, pn.Session]


@pytest.mark.parametrize("open_it", openers(), ids=["load", "open", "session"])
def test_files_that_are_not_models(open_it: Callable[[Any], Any], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("This is a text of some length, and no model at all.\n" * 20)
    (tmp_path / "short").write_bytes(b"PN")
    (tmp_path / "zip").write_bytes(b"PK\3\4" + bytes(100))
    (tmp_path / "loop").symlink_to("loop")
    for name, kind in {
        "absent": pn.FileError,
        "": pn.FileError,
        "loop": pn.FileError,
        "text/below": pn.FileError,
        "n" * 300: pn.FileError,
        "empty": pn.CorruptFile,
        "text": pn.CorruptFile,
        "short": pn.CorruptFile,
        "zip": pn.CorruptFile,
    }.items():
        for path in (tmp_path / name, str(tmp_path / name)):
            with pytest.raises(kind) as caught:
                open_it(path)
            assert (tmp_path / name).name in str(caught.value)
    with pytest.raises((pn.FileError, pn.CorruptFile)):
        open_it("/dev/null")
    with pytest.raises((ValueError, pn.FileError)):
        open_it(str(tmp_path / "a\0b"))
    with pytest.raises(TypeError):
        open_it(5)


class Trap:
    """Leaves a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return (open, ("trap", "w"))


def write_other(kind: str, folder: Path) -> Path:
    """A file of a kind that load() does not read."""
    linear = torch.nn.Linear(2, 2)
    path = folder / {"a script": "net.py", "a folder": "folder", "a SavedModel": "saved"}.get(kind, "net.pt")
    old = {"_use_new_zipfile_serialization": not kind.startswith("old ")}
    objects: dict[str, Any] = {
        "state dict": linear.state_dict(),
        "plain dict of tensors": dict(linear.state_dict()),
        "checkpoint": {"epoch": 3, "state_dict": linear.state_dict(), "optimizer": {}},
        "module": linear,
        "trap": Trap(),
        "tensor": torch.ones(3),
        "list with a tensor": [torch.ones(3), 1],
        "tuple with a tensor": (torch.ones(3), 1),
        "numbers": {"a": 1},
        "text": "hello",
        "module in a dict": {"model": linear},
        "name of a key deeper": {"options": {"model": "resnet"}, "weights": linear.state_dict()},
    }
    if (name := kind.removeprefix("old ")) in objects:
        torch.save(objects[name], path, **old)
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Trap()))
    elif kind == "a script":
        path.write_text("import torch\n")
    elif kind in ("a folder", "a SavedModel"):
        path.mkdir()
        (path / ("saved_model.pb" if kind == "a SavedModel" else "net.onnx")).touch()
    elif kind == "arrays":
        with path.open("wb") as file:
            np.savez(file, x=np.ones(3))
    else:
        path.write_bytes(OTHER_BYTES[kind])
    return path


OTHER_BYTES = {
    "safetensors": (64).to_bytes(8, "little")
    + b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(64)
    + bytes(4),
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "TensorFlow Lite": b"\x1c\0\0\0TFL3" + bytes(100),
    "GGUF": b"GGUF\3\0\0\0" + bytes(100),
    "LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
    "web page": b"<!DOCTYPE html><html>Not found</html>",
    "array": b"\x93NUMPY" + bytes(100),
}
LOAD_WEIGHTS = r"module\.load_state_dict\(torch\.load\(path, weights_only=True\)"
OTHER_FILES = {
    "state dict": rf"a state dict of torch\.save.*{LOAD_WEIGHTS}\), then pn\.load\(module, x\)",
    "old state dict": rf"a state dict of torch\.save.*{LOAD_WEIGHTS}\)",
    "plain dict of tensors": r"a state dict of torch\.save",
    "checkpoint": rf"a checkpoint of torch\.save.*{LOAD_WEIGHTS}\['state_dict'\]\)",
    "old checkpoint": r"a checkpoint of torch\.save.*\['state_dict'\]",
    "module": r"a pickled object of torch\.nn\.modules\.linear\.Linear, a whole module if.*unpickling runs code",
    "list with a tensor": r"a list of torch\.save, no model",
    "tuple with a tensor": r"a tuple of torch\.save, no model",
    "numbers": r"a dict of torch\.save, no model",
    "old numbers": r"a dict of torch\.save, no model",
    "text": r"a text of torch\.save, no model",
    "module in a dict": r"a pickled dict with an object of torch\.nn\.modules\.linear\.Linear, a whole module if",
    "name of a key deeper": rf"a checkpoint of torch\.save.*{LOAD_WEIGHTS}\['weights'\]\)",
    "old module": r"a pickled object of torch\.nn\.modules\.linear\.Linear, a whole module",
    "trap": r"a pickled object of .*io\.open",
    "old trap": r"a pickled object of .*io\.open",
    "tensor": r"a tensor of torch\.save, no model",
    "pickle": r"a pickled object of .*io\.open, which is not opened because unpickling runs code",
    "a script": r"net\.py: cannot load it: Python source code: import the module's class",
    "a folder": r"folder: cannot load it: a folder; load\(\) takes a file, such as 'net\.onnx' in it",
    "a SavedModel": r"saved: cannot load it: a folder with a SavedModel of TensorFlow",
    "safetensors": r"safetensors, weights by name without the module.*load_state_dict",
    "HDF5": r"HDF5, as of Keras.*tf2onnx",
    "TensorFlow Lite": r"TensorFlow Lite.*tf2onnx",
    "GGUF": r"GGUF, weights and settings for llama\.cpp",
    "LFS": r"a pointer of Git LFS.*git lfs pull",
    "web page": r"a web page",
    "array": r"an array of numpy, no model",
    "arrays": r"arrays of numpy, no model",
}


@pytest.mark.parametrize("kind", OTHER_FILES)
def test_files_of_other_kinds_say_what_they_are(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of them is unpickled to find out, and what load() says fits into a few lines."""
    monkeypatch.chdir(tmp_path)
    path = write_other(kind, tmp_path)
    sources: list[Any] = [path] if path.is_dir() or path.suffix == ".py" else [path, path.read_bytes()]
    for source in sources:
        with pytest.raises(pn.FileError, match=OTHER_FILES[kind]) as caught:
            pn.load(source)
        assert len(str(caught.value)) < 400 + len(str(path))
    with pytest.raises(pn.FileError, match=OTHER_FILES[kind]):
        pn.compare(program_of(TEXT), path, [good()])
    assert not (tmp_path / "trap").exists()


def test_torchscript_that_is_damaged_is_no_pickle(tmp_path: Path) -> None:
    """torch, or the archive's reader, says what is wrong with it."""
    jit: Any = torch.jit
    path = tmp_path / "net.pt"
    jit.save(jit.trace(torch.nn.ReLU(), (torch.ones(2, 3),)), path)
    entries = zip_entries(path)
    for without in ("constants.pkl", "code/", "version"):
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in entries.items():
                if not name.split("/", 1)[1].startswith(tuple(without.split())):
                    archive.writestr(name, data)
        with pytest.raises(pn.Error) as caught:
            pn.load(path, torch.ones(2, 3))
        assert "pickled" not in str(caught.value)


def zip_entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(pn.FileError, match="No such file"):
        pn.load(tmp_path / "absent.py")


@pytest.mark.parametrize("call", ["load('x', dim_names=[(0, -1, 'n')])", "load(5)", "parse('', ops=5)"])
def test_wrong_arguments_of_the_extension_are_type_errors(call: str) -> None:
    """In another process: pybind11's keep_alive<0, …> ends it where arguments do not fit."""
    code = f"from pinnace import _core\ntry:\n    _core.Model.{call}\nexcept TypeError:\n    print('refused')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "refused\n")


def test_damaged_pickles_are_damaged_files(seed: int, tmp_path: Path) -> None:
    """What is told from opcodes is told of any bytes, or nothing is."""
    path = tmp_path / "net.pt"
    for kind in ("old module", "state dict", "pickle"):
        data = write_other(kind, tmp_path).read_bytes()
        for i in range(40):
            rng = random.Random(f"{seed}/{kind}/{i}")
            changed = bytearray(data[: rng.choice([len(data), rng.randrange(len(data))])] or b"x")
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            path.write_bytes(changed)
            with pytest.raises((pn.CorruptFile, pn.FileError, pn.ConversionError), match=r"net\.pt") as caught:
                pn.load(path)
            assert str(caught.value).isprintable()


@pytest.fixture(scope="module")
def archive() -> bytes:
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    written = io.BytesIO()
    torch.export.save(torch.export.export(net, (torch.ones(2, 3),)), written)
    return written.getvalue()


def test_damage_to_what_torch_writes(archive: bytes, seed: int, tmp_path: Path) -> None:
    """An error, or the same model: much of an archive is not read, checksums cover what is."""
    path = tmp_path / "damaged.pt2"

    def load(data: bytes) -> str | None:
        path.write_bytes(data)
        try:
            return _core.Model.load(str(path)).text(1 << 30)
        except (pn.CorruptFile, pn.Unsupported, pn.ConversionError) as error:
            return None if path.name in str(error) else f"does not name the file: {error}"

    want = load(archive)
    assert want is not None
    refused = 0
    for i in rotating_slice(range(2000), 0.3, "flips"):
        at = random.Random(f"{seed}/{i}").randrange(8 * len(archive))
        data = bytearray(archive)
        data[at // 8] ^= 1 << at % 8
        got = load(bytes(data))
        assert got in (None, want), f"seed {seed}, flip {i}"
        refused += got is None
    assert refused > 150
    for length in rotating_slice(range(len(archive)), 0.05, "lengths"):
        assert load(archive[:length]) is None, length


def test_a_program_is_not_made_of_a_path(tmp_path: Path) -> None:
    with pytest.raises(pn.InvalidArgument, match=r"given PosixPath: Program.open\(path\)"):
        pn.Program(tmp_path / "net.pnc")  # type: ignore[arg-type]


@pytest.mark.parametrize("open_it", openers(), ids=["load", "open", "session"])
def test_files_that_may_not_be_read(open_it: Callable[[Any], Any], program: pn.Program, tmp_path: Path) -> None:
    path = tmp_path / "secret.pnc"
    program.save(path)
    path.chmod(0)
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:  # who may read everything
            os.setuid(65534)
        try:
            open_it(path)
        except pn.FileError as error:
            os._exit(0 if "secret.pnc" in str(error) and os.strerror(13) in str(error) else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_files_of_strange_names(program: pn.Program, tmp_path: Path) -> None:
    for name in ("größe 模型.pnc", "a b\nc.pnc", "-v", "n" * 255):
        for path in (tmp_path / name, str(tmp_path / name)):
            program.save(path)
            assert pn.Program.open(path).to_bytes() == program.to_bytes()
    assert len(list(tmp_path.iterdir())) == 4


def test_places_where_nothing_can_be_written(program: pn.Program, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("absent/p.pnc", "file/p.pnc", ".", "n" * 256):
        with pytest.raises(pn.FileError):
            program.save(tmp_path / path)
    with pytest.raises(pn.FileError):
        program.save("")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


# ---- saving on a full disk, and being killed ------------------------------------------------------------------------

SAVER = """
import os, resource, sys
import pinnace as pn
program = pn.Program.open(sys.argv[1])
print("ready", flush=True)
if sys.argv[3] == "limited":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        program.save(sys.argv[2])
    except pn.FileError as error:
        print(error)
        sys.exit(3)
while True:
    program.save(sys.argv[2])
"""


def large_program(path: Path) -> bytes:
    values = ",".join("1" for _ in range(300_000))
    program = program_of(
        f'graph "large" {{ input %x : f32[300000] const %w : f32[300000] = {{{values}}}'
        ' %y : f32[300000] = add(%x, %w) output "y" %y }'
    )
    program.save(path)
    return program.to_bytes()


def start_saver(source: Path, target: Path, how: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SAVER, str(source), str(target), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_full_disk_leaves_the_old_file_whole(program: pn.Program, tmp_path: Path) -> None:
    source, target = tmp_path / "large.pnc", tmp_path / "target.pnc"
    large_program(source)
    program.save(target)
    # The system's limit of a file's size stands in for a full disk; Python ignores its signal.
    with start_saver(source, target, "limited") as child:
        said, _ = child.communicate(timeout=60)
    assert child.returncode == 3, said
    assert "target.pnc" in said
    assert os.strerror(27) in said  # EFBIG
    assert target.read_bytes() == program.to_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["large.pnc", "target.pnc"]
    if Path("/dev/full").exists():
        with pytest.raises(pn.FileError, match="not a regular file"):
            program.save("/dev/full")


def test_being_killed_leaves_a_whole_file(program: pn.Program, tmp_path: Path) -> None:
    source, target = tmp_path / "large.pnc", tmp_path / "target.pnc"
    whole = {large_program(source), program.to_bytes()}
    unfinished = 0
    for i in range(12):
        program.save(target)
        with start_saver(source, target, "endless") as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.002 * i)
            child.send_signal(signal.SIGKILL)
            child.wait(timeout=60)
        assert target.read_bytes() in whole
        pn.Program.open(target)
        left = [p for p in tmp_path.iterdir() if p not in (source, target)]
        unfinished += len(left)
        for path in left:  # a killed process cannot clean up; nobody takes its file for the model
            assert path.name.startswith(".target.pnc.")
            path.unlink()
    assert unfinished, "no kill came in the middle of a save"


# ---- memory ---------------------------------------------------------------------------------------------------------


def test_a_run_that_needs_more_than_there_is_says_so(tmp_path: Path) -> None:
    code = """
import resource, sys
import numpy as np
import pinnace as pn
from pinnace import _core
text = sys.argv[1]
session = pn.Session(pn.Program(_core.Model.parse(text, [], False, []).build(["cpu"], {})), threads=1)
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
try:
    session.run({"n": np.array([1 << 32])})
except pn.OutOfMemory as error:
    assert "4294967296" in str(error) or "bytes" in str(error), error
    print(session.run({"n": np.array([4])})["y"].sum())
"""
    text = """graph "g" { input %n : i64[1] %y : f32[?] = constant_of_shape(%n) output "y" %y }"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code, text], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "0.0\n"


def test_an_instruction_set_that_the_environment_names_wrongly_is_refused(tmp_path: Path) -> None:
    code = """
import numpy as np, pinnace as pn, sys
try:
    pn.Session(sys.argv[1])
except pn.Unsupported as error:
    print(error)
"""
    path = tmp_path / "net.pnc"
    program_of(TEXT).save(path)
    environment = dict(os.environ, PINNACE_CPU_ISA="avx9")
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "PINNACE_CPU_ISA: 'avx9' is no instruction set known here" in done.stdout
