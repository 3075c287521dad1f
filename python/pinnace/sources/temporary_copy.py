"""Models in memory (bytes, open files, ONNX protos) as files, which the importers and what runs models read."""

from __future__ import annotations

import contextlib
import io
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pinnace import _core
from pinnace.files import failures_named, one_line, reason


class TemporaryCopy:
    """A file with a model that was in memory. It goes when this object does, or the process ends."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        """data: of the file. name: what errors call it. FileError: it cannot be written."""
        import tempfile  # imports much, as in temporary_folder()

        self.name = name
        try:
            folder = tempfile.mkdtemp(prefix="pinnace-")
        except OSError as error:
            raise _core.FileError(f"cannot make a folder for temporary files: {reason(error)}") from error
        weakref.finalize(self, _remove, folder, os.getpid())
        self.path = str(Path(folder) / "model")
        with failures_named(name, "a temporary copy"), open(self.path, "wb") as file:
            file.write(data)

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Errors in the block name the model in place of the file."""
        try:
            yield
        except _core.Error as error:
            error.args = (str(error).replace(self.path, self.name),)
            raise


def _remove(folder: str, process: int) -> None:
    """By the process that made it: a child that was forked ends without taking its parent's files away."""
    import shutil

    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def temporary_copy(source: Any) -> TemporaryCopy | None:
    """A copy of bytes, of what an open file still has, or of an ONNX ModelProto; None for all else.

    InvalidArgument: the file was opened as text, or the proto is larger than its format allows.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return TemporaryCopy(source if isinstance(source, bytes) else bytes(source), "bytes")
    if type(source).__name__ == "ModelProto" and hasattr(source, "SerializeToString"):
        try:
            return TemporaryCopy(source.SerializeToString(), "ModelProto")
        except Exception as error:  # of protobuf, whose classes differ between versions
            raise _core.InvalidArgument(
                f"the ModelProto cannot be written: {one_line(error, 160)}; save it with external data, load the path"
            ) from error
    if isinstance(source, (os.PathLike, str)) or not callable(getattr(source, "read", None)):
        return None
    own = getattr(source, "name", None)
    name = os.path.basename(own) if isinstance(own, str) and own else type(source).__name__
    try:
        data = "" if isinstance(source, io.TextIOBase) else source.read()
    except (OSError, ValueError) as error:
        raise _core.FileError(f"cannot read {name!r}: {reason(error)}") from error
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise _core.InvalidArgument(f"{name}: the file is open as text; open it as open(path, 'rb')")
    return TemporaryCopy(bytes(data), name)


__all__ = ["TemporaryCopy", "temporary_copy"]
