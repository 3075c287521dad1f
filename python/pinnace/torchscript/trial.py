"""A TorchScript file opened in a process of its own, with limits: torch computes with texts of its code meanwhile.

Importing torch takes a second, so one process has it imported and waits for files; where fork is safe (Linux), it opens
each in a copy of itself. It ends with this process, or after a minute without a file.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from pinnace import _core
from pinnace.torchscript import opener

MOST_SECONDS = 60
MOST_BYTES = 1 << 30  # beside four times the file
_BUSY = 10  # a busy machine: how many times MOST_SECONDS a file may take by the clock
_IDLE_SECONDS = 60
_ENDS_WITHIN = 10.0  # seconds, of a process that has closed its end

_PROGRAM = Path(opener.__file__)


class _Opener:
    """The process that waits for files."""

    def __init__(self) -> None:
        numbers = (MOST_SECONDS, _BUSY, _IDLE_SECONDS, int(sys.platform == "linux"))
        self._connection, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(_PROGRAM), *map(str, numbers)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # a group, to be ended with the copy that it waits for
                )
        except BaseException:
            self._connection.close()
            raise

    def opens(self, most: int, descriptor: int) -> tuple[int, bytes] | None:
        """How the copy that opened it ended, and torch's words; None: the process itself has ended.

        TimeoutError: it neither opens the file nor gives it up.
        """
        self._connection.settimeout((_BUSY + 1) * MOST_SECONDS)
        with contextlib.suppress(ConnectionError):
            socket.send_fds(self._connection, [opener.REQUEST.pack(most)], [descriptor])
            head = self._receive(opener.ANSWER.size)
            if head is not None:
                status, size = opener.ANSWER.unpack(head)
                return status, self._receive(size) or b""
        return None

    def _receive(self, size: int) -> bytes | None:
        """None: the process has ended."""
        received = b""
        while len(received) < size:
            part = self._connection.recv(size - len(received))
            if not part:
                return None
            received += part
        return received

    def end(self, within: float = 0) -> int:
        """Its exit status, of its own within those seconds: 0 if it had waited for files."""
        self._connection.close()
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            return self._process.wait()


_lock = threading.Lock()
_opener: _Opener | None = None


def _end(within: float = 0) -> int:
    global _opener
    ended, _opener = _opener, None
    return ended.end(within) if ended is not None else 0


def _forget() -> None:
    """In a process that was forked: the opener is its parent's."""
    global _lock, _opener
    _lock = threading.Lock()
    _opener = None


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def prepare() -> None:
    """Has the process import torch while the caller does other things."""
    global _opener
    with _lock, contextlib.suppress(OSError):  # opens() says why
        _opener = _opener or _Opener()


def opens(path: str, descriptor: int) -> None:
    """Returns if torch opens the file, of this descriptor, within the limits. Nothing of it remains. One at a time.

    Unsupported: it takes more time or memory; FileError: torch's words, or that torch ends its process.
    """
    most = MOST_BYTES + 4 * os.fstat(descriptor).st_size
    with _lock:
        try:
            status, words = _opened(most, descriptor)
        except TimeoutError:
            _end()
            raise _too_much(path, most) from None
        except OSError as error:
            _end()
            raise _core.FileError(f"{path}: no process to open it in: {error}") from error
        except BaseException:
            _end()
            raise
    if status in (opener.TOO_MUCH, -signal.SIGXCPU, -signal.SIGKILL, -signal.SIGALRM):
        raise _too_much(path, most)
    if status != opener.OPENED:
        said = words.decode(errors="replace") or f"its process ends with {status}"
        raise _core.FileError(f"{path}: torch cannot load it: {said}")


def _opened(most: int, descriptor: int) -> tuple[int, bytes]:
    global _opener
    for _ in range(2):  # the first may have ended as it waited: for want of files, or by another's hand
        _opener = _opener or _Opener()
        answer = _opener.opens(most, descriptor)
        if answer is not None:
            return answer
        status = _end(_ENDS_WITHIN)
    if status == 0:
        raise OSError("it ends at once")
    return status, b""


def _too_much(path: str, most: int) -> _core.Unsupported:
    return _core.Unsupported(
        f"{path}: torch takes more than {MOST_SECONDS} s or {most >> 20} MiB to open it, for it computes with "
        "what is in the code"
    )


__all__ = ["MOST_BYTES", "MOST_SECONDS", "opens", "prepare"]
