"""Paths and names that a model file brings, and paths that are no files: nothing waits, nothing is read or written
elsewhere, and nothing reaches a terminal, a page or an archive as anything but text.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import TensorProto, helper
from pinnace import cli
from pinnace.files import member_names, printable
from pinnace.torch.zip_file import ZipFile, damage_named, is_zip

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
HOSTILE = [
    f"../../{ESCAPE}",
    "<script>alert(1)</script>",
    "/etc/passwd",
    "\u202egnp.exe",
    "..",
    "a\nb",
    "con",
    "CON",
    "",
]


@pytest.fixture(autouse=True)
def at_most_a_minute() -> Iterator[None]:
    """A call that waits for a pipe's other end becomes a failure."""

    def give_up(*_: object) -> None:
        pytest.fail("waited for a minute")  # no Exception: code that handles errors of files lets it through

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def model_of(names: list[str], op: str = "Relu") -> onnx.ModelProto:
    """One node for each name, all of one input "x", giving outputs of these names."""
    nodes = [helper.make_node(op, ["x"], [name], name=f"node {name}") for name in names]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in names]
    graph = helper.make_graph(nodes, "g", [x], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def call(*arguments: object) -> int:
    return cli.main([str(a) for a in arguments])


# ---- paths that are no files ----------------------------------------------------------------------------------------


@pytest.fixture(params=["fifo", "socket", "device", "folder"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        path = tmp_path / name
        if request.param == "fifo":
            os.mkfifo(path)
        elif request.param == "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                monkeypatch.chdir(tmp_path)  # the path of a socket is short
                listener.bind(name)
        elif request.param == "device":
            path.symlink_to("/dev/zero")
        else:
            path.mkdir()
        return path

    return make


@pytest.mark.parametrize("name", ["m.onnx", "m.pt2", "m.pt", "m.pnc", "m.json", "m"])
def test_what_is_no_file_is_not_opened(name: str, no_file: Callable[[str], Path], tmp_path: Path) -> None:
    path = no_file(name)
    (tmp_path / "good.onnx").write_bytes(model_of(["y"]).SerializeToString())
    program = pn.load(tmp_path / "good.onnx").build(verify=False)
    calls: list[Callable[[], Any]] = [
        lambda: pn.load(path),
        lambda: pn.Program.open(path),
        lambda: pn.Session(path),
        lambda: pn.compare(program, path, [{"x": np.ones((2, 3), np.float32)}]),
    ]
    for each in calls:
        with pytest.raises(pn.FileError) as caught:
            each()
        assert name in str(caught.value)


def test_an_archive_that_is_no_file(no_file: Callable[[str], Path]) -> None:
    path = str(no_file("m.pt2"))
    assert not is_zip(path)
    with pytest.raises(pn.FileError, match=r"m\.pt2"):
        ZipFile(path)


def test_archives_that_the_system_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(pn.FileError, match=r"a\.pt2: Input/output error \(errno 5\)"), damage_named("a.pt2"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(pn.CorruptFile, match=r"a\.pt2"), damage_named("a.pt2"):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))  # a seek to a negative place
    path = tmp_path / "a.pt2"
    path.write_bytes(b"PK\3\4 no archive")
    with pytest.raises(pn.CorruptFile, match=r"a\.pt2"):
        ZipFile(str(path))


def test_an_input_that_is_no_file(no_file: Callable[[str], Path], tmp_path: Path, capsys: Any) -> None:
    path = no_file("x.npy")
    (tmp_path / "good.onnx").write_bytes(model_of(["y"]).SerializeToString())
    pn.load(tmp_path / "good.onnx").build(verify=False).save(tmp_path / "good.pnc")
    assert call("run", tmp_path / "good.pnc", "--input", f"x={path}") == 2
    assert "x.npy" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage", [b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4',", b"", b"\x80"]
)
def test_an_input_that_is_no_array(damage: bytes, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "good.onnx").write_bytes(model_of(["y"]).SerializeToString())
    pn.load(tmp_path / "good.onnx").build(verify=False).save(tmp_path / "good.pnc")
    (tmp_path / "x.npy").write_bytes(damage)
    assert call("run", tmp_path / "good.pnc", "--input", f"x={tmp_path / 'x.npy'}") == 2
    assert "x.npy" in capsys.readouterr().err


