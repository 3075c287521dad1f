"""Files that users name: opened only if they are regular files, replaced only as a whole; names from model files, made
fit for a terminal and for archives; and what errors say, as a part of a sentence.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from typing import IO, BinaryIO

from pinnace import _core

Path = str | os.PathLike[str]


# ---- reading --------------------------------------------------------------------------------------------------------


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file for reading. FileError for whatever else has a path: a FIFO would wait for a writer."""
    try:
        # By number first: what is checked is what was opened, whatever takes the name meanwhile.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise _core.FileError(f"cannot open {_quoted(path)}: {reason(error)}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _core.FileError(f"cannot open {_quoted(path)}: it is not a regular file")
    return os.fdopen(descriptor, "rb")


def place_text(name: str, module: str, source: str) -> str:
    """Where a node comes from, for people: "in layers.3, net.py:41"; without the module where its name begins so."""
    inside = f"in {module}" if module and not f"{name}:".startswith((f"{module}:", f"{module}@")) else ""
    return ", ".join(part for part in (inside, source) if part)


_FOLDER = re.compile(r"""(?<![\w./~])~?(?:/[^/\s'"(),;:]+)+/(?=[^/\s'"(),;:])""")


def without_folders(text: str) -> str:
    """The text with the last component alone of every path into a folder of this machine, which a file that is passed
    on must not tell of. ONNX has names that look like paths: they stay.
    """

    def shortened(found: re.Match[str]) -> str:
        return "" if os.path.isdir(os.path.expanduser(found[0])) else found[0]

    return _FOLDER.sub(shortened, text)


# ---- writing --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces `path` when the block ends, and only if nothing failed in it.

    It stands in the same folder until then, and is flushed to the disk before it takes the name; its mode follows the
    umask. A link at `path` stays and its target is replaced. FileError where anything of this fails, a full disk for
    instance: the temporary file is gone then, and what was at `path` is whole.
    """
    temporary = None
    try:
        try:
            target = os.path.realpath(path) if os.path.islink(path) else os.fspath(path)
            if os.path.lexists(target) and not stat.S_ISREG(os.stat(target).st_mode):
                kind = "a folder" if os.path.isdir(target) else "not a regular file"
                raise _core.FileError(f"cannot write {_quoted(path)}: it is {kind}")
            folder, name = os.path.split(target)
            # Cut, so that a name of the longest length (255 bytes) still has a temporary neighbour. Its name is known
            # before it is made, so that Ctrl-C between the two leaves nothing.
            short = os.fsencode(name)[:200].decode("utf-8", "ignore")
            temporary = os.path.join(folder or ".", f".{short}.{secrets.token_hex(8)}.tmp")
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            file = _opened(os.open(temporary, flags, 0o666))
        except (OSError, ValueError) as error:
            raise _core.FileError(f"cannot write {_quoted(path)}: {reason(error)}") from error
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        system = None if isinstance(error, _core.FileError) or not isinstance(error, Exception) else _of_system(error)
        if system is None:
            raise
        raise _core.FileError(f"cannot write {_quoted(path)}: {reason(system)}") from error
    _flush_folder(folder or ".")


def _opened(descriptor: int) -> IO[bytes]:
    try:
        return os.fdopen(descriptor, "w+b")
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise


def _of_system(error: BaseException | None) -> OSError | None:
    """The system's error that `error` is, or that happened first: zipfile fails once more when it is closed."""
    found = None
    while error is not None:
        found = error if isinstance(error, OSError) else found
        error = error.__cause__ or error.__context__
    return found


