"""Zip archives of users, read with Python's zipfile under bounds: whatever is wrong with one is a CorruptFile."""

from __future__ import annotations

import contextlib
import errno
import os
import zipfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO

from pinnace import _core
from pinnace.files import one_line, open_regular, reason

MAX_ENTRIES = 1 << 20
# TorchScript's source files are deflated. A thousandth of a text's size is as small as deflate makes any.
INFLATED_MOST, INFLATED_FACTOR = 64 << 20, 20


@contextlib.contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Turns whatever zipfile and its helpers raise, for which there is no list, into an error that names the file:
    FileError where the system cannot read it, else CorruptFile.
    """
    try:
        yield
    except _core.Error:
        raise
    except MemoryError as error:
        raise _core.OutOfMemory(f"{path}: reading the archive") from error
    except Exception as error:
        # EINVAL is what a seek to a negative place gives, which an archive asks for.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise _core.FileError(f"{path}: {reason(error)}") from error
        text = one_line(error, 200, kind=True)
        raise _core.CorruptFile(f"{path}: not a readable archive: {text}") from error


def is_zip(path: str) -> bool:
    """Whether a regular file of that name is an archive; False too where there is none, or it cannot be read."""
    try:
        with open_regular(path) as file:
            return zipfile.is_zipfile(file)
    except zipfile.BadZipFile:  # an archive that zipfile does not read, as one of several disks
        return True
    except (_core.FileError, OSError):
        return False


class PlainZip(zipfile.ZipFile):
    """Without zipfile's finalizer, which is Python code: an interrupt that arrives while it runs is dropped, and the
    call goes on. Whoever opens one closes it."""

    __del__ = object.__hash__  # type: ignore[assignment]  # compiled code, and nothing more


class ZipFile:
    """An archive whose directory has been checked. A context manager.

    Entries are unique, not encrypted, and stored as they are, together no larger than the file; with `inflated`, also
    deflated, within INFLATED_MOST and INFLATED_FACTOR times the file.
    """

    def __init__(self, path: str, inflated: bool = False) -> None:
        """CorruptFile, FileError."""
        self.path = path
        with contextlib.ExitStack() as opened, damage_named(path):
            self._file = opened.enter_context(open_regular(path))
            self.bytes = os.fstat(self._file.fileno()).st_size
            self._zip = PlainZip(self._file)
            self._entries = self._checked(inflated)
            opened.pop_all()  # __exit__ closes it

    def _checked(self, inflated: bool) -> dict[str, zipfile.ZipInfo]:
        entries: dict[str, zipfile.ZipInfo] = {}
        stored = expanded = 0
        infos = self._zip.infolist()
        if len(infos) > MAX_ENTRIES:
            raise self.corrupt(f"{len(infos)} entries, at most {MAX_ENTRIES} are read")
        for info in infos:
            name = ascii(info.filename)[:80]
            if info.flag_bits & 0x61:
                raise self.corrupt(f"entry {name} is encrypted or a patch")
            if info.filename in entries:
                raise self.corrupt(f"entry {name} appears twice")
            if info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size:
                stored += info.file_size
            elif info.compress_type == zipfile.ZIP_DEFLATED and inflated:
                stored += info.compress_size
                expanded += info.file_size
            else:
                raise self.corrupt(f"entry {name} is compressed (method {info.compress_type})")
            entries[info.filename] = info
        if stored > self.bytes:
            raise self.corrupt(f"its entries take {stored} bytes, the file has {self.bytes}")
        if expanded > INFLATED_MOST + INFLATED_FACTOR * self.bytes:
            raise self.corrupt(f"its entries expand to {expanded} bytes, the file has {self.bytes}")
        return entries

    def corrupt(self, text: str) -> _core.CorruptFile:
        """The error for a file that breaks a rule."""
        return _core.CorruptFile(f"{self.path}: {text}")

    def __enter__(self) -> ZipFile:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        self._zip.close()
        self._file.close()

    @property
    def descriptor(self) -> int:
        """Of the open file."""
        return self._file.fileno()

    @property
    def same_file(self) -> str | IO[bytes]:
        """For other readers, while this is open: the file that was checked, whatever has its name by now.

        A path where the system has one for open files, else the file itself, of which readers make a copy in memory.
        """
        path = f"/proc/self/fd/{self._file.fileno()}"
        if os.path.exists(path):
            return path
        self._file.seek(0)
        return self._file

    @property
    def names(self) -> list[str]:
        """Every entry, as the directory orders them."""
        return list(self._entries)

    def size(self, name: str) -> int:
        """Bytes of an entry. CorruptFile: there is none of that name."""
        if name not in self._entries:
            raise self.corrupt(f"there is no entry {ascii(name)[:80]}")
        return self._entries[name].file_size

    def read(self, name: str, most: int) -> bytes:
        """The bytes of an entry of at most so many, its checksum compared."""
        if self.size(name) > most:
            raise self.corrupt(f"entry {ascii(name)[:80]} has {self.size(name)} bytes, at most {most} are read")
        with damage_named(self.path):
            return self._zip.read(self._entries[name])

    def chunks(self, name: str) -> Iterator[bytes]:
        """The same in pieces, for entries that are as large as weights are."""
        self.size(name)
        with damage_named(self.path), self._zip.open(self._entries[name]) as entry:
            while piece := _piece(entry):
                yield piece

    def verify(self) -> None:
        """Reads every entry to its end: CorruptFile where bytes and checksum differ."""
        for name in self.names:
            for _ in self.chunks(name):
                pass


def _piece(entry: IO[bytes]) -> bytes:
    return entry.read(1 << 22)


__all__ = ["INFLATED_MOST", "PlainZip", "ZipFile", "damage_named", "is_zip"]