# ---- external data --------------------------------------------------------------------------------------------------


def external_model(path: Path, pieces: list[tuple[str, int, int]]) -> None:
    """The sum of tensors of floats that lie at (location, offset, length)."""
    graph = helper.make_graph([], "g", [], [])
    names = []
    for i, (location, offset, length) in enumerate(pieces):
        tensor = graph.initializer.add()
        tensor.name = f"w{i}"
        tensor.data_type = TensorProto.FLOAT
        tensor.dims.append(length // 4)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        names.append(tensor.name)
    size = pieces[0][2] // 4
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [size]))
    graph.node.append(helper.make_node("Sum", ["x", *names], ["y"]))
    graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [size]))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def test_external_data_that_is_no_file(no_file: Callable[[str], Path], tmp_path: Path) -> None:
    no_file("w.bin")
    external_model(tmp_path / "m.onnx", [("w.bin", 0, 16)])
    with pytest.raises((pn.FileError, pn.CorruptFile), match=r"w\.bin"):
        pn.load(tmp_path / "m.onnx")


def test_external_data_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"s" * 64)
    (folder / "out").symlink_to("../secret")
    (folder / "absolute").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("..")
    (folder / "magic").symlink_to("/proc/self/root")
    for location in ("../secret", "out", "absolute", "up/secret", f"magic{tmp_path}/secret", str(tmp_path / "secret")):
        external_model(folder / "m.onnx", [(location, 0, 16)])
        with pytest.raises(pn.CorruptFile) as caught:
            pn.load(folder / "m.onnx")
        assert caught.value.rule == "O-14", location


LOAD_MANY = """
import resource, sys
import pinnace as pn
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    program = pn.load(sys.argv[1]).build(verify=False)
    print(len(program.to_bytes()), end=" ")
except pn.Error as error:
    print(type(error).__name__, error.rule, end=" ")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def load_many(path: Path) -> tuple[str, int]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD_MANY, str(path)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    said, _, megabytes = done.stdout.strip().rpartition(" ")
    return said, int(megabytes)


@pytest.mark.parametrize("offset", [0, 4])  # where bytes may stay in the mapped file, and where they are copied
def test_tensors_at_one_place_share_their_bytes(offset: int, tmp_path: Path) -> None:
    size = 4 << 20
    (tmp_path / "w.bin").write_bytes(b"\0" * (size + offset))
    external_model(tmp_path / "m.onnx", [("w.bin", offset, size)] * 200)
    said, megabytes = load_many(tmp_path / "m.onnx")
    assert int(said) < 3 * size, "the program has the bytes once"
    assert megabytes < 150, "200 copies would be 800 MB"


def test_tensors_over_one_another_are_bounded(tmp_path: Path) -> None:
    size = 4 << 20
    (tmp_path / "w.bin").write_bytes(b"\0" * (size + (1 << 20)))
    external_model(tmp_path / "m.onnx", [("w.bin", 4 * i, size) for i in range(200)])
    said, megabytes = load_many(tmp_path / "m.onnx")
    assert said == "CorruptFile O-17"
    assert megabytes < 100


def test_tied_weights_of_two_shapes_are_fine(tmp_path: Path) -> None:
    values = np.arange(8, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(values.tobytes())
    external_model(tmp_path / "m.onnx", [("w.bin", 0, 16), ("w.bin", 0, 16), ("w.bin", 4, 16), ("w.bin", 16, 16)])
    program = pn.load(tmp_path / "m.onnx").build()
    outputs = pn.Session(program).run({"x": np.zeros(4, np.float32)})
    np.testing.assert_array_equal(outputs["y"], 2 * values[:4] + values[1:5] + values[4:])


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A program whose outputs have hostile names."""
    names = [n for n in HOSTILE if n]
    (tmp_path / "named.onnx").write_bytes(model_of(names).SerializeToString())
    pn.load(tmp_path / "named.onnx").build(verify=False).save(tmp_path / "named.pnc")
    return tmp_path / "named.pnc"


