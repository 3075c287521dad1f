"""The program that trial.py starts: has torch imported, waits for TorchScript files, and opens each under limits.

python -P opener.py SECONDS BUSY IDLE FORKS, with a socket as standard input. A request is REQUEST, the bytes of memory
that opening a file may take, with the file's descriptor; the answer is ANSWER, a status and how many bytes of torch's
words follow it. Imports nothing of pinnace, which would take time and memory of its own.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import struct
import sys
import warnings
from typing import Any

REQUEST = struct.Struct("=q")
ANSWER = struct.Struct("=iI")
MOST_WORDS = 4000  # bytes
# What became of a file; other statuses are those with which a process ended.
OPENED, REFUSED, TOO_MUCH = 0, 2, 3


def held(name: str) -> int:
    """VmHWM, the largest resident size, or VmSize, of this process alone, in bytes: what getrusage() has starts from
    the memory of the process that started it."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name + ":"))
    except (OSError, StopIteration):  # no Linux
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit if name == "VmHWM" else 4 << 30


def limit(kind: int, soft: int, hard: int) -> None:
    given = resource.getrlimit(kind)[1]  # no process may have more
    if given != resource.RLIM_INFINITY:
        soft, hard = min(soft, given), min(hard, given)
    resource.setrlimit(kind, (soft, hard))


def opened(torch: Any, file: int, most: int, seconds: int, busy: int) -> tuple[int, bytes]:
    """What became of the file, and torch's words. The limits stay: it is the last thing that a process does."""
    before = held("VmHWM")
    space = held("VmSize") + 2 * most
    signal.alarm(busy * seconds)
    limit(resource.RLIMIT_CPU, seconds, seconds + 1)
    limit(resource.RLIMIT_AS, space, space)
    limit(resource.RLIMIT_CORE, 0, 0)
    try:
        with os.fdopen(file, "rb") as archive:
            archive.seek(0)
            torch.jit.load(archive, map_location="cpu")
    except MemoryError:
        return TOO_MUCH, b""
    except Exception as error:
        words = str(error)
        status = TOO_MUCH if "bad_alloc" in words or "allocate" in words else REFUSED
        return status, words.encode(errors="replace")[:MOST_WORDS]
    # torch goes on without a text that there is no memory for.
    return (TOO_MUCH if held("VmHWM") - before > most else OPENED), b""


def opened_in_copy(connection: socket.socket, torch: Any, file: int, *limits: int) -> tuple[int, bytes]:
    """The same in a copy of this process, which ends with it; or how the copy was ended."""
    read, write = os.pipe()
    copy = os.fork()
    if copy == 0:
        status = 1
        try:
            connection.close()
            status, words = opened(torch, file, *limits)
            os.write(write, words)
        finally:
            os._exit(status)
    os.close(write)
    os.close(file)
    with os.fdopen(read, "rb") as pipe:
        words = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), words


def main() -> None:
    warnings.simplefilter("ignore")
    import torch

    seconds, busy, idle, forks = map(int, sys.argv[1:])
    torch.set_num_threads(1)  # each thread takes address space of its own
    connection = socket.socket(fileno=0)
    while select.select([connection], [], [], idle)[0]:
        request, files, _, _ = socket.recv_fds(connection, REQUEST.size, 1)
        if not files:
            break
        (most,) = REQUEST.unpack(request)
        if forks:
            status, words = opened_in_copy(connection, torch, files[0], most, seconds, busy)
        else:
            status, words = opened(torch, files[0], most, seconds, busy)
        connection.sendall(ANSWER.pack(status, len(words)) + words)
        if not forks:
            break
    os._exit(0)


if __name__ == "__main__":
    main()
