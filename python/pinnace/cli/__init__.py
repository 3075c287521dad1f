"""The command `pinnace`: convert, inspect, check, run, compare, bench, devices, report-device, diff.

Exit status 0: all is well; 1: a negative answer (does not match, cannot run there, cannot convert, out of memory);
2: wrong use, or what cannot be read or written, standard output included; 130: Ctrl-C, after which no file is
half-written. Data on stdout, messages on stderr; --log LEVEL has the library's own messages there too. On a terminal,
phases of more than two seconds are shown there while they last.
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Sequence

from pinnace import _core
from pinnace.cli.output import drop_output, failed
from pinnace.cli.parser import option_parser, options_of
from pinnace.files import reason
from pinnace.log import log_to_stderr
from pinnace.progress import is_shown, set_progress


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status.

    arguments  those after the command's name; None: the process's own.
    """
    try:
        return _run(arguments)
    except BrokenPipeError:  # `pinnace inspect net.pnc | head`: what is left to write has no reader
        drop_output()
        return 0
    except OSError as error:  # of standard output, on a full disk for instance: those of files are FileError
        drop_output()
        return failed(f"cannot write: {reason(error)}" if error.filename is None else error, 2)
    except KeyboardInterrupt:
        return failed("interrupted", 130)
    except (_core.InvalidArgument, _core.FileError) as error:
        return failed(error, 2)
    except _core.Error as error:
        return failed(error, 1)
    except MemoryError:
        return failed("out of memory", 1)


def _run(arguments: Sequence[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names may have letters that the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    options = options_of(option_parser(), arguments)
    options.line = shlex.join(["pinnace", *(sys.argv[1:] if arguments is None else arguments)])
    quiet, verbose = getattr(options, "quiet", False), getattr(options, "verbose", False)
    if level := getattr(options, "log", "info" if verbose else None):
        log_to_stderr(level)
    shown = is_shown()
    if quiet or level:  # a line that is drawn anew would stand between messages
        set_progress(False)
    try:
        status: int = options.run(options)
    finally:
        set_progress(shown)
    if sys.stdout is not None:
        sys.stdout.flush()
    return status


__all__ = ["main"]
