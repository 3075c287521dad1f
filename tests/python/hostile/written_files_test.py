"""Files that pinnace writes from Python: whole or not at all, with the rights that the umask gives, and nothing in the
folder of a model.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import TensorProto, helper, numpy_helper
from pinnace.files import remove_temporary_folders, replaced, temporary_folder
from pinnace.sources.model_file import model_file

OLD = b"what was there"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """net.onnx with its weights beside it in weights.bin, and net.pnc."""
    made = tmp_path_factory.mktemp("net")
    w = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["inner"]), helper.make_node("Relu", ["inner"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, made / "net.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    pn.load(made / "net.onnx").build(verify=False).save(made / "net.pnc")
    return made


def feed() -> dict[str, Any]:
    return {"x": np.ones((2, 3), np.float32)}


def writers(folder: Path) -> dict[str, Callable[[Path], object]]:
    program = pn.Program.open(folder / "net.pnc")

    def from_command_line(path: Path) -> None:
        from pinnace import cli

        # Where standard error is a file, the limit of the disk that stands in for a full one would hold for it too.
        with contextlib.redirect_stderr(io.StringIO()):
            status = cli.main(["run", str(folder / "net.pnc"), "--output", str(path)])
        if status:
            raise pn.FileError("refused")

    def compared() -> Any:
        return pn.compare(program, folder / "net.onnx", [feed()])

    return {
        "program": program.save,
        "profile": pn.Session(program).profile(feed()).save,
        "json": lambda path: compared().to_json(path),
        "html": lambda path: compared().to_html(path),
        "npz": from_command_line,
    }


KINDS = ["program", "profile", "json", "html", "npz"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_replaced_whole(kind: str, folder: Path, tmp_path: Path) -> None:
    write = writers(folder)[kind]
    path = tmp_path / "out"
    path.write_bytes(OLD)
    inode = path.stat().st_ino
    before = os.umask(0o027)
    try:
        write(path)
        assert path.read_bytes() != OLD
        assert path.stat().st_ino != inode, "written in place: a reader would have seen a part"
        (tmp_path / "target").write_bytes(OLD)
        (tmp_path / "link").symlink_to("target")
        write(tmp_path / "link")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() != OLD
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "out", "target"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_the_old_file(kind: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(OLD)
    write = writers(folder)[kind]
    child = os.fork()
    if child == 0:
        import resource

        status = 1
        signal.alarm(60)  # ends a child that hangs
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            # The system's limit of a file's size stands in for a full disk.
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            write(path)
        except pn.FileError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == OLD
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_not_written(kind: str, folder: Path, tmp_path: Path) -> None:
    write = writers(folder)[kind]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "absent/out", "n" * 256):
        try:
            write(tmp_path / name)
        except pn.FileError:
            continue
        pytest.fail(f"{name} was written")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "pipe"]
    assert list((tmp_path / "folder").iterdir()) == []


def test_an_error_in_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(OLD)

    def interrupted() -> None:
        with replaced(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == OLD
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def interrupted_at(number: int, block: Callable[[], None]) -> bool:
    """Runs the block with a KeyboardInterrupt at that line of what writes and removes files; False: it has fewer.

    Python drops one that comes in a finalizer, and shutil closes a descriptor a second time where the first one was
    interrupted, which is an OSError.
    """
    left = number

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal left
        if os.path.basename(frame.f_code.co_filename) not in ("files.py", "shutil.py", "tempfile.py"):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    with contextlib.suppress(KeyboardInterrupt, OSError):
        try:
            block()
        finally:
            sys.settrace(before)
    return left <= 0


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of finalizers
def test_ctrl_c_at_any_line_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path, new = tmp_path / "out", b"what is new"
    path.write_bytes(OLD)

    def write() -> None:
        with replaced(path) as file:
            file.write(new)

    def use_a_folder() -> None:
        with temporary_folder() as made:
            Path(made, "inside").mkdir()

    def copy_a_model() -> None:
        model_file(b"a model")

    for block in (write, use_a_folder, copy_a_model):
        lines = 0
        while interrupted_at(lines + 1, block):
            lines += 1
            gc.collect()
            remove_temporary_folders()  # as when the process ends
            assert [p.name for p in tmp_path.iterdir()] == ["out"], f"line {lines} of {block.__name__}"
            assert path.read_bytes() in (OLD, new)
        assert lines > 10, block.__name__


WATCHED = """
import os, sys
folder = sys.argv[1]
def watch(event, arguments):
    if event in ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink"):
        writes = [str(a) for a in arguments if isinstance(a, (str, bytes, os.PathLike))]
    elif event == "open" and isinstance(arguments[0], (str, os.PathLike)):
        writes = [str(arguments[0])] if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else []
    else:
        return
    if any(os.path.abspath(w).startswith(folder) for w in writes):
        print(event, writes, flush=True)
        os._exit(3)
sys.addaudithook(watch)
import numpy as np
import pinnace as pn
from pinnace.sources.onnx_file import OnnxSource
x = np.ones((2, 3), np.float32)
program = pn.load(folder + "/net.onnx").build()
result = pn.compare(program, folder + "/net.onnx", [{"x": x}])
assert result.ok and any(not r.output for r in result.rows), str(result)
source = OnnxSource(folder + "/net.onnx")
source._evaluate = sys.argv[2] == "evaluator"
layers = source.layers([x], {"inner"})
np.testing.assert_array_equal(layers["inner"], x @ np.arange(6, dtype=np.float32).reshape(3, 2))
"""


@pytest.mark.parametrize("engine", ["onnxruntime", "evaluator"])
def test_nothing_is_written_beside_a_model(engine: str, folder: Path) -> None:
    before = sorted(p.name for p in folder.iterdir())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    folder.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", WATCHED, str(folder), engine],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(p.name for p in folder.iterdir()) == before


def test_where_no_temporary_folder_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(pn.FileError, match="nowhere"), temporary_folder():
        pass

    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", none)
    with pytest.raises(pn.FileError, match="temporary"), temporary_folder():
        pass


def test_an_error_of_the_block_is_none_of_the_temporary_folder() -> None:
    with pytest.raises(ConnectionError) as caught, temporary_folder() as folder:
        raise ConnectionError("the caller's own")
    assert str(caught.value) == "the caller's own"
    assert not Path(folder).exists()
