"""What pinnace tells beside results and errors: set_log_level(), and how messages of the core reach `logging`."""

from __future__ import annotations

# Imported before the core's end is registered, so that logging.shutdown() comes after the last delivery.
import logging

from pinnace import _core

_logger = logging.getLogger("pinnace")

# Numbers of `logging`, which has no level below debug's.
_NUMBERS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "error": 40, "off": 60}


def set_log_level(level: str) -> None:
    """Lets messages of this level and above through: "trace", "debug", "info", "warn", "error" or "off".

    They go to the logger "pinnace" of Python's `logging`, whose level this sets too; where nothing handles that
    logger, they go to stderr. Before the first call it is "warn". `PINNACE_LOG=info` in the environment sets the level
    when pinnace is imported, and has messages written to stderr as they arise, from any thread.

    `logging` gets them in order, during calls of pinnace and at their end. A handler must not call pinnace. Trace is
    number 5 there. What is said at which level: docs/logging.md. InvalidArgument: there is no such level.
    """
    if not isinstance(level, str):
        raise TypeError(f"the log level must be text, is {level!r:.200}")
    _core.set_log_level(level)
    _logger.setLevel(_NUMBERS[level])


def log_to_stderr(level: str) -> None:
    """The same, as PINNACE_LOG does it: messages are on stderr as they arise. For commands. InvalidArgument."""
    _core.log_to_stderr(level)
    _logger.setLevel(_NUMBERS[level])


def log(level: str, text: str) -> None:
    """A message of the package's own."""
    _core.log(level, text)


def _deliver(level: str, text: str, time: float) -> bool:
    """Called by the core, with one of its messages and when it arose. False: it is wanted, and nobody handles it."""
    number = _NUMBERS[level]
    if not _logger.isEnabledFor(number):
        return True
    if not _logger.hasHandlers():
        return False
    # No line of the caller's: the message may be another thread's.
    record = _logger.makeRecord(_logger.name, number, "pinnace", 0, text, (), None)
    record.relativeCreated -= (record.created - time) * 1000
    record.created, record.msecs = time, int(time % 1 * 1000)
    _logger.handle(record)
    return True


if level := _core.deliver_log_to(_deliver):  # what PINNACE_LOG names
    _logger.setLevel(_NUMBERS[level])
