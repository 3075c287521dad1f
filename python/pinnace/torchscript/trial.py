"""A TorchScript file opened in a process of its own, with limits: torch computes with texts of its code meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from pinnace import _core

MOST_SECONDS = 60
MOST_BYTES = 1 << 30  # beside four times the file

_PROGRAM = """
import os, resource, sys
import warnings
warnings.simplefilter("ignore")
import torch
file, seconds, most, peak_unit = map(int, sys.argv[1:])

def held(name):
    # Of this process alone: what getrusage() has starts from the memory of the process that started it.
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name + ":"))
    except (OSError, StopIteration):  # no Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * peak_unit if name == "VmHWM" else 4 << 30

before = held("VmHWM")
space = held("VmSize") + 2 * most
torch.set_num_threads(1)  # each thread takes address space of its own
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
resource.setrlimit(resource.RLIMIT_AS, (space, space))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
opened = os.fdopen(file, "rb")
opened.seek(0)
try:
    torch.jit.load(opened, map_location="cpu")
except MemoryError:
    os._exit(3)
except Exception as error:
    os.write(1, str(error).encode()[:4000])
    os._exit(3 if "bad_alloc" in str(error) or "allocate" in str(error) else 2)
# torch goes on without a text that there is no memory for.
os._exit(3 if held("VmHWM") - before > most else 0)
"""


def opens(path: str, descriptor: int) -> None:
    """Returns if torch opens the file, of this descriptor, within the limits. Nothing of it remains.

    Unsupported: it takes more time or memory; FileError: torch's words, or that torch ends its process.
    """
    most = MOST_BYTES + 4 * os.fstat(descriptor).st_size
    unit = 1 if sys.platform == "darwin" else 1024  # of the largest resident size
    command = [sys.executable, "-c", _PROGRAM, *map(str, (descriptor, MOST_SECONDS, most, unit))]
    try:
        ran = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            timeout=10 * MOST_SECONDS,  # of a busy machine; the process itself has MOST_SECONDS of a processor
        )
    except subprocess.TimeoutExpired:
        raise _too_much(path, most) from None
    except OSError as error:
        raise _core.FileError(f"{path}: no process to open it in: {error}") from error
    if ran.returncode in (3, -signal.SIGXCPU, -signal.SIGKILL):
        raise _too_much(path, most)
    if ran.returncode:
        words = ran.stdout.decode(errors="replace") or f"its process ends with {ran.returncode}"
        raise _core.FileError(f"{path}: torch cannot load it: {words}")


def _too_much(path: str, most: int) -> _core.Unsupported:
    return _core.Unsupported(
        f"{path}: torch takes more than {MOST_SECONDS} s or {most >> 20} MiB to open it, for it computes with "
        "what is in the code"
    )


__all__ = ["MOST_BYTES", "MOST_SECONDS", "opens"]