def write_text(path: Path, text: str) -> None:
    """Replaces the file by `text` as UTF-8; see replaced()."""
    with replaced(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def _flush_folder(folder: str) -> None:
    """So that the new name is on the disk too. File systems that cannot have nothing to flush."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# What TemporaryFolder has made, or is about to, with the process that does.
_temporary_folders: dict[str, int] = {}


class TemporaryFolder:
    """A folder of the system's for temporary files, for this user alone. It goes with remove(), with the object or with
    the process, whichever comes first; Ctrl-C in the middle of that, or while it is made, leaves it to the process.
    """

    def __init__(self) -> None:
        """FileError: none can be made."""
        self.path = ""
        import tempfile  # imports much, and running a program takes no temporary file

        try:
            self.path = os.path.join(tempfile.gettempdir(), f"pinnace-{secrets.token_hex(8)}")
            _temporary_folders[self.path] = os.getpid()
            os.mkdir(self.path, 0o700)
        except OSError as error:
            place = f" {error.filename!r}" if error.filename else ""
            raise _core.FileError(f"cannot make a folder for temporary files{place}: {reason(error)}") from error

    def remove(self) -> None:
        _remove(self.path)

    def __del__(self) -> None:
        _remove(self.path)


def _remove(folder: str) -> None:
    """By the process that made it: a child that was forked ends without taking its parent's files away."""
    if _temporary_folders.get(folder) == os.getpid():
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    _temporary_folders.pop(folder, None)


@atexit.register
def remove_temporary_folders() -> None:
    """All that are left."""
    for folder in list(_temporary_folders):
        _remove(folder)


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A TemporaryFolder's path, for a block. FileError where none can be made."""
    folder = TemporaryFolder()
    try:
        yield folder.path
    finally:
        folder.remove()


@contextlib.contextmanager
def failures_named(path: Path, written: str) -> Iterator[None]:
    """For a block that writes temporary files for the sake of `path`: FileError where the system refuses, a full disk
    for instance, OutOfMemory where memory ends. `written` says what is written. Other errors pass.
    """
    try:
        yield
    except _core.Error:
        raise
    except MemoryError as error:
        raise _core.OutOfMemory(f"{os.fspath(path)}: writing {written}") from error
    except Exception as error:
        system = _of_system(error)
        if system is None:
            raise
        raise _core.FileError(f"{os.fspath(path)}: cannot write {written}: {reason(system)}") from error


# ---- names ----------------------------------------------------------------------------------------------------------


def printable(text: str, keep: str = "") -> str:
    """The text with whatever a terminal would act on as escapes: control characters, marks that are invisible or change
    the direction of writing, halves of surrogate pairs. Characters of `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


# Names that Windows gives to devices, whatever their ending.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)
_LONGEST = 200


def member_names(names: Iterable[str]) -> dict[str, str]:
    """Names for the members of an archive, by the names they stand for: safe to unpack on any system, all different.

    Letters and digits of ASCII, "_", "-" and "." stay. All else becomes "%" and two hexadecimal digits for each byte of
    its UTF-8, as in a URL, so that urllib.parse.unquote() gives the name back: "/", "%" itself, spaces, control
    characters; also a "." in front and one at the end, the first letter of names that Windows keeps for devices, and
    all of a name that differs from an earlier one in capitals alone. What is longer than 200 characters is cut and ends
    in "~" and a number. The empty name is "%".
    """
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        member = _quoted_name(name)
        if member.lower() in taken:
            member = _percent(name)
        stem, number, too_long = member[:_LONGEST], 0, len(member) > _LONGEST
        while too_long or member.lower() in taken:
            number, too_long = number + 1, False
            member = f"{stem}~{number}"
        taken.add(member.lower())
        made[name] = member
    return made


def _quoted_name(name: str) -> str:
    safe = "".join(c if (c.isascii() and c.isalnum()) or c in "_-." else _percent(c) for c in name)
    if not safe or _RESERVED.match(safe):
        return _percent(safe[0]) + safe[1:] if safe else "%"
    if safe.startswith("."):
        safe = "%2E" + safe[1:]
    return safe[:-1] + "%2E" if safe.endswith(".") else safe


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _quoted(path: Path) -> str:
    return repr(os.fspath(path))


# ---- errors ---------------------------------------------------------------------------------------------------------


def reason(error: BaseException) -> str:
    """What the system says, without the path, which the sentence has already."""
    text = getattr(error, "strerror", None)
    return f"{text} (errno {error.errno})" if isinstance(error, OSError) and text else str(error)


def one_line(error: BaseException, most: int | None = None, kind: bool = False) -> str:
    """What an error says as one line of at most so many characters; its type where it says nothing, or first, with
    `kind`, for errors of which a KeyError says no more than the key.
    """
    text, name = " ".join(str(error).split()), type(error).__name__
    text = f"{name}: {text}" if kind and text else text or name
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


__all__ = [
    "TemporaryFolder",
    "failures_named",
    "member_names",
    "one_line",
    "open_regular",
    "printable",
    "reason",
    "remove_temporary_folders",
    "replaced",
    "temporary_folder",
    "write_text",
]
