"""Files that models are read from: those that users name, and temporary copies of models in memory (bytes, open files,
ONNX protos), since the importers and what runs models read files."""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pinnace import _core
from pinnace.files import TemporaryFolder, failures_named, one_line, printable, reason
from pinnace.sources.base import Source
from pinnace.torch.other_files import other_files_named
from pinnace.types import Array

_CHUNK = 1 << 20  # bytes of an open file that are copied at a time
_BYTES = (bytes, bytearray, memoryview)


class ModelFile:
    """A file with a model, and what it is called. A temporary copy goes when this object does, or the process ends."""

    def __init__(self, path: str, name: str, copied_to: TemporaryFolder | None = None) -> None:
        """Made by model_file(). `copied_to`: where a temporary copy lies."""
        self.path = path
        self.name = name
        self._copied_to = copied_to

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """For a block that reads the file: errors name the model in place of a temporary copy, and say what a file of
        another kind is.
        """
        try:
            with other_files_named(self.path):
                yield
        except _core.Error as error:
            if self._copied_to:
                error.args = (str(error).replace(self.path, self.name),)
            raise

    def reader(self, source: Source) -> Source:
        """The source, which reads the file, such that its errors name the model; a temporary copy stays with it."""
        return _Reader(source, self) if self._copied_to else source


class _Reader:
    """A source whose file is a temporary copy."""

    def __init__(self, source: Source, file: ModelFile) -> None:
        self._source = source
        self._file = file

    @property
    def description(self) -> str:
        """As in Source."""
        with self._file.named():
            return self._source.description

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """As in Source."""
        with self._file.named():
            return self._source.run(inputs)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        """As in Source."""
        with self._file.named():
            return self._source.layers(inputs, names)

    def __getattr__(self, name: str) -> Any:
        """What some kinds of source have beyond these."""
        if name.startswith("_"):
            raise AttributeError(name)
        with self._file.named():
            value = getattr(self._source, name)
        if not callable(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._file.named():
                return value(*args, **kwargs)

        return call


def model_file(source: Any) -> ModelFile:
    """The file of a path; a copy of bytes, of what an open file still has, or of an ONNX ModelProto.

    TypeError, with what to do: the source is none of these. InvalidArgument: a file that was opened as text or has
    nothing left, or a proto that is larger than its format allows. FileError: it cannot be copied.
    """
    if isinstance(source, (os.PathLike, str)):
        path = os.fsdecode(source)
        # A name that is not of the system's encoding has halves of surrogate pairs, which metadata cannot have.
        return ModelFile(path, Path(path).name.encode("utf-8", "backslashreplace").decode())
    if isinstance(source, _BYTES):
        plain = source if not isinstance(source, memoryview) or source.c_contiguous else bytes(source)
        return _copy("bytes", lambda write: write(plain))
    if type(source).__name__ == "ModelProto" and hasattr(source, "SerializeToString"):
        try:
            data = source.SerializeToString()
        except Exception as error:  # of protobuf, whose classes differ between versions
            raise _core.InvalidArgument(
                f"the ModelProto cannot be written: {one_line(error, 160)}; save it with external data, load the path"
            ) from error
        return _copy("ModelProto", lambda write: write(data))
    if callable(getattr(source, "read", None)):
        name = _file_name(source)
        return _copy(name, lambda write: _copy_file(source, name, write))
    way = ""
    if isinstance(source, type):
        way = f"; {source.__name__} is a class: make an instance, and give that"
    elif isinstance(source, Mapping):
        way = "; of a state dict: build the module, load_state_dict(), and give the module"
    raise TypeError(
        f"a model is a module, an exported program, a path, bytes or an open file, not {type(source).__name__}{way}"
    )


def _copy(name: str, fill: Callable[[Callable[[Any], Any]], Any]) -> ModelFile:
    folder = TemporaryFolder()
    made = ModelFile(os.path.join(folder.path, "model"), name, folder)
    with failures_named(name, "a temporary copy"), open(made.path, "wb") as file:
        fill(file.write)
    return made


def _file_name(file: Any) -> str:
    own = getattr(file, "name", None)
    name = os.path.basename(own) if isinstance(own, str) else ""
    return printable(name) or type(file).__name__


def _copy_file(file: Any, name: str, write: Callable[[Any], Any]) -> None:
    """What the file has from its position on."""
    if isinstance(file, io.TextIOBase):
        raise _core.InvalidArgument(f"{name}: the file is open as text; open it as open(path, 'rb')")
    copied = 0
    while True:
        try:
            data = file.read(_CHUNK)
        except (OSError, ValueError) as error:
            raise _core.FileError(f"cannot read {name!r}: {reason(error)}") from error
        except TypeError as error:
            raise _core.InvalidArgument(f"{name} is no file: read(size) fails: {error}") from error
        if not isinstance(data, _BYTES):
            text = "text: open it as open(path, 'rb')" if isinstance(data, str) else type(data).__name__
            raise _core.InvalidArgument(f"{name}: read() must give bytes, it gives {text}")
        if not data:
            break
        write(data)
        copied += len(data)
    if not copied and (place := _place(file)):
        raise _core.InvalidArgument(
            f"{name}: nothing is left to read: a file is read from its position on, which is at its end, byte {place}; "
            "seek(0) goes to its beginning"
        )


def _place(file: Any) -> int:
    try:
        return int(file.tell())
    except Exception:  # not every object with read() has it
        return 0


__all__ = ["ModelFile", "model_file"]