def is_shown_safely(text: str) -> bool:
    return printable(text, keep="\n") == text


def test_a_terminal_is_given_text(named: Path, tmp_path: Path, capsys: Any) -> None:
    source = tmp_path / "named.onnx"
    commands = [
        ["inspect", named],
        ["inspect", named, "--text"],
        ["inspect", named, "--json"],
        ["run", named],
        ["run", named, "--json"],
        ["check", source],
        ["check", source, "--json"],
        ["compare", named, "--reference", source],
        ["compare", named, "--reference", source, "--json"],
        ["convert", source, "-o", tmp_path / "again.pnc"],
        ["bench", named, "--runs", "1"],
        ["diff", named, tmp_path / "again.pnc"],
        ["run", named, "--input", "none=x.npy"],
    ]
    for command in commands:
        call(*command)
        said = capsys.readouterr()
        assert is_shown_safely(said.out), command
        assert is_shown_safely(said.err), command
    for shown in (pn.Program.open(named), pn.load(source), *pn.Program.open(named).outputs.values()):
        assert is_shown_safely(f"{shown!r} {shown!s}")


def test_json_keeps_names(named: Path, capsys: Any) -> None:
    call("run", named, "--json")
    assert set(json.loads(capsys.readouterr().out)) == {n for n in HOSTILE if n}


def test_errors_are_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    model = model_of(["y"], op=f"No{ESCAPE}Such\n  Op '\u202e'")
    path.write_bytes(model.SerializeToString())
    with pytest.raises(pn.ConversionError) as caught:
        pn.load(path)
    assert is_shown_safely(str(caught.value))
    assert str(caught.value).count("\n") == 1
    assert is_shown_safely(repr(caught.value.nodes[0]))
    assert ESCAPE in caught.value.nodes[0].op, "as data it stays what it is"
    path.write_bytes(model.SerializeToString().replace(b"node y", b"n\xff\xfe\x80\x1by"))
    with pytest.raises(pn.ConversionError) as caught:
        pn.load(path)
    assert is_shown_safely(str(caught.value))
    assert "\\xff\\xfe\\x80" in caught.value.nodes[0].node
    path.write_bytes(model_of(["y"]).SerializeToString().replace(b"x", b"\x1b", 1))  # reads what nothing makes
    with pytest.raises(pn.Error) as other:
        pn.load(path)
    assert is_shown_safely(str(other.value))


def test_pages_escape_names(named: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert call("compare", named, "--reference", tmp_path / "named.onnx", "--html", page) == 0
    text = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;" in text
    assert text.count("<script") == 1, "the page's own"
    assert "<script>alert" not in text
    assert "\x1b" not in text


def test_members_of_archives_are_names_of_files(named: Path, tmp_path: Path) -> None:
    assert call("run", named, "--output", tmp_path / "out.npz") == 0
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        members = archive.namelist()
    names = [m.removesuffix(".npy") for m in members]
    assert [unquote(n) for n in names] == [n for n in HOSTILE if n]
    for name in names:
        assert "/" not in name
        assert "\\" not in name
        assert not name.startswith(".")
        assert name.isprintable()
        assert name.lower() not in ("con", "aux", "nul")
    assert len({n.lower() for n in names}) == len(names)
    with np.load(tmp_path / "out.npz") as arrays:
        assert all(arrays[n].shape == (2, 3) for n in names)


def test_names_of_members() -> None:
    plain = ["y", "layer.0_out-1", "A9"]
    assert member_names(plain) == dict(zip(plain, plain, strict=True))
    names = [*HOSTILE, "x" * 300, "x" * 301, "Y", "y", "\ud800", "%", "%2F", "a b", ".hidden", "end.", "nul.txt"]
    members = member_names(names)
    assert list(members) == names
    assert len({m.lower() for m in members.values()}) == len(names)
    assert all(len(m) <= 220 and m.isascii() for m in members.values())
    for name, member in members.items():
        if len(name) < 60 and name:
            assert unquote(member, errors="surrogatepass") == name


# ---- archives that are small and expand


EXPANDED = 200 << 20  # of zeros, which deflate makes 200 KB of: more than INFLATED_MOST and INFLATED_FACTOR allow

# Each of the arguments after the first is what to do and with which file; a line of output says what came of it.
OPENING = """
import resource, sys
import pinnace as pn, torch
from pinnace import cli
program = sys.argv[1]
sys.stderr = sys.stdout
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), resource.RLIM_INFINITY))
for kind, path in (word.split(":") for word in sys.argv[2:]):
    try:
        if kind == "load":
            pn.load(path)
        elif kind == "compare":
            pn.compare(program, path, [{"x": torch.ones(2, 3)}])
        elif cli.main(["run", program, "--input", path]) != 2:
            print("ran")
    except pn.CorruptFile as error:
        print(error)
"""


def deflated(path: Path, name: str, size: int) -> None:
    """An archive with what makes it an exported program, TorchScript or arrays, and one entry of zeros."""
    parts = {
        ".pt2": {"m/archive_format": b"pt2", "m/models/model.json": b"{}"},
        ".pt": {"m/constants.pkl": b"", "m/data.pkl": b"", "m/version": b"3"},
    }
    with zipfile.ZipFile(path, "w") as archive:
        for place, data in parts.get(path.suffix, {}).items():
            archive.writestr(place, data)
        archive.writestr(name, bytes(size), zipfile.ZIP_DEFLATED)


def test_archives_that_expand(tmp_path: Path) -> None:
    """Refused by what the directory says, in a process that has no room for what would come out of them."""
    program = tmp_path / "net.pnc"
    onnx.save(model_of(["y"]), tmp_path / "net.onnx")
    pn.load(tmp_path / "net.onnx").build().save(program)
    entries = {"s.pt": "m/code/__torch__.py", "e.pt2": "m/data/weights/model.pt", "a.npz": "x.npy"}
    for name, entry in entries.items():
        deflated(tmp_path / name, entry, EXPANDED)
        assert (tmp_path / name).stat().st_size < 300_000
    uses = ["load:s.pt", "compare:s.pt", "load:e.pt2", "compare:e.pt2", "run:a.npz"]
    done = subprocess.run(
        [sys.executable, "-c", OPENING, str(program), *uses],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done
    said = done.stdout.splitlines()
    assert len(said) == len(uses), done
    for use, line in zip(uses, said, strict=True):
        assert f"{use.split(':')[1]}: its entries expand to {EXPANDED} bytes" in line, line


def test_archives_that_expand_within_the_bounds(tmp_path: Path) -> None:
    path = tmp_path / "large.npz"
    deflated(path, "x.npy", 60 << 20)
    with ZipFile(str(path), inflated=True) as archive:
        assert sum(map(len, archive.chunks("x.npy"))) == 60 << 20


def test_names_that_are_no_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file's name is bytes; those that are not of the locale's encoding Python gives as half surrogate pairs."""
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    source, file, copy = (folder / os.fsdecode(name) for name in (b"n\xe9.onnx", b"n\xe9.pnc", b"\xfe.pnc"))
    source.write_bytes(model_of(["y"]).SerializeToString())
    program = pn.load(source).build(verify=False)
    assert program.metadata.source == "n\\udce9.onnx"
    program.save(file)
    feed = {"x": np.ones((2, 3), np.float32)}
    for opened in (pn.Session(file), pn.Session(str(file)), pn.Session(pn.Program.open(file))):
        assert opened.run(feed)["y"].tolist() == [[1.0] * 3] * 2
    assert pn.load(file).build().metadata.verified.startswith("1 input")
    with pytest.raises(pn.FileError, match="No such file"):
        pn.Program.open(copy)
    for command in (["convert", source, "-o", copy, "--no-verify"], ["inspect", file], ["run", file], ["run", copy]):
        assert cli.main([str(argument) for argument in command]) == 0, capfd.readouterr().err
